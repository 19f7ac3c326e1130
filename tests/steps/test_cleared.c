/* prof_health_get() walks the records that a clear has forgotten. That takes few more steps than a
   walk of those that live, and counts each record once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/buffer/chunk.h"
#include "count_steps.h"

enum { RECORDS = 4096, BYTES = PROF_I_HEAD_BYTES + RECORDS * 16, GENERATION = 1, TIMES = 2 };

static struct { _Alignas(64) uint64_t words[BYTES / 8]; } memory;

static void put(int i, uint64_t start, uint64_t duration) {
  uint64_t *const word = &memory.words[PROF_I_HEAD_BYTES / 8 + 2 * i];
  word[0] = start << 4 | GENERATION;
  word[1] = duration << PROF_I_DURATION_SHIFT;
}

static const prof_i_head *chunk(void) {
  prof_i_head *const head = (prof_i_head *)memory.words;
  head->bytes = head->cursor = BYTES;
  head->generation = GENERATION;
  head->sequence = 1 << 10;
  head->state = PROF_I_CHUNK_RETIRED;
  return head;
}

static uint64_t steps_of(uint64_t clear_ticks, uint64_t live, uint64_t cleared) {
  const uint64_t begun = steps_now;
  const prof_i_chunk_count count = prof_i_chunk_count_events(chunk(), clear_ticks, NULL);
  assert_int_equal(count.live, live);
  assert_int_equal(count.cleared, cleared);
  return steps_now - begun;
}

static void cleared_records_take_few_more_steps(void **state) {
  (void)state;
  for (int i = 0; i < RECORDS; i++) put(i, 1000 + 10 * (uint64_t)i, 5);
  const uint64_t live = steps_of(0, RECORDS, 0), cleared = steps_of(1 << 20, 0, RECORDS);
  print_message("%llu steps for those that live, %llu for the others\n", (unsigned long long)live,
                (unsigned long long)cleared);
  assert_true(live > 0);
  if (cleared > TIMES * live) fail_msg("more than %d times as many", TIMES);
}

/* Some ended at the clear's very tick, and some were open then. */
static void each_record_is_counted_where_its_end_is(void **state) {
  (void)state;
  for (unsigned seed = 1; seed <= 50; seed++) {
    const uint64_t clear_ticks = 2000 + 40 * seed;
    uint64_t cleared = 0;
    srand(seed);
    for (int i = 0; i < RECORDS; i++) {
      const uint64_t start = 1000 + (uint64_t)i, duration = (uint64_t)rand() % seed;
      put(i, start, duration);
      cleared += start + duration <= clear_ticks;
    }
    steps_of(clear_ticks, RECORDS - cleared, cleared);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(cleared_records_take_few_more_steps),
      cmocka_unit_test(each_record_is_counted_where_its_end_is),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
