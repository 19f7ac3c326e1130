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

static bool has_records(const char *path) {
  prof_trace *trace = NULL;
  if (prof_trace_open(path, &trace) != PROF_OK) return true; /* the table says what is wrong */
  prof_trace_info info = {.size = sizeof info};
  prof_trace_info_get(trace, &info);
  prof_trace_destroy(trace);
  return info.event_count + info.open_count > 0;
}

static int by_name(const void *a, const void *b) {
  return strcmp(*(char *const *)a, *(char *const *)b);
}

void run_record_captures(const char *folder, run_words *to) {
  DIR *const all = opendir(folder);
  if (!all) return;
  for (struct dirent *entry; (entry = readdir(all)) != NULL;) {
    if (!ends_in(entry->d_name, ".prof")) continue;
    char *const path = run_text("%s/%s", folder, entry->d_name);
    if (has_records(path)) run_words_add(to, path);
    else unlink(path);
  }
  closedir(all);
  if (to->count > 1) qsort(to->items, to->count, sizeof *to->items, by_name);
}

/* What is printed on stdout comes out on stderr. */
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
  (void)table_on_stderr(captures); /* it says itself what it could not do */
}
