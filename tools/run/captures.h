/* The captures that a workload has left: where they are, what they have, and their tables. */
#ifndef PROF_TOOLS_RUN_CAPTURES_H
#define PROF_TOOLS_RUN_CAPTURES_H

#include "child.h"
#include "process_tree.h"

/* ---- captures.c ---- */

typedef struct run_capture {
  char *path;
  const char *process; /* its name, or "" */
  const char *title;   /* its script in Python, else its name; NULL: not known */
  uint32_t pid;        /* 0: the capture cannot be read */
  uint64_t start_ns;   /* of CLOCK_MONOTONIC */
  int rank;            /* -1: it has none */
  bool is_own;         /* samples or calls of libraries, written by prof run, not by a process */
  const char *error;   /* why, or NULL */
  bool is_empty;       /* it has no event, and was removed */
  bool is_live;        /* its process still runs */
  bool was_clean;      /* its program has ended it; one that executed another has not */
  bool has_rows;       /* scopes, or losses: the table has something to show */
  bool is_elsewhere;   /* the folder did not take it */
} run_capture;

typedef struct run_captures {
  run_capture *items;
  size_t count;
  size_t empty_count;
  bool has_no_folder; /* it was removed or renamed */
} run_captures;

/* Finds the captures in the folder, and those that prof had to write elsewhere because the folder
   took none. script: the one that prof's package runs, or NULL. It has named what it has
   reported, so such a file is not removed, and the rank alone is added to its name. Those of
   scripts in Python that another one has started have the name of their script; process_tree: knows
   it, or NULL. */
void run_captures_find(const char *folder, const char *script, const run_process_tree *process_tree,
                       run_captures *to);
/* A process has recorded, or a capture cannot be read. */
bool run_captures_have_events(const run_captures *captures);
/* Adds these files. */
void run_captures_read(const run_words *paths, run_captures *to);
/* That of the process, with events if there is one. NULL: there is none. */
const run_capture *run_captures_of(const run_captures *captures, uint32_t pid);

/* Prints one table of all of them on stderr, with these options of `prof table`, and the peaks of
   those that have memory. */
void run_captures_report(const run_captures *captures, const run_words *options);

/* Removes those that were written elsewhere and have ended: a temporary run keeps none. */
void run_captures_remove_elsewhere(const run_captures *captures);

/* Paths of the folder's captures that are elsewhere: if prof cannot write into the folder. See
   src/core/buffer/capture_file.c. */
run_words run_capture_paths_find(const char *folder);

/* Paths of captures that `prof run --repeat` has kept beside its folder, because that did not take
   them: FOLDER'S NAME.NUMBER.prof. */
run_words run_capture_paths_retained(const char *folder);

/* Writes into captures of killed processes until when these were alive. process_tree: the processes
   that were seen, or NULL. end: of the process that was started. */
void run_last_seen_report(const run_captures *captures, const run_process_tree *process_tree,
                          const run_child_end *end);

/* Why captures cannot be packed here, or NULL. */
const char *run_pack_refusal(void);
/* Packs the capture `from` into `to`, which may be the same path. False, with a message: `to` is
   unchanged. */
bool run_pack(const char *from, const char *to);
/* Packs in place all captures whose processes have ended. */
void run_pack_all(const run_captures *captures);

/* ---- inspect.c: what captures have ---- */

/* A capture, as a process of its own has read it: a file that is truncated meanwhile, or a damaged
   one, ends that process alone. */
typedef struct run_inspection {
  char process[256]; /* its name, or "" */
  uint32_t pid;
  uint64_t start_ns; /* of CLOCK_MONOTONIC */
  int32_t rank;
  bool has_ranks;                        /* there is more than one */
  bool is_live, is_elsewhere, was_clean; /* as in prof_trace_info */
  bool has_rows;                         /* scopes, or losses */
  bool has_events;                       /* events, or losses */
  char error[1024];                      /* why it cannot be read, or "" */
} run_inspection;

/* One for each path, in their order. */
run_inspection *run_inspect(const run_words *paths);

/* ---- temporary.c: the folder of captures of a run without -o ---- */

/* Makes $TMPDIR/prof-run-XXXXXX. A lock on it tells other runs that it is in use, until our process
   and those it has forked have ended. Ends the process if that fails. */
const char *run_temporary_folder(void);

/* Gives up the lock, at the end of the run. */
void run_temporary_release(void);

/* The lock's descriptor, or -1 if there are no locks here. The caller closes it. */
int run_temporary_hand_over(void);

/* Removes the folder, and the files and empty folders in it. False with errno set: it stays. */
bool run_temporary_remove(const char *folder);

/* Removes such folders of our user, if their run was killed. Then nobody has the lock, no process
   that wrote a capture there still runs, and no process has the folder in its PROF_OUTPUT. */
void run_temporary_sweep(void);

/* ---- peaks.c: the peaks of memory in captures. `prof memory FILE` prints the whole ---- */

/* On stdout: a line for each pool of the last session of each capture, the highest first, and who
   held the memory of the highest. Prints nothing if no capture has memory. */
void run_peaks_print(const run_words *captures);

/* `prof run-peaks CAPTURE...`: the same, for prof's Python package. */
int run_peaks(int argc, char **argv);

/* ---- retained_captures.c: captures of --repeat, for one table at the end ---- */

typedef struct run_retained {
  const char *folder;      /* temporary, of those without -o; NULL: there are none */
  int lock;                /* of the folder, or -1 */
  run_words paths;         /* of captures */
  const char *why_nothing; /* of the last run without captures */
  run_words elsewhere;     /* of these paths: files that the folder did not take */
  size_t missing;          /* captures that the table does not have */
  const char *why_missing; /* the first of them, and the reason */
  uint64_t bytes;          /* of the temporary files */
  size_t count, left_out;  /* of runs that recorded, and of those after the limit */
} run_retained;

/* Takes the captures of one run. why_nothing: a line if there are none. is_temporary: moves the
   files. */
void run_retained_add(run_retained *retained, const run_captures *captures, const char *why_nothing,
                      bool is_temporary);

/* Prints on stderr one table of all, or why there is nothing. options: of `prof table`. */
void run_retained_print(const run_retained *retained, const run_words *options);

/* Removes the folder. */
void run_retained_remove(run_retained *retained);

#endif
