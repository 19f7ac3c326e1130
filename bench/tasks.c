/* What a plain scope costs on a thread with open tasks: scopes begun by a call, which end in any
   order. It is compared, round by round, with a plain scope of the same thread without tasks. What
   a task itself costs is shown, too.

   usage: tasks */
#define _GNU_SOURCE
#include "frame.h"

#include <prof/profiler.h>

enum { TASKS_MAX = 900, BATCH = 20000, SOME = 2000, ROUNDS = 60 };

static uint64_t tasks[TASKS_MAX];

static uint64_t next_random(void) {
  static uint64_t state = 0x9e3779b97f4a7c15u;
  state ^= state << 13;
  state ^= state >> 7;
  return state ^= state << 17;
}

static uint64_t begin_task(void) {
  static prof_site site;
  return prof_scope_begin_at(&site, "task", "bench");
}

FRAME_LOOP void scopes(uint64_t count) {
  for (uint64_t i = 0; i < count; i++)
    WITH_BASE_PROFILER(PROF_HOST, "plain", "bench", PROF_NO_ARGS, { FRAME_WORK(); });
}

/* So many end, and others begin in their places. */
static unsigned open_count;
FRAME_LOOP void take_turns(uint64_t count) {
  for (uint64_t i = 0; i < count; i++) {
    uint64_t *const task = &tasks[next_random() % open_count];
    prof_scope_end(*task);
    *task = begin_task();
  }
}

/* A queue of jobs: each begins in one block and ends in another. */
FRAME_LOOP void work_off_queue(uint64_t count) {
  static unsigned at;
  for (uint64_t i = 0; i < count; i++, at = (at + 1) % open_count) {
    WITH_BASE_PROFILER(PROF_HOST, "finish", "bench", PROF_NO_ARGS, { prof_scope_end(tasks[at]); });
    WITH_BASE_PROFILER(PROF_HOST, "submit", "bench", PROF_NO_ARGS, { tasks[at] = begin_task(); });
  }
}

static void measure(unsigned count) {
  static double beside[FRAME_ROUNDS_MAX], turn[FRAME_ROUNDS_MAX], queue[FRAME_ROUNDS_MAX];
  static double ns[FRAME_ROUNDS_MAX];
  const unsigned rounds = frame_rounds(ROUNDS);
  for (unsigned r = 0; r < rounds; r++) {
    const double alone = frame_time_batch(scopes, BATCH);
    open_count = count;
    for (unsigned i = 0; i < count; i++) tasks[i] = begin_task();
    turn[r] = frame_time_batch(take_turns, SOME);
    ns[r] = frame_time_batch(scopes, BATCH);
    beside[r] = ns[r] / alone;
    queue[r] = frame_time_batch(work_off_queue, SOME) / 3;
    for (unsigned i = 0; i < count; i++) prof_scope_end(tasks[i]);
  }
  char what[64];
  const frame_spread ratio = frame_spread_of(beside, rounds);
  snprintf(what, sizeof what, "a plain scope beside %u open tasks", count);
  frame_promise(what, ratio.median <= 3, "3.00x alone", "%.2f ns, %.2fx (%.2f-%.2f)",
                frame_spread_of(ns, rounds).median, ratio.median, ratio.low, ratio.high);
  snprintf(what, sizeof what, "a task, one of %u that end in any order", count);
  frame_figure(what, "%.0f ns", frame_spread_of(turn, rounds).median);
  snprintf(what, sizeof what, "a queue of %u jobs that begin and end in blocks, a scope", count);
  frame_figure(what, "%.0f ns", frame_spread_of(queue, rounds).median);
}

int main(void) {
  static const unsigned counts[] = {8, 31, 63, 100, 300, TASKS_MAX};
  const prof_options options = {
      .size = sizeof options, .policy = PROF_POLICY_RING, .cap_bytes = 64 << 20};
  frame_begin("tasks");
  FRAME_REQUIRE(prof_start_with(&options) == PROF_OK, "%s", prof_last_error());
  for (int i = 0; i < 100; i++) scopes(BATCH); /* the ring is full once */
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) measure(counts[i]);
  return prof_stop() == PROF_OK ? 0 : 1;
}
