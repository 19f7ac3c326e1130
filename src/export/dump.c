/* prof_trace_dump() and prof_trace_json(). Chooses the exporter, checks the options against it, and
   opens the sink. */
#include <prof/trace.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "../analysis/call_stacks.h"
#include "../base/error.h"
#include "../base/options.h"
#include "../base/port.h"
#include "../base/process.h"
#include "../base/text.h"
#include "../reader/capture.h"
#include "../sink/sink.h"
#include "exporter.h"

static const size_t json_bytes_max = (size_t)1 << 30;

/* The formats. The first one is for paths without a known suffix. */
static const prof_i_exporter *const exporters[] = {
    &prof_i_chrome_exporter,     &prof_i_raf_exporter,   &prof_i_capture_exporter,
    &prof_i_pftrace_exporter,    &prof_i_csv_exporter,   &prof_i_folded_exporter,
    &prof_i_speedscope_exporter, &prof_i_pprof_exporter, &prof_i_packed_exporter,
    &prof_i_sqlite_exporter,     &prof_i_rpd_exporter};
enum { EXPORTER_COUNT = sizeof exporters / sizeof *exporters };

/* What to write. */
typedef struct dump_plan {
  const prof_i_exporter *exporter;
  prof_i_export_options options;
  bool is_gzip;
  bool must_be_new;
} dump_plan;

static const prof_i_exporter *exporter_by_format(uint32_t format) {
  for (int i = 0; i < EXPORTER_COUNT; i++)
    if ((uint32_t)exporters[i]->format == format) return exporters[i];
  return NULL;
}

const prof_i_exporter *prof_i_exporter_of(uint32_t format) { return exporter_by_format(format); }

const char *const *prof_i_export_suffixes(uint32_t format) {
  return exporter_by_format(format)->suffixes;
}

const char *prof_i_export_suffix_of(const char *path, uint32_t *format_out) {
  size_t longest = 0;
  for (int i = 0; i < EXPORTER_COUNT; i++)
    for (const char *const *suffix = exporters[i]->suffixes; *suffix != NULL; suffix++)
      if (prof_i_path_ends_in(path, *suffix) && strlen(*suffix) > longest) {
        if (format_out) *format_out = (uint32_t)exporters[i]->format;
        longest = strlen(*suffix);
      }
  return longest ? path + strlen(path) - longest : NULL;
}

/* Formats of columns: Python writes them, by prof_trace_arrow(). */
static int refuse_columns(const char *path) {
  if (!prof_i_path_ends_in(path, ".parquet") && !prof_i_path_ends_in(path, ".arrow"))
    return PROF_OK;
  return prof_i_fail(
      PROF_E_INVALID,
      "'%s': the command prof dump and Python's Trace.dump() write Parquet and Arrow, "
      "of a capture; write a .prof here",
      path);
}

static const prof_i_exporter *exporter_by_path(const char *path) {
  uint32_t format = 0;
  return prof_i_export_suffix_of(path, &format) ? exporter_by_format(format) : exporters[0];
}

static int check_options(const prof_dump_options *options) {
  if (options->format != PROF_FORMAT_DEFAULT && exporter_by_format(options->format) == NULL)
    return prof_i_fail(PROF_E_INVALID, "prof_dump_options.format is %u; 0 to %d are known",
                       options->format, EXPORTER_COUNT);
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

/* Does the exporter have what the options ask for? */
static int check_abilities(const char *path, const prof_dump_options *options,
                           const prof_i_exporter *exporter, bool is_gzip) {
  const struct {
    prof_i_export_ability ability;
    const char *name;
    uint32_t value;
  } members[] = {{PROF_I_EXPORT_METADATA, "metadata_count", options->metadata_count},
                 {PROF_I_EXPORT_STACKS, "stacks", options->stacks},
                 {PROF_I_EXPORT_MARKS, "window_marks", options->window_marks},
                 {PROF_I_EXPORT_NO_MEMORY, "no_memory", options->no_memory}};
  if (!(exporter->abilities & PROF_I_EXPORT_CUT) &&
      (is_gzip || options->from_ns != 0 || options->to_ns != 0))
    return prof_i_fail(
        PROF_E_INVALID,
        "a capture is copied whole and uncompressed: '%s' cannot be gzip or cut in time", path);
  for (size_t i = 0; i < sizeof members / sizeof *members; i++)
    if (members[i].value != 0 && !(exporter->abilities & members[i].ability))
      return prof_i_fail(PROF_E_INVALID,
                         "prof_dump_options.%s is %u, and the format of '%s' is not Chrome JSON",
                         members[i].name, members[i].value, path);
  return PROF_OK;
}

static int make_dump_plan(const char *path, const prof_dump_options *options,
                          const prof_i_filter *filter, prof_i_export_filtered *filtered,
                          dump_plan *plan_out) {
  prof_dump_options checked = {.size = sizeof checked};
  int status = options == NULL
                   ? PROF_OK
                   : prof_i_sized_copy(&checked, sizeof checked, options, "prof_dump_options");
  if (status == PROF_OK) status = check_options(&checked);
  if (status == PROF_OK && checked.format == PROF_FORMAT_DEFAULT) status = refuse_columns(path);
  if (status != PROF_OK) return status;
  *plan_out = (dump_plan){
      .exporter = checked.format == PROF_FORMAT_DEFAULT ? exporter_by_path(path)
                                                        : exporter_by_format(checked.format),
      .options = {.window = {checked.from_ns, checked.to_ns},
                  .metadata = {checked.metadata, checked.metadata_count},
                  .with_stacks = checked.stacks != 0,
                  .with_marks = checked.window_marks != 0,
                  .with_memory = checked.no_memory == 0,
                  .filter = filter,
                  .filtered = filtered,
                  .stack_folders = {checked.stack_folders, checked.stack_folder_count}},
      .is_gzip = checked.gzip != 0 || prof_i_path_ends_in(path, ".gz"),
      .must_be_new = checked.must_be_new != 0};
  if (filter && plan_out->exporter->copy)
    return prof_i_fail(PROF_E_INVALID, "a capture is copied whole: '%s' cannot be filtered", path);
  status = check_abilities(path, &checked, plan_out->exporter, plan_out->is_gzip);
  return status == PROF_OK ? prof_i_metadata_check(&plan_out->options.metadata) : status;
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

/* `path` is expanded. *is_kept_out: a file that stays holds all of the capture. */
static int dump_to(const prof_trace *trace, const char *path, const prof_dump_options *options,
                   const prof_i_filter *filter, prof_i_export_filtered *filtered_out,
                   prof_i_export_lacks *lacks_out, bool *is_kept_out) {
  dump_plan plan;
  prof_i_sink sink;
  prof_i_findings findings = {{0}};
  int status = make_dump_plan(path, options, filter, filtered_out, &plan);
  if (status == PROF_OK)
    status = prof_i_sink_open_file(&sink, path, plan.is_gzip, plan.must_be_new);
  if (status != PROF_OK) return status;
  if (plan.exporter->is_private) prof_i_sink_keep_private(&sink);
  plan.options.lacks = lacks_out;
  status = prof_i_export_run(plan.exporter, trace, &plan.options, &sink, &findings);
  if (status != PROF_OK || (filter && filtered_out->event_count == 0)) {
    prof_i_sink_abandon(&sink);
    return status;
  }
  const bool is_whole =
      plan.options.window.from_ns == 0 && plan.options.window.to_ns == 0 && !sink.target.is_direct;
  status = prof_i_sink_commit(&sink);
  *is_kept_out = status == PROF_OK && is_whole;
  if (status == PROF_OK && prof_i_findings_faults(&findings) > 0)
    return fail_self_check(path, &findings);
  return status;
}

static int expand_and_dump(const prof_trace *trace, const char *path,
                           const prof_dump_options *options, const prof_i_filter *filter,
                           prof_i_export_filtered *filtered_out, prof_i_export_lacks *lacks_out,
                           bool *is_kept_out) {
  char *const expanded = malloc(PROF_I_PATH_BYTES); /* the caller's stack may be small */
  if (expanded == NULL)
    return prof_i_fail(PROF_E_NO_MEMORY, "no memory for a path of %d bytes", PROF_I_PATH_BYTES);
  int status = expand_path(trace, path, expanded, PROF_I_PATH_BYTES);
  if (status == PROF_OK)
    status = dump_to(trace, expanded, options, filter, filtered_out, lacks_out, is_kept_out);
  free(expanded);
  return status;
}

int prof_i_dump(const prof_trace *trace, const char *path, const char *own_path,
                const prof_dump_options *options, bool *is_kept_out) {
  PROF_I_INSIDE;
  return path != NULL ? expand_and_dump(trace, path, options, NULL, NULL, NULL, is_kept_out)
                      : dump_to(trace, own_path, options, NULL, NULL, NULL, is_kept_out);
}

int prof_i_dump_filtered(const prof_trace *trace, const char *path,
                         const prof_dump_options *options, const prof_i_filter *filter,
                         prof_i_export_filtered *filtered_out, prof_i_export_lacks *lacks_out) {
  bool is_kept;
  if (lacks_out) *lacks_out = (prof_i_export_lacks){0};
  return expand_and_dump(trace, path, options, filter, filtered_out, lacks_out, &is_kept);
}

void prof_i_export_facts_add(prof_i_export_facts *facts, const prof_trace *trace) {
  const prof_i_catalog *const catalog = &trace->catalog;
  const uint32_t site_count = prof_i_trace_site_count(trace);
  facts->scopes += trace->scope_count + trace->open_count;
  facts->notes += catalog->note_count;
  for (uint32_t i = 0; i < catalog->device_count; i++)
    facts->device_clocks += catalog->devices[i].clock_error_ns != 0;
  for (uint32_t i = 0; i < catalog->change_count; i++)
    facts->level_changes += catalog->changes[i].kind == PROF_CHANGE_LEVEL;
  for (uint32_t i = 0; i < site_count; i++) {
    const prof_i_site_info *const site = prof_i_trace_site(trace, i);
    if (!prof_i_is_function_site(site)) continue;
    facts->functions++;
    facts->function_places += site->file.bytes != 0;
  }
}

int prof_trace_dump(const prof_trace *trace, const char *path, const prof_dump_options *options) {
  PROF_I_DEFAULT_FP;
  PROF_I_DISABLE_CANCEL;
  PROF_I_REFUSE_INTERRUPTED(PROF_E_BUSY);
  PROF_I_INSIDE;
  if (trace == NULL) return prof_i_fail(PROF_E_INVALID, "trace is NULL");
  if (path == NULL) return prof_i_fail(PROF_E_INVALID, "path is NULL");
  return prof_i_dump_filtered(trace, path, options, NULL, NULL, NULL);
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
  int status = make_dump_plan("", options, NULL, NULL, &plan);
  if (status != PROF_OK) return status;
  if (!(plan.exporter->abilities & PROF_I_EXPORT_TEXT) || plan.is_gzip)
    return prof_i_fail(PROF_E_INVALID, "prof_dump_options.%s: a text is Chrome JSON or RAF's log",
                       plan.is_gzip ? "gzip" : "format");
  prof_i_findings findings = {{0}};
  prof_i_sink sink;
  size_t bytes;
  status = prof_i_sink_open_memory(&sink, json_bytes_max);
  if (status != PROF_OK) return status;
  status = prof_i_export_run(plan.exporter, trace, &plan.options, &sink, &findings);
  if (status == PROF_OK)
    status = prof_i_sink_take(&sink, text_out, bytes_out != NULL ? bytes_out : &bytes);
  else
    prof_i_sink_abandon(&sink);
  return status == PROF_OK && prof_i_findings_faults(&findings) > 0
             ? fail_self_check("the text", &findings)
             : status;
}
