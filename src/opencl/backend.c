/* OpenCL's table. A forked child has the parent's handles but not the threads behind them, so all
   calls are refused there. */
#include "internal.h"

#include <string.h>

#include "devices.h"
#include "external_event.h"
#include "library.h"
#include "marker.h"

static int refuse_opencl_in_child(void) {
  return prof_i_backend_fail_text(PROF_BACKEND_FORKED,
                                  "the queue is the parent's: this process was forked from it");
}

/* A handle is an object's address, and the loader reads there before it can reject a wrong one. A
   value that cannot be an address, such as a queue's number, is rejected here. */
static prof_i_cl_queue queue_of_stream(uint64_t stream) {
  enum { FIRST_PAGE = 4096 };
  if (stream >= FIRST_PAGE && stream % sizeof(void *) == 0)
    return (prof_i_cl_queue)(uintptr_t)stream;
  prof_i_backend_fail(PROF_BACKEND_INVALID, "stream %llu is no cl_command_queue",
                      (unsigned long long)stream);
  return NULL;
}

/* ---- opening ---- */

static int opencl_probe(const prof_backend_host *host) {
  (void)host;
  const int result = prof_i_opencl_library_open();
  if (result != PROF_BACKEND_OK) return result;
  return prof_i_opencl_platforms_count() ? PROF_BACKEND_OK : PROF_BACKEND_NO_DEVICE;
}

static int opencl_open(const prof_backend_host *host, prof_backend_self **self_out) {
  static prof_backend_self self;
  (void)host;
  const int result = prof_i_opencl_devices_list();
  if (result == PROF_BACKEND_OK) *self_out = &self;
  return result;
}

/* ---- events ---- */

static int opencl_event_create(prof_backend_self *self, uint64_t stream, void **event_out) {
  (void)stream;
  if (prof_i_vendor_is_forked(self)) return refuse_opencl_in_child();
  *event_out = prof_i_opencl_marker_create();
  return *event_out ? PROF_BACKEND_OK
                    : prof_i_backend_fail_text(PROF_BACKEND_NO_MEMORY, "no memory for an event");
}

static int opencl_event_record(prof_backend_self *self, uint64_t stream, void **event) {
  if (prof_i_vendor_is_forked(self)) return refuse_opencl_in_child();
  prof_i_cl_queue queue = queue_of_stream(stream);
  return queue ? prof_i_opencl_marker_record(*event, queue) : PROF_BACKEND_INVALID;
}

static int opencl_event_query(prof_backend_self *self, void *event) {
  return prof_i_vendor_is_forked(self) ? refuse_opencl_in_child()
                                       : prof_i_opencl_marker_query(event);
}

static int opencl_event_time(prof_backend_self *self, void *event, uint64_t *ns_out) {
  return prof_i_vendor_is_forked(self) ? refuse_opencl_in_child()
                                       : prof_i_opencl_marker_time(event, ns_out);
}

static void opencl_event_destroy(prof_backend_self *self, void *event) {
  if (!prof_i_vendor_is_forked(self)) prof_i_opencl_marker_destroy(event);
}

/* ---- devices ---- */

static int opencl_stream_of(prof_backend_self *self, uint64_t stream, uint32_t *device_out,
                            uint32_t *is_capturing_out) {
  if (prof_i_vendor_is_forked(self)) return refuse_opencl_in_child();
  prof_i_cl_queue queue = queue_of_stream(stream);
  const prof_i_opencl_device *const device = queue ? prof_i_opencl_queue_device(queue) : NULL;
  if (!device) return PROF_BACKEND_INVALID;
  *device_out = prof_i_opencl_device_number(device);
  *is_capturing_out = 0;
  return PROF_BACKEND_OK;
}

static int opencl_describe_device(prof_backend_self *self, uint32_t index,
                                  prof_backend_device *out) {
  if (prof_i_vendor_is_forked(self)) return refuse_opencl_in_child();
  const prof_i_opencl_device *const device = prof_i_opencl_device_at(index);
  if (!device) return prof_i_vendor_no_device(index);
  prof_backend_device about = {.size = out->size};
  prof_i_opencl_device_describe(device, &about);
  return prof_i_vendor_copy_device(out, &about);
}

static int opencl_read_clock(prof_backend_self *self, uint32_t index, prof_backend_pair *out) {
  if (prof_i_vendor_is_forked(self)) return refuse_opencl_in_child();
  prof_i_opencl_device *const device = prof_i_opencl_device_at(index);
  return device ? prof_i_opencl_clock_read(&device->clock, device->id, out)
                : prof_i_vendor_no_device(index);
}

/* ---- the program's own events ---- */

static int opencl_own_keep(prof_backend_self *self, uint64_t stream, void *event, void **kept_out) {
  if (prof_i_vendor_is_forked(self)) return refuse_opencl_in_child();
  prof_i_cl_queue queue = queue_of_stream(stream);
  if (!queue) return PROF_BACKEND_INVALID;
  if (!queue_of_stream((uint64_t)(uintptr_t)event))
    return prof_i_backend_fail_text(PROF_BACKEND_INVALID, "the event is no cl_event");
  return prof_i_opencl_external_event_create(queue, event,
                                             (prof_i_opencl_external_event **)kept_out);
}

static int opencl_own_times(prof_backend_self *self, void *kept, uint64_t *start_ns_out,
                            uint64_t *end_ns_out) {
  return prof_i_vendor_is_forked(self)
             ? refuse_opencl_in_child()
             : prof_i_opencl_external_event_times(kept, start_ns_out, end_ns_out);
}

static void opencl_own_let_go(prof_backend_self *self, void *kept) {
  if (!prof_i_vendor_is_forked(self)) prof_i_opencl_external_event_destroy(kept);
}

/* ---- meters ---- */

static int opencl_metric(prof_backend_self *self, uint32_t number, prof_backend_metric *out) {
  return prof_i_vendor_is_forked(self) ? refuse_opencl_in_child()
                                       : prof_i_opencl_meters_metric(number, out);
}

static int opencl_sample(prof_backend_self *self, const prof_backend_metric *metrics,
                         uint32_t count, int64_t *values_out, uint64_t *known_out) {
  return prof_i_vendor_is_forked(self)
             ? refuse_opencl_in_child()
             : prof_i_opencl_meters_sample(metrics, count, values_out, known_out);
}

const prof_backend prof_i_opencl_backend = {
    .size = sizeof prof_i_opencl_backend,
    .major = PROF_BACKEND_MAJOR,
    .minor = PROF_BACKEND_MINOR,
    .device_type = PROF_DEVICE_OPENCL,
    .name = "opencl",
    .version = "1.0",
    .probe = opencl_probe,
    .open = opencl_open,
    .event_create = opencl_event_create,
    .event_record = opencl_event_record,
    .event_query = opencl_event_query,
    .event_destroy = opencl_event_destroy,
    .event_time = opencl_event_time,
    .fork_child = prof_i_vendor_fork_child,
    .last_error = prof_i_vendor_last_error,
    .stream_of = opencl_stream_of,
    .device = opencl_describe_device,
    .clock = opencl_read_clock,
    .metric = opencl_metric,
    .sample = opencl_sample,
    .own_keep = opencl_own_keep,
    .own_times = opencl_own_times,
    .own_let_go = opencl_own_let_go,
    .opens_late = 1 /* some drivers crash if two threads ask for devices at once */};
