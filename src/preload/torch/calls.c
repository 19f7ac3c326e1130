/* What torch calls when an operator begins and ends, on the thread that runs it: of each thread that has added the callbacks, and of those that autograd runs for it. A call is a scope of level 1, of the category cpu_op, or user_annotation
   where it is a range of the program's. Torch frees what a begin returns by its virtual destructor, after the end, on any thread. Nothing here throws; budget: 0.15 us an operator beside torch's own share, 0.35 with shapes
   (bench/python/torch_cost.py). */
#define _GNU_SOURCE
#include "torch.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

static const char operators[] = "cpu_op", ranges[] = "user_annotation";

/* ---- what a begin leaves for its end: an at::ObserverContext ---- */

typedef struct context {
  const void *const *functions; /* its virtual functions */
  uint64_t start;
  struct context *next; /* of those that wait to be used again */
} context;

static struct {
  pthread_once_t once;
  bool has_key;
  pthread_key_t key; /* its value: anything, so that let_go() is called when the thread ends */
} own = {.once = PTHREAD_ONCE_INIT};

static __thread struct {
  context *waiting;
  bool is_ending; /* what comes after let_go() is freed at once */
  bool has_value;
} this_thread __attribute__((tls_model("initial-exec")));

static void let_go(void *value) {
  (void)value;
  this_thread.is_ending = true;
  for (context *c = this_thread.waiting, *next; c; c = next) {
    next = c->next;
    free(c);
  }
  this_thread.waiting = NULL;
}

static void make_key(void) { own.has_key = pthread_key_create(&own.key, let_go) == 0; }

static void destroy(context *c) { (void)c; }

static void release(context *c) {
  if (this_thread.is_ending || !this_thread.has_value) {
    free(c);
    return;
  }
  c->next = this_thread.waiting;
  this_thread.waiting = c;
}

/* Itanium's C++ ABI: the offset to the whole object, its type (asked for by dynamic_cast alone, which torch does not do here), the destructor, and the one that frees it, too. */
static const struct {
  const void *offset, *type;
  void (*functions[2])(context *);
} table = {NULL, NULL, {destroy, release}};

static __attribute__((noinline)) context *make_context(void) {
  const int before = errno;
  if (!this_thread.has_value && own.has_key && !this_thread.is_ending) this_thread.has_value = pthread_setspecific(own.key, &own) == 0;
  context *const c = malloc(sizeof *c);
  if (c) c->functions = (const void *const *)table.functions;
  errno = before;
  return c;
}

static inline context *take_context(void) {
  context *const c = this_thread.waiting;
  if (!c) return make_context();
  this_thread.waiting = c->next;
  return c;
}

/* ---- a call begins ---- */

static uint64_t begin(const void *call, bool has_shapes) {
  const prof_i_torch_layout *const layout = &prof_i_torch_layout_proven;
  const uint8_t kind = *(const uint8_t *)prof_i_torch_at(call, layout->scope);
  const int64_t sequence = *(const int64_t *)prof_i_torch_at(call, layout->sequence);
  const bool is_user = kind == PROF_I_TORCH_USER;
  const char *const category = is_user ? ranges : operators, *const text = prof_i_torch.name(call);
  prof_tensor tensors[PROF_ARGS_MAX];
  prof_arg items[PROF_ARGS_MAX];
  uint32_t count = 0;
  const uint64_t forward = *(const uint64_t *)prof_i_torch_at(call, layout->forward);
  const uint32_t numbers = sequence < 0 ? 0 : forward ? 2 : 3;
  if (has_shapes) count = prof_i_torch_inputs(call, tensors, PROF_ARGS_MAX - numbers);
  prof_i_torch_name *const name = prof_i_torch_name_of(text ? text : "", count << 3 | numbers << 1 | is_user);
  if (name && !count && !numbers) return prof_scope_begin_at(&name->site, name->text, category);
  for (uint32_t i = 0; i < count; i++) items[i] = (prof_arg){NULL, PROF_ARG_TENSOR, 0, {.tensor = &tensors[i]}};
  if (numbers) {
    items[count++] = (prof_arg){"Sequence number", PROF_ARG_I64, 0, {.i64 = sequence}};
    items[count++] = (prof_arg){"Fwd thread id", PROF_ARG_U64, 0, {.u64 = forward}};
  }
  if (numbers == 3) items[count++] = (prof_arg){"Thread id", PROF_ARG_U64, 0, {.u64 = prof_i_torch.thread_id()}}; /* which a backward call's forward thread is */
  const prof_args args = {items, count, count > numbers ? PROF_ARGS_SHAPES : PROF_ARGS_PAIRS, NULL};
  if (!name) return prof_scope_begin(1, text, category, &args);
  const prof_details details = {name->text, category, PROF_NUL_TERMINATED, PROF_NUL_TERMINATED, PROF_I_NAME_LITERAL | PROF_I_CATEGORY_LITERAL | PROF_I_BY_CALL, {PROF_DEVICE_CPU, 0}, 0, 0, args};
  return prof_i_begin_details_1(&name->site, &details);
}

static void *start(void **context_out, const void *call, bool has_shapes) {
  *context_out = NULL;
  if (!prof_i_is_on(1)) return context_out;
  context *const c = take_context();
  if (!c) return context_out;
  c->start = begin(call, has_shapes);
  if (c->start) *context_out = c;
  else release(c);
  return context_out;
}

static void end(const void *call, void *left) {
  (void)call;
  if (left) prof_scope_end(((const context *)left)->start);
}

#if defined(__aarch64__)
/* There the address for what is returned comes in x8. */
#define START(name, has_shapes)                                                                                    \
  static __attribute__((used)) void *name##_in_c(void **context_out, const void *call) { return start(context_out, call, has_shapes); } \
  void *name(void **context_out, const void *call) __attribute__((visibility("hidden")));                           \
  __asm__(".text\n.hidden " #name "\n.global " #name "\n.type " #name ",%function\n" #name ":\n  mov x1, x0\n  mov x0, x8\n  b " #name "_in_c\n.size " #name ",.-" #name "\n");
#else
#define START(name, has_shapes) \
  static void *name(void **context_out, const void *call) { return start(context_out, call, has_shapes); }
#endif

START(start_with_shapes, true)
START(start_without, false)

PROF_I_TORCH_EXPORT uint64_t prof_i_torch_add_1(int has_shapes);
PROF_I_TORCH_EXPORT void prof_i_torch_remove_1(uint64_t handle);

/* To this thread. Only after prof_i_torch_prove_1() has found all. */
uint64_t prof_i_torch_add_1(int has_shapes) {
  pthread_once(&own.once, make_key);
  return prof_i_torch.add((prof_i_torch_callback){.start = has_shapes ? start_with_shapes : start_without, .end = end, .probability = 1, .scopes = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, .needs_inputs = has_shapes != 0});
}

/* On the thread that has added it; 0: nothing. Calls that run on autograd's threads meanwhile are seen to their end. */
void prof_i_torch_remove_1(uint64_t handle) {
  if (handle) prof_i_torch.remove(handle);
}
