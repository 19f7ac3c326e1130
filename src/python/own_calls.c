/* Methods of values that prof calls: str() of an argument, float() of a counter's value, repr() of
   a wrong value in an error. The program did not call them. So their calls of the standard library,
   torch and C are not recorded, and neither are PyTorch's operators. Functions of the program are
   recorded with all their calls. A PyTorch tensor is recorded as its type and shape: its values are
   not read. Under the GIL. */
#include <prof/python.h>
#include <stdio.h>
#include <string.h>

#include "../base/port.h"
#include "internal.h"

#define PY prof_i_python_now

static struct {
  prof_i_py *torch, *tensor; /* own references: the module, and its class Tensor; NULL: not seen */
  /* switches libprof_torch.so's callbacks off and on in this thread; NULL: there are none */
  void (*silence)(int by);
} own_calls;

void prof_i_python_silence_1(void (*silence)(int by)) { own_calls.silence = silence; }

/* ---- tensors ---- */

static bool is_class(prof_i_py *object) {
  prof_i_py *const type = PY.PyObject_Type(PY.given.string);
  const bool is = prof_i_py_is_instance(object, type);
  PY.Py_DecRef(type);
  return is;
}

/* Called again if the module is replaced, for example by a test. Called without a pending error. */
static PROF_I_COLD void find_tensor_class(prof_i_py *torch) {
  prof_i_py *found = PY.PyObject_GetAttrString(torch, "Tensor");
  if (!found && !PY.PyErr_ExceptionMatches(PY.given.exception)) return; /* interrupted */
  if (!found) PY.PyErr_Clear(); /* torch is being imported */
  if (!found || !is_class(found)) {
    prof_i_py_drop(found);
    return;
  }
  prof_i_py *const torch_before = own_calls.torch, *const tensor_before = own_calls.tensor;
  PY.Py_IncRef(torch);
  own_calls.torch = torch;
  own_calls.tensor = found;
  prof_i_py_drop(torch_before);
  prof_i_py_drop(tensor_before);
}

bool prof_i_py_is_tensor(prof_i_py *value) {
  prof_i_py *const torch = PY.PyDict_GetItemString(PY.given.modules, "torch"); /* borrowed */
  if (!torch) return false;
  if (torch != own_calls.torch) find_tensor_class(torch);
  return torch == own_calls.torch && prof_i_py_is_instance(value, own_calls.tensor);
}

/* Appends to a text. If `text` does not fit, it is left out. */
static size_t text_append(char *to, size_t used, size_t room, const char *text) {
  const int bytes = snprintf(to + used, room - used, "%s", text);
  return bytes > 0 && (size_t)bytes < room - used ? used + (size_t)bytes : used;
}

/* The type's text is "torch.float32". */
prof_i_py *prof_i_py_new_tensor_type(prof_i_py *tensor) {
  prof_i_py *const dtype = PY.PyObject_GetAttrString(tensor, "dtype");
  prof_i_py *const string = dtype ? PY.PyObject_Str(dtype) : NULL;
  prof_i_py *type = NULL;
  if (string) {
    const prof_i_py_text text = prof_i_py_text_of(string);
    const char *const dot = strrchr(text.data, '.');
    type = PY.PyUnicode_FromString(dot ? dot + 1 : text.data);
    prof_i_py_drop(text.holder);
  }
  prof_i_py_drop(dtype);
  prof_i_py_drop(string);
  return type;
}

prof_i_py *prof_i_py_new_tensor_text(prof_i_py *tensor) {
  char text[512];
  prof_i_py *const type = prof_i_py_new_tensor_type(tensor);
  prof_i_py *const shape = type ? PY.PyObject_GetAttrString(tensor, "shape") : NULL;
  const ptrdiff_t rank = shape ? PY.PySequence_Size(shape) : -1;
  size_t used = 0;
  bool is_made = rank >= 0;
  if (is_made) {
    const prof_i_py_text t = prof_i_py_text_of(type);
    used = text_append(text, 0, sizeof text, t.data);
    prof_i_py_drop(t.holder);
    used = text_append(text, used, sizeof text, "[");
  }
  for (ptrdiff_t i = 0; is_made && i < rank; i++) {
    char number[32] = "?"; /* a symbolic size: its text would be computed */
    int overflow = 0;
    prof_i_py *const item = PY.PySequence_GetItem(shape, i);
    is_made = item != NULL;
    if (item && prof_i_py_is_instance(item, PY.given.integer))
      snprintf(number, sizeof number, "%lld", PY.PyLong_AsLongLongAndOverflow(item, &overflow));
    prof_i_py_drop(item);
    if (i > 0) used = text_append(text, used, sizeof text, ", ");
    used = text_append(text, used, sizeof text, number);
  }
  text_append(text, used, sizeof text, "]");
  prof_i_py_drop(type);
  prof_i_py_drop(shape);
  return is_made ? PY.PyUnicode_FromString(text) : NULL;
}

/* ---- methods of other values ---- */

/* Whether the value's method of that name is a function of the program. */
static bool is_method_of_program(prof_i_py *value, const char *method) {
  int overflow = 0;
  prof_i_py *const name = PY.PyUnicode_FromString(method);
  prof_i_py *const pair = name ? PY.PyTuple_New(2) : NULL;
  if (!pair) {
    prof_i_py_drop(name);
    return false;
  }
  PY.Py_IncRef(value);
  PY.PyTuple_SetItem(pair, 0, value);
  PY.PyTuple_SetItem(pair, 1, name);
  prof_i_py *const answer = prof_i_py_query(PY.given.is_of_program, pair);
  PY.Py_DecRef(pair);
  const bool is = answer && PY.PyLong_AsLongLongAndOverflow(answer, &overflow) != 0;
  prof_i_py_drop(answer);
  return is;
}

prof_i_py_own_call prof_i_py_own_call_begin(prof_i_py *value, const char *method) {
  prof_i_py_own_call call = {0};
  call.is_marked = prof_i_python_functions_begin_own(&call.frame_around);
  if (prof_i_py_is_interrupted() || !own_calls.silence) return call;
  call.is_silent = !method || !is_method_of_program(value, method);
  if (call.is_silent) own_calls.silence(1);
  return call;
}

void prof_i_py_own_call_end(prof_i_py_own_call call) {
  if (call.is_silent) own_calls.silence(-1);
  if (call.is_marked) prof_i_python_functions_end_own(call.frame_around);
}

void prof_i_py_refuse(prof_i_py *error, prof_i_py *value, const char *what) {
  const prof_i_py_own_call call = prof_i_py_own_call_begin(value, "__repr__");
  if (!prof_i_py_is_interrupted()) PY.PyErr_Format(error, "%s, not %.200R", what, value);
  prof_i_py_own_call_end(call);
}
