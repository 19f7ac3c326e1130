/* The list of streams. See side.h. */
#define _GNU_SOURCE
#include <prof/backend.h>
#include <prof/profiler.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "../base/this_thread.h"
#include "side.h"

static struct {
  pthread_mutex_t lock; /* rank 3: who adds. Nothing is called under it */
  prof_i_stream *first; /* release; only grows, at its end */
  uint32_t count;
  const prof_i_stream *parents; /* of a forked child */
} own = {.lock = PTHREAD_MUTEX_INITIALIZER};

prof_i_stream *prof_i_stream_first(void) { return __atomic_load_n(&own.first, __ATOMIC_ACQUIRE); }

static prof_i_stream *find(prof_device device, uint64_t handle) {
  for (prof_i_stream *s = prof_i_stream_first(); s; s = prof_i_stream_next(s))
    if (s->handle == handle && s->device.type == device.type && s->device.index == device.index)
      return s;
  return NULL;
}

static prof_i_stream *make(prof_i_back_end *end, prof_device device, uint64_t handle) {
  prof_i_stream *const s = calloc(1, sizeof *s);
  if (!s) return NULL;
  *s = (prof_i_stream){.end = end, .handle = handle, .device = device};
  s->pending_end = &s->pending;
  s->line.role = PROF_I_ROLE_STREAM | (uint64_t)(uint32_t)device.type << PROF_I_ROLE_TYPE_SHIFT |
                 (uint64_t)(uint32_t)device.index << PROF_I_ROLE_INDEX_SHIFT;
  s->line.handle = handle;
  const bool is_queue = handle & PROF_BACKEND_QUEUE;
  snprintf(s->line.name, sizeof s->line.name, "%s 0x%llx", is_queue ? "queue" : "stream",
           (unsigned long long)(is_queue ? handle & ~PROF_BACKEND_QUEUE : handle));
  return s;
}

prof_i_stream *prof_i_stream_of(prof_device device, uint64_t handle, int *loss_out) {
  prof_i_stream *s = find(device, handle);
  if (s) return s;
  prof_i_back_end *const end = prof_i_registry_open(device.type);
  if (!end) {
    *loss_out = prof_i_registry_is_at_it(device.type) ? PROF_LOSS_DEVICE_TIMES : -1;
    return NULL;
  }
  prof_i_thread_lock(&own.lock);
  s = find(device, handle);
  if (!s && own.count < PROF_I_STREAMS_MAX && (s = make(end, device, handle)) != NULL) {
    prof_i_stream **place = &own.first;
    while (*place) place = &(*place)->next;
    own.count++;
    __atomic_store_n(place, s, __ATOMIC_RELEASE);
  }
  prof_i_thread_unlock(&own.lock);
  if (!s) *loss_out = PROF_LOSS_DEVICE_FULL;
  return s;
}

void prof_i_streams_forget(void) {
  pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
  own.lock = fresh;
  own.parents = own.first; /* their memory stays, and is not lost */
  own.first = NULL;
  own.count = 0;
}
