/* Events of memory in one order, and the play of them. memory.c puts them into order,
   memory_replay.c plays them, memory_state.c says what stood at a moment, memory_live.c what was
   live then. A trace's pools are its catalog's, by index. */
#ifndef PROF_ANALYSIS_MEMORY_H
#define PROF_ANALYSIS_MEMORY_H

#include <prof/memory.h>

#include "../format/addr_map.h"
#include "../format/parse.h"
#include "../reader/capture.h"

/* An event where it stands in the capture. */
typedef struct prof_i_memory_item {
  uint64_t ns;
  const uint64_t *words;
  uint32_t thread;
  uint32_t scope; /* place in prof_memory.scopes; 0: none */
} prof_i_memory_item;

typedef struct prof_i_memory_step {
  uint64_t ns, number;   /* when it ended */
  const uint64_t *words; /* its record */
  uint32_t thread;
} prof_i_memory_step;

enum { PROF_I_MEMORY_EXAMPLES = 8, PROF_I_MEMORY_FAILURES = 4 };

/* An allocation that failed: the first ones of a pool. */
typedef struct prof_i_memory_failure {
  uint64_t ns, bytes;
  int64_t used, allocated;
  const char *scope;
} prof_i_memory_failure;

typedef struct prof_i_memory_pool {
  prof_memory_info info;
  prof_memory_example examples[PROF_I_MEMORY_EXAMPLES];
  prof_i_memory_failure failures[PROF_I_MEMORY_FAILURES];
  uint32_t failure_count;
  uint32_t example_count;
  uint32_t peak_used_at, peak_allocated_at; /* places in order, behind the event */
  uint32_t sure_until;                 /* place in order from which on something may be missing */
  int64_t begin_used, begin_allocated; /* before its first event that stands */
  /* its event, among its own, that is the first after the last reset; UINT32_MAX: the time says
     it */
  uint32_t since_reset;
  /* all that it has handed out since it began to count is there, or missing behind sure_until */
  bool is_begin_known;
  int64_t replayed_peak, replayed_end; /* used, had only right calls been counted */
  uint32_t first_place, event_count;   /* its events' places in order, among prof_memory.places */
} prof_i_memory_pool;

struct prof_memory {
  const prof_trace *trace;
  prof_i_memory_item *items; /* by thread, then in the order of time */
  uint32_t *order;           /* places in items */
  uint32_t *places;          /* places in order, of one pool's events after the other's */
  uint32_t item_count, item_room;
  char **scopes; /* names, made readable; [0] is "" */
  uint32_t scope_count, scope_room;
  struct prof_i_scope_name *names; /* finds them */
  prof_i_memory_step *steps;       /* by time */
  uint32_t step_count, step_room;
  prof_i_memory_pool *pools; /* as the catalog's */
  uint64_t end_ns;
  uint64_t from_ns; /* segments that ended before are left out; 0: none */
};

/* Had the step ended before that item's event? Records of one thread and tick are in its order. */
static inline bool prof_i_memory_step_is_before(const prof_memory *m,
                                                const prof_i_memory_step *step, uint32_t item) {
  const prof_i_memory_item *const of = &m->items[item];
  if (step->ns != of->ns) return step->ns < of->ns;
  return step->thread == of->thread && (uintptr_t)step->words < (uintptr_t)of->words;
}

/* Is all known that was there before the start? */
static inline bool prof_i_pool_knows_baseline(const prof_i_pool_record *pool) {
  return prof_i_baseline_is_whole(pool->baseline);
}

/* No pool has more; a damaged capture says anything, and sums of it must not flow over. */
static inline int64_t prof_i_memory_bytes_bounded(uint64_t bytes) {
  const int64_t said = (int64_t)bytes, most = INT64_C(1) << 46;
  return said > most ? most : said < -most ? -most : said;
}

/* Of memory: a capture may have several in a session. */
static inline uint32_t prof_i_pool_start_number(const prof_i_pool_record *pool) {
  return pool->start ? pool->start : pool->session;
}

/* ---- one pool while it is played ---- */

typedef struct prof_i_replay_pool {
  prof_i_addr_map live; /* value: place in items of its alloc */
  prof_i_addr_map blocks;
  int64_t used, allocated;
  uint64_t live_bytes, requested_bytes;
  uint64_t before_bytes; /* of what was there before the start, and has not come back */
  /* pieces of no bytes that are live: they stand nowhere, perhaps at another one's address */
  uint64_t empty_count;
} prof_i_replay_pool;

/* A free of what was not live. */
typedef struct prof_i_unknown_free {
  uint64_t address;
  uint32_t item, pool;
  bool is_sure; /* that it is wrong, even if the pool never handed it out before */
} prof_i_unknown_free;

/* What a play finds on its way, to whoever wants to know. May be NULL. */
typedef struct prof_i_replay_observer {
  void (*wrong)(void *user, uint32_t pool, uint32_t item, prof_memory_wrong wrong,
                const prof_i_memory_record *record);
  void (*from_before)(void *user, uint32_t pool, const prof_i_memory_record *record);
  /* a free that would be wrong, were the alloc not perhaps lost; complete: or from before the first
     event, since when none is missing */
  void (*unsure)(void *user, uint32_t pool, uint32_t item, bool is_complete,
                 const prof_i_memory_record *record);
  void *user;
} prof_i_replay_observer;

typedef struct prof_i_replay {
  const prof_memory *memory;
  prof_i_replay_pool *pools; /* as the catalog's */
  uint32_t only;             /* pool index that is played; UINT32_MAX: all */
  uint32_t next;             /* place in order, behind the last event that was played */
  uint32_t next_own;         /* of `only`: among its own */
  prof_i_replay_observer events;
} prof_i_replay;

/* 0 or PROF_E_NO_MEMORY. */
int prof_i_replay_init(prof_i_replay *play, const prof_memory *memory, uint32_t only);
void prof_i_replay_fini(prof_i_replay *play);
/* The place of the event that is played next; item_count: none is left. */
uint32_t prof_i_replay_next_index(const prof_i_replay *play);
/* Plays one event; *pool_out: its pool's index, UINT32_MAX: of none that is known. 1; 0: there is
   none left; PROF_E_NO_MEMORY. */
int prof_i_replay_next(prof_i_replay *play, uint32_t *pool_out, prof_i_memory_record *record_out);
/* Up to a place in order. */
int prof_i_replay_to(prof_i_replay *play, uint32_t place);

/* As prof_memory_read(), but only put into order, for those who ask for items alone: nothing is
   played. Items that stand in segments which ended before from_ns are left out, and pools say
   begin_used and begin_allocated: what they had before their first item. 0: none is left out. */
int prof_i_memory_order(const prof_trace *trace, uint64_t from_ns, prof_memory **memory_out);
/* prof_memory_destroy(), out of another call. */
void prof_i_memory_destroy(prof_memory *memory);

/* The record of an item. */
prof_i_memory_record prof_i_memory_item_read(const prof_i_memory_item *item);
/* The time of a counter's reading. */
uint64_t prof_i_memory_ns(const prof_memory *memory, uint64_t ticks);
/* When a pool's session began for it. */
uint64_t prof_i_memory_begin_ns(const prof_memory *memory, uint32_t index);
/* The catalog's index of a pool's number, or UINT32_MAX. */
uint32_t prof_i_memory_pool_index(const prof_memory *memory, uint32_t number);

/* What stands there, of a pool being played. */
void prof_i_memory_describe(const prof_i_replay_pool *pool, prof_memory_state *state);

/* memory_state.c: begin_used and begin_allocated of all pools. False: no memory. */
bool prof_i_memory_find_begins(prof_memory *memory);

/* memory_state.c: plays all once and fills the pools. 0 or PROF_E_NO_MEMORY. */
int prof_i_memory_replay_all(prof_memory *memory);

#endif
