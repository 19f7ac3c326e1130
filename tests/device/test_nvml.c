/* NVIDIA's meters on an emulated NVML (vendors/nvml.c: no device is behind it). Units, CSV, CUDA's
   numbers for its devices, what is not supported, what is lost, what does not begin. Also a program
   that samples and does not use CUDA. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <prof/device.h>
#include <prof/profiler.h>
#include <prof/sampler.h>
#include <prof/trace.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "alone.h"
#include "hang_guard.h"
#include "sampled.h"
#include "told.h"
#include "vendors/cuda.h"
#include "vendors/nvml.h"

#if defined(__SANITIZE_THREAD__)
enum { WITH_TSAN = 1 }; /* which lets no child of a fork from among threads make threads */
#else
enum { WITH_TSAN = 0 };
#endif

enum { INTERVAL_NS = 2000000, METERS_OF_A_DEVICE = 9 };

static char folder[64];
static emulated_nvml *nvml;

static void *open_vendors(const char *file) {
  char path[512];
  snprintf(path, sizeof path, "%s/vendors/%s", getenv("PROF_TEST_PLUGIN_DIR"), file);
  void *const library = dlopen(path, RTLD_NOW);
  if (!library) fail_msg("%s", dlerror());
  return library;
}

static void begin(void) {
  emulated_nvml *(*state)(void);
  strcpy(folder, "/tmp/prof-nvml-XXXXXX");
  assert_non_null(mkdtemp(folder));
  setenv("PROF_SYSFS_ROOT", folder, 1); /* the host has no meters */
  *(void **)&state = dlsym(open_vendors("libnvidia-ml.so.1"), "emulated_nvml_state");
  nvml = state();
}

/* The program's own use of CUDA. */
static void begin_cuda(void) {
  int (*init)(unsigned flags);
  int (*make_context)(void **out, unsigned flags, int device);
  void *context, *const library = open_vendors("libcuda.so.1");
  *(void **)&init = dlsym(library, "cuInit");
  *(void **)&make_context = dlsym(library, "cuCtxCreate_v2");
  assert_int_equal(init(0), 0);
  assert_int_equal(make_context(&context, 0, 0), 0);
}

static prof_sampler_state state_now(void) {
  prof_sampler_state now = {.size = sizeof now};
  assert_int_equal(prof_sampler_get(&now), PROF_OK);
  return now;
}

static void sample_with(const prof_sampler_options *options, uint64_t count) {
  if (prof_sampler_start(options) != PROF_OK) fail_msg("%s", prof_last_error());
  WAIT_WHILE(state_now().sample_count < count);
  stop_sampler();
}

static int by_value(const void *a, const void *b) {
  return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

/* A counter's last value; its device's index is that of its row. -1: there is none. */
static double middle; /* of its values: half of them are not above it */
static double value_of(const char *name, int32_t index) {
  enum { VALUES = 4096 };
  static double values[VALUES];
  static prof_event event;
  size_t count = 0;
  prof_trace *trace = NULL;
  prof_cursor *cursor = NULL;
  double value = -1;
  assert_int_equal(prof_get(&trace), PROF_OK);
  assert_int_equal(prof_cursor_create(trace, &cursor), PROF_OK);
  while (prof_cursor_next(cursor, &event) == 1) {
    if (event.kind != PROF_EVENT_COUNTER || event.name_bytes != strlen(name) ||
        memcmp(event.name, name, event.name_bytes) != 0)
      continue;
    assert_int_equal(event.device.type, PROF_DEVICE_CUDA);
    assert_int_equal(event.device.index, index);
    value = event.value;
    if (count < VALUES) values[count++] = value;
  }
  qsort(values, count, sizeof *values, by_value);
  middle = count ? values[count / 2] : -1;
  prof_cursor_destroy(cursor);
  prof_trace_destroy(trace);
  return value;
}

static const char *read_csv(void) {
  static char text[1 << 16];
  char path[128];
  snprintf(path, sizeof path, "%s/out.csv", folder);
  FILE *const file = fopen(path, "r");
  assert_non_null(file);
  text[fread(text, 1, sizeof text - 1, file)] = '\0';
  fclose(file);
  return text;
}

static prof_sampler_options options_of(uint32_t mode, const char *devices) {
  static char path[128];
  snprintf(path, sizeof path, "%s/out.csv", folder);
  return (prof_sampler_options){.size = sizeof(prof_sampler_options),
                                .interval_ns = INTERVAL_NS,
                                .mode = mode,
                                .devices = devices,
                                .csv_path = path};
}

static void drop_folder(void) {
  char command[128];
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  assert_int_equal(system(command), 0);
}

static void each_meter_has_its_unit(void **state) {
  (void)state;
  const prof_sampler_options options = {.size = sizeof options, .interval_ns = INTERVAL_NS};
  assert_int_equal(prof_start(1), PROF_OK);
  sample_with(&options, 20);
  assert_int_equal(state_now().meter_count, METERS_OF_A_DEVICE * EMULATED_NVML_DEVICES);
  assert_true(value_of("nvml:0 power (W)", 0) == 100);
  assert_true(value_of("nvml:2 power (W)", 2) == 75.5);
  value_of("nvml:1 average power (W)", 1);
  /* each is as wrong as long as the sampler had no processor between what it read and the time of
     that */
  assert_true(middle > 200 && middle < 300);
  /* without what the driver keeps for itself */
  assert_true(value_of("nvml:1 memory used (B)", 1) == 20.0 * (1 << 30));
  assert_true(value_of("nvml:0 utilisation (%)", 0) == 40);
  assert_true(value_of("nvml:2 memory utilisation (%)", 2) == 22);
  assert_true(value_of("nvml:0 clock (Hz)", 0) == 1980e6);
  assert_true(value_of("nvml:0 memory clock (Hz)", 0) == 2619e6);
  assert_true(value_of("nvml:1 temperature (degC)", 1) == 51);
  assert_true(value_of("nvml:1 throttle reasons (bits)", 1) == 4);
  assert_int_equal(prof_stop(), PROF_OK);
  assert_null(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD)); /* who samples need not use CUDA */
  drop_folder();
}

static void the_csv_is_as_madengines(void **state) {
  (void)state;
  const prof_sampler_options power = options_of(PROF_SAMPLE_POWER, "0,1");
  sample_with(&power, 5);
  assert_non_null(strstr(read_csv(), "time,Power(Watt) GPU0,Power(Watt) GPU1\n"));
  assert_non_null(strstr(read_csv(), ",100.00,250.00\n"));
  const prof_sampler_options vram = options_of(PROF_SAMPLE_VRAM, "all");
  sample_with(&vram, 5);
  assert_non_null(strstr(read_csv(), "time,vram(%) GPU0,vram(%) GPU1,vram(%) GPU2\n"));
  assert_non_null(strstr(read_csv(), ",1.25,25.00,0.00\n"));
  drop_folder();
}

/* NVML counts by the bus, CUDA by what is fastest, and without what is hidden: by their UUIDs they
   are the same. */
static void devices_have_cudas_numbers(void **state) {
  (void)state;
  const prof_sampler_options options = {.size = sizeof options, .interval_ns = INTERVAL_NS};
  begin_cuda();
  assert_int_equal(prof_start(1), PROF_OK);
  WITH_GPU_PROFILER(((prof_device){PROF_DEVICE_CUDA, 0}), 0, "the program uses CUDA", "test",
                    PROF_NO_ARGS, {});
  sample_with(&options, 20);
  assert_true(value_of("nvml:0 power (W)", 0) == 250);
  assert_true(value_of("nvml:1 power (W)", 1) == 100);
  /* hidden from CUDA: behind those that it sees */
  assert_true(value_of("nvml:2 power (W)", 2) == 75.5);
  assert_int_equal(prof_stop(), PROF_OK);
  drop_folder();
}

/* No scope so far: the program has begun with CUDA, that will do. */
static void a_sampler_that_comes_first_has_them_too(void **state) {
  (void)state;
  const prof_sampler_options options = {.size = sizeof options, .interval_ns = INTERVAL_NS};
  begin_cuda();
  assert_int_equal(prof_start(1), PROF_OK);
  sample_with(&options, 5);
  assert_true(value_of("nvml:0 power (W)", 0) == 250);
  assert_true(value_of("nvml:1 power (W)", 1) == 100);
  assert_int_equal(prof_stop(), PROF_OK);
  drop_folder();
}

static void what_is_not_supported_is_left_out(void **state) {
  (void)state;
  const prof_sampler_options options = {.size = sizeof options, .interval_ns = INTERVAL_NS};
  nvml->lacks_energy = 1;
  sample_with(&options, 3);
  assert_int_equal(state_now().meter_count, (METERS_OF_A_DEVICE - 1) * EMULATED_NVML_DEVICES);
  drop_folder();
}

/* CUDA sees an instance as its device 0, and no whole device. */
static void instances_have_cudas_numbers(void **state) {
  (void)state;
  const prof_sampler_options options = {.size = sizeof options, .interval_ns = INTERVAL_NS};
  emulated_cuda *(*cuda)(void);
  *(void **)&cuda = dlsym(open_vendors("libcuda.so.1"), "emulated_cuda_state");
  cuda()->device_count = 1;
  cuda()->uuid = 0x44;
  nvml->is_divided = 1;
  begin_cuda();
  assert_int_equal(prof_start(1), PROF_OK);
  WITH_GPU_PROFILER(((prof_device){PROF_DEVICE_CUDA, 0}), 0, "the program uses CUDA", "test",
                    PROF_NO_ARGS, {});
  sample_with(&options, 20);
  assert_true(value_of("nvml:0 memory used (B)", 0) == 4.0 * (1 << 30));
  assert_true(value_of("nvml:1 power (W)", 1) == 100);
  assert_true(value_of("nvml:4 memory used (B)", 4) == 3.0 * (1 << 30));
  assert_int_equal(prof_stop(), PROF_OK);
  drop_folder();
}

static void a_device_that_is_lost_leaves_a_gap(void **state) {
  (void)state;
  const prof_sampler_options power = options_of(PROF_SAMPLE_POWER, "0,1");
  assert_int_equal(prof_sampler_start(&power), PROF_OK);
  WAIT_WHILE(state_now().sample_count < 3);
  __atomic_store_n(&nvml->lost_device, 2, __ATOMIC_RELAXED);
  const uint64_t then = state_now().sample_count;
  WAIT_WHILE(state_now().sample_count < then + 5);
  stop_sampler();
  assert_non_null(strstr(read_csv(), ",100.00,250.00\n"));
  assert_non_null(strstr(read_csv(), ",100.00,N/A\n"));
  drop_folder();
}

/* To ask for its state opens the library, and touches no device. */
static void to_ask_for_its_state_does_not_begin_with_it(void **state) {
  (void)state;
  assert_int_equal(state_of_back_end("nvml").result, PROF_BACKEND_OK);
  assert_int_equal(nvml->init_count, 0);
  sample_with(NULL, 1);
  assert_int_equal(nvml->init_count, 1);
  sample_with(NULL, 1);
  assert_int_equal(nvml->init_count, 1);
  drop_folder();
}

static void does_not_begin(int32_t error, int32_t result, const char *reason) {
  nvml->init_error = error;
  assert_int_equal(prof_sampler_start(NULL), PROF_E_NOT_FOUND);
  const prof_backend_state told = state_of_back_end("nvml");
  assert_int_equal(told.result, result);
  assert_string_equal(told.reason, reason);
  drop_folder();
}
static void a_driver_that_is_not_loaded_is_said(void **state) {
  (void)state;
  does_not_begin(9, PROF_BACKEND_NO_DEVICE, "nvmlInit_v2: Driver Not Loaded (9)");
}
static void a_driver_of_another_release_is_said(void **state) {
  (void)state;
  does_not_begin(18, PROF_BACKEND_VERSION,
                 "nvmlInit_v2: Driver/library version mismatch (18): the kernel's module is of "
                 "another release than the library: restart the machine, or load the module anew");
}
static void a_user_without_rights_is_told_so(void **state) {
  (void)state;
  does_not_begin(4, PROF_BACKEND_PERMISSION,
                 "nvmlInit_v2: Insufficient Permissions (4): /dev/nvidiactl and /dev/nvidia0 are "
                 "not this user's to open");
}

/* MIG: the instances are devices of their own, and CUDA's where it has them by their UUIDs; what is
   not told of them, or of the whole, is left out. */
static void one_that_is_divided_has_its_instances(void **state) {
  (void)state;
  const prof_sampler_options options = {.size = sizeof options, .interval_ns = INTERVAL_NS};
  nvml->is_divided = 1;
  assert_int_equal(prof_start(1), PROF_OK);
  sample_with(&options, 20);
  assert_int_equal(state_now().meter_count,
                   METERS_OF_A_DEVICE * EMULATED_NVML_DEVICES - 2 + EMULATED_NVML_INSTANCES);
  assert_true(value_of("nvml:2 power (W)", 2) == 75.5);
  assert_true(value_of("nvml:2 utilisation (%)", 2) == -1);
  assert_true(value_of("nvml:3 memory used (B)", 3) == 3.0 * (1 << 30));
  assert_true(value_of("nvml:4 memory used (B)", 4) == 4.0 * (1 << 30));
  assert_true(value_of("nvml:3 power (W)", 3) == -1);
  assert_string_equal(state_of_back_end("nvml").reason,
                      "works, but device 2 is divided (MIG): its utilisation is not told, and of "
                      "its instances, which have numbers of their own, memory alone");
  assert_int_equal(prof_stop(), PROF_OK);
  drop_folder();
}

/* The meters are the parent's; CUDA is free for a child that begins with it itself. */
static void a_forked_child_may_use_cuda(void **state) {
  (void)state;
  const prof_sampler_options options = {.size = sizeof options, .interval_ns = INTERVAL_NS};
  int status = -1;
  if (WITH_TSAN) {
    drop_folder();
    puts("skip: ThreadSanitizer lets no forked child make threads");
    skip();
  }
  assert_int_equal(prof_sampler_start(&options), PROF_OK);
  fflush(NULL);
  const pid_t child = fork();
  if (child == 0) {
    begin_cuda();
    if (prof_start(1) != PROF_OK) _exit(1);
    for (int i = 0; i < 10; i++)
      WITH_GPU_PROFILER(((prof_device){PROF_DEVICE_CUDA, 0}), 0, "a child's", "test", PROF_NO_ARGS,
                        {});
    for (unsigned naps = 0; hang_nap(&naps);) {
      prof_trace *trace;
      prof_trace_device about = {.size = sizeof about};
      if (prof_get(&trace) != PROF_OK) _exit(2);
      const bool is_there =
          prof_trace_device_get(trace, 0, &about) == PROF_OK && about.scope_count == 10;
      prof_trace_destroy(trace);
      if (is_there) _exit(0);
    }
    _exit(3);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  stop_sampler();
  drop_folder();
}

#define TESTS(X)                                 \
  X(each_meter_has_its_unit)                     \
  X(the_csv_is_as_madengines)                    \
  X(devices_have_cudas_numbers)                  \
  X(a_sampler_that_comes_first_has_them_too)     \
  X(what_is_not_supported_is_left_out)           \
  X(a_device_that_is_lost_leaves_a_gap)          \
  X(to_ask_for_its_state_does_not_begin_with_it) \
  X(a_driver_that_is_not_loaded_is_said)         \
  X(a_driver_of_another_release_is_said)         \
  X(a_user_without_rights_is_told_so)            \
  X(one_that_is_divided_has_its_instances)       \
  X(instances_have_cudas_numbers)                \
  X(a_forked_child_may_use_cuda)
ALONE_TESTS

int main(int argc, char **argv) { return alone_main(argc, argv); }
