/* The process that the library's state belongs to, this copy of the library, the calling thread
   with its marks for signal handlers, and lists between threads. */
#ifndef PROF_BASE_PROCESS_H
#define PROF_BASE_PROCESS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "port.h"

/* ---- this process ----

   A child made by _Fork() or a raw clone() runs no fork handlers: it is known by a page that the
   kernel empties in children. A child of vfork() shares all memory, and counts as its parent. */

/* Calls `become_child` in each child of this process, once, before anything else of prof is used
   there. The call must be signal-safe. */
void prof_i_process_watch(void (*become_child)(void));

/* True if the state belongs to the calling process. A child becomes its owner first. False: another
   thread, or the code that this handler interrupted, is doing so: the caller must return. Costs two
   loads otherwise. Signal-safe. */
bool prof_i_process_is_own(void);

/* The same from a fork handler: some emulators empty no page. */
void prof_i_process_after_fork(void);

/* The process's number, also in a child of vfork(). become_child() sets it. */
pid_t prof_i_process_id(void);
void prof_i_process_set_id(pid_t id);

/* ---- this copy ----

   The library may be in a process more than once, inside several shared objects or beside
   libprof.so. */

/* Whether the call sites of this copy use this copy. If another copy comes first in the dynamic
   linker's search order, all call sites use that one. Then this copy must not change the level that
   they read. Any thread. */
bool prof_i_duplicate_is_in_force(void);

/* PROF_OK, or a refusal that names the copy that is in force. Any thread. */
int prof_i_duplicate_check(void);

/* Whether dlclose() may unmap this copy. It never unmaps libprof.so, a program, or a library linked
   with -z nodelete. For the static library, the pkg-config file and CMake's target set that
   option. */
bool prof_i_duplicate_can_unload(void);

/* ---- this thread ----

   Its own flags, and the marks that let a signal handler see what it interrupted. The flags are in
   port_thread.c. */

enum {
  /* the level before the fork, + 1: the parent may stop before the child looks */
  PROF_I_FORK_LEVEL = 3,
  PROF_I_FORK_HAS_LOCK = 4 /* it took the control lock: several may be in fork */
};

/* What else is this thread's own. Small, since static thread-local storage is scarce. Bytes, not
   bits: a handler may write one while the thread writes another. Three share a byte: a handler that
   sets one takes it back before it returns. */
typedef struct prof_i_thread_flags {
  /* The serial under which the thread ended: what destructors still record is the same thread's.
     0: it has not ended. With PROF_I_REFUSED: it has not ended, and was refused a place; see
     is_still_refused() in core/buffer/thread.c. Read it by prof_i_thread_exited_serial(). */
  uint64_t exited_or_refused;
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
  uint8_t last_error; /* src/base/error.c */
  /* it has the control lock, or waits for it: a handler that finds this set can never have it */
  bool is_at_control;
  bool begins_pools;          /* src/memory/pool_state.c */
  bool fails_silently;        /* src/base/error.c */
  bool is_loading_plugin : 1; /* src/device/plugin.c */
  bool is_making_text : 1;    /* src/python/scope.c */
  bool takes_faults : 1;      /* the helper: see core/buffer/arena.c */
} prof_i_thread_flags;
extern __thread prof_i_thread_flags prof_i_this_flags
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

#define PROF_I_REFUSED (1ull << 63)

/* 0: the thread has not ended. */
static inline uint64_t prof_i_thread_exited_serial(void) {
  const uint64_t word = prof_i_this_flags.exited_or_refused;
  return word & PROF_I_REFUSED ? 0 : word;
}

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

/* ---- public calls in a signal handler ----

   The first check of public calls that take a lock, allocate memory or write files. A signal
   handler may have interrupted prof on the same thread. The interrupted call releases its locks
   only after the handler has returned. So calls of the handler are refused at once. */

/* True: a handler that interrupted prof calls, and the error's text names the call. Callbacks that
   prof calls outside of its locks are not refused. Signal-safe. */
bool prof_i_reentry_is_refused(const char *call);

/* If the call is refused, returns the argument: PROF_E_BUSY, or nothing. */
#define PROF_I_REFUSE_INTERRUPTED(...) \
  if (prof_i_reentry_is_refused(__func__)) return __VA_ARGS__

/* ---- lists between threads ----

   A list to which any thread pushes, and which one thread takes whole. Lock-free. A node belongs to
   the list until it is taken, and has a member `next` of its own type.

   Macros, because the types of nodes differ. `newest` is the address of the list: the newest node,
   or NULL. Each argument is evaluated several times. */

/* Any thread. The release makes the node's content visible to the thread that takes or follows the
   list with acquire. */
#define PROF_I_PUSH(newest, node)                                                                 \
  do {                                                                                            \
    (node)->next = __atomic_load_n((newest), __ATOMIC_RELAXED);                                   \
  } while (!__atomic_compare_exchange_n((newest), &(node)->next, (node), false, __ATOMIC_RELEASE, \
                                        __ATOMIC_RELAXED))

/* Sets `oldest` to all nodes, the oldest first, or to NULL. Later pushes begin a new list. */
#define PROF_I_TAKE_PUSHED(newest, oldest)                                                   \
  do {                                                                                       \
    __typeof__(oldest) node_ = __atomic_exchange_n((newest), NULL, __ATOMIC_ACQUIRE), next_; \
    for ((oldest) = NULL; node_; node_ = next_) {                                            \
      next_ = node_->next;                                                                   \
      node_->next = (oldest);                                                                \
      (oldest) = node_;                                                                      \
    }                                                                                        \
  } while (0)

#endif
