/* The runtime on a device of HIP's, on an emulated runtime and hipRTC (../device/vendors), as
   test_cuda.c. No device is behind it. SPDX-License-Identifier: MIT */
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

#define DEVICE_NAME "hip"
#define DEVICE_TYPE PROF_DEVICE_ROCM
#include "../device/vendors/hip.h"
#include "device_checks.h"
#include "emulated_vendor.h"

static void begin(void) {}

/* ---- which library ---- */

static void up_to_6_the_runtime_has_the_compiler_in_itself(void **state) {
  (void)state;
  vendor_says(LIBRARIES("libamdhip64.so.5"),
              LIBRARIES("libamdhip64.so.7", "libamdhip64.so.6", "libhiprtc.so.5"),
              "opened: Emulated HIP 0");
  vendor_says(LIBRARIES("libamdhip64.so.6", "libhiprtc.so.6"), LIBRARIES("libamdhip64.so.7"),
              "opened: Emulated HIP 0");
}

/* ---- refusals ---- */

static void a_machine_without_hip_is_told(void **state) {
  (void)state;
  vendor_says(NO_LIBRARIES, LIBRARIES("libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"),
              "there is no HIP: no libamdhip64.so.7, nor an older one");
}

static void a_machine_without_hiprtc_is_told(void **state) {
  (void)state;
  vendor_says(LIBRARIES("libamdhip64.so.6"), LIBRARIES("libamdhip64.so.7", "libhiprtc.so.6"),
              "there is no hipRTC, which compiles the kernels: no libhiprtc.so.6");
}

static void a_runtime_without_a_device_is_told(void **state) {
  (void)state;
  ((emulated_hip *)vendor_state("libamdhip64.so.6", "emulated_hip_state"))->device_count = 0;
  assert_int_equal(engine_open("hip", &f.engine, &why), -1);
  assert_non_null(strstr(why.text, "HIP has no device on this machine"));
  assert_null(f.engine);
}

static void kernels_that_do_not_compile_are_told_with_the_compilers_words(void **state) {
  (void)state;
  setenv("EMULATED_RTC_FLAGS", "-Dfloat=no_such_type", 1);
  assert_int_equal(engine_open("hip", &f.engine, &why), -1);
  print_message("  %s\n", why.text);
  assert_non_null(strstr(why.text, "the kernels do not compile (error 6): "));
  assert_non_null(strstr(why.text, "no_such_type"));
  assert_null(f.engine);
}

#define TESTS(X)                                    \
  DEVICE_TESTS(X)                                   \
  X(up_to_6_the_runtime_has_the_compiler_in_itself) \
  X(a_machine_without_hip_is_told)                  \
  X(a_machine_without_hiprtc_is_told)               \
  X(a_runtime_without_a_device_is_told)             \
  X(kernels_that_do_not_compile_are_told_with_the_compilers_words)
ALONE_TESTS

int main(int argc, char **argv) {
  if (argc == 2 && strcmp(argv[1], "open") == 0) return vendor_tell("hip");
  if (argc == 1) {
    model *m = data_open_model();
    if (m == NULL) return 77; /* CTest's and automake's status for a skip */
    model_close(m);
    vendor_find_all();
  }
  return alone_main(argc, argv);
}
