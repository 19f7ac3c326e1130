/* A ring's chunk that is used again does not show its old content. Room that was claimed and never
   written is counted as unfinished, even if a whole old record lies there. The build with the fault
   GENERATION must fail here. */
#include <prof/profiler.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/port.h"
#include "core/buffer/chunk.h"
#include "core/buffer/record.h"

enum { SCOPES = 300000, UNWRITTEN = 5 };

static void old_content_is_not_shown(void **state) {
  (void)state;
  const prof_options options = {
      .size = sizeof options, .level = 1, .policy = PROF_POLICY_RING, .cap_bytes = 1u << 20};
  assert_int_equal(prof_start_with(&options), PROF_OK);
  for (int i = 0; i < SCOPES; i++) WITH_BASE_PROFILER(PROF_HOST, "ring", "fault", PROF_NO_ARGS, {});
  prof_i_head *const chunk = prof_i_this_thread->chunk;
  /* at its end: a few more scopes take the next one */
  if (chunk->cursor + (UNWRITTEN + 1) * 16 >= chunk->limit) {
    for (int i = 0; i < 100; i++) WITH_BASE_PROFILER(PROF_HOST, "ring", "fault", PROF_NO_ARGS, {});
  }
  prof_i_head *const used = prof_i_this_thread->chunk;
  const prof_i_chunk_count before = prof_i_chunk_count_events(used, 0, NULL);
  for (int i = 0; i < UNWRITTEN; i++) prof_i_claim(&used->cursor, 16);
  const prof_i_chunk_count after = prof_i_chunk_count_events(used, 0, NULL);
  printf("sequence %llu, generation %llu: %llu records, then %llu and %llu unfinished\n",
         (unsigned long long)used->sequence >> 1, (unsigned long long)used->generation,
         (unsigned long long)before.live, (unsigned long long)after.live,
         (unsigned long long)after.unfinished);
  assert_true(used->sequence >> 1 > 20); /* it has been used before */
  assert_int_equal(after.live, before.live);
  assert_int_equal(after.unfinished, before.unfinished + UNWRITTEN);
  assert_int_equal(prof_stop(), PROF_OK);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(old_content_is_not_shown)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
