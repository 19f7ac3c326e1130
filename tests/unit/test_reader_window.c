/* Readers of a stretch of time: what ended before it is not read, and what they say of the
   stretch is the same. Exports without memory. The numbers of functions' calls in Chrome JSON. */
#include "trace_checks.h"

#include <prof/memory.h>

enum { MS = 1000000, OLD_CHUNKS = 3, OLD_SCOPES = 100, FROM = 100 * MS };

static uint64_t at(uint64_t ns) { return CAPTURE_START + ns; }

static prof_i_head *begin(capture *c) {
  /* Of chrome.c: times begin at 0. */
  static const uint64_t base_ns = 7889238ull / 2 * 1000000000ull;
  capture_begin(c, 4 << 20);
  capture_header(c)->start_realtime_ns = 453 * base_ns;
  prof_i_head *const meta = capture_meta(c);
  capture_site(meta, 1, "old", "op", 1);
  capture_site(meta, 2, "new", "op", 1);
  capture_site(meta, 3, "around", "op", 1);
  capture_site(meta, 4, "f", "python_function", 1);
  capture_site(meta, 5, "g", "python_function", 1);
  capture_clock(c, meta, 0, 0, 0);
  capture_clock(c, meta, 1000 * MS, 1000 * MS, 0);
  return meta;
}

/* Old scopes in chunks of their own, which end before FROM, and behind them, in one more chunk, ten
   new ones inside of one that began between the old ones. */
static prof_i_head *put_scopes(capture *c) {
  for (uint64_t i = 0; i < OLD_CHUNKS; i++) {
    prof_i_head *const chunk = capture_chunk(c, PROF_I_UNIT_BYTES, 1);
    for (uint64_t k = 0; k < OLD_SCOPES; k++)
      capture_plain(chunk, at(10 * i * MS + k * 1000), 500, 1);
  }
  prof_i_head *const chunk = capture_chunk(c, PROF_I_UNIT_BYTES, 1);
  for (uint64_t k = 0; k < 10; k++) capture_plain(chunk, at(FROM + 1000 + k * 1000), 500, 2);
  capture_plain(chunk, at(15 * MS), FROM, 3);
  return chunk;
}

static size_t read_window(const prof_trace *trace, uint64_t from_ns, prof_event *to, size_t room) {
  prof_cursor *cursor = NULL;
  size_t count = 0;
  assert_int_equal(prof_cursor_create(trace, &cursor), PROF_OK);
  assert_int_equal(prof_cursor_skip_before(cursor, from_ns), PROF_OK);
  while (count < room && prof_cursor_next(cursor, &to[count]) == 1) count++;
  prof_cursor_destroy(cursor);
  return count;
}

static void a_cursor_skips_what_ended_before(void **state) {
  (void)state;
  capture c;
  static prof_event seen[2000];
  begin(&c);
  put_scopes(&c);
  prof_trace *const trace = open_capture(&c);
  assert_int_equal(read_window(trace, 0, seen, 2000), OLD_CHUNKS * OLD_SCOPES + 11);
  assert_int_equal(read_window(trace, FROM, seen, 2000), 11);
  assert_int_equal(seen[0].name_bytes, strlen("around"));
  assert_int_equal(seen[0].duration_ns, FROM);
  for (size_t i = 1; i < 11; i++) {
    assert_int_equal(seen[i].start_ns, FROM + i * 1000);
    assert_int_equal(seen[i].depth, 1);
    assert_int_equal(seen[i].self_ns, 500);
  }
  assert_int_equal(read_window(trace, 500 * MS, seen, 2000), 0);
  prof_trace_destroy(trace);
  capture_end(&c);
}

static void a_cursor_that_has_been_read_from_refuses(void **state) {
  (void)state;
  capture c;
  prof_event event;
  prof_cursor *cursor = NULL;
  begin(&c);
  put_scopes(&c);
  prof_trace *const trace = open_capture(&c);
  assert_int_equal(prof_cursor_create(trace, &cursor), PROF_OK);
  assert_int_equal(prof_cursor_next(cursor, &event), 1);
  assert_int_equal(prof_cursor_skip_before(cursor, 1), PROF_E_INVALID);
  assert_string_equal(prof_last_error(), "prof_cursor_skip_before: the cursor has been read from");
  assert_int_equal(prof_cursor_skip_before(NULL, 1), PROF_E_INVALID);
  prof_cursor_destroy(cursor);
  prof_trace_destroy(trace);
  capture_end(&c);
}

static void rows_of_a_window_are_its_own(void **state) {
  (void)state;
  capture c;
  begin(&c);
  put_scopes(&c);
  prof_trace *const trace = open_capture(&c);
  const prof_aggregate_options options = {.size = sizeof options, .from_ns = FROM};
  prof_rows *rows = NULL;
  assert_int_equal(prof_trace_aggregate(trace, &options, &rows), PROF_OK);
  assert_int_equal(rows->row_count, 1);
  assert_string_equal(rows->rows[0].name, "new");
  assert_int_equal(rows->rows[0].calls_count, 10);
  assert_int_equal(rows->rows[0].total_ns, 10 * 500);
  prof_rows_destroy(rows);
  prof_trace_destroy(trace);
  capture_end(&c);
}

/* ---- Chrome JSON ---- */

static char *json_of(const prof_trace *trace, prof_dump_options options) {
  char *text = NULL;
  options.size = sizeof options;
  const int status = prof_trace_json(trace, &options, &text, NULL);
  if (status != PROF_OK) fail_msg("%s: %s", prof_status_name(status), prof_last_error());
  return text;
}

static unsigned count_of(const char *text, const char *part) {
  unsigned count = 0;
  for (const char *found = text; (found = strstr(found, part)) != NULL; found++) count++;
  return count;
}

static void has(const char *text, const char *part) {
  if (!strstr(text, part)) fail_msg("not in the text: %s\nThe text:\n%.4000s", part, text);
}

/* The pool's counts go on from one chunk to the next. */
static void put_piece(prof_i_head *chunk, prof_i_pool_state *pool, uint64_t ns, bool is_free,
                      uint64_t address, uint64_t bytes) {
  pool->used += PROF_I_USED_ONE_EVENT + (is_free ? 0 - bytes : bytes);
  capture_piece(chunk, at(ns), 1, is_free, address, bytes, 0, pool->used);
}

static void memory_of_a_window_begins_with_what_was_there(void **state) {
  (void)state;
  capture c;
  prof_i_head *const meta = begin(&c);
  prof_i_pool_state *const pool = capture_pool(&c, meta, 1, 1, "p", 100);
  prof_i_head *const old = capture_chunk(&c, PROF_I_UNIT_BYTES, 1);
  put_piece(old, pool, 10 * MS, false, 0x1000, 16);
  put_piece(old, pool, 11 * MS, false, 0x2000, 32);
  prof_i_head *const new = capture_chunk(&c, PROF_I_UNIT_BYTES, 1);
  put_piece(new, pool, FROM + 1000, true, 0x1000, 16);
  prof_trace *const trace = open_capture(&c);
  for (uint64_t to = 0; to <= FROM + 5000; to += FROM + 5000) {
    char *const text = json_of(trace, (prof_dump_options){.from_ns = FROM, .to_ns = to});
    has(text, "\"ts\":100000.000,\"args\":{\"value\":148}}");
    has(text, "\"Bytes\":-16,\"Total Allocated\":132,");
    has(text, "\"ts\":100001.000,\"args\":{\"value\":132}}");
    assert_int_equal(count_of(text, "\"ph\":\"C\""), 2);
    assert_int_equal(count_of(text, "[memory]"), 1);
    prof_free(text);
  }
  char *const silent = json_of(trace, (prof_dump_options){.from_ns = 500 * MS, .to_ns = 600 * MS});
  has(silent, "\"ts\":500000.000,\"args\":{\"value\":132}}");
  assert_int_equal(count_of(silent, "\"ph\":\"C\""), 1);
  prof_free(silent);
  prof_trace_destroy(trace);
  capture_end(&c);
}

/* The earlier one of the pool has the later clock, in another thread. */
static void events_before_a_window_stand_in_the_pools_order(void **state) {
  (void)state;
  capture c;
  prof_i_head *const meta = begin(&c);
  prof_i_pool_state *const pool = capture_pool(&c, meta, 1, 1, "p", 0);
  put_piece(capture_chunk(&c, PROF_I_UNIT_BYTES, 1), pool, 10 * MS, false, 0x1000, 100);
  prof_i_head *const two = capture_chunk(&c, PROF_I_UNIT_BYTES, 2);
  prof_i_head *const one = capture_chunk(&c, PROF_I_UNIT_BYTES, 1);
  put_piece(two, pool, 61 * MS, false, 0x2000, 8);
  put_piece(one, pool, 60 * MS, false, 0x3000, 4);
  capture_plain(one, at(FROM + 1000), 10, 2);
  capture_plain(two, at(FROM + 1000), 10, 2);
  prof_trace *const trace = open_capture(&c);
  char *const text = json_of(trace, (prof_dump_options){.from_ns = FROM});
  has(text, "\"ts\":100000.000,\"args\":{\"value\":112}}");
  assert_int_equal(count_of(text, "\"ph\":\"C\""), 1);
  prof_free(text);
  prof_trace_destroy(trace);
  capture_end(&c);
}

static void an_export_without_memory_has_none(void **state) {
  (void)state;
  capture c;
  prof_i_head *const meta = begin(&c);
  prof_i_pool_state *const pool = capture_pool(&c, meta, 1, 1, "p", 100);
  prof_i_head *const chunk = put_scopes(&c);
  put_piece(chunk, pool, 200 * MS, false, 0x1000, 16);
  prof_trace *const trace = open_capture(&c);
  char *const with = json_of(trace, (prof_dump_options){0});
  assert_int_equal(count_of(with, "[memory]"), 1);
  assert_int_equal(count_of(with, "used bytes"), 2);
  char *const without = json_of(trace, (prof_dump_options){.no_memory = 1});
  assert_int_equal(count_of(without, "[memory]") + count_of(without, "used bytes"), 0);
  assert_int_equal(count_of(without, "\"name\":\"old\",\"pid\""), OLD_CHUNKS * OLD_SCOPES);
  prof_free(with);
  prof_free(without);
  prof_trace_destroy(trace);
  capture_end(&c);
}

/* f holds g twice, and an operator with another g in it; the operator has no number. */
static void calls_of_functions_have_numbers_and_parents(void **state) {
  (void)state;
  capture c;
  begin(&c);
  prof_i_head *const chunk = capture_chunk(&c, PROF_I_UNIT_BYTES, 1);
  capture_plain(chunk, at(100), 10, 5);
  capture_plain(chunk, at(200), 10, 5);
  capture_plain(chunk, at(310), 10, 5);
  capture_plain(chunk, at(300), 50, 1);
  capture_plain(chunk, at(50), 500, 4);
  capture_plain(chunk, at(600), 10, 5);
  prof_trace *const trace = open_capture(&c);
  for (uint32_t stacks = 0; stacks < 2; stacks++) {
    char *const text = json_of(trace, (prof_dump_options){.stacks = stacks});
    has(text, "\"ts\":0.600,\"dur\":0.010,\"args\":{\"Python id\":5,\"file\":");
    has(text,
        "\"ts\":0.310,\"dur\":0.010,\"args\":{\"Python id\":4,"
        "\"Python parent id\":1,");
    has(text,
        "\"ts\":0.200,\"dur\":0.010,\"args\":{\"Python id\":3,"
        "\"Python parent id\":1,");
    has(text,
        "\"ts\":0.100,\"dur\":0.010,\"args\":{\"Python id\":2,"
        "\"Python parent id\":1,");
    has(text, "\"ts\":0.050,\"dur\":0.500,\"args\":{\"Python id\":1,\"file\":");
    assert_int_equal(count_of(text, "\"Python id\""), 5);
    prof_free(text);
  }
  prof_trace_destroy(trace);
  capture_end(&c);
}

/* The call that begins at that many ns has that number, and that parent; 0: none. */
static void has_number(const char *text, const char *begin_us, unsigned number, unsigned parent) {
  char wanted[64], part[64];
  snprintf(part, sizeof part, "\"ts\":%s,", begin_us);
  const char *const row = strstr(text, part);
  assert_non_null(row);
  const char *const found = strstr(row, "\"Python id\":");
  assert_non_null(found);
  const int bytes = snprintf(wanted, sizeof wanted, "\"Python id\":%u,", number);
  if (parent)
    snprintf(wanted + bytes, sizeof wanted - (size_t)bytes, "\"Python parent id\":%u,", parent);
  else
    snprintf(wanted + bytes, sizeof wanted - (size_t)bytes, "\"file\":");
  if (strncmp(found, wanted, strlen(wanted)) != 0)
    fail_msg("at %s us: %.60s is not %s", begin_us, found, wanted);
}

/* By begin, whichever thread; of those that begin at once the earlier thread's first. */
static void functions_of_all_threads_are_counted_by_begin(void **state) {
  (void)state;
  capture c;
  begin(&c);
  prof_i_head *const first = capture_chunk(&c, PROF_I_UNIT_BYTES, 1);
  capture_plain(first, at(300), 10, 5);
  capture_plain(first, at(100), 300, 4);
  capture_plain(first, at(700), 10, 5);
  prof_i_head *const second = capture_chunk(&c, PROF_I_UNIT_BYTES, 2);
  capture_plain(second, at(201), 10, 5);
  capture_plain(second, at(200), 50, 4);
  capture_plain(second, at(700), 11, 5);
  prof_i_head *const third = capture_chunk(&c, PROF_I_UNIT_BYTES, 3);
  capture_plain(third, at(305), 10, 5);
  capture_plain(third, at(50), 900, 4);
  prof_trace *const trace = open_capture(&c);
  char *const text = json_of(trace, (prof_dump_options){0});
  has_number(text, "0.050", 1, 0);
  has_number(text, "0.100", 2, 0);
  has_number(text, "0.200", 3, 0);
  has_number(text, "0.201", 4, 3);
  has_number(text, "0.300", 5, 2);
  has_number(text, "0.305", 6, 1);
  has(text, "\"ts\":0.700,\"dur\":0.010,\"args\":{\"Python id\":7,");
  has(text, "\"ts\":0.700,\"dur\":0.011,\"args\":{\"Python id\":8,");
  prof_free(text);
  /* The calls that are open where a window begins are its first ones, thread by thread. */
  char *const window = json_of(trace, (prof_dump_options){.from_ns = 260});
  has_number(window, "0.100", 1, 0);
  has_number(window, "0.050", 2, 0);
  has_number(window, "0.300", 3, 1);
  has_number(window, "0.305", 4, 2);
  assert_int_equal(count_of(window, "\"Python id\""), 6);
  prof_free(window);
  prof_trace_destroy(trace);
  capture_end(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_cursor_skips_what_ended_before),
      cmocka_unit_test(a_cursor_that_has_been_read_from_refuses),
      cmocka_unit_test(rows_of_a_window_are_its_own),
      cmocka_unit_test(memory_of_a_window_begins_with_what_was_there),
      cmocka_unit_test(events_before_a_window_stand_in_the_pools_order),
      cmocka_unit_test(an_export_without_memory_has_none),
      cmocka_unit_test(calls_of_functions_have_numbers_and_parents),
      cmocka_unit_test(functions_of_all_threads_are_counted_by_begin),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
