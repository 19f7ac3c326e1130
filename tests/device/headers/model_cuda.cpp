// What examples/minilm/cuda declares of CUDA's driver, NVRTC and cuBLAS is what <cuda.h>, <nvrtc.h>
// and <cublas_v2.h> do. Compiled against releases of them by cuda-headers.sh.
#include <cublas_v2.h>
#include <cuda.h>
#include <nvrtc.h>

#include "../../../examples/minilm/cuda/parts.h"
#include "flat.h"

#define CHECK_SHARED(name, arguments, cuda, hip) CHECK_SAME(cuda, arguments)
GPU_RUNTIME(CHECK_SHARED)
GPU_COMPILER(CHECK_SHARED)
CUDA_DRIVER(CHECK_SAME)
CUDA_COMPILER(CHECK_SAME)
CUDA_PRODUCTS(CHECK_SAME)

static_assert(int(CUDA_NO_DEVICE) == CUDA_ERROR_NO_DEVICE &&
                  int(CUDA_CAPABILITY_MAJOR) == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR &&
                  int(CUDA_CAPABILITY_MINOR) == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
              "the driver's");
static_assert(int(CUDA_PLAIN) == CUBLAS_OP_N && int(CUDA_TURNED) == CUBLAS_OP_T &&
                  int(CUDA_PEDANTIC) == CUBLAS_PEDANTIC_MATH,
              "cuBLAS's");

// Of two symbols the one that the header's own macros choose.
#define TEXT_OF(...) #__VA_ARGS__
#define TEXT(...) TEXT_OF(__VA_ARGS__)
constexpr bool is_same(const char *a, const char *b) {
  return *a == *b && (*a == '\0' || is_same(a + 1, b + 1));
}
static_assert(is_same(TEXT(cuMemAlloc), "cuMemAlloc_v2") &&
                  is_same(TEXT(cuMemFree), "cuMemFree_v2") &&
                  is_same(TEXT(cuMemcpyHtoDAsync), "cuMemcpyHtoDAsync_v2") &&
                  is_same(TEXT(cuMemcpyDtoHAsync), "cuMemcpyDtoHAsync_v2"),
              "memory");
static_assert(is_same(TEXT(cuStreamDestroy), "cuStreamDestroy_v2") &&
                  is_same(TEXT(cuDevicePrimaryCtxRelease), "cuDevicePrimaryCtxRelease_v2") &&
                  is_same(TEXT(cuMemHostAlloc), "cuMemHostAlloc"),
              "others");

int main() { return 0; }
