/* See record.h. */
#define _GNU_SOURCE
#include "record.h"

#include <dirent.h>
#include <dlfcn.h>
#include <prof/profiler.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../prof/commands.h"

/* The folder of libprof.so, or NULL. */
static char *library_folder(void) {
  Dl_info info;
  void *address;
  *(const char *(**)(void))&address = prof_version;
  if (!dladdr(address, &info) || !info.dli_fname) return NULL;
  const char *const slash = strrchr(info.dli_fname, '/');
  return slash ? run_text("%.*s", (int)(slash - info.dli_fname), info.dli_fname) : NULL;
}

static void add_memory(run_tool *tool) {
  const char *const folder = library_folder();
  const char *const path = run_text("%s/libprof_memory.so", folder ? folder : ".");
  if (!folder || access(path, R_OK) != 0)
    run_fail("--memory needs libprof_memory.so beside libprof.so, and '%s' is not there", path);
  run_variable_set(&tool->variables, "LD_PRELOAD", path);
  run_variable_set(&tool->variables, "PROF_MEMORY", "1");
}

void run_record_prepare(run_tool *tool, const run_request *request, const char *folder) {
  const char *const first = request->workload.items[0];
  const char *const slash = strrchr(first, '/');
  const char *const name = slash ? slash + 1 : first;
  run_variable_set(&tool->variables, "PROF_LEVEL", run_text("%u", request->level));
  char *const stem = run_text("%s", name);
  for (char *at = stem; *at; at++)
    if (*at == '%') *at = '_';
  run_variable_set(&tool->variables, "PROF_OUTPUT", run_text("%s/%s.%%p.prof", folder, stem));
  if (request->has_memory) add_memory(tool);
}

/* ---- what was recorded ---- */

static bool ends_in(const char *text, const char *ending) {
  const size_t bytes = strlen(text), of = strlen(ending);
  return bytes > of && strcmp(text + bytes - of, ending) == 0;
}

/* Renames the file to NAME.PID.prof, after the name of the process. A wrapper that started the
   program (a shell, timeout) gave the file its first name. Returns the new path, or the old one if
   the file was not renamed. */
static char *named_for_process(char *path, const char *folder, const prof_trace_info *info) {
  char *const process = run_text("%s", info->process_name);
  for (char *at = process; *at; at++)
    if (*at == '/' || (unsigned char)*at < 0x20) *at = '_';
  char *const named = run_text("%s/%s.%u.prof", folder, process, (unsigned)info->pid);
  if (*process == '\0' || *process == '.' || access(named, F_OK) == 0) return path;
  return rename(path, named) == 0 ? named : path;
}

/* Adds the capture, or removes it if it is empty. An unreadable capture stays: the table prints
   what is wrong. */
static void take_capture(char *path, const char *folder, run_words *to) {
  prof_trace *trace = NULL;
  prof_trace_info info = {.size = sizeof info};
  if (prof_trace_open(path, &trace) != PROF_OK) {
    run_words_add(to, path);
    return;
  }
  prof_trace_info_get(trace, &info);
  const bool is_live = info.is_live;
  const bool is_empty = info.event_count + info.open_count == 0;
  if (!is_empty) run_words_add(to, is_live ? path : named_for_process(path, folder, &info));
  else if (!is_live) unlink(path);
  prof_trace_destroy(trace);
}

static int by_name(const void *a, const void *b) {
  return strcmp(*(char *const *)a, *(char *const *)b);
}

void run_record_captures(const char *folder, run_words *to) {
  run_words paths = {0};
  DIR *const all = opendir(folder);
  if (!all) return;
  for (struct dirent *entry; (entry = readdir(all)) != NULL;) {
    if (!ends_in(entry->d_name, ".prof")) continue;
    run_words_add(&paths, run_text("%s/%s", folder, entry->d_name));
  }
  closedir(all);
  for (size_t i = 0; i < paths.count; i++) take_capture(paths.items[i], folder, to);
  if (to->count > 1) qsort(to->items, to->count, sizeof *to->items, by_name);
}

/* Prints the table with stdout redirected to stderr. */
static int table_on_stderr(const run_words *captures) {
  run_words words = {0};
  run_words_add(&words, "table");
  run_words_add_all(&words, captures);
  fflush(stdout);
  const int own = dup(STDOUT_FILENO);
  dup2(STDERR_FILENO, STDOUT_FILENO);
  optind = 1;
  const int status = command_table((int)words.count, words.items);
  fflush(stdout);
  if (own >= 0) {
    dup2(own, STDOUT_FILENO);
    close(own);
  } else {
    close(STDOUT_FILENO);
  }
  return status;
}

void run_record_report(const run_words *captures) {
  if (captures->count == 0) {
    say("prof run: nothing was recorded: no process of the workload uses prof. --memory records "
        "malloc(); a script in Python is recorded by: prof run script.py");
    return;
  }
  (void)table_on_stderr(captures); /* it has printed its errors */
}
