/* The life of a capture: start, stop, clear, and what a forked child does. One lock, rank 1 (the only one of core); under it files are
   opened and memory mapped, never a user's function called. */
#ifndef PROF_CORE_CONTROL_H
#define PROF_CORE_CONTROL_H

#include <prof/profiler.h>
#include <stdbool.h>

/* Is a session on? Any thread. Signal-safe. */
bool prof_i_control_is_recording(void);

/* Is this the process that everything here belongs to? A forked child that does not know yet becomes one. False: it is just being done,
   and the caller must leave at once. Two loads otherwise. Signal-safe. */
bool prof_i_control_is_own_process(void);

/* In a forked child whose parent recorded: makes the child's own capture at its first scope. Signal-safe in effect: it tries the
   lock and leaves if it is held. A load when there is nothing to do. */
void prof_i_control_ensure(void);

/* As prof_start_with(), for the environment: its variable that asks for it, a literal, is named to a program that starts, too. options->level 0: memory alone, scopes stay off. */
int prof_i_control_start_for(const prof_options *options, const char *variable);

/* Ticks at the fork this process came from; 0: none. Scopes that began before it belong to the parent. */
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

/* After a clean dump to `path`: the capture file goes, unless it is to stay or is being recorded into. */
void prof_i_capture_dumped(void);

/* The capture file takes the output's name, instead of being read and copied there. 0, or a status with its text (PROF_E_RUNNING: it is being recorded into): then it
   stays as it is. */
int prof_i_capture_rename(const char *output);

/* The own arena, pinned: its bytes stay where they are and can be read, whatever is recorded, cleared, stopped or started meanwhile. No lock is
   held, unless the kernel had no room for a second mapping. */
typedef struct prof_i_pinned {
  const unsigned char *bytes;
  const unsigned char *in_place; /* see prof_i_block_find() */
  uint64_t room;      /* that may be looked at, as far as readable_bytes says */
  uint64_t readable;  /* when it was pinned: see prof_i_pinned_readable() */
  bool is_cut;        /* the file is shorter than what was recorded: somebody has cut it off */
  bool has_more_room; /* the arena may outgrow the room */
  uint64_t arena, clears; /* which it was, and the number of its last clear */
  uint64_t lease;     /* 0: none was asked for */
  bool is_locked;     /* the control lock is held, and bytes are the arena's own */
} prof_i_pinned;

/* 0, or PROF_E_NOT_RUNNING when there is no arena. with_lease: chunks that are read where they stand are not given back meanwhile. */
int prof_i_arena_pin(prof_i_pinned *pinned_out, bool with_lease);

/* The same with the control lock held, which prof_i_pinned_unlock() then gives back, unless it is needed further. False: there is no arena. */
bool prof_i_arena_pin_held(prof_i_pinned *pinned_out, bool with_lease);
void prof_i_pinned_unlock(const prof_i_pinned *pinned);

/* How much of it can be read by now. Only grows. */
uint64_t prof_i_pinned_readable(const prof_i_pinned *pinned);

/* False: a clear has begun since, and what was read is part before it, part after. The lease stays where it is wanted and that is not so, or
   is_content says that it does not matter; it is settled, and ends by prof_i_arena_end_lease(). */
bool prof_i_arena_unpin(prof_i_pinned *pinned, bool wants_lease, bool is_content);
void prof_i_arena_end_lease(uint64_t lease);

/* To be called before the own arena is pinned to be read as a whole: what devices have done is recorded, and the threads' names are as they are now. */
void prof_i_arena_prepare_read(void);

/* Takes and gives the control lock. Who must not be waited for under it tries. */
void prof_i_control_lock(void);
bool prof_i_control_try_lock(void); /* for who may be waited for under it */
void prof_i_control_unlock(void);

/* The process ends: recording stops, whoever wants it. */
void prof_i_control_end(void);

/* prof_devices of the last start. Any thread. */
uint32_t prof_i_control_devices(void);

/* See prof_i_prefer_devices_1() of <prof/device.h>. */
void prof_i_control_prefer_devices(uint32_t wanted);

/* What devices have to do with it, told by src/device: core knows of none. Without any lock.
   start: recording has begun; waits: for back ends, where they are wanted.
   harvest: what they have done by now is to be recorded; waits for that a moment.
   stop: the same, and for good; who would begin or end a capture meanwhile waits for it.
   forget: this is a forked child; signal-safe. */
typedef struct prof_i_device_hooks {
  void (*start)(bool waits);
  void (*harvest)(void);
  void (*stop)(void);
  void (*forget)(void);
} prof_i_device_hooks;
void prof_i_control_set_devices(const prof_i_device_hooks *hooks);

/* Puts a line for prof_health.device_warning, or "". Told by src/device when there may be one. Under the control lock. */
typedef void prof_i_device_warning(char *to, size_t room);
void prof_i_control_set_device_warning(prof_i_device_warning *warn);
void prof_i_control_device_warning(char *to, size_t room);

/* The code goes: dlclose() of what this copy is in. The capture stays as it is. */
void prof_i_control_go(void);

#endif
