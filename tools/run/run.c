/* One run of a workload under a stack of tools, step by step. See run.h. */
#define _GNU_SOURCE
#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../prof/commands.h"
#include "output.h"

/* ---- the workload's words ---- */

/* The folders must exist. */
static void complete_workload(run_request *r) {
  const char *captures = NULL;
  if (!r->python) return;
  for (size_t i = 0; i < r->stack.count; i++)
    if (r->stack.tools[i].parts & RUN_PART_PROF) captures = r->stack.tools[i].folder;
  const bool is_kept = r->has_folder || r->sample;
  const char *const output = r->file || !is_kept ? r->file : run_python_capture(r, captures);
  r->workload = run_python_words(r, run_output_absolute(captures), output);
}

/* ---- one run ---- */

/* The workload has not begun. */
static int tell_interrupt(void) {
  const int number = run_signals_interrupt();
  say("prof run: signal %d (%s) came before the program began, so it was not run", number,
      strsignal(number));
  return 128 + number;
}

static void on_line(void *context, int stream, const char *line, size_t bytes) {
  const run_state *const s = context;
  run_libraries_take(s->libraries, &(run_line_source){stream, RUN_ORIGIN_UNKNOWN}, line, bytes);
}

static void on_log_line(void *context, const run_origin *from, const char *line, size_t bytes) {
  const run_state *const s = context;
  run_libraries_take(s->libraries, &(run_line_source){1, *from}, line, bytes);
}

static void on_logs(void *context) {
  const run_state *const s = context;
  run_logs_take(s->logs);
}

/* Makes a new folder for each tool's files. rocprof and its variants share one, as in madengine. */
static const char *folder_name(const run_tool *tool) {
  return tool->parts & RUN_PART_ROCPROF ? "rocprof_output" : run_text("%s_output", tool->name);
}

static const char *temporary_folder_name(void) {
  const char *const folder = getenv("TMPDIR");
  return run_text("%s/prof-run-XXXXXX", folder && *folder ? folder : "/tmp");
}

static const char folder_name_of_prof[] = "prof_output";

/* Of the tool prof's captures. */
static const char *make_prof_folder(run_state *s) {
  const run_request *const r = &s->request;
  if (!r->file && (r->has_folder || r->sample))
    return run_output_new_folder(r->folder, folder_name_of_prof);
  if (!r->file) run_temporary_sweep();
  const char *const path = r->file ? run_trace_file_folder(r->file) : run_temporary_folder();
  run_output_note_folder(path);
  if (!r->file) s->temporary_folder = path;
  return path;
}

/* As the sampler takes it: in the folder of the run's other files if it is there. */
static const char *samples_name(const run_state *s, const run_tool *tool, const char *folder) {
  return run_text("%s/samples.csv", s->request.file ? folder : run_base_name(tool->folder));
}

static void prepare_prof(run_state *s, run_tool *tool) {
  const char *const folder = realpath(tool->folder, NULL);
  if (!folder) run_fail("cannot find the folder of captures: %s", strerror(errno));
  if (s->request.sample)
    tool->sampling = run_sampling_of_prof(s->request.sample, samples_name(s, tool, folder));
  if (!s->request.python) s->record_folder = folder;
  if (s->request.file) s->file_folder = folder;
  run_record_prepare(tool, &s->request, folder);
}

static void prepare_folders(run_state *s) {
  run_stack *const stack = &s->request.stack;
  for (size_t i = 0; i < stack->count; i++) {
    run_tool *const tool = &stack->tools[i];
    if (tool->parts & RUN_PART_PROF)
      tool->folder = make_prof_folder(s);
    else if (run_tool_has_folder(tool))
      tool->folder = run_output_new_folder(s->request.folder, folder_name(tool));
    run_marks_replace(tool);
    if (tool->parts & RUN_PART_PROF) prepare_prof(s, tool);
  }
}

static void open_log(run_state *s) {
  char *const path = run_output_new_file(s->request.folder, "run", ".live.log");
  s->watch.log = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
  if (s->watch.log < 0) run_fail("cannot open the log '%s': %s", path, strerror(errno));
  s->log_path = path;
}

/* Tools whose libraries write log files. */
static void prepare_logs(run_state *s) {
  for (size_t i = 0; i < s->request.stack.count; i++) {
    run_tool *const tool = &s->request.stack.tools[i];
    if (!(tool->parts & RUN_PART_LOGS)) continue;
    if (!s->logs) s->logs = run_logs_create(&(run_logs_target){on_log_line, s, s->watch.log});
    run_logs_add(s->logs, tool->folder);
  }
  if (!s->logs) return;
  s->watch.extra = run_logs_fd(s->logs);
  s->watch.on_extra = on_logs;
  s->watch.context = s;
}

/* With prof itself in the stack, samples and calls of libraries are captures, too. */
static bool run_has_captures(const run_state *s) {
  return run_stack_records(&s->request.stack) &&
         (s->request.has_folder || (s->request.file && s->file_folder));
}

/* Beside the table, with its number. The recorder makes the file when it is whole. */
static const char *calls_path(const run_state *s) {
  if (s->request.file) return run_text("%s/library_trace.prof", s->file_folder);
  const int stem = (int)(strrchr(s->trace_path, '.') - s->trace_path);
  const char *path = run_text("%.*s.prof", stem, s->trace_path);
  for (int more = 2; access(path, F_OK) == 0; more++) /* its table was removed */
    path = run_text("%.*s-%d.prof", stem, s->trace_path, more);
  return path;
}

static void prepare_watch(run_state *s) {
  const unsigned wanted = run_libraries_of(&s->request.stack);
  s->watch.log = s->watch.extra = -1;
  if (wanted) {
    s->libraries = run_libraries_create(wanted);
    s->trace_path = run_output_write_new(s->request.folder, "library_trace", ".csv",
                                         run_libraries_put, s->libraries);
    if (run_has_captures(s)) {
      s->calls_path = calls_path(s);
      s->calls = run_calls_create(s->calls_path);
      run_libraries_record(s->libraries, s->calls);
    }
    s->watch.on_line = on_line;
    s->watch.context = s;
  }
  if (s->request.has_folder) open_log(s);
  prepare_logs(s);
}

/* Tools that may write into the working directory. */
static bool run_collects_files(const run_state *s) {
  for (size_t i = 0; i < s->request.stack.count; i++)
    if (s->request.stack.tools[i].parts & RUN_PART_COLLECT) return true;
  return false;
}

/* Processes can be recorded by prof's variables if the tool prof is the outermost. */
static void start_family(run_state *s) {
  const run_stack *const stack = &s->request.stack;
  const bool is_outermost =
      s->record_folder && stack->tools[stack->count - 1].parts & RUN_PART_PROF;
  if (s->record_folder || s->libraries || s->request.has_folder || s->request.sample ||
      run_collects_files(s))
    s->process_tree = run_process_tree_start(is_outermost ? "PROF_OUTPUT" : NULL, s->record_folder);
}

static void was_not_run(run_state *s, const char *why) {
  s->summary.progress = RUN_PROGRESS_NOT_RUN;
  s->summary.why_not = why;
}

/* Samplers begin just before the workload, and end just after it. */
static void run_workload(run_state *s, const run_command *command) {
  if (!run_samplers_start(&s->samplers)) {
    was_not_run(s, "a tool could not begin to sample");
    return;
  }
  start_family(s);
  s->step = RUNNING;
  s->watch.is_last = !s->request.has_next && !run_scripts_follow(&s->request.stack);
  s->summary.end = run_child(command, &s->watch);
  s->summary.progress = RUN_PROGRESS_ENDED;
  s->status = s->summary.end.status;
  if (s->process_tree) run_process_tree_stop(s->process_tree);
  run_samplers_stop(&s->samplers, s->request.is_quiet);
}

static void set_up_failed(run_state *s) {
  const run_script_end *const last = &s->summary.scripts[s->summary.scripts_count - 1];
  was_not_run(s, run_text("the pre-script of %s ended with status %d", last->of, last->status));
}

/* A fault of ours that comes while a program or a script runs does not end it. */
static void continue_after_fault(run_state *s) {
  run_child_end of_script;
  const bool is_program = s->step == RUNNING && run_child_is_running();
  if (is_program) s->summary.progress = RUN_PROGRESS_ENDED;
  run_child_go_on(is_program ? &s->summary.end : &of_script);
  if (!is_program) return;
  run_samplers_stop(&s->samplers, s->request.is_quiet);
  run_summary_add_problem(&s->summary,
                          "prof run had a fault while the program ran, and has not "
                          "read the rest of its output");
}

/* All that follows the workload. */
static int finish_run(void *context) {
  run_state *const s = context;
  run_set_failure_handler(finish_run, s);
  continue_after_fault(s);
  if (s->summary.progress == RUN_PROGRESS_RUNNING) was_not_run(s, "it could not be started");
  if (s->summary.progress == RUN_PROGRESS_ENDED) s->status = s->summary.end.status;
  if (s->step == SETTING_UP || s->step == RUNNING) {
    s->step = TEARING_DOWN;
    run_scripts_after(&s->request.stack, &s->watch, &s->summary);
  }
  if (s->step == TEARING_DOWN) {
    s->step = COLLECTING;
    run_collect(s);
  }
  if (s->step == COLLECTING) {
    s->step = REPORTING;
    run_report(s);
  }
  if (s->step < REMOVING) {
    s->step = REMOVING;
    run_remove_temporary(s);
  }
  s->step = DONE;
  run_set_failure_handler(NULL, NULL);
  return s->status;
}

/* All files that the run needs are made before it starts. */
static void prepare_run(run_state *s) {
  run_output_make_folder(s->request.folder);
  prepare_folders(s);
  run_library_log_target_check(&s->request.stack);
  run_summary_begin(&s->summary, s->request.folder, s->request.has_folder);
  complete_workload(&s->request);
  prepare_watch(s);
  run_samplers_prepare(&s->samplers, &s->request.stack, s->request.folder,
                       run_has_captures(s) && !s->request.file);
  s->summary.samplers = &s->samplers;
  s->summary.trace_path = s->trace_path;
}

static void ignore_signal(int number) { (void)number; }

/* With a limit for the size of files, write() fails instead. A handler is not inherited. */
static void outlive_size_limit(void) {
  struct sigaction before;
  if (sigaction(SIGXFSZ, NULL, &before) == 0 && before.sa_handler == SIG_DFL)
    sigaction(SIGXFSZ, &(struct sigaction){.sa_handler = ignore_signal}, NULL);
}

/* A run changes its tools: runs that repeat have copies. */
static void copy_tools(run_stack *stack) {
  run_tool *const tools = run_make(stack->count, sizeof *tools);
  for (size_t i = 0; i < stack->count; i++) {
    tools[i] = stack->tools[i];
    tools[i].variables = (run_words){0};
    run_words_add_all(&tools[i].variables, &stack->tools[i].variables);
  }
  stack->tools = tools;
}

/* Before the check. */
static void prepare_request(run_request *r) {
  copy_tools(&r->stack);
  run_samplings_prepare(&r->stack);
  run_python_prepare(r);
  if (r->has_devices) run_check_devices(&r->stack);
  if (r->has_memory && !r->python) run_check_memory(&r->stack, r->workload.items[0]);
  for (size_t i = 0; i < r->stack.count; i++)
    if (r->sample && r->stack.tools[i].parts & RUN_PART_PROF)
      r->stack.tools[i].sampling = run_sampling_of_prof(r->sample, "samples.csv");
}

int run_stack_execute(const run_request *request, double *seconds_out) {
  run_state s = {.request = *request, .status = RUN_FAILED, .stray_files = {.lock = -1}};
  outlive_size_limit();
  s.summary.words = &request->workload;
  s.summary.stack = &s.request.stack;
  *seconds_out = -1;
  prepare_request(&s.request);
  run_check(&s.request.stack, &s.request.workload);
  for (size_t i = 0; i < s.request.stack.count; i++)
    if (s.request.stack.tools[i].parts & RUN_PART_THEROCK) run_therock_check();
  run_signals_hold();
  run_set_failure_handler(finish_run, &s);
  prepare_run(&s);
  const run_words workload = run_dual_workload(&s.request.stack, &s.request.workload);
  const run_command command = run_compose(&s.request.stack, &workload);
  if (run_collects_files(&s)) run_stray_files_begin(&s.stray_files);
  run_output_keep();
  s.step = SETTING_UP;
  s.summary.end.status = RUN_FAILED;
  const int status = run_scripts_before(&s.request.stack, &s.watch, &s.summary);
  if (run_signals_interrupt()) {
    s.status = s.summary.end.status = tell_interrupt();
    was_not_run(&s, run_text("signal %d came first", run_signals_interrupt()));
  } else if (status == 0) {
    run_workload(&s, &command);
  } else {
    set_up_failed(&s);
  }
  if (s.summary.progress == RUN_PROGRESS_ENDED) *seconds_out = s.summary.end.seconds;
  finish_run(&s);
  if (s.watch.log >= 0) close(s.watch.log);
  if (s.libraries) run_libraries_destroy(s.libraries);
  if (s.process_tree) run_process_tree_destroy(s.process_tree);
  run_signals_release();
  run_signals_end_as(s.status);
  return s.status;
}

/* ---- --dry-run ---- */

static void print_scripts(const run_scripts *scripts) {
  for (size_t i = 0; i < scripts->count; i++) printf("%s\n", run_script_text(&scripts->items[i]));
}

/* As make_prof_folder(). */
static const char *plan_prof_folder(const run_request *r) {
  const bool is_kept = !r->file && (r->has_folder || r->sample);
  if (is_kept) return run_output_next_folder(r->folder, folder_name_of_prof);
  return r->file ? run_trace_file_folder_pattern(r->file) : temporary_folder_name();
}

/* The folders have their names, but are not made. */
static void plan_folders(run_request *r) {
  for (size_t i = 0; i < r->stack.count; i++) {
    run_tool *const tool = &r->stack.tools[i];
    tool->is_planned = true;
    if (tool->parts & RUN_PART_PROF)
      tool->folder = plan_prof_folder(r);
    else if (run_tool_has_folder(tool))
      tool->folder = run_output_next_folder(r->folder, folder_name(tool));
    run_marks_replace(tool);
    if (tool->parts & RUN_PART_PROF) run_record_prepare(tool, r, run_output_absolute(tool->folder));
  }
}

static int check_folder(const run_request *r, int status) {
  bool is_used = r->has_folder || run_libraries_of(&r->stack);
  for (size_t i = 0; i < r->stack.count; i++)
    is_used |= run_tool_has_folder(&r->stack.tools[i]) || r->stack.tools[i].sampling;
  const char *const why = is_used ? run_output_refusal(r->folder) : NULL;
  if (why) say("prof run: %s", why);
  return why && status == 0 ? RUN_FAILED : status;
}

int run_stack_print(const run_request *request) {
  run_request r = *request;
  prepare_request(&r);
  const int status = check_folder(&r, run_check_all(&r.stack, &r.workload));
  plan_folders(&r);
  complete_workload(&r);
  const run_words workload = run_dual_workload(&r.stack, &r.workload);
  const run_command command = run_compose(&r.stack, &workload);
  const run_words variables = run_exports(&command.variables);
  for (size_t i = r.stack.count; i > 0; i--) print_scripts(&r.stack.tools[i - 1].before);
  print_scripts(&r.stack.before);
  printf("%s%s%s\n", run_words_quoted(&variables), variables.count ? " " : "",
         run_words_quoted(&command.words));
  print_scripts(&r.stack.after);
  for (size_t i = 0; i < r.stack.count; i++) print_scripts(&r.stack.tools[i].after);
  return status;
}
