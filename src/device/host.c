/* See host.h. */
#define _GNU_SOURCE
#include "host.h"

#include <stdio.h>
#include <stdlib.h>

#include "../base/log.h"
#include "../base/port.h"
#include "../core/buffer/clock.h"
#include "../core/buffer/thread.h"
#include "activity.h"
#include "collector.h"
#include "names.h"
#include "records.h"

static uint64_t host_now_ns(void) { return prof_i_port_monotonic_ns(); }

/* Only where somebody has asked to see it: nothing is written to the program's stderr otherwise. */
static void host_log(const char *text) {
  const char *const wanted = secure_getenv("PROF_LOG");
  if (wanted && *wanted && text) prof_i_log("%s", text);
}

static const char *host_option(const char *key) {
  char name[128];
  const int bytes = key ? snprintf(name, sizeof name, "PROF_BACKEND_%s", key) : 0;
  return bytes > 0 && bytes < (int)sizeof name ? secure_getenv(name) : NULL;
}

/* A thread of a parent's is none of a forked child's. */
static uint64_t host_thread(void) {
  const prof_i_thread *const t = prof_i_this_thread;
  return t ? t->serial : 0;
}

static uint64_t host_thread_of(uint64_t kernels_number) {
  const uint64_t serial = prof_i_thread_serial_of(kernels_number);
  return serial || kernels_number == 0 ? serial : PROF_I_SERIAL_OF_KERNELS | kernels_number;
}

static prof_i_host_sink *diverted_sink; /* atomic */

void prof_i_host_divert(prof_i_host_sink *sink) {
  __atomic_store_n(&diverted_sink, sink, __ATOMIC_RELEASE);
}

static void host_emit(const void *records, size_t bytes) {
  prof_i_host_sink *const sink = __atomic_load_n(&diverted_sink, __ATOMIC_ACQUIRE);
  if (!sink || !sink(records, bytes)) prof_i_records_emit(records, bytes);
}

const prof_backend_host prof_i_device_host = {.size = sizeof(prof_backend_host),
                                              .major = PROF_BACKEND_MAJOR,
                                              .minor = PROF_BACKEND_MINOR,
                                              .now_ns = host_now_ns,
                                              .log = host_log,
                                              .option = host_option,
                                              .wake = prof_i_collector_wake_for_records,
                                              .ticks = prof_i_clock_ticks,
                                              .thread = host_thread,
                                              .intern = prof_i_name_intern,
                                              .emit = host_emit,
                                              .thread_of = host_thread_of,
                                              .wanted = prof_i_activity_kinds};
