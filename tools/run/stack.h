/* A stack of tools: which tools run around the workload, in which order, with which variables and
   scripts. The first tool is the innermost. Reads madengine's context and its tools.json. */
#ifndef PROF_TOOLS_RUN_STACK_H
#define PROF_TOOLS_RUN_STACK_H

#include "text.h"

/* Something to run before or after the workload: see run_script_text(). */
typedef struct run_script {
  const char *path;
  const char *arguments; /* shell text, or "" */
} run_script;

typedef struct run_scripts {
  run_script *items;
  size_t count;
} run_scripts;

/* What prof does for a tool in addition to cmd and variables. */
typedef enum run_part {
  RUN_PART_PROF = 1,    /* prof records the workload and its children */
  RUN_PART_TRACE = 2,   /* lines of libraries are read, see library.h */
  RUN_PART_COLLECT = 4, /* files are in NAME_output */
  RUN_PART_ROCPROF = 8, /* rocprof's files are moved there, with the names that madengine gives */
  RUN_PART_THEROCK = 16,
  RUN_PART_LOGS = 32,   /* the library writes log files into NAME_output; prof reads their lines */
  RUN_PART_SAMPLE = 64, /* devices are sampled beside the workload, see sampler.h */
} run_part;

typedef struct run_tool {
  const char *name;
  const char *about;   /* one line, or NULL: a tool of the user's */
  const char *program; /* must be on PATH, or NULL */
  const char *install; /* how to install it, or NULL */
  const char *cmd;     /* shell text in front of the workload, or "" */
  bool has_marks;      /* {output} and others in cmd have a meaning, see known_tools.c */
  run_words variables; /* NAME=VALUE */
  run_words traces;    /* names of further library traces that it enables */
  run_scripts before, after;
  unsigned parts;                      /* of run_part */
  const char *folder;                  /* of its files, or NULL */
  bool is_planned;                     /* nothing is written: --dry-run */
  const struct run_sampling *sampling; /* of one that samples, or NULL */
} run_tool;

typedef struct run_stack {
  run_tool *tools; /* as named: the first is the innermost */
  size_t count;
  run_scripts before, after; /* of the context itself */
  const char *encapsulate;   /* what the innermost tool is put around, or "" */
} run_stack;

/* ---- known tools ---- */

/* The known tools, built in or from --tools-config. The pointer holds until the next
   run_tools_read(). */
const run_tool *run_tools(size_t *count_out);
/* NULL: there is no such tool. */
const run_tool *run_tool_find(const char *name);

void run_tools_add(const run_tool *tool);
/* Adds or replaces tools by a file in the format of madengine's tools.json. */
void run_tools_read(const char *path);

/* ---- the stack ---- */

/* Adds a tool by name. If there is none, ends the process with a list of the names. */
void run_stack_add(run_stack *stack, const char *name);

/* Adds the tools and scripts of a context: {"tools": [{"name", "cmd", "env_vars"}], "pre_scripts",
   "post_scripts", "encapsulate_script"}. Text: JSON, or a Python literal. from: for messages. */
void run_stack_read(run_stack *stack, const char *text, const char *from);
void run_stack_read_file(run_stack *stack, const char *path);

/* True: prof itself is one of the tools. */
bool run_stack_records(const run_stack *stack);

#endif
