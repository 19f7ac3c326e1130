/* The graphs of Chrome JSON: counters and memory, in the order of time. */
#define _GNU_SOURCE
#include "exported.h"

static void a_counter_that_is_no_number_is_left_out_and_counted(void **state) {
  (void)state;
  /* NaN, infinity, 1.5 */
  static const uint64_t values[] = {0x7ff8000000000000u, 0x7ff0000000000000u, 0x3ff8000000000000u};
  capture c;
  prof_i_head *const chunk = begin(&c, 453 * base_ns);
  for (unsigned i = 0; i < 3; i++) {
    long_record r;
    long_begin(&r, PROF_I_KIND_COUNTER, CAPTURE_START + 1000 * i, 0, 1);
    long_word(&r, values[i]);
    long_end(&r, chunk);
  }
  assert_int_equal(dump(&c, (prof_dump_options){0}), PROF_OK);
  capture_end(&c);
  assert_int_equal(count_of("\"ph\":\"C\""), 1);
  has("\"ts\":2.000,\"args\":{\"value\":1.5}}");
  has("\"counters_not_finite\":2");
  has_not("nan");
}

/* The lines stand in the text, in this order. */
static void has_in_order(const char *const *lines, size_t count) {
  const char *at = text;
  for (size_t i = 0; i < count; i++) {
    const char *const found = strstr(at, lines[i]);
    if (!found) {
      fail_msg("not in the text behind the line before it: %s\nThe text:\n%.4000s", lines[i], text);
      return;
    }
    at = found + 1;
  }
}

static void put_counter(prof_i_head *chunk, uint64_t ns, double value) {
  long_record r;
  uint64_t word;
  memcpy(&word, &value, sizeof word);
  long_begin(&r, PROF_I_KIND_COUNTER, CAPTURE_START + ns, 0, 1);
  long_word(&r, word);
  long_end(&r, chunk);
}

static void counters_stand_in_the_order_of_time(void **state) {
  (void)state;
  capture c;
  prof_i_head *const one = begin(&c, 453 * base_ns);
  prof_i_head *const two = capture_chunk(&c, 1 << 18, 2);
  put_counter(one, 1000, 1);
  put_counter(two, 2000, 2);
  put_counter(one, 3000, 3);
  put_counter(one, 3000, 4); /* of two at one moment, the later one counts */
  assert_int_equal(dump(&c, (prof_dump_options){0}), PROF_OK);
  capture_end(&c);
  static const char *const lines[] = {"\"tid\":101,\"ts\":1.000,\"args\":{\"value\":1",
                                      "\"tid\":102,\"ts\":2.000,\"args\":{\"value\":2",
                                      "\"tid\":101,\"ts\":3.000,\"args\":{\"value\":3",
                                      "\"tid\":101,\"ts\":3.000,\"args\":{\"value\":4"};
  has_in_order(lines, 4);
  assert_int_equal(count_of("\"ph\":\"C\""), 4);
}

/* Two threads' pieces: the second thread was first at the pool, but had its time later. */
static void put_pieces(prof_i_head *one, prof_i_head *two, prof_i_pool_state *pool,
                       uint64_t before) {
  const uint64_t first = PROF_I_USED_ZERO + before;
  capture_piece(two, CAPTURE_START + 2000, 1, 0, 0x1000, 16, 0, first + PROF_I_USED_ONE_EVENT + 16);
  capture_piece(one, CAPTURE_START + 1000, 1, 0, 0x2000, 32, 0,
                first + 2 * PROF_I_USED_ONE_EVENT + 48);
  capture_piece(one, CAPTURE_START + 5000, 1, 1, 0x2000, 32, 0,
                first + 3 * PROF_I_USED_ONE_EVENT + 16);
  capture_piece(one, CAPTURE_START + 5000, 1, 1, 0x1000, 16, 0, first + 4 * PROF_I_USED_ONE_EVENT);
  pool->used = first + 4 * PROF_I_USED_ONE_EVENT;
}

static void memory_stands_in_the_order_of_its_pool(void **state) {
  (void)state;
  capture c;
  prof_i_head *const one = begin(&c, 453 * base_ns);
  prof_i_head *const meta = (prof_i_head *)(c.bytes + PROF_I_FIRST_UNIT_OFFSET);
  prof_i_head *const two = capture_chunk(&c, 1 << 18, 2);
  put_pieces(one, two, capture_pool(&c, meta, 1, 1, "p", 100), 100);
  assert_int_equal(dump(&c, (prof_dump_options){0}), PROF_OK);
  static const char *const lines[] = {
      /* what was in use before */
      "\"name\":\"used bytes (p)\",\"pid\":77,\"tid\":102,\"ts\":0.000,\"args\":{\"value\":100}}",
      "\"name\":\"[memory]\",\"pid\":77,\"tid\":102,\"ts\":2.000,"
      "\"args\":{\"Addr\":4096,\"Bytes\":16,"
      "\"Total Allocated\":116,\"Total Reserved\":0,\"Device Type\":0,\"Device Id\":-1,"
      "\"finished\":false,\"Ev Idx\":0}}",
      "\"name\":\"used bytes (p)\",\"pid\":77,\"tid\":102,\"ts\":2.000,\"args\":{\"value\":116}}",
      /* in its thread's scope */
      "\"name\":\"[memory]\",\"pid\":77,\"tid\":101,\"ts\":1.000,\"args\":{\"Addr\":8192,\"Bytes\":"
      "32,\"Total Allocated\":148,",
      /* time does not run back */
      "\"name\":\"used bytes (p)\",\"pid\":77,\"tid\":101,\"ts\":2.000,\"args\":{\"value\":148}}",
      "\"Bytes\":-32,\"Total Allocated\":116,", "\"ts\":5.000,\"args\":{\"value\":116}}",
      "\"Bytes\":-16,\"Total Allocated\":100,", "\"ts\":5.000,\"args\":{\"value\":100}}"};
  has_in_order(lines, sizeof lines / sizeof *lines);
  assert_int_equal(count_of("\"ph\":\"C\""), 5);
  has_not("allocated bytes"); /* nothing says it */
  assert_int_equal(dump(&c, (prof_dump_options){.from_ns = 3000, .to_ns = 4000}), PROF_OK);
  has("\"name\":\"used bytes (p)\",\"pid\":77,\"tid\":101,\"ts\":3.000,\"args\":{\"value\":148}}");
  assert_int_equal(count_of("\"ph\":\"C\""), 1);
  assert_int_equal(count_of("[memory]"), 0);
  capture_end(&c);
}

static void two_pools_of_one_name_have_graphs_of_their_own(void **state) {
  (void)state;
  capture c;
  prof_i_head *const one = begin(&c, 453 * base_ns);
  prof_i_head *const meta = (prof_i_head *)(c.bytes + PROF_I_FIRST_UNIT_OFFSET);
  prof_i_head *const two = capture_chunk(&c, 1 << 18, 2);
  put_pieces(one, two, capture_pool(&c, meta, 1, 1, "p\"</script>", 0), 0);
  capture_pool(&c, meta, 2, 1, "p\"</script>", 7000);
  capture_pool(&c, meta, 3, 1, "other", 8000);
  assert_int_equal(dump(&c, (prof_dump_options){0}), PROF_OK);
  capture_end(&c);
  assert_int_equal(count_of(", #1)\""), 5);
  assert_int_equal(count_of(", #2)\""), 1);
  has("\"name\":\"used bytes (other)\"");
  has("\"args\":{\"value\":7000}}");
  has_not("</script>");
}

static void costs_that_no_integer_holds_stay_the_largest(void **state) {
  (void)state;
  capture c;
  begin(&c, 453 * base_ns);
  capture_header(&c)->scope_cost_ps = UINT64_MAX;
  capture_header(&c)->cpu_limit_milli = UINT64_MAX;
  assert_int_equal(dump(&c, (prof_dump_options){0}), PROF_OK);
  capture_end(&c);
  has("\"scope_cost_ps\":18446744073709551615,");
  has("\"cpu_limit_milli\":18446744073709551615,");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_FOLDER(a_counter_that_is_no_number_is_left_out_and_counted),
      IN_FOLDER(counters_stand_in_the_order_of_time),
      IN_FOLDER(memory_stands_in_the_order_of_its_pool),
      IN_FOLDER(two_pools_of_one_name_have_graphs_of_their_own),
      IN_FOLDER(costs_that_no_integer_holds_stay_the_largest),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
