/* Mutes and the budget: what is left out is left out, counted and told, and no more than that. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "../hang_guard.h"
#include "events.h"

enum { CAP = 8 << 20, THREADS = 4 };

static uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static prof_health health(void) {
  prof_health h = {.size = sizeof h};
  assert_status(prof_health(&h), PROF_OK);
  return h;
}

static uint64_t lost_but(const prof_health *h, int but) {
  uint64_t sum = 0;
  for (int i = 0; i < PROF_LOSS_COUNT; i++) sum += i == but ? 0 : h->lost_count[i];
  return sum;
}

/* A capture of its own each time: another cap makes another arena. */
static void start(prof_options options) {
  static uint64_t caps;
  options.size = sizeof options;
  options.cap_bytes = CAP + (uint64_t)(++caps % 64) * 65536;
  if (!options.policy) options.policy = PROF_POLICY_RING;
  assert_status(prof_start_with(&options), PROF_OK);
}

static int stop_all(void **state) {
  (void)state;
  prof_stop();
  return prof_mute(NULL, NULL, 0);
}

/* Each with a site of its own. */
static void add(void) { WITH_BASE_PROFILER(PROF_HOST, "add", "operator", PROF_NO_ARGS, {}); }
static void add_with_arguments(int n) {
  WITH_BASE_PROFILER(PROF_HOST, "add.args", "operator", PROF_ARGS("n", n, "text", "x"), {});
}
static void alloc(void) { WITH_BASE_PROFILER(PROF_HOST, "alloc", "memory", PROF_NO_ARGS, {}); }
static void dispatch(void) {
  WITH_BASE_PROFILER_LEVEL(2, PROF_HOST, "dispatch", "vm", PROF_NO_ARGS, {});
}
static void named(const char *name) {
  WITH_BASE_PROFILER(PROF_HOST, name, "named", PROF_NO_ARGS, {});
}
static void mark(void) { PROF_INSTANT("mark", "marks", PROF_NO_ARGS); }
static void measure(double value) { PROF_COUNTER("level", value); }

static void all_once(void) {
  add();
  add_with_arguments(1);
  alloc();
  dispatch();
  named("one");
  mark();
  measure(1);
}
enum { ALL = 7 };

/* ---- mutes ---- */

typedef struct rule {
  const char *name, *category;
  int muted; /* of all_once() */
} rule;

static void a_mute_leaves_out_what_it_names_and_counts_it(void **state) {
  (void)state;
  static const rule rules[] = {
      {"add", NULL, 1},       {"add*", NULL, 2},        {NULL, "operator", 2},
      {"alloc", "memory", 1}, {"alloc", "operator", 0}, {"*", NULL, ALL},
      {NULL, "m*", 2},        {"one", NULL, 1}, /* made at run time */
      {NULL, "named", 1},     {"mark", "marks", 1},     {"level", NULL, 1},
      {"addx", NULL, 0},      {"ad", NULL, 0},          {"dispatch", "vm", 1}};
  for (size_t i = 0; i < COUNT_OF(rules); i++) {
    const rule *const r = &rules[i];
    start((prof_options){.level = 2});
    all_once();
    assert_status(prof_mute(r->name, r->category, 1), PROF_OK);
    assert_status(prof_mute(r->name, r->category, 1), PROF_OK); /* the same again is the same */
    all_once();
    all_once();
    prof_health h = health();
    if (h.lost_count[PROF_LOSS_MUTED] != 2u * (unsigned)r->muted ||
        h.recorded_count != ALL + 2u * (unsigned)(ALL - r->muted))
      fail_msg("rule %zu: %" PRIu64 " muted, %" PRIu64 " recorded", i,
               h.lost_count[PROF_LOSS_MUTED], h.recorded_count);
    assert_int_equal(h.muted_sites_count, r->muted);
    assert_int_equal(h.changes_count, r->muted);
    assert_status(prof_mute(r->name, r->category, 0), PROF_OK);
    all_once();
    h = health();
    assert_int_equal(h.recorded_count, 2 * ALL + 2u * (unsigned)(ALL - r->muted));
    assert_int_equal(h.muted_sites_count, 0);
    assert_int_equal(lost_but(&h, PROF_LOSS_MUTED), 0);
    prof_stop();
  }
}

static void a_site_that_comes_later_is_muted_from_its_first_scope(void **state) {
  (void)state;
  start((prof_options){.level = 1});
  assert_status(prof_mute("late*", NULL, 1), PROF_OK);
  for (int i = 0; i < 3; i++) {
    WITH_BASE_PROFILER(PROF_HOST, "late", "operator", PROF_NO_ARGS, {});
    WITH_BASE_PROFILER(PROF_HOST, "later", "operator", PROF_ARGS("i", i), {});
    PROF_INSTANT("late mark", "marks", PROF_NO_ARGS);
  }
  static prof_site site;
  prof_scope_end(prof_scope_begin_at(&site, "late by call", "operator"));
  const prof_health h = health();
  assert_int_equal(h.recorded_count, 0);
  assert_int_equal(h.lost_count[PROF_LOSS_MUTED], 10);
}

static void a_site_is_muted_while_any_rule_says_so(void **state) {
  (void)state;
  start((prof_options){.level = 1});
  assert_status(prof_mute("add", NULL, 1), PROF_OK);
  assert_status(prof_mute(NULL, "operator", 1), PROF_OK);
  add();
  assert_status(prof_mute("add", NULL, 0), PROF_OK);
  add();
  assert_int_equal(health().lost_count[PROF_LOSS_MUTED], 2);
  assert_status(prof_mute(NULL, "operator", 0), PROF_OK);
  add();
  const prof_health h = health();
  assert_int_equal(h.recorded_count, 1);
  assert_int_equal(h.lost_count[PROF_LOSS_MUTED], 2);
}

static void a_scope_that_is_open_ends_as_recorded(void **state) {
  (void)state;
  start((prof_options){.level = 1});
  static prof_site site;
  const uint64_t open = prof_scope_begin_at(&site, "open", "operator");
  assert_status(prof_mute("open", NULL, 1), PROF_OK);
  assert_int_equal(prof_scope_begin_at(&site, "open", "operator"), 0);
  prof_scope_end(open);
  const prof_health h = health();
  assert_int_equal(h.recorded_count, 1);
  assert_int_equal(h.lost_count[PROF_LOSS_MUTED], 1);
}

static void mutes_hold_from_capture_to_capture_and_are_told_in_each(void **state) {
  (void)state;
  start((prof_options){.level = 1});
  add();
  assert_status(prof_mute("add", NULL, 1), PROF_OK);
  add();
  prof_stop();
  start((prof_options){.level = 1});
  add();
  alloc();
  prof_trace *trace = NULL;
  prof_trace_info info = {.size = sizeof info};
  prof_trace_change change = {.size = sizeof change};
  assert_status(prof_get(&trace), PROF_OK);
  prof_trace_info_get(trace, &info);
  assert_int_equal(info.change_count, 1);
  assert_status(prof_trace_change_get(trace, 0, &change), PROF_OK);
  assert_int_equal(change.kind, PROF_CHANGE_MUTED);
  assert_int_equal(change.reason, PROF_REASON_ASKED);
  assert_memory_equal(change.name, "add", change.name_bytes);
  assert_memory_equal(change.category, "operator", change.category_bytes);
  char *text = NULL;
  assert_status(prof_trace_change_text(trace, 0, &text), PROF_OK);
  assert_non_null(strstr(text, " s: muted 'add' (operator): as asked"));
  prof_free(text);
  assert_status(prof_trace_change_get(trace, 1, &change), PROF_E_INVALID);
  prof_trace_destroy(trace);
  assert_int_equal(info.lost_count[PROF_LOSS_MUTED], 1);
  assert_int_equal(info.scope_count, 1);
}

/* They stand in the capture for good: a program that mutes and hears all the time must leave room
   for what it records. */
static void mutes_without_end_fill_no_more_than_their_part(void **state) {
  (void)state;
  start((prof_options){.level = 1});
  alloc();
  for (int i = 0; i < 20000; i++) assert_status(prof_mute("alloc", NULL, i % 2 == 0), PROF_OK);
  prof_health h = health();
  assert_true(h.changes_count >= 1000 && h.changes_count <= h.cap_bytes / 64 / 80);
  for (int i = 0; i < 100000; i++) add();
  h = health();
  assert_int_equal(h.recorded_count, 100001);
  prof_trace *trace = NULL;
  prof_trace_info info = {.size = sizeof info};
  assert_status(prof_get(&trace), PROF_OK);
  prof_trace_info_get(trace, &info);
  prof_trace_destroy(trace);
  assert_int_equal(info.change_count, h.changes_count);
  assert_int_equal(info.change_count + info.untold_change_count, 20000);
}

static void what_makes_no_mute_is_refused(void **state) {
  (void)state;
  char longest[129];
  memset(longest, 'x', sizeof longest);
  longest[128] = '\0';
  assert_status(prof_mute(NULL, NULL, 1), PROF_E_INVALID);
  assert_status(prof_mute(longest, NULL, 1), PROF_E_INVALID);
  assert_error_has("name is longer than 127");
  assert_status(prof_mute(NULL, longest, 1), PROF_E_INVALID);
  assert_error_has("category is longer than 127");
  assert_status(prof_mute(longest + 1, NULL, 1), PROF_OK);
  assert_status(prof_mute("add", NULL, 2), PROF_E_INVALID);
  assert_status(prof_mute("nobody", NULL, 0), PROF_E_NOT_FOUND);
  assert_error_has("'nobody'");
  int count = 1;
  char name[16];
  for (;; count++) {
    snprintf(name, sizeof name, "n%d", count);
    const int status = prof_mute(name, NULL, 1);
    if (status == PROF_OK) continue;
    assert_status(status, PROF_E_TOO_LARGE);
    break;
  }
  assert_int_equal(count, 64);
  assert_status(prof_mute(NULL, NULL, 0), PROF_OK);
  assert_status(prof_mute("n64", NULL, 1), PROF_OK);
}

/* ---- mutes while others record ---- */

static struct {
  uint64_t attempts;
  int ends;
} load_of;

static void *record(void *unused) {
  uint64_t done = 0;
  for (; !__atomic_load_n(&load_of.ends, __ATOMIC_ACQUIRE); done += 3) {
    add();
    add_with_arguments(3);
    alloc();
  }
  __atomic_fetch_add(&load_of.attempts, done, __ATOMIC_RELAXED);
  return unused;
}

static bool has_muted_and_recorded(void) {
  const prof_health h = health();
  return h.lost_count[PROF_LOSS_MUTED] > 0 &&
         h.recorded_count + h.lost_count[PROF_LOSS_OVERWRITTEN] > 0;
}

static void mutes_under_load_lose_nothing_uncounted(void **state) {
  (void)state;
  pthread_t threads[THREADS];
  memset(&load_of, 0, sizeof load_of);
  start((prof_options){.level = 1});
  for (int i = 0; i < THREADS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, record, NULL), 0);
  const uint64_t until = now_ns() + 500000000, hangs = until + hang_seconds() * 1000000000ull;
  for (int i = 0; now_ns() < until || (!has_muted_and_recorded() && now_ns() < hangs); i++) {
    assert_status(prof_mute(i & 1 ? "add" : "a*", NULL, 1), PROF_OK);
    sched_yield();
    assert_status(prof_mute(i & 1 ? "add" : "a*", NULL, 0), PROF_OK);
  }
  assert_status(prof_mute("alloc", NULL, 1), PROF_OK);
  __atomic_store_n(&load_of.ends, 1, __ATOMIC_RELEASE);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  const prof_health h = health();
  assert_int_equal(h.recorded_count + lost_but(&h, -1), load_of.attempts);
  assert_true(has_muted_and_recorded());
}

/* ---- the budget ---- */

static void *record_ten_thousand(void *unused) {
  for (int i = 0; i < 10000; i++) add();
  return unused;
}

/* As fast as it goes; what was attempted at level 1, and at level 2. */
static void run_fast(uint64_t ns, uint64_t *ones, uint64_t *twos) {
  *ones = *twos = 0;
  for (const uint64_t until = now_ns() + ns; now_ns() < until;) {
    for (int i = 0; i < 100; i++) {
      *ones += prof_level() >= 1;
      add();
      *twos += prof_level() >= 2;
      dispatch();
    }
  }
}

/* For 0.7 s at least, and until so many steps were taken: on a busy machine, and under a sanitizer,
   the judge comes later. */
static void run_fast_until(uint64_t changes, uint64_t *ones, uint64_t *twos) {
  uint64_t more_ones, more_twos;
  run_fast(700000000, ones, twos);
  for (unsigned i = 0; i < 10 * hang_seconds() && health().changes_count < changes; i++) {
    run_fast(100000000, &more_ones, &more_twos);
    *ones += more_ones;
    *twos += more_twos;
  }
}

/* For so long at least, and until so many sites are muted. */
static int goes_on(uint64_t begun_ns, uint64_t least_ns, uint32_t muted_sites) {
  const uint64_t passed_ns = now_ns() - begun_ns;
  return passed_ns < least_ns ||
         (passed_ns < hang_seconds() * 1000000000ull && health().muted_sites_count < muted_sites);
}

static void what_is_seldom_is_never_touched(void **state) {
  (void)state;
  start((prof_options){.level = 2, .budget_permille = 10, .budget_events = 100000});
  for (int i = 0; i < 300; i++) {
    add();
    dispatch();
    usleep(1000);
  }
  for (int i = 0; i < 400; i++) add(); /* at once: 400 in no time are not 100 000 in a second */
  const prof_health h = health();
  assert_int_equal(h.recorded_count, 1000);
  assert_int_equal(h.changes_count, 0);
  assert_int_equal(lost_but(&h, -1), 0);
}

static prof_trace_change change_at(const prof_trace *trace, uint32_t i) {
  prof_trace_change change = {.size = sizeof change};
  assert_status(prof_trace_change_get(trace, i, &change), PROF_OK);
  return change;
}

static void check_reason(const prof_trace_change *change, uint32_t reason, double allowed) {
  assert_int_equal(change->reason, reason);
  assert_true(change->allowed > allowed * 0.999 && change->allowed < allowed * 1.001);
  assert_true(change->measured > change->allowed);
  assert_int_equal(change->thread, 0);
}

/* Level first, then sites; each step told, with what was measured; and what is recorded and left
   out adds up. */
static void over_the_budget_the_level_steps_down_and_then_sites_are_muted(void **state) {
  (void)state;
  for (int by_events = 0; by_events < 2; by_events++) {
    uint64_t ones, twos;
    start((prof_options){.level = 2,
                         .budget_permille = by_events ? 0 : 10,
                         .budget_events = by_events ? 200000 : 0});
    run_fast_until(2, &ones, &twos);
    assert_int_equal(prof_level(), 1);
    prof_trace *trace = NULL;
    prof_trace_info info = {.size = sizeof info};
    assert_status(prof_get(&trace), PROF_OK);
    prof_trace_info_get(trace, &info);
    assert_true(info.change_count >= 2);
    const prof_trace_change first = change_at(trace, 0), second = change_at(trace, 1);
    assert_int_equal(first.kind, PROF_CHANGE_LEVEL);
    assert_int_equal(first.level_before, 2);
    assert_int_equal(first.level_after, 1);
    check_reason(&first, by_events ? PROF_REASON_EVENTS : PROF_REASON_TIME, by_events ? 200000 : 1);
    assert_int_equal(second.kind, PROF_CHANGE_MUTED);
    assert_memory_equal(second.name, "add", 3);
    check_reason(&second, by_events ? PROF_REASON_EVENTS : PROF_REASON_TIME,
                 by_events ? 200000 : 1);
    assert_true(second.at_ns > first.at_ns);
    assert_int_equal(info.event_count + info.lost_count[PROF_LOSS_MUTED] +
                         info.lost_count[PROF_LOSS_OVERWRITTEN],
                     ones + twos);
    assert_true(info.lost_count[PROF_LOSS_MUTED] > 0);
    prof_trace_destroy(trace);
    char *json = NULL;
    assert_status(prof_get_json(&json, NULL), PROF_OK);
    assert_non_null(strstr(json, "\"name\":\"prof: level lowered\""));
    assert_non_null(strstr(json, "\"change\":\"muted 'add' (operator): "));
    prof_free(json);
    prof_stop();
  }
}

/* What a thread recorded in an earlier capture does not count against this one's budget. */
static void an_earlier_capture_does_not_count(void **state) {
  (void)state;
  start((prof_options){.level = 1, .budget_events = 100000000});
  for (int i = 0; i < 400000; i++) add();
  prof_stop();
  pthread_t thread;
  start((prof_options){.level = 1, .budget_events = 50000});
  /* its chunk begins the window, before this thread is there */
  assert_int_equal(pthread_create(&thread, NULL, record_ten_thousand, NULL), 0);
  pthread_join(thread, NULL);
  for (int i = 0; i < 20000; i++) add();
  const prof_health h = health();
  assert_int_equal(h.changes_count, 0);
  assert_int_equal(h.recorded_count, 30000);
}

/* What is rare goes on being recorded. */
static void the_most_frequent_are_muted_and_the_rare_are_heard(void **state) {
  (void)state;
  start((prof_options){.level = 1, .budget_permille = 10, .budget_action = PROF_BUDGET_MUTE});
  uint64_t rare = 0;
  for (const uint64_t begun = now_ns(); goes_on(begun, 500000000, 1); rare++) {
    for (int i = 0; i < 2000; i++) add();
    alloc();
    usleep(20);
  }
  assert_int_equal(health().muted_sites_count, 1);
  uint64_t count = 0;
  assert_status(prof_get_duration("alloc", NULL, NULL, &count), PROF_OK);
  assert_int_equal(count, rare);
}

static void the_level_alone_may_step_down_to_nothing_and_a_start_takes_it_back(void **state) {
  (void)state;
  uint64_t ones, twos;
  start((prof_options){.level = 2, .budget_permille = 5, .budget_action = PROF_BUDGET_LEVEL});
  run_fast_until(2, &ones, &twos);
  assert_int_equal(prof_level(), 0);
  prof_health h = health();
  assert_int_equal(h.changes_count, 2);
  assert_int_equal(h.recorded_count + h.lost_count[PROF_LOSS_OVERWRITTEN], ones + twos);
  assert_status(prof_start(2), PROF_OK);
  assert_int_equal(prof_level(), 2);
  add();
  assert_int_equal(health().recorded_count + health().lost_count[PROF_LOSS_OVERWRITTEN],
                   ones + twos + 1);
}

static void a_start_takes_back_what_the_budget_muted_and_not_what_was_asked(void **state) {
  (void)state;
  uint64_t ones, twos;
  start((prof_options){.level = 1, .budget_permille = 5, .budget_action = PROF_BUDGET_MUTE});
  assert_status(prof_mute("alloc", NULL, 1), PROF_OK);
  alloc();
  for (const uint64_t begun = now_ns(); goes_on(begun, 500000000, 2);)
    run_fast(10000000, &ones, &twos);
  assert_int_equal(health().muted_sites_count, 2);
  const uint64_t muted = health().lost_count[PROF_LOSS_MUTED];
  add();
  assert_int_equal(health().lost_count[PROF_LOSS_MUTED], muted + 1);
  assert_status(prof_start(1), PROF_OK);
  assert_int_equal(health().muted_sites_count, 1);
  add();
  assert_int_equal(health().lost_count[PROF_LOSS_MUTED], muted + 1);
  alloc();
  assert_int_equal(health().lost_count[PROF_LOSS_MUTED], muted + 2);
}

/* Whoever sets the level while it records, the capture says so. */
/* A process that sets a level from outside notes it in the capture. It does so for a level that is
   set and reset while nothing is recorded. It also does so for more changes than the header has
   room for, if the process sees them between. */
static void each_level_from_outside_stands_in_the_trace_with_its_time(void **state) {
  (void)state;
  static const int levels[] = {2, 0, 1};
  char path[] = "/tmp/prof-budget-XXXXXX.json", *text = NULL, *json = NULL;
  size_t bytes;
  close(mkstemps(path, 5));
  const prof_options options = {
      .size = sizeof options, .path = path, .level = 1, .cap_bytes = 64 << 20};
  assert_status(prof_start_with(&options), PROF_OK);
  const prof_health h = health();
  uint64_t before_ns[4];
  for (int round = 0; round < 40; round++) {
    prof_trace *trace = NULL;
    prof_trace_info info = {.size = sizeof info};
    for (int i = 0; i < 3; i++) {
      before_ns[i] = now_ns();
      assert_status(prof_trace_set_level(h.capture_path, levels[i], NULL), PROF_OK);
    }
    before_ns[3] = now_ns();
    /* seen by the process, or not yet */
    assert_status(round % 2 ? prof_get(&trace) : prof_trace_open(h.capture_path, &trace), PROF_OK);
    prof_trace_info_get(trace, &info);
    assert_int_equal(info.change_count, 3 * (round + 1));
    assert_int_equal(info.untold_change_count, 0);
    for (int i = 0; i < 3; i++) {
      const prof_trace_change change = change_at(trace, (uint32_t)(3 * round + i));
      assert_true(change.kind == PROF_CHANGE_LEVEL && change.reason == PROF_REASON_OUTSIDE);
      assert_int_equal(change.level_before, levels[(i + 2) % 3]);
      assert_int_equal(change.level_after, levels[i]);
      assert_in_range(info.start_ns + change.at_ns + info.clock_error_ns, before_ns[i],
                      before_ns[i + 1] + 2 * info.clock_error_ns);
    }
    assert_status(prof_trace_change_text(trace, (uint32_t)(3 * round), &text), PROF_OK);
    assert_non_null(strstr(text, "level 1 -> 2: from outside"));
    assert_null(strstr(text, "earlier"));
    prof_free(text);
    prof_trace_destroy(trace);
  }
  assert_status(prof_get_json(&json, &bytes), PROF_OK);
  assert_non_null(strstr(json, "\"name\":\"prof: level raised\""));
  assert_non_null(strstr(json, "\"name\":\"prof: level lowered\""));
  prof_free(json);
  assert_status(prof_stop(), PROF_OK);
  unlink(h.capture_path);
  unlink(path);
}

static void each_change_of_the_level_is_told(void **state) {
  (void)state;
  char path[] = "/tmp/prof-budget-XXXXXX.json", *text = NULL;
  prof_health h;
  close(mkstemps(path, 5));
  const prof_options options = {.size = sizeof options, .path = path, .level = 2};
  assert_status(prof_start_with(&options), PROF_OK);
  add();
  assert_status(prof_start(1), PROF_OK);
  h = health();
  assert_status(prof_trace_set_level(h.capture_path, 0, NULL), PROF_OK);
  prof_trace *trace = NULL;
  prof_trace_info info = {.size = sizeof info};
  assert_status(prof_get(&trace), PROF_OK);
  prof_trace_info_get(trace, &info);
  assert_int_equal(info.level_now, 0);
  assert_int_equal(info.change_count, 2);
  const prof_trace_change asked = change_at(trace, 0), outside = change_at(trace, 1);
  assert_true(asked.kind == PROF_CHANGE_LEVEL && asked.reason == PROF_REASON_ASKED &&
              asked.level_before == 2 && asked.level_after == 1);
  assert_true(outside.kind == PROF_CHANGE_LEVEL && outside.reason == PROF_REASON_OUTSIDE &&
              outside.level_before == 1 && outside.level_after == 0);
  assert_status(prof_trace_change_text(trace, 1, &text), PROF_OK);
  assert_non_null(strstr(text, "level 1 -> 0: from outside"));
  prof_free(text);
  prof_trace_destroy(trace);
  assert_status(prof_stop(), PROF_OK);
  assert_status(prof_start(2), PROF_OK); /* a session has its level from its start */
  assert_int_equal(health().changes_count, 2);
  assert_status(prof_stop(), PROF_OK);
  unlink(h.capture_path);
  unlink(path);
}

/* A name made at run time has a site of its own when it has come twice, and a mute sees it the
   first time. */
static void names_made_at_run_time_are_muted(void **state) {
  (void)state;
  char fresh[32];
  start((prof_options){.level = 1});
  named("known");
  named("known");
  assert_status(prof_mute("known", NULL, 1), PROF_OK);
  assert_status(prof_mute("fresh*", "named", 1), PROF_OK);
  for (int i = 0; i < 4; i++) {
    snprintf(fresh, sizeof fresh, "fresh %d", i / 2);
    named("known");
    named(fresh);
    prof_scope_end(prof_scope_begin(1, fresh, "named", NULL));
    prof_scope_end(prof_scope_begin(1, "known", "by call", NULL));
    named("other");
    PROF_INSTANT(fresh, "named", PROF_NO_ARGS);
  }
  prof_health h = health();
  assert_int_equal(h.recorded_count, 2 + 4);
  assert_int_equal(h.lost_count[PROF_LOSS_MUTED], 5 * 4);
  assert_int_equal(h.muted_sites_count, 1 + 3 * 2 + 1);
  assert_status(prof_mute(NULL, NULL, 0), PROF_OK);
  named("known");
  named("fresh 0");
  h = health();
  assert_int_equal(h.recorded_count, 2 + 4 + 2);
  assert_int_equal(h.muted_sites_count, 0);
}

/* Too long to have a site of its own. */
static void a_name_that_is_copied_is_muted(void **state) {
  (void)state;
  char name[200];
  memset(name, 'n', sizeof name - 1);
  name[sizeof name - 1] = '\0';
  start((prof_options){.level = 1});
  named(name);
  assert_status(prof_mute("nnn*", NULL, 1), PROF_OK);
  for (int i = 0; i < 3; i++) named(name);
  named("other");
  const prof_health h = health();
  assert_int_equal(h.recorded_count, 2);
  assert_int_equal(h.lost_count[PROF_LOSS_MUTED], 3);
}

/* The function's name stands for the call site, and mutes all names that it makes. */
static void scopes_by_call_are_muted_as_such(void **state) {
  (void)state;
  start((prof_options){.level = 1});
  assert_status(prof_mute("prof_scope_begin", NULL, 1), PROF_OK);
  prof_scope_end(prof_scope_begin(1, "by call", "calls", NULL));
  named("at run time");
  assert_status(prof_mute("named", "named", 1), PROF_OK);
  named("at run time");
  const prof_health h = health();
  assert_int_equal(h.recorded_count, 1);
  assert_int_equal(h.lost_count[PROF_LOSS_MUTED], 2);
}

/* ---- its own cost ---- */

static void recording_tells_what_it_takes_thread_by_thread(void **state) {
  (void)state;
  pthread_t thread;
  start((prof_options){.level = 1, .policy = PROF_POLICY_KEEP});
  for (int i = 0; i < 1000; i++) add();
  assert_int_equal(pthread_create(&thread, NULL, record_ten_thousand, NULL), 0);
  pthread_join(thread, NULL);
  prof_trace *trace = NULL;
  prof_trace_info info = {.size = sizeof info};
  assert_status(prof_get(&trace), PROF_OK);
  prof_trace_info_get(trace, &info);
  prof_trace_thread first = {.size = sizeof first}, second = {.size = sizeof second};
  assert_status(prof_trace_thread_get(trace, 0, &first), PROF_OK);
  assert_status(prof_trace_thread_get(trace, 1, &second), PROF_OK);
  prof_trace_destroy(trace);
  assert_true(info.scope_cost_ns > 1 && info.scope_cost_ns < 100000);
  assert_true((double)first.own_ns >= 1000 * info.scope_cost_ns * 0.99);
  assert_true((double)second.own_ns >= 10000 * info.scope_cost_ns * 0.99);
  assert_true(info.own_ns >= first.own_ns + second.own_ns - 2);
  const prof_health h = health();
  assert_true(h.own_ns == info.own_ns);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_teardown(a_mute_leaves_out_what_it_names_and_counts_it, stop_all),
      cmocka_unit_test_teardown(a_site_that_comes_later_is_muted_from_its_first_scope, stop_all),
      cmocka_unit_test_teardown(a_site_is_muted_while_any_rule_says_so, stop_all),
      cmocka_unit_test_teardown(a_scope_that_is_open_ends_as_recorded, stop_all),
      cmocka_unit_test_teardown(mutes_hold_from_capture_to_capture_and_are_told_in_each, stop_all),
      cmocka_unit_test_teardown(mutes_without_end_fill_no_more_than_their_part, stop_all),
      cmocka_unit_test_teardown(what_makes_no_mute_is_refused, stop_all),
      cmocka_unit_test_teardown(mutes_under_load_lose_nothing_uncounted, stop_all),
      cmocka_unit_test_teardown(what_is_seldom_is_never_touched, stop_all),
      cmocka_unit_test_teardown(over_the_budget_the_level_steps_down_and_then_sites_are_muted,
                                stop_all),
      cmocka_unit_test_teardown(an_earlier_capture_does_not_count, stop_all),
      cmocka_unit_test_teardown(the_most_frequent_are_muted_and_the_rare_are_heard, stop_all),
      cmocka_unit_test_teardown(the_level_alone_may_step_down_to_nothing_and_a_start_takes_it_back,
                                stop_all),
      cmocka_unit_test_teardown(a_start_takes_back_what_the_budget_muted_and_not_what_was_asked,
                                stop_all),
      cmocka_unit_test_teardown(each_change_of_the_level_is_told, stop_all),
      cmocka_unit_test_teardown(names_made_at_run_time_are_muted, stop_all),
      cmocka_unit_test_teardown(a_name_that_is_copied_is_muted, stop_all),
      cmocka_unit_test_teardown(each_level_from_outside_stands_in_the_trace_with_its_time,
                                stop_all),
      cmocka_unit_test_teardown(scopes_by_call_are_muted_as_such, stop_all),
      cmocka_unit_test_teardown(recording_tells_what_it_takes_thread_by_thread, stop_all),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
