/* CUDA's table. A forked child has the parent's handles but not the threads behind them. After some
   errors CUDA does nothing more. In both cases calls are refused without calling the library.

   The devices are those that the program sees, in the driver's order: their ordinal is
   prof_device.index. They are listed once, when the back end is opened. */
#include "internal.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api.h"

/* ---- the library ---- */

static const char *const cuda_names[] = {"libcuda.so.1", NULL};
static const prof_i_vendor_symbol cuda_symbols[] = {
#define SYMBOL(need, name, symbol, arguments) \
  {#symbol, offsetof(prof_i_cuda_functions, name), PROF_I_VENDOR_##need},
    PROF_I_CU_FUNCTIONS(SYMBOL)
#undef SYMBOL
};

prof_i_cuda_functions prof_i_cuda;

static const prof_i_vendor_library cuda_library = {
    .names = cuda_names,
    .symbols = cuda_symbols,
    .symbol_count = sizeof cuda_symbols / sizeof *cuda_symbols,
    .functions = &prof_i_cuda,
    .oldest_text = ": CUDA 10.0's driver is the oldest that serves"};

/* True if the program has loaded it. Any thread. */
static int cuda_library_is_loaded(void) { return prof_i_vendor_library_is_loaded(&cuda_library); }

/* See prof_i_vendor_library_open(). ABSENT, VERSION, UNSUPPORTED. One thread at a time. */
static int cuda_library_open(void) { return prof_i_vendor_library_open(&cuda_library, NULL); }

/* ---- errors ---- */

static struct { int32_t error_code; /* fatal; 0: none so far. Relaxed */ } cuda_fatal;

static bool is_cuda_fatal(int32_t error) {
  switch (error) {
#define CASE(name, value) case value:
    PROF_I_CU_FATAL_ERRORS(CASE)
#undef CASE
    return true;
    default:
      return false;
  }
}

static int result_of_cuda(int32_t error) {
  if (error >= PROF_I_CU_ERROR_STREAM_CAPTURE_UNSUPPORTED &&
      error <= PROF_I_CU_ERROR_STREAM_CAPTURE_WRONG_THREAD)
    return PROF_BACKEND_CAPTURING;
  switch (error) {
    case PROF_I_CU_ERROR_OUT_OF_MEMORY:
      return PROF_BACKEND_NO_MEMORY;
    case PROF_I_CU_ERROR_NO_DEVICE:
      return PROF_BACKEND_NO_DEVICE;
    case PROF_I_CU_ERROR_INVALID_CONTEXT:
    case PROF_I_CU_ERROR_CONTEXT_IS_DESTROYED:
    case PROF_I_CU_ERROR_INVALID_HANDLE:
      return PROF_BACKEND_INVALID;
    case PROF_I_CU_ERROR_NOT_PERMITTED:
      return PROF_BACKEND_PERMISSION;
    case PROF_I_CU_ERROR_SYSTEM_DRIVER_MISMATCH:
    case PROF_I_CU_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE:
      return PROF_BACKEND_VERSION;
    default:
      return PROF_BACKEND_VENDOR;
  }
}

/* Stores a text such as "cuEventRecord: CUDA_ERROR_INVALID_HANDLE (400), invalid resource handle",
   in the driver's words. Returns the matching result. */
static int cuda_fail_call(const char *function, int32_t error) {
  const char *name = NULL, *text = NULL;
  prof_i_cuda.cuGetErrorName(error, &name);
  prof_i_cuda.cuGetErrorString(error, &text);
  if (is_cuda_fatal(error)) __atomic_store_n(&cuda_fatal.error_code, error, __ATOMIC_RELAXED);
  return prof_i_backend_fail(result_of_cuda(error), "%s: %s (%d)%s%s%s", function,
                             name ? name : "an error", error, text ? ", " : "", text ? text : "",
                             is_cuda_fatal(error) ? ": no more CUDA in this process" : "");
}

/* Fails once a call has returned one of PROF_I_CU_FATAL_ERRORS. After such an error CUDA fails all
   calls in this process, so prof makes no more. The program's own calls report the error, too. Any
   thread. */
static int cuda_check_fatal(void) {
  const int32_t error = __atomic_load_n(&cuda_fatal.error_code, __ATOMIC_RELAXED);
  return error == 0 ? PROF_BACKEND_OK : cuda_fail_call("an earlier call", error);
}

/* ---- devices ---- */

enum { DEVICES_MAX = 64 };

static struct {
  prof_i_cu_device all[DEVICES_MAX]; /* not changed once they are listed */
  uint32_t count;
} cuda_device_list;

/* Lists the devices. Returns NOT_READY before the program initialises CUDA, and NO_DEVICE if the
   machine has no device. Neither initialises CUDA nor creates a context, because a child that is
   forked later could not use CUDA then. */
static int cuda_devices_list(void) {
  int32_t count = 0;
  const int32_t error = prof_i_cuda.cuDeviceGetCount(&count);
  if (error == PROF_I_CU_ERROR_NOT_INITIALIZED)
    return prof_i_backend_fail_text(
        PROF_BACKEND_NOT_READY,
        "the program has not begun to use CUDA (cuInit), or that failed: prof doctor says why");
  if (error != 0) return cuda_fail_call("cuDeviceGetCount", error);
  cuda_device_list.count = 0;
  for (int32_t i = 0; i < count && cuda_device_list.count < DEVICES_MAX; i++)
    if (prof_i_cuda.cuDeviceGet(&cuda_device_list.all[cuda_device_list.count], i) == 0)
      cuda_device_list.count++;
  return cuda_device_list.count
             ? PROF_BACKEND_OK
             : prof_i_backend_fail_text(
                   PROF_BACKEND_NO_DEVICE,
                   "cuDeviceGetCount: 0 devices (CUDA_VISIBLE_DEVICES may hide some)");
}

uint32_t prof_i_cuda_devices_count(void) { return cuda_device_list.count; }

/* The device's number. UINT32_MAX: it was not listed. */
static uint32_t cuda_device_number(prof_i_cu_device device) {
  for (uint32_t i = 0; i < cuda_device_list.count; i++)
    if (cuda_device_list.all[i] == device) return i;
  return UINT32_MAX;
}

/* ---- the device of a stream ---- */

/* For drivers before 12.8. Restores the current context. */
static int32_t get_device_by_context(prof_i_cu_stream stream, prof_i_cu_device *device_out) {
  prof_i_cu_context context = NULL, popped;
  int32_t error = prof_i_cuda.cuStreamGetCtx(stream, &context);
  if (error == 0) error = prof_i_cuda.cuCtxPushCurrent(context);
  if (error != 0) return error;
  error = prof_i_cuda.cuCtxGetDevice(device_out);
  prof_i_cuda.cuCtxPopCurrent(&popped);
  return error;
}

/* The number of the stream's device. UINT32_MAX: an error, with a text. A default stream belongs to
   the current context. */
static uint32_t cuda_stream_device(prof_i_cu_stream stream) {
  prof_i_cu_device device = -1;
  const bool is_told = prof_i_cuda.cuStreamGetDevice != NULL;
  const int32_t error = is_told ? prof_i_cuda.cuStreamGetDevice(stream, &device)
                                : get_device_by_context(stream, &device);
  if (error != 0) {
    cuda_fail_call(is_told ? "cuStreamGetDevice" : "cuStreamGetCtx", error);
    return UINT32_MAX;
  }
  const uint32_t number = cuda_device_number(device);
  if (number == UINT32_MAX)
    prof_i_backend_fail_text(PROF_BACKEND_INVALID,
                             "the stream's device is not one of the listed devices");
  return number;
}

/* ---- describing ---- */

static uint32_t cuda_attribute(prof_i_cu_device device, int32_t what) {
  int32_t value = 0;
  return prof_i_cuda.cuDeviceGetAttribute(&value, what, device) == 0 && value > 0 ? (uint32_t)value
                                                                                  : 0;
}

void prof_i_cuda_device_describe(uint32_t number, prof_backend_device *out) {
  const prof_i_cu_device device = cuda_device_list.all[number];
  int32_t version = 0;
  size_t bytes = 0;
  *out = (prof_backend_device){.size = out->size};
  if (prof_i_cuda.cuDeviceGetName(out->name, (int32_t)sizeof out->name, device) != 0)
    out->name[0] = '\0';
  snprintf(out->arch, sizeof out->arch, "sm_%u%u",
           cuda_attribute(device, PROF_I_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) % 1000,
           cuda_attribute(device, PROF_I_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR) % 1000);
  if (prof_i_cuda.cuDriverGetVersion(&version) == 0)
    snprintf(out->driver, sizeof out->driver, "CUDA %d.%d", version / 1000, version % 1000 / 10);
  if (prof_i_cuda.cuDeviceTotalMem(&bytes, device) == 0) out->memory_bytes = bytes;
  if (prof_i_cuda.cuDeviceGetUuid) prof_i_cuda.cuDeviceGetUuid((prof_i_cu_uuid *)out->uuid, device);
  out->units = cuda_attribute(device, PROF_I_CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  out->clock_khz = cuda_attribute(device, PROF_I_CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
  out->pci_domain = cuda_attribute(device, PROF_I_CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID);
  out->pci_bus = cuda_attribute(device, PROF_I_CU_DEVICE_ATTRIBUTE_PCI_BUS_ID);
  out->pci_device = cuda_attribute(device, PROF_I_CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID);
}

/* ---- markers ---- */

/* An event of prof's: a CUevent. It belongs to a context, as its stream does, and is created
   where it is first put on a stream. A default stream is that of the context which is current on
   this thread. Nothing about a stream is kept from one call to the next: its handle may be
   another stream's by then, of another context. */

typedef struct cuda_marker {
  prof_i_cu_event event; /* NULL: none yet */
  /* of the event's: when that goes, the event does, and must not be asked for any more */
  prof_i_cu_context context;
  uint32_t registered_generation; /* its stream, by CUPTI: see records.c */
  /* unique for ever; 0: a driver before 12.0, which has none */
  unsigned long long context_number;
} cuda_marker;

/* While a stream is captured into a graph globally, any thread that queries an event breaks the
   capture, unless it has relaxed its capture mode. Drivers before 10.1 have no such modes. */
static int32_t exchange_cuda_capture_mode(int32_t mode) {
  if (prof_i_cuda.cuThreadExchangeStreamCaptureMode)
    prof_i_cuda.cuThreadExchangeStreamCaptureMode(&mode);
  return mode;
}
#define WITH_RELAXED_CAPTURE(error, ...)                                                           \
  do {                                                                                             \
    const int32_t mode_before = exchange_cuda_capture_mode(PROF_I_CU_STREAM_CAPTURE_MODE_RELAXED); \
    (error) = (__VA_ARGS__);                                                                       \
    exchange_cuda_capture_mode(mode_before);                                                       \
  } while (0)

/* A driver before 12.0 says whether the handle is a context's: one that was made at the same place
   since is taken for it. */
static int32_t context_number_of(prof_i_cu_context context, unsigned long long *number_out) {
  uint32_t version;
  *number_out = 0;
  return prof_i_cuda.cuCtxGetId ? prof_i_cuda.cuCtxGetId(context, number_out)
                                : prof_i_cuda.cuCtxGetApiVersion(context, &version);
}

/* An event is destroyed with its context, and a query afterwards may crash the driver. Then the
   event is dropped here. */
static bool cuda_marker_has_event(cuda_marker *marker) {
  unsigned long long number;
  if (marker->event &&
      (context_number_of(marker->context, &number) != 0 || number != marker->context_number))
    marker->event = NULL;
  return marker->event != NULL;
}

/* In the stream's context, which is current meanwhile. */
static int make_cuda_event(prof_i_cu_stream stream, cuda_marker *made) {
  prof_i_cu_context popped;
  int32_t error = prof_i_cuda.cuStreamGetCtx(stream, &made->context);
  if (error != 0) return cuda_fail_call("cuStreamGetCtx", error);
  error = context_number_of(made->context, &made->context_number);
  if (error == 0) error = prof_i_cuda.cuCtxPushCurrent(made->context);
  if (error != 0) return cuda_fail_call("cuCtxPushCurrent", error);
  WITH_RELAXED_CAPTURE(error, prof_i_cuda.cuEventCreate(&made->event, PROF_I_CU_EVENT_DEFAULT));
  prof_i_cuda.cuCtxPopCurrent(&popped);
  return error == 0 ? PROF_BACKEND_OK : cuda_fail_call("cuEventCreate", error);
}

static void destroy_cuda_event(prof_i_cu_event event) {
  int32_t error;
  WITH_RELAXED_CAPTURE(error, prof_i_cuda.cuEventDestroy(event));
  (void)error;
}

/* NULL: no memory */
static cuda_marker *cuda_marker_create(void) { return calloc(1, sizeof(cuda_marker)); }

static void cuda_marker_destroy(cuda_marker *marker) {
  if (cuda_check_fatal() == PROF_BACKEND_OK && cuda_marker_has_event(marker))
    destroy_cuda_event(marker->event);
  free(marker);
}

/* It has none yet, or one of another context than the stream's: the handle is another stream's now,
   or the default stream's of another current context. */
static int record_new_cuda_event(cuda_marker *marker, prof_i_cu_stream stream) {
  cuda_marker fresh = {0};
  const int result = make_cuda_event(stream, &fresh);
  if (result != PROF_BACKEND_OK) return result;
  const int32_t error = prof_i_cuda.cuEventRecord(fresh.event, stream);
  if (error != 0) {
    destroy_cuda_event(fresh.event);
    return cuda_fail_call("cuEventRecord", error);
  }
  if (marker->event) destroy_cuda_event(marker->event);
  *marker = fresh;
  prof_i_cuda_stream_register(marker->context, stream, &marker->registered_generation);
  return PROF_BACKEND_OK;
}

/* Puts it on the stream. */
static int cuda_marker_record(cuda_marker *marker, prof_i_cu_stream stream) {
  if (!cuda_marker_has_event(marker)) return record_new_cuda_event(marker, stream);
  const int32_t error = prof_i_cuda.cuEventRecord(marker->event, stream);
  if (error == 0) {
    prof_i_cuda_stream_register(marker->context, stream, &marker->registered_generation);
    return PROF_BACKEND_OK;
  }
  return error == PROF_I_CU_ERROR_INVALID_HANDLE ? record_new_cuda_event(marker, stream)
                                                 : cuda_fail_call("cuEventRecord", error);
}

static int refuse_empty_cuda_marker(void) {
  return prof_i_backend_fail_text(
      PROF_BACKEND_INVALID, "the event was never put on a stream, or has gone with its context");
}

/* OK: it is past; NOT_READY. */
static int cuda_marker_query(cuda_marker *marker) {
  int32_t error;
  if (!cuda_marker_has_event(marker)) return refuse_empty_cuda_marker();
  WITH_RELAXED_CAPTURE(error, prof_i_cuda.cuEventQuery(marker->event));
  if (error == 0) return PROF_BACKEND_OK;
  return error == PROF_I_CU_ERROR_NOT_READY ? PROF_BACKEND_NOT_READY
                                            : cuda_fail_call("cuEventQuery", error);
}

/* From a to b, of one context. The driver reports a float of milliseconds. */
static int cuda_marker_elapsed(cuda_marker *a, cuda_marker *b, int64_t *ns_out) {
  float ms = 0;
  int32_t error;
  if (!cuda_marker_has_event(a) || !cuda_marker_has_event(b)) return refuse_empty_cuda_marker();
  WITH_RELAXED_CAPTURE(error, prof_i_cuda.cuEventElapsedTime(&ms, a->event, b->event));
  if (error != 0)
    return error == PROF_I_CU_ERROR_NOT_READY ? PROF_BACKEND_NOT_READY
                                              : cuda_fail_call("cuEventElapsedTime", error);
  const double ns = (double)ms * 1e6;
  if (!(fabs(ns) < 1e18))
    return prof_i_backend_fail(PROF_BACKEND_VENDOR, "cuEventElapsedTime: %g ms", (double)ms);
  *ns_out = (int64_t)(ns < 0 ? ns - 0.5 : ns + 0.5);
  return PROF_BACKEND_OK;
}

/* ---- what the table's functions share ---- */

static int refuse_cuda_in_child(void) {
  return prof_i_backend_fail_text(PROF_BACKEND_FORKED,
                                  "the stream is the parent's: this process was forked from it");
}

/* OK if the driver may be called for an event or a stream. */
static int check_cuda(const prof_backend_self *self) {
  return prof_i_vendor_is_forked(self) ? refuse_cuda_in_child() : cuda_check_fatal();
}

/* 0, 1 and 2 are the default streams: the legacy one by two names, and the thread's own. */
static prof_i_cu_stream cuda_stream_at(uint64_t handle) {
  return (prof_i_cu_stream)(uintptr_t)handle;
}

/* ---- the table: opening ---- */

static int cuda_probe(const prof_backend_host *host) {
  (void)host;
  return cuda_library_open();
}

/* NOT_READY until the program itself has begun to use CUDA: if prof began, a child forked later
   could not use CUDA. */
static int cuda_open(const prof_backend_host *host, prof_backend_self **self_out) {
  static prof_backend_self self;
  const int result = cuda_devices_list();
  self.host = host;
  if (result == PROF_BACKEND_OK) *self_out = &self;
  return result;
}

static int cuda_in_use(void) { return cuda_library_is_loaded(); }

/* ---- the table: events ---- */

static int cuda_event_create(prof_backend_self *self, uint64_t stream, void **event_out) {
  (void)stream;
  const int result = check_cuda(self);
  if (result != PROF_BACKEND_OK) return result;
  *event_out = cuda_marker_create();
  return *event_out ? PROF_BACKEND_OK
                    : prof_i_backend_fail_text(PROF_BACKEND_NO_MEMORY, "no memory for an event");
}

static int cuda_event_record(prof_backend_self *self, uint64_t stream, void **event) {
  const int result = check_cuda(self);
  return result == PROF_BACKEND_OK ? cuda_marker_record(*event, cuda_stream_at(stream)) : result;
}

static int cuda_event_query(prof_backend_self *self, void *event) {
  const int result = check_cuda(self);
  return result == PROF_BACKEND_OK ? cuda_marker_query(event) : result;
}

static int cuda_event_elapsed(prof_backend_self *self, void *a, void *b, int64_t *ns_out) {
  const int result = check_cuda(self);
  return result == PROF_BACKEND_OK ? cuda_marker_elapsed(a, b, ns_out) : result;
}

static void cuda_event_destroy(prof_backend_self *self, void *event) {
  if (!prof_i_vendor_is_forked(self)) cuda_marker_destroy(event);
}

/* ---- the table: devices ---- */

static int cuda_stream_of(prof_backend_self *self, uint64_t stream, uint32_t *device_out,
                          uint32_t *is_capturing_out) {
  int32_t capture = PROF_I_CU_STREAM_CAPTURE_STATUS_NONE;
  int result = check_cuda(self);
  if (result != PROF_BACKEND_OK) return result;
  const int32_t error = prof_i_cuda.cuStreamIsCapturing(cuda_stream_at(stream), &capture);
  if (error != 0) result = cuda_fail_call("cuStreamIsCapturing", error);
  if (result != PROF_BACKEND_OK && result != PROF_BACKEND_CAPTURING) return result;
  *device_out = cuda_stream_device(cuda_stream_at(stream));
  /* The legacy stream returns an error while another stream is captured: nothing may be put on it.
     */
  *is_capturing_out =
      result == PROF_BACKEND_CAPTURING || capture != PROF_I_CU_STREAM_CAPTURE_STATUS_NONE;
  return *device_out == UINT32_MAX ? PROF_BACKEND_INVALID : PROF_BACKEND_OK;
}

static int cuda_describe_device(prof_backend_self *self, uint32_t index, prof_backend_device *out) {
  if (prof_i_vendor_is_forked(self)) return refuse_cuda_in_child();
  if (index >= prof_i_cuda_devices_count()) return prof_i_vendor_no_device(index);
  prof_backend_device about = {.size = out->size};
  prof_i_cuda_device_describe(index, &about);
  return prof_i_vendor_copy_device(out, &about);
}

/* ---- the table: records ---- */

static int cuda_start(prof_backend_self *self, uint32_t kinds, uint32_t *kinds_out) {
  return prof_i_vendor_is_forked(self) ? refuse_cuda_in_child()
                                       : prof_i_cuda_activity_start(self->host, kinds, kinds_out);
}

static int cuda_stop(prof_backend_self *self) {
  return prof_i_vendor_is_forked(self) ? refuse_cuda_in_child() : prof_i_cuda_activity_stop();
}

static int cuda_drain(prof_backend_self *self, uint32_t how, uint64_t *lost_out) {
  return prof_i_vendor_is_forked(self) ? refuse_cuda_in_child()
                                       : prof_i_cuda_activity_drain(self->host, how, lost_out);
}

static int cuda_read_clock(prof_backend_self *self, uint32_t device, prof_backend_pair *out) {
  (void)device; /* one for all */
  return prof_i_vendor_is_forked(self) ? refuse_cuda_in_child()
                                       : prof_i_cuda_activity_clock(self->host, out);
}

const prof_backend prof_i_cuda_backend = {
    .size = sizeof prof_i_cuda_backend,
    .major = PROF_BACKEND_MAJOR,
    .minor = PROF_BACKEND_MINOR,
    .device_type = PROF_DEVICE_CUDA,
    .name = "cuda",
    .version = "1.0 (no NVIDIA hardware so far)",
    .probe = cuda_probe,
    .open = cuda_open,
    .event_create = cuda_event_create,
    .event_record = cuda_event_record,
    .event_query = cuda_event_query,
    .event_destroy = cuda_event_destroy,
    .event_elapsed = cuda_event_elapsed,
    .fork_child = prof_i_vendor_fork_child,
    .last_error = prof_i_vendor_last_error,
    .stream_of = cuda_stream_of,
    .device = cuda_describe_device,
    .clock = cuda_read_clock,
    .start = cuda_start,
    .stop = cuda_stop,
    .drain = cuda_drain,
    .in_use = cuda_in_use,
    .records_memory = 1,
    .opens_late =
        2 /* to open the driver's library in a program that does not use it is not prof's to do */};
