/* prof import on any bytes: it writes a capture without damage, which has as many scopes as it
   says. The export of that capture is JSON that a strict parser takes. */
#define _GNU_SOURCE
#include <prof/profiler.h>
#include <prof/trace.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../tools/import/import.h"
#include "export/exporter.h"

/* Memory, the disk, a library: none of which any bytes may have to do with. */
_Noreturn void import_fail(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vfprintf(stderr, format, arguments);
  va_end(arguments);
  abort();
}

static void require(int holds, const char *what) {
  if (holds) return;
  fprintf(stderr, "fuzz_import: %s\n", what);
  abort();
}

/* It is 0-terminated, and a byte 0 in it ends it early. */
static void check_export(const prof_trace *trace) {
  char *text = NULL;
  size_t bytes = 0, at = 0;
  require(prof_trace_json(trace, NULL, &text, &bytes) == PROF_OK, prof_last_error());
  require(prof_i_json_is_value(text, &at) && at == bytes, "its export is not JSON");
  prof_free(text);
}

static void check(const char *path, const import_counts *counts) {
  static prof_event event;
  prof_trace *trace;
  prof_cursor *cursor;
  prof_trace_info info = {.size = sizeof info};
  uint64_t scopes = 0;
  require(prof_trace_open(path, &trace) == PROF_OK, prof_last_error());
  prof_trace_info_get(trace, &info);
  require(info.bad_count == 0, "it is damaged");
  require(prof_cursor_create(trace, &cursor) == PROF_OK, prof_last_error());
  while (prof_cursor_next(cursor, &event) == 1)
    scopes += event.kind == PROF_EVENT_SCOPE || event.kind == PROF_EVENT_OPEN;
  require(scopes == counts->scopes + counts->device_scopes, "there are more scopes, or fewer");
  prof_cursor_destroy(cursor);
  check_export(trace);
  prof_trace_destroy(trace);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);
int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size) {
  char from[64], to[64];
  import_result result;
  const int fd = memfd_create("trace", MFD_CLOEXEC);
  if (fd < 0 || write(fd, data, size) != (ssize_t)size) abort();
  snprintf(from, sizeof from, "/proc/self/fd/%d", fd);
  snprintf(to, sizeof to, "/dev/shm/fuzz-import-%d.prof", (int)getpid());
  import_run(from, to, false, &result);
  if (access(to, F_OK) == 0) check(to, &result.counts);
  unlink(to);
  close(fd);
  return 0;
}
