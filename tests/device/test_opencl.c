/* WITH_GPU_PROFILER on a real OpenCL, whichever the machine has: PoCL where there is no other. The
   truth is what the kernels' own events say. */
#define _GNU_SOURCE
#include <stdio.h>

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WITH_TSAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define WITH_TSAN 1
#endif

#if defined(WITH_TSAN)

int main(void) {
  puts("skip: ThreadSanitizer does not see how an OpenCL driver's threads wait for each other");
  return 77;
}

#elif !__has_include(<CL/cl.h>)

int main(void) {
  puts("skip: <CL/cl.h> is missing: apt-get install opencl-headers");
  return 77;
}

#else

#include <prof/device.h>
#include <prof/op.h>
#include <prof/profiler.h>
#include <prof/trace.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "alone.h"
#include "collector.h"
#include "hang_guard.h"
#include "opencl.h"
#include "told.h"

static const prof_device device = {PROF_DEVICE_OPENCL, 0};
static const cl_queue_properties profiling[] = {CL_QUEUE_PROPERTIES, CL_QUEUE_PROFILING_ENABLE, 0};
static const cl_queue_properties out_of_order[] = {
    CL_QUEUE_PROPERTIES, CL_QUEUE_PROFILING_ENABLE | CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, 0};
static const cl_queue_properties plain[] = {0};

static void open_opencl(void) {
  static const char source[] =
      "kernel void spin(global uint *out, uint rounds) { uint x = get_global_id(0); for (uint i = "
      "0; i < rounds; i++) x = x * 1664525u + 1013904223u; out[get_global_id(0)] = x; }";
  const char *text = source;
  cl_int error;
  assert_null(find_opencl());
  context = cl.clCreateContext(NULL, 1, &device_id, NULL, NULL, &error);
  assert_int_equal(error, CL_SUCCESS);
  program = cl.clCreateProgramWithSource(context, 1, &text, NULL, &error);
  assert_int_equal(error, CL_SUCCESS);
  assert_int_equal(cl.clBuildProgram(program, 1, &device_id, "", NULL, NULL), CL_SUCCESS);
}

static cl_command_queue make_queue(const cl_queue_properties *properties) {
  cl_int error;
  const cl_command_queue queue =
      cl.clCreateCommandQueueWithProperties(context, device_id, properties, &error);
  assert_int_equal(error, CL_SUCCESS);
  return queue;
}

/* A kernel belongs to one thread at a time. */
typedef struct work {
  cl_kernel kernel;
  cl_mem out;
} work;

static work make_work(cl_uint rounds) {
  cl_int errors[2];
  work w = {
      .kernel = cl.clCreateKernel(program, "spin", &errors[0]),
      .out = cl.clCreateBuffer(context, CL_MEM_READ_WRITE, 64 * sizeof(cl_uint), NULL, &errors[1])};
  assert_int_equal(errors[0], CL_SUCCESS);
  assert_int_equal(errors[1], CL_SUCCESS);
  assert_int_equal(cl.clSetKernelArg(w.kernel, 0, sizeof(cl_mem), (void *)&w.out), CL_SUCCESS);
  assert_int_equal(cl.clSetKernelArg(w.kernel, 1, sizeof rounds, &rounds), CL_SUCCESS);
  return w;
}

static void drop_work(work w) {
  cl.clReleaseKernel(w.kernel);
  cl.clReleaseMemObject(w.out);
}

static void run(cl_command_queue queue, work w, cl_event *event_out) {
  const size_t items = 4;
  assert_int_equal(
      cl.clEnqueueNDRangeKernel(queue, w.kernel, 1, NULL, &items, NULL, 0, NULL, event_out),
      CL_SUCCESS);
}

/* Commands that are enqueued from now on wait until the gate is opened. */
static cl_event shut_gate(cl_command_queue queue) {
  cl_int error;
  const cl_event gate = cl.clCreateUserEvent(context, &error);
  assert_int_equal(error, CL_SUCCESS);
  assert_int_equal(cl.clEnqueueMarkerWithWaitList(queue, 1, &gate, NULL), CL_SUCCESS);
  return gate;
}

static void open_gate(cl_event gate) {
  assert_int_equal(cl.clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
  cl.clReleaseEvent(gate);
}

static cl_uint holders_of(cl_command_queue queue) {
  cl_uint count = 0;
  assert_int_equal(
      cl.clGetCommandQueueInfo(queue, CL_QUEUE_REFERENCE_COUNT, sizeof count, &count, NULL),
      CL_SUCCESS);
  return count;
}

/* The driver's own threads let go a little later. */
static cl_uint soon_holders_of(cl_command_queue queue, cl_uint expected) {
  WAIT_WHILE(holders_of(queue) != expected);
  return holders_of(queue);
}

static void put_marker(cl_command_queue queue) {
  assert_int_equal(cl.clEnqueueMarkerWithWaitList(queue, 0, NULL, NULL), CL_SUCCESS);
}

/* ---- what was recorded ---- */

enum { SCOPES_MAX = 4096 };

typedef struct sums {
  uint64_t host, on_device, streams, late, times, lost;
  prof_trace_device device; /* the first; its name is "" where there is none */
  struct {
    uint64_t from_ns, to_ns;         /* CLOCK_MONOTONIC */
    uint64_t raw_from_ns, raw_to_ns; /* as the driver said them */
  } scopes[SCOPES_MAX];              /* of the device: by stream, then in their order */
} sums;

static sums *take(void) {
  static sums s;
  static prof_event event;
  prof_trace *trace = NULL;
  prof_cursor *cursor = NULL;
  prof_trace_info info = {.size = sizeof info};
  memset(&s, 0, sizeof s);
  assert_int_equal(prof_get(&trace), PROF_OK);
  assert_int_equal(prof_trace_info_get(trace, &info), PROF_OK);
  assert_int_equal(prof_cursor_create(trace, &cursor), PROF_OK);
  s.late = info.lost_count[PROF_LOSS_DEVICE_LATE];
  s.times = info.lost_count[PROF_LOSS_DEVICE_TIMES];
  for (int i = 0; i < PROF_LOSS_COUNT; i++) s.lost += info.lost_count[i];
  for (uint32_t i = 0; i < info.thread_count; i++) {
    prof_trace_thread thread = {.size = sizeof thread};
    assert_int_equal(prof_trace_thread_get(trace, i, &thread), PROF_OK);
    s.streams += thread.is_stream;
  }
  while (prof_cursor_next(cursor, &event) == 1) {
    prof_trace_thread thread = {.size = sizeof thread};
    assert_int_equal(prof_trace_thread_get(trace, event.thread, &thread), PROF_OK);
    s.host += !thread.is_stream;
    if (!thread.is_stream) continue;
    assert_true(s.on_device < SCOPES_MAX);
    assert_int_equal(thread.device.type, PROF_DEVICE_OPENCL);
    s.scopes[s.on_device].from_ns = info.start_ns + event.start_ns;
    s.scopes[s.on_device].to_ns = info.start_ns + event.start_ns + event.duration_ns;
    s.scopes[s.on_device].raw_from_ns = event.launch.device_start_ns;
    s.scopes[s.on_device++].raw_to_ns = event.launch.device_end_ns;
  }
  s.device.size = sizeof s.device;
  if (info.device_count > 0) assert_int_equal(prof_trace_device_get(trace, 0, &s.device), PROF_OK);
  prof_cursor_destroy(cursor);
  prof_trace_destroy(trace);
  return &s;
}

/* Until so many of the device's scopes are read, or lost for want of times. */
static sums *settle(uint64_t on_device) {
  for (int i = 0; i < 2000; i++) {
    sums *const s = take();
    if (s->on_device + s->times >= on_device) return s;
    usleep(5000);
  }
  const sums *const s = take();
  fail_msg(
      "of %lu device scopes %lu came within 10 s; host %lu, late %lu, times %lu, others lost %lu",
      (unsigned long)on_device, (unsigned long)s->on_device, (unsigned long)s->host,
      (unsigned long)s->late, (unsigned long)s->times, (unsigned long)s->lost);
  return NULL;
}

#define SCOPE(queue, ...) \
  WITH_GPU_PROFILER(device, queue, "kernel", "test", PROF_NO_ARGS, __VA_ARGS__)

static uint64_t read_clock(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* PoCL's clock less CLOCK_MONOTONIC: the closest of some looks. */
static int64_t clock_distance(void) {
  uint64_t best = UINT64_MAX;
  int64_t distance = 0;
  for (int i = 0; i < 100; i++) {
    const uint64_t before = read_clock(CLOCK_MONOTONIC), raw = read_clock(CLOCK_MONOTONIC_RAW),
                   after = read_clock(CLOCK_MONOTONIC);
    if (after - before >= best) continue;
    best = after - before;
    distance = (int64_t)(raw - (before + best / 2));
  }
  return distance;
}

static uint64_t time_of(cl_event event, cl_profiling_info which) {
  cl_ulong ns = 0;
  assert_int_equal(cl.clGetEventProfilingInfo(event, which, sizeof ns, &ns, NULL), CL_SUCCESS);
  return ns;
}

/* ---- tests: each a process of its own ---- */

static void a_device_scope_has_its_kernel_in_it(void **state) {
  enum { COUNT = 20, SLACK_NS = 2000 };
  (void)state;
  const cl_command_queue queue = make_queue(profiling);
  const work w = make_work(1000000);
  cl_event kernels[COUNT];
  for (int i = 0; i < COUNT; i++) SCOPE(queue, { run(queue, w, &kernels[i]); });
  assert_int_equal(cl.clFinish(queue), CL_SUCCESS);
  settle(COUNT);
  assert_int_equal(prof_stop(), PROF_OK);
  const sums *const s = take();
  assert_int_equal(s->host, COUNT);
  assert_int_equal(s->on_device, COUNT);
  assert_int_equal(s->streams, 1);
  assert_int_equal(s->device.result, PROF_BACKEND_OK);
  assert_string_equal(s->device.back_end, "opencl");
  assert_int_not_equal(s->device.name[0], 0);
  assert_int_not_equal(s->device.units, 0);
  printf("%s: times within %lu ns of the host's, %lu of %d moved to their launch, %lu ns at most\n",
         s->device.name, (unsigned long)s->device.clock_error_ns,
         (unsigned long)s->device.early_count, COUNT, (unsigned long)s->device.early_ns);
  const int64_t distance = clock_distance(), slack = (int64_t)s->device.clock_error_ns + SLACK_NS;
  for (int i = 0; i < COUNT; i++) {
    const uint64_t start = time_of(kernels[i], CL_PROFILING_COMMAND_START),
                   end = time_of(kernels[i], CL_PROFILING_COMMAND_END);
    assert_in_range(start, s->scopes[i].raw_from_ns, s->scopes[i].raw_to_ns);
    assert_in_range(end, start, s->scopes[i].raw_to_ns);
    if (!is_pocl) continue; /* whose clock is known */
    const int64_t before = (int64_t)start - distance - (int64_t)s->scopes[i].from_ns,
                  after = (int64_t)s->scopes[i].to_ns - ((int64_t)end - distance);
    if (before < -slack || after < -slack)
      fail_msg(
          "kernel %d: begins %ld ns after its scope's begin, ends %ld ns before its end; %ld are "
          "possible",
          i, (long)before, (long)after, (long)slack);
  }
  for (int i = 0; i < COUNT; i++) cl.clReleaseEvent(kernels[i]);
  drop_work(w);
  cl.clReleaseCommandQueue(queue);
}

static cl_command_queue queues[2];
enum { THREADS = 4, EACH = 200 };

static void *launch_many(void *number) {
  const work w = make_work(1000);
  for (int i = 0; i < EACH; i++) {
    const cl_command_queue queue = queues[(i + *(int *)number) % 2];
    SCOPE(queue, {
      SCOPE(queue, { run(queue, w, NULL); });
      if (i % 20 == 0) cl.clFinish(queue);
    });
  }
  for (int i = 0; i < 2; i++) cl.clFinish(queues[i]);
  drop_work(w);
  return NULL;
}

static void two_queues_from_four_threads(void **state) {
  pthread_t threads[THREADS];
  int numbers[THREADS];
  (void)state;
  for (int i = 0; i < 2; i++) queues[i] = make_queue(profiling);
  SCOPE(queues[0], {}); /* opens the back end: a scope in the meantime has the host side */
  for (int i = 0; i < THREADS; i++) {
    numbers[i] = i;
    assert_int_equal(pthread_create(&threads[i], NULL, launch_many, &numbers[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  settle(1 + 2 * THREADS * EACH);
  assert_int_equal(prof_stop(), PROF_OK);
  const sums *const s = take();
  assert_int_equal(s->host, 1 + 2 * THREADS * EACH);
  assert_int_equal(s->on_device, 1 + 2 * THREADS * EACH);
  assert_int_equal(s->streams, 2);
  for (int i = 0; i < 2; i++) cl.clReleaseCommandQueue(queues[i]);
}

static void a_queue_without_profiling_has_its_host_side_and_says_why(void **state) {
  (void)state;
  const cl_command_queue queue = make_queue(plain);
  const work w = make_work(1000);
  for (int i = 0; i < 10; i++) SCOPE(queue, { run(queue, w, NULL); });
  cl.clFinish(queue);
  assert_int_equal(prof_stop(), PROF_OK);
  const sums *const s = take();
  assert_int_equal(s->host, 10);
  assert_int_equal(s->on_device, 0);
  assert_int_equal(s->times, 10);
  assert_int_equal(state_of_back_end("opencl").result, PROF_BACKEND_OK);
  assert_non_null(
      strstr(state_of_back_end("opencl").reason, "the queue has no CL_QUEUE_PROFILING_ENABLE"));
  drop_work(w);
  cl.clReleaseCommandQueue(queue);
}

/* What comes at an address again is looked at again. */
static void a_handle_that_comes_again_is_another_queue(void **state) {
  enum { TRIES = 200 };
  (void)state;
  const work w = make_work(10);
  const void *before[TRIES];
  uint64_t expected = 0;
  int again = 0;
  for (int i = 0; i < TRIES; i++) {
    const bool has_times = i % 2;
    const cl_command_queue queue = make_queue(has_times ? profiling : plain);
    before[i] = queue;
    for (int j = 0; j < i; j++) {
      if (before[j] != before[i] || j % 2 == i % 2) continue;
      again++; /* and with other properties */
      break;
    }
    SCOPE(queue, { run(queue, w, NULL); });
    cl.clFinish(queue);
    expected += has_times;
    settle((uint64_t)i + 1); /* prof is done with it, so it goes */
    cl.clReleaseCommandQueue(queue);
  }
  assert_int_equal(prof_stop(), PROF_OK);
  const sums *const s = take();
  printf("%d of %d queues had the handle of one before that was of the other kind\n", again, TRIES);
  assert_int_equal(s->on_device, expected);
  assert_int_equal(s->times, TRIES - expected);
  drop_work(w);
}

static void a_queue_out_of_order_is_served(void **state) {
  enum { COUNT = 100 };
  (void)state;
  const cl_command_queue queue = make_queue(out_of_order);
  const work w = make_work(10000);
  for (int i = 0; i < COUNT; i++) SCOPE(queue, { run(queue, w, NULL); });
  cl.clFinish(queue);
  settle(COUNT);
  assert_int_equal(prof_stop(), PROF_OK);
  const sums *const s = take();
  assert_int_equal(s->on_device, COUNT);
  for (int i = 1; i < COUNT; i++) assert_true(s->scopes[i].to_ns >= s->scopes[i - 1].to_ns);
  drop_work(w);
  cl.clReleaseCommandQueue(queue);
}

static void a_queue_that_is_released_meanwhile_is_no_harm(void **state) {
  enum { COUNT = 30 };
  (void)state;
  const cl_command_queue queue = make_queue(profiling);
  const work w = make_work(1000);
  const cl_event gate = shut_gate(queue);
  for (int i = 0; i < COUNT; i++) SCOPE(queue, { run(queue, w, NULL); });
  assert_int_equal(cl.clReleaseCommandQueue(queue), CL_SUCCESS);
  drop_work(w);
  usleep(20000);
  open_gate(gate);
  settle(COUNT);
  assert_int_equal(prof_stop(), PROF_OK);
  assert_int_equal(take()->on_device, COUNT);
}

/* An event keeps its queue alive: prof's are let go when they have been read. */
static void no_queue_is_held_on_to(void **state) {
  (void)state;
  const cl_command_queue queue = make_queue(profiling);
  const cl_uint before = holders_of(queue);
  for (int i = 0; i < 50; i++) SCOPE(queue, { put_marker(queue); });
  cl.clFinish(queue);
  settle(50);
  assert_int_equal(soon_holders_of(queue, before), before);
  const cl_event gate = shut_gate(queue);
  for (int i = 0; i < 20; i++) SCOPE(queue, { put_marker(queue); });
  assert_int_equal(prof_stop(), PROF_OK); /* does not wait for them */
  collector_has_ended();
  assert_int_equal(take()->late, 20);
  open_gate(gate);
  cl.clFinish(queue);
  assert_int_equal(prof_start(1), PROF_OK);
  SCOPE(queue, { put_marker(queue); });
  cl.clFinish(queue);
  settle(51);
  assert_int_equal(soon_holders_of(queue, before), before);
  assert_int_equal(take()->late, 20);
  cl.clReleaseCommandQueue(queue);
}

static void a_part_of_a_device_is_the_devices(void **state) {
  (void)state;
  enum { PARTS_MAX = 256 };
  const cl_device_partition_property one_unit[] = {CL_DEVICE_PARTITION_EQUALLY, 1, 0};
  cl_device_id parts[PARTS_MAX];
  cl_uint count = 0;
  cl_int error;
  if (cl.clCreateSubDevices(device_id, one_unit, PARTS_MAX, parts, &count) != CL_SUCCESS ||
      count == 0) {
    print_message("skip: the device cannot be parted\n");
    skip();
  }
  const cl_context of_part = cl.clCreateContext(NULL, 1, &parts[count - 1], NULL, NULL, &error);
  assert_int_equal(error, CL_SUCCESS);
  const cl_command_queue queue =
      cl.clCreateCommandQueueWithProperties(of_part, parts[count - 1], profiling, &error);
  assert_int_equal(error, CL_SUCCESS);
  SCOPE(queue, { put_marker(queue); });
  cl.clFinish(queue);
  settle(1);
  assert_int_equal(prof_stop(), PROF_OK);
  assert_int_equal(take()->on_device, 1);
  cl.clReleaseCommandQueue(queue);
  cl.clReleaseContext(of_part);
  for (cl_uint i = 0; i < count; i++) cl.clReleaseDevice(parts[i]);
}

static void the_status_counts_devices(void **state) {
  (void)state;
  assert_int_equal(state_of_back_end("opencl").is_open, 0); /* nobody has needed one */
  const cl_command_queue queue = make_queue(profiling);
  SCOPE(queue, {});
  cl.clFinish(queue);
  settle(1);
  const prof_backend_state now = state_of_back_end("opencl");
  assert_int_equal(now.is_open, 1);
  assert_int_equal(now.result, PROF_BACKEND_OK);
  assert_int_equal(now.abilities, PROF_CAN_SCOPES | PROF_CAN_CLOCKS);
  assert_true(now.device_count >= 1);
  cl.clReleaseCommandQueue(queue);
}

static void a_forked_child_has_the_host_side_alone(void **state) {
  (void)state;
  const cl_command_queue queue = make_queue(profiling);
  const work w = make_work(1000);
  for (int i = 0; i < 10; i++) SCOPE(queue, { run(queue, w, NULL); });
  cl.clFinish(queue);
  settle(10);
  SCOPE(queue, {
    run(queue, w, NULL);
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
      hang_guard();
      /* its driver's threads are not there: any call of OpenCL's could wait for ever */
      for (int i = 0; i < 5; i++) SCOPE(queue, {});
      const sums *const s = take();
      _exit(s->host == 5 && s->on_device == 0 && s->late + s->times == 0 &&
                    state_of_back_end("opencl").result == PROF_BACKEND_FORKED &&
                    prof_stop() == PROF_OK
                ? 0
                : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
  });
  cl.clFinish(queue);
  settle(11);
  assert_int_equal(prof_stop(), PROF_OK);
  assert_int_equal(take()->host, 11);
  drop_work(w);
  cl.clReleaseCommandQueue(queue);
}

/* ---- one operator ---- */

enum { OP_RUNS_MAX = 64 };

typedef struct op_work {
  cl_command_queue queue;
  work w;
  cl_event kernels[OP_RUNS_MAX];
  int runs;
} op_work;

static int run_op(void *user) {
  op_work *const o = user;
  if (o->runs == OP_RUNS_MAX) return 1;
  run(o->queue, o->w, &o->kernels[o->runs++]);
  return 0;
}

static int flush_op(void *user) { return cl.clFlush(((op_work *)user)->queue); }

/* Without the layer: each kernel's times to the tick. */
static void the_programs_own_events_tell_the_kernels_times(void **state) {
  enum { COUNT = 10 };
  (void)state;
  static prof_event event;
  const cl_command_queue queue = make_queue(profiling), none = make_queue(plain);
  const work w = make_work(200000);
  cl_event events[COUNT], without;
  prof_trace *trace = NULL;
  prof_cursor *cursor = NULL;
  prof_trace_device about = {.size = sizeof about};
  uint64_t count = 0;
  assert_int_equal(prof_start(1), PROF_OK);
  for (int i = 0; i < COUNT; i++) {
    WITH_BASE_PROFILER(PROF_HOST, "layer", "model", PROF_NO_ARGS, {
      run(queue, w, &events[i]);
      assert_int_equal(prof_device_event(device, (uint64_t)(uintptr_t)queue, events[i],
                                         PROF_BACKEND_KERNEL, "spin"),
                       PROF_OK);
    });
  }
  run(none, w, &without);
  assert_int_equal(
      prof_device_event(device, (uint64_t)(uintptr_t)none, without, PROF_BACKEND_KERNEL, "spin"),
      PROF_E_UNSUPPORTED);
  assert_non_null(strstr(prof_last_error(), "the queue has no CL_QUEUE_PROFILING_ENABLE"));
  assert_int_equal(prof_device_event(device, 3, events[0], PROF_BACKEND_KERNEL, "spin"),
                   PROF_E_INVALID);
  assert_non_null(strstr(prof_last_error(), "stream 3 is no cl_command_queue"));
  assert_int_equal(
      prof_device_event(device, (uint64_t)(uintptr_t)queue, (void *)5, PROF_BACKEND_KERNEL, "spin"),
      PROF_E_INVALID);
  assert_int_equal(cl.clFinish(queue), CL_SUCCESS);
  assert_int_equal(cl.clFinish(none), CL_SUCCESS);
  for (unsigned naps = 0; about.record_count < COUNT && hang_nap(&naps);) {
    assert_int_equal(prof_get(&trace), PROF_OK);
    if (prof_trace_device_get(trace, 0, &about) != PROF_OK) about.record_count = 0;
    prof_trace_destroy(trace);
  }
  assert_int_equal(prof_stop(), PROF_OK);
  assert_int_equal(prof_get(&trace), PROF_OK);
  assert_int_equal(prof_cursor_create(trace, &cursor), PROF_OK);
  while (prof_cursor_next(cursor, &event) == 1) {
    if (!(event.flags & PROF_EVENT_ON_DEVICE)) continue;
    assert_in_range(count, 0, COUNT - 1);
    assert_int_equal(event.launch.device_start_ns,
                     time_of(events[count], CL_PROFILING_COMMAND_START));
    assert_int_equal(event.launch.device_end_ns, time_of(events[count], CL_PROFILING_COMMAND_END));
    assert_memory_equal(event.name, "spin", event.name_bytes);
    count++;
  }
  assert_int_equal(count, COUNT);
  prof_cursor_destroy(cursor);
  assert_int_equal(prof_trace_device_get(trace, 0, &about), PROF_OK);
  print_message("  own events: times within %llu ns of the host's\n",
                (unsigned long long)about.clock_error_ns);
  prof_trace_destroy(trace);
  for (int i = 0; i < COUNT; i++) cl.clReleaseEvent(events[i]);
  cl.clReleaseEvent(without);
  drop_work(w);
  cl.clReleaseCommandQueue(queue);
  cl.clReleaseCommandQueue(none);
}

static int compare_doubles(const void *a, const void *b) {
  return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

/* By how much of the kernel's own time the operator's is more: the median. */
static double share_beyond_the_kernel(void) {
  enum { COUNT = 31 };
  op_work o = {.queue = make_queue(profiling), .w = make_work(2000000)};
  const prof_op_stream stream = {.size = sizeof stream,
                                 .device = device,
                                 .stream = (uint64_t)(uintptr_t)o.queue,
                                 .flush = flush_op,
                                 .user = &o};
  prof_op_timer *timer = NULL;
  prof_op_result *result = NULL;
  double shares[COUNT];
  size_t count = 0;
  if (prof_op_timer_create(&stream, &timer) != PROF_OK) fail_msg("%s", prof_last_error());
  const prof_op op = {.size = sizeof op,
                      .key = "spin",
                      .user = &o,
                      .run = run_op,
                      .device = device,
                      .timer = timer};
  const prof_op_options options = {.size = sizeof options,
                                   .no_warmup = 1,
                                   .exec = 1,
                                   .repeat = COUNT,
                                   .repeat_all = 1,
                                   .time_limit_ns = UINT64_MAX,
                                   .no_reuse = 1 /* another try is another measurement */};
  if (prof_op_profile(&op, &options, &result) != PROF_OK) fail_msg("%s", prof_last_error());
  const double *const us = prof_op_samples(result, &count);
  assert_int_equal(count, COUNT);
  for (int i = 0; i < COUNT; i++) {
    const double own_us = (double)(time_of(o.kernels[i], CL_PROFILING_COMMAND_END) -
                                   time_of(o.kernels[i], CL_PROFILING_COMMAND_START)) /
                          1e3;
    if (us[i] < own_us)
      fail_msg("sample %d: %.3f us, of a kernel that took %.3f", i, us[i], own_us);
    shares[i] = us[i] / own_us - 1;
    cl.clReleaseEvent(o.kernels[i]);
  }
  qsort(shares, COUNT, sizeof *shares, compare_doubles);
  printf(
      "an operator of %.0f us: more than its kernel's own time by %.3f %% (median; least %.3f %%, "
      "most %.3f %%)\n",
      us[COUNT / 2], shares[COUNT / 2] * 100, shares[0] * 100, shares[COUNT - 1] * 100);
  prof_op_result_destroy(result);
  prof_op_timer_destroy(timer);
  drop_work(o.w);
  cl.clReleaseCommandQueue(o.queue);
  return shares[COUNT / 2];
}

/* Where others have the processors that are the device, the markers around a kernel wait for one:
   it is tried again. */
static void an_operators_time_is_its_kernels(void **state) {
  (void)state;
  double least = share_beyond_the_kernel();
  for (unsigned naps = 0; least >= 0.01 && hang_nap(&naps); naps += 1000) {
    const double share = share_beyond_the_kernel();
    if (share < least) least = share;
  }
  if (least >= 0.01)
    fail_msg("half of the samples take %.3f %% more than their kernels", least * 100);
}

static void a_queue_without_profiling_cannot_be_timed_and_says_why(void **state) {
  (void)state;
  const cl_command_queue queue = make_queue(plain);
  const prof_op_stream stream = {
      .size = sizeof stream, .device = device, .stream = (uint64_t)(uintptr_t)queue};
  prof_op_timer *timer = NULL;
  assert_int_equal(prof_op_timer_create(&stream, &timer), PROF_E_OPERATOR);
  assert_null(timer);
  assert_non_null(strstr(prof_last_error(), "the queue has no CL_QUEUE_PROFILING_ENABLE"));
  cl.clReleaseCommandQueue(queue);
}

/* ---- ends ---- */

static void leave(void) {
  const cl_command_queue queue = make_queue(profiling);
  const work w = make_work(20000000);
  for (int i = 0; i < 20; i++) SCOPE(queue, { run(queue, w, NULL); });
  exit(0);
}

static void an_exit_with_work_in_flight_neither_hangs_nor_crashes(void **state) {
  (void)state;
  for (int i = 0; i < 10; i++) {
    int status = -1;
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
      hang_guard();
      execl("/proc/self/exe", "opencl", "leaves", (char *)NULL);
      _exit(127);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
  }
}

#define TESTS(X)                                              \
  X(a_device_scope_has_its_kernel_in_it)                      \
  X(two_queues_from_four_threads)                             \
  X(a_queue_without_profiling_has_its_host_side_and_says_why) \
  X(a_handle_that_comes_again_is_another_queue)               \
  X(a_queue_out_of_order_is_served)                           \
  X(a_queue_that_is_released_meanwhile_is_no_harm)            \
  X(no_queue_is_held_on_to)                                   \
  X(a_part_of_a_device_is_the_devices)                        \
  X(the_status_counts_devices)                                \
  X(a_forked_child_has_the_host_side_alone)                   \
  X(the_programs_own_events_tell_the_kernels_times)           \
  X(an_operators_time_is_its_kernels)                         \
  X(a_queue_without_profiling_cannot_be_timed_and_says_why)   \
  X(an_exit_with_work_in_flight_neither_hangs_nor_crashes)

static void begin(void) {
  open_opencl();
  assert_int_equal(prof_start(1), PROF_OK);
}

ALONE_TESTS

int main(int argc, char **argv) {
  if (argc == 1) prepare_opencl();
  if (argc == 2 && strcmp(argv[1], "leaves") == 0) {
    begin();
    leave();
  }
  const char *const missing = argc == 1 ? find_opencl() : NULL;
  if (missing) {
    printf("skip: %s\n", missing);
    return 77;
  }
  return alone_main(argc, argv);
}

#endif
