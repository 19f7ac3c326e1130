/* Memory, told wrong: calls that cannot be, a checked pool that sees them at once, records that are
   lost, arguments out of bounds. */
#define _GNU_SOURCE
#include "memory_checks.h"

static void wrong_calls_are_found_when_the_capture_is_read(void **state) {
  (void)state;
  start_afresh(4 << 20);
  prof_pool *const pool = make_pool("wrong"), *const other = make_pool("other");
  {
    PROF_SCOPE("careless");
    prof_memory_alloc(pool, AT(0x1000), 64, 0);
    prof_memory_free(pool, AT(0x1000), 64);
    prof_memory_free(pool, AT(0x1000), 64); /* twice */
    prof_memory_free(pool, AT(0x7777), 64); /* never handed out */
    prof_memory_alloc(pool, AT(0x2000), 64, 0);
    prof_memory_alloc(pool, AT(0x2020), 64, 0); /* over the last one */
    prof_memory_alloc(other, AT(0x3000), 64, 0);
    prof_memory_free(pool, AT(0x3000), 64); /* another pool's */
    prof_memory_free(pool, AT(0x2020), 60); /* another size */
  }
  OK(prof_stop());
  seen s = see();
  const prof_memory_info info = info_of(&s, "wrong");
  for (int i = 0; i < PROF_MEMORY_WRONG_COUNT; i++) assert_int_equal(info.wrong_count[i], 1);
  static const struct {
    prof_memory_wrong wrong;
    uint64_t address;
  } wanted[] = {{PROF_MEMORY_WRONG_DOUBLE, 0x1000},
                {PROF_MEMORY_WRONG_UNKNOWN, 0x7777},
                {PROF_MEMORY_WRONG_OVERLAP, 0x2020},
                {PROF_MEMORY_WRONG_POOL, 0x3000},
                {PROF_MEMORY_WRONG_SIZE, 0x2020}};
  prof_memory_example example;
  for (uint32_t i = 0; i < COUNT_OF(wanted); i++) {
    OK(prof_memory_example_get(s.memory, 0, i, &example));
    assert_int_equal(example.wrong, wanted[i].wrong);
    assert_int_equal(example.address, wanted[i].address);
    assert_string_equal(example.scope, "careless");
  }
  assert_int_equal(prof_memory_example_get(s.memory, 0, COUNT_OF(wanted), &example),
                   PROF_E_NOT_FOUND);
  look_away(&s);
  prof_pool_destroy(pool);
  prof_pool_destroy(other);
}

static void a_checked_pool_sees_wrong_calls_at_once(void **state) {
  (void)state;
  start_afresh(4 << 20);
  prof_pool *const pool = make_checked_pool("checked"), *const other = make_checked_pool("other");
  prof_memory_alloc(pool, AT(0x1000), 64, 0);
  prof_memory_free(pool, AT(0x1000), PROF_BYTES_UNKNOWN); /* the table knows */
  assert_int_equal(max_of(PROF_MEMORY_POOL).used_bytes, 0);
  prof_memory_free(pool, AT(0x1000), 64);
  prof_memory_free(pool, AT(0x7777), 64);
  assert_int_equal(max_of(PROF_MEMORY_POOL).used_bytes, 0); /* neither counts */
  prof_memory_alloc(pool, AT(0x2000), 64, 0);
  prof_memory_alloc(pool, AT(0x2020), 64, 0);
  assert_int_equal(max_of(PROF_MEMORY_POOL).used_bytes, 64); /* the one below is taken for freed */
  prof_memory_alloc(other, AT(0x3000), 64, 0);
  prof_memory_free(pool, AT(0x3000), 64);
  prof_memory_free(pool, AT(0x2020), 60);
  assert_int_equal(max_of(PROF_MEMORY_POOL).used_bytes, 64); /* the other's */
  OK(prof_stop());
  const prof_memory_info info = info_now("checked");
  for (int i = 0; i < PROF_MEMORY_WRONG_COUNT; i++) assert_int_equal(info.wrong_count[i], 1);
  assert_int_equal(info.end.used_bytes, 0);
  assert_int_equal(info.end.live_count, 0);
  assert_int_equal(info.peak_used.used_bytes, 64);
  assert_int_equal(info.unchecked_count, 0);
  assert_int_equal(info.missing_count, 0);
  prof_pool_destroy(pool);
  prof_pool_destroy(other);
}

/* The peak comes when there is no more room to record. */
static void peaks_are_right_when_records_are_lost(void **state) {
  (void)state;
  enum { COUNT = 100000 };
  start_afresh(1 << 20);
  prof_pool *const pool = make_pool("lossy");
  for (uint64_t i = 0; i < COUNT; i++) prof_memory_alloc(pool, AT(0x10000 + i * 64), 64, 0);
  for (uint64_t i = 0; i < COUNT; i++) prof_memory_free(pool, AT(0x10000 + i * 64), 64);
  OK(prof_stop());
  seen s = see();
  prof_trace_info about = {.size = sizeof about};
  OK(prof_trace_info_get(s.trace, &about));
  const prof_memory_info info = info_of(&s, "lossy");
  assert_int_equal(info.peak_used.used_bytes, COUNT * 64);
  assert_int_equal(info.peak_used.is_exact, 0);
  assert_true(info.peak_used.live_bytes < COUNT * 64);
  assert_true(info.alloc_count < COUNT);
  assert_int_equal(info.missing_count, 2 * COUNT - info.alloc_count - info.free_count);
  assert_int_equal(about.lost_count[PROF_LOSS_FULL], info.missing_count);
  assert_int_equal(max_of(PROF_MEMORY_ANY).max_used_bytes, COUNT * 64);
  look_away(&s);
  prof_pool_destroy(pool);
}

static void arguments_that_cannot_be(void **state) {
  (void)state;
  prof_pool *pool = NULL;
  prof_memory *memory = NULL;
  prof_memory_max max = {.size = sizeof max};
  assert_int_equal(prof_pool_create(NULL, NULL), PROF_E_INVALID);
  assert_int_equal(prof_pool_create(&(prof_pool_options){.size = 3}, &pool), PROF_E_INVALID);
  assert_int_equal(
      prof_pool_create(&(prof_pool_options){.size = sizeof(prof_pool_options), .checked = 2},
                       &pool),
      PROF_E_INVALID);
  assert_null(pool);
  assert_int_equal(prof_memory_max_get(PROF_HOST, PROF_MEMORY_ANY, NULL), PROF_E_INVALID);
  assert_int_equal(prof_memory_max_get(PROF_HOST, (prof_memory_source)9, &max), PROF_E_INVALID);
  assert_int_equal(prof_memory_max_get((prof_device){PROF_DEVICE_VULKAN, 3}, PROF_MEMORY_ANY, &max),
                   PROF_E_NOT_FOUND);
  assert_int_equal(prof_memory_read(NULL, &memory), PROF_E_INVALID);
  assert_int_equal(prof_memory_pool_count(NULL), 0);
  prof_memory_destroy(NULL);
  start_afresh(4 << 20);
  pool = make_pool("x");
  seen s = see();
  prof_memory_info info = {.size = sizeof info};
  prof_memory_rows *rows;
  int64_t bytes[1];
  assert_int_equal(prof_memory_read(s.trace, NULL), PROF_E_INVALID);
  assert_int_equal(prof_memory_pool_get(s.memory, 1, &info), PROF_E_INVALID);
  assert_int_equal(prof_memory_pool_get(s.memory, 0, NULL), PROF_E_INVALID);
  info.size = 1;
  assert_int_equal(prof_memory_pool_get(s.memory, 0, &info), PROF_E_INVALID);
  assert_int_equal(prof_memory_live(s.memory, 1, PROF_MEMORY_AT_END, 0, PROF_MEMORY_BY_TAG, &rows),
                   PROF_E_INVALID);
  assert_int_equal(
      prof_memory_live(s.memory, 0, (prof_memory_moment)9, 0, PROF_MEMORY_BY_TAG, &rows),
      PROF_E_INVALID);
  assert_int_equal(prof_memory_live(s.memory, 0, PROF_MEMORY_AT_END, 0, (prof_memory_by)9, &rows),
                   PROF_E_INVALID);
  assert_int_equal(prof_memory_series(s.memory, 0, 0, bytes, bytes), PROF_E_INVALID);
  look_away(&s);
  prof_pool_destroy(pool);
  OK(prof_stop());
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(wrong_calls_are_found_when_the_capture_is_read),
      cmocka_unit_test(a_checked_pool_sees_wrong_calls_at_once),
      cmocka_unit_test(peaks_are_right_when_records_are_lost),
      cmocka_unit_test(arguments_that_cannot_be)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
