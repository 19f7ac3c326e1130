/* libprof_cuda.so: named by CUDA_INJECTION64_PATH. The driver opens it in the program's cuInit(),
   and calls InitializeInjection(). It brings libprof.so, which records if the environment or the
   program says so, and requests kernels from it. */
#include <prof/device.h>
#include <prof/profiler.h>

__attribute__((visibility("default"))) int InitializeInjection(void);
/* Returns 1: success. CUPTI records from now on. The devices are open when cuInit() has ended:
   prof's own thread waits for that, and takes over. */
int InitializeInjection(void) {
  prof_i_prefer_devices_1(PROF_DEVICES_RECORDS);
  prof_i_cuda_begins_1();
  return 1;
}
