/* Workloads in Python: which ones are, and how prof's Python package runs them. */
#ifndef PROF_TOOLS_RUN_PYTHON_H
#define PROF_TOOLS_RUN_PYTHON_H

#include "run.h"

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

/* The name of the script or module that an interpreter with these words runs: each word ends in
   NUL, and the last one may be cut. NULL: none, such as `python3 -c TEXT`, or prof's
   own package. */
const char *run_python_script(const char *words, size_t bytes);

/* The name of a process with these words: as above, or "python-c" of `python3 -c TEXT`; NULL. */
const char *run_python_title(const char *words, size_t bytes);

/* A worker of multiprocessing, or a process that starts them: it runs the script of the process
   that has started it. */
bool run_python_is_worker(const char *words, size_t bytes);

#endif
