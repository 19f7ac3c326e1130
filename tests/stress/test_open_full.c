/* Scopes that are open when something happens. The arena becomes full, longjmp or pthread_exit
   leaves the stack, another thread ends them, a stop and a start come between, the process forks.
   Each is recorded or counted, once, and the depth heals. */
#define _GNU_SOURCE
#include <errno.h>
#include <prof/trace.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>

#include <cmocka.h>

#include "core/buffer/arena.h"
#include "core/buffer/thread.h"
#include "fault/support/captures.h"
#include "fault/support/skip.h"
#include "hang_guard.h"
#include "health.h"

enum {
  DEEP = 200,
  HAND_OVERS = 1000,
  FORKS = SKIP_SANITIZED ? 20 : 200,
  FORK_THREADS = 4,
  JUMPS = 500
};

static void start_with(uint32_t policy, uint64_t cap_bytes, const char *path) {
  const prof_options options = {
      .size = sizeof options, .level = 2, .policy = policy, .path = path, .cap_bytes = cap_bytes};
  if (prof_start_with(&options) != PROF_OK) fail_msg("prof_start_with: %s", prof_last_error());
}

/* A fresh arena each time: another cap is another arena. */
static void start_anew(void) {
  static uint64_t cap_bytes = 16 << 20;
  start_with(PROF_POLICY_KEEP, cap_bytes += 1 << 16, NULL);
}

static int clean(void **state) {
  (void)state;
  prof_stop();
  start_anew();
  prof_stop();
  captures_clear();
  return 0;
}

static void check_count(const char *what, uint64_t is, uint64_t wanted) {
  if (is != wanted)
    fail_msg("%s: %llu instead of %llu", what, (unsigned long long)is, (unsigned long long)wanted);
}

/* The losses are these and no others. */
static void check_losses(uint32_t count, const uint64_t (*wanted)[2]) {
  const prof_health health = health_now();
  for (int i = 0; i < PROF_LOSS_COUNT; i++) {
    uint64_t want = 0;
    for (uint32_t k = 0; k < count; k++) want += wanted[k][0] == (uint64_t)i ? wanted[k][1] : 0;
    check_count(prof_loss_name(i), health.lost_count[i], want);
  }
}
#define CHECK_LOSSES(...)                                                           \
  check_losses(sizeof((const uint64_t[][2]){__VA_ARGS__}) / (2 * sizeof(uint64_t)), \
               (const uint64_t[][2]){__VA_ARGS__})
#define CHECK_NO_LOSS() check_losses(0, NULL)

static prof_trace *trace_now(void) {
  prof_trace *trace = NULL;
  if (prof_get(&trace) != PROF_OK) fail_msg("prof_get: %s", prof_last_error());
  return trace;
}

/* Events of that name and kind; the last one is handed out. */
static uint64_t find(const prof_trace *trace, const char *name, uint32_t kind,
                     prof_event *event_out) {
  static prof_event event;
  prof_cursor *cursor = NULL;
  uint64_t count = 0;
  assert_int_equal(prof_cursor_create(trace, &cursor), PROF_OK);
  while (prof_cursor_next(cursor, &event) == 1) {
    if (event.kind != kind || event.name_bytes != strlen(name) ||
        memcmp(event.name, name, event.name_bytes) != 0)
      continue;
    count++;
    if (event_out) *event_out = event;
  }
  prof_cursor_destroy(cursor);
  return count;
}

static uint64_t recorded(const char *name) {
  prof_trace *const trace = trace_now();
  const uint64_t count = find(trace, name, PROF_EVENT_SCOPE, NULL);
  prof_trace_destroy(trace);
  return count;
}

static void check_no_scope_is_open(void) {
  const prof_i_thread_slot *const slot = prof_i_this_thread->slot;
  prof_trace *const trace = trace_now();
  prof_trace_info info = {.size = sizeof info};
  prof_trace_info_get(trace, &info);
  prof_trace_destroy(trace);
  check_count("depth", slot->depth, 0);
  check_count("deep", slot->deep, 0);
  check_count("open", info.open_count, 0);
  check_count("bad", info.bad_count, 0);
}

static void plain(const char *name, uint64_t times) {
  for (uint64_t i = 0; i < times; i++) prof_scope_end(prof_scope_begin(1, name, "stress", NULL));
}

/* ---- full ---- */

enum { FILL_AT_ONCE = 10000 };

static void fill_the_arena(void) {
  while (!health_now().is_full)
    for (int i = 0; i < FILL_AT_ONCE; i++)
      WITH_BASE_PROFILER(PROF_HOST, "fill", "stress", PROF_NO_ARGS, {});
}

static void three_open_scopes(void) {
  WITH_BASE_PROFILER(PROF_HOST, "outer", "stress", PROF_NO_ARGS, {
    WITH_BASE_PROFILER(PROF_HOST, "middle", "stress", PROF_ARGS("text", "an argument"), {
      WITH_BASE_PROFILER(PROF_HOST, "inner", "stress", PROF_NO_ARGS, {
        fill_the_arena();
        plain("dropped", 1000);
      });
    });
  });
}

/* The sum of all self times is the total of the outermost scope: nothing is missing between them,
   and nothing counts twice. */
static void check_self_sums(void) {
  prof_trace *const trace = trace_now();
  prof_rows *rows = NULL;
  uint64_t self = 0, total = 0;
  assert_int_equal(prof_trace_aggregate(trace, NULL, &rows), PROF_OK);
  for (uint64_t i = 0; i < rows->row_count; i++) {
    self += rows->rows[i].self_ns;
    if (strcmp(rows->rows[i].name, "outer") == 0) total = rows->rows[i].total_ns;
  }
  prof_rows_destroy(rows);
  prof_trace_destroy(trace);
  check_count("the sum of self times", self, total);
  assert_true(total > 0);
}

static void scopes_open_when_the_arena_is_full_are_recorded(void **state) {
  (void)state;
  start_with(PROF_POLICY_KEEP, 2 << 20, NULL);
  const uint64_t before = health_now().recorded_count;
  check_count("recorded before", before, 0);
  three_open_scopes();
  const char *const names[] = {"outer", "middle", "inner"};
  for (int i = 0; i < 3; i++) check_count(names[i], recorded(names[i]), 1);
  check_count("dropped", recorded("dropped"), 0);
  check_self_sums();
  check_no_scope_is_open();
  const prof_health health = health_now();
  const uint64_t fills = health.lost_count[PROF_LOSS_FULL] - 1000 + recorded("fill");
  check_count("fills, recorded and lost", fills,
              (fills + FILL_AT_ONCE / 2) / FILL_AT_ONCE * FILL_AT_ONCE);
  print_message("  %llu recorded, %llu lost as full\n", (unsigned long long)health.recorded_count,
                (unsigned long long)health.lost_count[PROF_LOSS_FULL]);
}

static void *record_in_a_thread(void *times) {
  plain("late comer", *(const uint64_t *)times);
  return NULL;
}

static void a_full_arena_takes_new_threads_after_a_clear(void **state) {
  pthread_t thread;
  uint64_t times = 10;
  (void)state;
  start_with(PROF_POLICY_KEEP, 1 << 20, NULL);
  fill_the_arena();
  prof_clear();
  const uint64_t lost = health_now().lost_count[PROF_LOSS_NO_THREAD];
  for (int i = 0; i < 20; i++) {
    assert_int_equal(pthread_create(&thread, NULL, record_in_a_thread, &times), 0);
    pthread_join(thread, NULL);
  }
  check_count("recorded by threads that came after the clear", recorded("late comer"), 20 * times);
  check_count("lost as no_thread", health_now().lost_count[PROF_LOSS_NO_THREAD] - lost, 0);
}

/* ---- the stack ---- */

static void go_down(int depth) {
  if (depth == 0) return;
  WITH_BASE_PROFILER(PROF_HOST, "deep", "stress", PROF_ARGS("depth", depth),
                     { go_down(depth - 1); });
}

static void a_deep_recursion_is_recorded_whole(void **state) {
  (void)state;
  start_anew();
  go_down(DEEP);
  check_count("deep", recorded("deep"), DEEP);
  check_count("counted as deep", health_now().deep_count, DEEP - PROF_I_OPEN_COUNT);
  CHECK_NO_LOSS();
  check_no_scope_is_open();
  prof_trace *const trace = trace_now();
  prof_event last;
  find(trace, "deep", PROF_EVENT_SCOPE, &last);
  check_count("depth of the innermost", last.depth, DEEP - 1);
  check_count("its argument", (uint64_t)last.args[0].value.i64, 1);
  prof_trace_destroy(trace);
}

static jmp_buf place;
static volatile int may_leave = 1; /* or the compiler knows that nobody returns, and warns */

static void leave(void) {
  if (may_leave) longjmp(place, 1);
}

static void jump_out(int depth) {
  if (depth == 0) {
    leave();
    return;
  }
  WITH_BASE_PROFILER(PROF_HOST, "jumped over", "stress", PROF_ARGS("depth", depth),
                     { jump_out(depth - 1); });
}

/* A function of its own: AddressSanitizer takes the locals around a setjmp that returns twice for
   dead ones. */
static __attribute__((noinline)) void jump_out_and_come_back(int depth) {
  if (setjmp(place) == 0) jump_out(depth);
}

static void scopes_left_by_longjmp_heal(void **state) {
  (void)state;
  start_anew();
  uint64_t skipped = 0;
  for (volatile int i = 0; i < JUMPS; i++) {
    skipped += 1 + (uint64_t)i % 90;
    WITH_BASE_PROFILER(PROF_HOST, "around", "stress", PROF_NO_ARGS, {
      jump_out_and_come_back(1 + i % 90);
      plain("behind", 1);
    });
    const uint64_t depth = prof_i_this_thread->slot->depth + prof_i_this_thread->slot->deep;
    if (depth) fail_msg("after %d jumps the depth is %llu", i + 1, (unsigned long long)depth);
  }
  check_count("around", recorded("around"), JUMPS);
  check_count("behind", recorded("behind"), JUMPS);
  check_count("jumped over", recorded("jumped over"), skipped);
  CHECK_NO_LOSS();
  check_no_scope_is_open();
}

static void *leave_from_inside(void *unused) {
  (void)unused;
  plain("first", 1);
  WITH_BASE_PROFILER(PROF_HOST, "left", "stress", PROF_NO_ARGS, {
    WITH_BASE_PROFILER(PROF_HOST, "left too", "stress", PROF_ARGS("i", 1), { pthread_exit(NULL); });
  });
  return NULL;
}

/* Where the compiler makes C clean up on unwinding (-fexceptions), they end; else they are lost
   with their thread. */
static void scopes_left_by_pthread_exit_leave_nothing_open(void **state) {
  pthread_t thread;
  (void)state;
  start_anew();
  plain("main", 1);
  for (int i = 0; i < 100; i++) {
    assert_int_equal(pthread_create(&thread, NULL, leave_from_inside, NULL), 0);
    pthread_join(thread, NULL);
  }
  check_count("first", recorded("first"), 100);
  const uint64_t left = recorded("left");
  const uint64_t ended[][2] = {{PROF_LOSS_THREAD_ENDED, 200 - 2 * left}};
  check_count("left too", recorded("left too"), left);
  check_count("left, all or none", left, left ? 100 : 0);
  check_losses(1, ended);
  check_no_scope_is_open();
}

/* ---- another thread ends it ---- */

static struct { uint64_t starts[HAND_OVERS]; } handed;

static void *end_all(void *count) {
  for (uint64_t i = 0; i < *(const uint64_t *)count; i++) prof_scope_end(handed.starts[i]);
  return NULL;
}

static void begin_and_hand_over(uint64_t count) {
  pthread_t thread;
  const prof_arg arg = {.key = "number", .type = PROF_ARG_U64, .value.u64 = 42};
  const prof_args args = {.items = &arg, .count = 1, .kind = PROF_ARGS_PAIRS};
  for (uint64_t i = 0; i < count; i++)
    handed.starts[i] = prof_scope_begin(1, "handed over", "stress", i % 2 ? &args : NULL);
  assert_int_equal(pthread_create(&thread, NULL, end_all, &count), 0);
  pthread_join(thread, NULL);
}

static void a_scope_that_ends_on_another_thread_goes_there_and_is_flagged(void **state) {
  prof_event event;
  (void)state;
  start_anew();
  begin_and_hand_over(4);
  prof_trace *const trace = trace_now();
  check_count("handed over", find(trace, "handed over", PROF_EVENT_SCOPE, &event), 4);
  check_count("flags", event.flags & PROF_EVENT_OTHER_THREAD, PROF_EVENT_OTHER_THREAD);
  prof_trace_destroy(trace);
  CHECK_NO_LOSS();
}

/* The entries that the first thread keeps for them must not use up its stack. */
static void scopes_may_be_handed_over_without_end(void **state) {
  (void)state;
  start_anew();
  for (int i = 0; i < HAND_OVERS / 8; i++) begin_and_hand_over(8);
  check_count("handed over", recorded("handed over"), HAND_OVERS / 8 * 8);
  CHECK_NO_LOSS();
  plain("after", 1);
  check_count("after", recorded("after"), 1);
  check_count("deep", health_now().deep_count, 0);
}

/* ---- sessions ---- */

static void a_scope_open_across_a_stop_is_counted_as_late(void **state) {
  (void)state;
  start_anew();
  WITH_BASE_PROFILER(PROF_HOST, "across", "stress", PROF_NO_ARGS, { prof_stop(); });
  check_count("across", recorded("across"), 0);
  CHECK_LOSSES({PROF_LOSS_LATE, 1});
  check_no_scope_is_open();
}

static void a_scope_open_across_two_sessions_is_counted_as_late(void **state) {
  (void)state;
  start_anew();
  for (int i = 0; i < 100; i++) {
    WITH_BASE_PROFILER(PROF_HOST, "across", "stress", PROF_ARGS("i", i), {
      prof_stop();
      prof_start(2);
      plain("in the second", 3);
      go_down(70);
    });
  }
  check_count("across", recorded("across"), 0);
  check_count("in the second", recorded("in the second"), 300);
  check_count("deep", recorded("deep"), 7000);
  CHECK_LOSSES({PROF_LOSS_LATE, 100});
  check_no_scope_is_open();
}

static void a_scope_open_into_another_capture_is_counted_as_late(void **state) {
  (void)state;
  start_anew();
  WITH_BASE_PROFILER(PROF_HOST, "across", "stress", PROF_ARGS("i", 1), {
    prof_stop();
    start_anew();
    WITH_BASE_PROFILER(PROF_HOST, "whole", "stress", PROF_ARGS("i", 1), {
      prof_trace *const trace = trace_now();
      check_count("shown open", find(trace, "whole", PROF_EVENT_OPEN, NULL), 1);
      prof_trace_destroy(trace);
    });
  });
  check_count("across", recorded("across"), 0);
  check_count("whole", recorded("whole"), 1);
  CHECK_LOSSES({PROF_LOSS_LATE, 1});
  check_no_scope_is_open();
}

/* ---- fork ---- */

static int wait_for(pid_t child) {
  int status = -1;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

static void check_child(pid_t child) {
  const int status = wait_for(child);
  if (!WIFEXITED(status) || WEXITSTATUS(status))
    fail_msg("the child: exit status %d, signal %d", WEXITSTATUS(status),
             WIFSIGNALED(status) ? WTERMSIG(status) : 0);
}

/* In the child no assertion of cmocka: its exit status tells the line. */
#define CHILD_CHECK(condition)                                                \
  do {                                                                        \
    if (!(condition)) {                                                       \
      fprintf(stderr, "child: line %d: %s is false\n", __LINE__, #condition); \
      _exit(1);                                                               \
    }                                                                         \
  } while (0)

static void a_fork_inside_a_scope_counts_its_end_in_the_child(void **state) {
  pid_t child = -1;
  (void)state;
  start_with(PROF_POLICY_DEFAULT, 0, captures_path("fork.json"));
  WITH_BASE_PROFILER(PROF_HOST, "around the fork", "stress", PROF_ARGS("i", 1),
                     { child = fork(); });
  if (child == 0) {
    plain("in the child", 5);
    const prof_health health = health_now();
    CHILD_CHECK(health.lost_count[PROF_LOSS_FORKED] == 1);
    CHILD_CHECK(health.recorded_count == 5);
    CHILD_CHECK(health.survives_kill == 1);
    CHILD_CHECK(prof_i_this_thread->slot->depth == 0);
    prof_stop();
    CHILD_CHECK(prof_dump(captures_path("child.json")) == PROF_OK);
    _exit(0);
  }
  check_child(child);
  plain("in the parent", 5);
  check_count("around the fork", recorded("around the fork"), 1);
  check_count("in the parent", recorded("in the parent"), 5);
  check_count("in the child", recorded("in the child"), 0);
  CHECK_NO_LOSS();
  check_no_scope_is_open();
}

static size_t captures_there(void) {
  captures_look();
  return captures.count;
}

static void a_fork_that_records_nothing_leaves_no_file(void **state) {
  (void)state;
  start_with(PROF_POLICY_DEFAULT, 0, captures_path("exec.json"));
  plain("in the parent", 5);
  const size_t before = captures_there();
  for (int i = 0; i < 3; i++) {
    pid_t child = -1;
    WITH_BASE_PROFILER(PROF_HOST, "around the fork", "stress", PROF_NO_ARGS, { child = fork(); });
    if (child == 0) {
      if (i == 0) execl("/bin/true", "true", (char *)NULL);
      _exit(0);
    }
    check_child(child);
  }
  check_count("captures", captures_there(), before);
  check_count("around the fork", recorded("around the fork"), 3);
}

static struct {
  uint32_t quit;
  uint64_t recorded[FORK_THREADS];
} storm;

static int record_in_a_forked_child(void) {
  plain("in the child", 100);
  WITH_BASE_PROFILER(PROF_HOST, "with arguments", "stress", PROF_ARGS("i", 1), {});
  const prof_health health = health_now();
  CHILD_CHECK(health.recorded_count == 101);
  CHILD_CHECK(health.lost_count[PROF_LOSS_FORKED] <= 1);
  prof_stop();
  return 0;
}

static void *fork_often(void *which) {
  uint64_t *const count = which;
  for (int i = 0; i < FORKS / FORK_THREADS; i++) {
    pid_t child = -1;
    WITH_BASE_PROFILER(PROF_HOST, "around the fork", "stress", PROF_ARGS("i", i), {
      child = fork();
      if (child == 0) hang_guard();
    });
    ++*count;
    if (child == 0) _exit(i % 4 ? record_in_a_forked_child() : 0);
    if (child < 0 || wait_for(child) != 0) return (void *)1;
    plain("in the parent", 50);
    *count += 50;
  }
  return NULL;
}

static void a_storm_of_forks_loses_nothing(void **state) {
  pthread_t threads[FORK_THREADS];
  uint64_t sum = 0;
  (void)state;
  start_anew();
  memset(&storm, 0, sizeof storm);
  for (int i = 0; i < FORK_THREADS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, fork_often, &storm.recorded[i]), 0);
  for (int i = 0; i < FORK_THREADS; i++) {
    void *failed = NULL;
    pthread_join(threads[i], &failed);
    if (failed) fail_msg("a child of thread %d failed", i);
    sum += storm.recorded[i];
  }
  check_count("recorded", health_now().recorded_count, sum);
  CHECK_NO_LOSS();
  print_message("  %d forks from %d threads, %llu recorded\n", FORKS, FORK_THREADS,
                (unsigned long long)sum);
}

int main(int argc, char **argv) {
#define ENTRY(test) cmocka_unit_test_teardown(test, clean)
  const struct CMUnitTest tests[] = {
      ENTRY(scopes_open_when_the_arena_is_full_are_recorded),
      ENTRY(a_full_arena_takes_new_threads_after_a_clear),
      ENTRY(a_deep_recursion_is_recorded_whole),
      ENTRY(scopes_left_by_longjmp_heal),
      ENTRY(scopes_left_by_pthread_exit_leave_nothing_open),
      ENTRY(a_scope_that_ends_on_another_thread_goes_there_and_is_flagged),
      ENTRY(scopes_may_be_handed_over_without_end),
      ENTRY(a_scope_open_across_a_stop_is_counted_as_late),
      ENTRY(a_scope_open_across_two_sessions_is_counted_as_late),
      ENTRY(a_scope_open_into_another_capture_is_counted_as_late),
      ENTRY(a_fork_inside_a_scope_counts_its_end_in_the_child),
      ENTRY(a_fork_that_records_nothing_leaves_no_file),
      ENTRY(a_storm_of_forks_loses_nothing),
  };
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  if (!captures_make_folder(false)) return 1;
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  captures_remove_folder();
  return failed;
}
