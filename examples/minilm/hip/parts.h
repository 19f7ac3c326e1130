/* What the files of this folder know of each other, and what HIP has that CUDA has not, or not so.
   SPDX-License-Identifier: MIT */
#ifndef MINILM_HIP_PARTS_H
#define MINILM_HIP_PARTS_H

#include "../gpu/parts.h"

/* hipErrorNoDevice; what HIP 5's hipInit() says where there is none */
enum { HIP_ERROR_NO_DEVICE = 100, HIP_ERROR_INVALID_DEVICE = 101 };

typedef struct hip_engine {
  gpu_engine gpu;
  int (*hipSetDevice)(int device);
  const char *(*hipGetErrorName)(int error);
} hip_engine;

/* products.c: what stands in the vendor's table. */
int hip_open_products(lane *l, failure *why);
void hip_close_products(lane *l);
int hip_dense(const lane *l, const invocation *i, failure *why);
int hip_attention_scores(const lane *l, const invocation *i, failure *why);
int hip_attention_mix(const lane *l, const invocation *i, failure *why);

#endif
