/* The slow begin of a Python scope, in which everything is copied: its name, arguments, shapes of
   inputs and stack. Under the GIL. */
#define _GNU_SOURCE
#include <prof/profiler.h>
#include <prof/trace.h>
#include <stdio.h>
#include <string.h>

#include "../base/port.h"
#include "../base/this_thread.h"
#include "internal.h"

#define PY prof_i_python_now

/* torch.profiler's category of what record_function() makes */
static const char annotation[] = "user_annotation";

static struct {
  uint32_t bytes;
  char path[1024];
} package; /* its folder, with the slash; no bytes: unknown, and its frames are shown */

prof_i_py_text prof_i_py_category_text(prof_i_py *category) {
  return category ? prof_i_py_text_of(category)
                  : (prof_i_py_text){annotation, sizeof annotation - 1, NULL};
}

/* ---- the stack ---- */

enum { STACK_ROOM = 8192 };

/* Appends a frame at `used`, if there is room for all of it. */
static size_t text_put_frame(char *to, size_t used, prof_i_py *frame) {
  prof_i_py *const code = PY.PyFrame_GetCode(frame);
  prof_i_py *const file = code ? PY.PyObject_GetAttrString(code, "co_filename") : NULL;
  prof_i_py *const function = code ? PY.PyObject_GetAttrString(code, "co_name") : NULL;
  if (file && function) {
    const prof_i_py_text f = prof_i_py_text_of(file), n = prof_i_py_text_of(function);
    const int bytes =
        snprintf(to + used, STACK_ROOM - used, "%s%.*s(%d): %.*s", used ? ";" : "", (int)f.bytes,
                 f.data, PY.PyFrame_GetLineNumber(frame), (int)n.bytes, n.data);
    if (bytes > 0 && (size_t)bytes < STACK_ROOM - used) used += (size_t)bytes;
    prof_i_py_drop(f.holder);
    prof_i_py_drop(n.holder);
  } else {
    PY.PyErr_Clear();
  }
  to[used] = '\0';
  prof_i_py_drop(file);
  prof_i_py_drop(function);
  prof_i_py_drop(code);
  return used;
}

static prof_i_py *leave_frame(prof_i_py *frame) {
  prof_i_py *const outer = PY.PyFrame_GetBack(frame);
  PY.Py_DecRef(frame);
  return outer;
}

/* Whether a frame is of this package. Such frames are between a decorated function and its caller,
   and are left out. */
static bool frame_is_own(prof_i_py *frame) {
  prof_i_py *const code = PY.PyFrame_GetCode(frame);
  prof_i_py *const file = code ? PY.PyObject_GetAttrString(code, "co_filename") : NULL;
  const prof_i_py_text f = file ? prof_i_py_text_of(file) : (prof_i_py_text){"", 0, NULL};
  const bool is_here =
      package.bytes && f.bytes > package.bytes && memcmp(f.data, package.path, package.bytes) == 0;
  if (!file) PY.PyErr_Clear();
  prof_i_py_drop(f.holder);
  prof_i_py_drop(file);
  prof_i_py_drop(code);
  return is_here;
}

/* The package's folder has the source of decorate(). */
void prof_i_py_scope_find_package(void) {
  prof_i_py *const code = PY.PyObject_GetAttrString(PY.given.decorate, "__code__");
  prof_i_py *const file = code ? PY.PyObject_GetAttrString(code, "co_filename") : NULL;
  const prof_i_py_text f = file ? prof_i_py_text_of(file) : (prof_i_py_text){"", 0, NULL};
  const char *const slash = f.bytes ? memrchr(f.data, '/', f.bytes) : NULL;
  const size_t bytes = slash ? (size_t)(slash - f.data) + 1 : 0;
  if (bytes && bytes <= sizeof package.path) {
    memcpy(package.path, f.data, bytes);
    package.bytes = (uint32_t)bytes;
  }
  if (!file) PY.PyErr_Clear();
  prof_i_py_drop(f.holder);
  prof_i_py_drop(file);
  prof_i_py_drop(code);
}

static size_t put_stack(char *to, int frames) {
  size_t used = 0;
  prof_i_py *frame = PY.PyEval_GetFrame(); /* borrowed */
  to[0] = '\0';
  if (frame) PY.Py_IncRef(frame);
  for (int count = 0; frame && count < frames; frame = leave_frame(frame)) {
    if (frame_is_own(frame)) continue;
    used = text_put_frame(to, used, frame);
    count++;
  }
  prof_i_py_drop(frame);
  return used;
}

/* ---- shapes ---- */

typedef struct tensor_room {
  prof_tensor tensors[PROF_ARGS_MAX];
  int64_t dims[PROF_ARGS_MAX][16];
} tensor_room;

/* Reads a sequence of (prof_dtype, dim, dim, ...). An error may be pending afterwards, as after
   prof_i_py_call(). */
static uint32_t take_shapes(prof_i_py *sequence, tensor_room *to, prof_arg *items) {
  int64_t count = prof_i_py_call(prof_i_py_get_size, sequence, 0).number;
  if (count > PROF_ARGS_MAX) count = PROF_ARGS_MAX;
  for (ptrdiff_t i = 0; i < count; i++) {
    prof_i_py *const one = prof_i_py_call(prof_i_py_get_item, sequence, i).object;
    int64_t rank = one ? prof_i_py_call(prof_i_py_get_size, one, 0).number - 1 : 0;
    if (rank < 0) rank = 0;
    if (rank > 16) rank = 16;
    for (ptrdiff_t d = 0; d < rank; d++)
      to->dims[i][d] = prof_i_py_call(prof_i_py_get_number, one, d + 1).number;
    const int64_t dtype = one ? prof_i_py_call(prof_i_py_get_number, one, 0).number : 0;
    to->tensors[i] = (prof_tensor){to->dims[i], (uint32_t)rank, (uint32_t)dtype};
    items[i] = (prof_arg){.type = PROF_ARG_TENSOR, .value.tensor = &to->tensors[i]};
    prof_i_py_drop(one);
  }
  return count > 0 ? (uint32_t)count : 0;
}

/* A scope that begins in an argument's __str__() records no arguments. Its arguments may have the
   same __str__(), and that would recurse without end. */
uint64_t prof_i_py_scope_begin_copied(const prof_i_py_scope *s, int frames) {
  prof_arg items[PROF_ARGS_MAX];
  prof_i_py_references held[PROF_ARGS_MAX] = {{{NULL}}};
  prof_i_py *key, *value;
  ptrdiff_t at = 0;
  uint32_t count = 0;
  uint64_t start = 0;
  bool is_interrupted = false;
  tensor_room tensors;
  char stack[STACK_ROOM];
  /* arguments without a key come first */
  if (s->shapes) count = take_shapes(s->shapes, &tensors, items);
  if (s->shapes && prof_i_py_is_interrupted()) return 0;
  if (frames && count < PROF_ARGS_MAX) {
    const size_t bytes = put_stack(stack, frames);
    items[count++] = (prof_arg){.key = PROF_STACK_KEY,
                                .type = PROF_ARG_STRING,
                                .bytes = (uint32_t)bytes,
                                .value.text = stack};
  }
  const bool has_args = s->args && !prof_i_this_flags.is_making_text;
  if (has_args) prof_i_this_flags.is_making_text = true;
  while (has_args && !is_interrupted && count < PROF_ARGS_MAX &&
         PY.PyDict_Next(s->args, &at, &key, &value)) {
    is_interrupted = !prof_i_py_add_pair(key, value, &items[count], &held[count]);
    count++;
  }
  if (has_args) prof_i_this_flags.is_making_text = false;
  if (!is_interrupted) {
    const prof_i_py_text name = prof_i_py_text_of(s->name),
                         category = prof_i_py_category_text(s->category);
    static prof_site sites[3] = {{.file = "", .function = ""},
                                 {.file = "", .function = "prof.scope", .level = 1},
                                 {.file = "", .function = "prof.scope", .level = 2}};
    const prof_details details = {.name = name.data,
                                  .category = category.data,
                                  .name_bytes = name.bytes,
                                  .category_bytes = category.bytes,
                                  .flags = PROF_I_BY_CALL,
                                  .device = PROF_HOST,
                                  .args = {.items = items,
                                           .count = count,
                                           .kind = s->shapes ? PROF_ARGS_SHAPES : PROF_ARGS_PAIRS}};
    start = prof_i_begin_details_1(&sites[s->level], &details);
    prof_i_py_drop(name.holder);
    prof_i_py_drop(category.holder);
  }
  for (uint32_t i = 0; i < count; i++) prof_i_py_release(&held[i]);
  return start;
}
