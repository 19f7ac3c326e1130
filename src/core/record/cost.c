/* Measures what a plain scope costs on this machine. See cost_sample.h. */
#include "cost_sample.h"

#include "../buffer/clock.h"
#include "../buffer/session.h"
#include "scope.h"
#include "site.h"

enum { BATCHES = 5, SCOPES = 200 };

typedef struct cost_bench {
  prof_i_thread thread;
  prof_site site;
} cost_bench;

typedef void bench_run(cost_bench *b);

static void bench_run_scopes(cost_bench *b) {
  b->thread.slot->depth = 0;
  b->thread.chunk->cursor = PROF_I_HEAD_BYTES;
  prof_i_scope_run_empty(&b->thread, &b->site, SCOPES);
}

static void bench_run_left_out(cost_bench *b) {
  prof_i_scope_run_left_out(&b->thread, &b->site, SCOPES);
}

static void bench_run_clock(cost_bench *b) {
  for (int i = 0; i < SCOPES; i++) b->site.values += prof_i_clock_ticks();
}

/* The median of a few batches: ps for each of the SCOPES. */
static uint64_t median_of(bench_run *what, cost_bench *b) {
  uint64_t costs[BATCHES];
  for (int i = 0; i < BATCHES; i++) {
    const uint64_t begun = prof_i_port_raw_ns();
    what(b);
    const uint64_t cost = (prof_i_port_raw_ns() - begun) * 1000 / SCOPES;
    prof_i_cost_insert_sorted(costs, i, cost);
  }
  return costs[BATCHES / 2];
}

prof_i_cost prof_i_cost_measure(void) {
  static struct {
    prof_i_thread_slot slot;
    uint64_t chunk[PROF_I_HEAD_BYTES / 8 + SCOPES * 2];
  } memory; /* guarded by the control lock */
  prof_i_head *const chunk = (prof_i_head *)memory.chunk;
  chunk->limit = sizeof memory.chunk - 15;
  chunk->generation = 1;
  const uint64_t epoch = prof_i_session_epoch();
  cost_bench b = {
      {.fast = &memory.slot, .slot = &memory.slot, .chunk = chunk, .epoch = (uint32_t)epoch},
      {.state = epoch << 32, .file = "", .function = "", .level = 1}};
  const bool is_counter = prof_i_clock_is_counter();
  prof_i_cost cost = {.scope_ps = is_counter ? median_of(bench_run_scopes, &b) : 0};
  b.site.state = (epoch | PROF_I_EPOCH_MUTED) << 32;
  cost.left_out_ps = median_of(bench_run_left_out, &b);
  /* Where the counter is not the clock it is not read here either: it may be SIGSEGV. A begin, an
     end, and a clock's reading for each. */
  if (!is_counter) cost.scope_ps = 2 * (median_of(bench_run_clock, &b) + cost.left_out_ps);
  return cost;
}

prof_i_cost prof_i_cost_at_start(void) {
  static prof_i_cost known; /* guarded by the control lock */
  static uint32_t of_clock;
  if (of_clock != prof_i_clock_kind()) known = prof_i_cost_measure();
  of_clock = prof_i_clock_kind();
  return known;
}
