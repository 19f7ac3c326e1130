/* See summary.h. */
#define _GNU_SOURCE
#include "summary.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../prof/commands.h"
#include "output.h"
#include "text.h"

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
