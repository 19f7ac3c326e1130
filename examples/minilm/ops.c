/* See ops.h. SPDX-License-Identifier: MIT */
#include "ops.h"

#include <cblas.h>
#include <math.h>
#include <prof/profiler.h>
#include <string.h>

#define SHAPE_OF(t) PROF_TENSOR((t)->dims, (t)->rank, PROF_F32)

void ops_init(void) { openblas_set_num_threads(1); }

void op_embedding(const int32_t *ids, const tensor *words, const tensor *positions,
                  const tensor *types, tensor *out) {
  WITH_BASE_PROFILER(PROF_HOST, "embedding", "operator",
                     PROF_SHAPES(PROF_TENSOR(out->dims, 2, PROF_I32), SHAPE_OF(words)), {
                       const int64_t width = tensor_row_width(out), length = out->dims[1],
                                     rows = tensor_row_count(out);
                       for (int64_t i = 0; i < rows; i++) {
                         const float *word = words->data + ids[i] * width;
                         const float *position = positions->data + i % length * width;
                         for (int64_t j = 0; j < width; j++)
                           out->data[i * width + j] = word[j] + position[j] + types->data[j];
                       }
                     });
}

void op_dense(const tensor *x, const tensor *weight, const tensor *bias, tensor *out) {
  WITH_BASE_PROFILER(
      PROF_HOST, "dense", "operator", PROF_SHAPES(SHAPE_OF(x), SHAPE_OF(weight), SHAPE_OF(bias)), {
        const int64_t rows = tensor_row_count(x), in = tensor_row_width(x),
                      width = tensor_row_width(out);
        /* The product is added to the bias that already lies there: one pass less. */
        for (int64_t i = 0; i < rows; i++)
          memcpy(out->data + i * width, bias->data, (size_t)width * sizeof(float));
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)rows, (int)width, (int)in, 1.0f,
                    x->data, (int)in, weight->data, (int)in, 1.0f, out->data, (int)width);
      });
}

/* A head is a band of columns: [B,L,H] is read with a row stride of H, so nothing is transposed or
   copied. */
void op_attention_scores(const tensor *query, const tensor *key, tensor *out) {
  WITH_BASE_PROFILER(
      PROF_HOST, "batch_matmul", "operator", PROF_SHAPES(SHAPE_OF(query), SHAPE_OF(key)), {
        const int64_t heads = out->dims[1], length = out->dims[2], hidden = tensor_row_width(query),
                      band = hidden / heads;
        const float scale = 1.0f / sqrtf((float)band);
        for (int64_t i = 0; i < out->dims[0] * heads; i++) {
          const int64_t from = i / heads * length * hidden + i % heads * band;
          cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)length, (int)length, (int)band,
                      scale, query->data + from, (int)hidden, key->data + from, (int)hidden, 0.0f,
                      out->data + i * length * length, (int)length);
        }
      });
}

static void softmax_row(float *row, int64_t count, int64_t padded_count) {
  float largest = row[0], sum = 0;
  for (int64_t i = 1; i < count; i++) largest = row[i] > largest ? row[i] : largest;
  for (int64_t i = 0; i < count; i++) {
    row[i] = expf(row[i] - largest);
    sum += row[i];
  }
  for (int64_t i = 0; i < count; i++) row[i] *= 1.0f / sum;
  for (int64_t i = count; i < padded_count; i++) row[i] = 0;
}

void op_softmax(const int64_t *lengths, tensor *x) {
  WITH_BASE_PROFILER(PROF_HOST, "softmax", "operator", PROF_SHAPES(SHAPE_OF(x)), {
    const int64_t width = tensor_row_width(x), rows_per_text = x->dims[1] * x->dims[2];
    for (int64_t i = 0; i < tensor_row_count(x); i++)
      softmax_row(x->data + i * width, lengths[i / rows_per_text], width);
  });
}

void op_attention_mix(const tensor *scores, const tensor *value, tensor *out) {
  WITH_BASE_PROFILER(
      PROF_HOST, "batch_matmul", "operator", PROF_SHAPES(SHAPE_OF(scores), SHAPE_OF(value)), {
        const int64_t heads = scores->dims[1], length = scores->dims[2],
                      hidden = tensor_row_width(out);
        const int64_t band = hidden / heads;
        for (int64_t i = 0; i < scores->dims[0] * heads; i++) {
          const int64_t from = i / heads * length * hidden + i % heads * band;
          cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)length, (int)band,
                      (int)length, 1.0f, scores->data + i * length * length, (int)length,
                      value->data + from, (int)hidden, 0.0f, out->data + from, (int)hidden);
        }
      });
}

void op_add(const tensor *y, tensor *x) {
  WITH_BASE_PROFILER(PROF_HOST, "add", "operator", PROF_SHAPES(SHAPE_OF(x), SHAPE_OF(y)), {
    const int64_t count = tensor_element_count(x);
    for (int64_t i = 0; i < count; i++) x->data[i] += y->data[i];
  });
}

static void layer_norm_row(float *row, int64_t width, const float *weight, const float *bias,
                           float epsilon) {
  float sum = 0, squares = 0;
  for (int64_t i = 0; i < width; i++) sum += row[i];
  const float mean = sum / (float)width;
  for (int64_t i = 0; i < width; i++) squares += (row[i] - mean) * (row[i] - mean);
  const float scale = 1.0f / sqrtf(squares / (float)width + epsilon);
  for (int64_t i = 0; i < width; i++) row[i] = (row[i] - mean) * scale * weight[i] + bias[i];
}

void op_layer_norm(const tensor *weight, const tensor *bias, float epsilon, tensor *x) {
  WITH_BASE_PROFILER(PROF_HOST, "layer_norm", "operator",
                     PROF_SHAPES(SHAPE_OF(x), SHAPE_OF(weight), SHAPE_OF(bias)), {
                       const int64_t width = tensor_row_width(x), rows = tensor_row_count(x);
                       for (int64_t i = 0; i < rows; i++)
                         layer_norm_row(x->data + i * width, width, weight->data, bias->data,
                                        epsilon);
                     });
}

void op_gelu(tensor *x) {
  WITH_BASE_PROFILER(PROF_HOST, "gelu", "operator", PROF_SHAPES(SHAPE_OF(x)), {
    const int64_t count = tensor_element_count(x);
    for (int64_t i = 0; i < count; i++)
      x->data[i] *= 0.5f * (1.0f + erff(x->data[i] * 0.70710678f));
  });
}

void op_mean_pool(const tensor *x, const int64_t *lengths, tensor *out) {
  WITH_BASE_PROFILER(PROF_HOST, "mean_pool", "operator", PROF_SHAPES(SHAPE_OF(x)), {
    const int64_t length = x->dims[1], width = tensor_row_width(x);
    memset(out->data, 0, (size_t)tensor_element_count(out) * sizeof(float));
    for (int64_t b = 0; b < out->dims[0]; b++)
      for (int64_t i = 0; i < lengths[b]; i++)
        for (int64_t j = 0; j < width; j++)
          out->data[b * width + j] += x->data[(b * length + i) * width + j] / (float)lengths[b];
  });
}

void op_l2_normalise(tensor *x) {
  WITH_BASE_PROFILER(PROF_HOST, "l2_normalise", "operator", PROF_SHAPES(SHAPE_OF(x)), {
    const int64_t width = tensor_row_width(x), rows = tensor_row_count(x);
    for (int64_t i = 0; i < rows; i++) {
      float *row = x->data + i * width;
      const float norm = cblas_snrm2((int)width, row, 1);
      cblas_sscal((int)width, 1.0f / fmaxf(norm, 1e-12f), row, 1);
    }
  });
}

void op_similarity(const tensor *rows, const tensor *x, tensor *out) {
  WITH_BASE_PROFILER(PROF_HOST, "similarity", "operator", PROF_SHAPES(SHAPE_OF(rows), SHAPE_OF(x)),
                     {
                       const int width = (int)tensor_row_width(rows);
                       cblas_sgemv(CblasRowMajor, CblasNoTrans, (int)tensor_row_count(rows), width,
                                   1.0f, rows->data, width, x->data, 1, 0.0f, out->data, 1);
                     });
}
