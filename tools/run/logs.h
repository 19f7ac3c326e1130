/* Log files that libraries write by themselves, one a process: read while they grow. */
#ifndef PROF_TOOLS_RUN_LOGS_H
#define PROF_TOOLS_RUN_LOGS_H

#include "text.h"

typedef struct run_logs run_logs;

/* on_line: each line, without its line end. log: a descriptor that gets all bytes, or -1. */
run_logs *run_logs_create(void (*on_line)(void *context, const char *line, size_t bytes),
                          void *context, int log);
/* Reads all files *.log of that folder, also files created later. */
void run_logs_add(run_logs *logs, const char *folder);
/* A descriptor to poll: it is readable when a file was written. */
int run_logs_fd(const run_logs *logs);
/* Reads the new lines. */
void run_logs_take(run_logs *logs);
/* Reads the rest, also a last line without an end. */
void run_logs_destroy(run_logs *logs);

#endif
