/* Calls that cross a deep stack of scopes. Where each belongs is found without a look at all of
   them: the steps for twice as many are about twice as many. */
#include "unit/trace_checks.h"

#include "count_steps.h"

enum { PAIRS = 10000, MODEL = 1, CALL, THREAD = 1, LINE = 2, PLAIN = 0 };

static bool is_full(const prof_i_head *chunk) {
  return !chunk || chunk->cursor + 128 > chunk->limit;
}

/* Of reading scopes of this kind that all run when as many calls do. The calls begin last, or
   first. */
static uint64_t steps_of(uint64_t pairs, uint32_t kind, uint64_t call_start) {
  const uint64_t together = CAPTURE_START + 10000000, end = CAPTURE_START + 20000000;
  capture c;
  capture_begin(&c, 24 << 20);
  prof_i_head *const meta = capture_meta(&c), *scopes = NULL, *calls = NULL;
  capture_site(meta, MODEL, "model", "user", 1);
  capture_site(meta, CALL, "cudaLaunchKernel", "cuda_runtime", 1);
  for (uint64_t i = 0; i < pairs; i++) {
    if (is_full(scopes)) scopes = capture_chunk(&c, PROF_I_UNIT_BYTES, THREAD);
    if (is_full(calls)) {
      calls = capture_extent(&c, PROF_I_EXTENT_CHUNK, PROF_I_UNIT_BYTES);
      calls->sequence = ++c.sequence << 1;
      capture_owner_as(calls, LINE, THREAD, PROF_I_KIND_OF_CALLS, "calls");
    }
    long_record r;
    if (kind == PLAIN) {
      capture_plain(scopes, together - i, end - (together - i), MODEL);
    } else {
      long_begin(&r, kind, together - i, end - (together - i), MODEL);
      long_end(&r, scopes);
    }
    long_begin(&r, PROF_I_KIND_CALL, CAPTURE_START + call_start, end - CAPTURE_START - call_start,
               CALL);
    long_end(&r, calls);
  }
  prof_trace *const trace = open_capture(&c);
  const uint64_t begun = steps_now;
  events all = read_events(trace);
  const uint64_t took = steps_now - begun;
  assert_int_equal(all.count, 2 * pairs);
  free(all.items);
  prof_trace_destroy(trace);
  capture_end(&c);
  return took;
}

static void check_kind(uint32_t kind) {
  static const uint64_t call_starts[] = {15000000, 9995000, 9000000};
  for (size_t i = 0; i < sizeof call_starts / sizeof *call_starts; i++) {
    const uint64_t once = steps_of(PAIRS, kind, call_starts[i]),
                   twice = steps_of(2 * PAIRS, kind, call_starts[i]);
    print_message("calls from %llu: %llu steps, %llu for twice as many\n",
                  (unsigned long long)call_starts[i], (unsigned long long)once,
                  (unsigned long long)twice);
    assert_true(once > 0);
    if (twice > 3 * once) fail_msg("the steps grow faster than the scopes");
  }
}

static void twice_as_many_take_twice_the_steps(void **state) {
  (void)state;
  check_kind(PLAIN);
}

static void also_of_scopes_that_a_jump_left(void **state) {
  (void)state;
  check_kind(PROF_I_KIND_SKIPPED);
}

static void also_of_asynchronous_scopes(void **state) {
  (void)state;
  check_kind(PROF_I_KIND_ASYNC);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(twice_as_many_take_twice_the_steps),
                                     cmocka_unit_test(also_of_scopes_that_a_jump_left),
                                     cmocka_unit_test(also_of_asynchronous_scopes)};
  return cmocka_run_group_tests_name("calls across many scopes", tests, NULL, NULL);
}
