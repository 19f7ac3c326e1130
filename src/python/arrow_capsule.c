/* Exports an Arrow stream as a PyCapsule, for __arrow_c_stream__():
   https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html
   Works without the initialization of scope.c. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <prof/python.h>
#include <stdlib.h>
#include <string.h>

#include "../export/arrow_abi.h"
#include "interpreter.h"

static const char capsule_name[] = "arrow_array_stream";

typedef prof_i_py *capsule_create(void *pointer, const char *name, void (*end)(prof_i_py *));
typedef void *capsule_pointer(prof_i_py *capsule, const char *name);

static capsule_create *find_create(void) {
  void *const found = dlsym(RTLD_DEFAULT, "PyCapsule_New");
  capsule_create *create = NULL;
  memcpy(&create, &found, sizeof found);
  return create;
}

static capsule_pointer *find_pointer(void) {
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
  capsule_pointer *const get = find_pointer();
  struct ArrowArrayStream *const stream = get ? get(capsule, capsule_name) : NULL;
  if (stream) stream_destroy(stream);
}

void *prof_i_python_capsule_1(struct ArrowArrayStream *stream) {
  capsule_create *const create = find_create();
  struct ArrowArrayStream *const moved = malloc(sizeof *moved);
  prof_i_py *capsule = NULL;
  if (moved) {
    *moved = *stream;
    if (create && find_pointer()) capsule = create(moved, capsule_name, end_capsule);
    if (!capsule) stream_destroy(moved);
  } else {
    stream->release(stream);
  }
  stream->release = NULL;
  return capsule;
}
