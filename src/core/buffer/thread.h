/* Threads: the one pointer that the hot path reads, what it points to, and how threads attach and
   end. */
#ifndef PROF_CORE_BUFFER_THREAD_H
#define PROF_CORE_BUFFER_THREAD_H

#include <stdbool.h>
#include <stddef.h>

#include "../../base/port.h"
#include "../../base/process.h"
#include "../../format/layout.h"
#include "../record/compact.h"
#include "../record/cost_sample.h"

enum {
  PROF_I_RETIRED_COUNT = 12,
  PROF_I_RECENT_NAMES = 32,
  PROF_I_NAME_MISS_COUNTS = 16,
  PROF_I_TAG_MAX = 15,  /* see ../record/open_stack.h */
  PROF_I_TAG_NONE = 16, /* of no thread */
  /* Open scopes beyond the 64 shown ones. They are remembered, or their sites would be lost. */
  PROF_I_DEEP_COUNT = 65536,
  PROF_I_HINT_COUNT = 131072,
  PROF_I_HINT_COUNT_FEW =
      8192 /* so many of the hints, while fewer than an eighth of that are deep */
};

typedef enum prof_i_life {
  PROF_I_FREE = 0,
  PROF_I_ALIVE = 1,
  PROF_I_EXITED = 2 /* its thread has ended, and the capture has not yet taken what it leaves */
} prof_i_life;

typedef struct prof_i_memory_range {
  void *at;
  uint64_t bytes;
} prof_i_memory_range;

/* What ../session/budget.c knows of a thread. The owner writes. Any thread reads the atomic
   members. Events and slots are those of the thread's chunks so far. */
typedef struct prof_i_overhead {
  uint64_t events, slots;    /* atomic */
  uint64_t from;             /* atomic: the first byte of its chunk that is its own */
  uint64_t since_ns, own_ns; /* of the window of its own time */
  uint32_t steps;            /* how many there had been when that began */
  int64_t beyond_ps;         /* of the slot's, what has been judged */
  uint64_t slow_ns;          /* of scopes by the slow path, what has not */
} prof_i_overhead;

/* The scope that began last, of a thread in the slow state. The order of its entries does not tell
   that. An end that finds its own scope here need not search all entries. */
typedef struct prof_i_newest_scope {
  uint64_t begun_count; /* raised by each begin, before it has its start */
  uint64_t at_count;    /* when this is the same, the two below are of the scope that began last */
  uint64_t start;
  uint64_t open_index; /* from 1 on: the 64 shown, then the deep ones */
} prof_i_newest_scope;

/* Blocks of a thread in the slow state that have not ended, in the order in which they began. A
   block's end removes it, and all above it. All blocks that began after one of these are above it.
   The entries tell whether they are still open. If there are more blocks, or the fast path began
   some, those are not here. Then all entries are searched. */
enum { PROF_I_OPEN_BLOCKS_COUNT = 32 };
typedef struct prof_i_open_blocks {
  struct {
    uint64_t start, open_index; /* as in prof_i_newest_scope */
  } blocks[PROF_I_OPEN_BLOCKS_COUNT];
  uint64_t count; /* raised by each begin, before it has its start */
} prof_i_open_blocks;

/* Starts of the thread's skipped blocks, whose ends may still come, for example where fibers take
   turns. Such an end must not end another thread's block that began at the same tick. If there are
   more, the oldest is forgotten. */
enum { PROF_I_SKIPPED_COUNT = 64 };
typedef struct prof_i_skipped_blocks {
  uint64_t starts[PROF_I_SKIPPED_COUNT]; /* 0: none */
  uint64_t count;                        /* that ever were */
} prof_i_skipped_blocks;

/* A thread. Never freed, but reused by another thread after this one has ended. The owner writes,
   unless a line says otherwise. */
typedef struct prof_i_thread {
  /* The first 64 bytes are zeros in a forked child that does not know yet that it is one: see
     thread_create(). */

  /* the slot, or the empty one (prof_i_no_slot) when scopes must not read the counter themselves.
     NULL in such a child */
  prof_i_thread_slot *fast;
  /* changed by one store, so that a handler never sees half of a change. prof_stop() puts `full`
     here, from any thread. NULL in such a child: the slow path asks prof_i_thread_chunk() */
  prof_i_head *chunk;
  /* equals a site's epoch when both are ready, and never while the fast path must not be taken.
     Relaxed: any thread that starts another arena clears it */
  uint32_t epoch;
  uint32_t alive;  /* prof_i_life; any thread, compare-and-swap */
  uint64_t tag;    /* see ../record/open_stack.h. Set once, before others see the thread */
  uint64_t latest; /* when its last scope began, with PROF_I_COARSE_COUNTER; in this arena */
  uint64_t chance; /* scope_slow.c; the owner alone */
  /* Hints: no entry below this one is gone, among the shown and the deep ones. Atomic, relaxed.
     Another thread that leaves a gone entry stores 0. */
  uint64_t shown_gap, deep_gap;

  /* in the arena; NULL before the first attach. Other threads read it: see
     prof_i_thread_slots_acquire() */
  prof_i_thread_slot *slot;
  /* the chunk that prof_stop() took out: its address | log2 of its bytes; any thread, exchange */
  uint64_t detached_chunk;
  /* the full chunk before this one, which stays the thread's for a while: see chunk.c. A word as
     detached_chunk; exchange */
  uint64_t previous_chunk;
  uint64_t arena;   /* number of the arena that has slot and chunk */
  uint64_t session; /* the session it last recorded in */
  /* the session for which it is getting a slot in another arena, or 0. A handler is refused
     meanwhile */
  uint64_t moving_to_session;
  /* this and the next two are atomic: a search by tid reads them, too */
  uint64_t serial;
  uint64_t tid;
  uint64_t process;       /* tells a forked parent's thread from ours */
  uint64_t next_bytes;    /* of its next chunk */
  uint64_t reserve_since; /* the header's full_ticks when the reserve was last emptied */
  /* PROF_I_DEEP_COUNT entries, then PROF_I_HINT_COUNT places as uint32_t.
     See ../record/scope_slow.c. Allocated when first needed */
  prof_i_open_entry *deep;
  uint64_t thread_kind; /* prof_i_thread_kind; atomic */
  /* its slot's payload area holds something that no entry refers to: it must not be put in order
     now */
  bool is_text_busy;
  bool is_held;            /* prof_i_thread_hold() */
  bool is_named;           /* by prof_thread_set_name(). Atomic: any thread reads it */
  uint32_t is_being_named; /* by a thread that takes a snapshot. Atomic */
  bool is_slow;            /* prof_i_thread_set_slow() */
  /* entries other than its last may be gone: a begin that finds all 64 taken searches for them. Any
     thread; release, pairs with the acquire of the owner that clears it before the search */
  uint32_t has_gaps;
  /* of the slot's payload area, since ../record/payload_area.c last searched holes. Any thread,
     relaxed */
  uint64_t hole_bytes;
  uint32_t retired_next;
  /* mappings of replaced arenas: code that a handler interrupted may still store there */
  prof_i_memory_range retired_mappings[PROF_I_RETIRED_COUNT];
  _Alignas(8) char name[PROF_I_NAME_BYTES]; /* as the owner record has it */
  prof_i_overhead overhead;
  prof_i_cost_window timing;
  prof_i_head full; /* limit 0, so that every claim fails and takes the slow path */
  const struct prof_i_name *recent[PROF_I_RECENT_NAMES]; /* see ../record/name.h; the owner alone */
  /* By call site: see prof_i_name_is_worth_look_up(). Only the owner writes; a handler's count may
     get lost. */
  uint16_t name_misses[PROF_I_NAME_MISS_COUNTS];
  prof_i_newest_scope newest, newest_block;
  prof_i_open_blocks begun;      /* the owner and its handlers */
  prof_i_skipped_blocks skipped; /* the owner and its handlers; atomic, relaxed */
  uint64_t unfinished_claim;     /* see prof_i_scope_note_failed_claim(); the owner alone */
  /* The move of an entry, see ../record/compact.h. `to` is NULL: no move is in progress. */
  prof_i_entry_move move;
  /* Locked by its thread if no destructor sees its end: see thread_exit.c. */
  pthread_mutex_t life;
  /* How other threads see that this one has ended. life_of: its serial; 0: they cannot. life_pid: 0
     if they see it by the mutex `life`. Otherwise the process in which they look for the thread's
     tid. Both atomic. */
  uint64_t life_of, life_pid;
  struct prof_i_thread *next; /* list of all threads; only grows */
} prof_i_thread;

enum { PROF_I_THREAD_WIPED_BYTES = 64 };
_Static_assert(offsetof(prof_i_thread, slot) == PROF_I_THREAD_WIPED_BYTES,
               "what a child needs of an interrupted call is behind the wiped bytes");

extern __thread prof_i_thread *prof_i_this_thread
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

extern prof_i_thread prof_i_no_thread __attribute__((visibility("hidden")));

/* Makes the calling thread ready to record in the arena and session in force. NULL: there is no
   room for it. Signal-safe. */
prof_i_thread *prof_i_thread_attach(void);

/* A device's stream or a fiber, as a thread of the capture. A thread that writes its records takes
   its identity meanwhile. */
typedef struct prof_i_virtual_thread {
  prof_i_thread *thread;        /* NULL: not attached */
  uint64_t thread_kind, handle; /* PROF_I_KIND_OF_STREAM with its device; the stream */
  char name[PROF_I_NAME_BYTES];
  /* Of a fiber: prof_i_thread_process() while a thread is in it, else 0; any thread. Then `outer`
     is that thread. */
  uint64_t on;
  struct prof_i_thread *outer;
} prof_i_virtual_thread;

/* The calling thread becomes that virtual thread, ready to record. NULL: there is no room. Only for
   a thread of prof's own, with all signals blocked. Past the gate. */
prof_i_thread *prof_i_virtual_thread_attach(prof_i_virtual_thread *virtual_thread);
/* The virtual thread has written its last record. Its chunks and losses go to the capture, its slot
   to the next thread. The same thread as at the attach, outside of the gate. */
void prof_i_virtual_thread_end(prof_i_virtual_thread *virtual_thread);

/* The calling thread becomes that fiber, and leaves the one that it was in. NULL: it is itself
   again. Does not attach: the next record does. A handler may record in between, and must not call
   these. */
void prof_i_virtual_thread_enter(prof_i_virtual_thread *virtual_thread);
/* Ends a fiber that no thread is in. */
void prof_i_virtual_thread_end_fiber(prof_i_virtual_thread *virtual_thread);
/* Tells this process from those that it was forked from. */
uint64_t prof_i_thread_process(void);

/* Holds the payload area while it has data that no open scope refers to. It takes an entry without
   a start, so that no handler believes the area to be empty. If no entry is free, no entry may be
   popped meanwhile. The result is for prof_i_thread_unhold(). Owner thread only. */
typedef enum prof_i_hold { PROF_I_HOLD_NONE, PROF_I_HOLD_ENTRY, PROF_I_HOLD_ALL } prof_i_hold;
static inline prof_i_hold prof_i_thread_hold(prof_i_thread *thread) {
  prof_i_hold hold = thread->is_held ? PROF_I_HOLD_NONE : PROF_I_HOLD_ALL;
  if (thread->slot->depth < PROF_I_OPEN_COUNT) {
    prof_i_claim(&thread->slot->depth, 1);
    hold = PROF_I_HOLD_ENTRY;
  } else {
    thread->is_held = true;
  }
  PROF_I_SIGNAL_FENCE();
  return hold;
}
static inline void prof_i_thread_unhold(prof_i_thread *thread, prof_i_hold hold) {
  PROF_I_SIGNAL_FENCE();
  if (hold == PROF_I_HOLD_ENTRY) prof_i_claim(&thread->slot->depth, (uint64_t)-1);
  if (hold == PROF_I_HOLD_ALL) thread->is_held = false;
}

/* The thread's chunk, for the slow path. */
static inline prof_i_head *prof_i_thread_chunk(prof_i_thread *thread) {
  prof_i_head *const chunk = __atomic_load_n(&thread->chunk, __ATOMIC_ACQUIRE);
  return PROF_I_LIKELY(chunk != NULL) ? chunk : &thread->full;
}

/* Is it a thread of this process, and not its copy in a child that a handler has forked? Such a
   child goes on in the call that the handler interrupted. This makes it a process of its own: the
   thread's slot and chunks are empty memory from then on. Signal-safe. */
bool prof_i_thread_is_own(const prof_i_thread *thread);

static inline bool prof_i_is_attached(const prof_i_thread *thread) {
  return thread != &prof_i_no_thread;
}

/* The list of all threads. Any thread reads and writes, by atomics, unless a member says
   otherwise. */
typedef struct prof_i_thread_registry {
  prof_i_thread *first;   /* all threads; pushed with release */
  uint64_t serials;       /* the last serial given */
  uint64_t process;       /* raised in each forked child, before it has threads; else constant */
  uint32_t looking;       /* threads that look at the slots of others */
  uint64_t search_serial; /* the serial from which on a lack of room causes a search */
  uint32_t made;          /* prof_i_thread structs */
  uint32_t search_at;     /* slots at which to search for ended threads */
  uint32_t searches;      /* under way: see prof_i_thread_end_search() */
  uint32_t left_count;    /* threads that left memory to others; wraps */
  uint32_t exited_next;   /* the next place in the list of exited threads */
} prof_i_thread_registry;
extern prof_i_thread_registry prof_i_threads __attribute__((visibility("hidden")));

/* All threads that ever recorded. Follow ->next. */
static inline prof_i_thread *prof_i_thread_first(void) {
  return __atomic_load_n(&prof_i_threads.first, __ATOMIC_ACQUIRE);
}

/* Between these, other threads' slots stay mapped, even while the gate is closed. Signal-safe; may
   nest. */
void prof_i_thread_slots_acquire(void);
void prof_i_thread_slots_release(void);
static inline prof_i_thread_slot *prof_i_thread_get_slot(const prof_i_thread *thread) {
  return __atomic_load_n(&thread->slot, __ATOMIC_SEQ_CST);
}

/* Keeps the thread off the fast path, or lets it back. Owner thread only, past the gate. */
void prof_i_thread_set_slow(prof_i_thread *thread, bool is_slow);

/* Other destructors may still record after the thread has ended, perhaps in the last round of
   destructors. Nobody sees the thread end then, so it ends again whenever it has no open scope.
   Owner thread only, outside of the gate. */
void prof_i_thread_exit_again(void);
static inline bool prof_i_thread_has_ended(void) { return prof_i_thread_exited_serial() != 0; }

/* The thread has open scopes beyond the 64 with entries in the slot, or none any more. In between,
   every begin and end takes the slow path. So the end of an entry's scope sees those that began
   after it. Owner thread only. */
void prof_i_thread_begin_deep(prof_i_thread *thread);
void prof_i_thread_end_deep(prof_i_thread *thread);

/* A move to another arena may interrupt a begin, which then fills an entry in the old slot. Removes
   such an entry. True: there was one. Owner thread only. */
bool prof_i_thread_drop_stale_entry(prof_i_thread *thread, uint64_t start);

/* That thread may have gone entries below one that is not gone. Any thread. */
static inline void prof_i_thread_note_gap(prof_i_thread *thread) {
  __atomic_store_n(&thread->has_gaps, 1, __ATOMIC_RELEASE);
}

/* An end has found no scope. Owner thread, past the gate. */
void prof_i_thread_count_stray(prof_i_thread *thread);

/* This copy of prof is being unloaded: threads end without calling it. */
void prof_i_thread_remove_exit_hook(void);

/* Another arena is in force: the next begin of every thread takes the slow path, so that it does
   not use the old arena. Control lock held, gate closed. */
void prof_i_thread_renew_all(void);

/* The sites' epoch was `was`, and has been raised. Threads whose fast path is open get the new one.
   Any thread. Signal-safe. */
void prof_i_thread_follow_epoch(uint32_t was);

/* The parts of thread->detached_chunk and ->previous_chunk. */
static inline prof_i_head *prof_i_chunk_word_address(uint64_t word) {
  return (prof_i_head *)(uintptr_t)(word & ~UINT64_C(63));
}
static inline uint64_t prof_i_chunk_word_bytes(uint64_t word) { return UINT64_C(1) << (word & 63); }

/* Takes into the capture what threads leave that ended without a destructor seeing it. Any thread.
   One system call for each live thread. */
void prof_i_thread_reap_exited(void);

/* Sets what an ending thread calls first, while it can still record: one callback for the process.
   It may be called more than once for a thread. */
void prof_i_thread_set_exit_callback(void (*leave)(void));

/* In a forked child. */
void prof_i_thread_forget_all(void);

/* Counts losses in the thread's slot, or in the header if it has none. Past the gate, because the
   arena could be replaced otherwise. */
void prof_i_thread_lose(prof_i_thread *thread, int loss, uint64_t count);
/* The same from anywhere. */
void prof_i_thread_lose_outside(prof_i_thread *thread, int loss, uint64_t count);

/* Reads the thread's name again: the last one wins. Owner thread only. */
void prof_i_thread_refresh_name(prof_i_thread *thread);
/* The same for all threads that live in this arena, with the kernel's names. Any thread. */
void prof_i_thread_refresh_names(uint64_t arena);
/* Writes it into a slot that is to be the thread's. Owner thread only. */
void prof_i_thread_write_name(prof_i_thread *thread, prof_i_thread_slot *slot);
/* Gives this name of PROF_I_NAME_BYTES to the calling thread, one of prof's own. */
void prof_i_thread_adopt_name(const char *name);
/* Copies word by word, because a slot's name may change meanwhile. `to` and `from` have
   PROF_I_NAME_BYTES and are aligned. */
void prof_i_thread_copy_name(char *to, const char *from);

/* prof_thread_set_name(). Owner thread only; works before it records. */
void prof_i_thread_store_own_name(const char *name);

/* The serial of this process's thread with that tid, or of the last one that had it, among some
   thousands of ended threads. 0: none. Any thread. */
uint64_t prof_i_thread_serial_of(uint64_t tid);

uint64_t prof_i_thread_seen_count(void);
/* Counts one loss while no arena can be touched; it is added to the arena by
   prof_i_thread_flush_losses(). Signal-safe. */
void prof_i_thread_lose_unattributed(int loss, uint64_t count);
void prof_i_thread_flush_losses(void);

uint64_t prof_i_thread_alive_count(void);

#endif
