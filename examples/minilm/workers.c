/* See workers.h. SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L

#include "workers.h"

#include <prof/profiler.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct worker {
  workers *all;
  vm *vm;
  pthread_t thread;
  int index;
} worker;

struct workers {
  /* guards the queue, the counts and the failure; nothing is called under it */
  pthread_mutex_t mutex;
  pthread_cond_t has_work, has_room, is_idle;
  const batch *queue[WORKERS_QUEUE_ROOM]; /* a ring */
  int head, queued_count, running_count;
  bool is_closing, has_failed;
  failure first_failure;
  worker items[WORKERS_MAX];
  int count;
};

/* The mutex is held. NULL: the workers are to end. */
static const batch *take(workers *w) {
  if (w->queued_count == 0 && !w->is_closing)
    WITH_BASE_PROFILER_LEVEL(2, PROF_HOST, "wait for work", "wait", PROF_NO_ARGS, {
      while (w->queued_count == 0 && !w->is_closing) pthread_cond_wait(&w->has_work, &w->mutex);
    });
  if (w->queued_count == 0) return NULL;
  const batch *texts = w->queue[w->head];
  w->head = (w->head + 1) % WORKERS_QUEUE_ROOM;
  w->queued_count--;
  w->running_count++;
  pthread_cond_signal(&w->has_room);
  return texts;
}

/* The mutex is held. */
static void finish(workers *w, int status, const failure *why) {
  if (status != 0 && !w->has_failed) {
    w->has_failed = true;
    w->first_failure = *why;
  }
  w->running_count--;
  if (w->running_count == 0 && w->queued_count == 0) pthread_cond_broadcast(&w->is_idle);
}

static void *work(void *argument) {
  worker *self = argument;
  workers *w = self->all;
  char name[32];
  snprintf(name, sizeof name, "worker %d", self->index);
  prof_thread_set_name(name);
  vm_set_name(self->vm, name);
  pthread_mutex_lock(&w->mutex);
  for (const batch *texts; (texts = take(w)) != NULL;) {
    pthread_mutex_unlock(&w->mutex);
    failure why;
    const int status = vm_run(self->vm, texts, &why);
    pthread_mutex_lock(&w->mutex);
    finish(w, status, &why);
  }
  pthread_mutex_unlock(&w->mutex);
  return NULL;
}

static int start(workers *w, int index, const program *p, engine *e, pool *memory, failure *why) {
  worker *item = &w->items[index];
  *item = (worker){.all = w, .index = index};
  if (vm_create(p, e, memory, &item->vm, why) != 0) return -1;
  const int error = pthread_create(&item->thread, NULL, work, item);
  if (error == 0) return 0;
  vm_destroy(item->vm);
  return failure_set(why, "worker %d: %s", index, strerror(error));
}

int workers_create(const program *p, engine *e, pool *memory, int count, workers **workers_out,
                   failure *why) {
  if (count < 1 || count > WORKERS_MAX)
    return failure_set(why, "%d workers are not 1 to %d", count, WORKERS_MAX);
  workers *w = calloc(1, sizeof *w);
  if (w == NULL) return failure_set(why, "no memory for the workers");
  pthread_mutex_init(&w->mutex, NULL);
  pthread_cond_init(&w->has_work, NULL);
  pthread_cond_init(&w->has_room, NULL);
  pthread_cond_init(&w->is_idle, NULL);
  for (; w->count < count; w->count++) {
    if (start(w, w->count, p, e, memory, why) == 0) continue;
    workers_destroy(w);
    return -1;
  }
  *workers_out = w;
  return 0;
}

void workers_destroy(workers *w) {
  if (w == NULL) return;
  pthread_mutex_lock(&w->mutex);
  w->is_closing = true;
  pthread_cond_broadcast(&w->has_work);
  pthread_mutex_unlock(&w->mutex);
  for (int i = 0; i < w->count; i++) {
    pthread_join(w->items[i].thread, NULL);
    vm_destroy(w->items[i].vm);
  }
  pthread_cond_destroy(&w->is_idle);
  pthread_cond_destroy(&w->has_room);
  pthread_cond_destroy(&w->has_work);
  pthread_mutex_destroy(&w->mutex);
  free(w);
}

void workers_submit(workers *w, const batch *texts) {
  pthread_mutex_lock(&w->mutex);
  if (w->queued_count == WORKERS_QUEUE_ROOM)
    WITH_BASE_PROFILER_LEVEL(2, PROF_HOST, "wait for room", "wait", PROF_NO_ARGS, {
      while (w->queued_count == WORKERS_QUEUE_ROOM) pthread_cond_wait(&w->has_room, &w->mutex);
    });
  w->queue[(w->head + w->queued_count) % WORKERS_QUEUE_ROOM] = texts;
  w->queued_count++;
  pthread_cond_signal(&w->has_work);
  pthread_mutex_unlock(&w->mutex);
}

int workers_wait(workers *w, failure *why) {
  pthread_mutex_lock(&w->mutex);
  WITH_BASE_PROFILER_LEVEL(2, PROF_HOST, "wait for workers", "wait", PROF_NO_ARGS, {
    while (w->running_count > 0 || w->queued_count > 0) pthread_cond_wait(&w->is_idle, &w->mutex);
  });
  const bool has_failed = w->has_failed;
  w->has_failed = false;
  if (has_failed) *why = w->first_failure;
  pthread_mutex_unlock(&w->mutex);
  return has_failed ? -1 : 0;
}
