/* Workloads in Python: which ones are, and how prof's Python package runs them. */
#ifndef PROF_TOOLS_RUN_PYTHON_H
#define PROF_TOOLS_RUN_PYTHON_H

#include "internal.h"
#include "process_tree.h"

/* How the workload is parted: PYTHON OPTIONS... | SCRIPT WORDS... or -m MODULE WORDS... */
typedef struct run_python {
  run_words front; /* the interpreter and its own options */
  run_words rest;  /* the script or -m MODULE, and its words */
} run_python;

/* Looks at the workload. SCRIPT.py and -m MODULE get an interpreter in front: $PROF_PYTHON_PROGRAM,
   else python3. If the tool prof is in the stack, and the workload is Python that its package can
   run, sets request->python. Ends the process with one message if an option needs Python, and the
   workload is not Python or Python does not have the package. */
void run_python_prepare(run_request *request);

/* The workload with `-m prof run` in front of the script. captures: the folder that it records
   into; output: of the trace, or NULL. */
run_words run_python_words(const run_request *request, const char *captures, const char *output);

/* The name of the script or module, cut to what a file's name can hold. */
const char *run_python_name(const run_python *python);

/* The pattern of the captures, as the package takes it: FOLDER/SCRIPT.%p.prof, with .rank-N in
   front of the pid if a launcher has set a rank. */
const char *run_python_capture(const run_request *request, const char *folder);

/* $PROF_PYTHON_PROGRAM; else the Python beside a wheel's command, or "python3". */
const char *run_python_program(void);

/* python, python3, /usr/bin/python3.12, pypy3 */
bool run_python_is_interpreter(const char *word);

/* The name of a process in Python: the script, the module, or "python-c". A worker of
   multiprocessing has the name of the script that started it. workload: that of prof's own Python command. NULL: the process is not seen, or
   not Python. */
const char *run_process_title(const run_process_tree *process_tree, const run_process *member,
                              const char *workload);

/* What prof's Python command has not reported, since the script ended without Python's own exit. */
typedef enum run_python_rest {
  RUN_PYTHON_REPORTED, /* all is reported */
  RUN_PYTHON_FILES,    /* the table is printed, and files are not written */
  RUN_PYTHON_ALL,
} run_python_rest;

/* Reads and removes the marks that the command leaves in its folder of captures. */
run_python_rest run_python_parse_rest(const char *folder);

#endif
