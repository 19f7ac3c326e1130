/* See change.h. */
#include "change.h"

#include "arena.h"
#include "clock.h"
#include "meta.h"

static uint32_t written; /* any thread */

void prof_i_change_begin(void) { __atomic_store_n(&written, 0, __ATOMIC_RELAXED); }
uint32_t prof_i_change_count(void) { return __atomic_load_n(&written, __ATOMIC_RELAXED); }

void prof_i_change_note(const prof_i_change *change) {
  if (!__atomic_load_n(&prof_i_the_arena.base, __ATOMIC_ACQUIRE)) return;
  const uint64_t words[] = {change->kind,   change->reason,   change->level_before | (uint64_t)change->level_after << 32,
                            change->thread, change->measured, change->allowed};
  if (prof_i_meta_write(PROF_I_KIND_CHANGE, prof_i_clock_ticks(), change->site, words, sizeof words / sizeof *words))
    __atomic_fetch_add(&written, 1, __ATOMIC_RELAXED);
}

void prof_i_change_site(prof_change_kind kind, uint32_t site) {
  prof_i_change_note(&(prof_i_change){.kind = kind, .reason = PROF_REASON_ASKED, .site = site});
}
