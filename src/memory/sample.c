/* RAF's way in: a query a device, asked where PROFILE_MEMORY() stands. Its pool is one whose sums are what the query said. */
#define _GNU_SOURCE
#include <prof/memory.h>
#include <string.h>

#include "../core/control.h"
#include "../core/log.h"
#include "../core/site.h"
#include "note.h"

static bool is_same(prof_device a, prof_device b) { return a.type == b.type && a.index == b.index; }

/* NULL: nobody is asked for that device. Any thread. */
static prof_pool *find(prof_device device) {
  for (prof_pool *pool = prof_i_pool_first(); pool; pool = __atomic_load_n(&pool->next, __ATOMIC_ACQUIRE))
    if (__atomic_load_n(&pool->serial, __ATOMIC_ACQUIRE) && pool->kind == PROF_MEMORY_QUERY && is_same(pool->device, device)) return pool;
  return NULL;
}

int prof_memory_set_query(prof_device device, prof_memory_query query, void *user) {
  if (device.type == 0) device = PROF_HOST;
  prof_pool *const before = find(device);
  if (before) {
    prof_i_pool_unmake(before);
    if (__atomic_load_n(&before->asking, __ATOMIC_SEQ_CST)) return prof_i_fail(PROF_E_BUSY, "the query of device %d:%d is just being asked", device.type, device.index);
  }
  if (query && !prof_i_pool_make(PROF_MEMORY_QUERY, "query", device, query, user)) return prof_i_fail(PROF_E_NO_MEMORY, "no memory for a query");
  return PROF_OK;
}

static uint32_t tag_number(const char *tag, uint32_t tag_bytes) {
  char name[PROF_I_NAME_BYTES];
  const size_t most = sizeof name - 1;
  const size_t bytes = !tag ? 0 : tag_bytes == PROF_NUL_TERMINATED ? strnlen(tag, most) : tag_bytes < most ? tag_bytes : most;
  if (bytes) memcpy(name, tag, bytes);
  name[bytes] = '\0';
  return prof_memory_tag(name);
}

void prof_memory_sample(prof_device device, const char *tag, uint32_t tag_bytes) {
  if (!prof_i_memory_is_on() || !prof_i_control_is_own_process()) return;
  if (device.type == 0) device = PROF_HOST;
  prof_pool *const pool = find(device);
  if (!pool) return;
  __atomic_fetch_add(&pool->asking, 1, __ATOMIC_SEQ_CST); /* pairs with the look in prof_memory_set_query() */
  const prof_memory_query query = pool->query;
  uint64_t used = 0, allocated = 0;
  if (__atomic_load_n(&pool->serial, __ATOMIC_SEQ_CST) && query && query(pool->user, &used, &allocated) == 0) {
    const prof_i_note note = {.verb = PROF_I_VERB_SAMPLE,
                              .tag = tag_number(tag, tag_bytes),
                              .bytes = used < PROF_I_USED_ZERO ? used : PROF_I_USED_ZERO,
                              .stream = PROF_NO_STREAM,
                              .extra = allocated < PROF_I_USED_ZERO ? allocated : PROF_I_USED_ZERO};
    prof_i_note_slowly(pool, &note);
  }
  __atomic_fetch_sub(&pool->asking, 1, __ATOMIC_RELEASE);
}
