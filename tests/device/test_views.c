/* What readers get of devices: the table's columns, the events, what is said about the clocks, the
   Chrome JSON. On an emulated device. */
#define _GNU_SOURCE
#include <prof/device.h>
#include <prof/profiler.h>
#include <prof/trace.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "emulated/emulated.h"

enum { LAYERS = 3, KERNELS = 4, KERNEL_NS = 400000 };

static const prof_device device = {EMULATED_TYPE, 1}, nobodys = {77, 2};
static prof_trace *trace;

/* layer { norm; kernel x 4 on one of two streams }, a scope whose device nobody serves, and one
   scope of a stream inside of another. */
static int record(void **state) {
  (void)state;
  emulated_fault.has_clock = 1;
  assert_int_equal(prof_backend_add(&emulated_backend), PROF_OK);
  assert_int_equal(prof_start(1), PROF_OK);
  emulated_stream *const streams[] = {emulated_create(1), emulated_create(1)};
  prof_track_set_name(device, (uintptr_t)streams[0], "compute");
  for (int i = 0; i < LAYERS; i++) {
    WITH_BASE_PROFILER(PROF_HOST, "layer", "model", PROF_NO_ARGS, {
      WITH_BASE_PROFILER(PROF_HOST, "norm", "operator", PROF_NO_ARGS, {});
      for (int k = 0; k < KERNELS; k++)
        WITH_GPU_PROFILER(device, (uintptr_t)streams[k % 2], "kernel", "operator",
                          PROF_ARGS("k", k), { emulated_launch(streams[k % 2], KERNEL_NS); });
    });
  }
  WITH_GPU_PROFILER(device, (uintptr_t)streams[0], "outer", "operator", PROF_NO_ARGS, {
    emulated_launch(streams[0], KERNEL_NS);
    WITH_GPU_PROFILER(device, (uintptr_t)streams[0], "inner", "operator", PROF_NO_ARGS,
                      { emulated_launch(streams[0], KERNEL_NS); });
  });
  WITH_GPU_PROFILER(nobodys, 5, "nobody's", "operator", PROF_NO_ARGS, {});
  for (int i = 0; i < 2; i++) emulated_wait(streams[i]);
  for (uint64_t told = 0; told < LAYERS * KERNELS + 2; usleep(1000)) {
    prof_trace *now = NULL;
    prof_trace_device about = {.size = sizeof about};
    assert_int_equal(prof_get(&now), PROF_OK);
    if (prof_trace_device_get(now, 0, &about) == PROF_OK) told = about.scope_count;
    prof_trace_destroy(now);
  }
  assert_int_equal(prof_stop(), PROF_OK);
  return prof_get(&trace);
}

/* By how much a stretch of the device's time may be wrong on the host's clock. The distance of the
   readings of the device's clock depends on the machine. prof must keep the truth inside the
   bounds. */
static uint64_t stretch_error_ns(void) {
  prof_trace_info info = {.size = sizeof info};
  prof_trace_device about = {.size = sizeof about};
  assert_int_equal(prof_trace_info_get(trace, &info), PROF_OK);
  assert_int_equal(prof_trace_device_get(trace, 0, &about), PROF_OK);
  return 2 * (about.clock_error_ns + info.clock_error_ns + 1);
}

static prof_row row_of(const prof_rows *rows, const char *name) {
  for (uint64_t i = 0; i < rows->row_count; i++)
    if (strcmp(rows->rows[i].name, name) == 0) return rows->rows[i];
  fail_msg("there is no row %s", name);
  return rows->rows[0];
}

static void a_scope_has_what_was_launched_in_it(void **state) {
  (void)state;
  prof_rows *rows = NULL;
  assert_int_equal(prof_trace_aggregate(trace, NULL, &rows), PROF_OK);
  const prof_row layer = row_of(rows, "layer"), kernel = row_of(rows, "kernel"),
                 norm = row_of(rows, "norm"), outer = row_of(rows, "outer"),
                 inner = row_of(rows, "inner");
  assert_int_equal(rows->all_row_count, 6); /* no row of the device's own */
  assert_int_equal(kernel.calls_count, LAYERS * KERNELS);
  assert_int_equal(kernel.device_count, LAYERS * KERNELS);
  assert_true(kernel.self_device_ns + LAYERS * KERNELS * stretch_error_ns() >=
              (uint64_t)LAYERS * KERNELS * KERNEL_NS);
  assert_int_equal(kernel.device_total_ns, kernel.self_device_ns);
  assert_int_equal(layer.device_total_ns, kernel.self_device_ns);
  assert_int_equal(layer.self_device_ns + layer.device_count + norm.device_total_ns, 0);
  assert_true(inner.self_device_ns + stretch_error_ns() >= KERNEL_NS &&
              outer.self_device_ns + stretch_error_ns() >= KERNEL_NS);
  assert_int_equal(outer.device_total_ns, outer.self_device_ns + inner.self_device_ns);
  assert_int_equal(rows->total_self_device_ns,
                   kernel.self_device_ns + outer.self_device_ns + inner.self_device_ns);
  assert_int_equal(rows->has_device, 1);
  assert_int_equal(row_of(rows, "nobody's").device_total_ns, 0);
  prof_rows_destroy(rows);
}

static void groups_by_device_thread_and_shape_keep_their_sums(void **state) {
  (void)state;
  prof_rows *whole = NULL, *rows = NULL;
  assert_int_equal(prof_trace_aggregate(trace, NULL, &whole), PROF_OK);
  static const uint32_t groups[] = {
      PROF_GROUP_NAME | PROF_GROUP_DEVICE, PROF_GROUP_NAME | PROF_GROUP_THREAD,
      PROF_GROUP_NAME | PROF_GROUP_SHAPE, PROF_GROUP_CATEGORY, PROF_GROUP_DEVICE};
  for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
    const prof_aggregate_options options = {
        .size = sizeof options,
        .group = groups[i],
        .sort = i % 2 ? PROF_SORT_DEVICE : PROF_SORT_SELF_DEVICE};
    assert_int_equal(prof_trace_aggregate(trace, &options, &rows), PROF_OK);
    assert_int_equal(rows->total_self_device_ns, whole->total_self_device_ns);
    assert_int_equal(rows->calls_count, whole->calls_count);
    for (uint64_t n = 1; n < rows->row_count; n++)
      if (i % 2)
        assert_true(rows->rows[n].device_total_ns <= rows->rows[n - 1].device_total_ns);
      else
        assert_true(rows->rows[n].self_device_ns <= rows->rows[n - 1].self_device_ns);
    prof_rows_destroy(rows);
  }
  prof_rows_destroy(whole);
}

static bool has(const char *text, const char *part) { return strstr(text, part) != NULL; }

static void the_table_shows_devices_and_what_is_known_of_them(void **state) {
  (void)state;
  char *text = NULL;
  assert_int_equal(prof_trace_table(trace, NULL, &text), PROF_OK);
  const char *const parts[] = {
      "Self Device  ",
      "Self Device %",
      "Device Total",
      "Device Mean",
      "Self device time total: ",
      "ext_dev:1 emulated accelerator (emulated: no device): 14 scopes, times within ",
      "77:2: the host's side of its scopes alone: no back end serves devices of that type; "
      "PROF_BACKENDS names plug-ins"};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
    if (!has(text, parts[i])) fail_msg("not in the table: %s\n%s", parts[i], text);
  prof_free(text);
}

static void events_tell_their_launch(void **state) {
  (void)state;
  prof_cursor *cursor = NULL;
  static prof_event event;
  uint64_t starts[64], count = 0, met = 0;
  assert_int_equal(prof_cursor_create(trace, &cursor), PROF_OK);
  while (prof_cursor_next(cursor, &event) == 1)
    if ((event.flags & PROF_EVENT_ON_STREAM) && !(event.flags & PROF_EVENT_ON_DEVICE))
      starts[count++] = event.start_ns;
  prof_cursor_destroy(cursor);
  assert_int_equal(count, LAYERS * KERNELS + 3);
  assert_int_equal(prof_cursor_create(trace, &cursor), PROF_OK);
  while (prof_cursor_next(cursor, &event) == 1) {
    if (!(event.flags & PROF_EVENT_ON_DEVICE)) continue;
    bool is_known = false;
    for (uint64_t i = 0; i < count; i++) is_known |= starts[i] == event.launch.start_ns;
    assert_true(is_known);
    assert_int_equal(event.launch.thread, 0);
    assert_true(event.start_ns >= event.launch.start_ns);
    /* more where the stream's thread has no processor */
    assert_in_range(event.launch.device_end_ns - event.launch.device_start_ns, KERNEL_NS,
                    UINT64_C(10000000000));
    met++;
  }
  prof_cursor_destroy(cursor);
  assert_int_equal(met, LAYERS * KERNELS + 2);
}

static void devices_are_told_in_order(void **state) {
  (void)state;
  prof_trace_info info = {.size = sizeof info};
  prof_trace_device about = {.size = sizeof about};
  assert_int_equal(prof_trace_info_get(trace, &info), PROF_OK);
  assert_int_equal(info.device_count, 2);
  assert_int_equal(prof_trace_device_get(trace, 0, &about), PROF_OK);
  assert_int_equal(about.device.type, EMULATED_TYPE);
  assert_int_equal(about.device.index, 1);
  assert_int_equal(about.is_emulated + 2 * about.is_clock_read, 3);
  assert_string_equal(about.back_end, "emulated");
  /* how near the looks at its clock were is the machine's affair */
  assert_in_range(about.clock_error_ns, 1, 1000000000);
  assert_int_equal(about.clock_step_count, 0);
  assert_int_equal(prof_trace_device_get(trace, 1, &about), PROF_OK);
  assert_int_equal(about.result, PROF_BACKEND_UNSUPPORTED);
  assert_int_equal(prof_trace_device_get(trace, 2, &about), PROF_E_INVALID);
  assert_int_equal(prof_trace_device_get(NULL, 0, &about), PROF_E_INVALID);
  assert_int_equal(prof_trace_device_text(trace, 0, NULL), PROF_E_INVALID);
}

/* The rest is the viewers' to say: tests/viewers. */
static void chrome_json_has_a_process_for_the_device_and_arrows_to_it(void **state) {
  (void)state;
  char *json = NULL;
  uint64_t arrows = 0;
  assert_int_equal(prof_trace_json(trace, NULL, &json, NULL), PROF_OK);
  const char *const parts[] = {
      "\"name\":\"process_name\",\"pid\":5012001,",
      ": compute\"}}",
      "\"args\":{\"name\":\"stream ",
      "\"cat\":\"gpu_user_annotation\",\"name\":\"kernel\",\"pid\":5012001,\"tid\":1,",
      "\"cat\":\"operator\",\"name\":\"kernel\",",
      "\"device\":1,\"stream\":2}",
      "\"faults\":0",
      "\"devices without times\":[\"77:2: the host's side of its scopes alone: ",
      "\"devices\":[\"ext_dev:1 emulated accelerator (emulated: no device): 14 scopes, "};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
    if (!has(json, parts[i])) fail_msg("not in the text: %s\n%s", parts[i], json);
  for (const char *at = json; (at = strstr(at, "\"cat\":\"ac2g\"")) != NULL; at++) arrows++;
  assert_int_equal(arrows, 2 * (LAYERS * KERNELS + 2));
  prof_free(json);
}

/* views FILE...: writes the trace to them, for tests of other readers. */
int main(int argc, char **argv) {
  for (int i = 1; i < argc; i++)
    if ((i == 1 && record(NULL) != PROF_OK) || prof_trace_dump(trace, argv[i], NULL) != PROF_OK)
      return 1;
  if (argc > 1) return 0;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_scope_has_what_was_launched_in_it),
      cmocka_unit_test(groups_by_device_thread_and_shape_keep_their_sums),
      cmocka_unit_test(the_table_shows_devices_and_what_is_known_of_them),
      cmocka_unit_test(events_tell_their_launch),
      cmocka_unit_test(devices_are_told_in_order),
      cmocka_unit_test(chrome_json_has_a_process_for_the_device_and_arrows_to_it)};
  return cmocka_run_group_tests(tests, record, NULL);
}
