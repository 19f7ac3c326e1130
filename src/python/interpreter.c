/* Finds the interpreter's functions by dlsym(), reads its strings, and calls Python's side of prof.
   Keeps how many frames of its stack a scope records. Exports an Arrow stream to Python. */
#define _GNU_SOURCE
#include "internal.h"

#include <dlfcn.h>
#include <prof/python.h>
#include <stdlib.h>
#include <string.h>

#include "../export/arrow_abi.h"

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

bool prof_i_py_is_instance(prof_i_py *object, prof_i_py *type) {
  prof_i_py *const own_type = PY.PyObject_Type(object);
  const bool is = own_type == type || (own_type && PY.PyType_IsSubtype(own_type, type));
  prof_i_py_drop(own_type);
  return is;
}

static prof_i_py *query_once(prof_i_py *callable, prof_i_py *object) {
  prof_i_py *const arguments = PY.PyTuple_New(1);
  if (!arguments) return NULL;
  PY.Py_IncRef(object);
  PY.PyTuple_SetItem(arguments, 0, object);
  prof_i_py *const answer = PY.PyObject_CallObject(callable, arguments);
  PY.Py_DecRef(arguments);
  return answer;
}

prof_i_py *prof_i_py_query(prof_i_py *callable, prof_i_py *object) {
  prof_i_py *type, *error, *traceback, *answer = query_once(callable, object);
  if (answer || !PY.PyErr_ExceptionMatches(PY.given.exception)) return answer;
  PY.PyErr_Fetch(&type, &error, &traceback);
  if ((answer = query_once(callable, object)) != NULL) {
    PY.Py_DecRef(answer);
    PY.PyErr_Restore(type, error, traceback);
    return NULL;
  }
  prof_i_py_drop(type);
  prof_i_py_drop(error);
  prof_i_py_drop(traceback);
  if (PY.PyErr_ExceptionMatches(PY.given.exception)) PY.PyErr_Clear();
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

/* ---- stacks of scopes ---- */

static struct {
  int wanted_frames; /* while functions are not traced */
  bool are_functions_traced;
} stack_settings;

static void set_frames(void) {
  PY.stack_frames = stack_settings.are_functions_traced ? 0 : stack_settings.wanted_frames;
}

void prof_i_python_set_frames(int frames) {
  stack_settings.wanted_frames = frames;
  set_frames();
}

void prof_i_python_set_traced(bool are_traced) {
  stack_settings.are_functions_traced = are_traced;
  set_frames();
}

/* ---- an Arrow stream as a PyCapsule, for __arrow_c_stream__() ---- */

/* https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html
   Works without the initialization of scope.c, so it finds its two functions by itself. */

static const char capsule_name[] = "arrow_array_stream";

typedef prof_i_py *capsule_create(void *pointer, const char *name, void (*end)(prof_i_py *));
typedef void *capsule_pointer(prof_i_py *capsule, const char *name);

static capsule_create *capsule_find_create(void) {
  void *const found = dlsym(RTLD_DEFAULT, "PyCapsule_New");
  capsule_create *create = NULL;
  memcpy(&create, &found, sizeof found);
  return create;
}

static capsule_pointer *capsule_find_pointer(void) {
  void *const found = dlsym(RTLD_DEFAULT, "PyCapsule_GetPointer");
  capsule_pointer *get = NULL;
  memcpy(&get, &found, sizeof found);
  return get;
}

static void stream_destroy(struct ArrowArrayStream *stream) {
  if (stream->release) stream->release(stream);
  free(stream);
}

/* A consumer that moved the stream has set `release` to NULL. The struct must still be freed. */
static void end_capsule(prof_i_py *capsule) {
  capsule_pointer *const get = capsule_find_pointer();
  struct ArrowArrayStream *const stream = get ? get(capsule, capsule_name) : NULL;
  if (stream) stream_destroy(stream);
}

void *prof_i_python_capsule_1(struct ArrowArrayStream *stream) {
  capsule_create *const create = capsule_find_create();
  struct ArrowArrayStream *const moved = malloc(sizeof *moved);
  prof_i_py *capsule = NULL;
  if (moved) {
    *moved = *stream;
    if (create && capsule_find_pointer()) capsule = create(moved, capsule_name, end_capsule);
    if (!capsule) stream_destroy(moved);
  } else {
    stream->release(stream);
  }
  stream->release = NULL;
  return capsule;
}
