/* Blocks: what of a capture in memory lies in private memory, how the cap is used up, what is left
   for slots after a clear, what a child gets. Also what happens where private memory is refused. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <prof/profiler.h>
#include <prof/trace.h>

#include "api/sanitizers.h"
#include "core/buffer/blocks.h"
#include "core/buffer/thread.h"
#include "core/session/control.h"
#include "fresh_arena.h"
#include "health.h"
#include "mappings.h"

enum { CAP_BYTES = 64 << 20, SCOPES_A_MIB = 65536, MOST_EXTENTS = 4096 };

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

/* Blocks that stand in a row are one mapping: a process has 65530. */
static void blocks_take_few_mappings(void **state) {
  enum { FILLED_MIB = 48, MORE = 12 };
  (void)state;
  if (WITH_ASAN || WITH_TSAN) skip(); /* a sanitizer has mappings of its own */
  start(PROF_POLICY_KEEP, CAP_BYTES);
  const long before = mappings();
  record(FILLED_MIB * SCOPES_A_MIB);
  assert_in_range(mappings(), 0, before + MORE);
}

/* Also where the last block is short. */
static void the_cap_is_used_up_to_its_last_unit(void **state) {
  (void)state;
  const uint64_t caps[] = {16 << 20, (17 << 20) + PROF_I_UNIT_BYTES,
                           CAP_BYTES + 5 * PROF_I_UNIT_BYTES};
  /* one thread's work: ThreadSanitizer has nothing to see there, and fills the largest slowly */
  const size_t cap_count = sizeof caps / sizeof *caps - WITH_TSAN;
  for (size_t c = 0; c < cap_count; c++) {
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
  if (WITH_TSAN) skip(); /* it ends a program whose limit leaves itself no memory */
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

/* What the host may take is limited: it would lack what private memory takes of it. */
static void limited_hosts_have_no_blocks(void **state) {
  (void)state;
  static const int limits[] = {RLIMIT_AS, RLIMIT_DATA};
  for (int i = 0; i < 2; i++) {
    struct rlimit was;
    assert_int_equal(getrlimit(limits[i], &was), 0);
    const struct rlimit far = {RLIM_INFINITY - 1, was.rlim_max};
    assert_int_equal(setrlimit(limits[i], &far), 0);
    start(PROF_POLICY_KEEP, CAP_BYTES);
    record(2 * SCOPES_A_MIB);
    const bool has_blocks = prof_i_the_arena.has_blocks;
    assert_int_equal(setrlimit(limits[i], &was), 0);
    assert_false(has_blocks);
    assert_int_equal(health_now().recorded_count, 2 * SCOPES_A_MIB);
  }
}

/* A fork would count private memory a second time, and be refused. Seen only where this process
   may mount. */
static int record_under_strict_overcommit(void) {
  static const char rule[] = "/proc/sys/vm/overcommit_memory";
  char path[] = "/tmp/prof-strict-XXXXXX";
  const int fd = mkstemp(path);
  const bool is_strict = fd >= 0 && write(fd, "2\n", 2) == 2 && unshare(CLONE_NEWNS) == 0 &&
                         mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
                         mount(path, rule, NULL, MS_BIND, NULL) == 0;
  if (fd >= 0) unlink(path);
  if (!is_strict) return 2;
  start(PROF_POLICY_KEEP, CAP_BYTES);
  record(4 * SCOPES_A_MIB);
  return prof_i_the_arena.has_blocks || health_now().recorded_count != 4 * SCOPES_A_MIB;
}

static void strict_overcommit_has_no_blocks(void **state) {
  (void)state;
  int status = -1;
  fflush(NULL);
  const pid_t child = fork();
  if (child == 0) _exit(record_under_strict_overcommit());
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  if (WEXITSTATUS(status) == 2) {
    print_message("skip: this process may not mount\n");
    skip();
  }
  assert_int_equal(WEXITSTATUS(status), 0);
}

/* ---- cleared ---- */

/* The kernel keeps pages that the host has locked. */
static void locked_memory_is_empty_after_a_clear(void **state) {
  (void)state;
  start(PROF_POLICY_KEEP, CAP_BYTES);
  record(4 * SCOPES_A_MIB);
  const uint64_t chunk = first_private_chunk();
  const uint64_t *const words = (const uint64_t *)(const void *)(prof_i_the_arena.base + chunk);
  const uint64_t first = 4096 / sizeof *words; /* behind the page with the head */
  const uint64_t count = PROF_I_CHUNK_BYTES_MAX / sizeof *words;
  if (mlock(words, PROF_I_CHUNK_BYTES_MAX) != 0) {
    print_message("skip: this process may not lock 1 MiB\n");
    skip();
  }
  assert_int_not_equal(words[first], 0);
  assert_int_equal(prof_clear(), PROF_OK);
  for (uint64_t i = first; i < count; i++) assert_int_equal(words[i], 0);
  munlock(words, PROF_I_CHUNK_BYTES_MAX);
}

/* ---- from outside ---- */

/* The memfd alone, as another process may see it, must not pass for the capture. */
static void a_part_of_the_memory_is_no_capture(void **state) {
  (void)state;
  static _Alignas(8) unsigned char part[PROF_I_FIRST_UNIT_OFFSET + PROF_I_UNIT_BYTES];
  prof_trace *trace = NULL;
  for (int is_private = 0; is_private < 2; is_private++) {
    char path[] = "/tmp/prof-part-XXXXXX";
    start(PROF_POLICY_KEEP, CAP_BYTES);
    record(is_private ? 4 * SCOPES_A_MIB : 1);
    memcpy(part, prof_i_the_arena.base, PROF_I_FIRST_UNIT_OFFSET);
    const int expected = is_private ? PROF_E_NOT_CAPTURE : PROF_OK;
    assert_int_equal(prof_trace_open_bytes(part, sizeof part, &trace), expected);
    if (is_private) assert_non_null(strstr(prof_last_error(), "prof_dump()"));
    if (!is_private) prof_trace_destroy(trace);
    const int fd = mkstemp(path);
    assert_true(fd >= 0 && write(fd, part, sizeof part) == (ssize_t)sizeof part);
    close(fd);
    const int status = prof_trace_open(path, &trace);
    unlink(path);
    assert_int_equal(status, expected);
    if (!is_private) prof_trace_destroy(trace);
  }
}

/* And the capture itself is whole, in memory of the caller's. */
static void a_dump_of_private_memory_is_a_capture(void **state) {
  (void)state;
  char path[] = "/tmp/prof-whole-XXXXXX.prof";
  prof_trace *trace = NULL;
  prof_trace_info info = {.size = sizeof info};
  start(PROF_POLICY_KEEP, CAP_BYTES);
  record(4 * SCOPES_A_MIB);
  close(mkstemps(path, 5));
  assert_int_equal(prof_dump(path), PROF_OK);
  const int status = prof_trace_open(path, &trace);
  unlink(path);
  assert_int_equal(status, PROF_OK);
  assert_int_equal(prof_trace_info_get(trace, &info), PROF_OK);
  assert_int_equal(info.scope_count, 4 * SCOPES_A_MIB);
  assert_int_equal(info.bad_count, 0);
  prof_trace_destroy(trace);
}

/* ---- counted ---- */

static void *record_some(void *unused) {
  record(8 * SCOPES_A_MIB);
  return unused;
}

/* Rests of blocks are moved while they are added up. */
static void what_is_taken_never_exceeds_the_cap(void **state) {
  enum { RECORDERS = 3, ROUNDS = 4, LOOKS = 2000 };
  (void)state;
  for (int round = 0; round < ROUNDS; round++) {
    pthread_t threads[RECORDERS];
    start(PROF_POLICY_RING, CAP_BYTES);
    for (int i = 0; i < RECORDERS; i++)
      assert_int_equal(pthread_create(&threads[i], NULL, record_some, NULL), 0);
    for (int i = 0; i < LOOKS; i++) assert_in_range(prof_i_arena_taken_bytes(), 0, CAP_BYTES);
    for (int i = 0; i < RECORDERS; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
  }
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

/* The thread may still touch its chunk, and the reader reads it. The last of the two unmaps it. */
static void a_chunk_that_a_reader_looks_at_goes_with_its_last_user(void **state) {
  (void)state;
  /* A sanitizer has mappings of its own, so there is nothing to count. Then more chunks than a
     thread keeps are enough. */
  enum {
    ROUNDS = WITH_ASAN || WITH_TSAN ? PROF_I_RETIRED_COUNT / 2 + 1 : 2 * PROF_I_RETIRED_COUNT,
    MORE = 8
  };
  long after_first = 0;
  for (int i = 0; i < 2 * ROUNDS; i++) {
    prof_i_arena_view pinned;
    start(PROF_POLICY_KEEP, CAP_BYTES);
    record(2 * SCOPES_A_MIB);
    assert_int_equal(prof_i_arena_view_acquire(&pinned, false), PROF_OK);
    const prof_i_head *const chunk =
        (const prof_i_head *)(const void *)(prof_i_the_arena.base + first_private_chunk());
    start(PROF_POLICY_KEEP, CAP_BYTES);
    record(2 * SCOPES_A_MIB);
    assert_int_equal(chunk->magic, PROF_I_EXTENT_MAGIC);
    prof_i_arena_view_release(&pinned, false, false);
    if (i == ROUNDS) after_first = mappings();
  }
  if (!WITH_ASAN && !WITH_TSAN) assert_in_range(mappings(), 0, after_first + MORE);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(large_chunks_are_private_and_nothing_else_is),
      cmocka_unit_test(small_captures_have_no_blocks),
      cmocka_unit_test(blocks_take_few_mappings),
      cmocka_unit_test(the_cap_is_used_up_to_its_last_unit),
      cmocka_unit_test(threads_find_slots_after_a_full_capture_was_cleared),
      cmocka_unit_test(a_child_gets_what_a_trace_shows_and_no_more),
      cmocka_unit_test(memory_that_is_refused_is_shared),
      cmocka_unit_test(limited_hosts_have_no_blocks),
      cmocka_unit_test(strict_overcommit_has_no_blocks),
      cmocka_unit_test(locked_memory_is_empty_after_a_clear),
      cmocka_unit_test(a_part_of_the_memory_is_no_capture),
      cmocka_unit_test(a_dump_of_private_memory_is_a_capture),
      cmocka_unit_test(what_is_taken_never_exceeds_the_cap),
      cmocka_unit_test(a_chunk_that_a_reader_looks_at_goes_with_its_last_user),
      cmocka_unit_test(traces_of_many_replaced_captures_go_in_any_order),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
