/* The workload's processes in groups of one name: which were recorded, and why others were not. */
#ifndef PROF_TOOLS_RUN_CHILDREN_H
#define PROF_TOOLS_RUN_CHILDREN_H

#include "captures.h"
#include "process_tree.h"
#include "stack.h"

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

/* has_reasons: prof was to record them. family may be NULL. Helpers of the stack are left out;
   workload: the name of its program. */
run_children run_children_find(const run_process_tree *process_tree, const run_captures *captures,
                               const run_stack *stack, const char *workload, bool has_reasons);

/* Prints on stderr a line for each reason, with the names, and what to do. */
void run_children_print(const run_children *children);

/* Why no process left a capture, if one reason explains it; else a hint. One line. */
const char *run_children_empty_reason(const run_children *children);

/* "it is a static program" */
const char *run_reason_text(run_reason reason);

#endif
