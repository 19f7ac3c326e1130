/* See allocated.h. */
#include "allocated.h"

#include <prof/memory.h>
#include <stdlib.h>

#include "parse.h"

bool prof_i_trace_pool(const prof_trace *trace, uint32_t number, prof_i_pool_view *view_out) {
  const prof_i_pool_seen *const pool = prof_i_catalog_pool(&trace->catalog, number);
  if (pool) *view_out = (prof_i_pool_view){pool->number, pool->kind, pool->device, pool->name, (int64_t)pool->allocated_before};
  return pool != NULL;
}

static int visit(void *user, const prof_i_span *spans, size_t count) {
  prof_i_allocated *const a = user;
  for (const prof_i_span *span = spans; span != spans + count; span++) {
    prof_i_long record = {0};
    if (span->kind != PROF_EVENT_MEMORY || !prof_i_event_read(span->record, &record)) continue;
    const prof_i_memory_record memory = prof_i_memory_read(span->record, &record);
    if (memory.verb < PROF_I_VERB_RESERVE) continue;
    if (!prof_i_make_room((void **)&a->points, &a->room, a->count, sizeof *a->points)) return PROF_E_NO_MEMORY;
    a->points[a->count++] = (prof_i_allocated_point){span->start_ns, (int64_t)(memory.allocated - PROF_I_USED_ZERO), memory.pool};
  }
  return 0;
}

static int by_pool_and_time(const void *a, const void *b) {
  const prof_i_allocated_point *const x = a, *const y = b;
  if (x->pool != y->pool) return x->pool < y->pool ? -1 : 1;
  return (x->ns > y->ns) - (x->ns < y->ns);
}

int prof_i_allocated_init(prof_i_allocated *allocated, const prof_trace *trace) {
  *allocated = (prof_i_allocated){0};
  int status = 0;
  for (uint32_t i = 0; !status && trace->catalog.pool_count && i < trace->thread_count; i++) status = prof_i_trace_walk(trace, i, visit, allocated);
  if (allocated->count) qsort(allocated->points, allocated->count, sizeof *allocated->points, by_pool_and_time);
  return status;
}

void prof_i_allocated_fini(prof_i_allocated *allocated) { free(allocated->points); }

int64_t prof_i_allocated_at(const prof_i_allocated *allocated, const prof_i_pool_view *pool, uint64_t ns) {
  uint32_t low = 0, high = allocated->count; /* the first point that is later */
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    const prof_i_allocated_point *const point = &allocated->points[middle];
    if (point->pool < pool->number || (point->pool == pool->number && point->ns <= ns)) low = middle + 1;
    else high = middle;
  }
  return low && allocated->points[low - 1].pool == pool->number ? allocated->points[low - 1].bytes : pool->allocated_before;
}
