/* The summary of a run, as text and as JSON. See run.h. */
#define _GNU_SOURCE
#include "run.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../prof/commands.h"
#include "output.h"

enum { FILES_MAX = 1000 }; /* of one tool's folder that are listed */

/* ---- JSON ---- */

void run_json_put_text(FILE *to, const char *text) {
  const unsigned char *at = (const unsigned char *)text;
  fputc('"', to);
  for (size_t left = strlen(text), taken; left > 0; at += taken, left -= taken) {
    unsigned code;
    const size_t bytes = utf8_character(at, left, &code);
    taken = bytes ? bytes : 1;
    if (bytes == 0)
      fputs("\\ufffd", to);
    else if (code == '"' || code == '\\')
      fprintf(to, "\\%c", (int)code);
    else if (code < 0x20 || code == 0x7f)
      fprintf(to, "\\u%04x", code);
    else
      fwrite(at, 1, bytes, to);
  }
  fputc('"', to);
}

static void put_member_name(FILE *to, const char *name) { fprintf(to, ",\n  \"%s\": ", name); }

void run_json_put_member(FILE *to, const char *name, const char *text) {
  put_member_name(to, name);
  if (text)
    run_json_put_text(to, text);
  else
    fputs("null", to);
}

void run_json_put_list(FILE *to, const char *name, const run_words *words) {
  put_member_name(to, name);
  fputc('[', to);
  for (size_t i = 0; i < words->count; i++) {
    fputs(i ? ",\n    " : "\n    ", to);
    run_json_put_text(to, words->items[i]);
  }
  fputs(words->count ? "\n  ]" : "]", to);
}

void run_json_put_time(FILE *to, const char *name, const struct timespec *time) {
  char text[64];
  struct tm utc;
  strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", gmtime_r(&time->tv_sec, &utc));
  put_member_name(to, name);
  fprintf(to, "\"%s.%06ldZ\"", text, time->tv_nsec / 1000);
}

void run_json_put_place(FILE *to) {
  char host[256] = "";
  const char *const rank = run_output_rank();
  gethostname(host, sizeof host - 1);
  run_json_put_member(to, "host", host);
  put_member_name(to, "rank");
  if (rank)
    fprintf(to, "%llu", strtoull(rank, NULL, 10));
  else
    fputs("null", to);
  put_member_name(to, "pid");
  fprintf(to, "%d", (int)getpid());
}

/* ---- its parts ---- */

static int text_compare(const void *a, const void *b) {
  return strcmp(*(char *const *)a, *(char *const *)b);
}

static run_words names_in(const char *folder) {
  run_words names = {0};
  DIR *const all = opendir(folder);
  for (struct dirent *entry; all && (entry = readdir(all)) != NULL;) {
    struct stat is;
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    const bool is_folder =
        fstatat(dirfd(all), entry->d_name, &is, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(is.st_mode);
    run_words_add(&names, run_text("%s%s", entry->d_name, is_folder ? "/" : ""));
  }
  if (all) closedir(all);
  if (names.count > 1) qsort(names.items, names.count, sizeof *names.items, text_compare);
  return names;
}

static void add_if_written(run_words *names, const run_summary *summary, const char *path) {
  if (path && run_words_find(&summary->files, path) >= 0) run_words_add(names, path);
}

/* Of a tool without a folder: paths. */
static run_words tool_files(const run_summary *summary, const run_tool *tool) {
  run_words names = {0};
  const run_samplers *const samplers = summary->samplers;
  if (tool->parts & RUN_PART_TRACE) add_if_written(&names, summary, summary->trace_path);
  for (size_t i = 0; samplers && i < samplers->made; i++) {
    if (samplers->items[i].sampling != tool->sampling) continue;
    add_if_written(&names, summary, samplers->items[i].path);
    add_if_written(&names, summary, samplers->items[i].capture);
  }
  return names;
}

static void put_tool(FILE *to, const run_summary *summary, const run_tool *tool) {
  const run_words inside = tool->folder ? names_in(tool->folder) : (run_words){0};
  const run_words names = inside.count ? inside : tool_files(summary, tool);
  fputs("{\"name\": ", to);
  run_json_put_text(to, tool->name);
  fputs(", \"folder\": ", to);
  if (inside.count)
    run_json_put_text(to, tool->folder);
  else
    fputs("null", to);
  fprintf(to, ", \"file_count\": %zu, \"files\": [", names.count);
  for (size_t i = 0; i < names.count && i < FILES_MAX; i++) {
    if (i) fputs(", ", to);
    run_json_put_text(to, names.items[i]);
  }
  fputs("]}", to);
}

static void put_tools(FILE *to, const run_summary *summary) {
  const run_stack *const stack = summary->stack;
  put_member_name(to, "tools");
  fputc('[', to);
  for (size_t i = 0; i < stack->count; i++) {
    fputs(i ? ",\n    " : "\n    ", to);
    put_tool(to, summary, &stack->tools[i]);
  }
  fputs(stack->count ? "\n  ]" : "]", to);
}

static void put_scripts(FILE *to, const run_summary *summary) {
  put_member_name(to, "scripts");
  fputc('[', to);
  for (size_t i = 0; i < summary->scripts_count; i++) {
    const run_script_end *const script = &summary->scripts[i];
    fprintf(to, "%s\n    {\"when\": \"%s\", \"of\": ", i ? "," : "",
            script->is_before ? "before" : "after");
    run_json_put_text(to, script->of);
    fputs(", \"command\": ", to);
    run_json_put_text(to, script->text);
    fprintf(to, ", \"status\": %d}", script->status);
  }
  fputs(summary->scripts_count ? "\n  ]" : "]", to);
}

static void put_captures(FILE *to, const run_captures *captures) {
  size_t put = 0;
  put_member_name(to, "captures");
  fputc('[', to);
  for (size_t i = 0; i < captures->count; i++) {
    const run_capture *const capture = &captures->items[i];
    if (capture->is_empty) continue;
    fputs(put++ ? ",\n    " : "\n    ", to);
    fputs("{\"path\": ", to);
    run_json_put_text(to, capture->path);
    fputs(", \"process\": ", to);
    run_json_put_text(to, capture->title ? capture->title : capture->process);
    fprintf(to, ", \"pid\": %u, \"is_running\": %s}", capture->pid,
            capture->is_live ? "true" : "false");
  }
  fputs(put ? "\n  ]" : "]", to);
}

static void put_children(FILE *to, const run_children *children) {
  put_member_name(to, "processes");
  fputc('[', to);
  for (size_t i = 0; i < children->count; i++) {
    const run_child_group *const group = &children->groups[i];
    fputs(i ? ",\n    " : "\n    ", to);
    fputs("{\"name\": ", to);
    run_json_put_text(to, group->name);
    fprintf(to, ", \"count\": %zu, \"is_recorded\": %s, \"why_not\": ", group->count,
            group->is_recorded ? "true" : "false");
    if (group->is_recorded || !children->has_reasons)
      fputs("null", to);
    else
      run_json_put_text(to, run_reason_text(group->reason));
    fputc('}', to);
  }
  fputs(children->count ? "\n  ]" : "]", to);
}

static void put_status(FILE *to, const run_summary *summary) {
  static const char *const progress[] = {"running", "ended", "not run"};
  run_json_put_member(to, "state", progress[summary->progress]);
  put_member_name(to, "status");
  if (summary->progress == RUN_PROGRESS_RUNNING)
    fputs("null", to);
  else
    fprintf(to, "%d", summary->end.status);
  put_member_name(to, "seconds");
  if (summary->progress == RUN_PROGRESS_ENDED)
    fprintf(to, "%.6f", summary->end.seconds);
  else
    fputs("null", to);
  run_json_put_member(to, "why_not_run", summary->why_not);
}

static void put_summary_json(FILE *to, const void *context) {
  const run_summary *const summary = context;
  char *const folder = getcwd(NULL, 0);
  fputs("{\n  \"command\": ", to);
  run_json_put_text(to, run_words_quoted(summary->words));
  run_json_put_member(to, "name", run_workload_name(summary->words));
  run_json_put_list(to, "words", summary->words);
  run_json_put_member(to, "working_directory", folder);
  run_json_put_time(to, "begun", &summary->begun);
  run_json_put_place(to);
  put_status(to, summary);
  put_tools(to, summary);
  put_scripts(to, summary);
  run_json_put_list(to, "files", &summary->files);
  put_captures(to, &summary->captures);
  put_children(to, &summary->children);
  run_json_put_list(to, "left_running", &summary->end.left);
  run_json_put_list(to, "problems", &summary->problems);
  run_json_put_list(to, "hints", &summary->hints);
  fputs("\n}\n", to);
  free(folder);
}

static bool write_summary(const run_summary *summary) {
  FILE *const to = run_output_begin(summary->path);
  if (to) put_summary_json(to, summary);
  return run_output_end(to, summary->path);
}

void run_summary_begin(run_summary *summary, const char *folder, bool has_file) {
  clock_gettime(CLOCK_REALTIME, &summary->begun);
  if (!has_file) return;
  summary->path = run_output_write_new(folder, "summary", ".json", put_summary_json, summary);
}

void run_summary_write(run_summary *summary) {
  if (!summary->path || write_summary(summary)) return;
  const int error = errno;
  unlink(summary->path); /* it says that the workload runs */
  say("prof run: cannot write '%s': %s", summary->path, strerror(error));
}

/* ---- as text ---- */

void run_summary_add_script(run_summary *summary, const char *of, bool is_before, const char *text,
                            int status) {
  summary->scripts =
      run_grow(summary->scripts, summary->scripts_count + 1, sizeof *summary->scripts);
  summary->scripts[summary->scripts_count++] = (run_script_end){of, text, is_before, status};
}

void run_summary_add_file(run_summary *summary, const char *path) {
  run_words_add(&summary->files, path);
}

bool run_summary_add_folder(run_summary *summary, const char *path) {
  const bool has_files = run_folder_names(path).count > 0;
  if (has_files)
    run_words_add(&summary->files, run_text("%s/", path));
  else
    rmdir(path);
  return has_files;
}

void run_summary_add_problem(run_summary *summary, const char *format, ...) {
  char *text = NULL;
  va_list arguments;
  va_start(arguments, format);
  const int bytes = vasprintf(&text, format, arguments);
  va_end(arguments);
  if (bytes >= 0) run_words_add(&summary->problems, text);
}

void run_summary_print(const run_summary *summary) {
  const run_child_end *const end = &summary->end;
  const char *const command = run_words_quoted(summary->words);
  if (summary->progress == RUN_PROGRESS_NOT_RUN)
    say("prof run: %s%s: it was not run: %s", run_output_whose(), command, summary->why_not);
  else
    say("prof run: %s%s: status %d, %.3f s", run_output_whose(), command, end->status,
        end->seconds);
  for (size_t i = 0; i < summary->scripts_count; i++) {
    const run_script_end *const script = &summary->scripts[i];
    say("  %s-script of %s, status %d: %s", script->is_before ? "pre" : "post", script->of,
        script->status, script->text);
  }
  for (size_t i = 0; i < summary->files.count; i++) say("  %s", summary->files.items[i]);
}

void run_summary_print_leftovers(const run_summary *summary) {
  const run_child_end *const end = &summary->end;
  for (size_t i = 0; i < end->left.count; i++)
    say("  %sstill runs, and is not waited for: %s", run_output_whose(), end->left.items[i]);
}
