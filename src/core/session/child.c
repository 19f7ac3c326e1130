/* A forked child continues its parent's recording in its own capture, in three steps: planning,
   creating the file without the lock, and beginning. If the template has no pid, the child adds a
   suffix to the name: the parent may have ended, and its trace must stay. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdio.h>

#include "../../base/log.h"
#include "../../base/port.h"
#include "../../base/this_thread.h"
#include "../buffer/arena.h"
#include "../buffer/session.h"
#include "internal.h"
#include "memory_hooks.h"

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

/* A child's first scope. It uses trylock: this may be a handler that interrupted code which the
   lock's owner waits for. The next owner of the lock after the file's creation continues. */
void prof_i_control_make_child(void) {
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
