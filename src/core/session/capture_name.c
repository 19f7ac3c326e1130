/* The capture's file name and the output's: where prof_dump(NULL) writes, and what becomes of the
   capture file after a dump. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <prof/profiler.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../base/error.h"
#include "../../base/port.h"
#include "../../base/text.h"
#include "../buffer/arena.h"
#include "../buffer/capture_file.h"
#include "../buffer/session.h"
#include "internal.h"

/* ---- a joined program's output ---- */

/* A program that calls prof_start() during a capture that variables of the environment started
   joins that capture (PROF_JOIN). The program's output is separate from that of the environment. */

static struct {
  char pattern[PROF_I_OUTPUT_ROOM];
  char name[PROF_I_OUTPUT_ROOM]; /* expanded at the first dump; "": not yet */
  pid_t pid;                     /* of the process that `name` is for */
  uint64_t since_realtime_ns;
} joined_output;

void prof_i_joined_output_set(const char *path) {
  if (joined_output.pid == getpid() && strcmp(joined_output.pattern, path) == 0) return;
  snprintf(joined_output.pattern, sizeof joined_output.pattern, "%s", path);
  joined_output.name[0] = '\0';
  joined_output.pid = getpid();
  joined_output.since_realtime_ns = prof_i_port_realtime_ns();
}

static bool joined_output_is_set(void) { return joined_output.pattern[0] != '\0'; }

static bool was_written_since(const char *path, uint64_t realtime_ns) {
  struct stat is;
  if (stat(path, &is) != 0 || !S_ISREG(is.st_mode)) return false;
  const uint64_t second_ns = 1000000000;
  return (uint64_t)is.st_mtim.tv_sec * second_ns + (uint64_t)is.st_mtim.tv_nsec > realtime_ns;
}

static bool choose_name(void) {
  char host[64] = "host";
  const bool is_child = joined_output.pid != getpid();
  gethostname(host, sizeof host - 1);
  const prof_i_path_words words = {(uint32_t)getpid(), prof_i_identity_rank(), host};
  joined_output.pid = getpid();
  int status = prof_i_expand_path(joined_output.pattern, &words, joined_output.name,
                                  sizeof joined_output.name);
  const bool is_another_s =
      is_child || was_written_since(joined_output.name, joined_output.since_realtime_ns);
  if (status == PROF_OK && is_another_s && !prof_i_path_has(joined_output.pattern, 'p'))
    status = prof_i_output_add_suffix(joined_output.name, sizeof joined_output.name);
  if (status != PROF_OK) joined_output.name[0] = '\0';
  return status == PROF_OK;
}

/* Where the program's prof_dump(NULL) writes. The name gets the pid of a forked child if it has no
   %p, and of a process whose name another one has written since. False: it does not fit. */
static bool joined_output_path(char *to, size_t room) {
  if ((!joined_output.name[0] || joined_output.pid != getpid()) && !choose_name()) return false;
  if (strlen(joined_output.name) >= room) return false;
  memcpy(to, joined_output.name, strlen(joined_output.name) + 1);
  return true;
}

/* ---- names of capture and output ---- */

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
  if (joined_output_is_set()) {
    const bool is_known = joined_output_path(to, room);
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
