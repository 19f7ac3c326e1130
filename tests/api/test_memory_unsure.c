/* What the capture does not know of memory: a correct program is never accused, and sums stay
   right. */
#define _GNU_SOURCE
#include <stdlib.h>

#include "memory_checks.h"

enum { PIECE = 64 };

static uint64_t wrong_calls(const prof_memory_info *info) {
  uint64_t all = 0;
  for (int i = 0; i < PROF_MEMORY_WRONG_COUNT; i++) all += info->wrong_count[i];
  return all;
}

static void alloc_many(prof_pool *pool, uint64_t count) {
  for (uint64_t i = 0; i < count; i++) prof_memory_alloc(pool, AT(0x10000 + i * PIECE), PIECE, 0);
}

static void free_many(prof_pool *pool, uint64_t count) {
  for (uint64_t i = 0; i < count; i++) prof_memory_free(pool, AT(0x10000 + i * PIECE), PIECE);
}

static void a_ring_that_forgot_the_allocs_accuses_nobody(void **state) {
  (void)state;
  enum { KEPT = 1000, CHURN = 1500000 };
  prof_stop();
  OK(prof_start_with(&(prof_options){
      .size = sizeof(prof_options), .policy = PROF_POLICY_RING, .cap_bytes = 2 << 20}));
  prof_pool *const pool = make_pool("ring");
  alloc_many(pool, KEPT);
  for (uint64_t i = 0; i < CHURN; i++) {
    prof_memory_alloc(pool, AT(0x900000), 2 * PIECE, 0);
    prof_memory_free(pool, AT(0x900000), 2 * PIECE);
  }
  free_many(pool, KEPT);
  OK(prof_stop());
  const prof_memory_info info = info_now("ring");
  assert_int_equal(wrong_calls(&info), 0);
  assert_int_equal(info.unsure_count, KEPT);
  assert_int_equal(info.unsure_bytes, KEPT * PIECE);
  assert_int_equal(info.missing_count, 2 * (KEPT + CHURN) - info.alloc_count - info.free_count);
  assert_int_equal(info.peak_used.used_bytes, KEPT * PIECE + 2 * PIECE);
  assert_int_equal(info.end.used_bytes, 0);
  prof_pool_destroy(pool);
}

static void a_clear_that_forgot_the_allocs_accuses_nobody(void **state) {
  (void)state;
  start_afresh(4 << 20);
  prof_pool *const pool = make_pool("cleared");
  alloc_many(pool, 100);
  OK(prof_clear());
  free_many(pool, 100);
  prof_memory_alloc(pool, AT(0x10000), PIECE, 0);
  prof_memory_alloc(pool, AT(0x10020), PIECE, 0); /* this is wrong all the same */
  OK(prof_stop());
  const prof_memory_info info = info_now("cleared");
  assert_int_equal(wrong_calls(&info), 1);
  assert_int_equal(info.wrong_count[PROF_MEMORY_WRONG_OVERLAP], 1);
  assert_int_equal(info.unsure_count, 100);
  prof_pool_destroy(pool);
}

/* What had been handed out while nothing was recorded is not known. */
static void pieces_from_before_a_start_accuse_nobody(void **state) {
  (void)state;
  prof_stop();
  prof_pool *const pool = make_pool("early");
  start_afresh(4 << 20);
  alloc_many(pool, 10);
  OK(prof_stop());
  OK(prof_start(1));
  free_many(pool, 12);
  OK(prof_stop());
  const prof_memory_info info = info_now("early");
  assert_int_equal(wrong_calls(&info), 0);
  assert_int_equal(info.from_before_count, 10); /* the session before knows them */
  assert_int_equal(info.unsure_count, 2);
  prof_pool_destroy(pool);
}

/* But one that the pool handed out and took back since is freed twice, whatever came before. */
static void a_double_free_is_sure_all_the_same(void **state) {
  (void)state;
  prof_stop();
  prof_pool *const pool = make_pool("early");
  start_afresh(4 << 20);
  prof_memory_free(pool, AT(0x70000), PIECE);
  alloc_many(pool, 20);
  free_many(pool, 20);
  prof_memory_free(pool, AT(0x10000), PIECE);
  prof_memory_free(pool, AT(0x70000), PIECE); /* who knows */
  OK(prof_clear());
  alloc_many(pool, 10);
  free_many(pool, 10);
  prof_memory_free(pool, AT(0x10000 + PIECE), PIECE);
  prof_memory_free(pool, AT(0x10000 + 11 * PIECE), PIECE); /* cleared */
  OK(prof_stop());
  seen s = see();
  const prof_memory_info info = info_of(&s, "early");
  prof_memory_example example;
  assert_int_equal(info.wrong_count[PROF_MEMORY_WRONG_DOUBLE], 1);
  assert_int_equal(wrong_calls(&info), 1);
  assert_int_equal(info.unsure_count, 1);
  OK(prof_memory_example_get(s.memory, prof_memory_pool_count(s.memory) - 1, 0, &example));
  assert_int_equal(example.wrong, PROF_MEMORY_WRONG_DOUBLE);
  assert_int_equal(example.address, 0x10000 + PIECE);
  look_away(&s);
  prof_pool_destroy(pool);
}

/* Used, allocated and the peaks are the pool's own: a full capture does not change them. */
static void a_full_capture_ends_with_what_is_used(void **state) {
  (void)state;
  enum { COUNT = 200000 };
  start_afresh(1 << 20);
  prof_pool *const pool = make_pool("full");
  prof_memory_reserve(pool, AT(0x10000), 1 << 24);
  alloc_many(pool, COUNT);
  free_many(pool, COUNT - 3);
  prof_memory_release(pool, AT(0x10000), 1 << 24);
  OK(prof_stop());
  seen s = see();
  const prof_memory_info info = info_of(&s, "full");
  prof_memory_info device = {.size = sizeof device};
  OK(prof_memory_device_get(s.memory, PROF_HOST, PROF_MEMORY_POOL, &device));
  assert_int_equal(info.end.used_bytes, 3 * PIECE);
  assert_int_equal(info.end.allocated_bytes, 0);
  assert_int_equal(info.end.is_exact, 0);
  assert_int_equal(device.end.used_bytes, 3 * PIECE);
  assert_int_equal(device.peak_used.used_bytes, COUNT * PIECE);
  assert_int_equal(device.peak_allocated.allocated_bytes, 1 << 24);
  assert_int_equal(wrong_calls(&info), 0);
  look_away(&s);
  char *json;
  size_t bytes;
  uint64_t last = UINT64_MAX;
  OK(prof_get_json(&json, &bytes));
  /* what is at the end stands last; sanitizers look at all that is searched */
  const size_t tail = bytes < 1 << 16 ? bytes : 1 << 16;
  for (const char *at = json + bytes - tail;
       (at = memmem(at, bytes - (size_t)(at - json), "\"used bytes (full)\"", 19)) != NULL; at++) {
    const char *const value = memmem(at, bytes - (size_t)(at - json), "\"value\":", 8);
    if (value) last = strtoull(value + 8, NULL, 10);
  }
  assert_int_equal(last, 3 * PIECE);
  prof_free(json);
  prof_pool_destroy(pool);
}

/* The same pool, stopped and started: the later one counts, not both. */
static void memory_stopped_and_started_is_not_counted_twice(void **state) {
  (void)state;
  start_afresh(4 << 20);
  prof_pool *const pool = make_pool("again");
  alloc_many(pool, 50);
  OK(prof_memory_stop());
  OK(prof_memory_start());
  alloc_many(pool, 20);
  OK(prof_stop());
  seen s = see();
  prof_memory_info device = {.size = sizeof device}, first = device, second = device;
  assert_int_equal(prof_memory_pool_count(s.memory), 2);
  OK(prof_memory_pool_get(s.memory, 0, &first));
  OK(prof_memory_pool_get(s.memory, 1, &second));
  assert_int_equal(first.session, 1);
  assert_int_equal(second.session, 2);
  OK(prof_memory_device_get(s.memory, PROF_HOST, PROF_MEMORY_POOL, &device));
  assert_int_equal(device.peak_used.used_bytes, 20 * PIECE);
  assert_int_equal(device.alloc_count, 20);
  look_away(&s);
  prof_pool_destroy(pool);
}

/* The peak is what was in use when it began: no event made it, and none is lost. */
static void a_peak_that_stood_at_the_reset_is_exact(void **state) {
  (void)state;
  start_afresh(4 << 20);
  prof_pool *const pool = make_pool("falling");
  alloc_many(pool, 10);
  OK(prof_memory_reset());
  free_many(pool, 10);
  OK(prof_stop());
  const prof_memory_info info = info_now("falling");
  assert_int_equal(info.peak_used.used_bytes, 10 * PIECE);
  assert_int_equal(info.peak_used.is_exact, 1);
  assert_int_equal(info.peak_used.live_count, 10);
  prof_pool_destroy(pool);
}

/* An unchecked pool counts what the program reports. The sum of the right calls alone is stated
   beside it. */
static void what_wrong_calls_did_to_the_sums_is_said(void **state) {
  (void)state;
  start_afresh(4 << 20);
  prof_pool *const pool = make_pool("careless");
  prof_memory_alloc(pool, AT(0x100000), 10 << 20, 0);
  for (int i = 0; i < 2; i++) prof_memory_free(pool, AT(0x100000), 10 << 20);
  prof_memory_alloc(pool, AT(0x100000), 10 << 20, 0);
  prof_memory_alloc(pool, AT(0x4000000), 5 << 20, 0);
  OK(prof_stop());
  seen s = see();
  const prof_memory_info info = info_of(&s, "careless");
  char *text;
  OK(prof_memory_text(
      s.memory, &(prof_memory_text_options){.size = sizeof(prof_memory_text_options), .width = 500},
      &text));
  assert_int_equal(info.wrong_count[PROF_MEMORY_WRONG_DOUBLE], 1);
  assert_int_equal(info.peak_used.used_bytes, 10 << 20);
  assert_non_null(strstr(text,
                         "without them the peak of used is 15.00 MiB (15728640 bytes), and 15.00 "
                         "MiB are used at the end"));
  prof_free(text);
  look_away(&s);
  prof_pool_destroy(pool);
}

static uint64_t query_says;
static int answer(void *user, uint64_t *used, uint64_t *allocated) {
  (void)user;
  *used = *allocated = query_says;
  return 0;
}

static void a_query_grows_from_its_first_answer(void **state) {
  (void)state;
  start_afresh(4 << 20);
  OK(prof_memory_set_query(PROF_HOST, answer, NULL));
  prof_step();
  for (query_says = 1000000; query_says < 1000300; query_says += 100)
    prof_memory_sample(PROF_HOST, "here", PROF_NUL_TERMINATED);
  prof_step();
  query_says = 1000700;
  prof_memory_sample(PROF_HOST, "there", PROF_NUL_TERMINATED);
  prof_step();
  OK(prof_stop());
  const prof_memory_info info = info_now("query");
  assert_int_equal(info.growth_bytes, 500);
  OK(prof_memory_set_query(PROF_HOST, NULL, NULL));
}

static void pools_come_in_the_order_in_which_they_were_made(void **state) {
  (void)state;
  static const char *const names[] = {"first", "second", "third"};
  prof_pool *pools[3];
  prof_stop();
  for (int i = 0; i < 3; i++) pools[i] = make_pool(names[i]);
  start_afresh(4 << 20);
  OK(prof_stop());
  seen s = see();
  int found = 0;
  for (uint32_t i = 0; i < prof_memory_pool_count(s.memory); i++) {
    prof_memory_info info = {.size = sizeof info};
    OK(prof_memory_pool_get(s.memory, i, &info));
    if (found < 3 && strcmp(info.name, names[found]) == 0) found++;
  }
  assert_int_equal(found, 3);
  look_away(&s);
  for (int i = 0; i < 3; i++) prof_pool_destroy(pools[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(pools_come_in_the_order_in_which_they_were_made),
      cmocka_unit_test(a_ring_that_forgot_the_allocs_accuses_nobody),
      cmocka_unit_test(a_clear_that_forgot_the_allocs_accuses_nobody),
      cmocka_unit_test(pieces_from_before_a_start_accuse_nobody),
      cmocka_unit_test(a_double_free_is_sure_all_the_same),
      cmocka_unit_test(a_full_capture_ends_with_what_is_used),
      cmocka_unit_test(memory_stopped_and_started_is_not_counted_twice),
      cmocka_unit_test(a_peak_that_stood_at_the_reset_is_exact),
      cmocka_unit_test(what_wrong_calls_did_to_the_sums_is_said),
      cmocka_unit_test(a_query_grows_from_its_first_answer)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
