/* What stands in the pools' states, without a look at records. */
#include <prof/memory.h>
#include <string.h>

#include "../core/control.h"
#include "../core/log.h"
#include "../core/options.h"
#include "../core/pool.h"
#include "../trace/units.h"

int prof_memory_is_on(void) { return prof_i_memory_is_on(); }

static uint64_t at_least_0(int64_t bytes) { return bytes > 0 ? (uint64_t)bytes : 0; }
static uint64_t allocated_of(uint64_t value) { return value > PROF_I_USED_ZERO ? value - PROF_I_USED_ZERO : 0; }

static void add(prof_memory_max *max, prof_pool *pool) {
  prof_i_pool_state *const state = pool->state;
  const bool is_query = pool->kind == PROF_MEMORY_QUERY;
  const uint64_t used_peak = __atomic_load_n(&prof_i_peak_now(state->used_peaks, state)->peak, __ATOMIC_RELAXED);
  max->used_bytes += is_query ? __atomic_load_n(&state->used_now, __ATOMIC_RELAXED)
                              : at_least_0(prof_i_used_bytes(__atomic_load_n(&state->used, __ATOMIC_RELAXED)));
  max->allocated_bytes += allocated_of(__atomic_load_n(&state->allocated, __ATOMIC_RELAXED));
  max->max_used_bytes += is_query ? used_peak : at_least_0(prof_i_used_bytes(used_peak));
  max->max_allocated_bytes += allocated_of(__atomic_load_n(&prof_i_peak_now(state->allocated_peaks, state)->peak, __ATOMIC_RELAXED));
  max->collection_count += __atomic_load_n(&state->collection_count, __ATOMIC_RELAXED);
  max->pool_count++;
  max->source = (uint32_t)pool->kind; /* while another capture starts the state reads as zeros */
}

static void add_all(prof_memory_max *max, prof_device device, prof_memory_source source) {
  for (prof_pool *pool = prof_i_pool_first(); pool; pool = pool->next)
    if (pool->serial && pool->state && pool->kind == source && pool->device.type == device.type && pool->device.index == device.index) add(max, pool);
}

int prof_memory_max_get(prof_device device, prof_memory_source source, prof_memory_max *max_out) {
  if (!max_out) return prof_i_fail(PROF_E_INVALID, "prof_memory_max_get: max_out is NULL");
  if (source > PROF_MEMORY_QUERY) return prof_i_fail(PROF_E_INVALID, "source is %u; it is at most %d", (unsigned)source, PROF_MEMORY_QUERY);
  if (device.type == 0) device = PROF_HOST;
  prof_memory_max max = {.size = sizeof max};
  prof_i_control_ensure(); /* a forked child's own capture */
  prof_i_control_lock();
  if (source != PROF_MEMORY_QUERY) add_all(&max, device, PROF_MEMORY_POOL);
  if (source == PROF_MEMORY_QUERY || (source == PROF_MEMORY_ANY && !max.pool_count)) add_all(&max, device, PROF_MEMORY_QUERY);
  prof_i_control_unlock();
  if (!max.pool_count) {
    char name[32];
    prof_i_put_device(name, sizeof name, device);
    return prof_i_fail(PROF_E_NOT_FOUND, "no memory of device %s has been recorded", name);
  }
  const double mb = 1024.0 * 1024.0;
  max.max_used_mb = (double)max.max_used_bytes / mb;
  max.max_allocated_mb = (double)max.max_allocated_bytes / mb;
  return prof_i_sized_give(max_out, &max, sizeof max, "prof_memory_max");
}
