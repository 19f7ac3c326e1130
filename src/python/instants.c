/* prof.counter() and prof.instant(): PROF_COUNTER() and PROF_INSTANT() for Python. A
   counter's graph has its own call site, found by the bytes of its name, until the process ends. An
   instant's name is copied. While nothing records, neither reads a value or an argument.
   bindings/python/prof/marks.py does the same if this is not available. Under the GIL. */
#include <prof/profiler.h>
#include <stdlib.h>
#include <string.h>

#include "../base/process.h"
#include "../base/text.h"
#include "internal.h"

#define PY prof_i_python_now

enum {
  COUNTERS_MAX = 4096, /* a limit, because sites are never freed */
  PLACES = 2 * COUNTERS_MAX
};

typedef struct counter_site {
  prof_site site;
  uint32_t bytes;    /* of the name in Python */
  const char *shown; /* the same without NULs inside */
  char name[];
} counter_site;

static struct {
  counter_site *places[PLACES]; /* by hash, with linear probing */
  uint32_t count;
} counter_sites;
static prof_site other_counters = {.file = "", .function = "prof.counter", .level = 1};

/* ---- counters ---- */

static uint64_t text_hash(const prof_i_py_text *name) {
  const uint64_t hash = prof_i_hash64(PROF_I_HASH64_SEED, name->data, name->bytes);
  return hash ^ hash >> 32;
}

/* A C string cannot contain a NUL: U+FFFD replaces it. */
static void text_put_shown(char *to, const prof_i_py_text *name) {
  for (uint32_t i = 0; i < name->bytes; i++) {
    if (name->data[i]) {
      *to++ = name->data[i];
      continue;
    }
    memcpy(to, "\xef\xbf\xbd", 3);
    to += 3;
  }
  *to = '\0';
}

/* NULL: no memory. */
static counter_site *counter_site_make(const prof_i_py_text *name) {
  counter_site *const g = malloc(sizeof *g + 4 * (size_t)name->bytes + 1);
  if (!g) return NULL;
  *g = (counter_site){.site = {.file = "", .function = "prof.counter", .level = 1},
                      .bytes = name->bytes,
                      .shown = g->name + name->bytes};
  memcpy(g->name, name->data, name->bytes);
  text_put_shown(g->name + name->bytes, name);
  return g;
}

/* NULL: it shares other_counters. */
static counter_site *counter_site_find(const prof_i_py_text *name) {
  size_t at = text_hash(name) % PLACES;
  for (; counter_sites.places[at]; at = (at + 1) % PLACES) {
    counter_site *const g = counter_sites.places[at];
    if (g->bytes == name->bytes && memcmp(g->name, name->data, name->bytes) == 0) return g;
  }
  if (counter_sites.count == COUNTERS_MAX) return NULL;
  counter_site *const made = counter_site_make(name);
  if (!made) return NULL;
  counter_sites.places[at] = made;
  counter_sites.count++;
  return made;
}

/* False: an error is pending. */
static bool read_double(prof_i_py *object, double *number_out) {
  const bool is_plain = prof_i_py_is_instance(object, PY.given.real) ||
                        prof_i_py_is_instance(object, PY.given.integer);
  prof_i_py_own_call call = {0};
  if (!is_plain) call = prof_i_py_own_call_begin(object, "__float__");
  *number_out = prof_i_py_is_interrupted() ? 0 : PY.PyFloat_AsDouble(object);
  prof_i_py_own_call_end(call);
  if (!prof_i_py_is_interrupted()) return true;
  if (PY.PyErr_ExceptionMatches(PY.given.type_error)) {
    PY.PyErr_Clear();
    prof_i_py_refuse(PY.given.type_error, object, "counter() value must be a number");
  }
  return false;
}

/* counter(name, value, /) */
static prof_i_py *record_counter(prof_i_py *module, prof_i_py *const *arguments, ptrdiff_t count) {
  double value;
  (void)module;
  if (count != 2)
    return PY.PyErr_Format(PY.given.type_error, "counter() takes a name and a value by position");
  if (!prof_i_py_is_string(arguments[0], "counter", "name")) return NULL;
  if (!PROF_I_IS_ON(1)) return prof_i_py_new_none();
  if (!read_double(arguments[1], &value)) return NULL;
  const prof_i_py_text name = prof_i_py_text_of(arguments[0]);
  counter_site *const g = counter_site_find(&name);
  prof_i_py_drop(name.holder);
  prof_i_counter_1(g ? &g->site : &other_counters, g ? g->shown : "<other counters>", value);
  return prof_i_py_new_none();
}

/* ---- instants ---- */

/* Beside `category`, which is no argument. */
typedef struct argument_words {
  prof_i_py *const *values;
  prof_i_py *keys; /* a tuple, or NULL */
  ptrdiff_t count;
} argument_words;

/* Returns the number of items; -1: an error is pending. An instant in an argument's __str__()
   records no arguments, because that might recurse without end. */
static int add_arguments(const argument_words *from, prof_arg *items, prof_i_py_references *held) {
  int count = 0;
  bool is_good = true;
  if (prof_i_this_flags.is_making_text) return 0;
  prof_i_this_flags.is_making_text = true;
  for (ptrdiff_t i = 0; is_good && i < from->count && count < PROF_ARGS_MAX; i++) {
    prof_i_py *const key = PY.PyTuple_GetItem(from->keys, i);
    if (prof_i_py_is_word(key, "category")) continue;
    is_good = prof_i_py_add_pair(key, from->values[i], &items[count], &held[count]);
    count++;
  }
  prof_i_this_flags.is_making_text = false;
  return is_good ? count : -1;
}

static bool record_instant(prof_i_py *name, prof_i_py *category, const argument_words *from) {
  static prof_site site = {.file = "", .function = "prof.instant", .level = 1};
  prof_arg items[PROF_ARGS_MAX];
  prof_i_py_references held[PROF_ARGS_MAX] = {{{NULL}}};
  const int count = add_arguments(from, items, held);
  if (count >= 0) {
    const prof_i_py_text n = prof_i_py_text_of(name);
    const prof_i_py_text c =
        category ? prof_i_py_text_of(category) : (prof_i_py_text){"instant", 7, NULL};
    const prof_details details = {.name = n.data,
                                  .category = c.data,
                                  .name_bytes = n.bytes,
                                  .category_bytes = c.bytes,
                                  .device = PROF_HOST,
                                  .args = {.items = items, .count = (uint32_t)count}};
    prof_i_instant_1(&site, &details);
    prof_i_py_drop(n.holder);
    prof_i_py_drop(c.holder);
  }
  for (int i = 0; i < PROF_ARGS_MAX; i++) prof_i_py_release(&held[i]);
  return count >= 0;
}

/* False: an error is pending. *category stays where nothing is said. */
static bool find_category(const argument_words *from, prof_i_py **category) {
  for (ptrdiff_t i = 0; i < from->count; i++) {
    if (!prof_i_py_is_word(PY.PyTuple_GetItem(from->keys, i), "category")) continue;
    if (*category) {
      PY.PyErr_SetString(PY.given.type_error,
                         "instant() got 'category' twice: by position and by name");
      return false;
    }
    *category = from->values[i];
  }
  return !*category || prof_i_py_is_string(*category, "instant", "category");
}

/* instant(name, /, category="instant", **args) */
static prof_i_py *instant_method(prof_i_py *module, prof_i_py *const *arguments, ptrdiff_t count,
                                 prof_i_py *keywords) {
  (void)module;
  if (count < 1 || count > 2)
    return PY.PyErr_Format(
        PY.given.type_error,
        "instant() takes a name and a category by position, and arguments by name");
  const argument_words by_name = {arguments + count, keywords,
                                  keywords ? PY.PyTuple_Size(keywords) : 0};
  prof_i_py *category = count > 1 ? arguments[1] : NULL;
  if (!prof_i_py_is_string(arguments[0], "instant", "name")) return NULL;
  if (!find_category(&by_name, &category)) return NULL;
  if (!PROF_I_IS_ON(1)) return prof_i_py_new_none();
  return record_instant(arguments[0], category, &by_name) ? prof_i_py_new_none() : NULL;
}

bool prof_i_python_make_instants(void) {
  static prof_i_py_method functions[] = {
      {"counter", (void *)record_counter, PROF_I_PY_FAST,
       "counter(name, value, /)\n--\n\n"
       "Records a value that a graph of that name has from now on. `name` is a text of the "
       "program, not one made for each call: a process has 4096 graphs, and what comes later is on "
       "\"<other counters>\". While nothing is recorded at level 1, `value` is not looked at. "
       "TypeError, OverflowError, and what float(value) raises. Any thread."},
      {"instant", (void *)instant_method, PROF_I_PY_FAST | PROF_I_PY_KEYWORDS,
       "instant(name, /, category='instant', **args)\n--\n\n"
       "Records a moment: something happened now, on this thread. `args` are recorded as those of "
       "scope(). While nothing is recorded at level 1, they are not looked at. TypeError. Any "
       "thread."}};
  bool is_made = true;
  for (size_t i = 0; is_made && i < sizeof functions / sizeof *functions; i++) {
    prof_i_py *const function = PY.PyCFunction_NewEx(&functions[i], NULL, NULL);
    is_made = function && PY.PyDict_SetItemString(PY.given.names, functions[i].name, function) == 0;
    prof_i_py_drop(function);
  }
  return is_made;
}
