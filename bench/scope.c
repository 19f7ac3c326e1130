/* What one scope costs, against the floor of the same run. The cases: off, plain, with arguments,
   with a run-time name, by calls, and with a thousand call sites in rotation. Also: how many bytes
   it takes. Batches are small against a chunk of 65 000 records, so that the medians hold no chunk
   change; bench/stream.c has those. */
#define _GNU_SOURCE
#include "frame.h"

#include <prof/profiler.h>

enum { BATCH = 2000, LONG_BATCH = 1600, OFF_BATCH = 200000, SITES = 1000, ROUNDS = 600 };

/* ---- off ---- */

uint32_t never; /* stays 0; not static, or clang would know */
static uint64_t taken;

/* Ten to a turn: a loop of one would show how the compiler happened to align it, twice as slow or
   not. */
#define TIMES_10(x) x x x x x x x x x x
#define OFF_FLOOR                                                                   \
  if (__builtin_expect(__atomic_load_n(&never, __ATOMIC_RELAXED) >= 1, 0)) taken++; \
  FRAME_WORK();
#define OFF_SCOPE WITH_BASE_PROFILER(PROF_HOST, "off", "bench", PROF_NO_ARGS, { FRAME_WORK(); });
#define OFF_ARGUMENTS \
  WITH_BASE_PROFILER(PROF_HOST, "off", "bench", PROF_ARGS("i", i, "n", count), { FRAME_WORK(); });

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

FRAME_LOOP void off_with_arguments(uint64_t count) {
  for (uint64_t i = 0; i < count; i += 10) {
    TIMES_10(OFF_ARGUMENTS)
  }
}

static void measure_off(void) {
  static frame_case cases[] = {{.run = off_floor, .count = OFF_BATCH},
                               {.run = off_scope, .count = OFF_BATCH},
                               {.run = off_with_arguments, .count = OFF_BATCH}};
  const unsigned rounds = frame_rounds(ROUNDS);
  frame_run(cases, 3, rounds);
  frame_note("floor of a scope that is off, a relaxed load and a branch: %.2f ns",
             frame_ns(&cases[0], rounds).median);
  frame_promise_ratio("scope off", &cases[1], &cases[0], rounds, 1.5);
  frame_promise_ratio("scope off, two integers as arguments", &cases[2], &cases[0], rounds, 1.5);
}

/* ---- on ---- */

static const char *run_time_text;

FRAME_LOOP void plain(uint64_t count) {
  for (uint64_t i = 0; i < count; i++)
    WITH_BASE_PROFILER(PROF_HOST, "plain", "bench", PROF_NO_ARGS, { FRAME_WORK(); });
}

FRAME_LOOP void nested(uint64_t count) {
  for (uint64_t i = 0; i < count; i += 4)
    WITH_BASE_PROFILER(PROF_HOST, "1", "bench", PROF_NO_ARGS, {
      WITH_BASE_PROFILER(PROF_HOST, "2", "bench", PROF_NO_ARGS, {
        WITH_BASE_PROFILER(PROF_HOST, "3", "bench", PROF_NO_ARGS, {
          WITH_BASE_PROFILER(PROF_HOST, "4", "bench", PROF_NO_ARGS, { FRAME_WORK(); });
        });
      });
    });
}

FRAME_LOOP void with_string(uint64_t count) {
  for (uint64_t i = 0; i < count; i++)
    WITH_BASE_PROFILER(PROF_HOST, "string", "bench", PROF_ARGS("shape", run_time_text),
                       { FRAME_WORK(); });
}

FRAME_LOOP void with_integers(uint64_t count) {
  for (uint64_t i = 0; i < count; i++)
    WITH_BASE_PROFILER(PROF_HOST, "integers", "bench", PROF_ARGS("m", i, "n", count),
                       { FRAME_WORK(); });
}

FRAME_LOOP void with_name(uint64_t count) {
  for (uint64_t i = 0; i < count; i++)
    WITH_BASE_PROFILER(PROF_HOST, run_time_text, "bench", PROF_NO_ARGS, { FRAME_WORK(); });
}

FRAME_LOOP void with_new_name(uint64_t count) {
  enum { NUMBER_AT = 10 };
  frame_texts names;
  frame_texts_begin(&names, "new name, ########", NUMBER_AT);
  for (uint64_t i = 0; i < count; i++) {
    const char *const name = frame_texts_next(&names, i, NUMBER_AT);
    WITH_BASE_PROFILER(PROF_HOST, name, "bench", PROF_NO_ARGS, { FRAME_WORK(); });
  }
}

FRAME_LOOP void with_new_string(uint64_t count) {
  enum { NUMBER_AT = 2 };
  frame_texts shapes;
  frame_texts_begin(&shapes, "T<########>", NUMBER_AT);
  for (uint64_t i = 0; i < count; i++) {
    const char *const shape = frame_texts_next(&shapes, i, NUMBER_AT);
    WITH_BASE_PROFILER(PROF_HOST, "string", "bench", PROF_ARGS("shape", shape), { FRAME_WORK(); });
  }
}

FRAME_LOOP void with_shapes(uint64_t count) {
  static const int64_t dims[] = {32, 128, 384};
  const prof_tensor a = PROF_TENSOR(dims, 3, PROF_F32), b = PROF_TENSOR(dims + 1, 2, PROF_F32);
  for (uint64_t i = 0; i < count; i++)
    WITH_BASE_PROFILER(PROF_HOST, "shapes", "bench", PROF_SHAPES(a, b), { FRAME_WORK(); });
}

FRAME_LOOP void by_calls(uint64_t count) {
  for (uint64_t i = 0; i < count; i++) {
    const uint64_t start = prof_scope_begin(1, run_time_text, "bench", NULL);
    FRAME_WORK();
    prof_scope_end(start);
  }
}

FRAME_LOOP void by_calls_at_site(uint64_t count) {
  static prof_site site;
  for (uint64_t i = 0; i < count; i++) {
    const uint64_t start = prof_scope_begin_at(&site, "site", "bench");
    FRAME_WORK();
    prof_scope_end(start);
  }
}

#define TIMES_1000(x) TIMES_10(TIMES_10(TIMES_10(x)))
#define ONE_SITE \
  WITH_BASE_PROFILER(PROF_HOST, "rotation", "bench", PROF_NO_ARGS, { FRAME_WORK(); });
#define ONE_FLOOR at = frame_floor_event(ring, at, __COUNTER__);

FRAME_LOOP void rotation(uint64_t count) {
  for (uint64_t i = 0; i < count; i += SITES) {
    TIMES_1000(ONE_SITE)
  }
}

FRAME_LOOP void rotation_floor(uint64_t count) {
  frame_record *const ring = frame_ring();
  static uint64_t place;
  uint64_t at = place;
  for (uint64_t i = 0; i < count; i += SITES) {
    TIMES_1000(ONE_FLOOR)
  }
  place = at;
}

/* How much work hides under a reading of the counter depends on the processor: about a hundred
   instructions on an AMD EPYC, a few on an Intel Xeon. A plain scope has 60 more than the floor. */
FRAME_LOOP void floor_and_work(uint64_t count) {
  frame_record *const ring = frame_ring();
  static uint64_t place;
  uint64_t at = place;
  for (uint64_t i = 0; i < count; i++) {
    at = frame_floor_event(ring, at, i);
    __asm__ __volatile__(".rept 60\nnop\n.endr");
  }
  place = at;
}

enum {
  FLOOR,
  FLOOR_AND_WORK,
  PLAIN,
  NESTED,
  STRING,
  NEW_STRING,
  INTEGERS,
  NAME,
  NEW_NAME,
  SHAPES,
  CALLS,
  CALLS_AT,
  ROTATION_FLOOR,
  ROTATION,
  CASES
};
static frame_case on[CASES] = {[FLOOR] = {.run = frame_floor, .count = BATCH},
                               [FLOOR_AND_WORK] = {.run = floor_and_work, .count = BATCH},
                               [PLAIN] = {.run = plain, .count = BATCH},
                               [NESTED] = {.run = nested, .count = BATCH},
                               [STRING] = {.run = with_string, .count = LONG_BATCH},
                               [NEW_STRING] = {.run = with_new_string, .count = LONG_BATCH},
                               [INTEGERS] = {.run = with_integers, .count = LONG_BATCH},
                               [NAME] = {.run = with_name, .count = LONG_BATCH},
                               [NEW_NAME] = {.run = with_new_name, .count = LONG_BATCH},
                               [SHAPES] = {.run = with_shapes, .count = LONG_BATCH},
                               [CALLS] = {.run = by_calls, .count = LONG_BATCH},
                               [CALLS_AT] = {.run = by_calls_at_site, .count = BATCH},
                               [ROTATION_FLOOR] = {.run = rotation_floor, .count = 5 * SITES},
                               [ROTATION] = {.run = rotation, .count = 5 * SITES}};

static prof_health health(void) {
  prof_health now = {.size = sizeof now};
  prof_health(&now);
  return now;
}

static void start(prof_options options) {
  options.size = sizeof options;
  const int status = prof_start_with(&options);
  FRAME_REQUIRE(status == PROF_OK, "%s: %s", prof_status_text(status), prof_last_error());
}

static void measure_file(const char *directory) {
  char path[600];
  snprintf(path, sizeof path, "%s/scope.json", directory);
  start((prof_options){.path = path});
  const unsigned rounds = frame_rounds(ROUNDS);
  frame_run(on, CASES, rounds);
  const prof_health after = health();
  frame_note(
      "floor: %.2f ns; batches of %d and %d events; the capture is a file on %s%s; %llu chunk "
      "changes; lost: %llu",
      frame_ns(&on[FLOOR], rounds).median, BATCH, LONG_BATCH, frame_file_system(directory),
      after.survives_kill ? "" : " (NOT: in memory)", (unsigned long long)after.chunk_changes_count,
      (unsigned long long)(after.lost_count[PROF_LOSS_FULL] + after.lost_count[PROF_LOSS_DISK]));
  frame_promise_ratio("the floor and 60 instructions that do nothing", &on[FLOOR_AND_WORK],
                      &on[FLOOR], rounds, 0);
  frame_promise_ratio("scope on, plain, arena in a file", &on[PLAIN], &on[FLOOR], rounds, 1.1);
  frame_promise_ratio("scope on, plain, four nested", &on[NESTED], &on[FLOOR], rounds, 1.1);
  frame_promise_ratio("+ a short run-time string as argument", &on[STRING], &on[FLOOR], rounds,
                      1.3);
  frame_promise_ratio("+ another string each time", &on[NEW_STRING], &on[FLOOR], rounds, 1.5);
  frame_promise_ratio("+ two integers as arguments", &on[INTEGERS], &on[FLOOR], rounds, 1.2);
  frame_promise_ratio("a run-time name seen before, over a literal's scope", &on[NAME], &on[PLAIN],
                      rounds, 1.1);
  frame_promise_ratio("a new run-time name (const char *)", &on[NEW_NAME], &on[FLOOR], rounds, 1.5);
  frame_promise_ratio("+ the shapes of two tensors", &on[SHAPES], &on[FLOOR], rounds, 0);
  frame_promise_ratio("prof_scope_begin/_end by calls, name seen before", &on[CALLS], &on[FLOOR],
                      rounds, 1.6);
  frame_promise_ratio("prof_scope_begin_at/_end by calls, own site", &on[CALLS_AT], &on[FLOOR],
                      rounds, 1.6);
  frame_promise_ratio("1000 distinct sites in rotation (floor: the same)", &on[ROTATION],
                      &on[ROTATION_FLOOR], rounds, 1.25);
  prof_stop();
}

static void measure_memory(void) {
  static frame_case cases[] = {{.run = frame_floor, .count = BATCH},
                               {.run = plain, .count = BATCH}};
  start((prof_options){0});
  const unsigned rounds = frame_rounds(ROUNDS);
  frame_run(cases, 2, rounds);
  frame_promise_ratio("scope on, plain, arena in memory", &cases[1], &cases[0], rounds, 1.1);
  prof_stop();
}

/* An arena filled to its cap by one kind of scope: everything in it counts, heads and the thread's
   slot included. */
static void measure_bytes(const char *what, void (*run)(uint64_t), double bound) {
  static uint64_t odd;
  const uint64_t cap = (64u << 20) + (++odd << 14); /* another cap: another arena */
  start((prof_options){.cap_bytes = cap});
  while (!health().is_full) run(100000);
  const prof_health full = health();
  const double bytes = (double)full.arena_bytes / (double)full.recorded_count;
  if (bound > 0)
    frame_promise(what, bytes < bound * 1.02, "16 +2% heads", "%.2f bytes", bytes);
  else
    frame_figure(what, "%.2f bytes", bytes);
  prof_stop();
}

int main(void) {
  char text[] = "T<768xf32>"; /* the string of the rivals' table */
  run_time_text = text;
  frame_begin("scope");
  measure_off();
  const char *const directory = frame_directory();
  measure_file(directory);
  measure_memory();
  measure_bytes("bytes of a plain scope", plain, 16);
  measure_bytes("bytes of a scope with a short string", with_new_string, 0);
  measure_bytes("bytes of a scope with a short string seen before", with_string, 16);
  measure_bytes("bytes of a scope with two integers", with_integers, 0);
  measure_bytes("bytes of a scope with a run-time name seen before", with_name, 16);
  measure_bytes("bytes of a scope with a new run-time name", with_new_name, 0);
  frame_remove_directory(directory);
  return taken != 0;
}
