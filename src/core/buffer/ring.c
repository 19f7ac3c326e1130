/* A ring: the list of its chunks, and how a thread takes the oldest. See internal.h. */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <prof/profiler.h>
#include <sched.h>
#include <sys/mman.h>

#include "arena.h"
#include "blocks.h"
#include "chunk.h"

/* ---- the list ---- */

/* Of the ring's chunks: age, size and offset of each, in one word. The age is the number
   at which the chunk was last given to a thread, so the least value is the oldest chunk. */

enum {
  RING_UNIT_BITS = 26, /* of a value: the largest arena in units */
  RING_SIZE_BITS = 2,  /* above: 16 KiB << 2 * size */
  RING_AGE_SHIFT = RING_UNIT_BITS + RING_SIZE_BITS
};

static uint64_t ring_age_of(uint64_t value) { return value >> RING_AGE_SHIFT; }
static uint64_t ring_bytes_of(uint64_t value) {
  const uint64_t size = value >> RING_UNIT_BITS & ((1u << RING_SIZE_BITS) - 1);
  return (uint64_t)PROF_I_UNIT_BYTES << 2 * size;
}
static uint64_t ring_offset_of(uint64_t value) {
  return (value & ((1u << RING_UNIT_BITS) - 1)) * PROF_I_UNIT_BYTES;
}
static prof_i_head *ring_chunk_of(uint64_t value) {
  return (prof_i_head *)(prof_i_the_arena.base + ring_offset_of(value));
}

/* What is looked for. */
typedef struct ring_request {
  uint64_t bytes, least_bytes;
  bool is_for_slot;    /* not in private memory: a slot stays readable when its arena is replaced */
  bool keeps_pieces;   /* small chunks that hold nothing are left to threads that need little */
  bool has_unfinished; /* one was passed over, and may serve at any time */
} ring_request;

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
  return age << RING_AGE_SHIFT | size << RING_UNIT_BITS |
         prof_i_arena_offset(chunk) / PROF_I_UNIT_BYTES;
}

static uint64_t ring_load_entry(uint64_t index) {
  return __atomic_load_n(&ring_list.values[index], __ATOMIC_ACQUIRE);
}

/* The values: 0 is no chunk, or a slot by now. */
static uint64_t ring_entry_count(void) {
  const uint64_t made = __atomic_load_n(&ring_list.count, __ATOMIC_ACQUIRE);
  return made < ring_list.room ? made : ring_list.room;
}

static void ring_add(const prof_i_head *chunk, uint64_t age) {
  const uint64_t i = __atomic_fetch_add(&ring_list.count, 1, __ATOMIC_ACQ_REL);
  if (i < ring_list.room)
    __atomic_store_n(&ring_list.values[i], ring_value(age, chunk), __ATOMIC_RELEASE);
}

/* A look at some hundred words, once in a chunk. */
static void ring_update_entry(const prof_i_head *chunk, uint64_t value) {
  const uint64_t count = ring_entry_count();
  for (uint64_t i = 0; i < count; i++) {
    const uint64_t one = __atomic_load_n(&ring_list.values[i], __ATOMIC_RELAXED);
    if (!one || ring_chunk_of(one) != chunk) continue;
    __atomic_store_n(&ring_list.values[i], value, __ATOMIC_RELEASE);
    return;
  }
}

void prof_i_ring_set_age(const prof_i_head *chunk, uint64_t age) {
  ring_update_entry(chunk, ring_value(age, chunk));
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

/* A thread that found no chunk stores this count + 1. Until it changes, no thread searches. */
uint64_t prof_i_ring_retired_count(void) {
  return __atomic_load_n(&ring_list.retired, __ATOMIC_ACQUIRE);
}
static bool ring_is_none(const uint64_t *none_at) {
  return __atomic_load_n(none_at, __ATOMIC_RELAXED) == prof_i_ring_retired_count() + 1;
}
static void ring_note_none(uint64_t *none_at, uint64_t retired) {
  __atomic_store_n(none_at, retired + 1, __ATOMIC_RELAXED);
}

static bool ring_is_retired(const prof_i_head *chunk) {
  return __atomic_load_n(&chunk->state, __ATOMIC_ACQUIRE) == PROF_I_CHUNK_RETIRED;
}

/* ---- the oldest ---- */

/* The least key is taken first. UINT64_MAX: the chunk does not serve. */
static uint64_t ring_key_of(uint64_t value, const ring_request *request) {
  if (!value || ring_bytes_of(value) < request->least_bytes) return UINT64_MAX;
  if (request->is_for_slot && prof_i_block_is_private(ring_offset_of(value))) return UINT64_MAX;
  const bool is_last = request->keeps_pieces && ring_age_of(value) == PROF_I_RING_AGE_EMPTY &&
                       ring_bytes_of(value) < request->bytes;
  return is_last ? value | key_last : value;
}

/* The least key above that floor: the next oldest, and its place. UINT64_MAX: there is none. */
static uint64_t ring_find_oldest(const ring_request *request, uint64_t count, uint64_t floor,
                                 uint64_t *index_out) {
  uint64_t least = UINT64_MAX;
  for (uint64_t i = 0; i < count; i++) {
    const uint64_t key =
        ring_key_of(__atomic_load_n(&ring_list.values[i], __ATOMIC_RELAXED), request);
    if (key <= floor || key >= least) continue;
    least = key;
    *index_out = i;
  }
  return least;
}

/* Whether an older chunk was skipped because it had an owner, and was retired meanwhile. Then the
   search begins again. */
static bool ring_is_older_free(const ring_request *request, uint64_t count, uint64_t than,
                               uint64_t unfinished) {
  for (uint64_t i = 0; i < count; i++) {
    const uint64_t value = __atomic_load_n(&ring_list.values[i], __ATOMIC_RELAXED);
    const uint64_t key = ring_key_of(value, request);
    if (key > unfinished && key < than && ring_is_retired(ring_chunk_of(value))) return true;
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
  if (!ring_overwrite(ring_chunk_of(value))) return false;
  if (ring_age_of(value) == PROF_I_RING_AGE_EMPTY)
    __atomic_fetch_sub(&ring_list.empty_bytes, ring_bytes_of(value), __ATOMIC_RELAXED);
  return true;
}

/* A chunk that is still written to, or has an unfinished claim, is skipped and keeps its age. So it
   is the first to go later. A thread that sleeps in here sees by the age, when it wakes up, that
   another was faster. */
static prof_i_head *ring_take_oldest(ring_request *request) {
  const uint64_t count = ring_entry_count();
  uint64_t floor = 0, unfinished = 0, index = 0;
  const uint64_t empty = __atomic_load_n(&ring_list.empty_bytes, __ATOMIC_RELAXED);
  request->keeps_pieces = empty <= prof_i_the_arena.cap_bytes / PARTS_SHARE;
  for (uint64_t tries = 0; tries < 2 * count + MORE_TRIES; tries++) {
    const uint64_t key = ring_find_oldest(request, count, floor, &index);
    if (key == UINT64_MAX) break;
    const uint64_t value = key & ~key_last;
    prof_i_head *const chunk = ring_chunk_of(value);
    if (!ring_take_if_retired(chunk)) {
      if (ring_load_entry(index) == value) floor = key;
      continue;
    }
    if (ring_load_entry(index) != value || ring_is_older_free(request, count, key, unfinished)) {
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

/* Takes the chunk of this place, if it is retired. */
static bool ring_take_at(uint64_t index) {
  const uint64_t value = ring_load_entry(index);
  prof_i_head *const chunk = ring_chunk_of(value);
  if (!ring_take_if_retired(chunk)) return false;
  if (ring_load_entry(index) == value) return ring_take_over(value);
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

/* The chunk is the caller's and holds nothing. It keeps its head, which counts what has gone from
   there, and the first quarter. The others are chunks of their own. */
static void ring_split(prof_i_head *chunk) {
  const uint64_t quarter = chunk->bytes / 4;
  for (uint64_t i = 1; i < 4; i++)
    ring_make_part((prof_i_head *)((char *)chunk + i * quarter), quarter, chunk->generation);
  prof_i_arena_shrink_chunk(chunk, quarter);
  prof_i_ring_set_age(chunk, PROF_I_RING_AGE_EMPTY);
  __atomic_fetch_add(&ring_list.empty_bytes, 3 * quarter, __ATOMIC_RELAXED);
  for (uint64_t i = 1; i < 4; i++)
    ring_add((prof_i_head *)((char *)chunk + i * quarter), PROF_I_RING_AGE_EMPTY);
  prof_i_ring_note_retired();
}

/* Pages of the list that are not used cost nothing. */
static int ring_prepare_list(const prof_i_arena *fresh) {
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

static void ring_begin_list(void) {
  if (ring_list.values) munmap(ring_list.values, ring_list.room * sizeof *ring_list.values);
  ring_list.values = ring_list.next_values;
  ring_list.room = ring_list.next_room;
  ring_list.count = ring_list.empty_bytes = ring_list.retired = 0;
  ring_list.next_values = NULL;
  ring_list.next_room = 0;
}

/* How many bytes hold nothing and have no owner. */
static uint64_t ring_empty_bytes(void) {
  return __atomic_load_n(&ring_list.empty_bytes, __ATOMIC_RELAXED);
}

static uint64_t ring_value_of_key(uint64_t key) { return key & ~key_last; }

/* Is there a place for one more? */
static bool ring_has_entry_left(void) {
  return __atomic_load_n(&ring_list.count, __ATOMIC_RELAXED) < ring_list.room;
}

static void ring_remove(const prof_i_head *chunk) { ring_update_entry(chunk, 0); }

/* ---- the ring ---- */

enum {
  BLOCK_TRIES = 256, /* chunks whose blocks are looked at */
  SLOT_TRIES = 16,
  SHARING_YIELDS = 16,  /* for the thread that makes a block shared */
  SHARING_SLEEPS = 100, /* after those; at most SLEEP_NS each */
  SLEEP_NS = 2000000,
  SLOTS_SHARE = 8,                    /* of the cap: the ring leaves that to slots of threads */
  PARTS_MAX = 4096,                   /* a ring is not split further: each change looks at all */
  LONG_BYTES = 4 * PROF_I_UNIT_BYTES, /* holds the longest record */
  LONG_COUNT = 2                      /* so many of them are not split further */
};

static struct {
  uint64_t bytes;               /* of all chunks. Any thread, relaxed */
  uint64_t ring_grow_bytes_max; /* larger chunks were refused. Any thread, relaxed */
  uint32_t is_sharing;          /* a thread is making a block shared. Any thread, atomic */
  uint64_t none_at, no_slot_at; /* see ring_is_none(). Any thread, relaxed */
} ring;

/* ---- parts of a chunk ---- */

/* The longest record needs a chunk of 64 KiB. */
static bool ring_has_more_long(const prof_i_head *chunk) {
  const uint64_t count = ring_entry_count();
  uint32_t found = 0;
  for (uint64_t i = 0; i < count && found < LONG_COUNT; i++) {
    const uint64_t value = ring_load_entry(i);
    found += value && ring_bytes_of(value) >= LONG_BYTES && ring_chunk_of(value) != chunk;
  }
  return found == LONG_COUNT;
}

static bool chunk_may_split(const prof_i_head *chunk) {
  return chunk->bytes / 4 * PARTS_MAX >= prof_i_the_arena.cap_bytes &&
         (chunk->bytes > LONG_BYTES || ring_has_more_long(chunk));
}

static prof_i_head *take_split_chunk(ring_request *request) {
  prof_i_head *const chunk = ring_take_oldest(request);
  while (chunk && chunk->bytes > request->bytes && chunk_may_split(chunk)) ring_split(chunk);
  return chunk;
}

/* ---- taking ---- */

static bool ring_has_room_for(uint64_t bytes) {
  const uint64_t cap = prof_i_the_arena.cap_bytes;
  return ring_has_entry_left() && prof_i_arena_taken_bytes() + bytes + cap / SLOTS_SHARE <= cap;
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
      ring_add(chunk, prof_i_chunk_next_number());
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
  const ring_request request = {.bytes = bytes, .least_bytes = bytes};
  uint64_t entry_index;
  return ring_empty_bytes() >= bytes &&
         ring_age_of(ring_find_oldest(&request, ring_entry_count(), 0, &entry_index)) ==
             PROF_I_RING_AGE_EMPTY;
}

prof_i_head *prof_i_ring_take(uint64_t bytes, uint64_t least_bytes, int *loss_out) {
  ring_request request = {.bytes = bytes, .least_bytes = least_bytes};
  prof_i_head *chunk = ring_has_empty(bytes) ? NULL : ring_grow(bytes, least_bytes);
  const uint64_t retired = prof_i_ring_retired_count();
  if (!chunk && !ring_is_none(&ring.none_at)) {
    chunk = take_split_chunk(&request);
    if (!chunk && !request.has_unfinished && least_bytes <= PROF_I_UNIT_BYTES)
      ring_note_none(&ring.none_at, retired);
  }
  if (!chunk) chunk = ring_grow(bytes, least_bytes); /* another took what was empty */
  if (!chunk) *loss_out = PROF_LOSS_NO_CHUNK;
  return chunk;
}

/* ---- slots ---- */

/* The thread records into another chunk. */
static bool ring_has_two_retired(const ring_request *request) {
  const uint64_t count = ring_entry_count();
  uint32_t retired = 0, serving = 0;
  for (uint64_t i = 0; i < count && (retired < 2 || !serving); i++) {
    const uint64_t value = ring_load_entry(i);
    if (!value || !ring_is_retired(ring_chunk_of(value))) continue;
    const bool serves = ring_key_of(value, request) != UINT64_MAX;
    retired += serves && ring_bytes_of(value) > PROF_I_SLOT_BYTES ? 2 : 1;
    serving += serves;
  }
  return retired >= 2 && serving;
}

/* ---- a block for slots ---- */

/* Calls see() for each chunk of the block. Returns how many bytes they are together; it ends at the
   first that see() refuses. */
static uint64_t visit_block_chunks(uint64_t block, bool (*see)(uint64_t entry_index)) {
  const uint64_t count = ring_entry_count();
  uint64_t bytes = 0;
  for (uint64_t i = 0; i < count; i++) {
    const uint64_t value = ring_load_entry(i), offset = ring_offset_of(value);
    if (!value || offset < block || offset - block >= PROF_I_BLOCK_BYTES) continue;
    if (!see(i)) break;
    bytes += ring_bytes_of(ring_load_entry(i));
  }
  return bytes;
}

static bool visit_is_retired(uint64_t entry_index) {
  return ring_is_retired(ring_chunk_of(ring_load_entry(entry_index)));
}
static bool visit_take(uint64_t entry_index) { return ring_take_at(entry_index); }

/* The first `bytes` of them are the caller's. */
static void block_put_chunks(uint64_t block, uint64_t bytes) {
  const uint64_t count = ring_entry_count();
  for (uint64_t i = 0; i < count && bytes; i++) {
    const uint64_t value = ring_load_entry(i), offset = ring_offset_of(value);
    if (!value || offset < block || offset - block >= PROF_I_BLOCK_BYTES) continue;
    bytes -= ring_bytes_of(value);
    prof_i_ring_put(ring_chunk_of(value));
  }
}

/* The oldest private block of which all chunks can be taken. False: there is none. */
static bool block_make_shared(void) {
  const ring_request request = {.bytes = PROF_I_CHUNK_BYTES_MAX, .least_bytes = PROF_I_UNIT_BYTES};
  const uint64_t count = ring_entry_count();
  uint64_t key = 0, entry_index = 0;
  for (int tries = 0; tries < BLOCK_TRIES; tries++) {
    key = ring_find_oldest(&request, count, key, &entry_index);
    if (key == UINT64_MAX) return false;
    const uint64_t offset = ring_offset_of(ring_value_of_key(key));
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

static bool sharing_begin(void) {
  return !__atomic_exchange_n(&ring.is_sharing, 1, __ATOMIC_ACQUIRE);
}

static void sharing_end(void) {
  __atomic_store_n(&ring.is_sharing, 0, __ATOMIC_RELEASE);
  prof_i_port_wake(&ring.is_sharing);
}

/* Asleep, so that the other gets the processor. */
static void sharing_wait(int tries) {
  if (tries < SHARING_YIELDS)
    sched_yield();
  else
    prof_i_port_wait(&ring.is_sharing, 1, SLEEP_NS);
}

/* One block is enough for many threads, so one thread makes it and the others wait. If each made
   one, together they would hold all blocks, and some would find none. A thread that has waited too
   long takes over. The first may have left by a jump out of a fault's handler. Or this is such a
   handler, on the same thread. True: look again. */
static bool make_room_for_slots(const ring_request *request) {
  if (!prof_i_the_arena.has_blocks) return false;
  for (int tries = 0; tries < SHARING_YIELDS + SHARING_SLEEPS && !sharing_begin(); tries++) {
    sharing_wait(tries);
    if (ring_has_two_retired(request)) return true;
  }
  const bool has_made = ring_has_two_retired(request) || block_make_shared();
  sharing_end();
  return has_made;
}

/* Other threads may be faster. */
static prof_i_head *ring_take_for_slot(ring_request *request) {
  for (int tries = 0; tries < SLOT_TRIES; tries++) {
    if (!ring_has_two_retired(request) && !make_room_for_slots(request)) return NULL;
    prof_i_head *const head = ring_take_oldest(request);
    if (head) return head;
  }
  return NULL;
}

prof_i_head *prof_i_ring_take_for_slot(void) {
  ring_request request = {PROF_I_SLOT_BYTES, PROF_I_SLOT_BYTES, .is_for_slot = true};
  if (ring_is_none(&ring.no_slot_at)) return NULL;
  const uint64_t retired = prof_i_ring_retired_count();
  prof_i_head *const head = ring_take_for_slot(&request);
  if (!head) {
    if (!request.has_unfinished) ring_note_none(&ring.no_slot_at, retired);
    return NULL;
  }
  while (head->bytes > PROF_I_SLOT_BYTES) ring_split(head);
  ring_remove(head);
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

int prof_i_ring_prepare(const prof_i_arena *fresh) { return ring_prepare_list(fresh); }

void prof_i_ring_begin(void) {
  ring_begin_list();
  ring.is_sharing = 0;
  ring.bytes = ring.none_at = ring.no_slot_at = 0;
  prof_i_ring_may_grow();
}
