/* An emulated CUDA driver, libcuda.so.1: contexts, streams, events and capture as the driver's
   documentation has them, on streams that are threads. Handles that are gone are refused, where the
   real one may crash. No device is behind it. */
#define _GNU_SOURCE
#include "cuda_driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "engine.h"
#include "handles.h"
#include "memory.h"
#include "modules.h"

enum { CAPTURE_GLOBAL = 0, CAPTURE_RELAXED = 2 };
enum { STACK = 16, CONTEXTS = 64, STREAMS = 4096, EVENTS = 65536 };

typedef struct event {
  context *of;
  engine_event *engine;
  int is_captured;           /* it is part of a graph, and was never put on a stream */
  unsigned long long number; /* its context's, also when both have gone */
} event;

static struct {
  pthread_mutex_t lock;
  int is_on;
  handles contexts, streams, events;
  emulated_cuda state;
} own = {.lock = PTHREAD_MUTEX_INITIALIZER,
         .contexts = {.bytes = sizeof(context), .room = CONTEXTS},
         .streams = {.bytes = sizeof(stream), .room = STREAMS},
         .events = {.bytes = sizeof(event), .room = EVENTS},
         .state = {.device_count = EMULATED_CUDA_DEVICES}};

static __thread struct {
  context *stack[STACK];
  int depth, mode;
  /* the context that was there at the last looks, and how many uses of its events these are good
     for: each for one */
  unsigned long long looked_at;
  int looks;
  int is_injected; /* it is inside of InitializeInjection() */
} here;

CU emulated_cuda *emulated_cuda_state(void) { return &own.state; }

static void count(uint32_t *what, int32_t by) {
  __atomic_fetch_add(what, (uint32_t)by, __ATOMIC_RELAXED);
}

/* For its functions, but for those that need no driver that has begun. */
void cuda_lock(void) {
  static const char why[] =
      "emulated CUDA: called by who is injected, inside of cuInit(): the real one may hang for "
      "ever\n";
  if (here.is_injected) {
    if (write(STDERR_FILENO, why, sizeof why - 1) < 0) _exit(1);
    abort();
  }
  pthread_mutex_lock(&own.lock);
}

void cuda_unlock(void) { pthread_mutex_unlock(&own.lock); }

/* ---- what is current, streams; lock held ---- */

static context *current(void) {
  context *const c = here.depth ? here.stack[here.depth - 1] : NULL;
  return handles_has(&own.contexts, c) ? c : NULL;
}

static stream *make_stream(context *of) {
  static uint32_t number = 6;
  stream *const s = handles_add(&own.streams);
  *s = (stream){.of = of, .engine = engine_stream_create(CLOCK_REALTIME), .number = ++number};
  return s;
}

int cuda_find_stream(void *handle, stream **out) {
  const uintptr_t number = (uintptr_t)handle;
  if (!own.is_on) return NOT_INITIALIZED;
  if (number <= 2) {
    context *const c = current();
    if (!c) return INVALID_CONTEXT;
    void **const own_one = number == 2 ? &c->per_thread : &c->legacy;
    if (!*own_one) *own_one = make_stream(c);
    *out = *own_one;
    return SUCCESS;
  }
  if (!handles_has(&own.streams, handle)) return INVALID_HANDLE;
  *out = handle;
  return SUCCESS;
}

int cuda_is_current(uint32_t *device_out, uint32_t *context_out) {
  const context *const c = current();
  if (!c) return 0;
  *device_out = (uint32_t)c->device;
  *context_out = (uint32_t)c->number;
  return 1;
}

int cuda_stream_number(void *handle, uint32_t *out) {
  stream *s;
  const int error = cuda_find_stream(handle, &s);
  if (error == SUCCESS) *out = s->number;
  return error;
}

static int is_capturing(int mode) {
  for (const stream *s = NULL; (s = handles_next(&own.streams, s)) != NULL;)
    if (s->capture == 1 && s->capture_mode <= mode) return 1;
  return 0;
}

/* What may not be called from any thread while a stream is captured globally, but from one that
   says that it knows: breaks the capture. */
static int break_captures(void) {
  if (here.mode == CAPTURE_RELAXED || !is_capturing(CAPTURE_GLOBAL)) return 0;
  for (stream *s = NULL; (s = handles_next(&own.streams, s)) != NULL;)
    if (s->capture == 1 && s->capture_mode == CAPTURE_GLOBAL) s->capture = 2;
  count(&own.state.broken_captures, 1);
  return 1;
}

/* After an error that ends all nothing is looked at any more. */
static int last_error(void) {
  const int error = __atomic_load_n(&own.state.last_error, __ATOMIC_RELAXED);
  if (error) count(&own.state.after_last, 1);
  return error;
}

#define LOCKED_UNLESS_OVER(...)    \
  do {                             \
    const int over = last_error(); \
    if (over) return over;         \
    LOCKED(__VA_ARGS__);           \
  } while (0)

/* ---- the driver and its devices ---- */

/* As the real one does, once, before anything can be used. Lock held: other threads' calls wait
   until that is over. */
static void inject(void) {
  const char *const path = getenv("CUDA_INJECTION64_PATH");
  void *const library = path && *path ? dlopen(path, RTLD_NOW) : NULL;
  int (*initialize)(void);
  if (!library) return;
  *(void **)&initialize = dlsym(library, "InitializeInjection");
  here.is_injected = 1;
  if (initialize) initialize();
  here.is_injected = 0;
}

static void begin(void) {
  cuda_lock();
  if (__atomic_fetch_add(&own.state.init_count, 1, __ATOMIC_RELAXED) == 0) inject();
  pthread_mutex_unlock(&own.lock);
}

CU int cuInit(unsigned flags);
CU int cuInit(unsigned flags) {
  begin();
  const char *const told = getenv("EMULATED_CUDA_INIT_ERROR");
  if (flags) return INVALID_VALUE;
  if (told || own.state.init_error) return told ? atoi(told) : own.state.init_error;
  LOCKED((own.is_on = 1, SUCCESS));
}

CU int cuDriverGetVersion(int *version);
CU int cuDriverGetVersion(int *version) {
  *version = own.state.driver_version ? own.state.driver_version : 13000;
  return SUCCESS;
}

CU int cuDeviceGetCount(int *out);
CU int cuDeviceGetCount(int *out) {
  LOCKED(own.is_on ? (*out = (int)own.state.device_count, SUCCESS) : NOT_INITIALIZED);
}

CU int cuDeviceGet(int *device, int ordinal);
CU int cuDeviceGet(int *device, int ordinal) {
  if (ordinal < 0 || ordinal >= (int)own.state.device_count) return INVALID_DEVICE;
  *device = ordinal;
  return SUCCESS;
}

/* ---- contexts ---- */

static unsigned long long context_numbers; /* lock held */

static int make_context(void **out, int device) {
  if (!own.is_on) return NOT_INITIALIZED;
  context *const c = handles_add(&own.contexts);
  *c = (context){.device = device, .number = ++context_numbers};
  if (here.depth == STACK) abort();
  here.stack[here.depth++] = *out = c;
  count(&own.state.contexts, 1);
  return SUCCESS;
}
CU int cuCtxCreate_v2(void **out, unsigned flags, int device);
CU int cuCtxCreate_v2(void **out, unsigned flags, int device) {
  (void)flags;
  LOCKED(make_context(out, device));
}

static void empty_context(const void *handle) {
  for (const stream *s = NULL; (s = handles_next(&own.streams, s)) != NULL;) {
    if (s->of != handle) continue;
    engine_stream_destroy(s->engine);
    handles_drop(&own.streams, s);
  }
  for (const event *e = NULL; (e = handles_next(&own.events, e)) != NULL;) {
    if (e->of != handle) continue;
    engine_event_destroy(e->engine);
    handles_drop(&own.events, e);
    count(&own.state.events, -1);
  }
}

static int end_context(void *handle) {
  if (!handles_has(&own.contexts, handle)) return INVALID_CONTEXT;
  empty_context(handle);
  if (here.depth && here.stack[here.depth - 1] == handle) here.depth--;
  handles_drop(&own.contexts, handle);
  count(&own.state.contexts, -1);
  return SUCCESS;
}
CU int cuCtxDestroy_v2(void *handle);
CU int cuCtxDestroy_v2(void *handle) { LOCKED(end_context(handle)); }

static void *primary[EMULATED_CUDA_DEVICES];
static int primary_holders[EMULATED_CUDA_DEVICES];

static int retain_primary(void **out, int device) {
  if (device < 0 || device >= EMULATED_CUDA_DEVICES) return INVALID_DEVICE;
  if (!primary[device] || !handles_has(&own.contexts, primary[device])) {
    const int error = make_context(&primary[device], device);
    if (error) return error;
    here.depth--; /* it is no thread's current one */
    primary_holders[device] = 0;
  }
  primary_holders[device]++;
  *out = primary[device];
  return SUCCESS;
}
CU int cuDevicePrimaryCtxRetain(void **out, int device);
CU int cuDevicePrimaryCtxRetain(void **out, int device) { LOCKED(retain_primary(out, device)); }
CU int cuDevicePrimaryCtxRelease_v2(int device);
CU int cuDevicePrimaryCtxRelease_v2(int device) {
  LOCKED(primary_holders[device] > 0
             ? --primary_holders[device] == 0 ? end_context(primary[device]) : SUCCESS
             : INVALID_CONTEXT);
}

/* All that is in it goes, and it is another context at the same handle from then on. */
static int reset_primary(int device) {
  if (device < 0 || device >= EMULATED_CUDA_DEVICES) return INVALID_DEVICE;
  context *const c = primary[device];
  if (!c || !handles_has(&own.contexts, c)) return SUCCESS;
  empty_context(c);
  c->legacy = c->per_thread = NULL;
  c->number = ++context_numbers;
  return SUCCESS;
}
CU int cuDevicePrimaryCtxReset_v2(int device);
CU int cuDevicePrimaryCtxReset_v2(int device) { LOCKED(reset_primary(device)); }

static int set_current(void *handle) {
  if (handle && !handles_has(&own.contexts, handle)) return INVALID_CONTEXT;
  if (here.depth) here.depth--;
  if (handle) here.stack[here.depth++] = handle;
  return SUCCESS;
}
CU int cuCtxSetCurrent(void *handle);
CU int cuCtxSetCurrent(void *handle) { LOCKED(set_current(handle)); }

static int look_at(void *handle, unsigned long long *out) {
  if (!handles_has(&own.contexts, handle)) return CONTEXT_IS_DESTROYED;
  *out = ((context *)handle)->number;
  here.looks = here.looked_at == *out ? here.looks + 1 : 1;
  here.looked_at = *out;
  return SUCCESS;
}
CU int cuCtxGetId(void *handle, unsigned long long *out);
CU int cuCtxGetId(void *handle, unsigned long long *out) { LOCKED(look_at(handle, out)); }

CU int cuCtxGetApiVersion(void *handle, unsigned *out);
CU int cuCtxGetApiVersion(void *handle, unsigned *out) {
  LOCKED(handles_has(&own.contexts, handle) ? (*out = 3020, SUCCESS) : INVALID_CONTEXT);
}

CU int cuCtxGetCurrent(void **out);
CU int cuCtxGetCurrent(void **out) {
  LOCKED((*out = here.depth ? here.stack[here.depth - 1] : NULL, SUCCESS));
}

CU int cuCtxGetDevice(int *device);
CU int cuCtxGetDevice(int *device) {
  LOCKED(current() ? (*device = current()->device, SUCCESS) : INVALID_CONTEXT);
}

CU int cuCtxPushCurrent_v2(void *handle);
CU int cuCtxPushCurrent_v2(void *handle) {
  LOCKED(handles_has(&own.contexts, handle) && here.depth < STACK
             ? (here.stack[here.depth++] = handle, SUCCESS)
             : INVALID_CONTEXT);
}

CU int cuCtxPopCurrent_v2(void **out);
CU int cuCtxPopCurrent_v2(void **out) {
  LOCKED(here.depth ? (*out = here.stack[--here.depth], SUCCESS) : INVALID_CONTEXT);
}

/* ---- streams ---- */

CU int cuStreamCreate(void **out, unsigned flags);
CU int cuStreamCreate(void **out, unsigned flags) {
  (void)flags;
  LOCKED_UNLESS_OVER(current() ? (*out = make_stream(current()), SUCCESS) : INVALID_CONTEXT);
}

static int end_stream(void *handle) {
  stream *s;
  const int error = cuda_find_stream(handle, &s);
  if (error) return error;
  engine_stream_destroy(s->engine);
  handles_drop(&own.streams, s);
  return SUCCESS;
}
CU int cuStreamDestroy_v2(void *handle);
CU int cuStreamDestroy_v2(void *handle) { LOCKED(end_stream(handle)); }

static engine_stream *engine_of(void *handle) {
  stream *s = NULL;
  cuda_lock();
  engine_stream *const engine = cuda_find_stream(handle, &s) == SUCCESS ? s->engine : NULL;
  pthread_mutex_unlock(&own.lock);
  return engine;
}

CU int cuStreamSynchronize(void *handle);
CU int cuStreamSynchronize(void *handle) {
  engine_stream *const engine = engine_of(handle);
  const int over = last_error();
  if (over) return over;
  if (!engine) return INVALID_HANDLE;
  engine_stream_wait(engine);
  return SUCCESS;
}

/* ---- numbers, as CUPTI has them ---- */

static uint32_t number_of_stream(void *of, void *handle, int is_per_thread) {
  stream *s = NULL;
  context *const c = handles_has(&own.contexts, of) ? of : NULL;
  if (!c) return 0;
  if ((uintptr_t)handle > 2) return cuda_find_stream(handle, &s) == SUCCESS ? s->number : 0;
  const stream *const its = is_per_thread ? c->per_thread : c->legacy;
  return its ? its->number : 0;
}
CU uint32_t emulated_cuda_stream_number(void *of, void *handle, int is_per_thread) {
  LOCKED(number_of_stream(of, handle, is_per_thread));
}
CU uint32_t emulated_cuda_context_number(void *of) {
  LOCKED(handles_has(&own.contexts, of) ? (uint32_t)((context *)of)->number : 0);
}

/* ---- of streams ---- */

static int context_of(void *handle, void **out) {
  stream *s;
  const int error = cuda_find_stream(handle, &s);
  if (!error) *out = s->of;
  return error;
}
CU int cuStreamGetCtx(void *handle, void **out);
CU int cuStreamGetCtx(void *handle, void **out) { LOCKED_UNLESS_OVER(context_of(handle, out)); }

static int is_captured(void *handle, int *status) {
  stream *s;
  const int error = cuda_find_stream(handle, &s);
  if (error) return error;
  if ((uintptr_t)handle <= 1 && s->capture == 0 && is_capturing(CAPTURE_RELAXED))
    return CAPTURE_IMPLICIT;
  *status = s->capture;
  return SUCCESS;
}
CU int cuStreamIsCapturing(void *handle, int *status);
CU int cuStreamIsCapturing(void *handle, int *status) {
  LOCKED_UNLESS_OVER(is_captured(handle, status));
}

static int begin_capture(void *handle, int mode) {
  stream *s;
  const int error = cuda_find_stream(handle, &s);
  if (error) return error;
  s->capture = 1;
  s->capture_mode = mode;
  s->node = NULL;
  s->node_count = 0;
  return SUCCESS;
}
CU int cuStreamBeginCapture_v2(void *handle, int mode);
CU int cuStreamBeginCapture_v2(void *handle, int mode) { LOCKED(begin_capture(handle, mode)); }

static int end_capture(void *handle, void **graph) {
  stream *s;
  const int error = cuda_find_stream(handle, &s);
  if (error) return error;
  const int was = s->capture;
  s->capture = 0;
  *graph = was == 1 && s->node ? cuda_make_graph(s->node, s->node_count) : NULL;
  return was == 1 ? SUCCESS : CAPTURE_INVALIDATED;
}
CU int cuStreamEndCapture(void *handle, void **graph);
CU int cuStreamEndCapture(void *handle, void **graph) { LOCKED(end_capture(handle, graph)); }

CU int cuThreadExchangeStreamCaptureMode(int *mode);
CU int cuThreadExchangeStreamCaptureMode(int *mode) {
  const int before = here.mode;
  if (*mode < 0 || *mode > CAPTURE_RELAXED) return INVALID_VALUE;
  here.mode = *mode;
  *mode = before;
  return SUCCESS;
}

/* ---- events ---- */

static int make_event(void **out) {
  if (!own.is_on) return NOT_INITIALIZED;
  if (own.state.create_error) return own.state.create_error;
  if (!current()) return INVALID_CONTEXT;
  event *const e = handles_add(&own.events);
  *e = (event){.of = current(), .engine = engine_event_create(), .number = current()->number};
  *out = e;
  count(&own.state.events, 1);
  return SUCCESS;
}
CU int cuEventCreate(void **out, unsigned flags);
CU int cuEventCreate(void **out, unsigned flags) {
  (void)flags;
  LOCKED_UNLESS_OVER(make_event(out));
}

/* Is it an event's? The real driver does not say so of one that has gone. Of a later context than
   the one that was looked at: its place was another's meanwhile. */
static int is_event(const void *handle) {
  const int is_there = handles_has(&own.events, handle),
            has_looked = here.looks > 0 && here.looked_at <= ((const event *)handle)->number;
  if (here.looks > 0) here.looks--;
  if (!is_there) count(has_looked ? &own.state.raced_touches : &own.state.gone_touches, 1);
  return is_there;
}

static int end_event(void *handle) {
  if (!is_event(handle)) return INVALID_HANDLE;
  engine_event_destroy(((event *)handle)->engine);
  handles_drop(&own.events, handle);
  count(&own.state.events, -1);
  return SUCCESS;
}
CU int cuEventDestroy_v2(void *handle);
CU int cuEventDestroy_v2(void *handle) { LOCKED_UNLESS_OVER(end_event(handle)); }

static int record(event *e, void *handle) {
  stream *s;
  if (own.state.record_error) return own.state.record_error;
  const int error = cuda_find_stream(handle, &s);
  if (error) return error;
  if (!is_event(e) || e->of != s->of) return INVALID_HANDLE;
  if ((uintptr_t)handle <= 1 && is_capturing(CAPTURE_RELAXED)) return CAPTURE_IMPLICIT;
  e->is_captured = s->capture != 0;
  if (e->is_captured)
    count(&own.state.captured_records, 1);
  else
    engine_event_record(e->engine, s->engine);
  return SUCCESS;
}
CU int cuEventRecord(void *e, void *handle);
CU int cuEventRecord(void *e, void *handle) { LOCKED_UNLESS_OVER(record(e, handle)); }

static int look(const event *e, uint64_t *ns) {
  if (!is_event(e)) return INVALID_HANDLE;
  if (break_captures() || e->is_captured) return CAPTURE_UNSUPPORTED;
  const engine_event_state state = engine_event_look(e->engine, ns);
  return state == ENGINE_PENDING ? NOT_READY : state == ENGINE_PAST ? SUCCESS : INVALID_HANDLE;
}

static int query(const event *e) {
  uint64_t ns;
  const int result = look(e, &ns);
  /* of one that was never put on a stream the real one says that it is past */
  return result == INVALID_HANDLE && handles_has(&own.events, e) ? SUCCESS : result;
}
CU int cuEventQuery(void *e);
CU int cuEventQuery(void *e) { LOCKED_UNLESS_OVER(query(e)); }

CU int cuEventSynchronize(void *e);
CU int cuEventSynchronize(void *e) {
  int result;
  while ((result = cuEventQuery(e)) == NOT_READY) usleep(20);
  return result;
}

/* A float of milliseconds, by steps of half a microsecond. */
static int elapsed(float *ms, const event *a, const event *b) {
  enum { STEP_NS = 500 };
  uint64_t from, to;
  if (own.state.elapsed_error) return own.state.elapsed_error;
  int error = look(a, &from);
  if (!error) error = look(b, &to);
  if (!error && a->of != b->of) error = INVALID_HANDLE;
  if (!error)
    *ms = (float)((double)((int64_t)(to / STEP_NS) - (int64_t)(from / STEP_NS)) * STEP_NS / 1e6);
  return error;
}
CU int cuEventElapsedTime(float *ms, void *a, void *b);
CU int cuEventElapsedTime(float *ms, void *a, void *b) { LOCKED_UNLESS_OVER(elapsed(ms, a, b)); }
