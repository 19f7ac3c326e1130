/* What the words of a reading command name. A word is a capture, a folder, a quoted glob, or the
   number of a process that records into a file. A trace or a database is imported. */
#ifndef PROF_TOOLS_INPUTS_H
#define PROF_TOOLS_INPUTS_H

#include <glob.h>
#include <prof/trace.h>
#include <stdbool.h>
#include <stddef.h>

/* Begins as zeros. */
typedef struct input_paths {
  char **paths;
  size_t count, room;
} input_paths;

/* Adds what a word names. is_one_a_run: a folder of runs (run-N, as prof run --repeat leaves them)
   must have one capture in each. Returns EXIT_OK, or another status after it has said what is
   wrong. */
int input_paths_add(const char *command, input_paths *to, const char *word, bool is_one_a_run);
void input_paths_free(input_paths *paths);

/* Begins as zeros. */
typedef struct input_captures {
  prof_trace **items;
  size_t count;
} input_captures;

/* Opens all that the words name. The same. */
int input_captures_open(const char *command, size_t count, char **words, input_captures *to);
void input_captures_close(input_captures *captures);

/* glob() of the pattern in a folder, whose name is taken as it is. What it finds is added to what
   `found` has. */
int glob_in_folder(const char *folder, const char *pattern, glob_t *found);

/* The file that the process records into. False, said on stderr: there is none. */
bool input_of_process(const char *command, long pid, char *path, size_t room);

/* A capture that was opened is damaged, or a trace is cut off. */
bool input_was_damaged(void);

#endif
