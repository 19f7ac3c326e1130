/* Perfetto's protobuf: the exporter, and the packets of events. Tracks are in pftrace_track.c, args
   in pftrace_args.c. A plain scope is two packets of 11 to 14 bytes. Its name and its category are
   numbers that the sequence has had before. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../base/error.h"
#include "../reader/capture.h"
#include "../reader/catalog.h"
#include "pftrace.h"

/* ---- single instants ---- */

/* Packets that have whole times, not differences, because they are outside the order of a thread's
   events. First come changes of the level and the list of losses. A launch comes before its scope.
   Arrows between scopes come last. */

typedef struct open_event {
  size_t packet, event;
} open_event;

static open_event begin_instant(prof_i_export *run, uint64_t track, uint64_t ns, prof_i_text name,
                                const char *category) {
  prof_i_pftrace *const p = run->state;
  open_event open;
  prof_i_pf_begin_packet(p, PF_SEQUENCE_GLOBAL, &open.packet);
  prof_i_protobuf_number(&p->pb, PF_PACKET_TIMESTAMP, run->info.start_unix_ns + ns);
  open.event = prof_i_protobuf_begin(&p->pb, PF_PACKET_TRACK_EVENT);
  prof_i_protobuf_number(&p->pb, PF_EVENT_TYPE, PF_TYPE_INSTANT);
  prof_i_protobuf_number(&p->pb, PF_EVENT_TRACK, track);
  prof_i_protobuf_text(&p->pb, PF_EVENT_NAME, name.data, (size_t)name.bytes);
  prof_i_protobuf_text(&p->pb, PF_EVENT_CATEGORIES, category, strlen(category));
  return open;
}

static void end_instant(prof_i_export *run, open_event open) {
  prof_i_pftrace *const p = run->state;
  prof_i_protobuf_end(&p->pb, open.event);
  prof_i_pf_end_packet(run, open.packet);
}

/* An end of an arrow is an instant: it has the moment, and Perfetto draws it inside its scope. */
static void put_flows(prof_i_export *run) {
  prof_i_pftrace *const p = run->state;
  size_t outside, alone;
  prof_i_flows_match(&p->flows, &outside, &alone);
  run->findings->counts[PROF_I_FINDING_FLOW_ALONE] = alone;
  for (size_t i = 0; i < p->flows.count && run->sink->status == PROF_OK; i++) {
    const prof_i_flow *const flow = &p->flows.items[i], *const begin =
                                                            &p->flows.items[i & ~(size_t)1];
    const prof_i_text name = prof_i_text_or((prof_i_text){begin->name, begin->name_bytes}, "flow");
    const open_event open =
        begin_instant(run, prof_i_pf_lane_uuid(p, flow->tid, 0), flow->start_ns, name, "flow");
    if (!flow->is_end) prof_i_pf_put_number_arg(p, "flow id", flow->id);
    prof_i_protobuf_fixed64(&p->pb, flow->is_end ? PF_EVENT_LAST_FLOWS : PF_EVENT_FLOWS,
                            p->launch_count + 1 + i / 2);
    end_instant(run, open);
  }
}

/* Writes the begin of the arrow from the launch to its scope. Returns the arrow's number. */
static uint64_t put_launch(prof_i_export *run, const prof_event *event) {
  prof_i_pftrace *const p = run->state;
  const open_event open = begin_instant(run, prof_i_pf_lane_uuid(p, event->launch.thread, 0),
                                        event->launch.start_ns, prof_i_text_from("launch"), "ac2g");
  prof_i_protobuf_fixed64(&p->pb, PF_EVENT_FLOWS, ++p->launch_count);
  end_instant(run, open);
  return p->launch_count;
}

static void put_changes(prof_i_export *run) {
  prof_i_pftrace *const p = run->state;
  for (uint32_t i = 0; i < run->info.change_count && run->sink->status == PROF_OK; i++) {
    prof_trace_change change = {.size = sizeof change};
    char *text = NULL;
    if (prof_trace_change_get(run->trace, i, &change) != PROF_OK ||
        !prof_i_window_contains(&run->options->window, change.at_ns, change.at_ns))
      continue;
    const char *const name = change.kind == PROF_CHANGE_LEVEL   ? "prof: level changed"
                             : change.kind == PROF_CHANGE_MUTED ? "prof: site muted"
                                                                : "prof: site heard again";
    const open_event open =
        begin_instant(run, prof_i_pf_process_uuid(p), change.at_ns, prof_i_text_from(name), "prof");
    if (prof_trace_change_text(run->trace, i, &text) == PROF_OK && text)
      prof_i_pf_put_text_arg(p, "change", text, strlen(text));
    prof_free(text);
    end_instant(run, open);
  }
}

/* One instant where the time line begins. Its name says whether anything is missing. */
static void put_summary(prof_i_export *run) {
  prof_i_pftrace *const p = run->state;
  const prof_trace_info *const info = &run->info;
  uint64_t lost = 0;
  char name[64];
  for (int i = 0; i < PROF_LOSS_COUNT; i++)
    if (i != PROF_LOSS_CLEARED) lost += info->lost_count[i];
  if (lost || info->bad_count)
    snprintf(name, sizeof name, "prof: lost %llu, damaged %llu", (unsigned long long)lost,
             (unsigned long long)info->bad_count);
  else
    snprintf(name, sizeof name,
             info->open_count || info->open_below_count ? "prof: no loss, some unfinished"
                                                        : "prof: no loss");
  const open_event open =
      begin_instant(run, prof_i_pf_process_uuid(p), prof_i_window_begin_ns(&run->options->window),
                    prof_i_text_from(name), "prof");
  prof_i_pf_put_text_arg(p, "version", prof_version(), strlen(prof_version()));
  prof_i_pf_put_number_arg(p, "recorded", info->event_count - info->open_count);
  prof_i_pf_put_number_arg(p, "unfinished", info->open_count);
  prof_i_pf_put_number_arg(p, "unfinished below 64 others", info->open_below_count);
  prof_i_pf_put_number_arg(p, "skipped by jumps", info->skipped_count);
  prof_i_pf_put_number_arg(p, "ends that found no scope", info->stray_count);
  for (int i = 0; i < PROF_LOSS_COUNT; i++) {
    char key[64];
    if (info->lost_count[i] == 0) continue;
    snprintf(key, sizeof key, "lost: %s", prof_loss_name(i));
    prof_i_pf_put_number_arg(p, key, info->lost_count[i]);
  }
  for (uint32_t i = 0; i < info->note_count && i < 1000; i++) {
    char *text = NULL;
    char key[32];
    snprintf(key, sizeof key, "note %u", i + 1);
    if (prof_trace_note_text(run->trace, i, &text) == PROF_OK && text)
      prof_i_pf_put_text_arg(p, key, text, strlen(text));
    prof_free(text);
  }
  end_instant(run, open);
}

/* ---- flush marks ---- */

/* Perfetto's engine sorts all packets of a file before it imports the first. A flush mark lets it
   import what came before the previous mark, and free that memory. Packets after a mark must not be
   earlier than those before the previous mark. So only the last thread has marks, because the
   threads come one after the other. Arrows are written at the end, so no mark follows the first. */
static void put_flush(prof_i_export *run) {
  prof_i_pftrace *const p = run->state;
  size_t packet;
  prof_i_pf_begin_packet(p, PF_SEQUENCE_GLOBAL, &packet);
  prof_i_protobuf_number(&p->pb, PF_PACKET_TIMESTAMP, run->info.start_unix_ns + p->last_ns);
  const size_t event = prof_i_protobuf_begin(&p->pb, PF_PACKET_SERVICE_EVENT);
  prof_i_protobuf_number(&p->pb, PF_SERVICE_FLUSHED, 1);
  prof_i_protobuf_number(&p->pb, PF_SERVICE_BUFFERS_READ, 1);
  prof_i_protobuf_end(&p->pb, event);
  prof_i_pf_end_packet(run, packet);
  p->scopes_to_flush = p->flush_scopes;
}

/* At each mark the engine sorts again what it has of the other threads. So the more events these
   have, the fewer marks there are. Fewer marks take more memory. */
static int find_last_thread(prof_i_export *run) {
  enum { MARKS_PER_OTHERS = 32 };
  prof_i_pftrace *const p = run->state;
  p->last_thread = run->info.thread_count;
  for (uint32_t i = run->info.thread_count; i-- > 0;) {
    prof_trace_thread thread = {.size = sizeof thread};
    const int status = prof_trace_thread_get(run->trace, i, &thread);
    if (status != PROF_OK) return status;
    if (thread.event_count == 0) continue;
    p->last_thread = i;
    const uint64_t others = run->info.event_count - thread.event_count;
    p->flush_scopes = others / MARKS_PER_OTHERS;
    if (p->flush_scopes < PF_FLUSH_SCOPES) p->flush_scopes = PF_FLUSH_SCOPES;
    return PROF_OK;
  }
  return PROF_OK;
}

/* Kernels come after their launches, which are earlier packets. In a file of several captures, the
   next one begins at any time. */
static int pftrace_thread(prof_i_export *run, const prof_trace_thread *thread) {
  prof_i_pftrace *const p = run->state;
  const bool has_marks =
      run->thread == p->last_thread && !thread->is_stream && !run->options->place;
  p->scopes_to_flush = has_marks && p->flows.count == 0 ? p->flush_scopes : PF_NO_FLUSH;
  return prof_i_pf_put_thread_begin(run, thread);
}

/* ---- plain scopes ---- */

/* The fast path. Of a packet all but its time is the same for a thread and a call site: two copies
   and one number. The bytes are those that put_scope() writes. The driver calls this between the
   other events. */

enum {
  HEAD_ROOM = 16,   /* copied whole; the used part is shorter */
  PACKET_ROOM = 64, /* head, a number of at most 10 bytes, TrackEvent */
  ID_BYTES_MAX = 5,
  SHORT_BITS = 14 /* of a number that put_short() takes: below 16 us */
};

/* What a packet of this thread has before the time. */
typedef struct packet_head {
  char bytes[HEAD_ROOM];
  uint32_t count;
} packet_head;

enum { END_EVENT_BYTES = 4 };
static const char plain_end[END_EVENT_BYTES] = {PF_PACKET_TRACK_EVENT << 3 | PROF_I_WIRE_BYTES, 2,
                                                PF_EVENT_TYPE << 3, PF_TYPE_END};

static char *put_varint(char *to, uint64_t value) {
  for (; value >= 0x80; value >>= 7) *to++ = (char)(value | 0x80);
  *to++ = (char)value;
  return to;
}

/* The same below 2^14 without a branch. Writes 2 bytes, as a little-endian word. */
static inline char *put_short(char *to, uint32_t value) {
  const uint32_t has_more = value >= 0x80;
  /* Bits 7 to 13 move to the second byte. */
  const uint16_t bytes = (uint16_t)(value + (value & 0x3f80) + (has_more << 7));
  memcpy(to, &bytes, sizeof bytes);
  return to + 1 + has_more;
}

/* Of a site that has its number. */
static void set_plain_event(prof_i_pf_site *site) {
  _Static_assert(PF_PLAIN_EVENT_ROOM >= 2 + 2 + 2 * (1 + ID_BYTES_MAX), "whole event");
  char *const event = (char *)site->event, *to = event;
  *to++ = PF_PACKET_TRACK_EVENT << 3 | PROF_I_WIRE_BYTES;
  to++; /* the length */
  *to++ = PF_EVENT_TYPE << 3;
  *to++ = PF_TYPE_BEGIN;
  *to++ = PF_EVENT_NAME_IID << 3;
  to = put_varint(to, site->iid);
  *to++ = PF_EVENT_CATEGORY_IIDS << 3;
  to = put_varint(to, site->iid);
  event[1] = (char)(to - event - 2);
  site->event_bytes = (uint64_t)(to - event);
}

/* sequence: of the thread in the file. */
static packet_head make_head(uint32_t sequence) {
  packet_head head = {{PF_TRACE_PACKET << 3 | PROF_I_WIRE_BYTES, 0, PF_PACKET_SEQUENCE << 3}, 0};
  char *to = put_varint(head.bytes + 3, sequence);
  *to++ = PF_PACKET_TIMESTAMP << 3;
  head.count = (uint32_t)(to - head.bytes);
  return head;
}

/* Writes packets of one thread. A local variable of pftrace_plain(), so that its members stay in
   registers: after a store of bytes, all that a pointer leads to is read again. */
typedef struct packet_writer {
  prof_i_sink *sink;
  char *to, *end; /* where the next packet goes; of what may be written */
  packet_head head;
  uint64_t last_ns;
} packet_writer;

static inline packet_writer begin_packets(const prof_i_export *run) {
  const prof_i_pftrace *const p = run->state;
  return (packet_writer){.sink = run->sink,
                         .to = run->sink->next,
                         .end = run->sink->end,
                         .head = make_head(p->sequence_base + PF_SEQUENCE_FIRST + run->thread),
                         .last_ns = p->last_ns};
}

/* Makes room for so many packets. */
static inline void make_packet_room(packet_writer *w, int packets) {
  if (__builtin_expect(w->end - w->to >= packets * PACKET_ROOM, 1)) return;
  prof_i_sink_advance(w->sink, w->to);
  w->to = prof_i_sink_reserve(w->sink, (size_t)packets * PACKET_ROOM);
  w->end = w->sink->end;
}

/* There is room. event: `room` bytes, of which event_bytes are used. */
static inline void put_packet(packet_writer *w, uint64_t ns, const void *event, size_t room,
                              uint64_t event_bytes) {
  const uint64_t passed_ns = ns - w->last_ns;
  char *const packet = w->to, *to = packet + w->head.count;
  memcpy(packet, w->head.bytes, HEAD_ROOM);
  to = __builtin_expect(passed_ns < 1u << SHORT_BITS, 1) ? put_short(to, (uint32_t)passed_ns)
                                                         : put_varint(to, passed_ns);
  memcpy(to, event, room);
  to += event_bytes;
  packet[1] = (char)(to - packet - 2);
  w->to = to;
  w->last_ns = ns;
}

/* The ends of scopes that ended until then. False: the last open one is not plain, or its end goes
   back in time. */
static inline bool put_ends(packet_writer *w, uint64_t until_ns, const prof_i_pending_end *items,
                            uint32_t *count) {
  while (*count > 0) {
    const prof_i_pending_end *const scope = &items[*count - 1];
    const uint64_t end_ns = scope->end_ns;
    if (end_ns > until_ns) return true;
    if (scope->lane > 0 || end_ns < w->last_ns) return false;
    make_packet_room(w, 1);
    put_packet(w, end_ns, plain_end, END_EVENT_BYTES, END_EVENT_BYTES);
    --*count;
  }
  return true;
}

static size_t pftrace_plain(prof_i_export *run, prof_i_pending_ends *open, const prof_i_span *spans,
                            size_t count) {
  prof_i_pftrace *const p = run->state;
  const prof_i_pf_site *const sites = p->sites;
  const uint32_t site_count = p->site_count, generation = p->generation;
  const prof_i_window window = run->options->window;
  const bool has_window = window.from_ns || window.to_ns;
  prof_i_pending_end *const items = open->items;
  const uint32_t room = open->room;
  uint32_t open_count = open->count;
  uint64_t scopes_to_flush = p->scopes_to_flush;
  packet_writer w = begin_packets(run);
  size_t left = count;
  for (; left > 0; left--) {
    const prof_i_span *const span = &spans[left - 1];
    const uint64_t start_ns = span->start_ns, end_ns = start_ns + span->duration_ns;
    if (has_window && !prof_i_window_contains(&window, start_ns, end_ns)) continue;
    if (span->kind != PROF_EVENT_SCOPE || span->lane || span->record || span->site >= site_count)
      break;
    const prof_i_pf_site *const site = &sites[span->site];
    if (site->generation != generation || open_count == room ||
        !put_ends(&w, start_ns, items, &open_count) || start_ns < w.last_ns ||
        (open_count > 0 && items[open_count - 1].end_ns < end_ns))
      break;
    if (__builtin_expect(scopes_to_flush-- == 0, 0)) {
      p->last_ns = w.last_ns;
      prof_i_sink_advance(run->sink, w.to);
      put_flush(run);
      scopes_to_flush = p->scopes_to_flush - 1;
      w = begin_packets(run);
    }
    make_packet_room(&w, 2);
    put_packet(&w, start_ns, site->event, PF_PLAIN_EVENT_ROOM, site->event_bytes);
    /* A leaf ends before the next scope begins. */
    if (left > 1 && span[-1].start_ns >= end_ns)
      put_packet(&w, end_ns, plain_end, END_EVENT_BYTES, END_EVENT_BYTES);
    else
      items[open_count++] = (prof_i_pending_end){.start_ns = start_ns, .end_ns = end_ns};
  }
  open->count = open_count;
  p->scopes_to_flush = scopes_to_flush;
  p->last_ns = w.last_ns;
  prof_i_sink_advance(run->sink, w.to);
  return count - left;
}

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
  set_plain_event(place);
  put_interned(p, PF_INTERNED_NAMES, place->iid, prof_i_text_or(site->name, "(unnamed)"));
  put_interned(p, PF_INTERNED_CATEGORIES, place->iid, prof_i_text_or(site->category, "scope"));
  return place->iid;
}

/* A name of the call and not of its site is written as it is. */
static void put_names(prof_i_export *run, const prof_i_export_event *event) {
  prof_i_pftrace *const p = run->state;
  const prof_event *const e = event->event;
  const prof_i_site_info *const site =
      e->site < p->site_count ? prof_i_trace_site(run->trace, e->site) : NULL;
  const bool has_name = site && prof_i_text_is_same(site->name, e->name, e->name_bytes),
             has_category =
                 site && prof_i_text_is_same(site->category, e->category, e->category_bytes);
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

static int put_scope(prof_i_export *run, prof_i_export_event *event) {
  prof_i_pftrace *const p = run->state;
  if (event->lane >= p->lanes_named) prof_i_pf_name_lanes(run, event->lane);
  const uint64_t track = event->lane ? prof_i_pf_lane_uuid(p, run->thread, event->lane) : 0;
  const bool is_begin = event->phase == PROF_I_PHASE_BEGIN;
  if (is_begin && p->scopes_to_flush-- == 0) {
    put_flush(run);
    p->scopes_to_flush--;
  }
  const uint64_t launch = is_begin && event->has_launch ? put_launch(run, event->event) : 0;
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
  const bool is_piece =
      is_oom || memory->verb == PROF_MEMORY_ALLOC || memory->verb == PROF_MEMORY_FREE;
  if (is_piece && !event->is_left_out) {
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
  put_changes(run);
  put_summary(run);
  return find_last_thread(run);
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
  p->scopes_to_flush = PF_NO_FLUSH;
  if (!prof_i_flows_add(&p->flows, &flow)) run->findings->counts[PROF_I_FINDING_FLOW_TOO_MANY]++;
  return PROF_OK;
}

static int pftrace_end(prof_i_export *run) {
  const prof_i_pftrace *const p = run->state;
  put_flows(run);
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
    .abilities = PROF_I_EXPORT_CUT | PROF_I_EXPORT_NO_MEMORY | PROF_I_EXPORT_MERGED,
    .order = PROF_I_ORDER_TIME,
    .event_kinds = PROF_I_KIND(SCOPE) | PROF_I_KIND(OPEN) | PROF_I_KIND(STEP) |
                   PROF_I_KIND(INSTANT) | PROF_I_KIND(MEMORY),
    .takes_left_out_memory = true,
    .state_bytes = sizeof(prof_i_pftrace),
    .begin = pftrace_begin,
    .thread = pftrace_thread,
    .event = pftrace_event,
    .counter = pftrace_counter,
    .flow = pftrace_flow,
    .plain_by_time = pftrace_plain,
    .end = pftrace_end,
    .destroy = pftrace_destroy};
