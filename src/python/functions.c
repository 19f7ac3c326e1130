/* Makes every Python function a scope, without changing its code. C callbacks serve sys.monitoring
   (3.12 and later), and a C profile function serves earlier versions. Python's side (functions.py)
   decides once for each code object, and switches tracing on and off. This file has the work of
   each call. It changes nothing that the program can see. The only possible error is an
   interruption of that query. Budget: 1.8x of empty callbacks (bench/python/functions.py). See
   functions.h. */
#define _GNU_SOURCE
#include "functions.h"

#include <dlfcn.h>
#include <prof/python.h>
#include <string.h>

#include "../core/record/change_log.h"

#define PY prof_i_python_now
#define NOW prof_i_functions_now
#define HERE prof_i_function_stack_here

enum {
  PROFILE_CALL = 0,
  PROFILE_RETURN = 3,
  PROFILE_C_CALL = 4,
  PROFILE_C_EXCEPTION = 5,
  PROFILE_C_RETURN = 6
};

static struct {
  prof_i_py *hook;     /* for threads that will be */
  bool is_made, has_c; /* has_c: the profile function looks at functions of C, too */
} tracer;

prof_i_functions prof_i_functions_now;

/* ---- a call ---- */

/* Calls are pushed also while recording is off, because it may continue before they return. False:
   an error is pending. */
static inline bool begin_call(const prof_i_py *of, prof_i_function *f, prof_i_py *frame) {
  prof_i_function_stack *s = HERE;
  if (PROF_I_UNLIKELY(!s || s->count == s->room || s->stamp != NOW.stamp)) {
    if (!prof_i_function_stack_prepare(f->category == prof_i_category_of_c)) return false;
    s = HERE;
    if (!s || s->count == s->room) return true;
  }
  if (PROF_I_UNLIKELY(f->function_kind != PROF_I_FUNCTION_ORDINARY ||
                      prof_i_function_is_quiet(s, f))) {
    prof_i_function_begin_special(of, f, frame ? frame : PY.PyEval_GetFrame());
    return !prof_i_py_is_interrupted();
  }
  s->calls[s->count++] = (prof_i_function_call){
      of, PROF_I_IS_ON(1) ? prof_i_begin_1(&f->site, f->name, f->category) : 0};
  return true;
}

/* False: it is not what was called last. */
static inline bool end_last_call(const prof_i_py *of) {
  prof_i_function_stack *const s = HERE;
  if (PROF_I_UNLIKELY(!s || s->count == 0 || s->calls[s->count - 1].of != of ||
                      s->epoch != NOW.epoch))
    return false;
  const uint64_t start = s->calls[--s->count].start;
  if (PROF_I_LIKELY(prof_i_function_is_scope(start))) prof_i_end_1(start);
  return true;
}

/* ---- sys.monitoring: (code, offset, ...). None, which 3.12 has made immortal ---- */

static inline prof_i_py *disable_event(void) {
  PY.Py_IncRef(NOW.given.disable);
  return NOW.given.disable;
}

/* A function is called, or continues after a yield. */
static prof_i_py *on_begin(prof_i_py *self, prof_i_py *const *arguments, ptrdiff_t count) {
  prof_i_function *f = prof_i_function_known(arguments[0]);
  (void)self, (void)count;
  if (PROF_I_UNLIKELY(!f) && !(f = prof_i_function_classify(arguments[0], PY.PyEval_GetFrame())))
    return NULL;
  if (PROF_I_UNLIKELY(f->function_kind <= PROF_I_FUNCTION_UNKNOWN))
    return f->function_kind == PROF_I_FUNCTION_EXCLUDED ? disable_event() : PY.given.none;
  return PROF_I_LIKELY(begin_call(arguments[0], f, NULL)) ? PY.given.none : NULL;
}

/* It returns, or yields. */
static prof_i_py *on_return(prof_i_py *self, prof_i_py *const *arguments, ptrdiff_t count) {
  (void)self, (void)count;
  if (PROF_I_LIKELY(end_last_call(arguments[0]))) return PY.given.none;
  if (prof_i_function_is_excluded(arguments[0])) return disable_event();
  prof_i_function_end_unusual(arguments[0]);
  return PY.given.none;
}

/* It goes on with an exception. This event and the next cannot be disabled. */
static prof_i_py *on_throw(prof_i_py *self, prof_i_py *const *arguments, ptrdiff_t count) {
  prof_i_py *const answer = on_begin(self, arguments, count);
  if (!answer || answer == PY.given.none) return answer;
  PY.Py_DecRef(answer);
  return PY.given.none;
}

/* An exception leaves it. */
static prof_i_py *on_unwind(prof_i_py *self, prof_i_py *const *arguments, ptrdiff_t count) {
  (void)self, (void)count;
  if (!end_last_call(arguments[0]) && !prof_i_function_is_excluded(arguments[0]))
    prof_i_function_end_unusual(arguments[0]);
  return PY.given.none;
}

/* The function calls something: (code, offset, callable, argument). */
static prof_i_py *on_call(prof_i_py *self, prof_i_py *const *arguments, ptrdiff_t count) {
  prof_i_function *f = prof_i_function_known(arguments[0]);
  (void)self, (void)count;
  if (PROF_I_UNLIKELY(!f) && !(f = prof_i_function_classify(arguments[0], PY.PyEval_GetFrame())))
    return NULL;
  if (f->function_kind != PROF_I_FUNCTION_ORDINARY && f->function_kind != PROF_I_FUNCTION_MODULE)
    return f->function_kind == PROF_I_FUNCTION_UNKNOWN ? PY.given.none : disable_event();
  prof_i_function *const called = prof_i_function_of_c(arguments[2]);
  return PROF_I_LIKELY(called ? begin_call(arguments[2], called, NULL)
                              : !prof_i_py_is_interrupted())
             ? PY.given.none
             : NULL;
}

/* A C function has returned or raised. */
static prof_i_py *on_c_end(prof_i_py *self, prof_i_py *const *arguments, ptrdiff_t count) {
  (void)self, (void)count;
  end_last_call(arguments[2]);
  return PY.given.none;
}

/* ---- before 3.12: a profile function ---- */

/* -1: an error is pending. */
static int begin_frame_call(prof_i_py *frame) {
  prof_i_py *const code = PY.PyFrame_GetCode(frame);
  prof_i_function *f = prof_i_function_known(code);
  if (PROF_I_UNLIKELY(!f)) f = prof_i_function_classify(code, frame);
  PY.Py_DecRef(code); /* the frame has it */
  if (!f) return -1;
  return f->function_kind <= PROF_I_FUNCTION_UNKNOWN || begin_call(frame, f, frame) ? 0 : -1;
}

static void end_frame_call(prof_i_py *frame) {
  if (PROF_I_LIKELY(end_last_call(frame))) return;
  prof_i_py *const code = PY.PyFrame_GetCode(frame);
  if (!prof_i_function_is_excluded(code)) prof_i_function_end_unusual(frame);
  PY.Py_DecRef(code);
}

static int begin_c_call(prof_i_py *frame, prof_i_py *callable) {
  prof_i_py *const code = PY.PyFrame_GetCode(frame);
  /* not classified: it is older than the tracing */
  const prof_i_function *const f = prof_i_function_known(code);
  PY.Py_DecRef(code);
  if (!f ||
      (f->function_kind != PROF_I_FUNCTION_ORDINARY && f->function_kind != PROF_I_FUNCTION_MODULE))
    return 0;
  prof_i_function *const called = prof_i_function_of_c(callable);
  return (called ? begin_call(callable, called, NULL) : !prof_i_py_is_interrupted()) ? 0 : -1;
}

static int on_profile(prof_i_py *object, prof_i_py *frame, int what, prof_i_py *argument) {
  (void)object;
  if (what != PROFILE_CALL && what != PROFILE_RETURN && !tracer.has_c) return 0;
  if (PROF_I_UNLIKELY(!NOW.is_on)) {
    NOW.python.set_profile(NULL, NULL); /* the tracing was stopped by another thread */
    return 0;
  }
  if (what == PROFILE_CALL) return begin_frame_call(frame);
  if (what == PROFILE_C_CALL) return begin_c_call(frame, argument);
  if (what == PROFILE_RETURN)
    end_frame_call(frame);
  else if (what == PROFILE_C_EXCEPTION || what == PROFILE_C_RETURN)
    end_last_call(argument);
  return 0;
}

/* threading calls it in a new thread: (frame, event, argument). It installs the C profile
   function. */
static prof_i_py *on_hook(prof_i_py *self, prof_i_py *const *arguments, ptrdiff_t count) {
  (void)self;
  PY.Py_IncRef(PY.given.none);
  if (count < 2 || !NOW.is_on) {
    NOW.python.set_profile(NULL, NULL);
    return PY.given.none;
  }
  NOW.python.set_profile(on_profile, tracer.hook);
  if (PY.PyUnicode_CompareWithASCIIString(arguments[1], "call") != 0 ||
      begin_frame_call(arguments[0]) == 0)
    return PY.given.none;
  PY.Py_DecRef(PY.given.none);
  return NULL;
}

/* In this thread and all others. */
static void set_profiles(void) {
  void *const interpreter = NOW.python.interpreter();
  NOW.python.set_profile(on_profile, tracer.hook);
  for (void *thread = NOW.python.first_thread(interpreter); NOW.python.set_profile_of && thread;
       thread = NOW.python.next_thread(thread))
    NOW.python.set_profile_of(thread, on_profile, tracer.hook);
}

/* ---- garbage collections ---- */

/* gc.callbacks: (phase, info). One collection at a time, on one thread. */
static prof_i_py *on_gc(prof_i_py *self, prof_i_py *const *arguments, ptrdiff_t count) {
  static const char *const names[] = {"gc collect gen 0", "gc collect gen 1", "gc collect gen 2"};
  static const char *const keys[] = {"generation", "collected", "uncollectable"};
  static prof_site sites[3] = {{.file = "", .function = "gc", .level = 1},
                               {.file = "", .function = "gc", .level = 1},
                               {.file = "", .function = "gc", .level = 1}},
                   end_site = {.file = "", .function = "gc", .level = 1};
  static uint64_t start;
  prof_arg items[3];
  int overflow = 0;
  (void)self;
  PY.Py_IncRef(PY.given.none);
  for (size_t i = 0; count == 2 && i < 3; i++) {
    prof_i_py *const number = PY.PyDict_GetItemString(arguments[1], keys[i]);
    items[i] =
        (prof_arg){.key = keys[i],
                   .type = PROF_ARG_I64,
                   .value.i64 = number ? PY.PyLong_AsLongLongAndOverflow(number, &overflow) : 0};
  }
  if (count != 2) return PY.given.none;
  const int64_t generation = items[0].value.i64;
  if (PY.PyUnicode_CompareWithASCIIString(arguments[0], "start") == 0) {
    start = PROF_I_IS_ON(1) && generation >= 0 && generation < 3
                ? prof_i_begin_1(&sites[generation], names[generation], "gc")
                : 0;
  } else if (start) {
    const prof_details counts = {
        .name = "gc collected",
        .category = "gc",
        .name_bytes = PROF_NUL_TERMINATED,
        .category_bytes = PROF_NUL_TERMINATED,
        .flags = PROF_I_NAME_LITERAL | PROF_I_CATEGORY_LITERAL,
        .device = PROF_HOST,
        .args = {.items = items, .count = 3, .kind = PROF_ARGS_PAIRS | PROF_I_KEYS_LITERAL}};
    prof_i_instant_1(&end_site, &counts);
    prof_i_end_1(start);
    start = 0;
  }
  return PY.given.none;
}

/* ---- on and off ---- */

void prof_i_python_functions_stacks(bool are_wanted) {
  const bool is_begin = are_wanted && !NOW.has_stacks;
  NOW.has_stacks = are_wanted;
  if (!is_begin) return;
  NOW.stamp++;
  prof_i_function_begin_running();
}

/* start(with_profile, with_c), each None or not. A new filter begins, and all code is classified
   again. */
static prof_i_py *start_tracing(prof_i_py *self, prof_i_py *const *arguments, ptrdiff_t count) {
  (void)self, (void)count;
  NOW.epoch++;
  NOW.stamp++;
  NOW.is_on = true;
  NOW.is_by_frame = arguments[0] != PY.given.none;
  prof_i_python_set_traced(true);
  tracer.has_c = arguments[1] != PY.given.none;
  if (arguments[0] != PY.given.none) set_profiles();
  prof_i_function_begin_running();
  if (prof_i_py_is_interrupted()) return NULL;
  return prof_i_py_new_none();
}

/* Open calls of this thread end now. Those of other threads stay open in the trace until their next
   call. The trace records that they are not part of stacks from now on. */
static prof_i_py *stop_tracing(prof_i_py *self, prof_i_py *with_profile) {
  (void)self;
  NOW.is_on = false;
  prof_i_python_set_traced(false);
  if (prof_i_function_end_all()) prof_i_change_log_end_functions();
  NOW.epoch++;
  NOW.stamp++;
  if (with_profile != PY.given.none) NOW.python.set_profile(NULL, NULL);
  return prof_i_py_new_none();
}

/* forget_code(code): the code is classified again at its next call. Returns a true value if it was
   excluded, because then its events may be disabled; else None. */
static prof_i_py *forget_code(prof_i_py *self, prof_i_py *code) {
  prof_i_function *f = NULL;
  (void)self;
  NOW.python.get_extra(code, NOW.index, (void **)&f);
  prof_i_py *const answer =
      f && f->epoch == NOW.epoch && f->function_kind == PROF_I_FUNCTION_EXCLUDED ? NOW.given.disable
                                                                                 : PY.given.none;
  if (f) f->epoch = 0;
  PY.Py_IncRef(answer);
  return answer;
}

static void *first_symbol_of(const char *name, const char *other) {
  void *const found = dlsym(RTLD_DEFAULT, name);
  return found || !other ? found : dlsym(RTLD_DEFAULT, other);
}

/* NULL: all are there. */
static const char *find_python_functions(void) {
  const struct {
    void *to;
    const char *name, *before;
    bool is_needed;
  } list[] = {{&NOW.python.request_index, "PyUnstable_Eval_RequestCodeExtraIndex",
               "_PyEval_RequestCodeExtraIndex", true},
              {&NOW.python.get_extra, "PyUnstable_Code_GetExtra", "_PyCode_GetExtra", true},
              {&NOW.python.set_extra, "PyUnstable_Code_SetExtra", "_PyCode_SetExtra", true},
              {&NOW.python.set_profile, "PyEval_SetProfile", NULL, true},
              {&NOW.python.set_profile_of, "_PyEval_SetProfile", NULL, false},
              {&NOW.python.interpreter, "PyInterpreterState_Get", NULL, true},
              {&NOW.python.first_thread, "PyInterpreterState_ThreadHead", NULL, true},
              {&NOW.python.next_thread, "PyThreadState_Next", NULL, true},
              {&NOW.python.function_of, "PyCFunction_GetFunction", NULL, true},
              {&NOW.python.self_of, "PyCFunction_GetSelf", NULL, true}};
  for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
    void *const found = first_symbol_of(list[i].name, list[i].before);
    if (!found && list[i].is_needed) return list[i].name;
    memcpy(list[i].to, &found, sizeof found);
  }
  return NULL;
}

const char *prof_i_python_functions_1(const prof_i_python_functions_given *given) {
  static prof_i_py_method methods[] = {
      {"on_begin", (void *)on_begin, PROF_I_PY_FAST, NULL},
      {"on_end", (void *)on_return, PROF_I_PY_FAST, NULL},
      {"on_throw", (void *)on_throw, PROF_I_PY_FAST, NULL},
      {"on_unwind", (void *)on_unwind, PROF_I_PY_FAST, NULL},
      {"on_hook", (void *)on_hook, PROF_I_PY_FAST, NULL},
      {"on_gc", (void *)on_gc, PROF_I_PY_FAST, NULL},
      {"on_call", (void *)on_call, PROF_I_PY_FAST, NULL},
      {"on_c_end", (void *)on_c_end, PROF_I_PY_FAST, NULL},
      {"start", (void *)start_tracing, PROF_I_PY_FAST, NULL},
      {"stop", (void *)stop_tracing, PROF_I_PY_ONE_ARGUMENT, NULL},
      {"forget", (void *)forget_code, PROF_I_PY_ONE_ARGUMENT, NULL}};
  if (!PY.given.none) return "prof_i_python_1() comes first";
  if (tracer.is_made) return "it was made before";
  if (given->size != sizeof *given) return "the package and the library are of different versions";
  const char *const missing = find_python_functions();
  if (missing) return missing;
  if (!prof_i_function_code_create() || !prof_i_function_stack_create())
    return "there is no room for what it keeps of each code object or thread";
  NOW.given = *given; /* functions and sys.monitoring's object of a module that stays */
  PY.Py_IncRef(given->judge);
  PY.Py_IncRef(given->import_name);
  PY.Py_IncRef(given->module_call);
  PY.Py_IncRef(given->describe_builtin);
  for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
    prof_i_py *const made = PY.PyCFunction_NewEx(&methods[i], NULL, NULL);
    if (!made || PY.PyDict_SetItemString(given->names, methods[i].name, made) != 0) {
      prof_i_py_drop(made);
      PY.PyErr_Clear();
      return "Python could not make its functions";
    }
    prof_i_function_code_probe(made, &methods[i]);
    if (methods[i].call == (void *)on_hook)
      tracer.hook = made; /* for good */
    else
      PY.Py_DecRef(made);
  }
  tracer.is_made = true;
  return NULL;
}
