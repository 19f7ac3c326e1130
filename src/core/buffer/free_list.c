/* See chunk.h. A piece is taken whole from its place, the smallest that serves. What is left of
   it goes back in quarters, so that small chunks do not use up large pieces. The head at the start
   of a piece stays: it counts what has gone from there. */
#define _GNU_SOURCE
#include "chunk.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "../../base/port.h"
#include "blocks.h"

enum {
  ENTRY_COUNT = 8192,
  KEPT_BYTES = 4096, /* of a chunk whose room is given back */
  LOG_BITS = 6       /* of a place: log2 of the piece's units. The rest is its offset. 0: empty */
};

static struct {
  uint64_t *entries; /* any thread, compare-and-swap */
  uint64_t used;     /* how many were ever used since the arena began. Any thread */
  uint64_t bytes;    /* in all places. Any thread, relaxed */
} free_list;

static uint64_t entry_make(uint64_t offset, uint64_t bytes) {
  return offset | (uint64_t)__builtin_ctzll(bytes / PROF_I_UNIT_BYTES);
}
static uint64_t entry_offset(uint64_t entry) { return entry >> LOG_BITS << LOG_BITS; }
static uint64_t entry_bytes(uint64_t entry) {
  return (uint64_t)PROF_I_UNIT_BYTES << (entry & ((1u << LOG_BITS) - 1));
}

int prof_i_free_list_prepare(void) {
  if (free_list.entries) return 0;
  void *const memory = mmap(NULL, ENTRY_COUNT * sizeof *free_list.entries, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return errno;
  free_list.entries = memory;
  return 0;
}

void prof_i_free_list_begin(void) {
  free_list.used = free_list.bytes = 0;
  memset(free_list.entries, 0, ENTRY_COUNT * sizeof *free_list.entries);
}

static uint64_t entry_count(void) { return __atomic_load_n(&free_list.used, __ATOMIC_ACQUIRE); }

uint64_t prof_i_free_list_bytes(void) {
  return __atomic_load_n(&free_list.bytes, __ATOMIC_RELAXED);
}

/* Counts first: so the sum is never below 0. */
static bool entry_put_at(uint64_t i, uint64_t value) {
  uint64_t none = 0;
  if (__atomic_load_n(&free_list.entries[i], __ATOMIC_RELAXED)) return false;
  __atomic_fetch_add(&free_list.bytes, entry_bytes(value), __ATOMIC_RELAXED);
  if (__atomic_compare_exchange_n(&free_list.entries[i], &none, value, false, __ATOMIC_ACQ_REL,
                                  __ATOMIC_RELAXED))
    return true;
  __atomic_fetch_sub(&free_list.bytes, entry_bytes(value), __ATOMIC_RELAXED);
  return false;
}

/* If no place is left, the room is lost until the arena is replaced. */
void prof_i_free_list_put(uint64_t offset, uint64_t bytes) {
  const uint64_t value = entry_make(offset, bytes);
  uint64_t used = entry_count();
  for (uint64_t i = 0; i < used; i++)
    if (entry_put_at(i, value)) return;
  while (used < ENTRY_COUNT) {
    if (!__atomic_compare_exchange_n(&free_list.used, &used, used + 1, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE))
      continue;
    if (entry_put_at(used, value)) return;
    used = entry_count();
  }
}

/* The chunk belongs to the caller, and nobody reads it. Its first page stays: the head has counts
   of evicted events. */
void prof_i_free_list_put_chunk(prof_i_head *chunk) {
  memset((char *)chunk + PROF_I_HEAD_BYTES, 0, KEPT_BYTES - PROF_I_HEAD_BYTES);
  __atomic_store_n(&chunk->cursor, PROF_I_HEAD_BYTES, __ATOMIC_RELEASE);
  if (prof_i_block_is_private(prof_i_arena_offset(chunk)))
    prof_i_blocks_punch(chunk, chunk->bytes, KEPT_BYTES);
  else
    prof_i_port_punch_hole((char *)chunk + KEPT_BYTES, chunk->bytes - KEPT_BYTES);
  prof_i_free_list_put(prof_i_arena_offset(chunk), chunk->bytes);
}

/* The smallest piece of at least so many bytes, taken out. 0: there is none. A slot stays readable
   when its arena is replaced, so it takes no private memory. */
static uint64_t entry_take_smallest(uint64_t bytes, bool is_for_slot) {
  for (;;) {
    uint64_t best = 0, at = 0;
    for (uint64_t i = 0, used = entry_count(); i < used; i++) {
      const uint64_t entry = __atomic_load_n(&free_list.entries[i], __ATOMIC_RELAXED);
      if (!entry || entry_bytes(entry) < bytes) continue;
      if (best && entry_bytes(entry) >= entry_bytes(best)) continue;
      if (is_for_slot && prof_i_block_is_private(entry_offset(entry))) continue;
      best = entry;
      at = i;
      if (entry_bytes(entry) == bytes) break;
    }
    if (!best) return 0;
    uint64_t expected = best;
    if (!__atomic_compare_exchange_n(&free_list.entries[at], &expected, 0, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED))
      continue;
    __atomic_fetch_sub(&free_list.bytes, entry_bytes(best), __ATOMIC_RELAXED);
    return best;
  }
}

static void extent_put_rest(uint64_t offset, uint64_t from_bytes, uint64_t bytes) {
  for (uint64_t quarter = from_bytes / 4; quarter >= bytes; quarter /= 4)
    for (uint64_t i = 1; i < 4; i++) prof_i_free_list_put(offset + i * quarter, quarter);
}

static prof_i_head *extent_take(prof_i_extent_kind kind, uint64_t bytes, uint64_t populate_bytes,
                                int *loss_out) {
  const uint64_t entry = entry_take_smallest(bytes, kind == PROF_I_EXTENT_SLOT);
  if (!entry) return NULL;
  prof_i_head *const head =
      prof_i_arena_retake_extent(entry_offset(entry), kind, bytes, populate_bytes, loss_out);
  if (head)
    extent_put_rest(entry_offset(entry), entry_bytes(entry), bytes);
  else
    prof_i_free_list_put(entry_offset(entry), entry_bytes(entry));
  return head;
}

prof_i_head *prof_i_free_list_take(uint64_t bytes, int *loss_out) {
  return extent_take(PROF_I_EXTENT_CHUNK, bytes, bytes, loss_out);
}

prof_i_head *prof_i_free_list_take_for_slot(uint64_t populate_bytes) {
  int loss;
  return extent_take(PROF_I_EXTENT_SLOT, PROF_I_SLOT_BYTES, populate_bytes, &loss);
}
