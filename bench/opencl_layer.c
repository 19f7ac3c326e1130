/* usage: opencl_layer LIBPROF_OPENCL

   What the layer adds to an enqueue. The program runs itself anew with the layer in front of
   OpenCL. There its call alternates with the driver's own function, which a queue's first word
   leads to, past loader and layer. The figure is the difference of the two in the same round. It
   runs on the machine's OpenCL device, or on PoCL if there is no other. */
#define _GNU_SOURCE
#include "frame.h"

#include <prof/profiler.h>
#include <prof/trace.h>

#if !__has_include(<CL/cl_icd.h>)

int main(void) {
  puts("skip: <CL/cl_icd.h> is missing: apt-get install opencl-headers");
  return 0;
}

#else

#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <CL/cl_icd.h>
#include <dlfcn.h>

enum { BATCH = 512, ROUNDS = 200, RING_BYTES = 4 << 20, ADDED_NS_MAX = 500 };

#define FUNCTIONS(X)                    \
  X(clGetPlatformIDs)                   \
  X(clGetDeviceIDs)                     \
  X(clGetDeviceInfo)                    \
  X(clCreateContext)                    \
  X(clCreateCommandQueueWithProperties) \
  X(clCreateProgramWithSource)          \
  X(clCreateUserEvent)                  \
  X(clSetUserEventStatus)               \
  X(clReleaseEvent)                     \
  X(clEnqueueMarkerWithWaitList)        \
  X(clBuildProgram)                     \
  X(clCreateKernel)                     \
  X(clCreateBuffer)                     \
  X(clSetKernelArg)                     \
  X(clEnqueueNDRangeKernel)             \
  X(clFinish)
static struct {
#define MEMBER(name) __typeof__(&(name)) name;
  FUNCTIONS(MEMBER)
} cl;
static cl_context context;
static cl_command_queue queue;
static cl_kernel kernel;

/* NULL: a queue and a kernel are there. */
static const char *open_all(char *name, size_t room) {
  static const cl_queue_properties profiling[] = {CL_QUEUE_PROPERTIES, CL_QUEUE_PROFILING_ENABLE,
                                                  0};
  const char *text = "kernel void nothing(global uint *out) { out[0] = 1; }";
  cl_platform_id platform;
  cl_device_id id;
  cl_int error = 0;
  void *const library = dlopen("libOpenCL.so.1", RTLD_NOW);
  if (!library)
    return "libOpenCL.so.1 is missing: apt-get install ocl-icd-libopencl1 pocl-opencl-icd";
#define FIND(name)                            \
  *(void **)&cl.name = dlsym(library, #name); \
  if (!cl.name) return "libOpenCL.so.1 is older than OpenCL 2.0";
  FUNCTIONS(FIND)
  if (cl.clGetPlatformIDs(1, &platform, NULL) != CL_SUCCESS ||
      cl.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &id, NULL) != CL_SUCCESS)
    return "there is no OpenCL device: apt-get install pocl-opencl-icd";
  cl.clGetDeviceInfo(id, CL_DEVICE_NAME, room, name, NULL);
  context = cl.clCreateContext(NULL, 1, &id, NULL, NULL, NULL);
  const cl_program program = cl.clCreateProgramWithSource(context, 1, &text, NULL, NULL);
  queue = cl.clCreateCommandQueueWithProperties(context, id, profiling, NULL);
  if (!queue || cl.clBuildProgram(program, 1, &id, "", NULL, NULL) != CL_SUCCESS)
    return "the kernel cannot be built";
  kernel = cl.clCreateKernel(program, "nothing", NULL);
  const cl_mem out = cl.clCreateBuffer(context, CL_MEM_READ_WRITE, 64, NULL, &error);
  return error == CL_SUCCESS &&
                 cl.clSetKernelArg(kernel, 0, sizeof out, (const void *)&out) == CL_SUCCESS
             ? NULL
             : "there is no buffer";
}

typedef cl_int (*enqueue)(cl_command_queue, cl_kernel, cl_uint, const size_t *, const size_t *,
                          const size_t *, cl_uint, const cl_event *, cl_event *);

/* ns an enqueue, while the device waits behind a gate: what it costs who enqueues. The gate, the
   kernels and the end are not counted. */
static double batch(enqueue call) {
  const size_t one = 1;
  cl_int error;
  const cl_event gate = cl.clCreateUserEvent(context, &error);
  FRAME_REQUIRE(
      error == CL_SUCCESS && cl.clEnqueueMarkerWithWaitList(queue, 1, &gate, NULL) == CL_SUCCESS,
      "no gate can be put on the queue");
  const double begun = frame_now_ns();
  for (int i = 0; i < BATCH; i++) call(queue, kernel, 1, NULL, &one, &one, 0, NULL, NULL);
  const double ns = (frame_now_ns() - begun) / BATCH;
  cl.clSetUserEventStatus(gate, CL_COMPLETE);
  cl.clFinish(queue);
  cl.clReleaseEvent(gate);
  return ns;
}

static frame_case bare, layered, added;

/* By round: with the layer less without. */
static void run(unsigned rounds) {
  for (unsigned r = 0; r < rounds; r++) {
    const enqueue drivers =
        (*(const cl_icd_dispatch *const *)(const void *)queue)->clEnqueueNDRangeKernel;
    for (unsigned i = 0; i < 2; i++) {
      frame_case *const c = (i + r) % 2 ? &layered : &bare;
      c->ns[r] = batch(c == &bare ? drivers : cl.clEnqueueNDRangeKernel);
    }
    added.ns[r] = layered.ns[r] - bare.ns[r];
    bare.is_calm[r] = added.is_calm[r] = true;
  }
}

static void measure(const char *what, uint32_t level, unsigned rounds) {
  const prof_options ring = {
      .size = sizeof ring, .level = level, .cap_bytes = RING_BYTES, .policy = PROF_POLICY_RING};
  prof_trace *trace = NULL;
  prof_trace_info info = {.size = sizeof info};
  if (level) FRAME_REQUIRE(prof_start_with(&ring) == PROF_OK, "%s", prof_last_error());
  run(rounds);
  const frame_spread spread = frame_ns(&added, rounds);
  frame_promise(what, spread.median <= ADDED_NS_MAX, "500 ns", "%.1f ns (%.1f-%.1f)", spread.median,
                spread.low, spread.high);
  if (!level) return;
  prof_stop();
  FRAME_REQUIRE(prof_get(&trace) == PROF_OK && prof_trace_info_get(trace, &info) == PROF_OK, "%s",
                prof_last_error());
  const uint64_t lost = info.lost_count[PROF_LOSS_DEVICE_FULL] +
                        info.lost_count[PROF_LOSS_DEVICE_LATE] +
                        info.lost_count[PROF_LOSS_DEVICE_TIMES];
  frame_promise("its kernels that were lost", lost == 0, "0", "%llu", (unsigned long long)lost);
  prof_trace_destroy(trace);
}

int main(int argc, char **argv) {
  const unsigned rounds = frame_rounds(ROUNDS);
  char name[128] = "";
  if (argc == 2 && !getenv("OPENCL_LAYERS")) {
    setenv("OPENCL_LAYERS", argv[1], 1);
    execv("/proc/self/exe", argv);
  }
  FRAME_REQUIRE(argc == 2, "usage: opencl_layer LIBPROF_OPENCL");
  frame_begin("opencl_layer");
  const char *const missing = open_all(name, sizeof name);
  if (missing) {
    printf("skip: %s\n", missing);
    return 0;
  }
  FRAME_REQUIRE(dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD), "the loader has not opened %s", argv[1]);
  frame_note("on %s; %u rounds of %d enqueues behind a gate", name, rounds, BATCH);
  run(rounds / 4); /* warm */
  measure("added to an enqueue: nothing is recorded", 0, rounds);
  frame_figure("the driver's own enqueue", "%.1f ns", frame_ns(&bare, rounds).median);
  measure("added to an enqueue: level 1, its kernel", 1, rounds);
  measure("added to an enqueue: level 2, its kernel and its call", 2, rounds);
  return 0;
}

#endif
