/* The operator profiler's own time. What members of a group gain by running at once, with no waking
   of threads in it. How near a call comes to its time limit. Needs a processor for each of two
   threads. */
#define _GNU_SOURCE
#include "frame.h"

#include <prof/op.h>

enum { TRIES = 30 };

static int spin(void *user) {
  const double end_ns = frame_now_ns() + *(const double *)user;
  while (frame_now_ns() < end_ns) {
  }
  return 0;
}

static int nothing(void *user) {
  ++*(volatile int *)user;
  return 0;
}

static void measure_group(const char *what, double spin_ns) {
  static double gained[FRAME_ROUNDS_MAX];
  const unsigned rounds = frame_rounds(TRIES);
  const prof_op_options options = {
      .size = sizeof options, .warmup = 1, .exec = 1, .repeat = 25, .repeat_all = 1};
  const prof_op ops[] = {{.size = sizeof *ops, .key = "one", .user = &spin_ns, .run = spin},
                         {.size = sizeof *ops, .key = "other", .user = &spin_ns, .run = spin}};
  for (unsigned r = 0; r < rounds; r++) {
    prof_op_overlap overlap = {.size = sizeof overlap};
    prof_op_result *results[3] = {NULL};
    FRAME_REQUIRE(
        prof_op_profile_group(ops, 2, PROF_OP_THREADS, &options, results, &overlap) == PROF_OK,
        "%s", prof_last_error());
    gained[r] = overlap.gained;
    for (int i = 0; i < 3; i++) prof_op_result_destroy(results[i]);
  }
  const frame_spread spread = frame_spread_of(gained, rounds);
  frame_promise(what, spread.median > 0.5, "0.5", "%.2f (%.2f-%.2f)", spread.median, spread.low,
                spread.high);
}

static void measure_limit(void) {
  enum { LIMIT_MS = 300, ROUNDS = 5 };
  static double took[FRAME_ROUNDS_MAX];
  int count = 0;
  const prof_op op = {.size = sizeof op, .key = "nothing", .user = &count, .run = nothing};
  const prof_op_options options = {.size = sizeof options,
                                   .exec = 1,
                                   .repeat = 1 << 24,
                                   .repeat_all = 1,
                                   .no_reuse = 1,
                                   .time_limit_ns = LIMIT_MS * 1000000u};
  for (unsigned r = 0; r < ROUNDS; r++) {
    prof_op_result *result = NULL;
    const double begun = frame_now_ns();
    FRAME_REQUIRE(prof_op_profile(&op, &options, &result) == PROF_OK, "%s", prof_last_error());
    took[r] = frame_now_ns() - begun;
    prof_op_result_destroy(result);
  }
  const frame_spread spread = frame_spread_of(took, ROUNDS);
  frame_promise("an operator's measurement, limited to 300 ms", spread.median < 600e6, "600 ms",
                "%.0f ms (%.0f-%.0f)", spread.median / 1e6, spread.low / 1e6, spread.high / 1e6);
}

int main(void) {
  frame_begin("op_group");
  measure_group("two spins of 1 ms at once: gained of the shorter one", 1e6);
  measure_group("two spins of 50 us at once: gained of the shorter one", 50e3);
  measure_limit();
  return 0;
}
