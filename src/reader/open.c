/* Makes a trace of bytes, and fills prof_trace_info. Each part needs the ones before it: header,
   catalog, clock, records, threads. */
#include <prof/profiler.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/error.h"
#include "../base/options.h"
#include "../base/port.h"
#include "../base/process.h"
#include "../format/parse.h"
#include "../format/state.h"
#include "internal.h"
#include "source.h"

prof_trace *prof_i_trace_share(const prof_trace *trace) {
  prof_trace *const shared = (prof_trace *)trace; /* no trace is made as a constant */
  __atomic_fetch_add(&shared->use_count, 1, __ATOMIC_RELAXED);
  return shared;
}

/* Drops a use. True: neither the caller nor a view has the trace any more. */
static bool is_last_use(prof_trace *trace) {
  return __atomic_fetch_sub(&trace->use_count, 1, __ATOMIC_ACQ_REL) == 0;
}

void prof_i_trace_destroy(prof_trace *trace) {
  if (!trace || !is_last_use(trace)) return;
  if (trace->view) {
    prof_trace *const of = trace->view_of;
    prof_i_view_destroy(trace->view);
    free(trace);
    if (!is_last_use(of)) return;
    trace = of; /* a view is of no view */
  }
  prof_i_catalog_fini(&trace->catalog);
  prof_i_timeline_fini(&trace->timeline);
  prof_i_source_fini(&trace->source);
  free(trace->segments);
  free(trace->thread_refs);
  free(trace->threads);
  free(trace->opens);
  free(trace->claims);
  free(trace);
}

/* Meta extents first, because records are checked against their sites and schemas. */
static int read_catalog(prof_trace *trace) {
  prof_i_extent extent;
  int status = prof_i_catalog_init(&trace->catalog);
  for (uint64_t at = 0;
       !status && prof_i_extent_next(&trace->source, &at, &extent, &trace->bad_count);)
    if (extent.head->kind == PROF_I_EXTENT_META) status = prof_i_catalog_read(trace, &extent);
  prof_i_catalog_finish(&trace->catalog);
  return status;
}

/* When a live capture was read or copied, or its process was last alive; zeros: unknown. Open
   scopes extend up to then. */
static prof_i_clock_reading source_opened_at(const prof_trace *trace) {
  const prof_i_header *const header = &trace->header;
  const prof_i_clock_reading copied = {header->copied_ticks, 0, header->copied_ns},
                             seen = {.monotonic_ns = header->seen_ns}, none = {.monotonic_ns = 0};
  const bool is_live = trace->source.is_live && !trace->source.is_elsewhere;
  const prof_i_clock_reading at = header->state == PROF_I_STATE_COPIED ? copied
                                  : header->state == PROF_I_STATE_RECORDING && is_live
                                      ? trace->source.opened
                                  : header->state == PROF_I_STATE_RECORDING ? seen
                                                                            : none;
  if (header->level == 0 || at.monotonic_ns < header->start_monotonic_ns) return none;
  return at;
}

/* Adds the reading as a pair of the last segment, so that later times have the same accuracy. Not
   if the counter has jumped, or seems to have. */
static int add_clock_pair(prof_trace *trace, const prof_i_clock_reading *at) {
  static const double slack_ns = 20e6, slack = 0.02;
  prof_i_catalog *const catalog = &trace->catalog;
  const prof_i_header *const header = &trace->header;
  const prof_i_time_pair *last = NULL;
  for (uint32_t i = 0; i < catalog->pair_count; i++)
    if (!last || catalog->pairs[i].ns > last->ns) last = &catalog->pairs[i];
  if (!last || !at->ticks || !header->ticks_hz) return 0;
  const uint64_t ns = at->monotonic_ns - header->start_monotonic_ns;
  const int64_t ticks = prof_i_ticks_since(at->ticks << 4, header->start_ticks);
  const double ticks_per_ns = (double)header->ticks_hz / 1e9,
               passed_ns = (double)ns - (double)last->ns;
  const double off_ns = (double)(ticks - (int64_t)last->ticks) / ticks_per_ns - passed_ns;
  const double most_ns = slack_ns + slack * passed_ns;
  if (passed_ns <= 0 || ticks <= (int64_t)last->ticks || off_ns > most_ns || off_ns < -most_ns)
    return 0;
  const uint64_t width_ns = (uint64_t)((double)at->width_ticks / ticks_per_ns) + 1,
                 segment = last->segment;
  if (!prof_i_make_room((void **)&catalog->pairs, &catalog->pair_room, catalog->pair_count,
                        sizeof *catalog->pairs))
    return PROF_E_NO_MEMORY;
  catalog->pairs[catalog->pair_count++] =
      (prof_i_time_pair){(uint64_t)ticks, ns, width_ns, segment};
  return 0;
}

/* The start in the header is the first pair. */
static int read_clock_pairs(prof_trace *trace) {
  prof_i_catalog *const catalog = &trace->catalog;
  const prof_i_clock_reading opened = source_opened_at(trace);
  int status = add_clock_pair(trace, &opened);
  if (!status) status = prof_i_clock_epochs_find(trace);
  if (status) return status;
  if (!prof_i_make_room((void **)&catalog->pairs, &catalog->pair_room, catalog->pair_count,
                        sizeof *catalog->pairs))
    return PROF_E_NO_MEMORY;
  catalog->pairs[catalog->pair_count++] = (prof_i_time_pair){0, 0, 0, UINT64_MAX};
  status = prof_i_timeline_init(&trace->timeline, catalog->pairs, catalog->pair_count,
                                trace->header.ticks_hz, &trace->bad_count);
  if (status) return status;
  trace->opened_ns =
      opened.monotonic_ns ? opened.monotonic_ns - trace->header.start_monotonic_ns : 0;
  for (uint32_t i = 0; i < catalog->pair_count; i++)
    if (catalog->pairs[i].ticks > trace->last && catalog->pairs[i].ns != trace->opened_ns)
      trace->last = catalog->pairs[i].ticks;
  return 0;
}

static void set_clear_floor(prof_trace *trace) {
  if (!trace->header.clear_ticks) return;
  const int64_t cleared =
      prof_i_ticks_since(trace->header.clear_ticks << 4, trace->header.start_ticks);
  const uint32_t epoch = prof_i_clock_epoch_of(trace, cleared);
  trace->floor = cleared + trace->clock_epochs[epoch].shift >= 0
                     ? prof_i_clock_epoch_ticks(trace, epoch, cleared) + 1
                     : 0;
}

static int read_records(prof_trace *trace) {
  prof_i_extent extent;
  uint64_t counted = 0; /* damaged extents were counted by the catalog */
  int status = 0;
  for (uint64_t at = 0; !status && prof_i_extent_next(&trace->source, &at, &extent, &counted);) {
    if (extent.head->kind == PROF_I_EXTENT_SLOT) status = prof_i_scan_slot(trace, &extent);
    if (extent.head->kind == PROF_I_EXTENT_CHUNK)
      status = prof_i_scan_chunk(trace, &extent, extent.head->owner);
  }
  return status;
}

/* A ring with a time bound shows only its last ns. */
static void set_ring_floor(prof_trace *trace) {
  if (trace->header.policy != PROF_POLICY_RING || !trace->header.ring_ns) return;
  const prof_i_time_line *line = trace->timeline.lines;
  const uint64_t last_ns = prof_i_timeline_ns(&trace->timeline, &line, trace->last);
  if (last_ns <= trace->header.ring_ns) return;
  const uint64_t floor =
      prof_i_timeline_ticks_at(&trace->timeline, last_ns - trace->header.ring_ns);
  if (floor <= trace->floor) return;
  trace->floor = floor;
  prof_i_scan_recount(trace);
}

/* A live capture ends when it is read. The ring's floor is set before, because otherwise a ring
   without new events would soon be empty. */
static void set_end_ticks(prof_trace *trace) {
  if (!trace->opened_ns) return;
  const uint64_t end = prof_i_timeline_ticks_at(&trace->timeline, trace->opened_ns);
  if (end > trace->last) trace->last = end;
}

/* Only this shows that a capture is cut off between two extents. A copy of a live one may end
   before new extents. */
static void check_end_ticks(prof_trace *trace) {
  const uint64_t count = trace->source.count;
  if (count < PROF_I_FIRST_UNIT_OFFSET ||
      (!trace->source.is_live && count < trace->header.made_bytes))
    trace->bad_count++;
}

static int ticks_compare(const void *a, const void *b) {
  const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

/* The cost of events, by the measured costs. In floating point, because a file may have any
   numbers. */
static uint64_t recording_cost_ns(const prof_trace *trace, uint64_t event_count,
                                  const uint64_t *lost) {
  const double left_out =
      (double)lost[PROF_LOSS_MUTED] + (double)lost[PROF_LOSS_FULL] + (double)lost[PROF_LOSS_DISK];
  double events = (double)event_count - left_out;
  for (int i = 0; i < PROF_I_LOSS_WORDS; i++) events += (double)lost[i];
  const double ps = events * (double)trace->header.scope_cost_ps +
                    left_out * (double)trace->header.left_out_cost_ps;
  return ps < 1e21 ? (uint64_t)(ps / 1e3) : 0;
}

/* Adds up what the parts have found. */
static void sum_trace(prof_trace *trace) {
  for (int i = 0; i < PROF_I_LOSS_WORDS; i++) trace->lost[i] += trace->header.unattributed[i];
  trace->stray_count += trace->header.stray_count;
  for (uint32_t i = 0; i < trace->segment_count; i++) {
    const prof_i_segment *const segment = &trace->segments[i];
    trace->lost[PROF_LOSS_UNFINISHED] += segment->unfinished_count;
    trace->lost[PROF_LOSS_CLEARED] += segment->cleared_count;
    trace->lost[PROF_LOSS_OVERWRITTEN] += segment->passed_count;
    trace->event_count += segment->event_count;
    trace->scope_count += segment->scope_count;
    trace->skipped_count += segment->skipped_count;
  }
  trace->lost[PROF_LOSS_UNFINISHED] -= trace->open_claim_count;
  trace->event_count += trace->open_count;
  for (uint32_t i = 0; i < trace->thread_count; i++) {
    prof_i_trace_thread *const thread = &trace->threads[i];
    const uint64_t events = thread->event_count - thread->side_written_count;
    thread->own_ns += recording_cost_ns(trace, events, thread->lost);
    if (events < PROF_I_OWN_TIME_FIRST_EVENTS) trace->few_count += events;
  }
  trace->own_ns += recording_cost_ns(trace, trace->event_count, trace->lost);
  prof_i_catalog *const catalog = &trace->catalog;
  if (catalog->mark_count)
    qsort(catalog->marks, catalog->mark_count, sizeof *catalog->marks, ticks_compare);
  if (catalog->function_end_count)
    qsort(catalog->function_ends, catalog->function_end_count, sizeof *catalog->function_ends,
          ticks_compare);
}

static int fill_trace(prof_trace *trace) {
  int status = prof_i_header_check(trace);
  if (!status) status = read_catalog(trace);
  if (!status) status = read_clock_pairs(trace);
  if (!status) status = prof_i_changes_sort(trace);
  if (status) return status;
  trace->is_settled = !trace->source.is_live || trace->header.state == PROF_I_STATE_STOPPED;
  set_clear_floor(trace);
  status = read_records(trace);
  if (status) return status;
  set_ring_floor(trace);
  set_end_ticks(trace);
  status = prof_i_index_threads(trace);
  if (!status) status = prof_i_index_open(trace);
  if (status) return status;
  sum_trace(trace);
  check_end_ticks(trace);
  free(trace->thread_refs);
  trace->thread_refs = NULL;
  for (uint32_t i = 0; i < trace->source.run_count; i++)
    prof_i_source_release_pages(&trace->source, trace->source.bytes + trace->source.runs[i].offset,
                                trace->source.runs[i].bytes);
  return 0;
}

int prof_i_trace_make(prof_i_source *source, prof_trace **trace_out) {
  prof_trace *const trace = calloc(1, sizeof *trace);
  if (!trace) {
    prof_i_source_fini(source);
    return prof_i_fail(PROF_E_NO_MEMORY, "no memory for a trace");
  }
  trace->source = *source;
  int status = prof_i_source_unpack(&trace->source, &trace->bad_count);
  if (status == PROF_OK) {
    status = fill_trace(trace);
    if (status == PROF_E_NO_MEMORY)
      prof_i_fail(status, "no memory for the index of a capture of %llu bytes",
                  (unsigned long long)trace->source.count);
  }
  if (status) {
    prof_i_trace_destroy(trace);
    return status;
  }
  *trace_out = trace;
  return PROF_OK;
}

/* ---- the public face ---- */

int prof_trace_open_bytes(const void *bytes, size_t count, prof_trace **trace_out) {
  PROF_I_DEFAULT_FP;
  PROF_I_REFUSE_INTERRUPTED(PROF_E_BUSY);
  PROF_I_INSIDE;
  if (!bytes || !trace_out)
    return prof_i_fail(PROF_E_INVALID, "prof_trace_open_bytes: %s is NULL",
                       bytes ? "trace_out" : "bytes");
  prof_i_source source;
  const int status = prof_i_source_bytes(&source, bytes, count);
  return status ? status : prof_i_trace_make(&source, trace_out);
}

void prof_trace_destroy(prof_trace *trace) {
  PROF_I_REFUSE_INTERRUPTED();
  PROF_I_INSIDE;
  prof_i_trace_destroy(trace);
}

/* From the start to the last known time. */
static uint64_t duration_ns(const prof_trace *trace) {
  const prof_i_time_line *line = trace->timeline.lines;
  return prof_i_timeline_ns(&trace->timeline, &line, trace->last);
}

/* The most that threads without a window may have taken beyond warm scopes. */
static uint64_t few_scopes_cost_ns(const prof_trace *trace) {
  const uint64_t few = trace->few_count, gone = trace->lost[PROF_LOSS_OVERWRITTEN];
  const uint64_t all = trace->event_count + gone + trace->lost[PROF_LOSS_CLEARED];
  return all > few ? prof_i_own_time_few_most_ns(trace->in_place_ns, few, all - few) : 0;
}

/* Includes the time of streams and of exited threads. */
static void put_cost_text(const prof_trace *trace, prof_trace_info *info) {
  const uint64_t seen = trace->header.thread_count, time_ns = info->duration_ns;
  const uint64_t threads = seen > trace->thread_count ? seen : trace->thread_count;
  const uint64_t most_ns =
      trace->wait_ns + few_scopes_cost_ns(trace) +
      prof_i_own_time_most_ns(trace->own_ns, trace->in_place_ns, trace->spread_us2);
  info->own_ns = prof_i_own_time_bound(trace->own_ns, time_ns, threads);
  info->own_least_ns = prof_i_own_time_bound(trace->own_ns - trace->in_place_ns, time_ns, threads);
  info->own_most_ns = prof_i_own_time_bound(most_ns, time_ns, threads);
}

static void fill_info(const prof_trace *trace, prof_trace_info *info) {
  const prof_i_header *const header = &trace->header;
  memset(info, 0, sizeof *info); /* padding is copied out, too */
  info->event_count = trace->event_count;
  info->scope_count = trace->scope_count;
  info->skipped_count = trace->skipped_count;
  info->open_count = trace->open_count;
  info->open_below_count = trace->open_below_count;
  info->stray_count = trace->stray_count;
  memcpy(info->lost_count, trace->lost, sizeof info->lost_count);
  info->bad_count = trace->bad_count;
  info->start_unix_ns = header->start_realtime_ns;
  info->start_ns = header->start_monotonic_ns;
  info->duration_ns = duration_ns(trace);
  const uint64_t beyond_ns = info->duration_ns > trace->timeline.known_ns
                                 ? info->duration_ns - trace->timeline.known_ns
                                 : 0;
  info->clock_error_ns = trace->timeline.error_ns + trace->timeline.bend_ns + trace->clock_step_ns +
                         beyond_ns / 1000000 * trace->timeline.end_ppm +
                         beyond_ns % 1000000 * trace->timeline.end_ppm / 1000000;
  info->clock_gap_ns = trace->clock_gap_ns;
  info->clock_back_count = trace->clock_back_count;
  info->clock_jump_count = trace->clock_epoch_count - 1;
  info->wall_step_ns = trace->catalog.wall_ns;
  info->wall_step_count = trace->catalog.wall_step_count;
  info->clock_segments_count = trace->timeline.segment_count;
  info->pid = header->pid;
  info->rank = header->rank;
  info->world_size = header->world_size;
  info->thread_count = trace->thread_count;
  info->is_elsewhere = trace->source.is_elsewhere;
  info->is_live = trace->source.is_live && !trace->source.is_elsewhere && !trace->source.is_copied;
  info->was_clean = header->state == PROF_I_STATE_STOPPED;
  info->is_copy = header->state == PROF_I_STATE_COPIED || trace->source.is_copied;
  info->level = header->level ? header->level : trace->catalog.last_level;
  info->policy = header->policy;
  info->clock = header->clock;
  put_cost_text(trace, info);
  info->is_own_sampled = trace->window_count != 0;
  info->is_end_seen = header->state == PROF_I_STATE_RECORDING && !trace->source.is_live &&
                      header->seen_ns != 0 && trace->opened_ns != 0;
  info->is_own_apart = (double)info->own_most_ns > 1.4 * (double)info->own_least_ns;
  info->memory_limit_bytes = header->memory_limit_bytes;
  info->scope_cost_ns = (double)header->scope_cost_ps / 1e3;
  info->cpu_limit = (double)header->cpu_limit_milli / 1e3;
  info->change_count = trace->catalog.change_count;
  info->device_count = trace->catalog.device_count;
  info->note_count = trace->catalog.note_count;
  info->untold_change_count = prof_i_changes_unreadable(header);
  info->level_now = header->state == PROF_I_STATE_RECORDING ? header->level : 0;
  prof_i_copy_name(info->host, sizeof info->host, header->host, sizeof header->host);
  prof_i_copy_name(info->process_name, sizeof info->process_name, header->process_name,
                   sizeof header->process_name);
}

int prof_trace_info_get(const prof_trace *trace, prof_trace_info *info_out) {
  PROF_I_DEFAULT_FP;
  if (!trace || !info_out)
    return prof_i_fail(PROF_E_INVALID, "prof_trace_info_get: %s is NULL",
                       trace ? "info_out" : "trace");
  prof_trace_info info;
  fill_info(trace, &info);
  return prof_i_sized_copy_out(info_out, &info, sizeof info, "prof_trace_info");
}

int prof_trace_site_get(const prof_trace *trace, uint32_t site, prof_trace_site *site_out) {
  if (!trace || !site_out)
    return prof_i_fail(PROF_E_INVALID, "prof_trace_site_get: %s is NULL",
                       trace ? "site_out" : "trace");
  if (site >= prof_i_trace_site_count(trace))
    return prof_i_fail(PROF_E_INVALID, "site is %u, and the trace has %u", site,
                       prof_i_trace_site_count(trace));
  const prof_i_site_info *const from = prof_i_trace_site(trace, site);
  const prof_trace_site found = {.size = sizeof found,
                                 .name = from->name.data,
                                 .category = from->category.data,
                                 .file = from->file.data,
                                 .function = from->function.data,
                                 .name_bytes = (uint32_t)from->name.bytes,
                                 .category_bytes = (uint32_t)from->category.bytes,
                                 .file_bytes = (uint32_t)from->file.bytes,
                                 .function_bytes = (uint32_t)from->function.bytes,
                                 .line = from->line,
                                 .level = from->level};
  return prof_i_sized_copy_out(site_out, &found, sizeof found, "prof_trace_site");
}

int prof_trace_thread_get(const prof_trace *trace, uint32_t index, prof_trace_thread *thread_out) {
  if (!trace || !thread_out)
    return prof_i_fail(PROF_E_INVALID, "prof_trace_thread_get: %s is NULL",
                       trace ? "thread_out" : "trace");
  if (index >= trace->thread_count)
    return prof_i_fail(PROF_E_INVALID,
                       "prof_trace_thread_get: index is %u; the trace has %u threads", index,
                       trace->thread_count);
  const prof_i_trace_thread *const from = &trace->threads[index];
  prof_trace_thread thread;
  memset(&thread, 0, sizeof thread);
  thread.tid = from->tid;
  thread.event_count = from->event_count;
  thread.is_main = from->thread_kind == PROF_I_KIND_OF_MAIN;
  thread.is_fiber = from->thread_kind == PROF_I_KIND_OF_FIBER;
  if (prof_i_thread_is_stream(from)) {
    thread.is_stream = 1;
    thread.device =
        (prof_device){(int32_t)(from->thread_kind >> PROF_I_THREAD_KIND_TYPE_SHIFT & 0xffffff),
                      (int32_t)(from->thread_kind >> PROF_I_THREAD_KIND_INDEX_SHIFT)};
    thread.stream = from->tid;
  }
  thread.is_alive = from->is_alive;
  memcpy(thread.lost_count, from->lost, sizeof thread.lost_count);
  memcpy(thread.name, from->name, sizeof thread.name);
  thread.own_ns = prof_i_own_time_bound(from->own_ns, duration_ns(trace), 1);
  return prof_i_sized_copy_out(thread_out, &thread, sizeof thread, "prof_trace_thread");
}

int prof_i_trace_loss_text(const prof_trace *trace, char **text_out) {
  if (!trace || !text_out)
    return prof_i_fail(PROF_E_INVALID, "prof_trace_loss_text: %s is NULL",
                       trace ? "text_out" : "trace");
  enum { ROOM = 512 + PROF_I_LOSS_WORDS * 64 };
  char *const text = malloc(ROOM);
  if (!text) return prof_i_fail(PROF_E_NO_MEMORY, "no memory for a line of text");
  uint64_t all = 0;
  for (int i = 0; i < PROF_I_LOSS_WORDS; i++) all += trace->lost[i];
  int used = snprintf(text, ROOM,
                      all                ? "%llu recorded; lost %llu:"
                      : trace->bad_count ? "%llu recorded; no loss counted"
                                         : "%llu recorded; no loss",
                      (unsigned long long)(trace->event_count - trace->open_count),
                      (unsigned long long)all);
  for (int i = 0, n = 0; i < PROF_I_LOSS_WORDS; i++)
    if (trace->lost[i])
      used += snprintf(text + used, (size_t)(ROOM - used), "%s %llu %s", n++ ? "," : "",
                       (unsigned long long)trace->lost[i], prof_loss_name(i));
  const uint64_t open = trace->open_count + trace->open_below_count;
  if (open)
    used += snprintf(text + used, (size_t)(ROOM - used), "; %llu scope%s had not ended yet",
                     (unsigned long long)open, open == 1 ? "" : "s");
  if (trace->open_below_count)
    used += snprintf(text + used, (size_t)(ROOM - used),
                     ", %llu of them below 64 others, without a name",
                     (unsigned long long)trace->open_below_count);
  if (trace->stray_count)
    used += snprintf(text + used, (size_t)(ROOM - used), "; %llu end%s found no scope",
                     (unsigned long long)trace->stray_count, trace->stray_count == 1 ? "" : "s");
  if (trace->bad_count)
    snprintf(text + used, (size_t)(ROOM - used),
             "; the capture is damaged, or cut off: %llu place%s could not be read",
             (unsigned long long)trace->bad_count, trace->bad_count == 1 ? "" : "s");
  *text_out = text;
  return PROF_OK;
}

int prof_trace_loss_text(const prof_trace *trace, char **text_out) {
  PROF_I_DEFAULT_FP;
  PROF_I_REFUSE_INTERRUPTED(PROF_E_BUSY);
  PROF_I_INSIDE;
  return prof_i_trace_loss_text(trace, text_out);
}

void prof_i_trace_opened_at(const prof_trace *trace, uint64_t *ticks_out,
                            uint64_t *monotonic_ns_out) {
  *ticks_out = trace->opened_ns ? trace->source.opened.ticks : 0;
  *monotonic_ns_out = trace->opened_ns ? trace->source.opened.monotonic_ns : 0;
}

const void *prof_i_trace_bytes_at(const prof_trace *trace, uint64_t offset, uint64_t *count_out) {
  return prof_i_source_bytes_at(&trace->source, offset, count_out);
}

uint32_t prof_i_trace_site_count(const prof_trace *trace) {
  return trace->catalog.site_limit ? trace->catalog.site_limit : 1;
}

const prof_i_site_info *prof_i_trace_site(const prof_trace *trace, uint32_t site) {
  return prof_i_catalog_site(&trace->catalog, site);
}

int prof_i_trace_track(const prof_trace *trace, uint32_t index, prof_device *device_out,
                       uint64_t *stream_out, prof_i_text *name_out) {
  if (index >= trace->catalog.track_count) return 0;
  const prof_i_track *const track = &trace->catalog.tracks[index];
  *device_out = track->device;
  *stream_out = track->stream;
  *name_out = track->name;
  return 1;
}
