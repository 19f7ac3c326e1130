/* What the pools of a device have come to: of those that are there their states say it, of those
   that are gone an account a device. See pool_state.h. */
#include <stdlib.h>

#include "pool_state.h"

typedef struct account {
  prof_device device;
  prof_memory_source kind;
  prof_i_pool_sum gone;
  struct account *next;
} account;

static account *accounts; /* one a device and kind, never freed. Control lock */
static bool are_hidden;   /* control lock */

static account *find(prof_device device, prof_memory_source kind) {
  account *at = accounts;
  while (at && !(at->kind == kind && prof_i_is_same_device(at->device, device))) at = at->next;
  return at;
}

bool prof_i_pool_open_account(prof_device device, prof_memory_source kind) {
  if (find(device, kind)) return true;
  account *const fresh = calloc(1, sizeof *fresh);
  if (!fresh) return false;
  *fresh = (account){.device = device, .kind = kind, .next = accounts};
  accounts = fresh;
  return true;
}

void prof_i_pool_clear_accounts(void) {
  for (account *at = accounts; at; at = at->next) at->gone = (prof_i_pool_sum){0};
}

void prof_i_pool_hide_sums(bool hide) { are_hidden = hide; }

/* ---- sums ---- */

static uint64_t at_least_0(int64_t bytes) { return bytes > 0 ? (uint64_t)bytes : 0; }
/* while another capture starts the state reads as zeros */
static uint64_t allocated_of(uint64_t value) {
  return value > PROF_I_USED_ZERO ? value - PROF_I_USED_ZERO : 0;
}
static uint64_t higher(uint64_t a, uint64_t b) { return a > b ? a : b; }

static void add(prof_i_pool_sum *sum, const prof_pool *pool) {
  prof_i_pool_state *const state = pool->state;
  const bool is_query = pool->kind == PROF_MEMORY_QUERY;
  const uint64_t used_peak =
      __atomic_load_n(&prof_i_peak_now(state->used_peaks, state)->peak, __ATOMIC_RELAXED);
  sum->used += is_query
                   ? __atomic_load_n(&state->used_now, __ATOMIC_RELAXED)
                   : at_least_0(prof_i_used_bytes(__atomic_load_n(&state->used, __ATOMIC_RELAXED)));
  sum->allocated += allocated_of(__atomic_load_n(&state->allocated, __ATOMIC_RELAXED));
  sum->max_used += is_query ? used_peak : at_least_0(prof_i_used_bytes(used_peak));
  sum->max_allocated += allocated_of(
      __atomic_load_n(&prof_i_peak_now(state->allocated_peaks, state)->peak, __ATOMIC_RELAXED));
  sum->collections += __atomic_load_n(&state->collection_count, __ATOMIC_RELAXED);
  sum->pools++;
}

/* Pools that are there. */
static prof_i_pool_sum sum_there(prof_device device, prof_memory_source kind) {
  prof_i_pool_sum sum = {0};
  for (const prof_pool *pool = prof_i_pool_first(); pool; pool = pool->next)
    if (pool->serial && pool->state && pool->kind == kind &&
        prof_i_is_same_device(pool->device, device))
      add(&sum, pool);
  return sum;
}

prof_i_pool_sum prof_i_pool_sum_of(prof_device device, prof_memory_source kind) {
  if (are_hidden) return (prof_i_pool_sum){0};
  prof_i_pool_sum sum = sum_there(device, kind);
  const account *const at = find(device, kind);
  if (!at) return sum;
  const prof_i_pool_sum *const gone = &at->gone;
  if (kind == PROF_MEMORY_QUERY && !sum.pools) {
    sum.used = gone->used;
    sum.allocated = gone->allocated;
  }
  sum.max_used = higher(sum.max_used, gone->max_used);
  sum.max_allocated = higher(sum.max_allocated, gone->max_allocated);
  sum.collections += gone->collections;
  sum.pools += gone->pools;
  return sum;
}

/* Whenever some pools were there together, all of them were until the first of them went: the
   highest sum of peaks at any going is at least what they ever had together. */
void prof_i_pool_keep_sum(const prof_pool *pool) {
  account *const at = find(pool->device, pool->kind);
  if (!at || !pool->state) return;
  const prof_i_pool_sum there = sum_there(pool->device, pool->kind);
  prof_i_pool_sum own = {0};
  add(&own, pool);
  prof_i_pool_sum *const gone = &at->gone;
  gone->used = own.used;
  gone->allocated = own.allocated;
  gone->max_used = higher(gone->max_used, there.max_used);
  gone->max_allocated = higher(gone->max_allocated, there.max_allocated);
  gone->collections += own.collections;
  gone->pools++;
}
