/* prof_memory_reset() and prof_clear() while threads hand out and take back at one pool at full
   rate. Each thread never holds more than HELD pieces, and counts what it holds. So what is used is
   known within bounds at any moment. After each reset the peaks, read in the process, are at least
   what is used, and at most what can have been reached. When the threads have stopped, the peak
   after a reset is what is used, to the byte. The capture's contents in the end fit the losses that
   health reports. The peak is at least the sum of any record since the last reset.

   PROF_RESET_SECONDS: how long each test lasts (2). */
#define _GNU_SOURCE
#include <prof/memory.h>
#include <prof/trace.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

enum { CALLS_MOST = 4000000 }; /* a thread's: six times what the capture has room for */
enum {
  THREADS = 3,
  HELD = 16,
  PIECE_BYTES = 4096,
  BASE_PIECES = 5,
  BASE_BYTES = BASE_PIECES * PIECE_BYTES,
  MOST = BASE_BYTES + THREADS * HELD * PIECE_BYTES
};

static struct {
  prof_pool *pool;
  uint32_t is_over, done_count; /* atomic */
  uint64_t calls_most;
  uint64_t calls[THREADS];
  double seconds;
} own;

static const void *address_of(uint64_t thread, uint64_t piece) {
  return (const void *)(uintptr_t)((thread + 1) << 32 | (piece + 1) * PIECE_BYTES);
}

static void *work(void *of) {
  const uint64_t thread = (uint64_t)(uintptr_t)of;
  uint64_t calls = 0, held = 0, random = thread + 1;
  while (!__atomic_load_n(&own.is_over, __ATOMIC_ACQUIRE) && calls < own.calls_most) {
    random = random * 6364136223846793005ull + 1442695040888963407ull;
    const uint64_t wanted = (random >> 33) % (HELD + 1);
    for (; held < wanted; held++, calls++)
      prof_memory_alloc(own.pool, address_of(thread, held), PIECE_BYTES, 0);
    for (; held > wanted; held--, calls++)
      prof_memory_free(own.pool, address_of(thread, held - 1), PIECE_BYTES);
  }
  own.calls[thread] = calls;
  __atomic_fetch_add(&own.done_count, 1, __ATOMIC_RELEASE);
  return (void *)(uintptr_t)held;
}

static double now(void) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

static void begin(prof_policy policy, uint64_t cap_bytes, uint64_t calls_most) {
  own.is_over = own.done_count = 0;
  own.calls_most = calls_most;
  assert_int_equal(prof_start_with(&(prof_options){
                       .size = sizeof(prof_options), .policy = policy, .cap_bytes = cap_bytes}),
                   PROF_OK);
  assert_int_equal(
      prof_pool_create(
          &(prof_pool_options){.size = sizeof(prof_pool_options), .name = "under load"}, &own.pool),
      PROF_OK);
  prof_memory_reserve(own.pool, address_of(90, 0), 1 << 20);
  for (uint64_t i = 0; i < BASE_PIECES; i++)
    prof_memory_alloc(own.pool, address_of(80, i), PIECE_BYTES, 0);
}

static prof_memory_max check_max(void) {
  prof_memory_max max = {.size = sizeof max};
  assert_int_equal(prof_memory_max_get(PROF_HOST, PROF_MEMORY_POOL, &max), PROF_OK);
  assert_in_range(max.max_used_bytes, BASE_BYTES, MOST);
  assert_in_range(max.used_bytes, BASE_BYTES, MOST);
  assert_int_equal(max.max_allocated_bytes, 1 << 20);
  return max;
}

typedef int again_function(void);

static uint64_t meddle(again_function *again) {
  pthread_t threads[THREADS];
  uint64_t count = 0, held = 0;
  for (uintptr_t i = 0; i < THREADS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, work, (void *)i), 0);
  for (const double end = now() + own.seconds;
       now() < end && __atomic_load_n(&own.done_count, __ATOMIC_ACQUIRE) < THREADS; count++) {
    assert_int_equal(again(), PROF_OK);
    check_max();
    if (count % 64 == 63) nanosleep(&(const struct timespec){0, 1000000}, NULL);
  }
  __atomic_store_n(&own.is_over, 1, __ATOMIC_RELEASE);
  for (int i = 0; i < THREADS; i++) {
    void *left = NULL;
    assert_int_equal(pthread_join(threads[i], &left), 0);
    held += (uint64_t)(uintptr_t)left;
  }
  const prof_memory_max before = check_max();
  assert_int_equal(before.used_bytes, BASE_BYTES + held * PIECE_BYTES);
  assert_true(before.max_used_bytes >= before.used_bytes);
  assert_int_equal(again(), PROF_OK);
  const prof_memory_max after = check_max();
  assert_int_equal(after.max_used_bytes, BASE_BYTES + held * PIECE_BYTES);
  return count;
}

/* The last piece is a known one, so that something stands behind the last clear. */
static void end_with_a_spike(prof_memory **memory_out, prof_trace **trace_out) {
  prof_memory_alloc(own.pool, address_of(70, 0), 100 * PIECE_BYTES, 0);
  prof_memory_free(own.pool, address_of(70, 0), 100 * PIECE_BYTES);
  assert_int_equal(prof_stop(), PROF_OK);
  assert_int_equal(prof_get(trace_out), PROF_OK);
  assert_int_equal(prof_memory_read(*trace_out, memory_out), PROF_OK);
}

static prof_memory_info last_info(const prof_memory *memory) {
  prof_memory_info info = {.size = sizeof info};
  assert_int_equal(prof_memory_pool_get(memory, prof_memory_pool_count(memory) - 1, &info),
                   PROF_OK);
  return info;
}

static void give_back(prof_memory *memory, prof_trace *trace) {
  prof_memory_destroy(memory);
  prof_trace_destroy(trace);
  prof_pool_destroy(own.pool);
}

static void peaks_are_right_while_they_are_reset(void **state) {
  (void)state;
  prof_memory *memory;
  prof_trace *trace;
  prof_trace_info about = {.size = sizeof about};
  begin(PROF_POLICY_KEEP, 64 << 20, CALLS_MOST);
  const uint64_t count = meddle(prof_memory_reset);
  prof_memory_max max = {.size = sizeof max};
  end_with_a_spike(&memory, &trace);
  assert_int_equal(prof_trace_info_get(trace, &about), PROF_OK);
  const prof_memory_info info = last_info(memory);
  uint64_t calls = BASE_PIECES + 1 + 2;
  for (int i = 0; i < THREADS; i++) calls += own.calls[i];
  const uint64_t recorded = info.alloc_count + info.free_count + info.reserve_count;
  assert_int_equal(prof_memory_max_get(PROF_HOST, PROF_MEMORY_POOL, &max), PROF_OK);
  assert_int_equal(info.peak_used.used_bytes, max.max_used_bytes);
  assert_int_equal(info.peak_used.used_bytes, max.used_bytes + 100 * PIECE_BYTES);
  assert_int_equal(
      recorded + about.lost_count[PROF_LOSS_FULL] + about.lost_count[PROF_LOSS_NO_THREAD], calls);
  assert_int_equal(info.missing_count, calls - recorded);
  assert_int_equal(about.bad_count, 0);
  print_message("  %llu resets, %llu calls, %llu recorded\n", (unsigned long long)count,
                (unsigned long long)calls, (unsigned long long)recorded);
  give_back(memory, trace);
}

static void peaks_are_right_while_all_is_cleared(void **state) {
  (void)state;
  prof_memory *memory;
  prof_trace *trace;
  prof_trace_info about = {.size = sizeof about};
  prof_memory_max max = {.size = sizeof max};
  begin(PROF_POLICY_KEEP, 64 << 20, UINT64_MAX);
  const uint64_t count = meddle(prof_clear);
  end_with_a_spike(&memory, &trace);
  assert_int_equal(prof_trace_info_get(trace, &about), PROF_OK);
  assert_int_equal(about.bad_count, 0);
  const prof_memory_info info = last_info(memory);
  assert_int_equal(prof_memory_max_get(PROF_HOST, PROF_MEMORY_POOL, &max), PROF_OK);
  assert_int_equal(info.peak_used.used_bytes, max.max_used_bytes);
  assert_int_equal(info.peak_used.used_bytes, max.used_bytes + 100 * PIECE_BYTES);
  assert_int_equal(info.missing_count, 0); /* of what stands since the last clear */
  assert_int_equal(info.alloc_count, 1);
  assert_int_equal(info.free_count, 1);
  print_message("  %llu clears\n", (unsigned long long)count);
  give_back(memory, trace);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(peaks_are_right_while_they_are_reset),
                                     cmocka_unit_test(peaks_are_right_while_all_is_cleared)};
  const char *const seconds = getenv("PROF_RESET_SECONDS");
  own.seconds = seconds ? strtod(seconds, NULL) : 2;
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
