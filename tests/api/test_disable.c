/* With PROF_DISABLE the macros leave nothing but the code: nothing is evaluated, nothing
   recorded. That the object code is that of functions written without macros is
   compare-objects.sh's to show. */
#define PROF_DISABLE
#include "events.h"

static int calls;

/* Not static: a static function that only macros call is one that clang calls unneeded here. */
const char *name_once(void);
int value_once(void);
prof_device device_once(void);

const char *name_once(void) {
  calls++;
  return "name";
}
int value_once(void) { return ++calls; }
prof_device device_once(void) {
  calls++;
  return PROF_HOST;
}

static void only_the_code_is_left(void **state) {
  (void)state;
  int ran = 0;
  calls = 0;
  events_record(2);
  WITH_BASE_PROFILER(device_once(), name_once(), name_once(), PROF_ARGS("v", value_once()),
                     { ran++; });
  WITH_GPU_PROFILER_LEVEL(2, device_once(), value_once(), name_once(), "c",
                          PROF_FMT("%d", value_once()), { ran++; });
  for (int i = 0; i < 4; i++) {
    PROF_SCOPE(name_once());
    PROF_FUNCTION();
    PROF_GPU_SCOPE(device_once(), value_once(), name_once());
    PROF_INSTANT(name_once(), "c", PROF_NO_ARGS);
    PROF_COUNTER("counter", value_once());
    WITH_CUDA_PROFILER(device_once(), 0, name_once(), "c", PROF_NO_ARGS, {
      if (i == 1) continue;
      if (i == 3) break;
    });
    ran += 10;
  }
  if (ran == 0)
    WITH_BASE_PROFILER(PROF_HOST, "if", "c", PROF_NO_ARGS, { ran++; });
  else
    WITH_HIP_PROFILER(PROF_HOST, 0, "else", "c", PROF_NO_ARGS, ran += 100, ran += 1000);
  events_stop_and_read();
  assert_int_equal(calls, 0);
  assert_int_equal(ran, 2 + 20 + 1100);
  assert_event_total(0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(only_the_code_is_left),
  };
  return cmocka_run_group_tests_name("PROF_DISABLE in C", tests, NULL, NULL);
}
