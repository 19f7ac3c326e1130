/* Public calls that take the own capture, and hand it to a writer or to analysis. After a clean
   dump core decides whether the capture file is removed. */
#include <prof/trace.h>
#include <stdbool.h>
#include <stdlib.h>

#include "../analysis/internal.h"
#include "../base/error.h"
#include "../base/port.h"
#include "../base/process.h"
#include "../base/text.h"
#include "../core/session/control.h"
#include "../export/exporter.h"

/* own_path: NULL, or where a dump without a path goes; it has been expanded. */
static int dump_own_capture(const char *path, const char *own_path,
                            const prof_dump_options *options) {
  prof_trace *trace;
  bool is_kept = false;
  int status = prof_get(&trace);
  if (status != PROF_OK) return status;
  status = prof_i_dump(trace, path, own_path, options, &is_kept);
  prof_trace_destroy(trace);
  /* a part, or /dev/null, would be no reason to let it go */
  if (status == PROF_OK && is_kept) prof_i_capture_dumped();
  return status;
}

/* Not on the stack: the caller's may be small. The caller frees it. */
static int get_own_path(char **path_out) {
  PROF_I_INSIDE;
  char *const path = malloc(PROF_I_PATH_BYTES);
  if (path == NULL)
    return prof_i_fail(PROF_E_NO_MEMORY, "no memory for a path of %d bytes", PROF_I_PATH_BYTES);
  if (prof_i_output_path(path, PROF_I_PATH_BYTES)) {
    *path_out = path;
    return PROF_OK;
  }
  free(path);
  return prof_i_fail(PROF_E_INVALID,
                     "no path: give one to prof_dump(), in prof_options.path or in PROF_OUTPUT");
}

int prof_dump_with(const char *path, const prof_dump_options *options) {
  PROF_I_DEFAULT_FP;
  PROF_I_DISABLE_CANCEL;
  PROF_I_REFUSE_INTERRUPTED(PROF_E_BUSY);
  char *own_path = NULL;
  int status = path == NULL ? get_own_path(&own_path) : PROF_OK;
  if (status == PROF_OK) status = dump_own_capture(path, own_path, options);
  PROF_I_INSIDE;
  free(own_path);
  return status;
}

int prof_dump(const char *path) { return prof_dump_with(path, NULL); }

int prof_get_json(char **text_out, size_t *bytes_out) {
  PROF_I_DEFAULT_FP;
  PROF_I_REFUSE_INTERRUPTED(PROF_E_BUSY);
  if (text_out == NULL) return prof_i_fail(PROF_E_INVALID, "text_out is NULL");
  prof_trace *trace;
  int status = prof_get(&trace);
  if (status != PROF_OK) return status;
  status = prof_trace_json(trace, NULL, text_out, bytes_out);
  prof_trace_destroy(trace);
  return status;
}

static int add_up_scopes(const prof_trace *trace, const char *name, const char *category,
                         uint64_t *total_ns_out, uint64_t *count_out) {
  PROF_I_INSIDE;
  return prof_i_aggregate_one(trace, name, category, total_ns_out, count_out);
}

int prof_get_duration(const char *name, const char *category, uint64_t *total_ns_out,
                      uint64_t *count_out) {
  PROF_I_DEFAULT_FP;
  PROF_I_REFUSE_INTERRUPTED(PROF_E_BUSY);
  prof_trace *trace = NULL;
  uint64_t total_ns = 0, count = 0;
  int status = prof_get(&trace);
  if (status) return status;
  status = add_up_scopes(trace, name, category, &total_ns, &count);
  prof_trace_destroy(trace);
  if (status) return prof_i_fail(status, "no memory to add up durations");
  if (total_ns_out) *total_ns_out = total_ns;
  if (count_out) *count_out = count;
  return PROF_OK;
}
