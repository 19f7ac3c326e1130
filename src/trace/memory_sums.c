/* See memory_sums.h. */
#include "memory_sums.h"

#include <prof/memory.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"
#include "parse.h"

void prof_i_memory_sums_fini(prof_i_memory_sums *sums) { free(sums->waiting); }

void prof_i_memory_sums_clear(prof_i_memory_sums *sums) {
  if (sums->room) memset(sums->waiting, 0, sums->room * sizeof *sums->waiting);
}

bool prof_i_memory_sums_add(prof_i_memory_sums *sums, const prof_trace *trace, const prof_i_span *span) {
  prof_i_long record = {0};
  if (!prof_i_event_read(span->record, &record)) return true;
  const prof_i_memory_record memory = prof_i_memory_read(span->record, &record);
  const prof_i_pool_seen *const pool = prof_i_catalog_pool(&trace->catalog, memory.pool);
  if (!pool || memory.verb > PROF_I_VERB_FREE) return true;
  if (!prof_i_reach_place((void **)&sums->waiting, &sums->room, span->depth, sizeof *sums->waiting)) return false;
  const int64_t given = prof_i_memory_bounded(memory.bytes), bytes = memory.verb == PROF_I_VERB_ALLOC ? given : -given;
  prof_i_held_bytes *const to = &sums->waiting[span->depth];
  const bool is_host = pool->device.type == PROF_DEVICE_CPU;
  const prof_i_held_bytes own = {.host = is_host ? bytes : 0, .self_host = is_host ? bytes : 0, .device = is_host ? 0 : bytes, .self_device = is_host ? 0 : bytes};
  prof_i_held_add(to, &own);
  return true;
}

prof_i_held_bytes prof_i_memory_sums_take(prof_i_memory_sums *sums, const prof_i_span *span) {
  const uint32_t depth = span->depth + 1u;
  if (span->lane != 0 || depth >= sums->room) return (prof_i_held_bytes){0};
  const prof_i_held_bytes own = sums->waiting[depth];
  sums->waiting[depth] = (prof_i_held_bytes){0};
  prof_i_held_add(&sums->waiting[span->depth], &(prof_i_held_bytes){.host = own.host, .device = own.device});
  return own;
}

void prof_i_memory_sums_pass(prof_i_memory_sums *sums, const prof_i_span *span) {
  const uint32_t depth = span->depth + 1u;
  if (span->lane != 0 || depth >= sums->room) return;
  prof_i_held_add(&sums->waiting[span->depth], &sums->waiting[depth]);
  sums->waiting[depth] = (prof_i_held_bytes){0};
}
