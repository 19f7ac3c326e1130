/* See library.h. SPDX-License-Identifier: MIT */
#include "library.h"

#include <dlfcn.h>
#include <string.h>

void *gpu_open_first(const char *const *names, const char **name_out) {
  void *library = NULL;
  for (; *names != NULL && library == NULL; names++) {
    *name_out = *names;
    library = dlopen(*names, RTLD_NOW | RTLD_LOCAL);
  }
  return library;
}

int gpu_find(void *library, const char *library_name, const gpu_symbol *symbols, size_t count,
             void *functions_out, failure *why) {
  for (size_t i = 0; i < count; i++) {
    void *const found = dlsym(library, symbols[i].name);
    if (found == NULL)
      return failure_set(why, "%s has no %s: it is too old, or too new", library_name,
                         symbols[i].name);
    memcpy((char *)functions_out + symbols[i].place, &found, sizeof found);
  }
  return 0;
}
