/* See library.h. The static library goes without: in a program that is linked without shared ones
   dlopen() would be warned of. */
#define _GNU_SOURCE
#include "library.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Of what is nowhere the loader says the name that it was given; of what it has found, its place,
   or that of what that needs. */
static bool error_says_not_found(const char *name, const char *text) {
  const size_t bytes = strlen(name);
  return strchr(name, '/') ? access(name, F_OK) != 0
                           : strncmp(text, name, bytes) == 0 && text[bytes] == ':';
}

static prof_i_library_error open_error_text(const char *name, const char *text) {
  prof_i_library_error why = {.is_broken = !error_says_not_found(name, text)};
  char path[sizeof why.text - 50]; /* with what is said of it */
  const bool is_named = strncmp(text, name, strlen(name)) == 0;
  snprintf(why.text, sizeof why.text, "%s%s%s", is_named ? "" : name,
           !why.is_broken ? ""
           : is_named     ? "cannot be loaded: "
                          : " cannot be loaded: ",
           text);
  /* it asks the loader, whose text is gone then */
  if (!prof_i_library_is_unreadable(name, path, sizeof path)) return why;
  why.is_broken = why.is_refused = true;
  snprintf(why.text, sizeof why.text, "%s is there, but may not be read (permission denied)", path);
  return why;
}

void *prof_i_library_try(const char *name, prof_i_library_error *why) {
  const char *text;
  void *const library = prof_i_library_open(name, 0, &text);
  if (library) return library;
  const prof_i_library_error found = open_error_text(name, text);
  if (!why->text[0] || (found.is_broken && !why->is_broken)) *why = found;
  return NULL;
}

#ifdef PROF_OPEN_LIBRARIES

#include <dlfcn.h>

bool prof_i_library_can_open(void) { return true; }

/* Even for loaded libraries only, the loader first opens and reads each file of that name in all
   its folders. So it is not queried if no library of that name is loaded. */
static bool may_be_loaded(const char *name) {
  return strchr(name, '/') || prof_i_library_find_loaded(name, NULL, 0) != 0;
}

void *prof_i_library_open(const char *name, int is_there, const char **why_out) {
  if (is_there && !may_be_loaded(name)) {
    *why_out = "it is not loaded";
    return NULL;
  }
  void *const library =
      dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE | (is_there ? RTLD_NOLOAD : 0));
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
