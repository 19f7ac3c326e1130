/* See tracing.h. Records wait in a list that streams push to without a lock, as a vendor's callback
   does; a drain takes them all. */
#define _GNU_SOURCE
#include "tracing.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "emulated.h"

enum { STRANGE_KIND = 200, STRANGE_BYTES = 64 };
static const uint64_t HOUR_NS = 3600000000000;

typedef struct pending {
  struct pending *next;
  union {
    prof_backend_record record;
    prof_backend_kernel kernel;
    prof_backend_copy copy;
    char room[sizeof(prof_backend_kernel) + STRANGE_BYTES];
  } is;
} pending;

static struct {
  const prof_backend_host *host;
  uint32_t kinds; /* relaxed */
  pending *done;  /* newest first */
  uint64_t numbers, records;
  uint32_t starts, stops;
} own;

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void emulated_tracing_open(const prof_backend_host *host) {
  __atomic_store_n(&own.host, host, __ATOMIC_RELEASE);
}

static int wants(uint32_t kind) {
  return __atomic_load_n(&own.kinds, __ATOMIC_RELAXED) >> kind & 1;
}

static void push(pending *p) {
  p->next = __atomic_load_n(&own.done, __ATOMIC_RELAXED);
  while (
      !__atomic_compare_exchange_n(&own.done, &p->next, p, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
  }
  own.host->wake();
}

emulated_launch_mark emulated_tracing_mark(void) {
  const prof_backend_host *const host = __atomic_load_n(&own.host, __ATOMIC_ACQUIRE);
  if (!host || !__atomic_load_n(&own.kinds, __ATOMIC_RELAXED))
    return (emulated_launch_mark){0, 0, 0, 0};
  const emulated_launch_mark mark = {host->ticks(), host->thread(), now_ns(),
                                     __atomic_add_fetch(&own.numbers, 1, __ATOMIC_RELAXED)};
  pending *const call = wants(PROF_BACKEND_CALL) ? calloc(1, sizeof *call) : NULL;
  if (!call) return mark;
  call->is.record = (prof_backend_record){.size = sizeof call->is.record,
                                          .kind = PROF_BACKEND_CALL,
                                          .flags = PROF_BACKEND_HOST_TIMES,
                                          .start = mark.call_begin_ns,
                                          .end = now_ns(),
                                          .launch_thread = mark.thread,
                                          .correlation = mark.number,
                                          .name = host->intern("emulatedLaunch", 14)};
  push(call);
  return mark;
}

static int is_time_for(uint32_t every, uint64_t count) {
  return every && count % every == every - 1;
}

/* What a vendor should not do, and does. */
static void spoil(pending *p) {
  const uint64_t count = __atomic_fetch_add(&own.records, 1, __ATOMIC_RELAXED);
  prof_backend_record *const record = &p->is.record;
  if (is_time_for(emulated_fault.record_unknown_every, count)) record->kind = STRANGE_KIND;
  if (is_time_for(emulated_fault.record_larger_every, count))
    record->size = (uint16_t)(record->size + STRANGE_BYTES);
  if (is_time_for(emulated_fault.record_broken_every, count)) record->size = 12;
  if (is_time_for(emulated_fault.record_no_times_every, count))
    record->flags |= PROF_BACKEND_NO_TIMES;
  if (is_time_for(emulated_fault.record_reversed_every, count)) record->end = record->start - 1;
  if (is_time_for(emulated_fault.record_future_every, count)) {
    record->start += HOUR_NS;
    record->end += HOUR_NS;
  }
  if (is_time_for(emulated_fault.record_endless_every, count)) {
    record->end = UINT64_MAX;
    record->launch = UINT64_MAX >> 5;
  }
  /* it says that it was launched when it was done */
  if (is_time_for(emulated_fault.record_early_every, count)) record->launch = own.host->ticks();
}

void emulated_tracing_done(const emulated_launch_mark *mark, uint64_t stream, uint32_t device,
                           uint64_t bytes, uint64_t begin_ns, uint64_t end_ns) {
  const uint32_t kind = bytes ? PROF_BACKEND_COPY : PROF_BACKEND_KERNEL;
  pending *const p = mark->number && wants(kind) ? calloc(1, sizeof *p) : NULL;
  if (!p) return;
  const prof_backend_record record = {.kind = (uint16_t)kind,
                                      .start = begin_ns,
                                      .end = end_ns,
                                      .launch = mark->ticks,
                                      .launch_thread = mark->thread,
                                      .correlation = mark->number,
                                      .stream = stream,
                                      .device = device,
                                      .name = bytes ? 0 : own.host->intern("busy", 4)};
  if (bytes) {
    p->is.copy = (prof_backend_copy){
        .record = record, .bytes = bytes, .from = PROF_DEVICE_CPU, .to = EMULATED_TYPE};
    p->is.record.size = sizeof p->is.copy;
  } else {
    p->is.kernel = (prof_backend_kernel){.record = record,
                                         .queued = begin_ns - 2,
                                         .submitted = begin_ns - 1,
                                         .grid = {64, 2, 1},
                                         .block = {256, 1, 1},
                                         .shared_bytes = 4096,
                                         .registers = 32};
    p->is.record.size = sizeof p->is.kernel;
  }
  spoil(p);
  push(p);
}

/* ---- the table's ---- */

int emulated_tracing_start(prof_backend_self *self, uint32_t kinds, uint32_t *kinds_out) {
  (void)self;
  __atomic_fetch_add(&own.starts, 1, __ATOMIC_RELAXED);
  if (emulated_fault.is_busy) return PROF_BACKEND_BUSY;
  *kinds_out =
      kinds & (1u << PROF_BACKEND_KERNEL | 1u << PROF_BACKEND_COPY | 1u << PROF_BACKEND_CALL);
  __atomic_store_n(&own.kinds, *kinds_out, __ATOMIC_RELAXED);
  return PROF_BACKEND_OK;
}

int emulated_tracing_stop(prof_backend_self *self) {
  (void)self;
  __atomic_fetch_add(&own.stops, 1, __ATOMIC_RELAXED);
  __atomic_store_n(&own.kinds, 0, __ATOMIC_RELAXED);
  return PROF_BACKEND_OK;
}

static pending *in_order(pending *newest) {
  pending *first = NULL;
  while (newest) {
    pending *const next = newest->next;
    newest->next = first;
    first = newest;
    newest = next;
  }
  return first;
}

int emulated_tracing_drain(prof_backend_self *self, uint32_t how, uint64_t *lost_out) {
  (void)self, (void)how;
  while (__atomic_load_n(&emulated_fault.drain_hangs, __ATOMIC_RELAXED)) usleep(1000);
  *lost_out = __atomic_exchange_n(&emulated_fault.drain_loses, 0, __ATOMIC_RELAXED);
  const uint64_t launch = own.host->ticks(), moment_ns = emulated_time_ns();
  for (pending *p = in_order(__atomic_exchange_n(&own.done, NULL, __ATOMIC_ACQUIRE)), *next; p;
       p = next) {
    next = p->next;
    if (emulated_fault.record_is_past) {
      p->is.record.launch = launch;
      p->is.record.start = p->is.record.end = moment_ns;
    }
    own.host->emit(&p->is, p->is.record.size);
    free(p);
  }
  return PROF_BACKEND_OK;
}

uint32_t emulated_tracing_starts(void) { return __atomic_load_n(&own.starts, __ATOMIC_RELAXED); }
uint32_t emulated_tracing_stops(void) { return __atomic_load_n(&own.stops, __ATOMIC_RELAXED); }
