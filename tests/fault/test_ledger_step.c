/* The ledger, instruction by instruction: recorded + lost + open = begun. A child records into a
   capture file and is stepped one instruction at a time. After each the parent reads the file as it
   stands, as after a kill, and adds up. While no begin is under way the sum is what was begun,
   exactly. While one is, it is that or one more, and never less than it was before.

   Some walks are interrupted by a handler that records, and loses, as well: at one instruction in
   so many, and the handler is walked, too. */
#define _GNU_SOURCE
#include <prof/trace.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "hang_guard.h"
#include "support/scenes.h"
#include "support/skip.h"

enum { CALLS = 1400, OTHER_DEPTH = 70, INTERRUPTED_EVERY = 211 };

/* ---- what the child does ---- */

static scenes_call calls[CALLS];
static int call_count;

static void begin_named_call(void) {
  scenes_call *const call = &calls[call_count];
  const prof_arg items[] = {{"text", PROF_ARG_STRING, PROF_NUL_TERMINATED, {.text = "a text"}}};
  const prof_args args = {items, 1, PROF_ARGS_PAIRS, NULL};
  call->log = plan_announce(PLAN_NAMED);
  call->start = prof_scope_begin(1, plan_name((uint32_t)call_count), "named", &args);
  call->log->begun = plan_ticks();
  call_count++;
}
static void begin_calls(int count) {
  for (int i = 0; i < count; i++)
    if (i % 8 == 3)
      begin_named_call();
    else
      calls[call_count++] = begin_call(PLAN_DEEP);
}
static void end_calls_down_to(int count) {
  while (call_count > count) end_call(calls[--call_count]);
}

/* Blocks, which end where the test says. One that a jump leaves has no end of its own. */
static scenes_call begin_block(plan_kind kind) {
  static prof_site sites[PLAN_KIND_COUNT];
  const prof_details details = {.name = plan_categories[kind],
                                .category = plan_categories[kind],
                                .name_bytes = PROF_NUL_TERMINATED,
                                .category_bytes = PROF_NUL_TERMINATED,
                                .flags = PROF_I_NAME_LITERAL | PROF_I_CATEGORY_LITERAL};
  scenes_call call = {plan_announce(kind), 0};
  sites[kind].level = 1;
  if (!call.log->is_off) call.start = prof_i_begin_details_1(&sites[kind], &details);
  call.log->begun = plan_ticks();
  return call;
}
static scenes_call begin_named_block(void) {
  static prof_site site = {.level = 1};
  const prof_details details = {.name = plan_name(1),
                                .category = "named",
                                .name_bytes = PROF_NUL_TERMINATED,
                                .category_bytes = PROF_NUL_TERMINATED};
  scenes_call call = {plan_announce(PLAN_NAMED), 0};
  if (!call.log->is_off) call.start = prof_i_begin_details_1(&site, &details);
  call.log->begun = plan_ticks();
  return call;
}
static scenes_call begin_blocks(void) {
  const scenes_call outer = begin_block(PLAN_OUTER);
  begin_named_block();
  begin_block(PLAN_INNER);
  return outer;
}
/* A block with one text, by the shortest way once the site is known. */
static scenes_call begin_text_block(void) {
  static prof_site site = {.level = 1};
  scenes_call call = {plan_announce(PLAN_TEXT), 0};
  const char *const text = plan_new_text(call.log->number);
  if (!call.log->is_off)
    call.start = prof_i_enter(&site, PROF_HOST, "text", "a text",
                              PROF_I_NAME_LITERAL | PROF_I_CATEGORY_LITERAL, 0, true,
                              PROF_ARGS("text", text));
  call.log->begun = plan_ticks();
  return call;
}
static void ready_texts(void) {
  ready_stream();
  for (int i = 0; i < 2; i++) end_call(begin_text_block());
}
static void act_texts_in_order(void) {
  const scenes_call outer = begin_text_block(), inner = begin_text_block();
  end_call(inner);
  end_call(outer);
}
static void act_skipped_texts(void) {
  const scenes_call outer = begin_block(PLAN_OUTER);
  begin_text_block();
  begin_text_block();
  end_call(outer);
}
static void act_leave_texts(void) {
  begin_text_block();
  begin_text_block();
}
static void act_skipped(void) { end_call(begin_blocks()); }
static void act_skipped_deep(void) {
  begin_calls(PROF_I_OPEN_COUNT - 2);
  const scenes_call outer = begin_blocks();
  begin_named_block();
  begin_block(PLAN_INNER);
  end_call(outer);
  end_calls_down_to(PROF_I_OPEN_COUNT - 4);
}
static void act_skipped_late(void) {
  const scenes_call outer = begin_blocks();
  prof_stop();
  end_call(outer);
}
static scenes_call outer_block;
static void begin_outer_blocks(void) { outer_block = begin_blocks(); }

/* The capture is full, and so is the reserve for scopes that stood open then. */
static void ready_full_with(void (*before)(void)) {
  prof_health health = {.size = sizeof health};
  start_keep();
  warm_up();
  if (before) before();
  begin_calls(CALLS - 100);
  do fill_up_to(0);
  while (prof_i_arena_header()->used_bytes + PROF_I_UNIT_BYTES <= prof_i_the_arena.cap_bytes);
  do {
    plan_plain();
    end_calls_down_to(call_count - 1);
    prof_health(&health);
  } while (health.lost_count[PROF_LOSS_FULL] + health.lost_count[PROF_LOSS_NO_CHUNK] < 20);
}
static void ready_full(void) { ready_full_with(NULL); }
static void act_full(void) {
  end_calls_down_to(call_count - 4);
  end_call(calls[10]);
  end_call(calls[call_count - 3]);
}
static void ready_full_shown(void) {
  ready_full_with(NULL);
  end_calls_down_to(10);
}
static void act_full_shown(void) {
  end_call(calls[4]);
  end_call(calls[3]);
  call_count = 9;
  end_call(calls[9]);
  end_calls_down_to(7);
}
static void ready_full_blocks(void) {
  ready_full_with(begin_outer_blocks);
  end_calls_down_to(20);
}
static void act_full_blocks(void) { end_call(outer_block); }
static void ready_full_deep_blocks(void) {
  ready_full_with(begin_outer_blocks);
  end_calls_down_to(PROF_I_OPEN_COUNT + 4);
}

static void ready_late(void) {
  ready_stream();
  begin_calls(PROF_I_OPEN_COUNT + 6);
  prof_stop();
}
static void ready_later_session(void) {
  ready_late();
  start_stream();
  plan_plain();
}
static void act_late(void) {
  end_call(calls[20]);
  end_call(calls[call_count - 3]);
  end_call(calls[--call_count]);
  call_count--;
  end_call(calls[call_count]);
}

static void act_deep_tasks(void) {
  begin_calls(PROF_I_OPEN_COUNT + 6);
  end_call(calls[PROF_I_OPEN_COUNT + 2]);
  plan_plain();
  end_call(calls[30]);
  plan_plain();
  calls[30] = begin_call(PLAN_DEEP);
  plan_named();
  end_calls_down_to(PROF_I_OPEN_COUNT + 3);
  call_count--;
  end_calls_down_to(PROF_I_OPEN_COUNT - 2);
}
/* As act_deep_calls_in_blocks(), twice. */
static void act_deep_moves(void) {
  begin_calls(PROF_I_OPEN_COUNT - 1);
  const scenes_call outer = begin_block(PLAN_OUTER), inner = begin_block(PLAN_INNER);
  begin_calls(3);
  end_call(inner);
  begin_calls(3);
  end_call(outer);
  end_calls_down_to(PROF_I_OPEN_COUNT - 3);
}

static void act_leave_open(void) {
  plan_named();
  begin_calls(3);
  begin_named_call();
}
static void act_leave_open_deep(void) { begin_calls(PROF_I_OPEN_COUNT + 3); }
static void act_leave_open_tasks(void) {
  begin_calls(PROF_I_OPEN_COUNT + 6);
  end_call(calls[7]);
  end_call(calls[PROF_I_OPEN_COUNT + 2]);
}

/* Ends that come on another thread than the begins. */
static pthread_barrier_t begun_elsewhere;
static void *begin_there(void *unused) {
  (void)unused;
  begin_calls(OTHER_DEPTH);
  pthread_barrier_wait(&begun_elsewhere);
  pause();
  return NULL;
}
static void begin_elsewhere(void) {
  pthread_t thread;
  pthread_barrier_init(&begun_elsewhere, NULL, 2);
  if (pthread_create(&thread, NULL, begin_there, NULL) != 0) _exit(5);
  pthread_barrier_wait(&begun_elsewhere);
}
static void ready_elsewhere(void) {
  ready_stream();
  begin_elsewhere();
}
static void act_end_elsewhere(void) {
  end_call(calls[5]);
  end_call(calls[11]);
  end_call(calls[OTHER_DEPTH - 3]);
  end_call(calls[OTHER_DEPTH - 2]);
}
static void ready_elsewhere_late(void) {
  ready_elsewhere();
  prof_stop();
}
static scenes_call others[OTHER_DEPTH];
static void begin_elsewhere_before(void) {
  begin_elsewhere();
  memcpy(others, calls, sizeof others);
  call_count = 0;
}
static void ready_elsewhere_full(void) {
  ready_full_with(begin_elsewhere_before);
  memcpy(calls, others, sizeof others);
}
static void ready_deep_elsewhere(void) {
  ready_elsewhere();
  for (int i = 0; i < PROF_I_OPEN_COUNT + 2; i++) begin_call(PLAN_DEEP);
}

static void ready_ring_with_deep(void) {
  start_ring();
  warm_up();
  begin_calls(PROF_I_OPEN_COUNT + 8);
  while (!has_overwritten()) fill_to_next_chunk();
  fill_up_to(16);
}
static void act_ring_with_deep(void) {
  end_call(calls[PROF_I_OPEN_COUNT + 1]);
  end_call(calls[PROF_I_OPEN_COUNT + 7]);
  end_call(calls[PROF_I_OPEN_COUNT + 3]);
  end_call(calls[3]);
}

/* One end each. */
static void ready_full_block(void) {
  ready_full_with(begin_outer_blocks);
  end_calls_down_to(0);
}
static void ready_deep(void) {
  ready_stream();
  begin_calls(PROF_I_OPEN_COUNT + 6);
}
static void act_one_deep(void) { end_calls_down_to(call_count - 1); }
static scenes_call inner_block;
static void ready_before_move(void) {
  ready_stream();
  begin_calls(PROF_I_OPEN_COUNT - 1);
  inner_block = begin_block(PLAN_INNER);
  begin_calls(2);
}
static void act_move(void) { end_call(inner_block); }
static void act_one_elsewhere(void) { end_call(calls[11]); }
static void act_one_deep_elsewhere(void) { end_call(calls[OTHER_DEPTH - 2]); }

/* ---- the handler ---- */

static void handler(int signal) {
  (void)signal;
  plan_handler_plain();
  plan_handler_named();
  const scenes_call outer = begin_block(PLAN_OUTER);
  const scenes_call first = begin_call(PLAN_INNER), second = begin_call(PLAN_INNER);
  end_call(first);
  end_call(second);
  end_call(outer);
}

/* ---- what the parent sees ---- */

static struct {
  tracee child;
  char *seen; /* the capture's bytes, as they were read last */
  uint64_t seen_bytes;
  uint32_t from, off_before; /* see begun_by_now() */
  uint64_t least;
  uint64_t sum;
  uint64_t instructions, readings;
} own;

typedef struct bounds {
  uint64_t least, most;
} bounds;

/* What has begun, and what may have, as the child announces it. What came at level 0 never does. Of
   the logs before `from` all have begun. */
static bounds begun_by_now(void) {
  const uint32_t count = plan.page->log_count;
  bounds b = {0, 0};
  for (bool all = true; own.from < count && all;) {
    const volatile plan_log *const log = &plan.page->logs[own.from];
    all = log->begun || log->ended;
    own.off_before += all && log->is_off;
    own.from += all;
  }
  b.least = b.most = own.from - own.off_before;
  for (uint32_t i = own.from; i < count; i++) {
    const volatile plan_log *const log = &plan.page->logs[i];
    if (log->is_off) continue;
    b.least += log->begun || log->ended;
    b.most++;
  }
  return b;
}

static bool differs(uint64_t from, uint64_t bytes) {
  return memcmp(own.seen + from, captures.bytes[0] + from, bytes) != 0;
}

/* All that one instruction of the recorder can change, but for what is far behind a chunk's cursor:
   looking at all of it takes too long. */
static bool has_changed(void) {
  enum { NEAR = 4096 };
  const uint64_t bytes = captures.sizes[0];
  bool any = bytes != own.seen_bytes || differs(0, PROF_I_HEADER_BYTES);
  for (uint64_t at = PROF_I_FIRST_UNIT_OFFSET; at < bytes && !any; at += PROF_I_UNIT_BYTES) {
    const prof_i_head *const head = (const prof_i_head *)(captures.bytes[0] + at);
    any = differs(at, head->magic == PROF_I_EXTENT_MAGIC && head->kind == PROF_I_EXTENT_SLOT
                          ? sizeof(prof_i_thread_slot)
                          : PROF_I_HEAD_BYTES);
    if (any || head->magic != PROF_I_EXTENT_MAGIC || head->kind == PROF_I_EXTENT_SLOT) continue;
    const uint64_t end = head->bytes < bytes - at ? head->bytes : bytes - at;
    const uint64_t to = head->cursor + 64 < end ? head->cursor + 64 : end;
    const uint64_t from = to > NEAR ? to - NEAR : 0;
    any = differs(at + from, to - from);
  }
  if (!any) return false;
  own.seen = realloc(own.seen, bytes);
  if (!own.seen) abort();
  memcpy(own.seen, captures.bytes[0], bytes);
  own.seen_bytes = bytes;
  return true;
}

static void add_up(const char *name, uint64_t step) {
  prof_trace *trace = NULL;
  prof_trace_info info = {.size = sizeof info};
  if (prof_trace_open_bytes(own.seen, own.seen_bytes, &trace) != PROF_OK)
    fail_msg("%s: after %llu instructions: %s", name, (unsigned long long)step, prof_last_error());
  prof_trace_info_get(trace, &info);
  prof_trace_destroy(trace);
  own.readings++;
  own.sum = info.event_count + info.open_below_count;
  for (int i = 0; i < PROF_LOSS_COUNT; i++) own.sum += info.lost_count[i];
  const bounds now = begun_by_now();
  const uint64_t most = now.most;
  if (now.least > own.least) own.least = now.least;
  if (own.sum >= own.least && own.sum <= most && !info.bad_count) {
    own.least = own.sum;
    return;
  }
  print_error(
      "%s: after %llu instructions, at %#llx: %llu to %llu begun; %llu recorded, %llu open, "
      "%llu below, %llu bad\n",
      name, (unsigned long long)step, (unsigned long long)tracee_at(&own.child),
      (unsigned long long)own.least, (unsigned long long)most,
      (unsigned long long)(info.event_count - info.open_count), (unsigned long long)info.open_count,
      (unsigned long long)info.open_below_count, (unsigned long long)info.bad_count);
  for (int i = 0; i < PROF_LOSS_COUNT; i++)
    if (info.lost_count[i])
      print_error("  %llu %s\n", (unsigned long long)info.lost_count[i], prof_loss_name(i));
  fail();
}

static void look(const char *name, uint64_t step) {
  captures_measure();
  if (has_changed()) {
    add_up(name, step);
    return;
  }
  /* The sum is the same; what it may be is not. */
  const bounds now = begun_by_now();
  if (own.sum < now.least || own.sum > now.most) add_up(name, step);
}

static bool begin_walk(const scenario *what) {
  own.child = (tracee){0};
  own.seen_bytes = own.least = own.from = own.off_before = 0;
  plan_reset();
  if (!tracee_begin(&own.child, child_body, (void *)(uintptr_t)what, what->ends_thread)) {
    if (plan.page->skip) skip_because((const char *)(uintptr_t)plan.page->reason);
    fail_msg("%s: the child ended before the walk, status %x", what->name,
             (unsigned)own.child.status);
  }
  captures_look();
  assert_int_equal(captures.count, 1);
  look(what->name, 0);
  return true;
}

static void end_walk(void) {
  tracee_end(&own.child);
  own.child.process = 0;
  captures_clear();
}

/* signal_at: where the handler comes; UINT64_MAX: it does not. Returns how many instructions it
   took. */
static uint64_t walk_once(const scenario *what, uint64_t signal_at) {
  uint64_t steps = 0;
  begin_walk(what);
  while (plan.page->phase == 1) {
    if (steps == signal_at) {
      ptrace(PTRACE_SINGLESTEP, own.child.pid, NULL, (void *)(intptr_t)SIGUSR1);
      tracee_wait(&own.child);
    } else {
      walk_on(&own.child);
    }
    if (own.child.signal != SIGTRAP)
      fail_msg("%s: signal %d after %llu instructions", what->name, own.child.signal,
               (unsigned long long)steps);
    steps++;
    look(what->name, steps);
  }
  const uint64_t begun = begun_by_now().least;
  if (own.sum != begun)
    fail_msg("%s: at rest: %llu begun, %llu counted", what->name, (unsigned long long)begun,
             (unsigned long long)own.sum);
  end_walk();
  own.instructions += steps;
  return steps;
}

static void walk(const scenario *what) {
  hang_guard();
  const uint64_t steps = walk_once(what, UINT64_MAX);
  print_message("  %-40s %8llu instructions\n", what->name, (unsigned long long)steps);
}

/* A handler at one instruction in so many. PROF_LEDGER_EVERY: another number; 1 takes hours. */
static void interrupt(const scenario *what) {
  const char *const text = getenv("PROF_LEDGER_EVERY");
  const uint64_t every = text ? strtoull(text, NULL, 0) : INTERRUPTED_EVERY;
  uint64_t count = 0;
  for (uint64_t at = 0;; at += every, count++) {
    hang_guard();
    if (walk_once(what, at) <= at) break;
  }
  print_message("  %-40s %8llu interruptions\n", what->name, (unsigned long long)count);
}

static int clean(void **state) {
  (void)state;
  if (own.child.process > 0) tracee_end(&own.child);
  own.child.process = 0;
  captures_clear();
  return 0;
}

#define SCENARIOS(X)                                                                  \
  X(skipped_blocks, ready_stream, act_skipped, false)                                 \
  X(skipped_deep_blocks, ready_stream, act_skipped_deep, false)                       \
  X(texts_in_order, ready_texts, act_texts_in_order, false)                           \
  X(skipped_texts, ready_texts, act_skipped_texts, false)                             \
  X(a_thread_that_leaves_texts, ready_texts, act_leave_texts, true)                   \
  X(skipped_blocks_after_a_stop, ready_stream, act_skipped_late, false)               \
  X(skipped_blocks_without_room, ready_full_blocks, act_full_blocks, false)           \
  X(skipped_deep_blocks_without_room, ready_full_deep_blocks, act_full_blocks, false) \
  X(ends_without_room, ready_full, act_full, false)                                   \
  X(ends_of_shown_without_room, ready_full_shown, act_full_shown, false)              \
  X(ends_after_a_stop, ready_late, act_late, false)                                   \
  X(ends_in_a_later_session, ready_later_session, act_late, false)                    \
  X(deep_scopes, ready_stream, act_deep, false)                                       \
  X(deep_tasks, ready_stream, act_deep_tasks, false)                                  \
  X(calls_that_move, ready_stream, act_calls_in_blocks, false)                        \
  X(deep_calls_that_move, ready_stream, act_deep_moves, false)                        \
  X(blocks_beside_calls, ready_stream, act_blocks_beside_calls, false)                \
  X(ends_in_a_ring, ready_ring_with_deep, act_ring_with_deep, false)                  \
  X(a_thread_that_leaves_scopes, ready_stream, act_leave_open, true)                  \
  X(a_thread_that_leaves_deep, ready_stream, act_leave_open_deep, true)               \
  X(a_thread_that_leaves_tasks, ready_stream, act_leave_open_tasks, true)             \
  X(ends_elsewhere, ready_elsewhere, act_end_elsewhere, false)                        \
  X(ends_elsewhere_late, ready_elsewhere_late, act_end_elsewhere, false)              \
  X(ends_elsewhere_full, ready_elsewhere_full, act_end_elsewhere, false)              \
  X(ends_elsewhere_deep, ready_deep_elsewhere, act_end_elsewhere, false)

/* With a handler. Short ones: what comes behind the handler is walked as well. */
#define INTERRUPTED(X)                                                     \
  X(a_lost_block, ready_full_block, act_full_blocks, false)                \
  X(a_deep_end, ready_deep, act_one_deep, false)                           \
  X(a_deep_end_without_room, ready_full, act_one_deep, false)              \
  X(a_move, ready_before_move, act_move, false)                            \
  X(an_end_elsewhere, ready_elsewhere, act_one_elsewhere, false)           \
  X(an_end_elsewhere_late, ready_elsewhere_late, act_one_elsewhere, false) \
  X(a_deep_end_elsewhere, ready_elsewhere, act_one_deep_elsewhere, false)

#define TEST(name_, ready_, act_, ends_)                               \
  static void name_##_add_up_after_every_instruction(void **state) {   \
    static const scenario what = {#name_, ready_, act_, false, ends_}; \
    (void)state;                                                       \
    walk(&what);                                                       \
  }
SCENARIOS(TEST)
#define TEST_INTERRUPTED(name_, ready_, act_, ends_)                   \
  static void name_##_adds_up_under_a_handler(void **state) {          \
    static const scenario what = {#name_, ready_, act_, false, ends_}; \
    (void)state;                                                       \
    interrupt(&what);                                                  \
  }
INTERRUPTED(TEST_INTERRUPTED)

int main(int argc, char **argv) {
#define ENTRY(name_, ready_, act_, ends_) \
  cmocka_unit_test_teardown(name_##_add_up_after_every_instruction, clean),
#define ENTRY_INTERRUPTED(name_, ready_, act_, ends_) \
  cmocka_unit_test_teardown(name_##_adds_up_under_a_handler, clean),
  const struct CMUnitTest tests[] = {SCENARIOS(ENTRY) INTERRUPTED(ENTRY_INTERRUPTED)};
  skip_unless_steppable();
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  const struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
  if (sigaction(SIGUSR1, &action, NULL) != 0 || !plan_make() || !captures_make_folder(true))
    return 1;
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  print_message("%llu instructions walked, %llu readings\n", (unsigned long long)own.instructions,
                (unsigned long long)own.readings);
  captures_remove_folder();
  return failed;
}
