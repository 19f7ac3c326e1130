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

/* ---- tool_names.c: what a wrong name was meant to be, and lists for a terminal ---- */

bool run_name_has_control(const char *name);
/* True: a folder may be named for it. */
bool run_name_is_of_tool(const char *name);

/* Ends the process with a message that has the nearest names, and all of them in columns. */
_Noreturn void run_tool_names_refuse(const char *name);

/* A key of a context. Prints one line if neither prof nor madengine knows it. */
void run_names_warn_of_key(const char *key, const char *from);
/* A key of a tool in tools.json. */
void run_names_warn_of_tool_key(const char *key, const char *from);

/* `prof run --list`: each tool, and whether it can work here. */
void run_tool_names_list(void);

/* ---- check.c: checks a stack before anything runs ---- */

/* The path of a program as execvp() finds it, or NULL. */
char *run_program_find(const char *name);

/* Runs the words without streams. Whether they end with 0. */
bool run_ends_well(char **words);

/* Why the tool cannot work here, and what to do. NULL: nothing is known to prevent it. */
const char *run_tool_refusal(const run_tool *tool);

/* The name of the program that the tool's cmd runs, or "". */
const char *run_tool_program(const run_tool *tool);

/* True: the tool follows one process until that executes another program: heaptrack. */
bool run_follows_one_program(const run_tool *tool);

/* True: the cmd has shell syntax, so sh must run it. */
bool run_needs_shell(const char *cmd);

/* Ends the process with one message if another tool of the stack traces devices, too. */
void run_check_devices(const run_stack *stack);

/* The same if another tool, or the program itself, replaces malloc(), too. */
void run_check_memory(const run_stack *stack, const char *program);

/* Prints each reason why the stack cannot run here. Returns the status that the run would have, or
   0. */
int run_check_all(const run_stack *stack, const run_words *workload);

/* Ends the process with one message if a tool cannot work, two tools need the same exclusive
   resource, or the workload's file is missing. */
void run_check(const run_stack *stack, const run_words *workload);

/* If a variable, the user's or the tool's, sends a library's lines to a place where prof does not
   read them: prints a line. The variables stay: rocBLAS ends a program whose path it cannot open.
   The tools' folders must be made. */
void run_library_log_target_check(const run_stack *stack);

/* The file has these bytes, such as the name of a symbol or of a library. False, too, if it cannot
   be read. */
bool run_program_mentions(const char *path, const char *text, size_t text_bytes);

/* ---- compose.c: builds the command line of a workload in a stack of tools ---- */

/* In front of shell text: the shell ignores signals to the group, and ends with the status of its
   command. */
#define RUN_SHELL_OUTLIVES "trap : HUP INT QUIT TERM USR1 USR2 ALRM; "

/* What is executed. */
typedef struct run_command {
  run_words words;     /* argv */
  run_words variables; /* NAME=VALUE, to be put into the environment */
} run_command;

/* The tools of the stack already have their folders. The workload's words are passed unchanged: sh
   runs a cmd with shell characters, with the words as "$@". */
run_command run_compose(const run_stack *stack, const run_words *workload);

/* Sets a variable in the process's environment. The value of a list (LD_PRELOAD, LD_LIBRARY_PATH,
   PYTHONPATH, PATH) is put in front of the old value. */
void run_export(const char *variable);

/* The variables with the values that run_export() would set. */
run_words run_exports(const run_words *variables);

/* Adds PROF_RUN_FOLDER, the absolute path of a tool's folder. */
void run_folder_export(run_words *variables, const char *folder);

/* True: the tool's files go into a folder NAME_output, or its texts have $PROF_RUN_FOLDER. */
bool run_tool_has_folder(const run_tool *tool);

/* Replaces the marks of prof's own tools ({output}, see known_tools.c) in cmd and variables. The
   tool must have its folder. Of the user's texts only $PROF_RUN_FOLDER in variables is replaced. A
   cmd of the user gets it as a variable. */
void run_marks_replace(run_tool *tool);

/* This program's file. */
const char *run_own_path(void);

/* execvp(). If that fails, prints the reason and returns the exit status. */
int run_execute(char **words);

/* The words that run the workload. They call run_dual() if a tool of the stack needs it. */
run_words run_dual_workload(const run_stack *stack, const run_words *workload);

#endif
