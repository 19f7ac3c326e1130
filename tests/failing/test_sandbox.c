/* A host in a sandbox, as containers and browsers have it: the kernel refuses a system call from
   the start on, to all threads, as EPERM, ENOSYS or EACCES. Recording to a file and in memory,
   reading, clearing and dumping then go on by another way where there is one. Where there is none,
   prof says what was refused. The host goes on in any case. */
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "fault/support/skip.h"
#include "host.h"

enum { SCOPES = 500, MANY_SCOPES = 60000, CALLS_MAX = 40 };

typedef struct refused_call {
  const char *name;
  unsigned number;
} refused_call;
#define CALL(name) \
  { #name, SYS_##name }

/* There is another way, or prof needs no answer. */
static const refused_call with_a_way_round[] = {
    CALL(memfd_create),
    CALL(ftruncate),
    CALL(madvise),
    CALL(linkat),
    CALL(flock),
    CALL(statfs),
    CALL(pwrite64),
    CALL(pwritev),
    CALL(mincore),
    CALL(sync_file_range),
    CALL(sched_getaffinity),
    CALL(sched_setaffinity),
    CALL(sched_getscheduler),
    CALL(sched_setscheduler),
    CALL(getpriority),
    CALL(setpriority),
    CALL(prctl),
    CALL(timer_create),
    CALL(eventfd2),
    CALL(userfaultfd),
    CALL(renameat2),
    CALL(sysinfo),
    CALL(prlimit64),
    CALL(membarrier),
    CALL(tgkill),
    CALL(getdents64),
    CALL(uname),
    CALL(getcwd),
    CALL(process_vm_readv),
    CALL(perf_event_open),
    CALL(rt_sigprocmask),
#ifdef SYS_renameat
    CALL(renameat),
#endif
#ifdef SYS_readlink
    CALL(readlink),
#endif
};
/* It works otherwise, or fails with a word. */
static const refused_call without_one[] = {
    CALL(openat), CALL(newfstatat), CALL(mprotect), CALL(mremap), CALL(fallocate), CALL(fstatfs),
    CALL(fcntl),  CALL(lseek),      CALL(pread64),  CALL(close),  CALL(unlinkat),  CALL(getpid),
#ifdef SYS_access
    CALL(access),
#endif
};

/* docs/how-to/link-prof.md: what prof calls while the main thread records, into a file at most. */
static const refused_call of_the_page[] = {
    CALL(gettid),     CALL(getpid),    CALL(munlock), CALL(rt_sigprocmask), CALL(mmap),
    CALL(mprotect),   CALL(madvise),   CALL(prctl),   CALL(newfstatat),     CALL(fallocate),
    CALL(pwritev),    CALL(prlimit64), CALL(fstatfs), CALL(clock_gettime),  CALL(getrusage),
    CALL(exit_group), /* the last: of this test */
};

typedef struct sandbox {
  refused_call calls[CALLS_MAX];
  size_t count;
  int error;
  bool must_work;
  bool in_memory, with_helper;
  uint64_t cap_bytes;
} sandbox;

enum { LINES_MAX = 2 * CALLS_MAX + 2 };

static bool install(const struct sock_filter *lines, unsigned short count) {
  const struct sock_fprog filter = {count, (struct sock_filter *)(uintptr_t)lines};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

/* Any other call ends the process. */
static bool allow_alone(const refused_call *calls, size_t call_count) {
  struct sock_filter lines[LINES_MAX] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
  unsigned short count = 1;
  for (size_t i = 0; i < call_count; i++) {
    lines[count++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i].number, 0, 1);
    lines[count++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  }
  lines[count++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
  return install(lines, count);
}

static bool refuse(const sandbox *what) {
  struct sock_filter lines[LINES_MAX] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
  unsigned short count = 1;
  for (size_t i = 0; i < what->count; i++) {
    const unsigned error = SECCOMP_RET_ERRNO | (unsigned)what->error;
    lines[count++] =
        (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, what->calls[i].number, 0, 1);
    lines[count++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, error);
  }
  lines[count++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  return install(lines, count);
}

/* ---- the host ---- */

/* False: prof may not do this here, and says why. */
static bool works(const sandbox *what, const char *step, int status) {
  if (status == PROF_OK) return true;
  check(!what->must_work, "%s: %s", step, prof_status_name(status));
  check(status < 0 && prof_last_error()[0], "%s: %s without a word", step,
        prof_status_name(status));
  return false;
}

static void *work(void *count) {
  record_scopes(*(const uint64_t *)count);
  return NULL;
}

/* Without mprotect() there are no threads. */
static void record(uint64_t each) {
  pthread_t thread;
  const bool has_thread = pthread_create(&thread, NULL, work, &each) == 0;
  if (!has_thread) work(&each);
  record_scopes(each);
  if (has_thread) check(pthread_join(thread, NULL) == 0, "join");
}

static void get(const sandbox *what, uint64_t expected) {
  prof_trace *trace = NULL;
  prof_trace_info info = {.size = sizeof info};
  if (!works(what, "get", prof_get(&trace))) return;
  check_status(prof_trace_info_get(trace, &info), PROF_OK);
  check(info.scope_count == expected && info.bad_count == 0,
        "%" PRIu64 " of %" PRIu64 " scopes, %" PRIu64 " bad", info.scope_count, expected,
        info.bad_count);
  prof_trace_destroy(trace);
}

static void dump(const sandbox *what, const char *path) {
  const long long before = host_size(path);
  const bool is_there = works(what, "dump", prof_dump(path));
  if (what->must_work)
    check(host_size(path) > 1000, "%lld bytes", host_size(path));
  else if (!is_there)
    check(host_size(path) == before, "%lld bytes are left", host_size(path));
}

/* A child begins its own capture inside of a scope. */
static void record_in_a_child(const sandbox *what) {
  enum { CHILDS_SCOPES = 10 };
  int status = -1;
  const pid_t child = fork();
  if (child == 0) {
    record_scopes(CHILDS_SCOPES);
    host_check_sum(CHILDS_SCOPES);
    const prof_health health = health_now();
    const bool is_there = health.recorded_count == CHILDS_SCOPES;
    if (what->must_work) check(is_there, "the child has lost its scopes: %s", health.reason);
    _exit(0);
  }
  check(child > 0 && waitpid(child, &status, 0) == child && status == 0, "the child ended with %x",
        (unsigned)status);
}

static int run_sandbox(const void *context) {
  const sandbox *const what = context;
  const char *const one = host_path("one.json"), *const two = host_path("two.json");
  const prof_options options = {.size = sizeof options,
                                .path = what->in_memory ? NULL : host_path("run.json"),
                                .cap_bytes = what->cap_bytes,
                                .helper_thread = what->with_helper};
  const uint64_t each = what->cap_bytes > 16 << 20 ? MANY_SCOPES : SCOPES;
  if (!refuse(what)) return skip_child("the kernel takes no filter");
  const bool is_started = works(what, "start", prof_start_with(&options));
  record(each);
  if (!is_started) return 0;
  host_check_sum(2 * each);
  const prof_health health = health_now();
  if (what->must_work) check(health.recorded_count == 2 * each, "%s", health.reason);
  check(what->in_memory || health.survives_kill || health.reason[0], "in memory, and no reason");
  get(what, health.recorded_count);
  record_in_a_child(what);
  dump(what, one);
  dump(what, one); /* over the previous one */
  works(what, "clear", prof_clear());
  record(each);
  host_check_sum(4 * each);
  works(what, "stop", prof_stop());
  dump(what, two);
  if (works(what, "start again", prof_start_with(&options))) record(each);
  works(what, "stop again", prof_stop());
  return 0;
}

/* First scopes, chunk changes, new sites. The filter ends what prof calls beside. */
static int run_with_the_calls_of_the_page(const void *is_file) {
  enum { CHUNKS_OF_SCOPES = 400000 };
  const prof_options options = {.size = sizeof options,
                                .level = 1,
                                .policy = *(const bool *)is_file ? PROF_POLICY_STREAM : 0,
                                .path = *(const bool *)is_file ? host_path("run.json") : NULL};
  check_status(prof_start_with(&options), PROF_OK);
  if (!allow_alone(of_the_page, sizeof of_the_page / sizeof *of_the_page))
    return skip_child("the kernel takes no filter");
  record_scopes(CHUNKS_OF_SCOPES);
  PROF_INSTANT("new", "sandbox", PROF_ARGS("one", 1, "text", "two"));
  _exit(0);
}

/* ---- the tests ---- */

static unsigned failures;

enum { EVERY_WAY = -1 };

/* turn: by one of the four ways of recording, which differs from error to error; by each with
   PROF_LONG=1. */
static void try(sandbox what, const char *name, int turn) {
  static const struct {
    const char *name;
    bool in_memory, with_helper;
    uint64_t cap_bytes;
  } ways[] = {{"a file", false, false, 4 << 20},
              {"a file with a helper", false, true, 4 << 20},
              {"memory", true, false, 1 << 20},
              {"memory in blocks", true, false, 64 << 20}};
  static const struct {
    int number;
    const char *name;
  } errors[] = {{EPERM, "EPERM"}, {ENOSYS, "ENOSYS"}, {EACCES, "EACCES"}};
  for (size_t e = 0; e < sizeof errors / sizeof *errors; e++) {
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
      if (turn != EVERY_WAY && !getenv("PROF_LONG") && i != ((size_t)turn + e) % 4) continue;
      char said[HOST_SAID_ROOM], complaint[HOST_SAID_ROOM + 64];
      what.error = errors[e].number;
      what.in_memory = ways[i].in_memory;
      what.with_helper = ways[i].with_helper;
      what.cap_bytes = ways[i].cap_bytes;
      host_empty(host_folder);
      const int status = host_end(host_begin(run_sandbox, &what), said);
      if (WIFEXITED(status) && WEXITSTATUS(status) == HOST_SKIPPED) {
        print_message("%s", said);
        skip();
      }
      if (!*host_complaint(status, said, complaint, sizeof complaint)) continue;
      failures++;
      print_error("%s, %s, %s: %s\n", name, errors[e].name, ways[i].name, complaint);
    }
  }
}

static void try_each(const refused_call *calls, size_t count, bool must_work) {
  failures = 0;
  for (size_t i = 0; i < count; i++)
    try((sandbox){.calls = {calls[i]}, .count = 1, .must_work = must_work}, calls[i].name, (int)i);
  if (failures) fail_msg("%u runs went wrong", failures);
}

static void calls_that_are_refused_have_a_way_round(void **state) {
  (void)state;
  try_each(with_a_way_round, sizeof with_a_way_round / sizeof *with_a_way_round, true);
}

static void calls_without_a_way_round_fail_with_a_word(void **state) {
  (void)state;
  try_each(without_one, sizeof without_one / sizeof *without_one, false);
}

/* But for rename: of its calls one must be allowed. */
static void all_of_them_refused_have_a_way_round(void **state) {
  enum { COUNT = sizeof with_a_way_round / sizeof *with_a_way_round };
  sandbox what = {.must_work = true};
  (void)state;
  failures = 0;
  for (size_t i = 0; i < COUNT; i++)
    if (strcmp(with_a_way_round[i].name, "renameat2") != 0)
      what.calls[what.count++] = with_a_way_round[i];
  try(what, "all", EVERY_WAY);
  if (failures) fail_msg("%u runs went wrong", failures);
}

static void the_calls_of_the_page_are_enough(void **state) {
  static const bool ways[] = {false, true};
  (void)state;
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
    char said[HOST_SAID_ROOM];
    host_empty(host_folder);
    const int status = host_end(host_begin(run_with_the_calls_of_the_page, &ways[i]), said);
    if (WIFEXITED(status) && WEXITSTATUS(status) == HOST_SKIPPED) skip();
    if (status) fail_msg("%s: wait status %x: %s", ways[i] ? "a file" : "memory", status, said);
  }
}

int main(void) {
  if (SKIP_SANITIZED) skip_because("a sanitizer makes such calls itself");
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(calls_that_are_refused_have_a_way_round),
      cmocka_unit_test(calls_without_a_way_round_fail_with_a_word),
      cmocka_unit_test(all_of_them_refused_have_a_way_round),
      cmocka_unit_test(the_calls_of_the_page_are_enough),
  };
  return cmocka_run_group_tests_name("a sandbox", tests, host_make_folder, host_remove_folder);
}
