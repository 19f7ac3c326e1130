/* Handles fork(), and prepares a process before its first start. A forked child shares no memory
   with its parent's capture.

   The child continues the recording in a new capture, in three steps: plan, create the file without
   the lock, begin. If the template has no pid, the child adds a suffix to the name: the parent may
   have ended, and its trace must stay. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "../../base/error.h"
#include "../../base/port.h"
#include "../../base/process.h"
#include "../buffer/arena.h"
#include "../buffer/chunk.h"
#include "../buffer/clock.h"
#include "../buffer/mapping.h"
#include "../buffer/meta.h"
#include "../buffer/session.h"
#include "../buffer/snapshot_pin.h"
#include "../buffer/thread.h"
#include "../record/cost_sample.h"
#include "control.h"
#include "internal.h"

/* ---- a child's own capture ---- */

/* See internal.h. */
void prof_i_child_cancel(void) {
  __atomic_store_n(&prof_i_the_session.child_waits, 0, __ATOMIC_RELAXED);
  prof_i_arena_set_level(0);
  PROF_I_MEMORY(end);
}

/* Lock held. False: no capture is needed. */
static bool plan_child(void) {
  if (!prof_i_the_session.child_waits || prof_i_control_transition() != PROF_I_TRANSITION_NONE)
    return false;
  if (!prof_i_arena_level() && !prof_i_session_has_memory()) {
    prof_i_child_cancel();
    return false;
  }
  prof_i_control.child_options = prof_i_control.options;
  if (prof_i_control.options.path) prof_i_control.child_options.path = prof_i_control.template_;
  prof_i_fail_silently(true);
  prof_i_control.child_status = prof_i_capture_expand_template(&prof_i_control.child_options);
  prof_i_fail_silently(false);
  if (prof_i_control.child_status != PROF_OK) prof_i_child_cancel();
  return prof_i_control.child_status == PROF_OK;
}

/* Begins the child's capture, or discards it if a concurrent stop has cancelled it. Lock held. */
static void install_child_arena(void) {
  const bool wants_memory = prof_i_session_has_memory();
  prof_i_control.child_options.level = prof_i_arena_level();
  int status = prof_i_control.child_made;
  if (status == PROF_OK && prof_i_the_session.child_waits &&
      (prof_i_control.child_options.level || wants_memory))
    status = prof_i_capture_start_new(&prof_i_control.child_options,
                                      prof_i_control.options.path ? prof_i_control.template_ : "",
                                      prof_i_control.expanded, true);
  else if (status == PROF_OK)
    prof_i_arena_discard(&prof_i_control.fresh);
  const bool has_begun = prof_i_the_session.child_waits && prof_i_the_session.is_recording;
  if (prof_i_the_session.child_waits) prof_i_control.child_status = status;
  __atomic_store_n(&prof_i_the_session.child_waits, 0, __ATOMIC_RELAXED);
  if (has_begun && wants_memory) PROF_I_MEMORY(begin_child);
  if (!has_begun) prof_i_child_cancel();
}

/* In the state PROF_I_TRANSITION_MADE. Lock held. */
void prof_i_child_finish(void) {
  __atomic_store_n(&prof_i_control.transition, PROF_I_TRANSITION_NONE, __ATOMIC_RELEASE);
  prof_i_port_wake(&prof_i_control.transition);
  prof_i_fail_silently(true);
  install_child_arena();
  prof_i_fail_silently(false);
}

/* Lock held. It is released meanwhile. */
void prof_i_child_begin(void) {
  if (prof_i_control_transition() == PROF_I_TRANSITION_MADE) prof_i_child_finish();
  if (!plan_child()) return;
  prof_i_fail_silently(true);
  prof_i_control.child_made =
      prof_i_capture_make_unlocked(&prof_i_control.child_options, true, true);
  install_child_arena();
  prof_i_fail_silently(false);
}

/* Waits at most 10 ms for the lock. Its owner may begin the child's capture. */
static bool try_lock_for_child(void) {
  enum { PATIENCE_NS = 10000000, NAP_NS = 100000 };
  const uint64_t begun = prof_i_port_monotonic_ns();
  uint32_t nobody_wakes_it = 0;
  while (pthread_mutex_trylock(&prof_i_control.lock) != 0) {
    if (!__atomic_load_n(&prof_i_the_session.child_waits, __ATOMIC_RELAXED) ||
        prof_i_ns_since(begun) >= PATIENCE_NS)
      return false;
    prof_i_port_wait(&nobody_wakes_it, 0, NAP_NS);
  }
  return true;
}

/* A child's first scope makes its capture: prof_i_the_session.make_child. Signal-safe. It uses
   trylock: this may be a handler that interrupted code which the lock's owner waits for. The next
   owner of the lock after the file's creation continues. */
static void control_make_child(void) {
  PROF_I_HOLD_SIGNALS; /* as each start */
  PROF_I_DISABLE_CANCEL;
  const bool was_there = prof_i_this_flags.is_at_control;
  prof_i_this_flags.is_at_control = true;
  PROF_I_SIGNAL_FENCE();
  const int saved = errno;
  bool has_lock = pthread_mutex_trylock(&prof_i_control.lock) == 0;
  if (has_lock && plan_child()) {
    __atomic_store_n(&prof_i_control.transition, PROF_I_TRANSITION_START, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&prof_i_control.lock);
    prof_i_fail_silently(true);
    prof_i_control.child_made =
        prof_i_capture_make(&prof_i_control.child_options, prof_i_control.expanded, true, true);
    prof_i_fail_silently(false);
    __atomic_store_n(&prof_i_control.transition, PROF_I_TRANSITION_MADE, __ATOMIC_RELEASE);
    prof_i_port_wake(&prof_i_control.transition);
    has_lock = try_lock_for_child();
  }
  if (has_lock && prof_i_control_transition() == PROF_I_TRANSITION_MADE) prof_i_child_finish();
  if (has_lock) pthread_mutex_unlock(&prof_i_control.lock);
  errno = saved;
  PROF_I_SIGNAL_FENCE();
  prof_i_this_flags.is_at_control = was_there;
}

const char *prof_i_control_no_capture_reason(char *to, size_t room) {
  to[0] = '\0';
  if (prof_i_control.child_status == PROF_OK) return to;
  const char *const path = prof_i_control.options.path ? prof_i_control.expanded : "memory";
  const char *const why = prof_i_control.fresh.error
                              ? prof_i_error_text(prof_i_control.fresh.error)
                              : prof_status_text(prof_i_control.child_status);
  snprintf(to, room, "a forked child could not begin its own: %s: '%s'", why, path);
  return to;
}

/* ---- fork ---- */

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
  prof_i_the_session.make_child = control_make_child;
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
