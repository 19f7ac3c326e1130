/* What a scope on a device's stream costs the host. It is compared with the vendor's two event
   records that it uses, in the same rounds. Switched off, it is compared with a host scope switched
   off. Also: What a million of them leave in memory, and what their times may be wrong by. It runs
   on the machine's OpenCL device, or on PoCL if there is no other. */
#define _GNU_SOURCE
#include "frame.h"

#include <prof/profiler.h>
#include <prof/trace.h>

#if !__has_include(<CL/cl.h>)

int main(void) {
  puts("skip: <CL/cl.h> is missing: apt-get install opencl-headers");
  return 0;
}

#else

#define CL_TARGET_OPENCL_VERSION 200
#include <CL/cl.h>
#include <dlfcn.h>

enum {
  BATCH = 512,
  ROUNDS = 200,
  OFF_BATCH = 1 << 16,
  BETWEEN_WAITS = 256,
  MANY = 1000000,
  RING_BYTES = 4 << 20,
  FILLS_RING = 100000,
  GATED_BATCH = BETWEEN_WAITS - 1 /* no wait in it */
};

#define FUNCTIONS(X)                    \
  X(clGetPlatformIDs)                   \
  X(clGetDeviceIDs)                     \
  X(clGetDeviceInfo)                    \
  X(clCreateContext)                    \
  X(clCreateCommandQueueWithProperties) \
  X(clEnqueueMarkerWithWaitList)        \
  X(clReleaseEvent)                     \
  X(clFinish)                           \
  X(clCreateUserEvent)                  \
  X(clSetUserEventStatus)
static struct {
#define MEMBER(name) __typeof__(&(name)) name;
  FUNCTIONS(MEMBER)
} cl;
static cl_context context;
static cl_command_queue queue;
static const prof_device device = {PROF_DEVICE_OPENCL, 0};

/* Of the first device. False: there is none. */
static bool open_queue(char *name, size_t room) {
  static const cl_queue_properties profiling[] = {CL_QUEUE_PROPERTIES, CL_QUEUE_PROFILING_ENABLE,
                                                  0};
  cl_platform_id platform;
  cl_device_id id;
  void *const library = dlopen("libOpenCL.so.1", RTLD_NOW);
  if (!library) return false;
#define FIND(name)                            \
  *(void **)&cl.name = dlsym(library, #name); \
  if (!cl.name) return false;
  FUNCTIONS(FIND)
  if (cl.clGetPlatformIDs(1, &platform, NULL) != CL_SUCCESS ||
      cl.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &id, NULL) != CL_SUCCESS)
    return false;
  cl.clGetDeviceInfo(id, CL_DEVICE_NAME, room, name, NULL);
  context = cl.clCreateContext(NULL, 1, &id, NULL, NULL, NULL);
  queue = context ? cl.clCreateCommandQueueWithProperties(context, id, profiling, NULL) : NULL;
  return queue != NULL;
}

/* ---- recording ---- */

/* All batches wait for the device as often. */
static inline void wait_at(uint64_t i) {
  if (i % BETWEEN_WAITS == BETWEEN_WAITS - 1) cl.clFinish(queue);
}

FRAME_LOOP void two_markers(uint64_t count) {
  cl_event events[2];
  for (uint64_t i = 0; i < count; i++) {
    cl.clEnqueueMarkerWithWaitList(queue, 0, NULL, &events[0]);
    FRAME_WORK();
    cl.clEnqueueMarkerWithWaitList(queue, 0, NULL, &events[1]);
    cl.clReleaseEvent(events[0]);
    cl.clReleaseEvent(events[1]);
    wait_at(i);
  }
}

FRAME_LOOP void scopes(uint64_t count) {
  for (uint64_t i = 0; i < count; i++) {
    WITH_GPU_PROFILER(device, queue, "kernel", "bench", PROF_NO_ARGS, { FRAME_WORK(); });
    wait_at(i);
  }
}

static frame_case cases[] = {{.run = two_markers, .count = BATCH}, {.run = scopes, .count = BATCH}};

/* ---- what it costs who puts them there ---- */

/* ns each. The device waits behind a gate meanwhile. So neither it nor the collector, which reads
   what it has done, takes the cores that the caller's time is measured on. The gate, and what
   follows it, are not counted. */
static double behind_gate(void (*run)(uint64_t count)) {
  cl_int error;
  cl_event gate = cl.clCreateUserEvent(context, &error);
  FRAME_REQUIRE(
      error == CL_SUCCESS && cl.clEnqueueMarkerWithWaitList(queue, 1, &gate, NULL) == CL_SUCCESS,
      "no gate can be put on the queue");
  const double begun = frame_now_ns();
  run(GATED_BATCH);
  const double ns = (frame_now_ns() - begun) / GATED_BATCH;
  cl.clSetUserEventStatus(gate, CL_COMPLETE);
  cl.clFinish(queue);
  cl.clReleaseEvent(gate);
  return ns;
}

static frame_case gated[2];

static void run_gated(unsigned rounds) {
  for (unsigned r = 0; r < rounds; r++) {
    for (unsigned i = 0; i < 2; i++) {
      const unsigned which = (i + r) % 2;
      gated[which].ns[r] = behind_gate(cases[which].run);
      gated[which].is_calm[r] = true;
    }
  }
}

/* ---- off ---- */

FRAME_LOOP void host_off(uint64_t count) {
  for (uint64_t i = 0; i < count; i++)
    WITH_BASE_PROFILER(device, "off", "bench", PROF_NO_ARGS, { FRAME_WORK(); });
}
FRAME_LOOP void device_off(uint64_t count) {
  for (uint64_t i = 0; i < count; i++)
    WITH_GPU_PROFILER(device, queue, "off", "bench", PROF_NO_ARGS, { FRAME_WORK(); });
}

static frame_case off_cases[] = {{.run = host_off, .count = OFF_BATCH},
                                 {.run = device_off, .count = OFF_BATCH}};

/* ---- memory, times ---- */

static uint64_t resident_kb(void) {
  unsigned long pages = 0;
  FILE *const file = fopen("/proc/self/statm", "r");
  if (!file || fscanf(file, "%*s %lu", &pages) != 1) pages = 0;
  if (file) fclose(file);
  return pages * (uint64_t)sysconf(_SC_PAGESIZE) / 1024;
}

static uint64_t sum_of_lost_sides(const uint64_t *lost_count) {
  return lost_count[PROF_LOSS_DEVICE_FULL] + lost_count[PROF_LOSS_DEVICE_LATE] +
         lost_count[PROF_LOSS_DEVICE_TIMES];
}

static uint64_t lost_sides(void) {
  prof_health health = {.size = sizeof health};
  FRAME_REQUIRE(prof_health_get(&health) == PROF_OK, "%s", prof_last_error());
  return sum_of_lost_sides(health.lost_count);
}

static prof_trace_device known(uint64_t *lost_out) {
  prof_trace *trace = NULL;
  prof_trace_info info = {.size = sizeof info};
  prof_trace_device about = {.size = sizeof about};
  FRAME_REQUIRE(prof_get(&trace) == PROF_OK && prof_trace_info_get(trace, &info) == PROF_OK &&
                    prof_trace_device_get(trace, 0, &about) == PROF_OK,
                "%s", prof_last_error());
  prof_trace_destroy(trace);
  *lost_out = sum_of_lost_sides(info.lost_count);
  return about;
}

static void measure_many(void) {
  uint64_t lost;
  const uint64_t many = frame_is_quick() ? MANY / 10 : MANY;
  scopes(FILLS_RING);
  const uint64_t before = resident_kb();
  scopes(many);
  const uint64_t after = resident_kb(), grown = after > before ? after - before : 0;
  const prof_trace_device about = known(&lost);
  char what[64];
  snprintf(what, sizeof what, "%llu scopes on a stream: memory", (unsigned long long)many);
  frame_promise(what, grown <= 1024, "1024 KiB", "%llu KiB more", (unsigned long long)grown);
  frame_promise("their device's sides that were lost", lost == 0, "0", "%llu of %llu",
                (unsigned long long)lost, (unsigned long long)(about.scope_count + lost));
  frame_promise("what a time may be wrong by, the worst of all", about.clock_error_ns < 5000,
                "5.00 us", "%.2f us, clock %s", (double)about.clock_error_ns / 1e3,
                about.is_clock_read ? "read" : "narrowed down");
  frame_promise("scopes that the clocks put before their launch",
                about.early_count * 1000 <= about.scope_count, "1 in 1000",
                "%llu, by %.2f us at most", (unsigned long long)about.early_count,
                (double)about.early_ns / 1e3);
}

/* A scope whose device's side is dropped puts no markers, and costs a part: its time is no figure.
   Sides are dropped where the collector gets no processor. */
static void measure_scopes(unsigned rounds) {
  const char *const gated_name = "a scope on a stream, against those";
  const char *const beside_name = "the same beside the device and the collector, on these cores";
  static const char why[] =
      "%llu device sides were dropped meanwhile: the collector had no processor";
  run_gated(rounds / 4); /* warm */
  uint64_t before = lost_sides();
  run_gated(rounds);
  uint64_t lost = lost_sides() - before;
  frame_figure("two markers of the vendor's, and their release", "%.1f ns",
               frame_ns(&gated[0], rounds).median);
  if (lost)
    frame_unmeasured(gated_name, "1.20x", why, (unsigned long long)lost);
  else
    frame_promise_ratio(gated_name, &gated[1], &gated[0], rounds, 1.2);
  before = lost_sides();
  frame_run(cases, 2, rounds);
  lost = lost_sides() - before;
  const frame_spread beside = frame_calm_spread(&cases[1], &cases[0], rounds);
  if (lost)
    frame_unmeasured(beside_name, "-", why, (unsigned long long)lost);
  else
    frame_figure(beside_name, "%.2fx (%.2f-%.2f)", beside.median, beside.low, beside.high);
}

int main(void) {
  const prof_options ring = {
      .size = sizeof ring, .level = 1, .cap_bytes = RING_BYTES, .policy = PROF_POLICY_RING};
  const unsigned rounds = frame_rounds(ROUNDS);
  char name[128] = "";
  frame_begin("device");
  if (!open_queue(name, sizeof name)) {
    puts("skip: there is no OpenCL device: apt-get install ocl-icd-libopencl1 pocl-opencl-icd");
    return 0;
  }
  frame_note("on %s; %u rounds of %d scopes, a wait for the device at each %dth", name, rounds,
             BATCH, BETWEEN_WAITS);
  FRAME_REQUIRE(prof_start_with(&ring) == PROF_OK, "%s", prof_last_error());
  measure_scopes(rounds);
  measure_many();
  prof_stop();
  frame_run(off_cases, 2, rounds);
  frame_promise_ratio("off: a scope on a stream, against one of the host's", &off_cases[1],
                      &off_cases[0], rounds, 1.1);
  return 0;
}

#endif
