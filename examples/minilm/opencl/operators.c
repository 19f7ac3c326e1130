/* The operators of ../ops.h as kernels. Each sets its kernel's arguments and puts it on the lane's
   queue, inside of one scope of that queue, named and shaped as the host's.
   SPDX-License-Identifier: MIT */
#include <prof/profiler.h>

#include "parts.h"

#define SHAPE_OF(t) PROF_TENSOR((t)->dims, (t)->rank, PROF_F32)

/* A kernel whose arguments are being set; the first error stays. */
typedef struct call {
  const lane *lane;
  cl_kernel kernel;
  cl_uint count;
  cl_int error;
} call;

static call begin_call(const lane *l, int kernel) {
  return (call){.lane = l, .kernel = l->kernels[kernel]};
}

static void give_memory(call *c, const void *memory) {
  if (c->error == CL_SUCCESS)
    c->error = c->lane->engine->cl.clSetKernelArgSVMPointer(c->kernel, c->count++, memory);
}

static void give_int(call *c, int64_t value) {
  const cl_int narrow = (cl_int)value;
  if (c->error == CL_SUCCESS)
    c->error = c->lane->engine->cl.clSetKernelArg(c->kernel, c->count++, sizeof narrow, &narrow);
}

static void give_float(call *c, float value) {
  if (c->error == CL_SUCCESS)
    c->error = c->lane->engine->cl.clSetKernelArg(c->kernel, c->count++, sizeof value, &value);
}

/* The flush: the device begins while the host still puts instructions there. */
static cl_int put(call *c, int64_t x, int64_t y, int64_t z) {
  const size_t sizes[] = {(size_t)x, (size_t)y, (size_t)z};
  const opencl *cl = &c->lane->engine->cl;
  if (c->error == CL_SUCCESS)
    c->error =
        cl->clEnqueueNDRangeKernel(c->lane->queue, c->kernel, 3, NULL, sizes, NULL, 0, NULL, NULL);
  return c->error == CL_SUCCESS ? cl->clFlush(c->lane->queue) : c->error;
}

#define WITH_OPERATOR(name, shapes, ...) \
  WITH_GPU_PROFILER(l->engine->memory.device, l->queue, name, "operator", shapes, __VA_ARGS__)

static cl_int embedding(const lane *l, const invocation *i) {
  const tensor *words = &i->weights[0];
  call c = begin_call(l, KERNEL_embedding);
  WITH_OPERATOR("embedding", PROF_SHAPES(PROF_TENSOR(i->out->dims, 2, PROF_I32), SHAPE_OF(words)), {
    give_memory(&c, l->ids);
    for (int k = 0; k < 3; k++) give_memory(&c, i->weights[k].data);
    give_memory(&c, i->out->data);
    give_int(&c, i->out->dims[1]);
    c.error = put(&c, tensor_row_width(i->out), tensor_row_count(i->out), 1);
  });
  return c.error;
}

static cl_int dense(const lane *l, const invocation *i) {
  const tensor *x = i->in[0], *weight = &i->weights[0], *bias = &i->weights[1];
  call c = begin_call(l, KERNEL_dense);
  WITH_OPERATOR("dense", PROF_SHAPES(SHAPE_OF(x), SHAPE_OF(weight), SHAPE_OF(bias)), {
    give_memory(&c, x->data);
    give_memory(&c, weight->data);
    give_memory(&c, bias->data);
    give_memory(&c, i->out->data);
    give_int(&c, tensor_row_width(x));
    c.error = put(&c, tensor_row_width(i->out) / 4, tensor_row_count(i->out) / 4, 1);
  });
  return c.error;
}

static cl_int attention_scores(const lane *l, const invocation *i) {
  const tensor *query = i->in[0], *key = i->in[1], *out = i->out;
  call c = begin_call(l, KERNEL_attention_scores);
  WITH_OPERATOR("batch_matmul", PROF_SHAPES(SHAPE_OF(query), SHAPE_OF(key)), {
    give_memory(&c, query->data);
    give_memory(&c, key->data);
    give_memory(&c, out->data);
    give_int(&c, out->dims[1]);
    give_int(&c, tensor_row_width(query));
    c.error = put(&c, out->dims[3], out->dims[2], out->dims[0] * out->dims[1]);
  });
  return c.error;
}

static cl_int softmax(const lane *l, const invocation *i) {
  const tensor *x = i->out;
  call c = begin_call(l, KERNEL_softmax);
  WITH_OPERATOR("softmax", PROF_SHAPES(SHAPE_OF(x)), {
    give_memory(&c, l->lengths);
    give_memory(&c, x->data);
    give_int(&c, x->dims[1] * x->dims[2]);
    give_int(&c, x->dims[3]);
    c.error = put(&c, tensor_row_count(x), 1, 1);
  });
  return c.error;
}

static cl_int attention_mix(const lane *l, const invocation *i) {
  const tensor *scores = i->in[0], *value = i->in[1], *out = i->out;
  call c = begin_call(l, KERNEL_attention_mix);
  WITH_OPERATOR("batch_matmul", PROF_SHAPES(SHAPE_OF(scores), SHAPE_OF(value)), {
    give_memory(&c, scores->data);
    give_memory(&c, value->data);
    give_memory(&c, out->data);
    give_int(&c, scores->dims[1]);
    give_int(&c, scores->dims[2]);
    c.error = put(&c, tensor_row_width(out) / 8, tensor_row_count(out), 1);
  });
  return c.error;
}

static cl_int add(const lane *l, const invocation *i) {
  const tensor *x = i->out, *y = i->in[1];
  call c = begin_call(l, KERNEL_add);
  WITH_OPERATOR("add", PROF_SHAPES(SHAPE_OF(x), SHAPE_OF(y)), {
    give_memory(&c, y->data);
    give_memory(&c, x->data);
    c.error = put(&c, tensor_element_count(x) / 8, 1, 1);
  });
  return c.error;
}

static cl_int layer_norm(const lane *l, const invocation *i) {
  const tensor *x = i->out, *scale = &i->weights[0], *shift = &i->weights[1];
  call c = begin_call(l, KERNEL_layer_norm);
  WITH_OPERATOR("layer_norm", PROF_SHAPES(SHAPE_OF(x), SHAPE_OF(scale), SHAPE_OF(shift)), {
    give_memory(&c, scale->data);
    give_memory(&c, shift->data);
    give_memory(&c, x->data);
    give_int(&c, tensor_row_width(x));
    give_float(&c, i->epsilon);
    c.error = put(&c, tensor_row_count(x), 1, 1);
  });
  return c.error;
}

static cl_int gelu(const lane *l, const invocation *i) {
  const tensor *x = i->out;
  call c = begin_call(l, KERNEL_gelu);
  WITH_OPERATOR("gelu", PROF_SHAPES(SHAPE_OF(x)), {
    give_memory(&c, x->data);
    c.error = put(&c, tensor_element_count(x) / 8, 1, 1);
  });
  return c.error;
}

static cl_int mean_pool(const lane *l, const invocation *i) {
  const tensor *x = i->in[0], *out = i->out;
  call c = begin_call(l, KERNEL_mean_pool);
  WITH_OPERATOR("mean_pool", PROF_SHAPES(SHAPE_OF(x)), {
    give_memory(&c, x->data);
    give_memory(&c, l->lengths);
    give_memory(&c, out->data);
    give_int(&c, x->dims[1]);
    c.error = put(&c, tensor_row_width(out), out->dims[0], 1);
  });
  return c.error;
}

static cl_int l2_normalise(const lane *l, const invocation *i) {
  const tensor *x = i->out;
  call c = begin_call(l, KERNEL_l2_normalise);
  WITH_OPERATOR("l2_normalise", PROF_SHAPES(SHAPE_OF(x)), {
    give_memory(&c, x->data);
    give_int(&c, tensor_row_width(x));
    c.error = put(&c, tensor_row_count(x), 1, 1);
  });
  return c.error;
}

int opencl_invoke(lane *l, const invocation *i, failure *why) {
  static const struct {
    const char *name;
    cl_int (*put)(const lane *l, const invocation *i);
  } operators[] = {[OPCODE_EMBEDDING] = {"embedding", embedding},
                   [OPCODE_DENSE] = {"dense", dense},
                   [OPCODE_ATTENTION_SCORES] = {"attention_scores", attention_scores},
                   [OPCODE_SOFTMAX] = {"softmax", softmax},
                   [OPCODE_ATTENTION_MIX] = {"attention_mix", attention_mix},
                   [OPCODE_ADD] = {"add", add},
                   [OPCODE_LAYER_NORM] = {"layer_norm", layer_norm},
                   [OPCODE_GELU] = {"gelu", gelu},
                   [OPCODE_MEAN_POOL] = {"mean_pool", mean_pool},
                   [OPCODE_L2_NORMALISE] = {"l2_normalise", l2_normalise}};
  const cl_int error = operators[i->op].put(l, i);
  return error == CL_SUCCESS ? 0 : opencl_refuse(why, operators[i->op].name, error);
}
