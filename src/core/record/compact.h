/* Entries of open scopes move down over the gaps below them.

   A block that ends below scopes begun by call leaves a gap: an entry that is gone, with
   entries above it that are open. The block's end moves those down, in their order. So gaps do
   not fill up the slot's 64 entries, and the thread stays on the fast path.

   It is safe only there. An end that a handler interrupts goes on later with the place that it
   has found, so that entry must not move in the handler. A block ends in the frame that began
   it. All that it interrupts began before the block, and has its entry below. So the entries
   above the block may move.

   An entry moves in steps, and after each of them a handler, another thread and a reader of the
   slot find the scope once.
     1. The lower place is taken: its ticks become 0.
     2. It gets the scope's words, with PROF_I_OPEN_COPY in its ticks. It does not count yet.
     3. The upper entry becomes PROF_I_OPEN_MOVED, unless another thread ends the scope before.
     4. The lower one loses its mark, and counts.
     5. The upper entry becomes PROF_I_OPEN_GONE.
   A search for a scope of another thread goes from the top down. */
#ifndef PROF_CORE_RECORD_COMPACT_H
#define PROF_CORE_RECORD_COMPACT_H

#include <stdint.h>

#include "../buffer/observer.h"

struct prof_i_thread;

/* A move under way. The owner alone. */
typedef struct prof_i_entry_move {
  struct prof_i_open_entry *from, *to; /* to: NULL, there is none. Stored last, cleared first */
  uint64_t start;                      /* the scope's ticks without flags */
  struct prof_i_thread_slot *slot;
  uint64_t is_from_deep, is_to_deep;
} prof_i_entry_move;

/* The block at that place has ended, and no block is above it: the entries above move down. Places
   count from 1: the 64 shown, then the deep ones. Past the gate, not for a slow thread. Owner
   thread. */
void prof_i_compact_above(struct prof_i_thread *thread, uint64_t open_index);

/* Finishes a move that a handler has interrupted, or that a jump has left. To be called before
   entries are read. Signal-safe. Owner thread, or the thread that reclaims it. */
void prof_i_compact_finish(struct prof_i_thread *thread);

extern const prof_i_observer prof_i_compact_observer __attribute__((visibility("hidden")));

#endif
