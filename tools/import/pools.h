/* Memory: one pool a device that [memory] events tell of. A pool's counter says the order of its
   events, so it is made when all have come. */
#ifndef PROF_IMPORT_POOLS_H
#define PROF_IMPORT_POOLS_H

#include <stdbool.h>
#include <stddef.h>

#include "record.h"
#include "times.h"

enum { IMPORT_POOLS_MAX = 64 };

typedef struct import_pool {
  bool is_device;
  int32_t index;
  uint64_t used_before; /* as the first event says */
  bool is_known;        /* used_before is */
  bool has_reserved;    /* something has said it */
  /* bytes, before the first event and now, in the file's order */
  uint64_t reserved_before, reserved;
  prof_i_pool_state state;
} import_pool;

typedef struct import_pool_event {
  uint64_t ticks;
  /* negative: it came back; 0: it is no piece, but a change of what is reserved, or a failed
     allocation */
  int64_t bytes;
  int64_t reserved;     /* after it, where it is no piece */
  uint32_t pool, order; /* pool 0: it is not taken */
  int64_t total;        /* allocated after it, as the trace says; negative: it does not */
} import_pool_event;

typedef struct import_pools {
  import_pool pools[IMPORT_POOLS_MAX];
  uint32_t count;
  import_pool_event *pool_events;
  size_t pool_event_count, pool_event_room;
  uint64_t *counters; /* by order */
} import_pools;

/* The pool's number, from 1; 0: there are too many. */
uint32_t import_pools_get(import_pools *pools, bool is_device, int32_t index);

/* Fills in words 1 to 3 of its record. The last is the `order` for import_pools_counter(). */
void import_pools_add(import_pools *pools, const import_pool_event *change, uint64_t address,
                      uint64_t words[3]);

/* As above, of a change of what is reserved, or a failed allocation (verb, bytes): the whole
   record. */
void import_pools_note(import_pools *pools, uint32_t pool, uint64_t ticks, prof_i_verb verb,
                       uint64_t bytes, import_record *record);

/* What is reserved after an event that `bytes` of what is used came or went by, and the trace's own
   sum of that (negative: it has none). Returns by how much that is more than before. */
int64_t import_pools_reserve(import_pools *pools, uint32_t number, int64_t reserved, int64_t bytes,
                             int64_t total);

/* Times become ticks, and what is outside of the times that are taken goes. */
void import_pools_resolve_times(import_pools *pools, const import_times *times);
void import_pools_finish(import_pools *pools, uint64_t start_ticks);
static inline uint64_t import_pools_counter(const import_pools *pools, uint64_t order) {
  return pools->counters[order];
}

/* The pool's record, to be written at that place of the capture: its state is aligned there. */
void import_pools_record(const import_pools *pools, uint32_t number, int32_t device_type,
                         uint64_t at, import_record *record);

void import_pools_fini(import_pools *pools);

#endif
