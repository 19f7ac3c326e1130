/* The one kernel of tests/gpu and bench/gpu, and what they measure with. Needs no vendor. */
#ifndef TESTS_GPU_BUSY_H
#define TESTS_GPU_BUSY_H

#include <stdint.h>
#include <stdlib.h>
#include <time.h>

/* busy_for(ns): one thread looks at the device's clock until so much has passed. Old enough for any
   driver; ptxas of CUDA 12.9 and 13.5 take it up to sm_120. */
static const char gpu_busy_image[] =
    ".version 6.4\n"
    ".target sm_52\n"
    ".address_size 64\n"
    ".visible .entry busy_for(.param .u64 busy_for_0) {\n"
    " .reg .pred %p<2>;\n"
    " .reg .b64 %rd<6>;\n"
    " ld.param.u64 %rd1, [busy_for_0];\n"
    " mov.u64 %rd2, %globaltimer;\n"
    "again:\n"
    " mov.u64 %rd3, %globaltimer;\n"
    " sub.s64 %rd4, %rd3, %rd2;\n"
    " setp.lt.u64 %p1, %rd4, %rd1;\n"
    " @%p1 bra again;\n"
    " ret;\n"
    "}\n";

static inline double gpu_now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static inline int gpu_by_size(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Of values that are put in order. share: 0.5 is the median. */
static inline double gpu_quantile(double *values, size_t count, double share) {
  qsort(values, count, sizeof *values, gpu_by_size);
  return count ? values[(size_t)((double)(count - 1) * share + 0.5)] : 0;
}

#endif
