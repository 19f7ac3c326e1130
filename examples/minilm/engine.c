/* See engine.h. The host's engine, which is the operators as they are, and the list of engines.
   SPDX-License-Identifier: MIT */
#include "engine.h"

#include <prof/profiler.h>
#include <string.h>

#include "cuda/engine.h"
#include "hip/engine.h"
#include "ops.h"
#if MINILM_OPENCL
#include "opencl/engine.h"
#else
static int opencl_engine_open(engine **engine_out, failure *why) {
  (void)engine_out;
  return failure_set(why,
                     "this was built without OpenCL's headers (apt-get install opencl-headers)");
}
#endif

static int open_lane(engine *e, lane **lane_out, failure *why) {
  (void)e, (void)why;
  *lane_out = NULL;
  return 0;
}

static void nothing(lane *l) { (void)l; }

static uint64_t any_stream(const lane *l) {
  (void)l;
  return POOL_ANY_STREAM;
}

static int upload(lane *l, void *to, const void *from, size_t bytes, failure *why) {
  (void)l, (void)why;
  memcpy(to, from, bytes);
  return 0;
}

static int begin(lane *l, const batch *texts, failure *why) {
  (void)l, (void)texts, (void)why;
  return 0;
}

static int invoke(lane *l, const invocation *i, failure *why) {
  (void)l, (void)why;
  const tensor *w = i->weights;
  switch (i->op) {
    case OPCODE_EMBEDDING:
      op_embedding(i->texts->ids, &w[0], &w[1], &w[2], i->out);
      break;
    case OPCODE_DENSE:
      op_dense(i->in[0], &w[0], &w[1], i->out);
      break;
    case OPCODE_ATTENTION_SCORES:
      op_attention_scores(i->in[0], i->in[1], i->out);
      break;
    case OPCODE_SOFTMAX:
      op_softmax(i->texts->lengths, i->out);
      break;
    case OPCODE_ATTENTION_MIX:
      op_attention_mix(i->in[0], i->in[1], i->out);
      break;
    case OPCODE_ADD:
      op_add(i->in[1], i->out);
      break;
    case OPCODE_LAYER_NORM:
      op_layer_norm(&w[0], &w[1], i->epsilon, i->out);
      break;
    case OPCODE_GELU:
      op_gelu(i->out);
      break;
    case OPCODE_MEAN_POOL:
      op_mean_pool(i->in[0], i->texts->lengths, i->out);
      break;
    case OPCODE_L2_NORMALISE:
      op_l2_normalise(i->out);
      break;
  }
  return 0;
}

static int fetch(lane *l, const tensor *rows, const batch *texts, failure *why) {
  (void)l, (void)why;
  const int64_t width = tensor_row_width(rows);
  for (int64_t i = 0; i < texts->count; i++)
    memcpy(texts->embeddings[i], rows->data + i * width, (size_t)width * sizeof(float));
  return 0;
}

static void stay(engine *e) { (void)e; }

static engine host = {.name = "host",
                      .description = "OpenBLAS",
                      .reads_files = true,
                      .memory = &pool_host_memory,
                      .open_lane = open_lane,
                      .close_lane = nothing,
                      .stream = any_stream,
                      .upload = upload,
                      .begin = begin,
                      .invoke = invoke,
                      .fetch = fetch,
                      .finish = nothing,
                      .destroy = stay};

engine *engine_host(void) { return &host; }

void engine_name_lane(const engine *e, const lane *l, const char *name) {
  if (e->stream(l) != POOL_ANY_STREAM) prof_track_set_name(e->memory->device, e->stream(l), name);
}

int engine_open(const char *name, engine **engine_out, failure *why) {
  if (strcmp(name, "opencl") == 0) return opencl_engine_open(engine_out, why);
  if (strcmp(name, "cuda") == 0) return cuda_engine_open(engine_out, why);
  if (strcmp(name, "hip") == 0) return hip_engine_open(engine_out, why);
  if (strcmp(name, "host") != 0)
    return failure_set(why, "there is no device %s: host, opencl, cuda or hip", name);
  *engine_out = &host;
  return 0;
}
