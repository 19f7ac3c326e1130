/* HIP's back end on an emulated runtime (vendors/hip.c: no device is behind it), as HIP 6 and as
   HIP 5, which does not name a stream's owner. When the library is touched, devices, default
   streams, capture into graphs, errors. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <prof/device.h>
#include <prof/profiler.h>
#include <prof/trace.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "alone.h"
#include "hang_guard.h"
#include "hip_program.h"
#include "told.h"

enum { COUNT = 20, WORK_NS = 300000, CAPTURE_GLOBAL = 0 };

static const prof_device device = {PROF_DEVICE_ROCM, 0};

static void begin(void) {}

static bool is_loaded(void) {
  return dlopen("libamdhip64.so.6", RTLD_NOW | RTLD_NOLOAD) ||
         dlopen("libamdhip64.so.5", RTLD_NOW | RTLD_NOLOAD);
}

static void load_6(void) { load("libamdhip64.so.6"); }

static void launch(void *stream, int count) {
  for (int i = 0; i < count; i++)
    WITH_HIP_PROFILER(device, handle_of(stream), "kernel", "test", PROF_NO_ARGS,
                      { hip.emulated_hip_work(stream, WORK_NS); });
}

typedef struct sums {
  uint64_t sides[EMULATED_HIP_DEVICES], captured, times, late;
  int32_t result;
  char reason[160];
} sums;

static sums look(void) {
  sums s = {{0}, 0, 0, 0, 0, ""};
  prof_trace *trace = NULL;
  prof_trace_info info = {.size = sizeof info};
  assert_int_equal(prof_get(&trace), PROF_OK);
  assert_int_equal(prof_trace_info_get(trace, &info), PROF_OK);
  for (uint32_t i = 0; i < info.device_count; i++) {
    prof_trace_device about = {.size = sizeof about};
    assert_int_equal(prof_trace_device_get(trace, i, &about), PROF_OK);
    assert_in_range(about.device.index, 0, EMULATED_HIP_DEVICES - 1);
    s.sides[about.device.index] = about.scope_count;
    s.captured += about.captured_count;
    if (!about.reason[0]) continue;
    s.result = about.result;
    memcpy(s.reason, about.reason, sizeof s.reason);
  }
  s.times = info.lost_count[PROF_LOSS_DEVICE_TIMES];
  s.late = info.lost_count[PROF_LOSS_DEVICE_LATE];
  prof_trace_destroy(trace);
  return s;
}

static sums settle(uint64_t wanted) {
  sums s = look();
  for (unsigned naps = 0; s.sides[0] + s.sides[1] + s.times + s.late < wanted && hang_nap(&naps);
       s = look())
    continue;
  return s;
}

/* ---- when the library is touched ---- */

static void a_program_without_hip_never_has_its_library(void **state) {
  (void)state;
  const prof_options options = {
      .size = sizeof options, .level = 2, .devices = PROF_DEVICES_RECORDS};
  assert_int_equal(prof_start_with(&options), PROF_OK);
  WITH_BASE_PROFILER(PROF_HOST, "host", "test", PROF_NO_ARGS, {});
  WITH_GPU_PROFILER(((prof_device){PROF_DEVICE_VULKAN, 0}), 4096, "another's", "test", PROF_NO_ARGS,
                    {});
  assert_int_equal(prof_stop(), PROF_OK);
  assert_false(is_loaded());
}

/* It is there, and the program has not used it: nor does prof, whatever is recorded. */
static void a_runtime_that_nobody_uses_is_left_alone(void **state) {
  (void)state;
  load_6();
  assert_int_equal(prof_start(1), PROF_OK);
  WITH_BASE_PROFILER(PROF_HOST, "host", "test", PROF_NO_ARGS, { usleep(50000); });
  assert_int_equal(prof_stop(), PROF_OK);
  assert_int_equal(runtime->calls, 0);
}

static void its_devices_are_described(void **state) {
  (void)state;
  load_6();
  assert_int_equal(prof_start(1), PROF_OK);
  launch(NULL, 1);
  hip.hipStreamSynchronize(NULL);
  settle(1);
  prof_trace *trace = NULL;
  prof_trace_device about = {.size = sizeof about};
  assert_int_equal(prof_get(&trace), PROF_OK);
  assert_int_equal(prof_trace_device_get(trace, 0, &about), PROF_OK);
  assert_string_equal(about.name, "Emulated HIP 0");
  assert_string_equal(about.driver, "HIP 6.3");
  assert_int_equal(about.units, 304);
  assert_int_equal(about.clock_khz, 2100000);
  assert_true(about.memory_bytes == UINT64_C(64) << 30);
  assert_int_equal(about.uuid[0], 0x20);
  char *line = NULL;
  assert_int_equal(prof_trace_device_text(trace, 0, &line), PROF_OK);
  if (strncmp(line, "hip:0 Emulated HIP 0", strlen("hip:0 Emulated HIP 0")) != 0)
    fail_msg("%s", line);
  prof_free(line);
  prof_trace_destroy(trace);
  assert_int_equal(prof_stop(), PROF_OK);
}

/* Why there is none is looked up in /dev. */
static void a_runtime_without_devices_says_so(void **state) {
  (void)state;
  load_6();
  runtime->device_count = 0;
  assert_int_equal(prof_start(1), PROF_OK);
  WITH_HIP_PROFILER(device, 0, "nowhere", "test", PROF_NO_ARGS, {});
  const sums s = look();
  const uint32_t calls = runtime->calls;
  if (access("/dev/kfd", F_OK) != 0) {
    assert_int_equal(s.result, PROF_BACKEND_NO_DEVICE);
    assert_non_null(strstr(s.reason, "/dev/kfd is not there"));
  }
  for (int i = 0; i < COUNT; i++) WITH_HIP_PROFILER(device, 0, "nowhere", "test", PROF_NO_ARGS, {});
  assert_int_equal(runtime->calls, calls); /* each call opens /dev/kfd: prof makes it once */
  assert_int_equal(prof_stop(), PROF_OK);
}

/* What the kernel's folder says, of which this is one: the reason by it. */
static void expect_of_devices(const char *folder, int32_t result, const char *why) {
  setenv("PROF_SYSFS_ROOT", folder, 1);
  load_6();
  runtime->device_count = 0;
  assert_int_equal(prof_start(1), PROF_OK);
  WITH_HIP_PROFILER(device, 0, "nowhere", "test", PROF_NO_ARGS, {});
  const sums s = look();
  if (s.result != result || !strstr(s.reason, why)) fail_msg("%d: %s", s.result, s.reason);
  assert_int_equal(prof_stop(), PROF_OK);
}

static void put_device(const char *path, mode_t mode) {
  const int file = open(path, O_WRONLY | O_CREAT, mode);
  assert_true(file >= 0);
  assert_int_equal(fchmod(file, mode & 0777), 0);
  close(file);
}

static const char *make_folder(void) {
  static char folder[] = "/tmp/prof-hip-XXXXXX";
  char path[64];
  assert_non_null(mkdtemp(folder));
  assert_int_equal(chmod(folder, 0755), 0);
  snprintf(path, sizeof path, "%s/dev", folder);
  assert_int_equal(mkdir(path, 0755), 0);
  snprintf(path, sizeof path, "%s/dev/dri", folder);
  assert_int_equal(mkdir(path, 0755), 0);
  return folder;
}

static void remove_folder(const char *folder) {
  char command[64];
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  assert_int_equal(system(command), 0);
}

static void put_devices(const char *folder, mode_t kfd, mode_t node) {
  char path[64];
  snprintf(path, sizeof path, "%s/dev/kfd", folder);
  put_device(path, kfd);
  snprintf(path, sizeof path, "%s/dev/dri/renderD128", folder);
  if (node) put_device(path, node);
}

/* A user who may open every file needs no group. In a child, because the folder is to be
   removed. */
static void expect_without_rights(const char *folder, int32_t result, const char *why) {
  int status = -1;
  fflush(NULL);
  const pid_t child = fork();
  if (child == 0) {
    if (geteuid() == 0 && setresuid(65534, 65534, 65534) != 0) _exit(1);
    expect_of_devices(folder, result, why);
    fflush(NULL);
    _exit(0);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  remove_folder(folder);
  assert_int_equal(status, 0);
}

static void a_user_who_is_not_in_the_group_is_told_so(void **state) {
  (void)state;
  const char *const folder = make_folder();
  put_devices(folder, 0, 0666);
  expect_without_rights(folder, PROF_BACKEND_PERMISSION,
                        "dev/kfd: Permission denied: this user is not in its group, ");
}

static void a_render_node_that_is_not_the_users_is_said(void **state) {
  (void)state;
  const char *const folder = make_folder();
  put_devices(folder, 0666, 01000);
  expect_without_rights(folder, PROF_BACKEND_PERMISSION,
                        "dev/dri/renderD128: Permission denied: this user is not in its group, ");
}

static void a_container_without_render_nodes_is_told_so(void **state) {
  (void)state;
  const char *const folder = make_folder();
  put_devices(folder, 0666, 0);
  expect_of_devices(folder, PROF_BACKEND_NO_DEVICE, "has no renderD*");
  remove_folder(folder);
}

static void devices_that_are_hidden_are_not_missed(void **state) {
  (void)state;
  const char *const folder = make_folder();
  put_devices(folder, 0666, 0666);
  expect_of_devices(
      folder, PROF_BACKEND_NO_DEVICE,
      "hipGetDeviceCount: 0 devices (HIP_VISIBLE_DEVICES and ROCR_VISIBLE_DEVICES may hide some)");
  remove_folder(folder);
}

/* As frameworks do that call AMD's devices "cuda". */
static void by_another_vendors_name_it_is_said_which_is_meant(void **state) {
  (void)state;
  load_6();
  void *const stream = make_stream(0);
  assert_int_equal(prof_start(1), PROF_OK);
  WITH_CUDA_PROFILER(((prof_device){PROF_DEVICE_CUDA, 0}), handle_of(stream), "named wrongly",
                     "test", PROF_NO_ARGS, {});
  sums s = look();
  assert_int_equal(s.result, PROF_BACKEND_INVALID);
  assert_string_equal(
      s.reason, "this program has loaded the library of hip: its devices are of type 10, not 2");
  launch(stream, COUNT);
  hip.hipStreamSynchronize(stream);
  assert_int_equal(settle(COUNT).sides[0], COUNT);
  assert_int_equal(prof_stop(), PROF_OK);
}

/* In a process that finds it: prof has loaded it then, and not the program. */
static void also_where_the_named_ones_library_is_installed(void **state) {
  static const char again[] = "PROF_TEST_AGAIN";
  char folder[512];
  if (getenv(again)) {
    by_another_vendors_name_it_is_said_which_is_meant(state);
    assert_int_equal(state_of_back_end("cuda").result, PROF_BACKEND_NOT_READY);
    return;
  }
  snprintf(folder, sizeof folder, "%s/vendors", getenv("PROF_TEST_PLUGIN_DIR"));
  setenv("LD_LIBRARY_PATH", folder, 1);
  setenv(again, "1", 1);
  alone_run("also_where_the_named_ones_library_is_installed");
}

/* ---- devices and streams ---- */

static void a_default_stream_is_the_current_devices(void **state) {
  (void)state;
  int current;
  load_6();
  assert_int_equal(prof_start(1), PROF_OK);
  for (int round = 0; round < 3; round++) {
    for (int i = 0; i < 2; i++) {
      assert_int_equal(hip.hipSetDevice(i), 0);
      launch(NULL, COUNT);
      hip.hipStreamSynchronize(NULL);
      assert_int_equal(hip.hipGetDevice(&current), 0);
      assert_int_equal(current, i);
    }
  }
  const sums s = settle(6 * COUNT);
  assert_int_equal(s.sides[0], 3 * COUNT);
  assert_int_equal(s.sides[1], 3 * COUNT);
  assert_int_equal(s.times + s.late, 0);
  assert_int_equal(prof_stop(), PROF_OK);
}

static void a_streams_device_is_its_own(void **state) {
  (void)state;
  int current;
  load_6();
  void *const stream = make_stream(1);
  assert_int_equal(hip.hipSetDevice(0), 0);
  assert_int_equal(prof_start(1), PROF_OK);
  launch(stream, COUNT); /* as device 0's, which it is not, and device 0 is the current one */
  hip.hipStreamSynchronize(stream);
  const sums s = settle(COUNT);
  assert_int_equal(s.sides[1], COUNT);
  assert_int_equal(s.sides[0] + s.times + s.late, 0);
  assert_int_equal(hip.hipGetDevice(&current), 0);
  assert_int_equal(current, 0);
  assert_int_equal(prof_stop(), PROF_OK);
}

/* HIP 5 does not tell a stream's device: it is the current one, or the scope's device side is lost
   and told. */
static void an_older_runtime(void **state) {
  (void)state;
  load("libamdhip64.so.5");
  void *const stream = make_stream(1);
  assert_int_equal(prof_start(1), PROF_OK);
  launch(stream, COUNT);
  hip.hipStreamSynchronize(stream);
  sums s = settle(COUNT);
  assert_int_equal(s.sides[1], COUNT);
  assert_int_equal(s.times + s.late, 0);
  assert_int_equal(hip.hipSetDevice(0), 0);
  void *const other = make_stream(1);
  assert_int_equal(hip.hipSetDevice(0), 0);
  launch(other, COUNT);
  hip.hipStreamSynchronize(other);
  s = settle(2 * COUNT);
  assert_int_equal(s.sides[0] + s.sides[1], COUNT);
  assert_int_equal(s.times, COUNT);
  assert_non_null(strstr(s.reason, "hipErrorInvalidHandle (400)"));
  assert_int_equal(prof_stop(), PROF_OK);
}

/* A launch that failed is found by hipGetLastError() behind its scope, as without one: before HIP 7
   any call that goes well would take that away. */
static void the_programs_error_is_left_to_it(void **state) {
  (void)state;
  load_6();
  void *const stream = make_stream(0);
  assert_int_equal(prof_start(1), PROF_OK);
  assert_int_equal(hip.hipSetDevice(99), 101);
  launch(stream, 0);
  WITH_HIP_PROFILER(device, handle_of(stream), "first of all", "test", PROF_NO_ARGS, {});
  assert_int_equal(hip.hipGetLastError(), 101);
  launch(stream, COUNT);
  WITH_HIP_PROFILER(device, handle_of(stream), "fails", "test", PROF_NO_ARGS,
                    { hip.hipSetDevice(99); });
  assert_int_equal(hip.hipGetLastError(), 101);
  hip.hipSetDevice(99);
  WITH_HIP_PROFILER(device, handle_of(stream), "behind one", "test", PROF_NO_ARGS, {});
  assert_int_equal(hip.hipGetLastError(), 101);
  launch(stream, COUNT);
  hip.hipStreamSynchronize(stream);
  const sums s = settle(2 * COUNT + 2);
  assert_int_equal(s.sides[0], 2 * COUNT);
  assert_int_equal(s.times, 2);
  assert_non_null(strstr(state_of_back_end("hip").reason, "hipGetLastError()"));
  assert_int_equal(prof_stop(), PROF_OK);
}

static void a_stream_that_has_gone(void **state) {
  (void)state;
  load_6();
  void *const stream = make_stream(0);
  assert_int_equal(prof_start(1), PROF_OK);
  launch(stream, COUNT);
  hip.hipStreamSynchronize(stream);
  assert_int_equal(hip.hipStreamDestroy(stream), 0);
  for (int i = 0; i < COUNT; i++)
    WITH_HIP_PROFILER(device, handle_of(stream), "gone", "test", PROF_NO_ARGS, {});
  const sums s = settle(2 * COUNT);
  assert_int_equal(s.sides[0], COUNT);
  assert_int_equal(s.times, COUNT);
  assert_int_equal(hip.hipGetLastError(), 0); /* the program does not see prof's own error */
  assert_non_null(strstr(state_of_back_end("hip").reason, "works, but not on stream"));
  assert_non_null(strstr(state_of_back_end("hip").reason, "hipErrorInvalidHandle (400)"));
  assert_int_equal(prof_stop(), PROF_OK);
}

/* ---- graphs ---- */

static void a_captured_stream_has_nothing_put_on_it(void **state) {
  (void)state;
  void *graph;
  load_6();
  void *const stream = make_stream(0);
  assert_int_equal(prof_start(1), PROF_OK);
  launch(stream, COUNT);
  hip.hipStreamSynchronize(stream);
  assert_int_equal(hip.hipStreamBeginCapture(stream, CAPTURE_GLOBAL), 0);
  for (int i = 0; i < COUNT; i++)
    WITH_HIP_PROFILER(device, handle_of(stream), "into the graph", "test", PROF_NO_ARGS, {});
  WITH_HIP_PROFILER(device, 0, "the default stream, meanwhile", "test", PROF_NO_ARGS, {});
  assert_int_equal(hip.hipStreamEndCapture(stream, &graph), 0);
  launch(stream, COUNT);
  hip.hipStreamSynchronize(stream);
  const sums s = settle(2 * COUNT);
  assert_int_equal(s.sides[0], 2 * COUNT);
  assert_int_equal(s.captured, COUNT + 1);
  assert_int_equal(s.times + s.late, 0);
  assert_int_equal(runtime->captured_records, 0);
  assert_int_equal(prof_stop(), PROF_OK);
}

static void the_collector_breaks_no_capture(void **state) {
  (void)state;
  enum { ROUNDS = 50 };
  void *graph;
  load_6();
  void *const captured = make_stream(0), *const busy = make_stream(0);
  assert_int_equal(prof_start(1), PROF_OK);
  for (int i = 0; i < ROUNDS; i++) {
    assert_int_equal(hip.hipStreamBeginCapture(captured, CAPTURE_GLOBAL), 0);
    launch(busy, COUNT);
    usleep(3000);
    assert_int_equal(hip.hipStreamEndCapture(captured, &graph), 0);
    hip.hipStreamSynchronize(busy);
  }
  const sums s = settle(ROUNDS * COUNT);
  assert_int_equal(s.sides[0], ROUNDS * COUNT);
  assert_int_equal(s.times + s.late, 0);
  assert_int_equal(runtime->broken_captures, 0);
  assert_int_equal(prof_stop(), PROF_OK);
}

/* ---- errors, and what is given back ---- */

static void what_the_runtime_refuses_is_lost_and_told(void **state) {
  (void)state;
  load_6();
  void *const stream = make_stream(0);
  assert_int_equal(prof_start(1), PROF_OK);
  runtime->record_error = 999;
  launch(stream, COUNT);
  runtime->record_error = 0;
  runtime->elapsed_error = 999;
  launch(stream, COUNT);
  hip.hipStreamSynchronize(stream);
  const sums s = settle(2 * COUNT);
  /* the first one's begin is the zero, which needs no distance */
  assert_in_range(s.times, 2 * COUNT - 1, 2 * COUNT);
  assert_int_equal(prof_stop(), PROF_OK);
}

/* Said, and tried again by each scope: the program may give some back. Nothing is left that the
   program would take for its own error. */
static void no_memory_for_an_event_is_said(void **state) {
  (void)state;
  load_6();
  void *const stream = make_stream(0);
  assert_int_equal(prof_start(1), PROF_OK);
  runtime->create_error = 2;
  launch(stream, COUNT);
  sums s = settle(COUNT);
  assert_int_equal(s.times, COUNT);
  assert_int_equal(s.result, PROF_BACKEND_NO_MEMORY);
  assert_non_null(
      strstr(s.reason, "hipEventCreateWithFlags: hipErrorOutOfMemory (2), out of memory"));
  assert_int_equal(hip.hipGetLastError(), 0);
  runtime->create_error = 0;
  launch(stream, COUNT);
  hip.hipStreamSynchronize(stream);
  s = settle(2 * COUNT);
  assert_int_equal(s.sides[0], COUNT);
  assert_int_equal(s.times, COUNT);
  assert_int_equal(prof_stop(), PROF_OK);
}

/* All calls return the error from then on, and it is the program's: its own calls return it, too,
   and prof takes it from no thread. Once it is known, prof makes no more calls. */
static void after_a_kernel_that_went_wrong_nothing_is_asked(void **state) {
  (void)state;
  load_6();
  void *const stream = make_stream(0);
  assert_int_equal(prof_start(1), PROF_OK);
  launch(stream, COUNT);
  hip.hipStreamSynchronize(stream);
  assert_int_equal(settle(COUNT).sides[0], COUNT);
  __atomic_store_n(&runtime->last_error, 700, __ATOMIC_RELAXED);
  WITH_HIP_PROFILER(device, handle_of(stream), "meets it", "test", PROF_NO_ARGS, {});
  assert_int_equal(hip.hipGetLastError(), 700);
  const uint32_t asked = __atomic_load_n(&runtime->after_last, __ATOMIC_RELAXED);
  for (int session = 0; session < 2; session++) {
    for (int i = 0; i < COUNT; i++)
      WITH_HIP_PROFILER(device, handle_of(stream), "behind it", "test", PROF_NO_ARGS, {});
    WITH_HIP_PROFILER(device, 0, "on another stream", "test", PROF_NO_ARGS, {});
    assert_int_equal(prof_stop(), PROF_OK);
    assert_int_equal(prof_start(1), PROF_OK);
  }
  sums s = look();
  assert_int_equal(s.sides[0], COUNT);
  assert_int_equal(s.times, 2 * COUNT + 3);
  assert_int_equal(s.result, PROF_BACKEND_OK);
  /* The capture has it, too, once the collector has said so. */
  for (unsigned naps = 0; !strstr(s.reason, "(700)") && hang_nap(&naps); s = look()) continue;
  assert_non_null(strstr(s.reason, "hipErrorIllegalAddress (700)"));
  assert_int_equal(__atomic_load_n(&runtime->after_last, __ATOMIC_RELAXED), asked);
  assert_int_equal(hip.hipStreamSynchronize(stream), 700);
  assert_non_null(strstr(state_of_back_end("hip").reason,
                         "hipErrorIllegalAddress (700), an illegal memory access was encountered: "
                         "no more HIP in this process"));
  assert_int_equal(prof_stop(), PROF_OK);
}

/* ---- what is current ---- */

/* Whatever the runtime says, each scope leaves the thread's device and its last error as they
   were. */
static void *looks_at_devices(void *stream) {
  for (int i = 0; i < 4; i++) {
    int before = -1, within = -1, after = -1;
    hip.hipSetDevice(i % 2);
    hip.hipGetDevice(&before);
    const int error = hip.hipGetLastError();
    WITH_HIP_PROFILER(device, i == 1 ? 0 : handle_of(stream), "looks", "test", PROF_NO_ARGS,
                      { hip.hipGetDevice(&within); });
    if (hip.hipGetLastError() != error) return "the last error is not as it was";
    hip.hipGetDevice(&after);
    if (before != within || before != after) return "the device is not as it was";
  }
  return NULL;
}

static void the_current_device_is_the_programs(void **state) {
  (void)state;
  enum { FAULTS = 6 };
  load_6();
  void *const stream = make_stream(1);
  assert_int_equal(prof_start(1), PROF_OK);
  for (int fault = 0; fault < FAULTS; fault++) {
    void *why;
    pthread_t other;
    runtime->create_error = fault == 1 ? 2 : 0;
    runtime->record_error = fault == 2 ? 400 : 0;
    if (fault == 3) assert_int_equal(hip.hipStreamBeginCapture(stream, CAPTURE_GLOBAL), 0);
    if (fault == 4) hip.hipStreamDestroy(stream);
    if (fault == 5) __atomic_store_n(&runtime->last_error, 719, __ATOMIC_RELAXED);
    assert_int_equal(pthread_create(&other, NULL, looks_at_devices, stream), 0);
    assert_int_equal(pthread_join(other, &why), 0);
    if (why) fail_msg("fault %d: %s", fault, (const char *)why);
  }
  assert_int_equal(prof_stop(), PROF_OK);
}

static void events_are_given_back(void **state) {
  (void)state;
  enum { MANY = 5000 };
  load_6();
  void *const stream = make_stream(0);
  assert_int_equal(prof_start(1), PROF_OK);
  for (int i = 0; i < MANY; i++) {
    WITH_HIP_PROFILER(device, handle_of(stream), "short", "test", PROF_NO_ARGS, {});
    if (i % 100 != 99) continue;
    hip.hipStreamSynchronize(stream);
    settle((uint64_t)i + 1);
  }
  const sums s = settle(MANY);
  assert_int_equal(s.sides[0], MANY);
  assert_in_range(runtime->events, 2, 2000);
  assert_int_equal(prof_stop(), PROF_OK);
}

static void a_child_leaves_it_alone(void **state) {
  (void)state;
  int status = -1;
  load_6();
  void *const stream = make_stream(0);
  assert_int_equal(prof_start(1), PROF_OK);
  launch(stream, COUNT);
  hip.hipStreamSynchronize(stream);
  settle(COUNT);
  const pid_t child = fork();
  if (child == 0) {
    const uint32_t calls = runtime->calls;
    for (int i = 0; i < COUNT; i++)
      WITH_HIP_PROFILER(device, handle_of(stream), "the parent's", "test", PROF_NO_ARGS, {});
    prof_stop();
    _exit(runtime->calls == calls ? 0 : 1);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  assert_int_equal(look().sides[0], COUNT);
  assert_int_equal(prof_stop(), PROF_OK);
}

#define TESTS(X)                                       \
  X(a_program_without_hip_never_has_its_library)       \
  X(a_runtime_that_nobody_uses_is_left_alone)          \
  X(its_devices_are_described)                         \
  X(a_runtime_without_devices_says_so)                 \
  X(a_user_who_is_not_in_the_group_is_told_so)         \
  X(a_render_node_that_is_not_the_users_is_said)       \
  X(a_container_without_render_nodes_is_told_so)       \
  X(devices_that_are_hidden_are_not_missed)            \
  X(by_another_vendors_name_it_is_said_which_is_meant) \
  X(also_where_the_named_ones_library_is_installed)    \
  X(a_default_stream_is_the_current_devices)           \
  X(a_streams_device_is_its_own)                       \
  X(an_older_runtime)                                  \
  X(the_programs_error_is_left_to_it)                  \
  X(a_stream_that_has_gone)                            \
  X(a_captured_stream_has_nothing_put_on_it)           \
  X(the_collector_breaks_no_capture)                   \
  X(what_the_runtime_refuses_is_lost_and_told)         \
  X(no_memory_for_an_event_is_said)                    \
  X(after_a_kernel_that_went_wrong_nothing_is_asked)   \
  X(the_current_device_is_the_programs)                \
  X(events_are_given_back)                             \
  X(a_child_leaves_it_alone)
ALONE_TESTS

int main(int argc, char **argv) { return alone_main(argc, argv); }
