/* prof's own SQLite format: all events of a capture as tables, with views that join them. Rows are
   written in the order in which events begin, so ids are ordered by thread and time. The schema is
   in sqlite_ends.c. tools/import/own_database.c reads the file back. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "../base/error.h"
#include "../reader/capture.h"
#include "names.h"
#include "sqlite_writer.h"

/* Puts the text, or NULL if it is empty. */
static void put_optional(prof_i_sqlite_writer *w, prof_i_insert *row, prof_i_text text) {
  if (text.bytes)
    prof_i_sqlite_put_clean(w, row, text);
  else
    prof_i_insert_put_null(row);
}

/* Puts the arguments of run->event. Changes the event. */
static void put_args(prof_i_sqlite_writer *w, prof_i_insert *row) {
  const prof_i_text args = prof_i_event_text_args(&w->texts);
  if (args.bytes)
    prof_i_insert_put_text(row, args);
  else
    prof_i_insert_put_null(row);
}

/* ---- devices and names, which rows refer to ---- */

static bool add_device(prof_i_export *run, prof_device device) {
  prof_i_sqlite_writer *const w = run->state;
  const prof_i_export_place *const place = run->options->place;
  char name[PROF_I_DEVICE_NAME_BYTES], labelled[PROF_I_DEVICE_NAME_BYTES + 160];
  if (!prof_i_make_room((void **)&w->known_devices, &w->device_room, w->device_count,
                        sizeof *w->known_devices))
    return false;
  w->known_devices[w->device_count++] = device;
  prof_i_device_name(device, name);
  snprintf(labelled, sizeof labelled, "%s: %s", place ? place->label : "", name);
  prof_i_insert_put_u64(w->inserts.devices, w->before.devices + w->device_count);
  prof_i_insert_put(w->inserts.devices, device.type);
  prof_i_insert_put(w->inserts.devices, device.index);
  prof_i_insert_put_text(w->inserts.devices, prof_i_text_from(place ? labelled : name));
  prof_i_insert_put_u64(w->inserts.devices, prof_i_export_device_pid(run, device));
  prof_i_insert_row(w->inserts.devices);
  return true;
}

bool prof_i_sqlite_put_device(prof_i_export *run, prof_i_insert *row, prof_device device) {
  prof_i_sqlite_writer *const w = run->state;
  uint32_t at = 0;
  if (prof_i_device_is_host(device)) {
    prof_i_insert_put_null(row);
    return true;
  }
  while (at < w->device_count &&
         (w->known_devices[at].type != device.type || w->known_devices[at].index != device.index))
    at++;
  if (at == w->device_count && !add_device(run, device)) return false;
  prof_i_insert_put_u64(row, w->before.devices + at + 1);
  return true;
}

static void add_name(prof_i_export *run, uint32_t id, const prof_i_database_name *name) {
  prof_i_sqlite_writer *const w = run->state;
  const prof_i_site_info *const site = prof_i_trace_site(run->trace, name->site);
  prof_i_insert_put_u64(w->inserts.names, w->before.names + id);
  prof_i_sqlite_put_clean(w, w->inserts.names, name->name);
  prof_i_sqlite_put_clean(w, w->inserts.names, name->category);
  prof_i_insert_put(w->inserts.names, site->level);
  put_optional(w, w->inserts.names, site->file);
  if (site->file.bytes)
    prof_i_insert_put(w->inserts.names, site->line);
  else
    prof_i_insert_put_null(w->inserts.names);
  put_optional(w, w->inserts.names, prof_i_event_text_place(&w->texts, name->site, name->name));
  prof_i_insert_row(w->inserts.names);
}

/* The number of the event's name and category. 0: no memory. */
static uint32_t name_of(prof_i_export *run, const prof_i_export_event *event) {
  prof_i_sqlite_writer *const w = run->state;
  const uint32_t site = prof_i_event_text_site(run->trace, event->event);
  const uint32_t number = event->event->site < w->site_count ? event->event->site : 0;
  if (w->site_names[site]) return w->site_names[site];
  const prof_i_database_name name = {event->name, event->category, number};
  bool is_new;
  const uint32_t id = prof_i_name_id(&w->name_ids, &name, &is_new);
  if (is_new) add_name(run, id, &name);
  if (site) w->site_names[site] = id;
  return id;
}

static int64_t thread_number(const prof_i_export *run, uint32_t thread) {
  const prof_i_sqlite_writer *const w = run->state;
  return (int64_t)(w->before.threads + thread) + 1;
}

/* ---- events ---- */

static int put_scope(prof_i_export *run, const prof_i_export_event *event) {
  prof_i_sqlite_writer *const w = run->state;
  const prof_event *const e = event->event;
  const uint32_t name = event->is_left_out ? 0 : name_of(run, event);
  const bool is_open = e->kind == PROF_EVENT_OPEN;
  const uint64_t id = event->is_left_out ? 0 : ++w->scope_id;
  if (!prof_i_work_links_scope(&w->links, e, id))
    return prof_i_sqlite_fail_no_memory(run->sink->target.path);
  if (event->is_left_out) return PROF_OK;
  if (!name) return prof_i_sqlite_fail_no_memory(run->sink->target.path);
  prof_i_insert_put(w->inserts.scopes, (int64_t)id);
  prof_i_insert_put(w->inserts.scopes, thread_number(run, run->thread));
  prof_i_insert_put_u64(w->inserts.scopes, w->before.names + name);
  prof_i_insert_put_u64(w->inserts.scopes, prof_i_export_ns(run, event->start_ns));
  prof_i_insert_put_u64(w->inserts.scopes, event->end_ns - event->start_ns);
  prof_i_insert_put_u64(w->inserts.scopes, e->self_ns);
  prof_i_insert_put(w->inserts.scopes, e->depth);
  prof_i_insert_put(w->inserts.scopes, e->flags | (is_open ? PROF_I_SQLITE_UNFINISHED : 0));
  put_args(w, w->inserts.scopes);
  prof_i_insert_row(w->inserts.scopes);
  w->counts.scopes += !is_open;
  w->counts.unfinished += is_open;
  return prof_i_sqlite_writer_status(w);
}

/* Work of a device, in its stream. */
static int put_kernel(prof_i_export *run, const prof_i_export_event *event) {
  prof_i_sqlite_writer *const w = run->state;
  const prof_event *const e = event->event;
  const uint32_t name = event->is_left_out ? 0 : name_of(run, event);
  const bool is_open = e->kind == PROF_EVENT_OPEN;
  if (event->is_left_out) return PROF_OK;
  if (!name) return prof_i_sqlite_fail_no_memory(run->sink->target.path);
  const uint64_t id = ++w->kernel_id;
  prof_i_work_links_work(&w->links, e, id);
  prof_i_insert_put(w->inserts.kernels, (int64_t)id);
  prof_i_insert_put(w->inserts.kernels, thread_number(run, run->thread));
  prof_i_insert_put_u64(w->inserts.kernels, w->before.names + name);
  prof_i_insert_put_u64(w->inserts.kernels, prof_i_export_ns(run, event->start_ns));
  prof_i_insert_put_u64(w->inserts.kernels, event->end_ns - event->start_ns);
  prof_i_insert_put(w->inserts.kernels, e->launch.record);
  prof_i_insert_put(w->inserts.kernels, e->flags | (is_open ? PROF_I_SQLITE_UNFINISHED : 0));
  if (e->launch.thread < run->info.thread_count)
    prof_i_insert_put(w->inserts.kernels, thread_number(run, e->launch.thread));
  else
    prof_i_insert_put_null(w->inserts.kernels);
  prof_i_insert_put_u64(w->inserts.kernels, prof_i_export_ns(run, e->launch.start_ns));
  put_args(w, w->inserts.kernels);
  prof_i_insert_row(w->inserts.kernels);
  w->counts.scopes += !is_open;
  w->counts.unfinished += is_open;
  return prof_i_sqlite_writer_status(w);
}

static int put_step(prof_i_export *run, const prof_i_export_event *event) {
  prof_i_sqlite_writer *const w = run->state;
  if (event->is_left_out) return PROF_OK;
  prof_i_insert_put(w->inserts.steps, thread_number(run, run->thread));
  prof_i_insert_put_u64(w->inserts.steps, event->event->id);
  prof_i_insert_put_u64(w->inserts.steps, prof_i_export_ns(run, event->start_ns));
  prof_i_insert_put_u64(w->inserts.steps, event->end_ns - event->start_ns);
  prof_i_insert_row(w->inserts.steps);
  w->counts.steps++;
  return prof_i_sqlite_writer_status(w);
}

static int put_instant(prof_i_export *run, const prof_i_export_event *event) {
  prof_i_sqlite_writer *const w = run->state;
  const uint32_t name = name_of(run, event);
  if (!name) return prof_i_sqlite_fail_no_memory(run->sink->target.path);
  prof_i_insert_put(w->inserts.instants, thread_number(run, run->thread));
  prof_i_insert_put_u64(w->inserts.instants, w->before.names + name);
  prof_i_insert_put_u64(w->inserts.instants, prof_i_export_ns(run, event->start_ns));
  put_args(w, w->inserts.instants);
  prof_i_insert_row(w->inserts.instants);
  w->counts.instants++;
  return prof_i_sqlite_writer_status(w);
}

static const char *verb_name(uint32_t verb) {
  switch ((prof_memory_verb)verb) {
    case PROF_MEMORY_ALLOC:
      return "alloc";
    case PROF_MEMORY_FREE:
      return "free";
    case PROF_MEMORY_RESERVE:
      return "reserve";
    case PROF_MEMORY_RELEASE:
      return "release";
    case PROF_MEMORY_COLLECT:
      return "collect";
    case PROF_MEMORY_OOM:
      return "oom";
    case PROF_MEMORY_SAMPLE:
      return "sample";
    case PROF_MEMORY_WRONG:
      return "wrong";
  }
  return "unknown";
}

static int put_memory(prof_i_export *run, const prof_i_export_event *event) {
  prof_i_sqlite_writer *const w = run->state;
  const prof_event_memory *const memory = &event->event->memory;
  if (!run->options->with_memory) return PROF_OK;
  prof_i_insert_put(w->inserts.memory, thread_number(run, run->thread));
  prof_i_insert_put_u64(w->inserts.memory, w->before.pools + memory->pool);
  prof_i_insert_put_u64(w->inserts.memory, prof_i_export_ns(run, event->start_ns));
  prof_i_insert_put_text(w->inserts.memory, prof_i_text_from(verb_name(memory->verb)));
  prof_i_insert_put_u64(w->inserts.memory, memory->address);
  prof_i_insert_put_u64(w->inserts.memory, memory->bytes);
  prof_i_insert_put_u64(w->inserts.memory, memory->requested_bytes);
  prof_i_insert_put(w->inserts.memory, memory->used_bytes);
  if (memory->allocated_bytes >= 0)
    prof_i_insert_put(w->inserts.memory, memory->allocated_bytes);
  else
    prof_i_insert_put_null(w->inserts.memory);
  put_optional(w, w->inserts.memory,
               (prof_i_text){memory->tag, memory->tag ? memory->tag_bytes : 0});
  prof_i_insert_row(w->inserts.memory);
  return prof_i_sqlite_writer_status(w);
}

static int sqlite_event(prof_i_export *run, prof_i_export_event *event) {
  if (event->phase == PROF_I_PHASE_END) return PROF_OK;
  switch ((prof_event_kind)event->event->kind) {
    case PROF_EVENT_SCOPE:
    case PROF_EVENT_OPEN:
      return event->event->flags & PROF_EVENT_ON_DEVICE ? put_kernel(run, event)
                                                        : put_scope(run, event);
    case PROF_EVENT_STEP:
      return put_step(run, event);
    case PROF_EVENT_INSTANT:
      return put_instant(run, event);
    case PROF_EVENT_MEMORY:
      return put_memory(run, event);
    case PROF_EVENT_COUNTER:
    case PROF_EVENT_FLOW_BEGIN:
    case PROF_EVENT_FLOW_END:
      return PROF_OK;
  }
  return PROF_OK;
}

static int sqlite_counter(prof_i_export *run, prof_i_export_event *event) {
  prof_i_sqlite_writer *const w = run->state;
  if (!isfinite(event->event->value)) {
    run->findings->counts[PROF_I_FINDING_NOT_FINITE]++;
    return PROF_OK;
  }
  const uint32_t name = name_of(run, event);
  prof_i_insert_put(w->inserts.counters, thread_number(run, run->thread));
  if (!name || !prof_i_sqlite_put_device(run, w->inserts.counters, event->event->device))
    return prof_i_sqlite_fail_no_memory(run->sink->target.path);
  prof_i_insert_put_u64(w->inserts.counters, w->before.names + name);
  prof_i_insert_put_u64(w->inserts.counters, prof_i_export_ns(run, event->start_ns));
  prof_i_insert_put_double(w->inserts.counters, event->event->value);
  prof_i_insert_row(w->inserts.counters);
  w->counts.counters++;
  return prof_i_sqlite_writer_status(w);
}

/* Arrows of several captures may have one number. */
static uint64_t arrow_number(const prof_i_export *run, uint64_t number) {
  enum { CAPTURE_SHIFT = 52 };
  return run->options->place ? number ^ (uint64_t)run->options->place->number << CAPTURE_SHIFT
                             : number;
}

static int sqlite_flow(prof_i_export *run, prof_i_export_event *event) {
  prof_i_sqlite_writer *const w = run->state;
  const uint32_t name = name_of(run, event);
  if (!name) return prof_i_sqlite_fail_no_memory(run->sink->target.path);
  prof_i_insert_put(w->inserts.arrow_ends, thread_number(run, run->thread));
  prof_i_insert_put_u64(w->inserts.arrow_ends, w->before.names + name);
  prof_i_insert_put_u64(w->inserts.arrow_ends, prof_i_export_ns(run, event->start_ns));
  prof_i_insert_put_u64(w->inserts.arrow_ends, arrow_number(run, event->event->id));
  prof_i_insert_put(w->inserts.arrow_ends, event->event->kind == PROF_EVENT_FLOW_END);
  prof_i_insert_row(w->inserts.arrow_ends);
  w->counts.flow_ends++;
  return prof_i_sqlite_writer_status(w);
}

static int sqlite_thread(prof_i_export *run, const prof_trace_thread *thread) {
  prof_i_sqlite_writer *const w = run->state;
  const prof_i_tids *const ids = &run->tids[run->thread];
  prof_i_work_links_thread(&w->links, run->thread);
  prof_i_insert_put(w->inserts.threads, thread_number(run, run->thread));
  prof_i_insert_put_u64(w->inserts.threads, ids->is_elsewhere ? ids->pid : run->info.pid);
  prof_i_insert_put_u64(w->inserts.threads, thread->is_stream ? thread->stream : thread->tid);
  prof_i_sqlite_put_clean(w, w->inserts.threads, prof_i_text_from(thread->name));
  const prof_device host = {.type = PROF_DEVICE_CPU};
  if (!prof_i_sqlite_put_device(run, w->inserts.threads, thread->is_stream ? thread->device : host))
    return prof_i_sqlite_fail_no_memory(run->sink->target.path);
  prof_i_insert_put_u64(w->inserts.threads, ids->pid);
  prof_i_insert_put_u64(w->inserts.threads, ids->first);
  prof_i_insert_row(w->inserts.threads);
  return prof_i_sqlite_writer_status(w);
}

const prof_i_exporter prof_i_sqlite_exporter = {
    .name = "sqlite",
    .format = PROF_FORMAT_SQLITE,
    .suffixes = {".db"},
    .abilities = PROF_I_EXPORT_CUT | PROF_I_EXPORT_NO_MEMORY | PROF_I_EXPORT_MERGED,
    .order = PROF_I_ORDER_TIME,
    .event_kinds = PROF_I_KIND(SCOPE) | PROF_I_KIND(OPEN) | PROF_I_KIND(STEP) |
                   PROF_I_KIND(INSTANT) | PROF_I_KIND(MEMORY),
    .takes_left_out = true,
    .has_self_times = true,
    .state_bytes = sizeof(prof_i_sqlite_writer),
    .shared_bytes = sizeof(prof_i_sqlite_shared),
    .destroy_shared = prof_i_sqlite_export_destroy_shared,
    .begin = prof_i_sqlite_export_begin,
    .thread = sqlite_thread,
    .event = sqlite_event,
    .counter = sqlite_counter,
    .flow = sqlite_flow,
    .end = prof_i_sqlite_export_end,
    .destroy = prof_i_sqlite_export_destroy};
