/* The cap holds at full rate, with 64 threads, for every policy. The hot path makes no allocation
   and no system call, and takes no lock that waits. The kernel kills a process that makes a system
   call, by a seccomp filter: the strict mode takes the counter away, too.

   PROF_CAP_SECONDS: how long in all (20). */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <prof/profiler.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/buffer/arena.h"
#include "core/buffer/thread.h"
#include "fault/support/captures.h"
#include "fault/support/skip.h"
#include "hang_guard.h"

enum { THREADS = 64, CAP_BYTES = 16 << 20, HOT_SCOPES = 200 };

static uint32_t quit;

/* ---- the cap ---- */

static void *record(void *unused) {
  uint64_t attempts = 0;
  (void)unused;
  while (!__atomic_load_n(&quit, __ATOMIC_RELAXED)) {
    for (int i = 0; i < 32; i++)
      WITH_BASE_PROFILER(PROF_HOST, "work", "cap", PROF_ARGS("i", i, "text", "some text"), {});
    attempts += 32;
  }
  return (void *)(uintptr_t)attempts;
}

static uint64_t blocks_bytes(const char *path) {
  struct stat about;
  return path[0] && stat(path, &about) == 0 ? (uint64_t)about.st_blocks * 512 : 0;
}

static uint64_t seconds(void) {
  const char *const set = getenv("PROF_CAP_SECONDS");
  return set ? strtoull(set, NULL, 0) : SKIP_SANITIZED ? 8 : 20;
}

static uint64_t lost_now(void) {
  prof_health health = {.size = sizeof health};
  uint64_t lost = 0;
  assert_int_equal(prof_health(&health), PROF_OK);
  for (int i = 0; i < PROF_LOSS_COUNT; i++) lost += health.lost_count[i];
  return lost;
}

static void check_cap(const char *what, uint32_t policy, const char *path, uint32_t helper_thread) {
  const prof_options options = {.size = sizeof options,
                                .policy = policy,
                                .cap_bytes = CAP_BYTES,
                                .path = path,
                                .helper_thread = helper_thread};
  pthread_t threads[THREADS];
  prof_health health = {.size = sizeof health};
  const uint64_t ticks = seconds() * 50 / 4, ticks_most = ticks + 50 * (uint64_t)hang_seconds();
  uint64_t attempts = 0, lost = 0, most = 0, most_on_disk = 0;
  quit = 0;
  if (prof_start_with(&options) != PROF_OK) fail_msg("prof_start_with: %s", prof_last_error());
  for (int i = 0; i < THREADS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, record, NULL), 0);
  for (uint64_t tick = 0; tick < ticks || (tick < ticks_most && lost_now() == 0); tick++) {
    nanosleep(&(const struct timespec){0, 20000000}, NULL);
    const uint64_t used = __atomic_load_n(&prof_i_arena_header()->used_bytes, __ATOMIC_RELAXED),
                   on_disk = blocks_bytes(prof_i_the_arena.path);
    if (used > most) most = used;
    if (on_disk > most_on_disk) most_on_disk = on_disk;
  }
  __atomic_store_n(&quit, 1, __ATOMIC_RELAXED);
  for (int i = 0; i < THREADS; i++) {
    void *count = NULL;
    pthread_join(threads[i], &count);
    attempts += (uintptr_t)count;
  }
  prof_stop();
  assert_int_equal(prof_health(&health), PROF_OK);
  lost = lost_now();
  print_message(
      "  %-20s %10llu attempted: %llu recorded, %llu lost; at most %.1f MiB of arena, %.1f MiB on "
      "disk\n",
      what, (unsigned long long)attempts, (unsigned long long)health.recorded_count,
      (unsigned long long)lost, (double)most / 1048576, (double)most_on_disk / 1048576);
  assert_int_equal(health.recorded_count + lost, attempts);
  assert_true(lost > 0); /* the cap was reached */
  assert_true(most <= CAP_BYTES && health.arena_bytes <= CAP_BYTES);
  assert_true(most_on_disk <= CAP_BYTES + 65536); /* the file system's own blocks */
}

static void the_cap_holds_when_recording_stops_there(void **state) {
  (void)state;
  check_cap("keep", PROF_POLICY_KEEP, NULL, 0);
}
static void the_cap_holds_in_a_ring(void **state) {
  (void)state;
  check_cap("ring", PROF_POLICY_RING, NULL, 0);
}
static void the_cap_holds_in_a_file(void **state) {
  (void)state;
  check_cap("stream", PROF_POLICY_STREAM, captures_path("cap.json"), 0);
}
static void the_cap_holds_with_a_helper(void **state) {
  (void)state;
  check_cap("ring with helper", PROF_POLICY_RING, captures_path("helper.json"), 1);
}

/* ---- the hot path ---- */

/* All the shapes that go the short way; twice, since the first time teaches the call sites. */
static void hot_scopes(int times) {
  static const char *volatile name = "a run-time name";
  for (int i = 0; i < times; i++) {
    WITH_BASE_PROFILER(PROF_HOST, "plain", "hot", PROF_NO_ARGS, {
      WITH_BASE_PROFILER(PROF_HOST, "numbers", "hot", PROF_ARGS("a", i, "b", 2 * i), {});
      WITH_BASE_PROFILER(PROF_HOST, "text", "hot", PROF_ARGS("text", "short"), {});
      WITH_BASE_PROFILER(PROF_HOST, name, "hot", PROF_NO_ARGS, {});
    });
    PROF_INSTANT("instant", "hot", PROF_ARGS("a", i));
    PROF_COUNTER("counter", i);
    prof_scope_end(prof_scope_begin(1, "by a call", "hot", NULL));
  }
}

/* From now on the process may end, and nothing else. False: not permitted here. */
static bool confine(void) {
  struct sock_filter lines[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
  };
  const struct sock_fprog filter = {sizeof lines / sizeof *lines, lines};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

static void confined(bool breaks_out) {
  const prof_options options = {.size = sizeof options, .cap_bytes = 64 << 20};
  if (prof_start_with(&options) != PROF_OK) _exit(2);
  prof_i_thread *thread = NULL;
  do {
    hot_scopes(10); /* until the chunk is a large one, and nearly empty */
    thread = prof_i_this_thread;
  } while (thread->chunk->bytes < 1 << 18 || thread->chunk->cursor > 1 << 14);
  const uint64_t chunk = thread->slot->chunk;
  if (!confine()) _exit(77);
  hot_scopes(HOT_SCOPES);
  if (breaks_out) syscall(SYS_getpid);
  /* a chunk change would have been allowed to ask the kernel */
  syscall(SYS_exit, thread->slot->chunk == chunk ? 0 : 3);
}

static int run_confined(bool breaks_out) {
  int status = -1;
  fflush(NULL);
  const pid_t child = fork();
  if (child == 0) confined(breaks_out);
  waitpid(child, &status, 0);
  return status;
}

static void the_hot_path_asks_the_kernel_for_nothing(void **state) {
  (void)state;
  if (SKIP_SANITIZED) {
    print_message("skip: the sanitizer asks the kernel itself\n");
    skip();
  }
  const int status = run_confined(false);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
    print_message("skip: seccomp is not permitted here\n");
    skip();
  }
  assert_int_equal(status, 0);
  const int broken = run_confined(true); /* the trap works */
  assert_true(WIFSIGNALED(broken) && WTERMSIG(broken) == SIGSYS);
}

/* The test's own malloc comes before libc's for all that is in this program. */
/* the compiler believes that malloc() changes nothing that it sees */
static volatile uint64_t allocations;
static volatile bool counts_allocations;
extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *at, size_t bytes);
#if !SKIP_SANITIZED
void *malloc(size_t bytes) {
  allocations += counts_allocations;
  return __libc_malloc(bytes);
}
void *calloc(size_t count, size_t bytes) {
  allocations += counts_allocations;
  return __libc_calloc(count, bytes);
}
void *realloc(void *at, size_t bytes) {
  allocations += counts_allocations;
  return __libc_realloc(at, bytes);
}
#endif

static void no_scope_allocates_not_even_the_first(void **state) {
  const prof_options options = {.size = sizeof options, .cap_bytes = 32 << 20};
  (void)state;
  if (SKIP_SANITIZED) {
    print_message("skip: the sanitizer has a malloc of its own\n");
    skip();
  }
  assert_int_equal(prof_start_with(&options), PROF_OK);
  counts_allocations = true;
  hot_scopes(10000); /* its first scopes, new call sites, and chunk changes */
  counts_allocations = false;
  prof_stop();
  assert_int_equal(allocations, 0);
  counts_allocations = true;
  char *volatile seen = malloc(1);
  counts_allocations = false;
  free(seen);
  assert_int_equal(allocations, 1);
}

static int clean(void **state) {
  (void)state;
  captures_clear();
  return 0;
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_teardown(the_hot_path_asks_the_kernel_for_nothing, clean),
      cmocka_unit_test_teardown(no_scope_allocates_not_even_the_first, clean),
      cmocka_unit_test_teardown(the_cap_holds_when_recording_stops_there, clean),
      cmocka_unit_test_teardown(the_cap_holds_in_a_ring, clean),
      cmocka_unit_test_teardown(the_cap_holds_in_a_file, clean),
      cmocka_unit_test_teardown(the_cap_holds_with_a_helper, clean),
  };
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  if (!captures_make_folder(false)) return 1;
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  captures_remove_folder();
  return failed;
}
