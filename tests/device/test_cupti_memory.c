/* What CUDA hands out and takes back, as CUPTI records it, on an emulated driver and an emulated
   CUPTI (vendors: no device is behind them). Pools of devices, of managed and of pinned memory, to
   the byte; late reports; threads; and no records if no owner requests them. */
#define _GNU_SOURCE
#include <prof/device.h>
#include <prof/memory.h>
#include <prof/profiler.h>
#include <prof/trace.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "alone.h"
#include "cupti_program.h"

static void begin(void) {}

static unsigned long long allocate(size_t bytes) {
  unsigned long long at;
  assert_int_equal(cu.cuMemAlloc_v2(&at, bytes), 0);
  return at;
}

static void start_with_memory(void) {
  const prof_options options = {.size = sizeof options, .level = 1, .devices = PROF_DEVICES_MEMORY};
  assert_int_equal(prof_start_with(&options), PROF_OK);
}

/* A pool's, by name; of the last recording. */
static prof_memory_info pool_of(const prof_trace *trace, const char *name, int index) {
  prof_memory *memory = NULL;
  prof_memory_info info = {.size = sizeof info}, it = {0};
  assert_int_equal(prof_memory_read(trace, &memory), PROF_OK);
  for (uint32_t i = 0; i < prof_memory_pool_count(memory); i++) {
    assert_int_equal(prof_memory_pool_get(memory, i, &info), PROF_OK);
    if (strcmp(info.name, name) == 0 &&
        (info.device.type == PROF_DEVICE_CPU || info.device.index == index))
      it = info;
  }
  prof_memory_destroy(memory);
  if (!it.size) fail_msg("there is no pool %s of %d", name, index);
  return it;
}

static void has(const prof_memory_info *pool, uint64_t allocs, uint64_t frees, int64_t peak,
                int64_t end) {
  if (pool->alloc_count != allocs || pool->free_count != frees ||
      pool->peak_used.used_bytes != peak || pool->end.used_bytes != end)
    fail_msg("%s: %lu allocs, %lu frees, a peak of %ld and %ld at the end", pool->name,
             (unsigned long)pool->alloc_count, (unsigned long)pool->free_count,
             (long)pool->peak_used.used_bytes, (long)pool->end.used_bytes);
  assert_int_equal(pool->end.live_bytes, end);
  assert_int_equal(pool->missing_count + pool->refused_count + pool->unsure_count, 0);
  for (int i = 0; i < PROF_MEMORY_WRONG_COUNT; i++) assert_int_equal(pool->wrong_count[i], 0);
}

static void memory_is_added_up_where_that_is_asked_for(void **state) {
  (void)state;
  void *pinned;
  unsigned long long managed;
  load_cupti("libcupti.so.13");
  begin_on(1);
  begin_on(0);
  const unsigned long long before = allocate(7000);
  start_with_memory();
  const unsigned long long first = allocate(1000), second = allocate(2000);
  cu.cuMemFree_v2(first);
  cu.cuMemFree_v2(before); /* nobody told of it when it was handed out */
  const unsigned long long third = allocate(500);
  assert_int_equal(cu.cuMemAllocHost_v2(&pinned, 300), 0);
  assert_int_equal(cu.cuMemAllocManaged(&managed, 40, 1), 0);
  cu.cuMemFree_v2(managed);
  begin_on(1);
  allocate(11);
  prof_trace *trace = stop_and_get();
  nothing_is_lost(trace);
  prof_memory_info pool = pool_of(trace, "cuda memory", 0);
  has(&pool, 3, 1, 3000, 2500);
  assert_true(pool.peak_used.is_exact);
  assert_int_equal(pool.device.type, PROF_DEVICE_CUDA);
  pool = pool_of(trace, "cuda memory", 1);
  has(&pool, 1, 0, 11, 11);
  pool = pool_of(trace, "cuda managed memory", 0);
  has(&pool, 1, 1, 40, 0);
  pool = pool_of(trace, "cuda pinned memory", 0);
  has(&pool, 1, 0, 300, 300);
  assert_int_equal(pool.device.type, PROF_DEVICE_CPU);
  prof_trace_destroy(trace);
  start_with_memory(); /* what is live from the first recording is not known in the second */
  cu.cuMemFree_v2(second);
  cu.cuMemFree_v2(third);
  allocate(64);
  trace = stop_and_get();
  nothing_is_lost(trace);
  pool = pool_of(trace, "cuda memory", 1);
  has(&pool, 1, 0, 64, 64);
  prof_trace_destroy(trace);
}

/* A piece's time is its call's: inside of the scope around that, to the clocks' nearness. */
static void memory_stands_at_its_time(void **state) {
  (void)state;
  static prof_event event;
  prof_cursor *cursor = NULL;
  uint64_t begun = 0, ended = 0, at = 0;
  load_cupti("libcupti.so.13");
  begin_on(0);
  start_with_memory();
  usleep(300000);
  WITH_BASE_PROFILER(PROF_HOST, "allocate", "model", PROF_NO_ARGS, {
    allocate(4096);
    usleep(2000);
  });
  usleep(300000);
  prof_trace *const trace = stop_and_get();
  assert_int_equal(prof_cursor_create(trace, &cursor), PROF_OK);
  while (prof_cursor_next(cursor, &event) == 1) {
    if (is_text(event.name, event.name_bytes, "allocate"))
      begun = event.start_ns, ended = event.start_ns + event.duration_ns;
    if (event.kind == PROF_EVENT_MEMORY) at = event.start_ns;
  }
  assert_in_range(at, begun - 100000, ended);
  assert_true(begun > 0 && ended - begun >= 2000000);
  prof_cursor_destroy(cursor);
  prof_trace_destroy(trace);
}

/* An alloc that CUPTI reports after its release, as it may be out of another buffer, when its
   address is another piece's already: it is lost, and counted. */
static void memory_that_is_told_late_is_not_held_for_good(void **state) {
  (void)state;
  load_cupti("libcupti.so.13");
  begin_on(0);
  start_with_memory();
  cupti->late_pieces = 1;
  const unsigned long long late = allocate(9000);
  cu.cuMemFree_v2(late);
  for (int i = 0; i < 400; i++) {
    const unsigned long long a = allocate(100), b = allocate(200);
    cu.cuMemFree_v2(a);
    cu.cuMemFree_v2(b);
  }
  settle(1); /* it is lost: pieces are no records */
  allocate(5);
  prof_trace *const trace = stop_and_get();
  assert_int_equal(sums_of(trace).lost[PROF_LOSS_DEVICE_LATE], 1);
  const prof_memory_info pool = pool_of(trace, "cuda memory", 0);
  has(&pool, 801, 800, 300, 5);
  prof_trace_destroy(trace);
}

static void *churn(void *own) {
  const worker *const w = own;
  cu.cuCtxPushCurrent_v2(w->context);
  for (int i = 0; i < 300; i++) cu.cuMemFree_v2(allocate(1000));
  return NULL;
}

static void memory_of_threads_comes_out_even(void **state) {
  (void)state;
  static worker all[THREADS];
  load_cupti("libcupti.so.13");
  begin_on(0);
  start_with_memory();
  for (int i = 0; i < THREADS; i++) {
    cu.cuCtxGetCurrent(&all[i].context);
    assert_int_equal(pthread_create(&all[i].thread, NULL, churn, &all[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) pthread_join(all[i].thread, NULL);
  prof_trace *const trace = stop_and_get();
  nothing_is_lost(trace);
  const prof_memory_info pool = pool_of(trace, "cuda memory", 0);
  assert_int_equal(pool.alloc_count, 300 * THREADS);
  assert_int_equal(pool.end.used_bytes, 0);
  assert_in_range(pool.peak_used.used_bytes, 1000, THREADS * 1000);
  prof_trace_destroy(trace);
}

/* Records of kernels alone are no memory. */
static void memory_is_not_recorded_unasked(void **state) {
  (void)state;
  prof_memory *memory = NULL;
  begin_recording(2);
  allocate(1000);
  prof_trace *const trace = stop_and_get();
  assert_int_equal(prof_memory_read(trace, &memory), PROF_OK);
  assert_int_equal(prof_memory_pool_count(memory), 0);
  prof_memory_destroy(memory);
  prof_trace_destroy(trace);
}

#define TESTS(X)                                   \
  X(memory_is_added_up_where_that_is_asked_for)    \
  X(memory_stands_at_its_time)                     \
  X(memory_that_is_told_late_is_not_held_for_good) \
  X(memory_of_threads_comes_out_even)              \
  X(memory_is_not_recorded_unasked)
ALONE_TESTS

int main(int argc, char **argv) { return alone_main(argc, argv); }
