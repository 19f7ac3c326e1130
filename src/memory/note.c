/* Pieces and blocks. The fast path is an alloc or a free of a pool that is not checked, with no tag and no stream, on a thread that is ready: one
   counter read, one locked add, 32 bytes. Budget of a pair: 2.2x of a plain scope (bench/memory.c). As for scopes, room is claimed before it is written, so that a handler
   lands behind; and the clock is read before the sum is made, so that of two events in the wrong order of time the earlier one is never awaited (src/trace/memory.c).

   The sum is made first, the peak raised next, the record written last: killed in between, the peak stands. */
#define _GNU_SOURCE
#include "note.h"

#include <errno.h>
#include <prof/profiler.h>

#include "../core/clock.h"
#include "../core/control.h"
#include "../core/gate.h"
#include "../core/record.h"
#include "../core/site.h"
#include "../core/thread.h"
#include "checked.h"

/* ---- the sums ---- */

/* So far from the middle the sum is nobody's memory, and a further piece could run over. */
static inline bool is_far(uint64_t counter) {
  const uint64_t used = counter & PROF_I_USED_MASK;
  return used - PROF_I_USED_ZERO / 4 > PROF_I_USED_ZERO / 4 * 6;
}

/* The counter after it; 0: refused. */
static inline __attribute__((always_inline)) uint64_t add_used(prof_i_pool_state *state, uint64_t delta, uint64_t ticks) {
  const uint64_t counter = __atomic_add_fetch(&state->used, PROF_I_USED_ONE_EVENT + delta, __ATOMIC_SEQ_CST);
  if (PROF_I_UNLIKELY(is_far(counter))) {
    __atomic_sub_fetch(&state->used, PROF_I_USED_ONE_EVENT + delta, __ATOMIC_RELAXED);
    __atomic_fetch_add(&state->refused_count, 1, __ATOMIC_RELAXED);
    return 0;
  }
  if ((int64_t)delta > 0) prof_i_peak_raise(prof_i_peak_now(state->used_peaks, state), counter, PROF_I_USED_MASK, ticks);
  return counter;
}

/* As above, for blocks, collections and failures: their place among the pieces. */
static uint64_t add_allocated(prof_i_pool_state *state, uint64_t delta, uint64_t ticks, uint64_t *allocated_out) {
  *allocated_out = __atomic_add_fetch(&state->allocated, delta, __ATOMIC_SEQ_CST);
  if ((int64_t)delta > 0) prof_i_peak_raise(prof_i_peak_now(state->allocated_peaks, state), *allocated_out, UINT64_MAX, ticks);
  return __atomic_add_fetch(&state->used, PROF_I_USED_ONE_EVENT, __ATOMIC_SEQ_CST);
}

/* A query's answer: both values are as they are. A collection, as RAF means it: less is allocated than before. */
static uint64_t set_sample(prof_i_pool_state *state, const prof_i_note *note, uint64_t ticks) {
  const uint64_t allocated = PROF_I_USED_ZERO + note->extra;
  const uint64_t before = __atomic_exchange_n(&state->allocated, allocated, __ATOMIC_RELAXED);
  __atomic_store_n(&state->used_now, note->bytes, __ATOMIC_RELAXED);
  const uint64_t number = __atomic_add_fetch(&state->used, 1, __ATOMIC_SEQ_CST);
  if (number > 1 && allocated < before) __atomic_fetch_add(&state->collection_count, 1, __ATOMIC_RELAXED);
  prof_i_peak_raise(prof_i_peak_now(state->used_peaks, state), note->bytes, UINT64_MAX, ticks);
  prof_i_peak_raise(prof_i_peak_now(state->allocated_peaks, state), allocated, UINT64_MAX, ticks);
  return number;
}

/* ---- the slow way ---- */

typedef struct sums {
  prof_i_pool_state *state;
  uint64_t ticks, counter, word7;
} sums;

/* False: refused. */
static bool add_up(sums *s, const prof_i_note *note) {
  s->word7 = note->requested;
  switch (note->verb) {
    case PROF_I_VERB_ALLOC: s->counter = add_used(s->state, note->bytes, s->ticks); break;
    case PROF_I_VERB_FREE: s->counter = add_used(s->state, 0 - note->bytes, s->ticks); break;
    case PROF_I_VERB_RESERVE: s->counter = add_allocated(s->state, note->bytes, s->ticks, &s->word7); break;
    case PROF_I_VERB_RELEASE: s->counter = add_allocated(s->state, 0 - note->bytes, s->ticks, &s->word7); break;
    case PROF_I_VERB_COLLECT:
    case PROF_I_VERB_WRONG:
    case PROF_I_VERB_OOM: s->counter = add_allocated(s->state, 0, s->ticks, &s->word7); break;
    case PROF_I_VERB_SAMPLE:
      s->counter = set_sample(s->state, note, s->ticks);
      s->word7 = PROF_I_USED_ZERO + note->extra;
      break;
  }
  return s->counter != 0;
}

/* Word 1 of the short form. */
static inline uint64_t piece_word(uint64_t verb, uint64_t waste, uint64_t number, uint64_t given) {
  return PROF_I_PIECE_TYPE | verb << PROF_I_PIECE_VERB_SHIFT | waste << PROF_I_PIECE_WASTE_SHIFT | number << PROF_I_PIECE_POOL_SHIFT |
         given << PROF_I_PIECE_BYTES_SHIFT;
}

static bool is_short(const prof_i_note *note, uint64_t number) {
  return note->verb <= PROF_I_VERB_FREE && !note->tag && note->stream == PROF_NO_STREAM && note->bytes - note->requested <= PROF_I_PIECE_WASTE_MAX &&
         number <= PROF_I_PIECE_POOL_MAX;
}

/* Past the gate, recording. The loss, or -1. */
static int write_note(prof_i_thread *thread, const sums *s, const prof_i_note *note) {
  const uint64_t number = s->state->number;
  if (is_short(note, number)) {
    const uint64_t more[] = {note->address, s->counter};
    return prof_i_record_write(thread, s->ticks << 4, s->ticks << 4, piece_word(note->verb, note->bytes - note->requested, number, note->bytes), more, 2);
  }
  uint64_t words[8] = {(uint64_t)PROF_I_KIND_MEMORY << 16,
                       (uint64_t)note->verb | number << 32,
                       note->address,
                       note->bytes,
                       s->counter,
                       s->word7};
  uint64_t count = 6;
  if (note->verb == PROF_I_VERB_COLLECT || note->verb == PROF_I_VERB_WRONG) words[count++] = note->extra;
  if (note->stream != PROF_NO_STREAM) {
    words[0] |= (uint64_t)PROF_I_FLAG_STREAM << 24;
    words[count++] = note->stream;
  }
  words[0] |= (2 + count + 1) / 2;
  return prof_i_record_write(thread, s->ticks << 4, s->ticks << 4, (uint64_t)note->tag << 4 | 1, words, count);
}

/* Once the arena is full: a count in the own slot. */
static bool is_left_out(prof_i_thread *thread) {
  if (__atomic_load_n(&thread->epoch, __ATOMIC_RELAXED) != PROF_I_EPOCH_FULL) return false;
  const int loss = prof_i_arena_full_loss();
  if (loss < 0) return false; /* cleared since */
  prof_i_count_up(&thread->slot->lost[loss]);
  return true;
}

static void write_or_lose(prof_pool *pool, const sums *s, const prof_i_note *note) {
  if (is_left_out(prof_i_this_thread)) return;
  if (!prof_i_gate_enter()) {
    prof_i_thread_lose_unplaced(prof_i_control_is_recording() ? PROF_LOSS_CLEARED : PROF_LOSS_LATE);
    return;
  }
  const bool is_recording = prof_i_control_is_recording();
  prof_i_thread *const thread = is_recording ? prof_i_thread_attach() : NULL;
  int loss = is_recording ? PROF_LOSS_NO_THREAD : PROF_LOSS_LATE;
  if (thread) {
    prof_i_pool_follow_epoch(pool);
    loss = s->state->number ? write_note(thread, s, note) : PROF_LOSS_FULL;
  }
  if (loss >= 0) prof_i_thread_lose(thread ? thread : prof_i_this_thread, loss, 1);
  prof_i_gate_leave();
}

void prof_i_note_slowly(prof_pool *pool, const prof_i_note *note) {
  if (!prof_i_control_is_own_process()) return;
  const int saved = errno;
  prof_i_control_ensure(); /* a forked child makes its own capture here */
  sums s = {.state = __atomic_load_n(&pool->state, __ATOMIC_ACQUIRE)};
  while (s.state && prof_i_memory_is_on()) {
    s.ticks = prof_i_clock_ticks();
    if (!add_up(&s, note)) break;
    prof_i_pool_state *const now = __atomic_load_n(&pool->state, __ATOMIC_ACQUIRE);
    if (now == s.state) {
      write_or_lose(pool, &s, note);
      break;
    }
    s.state = now; /* another session has begun: it counts there */
  }
  errno = saved;
}

/* ---- the fast way ---- */

static inline uint64_t number_of(const void *address) { return (uint64_t)(uintptr_t)address; }

/* False: the slow way, from the start. */
static inline __attribute__((always_inline)) bool note_piece(prof_pool *pool, uint64_t verb, const void *address, uint64_t given, uint64_t waste) {
  prof_i_thread *const thread = prof_i_this_thread;
  const uint64_t epoch = __atomic_load_n(&pool->epoch, __ATOMIC_ACQUIRE);
  prof_i_pool_state *const state = __atomic_load_n(&pool->state, __ATOMIC_RELAXED);
  if (PROF_I_UNLIKELY(!thread->fast || !epoch || __atomic_load_n(&thread->epoch, __ATOMIC_RELAXED) != epoch)) return false;
  prof_i_head *const chunk = __atomic_load_n(&thread->chunk, __ATOMIC_RELAXED);
  const uint64_t number = state->number;
  if (PROF_I_UNLIKELY(number - 1 >= PROF_I_PIECE_POOL_MAX)) return false;
  const uint64_t ticks = prof_i_counter();
  const uint64_t counter = add_used(state, verb == PROF_I_VERB_FREE ? 0 - given : given, ticks);
  if (PROF_I_UNLIKELY(!counter)) return true;
  uint64_t *const record = prof_i_record_claim(chunk, 32);
  if (PROF_I_UNLIKELY(!record)) {
    const sums s = {.state = state, .ticks = ticks, .counter = counter, .word7 = given - waste};
    const prof_i_note note = {.verb = (prof_i_verb)verb, .address = number_of(address), .bytes = given, .requested = given - waste, .stream = PROF_NO_STREAM};
    const int saved = errno;
    if (prof_i_control_is_own_process()) write_or_lose(pool, &s, &note);
    errno = saved;
    return true;
  }
  __atomic_store_n(&record[1], piece_word(verb, waste, number, given), __ATOMIC_RELAXED);
  __atomic_store_n(&record[2], number_of(address), __ATOMIC_RELAXED);
  __atomic_store_n(&record[3], counter, __ATOMIC_RELAXED);
  __atomic_store_n(&record[0], ticks << 4 | chunk->generation, __ATOMIC_RELEASE); /* the commit: pairs with the reader's acquire */
  return true;
}

static void refuse(prof_pool *pool) {
  prof_i_pool_state *const state = __atomic_load_n(&pool->state, __ATOMIC_ACQUIRE);
  if (state) __atomic_fetch_add(&state->refused_count, 1, __ATOMIC_RELAXED);
}

/* Whatever the fast way cannot do. */
static PROF_I_COLD void note_any(prof_pool *pool, const prof_i_note *note) {
  if (note->bytes >= PROF_I_PIECE_BYTES_END) refuse(pool);
  else prof_i_note_slowly(pool, note);
}

static PROF_I_COLD void alloc_slowly(prof_pool *pool, const void *address, uint64_t bytes, uint64_t given, uint32_t tag, uint64_t stream) {
  const prof_i_note note = {
      .verb = PROF_I_VERB_ALLOC, .tag = tag, .address = number_of(address), .bytes = given, .requested = bytes, .stream = stream};
  struct prof_i_checked *const checked = __atomic_load_n(&pool->checked, __ATOMIC_ACQUIRE);
  if (checked && !prof_i_checked_alloc(pool, checked, note.address, given)) return;
  note_any(pool, &note);
}

void prof_memory_alloc(prof_pool *pool, const void *address, uint64_t bytes, uint64_t given_bytes) {
  if (!prof_i_memory_is_on() || !pool) return;
  const uint64_t given = given_bytes > bytes ? given_bytes : bytes, waste = given - bytes;
  if (PROF_I_LIKELY(waste <= PROF_I_PIECE_WASTE_MAX && given < PROF_I_PIECE_BYTES_END && !pool->checked) &&
      PROF_I_LIKELY(note_piece(pool, PROF_I_VERB_ALLOC, address, given, waste)))
    return;
  alloc_slowly(pool, address, bytes, given, 0, PROF_NO_STREAM);
}

void prof_memory_alloc_for(prof_pool *pool, const void *address, uint64_t bytes, uint64_t given_bytes, uint32_t tag, uint64_t stream) {
  if (!prof_i_memory_is_on() || !pool) return;
  alloc_slowly(pool, address, bytes, given_bytes > bytes ? given_bytes : bytes, tag, stream);
}

static PROF_I_COLD void free_slowly(prof_pool *pool, const void *address, uint64_t given) {
  struct prof_i_checked *const checked = __atomic_load_n(&pool->checked, __ATOMIC_ACQUIRE);
  if (checked && !prof_i_checked_free(pool, checked, number_of(address), &given)) return;
  const prof_i_note note = {.verb = PROF_I_VERB_FREE, .address = number_of(address), .bytes = given, .requested = given, .stream = PROF_NO_STREAM};
  note_any(pool, &note);
}

void prof_memory_free(prof_pool *pool, const void *address, uint64_t given_bytes) {
  if (!prof_i_memory_is_on() || !pool || !address) return;
  if (PROF_I_LIKELY(given_bytes < PROF_I_PIECE_BYTES_END && !pool->checked) && PROF_I_LIKELY(note_piece(pool, PROF_I_VERB_FREE, address, given_bytes, 0)))
    return;
  free_slowly(pool, address, given_bytes);
}

/* ---- blocks ---- */

static void note_block(prof_pool *pool, prof_i_verb verb, const void *address, uint64_t bytes) {
  const prof_i_note note = {.verb = verb, .address = number_of(address), .bytes = bytes, .requested = bytes, .stream = PROF_NO_STREAM};
  if (prof_i_memory_is_on() && pool) note_any(pool, &note);
}

void prof_memory_reserve(prof_pool *pool, const void *address, uint64_t bytes) { note_block(pool, PROF_I_VERB_RESERVE, address, bytes); }
void prof_memory_release(prof_pool *pool, const void *address, uint64_t bytes) { note_block(pool, PROF_I_VERB_RELEASE, address, bytes); }

/* What is allocated at the begin is not kept: the records in between tell what was released. */
uint64_t prof_memory_collect_begin(prof_pool *pool) {
  if (!prof_i_memory_is_on() || !pool) return 0;
  const int saved = errno;
  const uint64_t ticks = prof_i_control_is_own_process() ? prof_i_clock_ticks() : 0;
  errno = saved;
  return ticks;
}

void prof_memory_collect_end(prof_pool *pool, uint64_t begun) {
  if (!prof_i_memory_is_on() || !pool || !begun) return;
  const uint64_t now = prof_i_clock_ticks(), ticks = now > begun ? now - begun : 0;
  prof_i_pool_state *const state = __atomic_load_n(&pool->state, __ATOMIC_ACQUIRE);
  if (state) {
    __atomic_fetch_add(&state->collection_count, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&state->collection_ns, (uint64_t)((double)ticks / prof_i_clock_ticks_per_ns()), __ATOMIC_RELAXED);
  }
  const prof_i_note note = {.verb = PROF_I_VERB_COLLECT, .stream = PROF_NO_STREAM, .extra = ticks};
  prof_i_note_slowly(pool, &note);
}
