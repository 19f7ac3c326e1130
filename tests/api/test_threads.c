/* Threads: they record while others read, dump, clear, stop and start; they come, are named, and go
   in every way. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "events.h"
#include "hang_guard.h"
#include "health.h"
#include "sanitizers.h"

enum { RECORDERS = 4, SHORT_THREADS = 2000, SHORT_AT_ONCE = 8, KEYS_EACH = 2000 };
/* tests/stress/test_meddle.c does so for longer. */
enum { SECONDS_EACH = WITH_TSAN ? 2 : 1 };

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Records at level 1 into an arena of its own: it has no loss of an earlier test. */
static void record_afresh(const prof_options *options) {
  const prof_options another = {.size = sizeof another, .cap_bytes = 3 << 20};
  if (prof_level()) prof_stop();
  assert_status(prof_start_with(&another), PROF_OK);
  assert_status(prof_stop(), PROF_OK);
  assert_status(prof_start_with(options), PROF_OK);
}

static pthread_t start_thread(void *(*run)(void *), void *argument) {
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, run, argument), 0);
  return thread;
}

static void run_thread(void *(*run)(void *), void *argument) {
  pthread_join(start_thread(run, argument), NULL);
}

/* Threads that run until told: a test that fails leaves them to its teardown. */
static struct {
  uint32_t should_end; /* atomic */
  pthread_t threads[RECORDERS];
  int count;
  void *result;          /* of the last one that had any */
  uint64_t begun, tried; /* scopes whose begin gave a start; all. Atomic */
} work;

static bool should_end(void) { return __atomic_load_n(&work.should_end, __ATOMIC_RELAXED) != 0; }

static void start_work(void *(*run)(void *)) {
  static unsigned numbers[RECORDERS];
  memset(&work, 0, sizeof work);
  for (; work.count < RECORDERS; work.count++) {
    numbers[work.count] = (unsigned)work.count;
    work.threads[work.count] = start_thread(run, &numbers[work.count]);
  }
}

static int end_work(void **state) {
  (void)state;
  __atomic_store_n(&work.should_end, 1, __ATOMIC_RELAXED);
  while (work.count > 0) {
    void *result = NULL;
    pthread_join(work.threads[--work.count], &result);
    if (result) work.result = result;
  }
  return 0;
}

/* ---- recording beside the control path ---- */

static void *record_until_told(void *which_pointer) {
  const unsigned which = *(const unsigned *)which_pointer;
  char name[32];
  uint64_t begun = 0, tried = 0;
  snprintf(name, sizeof name, "recorder %u", which);
  prof_thread_set_name(name);
  while (!should_end()) {
    const prof_arg item = {"tried", PROF_ARG_U64, 0, {.u64 = tried}};
    const prof_args args = {&item, 1, PROF_ARGS_PAIRS, NULL};
    const uint64_t outer = prof_scope_begin(1, name, "outer", &args);
    const uint64_t inner = prof_scope_begin(1, "inner", "inner", NULL);
    begun += outer != 0;
    begun += inner != 0;
    tried += 2;
    prof_scope_end(inner);
    prof_scope_end(outer);
  }
  __atomic_fetch_add(&work.begun, begun, __ATOMIC_RELAXED);
  __atomic_fetch_add(&work.tried, tried, __ATOMIC_RELAXED);
  return NULL;
}

/* Whatever moment it was taken at, a trace holds only what was recorded: known names, right values,
   time that does not run back. */
static void check_trace(const prof_trace *trace) {
  prof_cursor *cursor = NULL;
  prof_event e;
  uint64_t last_start = 0, count = 0;
  uint32_t last_thread = UINT32_MAX;
  int more;
  prof_trace_info info = {.size = sizeof info};
  assert_status(prof_trace_info_get(trace, &info), PROF_OK);
  assert_int_equal(info.bad_count, 0);
  assert_status(prof_cursor_create(trace, &cursor), PROF_OK);
  while ((more = prof_cursor_next(cursor, &e)) == 1) {
    if (e.thread != last_thread) last_start = 0;
    last_thread = e.thread;
    if (e.start_ns < last_start)
      fail_msg("time runs back on thread %u: %" PRIu64 " after %" PRIu64, e.thread, e.start_ns,
               last_start);
    last_start = e.start_ns;
    count++;
    const bool is_outer = e.name_bytes == 10 && memcmp(e.name, "recorder ", 9) == 0;
    const bool is_inner = e.name_bytes == 5 && memcmp(e.name, "inner", 5) == 0;
    if (!is_outer && !is_inner) fail_msg("an event is named '%.*s'", (int)e.name_bytes, e.name);
    if (is_outer) {
      if (e.arg_count != 1)
        fail_msg("%.*s has %u arguments: kind %u, flags %u, depth %u", (int)e.name_bytes, e.name,
                 e.arg_count, e.kind, e.flags, e.depth);
      assert_int_equal(e.args[0].value.u64 % 2, 0);
    }
    prof_trace_thread thread = {.size = sizeof thread};
    if (is_outer && e.kind == PROF_EVENT_SCOPE) {
      assert_status(prof_trace_thread_get(trace, e.thread, &thread), PROF_OK);
      if (strncmp(thread.name, e.name, 10) != 0)
        fail_msg("thread '%s' has an event of '%.10s'", thread.name, e.name);
    }
  }
  assert_status(more, PROF_OK);
  assert_int_equal(count, info.event_count);
  prof_cursor_destroy(cursor);
}

static void get_and_check(void) {
  prof_trace *trace = NULL;
  assert_status(prof_get(&trace), PROF_OK);
  check_trace(trace);
  prof_trace_destroy(trace);
}

static void get_and_free_json(void) {
  char *text = NULL;
  const int status = prof_get_json(&text, NULL);
  if (status != PROF_OK)
    print_error("prof_get_json: %s: %s\n", prof_status_name(status), prof_last_error());
  assert_int_equal(status, PROF_OK);
  prof_free(text);
}

static void table_and_free(void) {
  prof_trace *trace = NULL;
  char *text = NULL;
  assert_status(prof_get(&trace), PROF_OK);
  assert_status(prof_trace_table(trace, NULL, &text), PROF_OK);
  prof_free(text);
  prof_trace_destroy(trace);
}

/* ThreadSanitizer may keep a thread inside for seconds, to look up names. */
static void clear(void) {
  const int status = prof_clear();
  if (!WITH_TSAN || status != PROF_E_BUSY) assert_status(status, PROF_OK);
}

static void threads_record_while_the_capture_is_read_and_controlled(void **state) {
  (void)state;
  const prof_options small = {
      .size = sizeof small, .cap_bytes = 4 << 20, .policy = PROF_POLICY_RING};
  record_afresh(&small);
  /* Arguments of a form that the process has not met are left out while a clear is under way
     (PROF_EVENT_CUT): this one is met before. */
  const prof_arg item = {"tried", PROF_ARG_U64, 0, {.u64 = 0}};
  const prof_args args = {&item, 1, PROF_ARGS_PAIRS, NULL};
  prof_scope_end(prof_scope_begin(1, "inner", "inner", &args));
  start_work(record_until_told);
  const uint64_t end = now_ns() + SECONDS_EACH * 1000000000ull;
  int rounds = 0;
  for (; rounds < 12 || now_ns() < end; rounds++) {
    switch (rounds % 6) {
      case 0:
        get_and_check();
        break;
      case 1:
        assert_status(prof_dump("/dev/null"), PROF_OK);
        break;
      case 2:
        clear();
        break;
      case 3:
        assert_status(prof_stop(), PROF_OK);
        assert_status(prof_start(1), PROF_OK);
        break;
      case 4:
        get_and_free_json();
        break;
      case 5:
        table_and_free();
        break;
    }
    health_now();
  }
  end_work(NULL);
  assert_status(prof_stop(), PROF_OK);
  get_and_check();
  const prof_health health = health_now();
  uint64_t sum = health.recorded_count;
  sum += health_lost(&health);
  print_message("%d rounds beside %" PRIu64 " scopes\n", rounds, work.begun);
  /* what found no way in at its begin was counted too */
  assert_in_range(sum - 1, work.begun, work.tried);
}

/* Scopes whose names are too long for the shortest way; now and then with a key that nobody had
   before. */
static void *record_long_names(void *which_pointer) {
  const unsigned which = *(const unsigned *)which_pointer;
  char name[181], key[32];
  memset(name, 'n', sizeof name - 1);
  name[sizeof name - 1] = '\0';
  for (unsigned i = 0, keys = 0; !should_end(); i++) {
    if (i % 256 == 0 && keys < KEYS_EACH)
      snprintf(key, sizeof key, "key %u of %u", keys++, which);
    else
      snprintf(key, sizeof key, "key");
    const prof_arg items[] = {{key, PROF_ARG_U64, 0, {.u64 = i}},
                              {"text", PROF_ARG_STRING, PROF_NUL_TERMINATED, {.text = name}}};
    const prof_args args = {items, COUNT_OF(items), PROF_ARGS_PAIRS, NULL};
    prof_scope_end(prof_scope_begin(1, name, "long", &args));
  }
  return NULL;
}

static void a_scope_beside_a_clear_has_its_arguments_or_says_that_it_has_not(void **state) {
  (void)state;
  const prof_options options = {.size = sizeof options, .cap_bytes = 256 << 20};
  prof_trace *trace = NULL;
  prof_cursor *cursor = NULL;
  prof_event e;
  uint64_t scopes = 0, flagged = 0, silent = 0;
  record_afresh(&options);
  start_work(record_long_names);
  for (const uint64_t end = now_ns() + 1000000000u; now_ns() < end;) {
    usleep(20000);
    clear();
  }
  usleep(1000); /* the last clear's scopes, and some more */
  end_work(NULL);
  assert_status(prof_stop(), PROF_OK);
  assert_status(prof_get(&trace), PROF_OK);
  assert_status(prof_cursor_create(trace, &cursor), PROF_OK);
  while (prof_cursor_next(cursor, &e) == 1) {
    scopes++;
    if (e.arg_count == 2) continue;
    flagged += (e.flags & PROF_EVENT_CUT) != 0;
    silent += (e.flags & PROF_EVENT_CUT) == 0;
  }
  prof_cursor_destroy(cursor);
  prof_trace_destroy(trace);
  const uint64_t counted = health_now().cut_text_count;
  print_message("%" PRIu64 " scopes, of %" PRIu64 " flagged, %" PRIu64 " counted\n", scopes,
                flagged, counted);
  if (silent)
    fail_msg("%" PRIu64 " of %" PRIu64 " scopes have lost their arguments, and do not say so",
             silent, scopes);
  if (flagged > counted)
    fail_msg("%" PRIu64 " scopes are flagged, and %" PRIu64 " counted", flagged, counted);
}

/* Every call of the life cycle from every thread at once: any of its documented statuses, and never
   a crash. */
static void *call_anything(void *seed_pointer) {
  unsigned seed = *(const unsigned *)seed_pointer * 7919 + 1;
  while (!should_end()) {
    int status = PROF_OK;
    const prof_options other = {.size = sizeof other,
                                .cap_bytes = 1 << 20,
                                .policy = seed & 1 ? PROF_POLICY_RING : PROF_POLICY_KEEP};
    prof_health health = {.size = sizeof health};
    prof_trace *trace = NULL;
    switch (rand_r(&seed) % 9) {
      case 0:
        status = prof_start(1 + (int)(seed & 1));
        break;
      case 1:
        status = prof_start_with(&other);
        break;
      case 2:
        status = prof_stop();
        break;
      case 3:
        status = prof_clear();
        break;
      case 4:
        status = prof_get(&trace);
        break;
      case 5:
        status = prof_health(&health);
        break;
      case 6:
        status = prof_dump_with("/dev/null", NULL);
        break;
      case 7:
        status = prof_thread_set_name("anything");
        break;
      case 8:
        status = prof_get_duration("x", NULL, NULL, NULL);
        break;
    }
    prof_trace_destroy(trace);
    const bool is_documented = status == PROF_OK || status == PROF_E_RUNNING ||
                               status == PROF_E_NOT_RUNNING || status == PROF_E_BUSY;
    if (!is_documented || prof_level() < 0 || prof_level() > 2) {
      __atomic_store_n(&work.should_end, 1, __ATOMIC_RELAXED);
      print_error("%s: %s\n", prof_status_name(status), prof_last_error());
      return (void *)(uintptr_t)prof_status_name(status);
    }
    for (int i = 0; i < 20; i++)
      WITH_BASE_PROFILER(PROF_HOST, "x", "x", PROF_ARGS("i", i), { PROF_COUNTER("c", i); });
  }
  return NULL;
}

static void the_life_cycle_may_be_called_from_all_threads_at_once(void **state) {
  (void)state;
  start_work(call_anything);
  for (const uint64_t end = now_ns() + SECONDS_EACH * 1000000000ull;
       now_ns() < end && !should_end();)
    usleep(10000);
  end_work(NULL);
  if (work.result) fail_msg("a call returned %s", (const char *)work.result);
}

/* ---- names ---- */

static void *named_twice(void *argument) {
  (void)argument;
  prof_thread_set_name("first name");
  WITH_BASE_PROFILER(PROF_HOST, "named", "x", PROF_NO_ARGS, {});
  prof_thread_set_name("last name");
  return NULL;
}
static void *named_by_the_kernel(void *argument) {
  (void)argument;
  WITH_BASE_PROFILER(PROF_HOST, "named", "x", PROF_NO_ARGS, {});
  pthread_setname_np(pthread_self(), "kernel name");
  return NULL;
}
static void *named_at_length(void *argument) {
  (void)argument;
  prof_thread_set_name("0123456789012345678901234567890123456789012345678901234567890123456789");
  WITH_BASE_PROFILER(PROF_HOST, "named", "x", PROF_NO_ARGS, {});
  return NULL;
}

static bool has_thread(const char *name) {
  prof_trace_info info = {.size = sizeof info};
  assert_status(prof_trace_info_get(events.trace, &info), PROF_OK);
  for (uint32_t i = 0; i < info.thread_count; i++) {
    prof_trace_thread thread = {.size = sizeof thread};
    assert_status(prof_trace_thread_get(events.trace, i, &thread), PROF_OK);
    if (strcmp(thread.name, name) == 0) return true;
  }
  return false;
}

static void the_last_name_wins(void **state) {
  (void)state;
  record_afresh(NULL);
  run_thread(named_twice, NULL);
  run_thread(named_by_the_kernel, NULL);
  run_thread(named_at_length, NULL);
  assert_status(prof_thread_set_name("before"), PROF_OK);
  WITH_BASE_PROFILER(PROF_HOST, "named", "x", PROF_NO_ARGS, {});
  assert_status(prof_thread_set_name("after"), PROF_OK);
  events_stop_and_read();
  assert_event_total(4);
  assert_true(has_thread("last name"));
  assert_false(has_thread("first name"));
  assert_true(has_thread("kernel name"));
  assert_true(has_thread("012345678901234567890123456789012345678901234567890123456789012"));
  assert_true(has_thread("after"));
  assert_false(has_thread("before"));
}

/* ---- coming and going ---- */

static void *record_three(void *argument) {
  (void)argument;
  for (int i = 0; i < 3; i++) WITH_BASE_PROFILER(PROF_HOST, "short", "x", PROF_ARGS("i", i), {});
  return NULL;
}

static void two_thousand_short_threads_lose_nothing_and_little_memory(void **state) {
  (void)state;
  pthread_t threads[SHORT_AT_ONCE];
  record_afresh(NULL);
  for (int i = 0; i < SHORT_THREADS / SHORT_AT_ONCE; i++) {
    for (int k = 0; k < SHORT_AT_ONCE; k++) threads[k] = start_thread(record_three, NULL);
    for (int k = 0; k < SHORT_AT_ONCE; k++) pthread_join(threads[k], NULL);
  }
  assert_status(prof_stop(), PROF_OK);
  const prof_health health = health_now();
  assert_int_equal(health.recorded_count, 3 * SHORT_THREADS);
  assert_int_equal(health.threads_seen_count, SHORT_THREADS);
  assert_in_range(health.arena_bytes, 0, 4 << 20);
  prof_trace *trace = NULL;
  prof_trace_info info = {.size = sizeof info};
  assert_status(prof_get(&trace), PROF_OK);
  assert_status(prof_trace_info_get(trace, &info), PROF_OK);
  assert_int_equal(info.scope_count, 3 * SHORT_THREADS);
  assert_int_equal(info.thread_count, SHORT_THREADS);
  for (uint32_t i = 0; i < info.thread_count; i++) {
    prof_trace_thread thread = {.size = sizeof thread};
    assert_status(prof_trace_thread_get(trace, i, &thread), PROF_OK);
    assert_int_equal(thread.event_count, 3);
    assert_int_equal(thread.is_alive, 0);
  }
  prof_trace_destroy(trace);
}

/* A key whose destructor records, and asks to be called again as often as there are rounds. */
static pthread_key_t early_key, late_key;
/* POSIX promises four; in the fourth, ThreadSanitizer's own thread is gone */
enum { DESTRUCTOR_ROUNDS = WITH_TSAN ? 3 : 4 };

static void record_in_destructor(void *rounds) {
  WITH_BASE_PROFILER(PROF_HOST, "in a destructor", "x", PROF_NO_ARGS, {});
  const uintptr_t left = (uintptr_t)rounds - 1;
  if (left) pthread_setspecific(early_key, (void *)left);
}
static void record_late(void *value) {
  (void)value;
  WITH_BASE_PROFILER(PROF_HOST, "in a late destructor", "x", PROF_NO_ARGS, {});
}

static void *leave_keys_behind(void *argument) {
  (void)argument;
  pthread_setspecific(early_key, (void *)(uintptr_t)DESTRUCTOR_ROUNDS);
  pthread_setspecific(late_key, (void *)1);
  WITH_BASE_PROFILER(PROF_HOST, "before the end", "x", PROF_NO_ARGS, {});
  return NULL;
}

static void scopes_in_key_destructors_are_recorded(void **state) {
  (void)state;
  enum { THREADS = 100 };
  assert_int_equal(pthread_key_create(&late_key, record_late), 0);
  record_afresh(NULL);
  for (int i = 0; i < THREADS; i++) run_thread(leave_keys_behind, NULL);
  events_stop_and_read();
  assert_events("before the end", THREADS);
  assert_events("in a late destructor", THREADS);
  assert_events("in a destructor", DESTRUCTOR_ROUNDS * THREADS);
  assert_event_total((2 + DESTRUCTOR_ROUNDS) * THREADS);
  pthread_key_delete(late_key);
}

static void *exit_inside_a_scope(void *argument) {
  WITH_BASE_PROFILER(PROF_HOST, "left by pthread_exit", "x", PROF_NO_ARGS, {
    if (argument) pthread_exit(NULL);
  });
  return NULL;
}

static void a_thread_may_exit_inside_a_scope(void **state) {
  (void)state;
  int yes = 1;
  record_afresh(NULL);
  for (int i = 0; i < 10; i++) {
    run_thread(exit_inside_a_scope, &yes);
    run_thread(record_three, NULL);
  }
  events_stop_and_read();
  assert_events("short", 30);
  for (size_t i = 0; i < events.count; i++)
    if (strcmp(events.items[i].name, "short") == 0) assert_int_equal(events.items[i].e.depth, 0);
}

/* ---- between threads ---- */

static void *end_a_scope(void *start) {
  WITH_BASE_PROFILER(PROF_HOST, "on the other thread", "x", PROF_NO_ARGS,
                     { prof_scope_end(*(const uint64_t *)start); });
  return NULL;
}

static void a_scope_may_end_on_another_thread(void **state) {
  (void)state;
  record_afresh(NULL);
  const prof_arg item = {"n", PROF_ARG_I64, 0, {.i64 = 3}};
  const prof_args args = {&item, 1, PROF_ARGS_PAIRS, NULL};
  uint64_t moved = prof_scope_begin(1, "moved", "x", &args);
  run_thread(end_a_scope, &moved);
  WITH_BASE_PROFILER(PROF_HOST, "after", "x", PROF_NO_ARGS, {});
  events_stop_and_read();
  assert_event_total(3);
  assert_true(only_event("moved")->e.flags & PROF_EVENT_OTHER_THREAD);
  assert_string_equal(only_event("moved")->args, "n=i:3");
  assert_int_equal(only_event("after")->e.depth, 0);
}

/* PROF_I_ASYNC is for what tells prof of another library's work. Named where it is, by its call,
   and with arguments. */
static void asynchronous_work_holds_nothing_of_its_thread(void **state) {
  (void)state;
  record_afresh(NULL);
  static prof_site sites[2] = {{.file = "", .function = "", .level = 1},
                               {.file = "", .function = "", .level = 1}};
  const prof_arg item = {"n", PROF_ARG_I64, 0, {.i64 = 3}};
  const prof_details plain = {
      "bare",
      "x",
      PROF_NUL_TERMINATED,
      PROF_NUL_TERMINATED,
      PROF_I_NAME_LITERAL | PROF_I_CATEGORY_LITERAL | PROF_I_BY_CALL | PROF_I_ASYNC,
      PROF_HOST,
      0,
      0,
      PROF_NO_ARGS};
  prof_details named = plain;
  named.name = "named";
  named.flags = PROF_I_BY_CALL | PROF_I_ASYNC;
  named.args = (prof_args){&item, 1, PROF_ARGS_PAIRS, NULL};
  for (int i = 0; i < 3; i++) { /* the first time a site is learnt */
    WITH_BASE_PROFILER(PROF_HOST, "around", "x", PROF_NO_ARGS, {
      const uint64_t first = prof_i_begin_details_1(&sites[0], &plain),
                     second = prof_i_begin_details_1(&sites[1], &named);
      WITH_BASE_PROFILER(PROF_HOST, "beside", "x", PROF_NO_ARGS, {});
      prof_scope_end(first);
      prof_scope_end(second);
    });
  }
  events_stop_and_read();
  assert_event_total(12);
  for (size_t i = 0; i < events.count; i++) {
    const seen_event *const found = &events.items[i];
    const bool is_async = strcmp(found->name, "bare") == 0 || strcmp(found->name, "named") == 0;
    assert_int_equal(found->e.flags, is_async ? PROF_EVENT_ASYNC : 0);
    if (is_async) assert_int_equal(found->e.self_ns, 0);
    assert_int_equal(found->e.depth,
                     strcmp(found->name, "beside") == 0 || (is_async && found->e.depth));
    if (strcmp(found->name, "named") == 0) assert_string_equal(found->args, "n=i:3");
  }
}

static void *walk_trace(void *trace) {
  prof_cursor *cursor = NULL;
  static __thread prof_event e;
  uint64_t count = 0;
  if (prof_cursor_create(trace, &cursor) != PROF_OK) return (void *)1;
  while (prof_cursor_next(cursor, &e) == 1) count++;
  prof_cursor_destroy(cursor);
  char *text = NULL;
  if (prof_trace_table(trace, NULL, &text) != PROF_OK) return (void *)2;
  prof_free(text);
  if (prof_trace_dump(trace, "/dev/null", NULL) != PROF_OK) return (void *)3;
  return (void *)(uintptr_t)(count + 10);
}

static void a_trace_may_be_read_by_many_threads(void **state) {
  (void)state;
  enum { SCOPES = 20000 };
  pthread_t threads[RECORDERS];
  prof_trace *trace = NULL;
  record_afresh(NULL);
  for (int i = 0; i < SCOPES; i++)
    WITH_BASE_PROFILER(PROF_HOST, "many", "x", PROF_ARGS("i", i), {});
  assert_status(prof_get(&trace), PROF_OK);
  for (int i = 0; i < RECORDERS; i++) threads[i] = start_thread(walk_trace, trace);
  for (int i = 0; i < RECORDERS; i++) {
    void *result = NULL;
    pthread_join(threads[i], &result);
    assert_int_equal((uintptr_t)result, SCOPES + 10);
  }
  prof_trace_destroy(trace);
  assert_status(prof_stop(), PROF_OK);
}

/* ---- names that change while nothing is recorded ---- */

/* Waits for each stage in turn: the thread renames itself, and has no scope after. */
static struct { uint32_t stage; /* atomic */ } renamed;

static void wait_for_stage(uint32_t stage) {
  WAIT_WHILE(__atomic_load_n(&renamed.stage, __ATOMIC_ACQUIRE) != stage);
}

static void *rename_without_scopes(void *unused) {
  pthread_setname_np(pthread_self(), "at first");
  WITH_BASE_PROFILER(PROF_HOST, "only", "names", PROF_NO_ARGS, {});
  pthread_setname_np(pthread_self(), "a pool's\nworker");
  __atomic_store_n(&renamed.stage, 1, __ATOMIC_RELEASE);
  wait_for_stage(2);
  prof_thread_set_name("by prof");
  pthread_setname_np(pthread_self(), "the kernel's");
  __atomic_store_n(&renamed.stage, 3, __ATOMIC_RELEASE);
  wait_for_stage(4);
  return unused;
}

static void second_thread_is_called(const char *name) {
  prof_trace *trace = NULL;
  prof_trace_thread thread = {.size = sizeof thread};
  assert_status(prof_get(&trace), PROF_OK);
  assert_status(prof_trace_thread_get(trace, 1, &thread), PROF_OK);
  assert_string_equal(thread.name, name);
  prof_trace_destroy(trace);
}

static void a_name_is_read_again_when_the_trace_is_taken(void **state) {
  (void)state;
  record_afresh(NULL);
  renamed.stage = 0;
  WITH_BASE_PROFILER(PROF_HOST, "first", "names", PROF_NO_ARGS, {});
  const pthread_t thread = start_thread(rename_without_scopes, NULL);
  wait_for_stage(1);
  second_thread_is_called("a pool's\nworker");
  __atomic_store_n(&renamed.stage, 2, __ATOMIC_RELEASE);
  wait_for_stage(3);
  second_thread_is_called("by prof");
  __atomic_store_n(&renamed.stage, 4, __ATOMIC_RELEASE);
  pthread_join(thread, NULL);
}

static int make_early_key(void **state) {
  (void)state;
  /* before prof makes its own: it is destroyed first */
  return pthread_key_create(&early_key, record_in_destructor);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(scopes_in_key_destructors_are_recorded),
      cmocka_unit_test_teardown(threads_record_while_the_capture_is_read_and_controlled, end_work),
      cmocka_unit_test_teardown(a_scope_beside_a_clear_has_its_arguments_or_says_that_it_has_not,
                                end_work),
      cmocka_unit_test_teardown(the_life_cycle_may_be_called_from_all_threads_at_once, end_work),
      cmocka_unit_test(the_last_name_wins),
      cmocka_unit_test(a_name_is_read_again_when_the_trace_is_taken),
      cmocka_unit_test(two_thousand_short_threads_lose_nothing_and_little_memory),
      cmocka_unit_test(a_thread_may_exit_inside_a_scope),
      cmocka_unit_test(a_scope_may_end_on_another_thread),
      cmocka_unit_test(asynchronous_work_holds_nothing_of_its_thread),
      cmocka_unit_test(a_trace_may_be_read_by_many_threads),
  };
  return cmocka_run_group_tests_name("threads", tests, make_early_key, NULL);
}
