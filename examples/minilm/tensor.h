/* A dense float tensor, rows last: the one value that moves through the program. It owns nothing: a
   weight's data is the mapped model file (read-only, a write faults), an activation's data is a
   piece of the pool. SPDX-License-Identifier: MIT */
#ifndef MINILM_TENSOR_H
#define MINILM_TENSOR_H

#include <stdint.h>

enum { TENSOR_RANK_MAX = 4 };

typedef struct tensor {
  int64_t dims[TENSOR_RANK_MAX];
  int rank;
  float *data;
} tensor;

static inline int64_t tensor_element_count(const tensor *t) {
  int64_t count = 1;
  for (int i = 0; i < t->rank; i++) count *= t->dims[i];
  return count;
}

/* Elements of the last dimension, and how many such rows there are. */
static inline int64_t tensor_row_width(const tensor *t) { return t->dims[t->rank - 1]; }

static inline int64_t tensor_row_count(const tensor *t) {
  return tensor_element_count(t) / tensor_row_width(t);
}

#endif
