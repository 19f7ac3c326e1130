/* LTTng-UST beside prof, on the same floor in the same run: a scope there is a pair of tracepoints,
   begin and end. Whether they are on is decided outside, by a session (bench/lttng/run.sh): this
   program says which it found. */
#define _GNU_SOURCE
#include "frame.h"

#include <prof/profiler.h>

#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "lttng/provider.h"

enum { BATCH = 1000, ROUNDS = 400 };

static const char *run_time_text;

FRAME_LOOP void prof_plain(uint64_t count) {
  for (uint64_t i = 0; i < count; i++)
    WITH_BASE_PROFILER(PROF_HOST, "plain", "bench", PROF_NO_ARGS, { FRAME_WORK(); });
}

FRAME_LOOP void prof_string(uint64_t count) {
  for (uint64_t i = 0; i < count; i++)
    WITH_BASE_PROFILER(PROF_HOST, "string", "bench", PROF_ARGS("shape", run_time_text),
                       { FRAME_WORK(); });
}

FRAME_LOOP void lttng_plain(uint64_t count) {
  for (uint64_t i = 0; i < count; i++) {
    lttng_ust_tracepoint(prof_bench, begin);
    FRAME_WORK();
    lttng_ust_tracepoint(prof_bench, end);
  }
}

FRAME_LOOP void lttng_string(uint64_t count) {
  for (uint64_t i = 0; i < count; i++) {
    lttng_ust_tracepoint(prof_bench, begin_text, run_time_text);
    FRAME_WORK();
    lttng_ust_tracepoint(prof_bench, end);
  }
}

int main(int argc, char **argv) {
  static frame_case cases[] = {{.run = frame_floor, .count = BATCH},
                               {.run = prof_plain, .count = BATCH},
                               {.run = lttng_plain, .count = BATCH},
                               {.run = prof_string, .count = BATCH},
                               {.run = lttng_string, .count = BATCH}};
  char text[] = "T<768xf32>", what[100];
  const char *const mode = argc > 1 ? argv[1] : "";
  const bool is_on = lttng_ust_tracepoint_enabled(prof_bench, begin);
  run_time_text = text;
  frame_begin("lttng");
  if (!is_on && *mode) {
    printf("skip: the tracepoints are off though a session (%s) should have turned them on\n",
           mode);
    return 0;
  }
  prof_options options = {.size = sizeof options, .policy = PROF_POLICY_RING};
  if (is_on && prof_start_with(&options) != PROF_OK) return 1;
  const unsigned rounds = frame_rounds(ROUNDS);
  frame_run(cases, 5, rounds);
  if (!is_on) {
    frame_figure("rival LTTng-UST off: two tracepoints", "%.2f ns; prof off: %.2f ns",
                 frame_ns(&cases[2], rounds).median, frame_ns(&cases[1], rounds).median);
    return 0;
  }
  snprintf(what, sizeof what, "rival LTTng-UST (%s): a scope", mode);
  frame_promise_ratio(what, &cases[2], &cases[0], rounds, 0);
  snprintf(what, sizeof what, "rival LTTng-UST (%s): + a short string", mode);
  frame_promise_ratio(what, &cases[4], &cases[0], rounds, 0);
  frame_promise_ratio("prof in the same run (ring): a scope", &cases[1], &cases[0], rounds, 0);
  frame_promise_ratio("prof in the same run (ring): + a short string", &cases[3], &cases[0], rounds,
                      0);
  prof_stop();
  return 0;
}
