/* What the files of this folder know of each other, and what CUDA has that HIP has not, or not so.
   SPDX-License-Identifier: MIT */
#ifndef MINILM_CUDA_PARTS_H
#define MINILM_CUDA_PARTS_H

#include "../gpu/parts.h"

/* X(name, arguments): of the driver. */
#define CUDA_DRIVER(X)                                            \
  X(cuDriverGetVersion, (int *version_out))                       \
  X(cuDeviceGetAttribute, (int *value_out, int what, int device)) \
  X(cuDevicePrimaryCtxRetain, (void **context_out, int device))   \
  X(cuDevicePrimaryCtxRelease_v2, (int device))                   \
  X(cuCtxSetCurrent, (void *context))                             \
  X(cuGetErrorName, (int error, const char **name_out))

/* Of NVRTC, from 11.2 on. */
#define CUDA_COMPILER(X)                                   \
  X(nvrtcGetNumSupportedArchs, (int *count_out))           \
  X(nvrtcGetSupportedArchs, (int *architectures_out))      \
  X(nvrtcGetCUBINSize, (void *program, size_t *bytes_out)) \
  X(nvrtcGetCUBIN, (void *program, char *code_out))

/* Of cuBLAS, which counts columns first. */
#define CUDA_PRODUCTS(X)                                                                        \
  X(cublasCreate_v2, (void **handle_out))                                                       \
  X(cublasDestroy_v2, (void *handle))                                                           \
  X(cublasSetStream_v2, (void *handle, void *stream))                                           \
  X(cublasSetMathMode, (void *handle, int mode))                                                \
  X(cublasSgemm_v2,                                                                             \
    (void *handle, int of_a, int of_b, int m, int n, int k, const float *alpha, const float *a, \
     int lda, const float *b, int ldb, const float *beta, float *c, int ldc))                   \
  X(cublasSgemmStridedBatched,                                                                  \
    (void *handle, int of_a, int of_b, int m, int n, int k, const float *alpha, const float *a, \
     int lda, long long step_a, const float *b, int ldb, long long step_b, const float *beta,   \
     float *c, int ldc, long long step_c, int count))

enum {
  CUDA_NO_DEVICE = 100,       /* CUDA_ERROR_NO_DEVICE */
  CUDA_CAPABILITY_MAJOR = 75, /* CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_... */
  CUDA_CAPABILITY_MINOR = 76,
  CUDA_PLAIN = 0,   /* CUBLAS_OP_N */
  CUDA_TURNED = 1,  /* CUBLAS_OP_T */
  CUDA_PEDANTIC = 2 /* CUBLAS_PEDANTIC_MATH: floats stay floats, no TF32 */
};

/* NOLINTNEXTLINE(bugprone-macro-parentheses): a declaration's */
#define CUDA_MEMBER(name, arguments) int(*name) arguments;
typedef struct cuda_driver {
  CUDA_DRIVER(CUDA_MEMBER)
} cuda_driver;

typedef struct cuda_compiler {
  CUDA_COMPILER(CUDA_MEMBER)
} cuda_compiler;

typedef struct cuda_products {
  CUDA_PRODUCTS(CUDA_MEMBER)
} cuda_products;
#undef CUDA_MEMBER

typedef struct cuda_engine {
  gpu_engine gpu;
  cuda_driver driver;
  cuda_compiler compiler;
  cuda_products products;
  void *context; /* the device's primary one */
} cuda_engine;

/* products.c: what stands in the vendor's table. */
int cuda_open_products(lane *l, failure *why);
void cuda_close_products(lane *l);
int cuda_dense(const lane *l, const invocation *i, failure *why);
int cuda_attention_scores(const lane *l, const invocation *i, failure *why);
int cuda_attention_mix(const lane *l, const invocation *i, failure *why);

#endif
