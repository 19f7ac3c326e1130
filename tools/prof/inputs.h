/* What the words of a reading command name. A word is a capture, a folder, a quoted glob, or the
   number of a process that records into a file. A trace or a database is imported. */
#ifndef PROF_TOOLS_INPUTS_H
#define PROF_TOOLS_INPUTS_H

#include <limits.h>
#include <prof/trace.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "../../src/format/packed.h"

/* inode 0: it is not a regular file, or does not exist. */
typedef struct input_file {
  dev_t device;
  ino_t inode;
  uint32_t part; /* of a merged capture, from 1; 0: the file is one capture */
} input_file;

/* ---- input_parts.c ---- */

/* Identifies the file, or the part of a file (all.prof#2), that the path names. */
input_file input_file_of(const char *path);

/* Whether both are the same capture. */
bool input_file_equals(const input_file *a, const input_file *b);

/* Calls `add` with the path of each capture of the file: PATH, or PATH#N of each part of a merged
   one. A message counts the lost parts, and they count as damage. Returns the first status that is
   not EXIT_OK. command: for messages; NULL: prof. */
typedef int (*input_add_path)(void *user, const char *path);
int input_each_capture(const char *command, const char *path, input_add_path add, void *user);

/* ---- inputs.c ---- */

/* Initialize with zeros. Each file is listed once, with the first name that was given. For a merged
   capture, each part is listed: all.prof#1, all.prof#2. */
typedef struct input_paths {
  char **paths;
  input_file *files; /* of the paths */
  size_t count, room;
} input_paths;

/* Adds what a word names. command: for messages; NULL: prof. is_one_a_run: a folder of runs (run-N,
   as prof run --repeat leaves them) must have one capture in each. Returns EXIT_OK, or another
   status after it has said what is wrong. */
int input_paths_add(const char *command, input_paths *to, const char *word, bool is_one_a_run);

/* Adds the captures of a folder and of its folders rank-N. Returns an exit status. */
int input_paths_add_ranks(const char *command, input_paths *to, const char *folder);
void input_paths_free(input_paths *paths);

/* A capture whose path is passed to another program, which opens it again. */
typedef struct input_named {
  char path[PATH_MAX];
  char imported[PATH_MAX]; /* the same path if an import made the capture, else "" */
} input_named;

/* As open_capture_for(). input_named_close() removes the capture of an import. */
prof_trace *input_named_open(const char *word, const char *output, input_named *named_out);
void input_named_close(const input_named *named);

/* Begins as zeros. */
typedef struct input_captures {
  prof_trace **items;
  size_t count;
} input_captures;

/* Opens all that the words name. The same. */
int input_captures_open(const char *command, size_t count, char **words, input_captures *to);
void input_captures_close(input_captures *captures);

/* Digits alone, and no file has this name. */
bool input_word_is_process(const char *word, long *pid);

/* The file that the process records into. False, said on stderr: there is none. */
bool input_of_process(const char *command, long pid, char *path, size_t room);

/* The begin of a file, as a capture has it; zeros where it cannot be read. */
typedef struct input_begin {
  prof_i_header header;
  prof_i_packed_head packed; /* magic 0: too short */
} input_begin;
input_begin input_begin_read(const char *path);

/* Says what open_capture() says of a capture that it has opened. */
void input_look_at(const char *path, const prof_trace *trace);

/* For commands that print self times, but no notes: open_capture() says from now on if a capture is
   the import of a part of another one. The import itself says it too. */
void input_tell_parts(void);

/* A capture that was opened is damaged, or a trace is cut off. */
bool input_was_damaged(void);
void input_set_damaged(void);

#endif
