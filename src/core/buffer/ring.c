/* See ring.h. */
#define _GNU_SOURCE
#include "ring.h"

#include <prof/profiler.h>
#include <sched.h>

#include "blocks.h"
#include "chunk.h"
#include "free_list.h"
#include "ring_list.h"

enum {
  BLOCK_TRIES = 256, /* chunks whose blocks are looked at */
  SLOT_TRIES = 16,
  SHARING_TRIES = 1000,
  SLOTS_SHARE = 8,                    /* of the cap: the ring leaves that to slots of threads */
  PARTS_MAX = 4096,                   /* a ring is not split further: each change looks at all */
  LONG_BYTES = 4 * PROF_I_UNIT_BYTES, /* holds the longest record */
  LONG_COUNT = 2                      /* so many of them are not split further */
};

static struct {
  uint64_t bytes;               /* of all chunks. Any thread, relaxed */
  uint64_t ring_grow_bytes_max; /* larger chunks were refused. Any thread, relaxed */
  bool is_sharing;              /* a thread is making a block shared. Any thread, atomic */
  uint64_t none_at, no_slot_at; /* see prof_i_ring_is_none(). Any thread, relaxed */
} ring;

/* ---- parts of a chunk ---- */

/* The longest record needs a chunk of 64 KiB. */
static bool ring_has_more_long(const prof_i_head *chunk) {
  const uint64_t count = prof_i_ring_entry_count();
  uint32_t found = 0;
  for (uint64_t i = 0; i < count && found < LONG_COUNT; i++) {
    const uint64_t value = prof_i_ring_load_entry(i);
    found +=
        value && prof_i_ring_bytes_of(value) >= LONG_BYTES && prof_i_ring_chunk_of(value) != chunk;
  }
  return found == LONG_COUNT;
}

static bool chunk_may_split(const prof_i_head *chunk) {
  return chunk->bytes / 4 * PARTS_MAX >= prof_i_the_arena.cap_bytes &&
         (chunk->bytes > LONG_BYTES || ring_has_more_long(chunk));
}

static prof_i_head *take_split_chunk(prof_i_ring_request *request) {
  prof_i_head *const chunk = prof_i_ring_take_oldest(request);
  while (chunk && chunk->bytes > request->bytes && chunk_may_split(chunk)) prof_i_ring_split(chunk);
  return chunk;
}

/* ---- taking ---- */

static bool ring_has_room_for(uint64_t bytes) {
  const uint64_t cap = prof_i_the_arena.cap_bytes;
  return prof_i_ring_has_entry_left() &&
         prof_i_arena_taken_bytes() + bytes + cap / SLOTS_SHARE <= cap;
}

static uint64_t ring_grow_bytes_max(void) {
  return __atomic_load_n(&ring.ring_grow_bytes_max, __ATOMIC_RELAXED);
}

/* NULL: the ring has all that it may have. */
static prof_i_head *ring_grow(uint64_t bytes, uint64_t least_bytes) {
  for (uint64_t most; (most = ring_grow_bytes_max()) != 0;) {
    while (bytes > most) bytes /= 4;
    int loss = 0;
    if (bytes < least_bytes) return NULL;
    prof_i_head *chunk = prof_i_free_list_take(bytes, &loss);
    if (!chunk && !ring_has_room_for(bytes)) return NULL;
    if (!chunk) chunk = prof_i_arena_take_extent(PROF_I_EXTENT_CHUNK, bytes, bytes, &loss);
    if (chunk) {
      __atomic_fetch_add(&ring.bytes, bytes, __ATOMIC_RELAXED);
      prof_i_ring_add(chunk, prof_i_chunk_next_number());
      return chunk;
    }
    if (loss != PROF_LOSS_DISK) return NULL;
    const uint64_t less = bytes > PROF_I_UNIT_BYTES ? bytes / 4 : 0;
    __atomic_compare_exchange_n(&ring.ring_grow_bytes_max, &most, less, false, __ATOMIC_RELAXED,
                                __ATOMIC_RELAXED);
  }
  return NULL;
}

/* What a clear emptied. */
static bool ring_has_empty(uint64_t bytes) {
  const prof_i_ring_request request = {.bytes = bytes, .least_bytes = bytes};
  uint64_t place;
  return prof_i_ring_empty_bytes() >= bytes &&
         prof_i_ring_age_of(prof_i_ring_find_oldest(&request, prof_i_ring_entry_count(), 0,
                                                    &place)) == PROF_I_RING_AGE_EMPTY;
}

prof_i_head *prof_i_ring_take(uint64_t bytes, uint64_t least_bytes, int *loss_out) {
  prof_i_ring_request request = {.bytes = bytes, .least_bytes = least_bytes};
  prof_i_head *chunk = ring_has_empty(bytes) ? NULL : ring_grow(bytes, least_bytes);
  const uint64_t retired = prof_i_ring_retired_count();
  if (!chunk && !prof_i_ring_is_none(&ring.none_at)) {
    chunk = take_split_chunk(&request);
    if (!chunk && !request.has_unfinished && least_bytes <= PROF_I_UNIT_BYTES)
      prof_i_ring_note_none(&ring.none_at, retired);
  }
  if (!chunk) chunk = ring_grow(bytes, least_bytes); /* another took what was empty */
  if (!chunk) *loss_out = PROF_LOSS_NO_CHUNK;
  return chunk;
}

/* ---- slots ---- */

/* The thread records into another chunk. */
static bool ring_has_two_retired(const prof_i_ring_request *request) {
  const uint64_t count = prof_i_ring_entry_count();
  uint32_t retired = 0, serving = 0;
  for (uint64_t i = 0; i < count && (retired < 2 || !serving); i++) {
    const uint64_t value = prof_i_ring_load_entry(i);
    if (!value || !prof_i_ring_is_retired(prof_i_ring_chunk_of(value))) continue;
    const bool serves = prof_i_ring_key_of(value, request) != UINT64_MAX;
    retired += serves && prof_i_ring_bytes_of(value) > PROF_I_SLOT_BYTES ? 2 : 1;
    serving += serves;
  }
  return retired >= 2 && serving;
}

/* ---- a block for slots ---- */

/* Calls see() for each chunk of the block. Returns how many bytes they are together; it ends at the
   first that see() refuses. */
static uint64_t visit_block_chunks(uint64_t block, bool (*see)(uint64_t place)) {
  const uint64_t count = prof_i_ring_entry_count();
  uint64_t bytes = 0;
  for (uint64_t i = 0; i < count; i++) {
    const uint64_t value = prof_i_ring_load_entry(i), offset = prof_i_ring_offset_of(value);
    if (!value || offset < block || offset - block >= PROF_I_BLOCK_BYTES) continue;
    if (!see(i)) break;
    bytes += prof_i_ring_bytes_of(prof_i_ring_load_entry(i));
  }
  return bytes;
}

static bool visit_is_retired(uint64_t place) {
  return prof_i_ring_is_retired(prof_i_ring_chunk_of(prof_i_ring_load_entry(place)));
}
static bool visit_take(uint64_t place) { return prof_i_ring_take_at(place); }

/* The first `bytes` of them are the caller's. */
static void block_put_chunks(uint64_t block, uint64_t bytes) {
  const uint64_t count = prof_i_ring_entry_count();
  for (uint64_t i = 0; i < count && bytes; i++) {
    const uint64_t value = prof_i_ring_load_entry(i), offset = prof_i_ring_offset_of(value);
    if (!value || offset < block || offset - block >= PROF_I_BLOCK_BYTES) continue;
    bytes -= prof_i_ring_bytes_of(value);
    prof_i_ring_put(prof_i_ring_chunk_of(value));
  }
}

/* The oldest private block of which all chunks can be taken. False: there is none. */
static bool block_make_shared(void) {
  const prof_i_ring_request request = {.bytes = PROF_I_CHUNK_BYTES_MAX,
                                       .least_bytes = PROF_I_UNIT_BYTES};
  const uint64_t count = prof_i_ring_entry_count();
  uint64_t key = 0, place = 0;
  for (int tries = 0; tries < BLOCK_TRIES; tries++) {
    key = prof_i_ring_find_oldest(&request, count, key, &place);
    if (key == UINT64_MAX) return false;
    const uint64_t offset = prof_i_ring_offset_of(prof_i_ring_value_of_key(key));
    const uint64_t block = offset / PROF_I_BLOCK_BYTES * PROF_I_BLOCK_BYTES;
    if (!prof_i_block_is_private(block) ||
        visit_block_chunks(block, visit_is_retired) != PROF_I_BLOCK_BYTES)
      continue;
    const uint64_t bytes = visit_block_chunks(block, visit_take);
    const bool is_whole = bytes == PROF_I_BLOCK_BYTES;
    const bool is_shared = is_whole && prof_i_blocks_make_shared(block);
    block_put_chunks(block, bytes);
    if (is_whole) return is_shared;
  }
  return false;
}

/* Readers may be walking over it. */
static void store_zeros(prof_i_head *head, uint64_t bytes) {
  uint64_t *const words = (uint64_t *)head;
  for (uint64_t i = PROF_I_HEAD_BYTES / 8; i < bytes / 8; i++)
    __atomic_store_n(&words[i], 0, __ATOMIC_RELAXED);
}

/* One block is enough for many threads, so one thread does it and the others wait. Not for long:
   they may have interrupted it. True: look again. */
static bool make_room_for_slots(const prof_i_ring_request *request) {
  if (!prof_i_the_arena.has_blocks) return false;
  bool is_first = false;
  for (int tries = 0; tries < SHARING_TRIES; tries++) {
    is_first = !__atomic_exchange_n(&ring.is_sharing, true, __ATOMIC_ACQUIRE);
    if (is_first) break;
    sched_yield();
    if (ring_has_two_retired(request)) return true;
  }
  const bool has_made = ring_has_two_retired(request) || block_make_shared();
  if (is_first) __atomic_store_n(&ring.is_sharing, false, __ATOMIC_RELEASE);
  return has_made;
}

/* Other threads may be faster. */
static prof_i_head *ring_take_for_slot(prof_i_ring_request *request) {
  for (int tries = 0; tries < SLOT_TRIES; tries++) {
    if (!ring_has_two_retired(request) && !make_room_for_slots(request)) return NULL;
    prof_i_head *const head = prof_i_ring_take_oldest(request);
    if (head) return head;
  }
  return NULL;
}

prof_i_head *prof_i_ring_take_for_slot(void) {
  prof_i_ring_request request = {PROF_I_SLOT_BYTES, PROF_I_SLOT_BYTES, .is_for_slot = true};
  if (prof_i_ring_is_none(&ring.no_slot_at)) return NULL;
  const uint64_t retired = prof_i_ring_retired_count();
  prof_i_head *const head = ring_take_for_slot(&request);
  if (!head) {
    if (!request.has_unfinished) prof_i_ring_note_none(&ring.no_slot_at, retired);
    return NULL;
  }
  while (head->bytes > PROF_I_SLOT_BYTES) prof_i_ring_split(head);
  prof_i_ring_remove(head);
  __atomic_fetch_sub(&ring.bytes, PROF_I_SLOT_BYTES, __ATOMIC_RELAXED);
  store_zeros(head, PROF_I_SLOT_BYTES);
  prof_i_arena_make_head(head, PROF_I_EXTENT_SLOT, PROF_I_SLOT_BYTES);
  return head;
}

/* ---- begin ---- */

uint64_t prof_i_ring_bytes(void) { return __atomic_load_n(&ring.bytes, __ATOMIC_RELAXED); }

bool prof_i_ring_is_refused(void) { return ring_grow_bytes_max() < PROF_I_CHUNK_BYTES_MAX; }

void prof_i_ring_may_grow(void) {
  __atomic_store_n(&ring.ring_grow_bytes_max, PROF_I_CHUNK_BYTES_MAX, __ATOMIC_RELAXED);
}

int prof_i_ring_prepare(const prof_i_arena *fresh) { return prof_i_ring_prepare_list(fresh); }

void prof_i_ring_begin(void) {
  prof_i_ring_begin_list();
  ring.is_sharing = false;
  ring.bytes = ring.none_at = ring.no_slot_at = 0;
  prof_i_ring_may_grow();
}
