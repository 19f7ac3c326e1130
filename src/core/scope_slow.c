/* All that can be unusual about a scope: its thread's first, another session, clock or arena, more than 64 open, an end on another thread,
   out of order, after a fork, a stop or a longjmp, a full chunk. Once in some thousand scopes. See scope.c for the order of stores. */
#define _GNU_SOURCE
#include <errno.h>
#include <prof/profiler.h>
#include <string.h>
#include <sys/mman.h>

#include "arena.h"
#include "clock.h"
#include "control.h"
#include "entry.h"
#include "fault.h"
#include "gate.h"
#include "in_place.h"
#include "ledger.h"
#include "name.h"
#include "pack.h"
#include "record.h"
#include "scope.h"
#include "scope_find.h"
#include "site.h"

/* ---- begin ---- */

static uint32_t number_of(prof_site *site, const prof_details *details) {
  return prof_i_site_ask(site, details->flags & PROF_I_NAME_LITERAL ? details->name : NULL,
                         details->flags & PROF_I_CATEGORY_LITERAL ? details->category : NULL);
}

/* Most of what comes here once the arena is full, or when the site is muted: a count in the own slot, which stands as long as the thread's epoch
   does, and back. */
static bool is_left_out(prof_i_thread *thread, uint64_t state) {
  const uint64_t epoch = __atomic_load_n(&thread->epoch, __ATOMIC_RELAXED);
  int loss = PROF_LOSS_MUTED;
  if (epoch == PROF_I_EPOCH_FULL) {
    loss = prof_i_arena_full_loss();
    if (loss < 0) return false; /* cleared since */
    if (state >> 32 == (prof_i_site_epoch() | PROF_I_EPOCH_MUTED)) loss = PROF_LOSS_MUTED;
  } else if (state >> 32 != (epoch | PROF_I_EPOCH_MUTED) || epoch & PROF_I_EPOCH_MUTED) {
    return false;
  }
  prof_i_count_up(&thread->slot->lost[loss]);
  return true;
}

/* Where scopes end in any order, as tasks do, an entry whose scope is over serves again once half
   of them are: they would pile up, and each end looks at all. NULL: there are few. */
static prof_i_open *deep_entry_between(prof_i_thread *thread) {
  enum { GONE_MIN = 64 };
  prof_i_slot *const slot = thread->slot;
  const uint64_t gone = __atomic_load_n(&slot->deep_gone, __ATOMIC_RELAXED);
  /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): a thread that is attached has a slot */
  if (gone < GONE_MIN || gone < slot->deep / 2) return NULL;
  const uint64_t first = prof_i_hint_load(&thread->deep_gap);
  for (uint64_t n = 0, i = first; n < slot->deep; n++, i++) {
    if (i >= slot->deep) i = 0;
    if (!prof_i_entry_empty_if_gone(&thread->deep[i])) continue;
    prof_i_entry_one_gone_less(slot);
    prof_i_hint_store(&thread->deep_gap, i + 1);
    prof_i_thread_be_slow(thread, true); /* their order is that of their ticks from here on */
    return &thread->deep[i];
  }
  return NULL;
}

/* Scopes below the 64 shown: their site is remembered in memory of the thread's own. NULL: deeper than that, or no memory. Other threads
   look at it, too: one of these scopes may end there. */
static prof_i_open *deep_entry(prof_i_thread *thread) {
  prof_i_slot *const slot = thread->slot;
  if (!thread->deep) {
    const size_t bytes =
        PROF_I_DEEP_COUNT * sizeof *thread->deep + PROF_I_WHERE_COUNT * sizeof(uint32_t);
    void *const memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return NULL;
    __atomic_store_n(&thread->deep, memory, __ATOMIC_RELEASE);
  }
  prof_i_open *const between = deep_entry_between(thread);
  if (between) return between;
  /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): a thread that is attached has a slot */
  if (slot->deep >= PROF_I_DEEP_COUNT) return NULL;
  prof_i_open *const open = &thread->deep[prof_i_claim(&slot->deep, 1)];
  prof_i_thread_go_deep(thread);
  return open;
}

/* With the gate closed the whole slot may become zeros at any moment, when its arena goes: then not less than that. */
static void one_less(uint64_t *count, uint64_t from) {
  __atomic_compare_exchange_n(count, &from, from - 1, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

/* An entry below the topmost whose scope is over: of scopes that do not nest, the entries pile up. */
static prof_i_open *entry_between(prof_i_thread *thread) {
  const uint64_t first = prof_i_hint_load(&thread->shown_gap);
  for (uint64_t n = 0, i = first; n < PROF_I_OPEN_COUNT; n++, i++) {
    if (i == 0 || i > PROF_I_OPEN_COUNT) i = 1;
    if (!prof_i_entry_empty_if_gone(&thread->slot->open[i])) continue;
    prof_i_hint_store(&thread->shown_gap, i + 1);
    prof_i_thread_note_gap(thread); /* there may be more */
    return &thread->slot->open[i];
  }
  return NULL;
}

/* Without a number there is no site to keep the name: it is copied, as one made at run time. */
static const prof_details *with_own_name(prof_details *named, const prof_details *details) {
  *named = *details;
  named->flags &= ~(uint32_t)(PROF_I_NAME_LITERAL | PROF_I_CATEGORY_LITERAL);
  return named;
}
/* Its name has one. */
static const prof_details *with_site(prof_details *named, const prof_details *details) {
  *named = *details;
  named->flags |= PROF_I_NAME_LITERAL | PROF_I_CATEGORY_LITERAL;
  return named;
}

/* Takes entries off the top whose scopes are over without their end here. Not whatever is empty: this may be a handler that came in
   the midst of a begin, whose entry has no start yet. */
static void trim(prof_i_thread *thread) {
  prof_i_slot *const slot = thread->slot;
  if (thread->is_held) return;
  const bool was_deep = slot->deep > 0;
  for (uint64_t deep;
       (deep = slot->deep) > 0 && prof_i_entry_empty_if_gone(&thread->deep[deep - 1]);) {
    prof_i_entry_one_gone_less(slot);
    one_less(&slot->deep, deep);
  }
  if (was_deep && slot->deep == 0) prof_i_thread_come_up(thread);
  for (uint64_t depth;
       (depth = slot->depth) > 0 && prof_i_entry_empty_if_gone(&slot->open[depth]);)
    one_less(&slot->depth, depth);
  if (slot->depth == 0 && slot->deep == 0) slot->text_top = PROF_I_TEXT_OFFSET;
}

/* Another thread may have ended it. */
static bool is_last_deep_gone(const prof_i_thread *thread) {
  const uint64_t deep = thread->slot->deep;
  return deep > 0 && prof_i_entry_ticks(&thread->deep[deep - 1]) == PROF_I_OPEN_GONE;
}

/* Do all scopes that stand open have entries, in the order in which they began, and is none just being begun? */
static bool is_in_order(const prof_i_thread *thread) {
  const prof_i_slot *const slot = thread->slot;
  uint64_t latest = 0;
  for (uint64_t i = 1; i <= slot->depth; i++) {
    const uint64_t ticks = prof_i_entry_ticks(&slot->open[i]);
    if (ticks == PROF_I_OPEN_GONE) continue;
    if (ticks == 0 || (latest && prof_i_clock_is_before(ticks >> 4, latest >> 4))) return false;
    latest = ticks;
  }
  return slot->deep == 0;
}

enum { BESIDE_TURNS = 16 };

/* Most begins of a slow thread need not ask: it takes a look at all that stands open. */
static bool may_be_fast(const prof_i_thread *thread) {
  enum { FEW = 8 };
  if (!thread->is_slow || prof_i_thread_has_ended()) return false;
  if (thread->slot->depth + thread->slot->deep > FEW && thread->newest.begun_count % BESIDE_TURNS)
    return false;
  return is_in_order(thread);
}

/* One that has no entry in the slot counts as open from its count on. */
static void set_start(prof_i_slot *slot, prof_i_open *open, uint64_t start) {
  prof_i_entry_set(open, start);
  PROF_I_SIGNAL_FENCE();
  if (open < slot->open || open > &slot->open[PROF_I_OPEN_COUNT]) prof_i_count_up(&slot->deep_count);
}

static uint64_t begin_unusual(prof_site *site, const prof_details *details) {
  prof_i_thread *const thread = prof_i_thread_attach();
  if (!thread) {
    prof_i_thread_lose(&prof_i_no_thread, PROF_LOSS_NO_THREAD, 1);
    return 0;
  }
  prof_i_slot *const slot = thread->slot;
  prof_i_pack_finish(thread);
  if (may_be_fast(thread)) prof_i_thread_be_slow(thread, false);
  if (__atomic_load_n(&thread->epoch, __ATOMIC_RELAXED) == PROF_I_EPOCH_FULL) prof_i_thread_be_slow(thread, thread->is_slow);
  const uint32_t number = number_of(site, details);
  if (prof_i_site_is_muted(site)) {
    prof_i_thread_lose(thread, PROF_LOSS_MUTED, 1);
    return 0;
  }
  prof_details named;
  uint32_t shown = number;
  switch (number ? prof_i_name_ask(site, number, details, &shown) : PROF_I_NAME_COPY) {
    case PROF_I_NAME_MUTED: prof_i_thread_lose(thread, PROF_LOSS_MUTED, 1); return 0;
    case PROF_I_NAME_SITE: details = with_site(&named, details); break;
    case PROF_I_NAME_COPY:
      shown = number;
      if (!number) details = with_own_name(&named, details);
  }
  prof_i_open *open;
  bool has_gaps = false;
  if (slot->depth == PROF_I_OPEN_COUNT && __atomic_load_n(&thread->has_gaps, __ATOMIC_RELAXED)) {
    has_gaps = __atomic_exchange_n(&thread->has_gaps, 0, __ATOMIC_ACQUIRE);
    trim(thread); /* of scopes that are handed to other threads, the entries pile up */
    if (has_gaps && slot->depth < PROF_I_OPEN_COUNT)
      prof_i_thread_note_gap(thread); /* those below were not looked at */
  } else if (is_last_deep_gone(thread)) {
    trim(thread);
  }
  if (slot->depth < PROF_I_OPEN_COUNT) {
    open = prof_i_entry_take(slot);
    if (open == &slot->open[1] && slot->deep == 0) slot->text_top = PROF_I_TEXT_OFFSET;
    if (slot->deep) prof_i_thread_be_slow(thread, true); /* those began before it */
  } else if (has_gaps && (open = entry_between(thread)) != NULL) {
    prof_i_thread_be_slow(thread, true); /* the topmost may end before it: then the fast path would take its text for free */
  } else if ((open = deep_entry(thread)) == NULL) {
    prof_i_thread_lose(thread, PROF_LOSS_LOST_STATE, 1);
    return 0;
  }
  const uint64_t by_call = prof_i_entry_by_call(details);
  const uint64_t count = prof_i_claim(&thread->newest.begun_count, 1) + 1;
  const uint64_t block_count = by_call ? 0 : prof_i_claim(&thread->newest_block.begun_count, 1) + 1;
  __atomic_store_n(&open->what,
                   prof_i_entry_is_plain(details)
                       ? (uint64_t)shown << PROF_I_WHAT_SITE_SHIFT | by_call
                       : prof_i_texts_put(thread, slot, open, details, number, shown),
                   __ATOMIC_RELAXED);
  const uint64_t start = prof_i_entry_begins(thread, prof_i_clock_ticks()) << 4;
  set_start(slot, open, start);
  const uint64_t place = prof_i_place_of(thread, open);
  prof_i_newest_set(&thread->newest, count, start, place);
  if (!by_call) prof_i_newest_set(&thread->newest_block, block_count, start, place);
  prof_i_find_remember(thread, start, place);
  return start;
}

/* On a slow thread one of eight begins and ends is timed, at random, and counts eightfold: each may
   search all open scopes of the thread. The time of a chunk change in between is left out: it is
   counted elsewhere. A search takes some 10 ns an open scope. More than the bound below is time in
   which the thread did not run. */
enum { SLOW_MOST_NS = 200, TIMED_OF = 8 };
typedef struct slow_time {
  const prof_i_slot *slot; /* NULL: it is not timed */
  uint64_t since_ns, own_ns;
} slow_time;

static bool is_one_of_eight(prof_i_thread *thread) {
  thread->chance = thread->chance * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return thread->chance >> 61 == 0;
}

static slow_time slow_begins(prof_i_thread *thread) {
  if (!thread->is_slow || !is_one_of_eight(thread)) return (slow_time){NULL, 0, 0};
  const prof_i_slot *const slot = thread->slot;
  const uint64_t own_ns = __atomic_load_n(&slot->own_ns, __ATOMIC_RELAXED);
  return (slow_time){slot, prof_i_port_monotonic_ns(), own_ns};
}

static void slow_ends(prof_i_thread *thread, const slow_time *it) {
  if (!it->slot || it->slot != thread->slot) return;
  const uint64_t most_ns = (PROF_I_OPEN_COUNT + it->slot->deep) * SLOW_MOST_NS;
  const uint64_t all_ns = prof_i_ns_since(it->since_ns), ns = all_ns < most_ns ? all_ns : most_ns;
  const uint64_t counted = __atomic_load_n(&it->slot->own_ns, __ATOMIC_RELAXED) - it->own_ns;
  if (ns <= counted) return;
  prof_i_claim(&thread->slot->own_ns, (ns - counted) * TIMED_OF);
  prof_i_claim(&thread->spending.slow_ns, (ns - counted) * TIMED_OF);
}

/* A plain scope below the 64 shown: what the fast path does, with an entry of the thread's own
   memory. The epoch says the same as there. 0: there is more to do. */
static PROF_I_WARM uint64_t begin_deep(prof_i_thread *thread, const prof_site *site, const prof_details *details) {
  prof_i_slot *const slot = thread->slot;
  const uint64_t state = __atomic_load_n(&site->state, __ATOMIC_RELAXED);
  if (__atomic_load_n(&thread->epoch, __ATOMIC_RELAXED) != (uint32_t)(state >> 32) || !slot || slot->depth != PROF_I_OPEN_COUNT) return 0;
  if (thread->is_slow || !thread->deep || slot->deep >= PROF_I_DEEP_COUNT ||
      __atomic_load_n(&thread->has_gaps, __ATOMIC_RELAXED))
    return 0;
  if (!prof_i_entry_is_plain(details) || is_last_deep_gone(thread)) return 0;
  prof_i_open *const open = deep_entry(thread);
  const uint64_t number = (uint32_t)state, by_call = prof_i_entry_by_call(details);
  __atomic_store_n(&open->what, number << PROF_I_WHAT_SITE_SHIFT | by_call, __ATOMIC_RELAXED);
  const uint64_t start = prof_i_entry_begins(thread, prof_i_counter()) << 4;
  set_start(slot, open, start);
  return start;
}

/* Takes a slow thread's entry at that place, if it is gone. */
static prof_i_open *take_gone(prof_i_thread *thread, uint64_t at) {
  prof_i_slot *const slot = thread->slot;
  if (at <= PROF_I_OPEN_COUNT) {
    if (at == 0 || !prof_i_entry_empty_if_gone(&slot->open[at])) return NULL;
    if (at == prof_i_hint_load(&thread->shown_gap)) prof_i_hint_store(&thread->shown_gap, at + 1);
    return &slot->open[at];
  }
  const uint64_t i = at - PROF_I_OPEN_COUNT - 1;
  if (i >= slot->deep || !prof_i_entry_empty_if_gone(&thread->deep[i])) return NULL;
  prof_i_entry_one_gone_less(slot);
  if (i == prof_i_hint_load(&thread->deep_gap)) prof_i_hint_store(&thread->deep_gap, i + 1);
  return &thread->deep[i];
}

/* One that is known: of the last block, or where the hints say. */
static prof_i_open *take_known_gone(prof_i_thread *thread) {
  if (thread->slot->depth != PROF_I_OPEN_COUNT) return NULL;
  prof_i_open *open = take_gone(thread, thread->newest_block.place);
  if (!open) open = take_gone(thread, prof_i_hint_load(&thread->shown_gap));
  if (!open) open = take_gone(thread, prof_i_hint_load(&thread->deep_gap) + PROF_I_OPEN_COUNT + 1);
  return open;
}

/* A plain block of a slow thread: tasks stand open beside it. The epoch says the same as on the
   fast path. 0: there is more to do. */
static PROF_I_WARM uint64_t begin_beside(prof_i_thread *thread, const prof_site *site,
                             const prof_details *details) {
  const uint64_t state = __atomic_load_n(&site->state, __ATOMIC_RELAXED);
  if (!thread->is_slow ||
      __atomic_load_n(&thread->epoch, __ATOMIC_RELAXED) != (uint32_t)(state >> 32))
    return 0;
  if (details->flags & PROF_I_BY_CALL || !prof_i_entry_is_plain(details)) return 0;
  if (thread->newest.begun_count % BESIDE_TURNS == 0) return 0; /* is it still slow? */
  prof_i_slot *const slot = thread->slot;
  prof_i_open *const open = take_known_gone(thread);
  if (!open) return 0;
  const uint64_t count = prof_i_claim(&thread->newest.begun_count, 1) + 1;
  const uint64_t block_count = prof_i_claim(&thread->newest_block.begun_count, 1) + 1;
  __atomic_store_n(&open->what, (uint64_t)(uint32_t)state << PROF_I_WHAT_SITE_SHIFT,
                   __ATOMIC_RELAXED);
  const uint64_t start = prof_i_entry_begins(thread, prof_i_counter()) << 4;
  set_start(slot, open, start);
  const uint64_t place = prof_i_place_of(thread, open);
  prof_i_newest_set(&thread->newest, count, start, place);
  prof_i_newest_set(&thread->newest_block, block_count, start, place);
  return start;
}

uint64_t prof_i_scope_begin_slow(prof_site *site, const prof_details *details) {
  const bool has_window = prof_i_this_thread->timing.left != 0;
  if (has_window) prof_i_in_place_begin(prof_i_this_thread, site, details);
  uint64_t begun = begin_deep(prof_i_this_thread, site, details);
  if (!begun) begun = begin_beside(prof_i_this_thread, site, details);
  if (begun) return begun;
  if (is_left_out(prof_i_this_thread, __atomic_load_n(&site->state, __ATOMIC_RELAXED))) return 0;
  const int saved = errno;
  if (!prof_i_control_is_own_process()) return 0;
  prof_i_control_ensure(); /* a forked child makes its own capture here */
  const bool is_inside = prof_i_gate_enter(), is_recording = prof_i_control_is_recording();
  if (!is_inside || !is_recording) {
    /* It saw the level on, but the stop was faster. */
    const bool goes_on = has_window && prof_i_in_place_give_up(prof_i_this_thread);
    if (!goes_on && is_inside)
      prof_i_thread_lose(prof_i_this_thread, PROF_LOSS_LATE, 1);
    else if (!goes_on)
      prof_i_thread_lose_unplaced(is_recording ? PROF_LOSS_CLEARED : PROF_LOSS_LATE, 1);
    if (is_inside) prof_i_gate_leave();
    errno = saved;
    return goes_on ? prof_i_begin_details_1(site, details) : 0;
  }
  const slow_time timed = slow_begins(prof_i_this_thread);
  const uint64_t start = begin_unusual(site, details);
  slow_ends(prof_i_this_thread, &timed);
  prof_i_gate_leave();
  errno = saved;
  return start;
}

uint64_t prof_i_scope_begin_slow_named(prof_site *site, const prof_details *details,
                                       uint64_t name_state) {
  return is_left_out(prof_i_this_thread, name_state) ? 0 : prof_i_scope_begin_slow(site, details);
}

/* As a begin does it: a call with a description of the scope, in a call. */
static __attribute__((noinline)) uint64_t left_out_inside(prof_i_thread *thread, const prof_site *site, const prof_details *details) {
  return is_left_out(thread, __atomic_load_n(&site->state, __ATOMIC_RELAXED)) ? 0 : details->stream;
}
static __attribute__((noinline)) uint64_t left_out_called(prof_i_thread *thread, const prof_site *site) {
  const prof_details details = {.name = "", .category = "", .name_bytes = PROF_NUL_TERMINATED, .category_bytes = PROF_NUL_TERMINATED};
  __asm__ __volatile__("" : : "r"(&details) : "memory"); /* it is written, as there */
  return left_out_inside(thread, site, &details);
}

void prof_i_scope_run_left_out(prof_i_thread *thread, prof_site *site, int count) {
  for (int i = 0; i < count; i++) left_out_called(thread, site);
}

/* ---- end ---- */

/* Of another thread, too: what it writes meanwhile is not used, for its entry has changed by then. */
static PROF_I_RACES_BY_DESIGN void copy_words(uint64_t *to, const uint64_t *from, uint64_t words) {
  for (uint64_t i = 0; i < words; i++) to[i] = __atomic_load_n(from + i, __ATOMIC_RELAXED);
}

/* The payload into the own slot's text area, behind what stands there, with a word to spare: stacks may be a handler's, and small. */
static void copy_payload(prof_i_slot *own_slot, const prof_i_slot *from, prof_i_found *f) {
  const uint64_t words = f->what >> PROF_I_WHAT_WORDS_SHIFT, offset = prof_i_entry_text(f->what);
  f->payload = NULL;
  if (!(f->what & PROF_I_TYPE_LONG)) return;
  const uint64_t top = f->scratch ? f->scratch : own_slot->text_top;
  if (offset + words * 8 > PROF_I_TEXT_END || top + (words + 1) * 8 > PROF_I_TEXT_END) {
    f->flags |= PROF_I_FLAG_NO_DETAILS;
    return;
  }
  f->scratch = top;
  f->payload = (uint64_t *)((char *)own_slot + top);
  __atomic_store_n(&own_slot->text_top, top + (words + 1) * 8, __ATOMIC_RELAXED);
  PROF_I_SIGNAL_FENCE();
  copy_words(f->payload, (const uint64_t *)((const char *)from + offset), words);
}

/* The scope began on another thread. */
static bool find_elsewhere(prof_i_thread *thread, prof_i_found *f, prof_i_place *at) {
  for (prof_i_place p; (p = prof_i_find_place(thread, f->start)).open;) {
    do { /* again, if its text was moved meanwhile */
      f->flags = PROF_I_FLAG_OTHER_THREAD;
      f->what = __atomic_load_n(&p.open->what, __ATOMIC_ACQUIRE);
      copy_payload(thread->slot, p.slot, f);
      __atomic_thread_fence(__ATOMIC_ACQUIRE);
    } while (__atomic_load_n(&p.open->what, __ATOMIC_RELAXED) != f->what);
    f->is_old = p.ticks & PROF_I_OPEN_OLD;
    if (!prof_i_take_out(&p)) continue;
    f->is_deep = prof_i_is_deep_here(&p);
    *at = p;
    return true;
  }
  return false;
}

/* What the ledger says of it: see prof_i_ending. */
static uint64_t noted_as(const prof_i_found *f) {
  const uint64_t is_elsewhere = f->flags & PROF_I_FLAG_OTHER_THREAD ? PROF_I_ENDING_ELSEWHERE : 0;
  return f->start | is_elsewhere | (f->is_deep ? PROF_I_ENDING_DEEP : 0);
}

/* Its entry goes now, and then the note. */
static prof_i_ledger_note lose_found(prof_i_slot *slot, const prof_i_found *f, int loss) {
  return prof_i_ledger_lose(slot, loss, noted_as(f));
}

/* The slot may be gone at any moment, or there is none. */
static void lose_unplaced(const prof_i_found *f, int loss) {
  if (f->is_deep) prof_i_arena_count_deep_over();
  prof_i_thread_lose_unplaced(loss, 1);
}

static int write_noted(prof_i_thread *thread, prof_i_slot *slot, const prof_i_found *f, uint64_t word1,
                       const uint64_t *more, uint64_t words) {
  const prof_i_ledger_note note = prof_i_ledger_begin(slot, noted_as(f), (2 + words + 1) / 2);
  const int loss = prof_i_record_write(thread, f->start, f->start, word1, more, words);
  prof_i_ledger_end(slot, &note, loss < 0 && f->is_deep);
  return loss;
}

/* Writes what was found, as a plain record if it can be one. The loss, or -1. */
static int write_found(prof_i_thread *thread, prof_i_slot *slot, prof_i_found *f) {
  /* Negative where the counter went back, or another processor's is behind: the reader knows what to do. Long, then, as one that is long. */
  const uint64_t duration = (uint64_t)((int64_t)((f->end << 4) - f->start) >> 4);
  const bool is_long = duration >> PROF_I_DURATION_BITS;
  const uint64_t site = f->what >> PROF_I_WHAT_SITE_SHIFT & PROF_I_SITE_COUNT_MAX;
  if (!(f->flags & PROF_I_FLAG_OTHER_THREAD)) copy_payload(slot, slot, f);
  if (!f->payload && !is_long && !f->flags && !f->is_skipped)
    return write_noted(thread, slot, f,
                       duration << PROF_I_DURATION_SHIFT | site << PROF_I_WHAT_SITE_SHIFT, NULL, 0);
  uint64_t bare[2] = {(uint64_t)PROF_I_KIND_SCOPE << 16, 0};
  uint64_t *const payload = f->payload ? f->payload : bare;
  uint64_t words = f->payload ? f->what >> PROF_I_WHAT_WORDS_SHIFT : 1;
  payload[0] |= (uint64_t)f->flags << 24;
  if (f->is_skipped) payload[0] = (payload[0] & ~(UINT64_C(0xff) << 16)) | (uint64_t)PROF_I_KIND_SKIPPED << 16;
  if (is_long) { /* the duration goes behind device and stream */
    const uint64_t before = 1 + (payload[0] >> 24 & 1) + (payload[0] >> 25 & 1);
    memmove(payload + before + 1, payload + before, (words - before) * 8);
    payload[before] = duration;
    payload[0] |= (uint64_t)PROF_I_FLAG_LONG << 24;
    words++;
  }
  payload[0] = (payload[0] & ~0xffffull) | (2 + words + 1) / 2;
  const uint64_t word1 = (is_long ? 0 : duration << PROF_I_DURATION_SHIFT) | site << PROF_I_WHAT_SITE_SHIFT | PROF_I_TYPE_LONG;
  return write_noted(thread, slot, f, word1, payload, words);
}

/* What prof_i_find_own() found goes, once its record stands or its loss is certain. The depth comes last: at depth 0 a handler would take
   the text area from its start. Text goes with the newest scope; what others leave are holes. */
static void close_own(prof_i_thread *thread, const prof_i_found *f) {
  prof_i_slot *const slot = thread->slot;
  const bool is_last = prof_i_is_last_entry(thread, f) && !thread->is_held;
  const bool has_text = f->what & PROF_I_TYPE_LONG;
  const bool is_newest = is_last || !has_text || prof_i_is_newest_of(thread, f);
  if (is_last) prof_i_entry_set(prof_i_entry_of(thread, f), 0);
  else prof_i_leave_gone(thread, f);
  if (is_newest && has_text) slot->text_top = prof_i_entry_text(f->what);
  if (!is_newest) prof_i_texts_leave_hole(thread, f->what);
  PROF_I_SIGNAL_FENCE();
  if (is_last) one_less(f->is_deep ? &slot->deep : &slot->depth, f->index);
  if (is_last && f->is_deep && slot->deep == 0) prof_i_thread_come_up(thread);
  if (!is_newest || f->has_skipped) prof_i_texts_give_back(thread);
  trim(thread);
}

/* It was a block: what stands above it was begun by call. */
static void pack(prof_i_thread *thread, const prof_i_found *f) {
  if (f->what & PROF_I_OPEN_BY_CALL || thread->is_slow || thread->is_held) return;
  const prof_i_slot *const slot = thread->slot;
  if (slot->deep < (f->is_deep ? f->index : 1) && (f->is_deep || slot->depth < f->index)) return;
  prof_i_pack_above(thread, f->index + (f->is_deep ? PROF_I_OPEN_COUNT : 0));
  trim(thread);
}

static bool is_of_the_parent(uint64_t start) {
  const uint64_t forked = prof_i_control_forked_at();
  return forked && prof_i_clock_is_before(start >> 4, forked);
}

static bool is_of_older_session(const prof_i_header *header, const prof_i_found *f) {
  const uint64_t since = __atomic_load_n(&header->session_ticks, __ATOMIC_RELAXED);
  return f->is_old || (prof_i_clock_is_before(f->start >> 4, since) && !prof_i_clock_went_back(since));
}

typedef enum skip_how {
  SKIP_RECORDED, /* past the gate, and recording */
  SKIP_LOST,
  SKIP_UNPLACED /* the slot may be gone at any moment */
} skip_how;

/* A jump left this block, and an older one ends: it is recorded as skipped, or lost. */
static void skip(prof_i_thread *thread, prof_i_found *f, skip_how how) {
  prof_i_slot *const slot = thread->slot;
  prof_i_ledger_note note = {PROF_I_ENDING_COUNT, {0, 0}};
  f->is_skipped = true;
  const bool is_recorded = how == SKIP_RECORDED && !is_of_older_session(prof_i_arena_header(), f) &&
                           write_found(thread, slot, f) < 0;
  if (f->scratch) slot->text_top = f->scratch;
  if (!is_recorded && how == SKIP_UNPLACED) lose_unplaced(f, PROF_LOSS_SKIPPED);
  if (!is_recorded && how != SKIP_UNPLACED) note = lose_found(slot, f, PROF_LOSS_SKIPPED);
  prof_i_texts_leave_hole(thread, f->what);
  prof_i_leave_gone(thread, f);
  if (!is_recorded && how != SKIP_UNPLACED) prof_i_ledger_settle(slot, &note);
}

/* A block that began after f and has not ended yet ends with it. */
static void skip_if_later(prof_i_thread *thread, uint64_t at, prof_i_found *f, skip_how how) {
  const bool is_deep = at > PROF_I_OPEN_COUNT;
  const uint64_t index = is_deep ? at - PROF_I_OPEN_COUNT : at;
  const prof_i_open *const open = is_deep ? &thread->deep[index - 1] : &thread->slot->open[index];
  const uint64_t ticks = prof_i_entry_ticks(open), what = open->what;
  if (what & PROF_I_OPEN_BY_CALL || ticks & PROF_I_OPEN_TAKEN || !prof_i_is_later(thread, ticks, at, f))
    return;
  prof_i_found g = {.start = ticks & ~(uint64_t)PROF_I_OPEN_OLD,
             .end = f->end,
             .what = what,
             .is_deep = is_deep,
             .index = index,
             .is_old = ticks & PROF_I_OPEN_OLD};
  f->has_skipped = true;
  skip(thread, &g, how);
}

/* A block has ended: blocks that began after it, and have not, were left by longjmp() or the like.
   They end with it. */
static void skip_later(prof_i_thread *thread, prof_i_found *f, skip_how how) {
  const prof_i_slot *const slot = thread->slot;
  if (f->what & PROF_I_OPEN_BY_CALL || prof_i_is_last_entry(thread, f)) return;
  if (prof_i_is_known_newest(thread, &thread->newest_block, f)) return;
  /* Those below are no later: see prof_i_is_later(). */
  const uint64_t deep_below = !thread->is_slow && f->is_deep ? f->index : 0;
  const uint64_t below = thread->is_slow ? 0 : f->is_deep ? PROF_I_OPEN_COUNT : f->index;
  for (uint64_t i = slot->deep; i > deep_below; i--)
    skip_if_later(thread, PROF_I_OPEN_COUNT + i, f, how);
  for (uint64_t i = slot->depth - PROF_I_FAULT(SKIPPED_STAYS); i > below; i--)
    skip_if_later(thread, i, f, how);
  trim(thread);
}

/* An end whose scope has no entry any more. Its loss, or -1: it is a stray, of a scope that has ended and been counted, or that never began.
   A capture's entries go when another one replaces it. */
static int loss_without_entry(prof_i_thread *thread, uint64_t start) {
  if (is_of_the_parent(start)) return PROF_LOSS_FORKED;
  const uint64_t since = prof_i_control_since();
  if (!since) return -1;
  if (prof_i_clock_is_before(start >> 4, since) && !prof_i_clock_is_before(start >> 4, prof_i_control_first_at())) return PROF_LOSS_LATE;
  return thread && prof_i_thread_left_behind(thread, start) ? PROF_LOSS_LATE : -1;
}

enum { STRAY = -2 };

/* There is no room for this thread: the scope must not stand open on its own thread for ever. */
static int end_without_thread(uint64_t start) {
  prof_i_place at;
  if (prof_i_take_out_elsewhere(NULL, start, &at)) {
    if (prof_i_is_deep_here(&at)) prof_i_arena_count_deep_over();
    prof_i_leave_taken(&at);
    return PROF_LOSS_NO_THREAD;
  }
  const int loss = loss_without_entry(NULL, start);
  return loss < 0 ? STRAY : loss;
}

/* Past the gate. The loss of a scope that has no entry, STRAY, or -1: it has been counted. */
static int end_unusual(uint64_t start, uint64_t ticks) {
  if (!prof_i_the_arena.base) return is_of_the_parent(start) ? PROF_LOSS_FORKED : STRAY;
  prof_i_thread *const thread = prof_i_thread_attach();
  if (!thread) return end_without_thread(start);
  const prof_i_header *const header = prof_i_arena_header();
  const bool is_recording = prof_i_control_is_recording();
  prof_i_slot *const slot = thread->slot;
  prof_i_found f = {.start = start, .end = ticks ? ticks : prof_i_entry_ends(thread, prof_i_clock_ticks())};
  prof_i_place elsewhere = {0};
  prof_i_ledger_note note = {PROF_I_ENDING_COUNT, {0, 0}};
  const bool was_busy = thread->is_text_busy;
  thread->is_text_busy = true;
  PROF_I_SIGNAL_FENCE();
  prof_i_pack_finish(thread);
  const bool mine = prof_i_find_own(thread, &f);
  if (mine) skip_later(thread, &f, is_recording ? SKIP_RECORDED : SKIP_LOST);
  const prof_i_hold hold = mine ? PROF_I_HOLD_NONE : prof_i_thread_hold(thread);
  const bool is_found = mine || find_elsewhere(thread, &f, &elsewhere);
  int loss = PROF_LOSS_LATE;
  if (!is_found) {
    if ((loss = loss_without_entry(thread, start)) < 0) loss = STRAY;
  } else if (is_recording && !is_of_older_session(header, &f)) {
    loss = write_found(thread, slot, &f);
  }
  const bool is_lost = is_found && loss >= 0;
  if (is_lost) note = lose_found(slot, &f, loss);
  if (is_found && !mine) prof_i_leave_taken(&elsewhere);
  if (f.scratch) slot->text_top = f.scratch;
  thread->is_text_busy = was_busy;
  if (mine) close_own(thread, &f);
  if (is_lost) prof_i_ledger_settle(slot, &note);
  if (mine) {
    pack(thread, &f);
  } else {
    prof_i_thread_let_go(thread, hold);
    trim(thread);
  }
  return is_found ? -1 : loss;
}

/* The gate is closed: somebody starts another capture, whose entries may be gone at any moment, or
   clears. Then the slot stands. */
static void end_outside(uint64_t start) {
  prof_i_thread *const thread = prof_i_this_thread;
  const bool is_recording = prof_i_control_is_recording();
  const bool is_placed = is_recording && prof_i_is_attached(thread) && thread->arena == prof_i_the_arena.number;
  prof_i_slot *const slot = thread->slot;
  const int found_loss = is_recording ? PROF_LOSS_CLEARED : PROF_LOSS_LATE;
  prof_i_found f = {.start = start};
  prof_i_place elsewhere = {0};
  prof_i_ledger_note note = {PROF_I_ENDING_COUNT, {0, 0}};
  prof_i_pack_finish(thread);
  const bool mine = prof_i_find_own(thread, &f);
  if (mine) skip_later(thread, &f, is_placed ? SKIP_LOST : SKIP_UNPLACED);
  else prof_i_thread_look();
  /* It must not stand open on its own thread for ever. */
  const bool is_found = mine || prof_i_take_out_elsewhere(thread, start, &elsewhere);
  if (is_found && !mine) {
    f.flags = PROF_I_FLAG_OTHER_THREAD;
    f.is_deep = prof_i_is_deep_here(&elsewhere);
  }
  if (is_found && is_placed) note = lose_found(slot, &f, found_loss);
  else if (is_found) lose_unplaced(&f, found_loss);
  if (mine) close_own(thread, &f);
  else if (is_found) prof_i_leave_taken(&elsewhere);
  if (is_found && is_placed) prof_i_ledger_settle(slot, &note);
  if (!mine) prof_i_thread_look_away();
  const int loss = is_found ? -1 : is_recording ? loss_without_entry(NULL, start) : PROF_LOSS_LATE;
  if (loss >= 0) prof_i_thread_lose_unplaced(loss, 1);
}

/* Writes a plain scope's record as the fast path does. False: there is more to do. */
static inline bool write_plain(prof_i_thread *thread, const prof_i_open *open, uint64_t start) {
  const uint64_t what = open->what;
  if (prof_i_entry_ticks(open) != start || what & PROF_I_TYPE_LONG) return false;
  const uint64_t duration4 = (prof_i_entry_ends(thread, prof_i_counter()) << 4) - start;
  if (duration4 >> (PROF_I_DURATION_BITS + 4)) return false;
  prof_i_head *const chunk = __atomic_load_n(&thread->chunk, __ATOMIC_RELAXED);
  const uint64_t at = prof_i_claim(&chunk->cursor, 16);
  if (at >= chunk->limit && !prof_i_in_place_fits(chunk, at, 16)) return false;
  uint64_t *const record = (uint64_t *)((char *)chunk + at);
  __atomic_store_n(&record[1],
                   duration4 << (PROF_I_DURATION_SHIFT - 4) | prof_i_entry_record_word(what),
                   __ATOMIC_RELAXED);
  /* Pairs with the reader's acquire. */
  __atomic_store_n(&record[0], start | chunk->generation, __ATOMIC_RELEASE);
  PROF_I_SIGNAL_FENCE();
  return true;
}

static inline bool write_plain_deep(prof_i_thread *thread, prof_i_slot *slot, const prof_i_open *open,
                             uint64_t start) {
  if (prof_i_entry_ticks(open) != start) return false;
  const prof_i_ledger_note note = prof_i_ledger_begin(slot, start | PROF_I_ENDING_DEEP, 1);
  const bool is_written = write_plain(thread, open, start);
  prof_i_ledger_end(slot, &note, is_written);
  if (is_written && thread->slot != slot) /* a handler has brought it to another arena */
    prof_i_claim(&thread->slot->ledger, PROF_I_LEDGER_ONE_DEEP);
  return is_written;
}

/* The last scope below the 64 shown. False: there is more to do. */
static PROF_I_WARM bool end_deep(prof_i_thread *thread, uint64_t start) {
  prof_i_slot *const slot = thread->slot;
  const uint64_t deep = slot ? slot->deep : 0;
  if (deep == 0 || thread->is_slow || thread->is_held || !prof_i_clock_is_counter()) return false;
  prof_i_open *const open = &thread->deep[deep - 1];
  if (!write_plain_deep(thread, slot, open, start)) return false;
  prof_i_entry_set(open, 0);
  one_less(&slot->deep, deep);
  if (deep == 1) prof_i_thread_come_up(thread);
  if (prof_i_entry_ticks(deep > 1 ? open - 1 : &slot->open[PROF_I_OPEN_COUNT]) == PROF_I_OPEN_GONE) trim(thread);
  return true;
}

/* The scope of a slow thread that began last. False: there is more to do. The last of the 64 entries
   is freed at once: if we are a handler, the interrupted begin may have seen that it is free. */
static PROF_I_WARM bool end_beside(prof_i_thread *thread, uint64_t start) {
  prof_i_found f = {.start = start};
  if (!prof_i_is_known_newest(thread, &thread->newest, &f) || thread->is_held) return false;
  if (!prof_i_clock_is_counter() || prof_i_thread_has_ended()) return false;
  const uint64_t at = thread->newest.place;
  if (!prof_i_is_place(thread, at) || !prof_i_find_own_at(thread, at, &f) || f.is_old) return false;
  const prof_i_open *const open = prof_i_entry_of(thread, &f);
  if (!(f.is_deep ? write_plain_deep(thread, thread->slot, open, start)
                  : write_plain(thread, open, start)))
    return false;
  prof_i_leave_gone(thread, &f);
  if (!f.is_deep && f.index == thread->slot->depth) trim(thread);
  return true;
}

void prof_i_scope_end_slow(uint64_t start, uint64_t ticks) {
  if (start && !ticks && end_deep(prof_i_this_thread, start)) return;
  if (start && !ticks && end_beside(prof_i_this_thread, start)) return;
  if (!start || !prof_i_control_is_own_process()) return;
  const int saved = errno;
  const bool has_window = !ticks && prof_i_this_thread->timing.left;
  if (has_window) { /* before the recorder's own lines come into the caches */
    ticks = prof_i_entry_ends(prof_i_this_thread, prof_i_counter());
    prof_i_in_place_end(prof_i_this_thread);
  }
  if (!prof_i_gate_enter()) {
    if (has_window && prof_i_in_place_give_up(prof_i_this_thread)) {
      prof_i_end_1(start);
      return;
    }
    end_outside(start);
  } else {
    const slow_time timed = slow_begins(prof_i_this_thread);
    const int loss = end_unusual(start, ticks);
    slow_ends(prof_i_this_thread, &timed);
    if (loss >= 0) prof_i_thread_lose(prof_i_this_thread, loss, 1);
    if (loss == STRAY) prof_i_thread_count_stray(prof_i_this_thread);
    prof_i_gate_leave();
    if (prof_i_thread_has_ended()) prof_i_thread_end_again();
  }
  errno = saved;
}

bool prof_i_scope_stands_open(uint64_t start) {
  const prof_i_thread *const thread = prof_i_this_thread;
  const prof_i_slot *const slot = thread->slot; /* of an arena that was retired, zeros */
  if (!start || !slot || thread->session != prof_i_arena_session()) return false;
  for (uint64_t i = slot->deep; i > 0; i--)
    if (thread->deep[i - 1].ticks == start) return true;
  for (uint64_t i = slot->depth; i > 0; i--)
    if (prof_i_entry_ticks(&slot->open[i]) == start) return true;
  return false;
}
