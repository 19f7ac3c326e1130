/* See library.h. dlopen() is not asked for by linking: a program that is linked without shared libraries has none, and goes without. */
#define _GNU_SOURCE
#include "library.h"

#include <dlfcn.h>
#include <stddef.h>

#pragma weak dlopen
#pragma weak dlsym
#pragma weak dlerror

void *prof_i_library_open(const char *name, int is_there, const char **why_out) {
  *why_out = "this program was linked without shared libraries, and cannot open any";
  if (!dlopen || !dlsym || !dlerror) return NULL;
  void *const library = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE | (is_there ? RTLD_NOLOAD : 0));
  const char *const why = library ? NULL : dlerror();
  *why_out = why ? why : "it is not loaded";
  return library;
}

void *prof_i_library_find(void *library, const char *symbol) { return dlsym ? dlsym(library, symbol) : NULL; }
