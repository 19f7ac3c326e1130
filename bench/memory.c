/* What the memory profiler costs: an alloc and its free, against one plain scope of the same
   rounds. It runs on one thread, on two with pools of their own, and on two that share one pool.
   The same two also run under a mutex, as an allocator without prof's counter would keep its sum.
   Pieces are reported to prof, not made: the allocator's own time would hide ours. */
#define _GNU_SOURCE
#include "frame.h"

#include <prof/memory.h>
#include <pthread.h>
#include <sched.h>

/* A batch is a chunk of a MiB of scopes, and four of pairs: each pays for the chunks that it fills.
   In smaller ones half of the pairs' batches paid for one and half for none, and the median fell
   now here, now there. */
enum { BATCH = 1 << 16, ROUNDS = 100, ADDRESSES = 64, ONCE_ROUND = 100 };

static prof_pool *own[2], *shared_pool, *checked;
static uint32_t weights;

/* A pair of memory calls is one event. */
static inline const void *address_of(uint64_t i) {
  return (const void *)(uintptr_t)(0x100000 + i % ADDRESSES * 4096);
}

FRAME_LOOP void scopes(uint64_t count) {
  for (uint64_t i = 0; i < count; i++)
    WITH_BASE_PROFILER(PROF_HOST, "plain", "bench", PROF_NO_ARGS, { FRAME_WORK(); });
}

static inline __attribute__((always_inline)) void pairs_of(prof_pool *pool, uint64_t count) {
  for (uint64_t i = 0; i < count; i++) {
    prof_memory_alloc(pool, address_of(i), 1000, 1024);
    FRAME_WORK();
    prof_memory_free(pool, address_of(i), 1024);
  }
}

FRAME_LOOP void pairs(uint64_t count) { pairs_of(own[0], count); }
FRAME_LOOP void pairs_large_waste(uint64_t count) {
  for (uint64_t i = 0; i < count; i++) {
    prof_memory_alloc(own[0], address_of(i), 600, 1024);
    FRAME_WORK();
    prof_memory_free(own[0], address_of(i), 1024);
  }
}
FRAME_LOOP void pairs_tagged(uint64_t count) {
  for (uint64_t i = 0; i < count; i++) {
    prof_memory_alloc_for(own[0], address_of(i), 1000, 1024, weights, PROF_NO_STREAM);
    FRAME_WORK();
    prof_memory_free(own[0], address_of(i), 1024);
  }
}
FRAME_LOOP void pairs_checked(uint64_t count) { pairs_of(checked, count); }

/* ---- two threads ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread unsigned self;

FRAME_LOOP void pairs_apart(uint64_t count) { pairs_of(own[self], count); }
FRAME_LOOP void pairs_together(uint64_t count) { pairs_of(shared_pool, count); }
FRAME_LOOP void pairs_under_mutex(uint64_t count) {
  for (uint64_t i = 0; i < count; i++) {
    pthread_mutex_lock(&lock);
    prof_memory_alloc(shared_pool, address_of(i), 1000, 1024);
    pthread_mutex_unlock(&lock);
    FRAME_WORK();
    pthread_mutex_lock(&lock);
    prof_memory_free(shared_pool, address_of(i), 1024);
    pthread_mutex_unlock(&lock);
  }
}

/* What no counter of all threads' events goes below: a clock and a locked add for each. */
static uint64_t bare[16] __attribute__((aligned(128)));
FRAME_LOOP void adds_together(uint64_t count) {
  uint64_t ticks = 0;
  for (uint64_t i = 0; i < count; i++) {
    ticks += frame_counter();
    __atomic_add_fetch(&bare[0], 1, __ATOMIC_SEQ_CST);
    FRAME_WORK();
    ticks += frame_counter();
    __atomic_add_fetch(&bare[0], 1, __ATOMIC_SEQ_CST);
  }
  __atomic_store_n(&bare[8 + self], ticks, __ATOMIC_RELAXED);
}

/* As in threads.c: the main thread gives the turn (release), the worker waits for it (acquire). */
static struct {
  void (*run)(uint64_t count);
  uint32_t turn, arrived, done, quit;
  double ns[2];
} team;

static void wait_for(const uint32_t *word, uint32_t value) {
  for (unsigned spins = 0; __atomic_load_n(word, __ATOMIC_ACQUIRE) != value; spins++)
    if (spins > 10000) sched_yield();
}

static void take_part(unsigned index) {
  __atomic_fetch_add(&team.arrived, 1, __ATOMIC_ACQ_REL);
  wait_for(&team.arrived, 2);
  team.ns[index] = frame_time_batch(team.run, BATCH);
  __atomic_fetch_add(&team.done, 1, __ATOMIC_RELEASE);
}

static void *work(void *none) {
  (void)none;
  self = 1;
  for (uint32_t turn = 1;; turn++) {
    wait_for(&team.turn, turn);
    if (__atomic_load_n(&team.quit, __ATOMIC_ACQUIRE)) return NULL;
    take_part(1);
  }
}

/* ns of an event on a thread, while both are at it. */
static double both(void (*run)(uint64_t)) {
  team.run = run;
  team.arrived = team.done = 0;
  __atomic_fetch_add(&team.turn, 1, __ATOMIC_RELEASE);
  take_part(0);
  wait_for(&team.done, 2);
  return (team.ns[0] + team.ns[1]) / 2;
}

static void show_spread(const char *what, double *ratios, const double *ns, unsigned rounds,
                        double bound, const char *limit) {
  const double median_ns = frame_spread_of(ns, rounds).median;
  const frame_spread ratio = frame_spread_of(ratios, rounds);
  frame_promise(what, ratio.median <= bound, limit, "%.1f ns, %.2fx (%.2f-%.2f)", median_ns,
                ratio.median, ratio.low, ratio.high);
}

static void two_threads(void) {
  enum { CASES = 5 };
  static void (*const runs[CASES])(uint64_t) = {scopes, pairs_apart, pairs_together,
                                                pairs_under_mutex, adds_together};
  static double ns[CASES][FRAME_ROUNDS_MAX], ratio[FRAME_ROUNDS_MAX];
  const unsigned rounds = frame_rounds(ROUNDS);
  pthread_t worker;
  FRAME_REQUIRE(pthread_create(&worker, NULL, work, NULL) == 0, "no thread");
  for (unsigned c = 0; c < CASES; c++) both(runs[c]);
  for (unsigned r = 0; r < rounds; r++)
    for (unsigned c = 0; c < CASES; c++) ns[(r + c) % CASES][r] = both(runs[(r + c) % CASES]);
  __atomic_store_n(&team.quit, 1, __ATOMIC_RELEASE);
  __atomic_fetch_add(&team.turn, 1, __ATOMIC_RELEASE);
  pthread_join(worker, NULL);
  for (unsigned r = 0; r < rounds; r++) ratio[r] = ns[1][r] / ns[0][r];
  show_spread("alloc + free over a scope: two threads, a pool each", ratio, ns[1], rounds, 2.2,
              "2.20x");
  for (unsigned r = 0; r < rounds; r++) ratio[r] = ns[2][r] / ns[0][r];
  show_spread("the same: two threads at one pool", ratio, ns[2], rounds, 6, "6.00x");
  for (unsigned r = 0; r < rounds; r++) ratio[r] = ns[4][r] / ns[0][r];
  const frame_spread bare_ratio = frame_spread_of(ratio, rounds);
  frame_figure("two threads: two clock reads and two locked adds of one word, nothing else",
               "%.1f ns, %.2fx (%.2f-%.2f)", frame_spread_of(ns[4], rounds).median,
               bare_ratio.median, bare_ratio.low, bare_ratio.high);
  for (unsigned r = 0; r < rounds; r++) ratio[r] = ns[2][r] / ns[3][r];
  show_spread("two threads at one pool over the same under a mutex", ratio, ns[3], rounds, 0.75,
              "0.75x");
}

/* ---- one thread ---- */

static void promise(const char *what, const frame_case *c, const frame_case *scope, unsigned rounds,
                    double bound) {
  frame_promise_ratio(what, c, scope, rounds, bound);
}

static void one_thread(void) {
  static frame_case cases[] = {{.run = scopes, .count = BATCH},
                               {.run = pairs, .count = BATCH},
                               {.run = pairs_large_waste, .count = BATCH},
                               {.run = pairs_tagged, .count = BATCH},
                               {.run = pairs_checked, .count = BATCH},
                               {.run = frame_floor, .count = BATCH}};
  const unsigned rounds = frame_rounds(ROUNDS);
  frame_run(cases, sizeof cases / sizeof *cases, rounds);
  frame_note("a scope %.2f ns, the floor %.2f ns", frame_ns(&cases[0], rounds).median,
             frame_ns(&cases[5], rounds).median);
  promise("alloc + free over a scope: bytes by the caller", &cases[1], &cases[0], rounds, 2.2);
  promise("the same with more than 31 bytes of waste", &cases[2], &cases[0], rounds, 2.2);
  promise("the same with a tag", &cases[3], &cases[0], rounds, 2.2);
  promise("the same in a checked pool", &cases[4], &cases[0], rounds, 6);
}

FRAME_LOOP void off(uint64_t count) { pairs_of(own[0], count); }

int main(void) {
  frame_begin("memory");
  const prof_pool_options with_table = {.size = sizeof with_table, .name = "checked", .checked = 1};
  for (int i = 0; i < 2; i++)
    FRAME_REQUIRE(prof_pool_create(NULL, &own[i]) == PROF_OK, "%s", prof_last_error());
  FRAME_REQUIRE(prof_pool_create(NULL, &shared_pool) == PROF_OK &&
                    prof_pool_create(&with_table, &checked) == PROF_OK,
                "%s", prof_last_error());
  weights = prof_memory_tag("weights");
  static frame_case is_off = {.run = off, .count = BATCH};
  frame_run(&is_off, 1, 50);
  frame_figure("alloc + free while memory is not recorded", "%.2f ns",
               frame_ns(&is_off, 50).median);
  prof_options options = {
      .size = sizeof options, .policy = PROF_POLICY_RING, .cap_bytes = 256u << 20};
  const int status = prof_start_with(&options);
  FRAME_REQUIRE(status == PROF_OK, "%s: %s", prof_status_text(status), prof_last_error());
  frame_note("batches of %d; a ring of 256 MiB, gone round once before", BATCH);
  for (int i = 0; i < ONCE_ROUND; i++) pairs(BATCH);
  one_thread();
  two_threads();
  prof_stop();
  return 0;
}
