/* What the collector does: asks pairs of events whether they are past, has back ends hand over what
   they recorded, and writes both as scopes of their stream. It writes for each stream as that
   stream's virtual thread of the capture (prof_i_virtual_thread_attach()). Only the collector calls
   vendors, except for what scopes themselves do, and it holds no lock around their calls. */
#define _GNU_SOURCE
#include <prof/profiler.h>
#include <stdio.h>

#include "../base/fault.h"
#include "../core/buffer/arena.h"
#include "../core/buffer/clock.h"
#include "../core/buffer/thread.h"
#include "../core/session/control.h"
#include "internal.h"

enum { STOP_MS = 100, STOP_RECORDS_MS = 1000, FLUSH_MS = 20, START_MS = 1000 };

/* ---- one round ---- */

/* Appends the pairs that have come since, oldest first, to those that wait. */
static void take_done_pairs(prof_i_stream *stream) {
  prof_i_event_pair *pair = __atomic_exchange_n(&stream->done, NULL, __ATOMIC_ACQUIRE),
                    *first = NULL, **tail = &stream->pending;
  while (pair) {
    prof_i_event_pair *const next = pair->next;
    pair->next = first;
    first = pair;
    pair = next;
  }
  while (*tail) tail = &(*tail)->next;
  *tail = first;
}

static void finish_pair(prof_i_stream *stream, int loss) {
  prof_i_event_pair *const pair = stream->pending;
  stream->pending = pair->next;
  if (loss >= 0)
    prof_i_thread_lose_outside(stream->line.thread ? stream->line.thread : &prof_i_no_thread, loss,
                               1);
  if (!PROF_I_FAULT(KEPT_PAIR)) prof_i_event_pair_give_back(pair, loss < 0 && !pair->is_late);
}

/* Inside the arena guard. */
static void report_no_times(const prof_i_stream *stream) {
  prof_i_device_state_set_reason(stream->device, stream->backend, PROF_BACKEND_VENDOR,
                                 "its events tell no times");
}

/* The stream's first work has begun: the sooner its clock is read, the better are times before
   that. */
static void read_clock_early(prof_i_stream *stream, const prof_i_event_pair *pair) {
  if (!stream->clock &&
      stream->backend->table.event_query(stream->backend->self, pair->events[0]) == PROF_BACKEND_OK)
    prof_i_resolver_prepare(stream);
}

/* Resolves the stream's pairs that are past. Returns PROF_I_ROUND_*. */
static uint32_t poll_stream(prof_i_stream *stream) {
  bool is_ready = false;
  take_done_pairs(stream);
  const uint32_t had_work = stream->pending ? PROF_I_ROUND_HAD_WORK : 0;
  for (prof_i_event_pair *pair; (pair = stream->pending) != NULL;) {
    const uint64_t before = prof_i_clock_ticks();
    const int result = stream->backend->table.event_query(stream->backend->self, pair->events[1]);
    const uint64_t now = prof_i_clock_ticks();
    if (result == PROF_BACKEND_NOT_READY) {
      pair->pending_ticks = before;
      read_clock_early(stream, pair);
      return had_work | PROF_I_ROUND_WAITING;
    }
    if (result != PROF_BACKEND_OK && !pair->is_late) prof_i_stream_report_error(stream, result);
    if (result != PROF_BACKEND_OK || pair->is_late) {
      finish_pair(stream, pair->is_late ? -1 : PROF_LOSS_DEVICE_TIMES);
      continue;
    }
    if (!is_ready && !(is_ready = prof_i_resolver_prepare(stream))) {
      finish_pair(stream, PROF_LOSS_DEVICE_TIMES);
      continue;
    }
    if (!prof_i_arena_guard_enter()) {
      finish_pair(stream, PROF_LOSS_CLEARED);
      continue;
    }
    const int loss = prof_i_resolver_write_scope(stream, pair, now);
    if (loss == PROF_LOSS_DEVICE_TIMES) report_no_times(stream);
    finish_pair(stream, loss);
    prof_i_arena_guard_exit();
  }
  return had_work;
}

static uint32_t poll_all_streams(bool is_requested) {
  /* first: what is inside of a scope is written before it */
  const bool has_more_records =
      prof_i_activity_round(is_requested ? PROF_BACKEND_FLUSH : PROF_BACKEND_POLL);
  const bool has_more_events = prof_i_external_events_round();
  uint32_t found = has_more_records || has_more_events ? PROF_I_ROUND_WAITING : 0;
  for (prof_i_stream *s = prof_i_stream_first(); s; s = prof_i_stream_next(s))
    found |= poll_stream(s);
  return found;
}

/* seq_cst: pairs with the push of a pair, after which the pusher checks whether the collector
   sleeps. */
static bool has_new_pairs(void) {
  bool has_more = false;
  for (prof_i_stream *s = prof_i_stream_first(); s; s = prof_i_stream_next(s))
    has_more |= __atomic_load_n(&s->done, __ATOMIC_SEQ_CST) != NULL;
  return has_more;
}

/* ---- begin and end of a recording ---- */

/* What devices are not done with is lost. Its pair stays where it is until they are. */
static void end_recording(void) {
  prof_i_activity_end();
  prof_i_external_events_end();
  prof_i_records_end_threads();
  for (prof_i_stream *s = prof_i_stream_first(); s; s = prof_i_stream_next(s)) {
    for (prof_i_event_pair *pair = s->pending; pair; pair = pair->next) {
      if (!pair->is_late) prof_i_device_state_report_unfinished(s->device, s->backend);
      if (!pair->is_late && !PROF_I_FAULT(NOT_COUNTED))
        prof_i_thread_lose_outside(s->line.thread ? s->line.thread : &prof_i_no_thread,
                                   PROF_LOSS_DEVICE_LATE, 1);
      pair->is_late = 1;
    }
    prof_i_virtual_thread_end(&s->line);
  }
}

static uint64_t max_sleep_ns(void) {
  return prof_i_activity_is_awaiting() ? prof_i_activity_poll_interval_ns() : UINT64_MAX;
}

/* A vendor's tracing empties its buffers. What comes later is lost. */
static uint32_t stop_patience_ms(void) {
  return prof_i_activity_is_on() ? STOP_RECORDS_MS : STOP_MS;
}

static void start_collector(bool waits) {
  prof_i_activity_begin(waits);
  const bool is_wanted = prof_i_activity_is_wanted();
  if ((!is_wanted && !prof_i_external_events_pending()) || !prof_i_collector_ensure() ||
      !is_wanted || !waits)
    return;
  /* the program goes on without its records */
  if (!prof_i_collector_request_round(START_MS)) prof_i_activity_begin(false);
}

static void flush_collector(void) { prof_i_collector_flush(FLUSH_MS); }

static void forget_devices(void) {
  prof_i_collector_thread_forget();
  prof_i_streams_forget();
  prof_i_resolver_forget();
  prof_i_activity_forget();
  prof_i_external_events_forget();
  prof_i_records_forget();
  prof_i_names_forget();
  prof_i_device_states_forget();
  prof_i_gpu_scopes_forget();
}

PROF_I_COLD void prof_i_collector_prepare(void) {
  static const prof_i_collector_work work = {.round = poll_all_streams,
                                             .has_new_pairs = has_new_pairs,
                                             .end_recording = end_recording,
                                             .wants_records = prof_i_activity_is_wanted,
                                             .max_sleep_ns = max_sleep_ns,
                                             .stop_patience_ms = stop_patience_ms};
  static const prof_i_device_hooks hooks = {start_collector, flush_collector, prof_i_collector_stop,
                                            forget_devices};
  prof_i_collector_thread_set_work(&work);
  prof_i_control_set_devices(&hooks);
}
