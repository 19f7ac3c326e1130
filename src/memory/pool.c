/* The public calls on pools: create, destroy, tag. Also queries, which act as a pool. */
#define _GNU_SOURCE
#include <prof/memory.h>
#include <string.h>

#include "../base/display.h"
#include "../base/log.h"
#include "../base/options.h"
#include "../base/process.h"
#include "../core/record/site.h"
#include "internal.h"

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

/* ---- queries ---- */

/* RAF's way in: a query a device, asked where PROFILE_MEMORY() stands. Its pool is one whose sums
   are what the query said. */

int prof_memory_set_query(prof_device device, prof_memory_query query, void *user) {
  PROF_I_REFUSE_INTERRUPTED(PROF_E_BUSY);
  if (device.type == 0) device = PROF_HOST;
  const int status = prof_i_pool_set_query(device, query, user);
  if (status == PROF_E_BUSY) {
    char name[32];
    prof_i_put_device(name, sizeof name, device);
    return prof_i_fail(status, "the query of device %s is just being asked", name);
  }
  if (status != PROF_OK) return prof_i_fail(status, "no memory for a query");
  return PROF_OK;
}

static uint32_t tag_number(const char *tag, uint32_t tag_bytes) {
  char name[PROF_I_NAME_BYTES];
  const size_t most = sizeof name - 1;
  const size_t bytes = !tag                               ? 0
                       : tag_bytes == PROF_NUL_TERMINATED ? strnlen(tag, most)
                       : tag_bytes < most                 ? tag_bytes
                                                          : most;
  if (bytes) memcpy(name, tag, bytes);
  name[bytes] = '\0';
  return prof_memory_tag(name);
}

void prof_memory_sample(prof_device device, const char *tag, uint32_t tag_bytes) {
  if (!prof_i_session_has_memory() || !prof_i_process_is_own()) return;
  if (device.type == 0) device = PROF_HOST;
  uint64_t serial = 0, used = 0, allocated = 0;
  prof_i_pool_query asking;
  prof_pool *const pool = prof_i_pool_find_query(device, &serial);
  if (!pool || !prof_i_pool_begin_query(&asking, pool, serial)) return;
  if (pool->query(pool->user, &used, &allocated) == 0) {
    const prof_i_memory_event note = {
        .verb = PROF_I_VERB_SAMPLE,
        .tag = tag_number(tag, tag_bytes),
        .bytes = used < PROF_I_USED_ZERO ? used : PROF_I_USED_ZERO,
        .stream = PROF_NO_STREAM,
        .extra = allocated < PROF_I_USED_ZERO ? allocated : PROF_I_USED_ZERO};
    prof_i_memory_event_write(pool, &note);
  }
  prof_i_pool_end_query(&asking);
}
