/* CUDA's table. A forked child has the parent's handles but not the threads behind them. After some
   errors CUDA does nothing more. In both cases calls are refused without calling the library. */
#include "internal.h"

#include <stdbool.h>
#include <string.h>

#include "activity.h"
#include "devices.h"
#include "library.h"
#include "marker.h"

static int refuse_cuda_in_child(void) {
  return prof_i_backend_fail_text(PROF_BACKEND_FORKED,
                                  "the stream is the parent's: this process was forked from it");
}

/* OK if the driver may be called for an event or a stream. */
static int check_cuda(const prof_backend_self *self) {
  return prof_i_vendor_is_forked(self) ? refuse_cuda_in_child() : prof_i_cuda_check_fatal();
}

/* 0, 1 and 2 are the default streams: the legacy one by two names, and the thread's own. */
static prof_i_cu_stream cuda_stream_at(uint64_t handle) {
  return (prof_i_cu_stream)(uintptr_t)handle;
}

/* ---- opening ---- */

static int cuda_probe(const prof_backend_host *host) {
  (void)host;
  return prof_i_cuda_library_open();
}

/* NOT_READY until the program itself has begun to use CUDA: if prof began, a child forked later
   could not use CUDA. */
static int cuda_open(const prof_backend_host *host, prof_backend_self **self_out) {
  static prof_backend_self self;
  const int result = prof_i_cuda_devices_list();
  self.host = host;
  if (result == PROF_BACKEND_OK) *self_out = &self;
  return result;
}

static int cuda_in_use(void) { return prof_i_cuda_library_is_loaded(); }

/* ---- events ---- */

static int cuda_event_create(prof_backend_self *self, uint64_t stream, void **event_out) {
  (void)stream;
  const int result = check_cuda(self);
  if (result != PROF_BACKEND_OK) return result;
  *event_out = prof_i_cuda_marker_create();
  return *event_out ? PROF_BACKEND_OK
                    : prof_i_backend_fail_text(PROF_BACKEND_NO_MEMORY, "no memory for an event");
}

static int cuda_event_record(prof_backend_self *self, uint64_t stream, void **event) {
  const int result = check_cuda(self);
  return result == PROF_BACKEND_OK ? prof_i_cuda_marker_record(*event, cuda_stream_at(stream))
                                   : result;
}

static int cuda_event_query(prof_backend_self *self, void *event) {
  const int result = check_cuda(self);
  return result == PROF_BACKEND_OK ? prof_i_cuda_marker_query(event) : result;
}

static int cuda_event_elapsed(prof_backend_self *self, void *a, void *b, int64_t *ns_out) {
  const int result = check_cuda(self);
  return result == PROF_BACKEND_OK ? prof_i_cuda_marker_elapsed(a, b, ns_out) : result;
}

static void cuda_event_destroy(prof_backend_self *self, void *event) {
  if (!prof_i_vendor_is_forked(self)) prof_i_cuda_marker_destroy(event);
}

/* ---- devices ---- */

static int cuda_stream_of(prof_backend_self *self, uint64_t stream, uint32_t *device_out,
                          uint32_t *is_capturing_out) {
  int32_t capture = PROF_I_CU_STREAM_CAPTURE_STATUS_NONE;
  int result = check_cuda(self);
  if (result != PROF_BACKEND_OK) return result;
  const int32_t error = prof_i_cuda.cuStreamIsCapturing(cuda_stream_at(stream), &capture);
  if (error != 0) result = prof_i_cuda_fail_call("cuStreamIsCapturing", error);
  if (result != PROF_BACKEND_OK && result != PROF_BACKEND_CAPTURING) return result;
  *device_out = prof_i_cuda_stream_device(cuda_stream_at(stream));
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

/* ---- records ---- */

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
