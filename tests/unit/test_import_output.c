/* The temporary path of an import's output, as a signal handler sees it. The source is part of this
   file, so that the test provides the calls below. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static struct {
  char removed[4096]; /* the last path that unlink() was given */
  int interrupted;    /* texts that a signal has interrupted */
} seen;

static int seen_unlink(const char *path);
static int interrupted_snprintf(char *to, size_t room, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static int open_named_only(const char *path, int flags, unsigned mode);

#define unlink seen_unlink
#define snprintf interrupted_snprintf
#define open open_named_only
#include "../../tools/import/output.c"
#undef open
#undef snprintf
#undef unlink

static int seen_unlink(const char *path) {
  stpncpy(seen.removed, path, sizeof seen.removed - 1);
  return unlink(path);
}

/* A signal comes when half of the text is written. */
static int interrupted_snprintf(char *to, size_t room, const char *format, ...) {
  char text[4096];
  va_list more;
  va_start(more, format);
  const int bytes = vsnprintf(text, sizeof text, format, more);
  va_end(more);
  assert_true(bytes >= 0 && (size_t)bytes < room && (size_t)bytes < sizeof text);
  memset(to, 0, room);
  memcpy(to, text, (size_t)bytes / 2);
  import_output_remove_unfinished();
  seen.interrupted++;
  memcpy(to, text, (size_t)bytes + 1);
  return bytes;
}

/* A file system without nameless files. */
static int open_named_only(const char *path, int flags, unsigned mode) {
  if ((flags & O_TMPFILE) == O_TMPFILE) {
    errno = EOPNOTSUPP;
    return -1;
  }
  return open(path, flags, mode);
}

void import_fail(const char *format, ...) {
  va_list more;
  va_start(more, format);
  vprint_error(format, more);
  va_end(more);
  fail();
  abort();
}

static void a_signal_never_removes_a_part_of_the_path(void **state) {
  char folder[] = "/tmp/prof-import-output-XXXXXX", path[64], temporary[96];
  import_output output;
  (void)state;
  assert_non_null(mkdtemp(folder));
  snprintf(path, sizeof path, "%s/trace.prof", folder);
  snprintf(temporary, sizeof temporary, "%s/.prof-import-%d.tmp", folder, (int)getpid());
  import_output_open(&output, path, false);
  assert_int_equal(seen.interrupted, 1);
  assert_string_equal(seen.removed, "");
  assert_int_equal(access(temporary, F_OK), 0);
  char *const noted = unfinished_path; /* a signal handler cannot free it */
  import_output_remove_unfinished();   /* and one that comes when the file is there */
  free(noted);
  assert_string_equal(seen.removed, temporary);
  assert_int_equal(access(temporary, F_OK), -1);
  import_output_abandon(&output);
  assert_int_equal(rmdir(folder), 0);
}

static void a_file_with_its_final_name_stays(void **state) {
  char folder[] = "/tmp/prof-import-output-XXXXXX", path[64];
  import_output output;
  (void)state;
  assert_non_null(mkdtemp(folder));
  snprintf(path, sizeof path, "%s/trace.prof", folder);
  import_output_open(&output, path, false);
  import_output_write(&output, "bytes", 5);
  import_output_commit(&output);
  seen.removed[0] = '\0';
  import_output_remove_unfinished();
  assert_string_equal(seen.removed, "");
  assert_int_equal(unlink(path), 0);
  assert_int_equal(rmdir(folder), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_signal_never_removes_a_part_of_the_path),
      cmocka_unit_test(a_file_with_its_final_name_stays),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
