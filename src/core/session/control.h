/* The life of a capture: start, stop, and what a forked child does. One lock, rank 1 (the only one
   of core); under it files are opened and memory mapped, never a user's function called. clear.h
   and pin.h have what others do with the capture. */
#ifndef PROF_CORE_SESSION_CONTROL_H
#define PROF_CORE_SESSION_CONTROL_H

#include <prof/profiler.h>
#include <stdbool.h>

/* Is a session on? Any thread. Signal-safe. */
bool prof_i_control_is_recording(void);

/* Is this the process that everything here belongs to? A forked child that does not know yet
   becomes one. False: it is just being done, and the caller must leave at once. Two loads
   otherwise. Signal-safe. */
bool prof_i_control_is_own_process(void);

/* In a forked child whose parent recorded: makes the child's own capture at its first scope.
   Signal-safe in effect: it tries the lock and leaves if it is held. A load when there is nothing
   to do. */
void prof_i_control_ensure(void);
uint64_t prof_i_control_pid(void); /* the process's number, also in a child of vfork() */

/* As prof_start_with(), for the environment: its variable that asks for it, a literal, is named to
   a program that starts, too. options->level 0: memory alone, scopes stay off. */
int prof_i_control_start_for(const prof_options *options, const char *variable);

/* joins: from here on a start of the program joins the capture that runs, or the environment's, and
   its path is where its own prof_dump(NULL) writes. False: the path is the environment's again. */
void prof_i_control_join(bool joins);

/* Ticks at the fork this process came from; 0: none. Scopes that began before it belong to the
   parent. */
uint64_t prof_i_control_forked_at(void);
/* When the process's first capture began, in ticks: no scope began before. */
uint64_t prof_i_control_first_at(void);
/* The same of the capture in force, for who may not look at it: another one may take its place at
   any moment. 0: there is none. */
uint64_t prof_i_control_since(void);

/* Why this forked child, whose parent recorded, has no capture. "": it has one, or needed none.
   Returns `to`. Control lock held. */
const char *prof_i_control_why_none(char *to, size_t room);

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
void prof_i_control_harvest(void);

/* The process ends: recording stops, whoever wants it. */
void prof_i_control_end(void);

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
void prof_i_control_go(void);

#endif
