/* See parts.h: a stream, and the copies to and from the device. Whatever calls the vendor makes the
   device the thread's first: a lane may be used by one thread after the other.
   SPDX-License-Identifier: MIT */
#include <prof/profiler.h>
#include <stdlib.h>
#include <string.h>

#include "parts.h"

enum {
  IDS_BYTES = BATCH_TEXTS_MAX * TOKENIZER_LENGTH_MAX * sizeof(int),
  LENGTHS_BYTES = BATCH_TEXTS_MAX * sizeof(int)
};

/* ---- opening and closing ---- */

static void finish(lane *l) {
  if (l->engine->vendor->use(l->engine) == 0) l->engine->run.wait_for_stream(l->stream);
}

static void close_lane(lane *l) {
  if (l == NULL) return;
  const gpu_engine *e = l->engine;
  if (l->stream != NULL) finish(l);
  e->vendor->close_lane(l);
  if (l->ids != NULL) e->run.free(l->ids);
  if (l->lengths != NULL) e->run.free(l->lengths);
  if (l->rows != NULL) e->run.free_pinned(l->rows);
  if (l->stream != NULL) e->run.destroy_stream(l->stream);
  free(l);
}

static int allocate(const gpu_engine *e, int **memory_out, size_t bytes) {
  void *memory = NULL;
  const int error = e->run.allocate(&memory, bytes);
  *memory_out = memory;
  return error;
}

static int create_parts(lane *l, failure *why) {
  const gpu_engine *e = l->engine;
  int error = e->vendor->use(e);
  if (error == 0) error = e->run.create_stream(&l->stream, 0);
  if (error == 0) error = allocate(e, &l->ids, IDS_BYTES);
  if (error == 0) error = allocate(e, &l->lengths, LENGTHS_BYTES);
  return error == 0 ? e->vendor->open_lane(l, why) : gpu_refuse(e, "a lane", error, why);
}

static int open_lane(engine *face, lane **lane_out, failure *why) {
  lane *l = calloc(1, sizeof *l);
  if (l == NULL) return failure_set(why, "no memory for a lane");
  l->engine = (gpu_engine *)face;
  if (create_parts(l, why) != 0) {
    close_lane(l);
    return -1;
  }
  *lane_out = l;
  return 0;
}

static uint64_t stream(const lane *l) { return (uint64_t)(uintptr_t)l->stream; }

/* ---- copies ---- */

#define WITH_COPY(l, bytes, ...)                                             \
  WITH_GPU_PROFILER((l)->engine->memory.device, (l)->stream, "copy", "copy", \
                    PROF_ARGS("bytes", bytes), __VA_ARGS__)

static int copy_there(const lane *l, void *to, const void *from, size_t bytes) {
  int error = l->engine->vendor->use(l->engine);
  if (error == 0)
    WITH_COPY(l, bytes, { error = l->engine->run.copy_to_device(to, from, bytes, l->stream); });
  return error;
}

static int copy_back(const lane *l, void *to, void *from, size_t bytes) {
  int error = l->engine->vendor->use(l->engine);
  if (error == 0)
    WITH_COPY(l, bytes, { error = l->engine->run.copy_to_host(to, from, bytes, l->stream); });
  return error;
}

static int upload(lane *l, void *to, const void *from, size_t bytes, failure *why) {
  int error = copy_there(l, to, from, bytes);
  if (error == 0) error = l->engine->run.wait_for_stream(l->stream);
  return error == 0 ? 0 : gpu_refuse(l->engine, "a copy to the device", error, why);
}

/* The texts' tokens may still be read when this returns: they stay until fetch() or finish(). */
static int begin(lane *l, const batch *texts, failure *why) {
  for (int64_t i = 0; i < texts->count; i++) l->own_lengths[i] = (int)texts->lengths[i];
  int error = copy_there(l, l->lengths, l->own_lengths, (size_t)texts->count * sizeof *l->lengths);
  if (error == 0)
    error = copy_there(l, l->ids, texts->ids,
                       (size_t)(texts->count * texts->length) * sizeof *texts->ids);
  return error == 0 ? 0 : gpu_refuse(l->engine, "a copy to the device", error, why);
}

/* Pinned: a copy to other memory would wait for all that is on the stream before it, inside of its
   scope. */
static int make_room(lane *l, size_t bytes) {
  if (l->rows_bytes >= bytes) return 0;
  const gpu_engine *e = l->engine;
  if (l->rows != NULL) e->run.free_pinned(l->rows);
  void *rows = NULL;
  const int error = e->run.allocate_pinned(&rows, bytes, 0);
  l->rows = error == 0 ? rows : NULL;
  l->rows_bytes = error == 0 ? bytes : 0;
  return error;
}

static int fetch(lane *l, const tensor *rows, const batch *texts, failure *why) {
  const size_t bytes = (size_t)tensor_row_width(rows) * sizeof(float),
               all_bytes = (size_t)texts->count * bytes;
  int error = l->engine->vendor->use(l->engine);
  if (error == 0) error = make_room(l, all_bytes);
  if (error == 0) error = copy_back(l, l->rows, rows->data, all_bytes);
  if (error == 0)
    WITH_BASE_PROFILER_LEVEL(2, PROF_HOST, "wait for the device", "device wait", PROF_NO_ARGS,
                             { error = l->engine->run.wait_for_stream(l->stream); });
  if (error != 0) return gpu_refuse(l->engine, "the embeddings", error, why);
  for (int64_t i = 0; i < texts->count; i++)
    memcpy(texts->embeddings[i], (const char *)l->rows + (size_t)i * bytes, bytes);
  return 0;
}

void gpu_lane_fill(engine *face) {
  face->open_lane = open_lane;
  face->close_lane = close_lane;
  face->stream = stream;
  face->upload = upload;
  face->begin = begin;
  face->invoke = gpu_invoke;
  face->fetch = fetch;
  face->finish = finish;
}
