/* HIP's table. A forked child has the parent's handles but not the threads behind them. After some
   errors HIP does nothing more. In both cases calls are refused without calling the library.

   The devices are those that the program sees, in the runtime's order: their ordinal is
   prof_device.index. They are listed once, when the back end is opened. */
#define _GNU_SOURCE
#include "internal.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api.h"

/* ---- the library ---- */

typedef struct hip_functions {
/* NOLINTNEXTLINE(bugprone-macro-parentheses): a declaration's */
#define MEMBER(need, name, arguments) int32_t(*name) arguments;
  PROF_I_HIP_FUNCTIONS(MEMBER)
#undef MEMBER
/* NOLINTNEXTLINE(bugprone-macro-parentheses): a declaration's */
#define MEMBER(name, arguments) const char *(*name)arguments;
  PROF_I_HIP_TEXTS(MEMBER)
#undef MEMBER
} hip_functions;

static const char *const hip_names[] = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5",
                                        NULL};
static const prof_i_vendor_symbol hip_symbols[] = {
#define SYMBOL(need, name, arguments) {#name, offsetof(hip_functions, name), PROF_I_VENDOR_##need},
#define SYMBOL_TEXT(name, arguments) SYMBOL(NEEDED, name, arguments)
    PROF_I_HIP_FUNCTIONS(SYMBOL) PROF_I_HIP_TEXTS(SYMBOL_TEXT)
#undef SYMBOL_TEXT
#undef SYMBOL
};

/* Written only by hip_library_open(). Call these only after it returned OK. */
static hip_functions hip;

static const prof_i_vendor_library hip_library = {
    .names = hip_names,
    .absent_text = "libamdhip64.so.7, .6 and .5 are not there",
    .symbols = hip_symbols,
    .symbol_count = sizeof hip_symbols / sizeof *hip_symbols,
    .functions = &hip,
    .oldest_text = ": HIP 5 is the oldest that serves"};

/* True if the program has loaded it. Any thread. */
static int hip_library_is_loaded(void) { return prof_i_vendor_library_is_loaded(&hip_library); }

/* See prof_i_vendor_library_open(). A loaded copy of any major comes first, then the newest.
   ABSENT, VERSION, UNSUPPORTED. One thread at a time. */
static int hip_library_open(void) { return prof_i_vendor_library_open(&hip_library, NULL); }

/* ---- errors ---- */

static struct { int32_t error_code; /* fatal; 0: none so far. Relaxed */ } hip_fatal;

static bool is_hip_fatal(int32_t error) {
  switch (error) {
#define CASE(name, value) case value:
    PROF_I_HIP_FATAL_ERRORS(CASE)
#undef CASE
    return true;
    default:
      return false;
  }
}

static struct {
  uint32_t count;    /* not changed once they are listed */
  bool keeps_errors; /* the same: HIP 7 */
} hip_device_list;

/* Clears the error that a failed call of prof left, unless the program had one before. */
static void hip_clear_error(void) {
  if (!hip_device_list.keeps_errors && hip.hipGetLastError) hip.hipGetLastError();
}

/* True if the calling thread has an error that the program has not fetched by hipGetLastError().
   Before HIP 7 any successful call clears it, so nothing may be called then. Any thread. */
static bool hip_has_error(void) {
  return !hip_device_list.keeps_errors && hip.hipPeekAtLastError && hip.hipPeekAtLastError() != 0;
}

static int result_of_hip(int32_t error) {
  if (error >= PROF_I_HIP_ErrorStreamCaptureUnsupported &&
      error <= PROF_I_HIP_ErrorStreamCaptureWrongThread)
    return PROF_BACKEND_CAPTURING;
  switch (error) {
    case PROF_I_HIP_ErrorOutOfMemory:
      return PROF_BACKEND_NO_MEMORY;
    case PROF_I_HIP_ErrorNoDevice:
      return PROF_BACKEND_NO_DEVICE;
    case PROF_I_HIP_ErrorInvalidDevice:
    case PROF_I_HIP_ErrorInvalidContext:
    case PROF_I_HIP_ErrorContextIsDestroyed:
    case PROF_I_HIP_ErrorInvalidHandle:
      return PROF_BACKEND_INVALID;
    default:
      return PROF_BACKEND_VENDOR;
  }
}

/* Stores a text such as "hipEventRecord: hipErrorInvalidHandle (400), invalid resource handle", in
   the runtime's words. Returns the matching result. */
static int hip_fail_call(const char *function, int32_t error) {
  if (is_hip_fatal(error))
    __atomic_store_n(&hip_fatal.error_code, error, __ATOMIC_RELAXED);
  else
    hip_clear_error();
  const char *const name = hip.hipGetErrorName(error), *const text = hip.hipGetErrorString(error);
  return prof_i_backend_fail(result_of_hip(error), "%s: %s (%d)%s%s%s", function,
                             name ? name : "an error", error, text ? ", " : "", text ? text : "",
                             is_hip_fatal(error) ? ": no more HIP in this process" : "");
}

/* Fails once a call has returned one of PROF_I_HIP_FATAL_ERRORS. After such an error HIP fails all
   calls in this process, so prof makes no more. The error is not cleared, so the program sees it.
   Any thread. */
static int hip_check_fatal(void) {
  const int32_t error = __atomic_load_n(&hip_fatal.error_code, __ATOMIC_RELAXED);
  return error == 0 ? PROF_BACKEND_OK : hip_fail_call("an earlier call", error);
}

/* ---- devices ---- */

enum { PATH_BYTES = 512 };

/* Puts PROF_SYSFS_ROOT before a system path: see meters.c. */
static void device_path_of(char to[PATH_BYTES], const char *name) {
  const char *const root = secure_getenv("PROF_SYSFS_ROOT");
  if (snprintf(to, PATH_BYTES, "%s%s", root ? root : "", name) >= PATH_BYTES) to[0] = '\0';
}

static bool device_file_exists(const char *name) {
  char path[PATH_BYTES];
  device_path_of(path, name);
  return access(path, F_OK) == 0;
}

static int refuse_group(const char *path, const char *why) {
  struct stat about;
  const uint32_t group = stat(path, &about) == 0 ? about.st_gid : 0;
  return prof_i_backend_fail(
      PROF_BACKEND_PERMISSION,
      "%s: %s: this user is not in its group, %u (render, or video): usermod "
      "-aG, and log in again; for a container, --group-add",
      path, why, group);
}

/* Each device has a render node, besides /dev/kfd. OK: one of the nodes can be opened. */
static int check_render_nodes(void) {
  char folder[PATH_BYTES], path[2 * PATH_BYTES], refused[2 * PATH_BYTES] = "";
  int result = PROF_BACKEND_NO_DEVICE, error = 0;
  device_path_of(folder, "/dev/dri");
  DIR *const all = opendir(folder);
  for (const struct dirent *entry; all && (entry = readdir(all)) != NULL;) {
    if (strncmp(entry->d_name, "renderD", sizeof "renderD" - 1) != 0) continue;
    snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    if (access(path, R_OK | W_OK) == 0)
      result = PROF_BACKEND_OK;
    else
      memcpy(refused, path, sizeof refused), error = errno;
  }
  if (all) closedir(all);
  if (result == PROF_BACKEND_OK) return result;
  return error ? refuse_group(refused, strerror(error))
               : prof_i_backend_fail(PROF_BACKEND_NO_DEVICE,
                                     "%s has no renderD*, which HIP needs besides /dev/kfd: the "
                                     "container was not given it",
                                     folder);
}

/* The runtime reports "no device" for all of these causes. Finds the one that applies. */
static int fail_no_hip_device(void) {
  char path[PATH_BYTES];
  device_path_of(path, "/dev/kfd");
  if (access(path, F_OK) != 0)
    return prof_i_backend_fail(PROF_BACKEND_NO_DEVICE,
                               "%s is not there: no AMD GPU, its kernel module (amdgpu) is not "
                               "loaded, or the container was not given the device",
                               path);
  if (access(path, R_OK | W_OK) != 0) return refuse_group(path, strerror(errno));
  const int result = check_render_nodes();
  return result != PROF_BACKEND_OK
             ? result
             : prof_i_backend_fail_text(PROF_BACKEND_NO_DEVICE,
                                        "hipGetDeviceCount: 0 devices (HIP_VISIBLE_DEVICES and "
                                        "ROCR_VISIBLE_DEVICES may hide some)");
}

/* OK if the kernel shows a device. Does not call the runtime. */
static int hip_devices_probe(void) {
  return device_file_exists("/dev/kfd") || device_file_exists("/dev/dxg") /* Windows' Linux */
             ? PROF_BACKEND_OK
             : fail_no_hip_device();
}

/* Lists the devices. NO_DEVICE with a reason, such as a missing /dev/kfd or no permission to open
   it. This call starts the runtime if necessary, so a caller must have a stream of it, or query the
   devices. */
static int hip_devices_list(void) {
  int32_t count = 0, version = 0;
  const int32_t error = hip.hipGetDeviceCount(&count);
  hip_device_list.count = 0;
  if (error == PROF_I_HIP_ErrorNoDevice || (error == 0 && count <= 0)) return fail_no_hip_device();
  if (error != 0) return hip_fail_call("hipGetDeviceCount", error);
  hip_device_list.count = (uint32_t)count;
  hip_device_list.keeps_errors = hip.hipRuntimeGetVersion(&version) == 0 && version >= 70000000;
  return PROF_BACKEND_OK;
}

uint32_t prof_i_hip_devices_count(void) { return hip_device_list.count; }

/* The number of the stream's device. UINT32_MAX: an error, with a text. For a default stream, and
   with runtimes before 6.0, this is the calling thread's current device. */
static uint32_t hip_stream_device(prof_i_hip_stream stream) {
  enum { PER_THREAD = 2 }; /* hipStreamPerThread */
  const int is_default = (uintptr_t)stream <= PER_THREAD,
            is_told = !is_default && hip.hipStreamGetDevice;
  int32_t device = -1;
  const int32_t error =
      is_told ? hip.hipStreamGetDevice(stream, &device) : hip.hipGetDevice(&device);
  if (error != 0) {
    hip_fail_call(is_told ? "hipStreamGetDevice" : "hipGetDevice", error);
    return UINT32_MAX;
  }
  if (device >= 0 && (uint32_t)device < hip_device_list.count) return (uint32_t)device;
  prof_i_backend_fail_text(PROF_BACKEND_INVALID,
                           "the stream's device is not one of the listed devices");
  return UINT32_MAX;
}

/* ---- describing ---- */

static uint32_t hip_attribute(int32_t device, int32_t what) {
  int32_t value = 0;
  return hip.hipDeviceGetAttribute(&value, what, device) == 0 && value > 0 ? (uint32_t)value : 0;
}

void prof_i_hip_device_describe(uint32_t number, prof_backend_device *out) {
  const int32_t device = (int32_t)number;
  int32_t version = 0;
  size_t bytes = 0;
  *out = (prof_backend_device){.size = out->size};
  if (hip.hipDeviceGetName(out->name, (int32_t)sizeof out->name, device) != 0) out->name[0] = '\0';
  if (hip.hipRuntimeGetVersion(&version) == 0)
    snprintf(out->driver, sizeof out->driver, "HIP %d.%d", version / 10000000,
             version / 100000 % 100);
  if (hip.hipDeviceTotalMem(&bytes, device) == 0) out->memory_bytes = bytes;
  if (hip.hipDeviceGetUuid) hip.hipDeviceGetUuid((prof_i_hip_uuid *)out->uuid, device);
  out->units = hip_attribute(device, PROF_I_HIP_DeviceAttributeMultiprocessorCount);
  out->clock_khz = hip_attribute(device, PROF_I_HIP_DeviceAttributeClockRate);
  out->pci_domain = hip_attribute(device, PROF_I_HIP_DeviceAttributePciDomainID);
  out->pci_bus = hip_attribute(device, PROF_I_HIP_DeviceAttributePciBusId);
  out->pci_device = hip_attribute(device, PROF_I_HIP_DeviceAttributePciDeviceId);
}

/* ---- markers ---- */

/* An event of prof's: a hipEvent_t. It belongs to a device, as its stream does, and is created
   where it is first put on a stream. Nothing about a stream is kept from one call to the next:
   its handle may be another stream's by then. */

typedef struct hip_marker {
  prof_i_hip_event event; /* NULL: none yet */
  uint32_t device;        /* of the event's */
} hip_marker;

/* While any stream is captured into a graph globally, to ask for an event breaks that capture, from
   whatever thread: but for one that says that it knows. */
static int32_t exchange_hip_capture_mode(int32_t mode) {
  if (hip.hipThreadExchangeStreamCaptureMode) hip.hipThreadExchangeStreamCaptureMode(&mode);
  return mode;
}
#define WITH_RELAXED_CAPTURE(error, ...)                                                        \
  do {                                                                                          \
    const int32_t mode_before = exchange_hip_capture_mode(PROF_I_HIP_StreamCaptureModeRelaxed); \
    (error) = (__VA_ARGS__);                                                                    \
    exchange_hip_capture_mode(mode_before);                                                     \
  } while (0)

/* On that device, which is current meanwhile. */
static int make_hip_event(uint32_t device, hip_marker *made) {
  int32_t before = -1, error = hip.hipGetDevice(&before);
  if (error != 0) return hip_fail_call("hipGetDevice", error);
  if (before != (int32_t)device && (error = hip.hipSetDevice((int32_t)device)) != 0)
    return hip_fail_call("hipSetDevice", error);
  WITH_RELAXED_CAPTURE(error, hip.hipEventCreateWithFlags(&made->event, PROF_I_HIP_EventDefault));
  if (before != (int32_t)device) hip.hipSetDevice(before);
  made->device = device;
  return error == 0 ? PROF_BACKEND_OK : hip_fail_call("hipEventCreateWithFlags", error);
}

static void destroy_hip_event(prof_i_hip_event event) {
  int32_t error;
  WITH_RELAXED_CAPTURE(error, hip.hipEventDestroy(event));
  (void)error;
}

/* NULL: no memory */
static hip_marker *hip_marker_create(void) { return calloc(1, sizeof(hip_marker)); }

static void hip_marker_destroy(hip_marker *marker) {
  if (hip_check_fatal() == PROF_BACKEND_OK && marker->event) destroy_hip_event(marker->event);
  free(marker);
}

/* It has none yet, or one of another device than the stream's. */
static int record_new_hip_event(hip_marker *marker, prof_i_hip_stream stream, uint32_t device) {
  hip_marker fresh = {0};
  const int result = make_hip_event(device, &fresh);
  if (result != PROF_BACKEND_OK) return result;
  const int32_t error = hip.hipEventRecord(fresh.event, stream);
  if (error != 0) {
    destroy_hip_event(fresh.event);
    return hip_fail_call("hipEventRecord", error);
  }
  if (marker->event) destroy_hip_event(marker->event);
  *marker = fresh;
  return PROF_BACKEND_OK;
}

/* Puts it on the stream. The current device is what it was.
   The device is queried first: a failed call would leave its error to the program. */
static int hip_marker_record(hip_marker *marker, prof_i_hip_stream stream) {
  const uint32_t device = hip_stream_device(stream);
  if (device == UINT32_MAX) return PROF_BACKEND_INVALID;
  if (!marker->event || marker->device != device)
    return record_new_hip_event(marker, stream, device);
  const int32_t error = hip.hipEventRecord(marker->event, stream);
  return error == 0 ? PROF_BACKEND_OK : hip_fail_call("hipEventRecord", error);
}

static int refuse_empty_hip_marker(void) {
  return prof_i_backend_fail_text(PROF_BACKEND_INVALID, "the event was never put on a stream");
}

/* OK: it is past; NOT_READY. */
static int hip_marker_query(hip_marker *marker) {
  int32_t error;
  if (!marker->event) return refuse_empty_hip_marker();
  WITH_RELAXED_CAPTURE(error, hip.hipEventQuery(marker->event));
  if (error == 0) return PROF_BACKEND_OK;
  return error == PROF_I_HIP_ErrorNotReady ? PROF_BACKEND_NOT_READY
                                           : hip_fail_call("hipEventQuery", error);
}

/* From a to b, of one device. The runtime reports a float of milliseconds. */
static int hip_marker_elapsed(hip_marker *a, hip_marker *b, int64_t *ns_out) {
  float ms = 0;
  int32_t error;
  if (!a->event || !b->event) return refuse_empty_hip_marker();
  WITH_RELAXED_CAPTURE(error, hip.hipEventElapsedTime(&ms, a->event, b->event));
  if (error != 0)
    return error == PROF_I_HIP_ErrorNotReady ? PROF_BACKEND_NOT_READY
                                             : hip_fail_call("hipEventElapsedTime", error);
  const double ns = (double)ms * 1e6;
  if (!(fabs(ns) < 1e18))
    return prof_i_backend_fail(PROF_BACKEND_VENDOR, "hipEventElapsedTime: %g ms", (double)ms);
  *ns_out = (int64_t)(ns < 0 ? ns - 0.5 : ns + 0.5);
  return PROF_BACKEND_OK;
}

/* ---- what the table's functions share ---- */

static const char unfetched_error_text[] =
    "the thread has an error of HIP's that the program has not fetched by hipGetLastError(), and "
    "any call would take it away";

static int refuse_hip_in_child(void) {
  return prof_i_backend_fail_text(PROF_BACKEND_FORKED,
                                  "the stream is the parent's: this process was forked from it");
}

/* OK if the runtime may be called for an event. */
static int check_hip(const prof_backend_self *self) {
  return prof_i_vendor_is_forked(self) ? refuse_hip_in_child() : hip_check_fatal();
}

/* The same on a thread of the program. */
static int check_hip_thread(const prof_backend_self *self) {
  const int result = check_hip(self);
  return result == PROF_BACKEND_OK && hip_has_error()
             ? prof_i_backend_fail_text(PROF_BACKEND_VENDOR, unfetched_error_text)
             : result;
}

/* 0, 1 and 2 are the default streams: the current device's by two names, and the thread's own. */
static prof_i_hip_stream hip_stream_at(uint64_t handle) {
  return (prof_i_hip_stream)(uintptr_t)handle;
}

/* ---- the table: opening ---- */

/* Distributions bring the runtime to machines that have no such device. */
static int hip_probe(const prof_backend_host *host) {
  (void)host;
  const bool is_the_programs = hip_library_is_loaded();
  const int result = hip_library_open();
  return result != PROF_BACKEND_OK || is_the_programs ? result : hip_devices_probe();
}

/* rocprofiler must be configured before HIP begins, and reports when that is. Only the program
   begins with HIP. */
static int hip_open(const prof_backend_host *host, prof_backend_self **self_out) {
  static prof_backend_self self;
  self.host = host;
  if (host->wanted && host->wanted()) prof_i_hip_activity_prepare(host);
  if (!prof_i_hip_activity_has_begun())
    return prof_i_backend_fail_text(PROF_BACKEND_NOT_READY, "the program has not begun to use HIP");
  if (hip_has_error())
    return prof_i_backend_fail_text(PROF_BACKEND_NOT_READY, unfetched_error_text);
  const int result = hip_devices_list();
  if (result == PROF_BACKEND_OK) *self_out = &self;
  return result;
}

/* ---- the table: events ---- */

static int hip_event_create(prof_backend_self *self, uint64_t stream, void **event_out) {
  (void)stream;
  const int result = check_hip(self);
  if (result != PROF_BACKEND_OK) return result;
  *event_out = hip_marker_create();
  return *event_out ? PROF_BACKEND_OK
                    : prof_i_backend_fail_text(PROF_BACKEND_NO_MEMORY, "no memory for an event");
}

static int hip_event_record(prof_backend_self *self, uint64_t stream, void **event) {
  const int result = check_hip_thread(self);
  return result == PROF_BACKEND_OK ? hip_marker_record(*event, hip_stream_at(stream)) : result;
}

static int hip_event_query(prof_backend_self *self, void *event) {
  const int result = check_hip(self);
  return result == PROF_BACKEND_OK ? hip_marker_query(event) : result;
}

static int hip_event_elapsed(prof_backend_self *self, void *a, void *b, int64_t *ns_out) {
  const int result = check_hip(self);
  return result == PROF_BACKEND_OK ? hip_marker_elapsed(a, b, ns_out) : result;
}

static void hip_event_destroy(prof_backend_self *self, void *event) {
  if (!prof_i_vendor_is_forked(self)) hip_marker_destroy(event);
}

/* ---- the table: devices ---- */

static int hip_stream_of(prof_backend_self *self, uint64_t stream, uint32_t *device_out,
                         uint32_t *is_capturing_out) {
  int32_t capture = PROF_I_HIP_StreamCaptureStatusNone;
  int result = check_hip_thread(self);
  if (result != PROF_BACKEND_OK) return result;
  const int32_t error =
      hip.hipStreamIsCapturing ? hip.hipStreamIsCapturing(hip_stream_at(stream), &capture) : 0;
  if (error != 0) result = hip_fail_call("hipStreamIsCapturing", error);
  if (result != PROF_BACKEND_OK && result != PROF_BACKEND_CAPTURING) return result;
  *device_out = hip_stream_device(hip_stream_at(stream));
  /* The legacy stream returns an error while another stream is captured: nothing may be put on it.
     */
  *is_capturing_out =
      result == PROF_BACKEND_CAPTURING || capture != PROF_I_HIP_StreamCaptureStatusNone;
  return *device_out == UINT32_MAX ? PROF_BACKEND_INVALID : PROF_BACKEND_OK;
}

static int hip_describe_device(prof_backend_self *self, uint32_t index, prof_backend_device *out) {
  if (prof_i_vendor_is_forked(self)) return refuse_hip_in_child();
  if (index >= prof_i_hip_devices_count()) return prof_i_vendor_no_device(index);
  prof_backend_device about = {.size = out->size};
  prof_i_hip_device_describe(index, &about);
  return prof_i_vendor_copy_device(out, &about);
}

/* ---- the table: records ---- */

static int hip_read_clock(prof_backend_self *self, uint32_t device, prof_backend_pair *out) {
  (void)device; /* one clock serves all */
  return prof_i_vendor_is_forked(self) ? refuse_hip_in_child()
                                       : prof_i_hip_activity_clock(self->host, out);
}

static int hip_start(prof_backend_self *self, uint32_t kinds, uint32_t *kinds_out) {
  return prof_i_vendor_is_forked(self) ? refuse_hip_in_child()
                                       : prof_i_hip_activity_start(self->host, kinds, kinds_out);
}
static int hip_stop(prof_backend_self *self) {
  return prof_i_vendor_is_forked(self) ? refuse_hip_in_child() : prof_i_hip_activity_stop();
}
static int hip_drain(prof_backend_self *self, uint32_t how, uint64_t *lost_out) {
  return prof_i_vendor_is_forked(self) ? refuse_hip_in_child()
                                       : prof_i_hip_activity_drain(self->host, how, lost_out);
}

const prof_backend prof_i_hip_backend = {
    .size = sizeof prof_i_hip_backend,
    .major = PROF_BACKEND_MAJOR,
    .minor = PROF_BACKEND_MINOR,
    .device_type = PROF_DEVICE_ROCM,
    .name = "hip",
    .version = "1.0 (never run on AMD hardware)",
    .probe = hip_probe,
    .open = hip_open,
    .event_create = hip_event_create,
    .event_record = hip_event_record,
    .event_query = hip_event_query,
    .event_destroy = hip_event_destroy,
    .event_elapsed = hip_event_elapsed,
    .fork_child = prof_i_vendor_fork_child,
    .last_error = prof_i_vendor_last_error,
    .stream_of = hip_stream_of,
    .device = hip_describe_device,
    .clock = hip_read_clock,
    .start = hip_start,
    .stop = hip_stop,
    .drain = hip_drain,
    .in_use = hip_library_is_loaded,
    /* The runtime begins when it is first asked for anything: that is the program's to do. */
    .opens_late = 1};
