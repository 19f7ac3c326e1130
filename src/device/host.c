/* What prof gives to back ends. See internal.h. */
#define _GNU_SOURCE
#include "internal.h"

#include <prof/profiler.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/error.h"
#include "../base/port.h"
#include "../core/buffer/arena.h"
#include "../core/buffer/clock.h"
#include "../core/buffer/thread.h"
#include "../core/session/control.h"

static uint64_t host_now_ns(void) { return prof_i_port_monotonic_ns(); }

/* Writes to the program's stderr only if PROF_LOG asks for it. */
static void host_log(const char *text) {
  const char *const wanted = secure_getenv("PROF_LOG");
  if (wanted && *wanted && text) prof_i_log("%s", text);
}

static const char *host_option(const char *key) {
  char name[128];
  const int bytes = key ? snprintf(name, sizeof name, "PROF_BACKEND_%s", key) : 0;
  return bytes > 0 && bytes < (int)sizeof name ? secure_getenv(name) : NULL;
}

static uint64_t host_thread(void) {
  const prof_i_thread *const t = prof_i_this_thread;
  return t ? t->serial : 0;
}

static uint64_t host_thread_of(uint64_t kernels_number) {
  const uint64_t serial = prof_i_thread_serial_of(kernels_number);
  return serial || kernels_number == 0 ? serial : PROF_I_SERIAL_OF_KERNELS | kernels_number;
}

/* ---- records ---- */

static struct {
  /* both atomic: release, acquire */
  prof_i_host_sink *first; /* an operator's measurement */
  prof_i_host_sink *drain; /* of the drain that is under way */
} record_sinks;

void prof_i_host_set_first_sink(prof_i_host_sink *sink) {
  __atomic_store_n(&record_sinks.first, sink, __ATOMIC_RELEASE);
}

void prof_i_host_set_drain_sink(prof_i_host_sink *sink) {
  __atomic_store_n(&record_sinks.drain, sink, __ATOMIC_RELEASE);
}

uint64_t prof_i_host_count_records(const void *records, size_t bytes) {
  const char *at = records;
  uint64_t count = 0;
  for (uint16_t size = 0; bytes > 0; at += size, bytes -= size, count++) {
    if (bytes < sizeof(prof_backend_record)) return count + 1;
    memcpy(&size, at, sizeof size);
    if (size < sizeof(prof_backend_record) || size % 8 != 0 || size > bytes) return count + 1;
  }
  return count;
}

static void host_emit(const void *records, size_t bytes) {
  prof_i_host_sink *const first = __atomic_load_n(&record_sinks.first, __ATOMIC_ACQUIRE);
  if (first && first(records, bytes)) return;
  prof_i_host_sink *const drain = __atomic_load_n(&record_sinks.drain, __ATOMIC_ACQUIRE);
  if (!drain || !drain(records, bytes))
    prof_i_thread_lose_outside(&prof_i_no_thread, PROF_LOSS_DEVICE_TIMES,
                               prof_i_host_count_records(records, bytes));
}

/* ---- which records ---- */

bool prof_i_host_wants_records(void) { return prof_i_control_devices() >= PROF_DEVICES_RECORDS; }

uint32_t prof_i_host_kinds_at_level(uint32_t level) {
  const uint32_t on_devices = 1u << PROF_BACKEND_KERNEL | 1u << PROF_BACKEND_COPY |
                              1u << PROF_BACKEND_FILL | 1u << PROF_BACKEND_SYNC |
                              1u << PROF_BACKEND_OTHER;
  const uint32_t memory =
      prof_i_control_devices() == PROF_DEVICES_MEMORY ? 1u << PROF_BACKEND_MEMORY : 0;
  return level == 0 ? 0 : on_devices | memory | (level == 1 ? 0 : 1u << PROF_BACKEND_CALL);
}

static uint32_t host_wanted(void) {
  return prof_i_host_wants_records() ? prof_i_host_kinds_at_level((uint32_t)prof_i_arena_level())
                                     : 0;
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
                                              .wanted = host_wanted};
