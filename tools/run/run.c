/* See run.h. */
#define _GNU_SOURCE
#include "run.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../prof/commands.h"
#include "calls.h"
#include "check.h"
#include "dual.h"
#include "file.h"
#include "library_where.h"
#include "logs.h"
#include "output.h"
#include "python.h"
#include "record.h"
#include "rocprof.h"
#include "rpd.h"
#include "sampler.h"
#include "signals.h"
#include "summary.h"
#include "therock.h"

/* ---- the workload's words ---- */

/* The folders must exist. */
static void complete_workload(run_request *r) {
  const char *output = r->file;
  if (!r->python) return;
  for (size_t i = 0; i < r->stack.count; i++)
    if (r->stack.tools[i].parts & RUN_PART_PROF && r->stack.tools[i].folder && !r->file)
      output = run_text("%s/%s.prof", r->stack.tools[i].folder, run_python_name(r));
  r->workload = run_python_words(r, output);
}

/* ---- scripts ---- */

static const char *script_text(const run_script *script) {
  run_words path = {0};
  run_words_add(&path, script->path);
  return run_text("bash %s%s%s", run_words_quoted(&path), *script->arguments ? " " : "",
                  script->arguments);
}

/* folder: of the tool's files, or NULL. */
static int run_script_now(const run_script *script, const char *folder, const run_watch *watch) {
  run_command command = {0};
  if (folder) run_folder_export(&command.variables, folder);
  run_words_add(&command.words, "/bin/sh");
  run_words_add(&command.words, "-c");
  run_words_add(&command.words, run_text(RUN_SHELL_OUTLIVES "%s", script_text(script)));
  return run_child(&command, watch).status;
}

/* Runs all of them in order. before: stops at the first that fails, or when we are asked to end.
   Returns the status. */
static int run_scripts_now(const run_scripts *scripts, const run_watch *watch, bool is_before,
                           const char *of, const char *folder, run_summary *summary) {
  for (size_t i = 0; i < scripts->count; i++) {
    if (is_before && run_signals_interrupt()) return RUN_FAILED;
    const int status = run_script_now(&scripts->items[i], folder, watch);
    run_summary_add_script(summary, of, is_before, script_text(&scripts->items[i]), status);
    if (status == 0) continue;
    say("prof run: %s-script of %s ended with status %d: %s", is_before ? "pre" : "post", of,
        status, script_text(&scripts->items[i]));
    if (is_before) return status;
  }
  return 0;
}

/* From the outermost to the innermost. */
static int set_up(const run_stack *stack, const run_watch *watch, run_summary *summary) {
  for (size_t i = stack->count; i > 0; i--) {
    const run_tool *const tool = &stack->tools[i - 1];
    const int status =
        run_scripts_now(&tool->before, watch, true, tool->name, tool->folder, summary);
    if (status != 0) return status;
  }
  return run_scripts_now(&stack->before, watch, true, "the context", NULL, summary);
}

/* From the innermost to the outermost, whatever the workload's status. */
static void tear_down(const run_stack *stack, const run_watch *watch, run_summary *summary) {
  run_scripts_now(&stack->after, watch, false, "the context", NULL, summary);
  for (size_t i = 0; i < stack->count; i++)
    run_scripts_now(&stack->tools[i].after, watch, false, stack->tools[i].name,
                    stack->tools[i].folder, summary);
}

/* The workload has not begun. */
static int tell_interrupt(void) {
  const int number = run_signals_interrupt();
  say("prof run: signal %d (%s) came before the program began, so it was not run", number,
      strsignal(number));
  return 128 + number;
}

/* ---- one run ---- */

/* The steps of a run. If one fails, those behind it follow all the same. */
typedef enum run_step { PREPARING, SETTING_UP, TEARING_DOWN, COLLECTING, REPORTING, DONE } run_step;

typedef struct run_state {
  run_request request;
  run_step step;
  const char *record_folder; /* of captures, or NULL */
  const char *temporary_folder; /* the same, if it is removed at the end; or NULL */
  run_libraries *libraries;  /* or NULL */
  run_calls *calls;          /* or NULL */
  const char *calls_path;
  run_logs *logs;            /* or NULL */
  run_words names_before; /* in the working directory */
  run_samplers samplers;
  run_watch watch;
  run_summary summary;
  int status;
} run_state;

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

/* Of the tool prof's captures. NULL: Python needs none. */
static const char *make_prof_folder(run_state *s) {
  const run_request *const r = &s->request;
  if (!r->file && (r->has_folder || r->sample))
    return run_output_new_folder(r->folder, "prof_output");
  if (r->python && !(r->file && r->sample)) return NULL;
  char *const path = r->file ? run_file_folder(r->file) : run_text("%s", temporary_folder_name());
  if (!r->file && !mkdtemp(path)) run_fail("cannot make a folder '%s': %s", path, strerror(errno));
  if (!r->file) s->temporary_folder = path;
  return path;
}

static void prepare_prof(run_state *s, run_tool *tool) {
  const char *const folder = tool->folder ? realpath(tool->folder, NULL) : NULL;
  if (tool->folder && !folder)
    run_fail("cannot find the folder of captures: %s", strerror(errno));
  if (s->request.sample)
    tool->sampling = run_sampling_of_prof(s->request.sample, run_text("%s/samples.csv", folder));
  if (!s->request.python || s->request.file) s->record_folder = folder;
  run_record_prepare(tool, &s->request, folder);
}

static void prepare_folders(run_state *s) {
  run_stack *const stack = &s->request.stack;
  for (size_t i = 0; i < stack->count; i++) {
    run_tool *const tool = &stack->tools[i];
    if (tool->parts & RUN_PART_PROF) tool->folder = make_prof_folder(s);
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
  run_summary_add_file(&s->summary, path);
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
static bool has_captures(const run_state *s) {
  for (size_t i = 0; i < s->request.stack.count; i++)
    if (s->request.stack.tools[i].parts & RUN_PART_PROF)
      return s->request.has_folder || (s->request.file && s->record_folder);
  return false;
}

static void prepare_watch(run_state *s) {
  unsigned wanted = 0;
  s->watch.log = s->watch.extra = -1;
  for (size_t i = 0; i < s->request.stack.count; i++) {
    const run_tool *const tool = &s->request.stack.tools[i];
    wanted |= run_library_wanted(tool->name);
    for (size_t t = 0; t < tool->traces.count; t++)
      wanted |= run_library_wanted(tool->traces.items[t]);
  }
  if (wanted) {
    if (has_captures(s))
      s->calls_path = run_output_new_file(s->request.file ? s->record_folder : s->request.folder,
                                          "library_trace", ".prof");
    if (s->calls_path) s->calls = run_calls_create(s->calls_path);
    s->libraries = run_libraries_create(wanted, s->calls);
    s->watch.on_line = on_line;
    s->watch.context = s;
  }
  if (s->request.has_folder) open_log(s);
  prepare_logs(s);
}
/* The tools' files that exist at the end. */
static void collect(run_state *s) {
  if (s->logs) run_logs_destroy(s->logs);
  if (s->libraries) {
    run_libraries_finish(s->libraries);
    char *const path = run_output_new_file(s->request.folder, "library_trace", ".csv");
    if (run_libraries_write(s->libraries, path)) {
      run_summary_add_file(&s->summary, path);
    } else {
      say("prof run: cannot write '%s': %s", path, strerror(errno));
      unlink(path);
    }
    if (s->calls && run_calls_finish(s->calls) && !s->request.file)
      run_summary_add_file(&s->summary, s->calls_path);
  }
  for (size_t i = 0; i < s->request.stack.count; i++) {
    const run_tool *const tool = &s->request.stack.tools[i];
    if (!tool->folder || tool->folder == s->temporary_folder) continue;
    if (tool->parts & RUN_PART_PROF && s->request.file) continue;
    static const char *const traces[] = {"trace.rpd", "trace.db", "trace.json", "trace.json.gz"};
    if (tool->parts & RUN_PART_ROCPROF) run_rocprof_collect(".", &s->names_before, tool->folder);
    else if (tool->parts & RUN_PART_COLLECT)
      run_rocprof_move(".", &s->names_before, tool->folder, traces,
                       sizeof traces / sizeof *traces);
    if (tool->parts & RUN_PART_COLLECT) run_rpd_convert(tool);
    run_summary_add_folder(&s->summary, tool->folder);
  }
}

typedef struct recorded {
  const run_state *state;
  run_words captures;
} recorded;

/* In a process of its own: it may be interrupted, or its reader may close. */
static int report_captures(void *context) {
  const recorded *const r = context;
  run_record_report(&r->captures, &r->state->request.table_options);
  return 0;
}

/* The same. */
static int write_captures(void *context) {
  const recorded *const r = context;
  const run_request *const request = &r->state->request;
  run_file_write(request->file, r->state->record_folder, &r->captures, request->is_quiet);
  return 0;
}

static void report(run_state *s) {
  recorded r = {.state = s};
  if (s->record_folder) {
    run_record_captures(s->record_folder, &r.captures);
    if (!s->request.is_quiet && !s->request.python) run_child_call(report_captures, &r);
  }
  if (s->request.file && s->record_folder && run_child_call(write_captures, &r) != 0)
    say("prof run: '%s' is not complete; captures are in '%s'", s->request.file, s->record_folder);
  if (s->request.has_folder) run_summary_write(&s->summary, s->request.folder);
  const bool is_prof_alone = s->request.stack.count == 1 &&
                             s->request.stack.tools[0].parts & RUN_PART_PROF;
  if (!s->request.is_quiet && (!is_prof_alone || s->request.has_folder))
    run_summary_print(&s->summary);
}

/* The captures of which only the table is wanted. */
static void remove_temporary_folder(const run_state *s) {
  if (s->request.file && s->record_folder) rmdir(s->record_folder); /* not if a capture is in it */
  if (!s->temporary_folder) return;
  DIR *const all = opendir(s->temporary_folder);
  for (struct dirent *entry; all && (entry = readdir(all)) != NULL;)
    unlinkat(dirfd(all), entry->d_name, 0);
  if (all) closedir(all);
  rmdir(s->temporary_folder);
}

/* Samplers begin just before the workload, and end just after it. */
static void run_workload(run_state *s, const run_command *command) {
  const bool is_captured = has_captures(s) && !s->request.file;
  if (!run_samplers_start(&s->samplers, &s->request.stack, s->request.folder, is_captured)) return;
  for (size_t i = 0; i < s->samplers.count; i++) {
    run_summary_add_file(&s->summary, s->samplers.items[i].path);
    if (s->samplers.items[i].capture)
      run_summary_add_file(&s->summary, s->samplers.items[i].capture);
  }
  s->summary.end = run_child(command, &s->watch);
  s->status = s->summary.end.status;
  run_samplers_stop(&s->samplers, s->request.is_quiet);
}

/* All that follows the workload. */
static int finish(void *context) {
  run_state *const s = context;
  run_at_failure(finish, s);
  if (s->step == SETTING_UP) {
    s->step = TEARING_DOWN;
    tear_down(&s->request.stack, &s->watch, &s->summary);
  }
  if (s->step == TEARING_DOWN) {
    s->step = COLLECTING;
    collect(s);
  }
  if (s->step == COLLECTING) {
    s->step = REPORTING;
    report(s);
  }
  s->step = DONE;
  remove_temporary_folder(s);
  run_at_failure(NULL, NULL);
  return s->status;
}

static void prepare(run_state *s) {
  run_output_make_folder(s->request.folder);
  prepare_folders(s);
  run_library_where_check(&s->request.stack);
  complete_workload(&s->request);
  prepare_watch(s);
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
  for (size_t i = 0; i < r->stack.count; i++)
    if (r->sample && r->stack.tools[i].parts & RUN_PART_PROF)
      r->stack.tools[i].sampling = run_sampling_of_prof(r->sample, "samples.csv");
}

static void ignore(int number) { (void)number; }

int run_go(const run_request *request, double *seconds_out) {
  run_state s = {.request = *request, .status = RUN_FAILED};
  /* past a file size limit write() fails; a handler, unlike SIG_IGN, is not the workload's */
  sigaction(SIGXFSZ, &(struct sigaction){.sa_handler = ignore, .sa_flags = SA_RESTART}, NULL);
  prepare_request(&s.request);
  run_check(&s.request.stack, &s.request.workload);
  for (size_t i = 0; i < s.request.stack.count; i++)
    if (s.request.stack.tools[i].parts & RUN_PART_THEROCK) run_therock_check();
  run_signals_hold();
  run_at_failure(finish, &s);
  prepare(&s);
  const run_words workload = run_dual_workload(&s.request.stack, &s.request.workload);
  const run_command command = run_compose(&s.request.stack, &workload);
  s.summary.command = run_words_quoted(&request->workload);
  s.names_before = run_rocprof_names(".");
  s.step = SETTING_UP;
  s.summary.end.status = RUN_FAILED;
  if (set_up(&s.request.stack, &s.watch, &s.summary) == 0 && !run_signals_interrupt())
    run_workload(&s, &command);
  else if (run_signals_interrupt())
    s.status = s.summary.end.status = tell_interrupt();
  *seconds_out = s.summary.end.seconds;
  finish(&s);
  if (s.watch.log >= 0) close(s.watch.log);
  if (s.libraries) run_libraries_destroy(s.libraries);
  run_signals_release();
  run_signals_end_as(s.status);
  return s.status;
}

/* ---- --dry-run ---- */

static void print_scripts(const run_scripts *scripts) {
  for (size_t i = 0; i < scripts->count; i++) printf("%s\n", script_text(&scripts->items[i]));
}

/* The folders have their names, but are not made. */
static void plan_folders(run_request *r) {
  for (size_t i = 0; i < r->stack.count; i++) {
    run_tool *const tool = &r->stack.tools[i];
    if (!(tool->parts & RUN_PART_PROF)) {
      if (run_tool_has_folder(tool)) tool->folder = run_text("%s/%s", r->folder, folder_name(tool));
    } else if (!r->file && (r->has_folder || r->sample)) {
      tool->folder = run_text("%s/%s", r->folder, folder_name(tool));
    } else if (!r->python) {
      tool->folder = temporary_folder_name();
    }
    run_marks_replace(tool);
    if (tool->parts & RUN_PART_PROF) run_record_prepare(tool, r, tool->folder);
  }
}

int run_print(const run_request *request) {
  run_request r = *request;
  prepare_request(&r);
  const int status = run_check_all(&r.stack, &r.workload);
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
