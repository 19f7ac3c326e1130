/* What is collected, printed and written at the end of a run. See run.h. */
#define _GNU_SOURCE
#include "run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "../prof/commands.h"
#include "output.h"

/* ---- files ---- */

static void summary_add_file(run_state *s, const char *path) {
  struct stat is;
  if (stat(path, &is) == 0)
    run_summary_add_file(&s->summary, path);
  else
    run_summary_add_problem(&s->summary, "'%s' is not there any more: %s", path, strerror(errno));
}

/* What was lost of the output. The log is a file of ours. */
static void collect_streams(run_state *s) {
  const char *const failed = s->summary.end.failed;
  const bool is_log = failed && strncmp(failed, "the log", 7) == 0;
  if (failed && !is_log)
    run_summary_add_problem(&s->summary, "output could not be written to %s", failed);
  if (s->log_path && is_log)
    run_summary_add_problem(&s->summary, "'%s' is not complete: %s", s->log_path, failed);
  else if (s->log_path)
    summary_add_file(s, s->log_path);
}

unsigned run_libraries_of(const run_stack *stack) {
  unsigned wanted = 0;
  for (size_t i = 0; i < stack->count; i++) {
    const run_tool *const tool = &stack->tools[i];
    wanted |= run_library_wanted(tool->name);
    for (size_t t = 0; t < tool->traces.count; t++)
      wanted |= run_library_wanted(tool->traces.items[t]);
  }
  return wanted;
}

static void add_no_calls(run_state *s) {
  const unsigned wanted = run_libraries_of(&s->request.stack);
  char *names = run_text("%s", "");
  for (unsigned i = 0; i < RUN_LIBRARIES; i++)
    if (wanted & 1u << i && i != RUN_LIBRARY_ROCBLAS_FUNCTION && i != RUN_LIBRARY_MIOPEN_FIND)
      names = run_text("%s%s%s", names, *names ? ", " : "", run_library_name(i));
  const bool is_loaded = (s->summary.children.libraries & wanted) != 0;
  const char *const why = is_loaded ? "the library was loaded, and printed none"
                                    : "no process that was seen has loaded the library";
  const char *const advice =
      is_loaded ? "the program may change the variables of the log, or redirect its stderr"
                : "check that the program computes on the device in this run";
  run_words_add(&s->summary.hints, run_text("'%s': no calls were seen, because %s (%s); %s",
                                            s->trace_path, why, names, advice));
}

/* Their capture may be in the folder of captures. Returns true if it is whole. */
static bool end_calls(run_state *s) {
  if (s->libraries) run_libraries_finish(s->libraries);
  return s->calls && run_calls_finish(s->calls);
}

/* has_capture: by end_calls(). */
static void collect_calls(run_state *s, bool has_capture) {
  if (!s->libraries) return;
  if (!run_libraries_write(s->libraries, s->trace_path)) {
    run_summary_add_problem(&s->summary, "'%s' could not be written: %s", s->trace_path,
                            strerror(errno));
    unlink(s->trace_path);
  } else {
    run_summary_add_file(&s->summary, s->trace_path);
  }
  if (has_capture && !s->request.file) summary_add_file(s, s->calls_path);
  if (run_libraries_count(s->libraries) == 0 && s->summary.progress == RUN_PROGRESS_ENDED)
    add_no_calls(s);
}

static void collect_samplers(run_state *s) {
  for (size_t i = 0; i < s->samplers.made; i++) {
    const run_sampler *const sampler = &s->samplers.items[i];
    struct stat is;
    if (stat(sampler->path, &is) == 0 && is.st_size == 0) { /* it has never begun */
      unlink(sampler->path);
      continue;
    }
    summary_add_file(s, sampler->path);
    if (sampler->capture) summary_add_file(s, sampler->capture);
  }
}

/* Most tools do not say what they could not write. */
static void check_room(run_state *s, const char *folder) {
  struct statvfs is;
  if (statvfs(folder, &is) == 0 && is.f_blocks > 0 && is.f_bavail == 0)
    run_summary_add_problem(&s->summary,
                            "the disk of '%s' is full, so files in it may not be "
                            "complete",
                            folder);
}

/* Of prof, library traces, and databases there are other hints. */
static void add_no_files(run_state *s, const run_tool *tool) {
  if (tool->parts & (RUN_PART_PROF | RUN_PART_TRACE | RUN_PART_LOGS)) return;
  if (run_rpd_is_of(tool)) return;
  if (s->summary.progress == RUN_PROGRESS_ENDED)
    run_words_add(&s->summary.hints,
                  run_text("%s left no file; see what it printed, and whether its cmd names "
                           "another folder",
                           tool->name));
}

static void collect_folder(run_state *s, const run_tool *tool) {
  static const char *const traces[] = {"trace.rpd", "trace.db", "trace.json", "trace.json.gz"};
  if (!tool->folder || tool->folder == s->temporary_folder) return;
  if (tool->parts & RUN_PART_PROF && s->request.file) return;
  if (tool->parts & RUN_PART_ROCPROF)
    run_rocprof_collect(".", &s->stray_files, tool->folder);
  else if (tool->parts & RUN_PART_COLLECT)
    run_rocprof_move(".", &s->stray_files, tool->folder, traces, sizeof traces / sizeof *traces);
  if (tool->parts & RUN_PART_COLLECT) run_rpd_convert(tool);
  if (strcmp(tool->name, "uftrace") == 0 && s->summary.progress == RUN_PROGRESS_ENDED) {
    const char *const hint = run_uftrace_hint(tool->folder);
    if (hint) run_words_add(&s->summary.hints, hint);
  }
  const char *const first = s->request.workload.items[0];
  if (run_follows_one_program(tool) && run_is_launcher(first) &&
      s->summary.progress == RUN_PROGRESS_ENDED)
    run_words_add(&s->summary.hints,
                  run_text("%s followed '%s' alone, and no program that it has started; to follow "
                           "one, put it behind -- itself",
                           tool->name, run_base_name(first)));
  check_room(s, tool->folder);
  if (!run_summary_add_folder(&s->summary, tool->folder)) add_no_files(s, tool);
}

/* ---- captures ---- */

static const char *gone_text(const run_state *s) {
  return run_text(
      "the capture '%s' is not there any more: the program, or another one, has removed or "
      "renamed it",
      s->gone_capture);
}

static void collect_captures(run_state *s) {
  run_captures *const captures = &s->summary.captures;
  const char *folder = NULL;
  for (size_t i = 0; i < s->request.stack.count; i++) {
    const run_tool *const tool = &s->request.stack.tools[i];
    if (!(tool->parts & RUN_PART_PROF) || !tool->folder) continue;
    folder = tool->folder;
    const run_python *const python = s->request.python;
    if (python) s->rest = run_python_parse_rest(folder, &s->gone_capture);
    run_captures_find(folder, python ? run_python_name(python) : NULL, s->process_tree, captures);
  }
  if (captures->has_no_folder)
    run_summary_add_problem(&s->summary,
                            "the folder of captures '%s' is not there any more: what "
                            "was recorded into it may be lost",
                            folder);
  if (s->gone_capture) run_summary_add_problem(&s->summary, "%s", gone_text(s));
  run_last_seen_report(captures, s->process_tree, &s->summary.end);
  for (size_t i = 0; i < captures->count; i++) {
    const run_capture *const capture = &captures->items[i];
    if (capture->is_elsewhere && !s->temporary_folder && !s->request.file)
      run_summary_add_problem(&s->summary, "the capture of %s (%u) is '%s': '%s' did not take it",
                              capture->process, capture->pid, capture->path, folder);
  }
  s->summary.children =
      run_children_find(s->process_tree, captures, &s->request.stack,
                        run_workload_name(s->summary.words), s->record_folder != NULL);
}

void run_collect(run_state *s) {
  if (s->process_tree) run_process_tree_stop(s->process_tree);
  if (s->logs) run_logs_destroy(s->logs);
  const bool has_calls = end_calls(s);
  collect_captures(s);
  collect_streams(s);
  collect_calls(s, has_calls);
  collect_samplers(s);
  s->stray_files.process_tree = s->process_tree;
  for (size_t i = 0; i < s->request.stack.count; i++) collect_folder(s, &s->request.stack.tools[i]);
  run_stray_files_end(&s->stray_files);
}

/* ---- the report ---- */

/* In a process of its own: it may be interrupted, or its reader may close. */
static int report_captures(void *context) {
  const run_state *const s = context;
  const char *const rank = run_output_rank();
  if (rank) say("prof run: rank %s:", rank);
  run_captures_report(&s->summary.captures, &s->request.table_options);
  return 0;
}

static const char *why_nothing(const run_state *s) {
  if (s->gone_capture) return gone_text(s);
  if (!s->request.lacks_package) return run_children_empty_reason(&s->summary.children);
  return run_text(
      "nothing was recorded: %s cannot import prof's Python package; pip install it, "
      "or add its folder to PYTHONPATH",
      s->request.workload.items[0]);
}

static void print_captures(run_state *s) {
  const run_captures *const captures = &s->summary.captures;
  if (run_captures_have_events(captures))
    run_child_call(report_captures, s);
  else if (!s->gone_capture) /* it is among the problems */
    say("prof run: %s%s", run_output_whose(), why_nothing(s));
}

/* In a process of its own, too. */
static int write_captures(void *context) {
  const run_state *const s = context;
  const run_captures *const captures = &s->summary.captures;
  run_words paths = {0};
  for (size_t i = 0; i < captures->count; i++)
    if (!captures->items[i].is_empty) run_words_add(&paths, captures->items[i].path);
  if (paths.count == 0 && s->record_folder && s->request.is_quiet) /* the table says it */
    say("prof run: nothing was recorded, so '%s' is not written", s->request.file);
  const bool has_first = s->request.python && s->rest == RUN_PYTHON_REPORTED;
  run_trace_file_write(s->request.file, s->file_folder, &paths, has_first, s->request.is_quiet,
                       s->request.is_packed);
  return 0;
}

/* Runs in a child process, too. Tables are printed before, because plain captures are read
   faster. */
static int pack_captures(void *context) {
  const run_state *const s = context;
  run_pack_all(&s->summary.captures);
  return 0;
}

/* A process that still runs writes into the folder. The next run removes it then. */
void run_remove_temporary(const run_state *s) {
  const run_captures *const captures = &s->summary.captures;
  const bool is_printed = !s->request.is_quiet && !s->request.is_repeated;
  bool is_used = false;
  if (s->file_folder) rmdir(s->file_folder); /* unless a capture is in it */
  if (s->request.retained && s->record_folder && s->summary.progress == RUN_PROGRESS_ENDED)
    run_retained_add(s->request.retained, captures, why_nothing(s), s->temporary_folder != NULL);
  if (!s->temporary_folder) return;
  run_captures_remove_elsewhere(captures);
  for (size_t i = 0; i < captures->count; i++) {
    const run_capture *const capture = &captures->items[i];
    if (!capture->is_live) continue;
    is_used = true;
    if (is_printed)
      say("prof run: %s (%u) still records, in '%s', which the next prof run removes; -o DIR keeps "
          "it",
          capture->process, capture->pid, s->temporary_folder);
  }
  if (!is_used && !run_temporary_remove(s->temporary_folder))
    say("prof run: cannot remove the temporary folder '%s': %s", s->temporary_folder,
        errno == ENOTEMPTY || errno == EEXIST ? "the program has made a folder with files in it"
                                              : strerror(errno));
  run_temporary_release();
}

void run_report(run_state *s) {
  run_summary *const summary = &s->summary;
  const run_request *const request = &s->request;
  const bool is_printed = !request->is_quiet && !request->is_repeated;
  const bool is_ended = summary->progress == RUN_PROGRESS_ENDED;
  const bool is_prof_alone = request->stack.count == 1 && run_stack_records(&s->request.stack);
  if (is_printed && s->record_folder && is_ended) print_captures(s);
  if (!request->is_quiet && s->rest == RUN_PYTHON_ALL && is_ended) print_captures(s);
  if (s->file_folder && run_child_call(write_captures, s) != 0)
    say("prof run: '%s' is not complete; captures are in '%s'", request->file, s->file_folder);
  if (request->is_packed && !request->file && run_child_call(pack_captures, s) != 0)
    say("prof run: not all captures are packed");
  if (is_printed && (!is_prof_alone || request->has_folder || !is_ended))
    run_summary_print(summary);
  if (is_printed) run_summary_print_leftovers(summary);
  if (is_printed && s->record_folder && is_ended) run_children_print(&summary->children);
  for (size_t i = 0; is_printed && i < summary->hints.count; i++)
    say("prof run: %s%s", run_output_whose(), summary->hints.items[i]);
  for (size_t i = 0; i < summary->problems.count; i++)
    say("prof run: %s%s", run_output_whose(), summary->problems.items[i]);
  run_summary_write(summary);
}
