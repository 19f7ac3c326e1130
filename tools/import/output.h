/* The capture's file: without a name, or under a temporary one beside, until it is whole. A failure
   leaves nothing behind. */
#ifndef PROF_IMPORT_OUTPUT_H
#define PROF_IMPORT_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct import_output {
  int fd;
  const char *path;
  char *folder;
  bool must_be_new;
  uint64_t bytes; /* written so far */
} import_output;

void import_output_open(import_output *output, const char *path, bool must_be_new);
void import_output_write(import_output *output, const void *bytes, size_t count);
/* Overwrites the begin of the file. */
void import_output_write_first(import_output *output, const void *bytes, size_t count);
/* Gives it its name. */
void import_output_commit(import_output *output);
void import_output_abandon(import_output *output);

/* Removes the file with a temporary name. Signal-safe. */
void import_output_remove_unfinished(void);

#endif
