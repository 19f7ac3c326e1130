/* Matrix products by kernels of kernels.cu: what runs with the runtime alone. A program that is
   after speed takes hipBLAS here. SPDX-License-Identifier: MIT */
#include "parts.h"

int hip_open_products(lane *l, failure *why) {
  (void)l, (void)why;
  return 0;
}

void hip_close_products(lane *l) { (void)l; }

int hip_dense(const lane *l, const invocation *i, failure *why) {
  const tensor *x = i->in[0], *weight = &i->weights[0], *bias = &i->weights[1], *out = i->out;
  return gpu_launch(l, KERNEL_dense, tensor_element_count(out) / 16,
                    GPU_GIVE({.memory = x->data}, {.memory = weight->data}, {.memory = bias->data},
                             {.memory = out->data}, {.number = (int)tensor_row_width(x)},
                             {.number = (int)tensor_row_width(out)}),
                    why);
}

int hip_attention_scores(const lane *l, const invocation *i, failure *why) {
  const tensor *query = i->in[0], *out = i->out;
  return gpu_launch(
      l, KERNEL_attention_scores, tensor_element_count(out),
      GPU_GIVE({.memory = query->data}, {.memory = i->in[1]->data}, {.memory = out->data},
               {.number = (int)out->dims[1]}, {.number = (int)tensor_row_width(query)},
               {.number = (int)out->dims[3]}),
      why);
}

int hip_attention_mix(const lane *l, const invocation *i, failure *why) {
  const tensor *scores = i->in[0], *out = i->out;
  return gpu_launch(
      l, KERNEL_attention_mix, tensor_element_count(out) / 4,
      GPU_GIVE({.memory = scores->data}, {.memory = i->in[1]->data}, {.memory = out->data},
               {.number = (int)scores->dims[1]}, {.number = (int)tensor_row_width(out)},
               {.number = (int)scores->dims[2]}),
      why);
}
