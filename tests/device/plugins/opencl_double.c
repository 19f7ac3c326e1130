/* A library of OpenCL's shape, for what no real one does on demand. PROF_TEST_OPENCL says how it
   behaves: words of the list below. Its commands are done as soon as they are enqueued. Its
   device's clock is not the host's. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../../src/opencl/api.h"

enum { LIE_NS = 777000000, QUEUES_MAX = 8 };
#define OFFSET_NS (UINT64_C(1) << 50)

struct prof_i_cl_queue_object {
  uint64_t properties;
};
struct prof_i_cl_event_object {
  uint64_t queued_ns, end_ns;
  int32_t status;
};

static char platform, device;

/* no_platform, no_device, old (OpenCL 1.1), host_clock (its times are CLOCK_REALTIME's), timer (can
   be read), timer_lies, timer_stale, fails (commands do), no_times, amd (says what of its memory is
   free), amd_lies */
static int is(const char *word) {
  const char *const mode = getenv("PROF_TEST_OPENCL");
  return mode && strcmp(mode, word) == 0;
}

static uint64_t read_clock(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t device_ns(void) {
  return is("host_clock") ? read_clock(CLOCK_REALTIME) : read_clock(CLOCK_MONOTONIC) + OFFSET_NS;
}

#define DECLARE(need, name, arguments) int32_t name arguments;
PROF_I_CL_FUNCTIONS(DECLARE)
#undef DECLARE
prof_i_cl_queue double_queue(uint64_t properties);
int double_event_count(void);

static int events;
int double_event_count(void) { return __atomic_load_n(&events, __ATOMIC_RELAXED); }

prof_i_cl_queue double_queue(uint64_t properties) {
  static struct prof_i_cl_queue_object queues[QUEUES_MAX];
  static int count;
  if (count == QUEUES_MAX) abort();
  queues[count].properties = properties;
  return &queues[count++];
}

static int32_t give(size_t room, void *to, size_t *bytes_out, const void *value, size_t bytes) {
  if (bytes_out) *bytes_out = bytes;
  if (to && room < bytes) return PROF_I_CL_INVALID_VALUE;
  if (to) memcpy(to, value, bytes);
  return 0;
}
#define GIVE(value) give(room, value_out, bytes_out, &(value), sizeof(value))
#define GIVE_TEXT(text) give(room, value_out, bytes_out, (text), sizeof(text))

int32_t clGetPlatformIDs(uint32_t room, prof_i_cl_platform *platforms_out, uint32_t *count_out) {
  if (is("no_platform")) return PROF_I_CL_PLATFORM_NOT_FOUND_KHR;
  if (room) platforms_out[0] = (prof_i_cl_platform)(void *)&platform;
  if (count_out) *count_out = 1;
  return 0;
}

int32_t clGetDeviceIDs(prof_i_cl_platform of, uint64_t types, uint32_t room,
                       prof_i_cl_device *devices_out, uint32_t *count_out) {
  (void)of, (void)types;
  if (is("no_device")) return PROF_I_CL_DEVICE_NOT_FOUND;
  if (room) devices_out[0] = (prof_i_cl_device)(void *)&device;
  if (count_out) *count_out = 1;
  return 0;
}

int32_t clGetDeviceInfo(prof_i_cl_device of, uint32_t what, size_t room, void *value_out,
                        size_t *bytes_out) {
  const size_t resolution_ns = 1, free_kib[] = {is("amd_lies") ? SIZE_MAX : 3 << 20, 1 << 20};
  const uint64_t memory_bytes = UINT64_C(8) << 30;
  (void)of;
  switch (what) {
    case PROF_I_CL_DEVICE_VERSION:
      return is("old") ? GIVE_TEXT("OpenCL 1.1 double") : GIVE_TEXT("OpenCL 3.0 double");
    case PROF_I_CL_DEVICE_NAME:
      return GIVE_TEXT("a double");
    case PROF_I_CL_DEVICE_PROFILING_TIMER_RESOLUTION:
      return GIVE(resolution_ns);
    case PROF_I_CL_DEVICE_GLOBAL_MEM_SIZE:
      return GIVE(memory_bytes);
    case PROF_I_CL_DEVICE_EXTENSIONS:
      return is("amd") || is("amd_lies")
                 ? GIVE_TEXT("cl_khr_fp64 cl_amd_device_attribute_query cl_khr_icd")
                 : GIVE_TEXT("cl_amd_device_attribute_query_more");
    case PROF_I_CL_DEVICE_GLOBAL_FREE_MEMORY_AMD:
      return GIVE(free_kib);
    default:
      return PROF_I_CL_INVALID_VALUE;
  }
}

int32_t clGetCommandQueueInfo(prof_i_cl_queue queue, uint32_t what, size_t room, void *value_out,
                              size_t *bytes_out) {
  const void *const of = &device;
  switch (what) {
    case PROF_I_CL_QUEUE_DEVICE:
      return GIVE(of);
    case PROF_I_CL_QUEUE_PROPERTIES:
      return GIVE(queue->properties);
    default:
      return PROF_I_CL_INVALID_VALUE;
  }
}

int32_t clGetEventInfo(prof_i_cl_event event, uint32_t what, size_t room, void *value_out,
                       size_t *bytes_out) {
  return what == PROF_I_CL_EVENT_COMMAND_EXECUTION_STATUS ? GIVE(event->status)
                                                          : PROF_I_CL_INVALID_VALUE;
}

int32_t clGetEventProfilingInfo(prof_i_cl_event event, uint32_t what, size_t room, void *value_out,
                                size_t *bytes_out) {
  if (is("no_times")) return PROF_I_CL_PROFILING_INFO_NOT_AVAILABLE;
  return what == PROF_I_CL_PROFILING_COMMAND_QUEUED ? GIVE(event->queued_ns) : GIVE(event->end_ns);
}

int32_t clReleaseEvent(prof_i_cl_event event) {
  __atomic_fetch_sub(&events, 1, __ATOMIC_RELAXED);
  free(event);
  return 0;
}

static int32_t mark(prof_i_cl_event *event_out) {
  *event_out = calloc(1, sizeof **event_out);
  if (!*event_out) return PROF_I_CL_OUT_OF_HOST_MEMORY;
  __atomic_fetch_add(&events, 1, __ATOMIC_RELAXED);
  **event_out =
      (struct prof_i_cl_event_object){.queued_ns = device_ns(), .status = is("fails") ? -14 : 0};
  (*event_out)->end_ns = device_ns();
  return 0;
}

int32_t clEnqueueMarkerWithWaitList(prof_i_cl_queue queue, uint32_t count,
                                    const prof_i_cl_event *of, prof_i_cl_event *event_out) {
  (void)queue, (void)count, (void)of;
  if (is("old")) abort(); /* its table of functions ends before this one */
  return mark(event_out);
}

int32_t clEnqueueMarker(prof_i_cl_queue queue, prof_i_cl_event *event_out) {
  (void)queue;
  return mark(event_out);
}

int32_t clGetDeviceAndHostTimer(prof_i_cl_device of, uint64_t *device_ns_out,
                                uint64_t *host_ns_out) {
  static uint64_t first_ns;
  (void)of;
  if (is("old")) abort();
  if (!is("timer") && !is("timer_lies") && !is("timer_stale")) return PROF_I_CL_INVALID_OPERATION;
  *host_ns_out = read_clock(CLOCK_MONOTONIC);
  if (!first_ns) first_ns = *host_ns_out - 20000000;
  if (is("timer_stale")) *host_ns_out = first_ns;
  *device_ns_out = device_ns() + (is("timer_lies") ? LIE_NS : 0);
  return 0;
}
