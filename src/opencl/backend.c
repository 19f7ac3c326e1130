/* OpenCL's table. A forked child has the parent's handles but not the threads behind them, so all
   calls are refused there. Its meter is the memory in use. */
#include "internal.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- events of prof ---- */

/* An event of prof's: a marker on a command queue. Its cl_event keeps queue and context alive.
   So the event is released as soon as its time has been read, and only numbers are kept. Nothing
   here flushes the queue: that is the program's decision. Nothing about a queue is remembered
   from one call to the next, not even whether it records times, because its handle may be
   another queue's by then. A query costs 2 ns with PoCL, whose marker costs 560. */

typedef struct opencl_marker {
  prof_i_cl_event event; /* NULL: none is on its way */
  int32_t result;        /* without one: what a query says */
  int32_t time_error;    /* of what is past: why it has no time; 0: it has */
  uint64_t end_ns;
  /* from a different one on for each: so that few of them are samples at once */
  uint32_t use_count;
  prof_i_opencl_sample *sample; /* NULL: this is not a sample; only a few are */
} opencl_marker;

enum {
  SAMPLE_EVERY = 64, /* uses of a marker; of the first marker there is the first one */
  LINE_BYTES = 64    /* the collector and a scope's thread take turns with it */
};

/* NULL: no memory */
static opencl_marker *opencl_marker_create(void) {
  static uint32_t count;
  opencl_marker *const marker = aligned_alloc(LINE_BYTES, LINE_BYTES);
  _Static_assert(sizeof *marker <= LINE_BYTES, "it is one line of the cache");
  if (marker)
    *marker = (opencl_marker){.result = PROF_BACKEND_INVALID,
                              .use_count = __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED)};
  return marker;
}

static void release_marker_event(opencl_marker *marker) {
  if (marker->event) prof_i_opencl.clReleaseEvent(marker->event);
  marker->event = NULL;
  free(marker->sample);
  marker->sample = NULL;
}

static void opencl_marker_destroy(opencl_marker *marker) {
  release_marker_event(marker);
  free(marker);
}

/* ---- to the queue ---- */

/* UNSUPPORTED: the queue records no times. */
static int opencl_marker_check(prof_i_cl_queue queue) {
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

/* Puts it on the queue. UNSUPPORTED: the queue records no times. */
static int opencl_marker_record(opencl_marker *marker, prof_i_cl_queue queue) {
  release_marker_event(marker);
  marker->result = opencl_marker_check(queue);
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

static void read_marker_times(opencl_marker *marker) {
  uint64_t queued_ns = 0;
  marker->end_ns = 0;
  marker->time_error =
      read_marker_time(marker->event, PROF_I_CL_PROFILING_COMMAND_END, &marker->end_ns);
  if (marker->sample && marker->time_error == 0 &&
      read_marker_time(marker->event, PROF_I_CL_PROFILING_COMMAND_QUEUED, &queued_ns) == 0)
    prof_i_opencl_clock_add_sample(marker->sample, queued_ns, marker->end_ns);
}

/* OK: it is past; NOT_READY. */
static int opencl_marker_query(opencl_marker *marker) {
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

static int opencl_marker_time(opencl_marker *marker, uint64_t *ns_out) {
  const int result = opencl_marker_query(marker);
  if (result != PROF_BACKEND_OK) return result;
  if (marker->time_error != 0)
    return prof_i_opencl_fail_call("clGetEventProfilingInfo", marker->time_error);
  *ns_out = marker->end_ns;
  return PROF_BACKEND_OK;
}

/* ---- events of the program ---- */

/* An event of a command of the program, kept until the command is past: its START and END are
   the kernel's own. The first ones have a marker of prof's beside them, which shows whose clock
   these are (clock.c). */

typedef struct opencl_external_event opencl_external_event;

struct opencl_external_event {
  prof_i_cl_event event;
  opencl_marker *marker; /* NULL: the clock is known */
};

static opencl_marker *enqueue_own_marker(prof_i_cl_queue queue) {
  const prof_i_opencl_device *const device = prof_i_opencl_queue_device(queue);
  if (!device || prof_i_opencl_clock_has_sample((prof_i_opencl_clock *)&device->clock)) return NULL;
  opencl_marker *const marker = opencl_marker_create();
  if (marker) marker->use_count = 0; /* so that it is a sample */
  if (!marker || opencl_marker_record(marker, queue) == PROF_BACKEND_OK) return marker;
  opencl_marker_destroy(marker);
  return NULL;
}

/* Retains it; the queue is the one that its command is on. UNSUPPORTED: that records no times. Any
   thread. */
static int opencl_external_event_create(prof_i_cl_queue queue, prof_i_cl_event event,
                                        opencl_external_event **kept_out) {
  if (!prof_i_opencl.clRetainEvent)
    return prof_i_backend_fail_text(PROF_BACKEND_UNSUPPORTED, "the library has no clRetainEvent()");
  const int result = opencl_marker_check(queue);
  if (result != PROF_BACKEND_OK) return result;
  opencl_external_event *const kept = calloc(1, sizeof *kept);
  if (!kept) return prof_i_backend_fail_text(PROF_BACKEND_NO_MEMORY, "no memory for an event");
  const int32_t error = prof_i_opencl.clRetainEvent(event);
  if (error != 0) {
    free(kept);
    return prof_i_opencl_fail_call("clRetainEvent", error);
  }
  *kept = (opencl_external_event){event, enqueue_own_marker(queue)};
  *kept_out = kept;
  return PROF_BACKEND_OK;
}

static int read_external_time(prof_i_cl_event event, uint32_t which, uint64_t *ns_out) {
  const int32_t error =
      prof_i_opencl.clGetEventProfilingInfo(event, which, sizeof *ns_out, ns_out, NULL);
  return error == 0 ? PROF_BACKEND_OK : prof_i_opencl_fail_call("clGetEventProfilingInfo", error);
}

/* OK; NOT_READY; the command failed, or has no times. */
static int opencl_external_event_times(opencl_external_event *kept, uint64_t *start_ns_out,
                                       uint64_t *end_ns_out) {
  int32_t status = 0;
  const int32_t error = prof_i_opencl.clGetEventInfo(
      kept->event, PROF_I_CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL);
  if (error != 0) return prof_i_opencl_fail_call("clGetEventInfo", error);
  if (status < 0)
    return prof_i_backend_fail(PROF_BACKEND_VENDOR, "the command failed: status %d", status);
  if (status > PROF_I_CL_COMPLETE) return PROF_BACKEND_NOT_READY;
  if (kept->marker && opencl_marker_query(kept->marker) == PROF_BACKEND_NOT_READY)
    return PROF_BACKEND_NOT_READY;
  const int result =
      read_external_time(kept->event, PROF_I_CL_PROFILING_COMMAND_START, start_ns_out);
  return result == PROF_BACKEND_OK
             ? read_external_time(kept->event, PROF_I_CL_PROFILING_COMMAND_END, end_ns_out)
             : result;
}

static void opencl_external_event_destroy(opencl_external_event *kept) {
  prof_i_opencl.clReleaseEvent(kept->event);
  if (kept->marker) opencl_marker_destroy(kept->marker);
  free(kept);
}

/* ---- the table ---- */

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
  *event_out = opencl_marker_create();
  return *event_out ? PROF_BACKEND_OK
                    : prof_i_backend_fail_text(PROF_BACKEND_NO_MEMORY, "no memory for an event");
}

static int opencl_event_record(prof_backend_self *self, uint64_t stream, void **event) {
  if (prof_i_vendor_is_forked(self)) return refuse_opencl_in_child();
  prof_i_cl_queue queue = queue_of_stream(stream);
  return queue ? opencl_marker_record(*event, queue) : PROF_BACKEND_INVALID;
}

static int opencl_event_query(prof_backend_self *self, void *event) {
  return prof_i_vendor_is_forked(self) ? refuse_opencl_in_child() : opencl_marker_query(event);
}

static int opencl_event_time(prof_backend_self *self, void *event, uint64_t *ns_out) {
  return prof_i_vendor_is_forked(self) ? refuse_opencl_in_child()
                                       : opencl_marker_time(event, ns_out);
}

static void opencl_event_destroy(prof_backend_self *self, void *event) {
  if (!prof_i_vendor_is_forked(self)) opencl_marker_destroy(event);
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
  return opencl_external_event_create(queue, event, (opencl_external_event **)kept_out);
}

static int opencl_own_times(prof_backend_self *self, void *kept, uint64_t *start_ns_out,
                            uint64_t *end_ns_out) {
  return prof_i_vendor_is_forked(self)
             ? refuse_opencl_in_child()
             : opencl_external_event_times(kept, start_ns_out, end_ns_out);
}

static void opencl_own_let_go(prof_backend_self *self, void *kept) {
  if (!prof_i_vendor_is_forked(self)) opencl_external_event_destroy(kept);
}

/* ---- meters ---- */

/* Meters of memory in use, for listed devices with cl_amd_device_attribute_query: only this
   extension reports free memory. NO_DEVICE: no meter has this number. */
enum { KIB = 1024, LEAST_US = 1000, EXTENSIONS_BYTES = 16384 };

static const char memory_extension[] = "cl_amd_device_attribute_query";

static bool read_meter_info(const prof_i_opencl_device *device, uint32_t what, void *to,
                            size_t bytes) {
  return prof_i_opencl.clGetDeviceInfo(device->id, what, bytes, to, NULL) == 0;
}

/* The extensions are names separated by spaces. On a device without the extension, the number of
   the query may mean something else. */
static bool has_extension(const prof_i_opencl_device *device) {
  static char words[EXTENSIONS_BYTES]; /* one thread at a time asks for meters */
  const size_t bytes = sizeof memory_extension - 1;
  memset(words, 0, sizeof words);
  if (!read_meter_info(device, PROF_I_CL_DEVICE_EXTENSIONS, words, sizeof words - 1)) return false;
  for (const char *at = words; (at = strstr(at, memory_extension)) != NULL; at += bytes)
    if ((at == words || at[-1] == ' ') && (at[bytes] == ' ' || at[bytes] == '\0')) return true;
  return false;
}

/* The driver gives one or two numbers: all free memory, and the largest free block. */
static bool read_used_bytes(const prof_i_opencl_device *device, int64_t *used_out) {
  size_t free_kib[2] = {0};
  uint64_t all = 0;
  if (!read_meter_info(device, PROF_I_CL_DEVICE_GLOBAL_MEM_SIZE, &all, sizeof all) ||
      !read_meter_info(device, PROF_I_CL_DEVICE_GLOBAL_FREE_MEMORY_AMD, free_kib, sizeof free_kib))
    return false;
  if (all > INT64_MAX || free_kib[0] > all / KIB) return false; /* nonsense */
  *used_out = (int64_t)(all - (uint64_t)free_kib[0] * KIB);
  return true;
}

static int opencl_meters_metric(uint32_t number, prof_backend_metric *out) {
  const prof_i_opencl_device *device;
  uint32_t met = 0;
  for (uint32_t i = 0; (device = prof_i_opencl_device_at(i)) != NULL; i++) {
    int64_t unused;
    if (!has_extension(device) || !read_used_bytes(device, &unused) || met++ != number) continue;
    prof_backend_metric metric = {.size = out->size, .device = i, .least_us = LEAST_US, .scale = 1};
    snprintf(metric.name, sizeof metric.name, "memory used");
    snprintf(metric.unit, sizeof metric.unit, "B");
    return prof_i_vendor_copy_metric(out, &metric);
  }
  return prof_i_backend_fail(PROF_BACKEND_NO_DEVICE, "no device %u reports its free memory",
                             number);
}

static int opencl_meters_sample(const prof_backend_metric *metrics, uint32_t count,
                                int64_t *values_out, uint64_t *known_out) {
  *known_out = 0;
  for (uint32_t i = 0; i < count; i++) {
    const prof_i_opencl_device *const device = prof_i_opencl_device_at(metrics[i].device);
    if (device && read_used_bytes(device, &values_out[i])) *known_out |= UINT64_C(1) << i;
  }
  return PROF_BACKEND_OK;
}

static int opencl_metric(prof_backend_self *self, uint32_t number, prof_backend_metric *out) {
  return prof_i_vendor_is_forked(self) ? refuse_opencl_in_child()
                                       : opencl_meters_metric(number, out);
}

static int opencl_sample(prof_backend_self *self, const prof_backend_metric *metrics,
                         uint32_t count, int64_t *values_out, uint64_t *known_out) {
  return prof_i_vendor_is_forked(self)
             ? refuse_opencl_in_child()
             : opencl_meters_sample(metrics, count, values_out, known_out);
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
