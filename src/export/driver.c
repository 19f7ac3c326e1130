/* Walks a trace and calls an exporter (exporter.h). Knows no format, and writes nothing itself.
   Called by dump.c and by tests. */
#include <stdlib.h>
#include <string.h>

#include "../base/error.h"
#include "../reader/capture.h"
#include "../reader/internal.h"
#include "exporter.h"

/* The state of a walk in the order of time. */
typedef struct time_walk {
  prof_i_export *run;
  prof_i_pending_ends open;
  /* By lane: the number of the last scope that found it taken. Never past open.count. */
  uint64_t *lane_taken;
  uint32_t lane_room;
  uint64_t scope_number;
  uint32_t next_thread; /* the first one that the exporter has not seen */
} time_walk;

typedef int (*export_callback)(prof_i_export *run, prof_i_export_event *event);

static export_callback callback_of(const prof_i_exporter *exporter, uint32_t kind) {
  if (kind == PROF_EVENT_COUNTER) return exporter->counter;
  if (kind == PROF_EVENT_FLOW_BEGIN || kind == PROF_EVENT_FLOW_END) return exporter->flow;
  return exporter->event_kinds & 1u << kind ? exporter->event : NULL;
}

static bool kind_has_duration(uint32_t kind) {
  return kind == PROF_EVENT_SCOPE || kind == PROF_EVENT_OPEN || kind == PROF_EVENT_STEP;
}

/* Of run->event. */
static prof_i_export_event describe_event(const prof_i_export *run) {
  const prof_event *const event = &run->event;
  return (prof_i_export_event){
      .phase = PROF_I_PHASE_WHOLE,
      .start_ns = event->start_ns,
      .end_ns = event->start_ns + event->duration_ns,
      .name = prof_i_text_or((prof_i_text){event->name, event->name_bytes}, "(unnamed)"),
      .category = prof_i_text_or((prof_i_text){event->category, event->category_bytes}, "scope"),
      .event = event};
}

/* Counts run->event, for which the exporter has no function. */
static void count_lacking(const prof_i_export *run) {
  prof_i_export_lacks *const lacks = run->options->lacks;
  if (!lacks) return;
  const uint32_t kind = run->event.kind;
  lacks->arrows += kind == PROF_EVENT_FLOW_BEGIN;
  lacks->memory += kind == PROF_EVENT_MEMORY;
  lacks->values += kind == PROF_EVENT_COUNTER || kind == PROF_EVENT_INSTANT;
  lacks->steps += kind == PROF_EVENT_STEP;
}

/* Counts what the format lacks of an event that is written. */
static void count_lacking_parts(const prof_i_export *run, bool has_arrow) {
  prof_i_export_lacks *const lacks = run->options->lacks;
  if (!lacks) return;
  lacks->arrows += run->exporter->lacks_launches && has_arrow;
  lacks->argument_scopes +=
      run->exporter->lacks_arguments && kind_has_duration(run->event.kind) && run->event.arg_count;
}

/* ---- the filter ---- */

/* Whether run->event passes, and counts it. */
static bool filter_takes(prof_i_export *run) {
  return !run->options->filter ||
         prof_i_selection_takes(&run->selection, &run->event, run->options->filtered);
}

/* Whether the exporter is called even though the event does not pass. */
static bool goes_left_out(const prof_i_export *run) {
  if (run->event.kind == PROF_EVENT_MEMORY)
    return run->exporter->takes_left_out_memory &&
           prof_i_selection_takes_place(&run->selection, &run->event);
  return run->exporter->takes_left_out && kind_has_duration(run->event.kind);
}

/* Whether an arrow leads from its launch to run->event. Counts the arrow. */
static bool has_launch(const prof_i_export *run, bool takes) {
  const prof_event *const event = &run->event;
  if (!prof_i_window_has_launch(&run->options->window, event, run->info.thread_count)) return false;
  if (!run->options->filter) return true;
  const bool has = takes && prof_i_selection_takes_moment(&run->selection, event->launch.thread,
                                                          event->launch.start_ns);
  if (run->exporter->flow) prof_i_filtered_count_add(&run->options->filtered->arrows, has);
  return has;
}

static int begin_thread(prof_i_export *run, uint32_t index) {
  prof_trace_thread thread = {.size = sizeof thread};
  run->thread = index;
  if (!run->exporter->thread) return PROF_OK;
  const int status = prof_trace_thread_get(run->trace, index, &thread);
  return status == PROF_OK ? run->exporter->thread(run, &thread) : status;
}

/* A walk may skip events that ended before this time. */
static uint64_t skip_ns(const prof_i_export *run) {
  return run->exporter->has_self_times ? 0 : run->options->window.from_ns;
}

/* ---- as walked ---- */

static int send_span(prof_i_export *run, const prof_i_span *span) {
  const export_callback callback = callback_of(run->exporter, span->kind);
  if (!prof_i_window_contains(&run->options->window, span->start_ns,
                              span->start_ns + span->duration_ns))
    return PROF_OK;
  if (span->lane == PROF_I_LANES_MAX) { /* every lane has something in its way */
    run->findings->counts[PROF_I_FINDING_CROWDED]++;
    return PROF_OK;
  }
  if (!callback) return PROF_OK;
  prof_i_trace_expand(run->trace, run->thread, span, &run->event);
  const bool takes = filter_takes(run);
  const bool has_arrow = has_launch(run, takes);
  if (!takes && !goes_left_out(run)) return PROF_OK;
  prof_i_export_event event = describe_event(run);
  event.is_left_out = !takes;
  event.has_launch = has_arrow;
  event.span = span;
  event.lane = span->lane;
  return callback(run, &event);
}

static int visit_spans(void *user, const prof_i_span *spans, size_t count) {
  prof_i_export *const run = user;
  const bool has_plain = run->exporter->plain && !run->options->filter;
  for (size_t i = 0; i < count; i++) {
    if (has_plain) i += run->exporter->plain(run, spans + i, count - i);
    if (i == count) break;
    const int status = send_span(run, &spans[i]);
    if (status != PROF_OK) return status;
  }
  return run->sink->status;
}

static int walk_thread(prof_i_export *run, uint32_t index) {
  run->walker = prof_i_walker_create(run->trace, index, visit_spans, run);
  int status = PROF_E_NO_MEMORY;
  if (run->walker) {
    prof_i_walker_skip_before(run->walker, skip_ns(run));
    status = begin_thread(run, index);
    if (status == PROF_OK) status = prof_i_walker_run(run->walker);
    prof_i_walker_destroy(run->walker);
    run->walker = NULL;
  }
  if (status != PROF_E_NO_MEMORY || run->sink->status != PROF_OK) return status;
  return prof_i_fail(status, "no memory to walk the scopes of thread %u", index);
}

/* What was launched comes after what launched it. */
static int walk_as_is(prof_i_export *run) {
  for (int streams = 0; streams < 2; streams++)
    for (uint32_t i = 0; i < run->info.thread_count; i++) {
      const int status = run->tids[i].is_stream == streams ? walk_thread(run, i) : PROF_OK;
      if (status != PROF_OK) return status;
    }
  return PROF_OK;
}

/* ---- by time ---- */

static int send_ends_until(time_walk *walk, uint64_t ns) {
  int status = PROF_OK;
  while (status == PROF_OK && walk->open.count > 0 &&
         walk->open.items[walk->open.count - 1].end_ns <= ns) {
    const prof_i_pending_end *const scope = &walk->open.items[--walk->open.count];
    prof_i_export_event event = {.phase = PROF_I_PHASE_END,
                                 .lane = scope->lane,
                                 .start_ns = scope->start_ns,
                                 .end_ns = scope->end_ns,
                                 .name = scope->name,
                                 .category = scope->category,
                                 .kept = scope->kept,
                                 .is_left_out = scope->is_left_out};
    status = walk->run->exporter->event(walk->run, &event);
    free(scope->kept);
  }
  return status;
}

static bool text_equals(prof_i_text a, prof_i_text b) {
  return a.bytes == b.bytes && (a.data == b.data || memcmp(a.data, b.data, a.bytes) == 0);
}

/* The first lane of its track in which the scope nests. Looks at each open scope once, because
   thousands may overlap. */
static uint32_t find_lane(time_walk *walk, const prof_i_export_event *scope) {
  const bool by_category = walk->run->exporter->has_category_tracks;
  walk->scope_number++;
  for (uint32_t i = walk->open.count; i > 0 && walk->open.items[i - 1].end_ns < scope->end_ns; i--)
    if (!by_category || text_equals(walk->open.items[i - 1].category, scope->category))
      walk->lane_taken[walk->open.items[i - 1].lane] = walk->scope_number;
  uint32_t lane = 0;
  while (walk->lane_taken[lane] == walk->scope_number) lane++;
  return lane;
}

/* There is room. */
static void add_pending(time_walk *walk, const prof_i_export_event *scope) {
  uint32_t at = walk->open.count++;
  for (; at > 0 && walk->open.items[at - 1].end_ns < scope->end_ns; at--)
    walk->open.items[at] = walk->open.items[at - 1];
  walk->open.items[at] =
      (prof_i_pending_end){scope->start_ns, scope->end_ns, scope->name,       scope->category,
                           scope->kept,     scope->lane,   scope->is_left_out};
}

static int send_begin(time_walk *walk, prof_i_export_event *scope) {
  if (!prof_i_make_room((void **)&walk->open.items, &walk->open.room, walk->open.count,
                        sizeof *walk->open.items) ||
      !prof_i_make_room_at_index((void **)&walk->lane_taken, &walk->lane_room, walk->open.count,
                                 sizeof *walk->lane_taken))
    return prof_i_fail(PROF_E_NO_MEMORY, "no memory for %u open scopes", walk->open.count + 1);
  scope->phase = PROF_I_PHASE_BEGIN;
  scope->lane = find_lane(walk, scope);
  const int status = walk->run->exporter->event(walk->run, scope);
  if (status == PROF_OK)
    add_pending(walk, scope);
  else
    free(scope->kept);
  return status;
}

/* Sends the threads up to and with `last`. */
static int begin_threads(time_walk *walk, uint32_t last) {
  int status = PROF_OK;
  while (status == PROF_OK && walk->next_thread <= last)
    status = begin_thread(walk->run, walk->next_thread++);
  return status;
}

static int send_timed(time_walk *walk) {
  prof_i_export *const run = walk->run;
  const export_callback callback = callback_of(run->exporter, run->event.kind);
  prof_i_export_event event = describe_event(run);
  if (!prof_i_window_contains(&run->options->window, event.start_ns, event.end_ns)) return PROF_OK;
  if (!callback) {
    count_lacking(run);
    return PROF_OK;
  }
  const bool takes = filter_takes(run);
  event.is_left_out = !takes;
  event.has_launch = has_launch(run, takes);
  if (takes) count_lacking_parts(run, event.has_launch);
  if (!takes && !goes_left_out(run)) return PROF_OK;
  const bool is_new = walk->next_thread <= run->event.thread;
  int status = send_ends_until(walk, is_new ? UINT64_MAX : event.start_ns);
  if (status == PROF_OK && is_new) status = begin_threads(walk, run->event.thread);
  if (status != PROF_OK) return status;
  status = kind_has_duration(run->event.kind) ? send_begin(walk, &event) : callback(run, &event);
  return status == PROF_OK ? run->sink->status : status;
}

/* What the exporter's fast path takes of the spans that the cursor has ready. */
static void send_plain(time_walk *walk, prof_cursor *cursor) {
  prof_i_export *const run = walk->run;
  uint32_t thread;
  size_t count;
  const prof_i_span *const spans = prof_i_cursor_ready(cursor, &thread, &count);
  if (count > 0 && walk->next_thread == thread + 1)
    prof_i_cursor_take(cursor, run->exporter->plain_by_time(run, &walk->open, spans, count));
}

static int send_all_timed(time_walk *walk, prof_cursor *cursor) {
  prof_i_export *const run = walk->run;
  int status = prof_cursor_skip_before(cursor, skip_ns(run));
  while (status == PROF_OK) {
    if (run->exporter->plain_by_time && !run->options->filter) send_plain(walk, cursor);
    status = prof_cursor_next(cursor, &run->event);
    if (status <= 0) break;
    status = send_timed(walk);
  }
  if (status == PROF_OK) status = send_ends_until(walk, UINT64_MAX);
  if (status == PROF_OK && run->info.thread_count > 0)
    status = begin_threads(walk, run->info.thread_count - 1);
  return status;
}

static int walk_by_time(prof_i_export *run) {
  time_walk walk = {.run = run};
  prof_cursor *cursor = NULL;
  int status = prof_i_cursor_create(run->trace, &cursor);
  if (status == PROF_OK) prof_i_cursor_read_ahead(cursor, run->exporter->has_self_times);
  if (status == PROF_OK) status = send_all_timed(&walk, cursor);
  prof_i_cursor_destroy(cursor);
  while (walk.open.count > 0) free(walk.open.items[--walk.open.count].kept);
  free(walk.open.items);
  free(walk.lane_taken);
  return status;
}

/* ---- a run ---- */

static int init_filter(prof_i_export *run) {
  const bool has_memory = run->exporter->event_kinds & PROF_I_KIND(MEMORY),
             is_memory_written = has_memory && run->options->with_memory;
  if (prof_i_trace_filter_init(&run->filter, run->trace, run->options->filter) == PROF_OK &&
      prof_i_selection_init(&run->selection, &run->filter, run->exporter->flow != NULL,
                            is_memory_written) == PROF_OK)
    return PROF_OK;
  return prof_i_fail(PROF_E_NO_MEMORY, "no memory for the filter of '%s'", run->info.process_name);
}

/* Moves the capture to its place in a merged file. */
static void take_place(prof_i_export *run, const prof_i_export_place *place) {
  run->info.start_unix_ns = place->start_unix_ns;
  run->info.start_ns = place->start_ns;
  run->info.pid += (uint32_t)place->pid_offset;
  for (uint32_t i = 0; i < run->info.thread_count; i++) {
    prof_trace_thread thread = {.size = sizeof thread};
    if (!run->tids[i].is_stream)
      run->tids[i].pid += place->pid_offset;
    else if (prof_trace_thread_get(run->trace, i, &thread) == PROF_OK)
      run->tids[i].pid = prof_i_export_device_pid(run, thread.device);
  }
}

static int run_exporter(prof_i_export *run) {
  const prof_i_exporter *const exporter = run->exporter;
  run->info.size = sizeof run->info;
  int status = prof_trace_info_get(run->trace, &run->info);
  if (status == PROF_OK)
    status = prof_i_tids_create(run->trace, run->info.thread_count, &run->tids);
  if (status == PROF_OK && run->options->place) take_place(run, run->options->place);
  if (status == PROF_OK && run->options->filter) status = init_filter(run);
  if (status == PROF_OK && exporter->begin) status = exporter->begin(run);
  if (status == PROF_OK)
    status = exporter->order == PROF_I_ORDER_TIME ? walk_by_time(run) : walk_as_is(run);
  if (status == PROF_OK && exporter->end) status = exporter->end(run);
  return status == PROF_OK ? run->sink->status : status;
}

int prof_i_export_run(const prof_i_exporter *exporter, const prof_trace *trace,
                      const prof_i_export_options *options, prof_i_sink *sink,
                      prof_i_findings *findings_out) {
  *findings_out = (prof_i_findings){{0}};
  if (options->filter) *options->filtered = (prof_i_export_filtered){0};
  if (exporter->copy) return exporter->copy(trace, sink);
  prof_i_export *const run = calloc(1, sizeof *run);
  void *const state = calloc(1, exporter->state_bytes ? exporter->state_bytes : 1);
  int status = PROF_OK;
  if (run && state) {
    run->exporter = exporter;
    run->trace = trace;
    run->options = options;
    run->sink = sink;
    run->findings = findings_out;
    run->state = state;
    status = run_exporter(run);
    if (options->filter) {
      prof_i_selection_fini(&run->selection);
      prof_i_trace_filter_fini(&run->filter);
    }
    if (exporter->destroy) exporter->destroy(run);
    free(run->tids);
  } else {
    status = prof_i_fail(PROF_E_NO_MEMORY, "no memory to write the format %s (%zu bytes)",
                         exporter->name, sizeof *run + exporter->state_bytes);
  }
  free(state);
  free(run);
  return status;
}
