/* See text.h. */
#include "text.h"

#define PY prof_i_python_now

enum { BYTES_MAX = 16384 };

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
