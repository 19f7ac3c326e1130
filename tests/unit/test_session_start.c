/* A start to a file while the file system is slow: whoever does not begin a capture goes on. The
   calls that a start makes are this test's, and do not return before the others have. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <prof/memory.h>
#include <prof/profiler.h>
#include <prof/trace.h>

#include "hang_guard.h"

/* ---- the slow file system ---- */

/* Before the file is made, and when it has been made. AT_CLOSE: when the previous one goes.
   AT_SITES: when it grows for the call sites that are known. */
enum { AT_NONE, AT_LOOK, AT_MADE, AT_COUNT, AT_CLOSE, AT_SITES };

static uint32_t slow_at, is_inside, is_let_go; /* atomic */

static void be_slow(uint32_t at) {
  if (__atomic_load_n(&slow_at, __ATOMIC_SEQ_CST) != at) return;
  __atomic_store_n(&is_inside, 1, __ATOMIC_SEQ_CST);
  WAIT_WHILE(!__atomic_load_n(&is_let_go, __ATOMIC_SEQ_CST));
}

/* In place of libc's. */
int access(const char *path, int how) {
  be_slow(AT_LOOK);
  return (int)syscall(SYS_faccessat, AT_FDCWD, path, how);
}
int flock(int fd, int how) {
  be_slow(AT_MADE);
  return (int)syscall(SYS_flock, fd, how);
}

enum { SITES = 20000, FILE_GROWS = 5 };
int fallocate(int fd, int mode, off_t from, off_t bytes) {
  static uint32_t calls;
  if (__atomic_load_n(&slow_at, __ATOMIC_SEQ_CST) != AT_SITES)
    calls = 0;
  else if (++calls == FILE_GROWS)
    be_slow(AT_SITES);
  return (int)syscall(SYS_fallocate, fd, mode, from, bytes);
}

static int old_capture = -1; /* what AT_CLOSE waits for */
int close(int fd) {
  if (fd == old_capture) be_slow(AT_CLOSE);
  return (int)syscall(SYS_close, fd);
}

/* ---- a start that is under way ---- */

static char directory[] = "/tmp/prof-start-XXXXXX", output[64];

static int start_to_file(uint64_t cap_bytes) {
  const prof_options options = {.size = sizeof options, .path = output, .cap_bytes = cap_bytes};
  return prof_start_with(&options);
}
static uint64_t next_cap(void) {
  static uint64_t cap = 16 << 20;
  return cap += 1 << 20;
}

typedef struct start {
  pthread_t thread;
  uint64_t cap_bytes;
  uint32_t tid, has_ended; /* atomic */
  int status;
} start;

static void *run_start(void *of) {
  start *const s = of;
  __atomic_store_n(&s->tid, (uint32_t)syscall(SYS_gettid), __ATOMIC_SEQ_CST);
  s->status = start_to_file(s->cap_bytes);
  __atomic_store_n(&s->has_ended, 1, __ATOMIC_SEQ_CST);
  return NULL;
}

static void begin_start(start *s) {
  *s = (start){.cap_bytes = next_cap()};
  assert_int_equal(pthread_create(&s->thread, NULL, run_start, s), 0);
}
static void begin_slow_start(start *s, uint32_t at) {
  __atomic_store_n(&is_inside, 0, __ATOMIC_SEQ_CST);
  __atomic_store_n(&is_let_go, 0, __ATOMIC_SEQ_CST);
  __atomic_store_n(&slow_at, at, __ATOMIC_SEQ_CST);
  begin_start(s);
  WAIT_WHILE(!__atomic_load_n(&is_inside, __ATOMIC_SEQ_CST));
  assert_int_equal(is_inside, 1);
  __atomic_store_n(&slow_at, AT_NONE, __ATOMIC_SEQ_CST); /* for the others */
}
static void end_slow_start(start *s) {
  __atomic_store_n(&is_let_go, 1, __ATOMIC_SEQ_CST);
  assert_int_equal(pthread_join(s->thread, NULL), 0);
}

static bool is_asleep(uint32_t tid) {
  char path[64], state = 0;
  snprintf(path, sizeof path, "/proc/self/task/%u/stat", tid);
  FILE *const file = tid ? fopen(path, "r") : NULL;
  if (file && fscanf(file, "%*d (%*[^)]) %c", &state) != 1) state = 0;
  if (file) fclose(file);
  return state == 'S';
}

static uint64_t count(const char *name) {
  uint64_t calls = 0;
  prof_get_duration(name, NULL, NULL, &calls);
  return calls;
}

static int count_captures(void) {
  int found = 0;
  DIR *const entries = opendir(directory);
  assert_non_null(entries);
  for (const struct dirent *e; (e = readdir(entries)) != NULL;)
    found += strstr(e->d_name, ".prof") != NULL;
  closedir(entries);
  return found;
}

/* ---- tests ---- */

static void use_all_others(void) {
  prof_health health = {.size = sizeof health};
  prof_trace *trace = NULL;
  prof_pool *pool = NULL;
  const prof_pool_options options = {.size = sizeof options, .name = "beside a start"};
  assert_int_equal(prof_health(&health), PROF_OK);
  assert_int_equal(prof_level(), 0);
  assert_int_equal(prof_thread_set_name("beside"), PROF_OK);
  assert_int_equal(prof_mute("nobody's", NULL, 1), PROF_OK);
  assert_int_equal(prof_mute("nobody's", NULL, 0), PROF_OK);
  assert_int_equal(prof_pool_create(&options, &pool), PROF_OK);
  prof_pool_destroy(pool);
  assert_int_equal(prof_get(&trace), PROF_OK);
  prof_trace_destroy(trace);
  assert_int_equal(count("before"), 1);
  assert_int_equal(prof_clear(), PROF_OK);
  assert_int_equal(count("before"), 0);
  assert_int_equal(prof_stop(), PROF_E_NOT_RUNNING);
}

static void others_go_on(void **state) {
  (void)state;
  start slow;
  hang_guard();
  for (uint32_t at = AT_LOOK; at < AT_COUNT; at++) {
    assert_int_equal(prof_start(1), PROF_OK);
    WITH_BASE_PROFILER(PROF_HOST, "before", "start", PROF_NO_ARGS, {});
    assert_int_equal(prof_stop(), PROF_OK);
    begin_slow_start(&slow, at);
    use_all_others();
    end_slow_start(&slow);
    assert_int_equal(slow.status, PROF_OK);
    WITH_BASE_PROFILER(PROF_HOST, "after", "start", PROF_NO_ARGS, {});
    assert_int_equal(prof_stop(), PROF_OK);
    assert_int_equal(count("after"), 1);
  }
}

/* Both have another cap. The second waits, and finds that the first has begun. */
static void of_two_starts_one_records(void **state) {
  (void)state;
  start first, second;
  hang_guard();
  for (uint32_t at = AT_LOOK; at < AT_COUNT; at++) {
    const int before = count_captures();
    begin_slow_start(&first, at);
    begin_start(&second);
    WAIT_WHILE(!__atomic_load_n(&second.has_ended, __ATOMIC_SEQ_CST) &&
               !is_asleep(__atomic_load_n(&second.tid, __ATOMIC_SEQ_CST)));
    assert_int_equal(__atomic_load_n(&second.has_ended, __ATOMIC_SEQ_CST), 0);
    end_slow_start(&first);
    assert_int_equal(pthread_join(second.thread, NULL), 0);
    assert_int_equal(first.status, PROF_OK);
    assert_int_equal(second.status, PROF_E_RUNNING);
    assert_int_equal(count_captures(), before + 1);
    WITH_BASE_PROFILER(PROF_HOST, "one", "start", PROF_NO_ARGS, {});
    assert_int_equal(prof_stop(), PROF_OK);
    assert_int_equal(count("one"), 1);
  }
}

static void a_child_that_is_forked_meanwhile_is_free(void **state) {
  (void)state;
  start slow;
  int ended = 0;
  hang_guard();
  begin_slow_start(&slow, AT_MADE);
  const pid_t child = fork();
  if (child == 0) {
    hang_guard();
    const bool is_free = prof_stop() == PROF_E_NOT_RUNNING && start_to_file(next_cap()) == PROF_OK;
    WITH_BASE_PROFILER(PROF_HOST, "child", "start", PROF_NO_ARGS, {});
    _exit(is_free && prof_stop() == PROF_OK && count("child") == 1 ? 0 : 1);
  }
  assert_true(child > 0);
  assert_int_equal(waitpid(child, &ended, 0), child);
  end_slow_start(&slow);
  assert_int_equal(slow.status, PROF_OK);
  assert_int_equal(prof_stop(), PROF_OK);
  assert_int_equal(ended, 0);
}

static int descriptor_of(const char *path) {
  enum { MOST = 65536 };
  struct stat wanted, about;
  assert_int_equal(stat(path, &wanted), 0);
  for (int fd = 0; fd < MOST; fd++)
    if (fstat(fd, &about) == 0 && about.st_dev == wanted.st_dev && about.st_ino == wanted.st_ino)
      return fd;
  fail_msg("no descriptor of '%s'", path);
  return -1;
}

/* The start has begun by then. */
static void others_go_on_while_the_replaced_file_is_closed(void **state) {
  (void)state;
  start slow;
  prof_health health = {.size = sizeof health};
  prof_trace *trace = NULL;
  hang_guard();
  assert_int_equal(start_to_file(next_cap()), PROF_OK);
  assert_int_equal(prof_health(&health), PROF_OK);
  old_capture = descriptor_of(health.capture_path);
  assert_int_equal(prof_stop(), PROF_OK);
  begin_slow_start(&slow, AT_CLOSE);
  assert_int_equal(prof_level(), 1);
  WITH_BASE_PROFILER(PROF_HOST, "beside", "start", PROF_NO_ARGS, {});
  assert_int_equal(prof_health(&health), PROF_OK);
  assert_int_equal(prof_get(&trace), PROF_OK);
  prof_trace_destroy(trace);
  assert_int_equal(count("beside"), 1);
  assert_int_equal(prof_clear(), PROF_OK);
  assert_int_equal(prof_stop(), PROF_OK);
  assert_int_equal(start_to_file(next_cap()), PROF_OK);
  assert_int_equal(prof_stop(), PROF_OK);
  end_slow_start(&slow);
  assert_int_equal(slow.status, PROF_OK);
}

/* The new capture is in force, and empty. */
static void others_go_on_while_call_sites_are_written(void **state) {
  (void)state;
  start slow;
  prof_health health = {.size = sizeof health};
  prof_trace *trace = NULL;
  hang_guard();
  static prof_site sites[SITES];
  char name[64];
  assert_int_equal(start_to_file(next_cap()), PROF_OK);
  for (int i = 0; i < SITES; i++) {
    sites[i] = (prof_site){.file = "f", .function = "g", .level = 1};
    snprintf(name, sizeof name, "one of very many call sites %d", i);
    prof_scope_end(prof_scope_begin_at(&sites[i], name, "start"));
  }
  assert_int_equal(prof_stop(), PROF_OK);
  begin_slow_start(&slow, AT_SITES);
  assert_int_equal(prof_level(), 0);
  WITH_BASE_PROFILER(PROF_HOST, "too early", "start", PROF_NO_ARGS, {});
  assert_int_equal(prof_health(&health), PROF_OK);
  assert_int_equal(prof_thread_set_name("beside"), PROF_OK);
  assert_int_equal(prof_mute("one of very many call sites 1*", NULL, 1), PROF_OK);
  assert_int_equal(prof_mute("one of very many call sites 1*", NULL, 0), PROF_OK);
  assert_int_equal(prof_get(&trace), PROF_OK);
  prof_trace_destroy(trace);
  assert_int_equal(prof_clear(), PROF_OK);
  assert_int_equal(prof_stop(), PROF_E_NOT_RUNNING);
  end_slow_start(&slow);
  assert_int_equal(slow.status, PROF_OK);
  for (int i = 0; i < SITES; i++)
    prof_scope_end(prof_scope_begin_at(&sites[i], "not asked for", "start"));
  assert_int_equal(prof_stop(), PROF_OK);
  assert_int_equal(count(NULL), SITES);
  assert_int_equal(count(name), 1);
}

/* ---- a forked child's own capture, which its first scope makes ---- */

static void *record_first(void *unused) {
  (void)unused;
  WITH_BASE_PROFILER(PROF_HOST, "first", "start", PROF_NO_ARGS, {});
  return NULL;
}

static void be_slow_from_now_on(uint32_t at) {
  __atomic_store_n(&is_inside, 0, __ATOMIC_SEQ_CST);
  __atomic_store_n(&is_let_go, 0, __ATOMIC_SEQ_CST);
  __atomic_store_n(&slow_at, at, __ATOMIC_SEQ_CST);
}
/* Its thread is in the first scope's begin. */
static pthread_t begin_slow_scope(uint32_t at) {
  pthread_t thread;
  be_slow_from_now_on(at);
  assert_int_equal(pthread_create(&thread, NULL, record_first, NULL), 0);
  WAIT_WHILE(!__atomic_load_n(&is_inside, __ATOMIC_SEQ_CST));
  assert_int_equal(is_inside, 1);
  __atomic_store_n(&slow_at, AT_NONE, __ATOMIC_SEQ_CST);
  return thread;
}
static void end_slow_scope(pthread_t thread) {
  __atomic_store_n(&is_let_go, 1, __ATOMIC_SEQ_CST);
  assert_int_equal(pthread_join(thread, NULL), 0);
}

/* Recording, then in a child at each slow call. A failed assertion ends the child with a status. */
static void in_children(void (*check)(uint32_t at)) {
  int ended;
  hang_guard();
  for (uint32_t at = AT_LOOK; at < AT_COUNT; at++) {
    assert_int_equal(start_to_file(next_cap()), PROF_OK);
    WITH_BASE_PROFILER(PROF_HOST, "parent", "start", PROF_NO_ARGS, {});
    const pid_t child = fork();
    if (child == 0) {
      hang_guard();
      check(at);
      _exit(0);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_int_equal(prof_stop(), PROF_OK);
    assert_int_equal(ended, 0);
  }
}
#define REQUIRE(condition)                                          \
  do {                                                              \
    if (condition) break;                                           \
    fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
    _exit(1);                                                       \
  } while (0)

static void use_all_in_child(uint32_t at) {
  prof_health health = {.size = sizeof health};
  prof_memory_max max = {.size = sizeof max};
  prof_trace *trace = NULL;
  prof_pool *pool = NULL;
  const prof_pool_options options = {.size = sizeof options, .name = "beside a scope"};
  const pthread_t thread = begin_slow_scope(at);
  WITH_BASE_PROFILER(PROF_HOST, "beside", "start", PROF_NO_ARGS, {});
  REQUIRE(prof_health(&health) == PROF_OK);
  REQUIRE(prof_level() == 1);
  REQUIRE(prof_thread_set_name("beside") == PROF_OK);
  REQUIRE(prof_process_set_name("child") == PROF_OK);
  REQUIRE(prof_mute("nobody's", NULL, 1) == PROF_OK);
  REQUIRE(prof_mute("nobody's", NULL, 0) == PROF_OK);
  REQUIRE(prof_pool_create(&options, &pool) == PROF_OK);
  prof_pool_destroy(pool);
  REQUIRE(prof_memory_max_get(PROF_HOST, PROF_MEMORY_ANY, &max) == PROF_E_NOT_FOUND);
  REQUIRE(prof_memory_reset() == PROF_OK);
  REQUIRE(prof_get(&trace) == PROF_E_NOT_RUNNING);
  REQUIRE(prof_clear() == PROF_OK);
  end_slow_scope(thread);
  WITH_BASE_PROFILER(PROF_HOST, "second", "start", PROF_NO_ARGS, {});
  REQUIRE(count("second") == 1 && count("parent") == 0);
  REQUIRE(prof_stop() == PROF_OK);
}
static void a_childs_first_scope_holds_nobody_up(void **state) {
  (void)state;
  in_children(use_all_in_child);
}

/* The pending start is cancelled, and its file is removed. */
static void stop_in_child(uint32_t at) {
  const int before = count_captures();
  const pthread_t thread = begin_slow_scope(at);
  REQUIRE(prof_stop() == PROF_E_NOT_RUNNING);
  end_slow_scope(thread);
  REQUIRE(prof_level() == 0);
  REQUIRE(count_captures() == before);
  REQUIRE(prof_start(1) == PROF_OK);
  WITH_BASE_PROFILER(PROF_HOST, "after", "start", PROF_NO_ARGS, {});
  REQUIRE(count("after") == 1);
  REQUIRE(prof_stop() == PROF_OK);
}
static void a_stop_ends_what_a_childs_first_scope_would_begin(void **state) {
  (void)state;
  in_children(stop_in_child);
}

/* A start of a child waits for the capture that a first scope makes, and joins it. */
static void start_in_child(uint32_t at) {
  start other = {.cap_bytes = 0};
  const pthread_t thread = begin_slow_scope(at);
  begin_start(&other);
  WAIT_WHILE(!__atomic_load_n(&other.has_ended, __ATOMIC_SEQ_CST) &&
             !is_asleep(__atomic_load_n(&other.tid, __ATOMIC_SEQ_CST)));
  REQUIRE(__atomic_load_n(&other.has_ended, __ATOMIC_SEQ_CST) == 0);
  end_slow_scope(thread);
  REQUIRE(pthread_join(other.thread, NULL) == 0);
  REQUIRE(other.status == PROF_E_RUNNING);
  WITH_BASE_PROFILER(PROF_HOST, "second", "start", PROF_NO_ARGS, {});
  REQUIRE(count("second") == 1);
}
static void a_start_waits_for_a_childs_first_scope(void **state) {
  (void)state;
  in_children(start_in_child);
}

static int make_directory(void **state) {
  (void)state;
  if (!mkdtemp(directory)) return -1;
  snprintf(output, sizeof output, "%s/trace.json", directory);
  return 0;
}
static int remove_directory(void **state) {
  (void)state;
  char command[64];
  snprintf(command, sizeof command, "rm -rf '%s'", directory);
  return system(command); /* NOLINT(cert-env33-c): a directory of this test's */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(others_go_on),
      cmocka_unit_test(of_two_starts_one_records),
      cmocka_unit_test(a_child_that_is_forked_meanwhile_is_free),
      cmocka_unit_test(others_go_on_while_the_replaced_file_is_closed),
      cmocka_unit_test(others_go_on_while_call_sites_are_written),
      cmocka_unit_test(a_childs_first_scope_holds_nobody_up),
      cmocka_unit_test(a_stop_ends_what_a_childs_first_scope_would_begin),
      cmocka_unit_test(a_start_waits_for_a_childs_first_scope),
  };
  return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
