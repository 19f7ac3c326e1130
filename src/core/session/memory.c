/* prof_memory_start(), prof_memory_stop() and prof_memory_reset(), as far as they begin or end a
   capture. src/memory has the events. */
#define _GNU_SOURCE
#include <errno.h>

#include "../../base/duplicate.h"
#include "../../base/log.h"
#include "../buffer/arena.h"
#include "../buffer/clock.h"
#include "../buffer/session.h"
#include "internal.h"
#include "level_request.h"
#include "memory_hooks.h"

int prof_i_control_start_memory(void) {
  const int saved = errno;
  int status = prof_i_duplicate_check();
  if (status != PROF_OK) return status;
  prof_i_control_lock_before_start();
  prof_i_child_begin();
  if (!prof_i_the_session.is_recording)
    status = prof_i_capture_restart(0, prof_i_capture_is_leftover(&prof_i_control.options));
  if (status == PROF_OK) prof_i_level_request_memory(true);
  prof_i_control_unlock();
  if (status == PROF_OK) PROF_I_MEMORY(begin);
  errno = saved;
  return status;
}

/* Lock held. */
static int check_memory(void) {
  if (prof_i_session_has_memory()) return PROF_OK;
  return prof_i_fail(PROF_E_NOT_RUNNING, "memory is not recorded: %s",
                     prof_i_the_session.is_recording ? "it was stopped" : "nothing is recording");
}

int prof_i_control_stop_memory(void) {
  const int saved = errno;
  prof_i_control_lock_to_clear();
  const int status = check_memory();
  const bool is_alone = status == PROF_OK && prof_i_arena_level() == 0 &&
                        prof_i_level_request_max() == 0 && prof_i_level_request_count() == 0;
  if (status == PROF_OK) {
    if (!prof_i_level_request_has_memory()) PROF_I_MEMORY(end);
    prof_i_level_request_memory(false);
  }
  if (is_alone) {
    if (prof_i_the_session.is_recording)
      prof_i_capture_stop();
    else
      prof_i_child_cancel();
    prof_i_level_request_end_all();
  }
  prof_i_control_unlock();
  errno = saved;
  return status;
}

/* While memory is not recorded, its use is unknown, so the sums are hidden until a start. Lock
   held. */
static void reset_memory(void) {
  if (prof_i_session_has_memory()) {
    PROF_I_MEMORY(reset);
  } else {
    PROF_I_MEMORY(hide_sums);
  }
  prof_i_header *const header = prof_i_arena_header();
  __atomic_store_n(&header->memory_reset_ticks, prof_i_clock_ticks(), __ATOMIC_RELAXED);
}

int prof_i_control_reset_memory(void) {
  const int saved = errno;
  int status = PROF_OK;
  prof_i_control_lock_to_clear();
  prof_i_child_begin();
  if (prof_i_the_arena.base)
    reset_memory();
  else if (!prof_i_the_session.child_waits) /* a child's own capture begins reset */
    status = prof_i_fail(PROF_E_NOT_RUNNING, "no memory has been recorded");
  prof_i_control_unlock();
  errno = saved;
  return status;
}
