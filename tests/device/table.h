/* A back end that does nothing, for tests to change a member of. Its events are past as soon as
   they are recorded. */
#ifndef TESTS_DEVICE_TABLE_H
#define TESTS_DEVICE_TABLE_H

#include <prof/backend.h>
#include <stddef.h>

enum { TEST_DEVICE_TYPE = 12 }; /* DLPack's extension device */

struct prof_backend_self {
  int opened;
};

static int table_probe(const prof_backend_host *host) {
  return host->size && host->now_ns() ? PROF_BACKEND_OK : PROF_BACKEND_VENDOR;
}
static int table_open(const prof_backend_host *host, prof_backend_self **self_out) {
  static prof_backend_self self;
  (void)host;
  self.opened++;
  *self_out = &self;
  return PROF_BACKEND_OK;
}
static int table_event_create(prof_backend_self *self, uint64_t stream, void **event_out) {
  (void)stream;
  *event_out = self;
  return PROF_BACKEND_OK;
}
static int table_event_record(prof_backend_self *self, uint64_t stream, void **event) {
  (void)self, (void)stream, (void)event;
  return PROF_BACKEND_OK;
}
static int table_event_query(prof_backend_self *self, void *event) {
  (void)self, (void)event;
  return PROF_BACKEND_OK;
}
static void table_event_destroy(prof_backend_self *self, void *event) { (void)self, (void)event; }
static int table_event_time(prof_backend_self *self, void *event, uint64_t *ns_out) {
  (void)self, (void)event;
  *ns_out = 1;
  return PROF_BACKEND_OK;
}

#define TEST_TABLE(name_)                                                                       \
  {                                                                                             \
    .size = sizeof(prof_backend), .major = PROF_BACKEND_MAJOR, .minor = PROF_BACKEND_MINOR,     \
    .device_type = TEST_DEVICE_TYPE, .name = (name_), .version = "1.2.3", .probe = table_probe, \
    .open = table_open, .event_create = table_event_create, .event_record = table_event_record, \
    .event_query = table_event_query, .event_destroy = table_event_destroy,                     \
    .event_time = table_event_time                                                              \
  }

#endif
