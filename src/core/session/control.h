/* The lifetime of a capture: start, stop, and the capture of a forked child. The control lock has
   rank 1, and is the only lock of core. Under it, files are opened and memory is mapped, but no
   user's function is called. Clears and readers are in clear.c and arena_view.c. */
#ifndef PROF_CORE_SESSION_CONTROL_H
#define PROF_CORE_SESSION_CONTROL_H

#include <prof/profiler.h>
#include <stdbool.h>
#include <stdint.h>
#include "../buffer/observer.h"
#include "../buffer/thread.h"

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
  void (*resolve)(void);
  /* the last resolve(): calls that begin or end a capture wait for it */
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

/* ---- arena_view.c ---- */

/* The own arena, pinned for a reader: its bytes stay where they are and can be read, whatever is
   recorded, cleared, stopped or started meanwhile. */

/* No lock is held, unless the kernel had no room for a second mapping. */
typedef struct prof_i_arena_view {
  const unsigned char *bytes;
  const unsigned char *in_place; /* see prof_i_block_find() */
  uint64_t room;                 /* that may be looked at, as far as `readable` says */
  uint64_t readable;             /* when it was pinned: see prof_i_arena_view_readable() */
  bool is_cut;                   /* the file is shorter than what was recorded */
  bool has_more_room;            /* the arena may outgrow the room */
  uint64_t arena, clears;        /* which it was, and the number of its last clear */
  uint64_t snapshot_pin;         /* 0: none was asked for */
  bool is_locked;                /* the control lock is held, and bytes are the arena's own */
} prof_i_arena_view;

/* 0, or PROF_E_NOT_RUNNING when there is no arena. with_pin: chunks that are read where they
   stand are not given back meanwhile. */
int prof_i_arena_view_acquire(prof_i_arena_view *view_out, bool with_pin);

/* The same with the control lock held, which prof_i_arena_view_unlock() then gives back, unless it
   is needed further. False: there is no arena. */
bool prof_i_arena_view_acquire_locked(prof_i_arena_view *view_out, bool with_pin);
void prof_i_arena_view_unlock(const prof_i_arena_view *view);

/* How much of it can be read by now. Only grows. */
uint64_t prof_i_arena_view_readable(const prof_i_arena_view *view);

/* False: a clear has begun since, and what was read is part before it, part after. The pin stays
   where it is wanted and that is not so, or is_content says that it does not matter; it is settled,
   and ends by prof_i_arena_end_snapshot_pin(). */
bool prof_i_arena_view_release(prof_i_arena_view *view, bool wants_pin, bool is_content);
void prof_i_arena_end_snapshot_pin(uint64_t snapshot_pin);

/* To be called before the own arena is acquired to be read as a whole. Records what devices have
   done, and takes in ended threads and the present names. */
void prof_i_arena_prepare_read(void);

/* ---- budget.c ---- */

/* The budget: how much recording may cost a thread, or bring a second, and what is left out when it
   is more. Judged where a thread changes its chunk, so a scope pays nothing for it. */

/* A session begins, or begins anew: what a budget has muted is heard again. Of a new capture
   nothing else than what is muted now need be told. Control lock held. */
void prof_i_budget_begin(const prof_options *options, bool is_new_capture);

/* In a forked child: whoever was just at it is not here. */
void prof_i_budget_forget(void);

/* The level has been asked for anew: what the budget has muted is heard again, and every thread
   begins its window. Control lock held. */
void prof_i_budget_restart(bool is_told);

extern const prof_i_observer prof_i_budget_observer __attribute__((visibility("hidden")));

/* ---- memory hooks ---- */

/* What src/memory does at the turns of a session: core knows no pool. */

/* With the control lock held, unless said. */
typedef struct prof_i_memory_hooks {
  /* Memory is recorded from now on. Asks the program's queries. No lock held. */
  void (*begin)(void);
  /* The same in a forked child, which calls no query: the parent's values count. */
  void (*begin_child)(void);
  /* Memory is not recorded any more. Also in a forked child, without the lock; signal-safe. */
  void (*end)(void);
  /* Peaks begin anew. */
  void (*reset)(void);
  /* Until the next start no sums are shown. */
  void (*hide_sums)(void);
  /* Another arena: numbers begin anew. */
  void (*renumber)(void);
  /* This thread is about to fork. Any thread, also without the lock; several may be in fork. */
  void (*before_fork)(void);
  /* This is a forked child, and its parent's arena is still in force. was_before_fork:
     before_fork() was called. Signal-safe, no lock. */
  void (*forget)(bool was_before_fork);
} prof_i_memory_hooks;

/* It is src/lib that defines it. */
extern const prof_i_memory_hooks *const prof_i_the_memory_hooks
    __attribute__((visibility("hidden")));

#define PROF_I_MEMORY(hook, ...) prof_i_the_memory_hooks->hook(__VA_ARGS__)

#endif
