/* See embed.h. SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L

#include "embed.h"

#include <prof/memory.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"
#include "ops.h"
#include "placement.h"
#include "vm.h"

enum { POOL_BLOCK_BYTES = 8 << 20 };

/* A VM that nobody uses: opening a device's lane for each call would take longer than the call. */
typedef struct idle {
  vm *vm;
  struct idle *next;
} idle;

struct minilm {
  model *model;
  engine *engine;
  pool *pool;      /* of the engine's memory */
  pool *rows_pool; /* of the host's: the same one where that is the engine's */
  placement *placement;
  pthread_mutex_t mutex; /* guards idles */
  idle *idles;
  uint32_t rows_tag; /* what the caller's rows are called in the account of memory */
};

/* a later model must not set OpenBLAS's threads while others compute */
static pthread_once_t ops_once = PTHREAD_ONCE_INIT;

static int open_pools(minilm *m, failure *why) {
  m->pool = pool_create(POOL_BLOCK_BYTES, m->engine->memory);
  m->rows_pool = m->engine->memory == &pool_host_memory
                     ? m->pool
                     : pool_create(POOL_BLOCK_BYTES, &pool_host_memory);
  return m->pool != NULL && m->rows_pool != NULL ? 0 : failure_set(why, "no memory for the pool");
}

static int open_model(const char *folder, minilm *m, failure *why) {
  char path[MODEL_PATH_BYTES];
  failure inner;
  if (folder == NULL && model_default_folder(path, &inner) == 0) folder = path;
  if (folder != NULL && model_open(folder, &m->model, &inner) == 0) return 0;
  return failure_set(why, "no model: %.480s", inner.text);
}

static int open_parts(const char *folder, const char *device, minilm *m, failure *why) {
  if (engine_open(device != NULL ? device : "host", &m->engine, why) != 0 ||
      open_model(folder, m, why) != 0)
    return -1;
  m->rows_tag = prof_memory_tag("embeddings");
  return open_pools(m, why) != 0
             ? -1
             : placement_create(m->model->program, m->engine, m->pool, &m->placement, why);
}

int minilm_open(const char *folder, const char *device, minilm **minilm_out, failure *why) {
  minilm *m = calloc(1, sizeof *m);
  if (m == NULL) return failure_set(why, "no memory for the model");
  pthread_mutex_init(&m->mutex, NULL);
  if (open_parts(folder, device, m, why) != 0) {
    minilm_close(m);
    return -1;
  }
  pthread_once(&ops_once, ops_init);
  *minilm_out = m;
  return 0;
}

void minilm_close(minilm *m) {
  if (m == NULL) return;
  while (m->idles != NULL) {
    idle *first = m->idles;
    m->idles = first->next;
    vm_destroy(first->vm);
    free(first);
  }
  placement_destroy(m->placement);
  if (m->rows_pool != m->pool) pool_destroy(m->rows_pool);
  pool_destroy(m->pool);
  if (m->engine != NULL) m->engine->destroy(m->engine);
  model_close(m->model);
  pthread_mutex_destroy(&m->mutex);
  free(m);
}

int64_t minilm_width(const minilm *m) { return m->model->config.hidden; }

/* One that was left, or a new one: NULL, and why. */
static idle *take_vm(minilm *m, failure *why) {
  pthread_mutex_lock(&m->mutex);
  idle *found = m->idles;
  if (found != NULL) m->idles = found->next;
  pthread_mutex_unlock(&m->mutex);
  if (found != NULL) return found;
  found = calloc(1, sizeof *found);
  if (found == NULL) failure_set(why, "no memory for the VM");
  if (found == NULL ||
      vm_create(placement_program(m->placement), m->engine, m->pool, &found->vm, why) == 0)
    return found;
  free(found);
  return NULL;
}

static void leave_vm(minilm *m, idle *one) {
  pthread_mutex_lock(&m->mutex);
  one->next = m->idles;
  m->idles = one;
  pthread_mutex_unlock(&m->mutex);
}

static int run(minilm *m, const batches *b, failure *why) {
  idle *one = take_vm(m, why);
  if (one == NULL) return -1;
  int status = 0;
  for (int64_t i = 0; i < b->count && status == 0; i++) status = vm_run(one->vm, &b->items[i], why);
  leave_vm(m, one);
  return status;
}

static int hand_out(minilm *m, const batches *b, float **rows_out, failure *why) {
  const size_t bytes = (size_t)b->text_count * (size_t)b->width * sizeof(float);
  float *rows = pool_acquire_for(m->rows_pool, bytes, (pool_purpose){m->rows_tag, POOL_ANY_STREAM});
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

void minilm_release(minilm *m, float *rows) { pool_release(m->rows_pool, rows); }

void minilm_memory_get(minilm *m, pool_statistics *statistics_out) {
  pool_statistics_get(m->pool, statistics_out);
}
