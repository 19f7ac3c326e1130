/* The calling thread's own flags, and the marks that let a signal handler see what it
   interrupted. */
#ifndef PROF_BASE_THIS_THREAD_H
#define PROF_BASE_THIS_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "port.h"

enum {
  /* the level before the fork, + 1: the parent may stop before the child looks */
  PROF_I_FORK_LEVEL = 3,
  PROF_I_FORK_HAS_LOCK = 4 /* it took the control lock: several may be in fork */
};

/* What else is this thread's own. Small, since static thread-local storage is scarce. Bytes, not
   bits: a handler may write one while the thread writes another. Three share a byte: a handler that
   sets one takes it back before it returns. */
typedef struct prof_i_thread_flags {
  /* the serial that it ended under. What destructors still record after that is the same thread's;
     0: it has not ended */
  uint64_t exited_serial;
  /* the fiber that the thread is in; NULL: it is itself */
  struct prof_i_virtual_thread *virtual_thread;
  /* PROF_I_FORK_LEVEL, _HAS_LOCK. 0: it is not in fork, or forks without handlers */
  uint8_t fork;
  /* Calls and locks of this thread that a handler must not meet: PROF_I_INSIDE,
     prof_i_thread_lock(). */
  uint8_t inside;
  /* arena_guard.c: depth of nested passes, including those of the code that a signal handler
     interrupted. */
  uint8_t guard_depth;
  uint8_t last_error; /* src/base/log.c */
  /* it has the control lock, or waits for it: a handler that finds this set can never have it */
  bool is_at_control;
  bool begins_pools;          /* src/memory/pool_state.c */
  bool fails_silently;        /* src/base/log.c */
  bool is_loading_plugin : 1; /* src/device/plugin.c */
  bool is_making_text : 1;    /* src/python/scope.c */
  bool takes_faults : 1;      /* the helper: see make_pages() in arena.c */
} prof_i_thread_flags;
extern __thread prof_i_thread_flags prof_i_this_flags
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* To the end of the block this thread is inside a call that allocates, or writes files. */
static inline void prof_i_thread_leave_inside(const uint8_t *was) {
  PROF_I_SIGNAL_FENCE();
  prof_i_this_flags.inside = *was;
}
#define PROF_I_INSIDE                                                                            \
  const uint8_t prof_i_was_inside __attribute__((cleanup(prof_i_thread_leave_inside), unused)) = \
      prof_i_this_flags.inside++

/* Takes one of prof's locks other than the control lock. Handlers of the owner see the mark. */
static inline void prof_i_thread_lock(pthread_mutex_t *mutex) {
  prof_i_this_flags.inside++;
  PROF_I_SIGNAL_FENCE();
  pthread_mutex_lock(mutex);
}
static inline void prof_i_thread_unlock(pthread_mutex_t *mutex) {
  pthread_mutex_unlock(mutex);
  PROF_I_SIGNAL_FENCE();
  prof_i_this_flags.inside--;
}
static inline bool prof_i_thread_try_lock(pthread_mutex_t *mutex) {
  prof_i_this_flags.inside++;
  PROF_I_SIGNAL_FENCE();
  const bool has_lock = pthread_mutex_trylock(mutex) == 0;
  if (!has_lock) prof_i_this_flags.inside--;
  return has_lock;
}

/* Is this a handler that came while its thread was inside prof? */
static inline bool prof_i_thread_is_interrupted(void) {
  return prof_i_this_flags.is_at_control || prof_i_this_flags.inside;
}

/* ---- process.c: public calls in a signal handler ---- */

/* The first check of public calls that take a lock, allocate memory or write files. A signal
   handler may have interrupted prof on the same thread. The interrupted call releases its locks
   only after the handler has returned. So calls of the handler are refused at once. */

/* True: a handler that interrupted prof calls, and the error's text names the call. Callbacks that
   prof calls outside of its locks are not refused. Signal-safe. */
bool prof_i_reentry_is_refused(const char *call);

/* If the call is refused, returns the argument: PROF_E_BUSY, or nothing. */
#define PROF_I_REFUSE_INTERRUPTED(...) \
  if (prof_i_reentry_is_refused(__func__)) return __VA_ARGS__

#endif
