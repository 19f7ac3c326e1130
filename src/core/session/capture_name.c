/* The capture's file name and the output's: where prof_dump(NULL) writes, and what becomes of the
   capture file after a dump. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../base/log.h"
#include "../buffer/capture_file.h"
#include "../buffer/session.h"
#include "internal.h"

/* A child's first scope does not look for rivals; its first dump does. If another process has the
   output's name, output and capture get a new one. Lock held. */
static void settle_capture_name(void) {
  prof_i_arena *const arena = &prof_i_the_arena;
  struct stat about;
  if (!prof_i_control.is_unsettled || !arena->base) return;
  prof_i_control.is_unsettled = false;
  const int fd =
      arena->path[0] ? open(arena->path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC) : -1;
  const bool is_it = fd >= 0 && fstat(fd, &about) == 0 && about.st_dev == arena->device &&
                     about.st_ino == arena->inode;
  if (is_it) fchmod(fd, PROF_I_MODE_CLAIMING);
  prof_i_output_claim_settle(prof_i_control.path, sizeof prof_i_control.path,
                             prof_i_arena_header()->start_realtime_ns, is_it ? fd : -1, arena->path,
                             sizeof arena->path);
  if (fd >= 0) close(fd);
}

bool prof_i_output_path(char *to, size_t room) {
  prof_i_control_lock_now();
  if (prof_i_joined_output_is_set()) {
    const bool is_known = prof_i_joined_output_path(to, room);
    prof_i_control_unlock();
    return is_known;
  }
  if (prof_i_control.is_unsettled) { /* a start that is under way may use the same memory */
    prof_i_control_unlock();
    prof_i_control_lock_before_start();
  }
  settle_capture_name();
  const char *const path = prof_i_control.options.path;
  const bool is_there = path && strlen(path) < room;
  if (is_there) memcpy(to, path, strlen(path) + 1);
  prof_i_control_unlock();
  return is_there;
}

/* Removes the capture file, unless another file has its name by now. False: the file is still
   there, or that is unknown. The next dump tries again. */
static bool remove_capture_file(const char *path) {
  struct stat about;
  if (lstat(path, &about) != 0) return errno == ENOENT;
  if (about.st_dev != prof_i_the_arena.device || about.st_ino != prof_i_the_arena.inode)
    return true;
  return unlink(path) == 0;
}

void prof_i_capture_dumped(void) {
  prof_i_control_lock_before_start();
  if (prof_i_the_arena.is_file && !prof_i_the_session.is_recording &&
      !prof_i_control.options.keep_capture && !prof_i_control.is_of_environment &&
      prof_i_the_arena.path[0] && remove_capture_file(prof_i_the_arena.path))
    /* the mapping stays: prof_get() and a further dump still work */
    prof_i_the_arena.path[0] = '\0';
  prof_i_control_unlock();
}

int prof_i_capture_rename(const char *output) {
  int status;
  prof_i_control_lock_before_start();
  if (prof_i_the_session.is_recording)
    status = prof_i_fail(PROF_E_RUNNING, "cannot write '%s': the capture is being recorded into",
                         output);
  else if (!prof_i_the_arena.is_file || !prof_i_the_arena.path[0])
    status = prof_i_fail(PROF_E_NOT_FOUND, "cannot write '%s': the capture has no name", output);
  else
    status = prof_i_capture_file_rename(prof_i_the_arena.path, output);
  /* the file is the output now: no dump may remove it */
  if (status == PROF_OK) prof_i_the_arena.path[0] = '\0';
  prof_i_control_unlock();
  return status;
}
