/* What the pools have come to, without a look at records. */
#include <prof/memory.h>

#include "../base/log.h"
#include "../base/options.h"
#include "../base/port.h"
#include "../base/reentry.h"
#include "../base/units.h"
#include "../core/buffer/session.h"
#include "../core/session/control.h"
#include "memory_event.h"
#include "pool_state.h"

int prof_memory_is_on(void) {
  return __atomic_load_n(&prof_i_memory_on, __ATOMIC_RELAXED) == PROF_I_MEMORY_ON;
}

static int fail_without_memory(prof_device device) {
  char name[32];
  prof_i_put_device(name, sizeof name, device);
  return prof_i_fail(PROF_E_NOT_FOUND, "no memory of device %s has been recorded", name);
}

int prof_i_memory_max(prof_device device, prof_memory_source source, prof_memory_max *max_out) {
  if (!max_out) return prof_i_fail(PROF_E_INVALID, "prof_memory_max_get: max_out is NULL");
  if (source > PROF_MEMORY_QUERY)
    return prof_i_fail(PROF_E_INVALID, "source is %u; it is at most %d", (unsigned)source,
                       PROF_MEMORY_QUERY);
  if (device.type == 0) device = PROF_HOST;
  prof_memory_source kind = source == PROF_MEMORY_QUERY ? PROF_MEMORY_QUERY : PROF_MEMORY_POOL;
  prof_i_session_ensure(); /* a forked child's own capture */
  prof_i_control_lock();
  prof_i_pool_sum sum = prof_i_pool_sum_of(device, kind);
  if (source == PROF_MEMORY_ANY && !sum.pools)
    sum = prof_i_pool_sum_of(device, kind = PROF_MEMORY_QUERY);
  prof_i_control_unlock();
  if (!sum.pools) return fail_without_memory(device);
  const double mb = 1024.0 * 1024.0;
  const prof_memory_max max = {.size = sizeof max,
                               .used_bytes = sum.used,
                               .allocated_bytes = sum.allocated,
                               .max_used_bytes = sum.max_used,
                               .max_allocated_bytes = sum.max_allocated,
                               .collection_count = sum.collections,
                               .max_used_mb = (double)sum.max_used / mb,
                               .max_allocated_mb = (double)sum.max_allocated / mb,
                               .source = (uint32_t)kind,
                               .pool_count = sum.pools,
                               .has_allocated = sum.max_allocated > 0};
  return prof_i_sized_copy_out(max_out, &max, sizeof max, "prof_memory_max");
}

int prof_memory_max_get(prof_device device, prof_memory_source source, prof_memory_max *max_out) {
  PROF_I_DEFAULT_FP;
  PROF_I_REFUSE_INTERRUPTED(PROF_E_BUSY);
  return prof_i_memory_max(device, source, max_out);
}
