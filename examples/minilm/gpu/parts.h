/* What the files of this folder, and the two vendors', know of each other: an engine on a GPU whose
   vendor is CUDA or HIP. Nearly all of it is the same for both; gpu_vendor has what is not.
   SPDX-License-Identifier: MIT */
#ifndef MINILM_GPU_PARTS_H
#define MINILM_GPU_PARTS_H

#include "../engine.h"
#include "compiler.h"

/* X(name): of a kernel in kernels.cu. */
#define GPU_KERNELS(X) \
  X(embedding)         \
  X(repeat)            \
  X(dense)             \
  X(attention_scores)  \
  X(softmax)           \
  X(attention_mix)     \
  X(add)               \
  X(layer_norm)        \
  X(gelu)              \
  X(mean_pool)         \
  X(l2_normalise)

typedef enum gpu_kernel {
#define GPU_KERNEL_INDEX(name) KERNEL_##name,
  GPU_KERNELS(GPU_KERNEL_INDEX)
#undef GPU_KERNEL_INDEX
      GPU_KERNEL_COUNT
} gpu_kernel;

typedef struct gpu_engine gpu_engine;

/* An operator, inside of its scope. */
typedef int (*gpu_operator)(const lane *l, const invocation *i, failure *why);

typedef struct gpu_vendor {
  const char *name; /* "cuda" */
  int32_t type;     /* PROF_DEVICE_... */
  /* fills runtime, compiler, option, and what is the vendor's own */
  int (*open)(gpu_engine *e, failure *why);
  /* also what open() was refused in the middle of; frees it */
  void (*close)(gpu_engine *e);
  /* makes the first device the calling thread's current one, which it stays; an error */
  int (*use)(const gpu_engine *e);
  const char *(*error_name)(const gpu_engine *e, int error);
  int (*open_lane)(lane *l, failure *why); /* what the matrix products need */
  void (*close_lane)(lane *l);
  gpu_operator dense, attention_scores, attention_mix;
} gpu_vendor;

enum { GPU_NAME_BYTES = 128, GPU_OPTION_BYTES = 48 };

/* Begins a vendor's own struct, which has more. */
struct gpu_engine {
  engine face;
  pool_source memory;
  const gpu_vendor *vendor;
  gpu_runtime run;
  gpu_compiler compiler;
  char option[GPU_OPTION_BYTES]; /* for the compiler: which device; empty: none is needed */
  void *module, *kernels[GPU_KERNEL_COUNT];
  char name[GPU_NAME_BYTES];
};

struct lane {
  gpu_engine *engine;
  void *stream;
  int *ids;                         /* the device's: of the batch that is being computed */
  int *lengths;                     /* the same; one a text */
  int own_lengths[BATCH_TEXTS_MAX]; /* the host's: on their way there */
  /* the host's, pinned: the embeddings on their way into the batch */
  float *rows;
  size_t rows_bytes;
  void *products; /* the vendor's */
};

/* engine.c. e: zeroes, of the vendor's own size. From now on the vendor's close() frees it. */
int gpu_engine_open(gpu_engine *e, const gpu_vendor *vendor, engine **engine_out, failure *why);
int gpu_refuse(const gpu_engine *e, const char *what, int error, failure *why);

/* lane.c: the engine's face from open_lane to finish. */
void gpu_lane_fill(engine *face);

/* operators.c */
int gpu_invoke(lane *l, const invocation *i, failure *why);

/* One argument of a kernel, behind the count of threads. */
typedef union gpu_argument {
  const void *memory;
  int number;
  float real;
} gpu_argument;

enum { GPU_ARGUMENTS_MAX = 8 };
#define GPU_GIVE(...)                  \
  (const gpu_argument[]){__VA_ARGS__}, \
      sizeof((const gpu_argument[]){__VA_ARGS__}) / sizeof(gpu_argument)

/* Puts a kernel on the lane's stream, of so many threads. */
int gpu_launch(const lane *l, gpu_kernel kernel, int64_t threads, const gpu_argument *arguments,
               size_t argument_count, failure *why);

#endif
