// The C++ forms of what bench/scope.c measures: a std::string as name, RAF's own call with its
// braced argument list.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "frame.h"

#include <prof/profiler.h>

#include <string>

enum { BATCH = 1600, OFF_BATCH = 200000, ROUNDS = 600 };

// The class of RAF, as far as the macros see it.
class device {
 public:
  int device_id() const { return 0; }
  int device_type() const { return PROF_DEVICE_CPU; }
};

static const std::string *run_time_name;
uint32_t never;  // stays 0; not static, or clang would know
static uint64_t taken;

#define TIMES_10(x) x x x x x x x x x x
#define OFF_FLOOR                                                                   \
  if (__builtin_expect(__atomic_load_n(&never, __ATOMIC_RELAXED) >= 1, 0)) taken++; \
  FRAME_WORK();
#define OFF_SCOPE \
  WITH_BASE_PROFILER(PROF_HOST, *run_time_name, "bench", PROF_ARGS("i", i), { FRAME_WORK(); });

FRAME_LOOP void off_floor(uint64_t count) {
  for (uint64_t i = 0; i < count; i += 10) {
    TIMES_10(OFF_FLOOR)
  }
}

FRAME_LOOP void off_scope(uint64_t count) {
  for (uint64_t i = 0; i < count; i += 10) {
    TIMES_10(OFF_SCOPE)
  }
}

FRAME_LOOP void plain(uint64_t count) {
  for (uint64_t i = 0; i < count; i++)
    WITH_BASE_PROFILER(PROF_HOST, "plain", "bench", PROF_NO_ARGS, { FRAME_WORK(); });
}

FRAME_LOOP void with_name(uint64_t count) {
  for (uint64_t i = 0; i < count; i++)
    WITH_BASE_PROFILER(PROF_HOST, *run_time_name, "bench", PROF_NO_ARGS, { FRAME_WORK(); });
}

FRAME_LOOP void with_integers(uint64_t count) {
  for (uint64_t i = 0; i < count; i++)
    WITH_BASE_PROFILER(PROF_HOST, "integers", "bench", PROF_ARGS("m", i, "n", count),
                       { FRAME_WORK(); });
}

FRAME_LOOP void as_raf_calls(uint64_t count) {
  const device dev;
  for (uint64_t i = 0; i < count; i++)
    WITH_BASE_PROFILER(dev, *run_time_name, "MemoryRequest", {"Count: " + std::to_string(i)},
                       { FRAME_WORK(); });
}

static void measure_off() {
  static frame_case cases[] = {{off_floor, OFF_BATCH, {}, {}}, {off_scope, OFF_BATCH, {}, {}}};
  const unsigned rounds = frame_rounds(ROUNDS);
  frame_run(cases, 2, rounds);
  frame_promise_ratio("C++: scope off, std::string and arguments", &cases[1], &cases[0], rounds,
                      1.5);
}

int main() {
  static frame_case cases[] = {{frame_floor, BATCH, {}, {}},
                               {plain, BATCH, {}, {}},
                               {with_name, BATCH, {}, {}},
                               {with_integers, BATCH, {}, {}},
                               {as_raf_calls, BATCH, {}, {}}};
  const std::string name("batch_matmul_add");
  run_time_name = &name;
  frame_begin("scope_cxx");
  measure_off();
  const char *const directory = frame_directory();
  const std::string path = std::string(directory) + "/scope.json";
  prof_options options = {};
  options.size = sizeof options;
  options.path = path.c_str();
  const int status = prof_start_with(&options);
  FRAME_REQUIRE(status == PROF_OK, "%s: %s", prof_status_text(status), prof_last_error());
  const unsigned rounds = frame_rounds(ROUNDS);
  frame_run(cases, 5, rounds);
  prof_stop();
  frame_note("floor: %.2f ns; batches of %d events", frame_ns(&cases[0], rounds).median, BATCH);
  frame_promise_ratio("C++: scope on, plain", &cases[1], &cases[0], rounds, 1.1);
  frame_promise_ratio("C++: a run-time name (std::string)", &cases[2], &cases[0], rounds, 1.5);
  frame_promise_ratio("C++: + two integers as arguments", &cases[3], &cases[0], rounds, 1.2);
  frame_promise_ratio("C++: RAF's call, name and {\"Count: \" + number}", &cases[4], &cases[0],
                      rounds, 0);
  frame_remove_directory(directory);
  return taken != 0;
}
