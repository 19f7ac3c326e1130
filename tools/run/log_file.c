/* See log_file.h. */
#define _GNU_SOURCE
#include "log_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { READ_BYTES = 64 << 10, LINE_BYTES_MAX = 256 << 10 };

/* ---- lines ---- */

static void report_log_line(const log_file *file, const run_logs_target *target, const char *line,
                            size_t bytes) {
  if (bytes > 0 && line[bytes - 1] == '\r') bytes--;
  target->on_line(target->context, &file->origin, line, bytes);
}

/* A line longer than LINE_BYTES_MAX is cut. */
static void keep_log_bytes(log_file *file, const char *at, size_t bytes) {
  const size_t room = LINE_BYTES_MAX - file->line_bytes, taken = bytes < room ? bytes : room;
  const size_t needed = file->line_bytes + taken;
  if (needed > file->line_room) {
    file->line_room = needed < LINE_BYTES_MAX / 2 ? 2 * needed : LINE_BYTES_MAX;
    file->line = run_grow(file->line, file->line_room, 1);
  }
  if (taken > 0) memcpy(file->line + file->line_bytes, at, taken);
  file->line_bytes += taken;
}

static void end_line(log_file *file, const run_logs_target *target) {
  if (file->line_bytes > 0) report_log_line(file, target, file->line, file->line_bytes);
  free(file->line);
  file->line = NULL;
  file->line_bytes = file->line_room = 0;
}

static void split_log_lines(log_file *file, const run_logs_target *target, const char *at,
                            size_t bytes) {
  const char *const end = at + bytes;
  for (const char *next; (next = memchr(at, '\n', (size_t)(end - at))) != NULL; at = next + 1) {
    if (file->line_bytes == 0) {
      report_log_line(file, target, at, (size_t)(next - at));
      continue;
    }
    keep_log_bytes(file, at, (size_t)(next - at));
    end_line(file, target);
  }
  keep_log_bytes(file, at, (size_t)(end - at));
}

/* ---- bytes ---- */

static void copy_to_log(int log, const char *at, size_t bytes) {
  for (size_t done = 0; log >= 0 && done < bytes;) {
    const ssize_t now = write(log, at + done, bytes - done);
    if (now < 0 && errno != EINTR) return;
    if (now > 0) done += (size_t)now;
  }
}

/* 0: neither the kernel nor the file system says it. By the system call: older libraries of C have
   no statx(). */
static int64_t birth_ns(int fd, const char *path, int flags) {
#if defined STATX_BTIME && defined SYS_statx
  struct statx more;
  if (syscall(SYS_statx, fd, path, flags, STATX_BTIME, &more) == 0 && more.stx_mask & STATX_BTIME)
    return more.stx_btime.tv_sec * INT64_C(1000000000) + more.stx_btime.tv_nsec;
#else
  (void)fd, (void)path, (void)flags;
#endif
  return 0;
}

bool log_key_get(int fd, const char *path, log_key *key, struct stat *is) {
  if ((fd >= 0 ? fstat(fd, is) : lstat(path, is)) != 0) return false;
  memset(key, 0, sizeof *key); /* it is hashed with its padding */
  key->device = is->st_dev;
  key->inode = is->st_ino;
  key->birth_ns =
      fd >= 0 ? birth_ns(fd, "", AT_EMPTY_PATH) : birth_ns(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW);
  return true;
}

/* The same path may be another file by now. */
static bool open_again(log_file *file) {
  struct stat is;
  log_key key;
  file->fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
  if (file->fd < 0) return false;
  if (log_key_get(file->fd, file->path, &key, &is) && memcmp(&key, &file->key, sizeof key) == 0)
    return true;
  log_file_close(file);
  errno = ENOENT;
  return false;
}

bool log_file_read(log_file *file, const run_logs_target *target) {
  static char buffer[READ_BYTES];
  struct stat is;
  if (!file->is_read) return true;
  if (file->fd < 0 && !open_again(file)) return errno != EMFILE && errno != ENFILE;
  if (fstat(file->fd, &is) != 0) return true;
  if (is.st_size < file->offset) { /* it was truncated */
    end_line(file, target);
    file->offset = 0;
  }
  /* what is written from now on makes another event: a fast writer cannot hold us here */
  while (file->offset < is.st_size) {
    const off_t left = is.st_size - file->offset;
    const ssize_t bytes =
        pread(file->fd, buffer, left < READ_BYTES ? (size_t)left : READ_BYTES, file->offset);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes <= 0) break;
    file->offset += bytes;
    copy_to_log(target->log, buffer, (size_t)bytes);
    split_log_lines(file, target, buffer, (size_t)bytes);
  }
  return true;
}

void log_file_close(log_file *file) {
  if (file->fd >= 0) close(file->fd);
  file->fd = -1;
}

void log_file_finish(log_file *file, const run_logs_target *target) {
  (void)log_file_read(file, target);
  end_line(file, target);
  log_file_close(file);
  free(file->path);
  free(file);
}
