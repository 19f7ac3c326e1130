/* Level requests of independent owners: see prof_level_want(). This file decides what to do, and
   level.c does it. All with the control lock held. */
#ifndef PROF_CORE_SESSION_LEVEL_REQUEST_H
#define PROF_CORE_SESSION_LEVEL_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

typedef enum prof_i_level_request_action {
  PROF_I_LEVEL_REQUEST_NOTHING,
  PROF_I_LEVEL_REQUEST_LEVEL,
  PROF_I_LEVEL_REQUEST_STOP
} prof_i_level_request_action;

typedef struct prof_i_level_request_step {
  prof_i_level_request_action kind;
  uint32_t level;    /* of PROF_I_LEVEL_REQUEST_LEVEL */
  bool is_fresh;     /* a recording that begins does so in another capture */
  const void *owner; /* and what he wanted before: it is in force again when the step fails */
  bool was_there;
  uint32_t before, devices_before;
} prof_i_level_request_step;

/* Sets the owner's request, a level and prof_devices. is_there is false, with level 0: the request
   ends. It is true with level 0: the request pauses. level_now is in force. It is 0 if nothing is
   recording, or only memory. The caller does the step, unless it is NOTHING, and then calls
   prof_i_level_request_finish(). 0 or PROF_E_TOO_LARGE. */
int prof_i_level_request_put(const void *owner, bool is_there, uint32_t level, uint32_t devices,
                             bool is_recording, uint32_t level_now,
                             prof_i_level_request_step *step_out);
void prof_i_level_request_finish(const prof_i_level_request_step *step, bool has_worked);

/* A start was asked for by name, or one of memory, beside whatever level, or the end of that. */
void prof_i_level_request_by_program(uint32_t level);
void prof_i_level_request_memory(bool is_on);
/* The end of both. Had anybody asked? */
bool prof_i_level_request_drop_program(void);
/* Nothing is recording any more, whatever requests there are. */
void prof_i_level_request_end_all(void);
/* The number of requests, with the paused ones. */
uint32_t prof_i_level_request_count(void);
bool prof_i_level_request_has_memory(void);
/* What anybody wants. */
uint32_t prof_i_level_request_max(void);
/* The highest prof_devices of the requests that are not paused. A request without one has the
   default. */
uint32_t prof_i_level_request_devices(void);
/* Is all that stands in the capture of wishes that are gone? */
bool prof_i_level_request_all_ended(void);
/* The capture has been cleared, or is a fresh one. */
void prof_i_level_request_cleared(void);
/* A forked child: nobody here wants anything yet. *level is what the parent recorded, and becomes
   what goes on: what was asked for. False: nothing does. */
bool prof_i_level_request_forget(uint32_t *level);

#endif
