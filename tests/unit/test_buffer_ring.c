/* Many threads in one capture: those that come later find room, too, and a ring gives up little of
   what it has for them. */
#define _GNU_SOURCE
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include <prof/profiler.h>
#include <prof/trace.h>

#include "api/sanitizers.h"
#include "fresh_arena.h"
#include "health.h"

enum { MIB = 1 << 20, THREADS_MAX = 256, STACK_BYTES = 256 << 10 };

static struct {
  pthread_barrier_t barrier;
  uint64_t rounds, each;
} all;

/* ---- a thread that makes a block shared, and those that wait for it ---- */

static struct {
  bool is_watched;
  int recording; /* threads that are in their first scope */
  int makers;    /* of these, those that are making a block shared */
  int most_makers;
  int waiting; /* of these, those that wait for one that does */
} makers;

static int value_of(const int *count) { return __atomic_load_n(count, __ATOMIC_SEQ_CST); }
static int add_to(int *count, int more) {
  return __atomic_add_fetch(count, more, __ATOMIC_SEQ_CST);
}

/* Called instead of prof_i_port_wait(): see target_link_options() in tests/CMakeLists.txt. A busy
   machine is not to end the wait. */
void real_wait(uint32_t *word, uint32_t value,
               uint64_t timeout_ns) __asm__("__real_prof_i_port_wait");
void patient_wait(uint32_t *word, uint32_t value,
                  uint64_t timeout_ns) __asm__("__wrap_prof_i_port_wait");
void patient_wait(uint32_t *word, uint32_t value, uint64_t timeout_ns) {
  enum { FACTOR = 100000 };
  add_to(&makers.waiting, 1);
  real_wait(word, value, timeout_ns * FACTOR);
  add_to(&makers.waiting, -1);
}

/* A thread that makes a block shared unmaps the block's second address at the end. Here it lets all
   others go on until one of them waits for it, or makes a block as well, or none is left. */
int munmap(void *at, size_t bytes) {
  enum { BLOCK_BYTES = 2 * MIB };
  if (makers.is_watched && bytes == BLOCK_BYTES) {
    const int now = add_to(&makers.makers, 1);
    for (int most = value_of(&makers.most_makers); now > most;)
      if (__atomic_compare_exchange_n(&makers.most_makers, &most, now, false, __ATOMIC_SEQ_CST,
                                      __ATOMIC_SEQ_CST))
        break;
    while (!value_of(&makers.waiting) && value_of(&makers.most_makers) == 1 &&
           value_of(&makers.recording) > 1)
      sched_yield();
    add_to(&makers.makers, -1);
  }
  return (int)syscall(SYS_munmap, at, bytes);
}

/* ---- many threads ---- */

/* All threads have recorded the first round before any begins the second, and live until the last
   round is over. */
static void *record_rounds(void *unused) {
  (void)unused;
  for (uint64_t i = 0; i < all.rounds; i++) {
    if (i == 0) add_to(&makers.recording, 1);
    record(i == 0 ? 1 : all.each);
    if (i == 0) add_to(&makers.recording, -1);
    pthread_barrier_wait(&all.barrier);
  }
  return NULL;
}

/* Returns how many scopes they record together. */
static uint64_t record_at_once(uint32_t threads, uint64_t rounds, uint64_t each) {
  pthread_t ids[THREADS_MAX];
  pthread_attr_t small;
  all.rounds = rounds;
  all.each = each;
  assert_int_equal(pthread_barrier_init(&all.barrier, NULL, threads), 0);
  assert_int_equal(pthread_attr_init(&small), 0);
  assert_int_equal(pthread_attr_setstacksize(&small, STACK_BYTES), 0);
  for (uint32_t i = 0; i < threads; i++)
    assert_int_equal(pthread_create(&ids[i], &small, record_rounds, NULL), 0);
  for (uint32_t i = 0; i < threads; i++) assert_int_equal(pthread_join(ids[i], NULL), 0);
  pthread_attr_destroy(&small);
  pthread_barrier_destroy(&all.barrier);
  return threads * (1 + (rounds - 1) * each);
}

/* In a trace, too. */
static void assert_exact(uint64_t attempted) {
  prof_trace *trace = NULL;
  prof_trace_info info = {.size = sizeof info};
  const prof_health health = health_now();
  assert_int_equal(health.recorded_count + health_lost(&health), attempted);
  assert_int_equal(prof_get(&trace), PROF_OK);
  assert_int_equal(prof_trace_info_get(trace, &info), PROF_OK);
  uint64_t sum = info.event_count;
  for (int i = 0; i < PROF_LOSS_COUNT; i++) sum += info.lost_count[i];
  assert_int_equal(sum, attempted);
  prof_trace_destroy(trace);
}

/* least_percent: of what the full ring held, so much is still there. The slots of the threads take
   64 KiB each, and threads that come at once may take a block of 2 MiB each for them. So this is
   half of what stays on a quiet machine; when whole chunks gave way, it was 3 % at most. */
typedef struct late_threads {
  uint64_t cap_mib, first;
  uint32_t threads;
  uint64_t rounds, least_percent;
} late_threads;

static void assert_room_for(const late_threads *late) {
  start(PROF_POLICY_RING, late->cap_mib * MIB);
  record(late->first);
  const uint64_t before = health_now().recorded_count;
  const uint64_t later = record_at_once(late->threads, late->rounds, 20);
  const prof_health after = health_now();
  assert_int_equal(health_lost(&after), after.lost_count[PROF_LOSS_OVERWRITTEN]);
  if (after.recorded_count * 100 < before * late->least_percent)
    fail_msg("%u threads, %llu MiB: %llu records of %llu", late->threads,
             (unsigned long long)late->cap_mib, (unsigned long long)after.recorded_count,
             (unsigned long long)before);
  assert_exact(late->first + later);
}

static void late_threads_find_room_in_a_full_ring(void **state) {
  (void)state;
  static const late_threads rows[] = {{4, 400000, 20, 2, 25},    {4, 400000, 40, 2, 7},
                                      {16, 1500000, 100, 2, 20}, {64, 5000000, 32, 2, 45},
                                      {64, 5000000, 256, 2, 30}, {64, 5000000, 100, 50, 40}};
  /* ThreadSanitizer takes half a minute to fill the large ones. */
  const uint64_t most_mib = WITH_TSAN ? 16 : 64;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (rows[i].cap_mib <= most_mib) assert_room_for(&rows[i]);
}

/* If each made a block for itself, they would hold all blocks at once, and some would find none. */
static void one_thread_at_a_time_makes_room_and_others_wait(void **state) {
  (void)state;
  memset(&makers, 0, sizeof makers);
  makers.is_watched = true;
  assert_room_for(&(const late_threads){16, 1500000, 100, 2, 20});
  makers.is_watched = false;
  assert_int_equal(makers.most_makers, 1);
}

/* Not only for the threads that used it in parts. */
static void one_thread_fills_a_ring_again_that_many_shared(void **state) {
  (void)state;
  enum { CAP = 4 * MIB, COUNT = 2 * CAP / 16 };
  for (int clears = 0; clears < 2; clears++) {
    start(PROF_POLICY_RING, CAP);
    record(COUNT);
    record_at_once(20, 2, 5000);
    if (clears) assert_int_equal(prof_clear(), PROF_OK);
    record(COUNT);
    const prof_health health = health_now();
    /* Less the slots, and what other threads hold. */
    assert_in_range(health.recorded_count, CAP / 16 / 2, CAP / 16);
  }
}

static void the_longest_record_finds_room_in_a_ring_that_many_share(void **state) {
  (void)state;
  static char text[12000];
  for (size_t i = 0; i + 1 < sizeof text; i++) text[i] = 'x';
  start(PROF_POLICY_RING, MIB);
  record(200000);
  const uint64_t later = record_at_once(6, 20, 500);
  for (int i = 0; i < 20; i++) PROF_INSTANT("long", "x", PROF_ARGS("text", text));
  const prof_health health = health_now();
  assert_int_equal(health_lost(&health), health.lost_count[PROF_LOSS_OVERWRITTEN]);
  assert_exact(200000 + later + 20);
}

/* A slot of 64 KiB and two chunks of 16 KiB each: that fits, and larger chunks would not. */
static void chunks_stay_small_while_many_threads_share_the_cap(void **state) {
  (void)state;
  start(PROF_POLICY_KEEP, 16 * MIB);
  const uint64_t count = record_at_once(150, 2, 2000);
  const prof_health health = health_now();
  assert_int_equal(health_lost(&health), 0);
  assert_int_equal(health.recorded_count, count);
}

static void start_with_helper(prof_options options) {
  options.size = sizeof options;
  options.helper_thread = 1;
  start(PROF_POLICY_KEEP, 2 * MIB); /* so that the arena is a new one */
  assert_int_equal(prof_stop(), PROF_OK);
  assert_int_equal(prof_start_with(&options), PROF_OK);
}

static void a_helper_takes_no_room_from_many_threads(void **state) {
  (void)state;
  start_with_helper((prof_options){.policy = PROF_POLICY_KEEP, .cap_bytes = 16 * MIB});
  const uint64_t count = record_at_once(110, 2, 2000);
  const prof_health health = health_now();
  assert_int_equal(health_lost(&health), 0);
  assert_int_equal(health.recorded_count, count);
  assert_int_equal(prof_stop(), PROF_OK);
}

/* The file can be smaller than the cap: then all that it holds is for records. */
static void a_helper_leaves_a_ring_all_of_a_small_disk(void **state) {
  (void)state;
  static const struct {
    uint64_t file_bytes, count;
  } rows[] = {{20000000, 800000}, {2000000, 10000}};
  char folder[] = "/tmp/prof-ring-XXXXXX", path[64], name[320];
  struct rlimit before, limit;
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
  assert_non_null(mkdtemp(folder));
  snprintf(path, sizeof path, "%s/out.prof", folder);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    limit = (struct rlimit){rows[i].file_bytes, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    start_with_helper(
        (prof_options){.policy = PROF_POLICY_RING, .cap_bytes = 256 * MIB, .path = path});
    record(rows[i].count);
    const uint64_t recorded = health_now().recorded_count;
    assert_int_equal(prof_stop(), PROF_OK);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(recorded, rows[i].count);
  }
  start(PROF_POLICY_KEEP, 2 * MIB);
  DIR *const all_files = opendir(folder);
  assert_non_null(all_files);
  for (const struct dirent *one; (one = readdir(all_files)) != NULL;) {
    snprintf(name, sizeof name, "%s/%s", folder, one->d_name);
    unlink(name);
  }
  closedir(all_files);
  assert_int_equal(rmdir(folder), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(late_threads_find_room_in_a_full_ring),
      cmocka_unit_test(one_thread_at_a_time_makes_room_and_others_wait),
      cmocka_unit_test(one_thread_fills_a_ring_again_that_many_shared),
      cmocka_unit_test(the_longest_record_finds_room_in_a_ring_that_many_share),
      cmocka_unit_test(chunks_stay_small_while_many_threads_share_the_cap),
      cmocka_unit_test(a_helper_takes_no_room_from_many_threads),
      cmocka_unit_test(a_helper_leaves_a_ring_all_of_a_small_disk),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
