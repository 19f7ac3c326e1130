/* See interpreter.h. */
#define _GNU_SOURCE
#include "interpreter.h"

#include <dlfcn.h>
#include <string.h>

prof_i_python prof_i_python_now;

const char *prof_i_python_find(void) {
#define PROF_I_PYTHON_FIND_FIELD(result, name, parameters) \
  do {                                                     \
    void *const found = dlsym(RTLD_DEFAULT, #name);        \
    if (!found) return #name;                              \
    memcpy(&prof_i_python_now.name, &found, sizeof found); \
  } while (0);
  PROF_I_PYTHON_LIST(PROF_I_PYTHON_FIND_FIELD)
#undef PROF_I_PYTHON_FIND_FIELD
  return NULL;
}
