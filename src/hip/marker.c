/* See marker.h. Nothing about a stream is kept from one call to the next: its handle may be another
   stream's by then. */
#include "marker.h"

#include <math.h>
#include <stdlib.h>

#include "devices.h"
#include "library.h"

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
static int make_hip_event(uint32_t device, prof_i_hip_marker *made) {
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

prof_i_hip_marker *prof_i_hip_marker_create(void) { return calloc(1, sizeof(prof_i_hip_marker)); }

void prof_i_hip_marker_destroy(prof_i_hip_marker *marker) {
  if (prof_i_hip_check_fatal() == PROF_BACKEND_OK && marker->event)
    destroy_hip_event(marker->event);
  free(marker);
}

/* It has none yet, or one of another device than the stream's. */
static int record_new_hip_event(prof_i_hip_marker *marker, prof_i_hip_stream stream,
                                uint32_t device) {
  prof_i_hip_marker fresh = {0};
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

/* The device is queried first: a failed call would leave its error to the program. */
int prof_i_hip_marker_record(prof_i_hip_marker *marker, prof_i_hip_stream stream) {
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

int prof_i_hip_marker_query(prof_i_hip_marker *marker) {
  int32_t error;
  if (!marker->event) return refuse_empty_hip_marker();
  WITH_RELAXED_CAPTURE(error, prof_i_hip.hipEventQuery(marker->event));
  if (error == 0) return PROF_BACKEND_OK;
  return error == PROF_I_HIP_ErrorNotReady ? PROF_BACKEND_NOT_READY
                                           : prof_i_hip_fail_call("hipEventQuery", error);
}

int prof_i_hip_marker_elapsed(prof_i_hip_marker *a, prof_i_hip_marker *b, int64_t *ns_out) {
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
