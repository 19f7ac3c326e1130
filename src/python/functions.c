/* Every Python function a scope, without touching its code: callbacks of C for sys.monitoring (3.12 and later), a profile function of C before. Python's side (functions.py) says which code is wanted, once for each, and switches on and
   off; here is what happens at each call. It changes nothing that the program can see, and an error is only ever an interruption of that one question.
   Budget: 1.8x of callbacks that do nothing (bench/python/functions.py). All under the GIL.

   A call stands on its thread's stack until its frame is left: by a return, a yield or an exception. What comes back without a call is of a frame that is older than the tracing, and passed over; frames of one thread nest, so none that
   is newer stands open then.

   Where stacks are wanted (a profile with_stack), what stands open when they begin is a scope from there on, as torch.profiler has it: each thread sees to its own when it comes by. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <prof/profiler.h>
#include <prof/python.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "../core/change.h"
#include "../core/entry.h"
#include "interpreter.h"
#include "text.h"

#define PY prof_i_python_now

/* What not every CPython exports by one name. */
typedef struct interface {
  ptrdiff_t (*request_index)(void (*destroy)(void *));
  int (*get_extra)(prof_i_py *code, ptrdiff_t index, void **extra_out);
  int (*set_extra)(prof_i_py *code, ptrdiff_t index, void *extra);
  void (*set_profile)(int (*call)(prof_i_py *, prof_i_py *, int, prof_i_py *), prof_i_py *object);
  int (*set_profile_of)(void *thread, int (*call)(prof_i_py *, prof_i_py *, int, prof_i_py *), prof_i_py *object); /* NULL: it is not to be had */
  void *(*interpreter)(void);
  void *(*first_thread)(void *interpreter);
  void *(*next_thread)(void *thread);
  void *(*function_of)(prof_i_py *builtin);
  prof_i_py *(*self_of)(prof_i_py *builtin);
} interface;

enum { PROFILE_CALL = 0, PROFILE_RETURN = 3, PROFILE_C_CALL = 4, PROFILE_C_EXCEPTION = 5, PROFILE_C_RETURN = 6, STACK_ROOM_FIRST = 64, BUILTIN_BITS = 13 };

typedef enum verdict { VERDICT_LEFT_OUT, VERDICT_UNKNOWN, VERDICT_FUNCTION, VERDICT_MODULE, VERDICT_IMPORT } verdict; /* unknown: it could not be asked for, this time */

/* A code object's own, which goes when it does: its address may then be another's. */
typedef struct function {
  prof_site site;
  uint64_t epoch; /* that it was judged in */
  verdict verdict;
  bool is_of_many; /* of a function of C: pybind11's, which calls all of its functions; they are known by the object that they are given */
  bool is_also_function; /* of a module's call: so it is where nobody names the module */
  const char *category;
  char *name, *source, *file; /* malloc()ed; NULL: none yet */
} function;

typedef struct call {
  const prof_i_py *of; /* the code, which its frame holds, or the frame itself, by which way the call was seen */
  uint64_t start;      /* 0: not recorded */
} call;

/* A call of an nn.Module, as its stack has it. */
typedef struct module {
  size_t place;
  uint64_t start; /* of the call that stood there: another one has another */
  int64_t number;
} module;

typedef struct stack {
  struct stack *next, **at; /* among all threads'; the lock is of these */
  module *modules; /* malloc()ed; those that are over lie on top until somebody looks */
  size_t module_count, module_room;
  uint64_t stamp; /* own.stamp when it was last seen to be right */
  uint64_t epoch; /* own.epoch, the same */
  size_t count, room;
  call calls[];
} stack;

/* A function of C, known by its address; a method by its descriptor, one of pybind11's by its object, which are held. */
typedef struct builtin {
  const void *key; /* NULL: nobody's place */
  function *function;
} builtin;

static struct {
  interface python;
  prof_i_python_functions_given given;
  prof_i_py *hook; /* for threads that will be */
  ptrdiff_t index; /* of functions among what code objects hold */
  pthread_key_t key; /* frees the stack of a thread that ends */
  uint64_t epoch;  /* of the filter */
  uint64_t stamp;  /* another one with each epoch, and each time that stacks begin */
  bool has_stacks; /* somebody wants them */
  bool is_on, is_made, is_by_frame, /* by_frame: the stack's calls are frames, not code */ has_c; /* has_c: the profile function looks at functions of C, too */
  builtin builtins[1 << BUILTIN_BITS];
  uint32_t builtin_count;
  function **modules; /* by the place of a name, which Python's side gives: they stay, as that does */
  size_t module_room;
  pthread_mutex_t lock; /* of the list of stacks, which a thread leaves without the GIL; a leaf: nothing is called under it but realloc() and free() */
  stack *stacks;
} own = {.lock = PTHREAD_MUTEX_INITIALIZER};

static __thread stack *here __attribute__((tls_model("initial-exec")));

static const char of_python[] = "python_function", of_c[] = "c_function"; /* the first as Kineto calls it */

static void drop(prof_i_py *object) {
  if (object) PY.Py_DecRef(object);
}

/* ---- which code is wanted ---- */

static void destroy_function(void *extra) {
  function *const f = extra;
  if (!f) return;
  free(f->name);
  free(f->source);
  free(f->file);
  free(f);
}

static char *copied(prof_i_py *string) {
  const prof_i_py_text t = prof_i_py_text_of(string);
  char *const copy = malloc(t.bytes + 1);
  if (copy) {
    memcpy(copy, t.data, t.bytes);
    copy[t.bytes] = '\0';
  }
  drop(t.holder);
  return copy;
}

/* Of (name, function, file, line). */
static bool describe(function *f, prof_i_py *answer, const char *category) {
  int overflow = 0;
  f->category = category;
  f->name = copied(PY.PyTuple_GetItem(answer, 0));
  f->source = copied(PY.PyTuple_GetItem(answer, 1));
  f->file = copied(PY.PyTuple_GetItem(answer, 2));
  const long long line = PY.PyLong_AsLongLongAndOverflow(PY.PyTuple_GetItem(answer, 3), &overflow);
  f->site = (prof_site){.file = f->file, .function = f->source, .line = (uint32_t)line, .level = 1};
  if (f->name && f->source && f->file) return true;
  free(f->name);
  free(f->source);
  free(f->file);
  f->name = f->source = f->file = NULL;
  return false;
}

static prof_i_py *ask_once(prof_i_py *callable, prof_i_py *object) {
  prof_i_py *const arguments = PY.PyTuple_New(1);
  if (!arguments) return NULL;
  PY.Py_IncRef(object);
  PY.PyTuple_SetItem(arguments, 0, object);
  prof_i_py *const answer = PY.PyObject_CallObject(callable, arguments);
  PY.Py_DecRef(arguments);
  return answer;
}

static bool is_interrupted(void) { return PY.PyErr_Occurred() != NULL; }

/* What Python's side says. NULL: an error is pending where it was interrupted; none where it failed, at the end of a recursion, say, which is nobody's concern. Handlers of signals run inside of it, too: what they raise is told from
   its own by asking once more. */
static PROF_I_COLD prof_i_py *ask(prof_i_py *callable, prof_i_py *object) {
  prof_i_py *type, *error, *traceback, *answer = ask_once(callable, object);
  if (answer || !PY.PyErr_ExceptionMatches(PY.given.exception)) return answer;
  PY.PyErr_Fetch(&type, &error, &traceback);
  if ((answer = ask_once(callable, object)) != NULL) {
    PY.Py_DecRef(answer);
    PY.PyErr_Restore(type, error, traceback);
    return NULL;
  }
  drop(type);
  drop(error);
  drop(traceback);
  if (PY.PyErr_ExceptionMatches(PY.given.exception)) PY.PyErr_Clear();
  return NULL;
}

/* judge()'s answer: None, leave it out; given's `import`; a tuple, a function, of five a module's call, and whether it is a function otherwise. It is kept with the code. NULL: no memory. */
static function *take_answer(prof_i_py *code, prof_i_py *answer) {
  function *f = NULL;
  own.python.get_extra(code, own.index, (void **)&f); /* now: another thread may have asked meanwhile */
  if (!f) {
    f = calloc(1, sizeof *f);
    if (f && own.python.set_extra(code, own.index, f) != 0) {
      free(f);
      f = NULL;
    }
  }
  if (!f) return NULL;
  if (answer == PY.given.none) f->verdict = VERDICT_LEFT_OUT;
  else if (answer == own.given.import) f->verdict = VERDICT_IMPORT;
  else f->verdict = f->name || describe(f, answer, of_python) ? VERDICT_FUNCTION : VERDICT_LEFT_OUT; /* what was learnt for another filter is still so */
  if (f->verdict == VERDICT_FUNCTION && PY.PyTuple_Size(answer) == 5) {
    int overflow = 0;
    f->verdict = VERDICT_MODULE;
    f->is_also_function = PY.PyLong_AsLongLongAndOverflow(PY.PyTuple_GetItem(answer, 4), &overflow) != 0;
  }
  f->epoch = own.epoch;
  return f;
}

/* NULL: an error is pending. An exception that is thrown into the function may be pending before, and is behind it. */
static PROF_I_COLD function *judge(prof_i_py *code, prof_i_py *frame) {
  static function unknown = {.verdict = VERDICT_UNKNOWN};
  prof_i_py *type, *error, *traceback;
  PY.PyErr_Fetch(&type, &error, &traceback);
  prof_i_py *const answer = ask(own.given.judge, frame);
  function *const f = answer ? take_answer(code, answer) : NULL;
  if (!answer && is_interrupted()) {
    drop(type);
    drop(error);
    drop(traceback);
    return NULL;
  }
  drop(answer);
  PY.PyErr_Restore(type, error, traceback); /* in place of what set_extra() may have raised, too */
  return f ? f : &unknown;
}

/* held: what the key is of; NULL: of nothing that could go. */
static PROF_I_COLD function *new_builtin(builtin *place, const void *key, prof_i_py *callable, prof_i_py *held) {
  prof_i_py *const answer = ask(own.given.describe_builtin, callable);
  if (!answer) return NULL;
  function *const f = answer != PY.given.none && !place->key && own.builtin_count < 3u << (BUILTIN_BITS - 2) ? calloc(1, sizeof *f) : NULL; /* there is always a free place */
  if (f && describe(f, answer, of_c)) {
    f->verdict = VERDICT_FUNCTION;
    f->is_of_many = f->site.line && !held;
    f->site.line = 0;
    if (held) PY.Py_IncRef(held);
    *place = (builtin){key, f};
    own.builtin_count++;
  } else {
    destroy_function(f);
  }
  PY.Py_DecRef(answer);
  return place->key == key ? place->function : NULL;
}

/* NULL: it is not wanted. */
static inline function *builtin_by(const void *key, prof_i_py *callable, prof_i_py *held) {
  size_t at = (size_t)((uint64_t)(uintptr_t)key * UINT64_C(0x9e3779b97f4a7c15) >> (64 - BUILTIN_BITS));
  while (own.builtins[at].key && own.builtins[at].key != key) at = (at + 1) & ((1u << BUILTIN_BITS) - 1);
  return PROF_I_LIKELY(own.builtins[at].key != NULL) ? own.builtins[at].function : new_builtin(&own.builtins[at], key, callable, held);
}

/* NULL: it is no function of C, or not wanted. An error may be pending behind it. */
static function *builtin_of(prof_i_py *callable) {
  prof_i_py *const type = PY.PyObject_Type(callable);
  const void *key = NULL;
  prof_i_py *held = NULL;
  if (type == own.given.builtin_type) key = own.python.function_of(callable);
  else if (type == own.given.descriptor_type) key = held = callable;
  PY.Py_DecRef(type); /* it is of the interpreter's own, or not looked at */
  if (!key) return NULL;
  function *const f = builtin_by(key, callable, held);
  if (PROF_I_LIKELY(!f || !f->is_of_many)) return f;
  held = own.python.self_of(callable);
  return held ? builtin_by(held, callable, held) : NULL;
}

static inline function *known(prof_i_py *code) {
  function *f = NULL;
  own.python.get_extra(code, own.index, (void **)&f);
  return f && PROF_I_LIKELY(f->epoch == own.epoch) ? f : NULL;
}

/* ---- what stands open ---- */

static void end_down_to(stack *s, size_t count) {
  while (s->count > count) {
    const uint64_t start = s->calls[--s->count].start;
    if (start) prof_i_end_1(start);
  }
}

/* The lock is held. */
static void enter_list(stack *s) {
  s->next = own.stacks;
  s->at = &own.stacks;
  if (s->next) s->next->at = &s->next;
  own.stacks = s;
}
static void leave_list(stack *s) {
  *s->at = s->next;
  if (s->next) s->next->at = s->at;
}

/* This thread's with that room, which moves; NULL: no memory, and it is as it was. */
static stack *grown(size_t room) {
  pthread_mutex_lock(&own.lock);
  if (here) leave_list(here);
  stack *const larger = realloc(here, sizeof *larger + room * sizeof *larger->calls);
  if (larger && !here) *larger = (stack){.epoch = own.epoch};
  if (larger) here = larger;
  if (here) enter_list(here);
  pthread_mutex_unlock(&own.lock);
  return larger;
}

/* Does anything that this tracing has recorded stand open on another thread? */
static bool others_stand_open(void) {
  bool is_open = false;
  pthread_mutex_lock(&own.lock);
  for (const stack *s = own.stacks; s && !is_open; s = s->next)
    for (size_t i = 0; s != here && s->epoch == own.epoch && i < s->count && !is_open; i++) is_open = s->calls[i].start != 0;
  pthread_mutex_unlock(&own.lock);
  return is_open;
}

/* The stack with room for one more, of this tracing, but perhaps of an older stamp; NULL: no memory, and nothing is recorded. Where it cannot grow, what stands open is cut short: to the calls that come, it is older than the tracing. */
static PROF_I_COLD stack *make_room(void) {
  if (here && here->epoch != own.epoch) {
    end_down_to(here, 0); /* of a tracing that was stopped while they ran */
    here->epoch = own.epoch;
  }
  if (here && here->count < here->room) return here;
  const size_t room = here ? here->room * 2 : STACK_ROOM_FIRST;
  stack *const larger = grown(room);
  if (!larger) {
    if (here) end_down_to(here, 0);
    return here;
  }
  larger->room = room;
  pthread_setspecific(own.key, larger);
  return larger;
}

static PROF_I_COLD uint64_t begin_import(prof_i_py *frame) {
  static prof_site site = {.file = "", .function = "import", .level = 1};
  prof_i_py *const name = ask(own.given.import_name, frame);
  if (!name) return 0;
  const prof_i_py_text t = prof_i_py_text_of(name);
  const prof_details details = {.name = t.data, .category = "import", .name_bytes = t.bytes, .category_bytes = PROF_NUL_TERMINATED, .flags = PROF_I_CATEGORY_LITERAL, .device = PROF_HOST};
  const uint64_t start = prof_i_begin_details_1(&site, &details);
  drop(t.holder);
  PY.Py_DecRef(name);
  return start;
}

/* The number of the module's call that what begins here stands in; 0: none. */
static int64_t module_around(stack *s) {
  for (; s->module_count > 0; s->module_count--) {
    const module *const m = &s->modules[s->module_count - 1];
    if (m->place < s->count && s->calls[m->place].start == m->start) return m->number;
  }
  return 0;
}

/* What comes last on the stack is one. No memory: those inside of it are told to be of the one around it. */
static void keep_module(stack *s, int64_t number) {
  if (s->module_count == s->module_room) {
    const size_t room = s->module_room ? s->module_room * 2 : STACK_ROOM_FIRST;
    module *const larger = realloc(s->modules, room * sizeof *larger);
    if (!larger) return;
    s->modules = larger;
    s->module_room = room;
  }
  s->modules[s->module_count++] = (module){.place = s->count - 1, .start = s->calls[s->count - 1].start, .number = number};
}

/* Of (name, place, ...), which is asked for at each call: a name of its own in the catalog, as a frame has to have. NULL: no memory. */
static function *named_module(prof_i_py *answer) {
  int overflow = 0;
  const size_t place = (size_t)PY.PyLong_AsLongLongAndOverflow(PY.PyTuple_GetItem(answer, 1), &overflow);
  if (place >= own.module_room) {
    const size_t room = 2 * place + STACK_ROOM_FIRST;
    function **const larger = realloc(own.modules, room * sizeof *larger);
    if (!larger) return NULL;
    memset(larger + own.module_room, 0, (room - own.module_room) * sizeof *larger);
    own.modules = larger;
    own.module_room = room;
  }
  function *f = own.modules[place];
  if (f) return f;
  f = calloc(1, sizeof *f);
  if (f) f->name = copied(PY.PyTuple_GetItem(answer, 0));
  if (!f || !f->name) {
    free(f);
    return NULL;
  }
  f->site = (prof_site){.file = "", .function = "", .level = 1};
  own.modules[place] = f;
  return f;
}

/* The scope of a module's call: Python's side says (name, its place, number, which of its class), or None, where nobody observes modules on this thread. */
static PROF_I_COLD uint64_t begin_module(function *f, prof_i_py *frame, int64_t *number_out) {
  prof_arg items[] = {{.key = "Python id", .type = PROF_ARG_I64}, {.key = "Python parent id", .type = PROF_ARG_I64}, {.key = "Python module id", .type = PROF_ARG_I64}};
  int overflow = 0;
  prof_i_py *const answer = ask(own.given.module_call, frame);
  if (!answer) return 0;
  uint64_t start = 0;
  if (answer == PY.given.none) {
    if (f->is_also_function) start = prof_i_begin_1(&f->site, f->name, f->category);
  } else if ((f = named_module(answer)) != NULL) {
    *number_out = items[0].value.i64 = PY.PyLong_AsLongLongAndOverflow(PY.PyTuple_GetItem(answer, 2), &overflow);
    items[1].value.i64 = here ? module_around(here) : 0;
    items[2].value.i64 = PY.PyLong_AsLongLongAndOverflow(PY.PyTuple_GetItem(answer, 3), &overflow);
    const prof_details details = {.name = f->name, .category = of_python, .name_bytes = PROF_NUL_TERMINATED, .category_bytes = PROF_NUL_TERMINATED, .flags = PROF_I_NAME_LITERAL | PROF_I_CATEGORY_LITERAL, .device = PROF_HOST,
                                  .args = {.items = items, .count = 3, .kind = PROF_ARGS_PAIRS | PROF_I_KEYS_LITERAL}};
    start = prof_i_begin_details_1(&f->site, &details);
  }
  PY.Py_DecRef(answer);
  return start;
}

/* A call of which Python's side says more. Meanwhile handlers of signals may have used the stack. */
static PROF_I_COLD void begin_asked(const prof_i_py *of, function *f, prof_i_py *frame) {
  uint64_t start = 0;
  int64_t number = 0;
  if (PROF_I_IS_ON(1)) start = f->verdict == VERDICT_IMPORT ? begin_import(frame) : begin_module(f, frame, &number);
  stack *const s = make_room();
  if (!s || s->count == s->room) {
    if (start) prof_i_end_1(start);
    return;
  }
  s->calls[s->count++] = (call){of, start};
  if (number && start) keep_module(s, number);
}

/* Is what stands here recorded, all of it? */
static bool is_recorded(const stack *s) {
  for (size_t i = 0; i < s->count; i++)
    if (!prof_i_scope_stands_open(s->calls[i].start)) return false;
  return s->count > 0;
}

/* What of an older recording is on the stack is not to be ended in this one. */
static void take_off(stack *s) {
  for (; s->count > 0; s->count--)
    if (prof_i_scope_stands_open(s->calls[s->count - 1].start)) prof_i_end_1(s->calls[s->count - 1].start);
}

/* Judges what stands around a frame, and itself, and gives it, the innermost first, with a reference each: how many. No memory, or an error that is pending: 0. */
static size_t running_frames(prof_i_py *frame, prof_i_py ***frames_out) {
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
    frames[count++] = frame;
    const bool is_judged = known(code) || judge(code, frame);
    PY.Py_DecRef(code);
    frame = is_judged ? PY.PyFrame_GetBack(frame) : NULL;
  }
  if (frame || is_interrupted()) {
    drop(frame);
    while (count > 0) PY.Py_DecRef(frames[--count]);
  }
  *frames_out = frames;
  return count;
}

/* Recording with stacks has begun since this thread came by: what stands open here, out from that frame, begins. */
static PROF_I_COLD void renew(prof_i_py *frame) {
  prof_i_py **frames;
  here->stamp = own.stamp;
  if (!own.has_stacks || !PROF_I_IS_ON(1) || is_recorded(here)) return;
  size_t count = running_frames(frame, &frames);
  take_off(here);
  while (count > 0) {
    prof_i_py *const one = frames[--count], *const code = PY.PyFrame_GetCode(one);
    function *const f = known(code);
    stack *const s = make_room();
    if (s && f && f->verdict == VERDICT_MODULE) begin_asked(own.is_by_frame ? one : code, f, one);
    else if (s && f && f->verdict == VERDICT_FUNCTION) s->calls[s->count++] = (call){own.is_by_frame ? one : code, prof_i_begin_1(&f->site, f->name, f->category)};
    PY.Py_DecRef(code); /* its frame has it */
    PY.Py_DecRef(one);
  }
  free(frames);
}

/* This thread goes, without the GIL: what stands open here, since another one has ended the tracing, ends while it can. */
static void leave(void) {
  stack *const s = here;
  if (!s) return;
  pthread_mutex_lock(&own.lock);
  size_t count = s->count;
  s->count = 0;
  pthread_mutex_unlock(&own.lock);
  while (count > 0)
    if (prof_i_scope_stands_open(s->calls[--count].start)) prof_i_end_1(s->calls[count].start);
}

static void free_stack(void *memory) {
  stack *const s = memory;
  leave();
  here = NULL;
  pthread_mutex_lock(&own.lock);
  leave_list(s);
  pthread_mutex_unlock(&own.lock);
  free(s->modules);
  free(s);
}

/* In a forked child: what its parent had begun is the parent's. The frames are the child's; other threads' are nobody's, and one of them may have had the lock. */
static void forget_starts(void) {
  own.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
  own.stacks = NULL;
  if (here) enter_list(here);
  for (size_t i = 0; here && i < here->count; i++) here->calls[i].start = 0;
}

/* What is called is the frame at hand, or stands in it: a function of C. False: an error is pending. */
static PROF_I_COLD bool make_ready(bool is_of_c) {
  stack *const s = make_room(); /* before the scope begins: it may end others */
  if (!s || s->stamp == own.stamp) return true;
  prof_i_py *const frame = PY.PyEval_GetFrame(), *outer = NULL;
  if (frame && !is_of_c) outer = PY.PyFrame_GetBack(frame);
  renew(is_of_c ? frame : outer);
  drop(outer);
  make_room();
  return !is_interrupted();
}

/* Off, calls stand here all the same: recording may go on before they return. False: an error is pending. */
static inline bool begin(const prof_i_py *of, function *f, prof_i_py *frame) {
  stack *s = here;
  if (PROF_I_UNLIKELY(!s || s->count == s->room || s->stamp != own.stamp)) {
    if (!make_ready(f->category == of_c)) return false;
    s = here;
    if (!s || s->count == s->room) return true;
  }
  if (PROF_I_UNLIKELY(f->verdict != VERDICT_FUNCTION)) {
    begin_asked(of, f, frame ? frame : PY.PyEval_GetFrame());
    return !is_interrupted();
  }
  s->calls[s->count++] = (call){of, PROF_I_IS_ON(1) ? prof_i_begin_1(&f->site, f->name, f->category) : 0};
  return true;
}

static PROF_I_COLD void end_unusual(const prof_i_py *of) {
  stack *const s = here;
  if (!s || s->epoch != own.epoch) return;
  for (size_t i = s->count; i-- > 0;) {
    if (s->calls[i].of != of) continue;
    end_down_to(s, i); /* those above were left without a word: stacks were switched */
    return;
  }
}

/* False: it is not what was called last. */
static inline bool end_last(const prof_i_py *of) {
  stack *const s = here;
  if (PROF_I_UNLIKELY(!s || s->count == 0 || s->calls[s->count - 1].of != of || s->epoch != own.epoch)) return false;
  const uint64_t start = s->calls[--s->count].start;
  if (PROF_I_LIKELY(start)) prof_i_end_1(start);
  return true;
}

static inline bool is_left_out(prof_i_py *code) {
  const function *const f = known(code);
  return f && f->verdict == VERDICT_LEFT_OUT;
}

/* ---- sys.monitoring: (code, offset, ...). None, which 3.12 has made immortal ---- */

static inline prof_i_py *disable(void) {
  PY.Py_IncRef(own.given.disable);
  return own.given.disable;
}

/* A function is called, or goes on behind a yield. */
static prof_i_py *on_begin(prof_i_py *self, prof_i_py *const *arguments, ptrdiff_t count) {
  function *f = known(arguments[0]);
  (void)self, (void)count;
  if (PROF_I_UNLIKELY(!f) && !(f = judge(arguments[0], PY.PyEval_GetFrame()))) return NULL;
  if (PROF_I_UNLIKELY(f->verdict <= VERDICT_UNKNOWN)) return f->verdict == VERDICT_LEFT_OUT ? disable() : PY.given.none;
  return PROF_I_LIKELY(begin(arguments[0], f, NULL)) ? PY.given.none : NULL;
}

/* It returns, or yields. */
static prof_i_py *on_end(prof_i_py *self, prof_i_py *const *arguments, ptrdiff_t count) {
  (void)self, (void)count;
  if (PROF_I_LIKELY(end_last(arguments[0]))) return PY.given.none;
  if (is_left_out(arguments[0])) return disable();
  end_unusual(arguments[0]);
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
  if (!end_last(arguments[0]) && !is_left_out(arguments[0])) end_unusual(arguments[0]);
  return PY.given.none;
}

/* The function calls something: (code, offset, callable, argument). */
static prof_i_py *on_call(prof_i_py *self, prof_i_py *const *arguments, ptrdiff_t count) {
  function *f = known(arguments[0]);
  (void)self, (void)count;
  if (PROF_I_UNLIKELY(!f) && !(f = judge(arguments[0], PY.PyEval_GetFrame()))) return NULL;
  if (f->verdict != VERDICT_FUNCTION && f->verdict != VERDICT_MODULE) return f->verdict == VERDICT_UNKNOWN ? PY.given.none : disable();
  function *const called = builtin_of(arguments[2]);
  return PROF_I_LIKELY(called ? begin(arguments[2], called, NULL) : !is_interrupted()) ? PY.given.none : NULL;
}

/* A function of C is over, well or badly. */
static prof_i_py *on_c_end(prof_i_py *self, prof_i_py *const *arguments, ptrdiff_t count) {
  (void)self, (void)count;
  end_last(arguments[2]);
  return PY.given.none;
}

/* ---- before 3.12: a profile function ---- */

/* -1: an error is pending. */
static int call_of(prof_i_py *frame) {
  prof_i_py *const code = PY.PyFrame_GetCode(frame);
  function *f = known(code);
  if (PROF_I_UNLIKELY(!f)) f = judge(code, frame);
  PY.Py_DecRef(code); /* the frame has it */
  if (!f) return -1;
  return f->verdict <= VERDICT_UNKNOWN || begin(frame, f, frame) ? 0 : -1;
}

static void return_of(prof_i_py *frame) {
  if (PROF_I_LIKELY(end_last(frame))) return;
  prof_i_py *const code = PY.PyFrame_GetCode(frame);
  if (!is_left_out(code)) end_unusual(frame);
  PY.Py_DecRef(code);
}

static int c_call_of(prof_i_py *frame, prof_i_py *callable) {
  prof_i_py *const code = PY.PyFrame_GetCode(frame);
  const function *const f = known(code); /* not judged: it is older than the tracing */
  PY.Py_DecRef(code);
  if (!f || (f->verdict != VERDICT_FUNCTION && f->verdict != VERDICT_MODULE)) return 0;
  function *const called = builtin_of(callable);
  return (called ? begin(callable, called, NULL) : !is_interrupted()) ? 0 : -1;
}

static int on_profile(prof_i_py *object, prof_i_py *frame, int what, prof_i_py *argument) {
  (void)object;
  if (what != PROFILE_CALL && what != PROFILE_RETURN && !own.has_c) return 0;
  if (PROF_I_UNLIKELY(!own.is_on)) {
    own.python.set_profile(NULL, NULL); /* the tracing was stopped by another thread */
    return 0;
  }
  if (what == PROFILE_CALL) return call_of(frame);
  if (what == PROFILE_C_CALL) return c_call_of(frame, argument);
  if (what == PROFILE_RETURN) return_of(frame);
  else if (what == PROFILE_C_EXCEPTION || what == PROFILE_C_RETURN) end_last(argument);
  return 0;
}

/* What threading calls in a thread that begins: (frame, event, argument). From then on it is C's. */
static prof_i_py *on_hook(prof_i_py *self, prof_i_py *const *arguments, ptrdiff_t count) {
  (void)self;
  PY.Py_IncRef(PY.given.none);
  if (count < 2 || !own.is_on) {
    own.python.set_profile(NULL, NULL);
    return PY.given.none;
  }
  own.python.set_profile(on_profile, own.hook);
  if (PY.PyUnicode_CompareWithASCIIString(arguments[1], "call") != 0 || call_of(arguments[0]) == 0) return PY.given.none;
  PY.Py_DecRef(PY.given.none);
  return NULL;
}

/* Here, and in all threads that there are. */
static void set_profiles(void) {
  void *const interpreter = own.python.interpreter();
  own.python.set_profile(on_profile, own.hook);
  for (void *thread = own.python.first_thread(interpreter); own.python.set_profile_of && thread; thread = own.python.next_thread(thread)) own.python.set_profile_of(thread, on_profile, own.hook);
}

/* ---- garbage collections ---- */

/* gc.callbacks: (phase, info). One collection at a time, on one thread. */
static prof_i_py *on_gc(prof_i_py *self, prof_i_py *const *arguments, ptrdiff_t count) {
  static const char *const names[] = {"gc collect gen 0", "gc collect gen 1", "gc collect gen 2"};
  static const char *const keys[] = {"generation", "collected", "uncollectable"};
  static prof_site sites[3] = {{.file = "", .function = "gc", .level = 1}, {.file = "", .function = "gc", .level = 1}, {.file = "", .function = "gc", .level = 1}}, end_site = {.file = "", .function = "gc", .level = 1};
  static uint64_t start;
  prof_arg items[3];
  int overflow = 0;
  (void)self;
  PY.Py_IncRef(PY.given.none);
  for (size_t i = 0; count == 2 && i < 3; i++) {
    prof_i_py *const number = PY.PyDict_GetItemString(arguments[1], keys[i]);
    items[i] = (prof_arg){.key = keys[i], .type = PROF_ARG_I64, .value.i64 = number ? PY.PyLong_AsLongLongAndOverflow(number, &overflow) : 0};
  }
  if (count != 2) return PY.given.none;
  const int64_t generation = items[0].value.i64;
  if (PY.PyUnicode_CompareWithASCIIString(arguments[0], "start") == 0) {
    start = PROF_I_IS_ON(1) && generation >= 0 && generation < 3 ? prof_i_begin_1(&sites[generation], names[generation], "gc") : 0;
  } else if (start) {
    const prof_details counts = {.name = "gc collected", .category = "gc", .name_bytes = PROF_NUL_TERMINATED, .category_bytes = PROF_NUL_TERMINATED, .flags = PROF_I_NAME_LITERAL | PROF_I_CATEGORY_LITERAL, .device = PROF_HOST,
                                 .args = {.items = items, .count = 3, .kind = PROF_ARGS_PAIRS | PROF_I_KEYS_LITERAL}};
    prof_i_instant_1(&end_site, &counts);
    prof_i_end_1(start);
    start = 0;
  }
  return PY.given.none;
}

/* ---- on and off ---- */

/* What runs on this thread begins, where stacks are wanted. An error may be pending behind it. */
static void begin_running(void) {
  if (own.is_on && own.has_stacks && PROF_I_IS_ON(1) && make_room()) renew(PY.PyEval_GetFrame());
}

void prof_i_python_functions_stacks(bool are_wanted) {
  const bool is_begin = are_wanted && !own.has_stacks;
  own.has_stacks = are_wanted;
  if (!is_begin) return;
  own.stamp++;
  begin_running();
}

/* start(with_profile, with_c), each None or not: a filter begins; all code is judged anew. */
static prof_i_py *start(prof_i_py *self, prof_i_py *const *arguments, ptrdiff_t count) {
  (void)self, (void)count;
  own.epoch++;
  own.stamp++;
  own.is_on = true;
  own.is_by_frame = arguments[0] != PY.given.none;
  prof_i_python_set_traced(true);
  own.has_c = arguments[1] != PY.given.none;
  if (arguments[0] != PY.given.none) set_profiles();
  begin_running();
  if (is_interrupted()) return NULL;
  PY.Py_IncRef(PY.given.none);
  return PY.given.none;
}

/* What this thread has open ends here. Other threads' stays open in the trace, until they come by again, and the trace says that it is nobody's stack from here on. */
static prof_i_py *stop(prof_i_py *self, prof_i_py *with_profile) {
  (void)self;
  own.is_on = false;
  prof_i_python_set_traced(false);
  if (here && here->epoch == own.epoch) end_down_to(here, 0);
  if (others_stand_open()) prof_i_change_end_functions();
  own.epoch++;
  own.stamp++;
  if (with_profile != PY.given.none) own.python.set_profile(NULL, NULL);
  PY.Py_IncRef(PY.given.none);
  return PY.given.none;
}

/* forget(code): it is judged anew when it is called next. Gives what is true where it was left out, so that its events may be disabled; else None. */
static prof_i_py *forget(prof_i_py *self, prof_i_py *code) {
  function *f = NULL;
  (void)self;
  own.python.get_extra(code, own.index, (void **)&f);
  prof_i_py *const answer = f && f->epoch == own.epoch && f->verdict == VERDICT_LEFT_OUT ? own.given.disable : PY.given.none;
  if (f) f->epoch = 0;
  PY.Py_IncRef(answer);
  return answer;
}

static void *first_of(const char *name, const char *other) {
  void *const found = dlsym(RTLD_DEFAULT, name);
  return found || !other ? found : dlsym(RTLD_DEFAULT, other);
}

/* NULL: all are there. */
static const char *find(void) {
  const struct {
    void *to;
    const char *name, *before;
    bool is_needed;
  } list[] = {{&own.python.request_index, "PyUnstable_Eval_RequestCodeExtraIndex", "_PyEval_RequestCodeExtraIndex", true},
              {&own.python.get_extra, "PyUnstable_Code_GetExtra", "_PyCode_GetExtra", true},
              {&own.python.set_extra, "PyUnstable_Code_SetExtra", "_PyCode_SetExtra", true},
              {&own.python.set_profile, "PyEval_SetProfile", NULL, true},
              {&own.python.set_profile_of, "_PyEval_SetProfile", NULL, false},
              {&own.python.interpreter, "PyInterpreterState_Get", NULL, true},
              {&own.python.first_thread, "PyInterpreterState_ThreadHead", NULL, true},
              {&own.python.next_thread, "PyThreadState_Next", NULL, true},
              {&own.python.function_of, "PyCFunction_GetFunction", NULL, true},
              {&own.python.self_of, "PyCFunction_GetSelf", NULL, true}};
  for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
    void *const found = first_of(list[i].name, list[i].before);
    if (!found && list[i].is_needed) return list[i].name;
    memcpy(list[i].to, &found, sizeof found);
  }
  return NULL;
}

const char *prof_i_python_functions_1(const prof_i_python_functions_given *given) {
  static prof_i_py_method methods[] = {{"on_begin", (void *)on_begin, PROF_I_PY_FAST, NULL}, {"on_end", (void *)on_end, PROF_I_PY_FAST, NULL}, {"on_throw", (void *)on_throw, PROF_I_PY_FAST, NULL}, {"on_unwind", (void *)on_unwind, PROF_I_PY_FAST, NULL},
                                       {"on_hook", (void *)on_hook, PROF_I_PY_FAST, NULL}, {"on_gc", (void *)on_gc, PROF_I_PY_FAST, NULL}, {"on_call", (void *)on_call, PROF_I_PY_FAST, NULL}, {"on_c_end", (void *)on_c_end, PROF_I_PY_FAST, NULL},
                                       {"start", (void *)start, PROF_I_PY_FAST, NULL}, {"stop", (void *)stop, PROF_I_PY_ONE_ARGUMENT, NULL}, {"forget", (void *)forget, PROF_I_PY_ONE_ARGUMENT, NULL}};
  if (!PY.given.none) return "prof_i_python_1() comes first";
  if (own.is_made) return "it was made before";
  if (given->size != sizeof *given) return "the package and the library are of different versions";
  const char *const missing = find();
  if (missing) return missing;
  own.index = own.python.request_index(destroy_function);
  if (own.index < 0 || pthread_key_create(&own.key, free_stack) != 0) return "there is no room for what it keeps of each code object or thread";
  pthread_atfork(NULL, NULL, forget_starts);
  prof_i_thread_set_leave(leave);
  own.given = *given; /* functions and sys.monitoring's object of a module that stays */
  PY.Py_IncRef(given->judge);
  PY.Py_IncRef(given->import_name);
  PY.Py_IncRef(given->module_call);
  PY.Py_IncRef(given->describe_builtin);
  for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
    prof_i_py *const made = PY.PyCFunction_NewEx(&methods[i], NULL, NULL);
    if (!made || PY.PyDict_SetItemString(given->names, methods[i].name, made) != 0) {
      drop(made);
      PY.PyErr_Clear();
      return "Python could not make its functions";
    }
    if (methods[i].call == (void *)on_hook) own.hook = made; /* for good */
    else PY.Py_DecRef(made);
  }
  own.is_made = true;
  return NULL;
}
