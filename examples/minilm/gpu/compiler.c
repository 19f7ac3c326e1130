/* See compiler.h. SPDX-License-Identifier: MIT */
#include "compiler.h"

#include <stdlib.h>

#include "gpu/kernels_text.h" /* kernels.cu, by CMakeLists.txt */

enum { LOG_SHOWN = 300 };

static int refuse_kernels(const gpu_compiler *compiler, void *program, int error, failure *why) {
  size_t bytes = 0;
  compiler->log_bytes(program, &bytes);
  char *log = calloc(1, bytes + 1);
  if (log == NULL) return failure_set(why, "no memory for what the compiler says");
  compiler->log(program, log);
  failure_set(why, "the kernels do not compile (error %d): %.*s", error, LOG_SHOWN, log);
  free(log);
  return -1;
}

static int take_code(const gpu_compiler *compiler, void *program, char **code_out,
                     size_t *bytes_out, failure *why) {
  const int error = compiler->code_bytes(program, bytes_out);
  if (error != 0)
    return failure_set(why, "the compiler does not give the kernels out: error %d", error);
  char *code = malloc(*bytes_out);
  if (code == NULL || compiler->code(program, code) != 0) {
    free(code);
    return failure_set(why, "no memory for %zu bytes of kernels", *bytes_out);
  }
  *code_out = code;
  return 0;
}

int gpu_compile(const gpu_compiler *compiler, const char *option, char **code_out,
                size_t *bytes_out, failure *why) {
  void *program = NULL;
  int error = compiler->create(&program, kernels_text, "kernels.cu", 0, NULL, NULL);
  if (error != 0) return failure_set(why, "the compiler cannot begin: error %d", error);
  error = compiler->compile(program, option != NULL, &option);
  const int status = error == 0 ? take_code(compiler, program, code_out, bytes_out, why)
                                : refuse_kernels(compiler, program, error, why);
  compiler->destroy(&program);
  return status;
}
