/* Functions of `prof run` that have one caller or two, by the file that defines them. */
#ifndef PROF_TOOLS_RUN_INTERNAL_H
#define PROF_TOOLS_RUN_INTERNAL_H

#include "captures.h"
#include "child.h"
#include "json.h"
#include "process_tree.h"
#include "run.h"
#include "stack.h"
#include "text.h"

/* capture_paths.c: where prof puts a capture if it cannot write into the capture's folder. See
   src/core/buffer/capture_file.c. */

/* Paths of the folder's captures that are elsewhere. */
run_words run_capture_paths_find(const char *folder);

/* Paths of captures that `prof run --repeat` has kept beside its folder, because that did not take
   them: FOLDER'S NAME.NUMBER.prof. */
run_words run_capture_paths_retained(const char *folder);

/* histogram.c: counts executed instructions by class, from rocprof's tables of counters. */

/* Reads rocprofv3_output_counter_collection.csv and rocprofv3_output_domain_stats.csv of the
   folder. If they have counters of instructions, writes instruction_histogram.json:
   {"VALU": N, ...}. The tables have one column for each counter, or the columns Counter_Name and
   Counter_Value. */
void run_histogram_write(const char *folder);

/* last_seen.c: tells captures of processes that were killed until when these were alive. */

/* process_tree: the processes that were seen, or NULL. end: of the process that was started. */
void run_last_seen_report(const run_captures *captures, const run_process_tree *process_tree,
                          const run_child_end *end);

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

/* pack.c: packs captures. */

/* Why captures cannot be packed here, or NULL. */
const char *run_pack_refusal(void);
/* Packs the capture `from` into `to`, which may be the same path. False, with a message: `to` is
   unchanged. */
bool run_pack(const char *from, const char *to);
/* Packs in place all captures whose processes have ended. */
void run_pack_all(const run_captures *captures);

/* peaks.c: the peaks of memory in captures. `prof memory FILE` prints the whole report. */

/* On stdout: a line for each pool of the last session of each capture, the highest first, and who
   held the memory of the highest. Prints nothing if no capture has memory. */
void run_peaks_print(const run_words *captures);

/* `prof run-peaks CAPTURE...`: the same, for prof's Python package. */
int run_peaks(int argc, char **argv);

/* process_title.c: the names of processes in Python: their scripts, not their interpreter. */

/* The script, the module, or "python-c". A worker of multiprocessing has the name of the script
   that started it. workload: that of prof's own Python command. NULL: the process is not seen, or
   not Python. */
const char *run_process_title(const run_process_tree *process_tree, const run_process *member,
                              const char *workload);

/* python_literal.c: Python's literals as JSON: {'tools': [{'name': 'rocprof', 'on': True}]}. */

/* The same value. NULL: the text is not a literal, and *error_out has the reason and the place.
   Known: dict, list, tuple, str with Python's escapes, int, float, True, False, None, comments,
   commas at the end. Sets, bytes, f-strings and calls are refused. */
const run_json *run_python_literal_parse(const char *text, run_json_error *error_out);

/* python_rest.c: what prof's Python command has not reported, since the script ended without
   Python's own exit. */

typedef enum run_python_rest {
  RUN_PYTHON_REPORTED, /* all is reported */
  RUN_PYTHON_FILES,    /* the table is printed, and files are not written */
  RUN_PYTHON_ALL,
} run_python_rest;

/* Reads and removes the marks that the command leaves in its folder of captures. */
run_python_rest run_python_parse_rest(const char *folder);

/* record.c: the tool "prof": makes a workload and its children record. */

/* Adds variables to the tool. With them each process that links prof records into its own capture
   in the folder. Python's package does that itself, and the folder may be NULL. */
void run_record_prepare(run_tool *tool, const run_request *request, const char *folder);

/* repeat.c: --repeat: the same run several times. */

/* Runs the workload `count` times, one after another, each in its own folder run-1, run-2, ...
   Prints one table of all runs. Ends early if a run could not start, or was interrupted. Returns
   the first status that is not 0. */
int run_repeat(const run_request *request, unsigned count);

/* status.c: two hidden commands around a tool that does not pass on the exit status. */

/* `prof run-status TOOL...`: runs the tool, and ends as the program did that
   `prof run-status-of PROGRAM...` ran inside of it; as the tool if there was none. */
int run_status(int argc, char **argv);
int run_status_of(int argc, char **argv);

/* therock.c: detects ROCm installations of TheRock, AMD's newer build. */

/* Prints each installation on stderr, or that it found none. */
void run_therock_check(void);

/* tool_helpers.c: which processes belong to the tools of a stack, not to its workload. */

/* workload: the name of its program, which is not a helper. */
bool run_is_tool_helper(const run_stack *stack, const char *workload, const run_process *member);

/* uftrace.c: what uftrace has recorded. */

/* folder: with uftrace.data. Returns one line if no program in it calls a hook of uftrace, which
   leaves little to show. Else NULL, also if the folder cannot be read. */
const char *run_uftrace_hint(const char *folder);

#endif
