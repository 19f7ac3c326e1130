/* HIP's table. A forked child has the parent's handles but not the threads behind them. After some
   errors HIP does nothing more. In both cases calls are refused without calling the library. */
#include "internal.h"

#include <stdbool.h>
#include <string.h>

#include "activity.h"
#include "devices.h"
#include "library.h"
#include "marker.h"

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
  *event_out = prof_i_hip_marker_create();
  return *event_out ? PROF_BACKEND_OK
                    : prof_i_backend_fail_text(PROF_BACKEND_NO_MEMORY, "no memory for an event");
}

static int hip_event_record(prof_backend_self *self, uint64_t stream, void **event) {
  const int result = check_hip_thread(self);
  return result == PROF_BACKEND_OK ? prof_i_hip_marker_record(*event, hip_stream_at(stream))
                                   : result;
}

static int hip_event_query(prof_backend_self *self, void *event) {
  const int result = check_hip(self);
  return result == PROF_BACKEND_OK ? prof_i_hip_marker_query(event) : result;
}

static int hip_event_elapsed(prof_backend_self *self, void *a, void *b, int64_t *ns_out) {
  const int result = check_hip(self);
  return result == PROF_BACKEND_OK ? prof_i_hip_marker_elapsed(a, b, ns_out) : result;
}

static void hip_event_destroy(prof_backend_self *self, void *event) {
  if (!prof_i_vendor_is_forked(self)) prof_i_hip_marker_destroy(event);
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
