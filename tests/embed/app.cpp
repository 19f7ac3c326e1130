// The same in C++17, with what C++ adds: run-time names, braced arguments, a device class, a scope
// left by a throw.
// usage: app FILE
#include <prof/profiler.h>

#include <cstdio>
#include <stdexcept>
#include <string>

struct Device {
  int device_type() const { return 1; }
  int device_id() const { return 0; }
};

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  int status = prof_start(1);
  const std::string name = "work";
  const Device device;
  WITH_BASE_PROFILER(device, name, "op", {"Count: " + std::to_string(argc)},
                     { std::fprintf(stderr, "working\n"); });
  try {
    WITH_BASE_PROFILER(PROF_HOST, "thrown", "op", PROF_NO_ARGS,
                       { throw std::runtime_error("out of the scope"); });
  } catch (const std::runtime_error &) {
  }
  if (status == PROF_OK) status = prof_stop();
  if (status == PROF_OK) status = prof_dump(argv[1]);
  if (status != PROF_OK)
    std::fprintf(stderr, "%s: %s\n", prof_status_name(status), prof_last_error());
  return status == PROF_OK ? 0 : 1;
}
