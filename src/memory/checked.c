/* Checked pools: see internal.h. A call spins until it has the lock. If this thread already holds
   it, a signal handler is running, and its call is not checked. */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>

#include "../base/process.h"
#include "../core/buffer/thread.h"
#include "../format/addr_map.h"

enum { FIRST_ROOM = 4096, FREED_COUNT = 1024, SPINS = 64 };

struct prof_i_checked {
  prof_i_addr_map pieces;
  uint64_t init_count; /* the pool's, that the pieces are of */
  /* pieces of no bytes, and too large to be counted, which are not kept */
  uint64_t empty_count, large_count;
  bool knows_before; /* is unknown_bytes all there was? */
  /* a handler's call went unchecked: from then on nothing here is sure. Atomic */
  uint32_t call_was_missed;
  /* of live memory from before the start, or that found no room here */
  uint64_t unknown_bytes;
  /* addresses that came back, by their hash: a free of one is a double one, as long as it is
     remembered */
  uint64_t freed[FREED_COUNT];
};

static const size_t node_bytes = sizeof(prof_i_addr_range);

struct prof_i_checked *prof_i_checked_create(void) {
  void *const memory = mmap(NULL, sizeof(struct prof_i_checked), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return NULL;
  return memory;
}

void prof_i_checked_destroy(struct prof_i_checked *checked) {
  if (!checked) return;
  if (checked->pieces.nodes) munmap(checked->pieces.nodes, checked->pieces.room * node_bytes);
  munmap(checked, sizeof *checked);
}

static bool ranges_make_room(prof_i_addr_map *pieces) {
  if (prof_i_addr_map_has_room(pieces)) return true;
  const uint32_t room = pieces->room ? pieces->room * 2 : FIRST_ROOM;
  if (room < pieces->room) return false;
  void *const larger = pieces->nodes ? mremap(pieces->nodes, pieces->room * node_bytes,
                                              room * node_bytes, MREMAP_MAYMOVE)
                                     : mmap(NULL, room * node_bytes, PROT_READ | PROT_WRITE,
                                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (larger == MAP_FAILED) return false;
  pieces->nodes = larger;
  pieces->room = room;
  return true;
}

/* ---- the lock ---- */

static uint64_t lock_token(void) { return (uint64_t)(uintptr_t)&prof_i_this_thread; }

static bool pool_try_lock(prof_pool *pool, uint64_t *owner_out) {
  *owner_out = 0;
  /* a handler that would wait for this thread is refused: process.h */
  prof_i_this_flags.inside++;
  PROF_I_SIGNAL_FENCE();
  const bool has_lock = __atomic_compare_exchange_n(&pool->lock, owner_out, lock_token(), false,
                                                    __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
  if (!has_lock) prof_i_this_flags.inside--;
  return has_lock;
}

static bool pool_lock(prof_pool *pool, struct prof_i_checked *checked) {
  uint64_t owner;
  for (uint64_t tries = 1; !pool_try_lock(pool, &owner); tries++) {
    if (owner == lock_token()) return false;
    if (tries % SPINS == 0) sched_yield();
  }
  const uint64_t init_count = __atomic_load_n(&pool->init_count, __ATOMIC_ACQUIRE);
  /* what came and went since is not known; of a forked child's, one of its parent's threads may
     have been at it */
  if (checked->init_count != init_count) {
    checked->pieces.used = checked->pieces.root = checked->pieces.free = checked->pieces.count = 0;
    memset(checked->freed, 0, sizeof checked->freed);
    checked->unknown_bytes = __atomic_load_n(&pool->before_bytes, __ATOMIC_RELAXED);
    checked->knows_before = __atomic_load_n(&pool->knows_before, __ATOMIC_RELAXED);
    checked->empty_count = checked->large_count = 0;
    __atomic_store_n(&checked->call_was_missed, 0, __ATOMIC_RELAXED);
    checked->init_count = init_count;
  }
  return true;
}

static void pool_unlock(prof_pool *pool) {
  __atomic_store_n(&pool->lock, 0, __ATOMIC_RELEASE);
  PROF_I_SIGNAL_FENCE();
  prof_i_this_flags.inside--;
}

static void count_unchecked(prof_pool *pool) {
  prof_i_pool_state *const state = __atomic_load_n(&pool->state, __ATOMIC_ACQUIRE);
  if (state) __atomic_fetch_add(&state->unchecked_count, 1, __ATOMIC_RELAXED);
}

/* ---- what is wrong ---- */

static void note_wrong(prof_pool *pool, prof_memory_wrong wrong, uint64_t address, uint64_t bytes) {
  prof_i_pool_state *const state = __atomic_load_n(&pool->state, __ATOMIC_ACQUIRE);
  if (state) __atomic_fetch_add(&state->wrong_count, 1, __ATOMIC_RELAXED);
  const prof_i_memory_event note = {.verb = PROF_I_VERB_WRONG,
                                    .address = address,
                                    .bytes = bytes,
                                    .stream = PROF_NO_STREAM,
                                    .extra = wrong};
  prof_i_memory_event_write(pool, &note);
}

static uint64_t *freed_slot_of(struct prof_i_checked *checked, uint64_t address) {
  return &checked->freed[(address * 0x9e3779b97f4a7c15ull >> 32) % FREED_COUNT];
}

struct prof_i_checked *prof_i_checked_acquire(prof_pool *pool) {
  struct prof_i_checked *const checked = __atomic_load_n(&pool->checked, __ATOMIC_ACQUIRE);
  uint64_t owner;
  if (!checked) return NULL;
  while (!pool_try_lock(pool, &owner)) sched_yield();
  __atomic_store_n(&pool->checked, NULL, __ATOMIC_RELEASE);
  pool_unlock(pool);
  return checked;
}

/* Is the piece another checked pool's? Its lock is only tried: two threads may look at each
   other's. With it, what it checks with stays. */
static bool range_is_of_other_pool(const prof_pool *pool, uint64_t address) {
  for (prof_pool *other = prof_i_pool_first(); other;
       other = __atomic_load_n(&other->next, __ATOMIC_ACQUIRE)) {
    uint64_t owner;
    if (other == pool || !__atomic_load_n(&other->checked, __ATOMIC_RELAXED) ||
        !pool_try_lock(other, &owner))
      continue;
    const struct prof_i_checked *const checked = __atomic_load_n(&other->checked, __ATOMIC_ACQUIRE);
    const bool has = checked &&
                     checked->init_count == __atomic_load_n(&other->init_count, __ATOMIC_ACQUIRE) &&
                     prof_i_addr_map_find(&checked->pieces, address) != 0;
    pool_unlock(other);
    if (has) return true;
  }
  return false;
}

/* ---- the calls ---- */

/* This is a handler, and its thread is just at the table. */
static void note_missed_call(prof_pool *pool, struct prof_i_checked *checked) {
  __atomic_store_n(&checked->call_was_missed, 1, __ATOMIC_RELAXED);
  count_unchecked(pool);
}

static bool call_was_missed(const struct prof_i_checked *checked) {
  return __atomic_load_n(&checked->call_was_missed, __ATOMIC_RELAXED) != 0;
}

static void forget_freed(struct prof_i_checked *checked, uint64_t address) {
  uint64_t *const freed = freed_slot_of(checked, address);
  if (*freed == address) *freed = 0;
}

static void remember_range(prof_pool *pool, struct prof_i_checked *checked, uint64_t address,
                           uint64_t given_bytes) {
  forget_freed(checked, address);
  if (given_bytes == 0) {
    checked->empty_count++;
  } else if (given_bytes >= PROF_I_ALLOC_BYTES_END) {
    checked->large_count++;
  } else if (ranges_make_room(&checked->pieces)) {
    prof_i_addr_map_insert(&checked->pieces, address, given_bytes, 0);
  } else { /* its free is not to be called wrong */
    checked->unknown_bytes += given_bytes;
    count_unchecked(pool);
  }
}

bool prof_i_checked_alloc(prof_pool *pool, struct prof_i_checked *checked, uint64_t address,
                          uint64_t given_bytes) {
  const int saved = errno;
  if (!pool_lock(pool, checked)) {
    note_missed_call(pool, checked);
    return true;
  }
  /* What is in its way must have come back unseen: it is noted as wrong, and goes. */
  const bool takes_room = given_bytes > 0 && given_bytes < PROF_I_ALLOC_BYTES_END;
  for (uint32_t at; takes_room && (at = prof_i_addr_map_find_overlap(&checked->pieces, address,
                                                                     given_bytes)) != 0;) {
    const prof_i_addr_range old = checked->pieces.nodes[at];
    prof_i_addr_map_remove(&checked->pieces, old.address);
    if (call_was_missed(checked)) { /* perhaps by a handler's free, which was counted */
      count_unchecked(pool);
      continue;
    }
    pool_unlock(pool);
    note_wrong(pool, PROF_MEMORY_WRONG_OVERLAP, address, given_bytes);
    const prof_i_memory_event gone = {.verb = PROF_I_VERB_FREE,
                                      .address = old.address,
                                      .bytes = old.bytes,
                                      .requested = old.bytes,
                                      .stream = PROF_NO_STREAM};
    prof_i_memory_event_write(pool, &gone);
    if (!pool_lock(pool, checked)) return true;
  }
  remember_range(pool, checked, address, given_bytes);
  pool_unlock(pool);
  errno = saved;
  return true;
}

/* How a free of what is not in the table is to be taken. */
typedef enum free_verdict {
  CALL_IS_RIGHT,
  CALL_IS_UNKNOWN, /* it may be right */
  CALL_IS_WRONG
} free_verdict;

static free_verdict classify_unknown(struct prof_i_checked *checked, bool was_freed,
                                     uint64_t *given_bytes) {
  const bool is_said = *given_bytes != PROF_BYTES_UNKNOWN;
  if (was_freed) return call_was_missed(checked) ? CALL_IS_UNKNOWN : CALL_IS_WRONG;
  /* it is refused, as its alloc was */
  if (*given_bytes >= PROF_I_ALLOC_BYTES_END && checked->large_count) {
    checked->large_count--;
    return CALL_IS_RIGHT;
  }
  if (*given_bytes == 0 || (!is_said && checked->empty_count)) {
    *given_bytes = 0;
    if (checked->empty_count) checked->empty_count--;
    return CALL_IS_RIGHT;
  }
  /* taken for one of those that are not known */
  if (is_said && *given_bytes <= checked->unknown_bytes) {
    checked->unknown_bytes -= *given_bytes;
    return CALL_IS_RIGHT;
  }
  return !checked->knows_before || call_was_missed(checked) || (!is_said && checked->unknown_bytes)
             ? CALL_IS_UNKNOWN
             : CALL_IS_WRONG;
}

bool prof_i_checked_free(prof_pool *pool, struct prof_i_checked *checked, uint64_t address,
                         uint64_t *given_bytes) {
  const int saved = errno;
  if (!pool_lock(pool, checked)) {
    note_missed_call(pool, checked);
    return *given_bytes != PROF_BYTES_UNKNOWN;
  }
  /* which stands nowhere, perhaps at another one's address */
  const bool is_empty = *given_bytes == 0 && checked->empty_count;
  const uint32_t at = is_empty ? 0 : prof_i_addr_map_find(&checked->pieces, address);
  const uint64_t bytes = at ? checked->pieces.nodes[at].bytes : 0;
  const bool was_freed = !is_empty && *freed_slot_of(checked, address) == address;
  const bool is_size_wrong = at && *given_bytes != PROF_BYTES_UNKNOWN && *given_bytes != bytes &&
                             !call_was_missed(checked);
  free_verdict is = CALL_IS_RIGHT;
  if (at) {
    prof_i_addr_map_remove(&checked->pieces, address);
    *freed_slot_of(checked, address) = address;
  } else {
    is = classify_unknown(checked, was_freed, given_bytes);
  }
  pool_unlock(pool);
  errno = saved;
  if (is_size_wrong) note_wrong(pool, PROF_MEMORY_WRONG_SIZE, address, *given_bytes);
  if (at) *given_bytes = bytes;
  if (is == CALL_IS_RIGHT) return true;
  if (is == CALL_IS_UNKNOWN) {
    count_unchecked(pool);
    return *given_bytes != PROF_BYTES_UNKNOWN;
  }
  const prof_memory_wrong wrong = was_freed ? PROF_MEMORY_WRONG_DOUBLE
                                  : range_is_of_other_pool(pool, address)
                                      ? PROF_MEMORY_WRONG_POOL
                                      : PROF_MEMORY_WRONG_UNKNOWN;
  note_wrong(pool, wrong, address, *given_bytes == PROF_BYTES_UNKNOWN ? 0 : *given_bytes);
  return false;
}
