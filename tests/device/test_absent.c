/* A program that uses no device: nothing of any vendor's is opened, whatever is recorded, and
   nothing is said. What it costs to ask for records of devices, bench/start.c measures. */
#define _GNU_SOURCE
#include <link.h>
#include <prof/profiler.h>
#include <prof/sampler.h>
#include <prof/trace.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "alone.h"

static void begin(void) {}

/* ---- what is present ---- */

static int is_vendors(struct dl_phdr_info *info, size_t bytes, void *found) {
  static const char *const names[] = {
      "libcuda.so",     "libcudart",    "libcupti",       "libnvidia-ml", "libamdhip64",
      "librocprofiler", "libroctracer", "librocm_smi64",  "libamd_smi",   "libhsa-runtime64",
      "libOpenCL",      "libze_loader", "libprof_opencl", "libprof_cuda"};
  const char *const slash = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL,
                    *const name = slash ? slash + 1 : info->dlpi_name;
  (void)bytes;
  for (size_t i = 0; name && i < sizeof names / sizeof *names; i++)
    if (strncmp(name, names[i], strlen(names[i])) == 0)
      return *(const char **)found = info->dlpi_name, 1;
  return 0;
}

static void nothing_is_open(const char *when) {
  const char *found = NULL;
  if (dl_iterate_phdr(is_vendors, &found)) fail_msg("%s: %s is there", when, found);
}

static void record(uint32_t devices) {
  const prof_options options = {.size = sizeof options, .level = 2, .devices = devices};
  assert_int_equal(prof_start_with(&options), PROF_OK);
  WITH_BASE_PROFILER(PROF_HOST, "host", "test", PROF_NO_ARGS, {});
  WITH_GPU_PROFILER(((prof_device){PROF_DEVICE_VULKAN, 0}), 4096, "nobody's", "test", PROF_NO_ARGS,
                    {});
  assert_int_equal(prof_stop(), PROF_OK);
}

/* All there are, and as the environment has it. */
static void no_vendors_library_is_opened(void **state) {
  (void)state;
  const prof_sampler_options hosts = {.size = sizeof hosts, .devices = "host"};
  nothing_is_open("before");
  record(PROF_DEVICES_DEFAULT);
  nothing_is_open("scopes and layers");
  record(PROF_DEVICES_SCOPES);
  record(PROF_DEVICES_RECORDS);
  nothing_is_open("records");
  record(PROF_DEVICES_MEMORY);
  nothing_is_open("memory");
  if (prof_sampler_start(&hosts) == PROF_OK) prof_sampler_stop();
  nothing_is_open("the host's meters");
  assert_int_equal(prof_dump("/dev/null"), PROF_OK);
  nothing_is_open("a file");
}

/* In a program that the environment has record. */
static void nor_where_the_environment_asks(void **state) {
  (void)state;
  if (!getenv("PROF_LEVEL")) {
    setenv("PROF_LEVEL", "2", 1);
    setenv("PROF_DEVICES", "records", 1);
    execl("/proc/self/exe", "absent", __func__, (char *)NULL);
    fail_msg("%s", "exec");
  }
  WITH_BASE_PROFILER(PROF_HOST, "host", "test", PROF_NO_ARGS, {});
  assert_int_equal(prof_level(), 2);
  nothing_is_open("the environment");
  assert_int_equal(prof_stop(), PROF_OK);
  nothing_is_open("the environment's end");
}

static void nothing_is_said(void **state) {
  (void)state;
  char path[] = "/tmp/prof-absent-XXXXXX";
  struct stat about;
  const int file = mkstemp(path), kept = dup(2);
  assert_true(file >= 0 && kept >= 0 && dup2(file, 2) == 2);
  record(PROF_DEVICES_RECORDS);
  for (int i = 0; i < 3; i++)
    WITH_GPU_PROFILER(((prof_device){PROF_DEVICE_CUDA, 0}), 4096, "nowhere", "test", PROF_NO_ARGS,
                      {});
  record(PROF_DEVICES_MEMORY);
  assert_int_equal(dup2(kept, 2), 2);
  assert_int_equal(fstat(file, &about), 0);
  unlink(path);
  assert_int_equal(about.st_size, 0);
}

/* A cluster's devices by one number each: many thousand. Each is found again among them, so the
   second round adds none. */
static void each_of_many_devices_is_one(void **state) {
  (void)state;
  enum { DEVICES = 20000, ROUNDS = 2 };
  const prof_options options = {.size = sizeof options, .cap_bytes = 256 << 20};
  prof_trace *trace = NULL;
  prof_trace_info info = {.size = sizeof info};
  assert_int_equal(prof_start_with(&options), PROF_OK);
  for (int round = 0; round < ROUNDS; round++)
    for (int i = 0; i < DEVICES; i++)
      WITH_GPU_PROFILER(((prof_device){PROF_DEVICE_VULKAN, i}), (uint64_t)i, "kernel", "test",
                        PROF_NO_ARGS, {});
  assert_int_equal(prof_stop(), PROF_OK);
  assert_int_equal(prof_get(&trace), PROF_OK);
  assert_int_equal(prof_trace_info_get(trace, &info), PROF_OK);
  assert_int_equal(info.scope_count, ROUNDS * DEVICES);
  assert_int_equal(info.device_count, DEVICES);
  for (uint32_t i = 0; i < DEVICES; i++) {
    prof_trace_device device = {.size = sizeof device};
    assert_int_equal(prof_trace_device_get(trace, i, &device), PROF_OK);
    assert_int_equal(device.device.index, i);
  }
  prof_trace_destroy(trace);
}

#define TESTS(X)                    \
  X(no_vendors_library_is_opened)   \
  X(nor_where_the_environment_asks) \
  X(nothing_is_said)                \
  X(each_of_many_devices_is_one)
ALONE_TESTS

int main(int argc, char **argv) { return alone_main(argc, argv); }
