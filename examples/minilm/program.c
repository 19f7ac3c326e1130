/* See program.h. The compiler is a builder: each emit_... function appends one instruction and
   returns the register with its result. The first refusal sticks in the builder and makes the rest
   do nothing, so the text of the model below reads as the model and not as error handling.
   SPDX-License-Identifier: MIT */
#include "program.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct builder {
  program *program;
  const config *config;
  const safetensors *file;
  failure *why;
  bool has_failed;
} builder;

enum { WEIGHT_NAME_BYTES = 128 };

static void refuse_for_memory(builder *b) {
  if (!b->has_failed) failure_set(b->why, "no memory for the program");
  b->has_failed = true;
}

/* Appends an instruction without weights; the name is printf's. NULL: the builder has failed. */
__attribute__((format(printf, 5, 6))) static instruction *emit(builder *b, opcode op, int in0,
                                                               int in1, const char *name, ...) {
  program *p = b->program;
  if (b->has_failed) return NULL;
  if (p->instruction_count == p->instruction_room) {
    const int room = p->instruction_room == 0 ? 64 : 2 * p->instruction_room;
    instruction *grown = realloc(p->code, (size_t)room * sizeof *grown);
    if (grown == NULL) {
      refuse_for_memory(b);
      return NULL;
    }
    p->code = grown;
    p->instruction_room = room;
  }
  instruction *i = &p->code[p->instruction_count++];
  *i = (instruction){.op = op, .in = {in0, in1}, .out = in0, .dead = {NO_REGISTER, NO_REGISTER}};
  va_list values;
  va_start(values, name);
  vsnprintf(i->name, sizeof i->name, name, values);
  va_end(values);
  return i;
}

/* Gives the instruction a new register for its result; without this it writes in place. */
static int to_new_register(builder *b, instruction *i) {
  if (i == NULL) return NO_REGISTER;
  i->out = b->program->register_count++;
  return i->out;
}

static void need_weight(builder *b, instruction *i, int index, const char *prefix,
                        const char *suffix, int rank, const int64_t *dims) {
  if (b->has_failed) return;
  char name[2 * WEIGHT_NAME_BYTES];
  snprintf(name, sizeof name, "%s.%s", prefix, suffix);
  b->has_failed = safetensors_get(b->file, name, rank, dims, &i->weights[index], b->why) != 0;
}

static int emit_embedding(builder *b) {
  const config *c = b->config;
  instruction *i = emit(b, OPCODE_EMBEDDING, NO_REGISTER, NO_REGISTER, "embeddings");
  const char *suffixes[] = {"word_embeddings.weight", "position_embeddings.weight",
                            "token_type_embeddings.weight"};
  const int64_t rows[] = {c->vocabulary, c->positions, c->token_types};
  for (int k = 0; k < 3; k++)
    need_weight(b, i, k, "embeddings", suffixes[k], 2, (int64_t[]){rows[k], c->hidden});
  return to_new_register(b, i);
}

static int emit_dense(builder *b, int64_t layer, const char *what, const char *weight, int x,
                      int64_t in, int64_t out) {
  char prefix[WEIGHT_NAME_BYTES];
  snprintf(prefix, sizeof prefix, "encoder.layer.%lld.%s", (long long)layer, weight);
  instruction *i = emit(b, OPCODE_DENSE, x, NO_REGISTER, "layer %lld %s", (long long)layer, what);
  need_weight(b, i, 0, prefix, "weight", 2, (int64_t[]){out, in});
  need_weight(b, i, 1, prefix, "bias", 1, &out);
  return to_new_register(b, i);
}

static void emit_layer_norm(builder *b, const char *name, const char *prefix, int x) {
  instruction *i = emit(b, OPCODE_LAYER_NORM, x, NO_REGISTER, "%s", name);
  need_weight(b, i, 0, prefix, "weight", 1, &b->config->hidden);
  need_weight(b, i, 1, prefix, "bias", 1, &b->config->hidden);
}

/* x = norm(x + residual), both halves of a layer end so. */
static void emit_residual(builder *b, int64_t layer, const char *half, const char *weight, int x,
                          int residual) {
  char name[INSTRUCTION_NAME_BYTES], prefix[WEIGHT_NAME_BYTES];
  snprintf(name, sizeof name, "layer %lld %s norm", (long long)layer, half);
  snprintf(prefix, sizeof prefix, "encoder.layer.%lld.%s.LayerNorm", (long long)layer, weight);
  emit(b, OPCODE_ADD, x, residual, "layer %lld %s residual", (long long)layer, half);
  emit_layer_norm(b, name, prefix, x);
}

static int emit_attention(builder *b, int64_t layer, int x) {
  const int64_t h = b->config->hidden;
  const int query = emit_dense(b, layer, "query", "attention.self.query", x, h, h);
  const int key = emit_dense(b, layer, "key", "attention.self.key", x, h, h);
  const int value = emit_dense(b, layer, "value", "attention.self.value", x, h, h);
  const int scores = to_new_register(b, emit(b, OPCODE_ATTENTION_SCORES, query, key,
                                             "layer %lld attention scores", (long long)layer));
  emit(b, OPCODE_SOFTMAX, scores, NO_REGISTER, "layer %lld attention softmax", (long long)layer);
  const int mixed = to_new_register(b, emit(b, OPCODE_ATTENTION_MIX, scores, value,
                                            "layer %lld attention mix", (long long)layer));
  const int out = emit_dense(b, layer, "attention output", "attention.output.dense", mixed, h, h);
  emit_residual(b, layer, "attention", "attention.output", out, x);
  return out;
}

static int emit_feed_forward(builder *b, int64_t layer, int x) {
  const config *c = b->config;
  const int wide =
      emit_dense(b, layer, "intermediate", "intermediate.dense", x, c->hidden, c->intermediate);
  emit(b, OPCODE_GELU, wide, NO_REGISTER, "layer %lld gelu", (long long)layer);
  const int out = emit_dense(b, layer, "output", "output.dense", wide, c->intermediate, c->hidden);
  emit_residual(b, layer, "output", "output", out, x);
  return out;
}

static void emit_model(builder *b) {
  int x = emit_embedding(b);
  emit_layer_norm(b, "embeddings norm", "embeddings.LayerNorm", x);
  for (int64_t layer = 0; layer < b->config->layers; layer++)
    x = emit_feed_forward(b, layer, emit_attention(b, layer, x));
  const int pooled = to_new_register(b, emit(b, OPCODE_MEAN_POOL, x, NO_REGISTER, "mean pool"));
  emit(b, OPCODE_L2_NORMALISE, pooled, NO_REGISTER, "normalise");
  b->program->result = pooled;
}

/* Walks backwards: the first reader met is the last one to run. A register that the instruction
   writes in place lives on. */
static void mark_last_uses(builder *b) {
  program *p = b->program;
  bool *is_read_later = calloc((size_t)p->register_count, sizeof *is_read_later);
  if (is_read_later == NULL) {
    refuse_for_memory(b);
    return;
  }
  is_read_later[p->result] = true;
  for (int k = p->instruction_count - 1; k >= 0; k--) {
    instruction *i = &p->code[k];
    for (int n = 0; n < INSTRUCTION_INPUTS_MAX; n++) {
      if (i->in[n] == NO_REGISTER) continue;
      if (!is_read_later[i->in[n]]) i->dead[n] = i->in[n];
      is_read_later[i->in[n]] = true;
    }
  }
  free(is_read_later);
}

int program_compile(const config *c, const safetensors *weights, program **program_out,
                    failure *why) {
  program *p = calloc(1, sizeof *p);
  if (p == NULL) return failure_set(why, "no memory for the program");
  p->heads = c->heads;
  p->layer_norm_epsilon = c->layer_norm_epsilon;
  builder b = {p, c, weights, why, false};
  emit_model(&b);
  if (!b.has_failed) mark_last_uses(&b);
  if (b.has_failed) {
    program_destroy(p);
    return -1;
  }
  *program_out = p;
  return 0;
}

void program_destroy(program *p) {
  if (p == NULL) return;
  free(p->code);
  free(p);
}
