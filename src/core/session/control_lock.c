/* The control lock, and transitions: changes of the capture that release the lock while they wait
   for something slow. See internal.h. */
#define _GNU_SOURCE
#include <pthread.h>

#include "../../base/fault.h"
#include "../../base/port.h"
#include "../../base/process.h"
#include "../buffer/chunk.h"
#include "../buffer/mapping.h"
#include "../buffer/session.h"
#include "internal.h"

prof_i_control_state prof_i_control = {.lock = PTHREAD_MUTEX_INITIALIZER};

prof_i_transition prof_i_control_transition(void) {
  return __atomic_load_n(&prof_i_control.transition, __ATOMIC_ACQUIRE);
}

/* A fork while another thread has the lock needs the handlers, so they are registered before
   anybody takes it. A child that was forked without handlers gets a new lock from
   prof_i_process_is_own(): the owner of its parent's lock does not exist in it. */
static bool control_lock_with(int (*take)(pthread_mutex_t *mutex)) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  const int was = prof_i_port_disable_cancel();
  const uint64_t was_mask = prof_i_port_hold_signals(); /* no handler forks or jumps meanwhile */
  prof_i_process_is_own();
  const bool was_there = prof_i_this_flags.is_at_control;
  prof_i_this_flags.is_at_control = true; /* a handler's call is refused: see base/process.h */
  PROF_I_SIGNAL_FENCE();
  pthread_once(&once, prof_i_control_register_fork_handlers);
  if (!PROF_I_FAULT(NO_LOCK) && take(&prof_i_control.lock) != 0) {
    prof_i_this_flags.is_at_control = was_there;
    prof_i_port_release_signals(&was_mask);
    prof_i_port_restore_cancel(&was);
    return false;
  }
  prof_i_control.was_cancel = was;
  prof_i_control.was_mask = was_mask;
  prof_i_control.was_at_control = was_there;
  return true;
}

void prof_i_control_lock_now(void) { control_lock_with(pthread_mutex_lock); }
void prof_i_control_unlock(void) {
  const int was = prof_i_control.was_cancel;
  const uint64_t was_mask = prof_i_control.was_mask;
  const bool was_there =
      prof_i_control.was_at_control; /* true in a handler inside a call that has the lock */
  /* A start that releases the lock must not be delayed by unmapping. */
  const bool may_unmap = prof_i_control_transition() != PROF_I_TRANSITION_START;
  struct prof_i_unmap_list *unused = may_unmap ? prof_i_mapping_take_unmap_list() : NULL;
  if (unused && prof_i_control_transition() != PROF_I_TRANSITION_STOP &&
      prof_i_helper_unmap(unused))
    unused = NULL;
  if (!PROF_I_FAULT(NO_LOCK)) pthread_mutex_unlock(&prof_i_control.lock);
  PROF_I_SIGNAL_FENCE();
  prof_i_this_flags.is_at_control = was_there;
  prof_i_port_release_signals(&was_mask);
  prof_i_mapping_unmap_list(unused);
  prof_i_port_restore_cancel(&was);
}

/* A start waits for every transition. A call that ends something waits only for a stop, because an
   unfinished start has begun nothing. */
static void lock_after_transition(bool is_start) {
  enum { A_SECOND_NS = 1000000000 };
  prof_i_control_lock_now();
  for (prof_i_transition now; (now = prof_i_control_transition()) == PROF_I_TRANSITION_STOP ||
                              (is_start && now != PROF_I_TRANSITION_NONE);) {
    if (now == PROF_I_TRANSITION_MADE) {
      prof_i_child_finish();
      continue;
    }
    prof_i_control_unlock();
    prof_i_port_wait(&prof_i_control.transition, now, A_SECOND_NS);
    prof_i_control_lock_now();
  }
}

void prof_i_control_lock_before_start(void) { lock_after_transition(true); }
void prof_i_control_lock_to_clear(void) { lock_after_transition(false); }
/* A child's file is usually created quickly. So a concurrent call waits for it up to 10 ms. */
static void await_child(void) {
  enum { PATIENCE_NS = 10000000 };
  if (!__atomic_load_n(&prof_i_the_session.child_waits, __ATOMIC_RELAXED)) return;
  const uint64_t begun = prof_i_port_monotonic_ns();
  for (uint64_t past; prof_i_control_transition() == PROF_I_TRANSITION_START &&
                      (past = prof_i_ns_since(begun)) < PATIENCE_NS;)
    prof_i_port_wait(&prof_i_control.transition, PROF_I_TRANSITION_START, PATIENCE_NS - past);
}

void prof_i_control_lock(void) {
  await_child();
  prof_i_control_lock_now();
  if (prof_i_control_transition() == PROF_I_TRANSITION_MADE) prof_i_child_finish();
}

prof_i_lock_context prof_i_control_begin_transition(prof_i_transition what) {
  const prof_i_lock_context before = {prof_i_control.was_cancel, prof_i_control.was_mask,
                                      prof_i_control.was_at_control};
  prof_i_control.was_cancel = prof_i_port_disable_cancel();
  /* A child that a handler forked in the middle of a start would have its parent's new file. */
  if (what == PROF_I_TRANSITION_START) prof_i_control.was_mask = prof_i_port_hold_signals();
  prof_i_control.was_at_control = true;
  __atomic_store_n(&prof_i_control.transition, what, __ATOMIC_RELAXED);
  prof_i_control_unlock();
  return before;
}

void prof_i_control_end_transition(const prof_i_lock_context *before) {
  prof_i_control_lock_now();
  prof_i_control.was_cancel = before->was_cancel;
  prof_i_control.was_mask = before->was_mask;
  prof_i_control.was_at_control = before->was_there;
  __atomic_store_n(&prof_i_control.transition, PROF_I_TRANSITION_NONE, __ATOMIC_RELEASE);
  prof_i_port_wake(&prof_i_control.transition);
}

bool prof_i_control_try_lock(void) { return control_lock_with(pthread_mutex_trylock); }
