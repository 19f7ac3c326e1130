/* Work of the emulated CUDA driver: kernels, graphs, copies, the modules that have kernels' code,
   and the observer that sees all that. Streams are cuda.c's. */
#define _GNU_SOURCE
#include "cuda_driver.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine.h"
#include "memory.h"
#include "modules.h"

CU int cuStreamSynchronize(void *handle);

typedef struct kernel {
  const char *name;
  uint64_t ns;
  struct kernel *before;     /* all there are */
  int is_told;               /* how long it takes is its parameter */
  const module_kernel *code; /* what it does; NULL: nothing but to take its time */
} kernel;

typedef struct replayed {
  kernel *node;
  uint32_t count, number;
  struct replayed *before;
} replayed;

static kernel *kernels;
static replayed *graphs;

static const emulated_cuda_observer *observer; /* release */
static uint32_t correlations;
static __thread uint32_t outer; /* of the runtime's call that this thread is in */

uint64_t cuda_real_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

CU void emulated_cuda_observe(const emulated_cuda_observer *by) {
  __atomic_store_n(&observer, by, __ATOMIC_RELEASE);
}

call cuda_enter(uint32_t number) {
  return (call){number, outer ? outer : __atomic_add_fetch(&correlations, 1, __ATOMIC_RELAXED),
                cuda_real_ns()};
}

const emulated_cuda_observer *cuda_observer(void) {
  return __atomic_load_n(&observer, __ATOMIC_ACQUIRE);
}

int cuda_leave(const call *c, int domain, int result) {
  const emulated_cuda_observer *const by = cuda_observer();
  if (by) by->call(domain, c->number, c->correlation, c->start_ns, cuda_real_ns());
  return result;
}

/* What work does beside taking its time: run once, on the stream's thread, which frees it. */
typedef struct deed {
  void (*run)(void *own);
  void *own;
} deed;

typedef struct begun {
  const emulated_cuda_observer *by; /* or NULL */
  void *it;
  deed deed;
} begun;

static void ended(void *user, uint64_t start_ns, uint64_t end_ns) {
  begun *const b = user;
  if (b->deed.own) {
    b->deed.run(b->deed.own);
    end_ns = cuda_real_ns();
  }
  if (b->by) b->by->ends(b->it, start_ns, end_ns);
  free(b);
}

static int put_work(void *handle, emulated_cuda_done *about, uint64_t ns, deed what) {
  const emulated_cuda_observer *const by = __atomic_load_n(&observer, __ATOMIC_ACQUIRE);
  stream *s = NULL;
  cuda_lock();
  const int error = cuda_find_stream(handle, &s);
  engine_stream *const engine = error ? NULL : s->engine;
  if (!error) {
    about->device = (uint32_t)s->of->device;
    about->context = (uint32_t)s->of->number;
    about->stream = s->number;
  }
  cuda_unlock();
  if (error) free(what.own);
  if (error) return error;
  begun *const b = by || what.own ? calloc(1, sizeof *b) : NULL;
  if (b) *b = (begun){by, by ? by->begins(about) : NULL, what};
  if (b)
    engine_work_told(engine, ns, ended, b);
  else
    engine_work(engine, ns);
  return SUCCESS;
}

CU int emulated_cuda_run(void *handle, const char *name, void (*run)(void *its), void *its) {
  emulated_cuda_done about = {.kind = EMULATED_CUDA_KERNEL,
                              .correlation = __atomic_add_fetch(&correlations, 1, __ATOMIC_RELAXED),
                              .name = name,
                              .grid = {1, 1, 1},
                              .block = {1, 1, 1}};
  return put_work(handle, &about, 0, (deed){run, its});
}
CU void *emulated_cuda_argument(const void *address) { return memory_of_argument(address); }

enum {
  CBID_LAUNCH = 307,
  CBID_HTOD = 277,
  CBID_DTOH = 279,
  CBID_DTOD = 281,
  CBID_MEMSET = 216,
  CBID_GRAPH_LAUNCH = 514,
  CBID_RUNTIME_LAUNCH = 211,
  CBID_RUNTIME_WAIT = 131
};

CU void *emulated_cuda_kernel(const char *name, uint64_t ns) {
  kernel *const k = calloc(1, sizeof *k);
  if (!k) abort();
  cuda_lock();
  *k = (kernel){.name = name, .ns = ns, .before = kernels};
  kernels = k;
  cuda_unlock();
  return k;
}

void *cuda_make_graph(kernel *node, uint32_t count) {
  replayed *const g = calloc(1, sizeof *g);
  if (!g) abort();
  *g = (replayed){node, count, graphs ? graphs->number + 1 : 1, graphs};
  graphs = g;
  return g;
}
CU void *emulated_cuda_graph(void *node, uint32_t count) { LOCKED(cuda_make_graph(node, count)); }

static int is_put_into_graph(void *handle, kernel *k, uint64_t ns) {
  stream *s = NULL;
  cuda_lock();
  const int is = cuda_find_stream(handle, &s) == SUCCESS && s->capture == 1;
  if (is) {
    s->node = k;
    s->node_count++;
    __atomic_store_n(&k->ns, ns, __ATOMIC_RELAXED);
  }
  cuda_unlock();
  return is;
}

CU int cuLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                      unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                      void *handle, void **parameters, void **extra);
CU int cuLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                      unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                      void *handle, void **parameters, void **extra) {
  const call c = cuda_enter(CBID_LAUNCH);
  kernel *const k = function;
  emulated_cuda_done about = {.kind = EMULATED_CUDA_KERNEL,
                              .correlation = c.correlation,
                              .name = k->name,
                              .grid = {grid_x, grid_y, grid_z},
                              .block = {block_x, block_y, block_z},
                              .shared_bytes = shared};
  (void)extra;
  const uint64_t ns = k->is_told && parameters ? *(const uint64_t *)parameters[0]
                                               : __atomic_load_n(&k->ns, __ATOMIC_RELAXED);
  if (is_put_into_graph(handle, k, ns)) return cuda_leave(&c, DRIVER, SUCCESS);
  const deed what = {
      module_launch,
      k->code ? module_launch_to_come(k->code, about.grid, about.block, parameters) : NULL};
  return cuda_leave(&c, DRIVER, put_work(handle, &about, ns, what));
}

CU void emulated_cuda_work(void *handle, uint64_t ns) {
  kernel busy = {.name = "busy", .ns = ns};
  if (cuLaunchKernel(&busy, 1, 1, 1, 32, 1, 1, 0, handle, NULL, NULL) != SUCCESS) abort();
}

CU int emulated_cuda_runtime_launch(void *function, void *handle) {
  const call c = cuda_enter(CBID_RUNTIME_LAUNCH);
  outer = c.correlation;
  const int result = cuLaunchKernel(function, 2, 1, 1, 64, 1, 1, 0, handle, NULL, NULL);
  outer = 0;
  return cuda_leave(&c, RUNTIME, result);
}

CU int emulated_cuda_runtime_wait(void *handle) {
  const call c = cuda_enter(CBID_RUNTIME_WAIT);
  const emulated_cuda_observer *const by = __atomic_load_n(&observer, __ATOMIC_ACQUIRE);
  stream *s = NULL;
  const int result = cuStreamSynchronize(handle);
  if (result != SUCCESS) return result;
  cuda_lock();
  const int is_there = cuda_find_stream(handle, &s) == SUCCESS;
  const uint32_t of = is_there ? (uint32_t)s->of->number : 0,
                 number = is_there ? (uint32_t)s->number : 0;
  cuda_unlock();
  if (by) by->waited(of, number, c.correlation, c.start_ns, cuda_real_ns());
  return cuda_leave(&c, RUNTIME, result);
}

CU int cuGraphLaunch(void *executable, void *handle);
CU int cuGraphLaunch(void *executable, void *handle) {
  const call c = cuda_enter(CBID_GRAPH_LAUNCH);
  const replayed *const g = executable;
  int error = SUCCESS;
  for (uint32_t i = 0; i < g->count && !error; i++) {
    emulated_cuda_done about = {.kind = EMULATED_CUDA_KERNEL,
                                .correlation = c.correlation,
                                .name = g->node->name,
                                .grid = {1, 1, 1},
                                .block = {32, 1, 1},
                                .graph = g->number,
                                .graph_nodes = g->count,
                                .graph_node = (uint64_t)g->number << 32 | (i + 1)};
    error = put_work(handle, &about, __atomic_load_n(&g->node->ns, __ATOMIC_RELAXED),
                     (deed){NULL, NULL});
  }
  return cuda_leave(&c, DRIVER, error);
}

/* A GB a second. Nothing is copied where neither side is memory that was handed out. */
static int copy(uint32_t number, uint32_t way, uint64_t to, uint64_t from, size_t bytes,
                void *handle) {
  const call c = cuda_enter(number);
  emulated_cuda_done about = {
      .kind = EMULATED_CUDA_COPY, .correlation = c.correlation, .bytes = bytes, .way = way};
  return cuda_leave(
      &c, DRIVER,
      put_work(handle, &about, bytes, (deed){memory_copy, memory_copy_to_come(to, from, bytes)}));
}

CU int cuMemcpyHtoDAsync_v2(unsigned long long to, const void *from, size_t bytes, void *handle);
CU int cuMemcpyHtoDAsync_v2(unsigned long long to, const void *from, size_t bytes, void *handle) {
  return copy(CBID_HTOD, 1, to, (uint64_t)(uintptr_t)from, bytes, handle);
}

CU int cuMemcpyDtoHAsync_v2(void *to, unsigned long long from, size_t bytes, void *handle);
CU int cuMemcpyDtoHAsync_v2(void *to, unsigned long long from, size_t bytes, void *handle) {
  return copy(CBID_DTOH, 2, (uint64_t)(uintptr_t)to, from, bytes, handle);
}

CU int cuMemcpyDtoDAsync_v2(unsigned long long to, unsigned long long from, size_t bytes,
                            void *handle);
CU int cuMemcpyDtoDAsync_v2(unsigned long long to, unsigned long long from, size_t bytes,
                            void *handle) {
  return copy(CBID_DTOD, 8, to, from, bytes, handle);
}

CU int cuMemsetD8Async(unsigned long long to, unsigned char value, size_t bytes, void *handle);
CU int cuMemsetD8Async(unsigned long long to, unsigned char value, size_t bytes, void *handle) {
  const call c = cuda_enter(CBID_MEMSET);
  emulated_cuda_done about = {
      .kind = EMULATED_CUDA_FILL, .correlation = c.correlation, .bytes = bytes};
  (void)to;
  (void)value;
  return cuda_leave(&c, DRIVER, put_work(handle, &about, bytes, (deed){NULL, NULL}));
}

/* ---- modules: those of the emulated compiler, and as much as a program needs that brings its
   kernel "busy_for" as PTX ---- */

static const char ready_module; /* of a program's own PTX */

/* Of another device there is no code in it; virtual code is of all that are as new. */
static int fits(const module_head *head) {
  const char *const number = strchr(head->architecture, '_');
  const long architecture = number ? strtol(number + 1, NULL, 10) : 0;
  return strncmp(head->architecture, "sm_", 3) == 0 ? architecture == 90 : architecture <= 90;
}

CU int cuModuleLoadData(void **out, const void *image);
CU int cuModuleLoadData(void **out, const void *image) {
  if (!image) return INVALID_VALUE;
  *out = module_load(image);
  if (!*out)
    *out = (void *)&ready_module;
  else if (!fits(image))
    return NO_BINARY;
  else
    memcpy(emulated_cuda_state()->architecture, ((const module_head *)image)->architecture,
           sizeof emulated_cuda_state()->architecture);
  return SUCCESS;
}

CU int cuModuleUnload(void *module);
CU int cuModuleUnload(void *module) {
  return module == &ready_module ? SUCCESS : (module_unload(module), SUCCESS);
}

CU int cuModuleGetFunction(void **out, void *module, const char *name);
CU int cuModuleGetFunction(void **out, void *module, const char *name) {
  const int is_ours = module == &ready_module;
  const module_kernel *const code = is_ours ? NULL : module_find(module, name);
  if (is_ours ? strcmp(name, "busy_for") != 0 : !code) return NOT_FOUND;
  kernel *const k = emulated_cuda_kernel(is_ours ? "busy_for" : strdup(name), 0);
  k->is_told = is_ours;
  k->code = code;
  *out = k;
  return SUCCESS;
}

CU int cuGraphInstantiateWithFlags(void **out, void *graph, unsigned long long flags);
CU int cuGraphInstantiateWithFlags(void **out, void *graph, unsigned long long flags) {
  (void)flags;
  return graph ? (*out = graph, SUCCESS) : INVALID_VALUE;
}
