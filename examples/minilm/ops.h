/* The operators of a BERT encoder, on OpenBLAS where it is a matrix product. Each is one level-1
   scope of category "operator" with the shapes of its inputs. They compute, and nothing else:
   shapes are right because the program's compiler made them, and memory is the VM's. Letters in the
   comments: B texts, L tokens of a row, H hidden, A heads. Any number of threads, on different
   outputs. SPDX-License-Identifier: MIT */
#ifndef MINILM_OPS_H
#define MINILM_OPS_H

#include "tensor.h"

/* One process-wide thing: OpenBLAS must not start threads of its own beside our workers. */
void ops_init(void);

/* out[B,L,H] = words[ids] + positions[0..L) + types[0]; ids holds B x L numbers below the row
   counts of words. */
void op_embedding(const int32_t *ids, const tensor *words, const tensor *positions,
                  const tensor *types, tensor *out);

/* out[..,N] = x[..,K] * weight[N,K]^T + bias[N] */
void op_dense(const tensor *x, const tensor *weight, const tensor *bias, tensor *out);

/* out[B,A,L,L] = query * key^T / sqrt(H / A), each head by itself; query and key are [B,L,H] */
void op_attention_scores(const tensor *query, const tensor *key, tensor *out);

/* x[B,A,L,L]: every row over the first lengths[b] columns; the columns of padding become 0 */
void op_softmax(const int64_t *lengths, tensor *x);

/* out[B,L,H] = scores[B,A,L,L] * value[B,L,H], each head by itself */
void op_attention_mix(const tensor *scores, const tensor *value, tensor *out);

/* x += y */
void op_add(const tensor *y, tensor *x);

/* Every row of x to mean 0 and variance 1, then scaled and shifted. */
void op_layer_norm(const tensor *weight, const tensor *bias, float epsilon, tensor *x);

/* The exact form: x * (1 + erf(x / sqrt 2)) / 2 */
void op_gelu(tensor *x);

/* out[B,H] = mean of x[B,L,H] over the first lengths[b] tokens */
void op_mean_pool(const tensor *x, const int64_t *lengths, tensor *out);

/* Every row of x to length 1. */
void op_l2_normalise(tensor *x);

/* out[N] = rows[N,H] * x[H] */
void op_similarity(const tensor *rows, const tensor *x, tensor *out);

#endif
