/* Kernels that are run, in the emulated vendors. The emulated compilers (rtc.c) make a shared
   library of CUDA C++ by the system's own compiler; its bytes stand for the device's code. The
   emulated drivers load and launch it. Also read by those kernels: prelude.hpp. */
#ifndef TESTS_DEVICE_VENDORS_MODULES_H
#define TESTS_DEVICE_VENDORS_MODULES_H

#include <stddef.h>
#include <stdint.h>

/* Before the bytes. */
typedef struct module_head {
  char magic[8]; /* "EMULATED" */
  uint64_t bytes;
  char architecture[16]; /* "sm_90", "compute_80"; empty: HIP's */
} module_head;
#define MODULE_MAGIC "EMULATED"

/* In the library as emulated_kernel_NAME, one for each that is __global__ there. */
typedef struct module_kernel {
  size_t count;
  const size_t *sizes; /* of its parameters */
  /* all blocks and threads, one after the other */
  void (*run)(void *const *arguments, const unsigned *grid, const unsigned *block,
              void *(*behind)(const void *address));
} module_kernel;

void *module_load(const void *image); /* NULL: the emulated compilers did not make it */
void module_unload(void *module);
/* NULL: it has none of that name */
const module_kernel *module_find(void *module, const char *name);

/* With the arguments as they are now, as a launch takes them; for the stream's thread, which runs
   it once. */
void *module_launch_to_come(const module_kernel *kernel, const unsigned grid[3],
                            const unsigned block[3], void *const *arguments);
void module_launch(void *to_come);

#endif
