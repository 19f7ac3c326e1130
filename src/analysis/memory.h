/* Memory events of a trace. The file memory.c orders them, and memory_replay.c replays them. Two
   others use a replay: memory_state.c finds peaks and the state at a moment, memory_live.c what was
   live then. Pools have the same index as in the catalog. */
#ifndef PROF_ANALYSIS_MEMORY_H
#define PROF_ANALYSIS_MEMORY_H

#include <prof/memory.h>

#include "../format/addr_map.h"
#include "../format/parse.h"
#include "../reader/capture.h"
#include "filter.h"

/* An event in the capture. */
typedef struct prof_i_memory_item {
  uint64_t ns;
  const uint64_t *words;
  uint32_t thread;
  uint32_t scope; /* index in prof_memory.scopes; 0: none */
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
  uint32_t peak_used_at, peak_allocated_at; /* indexes in `order`, after the event */
  uint32_t sure_until;                      /* index in `order` from which events may be missing */
  int64_t begin_used, begin_allocated;      /* before its first event in the capture */
  /* index among its own events of the first after the last reset; UINT32_MAX: found by time */
  uint32_t since_reset;
  /* all its allocs since it began to count are in the capture, or missing from sure_until on */
  bool is_begin_known;
  int64_t replayed_peak, replayed_end; /* used, without wrong calls */
  uint32_t first_place, event_count;   /* its part of prof_memory.places */
} prof_i_memory_pool;

struct prof_memory {
  const prof_trace *trace;
  prof_i_memory_item *items; /* by thread, then in the order of time */
  uint32_t *order;           /* indexes in items */
  uint32_t *places;          /* indexes in order, pool after pool */
  uint32_t item_count, item_room;
  char **scopes; /* sanitized names; [0] is "" */
  uint32_t scope_count, scope_room;
  struct prof_i_scope_name *names; /* finds them */
  prof_i_memory_step *steps;       /* by time */
  uint32_t step_count, step_room;
  prof_i_memory_pool *pools; /* as the catalog's */
  uint64_t end_ns;
  uint64_t from_ns; /* earlier segments are left out; 0: none */
  /* Set by prof_i_memory_set_filter(): lists of live allocations have only those that pass. */
  const prof_i_filter *filter; /* NULL: all */
  prof_i_trace_filter filtered;
};

/* Whether the step ended before the item's event. Records of one thread with the same time are in
   the order of their addresses. */
static inline bool prof_i_memory_step_is_before(const prof_memory *m,
                                                const prof_i_memory_step *step, uint32_t item) {
  const prof_i_memory_item *const of = &m->items[item];
  if (step->ns != of->ns) return step->ns < of->ns;
  return step->thread == of->thread && (uintptr_t)step->words < (uintptr_t)of->words;
}

/* Whether the pool knows all that was allocated before the start. */
static inline bool prof_i_pool_knows_baseline(const prof_i_pool_record *pool) {
  return prof_i_baseline_is_whole(pool->baseline);
}

/* No pool has more. A damaged capture may have any value, and sums must not overflow. */
static inline int64_t prof_i_memory_bytes_bounded(uint64_t bytes) {
  const int64_t said = (int64_t)bytes, most = INT64_C(1) << 46;
  return said > most ? most : said < -most ? -most : said;
}

/* The number of the start of memory. A session may have several. */
static inline uint32_t prof_i_pool_start_number(const prof_i_pool_record *pool) {
  return pool->start ? pool->start : pool->session;
}

/* ---- replay ---- */

typedef struct prof_i_replay_pool {
  prof_i_addr_map live; /* value: index in items of the alloc */
  prof_i_addr_map blocks;
  int64_t used, allocated;
  uint64_t live_bytes, requested_bytes;
  uint64_t before_bytes; /* allocated before the start, and not freed yet */
  /* live allocations of 0 bytes: they may have the address of another one */
  uint64_t empty_count;
} prof_i_replay_pool;

/* A free of an address that was not live. */
typedef struct prof_i_unknown_free {
  uint64_t address;
  uint32_t item, pool;
  bool is_sure; /* wrong even if the pool never allocated it before */
} prof_i_unknown_free;

/* Callbacks of a replay. Each may be NULL. */
typedef struct prof_i_replay_observer {
  void (*wrong)(void *user, uint32_t pool, uint32_t item, prof_memory_wrong wrong,
                const prof_i_memory_record *record);
  void (*from_before)(void *user, uint32_t pool, const prof_i_memory_record *record);
  /* A free that is wrong, unless its alloc is lost. is_complete: no event is missing, so the alloc
     may only be from before the first one. */
  void (*unsure)(void *user, uint32_t pool, uint32_t item, bool is_complete,
                 const prof_i_memory_record *record);
  void *user;
} prof_i_replay_observer;

typedef struct prof_i_replay {
  const prof_memory *memory;
  prof_i_replay_pool *pools; /* as the catalog's */
  uint32_t only;             /* the pool to replay; UINT32_MAX: all */
  uint32_t next;             /* index in order, after the last event replayed */
  uint32_t next_own;         /* of `only`: index among its events */
  prof_i_replay_observer events;
} prof_i_replay;

/* 0 or PROF_E_NO_MEMORY. */
int prof_i_replay_init(prof_i_replay *play, const prof_memory *memory, uint32_t only);
void prof_i_replay_fini(prof_i_replay *play);
/* The index in order of the next event; item_count: no more. */
uint32_t prof_i_replay_next_index(const prof_i_replay *play);
/* Replays one event. *pool_out: the index of its pool; UINT32_MAX: unknown. Returns 1; 0: no more
   events; PROF_E_NO_MEMORY. */
int prof_i_replay_next(prof_i_replay *play, uint32_t *pool_out, prof_i_memory_record *record_out);
/* Replays up to an index in order. */
int prof_i_replay_to(prof_i_replay *play, uint32_t place);

/* Orders the events of a trace, without a replay. Items of segments that ended before from_ns are
   left out (0: none). Then begin_used and begin_allocated are the bytes before a pool's first
   item. */
int prof_i_memory_order(const prof_trace *trace, uint64_t from_ns, prof_memory **memory_out);
/* Whether an item's allocation passes the filter, by thread, time and the name of the innermost
   scope. */
bool prof_i_memory_filter_takes(const prof_memory *memory, const prof_i_memory_item *item);
/* Whether the pool's device passes the filter. */
bool prof_i_memory_filter_takes_pool(const prof_memory *memory, uint32_t index);

/* prof_memory_destroy(), from inside another call. */
void prof_i_memory_destroy(prof_memory *memory);

/* The record of an item. */
prof_i_memory_record prof_i_memory_item_read(const prof_i_memory_item *item);
/* The time of a reading of the counter. */
uint64_t prof_i_memory_ns(const prof_memory *memory, uint64_t ticks);
/* The time at which a pool's session began for it. */
uint64_t prof_i_memory_begin_ns(const prof_memory *memory, uint32_t index);
/* The catalog's index of a pool's number, or UINT32_MAX. */
uint32_t prof_i_memory_pool_index(const prof_memory *memory, uint32_t number);

/* Fills the state from a pool at this point of the replay. */
void prof_i_memory_describe(const prof_i_replay_pool *pool, prof_memory_state *state);

/* memory_state.c: begin_used and begin_allocated of all pools. False: no memory. */
bool prof_i_memory_find_begins(prof_memory *memory);

/* memory_state.c: replays all once and fills the pools. 0 or PROF_E_NO_MEMORY. */
int prof_i_memory_replay_all(prof_memory *memory);

#endif
