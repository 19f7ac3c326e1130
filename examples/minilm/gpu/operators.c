/* The operators of ../ops.h as kernels on the lane's stream, each inside of one scope of that
   stream, named and shaped as the host's. Matrix products are the vendor's: its products.c.
   SPDX-License-Identifier: MIT */
#include <prof/profiler.h>

#include "parts.h"

enum { BLOCK = 128 };

#define SHAPE_OF(t) PROF_TENSOR((t)->dims, (t)->rank, PROF_F32)
#define WITH_OPERATOR(name, shapes, ...) \
  WITH_GPU_PROFILER(l->engine->memory.device, l->stream, name, "operator", shapes, __VA_ARGS__)

int gpu_launch(const lane *l, gpu_kernel kernel, int64_t threads, const gpu_argument *arguments,
               size_t argument_count, failure *why) {
  int count = (int)threads;
  gpu_argument own[GPU_ARGUMENTS_MAX];
  void *places[GPU_ARGUMENTS_MAX + 1] = {&count};
  for (size_t i = 0; i < argument_count; i++) {
    own[i] = arguments[i];
    places[i + 1] = &own[i];
  }
  const unsigned blocks = (unsigned)((threads + BLOCK - 1) / BLOCK);
  const int error = l->engine->run.launch(l->engine->kernels[kernel], blocks, 1, 1, BLOCK, 1, 1, 0,
                                          l->stream, places, NULL);
  return error == 0 ? 0 : gpu_refuse(l->engine, "a kernel", error, why);
}

static int embedding(const lane *l, const invocation *i, failure *why) {
  const tensor *words = &i->weights[0], *out = i->out;
  int status = -1;
  WITH_OPERATOR("embedding", PROF_SHAPES(PROF_TENSOR(out->dims, 2, PROF_I32), SHAPE_OF(words)), {
    status = gpu_launch(
        l, KERNEL_embedding, tensor_element_count(out),
        GPU_GIVE({.memory = l->ids}, {.memory = words->data}, {.memory = i->weights[1].data},
                 {.memory = i->weights[2].data}, {.memory = out->data},
                 {.number = (int)out->dims[1]}, {.number = (int)tensor_row_width(out)}),
        why);
  });
  return status;
}

static int dense(const lane *l, const invocation *i, failure *why) {
  const tensor *x = i->in[0], *weight = &i->weights[0], *bias = &i->weights[1];
  int status = -1;
  WITH_OPERATOR("dense", PROF_SHAPES(SHAPE_OF(x), SHAPE_OF(weight), SHAPE_OF(bias)),
                { status = l->engine->vendor->dense(l, i, why); });
  return status;
}

static int attention_scores(const lane *l, const invocation *i, failure *why) {
  const tensor *query = i->in[0], *key = i->in[1];
  int status = -1;
  WITH_OPERATOR("batch_matmul", PROF_SHAPES(SHAPE_OF(query), SHAPE_OF(key)),
                { status = l->engine->vendor->attention_scores(l, i, why); });
  return status;
}

static int softmax(const lane *l, const invocation *i, failure *why) {
  const tensor *x = i->out;
  int status = -1;
  WITH_OPERATOR("softmax", PROF_SHAPES(SHAPE_OF(x)), {
    status = gpu_launch(
        l, KERNEL_softmax, tensor_row_count(x),
        GPU_GIVE({.memory = l->lengths}, {.memory = x->data},
                 {.number = (int)(x->dims[1] * x->dims[2])}, {.number = (int)x->dims[3]}),
        why);
  });
  return status;
}

static int attention_mix(const lane *l, const invocation *i, failure *why) {
  const tensor *scores = i->in[0], *value = i->in[1];
  int status = -1;
  WITH_OPERATOR("batch_matmul", PROF_SHAPES(SHAPE_OF(scores), SHAPE_OF(value)),
                { status = l->engine->vendor->attention_mix(l, i, why); });
  return status;
}

static int add(const lane *l, const invocation *i, failure *why) {
  const tensor *x = i->out, *y = i->in[1];
  int status = -1;
  WITH_OPERATOR("add", PROF_SHAPES(SHAPE_OF(x), SHAPE_OF(y)), {
    status = gpu_launch(l, KERNEL_add, tensor_element_count(x),
                        GPU_GIVE({.memory = y->data}, {.memory = x->data}), why);
  });
  return status;
}

static int layer_norm(const lane *l, const invocation *i, failure *why) {
  const tensor *x = i->out, *scale = &i->weights[0], *shift = &i->weights[1];
  int status = -1;
  WITH_OPERATOR("layer_norm", PROF_SHAPES(SHAPE_OF(x), SHAPE_OF(scale), SHAPE_OF(shift)), {
    status =
        gpu_launch(l, KERNEL_layer_norm, tensor_row_count(x),
                   GPU_GIVE({.memory = scale->data}, {.memory = shift->data}, {.memory = x->data},
                            {.number = (int)tensor_row_width(x)}, {.real = i->epsilon}),
                   why);
  });
  return status;
}

static int gelu(const lane *l, const invocation *i, failure *why) {
  const tensor *x = i->out;
  int status = -1;
  WITH_OPERATOR("gelu", PROF_SHAPES(SHAPE_OF(x)), {
    status =
        gpu_launch(l, KERNEL_gelu, tensor_element_count(x), GPU_GIVE({.memory = x->data}), why);
  });
  return status;
}

static int mean_pool(const lane *l, const invocation *i, failure *why) {
  const tensor *x = i->in[0], *out = i->out;
  int status = -1;
  WITH_OPERATOR("mean_pool", PROF_SHAPES(SHAPE_OF(x)), {
    status =
        gpu_launch(l, KERNEL_mean_pool, tensor_element_count(out),
                   GPU_GIVE({.memory = x->data}, {.memory = l->lengths}, {.memory = out->data},
                            {.number = (int)x->dims[1]}, {.number = (int)tensor_row_width(out)}),
                   why);
  });
  return status;
}

static int l2_normalise(const lane *l, const invocation *i, failure *why) {
  const tensor *x = i->out;
  int status = -1;
  WITH_OPERATOR("l2_normalise", PROF_SHAPES(SHAPE_OF(x)), {
    status = gpu_launch(l, KERNEL_l2_normalise, tensor_row_count(x),
                        GPU_GIVE({.memory = x->data}, {.number = (int)tensor_row_width(x)}), why);
  });
  return status;
}

int gpu_invoke(lane *l, const invocation *i, failure *why) {
  static const gpu_operator operators[] = {[OPCODE_EMBEDDING] = embedding,
                                           [OPCODE_DENSE] = dense,
                                           [OPCODE_ATTENTION_SCORES] = attention_scores,
                                           [OPCODE_SOFTMAX] = softmax,
                                           [OPCODE_ATTENTION_MIX] = attention_mix,
                                           [OPCODE_ADD] = add,
                                           [OPCODE_LAYER_NORM] = layer_norm,
                                           [OPCODE_GELU] = gelu,
                                           [OPCODE_MEAN_POOL] = mean_pool,
                                           [OPCODE_L2_NORMALISE] = l2_normalise};
  const int error = l->engine->vendor->use(l->engine);
  return error == 0 ? operators[i->op](l, i, why)
                    : gpu_refuse(l->engine, "the thread's device", error, why);
}
