/* `with prof.record_function("name"):` without a compiler on the user's side. A type is made by
   PyType_FromSpec(), and functions by PyCFunction_NewEx(). So a Python scope is two C calls and an
   object, not four calls of ctypes.

   A constant name in the code is the same str object each time. After some uses such a name gets
   its own call site, and a scope takes 16 bytes. A name made at run time is copied each time
   (scope_details.c). Budget: 0.13 us for the whole statement while recording, 0.10 us otherwise
   (bench/python). All under the GIL. */

#include <prof/profiler.h>
#include <prof/python.h>
#include <prof/trace.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/port.h"
#include "../base/process.h"
#include "../core/record/site.h"
#include "functions.h"
#include "internal.h"

#define PY prof_i_python_now

enum {
  KNOWN_BITS = 11, /* call sites that are found at once */
  /* Uses of a name without arguments before it gets a site. A name made at run time seldom has as
     many. */
  USES_BEFORE_SITE = 8,
  /* Names that get a site. Sites are never freed, so names made at run time need a limit. */
  SITES_MAX = 4096,
  FREE_MAX = 64 /* freed objects kept for reuse */
};

/* ---- names ---- */

typedef struct known_name {
  prof_i_py *name, *category; /* own references; category NULL: the type's own */
  uint32_t level, use_count;
  prof_site site;
  char *texts; /* name and category, each with its NUL; NULL: no site yet */
  const char *category_text;
} known_name;

static struct {
  prof_i_py *type;          /* of both functions' objects */
  prof_i_py *operator_text; /* "operator" */
  known_name names[1 << KNOWN_BITS];
  void *free[FREE_MAX];
  unsigned free_count;
  uint32_t site_count; /* given to names */
  bool is_taken;
} scope_module;

static known_name *known_name_slot(const prof_i_py *name, const prof_i_py *category,
                                   uint32_t level) {
  const uint64_t key =
      ((uint64_t)(uintptr_t)name >> 4) + ((uint64_t)(uintptr_t)category >> 3) * 3 + level;
  return &scope_module.names[key * UINT64_C(0x9e3779b97f4a7c15) >> (64 - KNOWN_BITS)];
}

/* Gives the entry to another name. The old references are dropped last, because a __del__() may
   begin scopes. */
static void known_name_set(known_name *k, prof_i_py *name, prof_i_py *category, uint32_t level) {
  const known_name before = *k;
  *k = (known_name){.name = name, .category = category, .level = level, .use_count = 1};
  PY.Py_IncRef(name); /* while it is held, no other object has its address */
  if (category) PY.Py_IncRef(category);
  free(before.texts);
  prof_i_py_drop(before.name);
  prof_i_py_drop(before.category);
}

/* ---- the object ---- */

/* What `with` looks up: __enter__, called without arguments, and __exit__, called with three.
   Methods would need a bound object for each of the two. These descriptors return the scope itself,
   and set the bit of the requested part in it. */
typedef enum method_part { PART_ENTER = 1, PART_LEAVE = 2 } method_part;

typedef struct part_object {
  method_part which;
} part_object;

static prof_i_py *call_decorated(prof_i_py *self, prof_i_py *const *arguments, size_t count,
                                 prof_i_py *keywords);

static inline prof_i_py_scope *scope_of_object(prof_i_py *object) {
  return (prof_i_py_scope *)(void *)((char *)object + PY.given.head_bytes);
}

static prof_i_py *scope_new(prof_i_py *name, prof_i_py *category, uint32_t level, prof_i_py *args,
                            prof_i_py *shapes) {
  void *const memory = scope_module.free_count
                           ? scope_module.free[--scope_module.free_count]
                           : PY.PyObject_Malloc(PY.given.head_bytes + sizeof(prof_i_py_scope));
  if (!memory) return PY.PyErr_NoMemory();
  prof_i_py *const self = PY.PyObject_Init(memory, scope_module.type);
  *scope_of_object(self) = (prof_i_py_scope){.vectorcall = (void *)call_decorated,
                                             .level = (uint8_t)level,
                                             .name = name,
                                             .category = category,
                                             .args = args,
                                             .shapes = shapes};
  PY.Py_IncRef(name);
  if (category) PY.Py_IncRef(category);
  if (args) PY.Py_IncRef(args);
  if (shapes) PY.Py_IncRef(shapes);
  return self;
}

/* ---- begin, end ---- */

/* Gives a site to a frequent name. False: the name continues to be copied. */
static bool known_name_give_site(known_name *k) {
  const prof_i_py_text name = prof_i_py_text_of(k->name),
                       category = prof_i_py_category_text(k->category);
  const bool is_plain = name.bytes && !name.holder && !category.holder && name.bytes < 256 &&
                        category.bytes < 256 && !memchr(name.data, 0, name.bytes) &&
                        !memchr(category.data, 0, category.bytes);
  k->texts = is_plain ? malloc(name.bytes + category.bytes + 2) : NULL;
  if (k->texts) {
    memcpy(k->texts, name.data, name.bytes + 1);
    memcpy(k->texts + name.bytes + 1, category.data, category.bytes + 1);
    k->site = (prof_site){.file = "", .function = "", .level = k->level};
    k->category_text = k->texts + name.bytes + 1;
  }
  prof_i_py_drop(name.holder);
  prof_i_py_drop(category.holder);
  return k->texts != NULL;
}

static PROF_I_COLD uint64_t scope_begin_unknown(const prof_i_py_scope *s, known_name *k) {
  const bool is_known = k->name == s->name && k->category == s->category && k->level == s->level;
  /* entries stay as they are: a name that lost its entry would not get another site */
  if (scope_module.site_count >= SITES_MAX) return prof_i_py_scope_begin_copied(s, PY.stack_frames);
  if (!is_known) {
    known_name_set(k, s->name, s->category, s->level);
  } else if (!s->args && !s->shapes && !PY.stack_frames && ++k->use_count > USES_BEFORE_SITE &&
             known_name_give_site(k)) {
    const uint32_t before = prof_i_site_count();
    const uint64_t start = prof_scope_begin_at(&k->site, k->texts, k->category_text);
    /* a name that had lost its entry has its old site */
    scope_module.site_count += prof_i_site_count() != before;
    return start;
  }
  return prof_i_py_scope_begin_copied(s, PY.stack_frames);
}

static inline uint64_t scope_begin(const prof_i_py_scope *s) {
  if (!PROF_I_IS_ON(s->level)) return 0;
  known_name *const k = known_name_slot(s->name, s->category, s->level);
  if (k->texts && !s->args && !s->shapes && !PY.stack_frames && k->name == s->name &&
      k->category == s->category && k->level == s->level)
    return prof_scope_begin_at(&k->site, k->texts, k->category_text);
  return scope_begin_unknown(s, k);
}

/* False: no memory. */
static PROF_I_COLD bool save_outer(prof_i_py_scope *s) {
  if (s->depth > s->outer_room) {
    uint64_t *const more = realloc(s->outer, 2 * s->depth * sizeof *more);
    if (!more) return false;
    s->outer = more;
    s->outer_room = 2 * s->depth;
  }
  s->outer[s->depth - 1] = s->start;
  return true;
}

static void end_innermost_scope(prof_i_py_scope *s) {
  const uint64_t start = s->start;
  if (s->unstored_entries) {
    s->unstored_entries--;
    return;
  }
  if (s->depth > 0) s->start = --s->depth > 0 ? s->outer[s->depth - 1] : 0;
  if (start) prof_scope_end(start);
}

/* The code of an argument or a shape was interrupted. */
static PROF_I_COLD prof_i_py *fail_scope(prof_i_py_scope *s) {
  end_innermost_scope(s);
  return NULL;
}

static prof_i_py *scope_enter(prof_i_py *self) {
  prof_i_py_scope *const s = scope_of_object(self);
  if (s->depth > 0 && !save_outer(s)) {
    s->unstored_entries++;
  } else {
    s->depth++;
    s->start = scope_begin(s);
    if (PROF_I_UNLIKELY(!s->start && (s->args || s->shapes) && prof_i_py_is_interrupted()))
      return fail_scope(s);
  }
  PY.Py_IncRef(self);
  return self;
}

/* Returns None, so exceptions propagate. */
static prof_i_py *scope_leave(prof_i_py *self) {
  end_innermost_scope(scope_of_object(self));
  return prof_i_py_new_none();
}

/* Passes (self, function) to Python's side, which distinguishes functions, generators and
   coroutines. */
static PROF_I_COLD prof_i_py *scope_decorate(prof_i_py *self, prof_i_py *const *arguments,
                                             size_t count, prof_i_py *keywords) {
  if (keywords || count != 1) {
    PY.PyErr_SetString(PY.given.type_error,
                       "a scope that is called decorates one function, and takes nothing else");
    return NULL;
  }
  prof_i_py *const both = PY.PyTuple_New(2);
  if (!both) return NULL;
  PY.Py_IncRef(self);
  PY.Py_IncRef(arguments[0]);
  PY.PyTuple_SetItem(both, 0, self);
  PY.PyTuple_SetItem(both, 1, arguments[0]);
  prof_i_py *const decorated = PY.PyObject_CallObject(PY.given.decorate, both);
  PY.Py_DecRef(both);
  return decorated;
}

static prof_i_py *call_decorated(prof_i_py *self, prof_i_py *const *arguments,
                                 size_t flags_and_count, prof_i_py *keywords) {
  const size_t count = flags_and_count & SIZE_MAX >> 1; /* the highest bit is Python's own */
  const uint8_t requested_parts = scope_of_object(self)->requested_parts;
  if (PROF_I_LIKELY(!keywords)) {
    if (count == 0 && (requested_parts & PART_ENTER)) return scope_enter(self);
    if (count == 3 && (requested_parts & PART_LEAVE)) return scope_leave(self);
  }
  return scope_decorate(self, arguments, count, keywords);
}

static inline part_object *part_of_object(prof_i_py *object) {
  return (part_object *)(void *)((char *)object + PY.given.head_bytes);
}

/* Returns the scope for an object, and the descriptor for the type: Scope.__enter__(scope). */
static prof_i_py *get_part(prof_i_py *self, prof_i_py *object, prof_i_py *type) {
  prof_i_py *given = self;
  (void)type;
  if (object && prof_i_py_is_instance(object, scope_module.type)) {
    scope_of_object(object)->requested_parts |= (uint8_t)part_of_object(self)->which;
    given = object;
  }
  PY.Py_IncRef(given);
  return given;
}

static PROF_I_COLD prof_i_py *call_part(prof_i_py *self, prof_i_py *arguments,
                                        prof_i_py *keywords) {
  const method_part which = part_of_object(self)->which;
  prof_i_py *const object =
      PY.PyTuple_Size(arguments) > 0 ? PY.PyTuple_GetItem(arguments, 0) : NULL;
  const ptrdiff_t wanted = which == PART_ENTER ? 1 : 4;
  if (keywords || !object || !prof_i_py_is_instance(object, scope_module.type) ||
      PY.PyTuple_Size(arguments) != wanted)
    return PY.PyErr_Format(
        PY.given.type_error, "%s takes a scope%s",
        which == PART_ENTER ? "__enter__()" : "__exit__()",
        which == PART_ENTER ? "" : ", and an exception's type, value and traceback");
  return which == PART_ENTER ? scope_enter(object) : scope_leave(object);
}

/* prof.Scope is for isinstance(): scopes are made by record_function() and scope(). */
static PROF_I_COLD prof_i_py *refuse_new(prof_i_py *type, prof_i_py *arguments,
                                         prof_i_py *keywords) {
  (void)type, (void)arguments, (void)keywords;
  PY.PyErr_SetString(PY.given.type_error,
                     "a scope is made by prof.record_function() or prof.scope()");
  return NULL;
}

static void destroy_part(prof_i_py *self) { PY.PyObject_Free(self); } /* the type is never freed */

/* False: an error is pending. */
static bool add_part_type(prof_i_py *part_type, const char *name, method_part which) {
  void *const memory = PY.PyObject_Malloc(PY.given.head_bytes + sizeof(part_object));
  if (!memory) return false;
  prof_i_py *const object = PY.PyObject_Init(memory, part_type);
  part_of_object(object)->which = which;
  const bool is_added = PY.PyObject_SetAttrString(scope_module.type, name, object) == 0;
  PY.Py_DecRef(object);
  return is_added;
}

enum { PARTS = 5 };

/* A copy that is not entered. A decorated function makes one for each call. */
static prof_i_py *scope_copy(prof_i_py *self, prof_i_py *unused) {
  const prof_i_py_scope *const s = scope_of_object(self);
  (void)unused;
  return scope_new(s->name, s->category, s->level, s->args, s->shapes);
}

/* The arguments of scope_new(), with None for NULL, for copies and pickles. Only of a scope that is
   not entered, because a copy holds no time. */
static prof_i_py *scope_parts(prof_i_py *self, prof_i_py *unused) {
  const prof_i_py_scope *const s = scope_of_object(self);
  (void)unused;
  if (s->depth || s->unstored_entries)
    return PY.PyErr_Format(PY.given.type_error,
                           "a scope that is entered cannot be copied or pickled: %.200R", s->name);
  prof_i_py *const level = PY.PyLong_FromLong(s->level), *const tuple = PY.PyTuple_New(PARTS);
  prof_i_py *const items[PARTS] = {s->name, s->category, level, s->args, s->shapes};
  bool is_made = level && tuple;
  for (ptrdiff_t i = 0; is_made && i < PARTS; i++) {
    prof_i_py *const item = items[i] ? items[i] : PY.given.none;
    PY.Py_IncRef(item);
    is_made = PY.PyTuple_SetItem(tuple, i, item) == 0;
  }
  prof_i_py_drop(level);
  if (is_made) return tuple;
  prof_i_py_drop(tuple);
  return NULL;
}

static void scope_destroy(prof_i_py *self) {
  prof_i_py_scope *const s = scope_of_object(self);
  free(s->outer);
  PY.Py_DecRef(s->name);
  prof_i_py_drop(s->category);
  prof_i_py_drop(s->args);
  prof_i_py_drop(s->shapes);
  if (scope_module.free_count < FREE_MAX)
    scope_module.free[scope_module.free_count++] = self;
  else
    PY.PyObject_Free(self);
  PY.Py_DecRef(scope_module.type); /* each object holds its type */
}

/* ---- record_function() and scope() ---- */

/* record_function(name, args=None) */
static prof_i_py *record_function(prof_i_py *module, prof_i_py *const *arguments, ptrdiff_t count,
                                  prof_i_py *keywords) {
  prof_i_py *name = count > 0 ? arguments[0] : NULL, *args = count > 1 ? arguments[1] : NULL;
  (void)module;
  if (PROF_I_UNLIKELY(count != 1 || keywords)) {
    const ptrdiff_t keyword_count = keywords ? PY.PyTuple_Size(keywords) : 0;
    for (ptrdiff_t i = 0; i < keyword_count; i++) {
      prof_i_py *const key = PY.PyTuple_GetItem(keywords, i);
      if (!name && PY.PyUnicode_CompareWithASCIIString(key, "name") == 0)
        name = arguments[count + i];
      else if (!args && PY.PyUnicode_CompareWithASCIIString(key, "args") == 0)
        args = arguments[count + i];
      else
        return PY.PyErr_Format(PY.given.type_error,
                               "record_function() got an unexpected argument %.200R", key);
    }
    if (!name || count > 2)
      return PY.PyErr_Format(PY.given.type_error,
                             "record_function() takes a name and args, which may be None");
  }
  known_name *const k = known_name_slot(name, NULL, 1);
  if (k->name != name && !prof_i_py_is_string(name, "record_function", "name")) return NULL;
  if (PROF_I_LIKELY(!args || args == PY.given.none)) return scope_new(name, NULL, 1, NULL, NULL);
  if (!prof_i_py_is_string(args, "record_function", "args")) return NULL;
  prof_i_py *const dict = PY.PyDict_New();
  prof_i_py *const made = dict && PY.PyDict_SetItemString(dict, "args", args) == 0
                              ? scope_new(name, NULL, 1, dict, NULL)
                              : NULL;
  prof_i_py_drop(dict);
  return made;
}

typedef struct scope_words {
  prof_i_py *category, *level, *shapes; /* NULL: not given */
  prof_i_py *args;                      /* a dict, own, or NULL */
} scope_words;

/* False: an error is pending. */
static bool take_keyword(scope_words *w, prof_i_py *key, prof_i_py *value) {
  prof_i_py **word = NULL;
  if (prof_i_py_is_word(key, "category"))
    word = &w->category;
  else if (prof_i_py_is_word(key, "level"))
    word = &w->level;
  else if (prof_i_py_is_word(key, "_shapes"))
    word = &w->shapes;
  if (word && *word) {
    PY.PyErr_Format(PY.given.type_error, "scope() got %.200R twice: by position and by name", key);
    return false;
  }
  if (word) {
    *word = value;
    return true;
  }
  if (!w->args && !(w->args = PY.PyDict_New())) return false;
  return PY.PyDict_SetItem(w->args, key, value) == 0;
}

/* 0: an error is pending. */
static uint32_t read_level(prof_i_py *object) {
  int overflow = 0;
  /* Python 3.9 would take a float */
  const bool is_plain = !object || prof_i_py_is_instance(object, PY.given.integer);
  prof_i_py_own_call call = {0};
  if (!is_plain) call = prof_i_py_own_call_begin(object, "__index__");
  prof_i_py *const number = object ? PY.PyNumber_Index(object) : NULL;
  prof_i_py_own_call_end(call);
  if (object && !number) {
    if (PY.PyErr_ExceptionMatches(PY.given.type_error)) {
      PY.PyErr_Clear();
      prof_i_py_refuse(PY.given.type_error, object, "scope() level must be an int");
    }
    return 0;
  }
  const long long level = number ? PY.PyLong_AsLongLongAndOverflow(number, &overflow) : 1;
  prof_i_py_drop(number);
  if (!overflow && level >= 1 && level <= 2) return (uint32_t)level;
  prof_i_py_refuse(PY.given.value_error, object, "scope() level must be 1 or 2");
  return 0;
}

/* scope(name, /, category="operator", level=1, **args) */
static prof_i_py *scope_method(prof_i_py *module, prof_i_py *const *arguments, ptrdiff_t count,
                               prof_i_py *keywords) {
  (void)module;
  if (count < 1 || count > 3)
    return PY.PyErr_Format(
        PY.given.type_error,
        "scope() takes a name, a category and a level by position, and arguments by name");
  scope_words words = {.category = count > 1 ? arguments[1] : NULL,
                       .level = count > 2 ? arguments[2] : NULL};
  const ptrdiff_t keyword_count = keywords ? PY.PyTuple_Size(keywords) : 0;
  bool is_good = prof_i_py_is_string(arguments[0], "scope", "name");
  for (ptrdiff_t i = 0; is_good && i < keyword_count; i++)
    is_good = take_keyword(&words, PY.PyTuple_GetItem(keywords, i), arguments[count + i]);
  if (is_good && words.category) is_good = prof_i_py_is_string(words.category, "scope", "category");
  const uint32_t level = is_good ? read_level(words.level) : 0;
  if (level && words.shapes && !PY.PySequence_Check(words.shapes)) {
    prof_i_py_refuse(PY.given.type_error, words.shapes,
                     "scope() _shapes must be a sequence of (dtype, dim, ...)");
    is_good = false;
  }
  prof_i_py *const made =
      is_good && level
          ? scope_new(arguments[0], words.category ? words.category : scope_module.operator_text,
                      level, words.args, words.shapes)
          : NULL;
  prof_i_py_drop(words.args);
  return made;
}

/* ---- settings, and the start ---- */

void prof_i_python_stacks_1(int frames) {
  prof_i_python_set_frames(frames < 0                            ? 0
                           : frames < PROF_I_PY_STACK_FRAMES_MAX ? frames
                                                                 : PROF_I_PY_STACK_FRAMES_MAX);
  prof_i_python_functions_stacks(frames > 0);
}

/* *type_out: NULL: an error is pending. */
static void make_scope_type(prof_i_py **type_out) {
  static prof_i_py_method methods[] = {
      {"_copy", (void *)scope_copy, PROF_I_PY_NO_ARGUMENTS, "The same scope, not entered."},
      {"_parts", (void *)scope_parts, PROF_I_PY_NO_ARGUMENTS,
       "Name, category (None: an annotation), level, arguments and shapes. TypeError while it is "
       "entered."},
      {NULL, NULL, 0, NULL}};
  static prof_i_py_member members[] = {
      {"__vectorcalloffset__", PROF_I_PY_MEMBER_SIZE, 0, PROF_I_PY_MEMBER_READ_ONLY, NULL},
      {NULL, 0, 0, 0, NULL}};
  members[0].offset = (ptrdiff_t)(PY.given.head_bytes + offsetof(prof_i_py_scope, vectorcall));
  prof_i_py_slot slots[] = {{PROF_I_PY_SLOT_CALL, (void *)PY.PyVectorcall_Call},
                            {PROF_I_PY_SLOT_DEALLOC, (void *)scope_destroy},
                            {PROF_I_PY_SLOT_METHODS, methods},
                            {PROF_I_PY_SLOT_MEMBERS, members},
                            {PROF_I_PY_SLOT_NEW, (void *)refuse_new},
                            {0, NULL}};
  prof_i_py_spec spec = {"prof.Scope", (int)(PY.given.head_bytes + sizeof(prof_i_py_scope)), 0,
                         PROF_I_PY_DEFAULT_FLAGS | PROF_I_PY_HAS_VECTORCALL, slots};
  *type_out = PY.PyType_FromSpec(&spec);
}

/* The type is never freed. *type_out: NULL: an error is pending. */
static void make_part_type(prof_i_py **type_out) {
  prof_i_py_slot slots[] = {{PROF_I_PY_SLOT_CALL, (void *)call_part},
                            {PROF_I_PY_SLOT_DEALLOC, (void *)destroy_part},
                            {PROF_I_PY_SLOT_GET, (void *)get_part},
                            {PROF_I_PY_SLOT_NEW, (void *)refuse_new},
                            {0, NULL}};
  prof_i_py_spec spec = {"prof.ScopePart", (int)(PY.given.head_bytes + sizeof(part_object)), 0,
                         PROF_I_PY_DEFAULT_FLAGS, slots};
  *type_out = PY.PyType_FromSpec(&spec);
}

/* False: an error is pending. */
static bool add_functions(prof_i_py *names) {
  static prof_i_py_method functions[] = {
      {"record_function", (void *)record_function, PROF_I_PY_FAST | PROF_I_PY_KEYWORDS,
       "record_function(name, args=None)\n--\n\nA scope of the category user_annotation, for "
       "`with` or as a decorator, as torch.profiler.record_function()."},
      {"scope", (void *)scope_method, PROF_I_PY_FAST | PROF_I_PY_KEYWORDS,
       "scope(name, /, category='operator', level=1, **args)\n--\n\nA scope, for `with` or as a "
       "decorator. level: 1 kernels and operators, 2 the runtime around them. args are recorded: "
       "numbers and bools as they are, all else as text."}};
  bool is_made = true;
  for (size_t i = 0; is_made && i < sizeof functions / sizeof *functions; i++) {
    prof_i_py *const function = PY.PyCFunction_NewEx(&functions[i], NULL, NULL);
    is_made = function && PY.PyDict_SetItemString(names, functions[i].name, function) == 0;
    prof_i_py_drop(function);
  }
  return is_made;
}

const char *prof_i_python_1(const prof_i_python_given *given) {
  if (scope_module.is_taken) return "another interpreter of this process has it";
  if (given->size != sizeof *given) return "the package and the library are of different versions";
  const char *const missing = prof_i_python_find();
  if (missing) return missing;
  PY.given = *given;
  PY.Py_IncRef(given->decorate); /* the others live as long as the interpreter */
  prof_i_py *part_type;
  make_scope_type(&scope_module.type);
  make_part_type(&part_type);
  scope_module.operator_text = PY.PyUnicode_FromString("operator");
  const bool is_made = scope_module.type && scope_module.operator_text && part_type &&
                       add_part_type(part_type, "__enter__", PART_ENTER) &&
                       add_part_type(part_type, "__exit__", PART_LEAVE) &&
                       PY.PyDict_SetItemString(given->names, "Scope", scope_module.type) == 0 &&
                       add_functions(given->names) && prof_i_python_make_instants();
  if (!is_made) {
    PY.PyErr_Clear();
    return "Python could not make its types";
  }
  prof_i_py_scope_find_package();
  scope_module.is_taken = true;
  return NULL;
}
