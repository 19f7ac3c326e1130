/* Scopes that a jump left, in rows and tables. Their end is that of an older block, so when the
   jump left them is not known. They are counted, and all else of them is the scope's around them.
   */
#include <prof/memory.h>

#include "analysis/internal.h"
#include "device_capture.h"
#include "trace_checks.h"

enum { T0 = CAPTURE_START, CHUNK = PROF_I_UNIT_BYTES, A = 1, B, C };

static void put(prof_i_head *chunk, prof_i_kind kind, uint64_t start, uint64_t duration,
                uint32_t site, uint32_t flags) {
  long_record r;
  long_begin(&r, kind, T0 + start, duration, site);
  r.flags = flags;
  long_end(&r, chunk);
}

static void skip_one(prof_i_head *chunk, uint64_t start, uint64_t end, uint32_t site) {
  put(chunk, PROF_I_KIND_SKIPPED, start, end - start, site, 0);
}

static prof_rows *aggregate(const prof_trace *trace, uint32_t group) {
  const prof_aggregate_options options = {
      .size = sizeof options, .group = group, .rows_limit = UINT32_MAX, .sort = PROF_SORT_NAME};
  prof_rows *rows = NULL;
  assert_int_equal(prof_trace_aggregate(trace, &options, &rows), PROF_OK);
  return rows;
}

static uint64_t index_of(const prof_rows *rows, const char *name) {
  for (uint64_t i = 0; i < rows->row_count; i++)
    if (strcmp(rows->rows[i].name, name) == 0) return i;
  fail_msg("no row is named %s", name);
  return 0;
}

static prof_row_more more_of(const prof_rows *rows, const char *name) {
  prof_row_more more = {.size = sizeof more};
  assert_int_equal(prof_rows_more(rows, index_of(rows, name), &more), PROF_OK);
  return more;
}

static void check_row(const prof_rows *rows, const char *name, uint64_t calls, uint64_t total,
                      uint64_t self) {
  const prof_row *const row = &rows->rows[index_of(rows, name)];
  if (row->calls_count != calls || row->total_ns != total || row->self_ns != self)
    fail_msg("%s: %llu calls, total %llu, self %llu", name, (unsigned long long)row->calls_count,
             (unsigned long long)row->total_ns, (unsigned long long)row->self_ns);
}

/* In a, 1500 long, jumps leave two b, one in the other. Behind the jump c takes 100 of them. The
   plain c stands in a chunk of its own: what holds it waits while plain records are walked. */
static prof_trace *open_jump(capture *c, bool has_own_chunk) {
  begin_with_sites(c, 1 << 20, 3);
  prof_i_head *chunk = capture_chunk(c, CHUNK, 1);
  capture_plain(chunk, T0 + 1020, 30, C);
  capture_plain(chunk, T0 + 1000, 100, C);
  if (has_own_chunk) chunk = capture_chunk(c, CHUNK, 1);
  skip_one(chunk, 200, 1500, B);
  skip_one(chunk, 100, 1500, B);
  capture_plain(chunk, T0, 1500, A);
  return open_capture(c);
}

static void a_skipped_scope_is_counted_and_its_time_is_that_of_the_scope_around(void **state) {
  (void)state;
  static const uint32_t groups[] = {PROF_GROUP_NAME,
                                    PROF_GROUP_NAME | PROF_GROUP_CATEGORY,
                                    PROF_GROUP_NAME | PROF_GROUP_STACK,
                                    PROF_GROUP_NAME | PROF_GROUP_SHAPE,
                                    PROF_GROUP_NAME | PROF_GROUP_THREAD,
                                    PROF_GROUP_NAME | PROF_GROUP_ANNOTATION};
  for (int has_own_chunk = 0; has_own_chunk < 2; has_own_chunk++) {
    capture c;
    prof_trace *const trace = open_jump(&c, has_own_chunk);
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
      prof_rows *const rows = aggregate(trace, groups[i]);
      assert_int_equal(rows->row_count, 3);
      check_row(rows, "a", 1, 1500, 1400);
      check_row(rows, "b", 0, 0, 0);
      check_row(rows, "c", 2, 100, 100);
      const prof_row *const b = &rows->rows[index_of(rows, "b")];
      assert_int_equal(b->min_ns | b->max_ns | b->median_ns | b->p99_ns, 0);
      assert_int_equal(more_of(rows, "b").calls_ns, 0);
      assert_int_equal(more_of(rows, "b").skipped_count, 2);
      assert_int_equal(more_of(rows, "a").skipped_count, 0);
      assert_int_equal(more_of(rows, "a").inner_count, 4);
      assert_int_equal(rows->skipped_count, 2);
      assert_int_equal(rows->calls_count, 3);
      assert_int_equal(rows->total_self_ns, 1500);
      prof_rows_destroy(rows);
    }
    assert_int_equal(info_of(trace).scope_count, 5);
    assert_int_equal(info_of(trace).skipped_count, 2);
    const events all = read_events(trace);
    assert_event(find_event(&all, "a"), 0, 1500, 1400, 0);
    assert_event(find_event(&all, "b"), 100, 1400, 0, 1);
    assert_int_equal(find_event(&all, "b")->flags, PROF_EVENT_SKIPPED);
    free(all.items);
    prof_trace_destroy(trace);
    capture_end(&c);
  }
}

static void a_duration_is_without_skipped_scopes(void **state) {
  (void)state;
  uint64_t total_ns, count;
  capture c;
  prof_trace *const trace = open_jump(&c, false);
  assert_int_equal(prof_i_aggregate_one(trace, "b", NULL, &total_ns, &count), PROF_OK);
  assert_int_equal(total_ns | count, 0);
  assert_int_equal(prof_i_aggregate_one(trace, "a", "cat", &total_ns, &count), PROF_OK);
  assert_int_equal(total_ns, 1500);
  assert_int_equal(count, 1);
  prof_trace_destroy(trace);
  capture_end(&c);
}

static void a_table_says_how_many_were_skipped(void **state) {
  (void)state;
  char *text = NULL;
  capture c;
  prof_trace *const trace = open_jump(&c, false);
  assert_int_equal(prof_trace_table(trace, NULL, &text), PROF_OK);
  assert_non_null(strstr(text, "Calls  Skipped"));
  assert_non_null(strstr(text, "    0        2"));
  assert_non_null(strstr(text, "\nSkipped: a jump left 2 scopes. No other column has them"));
  prof_free(text);
  assert_int_equal(prof_trace_json(trace, NULL, &text, NULL), PROF_OK);
  assert_non_null(strstr(text, "\"skipped\":2"));
  prof_free(text);
  const prof_dump_options raf = {.size = sizeof raf, .format = PROF_FORMAT_RAF};
  assert_int_equal(prof_trace_json(trace, &raf, &text, NULL), PROF_OK);
  assert_non_null(strstr(text, "\"recorded\":5,\"skipped\":2"));
  prof_free(text);
  prof_trace_destroy(trace);
  capture_end(&c);
}

/* a { a, skipped { a } }: the inner one is part of the outer one. Alone in a skipped one it counts
   by itself. */
static void a_recursion_through_a_skipped_scope(void **state) {
  (void)state;
  for (int has_outer = 0; has_outer < 2; has_outer++) {
    capture c;
    begin_with_sites(&c, 1 << 20, 2);
    prof_i_head *const chunk = capture_chunk(&c, CHUNK, 1);
    capture_plain(chunk, T0 + 200, 50, A);
    skip_one(chunk, 100, 1000, A);
    if (has_outer) capture_plain(chunk, T0, 1000, A);
    prof_trace *const trace = open_capture(&c);
    prof_rows *const rows = aggregate(trace, PROF_GROUP_NAME);
    if (has_outer)
      check_row(rows, "a", 2, 1000, 1000);
    else
      check_row(rows, "a", 1, 50, 50);
    assert_int_equal(more_of(rows, "a").skipped_count, 1);
    prof_rows_destroy(rows);
    prof_trace_destroy(trace);
    capture_end(&c);
  }
}

/* One that crosses others, and one that ended on another thread. */
static void skipped_scopes_beside_others_are_counted_alone(void **state) {
  (void)state;
  capture c;
  begin_with_sites(&c, 1 << 20, 3);
  prof_i_head *const chunk = capture_chunk(&c, CHUNK, 1);
  capture_plain(chunk, T0, 500, A);
  skip_one(chunk, 100, 700, B);
  put(chunk, PROF_I_KIND_SKIPPED, 150, 600, C, PROF_I_FLAG_OTHER_THREAD);
  prof_trace *const trace = open_capture(&c);
  prof_rows *const rows = aggregate(trace, PROF_GROUP_NAME);
  check_row(rows, "a", 1, 500, 500);
  check_row(rows, "b", 0, 0, 0);
  check_row(rows, "c", 0, 0, 0);
  assert_int_equal(rows->skipped_count, 2);
  assert_int_equal(rows->rows[index_of(rows, "c")].is_async, 0);
  prof_rows_destroy(rows);
  prof_trace_destroy(trace);
  capture_end(&c);
}

static void memory_in_a_skipped_scope_is_that_of_the_scope_around(void **state) {
  (void)state;
  capture c;
  prof_i_head *const meta = begin_with_sites(&c, 1 << 20, 2);
  capture_pool(&c, meta, 1, PROF_MEMORY_POOL, "pool", 0);
  prof_i_head *const chunk = capture_chunk(&c, CHUNK, 1);
  capture_piece(chunk, T0 + 200, 1, 0, 0x1000, 4096, 0, PROF_I_USED_ZERO + 4096);
  skip_one(chunk, 100, 1000, B);
  capture_plain(chunk, T0, 1000, A);
  prof_trace *const trace = open_capture(&c);
  prof_rows *const rows = aggregate(trace, PROF_GROUP_NAME);
  const prof_row *const a = &rows->rows[index_of(rows, "a")];
  const prof_row *const b = &rows->rows[index_of(rows, "b")];
  assert_int_equal(a->self_memory_bytes + a->self_device_memory_bytes, 4096);
  assert_int_equal(b->memory_bytes | b->self_memory_bytes, 0);
  assert_int_equal(b->device_memory_bytes | b->self_device_memory_bytes, 0);
  prof_rows_destroy(rows);
  prof_trace_destroy(trace);
  capture_end(&c);
}

static void device_work_in_a_skipped_scope_is_that_of_the_scope_around(void **state) {
  (void)state;
  capture c;
  prof_i_head *const meta = begin_with_sites(&c, 1 << 20, 3);
  capture_track(meta, (prof_device){4, 1}, 0x7000, "compute");
  put_device(meta, &(prof_i_device_state){.type = 4, .index = 1, .record_count = 1, .name = "d"});
  prof_i_head *const chunk = capture_chunk(&c, CHUNK, 1);
  skip_one(chunk, 100, 1000, B);
  capture_plain(chunk, T0, 1000, A);
  prof_i_head *const stream = capture_extent(&c, PROF_I_EXTENT_CHUNK, CHUNK);
  stream->sequence = ++c.sequence << 1;
  capture_owner_as(stream, 2, 0x7000,
                   PROF_I_KIND_OF_STREAM | 4 << PROF_I_THREAD_KIND_TYPE_SHIFT |
                       UINT64_C(1) << PROF_I_THREAD_KIND_INDEX_SHIFT,
                   "stream");
  long_record r;
  long_begin(&r, PROF_I_KIND_SCOPE, T0 + 400, 70, C);
  r.flags = PROF_I_FLAG_DEVICE | PROF_I_FLAG_STREAM;
  r.schema = 1;
  const uint64_t words[] = {4 | UINT64_C(1) << 32, 0x7000, 1, T0 + 300, 1400, 1470, 1};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) long_word(&r, words[i]);
  long_end(&r, stream);
  prof_trace *const trace = open_capture(&c);
  prof_rows *const rows = aggregate(trace, PROF_GROUP_NAME);
  const prof_row *const a = &rows->rows[index_of(rows, "a")];
  assert_int_equal(a->self_device_ns, 70);
  assert_int_equal(a->device_total_ns, 70);
  assert_int_equal(rows->rows[index_of(rows, "b")].device_total_ns, 0);
  prof_rows_destroy(rows);
  prof_trace_destroy(trace);
  capture_end(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_skipped_scope_is_counted_and_its_time_is_that_of_the_scope_around),
      cmocka_unit_test(a_duration_is_without_skipped_scopes),
      cmocka_unit_test(a_table_says_how_many_were_skipped),
      cmocka_unit_test(a_recursion_through_a_skipped_scope),
      cmocka_unit_test(skipped_scopes_beside_others_are_counted_alone),
      cmocka_unit_test(memory_in_a_skipped_scope_is_that_of_the_scope_around),
      cmocka_unit_test(device_work_in_a_skipped_scope_is_that_of_the_scope_around),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
