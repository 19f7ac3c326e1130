/* The runtime on an OpenCL device, whichever the machine has: the same embeddings, each operator on
   a queue in the trace, memory in the account, refusals. SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include <stdio.h>

#if !__has_include(<CL/cl.h>)

int main(void) {
  puts("skip: <CL/cl.h> is missing: apt-get install opencl-headers");
  return 77;
}

#else

#include <prof/device.h>
#include <prof/memory.h>
#include <prof/trace.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
/* cmocka.h wants the headers above it. */
#include <cmocka.h>

#define DEVICE_NAME "opencl"
#define DEVICE_TYPE PROF_DEVICE_OPENCL
#include "device_checks.h"

/* What a driver keeps to the end of the process is not ours to find. */
const char *__lsan_default_suppressions(void); /* NOLINT: the name is the sanitizer's */
const char *__lsan_default_suppressions(void) {
  return "leak:libpocl\nleak:libOpenCL\nleak:libLLVM\nleak:libclang\nleak:libhwloc\n";
}

/* The machine's own drivers, and kernels built once. */
static void begin(void) {
  char folder[DATA_PATH_BYTES];
  const char *const build = getenv("PROF_TEST_BUILD_DIR");
  unsetenv("OCL_ICD_VENDORS"); /* tests/CMakeLists.txt: the other tests do without them */
  snprintf(folder, sizeof folder, "%s/pocl-cache", build != NULL ? build : "/tmp");
  mkdir(folder, 0700);
  setenv("POCL_CACHE_DIR", folder, 0);
}

static void a_device_that_is_not_there_is_told(void **state) {
  (void)state;
  assert_int_equal(engine_open("nonsense", &f.engine, &why), -1);
  assert_string_equal(why.text, "there is no device nonsense: host, opencl, cuda or hip");
  char path[DATA_PATH_BYTES];
  snprintf(path, sizeof path, "%s/tests/device/no-drivers", getenv("PROF_TEST_SOURCE_DIR"));
  setenv("OCL_ICD_VENDORS", path, 1);
  assert_int_equal(engine_open("opencl", &f.engine, &why), -1);
  assert_non_null(strstr(why.text, "OpenCL has no device on this machine"));
  assert_null(f.engine);
}

/* PoCL takes flags from the environment: with these the kernels are none. */
static void kernels_that_do_not_compile_are_told_with_the_compilers_words(void **state) {
  (void)state;
  setenv("POCL_EXTRA_BUILD_FLAGS", "-Dkernel=no_such_type", 1);
  /* it does not ask which flags a kernel that it has was built with */
  setenv("POCL_KERNEL_CACHE", "0", 1);
  if (engine_open("opencl", &f.engine, &why) == 0) {
    print_message("skip: %s is not PoCL, which can be made to fail\n", f.engine->description);
    assert_true(strncmp(f.engine->description, "pthread-", 8) != 0 &&
                strncmp(f.engine->description, "cpu-", 4) != 0);
    f.engine->destroy(f.engine);
    skip();
  }
  print_message("  %s\n", why.text);
  assert_non_null(strstr(why.text, "the kernels do not compile for "));
  assert_non_null(strstr(why.text, "no_such_type"));
  assert_null(f.engine);
}

#define TESTS(X)                        \
  DEVICE_TESTS(X)                       \
  X(a_device_that_is_not_there_is_told) \
  X(kernels_that_do_not_compile_are_told_with_the_compilers_words)
ALONE_TESTS

/* Asked in a child, so that this process has no OpenCL. */
static bool has_device(void) {
  int status = 0;
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    begin();
    const bool is_missing = engine_open("opencl", &f.engine, &why) != 0 &&
                            (strstr(why.text, "there is no OpenCL") != NULL ||
                             strstr(why.text, "no device on this machine") != NULL);
    if (is_missing) printf("skip: %s\n", why.text);
    fflush(stdout);
    _exit(is_missing);
  }
  return waitpid(child, &status, 0) == child && status == 0;
}

int main(int argc, char **argv) {
  if (argc == 1) {
    model *m = data_open_model();
    if (m == NULL || !has_device()) return 77; /* CTest's and automake's status for a skip */
    model_close(m);
  }
  return alone_main(argc, argv);
}

#endif
