/* What files of this folder share, grouped by the file that defines it. Under the GIL. */
#ifndef PROF_PYTHON_INTERNAL_H
#define PROF_PYTHON_INTERNAL_H

#include <prof/args.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- interpreter.c ---- */

/* The C interface of the Python interpreter in this process. It needs no Python header, and links
   nothing. So one libprof.so serves every CPython from 3.9 on, and processes without Python. Only
   functions that all versions export are used. No object's memory is read. */

/* PyObject: opaque. */
typedef struct prof_i_py prof_i_py;

/* PyMethodDef, PyType_Slot and PyType_Spec of the stable interface. */
typedef struct prof_i_py_method {
  const char *name;
  void *call;
  int flags; /* METH_*: PROF_I_PY_* */
  const char *doc;
} prof_i_py_method;

/* PyMemberDef. */
typedef struct prof_i_py_member {
  const char *name;
  int type;
  ptrdiff_t offset;
  int flags;
  const char *doc;
} prof_i_py_member;

typedef struct prof_i_py_slot {
  int slot; /* PROF_I_PY_SLOT_* */
  void *value;
} prof_i_py_slot;

typedef struct prof_i_py_spec {
  const char *name;
  int basic_size, item_size;
  unsigned flags;
  prof_i_py_slot *slots;
} prof_i_py_spec;

enum {
  PROF_I_PY_KEYWORDS = 0x02,
  PROF_I_PY_NO_ARGUMENTS = 0x04,
  PROF_I_PY_ONE_ARGUMENT = 0x08,
  PROF_I_PY_FAST = 0x80, /* an array and its length */
  PROF_I_PY_DEFAULT_FLAGS = 1 << 18,
  PROF_I_PY_HAS_VECTORCALL = 1 << 11,
  PROF_I_PY_MEMBER_SIZE = 19, /* a ptrdiff_t */
  PROF_I_PY_MEMBER_READ_ONLY = 1,
  PROF_I_PY_SLOT_CALL = 50, /* typeslots.h; they never change */
  PROF_I_PY_SLOT_DEALLOC = 52,
  PROF_I_PY_SLOT_GET = 54, /* of a descriptor */
  PROF_I_PY_SLOT_DOC = 56,
  PROF_I_PY_SLOT_METHODS = 64,
  PROF_I_PY_SLOT_NEW = 65,
  PROF_I_PY_SLOT_MEMBERS = 72
};

/* X(result, name, parameters). References are as Python's documentation says. */
#define PROF_I_PYTHON_LIST(X)                                                                   \
  X(void, Py_IncRef, (prof_i_py * object))                                                      \
  X(void, Py_DecRef, (prof_i_py * object))                                                      \
  X(prof_i_py *, PyType_FromSpec, (prof_i_py_spec * spec))                                      \
  X(void *, PyObject_Malloc, (size_t bytes))                                                    \
  X(void, PyObject_Free, (void *memory))                                                        \
  X(prof_i_py *, PyObject_Init, (void *memory, prof_i_py *type))                                \
  X(prof_i_py *, PyObject_Str, (prof_i_py * object))                                            \
  X(prof_i_py *, PyObject_Type, (prof_i_py * object))                                           \
  X(int, PyType_IsSubtype, (prof_i_py * type, prof_i_py * of))                                  \
  X(prof_i_py *, PyVectorcall_Call,                                                             \
    (prof_i_py * callable, prof_i_py * arguments, prof_i_py * keywords))                        \
  X(int, PyObject_SetAttrString, (prof_i_py * object, const char *name, prof_i_py *value))      \
  X(prof_i_py *, PyObject_CallObject, (prof_i_py * callable, prof_i_py * arguments))            \
  X(prof_i_py *, PyCFunction_NewEx,                                                             \
    (prof_i_py_method * method, prof_i_py * self, prof_i_py * module))                          \
  X(ptrdiff_t, PyTuple_Size, (prof_i_py * tuple))                                               \
  X(prof_i_py *, PyTuple_GetItem, (prof_i_py * tuple, ptrdiff_t at))                            \
  X(prof_i_py *, PyTuple_New, (ptrdiff_t count))                                                \
  X(int, PyTuple_SetItem, (prof_i_py * tuple, ptrdiff_t at, prof_i_py * item))                  \
  X(prof_i_py *, PyDict_New, (void))                                                            \
  X(int, PyDict_SetItem, (prof_i_py * dict, prof_i_py * key, prof_i_py * value))                \
  X(int, PyDict_SetItemString, (prof_i_py * dict, const char *key, prof_i_py *value))           \
  X(prof_i_py *, PyDict_GetItemString, (prof_i_py * dict, const char *key))                     \
  X(int, PyDict_Next, (prof_i_py * dict, ptrdiff_t * at, prof_i_py * *key, prof_i_py * *value)) \
  X(const char *, PyUnicode_AsUTF8AndSize, (prof_i_py * text, ptrdiff_t * bytes_out))           \
  X(prof_i_py *, PyUnicode_AsEncodedString,                                                     \
    (prof_i_py * text, const char *encoding, const char *errors))                               \
  X(int, PyUnicode_CompareWithASCIIString, (prof_i_py * text, const char *ascii))               \
  X(int, PyBytes_AsStringAndSize, (prof_i_py * bytes, char **data_out, ptrdiff_t *count_out))   \
  X(prof_i_py *, PyNumber_Index, (prof_i_py * number))                                          \
  X(prof_i_py *, PyLong_FromLong, (long number))                                                \
  X(long long, PyLong_AsLongLongAndOverflow, (prof_i_py * number, int *overflow_out))           \
  X(double, PyFloat_AsDouble, (prof_i_py * number))                                             \
  X(prof_i_py *, PyEval_GetFrame, (void))                                                       \
  X(prof_i_py *, PyFrame_GetBack, (prof_i_py * frame))                                          \
  X(prof_i_py *, PyFrame_GetCode, (prof_i_py * frame))                                          \
  X(int, PyFrame_GetLineNumber, (prof_i_py * frame))                                            \
  X(prof_i_py *, PyObject_GetAttrString, (prof_i_py * object, const char *name))                \
  X(int, PySequence_Check, (prof_i_py * object))                                                \
  X(ptrdiff_t, PySequence_Size, (prof_i_py * sequence))                                         \
  X(prof_i_py *, PySequence_GetItem, (prof_i_py * sequence, ptrdiff_t at))                      \
  X(prof_i_py *, PyUnicode_FromString, (const char *text))                                      \
  X(void, PyErr_Fetch,                                                                          \
    (prof_i_py * *type_out, prof_i_py * *value_out, prof_i_py * *traceback_out))                \
  X(void, PyErr_Restore, (prof_i_py * type, prof_i_py * value, prof_i_py * traceback))          \
  X(int, PyErr_ExceptionMatches, (prof_i_py * type))                                            \
  X(prof_i_py *, PyErr_NoMemory, (void))                                                        \
  X(void, PyErr_Clear, (void))                                                                  \
  X(prof_i_py *, PyErr_Occurred, (void))                                                        \
  X(void, PyErr_SetString, (prof_i_py * type, const char *text))                                \
  X(prof_i_py *, PyErr_Format, (prof_i_py * type, const char *format, ...))

/* What Python itself hands over: borrowed for as long as the interpreter lives. */
typedef struct prof_i_python_given {
  size_t size;
  size_t head_bytes; /* object.__basicsize__ */
  prof_i_py *names;  /* a dict, for what is made */
  prof_i_py *none, *string, *boolean, *integer, *real, *exception, *type_error, *value_error;
  prof_i_py *decorate; /* a callable (scope, function) -> function */
  prof_i_py *modules;  /* sys.modules */
  /* a callable ((value, name of a method)) -> bool: whether it is a function of the program */
  prof_i_py *is_of_program;
} prof_i_python_given;

/* What Python passes to functions.c. */
typedef struct prof_i_python_functions_given {
  size_t size;
  prof_i_py *names; /* a dict, for what is made */
  /* A callable (frame) -> `import`; `own`: code of prof; `silent`: code of prof whose calls are not
     recorded. For code that is left out, it returns None (support code) or `program`. Otherwise it
     returns (name, function, file, line, whether it is support code). A sixth element means a call
     of an nn.Module. It says whether the call is a function if module_call returns None. */
  prof_i_py *judge;
  prof_i_py *import_name; /* a callable (frame) -> str, for frames of the kind `import` */
  /* a callable (frame) -> (name, the name's address, number, index in its class), for a call of an
     nn.Module; None: it is not observed */
  prof_i_py *module_call;
  /* a callable (C function) -> None: left out; or (name, function, file, line) */
  prof_i_py *describe_builtin;
  prof_i_py *builtin_type, *descriptor_type;  /* of len, and of list.append */
  prof_i_py *import, *own, *silent, *program; /* any four objects */
  prof_i_py *disable;                         /* sys.monitoring.DISABLE; before 3.12 any object */
} prof_i_python_functions_given;

typedef struct prof_i_python {
/* NOLINTNEXTLINE(bugprone-macro-parentheses): a declaration */
#define PROF_I_PYTHON_FIELD(result, name, parameters) result(*name) parameters;
  PROF_I_PYTHON_LIST(PROF_I_PYTHON_FIELD)
#undef PROF_I_PYTHON_FIELD
  prof_i_python_given given;
  int stack_frames; /* that each scope records; 0: none */
} prof_i_python;

extern prof_i_python prof_i_python_now __attribute__((visibility("hidden")));

static inline void prof_i_py_drop(prof_i_py *object) {
  if (object) prof_i_python_now.Py_DecRef(object);
}

/* None, with a reference of its own. */
static inline prof_i_py *prof_i_py_new_none(void) {
  prof_i_python_now.Py_IncRef(prof_i_python_now.given.none);
  return prof_i_python_now.given.none;
}

/* Whether an error is pending. */
static inline bool prof_i_py_is_interrupted(void) {
  return prof_i_python_now.PyErr_Occurred() != NULL;
}

/* Finds all functions. NULL: found; else the name of the first that is missing. */
const char *prof_i_python_find(void);

/* Checks the real type, not __class__. Runs no Python code. */
bool prof_i_py_is_instance(prof_i_py *object, prof_i_py *type);

/* Calls Python's side. NULL with a pending error: it was interrupted. NULL without an error: it
   failed, for example at the recursion limit, which is ignored. Signal handlers may run inside of
   it. A second call distinguishes their exceptions from its own. */
prof_i_py *prof_i_py_query(prof_i_py *callable, prof_i_py *object);

/* How many frames a scope records. While functions are traced it records none, because the open
   functions are its stack. */
void prof_i_python_set_frames(int frames);
void prof_i_python_set_traced(bool are_traced);

/* The bytes of a str. Valid while `holder` or the str exists. */
typedef struct prof_i_py_text {
  const char *data;  /* followed by a NUL */
  uint32_t bytes;    /* at most 16384: longer texts are cut later in any case */
  prof_i_py *holder; /* own reference, or NULL */
} prof_i_py_text;

/* Lone surrogates stay: readers repair what is not UTF-8. Empty: no memory. No error is pending
   afterwards. */
prof_i_py_text prof_i_py_text_of(prof_i_py *string);

/* ---- functions.c and function_stack.c: for scope.c and own_calls.c ---- */

/* Switches stacks on or off. Functions that are open when stacks begin become scopes at that time.
   An error may be pending afterwards. */
void prof_i_python_functions_stacks(bool are_wanted);

/* Until the matching end, this thread's calls are made on behalf of prof, except for calls of
   functions of the program. Calls may be nested: pass the value of *around_out to the end. False:
   functions are not traced, so do not call the end. An error may be pending afterwards. */
bool prof_i_python_functions_begin_own(const prof_i_py **around_out);
void prof_i_python_functions_end_own(const prof_i_py *around);

/* ---- scope_details.c: arguments ---- */

/* Converts a program's named arguments for C. The program's own code runs during this: __str__()
   of a value, methods of a sequence, signal handlers. Under the GIL. */

/* False: a TypeError with both names is pending. */
bool prof_i_py_is_string(prof_i_py *object, const char *function, const char *parameter);
bool prof_i_py_is_word(prof_i_py *keyword, const char *word);

/* References that keep an argument's texts alive, or NULL. */
typedef struct prof_i_py_references {
  prof_i_py *objects[5];
} prof_i_py_references;
/* False: interrupted, and an error is pending. `item` is valid until prof_i_py_release(), which is
   called in both cases. `held` is zero before. */
bool prof_i_py_add_pair(prof_i_py *key, prof_i_py *value, prof_arg *item,
                        prof_i_py_references *held);
void prof_i_py_release(const prof_i_py_references *held);

/* ---- own_calls.c: methods of values that prof calls ---- */

/* Whether the value is a PyTorch tensor, or of a derived class. */
bool prof_i_py_is_tensor(prof_i_py *value);
/* "float32[2, 3]", and "float32". NULL: an error is pending. */
prof_i_py *prof_i_py_new_tensor_text(prof_i_py *tensor);
prof_i_py *prof_i_py_new_tensor_type(prof_i_py *tensor);

typedef struct prof_i_py_own_call {
  bool is_marked, is_silent;
  const prof_i_py *frame_around; /* of the own call around this one */
} prof_i_py_own_call;
/* Until the matching end, this thread calls a method of the value on behalf of prof. method:
   "__str__", "__repr__" or "__float__"; NULL: only code of PyTorch runs. An error may be pending
   afterwards. */
prof_i_py_own_call prof_i_py_own_call_begin(prof_i_py *value, const char *method);
void prof_i_py_own_call_end(prof_i_py_own_call call);
/* Raises "WHAT, not VALUE". The value's repr() is a call of prof's. No error is pending before. */
void prof_i_py_refuse(prof_i_py *error, prof_i_py *value, const char *what);

/* ---- scope.c ---- */

typedef struct prof_i_py_scope {
  void *vectorcall; /* first: Python calls the object by it */
  uint64_t start;   /* of the innermost entry; 0: not recorded */
  uint64_t *outer;  /* of the others: one object may be entered again inside itself */
  uint32_t depth, outer_room;
  uint32_t unstored_entries; /* entries for which there was no memory */
  uint8_t level;
  uint8_t requested_parts; /* bits of method_part */
  /* own references; category NULL: an annotation; args NULL, or a dict; shapes NULL, or a sequence
     of sequences */
  prof_i_py *name, *category, *args, *shapes;
} prof_i_py_scope;

enum { PROF_I_PY_STACK_FRAMES_MAX = 64 };

/* ---- scope_details.c ---- */

/* The text of a scope's category. */
prof_i_py_text prof_i_py_category_text(prof_i_py *category);

/* Begins a scope with everything copied: a name made at run time, arguments, shapes, and the
   innermost `frames` frames of the stack. 0: not recorded. If an argument's code was interrupted,
   its error is pending and the scope is not begun. */
uint64_t prof_i_py_scope_begin_copied(const prof_i_py_scope *s, int frames);

/* Finds the folder of the package prof. Its frames are left out of stacks. */
void prof_i_py_scope_find_package(void);

/* ---- instants.c ---- */

/* Adds prof.counter() and prof.instant() to PY.given.names. False: an error is pending. */
bool prof_i_python_make_instants(void);

#endif
