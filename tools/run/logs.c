/* See library.h. A file is known by its inode and birth, not by its name. So a log that is renamed
   is not read again. A new file under an old name is read. */
#define _GNU_SOURCE
#include "library.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../prof/commands.h"
#include "hash.h"

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

/* Which file fd is, or path where fd is negative; a link itself, not what it leads to. False: errno
   has the reason. is: as fstat() fills it. */
static bool log_key_get(int fd, const char *path, log_key *key, struct stat *is) {
  if ((fd >= 0 ? fstat(fd, is) : lstat(path, is)) != 0) return false;
  memset(key, 0, sizeof *key); /* it is hashed with its padding */
  key->device = is->st_dev;
  key->inode = is->st_ino;
  key->birth_ns =
      fd >= 0 ? birth_ns(fd, "", AT_EMPTY_PATH) : birth_ns(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW);
  return true;
}

/* Closes the descriptor, and keeps the position. */
static void log_file_close(log_file *file) {
  if (file->fd >= 0) close(file->fd);
  file->fd = -1;
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

/* Reads what the file has now. Opens it if it is closed. False: too many files are open. */
static bool log_file_read(log_file *file, const run_logs_target *target) {
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

/* Reads the rest, and a last line without an end. Frees the file. */
static void log_file_finish(log_file *file, const run_logs_target *target) {
  (void)log_file_read(file, target);
  end_line(file, target);
  log_file_close(file);
  free(file->path);
  free(file);
}

/* ---- the folders ---- */

typedef struct log_folder {
  char *path, *real; /* real: absolute, without links */
  int watch;
} log_folder;

struct run_logs {
  run_logs_target target;
  int notify;
  log_folder *folders;
  size_t folder_count;
  log_file *files; /* uthash keeps the order of insertion */
};

run_logs *run_logs_create(const run_logs_target *target) {
  run_logs *const logs = run_make(1, sizeof *logs);
  logs->target = *target;
  logs->notify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  if (logs->notify < 0)
    say("prof run: logs of libraries are only read at the end: %s", strerror(errno));
  return logs;
}

void run_logs_add(run_logs *logs, const char *folder) {
  const uint32_t events = IN_MODIFY | IN_CREATE | IN_MOVED_TO | IN_CLOSE_WRITE | IN_DELETE;
  logs->folders = run_grow(logs->folders, logs->folder_count + 1, sizeof *logs->folders);
  log_folder *const added = &logs->folders[logs->folder_count++];
  *added = (log_folder){.path = run_text("%s", folder), .watch = -1};
  added->real = realpath(folder, NULL);
  if (logs->notify >= 0) added->watch = inotify_add_watch(logs->notify, folder, events);
  if (logs->notify >= 0 && added->watch < 0)
    say("prof run: '%s' is only read at the end: %s", folder, strerror(errno));
}

int run_logs_fd(const run_logs *logs) { return logs->notify; }

/* ---- files ---- */

static bool name_is_log(const char *name) {
  const char *const dot = strrchr(name, '.');
  return dot && strcmp(dot, ".log") == 0;
}

/* Only regular files are read: a link may lead anywhere, and a FIFO would lose its bytes. */
static int open_log_file(const char *path, log_key *key, struct stat *is) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
  if (fd < 0 || (log_key_get(fd, path, key, is) && S_ISREG(is->st_mode))) return fd;
  close(fd);
  errno = EINVAL;
  return -1;
}

/* Too many files are open: closes all of ours. They are opened again when they grow. */
static void close_log_files(run_logs *logs) {
  for (log_file *file = logs->files; file; file = file->hh.next) log_file_close(file);
}

static log_file *find_file(run_logs *logs, const log_key *key) {
  log_file *found;
  HASH_FIND(hh, logs->files, key, sizeof *key, found);
  return found;
}

static void read_log_file(run_logs *logs, log_file *file) {
  if (log_file_read(file, &logs->target)) return;
  close_log_files(logs);
  log_file_read(file, &logs->target); /* what is not read now is read at the end */
}

/* NULL: it has gone already. */
static log_file *add_log_file(run_logs *logs, const log_folder *folder, const char *path,
                              log_key key, const struct stat *is) {
  struct stat opened = *is;
  int fd = open_log_file(path, &key, &opened);
  if (fd < 0 && (errno == EMFILE || errno == ENFILE)) {
    close_log_files(logs);
    fd = open_log_file(path, &key, &opened);
  }
  if (fd < 0 && errno == ENOENT) return NULL;
  if (fd < 0)
    say("prof run: the log '%s' is not read: %s", path,
        S_ISREG(is->st_mode) ? strerror(errno) : "it is no regular file");
  log_file *file = find_file(logs, &key);
  if (file) { /* it was replaced meanwhile, by a file that is known */
    if (fd >= 0) close(fd);
    return file;
  }
  file = run_make(1, sizeof *file);
  file->key = key;
  file->path = run_text("%s", path);
  file->fd = fd;
  file->is_read = fd >= 0;
  file->origin = run_origin_of_log(path, folder->real ? folder->real : folder->path);
  HASH_ADD(hh, logs->files, key, sizeof file->key, file);
  return file;
}

/* A name in a folder has changed, or was found. Returns its file, or NULL. */
static log_file *on_name_changed(run_logs *logs, const log_folder *folder, const char *name) {
  struct stat is;
  log_key key;
  char *const path = run_text("%s/%s", folder->path, name);
  log_file *file = NULL;
  if (log_key_get(-1, path, &key, &is)) {
    file = find_file(logs, &key);
    if (!file && name_is_log(name)) file = add_log_file(logs, folder, path, key, &is);
  }
  if (file && strcmp(file->path, path) != 0) { /* renamed */
    free(file->path);
    file->path = run_text("%s", path);
  }
  if (file) read_log_file(logs, file);
  free(path);
  return file;
}

static void scan_folders(run_logs *logs) {
  for (size_t i = 0; i < logs->folder_count; i++) {
    DIR *const all = opendir(logs->folders[i].path);
    for (struct dirent *entry; all && (entry = readdir(all)) != NULL;)
      if (name_is_log(entry->d_name)) on_name_changed(logs, &logs->folders[i], entry->d_name);
    if (all) closedir(all);
  }
}

static void read_open_log_files(run_logs *logs) {
  for (log_file *file = logs->files; file; file = file->hh.next)
    if (file->fd >= 0) (void)log_file_read(file, &logs->target);
}

/* ---- events ---- */

static bool name_is_path_of(const log_file *file, const log_folder *folder, const char *name) {
  const size_t bytes = strlen(folder->path);
  return strncmp(file->path, folder->path, bytes) == 0 && file->path[bytes] == '/' &&
         strcmp(file->path + bytes + 1, name) == 0;
}

/* A file that we have open is read to its end, later. What the name is by now is another file, or
   one that was made before we came to the event. */
static void forget_name(run_logs *logs, const log_folder *folder, const char *name) {
  struct stat is;
  log_key key;
  for (log_file *file = logs->files, *next; file; file = next) {
    next = file->hh.next;
    if (!name_is_path_of(file, folder, name)) continue;
    if (file->fd >= 0) continue;
    if (log_key_get(-1, file->path, &key, &is) && memcmp(&key, &file->key, sizeof key) == 0)
      continue;
    HASH_DELETE(hh, logs->files, file);
    log_file_finish(file, &logs->target);
  }
}

static void on_inotify_event(run_logs *logs, const struct inotify_event *event) {
  for (size_t i = 0; i < logs->folder_count && event->len > 0; i++) {
    if (logs->folders[i].watch != event->wd) continue;
    if (event->mask & IN_DELETE) {
      forget_name(logs, &logs->folders[i], event->name);
      continue;
    }
    log_file *const file = on_name_changed(logs, &logs->folders[i], event->name);
    /* files of processes that have ended need no descriptor of ours */
    if (file && event->mask & IN_CLOSE_WRITE) log_file_close(file);
  }
}

void run_logs_take(run_logs *logs) {
  char events[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
  bool is_overflown = false;
  for (ssize_t bytes; (bytes = read(logs->notify, events, sizeof events)) > 0;)
    for (ssize_t at = 0; at < bytes;) {
      const struct inotify_event *const event = (const struct inotify_event *)(events + at);
      is_overflown |= (event->mask & IN_Q_OVERFLOW) != 0;
      on_inotify_event(logs, event);
      at += (ssize_t)(sizeof *event + event->len);
    }
  if (!is_overflown) return;
  scan_folders(logs);
  read_open_log_files(logs);
}

void run_logs_destroy(run_logs *logs) {
  if (logs->notify >= 0) run_logs_take(logs);
  read_open_log_files(logs); /* also deleted files, which have no name to open them by */
  close_log_files(logs);
  scan_folders(logs);
  close_log_files(logs);
  while (logs->files) {
    log_file *const file = logs->files;
    HASH_DELETE(hh, logs->files, file);
    log_file_finish(file, &logs->target);
  }
  if (logs->notify >= 0) close(logs->notify);
  for (size_t i = 0; i < logs->folder_count; i++) {
    free(logs->folders[i].path);
    free(logs->folders[i].real);
  }
  free(logs->folders);
  free(logs);
}
