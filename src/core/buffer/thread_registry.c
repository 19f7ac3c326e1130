/* All threads that ever recorded: finding one, reusing its memory, and what is done to all of them.
   Lock-free, because a thread may attach in a signal handler. */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "../../base/port.h"
#include "../../base/this_thread.h"
#include "arena.h"
#include "session.h"
#include "thread_internal.h"

enum {
  EXITED_COUNT = 4096,
  SEARCH_AT_LEAST = 16, /* threads made: see threads_free_ended() */
  TID_BITS = 22         /* the kernel's own bound: PID_MAX_LIMIT */
};

prof_i_thread_registry prof_i_threads = {.process = 1, .search_at = SEARCH_AT_LEAST};

/* Serial and tid of threads whose place another one has taken. Work that they launched may be
   reported later. Any thread, relaxed. Not a member of prof_i_threads, which is initialised: .data
   is to stay small. */
static uint64_t exited_threads[EXITED_COUNT];

prof_i_thread *prof_i_thread_first(void) {
  return __atomic_load_n(&prof_i_threads.first, __ATOMIC_ACQUIRE);
}
uint64_t prof_i_thread_serial_of(uint64_t tid) {
  uint64_t latest = 0;
  for (const prof_i_thread *t = prof_i_thread_first(); t; t = t->next) {
    const uint64_t serial = __atomic_load_n(&t->serial, __ATOMIC_ACQUIRE);
    const bool is_ours = __atomic_load_n(&t->process, __ATOMIC_RELAXED) == prof_i_threads.process,
               is_line = prof_i_thread_kind_is_virtual(
                   __atomic_load_n(&t->thread_kind, __ATOMIC_RELAXED));
    if (is_ours && !is_line && serial > latest && __atomic_load_n(&t->tid, __ATOMIC_RELAXED) == tid)
      latest = serial;
  }
  for (uint32_t i = 0; !latest && i < EXITED_COUNT; i++) {
    const uint64_t one = __atomic_load_n(&exited_threads[i], __ATOMIC_RELAXED);
    if ((one & ((1u << TID_BITS) - 1)) == tid && one >> TID_BITS > latest) latest = one >> TID_BITS;
  }
  return latest;
}

/* Another takes its place. */
void prof_i_thread_remember_exited(const prof_i_thread *thread) {
  const uint64_t serial = __atomic_load_n(&thread->serial, __ATOMIC_RELAXED),
                 tid = __atomic_load_n(&thread->tid, __ATOMIC_RELAXED);
  const bool is_line =
      prof_i_thread_kind_is_virtual(__atomic_load_n(&thread->thread_kind, __ATOMIC_RELAXED));
  if (!serial || is_line || tid >> TID_BITS) return;
  const uint32_t place =
      __atomic_fetch_add(&prof_i_threads.exited_next, 1, __ATOMIC_RELAXED) % EXITED_COUNT;
  __atomic_store_n(&exited_threads[place], serial << TID_BITS | tid, __ATOMIC_RELAXED);
}

uint64_t prof_i_thread_process(void) { return prof_i_threads.process; }

uint64_t prof_i_thread_seen_count(void) {
  return prof_i_the_arena.base
             ? __atomic_load_n(&prof_i_arena_header()->thread_count, __ATOMIC_RELAXED)
             : 0;
}

uint64_t prof_i_thread_alive_count(void) {
  uint64_t count = 0;
  for (const prof_i_thread *t = prof_i_thread_first(); t; t = t->next)
    count += __atomic_load_n(&t->alive, __ATOMIC_RELAXED) == PROF_I_ALIVE &&
             !prof_i_thread_has_died(t) &&
             __atomic_load_n(&t->arena, __ATOMIC_RELAXED) == prof_i_the_arena.number;
  return count;
}

/* Frees an ended thread that the caller has taken. Past the gate. */
static void thread_free(prof_i_thread *thread) {
  __atomic_store_n(&thread->epoch, (uint32_t)PROF_I_NO_EPOCH, __ATOMIC_RELAXED);
  thread->fast = &prof_i_no_slot;
  prof_i_thread_reclaim(thread);
  __atomic_store_n(&thread->alive, PROF_I_FREE, __ATOMIC_RELEASE);
}

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

/* A thread of this process has the number now, and does not show it yet: whoever shows it has
   ended. Past the gate. */
void prof_i_threads_free_with(uint64_t pid, uint64_t tid) {
  for (prof_i_thread *t = prof_i_thread_first(); t; t = t->next) {
    uint64_t serial = __atomic_load_n(&t->life_of, __ATOMIC_ACQUIRE);
    if (!serial || __atomic_load_n(&t->life_pid, __ATOMIC_RELAXED) != pid ||
        __atomic_load_n(&t->tid, __ATOMIC_RELAXED) != tid)
      continue;
    if (__atomic_compare_exchange_n(&t->life_of, &serial, 0, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_RELAXED))
      thread_free(t);
  }
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
    thread_free(t);
    has_freed = true;
  }
  __atomic_store_n(&prof_i_threads.search_at, 2 * alive + SEARCH_AT_LEAST, __ATOMIC_RELEASE);
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

void prof_i_thread_slots_acquire(void) {
  __atomic_fetch_add(&prof_i_threads.looking, 1, __ATOMIC_SEQ_CST);
}
void prof_i_thread_slots_release(void) {
  __atomic_fetch_sub(&prof_i_threads.looking, 1, __ATOMIC_SEQ_CST);
}

void prof_i_thread_stop_all(void) {
  for (prof_i_thread *t = prof_i_thread_first(); t; t = t->next) {
    prof_i_head *const chunk = __atomic_exchange_n(&t->chunk, &t->full, __ATOMIC_ACQ_REL);
    if (chunk != &t->full) prof_i_thread_detach_chunk(t, chunk);
  }
}

void prof_i_thread_renew_all(void) {
  for (prof_i_thread *t = prof_i_thread_first(); t; t = t->next)
    __atomic_store_n(&t->epoch, (uint32_t)PROF_I_NO_EPOCH, __ATOMIC_RELAXED);
}

/* Repeats if the epoch has been raised meanwhile, because the other caller may have seen the thread
   before this store. */
void prof_i_thread_follow_epoch(uint32_t was) {
  for (prof_i_thread *t = prof_i_thread_first(); t; t = t->next)
    for (uint32_t from = was, to = prof_i_session_epoch();
         __atomic_compare_exchange_n(&t->epoch, &from, to, false, __ATOMIC_SEQ_CST,
                                     __ATOMIC_RELAXED) &&
         to != prof_i_session_epoch();
         to = prof_i_session_epoch())
      from = to;
}

void prof_i_thread_forget_all(void) {
  prof_i_threads.process++;
  prof_i_threads.looking = 0;
  if (prof_i_threads.exited_next)
    memset(exited_threads, 0, sizeof exited_threads); /* the parent's */
  prof_i_threads.exited_next = 0;
  prof_i_thread_forget_losses();
  prof_i_threads.made = 0;
  prof_i_threads.search_at = SEARCH_AT_LEAST;
  prof_i_threads.first = NULL; /* the parent's list; its memory stays, one page a thread */
  prof_i_this_thread = &prof_i_no_thread;
  if (prof_i_this_flags.virtual_thread) prof_i_this_flags.virtual_thread->outer = &prof_i_no_thread;
}
