/* The operators of a BERT encoder, as ../ops.h describes them. Letters: B texts, L tokens of a row, H hidden. Rows come in multiples
   of 4 (texts are padded to 16 tokens), widths in multiples of 8: the engine refuses other models. SPDX-License-Identifier: MIT */

float sum_of(float8 v) {
  const float4 sum = v.lo + v.hi;
  return sum.x + sum.y + sum.z + sum.w;
}

/* One work-item an element of out[B*L, H]. */
kernel void embedding(global const int *ids, global const float *words, global const float *positions, global const float *types,
                      global float *out, int length) {
  const int column = get_global_id(0), row = get_global_id(1), width = get_global_size(0);
  out[row * width + column] = words[ids[row] * width + column] + positions[row % length * width + column] + types[column];
}

/* out[rows, N] = x[rows, K] * weight[N, K]^T + bias[N]. One work-item 4 rows and 4 columns: both sides are read along K, where they are
   dense, and each value that was loaded is used four times. */
kernel void dense(global const float *x, global const float *weight, global const float *bias, global float *out, int depth) {
  const int column = 4 * get_global_id(0), row = 4 * get_global_id(1), width = 4 * get_global_size(0);
  float8 sum[4][4];
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 4; j++) sum[i][j] = 0;
  for (int k = 0; k < depth; k += 8) {
    float8 a[4];
    for (int i = 0; i < 4; i++) a[i] = vload8(0, x + (row + i) * depth + k);
    for (int j = 0; j < 4; j++) {
      const float8 b = vload8(0, weight + (column + j) * depth + k);
      for (int i = 0; i < 4; i++) sum[i][j] = fma(a[i], b, sum[i][j]);
    }
  }
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 4; j++) out[(row + i) * width + column + j] = sum_of(sum[i][j]) + bias[column + j];
}

/* out[B, A, L, L] = query[B, L, H] * key[B, L, H]^T / sqrt(band), each head a band of H's columns. One work-item an element. */
kernel void attention_scores(global const float *query, global const float *key, global float *out, int heads, int hidden) {
  const int to = get_global_id(0), from = get_global_id(1), text = get_global_id(2) / heads, head = get_global_id(2) % heads;
  const int length = get_global_size(0), band = hidden / heads;
  global const float *q = query + (text * length + from) * hidden + head * band;
  global const float *k = key + (text * length + to) * hidden + head * band;
  float8 sum = 0;
  for (int c = 0; c < band; c += 8) sum = fma(vload8(0, q + c), vload8(0, k + c), sum);
  out[(get_global_id(2) * length + from) * length + to] = sum_of(sum) * rsqrt((float)band);
}

/* x[B, A, L, L]: every row over its text's tokens; the columns of padding become 0. One work-item a row. */
kernel void softmax(global const int *lengths, global float *x, int rows_per_text, int length) {
  const int row = get_global_id(0), count = lengths[row / rows_per_text];
  global float *at = x + row * length;
  float largest = at[0], sum = 0;
  for (int i = 1; i < count; i++) largest = fmax(largest, at[i]);
  for (int i = 0; i < count; i++) {
    at[i] = exp(at[i] - largest);
    sum += at[i];
  }
  for (int i = 0; i < count; i++) at[i] /= sum;
  for (int i = count; i < length; i++) at[i] = 0;
}

/* out[B, L, H] = scores[B, A, L, L] * value[B, L, H], by head. One work-item 8 columns of a row. */
kernel void attention_mix(global const float *scores, global const float *value, global float *out, int heads, int length) {
  const int column = 8 * get_global_id(0), hidden = 8 * get_global_size(0), row = get_global_id(1);
  const int text = row / length, head = column / (hidden / heads);
  global const float *weights = scores + ((text * heads + head) * length + row % length) * length;
  global const float *from = value + text * length * hidden + column;
  float8 sum = 0;
  for (int i = 0; i < length; i++) sum = fma((float8)weights[i], vload8(0, from + i * hidden), sum);
  vstore8(sum, 0, out + row * hidden + column);
}

/* x += y. One work-item 8 elements. */
kernel void add(global const float *y, global float *x) {
  const int i = get_global_id(0);
  vstore8(vload8(i, x) + vload8(i, y), i, x);
}

/* Every row of x to mean 0 and variance 1, then scaled and shifted. One work-item a row. */
kernel void layer_norm(global const float *scale, global const float *shift, global float *x, int width, float epsilon) {
  global float *at = x + get_global_id(0) * width;
  float8 sum = 0, squares = 0;
  for (int i = 0; i < width / 8; i++) sum += vload8(i, at);
  const float mean = sum_of(sum) / width;
  for (int i = 0; i < width / 8; i++) {
    const float8 distance = vload8(i, at) - mean;
    squares = fma(distance, distance, squares);
  }
  const float factor = rsqrt(sum_of(squares) / width + epsilon);
  for (int i = 0; i < width / 8; i++)
    vstore8((vload8(i, at) - mean) * factor * vload8(i, scale) + vload8(i, shift), i, at);
}

/* The exact form. One work-item 8 elements. */
kernel void gelu(global float *x) {
  const int i = get_global_id(0);
  const float8 v = vload8(i, x);
  vstore8(v * 0.5f * (1.0f + erf(v * 0.70710678f)), i, x);
}

/* out[B, H] = mean of x[B, L, H] over the text's tokens. One work-item an element. */
kernel void mean_pool(global const float *x, global const int *lengths, global float *out, int length) {
  const int column = get_global_id(0), width = get_global_size(0), text = get_global_id(1);
  float sum = 0;
  for (int i = 0; i < lengths[text]; i++) sum += x[(text * length + i) * width + column];
  out[text * width + column] = sum / lengths[text];
}

/* Every row of x to length 1. One work-item a row. */
kernel void l2_normalise(global float *x, int width) {
  global float *at = x + get_global_id(0) * width;
  float8 squares = 0;
  for (int i = 0; i < width / 8; i++) squares = fma(vload8(i, at), vload8(i, at), squares);
  const float factor = 1.0f / fmax(sqrt(sum_of(squares)), 1e-12f);
  for (int i = 0; i < width / 8; i++) vstore8(vload8(i, at) * factor, i, at);
}
