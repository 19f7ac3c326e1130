/* See embed.h. SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L

#include "embed.h"

#include <prof/memory.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"
#include "ops.h"
#include "vm.h"

enum { POOL_BLOCK_BYTES = 8 << 20 };

struct minilm {
  model *model;
  pool *pool;
  uint32_t rows_tag; /* what the caller's rows are called in the account of memory */
};

static pthread_once_t ops_once = PTHREAD_ONCE_INIT; /* a later model must not set OpenBLAS's threads while others compute */

static int open_parts(const char *folder, minilm *m, failure *why) {
  char path[MODEL_PATH_BYTES];
  if (folder == NULL) {
    if (model_default_folder(path, why) != 0) return -1;
    folder = path;
  }
  if (model_open(folder, &m->model, why) != 0) return -1;
  m->pool = pool_create(POOL_BLOCK_BYTES);
  if (m->pool == NULL) return failure_set(why, "no memory for the pool");
  m->rows_tag = prof_memory_tag("embeddings");
  return 0;
}

int minilm_open(const char *folder, minilm **minilm_out, failure *why) {
  minilm *m = calloc(1, sizeof *m);
  if (m == NULL) return failure_set(why, "no memory for the model");
  if (open_parts(folder, m, why) != 0) {
    minilm_close(m);
    return -1;
  }
  pthread_once(&ops_once, ops_init);
  *minilm_out = m;
  return 0;
}

void minilm_close(minilm *m) {
  if (m == NULL) return;
  pool_destroy(m->pool);
  model_close(m->model);
  free(m);
}

int64_t minilm_width(const minilm *m) { return m->model->config.hidden; }

/* A VM of the call's own: it serves one thread, and is a register file of a few KiB. */
static int run(minilm *m, const batches *b, failure *why) {
  vm *v = vm_create(m->model->program, m->pool);
  if (v == NULL) return failure_set(why, "no memory for the VM");
  int status = 0;
  for (int64_t i = 0; i < b->count && status == 0; i++) status = vm_run(v, &b->items[i], why);
  vm_destroy(v);
  return status;
}

static int hand_out(minilm *m, const batches *b, float **rows_out, failure *why) {
  const size_t bytes = (size_t)b->text_count * (size_t)b->width * sizeof(float);
  float *rows = pool_acquire_for(m->pool, bytes, m->rows_tag);
  if (rows == NULL) return failure_set(why, "the pool has no %zu bytes for the embeddings", bytes);
  memcpy(rows, b->embeddings, bytes);
  *rows_out = rows;
  return 0;
}

int minilm_embed(minilm *m, const text_span *texts, int64_t count, float **rows_out, failure *why) {
  batches *b = NULL;
  if (batches_create(m->model->tokenizer, minilm_width(m), texts, count, &b, why) != 0) return -1;
  int status = run(m, b, why);
  if (status == 0) status = hand_out(m, b, rows_out, why);
  batches_destroy(b);
  return status;
}

void minilm_release(minilm *m, float *rows) { pool_release(m->pool, rows); }

void minilm_memory_get(minilm *m, pool_statistics *statistics_out) { pool_statistics_get(m->pool, statistics_out); }
