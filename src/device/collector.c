/* See collector.h. It blocks all signals. It writes for each stream as that stream's thread of the
   capture (prof_i_virtual_thread_attach()), and vendors are called by it alone, but for what scopes
   themselves do: no lock is held around any of that. Whoever stops recording, or reads it, asks for
   a round and waits for that, not for a device, and no longer than it can bear. */
#define _GNU_SOURCE
#include "collector.h"

#include <prof/profiler.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "../base/fault.h"
#include "../base/port.h"
#include "../base/this_thread.h"
#include "../core/buffer/arena.h"
#include "../core/buffer/arena_guard.h"
#include "../core/buffer/clock.h"
#include "../core/buffer/session.h"
#include "../core/buffer/thread.h"
#include "../core/session/control.h"
#include "activity.h"
#include "device_state.h"
#include "event_pair.h"
#include "external_events.h"
#include "names.h"
#include "records.h"
#include "resolver.h"

enum {
  POLL_NS = 1000000,
  SLEEP_NS = 1000000000,
  STOP_MS = 100,
  STOP_RECORDS_MS = 1000,
  LOOK_MS = 20,
  START_MS = 1000
};
/* How often it looks without work before it sleeps until it is woken: see wait_for_work(). In one
   such time a thread puts some hundred scopes on a stream, and has PROF_I_EVENT_PAIRS_MAX pairs. */
enum { LINGER_NS = 200000, LINGER_ROUNDS = 100 };
enum { COLLECTOR_OFF, COLLECTOR_ON, COLLECTOR_CLOSING };

static struct {
  /* rank 2, below the control lock: the thread comes and goes. Nobody's code is called under it */
  pthread_mutex_t lock;
  pthread_t thread;
  uint32_t state;                  /* release */
  uint32_t wake_word;              /* raised by who wants something; the thread sleeps on it */
  uint32_t is_sleeping;            /* 1: until it is woken */
  uint32_t rounds_requested, done; /* rounds */
  uint32_t has_records;            /* a back end has some that nobody came for yet */
  uint32_t idle_rounds;            /* since it had work. The thread's own */
  bool has_exit_handler;
  uint32_t is_exiting; /* the process ends: no more of them. Relaxed */
} collector = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool is_collector_on(void) {
  return __atomic_load_n(&collector.state, __ATOMIC_ACQUIRE) == COLLECTOR_ON;
}

void prof_i_collector_count_loss(int loss) {
  prof_i_thread_lose_outside(prof_i_this_thread, loss, 1);
}

/* ---- one round ---- */

/* What has come since, oldest first, behind what waits. */
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

/* Past the gate. */
static void report_no_times(const prof_i_stream *stream) {
  prof_i_device_state_set_reason(stream->device, stream->backend, PROF_BACKEND_VENDOR,
                                 "its events tell no times");
}

/* Its first work has begun: the sooner its clock is read, the nearer are times that lie before
   that. */
static void read_clock_early(prof_i_stream *stream, const prof_i_event_pair *pair) {
  if (!stream->clock &&
      stream->backend->table.event_query(stream->backend->self, pair->events[0]) == PROF_BACKEND_OK)
    prof_i_resolver_prepare(stream);
}

/* In the vendor's words, right after its call. */
static void report_stream_failure(const prof_i_stream *stream, int result) {
  const char *const words = prof_i_registry_error_text(stream->backend, result);
  char reason[sizeof((prof_i_device_state *)NULL)->reason];
  snprintf(reason, sizeof reason, "stream 0x%llx: %s", (unsigned long long)stream->handle, words);
  prof_i_registry_set_stream_error(stream->backend, stream->handle, result);
  if (!prof_i_arena_guard_enter()) return;
  prof_i_device_state_set_reason(stream->device, stream->backend, result, reason);
  prof_i_arena_guard_exit();
}

/* The stream's pairs that are past. True: some are not. */
static bool poll_stream(prof_i_stream *stream) {
  bool is_ready = false;
  take_done_pairs(stream);
  if (stream->pending) collector.idle_rounds = 0;
  for (prof_i_event_pair *pair; (pair = stream->pending) != NULL;) {
    const uint64_t before = prof_i_clock_ticks();
    const int result = stream->backend->table.event_query(stream->backend->self, pair->events[1]);
    const uint64_t now = prof_i_clock_ticks();
    if (result == PROF_BACKEND_NOT_READY) {
      pair->pending_ticks = before;
      read_clock_early(stream, pair);
      return true;
    }
    if (result != PROF_BACKEND_OK && !pair->is_late) report_stream_failure(stream, result);
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
  return false;
}

/* is_asked: somebody waits for it, who wants all that has ended by now. */
static bool poll_all_streams(bool is_asked) {
  /* first: what stands inside of a scope is written before it */
  bool is_waiting = prof_i_activity_round(is_asked ? PROF_BACKEND_FLUSH : PROF_BACKEND_POLL);
  is_waiting |= prof_i_external_events_round();
  for (prof_i_stream *s = prof_i_stream_first(); s; s = prof_i_stream_next(s))
    is_waiting |= poll_stream(s);
  return is_waiting;
}

static void report_stream_unfinished(const prof_i_stream *stream) {
  if (!prof_i_arena_guard_enter()) return;
  prof_i_device_state_set_reason(stream->device, stream->backend, PROF_BACKEND_NOT_READY,
                                 "it was not done with its work when recording stopped");
  prof_i_arena_guard_exit();
}

/* Recording ends: what devices are not done with is lost; its pair stays where it is until they
   are. */
static void end_recording(void) {
  prof_i_activity_end();
  prof_i_external_events_end();
  prof_i_records_end_threads();
  for (prof_i_stream *s = prof_i_stream_first(); s; s = prof_i_stream_next(s)) {
    for (prof_i_event_pair *pair = s->pending; pair; pair = pair->next) {
      if (!pair->is_late) report_stream_unfinished(s);
      if (!pair->is_late && !PROF_I_FAULT(NOT_TOLD))
        prof_i_thread_lose_outside(s->line.thread ? s->line.thread : &prof_i_no_thread,
                                   PROF_LOSS_DEVICE_LATE, 1);
      pair->is_late = 1;
    }
    prof_i_virtual_thread_end(&s->line);
  }
}

/* A recording that began while this one could not end has nobody who asks its devices, unless a
   scope comes. */
static void restart_if_recording(void) {
  if (__atomic_load_n(&collector.is_exiting, __ATOMIC_RELAXED) || prof_i_arena_level() == 0 ||
      !prof_i_session_is_recording())
    return;
  if (prof_i_activity_is_wanted()) prof_i_collector_ensure();
}

static uint64_t max_wait_ns(bool is_waiting, bool lingers) {
  if (is_waiting) return POLL_NS;
  const uint64_t most =
      prof_i_activity_is_awaiting() ? prof_i_activity_poll_interval_ns() : SLEEP_NS;
  return lingers && most > LINGER_NS ? LINGER_NS : most;
}

/* Between two rounds. To wake it is a system call of the scope that comes first, so for some rounds
   after its last work it looks by itself. */
static void wait_for_work(uint32_t seen, bool is_waiting) {
  const bool lingers = collector.idle_rounds < LINGER_ROUNDS;
  collector.idle_rounds += lingers;
  /* pairs with the load in prof_i_collector_wake() */
  __atomic_store_n(&collector.is_sleeping, !is_waiting && !lingers, __ATOMIC_SEQ_CST);
  bool has_more = __atomic_load_n(&collector.has_records, __ATOMIC_SEQ_CST);
  for (prof_i_stream *s = prof_i_stream_first(); s; s = prof_i_stream_next(s))
    has_more |= __atomic_load_n(&s->done, __ATOMIC_SEQ_CST) != NULL;
  if (has_more && !is_waiting) return;
  prof_i_port_wait(&collector.wake_word, seen, max_wait_ns(is_waiting, lingers));
  __atomic_store_n(&collector.is_sleeping, 0, __ATOMIC_RELAXED);
}

static void *collector_main(void *unused) {
  (void)unused;
  prof_i_port_thread_begin("prof-collector");
  collector.idle_rounds = LINGER_ROUNDS;
  for (bool is_waiting = false;;) {
    const uint32_t seen = __atomic_load_n(&collector.wake_word, __ATOMIC_ACQUIRE),
                   rounds_requested =
                       __atomic_load_n(&collector.rounds_requested, __ATOMIC_ACQUIRE);
    const bool is_last = !is_collector_on();
    __atomic_store_n(&collector.has_records, 0, __ATOMIC_SEQ_CST);
    is_waiting = poll_all_streams(
        is_last || rounds_requested != __atomic_load_n(&collector.done, __ATOMIC_RELAXED));
    if (is_last) end_recording();
    __atomic_store_n(&collector.done, rounds_requested, __ATOMIC_RELEASE);
    prof_i_port_wake(&collector.done);
    if (is_last) {
      /* from here on another may be there: nothing of ours is touched any more */
      __atomic_store_n(&collector.state, COLLECTOR_OFF, __ATOMIC_SEQ_CST);
      prof_i_port_wake(&collector.state);
      restart_if_recording();
      return NULL;
    }
    wait_for_work(seen, is_waiting);
  }
}

/* ---- its life ---- */

static void raise_wake_word(void) {
  __atomic_fetch_add(&collector.wake_word, 1, __ATOMIC_SEQ_CST);
  prof_i_port_wake(&collector.wake_word);
}

void prof_i_collector_wake(void) {
  if (__atomic_load_n(&collector.is_sleeping, __ATOMIC_SEQ_CST)) raise_wake_word();
}

void prof_i_collector_wake_for_records(void) {
  __atomic_store_n(&collector.has_records, 1, __ATOMIC_SEQ_CST);
  prof_i_collector_wake();
}

/* Waits for a round that begins from here on. False: it did not come in time. */
static bool request_round(uint32_t patience_ms) {
  const uint32_t number = __atomic_add_fetch(&collector.rounds_requested, 1, __ATOMIC_SEQ_CST);
  const uint64_t begun = prof_i_port_monotonic_ns(), max_wait_ns = patience_ms * UINT64_C(1000000);
  raise_wake_word();
  for (uint32_t done;
       (int32_t)((done = __atomic_load_n(&collector.done, __ATOMIC_ACQUIRE)) - number) < 0;) {
    const uint64_t passed = prof_i_ns_since(begun);
    if (passed >= max_wait_ns) return false;
    prof_i_port_wait(&collector.done, done, max_wait_ns - passed);
  }
  return true;
}

static void collector_flush(void) {
  if (is_collector_on()) request_round(LOOK_MS);
}

/* Without the control lock: a vendor may take its time. */
static void collector_stop(void) {
  prof_i_thread_lock(&collector.lock);
  if (is_collector_on()) {
    /* a vendor's tracing empties its buffers: what comes later is lost */
    const uint64_t patience_ms = prof_i_activity_is_on() ? STOP_RECORDS_MS : STOP_MS;
    __atomic_store_n(&collector.state, COLLECTOR_CLOSING, __ATOMIC_SEQ_CST);
    raise_wake_word();
    /* it hangs in a vendor's call, or has no processor: it ends by itself, and until then there is
       no other */
    if (!prof_i_port_join(collector.thread, &collector.state, COLLECTOR_CLOSING,
                          patience_ms * 1000000))
      pthread_detach(collector.thread);
  }
  prof_i_thread_unlock(&collector.lock);
}

static void collector_forget(void) {
  pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
  collector.lock = fresh;
  collector.state = COLLECTOR_OFF;
  collector.is_sleeping = collector.has_records = 0;
  prof_i_streams_forget();
  prof_i_resolver_forget();
  prof_i_activity_forget();
  prof_i_external_events_forget();
  prof_i_records_forget();
  prof_i_names_forget();
  prof_i_device_states_forget();
  prof_i_device_scopes_forget();
}

static void collector_at_exit(void) {
  __atomic_store_n(&collector.is_exiting, 1, __ATOMIC_RELAXED);
  collector_stop();
}

void prof_i_collector_register_exit(void) { atexit(collector_at_exit); }

static void make_collector_thread(void) {
  if (!collector.has_exit_handler) {
    collector.has_exit_handler = true;
    atexit(collector_at_exit); /* before the vendors' libraries go: they were there before us */
  }
  __atomic_store_n(&collector.state, COLLECTOR_ON, __ATOMIC_RELEASE);
  if (prof_i_port_thread_create(&collector.thread, 0, collector_main, NULL) != 0)
    __atomic_store_n(&collector.state, COLLECTOR_OFF, __ATOMIC_RELEASE);
}

bool prof_i_collector_ensure(void) {
  if (PROF_I_LIKELY(is_collector_on())) return true;
  if (!prof_i_session_is_recording() || !prof_i_thread_try_lock(&collector.lock)) return false;
  if (__atomic_load_n(&collector.state, __ATOMIC_ACQUIRE) == COLLECTOR_OFF) make_collector_thread();
  prof_i_thread_unlock(&collector.lock);
  return is_collector_on();
}

static void collector_start(bool waits) {
  prof_i_activity_begin(waits);
  const bool is_wanted = prof_i_activity_is_wanted();
  if ((!is_wanted && !prof_i_external_events_pending()) || !prof_i_collector_ensure() ||
      !is_wanted || !waits)
    return;
  /* the program goes on without its records */
  if (!request_round(START_MS)) prof_i_activity_begin(false);
}

PROF_I_COLD void prof_i_collector_prepare(void) {
  static const prof_i_device_hooks hooks = {collector_start, collector_flush, collector_stop,
                                            collector_forget};
  prof_i_control_set_devices(&hooks);
}
