/* A null back end: nothing is behind it, work is done by whoever puts it there, and an event is
   past when it is recorded. What conformance finds in it is the program's own. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "stage.h"

enum { NULL_TYPE = 12 };
struct prof_backend_self {
  const prof_backend_host *host;
};

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
static int event_create(prof_backend_self *self, uint64_t stream, void **event_out) {
  (void)self, (void)stream;
  *event_out = calloc(1, sizeof(uint64_t));
  return *event_out ? PROF_BACKEND_OK : PROF_BACKEND_NO_MEMORY;
}
static int event_record(prof_backend_self *self, uint64_t stream, void **event) {
  if (!stream) return PROF_BACKEND_INVALID;
  __atomic_store_n((uint64_t *)*event, self->host->now_ns(), __ATOMIC_RELEASE);
  return PROF_BACKEND_OK;
}
static int event_query(prof_backend_self *self, void *event) {
  (void)self, (void)event;
  return PROF_BACKEND_OK;
}
static void event_destroy(prof_backend_self *self, void *event) {
  (void)self;
  free(event);
}
static int event_time(prof_backend_self *self, void *event, uint64_t *ns_out) {
  (void)self;
  *ns_out = __atomic_load_n((uint64_t *)event, __ATOMIC_ACQUIRE);
  return PROF_BACKEND_OK;
}

static const prof_backend table = {.size = sizeof table,
                                   .major = PROF_BACKEND_MAJOR,
                                   .minor = PROF_BACKEND_MINOR,
                                   .device_type = NULL_TYPE,
                                   .is_emulated = 1,
                                   .name = "null",
                                   .version = "1",
                                   .probe = probe,
                                   .open = open_it,
                                   .event_create = event_create,
                                   .event_record = event_record,
                                   .event_query = event_query,
                                   .event_destroy = event_destroy,
                                   .event_time = event_time};

static uint64_t create(void) {
  static uint64_t count;
  return __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED);
}
static void destroy(uint64_t stream) { (void)stream; }
static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
static void work(uint64_t stream, uint64_t least_us) {
  (void)stream;
  for (const uint64_t begun = now_ns(); now_ns() - begun < least_us * 1000;) {
  }
}

static const conformance_stage stage = {"null", &table,  {NULL_TYPE, 0},     NULL, create, destroy,
                                        work,   destroy, .is_synchronous = 1};
const conformance_stage *conformance_stage_get(void) { return &stage; }
