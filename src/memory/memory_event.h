/* One event of a pool: the sum, its peak, the record. What the files of src/memory share. */
#ifndef PROF_MEMORY_MEMORY_EVENT_H
#define PROF_MEMORY_MEMORY_EVENT_H

#include "../core/buffer/thread.h"
#include "pool_state.h"

typedef struct prof_i_memory_event {
  prof_i_verb verb;
  uint32_t tag; /* a site's number, or 0 */
  uint64_t address;
  uint64_t bytes;     /* given, or of the block */
  uint64_t requested; /* asked for */
  uint64_t stream;    /* PROF_NO_STREAM: none */
  uint64_t extra;     /* COLLECT: ticks of its begin; SAMPLE: allocated; WRONG: prof_memory_wrong */
} prof_i_memory_event;

/* Whatever it takes: counts it, and writes a long record if there is room. Keeps errno. Any thread.
   Signal-safe. */
PROF_I_COLD void prof_i_memory_event_write(prof_pool *pool, const prof_i_memory_event *event);

/* Writes an event that is reported later than it happened. Also when recording has just stopped,
   while the pool's capture is in force. Returns the loss, or -1. Past the gate, attached. */
int prof_i_memory_event_write_at(prof_pool *pool, const prof_i_memory_event *event, uint64_t ticks,
                                 prof_i_thread *thread);

/* prof_memory_max_get(), out of another call. */
int prof_i_memory_max(prof_device device, prof_memory_source source, prof_memory_max *max_out);

/* How a verb changes what is used, and what is allocated: -1, 0, 1. */
static inline int prof_i_verb_used_sign(prof_i_verb verb) {
  return verb == PROF_I_VERB_ALLOC ? 1 : verb == PROF_I_VERB_FREE ? -1 : 0;
}
static inline int prof_i_verb_allocated_sign(prof_i_verb verb) {
  return verb == PROF_I_VERB_RESERVE ? 1 : verb == PROF_I_VERB_RELEASE ? -1 : 0;
}

#define PROF_I_ALLOC_BYTES_END (UINT64_C(1) << 42) /* 4 TiB */

#endif
