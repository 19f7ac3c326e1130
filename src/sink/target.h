/* Where an output file lands. The bytes go to a file without a name (O_TMPFILE), or with a
   temporary name beside. It gets the final name only when it is complete. So no reader ever sees
   half a file, and a failure leaves nothing behind. FIFOs, /dev/null and /dev/stdout are written to
   straight; a directory or any other device is refused. Sends no signals: RLIMIT_FSIZE is checked
   before each write, because the kernel sends SIGXFSZ beyond it. A reader that went away is an
   error and no SIGPIPE. A descriptor that the program closed is noticed before another file under
   that number is written to. */
#ifndef PROF_SINK_TARGET_H
#define PROF_SINK_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A descriptor and what it was when we opened it. */
typedef struct prof_i_open_file {
  int fd; /* -1: none */
  dev_t device;
  ino_t inode;
} prof_i_open_file;

typedef struct prof_i_target {
  prof_i_open_file file;
  /* of the final name: a chdir meanwhile changes nothing; none when written straight */
  prof_i_open_file folder;
  char *path;         /* as the caller gave it, for the error texts; owned */
  const char *name;   /* its last part, in path */
  char temporary[48]; /* name in the folder; "" while the file has none */
  /* where in the file our bytes begin: not 0 only for a regular file as /dev/stdout */
  uint64_t begin_bytes;
  uint64_t written_bytes;
  uint64_t started_bytes; /* of them, on their way to the disk */
  bool is_direct;
  bool is_pipe;
  bool is_regular;
  bool is_live;
  bool must_be_new; /* an existing file is left alone: PROF_E_IO */
} prof_i_target;

/* The temporary name of a file, and its folder; name[0] 0: there is none. For a command that a
   signal ends: its handler removes the file. Set before the file has the name, and cleared when it
   has lost it. */
typedef struct prof_i_unfinished_file {
  int folder;
  char name[48];
} prof_i_unfinished_file;

/* Where targets of this process note theirs, or NULL, as in a library: one at a time. Set before
   the first target is opened. */
extern prof_i_unfinished_file *prof_i_target_unfinished;

/* All of these return 0 or a status whose text has been set (prof_i_fail). One thread at a time per
   target. */
int prof_i_target_open(prof_i_target *target, const char *path, bool must_be_new);
/* Gives the file its name now, and removes what it held. Readers see it grow. A link is refused. */
int prof_i_target_open_live(prof_i_target *target, const char *path);
int prof_i_target_write(prof_i_target *target, const void *bytes, size_t count);
/* Gives the file its final name. The target is closed, also on failure: then nothing is left of
   it. */
int prof_i_target_commit(prof_i_target *target);

/* Closes the target without a trace of it, but for what was written straight. */
void prof_i_target_abandon(prof_i_target *target);

#endif
