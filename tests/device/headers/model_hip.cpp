// What examples/minilm/hip declares of AMD's runtime and hipRTC is what their headers do. Compiled
// against Debian's, and HIP 7's where it is there, by hip-headers.sh.
#define __HIP_PLATFORM_AMD__ 1
#define __HIP_DISABLE_CPP_FUNCTIONS__ 1
#include <hip/hip_runtime_api.h>
#include <hip/hiprtc.h>

#include "../../../examples/minilm/hip/parts.h"
#include "flat.h"

#define CHECK_SHARED(name, arguments, cuda, hip) CHECK_SAME(hip, arguments)
GPU_RUNTIME(CHECK_SHARED)
GPU_COMPILER(CHECK_SHARED)
CHECK_SAME(hipSetDevice, (int))
static_assert(std::is_same<const char *(hipError_t), decltype(hipGetErrorName)>::value,
              "hipGetErrorName");
static_assert(int(HIP_ERROR_NO_DEVICE) == hipErrorNoDevice &&
                  int(HIP_ERROR_INVALID_DEVICE) == hipErrorInvalidDevice,
              "errors");

int main() { return 0; }
