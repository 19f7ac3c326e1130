/* The file of an import's capture. See internal.h. */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TEMPORARY_NAME_BYTES = sizeof "/.prof-import-2147483647.tmp" };

/* The path of the file with a temporary name, or NULL. Only a complete path is published. A signal
   handler or atexit() removes the file. Only the caller of take_unfinished() may free the path. */
static char *unfinished_path;

static void publish_unfinished(char *path) {
  __atomic_store_n(&unfinished_path, path, __ATOMIC_RELEASE); /* with take_unfinished() */
}

static char *take_unfinished(void) {
  return __atomic_exchange_n(&unfinished_path, NULL, __ATOMIC_ACQ_REL);
}

/* Frees nothing: free() is not signal-safe, and the process ends. */
void import_output_remove_unfinished(void) {
  const char *const path = take_unfinished();
  if (path) unlink(path);
}

static void forget_temporary(void) { free(take_unfinished()); }

static void remove_temporary(void) {
  char *const path = take_unfinished();
  if (path) unlink(path);
  free(path);
}

static char *output_folder(const char *path) {
  const char *const slash = strrchr(path, '/');
  char *const folder = slash == NULL   ? strdup(".")
                       : slash == path ? strdup("/")
                                       : strndup(path, (size_t)(slash - path));
  if (!folder) import_fail("no memory");
  return folder;
}

/* Publishes the path before the file exists, and returns it. */
static const char *name_temporary(const import_output *output) {
  const size_t room = strlen(output->folder) + TEMPORARY_NAME_BYTES;
  if (room > PATH_MAX) import_fail("cannot write '%s': its path is too long", output->path);
  char *const path = malloc(room);
  if (path)
    snprintf(path, room, "%s/.prof-import-%d.tmp", output->folder, (int)getpid());
  else
    import_fail("no memory");
  publish_unfinished(path);
  return path;
}

void import_output_open(import_output *output, const char *path, bool must_be_new) {
  struct stat about;
  *output =
      (import_output){.path = path, .folder = output_folder(path), .must_be_new = must_be_new};
  if (path[0] == '\0' || path[strlen(path) - 1] == '/')
    import_fail("cannot write '%s': it is a directory", path);
  const bool is_there = stat(path, &about) == 0;
  if (is_there && !S_ISREG(about.st_mode))
    import_fail("cannot write '%s': it is %s", path,
                S_ISDIR(about.st_mode) ? "a directory" : "no file");
  if (is_there && must_be_new)
    import_fail("'%s' is there already; name another file with -o, or this one to write over it",
                path);
  signal(SIGXFSZ, SIG_IGN); /* past a file size limit write() says so */
  output->fd = open(output->folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
  if (output->fd >= 0) return;
  output->fd =
      open(name_temporary(output), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  const int error = errno;
  if (output->fd < 0) forget_temporary();
  if (output->fd < 0) import_fail("cannot write '%s': %s", path, strerror(error));
  atexit(remove_temporary);
}

static void write_output_at(const import_output *output, const char *bytes, size_t count,
                            uint64_t at) {
  while (count > 0) {
    const ssize_t written = pwrite(output->fd, bytes, count, (off_t)at);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0)
      import_fail("cannot write '%s': %s, after %llu bytes", output->path,
                  written < 0 ? strerror(errno) : "nothing was written", (unsigned long long)at);
    bytes += written;
    count -= (size_t)written;
    at += (uint64_t)written;
  }
}

void import_output_write(import_output *output, const void *bytes, size_t count) {
  write_output_at(output, bytes, count, output->bytes);
  output->bytes += count;
}

void import_output_write_first(import_output *output, const void *bytes, size_t count) {
  write_output_at(output, bytes, count, 0);
}

/* linkat() refuses a name that is taken: then it gets a temporary one, to be renamed. */
static int link_unnamed(const import_output *output) {
  char descriptor[32];
  snprintf(descriptor, sizeof descriptor, "/proc/self/fd/%d", output->fd);
  if (linkat(AT_FDCWD, descriptor, AT_FDCWD, output->path, AT_SYMLINK_FOLLOW) == 0) return 0;
  if (errno != EEXIST || output->must_be_new) return errno;
  if (linkat(AT_FDCWD, descriptor, AT_FDCWD, name_temporary(output), AT_SYMLINK_FOLLOW) == 0)
    return 0;
  const int error = errno;
  forget_temporary();
  return error;
}

static int name_output(const import_output *output) {
  const int error = unfinished_path ? 0 : link_unnamed(output);
  const char *const temporary = unfinished_path;
  if (error || !temporary) return error;
  const int result =
      output->must_be_new ? link(temporary, output->path) : rename(temporary, output->path);
  const int why = errno;
  if (result == 0 && !output->must_be_new) forget_temporary();
  remove_temporary();
  return result == 0 ? 0 : why;
}

void import_output_commit(import_output *output) {
  const int error = name_output(output);
  if (error) import_fail("cannot write '%s': %s", output->path, strerror(error));
  if (close(output->fd) != 0 && errno != EINTR)
    import_fail("cannot write '%s': %s", output->path, strerror(errno));
  free(output->folder);
}

void import_output_abandon(import_output *output) {
  close(output->fd);
  remove_temporary();
  free(output->folder);
}
