/* Aggregates: sums over one trace and several, quantiles, counts, and options. */
#include "analysis/statistics.h"
#include "rows.h"

static prof_row_more more_of(const prof_rows *rows, const char *name) {
  prof_row_more more = {.size = sizeof more};
  assert_int_equal(prof_rows_more(rows, (uint64_t)(row_named(rows, name) - rows->rows), &more),
                   PROF_OK);
  return more;
}

static void groups_add_up(void **state) {
  (void)state;
  capture c;
  begin_with_sites(&c, 1 << 20, 3);
  prof_i_head *const one = capture_chunk(&c, CHUNK, 1), *const two = capture_chunk(&c, CHUNK, 2);
  for (uint64_t i = 1; i <= 100; i++) capture_plain(one, T0 + i * 1000, i, 1);
  capture_plain(one, T0 + 500, 200000, 2); /* holds them all: 5050 ns of a */
  capture_plain(two, T0 + 10, 1000, 1);
  capture_open(capture_slot(&c, 2, "second"), T0 + 100500, 3); /* till 200500 */
  prof_trace *const trace = open_capture(&c);
  prof_rows *rows = aggregate(trace, NULL);
  assert_int_equal(rows->row_count, 3);
  assert_int_equal(rows->calls_count, 102);
  assert_int_equal(rows->open_count, 1);
  assert_int_equal(rows->total_self_ns, 200000 + 1000);
  assert_string_equal(rows->rows[0].name, "b"); /* by total, descending */
  assert_string_equal(rows->rows[2].name, "c");
  const prof_row *const a = row_named(rows, "a");
  assert_int_equal(a->calls_count, 101);
  assert_int_equal(a->total_ns, 6050);
  assert_int_equal(a->self_ns, 6050);
  assert_int_equal(a->min_ns, 1);
  assert_int_equal(a->max_ns, 1000);
  assert_int_equal(a->median_ns, 51);
  assert_int_equal(a->p99_ns, 100);
  assert_int_equal(a->level, 1);
  assert_int_equal(a->thread, UINT32_MAX);
  assert_int_equal(row_named(rows, "b")->self_ns, 200000 - 5050);
  assert_int_equal(row_named(rows, "c")->calls_count, 0); /* it has not ended */
  assert_int_equal(row_named(rows, "c")->total_ns, 0);
  assert_int_equal(row_named(rows, "c")->self_ns, 0);
  assert_int_equal(more_of(rows, "c").open_count, 1);
  assert_int_equal(more_of(rows, "c").open_ns, 100000);
  assert_int_equal(more_of(rows, "a").open_count, 0);
  prof_rows_destroy(rows);

  const prof_aggregate_options by_thread = {.size = sizeof by_thread,
                                            .group = PROF_GROUP_NAME | PROF_GROUP_THREAD,
                                            .sort = PROF_SORT_NAME};
  rows = aggregate(trace, &by_thread);
  assert_int_equal(rows->row_count, 4);
  assert_string_equal(rows->rows[0].name, "a");
  assert_int_equal(rows->rows[0].thread, 1); /* "second" comes before "thread 1" */
  assert_int_equal(rows->rows[0].calls_count, 1);
  assert_string_equal(rows->rows[1].name, "a");
  assert_int_equal(rows->rows[1].thread, 0);
  assert_int_equal(rows->rows[1].calls_count, 100);
  assert_string_equal(rows->rows[0].category, "");
  prof_rows_destroy(rows);

  const prof_aggregate_options one_row = {
      .size = sizeof one_row, .rows_limit = 1, .sort = PROF_SORT_CALLS, .level = 1};
  rows = aggregate(trace, &one_row);
  assert_int_equal(rows->row_count, 1);
  assert_int_equal(rows->all_row_count, 2); /* b is of level 2 */
  assert_string_equal(rows->rows[0].name, "a");
  prof_rows_destroy(rows);

  prof_aggregate_options by_first = {
      .size = sizeof by_first, .group = PROF_GROUP_NAME, .sort = PROF_SORT_FIRST};
  /* from 10 on the second thread, from 500, from 100500 */
  const char *const first_names[] = {"a", "b", "c"};
  rows = aggregate(trace, &by_first);
  assert_int_equal(rows->row_count, 3);
  for (int i = 0; i < 3; i++) assert_string_equal(rows->rows[i].name, first_names[i]);
  prof_rows_destroy(rows);
  by_first.from_ns = 11;
  rows = aggregate(trace, &by_first);
  assert_string_equal(rows->rows[0].name, "b"); /* the a of the second thread was before */
  prof_rows_destroy(rows);
  by_first = (prof_aggregate_options){.size = sizeof by_first,
                                      .group = PROF_GROUP_NAME | PROF_GROUP_THREAD,
                                      .sort = PROF_SORT_FIRST};
  rows = aggregate(trace, &by_first);
  assert_int_equal(rows->rows[0].thread, 1);
  assert_string_equal(rows->rows[1].name, "b");
  assert_string_equal(rows->rows[2].name, "a");
  prof_rows_destroy(rows);

  const prof_aggregate_options other = {.size = sizeof other, .category = "other"};
  rows = aggregate(trace, &other);
  assert_int_equal(rows->all_row_count, 0);
  prof_rows_destroy(rows);
  prof_trace_destroy(trace);
  capture_end(&c);
}

/* Two processes: what has one name is one row, threads are numbered through, and the table says how
   many there are. */
static void traces_add_up_together(void **state) {
  (void)state;
  capture c[2];
  prof_trace *traces[2];
  char *text = NULL;
  for (int i = 0; i < 2; i++) {
    begin_with_sites(&c[i], 1 << 20, 3);
    prof_i_head *const chunk = capture_chunk(&c[i], CHUNK, 1);
    for (uint64_t n = 1; n <= 50; n++)
      capture_plain(chunk, T0 + (uint64_t)(i * 50000) + n * 1000, 50 * (uint64_t)i + n, 1);
    if (i == 1) capture_plain(chunk, T0 + 200000, 300, 2); /* the second alone has it */
    traces[i] = open_capture(&c[i]);
  }
  prof_rows *rows = NULL;
  const prof_trace *const both[] = {traces[0], traces[1]};
  assert_int_equal(prof_traces_aggregate(both, 2, NULL, &rows), PROF_OK);
  assert_int_equal(rows->row_count, 2);
  const prof_row *const a = row_named(rows, "a");
  assert_int_equal(a->calls_count, 100);
  assert_int_equal(a->total_ns, 5050);
  assert_int_equal(a->min_ns, 1);
  assert_int_equal(a->max_ns, 100);
  assert_int_equal(a->median_ns, 50);
  assert_int_equal(row_named(rows, "b")->calls_count, 1);
  assert_int_equal(rows->total_self_ns, 5050 + 300);
  prof_rows_destroy(rows);

  const prof_aggregate_options by_thread = {.size = sizeof by_thread,
                                            .group = PROF_GROUP_NAME | PROF_GROUP_THREAD,
                                            .sort = PROF_SORT_NAME};
  assert_int_equal(prof_traces_aggregate(both, 2, &by_thread, &rows), PROF_OK);
  assert_int_equal(rows->row_count, 3);
  /* of one name the first thread comes first, although the second trace's took longer */
  assert_int_equal(rows->rows[0].thread, 0);
  assert_int_equal(rows->rows[1].thread, 1);
  assert_true(rows->rows[0].total_ns < rows->rows[1].total_ns);
  prof_rows_destroy(rows);

  const prof_trace *const twice[] = {traces[0], traces[0]}, *const holed[] = {traces[0], NULL};
  assert_int_equal(prof_traces_aggregate(twice, 2, NULL, &rows), PROF_OK);
  assert_int_equal(rows->calls_count, 100);
  prof_rows_destroy(rows);
  assert_int_equal(prof_traces_aggregate(holed, 2, NULL, &rows), PROF_E_INVALID);

  assert_int_equal(prof_traces_table(both, 2, &by_thread, &text), PROF_OK);
  assert_non_null(strstr(text, "\n2 processes: 101 recorded; no loss\n"));
  prof_free(text);
  capture_header(&c[1])->unattributed[PROF_LOSS_FORKED] =
      2; /* they stand in another process's capture */
  prof_trace_destroy(traces[1]);
  traces[1] = open_capture(&c[1]);
  const prof_trace *const child[] = {traces[0], traces[1]};
  assert_int_equal(prof_traces_table(child, 2, &by_thread, &text), PROF_OK);
  assert_non_null(strstr(text, "\n2 processes: 101 recorded; no loss but 2 forked\n"));
  prof_free(text);
  for (int i = 0; i < 2; i++) {
    prof_trace_destroy(traces[i]);
    capture_end(&c[i]);
  }
}

/* Open scopes are not lost: the line of the sum counts them beside the processes that lost some. */
static void open_scopes_of_processes_are_no_loss(void **state) {
  (void)state;
  static const char *const expected[] = {
      "\n2 processes: 2 recorded; no loss; 2 scopes had not ended yet:\n",
      "\n2 processes: 2 recorded; 1 of them not whole; 2 scopes had not ended yet:\n",
      "\n2 processes: 2 recorded; no loss but 3 forked; 2 scopes had not ended yet:\n"};
  static const int reasons[] = {-1, PROF_LOSS_FULL, PROF_LOSS_FORKED};
  for (size_t n = 0; n < sizeof reasons / sizeof *reasons; n++) {
    capture c[2];
    prof_trace *traces[2];
    char *text = NULL;
    for (int i = 0; i < 2; i++) {
      begin_with_sites(&c[i], 1 << 20, 2);
      prof_i_thread_slot *const slot = capture_slot(&c[i], 1, "main");
      capture_plain(capture_chunk(&c[i], CHUNK, 1), T0 + 20, 30, 1);
      for (int open = 0; i == 0 && open < 2; open++) capture_open(slot, T0 + 60, 2);
      if (i == 1 && reasons[n] >= 0) capture_header(&c[i])->unattributed[reasons[n]] = 3;
      traces[i] = open_capture(&c[i]);
    }
    const prof_trace *const both[] = {traces[0], traces[1]};
    assert_int_equal(prof_traces_table(both, 2, NULL, &text), PROF_OK);
    assert_non_null(strstr(text, expected[n]));
    assert_non_null(strstr(text, "1 recorded; no loss; 2 scopes had not ended yet\n"));
    assert_int_equal(strstr(text, "lost 3: 3 full\n") != NULL, reasons[n] == PROF_LOSS_FULL);
    prof_free(text);
    for (int i = 0; i < 2; i++) {
      prof_trace_destroy(traces[i]);
      capture_end(&c[i]);
    }
  }
}

static int by_value(const void *a, const void *b) {
  const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

static void medians_and_p99_are_right_to_one_percent(void **state) {
  (void)state;
  enum { MOST = 20000 };
  static uint64_t values[MOST];
  uint64_t seed = 1;
  for (size_t count = 1; count <= MOST; count = count * 3 / 2 + 1) {
    for (uint64_t spread = 1; spread < 60; spread += 7) {
      prof_i_duration_stats whole;
      prof_i_duration_stats_init(&whole);
      for (size_t i = 0; i < count; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        values[i] = seed >> (64 - spread) >> (seed >> 13) % spread;
        assert_true(prof_i_duration_stats_add(&whole, values[i], 1));
      }
      qsort(values, count, sizeof *values, by_value);
      for (int i = 0; i < 2; i++) {
        const double share = i ? 0.99 : 0.5;
        size_t rank = (size_t)((double)count * share);
        if ((double)rank < (double)count * share || rank == 0) rank++;
        const uint64_t exact = values[rank - 1],
                       got = prof_i_duration_stats_quantile(&whole, share);
        const double bound = (double)exact * 0.01 + 1e-9;
        if ((double)got < (double)exact - bound || (double)got > (double)exact + bound)
          fail_msg("%zu values below 2^%llu: the quantile %.2f is %llu, got %llu", count,
                   (unsigned long long)spread, share, (unsigned long long)exact,
                   (unsigned long long)got);
      }
      assert_int_equal(whole.calls, count);
      prof_i_duration_stats_fini(&whole);
    }
  }
}

/* A bucket counts to 65535 and carries. */
static void counts_past_65535_are_exact(void **state) {
  (void)state;
  prof_i_duration_stats one;
  prof_i_duration_stats_init(&one);
  for (int i = 0; i < 300000; i++)
    assert_true(prof_i_duration_stats_add(&one, i < 200000 ? 10 : 1000, 1));
  assert_int_equal(prof_i_duration_stats_quantile(&one, 0.5), 10);
  assert_int_equal(prof_i_duration_stats_quantile(&one, 200000.0 / 300000), 10);
  assert_in_range(prof_i_duration_stats_quantile(&one, 200001.0 / 300000), 990, 1010);
  for (int i = 0; i < 150000; i++) assert_true(prof_i_duration_stats_add(&one, 20, 1));
  assert_int_equal(one.calls, 450000);
  assert_int_equal(prof_i_duration_stats_quantile(&one, 200000.0 / 450000), 10);
  assert_int_equal(prof_i_duration_stats_quantile(&one, 200001.0 / 450000), 20);
  assert_int_equal(prof_i_duration_stats_quantile(&one, 350000.0 / 450000), 20);
  assert_in_range(prof_i_duration_stats_quantile(&one, 350001.0 / 450000), 990, 1010);
  prof_i_duration_stats_fini(&one);
}

static void buckets_cover_every_value_in_order(void **state) {
  (void)state;
  uint32_t last = 0;
  for (int bit = 0; bit < 64; bit++) {
    for (uint64_t low = 0; low < 130; low++) {
      const uint64_t value = (1ull << bit) + (bit > 8 ? low << (bit - 8) : 0);
      const uint32_t bucket = prof_i_duration_stats_bucket(value);
      assert_true(bucket < PROF_I_DURATION_BUCKETS);
      assert_true(bucket >= last);
      last = bucket;
    }
  }
  assert_int_equal(prof_i_duration_stats_bucket(UINT64_MAX), PROF_I_DURATION_BUCKETS - 1);
}

static void options_of_every_size_are_taken_or_refused(void **state) {
  (void)state;
  capture c;
  begin_with_sites(&c, 1 << 20, 2);
  prof_i_head *const chunk = capture_chunk(&c, CHUNK, 1);
  capture_plain(chunk, T0 + 10, 5, 1);
  prof_trace *const trace = open_capture(&c);
  union {
    prof_aggregate_options options;
    unsigned char bytes[sizeof(prof_aggregate_options) + 64];
  } u;
  for (size_t size = 0; size <= sizeof u; size++) {
    memset(&u, 0, sizeof u);
    u.options.size = size;
    prof_rows *rows = NULL;
    char *text = NULL;
    const int status = prof_trace_aggregate(trace, &u.options, &rows);
    assert_int_equal(status, size < sizeof(size_t) ? PROF_E_INVALID : PROF_OK);
    assert_int_equal(prof_trace_table(trace, &u.options, &text), status);
    prof_rows_destroy(rows);
    free(text);
    if (size <= sizeof u.options) continue;
    u.bytes[size - 1] = 1; /* something that this library does not know */
    assert_int_equal(prof_trace_aggregate(trace, &u.options, &rows), PROF_E_INVALID);
  }
  prof_aggregate_options bad[4];
  memset(bad, 0, sizeof bad);
  for (int i = 0; i < 4; i++) bad[i].size = sizeof bad[i];
  bad[0].group = 2048;
  bad[1].sort = PROF_SORT_SKIPPED + 1;
  bad[2].time_unit = 4;
  bad[3].from_ns = bad[3].to_ns = 5;
  prof_rows *rows = NULL;
  for (int i = 0; i < 4; i++)
    assert_int_equal(prof_trace_aggregate(trace, &bad[i], &rows), PROF_E_INVALID);
  assert_int_equal(prof_trace_aggregate(NULL, NULL, &rows), PROF_E_INVALID);
  assert_int_equal(prof_trace_aggregate(trace, NULL, NULL), PROF_E_INVALID);
  assert_null(rows);
  prof_rows_destroy(NULL);
  prof_trace_destroy(trace);
  capture_end(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(groups_add_up),
      cmocka_unit_test(traces_add_up_together),
      cmocka_unit_test(open_scopes_of_processes_are_no_loss),
      cmocka_unit_test(medians_and_p99_are_right_to_one_percent),
      cmocka_unit_test(counts_past_65535_are_exact),
      cmocka_unit_test(buckets_cover_every_value_in_order),
      cmocka_unit_test(options_of_every_size_are_taken_or_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
