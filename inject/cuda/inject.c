/* libprof_cuda.so: named by CUDA_INJECTION64_PATH. The driver opens it in the program's cuInit(),
   and calls InitializeInjection(). With it comes libprof.so, which records if the environment says
   so, or when the program does, and is asked here for kernels, too. */
#include <prof/device.h>
#include <prof/profiler.h>

__attribute__((visibility("default"))) int InitializeInjection(void);
/* 1: it went well. CUPTI records from here on; the devices are open when cuInit() has ended: prof's
   own thread waits for that, and takes over. */
int InitializeInjection(void) {
  prof_i_prefer_devices_1(PROF_DEVICES_RECORDS);
  prof_i_cuda_begins_1();
  return 1;
}
