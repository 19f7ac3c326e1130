/* See internal.h. */
#include "internal.h"

#include <string.h>

#include "check.h"

/* What the tools start, by the first 15 bytes of its name, as the kernel has it. */
static const struct {
  const char *program, *helper;
  bool is_child; /* of the tool's own process: the workload may have such programs, too */
} tool_helpers[] = {
    {"heaptrack", "heaptrack_inter", false},
    {"heaptrack", "basename", true},
    {"heaptrack", "dirname", true},
    {"heaptrack", "gzip", true},
    {"heaptrack", "hostname", true},
    {"heaptrack", "mkdir", true},
    {"heaptrack", "mkfifo", true},
    {"heaptrack", "readlink", true},
    {"heaptrack", "rm", true},
    {"heaptrack", "sed", true},
    {"heaptrack", "uname", true},
    {"heaptrack", "zstd", true},
    {"ncu", "TreeLauncherSub", false},
    {"ncu", "TreeLauncherTar", false},
    {"ncu", "nv-system-info-", false},
    {"nsys", "CudaGpuInfoDump", false},
    {"nsys", "QdstrmImporter", false},
    {"nsys", "launcher", true},
    {"nsys", "nsys-launcher", false},
    {"nsys", "nsys-tee", false},
    {"nsys", "nvgpucs", false},
    {"perf", "perf-exec", false},
    {"rocprof", "rocprofv3", false},
    {"valgrind", "memcheck-amd64-", false},
    {"valgrind", "memcheck-arm64-", false},
    {"valgrind", "valgrind.bin", false},
};

static bool process_is_started_by(const char *program, const run_process *member) {
  for (size_t i = 0; i < sizeof tool_helpers / sizeof *tool_helpers; i++)
    if (strcmp(program, tool_helpers[i].program) == 0 &&
        strcmp(member->name, tool_helpers[i].helper) == 0 &&
        (!tool_helpers[i].is_child || strcmp(member->parent, program) == 0))
      return true;
  return false;
}

bool run_is_tool_helper(const run_stack *stack, const char *workload, const run_process *member) {
  if (member->is_of_stack) return true;
  for (size_t i = 0; i < stack->count; i++) {
    const char *const program = run_tool_program(&stack->tools[i]);
    if (*program && strncmp(program, member->name, RUN_COMM_BYTES - 1) == 0) return true;
    if (process_is_started_by(program, member) &&
        strncmp(workload, member->name, RUN_COMM_BYTES - 1) != 0)
      return true;
  }
  return false;
}
