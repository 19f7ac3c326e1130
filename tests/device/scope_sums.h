/* An emulated device that records, what is launched on it, and the sums of what a trace has of it.
   A header only, because each test is one file. */
#ifndef TESTS_DEVICE_SCOPE_SUMS_H
#define TESTS_DEVICE_SCOPE_SUMS_H

#include <prof/device.h>
#include <prof/profiler.h>
#include <prof/trace.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "collector.h"
#include "emulated/emulated.h"
#include "hang_guard.h"

static const prof_device device = {EMULATED_TYPE, 0};

static prof_trace_info info_of(const prof_trace *trace) {
  prof_trace_info info = {.size = sizeof info};
  assert_int_equal(prof_trace_info_get(trace, &info), PROF_OK);
  return info;
}

static prof_trace *get(void) {
  prof_trace *trace = NULL;
  assert_int_equal(prof_get(&trace), PROF_OK);
  return trace;
}

static prof_trace_thread thread_of(const prof_trace *trace, uint32_t index) {
  prof_trace_thread thread = {.size = sizeof thread};
  assert_int_equal(prof_trace_thread_get(trace, index, &thread), PROF_OK);
  return thread;
}

static void begin(void) {
  memset(&emulated_fault, 0, sizeof emulated_fault);
  emulated_fault.has_clock = 1;
  assert_int_equal(prof_backend_add(&emulated_backend), PROF_OK);
  assert_int_equal(prof_start(1), PROF_OK);
}

typedef struct sums {
  uint64_t host, on_device, lost_full, lost_late, lost_times, streams;
} sums;

/* Of all streams' events: in order, and each scope after its launch. */
static sums sums_of(const prof_trace *trace) {
  const prof_trace_info info = info_of(trace);
  sums s = {.lost_full = info.lost_count[PROF_LOSS_DEVICE_FULL],
            .lost_late = info.lost_count[PROF_LOSS_DEVICE_LATE],
            .lost_times = info.lost_count[PROF_LOSS_DEVICE_TIMES]};
  prof_cursor *cursor = NULL;
  static prof_event event;
  assert_int_equal(prof_cursor_create(trace, &cursor), PROF_OK);
  while (prof_cursor_next(cursor, &event) == 1)
    ++*(thread_of(trace, event.thread).is_stream ? &s.on_device : &s.host);
  prof_cursor_destroy(cursor);
  for (uint32_t i = 0; i < info.thread_count; i++) s.streams += thread_of(trace, i).is_stream;
  return s;
}

/* Waits until so many device scopes have been read: the collector may have no processor. */
static void settle(uint64_t on_device) {
  uint64_t come = 0;
  for (unsigned naps = 0; hang_nap(&naps);) {
    prof_trace *const trace = get();
    const sums s = sums_of(trace);
    prof_trace_destroy(trace);
    come = s.on_device + s.lost_times + s.lost_full;
    if (come >= on_device) return;
  }
  fail_msg("of %lu device scopes %lu came", (unsigned long)on_device, (unsigned long)come);
}

static void hold(uint32_t holds) {
  __atomic_store_n(&emulated_fault.holds, holds, __ATOMIC_RELAXED);
}

static void launch(emulated_stream *stream, int count, uint64_t busy_ns) {
  for (int i = 0; i < count; i++)
    WITH_GPU_PROFILER(device, (uintptr_t)stream, "kernel", "test", PROF_NO_ARGS,
                      { emulated_launch(stream, busy_ns); });
}

static prof_health health(void) {
  prof_health now = {.size = sizeof now};
  assert_int_equal(prof_health(&now), PROF_OK);
  return now;
}

#endif
