/* See library.h. The static library goes without: in a program that is linked without shared ones dlopen() would be warned of. */
#define _GNU_SOURCE
#include "library.h"

#include <stddef.h>

#ifdef PROF_OPEN_LIBRARIES

#include <dlfcn.h>

bool prof_i_library_can_open(void) { return true; }

void *prof_i_library_open(const char *name, int is_there, const char **why_out) {
  void *const library = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE | (is_there ? RTLD_NOLOAD : 0));
  const char *const why = library ? NULL : dlerror();
  *why_out = why ? why : "it is not loaded";
  return library;
}

void *prof_i_library_find(void *library, const char *symbol) { return dlsym(library, symbol); }

#else

bool prof_i_library_can_open(void) { return false; }

void *prof_i_library_open(const char *name, int is_there, const char **why_out) {
  (void)name;
  (void)is_there;
  *why_out = "libprof.a opens no libraries; link libprof.so, or give a table to prof_backend_add()";
  return NULL;
}

void *prof_i_library_find(void *library, const char *symbol) {
  (void)library;
  (void)symbol;
  return NULL;
}

#endif
