/* See engine.h. */
#define _GNU_SOURCE
#include "engine.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct engine_fence {
  uint64_t ns; /* 0: not past; release */
};

typedef struct command {
  struct command *next;
  engine_fence *fence; /* NULL: a copy */
  void *to;
  const void *from;
  size_t bytes;
} command;

struct engine_queue {
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  command *first, **end;
  bool is_busy, quits;
};

uint64_t engine_now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_BOOTTIME, &now);
  /* not the host's */
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec + 1000000000u;
}

static void do_it(const command *c) {
  if (c->fence)
    __atomic_store_n(&c->fence->ns, engine_now_ns(), __ATOMIC_RELEASE);
  else
    memcpy(c->to, c->from, c->bytes);
}

static void *work(void *of) {
  engine_queue *const q = of;
  pthread_mutex_lock(&q->lock);
  while (q->first || !q->quits) {
    command *const c = q->first;
    if (!c) {
      pthread_cond_wait(&q->changed, &q->lock);
      continue;
    }
    if ((q->first = c->next) == NULL) q->end = &q->first;
    q->is_busy = true;
    pthread_mutex_unlock(&q->lock);
    do_it(c);
    free(c);
    pthread_mutex_lock(&q->lock);
    q->is_busy = false;
    pthread_cond_broadcast(&q->changed);
  }
  pthread_mutex_unlock(&q->lock);
  return NULL;
}

engine_queue *engine_queue_create(void) {
  engine_queue *const q = calloc(1, sizeof *q);
  if (!q) return NULL;
  q->end = &q->first;
  pthread_mutex_init(&q->lock, NULL);
  pthread_cond_init(&q->changed, NULL);
  if (pthread_create(&q->thread, NULL, work, q) == 0) return q;
  free(q);
  return NULL;
}

static int put(engine_queue *q, command what) {
  command *const c = malloc(sizeof *c);
  if (!c) return -1;
  *c = what;
  pthread_mutex_lock(&q->lock);
  *q->end = c;
  q->end = &c->next;
  pthread_cond_broadcast(&q->changed);
  pthread_mutex_unlock(&q->lock);
  return 0;
}

int engine_copy(engine_queue *queue, void *to, const void *from, size_t bytes) {
  return put(queue, (command){.to = to, .from = from, .bytes = bytes});
}

void engine_finish(engine_queue *q) {
  pthread_mutex_lock(&q->lock);
  while (q->first || q->is_busy) pthread_cond_wait(&q->changed, &q->lock);
  pthread_mutex_unlock(&q->lock);
}

void engine_queue_destroy(engine_queue *q) {
  if (!q) return;
  pthread_mutex_lock(&q->lock);
  q->quits = true;
  pthread_cond_broadcast(&q->changed);
  pthread_mutex_unlock(&q->lock);
  pthread_join(q->thread, NULL);
  pthread_mutex_destroy(&q->lock);
  pthread_cond_destroy(&q->changed);
  free(q);
}

engine_fence *engine_fence_create(void) { return calloc(1, sizeof(engine_fence)); }
void engine_fence_destroy(engine_fence *fence) { free(fence); }

int engine_fence_put(engine_queue *queue, engine_fence *fence) {
  __atomic_store_n(&fence->ns, 0, __ATOMIC_RELAXED);
  return put(queue, (command){.fence = fence});
}

bool engine_fence_is_past(const engine_fence *fence) { return engine_fence_ns(fence) != 0; }
uint64_t engine_fence_ns(const engine_fence *fence) {
  return __atomic_load_n(&fence->ns, __ATOMIC_ACQUIRE);
}
