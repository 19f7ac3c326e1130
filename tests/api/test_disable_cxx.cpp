// With PROF_DISABLE the macros leave nothing but the code, in C++ too.
#define PROF_DISABLE
#include <stdexcept>
#include <string>

#include "events.h"

static int calls = 0;

// Not in the unnamed namespace: there clang would call them unneeded.
std::string name_once() {
  calls++;
  return "name";
}
int value_once() { return ++calls; }

namespace {

struct Device {
  int device_type() const { return ++calls; }
  int device_id() const { return ++calls; }
};

template <class T>
T in_a_template(T value) {
  WITH_BASE_PROFILER(Device(), name_once(), "c", PROF_ARGS("value", value), { return value; });
  return T();
}

void only_the_code_is_left(void **) {
  int ran = 0;
  calls = 0;
  events_record(2);
  WITH_BASE_PROFILER(Device(), name_once(), name_once(), {"Count: " + std::to_string(value_once())},
                     { ran++; });
  WITH_GPU_PROFILER_LEVEL(2, Device(), nullptr, name_once(), "c", PROF_FMT("%d", value_once()),
                          { ran++; });
  {
    PROF_SCOPE(name_once());
    PROF_FUNCTION();
    PROF_GPU_SCOPE(Device(), value_once(), name_once());
    PROF_INSTANT(name_once(), "c", {});
    PROF_COUNTER("counter", value_once());
  }
  try {
    WITH_CUDA_PROFILER(Device(), 0, name_once(), "c", {}, { throw std::runtime_error("out"); });
  } catch (const std::runtime_error &) {
    ran += 10;
  }
  const auto lambda = [&](int x) {
    WITH_BASE_PROFILER(PROF_HOST, name_once(), "c", PROF_NO_ARGS, { return x + 1; });
    return 0;
  };
  ran += lambda(99) + in_a_template(1000);
  events_stop_and_read();
  assert_int_equal(calls, 0);
  assert_int_equal(ran, 2 + 10 + 100 + 1000);
  assert_event_total(0);
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {cmocka_unit_test(only_the_code_is_left)};
  return cmocka_run_group_tests_name("PROF_DISABLE in C++", tests, nullptr, nullptr);
}
