/* See check.h. */
#define _GNU_SOURCE
#include "check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../prof/commands.h"
#include "sampler.h"

static bool is_program(const char *path) {
  struct stat is;
  return stat(path, &is) == 0 && S_ISREG(is.st_mode) && access(path, X_OK) == 0;
}

char *run_program_find(const char *name) {
  if (strchr(name, '/')) return is_program(name) ? run_text("%s", name) : NULL;
  const char *path = getenv("PATH");
  if (!path) path = "/bin:/usr/bin";
  for (;;) {
    const size_t bytes = strcspn(path, ":");
    char *const file = run_text("%.*s/%s", bytes ? (int)bytes : 1, bytes ? path : ".", name);
    if (is_program(file)) return file;
    free(file);
    if (!path[bytes]) return NULL;
    path += bytes + 1;
  }
}

/* The program that a plain cmd begins with, or NULL: a shell finds it. */
static const char *program_of(const run_tool *tool) {
  run_words words = {0};
  if (tool->program) return tool->program;
  if (tool->has_marks || run_needs_shell(tool->cmd)) return NULL;
  run_words_split(&words, tool->cmd);
  return words.count ? words.items[0] : NULL;
}

const char *run_tool_why_not(const run_tool *tool) {
  if (tool->parts & RUN_PART_SAMPLE) return run_sampler_why_not(tool);
  const char *const program = program_of(tool);
  if (strstr(tool->cmd, "run-rocprof") && !run_program_find("rocprofv3") &&
      !run_program_find("rocprof"))
    return "neither rocprofv3 nor rocprof is on PATH: install ROCm: https://rocm.docs.amd.com";
  if (!program || run_program_find(program)) return NULL;
  return run_text("there is no '%s' on PATH%s%s", program, tool->install ? ": " : "",
                  tool->install ? tool->install : "");
}

/* ---- what two tools cannot share ---- */

/* Each variable has one library. The last setting would silently replace the others. */
static const char *const single_variables[] = {"HSA_TOOLS_LIB", "NVTX_INJECTION64_PATH",
                                               "CUDA_INJECTION64_PATH", "INTEL_LIBITTNOTIFY64"};

/* Tools by the first word of their cmd. */
static const struct {
  const char *program, *needs;
} single_uses[] = {
    {"strace", "ptrace(), which traces a process for one tool alone"},
    {"ltrace", "ptrace(), which traces a process for one tool alone"},
    {"gdb", "ptrace(), which traces a process for one tool alone"},
    {"valgrind", "a processor that it emulates; malloc() of the program is its own"},
    {"heaptrack", "malloc() of the program"},
    {"rocprof", "AMD's tracing, which one tool has at a time"},
    {"rocprofv3", "AMD's tracing, which one tool has at a time"},
    {"rtl", "AMD's tracing, which one tool has at a time"},
    {"nsys", "NVIDIA's tracing, which one tool has at a time"},
    {"ncu", "NVIDIA's tracing, which one tool has at a time"},
};

static void check_variables(const run_tool *a, const run_tool *b) {
  for (size_t i = 0; i < sizeof single_variables / sizeof *single_variables; i++) {
    const char *const name = single_variables[i];
    const char *const x = run_variable_get(&a->variables, name);
    const char *const y = run_variable_get(&b->variables, name);
    if (x && y && strcmp(x, y) != 0)
      run_fail("%s and %s both set %s ('%s' and '%s'), which holds one library; leave one tool out",
               a->name, b->name, name, x, y);
  }
}

static const char *use_of(const run_tool *tool) {
  run_words words = {0};
  run_words_split(&words, tool->cmd);
  if (words.count == 0) return NULL;
  const char *const slash = strrchr(words.items[0], '/');
  const bool is_ours = words.count > 1 && strcmp(words.items[1], "run-rocprof") == 0;
  const char *const program = is_ours ? "rocprof" : slash ? slash + 1 : words.items[0];
  for (size_t i = 0; i < sizeof single_uses / sizeof *single_uses; i++)
    if (strcmp(program, single_uses[i].program) == 0) return single_uses[i].needs;
  return NULL;
}

static void check_pair(const run_tool *a, const run_tool *b) {
  check_variables(a, b);
  const char *const x = use_of(a), *const y = use_of(b);
  if (x && y && strcmp(x, y) == 0)
    run_fail("%s and %s both need %s; leave one tool out", a->name, b->name, x);
}

static void check_workload(const char *name) {
  if (run_program_find(name)) return;
  const bool is_path = strchr(name, '/') != NULL;
  if (is_path && access(name, F_OK) == 0) {
    say("prof run: the workload '%s' cannot be executed: it is no program, or its mode forbids it",
        name);
    exit(RUN_CANNOT_EXECUTE);
  }
  say("prof run: the workload '%s' is not %s", name, is_path ? "there" : "on PATH");
  exit(RUN_NOT_FOUND);
}

void run_check(const run_stack *stack, const run_words *workload) {
  for (size_t i = 0; i < stack->count; i++) {
    const char *const why = run_tool_why_not(&stack->tools[i]);
    if (why) run_fail("%s cannot work here: %s", stack->tools[i].name, why);
    for (size_t j = 0; j < i; j++) check_pair(&stack->tools[j], &stack->tools[i]);
  }
  /* the user's text in front may be a program that reads the words as a command */
  if (!stack->encapsulate || !*stack->encapsulate) check_workload(workload->items[0]);
}
