/* The command, its time, its status, its files and its processes, as text and as JSON. */
#ifndef PROF_TOOLS_RUN_SUMMARY_H
#define PROF_TOOLS_RUN_SUMMARY_H

#include <stdio.h>
#include <time.h>

#include "captures.h"
#include "child.h"
#include "children.h"
#include "sampler.h"

typedef struct run_script_end {
  const char *of;   /* the tool, or "the context" */
  const char *text; /* of the shell */
  bool is_before;
  int status;
} run_script_end;

typedef enum run_progress {
  RUN_PROGRESS_RUNNING, /* or prof run was killed */
  RUN_PROGRESS_ENDED,
  RUN_PROGRESS_NOT_RUN,
} run_progress;

typedef struct run_summary {
  const char *path;       /* of summary.json, or NULL: it is not written */
  const run_words *words; /* the workload */
  const run_stack *stack;
  struct timespec begun; /* CLOCK_REALTIME */
  run_progress progress;
  const char *why_not; /* of RUN_PROGRESS_NOT_RUN */
  run_child_end end;
  run_script_end *scripts;
  size_t scripts_count;
  run_words files;              /* paths that were written; a folder's ends in / */
  run_words problems;           /* what could not be written, and why */
  run_words hints;              /* what is empty, and why */
  const run_samplers *samplers; /* or NULL */
  const char *trace_path;       /* of library_trace.csv, or NULL */
  run_captures captures;
  run_children children;
} run_summary;

/* has_file: makes FOLDER/summary.json, or summary.2.json, ... It says "running" until
   run_summary_write(). Ends the process if it cannot be written. */
void run_summary_begin(run_summary *summary, const char *folder, bool has_file);
void run_summary_add_script(run_summary *summary, const char *of, bool is_before, const char *text,
                            int status);
void run_summary_add_file(run_summary *summary, const char *path);
/* Its files, if there are any. Else it is removed, and false is returned. */
bool run_summary_add_folder(run_summary *summary, const char *path);
void run_summary_add_problem(run_summary *summary, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* On stderr. */
void run_summary_print(const run_summary *summary);
/* The processes that still run. */
void run_summary_print_leftovers(const run_summary *summary);
/* Replaces summary.json. If that fails, prints why and removes it. */
void run_summary_write(run_summary *summary);

/* ---- JSON, for other files of `prof run` ---- */

/* A JSON text. Each byte that is not UTF-8 becomes U+FFFD. */
void run_json_put_text(FILE *to, const char *text);
/* ,\n "NAME": TEXT or null */
void run_json_put_member(FILE *to, const char *name, const char *text);
void run_json_put_list(FILE *to, const char *name, const run_words *words);
/* 2026-11-28T12:00:00.123456Z */
void run_json_put_time(FILE *to, const char *name, const struct timespec *time);
/* "host", "rank" and "pid" of our process. */
void run_json_put_place(FILE *to);

#endif
