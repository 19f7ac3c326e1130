/* Callbacks that torch calls when an operator begins and ends, on the thread that runs it. They
   serve each thread that has added them and autograd's threads that work for it, or all threads if
   they were added for all. A call is a scope of level 1. Its category is cpu_op, or user_annotation
   for a range of the program. Torch frees what a begin returns by its virtual destructor, after the
   end, on any thread. Nothing here throws. Budget: 0.15 us an operator beside torch's own share,
   0.35 with shapes (bench/python/torch_cost.py). */
#define _GNU_SOURCE
#include "../../src/format/layout.h"
#include "internal.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

__thread uint32_t prof_i_torch_silence
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

static const char operator_category[] = "cpu_op", range_category[] = "user_annotation";

/* ---- what a begin leaves for its end: an at::ObserverContext ---- */

typedef struct call_context {
  const void *const *functions; /* its virtual functions */
  uint64_t start;
  struct call_context *next; /* of those that wait to be used again */
} call_context;

/* The owners of callbacks. bindings/python/prof/_torch_calls.py has the same. */
typedef enum observer_owner {
  FOR_THREAD = 0,
  FOR_ALL = 1,
  FOR_RUN = 2 /* all, too, beside a FOR_ALL of the program's */
} observer_owner;

/* The owners for which a call is recorded. Its callbacks say so, and torch copies them to the
   threads that work for the calling thread. A callback has no context argument, so each number has
   its own functions. */
enum observer_target {
  WHOM_THREADS = 0, /* of one thread, without a number: there are more than numbers */
  WHOM_FIRST = 1,   /* of one thread, up to PROF_I_OBSERVED_NUMBERS */
  WHOM_ALL = PROF_I_OBSERVED_NUMBERS + 1,
  WHOM_RUN,
  WHOMS
};

static inline bool is_of_thread(uint32_t who) { return who < WHOM_ALL; }
static inline uint32_t observer_number_of(uint32_t who) {
  return who >= WHOM_FIRST && who < WHOM_ALL ? who : PROF_I_OBSERVED_FOR_ALL;
}

static struct {
  pthread_once_t once;
  /* Of added callbacks. Relaxed: a begin that reads an old count runs beside the change. */
  uint32_t counts[WHOMS];
  uint32_t numbers;     /* a bit each that is taken */
  uint32_t with_shapes; /* those of them that ask for inputs; relaxed, too */
  bool has_key;
  pthread_key_t
      key; /* its value: anything, so that end_observed_thread() is called when the thread ends */
} observers = {.once = PTHREAD_ONCE_INIT};

/* What add gives and remove takes, the caller's; the same in _torch_calls.py. */
typedef struct observer_handle {
  /* torch's handle, which counts from 1. The bits above it: `whom`, and what remove() counts. 0:
     none. */
  uint64_t handle;
  uint64_t node; /* of autograd's graph, in which it was added; 0: outside of a backward call */
} observer_handle;

enum { WHOM_BIT = 52, SHAPES_BIT = 60 };

static inline uint32_t whom_of(uint64_t handle) { return (uint32_t)(handle >> WHOM_BIT) & 0xff; }

static __thread struct {
  /* by whether with shapes: this thread's callback that was to be removed in a backward call, may
     be there still, and begins nothing */
  observer_handle retired[2];
  call_context *waiting;
  bool is_ending; /* what comes after end_observed_thread() is freed at once */
  bool has_value;
  bool is_open;           /* what has taken a call hears of its end */
  uint8_t taken_for;      /* owners */
  const void *taken;      /* the call that began last and has not ended, see is_call_taken() */
  const char *taken_name; /* kept for good: a range may end on another thread; NULL: not known */
} observed_thread __attribute__((tls_model("initial-exec")));

/* The lowest that is free, so that operators of programs with few have few call sites. */
static uint32_t acquire_number(void) {
  uint32_t taken = __atomic_load_n(&observers.numbers, __ATOMIC_RELAXED), number;
  do {
    number = (uint32_t)__builtin_ctz(~taken);
    if (number >= PROF_I_OBSERVED_NUMBERS) return WHOM_THREADS;
  } while (!__atomic_compare_exchange_n(&observers.numbers, &taken, taken | 1u << number, true,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  return WHOM_FIRST + number;
}

/* Its callbacks are removed. */
static void release_number(uint64_t handle) {
  const uint32_t who = whom_of(handle);
  if (who < WHOM_FIRST || who >= WHOM_ALL) return;
  __atomic_fetch_and(&observers.numbers, ~(1u << (who - WHOM_FIRST)), __ATOMIC_RELAXED);
}

static void end_observed_thread(void *value) {
  (void)value;
  observed_thread.is_ending = true;
  for (int i = 0; i < 2; i++) {
    if (observed_thread.retired[i].handle) release_number(observed_thread.retired[i].handle);
    observed_thread.retired[i] = (observer_handle){0, 0};
  }
  for (call_context *c = observed_thread.waiting, *next; c; c = next) {
    next = c->next;
    free(c);
  }
  observed_thread.waiting = NULL;
}

static void make_observed_key(void) {
  observers.has_key = pthread_key_create(&observers.key, end_observed_thread) == 0;
}

static void call_context_destroy(call_context *c) { (void)c; }

static void call_context_release(call_context *c) {
  if (observed_thread.is_ending || !observed_thread.has_value) {
    free(c);
    return;
  }
  c->next = observed_thread.waiting;
  observed_thread.waiting = c;
}

/* Itanium's C++ ABI. The members are the offset to the whole object, its type, the destructor, and
   the destructor that also frees. Only dynamic_cast reads the type, and torch does not use it here.
   */
static const struct {
  const void *offset, *type;
  void (*functions[2])(call_context *);
} call_context_table = {NULL, NULL, {call_context_destroy, call_context_release}};

static __attribute__((noinline)) call_context *make_context(void) {
  const int before = errno;
  if (!observed_thread.has_value && observers.has_key && !observed_thread.is_ending)
    observed_thread.has_value = pthread_setspecific(observers.key, &observers) == 0;
  call_context *const c = malloc(sizeof *c);
  if (c) c->functions = (const void *const *)call_context_table.functions;
  errno = before;
  return c;
}

static inline call_context *take_context(void) {
  call_context *const c = observed_thread.waiting;
  if (!c) return make_context();
  observed_thread.waiting = c->next;
  return c;
}

/* ---- a call begins ---- */

/* A begun call, and what its record has of it. */
typedef struct begun_call {
  const void *call;
  const char *text, *category;
  prof_i_torch_name *name;
  int64_t sequence;
  uint64_t forward;
  uint32_t count, numbers; /* of items: shapes first, numbers last */
  uint64_t inputs;         /* all that it has; count may be less */
  uint32_t async;
  prof_arg items[PROF_ARGS_MAX];
} begun_call;

static uint64_t record_call(begun_call *b) {
  prof_arg *const items = b->items;
  if (b->numbers) {
    items[b->count++] = (prof_arg){"Sequence number", PROF_ARG_I64, 0, {.i64 = b->sequence}};
    items[b->count++] = (prof_arg){"Fwd thread id", PROF_ARG_U64, 0, {.u64 = b->forward}};
  }
  /* which a backward call's forward thread is */
  if (b->numbers == 3)
    items[b->count++] = (prof_arg){"Thread id", PROF_ARG_U64, 0, {.u64 = prof_i_torch.thread_id()}};
  const prof_args args = {items, b->count,
                          b->count > b->numbers ? PROF_ARGS_SHAPES : PROF_ARGS_PAIRS, NULL};
  if (!b->name) return prof_scope_begin(1, b->text, b->category, &args);
  const prof_details details = {
      b->name->text,
      b->category,
      PROF_NUL_TERMINATED,
      PROF_NUL_TERMINATED,
      PROF_I_NAME_LITERAL | PROF_I_CATEGORY_LITERAL | PROF_I_BY_CALL | b->async,
      {PROF_DEVICE_CPU, 0},
      0,
      0,
      args};
  return prof_i_begin_details_1(&b->name->site, &details);
}

/* A record has this many arguments for inputs. If a call has more, texts have all inputs, and the
   arguments have the first ones for readers of shapes. */
enum { TEXTS = 3, TEXTS_OF_ALL = 4 };

static inline bool has_many_inputs(const begun_call *b) {
  return b->inputs > PROF_ARGS_MAX - TEXTS - b->numbers && prof_i_torch_values_proven.is_proven;
}

/* How many inputs are arguments. A count of those left out is one, too. */
static uint32_t input_room_of(const begun_call *b) {
  const uint32_t room = PROF_ARGS_MAX - b->numbers;
  if (!has_many_inputs(b)) return room - (b->inputs > room);
  return room - TEXTS_OF_ALL - (b->inputs > PROF_I_TORCH_TEXT_INPUTS_MAX);
}

static void count_left_out(begun_call *b, uint64_t known) {
  if (known < b->inputs)
    b->items[b->count++] =
        (prof_arg){"Inputs left out", PROF_ARG_U64, 0, {.u64 = b->inputs - known}};
}

/* With what its inputs are beside their shapes. */
static __attribute__((noinline)) uint64_t record_with_texts(begun_call *b) {
  prof_i_torch_texts texts;
  const bool has_all = has_many_inputs(b);
  const uint32_t shapes = b->count;
  const uint32_t most = PROF_I_TORCH_TEXT_INPUTS_MAX;
  const uint32_t inputs = b->inputs < most ? (uint32_t)b->inputs : most;
  prof_i_torch_texts_make(b->call, inputs, has_all, &texts);
  const struct {
    const char *key, *text;
    uint32_t bytes;
  } all[] = {{"Tensor lists", texts.lists, texts.lists_bytes}, /* first: as prof import has it */
             {"Tensor types", texts.types, texts.types_bytes}, /* second: src/reader/event_args.c */
             {"Concrete Inputs", texts.concrete, texts.concrete_bytes},
             {"Input Strides", texts.strides, texts.strides_bytes}};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    if (!all[i].bytes) continue;
    b->items[b->count++] =
        (prof_arg){all[i].key, PROF_ARG_STRING, all[i].bytes, {.text = all[i].text}};
  }
  count_left_out(b, !has_all || (texts.lists_bytes && texts.types_bytes) ? inputs : shapes);
  return record_call(b);
}

static uint64_t begin_call(const void *call, bool has_shapes, uint32_t who) {
  const prof_i_torch_layout *const layout = &prof_i_torch_layout_proven;
  const uint8_t kind = *(const uint8_t *)prof_i_torch_at(call, layout->scope);
  const bool is_user = kind == PROF_I_TORCH_USER;
  prof_tensor tensors[PROF_ARGS_MAX];
  begun_call b;
  b.call = call;
  b.sequence = *(const int64_t *)prof_i_torch_at(call, layout->sequence);
  b.category = is_user ? range_category : operator_category;
  b.text = prof_i_torch.name(call);
  b.count = 0;
  b.forward = *(const uint64_t *)prof_i_torch_at(call, layout->forward);
  b.numbers = b.sequence < 0 ? 0 : b.forward ? 2 : 3;
  b.inputs = has_shapes ? prof_i_torch_input_count(call) : 0;
  if (has_shapes) b.count = prof_i_torch_inputs(call, tensors, input_room_of(&b));
  const uint32_t args = b.count << 2 | b.numbers;
  b.name = prof_i_torch_name_of(b.text ? b.text : "",
                                prof_i_torch_kind(kind, observer_number_of(who), args));
  observed_thread.taken_name = b.name ? b.name->text : NULL;
  /* collectives', and what torch itself says that of; an operator runs where it is called */
  b.async = is_user && prof_i_torch.is_async(call) ? PROF_I_ASYNC : 0;
  if (b.name && !b.count && !b.numbers && !b.async)
    return prof_scope_begin_at(&b.name->site, b.name->text, b.category);
  for (uint32_t i = 0; i < b.count; i++)
    b.items[i] = (prof_arg){NULL, PROF_ARG_TENSOR, 0, {.tensor = &tensors[i]}};
  if (b.count && prof_i_torch_values_proven.is_proven) return record_with_texts(&b);
  count_left_out(&b, b.count);
  return record_call(&b);
}

static inline bool is_range(const void *call) {
  return *(const uint8_t *)prof_i_torch_at(call, prof_i_torch_layout_proven.scope) ==
         PROF_I_TORCH_USER;
}

/* If callbacks of this thread and of all threads are on at once, a call is one scope. Torch calls
   the begins of one call in a row, and the first one takes it. An owner whose callbacks are gone
   has left what it took. An observed thread of autograd has two sets: its own, and that of the
   thread that it works for. A range that ended on another thread could be mistaken for another
   range there. Operators end on the thread where they began. */
static inline bool is_call_taken(const void *call, uint32_t who) {
  if (observed_thread.taken == call &&
      (observed_thread.taken_for == who
           ? observed_thread.is_open && !is_range(call)
           : __atomic_load_n(&observers.counts[observed_thread.taken_for], __ATOMIC_RELAXED) != 0))
    return true;
  observed_thread.taken = call;
  observed_thread.taken_for = (uint8_t)who;
  observed_thread.is_open = false;
  return false;
}

/* The observer that takes a call has shapes if another one that is on requested inputs. */
static inline bool has_inputs(const void *call, bool has_shapes) {
  return has_shapes ||
         (__atomic_load_n(&observers.with_shapes, __ATOMIC_RELAXED) &&
          *(const uint8_t *)prof_i_torch_at(call, prof_i_torch_layout_proven.scope + 1));
}

/* Autograd's threads have the callbacks of the thread that they work for. There only the count
   shows that these were retired. */
static inline bool is_observer_retired(bool has_shapes, uint32_t who) {
  const uint64_t retired = observed_thread.retired[has_shapes].handle;
  return (retired && whom_of(retired) == who) ||
         !__atomic_load_n(&observers.counts[who], __ATOMIC_RELAXED);
}

static __attribute__((noinline)) void *start_call(void **context_out, const void *call,
                                                  bool has_shapes, uint32_t who) {
  *context_out = NULL;
  if (!prof_i_is_on(1) || prof_i_torch_silence || is_observer_retired(has_shapes, who) ||
      is_call_taken(call, who))
    return context_out;
  call_context *const c = take_context();
  if (!c) return context_out;
  c->start = begin_call(call, has_inputs(call, has_shapes), who);
  observed_thread.is_open = c->start != 0;
  if (c->start)
    *context_out = c;
  else
    call_context_release(c);
  return context_out;
}

static void end_call(const void *call, void *left) {
  if (!left) return;
  prof_scope_end(((const call_context *)left)->start);
  if (observed_thread.taken == call) observed_thread.taken = NULL;
}

PROF_I_TORCH_EXPORT void prof_i_torch_silence_1(int by);

/* by = 1: the calls of this thread are not recorded until a call with -1. Calls that have begun end
   as usual. */
void prof_i_torch_silence_1(int by) { prof_i_torch_silence += (uint32_t)by; }

PROF_I_TORCH_EXPORT const char *prof_i_torch_recorded_name_1(void);

/* Of the call that began last on this thread, if it is recorded and has not ended; else NULL. */
const char *prof_i_torch_recorded_name_1(void) {
  return observed_thread.taken && observed_thread.is_open ? observed_thread.taken_name : NULL;
}

#if defined(__aarch64__)
/* On aarch64 the address of the result is in x8. */
#define START(name, has_shapes, who)                                                       \
  static __attribute__((used)) void *name##_in_c(void **context_out, const void *call) {   \
    return start_call(context_out, call, has_shapes, who);                                 \
  }                                                                                        \
  void *name(void **context_out, const void *call) __attribute__((visibility("hidden")));  \
  __asm__(".text\n.hidden " #name "\n.global " #name "\n.type " #name ",%function\n" #name \
          ":\n  mov x1, x0\n  mov x0, x8\n  b " #name "_in_c\n.size " #name ",.-" #name "\n");
#else
#define START(name, has_shapes, who)                        \
  static void *name(void **context_out, const void *call) { \
    return start_call(context_out, call, has_shapes, who);  \
  }
#endif

#define EACH_WHOM(X) \
  X(0)               \
  X(1)               \
  X(2)               \
  X(3)               \
  X(4)               \
  X(5)               \
  X(6)               \
  X(7)               \
  X(8)               \
  X(9)               \
  X(10)              \
  X(11)              \
  X(12)              \
  X(13)              \
  X(14)              \
  X(15)              \
  X(16)              \
  X(17)              \
  X(18)
#define BOTH_STARTS(who)             \
  START(start_for_##who, false, who) \
  START(start_for_##who##_with_shapes, true, who)
#define STARTS(who) {start_for_##who, start_for_##who##_with_shapes},
EACH_WHOM(BOTH_STARTS)
static void *(*const starts[][2])(void **, const void *) = {EACH_WHOM(STARTS)};
_Static_assert(sizeof starts / sizeof *starts == WHOMS, "each has its functions");

/* ---- added and removed ---- */

/* For each node of its graph, autograd sets a thread's callbacks to those that the calling thread
   had when the backward call began. Behind the node it restores the previous ones. A callback that
   is added in a node disappears behind it, and one that is removed in it comes back. So a removed
   callback is retired. It is removed when the thread is next here outside of a backward call. If
   the same owner adds it before that, it is reused, because torch calls each callback that it has.
   Callbacks for all threads may be added and removed anywhere. */

PROF_I_TORCH_EXPORT void prof_i_torch_add_1(int has_shapes, uint32_t who, uint64_t node,
                                            observer_handle *added_out);
PROF_I_TORCH_EXPORT void prof_i_torch_remove_1(observer_handle *place, uint64_t node, int is_gone);
PROF_I_TORCH_EXPORT int prof_i_torch_has_retired_1(int has_shapes, uint64_t node);
PROF_I_TORCH_EXPORT int prof_i_torch_has_for_all_1(void);

int prof_i_torch_has_for_all_1(void) { return prof_i_torch.add_global != NULL; }

static void count_observers(uint64_t handle, int32_t by) {
  __atomic_fetch_add(&observers.counts[whom_of(handle)], (uint32_t)by, __ATOMIC_RELAXED);
  if (handle >> SHAPES_BIT & 1)
    __atomic_fetch_add(&observers.with_shapes, (uint32_t)by, __ATOMIC_RELAXED);
}

/* torch writes to stderr if the callback does not exist. */
static void remove_observer(uint64_t handle) {
  prof_i_torch.remove(handle & ((UINT64_C(1) << WHOM_BIT) - 1));
  release_number(handle);
}

static void remove_retired(void) {
  for (int i = 0; i < 2; i++) {
    const observer_handle was = observed_thread.retired[i];
    observed_thread.retired[i] = (observer_handle){0, 0};
    if (was.handle && !was.node)
      remove_observer(was.handle);
    else if (was.handle)
      release_number(was.handle);
  }
}

/* Will an add in that node take back what this thread has? */
int prof_i_torch_has_retired_1(int has_shapes, uint64_t node) {
  const observer_handle *const was = &observed_thread.retired[has_shapes != 0];
  return node && was->handle && (!was->node || was->node == node);
}

/* Adds callbacks to this thread, or to all threads if prof_i_torch_has_for_all_1(). Only after
   prof_i_torch_prove_1() has found everything. node: of autograd's graph, which this thread is in.
   *added_out is set before the return. A Python signal handler may raise between the return and the
   caller's next step. */
void prof_i_torch_add_1(int has_shapes, uint32_t who, uint64_t node, observer_handle *added_out) {
  pthread_once(&observers.once, make_observed_key);
  if (!node) remove_retired();
  const bool is_back = who == FOR_THREAD && prof_i_torch_has_retired_1(has_shapes, node);
  const uint32_t observer_target = is_back
                                       ? whom_of(observed_thread.retired[has_shapes != 0].handle)
                                   : who == FOR_THREAD ? acquire_number()
                                   : who == FOR_ALL    ? WHOM_ALL
                                                       : WHOM_RUN;
  const prof_i_torch_callback callback = {.start = starts[observer_target][has_shapes != 0],
                                          .end = end_call,
                                          .probability = 1,
                                          .scopes = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1},
                                          .needs_inputs = has_shapes != 0};
  const uint64_t bits = (uint64_t)(has_shapes != 0) << SHAPES_BIT | (uint64_t)observer_target
                                                                        << WHOM_BIT;
  count_observers(bits, 1);
  if (who != FOR_THREAD) {
    *added_out = (observer_handle){prof_i_torch.add_global(callback) | bits, 0};
    return;
  }
  const observer_handle retired = observed_thread.retired[has_shapes != 0];
  *added_out = is_back ? retired : (observer_handle){prof_i_torch.add(callback) | bits, node};
  if (!is_back && retired.handle) release_number(retired.handle); /* removed with its node */
  observed_thread.retired[has_shapes != 0] = (observer_handle){0, 0};
}

/* Removes callbacks, on the thread that has added them if they are for one thread. is_gone: that
   thread has ended, and torch's list with it. Does nothing if place->handle is 0; sets it to 0.
   Calls that run on other threads are recorded to their end. */
void prof_i_torch_remove_1(observer_handle *place, uint64_t node, int is_gone) {
  const observer_handle was = {__atomic_exchange_n(&place->handle, 0, __ATOMIC_RELAXED),
                               place->node};
  if (!node) remove_retired();
  if (!was.handle) return;
  count_observers(was.handle, -1);
  const bool is_there = !is_of_thread(whom_of(was.handle)) || was.node == node;
  if (!is_gone && is_there)
    remove_observer(was.handle);
  else if (!is_gone && node)
    observed_thread.retired[was.handle >> SHAPES_BIT & 1] = was;
  else
    release_number(was.handle); /* with its thread, or with the node of its add */
}
