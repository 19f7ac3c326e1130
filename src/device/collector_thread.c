/* The collector's thread: see internal.h. The thread blocks all signals. A stop or a read of the
   recording requests a round. It waits a limited time for the round, but never for a device. */
#define _GNU_SOURCE
#include "internal.h"

#include <prof/profiler.h>
#include <pthread.h>
#include <stdlib.h>

#include "../base/port.h"
#include "../base/process.h"
#include "../core/buffer/arena.h"
#include "../core/buffer/session.h"
#include "../core/buffer/thread.h"

enum { POLL_NS = 1000000, SLEEP_NS = 1000000000 };
/* How often the thread polls without work before it sleeps until it is woken: see wait_for_work().
   In one LINGER_NS a thread puts some hundred scopes on a stream, and has
   PROF_I_EVENT_PAIRS_MAX pairs. */
enum { LINGER_NS = 200000, LINGER_ROUNDS = 100 };
enum { COLLECTOR_OFF, COLLECTOR_ON, COLLECTOR_CLOSING };

static struct {
  /* rank 2, below the control lock: creates and ends the thread. No vendor is called under it */
  pthread_mutex_t lock;
  pthread_t thread;
  uint32_t state;                  /* release */
  uint32_t wake_word;              /* incremented to wake the thread, which sleeps on it */
  uint32_t is_sleeping;            /* 1: until it is woken */
  uint32_t rounds_requested, done; /* rounds */
  uint32_t has_records;            /* a back end has some that were not fetched yet */
  uint32_t idle_rounds;            /* since it had work. The thread's own */
  bool has_exit_handler;
  uint32_t is_exiting; /* the process ends: create no more threads. Relaxed */
} collector = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* NULL until the library is loaded. */
static const prof_i_collector_work *collector_work PROF_I_WRITTEN_AT_LOAD;

static bool is_collector_on(void) {
  return __atomic_load_n(&collector.state, __ATOMIC_ACQUIRE) == COLLECTOR_ON;
}

/* ---- the thread ---- */

/* A recording may begin while the previous one could not end. Its devices then have no collector,
   unless a scope comes. */
static void restart_if_recording(void) {
  if (__atomic_load_n(&collector.is_exiting, __ATOMIC_RELAXED) || prof_i_arena_level() == 0 ||
      !prof_i_session_is_recording())
    return;
  if (collector_work->wants_records()) prof_i_collector_ensure();
}

static uint64_t max_wait_ns(bool is_waiting, bool lingers) {
  if (is_waiting) return POLL_NS;
  const uint64_t limit_ns = collector_work->max_sleep_ns(),
                 most = limit_ns == UINT64_MAX ? SLEEP_NS : limit_ns;
  return lingers && most > LINGER_NS ? LINGER_NS : most;
}

/* Between two rounds. Waking the thread costs the next scope a system call, so the thread polls for
   some rounds after its last work. */
static void wait_for_work(uint32_t seen, bool is_waiting) {
  const bool lingers = collector.idle_rounds < LINGER_ROUNDS;
  collector.idle_rounds += lingers;
  /* pairs with the load in prof_i_collector_wake() */
  __atomic_store_n(&collector.is_sleeping, !is_waiting && !lingers, __ATOMIC_SEQ_CST);
  const bool has_records = __atomic_load_n(&collector.has_records, __ATOMIC_SEQ_CST),
             has_more = collector_work->has_new_pairs() || has_records;
  if (has_more && !is_waiting) return;
  prof_i_port_wait(&collector.wake_word, seen, max_wait_ns(is_waiting, lingers));
  __atomic_store_n(&collector.is_sleeping, 0, __ATOMIC_RELAXED);
}

static void *collector_main(void *unused) {
  (void)unused;
  prof_i_port_thread_begin("prof-collector");
  collector.idle_rounds = LINGER_ROUNDS;
  for (;;) {
    const uint32_t seen = __atomic_load_n(&collector.wake_word, __ATOMIC_ACQUIRE),
                   rounds_requested =
                       __atomic_load_n(&collector.rounds_requested, __ATOMIC_ACQUIRE);
    const bool is_last = !is_collector_on();
    __atomic_store_n(&collector.has_records, 0, __ATOMIC_SEQ_CST);
    const uint32_t found = collector_work->round(
        is_last || rounds_requested != __atomic_load_n(&collector.done, __ATOMIC_RELAXED));
    if (found & PROF_I_ROUND_HAD_WORK) collector.idle_rounds = 0;
    if (is_last) collector_work->end_recording();
    __atomic_store_n(&collector.done, rounds_requested, __ATOMIC_RELEASE);
    prof_i_port_wake(&collector.done);
    if (is_last) {
      /* from now on there may be another thread: this one touches no shared state any more */
      __atomic_store_n(&collector.state, COLLECTOR_OFF, __ATOMIC_SEQ_CST);
      prof_i_port_wake(&collector.state);
      restart_if_recording();
      return NULL;
    }
    wait_for_work(seen, found & PROF_I_ROUND_WAITING);
  }
}

/* ---- waking it ---- */

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

bool prof_i_collector_request_round(uint32_t patience_ms) {
  const uint32_t number = __atomic_add_fetch(&collector.rounds_requested, 1, __ATOMIC_SEQ_CST);
  const uint64_t begun = prof_i_port_monotonic_ns(), max_ns = patience_ms * UINT64_C(1000000);
  raise_wake_word();
  for (uint32_t done;
       (int32_t)((done = __atomic_load_n(&collector.done, __ATOMIC_ACQUIRE)) - number) < 0;) {
    const uint64_t passed = prof_i_ns_since(begun);
    if (passed >= max_ns) return false;
    prof_i_port_wait(&collector.done, done, max_ns - passed);
  }
  return true;
}

void prof_i_collector_flush(uint32_t patience_ms) {
  if (is_collector_on()) prof_i_collector_request_round(patience_ms);
}

/* ---- its life ---- */

PROF_I_COLD void prof_i_collector_thread_set_work(const prof_i_collector_work *work) {
  collector_work = work;
}

void prof_i_collector_stop(void) {
  prof_i_thread_lock(&collector.lock);
  if (is_collector_on()) {
    const uint64_t patience_ms = collector_work->stop_patience_ms();
    __atomic_store_n(&collector.state, COLLECTOR_CLOSING, __ATOMIC_SEQ_CST);
    raise_wake_word();
    /* If it hangs in a vendor's call, or has no processor, it ends by itself. Until then there is
       no other. */
    if (!prof_i_port_join(collector.thread, &collector.state, COLLECTOR_CLOSING,
                          patience_ms * 1000000))
      pthread_detach(collector.thread);
  }
  prof_i_thread_unlock(&collector.lock);
}

static void stop_collector_at_exit(void) {
  __atomic_store_n(&collector.is_exiting, 1, __ATOMIC_RELAXED);
  prof_i_collector_stop();
}

void prof_i_collector_register_exit(void) { atexit(stop_collector_at_exit); }

static void create_collector_thread(void) {
  if (!collector.has_exit_handler) {
    collector.has_exit_handler = true;
    /* before the vendors' libraries, which were loaded before */
    atexit(stop_collector_at_exit);
  }
  __atomic_store_n(&collector.state, COLLECTOR_ON, __ATOMIC_RELEASE);
  if (prof_i_port_thread_create(&collector.thread, 0, collector_main, NULL) != 0)
    __atomic_store_n(&collector.state, COLLECTOR_OFF, __ATOMIC_RELEASE);
}

bool prof_i_collector_ensure(void) {
  if (PROF_I_LIKELY(is_collector_on())) return true;
  if (!collector_work || !prof_i_session_is_recording() || !prof_i_thread_try_lock(&collector.lock))
    return false;
  if (__atomic_load_n(&collector.state, __ATOMIC_ACQUIRE) == COLLECTOR_OFF)
    create_collector_thread();
  prof_i_thread_unlock(&collector.lock);
  return is_collector_on();
}

void prof_i_collector_count_loss(int loss) {
  prof_i_thread_lose_outside(prof_i_this_thread, loss, 1);
}

void prof_i_collector_thread_forget(void) {
  pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
  collector.lock = fresh;
  collector.state = COLLECTOR_OFF;
  collector.is_sleeping = collector.has_records = 0;
}
