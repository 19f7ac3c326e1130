/* Perfetto's protobuf: the exporter, and the packets of events. A plain scope is two packets of 11
   to 14 bytes. Its name and its category are numbers that the sequence has had before. */
#include <math.h>
#include <stdio.h>

#include "../base/log.h"
#include "../reader/capture.h"
#include "../reader/catalog.h"
#include "pftrace.h"

/* ---- names ---- */

static void put_interned(prof_i_pftrace *p, uint32_t field, uint32_t iid, prof_i_text text) {
  const size_t at = prof_i_protobuf_begin(&p->interned, field);
  prof_i_protobuf_number(&p->interned, 1, iid);
  prof_i_protobuf_text(&p->interned, 2, text.data, (size_t)text.bytes);
  prof_i_protobuf_end(&p->interned, at);
}

/* The number of a site's name and category, which the sequence learns with its first event. */
static uint32_t site_iid(prof_i_pftrace *p, uint32_t number, const prof_i_site_info *site) {
  prof_i_pf_site *const place = &p->sites[number];
  if (place->generation == p->generation) return place->iid;
  *place = (prof_i_pf_site){.generation = p->generation, .iid = p->next_iid++};
  prof_i_pf_set_plain_event(place);
  put_interned(p, PF_INTERNED_NAMES, place->iid, prof_i_text_or(site->name, "(unnamed)"));
  put_interned(p, PF_INTERNED_CATEGORIES, place->iid, prof_i_text_or(site->category, "scope"));
  return place->iid;
}

static bool text_is_same(prof_i_text a, const char *data, uint64_t bytes) {
  return a.data == data && a.bytes == bytes;
}

/* A name of the call and not of its site is written as it is. */
static void put_names(prof_i_export *run, const prof_i_export_event *event) {
  prof_i_pftrace *const p = run->state;
  const prof_event *const e = event->event;
  const prof_i_site_info *const site =
      e->site < p->site_count ? prof_i_trace_site(run->trace, e->site) : NULL;
  const bool has_name = site && text_is_same(site->name, e->name, e->name_bytes),
             has_category = site && text_is_same(site->category, e->category, e->category_bytes);
  const uint32_t iid = has_name || has_category ? site_iid(p, e->site, site) : 0;
  if (has_name)
    prof_i_protobuf_number(&p->pb, PF_EVENT_NAME_IID, iid);
  else
    prof_i_protobuf_text(&p->pb, PF_EVENT_NAME, event->name.data, (size_t)event->name.bytes);
  if (has_category)
    prof_i_protobuf_number(&p->pb, PF_EVENT_CATEGORY_IIDS, iid);
  else
    prof_i_protobuf_text(&p->pb, PF_EVENT_CATEGORIES, event->category.data,
                         (size_t)event->category.bytes);
}

/* ---- packets ---- */

typedef struct open_event {
  size_t packet, event;
} open_event;

/* track: 0 is the sequence's own. */
static open_event begin_event(prof_i_export *run, uint64_t ns, uint32_t type, uint64_t track) {
  prof_i_pftrace *const p = run->state;
  open_event open;
  prof_i_pf_begin_packet(p, PF_SEQUENCE_FIRST + run->thread, &open.packet);
  if (ns >= p->last_ns) {
    prof_i_protobuf_number(&p->pb, PF_PACKET_TIMESTAMP, ns - p->last_ns);
    p->last_ns = ns;
  } else { /* only out of a damaged capture */
    prof_i_protobuf_number(&p->pb, PF_PACKET_TIMESTAMP, run->info.start_unix_ns + ns);
    prof_i_protobuf_number(&p->pb, PF_PACKET_TIMESTAMP_CLOCK, PF_CLOCK_REALTIME);
  }
  open.event = prof_i_protobuf_begin(&p->pb, PF_PACKET_TRACK_EVENT);
  prof_i_protobuf_number(&p->pb, PF_EVENT_TYPE, type);
  if (track) prof_i_protobuf_number(&p->pb, PF_EVENT_TRACK, track);
  return open;
}

static int end_event(prof_i_export *run, open_event open) {
  prof_i_pftrace *const p = run->state;
  prof_i_protobuf_end(&p->pb, open.event);
  prof_i_pf_end_packet(run, open.packet);
  if (!p->pb.has_failed && !p->interned.has_failed) return PROF_OK;
  return prof_i_fail(PROF_E_NO_MEMORY, "no memory for a packet of the trace");
}

/* The arrow from the launch: an instant there, and this scope as its end. With a filter there is
   none. Work that began before
   its launch has none, because viewers refuse an end before its begin. */
static uint64_t put_launch(prof_i_export *run, const prof_event *event) {
  prof_i_pftrace *const p = run->state;
  const uint32_t thread = event->launch.thread;
  if (run->options->filter || !(event->flags & PROF_EVENT_ON_DEVICE) ||
      thread >= run->info.thread_count || event->start_ns < event->launch.start_ns ||
      !prof_i_window_contains(&run->options->window, event->launch.start_ns,
                              event->launch.start_ns))
    return 0;
  size_t packet;
  prof_i_pf_begin_packet(p, PF_SEQUENCE_GLOBAL, &packet);
  prof_i_protobuf_number(&p->pb, PF_PACKET_TIMESTAMP,
                         run->info.start_unix_ns + event->launch.start_ns);
  const size_t at = prof_i_protobuf_begin(&p->pb, PF_PACKET_TRACK_EVENT);
  prof_i_protobuf_number(&p->pb, PF_EVENT_TYPE, PF_TYPE_INSTANT);
  prof_i_protobuf_number(&p->pb, PF_EVENT_TRACK, prof_i_pf_lane_uuid(p, thread, 0));
  prof_i_protobuf_text(&p->pb, PF_EVENT_NAME, "launch", 6);
  prof_i_protobuf_text(&p->pb, PF_EVENT_CATEGORIES, "ac2g", 4);
  prof_i_protobuf_fixed64(&p->pb, PF_EVENT_FLOWS, ++p->launch_count);
  prof_i_protobuf_end(&p->pb, at);
  prof_i_pf_end_packet(run, packet);
  return p->launch_count;
}

static int put_scope(prof_i_export *run, prof_i_export_event *event) {
  prof_i_pftrace *const p = run->state;
  if (event->lane >= p->lanes_named) prof_i_pf_name_lanes(run, event->lane);
  const uint64_t track = event->lane ? prof_i_pf_lane_uuid(p, run->thread, event->lane) : 0;
  const bool is_begin = event->phase == PROF_I_PHASE_BEGIN;
  const uint64_t launch = is_begin ? put_launch(run, event->event) : 0;
  const open_event open = begin_event(run, is_begin ? event->start_ns : event->end_ns,
                                      is_begin ? PF_TYPE_BEGIN : PF_TYPE_END, track);
  if (!is_begin) return end_event(run, open);
  if (event->event->kind == PROF_EVENT_STEP) {
    char name[64];
    const int bytes =
        snprintf(name, sizeof name, "ProfilerStep#%llu", (unsigned long long)event->event->id);
    prof_i_protobuf_text(&p->pb, PF_EVENT_NAME, name, (size_t)bytes);
    prof_i_protobuf_text(&p->pb, PF_EVENT_CATEGORIES, "user_annotation", 15);
    return end_event(run, open);
  }
  put_names(run, event);
  prof_i_pf_put_args(run, event->event);
  if (launch) prof_i_protobuf_fixed64(&p->pb, PF_EVENT_LAST_FLOWS, launch);
  return end_event(run, open);
}

static int put_instant(prof_i_export *run, prof_i_export_event *event) {
  const open_event open = begin_event(run, event->start_ns, PF_TYPE_INSTANT, 0);
  put_names(run, event);
  prof_i_pf_put_args(run, event->event);
  return end_event(run, open);
}

/* ---- memory and counters ---- */

static int put_pool_value(prof_i_export *run, const prof_i_export_event *event, const char *what,
                          bool is_allocated, int64_t bytes) {
  prof_i_pftrace *const p = run->state;
  const prof_i_catalog *const catalog = &run->trace->catalog;
  const uint32_t number = event->event->memory.pool;
  prof_i_text pool = {"", 0};
  for (uint32_t i = 0; i < catalog->pool_count; i++)
    if (catalog->pools[i].number == number) pool = catalog->pools[i].name;
  p->name.used = 0;
  prof_i_protobuf_text_part(&p->name, what, strlen(what));
  prof_i_protobuf_text_part(&p->name, " (", 2);
  prof_i_protobuf_text_part(&p->name, pool.data, (size_t)pool.bytes);
  prof_i_protobuf_text_part(&p->name, ")", 1);
  const uint64_t track =
      prof_i_pf_counter_track(run, (prof_i_text){(const char *)p->name.bytes, p->name.used},
                              event->event->device, (number << 1 | is_allocated) + 1, true);
  const open_event open = begin_event(run, event->start_ns, PF_TYPE_COUNTER, track);
  prof_i_protobuf_number(&p->pb, PF_EVENT_COUNTER, (uint64_t)bytes);
  return end_event(run, open);
}

static int put_memory(prof_i_export *run, prof_i_export_event *event) {
  prof_i_pftrace *const p = run->state;
  const prof_event_memory *const memory = &event->event->memory;
  const bool is_oom = memory->verb == PROF_MEMORY_OOM;
  if (!run->options->with_memory || memory->verb == PROF_MEMORY_COLLECT ||
      memory->verb == PROF_MEMORY_WRONG)
    return PROF_OK;
  if (is_oom || memory->verb == PROF_MEMORY_ALLOC || memory->verb == PROF_MEMORY_FREE) {
    const char *const name = is_oom                             ? "[OutOfMemory]"
                             : memory->verb == PROF_MEMORY_FREE ? "[memory] free"
                                                                : "[memory] alloc";
    const open_event open = begin_event(run, event->start_ns, PF_TYPE_INSTANT, 0);
    prof_i_protobuf_text(&p->pb, PF_EVENT_NAME, name, strlen(name));
    prof_i_protobuf_text(&p->pb, PF_EVENT_CATEGORIES, "memory", 6);
    prof_i_pf_put_number_arg(p, "Addr", memory->address);
    prof_i_pf_put_number_arg(p, "Bytes", memory->bytes);
    if (memory->tag_bytes) prof_i_pf_put_text_arg(p, "Tag", memory->tag, memory->tag_bytes);
    const int status = end_event(run, open);
    if (status != PROF_OK) return status;
  }
  int status = put_pool_value(run, event, "used bytes", false, memory->used_bytes);
  if (status == PROF_OK && memory->allocated_bytes >= 0)
    status = put_pool_value(run, event, "allocated bytes", true, memory->allocated_bytes);
  return status;
}

static int pftrace_counter(prof_i_export *run, prof_i_export_event *event) {
  prof_i_pftrace *const p = run->state;
  if (!isfinite(event->event->value)) {
    run->findings->counts[PROF_I_FINDING_NOT_FINITE]++;
    return PROF_OK;
  }
  const uint64_t track = prof_i_pf_counter_track(run, event->name, event->event->device, 0, false);
  const open_event open = begin_event(run, event->start_ns, PF_TYPE_COUNTER, track);
  prof_i_protobuf_double(&p->pb, PF_EVENT_DOUBLE_COUNTER, event->event->value);
  return end_event(run, open);
}

/* ---- the exporter ---- */

static int pftrace_begin(prof_i_export *run) {
  prof_i_pftrace *const p = run->state;
  prof_i_flows_init(&p->flows);
  const prof_i_export_place *const place = run->options->place;
  if (place) {
    p->uuid_base = (uint64_t)place->number << PF_UUID_BASE_SHIFT;
    p->launch_count = (uint64_t)place->number << PF_FLOW_BASE_SHIFT;
    p->sequence_base = place->first_sequence;
  }
  p->next_uuid = prof_i_pf_process_uuid(p) + 1;
  p->site_count = prof_i_trace_site_count(run->trace);
  p->sites = calloc((size_t)p->site_count + 1, sizeof *p->sites);
  if (!p->sites) return prof_i_fail(PROF_E_NO_MEMORY, "no memory for %u call sites", p->site_count);
  prof_i_pf_put_global_begin(run);
  return PROF_OK;
}

static int pftrace_event(prof_i_export *run, prof_i_export_event *event) {
  if (event->phase != PROF_I_PHASE_WHOLE) return put_scope(run, event);
  return event->event->kind == PROF_EVENT_MEMORY ? put_memory(run, event) : put_instant(run, event);
}

static int pftrace_flow(prof_i_export *run, prof_i_export_event *event) {
  prof_i_pftrace *const p = run->state;
  const prof_event *const e = event->event;
  const prof_i_flow flow = {.id = e->id,
                            .start_ns = e->start_ns,
                            .name = e->name,
                            .name_bytes = e->name_bytes,
                            .tid = run->thread,
                            .is_end = e->kind == PROF_EVENT_FLOW_END};
  if (!prof_i_flows_add(&p->flows, &flow)) run->findings->counts[PROF_I_FINDING_FLOW_TOO_MANY]++;
  return PROF_OK;
}

static int pftrace_end(prof_i_export *run) {
  const prof_i_pftrace *const p = run->state;
  prof_i_pf_put_tail(run);
  if (!p->pb.has_failed && !p->interned.has_failed) return PROF_OK;
  return prof_i_fail(PROF_E_NO_MEMORY, "no memory for a packet of the trace");
}

static void pftrace_destroy(prof_i_export *run) {
  prof_i_pftrace *const p = run->state;
  prof_i_flows_fini(&p->flows);
  for (uint32_t i = 0; i < p->track_count; i++) free(p->tracks[i].own_name);
  free(p->tracks);
  free(p->sites);
  free(p->pb.bytes);
  free(p->interned.bytes);
  free(p->name.bytes);
}

const prof_i_exporter prof_i_pftrace_exporter = {
    .name = "perfetto",
    .format = PROF_FORMAT_PERFETTO,
    .suffixes = {".pftrace", ".pftrace.gz"},
    .abilities = PROF_I_EXPORT_CUT | PROF_I_EXPORT_NO_MEMORY,
    .order = PROF_I_ORDER_TIME,
    .event_kinds = PROF_I_KIND(SCOPE) | PROF_I_KIND(OPEN) | PROF_I_KIND(STEP) |
                   PROF_I_KIND(INSTANT) | PROF_I_KIND(MEMORY),
    .state_bytes = sizeof(prof_i_pftrace),
    .begin = pftrace_begin,
    .thread = prof_i_pf_put_thread_begin,
    .event = pftrace_event,
    .counter = pftrace_counter,
    .flow = pftrace_flow,
    .plain_by_time = prof_i_pf_put_plain,
    .end = pftrace_end,
    .destroy = pftrace_destroy};
