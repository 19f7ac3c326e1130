/* Blocks: what of a capture in memory lies in private memory, how the cap is used up, what is left
   for slots after a clear, what a child gets, and what happens where private memory is refused. */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <prof/profiler.h>
#include <prof/trace.h>

#include "core/blocks.h"

enum { CAP_BYTES = 64 << 20, SCOPES_A_MIB = 65536, MOST_EXTENTS = 4096 };

static void start(uint32_t policy, uint64_t cap_bytes) {
  const prof_options another = {.size = sizeof another, .cap_bytes = 3 << 20};
  const prof_options options = {.size = sizeof options, .policy = policy, .cap_bytes = cap_bytes};
  if (prof_level()) prof_stop();
  assert_int_equal(prof_start_with(&another), PROF_OK); /* so that the arena is a new one */
  assert_int_equal(prof_stop(), PROF_OK);
  assert_int_equal(prof_start_with(&options), PROF_OK);
}

static void record(uint64_t count) {
  for (uint64_t i = 0; i < count; i++)
    WITH_BASE_PROFILER(PROF_HOST, "scope", "x", PROF_NO_ARGS, {});
}

static prof_health health_now(void) {
  prof_health health = {.size = sizeof health};
  assert_int_equal(prof_health(&health), PROF_OK);
  return health;
}

typedef struct extent_seen {
  uint64_t offset, bytes;
  prof_i_extent_kind kind;
  bool is_private;
} extent_seen;

static extent_seen seen[MOST_EXTENTS];

static size_t see_extents(void) {
  const uint64_t end = prof_i_arena_readable_bytes();
  size_t count = 0;
  uint64_t after = 0;
  for (const prof_i_head *head; (head = prof_i_arena_next(&after, end)) != NULL;) {
    assert_true(count < MOST_EXTENTS);
    const uint64_t offset = after - head->bytes;
    seen[count++] =
        (extent_seen){offset, head->bytes, prof_i_head_kind(head), prof_i_block_is_private(offset)};
  }
  return count;
}

static void *record_one(void *unused) {
  record(1);
  return unused;
}

/* The first of a kind that is private where it must not be, or the other way round. */
static void only_large_chunks_are_private(uint32_t policy) {
  start(policy, CAP_BYTES);
  for (int i = 0; i < 20; i++) {
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, record_one, NULL), 0);
    record(SCOPES_A_MIB);
    assert_int_equal(pthread_join(thread, NULL), 0);
  }
  const uint64_t large = prof_i_the_arena.chunk_bytes_max;
  const size_t count = see_extents();
  size_t private_count = 0;
  for (size_t i = 0; i < count; i++) {
    const extent_seen *const e = &seen[i];
    const bool is_large = e->kind == PROF_I_EXTENT_CHUNK && e->bytes == large;
    assert_int_equal(e->is_private, is_large);
    assert_int_equal(e->offset / PROF_I_BLOCK_BYTES,
                     (e->offset + e->bytes - 1) / PROF_I_BLOCK_BYTES);
    private_count += e->is_private;
  }
  assert_in_range(private_count, 18, 24);
}

static void large_chunks_are_private_and_nothing_else_is(void **state) {
  (void)state;
  only_large_chunks_are_private(PROF_POLICY_KEEP);
  only_large_chunks_are_private(PROF_POLICY_RING);
}

static void small_captures_have_no_blocks(void **state) {
  (void)state;
  start(PROF_POLICY_KEEP, 8 << 20);
  assert_false(prof_i_the_arena.has_blocks);
  start(PROF_POLICY_KEEP, CAP_BYTES);
  assert_true(prof_i_the_arena.has_blocks);
  assert_int_equal((uintptr_t)prof_i_the_arena.base % PROF_I_BLOCK_BYTES, 0);
}

/* Also where the last block is short. */
static void the_cap_is_used_up_to_its_last_unit(void **state) {
  (void)state;
  const uint64_t caps[] = {16 << 20, (17 << 20) + PROF_I_UNIT_BYTES,
                           CAP_BYTES + 5 * PROF_I_UNIT_BYTES};
  for (size_t c = 0; c < sizeof caps / sizeof *caps; c++) {
    const uint64_t attempts = caps[c] / 16 + 100000;
    start(PROF_POLICY_KEEP, caps[c]);
    record(attempts);
    const prof_health health = health_now();
    assert_int_equal(health.is_full, 1);
    assert_int_equal(health.recorded_count + health.lost_count[PROF_LOSS_FULL], attempts);
    assert_int_equal(health.cap_bytes, caps[c]);
    assert_int_equal(health.arena_bytes, caps[c]);
    uint64_t sum = PROF_I_FIRST_UNIT_OFFSET;
    const size_t count = see_extents();
    for (size_t i = 0; i < count; i++) sum += seen[i].bytes;
    assert_int_equal(sum, caps[c]);
  }
}

/* ---- slots after a clear ---- */

enum { THREADS = 8 };
static pthread_barrier_t together;

static void *record_together(void *unused) {
  record(1);
  pthread_barrier_wait(&together);
  return unused;
}

/* Nothing of the cap is left, and what comes back is in private memory, mostly. */
static void threads_find_slots_after_a_full_capture_was_cleared(void **state) {
  (void)state;
  pthread_t threads[THREADS];
  start(PROF_POLICY_KEEP, 16 << 20);
  record(20 * SCOPES_A_MIB);
  assert_int_equal(health_now().is_full, 1);
  assert_int_equal(prof_clear(), PROF_OK);
  pthread_barrier_init(&together, NULL, THREADS);
  for (int i = 0; i < THREADS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, record_together, NULL), 0);
  for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
  const prof_health health = health_now();
  assert_int_equal(health.lost_count[PROF_LOSS_NO_THREAD], 0);
  assert_int_equal(health.recorded_count, THREADS);
  const size_t count = see_extents();
  for (size_t i = 0; i < count; i++)
    if (seen[i].kind == PROF_I_EXTENT_SLOT) assert_false(seen[i].is_private);
}

/* ---- a child ---- */

static uint64_t first_private_chunk(void) {
  const size_t count = see_extents();
  for (size_t i = 0; i < count; i++)
    if (seen[i].is_private) return seen[i].offset;
  fail_msg("no chunk is private");
  return 0;
}

/* Does the child of a fork without handlers have that word? */
static bool child_has(const volatile uint64_t *word, uint64_t value) {
  int status = -1;
  const pid_t child = (pid_t)syscall(SYS_fork);
  if (child == 0) _exit(*word == value ? 1 : *word == 0 ? 0 : 2);
  assert_true(child > 0);
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) < 2);
  return WEXITSTATUS(status) == 1;
}

static void a_child_gets_what_a_trace_shows_and_no_more(void **state) {
  (void)state;
#ifndef SYS_fork
  skip();
#else
  prof_trace *trace = NULL;
  start(PROF_POLICY_KEEP, CAP_BYTES);
  record(4 * SCOPES_A_MIB);
  const volatile uint64_t *const word =
      (const uint64_t *)(const void *)(prof_i_the_arena.base + first_private_chunk() +
                                       PROF_I_HEAD_BYTES);
  const uint64_t value = *word; /* a record's first */
  assert_int_not_equal(value, 0);
  assert_false(child_has(word, value));
  assert_int_equal(prof_get(&trace), PROF_OK);
  assert_true(child_has(word, value));
  assert_int_equal(prof_clear(), PROF_OK);
  assert_true(child_has(word, value));
  prof_trace_destroy(trace);
  assert_false(child_has(word, value)); /* its room has come back */
#endif
}

/* ---- refused ---- */

static void memory_that_is_refused_is_shared(void **state) {
  (void)state;
  struct rlimit was, none;
  start(PROF_POLICY_KEEP, CAP_BYTES);
  record(1000);
  assert_int_equal(getrlimit(RLIMIT_DATA, &was), 0);
  none = (struct rlimit){4096, was.rlim_max}; /* 0 is let through, for valgrind */
  assert_int_equal(setrlimit(RLIMIT_DATA, &none), 0);
  record(8 * SCOPES_A_MIB);
  assert_int_equal(setrlimit(RLIMIT_DATA, &was), 0);
  const prof_health health = health_now();
  assert_int_equal(health.recorded_count, 8 * SCOPES_A_MIB + 1000);
  for (int i = 0; i < PROF_LOSS_COUNT; i++) assert_int_equal(health.lost_count[i], 0);
  const size_t count = see_extents();
  for (size_t i = 0; i < count; i++) assert_false(seen[i].is_private);
}

/* ---- held ---- */

/* Each is of a capture of its own, all of which are gone. */
static void traces_of_many_replaced_captures_go_in_any_order(void **state) {
  (void)state;
  enum { TRACES = 12 };
  prof_trace *traces[TRACES];
  for (int i = 0; i < TRACES; i++) {
    start(PROF_POLICY_KEEP, CAP_BYTES);
    record(2 * SCOPES_A_MIB + (uint64_t)i);
    assert_int_equal(prof_get(&traces[i]), PROF_OK);
  }
  for (int i = 0; i < TRACES; i++) {
    const int at = i * 5 % TRACES;
    uint64_t count = 0;
    prof_trace_info info = {.size = sizeof info};
    assert_int_equal(prof_trace_info_get(traces[at], &info), PROF_OK);
    assert_int_equal(info.bad_count, 0);
    static prof_event event;
    prof_cursor *cursor = NULL;
    assert_int_equal(prof_cursor_create(traces[at], &cursor), PROF_OK);
    while (prof_cursor_next(cursor, &event) == 1) count++;
    prof_cursor_destroy(cursor);
    assert_int_equal(count, 2 * SCOPES_A_MIB + at);
    prof_trace_destroy(traces[at]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(large_chunks_are_private_and_nothing_else_is),
      cmocka_unit_test(small_captures_have_no_blocks),
      cmocka_unit_test(the_cap_is_used_up_to_its_last_unit),
      cmocka_unit_test(threads_find_slots_after_a_full_capture_was_cleared),
      cmocka_unit_test(a_child_gets_what_a_trace_shows_and_no_more),
      cmocka_unit_test(memory_that_is_refused_is_shared),
      cmocka_unit_test(traces_of_many_replaced_captures_go_in_any_order),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
