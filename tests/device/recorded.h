/* What a vendor's own tracing brought into a trace, for tests to look at. Includes what it needs of
   cmocka's. */
#ifndef TESTS_DEVICE_RECORDED_H
#define TESTS_DEVICE_RECORDED_H

#include "collector.h"
#include "hang_guard.h"
#include "told.h"

#include <prof/profiler.h>
#include <unistd.h>

typedef struct found {
  uint64_t count, launched_here, nanoseconds;
} found;

typedef struct sums {
  uint64_t records, sides, lost[PROF_LOSS_COUNT];
  uint32_t devices;
  int32_t result;
  char reason[160];
} sums;

static inline sums sums_of(const prof_trace *trace) {
  sums s;
  prof_trace_info info = {.size = sizeof info};
  memset(&s, 0, sizeof s);
  assert_int_equal(prof_trace_info_get(trace, &info), PROF_OK);
  s.devices = info.device_count;
  for (uint32_t i = 0; i < info.device_count; i++) {
    prof_trace_device about = {.size = sizeof about};
    assert_int_equal(prof_trace_device_get(trace, i, &about), PROF_OK);
    s.records += about.record_count;
    s.sides += about.scope_count;
    s.result = about.result;
    memcpy(s.reason, about.reason, sizeof s.reason);
  }
  memcpy(s.lost, info.lost_count, sizeof s.lost);
  return s;
}

static inline prof_trace *get(void) {
  prof_trace *trace = NULL;
  assert_int_equal(prof_get(&trace), PROF_OK);
  return trace;
}

static inline uint64_t come(const sums *s) {
  return s->records + s->lost[PROF_LOSS_DEVICE_TIMES] + s->lost[PROF_LOSS_DEVICE_FULL] +
         s->lost[PROF_LOSS_DEVICE_LATE];
}

/* Until so many records have come or been lost: whoever brings them may have no processor. */
static inline void settle(uint64_t wanted) {
  sums s = {0};
  for (unsigned naps = 0; hang_nap(&naps);) {
    prof_trace *const trace = get();
    s = sums_of(trace);
    prof_trace_destroy(trace);
    if (come(&s) >= wanted) return;
  }
  fail_msg("of %lu records %lu came", (unsigned long)wanted, (unsigned long)come(&s));
}

static inline void wait_for_sides(uint64_t wanted) {
  uint64_t sides = 0;
  for (unsigned naps = 0; sides < wanted && hang_nap(&naps);) {
    prof_trace *const trace = get();
    sides = sums_of(trace).sides;
    prof_trace_destroy(trace);
  }
  assert_int_equal(sides, wanted);
}

static inline prof_trace *stop_and_get(void) {
  assert_int_equal(prof_stop(), PROF_OK);
  collector_has_ended();
  return get();
}

/* The device's events of that name and category. scope: those that were launched in one of that
   name. */
static inline found find(const prof_trace *trace, const char *name, const char *category) {
  static prof_event event;
  prof_cursor *cursor = NULL;
  found f = {0, 0, 0};
  assert_int_equal(prof_cursor_create(trace, &cursor), PROF_OK);
  while (prof_cursor_next(cursor, &event) == 1) {
    if (!(event.flags & PROF_EVENT_ON_DEVICE) || !is_text(event.name, event.name_bytes, name) ||
        !is_text(event.category, event.category_bytes, category))
      continue;
    f.count++;
    f.nanoseconds += event.duration_ns;
    f.launched_here += event.launch.thread != UINT32_MAX &&
                       event.launch.start_ns <= event.start_ns && event.launch.start_ns > 0;
  }
  prof_cursor_destroy(cursor);
  return f;
}

static inline uint64_t calls_named(const prof_trace *trace, const char *name) {
  static prof_event event;
  prof_cursor *cursor = NULL;
  uint64_t count = 0;
  assert_int_equal(prof_cursor_create(trace, &cursor), PROF_OK);
  while (prof_cursor_next(cursor, &event) == 1)
    count += (event.flags & PROF_EVENT_CALL) && is_text(event.name, event.name_bytes, name);
  prof_cursor_destroy(cursor);
  return count;
}

/* How many calls of that name stand in scopes, or calls, of that other name, on the same thread and
   in nothing between. */
static inline uint64_t calls_in(const prof_trace *trace, const char *name, const char *around) {
  enum { DEEP = 64 };
  static prof_event event;
  prof_cursor *cursor = NULL;
  uint64_t count = 0, ends[DEEP] = {0};
  bool are_around[DEEP] = {false};
  uint32_t thread = UINT32_MAX;
  assert_int_equal(prof_cursor_create(trace, &cursor), PROF_OK);
  while (prof_cursor_next(cursor, &event) == 1) {
    if (event.kind != PROF_EVENT_SCOPE || event.depth >= DEEP) continue;
    if (event.thread != thread) memset(are_around, 0, sizeof are_around);
    thread = event.thread;
    ends[event.depth] = event.start_ns + event.duration_ns;
    are_around[event.depth] = is_text(event.name, event.name_bytes, around);
    if (event.flags & PROF_EVENT_CALL) assert_int_equal(event.level, 2);
    if (event.depth > 0 && (event.flags & PROF_EVENT_CALL) &&
        is_text(event.name, event.name_bytes, name))
      count += are_around[event.depth - 1] && ends[event.depth - 1] >= ends[event.depth];
  }
  prof_cursor_destroy(cursor);
  return count;
}

/* By how much records began after the program did. */
static inline uint64_t late_ns(const prof_trace *trace) {
  prof_trace_device about = {.size = sizeof about};
  assert_int_equal(prof_trace_device_get(trace, 0, &about), PROF_OK);
  return about.records_late_ns;
}

/* The row of a thread of the program's, by the kernel's number; tid 0: any, and how many there
   are. */
static inline uint32_t host_rows(const prof_trace *trace, uint64_t tid,
                                 prof_trace_thread *thread_out) {
  prof_trace_info info = {.size = sizeof info};
  uint32_t count = 0;
  assert_int_equal(prof_trace_info_get(trace, &info), PROF_OK);
  for (uint32_t i = 0; i < info.thread_count; i++) {
    prof_trace_thread thread = {.size = sizeof thread};
    assert_int_equal(prof_trace_thread_get(trace, i, &thread), PROF_OK);
    if (thread.is_stream || (tid && thread.tid != tid)) continue;
    if (thread_out) *thread_out = thread;
    count++;
  }
  return count;
}

/* How many kernels and copies scopes of that name have launched. */
static inline uint64_t launched_in(const prof_trace *trace, const char *scope) {
  const prof_aggregate_options options = {
      .size = sizeof options, .group = PROF_GROUP_NAME, .rows_limit = UINT32_MAX};
  prof_rows *rows = NULL;
  uint64_t count = 0;
  assert_int_equal(prof_trace_aggregate(trace, &options, &rows), PROF_OK);
  for (uint64_t i = 0; i < rows->row_count; i++)
    if (strcmp(rows->rows[i].name, scope) == 0) count = rows->rows[i].device_count;
  prof_rows_destroy(rows);
  return count;
}

/* A row's own time on devices, and what was deeper with it. */
static inline uint64_t device_ns_of(const prof_trace *trace, uint32_t group, const char *name,
                                    uint64_t *total_ns_out) {
  const prof_aggregate_options options = {
      .size = sizeof options, .group = group, .rows_limit = UINT32_MAX};
  prof_rows *rows = NULL;
  uint64_t self_ns = 0;
  *total_ns_out = 0;
  assert_int_equal(prof_trace_aggregate(trace, &options, &rows), PROF_OK);
  for (uint64_t i = 0; i < rows->row_count; i++) {
    if (strcmp(rows->rows[i].name, name) != 0) continue;
    self_ns += rows->rows[i].self_device_ns;
    *total_ns_out += rows->rows[i].device_total_ns;
  }
  prof_rows_destroy(rows);
  return self_ns;
}

/* Scopes "dense", in "model", were put on a stream, each with a kernel "matmul" and nothing else in
   it: each ns counts once, at any position of the kernels. */
static inline void sides_have_their_kernels_in_them(const prof_trace *trace) {
  const uint64_t sides = find(trace, "dense", "operator").nanoseconds,
                 kernels = find(trace, "matmul", "kernel").nanoseconds, slack = sides / 50;
  uint64_t total, model, left;
  assert_true(kernels > 0 && sides + slack >= kernels);
  assert_in_range(device_ns_of(trace, PROF_GROUP_NAME, "dense", &total), sides - slack,
                  sides + slack);
  assert_in_range(total, sides - slack, sides + slack);
  assert_int_equal(device_ns_of(trace, PROF_GROUP_NAME, "model", &model), 0);
  assert_int_equal(model, total);
  assert_in_range(device_ns_of(trace, PROF_GROUP_NAME | PROF_GROUP_KERNEL, "matmul", &left),
                  kernels - 1, kernels + 1);
  assert_in_range(device_ns_of(trace, PROF_GROUP_NAME | PROF_GROUP_KERNEL, "dense", &left), 0,
                  sides > kernels ? sides - kernels + slack : slack);
}

static inline void nothing_is_lost(const prof_trace *trace) {
  const sums s = sums_of(trace);
  for (int i = 0; i < PROF_LOSS_COUNT; i++)
    if (s.lost[i]) fail_msg("loss %d: %lu", i, (unsigned long)s.lost[i]);
}

#endif
