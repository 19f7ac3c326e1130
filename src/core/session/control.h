/* The life of a capture: start, stop, and what a forked child does. One lock, rank 1 (the only one
   of core); under it files are opened and memory mapped, never a user's function called. clear.h
   and arena_view.h have what others do with the capture. */
#ifndef PROF_CORE_SESSION_CONTROL_H
#define PROF_CORE_SESSION_CONTROL_H

#include <prof/profiler.h>
#include <stdbool.h>

/* As prof_start_with(), for the environment: its variable that asks for it, a literal, is named to
   a program that starts, too. options->level 0: memory alone, scopes stay off. */
int prof_i_control_start_environment(const prof_options *options, const char *variable);

/* prof_memory_start(), prof_memory_stop() and prof_memory_reset(). */
int prof_i_control_start_memory(void);
int prof_i_control_stop_memory(void);
int prof_i_control_reset_memory(void);

/* joins: from here on a start of the program joins the capture that runs, or the environment's, and
   its path is where its own prof_dump(NULL) writes. False: the path is the environment's again. */
void prof_i_control_join(bool joins);

/* Why this forked child, whose parent recorded, has no capture. "": it has one, or needed none.
   Returns `to`. Control lock held. */
const char *prof_i_control_no_capture_reason(char *to, size_t room);

/* Where prof_dump(NULL) writes, expanded. False: nowhere. */
bool prof_i_output_path(char *to, size_t room);

/* After a clean dump to `path`: the capture file goes, unless it is to stay or is being recorded
   into. */
void prof_i_capture_dumped(void);

/* The capture file takes the output's name, instead of being read and copied there. 0, or a status
   with its text (PROF_E_RUNNING: it is being recorded into): then it stays as it is. */
int prof_i_capture_rename(const char *output);

/* Takes and gives the control lock. Who must not be waited for under it tries. */
void prof_i_control_lock(void);
bool prof_i_control_try_lock(void); /* for who may be waited for under it */
void prof_i_control_unlock(void);

/* The same lock: a stop that is under way is over by then. */
void prof_i_control_lock_to_clear(void);

/* What devices have done by now is recorded. Waits for that a moment, without any lock. */
void prof_i_control_resolve_devices(void);

/* The process ends: recording stops, whoever wants it. */
void prof_i_control_end_process(void);

/* prof_devices of the last start. Any thread. */
uint32_t prof_i_control_devices(void);

/* See prof_i_prefer_devices_1() of <prof/device.h>. */
void prof_i_control_prefer_devices(uint32_t wanted);

/* What devices have to do with it, told by src/device: core knows of none. Without any lock.
   start: recording has begun; waits: for back ends, where they are wanted.
   harvest: what they have done by now is to be recorded; waits for that a moment.
   stop: the last harvest. Calls that begin or end a capture wait for it.
   forget: this is a forked child; signal-safe. */
typedef struct prof_i_device_hooks {
  void (*start)(bool waits);
  void (*harvest)(void);
  void (*stop)(void);
  void (*forget)(void);
} prof_i_device_hooks;
void prof_i_control_set_devices(const prof_i_device_hooks *hooks);

/* Puts a line for prof_health.device_warning, or "". Told by src/device when there may be one.
   Under the control lock. */
typedef void prof_i_device_warning(char *to, size_t room);
void prof_i_control_set_device_warning(prof_i_device_warning *warn);
void prof_i_control_device_warning(char *to, size_t room);

/* The code goes: dlclose() of what this copy is in. The capture stays as it is. */
void prof_i_control_unload(void);

#endif
