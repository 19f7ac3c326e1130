/* The level that is in force, level requests, and preferred devices: what may change while a
   capture runs. */
#define _GNU_SOURCE
#include <errno.h>

#include "../../base/duplicate.h"
#include "../../base/log.h"
#include "../../base/reentry.h"
#include "../buffer/arena.h"
#include "../buffer/session.h"
#include "../record/change_log.h"
#include "../record/mute.h"
#include "budget.h"
#include "internal.h"
#include "level_request.h"

int prof_i_control_check_level(int level, int least) {
  if (level >= least && level <= 2) return PROF_OK;
  return prof_i_fail(PROF_E_LEVEL,
                     "level is %d; 1 records kernels and operators, 2 also the runtime around them",
                     level);
}

void prof_i_control_change_level(uint32_t level) {
  if (prof_i_mute_count() || prof_i_arena_level() != level) prof_i_budget_restart(true);
  const uint32_t before = prof_i_change_log_begin_level();
  prof_i_arena_set_level(level);
  prof_i_change_log_end_level(before, &(prof_i_change_entry){.reason = PROF_REASON_ASKED});
}

/* Lock held. */
static int apply_level_request(const void *who, int level, uint32_t requested_devices,
                               bool *has_begun_out) {
  prof_i_level_request_step step;
  const uint32_t level_now = prof_i_the_session.is_recording ? prof_i_arena_level() : 0;
  int status =
      prof_i_level_request_put(who, level != 0, level > 0 ? (uint32_t)level : 0, requested_devices,
                               prof_i_the_session.is_recording, level_now, &step);
  if (status != PROF_OK || step.kind == PROF_I_LEVEL_REQUEST_NOTHING) return status;
  *has_begun_out = level_now == 0;
  if (step.kind == PROF_I_LEVEL_REQUEST_STOP)
    prof_i_capture_stop();
  else if (prof_i_the_session.is_recording)
    prof_i_control_change_level(step.level);
  else
    status = prof_i_capture_restart((int)step.level, step.is_fresh && !prof_i_control.options.path);
  prof_i_level_request_finish(&step, status == PROF_OK);
  return status;
}

/* The requested devices have changed: starts those that are wanted now, and records what the others
   have done. */
static void update_devices(void) {
  if (!prof_i_control_device_hooks()) return;
  prof_i_control_device_hooks()->start(true);
  prof_i_control_device_hooks()->harvest();
}

void prof_i_control_prefer_devices(uint32_t wanted) {
  PROF_I_REFUSE_INTERRUPTED();
  const int saved = errno;
  if (prof_i_duplicate_check() != PROF_OK) return;
  prof_i_control_lock_now();
  prof_i_child_begin();
  const uint32_t before = prof_i_control_devices();
  prof_i_control_set_preferred_devices(wanted);
  prof_i_control_choose_devices(prof_i_control.options.devices);
  const bool wants_others = prof_i_the_session.is_recording &&
                            prof_i_control_transition() != PROF_I_TRANSITION_STOP &&
                            prof_i_control_devices() != before;
  prof_i_control_unlock();
  if (wants_others && prof_i_control_device_hooks()) prof_i_control_device_hooks()->start(false);
  errno = saved;
}

int prof_level_want_with(const void *who, int level, uint32_t requested_devices) {
  PROF_I_REFUSE_INTERRUPTED(PROF_E_BUSY);
  if (!who) return prof_i_fail(PROF_E_INVALID, "prof_level_want: who is NULL");
  if (requested_devices > PROF_DEVICES_MEMORY)
    return prof_i_fail(PROF_E_INVALID, "prof_level_want_with: devices is %u; 0 to 3 are known",
                       requested_devices);
  const int saved = errno;
  int status = level == PROF_LEVEL_PAUSED ? PROF_OK : prof_i_control_check_level(level, 0);
  if (status == PROF_OK) status = prof_i_duplicate_check();
  if (status != PROF_OK) return status;
  bool has_begun = false;
  prof_i_control_lock_before_start();
  prof_i_child_begin();
  const uint32_t before = prof_i_control_devices();
  status = apply_level_request(who, level, requested_devices, &has_begun);
  prof_i_control_choose_devices(prof_i_control.options.devices);
  const bool wants_others = prof_i_the_session.is_recording &&
                            prof_i_control_transition() != PROF_I_TRANSITION_STOP &&
                            prof_i_control_devices() != before;
  prof_i_control_unlock();
  if (status == PROF_OK && has_begun)
    prof_i_capture_begin_observers(true);
  else if (wants_others)
    update_devices();
  errno = saved;
  return status;
}

int prof_level_want(const void *who, int level) {
  return prof_level_want_with(who, level, PROF_DEVICES_DEFAULT);
}

int prof_level(void) { return (int)prof_i_arena_level(); }
