/* See scope_find.h. */
#include "scope_find.h"

#include "../buffer/arena.h"

/* The place of a block that is among the last of a slow thread; 0: it is not. */
static uint64_t place_of_begun(const prof_i_thread *thread, uint64_t start) {
  const uint64_t count = __atomic_load_n(&thread->begun.count, __ATOMIC_RELAXED);
  for (uint64_t i = count; i > 0 && count - i < PROF_I_BEGUN_COUNT; i--)
    if (thread->begun.blocks[(i - 1) % PROF_I_BEGUN_COUNT].start == start)
      return thread->begun.blocks[(i - 1) % PROF_I_BEGUN_COUNT].place;
  return 0;
}

static bool find_hinted(prof_i_thread *thread, uint64_t count, prof_i_found *f) {
  const uint32_t *const hints = prof_i_find_hints(thread, f->start, count);
  for (int i = 0; hints && i < PROF_I_WHERE_WAYS; i++)
    if (prof_i_is_place(thread, hints[i]) && prof_i_find_own_at(thread, hints[i], f)) return true;
  return false;
}

bool prof_i_find_own(prof_i_thread *thread, prof_i_found *f) {
  const prof_i_slot *const slot = thread->slot;
  if (!prof_i_entry_may_be_of(thread, f->tag)) return false;
  const uint64_t begun = f->tag ? 0 : place_of_begun(thread, f->start);
  const uint64_t likely[] = {thread->newest.place, thread->newest_block.place, begun};
  for (size_t i = 0; i < sizeof likely / sizeof *likely; i++)
    if (prof_i_is_place(thread, likely[i]) && prof_i_find_own_at(thread, likely[i], f)) return true;
  if (find_hinted(thread, PROF_I_WHERE_FEW, f) || find_hinted(thread, PROF_I_WHERE_COUNT, f))
    return true;
  for (uint64_t i = slot->deep; i > 0; i--)
    if (prof_i_find_own_at(thread, PROF_I_OPEN_COUNT + i, f)) return true;
  for (uint64_t i = slot->depth; i > 0; i--)
    if (prof_i_find_own_at(thread, i, f)) return true;
  return false;
}

bool prof_i_is_newest_of(const prof_i_thread *thread, const prof_i_found *f) {
  const prof_i_slot *const slot = thread->slot;
  if (prof_i_is_known_newest(thread, &thread->newest, f)) return true;
  for (uint64_t i = 1; i <= slot->depth; i++)
    if ((f->is_deep || i != f->index) &&
        prof_i_is_later(thread, prof_i_entry_ticks(&slot->open[i]), i, f))
      return false;
  if (!thread->is_slow) /* the deep ones are in order */
    return slot->deep == (f->is_deep ? f->index : 0);
  for (uint64_t i = slot->deep; i > 0; i--) {
    const uint64_t ticks = prof_i_entry_ticks(&thread->deep[i - 1]);
    if ((!f->is_deep || i != f->index) && prof_i_is_later(thread, ticks, i + PROF_I_OPEN_COUNT, f))
      return false;
  }
  return true;
}

/* Has that entry this scope? Its ticks are read once: prof_i_take_out() swaps what was found, and
   by then another scope may stand there. */
static bool is_at(prof_i_place *p, prof_i_open *open, uint64_t start, bool only_by_call) {
  p->open = open;
  p->ticks = __atomic_load_n(&open->ticks, __ATOMIC_ACQUIRE);
  if (prof_i_open_start(p->ticks) != start || p->ticks & PROF_I_OPEN_TAKEN) return false;
  return !only_by_call || __atomic_load_n(&open->what, __ATOMIC_RELAXED) & PROF_I_OPEN_BY_CALL;
}

/* Among the scopes that a thread has below the 64 shown. Its count is of another moment than the
   entries: what is not its own any more has ticks of 0. */
static bool find_deep(prof_i_place *p, uint64_t start, bool only_by_call) {
  prof_i_open *const deep = __atomic_load_n(&p->thread->deep, __ATOMIC_ACQUIRE);
  const uint64_t count = __atomic_load_n(&p->slot->deep, __ATOMIC_RELAXED);
  if (!deep) return false;
  for (uint64_t i = count < PROF_I_DEEP_COUNT ? count : PROF_I_DEEP_COUNT; i > 0; i--)
    if (is_at(p, &deep[i - 1], start, only_by_call)) return true;
  return false;
}

prof_i_place prof_i_find_place(const prof_i_thread *thread, uint64_t handle, bool only_by_call) {
  const uint64_t start = prof_i_open_start(handle), tag = prof_i_entry_tag(handle);
  for (prof_i_thread *t = prof_i_thread_first(); t; t = t->next) {
    if (!prof_i_entry_may_be_of(t, tag)) continue;
    prof_i_place p = {
        .thread = t, .slot = t != thread ? prof_i_thread_slot(t) : NULL, .is_deep = true};
    if (!p.slot) continue;
    if (find_deep(&p, start, only_by_call)) return p;
    p.is_deep = false;
    for (uint64_t i = PROF_I_OPEN_COUNT; i > 0; i--)
      if (is_at(&p, &p.slot->open[i], start, only_by_call)) return p;
  }
  return (prof_i_place){0};
}

static void note_gone(const prof_i_place *p) {
  prof_i_texts_leave_hole(p->thread, p->what);
  prof_i_hint_store(p->is_deep ? &p->thread->deep_gap : &p->thread->shown_gap, 0);
  if (!p->is_deep) prof_i_thread_note_gap(p->thread);
}

bool prof_i_take_out(prof_i_place *p) {
  uint64_t ticks = p->ticks;
  p->what = __atomic_load_n(&p->open->what, __ATOMIC_RELAXED);
  if (p->is_deep) __atomic_fetch_add(&p->slot->deep_gone, 1, __ATOMIC_RELAXED);
  do {
    if (prof_i_open_start(ticks) != prof_i_open_start(p->ticks) || ticks & PROF_I_OPEN_TAKEN) {
      if (p->is_deep) prof_i_entry_one_gone_less(p->slot);
      return false;
    }
    p->counts_deep = p->is_deep || ticks & PROF_I_OPEN_OF_DEEP;
  } while (!__atomic_compare_exchange_n(
      &p->open->ticks, &ticks, p->counts_deep ? PROF_I_OPEN_GONE : ticks | PROF_I_OPEN_TAKEN, false,
      __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
  if (p->counts_deep) note_gone(p);
  return true;
}

bool prof_i_is_deep_here(const prof_i_place *p) {
  return p->counts_deep &&
         __atomic_load_n(&p->thread->arena, __ATOMIC_RELAXED) == prof_i_the_arena.number;
}

void prof_i_leave_taken(const prof_i_place *p) {
  if (p->counts_deep) return;
  uint64_t ticks = prof_i_entry_ticks(p->open);
  do {
    if (prof_i_open_start(ticks) != prof_i_open_start(p->ticks) || !(ticks & PROF_I_OPEN_TAKEN))
      return;
  } while (!__atomic_compare_exchange_n(&p->open->ticks, &ticks, PROF_I_OPEN_GONE, false,
                                        __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
  note_gone(p);
}

bool prof_i_take_out_elsewhere(const prof_i_thread *thread, uint64_t handle, bool only_by_call,
                               prof_i_place *at) {
  while ((*at = prof_i_find_place(thread, handle, only_by_call)).open)
    if (prof_i_take_out(at)) return true;
  return false;
}

void prof_i_trim(prof_i_thread *thread) {
  prof_i_slot *const slot = thread->slot;
  if (thread->is_held) return;
  const bool was_deep = slot->deep > 0;
  for (uint64_t deep;
       (deep = slot->deep) > 0 && prof_i_entry_empty_if_gone(&thread->deep[deep - 1]);) {
    prof_i_entry_one_gone_less(slot);
    prof_i_one_less(&slot->deep, deep);
  }
  if (was_deep && slot->deep == 0) prof_i_thread_come_up(thread);
  for (uint64_t depth; (depth = slot->depth) > 0 && prof_i_entry_empty_if_gone(&slot->open[depth]);)
    prof_i_one_less(&slot->depth, depth);
  if (slot->depth == 0 && slot->deep == 0) slot->text_top = PROF_I_TEXT_OFFSET;
}
