/* Memory that was in use before. There is a start while other threads allocate, a clear, a ring
   that has gone round, a fork, a query in another's place, a reset among millions of events. Sums
   are right, and what is not known is not reported. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "memory_checks.h"

enum { MIB = 1 << 20 };

/* ---- an allocator of two threads, which reports its calls under its lock ---- */

enum { WORKERS = 2, LIVE_MAX = 40 };

static struct {
  pthread_mutex_t lock;
  prof_pool *pool;
  uint64_t used;
  uint32_t is_over, checked, asked; /* asked: how often the query was, at this start; relaxed */
} own = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int own_query(void *none, uint64_t *used_out, uint64_t *allocated_out) {
  (void)none;
  __atomic_fetch_add(&own.asked, 1, __ATOMIC_RELAXED);
  pthread_mutex_lock(&own.lock);
  *used_out = *allocated_out = own.used;
  pthread_mutex_unlock(&own.lock);
  return 0;
}

static void hand_out(uintptr_t address, uint64_t bytes) {
  pthread_mutex_lock(&own.lock);
  own.used += bytes;
  prof_memory_alloc(own.pool, AT(address), bytes, 0);
  pthread_mutex_unlock(&own.lock);
}

static void take_back(uintptr_t address, uint64_t bytes) {
  pthread_mutex_lock(&own.lock);
  prof_memory_free(own.pool, AT(address), bytes);
  own.used -= bytes;
  pthread_mutex_unlock(&own.lock);
}

static void *allocate(void *number) {
  const uintptr_t base = 0x1000000 * ((uintptr_t)number + 1);
  uint64_t bytes[LIVE_MAX] = {0};
  for (uint32_t turn = 1; !__atomic_load_n(&own.is_over, __ATOMIC_RELAXED);
       turn = turn * 1103515245 + 12345) {
    const uint32_t slot = turn >> 16 & 31;
    if (bytes[slot]) take_back(base + slot * 65536, bytes[slot]);
    bytes[slot] = bytes[slot] ? 0 : 1000 + (turn >> 16) % 50000;
    if (bytes[slot]) hand_out(base + slot * 65536, bytes[slot]);
  }
  for (uint32_t slot = 0; slot < LIVE_MAX; slot++)
    if (bytes[slot]) take_back(base + slot * 65536, bytes[slot]);
  return NULL;
}

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void start_while_they_allocate(uint32_t checked) {
  enum { ASKED_LEAST = 1000 };
  const int starts = getenv("PROF_LONG") ? 100 : 25;
  /* src/memory/pool_state.c: a pool that is never quiet is queried at least this often, unless that
     takes too long */
  static const uint64_t asked_most_ns = 1000000000;
  pthread_t workers[WORKERS];
  prof_stop();
  own.is_over = 0;
  OK(prof_pool_create(&(prof_pool_options){.size = sizeof(prof_pool_options),
                                           .name = "stirred",
                                           .query = own_query,
                                           .checked = checked},
                      &own.pool));
  for (uintptr_t i = 0; i < WORKERS; i++)
    assert_int_equal(pthread_create(&workers[i], NULL, allocate, (void *)i), 0);
  /* a baseline is given up only when it was asked for often, or long, and the pool was never
     quiet */
  uint32_t wrong_sums = 0, wrong_calls = 0, given_up_early = 0;
  for (int turn = 0; turn < starts; turn++) {
    __atomic_store_n(&own.asked, 0, __ATOMIC_RELAXED);
    const uint64_t begun_ns = now_ns();
    start_afresh(16 * MIB);
    const int may_give_up = now_ns() - begun_ns >= asked_most_ns ||
                            __atomic_load_n(&own.asked, __ATOMIC_RELAXED) >= ASKED_LEAST;
    usleep(300);
    pthread_mutex_lock(&own.lock);
    const int is_wrong = max_of(PROF_MEMORY_POOL).used_bytes != own.used;
    pthread_mutex_unlock(&own.lock);
    OK(prof_stop());
    const prof_memory_info info = info_now("stirred");
    given_up_early += !info.has_baseline && !may_give_up;
    wrong_sums += is_wrong && info.has_baseline;
    for (int i = 0; i < PROF_MEMORY_WRONG_COUNT; i++) wrong_calls += info.wrong_count[i] > 0;
  }
  __atomic_store_n(&own.is_over, 1, __ATOMIC_RELAXED);
  for (int i = 0; i < WORKERS; i++) pthread_join(workers[i], NULL);
  prof_pool_destroy(own.pool);
  assert_int_equal(wrong_sums, 0);
  assert_int_equal(wrong_calls, 0);
  assert_int_equal(given_up_early, 0);
}

static void a_start_while_others_allocate_counts_each_piece_once(void **state) {
  (void)state;
  start_while_they_allocate(0);
}

static void so_does_a_checked_pool(void **state) {
  (void)state;
  start_while_they_allocate(1);
}

/* A query whose pool is never quiet: the answer is near, and known to be no more. */
static prof_pool *restless;
static int restless_query(void *none, uint64_t *used_out, uint64_t *allocated_out) {
  (void)none;
  *used_out = *allocated_out = 1000;
  prof_memory_alloc(restless, AT(0x100), 8, 0);
  return 0;
}

static void a_baseline_that_cannot_be_had_is_told_as_near(void **state) {
  (void)state;
  prof_stop();
  OK(prof_pool_create(
      &(prof_pool_options){
          .size = sizeof(prof_pool_options), .name = "restless", .query = restless_query},
      &restless));
  start_afresh(4 * MIB);
  prof_memory_free(restless, AT(0x5000), 700);
  OK(prof_stop());
  seen s = see();
  const prof_memory_info info = info_of(&s, "restless");
  char *text = NULL;
  OK(prof_memory_text(s.memory, NULL, &text));
  assert_int_equal(info.has_baseline, 0);
  assert_int_equal(info.used_before_bytes, 1000);
  assert_int_equal(info.end.used_bytes, 300);
  assert_int_equal(info.wrong_count[PROF_MEMORY_WRONG_UNKNOWN], 0);
  assert_non_null(strstr(text, "before the start about 1000 B"));
  prof_free(text);
  look_away(&s);
  prof_pool_destroy(restless);
}

/* ---- what went before the first event that stands ---- */

static void check_what_went_before(const char *name, uint64_t used_peak, const char *unknown) {
  seen s = see();
  const prof_memory_info info = info_of(&s, name);
  int64_t used[4], allocated[4];
  char *text = NULL;
  assert_int_equal(info.peak_used.used_bytes, used_peak);
  assert_int_equal(info.peak_used.allocated_bytes, MIB);
  assert_int_equal(info.peak_allocated.allocated_bytes, MIB);
  assert_int_equal(info.end.has_ranges, 0); /* the block's record is gone */
  OK(prof_memory_series(s.memory, prof_memory_pool_count(s.memory) - 1, 4, used, allocated));
  for (int i = 0; i < 4; i++) assert_int_equal(allocated[i], MIB);
  OK(prof_memory_text(s.memory, NULL, &text));
  assert_non_null(strstr(text, unknown)); /* though no piece is known to be live */
  assert_non_null(strstr(text, "fragmented, is not known"));
  prof_free(text);
  look_away(&s);
}

static void after_a_clear_what_is_allocated_is_known(void **state) {
  (void)state;
  start_afresh(4 * MIB);
  prof_pool *const pool = make_pool("cleared");
  prof_memory_reserve(pool, AT(0x100000), MIB);
  prof_memory_alloc(pool, AT(0x100000), 100000, 0);
  OK(prof_clear());
  prof_memory_alloc(pool, AT(0x180000), 5, 0);
  prof_memory_free(pool, AT(0x180000), 5);
  OK(prof_stop());
  check_what_went_before("cleared", 100005,
                         "97.66 KiB from before the start, or whose records are lost");
  prof_pool_destroy(pool);
}

static void in_a_ring_that_has_gone_round_too(void **state) {
  (void)state;
  prof_stop();
  OK(prof_start_with(&(prof_options){
      .size = sizeof(prof_options), .policy = PROF_POLICY_RING, .cap_bytes = 1 << 20}));
  prof_pool *const pool = make_pool("ring");
  prof_memory_reserve(pool, AT(0x100000), MIB);
  prof_memory_alloc(pool, AT(0x100000), 100000, 0);
  for (int i = 0; i < 100000; i++) {
    prof_memory_alloc(pool, AT(0x180000), 5, 0);
    prof_memory_free(pool, AT(0x180000), 5);
  }
  OK(prof_stop());
  check_what_went_before("ring", 100005,
                         "97.66 KiB from before the start, or whose records are lost");
  prof_pool_destroy(pool);
}

static void a_cleared_pool_without_events_misses_none(void **state) {
  (void)state;
  start_afresh(4 * MIB);
  prof_pool *const pool = make_pool("quiet"), *const other = make_pool("other");
  for (int i = 0; i < 1000; i++) prof_memory_alloc(pool, AT(0x1000 + i * 16), 10, 0);
  OK(prof_clear());
  prof_memory_alloc(other, AT(0x90000), 10, 0);
  prof_memory_alloc(other, AT(0x90100), 5, 0);
  prof_memory_free(other, AT(0x90100), 5);
  OK(prof_stop());
  seen s = see();
  const prof_memory_info quiet = info_of(&s, "quiet");
  prof_memory_info device = {.size = sizeof device};
  OK(prof_memory_device_get(s.memory, PROF_HOST, PROF_MEMORY_POOL, &device));
  assert_int_equal(quiet.missing_count, 0);
  assert_int_equal(quiet.end.used_bytes, 10000);
  assert_int_equal(device.peak_used.used_bytes, 10015); /* what the quiet one holds counts */
  assert_int_equal(device.end.used_bytes, 10010);
  look_away(&s);
  prof_pool_destroy(pool);
  prof_pool_destroy(other);
}

static void what_a_running_ring_misses_is_counted_beyond_a_million(void **state) {
  (void)state;
  enum { EVENTS = 2500000 };
  prof_stop();
  OK(prof_start_with(&(prof_options){
      .size = sizeof(prof_options), .policy = PROF_POLICY_RING, .cap_bytes = 1 << 20}));
  prof_pool *const pool = make_pool("running");
  for (int i = 0; i < EVENTS / 2; i++) {
    prof_memory_alloc(pool, AT(0x180000), 5, 0);
    prof_memory_free(pool, AT(0x180000), 5);
  }
  const prof_memory_info running = info_now("running");
  assert_int_equal(running.alloc_count + running.free_count + running.missing_count, EVENTS);
  OK(prof_stop());
  prof_pool_destroy(pool);
}

static void a_reset_among_a_million_events_finds_its_peak(void **state) {
  (void)state;
  start_afresh(256 * MIB);
  prof_pool *const pool = make_pool("reset");
  prof_memory_alloc(pool, AT(0x10000), 5000, 0); /* higher than all that comes after the reset */
  prof_memory_free(pool, AT(0x10000), 5000);
  for (int i = 0; i < 600000; i++) { /* more than half of what a number can count */
    prof_memory_alloc(pool, AT(0x180000), 5, 0);
    prof_memory_free(pool, AT(0x180000), 5);
  }
  OK(prof_memory_reset());
  prof_memory_alloc(pool, AT(0x10000), 500, 0);
  prof_memory_alloc(pool, AT(0x20000), 50, 0);
  prof_memory_free(pool, AT(0x20000), 50);
  OK(prof_stop());
  const prof_memory_info info = info_now("reset");
  assert_int_equal(info.peak_used.used_bytes, 550);
  assert_int_equal(info.peak_used.is_exact, 1);
  assert_int_equal(info.peak_used.live_count, 2);
  prof_pool_destroy(pool);
}

/* ---- others in one's place ---- */

static void a_child_knows_no_more_than_its_parent(void **state) {
  (void)state;
  prof_stop();
  prof_pool *const pool = make_pool("forked"); /* no query, and made before the start */
  start_afresh(4 * MIB);
  prof_memory_alloc(pool, AT(0x3000), 10, 0);
  const pid_t child = fork();
  if (child == 0) {
    prof_memory_free(pool, AT(0x1000), 100); /* from before the parent's start */
    const prof_memory_info info = info_now("forked");
    _exit(info.has_baseline == 0 && info.wrong_count[PROF_MEMORY_WRONG_UNKNOWN] == 0 &&
                  info.unsure_count == 1 && info.end.used_bytes == -90
              ? 0
              : 1);
  }
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  prof_pool_destroy(pool);
}

static int says_1000(void *none, uint64_t *used_out, uint64_t *allocated_out) {
  (void)none;
  *used_out = 1000;
  *allocated_out = 2000;
  return 0;
}
static int says_1500(void *none, uint64_t *used_out, uint64_t *allocated_out) {
  (void)none;
  *used_out = 1500;
  *allocated_out = 2000;
  return 0;
}

static void a_query_in_anothers_place_is_not_added_to_it(void **state) {
  (void)state;
  start_afresh(4 * MIB);
  OK(prof_memory_set_query(PROF_HOST, says_1000, NULL));
  PROFILE_MEMORY(PROF_HOST, "first");
  OK(prof_memory_set_query(PROF_HOST, says_1500, NULL));
  PROFILE_MEMORY(PROF_HOST, "second");
  OK(prof_stop());
  seen s = see();
  prof_memory_info device = {.size = sizeof device};
  OK(prof_memory_device_get(s.memory, PROF_HOST, PROF_MEMORY_QUERY, &device));
  assert_int_equal(device.peak_used.used_bytes, 1500);
  assert_int_equal(device.peak_allocated.allocated_bytes, 2000);
  assert_int_equal(device.end.used_bytes, 1500);
  assert_int_equal(device.sample_count, 2);
  look_away(&s);
  OK(prof_memory_set_query(PROF_HOST, NULL, NULL));
}

static void a_collection_from_before_a_start_does_not_count(void **state) {
  /* what the clocks may part by, and less than the collection that does not count took */
  enum { SLACK_NS = 10000000 };
  (void)state;
  start_afresh(4 * MIB);
  prof_pool *const pool = make_pool("collected");
  prof_memory_reserve(pool, AT(0x100000), MIB);
  const uint64_t before = prof_memory_collect_begin(pool);
  OK(prof_stop());
  usleep(20000);
  OK(prof_start(1));
  prof_memory_collect_end(pool, before);
  prof_memory_reserve(pool, AT(0x300000), 3 * MIB);
  const uint64_t begun_ns = now_ns(), begun = prof_memory_collect_begin(pool);
  prof_memory_release(pool, AT(0x300000), 3 * MIB);
  prof_memory_collect_end(pool, begun);
  const uint64_t most_ns = now_ns() - begun_ns + SLACK_NS;
  prof_memory_release(pool, AT(0x100000), MIB);
  OK(prof_stop());
  const prof_memory_info info = info_now("collected");
  assert_int_equal(info.collection_count, 1);
  assert_in_range(info.collection_ns, 0, most_ns);
  assert_int_equal(info.collection_released_bytes, 3 * MIB);
  prof_trace *trace;
  prof_cursor *cursor;
  prof_event event;
  uint64_t collect_ns = 0;
  OK(prof_get(&trace));
  OK(prof_cursor_create(trace, &cursor));
  while (prof_cursor_next(cursor, &event) > 0)
    if (event.kind == PROF_EVENT_MEMORY && event.memory.verb == PROF_MEMORY_COLLECT)
      collect_ns = event.duration_ns;
  prof_cursor_destroy(cursor);
  prof_trace_destroy(trace);
  assert_in_range(collect_ns, 1, most_ns);
  prof_pool_destroy(pool);
}

static void pieces_of_no_bytes_disturb_nobody(void **state) {
  (void)state;
  for (uint32_t checked = 0; checked < 2; checked++) {
    start_afresh(4 * MIB);
    prof_pool *const pool = checked ? make_checked_pool("empty") : make_pool("empty");
    prof_memory_alloc(pool, AT(0x1000), 0, 0); /* as a bump allocator gives them out */
    prof_memory_alloc(pool, AT(0x1000), 64, 0);
    prof_memory_free(pool, AT(0x1000), 0);
    prof_memory_info info = info_now("empty");
    assert_int_equal(info.end.used_bytes, 64);
    assert_int_equal(info.end.live_bytes, 64);
    prof_memory_free(pool, AT(0x1000), 64);
    OK(prof_stop());
    info = info_now("empty");
    assert_int_equal(info.end.used_bytes, 0);
    for (int i = 0; i < PROF_MEMORY_WRONG_COUNT; i++) assert_int_equal(info.wrong_count[i], 0);
    prof_pool_destroy(pool);
  }
}

static void a_device_grows_as_its_pools_do_together(void **state) {
  (void)state;
  start_afresh(4 * MIB);
  prof_pool *const a = make_pool("a"), *const b = make_pool("b");
  for (uintptr_t step = 0; step < 3; step++) {
    prof_memory_alloc(a, AT(0x10000 + step * 0x1000), step == 1 ? 1000 : 10, 0);
    prof_memory_alloc(b, AT(0x90000 + step * 0x1000), step == 1 ? 500 : 10, 0);
    prof_step();
  }
  OK(prof_stop());
  seen s = see();
  prof_memory_info device = {.size = sizeof device};
  OK(prof_memory_device_get(s.memory, PROF_HOST, PROF_MEMORY_POOL, &device));
  assert_int_equal(device.growth_bytes, 1500);
  assert_int_equal(device.growth_step, 1);
  look_away(&s);
  prof_pool_destroy(a);
  prof_pool_destroy(b);
}

static void a_failed_allocation_is_told(void **state) {
  (void)state;
  start_afresh(4 * MIB);
  prof_pool *const pool = make_pool("short");
  prof_memory_reserve(pool, AT(0x100000), MIB);
  prof_memory_alloc(pool, AT(0x100000), 1000, 0);
  WITH_BASE_PROFILER(PROF_HOST, "dense", "operator", PROF_NO_ARGS,
                     { prof_memory_oom(PROF_HOST, 2 * MIB); });
  OK(prof_stop());
  seen s = see();
  char *text = NULL;
  OK(prof_memory_text(
      s.memory, &(prof_memory_text_options){.size = sizeof(prof_memory_text_options), .width = 200},
      &text));
  assert_non_null(strstr(text, "2.00 MiB (2097152 bytes) could not be had at "));
  assert_non_null(strstr(text, " in dense: 1000 B were used then, 1.00 MiB allocated"));
  prof_free(text);
  look_away(&s);
  prof_pool_destroy(pool);
}

static void without_blocks_what_is_allocated_is_not_told(void **state) {
  (void)state;
  start_afresh(4 * MIB);
  prof_pool *const pool = make_pool("no blocks");
  prof_memory_alloc(pool, AT(0x1000), 64, 0);
  assert_int_equal(max_of(PROF_MEMORY_POOL).has_allocated, 0);
  prof_memory_reserve(pool, AT(0x100000), MIB);
  assert_int_equal(max_of(PROF_MEMORY_POOL).has_allocated, 1);
  OK(prof_stop());
  prof_pool_destroy(pool);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_start_while_others_allocate_counts_each_piece_once),
      cmocka_unit_test(so_does_a_checked_pool),
      cmocka_unit_test(a_baseline_that_cannot_be_had_is_told_as_near),
      cmocka_unit_test(after_a_clear_what_is_allocated_is_known),
      cmocka_unit_test(in_a_ring_that_has_gone_round_too),
      cmocka_unit_test(a_cleared_pool_without_events_misses_none),
      cmocka_unit_test(what_a_running_ring_misses_is_counted_beyond_a_million),
      cmocka_unit_test(a_reset_among_a_million_events_finds_its_peak),
      cmocka_unit_test(a_child_knows_no_more_than_its_parent),
      cmocka_unit_test(a_query_in_anothers_place_is_not_added_to_it),
      cmocka_unit_test(a_collection_from_before_a_start_does_not_count),
      cmocka_unit_test(pieces_of_no_bytes_disturb_nobody),
      cmocka_unit_test(a_device_grows_as_its_pools_do_together),
      cmocka_unit_test(a_failed_allocation_is_told),
      cmocka_unit_test(without_blocks_what_is_allocated_is_not_told),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
