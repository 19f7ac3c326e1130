/* The ledger against a model: begins = recorded + lost + open, at any moment, whatever comes in whatever order. Each seed is one program of random
   steps: blocks and scopes by calls, with and without arguments, deeper than 64, ended in order, out of order, twice, on another thread, or never;
   threads that end with scopes open; mutes, levels, stops and starts, other captures (keep, ring, full), clears, forks. One thread at a time takes
   a step, so a seed always does the same, and what is to be counted is known exactly.

   PROF_ORACLE_SEEDS: how many (12); PROF_ORACLE_FIRST: the first (1). */
#define _GNU_SOURCE
#include <prof/profiler.h>
#include <prof/trace.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "fault/support/skip.h"

enum { THREADS = 4, SCOPES_MAX = 3000, STEPS = 1500, SITES = 6, CHILD_STEPS = 60 };

/* ---- the model ---- */

typedef struct scope {
  uint64_t start;
  uint32_t capture; /* it began in; 0: in the parent */
  bool is_block;
  bool is_over;
} scope;

typedef struct actor {
  scope scopes[SCOPES_MAX]; /* in the order of their begins */
  uint32_t count;
  pthread_t thread;
  pthread_barrier_t turn; /* it waits for a step, and then for all that looks at it */
  void (*step)(struct actor *);
  bool is_alive;
} actor;

static struct {
  actor actors[THREADS]; /* the first is the main thread */
  uint64_t seed, random;
  uint32_t step;
  uint32_t capture; /* counts captures, from 1 */
  bool is_recording;
  /* of the capture in force */
  uint64_t begins, late_of_others, forked, strays;
  /* over all */
  uint64_t all_lost[PROF_LOSS_COUNT];
  uint64_t all_begins, all_strays, all_captures, all_forks, all_checks, all_skipped, deepest;
} own;

static prof_site sites[SITES] = {{0, "oracle.c", "", 1, 1, 0}, {0, "oracle.c", "", 2, 1, 0}, {0, "oracle.c", "", 3, 1, 0}, {0, "oracle.c", "", 4, 1, 0}, {0, "oracle.c", "", 5, 1, 0}, {0, "oracle.c", "", 6, 1, 0}};
static const char *const names[SITES] = {"a", "b", "c", "d", "e", "f"};

static uint32_t below(uint32_t limit) {
  own.random = own.random * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)(own.random >> 33) % limit;
}

static uint64_t model_open(void) {
  uint64_t open = 0;
  for (int a = 0; a < THREADS; a++)
    for (uint32_t i = 0; own.actors[a].is_alive && i < own.actors[a].count; i++)
      open += !own.actors[a].scopes[i].is_over && own.actors[a].scopes[i].capture == own.capture;
  return open;
}

/* ---- what one thread does ---- */

static uint64_t begin_block(uint32_t i) {
  if (below(2)) return prof_i_begin_1(&sites[i], names[i], "oracle");
  const prof_arg arg = {.key = "count", .type = PROF_ARG_I64, .value.i64 = (int64_t)i};
  const prof_details details = {.name = names[i],
                                .category = "oracle",
                                .name_bytes = PROF_NUL_TERMINATED,
                                .category_bytes = PROF_NUL_TERMINATED,
                                .flags = PROF_I_NAME_LITERAL | PROF_I_CATEGORY_LITERAL,
                                .device = PROF_HOST,
                                .args = {.items = &arg, .count = 1, .kind = PROF_ARGS_PAIRS}};
  return prof_i_begin_details_1(&sites[i], &details);
}

static uint64_t begin_call(uint32_t i) {
  const prof_arg arg = {.key = "text", .type = PROF_ARG_STRING, .bytes = 9, .value.text = "some text"};
  const prof_args args = {.items = &arg, .count = 1, .kind = PROF_ARGS_PAIRS};
  return prof_scope_begin(1 + (int)i % 2, names[i], "oracle", below(2) ? &args : NULL);
}

static void begin_one(actor *a, bool is_block) {
  const uint32_t i = below(SITES);
  if (prof_level() < (is_block ? 1 : 1 + (int)i % 2) || a->count == SCOPES_MAX) return; /* as a macro does it */
  const uint64_t start = is_block ? begin_block(i) : begin_call(i);
  own.begins++;
  if (start) a->scopes[a->count++] = (scope){start, own.capture, is_block, false};
}

/* By the actor, or another thread, for which only calls are. */
static void end_one(actor *a, uint32_t place, bool is_own) {
  scope *const s = &a->scopes[place];
  if (s->capture == 0) own.forked++;
  else if (s->capture != own.capture) own.late_of_others++;
  else if (s->is_over) own.strays++;
  if (s->capture == own.capture && !s->is_over) {
    s->is_over = true;
    for (uint32_t i = place + 1; s->is_block && i < a->count; i++) {
      scope *const later = &a->scopes[i];
      if (later->capture != own.capture || later->is_over || !later->is_block) continue;
      later->is_over = true;
      own.all_skipped++;
    }
  }
  if (s->is_block && is_own) prof_i_end_1(s->start);
  else prof_scope_end(s->start);
}

/* The last scopes that are over are forgotten, but for some, to be ended again. */
static void forget_some(actor *a) {
  while (a->count && a->scopes[a->count - 1].is_over && below(20)) a->count--;
}

static void end_newest(actor *a) {
  for (uint32_t i = a->count; i-- > 0;) {
    if (a->scopes[i].is_over) continue;
    end_one(a, i, true);
    break;
  }
  forget_some(a);
}

static void begin_some(actor *a) {
  const uint32_t many = below(30) ? 1 + below(6) : 60 + below(100), only = below(3);
  for (uint32_t i = 0; i < many; i++) begin_one(a, only == 0 ? true : only == 1 ? false : below(2) != 0);
  if (a->count > own.deepest) own.deepest = a->count;
}
static void end_some(actor *a) {
  for (uint32_t many = below(15) ? 1 + below(8) : 120; many > 0; many--) end_newest(a);
}
static void end_any(actor *a) {
  if (a->count) end_one(a, below(a->count), true);
  forget_some(a);
}
static void end_on_another(actor *a) {
  actor *const other = &own.actors[below(THREADS)];
  if (!other->is_alive || other == a || !other->count) return;
  const uint32_t place = below(other->count);
  if (!other->scopes[place].is_block) end_one(other, place, false);
}
static void pair_up(actor *a) {
  for (uint32_t i = below(12) ? 1 + below(200) : 100000; i > 0; i--) { /* so many fill a capture */
    const uint32_t before = a->count;
    begin_one(a, i % 2);
    if (a->count == before) continue;
    end_one(a, a->count - 1, true);
    a->count--;
  }
}

/* ---- threads, one at a time ---- */

static void *live(void *argument) {
  actor *const a = argument;
  for (;;) {
    pthread_barrier_wait(&a->turn);
    if (!a->step) break;
    a->step(a);
    pthread_barrier_wait(&a->turn);
  }
  return NULL;
}

static void take_step(actor *a, void (*step)(actor *)) {
  if (a == &own.actors[0]) {
    step(a);
    return;
  }
  a->step = step;
  pthread_barrier_wait(&a->turn);
  pthread_barrier_wait(&a->turn);
}

static void begin_thread(actor *a) {
  a->is_alive = true;
  a->count = 0;
  if (a == &own.actors[0]) return;
  pthread_barrier_init(&a->turn, NULL, 2);
  assert_int_equal(pthread_create(&a->thread, NULL, live, a), 0);
}

static void end_thread(actor *a) {
  a->step = NULL;
  pthread_barrier_wait(&a->turn);
  pthread_join(a->thread, NULL);
  pthread_barrier_destroy(&a->turn);
  a->is_alive = false;
}

/* ---- the capture ---- */

/* False: what is wrong has been printed. */
static bool is_right(void) {
  prof_health health = {.size = sizeof health};
  prof_trace *trace = NULL;
  prof_trace_info info = {.size = sizeof info};
  uint64_t lost = 0, lost_seen = 0;
  own.all_checks++;
  prof_health_get(&health);
  if (prof_get(&trace) != PROF_OK) return own.begins == 0;
  prof_trace_info_get(trace, &info);
  prof_trace_destroy(trace);
  for (int i = 0; i < PROF_LOSS_COUNT; i++) {
    lost += health.lost_count[i];
    own.all_lost[i] += health.lost_count[i];
    lost_seen += info.lost_count[i];
  }
  const uint64_t recorded_seen = info.event_count - info.open_count, open_seen = info.open_count + info.open_below_count;
  const uint64_t wanted = own.begins + own.late_of_others + own.forked, open = model_open();
  const bool is_same = recorded_seen == health.recorded_count && lost_seen == lost && open_seen == health.open_count && info.stray_count == health.stray_count;
  if (is_same && !info.bad_count && health.recorded_count + lost + health.open_count == wanted && health.open_count == open && health.stray_count == own.strays)
    return true;
  print_error("seed %llu, step %u, capture %u: %llu begins + %llu late of others + %llu of the parent = %llu; open %llu, strays %llu\n"
              "health: %llu recorded + %llu lost + %llu open, strays %llu\nreader: %llu recorded + %llu lost + %llu open, strays %llu, bad %llu\n",
              (unsigned long long)own.seed, own.step, own.capture, (unsigned long long)own.begins, (unsigned long long)own.late_of_others,
              (unsigned long long)own.forked, (unsigned long long)wanted, (unsigned long long)open, (unsigned long long)own.strays,
              (unsigned long long)health.recorded_count, (unsigned long long)lost, (unsigned long long)health.open_count, (unsigned long long)health.stray_count,
              (unsigned long long)recorded_seen, (unsigned long long)lost_seen, (unsigned long long)open_seen, (unsigned long long)info.stray_count,
              (unsigned long long)info.bad_count);
  for (int i = 0; i < PROF_LOSS_COUNT; i++)
    if (health.lost_count[i] || info.lost_count[i])
      print_error("  %s %llu, %llu\n", prof_loss_name(i), (unsigned long long)health.lost_count[i], (unsigned long long)info.lost_count[i]);
  return false;
}

static void check(void) {
  if (!is_right()) fail();
}

static void start_other(void) {
  static uint64_t cap_bytes; /* another one is another capture */
  cap_bytes = (cap_bytes + (16 << 10)) % (1 << 20);
  const prof_options options = {.size = sizeof options,
                                .level = 1 + below(2),
                                .policy = below(2) ? PROF_POLICY_KEEP : PROF_POLICY_RING,
                                .cap_bytes = (1 + (uint64_t)below(3)) * (1 << 20) + cap_bytes};
  check();
  own.all_begins += own.begins;
  own.all_strays += own.strays;
  assert_int_equal(prof_start_with(&options), PROF_OK);
  own.capture++;
  own.all_captures++;
  own.begins = own.late_of_others = own.forked = own.strays = 0;
  own.is_recording = true;
}

static void stop_or_start(void) {
  if (own.is_recording) {
    assert_int_equal(prof_stop(), PROF_OK);
    own.is_recording = false;
    if (below(2)) check();
  } else if (below(3)) {
    assert_int_equal(prof_start(1 + (int)below(2)), PROF_OK); /* the same capture goes on */
    own.is_recording = true;
  } else {
    start_other();
  }
}

static void change_what_is_recorded(void) {
  if (below(2) && own.is_recording) assert_int_equal(prof_start(1 + (int)below(2)), PROF_OK);
  else prof_mute(names[below(SITES)], NULL, below(3) == 0);
}

/* The parent's scopes are the child's to end, each a loss of its own; what the child begins is its own. */
static void fork_one(void) {
  if (!own.is_recording) return;
  own.all_forks++;
  const pid_t child = fork();
  if (child == 0) {
    for (int a = 1; a < THREADS; a++) own.actors[a].is_alive = false;
    actor *const a = &own.actors[0];
    for (uint32_t i = 0; i < a->count; i++) a->scopes[i].capture = 0;
    own.begins = own.late_of_others = own.forked = own.strays = 0;
    for (int i = 0; i < CHILD_STEPS; i++) {
      switch (below(5)) {
        case 0: begin_some(a); break;
        case 1: end_some(a); break;
        case 2: end_any(a); break;
        case 3: pair_up(a); break;
        default: prof_clear();
      }
    }
    _exit(own.begins == 0 || is_right() ? 0 : 1);
  }
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  if (status) fail_msg("seed %llu, step %u: the child's count is wrong (%x)", (unsigned long long)own.seed, own.step, (unsigned)status);
}

/* ---- one seed ---- */

static void do_step(void) {
  static void (*const steps[])(actor *) = {begin_some, begin_some, begin_some, end_some, end_some, end_any, end_on_another, pair_up};
  actor *const a = &own.actors[below(THREADS)];
  switch (below(60)) {
    case 0: stop_or_start(); return;
    case 1: prof_clear(); return;
    case 2:
    case 3: change_what_is_recorded(); return;
    case 4: check(); return;
    case 5:
      if (!below(4)) fork_one();
      return;
    case 6:
      if (a == &own.actors[0]) return;
      if (a->is_alive) end_thread(a);
      else begin_thread(a);
      return;
    default:
      if (a->is_alive) take_step(a, steps[below(sizeof steps / sizeof *steps)]);
  }
}

static void run_seed(uint64_t seed) {
  own.seed = seed;
  own.random = seed * 2862933555777941757u + 3037000493u;
  start_other();
  for (int a = 0; a < THREADS; a++) begin_thread(&own.actors[a]);
  for (own.step = 0; own.step < STEPS; own.step++) do_step();
  for (int a = 1; a < THREADS; a++)
    if (own.actors[a].is_alive) end_thread(&own.actors[a]);
  check();
  while (own.actors[0].count) {
    end_one(&own.actors[0], own.actors[0].count - 1, true);
    own.actors[0].count--;
  }
  check();
  prof_mute(NULL, NULL, 0);
  if (own.is_recording) prof_stop();
  own.is_recording = false;
}

static uint64_t setting(const char *name, uint64_t otherwise) {
  const char *const set = getenv(name);
  return set ? strtoull(set, NULL, 0) : otherwise;
}

static void each_begin_is_recorded_lost_or_open_whatever_comes(void **state) {
  (void)state;
  const uint64_t first = setting("PROF_ORACLE_FIRST", 1), count = setting("PROF_ORACLE_SEEDS", SKIP_SANITIZED ? 4 : 12);
  for (uint64_t seed = first; seed < first + count; seed++) run_seed(seed);
  own.all_begins += own.begins;
  own.all_strays += own.strays;
  print_message("  %llu seeds: %llu begins, %llu skipped, %llu strays, %llu captures, %llu forks, %llu checks, %llu deep at most\n", (unsigned long long)count,
                (unsigned long long)own.all_begins, (unsigned long long)own.all_skipped, (unsigned long long)own.all_strays,
                (unsigned long long)own.all_captures, (unsigned long long)own.all_forks, (unsigned long long)own.all_checks, (unsigned long long)own.deepest);
  assert_true(own.all_skipped > 0 && own.all_strays > 0 && own.all_forks > 0 && own.deepest > 64);
  static const int reasons[] = {PROF_LOSS_FULL, PROF_LOSS_OVERWRITTEN, PROF_LOSS_LATE, PROF_LOSS_CLEARED, PROF_LOSS_MUTED, PROF_LOSS_SKIPPED, PROF_LOSS_THREAD_ENDED};
  for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
    if (!own.all_lost[reasons[i]] && count >= 12) fail_msg("nothing was ever lost as '%s'", prof_loss_name(reasons[i]));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(each_begin_is_recorded_lost_or_open_whatever_comes)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
