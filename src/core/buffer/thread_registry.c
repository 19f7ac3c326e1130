/* The list of all threads that ever recorded: searches, checks for ended threads, operations on all
   threads, and losses. Lock-free, because a thread may attach in a signal handler.
   Also the threads' names: what prof_thread_set_name() said, else what the kernel calls them. */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <pthread.h>
#include <string.h>

#include "../../base/port.h"
#include "../../base/process.h"
#include "arena.h"
#include "internal.h"
#include "ledger.h"
#include "session.h"
#include "thread.h"

/* ---- losses and stray ends ---- */

/* A loss is counted in the thread's slot. Without a slot it is counted in the header, and while the
   arena must not be touched, in this file. */

/* Any thread, relaxed. prof_i_thread_flush_losses() moves it into the arena. */
static uint64_t unattributed[PROF_I_LOSS_WORDS];

void prof_i_thread_lose(prof_i_thread *thread, int loss, uint64_t count) {
  if (prof_i_is_attached(thread) && thread->slot && thread->arena == prof_i_the_arena.number &&
      prof_i_the_arena.base)
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

/* In a forked child: the parent counts these losses. */
static void thread_forget_losses(void) { memset(unattributed, 0, sizeof unattributed); }

/* ---- all threads ---- */

enum {
  EXITED_COUNT = 4096,
  TID_BITS = 22 /* the kernel's own bound: PID_MAX_LIMIT */
};

/* Serial and tid of threads whose place another one has taken. Work that they launched may be
   reported later. Any thread, relaxed. Not a member of prof_i_threads, which is initialised: .data
   is to stay small. */
static uint64_t exited_threads[EXITED_COUNT];

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

bool prof_i_thread_is_own(const prof_i_thread *thread) {
  return prof_i_process_is_own() &&
         PROF_I_LIKELY(__atomic_load_n(&thread->process, __ATOMIC_RELAXED) ==
                       prof_i_threads.process);
}

uint64_t prof_i_thread_process(void) { return prof_i_threads.process; }

uint64_t prof_i_thread_seen_count(void) {
  return prof_i_the_arena.base
             ? __atomic_load_n(&prof_i_arena_header()->thread_count, __ATOMIC_RELAXED)
             : 0;
}

/* The kernel has marked the robust mutex that the thread held. A thread with a key has no such
   mutex: see thread_exit.c. */
#if defined(__GLIBC__) && !defined(PROF_I_TSAN)
static bool is_owner_dead(const pthread_mutex_t *life) {
  return (uint32_t)__atomic_load_n(&life->__data.__lock, __ATOMIC_ACQUIRE) & FUTEX_OWNER_DIED;
}
#else
static bool is_owner_dead(const pthread_mutex_t *life) { return (void)life, false; }
#endif

/* Does not ask for its tid, which takes a system call. */
bool prof_i_thread_has_died(const prof_i_thread *thread) {
  return __atomic_load_n(&thread->life_of, __ATOMIC_ACQUIRE) &&
         !__atomic_load_n(&thread->life_pid, __ATOMIC_RELAXED) && is_owner_dead(&thread->life);
}

static bool thread_is_over(const prof_i_thread *thread) {
  const uint64_t pid = __atomic_load_n(&thread->life_pid, __ATOMIC_RELAXED);
  if (!pid) return is_owner_dead(&thread->life);
  return prof_i_port_has_thread_ended(pid, __atomic_load_n(&thread->tid, __ATOMIC_RELAXED));
}

/* The exchange fails if another caller was faster, or another thread has the place by now. */
bool prof_i_thread_take_ended(prof_i_thread *thread) {
  uint64_t serial = __atomic_load_n(&thread->life_of, __ATOMIC_ACQUIRE);
  return serial && thread_is_over(thread) &&
         __atomic_compare_exchange_n(&thread->life_of, &serial, 0, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED);
}

/* See internal.h. Each try to attach takes a serial. */
static void plan_search(uint32_t alive, bool has_freed) {
  const uint64_t serials = __atomic_load_n(&prof_i_threads.serials, __ATOMIC_RELAXED);
  __atomic_store_n(&prof_i_threads.search_serial, serials + 1 + (has_freed ? alive / 8 : alive),
                   __ATOMIC_RELAXED);
  __atomic_store_n(&prof_i_threads.search_at, 2 * alive + PROF_I_THREAD_SEARCH_MIN,
                   __ATOMIC_RELEASE);
}

void prof_i_thread_end_search(uint32_t alive, bool has_freed) {
  plan_search(alive, has_freed);
  __atomic_fetch_sub(&prof_i_threads.searches, 1, __ATOMIC_SEQ_CST);
}

uint64_t prof_i_thread_alive_count(void) {
  uint64_t count = 0;
  for (const prof_i_thread *t = prof_i_thread_first(); t; t = t->next)
    count += __atomic_load_n(&t->alive, __ATOMIC_RELAXED) == PROF_I_ALIVE &&
             !prof_i_thread_has_died(t) &&
             __atomic_load_n(&t->arena, __ATOMIC_RELAXED) == prof_i_the_arena.number;
  return count;
}

void prof_i_thread_slots_acquire(void) {
  __atomic_fetch_add(&prof_i_threads.looking, 1, __ATOMIC_SEQ_CST);
}
void prof_i_thread_slots_release(void) {
  __atomic_fetch_sub(&prof_i_threads.looking, 1, __ATOMIC_SEQ_CST);
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

/* A handler may have forked in the middle of a call. That goes on in the child, and finds no chunk
   to write to. */
static void forget_interrupted(prof_i_thread *thread) {
  if (!prof_i_is_attached(thread)) return;
  thread->fast = NULL;
  __atomic_store_n(&thread->epoch, (uint32_t)PROF_I_NO_EPOCH, __ATOMIC_RELAXED);
  __atomic_store_n(&thread->chunk, &thread->full, __ATOMIC_RELAXED);
  thread->detached_chunk = thread->previous_chunk = 0;
}

void prof_i_thread_forget_all(void) {
  prof_i_threads.process++;
  prof_i_threads.looking = 0;
  if (prof_i_threads.exited_next)
    memset(exited_threads, 0, sizeof exited_threads); /* the parent's */
  prof_i_threads.exited_next = 0;
  thread_forget_losses();
  prof_i_threads.made = 0;
  plan_search(0, true);
  prof_i_threads.searches = 0;
  prof_i_threads.first = NULL; /* the parent's list; its memory stays, a page or two a thread */
  forget_interrupted(prof_i_this_thread);
  prof_i_this_thread = &prof_i_no_thread;
  if (prof_i_this_flags.virtual_thread) prof_i_this_flags.virtual_thread->outer = &prof_i_no_thread;
}

/* The name of prof_thread_set_name(), which may be called before the first scope, or between
   captures. The definition repeats the TLS model, because gcc does not take it from the
   declaration. */
static __thread _Alignas(8) char kept_name[PROF_I_NAME_BYTES]
    __attribute__((tls_model("initial-exec")));

void prof_i_thread_copy_name(char *to, const char *from) {
  uint64_t *const out = (uint64_t *)(void *)to;
  const uint64_t *const in = (const uint64_t *)(const void *)from;
  for (int i = 0; i < PROF_I_NAME_BYTES / 8; i++)
    __atomic_store_n(out + i, __atomic_load_n(in + i, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
}

/* Waits while a reader copies the kernel's name, which takes some ns. If the reader is preempted
   meanwhile, the old name may stay until the next chunk. */
void prof_i_thread_write_name(prof_i_thread *thread, prof_i_thread_slot *slot) {
  enum { TRIES = 1000 };
  _Alignas(8) char name[PROF_I_NAME_BYTES];
  const char *const kept =
      prof_i_this_flags.virtual_thread ? prof_i_this_flags.virtual_thread->name : kept_name;
  __atomic_store_n(&thread->is_named, kept[0] != '\0', __ATOMIC_SEQ_CST);
  for (int i = 0; i < TRIES && __atomic_load_n(&thread->is_being_named, __ATOMIC_SEQ_CST); i++) {
  }
  if (!kept[0]) prof_i_port_thread_name(name, sizeof name);
  prof_i_thread_copy_name(slot->name, kept[0] ? kept : name);
}

void prof_i_thread_refresh_name(prof_i_thread *thread) {
  prof_i_thread_write_name(thread, thread->slot);
}

/* Retries if the slot was given to another thread meanwhile. */
static void refresh_name_of(prof_i_thread *thread) {
  _Alignas(8) char name[PROF_I_NAME_BYTES];
  prof_i_thread_slot *const slot = prof_i_thread_get_slot(thread);
  for (uint64_t serial = 0, now; slot; serial = now) {
    now = __atomic_load_n(&slot->serial, __ATOMIC_ACQUIRE);
    if (now == 0 || now == serial || __atomic_load_n(&thread->is_named, __ATOMIC_RELAXED)) return;
    const uint64_t tid = __atomic_load_n(&slot->tid, __ATOMIC_RELAXED);
    if (!prof_i_port_name_of_thread(tid, name, sizeof name)) return;
    __atomic_store_n(&thread->is_being_named, 1, __ATOMIC_SEQ_CST);
    if (!__atomic_load_n(&thread->is_named, __ATOMIC_SEQ_CST))
      prof_i_thread_copy_name(slot->name, name);
    __atomic_store_n(&thread->is_being_named, 0, __ATOMIC_SEQ_CST);
  }
}

void prof_i_thread_refresh_names(uint64_t arena) {
  prof_i_thread_slots_acquire();
  for (prof_i_thread *t = prof_i_thread_first(); t; t = t->next)
    if (__atomic_load_n(&t->alive, __ATOMIC_ACQUIRE) == PROF_I_ALIVE &&
        __atomic_load_n(&t->arena, __ATOMIC_RELAXED) == arena)
      refresh_name_of(t);
  prof_i_thread_slots_release();
}

void prof_i_thread_adopt_name(const char *name) { memcpy(kept_name, name, sizeof kept_name); }

void prof_i_thread_store_own_name(const char *name) {
  char fresh[PROF_I_NAME_BYTES] = {0};
  memcpy(fresh, name, strnlen(name, PROF_I_NAME_BYTES - 1));
  prof_i_virtual_thread *const virtual_thread = prof_i_this_flags.virtual_thread;
  memcpy(virtual_thread ? virtual_thread->name : kept_name, fresh, sizeof fresh);
  prof_i_thread *const thread = prof_i_this_thread;
  if (prof_i_is_attached(thread) && thread->slot) prof_i_thread_refresh_name(thread);
}
