/* Functions of `prof run` that have one caller or two, by the file that defines them. */
#ifndef PROF_TOOLS_RUN_INTERNAL_H
#define PROF_TOOLS_RUN_INTERNAL_H

#include <time.h>

#include "captures.h"
#include "child.h"
#include "process_tree.h"
#include "stack.h"
#include "text.h"

/* ---- the request: what the command line of `prof run` asks for ---- */

typedef struct run_request {
  run_stack stack;
  run_words workload;
  run_words interpreter; /* of `python -m prof run`, which runs the workload; or empty */
  const char *folder;    /* of the files, or "." */
  bool has_folder;       /* -o was given: a log and a summary are written */
  bool is_quiet;         /* no summary on stderr */

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
  run_words python_options;        /* for prof's package: the workload must be in Python */
  const char *prof_option;         /* the first option that needs the tool prof, or NULL */
  const struct run_python *python; /* the tool prof runs the workload in Python; or NULL */
  bool lacks_package; /* the workload is in Python, which cannot import the package prof */
} run_request;

/* ---- run.c: one run of a workload under a stack of tools, from set-up to collection ---- */

/* Prints what would run, line by line, on stdout, and on stderr what prevents it. Returns 0, or the
   status that the run would have. */
int run_stack_print(const run_request *request);

/* Runs the workload. Returns its status, as in a shell, or RUN_FAILED. *seconds_out is below 0 if
   the workload was not run. */
int run_stack_execute(const run_request *request, double *seconds_out);

/* ---- repeat.c: --repeat: the same run several times ---- */

/* Runs the workload `count` times, one after another, each in its own folder run-1, run-2, ...
   Prints one table of all runs. Ends early if a run could not start, or was interrupted. Returns
   the first status that is not 0. */
int run_repeat(const run_request *request, unsigned count);

/* ---- compose.c, for the tool "prof": makes a workload and its children record ---- */

/* Adds variables to the tool. With them each process that links prof records into its own capture
   in the folder. Python's package does that itself, and the folder may be NULL. */
void run_record_prepare(run_tool *tool, const run_request *request, const char *folder);

/* ---- program_names.c: names of programs, for files and the summary ---- */

/* The file name of the program that does the work: not that of timeout, env, nice, mpirun, a shell
   and others that only start it. "train.py" of "torchrun --nproc-per-node 2 dir/train.py". Without
   characters that a file name of prof may not have. */
char *run_workload_name(const run_words *workload);

/* timeout, env, mpirun, a shell, and others that only start a program. */
bool run_is_launcher(const char *word);

/* python, python3, /usr/bin/python3.12, pypy3 */
bool run_python_is_interpreter(const char *word);

/* Cut, at a character, to what a file's name may have beside all that prof adds to it. */
char *run_program_name(const char *name);

/* ---- trace_file.c: -o FILE: captures become files of that name ---- */

/* True: the ending says that it is a file, and of which format. */
bool run_trace_file_is(const char *pattern);

/* Whether the file, by its ending, is a capture. */
bool run_trace_file_is_capture(const char *pattern);

/* The name is that of a file which prof does not write: what to write instead. Else NULL. */
const char *run_trace_file_refusal(const char *pattern);

/* The pattern with -RANK in front of the ending, if a launcher has set a rank and there is no %r.
   Ends the process with a message if the marks are wrong, or the folder cannot be written. */
const char *run_trace_file_of_rank(const char *pattern);

/* Makes a folder for captures beside the file. It has the same file system, so that a capture can
   be renamed. */
char *run_trace_file_folder(const char *pattern);
/* Its path before it is made, with XXXXXX. */
char *run_trace_file_folder_pattern(const char *pattern);

/* Converts the captures to files, and removes the folder if nothing is left in it. The process that
   began first has the pattern's own name. Others have NAME.PID.ENDING, unless the pattern has %p.
   Ranks that the workload's own launcher has started have NAME-RANK, unless the pattern has %r.
   Samples have NAME.samples.ENDING, calls of libraries NAME.library_trace.ENDING. Prints what is
   where. has_first: the pattern's own name is taken, by a script in Python. is_packed: captures
   are packed; one that cannot be packed stays plain. */
void run_trace_file_write(const char *pattern, const char *folder, const run_words *captures,
                          bool has_first, bool is_quiet, bool is_packed);

/* ---- python.c: which workloads are in Python, and how prof's package runs them ---- */

/* How the workload is parted: PYTHON OPTIONS... | SCRIPT WORDS... or -m MODULE WORDS... */
typedef struct run_python {
  run_words front; /* the interpreter and its own options */
  run_words rest;  /* the script or -m MODULE, and its words */
} run_python;

/* Looks at the workload. SCRIPT.py and -m MODULE get an interpreter in front: $PROF_PYTHON_PROGRAM,
   else python3. If request->interpreter is there, any workload gets that one. If the tool prof is
   in the stack, and the workload is Python that its package can run, sets request->python. Ends
   the process with one message if an option needs Python, and the workload is not Python or Python
   does not have the package. */
void run_python_prepare(run_request *request);

/* Runs the workload by bindings/python/prof/_run.py. That reads the options' values. captures: the
   folder that it records into. output: of the trace, or NULL. */
run_words run_python_words(const run_request *request, const char *captures, const char *output);

/* The name of the script or module, cut to what a file's name can hold. */
const char *run_python_name(const run_python *python);

/* The pattern of the captures, as the package takes it: FOLDER/SCRIPT.%p.prof, with .rank-N in
   front of the pid if a launcher has set a rank. */
const char *run_python_capture(const run_request *request, const char *folder);

/* $PROF_PYTHON_PROGRAM; else the Python beside a wheel's command, or "python3". */
const char *run_python_program(void);

/* The name of a process in Python: the script, the module, or "python-c". A worker of
   multiprocessing has the name of the script that started it. workload: the title of a
   process that runs prof's package. NULL: the process is not seen, or not Python. */
const char *run_process_title(const run_process_tree *process_tree, const run_process *member,
                              const char *workload);

/* What prof's package has not reported, since the script ended without Python's own exit. */
typedef enum run_python_rest {
  RUN_PYTHON_REPORTED, /* all is reported */
  RUN_PYTHON_FILES,    /* the table is printed, and files are not written */
  RUN_PYTHON_ALL,
} run_python_rest;

/* Reads and removes the marks that the package leaves in its folder of captures. Sets *gone_out if
   its own capture was removed or renamed before the script ended. */
run_python_rest run_python_parse_rest(const char *folder, const char **gone_out);

/* ---- hidden_commands.c: commands that prof puts into the command line of the workload ---- */

/* `prof run-with NAME=VALUE... -- WORDS...`: puts variables into the environment
   and executes the words. It is used if an inner tool has variables that outer ones must not see.
   Returns RUN_CANNOT_EXECUTE or RUN_NOT_FOUND. */
int run_with(int argc, char **argv);

/* `prof run-dual WORDS...`: runs the words twice at once. One process has the first device of
   HIP_VISIBLE_DEVICES and CUDA_VISIBLE_DEVICES, the other the second. Waits for both, and returns
   the first status that is not 0. */
int run_dual(int argc, char **argv);

/* `prof run-status TOOL...`: runs the tool, and ends as the program did that
   `prof run-status-of PROGRAM...` ran inside of it; as the tool if there was none. */
int run_status(int argc, char **argv);
int run_status_of(int argc, char **argv);

/* ---- json.c: reads JSON configurations by yajl, which is loaded at the first use ---- */

typedef enum run_json_kind {
  RUN_JSON_NULL,
  RUN_JSON_BOOL,
  RUN_JSON_NUMBER,
  RUN_JSON_TEXT,
  RUN_JSON_LIST,
  RUN_JSON_OBJECT,
} run_json_kind;

/* Members keep the order of the text. */
typedef struct run_json {
  run_json_kind kind;
  bool is_true;
  const char *text; /* of a text; of a number its digits */
  struct run_json *items;
  const char **keys; /* of an object */
  size_t count;
} run_json;

/* Why a text could not be read, and where. */
typedef struct run_json_error {
  const char *reason; /* no sentence: "after array element, I expect ',' or ']'" */
  size_t at;          /* bytes from the text's begin */
} run_json_error;

/* NULL: *error_out has the reason. A key that is repeated and nesting deeper than 64 are errors.
   Never freed: configurations are small. */
const run_json *run_json_parse(const char *text, run_json_error *error_out);

/* The member. NULL: there is none, or value is not an object. */
const run_json *run_json_get(const run_json *value, const char *key);

/* "a list", "a text": for messages. */
const char *run_json_kind_name(run_json_kind kind);

/* ---- python_literal.c: Python's literals as JSON ---- */

/* The value of a text such as {'tools': [{'name': 'rocprof', 'on': True}]}. NULL: the text is not a
   literal, and *error_out has the reason and the place. Known: dict, list, tuple, str with Python's
   escapes, int, float, True, False, None, comments, commas at the end. Sets, bytes, f-strings and
   calls are refused. */
const run_json *run_python_literal_parse(const char *text, run_json_error *error_out);

/* ---- madengine.c: madengine's own configuration without its files ---- */

/* If the tool's cmd or scripts name a missing file of madengine, prof does the work of that file.
   Such files are get_library_trace.py, rocprof_wrapper.sh, rtl_trace_wrapper.sh, trace.sh,
   gpu_info_*.sh and detect_therock.sh. If a variable enables a library trace (ROCBLAS_TRACE=1,
   TRACE_MODE), adds the library's own variables. Uses files that exist. */
void run_madengine_adopt(run_tool *tool);

/* Detects ROCm installations of TheRock, AMD's newer build. Prints each on stderr, or that it found
   none. */
void run_therock_check(void);

/* ---- rocprof.c: AMD's rocprof and rocprofv3, as madengine's scripts use them ---- */

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

/* ---- tool_files.c: files that tools write, where other runs may write theirs at once ---- */

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
