/* What run.c, repeat.c and what they call share: one run, its processes, its summary, its state. */
#ifndef PROF_TOOLS_RUN_RUN_H
#define PROF_TOOLS_RUN_RUN_H

#include <stdio.h>
#include <time.h>

#include "captures.h"
#include "internal.h"
#include "library.h"
#include "sampler.h"

/* ---- children.c: which processes were recorded, and why others were not ---- */

/* The workload's processes of one name. */
typedef struct run_child_group {
  const char *name;
  size_t count;
  bool is_recorded;
  run_reason reason; /* if it is not recorded */
} run_child_group;

typedef struct run_children {
  run_child_group *groups;
  size_t count;
  size_t empty_count; /* captures without an event */
  bool has_reasons;   /* prof was to record them */
  bool has_captures;  /* some process has left one, maybe of a program before its last one */
  bool is_unknown;    /* the processes could not be watched */
  bool is_cut;        /* there were more */
  bool has_prof_run;  /* prof run was started inside of this one */
  unsigned libraries; /* that any of them had loaded; see run_process */
} run_children;

/* has_reasons: prof was to record them. process_tree may be NULL. Helpers of the stack are left
   out. workload: the name of its program. */
run_children run_children_find(const run_process_tree *process_tree, const run_captures *captures,
                               const run_stack *stack, const char *workload, bool has_reasons);

/* Prints on stderr a line for each reason, with the names, and what to do. */
void run_children_print(const run_children *children);

/* Why no process left a capture, if one reason explains it; else a hint. One line. */
const char *run_children_empty_reason(const run_children *children);

/* "it is a static program" */
const char *run_reason_text(run_reason reason);

/* ---- summary.c: the command, its time, status, files and processes, as text and as JSON ---- */

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

/* JSON, for other files of `prof run`. */

/* A JSON text. Each byte that is not UTF-8 becomes U+FFFD. */
void run_json_put_text(FILE *to, const char *text);
/* ,\n "NAME": TEXT or null */
void run_json_put_member(FILE *to, const char *name, const char *text);
void run_json_put_list(FILE *to, const char *name, const run_words *words);
/* 2026-11-28T12:00:00.123456Z */
void run_json_put_time(FILE *to, const char *name, const struct timespec *time);
/* "host", "rank" and "pid" of our process. */
void run_json_put_place(FILE *to);

/* ---- scripts.c: the scripts of a stack: set-up and tear-down ---- */

/* As text for a shell: `bash PATH ARGUMENTS`, or `PATH ARGUMENTS` of a program or of an executable
   script in another language. */
const char *run_script_text(const run_script *script);

/* Set-up, from the outermost tool to the innermost. Stops at the first script that fails, or if a
   signal has requested the end. Returns its status. */
int run_scripts_before(const run_stack *stack, const run_stream_watch *watch, run_summary *summary);

/* Tear-down, from the innermost to the outermost, whatever the workload's status. */
void run_scripts_after(const run_stack *stack, const run_stream_watch *watch, run_summary *summary);
/* True: there are any. */
bool run_scripts_follow(const run_stack *stack);

/* ---- the state of a run ---- */

/* The steps of a run. If one fails, those behind it follow all the same. */
typedef enum run_step {
  PREPARING,
  SETTING_UP,
  RUNNING,
  TEARING_DOWN,
  COLLECTING,
  REPORTING,
  REMOVING,
  DONE,
} run_step;

/* One run. */
typedef struct run_state {
  run_request request;
  run_step step;
  int status;
  const char *record_folder;    /* of captures of processes, which prof run asks for; or NULL */
  const char *file_folder;      /* with -o FILE: of all captures that become files; or NULL */
  const char *temporary_folder; /* the same, if it is removed at the end; or NULL */
  run_python_rest rest;         /* of a script in Python */
  const char *gone_capture;     /* of its process, or NULL */
  run_libraries *libraries;     /* or NULL */
  const char *trace_path;       /* of library_trace.csv, or NULL */
  const char *log_path;         /* or NULL */
  run_calls *calls;             /* or NULL */
  const char *calls_path;
  run_logs *logs;              /* or NULL */
  run_stray_files stray_files; /* in the working directory */
  run_samplers samplers;
  run_process_tree *process_tree; /* or NULL */
  run_stream_watch watch;
  run_summary summary;
} run_state;

/* ---- report.c: collects the files of the tools, and prints and writes the reports ---- */

/* RUN_LIBRARY_x of which the tools trace the calls, as bits. */
unsigned run_libraries_of(const run_stack *stack);

/* The tools' files that exist at the end, and the captures. */
void run_collect(run_state *state);

/* Prints tables and the summary as far as they are wanted, and writes summary.json. */
void run_report(run_state *state);

/* Removes the temporary folder, if there is one that no process uses. */
void run_remove_temporary(const run_state *state);

#endif
