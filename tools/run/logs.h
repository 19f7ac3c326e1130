/* Log files that libraries write by themselves, one for each process: read while they grow. */
#ifndef PROF_TOOLS_RUN_LOGS_H
#define PROF_TOOLS_RUN_LOGS_H

#include "origin.h"
#include "text.h"

typedef struct run_logs run_logs;

typedef struct run_logs_target {
  /* Each line, without its line end. from: the process that wrote it. */
  void (*on_line)(void *context, const run_origin *from, const char *line, size_t bytes);
  void *context;
  int log; /* a descriptor that gets all bytes, or -1 */
} run_logs_target;

run_logs *run_logs_create(const run_logs_target *target);
/* Reads all files *.log of that folder, also files created later. A file that is truncated is read
   from its begin again. A file that is renamed or deleted is read to its end. */
void run_logs_add(run_logs *logs, const char *folder);
/* A descriptor to poll: it is readable when a file was written. */
int run_logs_fd(const run_logs *logs);
/* Reads the new lines. */
void run_logs_take(run_logs *logs);
/* Reads the rest, also a last line without an end. */
void run_logs_destroy(run_logs *logs);

#endif
