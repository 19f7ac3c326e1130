/* An emulated HIP runtime, libamdhip64.so.6 or (EMULATED_HIP_5) .5, which lacks what came later:
   devices, streams, events and capture as AMD's documentation has them, on streams that are
   threads. Handles that are gone are refused. No device is behind it. */
#define _GNU_SOURCE
#include "hip.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "engine.h"
#include "memory.h"
#include "modules.h"

#define HIP __attribute__((visibility("default")))

enum {
  SUCCESS = 0,
  INVALID_VALUE = 1,
  OUT_OF_MEMORY = 2,
  NO_DEVICE = 100,
  INVALID_DEVICE = 101,
  INVALID_HANDLE = 400,
  NOT_FOUND = 500,
  NOT_READY = 600,
  CAPTURE_UNSUPPORTED = 900,
  CAPTURE_INVALIDATED = 901,
  CAPTURE_IMPLICIT = 906
};
enum { CAPTURE_GLOBAL = 0, CAPTURE_RELAXED = 2, STREAMS = 256 };

typedef struct stream {
  engine_stream *engine;             /* NULL: it is gone */
  int device, capture, capture_mode; /* capture: 0 none, 1 under way, 2 broken */
} stream;

typedef struct event {
  engine_event *engine;
  int device, is_captured;
} event;

static struct {
  pthread_mutex_t lock;
  stream streams[STREAMS];
  uint32_t count;
  stream *legacy[EMULATED_HIP_DEVICES], *per_thread[EMULATED_HIP_DEVICES];
  emulated_hip state;
} own = {.lock = PTHREAD_MUTEX_INITIALIZER, .state = {.device_count = EMULATED_HIP_DEVICES}};

static __thread struct { int device, mode, last; } here;

HIP emulated_hip *emulated_hip_state(void) { return &own.state; }

static void count(uint32_t *what, int32_t by) {
  __atomic_fetch_add(what, (uint32_t)by, __ATOMIC_RELAXED);
}

static const emulated_hip_observer *observer;

/* As rocprofiler-register, which is a part of the real one: where tools are named, rocprofiler is
   loaded, and asks them. */
static void ask_tools(void) {
  void *const library = getenv("ROCP_TOOL_LIBRARIES")
                            ? dlopen("librocprofiler-sdk.so.1", RTLD_NOW | RTLD_GLOBAL)
                            : NULL;
  void (*ask)(void) = NULL;
  if (library) *(void **)&ask = dlsym(library, "emulated_rocp_ask_tools");
  if (ask) ask();
}

static void enter(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, ask_tools);
  const emulated_hip_observer *const by = __atomic_load_n(&observer, __ATOMIC_ACQUIRE);
  if (__atomic_fetch_add(&own.state.calls, 1, __ATOMIC_RELAXED) == 0 && by) by->starts();
}

/* Before HIP 7 the last error is that of the last call, which may have gone well. */
static int said(int result) {
  if (result != NOT_READY) here.last = result;
  return result;
}
HIP int hipPeekAtLastError(void);
HIP int hipPeekAtLastError(void) { return here.last; }
HIP int hipGetLastError(void);
HIP int hipGetLastError(void) {
  const int last = here.last;
  here.last = SUCCESS;
  return last;
}

/* After an error that ends all nothing is looked at any more. */
static int last_error(void) {
  const int error = __atomic_load_n(&own.state.last_error, __ATOMIC_RELAXED);
  if (error) count(&own.state.after_last, 1);
  return error;
}

#define LOCKED(...)                   \
  do {                                \
    const int over = last_error();    \
    if (over) return said(over);      \
    enter();                          \
    pthread_mutex_lock(&own.lock);    \
    const int result = (__VA_ARGS__); \
    pthread_mutex_unlock(&own.lock);  \
    return said(result);              \
  } while (0)

/* ---- devices ---- */

HIP int hipRuntimeGetVersion(int *version);
HIP int hipRuntimeGetVersion(int *version) {
#ifdef EMULATED_HIP_5
  *version = 50221153;
#else
  *version = 60342134;
#endif
  return said(SUCCESS);
}

HIP int hipInit(unsigned flags);
HIP int hipInit(unsigned flags) {
  LOCKED(flags ? INVALID_VALUE : own.state.device_count ? SUCCESS : NO_DEVICE);
}

HIP int hipGetDeviceCount(int *out);
HIP int hipGetDeviceCount(int *out) {
  LOCKED((*out = (int)own.state.device_count) > 0 ? SUCCESS : NO_DEVICE);
}

HIP int hipGetDevice(int *out);
HIP int hipGetDevice(int *out) {
  LOCKED(own.state.device_count ? (*out = here.device, SUCCESS) : NO_DEVICE);
}

HIP int hipSetDevice(int device);
HIP int hipSetDevice(int device) {
  LOCKED(device >= 0 && device < (int)own.state.device_count ? (here.device = device, SUCCESS)
                                                             : INVALID_DEVICE);
}

HIP int hipDeviceGetName(char *name, int room, int device);
HIP int hipDeviceGetName(char *name, int room, int device) {
  snprintf(name, (size_t)room, "Emulated HIP %d", device);
  return SUCCESS;
}

HIP int hipDeviceTotalMem(size_t *bytes, int device);
HIP int hipDeviceTotalMem(size_t *bytes, int device) {
  *bytes = (size_t)(64 + device) << 30;
  return SUCCESS;
}

HIP int hipDeviceGetUuid(char *uuid, int device);
HIP int hipDeviceGetUuid(char *uuid, int device) {
  memset(uuid, 0x20 + device, 16);
  return SUCCESS;
}

HIP int hipDeviceGetAttribute(int *value, int what, int device);
HIP int hipDeviceGetAttribute(int *value, int what, int device) {
  *value = what == 63 ? 304 : what == 5 ? 2100000 : what == 67 ? 0x0c + device : 0;
  return SUCCESS;
}

/* ---- streams; lock held ---- */

static int is_stream(const stream *s) {
  return s >= own.streams && s < own.streams + own.count &&
         ((uintptr_t)s - (uintptr_t)own.streams) % sizeof *s == 0 && s->engine;
}

static stream *make_stream(int device) {
  if (own.count == STREAMS) abort();
  stream *const s = &own.streams[own.count++];
  *s = (stream){.engine = engine_stream_create(CLOCK_BOOTTIME), .device = device};
  return s;
}

/* 0, 1 and 2 are the current device's. */
static int find(void *handle, stream **out) {
  const uintptr_t number = (uintptr_t)handle;
  if (number <= 2) {
    stream **const its = number == 2 ? &own.per_thread[here.device] : &own.legacy[here.device];
    if (!*its) *its = make_stream(here.device);
    *out = *its;
    return SUCCESS;
  }
  *out = handle;
  return is_stream(handle) ? SUCCESS : INVALID_HANDLE;
}

static int is_capturing(int mode) {
  for (uint32_t i = 0; i < own.count; i++)
    if (own.streams[i].capture == 1 && own.streams[i].capture_mode <= mode) return 1;
  return 0;
}

static int break_captures(void) {
  if (here.mode == CAPTURE_RELAXED || !is_capturing(CAPTURE_GLOBAL)) return 0;
  for (uint32_t i = 0; i < own.count; i++)
    if (own.streams[i].capture == 1 && own.streams[i].capture_mode == CAPTURE_GLOBAL)
      own.streams[i].capture = 2;
  count(&own.state.broken_captures, 1);
  return 1;
}

HIP int hipStreamCreate(void **out);
HIP int hipStreamCreate(void **out) { LOCKED((*out = make_stream(here.device), SUCCESS)); }
HIP int hipStreamCreateWithFlags(void **out, unsigned flags);
HIP int hipStreamCreateWithFlags(void **out, unsigned flags) {
  (void)flags;
  return hipStreamCreate(out);
}

static int end_stream(void *handle) {
  stream *s;
  const int error = find(handle, &s);
  if (error) return error;
  engine_stream_destroy(s->engine);
  s->engine = NULL;
  return SUCCESS;
}
HIP int hipStreamDestroy(void *handle);
HIP int hipStreamDestroy(void *handle) { LOCKED(end_stream(handle)); }

static engine_stream *engine_of(void *handle) {
  stream *s = NULL;
  pthread_mutex_lock(&own.lock);
  engine_stream *const engine = find(handle, &s) == SUCCESS ? s->engine : NULL;
  pthread_mutex_unlock(&own.lock);
  return engine;
}

/* ---- work ---- */

typedef struct kernel {
  char symbol[256]; /* as a code object has it */
  uint64_t ns, number;
  struct kernel *next;
  const module_kernel *code; /* what it does; NULL: nothing but to take its time */
} kernel;
static kernel *kernels; /* lock held */
static uint64_t correlations;

HIP void emulated_hip_observe(const emulated_hip_observer *by) {
  pthread_mutex_lock(&own.lock);
  __atomic_store_n(&observer, by, __ATOMIC_RELEASE);
  for (const kernel *k = kernels; k; k = k->next) by->loads(k->number, k->symbol);
  pthread_mutex_unlock(&own.lock);
}

HIP void *emulated_hip_kernel(const char *name, uint64_t ns) {
  kernel *const k = calloc(1, sizeof *k);
  if (!k) abort();
  snprintf(k->symbol, sizeof k->symbol, "%s.kd", name);
  k->ns = ns;
  pthread_mutex_lock(&own.lock);
  k->number = kernels ? kernels->number + 1 : 1;
  k->next = kernels;
  kernels = k;
  if (observer) observer->loads(k->number, k->symbol);
  pthread_mutex_unlock(&own.lock);
  return k;
}

static uint64_t boot_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_BOOTTIME, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* What work does beside taking its time: run once, on the stream's thread, which frees it. */
typedef struct deed {
  void (*run)(void *own);
  void *own;
} deed;

typedef struct begun {
  const emulated_hip_observer *by; /* or NULL */
  void *it;
  deed deed;
} begun;

static void ended(void *user, uint64_t start_ns, uint64_t end_ns) {
  begun *const b = user;
  if (b->deed.own) {
    b->deed.run(b->deed.own);
    end_ns = boot_ns();
  }
  if (b->by) b->by->ends(b->it, start_ns, end_ns);
  free(b);
}

/* As one call. */
static int put_work(emulated_hip_call which, void *handle, emulated_hip_done *about, uint64_t ns,
                    deed what) {
  const emulated_hip_observer *const by = __atomic_load_n(&observer, __ATOMIC_ACQUIRE);
  const uint64_t start_ns = boot_ns();
  stream *s = NULL;
  pthread_mutex_lock(&own.lock);
  const int error = find(handle, &s);
  engine_stream *const engine = error ? NULL : s->engine;
  about->correlation = __atomic_add_fetch(&correlations, 1, __ATOMIC_RELAXED);
  about->thread = (uint64_t)gettid();
  if (!error) {
    about->device = s->device;
    about->queue = 1 + (uint64_t)(s - own.streams) % 4; /* several streams share one */
  }
  pthread_mutex_unlock(&own.lock);
  enter();
  said(error);
  if (error) free(what.own);
  if (error) return error;
  begun *const b = by || what.own ? calloc(1, sizeof *b) : NULL;
  if (b) *b = (begun){by, by ? by->begins(about) : NULL, what};
  if (b)
    engine_work_told(engine, ns, ended, b);
  else
    engine_work(engine, ns);
  if (by) by->call(which, about->correlation, start_ns, boot_ns());
  return SUCCESS;
}

HIP int hipModuleLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                              unsigned block_x, unsigned block_y, unsigned block_z,
                              unsigned shared_bytes, void *handle, void **parameters, void **extra);
HIP int hipModuleLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                              unsigned block_x, unsigned block_y, unsigned block_z,
                              unsigned shared_bytes, void *handle, void **parameters,
                              void **extra) {
  const kernel *const k = function;
  (void)extra;
  emulated_hip_done about = {.kind = EMULATED_HIP_KERNEL,
                             .kernel = k->number,
                             .groups = {grid_x, grid_y, grid_z},
                             .block = {block_x, block_y, block_z},
                             .shared_bytes = shared_bytes};
  const deed what = {
      module_launch,
      k->code ? module_launch_to_come(k->code, about.groups, about.block, parameters) : NULL};
  return put_work(EMULATED_HIP_LAUNCH, handle, &about, k->ns, what);
}

HIP void emulated_hip_work(void *handle, uint64_t ns) {
  static kernel *busy;
  kernel *known = __atomic_load_n(&busy, __ATOMIC_ACQUIRE);
  if (!known) {
    known = emulated_hip_kernel("busy", 0);
    __atomic_store_n(&busy, known, __ATOMIC_RELEASE);
  }
  emulated_hip_done about = {.kind = EMULATED_HIP_KERNEL,
                             .kernel = known->number,
                             .groups = {1, 1, 1},
                             .block = {64, 1, 1}};
  if (put_work(EMULATED_HIP_LAUNCH, handle, &about, ns, (deed){NULL, NULL}) != SUCCESS) abort();
}

/* A GB a second. Nothing is copied where neither side is memory that was handed out. */
static int copy(emulated_hip_call which, void *to, const void *from, size_t bytes, void *handle) {
  emulated_hip_done about = {
      .kind = EMULATED_HIP_COPY, .bytes = bytes, .to_host = which == EMULATED_HIP_TO_HOST};
  return put_work(which, handle, &about, bytes,
                  (deed){memory_copy, memory_copy_to_come((uint64_t)(uintptr_t)to,
                                                          (uint64_t)(uintptr_t)from, bytes)});
}
HIP int hipMemcpyHtoDAsync(void *to, const void *from, size_t bytes, void *handle);
HIP int hipMemcpyHtoDAsync(void *to, const void *from, size_t bytes, void *handle) {
  return copy(EMULATED_HIP_TO_DEVICE, to, from, bytes, handle);
}
HIP int hipMemcpyDtoHAsync(void *to, const void *from, size_t bytes, void *handle);
HIP int hipMemcpyDtoHAsync(void *to, const void *from, size_t bytes, void *handle) {
  return copy(EMULATED_HIP_TO_HOST, to, from, bytes, handle);
}

/* ---- modules: those of the emulated compiler ---- */

HIP int hipModuleLoadData(void **out, const void *image);
HIP int hipModuleLoadData(void **out, const void *image) {
  return said((*out = module_load(image)) ? SUCCESS : INVALID_VALUE);
}
HIP int hipModuleUnload(void *module);
HIP int hipModuleUnload(void *module) {
  module_unload(module);
  return said(SUCCESS);
}
HIP int hipModuleGetFunction(void **out, void *module, const char *name);
HIP int hipModuleGetFunction(void **out, void *module, const char *name) {
  const module_kernel *const code = module_find(module, name);
  if (!code) return said(NOT_FOUND);
  kernel *const k = emulated_hip_kernel(name, 0);
  k->code = code;
  *out = k;
  return said(SUCCESS);
}

/* ---- memory ---- */

static int take_memory(void **out, size_t bytes, int for_host) {
  *out = (void *)(uintptr_t)memory_take(bytes, for_host);
  return said(*out ? SUCCESS : OUT_OF_MEMORY);
}
HIP int hipMalloc(void **out, size_t bytes);
HIP int hipMalloc(void **out, size_t bytes) { return take_memory(out, bytes, 0); }
HIP int hipHostMalloc(void **out, size_t bytes, unsigned flags);
HIP int hipHostMalloc(void **out, size_t bytes, unsigned flags) {
  (void)flags;
  return take_memory(out, bytes, 1);
}
HIP int hipFree(void *memory);
HIP int hipFree(void *memory) {
  memory_give_back((uint64_t)(uintptr_t)memory);
  return said(SUCCESS);
}
HIP int hipHostFree(void *memory);
HIP int hipHostFree(void *memory) { return hipFree(memory); }

HIP int hipStreamSynchronize(void *handle);
HIP int hipStreamSynchronize(void *handle) {
  engine_stream *const engine = engine_of(handle);
  const emulated_hip_observer *const by = __atomic_load_n(&observer, __ATOMIC_ACQUIRE);
  const uint64_t start_ns = boot_ns();
  const int over = last_error();
  if (over) return said(over);
  if (!engine) return INVALID_HANDLE;
  engine_stream_wait(engine);
  if (by)
    by->call(EMULATED_HIP_SYNCHRONIZE, __atomic_add_fetch(&correlations, 1, __ATOMIC_RELAXED),
             start_ns, boot_ns());
  return SUCCESS;
}

#ifndef EMULATED_HIP_5
static int device_of(void *handle, int *device) {
  stream *s;
  const int error = find(handle, &s);
  if (!error) *device = s->device;
  return error;
}
HIP int hipStreamGetDevice(void *handle, int *device);
HIP int hipStreamGetDevice(void *handle, int *device) { LOCKED(device_of(handle, device)); }
#endif

static int is_captured(void *handle, int *status) {
  stream *s;
  const int error = find(handle, &s);
  if (error) return error;
  if ((uintptr_t)handle <= 1 && s->capture == 0 && is_capturing(CAPTURE_RELAXED))
    return CAPTURE_IMPLICIT;
  *status = s->capture;
  return SUCCESS;
}
HIP int hipStreamIsCapturing(void *handle, int *status);
HIP int hipStreamIsCapturing(void *handle, int *status) { LOCKED(is_captured(handle, status)); }

static int begin_capture(void *handle, int mode) {
  stream *s;
  const int error = find(handle, &s);
  if (error) return error;
  s->capture = 1;
  s->capture_mode = mode;
  return SUCCESS;
}
HIP int hipStreamBeginCapture(void *handle, int mode);
HIP int hipStreamBeginCapture(void *handle, int mode) { LOCKED(begin_capture(handle, mode)); }

static int end_capture(void *handle, void **graph) {
  stream *s;
  const int error = find(handle, &s);
  if (error) return error;
  const int was = s->capture;
  s->capture = 0;
  *graph = NULL;
  return was == 1 ? SUCCESS : CAPTURE_INVALIDATED;
}
HIP int hipStreamEndCapture(void *handle, void **graph);
HIP int hipStreamEndCapture(void *handle, void **graph) { LOCKED(end_capture(handle, graph)); }

HIP int hipThreadExchangeStreamCaptureMode(int *mode);
HIP int hipThreadExchangeStreamCaptureMode(int *mode) {
  const int before = here.mode;
  if (*mode < 0 || *mode > CAPTURE_RELAXED) return INVALID_VALUE;
  here.mode = *mode;
  *mode = before;
  return SUCCESS;
}

/* ---- events ---- */

static int make_event(void **out) {
  if (own.state.create_error) return own.state.create_error;
  event *const e = calloc(1, sizeof *e);
  if (!e) abort();
  *e = (event){.device = here.device, .engine = engine_event_create()};
  *out = e;
  count(&own.state.events, 1);
  return SUCCESS;
}
HIP int hipEventCreateWithFlags(void **out, unsigned flags);
HIP int hipEventCreateWithFlags(void **out, unsigned flags) {
  (void)flags;
  LOCKED(make_event(out));
}

static int end_event(event *e) {
  engine_event_destroy(e->engine);
  free(e);
  count(&own.state.events, -1);
  return SUCCESS;
}
HIP int hipEventDestroy(void *e);
HIP int hipEventDestroy(void *e) { LOCKED(end_event(e)); }

static int record(event *e, void *handle) {
  stream *s;
  if (own.state.record_error) return own.state.record_error;
  const int error = find(handle, &s);
  if (error) return error;
  if (e->device != s->device) return INVALID_HANDLE;
  if ((uintptr_t)handle <= 1 && is_capturing(CAPTURE_RELAXED)) return CAPTURE_IMPLICIT;
  e->is_captured = s->capture != 0;
  if (e->is_captured)
    count(&own.state.captured_records, 1);
  else
    engine_event_record(e->engine, s->engine);
  return SUCCESS;
}
HIP int hipEventRecord(void *e, void *handle);
HIP int hipEventRecord(void *e, void *handle) { LOCKED(record(e, handle)); }

static int look(const event *e, uint64_t *ns) {
  if (break_captures() || e->is_captured) return CAPTURE_UNSUPPORTED;
  const engine_event_state state = engine_event_look(e->engine, ns);
  return state == ENGINE_PENDING ? NOT_READY : state == ENGINE_PAST ? SUCCESS : INVALID_HANDLE;
}

static int query(const event *e) {
  uint64_t ns;
  const int result = look(e, &ns);
  /* of one that was never put on a stream the real one says that it is past */
  return result == INVALID_HANDLE ? SUCCESS : result;
}
HIP int hipEventQuery(void *e);
HIP int hipEventQuery(void *e) { LOCKED(query(e)); }

/* A float of milliseconds, by the 100 MHz of the device's counter. Of an event with itself it is
   0. */
static int elapsed(float *ms, const event *a, const event *b) {
  enum { STEP_NS = 10 };
  uint64_t from = 0, to = 0;
  if (own.state.elapsed_error) return own.state.elapsed_error;
  int error = look(a, &from);
  if (!error) error = look(b, &to);
  if (!error && a->device != b->device) error = INVALID_HANDLE;
  if (!error)
    *ms = (float)((double)((int64_t)(to / STEP_NS) - (int64_t)(from / STEP_NS)) * STEP_NS / 1e6);
  return error;
}
HIP int hipEventElapsedTime(float *ms, void *a, void *b);
HIP int hipEventElapsedTime(float *ms, void *a, void *b) { LOCKED(elapsed(ms, a, b)); }

/* ---- words ---- */

HIP const char *hipGetErrorName(int error);
HIP const char *hipGetErrorName(int error) {
  return error == 2                     ? "hipErrorOutOfMemory"
         : error == 700                 ? "hipErrorIllegalAddress"
         : error == INVALID_HANDLE      ? "hipErrorInvalidHandle"
         : error == CAPTURE_UNSUPPORTED ? "hipErrorStreamCaptureUnsupported"
         : error == INVALID_VALUE       ? "hipErrorInvalidValue"
                                        : "hipErrorUnknown";
}
HIP const char *hipGetErrorString(int error);
HIP const char *hipGetErrorString(int error) {
  return error == 2                ? "out of memory"
         : error == 700            ? "an illegal memory access was encountered"
         : error == INVALID_HANDLE ? "invalid resource handle"
         : error == INVALID_VALUE  ? "invalid argument"
                                   : "unknown error";
}
