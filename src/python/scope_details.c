/* The slow begin of a Python scope, in which everything is copied: its name, arguments, shapes of
   inputs and stack. Under the GIL. */
#define _GNU_SOURCE
#include <prof/profiler.h>
#include <prof/trace.h>
#include <stdio.h>
#include <string.h>

#include "../base/port.h"
#include "../base/process.h"
#include "internal.h"

#define PY prof_i_python_now

bool prof_i_py_is_string(prof_i_py *object, const char *function, const char *parameter) {
  if (prof_i_py_is_instance(object, PY.given.string)) return true;
  char what[64];
  snprintf(what, sizeof what, "%s() %s must be a str", function, parameter);
  prof_i_py_refuse(PY.given.type_error, object, what);
  return false;
}

bool prof_i_py_is_word(prof_i_py *keyword, const char *word) {
  return PY.PyUnicode_CompareWithASCIIString(keyword, word) == 0;
}

/* ---- questions ---- */

/* The result of a query of the program's code. */
typedef struct py_result {
  prof_i_py *object; /* own reference, or NULL */
  int64_t number;
} py_result;
/* False: an error is pending. */
typedef bool py_getter(prof_i_py *object, ptrdiff_t at, py_result *to);

static bool make_string(prof_i_py *object, ptrdiff_t at, py_result *to) {
  (void)at;
  return (to->object = PY.PyObject_Str(object)) != NULL;
}

static bool make_tensor_text(prof_i_py *object, ptrdiff_t at, py_result *to) {
  (void)at;
  return (to->object = prof_i_py_new_tensor_text(object)) != NULL;
}

static bool make_tensor_type(prof_i_py *object, ptrdiff_t at, py_result *to) {
  (void)at;
  return (to->object = prof_i_py_new_tensor_type(object)) != NULL;
}

static bool py_get_size(prof_i_py *object, ptrdiff_t at, py_result *to) {
  (void)at;
  return (to->number = PY.PySequence_Size(object)) >= 0;
}

static bool py_get_item(prof_i_py *object, ptrdiff_t at, py_result *to) {
  return (to->object = PY.PySequence_GetItem(object, at)) != NULL;
}

static bool py_get_number(prof_i_py *object, ptrdiff_t at, py_result *to) {
  int overflow = 0;
  prof_i_py *const item = PY.PySequence_GetItem(object, at);
  if (!item) return false;
  to->number = PY.PyLong_AsLongLongAndOverflow(item, &overflow);
  prof_i_py_drop(item);
  return to->number != -1 || !prof_i_py_is_interrupted();
}

/* Queries the program's code. The result is empty if the code failed; the error is cleared. It is
   also empty if the code was interrupted. Then the error stays pending and nothing else is queried,
   because code that runs with a pending error loses it. Signal handlers run inside of the code. A
   second query distinguishes their errors from its own. */
static py_result py_call(py_getter *question, prof_i_py *object, ptrdiff_t at) {
  prof_i_py *type, *error, *traceback;
  py_result found = {NULL, 0}, again = {NULL, 0};
  if (prof_i_py_is_interrupted() || question(object, at, &found) ||
      !PY.PyErr_ExceptionMatches(PY.given.exception))
    return found;
  PY.PyErr_Fetch(&type, &error, &traceback);
  if (question(object, at, &again)) {
    prof_i_py_drop(again.object);
    PY.PyErr_Restore(type, error, traceback);
    return found;
  }
  prof_i_py_drop(type);
  prof_i_py_drop(error);
  prof_i_py_drop(traceback);
  if (PY.PyErr_ExceptionMatches(PY.given.exception)) PY.PyErr_Clear();
  return found;
}

/* ---- arguments ---- */

/* str(value). Of a tensor its type and shape, and the type alone if no shape can be read. A new
   reference; or NULL, as py_call() says. */
static prof_i_py *new_string_of(prof_i_py *value) {
  if (prof_i_py_is_instance(value, PY.given.string)) {
    PY.Py_IncRef(value);
    return value;
  }
  const bool is_tensor = prof_i_py_is_tensor(value);
  if (prof_i_py_is_interrupted()) return NULL;
  const prof_i_py_own_call call = prof_i_py_own_call_begin(value, is_tensor ? NULL : "__str__");
  prof_i_py *string = py_call(is_tensor ? make_tensor_text : make_string, value, 0).object;
  if (is_tensor && !string) string = py_call(make_tensor_type, value, 0).object;
  prof_i_py_own_call_end(call);
  return string;
}

/* False: the number does not fit into an argument. */
static bool read_number_arg(prof_i_py *value, prof_arg *item) {
  int overflow = 0;
  if (prof_i_py_is_instance(value, PY.given.integer)) { /* a bool is one, too */
    item->type = prof_i_py_is_instance(value, PY.given.boolean) ? PROF_ARG_BOOL : PROF_ARG_I64;
    item->value.i64 = PY.PyLong_AsLongLongAndOverflow(value, &overflow);
    return !overflow;
  }
  if (!prof_i_py_is_instance(value, PY.given.real)) return false;
  item->type = PROF_ARG_F64;
  item->value.f64 = PY.PyFloat_AsDouble(value);
  return true;
}

bool prof_i_py_add_pair(prof_i_py *key, prof_i_py *value, prof_arg *item,
                        prof_i_py_references *held) {
  PY.Py_IncRef(held->objects[0] = key); /* a __str__() may drop the owner of both */
  PY.Py_IncRef(held->objects[1] = value);
  const prof_i_py_text name = prof_i_py_text_of(key);
  held->objects[2] = name.holder;
  *item = (prof_arg){.key = name.data};
  if (!read_number_arg(value, item)) {
    prof_i_py *const string = new_string_of(value);
    const prof_i_py_text text =
        string ? prof_i_py_text_of(string) : (prof_i_py_text){"<no text>", 9, NULL};
    *item = (prof_arg){
        .key = name.data, .type = PROF_ARG_STRING, .bytes = text.bytes, .value.text = text.data};
    held->objects[3] = string;
    held->objects[4] = text.holder;
  }
  return !prof_i_py_is_interrupted();
}

void prof_i_py_release(const prof_i_py_references *held) {
  for (size_t i = 0; i < sizeof held->objects / sizeof *held->objects; i++)
    prof_i_py_drop(held->objects[i]);
}

/* ---- the slow begin ---- */

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
   py_call(). */
static uint32_t take_shapes(prof_i_py *sequence, tensor_room *to, prof_arg *items) {
  int64_t count = py_call(py_get_size, sequence, 0).number;
  if (count > PROF_ARGS_MAX) count = PROF_ARGS_MAX;
  for (ptrdiff_t i = 0; i < count; i++) {
    prof_i_py *const one = py_call(py_get_item, sequence, i).object;
    int64_t rank = one ? py_call(py_get_size, one, 0).number - 1 : 0;
    if (rank < 0) rank = 0;
    if (rank > 16) rank = 16;
    for (ptrdiff_t d = 0; d < rank; d++) to->dims[i][d] = py_call(py_get_number, one, d + 1).number;
    const int64_t dtype = one ? py_call(py_get_number, one, 0).number : 0;
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
