/* The list of streams. See event_pair.h. */
#define _GNU_SOURCE
#include <prof/backend.h>
#include <prof/profiler.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "../base/this_thread.h"
#include "device_state.h"
#include "event_pair.h"

static struct {
  pthread_mutex_t lock; /* rank 3: taken to add. Nothing is called under it */
  prof_i_stream *first; /* release; only grows, at its end */
  uint32_t count;
  const prof_i_stream *inherited; /* of a forked child */
} stream_list = {.lock = PTHREAD_MUTEX_INITIALIZER};

prof_i_stream *prof_i_stream_first(void) {
  return __atomic_load_n(&stream_list.first, __ATOMIC_ACQUIRE);
}

static prof_i_stream *find_stream(prof_device device, uint64_t handle) {
  for (prof_i_stream *s = prof_i_stream_first(); s; s = prof_i_stream_next(s))
    if (s->handle == handle && s->device.type == device.type && s->device.index == device.index)
      return s;
  return NULL;
}

static prof_i_stream *make_stream(prof_i_backend *backend, prof_device device, uint64_t handle) {
  prof_i_stream *const s = calloc(1, sizeof *s);
  if (!s) return NULL;
  *s = (prof_i_stream){.backend = backend, .handle = handle, .device = device};
  s->pending_end = &s->pending;
  s->line.thread_kind = PROF_I_KIND_OF_STREAM |
                        (uint64_t)(uint32_t)device.type << PROF_I_THREAD_KIND_TYPE_SHIFT |
                        (uint64_t)(uint32_t)device.index << PROF_I_THREAD_KIND_INDEX_SHIFT;
  s->line.handle = handle;
  const bool is_queue = handle & PROF_BACKEND_QUEUE;
  snprintf(s->line.name, sizeof s->line.name, "%s 0x%llx", is_queue ? "queue" : "stream",
           (unsigned long long)(is_queue ? handle & ~PROF_BACKEND_QUEUE : handle));
  return s;
}

prof_i_stream *prof_i_stream_of(prof_device device, uint64_t handle, int *loss_out) {
  prof_i_stream *s = find_stream(device, handle);
  if (s) return s;
  prof_i_backend *const backend = prof_i_registry_open(device.type);
  if (!backend) {
    *loss_out = prof_i_registry_is_opening(device.type) ? PROF_LOSS_DEVICE_TIMES : -1;
    return NULL;
  }
  prof_i_thread_lock(&stream_list.lock);
  s = find_stream(device, handle);
  if (!s && stream_list.count < PROF_I_STREAMS_MAX &&
      (s = make_stream(backend, device, handle)) != NULL) {
    prof_i_stream **place = &stream_list.first;
    while (*place) place = &(*place)->next;
    stream_list.count++;
    __atomic_store_n(place, s, __ATOMIC_RELEASE);
  }
  prof_i_thread_unlock(&stream_list.lock);
  if (!s) *loss_out = PROF_LOSS_DEVICE_FULL;
  return s;
}

void prof_i_stream_report_error(const prof_i_stream *stream, int result) {
  char reason[sizeof((prof_i_device_state *)NULL)->reason];
  snprintf(reason, sizeof reason, "stream 0x%llx: %s", (unsigned long long)stream->handle,
           prof_i_registry_error_text(stream->backend, result));
  prof_i_registry_set_stream_error(stream->backend, stream->handle, result);
  prof_i_device_state_report(stream->device, stream->backend, result, reason);
}

void prof_i_streams_forget(void) {
  pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
  stream_list.lock = fresh;
  stream_list.inherited = stream_list.first; /* their memory stays, and is not lost */
  stream_list.first = NULL;
  stream_list.count = 0;
}
