/* A folder of its own for each test, an export of a built capture into it, and what the export has.
   A header only, because each test is one file. */
#ifndef PROF_TESTS_EXPORTED_H
#define PROF_TESTS_EXPORTED_H

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trace_checks.h"

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)

/* Half of Kineto's three months: what base times are multiples of. */
static CAPTURE_UNUSED const uint64_t base_ns = 3944619000000000u;

static char folder[64], path[128];

static char text[8 << 20]; /* what was dumped */

static int make_folder(void **state) {
  (void)state;
  strcpy(folder, "/tmp/prof-chrome-XXXXXX");
  return mkdtemp(folder) == NULL ? -1 : 0;
}

static int remove_folder(void **state) {
  (void)state;
  unlink(path);
  return rmdir(folder);
}

static size_t read_back(const char *from) {
  const int fd = open(from, O_RDONLY | O_CLOEXEC);
  assert_true(fd >= 0);
  size_t count = 0;
  for (ssize_t got; (got = read(fd, text + count, sizeof text - 1 - count)) > 0;)
    count += (size_t)got;
  close(fd);
  text[count] = 0;
  return count;
}

/* Dumps the capture; its text is then in `text`. */
static CAPTURE_UNUSED int dump(const capture *c, prof_dump_options options) {
  prof_trace *const trace = open_capture(c);
  options.size = sizeof options;
  snprintf(path, sizeof path, "%s/out.json", folder);
  const int status = prof_trace_dump(trace, path, &options);
  prof_trace_destroy(trace);
  if (status == PROF_OK || status == PROF_E_CHECK) read_back(path);
  return status;
}

static CAPTURE_UNUSED void has(const char *line) {
  if (strstr(text, line) == NULL) fail_msg("not in the text: %s\nThe text:\n%.4000s", line, text);
}

static CAPTURE_UNUSED void has_not(const char *line) {
  if (strstr(text, line) != NULL) fail_msg("in the text: %s", line);
}

static CAPTURE_UNUSED unsigned count_of(const char *part) {
  unsigned count = 0;
  for (const char *at = text; (at = strstr(at, part)) != NULL; at++) count++;
  return count;
}

/* A capture with one thread, number 101 and named "thread 1", and one site; ends at 10 s. */
static prof_i_head *begin(capture *c, uint64_t start_realtime_ns) {
  capture_begin(c, 4 << 20);
  capture_header(c)->start_realtime_ns = start_realtime_ns;
  capture_header(c)->pid = 77;
  prof_i_head *const meta = capture_meta(c);
  capture_site(meta, 1, "matmul", "operator", 1);
  capture_clock(c, meta, 0, 0, 0);
  capture_clock(c, meta, 10000000000u, 10000000000u, 0);
  return capture_chunk(c, 1 << 20, 1);
}

/* Puts a scope with the arguments "Count: 3" and "\"x\"", a list. */
static CAPTURE_UNUSED void put_list_scope(capture *c, prof_i_head *chunk, uint64_t start_ns,
                                          uint64_t duration_ns) {
  static const uint32_t types[] = {PROF_ARG_STRING, PROF_ARG_STRING};
  prof_i_head *const meta = (prof_i_head *)(c->bytes + PROF_I_FIRST_UNIT_OFFSET);
  long_record record;
  capture_schema(meta, 1, PROF_ARGS_LIST, "", 2, types, NULL);
  long_begin(&record, PROF_I_KIND_SCOPE, start_ns, duration_ns, 1);
  record.schema = 1;
  long_text(&record, "Count: 3");
  long_text(&record, "\"x\"");
  long_end(&record, chunk);
}

#endif
