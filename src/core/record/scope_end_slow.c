/* Ends that the fast path cannot do: on another thread, out of order, after a jump, a fork or a
   stop, with a full chunk, or beside tasks. See scope_slow.c for begins, ledger.h for what counts
   when. */
#define _GNU_SOURCE
#include <errno.h>
#include <prof/profiler.h>
#include <string.h>

#include "../../base/fault.h"
#include "../../base/process.h"
#include "../buffer/arena.h"
#include "../buffer/clock.h"
#include "../buffer/ledger.h"
#include "../buffer/meta.h"
#include "../buffer/record.h"
#include "../buffer/session.h"
#include "compact.h"
#include "cost_sample.h"
#include "open_stack.h"
#include "scope.h"
#include "scope_find.h"

/* Of another thread, too: what it writes meanwhile is not used, for its entry has changed by
   then. */
static PROF_I_RACES_BY_DESIGN void copy_words_racy(uint64_t *to, const uint64_t *from,
                                                   uint64_t words) {
  for (uint64_t i = 0; i < words; i++) to[i] = __atomic_load_n(from + i, __ATOMIC_RELAXED);
}

/* The words that write_found() may add to a payload: a duration, and the length word of a short
   text that becomes a long record. */
enum { SPARE_WORDS = 3 };

/* Copies the payload into the own slot's text area, behind the texts there, with spare words. Not
   on the stack: a handler's may be small. */
static void copy_payload(prof_i_thread_slot *own_slot, const prof_i_thread_slot *from,
                         prof_i_ended_scope *f) {
  const uint64_t words = f->packed >> PROF_I_PACKED_WORDS_SHIFT,
                 offset = prof_i_packed_payload_offset(f->packed);
  f->payload = NULL;
  if (!(f->packed & PROF_I_TYPE_LONG)) return;
  const uint64_t top = f->scratch ? f->scratch : own_slot->payload_top;
  if (offset + words * 8 > PROF_I_TEXT_END || top + (words + SPARE_WORDS) * 8 > PROF_I_TEXT_END) {
    f->flags |= PROF_I_FLAG_NO_DETAILS;
    return;
  }
  f->scratch = top;
  f->payload = (uint64_t *)((char *)own_slot + top);
  __atomic_store_n(&own_slot->payload_top, top + (words + SPARE_WORDS) * 8, __ATOMIC_RELAXED);
  PROF_I_SIGNAL_FENCE();
  copy_words_racy(f->payload, (const uint64_t *)((const char *)from + offset), words);
}

/* The scope began on another thread. */
static bool find_on_other_thread(prof_i_thread *thread, prof_i_ended_scope *f, bool only_by_call,
                                 prof_i_remote_scope *at) {
  const uint64_t handle = f->start | f->tag;
  for (prof_i_remote_scope p; (p = prof_i_find_remote_scope(thread, handle, only_by_call)).open;) {
    do { /* again, if its text was moved meanwhile */
      f->flags = PROF_I_FLAG_OTHER_THREAD;
      f->packed = __atomic_load_n(&p.open->packed, __ATOMIC_ACQUIRE);
      copy_payload(thread->slot, p.slot, f);
      __atomic_thread_fence(__ATOMIC_ACQUIRE);
    } while (__atomic_load_n(&p.open->packed, __ATOMIC_RELAXED) != f->packed);
    f->is_old = p.ticks & PROF_I_OPEN_OLD;
    if (!prof_i_remote_scope_take(&p)) continue;
    f->is_deep = prof_i_remote_scope_is_deep(&p);
    *at = p;
    return true;
  }
  return false;
}

/* What the ledger says of it: see prof_i_ending. */
static uint64_t ledger_scope_of(const prof_i_ended_scope *f) {
  const uint64_t is_elsewhere = f->flags & PROF_I_FLAG_OTHER_THREAD ? PROF_I_ENDING_ELSEWHERE : 0;
  return f->start | is_elsewhere | (f->is_deep ? PROF_I_ENDING_DEEP : 0);
}

/* Its entry goes now, and then the note. */
static prof_i_ledger_saved lose_found(prof_i_thread_slot *slot, const prof_i_ended_scope *f,
                                      int loss) {
  return prof_i_ledger_lose(slot, loss, ledger_scope_of(f));
}

/* The slot may be gone at any moment, or there is none. */
static void lose_unattributed(const prof_i_ended_scope *f, int loss) {
  if (f->is_deep) prof_i_arena_count_deep_ended();
  prof_i_thread_lose_unattributed(loss, 1);
}

static int write_with_note(prof_i_thread *thread, prof_i_thread_slot *slot,
                           const prof_i_ended_scope *f, uint64_t word1, const uint64_t *more,
                           uint64_t words) {
  const prof_i_ledger_saved note =
      prof_i_ledger_begin(slot, ledger_scope_of(f), (2 + words + 1) / 2);
  const int loss = prof_i_record_write(thread, f->start, f->start, word1, more, words);
  prof_i_ledger_end(slot, &note, loss < 0 && f->is_deep);
  return loss;
}

static bool is_short_text(const uint64_t *payload) {
  return (payload[0] >> 16 & 0xff) == PROF_I_KIND_TEXT;
}

/* Makes a scope's payload of one with a short text. The words that it takes. */
static uint64_t payload_lengthen(uint64_t *payload) {
  const uint64_t head = payload[0], bytes = head & PROF_I_TEXT_BYTES_MAX;
  const uint64_t schema = head >> PROF_I_TEXT_SCHEMA_SHIFT & PROF_I_TEXT_SCHEMA_MAX;
  const uint64_t words = 1 + prof_i_text_words(bytes);
  memmove(payload + 2, (const char *)payload + 4, bytes);
  memset((char *)(payload + 2) + bytes, 0, (words - 2) * 8 - bytes);
  payload[1] = bytes;
  payload[0] = (uint64_t)PROF_I_KIND_SCOPE << 16 | schema << 32;
  return words;
}

/* Writes what was found, as a plain record if it can be one. The loss, or -1. */
static int write_found(prof_i_thread *thread, prof_i_thread_slot *slot, prof_i_ended_scope *f) {
  /* Negative where the counter went back, or another processor's is behind: the reader knows what
     to do. Long, then, as one that is long. */
  const uint64_t duration = (uint64_t)((int64_t)((f->end << 4) - f->start) >> 4);
  const bool is_long = duration >> PROF_I_DURATION_BITS;
  const uint64_t site = f->packed >> PROF_I_PACKED_SITE_SHIFT & PROF_I_SITE_COUNT_MAX;
  if (!(f->flags & PROF_I_FLAG_OTHER_THREAD)) copy_payload(slot, slot, f);
  if (!f->payload && !is_long && !f->flags && !f->is_skipped)
    return write_with_note(thread, slot, f,
                           duration << PROF_I_DURATION_SHIFT | site << PROF_I_PACKED_SITE_SHIFT,
                           NULL, 0);
  uint64_t bare[2] = {(uint64_t)PROF_I_KIND_SCOPE << 16, 0};
  uint64_t *const payload = f->payload ? f->payload : bare;
  uint64_t words = f->payload ? f->packed >> PROF_I_PACKED_WORDS_SHIFT : 1;
  if ((is_long || f->is_skipped) && is_short_text(payload)) words = payload_lengthen(payload);
  payload[0] |= (uint64_t)f->flags << 24;
  if (f->is_skipped)
    payload[0] = (payload[0] & ~(UINT64_C(0xff) << 16)) | (uint64_t)PROF_I_KIND_SKIPPED << 16;
  if (is_long) { /* the duration goes behind device and stream */
    const uint64_t before = 1 + (payload[0] >> 24 & 1) + (payload[0] >> 25 & 1);
    memmove(payload + before + 1, payload + before, (words - before) * 8);
    payload[before] = duration;
    payload[0] |= (uint64_t)PROF_I_FLAG_LONG << 24;
    words++;
  }
  if (!is_short_text(payload)) payload[0] = (payload[0] & ~0xffffull) | (2 + words + 1) / 2;
  const uint64_t word1 = (is_long ? 0 : duration << PROF_I_DURATION_SHIFT) |
                         site << PROF_I_PACKED_SITE_SHIFT | PROF_I_TYPE_LONG;
  return write_with_note(thread, slot, f, word1, payload, words);
}

/* What prof_i_find_own_scope() found goes, once its record stands or its loss is certain. The depth
   comes last: at depth 0 a handler would take the text area from its start. Text goes with the
   newest scope; what others leave are holes. */
static void close_own_entry(prof_i_thread *thread, const prof_i_ended_scope *f) {
  prof_i_thread_slot *const slot = thread->slot;
  const bool is_last = prof_i_is_last_entry(thread, f) && !thread->is_held;
  const bool has_text = f->packed & PROF_I_TYPE_LONG;
  const bool is_newest = is_last || !has_text || prof_i_is_newest_of(thread, f);
  if (is_last)
    prof_i_open_entry_set(prof_i_entry_of(thread, f), 0);
  else
    prof_i_leave_entry_gone(thread, f);
  if (is_newest && has_text) slot->payload_top = prof_i_packed_payload_offset(f->packed);
  if (!is_newest) prof_i_payload_area_leave_hole(thread, f->packed);
  PROF_I_SIGNAL_FENCE();
  if (is_last) prof_i_decrement_if_equal(f->is_deep ? &slot->deep : &slot->depth, f->index);
  if (is_last && f->is_deep && slot->deep == 0) prof_i_thread_end_deep(thread);
  if (!is_newest || f->has_skipped) prof_i_payload_area_trim(thread);
  prof_i_open_stack_trim(thread);
}

/* It was a block: all entries above it were begun by call. */
static void compact_above(prof_i_thread *thread, const prof_i_ended_scope *f) {
  if (f->packed & PROF_I_OPEN_BY_CALL || thread->is_slow || thread->is_held) return;
  const prof_i_thread_slot *const slot = thread->slot;
  if (slot->deep < (f->is_deep ? f->index : 1) && (f->is_deep || slot->depth < f->index)) return;
  prof_i_compact_above(thread, f->index + (f->is_deep ? PROF_I_OPEN_COUNT : 0));
  prof_i_open_stack_trim(thread);
}

static bool start_is_of_parent(uint64_t start) {
  const uint64_t forked = prof_i_session_forked_at();
  return forked && prof_i_clock_is_before(start >> 4, forked);
}

static bool is_of_older_session(const prof_i_header *header, const prof_i_ended_scope *f) {
  const uint64_t since = __atomic_load_n(&header->session_ticks, __ATOMIC_RELAXED);
  return f->is_old ||
         (prof_i_clock_is_before(f->start >> 4, since) && !prof_i_clock_went_back(since));
}

static void remember_skipped(prof_i_thread *thread, uint64_t start) {
  const uint64_t count = __atomic_fetch_add(&thread->skipped.count, 1, __ATOMIC_RELAXED);
  uint64_t *const to = &thread->skipped.starts[count % PROF_I_SKIPPED_COUNT];
  __atomic_store_n(to, start, __ATOMIC_RELAXED);
}

/* Was a block with that start skipped? Then this is its end, or that of another thread's scope by
   call that began at the same tick. One with a tag is no block's. */
static bool take_skipped(prof_i_thread *thread, uint64_t start) {
  if (!__atomic_load_n(&thread->skipped.count, __ATOMIC_RELAXED)) return false;
  for (int i = 0; i < PROF_I_SKIPPED_COUNT; i++) {
    uint64_t *const at = &thread->skipped.starts[i];
    if (__atomic_load_n(at, __ATOMIC_RELAXED) != start) continue;
    __atomic_store_n(at, 0, __ATOMIC_RELAXED);
    return true;
  }
  return false;
}

typedef enum skip_how {
  SKIP_RECORDED, /* past the gate, and recording */
  SKIP_LOST,
  SKIP_UNATTRIBUTED /* the slot may be gone at any moment */
} skip_how;

/* A jump left this block, and an older one ends: it is recorded as skipped, or lost. */
static void skip_block(prof_i_thread *thread, prof_i_ended_scope *f, skip_how how) {
  prof_i_thread_slot *const slot = thread->slot;
  prof_i_ledger_saved note = {PROF_I_ENDING_COUNT, {0, 0}};
  f->is_skipped = true;
  const bool is_recorded = how == SKIP_RECORDED && !is_of_older_session(prof_i_arena_header(), f) &&
                           write_found(thread, slot, f) < 0;
  if (f->scratch) slot->payload_top = f->scratch;
  if (!is_recorded && how == SKIP_UNATTRIBUTED) lose_unattributed(f, PROF_LOSS_SKIPPED);
  if (!is_recorded && how != SKIP_UNATTRIBUTED) note = lose_found(slot, f, PROF_LOSS_SKIPPED);
  remember_skipped(thread, f->start);
  prof_i_payload_area_leave_hole(thread, f->packed);
  prof_i_leave_entry_gone(thread, f);
  if (!is_recorded && how != SKIP_UNATTRIBUTED) prof_i_ledger_settle(slot, &note);
}

/* A block that began after f and has not ended yet ends with it. */
static void skip_if_later(prof_i_thread *thread, uint64_t at, prof_i_ended_scope *f, skip_how how) {
  const bool is_deep = at > PROF_I_OPEN_COUNT;
  const uint64_t index = is_deep ? at - PROF_I_OPEN_COUNT : at;
  const prof_i_open_entry *const open =
      is_deep ? &thread->deep[index - 1] : &thread->slot->open[index];
  const uint64_t ticks = prof_i_open_entry_ticks(open), packed = open->packed;
  if (packed & PROF_I_OPEN_BY_CALL || ticks & PROF_I_OPEN_TAKEN ||
      !prof_i_is_later(thread, ticks, at, f))
    return;
  prof_i_ended_scope g = {.start = ticks & ~(uint64_t)PROF_I_OPEN_OLD,
                          .end = f->end,
                          .packed = packed,
                          .is_deep = is_deep,
                          .index = index,
                          .is_old = ticks & PROF_I_OPEN_OLD};
  f->has_skipped = true;
  skip_block(thread, &g, how);
}

static bool block_stands_at(prof_i_thread *thread, uint64_t open_index, uint64_t start) {
  prof_i_ended_scope f = {.start = start};
  return prof_i_is_open_index(thread, open_index) &&
         prof_i_find_own_scope_at(thread, open_index, &f);
}

/* The same where it is known which blocks began after f. False: some may not be. */
static bool skip_known_blocks(prof_i_thread *thread, prof_i_ended_scope *f, skip_how how) {
  const uint64_t count = __atomic_load_n(&thread->begun.count, __ATOMIC_RELAXED);
  const uint64_t least = count > PROF_I_OPEN_BLOCKS_COUNT ? count - PROF_I_OPEN_BLOCKS_COUNT : 0;
  if (!thread->is_slow) return false;
  for (uint64_t i = count; i > least; i--) {
    const uint64_t start = thread->begun.blocks[(i - 1) % PROF_I_OPEN_BLOCKS_COUNT].start;
    const uint64_t open_index = thread->begun.blocks[(i - 1) % PROF_I_OPEN_BLOCKS_COUNT].open_index;
    if (start == f->start) {
      prof_i_open_blocks_end(thread, count, i - 1);
      return true;
    }
    if (!block_stands_at(thread, open_index, start)) break; /* it has ended elsewhere */
    skip_if_later(thread, open_index, f, how);
  }
  prof_i_open_blocks_end(thread, count, 0); /* all of them end with f */
  return false;
}

/* A block has ended. Blocks that began after it and are still open were left by a jump, such as
   longjmp(). They end with it. */
static void skip_later_blocks(prof_i_thread *thread, prof_i_ended_scope *f, skip_how how) {
  const prof_i_thread_slot *const slot = thread->slot;
  if (f->packed & PROF_I_OPEN_BY_CALL || prof_i_is_last_entry(thread, f)) return;
  if (skip_known_blocks(thread, f, how)) return;
  if (prof_i_is_known_newest(thread, &thread->newest_block, f)) return;
  /* Those below are no later: see prof_i_is_later(). */
  const uint64_t deep_below = !thread->is_slow && f->is_deep ? f->index : 0;
  const uint64_t below = thread->is_slow ? 0 : f->is_deep ? PROF_I_OPEN_COUNT : f->index;
  for (uint64_t i = slot->deep; i > deep_below; i--)
    skip_if_later(thread, PROF_I_OPEN_COUNT + i, f, how);
  for (uint64_t i = slot->depth - PROF_I_FAULT(SKIPPED_STAYS); i > below; i--)
    skip_if_later(thread, i, f, how);
  prof_i_open_stack_trim(thread);
}

/* An end whose scope has no entry any more. Its loss, or -1: it is a stray, of a scope that has
   ended and been counted, or that never began. A capture's entries go when another one replaces
   it. */
static int loss_without_entry(prof_i_thread *thread, uint64_t start) {
  if (start_is_of_parent(start)) return PROF_LOSS_FORKED;
  const uint64_t since = prof_i_session_since();
  if (!since) return -1;
  if (prof_i_clock_is_before(start >> 4, since) &&
      !prof_i_clock_is_before(start >> 4, prof_i_session_first_at()))
    return PROF_LOSS_LATE;
  return thread && prof_i_thread_drop_stale_entry(thread, start) ? PROF_LOSS_LATE : -1;
}

enum { STRAY = -2 };

/* There is no room for this thread: the scope must not stay open on its own thread for ever. */
static int end_without_thread(uint64_t handle) {
  const uint64_t start = prof_i_open_entry_start(handle);
  prof_i_remote_scope at;
  if (prof_i_remote_scope_find_take(NULL, handle, prof_i_handle_tag(handle), &at)) {
    if (prof_i_remote_scope_is_deep(&at)) prof_i_arena_count_deep_ended();
    prof_i_remote_scope_finish(&at);
    return PROF_LOSS_NO_THREAD;
  }
  const int loss = loss_without_entry(NULL, start);
  return loss < 0 ? STRAY : loss;
}

/* Past the gate. The loss of a scope that has no entry, STRAY, or -1: it has been counted. */
static int end_unusual(uint64_t handle, uint64_t ticks) {
  const uint64_t start = prof_i_open_entry_start(handle), tag = prof_i_handle_tag(handle);
  if (!start) return STRAY; /* a tag alone */
  if (!prof_i_the_arena.base) return start_is_of_parent(start) ? PROF_LOSS_FORKED : STRAY;
  prof_i_thread *const thread = prof_i_thread_attach();
  if (!thread) return end_without_thread(handle);
  const prof_i_header *const header = prof_i_arena_header();
  const bool is_recording = prof_i_session_is_recording();
  prof_i_thread_slot *const slot = thread->slot;
  prof_i_ended_scope f = {
      .start = start,
      .tag = tag,
      .end = ticks ? ticks : prof_i_scope_end_ticks(thread, prof_i_clock_ticks())};
  prof_i_remote_scope elsewhere = {0};
  prof_i_ledger_saved note = {PROF_I_ENDING_COUNT, {0, 0}};
  const bool was_busy = thread->is_text_busy;
  thread->is_text_busy = true;
  PROF_I_SIGNAL_FENCE();
  prof_i_compact_finish(thread);
  const bool mine = prof_i_find_own_scope(thread, &f);
  if (mine) skip_later_blocks(thread, &f, is_recording ? SKIP_RECORDED : SKIP_LOST);
  const prof_i_hold hold = mine ? PROF_I_HOLD_NONE : prof_i_thread_hold(thread);
  const bool is_by_call = tag || (!mine && take_skipped(thread, start));
  const bool is_found = mine || find_on_other_thread(thread, &f, is_by_call, &elsewhere);
  int loss = PROF_LOSS_LATE;
  if (!is_found) {
    if ((loss = loss_without_entry(thread, start)) < 0) loss = STRAY;
  } else if (is_recording && !is_of_older_session(header, &f)) {
    loss = write_found(thread, slot, &f);
  }
  const bool is_lost = is_found && loss >= 0;
  if (is_lost) note = lose_found(slot, &f, loss);
  if (is_found && !mine) prof_i_remote_scope_finish(&elsewhere);
  if (f.scratch) slot->payload_top = f.scratch;
  thread->is_text_busy = was_busy;
  if (mine) close_own_entry(thread, &f);
  if (is_lost) prof_i_ledger_settle(slot, &note);
  if (mine) {
    compact_above(thread, &f);
  } else {
    prof_i_thread_unhold(thread, hold);
    prof_i_open_stack_trim(thread);
  }
  return is_found ? -1 : loss;
}

/* The gate is closed: somebody starts another capture, whose entries may be gone at any moment, or
   clears. Then the slot stands. */
static void end_outside(uint64_t handle) {
  const uint64_t start = prof_i_open_entry_start(handle), tag = prof_i_handle_tag(handle);
  if (!start) return; /* a tag alone */
  prof_i_thread *const thread = prof_i_this_thread;
  const bool is_recording = prof_i_session_is_recording();
  const bool is_placed =
      is_recording && prof_i_is_attached(thread) && thread->arena == prof_i_the_arena.number;
  prof_i_thread_slot *const slot = thread->slot;
  const int found_loss = is_recording ? PROF_LOSS_CLEARED : PROF_LOSS_LATE;
  prof_i_ended_scope f = {.start = start, .tag = tag};
  prof_i_remote_scope elsewhere = {0};
  prof_i_ledger_saved note = {PROF_I_ENDING_COUNT, {0, 0}};
  prof_i_compact_finish(thread);
  const bool mine = prof_i_find_own_scope(thread, &f);
  if (mine)
    skip_later_blocks(thread, &f, is_placed ? SKIP_LOST : SKIP_UNATTRIBUTED);
  else
    prof_i_thread_slots_acquire();
  const bool is_by_call = tag || (!mine && take_skipped(thread, start));
  /* It must not stay open on its own thread for ever. */
  const bool is_found =
      mine || prof_i_remote_scope_find_take(thread, handle, is_by_call, &elsewhere);
  if (is_found && !mine) {
    f.flags = PROF_I_FLAG_OTHER_THREAD;
    f.is_deep = prof_i_remote_scope_is_deep(&elsewhere);
  }
  if (is_found && is_placed)
    note = lose_found(slot, &f, found_loss);
  else if (is_found)
    lose_unattributed(&f, found_loss);
  if (mine)
    close_own_entry(thread, &f);
  else if (is_found)
    prof_i_remote_scope_finish(&elsewhere);
  if (is_found && is_placed) prof_i_ledger_settle(slot, &note);
  if (!mine) prof_i_thread_slots_release();
  if (is_found) return;
  const int loss = is_recording ? loss_without_entry(NULL, start) : PROF_LOSS_LATE;
  if (loss >= 0) prof_i_thread_lose_unattributed(loss, 1);
}

/* Writes a plain scope's record as the fast path does. False: there is more to do. */
static inline bool write_plain(prof_i_thread *thread, const prof_i_open_entry *open,
                               uint64_t start) {
  const uint64_t packed = open->packed;
  if (prof_i_open_entry_ticks(open) != start || packed & PROF_I_TYPE_LONG) return false;
  const uint64_t duration4 = prof_i_scope_end_now(thread) - start;
  if (duration4 >> (PROF_I_DURATION_BITS + 4)) return false;
  prof_i_head *const chunk = prof_i_thread_chunk(thread);
  const uint64_t at = prof_i_claim(&chunk->cursor, 16);
  if (at >= chunk->limit && !prof_i_record_extends(chunk, at, 16)) {
    prof_i_scope_note_failed_claim(thread, chunk, at, start);
    return false;
  }
  uint64_t *const record = (uint64_t *)((char *)chunk + at);
  __atomic_store_n(&record[1],
                   duration4 << (PROF_I_DURATION_SHIFT - 4) | prof_i_packed_record_word(packed),
                   __ATOMIC_RELAXED);
  /* Pairs with the reader's acquire. */
  __atomic_store_n(&record[0], start | chunk->generation, __ATOMIC_RELEASE);
  PROF_I_SIGNAL_FENCE();
  return true;
}

static inline bool write_plain_deep(prof_i_thread *thread, prof_i_thread_slot *slot,
                                    const prof_i_open_entry *open, uint64_t start) {
  if (prof_i_open_entry_ticks(open) != start) return false;
  const prof_i_ledger_saved note = prof_i_ledger_begin(slot, start | PROF_I_ENDING_DEEP, 1);
  const bool is_written = write_plain(thread, open, start);
  prof_i_ledger_end(slot, &note, is_written);
  if (is_written && thread->slot != slot) /* a handler has brought it to another arena */
    prof_i_claim(&thread->slot->ledger, PROF_I_LEDGER_ONE_DEEP);
  return is_written;
}

/* The last scope below the 64 shown. False: there is more to do. */
static PROF_I_WARM bool end_deep(prof_i_thread *thread, uint64_t start) {
  prof_i_thread_slot *const slot = thread->slot;
  const uint64_t deep = slot ? slot->deep : 0;
  if (deep == 0 || thread->is_slow || thread->is_held || !prof_i_clock_is_counter()) return false;
  prof_i_open_entry *const open = &thread->deep[deep - 1];
  if (!write_plain_deep(thread, slot, open, start)) return false;
  prof_i_open_entry_set(open, 0);
  prof_i_decrement_if_equal(&slot->deep, deep);
  if (deep == 1) prof_i_thread_end_deep(thread);
  if (prof_i_open_entry_ticks(deep > 1 ? open - 1 : &slot->open[PROF_I_OPEN_COUNT]) ==
      PROF_I_OPEN_GONE)
    prof_i_open_stack_trim(thread);
  return true;
}

/* The scope of a slow thread that began last. False: there is more to do. The last of the 64
   entries is freed at once: if we are a handler, the interrupted begin may have seen that it is
   free. */
static PROF_I_WARM bool end_newest(prof_i_thread *thread, uint64_t start) {
  prof_i_ended_scope f = {.start = start};
  if (!prof_i_is_known_newest(thread, &thread->newest, &f) || thread->is_held) return false;
  if (!prof_i_clock_is_counter() || prof_i_thread_has_ended()) return false;
  const uint64_t at = thread->newest.open_index;
  if (!prof_i_is_open_index(thread, at) || !prof_i_find_own_scope_at(thread, at, &f) || f.is_old)
    return false;
  const prof_i_open_entry *const open = prof_i_entry_of(thread, &f);
  if (!(f.is_deep ? write_plain_deep(thread, thread->slot, open, start)
                  : write_plain(thread, open, start)))
    return false;
  prof_i_open_blocks_end_last(thread, start);
  prof_i_leave_entry_gone(thread, &f);
  if (!f.is_deep && f.index == thread->slot->depth) prof_i_open_stack_trim(thread);
  return true;
}

/* Its claim stands in a capture that was left meanwhile. A forked child's copy of a claim is its
   parent's. */
static bool unfinished_claim_counts(uint64_t start) {
  prof_i_thread *const thread = prof_i_this_thread;
  const uint64_t claim = thread->unfinished_claim;
  if (PROF_I_LIKELY(!claim)) return false;
  thread->unfinished_claim = 0;
  return claim == start && !start_is_of_parent(start);
}

void prof_i_scope_end_slow(uint64_t handle, uint64_t ticks) {
  const uint64_t start = prof_i_open_entry_start(handle);
  const bool may_be_own = prof_i_handle_may_be_of(prof_i_this_thread, prof_i_handle_tag(handle));
  if (start && !ticks && may_be_own && end_deep(prof_i_this_thread, start)) return;
  if (start && !ticks && may_be_own && end_newest(prof_i_this_thread, start)) return;
  if (!handle || !prof_i_process_is_own()) return;
  if (start && unfinished_claim_counts(start)) return;
  const int saved = errno;
  const bool has_window = !ticks && prof_i_this_thread->timing.events_left;
  uint64_t since = 0;
  if (has_window) { /* before the recorder's own lines come into the caches */
    ticks = prof_i_scope_end_ticks(prof_i_this_thread, prof_i_counter());
    since = prof_i_cost_sample_end(prof_i_this_thread);
  }
  if (!prof_i_arena_guard_enter()) {
    if (has_window && prof_i_cost_sample_give_up(prof_i_this_thread)) {
      prof_scope_end(handle);
      return;
    }
    end_outside(handle);
  } else {
    const prof_i_slow_time timed = prof_i_slow_time_begin(prof_i_this_thread);
    const int loss = end_unusual(handle, ticks);
    prof_i_slow_time_end(prof_i_this_thread, &timed);
    if (since) prof_i_cost_sample_after_end(prof_i_this_thread, since);
    if (loss >= 0) prof_i_thread_lose(prof_i_this_thread, loss, 1);
    if (loss == STRAY) prof_i_thread_count_stray(prof_i_this_thread);
    prof_i_arena_guard_exit();
    if (prof_i_thread_has_ended()) prof_i_thread_exit_again();
  }
  errno = saved;
}

bool prof_i_scope_is_open(uint64_t handle) {
  const uint64_t start = prof_i_open_entry_start(handle);
  const prof_i_thread *const thread = prof_i_this_thread;
  const prof_i_thread_slot *const slot = thread->slot; /* of an arena that was retired, zeros */
  if (!start || !slot || thread->session != prof_i_arena_session()) return false;
  for (uint64_t i = slot->deep; i > 0; i--)
    if (thread->deep[i - 1].ticks == start) return true;
  for (uint64_t i = slot->depth; i > 0; i--)
    if (prof_i_open_entry_ticks(&slot->open[i]) == start) return true;
  return false;
}
