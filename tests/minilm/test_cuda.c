/* The runtime on a CUDA device, on an emulated driver, NVRTC and cuBLAS (../device/vendors). The
   system's compiler compiles kernels.cu; it runs on threads that stand for streams, on memory that
   the host cannot read. No device is behind it.
   SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <prof/device.h>
#include <prof/memory.h>
#include <prof/trace.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* cmocka.h wants the headers above it. */
#include <cmocka.h>

#define DEVICE_NAME "cuda"
#define DEVICE_TYPE PROF_DEVICE_CUDA
#include "../device/vendors/cuda.h"
#include "device_checks.h"
#include "emulated_vendor.h"

static void begin(void) {}

static emulated_cuda *driver(void) { return vendor_state("libcuda.so.1", "emulated_cuda_state"); }

/* ---- for which device the kernels are compiled ---- */

/* And when the engine goes, so does the device's context. */
static void kernels_are_compiled_for_the_device_itself(void **state) {
  (void)state;
  for (int i = 0; i < 2; i++) {
    assert_int_equal(engine_open("cuda", &f.engine, &why), 0);
    assert_string_equal(f.engine->description, "Emulated CUDA 0");
    assert_string_equal(driver()->architecture, "sm_90");
    assert_int_equal(driver()->contexts, 1);
    f.engine->destroy(f.engine);
    assert_int_equal(driver()->contexts, 0);
  }
}

static void an_older_nvrtc_compiles_for_the_newest_that_it_knows(void **state) {
  (void)state;
  setenv("EMULATED_NVRTC_ARCHITECTURES", "80,100,70", 1);
  open_all();
  assert_string_equal(driver()->architecture, "compute_80");
  place();
  assert_int_equal(run_workers(), 0);
  reference_compare(&f.reference, f.batches, "virtual code", BOUND);
  close_all();
}

static void a_device_that_is_too_old_for_nvrtc_is_told(void **state) {
  (void)state;
  setenv("EMULATED_NVRTC_ARCHITECTURES", "100,120", 1);
  assert_int_equal(engine_open("cuda", &f.engine, &why), -1);
  assert_string_equal(why.text,
                      "NVRTC compiles for nothing as old as this device (compute capability 9.0): "
                      "an older CUDA's does");
}

/* ---- refusals ---- */

static void a_machine_without_a_driver_is_told(void **state) {
  (void)state;
  vendor_says(NO_LIBRARIES, LIBRARIES("libcuda.so.1"), "there is no CUDA: ");
  vendor_says(NO_LIBRARIES, LIBRARIES("libcuda.so.1"), "it comes with NVIDIA's driver");
}

static void a_machine_without_nvrtc_is_told(void **state) {
  (void)state;
  vendor_says(LIBRARIES("libcuda.so.1", "libcublas.so.13"),
              LIBRARIES("libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2"),
              "there is no NVRTC, which compiles the kernels: no libnvrtc.so.13, nor an older one");
}

static void a_machine_without_cublas_is_told(void **state) {
  (void)state;
  vendor_says(
      LIBRARIES("libcuda.so.1", "libnvrtc.so.13"),
      LIBRARIES("libcublas.so.13", "libcublas.so.12", "libcublas.so.11"),
      "there is no cuBLAS, which multiplies the matrices: no libcublas.so.13, nor an older one");
  vendor_says(LIBRARIES("libcuda.so.1", "libnvrtc.so.13", "libcublas.so.13"), NO_LIBRARIES,
              "opened: Emulated CUDA 0");
}

static void a_driver_without_a_device_is_told(void **state) {
  (void)state;
  driver()->device_count = 0;
  assert_int_equal(engine_open("cuda", &f.engine, &why), -1);
  assert_non_null(strstr(why.text, "CUDA has no device on this machine"));
  driver()->init_error = 100; /* as the real one says it */
  assert_int_equal(engine_open("cuda", &f.engine, &why), -1);
  assert_non_null(strstr(why.text, "CUDA has no device on this machine"));
  driver()->init_error = 3;
  assert_int_equal(engine_open("cuda", &f.engine, &why), -1);
  assert_string_equal(why.text, "cuda: the first device: CUDA_ERROR_NOT_INITIALIZED (error 3)");
  assert_null(f.engine);
}

static void kernels_that_do_not_compile_are_told_with_the_compilers_words(void **state) {
  (void)state;
  setenv("EMULATED_RTC_FLAGS", "-Dfloat=no_such_type", 1);
  assert_int_equal(engine_open("cuda", &f.engine, &why), -1);
  print_message("  %s\n", why.text);
  assert_non_null(strstr(why.text, "the kernels do not compile (error 6): "));
  assert_non_null(strstr(why.text, "no_such_type"));
  assert_null(f.engine);
  assert_int_equal(driver()->contexts, 0);
}

#define TESTS(X)                                          \
  DEVICE_TESTS(X)                                         \
  X(kernels_are_compiled_for_the_device_itself)           \
  X(an_older_nvrtc_compiles_for_the_newest_that_it_knows) \
  X(a_device_that_is_too_old_for_nvrtc_is_told)           \
  X(a_machine_without_a_driver_is_told)                   \
  X(a_machine_without_nvrtc_is_told)                      \
  X(a_machine_without_cublas_is_told)                     \
  X(a_driver_without_a_device_is_told)                    \
  X(kernels_that_do_not_compile_are_told_with_the_compilers_words)
ALONE_TESTS

int main(int argc, char **argv) {
  if (argc == 2 && strcmp(argv[1], "open") == 0) return vendor_tell("cuda");
  if (argc == 1) {
    model *m = data_open_model();
    if (m == NULL) return 77; /* CTest's and automake's status for a skip */
    model_close(m);
    vendor_find_all();
  }
  return alone_main(argc, argv);
}
