/* See record.h. */
#define _GNU_SOURCE
#include "record.h"

#include <dlfcn.h>
#include <prof/profiler.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../prof/commands.h"
#include "name.h"

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
  const char *const stem = run_workload_name(&request->workload);
  run_variable_set(&tool->variables, "PROF_LEVEL", run_text("%u", request->level));
  run_variable_set(&tool->variables, "PROF_OUTPUT", run_text("%s/%s.%%p.prof", folder, stem));
  if (request->has_memory) add_memory(tool);
}

