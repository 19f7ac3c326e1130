/* RAF's way in: a query a device, asked where PROFILE_MEMORY() stands. Its pool is one whose sums
   are what the query said. */
#define _GNU_SOURCE
#include <prof/memory.h>
#include <string.h>

#include "../base/log.h"
#include "../base/process.h"
#include "../base/reentry.h"
#include "../base/units.h"
#include "../core/record/site.h"
#include "memory_event.h"

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
