/* Which implementation of an operator is the faster one? Measures the model's operators at the
   model's shapes, two implementations of each in alternation. Prints a table with what prof doubts,
   and chooses only if the comparison is sure.

   usage: opbench [--quick]   SPDX-License-Identifier: MIT */
#include <math.h>
#include <prof/op.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops.h"

enum { TEXTS = 1, TOKENS = 128, HIDDEN = 384, INNER = 1536, HEADS = 12, LANES = 8 };

/* ---- what the implementations work on ---- */

typedef struct data {
  tensor x, weight, bias, out;
  /* of those that work in place: copied to out before each run, by either implementation alike */
  const float *input;
  int64_t lengths[TEXTS];
} data;

static float *make_floats(int64_t count, float from, float to) {
  float *const floats = malloc((size_t)count * sizeof *floats);
  if (!floats) exit(1);
  for (int64_t i = 0; i < count; i++)
    floats[i] = from + (to - from) * (float)((i * 7919 + 17) % 1009) / 1009.0f;
  return floats;
}

static void restore(data *d) {
  memcpy(d->out.data, d->input, (size_t)tensor_element_count(&d->out) * sizeof(float));
}

/* ---- dense ---- */

static int dense_blas(void *user) {
  data *const d = user;
  op_dense(&d->x, &d->weight, &d->bias, &d->out);
  return 0;
}

static float dot(const float *a, const float *b, int64_t count) {
  float sums[LANES] = {0}, sum = 0;
  for (int64_t i = 0; i < count; i += LANES)
    for (int64_t lane = 0; lane < LANES; lane++) sums[lane] += a[i + lane] * b[i + lane];
  for (int lane = 0; lane < LANES; lane++) sum += sums[lane];
  return sum;
}

static int dense_loops(void *user) {
  data *const d = user;
  for (int64_t i = 0; i < TOKENS; i++)
    for (int64_t j = 0; j < INNER; j++)
      d->out.data[i * INNER + j] =
          d->bias.data[j] + dot(d->x.data + i * HIDDEN, d->weight.data + j * HIDDEN, HIDDEN);
  return 0;
}

/* ---- softmax ---- */

static int softmax_model(void *user) {
  data *const d = user;
  restore(d);
  op_softmax(d->lengths, &d->out);
  return 0;
}

/* Keeps the largest value so far and the sum relative to it (Milakov and Gimelshein): one pass
   less, one exponential more. */
static int softmax_online(void *user) {
  data *const d = user;
  restore(d);
  const int64_t width = tensor_row_width(&d->out);
  for (int64_t i = 0; i < tensor_row_count(&d->out); i++) {
    float *const row = d->out.data + i * width;
    float largest = row[0], sum = 1;
    for (int64_t j = 1; j < width; j++) {
      if (row[j] <= largest) {
        sum += expf(row[j] - largest);
      } else {
        sum = sum * expf(largest - row[j]) + 1;
        largest = row[j];
      }
    }
    for (int64_t j = 0; j < width; j++) row[j] = expf(row[j] - largest) / sum;
  }
  return 0;
}

/* ---- layer norm ---- */

static int layer_norm_model(void *user) {
  data *const d = user;
  restore(d);
  op_layer_norm(&d->weight, &d->bias, 1e-12f, &d->out);
  return 0;
}

/* Sum and sum of squares in one pass, in lanes. */
static int layer_norm_one_pass(void *user) {
  data *const d = user;
  restore(d);
  for (int64_t i = 0; i < tensor_row_count(&d->out); i++) {
    float *const row = d->out.data + i * HIDDEN;
    float sums[LANES] = {0}, squares[LANES] = {0}, sum = 0, square = 0;
    for (int64_t j = 0; j < HIDDEN; j += LANES)
      for (int64_t lane = 0; lane < LANES; lane++) {
        sums[lane] += row[j + lane];
        squares[lane] += row[j + lane] * row[j + lane];
      }
    for (int lane = 0; lane < LANES; lane++) {
      sum += sums[lane];
      square += squares[lane];
    }
    const float mean = sum / HIDDEN, scale = 1.0f / sqrtf(square / HIDDEN - mean * mean + 1e-12f);
    for (int64_t j = 0; j < HIDDEN; j++)
      row[j] = (row[j] - mean) * scale * d->weight.data[j] + d->bias.data[j];
  }
  return 0;
}

/* ---- the bench ---- */

typedef struct contest {
  const char *key;
  data d;
  const char *names[2];
  int (*runs[2])(void *user);
} contest;

static float difference(contest *c) {
  const int64_t count = tensor_element_count(&c->d.out);
  float *const first = malloc((size_t)count * sizeof *first);
  float most = 0;
  if (!first) exit(1);
  c->runs[0](&c->d);
  memcpy(first, c->d.out.data, (size_t)count * sizeof *first);
  c->runs[1](&c->d);
  for (int64_t i = 0; i < count; i++) most = fmaxf(most, fabsf(first[i] - c->d.out.data[i]));
  free(first);
  return most;
}

static void print_row(const char *key, const char *name, const prof_op_result *result) {
  prof_op_info info = {.size = sizeof info};
  char text[256], low[32] = "-", high[32] = "-";
  prof_op_info_get(result, &info);
  prof_op_text(result, text, sizeof text);
  const char *const doubts = strchr(text, ';');
  if (!(info.doubts & PROF_OP_FEW_SAMPLES)) { /* else it has no interval of 95 % */
    snprintf(low, sizeof low, "%.1f", info.median_low_us);
    snprintf(high, sizeof high, "%.1f", info.median_high_us);
  }
  printf("%-30s %-16s %10.1f %10s %10s %8u  %s\n", key, name, info.median_us, low, high,
         info.sample_count, doubts ? doubts + 2 : "sound");
}

static void print_choice(const contest *c, const prof_op_comparison *comparison, size_t rounds) {
  static const char *const words[] = {
      [PROF_OP_UNCLEAR] = "unclear", [PROF_OP_SAME] = "the same within 2 %"};
  char choice[64] = "", interval[64];
  if (comparison->order == PROF_OP_FASTER)
    snprintf(choice, sizeof choice, "take %s", c->names[1]);
  else if (comparison->order == PROF_OP_SLOWER)
    snprintf(choice, sizeof choice, "take %s", c->names[0]);
  else
    snprintf(choice, sizeof choice, "no choice: %s", words[comparison->order]);
  if (isinf(comparison->ratio_high))
    snprintf(interval, sizeof interval, "no interval from %zu round%s", rounds,
             rounds == 1 ? "" : "s");
  else
    snprintf(interval, sizeof interval, "%.3f to %.3f", comparison->ratio_low,
             comparison->ratio_high);
  printf("%-30s %s takes %.3f times as long as %s (%s): %s\n\n", "", c->names[1], comparison->ratio,
         c->names[0], interval, choice);
}

static size_t count_rounds(prof_op_result *const results[2]) {
  size_t counts[2];
  for (int i = 0; i < 2; i++) prof_op_samples(results[i], &counts[i]);
  return counts[0] < counts[1] ? counts[0] : counts[1];
}

static int hold(contest *c, const prof_op_options *options) {
  prof_op_result *results[2] = {NULL};
  prof_op_comparison comparison = {.size = sizeof comparison};
  char keys[2][96];
  prof_op ops[2];
  const float apart = difference(c);
  if (!(apart < 1e-3f)) {
    fprintf(stderr, "opbench: %s: %s and %s differ by %g\n", c->key, c->names[0], c->names[1],
            (double)apart);
    return 1;
  }
  for (int i = 0; i < 2; i++) {
    snprintf(keys[i], sizeof keys[i], "%s, %s", c->key, c->names[i]);
    ops[i] = (prof_op){.size = sizeof *ops, .key = keys[i], .user = &c->d, .run = c->runs[i]};
  }
  if (prof_op_profile_in_turn(ops, 2, options, results) != PROF_OK ||
      prof_op_compare(results[0], results[1], 0, &comparison) != PROF_OK) {
    fprintf(stderr, "opbench: %s: %s\n", c->key, prof_last_error());
    return 1;
  }
  for (int i = 0; i < 2; i++) print_row(i ? "" : c->key, c->names[i], results[i]);
  print_choice(c, &comparison, count_rounds(results));
  for (int i = 0; i < 2; i++) prof_op_result_destroy(results[i]);
  return 0;
}

static tensor make_tensor(int rank, const int64_t *dims, float from, float to) {
  tensor t = {.rank = rank};
  memcpy(t.dims, dims, (size_t)rank * sizeof *dims);
  t.data = make_floats(tensor_element_count(&t), from, to);
  return t;
}
#define TENSOR(from, to, ...)                                            \
  make_tensor((int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), \
              (const int64_t[]){__VA_ARGS__}, from, to)

static void free_data(data *d) {
  free(d->x.data);
  free(d->weight.data);
  free(d->bias.data);
  free(d->out.data);
  free((void *)(uintptr_t)d->input);
}

int main(int argc, char **argv) {
  const int is_quick = argc == 2 && strcmp(argv[1], "--quick") == 0;
  if (argc > 1 && !is_quick) {
    fprintf(stderr, "usage: opbench [--quick]\n");
    return 2;
  }
  const prof_op_options options = {.size = sizeof options,
                                   .least_ns = is_quick ? 10000000 : 300000000,
                                   .time_limit_ns = is_quick ? 100000000 : 2000000000};
  contest contests[] = {
      {"dense f32 128x384x1536",
       {.x = TENSOR(-1, 1, TEXTS, TOKENS, HIDDEN),
        .weight = TENSOR(-0.1f, 0.1f, INNER, HIDDEN),
        .bias = TENSOR(-1, 1, INNER),
        .out = TENSOR(0, 1, TEXTS, TOKENS, INNER)},
       {"OpenBLAS", "loops, 8 sums"},
       {dense_blas, dense_loops}},
      {"softmax f32 12x128x128",
       {.out = TENSOR(0, 1, TEXTS, HEADS, TOKENS, TOKENS),
        .input = make_floats(TEXTS * HEADS * TOKENS * TOKENS, -4, 4),
        .lengths = {TOKENS}},
       {"three passes", "online"},
       {softmax_model, softmax_online}},
      {"layer_norm f32 128x384",
       {.weight = TENSOR(0.5f, 1.5f, HIDDEN),
        .bias = TENSOR(-1, 1, HIDDEN),
        .out = TENSOR(0, 1, TEXTS, TOKENS, HIDDEN),
        .input = make_floats(TEXTS * TOKENS * HIDDEN, -2, 2)},
       {"three passes", "two passes"},
       {layer_norm_model, layer_norm_one_pass}},
  };
  int failed = 0;
  ops_init();
  printf("%-30s %-16s %10s %10s %10s %8s  %s\n", "operator", "implementation", "median us", "from",
         "to (95 %)", "samples", "doubts");
  for (size_t i = 0; i < sizeof contests / sizeof *contests; i++) {
    failed |= hold(&contests[i], &options);
    free_data(&contests[i].d);
  }
  return failed;
}
