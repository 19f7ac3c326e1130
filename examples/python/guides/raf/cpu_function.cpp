// Guide: RAF, Profile Your Model
// Section: Profile a CPU function
//
// Build: c++ -std=c++17 cpu_function.cpp $(pkg-config --cflags --libs prof)
// RAF's header is raf/profiler.h, and its device the one of the call.

#include <prof/profiler.h>

#include <cstdio>
#include <string>
#include <vector>

static void request_memory(std::vector<std::vector<char>> &pool, size_t bytes) {
  pool.emplace_back(bytes);
}

int main() {
  const std::vector<size_t> sizes = {1024, 2048, 4096};
  const std::string name = "dense";
  std::vector<std::vector<char>> pool;

  prof_start(1);
  WITH_BASE_PROFILER(PROF_HOST, name, "MemoryRequest", {"Count: " + std::to_string(sizes.size())}, {
    for (size_t bytes : sizes) request_memory(pool, bytes);
  });
  prof_stop();
  std::printf("Pieces: %zu\n", pool.size());
  return prof_dump("cpu_function.json");
}
