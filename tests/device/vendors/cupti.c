/* An emulated CUPTI over the emulated driver: libcupti.so.13, or with EMULATED_CUPTI_11 .11.8,
   which lacks what came later. It fills the real layouts, of the release that a test requests, into
   the buffers that it borrows. It does so on any thread that has something to report, under a lock
   of its own as the real one. No device is behind it. */
#define _GNU_SOURCE
#include "cupti.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../../../src/cuda/tracer_api.h"
#include "cuda.h"

#define CUPTI __attribute__((visibility("default")))

enum {
  SUCCESS = 0,
  INVALID_PARAMETER = 1,
  INVALID_KIND = 21,
  NOT_INITIALIZED = 15,
  KINDS = 64,
  CALLS = 1024,
  HOARD = 1024,
  LATE = 64,
  UNKNOWN_KIND = 777,
  UNKNOWN_BYTES = 40
};

typedef struct work {
  struct work *next, **at; /* where it hangs; NULL: nowhere */
  emulated_cuda_done it;
  int is_told; /* by a forced flush, before it had ended */
} work;

typedef struct held { /* a record of a call that is reported late */
  struct held *next;
  prof_i_cupti_call call;
} held;

static struct {
  pthread_mutex_t lock;
  emulated_cupti state;
  prof_i_cupti_requested requested;
  prof_i_cupti_completed completed;
  uint8_t is_enabled[KINDS], is_chosen[2][CALLS];
  int32_t thread_type;
  uint8_t *buffer, *hoarded[HOARD];
  size_t bytes, valid, hoarded_bytes[HOARD];
  work *works;
  held *held, **held_end;
  int holder_object;
} own = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct {
  void (*observe)(const emulated_cuda_observer *observer);
  uint32_t (*stream_number)(void *context, void *stream, int is_per_thread);
  uint32_t (*context_number)(void *context);
} cuda;

CUPTI emulated_cupti *emulated_cupti_state(void) { return &own.state; }

static void count(uint32_t *what) { __atomic_fetch_add(what, 1, __ATOMIC_RELAXED); }
#ifdef EMULATED_CUPTI_11
enum { VERSION = 18 };
#else
enum { VERSION = 130000 };
#endif
static uint32_t version(void) { return own.state.version ? own.state.version : VERSION; }

static uint64_t real_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* One of the next so many. */
static int takes(uint32_t *left) {
  if (*left) return (*left)--, 1;
  return 0;
}

/* ---- buffers; lock held ---- */

static size_t size_of(int32_t kind) {
  switch (kind) {
    case PROF_I_CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      return version() >= 130000 ? 216 : version() >= 19 ? 208 : 200;
    case PROF_I_CUPTI_ACTIVITY_KIND_MEMCPY:
      return version() >= 26 ? 96 : 88;
    case PROF_I_CUPTI_ACTIVITY_KIND_MEMSET:
      return 88;
    case PROF_I_CUPTI_ACTIVITY_KIND_MEMORY2:
      return version() >= 27 ? 128 : 120;
    case PROF_I_CUPTI_ACTIVITY_KIND_GRAPH_TRACE:
      return version() >= 22 ? 56 : 48;
    case PROF_I_CUPTI_ACTIVITY_KIND_DRIVER:
    case PROF_I_CUPTI_ACTIVITY_KIND_RUNTIME:
    case PROF_I_CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
      return 40;
    default:
      return 0;
  }
}

static void append(int32_t kind, const void *record, size_t known, size_t bytes) {
  memset(own.buffer + own.valid, 0xa5, bytes); /* what is newer than the reader knows */
  memcpy(own.buffer + own.valid, record, known < bytes ? known : bytes);
  memcpy(own.buffer + own.valid, &kind, sizeof kind);
  own.valid += bytes;
}

static void give_back(void) {
  uint8_t *const buffer = own.buffer;
  const size_t bytes = own.bytes;
  if (!buffer) return;
  if (own.valid + UNKNOWN_BYTES <= bytes && own.valid && takes(&own.state.unknown)) {
    static const char nothing[UNKNOWN_BYTES];
    append(UNKNOWN_KIND, nothing, sizeof nothing, UNKNOWN_BYTES);
  }
  const size_t valid = own.valid;
  own.buffer = NULL;
  own.valid = 0;
  count(&own.state.returned);
  own.completed(NULL, 0, buffer, bytes, valid);
}

static void ask(uint8_t **buffer, size_t *bytes) {
  size_t most = 0;
  count(&own.state.requests);
  own.requested(buffer, bytes, &most);
  if (!*buffer) count(&own.state.refused);
}

static void hoard(void) {
  for (uint32_t i = 0; i < HOARD && takes(&own.state.hoards); i++)
    ask(&own.hoarded[i], &own.hoarded_bytes[i]);
}

static void end_hoard(void) {
  for (uint32_t i = 0; i < HOARD; i++) {
    if (!own.hoarded[i]) continue;
    count(&own.state.returned);
    own.completed(NULL, 0, own.hoarded[i], own.hoarded_bytes[i], 0);
    own.hoarded[i] = NULL;
  }
}

static void put(int32_t kind, const void *record, size_t known) {
  const size_t bytes = size_of(kind);
  if (own.buffer && own.bytes - own.valid < bytes) give_back();
  if (!own.buffer) {
    hoard();
    ask(&own.buffer, &own.bytes);
  }
  if (!own.buffer)
    count(&own.state.dropped);
  else
    append(kind, record, known, bytes);
}

/* ---- what the driver tells ---- */

static uint32_t thread_number(void) {
  return own.thread_type == PROF_I_CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM
             ? (uint32_t)gettid()
             : (uint32_t)(uintptr_t)pthread_self();
}

static void hold(const prof_i_cupti_call *call) {
  held *const h = calloc(1, sizeof *h);
  if (!h) abort();
  h->call = *call;
  if (!own.held) own.held_end = &own.held;
  *own.held_end = h;
  own.held_end = &h->next;
}

static void on_call(int domain, uint32_t number, uint32_t correlation, uint64_t start_ns,
                    uint64_t end_ns) {
  const int32_t kind =
      domain == 1 ? PROF_I_CUPTI_ACTIVITY_KIND_DRIVER : PROF_I_CUPTI_ACTIVITY_KIND_RUNTIME;
  pthread_mutex_lock(&own.lock);
  if (own.is_enabled[kind] || own.is_chosen[domain - 1][number]) {
    const prof_i_cupti_call call = {.kind = kind,
                                    .number = number,
                                    .start = start_ns,
                                    .end = end_ns,
                                    .process = (uint32_t)getpid(),
                                    .thread = thread_number(),
                                    .correlation = correlation};
    if (own.state.calls_last)
      hold(&call);
    else
      put(kind, &call, sizeof call);
  }
  pthread_mutex_unlock(&own.lock);
}

static bool is_of_whole(const work *w) {
  return w->it.graph && own.is_enabled[PROF_I_CUPTI_ACTIVITY_KIND_GRAPH_TRACE];
}

/* From its first node's start to its last one's end. */
static void tell_graph(const emulated_cuda_done *it, uint64_t start_ns, uint64_t end_ns) {
  static uint64_t starts[64]; /* by correlation: so many at once at most */
  uint64_t *const start = &starts[it->correlation % 64];
  const uint32_t node = (uint32_t)it->graph_node;
  if (node == 1) *start = start_ns;
  if (node != it->graph_nodes) return;
  const prof_i_cupti_graph graph = {.correlation = it->correlation,
                                    .start = *start,
                                    .end = end_ns,
                                    .device = it->device,
                                    .graph = it->graph,
                                    .context = it->context,
                                    .stream = it->stream};
  put(PROF_I_CUPTI_ACTIVITY_KIND_GRAPH_TRACE, &graph, sizeof graph);
}

static void tell(const work *w, uint64_t start_ns, uint64_t end_ns) {
  const emulated_cuda_done *const it = &w->it;
  if (is_of_whole(w)) {
    tell_graph(it, start_ns, end_ns);
    return;
  }
  const int has_none = takes(&own.state.no_times);
  const uint64_t start = has_none ? 0 : start_ns, end = has_none ? 0 : end_ns;
  const prof_i_cupti_kernel kernel = {
      .registers = 32,
      .start = start,
      .end = end,
      .device = it->device,
      .context = it->context,
      .stream = it->stream,
      .grid = {(int)it->grid[0], (int)it->grid[1], (int)it->grid[2]},
      .block = {(int)it->block[0], (int)it->block[1], (int)it->block[2]},
      .static_shared = 16,
      .dynamic_shared = (int)it->shared_bytes,
      .correlation = it->correlation,
      .name = it->name,
      .graph = it->graph,
      .graph_node = it->graph_node};
  const prof_i_cupti_copy copy = {.way = (uint8_t)it->way,
                                  .from = it->way == 1 ? 1 : 3,
                                  .to = it->way == 2 ? 2 : 3,
                                  .bytes = it->bytes,
                                  .start = start,
                                  .end = end,
                                  .device = it->device,
                                  .context = it->context,
                                  .stream = it->stream,
                                  .correlation = it->correlation};
  const prof_i_cupti_fill fill = {.bytes = it->bytes,
                                  .start = start,
                                  .end = end,
                                  .device = it->device,
                                  .context = it->context,
                                  .stream = it->stream,
                                  .correlation = it->correlation,
                                  .memory = 3};
  if (it->kind == EMULATED_CUDA_KERNEL)
    put(PROF_I_CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, &kernel, sizeof kernel);
  else if (it->kind == EMULATED_CUDA_COPY)
    put(PROF_I_CUPTI_ACTIVITY_KIND_MEMCPY, &copy, sizeof copy);
  else
    put(PROF_I_CUPTI_ACTIVITY_KIND_MEMSET, &fill, sizeof fill);
}

static int32_t kind_of(const work *w) {
  return w->it.kind == EMULATED_CUDA_KERNEL ? PROF_I_CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL
         : w->it.kind == EMULATED_CUDA_COPY ? PROF_I_CUPTI_ACTIVITY_KIND_MEMCPY
                                            : PROF_I_CUPTI_ACTIVITY_KIND_MEMSET;
}

static void *on_begin(const emulated_cuda_done *it) {
  work *const w = calloc(1, sizeof *w);
  if (!w) abort();
  w->it = *it;
  pthread_mutex_lock(&own.lock);
  if (own.is_enabled[kind_of(w)]) {
    w->next = own.works;
    if (w->next) w->next->at = &w->next;
    w->at = &own.works;
    own.works = w;
  } else {
    w->is_told = 1; /* nobody wanted to know when it was launched */
  }
  pthread_mutex_unlock(&own.lock);
  return w;
}

static void on_end(void *begun, uint64_t start_ns, uint64_t end_ns) {
  work *const w = begun;
  pthread_mutex_lock(&own.lock);
  if (w->at) *w->at = w->next;
  if (w->at && w->next) w->next->at = w->at;
  if (!w->is_told) tell(w, start_ns, end_ns);
  pthread_mutex_unlock(&own.lock);
  free(w);
}

static prof_i_cupti_memory late[LATE];
static uint32_t late_count, late_flushes;

static void on_piece(const emulated_cuda_piece *it) {
  const prof_i_cupti_memory piece = {
      .operation = it->is_release ? PROF_I_CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE
                                  : PROF_I_CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION,
      .place = it->place,
      .correlation = it->correlation,
      .address = it->address,
      .bytes = it->bytes,
      .timestamp = it->time_ns,
      .process = (uint32_t)getpid(),
      .device = it->device,
      .context = it->context,
      .stream = it->stream ? it->stream : UINT32_MAX};
  pthread_mutex_lock(&own.lock);
  if (!own.is_enabled[PROF_I_CUPTI_ACTIVITY_KIND_MEMORY2]) {
  } else if (late_count < LATE && takes(&own.state.late_pieces)) {
    late[late_count++] = piece;
    late_flushes = 0;
  } else {
    put(PROF_I_CUPTI_ACTIVITY_KIND_MEMORY2, &piece, sizeof piece);
  }
  pthread_mutex_unlock(&own.lock);
}

static void tell_late(void) {
  if (late_flushes++ == 0) return;
  for (uint32_t i = 0; i < late_count; i++)
    put(PROF_I_CUPTI_ACTIVITY_KIND_MEMORY2, &late[i], sizeof late[i]);
  late_count = 0;
}

static void on_wait(uint32_t context, uint32_t stream, uint32_t correlation, uint64_t start_ns,
                    uint64_t end_ns) {
  const prof_i_cupti_sync wait = {
      .kind = PROF_I_CUPTI_ACTIVITY_KIND_SYNCHRONIZATION,
      .type = PROF_I_CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE,
      .start = start_ns,
      .end = end_ns,
      .correlation = correlation,
      .context = context,
      .stream = stream};
  pthread_mutex_lock(&own.lock);
  if (own.is_enabled[PROF_I_CUPTI_ACTIVITY_KIND_SYNCHRONIZATION])
    put(PROF_I_CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, &wait, sizeof wait);
  pthread_mutex_unlock(&own.lock);
}

static const emulated_cuda_observer observer = {on_call, on_wait, on_begin, on_end, on_piece};

/* ---- CUPTI's functions ---- */

#define LOCKED(...)                       \
  do {                                    \
    count(&own.state.calls);              \
    pthread_mutex_lock(&own.lock);        \
    const int32_t result = (__VA_ARGS__); \
    pthread_mutex_unlock(&own.lock);      \
    return result;                        \
  } while (0)

#define DECLARE(need, name, arguments) CUPTI int32_t name arguments;
PROF_I_CUPTI_FUNCTIONS(DECLARE)

static int find_driver(void) {
  if (cuda.observe) return 1;
  void *const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (!library) return 0;
  *(void **)&cuda.stream_number = dlsym(library, "emulated_cuda_stream_number");
  *(void **)&cuda.context_number = dlsym(library, "emulated_cuda_context_number");
  *(void **)&cuda.observe = dlsym(library, "emulated_cuda_observe");
  return cuda.observe != NULL;
}

int32_t cuptiGetVersion(uint32_t *version_out) {
  count(&own.state.calls);
  *version_out = version();
  return SUCCESS;
}

int32_t cuptiGetResultString(int32_t error, const char **text_out) {
  *text_out = error == PROF_I_CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED
                  ? "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"
              : error == PROF_I_CUPTI_ERROR_INSUFFICIENT_PRIVILEGES
                  ? "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"
              : error == PROF_I_CUPTI_ERROR_NOT_COMPATIBLE ? "CUPTI_ERROR_NOT_COMPATIBLE"
                                                           : "CUPTI_ERROR_UNKNOWN";
  return SUCCESS;
}

CUPTI int32_t cuptiFinalize(void);
CUPTI int32_t cuptiFinalize(void) {
  count(&own.state.never);
  return SUCCESS;
}
CUPTI int32_t cuptiActivityRegisterTimestampCallback(uint64_t (*clock)(void));
CUPTI int32_t cuptiActivityRegisterTimestampCallback(uint64_t (*clock)(void)) {
  (void)clock;
  count(&own.state.never);
  return SUCCESS;
}

int32_t cuptiGetTimestamp(uint64_t *ns_out) {
  *ns_out = real_ns();
  return SUCCESS;
}

static int32_t subscribe(prof_i_cupti_subscriber *out, prof_i_cupti_subscriber_params *params) {
  for (uint32_t ms = 0; ms < __atomic_load_n(&own.state.begins_ms, __ATOMIC_RELAXED); ms++)
    usleep(1000);
  if (!find_driver()) return NOT_INITIALIZED;
  if (own.state.subscribe_error) return own.state.subscribe_error;
  if (own.state.holder || own.state.subscribers) {
    if (params && params->holder && own.state.holder)
      strncpy(params->holder, own.state.holder, params->holder_room - 1);
    return PROF_I_CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  }
  own.state.subscribers++;
  *out = (prof_i_cupti_subscriber)&own.holder_object;
  return SUCCESS;
}
int32_t cuptiSubscribe(prof_i_cupti_subscriber *out, prof_i_cupti_callback callback, void *user) {
  (void)callback;
  (void)user;
  LOCKED(subscribe(out, NULL));
}
#ifndef EMULATED_CUPTI_11
int32_t cuptiSubscribe_v2(prof_i_cupti_subscriber *out, prof_i_cupti_callback callback, void *user,
                          prof_i_cupti_subscriber_params *params) {
  (void)callback;
  (void)user;
  LOCKED(params->size < sizeof *params ? INVALID_PARAMETER : subscribe(out, params));
}
int32_t cuptiActivityEnableDriverApi(uint32_t number, uint8_t do_enable) {
  LOCKED(number < CALLS ? (own.is_chosen[0][number] = do_enable, SUCCESS) : INVALID_PARAMETER);
}
int32_t cuptiActivityEnableRuntimeApi(uint32_t number, uint8_t do_enable) {
  LOCKED(number < CALLS ? (own.is_chosen[1][number] = do_enable, SUCCESS) : INVALID_PARAMETER);
}
#endif
int32_t cuptiUnsubscribe(prof_i_cupti_subscriber subscriber) {
  LOCKED(subscriber == (prof_i_cupti_subscriber)&own.holder_object && own.state.subscribers
             ? (own.state.subscribers--, SUCCESS)
             : INVALID_PARAMETER);
}

int32_t cuptiSetThreadIdType(int32_t type) { LOCKED((own.thread_type = type, SUCCESS)); }

int32_t cuptiActivityRegisterCallbacks(prof_i_cupti_requested requested,
                                       prof_i_cupti_completed completed) {
  LOCKED((own.requested = requested, own.completed = completed, SUCCESS));
}

static int32_t enable(int32_t kind, int do_enable) {
  if (kind < 0 || kind >= KINDS) return INVALID_KIND;
  if (!find_driver() || !own.requested) return NOT_INITIALIZED;
  if (do_enable && kind == PROF_I_CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL && own.state.enable_error)
    return own.state.enable_error;
  __atomic_fetch_add(&own.state.kinds, (uint32_t)(!!do_enable - own.is_enabled[kind]),
                     __ATOMIC_RELAXED);
  own.is_enabled[kind] = do_enable != 0;
  cuda.observe(&observer);
  return SUCCESS;
}
int32_t cuptiActivityEnable(int32_t kind) { LOCKED(enable(kind, 1)); }
int32_t cuptiActivityDisable(int32_t kind) { LOCKED(enable(kind, 0)); }

static int32_t flush(uint32_t flags) {
  count(&own.state.flushes);
  while (__atomic_load_n(&own.state.hangs, __ATOMIC_RELAXED)) usleep(1000);
  for (held *h = own.held, *next; h; h = next) {
    next = h->next;
    put(h->call.kind, &h->call, sizeof h->call);
    free(h);
  }
  own.held = NULL;
  for (work *w = own.works; w && (flags & PROF_I_CUPTI_ACTIVITY_FLAG_FLUSH_FORCED); w = w->next) {
    if (!w->is_told) tell(w, real_ns(), 0);
    w->is_told = 1;
  }
  tell_late();
  give_back();
  if (flags & PROF_I_CUPTI_ACTIVITY_FLAG_FLUSH_FORCED) end_hoard();
  return SUCCESS;
}
int32_t cuptiActivityFlushAll(uint32_t flags) { LOCKED(flush(flags)); }

int32_t cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, void **record) {
  int32_t kind = 0;
  uint8_t *at = buffer;
  if (*record) {
    memcpy(&kind, *record, sizeof kind);
    at = (uint8_t *)*record + size_of(kind);
  }
  if (at >= buffer + valid) return PROF_I_CUPTI_ERROR_MAX_LIMIT_REACHED;
  memcpy(&kind, at, sizeof kind);
  if (!size_of(kind)) return INVALID_KIND;
  *record = at;
  return SUCCESS;
}

static int32_t take_dropped(size_t *dropped) {
  *dropped = __atomic_exchange_n(&own.state.dropped, 0, __ATOMIC_RELAXED);
  return SUCCESS;
}
int32_t cuptiActivityGetNumDroppedRecords(prof_i_cu_context context, uint32_t stream,
                                          size_t *dropped) {
  (void)context;
  (void)stream;
  LOCKED(take_dropped(dropped));
}

int32_t cuptiGetCallbackName(int32_t domain, uint32_t number, const char **name) {
  static const char *const driver[] = {
      [17] = "cuCtxSynchronize",      [120] = "cuEventQuery",
      [126] = "cuStreamSynchronize",  [216] = "cuMemsetD8Async",
      [277] = "cuMemcpyHtoDAsync_v2", [279] = "cuMemcpyDtoHAsync_v2",
      [281] = "cuMemcpyDtoDAsync_v2", [307] = "cuLaunchKernel",
      [514] = "cuGraphLaunch"};
  static const char *const runtime[] = {[41] = "cudaMemcpyAsync_v3020",
                                        [131] = "cudaStreamSynchronize_v3020",
                                        [211] = "cudaLaunchKernel_v7000"};
  const char *const text = domain == 1 && number < sizeof driver / sizeof *driver ? driver[number]
                           : domain == 2 && number < sizeof runtime / sizeof *runtime
                               ? runtime[number]
                               : NULL;
  if (number == 0 || number >= sizeof driver / sizeof *driver) return INVALID_PARAMETER;
  *name = text ? text : "cuOther"; /* the real list has no gaps */
  return SUCCESS;
}

static int32_t number(uint32_t found, uint32_t *out) {
  *out = found;
  return found ? SUCCESS : INVALID_PARAMETER;
}
int32_t cuptiGetContextId(prof_i_cu_context context, uint32_t *out) {
  count(&own.state.calls);
  return find_driver() ? number(cuda.context_number(context), out) : NOT_INITIALIZED;
}
int32_t cuptiGetStreamIdEx(prof_i_cu_context context, prof_i_cu_stream stream,
                           uint8_t is_per_thread, uint32_t *out) {
  count(&own.state.calls);
  return find_driver() ? number(cuda.stream_number(context, stream, is_per_thread), out)
                       : NOT_INITIALIZED;
}
