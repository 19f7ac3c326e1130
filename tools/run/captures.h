/* The captures that a workload has left, and their tables. */
#ifndef PROF_TOOLS_RUN_CAPTURES_H
#define PROF_TOOLS_RUN_CAPTURES_H

#include "process_tree.h"

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
   took none. script: the one that Python's command runs, or NULL. It has named what it has
   reported, so such a file is not removed, and the rank alone is added to its name. Those of
   scripts in Python that another one has started have the name of their script; family: knows it,
   or NULL. */
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

#endif
