/* What the words of a reading command name. A word is a capture, a folder, a quoted glob, or the
   number of a process that records into a file. A trace or a database is imported. Captures may be
   merged, and compared as two sides. */
#ifndef PROF_TOOLS_INPUTS_H
#define PROF_TOOLS_INPUTS_H

#include <limits.h>
#include <prof/trace.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "../../src/format/packed.h"

/* inode 0: it is not a regular file, or does not exist. */
typedef struct input_file {
  dev_t device;
  ino_t inode;
  uint32_t part; /* of a merged capture, from 1; 0: the file is one capture */
} input_file;

/* ---- input_paths.c ---- */

/* Identifies the file, or the part of a file (all.prof#2), that the path names. */
input_file input_file_of(const char *path);

/* Whether both are the same capture. */
bool input_file_equals(const input_file *a, const input_file *b);

/* Calls `add` with the path of each capture of the file: PATH, or PATH#N of each part of a merged
   one. A message counts the lost parts, and they count as damage. Returns the first status that is
   not EXIT_OK. command: for messages; NULL: prof. */
typedef int (*input_add_path)(void *user, const char *path);
int input_each_capture(const char *command, const char *path, input_add_path add, void *user);

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

/* Digits alone, and no file has this name. */
bool input_word_is_process(const char *word, long *pid);

/* The file that the process records into. False, said on stderr: there is none. */
bool input_of_process(const char *command, long pid, char *path, size_t room);

/* The path that the word names. The caller frees it. NULL, with a message: the word does not name
   exactly one. */
char *input_one_path(const char *word);

/* Names the captures that killed processes have left beside this path. A process that is killed
   leaves its capture under a name of its own. */
void input_say_left(const char *path);

/* ---- inputs.c ---- */

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

/* Opens all that the words name. Returns EXIT_OK, or another status after it has said what is
   wrong. */
int input_captures_open(const char *command, size_t count, char **words, input_captures *to);
void input_captures_close(input_captures *captures);

/* What captures have, of the processes and threads that a filter takes. Begins as zeros. */
typedef struct input_contents {
  uint32_t capture_count;           /* with something that the filter takes */
  bool has_scopes;                  /* ended, open, or work of devices */
  bool has_memory, has_events;      /* of the whole captures */
  bool lacks_process, lacks_thread; /* the filter leaves out such */
} input_contents;

struct prof_i_filter;

/* filter: NULL, or that of the command. */
void input_contents_add(input_contents *contents, const prof_trace *trace,
                        const struct prof_i_filter *filter);

/* Of all captures that this command has opened, without a filter. */
const input_contents *input_contents_opened(void);

/* Says why a command shows nothing. If there are no scopes, it also names the command that shows
   what the captures have. Returns an exit status. */
int input_says_nothing(const char *command, const input_contents *contents, bool has_filter);

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

/* ---- merge_files.c ---- */

/* Captures that are merged: their files, and their places on one time line. Each function returns
   EXIT_OK, or another status after it has said what is wrong. */

struct prof_i_merge_capture; /* of src/export/merge.h */
struct prof_i_merge_plan;
struct prof_i_export_filtered;
struct prof_i_export_lacks;

typedef struct merge_file {
  char *path;
  input_file file;
} merge_file;

/* Begins as zeros, but for the command. */
typedef struct merge_files {
  const char *command; /* for messages */
  merge_file *files;
  struct prof_i_merge_capture *captures; /* of the files, once they are placed */
  uint32_t count;
  bool is_unaligned; /* a file was merged by --unaligned */
} merge_files;

/* A file, or the captures of a folder and of its folders rank-N, as prof run leaves them. */
int merge_files_add(merge_files *list, const char *word);

/* Whether all captures were recorded during one boot of one machine, by their headers. */
int merge_files_look(const merge_files *list, bool *is_one_host_out);

/* Opens each one, and says which are damaged or cut off. */
int merge_files_check(const merge_files *list);

/* Opens each one, and places it. help: what a user can do if hosts did not record together. */
int merge_files_place(merge_files *list, bool is_unaligned, const char *help);

/* Writes the placed captures, which the plan need not have. filtered_out: NULL, or what the filter
   has left out. lacks_out: NULL, or what the format cannot hold. Returns PROF_OK or a status with
   its text, and says nothing. */
int merge_files_write(const merge_files *list, const char *output,
                      const struct prof_i_merge_plan *plan,
                      struct prof_i_export_filtered *filtered_out,
                      struct prof_i_export_lacks *lacks_out);

/* How the captures were placed, and how well that is known. */
void merge_files_say_places(const merge_files *list, bool is_unaligned);

void merge_files_free(merge_files *list);

/* ---- sides.c ---- */

/* The two sides of a comparison. */

typedef input_paths side_captures;

/* Index 0: the base; 1: the new side. Begins as zeros. */
typedef struct command_sides {
  const char *command;
  side_captures sides[2];
  int is_named; /* --base or --new was given */
} command_sides;

/* Takes "--base A..." and "--new B..." out of the words. Returns EXIT_OK, or another status after
   it has said what is wrong. */
int sides_take(command_sides *sides, int *argc, char **argv);

/* Adds what a word names to a side. The same. */
int sides_add(command_sides *sides, uint32_t side, const char *word);

/* Reads the words after the options: A and B if is_pair, else captures of the new side. Refuses
   words together with --base and --new, and one of these options alone. Returns an exit status. */
int sides_finish(command_sides *sides, int argc, char **argv, bool is_pair);

/* Refuses an output that is one of the captures, and replaces a link by its target (commands.h).
   Returns an exit status. */
int sides_check_output(const command_sides *sides, const char **output);

/* What a command makes of the captures of both sides. */
typedef struct sides_reader {
  size_t bytes; /* of the object */
  /* Adds a capture. Returns PROF_OK, or a status whose text is set. Two threads may call it for two
     objects. */
  int (*add)(void *to, uint32_t side, const prof_trace *trace);
  /* Moves the new side from another object. Returns PROF_OK or a status. Then both objects may only
     be freed. */
  int (*merge)(void *to, void *from);
  void (*fini)(void *object);
} sides_reader;

/* Adds all captures to `to`, an object without captures. Two threads read two large captures if the
   machine has two processors, and `has_filter` is false. The result is the same. If this fails, one
   thread reads both sides: that may need less memory. Returns an exit status, after a message. */
int sides_read(const command_sides *sides, const sides_reader *reader, bool has_filter, void *to);

/* The same of a comparison. */
struct prof_i_comparison;
int sides_compare(const command_sides *sides, struct prof_i_comparison *comparison);
void sides_free(command_sides *sides);

#endif
