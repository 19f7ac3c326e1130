/* The ledger against a model: begins = recorded + lost + open, at any moment, whatever comes in
   whatever order. Each seed is one program of random steps. It has blocks and scopes by calls, with
   and without arguments, deeper than 64, ended in order, out of order, twice, on another thread, or
   never. Threads end with scopes open. There are also mutes, levels, stops and starts, other
   captures (keep, ring, full), clears, forks. One thread at a time takes a step, so a seed always
   does the same, and what is to be counted is known exactly.

   Levels are also set from outside, by another process. Each such change is in the trace, in the
   file as another process reads it, in copies and in JSON, in order and with its time. Those for
   which there was no room are counted.

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

#include "fault/support/captures.h"
#include "fault/support/outside.h"
#include "fault/support/skip.h"

enum { THREADS = 4, SCOPES_MAX = 3000, STEPS = 1500, SITES = 6, CHILD_STEPS = 60 };
/* places of the capture's header: docs/reference/file-format.md */
enum { HEADER_CHANGES = 64 };

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
  pthread_barrier_t turn; /* it waits for a step, and then for all reads after it */
  void (*step)(struct actor *);
  bool is_alive;
} actor;

/* A change from outside. */
typedef struct level_change {
  uint32_t before, after;
  uint64_t from_ns, to_ns; /* it was made between these */
} level_change;

static struct {
  actor actors[THREADS]; /* the first is the main thread */
  uint64_t seed, random;
  uint32_t step;
  uint32_t capture; /* counts captures, from 1 */
  bool is_recording;
  /* of the capture in force */
  uint64_t begins, late_of_others, forked, strays;
  uint32_t level;
  bool is_begun_against_level;
  char path[512]; /* "": it has none, and nobody can set its level */
  level_change changes[OUTSIDE_CHANGES_MAX];
  uint32_t change_count;
  bool was_full;   /* since then there may be no room for a change */
  uint64_t untold; /* of them, those that the header lost before the process looked */
  /* over all */
  uint64_t all_lost[PROF_LOSS_COUNT];
  uint64_t all_begins, all_strays, all_captures, all_forks, all_checks, all_skipped, deepest;
  uint64_t all_changes, all_commands, all_refused, all_untold, all_set_back, all_exports;
} own;

static prof_site sites[SITES] = {{0, "oracle.c", "", 1, 1, 0}, {0, "oracle.c", "", 2, 1, 0},
                                 {0, "oracle.c", "", 3, 1, 0}, {0, "oracle.c", "", 4, 1, 0},
                                 {0, "oracle.c", "", 5, 1, 0}, {0, "oracle.c", "", 6, 1, 0}};
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

static uint32_t level_of_call(uint32_t i) { return 1 + i % 2; }

static uint64_t begin_call(uint32_t i) {
  const prof_arg arg = {
      .key = "text", .type = PROF_ARG_STRING, .bytes = 9, .value.text = "some text"};
  const prof_args args = {.items = &arg, .count = 1, .kind = PROF_ARGS_PAIRS};
  return prof_scope_begin((int)level_of_call(i), names[i], "oracle", below(2) ? &args : NULL);
}

static void begin_one(actor *a, bool is_block) {
  const uint32_t i = below(SITES), needed = is_block ? 1 : level_of_call(i);
  const bool is_left_out = own.level < needed;
  if (a->count == SCOPES_MAX || (is_block && is_left_out)) return; /* as a macro does it */
  const uint64_t start = is_block ? begin_block(i) : begin_call(i);
  if (is_left_out) { /* by the level: neither recorded nor lost */
    own.is_begun_against_level |= start != 0;
    return;
  }
  own.begins++;
  if (start) a->scopes[a->count++] = (scope){start, own.capture, is_block, false};
}

/* By the actor, or another thread, for which only calls are. */
static void end_one(actor *a, uint32_t place, bool is_own) {
  scope *const s = &a->scopes[place];
  if (s->capture == 0)
    own.forked++;
  else if (s->capture != own.capture)
    own.late_of_others++;
  else if (s->is_over)
    own.strays++;
  if (s->capture == own.capture && !s->is_over) {
    s->is_over = true;
    for (uint32_t i = place + 1; s->is_block && i < a->count; i++) {
      scope *const later = &a->scopes[i];
      if (later->capture != own.capture || later->is_over || !later->is_block) continue;
      later->is_over = true;
      own.all_skipped++;
    }
  }
  if (s->is_block && is_own)
    prof_i_end_1(s->start);
  else
    prof_scope_end(s->start);
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
  for (uint32_t i = 0; i < many; i++)
    begin_one(a, only == 0 ? true : only == 1 ? false : below(2) != 0);
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

/* ---- levels from outside ---- */

static bool is_that(const level_change *change, const outside_change *seen, uint64_t error_ns) {
  return change->before == seen->before && change->after == seen->after &&
         change->from_ns <= seen->at_ns + error_ns && seen->at_ns <= change->to_ns + error_ns;
}

/* All that a reader shows are the model's, in order. What it does not show had no room, and is
   counted. False: what is wrong has been printed. */
static bool are_changes_right(const outside_changes *seen, const char *reader) {
  uint32_t next = 0, found = 0;
  for (uint32_t i = 0; i < seen->count; i++) {
    while (next < own.change_count && !is_that(&own.changes[next], &seen->items[i], seen->error_ns))
      next++;
    if (next < own.change_count) found++;
    next++;
  }
  const uint64_t missing = own.change_count - seen->count;
  const bool is_missing_right = own.was_full
                                    ? missing <= seen->untold_count /* of mutes as well */
                                    : missing == own.untold && seen->untold_count == missing;
  if (found == seen->count && is_missing_right) return true;
  print_error(
      "seed %llu, step %u, capture %u: %u changes from outside, %llu of them untold; %s: "
      "status %d, %u shown, %u of them right, %llu untold\n",
      (unsigned long long)own.seed, own.step, own.capture, own.change_count,
      (unsigned long long)own.untold, reader, seen->status, seen->count, found,
      (unsigned long long)seen->untold_count);
  return false;
}

static void set_one(uint32_t level, bool by_command) {
  const uint64_t from_ns = outside_now_ns();
  const outside_page *const page =
      outside_ask(by_command ? OUTSIDE_COMMAND : OUTSIDE_SET, own.path, (int)level);
  assert_int_equal(page->status, 0);
  if (!by_command) assert_int_equal(page->before, own.level);
  assert_int_equal(prof_level(), level);
  if (level != own.level)
    own.changes[own.change_count++] = (level_change){own.level, level, from_ns, outside_now_ns()};
  own.level = level;
  own.all_commands += by_command;
}

static void check(void);

/* More at once than the header has places for: the first of them are lost, and counted. */
static void flood(void) {
  const uint32_t many = HEADER_CHANGES + below(20), count = own.change_count;
  check(); /* the process has seen those before */
  for (uint32_t i = 0; i < many; i++) set_one((own.level + 1 + below(2)) % 3, false);
  const uint32_t changed = own.change_count - count;
  if (changed > HEADER_CHANGES) own.untold += changed - HEADER_CHANGES;
  if (!are_changes_right(&outside_ask(OUTSIDE_READ, own.path, 0)->seen, "another process")) fail();
  check();
}

static void set_some(void) {
  const uint32_t level = own.level, many = 1 + below(4);
  const bool by_command = !below(10);
  for (uint32_t i = 0; i < many; i++) set_one(below(3), by_command);
  if (!below(2)) set_one(level, false); /* set back */
  own.all_set_back += many > 1 && own.level == level;
}

static void set_from_outside(bool is_child) {
  if (!own.path[0] || own.change_count > OUTSIDE_CHANGES_MAX / 2) return;
  if (!own.is_recording) {
    assert_int_equal(outside_ask(OUTSIDE_SET, own.path, 1 + (int)below(2))->status,
                     PROF_E_NOT_RUNNING);
    own.all_refused++;
  } else if (!is_child && !below(12)) {
    flood();
  } else {
    set_some();
  }
}

/* ---- the capture ---- */

/* The changes from outside as this process's trace shows them, and the file, which another process
   reads. */
static bool are_readers_right(const prof_trace *trace) {
  static outside_changes seen;
  outside_list(trace, PROF_REASON_OUTSIDE, &seen);
  if (!are_changes_right(&seen, "this process")) return false;
  return !own.path[0] ||
         are_changes_right(&outside_ask(OUTSIDE_READ, own.path, 0)->seen, "another process");
}

/* False: what is wrong has been printed. */
static bool is_right(void) {
  prof_health health = {.size = sizeof health};
  prof_trace *trace = NULL;
  prof_trace_info info = {.size = sizeof info};
  uint64_t lost = 0, lost_seen = 0;
  own.all_checks++;
  prof_health_get(&health);
  own.was_full |= health.lost_count[PROF_LOSS_FULL] != 0;
  if (prof_get(&trace) != PROF_OK) return own.begins == 0;
  prof_trace_info_get(trace, &info);
  const bool is_told = are_readers_right(trace);
  prof_trace_destroy(trace);
  for (int i = 0; i < PROF_LOSS_COUNT; i++) {
    lost += health.lost_count[i];
    own.all_lost[i] += health.lost_count[i];
    lost_seen += info.lost_count[i];
  }
  const uint64_t recorded_seen = info.event_count - info.open_count,
                 open_seen = info.open_count + info.open_below_count;
  const uint64_t wanted = own.begins + own.late_of_others + own.forked, open = model_open();
  const bool is_level = is_told && health.level == own.level && !own.is_begun_against_level;
  const bool is_same = recorded_seen == health.recorded_count && lost_seen == lost &&
                       open_seen == health.open_count && info.stray_count == health.stray_count;
  const bool is_sum = health.recorded_count + lost + health.open_count == wanted &&
                      health.open_count == open && health.stray_count == own.strays;
  if (is_level && is_same && is_sum && !info.bad_count) return true;
  print_error(
      "seed %llu, step %u, capture %u: %llu begins + %llu late of others + %llu of the parent = "
      "%llu; open %llu, strays %llu\n"
      "health: %llu recorded + %llu lost + %llu open, strays %llu\nreader: %llu recorded + %llu "
      "lost + %llu open, strays %llu, bad %llu\n",
      (unsigned long long)own.seed, own.step, own.capture, (unsigned long long)own.begins,
      (unsigned long long)own.late_of_others, (unsigned long long)own.forked,
      (unsigned long long)wanted, (unsigned long long)open, (unsigned long long)own.strays,
      (unsigned long long)health.recorded_count, (unsigned long long)lost,
      (unsigned long long)health.open_count, (unsigned long long)health.stray_count,
      (unsigned long long)recorded_seen, (unsigned long long)lost_seen,
      (unsigned long long)open_seen, (unsigned long long)info.stray_count,
      (unsigned long long)info.bad_count);
  print_error("level %u, wanted %u%s\n", health.level, own.level,
              own.is_begun_against_level ? "; a scope has begun against the level" : "");
  for (int i = 0; i < PROF_LOSS_COUNT; i++)
    if (health.lost_count[i] || info.lost_count[i])
      print_error("  %s %llu, %llu\n", prof_loss_name(i), (unsigned long long)health.lost_count[i],
                  (unsigned long long)info.lost_count[i]);
  return false;
}

static void check(void) {
  if (!is_right()) fail();
}

/* What is counted since the capture began. */
static void forget_counts(void) {
  own.begins = own.late_of_others = own.forked = own.strays = own.untold = 0;
  own.change_count = 0;
  own.was_full = false;
}

/* Of the capture in force; the previous one is not needed any more. */
static void note_path(void) {
  prof_health health = {.size = sizeof health};
  prof_health_get(&health);
  if (own.path[0] && strcmp(own.path, health.capture_path) != 0) unlink(own.path);
  snprintf(own.path, sizeof own.path, "%s", health.capture_path);
}

static void start_other(void) {
  static uint64_t cap_bytes; /* another one is another capture */
  cap_bytes = (cap_bytes + (16 << 10)) % (1 << 20);
  const bool in_file = below(4) != 0;
  const prof_options options = {.size = sizeof options,
                                .path = in_file ? captures_path("out.json") : NULL,
                                .level = 1 + below(2),
                                .policy = below(2) ? PROF_POLICY_KEEP : PROF_POLICY_RING,
                                .cap_bytes = (1 + (uint64_t)below(3)) * (1 << 20) + cap_bytes};
  check();
  own.all_begins += own.begins;
  own.all_strays += own.strays;
  assert_int_equal(prof_start_with(&options), PROF_OK);
  own.capture++;
  own.all_captures++;
  own.all_changes += own.change_count;
  own.all_untold += own.untold;
  forget_counts();
  own.level = options.level;
  own.is_recording = true;
  note_path();
}

static void stop_or_start(void) {
  if (own.is_recording) {
    assert_int_equal(prof_stop(), PROF_OK);
    own.is_recording = false;
    own.level = 0;
    if (below(2)) check();
  } else if (below(3)) {
    own.level = 1 + below(2);
    assert_int_equal(prof_start((int)own.level), PROF_OK); /* the same capture goes on */
    own.is_recording = true;
  } else {
    start_other();
  }
}

static void change_what_is_recorded(void) {
  if (below(2) && own.is_recording) {
    own.level = 1 + below(2);
    assert_int_equal(prof_start((int)own.level), PROF_OK);
  } else {
    prof_mute(names[below(SITES)], NULL, below(3) == 0);
  }
}

/* A child makes its capture at its first event. */
static void find_childs_path(const char *parents) {
  prof_health health = {.size = sizeof health};
  prof_health_get(&health);
  if (strcmp(health.capture_path, parents) != 0)
    snprintf(own.path, sizeof own.path, "%s", health.capture_path);
}

/* The parent's scopes are the child's to end, each a loss of its own; what the child begins is its
   own. Returns the exit status. */
static int live_as_child(void) {
  actor *const a = &own.actors[0];
  char parents[sizeof own.path];
  for (int i = 1; i < THREADS; i++) own.actors[i].is_alive = false;
  for (uint32_t i = 0; i < a->count; i++) a->scopes[i].capture = 0;
  forget_counts();
  memcpy(parents, own.path, sizeof parents);
  own.path[0] = '\0';
  for (int i = 0; i < CHILD_STEPS; i++) {
    switch (below(6)) {
      case 0:
        begin_some(a);
        break;
      case 1:
        end_some(a);
        break;
      case 2:
        end_any(a);
        break;
      case 3:
        pair_up(a);
        break;
      case 4:
        find_childs_path(parents);
        set_from_outside(true);
        break;
      default:
        prof_clear();
    }
  }
  const bool is_good = own.begins == 0 || is_right();
  if (own.path[0]) unlink(own.path);
  return is_good ? 0 : 1;
}

static void fork_one(void) {
  if (!own.is_recording) return;
  own.all_forks++;
  const pid_t child = fork();
  if (child == 0) _exit(live_as_child());
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  if (status)
    fail_msg("seed %llu, step %u: the child's count is wrong (%x)", (unsigned long long)own.seed,
             own.step, (unsigned)status);
}

/* ---- exports ---- */

static uint32_t count_texts(const char *in, const char *text) {
  uint32_t count = 0;
  for (const char *at = in; (at = strstr(at, text)) != NULL; at += strlen(text)) count++;
  return count;
}

/* `times`: how often it tells a change: Chrome JSON has a mark as well as a list. */
static void check_json(const prof_trace *trace, prof_format format, uint32_t times) {
  const prof_dump_options options = {.size = sizeof options, .format = format};
  char *json = NULL;
  assert_int_equal(prof_trace_json(trace, &options, &json, NULL), PROF_OK);
  const uint32_t shown = count_texts(json, ": from outside\"");
  prof_free(json);
  if (shown != times * (own.change_count - own.untold))
    fail_msg("seed %llu, capture %u: told %u times, of %u changes, in format %d",
             (unsigned long long)own.seed, own.capture, shown, own.change_count, (int)format);
}

/* A copy and both kinds of JSON tell what the trace tells. */
static void check_exports(void) {
  static outside_changes seen;
  enum { EVENTS_MAX = 200000 };
  prof_trace *trace = NULL;
  prof_trace_info info = {.size = sizeof info};
  char copy[CAPTURE_PATH_MAX];
  snprintf(copy, sizeof copy, "%s", captures_path("copy.prof"));
  assert_int_equal(prof_get(&trace), PROF_OK);
  prof_trace_info_get(trace, &info);
  assert_int_equal(prof_trace_dump(trace, copy, NULL), PROF_OK);
  outside_read(copy, &seen);
  unlink(copy);
  if (!are_changes_right(&seen, "a copy")) fail();
  if (!own.was_full && info.event_count < EVENTS_MAX) {
    check_json(trace, PROF_FORMAT_CHROME, 2);
    check_json(trace, PROF_FORMAT_RAF, 1);
    own.all_exports++;
  }
  prof_trace_destroy(trace);
}

/* ---- one seed ---- */

static void do_step(void) {
  static void (*const steps[])(actor *) = {begin_some, begin_some, begin_some,     end_some,
                                           end_some,   end_any,    end_on_another, pair_up};
  actor *const a = &own.actors[below(THREADS)];
  switch (below(60)) {
    case 0:
      stop_or_start();
      return;
    case 1:
      prof_clear();
      return;
    case 2:
    case 3:
      change_what_is_recorded();
      return;
    case 4:
      check();
      return;
    case 7:
      set_from_outside(false);
      return;
    case 5:
      if (!below(4)) fork_one();
      return;
    case 6:
      if (a == &own.actors[0]) return;
      if (a->is_alive)
        end_thread(a);
      else
        begin_thread(a);
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
  check_exports();
  while (own.actors[0].count) {
    end_one(&own.actors[0], own.actors[0].count - 1, true);
    own.actors[0].count--;
  }
  check();
  prof_mute(NULL, NULL, 0);
  if (own.is_recording) prof_stop();
  own.is_recording = false;
  own.level = 0;
}

static uint64_t setting(const char *name, uint64_t otherwise) {
  const char *const set = getenv(name);
  return set ? strtoull(set, NULL, 0) : otherwise;
}

static void each_begin_is_recorded_lost_or_open_whatever_comes(void **state) {
  (void)state;
  const uint64_t first = setting("PROF_ORACLE_FIRST", 1),
                 count = setting("PROF_ORACLE_SEEDS", SKIP_SANITIZED ? 4 : 12);
  for (uint64_t seed = first; seed < first + count; seed++) run_seed(seed);
  own.all_begins += own.begins;
  own.all_strays += own.strays;
  own.all_changes += own.change_count;
  own.all_untold += own.untold;
  print_message(
      "  %llu changes from outside (%llu by the command, %llu set back, %llu without "
      "room in the header), %llu refused, %llu exports\n",
      (unsigned long long)own.all_changes, (unsigned long long)own.all_commands,
      (unsigned long long)own.all_set_back, (unsigned long long)own.all_untold,
      (unsigned long long)own.all_refused, (unsigned long long)own.all_exports);
  print_message(
      "  %llu seeds: %llu begins, %llu skipped, %llu strays, %llu captures, %llu forks, %llu "
      "checks, %llu deep at most\n",
      (unsigned long long)count, (unsigned long long)own.all_begins,
      (unsigned long long)own.all_skipped, (unsigned long long)own.all_strays,
      (unsigned long long)own.all_captures, (unsigned long long)own.all_forks,
      (unsigned long long)own.all_checks, (unsigned long long)own.deepest);
  assert_true(own.all_changes > 0 && own.all_set_back > 0 && own.all_exports > 0);
  if (count >= 12) assert_true(own.all_commands > 0 && own.all_refused > 0 && own.all_untold > 0);
  assert_true(own.all_skipped > 0 && own.all_strays > 0 && own.all_forks > 0 && own.deepest > 64);
  static const int reasons[] = {PROF_LOSS_FULL,        PROF_LOSS_OVERWRITTEN, PROF_LOSS_LATE,
                                PROF_LOSS_CLEARED,     PROF_LOSS_MUTED,       PROF_LOSS_SKIPPED,
                                PROF_LOSS_THREAD_ENDED};
  for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
    if (!own.all_lost[reasons[i]] && count >= 12)
      fail_msg("nothing was ever lost as '%s'", prof_loss_name(reasons[i]));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_begin_is_recorded_lost_or_open_whatever_comes)};
  if (!captures_make_folder(true) || !outside_begin()) return 1;
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  captures_remove_folder();
  return failed;
}
