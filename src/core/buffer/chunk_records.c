/* What a chunk holds: counting its events, and giving them up. A walk races with writers by design:
   it counts what is committed. See internal.h. */
#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>

#include "../../base/fault.h"
#include "../../base/port.h"
#include "chunk.h"
#include "internal.h"

/* ---- counted chunks ---- */

/* The table has one entry for each 256 KiB of the arena's cap, so chunks of at least that size
   never share an entry. The table reserves address space. Pages are used only when their entries
   are. */

enum { ENTRY_BYTES = 256 << 10 };

static struct {
  uint32_t is_taken; /* any thread; in a forked child it may stay set */
  /* Only the thread that has the table uses it. */
  uint64_t arena;
  prof_i_counted_chunk *entries;
  uint64_t count;
} count_cache;

static bool map_entries(uint64_t count) {
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  if (count_cache.entries)
    munmap(count_cache.entries, count_cache.count * sizeof *count_cache.entries);
  count_cache.entries = NULL;
  count_cache.count = 0;
  void *const entries =
      mmap(NULL, count * sizeof *count_cache.entries, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (entries == MAP_FAILED) return false;
  count_cache.entries = entries;
  count_cache.count = count;
  return true;
}

bool prof_i_count_cache_acquire(uint64_t arena, uint64_t cap_bytes) {
  if (__atomic_exchange_n(&count_cache.is_taken, 1, __ATOMIC_ACQUIRE)) return false;
  const uint64_t count = cap_bytes / ENTRY_BYTES + 1;
  if (count_cache.arena == arena && count_cache.entries) return true;
  count_cache.arena = arena;
  if (map_entries(count)) return true; /* zeros */
  prof_i_count_cache_release();
  return false;
}

void prof_i_count_cache_release(void) {
  __atomic_store_n(&count_cache.is_taken, 0, __ATOMIC_RELEASE);
}

prof_i_counted_chunk *prof_i_count_cache_find(uint64_t offset, uint64_t bytes) {
  const uint64_t i = offset / ENTRY_BYTES;
  return bytes >= ENTRY_BYTES && i < count_cache.count ? &count_cache.entries[i] : NULL;
}

/* ---- walks ---- */

/* How far a walk prefetches. 512 to 4096 are alike. */
enum { WALK_AHEAD_BYTES = 1024 };

static uint64_t newest_number; /* that a chunk got. Any thread, by atomics */

typedef enum record_kind { RECORD_EVENT, RECORD_OTHER, RECORD_UNFINISHED } record_kind;

/* Parses the record at this word, and tells how many slots it takes. */
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

/* A walk reads what was written a ring ago, and no near cache has it. The processor cannot fetch
   ahead, because a record's length tells where the next one is. Without this, two thirds of a walk
   were waits. */
static inline void fetch_ahead(const uint64_t *word) {
  __builtin_prefetch((const char *)word + WALK_AHEAD_BYTES);
}

/* Nearly all records are of two kinds. They have branches of their own, here and in chunk_scrub(),
   because the processor predicts a step of fixed length. */
static inline bool record_is_plain(uint64_t word0, uint64_t word1, uint64_t generation) {
  return (word0 & PROF_I_GENERATION_MASK) == generation && (word1 & 15) == 0;
}
static inline bool record_is_short_alloc(uint64_t word0, uint64_t word1, uint64_t generation) {
  return (word0 & PROF_I_GENERATION_MASK) == generation && (word1 & 15) == PROF_I_ALLOC_TYPE;
}

/* Four records at once, a line of the cache. LIVE: all are plain and began after the clear.
   CLEARED: all are plain and ended by then. MIXED: anything else. */
enum { FOUR_MIXED, FOUR_LIVE, FOUR_CLEARED };

/* 0 or 1, for `&`. */
static inline int record_is_over(uint64_t word0, uint64_t word1, uint64_t ticks) {
  return (word0 >> 4) + (word1 >> PROF_I_DURATION_SHIFT) <= ticks;
}

/* Loads each record's first word before its second, as for a single record. */
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

/* Atomic: the helper reads it outside the gate, and a clear may store it at the same time. */
uint64_t prof_i_chunk_last_clear(void) {
  return __atomic_load_n(&prof_i_arena_header()->clear_ticks, __ATOMIC_RELAXED);
}

static PROF_I_RACES_BY_DESIGN inline uint64_t latest_end_of_four(const uint64_t *word) {
  uint64_t latest = 0;
  for (int i = 0; i < 8; i += 2) {
    const uint64_t end =
        (__atomic_load_n(&word[i], __ATOMIC_RELAXED) >> 4) + (word[i + 1] >> PROF_I_DURATION_SHIFT);
    latest = end > latest ? end : latest;
  }
  return latest;
}

static inline void raise_to(uint64_t *latest, uint64_t ticks) {
  if (latest && ticks > *latest) *latest = ticks;
}

/* latest_end: raised to the latest end of an event. It is NULL where no caller needs it, so that a
   ring's walk does not pay for it. */
static PROF_I_RACES_BY_DESIGN_INLINE prof_i_chunk_count chunk_walk(const prof_i_head *chunk,
                                                                   uint64_t clear_ticks,
                                                                   uint64_t *latest_end) {
  prof_i_chunk_count count = {0};
  const uint64_t end = prof_i_chunk_claimed_bytes(chunk);
  const uint64_t generation = chunk->generation;
  for (uint64_t i = PROF_I_HEAD_BYTES, slots; i < end; i += slots * 16) {
    const uint64_t *const word = (const uint64_t *)((const char *)chunk + i);
    fetch_ahead(word);
    const int four = end - i >= 64 ? records_parse_four(word, generation, clear_ticks) : FOUR_MIXED;
    if (PROF_I_LIKELY(four != FOUR_MIXED)) {
      *(four == FOUR_LIVE ? &count.live : &count.cleared) += 4;
      if (latest_end) raise_to(latest_end, latest_end_of_four(word));
      slots = 4;
      continue;
    }
    uint64_t ticks = __atomic_load_n(&word[0], __ATOMIC_ACQUIRE);
    if (record_is_plain(ticks, word[1], generation)) {
      const bool cleared = clear_ticks && record_is_over(ticks, word[1], clear_ticks);
      count.cleared += cleared;
      count.live += !cleared;
      raise_to(latest_end, (ticks >> 4) + (word[1] >> PROF_I_DURATION_SHIFT));
      slots = 1;
      continue;
    }
    if (record_is_short_alloc(ticks, word[1], generation)) {
      const bool cleared = ticks >> 4 <= clear_ticks;
      count.cleared += cleared;
      count.live += !cleared;
      raise_to(latest_end, ticks >> 4);
      count.longer++;
      slots = 2;
      continue;
    }
    switch (record_parse(word, generation, &slots, &ticks)) {
      case RECORD_EVENT:
        ++*(ticks <= clear_ticks ? &count.cleared : &count.live);
        raise_to(latest_end, ticks);
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

PROF_I_RACES_BY_DESIGN prof_i_chunk_count prof_i_chunk_walk(const prof_i_head *chunk,
                                                            uint64_t clear_ticks) {
  return chunk_walk(chunk, clear_ticks, NULL);
}

/* Uses the counts of an earlier walk. They are valid if there was no clear since, or if all events
   of the chunk had ended by the clear. */
static bool count_from_known(const prof_i_counted_chunk *known, uint64_t sequence,
                             uint64_t clear_ticks, prof_i_chunk_count *count_out) {
  if (!known || known->sequence != sequence) return false;
  if (known->clear_ticks == clear_ticks)
    count_out->live = known->live;
  else if (known->latest_end <= clear_ticks)
    count_out->cleared = known->live;
  else
    return false;
  return true;
}

prof_i_chunk_count prof_i_chunk_count_events(const prof_i_head *chunk, uint64_t clear_ticks,
                                             prof_i_counted_chunk *known) {
  for (;;) {
    const uint64_t sequence = __atomic_load_n(&chunk->sequence, __ATOMIC_ACQUIRE);
    const uint64_t number = prof_i_sequence_number(sequence);
    /* Nobody writes to a retired chunk, except a thread that claimed before: such a claim is
       unfinished. The sequence changes before a new owner writes. */
    const bool is_retired =
        __atomic_load_n(&chunk->state, __ATOMIC_ACQUIRE) == PROF_I_CHUNK_RETIRED;
    prof_i_chunk_count count = {0};
    uint64_t latest_end = 0;
    const bool is_walked = number && !count_from_known(known, sequence, clear_ticks, &count);
    if (is_walked) count = chunk_walk(chunk, clear_ticks, &latest_end);
    const prof_i_counted_chunk found = {sequence, clear_ticks, count.live, latest_end};
    const bool is_final = is_walked && is_retired && !count.unfinished && !count.cleared;
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
  const uint64_t claimed = prof_i_chunk_claimed_bytes(chunk), generation = chunk->generation;
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

/* Makes a chunk ready for the next generation: a reader must not take an old word for a new record.
   The first words of old records keep the old generation. All other words at the start of a slot
   become 0. */
static void chunk_scrub(prof_i_head *chunk, const prof_i_chunk_count *records) {
  const uint64_t end = prof_i_chunk_claimed_bytes(chunk), generation = chunk->generation;
  uint64_t left = records->longer; /* without memory events, only the owner record, at the front */
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

/* Counts into the other pair of counters. The store of the sequence then makes that pair the valid
   one, and the chunk empty. */
void prof_i_chunk_evict(prof_i_head *chunk, const prof_i_chunk_count *records,
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
  /* later stores into the chunk become visible after that */
  __atomic_thread_fence(__ATOMIC_RELEASE);
}

uint64_t prof_i_chunk_next_number(void) {
  return __atomic_add_fetch(&newest_number, 1, __ATOMIC_RELAXED);
}

uint64_t prof_i_chunk_newest_number(void) {
  return __atomic_load_n(&newest_number, __ATOMIC_ACQUIRE);
}

void prof_i_chunk_begin_numbers(void) { newest_number = PROF_I_RING_AGE_EMPTY; }

void prof_i_chunk_set_number(prof_i_head *chunk, uint64_t number) {
  __atomic_store_n(&chunk->sequence, number << 1 | (chunk->sequence & 1), __ATOMIC_RELEASE);
}

/* The chunk's records have been evicted. */
void prof_i_chunk_next_generation(prof_i_head *chunk, const prof_i_chunk_count *records) {
  chunk_scrub(chunk, records);
  const uint64_t next = PROF_I_FAULT(GENERATION) ? chunk->generation
                        : PROF_I_FAULT(GENERATION_0)
                            ? (chunk->generation + 1) & PROF_I_GENERATION_MASK
                            : chunk->generation % PROF_I_GENERATION_MASK + 1;
  __atomic_store_n(&chunk->generation, next, __ATOMIC_RELAXED);
  __atomic_store_n(&chunk->cursor, PROF_I_HEAD_BYTES, __ATOMIC_RELEASE);
}
