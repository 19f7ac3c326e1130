/* See internal.h. */
#define _GNU_SOURCE
#include "internal.h"

#include <prof/profiler.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../prof/commands.h"
#include "output.h"
#include "workload_name.h"

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
} opencl_layers[] = {{"OPENCL_LAYERS", "libprof_opencl.so", true},
                     {"CUDA_INJECTION64_PATH", "libprof_cuda.so", false},
                     {"ROCP_TOOL_LIBRARIES", "libprof_hip.so", true}};

static void add_layer(run_tool *tool, size_t which, const char *path) {
  const char *const name = opencl_layers[which].variable, *const old = getenv(name);
  if (!old || !*old)
    run_variable_set(&tool->variables, name, path);
  else if (opencl_layers[which].is_list)
    run_variable_set(&tool->variables, name, run_text("%s:%s", path, old));
  else if (strcmp(old, path) != 0)
    run_fail(
        "--devices: %s is '%s' already, and holds one library; unset it, or leave out "
        "--devices",
        name, old);
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
  for (size_t i = 0; i < sizeof opencl_layers / sizeof *opencl_layers; i++) {
    const char *const path = library_path(opencl_layers[i].library);
    if (!path) continue;
    add_layer(tool, i, path);
    count++;
  }
  if (count == 0)
    run_fail(
        "--devices needs libprof_opencl.so, libprof_cuda.so or libprof_hip.so beside "
        "libprof.so, and none is in %s",
        library_place());
  run_variable_set(&tool->variables, "PROF_DEVICES", "records");
}

void run_record_prepare(run_tool *tool, const run_request *request, const char *folder) {
  const char *const name = run_program_name(run_workload_name(&request->workload));
  const char *const stem = run_output_escaped(run_text("%s/%s", folder, name));
  add_devices(tool, request);
  if (request->python) return;
  run_variable_set(&tool->variables, "PROF_LEVEL", run_text("%u", request->level));
  run_variable_set(&tool->variables, "PROF_JOIN", "1"); /* the program may start prof itself */
  run_variable_set(&tool->variables, "PROF_OUTPUT", run_text("%s.%%p.prof", stem));
  if (request->has_memory) add_memory(tool);
}
