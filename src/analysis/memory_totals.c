/* See memory_totals.h. */
#include "memory_totals.h"

#include <prof/memory.h>
#include <stdlib.h>
#include <string.h>

#include "../format/parse.h"
#include "memory.h"

void prof_i_memory_totals_fini(prof_i_memory_totals *sums) { free(sums->pending); }

void prof_i_memory_totals_clear(prof_i_memory_totals *sums) {
  if (sums->room) memset(sums->pending, 0, sums->room * sizeof *sums->pending);
}

static void add_own_bytes(prof_i_pending_memory *to, uint64_t count, uint64_t first_ns) {
  if (count && (!to->count || first_ns < to->first_ns)) to->first_ns = first_ns;
  to->count += count;
}

bool prof_i_memory_totals_read(const prof_trace *trace, const prof_i_span *span,
                               prof_i_scope_bytes *own_out) {
  prof_i_long_record record = {0};
  if (!prof_i_event_read(span->record, &record)) return false;
  const prof_i_memory_record memory = prof_i_memory_read(span->record, &record);
  const prof_i_pool_record *const pool = prof_i_catalog_pool(&trace->catalog, memory.pool);
  if (!pool || memory.verb > PROF_I_VERB_FREE) return false;
  const int64_t given = prof_i_memory_bytes_bounded(memory.bytes),
                bytes = memory.verb == PROF_I_VERB_ALLOC ? given : -given;
  const bool is_host = pool->device.type == PROF_DEVICE_CPU;
  *own_out = (prof_i_scope_bytes){.host = is_host ? bytes : 0,
                                  .self_host = is_host ? bytes : 0,
                                  .device = is_host ? 0 : bytes,
                                  .self_device = is_host ? 0 : bytes};
  return true;
}

bool prof_i_memory_totals_add(prof_i_memory_totals *sums, const prof_i_span *span,
                              const prof_i_scope_bytes *own) {
  if (!prof_i_make_room_at_index((void **)&sums->pending, &sums->room, span->depth,
                                 sizeof *sums->pending))
    return false;
  prof_i_pending_memory *const to = &sums->pending[span->depth];
  prof_i_scope_bytes_add(&to->scope_bytes, own);
  add_own_bytes(to, 1, span->start_ns);
  return true;
}

prof_i_scope_bytes prof_i_memory_totals_end_scope(prof_i_memory_totals *sums,
                                                  const prof_i_span *span) {
  const uint32_t depth = span->depth + 1u;
  if (span->lane != 0 || depth >= sums->room) return (prof_i_scope_bytes){0};
  const prof_i_scope_bytes own = sums->pending[depth].scope_bytes,
                           all = {.host = own.host, .device = own.device};
  sums->pending[depth] = (prof_i_pending_memory){0};
  prof_i_scope_bytes_add(&sums->pending[span->depth].scope_bytes, &all);
  return own;
}

void prof_i_memory_totals_end_step(prof_i_memory_totals *sums, const prof_i_span *span) {
  const uint32_t depth = span->depth + 1u;
  if (span->lane != 0 || depth >= sums->room) return;
  const prof_i_pending_memory own = sums->pending[depth];
  sums->pending[depth] = (prof_i_pending_memory){0};
  prof_i_scope_bytes_add(&sums->pending[span->depth].scope_bytes, &own.scope_bytes);
  add_own_bytes(&sums->pending[span->depth], own.count, own.first_ns);
}

void prof_i_memory_totals_unscoped(const prof_i_memory_totals *sums,
                                   prof_i_unscoped_memory *outside) {
  if (!sums->room || !sums->pending[0].count) return;
  const prof_i_pending_memory *const own = &sums->pending[0];
  if (!outside->count || own->first_ns < outside->first_ns) outside->first_ns = own->first_ns;
  outside->count += own->count;
  outside->host = prof_i_bytes_add_wrapping(outside->host, own->scope_bytes.self_host);
  outside->device = prof_i_bytes_add_wrapping(outside->device, own->scope_bytes.self_device);
}
