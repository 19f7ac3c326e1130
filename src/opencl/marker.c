/* See marker.h. Nothing here flushes the queue: that is the program's decision. Nothing about a
   queue is remembered from one call to the next, not even whether it records times, because its
   handle may be another queue's by then. A query costs 2 ns with PoCL, whose marker costs 560. */
#include "marker.h"

#include <stdlib.h>

#include "devices.h"
#include "library.h"

enum {
  SAMPLE_EVERY = 64, /* uses of a marker; of the first marker there is the first one */
  LINE_BYTES = 64    /* the collector and a scope's thread take turns with it */
};

prof_i_opencl_marker *prof_i_opencl_marker_create(void) {
  static uint32_t count;
  prof_i_opencl_marker *const marker = aligned_alloc(LINE_BYTES, LINE_BYTES);
  _Static_assert(sizeof *marker <= LINE_BYTES, "it is one line of the cache");
  if (marker)
    *marker = (prof_i_opencl_marker){.result = PROF_BACKEND_INVALID,
                                     .use_count = __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED)};
  return marker;
}

static void release_marker_event(prof_i_opencl_marker *marker) {
  if (marker->event) prof_i_opencl.clReleaseEvent(marker->event);
  marker->event = NULL;
  free(marker->sample);
  marker->sample = NULL;
}

void prof_i_opencl_marker_destroy(prof_i_opencl_marker *marker) {
  release_marker_event(marker);
  free(marker);
}

/* ---- to the queue ---- */

int prof_i_opencl_marker_check(prof_i_cl_queue queue) {
  uint64_t properties = 0;
  const int32_t error = prof_i_opencl.clGetCommandQueueInfo(queue, PROF_I_CL_QUEUE_PROPERTIES,
                                                            sizeof properties, &properties, NULL);
  if (error != 0) return prof_i_opencl_fail_call("clGetCommandQueueInfo", error);
  if (properties & PROF_I_CL_QUEUE_PROFILING_ENABLE) return PROF_BACKEND_OK;
  return prof_i_backend_fail_text(
      PROF_BACKEND_UNSUPPORTED,
      "the queue has no CL_QUEUE_PROFILING_ENABLE: create it with that property");
}

static int enqueue_marker(prof_i_cl_queue queue, prof_i_cl_event *event_out) {
  const bool has_lists = prof_i_opencl_devices_has_wait_lists(queue);
  const int32_t error = has_lists
                            ? prof_i_opencl.clEnqueueMarkerWithWaitList(queue, 0, NULL, event_out)
                            : prof_i_opencl.clEnqueueMarker(queue, event_out);
  if (error == 0 && *event_out) return PROF_BACKEND_OK;
  *event_out = NULL;
  return prof_i_opencl_fail_call(has_lists ? "clEnqueueMarkerWithWaitList" : "clEnqueueMarker",
                                 error);
}

int prof_i_opencl_marker_record(prof_i_opencl_marker *marker, prof_i_cl_queue queue) {
  release_marker_event(marker);
  marker->result = prof_i_opencl_marker_check(queue);
  if (marker->result != PROF_BACKEND_OK) return marker->result;
  prof_i_opencl_device *const device =
      marker->use_count++ % SAMPLE_EVERY == 0 ? prof_i_opencl_queue_device(queue) : NULL;
  prof_i_opencl_sample *const sample = device ? malloc(sizeof *sample) : NULL;
  if (sample) sample->before = prof_i_opencl_read_host_clocks();
  marker->result = enqueue_marker(queue, &marker->event);
  if (sample) sample->after = prof_i_opencl_read_host_clocks();
  if (sample) sample->clock = &device->clock;
  marker->sample = sample;
  return marker->result;
}

/* ---- and what became of it ---- */

static int32_t read_marker_time(prof_i_cl_event event, uint32_t which, uint64_t *ns_out) {
  return prof_i_opencl.clGetEventProfilingInfo(event, which, sizeof *ns_out, ns_out, NULL);
}

static void read_marker_times(prof_i_opencl_marker *marker) {
  uint64_t queued_ns = 0;
  marker->end_ns = 0;
  marker->time_error =
      read_marker_time(marker->event, PROF_I_CL_PROFILING_COMMAND_END, &marker->end_ns);
  if (marker->sample && marker->time_error == 0 &&
      read_marker_time(marker->event, PROF_I_CL_PROFILING_COMMAND_QUEUED, &queued_ns) == 0)
    prof_i_opencl_clock_add_sample(marker->sample, queued_ns, marker->end_ns);
}

int prof_i_opencl_marker_query(prof_i_opencl_marker *marker) {
  int32_t status = 0;
  if (!marker->event) return marker->result;
  const int32_t error = prof_i_opencl.clGetEventInfo(
      marker->event, PROF_I_CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL);
  if (error == 0 && status > PROF_I_CL_COMPLETE) return PROF_BACKEND_NOT_READY;
  if (error != 0)
    marker->result = prof_i_opencl_fail_call("clGetEventInfo", error);
  else if (status < 0)
    marker->result = prof_i_backend_fail(PROF_BACKEND_VENDOR,
                                         "a command before the marker failed: status %d", status);
  else
    read_marker_times(marker);
  release_marker_event(marker);
  return marker->result;
}

int prof_i_opencl_marker_time(prof_i_opencl_marker *marker, uint64_t *ns_out) {
  const int result = prof_i_opencl_marker_query(marker);
  if (result != PROF_BACKEND_OK) return result;
  if (marker->time_error != 0)
    return prof_i_opencl_fail_call("clGetEventProfilingInfo", marker->time_error);
  *ns_out = marker->end_ns;
  return PROF_BACKEND_OK;
}
