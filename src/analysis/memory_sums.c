/* See memory_sums.h. */
#include "memory_sums.h"

#include <prof/memory.h>
#include <stdlib.h>
#include <string.h>

#include "../format/parse.h"
#include "memory.h"

void prof_i_memory_sums_fini(prof_i_memory_sums *sums) { free(sums->waiting); }

void prof_i_memory_sums_clear(prof_i_memory_sums *sums) {
  if (sums->room) memset(sums->waiting, 0, sums->room * sizeof *sums->waiting);
}

static void add_own(prof_i_waiting_memory *to, uint64_t count, uint64_t first_ns) {
  if (count && (!to->count || first_ns < to->first_ns)) to->first_ns = first_ns;
  to->count += count;
}

bool prof_i_memory_sums_add(prof_i_memory_sums *sums, const prof_trace *trace,
                            const prof_i_span *span) {
  prof_i_long record = {0};
  if (!prof_i_event_read(span->record, &record)) return true;
  const prof_i_memory_record memory = prof_i_memory_read(span->record, &record);
  const prof_i_pool_seen *const pool = prof_i_catalog_pool(&trace->catalog, memory.pool);
  if (!pool || memory.verb > PROF_I_VERB_FREE) return true;
  if (!prof_i_reach_place((void **)&sums->waiting, &sums->room, span->depth, sizeof *sums->waiting))
    return false;
  const int64_t given = prof_i_memory_bounded(memory.bytes),
                bytes = memory.verb == PROF_I_VERB_ALLOC ? given : -given;
  prof_i_waiting_memory *const to = &sums->waiting[span->depth];
  const bool is_host = pool->device.type == PROF_DEVICE_CPU;
  const prof_i_held_bytes own = {.host = is_host ? bytes : 0,
                                 .self_host = is_host ? bytes : 0,
                                 .device = is_host ? 0 : bytes,
                                 .self_device = is_host ? 0 : bytes};
  prof_i_held_add(&to->held, &own);
  add_own(to, 1, span->start_ns);
  return true;
}

prof_i_held_bytes prof_i_memory_sums_take(prof_i_memory_sums *sums, const prof_i_span *span) {
  const uint32_t depth = span->depth + 1u;
  if (span->lane != 0 || depth >= sums->room) return (prof_i_held_bytes){0};
  const prof_i_held_bytes own = sums->waiting[depth].held,
                          all = {.host = own.host, .device = own.device};
  sums->waiting[depth] = (prof_i_waiting_memory){0};
  prof_i_held_add(&sums->waiting[span->depth].held, &all);
  return own;
}

void prof_i_memory_sums_pass(prof_i_memory_sums *sums, const prof_i_span *span) {
  const uint32_t depth = span->depth + 1u;
  if (span->lane != 0 || depth >= sums->room) return;
  const prof_i_waiting_memory own = sums->waiting[depth];
  sums->waiting[depth] = (prof_i_waiting_memory){0};
  prof_i_held_add(&sums->waiting[span->depth].held, &own.held);
  add_own(&sums->waiting[span->depth], own.count, own.first_ns);
}

void prof_i_memory_sums_outside(const prof_i_memory_sums *sums, prof_i_outside_memory *outside) {
  if (!sums->room || !sums->waiting[0].count) return;
  const prof_i_waiting_memory *const own = &sums->waiting[0];
  if (!outside->count || own->first_ns < outside->first_ns) outside->first_ns = own->first_ns;
  outside->count += own->count;
  outside->host = prof_i_held_plus(outside->host, own->held.self_host);
  outside->device = prof_i_held_plus(outside->device, own->held.self_device);
}
