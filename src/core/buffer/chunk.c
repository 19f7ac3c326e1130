/* See chunk.h. Who owns a chunk is its head's state, changed by compare-and-swap: OWNED by a
   thread, or RETIRED and free for whoever swaps it first: to OWNED the next thread (take-over), or
   clear; to TAKEN a ring (overwriting). */
#define _GNU_SOURCE
#include "chunk.h"

#include <errno.h>
#include <prof/profiler.h>
#include <string.h>
#include <sys/mman.h>

#include "../../base/fault.h"
#include "../../base/port.h"
#include "../record/open_stack.h"
#include "arena.h"
#include "blocks.h"
#include "chunk_size.h"
#include "clock.h"
#include "free_list.h"
#include "ledger.h"
#include "observer.h"
#include "ring.h"
#include "session.h"
#include "snapshot_pin.h"

enum {
  PARTIAL_COUNT = 64,    /* part-filled chunks of dead threads that are remembered */
  DEFERRED_COUNT = 8192, /* cleared ones that somebody reads */
  PREPARED_SIZES = 4,    /* of chunks: 16 KiB to 1 MiB */
  PREPARED_COUNT = 16,   /* of the largest, made ready by the helper at most */
  PREPARED_SMALLER = 4,  /* and of each smaller size */
  PREPARED_SHARE = 8,    /* all together at most that part of the arena */
  /* If chunks grow to that size, only the helper makes the largest. */
  SERVED_BYTES = 256 << 10,
  SERVED_COUNT = 4, /* and, of a ring, if so many may be ready */
  /* whose pages the helper is to drop; more, and the thread drops them itself: the disk may hold
     the helper up */
  TRIM_COUNT = 16,
  ROOM_WORTH_TAKING = 256,
  WALK_AHEAD_BYTES = 1024, /* 512 to 4096 are alike */
  KEPT_BYTES = 4096,       /* of a chunk whose room is given back */
  OWNER_WORDS = 3 + 3 + PROF_I_NAME_BYTES / 8,
  OWNER_BYTES = (OWNER_WORDS + 1) / 2 * 16,
  EXIT_WORDS = 3 + 3 + PROF_I_LOSS_WORDS + PROF_I_NAME_BYTES / 8 + 1,
  EXIT_BYTES = (EXIT_WORDS + 1) / 2 * 16,
  /* Of a thread that is gone: to say it takes 256 bytes, and many live for a few scopes only. All
     threads' sum has it anyway. */
  OVERHEAD_NS_WORTH_WRITING = 100000,
  BUCKETS = 256 /* of chunk-change times: four to a doubling */
};

/* A chunk that was cleared while somebody read it. */
typedef struct deferred_chunk {
  uint64_t offset, number;
  uint64_t clear; /* the clear's number: snapshot_pin.h */
} deferred_chunk;

/* Places hold an arena offset, or 0. All any thread, by exchange and compare-and-swap. */
static struct {
  uint64_t sequence;
  uint64_t left[PARTIAL_COUNT];
  deferred_chunk *deferred_free; /* DEFERRED_COUNT places. Control lock */
  uint32_t deferred_count;
  /* By size, the smallest first: threads find there what they would take without a helper. */
  uint64_t prepared[PREPARED_SIZES][PREPARED_COUNT];
  uint32_t prepared_sizes;               /* how many sizes this arena's chunks have */
  uint32_t prepared_max[PREPARED_SIZES]; /* how many places are used: see share_prepared() */
  /* why no more can be made ready: era << 8 | loss + 1, of that era alone; any thread */
  uint64_t prepared_loss;
  /* Of the largest: somebody found none, and none has come since. Whoever needs one goes without.
     Any thread. */
  uint32_t prepared_is_empty;
  /* once since the helper began: until then threads help themselves. Any thread */
  uint32_t prepared_was_full;
  uint64_t trim_queue[TRIM_COUNT];
  uint32_t helper_on, helper_word, helper_sleeps;
  uint64_t change_count, change_max_ns, change_times[BUCKETS];
} chunk_pool;

static prof_i_head *chunk_at(uint64_t offset) {
  return (prof_i_head *)(prof_i_the_arena.base + offset);
}

static bool chunk_swap_if_retired(prof_i_head *chunk, prof_i_chunk_state to) {
  uint16_t state = PROF_I_CHUNK_RETIRED;
  return __atomic_compare_exchange_n(&chunk->state, &state, (uint16_t)to, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED);
}

static bool chunk_own_if_retired(prof_i_head *chunk) {
  return chunk_swap_if_retired(chunk, PROF_I_CHUNK_OWNED);
}

static bool policy_is_ring(void) { return prof_i_the_arena.policy == PROF_POLICY_RING; }

static void chunk_set_retired(prof_i_head *chunk) {
  __atomic_store_n(&chunk->state, PROF_I_CHUNK_RETIRED, __ATOMIC_RELEASE);
  if (policy_is_ring()) prof_i_ring_note_retired();
}

static bool offsets_put(uint64_t *places, size_t count, uint64_t value) {
  for (size_t i = 0; i < count; i++) {
    uint64_t none = 0;
    if (!__atomic_load_n(&places[i], __ATOMIC_RELAXED) &&
        __atomic_compare_exchange_n(&places[i], &none, value, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_RELAXED))
      return true;
  }
  return false;
}

static uint64_t offsets_take(uint64_t *places, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (!__atomic_load_n(&places[i], __ATOMIC_RELAXED)) continue;
    const uint64_t value = __atomic_exchange_n(&places[i], 0, __ATOMIC_ACQ_REL);
    if (value) return value;
  }
  return 0;
}

/* ---- walking the records of a chunk ---- */

typedef enum record_kind { RECORD_EVENT, RECORD_OTHER, RECORD_UNFINISHED } record_kind;

/* What stands at this word, and how many slots it takes. */
static PROF_I_RACES_BY_DESIGN record_kind record_parse(const uint64_t *word, uint64_t generation,
                                                       uint64_t *slots_out,
                                                       uint64_t *end_ticks_out) {
  const uint64_t first = __atomic_load_n(&word[0], __ATOMIC_ACQUIRE);
  *slots_out = 1;
  if ((first & PROF_I_GENERATION_MASK) == generation) {
    *end_ticks_out = (first >> 4) + (word[1] >> PROF_I_DURATION_SHIFT);
    if ((word[1] & 15) == 0) return RECORD_EVENT;
    if ((*slots_out = prof_i_alloc_slots(word[1])) != 0) {
      *end_ticks_out = first >> 4;
      return RECORD_EVENT;
    }
    *slots_out = prof_i_record_slots(word[2]);
    if (*slots_out == 0) *slots_out = 1;
    return (word[2] >> 16 & 0xff) < PROF_I_KIND_OWNER ? RECORD_EVENT : RECORD_OTHER;
  }
  const uint64_t slots = first >> PROF_I_PENDING_SLOTS_SHIFT & 0xffff;
  if ((first & 15) != 0 || (first >> 4 & 15) != generation || slots == 0) return RECORD_UNFINISHED;
  *slots_out = slots;
  return first >> PROF_I_FILLER_BIT & 1 ? RECORD_OTHER : RECORD_UNFINISHED;
}

static PROF_I_RACES_BY_DESIGN uint64_t chunk_claimed_bytes(const prof_i_head *chunk) {
  const uint64_t cursor = __atomic_load_n(&chunk->cursor, __ATOMIC_ACQUIRE);
  return cursor < chunk->bytes ? cursor : chunk->bytes;
}

/* What is walked was written a ring ago, and is in no near cache. Where the next record stands is
   known only when this one is here, so the processor does not go ahead by itself: two thirds of a
   walk were waits. */
static inline void fetch_ahead(const uint64_t *word) {
  __builtin_prefetch((const char *)word + WALK_AHEAD_BYTES);
}

/* The two kinds that nearly all are of have branches of their own, here and in chunk_scrub(): a
   step of known length can be guessed. */
static inline bool record_is_plain(uint64_t word0, uint64_t word1, uint64_t generation) {
  return (word0 & PROF_I_GENERATION_MASK) == generation && (word1 & 15) == 0;
}
static inline bool record_is_short_alloc(uint64_t word0, uint64_t word1, uint64_t generation) {
  return (word0 & PROF_I_GENERATION_MASK) == generation && (word1 & 15) == PROF_I_ALLOC_TYPE;
}

/* Four records that are a line of the cache: not all plain, or some of either kind; all begun after
   those ticks; all ended by then. */
enum { FOUR_MIXED, FOUR_LIVE, FOUR_CLEARED };

/* 0 or 1, for `&`. */
static inline int record_is_over(uint64_t word0, uint64_t word1, uint64_t ticks) {
  return (word0 >> 4) + (word1 >> PROF_I_DURATION_SHIFT) <= ticks;
}

/* Each first word is read before its second, as for one. */
static PROF_I_RACES_BY_DESIGN inline int records_parse_four(const uint64_t *word,
                                                            uint64_t generation, uint64_t ticks) {
  const uint64_t a = __atomic_load_n(&word[0], __ATOMIC_ACQUIRE),
                 b = __atomic_load_n(&word[2], __ATOMIC_ACQUIRE),
                 c = __atomic_load_n(&word[4], __ATOMIC_ACQUIRE),
                 d = __atomic_load_n(&word[6], __ATOMIC_ACQUIRE);
  const uint64_t others = (a ^ generation) | (b ^ generation) | (c ^ generation) | (d ^ generation);
  if (((others & PROF_I_GENERATION_MASK) | ((word[1] | word[3] | word[5] | word[7]) & 15)) != 0)
    return FOUR_MIXED;
  if ((a >> 4 > ticks) & (b >> 4 > ticks) & (c >> 4 > ticks) & (d >> 4 > ticks)) return FOUR_LIVE;
  const int are_over = record_is_over(a, word[1], ticks) & record_is_over(b, word[3], ticks) &
                       record_is_over(c, word[5], ticks) & record_is_over(d, word[7], ticks);
  return are_over ? FOUR_CLEARED : FOUR_MIXED;
}

/* The helper reads it outside the gate, while a clear may be storing it. */
static uint64_t last_clear(void) {
  return __atomic_load_n(&prof_i_arena_header()->clear_ticks, __ATOMIC_RELAXED);
}

static PROF_I_RACES_BY_DESIGN prof_i_chunk_count chunk_walk(const prof_i_head *chunk,
                                                            uint64_t clear_ticks) {
  prof_i_chunk_count count = {0};
  const uint64_t end = chunk_claimed_bytes(chunk);
  const uint64_t generation = chunk->generation;
  for (uint64_t i = PROF_I_HEAD_BYTES, slots; i < end; i += slots * 16) {
    const uint64_t *const word = (const uint64_t *)((const char *)chunk + i);
    fetch_ahead(word);
    const int four = end - i >= 64 ? records_parse_four(word, generation, clear_ticks) : FOUR_MIXED;
    if (PROF_I_LIKELY(four != FOUR_MIXED)) {
      *(four == FOUR_LIVE ? &count.live : &count.cleared) += 4;
      slots = 4;
      continue;
    }
    uint64_t ticks = __atomic_load_n(&word[0], __ATOMIC_ACQUIRE);
    if (record_is_plain(ticks, word[1], generation)) {
      const bool cleared = clear_ticks && record_is_over(ticks, word[1], clear_ticks);
      count.cleared += cleared;
      count.live += !cleared;
      slots = 1;
      continue;
    }
    if (record_is_short_alloc(ticks, word[1], generation)) {
      const bool cleared = ticks >> 4 <= clear_ticks;
      count.cleared += cleared;
      count.live += !cleared;
      count.longer++;
      slots = 2;
      continue;
    }
    switch (record_parse(word, generation, &slots, &ticks)) {
      case RECORD_EVENT:
        ++*(ticks <= clear_ticks ? &count.cleared : &count.live);
        break;
      case RECORD_UNFINISHED:
        count.unfinished++;
        break;
      case RECORD_OTHER:
        break;
    }
    count.longer += slots > 1;
  }
  return count;
}

static bool count_is_known(const prof_i_counted_chunk *known, uint64_t sequence,
                           uint64_t clear_ticks) {
  return known && known->sequence == sequence && known->clear_ticks == clear_ticks;
}

prof_i_chunk_count prof_i_chunk_count_events(const prof_i_head *chunk, uint64_t clear_ticks,
                                             prof_i_counted_chunk *known) {
  for (;;) {
    const uint64_t sequence = __atomic_load_n(&chunk->sequence, __ATOMIC_ACQUIRE);
    const uint64_t number = prof_i_sequence_number(sequence);
    /* Nobody writes to a retired chunk, but who claimed before: that is unfinished. Whoever takes
       it gives it another sequence first. */
    const bool is_retired =
        __atomic_load_n(&chunk->state, __ATOMIC_ACQUIRE) == PROF_I_CHUNK_RETIRED;
    prof_i_chunk_count count = {0};
    if (number && count_is_known(known, sequence, clear_ticks))
      count.live = known->live;
    else if (number)
      count = chunk_walk(chunk, clear_ticks);
    const prof_i_counted_chunk found = {sequence, clear_ticks, count.live};
    const bool is_final = number && is_retired && !count.unfinished && !count.cleared;
    const uint64_t taken =
        __atomic_load_n(&chunk->state, __ATOMIC_RELAXED) == PROF_I_CHUNK_TAKEN ? count.live : 0;
    count.live -= taken;
    for (int i = 0; i < PROF_I_EVICTED_WORDS; i++)
      count.evicted[i] = __atomic_load_n(&chunk->evicted[sequence & 1][i], __ATOMIC_RELAXED);
    count.evicted[PROF_I_EVICTED_OVERWRITTEN] += taken;
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    if (__atomic_load_n(&chunk->sequence, __ATOMIC_RELAXED) != sequence) continue;
    if (known && is_final) *known = found;
    return count;
  }
}

PROF_I_RACES_BY_DESIGN uint64_t prof_i_chunk_events_between(const prof_i_head *chunk, uint64_t from,
                                                            uint64_t end,
                                                            void (*see)(void *to, uint32_t site),
                                                            void *to) {
  uint64_t count = 0;
  const uint64_t claimed = chunk_claimed_bytes(chunk), generation = chunk->generation;
  if (end > claimed) end = claimed;
  for (uint64_t i = from < PROF_I_HEAD_BYTES ? PROF_I_HEAD_BYTES : from, slots; i < end;
       i += slots * 16) {
    const uint64_t *const word = (const uint64_t *)((const char *)chunk + i);
    uint64_t ticks;
    if (!see && end - i >= 64 && records_parse_four(word, generation, 0) == FOUR_LIVE) {
      fetch_ahead(word);
      count += 4;
      slots = 4;
      continue;
    }
    slots = 1;
    if (!record_is_plain(__atomic_load_n(&word[0], __ATOMIC_RELAXED), word[1], generation) &&
        record_parse(word, generation, &slots, &ticks) != RECORD_EVENT)
      continue;
    count++;
    if (see) see(to, prof_i_record_site(word[1]));
  }
  return count;
}

/* Makes a chunk ready for the next generation: no word that a reader looks at may be taken for a
   record of it. Words 0 of the old records keep the old generation; everything else at such a place
   becomes 0. */
static void chunk_scrub(prof_i_head *chunk, const prof_i_chunk_count *records) {
  const uint64_t end = chunk_claimed_bytes(chunk), generation = chunk->generation;
  uint64_t left = records->longer; /* without memory's, the owner record alone, at the front */
  for (uint64_t i = PROF_I_HEAD_BYTES, slots; left && i < end; i += slots * 16) {
    uint64_t ticks, *const record = (uint64_t *)((char *)chunk + i);
    slots = 1;
    if (record_is_plain(record[0], record[1], generation)) continue;
    left--;
    if (record_is_short_alloc(record[0], record[1], generation) && i + 16 < chunk->bytes) {
      if (!PROF_I_FAULT(UNSCRUBBED)) __atomic_store_n(&record[2], 0, __ATOMIC_RELAXED);
      slots = 2;
      continue;
    }
    record_parse(record, generation, &slots, &ticks);
    left += slots == 1;
    for (uint64_t s = 1; s < slots && i + s * 16 < chunk->bytes; s++)
      __atomic_store_n(&record[s * 2], 0, __ATOMIC_RELAXED);
  }
  for (uint64_t i = end; i < chunk->bytes; i += 16)
    __atomic_store_n((uint64_t *)((char *)chunk + i), 0, __ATOMIC_RELAXED);
}

/* The chunk holds nothing any more, from one store on: what it held counts as gone. live_is: how
   its live records went. */
static void chunk_evict(prof_i_head *chunk, const prof_i_chunk_count *records,
                        prof_i_evicted live_is) {
  const uint64_t now = chunk->sequence & 1, next = now ^ 1;
  uint64_t evicted[PROF_I_EVICTED_WORDS] = {chunk->evicted[now][PROF_I_EVICTED_OVERWRITTEN],
                                            chunk->evicted[now][PROF_I_EVICTED_CLEARED]};
  evicted[live_is] += records->live;
  if (PROF_I_FAULT(NARROW_COUNT)) evicted[live_is] = (uint32_t)evicted[live_is];
  evicted[PROF_I_EVICTED_CLEARED] += records->cleared;
  for (int i = 0; i < PROF_I_EVICTED_WORDS; i++)
    __atomic_store_n(&chunk->evicted[next][i], evicted[i], __ATOMIC_RELAXED);
  __atomic_store_n(&chunk->sequence, next, __ATOMIC_RELEASE);
  /* what is stored into the chunk from here on is seen after that */
  __atomic_thread_fence(__ATOMIC_RELEASE);
}

static void chunk_set_number(prof_i_head *chunk, uint64_t number) {
  __atomic_store_n(&chunk->sequence, number << 1 | (chunk->sequence & 1), __ATOMIC_RELEASE);
}

/* Ready for other records: what was in it has been given up. */
static void chunk_next_generation(prof_i_head *chunk, const prof_i_chunk_count *records) {
  chunk_scrub(chunk, records);
  const uint64_t next = PROF_I_FAULT(GENERATION) ? chunk->generation
                        : PROF_I_FAULT(GENERATION_0)
                            ? (chunk->generation + 1) & PROF_I_GENERATION_MASK
                            : chunk->generation % PROF_I_GENERATION_MASK + 1;
  __atomic_store_n(&chunk->generation, next, __ATOMIC_RELAXED);
  __atomic_store_n(&chunk->cursor, PROF_I_HEAD_BYTES, __ATOMIC_RELEASE);
}

bool prof_i_chunk_overwrite(prof_i_head *chunk) {
  const prof_i_chunk_count records = chunk_walk(chunk, last_clear());
  if (records.unfinished) {
    chunk_set_retired(chunk);
    return false;
  }
  chunk_evict(chunk, &records, PROF_I_EVICTED_OVERWRITTEN);
  chunk_next_generation(chunk, &records);
  __atomic_store_n(&chunk->state, PROF_I_CHUNK_OWNED, __ATOMIC_RELEASE);
  return true;
}

uint64_t prof_i_chunk_next_number(void) {
  return __atomic_add_fetch(&chunk_pool.sequence, 1, __ATOMIC_RELAXED);
}

/* ---- records about the thread ---- */

/* Claims from this chunk, whoever else may; NULL when it does not fit. */
static uint64_t *chunk_claim(prof_i_head *chunk, uint64_t bytes) {
  const uint64_t from = prof_i_claim(&chunk->cursor, bytes);
  if (from + bytes <= chunk->bytes) {
    uint64_t *const record = (uint64_t *)((char *)chunk + from);
    __atomic_store_n(&record[0], bytes / 16 << PROF_I_PENDING_SLOTS_SHIFT | chunk->generation << 4,
                     __ATOMIC_RELAXED);
    /* the mark comes first: a reader who sees other words of the record sees it, too */
    PROF_I_STORE_FENCE();
    return record;
  }
  if (from < chunk->bytes)
    __atomic_store_n((uint64_t *)((char *)chunk + from),
                     1ull << PROF_I_FILLER_BIT |
                         (chunk->bytes - from) / 16 << PROF_I_PENDING_SLOTS_SHIFT |
                         chunk->generation << 4,
                     __ATOMIC_RELEASE);
  return NULL;
}

/* A kill meanwhile must not make a loss of what is no event. */
static void put_owner(prof_i_thread *thread, prof_i_head *chunk) {
  uint64_t *const record = chunk_claim(chunk, OWNER_BYTES);
  if (!record) return;
  record[1] = 1;
  record[2] = OWNER_BYTES / 16 | (uint64_t)PROF_I_KIND_OWNER << 16;
  record[3] = thread->serial;
  record[4] = thread->tid;
  record[5] = thread->thread_kind;
  prof_i_thread_copy_name(thread->name, thread->slot->name);
  memcpy(record + 6, thread->name, PROF_I_NAME_BYTES);
  __atomic_store_n(&record[0], prof_i_clock_ticks() << 4 | chunk->generation, __ATOMIC_RELEASE);
}

static void write_owner(prof_i_thread *thread, prof_i_head *chunk) {
  const prof_i_ledger_saved note = prof_i_ledger_begin(thread->slot, 0, OWNER_BYTES / 16);
  put_owner(thread, chunk);
  prof_i_ledger_end(thread->slot, &note, 0);
}

static bool exit_is_worth_writing(const prof_i_thread *thread) {
  const prof_i_thread_slot *const slot = thread->slot;
  uint64_t any = (slot->deep_count - slot->deep_before) | (slot->cut_count - slot->cut_before);
  const uint64_t ledger = prof_i_ledger_of(slot);
  for (int i = 0; i < PROF_I_LOSS_WORDS; i++)
    any |= prof_i_slot_lost(slot, ledger, i) - slot->lost_before[i];
  any |= prof_i_slot_thread_own_ns(slot) >= OVERHEAD_NS_WORTH_WRITING;
  for (int i = 0; i < PROF_I_NAME_BYTES / 8; i++)
    any |= __atomic_load_n((const uint64_t *)(const void *)slot->name + i, __ATOMIC_RELAXED) ^
           ((const uint64_t *)(const void *)thread->name)[i];
  return any != 0;
}

static bool put_exit(prof_i_thread *thread, prof_i_head *chunk) {
  uint64_t *const record = chunk_claim(chunk, EXIT_BYTES);
  if (!record) return false;
  const prof_i_thread_slot *const slot = thread->slot;
  record[1] = 1;
  record[2] = EXIT_BYTES / 16 | (uint64_t)PROF_I_KIND_EXIT << 16;
  record[3] = thread->serial;
  record[4] = slot->deep_count - slot->deep_before;
  record[5] = slot->cut_count - slot->cut_before;
  const uint64_t ledger = prof_i_ledger_of(slot);
  for (int i = 0; i < PROF_I_LOSS_WORDS; i++)
    record[6 + i] = prof_i_slot_lost(slot, ledger, i) - slot->lost_before[i];
  prof_i_thread_copy_name((char *)(record + 6 + PROF_I_LOSS_WORDS), slot->name);
  record[EXIT_WORDS - 1] = prof_i_slot_thread_own_ns(slot);
  __atomic_store_n(&record[0], prof_i_clock_ticks() << 4 | chunk->generation, __ATOMIC_RELEASE);
  return true;
}

static bool write_exit(prof_i_thread *thread, prof_i_head *chunk) {
  const prof_i_ledger_saved note = prof_i_ledger_begin(thread->slot, 0, EXIT_BYTES / 16);
  const bool is_written = put_exit(thread, chunk);
  prof_i_ledger_end(thread->slot, &note, 0);
  return is_written;
}

/* ---- where a chunk comes from ---- */

static uint64_t chunk_room(const prof_i_head *chunk) {
  /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): a thread's chunk is never NULL */
  return chunk->bytes - chunk_claimed_bytes(chunk);
}

static prof_i_head *take_partial(uint64_t need) {
  for (int i = 0; i < PARTIAL_COUNT; i++) {
    const uint64_t offset =
        PROF_I_FAULT(LEFT_UNUSED) ? 0 : __atomic_load_n(&chunk_pool.left[i], __ATOMIC_ACQUIRE);
    if (!offset || chunk_room(chunk_at(offset)) < need + OWNER_BYTES) continue;
    uint64_t expected = offset;
    if (!__atomic_compare_exchange_n(&chunk_pool.left[i], &expected, 0, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED))
      continue;
    prof_i_head *const chunk = chunk_at(offset);
    if (!chunk_own_if_retired(chunk)) continue; /* a ring or clear was faster */
    if (chunk_room(chunk) >= need + OWNER_BYTES) return chunk;
    chunk_set_retired(chunk);
  }
  return NULL;
}

/* ---- what the helper has made ready ---- */

static bool size_is_largest(uint64_t bytes) { return bytes == prof_i_the_arena.chunk_bytes_max; }

static uint64_t prepared_bytes(uint32_t size) {
  return prof_i_the_arena.chunk_bytes_min << 2 * size;
}

/* How many places may be filled now. What is ready holds no records: in a ring it is a part of what
   the ring has. If that got less than its cap, all of it is needed. */
static uint32_t prepared_room(uint32_t size) {
  const uint32_t most = chunk_pool.prepared_max[size];
  if (!policy_is_ring()) return most;
  const uint64_t fit = prof_i_ring_bytes() / PREPARED_SHARE / prepared_bytes(size);
  return prof_i_ring_is_refused() ? 0 : fit < most ? (uint32_t)fit : most;
}

/* Of at least so many bytes, the smallest that there is. NULL: there is none. */
static prof_i_head *take_prepared_from(uint64_t bytes) {
  for (uint32_t size = 0; size < chunk_pool.prepared_sizes; size++) {
    if (prepared_bytes(size) < bytes) continue;
    const uint64_t offset = offsets_take(chunk_pool.prepared[size], chunk_pool.prepared_max[size]);
    if (offset) return chunk_at(offset);
  }
  return NULL;
}

/* What the helper has made ready for a ring goes back, unless no larger chunk is left. */
static prof_i_head *take_ring_for_slot(void) {
  prof_i_head *slot = prof_i_ring_take_for_slot();
  for (prof_i_head *chunk; !slot && (chunk = take_prepared_from(PROF_I_SLOT_BYTES)) != NULL;) {
    prof_i_ring_put(chunk);
    slot = prof_i_ring_take_for_slot();
  }
  return slot;
}

/* What the helper has made ready serves, too. */
prof_i_head *prof_i_chunk_take_for_slot(uint64_t populate_bytes) {
  prof_i_head *const slot = prof_i_free_list_take_for_slot(populate_bytes);
  if (slot) return slot;
  if (policy_is_ring()) return take_ring_for_slot();
  const prof_i_head *const chunk = take_prepared_from(PROF_I_SLOT_BYTES);
  if (!chunk) return NULL;
  prof_i_free_list_put(prof_i_arena_offset(chunk), chunk->bytes);
  return prof_i_free_list_take_for_slot(populate_bytes);
}

static uint64_t chunk_size_for(const prof_i_thread *thread, uint64_t need) {
  const uint64_t most = prof_i_chunk_size_max();
  uint64_t bytes = thread->next_bytes < most ? thread->next_bytes : most;
  while (bytes < need + PROF_I_HEAD_BYTES + OWNER_BYTES) bytes *= 4;
  return bytes;
}

/* One call for each sleep: a helper that gets no processor is not woken again by each scope that is
   lost meanwhile. */
static void wake_helper_for_work(void) {
  /* pairs with prof_i_chunk_helper_sleep(): it sees the word, or is seen asleep */
  __atomic_fetch_add(&chunk_pool.helper_word, 1, __ATOMIC_SEQ_CST);
  if (!__atomic_load_n(&chunk_pool.helper_sleeps, __ATOMIC_SEQ_CST) ||
      !__atomic_exchange_n(&chunk_pool.helper_sleeps, 0, __ATOMIC_SEQ_CST))
    return;
  prof_i_port_wake(&chunk_pool.helper_word);
}

/* loss + 1: once it is set, no more stock comes in this era. 0: none. */
static uint32_t prepared_loss(void) {
  const uint64_t loss = __atomic_load_n(&chunk_pool.prepared_loss, __ATOMIC_ACQUIRE);
  return loss >> 8 == prof_i_arena_room_epoch() ? (uint32_t)(loss & 0xff) : 0;
}

/* Takes a chunk of that size from the stock. NULL with PROF_LOSS_NO_CHUNK: the helper is late, and
   the thread does not wait. NULL with another loss: the stock is exhausted, and smaller chunks may
   use the remaining room. */
static prof_i_head *take_prepared(uint64_t bytes, int *loss_out) {
  const uint32_t loss = prepared_loss(); /* first: see there */
  uint32_t size = 0;
  while (size + 1 < chunk_pool.prepared_sizes && prepared_bytes(size) < bytes) size++;
  uint64_t offset = offsets_take(chunk_pool.prepared[size], chunk_pool.prepared_max[size]);
  if (!offset && size_is_largest(bytes)) {
    /* Said first and looked at again: what the helper brings meanwhile is found here, or it takes
       the word back. */
    __atomic_store_n(&chunk_pool.prepared_is_empty, 1, __ATOMIC_SEQ_CST);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    offset = offsets_take(chunk_pool.prepared[size], chunk_pool.prepared_max[size]);
    if (offset) __atomic_store_n(&chunk_pool.prepared_is_empty, 0, __ATOMIC_RELAXED);
  }
  if (offset || !loss) wake_helper_for_work();
  *loss_out = loss ? (int)loss - 1 : PROF_LOSS_NO_CHUNK;
  return offset ? chunk_at(offset) : NULL;
}

/* Every chunk of the largest size comes from the helper, once it has caught up. Not in a small
   arena, where the stock is small: threads that find none make one, or they would lose what they do
   not lose without a helper. */
static bool thread_is_served(void) {
  if (policy_is_ring() && prepared_room(chunk_pool.prepared_sizes - 1) < SERVED_COUNT) return false;
  return __atomic_load_n(&chunk_pool.helper_on, __ATOMIC_ACQUIRE) &&
         __atomic_load_n(&chunk_pool.prepared_was_full, __ATOMIC_RELAXED) &&
         prof_i_the_arena.chunk_bytes_max >= SERVED_BYTES;
}

/* What a scope costs that is lost meanwhile: this look. */
static bool thread_is_starved(const prof_i_thread *thread) {
  return __atomic_load_n(&chunk_pool.prepared_is_empty, __ATOMIC_RELAXED) && thread_is_served() &&
         size_is_largest(thread->next_bytes) && size_is_largest(prof_i_chunk_size_max()) &&
         !prepared_loss();
}

/* Its chunks grow. */
static prof_i_head *thread_grow_chunks(prof_i_thread *thread, prof_i_head *chunk) {
  if (chunk && thread->next_bytes < prof_i_the_arena.chunk_bytes_max) thread->next_bytes *= 4;
  return chunk;
}

static prof_i_head *take_chunk(prof_i_thread *thread, uint64_t need, int *loss_out) {
  prof_i_head *chunk = take_partial(need);
  if (chunk) return chunk;
  const uint64_t bytes = chunk_size_for(thread, need),
                 least = need + PROF_I_HEAD_BYTES + OWNER_BYTES;
  /* a session before this one may have left some */
  if (!__atomic_load_n(&chunk_pool.helper_on, __ATOMIC_ACQUIRE)) {
    if ((chunk = take_prepared_from(least)) != NULL) return chunk;
  } else if ((chunk = take_prepared(bytes, loss_out)) != NULL ||
             (*loss_out == PROF_LOSS_NO_CHUNK && size_is_largest(bytes) && thread_is_served())) {
    return thread_grow_chunks(thread, chunk);
  }
  if (policy_is_ring()) {
    chunk = prof_i_ring_take(bytes, least, loss_out);
    return thread_grow_chunks(thread, chunk ? chunk : take_prepared_from(least));
  }
  if ((chunk = prof_i_free_list_take(bytes, loss_out)) != NULL)
    return thread_grow_chunks(thread, chunk);
  const uint64_t aligned = prof_i_arena_aligned_bytes(bytes),
                 now = aligned < least ? bytes : aligned;
  chunk = prof_i_arena_take_extent(PROF_I_EXTENT_CHUNK, now, now, loss_out);
  /* The last of the cap goes in small pieces, and so does what a clear gave back. */
  for (uint64_t less = now / 4;
       !chunk && *loss_out == PROF_LOSS_FULL && less >= least && less >= PROF_I_UNIT_BYTES;
       less /= 4) {
    chunk = prof_i_free_list_take(less, loss_out);
    if (!chunk) chunk = prof_i_arena_take_extent(PROF_I_EXTENT_CHUNK, less, less, loss_out);
  }
  if (!chunk) chunk = take_prepared_from(least); /* of any other size */
  return thread_grow_chunks(thread, chunk);
}

/* ---- change ---- */

static void record_change_time(prof_i_thread *thread, uint64_t ns, uint64_t processor_ns) {
  const uint64_t own_ns = processor_ns < ns ? processor_ns : ns;
  prof_i_claim(&thread->slot->own_ns, own_ns);
  if (ns > own_ns) prof_i_claim(&thread->slot->wait_ns, ns - own_ns);
  const uint64_t top = ns < 4 ? 2 : (uint64_t)(63 - __builtin_clzll(ns));
  const uint64_t bucket = top * 4 + (ns >> (top - 2) & 3);
  __atomic_fetch_add(&chunk_pool.change_times[bucket < BUCKETS ? bucket : BUCKETS - 1], 1,
                     __ATOMIC_RELAXED);
  __atomic_fetch_add(&chunk_pool.change_count, 1, __ATOMIC_RELAXED);
  uint64_t max = __atomic_load_n(&chunk_pool.change_max_ns, __ATOMIC_RELAXED);
  while (ns > max && !__atomic_compare_exchange_n(&chunk_pool.change_max_ns, &max, ns, true,
                                                  __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
}

/* A stream's full chunk need not stay in this process: the file has it. */
static void chunk_retire(prof_i_head *chunk) {
  const bool stream = prof_i_the_arena.policy == PROF_POLICY_STREAM;
  const uint64_t offset = prof_i_arena_offset(chunk), bytes = chunk->bytes;
  chunk_set_retired(chunk);
  if (!stream) return;
  if (__atomic_load_n(&chunk_pool.helper_on, __ATOMIC_ACQUIRE) &&
      offsets_put(chunk_pool.trim_queue, TRIM_COUNT, offset))
    return;
  prof_i_port_drop_pages(chunk, bytes);
}

/* The change may be a handler's, and the code that it interrupts may have looked at this chunk and
   not claimed yet: its claim must fail in a full chunk that is still the thread's, and not land in
   another's. So a chunk stays the thread's until the next change. A handler that fills a whole
   chunk while its victim stands between two instructions is more than that covers. */
static void chunk_retire_later(prof_i_thread *thread, prof_i_head *chunk) {
  prof_i_head *const before =
      PROF_I_FAULT(LEAVE_AT_ONCE) ? chunk : prof_i_thread_swap_previous(thread, chunk);
  if (before) chunk_retire(before);
}

/* The thread's chunk is now this one, unless a handler or prof_stop() was faster. A stop that began
   meanwhile either sees the chunk and takes it out, or is seen here: each side stores its own word
   first and then loads the other's. */
static bool thread_publish_chunk(prof_i_thread *thread, prof_i_head *expected, prof_i_head *chunk) {
  if (!__atomic_compare_exchange_n(&thread->chunk, &expected, chunk, false, __ATOMIC_SEQ_CST,
                                   __ATOMIC_ACQUIRE))
    return false;
  thread->slot->chunk = prof_i_arena_offset(chunk);
  if (prof_i_session_is_recording()) return true;
  if (__atomic_exchange_n(&thread->chunk, &thread->full, __ATOMIC_SEQ_CST) == chunk)
    prof_i_thread_detach_chunk(thread, chunk);
  return true;
}

static void chunk_give_away(prof_i_head *chunk) {
  const uint64_t offset = prof_i_arena_offset(chunk);
  chunk_set_retired(chunk);
  offsets_put(chunk_pool.left, PARTIAL_COUNT, offset);
  __atomic_store_n(&chunk_pool.prepared_is_empty, 0, __ATOMIC_RELAXED); /* there is this one */
}

static bool resume_detached(prof_i_thread *thread) {
  prof_i_head *const detached_chunk = prof_i_thread_reattach_chunk(thread);
  if (!detached_chunk) return false;
  /* a handler brought another one */
  if (!thread_publish_chunk(thread, &thread->full, detached_chunk))
    chunk_retire_later(thread, detached_chunk);
  return true;
}

static prof_i_head *take_and_write_owner(prof_i_thread *thread, uint64_t need_bytes,
                                         int *loss_out) {
  const uint64_t room_epoch = prof_i_arena_room_epoch();
  if ((*loss_out = prof_i_arena_full_loss()) >= 0) return NULL;
  prof_i_head *fresh = take_chunk(thread, need_bytes, loss_out);
  prof_i_head *before;
  if (!fresh && policy_is_ring() && (before = prof_i_thread_swap_previous(thread, NULL)) != NULL) {
    chunk_retire(before); /* the others have all the rest of the ring */
    fresh = take_chunk(thread, need_bytes, loss_out);
  }
  if (!fresh) {
    if (*loss_out != PROF_LOSS_NO_CHUNK) prof_i_arena_set_full(*loss_out, room_epoch);
    return NULL;
  }
  fresh->owner = thread->serial;
  /* It may have been another's. */
  __atomic_store_n(&fresh->limit, fresh->bytes - 15, __ATOMIC_RELAXED);
  const uint64_t sequence = prof_i_chunk_next_number();
  chunk_set_number(fresh, sequence);
  if (policy_is_ring()) prof_i_ring_set_age(fresh, sequence);
  prof_i_thread_refresh_name(thread);
  write_owner(thread, fresh);
  return fresh;
}

bool prof_i_chunk_change(prof_i_thread *thread, uint64_t need_bytes, int *loss_out) {
  prof_i_head *const old = __atomic_load_n(&thread->chunk, __ATOMIC_ACQUIRE);
  *loss_out = PROF_LOSS_LATE;
  if (!prof_i_session_is_recording()) return false;
  const int full = prof_i_arena_full_loss();
  /* most of what comes here in a long run */
  if (full >= 0 && !__atomic_load_n(&thread->detached_chunk, __ATOMIC_RELAXED)) {
    prof_i_thread_set_full(thread);
    *loss_out = full;
    return false;
  }
  if (PROF_I_UNLIKELY(thread_is_starved(thread)) &&
      !__atomic_load_n(&thread->detached_chunk, __ATOMIC_RELAXED)) {
    *loss_out = PROF_LOSS_NO_CHUNK;
    return false;
  }
  const uint64_t begun = prof_i_port_monotonic_ns(), processor_begun = prof_i_port_processor_ns();
  if (old == &thread->full && resume_detached(thread)) return true;
  prof_i_head *const fresh = take_and_write_owner(thread, need_bytes, loss_out);
  if (!fresh) return false;
  if (!thread_publish_chunk(thread, old, fresh)) {
    chunk_give_away(fresh);
    return true;
  }
  PROF_I_ANNOUNCE(chunk_changed, thread, old != &thread->full ? old : NULL, fresh);
  if (old != &thread->full) chunk_retire_later(thread, old);
  prof_i_clock_write_pair(true);
  const uint64_t processor_ns = prof_i_port_processor_ns() - processor_begun;
  record_change_time(thread, prof_i_ns_since(begun), processor_ns);
  /* It stays the thread's until the next change. */
  if (old != &thread->full) PROF_I_ANNOUNCE(chunk_filled, thread, old, processor_ns);
  PROF_I_ANNOUNCE(chunk_entered, thread, fresh);
  return true;
}

void prof_i_chunk_leave_partial(prof_i_head *chunk) {
  if (chunk_room(chunk) >= ROOM_WORTH_TAKING)
    chunk_give_away(chunk);
  else
    chunk_retire(chunk);
}

void prof_i_chunk_thread_exit(prof_i_thread *thread) {
  prof_i_head *const chunk = __atomic_exchange_n(&thread->chunk, &thread->full, __ATOMIC_ACQ_REL);
  prof_i_head *const detached_chunk = prof_i_thread_reattach_chunk(thread),
                     *const before = prof_i_thread_swap_previous(thread, NULL);
  prof_i_head *const last = chunk != &thread->full ? chunk : detached_chunk;
  PROF_I_ANNOUNCE(thread_ended, thread, last);
  /* no room there: the reserve has some */
  if (exit_is_worth_writing(thread) && !(last && write_exit(thread, last))) {
    prof_i_head *const reserve = prof_i_chunk_reserve(thread);
    if (reserve) write_exit(thread, reserve);
  }
  PROF_I_ANNOUNCE(thread_left, thread);
  if (chunk != &thread->full) prof_i_chunk_leave_partial(chunk);
  if (detached_chunk) prof_i_chunk_leave_partial(detached_chunk);
  if (before) chunk_retire(before);
}

prof_i_head *prof_i_chunk_reserve(prof_i_thread *thread) {
  prof_i_head *const reserve = (prof_i_head *)((char *)thread->slot + PROF_I_RESERVE_OFFSET);
  if (reserve->magic != PROF_I_EXTENT_MAGIC) {
    if (prof_i_port_populate(reserve, PROF_I_UNIT_BYTES) != 0) return NULL;
    prof_i_arena_make_head(reserve, PROF_I_EXTENT_CHUNK, PROF_I_UNIT_BYTES);
  } else if (thread->reserve_since != prof_i_arena_header()->full_ticks) {
    const prof_i_chunk_count count = chunk_walk(reserve, last_clear());
    /* all of it is forgotten: use it again */
    if (count.cleared && !count.live && !count.unfinished) {
      chunk_evict(reserve, &count, PROF_I_EVICTED_CLEARED);
      chunk_next_generation(reserve, &count);
      reserve->owner = 0;
    }
  }
  thread->reserve_since = prof_i_arena_header()->full_ticks;
  if (reserve->owner == thread->serial) return reserve;
  reserve->owner = thread->serial; /* another thread's records may stand before */
  chunk_set_number(reserve, prof_i_chunk_next_number());
  write_owner(thread, reserve);
  return reserve;
}

/* ---- clear, begin ---- */

/* It is ours, and nobody reads it. The first page stays, for its head: what has gone from here
   still counts. */
void prof_i_chunk_free(prof_i_head *chunk) {
  memset((char *)chunk + PROF_I_HEAD_BYTES, 0, KEPT_BYTES - PROF_I_HEAD_BYTES);
  __atomic_store_n(&chunk->cursor, PROF_I_HEAD_BYTES, __ATOMIC_RELEASE);
  if (prof_i_block_is_private(prof_i_arena_offset(chunk)))
    prof_i_blocks_punch(chunk, chunk->bytes, KEPT_BYTES);
  else
    prof_i_port_punch_hole((char *)chunk + KEPT_BYTES, chunk->bytes - KEPT_BYTES);
  prof_i_free_list_put(prof_i_arena_offset(chunk), chunk->bytes);
}

/* Without a place, the next clear tries again. */
bool prof_i_chunk_defer_free(prof_i_head *chunk, uint64_t number, uint64_t clear) {
  if (!prof_i_snapshot_pin_sees(number, clear)) return false;
  if (chunk_pool.deferred_count == DEFERRED_COUNT)
    chunk_set_retired(chunk);
  else
    chunk_pool.deferred_free[chunk_pool.deferred_count++] =
        (deferred_chunk){prof_i_arena_offset(chunk), number, clear};
  return true;
}

prof_i_head *prof_i_chunk_take_deferred(void) {
  if (PROF_I_FAULT(NEVER_BACK)) return NULL;
  for (uint32_t i = chunk_pool.deferred_count; i-- > 0;) {
    const deferred_chunk one = chunk_pool.deferred_free[i];
    if (prof_i_snapshot_pin_sees(one.number, one.clear)) continue;
    chunk_pool.deferred_free[i] = chunk_pool.deferred_free[--chunk_pool.deferred_count];
    return chunk_at(one.offset);
  }
  return NULL;
}

uint64_t prof_i_chunk_newest_number(void) {
  return __atomic_load_n(&chunk_pool.sequence, __ATOMIC_ACQUIRE);
}

/* True: it is ours, and holds nothing any more. */
static bool chunk_clear(prof_i_head *chunk, uint64_t *number_out) {
  if (!chunk_own_if_retired(chunk)) return false;
  const prof_i_chunk_count count = prof_i_chunk_count_events(chunk, last_clear(), NULL);
  if (count.unfinished || count.live) {
    chunk_set_retired(chunk);
    return false;
  }
  *number_out = prof_i_sequence_number(chunk->sequence);
  chunk_evict(chunk, &count, PROF_I_EVICTED_CLEARED);
  if (prof_i_the_arena.policy != PROF_POLICY_RING) return true;
  chunk_next_generation(chunk, &count); /* stays in the ring's list, as one to take first */
  if (!prof_i_block_is_private(prof_i_arena_offset(chunk)))
    prof_i_port_drop_pages(chunk, chunk->bytes); /* else the memory is there alone */
  prof_i_ring_put(chunk);
  return false;
}

uint64_t prof_i_chunk_begin_clear(void) {
  for (int i = 0; i < PARTIAL_COUNT; i++)
    __atomic_store_n(&chunk_pool.left[i], 0, __ATOMIC_RELEASE);
  return prof_i_snapshot_pin_begin_clear();
}

bool prof_i_chunk_clear_next(uint64_t *offset, prof_i_head **chunk_out, uint64_t *number_out) {
  prof_i_head *const head = prof_i_arena_next(offset, prof_i_arena_readable_bytes());
  *chunk_out =
      head && prof_i_head_kind(head) == PROF_I_EXTENT_CHUNK && chunk_clear(head, number_out) ? head
                                                                                             : NULL;
  return head != NULL;
}

void prof_i_chunk_reopen_arena(void) {
  prof_i_arena_clear_full();
  prof_i_ring_may_grow();
  __atomic_store_n(&chunk_pool.prepared_is_empty, 0, __ATOMIC_RELAXED); /* there is room again */
  if (__atomic_load_n(&chunk_pool.helper_on, __ATOMIC_ACQUIRE)) wake_helper_for_work();
}

int prof_i_chunk_prepare(const prof_i_arena *fresh) {
  const int error = prof_i_free_list_prepare();
  if (error) return error;
  if (!chunk_pool.deferred_free) {
    void *const memory = mmap(NULL, DEFERRED_COUNT * sizeof *chunk_pool.deferred_free,
                              PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return errno;
    chunk_pool.deferred_free = memory;
  }
  return prof_i_ring_prepare(fresh);
}

/* How many of each size the helper is to have ready. */
static void share_prepared(void) {
  uint64_t room = prof_i_the_arena.cap_bytes / PREPARED_SHARE;
  chunk_pool.prepared_sizes = 1;
  while (chunk_pool.prepared_sizes < PREPARED_SIZES &&
         !size_is_largest(prepared_bytes(chunk_pool.prepared_sizes - 1))) {
    const uint32_t size = chunk_pool.prepared_sizes++ - 1;
    chunk_pool.prepared_max[size] = policy_is_ring() ? 0 : PREPARED_SMALLER;
    room -=
        PREPARED_SMALLER * prepared_bytes(size); /* at most half of it: see choose_chunk_sizes() */
  }
  const bool is_small_ring = policy_is_ring() && prof_i_the_arena.chunk_bytes_max < SERVED_BYTES;
  const uint64_t fit = room / prof_i_the_arena.chunk_bytes_max, least = fit < 1 ? 1 : fit;
  /* A small ring's chunks are all needed, and what is ready holds no records. */
  chunk_pool.prepared_max[chunk_pool.prepared_sizes - 1] = is_small_ring ? 0
                                                           : least < PREPARED_COUNT
                                                               ? (uint32_t)least
                                                               : PREPARED_COUNT;
}

void prof_i_chunk_begin(void) {
  memset(chunk_pool.left, 0, sizeof chunk_pool.left);
  memset(chunk_pool.prepared, 0, sizeof chunk_pool.prepared);
  share_prepared();
  chunk_pool.prepared_loss = 0;
  chunk_pool.prepared_is_empty = 0;
  memset(chunk_pool.trim_queue, 0, sizeof chunk_pool.trim_queue);
  chunk_pool.sequence = 1;
  chunk_pool.deferred_count = 0;
  prof_i_free_list_begin();
  prof_i_ring_begin();
  prof_i_chunk_size_begin();
}

/* ---- the helper's side ---- */

void prof_i_chunk_use_helper(bool on) {
  __atomic_store_n(&chunk_pool.prepared_was_full, 0, __ATOMIC_RELAXED);
  __atomic_store_n(&chunk_pool.prepared_is_empty, 0, __ATOMIC_RELAXED);
  __atomic_store_n(&chunk_pool.helper_on, on, __ATOMIC_RELEASE);
}
uint32_t prof_i_chunk_helper_word(void) {
  return __atomic_load_n(&chunk_pool.helper_word, __ATOMIC_ACQUIRE);
}

void prof_i_chunk_helper_sleep(uint32_t seen, uint64_t ns) {
  __atomic_store_n(&chunk_pool.helper_sleeps, 1, __ATOMIC_SEQ_CST);
  prof_i_port_wait(&chunk_pool.helper_word, seen, ns);
  __atomic_store_n(&chunk_pool.helper_sleeps, 0, __ATOMIC_SEQ_CST);
}

void prof_i_chunk_helper_wake(void) { wake_helper_for_work(); }

/* An empty place for a chunk of that size, or NULL. */
static uint64_t *prepared_index(uint32_t size) {
  for (uint32_t i = 0, count = prepared_room(size); i < count; i++)
    if (!__atomic_load_n(&chunk_pool.prepared[size][i], __ATOMIC_RELAXED))
      return &chunk_pool.prepared[size][i];
  return NULL;
}

/* Chunks that are larger than any thread may take now: their room serves for smaller ones. */
static void drop_prepared_above(uint64_t bytes) {
  for (prof_i_head *chunk; (chunk = take_prepared_from(bytes + 1)) != NULL;)
    if (policy_is_ring())
      prof_i_ring_put(chunk);
    else
      prof_i_chunk_free(chunk);
}

static prof_i_head *make_prepared(uint64_t bytes, int *loss_out) {
  if (policy_is_ring()) return prof_i_ring_take(bytes, bytes, loss_out);
  prof_i_head *const chunk = prof_i_free_list_take(bytes, loss_out);
  return chunk ? chunk : prof_i_arena_take_extent(PROF_I_EXTENT_CHUNK, bytes, bytes, loss_out);
}

bool prof_i_chunk_make_prepared(void) {
  const uint64_t room_epoch = prof_i_arena_room_epoch();
  if (prof_i_arena_full_loss() >= 0 || prepared_loss()) return false;
  const uint64_t most = policy_is_ring() && prof_i_ring_is_refused() ? 0 : prof_i_chunk_size_max();
  drop_prepared_above(most);
  for (uint32_t size = 0; size < chunk_pool.prepared_sizes && prepared_bytes(size) <= most;
       size++) {
    uint64_t *const place = prepared_index(size);
    if (!place) continue;
    int loss = 0;
    const uint64_t bytes = prepared_bytes(size);
    prof_i_head *chunk = make_prepared(bytes, &loss);
    if (!chunk) {
      const uint64_t why = room_epoch << 8 | (uint64_t)(loss + 1);
      if (loss != PROF_LOSS_NO_CHUNK)
        __atomic_store_n(&chunk_pool.prepared_loss, why, __ATOMIC_RELEASE);
      return false;
    }
    __atomic_store_n(place, prof_i_arena_offset(chunk), __ATOMIC_SEQ_CST);
    __atomic_thread_fence(__ATOMIC_SEQ_CST); /* pairs with take_prepared()'s */
    __atomic_store_n(&chunk_pool.prepared_is_empty, 0, __ATOMIC_SEQ_CST);
    return true;
  }
  __atomic_store_n(&chunk_pool.prepared_was_full, 1, __ATOMIC_RELAXED);
  return false;
}

void prof_i_chunk_drop_prepared(void) { drop_prepared_above(0); }

bool prof_i_chunk_trim_one(void) {
  const uint64_t offset = offsets_take(chunk_pool.trim_queue, TRIM_COUNT);
  if (offset) prof_i_port_drop_pages(chunk_at(offset), chunk_at(offset)->bytes);
  return offset != 0;
}

prof_i_chunk_times prof_i_chunk_change_times(void) {
  prof_i_chunk_times times = {__atomic_load_n(&chunk_pool.change_count, __ATOMIC_RELAXED), 0, 0,
                              __atomic_load_n(&chunk_pool.change_max_ns, __ATOMIC_RELAXED)};
  uint64_t seen = 0;
  for (uint64_t i = 0; i < BUCKETS; i++) {
    seen += __atomic_load_n(&chunk_pool.change_times[i], __ATOMIC_RELAXED);
    const uint64_t ns = (4 + i % 4) << (i / 4) >> 2;
    if (!times.median_ns && seen * 2 >= times.count && seen) times.median_ns = ns;
    if (!times.p99_ns && seen * 100 >= times.count * 99 && seen) times.p99_ns = ns;
  }
  return times;
}
