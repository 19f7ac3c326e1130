// The same in C++.
#include <prof/profiler.h>
#include <string>

extern "C" void old_cxx_work(int i);

extern "C" void old_cxx_work(int i) {
  WITH_BASE_PROFILER(PROF_HOST, "old C++", "op", {"Count: " + std::to_string(i)}, {});
}
