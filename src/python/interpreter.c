/* Finds the interpreter's functions by dlsym(), and reads its strings. */
#define _GNU_SOURCE
#include "interpreter.h"

#include <dlfcn.h>
#include <string.h>

#define PY prof_i_python_now

enum { BYTES_MAX = 16384 };

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

prof_i_py_text prof_i_py_text_of(prof_i_py *string) {
  prof_i_py_text t = {"", 0, NULL};
  ptrdiff_t bytes = 0;
  const char *data = PY.PyUnicode_AsUTF8AndSize(string, &bytes);
  if (!data) {
    PY.PyErr_Clear();
    t.holder = PY.PyUnicode_AsEncodedString(string, "utf-8", "surrogatepass");
    char *encoded = NULL;
    if (t.holder && PY.PyBytes_AsStringAndSize(t.holder, &encoded, &bytes) == 0)
      data = encoded;
    else
      PY.PyErr_Clear();
  }
  if (!data) return t;
  t.data = data;
  t.bytes = bytes < BYTES_MAX ? (uint32_t)bytes : BYTES_MAX;
  return t;
}
