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
#include "name.h"
#include "record.h"
#include "scope.h"
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

/* Scopes below the 64 shown: their site is remembered in memory of the thread's own. NULL: deeper than that, or no memory. */
static prof_i_open *deep_entry(prof_i_thread *thread) {
  prof_i_slot *const slot = thread->slot;
  if (!thread->deep) {
    void *const memory = mmap(NULL, PROF_I_DEEP_COUNT * sizeof *thread->deep, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return NULL;
    thread->deep = memory;
  }
  /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): a thread that is attached has a slot */
  if (slot->deep >= PROF_I_DEEP_COUNT) return NULL;
  prof_i_claim(&slot->deep_count, 1);
  return &thread->deep[prof_i_claim(&slot->deep, 1)];
}

/* By one instruction: a handler may be at the same. An empty entry is nobody's to take off but his who emptied it. */
static bool empty_if_gone(prof_i_open *open) {
  uint64_t ticks = PROF_I_OPEN_GONE;
  return prof_i_entry_ticks(open) == ticks &&
         __atomic_compare_exchange_n(&open->ticks, &ticks, 0, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

/* With the gate closed the whole slot may become zeros at any moment, when its arena goes: then not less than that. */
static void one_less(uint64_t *count, uint64_t from) {
  __atomic_compare_exchange_n(count, &from, from - 1, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

/* An entry below the topmost whose scope is over: of scopes that do not nest, the entries pile up. */
static prof_i_open *entry_between(prof_i_thread *thread) {
  for (uint64_t i = 1; i <= PROF_I_OPEN_COUNT; i++)
    if (empty_if_gone(&thread->slot->open[i])) return &thread->slot->open[i];
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
  for (uint64_t deep; (deep = slot->deep) > 0 && empty_if_gone(&thread->deep[deep - 1]);) one_less(&slot->deep, deep);
  for (uint64_t depth; (depth = slot->depth) > 0 && empty_if_gone(&slot->open[depth]);) one_less(&slot->depth, depth);
  if (slot->depth == 0 && slot->deep == 0) slot->text_top = PROF_I_TEXT_OFFSET;
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

static uint64_t begin_unusual(prof_site *site, const prof_details *details) {
  prof_i_thread *const thread = prof_i_thread_attach();
  if (!thread) {
    prof_i_thread_lose(&prof_i_no_thread, PROF_LOSS_NO_THREAD, 1);
    return 0;
  }
  prof_i_slot *const slot = thread->slot;
  if (thread->is_slow && is_in_order(thread)) prof_i_thread_be_slow(thread, false);
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
  if (slot->depth == PROF_I_OPEN_COUNT) trim(thread); /* of scopes that are handed to other threads, the entries pile up */
  if (slot->depth < PROF_I_OPEN_COUNT) {
    open = prof_i_entry_take(slot);
    if (open == &slot->open[1] && slot->deep == 0) slot->text_top = PROF_I_TEXT_OFFSET;
  } else if ((open = entry_between(thread)) != NULL) {
    prof_i_thread_be_slow(thread, true); /* the topmost may end before it: then the fast path would take its text for free */
  } else if ((open = deep_entry(thread)) != NULL) {
    if (details->flags & PROF_I_BY_CALL || slot->open[PROF_I_OPEN_COUNT].what & PROF_I_OPEN_BY_CALL) prof_i_thread_be_slow(thread, true);
  } else {
    prof_i_thread_lose(thread, PROF_LOSS_LOST_STATE, 1);
    return 0;
  }
  __atomic_store_n(&open->what,
                   prof_i_entry_is_plain(details)
                       ? (uint64_t)shown << PROF_I_WHAT_SITE_SHIFT | prof_i_entry_by_call(details)
                       : prof_i_texts_put(thread, slot, open, details, number, shown),
                   __ATOMIC_RELAXED);
  const uint64_t start = prof_i_entry_begins(thread, prof_i_clock_ticks()) << 4;
  prof_i_entry_set(open, start);
  return start;
}

uint64_t prof_i_scope_begin_slow(prof_site *site, const prof_details *details) {
  if (is_left_out(prof_i_this_thread, __atomic_load_n(&site->state, __ATOMIC_RELAXED))) return 0;
  const int saved = errno;
  uint64_t start = 0;
  if (!prof_i_control_is_own_process()) return 0;
  prof_i_control_ensure(); /* a forked child makes its own capture here */
  if (!prof_i_gate_enter()) {
    prof_i_thread_lose_unplaced(prof_i_control_is_recording() ? PROF_LOSS_CLEARED : PROF_LOSS_LATE);
  } else {
    if (prof_i_control_is_recording())
      start = begin_unusual(site, details);
    else
      prof_i_thread_lose(prof_i_this_thread, PROF_LOSS_LATE, 1); /* it saw the level on, but the stop was faster */
    prof_i_gate_leave();
  }
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

/* What the end needs of a scope, wherever its entry was. */
typedef struct found {
  uint64_t start, end; /* ticks << 4; ticks */
  uint64_t what;
  uint32_t flags;    /* PROF_I_FLAG_OTHER_THREAD, PROF_I_FLAG_NO_DETAILS */
  uint64_t *payload; /* own copy, in the own slot's text area; NULL: none */
  uint64_t scratch;  /* text_top before the copy was put there, or 0 */
  bool is_deep;      /* it had no entry in the slot */
  bool is_old;       /* its entry said that it began in an older session */
  uint64_t index;    /* of its entry, or in thread->deep */
} found;

/* Did what stands open there begin after f? The place tells, whatever the counter of another processor said; but for a thread whose gaps were
   taken (entry_between()) it is the ticks that do. place: of the deep ones, behind the 64. */
static bool is_later(const prof_i_thread *thread, uint64_t ticks, uint64_t place, const found *f) {
  if (!prof_i_open_stands(ticks)) return false;
  if (!thread->is_slow) return place > f->index + (f->is_deep ? PROF_I_OPEN_COUNT : 0);
  return prof_i_clock_is_before(f->start >> 4, ticks >> 4);
}

/* A block has ended: blocks that began after it, and have not, were skipped by longjmp or pthread_exit. */
static void give_up_later(prof_i_thread *thread, const found *f) {
  prof_i_slot *const slot = thread->slot;
  for (uint64_t i = slot->depth - PROF_I_FAULT(SKIPPED_STAYS); i > 0; i--) {
    prof_i_open *const open = &slot->open[i];
    if (!is_later(thread, prof_i_entry_ticks(open), i, f) || open->what & PROF_I_OPEN_BY_CALL) continue;
    prof_i_entry_set(open, PROF_I_OPEN_GONE);
  }
  for (uint64_t i = slot->deep; i > 0; i--) {
    prof_i_open *const open = &thread->deep[i - 1];
    if (is_later(thread, open->ticks, i + PROF_I_OPEN_COUNT, f) && !(open->what & PROF_I_OPEN_BY_CALL)) open->ticks = PROF_I_OPEN_GONE;
  }
}

/* Own entries from the top down. */
static bool find_own(prof_i_thread *thread, found *f) {
  prof_i_slot *const slot = thread->slot;
  for (uint64_t i = slot->deep; i > 0 && !f->index; i--) {
    if (thread->deep[i - 1].ticks != f->start) continue;
    f->what = thread->deep[i - 1].what;
    f->is_deep = true;
    f->index = i;
  }
  for (uint64_t i = slot->depth; i > 0 && !f->index; i--) {
    const uint64_t ticks = prof_i_entry_ticks(&slot->open[i]);
    if ((ticks & ~(uint64_t)PROF_I_OPEN_OLD) != f->start) continue;
    f->is_old = ticks & PROF_I_OPEN_OLD;
    f->what = slot->open[i].what;
    f->index = i; /* the entry itself is cleared when its record stands */
  }
  if (!f->index) return false;
  if (!(f->what & PROF_I_OPEN_BY_CALL)) give_up_later(thread, f);
  trim(thread);
  return true;
}

/* Of another thread, too: what it writes meanwhile is not used, for its entry has changed by then. */
static PROF_I_RACES_BY_DESIGN void copy_words(uint64_t *to, const uint64_t *from, uint64_t words) {
  for (uint64_t i = 0; i < words; i++) to[i] = __atomic_load_n(from + i, __ATOMIC_RELAXED);
}

/* The payload into the own slot's text area, behind what stands there, with a word to spare: stacks may be a handler's, and small. */
static void copy_payload(prof_i_slot *own_slot, const prof_i_slot *from, found *f) {
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

/* Where on another thread a scope stands open. Past the gate, or looking: slots stay mapped. */
typedef struct place {
  const prof_i_slot *slot;
  prof_i_open *open; /* NULL: nowhere */
  uint64_t ticks;
} place;

static place find_place(const prof_i_thread *thread, uint64_t start) {
  for (prof_i_thread *t = prof_i_thread_first(); t; t = t->next) {
    prof_i_slot *const slot = t != thread ? prof_i_thread_slot(t) : NULL;
    if (!slot) continue;
    for (uint64_t i = 1; i <= PROF_I_OPEN_COUNT; i++) {
      const uint64_t ticks = __atomic_load_n(&slot->open[i].ticks, __ATOMIC_ACQUIRE);
      if ((ticks & ~(uint64_t)PROF_I_OPEN_OLD) == start) return (place){slot, &slot->open[i], ticks};
    }
  }
  return (place){NULL, NULL, 0};
}

/* Whoever swaps it has it. Its own thread may be marking it as old meanwhile. */
static bool take_out(place *p) {
  uint64_t ticks = p->ticks;
  while (!__atomic_compare_exchange_n(&p->open->ticks, &ticks, PROF_I_OPEN_GONE, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
    if (ticks != (p->ticks | PROF_I_OPEN_OLD)) return false;
  return true;
}

/* The scope began on another thread. */
static bool find_elsewhere(prof_i_thread *thread, found *f) {
  place p = find_place(thread, f->start);
  if (!p.open) return false;
  do {
    f->flags = PROF_I_FLAG_OTHER_THREAD;
    f->what = __atomic_load_n(&p.open->what, __ATOMIC_ACQUIRE);
    copy_payload(thread->slot, p.slot, f);
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
  } while (__atomic_load_n(&p.open->what, __ATOMIC_RELAXED) != f->what); /* its text was moved meanwhile */
  f->is_old = p.ticks & PROF_I_OPEN_OLD;
  return take_out(&p);
}

/* Writes what was found, as a plain record if it can be one. The loss, or -1. */
static int write_found(prof_i_thread *thread, prof_i_slot *slot, found *f) {
  /* Negative where the counter went back, or another processor's is behind: the reader knows what to do. Long, then, as one that is long. */
  const uint64_t duration = (uint64_t)((int64_t)((f->end << 4) - f->start) >> 4);
  const bool is_long = duration >> PROF_I_DURATION_BITS;
  const uint64_t site = f->what >> PROF_I_WHAT_SITE_SHIFT & PROF_I_SITE_COUNT_MAX;
  if (!(f->flags & PROF_I_FLAG_OTHER_THREAD)) copy_payload(slot, slot, f);
  if (!f->payload && !is_long && !f->flags)
    return prof_i_record_write(thread, f->start, f->start, duration << PROF_I_DURATION_SHIFT | site << PROF_I_WHAT_SITE_SHIFT,
                               NULL, 0);
  uint64_t bare[2] = {(uint64_t)PROF_I_KIND_SCOPE << 16, 0};
  uint64_t *const payload = f->payload ? f->payload : bare;
  uint64_t words = f->payload ? f->what >> PROF_I_WHAT_WORDS_SHIFT : 1;
  payload[0] |= (uint64_t)f->flags << 24;
  if (is_long) { /* the duration goes behind device and stream */
    const uint64_t before = 1 + (payload[0] >> 24 & 1) + (payload[0] >> 25 & 1);
    memmove(payload + before + 1, payload + before, (words - before) * 8);
    payload[before] = duration;
    payload[0] |= (uint64_t)PROF_I_FLAG_LONG << 24;
    words++;
  }
  payload[0] = (payload[0] & ~0xffffull) | (2 + words + 1) / 2;
  const uint64_t word1 = (is_long ? 0 : duration << PROF_I_DURATION_SHIFT) | site << PROF_I_WHAT_SITE_SHIFT | PROF_I_TYPE_LONG;
  return prof_i_record_write(thread, f->start, f->start, word1, payload, words);
}

/* Has nothing that stands open begun after it? */
static bool is_newest_of(const prof_i_thread *thread, const found *f) {
  const prof_i_slot *const slot = thread->slot;
  for (uint64_t i = 1; i <= slot->depth; i++)
    if ((f->is_deep || i != f->index) && is_later(thread, prof_i_entry_ticks(&slot->open[i]), i, f)) return false;
  return slot->deep == (f->is_deep ? f->index : 0); /* the deep ones are in order */
}

/* What find_own() found goes, once its record stands or its loss is certain. The depth comes last: at depth 0 a handler would take
   the text area from its start. Text goes with the newest scope; what others leave are holes. */
static void close_own(prof_i_thread *thread, const found *f) {
  prof_i_slot *const slot = thread->slot;
  const bool is_newest = is_newest_of(thread, f);
  if (f->is_deep)
    thread->deep[f->index - 1].ticks = PROF_I_OPEN_GONE;
  else
    prof_i_entry_set(&slot->open[f->index], PROF_I_OPEN_GONE);
  if (is_newest && f->what & PROF_I_TYPE_LONG) slot->text_top = prof_i_entry_text(f->what);
  PROF_I_SIGNAL_FENCE();
  if (!is_newest) prof_i_texts_give_back(thread);
  trim(thread);
}

static bool is_of_the_parent(uint64_t start) {
  const uint64_t forked = prof_i_control_forked_at();
  return forked && prof_i_clock_is_before(start >> 4, forked);
}

static bool is_of_older_session(const prof_i_header *header, const found *f) {
  const uint64_t since = __atomic_load_n(&header->session_ticks, __ATOMIC_RELAXED);
  return f->is_old || (prof_i_clock_is_before(f->start >> 4, since) && !prof_i_clock_went_back(since));
}

/* Past the gate. The loss, or -1 when the scope stands in the capture. */
static int end_unusual(uint64_t start, uint64_t ticks) {
  if (!prof_i_the_arena.base) return is_of_the_parent(start) ? PROF_LOSS_FORKED : PROF_LOSS_LATE;
  const prof_i_header *const header = prof_i_arena_header();
  prof_i_thread *const thread = prof_i_thread_attach();
  if (!thread) return PROF_LOSS_NO_THREAD;
  prof_i_slot *const slot = thread->slot;
  found f = {.start = start, .end = ticks ? ticks : prof_i_entry_ends(thread, prof_i_clock_ticks())};
  const bool was_busy = thread->is_text_busy;
  thread->is_text_busy = true;
  PROF_I_SIGNAL_FENCE();
  const bool mine = find_own(thread, &f);
  const prof_i_hold hold = mine ? PROF_I_HOLD_NONE : prof_i_thread_hold(thread);
  const bool is_found = mine || find_elsewhere(thread, &f);
  int loss = -1;
  if (!is_found && is_of_the_parent(start))
    loss = PROF_LOSS_FORKED;
  else if (!prof_i_control_is_recording() || is_of_older_session(header, &f))
    loss = PROF_LOSS_LATE;
  else if (!is_found)
    loss = PROF_LOSS_LOST_STATE;
  else
    loss = write_found(thread, slot, &f);
  if (f.scratch) slot->text_top = f.scratch;
  thread->is_text_busy = was_busy;
  if (mine) {
    close_own(thread, &f);
  } else {
    prof_i_thread_let_go(thread, hold);
    trim(thread);
  }
  return loss;
}

/* The gate is closed: somebody starts another capture, or clears. */
static void end_outside(uint64_t start) {
  prof_i_thread *const thread = prof_i_this_thread;
  found f = {.start = start};
  if (find_own(thread, &f)) {
    close_own(thread, &f);
  } else { /* it must not stand open on its own thread for ever */
    prof_i_thread_look();
    place p = find_place(thread, start);
    if (p.open) take_out(&p);
    prof_i_thread_look_away();
  }
  prof_i_thread_lose_unplaced(prof_i_control_is_recording() ? PROF_LOSS_CLEARED : PROF_LOSS_LATE);
}

void prof_i_scope_end_slow(uint64_t start, uint64_t ticks) {
  if (!start || !prof_i_control_is_own_process()) return;
  const int saved = errno;
  if (!prof_i_gate_enter()) {
    end_outside(start);
  } else {
    const int loss = end_unusual(start, ticks);
    if (loss >= 0) prof_i_thread_lose(prof_i_this_thread, loss, 1);
    prof_i_gate_leave();
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
