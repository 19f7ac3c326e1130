/* Losses and stray ends: counted in the thread's slot, or where there is none in the header, or
   while no arena can be touched here. */
#define _GNU_SOURCE
#include <string.h>

#include "../../base/port.h"
#include "arena.h"
#include "arena_guard.h"
#include "ledger.h"
#include "session.h"
#include "thread_internal.h"

/* Any thread, relaxed. prof_i_thread_flush_losses() moves it into the arena. */
static uint64_t unattributed[PROF_I_LOSS_WORDS];

void prof_i_thread_lose(prof_i_thread *thread, int loss, uint64_t count) {
  if (prof_i_is_attached(thread) && thread->slot && thread->arena == prof_i_the_arena.number)
    __atomic_fetch_add(&thread->slot->lost[loss], count, __ATOMIC_RELAXED);
  else if (prof_i_the_arena.base)
    __atomic_fetch_add(&prof_i_arena_header()->unattributed[loss], count, __ATOMIC_RELAXED);
  else
    __atomic_fetch_add(&unattributed[loss], count, __ATOMIC_RELAXED);
}

/* The gate is closed. During a clear the header is valid, and gets the count, so that a kill does
   not lose it. At a start the header is not valid. */
static void count_unattributed(int loss, uint64_t count) {
  if (prof_i_session_is_recording())
    prof_i_arena_count_loss(loss, count);
  else
    __atomic_fetch_add(&unattributed[loss], count, __ATOMIC_RELAXED);
}

void prof_i_thread_lose_unattributed(int loss, uint64_t count) { count_unattributed(loss, count); }

void prof_i_thread_count_stray(prof_i_thread *thread) {
  if (prof_i_is_attached(thread) && thread->slot && thread->arena == prof_i_the_arena.number)
    prof_i_claim(&thread->slot->stray_count, 1);
  else if (prof_i_the_arena.base)
    __atomic_fetch_add(&prof_i_arena_header()->stray_count, 1, __ATOMIC_RELAXED);
}

void prof_i_thread_lose_outside(prof_i_thread *thread, int loss, uint64_t count) {
  if (!prof_i_arena_guard_enter()) {
    count_unattributed(loss, count);
    return;
  }
  prof_i_thread_lose(thread, loss, count);
  prof_i_arena_guard_exit();
}

void prof_i_thread_flush_losses(void) {
  for (int i = 0; i < PROF_I_LOSS_WORDS; i++) {
    const uint64_t count = __atomic_exchange_n(&unattributed[i], 0, __ATOMIC_RELAXED);
    if (count) __atomic_fetch_add(&prof_i_arena_header()->unattributed[i], count, __ATOMIC_RELAXED);
  }
}

void prof_i_thread_forget_losses(void) { memset(unattributed, 0, sizeof unattributed); }
