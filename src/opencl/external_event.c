/* See external_event.h. */
#include "external_event.h"

#include <stdlib.h>

#include "devices.h"
#include "library.h"

struct prof_i_opencl_external_event {
  prof_i_cl_event event;
  prof_i_opencl_marker *marker; /* NULL: the clock is known */
};

static prof_i_opencl_marker *enqueue_own_marker(prof_i_cl_queue queue) {
  const prof_i_opencl_device *const device = prof_i_opencl_queue_device(queue);
  if (!device || prof_i_opencl_clock_has_sample((prof_i_opencl_clock *)&device->clock)) return NULL;
  prof_i_opencl_marker *const marker = prof_i_opencl_marker_create();
  if (marker) marker->use_count = 0; /* so that it is a sample */
  if (!marker || prof_i_opencl_marker_record(marker, queue) == PROF_BACKEND_OK) return marker;
  prof_i_opencl_marker_destroy(marker);
  return NULL;
}

int prof_i_opencl_external_event_create(prof_i_cl_queue queue, prof_i_cl_event event,
                                        prof_i_opencl_external_event **kept_out) {
  if (!prof_i_opencl.clRetainEvent)
    return prof_i_backend_fail_text(PROF_BACKEND_UNSUPPORTED, "the library has no clRetainEvent()");
  const int result = prof_i_opencl_marker_check(queue);
  if (result != PROF_BACKEND_OK) return result;
  prof_i_opencl_external_event *const kept = calloc(1, sizeof *kept);
  if (!kept) return prof_i_backend_fail_text(PROF_BACKEND_NO_MEMORY, "no memory for an event");
  const int32_t error = prof_i_opencl.clRetainEvent(event);
  if (error != 0) {
    free(kept);
    return prof_i_opencl_fail_call("clRetainEvent", error);
  }
  *kept = (prof_i_opencl_external_event){event, enqueue_own_marker(queue)};
  *kept_out = kept;
  return PROF_BACKEND_OK;
}

static int read_external_time(prof_i_cl_event event, uint32_t which, uint64_t *ns_out) {
  const int32_t error =
      prof_i_opencl.clGetEventProfilingInfo(event, which, sizeof *ns_out, ns_out, NULL);
  return error == 0 ? PROF_BACKEND_OK : prof_i_opencl_fail_call("clGetEventProfilingInfo", error);
}

int prof_i_opencl_external_event_times(prof_i_opencl_external_event *kept, uint64_t *start_ns_out,
                                       uint64_t *end_ns_out) {
  int32_t status = 0;
  const int32_t error = prof_i_opencl.clGetEventInfo(
      kept->event, PROF_I_CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL);
  if (error != 0) return prof_i_opencl_fail_call("clGetEventInfo", error);
  if (status < 0)
    return prof_i_backend_fail(PROF_BACKEND_VENDOR, "the command failed: status %d", status);
  if (status > PROF_I_CL_COMPLETE) return PROF_BACKEND_NOT_READY;
  if (kept->marker && prof_i_opencl_marker_query(kept->marker) == PROF_BACKEND_NOT_READY)
    return PROF_BACKEND_NOT_READY;
  const int result =
      read_external_time(kept->event, PROF_I_CL_PROFILING_COMMAND_START, start_ns_out);
  return result == PROF_BACKEND_OK
             ? read_external_time(kept->event, PROF_I_CL_PROFILING_COMMAND_END, end_ns_out)
             : result;
}

void prof_i_opencl_external_event_destroy(prof_i_opencl_external_event *kept) {
  prof_i_opencl.clReleaseEvent(kept->event);
  if (kept->marker) prof_i_opencl_marker_destroy(kept->marker);
  free(kept);
}
