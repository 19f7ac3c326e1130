/* Pieces and blocks. The fast path is an alloc or a free of a pool that is not checked, with no tag
   and no stream, on a thread that is ready. It costs one counter read, one locked add and 32 bytes.
   Budget of a pair: 2.2x of a plain scope (bench/memory.c). As for scopes, room is claimed before
   it is written, so that a handler lands behind. The clock is read before the sum is made. So if
   two events are in the wrong order of time, nobody waits for the earlier one
   (src/analysis/memory.c).

   The sum is made first, the peak raised next, the record written last: killed in between, the peak
   stands. */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <prof/profiler.h>

#include "../base/fault.h"
#include "../base/process.h"
#include "../core/buffer/arena.h"
#include "../core/buffer/clock.h"
#include "../core/buffer/record.h"
#include "../core/buffer/session.h"
#include "../core/buffer/thread.h"
#include "../core/record/site.h"

enum { EVENT_WORDS = 9 };

/* ---- the sums ---- */

/* So far from the middle the sum cannot be real memory, and a further allocation could overflow. */
static inline bool sum_is_implausible(uint64_t counter) {
  const uint64_t used = counter & PROF_I_USED_MASK;
  return used - PROF_I_USED_ZERO / 4 > PROF_I_USED_ZERO / 4 * 6;
}

static inline __attribute__((always_inline)) void raise_used(prof_i_pool_state *state,
                                                             uint64_t counter, uint64_t ticks) {
  prof_i_peak *const peak =
      PROF_I_FAULT(OLD_EPOCH) ? &state->used_peaks[0] : prof_i_peak_now(state->used_peaks, state);
  if (!PROF_I_FAULT(PLAIN_PEAK))
    prof_i_peak_raise(peak, counter, PROF_I_USED_MASK, ticks);
  else if ((counter & PROF_I_USED_MASK) > (peak->peak & PROF_I_USED_MASK))
    __atomic_store_n(&peak->peak, counter, __ATOMIC_RELAXED);
}

/* The one add. */
static inline __attribute__((always_inline)) uint64_t add_event(prof_i_pool_state *state,
                                                                uint64_t delta) {
  if (!PROF_I_FAULT(PLAIN_SUM))
    return __atomic_add_fetch(&state->used, PROF_I_USED_ONE_EVENT + delta, __ATOMIC_SEQ_CST);
  const uint64_t counter =
      __atomic_load_n(&state->used, __ATOMIC_RELAXED) + PROF_I_USED_ONE_EVENT + delta;
  __atomic_store_n(&state->used, counter, __ATOMIC_RELAXED);
  return counter;
}

/* Once in a million events. One that is killed here, readers know by what they have seen. */
static PROF_I_COLD void count_wrap(prof_i_pool_state *state) {
  if (!PROF_I_FAULT(NO_ROUND)) __atomic_fetch_add(&state->rounds, 1, __ATOMIC_RELAXED);
}
static inline __attribute__((always_inline)) bool counter_wraps(uint64_t counter) {
  return PROF_I_UNLIKELY(counter >> PROF_I_USED_BITS == 0);
}

/* The counter after it; 0: refused. */
static inline __attribute__((always_inline)) uint64_t add_used(prof_i_pool_state *state,
                                                               uint64_t delta, uint64_t ticks) {
  const uint64_t counter = add_event(state, delta);
  if (PROF_I_UNLIKELY(sum_is_implausible(counter))) {
    __atomic_sub_fetch(&state->used, PROF_I_USED_ONE_EVENT + delta, __ATOMIC_RELAXED);
    __atomic_fetch_add(&state->refused_count, 1, __ATOMIC_RELAXED);
    return 0;
  }
  if (counter_wraps(counter)) count_wrap(state);
  if ((int64_t)delta > 0 && !PROF_I_FAULT(LATE_PEAK)) raise_used(state, counter, ticks);
  return counter;
}

/* As above, for blocks, collections and failures: their place among the pieces. */
static uint64_t add_allocated(prof_i_pool_state *state, uint64_t delta, uint64_t ticks,
                              uint64_t *allocated_out) {
  *allocated_out = __atomic_add_fetch(&state->allocated, delta, __ATOMIC_SEQ_CST);
  if ((int64_t)delta > 0)
    prof_i_peak_raise(prof_i_peak_now(state->allocated_peaks, state), *allocated_out, UINT64_MAX,
                      ticks);
  const uint64_t counter =
      __atomic_add_fetch(&state->used, PROF_I_USED_ONE_EVENT, __ATOMIC_SEQ_CST);
  if (counter_wraps(counter)) count_wrap(state);
  return counter;
}

/* A query's answer: both values are as they are. A collection, as RAF means it: less is allocated
   than before. */
static uint64_t set_sample(prof_i_pool_state *state, const prof_i_memory_event *event,
                           uint64_t ticks) {
  const uint64_t allocated = PROF_I_USED_ZERO + event->extra;
  const uint64_t before = __atomic_exchange_n(&state->allocated, allocated, __ATOMIC_RELAXED);
  __atomic_store_n(&state->used_now, event->bytes, __ATOMIC_RELAXED);
  const uint64_t number = __atomic_add_fetch(&state->used, 1, __ATOMIC_SEQ_CST);
  if (number > 1 && allocated < before)
    __atomic_fetch_add(&state->collection_count, 1, __ATOMIC_RELAXED);
  prof_i_peak_raise(prof_i_peak_now(state->used_peaks, state), event->bytes, UINT64_MAX, ticks);
  prof_i_peak_raise(prof_i_peak_now(state->allocated_peaks, state), allocated, UINT64_MAX, ticks);
  return number;
}

/* ---- the slow way ---- */

typedef struct event_totals {
  prof_i_pool_state *state;
  uint64_t ticks, counter, word7;
} event_totals;

/* False: refused. */
static bool update_totals(event_totals *s, const prof_i_memory_event *event) {
  s->word7 = event->requested;
  switch (event->verb) {
    case PROF_I_VERB_ALLOC:
      s->counter = add_used(s->state, event->bytes, s->ticks);
      break;
    case PROF_I_VERB_FREE:
      s->counter = add_used(s->state, 0 - event->bytes, s->ticks);
      break;
    case PROF_I_VERB_RESERVE:
      s->counter = add_allocated(s->state, event->bytes, s->ticks, &s->word7);
      break;
    case PROF_I_VERB_RELEASE:
      s->counter = add_allocated(s->state, 0 - event->bytes, s->ticks, &s->word7);
      break;
    case PROF_I_VERB_COLLECT:
    case PROF_I_VERB_WRONG:
    case PROF_I_VERB_OOM:
      s->counter = add_allocated(s->state, 0, s->ticks, &s->word7);
      break;
    case PROF_I_VERB_SAMPLE:
      s->counter = set_sample(s->state, event, s->ticks);
      s->word7 = PROF_I_USED_ZERO + event->extra;
      break;
  }
  return s->counter != 0;
}

/* Is there more about a piece than a short record has room for? */
static inline bool needs_long_alloc(uint64_t waste, uint32_t tag, uint64_t stream) {
  return waste > PROF_I_ALLOC_WASTE_MAX || tag || stream != PROF_NO_STREAM;
}

/* Word 1 of a piece's record; waste 0 where word 4 says what was asked for. */
static inline uint64_t alloc_word(uint64_t type, uint64_t verb, uint64_t waste, uint64_t number,
                                  uint64_t given) {
  return type | verb << PROF_I_ALLOC_VERB_SHIFT | waste << PROF_I_ALLOC_WASTE_SHIFT |
         number << PROF_I_ALLOC_POOL_SHIFT | given << PROF_I_ALLOC_BYTES_SHIFT;
}

static inline uint64_t alloc_more_word(uint32_t tag, uint64_t requested) {
  return tag | requested << PROF_I_ALLOC_BYTES_SHIFT;
}

/* From word 1 on. */
static uint64_t put_alloc_record(uint64_t *words, const prof_i_memory_event *event, uint64_t number,
                                 uint64_t counter) {
  const uint64_t waste = event->bytes - event->requested;
  const bool more = needs_long_alloc(waste, event->tag, event->stream);
  words[0] = alloc_word(more ? PROF_I_ALLOC_MORE_TYPE : PROF_I_ALLOC_TYPE, event->verb,
                        more ? 0 : waste, number, event->bytes);
  words[1] = event->address;
  words[2] = counter;
  if (!more) return 3;
  words[3] = alloc_more_word(event->tag, event->requested);
  words[4] = event->stream;
  return 5;
}

/* Whatever no piece's record has room for. */
static uint64_t put_long_record(uint64_t *words, const event_totals *s,
                                const prof_i_memory_event *event) {
  uint64_t count = 7;
  const bool has_stream = event->stream != PROF_NO_STREAM;
  words[0] = (uint64_t)event->tag << 4 | 1;
  words[1] =
      (uint64_t)PROF_I_KIND_MEMORY << 16 | (has_stream ? (uint64_t)PROF_I_FLAG_STREAM << 24 : 0);
  words[2] = (uint64_t)event->verb | s->state->number << 32;
  words[3] = event->address;
  words[4] = event->bytes;
  words[5] = s->counter;
  words[6] = s->word7;
  if (event->verb == PROF_I_VERB_COLLECT)
    words[count++] = s->ticks > event->extra ? s->ticks - event->extra : 0;
  if (event->verb == PROF_I_VERB_WRONG) words[count++] = event->extra;
  if (has_stream) words[count++] = event->stream;
  words[1] |= (1 + count + 1) / 2;
  return count;
}

/* Once the arena is full: a count in the own slot. */
static bool count_left_out_event(prof_i_thread *thread) {
  if (__atomic_load_n(&thread->epoch, __ATOMIC_RELAXED) != PROF_I_EPOCH_FULL) return false;
  const int loss = prof_i_arena_full_loss();
  if (loss < 0) return false; /* cleared since */
  prof_i_count_up(&thread->slot->lost[loss]);
  return true;
}

/* A record's words from word 1 on; pool NULL: its epoch is this thread's. */
static void write_or_lose(prof_pool *pool, uint64_t ticks, const uint64_t *words, uint64_t count) {
  if (count_left_out_event(prof_i_this_thread)) return;
  if (!prof_i_arena_guard_enter()) {
    prof_i_thread_lose_unattributed(
        prof_i_session_is_recording() ? PROF_LOSS_CLEARED : PROF_LOSS_LATE, 1);
    return;
  }
  const bool is_recording = prof_i_session_is_recording();
  prof_i_thread *const thread = is_recording ? prof_i_thread_attach() : NULL;
  int loss = is_recording ? PROF_LOSS_NO_THREAD : PROF_LOSS_LATE;
  if (thread) {
    if (pool) prof_i_pool_follow_epoch(pool);
    loss = prof_i_record_write(thread, ticks << 4, ticks << 4, words[0], words + 1, count - 1);
  }
  if (loss >= 0) prof_i_thread_lose(thread ? thread : prof_i_this_thread, loss, 1);
  prof_i_arena_guard_exit();
}

/* From word 1 on; how many. */
static uint64_t put_event_record(uint64_t *words, const event_totals *s,
                                 const prof_i_memory_event *event) {
  const uint64_t number = s->state->number;
  const bool is_piece = event->verb <= PROF_I_VERB_FREE && number <= PROF_I_ALLOC_POOL_MAX;
  return is_piece ? put_alloc_record(words, event, number, s->counter)
                  : put_long_record(words, s, event);
}

/* A pool whose state found no room in the arena has no number. */
static void write_event_record(prof_pool *pool, const event_totals *s,
                               const prof_i_memory_event *event) {
  uint64_t words[EVENT_WORDS];
  if (!s->state->number) {
    prof_i_thread_lose_outside(prof_i_this_thread, PROF_LOSS_FULL, 1);
    return;
  }
  write_or_lose(pool, s->ticks, words, put_event_record(words, s, event));
}

void prof_i_memory_event_write(prof_pool *pool, const prof_i_memory_event *event) {
  if (!prof_i_process_is_own()) return;
  const int saved = errno;
  prof_i_session_ensure(); /* a forked child makes its own capture here */
  if (!prof_i_pool_is_recorded(pool)) {
    errno = saved;
    return;
  }
  event_totals s = {.state = __atomic_load_n(&pool->state, __ATOMIC_ACQUIRE)};
  while (s.state && prof_i_session_has_memory()) {
    s.ticks = prof_i_clock_ticks();
    if (!update_totals(&s, event)) break;
    prof_i_pool_state *const now = __atomic_load_n(&pool->state, __ATOMIC_ACQUIRE);
    if (now == s.state) {
      write_event_record(pool, &s, event);
      break;
    }
    s.state = now; /* another session has begun: it counts there */
  }
  errno = saved;
}

int prof_i_memory_event_write_at(prof_pool *pool, const prof_i_memory_event *event, uint64_t ticks,
                                 prof_i_thread *thread) {
  uint64_t words[EVENT_WORDS];
  event_totals s = {.state = __atomic_load_n(&pool->state, __ATOMIC_ACQUIRE), .ticks = ticks};
  if (!s.state || !s.state->number) return PROF_LOSS_FULL;
  /* of another capture */
  if (prof_i_arena_offset(s.state) >= prof_i_the_arena.cap_bytes) return PROF_LOSS_CLEARED;
  if (!update_totals(&s, event)) return -1; /* counted as refused */
  const uint64_t count = put_event_record(words, &s, event);
  return prof_i_record_write(thread, ticks << 4, ticks << 4, words[0], words + 1, count - 1);
}

/* What takes no room in the sums is left out, and counted. */
static PROF_I_COLD void record_any_event(prof_pool *pool, const prof_i_memory_event *event) {
  if (event->bytes < PROF_I_ALLOC_BYTES_END) {
    prof_i_memory_event_write(pool, event);
    return;
  }
  prof_i_pool_state *const state = __atomic_load_n(&pool->state, __ATOMIC_ACQUIRE);
  if (state) __atomic_fetch_add(&state->refused_count, 1, __ATOMIC_RELAXED);
}

/* ---- the fast way ---- */

static inline uint64_t address_number(const void *address) { return (uint64_t)(uintptr_t)address; }

/* The record does not fit, of what is counted: words 1 and on; so many as registers hold, for a
   locked add waits for every store before it. */
static PROF_I_COLD void write_slowly(uint64_t ticks, uint64_t word1, uint64_t address,
                                     uint64_t counter, uint64_t word4, uint64_t word5) {
  const uint64_t words[] = {word1, address, counter, word4, word5};
  const int saved = errno;
  if (prof_i_process_is_own()) write_or_lose(NULL, ticks, words, prof_i_alloc_slots(word1) * 2 - 1);
  errno = saved;
}

/* Fast-path preconditions. The caller loads the thread's chunk before: in a child that a handler
   forks in between, thread->fast is NULL then, not the chunk. */
static inline bool pool_is_ready(const prof_pool *pool, const prof_i_pool_state *state,
                                 const prof_i_thread *thread, uint64_t given) {
  const uint64_t epoch = __atomic_load_n(&pool->epoch, __ATOMIC_ACQUIRE);
  return PROF_I_LIKELY(!pool->checked && given < PROF_I_ALLOC_BYTES_END && thread->fast && epoch &&
                       __atomic_load_n(&thread->epoch, __ATOMIC_RELAXED) == epoch &&
                       state->number - 1 < PROF_I_ALLOC_POOL_MAX);
}

/* Of a piece, or a free one. */
static inline __attribute__((always_inline)) void write_alloc_record(
    prof_i_head *chunk, uint64_t ticks, uint64_t word1, uint64_t address, uint64_t counter,
    uint64_t word4, uint64_t word5) {
  const bool more = (word1 & 15) == PROF_I_ALLOC_MORE_TYPE;
  uint64_t *const record = prof_i_record_claim(chunk, more ? 48 : 32);
  if (PROF_I_UNLIKELY(!record)) {
    write_slowly(ticks, word1, address, counter, word4, word5);
    return;
  }
  if (PROF_I_FAULT(LATE_WORDS))
    __atomic_store_n(&record[0], ticks << 4 | chunk->generation, __ATOMIC_RELEASE);
  __atomic_store_n(&record[1], word1, __ATOMIC_RELAXED);
  __atomic_store_n(&record[2], address, __ATOMIC_RELAXED);
  __atomic_store_n(&record[3], counter, __ATOMIC_RELAXED);
  if (more) {
    __atomic_store_n(&record[4], word4, __ATOMIC_RELAXED);
    __atomic_store_n(&record[5], word5, __ATOMIC_RELAXED);
  }
  /* the commit: pairs with the reader's acquire */
  __atomic_store_n(&record[0], ticks << 4 | chunk->generation, __ATOMIC_RELEASE);
}

static PROF_I_COLD void record_alloc_slowly(prof_pool *pool, uint64_t address, uint64_t bytes,
                                            uint64_t given, uint32_t tag, uint64_t stream) {
  const prof_i_memory_event event = {.verb = PROF_I_VERB_ALLOC,
                                     .tag = tag,
                                     .address = address,
                                     .bytes = given,
                                     .requested = bytes,
                                     .stream = stream};
  struct prof_i_checked *const checked = __atomic_load_n(&pool->checked, __ATOMIC_ACQUIRE);
  if (checked && !prof_i_pool_is_recorded(pool)) return; /* its table is of this start, too */
  if (!checked || prof_i_checked_alloc(pool, checked, address, given))
    record_any_event(pool, &event);
}

static inline __attribute__((always_inline)) void record_alloc(prof_pool *pool, uint64_t address,
                                                               uint64_t bytes, uint64_t given,
                                                               uint32_t tag, uint64_t stream) {
  prof_i_thread *const thread = prof_i_this_thread;
  prof_i_head *const chunk = __atomic_load_n(&thread->chunk, __ATOMIC_RELAXED);
  PROF_I_SIGNAL_FENCE();
  prof_i_pool_state *const state = __atomic_load_n(&pool->state, __ATOMIC_RELAXED);
  if (!pool_is_ready(pool, state, thread, given)) {
    record_alloc_slowly(pool, address, bytes, given, tag, stream);
    return;
  }
  const uint64_t waste = given - bytes, early = PROF_I_FAULT(LATE_CLOCK) ? 0 : prof_i_counter(),
                 counter = add_used(state, given, early);
  const uint64_t ticks = PROF_I_FAULT(LATE_CLOCK) ? prof_i_counter() : early;
  if (PROF_I_UNLIKELY(!counter)) return;
  if (needs_long_alloc(waste, tag, stream))
    write_alloc_record(
        chunk, ticks,
        alloc_word(PROF_I_ALLOC_MORE_TYPE, PROF_I_VERB_ALLOC, 0, state->number, given), address,
        counter, alloc_more_word(tag, bytes), stream);
  else
    write_alloc_record(
        chunk, ticks, alloc_word(PROF_I_ALLOC_TYPE, PROF_I_VERB_ALLOC, waste, state->number, given),
        address, counter, 0, 0);
  if (PROF_I_FAULT(LATE_PEAK)) raise_used(state, counter, ticks);
}

void prof_memory_alloc(prof_pool *pool, const void *address, uint64_t bytes, uint64_t given_bytes) {
  if (prof_i_session_has_memory() && pool && address)
    record_alloc(pool, address_number(address), bytes, given_bytes > bytes ? given_bytes : bytes, 0,
                 PROF_NO_STREAM);
}

void prof_memory_alloc_for(prof_pool *pool, const void *address, uint64_t bytes,
                           uint64_t given_bytes, uint32_t tag, uint64_t stream) {
  if (prof_i_session_has_memory() && pool && address)
    record_alloc(pool, address_number(address), bytes, given_bytes > bytes ? given_bytes : bytes,
                 tag & PROF_I_SITE_COUNT_MAX, stream);
}

static PROF_I_COLD void record_free_slowly(prof_pool *pool, uint64_t address, uint64_t given) {
  struct prof_i_checked *const checked = __atomic_load_n(&pool->checked, __ATOMIC_ACQUIRE);
  if (checked && !prof_i_pool_is_recorded(pool)) return;
  if (checked && !prof_i_checked_free(pool, checked, address, &given)) return;
  const prof_i_memory_event event = {.verb = PROF_I_VERB_FREE,
                                     .address = address,
                                     .bytes = given,
                                     .requested = given,
                                     .stream = PROF_NO_STREAM};
  record_any_event(pool, &event);
}

void prof_memory_free(prof_pool *pool, const void *address, uint64_t given_bytes) {
  if (!prof_i_session_has_memory() || !pool || !address) return;
  prof_i_thread *const thread = prof_i_this_thread;
  prof_i_head *const chunk = __atomic_load_n(&thread->chunk, __ATOMIC_RELAXED);
  PROF_I_SIGNAL_FENCE();
  prof_i_pool_state *const state = __atomic_load_n(&pool->state, __ATOMIC_RELAXED);
  if (!pool_is_ready(pool, state, thread, given_bytes)) {
    record_free_slowly(pool, address_number(address), given_bytes);
    return;
  }
  const uint64_t ticks = prof_i_counter(), counter = add_used(state, 0 - given_bytes, ticks);
  if (PROF_I_LIKELY(counter))
    write_alloc_record(
        chunk, ticks,
        alloc_word(PROF_I_ALLOC_TYPE, PROF_I_VERB_FREE, 0, state->number, given_bytes),
        address_number(address), counter, 0, 0);
}

/* ---- blocks ---- */

static void record_block_event(prof_pool *pool, prof_i_verb verb, uint64_t address,
                               uint64_t bytes) {
  const prof_i_memory_event event = {.verb = verb,
                                     .address = address,
                                     .bytes = bytes,
                                     .requested = bytes,
                                     .stream = PROF_NO_STREAM};
  if (prof_i_session_has_memory() && pool) record_any_event(pool, &event);
}

void prof_memory_reserve(prof_pool *pool, const void *address, uint64_t bytes) {
  record_block_event(pool, PROF_I_VERB_RESERVE, address_number(address), bytes);
}
void prof_memory_release(prof_pool *pool, const void *address, uint64_t bytes) {
  record_block_event(pool, PROF_I_VERB_RELEASE, address_number(address), bytes);
}

/* What is allocated at the begin is not kept: the records in between tell what was released. */
uint64_t prof_memory_collect_begin(prof_pool *pool) {
  if (!prof_i_session_has_memory() || !pool) return 0;
  const int saved = errno;
  const uint64_t ticks = prof_i_process_is_own() ? prof_i_clock_ticks() : 0;
  errno = saved;
  return ticks;
}

void prof_memory_collect_end(prof_pool *pool, uint64_t begun) {
  PROF_I_DEFAULT_FP;
  if (!prof_i_session_has_memory() || !pool || !begun) return;
  const uint64_t now = prof_i_clock_ticks(), ticks = now > begun ? now - begun : 0;
  prof_i_pool_state *const state = __atomic_load_n(&pool->state, __ATOMIC_ACQUIRE);
  /* it began before memory was stopped and started */
  if (begun < __atomic_load_n(&pool->since_ticks, __ATOMIC_RELAXED)) return;
  if (state) {
    __atomic_fetch_add(&state->collection_count, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&state->collection_ns,
                       (uint64_t)((double)ticks / prof_i_clock_ticks_per_ns()), __ATOMIC_RELAXED);
  }
  const prof_i_memory_event event = {
      .verb = PROF_I_VERB_COLLECT, .stream = PROF_NO_STREAM, .extra = begun};
  prof_i_memory_event_write(pool, &event);
}
