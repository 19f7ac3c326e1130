/* The record protocol, instruction by instruction. A child records into a capture file and is
   stepped one instruction at a time. After each the parent reads the file and judges it by what the
   child has announced (support/plan.h). So the test covers every point at which kill -9 can come:
   no false record, none torn, none old, and no ended one lost. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <prof/trace.h>
#include <setjmp.h>
#include <stdarg.h>
#include <time.h>

#include <cmocka.h>

#include "hang_guard.h"
#include "support/scenes.h"
#include "support/skip.h"

/* ---- what the parent sees ---- */

static struct {
  plan_judge *judge;
  tracee child;
  const char *name; /* of the scenario that is walked, and so far */
  uint64_t steps;
  uint64_t instructions, readings;
} total;

enum { SHORT_MAX = 64 };

/* The library's own reader, on the same bytes, must see the same. */
static void ask_reader(plan_judge *judge) {
  const size_t last = captures.count - 1;
  prof_trace *trace = NULL;
  prof_trace_info info = {.size = sizeof info};
  if (judge->fault[0] || !captures.count || captures.sizes[last] < PROF_I_HEADER_BYTES ||
      !arena_is_made(&judge->view))
    return;
  const int status = prof_trace_open_bytes(captures.bytes[last], captures.sizes[last], &trace);
  if (status != PROF_OK) {
    plan_fault(judge, "the reader: %s: %s", prof_status_name(status), prof_last_error());
    return;
  }
  prof_trace_info_get(trace, &info);
  if (info.bad_count || info.event_count - info.open_count != judge->seen.records)
    plan_fault(judge, "the reader sees %llu records, %llu open, %llu bad; %llu stand there",
               (unsigned long long)(info.event_count - info.open_count),
               (unsigned long long)info.open_count, (unsigned long long)info.bad_count,
               (unsigned long long)judge->seen.records);
  prof_trace_destroy(trace);
  total.readings++;
}

static void judge_state(const scenario *what, uint64_t step, const tracee *child, bool is_rest) {
  static uint64_t records, opens, meta_sum;
  plan_judge *const judge = total.judge;
  if (what->makes_captures) captures_look();
  captures_measure();
  plan_judge_now(judge, captures.bytes, captures.sizes, captures.count, is_rest);
  /* a long one takes too long to be read again for each word of a clock pair */
  const bool is_short = judge->seen.records < SHORT_MAX;
  if (is_rest || records != judge->seen.records || opens != judge->seen.opens ||
      (is_short && meta_sum != judge->seen.meta_sum))
    ask_reader(judge);
  records = judge->seen.records;
  opens = judge->seen.opens;
  meta_sum = judge->seen.meta_sum;
  if (!judge->fault[0]) return;
  print_error("%s: after %llu instructions, at %#llx: %s\n", what->name, (unsigned long long)step,
              (unsigned long long)tracee_at(child), judge->fault);
  fail();
}

/* One line of a file in /proc, as it is. */
static void say_of_process(pid_t pid, const char *name) {
  char path[64], text[256];
  snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  const ssize_t bytes = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;
  if (fd >= 0) close(fd);
  dprintf(STDERR_FILENO, "  %s: %.*s\n", name, (int)(bytes > 0 ? bytes : 0), text);
}

/* The guard prints what is known of the child, and ends the process, which kills the child. */
static void say_that_it_hangs(int number) {
  const tracee *const child = &total.child;
  dprintf(STDERR_FILENO, "%s hangs: %llu instructions were walked, phase %d, status %x, at %#llx\n",
          total.name, (unsigned long long)total.steps, (int)plan.page->phase,
          (unsigned)child->status, child->pid > 0 ? (unsigned long long)tracee_at(child) : 0ull);
  const pid_t pid = child->pid > 0 ? child->pid : child->process;
  if (pid > 0) {
    say_of_process(pid, "stat");
    say_of_process(pid, "wchan");
    say_of_process(pid, "syscall");
  }
  signal(number, SIG_DFL);
  raise(number);
}

static void walk(const scenario *what) {
  tracee *const child = &total.child;
  *child = (tracee){0};
  total.name = what->name;
  total.steps = 0;
  signal(SIGALRM, say_that_it_hangs);
  hang_guard();
  struct timespec begun, done;
  plan_reset();
  clock_gettime(CLOCK_MONOTONIC, &begun);
  if (!tracee_begin(child, child_body, (void *)(uintptr_t)what, what->ends_thread)) {
    if (plan.page->skip) skip_because((const char *)(uintptr_t)plan.page->reason);
    fail_msg("%s: the child ended before the walk, status %x", what->name, (unsigned)child->status);
  }
  captures_look();
  judge_state(what, 0, child, false);
  uint64_t steps = 0;
  while (plan.page->phase == 1) {
    total.steps = steps;
    walk_on(child);
    if (child->signal != SIGTRAP)
      fail_msg("%s: signal %d after %llu instructions", what->name, child->signal,
               (unsigned long long)steps);
    judge_state(what, ++steps, child, false);
  }
  judge_state(what, steps, child, true);
  clock_gettime(CLOCK_MONOTONIC, &done);
  total.instructions += steps;
  print_message(
      "  %-52s %8llu instructions, %4llu records, %llu lost, %.1f s\n", what->name,
      (unsigned long long)steps, (unsigned long long)total.judge->recorded,
      (unsigned long long)total.judge->lost,
      (double)(done.tv_sec - begun.tv_sec) + (double)(done.tv_nsec - begun.tv_nsec) / 1e9);
  captures_clear();
}

static int clean(void **state) {
  (void)state;
  if (total.child.process > 0) tracee_end(&total.child);
  total.child.process = 0;
  captures_clear();
  return 0;
}

#define SCENARIOS(X)                                                                    \
  X(a_plain_scope, ready_stream, act_plain, false, false)                               \
  X(a_scope_with_name_and_arguments, ready_stream, plan_named, false, false)            \
  X(a_scope_with_values, ready_shorts, plan_values, false, false)                       \
  X(a_scope_with_words, ready_shorts, plan_words, false, false)                         \
  X(a_scope_with_a_name_alone, ready_shorts, plan_bare_name, false, false)              \
  X(scopes_with_one_text, ready_shorts, act_texts, false, false)                        \
  X(a_nested_pair, ready_stream, plan_nested, false, false)                             \
  X(an_instant_and_a_counter, ready_stream, act_instant_and_counter, false, false)      \
  X(the_first_scopes_of_a_thread, start_stream, act_everything, false, false)           \
  X(a_chunk_change, ready_full_chunk, act_plain, false, false)                          \
  X(a_chunk_change_by_a_long_record, ready_nearly_full_chunk, plan_named, false, false) \
  X(a_ring_gives_its_oldest_chunk, ready_full_ring, act_ring_again, false, false)       \
  X(an_arena_full_inside_three_scopes, ready_full_arena, act_full_inside, false, false) \
  X(start, nothing, act_start, true, false)                                             \
  X(start_after_a_stop, ready_stopped, act_start_again, false, false)                   \
  X(start_of_another_capture, ready_stopped, act_start_other, true, false)              \
  X(stop, ready_stream, act_stop, false, false)                                         \
  X(stop_inside_a_scope, ready_stream, act_stop_inside, false, false)                   \
  X(stop_and_start_inside_a_scope, ready_stream, act_restart_inside, false, false)      \
  X(another_capture_inside_a_scope, ready_stream, act_replace_inside, true, false)      \
  X(clear, ready_two_chunks, act_clear, false, false)                                   \
  X(clear_inside_a_scope, ready_two_chunks, act_clear_inside, false, false)             \
  X(clear_of_a_ring, ready_ring, act_clear, false, false)                               \
  X(dump_while_recording, ready_stream, act_dump, false, false)                         \
  X(stop_and_dump, ready_stream, act_stop_and_dump, false, false)                       \
  X(deeper_than_the_entries, ready_stream, act_deep, false, false)                      \
  X(calls_in_blocks, ready_stream, act_calls_in_blocks, false, false)                   \
  X(deep_calls_in_blocks, ready_stream, act_deep_calls_in_blocks, false, false)         \
  X(blocks_beside_calls, ready_stream, act_blocks_beside_calls, false, false)           \
  X(the_end_of_a_thread, ready_stream, act_plain, false, true)                          \
  X(the_end_of_a_thread_with_losses, ready_with_losses, plan_plain, false, true)

#define TEST(name_, ready_, act_, makes_, ends_)                        \
  static void name_##_is_whole_after_every_instruction(void **state) {  \
    static const scenario what = {#name_, ready_, act_, makes_, ends_}; \
    (void)state;                                                        \
    walk(&what);                                                        \
  }
SCENARIOS(TEST)

int main(int argc, char **argv) {
#define ENTRY(name_, ready_, act_, makes_, ends_) \
  cmocka_unit_test_teardown(name_##_is_whole_after_every_instruction, clean),
  /* In CI a dump is walked once: dump_while_recording. */
  if (!getenv("PROF_LONG")) cmocka_set_skip_filter("stop_and_dump_*");
  const struct CMUnitTest tests[] = {SCENARIOS(ENTRY)};
  skip_unless_steppable();
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  total.judge = plan_make();
  if (!total.judge || !captures_make_folder(false)) return 1;
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  print_message("%llu instructions walked, each state judged; %llu read by the library too\n",
                (unsigned long long)total.instructions, (unsigned long long)total.readings);
  captures_remove_folder();
  return failed;
}
