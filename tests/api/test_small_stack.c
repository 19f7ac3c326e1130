/* A host's worker threads may have 16 KiB of stack, the least that glibc allows on x86-64. Each
   call of prof/profiler.h, in a process of its own, does its work on such a thread, above a guard
   page. A run on a large stack, painted before, measures what the call needs.

   Not under a sanitizer, which makes frames larger, nor under valgrind, which runs the C library's
   slower functions. */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <prof/memory.h>
#include <prof/profiler.h>
#include <prof/trace.h>

#include "api/sanitizers.h"
#include "hang_guard.h"

enum { SMALL_BYTES = 16 << 10, LARGE_BYTES = 512 << 10, GUARD_BYTES = 4096, PAINT = 0xa5 };

static char folder[64], output[128];

static const char *in_folder(const char *name) {
  static __thread char path[128];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

/* ---- the calls: 0, or what is wrong ---- */

static void record_some(void) {
  for (int i = 0; i < 100; i++)
    WITH_BASE_PROFILER(PROF_HOST, "scope", "x", PROF_ARGS("one", i, "text", "two", "real", 0.1),
                       {});
  PROF_COUNTER("counter", 1.5);
  PROF_INSTANT("instant", "x", PROF_NO_ARGS);
}

/* Of all kinds that these calls read: also open scopes, memory and a mute. */
static void record_kinds(void) {
  const prof_pool_options options = {.size = sizeof options, .name = "pool"};
  prof_pool *pool;
  static int piece;
  record_some();
  if (prof_memory_start() || prof_pool_create(&options, &pool) || prof_mute("never", NULL, 1))
    _exit(103);
  prof_memory_alloc(pool, &piece, 100, 128);
  prof_scope_begin(1, "open", "x", NULL);
  prof_flow_begin(7, "flow");
}
static void ready_nothing(void) {}
static void ready_memory(void) {
  prof_start(1);
  record_kinds();
}
static void ready_stream(void) {
  const prof_options options = {.size = sizeof options, .level = 1, .path = output};
  prof_start_with(&options);
  record_kinds();
}
static void ready_many(void) {
  ready_memory();
  for (int i = 0; i < 100000; i++) WITH_BASE_PROFILER(PROF_HOST, "many", "x", PROF_NO_ARGS, {});
}
static void ready_stopped(void) {
  ready_stream();
  prof_stop();
}

static int start_memory(void) { return prof_start(1); }
static int start_stream(void) {
  const prof_options options = {.size = sizeof options, .level = 1, .path = output};
  return prof_start_with(&options);
}
static int start_ring(void) {
  const prof_options options = {.size = sizeof options,
                                .level = 1,
                                .policy = PROF_POLICY_RING,
                                .cap_bytes = 2 << 20,
                                .helper_thread = 1};
  return prof_start_with(&options);
}
static int start_wrong(void) {
  const prof_options options = {.size = sizeof options, .level = 1, .path = "/nowhere/at/all.json"};
  return prof_start_with(&options) == PROF_E_NOT_FOUND ? PROF_OK : 1;
}
static int all_scopes(void) {
  record_some();
  const uint64_t start = prof_scope_begin(1, "name", "category", NULL);
  prof_scope_end(start);
  prof_step();
  prof_flow_begin(1, "flow");
  prof_flow_end(1, "flow");
  return PROF_OK;
}
static int mute(void) { return prof_mute("scope", NULL, 1); }
static int want(void) {
  static const char owner;
  const int status = prof_level_want(&owner, 2);
  return status ? status : prof_level_want_with(&owner, 0, PROF_DEVICES_SCOPES);
}
static int stop(void) { return prof_stop(); }
static int clear(void) { return prof_clear(); }
static int get(void) {
  prof_trace *trace;
  return prof_get(&trace);
}
static int get_json(void) {
  char *text;
  const int status = prof_get_json(&text, NULL);
  if (!status) prof_free(text);
  return status;
}
static int get_duration(void) {
  uint64_t total_ns, count;
  const int status = prof_get_duration("scope", NULL, &total_ns, &count);
  return status ? status : count != 100;
}
static int dump_path(void) { return prof_dump(in_folder("given.json")); }
static int dump_own(void) { return prof_dump(NULL); }
static int health(void) {
  static prof_health health_of;
  health_of.size = sizeof health_of;
  return prof_health_get(&health_of);
}
static int names(void) {
  int status = prof_process_set_name("process");
  if (!status) status = prof_thread_set_name("thread");
  if (!status) status = prof_rank_set(1, 2);
  return status;
}
static int dump_format(const char *name) {
  const int status = prof_dump(in_folder(name));
  return status == PROF_E_UNSUPPORTED ? PROF_OK : status; /* a library is not there */
}
static int dump_gz(void) { return dump_format("given.json.gz"); }
static int dump_capture(void) { return dump_format("given.prof"); }
static int dump_perfetto(void) { return dump_format("given.pftrace"); }
static int dump_csv(void) { return dump_format("given.csv"); }
static int dump_folded(void) { return dump_format("given.folded"); }
static int dump_speedscope(void) { return dump_format("given.speedscope.json"); }
static int dump_pprof(void) { return dump_format("given.pb"); }
static int dump_trace(void) {
  const prof_dump_options options = {.size = sizeof options, .stacks = 1, .window_marks = 1};
  prof_trace *trace;
  int status = prof_get(&trace);
  if (status) return status;
  status = prof_trace_dump(trace, in_folder("trace.json"), &options);
  prof_trace_destroy(trace);
  return status;
}
static int dump_raf(void) {
  const prof_dump_options options = {.size = sizeof options, .format = PROF_FORMAT_RAF};
  return prof_dump_with(in_folder("given.raf.json"), &options);
}
static int dump_sqlite(void) { return dump_format("given.db"); }
static int dump_rpd(void) { return dump_format("given.rpd"); }
static int dump_packed(void) {
  const prof_dump_options options = {.size = sizeof options, .format = PROF_FORMAT_PACKED};
  const int status = prof_dump_with(in_folder("packed.prof"), &options);
  return status == PROF_E_UNSUPPORTED ? PROF_OK : status;
}

typedef struct public_call {
  const char *name;
  void (*ready)(void);
  int (*call)(void);
  bool is_measured_only; /* SQLite and zstd have needs of their own: docs/reference/api.md */
} public_call;

/* ---- a thread with that stack ---- */

typedef struct run {
  const public_call *what;
  int status;
  char *top; /* of what the call may use */
} run;

static void *call_there(void *context) {
  run *const r = context;
  char here;
  r->top = &here;
  r->status = r->what->call();
  return NULL;
}

/* The child of the test. *needed_out: bytes below the frame that called. */
static int call_on(const public_call *what, size_t stack_bytes, size_t *needed_out) {
  run r = {.what = what, .status = -1};
  pthread_attr_t attributes;
  pthread_t thread;
  char *const memory = mmap(NULL, GUARD_BYTES + stack_bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED || mprotect(memory, GUARD_BYTES, PROT_NONE)) return 100;
  char *const stack = memory + GUARD_BYTES;
  memset(stack, PAINT, stack_bytes);
  what->ready();
  pthread_attr_init(&attributes);
  if (pthread_attr_setstack(&attributes, stack, stack_bytes) ||
      pthread_create(&thread, &attributes, call_there, &r) || pthread_join(thread, NULL))
    return 101;
  size_t untouched = 0;
  while (untouched < stack_bytes && (unsigned char)stack[untouched] == PAINT) untouched++;
  *needed_out = (size_t)(r.top - (stack + untouched));
  if (r.status) fprintf(stderr, "%s: %d: %s\n", what->name, r.status, prof_last_error());
  return r.status != 0;
}

/* Returns the child's wait status. */
static int in_child(const public_call *what, size_t stack_bytes, size_t *needed_out) {
  int ends[2], status = -1;
  assert_int_equal(pipe(ends), 0);
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    static const int crashes[] = {SIGSEGV, SIGBUS, SIGABRT};
    for (size_t i = 0; i < sizeof crashes / sizeof *crashes; i++) signal(crashes[i], SIG_DFL);
    size_t needed = 0;
    const int result = call_on(what, stack_bytes, &needed);
    if (write(ends[1], &needed, sizeof needed) != sizeof needed) _exit(102);
    _exit(result);
  }
  close(ends[1]);
  *needed_out = 0;
  if (read(ends[0], needed_out, sizeof *needed_out) < 0) *needed_out = 0;
  close(ends[0]);
  assert_int_equal(waitpid(child, &status, 0), child);
  return status;
}

#define CALLS(X)                          \
  X(start_memory, ready_nothing, false)   \
  X(start_stream, ready_nothing, false)   \
  X(start_ring, ready_nothing, false)     \
  X(start_wrong, ready_nothing, false)    \
  X(all_scopes, ready_memory, false)      \
  X(mute, ready_memory, false)            \
  X(want, ready_nothing, false)           \
  X(stop, ready_stream, false)            \
  X(clear, ready_stream, false)           \
  X(get, ready_stream, false)             \
  X(get_json, ready_stream, false)        \
  X(get_duration, ready_stream, false)    \
  X(health, ready_memory, false)          \
  X(names, ready_memory, false)           \
  X(dump_path, ready_memory, false)       \
  X(dump_own, ready_stopped, false)       \
  X(dump_trace, ready_memory, false)      \
  X(dump_raf, ready_memory, false)        \
  X(dump_capture, ready_memory, false)    \
  X(dump_perfetto, ready_memory, false)   \
  X(dump_csv, ready_memory, false)        \
  X(dump_folded, ready_memory, false)     \
  X(dump_speedscope, ready_memory, false) \
  X(dump_pprof, ready_memory, false)      \
  X(dump_gz, ready_memory, false)         \
  X(dump_sqlite, ready_memory, true)      \
  X(dump_rpd, ready_memory, true)         \
  X(dump_packed, ready_many, true)

#define TEST(name_, ready_, is_measured_only_)                                  \
  static void name_##_works_on_a_small_stack(void **state) {                    \
    static const public_call what = {#name_, ready_, name_, is_measured_only_}; \
    (void)state;                                                                \
    check(&what);                                                               \
  }

/* On some processors a thread needs more for its registers alone. */
static size_t small_bytes(void) {
  const long least = sysconf(_SC_THREAD_STACK_MIN);
  return least > SMALL_BYTES ? (size_t)least : SMALL_BYTES;
}

static void check(const public_call *what) {
  size_t needed, unused;
  hang_guard();
  int status = in_child(what, LARGE_BYTES, &needed);
  print_message("  %-16s %6zu bytes\n", what->name, needed);
  assert_int_equal(status, 0);
  if (what->is_measured_only) return;
  status = in_child(what, small_bytes(), &unused);
  if (status)
    fail_msg("%s on %zu bytes of stack: status %x", what->name, small_bytes(), (unsigned)status);
}
CALLS(TEST)

int main(int argc, char **argv) {
#define ENTRY(name_, ready_, is_measured_only_) cmocka_unit_test(name_##_works_on_a_small_stack),
  const struct CMUnitTest tests[] = {CALLS(ENTRY)};
  const char *const preloaded = getenv("LD_PRELOAD");
  if (WITH_ASAN || WITH_TSAN || (preloaded && strstr(preloaded, "vgpreload"))) {
    puts("skip: sanitizers and valgrind need more stack than the library");
    return 77;
  }
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  snprintf(folder, sizeof folder, "/tmp/prof-small-XXXXXX");
  if (!mkdtemp(folder)) return 1;
  snprintf(output, sizeof output, "%s/own.json", folder);
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  char command[128];
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  return system(command) != 0 || failed;
}
