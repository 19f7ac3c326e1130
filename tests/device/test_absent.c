/* A program that uses no device: nothing of any vendor's is opened, whatever is recorded, nothing is said, and to ask for records of devices costs a start next to nothing. */
#define _GNU_SOURCE
#include <link.h>
#include <prof/profiler.h>
#include <prof/sampler.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "alone.h"

static void begin(void) {}

/* ---- what is there ---- */

static int is_vendors(struct dl_phdr_info *info, size_t bytes, void *found) {
  static const char *const names[] = {"libcuda.so", "libcudart", "libcupti", "libnvidia-ml", "libamdhip64", "librocprofiler", "libroctracer", "librocm_smi64", "libamd_smi", "libhsa-runtime64", "libOpenCL", "libze_loader", "libprof_opencl", "libprof_cuda"};
  const char *const slash = info->dlpi_name ? strrchr(info->dlpi_name, '/') : NULL, *const name = slash ? slash + 1 : info->dlpi_name;
  (void)bytes;
  for (size_t i = 0; name && i < sizeof names / sizeof *names; i++)
    if (strncmp(name, names[i], strlen(names[i])) == 0) return *(const char **)found = info->dlpi_name, 1;
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
  WITH_GPU_PROFILER(((prof_device){PROF_DEVICE_VULKAN, 0}), 4096, "nobody's", "test", PROF_NO_ARGS, {});
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
  for (int i = 0; i < 3; i++) WITH_GPU_PROFILER(((prof_device){PROF_DEVICE_CUDA, 0}), 4096, "nowhere", "test", PROF_NO_ARGS, {});
  record(PROF_DEVICES_MEMORY);
  assert_int_equal(dup2(kept, 2), 2);
  assert_int_equal(fstat(file, &about), 0);
  unlink(path);
  assert_int_equal(about.st_size, 0);
}

/* ---- what it costs ---- */

enum { ROUNDS = 200, BOUND_US = 100 };
static const double QUIET = 1.5;

typedef struct cost {
  uint64_t wall[ROUNDS], work[ROUNDS]; /* ns; work: of the processors, by all of the process's threads */
} cost;

static uint64_t now_ns(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void measure(uint32_t devices, cost *of, int round) {
  const prof_options options = {.size = sizeof options, .level = 1, .devices = devices};
  const uint64_t wall = now_ns(CLOCK_MONOTONIC), work = now_ns(CLOCK_PROCESS_CPUTIME_ID);
  assert_int_equal(prof_start_with(&options), PROF_OK);
  of->work[round] = now_ns(CLOCK_PROCESS_CPUTIME_ID) - work;
  of->wall[round] = now_ns(CLOCK_MONOTONIC) - wall;
  assert_int_equal(prof_stop(), PROF_OK);
}

static int by_size(const void *a, const void *b) {
  const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return x < y ? -1 : x > y;
}

static double us_of(uint64_t *all, int percent) {
  qsort(all, ROUNDS, sizeof *all, by_size);
  return (double)all[ROUNDS * percent / 100] / 1e3;
}

/* By turns, so that both have the same neighbours. Judged is the work, by as much more as a plain start does than at its least: a machine that is busy makes all work longer. How long it takes is judged where the machine is not: one that has no processor for a thread makes its start as long as it likes. */
static void a_start_that_asks_for_records_costs_little(void **state) {
  (void)state;
  static cost plain, records;
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  puts("skip: a sanitizer's times are none");
  skip();
#endif
  for (int i = 0; i < ROUNDS; i++) {
    measure(PROF_DEVICES_DEFAULT, &plain, i);
    measure(PROF_DEVICES_RECORDS, &records, i);
  }
  const double busy = us_of(plain.work, 50) / us_of(plain.work, 0), bound = BOUND_US * busy;
  print_message("  medians of %d: a start %.1f us, one that asks for records %.1f us; their work %.1f and %.1f us, %.2f times as long as at its least\n", ROUNDS, us_of(plain.wall, 50), us_of(records.wall, 50), us_of(plain.work, 50), us_of(records.work, 50), busy);
  if (us_of(plain.work, 50) > bound) fail_msg("a start takes %.1f us of the processors; %.1f are the bound", us_of(plain.work, 50), bound);
  if (us_of(records.work, 50) > bound) fail_msg("one that asks for records takes %.1f us of the processors; %.1f are the bound", us_of(records.work, 50), bound);
  if (busy < QUIET && us_of(records.wall, 10) > BOUND_US) fail_msg("one that asks for records takes %.1f us or more in nine of ten; %d are the bound", us_of(records.wall, 10), BOUND_US);
}

#define TESTS(X) X(no_vendors_library_is_opened) X(nor_where_the_environment_asks) X(nothing_is_said) X(a_start_that_asks_for_records_costs_little)
ALONE_TESTS

int main(int argc, char **argv) { return alone_main(argc, argv); }
