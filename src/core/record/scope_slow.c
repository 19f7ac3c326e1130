/* Begins that the fast path cannot do: a thread's first, in another session, clock or arena, with
   more than 64 open, beside tasks, left out. Once in some thousand scopes. Ends are
   scope_end_slow.c's. See scope.c for the order of stores. */
#define _GNU_SOURCE
#include <errno.h>
#include <prof/profiler.h>
#include <string.h>
#include <sys/mman.h>

#include "../../base/fault.h"
#include "../../base/port.h"
#include "../../base/process.h"
#include "../buffer/arena.h"
#include "../buffer/clock.h"
#include "../buffer/ledger.h"
#include "../buffer/record.h"
#include "../buffer/session.h"
#include "compact.h"
#include "cost_sample.h"
#include "name.h"
#include "open_stack.h"
#include "scope.h"
#include "scope_find.h"
#include "site.h"

static uint32_t site_number_of(prof_site *site, const prof_details *details) {
  return prof_i_site_look_up(site, details->flags & PROF_I_NAME_LITERAL ? details->name : NULL,
                             details->flags & PROF_I_CATEGORY_LITERAL ? details->category : NULL);
}

/* The usual case once the arena is full, or the site is muted: only counts in the own slot. The
   slot is valid as long as the thread's epoch. */
static bool count_left_out(prof_i_thread *thread, uint64_t state) {
  const uint64_t epoch = __atomic_load_n(&thread->epoch, __ATOMIC_RELAXED);
  int loss = PROF_LOSS_MUTED;
  if (epoch == PROF_I_EPOCH_FULL) {
    loss = prof_i_arena_full_loss();
    if (loss < 0) return false; /* cleared since */
    if (state >> 32 == (prof_i_session_epoch() | PROF_I_EPOCH_MUTED)) loss = PROF_LOSS_MUTED;
  } else if (state >> 32 != (epoch | PROF_I_EPOCH_MUTED) || epoch & PROF_I_EPOCH_MUTED) {
    return false;
  }
  prof_i_count_up(&thread->slot->lost[loss]);
  return true;
}

/* Tasks end in any order, so gone entries pile up, and each end searches all entries. Once half of
   them are gone, they are used again. NULL: there are few. */
static prof_i_open_entry *deep_entry_between(prof_i_thread *thread) {
  enum { GONE_MIN = 64 };
  prof_i_thread_slot *const slot = thread->slot;
  const uint64_t gone = __atomic_load_n(&slot->deep_gone, __ATOMIC_RELAXED);
  /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): a thread that is attached has a slot */
  if (gone < GONE_MIN || gone < slot->deep / 2) return NULL;
  const uint64_t first = prof_i_hint_load(&thread->deep_gap);
  for (uint64_t n = 0, i = first; n < slot->deep; n++, i++) {
    if (i >= slot->deep) i = 0;
    if (!prof_i_open_entry_clear_gone(&thread->deep[i])) continue;
    prof_i_slot_decrement_gone(slot);
    prof_i_hint_store(&thread->deep_gap, i + 1);
    prof_i_thread_set_slow(thread, true); /* from now on their order is that of their ticks */
    return &thread->deep[i];
  }
  return NULL;
}

/* Scopes beyond the 64 shown: the thread's own memory remembers their sites. NULL: too deep, or no
   memory. Other threads read it, too, because such a scope may end there. */
static prof_i_open_entry *deep_entry(prof_i_thread *thread) {
  prof_i_thread_slot *const slot = thread->slot;
  if (!thread->deep) {
    const size_t bytes =
        PROF_I_DEEP_COUNT * sizeof *thread->deep + PROF_I_HINT_COUNT * sizeof(uint32_t);
    void *const memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return NULL;
    __atomic_store_n(&thread->deep, memory, __ATOMIC_RELEASE);
    if (!prof_i_thread_is_own(thread)) return NULL; /* the slot is the parent's */
  }
  prof_i_open_entry *const between = deep_entry_between(thread);
  if (between) return between;
  /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): a thread that is attached has a slot */
  if (slot->deep >= PROF_I_DEEP_COUNT) return NULL;
  prof_i_open_entry *const open = &thread->deep[prof_i_claim(&slot->deep, 1)];
  prof_i_thread_begin_deep(thread);
  return open;
}

/* An entry below the topmost whose scope is over: of scopes that do not nest, the entries pile
   up. */
static prof_i_open_entry *entry_between(prof_i_thread *thread) {
  const uint64_t first = prof_i_hint_load(&thread->shown_gap);
  for (uint64_t n = 0, i = first; n < PROF_I_OPEN_COUNT; n++, i++) {
    if (i == 0 || i > PROF_I_OPEN_COUNT) i = 1;
    if (!prof_i_open_entry_clear_gone(&thread->slot->open[i])) continue;
    prof_i_hint_store(&thread->shown_gap, i + 1);
    prof_i_thread_note_gap(thread); /* there may be more */
    return &thread->slot->open[i];
  }
  return NULL;
}

/* The site of a begin, and its details as the record gets them. */
typedef struct resolved_site {
  uint32_t number; /* of the call site. 0: there is no room for it */
  uint32_t shown;  /* of the site that has the name: the call site's, or the name's own */
  const prof_details *details;
  prof_details changed; /* room for details */
} resolved_site;

/* Without a number there is no site to keep the name: it is copied, as one made at run time. */
static void copy_name(resolved_site *to) {
  to->changed = *to->details;
  to->changed.flags &= ~(uint32_t)(PROF_I_NAME_LITERAL | PROF_I_CATEGORY_LITERAL);
  to->details = &to->changed;
}
/* Its name has one. */
static void use_name_site(resolved_site *to) {
  to->changed = *to->details;
  to->changed.flags |= PROF_I_NAME_LITERAL | PROF_I_CATEGORY_LITERAL;
  to->details = &to->changed;
}

/* False: the site or the name is muted. */
static bool resolve_site(prof_site *site, const prof_details *details, resolved_site *to) {
  to->number = to->shown = site_number_of(site, details);
  to->details = details;
  if (prof_i_site_is_muted(site)) return false;
  switch (to->number ? prof_i_name_look_up(site, to->number, details, &to->shown)
                     : PROF_I_NAME_COPY) {
    case PROF_I_NAME_MUTED:
      return false;
    case PROF_I_NAME_SITE:
      use_name_site(to);
      break;
    case PROF_I_NAME_COPY:
      to->shown = to->number;
      if (!to->number) copy_name(to);
  }
  return true;
}

/* Another thread may have ended it. */
static bool is_last_deep_gone(const prof_i_thread *thread) {
  const uint64_t deep = thread->slot->deep;
  return deep > 0 && prof_i_open_entry_ticks(&thread->deep[deep - 1]) == PROF_I_OPEN_GONE;
}

/* Do all open scopes have entries, in the order in which they began, and is no begin under way? */
static bool starts_are_in_order(const prof_i_thread *thread) {
  const prof_i_thread_slot *const slot = thread->slot;
  uint64_t latest = 0;
  for (uint64_t i = 1; i <= slot->depth; i++) {
    const uint64_t ticks = prof_i_open_entry_ticks(&slot->open[i]);
    if (ticks == PROF_I_OPEN_GONE) continue;
    if (ticks == 0 || (latest && prof_i_clock_is_before(ticks >> 4, latest >> 4))) return false;
    latest = ticks;
  }
  return slot->deep == 0;
}

enum { GAP_TRIES = 16 };

/* A test that most begins of a slow thread fail at once. The full test reads all open entries. */
static bool may_be_fast(const prof_i_thread *thread) {
  enum { FEW = 8 };
  if (!thread->is_slow || prof_i_thread_has_ended()) return false;
  if (thread->slot->depth + thread->slot->deep > FEW && thread->newest.begun_count % GAP_TRIES)
    return false;
  return starts_are_in_order(thread);
}

/* One that has no entry in the slot counts as open from its count on. */
static void set_start(prof_i_thread_slot *slot, prof_i_open_entry *open, uint64_t start) {
  prof_i_open_entry_set(open, start);
  PROF_I_SIGNAL_FENCE();
  if (open < slot->open || open > &slot->open[PROF_I_OPEN_COUNT])
    prof_i_count_up(&slot->deep_count);
}

/* Entries of scopes that ended elsewhere leave the open stack. True: there were gaps below its
   top. */
static bool trim_gone_entries(prof_i_thread *thread, const prof_i_thread_slot *slot) {
  if (slot->depth < PROF_I_OPEN_COUNT || !__atomic_load_n(&thread->has_gaps, __ATOMIC_RELAXED)) {
    if (is_last_deep_gone(thread)) prof_i_open_stack_trim(thread);
    return false;
  }
  const bool has_gaps = __atomic_exchange_n(&thread->has_gaps, 0, __ATOMIC_ACQUIRE);
  /* of scopes that are handed to other threads, the entries pile up */
  prof_i_open_stack_trim(thread);
  if (has_gaps && slot->depth < PROF_I_OPEN_COUNT)
    prof_i_thread_note_gap(thread); /* those below were not looked at */
  return has_gaps;
}

/* An empty entry for a scope that begins: the next one on top, else the entry of a gone scope, else
   one of the thread's own memory. NULL: there is none. */
static prof_i_open_entry *take_entry(prof_i_thread *thread, prof_i_thread_slot *slot) {
  const bool has_gaps = trim_gone_entries(thread, slot);
  if (slot->depth < PROF_I_OPEN_COUNT) {
    prof_i_open_entry *const top = prof_i_open_entry_push(slot);
    if (top == &slot->open[1] && slot->deep == 0) slot->payload_top = PROF_I_TEXT_OFFSET;
    if (slot->deep) prof_i_thread_set_slow(thread, true); /* those began before it */
    return top;
  }
  prof_i_open_entry *const between = has_gaps ? entry_between(thread) : NULL;
  if (!between) return deep_entry(thread);
  /* the topmost may end before it: then the fast path would take its text for free */
  prof_i_thread_set_slow(thread, true);
  return between;
}

/* Writes the entry. Returns the scope's start. */
static uint64_t open_scope(prof_i_thread *thread, prof_i_thread_slot *slot, prof_i_open_entry *open,
                           const resolved_site *site) {
  const prof_details *const details = site->details;
  const uint64_t by_call = prof_i_details_by_call(details);
  const uint64_t count = prof_i_claim(&thread->newest.begun_count, 1) + 1;
  const uint64_t block_count = by_call ? 0 : prof_i_claim(&thread->newest_block.begun_count, 1) + 1;
  const uint64_t begun = by_call ? 0 : prof_i_open_blocks_claim(thread);
  __atomic_store_n(
      &open->packed,
      prof_i_details_are_plain(details)
          ? (uint64_t)site->shown << PROF_I_PACKED_SITE_SHIFT | by_call
          : prof_i_payload_area_put(thread, slot, open, details, site->number, site->shown),
      __ATOMIC_RELAXED);
  const uint64_t start = prof_i_scope_begin_ticks(thread, prof_i_clock_ticks()) << 4;
  set_start(slot, open, start);
  const uint64_t open_index = prof_i_open_index_of(thread, open);
  prof_i_newest_set(&thread->newest, count, start, open_index);
  if (!by_call) prof_i_newest_set(&thread->newest_block, block_count, start, open_index);
  if (!by_call) prof_i_open_blocks_set(thread, begun, start, open_index);
  prof_i_find_remember(thread, start, open_index);
  return start;
}

/* Lets the thread back onto the fast path if it may use it. The fast path that a full arena had
   closed is opened again. */
static void reopen_fast_path(prof_i_thread *thread) {
  if (may_be_fast(thread)) prof_i_thread_set_slow(thread, false);
  if (__atomic_load_n(&thread->epoch, __ATOMIC_RELAXED) == PROF_I_EPOCH_FULL)
    prof_i_thread_set_slow(thread, thread->is_slow);
}

/* Returns what a begin returns that records nothing. */
static uint64_t lose_scope(prof_i_thread *thread, int loss) {
  prof_i_thread_lose(thread, loss, 1);
  return 0;
}

static uint64_t begin_unusual(prof_site *site, const prof_details *details) {
  prof_i_thread *const thread = prof_i_thread_attach();
  if (!thread) return lose_scope(&prof_i_no_thread, PROF_LOSS_NO_THREAD);
  prof_i_thread_slot *const slot = thread->slot;
  prof_i_compact_finish(thread);
  reopen_fast_path(thread);
  resolved_site resolved;
  if (!resolve_site(site, details, &resolved)) return lose_scope(thread, PROF_LOSS_MUTED);
  /* else the slot is the parent's */
  if (!prof_i_thread_is_own(thread)) return lose_scope(thread, PROF_LOSS_FORKED);
  prof_i_open_entry *const open = take_entry(thread, slot);
  if (!open) return lose_scope(thread, PROF_LOSS_LOST_STATE);
  return open_scope(thread, slot, open, &resolved);
}

/* The state of the site in the scope's entry: its call site's, or its name's where the thread has
   just used that name. 0: there is more to do. */
static inline uint64_t known_state(prof_i_thread *thread, const prof_details *details,
                                   uint64_t site_state) {
  if (prof_i_details_are_plain(details)) return site_state;
  if (!prof_i_details_are_bare(details)) return 0;
  const prof_i_name *const known = *prof_i_name_recent(thread, details->name);
  if (!known || !prof_i_name_is_of(known, details, (uint32_t)site_state)) return 0;
  const uint64_t state = __atomic_load_n(&known->state, __ATOMIC_ACQUIRE);
  return (uint32_t)state && state >> 32 == site_state >> 32 ? state : 0;
}

/* A plain scope below the 64 shown: what the fast path does, with an entry of the thread's own
   memory. The epoch says the same as there. 0: there is more to do. */
static PROF_I_WARM uint64_t begin_deep(prof_i_thread *thread, const prof_site *site,
                                       const prof_details *details) {
  prof_i_thread_slot *const slot = thread->slot;
  const uint64_t state = __atomic_load_n(&site->state, __ATOMIC_RELAXED);
  if (__atomic_load_n(&thread->epoch, __ATOMIC_RELAXED) != (uint32_t)(state >> 32) || !slot ||
      slot->depth != PROF_I_OPEN_COUNT)
    return 0;
  if (thread->is_slow || !thread->deep || slot->deep >= PROF_I_DEEP_COUNT ||
      __atomic_load_n(&thread->has_gaps, __ATOMIC_RELAXED))
    return 0;
  const uint64_t known = known_state(thread, details, state);
  if (!known || is_last_deep_gone(thread)) return 0;
  prof_i_open_entry *const open = deep_entry(thread);
  const uint64_t number = (uint32_t)known, by_call = prof_i_details_by_call(details);
  __atomic_store_n(&open->packed, number << PROF_I_PACKED_SITE_SHIFT | by_call, __ATOMIC_RELAXED);
  const uint64_t start = prof_i_scope_start_now(thread);
  set_start(slot, open, start);
  if (by_call) prof_i_find_remember(thread, start, prof_i_open_index_of(thread, open));
  return start;
}

/* Takes a slow thread's entry at that place, if it is gone. */
static prof_i_open_entry *reuse_gone_entry(prof_i_thread *thread, uint64_t at) {
  prof_i_thread_slot *const slot = thread->slot;
  if (at <= PROF_I_OPEN_COUNT) {
    if (at == 0 || !prof_i_open_entry_clear_gone(&slot->open[at])) return NULL;
    if (at == prof_i_hint_load(&thread->shown_gap)) prof_i_hint_store(&thread->shown_gap, at + 1);
    return &slot->open[at];
  }
  const uint64_t i = at - PROF_I_OPEN_COUNT - 1;
  if (i >= slot->deep || !prof_i_open_entry_clear_gone(&thread->deep[i])) return NULL;
  prof_i_slot_decrement_gone(slot);
  if (i == prof_i_hint_load(&thread->deep_gap)) prof_i_hint_store(&thread->deep_gap, i + 1);
  return &thread->deep[i];
}

/* One that is known: of the last block, or where the hints say. */
static prof_i_open_entry *reuse_hinted_entry(prof_i_thread *thread) {
  if (thread->slot->depth != PROF_I_OPEN_COUNT) return NULL;
  prof_i_open_entry *open = reuse_gone_entry(thread, thread->newest_block.open_index);
  if (!open) open = reuse_gone_entry(thread, prof_i_hint_load(&thread->shown_gap));
  if (!open)
    open = reuse_gone_entry(thread, prof_i_hint_load(&thread->deep_gap) + PROF_I_OPEN_COUNT + 1);
  return open;
}

/* A plain block of a slow thread, which has open tasks beside it. The epoch says the same as on the
   fast path. 0: there is more to do. */
static PROF_I_WARM uint64_t begin_in_gap(prof_i_thread *thread, const prof_site *site,
                                         const prof_details *details) {
  const uint64_t state = __atomic_load_n(&site->state, __ATOMIC_RELAXED);
  if (!thread->is_slow ||
      __atomic_load_n(&thread->epoch, __ATOMIC_RELAXED) != (uint32_t)(state >> 32))
    return 0;
  if (details->flags & PROF_I_BY_CALL || !prof_i_details_are_plain(details)) return 0;
  if (thread->newest.begun_count % GAP_TRIES == 0) return 0; /* is it still slow? */
  prof_i_thread_slot *const slot = thread->slot;
  prof_i_open_entry *const open = reuse_hinted_entry(thread);
  if (!open) return 0;
  const uint64_t count = prof_i_claim(&thread->newest.begun_count, 1) + 1;
  const uint64_t block_count = prof_i_claim(&thread->newest_block.begun_count, 1) + 1;
  const uint64_t begun = prof_i_open_blocks_claim(thread);
  __atomic_store_n(&open->packed, (uint64_t)(uint32_t)state << PROF_I_PACKED_SITE_SHIFT,
                   __ATOMIC_RELAXED);
  const uint64_t start = prof_i_scope_start_now(thread);
  set_start(slot, open, start);
  const uint64_t open_index = prof_i_open_index_of(thread, open);
  prof_i_newest_set(&thread->newest, count, start, open_index);
  prof_i_newest_set(&thread->newest_block, block_count, start, open_index);
  prof_i_open_blocks_set(thread, begun, start, open_index);
  return start;
}

uint64_t prof_i_scope_begin_slow(prof_site *site, const prof_details *details) {
  const bool has_window = prof_i_this_thread->timing.events_left != 0;
  const uint64_t since =
      has_window ? prof_i_cost_sample_begin(prof_i_this_thread, site, details) : 0;
  uint64_t begun = begin_deep(prof_i_this_thread, site, details);
  if (!begun) begun = begin_in_gap(prof_i_this_thread, site, details);
  if (begun) return begun;
  if (count_left_out(prof_i_this_thread, __atomic_load_n(&site->state, __ATOMIC_RELAXED))) return 0;
  const int saved = errno;
  if (!prof_i_process_is_own()) return 0;
  prof_i_session_ensure(); /* a forked child makes its own capture here */
  const bool is_inside = prof_i_arena_guard_enter(), is_recording = prof_i_session_is_recording();
  if (!is_inside || !is_recording) {
    /* It saw the level on, but the stop was faster. */
    const bool goes_on = has_window && prof_i_cost_sample_give_up(prof_i_this_thread);
    if (!goes_on && is_inside)
      prof_i_thread_lose(prof_i_this_thread, PROF_LOSS_LATE, 1);
    else if (!goes_on)
      prof_i_thread_lose_unattributed(is_recording ? PROF_LOSS_CLEARED : PROF_LOSS_LATE, 1);
    if (is_inside) prof_i_arena_guard_exit();
    errno = saved;
    return goes_on ? prof_i_begin_details_1(site, details) : 0;
  }
  const prof_i_slow_time timed = prof_i_slow_time_begin(prof_i_this_thread);
  const uint64_t start = begin_unusual(site, details);
  prof_i_slow_time_end(prof_i_this_thread, &timed);
  if (since) prof_i_cost_sample_after_begin(prof_i_this_thread, since);
  prof_i_arena_guard_exit();
  errno = saved;
  return start;
}

uint64_t prof_i_scope_begin_slow_named(prof_site *site, const prof_details *details,
                                       uint64_t name_state) {
  return count_left_out(prof_i_this_thread, name_state) ? 0
                                                        : prof_i_scope_begin_slow(site, details);
}

/* As a begin does it: a call with a description of the scope, in a call. */
static __attribute__((noinline)) uint64_t left_out_inside(prof_i_thread *thread,
                                                          const prof_site *site,
                                                          const prof_details *details) {
  return count_left_out(thread, __atomic_load_n(&site->state, __ATOMIC_RELAXED)) ? 0
                                                                                 : details->stream;
}
static __attribute__((noinline)) uint64_t left_out_called(prof_i_thread *thread,
                                                          const prof_site *site) {
  const prof_details details = {.name = "",
                                .category = "",
                                .name_bytes = PROF_NUL_TERMINATED,
                                .category_bytes = PROF_NUL_TERMINATED};
  __asm__ __volatile__("" : : "r"(&details) : "memory"); /* it is written, as there */
  return left_out_inside(thread, site, &details);
}

void prof_i_scope_run_left_out(prof_i_thread *thread, prof_site *site, int count) {
  for (int i = 0; i < count; i++) left_out_called(thread, site);
}

enum { SLOW_MOST_NS = 200, TIMED_OF = 8 };

static bool is_one_of_eight(prof_i_thread *thread) {
  thread->chance = thread->chance * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return thread->chance >> 61 == 0;
}

prof_i_slow_time prof_i_slow_time_begin(prof_i_thread *thread) {
  if (!thread->is_slow || !is_one_of_eight(thread)) return (prof_i_slow_time){NULL, 0, 0};
  const prof_i_thread_slot *const slot = thread->slot;
  const uint64_t own_ns = __atomic_load_n(&slot->own_ns, __ATOMIC_RELAXED);
  return (prof_i_slow_time){slot, prof_i_port_monotonic_ns(), own_ns};
}

void prof_i_slow_time_end(prof_i_thread *thread, const prof_i_slow_time *it) {
  if (!it->slot || it->slot != thread->slot) return;
  const uint64_t most_ns = (PROF_I_OPEN_COUNT + it->slot->deep) * SLOW_MOST_NS;
  const uint64_t all_ns = prof_i_ns_since(it->since_ns), ns = all_ns < most_ns ? all_ns : most_ns;
  const uint64_t counted = __atomic_load_n(&it->slot->own_ns, __ATOMIC_RELAXED) - it->own_ns;
  if (ns <= counted) return;
  prof_i_claim(&thread->slot->own_ns, (ns - counted) * TIMED_OF);
  prof_i_claim(&thread->overhead.slow_ns, (ns - counted) * TIMED_OF);
}
