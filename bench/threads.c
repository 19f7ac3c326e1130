/* How recording scales: ns of a scope on 1 to N threads at once, against what the floor itself
   loses on the way. Threads share no cache line on the hot path, so the ratio stays near 1 as far
   as the machine's own memory lets it.

   usage: threads [N]
   N: the most threads; 2 by default, at most the processors that this process may use. */
#define _GNU_SOURCE
#include "frame.h"

#include <prof/profiler.h>
#include <pthread.h>
#include <sched.h>

enum { THREADS_MAX = 256, BATCH = 10000, ROUNDS = 200 };

FRAME_LOOP void scopes(uint64_t count) {
  for (uint64_t i = 0; i < count; i++)
    WITH_BASE_PROFILER(PROF_HOST, "plain", "bench", PROF_NO_ARGS, { FRAME_WORK(); });
}

/* Each thread has a ring of its own: 1 MiB, so that N of them do not fill the cache that they
   share. */
FRAME_LOOP void floor_of_thread(uint64_t count) {
  enum { RECORDS = (1 << 20) / sizeof(frame_record) };
  static __thread frame_record *ring;
  static __thread uint64_t place;
  if (!ring) {
    ring = aligned_alloc(64, RECORDS * sizeof *ring);
    FRAME_REQUIRE(ring, "no memory");
    memset(ring, 1, RECORDS * sizeof *ring);
  }
  uint64_t at = place;
  for (uint64_t i = 0; i < count; i++) {
    const uint64_t start = frame_counter();
    FRAME_WORK();
    const uint64_t end = frame_counter();
    ring[at] = (frame_record){start, end - start, i, 0};
    at = (at + 1) % RECORDS;
  }
  place = at;
}

/* One batch of all threads at once. turn increases by 1 for each. The main thread writes it
   (release) and the workers wait for it (acquire). arrived and done count the workers in. */
static struct {
  void (*run)(uint64_t count);
  uint32_t turn, arrived, done, quit;
  unsigned threads;
  struct {
    double ns; /* an event, of this thread's last batch */
    char pad[56];
  } result[THREADS_MAX];
} shared;

static void wait_for(const uint32_t *word, uint32_t value) {
  for (unsigned spins = 0; __atomic_load_n(word, __ATOMIC_ACQUIRE) != value; spins++)
    if (spins > 10000) sched_yield();
}

static void take_part(unsigned index) {
  __atomic_fetch_add(&shared.arrived, 1, __ATOMIC_ACQ_REL);
  wait_for(&shared.arrived, shared.threads);
  shared.result[index].ns = frame_time_batch(shared.run, BATCH);
  __atomic_fetch_add(&shared.done, 1, __ATOMIC_RELEASE);
}

static void *work(void *index) {
  const unsigned own = (unsigned)(uintptr_t)index;
  for (uint32_t turn = 1;; turn++) {
    wait_for(&shared.turn, turn);
    if (__atomic_load_n(&shared.quit, __ATOMIC_ACQUIRE)) return NULL;
    take_part(own);
  }
}

/* Events per ns of all threads together. */
static double rate_of(void (*run)(uint64_t)) {
  shared.run = run;
  shared.arrived = shared.done = 0;
  __atomic_fetch_add(&shared.turn, 1, __ATOMIC_RELEASE);
  take_part(0);
  wait_for(&shared.done, shared.threads);
  double rate = 0;
  for (unsigned t = 0; t < shared.threads; t++) rate += 1 / shared.result[t].ns;
  return rate;
}

typedef struct measured {
  double floor_rate[FRAME_ROUNDS_MAX], scope_rate[FRAME_ROUNDS_MAX];
} measured;

/* So many rounds of both with so many threads; alternating within the round. */
static void measure(measured *to, unsigned threads, unsigned from, unsigned rounds) {
  static pthread_t workers[THREADS_MAX];
  shared.threads = threads;
  shared.turn = shared.quit = 0;
  for (unsigned t = 1; t < threads; t++)
    FRAME_REQUIRE(pthread_create(&workers[t], NULL, work, (void *)(uintptr_t)t) == 0, "thread %u",
                  t);
  rate_of(floor_of_thread);
  rate_of(scopes);
  for (unsigned r = from; r < from + rounds; r++) {
    to->floor_rate[r] = rate_of(floor_of_thread);
    to->scope_rate[r] = rate_of(scopes);
  }
  __atomic_store_n(&shared.quit, 1, __ATOMIC_RELEASE);
  __atomic_fetch_add(&shared.turn, 1, __ATOMIC_RELEASE);
  for (unsigned t = 1; t < threads; t++) pthread_join(workers[t], NULL);
}

/* One thread and N threads by turns, a few rounds each: what slows the machine slows both. */
static void compare(unsigned threads, double bound) {
  enum { SLICE = 10 };
  static measured one, many;
  static double kept[FRAME_ROUNDS_MAX], cost[FRAME_ROUNDS_MAX], floors[FRAME_ROUNDS_MAX];
  const unsigned rounds = frame_rounds(ROUNDS) / SLICE * SLICE;
  for (unsigned r = 0; r < rounds; r += SLICE) {
    measure(&one, 1, r, SLICE);
    measure(&many, threads, r, SLICE);
  }
  for (unsigned r = 0; r < rounds; r++) {
    const double floor_gain = many.floor_rate[r] / one.floor_rate[r],
                 scope_gain = many.scope_rate[r] / one.scope_rate[r];
    kept[r] = scope_gain / floor_gain;
    cost[r] = threads / many.scope_rate[r];
    floors[r] = floor_gain;
  }
  const frame_spread spread = frame_spread_of(kept, rounds);
  const double ns = frame_spread_of(cost, rounds).median,
               gain = frame_spread_of(floors, rounds).median;
  char what[64];
  snprintf(what, sizeof what, "%u threads over one, of the floor's own gain", threads);
  if (bound > 0)
    frame_promise(what, spread.median >= bound, "0.95",
                  "%.3f (%.3f-%.3f), %.2f ns, floor gains %.2f", spread.median, spread.low,
                  spread.high, ns, gain);
  else
    frame_figure(what, "%.3f (%.3f-%.3f), %.2f ns, floor gains %.2f", spread.median, spread.low,
                 spread.high, ns, gain);
}

int main(int argc, char **argv) {
  cpu_set_t usable;
  const int processors = sched_getaffinity(0, sizeof usable, &usable) == 0
                             ? CPU_COUNT(&usable)
                             : (int)sysconf(_SC_NPROCESSORS_ONLN);
  int most = argc > 1 ? atoi(argv[1]) : 2;
  if (most > processors) most = processors;
  if (most > THREADS_MAX) most = THREADS_MAX;
  frame_begin("threads");
  if (most < 2) {
    printf("skip: one processor, or an argument below 2: nothing to scale to\n");
    return 0;
  }
  prof_options options = {
      .size = sizeof options, .policy = PROF_POLICY_RING, .cap_bytes = 256u << 20};
  const int status = prof_start_with(&options);
  FRAME_REQUIRE(status == PROF_OK, "%s: %s", prof_status_text(status), prof_last_error());
  frame_note(
      "%d processors; batches of %d events; a ring of 256 MiB, so that the kernel populates "
      "nothing once it is round",
      processors, BATCH);
  scopes(20 << 20);
  for (int threads = 2; threads <= most; threads = threads < 4 ? threads + 1
                                                   : threads < most && threads * 2 > most
                                                       ? most
                                                       : threads * 2)
    compare((unsigned)threads, threads == 2 ? 0.95 : 0);
  prof_stop();
  return 0;
}
