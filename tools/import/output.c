/* See output.h. */
#define _GNU_SOURCE
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "import.h"

enum { TEMPORARY_BYTES = 4096 };

/* What atexit() removes: the file system knows no files without a name, or its name is not yet the
   final one. */
static struct { char temporary[TEMPORARY_BYTES]; } unfinished_output;

void import_output_remove_unfinished(void) {
  if (unfinished_output.temporary[0]) unlink(unfinished_output.temporary);
}

static void remove_temporary(void) {
  import_output_remove_unfinished();
  unfinished_output.temporary[0] = '\0';
}

static char *output_folder(const char *path) {
  const char *const slash = strrchr(path, '/');
  char *const folder = slash == NULL   ? strdup(".")
                       : slash == path ? strdup("/")
                                       : strndup(path, (size_t)(slash - path));
  if (!folder) import_fail("no memory");
  return folder;
}

static void name_temporary(const import_output *output) {
  if (snprintf(unfinished_output.temporary, sizeof unfinished_output.temporary,
               "%s/.prof-import-%d.tmp", output->folder,
               (int)getpid()) < (int)sizeof unfinished_output.temporary)
    return;
  unfinished_output.temporary[0] = '\0';
  import_fail("cannot write '%s': its path is too long", output->path);
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
  name_temporary(output);
  output->fd =
      open(unfinished_output.temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  const int error = errno;
  if (output->fd < 0) unfinished_output.temporary[0] = '\0';
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
  name_temporary(output);
  if (linkat(AT_FDCWD, descriptor, AT_FDCWD, unfinished_output.temporary, AT_SYMLINK_FOLLOW) == 0)
    return 0;
  const int error = errno;
  unfinished_output.temporary[0] = '\0';
  return error;
}

static int name_output(const import_output *output) {
  const int error = unfinished_output.temporary[0] ? 0 : link_unnamed(output);
  if (error || !unfinished_output.temporary[0]) return error;
  const int result = output->must_be_new ? link(unfinished_output.temporary, output->path)
                                         : rename(unfinished_output.temporary, output->path);
  const int why = errno;
  if (result == 0 && !output->must_be_new) unfinished_output.temporary[0] = '\0';
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
