/* prof's back end for the engine of engine.h: a whole one, tier 1. Built as a plug-in
   (libengine_prof.so), which prof loads by path: PROF_BACKENDS=/where/it/is/libengine_prof.so, or
   prof_backend_load(). A vendor of a device writes the same with its own events. Rules that each
   call keeps stand at the top of <prof/backend.h>. */
#include <prof/backend.h>
#include <string.h>

#include "engine.h"

enum { ENGINE_DEVICE = 12 }; /* DLPack's kDLExtDev: a device of another kind */

/* One for the process. A forked child has none of the parent's queues' threads. */
struct prof_backend_self {
  const prof_backend_host *host;
  int is_forked; /* atomic */
};

/* Could it work here? The engine is linked to this file; one whose library is opened would do that
   here, and touch no device. */
static int probe(const prof_backend_host *host) {
  (void)host;
  return PROF_BACKEND_OK;
}

static int open_it(const prof_backend_host *host, prof_backend_self **self_out) {
  static prof_backend_self self;
  self.host = host;
  *self_out = &self;
  return PROF_BACKEND_OK;
}

static void fork_child(prof_backend_self *self) {
  __atomic_store_n(&self->is_forked, 1, __ATOMIC_RELAXED);
}
static int is_forked(prof_backend_self *self) {
  return __atomic_load_n(&self->is_forked, __ATOMIC_RELAXED);
}

/* ---- events: moments of a queue's. prof puts one at either end of a scope, asks both until they
   are past, and uses them again ---- */

static int event_create(prof_backend_self *self, uint64_t stream, void **event_out) {
  (void)stream;
  if (is_forked(self)) return PROF_BACKEND_FORKED;
  *event_out = engine_fence_create();
  return *event_out ? PROF_BACKEND_OK : PROF_BACKEND_NO_MEMORY;
}

/* The stream is what the program gave WITH_GPU_PROFILER(): its engine_queue. */
static int event_record(prof_backend_self *self, uint64_t stream, void **event) {
  if (is_forked(self)) return PROF_BACKEND_FORKED;
  if (!stream) return PROF_BACKEND_INVALID;
  return engine_fence_put((engine_queue *)(uintptr_t)stream, *event) == 0 ? PROF_BACKEND_OK
                                                                          : PROF_BACKEND_NO_MEMORY;
}

static int event_query(prof_backend_self *self, void *event) {
  if (is_forked(self)) return PROF_BACKEND_FORKED;
  return engine_fence_is_past(event) ? PROF_BACKEND_OK : PROF_BACKEND_NOT_READY;
}

static int event_time(prof_backend_self *self, void *event, uint64_t *ns_out) {
  (void)self;
  *ns_out = engine_fence_ns(event);
  return *ns_out ? PROF_BACKEND_OK : PROF_BACKEND_NOT_READY;
}

static void event_destroy(prof_backend_self *self, void *event) {
  (void)self;
  engine_fence_destroy(event);
}

/* ---- what may be left out: what the device is, and its clock. Without a clock prof narrows down
   by when work was launched, and found to be past ---- */

static int describe(prof_backend_self *self, uint32_t index, prof_backend_device *out) {
  /* it is a thread: every export says so */
  const prof_backend_device device = {
      .size = out->size, .name = "copy engine", .units = 1, .is_emulated = 1};
  (void)self;
  if (index > 0) return PROF_BACKEND_NO_DEVICE; /* there is one */
  memcpy(out, &device, out->size < sizeof device ? out->size : sizeof device);
  return PROF_BACKEND_OK;
}

static int read_clock(prof_backend_self *self, uint32_t index, prof_backend_pair *out) {
  (void)index;
  out->host_before_ns = self->host->now_ns();
  out->device_ns = engine_now_ns();
  out->host_after_ns = self->host->now_ns();
  return PROF_BACKEND_OK;
}

static int stream_of(prof_backend_self *self, uint64_t stream, uint32_t *device_out,
                     uint32_t *is_capturing_out) {
  (void)self;
  *device_out = *is_capturing_out = 0;
  return stream ? PROF_BACKEND_OK : PROF_BACKEND_INVALID;
}

static const prof_backend table = {.size = sizeof table,
                                   .major = PROF_BACKEND_MAJOR,
                                   .minor = PROF_BACKEND_MINOR,
                                   .device_type = ENGINE_DEVICE,
                                   .is_emulated = 1,
                                   .name = "engine",
                                   .version = "1.0",
                                   .probe = probe,
                                   .open = open_it,
                                   .event_create = event_create,
                                   .event_record = event_record,
                                   .event_query = event_query,
                                   .event_destroy = event_destroy,
                                   .event_time = event_time,
                                   .fork_child = fork_child,
                                   .stream_of = stream_of,
                                   .device = describe,
                                   .clock = read_clock};

PROF_BACKEND_EXPORT const prof_backend *prof_backend_entry(uint32_t major, uint32_t minor) {
  (void)minor;
  return major == PROF_BACKEND_MAJOR ? &table : NULL;
}
