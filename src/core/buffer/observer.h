/* What the recorder's buffers announce to the folders above them: those are not called by name.

   An observer is one constant table in one source file. src/lib lists them. So there is no
   registration at run time. */
#ifndef PROF_CORE_BUFFER_OBSERVER_H
#define PROF_CORE_BUFFER_OBSERVER_H

#include "../../format/layout.h"

struct prof_i_thread;

/* Receives address space that threads may still point to. */
typedef void prof_i_kept_sink(void *to, void *at, uint64_t bytes);

/* Any member may be NULL. Unless said, they are called on the thread itself, past the gate, and
   must be signal-safe. */
typedef struct prof_i_observer {
  /* The thread is new, or comes to another arena: it has recorded nothing there. */
  void (*thread_attached)(struct prof_i_thread *thread);
  /* The thread records into this chunk from now on. */
  void (*chunk_entered)(struct prof_i_thread *thread, const prof_i_head *chunk);
  /* The thread's next records go to `fresh`, which no other thread claims from. old: its chunk up
     to now, or NULL. Comes before chunk_filled() and chunk_entered(). */
  void (*chunk_changed)(struct prof_i_thread *thread, prof_i_head *old, prof_i_head *fresh);
  /* The thread claims from `from` to `to`, and has reached a limit that an observer has set. */
  void (*limit_reached)(struct prof_i_thread *thread, prof_i_head *chunk, uint64_t from,
                        uint64_t to);
  /* The thread has filled its part of the chunk. The change took change_ns of processor time. Comes
     before the chunk_entered() of the next one. */
  void (*chunk_filled)(struct prof_i_thread *thread, const prof_i_head *chunk, uint64_t change_ns);
  /* The thread ends. chunk: its last one, or NULL. On the thread itself, or on one that cleans up
     after it. So is thread_left(). */
  void (*thread_ended)(struct prof_i_thread *thread, const prof_i_head *chunk);
  /* The thread has written its last record. */
  void (*thread_left)(struct prof_i_thread *thread);
  /* The thread's entries of open scopes are about to be read: what a handler interrupted is to be
     completed. On the thread itself, or on one that cleans up after it. */
  void (*entries_needed)(struct prof_i_thread *thread);
  /* At most so many pieces of address space are kept. Control lock held. */
  size_t (*kept_count)(void);
  /* Tells each piece that lies in the range. Control lock held. */
  void (*each_kept)(const char *base, uint64_t bytes, prof_i_kept_sink *sink, void *to);
} prof_i_observer;

/* All observers; NULL ends the list. It is src/lib that defines it. */
extern const prof_i_observer *const prof_i_observers[] __attribute__((visibility("hidden")));

/* Calls a member of each observer that has it. */
#define PROF_I_ANNOUNCE(member, ...)                                                     \
  for (const prof_i_observer *const *observer = prof_i_observers; *observer; observer++) \
    if ((*observer)->member) (*observer)->member(__VA_ARGS__)

#endif
