/* Pools as their users have them: made, destroyed, tagged. */
#include <prof/memory.h>
#include <string.h>

#include "../base/log.h"
#include "../base/options.h"
#include "../base/reentry.h"
#include "../core/record/site.h"
#include "checked.h"
#include "pool_state.h"

int prof_pool_create(const prof_pool_options *given, prof_pool **pool_out) {
  PROF_I_REFUSE_INTERRUPTED(PROF_E_BUSY);
  prof_pool_options options = {.size = sizeof options};
  if (!pool_out) return prof_i_fail(PROF_E_INVALID, "prof_pool_create: pool_out is NULL");
  const int status =
      given ? prof_i_sized_copy(&options, sizeof options, given, "prof_pool_options") : PROF_OK;
  if (status != PROF_OK) return status;
  if (options.checked > 1)
    return prof_i_fail(PROF_E_INVALID, "options.checked is %u; it is 0 or 1", options.checked);
  if (options.device.type == 0) options.device = PROF_HOST;
  struct prof_i_checked *const checked = options.checked ? prof_i_checked_create() : NULL;
  prof_pool *const pool = options.checked && !checked
                              ? NULL
                              : prof_i_pool_create(options.name ? options.name : "pool",
                                                   options.device, options.query, options.user);
  if (!pool) {
    prof_i_checked_destroy(checked);
    return prof_i_fail(PROF_E_NO_MEMORY, "no memory for a pool");
  }
  __atomic_store_n(&pool->checked, checked, __ATOMIC_RELEASE);
  *pool_out = pool;
  return PROF_OK;
}

void prof_pool_destroy(prof_pool *pool) {
  PROF_I_REFUSE_INTERRUPTED();
  if (!pool) return;
  prof_i_checked_destroy(prof_i_checked_acquire(pool));
  prof_i_pool_destroy(pool);
}

uint32_t prof_memory_tag(const char *name) {
  static const prof_site site = {.file = "", .function = "prof_memory_tag", .level = 1};
  return name && *name ? prof_i_site_number(&site, name, "memory") : 0;
}
