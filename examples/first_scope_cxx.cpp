// The same in C++: names are strings, arguments a braced list, and a throw closes the scopes that
// it leaves.
//
//     first_scope_cxx [trace.json]
#include <prof/profiler.h>

#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

// A framework's own device class will do, if it has these two.
struct Device {
  int device_type() const { return PROF_DEVICE_CPU; }
  int device_id() const { return 0; }
};

struct Operator {
  std::string name;
  int size;
};

double run(const Device &device, const Operator &op) {
  double sum = 0;
  // A name made at run time is copied; a text in quotes costs nothing. {} is: no arguments.
  WITH_BASE_PROFILER(device, op.name, "operator", {"size: " + std::to_string(op.size)}, {
    if (op.size < 0) throw std::invalid_argument(op.name + " has no size");
    for (int i = 0; i < op.size; i++) sum += 1.0 / (1 + i);
  });
  return sum;
}

}  // namespace

int main(int argc, char **argv) {
  const std::string path = argc > 1 ? argv[1] : "first_scope_cxx.json";
  prof_start(2);  // level 2: also the runtime around the operators
  for (const Operator &op :
       std::vector<Operator>{{"dense", 200000}, {"softmax", 100000}, {"broken", -1}}) {
    WITH_BASE_PROFILER_LEVEL(2, Device(), "instruction", "vm", {}, {
      try {
        std::cout << op.name << ": " << run(Device(), op) << "\n";
      } catch (const std::invalid_argument &e) {
        PROF_INSTANT("failed", "vm", PROF_ARGS("why", e.what()));
        std::cout << e.what() << "\n";
      }
    });
  }
  prof_stop();
  if (prof_dump(path.c_str()) != PROF_OK) {
    std::cerr << "first_scope_cxx: " << prof_last_error() << "\n";
    return 1;
  }
  std::cout << "the trace is " << path << "\n";
}
