/* What the files of this folder share. control.c has start and stop. Other folders use
   control.h. */
#ifndef PROF_CORE_SESSION_INTERNAL_H
#define PROF_CORE_SESSION_INTERNAL_H

#include <prof/profiler.h>
#include <pthread.h>
#include <stdbool.h>

#include "../buffer/arena.h"
#include "control.h"

/* A change of the capture that released the lock for a time: a stop that waits for devices and the
   helper, or a start that creates a file. MADE: a child's file was created, and the next owner of
   the lock continues that start. */
typedef enum prof_i_transition {
  PROF_I_TRANSITION_NONE = 0,
  PROF_I_TRANSITION_STOP,
  PROF_I_TRANSITION_START,
  PROF_I_TRANSITION_MADE
} prof_i_transition;

/* The state of the control calls. Guarded by `lock`, unless a member says otherwise. */
typedef struct prof_i_control_state {
  /* Rank 1. control_lock.c and fork.c take it. */
  pthread_mutex_t lock;
  bool was_at_control; /* of the lock's owner, before it took the lock: is_at_control */
  int was_cancel;      /* the same: its cancel state */
  uint64_t was_mask;   /* the same: its signals, which the lock holds: port.h */
  /* prof_i_transition. Written under the lock, except MADE. Any thread reads it and may wait for it
     (futex) */
  uint32_t transition;
  bool prepared;  /* the process is prepared for a capture: see prof_i_control_prepare_process() */
  int fork_error; /* an errno: forks cannot be watched */

  /* Of the capture in force, or the last one. */
  prof_options options;   /* `path` points at the member `path` below */
  bool has_default_cap;   /* nobody said how large the capture may be */
  const char *started_by; /* the environment's variable that began it; NULL: the program did */
  char path[PROF_I_OUTPUT_ROOM];      /* expanded */
  char template_[PROF_I_OUTPUT_ROOM]; /* as given, but absolute: a child expands it anew */
  /* a child's capture in force: nobody has looked whether others have the output's name. See
     ../buffer/capture_file.h */
  bool is_unsettled;
  /* starts of the program join the running capture: see prof_i_control_join() */
  bool joins;
  bool is_of_environment; /* the environment began the first capture, and it has an output */

  /* Of the start at hand. Here, because a handler's stack, where a child's start comes, may have
     8 KiB. While the lock is released, the start keeps them. */
  char given[PROF_I_OUTPUT_ROOM], expanded[PROF_I_OUTPUT_ROOM];
  prof_i_arena fresh;         /* the new arena, until it is installed */
  int child_status;           /* why a forked child has no capture; 0: its start did not fail */
  int child_made;             /* the status of creating a child's file, for MADE */
  prof_options child_options; /* of the start that creates it */
} prof_i_control_state;
extern prof_i_control_state prof_i_control __attribute__((visibility("hidden")));

/* ---- control_lock.c ---- */

/* Takes the lock, and waits for nothing else. */
void prof_i_control_lock_now(void);
/* The same, and no start or stop is under way. */
void prof_i_control_lock_before_start(void);

prof_i_transition prof_i_control_transition(void);

/* Between these two the lock is released, so that other calls need not wait for slow work. Calls
   that change the capture do wait. Signal handlers still see this thread as the lock's owner. A
   start holds signals meanwhile, a stop does not. Lock held at the first call and after the
   second. */
typedef struct prof_i_lock_context {
  int was_cancel;
  uint64_t was_mask;
  bool was_there;
} prof_i_lock_context;
prof_i_lock_context prof_i_control_begin_transition(prof_i_transition what);
void prof_i_control_end_transition(const prof_i_lock_context *before);

/* ---- fork.c ---- */

/* Once, before anybody takes the lock. */
void prof_i_control_register_fork_handlers(void);
/* What a process needs before its first start. 0, or a status with its text. Lock held. */
int prof_i_control_prepare_process(void);

/* ---- fork.c: a child of fork() ---- */

/* Makes the capture that a child waits for, if any. Lock held; it is released meanwhile. */
void prof_i_child_begin(void);
/* Continues a child's start in the state MADE. Lock held. */
void prof_i_child_finish(void);
/* The child does not begin a capture at its first event any more. Lock held, not recording. */
void prof_i_child_cancel(void);

/* ---- capture.c: with the lock held, unless said ---- */

/* Replaces the options' path, a template, by the expanded path. 0, or a status with its text. */
int prof_i_capture_expand_template(prof_options *options);
/* The part of a start that uses the file system, which may be slow. is_new: creates the fresh
   arena. `expanded` gets a suffix if the name is taken. No lock: all other users of the same memory
   wait for the start. */
int prof_i_capture_make(const prof_options *options, char *expanded, bool is_new, bool is_child);
/* The same, with the lock held at the call and at the return. */
int prof_i_capture_make_unlocked(const prof_options *options, bool is_new, bool is_child);
/* Makes the fresh arena, created with these options, the arena in force, or discards it. The lock
   is released meanwhile, except in a child. */
int prof_i_capture_start_new(const prof_options *options, const char *template_,
                             const char *expanded, bool is_child);
/* Starts with complete options, whose path is a template. is_fresh: not into the old capture. Not
   recording. */
int prof_i_capture_start(const prof_options *given, bool is_fresh);
/* Starts with the options of the last start, if there was one. level 0: scopes stay off. */
int prof_i_capture_restart(int level, bool is_fresh);
/* Stops. Recording. The lock is released meanwhile. */
void prof_i_capture_stop(void);
/* Is the old capture in memory, and only of level requests that have ended? Nobody asked to keep
   it. */
bool prof_i_capture_is_leftover(const prof_options *options);
/* Recording has begun: tells devices and memory. Without the lock. */
void prof_i_capture_begin_observers(bool waits);

/* ---- level.c: devices ---- */

/* The hooks of src/device; NULL: the library has no devices. Any thread. */
const prof_i_device_hooks *prof_i_control_device_hooks(void);
/* Decides anew which devices record. by_options: prof_devices of the capture's options. Lock
   held. */
void prof_i_control_choose_devices(uint32_t by_options);

/* ---- level.c ---- */

/* Level requests of independent owners: see prof_level_want(). */

/* Sets the program's request: the level of prof_start() and similar calls; 0 after a stop. Requests
   of owners are separate. */
void prof_i_level_request_by_program(uint32_t level);
/* Sets the program's request for memory events: on from prof_memory_start() to prof_memory_stop().
   */
void prof_i_level_request_memory(bool is_on);
/* Ends both requests of the program. Returns whether there was one. */
bool prof_i_level_request_drop_program(void);
/* Notes that recording has stopped, with or without requests. */
void prof_i_level_request_end_all(void);
/* The number of owners' requests, including paused ones. */
uint32_t prof_i_level_request_count(void);
/* Whether at least one owner's request is not paused. Such a request also records memory events. */
bool prof_i_level_request_has_memory(void);
/* The highest level that is requested; 0: none. */
uint32_t prof_i_level_request_max(void);
/* Whether the capture has only data of owners' requests, all of which have ended. */
bool prof_i_level_request_all_ended(void);
/* Notes that the capture was cleared, or is new. */
void prof_i_level_request_cleared(void);
/* In a forked child: drops the owners' requests. *level has the level that the parent records, and
   gets that of the child. Returns false if the program itself has no request: the child records
   nothing. */
bool prof_i_level_request_forget(uint32_t *level);

/* 0 if the level is from `least` to 2, or a status with its text. */
int prof_i_control_check_level(int level, int least);
/* Changes the level of a running capture, and logs the change. Lock held. */
void prof_i_control_change_level(uint32_t level);

/* ---- clear.c ---- */

/* Frees chunks that a clear had to defer, because a reader held them. The caller was the last
   reader. Without the control lock. */
void prof_i_clear_free_deferred(void);

/* ---- identity.c ---- */

/* Fills the header's identity and writes the track names, in a new arena. A child has its parent's
   limits of memory and processors. Control lock held. Signal-safe for a child. */
void prof_i_identity_begin(void);

/* The rank in force; -1: none is known. */
int prof_i_identity_rank(void);

/* What prof_rank_set(), prof_process_set_name() and prof_track_set_name() say, here and in the
   capture in force. Valid arguments. Control lock held. */
void prof_i_identity_set_rank(int rank, int world_size);
void prof_i_identity_set_process_name(const char *name);
/* 0, or a status with its text: there are too many tracks. */
int prof_i_identity_set_track_name(prof_device device, uint64_t stream, const char *name);

/* ---- capture_name.c: the output of a program that joins the environment's capture ---- */

/* An absolute path, with marks. "": there is none any more. Control lock held, as for the others.
   */
void prof_i_joined_output_set(const char *path);

#endif
