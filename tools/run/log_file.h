/* One log file that grows: reads what is new, and divides it into lines. */
#ifndef PROF_TOOLS_RUN_LOG_FILE_H
#define PROF_TOOLS_RUN_LOG_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "hash.h"
#include "logs.h"

typedef struct log_key {
  dev_t device;
  ino_t inode;
  int64_t birth_ns; /* a new file may have the inode of a deleted one; 0: not known */
} log_key;

typedef struct log_file {
  log_key key;
  char *path;
  int fd; /* -1: it is closed, and opened again when it grows */
  off_t offset;
  bool is_read; /* false: it could not be opened */
  run_origin origin;
  char *line; /* the begin of a line without an end, or NULL */
  size_t line_bytes, line_room;
  UT_hash_handle hh;
} log_file;

/* Which file fd is, or path where fd is negative; a link itself, not what it leads to. False: errno
   has the reason. is: as fstat() fills it. */
bool log_key_get(int fd, const char *path, log_key *key, struct stat *is);
/* Reads what the file has now. Opens it if it is closed. False: too many files are open. */
bool log_file_read(log_file *file, const run_logs_target *target);
/* Closes the descriptor, and keeps the position. */
void log_file_close(log_file *file);
/* Reads the rest, and a last line without an end. Frees the file. */
void log_file_finish(log_file *file, const run_logs_target *target);

#endif
