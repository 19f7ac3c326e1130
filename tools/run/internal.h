/* Functions of `prof run` that have one caller or two, by the file that defines them. */
#ifndef PROF_TOOLS_RUN_INTERNAL_H
#define PROF_TOOLS_RUN_INTERNAL_H

#include <time.h>

#include "captures.h"
#include "child.h"
#include "json.h"
#include "process_tree.h"
#include "stack.h"
#include "text.h"

/* ---- the request: what the command line of `prof run` asks for ---- */

typedef struct run_request {
  run_stack stack;
  run_words workload;
  const char *folder; /* of the files, or "." */
  bool has_folder;    /* -o was given: a log and a summary are written */
  bool is_quiet;      /* no summary on stderr */

  /* of the tool prof */
  unsigned level; /* that it records at */
  bool has_memory;
  bool is_repeated;              /* by run_repeat(), which prints a table of all runs */
  bool has_next;                 /* and this is not the last of them */
  struct run_retained *retained; /* takes the captures for that; or NULL */
  bool has_devices;
  bool is_packed;                  /* captures that are kept are packed */
  const char *sample;              /* seconds, or NULL: devices are not sampled */
  const char *file;                /* -o FILE: a pattern, or NULL */
  run_words table_options;         /* of its table */
  run_words python_options;        /* of `python -m prof run`: the workload must be in Python */
  const char *prof_option;         /* the first option that needs the tool prof, or NULL */
  const struct run_python *python; /* the tool prof runs the workload in Python; or NULL */
  bool lacks_package; /* the workload is in Python, which cannot import the package prof */
} run_request;

/* run.c: one run of a workload under a stack of tools, from set-up to collection. */

/* Prints what would run, line by line, on stdout, and on stderr what prevents it. Returns 0, or the
   status that the run would have. */
int run_stack_print(const run_request *request);

/* Runs the workload. Returns its status, as in a shell, or RUN_FAILED. *seconds_out is below 0 if
   the workload was not run. */
int run_stack_execute(const run_request *request, double *seconds_out);

/* repeat.c: --repeat: the same run several times. */

/* Runs the workload `count` times, one after another, each in its own folder run-1, run-2, ...
   Prints one table of all runs. Ends early if a run could not start, or was interrupted. Returns
   the first status that is not 0. */
int run_repeat(const run_request *request, unsigned count);

/* record.c: the tool "prof": makes a workload and its children record. */

/* Adds variables to the tool. With them each process that links prof records into its own capture
   in the folder. Python's package does that itself, and the folder may be NULL. */
void run_record_prepare(run_tool *tool, const run_request *request, const char *folder);

/* library_log_target.c: where libraries write their lines. */

/* If a variable, the user's or the tool's, sends a library's lines to a place where prof does not
   read them: prints a line. The variables stay: rocBLAS ends a program whose path it cannot open.
   The tools' folders must be made. */
void run_library_log_target_check(const run_stack *stack);

/* madengine.c: madengine's own configuration without its files. */

/* If the tool's cmd or scripts name a missing file of madengine, prof does the work of that file.
   Such files are get_library_trace.py, rocprof_wrapper.sh, rtl_trace_wrapper.sh, trace.sh,
   gpu_info_*.sh and detect_therock.sh. If a variable enables a library trace (ROCBLAS_TRACE=1,
   TRACE_MODE), adds the library's own variables. Uses files that exist. */
void run_madengine_adopt(run_tool *tool);

/* python_literal.c: Python's literals as JSON: {'tools': [{'name': 'rocprof', 'on': True}]}. */

/* The same value. NULL: the text is not a literal, and *error_out has the reason and the place.
   Known: dict, list, tuple, str with Python's escapes, int, float, True, False, None, comments,
   commas at the end. Sets, bytes, f-strings and calls are refused. */
const run_json *run_python_literal_parse(const char *text, run_json_error *error_out);

/* status.c: two hidden commands around a tool that does not pass on the exit status. */

/* `prof run-status TOOL...`: runs the tool, and ends as the program did that
   `prof run-status-of PROGRAM...` ran inside of it; as the tool if there was none. */
int run_status(int argc, char **argv);
int run_status_of(int argc, char **argv);

/* therock.c: detects ROCm installations of TheRock, AMD's newer build. */

/* Prints each installation on stderr, or that it found none. */
void run_therock_check(void);

/* rocprof.c: AMD's rocprof and rocprofv3, as madengine's rocprof_wrapper.sh and trace.sh use them. */

/* The hidden command `prof run-rocprof OPTIONS -- WORDS`: rocprofv3 if it is on PATH, else rocprof.
   Their lines that do not concern the workload are left out of stderr. */
int run_rocprof(int argc, char **argv);

/* FOLDER/KIND.txt with the counters of that kind (compute, memory, communication, full,
   instructions). is_written: writes the file. */
const char *run_rocprof_counters(const char *kind, const char *folder, bool is_written);

/* Reads rocprofv3_output_counter_collection.csv and rocprofv3_output_domain_stats.csv of the
   folder. If they have counters of instructions, writes how many of each class were executed:
   instruction_histogram.json: {"VALU": N, ...}. The tables have one column for each counter, or the
   columns Counter_Name and Counter_Value. */
void run_histogram_write(const char *folder);

/* tool_files.c: files that tools write, where other runs may write theirs at once. */

/* Files in the working directory. */
typedef struct run_stray_files {
  int lock;                             /* a shared lock of the directory, or -1 */
  struct timespec begun;                /* the run */
  run_words before;                     /* the names that were there */
  const run_process_tree *process_tree; /* of the run, or NULL */
} run_stray_files;

void run_stray_files_begin(run_stray_files *stray_files);
void run_stray_files_end(run_stray_files *stray_files);

/* Collects in the folder what rocprof wrote to `from`. Moves new results*, rocprofv3-* and folders
   with *_results.db. Copies new folders with *_trace.csv. Of folders that are not new, or while
   another run is there, it moves only files of processes of this run. Folders NAME_output and those
   of -o are never looked at: they are of prof runs. Copies tables under the names
   rocprofv3_output_NAME.csv that other programs read, and counts instructions in
   instruction_histogram.json. */
void run_rocprof_collect(const char *from, const run_stray_files *stray_files, const char *folder);

/* Moves the named files if they are new, and no other run is there. */
void run_rocprof_move(const char *from, const run_stray_files *stray_files, const char *folder,
                      const char *const *names, size_t count);

/* Makes trace.json of trace.rpd or trace.db in the tool's folder, by prof's own import. An existing
   trace.json stays. If the database cannot be read, or the tool rpd or rocm_trace_lite wrote
   none, prints one line; the database stays. */
void run_rpd_convert(const run_tool *tool);

/* True: the tool is rpd or rocm_trace_lite. */
bool run_rpd_is_of(const run_tool *tool);

/* folder: with uftrace.data. Returns one line if no program in it calls a hook of uftrace, which
   leaves little to show. Else NULL, also if the folder cannot be read. */
const char *run_uftrace_hint(const char *folder);

#endif
