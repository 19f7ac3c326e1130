/* The command line that a stack of tools makes of a workload. */
#ifndef PROF_TOOLS_RUN_COMPOSE_H
#define PROF_TOOLS_RUN_COMPOSE_H

#include "stack.h"

/* What is executed. */
typedef struct run_command {
  run_words words;     /* argv */
  run_words variables; /* NAME=VALUE, to be put into the environment */
} run_command;

/* In: the stack, whose tools have their folders, and the workload's words. Words are passed on as
   they are: a cmd with shell characters is run by sh with them as "$@". */
run_command run_compose(const run_stack *stack, const run_words *workload);

/* The hidden command `prof run-with NAME=VALUE... -- WORDS...`: puts variables into the environment
   and executes the words. It stands where an inner tool has variables that outer ones must not see.
   Returns RUN_CANNOT_EXECUTE or RUN_NOT_FOUND. */
int run_with(int argc, char **argv);

/* Puts a variable into the own environment. A list (LD_PRELOAD, LD_LIBRARY_PATH, PYTHONPATH, PATH)
   goes in front of what is there. */
void run_export(const char *variable);

/* A cmd that is more than plain words: sh must read it. */
bool run_needs_shell(const char *cmd);

/* Puts what the marks of prof's own tools stand for ({output}, see known.c) into cmd and variables,
   when the tool has its folder. A text of the user's stays as it is. */
void run_marks_replace(run_tool *tool);

/* This program's file. */
const char *run_own_path(void);

/* execvp(); returns the status to end with, after it has said why. */
int run_execute(char **words);

#endif
