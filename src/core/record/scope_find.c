/* See scope_find.h. */
#include "scope_find.h"

#include "../buffer/arena.h"

/* The place of a block that is among the last of a slow thread; 0: it is not. */
static uint64_t index_of_open_block(const prof_i_thread *thread, uint64_t start) {
  const uint64_t count = __atomic_load_n(&thread->begun.count, __ATOMIC_RELAXED);
  for (uint64_t i = count; i > 0 && count - i < PROF_I_OPEN_BLOCKS_COUNT; i--)
    if (thread->begun.blocks[(i - 1) % PROF_I_OPEN_BLOCKS_COUNT].start == start)
      return thread->begun.blocks[(i - 1) % PROF_I_OPEN_BLOCKS_COUNT].open_index;
  return 0;
}

static bool find_hinted(prof_i_thread *thread, uint64_t count, prof_i_ended_scope *f) {
  const uint32_t *const hints = prof_i_find_hints(thread, f->start, count);
  for (int i = 0; hints && i < PROF_I_HINT_WAYS; i++)
    if (prof_i_is_open_index(thread, hints[i]) && prof_i_find_own_scope_at(thread, hints[i], f))
      return true;
  return false;
}

bool prof_i_find_own_scope(prof_i_thread *thread, prof_i_ended_scope *f) {
  const prof_i_thread_slot *const slot = thread->slot;
  if (!prof_i_handle_may_be_of(thread, f->tag)) return false;
  const uint64_t begun = f->tag ? 0 : index_of_open_block(thread, f->start);
  const uint64_t likely[] = {thread->newest.open_index, thread->newest_block.open_index, begun};
  for (size_t i = 0; i < sizeof likely / sizeof *likely; i++)
    if (prof_i_is_open_index(thread, likely[i]) && prof_i_find_own_scope_at(thread, likely[i], f))
      return true;
  if (find_hinted(thread, PROF_I_HINT_COUNT_FEW, f) || find_hinted(thread, PROF_I_HINT_COUNT, f))
    return true;
  for (uint64_t i = slot->deep; i > 0; i--)
    if (prof_i_find_own_scope_at(thread, PROF_I_OPEN_COUNT + i, f)) return true;
  for (uint64_t i = slot->depth; i > 0; i--)
    if (prof_i_find_own_scope_at(thread, i, f)) return true;
  return false;
}

bool prof_i_is_newest_of(const prof_i_thread *thread, const prof_i_ended_scope *f) {
  const prof_i_thread_slot *const slot = thread->slot;
  if (prof_i_is_known_newest(thread, &thread->newest, f)) return true;
  for (uint64_t i = 1; i <= slot->depth; i++)
    if ((f->is_deep || i != f->index) &&
        prof_i_is_later(thread, prof_i_open_entry_ticks(&slot->open[i]), i, f))
      return false;
  if (!thread->is_slow) /* the deep ones are in order */
    return slot->deep == (f->is_deep ? f->index : 0);
  for (uint64_t i = slot->deep; i > 0; i--) {
    const uint64_t ticks = prof_i_open_entry_ticks(&thread->deep[i - 1]);
    if ((!f->is_deep || i != f->index) && prof_i_is_later(thread, ticks, i + PROF_I_OPEN_COUNT, f))
      return false;
  }
  return true;
}

/* Has that entry this scope? Its ticks are read once: prof_i_remote_scope_take() swaps what was
   found, because another scope may have the entry by then. */
static bool entry_has_scope(prof_i_remote_scope *p, prof_i_open_entry *open, uint64_t start,
                            bool only_by_call) {
  p->open = open;
  p->ticks = __atomic_load_n(&open->ticks, __ATOMIC_ACQUIRE);
  if (prof_i_open_entry_start(p->ticks) != start || p->ticks & PROF_I_OPEN_TAKEN) return false;
  return !only_by_call || __atomic_load_n(&open->packed, __ATOMIC_RELAXED) & PROF_I_OPEN_BY_CALL;
}

/* Among the scopes that a thread has below the 64 shown. Its count is of another moment than the
   entries: what is not its own any more has ticks of 0. */
static bool find_deep(prof_i_remote_scope *p, uint64_t start, bool only_by_call) {
  prof_i_open_entry *const deep = __atomic_load_n(&p->thread->deep, __ATOMIC_ACQUIRE);
  const uint64_t count = __atomic_load_n(&p->slot->deep, __ATOMIC_RELAXED);
  if (!deep) return false;
  for (uint64_t i = count < PROF_I_DEEP_COUNT ? count : PROF_I_DEEP_COUNT; i > 0; i--)
    if (entry_has_scope(p, &deep[i - 1], start, only_by_call)) return true;
  return false;
}

prof_i_remote_scope prof_i_find_remote_scope(const prof_i_thread *thread, uint64_t handle,
                                             bool only_by_call) {
  const uint64_t start = prof_i_open_entry_start(handle), tag = prof_i_handle_tag(handle);
  for (prof_i_thread *t = prof_i_thread_first(); t; t = t->next) {
    if (!prof_i_handle_may_be_of(t, tag)) continue;
    prof_i_remote_scope p = {
        .thread = t, .slot = t != thread ? prof_i_thread_get_slot(t) : NULL, .is_deep = true};
    if (!p.slot) continue;
    if (find_deep(&p, start, only_by_call)) return p;
    p.is_deep = false;
    for (uint64_t i = PROF_I_OPEN_COUNT; i > 0; i--)
      if (entry_has_scope(&p, &p.slot->open[i], start, only_by_call)) return p;
  }
  return (prof_i_remote_scope){0};
}

static void note_entry_gone(const prof_i_remote_scope *p) {
  prof_i_payload_area_leave_hole(p->thread, p->packed);
  prof_i_hint_store(p->is_deep ? &p->thread->deep_gap : &p->thread->shown_gap, 0);
  if (!p->is_deep) prof_i_thread_note_gap(p->thread);
}

bool prof_i_remote_scope_take(prof_i_remote_scope *p) {
  uint64_t ticks = p->ticks;
  p->packed = __atomic_load_n(&p->open->packed, __ATOMIC_RELAXED);
  if (p->is_deep) __atomic_fetch_add(&p->slot->deep_gone, 1, __ATOMIC_RELAXED);
  do {
    if (prof_i_open_entry_start(ticks) != prof_i_open_entry_start(p->ticks) ||
        ticks & PROF_I_OPEN_TAKEN) {
      if (p->is_deep) prof_i_slot_decrement_gone(p->slot);
      return false;
    }
    p->counts_deep = p->is_deep || ticks & PROF_I_OPEN_OF_DEEP;
  } while (!__atomic_compare_exchange_n(
      &p->open->ticks, &ticks, p->counts_deep ? PROF_I_OPEN_GONE : ticks | PROF_I_OPEN_TAKEN, false,
      __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
  if (p->counts_deep) note_entry_gone(p);
  return true;
}

bool prof_i_remote_scope_is_deep(const prof_i_remote_scope *p) {
  return p->counts_deep &&
         __atomic_load_n(&p->thread->arena, __ATOMIC_RELAXED) == prof_i_the_arena.number;
}

void prof_i_remote_scope_finish(const prof_i_remote_scope *p) {
  if (p->counts_deep) return;
  uint64_t ticks = prof_i_open_entry_ticks(p->open);
  do {
    if (prof_i_open_entry_start(ticks) != prof_i_open_entry_start(p->ticks) ||
        !(ticks & PROF_I_OPEN_TAKEN))
      return;
  } while (!__atomic_compare_exchange_n(&p->open->ticks, &ticks, PROF_I_OPEN_GONE, false,
                                        __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
  note_entry_gone(p);
}

bool prof_i_remote_scope_find_take(const prof_i_thread *thread, uint64_t handle, bool only_by_call,
                                   prof_i_remote_scope *at) {
  while ((*at = prof_i_find_remote_scope(thread, handle, only_by_call)).open)
    if (prof_i_remote_scope_take(at)) return true;
  return false;
}

void prof_i_open_stack_trim(prof_i_thread *thread) {
  prof_i_thread_slot *const slot = thread->slot;
  if (thread->is_held) return;
  const bool was_deep = slot->deep > 0;
  for (uint64_t deep;
       (deep = slot->deep) > 0 && prof_i_open_entry_clear_gone(&thread->deep[deep - 1]);) {
    prof_i_slot_decrement_gone(slot);
    prof_i_decrement_if_equal(&slot->deep, deep);
  }
  if (was_deep && slot->deep == 0) prof_i_thread_end_deep(thread);
  for (uint64_t depth;
       (depth = slot->depth) > 0 && prof_i_open_entry_clear_gone(&slot->open[depth]);)
    prof_i_decrement_if_equal(&slot->depth, depth);
  if (slot->depth == 0 && slot->deep == 0) slot->payload_top = PROF_I_TEXT_OFFSET;
}
