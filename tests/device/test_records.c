/* What a vendor's own tracing records, on an emulated device. Each kernel and copy is on its stream
   at its time, and belongs to the scope that launched it. Errors in a record are counted. */
#define _GNU_SOURCE
#include <prof/device.h>
#include <prof/memory.h>
#include <prof/profiler.h>
#include <prof/sampler.h>
#include <prof/trace.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "alone.h"
#include "collector.h"
#include "emulated/emulated.h"
#include "hang_guard.h"
#include "sampled.h"
#include "told.h"

enum { KERNELS = 12, KERNEL_NS = 300000 };

static const prof_device device = {EMULATED_TYPE, 1};

static void begin(void) {
  emulated_fault.has_clock = 1;
  emulated_fault.clock_offset_ns = 7000000000;
  assert_int_equal(prof_backend_add(&emulated_backend), PROF_OK);
}

static void start(uint32_t level) {
  const prof_options options = {
      .size = sizeof options, .level = level, .devices = PROF_DEVICES_RECORDS};
  assert_int_equal(prof_start_with(&options), PROF_OK);
}

static prof_trace *get(void) {
  prof_trace *trace = NULL;
  assert_int_equal(prof_get(&trace), PROF_OK);
  return trace;
}

static prof_trace *stop_and_get(void) {
  assert_int_equal(prof_stop(), PROF_OK);
  collector_has_ended();
  return get();
}

static prof_trace_info info_of(const prof_trace *trace) {
  prof_trace_info info = {.size = sizeof info};
  assert_int_equal(prof_trace_info_get(trace, &info), PROF_OK);
  return info;
}

static uint64_t record_count(const prof_trace *trace) {
  prof_trace_device about = {.size = sizeof about};
  return prof_trace_device_get(trace, 0, &about) == PROF_OK ? about.record_count : 0;
}

/* Waits until so many have come or been lost: the collector may have no processor. */
static void settle(uint64_t count) {
  for (unsigned naps = 0; hang_nap(&naps);) {
    prof_trace *const trace = get();
    const uint64_t come = record_count(trace) + info_of(trace).lost_count[PROF_LOSS_DEVICE_TIMES];
    prof_trace_destroy(trace);
    if (come >= count) return;
  }
  fail_msg("not all of %lu records came", (unsigned long)count);
}

/* The trace's next event on a device; false: there is none. */
static bool next_on_device(prof_cursor *cursor, prof_event *event) {
  while (prof_cursor_next(cursor, event) == 1)
    if (event->flags & PROF_EVENT_ON_DEVICE) return true;
  return false;
}

static void launch_all(emulated_stream *stream) {
  for (int i = 0; i < KERNELS; i++)
    WITH_BASE_PROFILER(PROF_HOST, "layer", "model", PROF_NO_ARGS,
                       { emulated_launch(stream, KERNEL_NS); });
  emulated_wait(stream);
  settle(KERNELS);
}

/* By how much its times on the host's clock may be wrong. The distance of the readings of the
   device's clock depends on the machine. prof must keep the truth inside the bounds. */
static int64_t bar_of(const prof_trace *trace) {
  prof_trace_device about = {.size = sizeof about};
  assert_int_equal(prof_trace_device_get(trace, 0, &about), PROF_OK);
  assert_in_range(about.clock_error_ns, 1, 1000000000);
  return (int64_t)(about.clock_error_ns + info_of(trace).clock_error_ns) + 1;
}

/* The event is the stream's work of that number: as long as that was by the device's clock, which
   has the host's rate, and where that was within the bar. */
static void check_times(const prof_event *event, const prof_trace_info *info,
                        const emulated_stream *stream, uint64_t number, int64_t bar_ns) {
  uint64_t begin_ns, end_ns;
  emulated_truth(stream, number, &begin_ns, &end_ns);
  const uint64_t from = info->start_ns + event->start_ns;
  const int64_t begin_off = (int64_t)(from - begin_ns),
                end_off = (int64_t)(from + event->duration_ns - end_ns);
  if (llabs(begin_off) > bar_ns || llabs(end_off) > bar_ns)
    fail_msg("kernel %lu: %ld ns after its begin, %ld after its end; within %ld?",
             (unsigned long)number, (long)begin_off, (long)end_off, (long)bar_ns);
  assert_true(end_ns - begin_ns >= KERNEL_NS);
  assert_int_equal(event->launch.device_end_ns - event->launch.device_start_ns, end_ns - begin_ns);
}

static void kernels_stand_on_their_stream_at_their_times(void **state) {
  (void)state;
  emulated_stream *const stream = emulated_create(1);
  static prof_event event;
  prof_cursor *cursor = NULL;
  uint64_t count = 0;
  start(1);
  launch_all(stream);
  prof_trace *const trace = stop_and_get();
  const prof_trace_info info = info_of(trace);
  const int64_t bar_ns = bar_of(trace);
  assert_int_equal(prof_cursor_create(trace, &cursor), PROF_OK);
  for (; next_on_device(cursor, &event); count++) {
    assert_true(is_text(event.name, event.name_bytes, "busy") &&
                is_text(event.category, event.category_bytes, "kernel"));
    assert_int_equal(event.launch.record, PROF_BACKEND_KERNEL);
    assert_int_equal(event.stream, (uintptr_t)stream);
    assert_int_equal(event.device.index, 1);
    check_times(&event, &info, stream, count, bar_ns);
    assert_int_equal(arg_of(&event, "queued ns")->value.u64, event.launch.device_start_ns - 2);
    assert_int_equal(arg_of(&event, "submitted ns")->value.u64, event.launch.device_start_ns - 1);
    const prof_trace_arg *const grid = arg_of(&event, "grid");
    assert_int_equal(grid->type, PROF_ARG_TENSOR);
    assert_int_equal(grid->value.tensor.rank, 3);
    assert_int_equal(grid->value.tensor.dims[0] * 100 + grid->value.tensor.dims[1] * 10 +
                         grid->value.tensor.dims[2],
                     6421);
    assert_int_equal(arg_of(&event, "registers per thread")->value.u64, 32);
    assert_int_equal(event.arg_count, 7);
  }
  prof_cursor_destroy(cursor);
  assert_int_equal(count, KERNELS);
  assert_int_equal(record_count(trace), KERNELS);
  for (int i = 0; i < PROF_LOSS_COUNT; i++) assert_int_equal(info.lost_count[i], 0);
  prof_trace_destroy(trace);
  emulated_destroy(stream);
}

static void a_copy_says_how_much_and_which_way(void **state) {
  (void)state;
  emulated_stream *const stream = emulated_create(0);
  static prof_event event;
  prof_cursor *cursor = NULL;
  start(1);
  emulated_copy(stream, 1000, 1 << 20);
  emulated_wait(stream);
  settle(1);
  prof_trace *const trace = stop_and_get();
  assert_int_equal(prof_cursor_create(trace, &cursor), PROF_OK);
  assert_true(next_on_device(cursor, &event));
  assert_true(is_text(event.name, event.name_bytes, "Memcpy HtoD") &&
              is_text(event.category, event.category_bytes, "gpu_memcpy"));
  assert_int_equal(arg_of(&event, "bytes")->value.u64, 1 << 20);
  const prof_trace_arg *const way = arg_of(&event, "direction");
  assert_true(is_text(way->value.text.data, (uint32_t)way->value.text.bytes, "host to device"));
  /* it was launched by a thread that records nothing */
  assert_int_equal(event.launch.thread, UINT32_MAX);
  prof_cursor_destroy(cursor);
  prof_trace_destroy(trace);
  emulated_destroy(stream);
}

static const prof_row *row_of(const prof_rows *rows, const char *name) {
  for (uint64_t i = 0; i < rows->row_count; i++)
    if (strcmp(rows->rows[i].name, name) == 0) return &rows->rows[i];
  fail_msg("there is no row %s", name);
  return NULL;
}

/* Inside of what the device's side of a scope spans, each ns counts once. */
static void a_kernel_belongs_to_the_innermost_scope_that_launched_it(void **state) {
  (void)state;
  emulated_stream *const stream = emulated_create(1);
  prof_rows *rows = NULL;
  start(1);
  WITH_BASE_PROFILER(PROF_HOST, "model", "model", PROF_NO_ARGS, {
    WITH_BASE_PROFILER(PROF_HOST, "warm", "model", PROF_NO_ARGS, {});
    WITH_BASE_PROFILER(PROF_HOST, "layer", "model", PROF_NO_ARGS, {
      emulated_launch(stream, KERNEL_NS);
      emulated_launch(stream, KERNEL_NS);
    });
    WITH_GPU_PROFILER(device, (uintptr_t)stream, "fused", "operator", PROF_NO_ARGS,
                      { emulated_launch(stream, KERNEL_NS); });
  });
  emulated_wait(stream);
  settle(3);
  prof_trace *const trace = stop_and_get();
  assert_int_equal(prof_trace_aggregate(trace, NULL, &rows), PROF_OK);
  const prof_row *const layer = row_of(rows, "layer"), *const fused = row_of(rows, "fused"),
                        *const model = row_of(rows, "model");
  assert_int_equal(layer->device_count, 2);
  assert_true(layer->self_device_ns >= 2 * KERNEL_NS);
  assert_int_equal(fused->device_count, 2); /* its own side, and the kernel inside of that */
  assert_in_range(fused->device_total_ns, KERNEL_NS, layer->self_device_ns * 100);
  assert_int_equal(model->device_total_ns, layer->self_device_ns + fused->self_device_ns);
  assert_int_equal(model->self_device_ns + row_of(rows, "warm")->device_total_ns, 0);
  prof_rows_destroy(rows);
  prof_trace_destroy(trace);
  emulated_destroy(stream);
}

/* By kernels: they have rows of their own, whoever launched them; the scopes have what is left,
   their own sides. */
static void rows_are_by_kernels_if_asked_for(void **state) {
  (void)state;
  emulated_stream *const stream = emulated_create(1);
  prof_rows *rows = NULL;
  char *text = NULL;
  start(2);
  WITH_GPU_PROFILER(device, (uintptr_t)stream, "fused", "operator", PROF_NO_ARGS,
                    { emulated_launch(stream, KERNEL_NS); });
  launch_all(stream);
  settle(KERNELS + 1);
  prof_trace *const trace = stop_and_get();
  prof_aggregate_options by = {
      .size = sizeof by, .group = PROF_GROUP_KERNEL, .sort = PROF_SORT_SELF_DEVICE};
  assert_int_equal(prof_trace_aggregate(trace, &by, &rows), PROF_OK);
  const prof_row *const kernel = row_of(rows, "busy"), *const layer = row_of(rows, "layer"),
                        *const fused = row_of(rows, "fused");
  assert_string_equal(kernel->category, "kernel");
  assert_int_equal(kernel->device_count, KERNELS + 1);
  assert_true(kernel->self_device_ns >= (KERNELS + 1) * KERNEL_NS);
  assert_int_equal(layer->self_device_ns + layer->device_total_ns + layer->device_count, 0);
  assert_int_equal(layer->calls_count, KERNELS);
  /* its own side; what ran inside of that counts where it ran */
  assert_int_equal(fused->device_count, 1);
  const uint64_t all_ns = rows->total_self_device_ns;
  prof_rows_destroy(rows);
  assert_int_equal(prof_trace_aggregate(trace, NULL, &rows), PROF_OK);
  assert_int_equal(rows->total_self_device_ns, all_ns); /* each ns once, either way */
  prof_rows_destroy(rows);
  assert_int_equal(prof_trace_table(trace, &by, &text), PROF_OK);
  assert_non_null(strstr(text, "busy"));
  assert_non_null(strstr(text, "Category"));
  prof_free(text);
  prof_trace_destroy(trace);
  emulated_destroy(stream);
}

static void no_device_is_without_times_that_has_records(void **state) {
  (void)state;
  emulated_stream *const stream = emulated_create(1);
  char *text = NULL;
  start(1);
  launch_all(stream);
  prof_trace *const trace = stop_and_get();
  assert_int_equal(prof_trace_json(trace, NULL, &text, NULL), PROF_OK);
  assert_non_null(strstr(text, "\"prof: no loss\""));
  assert_null(strstr(text, "devices without times"));
  prof_free(text);
  prof_trace_destroy(trace);
  emulated_destroy(stream);
}

static void at_level_2_the_librarys_calls_stand_there_too(void **state) {
  (void)state;
  emulated_stream *const stream = emulated_create(1);
  prof_rows *rows = NULL;
  start(2);
  launch_all(stream);
  prof_trace *const trace = stop_and_get();
  assert_int_equal(prof_trace_aggregate(trace, NULL, &rows), PROF_OK);
  assert_int_equal(row_of(rows, "emulatedLaunch")->calls_count, KERNELS);
  prof_rows_destroy(rows);
  prof_trace_destroy(trace);
  emulated_destroy(stream);
}

static void who_does_not_ask_gets_scopes_alone(void **state) {
  (void)state;
  emulated_stream *const stream = emulated_create(1);
  assert_int_equal(prof_start(1), PROF_OK);
  WITH_GPU_PROFILER(device, (uintptr_t)stream, "fused", "operator", PROF_NO_ARGS,
                    { emulated_launch(stream, KERNEL_NS); });
  emulated_wait(stream);
  prof_trace *const trace = stop_and_get();
  assert_int_equal(emulated_tracing_starts(), 0);
  assert_int_equal(record_count(trace), 0);
  prof_trace_destroy(trace);
  emulated_destroy(stream);
}

/* ---- what goes wrong ---- */

/* So many records, of which some are spoiled; returns how many stand in the trace. */
static uint64_t record_spoiled(uint64_t *lost_times_out) {
  emulated_stream *const stream = emulated_create(1);
  start(1);
  launch_all(stream);
  prof_trace *const trace = stop_and_get();
  const uint64_t count = record_count(trace);
  *lost_times_out = info_of(trace).lost_count[PROF_LOSS_DEVICE_TIMES];
  prof_trace_destroy(trace);
  emulated_destroy(stream);
  return count;
}

static void what_has_no_times_is_lost_and_counted(void **state) {
  (void)state;
  uint64_t lost;
  emulated_fault.record_no_times_every = 3;
  assert_int_equal(record_spoiled(&lost), KERNELS - KERNELS / 3);
  assert_int_equal(lost, KERNELS / 3);
}

static void what_ends_before_it_begins_is_lost_and_counted(void **state) {
  (void)state;
  uint64_t lost;
  emulated_fault.record_reversed_every = 4;
  assert_int_equal(record_spoiled(&lost), KERNELS - KERNELS / 4);
  assert_int_equal(lost, KERNELS / 4);
}

/* Of every three the last is spoiled, and spoils nothing for the others. */
static void check_that_others_stand(void) {
  emulated_stream *const stream = emulated_create(1);
  static prof_event event;
  prof_cursor *cursor = NULL;
  uint64_t count = 0;
  start(1);
  launch_all(stream);
  prof_trace *const trace = stop_and_get();
  const prof_trace_info info = info_of(trace);
  const int64_t bar_ns = bar_of(trace);
  assert_int_equal(info.lost_count[PROF_LOSS_DEVICE_TIMES], KERNELS / 3);
  assert_int_equal(prof_cursor_create(trace, &cursor), PROF_OK);
  for (; next_on_device(cursor, &event); count++)
    check_times(&event, &info, stream, count / 2 * 3 + count % 2, bar_ns);
  assert_int_equal(count, KERNELS - KERNELS / 3);
  prof_cursor_destroy(cursor);
  prof_trace_destroy(trace);
  emulated_destroy(stream);
}

static void what_will_have_been_is_lost_and_counted(void **state) {
  (void)state;
  emulated_fault.record_future_every = 3;
  check_that_others_stand();
}

static void what_has_no_end_is_lost_and_counted(void **state) {
  (void)state;
  emulated_fault.record_endless_every = 3;
  check_that_others_stand();
}

static void a_size_that_cannot_be_is_lost_and_counted(void **state) {
  (void)state;
  uint64_t lost;
  emulated_fault.record_broken_every = 2;
  assert_int_equal(record_spoiled(&lost), KERNELS / 2);
  assert_int_equal(lost, KERNELS / 2);
}

static void larger_records_and_unknown_kinds_are_taken_for_what_is_known(void **state) {
  (void)state;
  uint64_t lost;
  emulated_fault.record_larger_every = 2;
  emulated_fault.record_unknown_every = 3;
  assert_int_equal(record_spoiled(&lost), KERNELS);
  assert_int_equal(lost, 0);
}

static void what_seems_to_begin_before_its_launch_is_moved_and_counted(void **state) {
  (void)state;
  emulated_stream *const stream = emulated_create(1);
  static prof_event event;
  prof_cursor *cursor = NULL;
  prof_trace_device about = {.size = sizeof about};
  emulated_fault.record_early_every = 3;
  start(1);
  launch_all(stream);
  prof_trace *const trace = stop_and_get();
  assert_int_equal(prof_trace_device_get(trace, 0, &about), PROF_OK);
  assert_int_equal(about.early_count, KERNELS / 3);
  /* It is as long as its kernel took, and more where there was no processor. */
  assert_true(about.early_ns >= KERNEL_NS / 2);
  assert_int_equal(prof_cursor_create(trace, &cursor), PROF_OK);
  while (next_on_device(cursor, &event)) assert_true(event.start_ns >= event.launch.start_ns);
  prof_cursor_destroy(cursor);
  prof_trace_destroy(trace);
  emulated_destroy(stream);
}

static void what_the_vendor_lost_is_counted(void **state) {
  (void)state;
  emulated_stream *const stream = emulated_create(1);
  emulated_fault.drain_loses = 41;
  start(1);
  launch_all(stream);
  prof_trace *const trace = stop_and_get();
  assert_int_equal(info_of(trace).lost_count[PROF_LOSS_DEVICE_FULL], 41);
  prof_trace_destroy(trace);
  emulated_destroy(stream);
}

static void a_vendor_that_is_busy_says_so_and_scopes_go_on(void **state) {
  (void)state;
  emulated_stream *const stream = emulated_create(1);
  emulated_fault.is_busy = 1;
  start(1);
  WITH_GPU_PROFILER(device, (uintptr_t)stream, "fused", "operator", PROF_NO_ARGS,
                    { emulated_launch(stream, KERNEL_NS); });
  emulated_wait(stream);
  prof_trace *const trace = stop_and_get();
  prof_trace_device seen = {.size = sizeof seen};
  char *line = NULL;
  /* the first one says it for all */
  assert_int_equal(prof_trace_device_get(trace, 0, &seen), PROF_OK);
  assert_int_equal(seen.result, PROF_BACKEND_BUSY);
  assert_memory_equal(seen.reason, "records no kernels by itself: ", 30);
  assert_int_equal(prof_trace_device_text(trace, 0, &line), PROF_OK);
  assert_non_null(strstr(line, ": it records no kernels by itself: "));
  prof_free(line);
  assert_int_equal(prof_trace_device_get(trace, 1, &seen), PROF_OK);
  assert_int_equal(seen.scope_count, 1);
  const prof_backend_state about = state_of_back_end("emulated");
  assert_int_equal(about.result, PROF_BACKEND_OK);
  assert_non_null(strstr(about.reason, "records no kernels"));
  prof_trace_destroy(trace);
  emulated_destroy(stream);
}

static void a_drain_that_hangs_holds_nobody(void **state) {
  (void)state;
  emulated_stream *const stream = emulated_create(1);
  start(1);
  emulated_fault.drain_hangs = 1;
  emulated_launch(stream, KERNEL_NS);
  const prof_trace *const before = get();
  assert_int_equal(prof_stop(), PROF_OK);
  assert_int_equal(prof_start(1), PROF_OK);
  assert_int_equal(prof_stop(), PROF_OK);
  assert_int_equal(prof_start(1), PROF_OK); /* while it cannot end */
  __atomic_store_n(&emulated_fault.drain_hangs, 0, __ATOMIC_RELAXED);
  const uint32_t starts = emulated_tracing_starts();
  WAIT_WHILE(emulated_tracing_starts() == starts);
  launch_all(stream);
  assert_int_equal(prof_stop(), PROF_OK);
  prof_trace_destroy((prof_trace *)(uintptr_t)before);
  emulated_destroy(stream);
}

/* What a vendor lost may be told when its capture has gone. */
static void captures_come_and_go_beside_losses(void **state) {
  (void)state;
  enum { ROUNDS = 200 };
  emulated_stream *const stream = emulated_create(1);
  for (int i = 0; i < ROUNDS; i++) {
    const prof_options options = {.size = sizeof options,
                                  .level = 1,
                                  .devices = PROF_DEVICES_RECORDS,
                                  .cap_bytes = i % 2 ? 1 << 20 : 0};
    assert_int_equal(prof_start_with(&options), PROF_OK);
    __atomic_store_n(&emulated_fault.drain_loses, 1, __ATOMIC_RELAXED);
    emulated_launch(stream, 1000);
    usleep((unsigned)(i % 7) * 100);
    assert_int_equal(prof_stop(), PROF_OK);
  }
  emulated_destroy(stream);
}

/* What a device did is counted since recording began, and the line says so where the trace holds
   less. */
static void after_a_clear_the_line_says_since_when(void **state) {
  (void)state;
  char *text;
  begin();
  start(1);
  emulated_stream *const stream = emulated_create(1);
  launch_all(stream);
  for (int cleared = 0; cleared <= 1; cleared++) {
    if (cleared) assert_int_equal(prof_clear(), PROF_OK);
    prof_trace *const trace = get();
    assert_int_equal(record_count(trace), KERNELS);
    assert_int_equal(info_of(trace).event_count > 0, !cleared);
    assert_int_equal(prof_trace_device_text(trace, 0, &text), PROF_OK);
    assert_int_equal(
        strstr(text, "12 kernels and copies since recording began, times within") != NULL, cleared);
    prof_free(text);
    prof_trace_destroy(trace);
  }
  assert_int_equal(prof_stop(), PROF_OK);
  emulated_destroy(stream);
}

static void starts_and_stops(void **state) {
  (void)state;
  enum { ROUNDS = 300 };
  emulated_stream *const stream = emulated_create(1);
  start(1);
  assert_int_equal(prof_stop(), PROF_OK);
  for (int i = 0; i < ROUNDS; i++) {
    assert_int_equal(prof_start(1 + i % 2), PROF_OK);
    emulated_launch(stream, 1000);
    assert_int_equal(prof_stop(), PROF_OK);
  }
  assert_in_range(emulated_tracing_starts(), ROUNDS, 3 * ROUNDS);
  assert_in_range(emulated_tracing_stops(), ROUNDS / 2, ROUNDS + 1);
  emulated_wait(stream);
  emulated_destroy(stream);
}

static uint64_t records_now(void) {
  prof_trace *const trace = get();
  const uint64_t count = record_count(trace);
  prof_trace_destroy(trace);
  return count;
}

/* Launches so many, of which that many are to be recorded: waits for those, and looks some times
   more at whether others come. */
static void expect_records(uint64_t launches, uint64_t recorded, emulated_stream *stream) {
  const uint64_t before = records_now();
  for (uint64_t i = 0; i < launches; i++) emulated_launch(stream, 1000);
  emulated_wait(stream);
  WAIT_WHILE(records_now() - before < recorded);
  for (int i = 0; i < 5; i++, usleep(10000)) prof_trace_destroy(get()); /* a round each */
  assert_int_equal(records_now() - before, recorded);
}

/* A program that requests memory gets the kernels of a vendor that reports none, and no empty pools
   of it. */
static void a_vendor_that_tells_no_memory_has_no_pools(void **state) {
  (void)state;
  const prof_options options = {.size = sizeof options, .level = 1, .devices = PROF_DEVICES_MEMORY};
  prof_memory *memory = NULL;
  emulated_stream *const stream = emulated_create(1);
  assert_int_equal(prof_start_with(&options), PROF_OK);
  launch_all(stream);
  prof_trace *const trace = stop_and_get();
  assert_int_equal(prof_memory_read(trace, &memory), PROF_OK);
  assert_int_equal(prof_memory_pool_count(memory), 0);
  prof_memory_destroy(memory);
  prof_trace_destroy(trace);
  emulated_destroy(stream);
}

/* Of several owners that record at once, the highest request counts while it lasts. */
static void who_records_for_a_while_says_what_of_devices_he_wants(void **state) {
  static const char all, scopes, whatever;
  (void)state;
  emulated_stream *const stream = emulated_create(1);
  assert_int_equal(prof_level_want_with(&all, 1, 4), PROF_E_INVALID);
  assert_non_null(strstr(prof_last_error(), "devices is 4; 0 to 3 are known"));
  assert_int_equal(prof_level_want_with(NULL, 1, 0), PROF_E_INVALID);
  assert_int_equal(prof_level(), 0);
  assert_int_equal(prof_level_want_with(&scopes, 1, PROF_DEVICES_SCOPES), PROF_OK);
  assert_int_equal(prof_level_want(&whatever, 1), PROF_OK);
  expect_records(3, 0, stream);
  assert_int_equal(emulated_tracing_starts(), 0);
  /* while others record */
  assert_int_equal(prof_level_want_with(&all, 1, PROF_DEVICES_RECORDS), PROF_OK);
  assert_int_equal(emulated_tracing_starts(), 1);
  expect_records(KERNELS, KERNELS, stream);
  assert_int_equal(prof_level_want_with(&all, PROF_LEVEL_PAUSED, PROF_DEVICES_RECORDS), PROF_OK);
  expect_records(3, 0, stream);
  assert_int_equal(prof_level_want_with(&all, 1, PROF_DEVICES_RECORDS), PROF_OK);
  expect_records(KERNELS, KERNELS, stream);
  const uint64_t stops = emulated_tracing_stops();
  assert_int_equal(prof_level_want(&all, 0), PROF_OK);
  /* when it returns, unless the collector has no processor */
  WAIT_WHILE(emulated_tracing_stops() == stops);
  assert_int_equal(emulated_tracing_stops(), stops + 1);
  expect_records(3, 0, stream);
  assert_int_equal(prof_level_want(&scopes, 0), PROF_OK);
  assert_int_equal(prof_level_want(&whatever, 0), PROF_OK);
  assert_int_equal(prof_level(), 0);
  emulated_destroy(stream);
}

static void options_forbid_what_a_wish_wants(void **state) {
  static const char who;
  const prof_options options = {.size = sizeof options, .level = 1, .devices = PROF_DEVICES_SCOPES};
  (void)state;
  emulated_stream *const stream = emulated_create(1);
  assert_int_equal(prof_start_with(&options), PROF_OK);
  assert_int_equal(prof_level_want_with(&who, 2, PROF_DEVICES_RECORDS), PROF_OK);
  expect_records(3, 0, stream);
  assert_int_equal(emulated_tracing_starts(), 0);
  assert_int_equal(prof_level_want(&who, 0), PROF_OK);
  assert_int_equal(prof_stop(), PROF_OK);
  emulated_destroy(stream);
}

/* A layer that records without a request, and that prof stops. */
static void scopes_alone_are_scopes_alone(void **state) {
  static const char who;
  (void)state;
  prof_backend always = emulated_backend;
  always.name = "always";
  always.device_type = EMULATED_TYPE + 1;
  always.records_always = 1;
  assert_int_equal(prof_level_want_with(&who, 1, PROF_DEVICES_SCOPES), PROF_OK);
  assert_int_equal(prof_backend_add(&always), PROF_OK);
  usleep(50000);
  assert_int_equal(emulated_tracing_starts(), 0);
  assert_int_equal(prof_level_want(&who, 1), PROF_OK);
  for (unsigned naps = 0; emulated_tracing_starts() == 0 && hang_nap(&naps);)
    prof_trace_destroy(get());
  assert_int_equal(emulated_tracing_starts(), 1);
  assert_int_equal(prof_level_want(&who, 0), PROF_OK);
}

#define TESTS(X)                                                  \
  X(kernels_stand_on_their_stream_at_their_times)                 \
  X(a_copy_says_how_much_and_which_way)                           \
  X(a_kernel_belongs_to_the_innermost_scope_that_launched_it)     \
  X(rows_are_by_kernels_if_asked_for)                             \
  X(no_device_is_without_times_that_has_records)                  \
  X(at_level_2_the_librarys_calls_stand_there_too)                \
  X(who_does_not_ask_gets_scopes_alone)                           \
  X(what_has_no_times_is_lost_and_counted)                        \
  X(what_ends_before_it_begins_is_lost_and_counted)               \
  X(a_size_that_cannot_be_is_lost_and_counted)                    \
  X(what_will_have_been_is_lost_and_counted)                      \
  X(what_has_no_end_is_lost_and_counted)                          \
  X(larger_records_and_unknown_kinds_are_taken_for_what_is_known) \
  X(what_seems_to_begin_before_its_launch_is_moved_and_counted)   \
  X(what_the_vendor_lost_is_counted)                              \
  X(a_vendor_that_is_busy_says_so_and_scopes_go_on)               \
  X(a_drain_that_hangs_holds_nobody)                              \
  X(starts_and_stops)                                             \
  X(captures_come_and_go_beside_losses)                           \
  X(after_a_clear_the_line_says_since_when)                       \
  X(who_records_for_a_while_says_what_of_devices_he_wants)        \
  X(a_vendor_that_tells_no_memory_has_no_pools)                   \
  X(options_forbid_what_a_wish_wants)                             \
  X(scopes_alone_are_scopes_alone)

ALONE_TESTS

enum { STEPS = 4, LAYERS = 3 };

/* Waits until the sampler has read once more, from begin to end: the reading that is under way may
   be the previous one. */
static void wait_for_a_look(void) {
  prof_sampler_state now = {.size = sizeof now};
  assert_int_equal(prof_sampler_get(&now), PROF_OK);
  const uint64_t wanted = now.sample_count + 2;
  for (unsigned naps = 0; now.sample_count < wanted && hang_nap(&naps);)
    assert_int_equal(prof_sampler_get(&now), PROF_OK);
  assert_true(now.sample_count >= wanted);
}

/* While its power is sampled and a tensor lies in its memory: some steps of a model. A step is a
   copy and some layers of two kernels, which calls named as CUDA's launch, because some readers
   know kernels by those. The path ends in .json. */
static int write_trace(const char *path) {
  const prof_sampler_options meters = {
      .size = sizeof meters, .interval_ns = 1000000, .devices = "1"};
  const prof_pool_options options = {
      .size = sizeof options, .name = "tensors", .device = {EMULATED_TYPE, 1}};
  char tensor[1];
  prof_pool *pool = NULL;
  begin();
  assert_int_equal(prof_pool_create(&options, &pool), PROF_OK);
  emulated_stream *const stream = emulated_create(1);
  emulated_meter.power_mw[1] = 75500;
  start(1);
  prof_memory_alloc(pool, tensor, 1 << 20, 1 << 20);
  assert_int_equal(prof_sampler_start(&meters), PROF_OK);
  for (int step = 0; step < STEPS; step++) {
    WITH_BASE_PROFILER(PROF_HOST, "cudaMemcpyAsync", "cuda_runtime", PROF_NO_ARGS,
                       { emulated_copy(stream, 50000, 1 << 20); });
    for (int i = 0; i < LAYERS; i++) {
      WITH_BASE_PROFILER(PROF_HOST, "layer", "cpu_op", PROF_NO_ARGS, {
        WITH_BASE_PROFILER(PROF_HOST, "cudaLaunchKernel", "cuda_runtime", PROF_NO_ARGS,
                           { emulated_launch(stream, KERNEL_NS); });
        WITH_BASE_PROFILER(PROF_HOST, "fused", "cpu_op", PROF_NO_ARGS, {
          emulated_launch(stream, KERNEL_NS);
          emulated_launch(stream, KERNEL_NS);
        });
      });
    }
    emulated_wait(stream);
    wait_for_a_look();
    prof_step();
  }
  settle(STEPS * (1 + 3 * LAYERS));
  stop_sampler();
  prof_memory_free(pool, tensor, 1 << 20);
  assert_int_equal(prof_stop(), PROF_OK);
  emulated_destroy(stream);
  prof_pool_destroy(pool);
  return prof_dump(path) == PROF_OK ? 0 : 1;
}

int main(int argc, char **argv) {
  return argc == 2 && strstr(argv[1], ".json") ? write_trace(argv[1]) : alone_main(argc, argv);
}
