// Guide: RAF, Profile Your Model
// Section: Profile a GPU kernel
//
// Build: c++ -std=c++17 gpu_kernel.cpp $(pkg-config --cflags --libs prof)
// RAF's header is raf/src/profiler/cuda/cuda_profiler.h. Without the vendor's library the scope has
// the time of the host alone.

#include <prof/profiler.h>

static void launch(void *stream) {
  (void)stream;  // kernel<<<blocks, threads, 0, stream>>>(...)
}

int main() {
  const prof_device cuda = {PROF_DEVICE_CUDA, 0};
  void *stream = nullptr;  // a cudaStream_t

  prof_start(1);
  WITH_CUDA_PROFILER(cuda, stream, "softmax", "kernel", {"rows: 32"}, { launch(stream); });
  prof_stop();
  return prof_dump("gpu_kernel.json");
}
