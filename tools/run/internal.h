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

/* histogram.c: counts executed instructions by class, from rocprof's tables of counters. */

/* Reads rocprofv3_output_counter_collection.csv and rocprofv3_output_domain_stats.csv of the
   folder. If they have counters of instructions, writes instruction_histogram.json:
   {"VALU": N, ...}. The tables have one column for each counter, or the columns Counter_Name and
   Counter_Value. */
void run_histogram_write(const char *folder);

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
