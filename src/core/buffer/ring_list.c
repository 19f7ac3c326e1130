/* See ring_list.h. */
#define _GNU_SOURCE
#include "ring_list.h"

#include <errno.h>
#include <prof/profiler.h>
#include <sys/mman.h>

#include "blocks.h"
#include "chunk.h"
#include "heads.h"
#include "ring.h"

enum {
  PIECES_SHARE = 64, /* of the cap: so much is kept in pieces that hold nothing */
  MORE_TRIES = 64    /* beyond one for each chunk: others may be faster that often */
};
static const uint64_t key_last = UINT64_C(1) << 63;

static struct {
  uint64_t *values;                 /* any thread, atomic */
  uint64_t count, room;             /* count: any thread, only grows, may stand past the room */
  uint64_t empty_bytes;             /* any thread, relaxed */
  uint64_t retired;                 /* any thread, atomic */
  uint64_t *next_values, next_room; /* of the arena that is being made. Control lock */
} list;

static uint64_t value_of(uint64_t age, const prof_i_head *chunk) {
  const uint64_t size = (uint64_t)__builtin_ctzll(chunk->bytes / PROF_I_UNIT_BYTES) / 2;
  return age << PROF_I_RING_AGE_SHIFT | size << PROF_I_RING_UNIT_BITS |
         prof_i_arena_offset(chunk) / PROF_I_UNIT_BYTES;
}

uint64_t prof_i_ring_load(uint64_t place) {
  return __atomic_load_n(&list.values[place], __ATOMIC_ACQUIRE);
}

uint64_t prof_i_ring_places(void) {
  const uint64_t made = __atomic_load_n(&list.count, __ATOMIC_ACQUIRE);
  return made < list.room ? made : list.room;
}

void prof_i_ring_add(const prof_i_head *chunk, uint64_t age) {
  const uint64_t i = __atomic_fetch_add(&list.count, 1, __ATOMIC_ACQ_REL);
  if (i < list.room) __atomic_store_n(&list.values[i], value_of(age, chunk), __ATOMIC_RELEASE);
}

/* A look at some hundred words, once in a chunk. */
static void store_value(const prof_i_head *chunk, uint64_t value) {
  const uint64_t count = prof_i_ring_places();
  for (uint64_t i = 0; i < count; i++) {
    const uint64_t one = __atomic_load_n(&list.values[i], __ATOMIC_RELAXED);
    if (!one || prof_i_ring_chunk_of(one) != chunk) continue;
    __atomic_store_n(&list.values[i], value, __ATOMIC_RELEASE);
    return;
  }
}

void prof_i_ring_set_age(const prof_i_head *chunk, uint64_t age) {
  store_value(chunk, value_of(age, chunk));
}

static void set_retired(prof_i_head *chunk) {
  __atomic_store_n(&chunk->state, PROF_I_CHUNK_RETIRED, __ATOMIC_RELEASE);
}

void prof_i_ring_note_retired(void) { __atomic_fetch_add(&list.retired, 1, __ATOMIC_ACQ_REL); }

void prof_i_ring_put(prof_i_head *chunk) {
  prof_i_ring_set_age(chunk, PROF_I_RING_AGE_OF_NOTHING);
  __atomic_fetch_add(&list.empty_bytes, chunk->bytes, __ATOMIC_RELAXED);
  set_retired(chunk);
  prof_i_ring_note_retired();
}

uint64_t prof_i_ring_retired_count(void) {
  return __atomic_load_n(&list.retired, __ATOMIC_ACQUIRE);
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
uint64_t prof_i_ring_key_of(uint64_t value, const prof_i_ring_wish *wish) {
  if (!value || prof_i_ring_bytes_of(value) < wish->least_bytes) return UINT64_MAX;
  if (wish->is_for_slot && prof_i_block_is_private(prof_i_ring_offset_of(value))) return UINT64_MAX;
  const bool is_last = wish->keeps_pieces &&
                       prof_i_ring_age_of(value) == PROF_I_RING_AGE_OF_NOTHING &&
                       prof_i_ring_bytes_of(value) < wish->bytes;
  return is_last ? value | key_last : value;
}

/* The least key above that floor: the next oldest, and its place. UINT64_MAX: there is none. */
uint64_t prof_i_ring_find_oldest(const prof_i_ring_wish *wish, uint64_t count, uint64_t floor,
                                 uint64_t *place_out) {
  uint64_t least = UINT64_MAX;
  for (uint64_t i = 0; i < count; i++) {
    const uint64_t key =
        prof_i_ring_key_of(__atomic_load_n(&list.values[i], __ATOMIC_RELAXED), wish);
    if (key <= floor || key >= least) continue;
    least = key;
    *place_out = i;
  }
  return least;
}

/* Has one that is older, and was passed over because its owner had it, become free meanwhile? Then
   all later ones may have, too. */
static bool is_older_free(const prof_i_ring_wish *wish, uint64_t count, uint64_t than,
                          uint64_t unfinished) {
  for (uint64_t i = 0; i < count; i++) {
    const uint64_t value = __atomic_load_n(&list.values[i], __ATOMIC_RELAXED);
    const uint64_t key = prof_i_ring_key_of(value, wish);
    if (key > unfinished && key < than && prof_i_ring_is_retired(prof_i_ring_chunk_of(value)))
      return true;
  }
  return false;
}

static bool take_if_retired(prof_i_head *chunk) {
  uint16_t state = PROF_I_CHUNK_RETIRED;
  return __atomic_compare_exchange_n(&chunk->state, &state, PROF_I_CHUNK_TAKEN, false,
                                     __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* The chunk is the caller's from here on. False: it has an unfinished claim. */
static bool take_over(uint64_t value) {
  if (!prof_i_chunk_overwrite(prof_i_ring_chunk_of(value))) return false;
  if (prof_i_ring_age_of(value) == PROF_I_RING_AGE_OF_NOTHING)
    __atomic_fetch_sub(&list.empty_bytes, prof_i_ring_bytes_of(value), __ATOMIC_RELAXED);
  return true;
}

/* One that is still written to, or has an unfinished claim, which somebody will finish, is passed
   over, and keeps its age: it is the first to go when it can. A thread that sleeps in here sees by
   the age, when it wakes up, that another was faster. */
prof_i_head *prof_i_ring_take_oldest(prof_i_ring_wish *wish) {
  const uint64_t count = prof_i_ring_places();
  uint64_t floor = 0, unfinished = 0, place = 0;
  const uint64_t empty = __atomic_load_n(&list.empty_bytes, __ATOMIC_RELAXED);
  wish->keeps_pieces = empty <= prof_i_the_arena.cap_bytes / PIECES_SHARE;
  for (uint64_t tries = 0; tries < 2 * count + MORE_TRIES; tries++) {
    const uint64_t key = prof_i_ring_find_oldest(wish, count, floor, &place);
    if (key == UINT64_MAX) break;
    const uint64_t value = key & ~key_last;
    prof_i_head *const chunk = prof_i_ring_chunk_of(value);
    if (!take_if_retired(chunk)) {
      if (prof_i_ring_load(place) == value) floor = key;
      continue;
    }
    if (prof_i_ring_load(place) != value || is_older_free(wish, count, key, unfinished)) {
      set_retired(chunk);
      floor = unfinished;
      continue;
    }
    if (take_over(value)) return chunk;
    floor = unfinished = key;
    wish->has_unfinished = true;
  }
  return NULL;
}

bool prof_i_ring_take_at(uint64_t place) {
  const uint64_t value = prof_i_ring_load(place);
  prof_i_head *const chunk = prof_i_ring_chunk_of(value);
  if (!take_if_retired(chunk)) return false;
  if (prof_i_ring_load(place) == value) return take_over(value);
  set_retired(chunk); /* another was faster */
  return false;
}

/* Words of old records may stand behind the head: they are of generations before this one. Nobody
   looks at it as long as the chunk that it is part of covers it. */
static void make_piece(prof_i_head *piece, uint64_t bytes, uint64_t generation) {
  uint64_t *const words = (uint64_t *)piece;
  for (uint64_t i = 0; i < PROF_I_HEAD_BYTES / 8; i++)
    __atomic_store_n(&words[i], 0, __ATOMIC_RELAXED);
  prof_i_heads_add(prof_i_arena_offset(piece));
  prof_i_arena_make_head(piece, PROF_I_EXTENT_CHUNK, bytes);
  piece->generation = generation;
  set_retired(piece);
}

void prof_i_ring_split(prof_i_head *chunk) {
  const uint64_t quarter = chunk->bytes / 4;
  for (uint64_t i = 1; i < 4; i++)
    make_piece((prof_i_head *)((char *)chunk + i * quarter), quarter, chunk->generation);
  prof_i_arena_shorten(chunk, quarter);
  prof_i_ring_set_age(chunk, PROF_I_RING_AGE_OF_NOTHING);
  __atomic_fetch_add(&list.empty_bytes, 3 * quarter, __ATOMIC_RELAXED);
  for (uint64_t i = 1; i < 4; i++)
    prof_i_ring_add((prof_i_head *)((char *)chunk + i * quarter), PROF_I_RING_AGE_OF_NOTHING);
  prof_i_ring_note_retired();
}

/* Pages of the list that are not used cost nothing. */
int prof_i_ring_prepare_list(const prof_i_arena *fresh) {
  if (list.next_values) /* of one that was not installed */
    munmap(list.next_values, list.next_room * sizeof *list.next_values);
  list.next_values = NULL;
  list.next_room = 0;
  if (fresh->policy != PROF_POLICY_RING) return 0;
  const uint64_t room = fresh->cap_bytes / PROF_I_UNIT_BYTES + 1;
  void *const memory = mmap(NULL, room * sizeof *list.values, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return errno;
  list.next_values = memory;
  list.next_room = room;
  return 0;
}

void prof_i_ring_begin_list(void) {
  if (list.values) munmap(list.values, list.room * sizeof *list.values);
  list.values = list.next_values;
  list.room = list.next_room;
  list.count = list.empty_bytes = list.retired = 0;
  list.next_values = NULL;
  list.next_room = 0;
}

uint64_t prof_i_ring_empty_bytes(void) {
  return __atomic_load_n(&list.empty_bytes, __ATOMIC_RELAXED);
}

uint64_t prof_i_ring_value_of_key(uint64_t key) { return key & ~key_last; }

bool prof_i_ring_has_place(void) {
  return __atomic_load_n(&list.count, __ATOMIC_RELAXED) < list.room;
}

void prof_i_ring_remove(const prof_i_head *chunk) { store_value(chunk, 0); }
