/* See change.h. */
#include "change.h"

#include "arena.h"
#include "clock.h"
#include "gate.h"
#include "meta.h"

static uint32_t written;    /* any thread */
static uint32_t function_ends; /* any thread */
static uint32_t told_level; /* what the capture knows of; any thread */

void prof_i_change_begin(void) {
  __atomic_store_n(&written, 0, __ATOMIC_RELAXED);
  __atomic_store_n(&function_ends, 0, __ATOMIC_RELAXED);
}
uint32_t prof_i_change_count(void) { return __atomic_load_n(&written, __ATOMIC_RELAXED); }

/* They stand in the arena for good, which is for what is recorded: a 64th of it, and as much again for what the budget did. What comes after is counted. */
static bool has_room(const prof_i_change *change) {
  enum { BYTES = 80 };
  const uint64_t most = prof_i_the_arena.cap_bytes / 64 / BYTES;
  return __atomic_load_n(&written, __ATOMIC_RELAXED) < (change->reason == PROF_REASON_ASKED ? most : 2 * most);
}

void prof_i_change_note(const prof_i_change *change) {
  if (!__atomic_load_n(&prof_i_the_arena.base, __ATOMIC_ACQUIRE)) return;
  const uint64_t words[] = {change->kind,   change->reason,   change->level_before | (uint64_t)change->level_after << 32,
                            change->thread, change->measured, change->allowed};
  if (has_room(change) && prof_i_meta_write(PROF_I_KIND_CHANGE, prof_i_clock_ticks(), change->site, words, sizeof words / sizeof *words))
    __atomic_fetch_add(&written, 1, __ATOMIC_RELAXED);
  else
    __atomic_fetch_add(&prof_i_arena_header()->untold_changes, 1, __ATOMIC_RELAXED);
}

void prof_i_change_site(prof_change_kind kind, uint32_t site) {
  prof_i_change_note(&(prof_i_change){.kind = kind, .reason = PROF_REASON_ASKED, .site = site});
}

enum { BEING_CHANGED = 3 };

static void note_level(uint32_t before, uint32_t after, const prof_i_change *why) {
  prof_i_change change = *why;
  change.kind = PROF_CHANGE_LEVEL;
  change.level_before = before;
  change.level_after = after;
  if (before != after) prof_i_change_note(&change);
}

void prof_i_change_look_at_level(void) {
  uint32_t before = __atomic_load_n(&told_level, __ATOMIC_SEQ_CST);
  const uint32_t level = prof_i_arena_level();
  if (before == level || before == BEING_CHANGED) return;
  if (!__atomic_compare_exchange_n(&told_level, &before, level, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) return;
  note_level(before, level, &(prof_i_change){.reason = PROF_REASON_OUTSIDE});
}

uint32_t prof_i_change_begin_level(void) {
  prof_i_change_look_at_level();
  return __atomic_exchange_n(&told_level, BEING_CHANGED, __ATOMIC_SEQ_CST);
}

void prof_i_change_end_level(uint32_t before, const prof_i_change *why) {
  const uint32_t level = prof_i_arena_level();
  if (why && before != BEING_CHANGED) note_level(before, level, why);
  __atomic_store_n(&told_level, level, __ATOMIC_SEQ_CST);
}

void prof_i_change_end_functions(void) {
  enum { BYTES = 48, SHARE = 64 }; /* for good, as changes are: no more than their share of the arena */
  if (!prof_i_gate_enter()) return;
  const prof_i_header *const header = prof_i_the_arena.base ? prof_i_arena_header() : NULL;
  if (header && __atomic_load_n(&function_ends, __ATOMIC_RELAXED) < prof_i_the_arena.cap_bytes / SHARE / BYTES) {
    const uint64_t words[] = {__atomic_load_n(&header->session, __ATOMIC_RELAXED), prof_i_arena_level(), PROF_I_SESSION_FUNCTIONS_END};
    if (prof_i_meta_write(PROF_I_KIND_SESSION, prof_i_clock_ticks(), 0, words, sizeof words / sizeof *words)) __atomic_fetch_add(&function_ends, 1, __ATOMIC_RELAXED);
  }
  prof_i_gate_leave();
}
