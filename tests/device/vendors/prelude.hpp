// The part of CUDA C++ that C++ lacks, as far as the emulated compilers (rtc.c) support it: put
// before a text of kernels. Threads run one after the other, so __syncthreads() and shuffles do not
// exist: a kernel that uses them does not compile.
#include <utility>

#include "modules.h"

#define __global__
#define __device__

struct emulated_index {
  unsigned x, y, z;
};
#define EMULATED_INDEX static thread_local __attribute__((tls_model("initial-exec"))) emulated_index
EMULATED_INDEX threadIdx, blockIdx, blockDim, gridDim;

extern "C" {
float expf(float), erff(float), sqrtf(float), fmaxf(float, float);
}
static inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }

using emulated_behind = void *(*)(const void *address);

// Addresses are the device's.
template <typename T>
struct emulated_argument {
  static T take(const void *place, emulated_behind) { return *static_cast<const T *>(place); }
};
template <typename T>
struct emulated_argument<T *> {
  static T *take(const void *place, emulated_behind behind) {
    return static_cast<T *>(behind(*static_cast<T *const *>(place)));
  }
};

template <auto kernel>
struct emulated;
template <typename... A, void (*kernel)(A...)>
struct emulated<kernel> {
  static constexpr size_t sizes[] = {sizeof(A)...};

  static void all(const unsigned *grid, const unsigned *block, A... arguments) {
    gridDim = {grid[0], grid[1], grid[2]};
    blockDim = {block[0], block[1], block[2]};
    for (blockIdx.z = 0; blockIdx.z < grid[2]; blockIdx.z++)
      for (blockIdx.y = 0; blockIdx.y < grid[1]; blockIdx.y++)
        for (blockIdx.x = 0; blockIdx.x < grid[0]; blockIdx.x++)
          for (threadIdx.z = 0; threadIdx.z < block[2]; threadIdx.z++)
            for (threadIdx.y = 0; threadIdx.y < block[1]; threadIdx.y++)
              for (threadIdx.x = 0; threadIdx.x < block[0]; threadIdx.x++) kernel(arguments...);
  }

  template <size_t... I>
  static void unpack(void *const *places, const unsigned *grid, const unsigned *block,
                     emulated_behind behind, std::index_sequence<I...>) {
    all(grid, block, emulated_argument<A>::take(places[I], behind)...);
  }

  static void run(void *const *places, const unsigned *grid, const unsigned *block,
                  emulated_behind behind) {
    unpack(places, grid, block, behind, std::index_sequence_for<A...>());
  }
};

#define EMULATED_KERNEL(name)                                                                      \
  extern "C" __attribute__((visibility("default"))) const module_kernel emulated_kernel_##name = { \
      sizeof(emulated<name>::sizes) / sizeof(size_t), emulated<name>::sizes, emulated<name>::run};
