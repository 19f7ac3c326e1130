/* See freed.h. A piece is taken whole from its place, the smallest that serves. What is left of it
   goes back in quarters, so that small chunks do not use up large pieces. The head at the start of
   a piece stays: it counts what has gone from there. */
#define _GNU_SOURCE
#include "freed.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "blocks.h"

enum {
  PLACE_COUNT = 8192,
  LOG_BITS = 6 /* of a place: log2 of the piece's units. The rest is its offset. 0: empty */
};

static struct {
  uint64_t *places; /* any thread, compare-and-swap */
  uint64_t used;    /* how many were ever used since the arena began. Any thread */
  uint64_t bytes;   /* in all places. Any thread, relaxed */
} own;

static uint64_t place_of(uint64_t offset, uint64_t bytes) {
  return offset | (uint64_t)__builtin_ctzll(bytes / PROF_I_UNIT_BYTES);
}
static uint64_t offset_of(uint64_t place) { return place >> LOG_BITS << LOG_BITS; }
static uint64_t bytes_of(uint64_t place) {
  return (uint64_t)PROF_I_UNIT_BYTES << (place & ((1u << LOG_BITS) - 1));
}

int prof_i_freed_prepare(void) {
  if (own.places) return 0;
  void *const memory = mmap(NULL, PLACE_COUNT * sizeof *own.places, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return errno;
  own.places = memory;
  return 0;
}

void prof_i_freed_begin(void) {
  own.used = own.bytes = 0;
  memset(own.places, 0, PLACE_COUNT * sizeof *own.places);
}

static uint64_t used_count(void) { return __atomic_load_n(&own.used, __ATOMIC_ACQUIRE); }

uint64_t prof_i_freed_bytes(void) { return __atomic_load_n(&own.bytes, __ATOMIC_RELAXED); }

/* Counts first: so the sum is never below 0. */
static bool put_at(uint64_t i, uint64_t value) {
  uint64_t none = 0;
  if (__atomic_load_n(&own.places[i], __ATOMIC_RELAXED)) return false;
  __atomic_fetch_add(&own.bytes, bytes_of(value), __ATOMIC_RELAXED);
  if (__atomic_compare_exchange_n(&own.places[i], &none, value, false, __ATOMIC_ACQ_REL,
                                  __ATOMIC_RELAXED))
    return true;
  __atomic_fetch_sub(&own.bytes, bytes_of(value), __ATOMIC_RELAXED);
  return false;
}

/* If no place is left, the room is lost until the arena is replaced. */
void prof_i_freed_put(uint64_t offset, uint64_t bytes) {
  const uint64_t value = place_of(offset, bytes);
  uint64_t used = used_count();
  for (uint64_t i = 0; i < used; i++)
    if (put_at(i, value)) return;
  while (used < PLACE_COUNT) {
    if (!__atomic_compare_exchange_n(&own.used, &used, used + 1, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE))
      continue;
    if (put_at(used, value)) return;
    used = used_count();
  }
}

/* The smallest piece of at least so many bytes, taken out. 0: there is none. A slot stays readable
   when its arena is replaced, so it takes no private memory. */
static uint64_t take_smallest(uint64_t bytes, bool is_for_slot) {
  for (;;) {
    uint64_t best = 0, at = 0;
    for (uint64_t i = 0, used = used_count(); i < used; i++) {
      const uint64_t place = __atomic_load_n(&own.places[i], __ATOMIC_RELAXED);
      if (!place || bytes_of(place) < bytes) continue;
      if (best && bytes_of(place) >= bytes_of(best)) continue;
      if (is_for_slot && prof_i_block_is_private(offset_of(place))) continue;
      best = place;
      at = i;
      if (bytes_of(place) == bytes) break;
    }
    if (!best) return 0;
    uint64_t expected = best;
    if (!__atomic_compare_exchange_n(&own.places[at], &expected, 0, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED))
      continue;
    __atomic_fetch_sub(&own.bytes, bytes_of(best), __ATOMIC_RELAXED);
    return best;
  }
}

static void put_rest(uint64_t offset, uint64_t from_bytes, uint64_t bytes) {
  for (uint64_t quarter = from_bytes / 4; quarter >= bytes; quarter /= 4)
    for (uint64_t i = 1; i < 4; i++) prof_i_freed_put(offset + i * quarter, quarter);
}

static prof_i_head *take(prof_i_extent_kind kind, uint64_t bytes, uint64_t populate_bytes,
                         int *loss_out) {
  const uint64_t place = take_smallest(bytes, kind == PROF_I_EXTENT_SLOT);
  if (!place) return NULL;
  prof_i_head *const head =
      prof_i_arena_take_again(offset_of(place), kind, bytes, populate_bytes, loss_out);
  if (head)
    put_rest(offset_of(place), bytes_of(place), bytes);
  else
    prof_i_freed_put(offset_of(place), bytes_of(place));
  return head;
}

prof_i_head *prof_i_freed_take(uint64_t bytes, int *loss_out) {
  return take(PROF_I_EXTENT_CHUNK, bytes, bytes, loss_out);
}

prof_i_head *prof_i_freed_take_for_slot(uint64_t populate_bytes) {
  int loss;
  return take(PROF_I_EXTENT_SLOT, PROF_I_SLOT_BYTES, populate_bytes, &loss);
}
