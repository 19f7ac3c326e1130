/* HIP's table. A forked child has the parent's handles but not the threads behind them. After some
   errors HIP does nothing more. In both cases calls are refused without calling the library. */
#include "internal.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "api.h"

/* ---- events ---- */

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
  if (prof_i_hip.hipThreadExchangeStreamCaptureMode)
    prof_i_hip.hipThreadExchangeStreamCaptureMode(&mode);
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
  int32_t before = -1, error = prof_i_hip.hipGetDevice(&before);
  if (error != 0) return prof_i_hip_fail_call("hipGetDevice", error);
  if (before != (int32_t)device && (error = prof_i_hip.hipSetDevice((int32_t)device)) != 0)
    return prof_i_hip_fail_call("hipSetDevice", error);
  WITH_RELAXED_CAPTURE(error,
                       prof_i_hip.hipEventCreateWithFlags(&made->event, PROF_I_HIP_EventDefault));
  if (before != (int32_t)device) prof_i_hip.hipSetDevice(before);
  made->device = device;
  return error == 0 ? PROF_BACKEND_OK : prof_i_hip_fail_call("hipEventCreateWithFlags", error);
}

static void destroy_hip_event(prof_i_hip_event event) {
  int32_t error;
  WITH_RELAXED_CAPTURE(error, prof_i_hip.hipEventDestroy(event));
  (void)error;
}

/* NULL: no memory */
static hip_marker *hip_marker_create(void) { return calloc(1, sizeof(hip_marker)); }

static void hip_marker_destroy(hip_marker *marker) {
  if (prof_i_hip_check_fatal() == PROF_BACKEND_OK && marker->event)
    destroy_hip_event(marker->event);
  free(marker);
}

/* It has none yet, or one of another device than the stream's. */
static int record_new_hip_event(hip_marker *marker, prof_i_hip_stream stream, uint32_t device) {
  hip_marker fresh = {0};
  const int result = make_hip_event(device, &fresh);
  if (result != PROF_BACKEND_OK) return result;
  const int32_t error = prof_i_hip.hipEventRecord(fresh.event, stream);
  if (error != 0) {
    destroy_hip_event(fresh.event);
    return prof_i_hip_fail_call("hipEventRecord", error);
  }
  if (marker->event) destroy_hip_event(marker->event);
  *marker = fresh;
  return PROF_BACKEND_OK;
}

/* Puts it on the stream. The current device is what it was.
   The device is queried first: a failed call would leave its error to the program. */
static int hip_marker_record(hip_marker *marker, prof_i_hip_stream stream) {
  const uint32_t device = prof_i_hip_stream_device(stream);
  if (device == UINT32_MAX) return PROF_BACKEND_INVALID;
  if (!marker->event || marker->device != device)
    return record_new_hip_event(marker, stream, device);
  const int32_t error = prof_i_hip.hipEventRecord(marker->event, stream);
  return error == 0 ? PROF_BACKEND_OK : prof_i_hip_fail_call("hipEventRecord", error);
}

static int refuse_empty_hip_marker(void) {
  return prof_i_backend_fail_text(PROF_BACKEND_INVALID, "the event was never put on a stream");
}

/* OK: it is past; NOT_READY. */
static int hip_marker_query(hip_marker *marker) {
  int32_t error;
  if (!marker->event) return refuse_empty_hip_marker();
  WITH_RELAXED_CAPTURE(error, prof_i_hip.hipEventQuery(marker->event));
  if (error == 0) return PROF_BACKEND_OK;
  return error == PROF_I_HIP_ErrorNotReady ? PROF_BACKEND_NOT_READY
                                           : prof_i_hip_fail_call("hipEventQuery", error);
}

/* From a to b, of one device. The runtime reports a float of milliseconds. */
static int hip_marker_elapsed(hip_marker *a, hip_marker *b, int64_t *ns_out) {
  float ms = 0;
  int32_t error;
  if (!a->event || !b->event) return refuse_empty_hip_marker();
  WITH_RELAXED_CAPTURE(error, prof_i_hip.hipEventElapsedTime(&ms, a->event, b->event));
  if (error != 0)
    return error == PROF_I_HIP_ErrorNotReady ? PROF_BACKEND_NOT_READY
                                             : prof_i_hip_fail_call("hipEventElapsedTime", error);
  const double ns = (double)ms * 1e6;
  if (!(fabs(ns) < 1e18))
    return prof_i_backend_fail(PROF_BACKEND_VENDOR, "hipEventElapsedTime: %g ms", (double)ms);
  *ns_out = (int64_t)(ns < 0 ? ns - 0.5 : ns + 0.5);
  return PROF_BACKEND_OK;
}

/* ---- the table ---- */

static const char unfetched_error_text[] =
    "the thread has an error of HIP's that the program has not fetched by hipGetLastError(), and "
    "any call would take it away";

static int refuse_hip_in_child(void) {
  return prof_i_backend_fail_text(PROF_BACKEND_FORKED,
                                  "the stream is the parent's: this process was forked from it");
}

/* OK if the runtime may be called for an event. */
static int check_hip(const prof_backend_self *self) {
  return prof_i_vendor_is_forked(self) ? refuse_hip_in_child() : prof_i_hip_check_fatal();
}

/* The same on a thread of the program. */
static int check_hip_thread(const prof_backend_self *self) {
  const int result = check_hip(self);
  return result == PROF_BACKEND_OK && prof_i_hip_has_error()
             ? prof_i_backend_fail_text(PROF_BACKEND_VENDOR, unfetched_error_text)
             : result;
}

/* 0, 1 and 2 are the default streams: the current device's by two names, and the thread's own. */
static prof_i_hip_stream hip_stream_at(uint64_t handle) {
  return (prof_i_hip_stream)(uintptr_t)handle;
}

/* ---- opening ---- */

/* Distributions bring the runtime to machines that have no such device. */
static int hip_probe(const prof_backend_host *host) {
  (void)host;
  const bool is_the_programs = prof_i_hip_library_is_loaded();
  const int result = prof_i_hip_library_open();
  return result != PROF_BACKEND_OK || is_the_programs ? result : prof_i_hip_devices_probe();
}

/* rocprofiler must be configured before HIP begins, and reports when that is. Only the program
   begins with HIP. */
static int hip_open(const prof_backend_host *host, prof_backend_self **self_out) {
  static prof_backend_self self;
  self.host = host;
  if (host->wanted && host->wanted()) prof_i_hip_activity_prepare(host);
  if (!prof_i_hip_activity_has_begun())
    return prof_i_backend_fail_text(PROF_BACKEND_NOT_READY, "the program has not begun to use HIP");
  if (prof_i_hip_has_error())
    return prof_i_backend_fail_text(PROF_BACKEND_NOT_READY, unfetched_error_text);
  const int result = prof_i_hip_devices_list();
  if (result == PROF_BACKEND_OK) *self_out = &self;
  return result;
}

/* ---- events ---- */

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

/* ---- devices ---- */

static int hip_stream_of(prof_backend_self *self, uint64_t stream, uint32_t *device_out,
                         uint32_t *is_capturing_out) {
  int32_t capture = PROF_I_HIP_StreamCaptureStatusNone;
  int result = check_hip_thread(self);
  if (result != PROF_BACKEND_OK) return result;
  const int32_t error = prof_i_hip.hipStreamIsCapturing
                            ? prof_i_hip.hipStreamIsCapturing(hip_stream_at(stream), &capture)
                            : 0;
  if (error != 0) result = prof_i_hip_fail_call("hipStreamIsCapturing", error);
  if (result != PROF_BACKEND_OK && result != PROF_BACKEND_CAPTURING) return result;
  *device_out = prof_i_hip_stream_device(hip_stream_at(stream));
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

/* ---- records ---- */

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
    .in_use = prof_i_hip_library_is_loaded,
    /* The runtime begins when it is first asked for anything: that is the program's to do. */
    .opens_late = 1};
