/* What happens at fork(), and what a process needs before its first start. A forked child shares no
   memory with its parent's capture: see child.c for its own. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <unistd.h>

#include "../../base/log.h"
#include "../../base/port.h"
#include "../../base/process.h"
#include "../../base/this_thread.h"
#include "../buffer/arena.h"
#include "../buffer/chunk.h"
#include "../buffer/clock.h"
#include "../buffer/mapping.h"
#include "../buffer/meta.h"
#include "../buffer/session.h"
#include "../buffer/snapshot_pin.h"
#include "../buffer/thread.h"
#include "../record/cost_sample.h"
#include "budget.h"
#include "internal.h"
#include "level_request.h"
#include "memory_hooks.h"

/* Takes the lock, unless a start is creating a file: the child would inherit its descriptor. Does
   not wait. */
static bool try_lock_for_fork(void) {
  if (pthread_mutex_trylock(&prof_i_control.lock) != 0) return false;
  if (prof_i_control_transition() != PROF_I_TRANSITION_START) return true;
  pthread_mutex_unlock(&prof_i_control.lock);
  return false;
}

/* Waits at most 10 ms, because the lock's owner must not delay the host's fork. The child needs
   nothing of what the owner does. pthread_mutex_timedlock() would use CLOCK_REALTIME, and
   nanosleep() is a cancellation point. */
static void control_before_fork(void) {
  enum { PATIENCE_NS = 10000000, NAP_NS = 100000 };
  const uint64_t begun = prof_i_port_monotonic_ns();
  const bool was_there = prof_i_this_flags.is_at_control;
  bool has_lock;
  prof_i_this_flags.is_at_control = true; /* until the fork ends, if this thread gets the lock */
  PROF_I_SIGNAL_FENCE();
  while (!(has_lock = try_lock_for_fork()) && prof_i_ns_since(begun) < PATIENCE_NS) {
    uint32_t nobody_wakes_it = 0;
    prof_i_port_wait(&nobody_wakes_it, 0, NAP_NS);
  }
  if (!has_lock) has_lock = pthread_mutex_trylock(&prof_i_control.lock) == 0;
  if (has_lock)
    prof_i_control.was_at_control = was_there;
  else
    prof_i_this_flags.is_at_control = was_there;
  /* With the lock, no start or stop of another thread is half done. */
  prof_i_this_flags.fork =
      (uint8_t)((prof_i_arena_level() + 1) | (has_lock ? PROF_I_FORK_HAS_LOCK : 0));
  PROF_I_MEMORY(before_fork);
}

static void control_after_fork_parent(void) {
  const bool has_lock = prof_i_this_flags.fork & PROF_I_FORK_HAS_LOCK;
  prof_i_this_flags.fork = 0;
  if (!has_lock) return;
  prof_i_snapshot_pin_fork();
  const bool was_there = prof_i_control.was_at_control;
  pthread_mutex_unlock(&prof_i_control.lock);
  PROF_I_SIGNAL_FENCE();
  prof_i_this_flags.is_at_control = was_there;
}

/* Only the forking thread exists here. What the parent's other threads held is gone with them. The
   arena is the parent's. */
static void reset_in_child(void) {
  PROF_I_DISABLE_CANCEL;
  const int saved = errno;
  const uint32_t before = prof_i_this_flags.fork & PROF_I_FORK_LEVEL;
  uint32_t level = before ? before - 1 : prof_i_arena_level();
  /* A daemon forks twice, perhaps without a scope in between. */
  const bool was_recording =
      prof_i_the_session.is_recording && prof_i_control_transition() != PROF_I_TRANSITION_STOP;
  const bool goes_on =
      prof_i_level_request_forget(&level) && (was_recording || prof_i_the_session.child_waits);
  prof_i_the_session.forked_at = prof_i_clock_kind() ? prof_i_clock_ticks() : 0;
  prof_i_arena_guard_reset();
  prof_i_helper_forget();
  prof_i_budget_forget();
  prof_i_cost_sample_forget();
  PROF_I_MEMORY(forget, before != 0);
  prof_i_clock_forget();
  prof_i_thread_forget_all();
  prof_i_mapping_forget();
  prof_i_arena_forget(level);
  prof_i_the_session.since = 0;
  if (prof_i_control_device_hooks()) prof_i_control_device_hooks()->forget();
  prof_i_meta_reset();
  prof_i_the_session.is_recording = prof_i_control.transition = 0;
  prof_i_control.is_unsettled = false;
  prof_i_control.child_status = PROF_OK;
  prof_i_process_set_id(getpid());
  prof_i_the_session.child_waits = goes_on;
  if (!goes_on) PROF_I_MEMORY(end);
  /* If a handler forked, the child returns into the interrupted call: it keeps that state. */
  if (prof_i_this_flags.fork & PROF_I_FORK_HAS_LOCK)
    prof_i_this_flags.is_at_control = prof_i_control.was_at_control;
#if defined(PROF_I_TSAN) /* ThreadSanitizer does not see that the lock is new */
  if (prof_i_this_flags.fork & PROF_I_FORK_HAS_LOCK) pthread_mutex_unlock(&prof_i_control.lock);
#endif
  pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
  prof_i_control.lock = fresh;
  errno = saved;
}

static void control_after_fork_child(void) {
  prof_i_process_after_fork();
  prof_i_this_flags.fork = 0;
}

void prof_i_control_register_fork_handlers(void) {
  /* These first: another thread may fork as soon as the handlers exist, and they call both. */
  prof_i_the_session.make_child = prof_i_control_make_child;
  prof_i_process_watch(reset_in_child);
  prof_i_control.fork_error =
      pthread_atfork(control_before_fork, control_after_fork_parent, control_after_fork_child);
}

int prof_i_control_prepare_process(void) {
  if (prof_i_control.fork_error)
    prof_i_control.fork_error =
        pthread_atfork(control_before_fork, control_after_fork_parent, control_after_fork_child);
  int error = prof_i_control.fork_error;
  if (!error) error = prof_i_arena_level_page(); /* a forked child may not have its own yet */
  if (error) return prof_i_fail(PROF_E_NO_MEMORY, "cannot start: %s", prof_i_error_text(error));
  prof_i_control.prepared = true;
  return PROF_OK;
}

/* The library is being unloaded. The helper, and threads that end later, must not run its code any
   more. */
void prof_i_control_unload(void) {
  prof_i_thread_remove_exit_hook();
  if (!prof_i_control.prepared) return;
  prof_i_process_is_own(); /* a child without handlers has no helper */
  prof_i_helper_stop();
}
