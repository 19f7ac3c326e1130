/* The memory of threads. The next thread uses an ended one's, so there are about as many as were
   alive at once. Lock-free, because a thread may attach in a signal handler. */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/mman.h>

#include "../../base/port.h"
#include "arena.h"
#include "thread_internal.h"

/* with_slot: only one that has a slot in this arena. */
static prof_i_thread *thread_find_free(bool with_slot) {
  const uint64_t arena = prof_i_the_arena.number;
  for (prof_i_thread *t = prof_i_thread_first(); t; t = t->next) {
    if (with_slot && __atomic_load_n(&t->arena, __ATOMIC_RELAXED) != arena) continue;
    uint32_t was = PROF_I_FREE;
    if (__atomic_compare_exchange_n(&t->alive, &was, PROF_I_ALIVE, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_RELAXED))
      return t;
    if (was == PROF_I_ALIVE && prof_i_thread_has_died(t) && prof_i_thread_take_ended(t)) {
      was = PROF_I_EXITED;
      __atomic_store_n(&t->alive, was, __ATOMIC_RELEASE);
    }
    if (was != PROF_I_EXITED) continue;
    if (!__atomic_compare_exchange_n(&t->alive, &was, PROF_I_ALIVE, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED))
      continue;
    prof_i_thread_reclaim(t);
    return t;
  }
  return NULL;
}

/* Of ended threads that only their numbers tell, there are at most as many as are alive, and some
   more: with each doubling of the places, all are looked at. True: some are free now. */
static bool threads_free_ended(void) {
  uint32_t at = __atomic_load_n(&prof_i_threads.search_at, __ATOMIC_RELAXED), alive = 0;
  if (__atomic_load_n(&prof_i_threads.made, __ATOMIC_RELAXED) < at ||
      !__atomic_compare_exchange_n(&prof_i_threads.search_at, &at, UINT32_MAX, false,
                                   __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
    return false;
  bool has_freed = false;
  for (prof_i_thread *t = prof_i_thread_first(); t; t = t->next) {
    if (__atomic_load_n(&t->alive, __ATOMIC_ACQUIRE) != PROF_I_ALIVE) continue;
    if (!prof_i_thread_take_ended(t)) {
      alive++;
      continue;
    }
    prof_i_thread_free(t);
    has_freed = true;
  }
  __atomic_store_n(&prof_i_threads.search_at, 2 * alive + PROF_I_THREAD_SEARCH_MIN,
                   __ATOMIC_RELEASE);
  return has_freed;
}

static prof_i_thread *thread_create(void) {
  const size_t bytes = (sizeof(prof_i_thread) + 4095) & ~(size_t)4095;
  prof_i_thread *const t =
      mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (t == MAP_FAILED) {
    prof_i_arena_note_refusal(errno);
    return NULL;
  }
  prof_i_port_wipe_on_fork(t, bytes);
  t->alive = PROF_I_ALIVE;
  t->tag = 1 + __atomic_fetch_add(&prof_i_threads.made, 1, __ATOMIC_RELAXED) % PROF_I_TAG_MAX;
  t->chunk = &t->full;
  t->fast = &prof_i_no_slot;
  t->next = prof_i_thread_first();
  while (!__atomic_compare_exchange_n(&prof_i_threads.first, &t->next, t, true, __ATOMIC_RELEASE,
                                      __ATOMIC_RELAXED)) {
  }
  return t;
}

prof_i_thread *prof_i_thread_take_free(void) {
  prof_i_thread *thread = thread_find_free(true);
  if (!thread && threads_free_ended()) thread = thread_find_free(true);
  if (!thread)
    thread = thread_find_free(false); /* this one needs a new slot, and there may be no room */
  return thread ? thread : thread_create();
}
