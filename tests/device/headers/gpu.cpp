// What tests/gpu declares of CUDA's driver is as <cuda.h> has it. Compiled by cuda-headers.sh.
#define __CUDA_API_VERSION_INTERNAL \
  1  // names as the library has them, also those that a newer header has another one in place of
#include <cuda.h>

#include "../../gpu/driver.h"
#include "alike.h"

#define CHECK(name, arguments) \
  static_assert(compared<int arguments, decltype(::name)>::value, #name);
GPU_FUNCTIONS(CHECK)

int main() { return 0; }
