/* Which code is traced, and its names. Python's side (functions.py) is queried once for each code
   object, which then keeps the answer in its co_extra. C functions are in a table, and calls of
   nn.Modules are known by the address of their name. See functions.h. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "../base/text.h"
#include "functions.h"

#define PY prof_i_python_now
#define NOW prof_i_functions_now

enum {
  BUILTIN_BITS = 13,
  BUILTINS_MOST = 3 << (BUILTIN_BITS - 2),
  BOUND_BITS = 11,
  MODULE_ROOM_FIRST = 64,
  SUPPORT_AT = 4, /* in judge()'s answer */
  MODULE_AT = 5
};

/* A C function, identified by its address and its method, because several methods may share one
   function. A method without an object is identified by its descriptor. A reference to the
   descriptor is held; it lives as long as its class in any case. */
typedef struct builtin {
  const void *key;                /* NULL: free */
  const prof_i_py_method *method; /* NULL: not known, or a descriptor */
  char *name;                /* malloc()ed: the method's, whose memory may be reused; or NULL */
  prof_i_function *function; /* NULL: excluded */
} builtin;

/* A pybind11 function, known by its object. No reference is kept, because programs make and drop
   such functions at run time. Another function may get the same address: it has another name, or
   counts as the same. */
typedef struct bound {
  const void *key;
  char *name; /* malloc()ed: what its method has */
  prof_i_function *function;
} bound;

static struct {
  builtin builtins[1 << BUILTIN_BITS];
  uint32_t builtin_count;
  bound bounds[1 << BOUND_BITS]; /* by a hash; the newest replaces the old one */
  /* functions of `bounds`, one for each name */
  prof_i_function *function_of_name[1 << BUILTIN_BITS];
  uint32_t named_count;
  /* a function of C has its method right behind an object's head, as our own was seen to have it */
  bool has_methods;
  /* by the address of a name, which Python's side gives and never frees */
  prof_i_function **modules;
  size_t module_room;
} function_registry;

/* Kineto's name of the category */
const char prof_i_category_of_python[] = "python_function", prof_i_category_of_c[] = "c_function";

static void destroy_function(void *extra) {
  prof_i_function *const f = extra;
  if (!f) return;
  free(f->name);
  free(f->source);
  free(f->file);
  free(f);
}

static char *copy_string(prof_i_py *string) {
  const prof_i_py_text t = prof_i_py_text_of(string);
  char *const copy = malloc(t.bytes + 1);
  if (copy) {
    memcpy(copy, t.data, t.bytes);
    copy[t.bytes] = '\0';
  }
  prof_i_py_drop(t.holder);
  return copy;
}

/* Of (name, function, file, line). */
static bool function_set_texts(prof_i_function *f, prof_i_py *answer, const char *category) {
  int overflow = 0;
  f->category = category;
  f->name = copy_string(PY.PyTuple_GetItem(answer, 0));
  f->source = copy_string(PY.PyTuple_GetItem(answer, 1));
  f->file = copy_string(PY.PyTuple_GetItem(answer, 2));
  const long long line = PY.PyLong_AsLongLongAndOverflow(PY.PyTuple_GetItem(answer, 3), &overflow);
  f->site = (prof_site){.file = f->file, .function = f->source, .line = (uint32_t)line, .level = 1};
  if (f->name && f->source && f->file) return true;
  free(f->name);
  free(f->source);
  free(f->file);
  f->name = f->source = f->file = NULL;
  return false;
}

static bool is_true_at(prof_i_py *answer, ptrdiff_t at) {
  int overflow = 0;
  return PY.PyLong_AsLongLongAndOverflow(PY.PyTuple_GetItem(answer, at), &overflow) != 0;
}

/* Converts judge()'s answer (internal.h). Stored with the code. NULL: no memory. */
static prof_i_function *function_of_description(prof_i_py *code, prof_i_py *answer) {
  prof_i_function *f = NULL;
  /* now, because another thread may have queried during the call */
  NOW.python.get_extra(code, NOW.index, (void **)&f);
  if (!f) {
    f = calloc(1, sizeof *f);
    if (f && NOW.python.set_extra(code, NOW.index, f) != 0) {
      free(f);
      f = NULL;
    }
  }
  if (!f) return NULL;
  if (answer == PY.given.none || answer == NOW.given.program)
    f->function_kind = PROF_I_FUNCTION_EXCLUDED;
  else if (answer == NOW.given.import)
    f->function_kind = PROF_I_FUNCTION_IMPORT;
  else if (answer == NOW.given.own || answer == NOW.given.silent)
    f->function_kind = PROF_I_FUNCTION_OWN;
  else
    f->function_kind = f->name || function_set_texts(f, answer, prof_i_category_of_python)
                           ? PROF_I_FUNCTION_ORDINARY
                           : PROF_I_FUNCTION_EXCLUDED; /* names of an earlier filter stay valid */
  f->is_silent = answer == NOW.given.silent;
  f->is_support = answer == PY.given.none || f->function_kind == PROF_I_FUNCTION_IMPORT ||
                  (f->function_kind == PROF_I_FUNCTION_ORDINARY && is_true_at(answer, SUPPORT_AT));
  if (f->function_kind == PROF_I_FUNCTION_ORDINARY && PY.PyTuple_Size(answer) > MODULE_AT) {
    f->function_kind = PROF_I_FUNCTION_MODULE;
    f->is_support = false;
    f->is_also_function = is_true_at(answer, MODULE_AT);
  }
  f->epoch = NOW.epoch;
  return f;
}

PROF_I_COLD prof_i_function *prof_i_function_classify(prof_i_py *code, prof_i_py *frame) {
  static prof_i_function unknown = {.function_kind = PROF_I_FUNCTION_UNKNOWN};
  prof_i_py *type, *error, *traceback;
  PY.PyErr_Fetch(&type, &error, &traceback);
  prof_i_py *const answer = prof_i_py_query(NOW.given.judge, frame);
  prof_i_function *const f = answer ? function_of_description(code, answer) : NULL;
  if (!answer && prof_i_py_is_interrupted()) {
    prof_i_py_drop(type);
    prof_i_py_drop(error);
    prof_i_py_drop(traceback);
    return NULL;
  }
  prof_i_py_drop(answer);
  PY.PyErr_Restore(type, error, traceback); /* also replaces an error of set_extra() */
  return f ? f : &unknown;
}

/* ---- functions of C ---- */

/* For functions beyond the table's room: their time is recorded, too. */
static prof_i_function other_sites = {.site = {.file = "", .function = "", .level = 1},
                                      .function_kind = PROF_I_FUNCTION_ORDINARY,
                                      .is_support = true,
                                      .category = prof_i_category_of_c,
                                      .name = "<other functions of C>"};

static size_t hash_spread(uint64_t bits, unsigned count) {
  return (size_t)(bits * UINT64_C(0x9e3779b97f4a7c15) >> (64 - count));
}

/* The method of a callable. NULL: not known. */
static inline const prof_i_py_method *method_of(prof_i_py *callable) {
  const prof_i_py_method *method = NULL;
  if (function_registry.has_methods)
    memcpy(&method, (const char *)callable + PY.given.head_bytes, sizeof method);
  return method && method->name ? method : NULL;
}

static const char *method_name(prof_i_py *callable) {
  const prof_i_py_method *const method = method_of(callable);
  return method ? method->name : NULL;
}

static inline bool builtin_has_name(const builtin *b, const prof_i_py_method *method) {
  return !method || !b->name || strcmp(b->name, method->name) == 0;
}

static inline size_t builtin_next(size_t at) { return (at + 1) & ((1u << BUILTIN_BITS) - 1); }

/* The entry of this function and method, or a free entry. A dispatcher of many functions has one
   entry for all its methods. */
static inline builtin *builtin_find(const void *key, const prof_i_py_method *method) {
  for (size_t at = hash_spread((uintptr_t)key, BUILTIN_BITS);; at = builtin_next(at)) {
    builtin *const b = &function_registry.builtins[at];
    if (!b->key || (b->key == key && ((b->method == method && builtin_has_name(b, method)) ||
                                      (b->function && b->function->is_of_many))))
      return b;
  }
}

/* The entry with the same function and names but another method, because programs may create
   methods again at run time. f: NULL: excluded. Returns NULL if there is none. */
static builtin *builtin_find_renewed(const void *key, const prof_i_py_method *method,
                                     const prof_i_function *f) {
  for (size_t at = hash_spread((uintptr_t)key, BUILTIN_BITS);; at = builtin_next(at)) {
    builtin *const b = &function_registry.builtins[at];
    if (!b->key) return NULL;
    if (b->key == key && builtin_has_name(b, method) && !b->function == !f &&
        (!f || strcmp(b->function->name, f->name) == 0))
      return b;
  }
}

/* Creates a function from the answer of Python's side. NULL: no memory. */
static prof_i_function *new_builtin_function(prof_i_py *answer, bool is_descriptor) {
  prof_i_function *const f = calloc(1, sizeof *f);
  if (!f || !function_set_texts(f, answer, prof_i_category_of_c)) {
    free(f);
    return NULL;
  }
  f->function_kind = PROF_I_FUNCTION_ORDINARY;
  f->is_support = true;
  f->is_of_many = f->site.line && !is_descriptor;
  f->site.line = 0;
  return f;
}

/* Adds an entry. If there is no room, returns the site that all further functions share. */
static prof_i_function *builtin_add(const void *key, const prof_i_py_method *method,
                                    prof_i_py *held, prof_i_function *f) {
  char *const name = method ? strdup(method->name) : NULL;
  if ((method && !name) || function_registry.builtin_count >= BUILTINS_MOST) {
    free(name);
    destroy_function(f);
    return &other_sites;
  }
  if (held) PY.Py_IncRef(held);
  *builtin_find(key, method) = (builtin){key, method, name, f};
  function_registry.builtin_count++;
  return f;
}

/* held: the object of the key, which must not be freed; NULL: no object. */
static PROF_I_COLD prof_i_function *new_builtin(const void *key, const prof_i_py_method *method,
                                                prof_i_py *callable, prof_i_py *held) {
  if (function_registry.builtin_count >= BUILTINS_MOST)
    return &other_sites; /* there is always a free entry */
  prof_i_py *const answer = prof_i_py_query(NOW.given.describe_builtin, callable);
  if (!answer) return NULL;
  const bool is_own = answer == PY.given.none;
  prof_i_function *const f = is_own ? NULL : new_builtin_function(answer, held != NULL);
  PY.Py_DecRef(answer);
  if (!f && !is_own) return NULL;
  builtin *found = builtin_find(key, method); /* another thread may have added it meanwhile */
  if (!found->key) found = builtin_find_renewed(key, method, f);
  if (!found) return builtin_add(key, method, held, f);
  destroy_function(f);
  found->method = method;
  return found->function;
}

/* NULL: excluded. */
static inline prof_i_function *builtin_by(const void *key, prof_i_py *callable, prof_i_py *held) {
  const prof_i_py_method *const method = held ? NULL : method_of(callable);
  const builtin *const b = builtin_find(key, method);
  return PROF_I_LIKELY(b->key != NULL) ? b->function : new_builtin(key, method, callable, held);
}

/* The one function of that name and source; NULL: no memory. */
static prof_i_function *function_of_name(prof_i_py *answer) {
  prof_i_function *const f = calloc(1, sizeof *f);
  if (!f || !function_set_texts(f, answer, prof_i_category_of_c)) {
    free(f);
    return NULL;
  }
  const uint64_t hash = prof_i_hash64(PROF_I_HASH64_SEED, f->name, strlen(f->name));
  size_t at = hash_spread(hash, BUILTIN_BITS);
  while (function_registry.function_of_name[at] &&
         (strcmp(function_registry.function_of_name[at]->name, f->name) != 0 ||
          strcmp(function_registry.function_of_name[at]->source, f->source) != 0 ||
          strcmp(function_registry.function_of_name[at]->file, f->file) != 0))
    at = (at + 1) & ((1u << BUILTIN_BITS) - 1);
  if (function_registry.function_of_name[at] || function_registry.named_count >= BUILTINS_MOST) {
    destroy_function(f);
    return function_registry.function_of_name[at] ? function_registry.function_of_name[at]
                                                  : &other_sites;
  }
  f->function_kind = PROF_I_FUNCTION_ORDINARY;
  f->is_support = true;
  f->site.line = 0;
  function_registry.named_count++;
  return function_registry.function_of_name[at] = f;
}

static PROF_I_COLD prof_i_function *new_bound(bound *place, const void *key, prof_i_py *callable) {
  prof_i_py *const answer = prof_i_py_query(NOW.given.describe_builtin, callable);
  if (!answer) return NULL;
  prof_i_function *const f = function_of_name(answer);
  PY.Py_DecRef(answer);
  const char *const name = method_name(callable);
  char *const copy = f && name ? strdup(name) : NULL;
  if (!copy) return f;
  free(place->name);
  *place = (bound){key, copy, f};
  return f;
}

/* The function that a dispatcher of many calls. */
static prof_i_function *bound_by(const void *key, prof_i_py *callable) {
  bound *const place = &function_registry.bounds[hash_spread((uintptr_t)key, BOUND_BITS)];
  const char *const name = method_name(callable);
  return PROF_I_LIKELY(place->key == key && name && strcmp(place->name, name) == 0)
             ? place->function
             : new_bound(place, key, callable);
}

prof_i_function *prof_i_function_of_c(prof_i_py *callable) {
  prof_i_py *const type = PY.PyObject_Type(callable);
  const void *key = NULL;
  prof_i_py *held = NULL;
  if (type == NOW.given.descriptor_type)
    key = held = callable;
  else if (type == NOW.given.builtin_type || PY.PyType_IsSubtype(type, NOW.given.builtin_type))
    key = NOW.python.function_of(callable); /* subtype: it knows the class that defines it */
  PY.Py_DecRef(type);                       /* it is of the interpreter's own, or not looked at */
  if (!key) return NULL;
  prof_i_function *const f = builtin_by(key, callable, held);
  if (PROF_I_LIKELY(!f || !f->is_of_many)) return f;
  const void *const self = NOW.python.self_of(callable);
  return self ? bound_by(self, callable) : NULL;
}

/* ---- calls of nn.Modules ---- */

prof_i_function *prof_i_function_of_module(prof_i_py *answer) {
  int overflow = 0;
  const size_t place =
      (size_t)PY.PyLong_AsLongLongAndOverflow(PY.PyTuple_GetItem(answer, 1), &overflow);
  if (place >= function_registry.module_room) {
    const size_t room = 2 * place + MODULE_ROOM_FIRST;
    prof_i_function **const larger = realloc(function_registry.modules, room * sizeof *larger);
    if (!larger) return NULL;
    memset(larger + function_registry.module_room, 0,
           (room - function_registry.module_room) * sizeof *larger);
    function_registry.modules = larger;
    function_registry.module_room = room;
  }
  prof_i_function *f = function_registry.modules[place];
  if (f) return f;
  f = calloc(1, sizeof *f);
  if (f) f->name = copy_string(PY.PyTuple_GetItem(answer, 0));
  if (!f || !f->name) {
    free(f);
    return NULL;
  }
  f->site = (prof_site){.file = "", .function = "", .level = 1};
  function_registry.modules[place] = f;
  return f;
}

void prof_i_function_code_probe(prof_i_py *function, const prof_i_py_method *method) {
  const prof_i_py_method *found;
  memcpy(&found, (const char *)function + PY.given.head_bytes, sizeof found);
  function_registry.has_methods = found == method;
}

bool prof_i_function_code_create(void) {
  NOW.index = NOW.python.request_index(destroy_function);
  return NOW.index >= 0;
}
