/* How a thread attaches: to the arena and session in force, for the first time or again, and when
   its fast path is open. See thread.h. It may happen inside a signal handler: no lock, no malloc.
   */
#define _GNU_SOURCE
#include "thread.h"

#include <unistd.h>

#include "../../base/port.h"
#include "../../base/process.h"
#include "../../base/this_thread.h"
#include "arena.h"
#include "chunk.h"
#include "clock.h"
#include "observer.h"
#include "session.h"
#include "thread_internal.h"

/* The fast path reads the counter inline, so it is open only if the counter is the clock. A slow
   thread has the epoch, too: see begin_in_gap() in scope_slow.c. */
static void open_fast_path(prof_i_thread *thread) {
  const bool fast = prof_i_clock_is_counter() && !(thread->is_slow && prof_i_thread_has_ended());
  thread->timing.left = 0;
  thread->fast =
      fast && !thread->is_slow && thread->slot->deep == 0 ? thread->slot : &prof_i_no_slot;
  PROF_I_SIGNAL_FENCE();
  uint32_t epoch;
  do { /* the epoch may be raised, and all threads updated, between the two */
    epoch = fast ? prof_i_session_epoch() : (uint32_t)PROF_I_NO_EPOCH;
    __atomic_store_n(&thread->epoch, epoch, __ATOMIC_SEQ_CST);
  } while (fast && epoch != prof_i_session_epoch());
}

static void forget_newest(prof_i_thread *thread) {
  prof_i_claim(&thread->newest.begun_count, 1);
  prof_i_claim(&thread->newest_block.begun_count, 1);
  __atomic_store_n(&thread->begun.count, 0, __ATOMIC_RELAXED);
}

void prof_i_thread_set_slow(prof_i_thread *thread, bool is_slow) {
  if (is_slow && !thread->is_slow)
    forget_newest(thread); /* the fast path does not note what it begins */
  thread->is_slow = is_slow;
  open_fast_path(thread);
}

void prof_i_thread_begin_deep(prof_i_thread *thread) { thread->fast = &prof_i_no_slot; }

/* Not always past the gate. Between any two of these lines a handler may move the thread to another
   arena, and open the fast path there. Then the old slot must not come back. */
void prof_i_thread_end_deep(prof_i_thread *thread) {
  if (!prof_i_clock_is_counter() || thread->is_slow) return;
  prof_i_thread_slot *from = &prof_i_no_slot, *slot;
  do {
    slot = __atomic_load_n(&thread->slot, __ATOMIC_RELAXED);
    prof_i_thread_slot *const to = slot->deep == 0 && !thread->timing.left ? slot : &prof_i_no_slot;
    if (!__atomic_compare_exchange_n(&thread->fast, &from, to, false, __ATOMIC_RELAXED,
                                     __ATOMIC_RELAXED))
      return;
    from = to;
  } while (__atomic_load_n(&thread->slot, __ATOMIC_RELAXED) != slot);
}

static bool thread_is_in_arena(const void *at) {
  const char *const base = prof_i_the_arena.base;
  return (const char *)at >= base && (const char *)at < base + prof_i_the_arena.cap_bytes;
}

/* Attaches the calling thread, which has no prof_i_thread yet. virtual_thread: NULL for a thread of
   the process. */
static prof_i_thread *thread_attach_new(const prof_i_virtual_thread *virtual_thread) {
  prof_i_thread *const thread = prof_i_thread_take_free();
  if (!thread) return NULL;
  /* A child of vfork() is the calling thread, but the kernel gives it other numbers. */
  const uint64_t pid = (uint64_t)prof_i_process_id();
  const bool is_in_vfork = (uint64_t)getpid() != pid;
  const uint64_t own_tid = is_in_vfork ? prof_i_port_tid_of_self() : prof_i_port_tid();
  const uint64_t tid = virtual_thread ? virtual_thread->handle : own_tid;
  prof_i_thread_remember_exited(thread);
  __atomic_store_n(&thread->serial, 0, __ATOMIC_RELAXED);
  __atomic_store_n(&thread->tid, tid, __ATOMIC_RELAXED);
  const uint64_t role_of_thread = tid == pid ? PROF_I_KIND_OF_MAIN : PROF_I_KIND_OF_THREAD;
  __atomic_store_n(&thread->thread_kind,
                   virtual_thread ? virtual_thread->thread_kind : role_of_thread, __ATOMIC_RELAXED);
  __atomic_store_n(&thread->process, prof_i_threads.process, __ATOMIC_RELAXED);
  const uint64_t again = virtual_thread ? 0 : prof_i_this_flags.exited_serial;
  __atomic_store_n(&thread->serial,
                   again ? again : __atomic_add_fetch(&prof_i_threads.serials, 1, __ATOMIC_RELAXED),
                   __ATOMIC_RELEASE);
  thread->next_bytes = prof_i_the_arena.chunk_bytes_min;
  thread->session = __atomic_load_n(&prof_i_arena_header()->session, __ATOMIC_ACQUIRE);
  /* the thread before may have jumped out of the code that set them */
  thread->is_text_busy = thread->is_held = false;
  thread->move.to = NULL;
  thread->moving_to_session = 0;
  PROF_I_ANNOUNCE(thread_attached, thread);
  thread->latest = 0;
  __atomic_store_n(&thread->chunk, &thread->full, __ATOMIC_RELAXED);
  const uint64_t detached_chunk = __atomic_load_n(&thread->detached_chunk, __ATOMIC_ACQUIRE);
  /* prof_stop() may have put it here while the previous thread ended. */
  if (detached_chunk && thread_is_in_arena(prof_i_chunk_word_address(detached_chunk)))
    prof_i_chunk_leave_partial(prof_i_chunk_reattach(thread));
  prof_i_thread_retire_chunks(thread);
  if (!prof_i_slot_give(thread, 0)) {
    __atomic_store_n(&thread->epoch, (uint32_t)PROF_I_NO_EPOCH, __ATOMIC_RELAXED);
    __atomic_store_n(&thread->alive, PROF_I_FREE, __ATOMIC_RELEASE);
    return NULL;
  }
  thread->is_slow = again != 0; /* every end of it takes the slow path */
  forget_newest(thread);
  open_fast_path(thread);
  prof_i_thread *none = &prof_i_no_thread;
  if (!__atomic_compare_exchange_n(&prof_i_this_thread, &none, thread, false, __ATOMIC_RELAXED,
                                   __ATOMIC_RELAXED)) {
    /* a handler has attached meanwhile: its thread counts, ours is freed */
    __atomic_store_n(&thread->slot->serial, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&thread->alive, PROF_I_FREE, __ATOMIC_RELEASE);
    return prof_i_this_thread;
  }
  if (virtual_thread) return thread;
  prof_i_thread_watch_exit(thread, pid, tid, is_in_vfork);
  return thread;
}

/* A scope of an older session must not end as a record of this one. Its entry is marked, and stays
   until its own end. The owner marks; another thread may be ending the scope at the same time. */
static void mark_if_old(prof_i_open_entry *open, uint64_t since) {
  uint64_t ticks = __atomic_load_n(&open->ticks, __ATOMIC_RELAXED);
  if (!prof_i_open_entry_is_open(ticks) || !prof_i_clock_is_before(ticks >> 4, since)) return;
  __atomic_compare_exchange_n(&open->ticks, &ticks, ticks | PROF_I_OPEN_OLD, false,
                              __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}
static void mark_old_scopes(prof_i_thread *thread, uint64_t since) {
  prof_i_thread_slot *const slot = thread->slot;
  for (uint64_t i = 1; i <= slot->depth && i <= PROF_I_OPEN_COUNT; i++)
    mark_if_old(&slot->open[i], since);
  for (uint64_t i = 0; thread->deep && i < slot->deep; i++) mark_if_old(&thread->deep[i], since);
}

/* Slot, chunk and retired mappings change together. A handler must neither see nor change a half of
   that. */
static bool move_to_current_arena(prof_i_thread *thread, const prof_i_header *header) {
  if (thread->moving_to_session == __atomic_load_n(&header->session, __ATOMIC_ACQUIRE))
    return false;
  thread->moving_to_session = __atomic_load_n(&header->session, __ATOMIC_ACQUIRE);
  PROF_I_SIGNAL_FENCE();
  if (thread->arena == prof_i_the_arena.number) { /* a handler has moved it just before */
    thread->moving_to_session = 0;
    return true;
  }
  prof_i_thread_retire_chunks(thread);
  __atomic_store_n(&thread->chunk, &thread->full, __ATOMIC_RELEASE);
  PROF_I_ANNOUNCE(thread_attached, thread);
  const bool has_slot =
      prof_i_slot_give(thread, __atomic_load_n(&header->session_ticks, __ATOMIC_RELAXED));
  thread->next_bytes = prof_i_the_arena.chunk_bytes_min;
  PROF_I_SIGNAL_FENCE();
  thread->moving_to_session = 0;
  return has_slot;
}

/* The thread is known, but from another session or arena. */
static prof_i_thread *attach_again(prof_i_thread *thread) {
  const prof_i_header *const header = prof_i_arena_header();
  if (thread->arena == prof_i_the_arena.number)
    mark_old_scopes(thread, __atomic_load_n(&header->session_ticks, __ATOMIC_RELAXED));
  else if (!move_to_current_arena(thread, header))
    return NULL;
  else
    thread->latest = 0; /* the clock may have changed */
  thread->session = __atomic_load_n(&header->session, __ATOMIC_ACQUIRE);
  open_fast_path(thread);
  return thread;
}

/* Attaches what has not recorded yet: the thread itself, or the fiber that it is in. */
static prof_i_thread *attach_calling_thread(prof_i_virtual_thread *virtual_thread) {
  prof_i_thread *const thread = thread_attach_new(virtual_thread);
  if (virtual_thread && thread) __atomic_store_n(&virtual_thread->thread, thread, __ATOMIC_RELAXED);
  return thread;
}

prof_i_thread *prof_i_thread_attach(void) {
  prof_i_thread *thread = prof_i_this_thread;
  if (!__atomic_load_n(&prof_i_the_arena.base, __ATOMIC_ACQUIRE)) return NULL;
  if (!prof_i_is_attached(thread)) {
    prof_i_virtual_thread *const virtual_thread = prof_i_this_flags.virtual_thread;
    if (virtual_thread) thread = prof_i_virtual_thread_owner(virtual_thread);
    if (!prof_i_is_attached(thread)) return attach_calling_thread(virtual_thread);
    prof_i_this_thread = thread; /* in a handler's scope, while the thread leaves a fiber */
  }
  const prof_i_header *const header = prof_i_arena_header();
  if (thread->arena == prof_i_the_arena.number &&
      thread->session == __atomic_load_n(&header->session, __ATOMIC_ACQUIRE))
    return thread;
  return attach_again(thread);
}

prof_i_thread *prof_i_virtual_thread_attach(prof_i_virtual_thread *virtual_thread) {
  if (!__atomic_load_n(&prof_i_the_arena.base, __ATOMIC_ACQUIRE)) return NULL;
  prof_i_thread_adopt_name(virtual_thread->name);
  prof_i_this_thread = virtual_thread->thread ? virtual_thread->thread : &prof_i_no_thread;
  prof_i_thread *const thread =
      virtual_thread->thread ? prof_i_thread_attach() : thread_attach_new(virtual_thread);
  if (thread) virtual_thread->thread = thread;
  return thread;
}
