/* What the files of this folder know of each other. SPDX-License-Identifier: MIT */
#ifndef MINILM_OPENCL_PARTS_H
#define MINILM_OPENCL_PARTS_H

#include "../engine.h"
#include "library.h"

/* X(name): of a kernel in kernels.cl. */
#define OPENCL_KERNELS(X) \
  X(embedding)            \
  X(dense)                \
  X(attention_scores)     \
  X(softmax)              \
  X(attention_mix)        \
  X(add)                  \
  X(layer_norm)           \
  X(gelu)                 \
  X(mean_pool)            \
  X(l2_normalise)

enum {
#define OPENCL_KERNEL_INDEX(name) KERNEL_##name,
  OPENCL_KERNELS(OPENCL_KERNEL_INDEX)
#undef OPENCL_KERNEL_INDEX
      OPENCL_KERNEL_COUNT
};

extern const char *const opencl_kernel_names[OPENCL_KERNEL_COUNT];

enum { OPENCL_NAME_BYTES = 128 };

typedef struct opencl_engine {
  engine face;
  pool_source memory;
  opencl cl;
  cl_device_id device;
  cl_context context;
  cl_program program;
  char name[OPENCL_NAME_BYTES];
} opencl_engine;

struct lane {
  opencl_engine *engine;
  cl_command_queue queue;
  cl_kernel kernels[OPENCL_KERNEL_COUNT];
  cl_int *ids;                         /* the device's: of the batch that is being computed */
  cl_int *lengths;                     /* the same; one a text */
  cl_int own_lengths[BATCH_TEXTS_MAX]; /* the host's: on their way there */
  float *rows;                         /* the host's: the embeddings on their way into the batch */
  size_t rows_bytes;
};

/* lane.c: the engine's face from open_lane to finish. */
void opencl_lane_fill(engine *face);

/* operators.c */
int opencl_invoke(lane *l, const invocation *i, failure *why);

#endif
