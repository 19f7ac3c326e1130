/* prof_clear(): forgets at once what ended before it. The room comes back by steps, beside threads
   that record and read. See internal.h. */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <prof/profiler.h>

#include "../../base/error.h"
#include "../../base/port.h"
#include "../../base/process.h"
#include "../buffer/arena.h"
#include "../buffer/chunk.h"
#include "../buffer/clock.h"
#include "../buffer/meta.h"
#include "../buffer/session.h"
#include "../buffer/snapshot_pin.h"
#include "../buffer/thread.h"
#include "control.h"

/* One chunk after the other: the lock is held for each one's choice alone. Whoever was told
   meanwhile that the capture is full goes on once there is room. */
void prof_i_clear_free_deferred(void) {
  uint64_t arena = 0; /* where something has come back */
  for (;;) {
    PROF_I_HOLD_SIGNALS; /* a handler that forks must not leave a chunk to both processes */
    prof_i_control_lock();
    const bool is_past_gate = prof_i_the_arena.base && prof_i_arena_guard_enter();
    prof_i_head *const chunk = is_past_gate ? prof_i_chunk_take_deferred() : NULL;
    if (is_past_gate && arena == prof_i_the_arena.number) prof_i_chunk_reopen_arena();
    arena = chunk ? prof_i_the_arena.number : 0;
    prof_i_control_unlock();
    if (chunk) prof_i_free_list_put_chunk(chunk);
    if (is_past_gate) prof_i_arena_guard_exit();
    if (!chunk) return;
  }
}

/* Forgets all that ended before now; its room comes back later. Lock held. Returns the clear's
   number. 0: a thread does not leave the slow path. */
static uint64_t begin_clear(void) {
  if (!prof_i_arena_guard_drain()) return 0;
  prof_i_header *const header = prof_i_arena_header();
  prof_i_clock_write_pair(false);
  const uint64_t now = prof_i_clock_ticks();
  const uint64_t clear = prof_i_chunk_begin_clear();
  __atomic_store_n(&header->clear_ticks, now, __ATOMIC_SEQ_CST);
  const uint64_t words[] = {header->session, prof_i_arena_level(), 2,
                            header->session + !prof_i_session_is_recording()};
  prof_i_meta_write(PROF_I_KIND_SESSION, now, 0, words, 4);
  PROF_I_MEMORY(reset);
  prof_i_thread_flush_losses();
  prof_i_arena_guard_open();
  return clear;
}

/* A clear's steps. The lock is held between them alone. It is never taken past the gate: the thread
   that closes the gate has the lock. */
static void clear_by_steps(uint64_t arena, uint64_t clear) {
  prof_i_head *chunk = NULL;
  uint64_t number = 0, offset = 0;
  for (bool is_more = true; is_more;) {
    PROF_I_HOLD_SIGNALS;
    prof_i_control_lock();
    const bool is_there = prof_i_the_arena.base && prof_i_the_arena.number == arena;
    if (!is_there || !prof_i_arena_guard_enter()) { /* another arena: nothing of this one is left */
      prof_i_control_unlock();
      return;
    }
    if (chunk && prof_i_chunk_defer_free(chunk, number, clear)) chunk = NULL;
    prof_i_control_unlock();
    if (chunk) prof_i_free_list_put_chunk(chunk);
    is_more = prof_i_chunk_clear_next(&offset, &chunk, &number);
    prof_i_arena_guard_exit();
  }
  prof_i_control_lock();
  if (prof_i_the_arena.base && prof_i_the_arena.number == arena) prof_i_chunk_reopen_arena();
  prof_i_snapshot_pin_end_clear(arena);
  prof_i_control_unlock();
  prof_i_clear_free_deferred();
}

int prof_clear(void) {
  PROF_I_DISABLE_CANCEL;
  PROF_I_REFUSE_INTERRUPTED(PROF_E_BUSY);
  PROF_I_INSIDE;
  const int saved = errno;
  int status = PROF_OK;
  prof_i_control_lock_to_clear();
  /* Without a session it is one that a start is just beginning, and empty. */
  const bool is_any = prof_i_the_arena.base && prof_i_arena_header()->session != 0;
  const uint64_t arena = is_any ? prof_i_the_arena.number : 0;
  const uint64_t clear = arena ? begin_clear() : 0;
  if (clear)
    prof_i_level_request_cleared();
  else if (arena)
    status = prof_i_fail(PROF_E_BUSY, "cannot clear: %s", prof_i_arena_guard_busy_reason());
  prof_i_control_unlock();
  if (clear) clear_by_steps(arena, clear);
  errno = saved;
  return status;
}
