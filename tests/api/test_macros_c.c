/* What each macro does in C: what is recorded, what is evaluated and when, and that the code in it
   behaves as if the macro were not there. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "events.h"
#include "plugin.h"
/* by the name the plug-in has for it: __FILE__ is part of a site */
#include "plugins/../inline_scopes.h"

static int calls; /* how often something was evaluated */

static const char *name_once(const char *name) {
  calls++;
  return name;
}
static int count_once(int value) {
  calls++;
  return value;
}
static prof_device device_once(void) {
  calls++;
  return (prof_device){PROF_DEVICE_CUDA, 3};
}

/* ---- what is recorded ---- */

static void a_scope_has_its_name_category_and_level(void **state) {
  (void)state;
  int ran = 0;
  events_record(1);
  WITH_BASE_PROFILER(PROF_HOST, "matmul", "operator", PROF_NO_ARGS, { ran++; });
  events_stop_and_read();
  assert_event_total(1);
  const seen_event *const scope = only_event("matmul");
  assert_int_equal(ran, 1);
  assert_string_equal(scope->category, "operator");
  assert_int_equal(scope->e.kind, PROF_EVENT_SCOPE);
  assert_int_equal(scope->e.level, 1);
  assert_int_equal(scope->e.device.type, PROF_DEVICE_CPU);
  assert_int_equal(scope->e.flags & PROF_EVENT_ON_STREAM, 0);
  assert_int_equal(scope->e.arg_count, 0);
}

static void level_1_leaves_level_2_out(void **state) {
  (void)state;
  for (int level = 1; level <= 2; level++) {
    int ran = 0;
    events_record(level);
    WITH_BASE_PROFILER_LEVEL(2, PROF_HOST, "vm", "runtime", PROF_NO_ARGS, { ran++; });
    WITH_BASE_PROFILER_LEVEL(1, PROF_HOST, "op", "operator", PROF_NO_ARGS, { ran++; });
    {
      PROF_SCOPE_LEVEL(2, PROF_HOST, "vm block", "runtime", PROF_NO_ARGS);
      ran++;
    }
    events_stop_and_read();
    assert_int_equal(ran, 3);
    assert_events("op", 1);
    assert_events("vm", level == 2);
    assert_events("vm block", level == 2);
    if (level == 2) assert_int_equal(only_event("vm")->e.level, 2);
  }
}

static void nothing_is_recorded_while_off(void **state) {
  (void)state;
  events_record(1);
  assert_status(prof_stop(), PROF_OK);
  int ran = 0;
  WITH_BASE_PROFILER(PROF_HOST, "off", "x", PROF_NO_ARGS, { ran++; });
  {
    PROF_SCOPE("off");
    PROF_FUNCTION();
    PROF_INSTANT("off", "x", PROF_NO_ARGS);
    PROF_COUNTER("off", 1);
    ran++;
  }
  events_read();
  assert_int_equal(ran, 2);
  assert_event_total(0);
}

static void a_device_scope_has_device_and_stream(void **state) {
  (void)state;
  const prof_device gpu = {PROF_DEVICE_CUDA, 1}, amd = {PROF_DEVICE_ROCM, 2};
  int on_stack = 0; /* a stream is often a pointer */
  int *const stream = &on_stack;
  events_record(2);
  WITH_GPU_PROFILER(gpu, 7, "gpu", "kernel", PROF_ARGS("blocks", 128), { on_stack++; });
  WITH_CUDA_PROFILER(gpu, 0, "cuda", "kernel", PROF_NO_ARGS, { on_stack++; });
  WITH_HIP_PROFILER(amd, 9u, "hip", "kernel", PROF_NO_ARGS, { on_stack++; });
  WITH_GPU_PROFILER_LEVEL(2, gpu, stream, "pointer", "kernel", PROF_NO_ARGS, { on_stack++; });
  WITH_BASE_PROFILER(gpu, "no stream", "copy", PROF_NO_ARGS, { on_stack++; });
  {
    PROF_GPU_SCOPE(amd, 5, "block");
    PROF_GPU_SCOPE_LEVEL(2, amd, 6, "block 2", "copy", PROF_ARGS("bytes", 64u));
    on_stack++;
  }
  events_stop_and_read();
  assert_event_total(7);
  assert_int_equal(on_stack, 6);
  static const struct {
    const char *name;
    int32_t type, index;
    int has_stream;
    uint64_t stream;
  } wanted[] = {{"gpu", PROF_DEVICE_CUDA, 1, 1, 7},   {"cuda", PROF_DEVICE_CUDA, 1, 1, 0},
                {"hip", PROF_DEVICE_ROCM, 2, 1, 9},   {"no stream", PROF_DEVICE_CUDA, 1, 0, 0},
                {"block", PROF_DEVICE_ROCM, 2, 1, 5}, {"block 2", PROF_DEVICE_ROCM, 2, 1, 6}};
  for (size_t i = 0; i < COUNT_OF(wanted); i++) {
    const seen_event *const scope = only_event(wanted[i].name);
    assert_int_equal(scope->e.device.type, wanted[i].type);
    assert_int_equal(scope->e.device.index, wanted[i].index);
    assert_int_equal((scope->e.flags & PROF_EVENT_ON_STREAM) != 0, wanted[i].has_stream);
    if (wanted[i].has_stream) assert_int_equal(scope->e.stream, wanted[i].stream);
  }
  assert_int_equal(only_event("pointer")->e.stream, (uint64_t)(uintptr_t)stream);
  assert_string_equal(only_event("gpu")->args, "blocks=i:128");
  assert_string_equal(only_event("block 2")->args, "bytes=u:64");
}

static void block_forms_last_to_the_end_of_the_block(void **state) {
  (void)state;
  events_record(1);
  {
    PROF_SCOPE("outer");
    PROF_INSTANT("before", "mark", PROF_NO_ARGS);
    {
      PROF_SCOPE("inner");
      PROF_INSTANT("within", "mark", PROF_NO_ARGS);
    }
    PROF_INSTANT("behind", "mark", PROF_NO_ARGS);
  }
  PROF_INSTANT("after", "mark", PROF_NO_ARGS);
  events_stop_and_read();
  assert_event_total(6);
  const seen_event *const outer = only_event("outer"), *const inner = only_event("inner");
  assert_string_equal(outer->category, "scope");
  assert_true(events_holds(outer, inner));
  assert_true(events_holds(outer, only_event("before")));
  assert_true(events_holds(outer, only_event("behind")));
  assert_true(events_holds(inner, only_event("within")));
  assert_false(events_holds(inner, only_event("behind")));
  assert_false(events_holds(outer, only_event("after")));
  assert_int_equal(outer->e.depth, 0);
  assert_int_equal(inner->e.depth, 1);
}

static int named_by_its_function(void) {
  PROF_FUNCTION();
  return count_once(4);
}

static void a_function_scope_has_the_functions_name(void **state) {
  (void)state;
  events_record(1);
  assert_int_equal(named_by_its_function(), 4);
  assert_int_equal(named_by_its_function(), 4);
  events_stop_and_read();
  assert_events("named_by_its_function", 2);
  assert_string_equal(events.items[0].category, "function");
}

static void instants_and_counters_carry_their_values(void **state) {
  (void)state;
  const char *const run_time = "made at run time";
  events_record(1);
  PROF_INSTANT("plain", "mark", PROF_NO_ARGS);
  PROF_INSTANT(run_time, run_time, PROF_ARGS("n", 1));
  for (int i = 0; i < 3; i++) PROF_COUNTER("queue", i * 2);
  PROF_COUNTER("ratio", 0.25f);
  events_stop_and_read();
  assert_event_total(6);
  assert_int_equal(only_event("plain")->e.kind, PROF_EVENT_INSTANT);
  assert_int_equal(only_event("plain")->e.duration_ns, 0);
  assert_string_equal(only_event(run_time)->category, run_time);
  assert_string_equal(only_event(run_time)->args, "n=i:1");
  assert_events("queue", 3);
  double sum = 0;
  for (size_t i = 0; i < events.count; i++)
    if (events.items[i].e.kind == PROF_EVENT_COUNTER) sum += events.items[i].e.value;
  assert_true(sum == 0 + 2 + 4 + 0.25);
}

/* ---- arguments ---- */

static void arguments_of_every_type_come_back(void **state) {
  (void)state;
  enum colour { RED = 5 } colour = RED;
  char buffer[8] = "in buf";
  const char *const none = NULL;
  const void *const pointer = buffer;
  const signed char sc = -1;
  const short s = -2;
  const long l = -3;
  const long long ll = INT64_MIN;
  const unsigned char uc = 1;
  const unsigned short us = 2;
  const unsigned long ul = 3;
  const unsigned long long ull = UINT64_MAX;
  const bool yes = true;
  events_record(1);
  WITH_BASE_PROFILER(
      PROF_HOST, "signed", "x",
      PROF_ARGS("sc", sc, "s", s, "i", -7, "l", l, "ll", ll, "c", (char)'A', "e", colour),
      { calls++; });
  WITH_BASE_PROFILER(PROF_HOST, "unsigned", "x",
                     PROF_ARGS("uc", uc, "us", us, "u", 7u, "ul", ul, "ull", ull), { calls++; });
  WITH_BASE_PROFILER(PROF_HOST, "others", "x",
                     PROF_ARGS("f", 0.5f, "d", -2.25, "b", yes, "text", "lit", "buffer", buffer,
                               "none", none, "pointer", pointer),
                     { buffer[0] = 'X'; });
  events_stop_and_read();
  assert_event_total(3);
  assert_string_equal(only_event("signed")->args,
                      "sc=i:-1 s=i:-2 i=i:-7 l=i:-3 ll=i:-9223372036854775808 c=i:65 e=u:5");
  assert_string_equal(only_event("unsigned")->args,
                      "uc=u:1 us=u:2 u=u:7 ul=u:3 ull=u:18446744073709551615");
  char wanted[256];
  snprintf(wanted, sizeof wanted,
           "f=f:0.5 d=f:-2.25 b=b:1 text=s:lit buffer=s:in buf none=s: pointer=p:%" PRIx64,
           (uint64_t)(uintptr_t)pointer);
  assert_string_equal(only_event("others")->args, wanted);
  assert_int_equal(only_event("others")->e.args_kind, PROF_ARGS_PAIRS);
}

static void a_format_is_kept_with_its_values(void **state) {
  (void)state;
  events_record(1);
  WITH_BASE_PROFILER(PROF_HOST, "formatted", "x", PROF_FMT("%d of %s, %.1f %%", 3, "ten", 0.5),
                     { calls++; });
  events_stop_and_read();
  const seen_event *const scope = only_event("formatted");
  assert_int_equal(scope->e.args_kind, PROF_ARGS_FORMAT);
  assert_int_equal(scope->e.format_bytes, strlen("%d of %s, %.1f %%"));
  assert_memory_equal(scope->e.format, "%d of %s, %.1f %%", scope->e.format_bytes);
  assert_string_equal(scope->args, "i:3 s:ten f:0.5");
}

static void shapes_are_kept_with_their_types(void **state) {
  (void)state;
  const int64_t a[] = {2, 3},
                deep[20] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20};
  prof_tensor kept = PROF_TENSOR(a, 1, PROF_I64);
  events_record(1);
  WITH_BASE_PROFILER(
      PROF_HOST, "shapes", "x",
      PROF_SHAPES(PROF_TENSOR(a, 2, PROF_F32), kept, PROF_TENSOR(NULL, 0, PROF_BOOL)),
      { calls++; });
  WITH_BASE_PROFILER(PROF_HOST, "too deep", "x", PROF_SHAPES(PROF_TENSOR(deep, 20, PROF_F16)),
                     { calls++; });
  WITH_BASE_PROFILER(PROF_HOST, "no dims", "x", PROF_SHAPES(PROF_TENSOR(NULL, 3, PROF_F16)),
                     { calls++; });
  events_stop_and_read();
  assert_int_equal(only_event("shapes")->e.args_kind, PROF_ARGS_SHAPES);
  assert_string_equal(only_event("shapes")->args, "t:220[2,3] t:40[2] t:608[]");
  assert_string_equal(only_event("too deep")->args,
                      "t:210[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16]");
  assert_true(only_event("too deep")->e.flags & PROF_EVENT_CUT);
  assert_string_equal(only_event("no dims")->args, "t:210[]");
}

static void sixteen_arguments_fit_and_a_seventeenth_is_cut(void **state) {
  (void)state;
  prof_arg items[17];
  for (int i = 0; i < 17; i++) items[i] = prof_i_arg_i64("k", i);
  events_record(1);
  WITH_BASE_PROFILER(PROF_HOST, "eight pairs", "x",
                     PROF_ARGS("a", 1, "b", 2, "c", 3, "d", 4, "e", 5, "f", 6, "g", 7, "h", 8),
                     { calls++; });
  WITH_BASE_PROFILER(
      PROF_HOST, "fifteen", "x",
      PROF_FMT("%d%d%d%d%d%d%d%d%d%d%d%d%d%d%d", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
      { calls++; });
  const prof_args sixteen = {items, 16, PROF_ARGS_PAIRS, NULL},
                  seventeen = {items, 17, PROF_ARGS_PAIRS, NULL};
  WITH_BASE_PROFILER(PROF_HOST, "sixteen", "x", sixteen, { calls++; });
  WITH_BASE_PROFILER(PROF_HOST, "seventeen", "x", seventeen, { calls++; });
  events_stop_and_read();
  assert_int_equal(only_event("eight pairs")->e.arg_count, 8);
  assert_int_equal(only_event("fifteen")->e.arg_count, 15);
  assert_int_equal(only_event("sixteen")->e.arg_count, 16);
  assert_int_equal(only_event("sixteen")->e.flags & PROF_EVENT_CUT, 0);
  assert_int_equal(only_event("seventeen")->e.arg_count, 16);
  assert_true(only_event("seventeen")->e.flags & PROF_EVENT_CUT);
}

/* ---- what is evaluated, and when ---- */

static void everything_is_evaluated_once_when_on(void **state) {
  (void)state;
  events_record(2);
  calls = 0;
  WITH_GPU_PROFILER(device_once(), count_once(1), name_once("n"), name_once("c"),
                    PROF_ARGS("v", count_once(2)), { calls += 100; });
  assert_int_equal(calls, 105);
  calls = 0;
  WITH_BASE_PROFILER_LEVEL(2, device_once(), name_once("n"), name_once("c"),
                           PROF_FMT("%d", count_once(2)), { calls += 100; });
  assert_int_equal(calls, 104);
  calls = 0;
  {
    PROF_SCOPE(name_once("n"));
    PROF_INSTANT(name_once("n"), name_once("c"), PROF_ARGS("v", count_once(2)));
    PROF_COUNTER("counter", count_once(3));
  }
  assert_int_equal(calls, 5);
  events_stop_and_read();
  assert_event_total(5);
}

static void nothing_is_evaluated_when_its_level_is_off(void **state) {
  (void)state;
  calls = 0;
  for (int level = 0; level <= 1; level++) {
    events_record(1);
    if (level == 0) assert_status(prof_stop(), PROF_OK);
    WITH_BASE_PROFILER_LEVEL(2, device_once(), name_once("n"), name_once("c"),
                             PROF_ARGS("v", count_once(2)), { (void)level; });
    WITH_GPU_PROFILER_LEVEL(2, device_once(), count_once(1), name_once("n"), name_once("c"),
                            PROF_NO_ARGS, { (void)level; });
    PROF_SCOPE_LEVEL(2, device_once(), name_once("n"), "c", PROF_NO_ARGS);
    if (level == 1) continue;
    PROF_INSTANT(name_once("n"), "c", PROF_NO_ARGS);
    PROF_COUNTER("counter", count_once(2));
    PROF_SCOPE(name_once("n"));
  }
  assert_int_equal(calls, 0);
}

static const char *name_with_a_mark(void) {
  PROF_INSTANT("name evaluated", "mark", PROF_NO_ARGS);
  WITH_BASE_PROFILER(PROF_HOST, "scope in the name", "x", PROF_NO_ARGS, { calls++; });
  return "marked";
}
static int value_with_a_mark(void) {
  PROF_INSTANT("value evaluated", "mark", PROF_NO_ARGS);
  return 1;
}

static void name_and_arguments_are_evaluated_before_the_start(void **state) {
  (void)state;
  events_record(1);
  WITH_BASE_PROFILER(PROF_HOST, name_with_a_mark(), "x", PROF_ARGS("v", value_with_a_mark()),
                     { calls++; });
  events_stop_and_read();
  assert_event_total(4);
  const seen_event *const scope = only_event("marked"), *const inside =
                                                            only_event("scope in the name");
  assert_in_range(only_event("name evaluated")->e.start_ns, 0, scope->e.start_ns);
  assert_in_range(only_event("value evaluated")->e.start_ns, 0, scope->e.start_ns);
  assert_in_range(inside->e.start_ns + inside->e.duration_ns, 0, scope->e.start_ns);
}

/* ---- the code does what it does without the macro ---- */

static void break_and_continue_leave_the_scope(void **state) {
  (void)state;
  int seen = 0;
  events_record(1);
  for (int i = 0; i < 10; i++) {
    WITH_BASE_PROFILER(PROF_HOST, "loop", "x", PROF_NO_ARGS, {
      if (i % 2) continue;
      if (i == 6) break;
      seen += i;
    });
    seen += 100;
  }
  events_stop_and_read();
  assert_int_equal(seen, 0 + 2 + 4 + 300);
  assert_event_total(7);
  for (size_t i = 0; i < events.count; i++) assert_int_equal(events.items[i].e.depth, 0);
}

static int returns_from_inside(int value) {
  WITH_BASE_PROFILER(PROF_HOST, "returning", "x", PROF_ARGS("value", value), {
    if (value < 0) return -value;
    WITH_BASE_PROFILER(PROF_HOST, "deeper", "x", PROF_NO_ARGS, { return value + 1; });
  });
  return 0;
}

static void return_leaves_all_scopes(void **state) {
  (void)state;
  events_record(1);
  assert_int_equal(returns_from_inside(-5), 5);
  assert_int_equal(returns_from_inside(5), 6);
  WITH_BASE_PROFILER(PROF_HOST, "after", "x", PROF_NO_ARGS, { calls++; });
  events_stop_and_read();
  assert_event_total(4);
  assert_events("returning", 2);
  assert_int_equal(only_event("deeper")->e.depth, 1);
  assert_int_equal(only_event("after")->e.depth, 0);
}

static void goto_leaves_the_scope_forwards_and_backwards(void **state) {
  (void)state;
  int rounds = 0;
  events_record(1);
again:
  WITH_BASE_PROFILER(PROF_HOST, "jumping", "x", PROF_NO_ARGS, {
    if (++rounds < 3) goto again;
    goto out;
  });
  rounds = 100;
out:
  events_stop_and_read();
  assert_int_equal(rounds, 3);
  assert_event_total(3);
  for (size_t i = 0; i < events.count; i++) assert_int_equal(events.items[i].e.depth, 0);
}

static void a_switch_may_stand_inside_and_around(void **state) {
  (void)state;
  int taken = 0;
  events_record(1);
  for (int i = 0; i < 4; i++) {
    switch (i) {
      case 0:
        WITH_BASE_PROFILER(PROF_HOST, "case 0", "x", PROF_NO_ARGS, { taken += 1; });
        break;
      case 1:
        WITH_BASE_PROFILER(PROF_HOST, "case 1", "x", PROF_NO_ARGS, {
          taken += 10;
          break; /* the outer switch */
        });
        taken += 1000;
        break;
      case 2: {
        PROF_SCOPE("case 2");
        taken += 100;
      } break;
      default:
        WITH_BASE_PROFILER(PROF_HOST, "around", "x", PROF_NO_ARGS, {
          switch (i) {
            case 3:
              taken += 10000;
              break;
            default:
              taken += 100000;
          }
        });
    }
  }
  events_stop_and_read();
  assert_int_equal(taken, 10111);
  assert_event_total(4);
}

static int branch(int which) {
  int taken = 0;
  if (which == 0)
    WITH_BASE_PROFILER(PROF_HOST, "if", "x", PROF_NO_ARGS, { taken = 1; });
  else if (which == 1)
    WITH_GPU_PROFILER(PROF_HOST, 0, "else if", "x", PROF_NO_ARGS, { taken = 2; });
  else if (which == 2)
    PROF_INSTANT("instant", "x", PROF_NO_ARGS);
  else if (which == 3)
    PROF_COUNTER("counter", 1);
  else
    WITH_BASE_PROFILER(PROF_HOST, "else", "x", PROF_NO_ARGS, { taken = 3; });
  return taken;
}

static void each_macro_is_one_statement(void **state) {
  (void)state;
  events_record(1);
  assert_int_equal(branch(0), 1);
  assert_int_equal(branch(1), 2);
  assert_int_equal(branch(2), 0);
  assert_int_equal(branch(3), 0);
  assert_int_equal(branch(4), 3);
  for (int i = 0; i < 2; i++) WITH_BASE_PROFILER(PROF_HOST, "for", "x", PROF_NO_ARGS, { calls++; });
  do WITH_BASE_PROFILER(PROF_HOST, "do", "x", PROF_NO_ARGS, { calls++; });
  while (0);
  events_stop_and_read();
  assert_event_total(8);
}

static int sum_of(int a, int b) { return a + b; }

static void commas_in_the_code_need_no_brackets(void **state) {
  (void)state;
  events_record(1);
  int a = 0, b = 0;
  WITH_BASE_PROFILER(PROF_HOST, "commas", "x", PROF_NO_ARGS, {
    int list[] = {1, 2, 3}, other = 4;
    struct {
      int x, y;
    } point = {list[0], list[2]};
    a = sum_of(point.x, point.y), b = sum_of(other, 1);
  });
  WITH_BASE_PROFILER(PROF_HOST, "no braces", "x", PROF_NO_ARGS, a++, b++);
  WITH_BASE_PROFILER(PROF_HOST, "two statements", "x", PROF_NO_ARGS, a++; b++);
  WITH_BASE_PROFILER(PROF_HOST, "nothing", "x", PROF_NO_ARGS, {});
  events_stop_and_read();
  assert_int_equal(a, 6);
  assert_int_equal(b, 7);
  assert_event_total(4);
}

#define BASE(name, block) WITH_BASE_PROFILER(PROF_HOST, name, "x", PROF_NO_ARGS, block)
#define GPU(name, block) WITH_GPU_PROFILER(PROF_HOST, 0, name, "x", PROF_NO_ARGS, block)

static void scopes_nest_on_one_line(void **state) {
  (void)state;
  int ran = 0;
  events_record(1);
  /* One line is the point. */
  /* clang-format off */
  BASE("a", { BASE("b", { GPU("c", { ran++; }); }); });
  { PROF_SCOPE("d"); PROF_SCOPE("e"); PROF_FUNCTION(); ran++; }
  /* clang-format on */
  events_stop_and_read();
  assert_int_equal(ran, 2);
  assert_event_total(6);
  assert_true(events_holds(only_event("a"), only_event("b")));
  assert_true(events_holds(only_event("b"), only_event("c")));
  assert_int_equal(only_event("c")->e.depth, 2);
  assert_int_equal(only_event("e")->e.depth, 1);
}

static int fibonacci(int n) {
  PROF_FUNCTION();
  WITH_BASE_PROFILER(PROF_HOST, "body", "x", PROF_ARGS("n", n), {
    if (n < 2) return n;
    return fibonacci(n - 1) + fibonacci(n - 2);
  });
  return 0;
}

static void a_function_may_call_itself(void **state) {
  (void)state;
  events_record(1);
  assert_int_equal(fibonacci(10), 55);
  events_stop_and_read();
  assert_events("fibonacci", 177);
  assert_events("body", 177);
  assert_event_total(354);
}

static int nest(int depth) {
  WITH_BASE_PROFILER(PROF_HOST, "nested", "x", PROF_NO_ARGS,
                     { return depth > 1 ? nest(depth - 1) + 1 : 1; });
  return 0;
}

static void two_hundred_open_scopes_are_all_recorded(void **state) {
  (void)state;
  events_record(1);
  assert_int_equal(nest(200), 200);
  events_stop_and_read();
  assert_event_total(200);
  uint32_t deepest = 0;
  for (size_t i = 0; i < events.count; i++)
    if (events.items[i].e.depth > deepest) deepest = events.items[i].e.depth;
  assert_int_equal(deepest, 199);
}

static void errno_stays_as_it_was(void **state) {
  (void)state;
  events_record(1);
  char text[64] = "x";
  for (int i = 0; i < 5000; i++) { /* chunk changes included */
    errno = 77;
    WITH_BASE_PROFILER(PROF_HOST, text, "x", PROF_ARGS("i", i), { assert_int_equal(errno, 77); });
    PROF_INSTANT("i", "x", PROF_NO_ARGS);
    PROF_COUNTER("c", i);
    prof_step();
    assert_int_equal(errno, 77);
  }
  assert_status(prof_stop(), PROF_OK);
}

/* ---- names ---- */

#define NAME_MACRO "by a macro"
#define NAME_PART(x) "part " #x

static void literal_names_may_be_made_by_macros(void **state) {
  (void)state;
  events_record(1);
  WITH_BASE_PROFILER(PROF_HOST, NAME_MACRO, "x", PROF_NO_ARGS, { calls++; });
  WITH_BASE_PROFILER(PROF_HOST, NAME_PART(one) " and " NAME_PART(two), "x", PROF_NO_ARGS,
                     { calls++; });
  WITH_BASE_PROFILER(PROF_HOST, ("in brackets"), ("c"), PROF_NO_ARGS, { calls++; });
  WITH_BASE_PROFILER(PROF_HOST, "a \"quoted\" name", "x", PROF_NO_ARGS, { calls++; });
  WITH_BASE_PROFILER(PROF_HOST, "", "", PROF_NO_ARGS, { calls++; });
  events_stop_and_read();
  assert_event_total(5);
  only_event("by a macro");
  only_event("part one and part two");
  only_event("a \"quoted\" name");
  only_event(__func__); /* a site without a name is shown by its function */
  assert_string_equal(only_event("in brackets")->category, "c");
}

static void run_time_names_are_copied_at_once(void **state) {
  (void)state;
  char name[32] = "", category[32] = "";
  const char fixed[] = "an array";
  const char *const none = NULL;
  events_record(1);
  for (int i = 0; i < 3; i++) {
    snprintf(name, sizeof name, "name %d", i);
    snprintf(category, sizeof category, "category %d", i);
    WITH_BASE_PROFILER(PROF_HOST, name, category, PROF_NO_ARGS,
                       { memset(name, '?', sizeof name - 1); });
    WITH_BASE_PROFILER(PROF_HOST, i == 1 ? "one" : "not one", "x", PROF_NO_ARGS, { calls++; });
  }
  WITH_BASE_PROFILER(PROF_HOST, fixed, fixed, PROF_NO_ARGS, { calls++; });
  WITH_BASE_PROFILER(PROF_HOST, "half literal", category, PROF_NO_ARGS, { calls++; });
  WITH_BASE_PROFILER(PROF_HOST, none, none, PROF_NO_ARGS, { calls++; });
  PROF_INSTANT(none, none, PROF_NO_ARGS);
  events_stop_and_read();
  assert_event_total(10);
  assert_string_equal(only_event("name 0")->category, "category 0");
  assert_string_equal(only_event("name 2")->category, "category 2");
  assert_string_equal(only_event("an array")->category, "an array");
  assert_string_equal(only_event("half literal")->category, "category 2");
  assert_events("one", 1);
  assert_events("not one", 2);
  assert_events("", 2);
}

static void an_inlined_function_keeps_the_names_of_its_callers_apart(void **state) {
  (void)state;
  events_record(1);
  for (int i = 0; i < 2; i++) {
    inline_named_scope("first literal");
    inline_named_scope("second literal");
  }
  events_stop_and_read();
  assert_events("first literal", 2);
  assert_events("second literal", 2);
  assert_event_total(4);
}

static void inline_functions_of_two_units_are_one_site(void **state) {
  (void)state;
  void (*second_unit)(void);
  *(void **)&second_unit = plugin_function("second_unit", "second_unit_run");
  assert_non_null(*(void **)&second_unit);
  events_record(1);
  inline_literal_scope();
  inline_named_scope("from the first unit");
  inline_block_scope();
  second_unit();
  events_stop_and_read();
  assert_event_total(8);
  assert_events("in a header", 2);
  assert_events("inline_block_scope", 2);
  only_event("from the first unit");
  only_event("from the second unit");
  uint32_t sites[2] = {0}, count = 0;
  for (size_t i = 0; i < events.count; i++)
    if (strcmp(events.items[i].name, "in a header") == 0) sites[count++] = events.items[i].e.site;
  assert_int_equal(sites[0], sites[1]);
}

/* ---- calls, for other languages ---- */

static void scopes_by_calls_are_like_the_macros(void **state) {
  (void)state;
  const prof_arg item = {"n", PROF_ARG_I64, 0, {.i64 = 3}};
  const prof_args args = {&item, 1, PROF_ARGS_PAIRS, NULL};
  static prof_site site;
  events_record(1);
  char name[] = "by call";
  const uint64_t outer = prof_scope_begin(1, name, "call", &args);
  name[0] = 'B';
  const uint64_t at = prof_scope_begin_at(&site, "at a site", "call");
  assert_int_equal(prof_scope_begin(2, "too detailed", "call", NULL), 0);
  assert_int_equal(prof_scope_begin(0, "level 0", "call", NULL), 0);
  assert_int_equal(prof_scope_begin(3, "level 3", "call", NULL), 0);
  assert_int_equal(prof_scope_begin_at(NULL, "nowhere", "call"), 0);
  prof_scope_end(at);
  prof_scope_end(0);
  prof_scope_end(outer);
  events_stop_and_read();
  assert_event_total(2);
  assert_string_equal(only_event("by call")->args, "n=i:3");
  assert_true(events_holds(only_event("by call"), only_event("at a site")));
}

/* At its site's number, with what else an open scope's entry says: how it was begun. */
static void a_scope_by_call_that_stands_open_has_its_name(void **state) {
  (void)state;
  static prof_site site;
  events_record(1);
  for (int i = 0; i < 3; i++) {
    const uint64_t at = prof_scope_begin_at(&site, "at a site", "call"),
                   copied = prof_scope_begin(1, "copied", "call", NULL);
    events_read();
    assert_int_equal(events.count, 2 + 2 * i);
    size_t open_count = 0;
    for (size_t n = 0; n < events.count; n++) {
      assert_true(strcmp(events.items[n].name, "at a site") == 0 ||
                  strcmp(events.items[n].name, "copied") == 0);
      assert_string_equal(events.items[n].category, "call");
      open_count += events.items[n].e.kind == PROF_EVENT_OPEN;
    }
    assert_int_equal(open_count, 2);
    prof_scope_end(copied);
    prof_scope_end(at);
  }
  assert_int_equal(prof_stop(), PROF_OK);
}

static void steps_and_flows_come_back(void **state) {
  (void)state;
  events_record(1);
  prof_flow_begin(42, "sent");
  prof_flow_end(42, "sent");
  prof_flow_begin(43, NULL);
  prof_step();
  prof_step();
  events_stop_and_read();
  assert_event_total(5);
  int steps = 0, begins = 0, ends = 0;
  for (size_t i = 0; i < events.count; i++) {
    const prof_event *const e = &events.items[i].e;
    steps += e->kind == PROF_EVENT_STEP;
    begins += e->kind == PROF_EVENT_FLOW_BEGIN && (e->id == 42 || e->id == 43);
    ends += e->kind == PROF_EVENT_FLOW_END && e->id == 42;
  }
  assert_int_equal(steps, 2);
  assert_int_equal(begins, 2);
  assert_int_equal(ends, 1);
  assert_events("sent", 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_scope_has_its_name_category_and_level),
      cmocka_unit_test(level_1_leaves_level_2_out),
      cmocka_unit_test(nothing_is_recorded_while_off),
      cmocka_unit_test(a_device_scope_has_device_and_stream),
      cmocka_unit_test(block_forms_last_to_the_end_of_the_block),
      cmocka_unit_test(a_function_scope_has_the_functions_name),
      cmocka_unit_test(instants_and_counters_carry_their_values),
      cmocka_unit_test(arguments_of_every_type_come_back),
      cmocka_unit_test(a_format_is_kept_with_its_values),
      cmocka_unit_test(shapes_are_kept_with_their_types),
      cmocka_unit_test(sixteen_arguments_fit_and_a_seventeenth_is_cut),
      cmocka_unit_test(everything_is_evaluated_once_when_on),
      cmocka_unit_test(nothing_is_evaluated_when_its_level_is_off),
      cmocka_unit_test(name_and_arguments_are_evaluated_before_the_start),
      cmocka_unit_test(break_and_continue_leave_the_scope),
      cmocka_unit_test(return_leaves_all_scopes),
      cmocka_unit_test(goto_leaves_the_scope_forwards_and_backwards),
      cmocka_unit_test(a_switch_may_stand_inside_and_around),
      cmocka_unit_test(each_macro_is_one_statement),
      cmocka_unit_test(commas_in_the_code_need_no_brackets),
      cmocka_unit_test(scopes_nest_on_one_line),
      cmocka_unit_test(a_function_may_call_itself),
      cmocka_unit_test(two_hundred_open_scopes_are_all_recorded),
      cmocka_unit_test(errno_stays_as_it_was),
      cmocka_unit_test(literal_names_may_be_made_by_macros),
      cmocka_unit_test(run_time_names_are_copied_at_once),
      cmocka_unit_test(an_inlined_function_keeps_the_names_of_its_callers_apart),
      cmocka_unit_test(inline_functions_of_two_units_are_one_site),
      cmocka_unit_test(scopes_by_calls_are_like_the_macros),
      cmocka_unit_test(a_scope_by_call_that_stands_open_has_its_name),
      cmocka_unit_test(steps_and_flows_come_back),
  };
  return cmocka_run_group_tests_name("the macros in C", tests, NULL, NULL);
}
