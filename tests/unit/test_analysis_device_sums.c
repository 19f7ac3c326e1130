/* What devices' columns count: each ns of a stream once, however sides and records of kernels cross
   each other by what the clocks are wrong. */
#include "device_capture.h"
#include "trace_checks.h"

enum {
  SIDE = PROF_I_FLAG_DEVICE | PROF_I_FLAG_STREAM,
  OUTER = 1,
  MIDDLE,
  INNER,
  TAIL,
  KERNEL,
  KERNEL_KIND = 1
};

/* kind 0: a scope's side, launched where the scope began. */
static void put(prof_i_head *stream, uint32_t site, uint64_t start, uint64_t duration,
                uint64_t launched, uint64_t kind) {
  long_record r;
  long_begin(&r, PROF_I_KIND_SCOPE, CAPTURE_START + start, duration, site);
  r.flags = SIDE;
  r.schema = kind != 0;
  long_word(&r, 4 | UINT64_C(1) << 32);
  long_word(&r, 0x7000);
  long_word(&r, 1);
  long_word(&r, CAPTURE_START + launched);
  long_word(&r, 1000 + start);
  long_word(&r, 1000 + start + duration);
  if (kind) long_word(&r, kind);
  long_end(&r, stream);
}

/* A kernel crosses the edge of the innermost side; another one has its scope's side in it. */
static void make(capture *c) {
  static const char *const names[] = {"outer", "middle", "inner", "tail", "kernel"};
  capture_begin(c, 160 << 10);
  prof_i_head *const meta = capture_meta(c);
  for (uint32_t i = 0; i < 5; i++) capture_site(meta, i + 1, names[i], "test", 1);
  capture_track(meta, (prof_device){4, 1}, 0x7000, "compute");
  put_device(meta, &(prof_i_device_state){.type = 4,
                                          .index = 1,
                                          .scope_count = 4,
                                          .record_count = 2,
                                          .name = "a device",
                                          .back_end = "opencl"});
  prof_i_head *const chunk = capture_chunk(c, PROF_I_UNIT_BYTES, 1), *const stream = capture_extent(
                                                                         c, PROF_I_EXTENT_CHUNK,
                                                                         PROF_I_UNIT_BYTES);
  stream->sequence = ++c->sequence << 1;
  capture_owner_as(stream, 2, 0x7000,
                   PROF_I_KIND_OF_STREAM | 4 << PROF_I_THREAD_KIND_TYPE_SHIFT |
                       UINT64_C(1) << PROF_I_THREAD_KIND_INDEX_SHIFT,
                   "stream 0x7000");
  capture_plain(chunk, CAPTURE_START + 14, 26, INNER);
  capture_plain(chunk, CAPTURE_START + 12, 38, MIDDLE);
  capture_plain(chunk, CAPTURE_START + 10, 50, OUTER);
  capture_plain(chunk, CAPTURE_START + 70, 5, TAIL);
  put(stream, INNER, 104, 76, 14, 0);
  put(stream, KERNEL, 150, 35, 20, KERNEL_KIND);
  put(stream, MIDDLE, 102, 88, 12, 0);
  put(stream, OUTER, 100, 100, 10, 0);
  put(stream, TAIL, 215, 5, 70, 0);
  put(stream, KERNEL, 210, 50, 72, KERNEL_KIND);
}

typedef struct expected {
  const char *name;
  uint64_t self_ns, total_ns, count;
} expected;

static void are(const prof_trace *trace, uint32_t group, const expected *all, size_t count) {
  const prof_aggregate_options options = {
      .size = sizeof options, .group = group, .rows_limit = UINT32_MAX};
  prof_rows *rows = NULL;
  assert_int_equal(prof_trace_aggregate(trace, &options, &rows), PROF_OK);
  assert_int_equal(rows->total_self_device_ns, 100 + 50);
  for (size_t i = 0; i < count; i++) {
    const prof_row *row = NULL;
    for (uint64_t k = 0; k < rows->row_count; k++)
      if (strcmp(rows->rows[k].name, all[i].name) == 0) row = &rows->rows[k];
    if (!row)
      fail_msg("no row is called %s", all[i].name);
    else if (row->self_device_ns != all[i].self_ns || row->device_total_ns != all[i].total_ns ||
             row->device_count != all[i].count)
      fail_msg("%s: self %lu, total %lu, count %lu", all[i].name,
               (unsigned long)row->self_device_ns, (unsigned long)row->device_total_ns,
               (unsigned long)row->device_count);
  }
  prof_rows_destroy(rows);
}

static void each_ns_counts_once(void **state) {
  static const expected by_name[] = {
      {"outer", 12, 100, 1}, {"middle", 12, 88, 1}, {"inner", 76, 76, 2}, {"tail", 50, 50, 2}};
  static const expected by_kernel[] = {{"kernel", 85, 85, 2},
                                       {"outer", 12, 65, 1},
                                       {"middle", 12, 53, 1},
                                       {"inner", 41, 41, 1},
                                       {"tail", 0, 0, 1}};
  (void)state;
  capture c;
  make(&c);
  prof_trace *const trace = open_capture(&c);
  are(trace, PROF_GROUP_NAME, by_name, sizeof by_name / sizeof *by_name);
  are(trace, PROF_GROUP_NAME | PROF_GROUP_KERNEL, by_kernel, sizeof by_kernel / sizeof *by_kernel);
  prof_trace_destroy(trace);
  capture_end(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(each_ns_counts_once)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
