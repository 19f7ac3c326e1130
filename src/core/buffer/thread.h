/* Threads: the one pointer that the hot path reads, what it points to, and how threads come and
   go. */
#ifndef PROF_CORE_BUFFER_THREAD_H
#define PROF_CORE_BUFFER_THREAD_H

#include <stdbool.h>

#include "../../base/port.h"
#include "../../base/this_thread.h"
#include "../../format/layout.h"
#include "../record/compact.h"
#include "../record/cost_sample.h"

enum {
  PROF_I_RETIRED_COUNT = 12,
  PROF_I_RECENT_NAMES = 32,
  PROF_I_NAME_MISS_COUNTS = 16,
  PROF_I_TAG_MAX = 15,  /* see open_stack.h */
  PROF_I_TAG_NONE = 16, /* of no thread */
  /* Open scopes below the 64 shown: remembered, or the site would be lost. */
  PROF_I_DEEP_COUNT = 65536,
  PROF_I_HINT_COUNT = 131072,
  PROF_I_HINT_COUNT_FEW = 8192 /* of these, while fewer than an eighth of them are deep */
};

typedef enum prof_i_life {
  PROF_I_FREE = 0,
  PROF_I_ALIVE = 1,
  PROF_I_EXITED = 2 /* its thread has ended, and what it leaves is not yet in the capture */
} prof_i_life;

typedef struct prof_i_memory_range {
  void *at;
  uint64_t bytes;
} prof_i_memory_range;

/* What the budget knows of a thread: see budget.c. The owner writes; any thread reads the atomic
   ones. Events and slots are of the thread's chunks so far. */
typedef struct prof_i_overhead {
  uint64_t events, slots;    /* atomic */
  uint64_t from;             /* atomic: the first byte of its chunk that is its own */
  uint64_t since_ns, own_ns; /* of the window of its own time */
  uint32_t steps;            /* how many there had been when that began */
  int64_t beyond_ps;         /* of the slot's, what has been judged */
  uint64_t slow_ns;          /* of scopes by the slow path, what has not */
} prof_i_overhead;

/* The scope that began last. Of a thread in the slow state, whose entries' order does not tell: an
   end that finds its own scope here need not look at all the others. */
typedef struct prof_i_newest_scope {
  uint64_t begun_count; /* raised by each begin, before it has its start */
  uint64_t at_count;    /* when this is the same, the two below are of the scope that began last */
  uint64_t start;
  uint64_t place; /* from 1 on: the 64 shown, then the deep ones */
} prof_i_newest_scope;

/* Blocks of a thread in the slow state that have not ended, in the order in which they began. Its
   end takes a block off, and what stands above it. Of one that is here, all that began later are
   above. Entries tell whether they still stand open. More than that many, or what the fast path
   began, are not here: then all entries are looked at. */
enum { PROF_I_OPEN_BLOCKS_COUNT = 32 };
typedef struct prof_i_open_blocks {
  struct {
    uint64_t start, place; /* as in prof_i_newest_scope */
  } blocks[PROF_I_OPEN_BLOCKS_COUNT];
  uint64_t count; /* raised by each begin, before it has its start */
} prof_i_open_blocks;

/* Starts of blocks of the thread that were skipped and whose own ends may yet come, as where fibers
   take turns. An end of these must take no other thread's block, which may have begun at the same
   tick. More are forgotten, the oldest first. */
enum { PROF_I_SKIPPED_COUNT = 64 };
typedef struct prof_i_skipped_blocks {
  uint64_t starts[PROF_I_SKIPPED_COUNT]; /* 0: none */
  uint64_t count;                        /* that ever were */
} prof_i_skipped_blocks;

/* A thread. Never freed while the thread lives; re-used by another after it has gone. The owner
   writes, unless a line says otherwise. */
typedef struct prof_i_thread {
  /* the slot, or the empty one when scopes must not read the counter themselves. NULL, as all of
     this is, in a forked child that does not know yet that it is one */
  prof_i_thread_slot *fast;
  /* swapped whole: a handler never sees half of a change. prof_stop() puts `full` here, from any
     thread */
  prof_i_head *chunk;
  /* equals a site's when both are ready; never while the fast path must not be taken. Relaxed: the
     start of another arena takes it away from any thread */
  uint32_t epoch;
  uint32_t alive; /* prof_i_life; any thread, compare-and-swap */
  /* in the arena; NULL before the first attach. Others may look: see
     prof_i_thread_slots_acquire() */
  prof_i_thread_slot *slot;
  uint64_t tag; /* see open_stack.h. Set once, before others see the thread */
  /* the chunk that prof_stop() took out: its address | log2 of its bytes; any thread, exchange */
  uint64_t detached_chunk;
  /* the full chunk before this one, which it has not left yet: see chunk.c; as parked; exchange */
  uint64_t previous_chunk;
  uint64_t arena;   /* number of the arena that slot and chunk stand in */
  uint64_t session; /* the session it last recorded in */
  /* the session for which it is just getting a slot in another arena, or 0: a handler that comes
     meanwhile is refused */
  uint64_t moving_to_session;
  uint64_t latest; /* when its last scope began, with PROF_I_COARSE_COUNTER; in this arena */
  /* this and the next two: whoever looks for a thread by its number reads them, too; atomic */
  uint64_t serial;
  uint64_t tid;
  uint64_t process;       /* tells a forked parent's thread from ours */
  uint64_t next_bytes;    /* of its next chunk */
  uint64_t reserve_since; /* the header's full_ticks when the reserve was last emptied */
  /* PROF_I_DEEP_COUNT entries, then PROF_I_HINT_COUNT places as uint32_t: see scope_slow.c. Made
     when first needed */
  prof_i_open_entry *deep;
  uint64_t thread_kind; /* prof_i_thread_kind; atomic */
  /* its slot's text area holds what no entry tells: it must not be put in order now */
  bool is_text_busy;
  bool is_held;            /* prof_i_thread_hold() */
  bool is_named;           /* by prof_thread_set_name(). Atomic: any thread reads it */
  uint32_t is_being_named; /* by a thread that takes a trace. Atomic */
  bool is_slow;            /* prof_i_thread_set_slow() */
  /* entries that are not its last may be gone: a begin that finds all 64 taken looks for them. Any
     thread; release, pairs with the acquire of the owner who takes it back to look */
  uint32_t has_gaps;
  /* of the slot's text area, since they were looked for: see payload_area.c. Any thread, relaxed */
  uint64_t hole_bytes;
  uint32_t retired_next;
  /* old chunks, mapped to nothing: a sleeping handler's victim may still store there */
  prof_i_memory_range retired_mappings[PROF_I_RETIRED_COUNT];
  _Alignas(8) char name[PROF_I_NAME_BYTES]; /* as the owner record has it */
  prof_i_overhead overhead;
  prof_i_cost_window timing;
  prof_i_head full; /* limit 0: every claim fails and takes the slow path */
  const struct prof_i_name *recent[PROF_I_RECENT_NAMES]; /* see name.h; the owner alone */
  /* By call site: see prof_i_name_is_worth_look_up(). The owner alone: a handler's count may get
     lost. */
  uint16_t name_misses[PROF_I_NAME_MISS_COUNTS];
  prof_i_newest_scope newest, newest_block;
  prof_i_open_blocks begun;      /* the owner and its handlers */
  prof_i_skipped_blocks skipped; /* the owner and its handlers; atomic, relaxed */
  uint64_t chance;               /* scope_slow.c; the owner alone */
  uint64_t unfinished_claim;     /* see prof_i_scope_note_failed_claim(); the owner alone */
  /* No entry below it is gone, as far as the thread knows: of the shown and the deep ones. A hint;
     atomic, relaxed: another thread that leaves one gone puts 0 there. */
  uint64_t shown_gap, deep_gap;
  prof_i_entry_move move; /* of an entry, under way: see compact.h; to is NULL else */
  /* Locked by its thread where that has no destructor to see it end: see thread.c. */
  pthread_mutex_t life;
  /* How other threads can find that this one has ended. life_of: its serial, or 0 where they
     cannot. life_pid: 0 where the mutex `life` tells it, else the process of which the kernel is
     asked for the thread's tid. Both atomic. */
  uint64_t life_of, life_pid;
  struct prof_i_thread *next; /* all that ever were; only grows */
} prof_i_thread;

extern __thread prof_i_thread *prof_i_this_thread
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

extern prof_i_thread prof_i_no_thread __attribute__((visibility("hidden")));

/* This thread, ready to record in the arena and session in force; NULL when there is no room for
   it. Signal-safe. */
prof_i_thread *prof_i_thread_attach(void);

/* A device's stream or a fiber, as a thread of the capture. The thread that writes its records is
   that thread for so long. */
typedef struct prof_i_virtual_thread {
  prof_i_thread *thread;        /* NULL: not attached */
  uint64_t thread_kind, handle; /* PROF_I_KIND_OF_STREAM with its device; the stream */
  char name[PROF_I_NAME_BYTES];
  /* Of fibers: prof_i_thread_process() while a thread is in it, else 0; any thread. And that
     thread. */
  uint64_t on;
  struct prof_i_thread *outer;
} prof_i_virtual_thread;

/* The calling thread is that line from here on, ready to record; NULL: there is no room. It must be
   nobody else: a thread of prof's own, all signals blocked. Past the gate. */
prof_i_thread *prof_i_virtual_thread_attach(prof_i_virtual_thread *virtual_thread);
/* The line's last record has been written: its chunks and losses go to the capture, its slot to the
   next thread. The same thread; the gate is open. */
void prof_i_virtual_thread_end(prof_i_virtual_thread *virtual_thread);

/* The calling thread is that line, a fiber, until it leaves; in another one it leaves that first.
   Attaches nothing: the next record does. A handler may record in between, and must not call these.
   No line: the calling thread is itself again. */
void prof_i_virtual_thread_enter(prof_i_virtual_thread *virtual_thread);
/* Ends a line that no thread is in. */
void prof_i_virtual_thread_end_fiber(prof_i_virtual_thread *virtual_thread);
/* Tells this process from those that it was forked from. */
uint64_t prof_i_thread_process(void);

/* Takes an entry without a start, so that no handler believes the text area to be empty while
   something of ours is in it and no scope may stand open; where there is none left, nothing may be
   taken off meanwhile. What it returns is for prof_i_thread_unhold(). Owner thread only. */
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

static inline bool prof_i_is_attached(const prof_i_thread *thread) {
  return thread != &prof_i_no_thread;
}

/* All threads that ever were; follow ->next. */
prof_i_thread *prof_i_thread_first(void);

/* Between these, slots of other threads stay mapped, whether the gate is open or closed.
   Signal-safe; may nest. */
void prof_i_thread_slots_acquire(void);
void prof_i_thread_slots_release(void);
static inline prof_i_thread_slot *prof_i_thread_get_slot(const prof_i_thread *thread) {
  return __atomic_load_n(&thread->slot, __ATOMIC_SEQ_CST);
}

/* Keeps the thread off the fast path, or lets it back. Owner thread only, past the gate. */
void prof_i_thread_set_slow(prof_i_thread *thread, bool is_slow);

/* What destructors of others still record comes after the thread has ended, and perhaps in the last
   round, behind which nobody sees it end. So it ends once more whenever it has no scope open. Owner
   thread only, outside of the gate. */
void prof_i_thread_exit_again(void);
static inline bool prof_i_thread_has_ended(void) { return prof_i_this_flags.exited_serial != 0; }

/* Scopes stand open below the 64 that have entries in the slot, or none do any more: meanwhile
   every begin and end takes the slow path, so that the end of an entry's scope sees those that
   began after it. Owner thread only. */
void prof_i_thread_begin_deep(prof_i_thread *thread);
void prof_i_thread_end_deep(prof_i_thread *thread);

/* Did a begin, which a move to another arena interrupted, put its entry where the thread does not
   look any more? Then it is taken away. Owner thread only. */
bool prof_i_thread_drop_stale_entry(prof_i_thread *thread, uint64_t start);

/* Entries of that thread may be gone, below one that is not. Any thread. */
static inline void prof_i_thread_note_gap(prof_i_thread *thread) {
  __atomic_store_n(&thread->has_gaps, 1, __ATOMIC_RELEASE);
}

/* An end has found no scope. Owner thread, past the gate. */
void prof_i_thread_count_stray(prof_i_thread *thread);

/* The arena is full: what the thread begins from here on is left out at its begin, as long as that
   is so. Owner thread, past the gate. */
void prof_i_thread_set_full(prof_i_thread *thread);

/* A chunk out of the thread's hands, until it records again; its size is kept beside it, for the
   arena may be gone by then. Any thread that has taken the chunk out. */
void prof_i_thread_detach_chunk(prof_i_thread *thread, prof_i_head *chunk);
/* Takes it back. NULL: there is none. Any thread. */
prof_i_head *prof_i_thread_reattach_chunk(prof_i_thread *thread);

/* Keeps a full chunk; the one that was kept before, or NULL, is to be left. NULL takes what is
   kept. Owner thread. */
prof_i_head *prof_i_thread_swap_previous(prof_i_thread *thread, prof_i_head *chunk);

/* This copy of prof goes: threads end without calling it. */
void prof_i_thread_remove_exit_hook(void);

/* prof_stop(): from here on every end takes the slow path. Control lock held. */
void prof_i_thread_stop_all(void);

/* Another arena is in force: the next begin of every thread takes the slow path, or it would stand
   open in the old one. Control lock held, gate closed. */
void prof_i_thread_renew_all(void);

/* The sites' epoch has been raised from this one: threads whose fast path is open go on with the
   new one. Any thread. Signal-safe. */
void prof_i_thread_follow_epoch(uint32_t was);

/* What thread->parked and ->before say. */
static inline prof_i_head *prof_i_chunk_word_address(uint64_t word) {
  return (prof_i_head *)(uintptr_t)(word & ~UINT64_C(63));
}
static inline uint64_t prof_i_chunk_word_bytes(uint64_t word) { return UINT64_C(1) << (word & 63); }

/* Threads that have ended and had no destructor that saw it: what they leave goes to the capture.
   Any thread. A system call for each thread that is alive. */
void prof_i_thread_reap_exited(void);

/* What a thread that goes is to do before, while it can still record: one for the process. May be
   called more than once for a thread. */
void prof_i_thread_set_exit_callback(void (*leave)(void));

/* In a forked child. */
void prof_i_thread_forget_all(void);

/* Counts losses, in the thread's slot when it has one, else in the header. Past the gate, or the
   arena may be another one's memory by then. */
void prof_i_thread_lose(prof_i_thread *thread, int loss, uint64_t count);
/* The same from anywhere. */
void prof_i_thread_lose_outside(prof_i_thread *thread, int loss, uint64_t count);

/* Reads the thread's name again: the last one wins. Owner thread only. */
void prof_i_thread_refresh_name(prof_i_thread *thread);
/* The same of all threads that live in this arena, by what the kernel calls them. Any thread. */
void prof_i_thread_refresh_names(uint64_t arena);
/* Into a slot that is to be the thread's. Owner thread only. */
void prof_i_thread_write_name(prof_i_thread *thread, prof_i_thread_slot *slot);
/* The calling thread, one of prof's own, has this name of PROF_I_NAME_BYTES from here on. */
void prof_i_thread_adopt_name(const char *name);
/* A slot's name changes under its readers: word by word. `to` and `from` have PROF_I_NAME_BYTES and
   are aligned. */
void prof_i_thread_copy_name(char *to, const char *from);

/* prof_thread_set_name(). Owner thread only; works before it records. */
void prof_i_thread_store_own_name(const char *name);

/* Of this process's thread that has that number of the kernel's, or was the last to have it, of
   some thousands that have ended; 0: none. Any thread. */
uint64_t prof_i_thread_serial_of(uint64_t tid);

uint64_t prof_i_thread_seen_count(void);
/* Counts one loss while no arena can be touched; it is added to the arena by
   prof_i_thread_flush_losses(). Signal-safe. */
void prof_i_thread_lose_unattributed(int loss, uint64_t count);
void prof_i_thread_flush_losses(void);

uint64_t prof_i_thread_alive_count(void);

#endif
