/* Captures that are merged: their files, and their places on one time line. Each function returns
   EXIT_OK, or another status after it has said what is wrong. */
#ifndef PROF_TOOLS_MERGE_FILES_H
#define PROF_TOOLS_MERGE_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "../../src/export/merge.h"
#include "inputs.h"

typedef struct merge_file {
  char *path;
  input_file file;
} merge_file;

/* Begins as zeros, but for the command. */
typedef struct merge_files {
  const char *command; /* for messages */
  merge_file *files;
  prof_i_merge_capture *captures; /* of the files, once they are placed */
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
   has left out. Returns PROF_OK or a status with its text, and says nothing. */
int merge_files_write(const merge_files *list, const char *output, const prof_i_merge_plan *plan,
                      prof_i_export_filtered *filtered_out);

/* merge_capture.c: copies the bytes of all captures into one merged capture. The same result. */
int merge_files_write_capture(const merge_files *list, const char *output, bool is_unaligned);

/* How the captures were placed, and how well that is known. */
void merge_files_say_places(const merge_files *list, bool is_unaligned);

void merge_files_free(merge_files *list);

#endif
