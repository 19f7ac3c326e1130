/* Counters that differ between processors, and counters that wrap. Nothing is lost, and no scope
   takes negative time or centuries. What can be seen is counted, and the error that the capture
   states is not less than the true one. */
#define _GNU_SOURCE
#include "fake.h"

#include <pthread.h>

static const uint64_t good_error_ns = 200;

/* Scopes that stand side by side on a row must not overlap without nesting; prof_dump()'s own check
   looks at each row. */
static void check_nesting(void) {
  char path[64];
  snprintf(path, sizeof path, "/tmp/prof-clock-processors-%d.json", (int)getpid());
  assert_int_equal(prof_dump(path), PROF_OK);
  unlink(path);
}

/* A thread goes to a processor whose counter is behind or ahead, in the midst of a scope, and back.
   No pair is taken there: nobody can tell the time better than to what the processors are apart. */
static void move_in_scopes(int64_t apart_ns) {
  fake_reset();
  fake.cpu_ticks[1] = apart_ns * 3;
  start_recording();
  truth.error_ns = (uint64_t)(apart_ns < 0 ? -apart_ns : apart_ns) + good_error_ns;
  uint64_t ended_before_begun = 0;
  for (int i = 0; i < 500; i++) {
    const uint32_t outer = begin_scope();
    fake_pass(2 * fake_us);
    const uint32_t inner = begin_scope();
    fake.cpu = 1;
    fake_pass(fake_us);
    ended_before_begun += apart_ns + 1010 < 0;
    end_scope(inner);
    fake_pass(fake_us);
    fake.cpu = 0;
    end_scope(outer);
    const uint32_t back = begin_scope();
    fake_pass(fake_us);
    end_scope(back);
    fake_pass(7 * fake_us);
  }
  const prof_trace_info info = stop_and_look();
  assert_int_equal(info.scope_count, 1500);
  assert_int_equal(info.clock_back_count, ended_before_begun);
  assert_int_equal(info.clock_jump_count, 0);
  check_nesting();
}

static void a_thread_that_moves_loses_no_scope(void **state) {
  (void)state;
  static const int64_t apart_ns[] = {-500, 500, -5000, 5000, -100000, 100000, -2000000, 2000000};
  for (size_t i = 0; i < sizeof apart_ns / sizeof *apart_ns; i++) move_in_scopes(apart_ns[i]);
}

/* A scope that began by a counter ahead is open while others, by one behind, come and go through
   many chunks: it began before them. */
static void a_scope_begun_ahead_is_not_given_up(void **state) {
  (void)state;
  fake_reset();
  fake.cpu_ticks[1] = 6000000; /* 2 ms */
  start_recording();
  truth.error_ns = 2 * fake_ms + good_error_ns;
  fake.cpu = 1;
  uint32_t open[10];
  for (int i = 0; i < 10; i++) open[i] = begin_scope();
  fake.cpu = 0;
  static prof_site site;
  /* blocks: what ends gives up what began in them and has not ended */
  for (int i = 0; i < 1500; i++) {
    const uint64_t start = prof_i_begin_1(&site, "block", "x");
    prof_i_end_1(start);
  }
  /* too long for the short way */
  WITH_BASE_PROFILER(PROF_HOST, "all of a block", "x", PROF_NO_ARGS, { fake_pass(fake_s * 400); });
  for (int i = 9; i >= 0; i--) end_scope(open[i]);
  const prof_trace_info info = stop_and_look();
  assert_int_equal(info.scope_count, 1511);
}

/* The same for blocks inside of blocks. */
static void a_block_begun_ahead_is_not_given_up(void **state) {
  (void)state;
  fake_reset();
  fake.cpu_ticks[1] = 6000000;
  start_recording();
  static prof_site site, inner_site;
  fake.cpu = 1;
  const uint64_t outer = prof_i_begin_1(&site, "outer", "x");
  fake.cpu = 0;
  for (int i = 0; i < 3000; i++) {
    const uint64_t start = prof_i_begin_1(&inner_site, "inner", "x");
    fake_pass(100);
    prof_i_end_1(start);
  }
  fake_pass(3 * fake_ms);
  prof_i_end_1(outer);
  const prof_trace_info info = stop_and_look();
  assert_int_equal(info.scope_count, 3001);
}

/* Pairs are taken on either processor, so that it can be seen: segments are counted, and the error
   says how far they are apart. */
static void pairs_of_both_processors_show_what_they_are_apart(void **state) {
  (void)state;
  static const int64_t apart_ns[] = {-20000, 20000, -3000000, 3000000, -15000000, 15000000};
  for (size_t i = 0; i < sizeof apart_ns / sizeof *apart_ns; i++) {
    fake_reset();
    fake.cpu_ticks[1] = apart_ns[i] * 3;
    start_recording();
    for (int n = 0; n < 20; n++) {
      fake.cpu = n % 2;
      take_a_pair();
      record_scopes(100, 10 * fake_us, 90 * fake_us);
      take_a_pair();
      fake_pass(20 * fake_ms);
    }
    const prof_trace_info info = stop_and_look(); /* times are right to the error that is said */
    const uint64_t size = (uint64_t)(apart_ns[i] < 0 ? -apart_ns[i] : apart_ns[i]);
    assert_in_range(info.clock_error_ns, size, 2 * size + 4000);
    assert_true(info.clock_segments_count > 2);
    assert_int_equal(info.clock_jump_count, 0);
    check_nesting();
  }
}

static uint32_t handed_over;

static void *end_it(void *unused) {
  (void)unused;
  fake.cpu = 1;
  end_scope(handed_over);
  fake.cpu = 0;
  return NULL;
}

/* A scope that another thread ends, on another processor. */
static void a_scope_that_another_thread_ends_takes_no_negative_time(void **state) {
  (void)state;
  fake_reset();
  fake.cpu_ticks[1] = -30000;
  start_recording();
  truth.error_ns = 10 * fake_us + good_error_ns;
  for (int i = 0; i < 20; i++) {
    handed_over = begin_scope();
    fake_pass(fake_us);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, end_it, NULL), 0);
    pthread_join(thread, NULL);
    fake_pass(50 * fake_us);
  }
  const prof_trace_info info = stop_and_look();
  assert_int_equal(info.scope_count, 20);
  /* nothing that was read without order proves anything */
  assert_int_equal(info.clock_back_count, 0);
}

/* ---- wraps ---- */

static void record_over(uint64_t ticks, uint32_t clock) {
  fake_reset();
  fake_set_counter(ticks, 3 * fake_s);
  start_with(clock, NULL, 0, 0);
  const uint32_t outer = begin_scope();
  record_scopes(50, fake_us, fake_us);
  take_a_pair();
  record_scopes(2000, fake_us, 9 * fake_us);
  end_scope(outer);
  const prof_trace_info info = stop_and_look();
  assert_int_equal(info.scope_count, 2051);
  assert_int_equal(info.clock_segments_count, 1);
  assert_int_equal(info.clock_jump_count, 0);
  assert_in_range(info.clock_error_ns, 1, good_error_ns);
}

static void a_counter_may_stand_anywhere_and_wrap(void **state) {
  (void)state;
  const uint64_t before = 25 * fake_ms; /* some 8 ms */
  for (unsigned bit = 31; bit < 64; bit++) {
    record_over((1ull << bit) - before, PROF_CLOCK_TSC);
    record_over((1ull << bit) + 17, PROF_CLOCK_TSC);
  }
  record_over(0 - before, PROF_CLOCK_TSC); /* over 2^64 */
  record_over(0 - (1ull << 60) - before, PROF_CLOCK_TSC);
  record_over(1, PROF_CLOCK_TSC);
}

/* Past 60 bits a record is as short as any: the fast path is the one that wrote it. */
static void a_high_counter_costs_no_more_room(void **state) {
  (void)state;
  uint64_t bytes[2];
  static const uint64_t at[] = {1ull << 40, (1ull << 62) + (1ull << 60) - 1000};
  for (int i = 0; i < 2; i++) {
    fake_reset();
    fake_set_counter(at[i], 3 * fake_s);
    start_recording();
    static prof_site site;
    for (int n = 0; n < 30000; n++) {
      const uint64_t start = prof_i_begin_1(&site, "plain", "x");
      fake_pass(fake_us);
      prof_i_end_1(start);
    }
    prof_health health = {.size = sizeof health};
    assert_int_equal(prof_health(&health), PROF_OK);
    bytes[i] = health.arena_bytes;
    assert_int_equal(stop_and_look().scope_count, 30000);
  }
  assert_int_equal(bytes[0], bytes[1]);
}

/* Word 1 has 40 bits for the duration: six minutes of 3 GHz. */
static void a_duration_may_be_longer_than_its_short_field(void **state) {
  (void)state;
  for (int64_t over = -40; over <= 40; over += 10) {
    fake_reset();
    start_recording();
    take_a_pair();
    const uint32_t outer = begin_scope();
    const uint32_t inner = begin_scope();
    fake_pass((1ull << 40) / 3 + (uint64_t)over);
    end_scope(inner);
    fake_pass(fake_ms);
    end_scope(outer);
    const prof_trace_info info = stop_and_look();
    assert_int_equal(info.scope_count, 2);
    assert_int_equal(info.clock_segments_count, 1);
  }
  fake_reset(); /* a year, over the wrap of 60 bits */
  fake_set_counter((1ull << 60) - (1ull << 50), 3 * fake_s);
  start_recording();
  const uint32_t year = begin_scope();
  for (int month = 0; month < 12; month++) {
    fake_pass(2600000 * fake_s);
    take_a_pair();
  }
  end_scope(year);
  assert_int_equal(stop_and_look().clock_segments_count, 1);
}

static uint64_t begin_text_scope(const char *text) {
  static prof_site site = {.level = 1};
  return prof_i_enter(&site, PROF_HOST, "text", "x", PROF_I_NAME_LITERAL | PROF_I_CATEGORY_LITERAL,
                      0, true, PROF_ARGS("key", text));
}

/* Its record has no room for such a duration, and becomes another one. */
static void a_scope_with_a_short_text_may_last_as_long(void **state) {
  (void)state;
  static const char *const texts[] = {"1", "1234", "1234567", "123456789012", "1234567890123456"};
  const size_t count = sizeof texts / sizeof *texts;
  fake_reset();
  start_recording();
  for (int i = 0; i < 3; i++) prof_i_end_1(begin_text_scope("known by now"));
  for (size_t i = 0; i < count; i++) {
    const uint64_t start = begin_text_scope(texts[i]);
    fake_pass(1000 * fake_s);
    prof_i_end_1(start);
  }
  prof_trace *trace = NULL;
  prof_cursor *cursor = NULL;
  prof_event e;
  size_t found = 0;
  assert_int_equal(prof_stop(), PROF_OK);
  assert_int_equal(prof_get(&trace), PROF_OK);
  assert_int_equal(info_of(trace).bad_count, 0);
  assert_int_equal(prof_cursor_create(trace, &cursor), PROF_OK);
  while (prof_cursor_next(cursor, &e) == 1) {
    if (e.duration_ns < 1000 * fake_s) continue;
    assert_true(found < count && e.arg_count == 1);
    assert_int_equal(e.args[0].value.text.bytes, strlen(texts[found]));
    assert_memory_equal(e.args[0].value.text.data, texts[found], strlen(texts[found]));
    found++;
  }
  assert_int_equal(found, count);
  prof_cursor_destroy(cursor);
  prof_trace_destroy(trace);
}

static void sessions_and_open_scopes_stand_on_either_side_of_a_wrap(void **state) {
  (void)state;
  fake_reset();
  fake_set_counter((1ull << 60) - 3 * 50000000, 3 * fake_s); /* 50 ms before it */
  start_recording();
  record_scopes(1500, fake_us, 9 * fake_us);
  const uint32_t late = begin_scope();
  assert_int_equal(prof_stop(), PROF_OK);
  fake_pass(50 * fake_ms);
  assert_int_equal(prof_start(1), PROF_OK);
  prof_scope_end(truth.items[late].handle);
  truth.count--;
  record_scopes(1500, fake_us, 9 * fake_us);
  prof_trace *trace = NULL;
  assert_int_equal(prof_stop(), PROF_OK);
  assert_int_equal(prof_get(&trace), PROF_OK);
  const prof_trace_info info = info_of(trace);
  assert_int_equal(info.scope_count, 3000);
  assert_int_equal(info.lost_count[PROF_LOSS_LATE], 1);
  read_scopes(trace);
  for (uint32_t i = 0; i < truth.count; i++)
    assert_true(apart(seen[i].start, truth.items[i].begin) < good_error_ns);
  prof_trace_destroy(trace);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_thread_that_moves_loses_no_scope),
      cmocka_unit_test(a_scope_begun_ahead_is_not_given_up),
      cmocka_unit_test(a_block_begun_ahead_is_not_given_up),
      cmocka_unit_test(pairs_of_both_processors_show_what_they_are_apart),
      cmocka_unit_test(a_scope_that_another_thread_ends_takes_no_negative_time),
      cmocka_unit_test(a_counter_may_stand_anywhere_and_wrap),
      cmocka_unit_test(a_high_counter_costs_no_more_room),
      cmocka_unit_test(a_duration_may_be_longer_than_its_short_field),
      cmocka_unit_test(a_scope_with_a_short_text_may_last_as_long),
      cmocka_unit_test(sessions_and_open_scopes_stand_on_either_side_of_a_wrap),
  };
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
