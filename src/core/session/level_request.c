/* See level_request.h. */
#include "level_request.h"

#include <prof/profiler.h>

#include "../../base/log.h"

enum { REQUESTS_MAX = 1024 };

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

uint32_t prof_i_level_request_devices(void) {
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

int prof_i_level_request_put(const void *owner, bool is_there, uint32_t level, uint32_t devices,
                             bool is_recording, uint32_t level_now,
                             prof_i_level_request_step *step_out) {
  const level_request *const at = request_find(owner);
  const bool is_first = request_list.count == 0;
  *step_out = (prof_i_level_request_step){.kind = PROF_I_LEVEL_REQUEST_NOTHING,
                                          .owner = owner,
                                          .was_there = at != NULL,
                                          .before = at ? at->level : 0,
                                          .devices_before = at ? at->devices : 0};
  if (!at && is_there && request_list.count == REQUESTS_MAX)
    return prof_i_fail(PROF_E_TOO_LARGE, "%d record already, each for itself", REQUESTS_MAX);
  request_set(owner, is_there, level, devices);
  step_out->level = prof_i_level_request_max();
  if (level > step_out->before) {
    if (step_out->level > level_now) step_out->kind = PROF_I_LEVEL_REQUEST_LEVEL;
    step_out->is_fresh = is_first && !request_list.holds_program_data;
  } else if (request_list.count == 0 && !has_program_request()) {
    /* whatever the level is by now: a budget, or another process, may have set it */
    if (is_recording) step_out->kind = PROF_I_LEVEL_REQUEST_STOP;
    request_list.has_set = false;
  } else if (request_list.has_set &&
             level_now == request_list.set_level) { /* else somebody else has set it */
    /* 0 where all that is left is paused: scopes that are open end as they should */
    if (step_out->level < level_now) step_out->kind = PROF_I_LEVEL_REQUEST_LEVEL;
  }
  return PROF_OK;
}

void prof_i_level_request_finish(const prof_i_level_request_step *step, bool has_worked) {
  if (!has_worked) {
    request_set(step->owner, step->was_there, step->before, step->devices_before);
    return;
  }
  request_list.has_set = step->kind != PROF_I_LEVEL_REQUEST_STOP;
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
