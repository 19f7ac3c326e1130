/* What src/memory does at the turns of a session: core knows no pool. */
#ifndef PROF_CORE_SESSION_MEMORY_HOOKS_H
#define PROF_CORE_SESSION_MEMORY_HOOKS_H

#include <stdbool.h>

/* With the control lock held, unless said. */
typedef struct prof_i_memory_hooks {
  /* Memory is recorded from now on. Asks the program's queries. No lock held. */
  void (*begin)(void);
  /* The same in a forked child, which calls no query: the parent's values count. */
  void (*begin_child)(void);
  /* Memory is not recorded any more. Also in a forked child, without the lock; signal-safe. */
  void (*end)(void);
  /* Peaks begin anew. */
  void (*reset)(void);
  /* Until the next start no sums are shown. */
  void (*hide_sums)(void);
  /* Another arena: numbers begin anew. */
  void (*renumber)(void);
  /* This thread is about to fork. Any thread, also without the lock; several may be in fork. */
  void (*before_fork)(void);
  /* This is a forked child, and its parent's arena is still in force. was_before_fork:
     before_fork() was called. Signal-safe, no lock. */
  void (*forget)(bool was_before_fork);
} prof_i_memory_hooks;

/* It is src/lib that defines it. */
extern const prof_i_memory_hooks *const prof_i_the_memory_hooks
    __attribute__((visibility("hidden")));

#define PROF_I_MEMORY(hook, ...) prof_i_the_memory_hooks->hook(__VA_ARGS__)

#endif
