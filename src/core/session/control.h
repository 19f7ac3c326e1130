/* The life of a capture: start, stop, and what a forked child does. The control lock has rank 1,
   and is the only lock of core. Under it, files are opened and memory is mapped, but no user's
   function is called. clear.c and arena_view.h have what others do with the capture. */
#ifndef PROF_CORE_SESSION_CONTROL_H
#define PROF_CORE_SESSION_CONTROL_H

#include <prof/profiler.h>
#include <stdbool.h>

/* As prof_start_with(), for the environment. variable: the one that asked for the capture, a
   literal. A program's own start gets an error that names it. options->level 0: only memory is
   recorded. */
int prof_i_control_start_environment(const prof_options *options, const char *variable);

/* prof_memory_start(), prof_memory_stop() and prof_memory_reset(). */
int prof_i_control_start_memory(void);
int prof_i_control_stop_memory(void);
int prof_i_control_reset_memory(void);

/* joins: later starts of the program join the running capture, or the environment's. Their path is
   then the program's own output, for prof_dump(NULL). False: prof_dump(NULL) writes the
   environment's output again. */
void prof_i_control_join(bool joins);

/* Why this forked child, whose parent recorded, has no capture. "": it has one, or needed none.
   Returns `to`. Control lock held. */
const char *prof_i_control_no_capture_reason(char *to, size_t room);

/* Where prof_dump(NULL) writes, expanded. False: nowhere. */
bool prof_i_output_path(char *to, size_t room);

/* After a clean dump: removes the capture file, unless it is to be kept or is being recorded into.
   */
void prof_i_capture_dumped(void);

/* Renames the capture file to the output's name, instead of copying it. 0, or a status with its
   text: then the file stays as it is. PROF_E_RUNNING: it is being recorded into. */
int prof_i_capture_rename(const char *output);

/* Takes and releases the control lock. try_lock is for callers that the lock's owner may wait for.
   */
void prof_i_control_lock(void);
bool prof_i_control_try_lock(void);
void prof_i_control_unlock(void);

/* The same lock: a stop that is under way is over by then. */
void prof_i_control_lock_to_clear(void);

/* Records what devices have done by now. Waits a moment for that, without any lock. */
void prof_i_control_resolve_devices(void);

/* The process ends: recording stops, whatever level requests there are. */
void prof_i_control_end_process(void);

/* prof_devices of the last start. Any thread. */
uint32_t prof_i_control_devices(void);

/* See prof_i_prefer_devices_1() of <prof/device.h>. */
void prof_i_control_prefer_devices(uint32_t wanted);

/* Hooks of src/device, which core does not know. Called without any lock. */
typedef struct prof_i_device_hooks {
  /* recording has begun; waits: for back ends, if they are wanted */
  void (*start)(bool waits);
  /* records what devices have done by now, and waits a moment for that */
  void (*harvest)(void);
  /* the last harvest: calls that begin or end a capture wait for it */
  void (*stop)(void);
  void (*forget)(void); /* this is a forked child; signal-safe */
} prof_i_device_hooks;
void prof_i_control_set_devices(const prof_i_device_hooks *hooks);

/* Writes a line for prof_health.device_warning, or "". src/device sets it when there may be a
   warning. Called under the control lock. */
typedef void prof_i_device_warning(char *to, size_t room);
void prof_i_control_set_device_warning(prof_i_device_warning *warn);
void prof_i_control_device_warning(char *to, size_t room);

/* This copy of prof is being unloaded by dlclose(). The capture stays as it is. */
void prof_i_control_unload(void);

#endif
