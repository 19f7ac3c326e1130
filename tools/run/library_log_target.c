/* See internal.h. */
#define _GNU_SOURCE
#include "internal.h"

#include <stdlib.h>
#include <string.h>

#include "../prof/commands.h"

static const struct {
  const char *tool, *variable;
  const char *effect; /* NULL: the lines are in the file that the variable names */
} log_targets[] = {
    {"rocblas_trace", "ROCBLAS_LOG_PATH", NULL},
    {"rocblas_trace", "ROCBLAS_LOG_BENCH_PATH", NULL},
    {"rocblas_trace", "ROCBLAS_LOG_PROFILE_PATH", NULL},
    {"hipblaslt_trace", "HIPBLASLT_LOG_FILE", NULL},
    {"hipblaslt_trace", "HIPBLASLT_LOG_LEVEL", "newer hipBLASLt ignores HIPBLASLT_LOG_MASK"},
    {"rccl_trace", "NCCL_DEBUG_FILE", NULL},
    {"nccl_trace", "NCCL_DEBUG_FILE", NULL},
    {"cublas_trace", "CUBLAS_LOGDEST_DBG", NULL},
    {"cublaslt_trace", "CUBLASLT_LOG_FILE", NULL},
    {"cudnn_trace", "CUDNN_LOGDEST_DBG", NULL},
};

/* prof reads both streams, and files in the tool's folder. */
static bool target_is_read(const run_tool *tool, const char *value) {
  if (strcmp(value, "stdout") == 0 || strcmp(value, "stderr") == 0) return true;
  char *const folder = tool->folder ? realpath(tool->folder, NULL) : NULL;
  const bool is_in_it = folder && strncmp(value, folder, strlen(folder)) == 0;
  free(folder);
  return is_in_it;
}

static void check_log_target(const run_tool *tool, const char *trace) {
  for (size_t i = 0; i < sizeof log_targets / sizeof *log_targets; i++) {
    const char *const name = log_targets[i].variable, *const effect = log_targets[i].effect;
    if (strcmp(log_targets[i].tool, trace) != 0) continue;
    const char *value = run_variable_get(&tool->variables, name);
    const char *const before = getenv(name);
    if (!value) value = before;
    if (!value) continue;
    if (!effect && target_is_read(tool, value)) {
      if (before && strcmp(before, value) != 0)
        say("prof run: %s: %s was '%s', and is '%s' in this run, where prof reads the library's "
            "lines",
            trace, name, before, value);
      continue;
    }
    if (effect)
      say("prof run: %s: %s is '%s', and then %s; unset it", trace, name, value, effect);
    else
      say("prof run: %s: %s is '%s', so the library's lines are there, and prof does not read "
          "them; "
          "unset it",
          trace, name, value);
  }
}

void run_library_log_target_check(const run_stack *stack) {
  for (size_t i = 0; i < stack->count; i++) {
    check_log_target(&stack->tools[i], stack->tools[i].name);
    for (size_t t = 0; t < stack->tools[i].traces.count; t++)
      check_log_target(&stack->tools[i], stack->tools[i].traces.items[t]);
  }
}
