/* See modules.h. */
#define _GNU_SOURCE
#include "modules.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "memory.h"

enum { ARGUMENTS = 16, ARGUMENT_BYTES = 16, PATH_BYTES = 64, NAME_BYTES = 256 };

void *module_load(const void *image) {
  char path[PATH_BYTES];
  const module_head *const head = image;
  if (memcmp(head->magic, MODULE_MAGIC, sizeof head->magic) != 0) return NULL;
  const int file = memfd_create("kernels", MFD_CLOEXEC);
  if (file < 0 || write(file, head + 1, head->bytes) != (ssize_t)head->bytes) abort();
  snprintf(path, sizeof path, "/proc/self/fd/%d", file);
  void *const module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!module) fprintf(stderr, "emulated device: %s\n", dlerror());
  close(file);
  return module;
}

void module_unload(void *module) { dlclose(module); }

const module_kernel *module_find(void *module, const char *name) {
  char symbol[NAME_BYTES];
  snprintf(symbol, sizeof symbol, "emulated_kernel_%s", name);
  return dlsym(module, symbol);
}

typedef struct launch {
  const module_kernel *kernel;
  unsigned grid[3], block[3];
  void *places[ARGUMENTS];
  _Alignas(ARGUMENT_BYTES) char arguments[ARGUMENTS][ARGUMENT_BYTES];
} launch;

void *module_launch_to_come(const module_kernel *kernel, const unsigned grid[3],
                            const unsigned block[3], void *const *arguments) {
  launch *const l = aligned_alloc(ARGUMENT_BYTES, sizeof *l);
  if (!l || kernel->count > ARGUMENTS) abort();
  l->kernel = kernel;
  memcpy(l->grid, grid, sizeof l->grid);
  memcpy(l->block, block, sizeof l->block);
  for (size_t i = 0; i < kernel->count; i++) {
    if (kernel->sizes[i] > ARGUMENT_BYTES) abort();
    l->places[i] = memcpy(l->arguments[i], arguments[i], kernel->sizes[i]);
  }
  return l;
}

void module_launch(void *to_come) {
  const launch *const l = to_come;
  l->kernel->run(l->places, l->grid, l->block, memory_of_argument);
  free(to_come);
}
