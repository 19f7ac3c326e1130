/* What prof's Python command has not reported: the script may end without Python's own exit. */
#ifndef PROF_TOOLS_RUN_PYTHON_REST_H
#define PROF_TOOLS_RUN_PYTHON_REST_H

typedef enum run_python_rest {
  RUN_PYTHON_REPORTED, /* all is reported */
  RUN_PYTHON_FILES,    /* the table is printed, and files are not written */
  RUN_PYTHON_ALL,
} run_python_rest;

/* Reads and removes the marks that the command leaves in its folder of captures. */
run_python_rest run_python_parse_rest(const char *folder);

#endif
