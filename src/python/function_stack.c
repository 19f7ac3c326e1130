/* The open calls of each thread. See functions.h.

   A call is on its thread's stack until its frame is left by a return, a yield or an exception. A
   return without a call is from a frame that is older than the tracing, and is ignored. Frames of a
   thread nest, so no newer call is open then.

   If stacks are requested (a profile with_stack), functions that are open at the start become
   scopes at that time, as in torch.profiler. Each thread does this at its next call.

   Calls of prof's own code are on the stack without a scope. So is the support code that they call,
   and what that calls: the program did not. A function of the program that prof calls is recorded,
   and so is all that it calls. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "../base/process.h"
#include "../core/buffer/thread.h"
#include "functions.h"

#define PY prof_i_python_now
#define NOW prof_i_functions_now
#define HERE prof_i_function_stack_here

enum { STACK_ROOM_FIRST = 64 };

static struct {
  pthread_key_t key; /* frees the stack of a thread that ends */
  /* Protects the list of stacks, because a thread exits without the GIL. A leaf: only realloc() and
     free() are called under it. */
  pthread_mutex_t lock;
  prof_i_function_stack *stacks;
} stack_registry = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* said again: gcc forgets it */
__thread prof_i_function_stack *prof_i_function_stack_here
    __attribute__((tls_model("initial-exec")));

static void end_calls_down_to(prof_i_function_stack *s, size_t count) {
  while (s->count > count) {
    const uint64_t start = s->calls[--s->count].start;
    if (prof_i_function_is_scope(start)) prof_i_end_1(start);
  }
}

/* ---- all threads' stacks ---- */

/* The lock is held. */
static void list_add_stack(prof_i_function_stack *s) {
  s->next = stack_registry.stacks;
  s->at = &stack_registry.stacks;
  if (s->next) s->next->at = &s->next;
  stack_registry.stacks = s;
}
static void list_remove_stack(prof_i_function_stack *s) {
  *s->at = s->next;
  if (s->next) s->next->at = s->at;
}

/* Moves this thread's stack to larger room; NULL: no memory, and the stack is unchanged. */
static prof_i_function_stack *stack_grow(size_t room) {
  prof_i_thread_lock(&stack_registry.lock);
  if (HERE) list_remove_stack(HERE);
  prof_i_function_stack *const larger =
      realloc(HERE, sizeof *larger + room * sizeof *larger->calls);
  if (larger && !HERE) *larger = (prof_i_function_stack){.epoch = NOW.epoch};
  if (larger) HERE = larger;
  if (HERE) list_add_stack(HERE);
  prof_i_thread_unlock(&stack_registry.lock);
  return larger;
}

/* Whether another thread has recorded calls of this tracing that are open. */
static bool has_other_open_calls(void) {
  bool is_open = false;
  prof_i_thread_lock(&stack_registry.lock);
  for (const prof_i_function_stack *s = stack_registry.stacks; s && !is_open; s = s->next)
    for (size_t i = 0; s != HERE && s->epoch == NOW.epoch && i < s->count && !is_open; i++)
      is_open = prof_i_function_is_scope(s->calls[i].start);
  prof_i_thread_unlock(&stack_registry.lock);
  return is_open;
}

/* The stack with room for one more call of this tracing. Its stamp may be older. NULL: no memory,
   and nothing is recorded. If the stack cannot grow, its open calls end: later returns ignore them
   as older than the tracing. */
static PROF_I_COLD prof_i_function_stack *stack_make_room(void) {
  if (HERE && HERE->epoch != NOW.epoch) {
    end_calls_down_to(HERE, 0); /* of a tracing that was stopped while they ran */
    HERE->epoch = NOW.epoch;
  }
  if (HERE && HERE->count < HERE->room) return HERE;
  const size_t room = HERE ? HERE->room * 2 : STACK_ROOM_FIRST;
  prof_i_function_stack *const larger = stack_grow(room);
  if (!larger) {
    if (HERE) end_calls_down_to(HERE, 0);
    return HERE;
  }
  larger->room = room;
  pthread_setspecific(stack_registry.key, larger);
  return larger;
}

/* ---- calls of which Python's side says more ---- */

static PROF_I_COLD uint64_t begin_import(prof_i_py *frame) {
  static prof_site site = {.file = "", .function = "import", .level = 1};
  prof_i_py *const name = prof_i_py_query(NOW.given.import_name, frame);
  if (!name) return 0;
  const prof_i_py_text t = prof_i_py_text_of(name);
  if (t.bytes == 0) { /* it is one of prof's own modules */
    prof_i_py_drop(t.holder);
    PY.Py_DecRef(name);
    return 0;
  }
  const prof_details details = {.name = t.data,
                                .category = "import",
                                .name_bytes = t.bytes,
                                .category_bytes = PROF_NUL_TERMINATED,
                                .flags = PROF_I_CATEGORY_LITERAL,
                                .device = PROF_HOST};
  const uint64_t start = prof_i_begin_details_1(&site, &details);
  prof_i_py_drop(t.holder);
  PY.Py_DecRef(name);
  return start;
}

/* The number of the innermost module call on the stack; 0: none. */
static int64_t enclosing_module(prof_i_function_stack *s) {
  for (; s->module_count > 0; s->module_count--) {
    const prof_i_module_call *const m = &s->modules[s->module_count - 1];
    if (m->place < s->count && s->calls[m->place].start == m->start) return m->number;
  }
  return 0;
}

/* The last call on the stack is a module's. No memory: calls inside of it count as inside of the
   module around it. */
static void keep_module(prof_i_function_stack *s, int64_t number) {
  if (s->module_count == s->module_room) {
    const size_t room = s->module_room ? s->module_room * 2 : STACK_ROOM_FIRST;
    prof_i_module_call *const larger = realloc(s->modules, room * sizeof *larger);
    if (!larger) return;
    s->modules = larger;
    s->module_room = room;
  }
  s->modules[s->module_count++] = (prof_i_module_call){
      .place = s->count - 1, .start = s->calls[s->count - 1].start, .number = number};
}

/* The scope of a module's call: Python's side says (name, its place, number, which of its class),
   or None, where nobody observes modules on this thread. */
static PROF_I_COLD uint64_t begin_module(prof_i_function *f, prof_i_py *frame,
                                         int64_t *number_out) {
  prof_arg items[] = {{.key = "Python id", .type = PROF_ARG_I64},
                      {.key = "Python parent id", .type = PROF_ARG_I64},
                      {.key = "Python module id", .type = PROF_ARG_I64}};
  int overflow = 0;
  prof_i_py *const answer = prof_i_py_query(NOW.given.module_call, frame);
  if (!answer) return 0;
  uint64_t start = 0;
  if (answer == PY.given.none) {
    if (f->is_also_function) start = prof_i_begin_1(&f->site, f->name, f->category);
  } else if ((f = prof_i_function_of_module(answer)) != NULL) {
    *number_out = items[0].value.i64 =
        PY.PyLong_AsLongLongAndOverflow(PY.PyTuple_GetItem(answer, 2), &overflow);
    items[1].value.i64 = HERE ? enclosing_module(HERE) : 0;
    items[2].value.i64 = PY.PyLong_AsLongLongAndOverflow(PY.PyTuple_GetItem(answer, 3), &overflow);
    const prof_details details = {
        .name = f->name,
        .category = prof_i_category_of_python,
        .name_bytes = PROF_NUL_TERMINATED,
        .category_bytes = PROF_NUL_TERMINATED,
        .flags = PROF_I_NAME_LITERAL | PROF_I_CATEGORY_LITERAL,
        .device = PROF_HOST,
        .args = {.items = items, .count = 3, .kind = PROF_ARGS_PAIRS | PROF_I_KEYS_LITERAL}};
    start = prof_i_begin_details_1(&f->site, &details);
  }
  PY.Py_DecRef(answer);
  return start;
}

/* Whether the nearest caller that is not excluded support code is excluded code of the program.
   Such code is not on the stack. The frame that has called prof is not a caller. frame: of the
   call, of a function of C its caller's. */
static bool is_called_by_program(const prof_i_function *called, prof_i_py *frame) {
  if (called->category == prof_i_category_of_c)
    PY.Py_IncRef(frame);
  else
    frame = PY.PyFrame_GetBack(frame);
  const prof_i_function *f = NULL;
  while (frame) {
    if (frame == HERE->own_frame) {
      PY.Py_DecRef(frame);
      return false;
    }
    prof_i_py *const code = PY.PyFrame_GetCode(frame), *const inner = frame;
    f = prof_i_function_known(code);
    if (!f) f = prof_i_function_classify(code, frame);
    PY.Py_DecRef(code);
    const bool is_passed = f && f->function_kind == PROF_I_FUNCTION_EXCLUDED && f->is_support;
    frame = is_passed ? PY.PyFrame_GetBack(frame) : NULL;
    PY.Py_DecRef(inner);
  }
  return f && f->function_kind == PROF_I_FUNCTION_EXCLUDED && !f->is_support;
}

/* Whether the import system calls a function of the program: a finder of sys.meta_path, a path
   hook or a loader. Hooks of installed packages count as support code. frame: of the call. */
static bool is_import_hook(const prof_i_function *called, prof_i_py *frame) {
  static const char importer[] = "<frozen importlib";
  if (called->is_support || called->function_kind != PROF_I_FUNCTION_ORDINARY ||
      strcmp(called->source, "<module>") == 0 || strstr(called->file, "/site-packages/") ||
      strstr(called->file, "/dist-packages/"))
    return false;
  prof_i_py *const caller = PY.PyFrame_GetBack(frame);
  prof_i_py *const code = caller ? PY.PyFrame_GetCode(caller) : NULL;
  prof_i_py *const file = code ? PY.PyObject_GetAttrString(code, "co_filename") : NULL;
  const prof_i_py_text t = file ? prof_i_py_text_of(file) : (prof_i_py_text){"", 0, NULL};
  const bool is = strncmp(t.data, importer, sizeof importer - 1) == 0;
  if (code && !file) PY.PyErr_Clear();
  prof_i_py_drop(t.holder);
  prof_i_py_drop(file);
  prof_i_py_drop(code);
  prof_i_py_drop(caller);
  return is;
}

/* 0, if the program makes the call; QUIET or SILENT. An error may be pending afterwards. */
static uint64_t quiet_start(const prof_i_function *f, prof_i_py *frame) {
  const prof_i_function_stack *const s = HERE;
  if (s->count > 0 && s->calls[s->count - 1].start == PROF_I_FUNCTION_SILENT)
    return is_import_hook(f, frame) ? 0 : PROF_I_FUNCTION_SILENT;
  if (f->function_kind == PROF_I_FUNCTION_OWN)
    return f->is_silent ? PROF_I_FUNCTION_SILENT : PROF_I_FUNCTION_QUIET;
  if (!prof_i_function_is_quiet(s, f) || is_called_by_program(f, frame)) return 0;
  return f->function_kind == PROF_I_FUNCTION_IMPORT ? PROF_I_FUNCTION_SILENT
                                                    : PROF_I_FUNCTION_QUIET;
}

PROF_I_COLD void prof_i_function_begin_special(const prof_i_py *of, prof_i_function *f,
                                               prof_i_py *frame) {
  uint64_t start = quiet_start(f, frame);
  int64_t number = 0;
  if (!start && PROF_I_IS_ON(1)) {
    if (f->function_kind == PROF_I_FUNCTION_IMPORT)
      start = begin_import(frame);
    else if (f->function_kind == PROF_I_FUNCTION_MODULE)
      start = begin_module(f, frame, &number);
    else
      start = prof_i_begin_1(&f->site, f->name, f->category);
  }
  prof_i_function_stack *const s = stack_make_room();
  if (!s || s->count == s->room) {
    if (prof_i_function_is_scope(start)) prof_i_end_1(start);
    return;
  }
  s->calls[s->count++] = (prof_i_function_call){of, start};
  if (number && start) keep_module(s, number);
}

/* ---- methods of values that prof calls ---- */

static const char own_call[] = "own"; /* its address marks such a call on the stack */

bool prof_i_python_functions_begin_own(const prof_i_py **around_out) {
  if (!NOW.is_on || !prof_i_function_stack_prepare(true)) return false;
  prof_i_function_stack *const s = HERE;
  if (!s || s->count == s->room) return false;
  s->calls[s->count++] =
      (prof_i_function_call){(const prof_i_py *)(const void *)own_call, PROF_I_FUNCTION_QUIET};
  *around_out = s->own_frame;
  s->own_frame = PY.PyEval_GetFrame();
  return true;
}

/* The method may have ended the tracing, and started it again. */
void prof_i_python_functions_end_own(const prof_i_py *around) {
  if (!HERE) return;
  HERE->own_frame = around;
  prof_i_function_end_unusual((const prof_i_py *)(const void *)own_call);
}

/* ---- stacks that begin while functions run ---- */

/* Whether all calls on the stack are recorded that are not quiet. */
static bool stack_is_recorded(const prof_i_function_stack *s) {
  bool is_any = false;
  for (size_t i = 0; i < s->count; i++) {
    const uint64_t start = s->calls[i].start;
    if (start >= PROF_I_FUNCTION_QUIET) continue;
    if (!prof_i_scope_is_open(start)) return false;
    is_any = true;
  }
  return is_any;
}

static void end_open_call(uint64_t start) {
  if (prof_i_function_is_scope(start) && prof_i_scope_is_open(start)) prof_i_end_1(start);
}

/* Calls of an older recording must not end in this one. */
static void remove_call(prof_i_function_stack *s) {
  for (; s->count > 0; s->count--) end_open_call(s->calls[s->count - 1].start);
}

/* Classifies the functions of a frame and of its callers. Gives their frames, the innermost first,
   with a reference each. Returns the number. only_own: stops before the first frame that is not
   prof's. No memory, or an error that is pending: 0. The caller frees *frames_out, NULL or not. */
static size_t running_frames(prof_i_py *frame, bool only_own, prof_i_py ***frames_out) {
  size_t count = 0, room = STACK_ROOM_FIRST;
  prof_i_py **frames = *frames_out = malloc(room * sizeof(void *));
  if (!frames) return 0;
  if (frame) PY.Py_IncRef(frame);
  while (frame) {
    if (count == room) {
      prof_i_py **const larger = realloc(frames, 2 * room * sizeof(void *));
      if (!larger) break;
      frames = larger;
      room *= 2;
    }
    prof_i_py *const code = PY.PyFrame_GetCode(frame);
    const prof_i_function *f = prof_i_function_known(code);
    if (!f) f = prof_i_function_classify(code, frame);
    PY.Py_DecRef(code);
    if (only_own && f && f->function_kind != PROF_I_FUNCTION_OWN) {
      PY.Py_DecRef(frame);
      frame = NULL;
      break;
    }
    frames[count++] = frame;
    frame = f ? PY.PyFrame_GetBack(frame) : NULL;
  }
  if (frame || prof_i_py_is_interrupted()) {
    prof_i_py_drop(frame);
    while (count > 0) PY.Py_DecRef(frames[--count]);
  }
  *frames_out = frames;
  return count;
}

/* Begins the call of a frame that runs. */
static void begin_running_call(prof_i_py *frame, prof_i_py *code) {
  prof_i_py *const of = NOW.is_by_frame ? frame : code;
  prof_i_function *const f = prof_i_function_known(code);
  prof_i_function_stack *const s = stack_make_room();
  if (!s || s->count == s->room || !f) return;
  if (f->function_kind == PROF_I_FUNCTION_MODULE || f->function_kind == PROF_I_FUNCTION_OWN ||
      (f->function_kind == PROF_I_FUNCTION_ORDINARY && prof_i_function_is_quiet(s, f)))
    prof_i_function_begin_special(of, f, frame);
  else if (f->function_kind == PROF_I_FUNCTION_ORDINARY)
    s->calls[s->count++] =
        (prof_i_function_call){of, prof_i_begin_1(&f->site, f->name, f->category)};
}

/* The open functions begin, from this frame outwards. */
static void stack_begin_running(prof_i_py *frame, bool only_own) {
  prof_i_py **frames;
  size_t count = running_frames(frame, only_own, &frames);
  remove_call(HERE);
  while (count > 0) {
    prof_i_py *const one = frames[--count], *const code = PY.PyFrame_GetCode(one);
    begin_running_call(one, code);
    PY.Py_DecRef(code); /* its frame has it */
    PY.Py_DecRef(one);
  }
  free(frames);
}

/* If a recording with stacks has begun since the last call of this thread. */
static PROF_I_COLD void stack_renew(prof_i_py *frame) {
  HERE->stamp = NOW.stamp;
  if (NOW.has_stacks && PROF_I_IS_ON(1) && !stack_is_recorded(HERE))
    stack_begin_running(frame, false);
}

/* ---- threads that end ---- */

/* This thread exits, without the GIL. It has open calls if another thread has ended the tracing.
   They end now. */
static void leave_thread(void) {
  prof_i_function_stack *const s = HERE;
  if (!s) return;
  prof_i_thread_lock(&stack_registry.lock);
  size_t count = s->count;
  s->count = 0;
  prof_i_thread_unlock(&stack_registry.lock);
  while (count > 0) end_open_call(s->calls[--count].start);
}

static void stack_free(void *memory) {
  prof_i_function_stack *const s = memory;
  leave_thread();
  HERE = NULL;
  prof_i_thread_lock(&stack_registry.lock);
  list_remove_stack(s);
  prof_i_thread_unlock(&stack_registry.lock);
  free(s->modules);
  free(s);
}

/* In a forked child, begun scopes belong to the parent. The frames of this thread continue. Other
   threads do not exist, and one of them may have held the lock. */
static void clear_starts(void) {
  stack_registry.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
  stack_registry.stacks = NULL;
  if (HERE) list_add_stack(HERE);
  for (size_t i = 0; HERE && i < HERE->count; i++)
    if (prof_i_function_is_scope(HERE->calls[i].start)) HERE->calls[i].start = 0;
}

PROF_I_COLD bool prof_i_function_stack_prepare(bool is_of_c) {
  prof_i_function_stack *const s =
      stack_make_room(); /* before the scope begins: it may end others */
  if (!s || s->stamp == NOW.stamp) return true;
  prof_i_py *const frame = PY.PyEval_GetFrame(), *outer = NULL;
  if (frame && !is_of_c) outer = PY.PyFrame_GetBack(frame);
  stack_renew(is_of_c ? frame : outer);
  prof_i_py_drop(outer);
  stack_make_room();
  return !prof_i_py_is_interrupted();
}

PROF_I_COLD void prof_i_function_end_unusual(const prof_i_py *of) {
  prof_i_function_stack *const s = HERE;
  if (!s || s->epoch != NOW.epoch) return;
  for (size_t i = s->count; i-- > 0;) {
    if (s->calls[i].of != of) continue;
    end_calls_down_to(s, i); /* calls above ended without an event: stacks were switched */
    return;
  }
}

void prof_i_function_begin_running(void) {
  if (!NOW.is_on || !stack_make_room()) return;
  stack_renew(PY.PyEval_GetFrame());
  if (HERE->count == 0) stack_begin_running(PY.PyEval_GetFrame(), true);
}

bool prof_i_function_end_all(void) {
  if (HERE && HERE->epoch == NOW.epoch) end_calls_down_to(HERE, 0);
  return has_other_open_calls();
}

bool prof_i_function_stack_create(void) {
  if (pthread_key_create(&stack_registry.key, stack_free) != 0) return false;
  pthread_atfork(NULL, NULL, clear_starts);
  prof_i_thread_set_exit_callback(leave_thread);
  return true;
}
