/* Processes made out of a recording one, in every way, from eight threads that record at the same
   time. The ways are fork(), nested; _Fork() and a raw clone(), which run no handlers; vfork() and
   posix_spawn(). The parent loses nothing; each child's capture is its own.

   PROF_FORKS: how many in all (1000). */
#define _GNU_SOURCE
#include <errno.h>
#include <prof/profiler.h>
#include <prof/trace.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "api/sanitizers.h"
#include "fault/support/captures.h"
#include "fault/support/skip.h"
#include "hang_guard.h"

enum { THREADS = 8, SCOPES_AROUND = 16, SCOPES_IN_CHILD = 10 };

typedef enum way {
  WAY_FORK,
  WAY_NESTED,
  WAY_FORK_AND_EXEC,
  WAY_BARE_FORK,
  WAY_CLONE,
  WAY_VFORK,
  WAY_SPAWN,
  WAYS
} way;

static struct {
  uint64_t made, wanted; /* children */
  uint64_t attempts;     /* scopes of the parent that were on */
  uint64_t failed;       /* children that did not end as they should */
  uint64_t by_way[WAYS];
  int last_status; /* of one that did not */
} own;

static void add(uint64_t *count, uint64_t by) { __atomic_fetch_add(count, by, __ATOMIC_RELAXED); }

static void plain(uint64_t times) {
  for (uint64_t i = 0; i < times; i++)
    WITH_BASE_PROFILER(PROF_HOST, "plain", "forks", PROF_ARGS("i", i), {});
}

/* ---- in the child: only its exit status tells ---- */

static int wait_for(pid_t child) {
  int status = -1;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

/* What the parent's scope was begun for ends here, too: that one counts as forked. */
static int record_for_itself(uint64_t more) {
  prof_health health = {.size = sizeof health};
  prof_trace *trace = NULL;
  prof_trace_info info = {.size = sizeof info};
  plain(SCOPES_IN_CHILD);
  if (prof_health(&health) != PROF_OK) return 10;
  if (health.recorded_count != SCOPES_IN_CHILD + more) return 11;
  if (prof_get(&trace) != PROF_OK) return 12;
  prof_trace_info_get(trace, &info);
  prof_trace_destroy(trace);
  if (info.scope_count != SCOPES_IN_CHILD + more || info.bad_count ||
      info.pid != (uint32_t)getpid())
    return 13;
  return prof_stop() == PROF_OK ? 0 : 14;
}

static int record_and_fork_again(void) {
  pid_t grandchild;
  WITH_BASE_PROFILER(PROF_HOST, "around the second fork", "forks", PROF_NO_ARGS, {
    grandchild = fork();
    if (grandchild == 0) _exit(record_for_itself(0));
  });
  return grandchild > 0 && wait_for(grandchild) == 0 ? record_for_itself(1) : 20;
}

static void exec_true(void) {
  static char *words[] = {(char *)(uintptr_t) "true", NULL};
  execvp(words[0], words);
  _exit(127);
}

/* ---- in the parent ---- */

static pid_t begin_child(way which) {
  static char *const words[] = {(char *)(uintptr_t) "true", NULL};
  extern char **environ;
  pid_t child = -1;
  switch (which) {
    case WAY_FORK:
      child = fork();
      if (child == 0) _exit(record_for_itself(0));
      return child;
    case WAY_NESTED:
      child = fork();
      if (child == 0) _exit(record_and_fork_again());
      return child;
    case WAY_FORK_AND_EXEC:
      child = fork();
      if (child == 0) exec_true();
      return child;
    case WAY_BARE_FORK:
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 34)
      child = _Fork();
#else
      child = fork();
#endif
      if (child == 0) _exit(record_for_itself(0));
      return child;
    case WAY_CLONE:
      child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
      if (child == 0) _exit(record_for_itself(0));
      return child;
    case WAY_VFORK:
      child = vfork();
      if (child == 0) {
        execv("/bin/true", words);
        _exit(127);
      }
      return child;
    default:
      return posix_spawnp(&child, words[0], NULL, NULL, words, environ) == 0 ? child : -1;
  }
}

/* Another thread of the parent may hold malloc's lock when a child comes without handlers: it must
   not be needed, but libc's own is. So these two ways are gone without other threads. */
static bool is_bare(way which) { return which == WAY_BARE_FORK || which == WAY_CLONE; }

static void make_one(way which) {
  pid_t child = -1;
  WITH_BASE_PROFILER((add(&own.attempts, 1), PROF_HOST), "around", "forks",
                     PROF_ARGS("way", (int)which), { child = begin_child(which); });
  const int status = child > 0 ? wait_for(child) : -1;
  add(&own.by_way[which], 1);
  if (status == 0) return;
  add(&own.failed, 1);
  __atomic_store_n(&own.last_status, status, __ATOMIC_RELAXED);
}

static void *work(void *unused) {
  (void)unused;
  for (uint64_t n; (n = __atomic_fetch_add(&own.made, 1, __ATOMIC_RELAXED)) < own.wanted;) {
    plain(SCOPES_AROUND);
    add(&own.attempts, SCOPES_AROUND);
    way which = (way)(n % WAYS);
    if (is_bare(which)) which = WAY_FORK;
    make_one(which);
  }
  return NULL;
}

static void begin(uint64_t wanted) {
  static uint64_t cap_bytes = 8 << 20; /* another, so that each test has a capture of its own */
  const prof_options options = {.size = sizeof options,
                                .level = 1,
                                .cap_bytes = cap_bytes += 65536,
                                .path = captures_path("out.json")};
  memset(&own, 0, sizeof own);
  own.wanted = wanted;
  if (prof_start_with(&options) != PROF_OK) fail_msg("prof_start_with: %s", prof_last_error());
}

static void check_parent(void) {
  prof_health health = {.size = sizeof health};
  if (own.failed)
    fail_msg("%llu children failed, one with status %x", (unsigned long long)own.failed,
             (unsigned)own.last_status);
  assert_int_equal(prof_health(&health), PROF_OK);
  for (int i = 0; i < PROF_LOSS_COUNT; i++)
    if (health.lost_count[i])
      fail_msg("%llu lost as '%s'", (unsigned long long)health.lost_count[i], prof_loss_name(i));
  assert_int_equal(health.recorded_count, own.attempts);
  prof_stop();
}

static uint64_t wanted(void) {
  const char *const set = getenv("PROF_FORKS");
  return set ? strtoull(set, NULL, 0) : SKIP_SANITIZED ? 200 : 1000;
}

static void eight_threads_fork_while_they_record(void **state) {
  pthread_t threads[THREADS];
  (void)state;
  begin(wanted());
  for (int i = 0; i < THREADS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, work, NULL), 0);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  check_parent();
  print_message(
      "  %llu children: %llu of fork, %llu nested, %llu exec, %llu vfork, %llu posix_spawn; %llu "
      "scopes around\n",
      (unsigned long long)own.wanted, (unsigned long long)own.by_way[WAY_FORK],
      (unsigned long long)own.by_way[WAY_NESTED], (unsigned long long)own.by_way[WAY_FORK_AND_EXEC],
      (unsigned long long)own.by_way[WAY_VFORK], (unsigned long long)own.by_way[WAY_SPAWN],
      (unsigned long long)own.attempts);
}

static void a_child_that_came_without_handlers_has_a_capture_of_its_own(void **state) {
  (void)state;
  begin(wanted() / 10);
  for (uint64_t n = 0; n < own.wanted; n++) {
    plain(SCOPES_AROUND);
    add(&own.attempts, SCOPES_AROUND);
    make_one(n % 2 ? WAY_CLONE : WAY_BARE_FORK);
  }
  check_parent();
}

/* The first thing that such a child does may be the end of what its parent began, or no scope at
   all. */
static void a_child_without_handlers_may_do_anything_first(void **state) {
  (void)state;
  begin(0);
  for (int first = 0; first < 8; first++) {
    pid_t child = -1;
    WITH_BASE_PROFILER((own.attempts++, PROF_HOST), "around", "forks", PROF_NO_ARGS, {
      child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
      if (child == 0) {
        prof_health health = {.size = sizeof health};
        prof_trace *trace = NULL;
        hang_guard();
        switch (first) {
          case 0:
            break; /* the end */
          case 1:
            _exit(prof_stop() == PROF_E_NOT_RUNNING ? 0 : 1);
          case 2:
            _exit(prof_clear() == PROF_OK ? 0 : 1);
          case 3:
            _exit(prof_health(&health) == PROF_OK && health.recorded_count == 0 ? 0 : 1);
          case 4:
            _exit(prof_get(&trace) == PROF_E_NOT_RUNNING ? 0 : 1);
          case 5:
            _exit(prof_start(2) == PROF_OK || prof_level() == 1 ? 0 : 1);
          case 6:
            PROF_INSTANT("first", "forks", PROF_ARGS("text", "some"));
            _exit(prof_health(&health) == PROF_OK && health.recorded_count == 1 ? 0 : 1);
          default:
            _exit(prof_dump(NULL) != 0 ? 0 : 1);
        }
      }
    });
    if (child == 0) {
      prof_health health = {.size = sizeof health};
      plain(1);
      _exit(prof_health(&health) == PROF_OK && health.recorded_count == 1 &&
                    health.lost_count[PROF_LOSS_FORKED] <= 1
                ? 0
                : 1);
    }
    const int status = wait_for(child);
    if (status) fail_msg("first %d: status %x", first, (unsigned)status);
  }
  check_parent();
}

/* A daemon: the parent stops, writes its trace and goes before the child has had a scope. */
static void a_child_records_beside_its_parents_trace_when_that_has_stopped(void **state) {
  (void)state;
  int ends[2];
  char go = 'g';
  for (int before = 0; before < 2; before++) {
    const prof_options options = {.size = sizeof options,
                                  .path = captures_path(before ? "one.json" : "none.json")};
    assert_int_equal(prof_start_with(&options), PROF_OK);
    if (before) plain(5);
    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
      prof_health health = {.size = sizeof health};
      if (read(ends[0], &go, 1) != 1) _exit(2);
      plain(1000);
      if (prof_health(&health) != PROF_OK || health.recorded_count != 1000) _exit(3);
      prof_stop();
      _exit(prof_dump(NULL) == PROF_OK ? 0 : 4);
    }
    assert_int_equal(prof_stop(), PROF_OK);
    assert_int_equal(prof_dump(NULL), PROF_OK);
    struct stat about, later;
    assert_int_equal(stat(options.path, &about), 0);
    assert_int_equal(write(ends[1], &go, 1), 1);
    assert_int_equal(wait_for(child), 0);
    assert_int_equal(stat(options.path, &later), 0); /* nobody wrote over it */
    assert_true(about.st_ino == later.st_ino && about.st_size == later.st_size);
    char name[CAPTURE_PATH_MAX];
    snprintf(name, sizeof name, "%.*s.%ld.json", (int)strlen(options.path) - 5, options.path,
             (long)child);
    assert_int_equal(stat(name, &later), 0);
    close(ends[0]);
    close(ends[1]);
  }
}

static int clean(void **state) {
  (void)state;
  prof_stop();
  captures_clear();
  return 0;
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_teardown(eight_threads_fork_while_they_record, clean),
      cmocka_unit_test_teardown(a_child_that_came_without_handlers_has_a_capture_of_its_own, clean),
      cmocka_unit_test_teardown(a_child_without_handlers_may_do_anything_first, clean),
      cmocka_unit_test_teardown(a_child_records_beside_its_parents_trace_when_that_has_stopped,
                                clean),
  };
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  if (!captures_make_folder(false)) return 1;
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  captures_remove_folder();
  return failed;
}
