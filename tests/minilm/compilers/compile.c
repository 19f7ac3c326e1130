/* usage: compile LIBRARY nvrtc|hiprtc OPTION kernels.cu by a real compiler, as the engine calls it:
   no device is needed. OPTION: for what. Says what came of it; fails unless that has each kernel.
   SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/parts.h"

#define NVRTC_SYMBOL(name, arguments, cuda, hip) {#cuda, offsetof(gpu_compiler, name)},
#define HIPRTC_SYMBOL(name, arguments, cuda, hip) {#hip, offsetof(gpu_compiler, name)},
#define KERNEL_NAME(name) #name,

static const gpu_symbol nvrtc[] = {GPU_COMPILER(NVRTC_SYMBOL)},
                        hiprtc[] = {GPU_COMPILER(HIPRTC_SYMBOL)};
static const gpu_symbol binary[] = {{"nvrtcGetCUBINSize", offsetof(gpu_compiler, code_bytes)},
                                    {"nvrtcGetCUBIN", offsetof(gpu_compiler, code)}};
static const char *const kernels[] = {GPU_KERNELS(KERNEL_NAME)};

static int fail(const char *what) {
  printf("failed: %s\n", what);
  return 1;
}

static int look_at(const char *code, size_t bytes) {
  char what[64];
  for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
    if (memmem(code, bytes, kernels[i], strlen(kernels[i])) == NULL) return fail(kernels[i]);
  const int is_elf = bytes > 4 && memcmp(code, "\177ELF", 4) == 0;
  const char *const target = memmem(code, bytes, ".target ", 8);
  snprintf(what, sizeof what, "%.14s", is_elf || target == NULL ? "" : target);
  printf("%zu bytes of %s %s\n", bytes, is_elf ? "ELF" : target != NULL ? "PTX" : "code", what);
  return 0;
}

int main(int argc, char **argv) {
  gpu_compiler compiler;
  failure why;
  char *code = NULL;
  size_t bytes = 0;
  if (argc != 4) return fail("usage: compile LIBRARY nvrtc|hiprtc OPTION");
  const int is_nvrtc = strcmp(argv[2], "nvrtc") == 0;
  void *const library = dlopen(argv[1], RTLD_NOW);
  if (library == NULL) return fail(dlerror());
  if (gpu_find(library, argv[1], is_nvrtc ? nvrtc : hiprtc, sizeof nvrtc / sizeof *nvrtc, &compiler,
               &why) != 0)
    return fail(why.text);
  if (strstr(argv[3], "=sm_") != NULL &&
      gpu_find(library, argv[1], binary, 2, &compiler, &why) != 0)
    return fail(why.text);
  if (gpu_compile(&compiler, argv[3], &code, &bytes, &why) != 0) return fail(why.text);
  const int status = look_at(code, bytes);
  free(code);
  return status;
}
