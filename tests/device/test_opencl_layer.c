/* libprof_opencl.so in front of a real OpenCL: a program that knows nothing of it is recorded as it
   ran. The truth is what the commands' own events say. */
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
#include <prof/profiler.h>
#include <prof/trace.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <unistd.h>

#include <cmocka.h>

#include "alone.h"
#include "collector.h"
#include "hang_guard.h"
#include "opencl.h"
#include "told.h"

static const prof_device device = {PROF_DEVICE_OPENCL, 0};
static const cl_queue_properties out_of_order[] = {CL_QUEUE_PROPERTIES,
                                                   CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, 0};

/* ---- a program ---- */

static cl_kernel spin;
static cl_mem out;

static void begin(void) {
  static const char source[] =
      "kernel void spin(global uint *out, uint rounds) { uint x = get_global_id(0); for (uint i = "
      "0; i < rounds; i++) x = x * 1664525u + 1013904223u; out[get_global_id(0)] = x; }";
  const char *text = source, *const build = getenv("PROF_TEST_BUILD_DIR");
  const cl_uint rounds = 20000;
  char path[4096];
  cl_int error;
  snprintf(path, sizeof path, "%s/libprof_opencl.so", build ? build : ".");
  assert_int_equal(access(path, R_OK), 0);
  setenv("OPENCL_LAYERS", path, 1);
  assert_null(find_opencl());
  context = cl.clCreateContext(NULL, 1, &device_id, NULL, NULL, &error);
  program = cl.clCreateProgramWithSource(context, 1, &text, NULL, &error);
  assert_int_equal(cl.clBuildProgram(program, 1, &device_id, "", NULL, NULL), CL_SUCCESS);
  spin = cl.clCreateKernel(program, "spin", &error);
  out = cl.clCreateBuffer(context, CL_MEM_READ_WRITE, 4096, NULL, &error);
  assert_int_equal(error, CL_SUCCESS);
  assert_int_equal(cl.clSetKernelArg(spin, 0, sizeof out, (void *)&out), CL_SUCCESS);
  assert_int_equal(cl.clSetKernelArg(spin, 1, sizeof rounds, &rounds), CL_SUCCESS);
}

static cl_command_queue make_queue(const cl_queue_properties *properties) {
  cl_int error;
  const cl_command_queue queue =
      cl.clCreateCommandQueueWithProperties(context, device_id, properties, &error);
  assert_int_equal(error, CL_SUCCESS);
  return queue;
}

static void run_kernel(cl_command_queue queue, cl_event *event_out) {
  const size_t items = 64, group = 16;
  assert_int_equal(
      cl.clEnqueueNDRangeKernel(queue, spin, 1, NULL, &items, &group, 0, NULL, event_out),
      CL_SUCCESS);
}

static uint64_t time_of(cl_event event, cl_profiling_info which) {
  cl_ulong ns = 0;
  assert_int_equal(cl.clGetEventProfilingInfo(event, which, sizeof ns, &ns, NULL), CL_SUCCESS);
  return ns;
}

static cl_uint holders_of(cl_event event) {
  cl_uint count = 0;
  assert_int_equal(cl.clGetEventInfo(event, CL_EVENT_REFERENCE_COUNT, sizeof count, &count, NULL),
                   CL_SUCCESS);
  return count;
}

/* prof has let go of it, and the driver's own threads, which do so a little later. */
static void is_the_programs_alone(cl_event event) {
  WAIT_WHILE(holders_of(event) != 1);
  assert_int_equal(holders_of(event), 1);
}

/* ---- what was recorded ---- */

static prof_trace *get(void) {
  prof_trace *trace = NULL;
  assert_int_equal(prof_get(&trace), PROF_OK);
  return trace;
}

static prof_trace *stop_and_get(void) {
  assert_int_equal(prof_stop(), PROF_OK);
  collector_has_ended();
  return get();
}

static prof_trace_device device_of(const prof_trace *trace) {
  prof_trace_device about = {.size = sizeof about};
  prof_trace_device_get(trace, 0, &about);
  return about;
}

static uint64_t lost_of(const prof_trace *trace, int reason) {
  prof_trace_info info = {.size = sizeof info};
  assert_int_equal(prof_trace_info_get(trace, &info), PROF_OK);
  return info.lost_count[reason];
}

/* Until so many commands, and devices' sides of scopes, have been told: the collector may have no
   processor. */
static void settle_both(uint64_t commands, uint64_t sides) {
  prof_trace_device now = {.size = sizeof now};
  for (unsigned naps = 0; hang_nap(&naps);) {
    prof_trace *const trace = get();
    now = device_of(trace);
    prof_trace_destroy(trace);
    if (now.record_count >= commands && now.scope_count >= sides) return;
  }
  fail_msg("of %lu commands %lu, of %lu scopes' sides %lu were told", (unsigned long)commands,
           (unsigned long)now.record_count, (unsigned long)sides, (unsigned long)now.scope_count);
}
static void settle(uint64_t commands) { settle_both(commands, 0); }

typedef struct reader {
  prof_trace *trace;
  prof_cursor *cursor;
  prof_event event;
} reader;

static reader *read_all(prof_trace *trace) {
  static reader r;
  r.trace = trace;
  assert_int_equal(prof_cursor_create(trace, &r.cursor), PROF_OK);
  return &r;
}

static bool next_command(reader *r) {
  while (prof_cursor_next(r->cursor, &r->event) == 1)
    if (r->event.flags & PROF_EVENT_ON_DEVICE) return true;
  return false;
}

static void close_all(reader *r) {
  prof_cursor_destroy(r->cursor);
  prof_trace_destroy(r->trace);
}

static prof_row row_of(const prof_trace *trace, const char *name) {
  prof_rows *rows = NULL;
  prof_row row = {0};
  assert_int_equal(prof_trace_aggregate(trace, NULL, &rows), PROF_OK);
  for (uint64_t i = 0; i < rows->row_count; i++)
    if (strcmp(rows->rows[i].name, name) == 0) row = rows->rows[i];
  if (!row.name) fail_msg("there is no row %s", name);
  row.name = row.category = NULL; /* they go with the rows */
  prof_rows_destroy(rows);
  return row;
}

/* The place of the row's scopes: this program's calls have none. */
static void expect_no_place(const prof_trace *trace, const char *name) {
  prof_rows *rows = NULL;
  int found = 0;
  assert_int_equal(prof_trace_aggregate(trace, NULL, &rows), PROF_OK);
  for (uint64_t i = 0; i < rows->row_count; i++) {
    prof_row_more more = {.size = sizeof more};
    if (strcmp(rows->rows[i].name, name) != 0) continue;
    assert_int_equal(prof_rows_more(rows, i, &more), PROF_OK);
    assert_string_equal(more.file, "");
    found++;
  }
  assert_int_equal(found, 1);
  prof_rows_destroy(rows);
}

/* ---- tests ---- */

static void kernels_have_the_times_of_their_events(void **state) {
  (void)state;
  enum { COUNT = 100 };
  const cl_command_queue queue = make_queue(NULL);
  static cl_event events[COUNT];
  assert_int_equal(prof_start(1), PROF_OK);
  for (int i = 0; i < COUNT; i++) run_kernel(queue, &events[i]);
  assert_int_equal(cl.clFinish(queue), CL_SUCCESS);
  settle(COUNT);
  reader *const r = read_all(stop_and_get());
  int count = 0;
  for (; next_command(r); count++) {
    assert_true(count < COUNT);
    assert_true(is_text(r->event.name, r->event.name_bytes, "spin") &&
                is_text(r->event.category, r->event.category_bytes, "kernel"));
    assert_int_equal(r->event.launch.device_start_ns,
                     time_of(events[count], CL_PROFILING_COMMAND_START));
    assert_int_equal(r->event.launch.device_end_ns,
                     time_of(events[count], CL_PROFILING_COMMAND_END));
    assert_int_equal(arg_of(&r->event, "queued ns")->value.u64,
                     time_of(events[count], CL_PROFILING_COMMAND_QUEUED));
    assert_int_equal(arg_of(&r->event, "submitted ns")->value.u64,
                     time_of(events[count], CL_PROFILING_COMMAND_SUBMIT));
    assert_int_equal(arg_of(&r->event, "grid")->value.tensor.dims[0], 4);
    assert_int_equal(arg_of(&r->event, "block")->value.tensor.dims[0], 16);
    assert_int_equal(r->event.stream, (uintptr_t)queue);
    if (count < COUNT - 1) is_the_programs_alone(events[count]); /* the queue keeps its last one */
    cl.clReleaseEvent(events[count]);
  }
  assert_int_equal(count, COUNT);
  for (int i = 0; i < PROF_LOSS_COUNT; i++) assert_int_equal(lost_of(r->trace, i), 0);
  /* how near the looks at its clock were is the machine's affair */
  if (is_pocl) assert_in_range(device_of(r->trace).clock_error_ns, 1, 1000000000);
  close_all(r);
  cl.clReleaseCommandQueue(queue);
}

static void copies_fills_and_maps_say_how_much(void **state) {
  (void)state;
  static const struct {
    const char *name, *category, *way;
    uint64_t bytes;
  } wanted[] = {{"Memcpy HtoD", "gpu_memcpy", "host to device", 4096},
                {"Memcpy DtoH", "gpu_memcpy", "device to host", 1024},
                {"Memcpy DtoD", "gpu_memcpy", "device to device", 512},
                {"Memset", "gpu_memset", "unknown to device", 2048},
                {"map", "gpu_memcpy", "device to host", 256},
                {"unmap", "gpu_memcpy", "host to device", 0}};
  enum { COUNT = sizeof wanted / sizeof *wanted };
  const cl_command_queue queue = make_queue(NULL);
  static char bytes[4096];
  const cl_uint zero = 0;
  cl_int error;
  const cl_mem other = cl.clCreateBuffer(context, CL_MEM_READ_WRITE, 4096, NULL, &error);
  assert_int_equal(prof_start(1), PROF_OK);
  assert_int_equal(cl.clEnqueueWriteBuffer(queue, out, CL_FALSE, 0, 4096, bytes, 0, NULL, NULL),
                   CL_SUCCESS);
  assert_int_equal(cl.clEnqueueReadBuffer(queue, out, CL_TRUE, 0, 1024, bytes, 0, NULL, NULL),
                   CL_SUCCESS);
  assert_int_equal(cl.clEnqueueCopyBuffer(queue, out, other, 0, 0, 512, 0, NULL, NULL), CL_SUCCESS);
  assert_int_equal(cl.clEnqueueFillBuffer(queue, out, &zero, sizeof zero, 0, 2048, 0, NULL, NULL),
                   CL_SUCCESS);
  void *const mapped =
      cl.clEnqueueMapBuffer(queue, out, CL_TRUE, CL_MAP_READ, 0, 256, 0, NULL, NULL, &error);
  assert_int_equal(error, CL_SUCCESS);
  assert_int_equal(cl.clEnqueueUnmapMemObject(queue, out, mapped, 0, NULL, NULL), CL_SUCCESS);
  assert_int_equal(cl.clFinish(queue), CL_SUCCESS);
  settle(COUNT);
  reader *const r = read_all(stop_and_get());
  int at = 0;
  for (; next_command(r); at++) {
    assert_true(at < COUNT);
    if (!is_text(r->event.name, r->event.name_bytes, wanted[at].name) ||
        !is_text(r->event.category, r->event.category_bytes, wanted[at].category))
      fail_msg("command %d is %.*s", at, (int)r->event.name_bytes, r->event.name);
    const prof_trace_arg *const way = arg_of(&r->event, "direction");
    assert_true(is_text(way->value.text.data, way->value.text.bytes, wanted[at].way));
    if (wanted[at].bytes) assert_int_equal(arg_of(&r->event, "bytes")->value.u64, wanted[at].bytes);
  }
  assert_int_equal(at, COUNT);
  close_all(r);
  cl.clReleaseMemObject(other);
  cl.clReleaseCommandQueue(queue);
}

static void at_level_2_each_call_launched_its_command(void **state) {
  (void)state;
  enum { COUNT = 30 };
  const cl_command_queue queue = make_queue(NULL);
  assert_int_equal(prof_start(2), PROF_OK);
  for (int i = 0; i < COUNT; i++) run_kernel(queue, NULL);
  assert_int_equal(cl.clFinish(queue), CL_SUCCESS);
  settle(COUNT);
  prof_trace *const trace = stop_and_get();
  const prof_row launch = row_of(trace, "clEnqueueNDRangeKernel");
  assert_int_equal(launch.calls_count, COUNT);
  assert_int_equal(launch.device_count, COUNT);
  assert_true(launch.self_device_ns > 0);
  assert_int_equal(row_of(trace, "clFinish").calls_count, 1);
  expect_no_place(trace, "clEnqueueNDRangeKernel");
  expect_no_place(trace, "clFinish");
  prof_trace_destroy(trace);
  cl.clReleaseCommandQueue(queue);
}

static void a_scope_holds_its_kernels_once(void **state) {
  (void)state;
  const cl_command_queue queue = make_queue(NULL);
  assert_int_equal(prof_start(1), PROF_OK);
  WITH_BASE_PROFILER(PROF_HOST, "layer", "model", PROF_NO_ARGS, {
    WITH_GPU_PROFILER(device, queue, "fused", "operator", PROF_NO_ARGS, {
      run_kernel(queue, NULL);
      run_kernel(queue, NULL);
    });
    run_kernel(queue, NULL);
  });
  assert_int_equal(cl.clFinish(queue), CL_SUCCESS);
  settle(3);
  reader *const r = read_all(stop_and_get());
  const prof_row fused = row_of(r->trace, "fused"), layer = row_of(r->trace, "layer");
  uint64_t inside_ns = 0, alone_ns = 0, side_ns = 0;
  while (next_command(r))
    *(r->event.launch.record == 0 ? &side_ns
      : r->event.depth > 0        ? &inside_ns
                                  : &alone_ns) += r->event.duration_ns;
  assert_int_equal(fused.device_count, 3);
  assert_true(side_ns >= inside_ns && inside_ns > 0 && alone_ns > 0);
  assert_int_equal(fused.self_device_ns, side_ns);
  assert_int_equal(layer.self_device_ns, alone_ns);
  assert_int_equal(layer.device_total_ns, side_ns + alone_ns);
  close_all(r);
  cl.clReleaseCommandQueue(queue);
}

static void what_overlaps_on_a_queue_out_of_order_is_all_there(void **state) {
  (void)state;
  enum { COUNT = 40 };
  const cl_command_queue queue = make_queue(out_of_order);
  const size_t items = 4;
  cl_int error;
  const cl_event gate = cl.clCreateUserEvent(context, &error);
  assert_int_equal(prof_start(1), PROF_OK);
  for (int i = 0; i < COUNT; i++)
    assert_int_equal(cl.clEnqueueNDRangeKernel(queue, spin, 1, NULL, &items, NULL, i % 2 == 0,
                                               i % 2 == 0 ? &gate : NULL, NULL),
                     CL_SUCCESS);
  cl.clFlush(queue);
  settle(COUNT / 2); /* those that wait for nothing */
  assert_int_equal(cl.clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
  assert_int_equal(cl.clFinish(queue), CL_SUCCESS);
  settle(COUNT);
  reader *const r = read_all(stop_and_get());
  int count = 0;
  for (; next_command(r); count++)
    assert_int_equal(arg_of(&r->event, "work items")->value.tensor.dims[0], 4);
  assert_int_equal(count, COUNT);
  close_all(r);
  cl.clReleaseEvent(gate);
  cl.clReleaseCommandQueue(queue);
}

static void what_is_not_done_at_the_stop_is_late_and_in_no_later_recording(void **state) {
  (void)state;
  const cl_command_queue queue = make_queue(NULL);
  cl_int error;
  const cl_event gate = cl.clCreateUserEvent(context, &error);
  assert_int_equal(prof_start(1), PROF_OK);
  run_kernel(queue, NULL);
  assert_int_equal(cl.clFinish(queue), CL_SUCCESS);
  settle(1);
  const size_t items = 4;
  for (int i = 0; i < 3; i++)
    assert_int_equal(cl.clEnqueueNDRangeKernel(queue, spin, 1, NULL, &items, NULL, 1, &gate, NULL),
                     CL_SUCCESS);
  prof_trace *trace = stop_and_get();
  assert_int_equal(device_of(trace).record_count, 1);
  assert_int_equal(lost_of(trace, PROF_LOSS_DEVICE_LATE), 3);
  prof_trace_destroy(trace);
  assert_int_equal(cl.clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
  assert_int_equal(cl.clFinish(queue), CL_SUCCESS);
  assert_int_equal(prof_clear(), PROF_OK);
  assert_int_equal(prof_start(1), PROF_OK);
  run_kernel(queue, NULL);
  assert_int_equal(cl.clFinish(queue), CL_SUCCESS);
  reader *const r = read_all(stop_and_get());
  int count = 0;
  while (next_command(r)) count++;
  assert_int_equal(count, 1);
  close_all(r);
  cl.clReleaseEvent(gate);
  cl.clReleaseCommandQueue(queue);
}

static uint64_t properties_of(cl_command_queue queue) {
  cl_command_queue_properties properties = 0;
  assert_int_equal(
      cl.clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES, sizeof properties, &properties, NULL),
      CL_SUCCESS);
  return properties;
}

static void queues_keep_times_unless_that_is_forbidden(void **state) {
  (void)state;
  cl_int error;
  const cl_command_queue old = cl.clCreateCommandQueue(
                             context, device_id, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, &error),
                         young = make_queue(out_of_order), bare = make_queue(NULL);
  const uint64_t both = CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE | CL_QUEUE_PROFILING_ENABLE;
  assert_int_equal(properties_of(old), both);
  assert_int_equal(properties_of(young), both);
  assert_int_equal(properties_of(bare), CL_QUEUE_PROFILING_ENABLE);
  setenv("PROF_BACKEND_OPENCL_QUEUES", "unchanged", 1);
  const cl_command_queue unchanged = make_queue(NULL);
  assert_int_equal(properties_of(unchanged), 0);
  assert_int_equal(prof_start(1), PROF_OK);
  run_kernel(unchanged, NULL);
  run_kernel(bare, NULL);
  assert_int_equal(cl.clFinish(bare), CL_SUCCESS);
  assert_int_equal(cl.clFinish(unchanged), CL_SUCCESS);
  settle(1);
  prof_trace *const trace = stop_and_get();
  assert_int_equal(device_of(trace).record_count, 1);
  assert_int_equal(lost_of(trace, PROF_LOSS_DEVICE_FULL), 1);
  prof_trace_destroy(trace);
  cl.clReleaseCommandQueue(old);
  cl.clReleaseCommandQueue(young);
  cl.clReleaseCommandQueue(bare);
  cl.clReleaseCommandQueue(unchanged);
}

static void who_forbids_it_gets_scopes_alone(void **state) {
  (void)state;
  const cl_command_queue queue = make_queue(NULL);
  const prof_options options = {.size = sizeof options, .devices = PROF_DEVICES_SCOPES};
  cl_event event;
  run_kernel(queue, &event); /* nothing is recorded yet */
  assert_int_equal(prof_start_with(&options), PROF_OK);
  WITH_GPU_PROFILER(device, queue, "fused", "operator", PROF_NO_ARGS, { run_kernel(queue, NULL); });
  assert_int_equal(cl.clFinish(queue), CL_SUCCESS);
  settle_both(0, 1);
  prof_trace *const trace = stop_and_get();
  assert_int_equal(device_of(trace).record_count, 0);
  assert_int_equal(device_of(trace).scope_count, 1);
  is_the_programs_alone(event);
  prof_trace_destroy(trace);
  cl.clReleaseEvent(event);
  cl.clReleaseCommandQueue(queue);
}

static void an_error_is_the_programs_and_recorded_by_nobody(void **state) {
  (void)state;
  const cl_command_queue queue = make_queue(NULL);
  const size_t items = 4;
  cl_event event = NULL;
  assert_int_equal(prof_start(1), PROF_OK);
  assert_int_equal(cl.clEnqueueNDRangeKernel(queue, spin, 7, NULL, &items, NULL, 0, NULL, &event),
                   CL_INVALID_WORK_DIMENSION);
  assert_null(event);
  run_kernel(queue, NULL);
  assert_int_equal(cl.clFinish(queue), CL_SUCCESS);
  settle(1);
  prof_trace *const trace = stop_and_get();
  assert_int_equal(device_of(trace).record_count, 1);
  for (int i = 0; i < PROF_LOSS_COUNT; i++) assert_int_equal(lost_of(trace, i), 0);
  prof_trace_destroy(trace);
  cl.clReleaseCommandQueue(queue);
}

enum { THREADS = 4, EACH = 200 };

/* A kernel's arguments are one thread's at a time; to enqueue it is for all. */
static void *enqueue(void *queue) {
  for (int i = 0; i < EACH; i++) run_kernel(queue, NULL);
  return NULL;
}

static void threads_and_queues_lose_nothing(void **state) {
  (void)state;
  const cl_command_queue queues[] = {make_queue(NULL), make_queue(out_of_order)};
  pthread_t threads[THREADS];
  assert_int_equal(prof_start(2), PROF_OK);
  for (int i = 0; i < THREADS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, enqueue, (void *)queues[i % 2]), 0);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < 2; i++) assert_int_equal(cl.clFinish(queues[i]), CL_SUCCESS);
  settle(THREADS * EACH);
  prof_trace *const trace = stop_and_get();
  const prof_row launch = row_of(trace, "clEnqueueNDRangeKernel");
  assert_int_equal(launch.calls_count, THREADS * EACH);
  assert_int_equal(launch.device_count, THREADS * EACH);
  for (int i = 0; i < PROF_LOSS_COUNT; i++) assert_int_equal(lost_of(trace, i), 0);
  prof_trace_destroy(trace);
  for (int i = 0; i < 2; i++) cl.clReleaseCommandQueue(queues[i]);
}

static void a_forked_child_records_none(void **state) {
  (void)state;
  const cl_command_queue queue = make_queue(NULL);
  int status = -1;
  assert_int_equal(prof_start(1), PROF_OK);
  run_kernel(queue, NULL);
  assert_int_equal(cl.clFinish(queue), CL_SUCCESS);
  settle(1);
  const pid_t child = fork();
  if (child == 0) {
    WITH_BASE_PROFILER(PROF_HOST, "child", "test", PROF_NO_ARGS, {});
    _exit(prof_stop() == PROF_OK ? 0 : 1);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  prof_trace_destroy(stop_and_get());
  cl.clReleaseCommandQueue(queue);
}

#define TESTS(X)                                                    \
  X(kernels_have_the_times_of_their_events)                         \
  X(copies_fills_and_maps_say_how_much)                             \
  X(at_level_2_each_call_launched_its_command)                      \
  X(a_scope_holds_its_kernels_once)                                 \
  X(what_overlaps_on_a_queue_out_of_order_is_all_there)             \
  X(what_is_not_done_at_the_stop_is_late_and_in_no_later_recording) \
  X(queues_keep_times_unless_that_is_forbidden)                     \
  X(who_forbids_it_gets_scopes_alone)                               \
  X(an_error_is_the_programs_and_recorded_by_nobody)                \
  X(threads_and_queues_lose_nothing)                                \
  X(a_forked_child_records_none)

ALONE_TESTS

int main(int argc, char **argv) {
  if (argc == 1) prepare_opencl();
  const char *const missing = argc == 1 ? find_opencl() : NULL;
  if (missing) {
    printf("skip: %s\n", missing);
    return 77;
  }
  return alone_main(argc, argv);
}

#endif
