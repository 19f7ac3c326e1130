/* The operators of a BERT encoder, as ../ops.h describes them, for NVRTC and for hipRTC: one text,
   without a header and without what one of the two lacks. Letters: B texts, L tokens of a row, H
   hidden, A heads. The first parameter says how many threads have something to do. Rows come in
   multiples of 4 (texts are padded to 16 tokens), and so do widths. SPDX-License-Identifier: MIT */

static __device__ int own_index() { return (int)(blockIdx.x * blockDim.x + threadIdx.x); }

/* One thread an element of out[B*L, H]. */
extern "C" __global__ void embedding(int count, const int *ids, const float *words,
                                     const float *positions, const float *types, float *out,
                                     int length, int width) {
  const int i = own_index(), row = i / width, column = i % width;
  if (i < count)
    out[i] =
        words[ids[row] * width + column] + positions[row % length * width + column] + types[column];
}

/* out[rows, N] = bias[N], to which cuBLAS then adds its product. One thread an element. */
extern "C" __global__ void repeat(int count, const float *bias, float *out, int width) {
  const int i = own_index();
  if (i < count) out[i] = bias[i % width];
}

/* out[rows, N] = x[rows, K] * weight[N, K]^T + bias[N]. One thread 4 rows and 4 columns: each value
   that was loaded is used four times. */
extern "C" __global__ void dense(int count, const float *x, const float *weight, const float *bias,
                                 float *out, int depth, int width) {
  const int i = own_index(), row = i / (width / 4) * 4, column = i % (width / 4) * 4;
  if (i >= count) return;
  float sum[4][4] = {};
  for (int k = 0; k < depth; k++)
    for (int r = 0; r < 4; r++)
      for (int c = 0; c < 4; c++)
        sum[r][c] += x[(row + r) * depth + k] * weight[(column + c) * depth + k];
  for (int r = 0; r < 4; r++)
    for (int c = 0; c < 4; c++) out[(row + r) * width + column + c] = sum[r][c] + bias[column + c];
}

/* out[B, A, L, L] = query[B, L, H] * key[B, L, H]^T / sqrt(band), each head a band of H's columns.
   One thread an element. */
extern "C" __global__ void attention_scores(int count, const float *query, const float *key,
                                            float *out, int heads, int hidden, int length) {
  const int i = own_index(), to = i % length, from = i / length % length,
            text = i / length / length / heads, head = i / length / length % heads;
  if (i >= count) return;
  const int band = hidden / heads;
  const float *q = query + (text * length + from) * hidden + head * band,
              *k = key + (text * length + to) * hidden + head * band;
  float sum = 0;
  for (int c = 0; c < band; c++) sum += q[c] * k[c];
  out[i] = sum * rsqrtf((float)band);
}

/* x[B, A, L, L]: every row over its text's tokens; the columns of padding become 0. One thread a
   row. */
extern "C" __global__ void softmax(int count, const int *lengths, float *x, int rows_per_text,
                                   int length) {
  const int row = own_index();
  if (row >= count) return;
  const int tokens = lengths[row / rows_per_text];
  float *at = x + row * length, largest = at[0], sum = 0;
  for (int i = 1; i < tokens; i++) largest = fmaxf(largest, at[i]);
  for (int i = 0; i < tokens; i++) sum += at[i] = expf(at[i] - largest);
  for (int i = 0; i < tokens; i++) at[i] /= sum;
  for (int i = tokens; i < length; i++) at[i] = 0;
}

/* out[B, L, H] = scores[B, A, L, L] * value[B, L, H], by head. One thread 4 columns of a row. */
extern "C" __global__ void attention_mix(int count, const float *scores, const float *value,
                                         float *out, int heads, int hidden, int length) {
  const int i = own_index(), row = i / (hidden / 4), column = i % (hidden / 4) * 4;
  if (i >= count) return;
  const int text = row / length, head = column / (hidden / heads);
  const float *weights = scores + ((text * heads + head) * length + row % length) * length,
              *from = value + text * length * hidden + column;
  float sum[4] = {};
  for (int t = 0; t < length; t++)
    for (int c = 0; c < 4; c++) sum[c] += weights[t] * from[t * hidden + c];
  for (int c = 0; c < 4; c++) out[row * hidden + column + c] = sum[c];
}

/* x += y. One thread an element. */
extern "C" __global__ void add(int count, const float *y, float *x) {
  const int i = own_index();
  if (i < count) x[i] += y[i];
}

/* Every row of x to mean 0 and variance 1, then scaled and shifted. One thread a row. */
extern "C" __global__ void layer_norm(int count, const float *scale, const float *shift, float *x,
                                      int width, float epsilon) {
  if (own_index() >= count) return;
  float *at = x + own_index() * width, mean = 0, squares = 0;
  for (int i = 0; i < width; i++) mean += at[i];
  mean /= width;
  for (int i = 0; i < width; i++) squares += (at[i] - mean) * (at[i] - mean);
  const float factor = rsqrtf(squares / width + epsilon);
  for (int i = 0; i < width; i++) at[i] = (at[i] - mean) * factor * scale[i] + shift[i];
}

/* The exact form. One thread an element. */
extern "C" __global__ void gelu(int count, float *x) {
  const int i = own_index();
  if (i < count) x[i] = x[i] * 0.5f * (1.0f + erff(x[i] * 0.70710678f));
}

/* out[B, H] = mean of x[B, L, H] over the text's tokens. One thread an element. */
extern "C" __global__ void mean_pool(int count, const float *x, const int *lengths, float *out,
                                     int length, int width) {
  const int i = own_index(), text = i / width, column = i % width;
  if (i >= count) return;
  float sum = 0;
  for (int t = 0; t < lengths[text]; t++) sum += x[(text * length + t) * width + column];
  out[i] = sum / lengths[text];
}

/* Every row of x to length 1. One thread a row. */
extern "C" __global__ void l2_normalise(int count, float *x, int width) {
  if (own_index() >= count) return;
  float *at = x + own_index() * width, squares = 0;
  for (int i = 0; i < width; i++) squares += at[i] * at[i];
  const float factor = 1.0f / fmaxf(sqrtf(squares), 1e-12f);
  for (int i = 0; i < width; i++) at[i] *= factor;
}
