/* A signal handler that calls prof, at each instruction of each public call, in a fresh child. No
   call of the handler may wait: it works, or it is refused with PROF_E_BUSY and a text. When the
   interrupted call has returned, prof works as before.

   Of each address the first passage is interrupted. In CI one address of eight is, at most 24, and
   of a long call those in its first part: support/share.h. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "hang_guard.h"
#include "support/calls.h"
#include "support/captures.h"
#include "support/share.h"
#include "support/skip.h"
#include "support/tracee.h"

enum {
  WALK_MAX = 1 << 21,
  WALK_IN_CI = 20000,
  START_IN_CI = 60000,
  PLACES_IN_CI = 24,
  FAULT_BYTES = 400
};

/* The child's report, in shared memory. */
static struct announced {
  uint32_t phase;      /* 1: the act is under way; 2: it has returned */
  uint32_t first;      /* of the handler's calls */
  uint32_t call;       /* of the handler, from 1; 0: none is under way */
  uint32_t runs;       /* of the handler */
  uint32_t done, busy; /* calls of the handler */
  char fault[FAULT_BYTES];
} * said;

static void say_fault(const char *format, ...) {
  va_list arguments;
  if (said->fault[0]) return;
  va_start(arguments, format);
  vsnprintf(said->fault, sizeof said->fault, format, arguments);
  va_end(arguments);
}

/* ---- the child ---- */

static void judge(const call *c, int status) {
  said->done++;
  said->busy += status == PROF_E_BUSY;
  if (status != PROF_OK && status != PROF_E_BUSY && status != c->other)
    say_fault("the handler's %s: %s: %s", c->name, prof_status_name(status), prof_last_error());
  else if (status == PROF_E_BUSY && !strstr(prof_last_error(), "signal handler") &&
           !strstr(prof_last_error(), "just being asked"))
    say_fault("the handler's %s is refused without a reason: '%s'", c->name, prof_last_error());
}

static void handler(int signal) {
  const int saved = errno; /* as every handler must */
  (void)signal;
  said->runs++;
  for (uint32_t i = 0; i < CALL_COUNT; i++) {
    const uint32_t which = (said->first + i) % CALL_COUNT;
    said->call = which + 1;
    judge(&calls[which], calls[which].act());
  }
  said->call = 0;
  errno = saved;
}

static void expect(const char *what, int status) {
  if (status != PROF_OK)
    say_fault("afterwards %s: %s: %s", what, prof_status_name(status), prof_last_error());
}

/* Captures, pools, and what the acts look at. */
static void get_ready(void) {
  const prof_pool_options plain = {.size = sizeof plain, .name = "plain"},
                          checked = {.size = sizeof checked, .name = "checked", .checked = 1};
  snprintf(output, sizeof output, "%s", captures_path("trace.json"));
  snprintf(kept_path, sizeof kept_path, "%s", captures_path("kept.prof.out"));
  expect("a start", start_to(NULL, 2, 0));
  expect("a pool", prof_pool_create(&plain, &kept_pool));
  expect("a pool", prof_pool_create(&checked, &checked_pool));
  expect("memory", prof_memory_start());
  do_scopes();
  do_alloc();
  do_checked_alloc();
  expect("a get", prof_get(&kept_trace));
  expect("memory's", prof_memory_read(kept_trace, &kept_memory));
  const prof_dump_options options = {.size = sizeof options, .format = PROF_FORMAT_CAPTURE};
  expect("a dump", prof_trace_dump(kept_trace, captures_path("kept.prof.out"), &options));
}

static void end_all(void) {
  prof_memory_stop();
  while (prof_level() != 0 && prof_stop() == PROF_OK) {
  }
}

/* Nothing is left locked, closed or half done. */
static void try_all_again(void) {
  uint64_t ns, count = 0;
  end_all();
  expect("a start to another capture", start_to(NULL, 7, 0));
  WITH_BASE_PROFILER(PROF_HOST, "afterwards", "call step", PROF_NO_ARGS, {});
  expect("a duration", prof_get_duration("afterwards", NULL, &ns, &count));
  if (count != 1)
    say_fault("afterwards %llu scopes were recorded of one", (unsigned long long)count);
  expect("a clear", prof_clear());
  expect("memory", prof_memory_start());
  do_checked_alloc();
  expect("health", do_health());
  expect("a mute", do_mute());
  expect("a table", do_table());
  expect("a dump", do_dump());
  expect("memory's end", prof_memory_stop());
  expect("a stop", prof_stop());
}

static bool has(const char *name, const char *part) { return strstr(name, part) != NULL; }

static void body(void *context) {
  const call *const what = context;
  const struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
  hang_guard();
  if (!freopen("/dev/null", "w", stderr)) _exit(1); /* prof_memory_oom() writes there */
  sigaction(SIGUSR1, &action, NULL);
  get_ready();
  if (has(what->name, "start_") && !has(what->name, "at_2")) end_all();
  if (strcmp(what->name, "start") == 0 || strcmp(what->name, "memory_start") == 0) end_all();
  if (strcmp(what->name, "stop_file") == 0) {
    end_all();
    expect("a start with a helper", do_start_helper());
  }
  if (said->fault[0]) _exit(1);
  said->phase = 1;
  tracee_trap();
  const int status = what->act();
  said->phase = 2;
  tracee_trap();
  if (status != PROF_OK && status != PROF_E_BUSY && status != what->other)
    say_fault("the interrupted call: %s: %s", prof_status_name(status), prof_last_error());
  try_all_again();
  _exit(said->fault[0] ? 1 : 0);
}

/* ---- the walk that finds where to interrupt ---- */

static struct {
  uint64_t *places;
  size_t count;
  uint64_t interrupted, missed, refused, done;
} own;

static int by_address(const void *a, const void *b) {
  const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

static void find_places(const call *what) {
  tracee child = {0};
  memset(said, 0, sizeof *said);
  own.count = 0;
  if (!tracee_begin(&child, body, (void *)(uintptr_t)what, false))
    fail_msg("%s: the child ended before the walk: %s", what->name, said->fault);
  const size_t in_ci = has(what->name, "start_") ? START_IN_CI : WALK_IN_CI;
  const size_t most = share() == SHARES ? WALK_MAX : in_ci;
  while (said->phase == 1 && own.count < most && child.signal == SIGTRAP) {
    own.places[own.count++] = tracee_at(&child);
    tracee_step(&child);
  }
  if (child.signal != SIGTRAP)
    fail_msg("%s: signal %d after %zu instructions", what->name, child.signal, own.count);
  tracee_end(&child);
  captures_clear();
}

static size_t choose_places(void) {
  const size_t walked = own.count;
  size_t kept = 0;
  qsort(own.places, own.count, sizeof *own.places, by_address);
  for (size_t i = 0; i < walked; i++)
    if (i == 0 || own.places[i] != own.places[i - 1]) own.places[kept++] = own.places[i];
  own.count = kept;
  if (share() == SHARES) return walked;
  size_t taken = 0;
  const size_t step = kept / PLACES_IN_CI < SHARES ? SHARES : kept / PLACES_IN_CI + 1;
  for (size_t i = share() * step / SHARES; i < kept; i += step) own.places[taken++] = own.places[i];
  own.count = taken;
  return walked;
}

static void check_interrupted(const call *what, uint64_t at, const tracee *child) {
  if (!child->signal && child->status == SIGTRAP) {
    own.missed++; /* the helper thread, which is not traced, has met the breakpoint */
    return;
  }
  if (said->call)
    fail_msg("%s, interrupted at %#llx: the handler's %s did not return (signal %d)", what->name,
             (unsigned long long)at, calls[said->call - 1].name, child->signal);
  if (child->signal || child->status != 0 || said->runs != 1)
    fail_msg("%s, interrupted at %#llx: signal %d, status %x, %u runs: %s", what->name,
             (unsigned long long)at, child->signal, (unsigned)child->status, said->runs,
             said->fault);
  own.interrupted++;
  own.refused += said->busy;
  own.done += said->done;
}

static void interrupt(const call *what, uint64_t at, uint32_t first) {
  tracee child = {0};
  memset(said, 0, sizeof *said);
  said->first = first;
  if (!tracee_begin(&child, body, (void *)(uintptr_t)what, false))
    fail_msg("%s: the child ended early: %s", what->name, said->fault);
  if (!tracee_run_to(&child, at, 1) || said->phase != 1) {
    own.missed++; /* this time it took another way */
  } else {
    tracee_continue(&child, SIGUSR1);
    if (child.signal == SIGUSR1) /* a thread was being made, with signals blocked: it comes now */
      tracee_continue(&child, SIGUSR1);
    if (child.signal == SIGTRAP && said->phase == 2) tracee_continue(&child, 0);
    check_interrupted(what, at, &child);
  }
  tracee_end(&child);
  captures_clear();
}

static void interrupt_everywhere(const call *what) {
  find_places(what);
  const size_t walked = choose_places();
  const uint64_t missed = own.missed, refused = own.refused, done = own.done;
  for (size_t i = 0; i < own.count; i++) interrupt(what, own.places[i], (uint32_t)i % CALL_COUNT);
  print_message(
      "  %-16s %8zu instructions, a signal at %5zu, %llu not reached again, %llu of %llu "
      "calls refused\n",
      what->name, walked, own.count, (unsigned long long)(own.missed - missed),
      (unsigned long long)(own.refused - refused), (unsigned long long)(own.done - done));
}

static int clean(void **state) {
  (void)state;
  captures_clear();
  return 0;
}

#define TEST(name_, act_, other_)                                    \
  static void name_##_may_be_interrupted_by_any_call(void **state) { \
    static const call what = {#name_, act_, other_};                 \
    (void)state;                                                     \
    interrupt_everywhere(&what);                                     \
  }
CALLS(TEST)

int main(int argc, char **argv) {
#define ENTRY(name_, act_, other_) \
  cmocka_unit_test_teardown(name_##_may_be_interrupted_by_any_call, clean),
  const struct CMUnitTest tests[] = {CALLS(ENTRY)};
  skip_unless_steppable();
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  own.places = malloc(WALK_MAX * sizeof *own.places);
  said = mmap(NULL, sizeof *said, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (!own.places || said == MAP_FAILED || !captures_make_folder(true)) return 1;
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  say_share();
  print_message("%llu signals given, %llu places not reached again\n",
                (unsigned long long)own.interrupted, (unsigned long long)own.missed);
  captures_remove_folder();
  return failed;
}
