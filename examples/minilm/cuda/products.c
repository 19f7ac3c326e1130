/* Matrix products by cuBLAS. It counts columns first, so that a row of ours is a column of its:
   each product is turned round, out^T = y^T * x^T. SPDX-License-Identifier: MIT */
#include <math.h>

#include "parts.h"

static const cuda_products *blas_of(const lane *l) {
  return &((const cuda_engine *)l->engine)->products;
}

static int refuse(const char *what, int status, failure *why) {
  return failure_set(why, "cuda: cuBLAS: %s: status %d", what, status);
}

int cuda_open_products(lane *l, failure *why) {
  const cuda_products *blas = blas_of(l);
  int status = blas->cublasCreate_v2(&l->products);
  if (status == 0) status = blas->cublasSetStream_v2(l->products, l->stream);
  if (status == 0) status = blas->cublasSetMathMode(l->products, CUDA_PEDANTIC);
  return status == 0 ? 0 : refuse("a handle", status, why);
}

void cuda_close_products(lane *l) {
  if (l->products != NULL) blas_of(l)->cublasDestroy_v2(l->products);
}

int cuda_dense(const lane *l, const invocation *i, failure *why) {
  const float one = 1;
  const tensor *x = i->in[0], *weight = &i->weights[0], *out = i->out;
  const int depth = (int)tensor_row_width(x), width = (int)tensor_row_width(out);
  if (gpu_launch(l, KERNEL_repeat, tensor_element_count(out),
                 GPU_GIVE({.memory = i->weights[1].data}, {.memory = out->data}, {.number = width}),
                 why) != 0)
    return -1;
  const int status = blas_of(l)->cublasSgemm_v2(l->products, CUDA_TURNED, CUDA_PLAIN, width,
                                                (int)tensor_row_count(x), depth, &one, weight->data,
                                                depth, x->data, depth, &one, out->data, width);
  return status == 0 ? 0 : refuse("dense", status, why);
}

/* Of each text all heads at once. */
int cuda_attention_scores(const lane *l, const invocation *i, failure *why) {
  const tensor *query = i->in[0], *key = i->in[1], *out = i->out;
  const int heads = (int)out->dims[1], length = (int)out->dims[2],
            hidden = (int)tensor_row_width(query), band = hidden / heads;
  const float none = 0, factor = 1.0f / sqrtf((float)band);
  int status = 0;
  for (int64_t t = 0; t < out->dims[0] && status == 0; t++)
    status = blas_of(l)->cublasSgemmStridedBatched(
        l->products, CUDA_TURNED, CUDA_PLAIN, length, length, band, &factor,
        key->data + t * length * hidden, hidden, band, query->data + t * length * hidden, hidden,
        band, &none, out->data + t * heads * length * length, length, (long long)length * length,
        heads);
  return status == 0 ? 0 : refuse("attention_scores", status, why);
}

int cuda_attention_mix(const lane *l, const invocation *i, failure *why) {
  const tensor *scores = i->in[0], *value = i->in[1], *out = i->out;
  const int heads = (int)scores->dims[1], length = (int)scores->dims[2],
            hidden = (int)tensor_row_width(value), band = hidden / heads;
  const float none = 0, one = 1;
  int status = 0;
  for (int64_t t = 0; t < scores->dims[0] && status == 0; t++)
    status = blas_of(l)->cublasSgemmStridedBatched(
        l->products, CUDA_PLAIN, CUDA_PLAIN, band, length, length, &one,
        value->data + t * length * hidden, hidden, band, scores->data + t * heads * length * length,
        length, (long long)length * length, &none, out->data + t * length * hidden, hidden, band,
        heads);
  return status == 0 ? 0 : refuse("attention_mix", status, why);
}
