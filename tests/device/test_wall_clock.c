/* CLOCK_REALTIME is set back by an hour while somebody waits for a device, or a meter, which hang
   until the test lets them go: the wait ends all the same. A fork that waits: test_loader.c. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <prof/device.h>
#include <prof/profiler.h>
#include <prof/sampler.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "alone.h"
#include "collector.h"
#include "emulated/emulated.h"
#include "hang_guard.h"
#include "wall_clock.h"

static void begin(void) {
  hang_guard();
  emulated_fault.has_clock = 1;
  assert_int_equal(prof_backend_add(&emulated_backend), PROF_OK);
  __atomic_store_n(&wall_clock_will_be_set, 1, __ATOMIC_RELAXED);
}

/* Else the others would tell nothing. */
static void libraries_read_this_clock(void **state) {
  (void)state;
  struct timespec here, there;
  int (*read)(clockid_t, struct timespec *);
  *(void **)&read = dlsym(RTLD_DEFAULT, "clock_gettime");
  assert_int_equal(read(CLOCK_REALTIME, &here), 0);
  syscall(SYS_clock_gettime, CLOCK_REALTIME, &there);
  assert_in_range(here.tv_sec, there.tv_sec + WALL_CLOCK_SETTING_S - 1,
                  there.tv_sec + WALL_CLOCK_SETTING_S + 60);
}

static void a_stop_waits_no_longer_for_a_device(void **state) {
  (void)state;
  emulated_stream *const stream = emulated_create(0);
  assert_int_equal(prof_start(1), PROF_OK);
  __atomic_store_n(&emulated_fault.hangs, 1, __ATOMIC_RELAXED);
  WITH_GPU_PROFILER(((prof_device){EMULATED_TYPE, 0}), (uintptr_t)stream, "kernel", "test",
                    PROF_NO_ARGS, { emulated_launch(stream, 0); });
  assert_int_equal(prof_stop(), PROF_OK);
  __atomic_store_n(&emulated_fault.hangs, 0, __ATOMIC_RELAXED);
  emulated_wait(stream);
  collector_has_ended();
}

static void a_samplers_stop_waits_no_longer_for_a_meter(void **state) {
  (void)state;
  const prof_sampler_options options = {.size = sizeof options, .interval_ns = 2000000};
  assert_int_equal(prof_sampler_start(&options), PROF_OK);
  __atomic_store_n(&emulated_meter.hangs, 1, __ATOMIC_RELAXED);
  WAIT_WHILE(!__atomic_load_n(&emulated_meter.is_hanging, __ATOMIC_RELAXED));
  assert_int_equal(prof_sampler_stop(), PROF_E_BUSY);
  __atomic_store_n(&emulated_meter.hangs, 0, __ATOMIC_RELAXED);
  sampler_has_ended();
}

#define TESTS(X)                         \
  X(libraries_read_this_clock)           \
  X(a_stop_waits_no_longer_for_a_device) \
  X(a_samplers_stop_waits_no_longer_for_a_meter)
ALONE_TESTS

int main(int argc, char **argv) { return alone_main(argc, argv); }
