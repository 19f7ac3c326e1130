/* Writes a trace: prof_trace_dump() and prof_trace_json(). Chooses the format, checks the options,
   and joins a writer to a sink. */
#include <prof/trace.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "../base/log.h"
#include "../base/options.h"
#include "../base/path.h"
#include "../base/port.h"
#include "../base/reentry.h"
#include "../base/this_thread.h"
#include "../format/layout.h"
#include "../reader/walk.h"
#include "../sink/sink.h"
#include "chrome.h"
#include "dump.h"
#include "raf.h"

static const size_t json_bytes_max = (size_t)1 << 30;

/* What to write, after the options and the path's ending have been looked at. */
typedef struct dump_plan {
  prof_format format;
  bool is_gzip;
  bool must_be_new;
  prof_i_window window;
  prof_i_metadata metadata;
  bool with_stacks;
  bool with_marks;
  bool with_memory;
  prof_i_stack_folders stack_folders;
} dump_plan;

static bool ends_with(const char *path, const char *ending) {
  const size_t bytes = strlen(path), ending_bytes = strlen(ending);
  return bytes >= ending_bytes && memcmp(path + bytes - ending_bytes, ending, ending_bytes) == 0;
}

static int check_options(const prof_dump_options *options) {
  if (options->format > PROF_FORMAT_CAPTURE)
    return prof_i_fail(PROF_E_INVALID, "prof_dump_options.format is %u; 0 to %d are known",
                       options->format, PROF_FORMAT_CAPTURE);
  if (options->must_be_new > 1)
    return prof_i_fail(PROF_E_INVALID, "prof_dump_options.must_be_new is %u, not 0 or 1",
                       options->must_be_new);
  if (options->gzip < 0 || options->gzip > 1)
    return prof_i_fail(PROF_E_INVALID, "prof_dump_options.gzip is %d, not 0 or 1", options->gzip);
  if (options->stacks > 1)
    return prof_i_fail(PROF_E_INVALID, "prof_dump_options.stacks is %u, not 0 or 1",
                       options->stacks);
  if (options->window_marks > 1)
    return prof_i_fail(PROF_E_INVALID, "prof_dump_options.window_marks is %u, not 0 or 1",
                       options->window_marks);
  if (options->no_memory > 1)
    return prof_i_fail(PROF_E_INVALID, "prof_dump_options.no_memory is %u, not 0 or 1",
                       options->no_memory);
  if (options->stack_folder_count && !options->stacks)
    return prof_i_fail(PROF_E_INVALID,
                       "prof_dump_options.stack_folder_count is %u, and stacks is 0",
                       options->stack_folder_count);
  if (options->stack_folder_count && !options->stack_folders)
    return prof_i_fail(PROF_E_INVALID,
                       "prof_dump_options.stack_folders is NULL, and stack_folder_count is %u",
                       options->stack_folder_count);
  for (uint32_t i = 0; i < options->stack_folder_count; i++)
    if (!options->stack_folders[i])
      return prof_i_fail(PROF_E_INVALID, "prof_dump_options.stack_folders[%u] is NULL", i);
  if (options->to_ns != 0 && options->to_ns <= options->from_ns)
    return prof_i_fail(PROF_E_INVALID,
                       "prof_dump_options.to_ns is %llu, not after from_ns, which is %llu",
                       (unsigned long long)options->to_ns, (unsigned long long)options->from_ns);
  return PROF_OK;
}

static int make_dump_plan(const char *path, const prof_dump_options *options, dump_plan *plan_out) {
  prof_dump_options checked = {.size = sizeof checked};
  int status = options == NULL
                   ? PROF_OK
                   : prof_i_sized_copy(&checked, sizeof checked, options, "prof_dump_options");
  if (status == PROF_OK) status = check_options(&checked);
  if (status != PROF_OK) return status;
  *plan_out = (dump_plan){(prof_format)checked.format,
                          checked.gzip != 0 || ends_with(path, ".gz"),
                          checked.must_be_new != 0,
                          {checked.from_ns, checked.to_ns},
                          {checked.metadata, checked.metadata_count},
                          checked.stacks != 0,
                          checked.window_marks != 0,
                          checked.no_memory == 0,
                          {checked.stack_folders, checked.stack_folder_count}};
  if (plan_out->format == PROF_FORMAT_DEFAULT)
    plan_out->format = ends_with(path, ".prof") ? PROF_FORMAT_CAPTURE : PROF_FORMAT_CHROME;
  if (plan_out->format == PROF_FORMAT_CAPTURE &&
      (plan_out->is_gzip || checked.from_ns != 0 || checked.to_ns != 0))
    return prof_i_fail(
        PROF_E_INVALID,
        "a capture is copied whole and uncompressed: '%s' cannot be gzip or cut in time", path);
  if (checked.metadata_count != 0 && plan_out->format != PROF_FORMAT_CHROME)
    return prof_i_fail(
        PROF_E_INVALID,
        "prof_dump_options.metadata_count is %u, and the format of '%s' is not Chrome JSON",
        checked.metadata_count, path);
  if (checked.stacks != 0 && plan_out->format != PROF_FORMAT_CHROME)
    return prof_i_fail(PROF_E_INVALID,
                       "prof_dump_options.stacks is %u, and the format of '%s' is not Chrome JSON",
                       checked.stacks, path);
  if (plan_out->with_marks && plan_out->format != PROF_FORMAT_CHROME)
    return prof_i_fail(PROF_E_INVALID,
                       "prof_dump_options.window_marks is %u, and the format of '%s' is not "
                       "Chrome JSON",
                       checked.window_marks, path);
  if (checked.no_memory && plan_out->format != PROF_FORMAT_CHROME)
    return prof_i_fail(PROF_E_INVALID,
                       "prof_dump_options.no_memory is %u, and the format of '%s' is not "
                       "Chrome JSON",
                       checked.no_memory, path);
  return prof_i_metadata_check(&plan_out->metadata);
}

static int expand_path(const prof_trace *trace, const char *path, char *to, size_t room) {
  prof_trace_info info = {.size = sizeof info};
  const int status = prof_trace_info_get(trace, &info);
  const prof_i_path_words words = {info.pid, info.rank, info.host};
  return status == PROF_OK ? prof_i_expand_path(path, &words, to, room) : status;
}

static int fail_self_check(const char *path, const prof_i_findings *findings) {
  char text[320];
  prof_i_findings_text(findings, text, sizeof text);
  return prof_i_fail(PROF_E_CHECK, "'%s' is written, but its self-check found: %s", path, text);
}

/* A copy of what is being recorded says so, or it would be taken for what a process left that
   died. */
static int write_capture(const prof_trace *trace, prof_i_sink *sink) {
  uint64_t count = 0, done = 0;
  const void *bytes = prof_i_trace_bytes_at(trace, 0, &count);
  prof_trace_info info = {.size = sizeof info};
  prof_trace_info_get(trace, &info);
  if (info.is_live && !info.was_clean) {
    prof_i_header header;
    memcpy(&header, bytes, done = sizeof header);
    header.state = PROF_I_STATE_COPIED;
    prof_i_trace_opened_at(trace, &header.copied_ticks, &header.copied_ns);
    prof_i_sink_bytes(sink, &header, sizeof header);
  }
  for (; (bytes = prof_i_trace_bytes_at(trace, done, &count)) != NULL && count; done += count)
    prof_i_sink_bytes(sink, bytes, count);
  return sink->status;
}

static int write_format(const prof_trace *trace, const dump_plan *plan, prof_i_sink *sink,
                        prof_i_findings *findings) {
  switch (plan->format) {
    case PROF_FORMAT_DEFAULT:
    case PROF_FORMAT_CHROME: {
      const prof_i_chrome_options chrome_options = {plan->window,      plan->metadata,
                                                    plan->with_stacks, plan->with_marks,
                                                    plan->with_memory, plan->stack_folders};
      return prof_i_chrome_write(trace, &chrome_options, sink, findings);
    }
    case PROF_FORMAT_RAF:
      return prof_i_raf_write(trace, &plan->window, sink);
    case PROF_FORMAT_CAPTURE:
      return write_capture(trace, sink);
  }
  return PROF_E_INVALID;
}

/* path has nothing left to fill in. *is_kept_out: all of the capture now stands in a file. */
static int dump_to(const prof_trace *trace, const char *path, const prof_dump_options *options,
                   bool *is_kept_out) {
  dump_plan plan;
  prof_i_sink sink;
  prof_i_findings findings = {{0}};
  int status = make_dump_plan(path, options, &plan);
  if (status == PROF_OK)
    status = prof_i_sink_open_file(&sink, path, plan.is_gzip, plan.must_be_new);
  if (status != PROF_OK) return status;
  if (plan.format == PROF_FORMAT_CAPTURE) prof_i_sink_keep_private(&sink);
  status = write_format(trace, &plan, &sink, &findings);
  if (status != PROF_OK) {
    prof_i_sink_abandon(&sink);
    return status;
  }
  const bool is_whole =
      plan.window.from_ns == 0 && plan.window.to_ns == 0 && !sink.target.is_direct;
  status = prof_i_sink_commit(&sink);
  *is_kept_out = status == PROF_OK && is_whole;
  if (status == PROF_OK && prof_i_findings_faults(&findings) > 0)
    return fail_self_check(path, &findings);
  return status;
}

static int expand_and_dump(const prof_trace *trace, const char *path,
                           const prof_dump_options *options, bool *is_kept_out) {
  char expanded[PROF_I_PATH_BYTES];
  const int status = expand_path(trace, path, expanded, sizeof expanded);
  return status == PROF_OK ? dump_to(trace, expanded, options, is_kept_out) : status;
}

int prof_i_dump(const prof_trace *trace, const char *path, const char *own_path,
                const prof_dump_options *options, bool *is_kept_out) {
  PROF_I_INSIDE;
  return path != NULL ? expand_and_dump(trace, path, options, is_kept_out)
                      : dump_to(trace, own_path, options, is_kept_out);
}

int prof_trace_dump(const prof_trace *trace, const char *path, const prof_dump_options *options) {
  PROF_I_DEFAULT_FP;
  PROF_I_DISABLE_CANCEL;
  PROF_I_REFUSE_INTERRUPTED(PROF_E_BUSY);
  PROF_I_INSIDE;
  bool is_kept;
  if (trace == NULL) return prof_i_fail(PROF_E_INVALID, "trace is NULL");
  if (path == NULL) return prof_i_fail(PROF_E_INVALID, "path is NULL");
  return expand_and_dump(trace, path, options, &is_kept);
}

int prof_trace_json(const prof_trace *trace, const prof_dump_options *options, char **text_out,
                    size_t *bytes_out) {
  PROF_I_DEFAULT_FP;
  PROF_I_DISABLE_CANCEL;
  PROF_I_REFUSE_INTERRUPTED(PROF_E_BUSY);
  PROF_I_INSIDE;
  if (trace == NULL || text_out == NULL)
    return prof_i_fail(PROF_E_INVALID, "%s is NULL", trace == NULL ? "trace" : "text_out");
  dump_plan plan;
  int status = make_dump_plan("", options, &plan);
  if (status != PROF_OK) return status;
  if (plan.format == PROF_FORMAT_CAPTURE || plan.is_gzip)
    return prof_i_fail(PROF_E_INVALID, "prof_dump_options.%s: a text is Chrome JSON or RAF's log",
                       plan.is_gzip ? "gzip" : "format");
  prof_i_findings findings = {{0}};
  prof_i_sink sink;
  size_t bytes;
  status = prof_i_sink_open_memory(&sink, json_bytes_max);
  if (status != PROF_OK) return status;
  status = write_format(trace, &plan, &sink, &findings);
  if (status == PROF_OK)
    status = prof_i_sink_take(&sink, text_out, bytes_out != NULL ? bytes_out : &bytes);
  else
    prof_i_sink_abandon(&sink);
  return status == PROF_OK && prof_i_findings_faults(&findings) > 0
             ? fail_self_check("the text", &findings)
             : status;
}
