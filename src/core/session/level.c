/* The settings that may change while a capture runs: the current level, level requests and
   preferred devices. See internal.h and control.h. */
#define _GNU_SOURCE

#include <errno.h>
#include <prof/profiler.h>

#include "../../base/error.h"
#include "../../base/port.h"
#include "../../base/process.h"
#include "../buffer/arena.h"
#include "../buffer/session.h"
#include "../record/change_log.h"
#include "../record/mute.h"
#include "control.h"
#include "internal.h"

/* ---- requests ---- */

/* This section decides on the next step. The section `the level in force` executes it. */

enum { REQUESTS_MAX = 1024 };

typedef enum level_request_action {
  LEVEL_REQUEST_NOTHING,
  LEVEL_REQUEST_LEVEL,
  LEVEL_REQUEST_STOP
} level_request_action;

typedef struct level_request_step {
  level_request_action kind;
  uint32_t level;    /* of LEVEL_REQUEST_LEVEL */
  bool is_fresh;     /* a recording that begins does so in another capture */
  const void *owner; /* and what he wanted before: it is in force again when the step fails */
  bool was_there;
  uint32_t before, devices_before;
} level_request_step;

typedef struct level_request {
  const void *owner;
  uint32_t level;
  uint32_t devices; /* prof_devices */
} level_request;

static struct {
  level_request requests[REQUESTS_MAX]; /* level 0: paused */
  uint32_t count;
  bool has_set; /* the level in force, set_level, is theirs to lower */
  uint32_t set_level;
  uint32_t program_level;  /* by prof_start() and its kin; 0 after a stop */
  bool program_memory;     /* by prof_memory_start(); false after a stop */
  bool holds_program_data; /* what was asked for stands in the capture */
  bool holds_request_data; /* and what was recorded for a wish */
} request_list;

static bool has_program_request(void) {
  return request_list.program_level || request_list.program_memory;
}

static level_request *request_find(const void *owner) {
  for (uint32_t i = 0; i < request_list.count; i++)
    if (request_list.requests[i].owner == owner) return &request_list.requests[i];
  return NULL;
}

static void request_set(const void *owner, bool is_there, uint32_t level, uint32_t devices) {
  level_request *const at = request_find(owner);
  if (at && is_there)
    *at = (level_request){owner, level, devices};
  else if (at)
    *at = request_list.requests[--request_list.count];
  else if (is_there)
    request_list.requests[request_list.count++] = (level_request){owner, level, devices};
}

uint32_t prof_i_level_request_max(void) {
  uint32_t level = request_list.program_level;
  for (uint32_t i = 0; i < request_list.count; i++)
    if (request_list.requests[i].level > level) level = request_list.requests[i].level;
  return level;
}

/* As they weigh: scopes alone, the default, records too, memory too. */
static uint32_t device_rank_of(uint32_t devices) {
  return devices == PROF_DEVICES_SCOPES ? 0 : devices == PROF_DEVICES_DEFAULT ? 1 : devices;
}

/* The highest prof_devices of the requests that are not paused. A request without one has the
   default. */
static uint32_t level_request_devices(void) {
  bool is_any = has_program_request();
  uint32_t most = is_any ? PROF_DEVICES_DEFAULT : PROF_DEVICES_SCOPES;
  for (uint32_t i = 0; i < request_list.count; i++) {
    if (!request_list.requests[i].level) continue;
    is_any = true;
    if (device_rank_of(request_list.requests[i].devices) > device_rank_of(most))
      most = request_list.requests[i].devices;
  }
  return is_any ? most : PROF_DEVICES_DEFAULT;
}

/* Sets the owner's request, a level and prof_devices. is_there is false, with level 0: the request
   ends. It is true with level 0: the request pauses. level_now is in force. It is 0 if nothing is
   recording, or only memory. The caller does the step, unless it is NOTHING, and then calls
   level_request_finish(). 0 or PROF_E_TOO_LARGE. */
static int level_request_put(const void *owner, bool is_there, uint32_t level, uint32_t devices,
                             bool is_recording, uint32_t level_now, level_request_step *step_out) {
  const level_request *const at = request_find(owner);
  const bool is_first = request_list.count == 0;
  *step_out = (level_request_step){.kind = LEVEL_REQUEST_NOTHING,
                                   .owner = owner,
                                   .was_there = at != NULL,
                                   .before = at ? at->level : 0,
                                   .devices_before = at ? at->devices : 0};
  if (!at && is_there && request_list.count == REQUESTS_MAX)
    return prof_i_fail(PROF_E_TOO_LARGE, "%d record already, each for itself", REQUESTS_MAX);
  request_set(owner, is_there, level, devices);
  step_out->level = prof_i_level_request_max();
  if (level > step_out->before) {
    if (step_out->level > level_now) step_out->kind = LEVEL_REQUEST_LEVEL;
    step_out->is_fresh = is_first && !request_list.holds_program_data;
  } else if (request_list.count == 0 && !has_program_request()) {
    /* whatever the level is by now: a budget, or another process, may have set it */
    if (is_recording) step_out->kind = LEVEL_REQUEST_STOP;
    request_list.has_set = false;
  } else if (request_list.has_set &&
             level_now == request_list.set_level) { /* else somebody else has set it */
    /* 0 where all that is left is paused: scopes that are open end as they should */
    if (step_out->level < level_now) step_out->kind = LEVEL_REQUEST_LEVEL;
  }
  return PROF_OK;
}

static void level_request_finish(const level_request_step *step, bool has_worked) {
  if (!has_worked) {
    request_set(step->owner, step->was_there, step->before, step->devices_before);
    return;
  }
  request_list.has_set = step->kind != LEVEL_REQUEST_STOP;
  request_list.set_level = step->level;
  request_list.holds_request_data |= request_list.has_set;
}

/* If there are requests, the highest is in force from now on. */
static void update_level_set(void) {
  request_list.has_set = request_list.count > 0;
  request_list.set_level = prof_i_level_request_max();
}

void prof_i_level_request_by_program(uint32_t level) {
  request_list.program_level = level;
  request_list.holds_program_data |= level != 0;
  update_level_set();
}

void prof_i_level_request_memory(bool is_on) {
  request_list.program_memory = is_on;
  request_list.holds_program_data |= is_on;
}

bool prof_i_level_request_drop_program(void) {
  const bool was_asked = has_program_request();
  request_list.program_level = 0;
  request_list.program_memory = false;
  update_level_set();
  return was_asked;
}

void prof_i_level_request_end_all(void) { request_list.has_set = false; }

uint32_t prof_i_level_request_count(void) { return request_list.count; }

bool prof_i_level_request_has_memory(void) {
  for (uint32_t i = 0; i < request_list.count; i++)
    if (request_list.requests[i].level) return true;
  return false;
}

bool prof_i_level_request_all_ended(void) {
  return request_list.count == 0 && request_list.holds_request_data &&
         !request_list.holds_program_data;
}

void prof_i_level_request_cleared(void) {
  request_list.holds_program_data = has_program_request();
  request_list.holds_request_data = request_list.has_set;
}

bool prof_i_level_request_forget(uint32_t *level) {
  if (!has_program_request())
    *level = 0;
  else if (request_list.has_set && *level == request_list.set_level)
    *level = request_list.program_level; /* else somebody else has set it */
  request_list.count = 0;
  request_list.has_set = false;
  request_list.holds_program_data = has_program_request();
  request_list.holds_request_data = false;
  return has_program_request();
}

/* ---- devices: src/device, which core does not know, sets hooks here ---- */

/* Set once, from any thread; NULL: the library has no devices. */
static const prof_i_device_hooks *device_hooks PROF_I_WRITTEN_AT_LOAD;

static struct {
  uint32_t requested;          /* prof_devices. Written under the control lock. Atomic, relaxed */
  uint32_t preferred;          /* where neither options nor level requests name devices. The lock */
  prof_i_device_warning *warn; /* set by any thread. Atomic, relaxed */
} device_choice;

PROF_I_COLD void prof_i_control_set_devices(const prof_i_device_hooks *hooks) {
  __atomic_store_n(&device_hooks, hooks, __ATOMIC_RELEASE);
}

const prof_i_device_hooks *prof_i_control_device_hooks(void) {
  return __atomic_load_n(&device_hooks, __ATOMIC_ACQUIRE);
}

void prof_i_control_resolve_devices(void) {
  if (prof_i_control_device_hooks()) prof_i_control_device_hooks()->resolve();
}

void prof_i_control_set_device_warning(prof_i_device_warning *warn) {
  __atomic_store_n(&device_choice.warn, warn, __ATOMIC_RELAXED);
}
void prof_i_control_device_warning(char *to, size_t room) {
  prof_i_device_warning *const warn = __atomic_load_n(&device_choice.warn, __ATOMIC_RELAXED);
  if (warn) warn(to, room);
}

uint32_t prof_i_control_devices(void) {
  return __atomic_load_n(&device_choice.requested, __ATOMIC_RELAXED);
}

/* The options decide, then the level requests, then the preference of a vendor's library that loads
   prof. */
void prof_i_control_choose_devices(uint32_t by_options) {
  const uint32_t said = by_options ? by_options : level_request_devices();
  __atomic_store_n(&device_choice.requested, said ? said : device_choice.preferred,
                   __ATOMIC_RELAXED);
}

/* Those that record where neither options nor level requests name devices. Lock held. */
static void control_set_preferred_devices(uint32_t wanted) { device_choice.preferred = wanted; }

/* ---- the level in force ---- */

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
  level_request_step step;
  const uint32_t level_now = prof_i_the_session.is_recording ? prof_i_arena_level() : 0;
  int status =
      level_request_put(who, level != 0, level > 0 ? (uint32_t)level : 0, requested_devices,
                        prof_i_the_session.is_recording, level_now, &step);
  if (status != PROF_OK || step.kind == LEVEL_REQUEST_NOTHING) return status;
  *has_begun_out = level_now == 0;
  if (step.kind == LEVEL_REQUEST_STOP)
    prof_i_capture_stop();
  else if (prof_i_the_session.is_recording)
    prof_i_control_change_level(step.level);
  else
    status = prof_i_capture_restart((int)step.level, step.is_fresh && !prof_i_control.options.path);
  level_request_finish(&step, status == PROF_OK);
  return status;
}

/* The requested devices have changed: starts those that are wanted now, and records what the others
   have done. */
static void update_devices(void) {
  if (!prof_i_control_device_hooks()) return;
  prof_i_control_device_hooks()->start(true);
  prof_i_control_device_hooks()->resolve();
}

void prof_i_control_prefer_devices(uint32_t wanted) {
  PROF_I_REFUSE_INTERRUPTED();
  const int saved = errno;
  if (prof_i_duplicate_check() != PROF_OK) return;
  prof_i_control_lock_now();
  prof_i_child_begin();
  const uint32_t before = prof_i_control_devices();
  control_set_preferred_devices(wanted);
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
