/* See text.h. */
#define _GNU_SOURCE
#include "text.h"

#include <stdlib.h>
#include <string.h>

#include "library.h"

enum { MANGLED_MAX = 4096 };

typedef char *(*demangler)(const char *mangled, char *to, size_t *room, int *status);

static demangler demangler_find(void) {
  static void *found; /* relaxed: every thread finds the same library */
  static const char *const libraries[] = {"libstdc++.so.6", "libc++abi.so.1"};
  demangler function;
  void *symbol = __atomic_load_n(&found, __ATOMIC_RELAXED);
  for (size_t i = 0; i < sizeof libraries / sizeof *libraries && !symbol; i++) {
    const char *why;
    void *const library = prof_i_library_open(libraries[i], 1, &why);
    if (library) symbol = prof_i_library_find(library, "__cxa_demangle");
  }
  __atomic_store_n(&found, symbol, __ATOMIC_RELAXED);
  *(void **)&function = symbol;
  return function;
}

char *prof_i_demangle(const char *text, size_t bytes) {
  const demangler demangle = bytes > 2 && bytes <= MANGLED_MAX && text[0] == '_' && text[1] == 'Z'
                                 ? demangler_find()
                                 : NULL;
  char *const mangled = demangle ? strndup(text, bytes) : NULL;
  int status = -1;
  char *const result = mangled ? demangle(mangled, NULL, NULL, &status) : NULL;
  free(mangled);
  return result;
}
