/* Opens a capture file. A file that its process still writes to is copied as a snapshot. A small
   finished file is read, so later changes do not matter. A large one, or one of many, is mapped: if
   it is truncated then, the reader gets SIGBUS. Only regular files are opened, because a FIFO may
   block, and a device may act. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <prof/trace.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../base/log.h"
#include "../base/port.h"
#include "../base/reentry.h"
#include "../base/this_thread.h"
#include "../core/buffer/clock.h"
#include "../core/buffer/output_claim.h"
#include "../reader/capture.h"
#include "live.h"

static int file_fail_errno(const char *what, const char *path) {
  const int error = errno;
  return prof_i_fail(prof_i_status_of_errno(error), "%s %s: %s", what, path, strerror(error));
}

static int refuse_type(const char *path, mode_t mode) {
  const char *const what = S_ISDIR(mode)    ? "a directory"
                           : S_ISFIFO(mode) ? "a pipe"
                           : S_ISSOCK(mode) ? "a socket"
                                            : "a device";
  return prof_i_fail(PROF_E_FILE_TYPE, "%s is %s; a capture is a regular file%s", path, what,
                     S_ISDIR(mode) ? ": prof recover looks into directories" : "");
}

/* Opening a device may have effects, so the type is checked first. */
static int open_regular(const char *path, int *fd_out, uint64_t *bytes_out) {
  struct stat about;
  if (stat(path, &about) != 0) return file_fail_errno("cannot open", path);
  if (!S_ISREG(about.st_mode)) return refuse_type(path, about.st_mode);
  const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (fd < 0) return file_fail_errno("cannot open", path);
  int status = PROF_OK;
  if (fstat(fd, &about) != 0)
    status = file_fail_errno("cannot examine", path);
  else if (!S_ISREG(about.st_mode))
    status = refuse_type(path, about.st_mode);
  if (status) {
    close(fd);
    return status;
  }
  *fd_out = fd;
  *bytes_out = (uint64_t)about.st_size;
  return PROF_OK;
}

/* Reads up to count bytes from the begin. Fewer if the file was truncated. -1: see errno. */
static int64_t read_from_begin(int fd, unsigned char *to, uint64_t count) {
  uint64_t done = 0;
  while (done < count) {
    const ssize_t got = pread(fd, to + done, (size_t)(count - done), (off_t)done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return -1;
    if (got == 0) break;
    done += (uint64_t)got;
  }
  return (int64_t)done;
}

static int read_whole(prof_i_source *source, int fd, uint64_t bytes, const char *path) {
  unsigned char *const copy = malloc(bytes ? (size_t)bytes : 1);
  if (!copy)
    return prof_i_fail(PROF_E_NO_MEMORY, "no memory for the %llu bytes of %s",
                       (unsigned long long)bytes, path);
  const int64_t count = read_from_begin(fd, copy, bytes);
  if (count < 0) {
    const int status = file_fail_errno("cannot read", path);
    free(copy);
    return status;
  }
  *source = (prof_i_source){.bytes = copy, .count = (uint64_t)count, .kind = PROF_I_SOURCE_COPY};
  return PROF_OK;
}

static int map_whole(prof_i_source *source, int fd, uint64_t bytes, const char *path) {
  void *const at = mmap(NULL, (size_t)bytes, PROT_READ, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) return file_fail_errno("cannot map", path);
  *source = (prof_i_source){.bytes = at, .count = bytes, .kind = PROF_I_SOURCE_MAPPING};
  /* else its pages stay */
  if (prof_i_make_room((void **)&source->runs, &source->run_room, 0, sizeof *source->runs))
    source->runs[source->run_count++] = (prof_i_mapped_run){0, bytes};
  return PROF_OK;
}

static uint64_t live_bytes_now(const prof_i_live_source *live) {
  struct stat about;
  return fstat(live->fd, &about) == 0 ? (uint64_t)about.st_size : 0;
}

/* Maps room after its end, too, if possible, because the file may grow during the copy. */
static int copy_live_file(prof_i_source *source, int fd, uint64_t bytes, const char *path) {
  uint64_t room = bytes + PROF_I_ARENA_GROWTH_BYTES;
  void *at = mmap(NULL, (size_t)room, PROT_READ, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) at = mmap(NULL, (size_t)(room = bytes), PROT_READ, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) return file_fail_errno("cannot map", path);
  const int status = prof_i_source_snapshot(
      source,
      &(prof_i_live_source){.bytes = at, .room = room, .live_bytes_now = live_bytes_now, .fd = fd},
      false);
  prof_i_port_unmap(at, (size_t)room);
  return status;
}

/* Zeros if its process has another clock, or does not record into this file: it may be a copy of
   the file that it records into. */
static prof_i_clock_reading read_clock_of_capture(int fd, const prof_i_header *header) {
  if (prof_i_output_claim_lock_state(fd) == PROF_I_LOCK_NONE ||
      !prof_i_process_shares_clock(header))
    return (prof_i_clock_reading){.monotonic_ns = 0};
  return prof_i_clock_read(header->clock);
}

/* A recording process holds a lock on its file, and maps it. If it closed the descriptor, the
   mapping remains. */
bool prof_i_source_is_copy(int fd, const prof_i_header *header) {
  return header->state == PROF_I_STATE_RECORDING &&
         prof_i_output_claim_lock_state(fd) == PROF_I_LOCK_NONE &&
         prof_i_process_lacks_file(header, fd);
}

static int read_or_map(prof_i_source *source, int fd, uint64_t bytes, const char *path) {
  if (!prof_i_source_hold(bytes)) return map_whole(source, fd, bytes, path);
  const int status = read_whole(source, fd, bytes, path);
  if (status == PROF_OK)
    source->counted_bytes = bytes;
  else
    prof_i_source_let_go(bytes);
  return status;
}

static int open_source(prof_i_source *source, int fd, uint64_t bytes, const char *path) {
  unsigned char first_unit[PROF_I_FIRST_UNIT_OFFSET] = {0};
  if (read_from_begin(fd, first_unit, sizeof first_unit) < 0)
    return file_fail_errno("cannot read", path);
  const int check = prof_i_source_check_memory(first_unit, path);
  if (check) return check;
  prof_i_header header;
  memcpy(&header, first_unit, sizeof header);
  /* Read first: a process that is alive afterwards was alive at this time. */
  const prof_i_clock_reading opened = read_clock_of_capture(fd, &header);
  const prof_i_process_state its =
      bytes < PROF_I_FIRST_UNIT_OFFSET ? PROF_I_PROCESS_ENDED : prof_i_process_state_of(&header);
  int status;
  if (its == PROF_I_PROCESS_ENDED || header.state == PROF_I_STATE_COPIED ||
      header.version == PROF_I_PACKED_VERSION || /* nobody records into it */
      (its == PROF_I_PROCESS_UNKNOWN && header.state == PROF_I_STATE_STOPPED)) {
    status = read_or_map(source, fd, bytes, path);
  } else {
    status = copy_live_file(source, fd, bytes, path);
  }
  if (status == PROF_OK) source->is_elsewhere = its == PROF_I_PROCESS_UNKNOWN;
  if (status == PROF_OK && its == PROF_I_PROCESS_RUNS) source->opened = opened;
  if (status == PROF_OK && its == PROF_I_PROCESS_RUNS)
    source->is_copied = prof_i_source_is_copy(fd, &header);
  return status;
}

static int source_file(prof_i_source *source, const char *path) {
  int fd = -1;
  uint64_t bytes = 0;
  int status = open_regular(path, &fd, &bytes);
  if (status) return status;
  status = open_source(source, fd, bytes, path);
  close(fd);
  return status;
}

int prof_trace_open(const char *path, prof_trace **trace_out) {
  PROF_I_DEFAULT_FP;
  PROF_I_DISABLE_CANCEL;
  PROF_I_REFUSE_INTERRUPTED(PROF_E_BUSY);
  PROF_I_INSIDE;
  if (!path || !trace_out)
    return prof_i_fail(PROF_E_INVALID, "prof_trace_open: %s is NULL", path ? "trace_out" : "path");
  prof_i_source source;
  int status = source_file(&source, path);
  if (status) return status;
  status = prof_i_trace_make(&source, trace_out);
  return status ? prof_i_fail_in(path, status) : PROF_OK;
}
