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

static const char *library_place(void) {
  const char *const folder = library_folder();
  return folder ? folder : "a folder that is not known";
}

/* A library beside libprof.so, or NULL. */
static const char *library_path(const char *name) {
  const char *const folder = library_folder();
  const char *const path = run_text("%s/%s", folder ? folder : ".", name);
  return folder && access(path, R_OK) == 0 ? path : NULL;
}

static void add_memory(run_tool *tool) {
  const char *const path = library_path("libprof_memory.so");
  if (!path)
    run_fail("--memory needs libprof_memory.so beside libprof.so, and it is not in %s",
             library_place());
  run_variable_set(&tool->variables, "LD_PRELOAD", path);
  run_variable_set(&tool->variables, "PROF_MEMORY", "1");
}

/* Each is loaded by the vendor's library: by OpenCL's loader, CUDA's driver, rocprofiler-sdk. */
static const struct {
  const char *variable, *library;
  bool is_list;
} layers[] = {{"OPENCL_LAYERS", "libprof_opencl.so", true},
              {"CUDA_INJECTION64_PATH", "libprof_cuda.so", false},
              {"ROCP_TOOL_LIBRARIES", "libprof_hip.so", true}};

static void add_layer(run_tool *tool, size_t which, const char *path) {
  const char *const name = layers[which].variable, *const old = getenv(name);
  if (!old || !*old) run_variable_set(&tool->variables, name, path);
  else if (layers[which].is_list)
    run_variable_set(&tool->variables, name, run_text("%s:%s", path, old));
  else if (strcmp(old, path) != 0)
    run_fail("--devices: %s is '%s' already, and holds one library; unset it, or leave out "
             "--devices", name, old);
}

/* ITT's tasks are scopes. They are recorded unless another tool has its library there. Python's
   package listens by itself. */
static void add_itt(run_tool *tool) {
  static const char name[] = "INTEL_LIBITTNOTIFY64";
  const char *const path = library_path("libprof_itt.so");
  if (path && !getenv(name)) run_variable_set(&tool->variables, name, path);
}

static void add_devices(run_tool *tool, const run_request *request) {
  size_t count = 0;
  if (!request->has_devices) return;
  if (!request->python) add_itt(tool);
  for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
    const char *const path = library_path(layers[i].library);
    if (!path) continue;
    add_layer(tool, i, path);
    count++;
  }
  if (count == 0)
    run_fail("--devices needs libprof_opencl.so, libprof_cuda.so or libprof_hip.so beside "
             "libprof.so, and none is in %s", library_place());
  run_variable_set(&tool->variables, "PROF_DEVICES", "records");
}

void run_record_prepare(run_tool *tool, const run_request *request, const char *folder) {
  const char *const first = request->workload.items[0];
  const char *const slash = strrchr(first, '/');
  const char *const name = slash ? slash + 1 : first;
  add_devices(tool, request);
  if (request->python) return;
  run_variable_set(&tool->variables, "PROF_LEVEL", run_text("%u", request->level));
  run_variable_set(&tool->variables, "PROF_JOIN", "1"); /* the program may start prof itself */
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
  if (ends_in(path, "/samples.prof") || ends_in(path, "/library_trace.prof"))
    return path; /* by prof run itself */
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
static int table_on_stderr(const run_words *captures, const run_words *options) {
  run_words words = {0};
  run_words_add(&words, "table");
  run_words_add_all(&words, options);
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

void run_record_report(const run_words *captures, const run_words *options) {
  if (captures->count == 0) {
    say("prof run: nothing was recorded: no process of the workload uses prof. --memory records "
        "malloc(); a script in Python is recorded by: prof run script.py");
    return;
  }
  (void)table_on_stderr(captures, options); /* it has printed its errors */
}
