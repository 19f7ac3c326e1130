/* How the end of a thread is seen, and what it leaves. A thread's end waits for nobody: if the
   arena is being replaced, the next thread to attach cleans up. */
#define _GNU_SOURCE
#include <errno.h>
#include <prof/profiler.h>
#include <pthread.h>

#include "../../base/fault.h"
#include "../../base/port.h"
#include "../../base/process.h"
#include "arena.h"
#include "chunk.h"
#include "internal.h"
#include "ledger.h"
#include "observer.h"

/* Set when prof is loaded. */
static struct {
  pthread_key_t key;
  bool has_key, may_use_key; /* see make_key() */
} exit_watch PROF_I_WRITTEN_AT_LOAD;

/* The destructor of a pthread key sees a thread's end. The key is created when prof is loaded.
   glibc keeps the values of its first 32 keys in the thread itself; for any other key
   pthread_setspecific() allocates in each new thread. Then the thread locks a robust mutex instead,
   and keeps it. When the thread ends, the kernel marks the mutex, and other threads see that.
   musl's keys never allocate. ThreadSanitizer always gets the key: it believes a mutex to be locked
   that a dead thread held, or that a fork has wiped. */
#if defined(__GLIBC__) && !defined(PROF_I_TSAN)
enum { KEYS_IN_THREAD = 32 };
static bool key_is_cheap(pthread_key_t key) { return key < KEYS_IN_THREAD; }
#else
static bool key_is_cheap(pthread_key_t key) { return (void)key, true; }
#endif

static void thread_exit_hook(void *value);

static void __attribute__((constructor)) make_key(void) {
  if (!exit_watch.has_key)
    exit_watch.has_key = pthread_key_create(&exit_watch.key, thread_exit_hook) == 0;
  exit_watch.may_use_key = exit_watch.has_key && key_is_cheap(exit_watch.key);
}

static void thread_lock_life(prof_i_thread *thread) {
  pthread_mutexattr_t robust;
  pthread_mutexattr_init(&robust);
  pthread_mutexattr_setrobust(&robust, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&thread->life, &robust);
  pthread_mutex_lock(&thread->life);
  __atomic_store_n(&thread->life_pid, 0, __ATOMIC_RELAXED);
  __atomic_store_n(&thread->life_of, thread->serial, __ATOMIC_RELEASE);
}

/* The key's destructor does not see a thread that ends by the system call, or that attaches in the
   last round of destructors. Other threads see that its tid is gone. A process's first thread keeps
   its tid until the process ends. */
static void thread_show_tid(prof_i_thread *thread, uint64_t pid) {
#if !defined(PROF_I_TSAN) /* it does not see that the thread's stores come before */
  if (__atomic_load_n(&thread->tid, __ATOMIC_RELAXED) == pid) return;
  __atomic_store_n(&thread->life_pid, pid, __ATOMIC_RELAXED);
  __atomic_store_n(&thread->life_of, thread->serial, __ATOMIC_RELEASE);
#else
  (void)thread, (void)pid;
#endif
}

/* Marks the shown entries as ended with their thread, except those that another thread is ending.
   Returns how many it marked. */
static uint64_t mark_entries_ended(prof_i_thread_slot *slot, uint64_t depth) {
  uint64_t count = 0;
  for (uint64_t i = 1; i <= depth; i++) {
    uint64_t ticks = __atomic_load_n(&slot->open[i].ticks, __ATOMIC_RELAXED);
    while (prof_i_open_entry_is_open(ticks) && !prof_i_entry_is_taken(ticks))
      if (__atomic_compare_exchange_n(&slot->open[i].ticks, &ticks, ticks | PROF_I_OPEN_ENDED,
                                      false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
        count++;
        break;
      }
  }
  return count;
}

/* Empties the deep entries. Returns how many scopes were still open: another thread may end one at
   the same time. */
static uint64_t deep_clear(prof_i_open_entry *open, uint64_t count) {
  uint64_t standing = 0;
  for (uint64_t i = 0; i < count; i++)
    standing +=
        prof_i_open_entry_is_open(__atomic_exchange_n(&open[i].ticks, 0, __ATOMIC_ACQ_REL)) != 0;
  return standing;
}

/* Counts the scopes that the thread leaves open as lost. One store of the ledger makes them both
   lost and not open. */
static void end_open_scopes(prof_i_thread *thread) {
  prof_i_thread_slot *const slot = thread->slot;
  PROF_I_ANNOUNCE(entries_needed, thread); /* the thread may have ended in a handler */
  const uint64_t depth = slot->depth <= PROF_I_OPEN_COUNT ? slot->depth : 0;
  const uint64_t deep = thread->deep && slot->deep <= PROF_I_DEEP_COUNT ? slot->deep : 0;
  const uint64_t shown_count = mark_entries_ended(slot, depth);
  const uint64_t deep_count = deep ? deep_clear(thread->deep, deep) : 0;
  if (shown_count + deep_count)
    prof_i_ledger_lose_all(slot, PROF_LOSS_THREAD_ENDED, shown_count + deep_count, deep_count);
  prof_i_slot_clear_open(slot);
  prof_i_ledger_over(slot);
  slot->deep_gone = 0;
  prof_i_slot_set_deep(slot, 0);
}

/* Leaves the slot to the next thread. Its counts of losses stay. */
static void slot_vacate(prof_i_thread_slot *slot) {
  __atomic_store_n(&slot->serial, 0, __ATOMIC_RELAXED);
  slot->deep_gone = 0;
  prof_i_slot_set_deep(slot, 0);
  prof_i_slot_clear_open(slot);
}

/* See internal.h. */
void prof_i_thread_reclaim(prof_i_thread *thread) {
  if (!prof_i_the_arena.base) return;
  if (thread->arena != prof_i_the_arena.number) {
    if (thread->slot) prof_i_slot_write_left_out(thread->slot);
    return;
  }
  end_open_scopes(thread);
  prof_i_chunk_thread_exit(thread);
  slot_vacate(thread->slot);
}

/* See internal.h. */
void prof_i_thread_leave_as(prof_i_thread *thread, uint32_t alive) {
  __atomic_store_n(&thread->alive, alive, __ATOMIC_RELEASE);
  __atomic_fetch_add(&prof_i_threads.left_count, 1, __ATOMIC_RELEASE);
}

/* See internal.h. */
void prof_i_thread_free(prof_i_thread *thread) {
  __atomic_store_n(&thread->epoch, (uint32_t)PROF_I_NO_EPOCH, __ATOMIC_RELAXED);
  thread->fast = &prof_i_no_slot;
  prof_i_thread_reclaim(thread);
  prof_i_thread_leave_as(thread, PROF_I_FREE);
}

/* The calling thread records no more as this thread. Outside of the gate. If that is closed, the
   next thread to attach reclaims this one. */
static void thread_exit(prof_i_thread *thread) {
  PROF_I_HOLD_SIGNALS;
  if (!prof_i_thread_is_own(thread)) return;               /* a handler has forked this process */
  __atomic_store_n(&thread->life_of, 0, __ATOMIC_RELAXED); /* its end needs no watching any more */
  __atomic_store_n(&thread->epoch, (uint32_t)PROF_I_NO_EPOCH, __ATOMIC_RELAXED);
  PROF_I_SIGNAL_FENCE();
  prof_i_this_thread = &prof_i_no_thread;
  PROF_I_SIGNAL_FENCE();
  thread->fast = &prof_i_no_slot;
  uint32_t left_as = PROF_I_EXITED;
  if (prof_i_arena_guard_enter()) {
    if (prof_i_the_arena.base && thread->arena == prof_i_the_arena.number)
      prof_i_thread_refresh_name(thread);
    prof_i_thread_reclaim(thread);
    left_as = PROF_I_FAULT(NEVER_FREE) ? PROF_I_ALIVE : PROF_I_FREE;
    prof_i_arena_guard_exit();
  }
  prof_i_thread_leave_as(thread, left_as);
}

/* Set once, before the threads that need it begin anything. Release; pairs with the acquire in
   thread_exit_hook(). */
static void (*leave_first)(void);

void prof_i_thread_set_exit_callback(void (*leave)(void)) {
  __atomic_store_n(&leave_first, leave, __ATOMIC_RELEASE);
}

/* The key's destructor. A later destructor of this thread may record again. Then it attaches anew,
   as the same thread, and this function may be called again. */
static void thread_exit_hook(void *value) {
  const int saved = errno;
  prof_i_process_is_own(); /* else a child would end its parent's thread */
  prof_i_virtual_thread_enter(NULL);
  prof_i_thread *const thread = value;
  /* otherwise another thread may have it by now */
  if (prof_i_this_thread == thread && thread->process == prof_i_threads.process) {
    void (*const leave)(void) = __atomic_load_n(&leave_first, __ATOMIC_ACQUIRE);
    if (leave) leave();
    prof_i_this_flags.exited_or_refused = thread->serial;
    thread_exit(thread);
  }
  errno = saved;
}

void prof_i_thread_exit_again(void) {
  prof_i_thread *const thread = prof_i_this_thread;
  if (prof_i_this_flags.virtual_thread || !prof_i_is_attached(thread) || !thread->slot) return;
  if (thread->slot->depth == 0 && thread->slot->deep == 0) thread_exit(thread);
}

void prof_i_virtual_thread_end(prof_i_virtual_thread *virtual_thread) {
  prof_i_thread *const thread = virtual_thread->thread;
  if (!thread) return;
  virtual_thread->thread = NULL;
  prof_i_thread_adopt_name(virtual_thread->name);
  if (thread->process == prof_i_threads.process) thread_exit(thread);
}

void prof_i_virtual_thread_end_fiber(prof_i_virtual_thread *virtual_thread) {
  PROF_I_HOLD_SIGNALS; /* a handler's record would attach the thread anew */
  prof_i_process_is_own();
  prof_i_virtual_thread *const line_was = prof_i_this_flags.virtual_thread;
  prof_i_virtual_thread_enter(virtual_thread);
  if (prof_i_is_attached(prof_i_this_thread)) thread_exit(prof_i_this_thread);
  prof_i_virtual_thread_enter(line_was);
}

/* As thread_exit(), but the thread's name stays as it was last. Meanwhile no thread searches for
   ended ones: one that is taken here and not yet free would be missed, and the arena count as full.
   It does not wait for a search that is under way, which a handler may have interrupted. */
void prof_i_thread_reap_exited(void) {
  PROF_I_HOLD_SIGNALS;
  if (!prof_i_process_is_own()) return;
  uint32_t alive = 0;
  __atomic_fetch_add(&prof_i_threads.searches, 1, __ATOMIC_SEQ_CST);
  for (prof_i_thread *t = prof_i_thread_first(); t; t = t->next) {
    if (__atomic_load_n(&t->alive, __ATOMIC_ACQUIRE) != PROF_I_ALIVE) continue;
    if (!prof_i_thread_take_ended(t)) {
      alive++;
      continue;
    }
    uint32_t left_as = PROF_I_EXITED;
    __atomic_store_n(&t->epoch, (uint32_t)PROF_I_NO_EPOCH, __ATOMIC_RELAXED);
    t->fast = &prof_i_no_slot;
    if (prof_i_arena_guard_enter()) {
      prof_i_thread_reclaim(t);
      left_as = PROF_I_FREE;
      prof_i_arena_guard_exit();
    }
    prof_i_thread_leave_as(t, left_as);
  }
  prof_i_thread_end_search(alive, true);
}

void prof_i_thread_remove_exit_hook(void) {
  if (exit_watch.has_key) pthread_key_delete(exit_watch.key);
  exit_watch.has_key = exit_watch.may_use_key = false;
}

/* The kernel gave this tid to the calling thread, which does not show it yet. So a thread that
   shows it has ended, and is freed. Past the gate. */
static void threads_free_with(uint64_t pid, uint64_t tid) {
  for (prof_i_thread *t = prof_i_thread_first(); t; t = t->next) {
    uint64_t serial = __atomic_load_n(&t->life_of, __ATOMIC_ACQUIRE);
    if (!serial || __atomic_load_n(&t->life_pid, __ATOMIC_RELAXED) != pid ||
        __atomic_load_n(&t->tid, __ATOMIC_RELAXED) != tid)
      continue;
    if (__atomic_compare_exchange_n(&t->life_of, &serial, 0, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_RELAXED))
      prof_i_thread_free(t);
  }
}

void prof_i_thread_watch_exit(prof_i_thread *thread, uint64_t pid, uint64_t tid, bool is_in_vfork) {
  if (!exit_watch.may_use_key) {
    thread_lock_life(thread);
    return;
  }
  pthread_setspecific(exit_watch.key, thread);
  if (!is_in_vfork) threads_free_with(pid, tid);
  if (!is_in_vfork || !prof_i_port_has_thread_ended(pid, tid)) thread_show_tid(thread, pid);
}
