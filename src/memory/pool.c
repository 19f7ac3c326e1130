/* The public calls on pools: create, destroy, tag. Queries, which act as a pool. Sums over the
   pools of a device. */
#define _GNU_SOURCE
#include <prof/memory.h>
#include <stdlib.h>
#include <string.h>

#include "../base/display.h"
#include "../base/error.h"
#include "../base/options.h"
#include "../base/port.h"
#include "../base/process.h"
#include "../core/buffer/session.h"
#include "../core/record/site.h"
#include "../core/session/control.h"
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

/* ---- sums over the pools of a device ---- */

/* Existing pools have their values in their states. For destroyed pools, each device has a total.
   Records are not read. */

typedef struct pool_total {
  prof_device device;
  prof_memory_source kind;
  prof_i_pool_sum ended;
  struct pool_total *next;
} pool_total;

static pool_total *pool_totals; /* one a device and kind, never freed. Control lock */
static bool totals_are_hidden;  /* control lock */

static pool_total *pool_total_find(prof_device device, prof_memory_source kind) {
  pool_total *at = pool_totals;
  while (at && !(at->kind == kind && prof_i_is_same_device(at->device, device))) at = at->next;
  return at;
}

bool prof_i_pool_open_total(prof_device device, prof_memory_source kind) {
  if (pool_total_find(device, kind)) return true;
  pool_total *const fresh = calloc(1, sizeof *fresh);
  if (!fresh) return false;
  *fresh = (pool_total){.device = device, .kind = kind, .next = pool_totals};
  pool_totals = fresh;
  return true;
}

void prof_i_pool_clear_totals(void) {
  for (pool_total *at = pool_totals; at; at = at->next) at->ended = (prof_i_pool_sum){0};
}

void prof_i_pool_hide_totals(bool hide) { totals_are_hidden = hide; }

static uint64_t clamp_to_zero(int64_t bytes) { return bytes > 0 ? (uint64_t)bytes : 0; }
/* while another capture starts the state reads as zeros */
static uint64_t allocated_bytes_of(uint64_t value) {
  return value > PROF_I_USED_ZERO ? value - PROF_I_USED_ZERO : 0;
}
static uint64_t larger_of(uint64_t a, uint64_t b) { return a > b ? a : b; }

static void pool_sum_add(prof_i_pool_sum *sum, const prof_pool *pool) {
  prof_i_pool_state *const state = pool->state;
  const bool is_query = pool->kind == PROF_MEMORY_QUERY;
  const uint64_t used_peak =
      __atomic_load_n(&prof_i_peak_now(state->used_peaks, state)->peak, __ATOMIC_RELAXED);
  sum->used +=
      is_query ? __atomic_load_n(&state->used_now, __ATOMIC_RELAXED)
               : clamp_to_zero(prof_i_used_bytes(__atomic_load_n(&state->used, __ATOMIC_RELAXED)));
  sum->allocated += allocated_bytes_of(__atomic_load_n(&state->allocated, __ATOMIC_RELAXED));
  sum->max_used += is_query ? used_peak : clamp_to_zero(prof_i_used_bytes(used_peak));
  sum->max_allocated += allocated_bytes_of(
      __atomic_load_n(&prof_i_peak_now(state->allocated_peaks, state)->peak, __ATOMIC_RELAXED));
  sum->collections += __atomic_load_n(&state->collection_count, __ATOMIC_RELAXED);
  sum->pools++;
}

/* Pools that are there. */
static prof_i_pool_sum sum_of_live_pools(prof_device device, prof_memory_source kind) {
  prof_i_pool_sum sum = {0};
  for (const prof_pool *pool = prof_i_pool_first(); pool; pool = pool->next)
    if (pool->serial && pool->state && pool->kind == kind &&
        prof_i_is_same_device(pool->device, device))
      pool_sum_add(&sum, pool);
  return sum;
}

static prof_i_pool_sum pool_sum_of(prof_device device, prof_memory_source kind) {
  if (totals_are_hidden) return (prof_i_pool_sum){0};
  prof_i_pool_sum sum = sum_of_live_pools(device, kind);
  const pool_total *const at = pool_total_find(device, kind);
  if (!at) return sum;
  const prof_i_pool_sum *const ended = &at->ended;
  if (kind == PROF_MEMORY_QUERY && !sum.pools) {
    sum.used = ended->used;
    sum.allocated = ended->allocated;
  }
  sum.max_used = larger_of(sum.max_used, ended->max_used);
  sum.max_allocated = larger_of(sum.max_allocated, ended->max_allocated);
  sum.collections += ended->collections;
  sum.pools += ended->pools;
  return sum;
}

/* Pools that existed together all did until the first of them was destroyed. So the highest sum of
   peaks at any such moment is at least what they ever had together. */
void prof_i_pool_add_to_total(const prof_pool *pool) {
  pool_total *const at = pool_total_find(pool->device, pool->kind);
  if (!at || !pool->state) return;
  const prof_i_pool_sum there = sum_of_live_pools(pool->device, pool->kind);
  prof_i_pool_sum own = {0};
  pool_sum_add(&own, pool);
  prof_i_pool_sum *const ended = &at->ended;
  ended->used = own.used;
  ended->allocated = own.allocated;
  ended->max_used = larger_of(ended->max_used, there.max_used);
  ended->max_allocated = larger_of(ended->max_allocated, there.max_allocated);
  ended->collections += own.collections;
  ended->pools++;
}

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
  prof_i_pool_sum sum = pool_sum_of(device, kind);
  if (source == PROF_MEMORY_ANY && !sum.pools) sum = pool_sum_of(device, kind = PROF_MEMORY_QUERY);
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
