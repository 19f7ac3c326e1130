/* See engine.h: a queue, and the copies to and from the device. Kernels have their arguments as
   state, so each lane has kernels of its own. SPDX-License-Identifier: MIT */
#include <prof/profiler.h>
#include <stdlib.h>
#include <string.h>

#include "parts.h"

enum {
  IDS_BYTES = BATCH_TEXTS_MAX * TOKENIZER_LENGTH_MAX * sizeof(cl_int),
  LENGTHS_BYTES = BATCH_TEXTS_MAX * sizeof(cl_int)
};

/* ---- opening and closing ---- */

static void finish(lane *l) { l->engine->cl.clFinish(l->queue); }

static void close_lane(lane *l) {
  if (l == NULL) return;
  const opencl_engine *e = l->engine;
  if (l->queue != NULL) finish(l);
  for (int k = 0; k < OPENCL_KERNEL_COUNT; k++)
    if (l->kernels[k] != NULL) e->cl.clReleaseKernel(l->kernels[k]);
  if (l->ids != NULL) e->cl.clSVMFree(e->context, l->ids);
  if (l->lengths != NULL) e->cl.clSVMFree(e->context, l->lengths);
  if (l->queue != NULL) e->cl.clReleaseCommandQueue(l->queue);
  free(l->rows);
  free(l);
}

/* With times of its own, which a scope on it needs. */
static int create_parts(lane *l, failure *why) {
  const opencl_engine *e = l->engine;
  const cl_queue_properties properties[] = {CL_QUEUE_PROPERTIES, CL_QUEUE_PROFILING_ENABLE, 0};
  cl_int error = CL_SUCCESS;
  l->queue = e->cl.clCreateCommandQueueWithProperties(e->context, e->device, properties, &error);
  if (l->queue == NULL) return opencl_refuse(why, "clCreateCommandQueueWithProperties", error);
  for (int k = 0; k < OPENCL_KERNEL_COUNT; k++) {
    l->kernels[k] = e->cl.clCreateKernel(e->program, opencl_kernel_names[k], &error);
    if (l->kernels[k] == NULL) return opencl_refuse(why, opencl_kernel_names[k], error);
  }
  l->ids = e->cl.clSVMAlloc(e->context, CL_MEM_READ_ONLY, IDS_BYTES, 0);
  l->lengths = e->cl.clSVMAlloc(e->context, CL_MEM_READ_ONLY, LENGTHS_BYTES, 0);
  return l->ids != NULL && l->lengths != NULL
             ? 0
             : failure_set(why, "%s has no memory for a lane", e->name);
}

static int open_lane(engine *face, lane **lane_out, failure *why) {
  lane *l = calloc(1, sizeof *l);
  if (l == NULL) return failure_set(why, "no memory for a lane");
  l->engine = (opencl_engine *)face;
  if (create_parts(l, why) != 0) {
    close_lane(l);
    return -1;
  }
  *lane_out = l;
  return 0;
}

static uint64_t stream(const lane *l) { return (uint64_t)(uintptr_t)l->queue; }

/* ---- copies ---- */

static cl_int copy(const lane *l, cl_bool waits, void *to, const void *from, size_t bytes) {
  cl_int error = CL_SUCCESS;
  WITH_GPU_PROFILER(l->engine->memory.device, l->queue, "copy", "copy", PROF_ARGS("bytes", bytes), {
    error = l->engine->cl.clEnqueueSVMMemcpy(l->queue, waits, to, from, bytes, 0, NULL, NULL);
  });
  return error;
}

static int upload(lane *l, void *to, const void *from, size_t bytes, failure *why) {
  const cl_int error = copy(l, CL_TRUE, to, from, bytes);
  return error == CL_SUCCESS ? 0 : opencl_refuse(why, "clEnqueueSVMMemcpy", error);
}

/* The texts' tokens may still be read when this returns: they stay until fetch() or finish(). */
static int begin(lane *l, const batch *texts, failure *why) {
  for (int64_t i = 0; i < texts->count; i++) l->own_lengths[i] = (cl_int)texts->lengths[i];
  cl_int error =
      copy(l, CL_FALSE, l->lengths, l->own_lengths, (size_t)texts->count * sizeof *l->lengths);
  if (error == CL_SUCCESS)
    error = copy(l, CL_FALSE, l->ids, texts->ids,
                 (size_t)(texts->count * texts->length) * sizeof *texts->ids);
  return error == CL_SUCCESS ? 0 : opencl_refuse(why, "clEnqueueSVMMemcpy", error);
}

static int make_room(lane *l, size_t bytes, failure *why) {
  if (l->rows_bytes >= bytes) return 0;
  float *grown = realloc(l->rows, bytes);
  if (grown == NULL) return failure_set(why, "no memory for %zu bytes of embeddings", bytes);
  l->rows = grown;
  l->rows_bytes = bytes;
  return 0;
}

static int fetch(lane *l, const tensor *rows, const batch *texts, failure *why) {
  const size_t bytes = (size_t)tensor_row_width(rows) * sizeof(float);
  if (make_room(l, (size_t)texts->count * bytes, why) != 0) return -1;
  cl_int error = copy(l, CL_FALSE, l->rows, rows->data, (size_t)texts->count * bytes);
  if (error == CL_SUCCESS)
    WITH_BASE_PROFILER_LEVEL(2, PROF_HOST, "wait for the device", "device wait", PROF_NO_ARGS,
                             { error = l->engine->cl.clFinish(l->queue); });
  if (error != CL_SUCCESS) return opencl_refuse(why, "the embeddings", error);
  for (int64_t i = 0; i < texts->count; i++)
    memcpy(texts->embeddings[i], (const char *)l->rows + (size_t)i * bytes, bytes);
  return 0;
}

void opencl_lane_fill(engine *face) {
  face->open_lane = open_lane;
  face->close_lane = close_lane;
  face->stream = stream;
  face->upload = upload;
  face->begin = begin;
  face->invoke = opencl_invoke;
  face->fetch = fetch;
  face->finish = finish;
}
