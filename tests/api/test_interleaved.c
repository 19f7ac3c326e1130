/* Scopes by calls that do not nest: tasks that take turns on one thread, begun in one order and
   ended in another. Each keeps its name and its arguments, none is lost, and blocks among them stay
   blocks. */
#define _GNU_SOURCE
#include "events.h"

#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/time.h>

enum { TASKS = 3000, OPEN_MAX = 300, TEXT_BYTES = 100 };

typedef struct task {
  uint64_t start;
  unsigned number;
} task;

static task begin_task(unsigned number) {
  char name[32], text[TEXT_BYTES];
  snprintf(name, sizeof name, "task %u", number);
  memset(text, 'a' + (char)(number % 26), sizeof text - 1);
  text[sizeof text - 1] = '\0';
  const prof_arg items[] = {{.key = "number", .type = PROF_ARG_U64, .value = {.u64 = number}},
                            {.key = "text",
                             .type = PROF_ARG_STRING,
                             .bytes = number % TEXT_BYTES,
                             .value = {.text = text}}};
  const prof_args args = {items, 2, PROF_ARGS_PAIRS, NULL};
  return (task){prof_scope_begin(1, name, "task", &args), number};
}

static void start(void) {
  assert_int_equal(prof_start(1), PROF_OK);
  assert_int_equal(prof_clear(), PROF_OK);
}

static void check_losses(void) {
  prof_health health = {.size = sizeof health};
  assert_int_equal(prof_health(&health), PROF_OK);
  for (int i = 0; i < PROF_LOSS_COUNT; i++)
    if (i != PROF_LOSS_CLEARED && health.lost_count[i])
      fail_msg("%llu lost: %s", (unsigned long long)health.lost_count[i], prof_loss_name(i));
  assert_int_equal(health.cut_text_count, 0);
}

/* Every task once, with its own name and values. */
static void check_tasks(unsigned count) {
  static bool is_seen[TASKS];
  memset(is_seen, 0, sizeof is_seen);
  unsigned seen = 0;
  for (size_t i = 0; i < events.count; i++) {
    const seen_event *const event = &events.items[i];
    if (strcmp(event->category, "task") != 0) continue;
    char wanted[32], args[EVENT_TEXT_BYTES];
    assert_int_equal(event->e.arg_count, 2);
    const unsigned number = (unsigned)event->e.args[0].value.u64;
    assert_in_range(number, 0, count - 1);
    snprintf(wanted, sizeof wanted, "task %u", number);
    assert_string_equal(event->name, wanted);
    snprintf(args, sizeof args, "number=u:%u text=s:", number);
    assert_memory_equal(event->args, args, strlen(args));
    for (unsigned b = 0; b < number % TEXT_BYTES; b++)
      assert_int_equal(event->args[strlen(args) + b], 'a' + (char)(number % 26));
    assert_int_equal(strlen(event->args), strlen(args) + number % TEXT_BYTES);
    assert_false(is_seen[number]);
    is_seen[number] = true;
    seen++;
  }
  assert_int_equal(seen, count);
}

typedef unsigned (*chooser)(unsigned open_count);
static int by_number(const void *a, const void *b) {
  const uint64_t one = *(const uint64_t *)a, two = *(const uint64_t *)b;
  return one < two ? -1 : one > two;
}

static unsigned oldest(unsigned open_count) { return open_count * 0; }
static unsigned newest(unsigned open_count) { return open_count - 1; }
static unsigned any(unsigned open_count) {
  static uint32_t state = 12345;
  state = state * 1664525u + 1013904223u;
  return (state >> 8) % open_count;
}

/* So many are open at once; which one ends next is chosen. */
static void take_turns(unsigned open_count, chooser choose) {
  static task open[OPEN_MAX];
  unsigned count = 0;
  for (unsigned i = 0; i < TASKS; i++) {
    if (count == open_count) {
      const unsigned chosen = choose(count);
      prof_scope_end(open[chosen].start);
      memmove(open + chosen, open + chosen + 1, (--count - chosen) * sizeof *open);
    }
    open[count++] = begin_task(i);
    assert_true(open[count - 1].start != 0);
  }
  while (count) {
    const unsigned chosen = choose(count);
    prof_scope_end(open[chosen].start);
    memmove(open + chosen, open + chosen + 1, (--count - chosen) * sizeof *open);
  }
}

static void tasks_take_turns(void **state) {
  (void)state;
  static const unsigned open_counts[] = {1, 2, 10, 63, 64, 65, 66, 200, OPEN_MAX};
  static const chooser choosers[] = {oldest, newest, any};
  for (size_t c = 0; c < COUNT_OF(choosers); c++)
    for (size_t i = 0; i < COUNT_OF(open_counts); i++) {
      start();
      take_turns(open_counts[i], choosers[c]);
      check_losses();
      events_stop_and_read();
      check_tasks(TASKS);
    }
}

/* While they are open, the reader shows each with its own text, also after texts have been
   moved. */
static void open_tasks_are_shown_with_their_texts(void **state) {
  (void)state;
  enum { OPEN = 60, TURNS = 2000 };
  static task open[TURNS];
  start();
  for (unsigned i = 0; i < TURNS; i++) {
    if (i >= OPEN) prof_scope_end(open[i - OPEN].start);
    open[i] = begin_task(i);
  }
  events_read();
  unsigned shown = 0;
  for (size_t i = 0; i < events.count; i++) shown += events.items[i].e.kind == PROF_EVENT_OPEN;
  assert_int_equal(shown, OPEN);
  check_tasks(TURNS);
  for (unsigned i = TURNS - OPEN; i < TURNS; i++) prof_scope_end(open[i].start);
  check_losses();
  events_stop_and_read();
  check_tasks(TURNS);
}

/* A block around a begin, a block between begin and end, and ends inside of blocks. */
static void blocks_and_tasks_mix(void **state) {
  (void)state;
  uint64_t first = 0, second = 0;
  start();
  for (int i = 0; i < 100; i++) {
    WITH_BASE_PROFILER(PROF_HOST, "around a begin", "block", PROF_NO_ARGS,
                       { first = prof_scope_begin(1, "first", "call", NULL); });
    WITH_BASE_PROFILER(PROF_HOST, "between", "block", PROF_ARGS("i", i), {
      second = prof_scope_begin(1, "second", "call", NULL);
      WITH_BASE_PROFILER(PROF_HOST, "inner", "block", PROF_NO_ARGS, { prof_scope_end(first); });
    });
    WITH_BASE_PROFILER(PROF_HOST, "around an end", "block", PROF_NO_ARGS,
                       { prof_scope_end(second); });
  }
  check_losses();
  events_stop_and_read();
  assert_int_equal(events.count, 600);
}

static jmp_buf back;
static void jump_out(void) {
  WITH_BASE_PROFILER(PROF_HOST, "skipped", "block", PROF_NO_ARGS, longjmp(back, 1));
}
static bool jump(void) {
  if (setjmp(back) != 0) return true;
  jump_out();
  return false;
}

/* What longjmp skips is a block; a task that was begun inside of it goes on. */
static void a_skipped_block_ends_with_the_block_around_it_and_a_task_does_not(void **state) {
  (void)state;
  start();
  uint64_t begun = 0;
  for (int i = 0; i < 200; i++) {
    WITH_BASE_PROFILER(PROF_HOST, "outer", "block", PROF_NO_ARGS, {
      begun = prof_scope_begin(1, "task", "call", NULL);
      assert_true(jump());
    });
    prof_scope_end(begun);
  }
  check_losses();
  events_stop_and_read();
  size_t tasks = 0, outers = 0, skipped = 0;
  for (size_t i = 0; i < events.count; i++) {
    tasks +=
        strcmp(events.items[i].name, "task") == 0 && events.items[i].e.kind == PROF_EVENT_SCOPE;
    outers +=
        strcmp(events.items[i].name, "outer") == 0 && events.items[i].e.kind == PROF_EVENT_SCOPE;
    skipped += strcmp(events.items[i].name, "skipped") == 0 &&
               events.items[i].e.flags & PROF_EVENT_SKIPPED;
  }
  assert_int_equal(tasks, 200);
  assert_int_equal(outers, 200);
  assert_int_equal(skipped, 200);
}

/* Each moment of a thread is the self time of the scope that began last of those that run then:
   worked out anew here, from begins and ends alone. What has not ended has none, nor what a jump
   left: its moments are those of what runs around it. */
static bool has_time(const prof_event *e) {
  return e->kind == PROF_EVENT_SCOPE && !(e->flags & PROF_EVENT_SKIPPED);
}

static void check_self_times(void) {
  static uint64_t self_ns[EVENTS_MAX], moments[2 * EVENTS_MAX];
  size_t moment_count = 0;
  memset(self_ns, 0, sizeof self_ns);
  for (size_t i = 0; i < events.count; i++) {
    const prof_event *const e = &events.items[i].e;
    if (!has_time(e)) continue;
    moments[moment_count++] = e->start_ns;
    moments[moment_count++] = e->start_ns + e->duration_ns;
  }
  qsort(moments, moment_count, sizeof *moments, by_number);
  for (size_t m = 1; m < moment_count; m++) {
    size_t last = EVENTS_MAX;
    /* By their begins. Of those that begin at one tick of the clock the shortest is the innermost;
       of equal ones, the later in the list. */
    for (size_t i = 0; i < events.count; i++) {
      const prof_event *const e = &events.items[i].e;
      const prof_event *const before = &events.items[last % EVENTS_MAX].e;
      if (!has_time(e) || e->start_ns > moments[m - 1]) continue;
      if (e->start_ns + e->duration_ns < moments[m]) continue;
      const bool is_tie = last < EVENTS_MAX && e->start_ns == before->start_ns;
      if (!is_tie || e->duration_ns <= before->duration_ns) last = i;
    }
    if (last < EVENTS_MAX) self_ns[last] += moments[m] - moments[m - 1];
  }
  for (size_t i = 0; i < events.count; i++) {
    const prof_event *const e = &events.items[i].e;
    if (e->kind == PROF_EVENT_SCOPE && e->self_ns != self_ns[i])
      fail_msg("%s %zu: self time %" PRIu64 " ns, not %" PRIu64 ", of %" PRIu64,
               events.items[i].name, i, e->self_ns, self_ns[i], e->duration_ns);
  }
}

static void self_times_of_what_overlaps_add_up(void **state) {
  (void)state;
  enum { TURNS = 1150, OPEN = 12 };
  uint64_t open[OPEN] = {0}, left = 0;
  start();
  WITH_BASE_PROFILER(PROF_HOST, "around", "block", PROF_NO_ARGS, {
    for (unsigned i = 0; i < TURNS; i++) {
      const unsigned which = any(OPEN);
      if (open[which]) prof_scope_end(open[which]);
      open[which] = prof_scope_begin(1, "task", "call", NULL);
      WITH_BASE_PROFILER(PROF_HOST, "outer", "block", PROF_NO_ARGS, {
        WITH_BASE_PROFILER(PROF_HOST, "inner", "block", PROF_NO_ARGS, {});
        if (i % 7 == 0) assert_true(jump());
        if (i % 50 == 49) left = prof_scope_begin(1, "never ends", "call", NULL);
      });
    }
    for (unsigned i = 0; i < OPEN; i++)
      if (open[i]) prof_scope_end(open[i]);
  });
  assert_true(left != 0);
  check_losses();
  events_stop_and_read();
  assert_int_equal(events.count, 1 + 3 * TURNS + (TURNS + 6) / 7 + TURNS / 50);
  check_self_times();
}

static void run_blocks(unsigned turns) {
  for (unsigned i = 0; i < turns; i++)
    WITH_BASE_PROFILER(PROF_HOST, "block", "block", PROF_NO_ARGS, {});
}

/* Two long tasks overlap crosswise over several stretches of the cursor's: its self times are the
   table's. */
static void the_cursor_and_the_rows_have_the_same_self_times(void **state) {
  (void)state;
  enum { TURNS = 50000 };
  uint64_t self_ns = 0;
  start();
  const uint64_t one = prof_scope_begin(1, "one", "call", NULL);
  run_blocks(2 * TURNS);
  const uint64_t two = prof_scope_begin(1, "two", "call", NULL);
  run_blocks(TURNS);
  prof_scope_end(one);
  run_blocks(TURNS);
  prof_scope_end(two);
  assert_int_equal(prof_stop(), PROF_OK);
  prof_trace *trace;
  prof_rows *rows;
  prof_cursor *cursor;
  prof_event event;
  assert_int_equal(prof_get(&trace), PROF_OK);
  assert_int_equal(prof_trace_aggregate(trace, NULL, &rows), PROF_OK);
  assert_int_equal(prof_cursor_create(trace, &cursor), PROF_OK);
  while (prof_cursor_next(cursor, &event) == 1)
    if (event.kind == PROF_EVENT_SCOPE) self_ns += event.self_ns;
  assert_int_equal(rows->calls_count, 4 * TURNS + 2);
  assert_int_equal(self_ns, rows->total_self_ns);
  prof_cursor_destroy(cursor);
  prof_rows_destroy(rows);
  prof_trace_destroy(trace);
}

static volatile uint64_t handled;
static void begin_and_end(int signal) {
  (void)signal;
  handled += 2;
  const uint64_t a = prof_scope_begin(1, "handler", "h", NULL),
                 b = prof_scope_begin(1, "handler, inside", "h", NULL);
  prof_scope_end(b);
  prof_scope_end(a);
}

/* A handler whose scopes nest, over tasks that do not. */
static void tasks_take_turns_under_a_handler(void **state) {
  (void)state;
  const prof_options options = {
      .size = sizeof options, .policy = PROF_POLICY_RING, .cap_bytes = 32 << 20};
  char big[600];
  memset(big, 'M', sizeof big - 1);
  big[sizeof big - 1] = '\0';
  assert_int_equal(prof_start_with(&options), PROF_OK);
  const struct sigaction action = {.sa_handler = begin_and_end, .sa_flags = SA_RESTART};
  struct sigaction before;
  assert_int_equal(sigaction(SIGALRM, &action, &before), 0);
  const struct itimerval often = {{0, 50}, {0, 50}}, never = {{0, 0}, {0, 0}};
  setitimer(ITIMER_REAL, &often, NULL);
  enum { TURNS = 300000 };
  for (int i = 0; i < TURNS; i++) {
    const uint64_t a = prof_scope_begin(1, i % 3 ? "a" : big, "m", NULL),
                   b = prof_scope_begin(1, "b", "m", NULL);
    prof_scope_end(a);
    prof_scope_end(b);
  }
  setitimer(ITIMER_REAL, &never, NULL);
  sigaction(SIGALRM, &before, NULL);
  assert_true(handled > 0);
  prof_health health = {.size = sizeof health};
  assert_int_equal(prof_health(&health), PROF_OK);
  uint64_t seen = health.recorded_count;
  for (int i = 0; i < PROF_LOSS_COUNT; i++) seen += health.lost_count[i];
  assert_int_equal(seen, 2 * TURNS + handled);
  prof_trace *trace = NULL;
  prof_trace_info info = {.size = sizeof info};
  assert_int_equal(prof_get(&trace), PROF_OK);
  assert_int_equal(prof_trace_info_get(trace, &info), PROF_OK);
  assert_int_equal(info.event_count, health.recorded_count);
  assert_int_equal(info.open_count, 0);
  assert_int_equal(info.bad_count, 0);
  prof_trace_destroy(trace);
  assert_int_equal(prof_stop(), PROF_OK);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(tasks_take_turns),
      cmocka_unit_test(open_tasks_are_shown_with_their_texts),
      cmocka_unit_test(blocks_and_tasks_mix),
      cmocka_unit_test(a_skipped_block_ends_with_the_block_around_it_and_a_task_does_not),
      cmocka_unit_test(self_times_of_what_overlaps_add_up),
      cmocka_unit_test(the_cursor_and_the_rows_have_the_same_self_times),
      cmocka_unit_test(tasks_take_turns_under_a_handler),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
