/* The life of a capture: every order of calls has the answer that the headers name. A model walks
   beside the library: it knows whether a capture is recording, at what level, into which arena, and
   how many events it has. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "events.h"

static char folder[] = "/tmp/prof-life-XXXXXX";
static char dump_path[sizeof folder + 16];

/* What start_with is called with, in turn; the first is what prof_start() begins with. */
static const prof_options *options_of(int which) {
  static const prof_options keep = {
      .size = sizeof keep, .policy = PROF_POLICY_KEEP, .cap_bytes = 1 << 20, .level = 2};
  static const prof_options ring = {
      .size = sizeof ring, .policy = PROF_POLICY_RING, .cap_bytes = 2 << 20};
  const prof_options *const all[] = {NULL, &keep, &ring};
  return all[which];
}
enum { OPTIONS_COUNT = 3 };

static struct {
  int is_recording;
  int level;
  int arena;       /* the options it was made with; -1: none yet */
  uint64_t events; /* in the capture */
  int next_options;
} model;

typedef enum call {
  START1,
  START2,
  START_WITH,
  STOP,
  CLEAR,
  LEVEL,
  GET,
  DUMP,
  HEALTH,
  GET_JSON,
  STEP,
  NAME,
  CALL_COUNT
} call;
static const char *const call_names[] = {"start(1)", "start(2)", "start_with", "stop",
                                         "clear",    "level",    "get",        "dump",
                                         "health",   "get_json", "step",       "thread_set_name"};

static char trail[512]; /* the last calls, for the message of a failure */
static int is_child;    /* of a test that forked: a failure must not jump to the test's end */

#define expect(condition, ...)                              \
  do {                                                      \
    if (!(condition)) {                                     \
      print_error("after%s: ", trail);                      \
      print_error(__VA_ARGS__);                             \
      print_error("; last error: %s\n", prof_last_error()); \
      if (is_child) _exit(1);                               \
      fail();                                               \
    }                                                       \
  } while (0)

static void expect_status(int status, int wanted) {
  expect(status == wanted, "the status is %s, not %s", prof_status_name(status),
         prof_status_name(wanted));
}

static void model_start(int level, int options) {
  if (model.arena != options) model.events = 0;
  model.arena = options;
  model.is_recording = 1;
  model.level = level;
}

static void call_get(void) {
  prof_trace *trace = NULL;
  const int status = prof_get(&trace);
  expect_status(status, model.arena < 0 ? PROF_E_NOT_RUNNING : PROF_OK);
  expect((trace != NULL) == (status == PROF_OK), "the trace is %p", (void *)trace);
  if (!trace) return;
  prof_trace_info info = {.size = sizeof info};
  expect_status(prof_trace_info_get(trace, &info), PROF_OK);
  expect(info.event_count == model.events, "the trace has %" PRIu64 " events, not %" PRIu64,
         info.event_count, model.events);
  prof_trace_destroy(trace);
}

static void call_dump(void) {
  unlink(dump_path);
  expect_status(prof_dump(dump_path), model.arena < 0 ? PROF_E_NOT_RUNNING : PROF_OK);
  expect((access(dump_path, F_OK) == 0) == (model.arena >= 0), "a file is %s",
         model.arena < 0 ? "there" : "missing");
}

static void call_get_json(void) {
  char *text = NULL;
  size_t bytes = 0;
  expect_status(prof_get_json(&text, &bytes), model.arena < 0 ? PROF_E_NOT_RUNNING : PROF_OK);
  expect((text != NULL) == (model.arena >= 0), "the text is %p", (void *)text);
  if (text)
    expect(strlen(text) == bytes && strstr(text, "traceEvents"), "%zu bytes: %.100s", bytes, text);
  prof_free(text);
}

static void call_health(void) {
  prof_health health = {.size = sizeof health};
  expect_status(prof_health(&health), PROF_OK);
  expect(health.level == (uint32_t)model.level, "health's level is %u, not %d", health.level,
         model.level);
  expect(health.recorded_count == model.events, "%" PRIu64 " are recorded, not %" PRIu64,
         health.recorded_count, model.events);
}

static void run(call what) {
  int level = what == START1 ? 1 : 2;
  switch (what) {
    case START1:
    case START2:
      expect_status(prof_start(level), PROF_OK);
      if (model.is_recording)
        model.level = level;
      else
        model_start(level, model.arena < 0 ? 0 : model.arena);
      break;
    case START_WITH: {
      const int which = model.next_options++ % OPTIONS_COUNT;
      expect_status(prof_start_with(options_of(which)),
                    model.is_recording ? PROF_E_RUNNING : PROF_OK);
      if (!model.is_recording)
        model_start(
            options_of(which) && options_of(which)->level ? (int)options_of(which)->level : 1,
            which);
    } break;
    case STOP:
      expect_status(prof_stop(), model.is_recording ? PROF_OK : PROF_E_NOT_RUNNING);
      model.is_recording = model.level = 0;
      break;
    case CLEAR:
      expect_status(prof_clear(), PROF_OK);
      model.events = 0;
      break;
    case LEVEL:
      break; /* looked at after every call */
    case GET:
      call_get();
      break;
    case DUMP:
      call_dump();
      break;
    case HEALTH:
      call_health();
      break;
    case GET_JSON:
      call_get_json();
      break;
    case STEP:
      prof_step();
      model.events += (uint64_t)model.is_recording;
      break;
    case NAME:
      expect_status(prof_thread_set_name("life"), PROF_OK);
      break;
    case CALL_COUNT:
      fail();
  }
  expect(prof_level() == model.level, "the level is %d, not %d", prof_level(), model.level);
}

static void run_and_note(call what) {
  if (strlen(trail) > sizeof trail - 64) memmove(trail, trail + 128, strlen(trail + 128) + 1);
  strcat(strcat(trail, " "), call_names[what]);
  run(what);
}

/* A de Bruijn sequence: it contains each of the 12^4 orders of four calls once. It is made
   greedily: of the calls that make an order not seen yet, it takes the last of the list. */
static void every_order_of_four_calls_has_its_answer(void **state) {
  (void)state;
  enum { ORDERS = CALL_COUNT * CALL_COUNT * CALL_COUNT * CALL_COUNT };
  static unsigned char seen[ORDERS];
  unsigned window = 0, count = 0;
  for (int i = 0; i < 3; i++) run_and_note((call)0);
  for (;;) {
    int next = CALL_COUNT - 1;
    while (next >= 0 && seen[window % (ORDERS / CALL_COUNT) * CALL_COUNT + (unsigned)next]) next--;
    if (next < 0) break;
    window = window % (ORDERS / CALL_COUNT) * CALL_COUNT + (unsigned)next;
    seen[window] = 1;
    count++;
    run_and_note((call)next);
  }
  assert_int_equal(count, ORDERS);
}

/* From a fresh process, where no capture has ever been. */
static void every_pair_of_calls_works_in_a_fresh_process(void **state) {
  (void)state;
  for (int i = 0; i < CALL_COUNT * CALL_COUNT; i++) {
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
      is_child = 1;
      run_and_note((call)(i / CALL_COUNT));
      run_and_note((call)(i % CALL_COUNT));
      _exit(0);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (status != 0)
      fail_msg("%s, %s: wait status %x", call_names[i / CALL_COUNT], call_names[i % CALL_COUNT],
               (unsigned)status);
  }
}

static void a_capture_goes_on_after_a_stop(void **state) {
  (void)state;
  events_record(1);
  WITH_BASE_PROFILER(PROF_HOST, "first", "x", PROF_NO_ARGS, {});
  assert_status(prof_stop(), PROF_OK);
  WITH_BASE_PROFILER(PROF_HOST, "between", "x", PROF_NO_ARGS, {});
  assert_status(prof_start(1), PROF_OK);
  WITH_BASE_PROFILER(PROF_HOST, "second", "x", PROF_NO_ARGS, {});
  events_stop_and_read();
  assert_event_total(2);
  assert_true(only_event("first")->e.start_ns < only_event("second")->e.start_ns);
}

static void clear_forgets_and_recording_goes_on(void **state) {
  (void)state;
  events_record(1);
  for (int i = 0; i < 3; i++) WITH_BASE_PROFILER(PROF_HOST, "before", "x", PROF_NO_ARGS, {});
  prof_health before = {.size = sizeof before}, after = before;
  assert_status(prof_health(&before), PROF_OK);
  assert_int_equal(before.recorded_count, 3);
  assert_status(prof_clear(), PROF_OK);
  assert_int_equal(prof_level(), 1);
  WITH_BASE_PROFILER(PROF_HOST, "after", "x", PROF_NO_ARGS, {});
  assert_status(prof_health(&after), PROF_OK);
  assert_int_equal(after.recorded_count, 1);
  assert_int_equal(after.lost_count[PROF_LOSS_CLEARED], before.lost_count[PROF_LOSS_CLEARED] + 3);
  events_stop_and_read();
  assert_event_total(1);
  only_event("after");
}

static void a_scope_open_across_clear_is_recorded(void **state) {
  (void)state;
  events_record(1);
  WITH_BASE_PROFILER(PROF_HOST, "across", "x", PROF_NO_ARGS,
                     { assert_status(prof_clear(), PROF_OK); });
  events_stop_and_read();
  assert_event_total(1);
  only_event("across");
}

static void a_scope_that_ends_after_the_stop_counts_as_late(void **state) {
  (void)state;
  events_record(1);
  prof_health health = {.size = sizeof health};
  assert_status(prof_health(&health), PROF_OK);
  const uint64_t late = health.lost_count[PROF_LOSS_LATE];
  WITH_BASE_PROFILER(PROF_HOST, "late", "x", PROF_NO_ARGS,
                     { assert_status(prof_stop(), PROF_OK); });
  WITH_BASE_PROFILER(PROF_HOST, "never begun", "x", PROF_NO_ARGS, {});
  assert_status(prof_start(1), PROF_OK);
  WITH_BASE_PROFILER(PROF_HOST, "over two sessions", "x", PROF_NO_ARGS, {
    assert_status(prof_stop(), PROF_OK);
    assert_status(prof_start(1), PROF_OK);
  });
  assert_status(prof_health(&health), PROF_OK);
  assert_int_equal(health.lost_count[PROF_LOSS_LATE], late + 2);
  assert_int_equal(health.recorded_count, 0);
  events_stop_and_read();
  assert_int_equal(events_count_of("late"), 0);
}

static void an_open_scope_is_shown_as_open(void **state) {
  (void)state;
  events_record(1);
  WITH_BASE_PROFILER(PROF_HOST, "outer", "x", PROF_ARGS("n", 1), {
    WITH_BASE_PROFILER(PROF_HOST, "inner", "x", PROF_NO_ARGS, {});
    events_read();
  });
  assert_int_equal(only_event("outer")->e.kind, PROF_EVENT_OPEN);
  assert_string_equal(only_event("outer")->args, "n=i:1");
  assert_int_equal(only_event("inner")->e.kind, PROF_EVENT_SCOPE);
  assert_int_equal(only_event("inner")->e.depth, 1);
  assert_status(prof_stop(), PROF_OK);
}

static void the_level_may_change_while_recording(void **state) {
  (void)state;
  events_record(1);
  for (int level = 1; level <= 2; level++) {
    assert_status(prof_start(level), PROF_OK);
    assert_int_equal(prof_level(), level);
    WITH_BASE_PROFILER_LEVEL(2, PROF_HOST, "vm", "x", PROF_NO_ARGS, {});
  }
  events_stop_and_read();
  assert_events("vm", 1);
}

static void durations_sum_up_by_name_and_category(void **state) {
  (void)state;
  uint64_t total = 7, count = 7, all = 0;
  events_record(1);
  for (int i = 0; i < 3; i++) WITH_BASE_PROFILER(PROF_HOST, "op", "a", PROF_NO_ARGS, {});
  WITH_BASE_PROFILER(PROF_HOST, "op", "b", PROF_NO_ARGS, {});
  WITH_BASE_PROFILER(PROF_HOST, "other", "a", PROF_NO_ARGS, {});
  PROF_INSTANT("op", "a", PROF_NO_ARGS);
  assert_status(prof_get_duration("op", NULL, &all, &count), PROF_OK);
  assert_int_equal(count, 4);
  assert_status(prof_get_duration("op", "a", &total, &count), PROF_OK);
  assert_int_equal(count, 3);
  assert_in_range(total, 0, all);
  assert_status(prof_get_duration(NULL, "a", NULL, &count), PROF_OK);
  assert_int_equal(count, 4);
  assert_status(prof_get_duration(NULL, NULL, NULL, &count), PROF_OK);
  assert_int_equal(count, 5);
  assert_status(prof_get_duration("nobody", NULL, &total, &count), PROF_OK);
  assert_int_equal(count, 0);
  assert_int_equal(total, 0);
  assert_status(prof_stop(), PROF_OK);
  assert_status(prof_get_duration("op", NULL, &total, NULL), PROF_OK);
  /* the clock's rate is known better now */
  assert_in_range(total, all - all / 100 - 10, all + all / 100 + 10);
}

static void capture_files_go_after_a_clean_dump_unless_kept(void **state) {
  (void)state;
  char path[sizeof folder + 32];
  snprintf(path, sizeof path, "%s/kept-%%p.json", folder);
  for (uint32_t keep = 0; keep <= 1; keep++) {
    prof_options options = {
        .size = sizeof options, .path = path, .cap_bytes = 8 << 20, .keep_capture = keep};
    prof_health health = {.size = sizeof health};
    assert_status(prof_start_with(&options), PROF_OK);
    WITH_BASE_PROFILER(PROF_HOST, "kept", "x", PROF_NO_ARGS, {});
    assert_status(prof_health(&health), PROF_OK);
    assert_int_equal(health.survives_kill, 1);
    assert_int_equal(health.policy, PROF_POLICY_STREAM);
    assert_int_equal(access(health.capture_path, F_OK), 0);
    assert_status(prof_dump(NULL), PROF_OK);
    assert_int_equal(access(health.capture_path, F_OK), 0); /* still recorded into */
    assert_status(prof_stop(), PROF_OK);
    assert_status(prof_dump(NULL), PROF_OK);
    assert_int_equal(access(health.capture_path, F_OK), keep ? 0 : -1);
    events_read(); /* also when its file is gone */
    assert_events("kept", 1);
    char output[sizeof path + 16];
    snprintf(output, sizeof output, "%s/kept-%d.json", folder, (int)getpid());
    assert_int_equal(unlink(output), 0);
    if (keep) assert_int_equal(unlink(health.capture_path), 0);
    /* another arena, so that the next start begins anew */
    assert_status(prof_start_with(NULL), PROF_OK);
    assert_status(prof_stop(), PROF_OK);
  }
}

static int make_folder(void **state) {
  (void)state;
  model.arena = -1;
  if (!mkdtemp(folder)) return -1;
  snprintf(dump_path, sizeof dump_path, "%s/dump.json", folder);
  return 0;
}
static int remove_folder(void **state) {
  (void)state;
  unlink(dump_path);
  return rmdir(folder); /* fails when a file was left */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_pair_of_calls_works_in_a_fresh_process),
      cmocka_unit_test(every_order_of_four_calls_has_its_answer),
      cmocka_unit_test(a_capture_goes_on_after_a_stop),
      cmocka_unit_test(clear_forgets_and_recording_goes_on),
      cmocka_unit_test(a_scope_open_across_clear_is_recorded),
      cmocka_unit_test(a_scope_that_ends_after_the_stop_counts_as_late),
      cmocka_unit_test(an_open_scope_is_shown_as_open),
      cmocka_unit_test(the_level_may_change_while_recording),
      cmocka_unit_test(durations_sum_up_by_name_and_category),
      cmocka_unit_test(capture_files_go_after_a_clean_dump_unless_kept),
  };
  return cmocka_run_group_tests_name("the life of a capture", tests, make_folder, remove_folder);
}
