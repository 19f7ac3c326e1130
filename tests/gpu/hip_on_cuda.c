/* A libamdhip64.so.6 that forwards HIP to CUDA's driver. So prof's HIP back end and a HIP program
   meet a real asynchronous device: real streams, events, overlap and capture, on NVIDIA's hardware.
   Its devices are called "shim: ...". What it says nothing of: AMD's costs, fences, precision of
   times, teardown.

   HIP's rules where they are not CUDA's, as HIP 6 has them. There are no contexts, a thread has a
   device. Each call sets the thread's last error, also to none or "not ready", and
   hipGetLastError() takes it. A stream that has gone is known to have gone. Numbers of errors and
   flags are the same in both. For tests: nothing installs it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "driver.h"
#include "hip.h"

#define HIP __attribute__((visibility("default")))

enum {
  SUCCESS = 0,
  INVALID_VALUE = 1,
  NO_DEVICE = 100,
  INVALID_DEVICE = 101,
  CONTEXT_IS_DESTROYED = 709
};
enum { DEVICES = 16, STREAMS = 1024, VERSION = 60342134 };
enum {
  EVENT_FLAGS = 7 /* blocking, no timing, between processes; AMD has others besides, of fences */
};

/* ---- the driver ---- */

static struct {
  pthread_once_t once;
  int error, count; /* of its beginning; how many devices */
  void *contexts[DEVICES];
/* NOLINTNEXTLINE(bugprone-macro-parentheses): a declaration's */
#define MEMBER(name, arguments) int(*name) arguments;
  GPU_FUNCTIONS(MEMBER)
#undef MEMBER
} cu = {.once = PTHREAD_ONCE_INIT, .error = NO_DEVICE};

static __thread struct { int device, last; } here;

static int said(int error) { return here.last = error; }

static void begin_once(void) {
  void *const library = dlopen("libcuda.so.1", RTLD_NOW);
  if (!library) return;
#define FIND(name, arguments) \
  if (!(*(void **)&cu.name = dlsym(library, #name))) return;
  GPU_FUNCTIONS(FIND)
#undef FIND
  int error = cu.cuInit(0);
  if (!error) error = cu.cuDeviceGetCount(&cu.count);
  if (cu.count > DEVICES) cu.count = DEVICES;
  /* behind CUDA_VISIBLE_DEVICES a device is its ordinal */
  for (int i = 0; i < cu.count && !error; i++)
    error = cu.cuDevicePrimaryCtxRetain(&cu.contexts[i], i);
  cu.error = !error && cu.count <= 0 ? NO_DEVICE : error;
}

static int begin(void) {
  pthread_once(&cu.once, begin_once);
  return cu.error;
}

/* The thread's device is what CUDA's current context is of. */
static int enter(void) {
  void *current = NULL;
  int error = begin();
  if (!error) error = cu.cuCtxGetCurrent(&current);
  return error || current == cu.contexts[here.device]
             ? error
             : cu.cuCtxSetCurrent(cu.contexts[here.device]);
}

#define FORWARD(...)                              \
  do {                                            \
    const int unable = enter();                   \
    return said(unable ? unable : (__VA_ARGS__)); \
  } while (0)

/* ---- streams that are there ---- */

static struct {
  pthread_mutex_t lock; /* guards all; nothing is called under it */
  prof_i_hip_stream all[STREAMS];
  size_t count;
} streams = {.lock = PTHREAD_MUTEX_INITIALIZER};

static size_t place_of(prof_i_hip_stream stream) {
  size_t i = 0;
  while (i < streams.count && streams.all[i] != stream) i++;
  return i;
}

static bool is_there(prof_i_hip_stream stream) {
  if ((uintptr_t)stream <= 2) return true; /* the default ones */
  pthread_mutex_lock(&streams.lock);
  const bool is = place_of(stream) < streams.count;
  pthread_mutex_unlock(&streams.lock);
  return is;
}

static int keep(prof_i_hip_stream stream) {
  pthread_mutex_lock(&streams.lock);
  const bool has_room = streams.count < STREAMS;
  if (has_room) streams.all[streams.count++] = stream;
  pthread_mutex_unlock(&streams.lock);
  return has_room ? SUCCESS : INVALID_VALUE;
}

static bool let_go(prof_i_hip_stream stream) {
  pthread_mutex_lock(&streams.lock);
  const size_t at = place_of(stream);
  const bool was_there = at < streams.count;
  if (was_there) streams.all[at] = streams.all[--streams.count];
  pthread_mutex_unlock(&streams.lock);
  return was_there;
}

#define FORWARD_ON(stream, ...) FORWARD(is_there(stream) ? (__VA_ARGS__) : CONTEXT_IS_DESTROYED)

/* ---- what prof asks for: each as src/hip/api.h declares it ---- */

#define DECLARE(need, name, arguments) HIP int32_t name arguments;
PROF_I_HIP_FUNCTIONS(DECLARE)
#undef DECLARE
#define DECLARE(name, arguments) HIP const char *name arguments;
PROF_I_HIP_TEXTS(DECLARE)
#undef DECLARE
#define DECLARE(name, arguments) HIP int32_t name arguments;
HIP_PROGRAM_FUNCTIONS(DECLARE)
#undef DECLARE

int32_t hipRuntimeGetVersion(int32_t *version_out) {
  *version_out = VERSION;
  return said(SUCCESS);
}

int32_t hipPeekAtLastError(void) { return here.last; }

int32_t hipGetLastError(void) {
  const int last = here.last;
  here.last = SUCCESS;
  return last;
}

int32_t hipGetDeviceCount(int32_t *count_out) {
  const int error = begin();
  *count_out = error ? 0 : cu.count;
  return said(error);
}

int32_t hipGetDevice(int32_t *device_out) { FORWARD((*device_out = here.device, SUCCESS)); }

int32_t hipSetDevice(int32_t device) {
  const int error = begin();
  if (error) return said(error);
  if (device < 0 || device >= cu.count) return said(INVALID_DEVICE);
  here.device = device;
  return said(enter());
}

int32_t hipDeviceGetName(char *name_out, int32_t room, int32_t device) {
  char name[96] = "";
  const int unable = enter(),
            error = unable ? unable : cu.cuDeviceGetName(name, sizeof name, device);
  if (!error) snprintf(name_out, (size_t)room, "shim: %s", name);
  return said(error);
}

int32_t hipDeviceTotalMem(size_t *bytes_out, int32_t device) {
  FORWARD(cu.cuDeviceTotalMem_v2(bytes_out, device));
}
int32_t hipDeviceGetUuid(prof_i_hip_uuid *uuid_out, int32_t device) {
  FORWARD(cu.cuDeviceGetUuid_v2(uuid_out, device));
}

/* 0: CUDA has none. */
static int attribute_of(int32_t hips) {
  switch (hips) {
    case PROF_I_HIP_DeviceAttributeClockRate:
      return 13;
    case PROF_I_HIP_DeviceAttributeMultiprocessorCount:
      return 16;
    case PROF_I_HIP_DeviceAttributePciBusId:
      return 33;
    case PROF_I_HIP_DeviceAttributePciDeviceId:
      return 34;
    case PROF_I_HIP_DeviceAttributePciDomainID:
      return 50;
    default:
      return 0;
  }
}
int32_t hipDeviceGetAttribute(int32_t *value_out, int32_t what, int32_t device) {
  FORWARD(attribute_of(what) ? cu.cuDeviceGetAttribute(value_out, attribute_of(what), device)
                             : INVALID_VALUE);
}

static int device_of(prof_i_hip_stream stream, int32_t *device_out) {
  void *context = NULL;
  if ((uintptr_t)stream <= 2) return *device_out = here.device, SUCCESS;
  const int error = cu.cuStreamGetCtx(stream, &context);
  for (int i = 0; i < cu.count && !error; i++)
    if (cu.contexts[i] == context) return *device_out = i, SUCCESS;
  return error ? error : INVALID_VALUE;
}
int32_t hipStreamGetDevice(prof_i_hip_stream stream, int32_t *device_out) {
  FORWARD_ON(stream, device_of(stream, device_out));
}

int32_t hipStreamIsCapturing(prof_i_hip_stream stream, int32_t *status_out) {
  FORWARD_ON(stream, cu.cuStreamIsCapturing(stream, status_out));
}
int32_t hipThreadExchangeStreamCaptureMode(int32_t *mode) {
  FORWARD(cu.cuThreadExchangeStreamCaptureMode(mode));
}

int32_t hipEventCreateWithFlags(prof_i_hip_event *event_out, uint32_t flags) {
  FORWARD(cu.cuEventCreate((void **)event_out, flags & EVENT_FLAGS));
}
int32_t hipEventRecord(prof_i_hip_event event, prof_i_hip_stream stream) {
  FORWARD_ON(stream, cu.cuEventRecord(event, stream));
}
int32_t hipEventQuery(prof_i_hip_event event) { FORWARD(cu.cuEventQuery(event)); }
int32_t hipEventDestroy(prof_i_hip_event event) { FORWARD(cu.cuEventDestroy_v2(event)); }
int32_t hipEventElapsedTime(float *ms_out, prof_i_hip_event a, prof_i_hip_event b) {
  FORWARD(cu.cuEventElapsedTime(ms_out, a, b));
}

/* CUDA's words, whose numbers are the same: "CUDA_ERROR_INVALID_HANDLE" says as much as HIP's
   "hipErrorInvalidHandle". */
const char *hipGetErrorName(int32_t error) {
  const char *name = NULL;
  return begin() == SUCCESS && cu.cuGetErrorName(error, &name) == SUCCESS && name
             ? name
             : "hipErrorUnknown";
}
const char *hipGetErrorString(int32_t error) {
  const char *text = NULL;
  return begin() == SUCCESS && cu.cuGetErrorString(error, &text) == SUCCESS && text
             ? text
             : "unknown error";
}

/* ---- what a program needs besides ---- */

int32_t hipModuleLoadData(void **module_out, const void *image) {
  FORWARD(cu.cuModuleLoadData(module_out, image));
}
int32_t hipModuleGetFunction(void **function_out, void *module, const char *name) {
  FORWARD(cu.cuModuleGetFunction(function_out, module, name));
}
int32_t hipModuleLaunchKernel(void *function, uint32_t grid_x, uint32_t grid_y, uint32_t grid_z,
                              uint32_t block_x, uint32_t block_y, uint32_t block_z,
                              uint32_t shared_bytes, prof_i_hip_stream stream, void **parameters,
                              void **extra) {
  FORWARD_ON(stream, cu.cuLaunchKernel(function, grid_x, grid_y, grid_z, block_x, block_y, block_z,
                                       shared_bytes, stream, parameters, extra));
}

static int make_stream(prof_i_hip_stream *out) {
  const int error = cu.cuStreamCreate((void **)out, 0);
  return error ? error : keep(*out);
}
int32_t hipStreamCreate(prof_i_hip_stream *stream_out) { FORWARD(make_stream(stream_out)); }
int32_t hipStreamDestroy(prof_i_hip_stream stream) {
  FORWARD(let_go(stream) ? cu.cuStreamDestroy_v2(stream) : CONTEXT_IS_DESTROYED);
}
int32_t hipStreamSynchronize(prof_i_hip_stream stream) {
  FORWARD_ON(stream, cu.cuStreamSynchronize(stream));
}
int32_t hipStreamBeginCapture(prof_i_hip_stream stream, int32_t mode) {
  FORWARD_ON(stream, cu.cuStreamBeginCapture_v2(stream, mode));
}
int32_t hipStreamEndCapture(prof_i_hip_stream stream, void **graph_out) {
  FORWARD_ON(stream, cu.cuStreamEndCapture(stream, graph_out));
}
int32_t hipGraphInstantiateWithFlags(void **executable_out, void *graph, unsigned long long flags) {
  FORWARD(cu.cuGraphInstantiateWithFlags(executable_out, graph, flags));
}
int32_t hipGraphLaunch(void *executable, prof_i_hip_stream stream) {
  FORWARD_ON(stream, cu.cuGraphLaunch(executable, stream));
}
int32_t hipEventSynchronize(prof_i_hip_event event) { FORWARD(cu.cuEventSynchronize(event)); }

static unsigned long long address_of(const void *at) { return (uintptr_t)at; }
static int allocate(void **at_out, size_t bytes) {
  unsigned long long at = 0;
  const int error = cu.cuMemAlloc_v2(&at, bytes);
  *at_out = (void *)(uintptr_t)at;
  return error;
}
int32_t hipMemGetInfo(size_t *free_out, size_t *all_out) {
  FORWARD(cu.cuMemGetInfo_v2(free_out, all_out));
}
int32_t hipMalloc(void **at_out, size_t bytes) { FORWARD(allocate(at_out, bytes)); }
int32_t hipFree(void *at) { FORWARD(cu.cuMemFree_v2(address_of(at))); }
int32_t hipMemcpyHtoDAsync(void *to, const void *from, size_t bytes, prof_i_hip_stream stream) {
  FORWARD_ON(stream, cu.cuMemcpyHtoDAsync_v2(address_of(to), from, bytes, stream));
}
int32_t hipMemcpyDtoHAsync(void *to, void *from, size_t bytes, prof_i_hip_stream stream) {
  FORWARD_ON(stream, cu.cuMemcpyDtoHAsync_v2(to, address_of(from), bytes, stream));
}
int32_t hipMemsetD8Async(void *to, unsigned char value, size_t bytes, prof_i_hip_stream stream) {
  FORWARD_ON(stream, cu.cuMemsetD8Async(address_of(to), value, bytes, stream));
}
