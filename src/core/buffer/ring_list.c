/* See ring_list.h. */
#define _GNU_SOURCE
#include "ring_list.h"

#include <errno.h>
#include <prof/profiler.h>
#include <sys/mman.h>

#include "blocks.h"
#include "chunk_internal.h"
#include "head_map.h"
#include "ring.h"

enum {
  PARTS_SHARE = 64, /* of the cap: so much is kept in pieces that hold nothing */
  MORE_TRIES = 64   /* beyond one for each chunk: others may be faster that often */
};
static const uint64_t key_last = UINT64_C(1) << 63;

static struct {
  uint64_t *values;                 /* any thread, atomic */
  uint64_t count, room;             /* count: any thread, only grows, may stand past the room */
  uint64_t empty_bytes;             /* any thread, relaxed */
  uint64_t retired;                 /* any thread, atomic */
  uint64_t *next_values, next_room; /* of the arena that is being made. Control lock */
} ring_list;

static uint64_t ring_value(uint64_t age, const prof_i_head *chunk) {
  const uint64_t size = (uint64_t)__builtin_ctzll(chunk->bytes / PROF_I_UNIT_BYTES) / 2;
  return age << PROF_I_RING_AGE_SHIFT | size << PROF_I_RING_UNIT_BITS |
         prof_i_arena_offset(chunk) / PROF_I_UNIT_BYTES;
}

uint64_t prof_i_ring_load_entry(uint64_t index) {
  return __atomic_load_n(&ring_list.values[index], __ATOMIC_ACQUIRE);
}

uint64_t prof_i_ring_entry_count(void) {
  const uint64_t made = __atomic_load_n(&ring_list.count, __ATOMIC_ACQUIRE);
  return made < ring_list.room ? made : ring_list.room;
}

void prof_i_ring_add(const prof_i_head *chunk, uint64_t age) {
  const uint64_t i = __atomic_fetch_add(&ring_list.count, 1, __ATOMIC_ACQ_REL);
  if (i < ring_list.room)
    __atomic_store_n(&ring_list.values[i], ring_value(age, chunk), __ATOMIC_RELEASE);
}

/* A look at some hundred words, once in a chunk. */
static void store_value(const prof_i_head *chunk, uint64_t value) {
  const uint64_t count = prof_i_ring_entry_count();
  for (uint64_t i = 0; i < count; i++) {
    const uint64_t one = __atomic_load_n(&ring_list.values[i], __ATOMIC_RELAXED);
    if (!one || prof_i_ring_chunk_of(one) != chunk) continue;
    __atomic_store_n(&ring_list.values[i], value, __ATOMIC_RELEASE);
    return;
  }
}

void prof_i_ring_set_age(const prof_i_head *chunk, uint64_t age) {
  store_value(chunk, ring_value(age, chunk));
}

static void ring_set_retired(prof_i_head *chunk) {
  __atomic_store_n(&chunk->state, PROF_I_CHUNK_RETIRED, __ATOMIC_RELEASE);
}

void prof_i_ring_note_retired(void) { __atomic_fetch_add(&ring_list.retired, 1, __ATOMIC_ACQ_REL); }

void prof_i_ring_put(prof_i_head *chunk) {
  prof_i_ring_set_age(chunk, PROF_I_RING_AGE_EMPTY);
  __atomic_fetch_add(&ring_list.empty_bytes, chunk->bytes, __ATOMIC_RELAXED);
  ring_set_retired(chunk);
  prof_i_ring_note_retired();
}

uint64_t prof_i_ring_retired_count(void) {
  return __atomic_load_n(&ring_list.retired, __ATOMIC_ACQUIRE);
}
bool prof_i_ring_is_none(const uint64_t *none_at) {
  return __atomic_load_n(none_at, __ATOMIC_RELAXED) == prof_i_ring_retired_count() + 1;
}
void prof_i_ring_note_none(uint64_t *none_at, uint64_t retired) {
  __atomic_store_n(none_at, retired + 1, __ATOMIC_RELAXED);
}

bool prof_i_ring_is_retired(const prof_i_head *chunk) {
  return __atomic_load_n(&chunk->state, __ATOMIC_ACQUIRE) == PROF_I_CHUNK_RETIRED;
}

/* ---- the oldest ---- */

/* The least key is taken first. UINT64_MAX: it does not serve. */
uint64_t prof_i_ring_key_of(uint64_t value, const prof_i_ring_request *request) {
  if (!value || prof_i_ring_bytes_of(value) < request->least_bytes) return UINT64_MAX;
  if (request->is_for_slot && prof_i_block_is_private(prof_i_ring_offset_of(value)))
    return UINT64_MAX;
  const bool is_last = request->keeps_pieces &&
                       prof_i_ring_age_of(value) == PROF_I_RING_AGE_EMPTY &&
                       prof_i_ring_bytes_of(value) < request->bytes;
  return is_last ? value | key_last : value;
}

/* The least key above that floor: the next oldest, and its place. UINT64_MAX: there is none. */
uint64_t prof_i_ring_find_oldest(const prof_i_ring_request *request, uint64_t count, uint64_t floor,
                                 uint64_t *index_out) {
  uint64_t least = UINT64_MAX;
  for (uint64_t i = 0; i < count; i++) {
    const uint64_t key =
        prof_i_ring_key_of(__atomic_load_n(&ring_list.values[i], __ATOMIC_RELAXED), request);
    if (key <= floor || key >= least) continue;
    least = key;
    *index_out = i;
  }
  return least;
}

/* Has one that is older, and was passed over because its owner had it, become free meanwhile? Then
   all later ones may have, too. */
static bool ring_is_older_free(const prof_i_ring_request *request, uint64_t count, uint64_t than,
                               uint64_t unfinished) {
  for (uint64_t i = 0; i < count; i++) {
    const uint64_t value = __atomic_load_n(&ring_list.values[i], __ATOMIC_RELAXED);
    const uint64_t key = prof_i_ring_key_of(value, request);
    if (key > unfinished && key < than && prof_i_ring_is_retired(prof_i_ring_chunk_of(value)))
      return true;
  }
  return false;
}

static bool ring_take_if_retired(prof_i_head *chunk) {
  uint16_t state = PROF_I_CHUNK_RETIRED;
  return __atomic_compare_exchange_n(&chunk->state, &state, PROF_I_CHUNK_TAKEN, false,
                                     __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* Counts the events of a chunk in state TAKEN as overwritten. True: the chunk is the caller's, and
   empty. False: a claim is unfinished, and the chunk is retired again. */
static bool ring_overwrite(prof_i_head *chunk) {
  const prof_i_chunk_count records = prof_i_chunk_walk(chunk, prof_i_chunk_last_clear());
  if (records.unfinished) {
    prof_i_chunk_set_retired(chunk);
    return false;
  }
  prof_i_chunk_evict(chunk, &records, PROF_I_EVICTED_OVERWRITTEN);
  prof_i_chunk_next_generation(chunk, &records);
  __atomic_store_n(&chunk->state, PROF_I_CHUNK_OWNED, __ATOMIC_RELEASE);
  return true;
}

/* Takes the chunk for the caller. False: it has an unfinished claim. */
static bool ring_take_over(uint64_t value) {
  if (!ring_overwrite(prof_i_ring_chunk_of(value))) return false;
  if (prof_i_ring_age_of(value) == PROF_I_RING_AGE_EMPTY)
    __atomic_fetch_sub(&ring_list.empty_bytes, prof_i_ring_bytes_of(value), __ATOMIC_RELAXED);
  return true;
}

/* A chunk that is still written to, or has an unfinished claim, is skipped and keeps its age. So it
   is the first to go later. A thread that sleeps in here sees by the age, when it wakes up, that
   another was faster. */
prof_i_head *prof_i_ring_take_oldest(prof_i_ring_request *request) {
  const uint64_t count = prof_i_ring_entry_count();
  uint64_t floor = 0, unfinished = 0, index = 0;
  const uint64_t empty = __atomic_load_n(&ring_list.empty_bytes, __ATOMIC_RELAXED);
  request->keeps_pieces = empty <= prof_i_the_arena.cap_bytes / PARTS_SHARE;
  for (uint64_t tries = 0; tries < 2 * count + MORE_TRIES; tries++) {
    const uint64_t key = prof_i_ring_find_oldest(request, count, floor, &index);
    if (key == UINT64_MAX) break;
    const uint64_t value = key & ~key_last;
    prof_i_head *const chunk = prof_i_ring_chunk_of(value);
    if (!ring_take_if_retired(chunk)) {
      if (prof_i_ring_load_entry(index) == value) floor = key;
      continue;
    }
    if (prof_i_ring_load_entry(index) != value ||
        ring_is_older_free(request, count, key, unfinished)) {
      ring_set_retired(chunk);
      floor = unfinished;
      continue;
    }
    if (ring_take_over(value)) return chunk;
    floor = unfinished = key;
    request->has_unfinished = true;
  }
  return NULL;
}

bool prof_i_ring_take_at(uint64_t index) {
  const uint64_t value = prof_i_ring_load_entry(index);
  prof_i_head *const chunk = prof_i_ring_chunk_of(value);
  if (!ring_take_if_retired(chunk)) return false;
  if (prof_i_ring_load_entry(index) == value) return ring_take_over(value);
  ring_set_retired(chunk); /* another was faster */
  return false;
}

/* Words of old records may stand behind the head: they are of generations before this one. Nobody
   reads it as long as the chunk that it is part of covers it. */
static void ring_make_part(prof_i_head *piece, uint64_t bytes, uint64_t generation) {
  uint64_t *const words = (uint64_t *)piece;
  for (uint64_t i = 0; i < PROF_I_HEAD_BYTES / 8; i++)
    __atomic_store_n(&words[i], 0, __ATOMIC_RELAXED);
  prof_i_head_map_add(prof_i_arena_offset(piece));
  prof_i_arena_make_head(piece, PROF_I_EXTENT_CHUNK, bytes);
  piece->generation = generation;
  ring_set_retired(piece);
}

void prof_i_ring_split(prof_i_head *chunk) {
  const uint64_t quarter = chunk->bytes / 4;
  for (uint64_t i = 1; i < 4; i++)
    ring_make_part((prof_i_head *)((char *)chunk + i * quarter), quarter, chunk->generation);
  prof_i_arena_shrink_chunk(chunk, quarter);
  prof_i_ring_set_age(chunk, PROF_I_RING_AGE_EMPTY);
  __atomic_fetch_add(&ring_list.empty_bytes, 3 * quarter, __ATOMIC_RELAXED);
  for (uint64_t i = 1; i < 4; i++)
    prof_i_ring_add((prof_i_head *)((char *)chunk + i * quarter), PROF_I_RING_AGE_EMPTY);
  prof_i_ring_note_retired();
}

/* Pages of the list that are not used cost nothing. */
int prof_i_ring_prepare_list(const prof_i_arena *fresh) {
  if (ring_list.next_values) /* of one that was not installed */
    munmap(ring_list.next_values, ring_list.next_room * sizeof *ring_list.next_values);
  ring_list.next_values = NULL;
  ring_list.next_room = 0;
  if (fresh->policy != PROF_POLICY_RING) return 0;
  const uint64_t room = fresh->cap_bytes / PROF_I_UNIT_BYTES + 1;
  void *const memory = mmap(NULL, room * sizeof *ring_list.values, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return errno;
  ring_list.next_values = memory;
  ring_list.next_room = room;
  return 0;
}

void prof_i_ring_begin_list(void) {
  if (ring_list.values) munmap(ring_list.values, ring_list.room * sizeof *ring_list.values);
  ring_list.values = ring_list.next_values;
  ring_list.room = ring_list.next_room;
  ring_list.count = ring_list.empty_bytes = ring_list.retired = 0;
  ring_list.next_values = NULL;
  ring_list.next_room = 0;
}

uint64_t prof_i_ring_empty_bytes(void) {
  return __atomic_load_n(&ring_list.empty_bytes, __ATOMIC_RELAXED);
}

uint64_t prof_i_ring_value_of_key(uint64_t key) { return key & ~key_last; }

bool prof_i_ring_has_entry_left(void) {
  return __atomic_load_n(&ring_list.count, __ATOMIC_RELAXED) < ring_list.room;
}

void prof_i_ring_remove(const prof_i_head *chunk) { store_value(chunk, 0); }
