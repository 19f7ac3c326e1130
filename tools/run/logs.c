/* See logs.h. */
#define _GNU_SOURCE
#include "logs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "../prof/commands.h"

enum { READ_BYTES = 64 << 10, LINE_BYTES_MAX = 256 << 10 };

typedef struct log_file {
  char *path;
  int fd;
  char *line; /* what has come of a line that has no end yet */
  size_t line_bytes;
} log_file;

struct run_logs {
  void (*on_line)(void *context, const char *line, size_t bytes);
  void *context;
  int log, notify;
  run_words folders;
  log_file *files;
  size_t count;
  char *buffer;
};

run_logs *run_logs_create(void (*on_line)(void *context, const char *line, size_t bytes),
                          void *context, int log) {
  run_logs *const logs = run_make(1, sizeof *logs);
  logs->on_line = on_line;
  logs->context = context;
  logs->log = log;
  logs->buffer = run_make(READ_BYTES, 1);
  logs->notify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  if (logs->notify < 0) /* then they are read in the end */
    say("prof run: logs of libraries are read at the end alone: %s", strerror(errno));
  return logs;
}

void run_logs_add(run_logs *logs, const char *folder) {
  run_words_add(&logs->folders, folder);
  if (logs->notify >= 0) inotify_add_watch(logs->notify, folder, IN_MODIFY | IN_CREATE);
}

int run_logs_fd(const run_logs *logs) { return logs->notify; }

/* ---- lines ---- */

static void keep(log_file *file, const char *at, size_t bytes) {
  const size_t room = LINE_BYTES_MAX - file->line_bytes, taken = bytes < room ? bytes : room;
  memcpy(file->line + file->line_bytes, at, taken);
  file->line_bytes += taken;
}

static void part_lines(run_logs *logs, log_file *file, const char *at, size_t bytes) {
  const char *const end = at + bytes;
  for (const char *next; (next = memchr(at, '\n', (size_t)(end - at))) != NULL; at = next + 1) {
    keep(file, at, (size_t)(next - at));
    logs->on_line(logs->context, file->line, file->line_bytes);
    file->line_bytes = 0;
  }
  keep(file, at, (size_t)(end - at));
}

static void read_file(run_logs *logs, log_file *file) {
  for (ssize_t bytes; (bytes = read(file->fd, logs->buffer, READ_BYTES)) > 0;) {
    for (ssize_t done = 0; logs->log >= 0 && done < bytes;) {
      const ssize_t now = write(logs->log, logs->buffer + done, (size_t)(bytes - done));
      if (now < 0 && errno != EINTR) break;
      if (now > 0) done += now;
    }
    part_lines(logs, file, logs->buffer, (size_t)bytes);
  }
}

/* ---- files ---- */

static bool is_known(const run_logs *logs, const char *path) {
  for (size_t i = 0; i < logs->count; i++)
    if (strcmp(logs->files[i].path, path) == 0) return true;
  return false;
}

static void open_file(run_logs *logs, char *path) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    say("prof run: cannot read '%s': %s", path, strerror(errno));
    return;
  }
  log_file *const files = run_grow(logs->files, logs->count + 1, sizeof *files);
  logs->files = files;
  files[logs->count++] = (log_file){.path = path, .fd = fd, .line = run_make(LINE_BYTES_MAX, 1)};
}

static void find_files(run_logs *logs) {
  for (size_t i = 0; i < logs->folders.count; i++) {
    DIR *const all = opendir(logs->folders.items[i]);
    for (struct dirent *entry; all && (entry = readdir(all)) != NULL;) {
      const char *const dot = strrchr(entry->d_name, '.');
      if (!dot || strcmp(dot, ".log") != 0) continue;
      char *const path = run_text("%s/%s", logs->folders.items[i], entry->d_name);
      if (is_known(logs, path)) free(path);
      else open_file(logs, path);
    }
    if (all) closedir(all);
  }
}

void run_logs_take(run_logs *logs) {
  bool is_new = false;
  char events[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
  for (ssize_t bytes; (bytes = read(logs->notify, events, sizeof events)) > 0;)
    for (ssize_t at = 0; at < bytes;) {
      const struct inotify_event *const event = (const struct inotify_event *)(events + at);
      is_new |= (event->mask & (IN_CREATE | IN_Q_OVERFLOW)) != 0;
      at += (ssize_t)(sizeof *event + event->len);
    }
  if (is_new) find_files(logs);
  for (size_t i = 0; i < logs->count; i++) read_file(logs, &logs->files[i]);
}

void run_logs_destroy(run_logs *logs) {
  find_files(logs);
  for (size_t i = 0; i < logs->count; i++) {
    log_file *const file = &logs->files[i];
    read_file(logs, file);
    if (file->line_bytes > 0) logs->on_line(logs->context, file->line, file->line_bytes);
    close(file->fd);
    free(file->path);
    free(file->line);
  }
  if (logs->notify >= 0) close(logs->notify);
  free(logs->files);
  free(logs->buffer);
  free(logs->folders.items);
  free(logs);
}
