/* Builds the command line of a workload in a stack of tools. */
#ifndef PROF_TOOLS_RUN_COMPOSE_H
#define PROF_TOOLS_RUN_COMPOSE_H

#include "stack.h"

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

/* The hidden command `prof run-with NAME=VALUE... -- WORDS...`: puts variables into the environment
   and executes the words. It is used if an inner tool has variables that outer ones must not see.
   Returns RUN_CANNOT_EXECUTE or RUN_NOT_FOUND. */
int run_tool_compose(int argc, char **argv);

/* Sets a variable in the process's environment. The value of a list (LD_PRELOAD, LD_LIBRARY_PATH,
   PYTHONPATH, PATH) is put in front of the old value. */
void run_export(const char *variable);

/* The variables with the values that run_export() would set. */
run_words run_exports(const run_words *variables);

/* Adds PROF_RUN_FOLDER, the absolute path of a tool's folder. */
void run_folder_export(run_words *variables, const char *folder);

/* True: the tool's files go into a folder NAME_output, or its texts have $PROF_RUN_FOLDER. */
bool run_tool_has_folder(const run_tool *tool);

/* True: the tool follows one process until that executes another program: heaptrack. */
bool run_follows_one_program(const run_tool *tool);

/* True: the cmd has shell syntax, so sh must run it. */
bool run_needs_shell(const char *cmd);

/* Replaces the marks of prof's own tools ({output}, see known_tools.c) in cmd and variables. The
   tool must have its folder. Of the user's texts only $PROF_RUN_FOLDER in variables is replaced. A
   cmd of the user gets it as a variable. */
void run_marks_replace(run_tool *tool);

/* This program's file. */
const char *run_own_path(void);

/* execvp(). If that fails, prints the reason and returns the exit status. */
int run_execute(char **words);

#endif
