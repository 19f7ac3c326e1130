/* Events that the program has of its own work, on an emulated device. Each is recorded with its own
   times and belongs to the scope in which it was handed over. What is not recorded is counted. */
#define _GNU_SOURCE
#include <prof/device.h>
#include <prof/profiler.h>
#include <prof/trace.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "alone.h"
#include "collector.h"
#include "emulated/emulated.h"
#include "hang_guard.h"

enum { COUNT = 20, KERNEL_NS = 300000, THREADS = 4, EACH = 500, ROOM = 4096 };

static const prof_device device = {EMULATED_TYPE, 1};

static void begin(void) {
  emulated_fault.has_clock = 1;
  emulated_fault.clock_offset_ns = 7000000000;
  assert_int_equal(prof_backend_add(&emulated_backend), PROF_OK);
}

static prof_trace *get(void) {
  prof_trace *trace = NULL;
  assert_int_equal(prof_get(&trace), PROF_OK);
  return trace;
}

typedef struct sums {
  uint64_t told, full, late, times;
} sums;

static sums look(void) {
  prof_trace *const trace = get();
  prof_trace_device about = {.size = sizeof about};
  prof_trace_info info = {.size = sizeof info};
  assert_int_equal(prof_trace_info_get(trace, &info), PROF_OK);
  const bool is_there = prof_trace_device_get(trace, 0, &about) == PROF_OK;
  prof_trace_destroy(trace);
  return (sums){is_there ? about.record_count : 0, info.lost_count[PROF_LOSS_DEVICE_FULL],
                info.lost_count[PROF_LOSS_DEVICE_LATE], info.lost_count[PROF_LOSS_DEVICE_TIMES]};
}

static void settle(uint64_t told) {
  WAIT_WHILE(look().told < told);
  assert_int_equal(look().told, told);
}

/* What is behind it on a stream waits until it is let go. */
static void hold(uint32_t holds) {
  __atomic_store_n(&emulated_fault.holds, holds, __ATOMIC_RELAXED);
}

/* The program has let go of its own: prof's thread does so a little later, where it has no
   processor. */
static void no_event_is_left(void) {
  WAIT_WHILE(emulated_event_count() > 0);
  assert_int_equal(emulated_event_count(), 0);
}

/* Launches work, and hands its event over in a scope of that name. */
static void launch(emulated_stream *stream, const char *scope, const char *name) {
  WITH_BASE_PROFILER(PROF_HOST, scope, "model", PROF_NO_ARGS, {
    emulated_own *const event = emulated_launch_with_own(stream, KERNEL_NS);
    assert_int_equal(prof_device_event(device, (uintptr_t)stream, event, PROF_BACKEND_KERNEL, name),
                     PROF_OK);
    emulated_own_release(event);
  });
}

static void each_has_its_own_times_and_its_scope(void **state) {
  (void)state;
  static prof_event event;
  prof_cursor *cursor = NULL;
  uint64_t count = 0;
  emulated_stream *const stream = emulated_create(1);
  assert_int_equal(prof_start(1), PROF_OK);
  for (int i = 0; i < COUNT; i++) launch(stream, "layer", i % 2 ? "odd" : "even");
  emulated_wait(stream);
  settle(COUNT);
  assert_int_equal(prof_stop(), PROF_OK);
  prof_trace *const trace = get();
  prof_trace_info info = {.size = sizeof info};
  prof_trace_device about = {.size = sizeof about};
  assert_int_equal(prof_trace_info_get(trace, &info), PROF_OK);
  assert_int_equal(prof_trace_device_get(trace, 0, &about), PROF_OK);
  const uint64_t bar_ns = about.clock_error_ns + info.clock_error_ns + 1;
  assert_int_equal(prof_cursor_create(trace, &cursor), PROF_OK);
  while (prof_cursor_next(cursor, &event) == 1) {
    if (!(event.flags & PROF_EVENT_ON_DEVICE)) continue;
    assert_int_equal(event.launch.record, PROF_BACKEND_KERNEL);
    assert_int_equal(event.stream, (uintptr_t)stream);
    assert_memory_equal(event.name, count % 2 ? "odd" : "even", event.name_bytes);
    assert_memory_equal(event.category, "kernel", event.category_bytes);
    /* Its marks lie between the work before it and the work behind it: where the stream's thread
       has no processor, anywhere there. */
    uint64_t begin_ns, end_ns, unused, before_ns = info.start_ns, behind_ns = UINT64_MAX;
    assert_true(count < COUNT);
    emulated_truth(stream, count, &begin_ns, &end_ns);
    if (count > 0) emulated_truth(stream, count - 1, &unused, &before_ns);
    if (count < COUNT - 1) emulated_truth(stream, count + 1, &behind_ns, &unused);
    const uint64_t from = info.start_ns + event.start_ns, to = from + event.duration_ns;
    if (from > begin_ns + bar_ns || from + bar_ns < before_ns || to + bar_ns < end_ns ||
        to - bar_ns > behind_ns)
      fail_msg("work %lu: %ld ns after its begin, %ld ns after its end; within %lu?",
               (unsigned long)count, (long)(from - begin_ns), (long)(to - end_ns),
               (unsigned long)bar_ns);
    count++;
  }
  assert_int_equal(count, COUNT);
  prof_cursor_destroy(cursor);
  prof_rows *rows = NULL;
  const prof_aggregate_options options = {
      .size = sizeof options, .group = PROF_GROUP_NAME, .category = "model"};
  assert_int_equal(prof_trace_aggregate(trace, &options, &rows), PROF_OK);
  assert_int_equal(rows->row_count, 1);
  assert_true(rows->rows[0].device_total_ns >= (uint64_t)COUNT * KERNEL_NS);
  prof_rows_destroy(rows);
  prof_trace_destroy(trace);
  no_event_is_left();
  emulated_destroy(stream);
}

static void what_is_wrong_is_said(void **state) {
  (void)state;
  static const prof_device nobodys = {77, 0}, by_distance = {EMULATED_BY_DISTANCE_TYPE, 0};
  emulated_stream *const stream = emulated_create(1);
  emulated_own *const event = emulated_launch_with_own(stream, 1000);
  const uint64_t handle = (uintptr_t)stream;
  assert_int_equal(prof_backend_add(&emulated_by_distance), PROF_OK);
  const struct {
    prof_device on;
    uint64_t stream;
    void *event;
    uint32_t kind;
    int status;
    const char *words;
  } wrong[] = {
      {device, handle, NULL, PROF_BACKEND_KERNEL, PROF_E_INVALID, "event is NULL"},
      {device, handle, event, 0, PROF_E_INVALID, "kind is 0"},
      {device, handle, event, PROF_BACKEND_CALL, PROF_E_INVALID, "kind is 5"},
      {device, handle, event, 7, PROF_E_INVALID, "kind is 7"},
      {nobodys, handle, event, PROF_BACKEND_KERNEL, PROF_E_UNSUPPORTED, "no back end serves"},
      {by_distance, handle, event, PROF_BACKEND_KERNEL, PROF_E_UNSUPPORTED,
       "takes none of the program's own events"},
      {device, 0, event, PROF_BACKEND_KERNEL, PROF_E_INVALID, "prof_device_event: "}};
  assert_int_equal(prof_device_event(device, handle, event, PROF_BACKEND_KERNEL, "not recorded"),
                   PROF_OK);
  assert_int_equal(prof_start(1), PROF_OK);
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    const int status =
        prof_device_event(wrong[i].on, wrong[i].stream, wrong[i].event, wrong[i].kind, "wrong");
    if (status != wrong[i].status || !strstr(prof_last_error(), wrong[i].words))
      fail_msg("%zu: status %d: %s", i, status, prof_last_error());
  }
  assert_int_equal(prof_device_event(device, handle, event, PROF_BACKEND_COPY, NULL), PROF_OK);
  settle(1);
  assert_int_equal(prof_stop(), PROF_OK);
  emulated_own_release(event);
  emulated_wait(stream);
  no_event_is_left();
  emulated_destroy(stream);
}

static void what_is_not_past_at_the_stop_is_counted_and_let_go(void **state) {
  (void)state;
  emulated_stream *const stream = emulated_create(1);
  emulated_own *events[COUNT];
  assert_int_equal(prof_start(1), PROF_OK);
  hold(1);
  emulated_launch(stream, 0);
  for (int i = 0; i < COUNT; i++) {
    events[i] = emulated_launch_with_own(stream, 1000);
    assert_int_equal(
        prof_device_event(device, (uintptr_t)stream, events[i], PROF_BACKEND_KERNEL, "late"),
        PROF_OK);
  }
  assert_int_equal(prof_stop(), PROF_OK);
  collector_has_ended();
  const sums s = look();
  assert_int_equal(s.told, 0);
  assert_int_equal(s.late, COUNT);
  hold(0);
  emulated_wait(stream);
  for (int i = 0; i < COUNT; i++) emulated_own_release(events[i]);
  no_event_is_left();
  emulated_destroy(stream);
}

static void more_than_there_is_room_for_are_counted(void **state) {
  (void)state;
  enum { MORE = 100 };
  emulated_stream *const stream = emulated_create(1);
  uint64_t refused = 0;
  assert_int_equal(prof_start(1), PROF_OK);
  hold(1);
  emulated_launch(stream, 0);
  for (int i = 0; i < ROOM + MORE; i++) {
    emulated_own *const event = emulated_launch_with_own(stream, 0);
    const int status =
        prof_device_event(device, (uintptr_t)stream, event, PROF_BACKEND_KERNEL, "many");
    assert_true(status == PROF_OK || status == PROF_E_TOO_LARGE);
    refused += status != PROF_OK;
    emulated_own_release(event);
  }
  assert_int_equal(refused, MORE);
  hold(0);
  emulated_wait(stream);
  settle(ROOM);
  assert_int_equal(look().full, MORE);
  assert_int_equal(prof_stop(), PROF_OK);
  no_event_is_left();
  emulated_destroy(stream);
}

static void *launch_many(void *unused) {
  (void)unused;
  emulated_stream *const stream = emulated_create(1);
  for (int i = 0; i < EACH; i++) {
    emulated_own *const event = emulated_launch_with_own(stream, 1000);
    WAIT_WHILE(prof_device_event(device, (uintptr_t)stream, event, PROF_BACKEND_KERNEL,
                                 "threads") == PROF_E_BUSY);
    emulated_own_release(event);
  }
  emulated_wait(stream);
  emulated_destroy(stream);
  return NULL;
}

static void threads_beside_starts_and_stops(void **state) {
  (void)state;
  pthread_t threads[THREADS];
  assert_int_equal(prof_start(1), PROF_OK);
  for (int i = 0; i < THREADS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, launch_many, NULL), 0);
  for (int i = 0; i < 20; i++, usleep(5000)) {
    prof_stop();
    if (i % 4 == 0) prof_clear();
    assert_int_equal(prof_start(1), PROF_OK);
  }
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  assert_int_equal(prof_stop(), PROF_OK);
  no_event_is_left();
}

#define TESTS(X)                                        \
  X(each_has_its_own_times_and_its_scope)               \
  X(what_is_wrong_is_said)                              \
  X(what_is_not_past_at_the_stop_is_counted_and_let_go) \
  X(more_than_there_is_room_for_are_counted)            \
  X(threads_beside_starts_and_stops)

ALONE_TESTS

int main(int argc, char **argv) { return alone_main(argc, argv); }
