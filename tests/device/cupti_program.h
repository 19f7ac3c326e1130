/* A program that uses CUDA, on the emulated driver and the emulated CUPTI, and is recorded. For
   tests that include cmocka.h before. */
#ifndef TESTS_DEVICE_CUPTI_PROGRAM_H
#define TESTS_DEVICE_CUPTI_PROGRAM_H

#include <dlfcn.h>
#include <prof/profiler.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "cuda_program.h"
#include "recorded.h"
#include "vendors/cupti.h"

enum { COUNT = 20, KERNEL_NS = 100000, THREADS = 4 };

typedef struct worker {
  pthread_t thread;
  char name[16];
  void *context, *stream, *kernel;
  uint64_t tid;
} worker;

static emulated_cupti *cupti;

static inline void name_cupti(const char *file) {
  char path[512];
  snprintf(path, sizeof path, "%s/vendors/%s", getenv("PROF_TEST_PLUGIN_DIR"), file);
  setenv("PROF_BACKEND_CUPTI", path, 1);
}

/* The program has loaded it, as one does that is linked to it. */
static inline void load_cupti(const char *file) {
  emulated_cupti *(*state)(void);
  name_cupti(file);
  void *const library = dlopen(getenv("PROF_BACKEND_CUPTI"), RTLD_NOW);
  if (!library) fail_msg("%s", dlerror());
  *(void **)&state = dlsym(library, "emulated_cupti_state");
  cupti = state();
}

static inline void start(uint32_t level) {
  const prof_options options = {
      .size = sizeof options, .level = level, .devices = PROF_DEVICES_RECORDS};
  assert_int_equal(prof_start_with(&options), PROF_OK);
}

/* CUDA is in use, CUPTI there, and records are wanted. */
static inline void *begin_recording(uint32_t level) {
  load_cupti("libcupti.so.13");
  begin_on(0);
  start(level);
  return make_stream();
}

static inline void launch(void *kernel, void *stream) {
  assert_int_equal(cu.cuLaunchKernel(kernel, 6, 4, 2, 64, 1, 1, 1024, stream, NULL, NULL), 0);
}

#endif
