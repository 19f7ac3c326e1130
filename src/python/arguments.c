/* Converts a program's named arguments for C. The program's own code runs during this: __str__() of
   a value, methods of a sequence, signal handlers. Under the GIL. */
#include "internal.h"

#define PY prof_i_python_now

bool prof_i_py_is_instance(prof_i_py *object, prof_i_py *type) {
  prof_i_py *const own_type = PY.PyObject_Type(object);
  const bool is = own_type == type || (own_type && PY.PyType_IsSubtype(own_type, type));
  prof_i_py_drop(own_type);
  return is;
}

bool prof_i_py_is_string(prof_i_py *object, const char *function, const char *parameter) {
  if (prof_i_py_is_instance(object, PY.given.string)) return true;
  PY.PyErr_Format(PY.given.type_error, "%s() %s must be a str, not %.200R", function, parameter,
                  object);
  return false;
}

bool prof_i_py_is_word(prof_i_py *keyword, const char *word) {
  return PY.PyUnicode_CompareWithASCIIString(keyword, word) == 0;
}

/* ---- questions ---- */

static bool make_string(prof_i_py *object, ptrdiff_t at, prof_i_py_result *to) {
  (void)at;
  return (to->object = PY.PyObject_Str(object)) != NULL;
}

bool prof_i_py_get_size(prof_i_py *object, ptrdiff_t at, prof_i_py_result *to) {
  (void)at;
  return (to->number = PY.PySequence_Size(object)) >= 0;
}

bool prof_i_py_get_item(prof_i_py *object, ptrdiff_t at, prof_i_py_result *to) {
  return (to->object = PY.PySequence_GetItem(object, at)) != NULL;
}

bool prof_i_py_get_number(prof_i_py *object, ptrdiff_t at, prof_i_py_result *to) {
  int overflow = 0;
  prof_i_py *const item = PY.PySequence_GetItem(object, at);
  if (!item) return false;
  to->number = PY.PyLong_AsLongLongAndOverflow(item, &overflow);
  prof_i_py_drop(item);
  return to->number != -1 || !prof_i_py_is_interrupted();
}

prof_i_py_result prof_i_py_call(prof_i_py_getter *question, prof_i_py *object, ptrdiff_t at) {
  prof_i_py *type, *error, *traceback;
  prof_i_py_result found = {NULL, 0}, again = {NULL, 0};
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

/* str(value), a new reference; or NULL, as prof_i_py_call() says. */
static prof_i_py *new_string_of(prof_i_py *value) {
  if (!prof_i_py_is_instance(value, PY.given.string))
    return prof_i_py_call(make_string, value, 0).object;
  PY.Py_IncRef(value);
  return value;
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
