/* What a forked child's first scope, or allocation event, may do. It makes the child's capture. It
   may run in a handler that has interrupted malloc(), or in an allocator under its own lock.
   Another thread of the parent may have held a lock of libc at the fork. So it allocates nothing,
   reads no directory, takes no lock, starts no thread and needs little stack. This program defines
   the functions that would do so, and counts their calls. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <prof/memory.h>
#include <prof/profiler.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "../hang_guard.h"
#include "api/sanitizers.h"
#include "fault/support/skip.h"

#if defined(__GLIBC__) && !SKIP_SANITIZED

enum { ROOM = 256, STACK_BYTES = 1 << 18, STACK_MAX_BYTES = 4096, PAINT = 0xa5 };

static char folder[] = "/tmp/prof-child-start-XXXXXX";
static char output[sizeof folder + 16];
static prof_pool *pool;

/* ---- functions that count, of the whole process ---- */

static struct {
  int is_armed; /* atomic */
  int count;    /* atomic: calls while it is armed */
  const char *first;
} calls;

static void count_call(const char *name) {
  if (!__atomic_load_n(&calls.is_armed, __ATOMIC_RELAXED)) return;
  if (__atomic_fetch_add(&calls.count, 1, __ATOMIC_RELAXED) == 0) calls.first = name;
}

extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *at, size_t bytes);
extern void __libc_free(void *at);

static void (*inside_malloc)(void); /* once: called as if malloc() held its lock */

void *malloc(size_t bytes) {
  count_call("malloc");
  void (*const inside)(void) = inside_malloc;
  inside_malloc = NULL;
  if (inside) inside();
  return __libc_malloc(bytes);
}
void *calloc(size_t count, size_t bytes) {
  count_call("calloc");
  return __libc_calloc(count, bytes);
}
void *realloc(void *at, size_t bytes) {
  count_call("realloc");
  return __libc_realloc(at, bytes);
}
void free(void *at) {
  count_call("free");
  __libc_free(at);
}

#define REAL(name) ((__typeof__(&name))(uintptr_t)dlsym(RTLD_NEXT, #name))

DIR *opendir(const char *path) {
  count_call("opendir");
  return REAL(opendir)(path);
}
int pthread_create(pthread_t *restrict thread, const pthread_attr_t *restrict how,
                   void *(*run)(void *), void *restrict with) {
  count_call("pthread_create");
  return REAL(pthread_create)(thread, how, run, with);
}
char *secure_getenv(const char *name) {
  count_call("secure_getenv");
  return getenv(name);
}
char *strerror(int error) { /* takes the lock of the locale's catalogues */
  count_call("strerror");
  return REAL(strerror)(error);
}
/* The child's own file alone, which nobody else knows. */
int flock(int fd, int operation) {
  struct stat about;
  if (fstat(fd, &about) != 0 || !S_ISREG(about.st_mode)) count_call("flock of a directory");
  return (int)syscall(SYS_flock, fd, operation);
}

/* ---- in the child ---- */

static void events(void) {
  WITH_BASE_PROFILER(PROF_HOST, "scope", "child", PROF_ARGS("number", 1, "text", "some"), {});
  PROF_INSTANT("instant", "child", PROF_ARGS("half", 0.5));
  prof_memory_alloc(pool, (void *)(uintptr_t)4096, 100, 128);
  prof_memory_free(pool, (void *)(uintptr_t)4096, 128);
}

static void only_memory(void) {
  prof_memory_alloc(pool, (void *)(uintptr_t)4096, 100, 128);
  prof_memory_free(pool, (void *)(uintptr_t)4096, 128);
}

/* Says what it was, and ends the child. */
static _Noreturn void end_counted(void (*what)(void), uint64_t recorded) {
  hang_guard();
  __atomic_store_n(&calls.is_armed, 1, __ATOMIC_RELAXED);
  what();
  __atomic_store_n(&calls.is_armed, 0, __ATOMIC_RELAXED);
  if (calls.count) {
    const char *const name = calls.first;
    if (write(2, name, strlen(name)) > 0 && write(2, " was called\n", 12) > 0) _exit(2);
    _exit(3);
  }
  prof_health health = {.size = sizeof health};
  if (prof_health_get(&health) != PROF_OK || health.recorded_count != recorded ||
      health.helper_thread)
    _exit(4);
  _exit(0);
}

static void wait_for_success(pid_t child) {
  int status = -1;
  assert_true(child > 0);
  assert_int_equal(waitpid(child, &status, 0), child);
  if (status) fail_msg("the child ended with %x", (unsigned)status);
}

static void begin(const char *path, uint32_t with_helper) {
  const prof_options options = {.size = sizeof options,
                                .level = 1,
                                .path = path,
                                .cap_bytes = 4 << 20,
                                .helper_thread = with_helper};
  if (prof_start_with(&options) != PROF_OK) fail_msg("prof_start_with: %s", prof_last_error());
  assert_int_equal(prof_memory_start(), PROF_OK);
  WITH_BASE_PROFILER(PROF_HOST, "scope", "parent", PROF_NO_ARGS, {});
}

enum { EVENTS = 4, ONLY_MEMORY = 2 };

static void a_first_event_calls_nothing_that_allocates_or_locks(void **state) {
  (void)state;
  for (int in_memory = 0; in_memory < 2; in_memory++) {
    for (uint32_t with_helper = 0; with_helper < 2; with_helper++) {
      begin(in_memory ? NULL : output, with_helper);
      pid_t child = fork();
      if (child == 0) end_counted(events, EVENTS);
      wait_for_success(child);
      child = fork();
      if (child == 0) end_counted(only_memory, ONLY_MEMORY);
      wait_for_success(child);
      assert_int_equal(prof_stop(), PROF_OK);
    }
  }
}

/* Nowhere is room for a capture, or the output's directory is gone: the reasons are put together,
   and nothing is recorded. */
static void a_first_event_that_gets_no_capture_calls_nothing_of_the_sort_either(void **state) {
  (void)state;
  char command[ROOM], inside[ROOM];
  snprintf(inside, sizeof inside, "%s/gone/trace.json", folder);
  for (int is_gone = 0; is_gone < 2; is_gone++) {
    snprintf(command, sizeof command, "mkdir '%s/gone'", folder);
    assert_int_equal(system(command), 0);
    begin(inside, 0);
    snprintf(command, sizeof command, "rm -rf '%s/gone'", folder);
    if (is_gone) assert_int_equal(system(command), 0);
    const pid_t child = fork();
    if (child == 0) {
      if (!is_gone && setrlimit(RLIMIT_FSIZE, &(const struct rlimit){4096, 4096}) != 0) _exit(5);
      end_counted(events, 0);
    }
    wait_for_success(child);
    assert_int_equal(prof_stop(), PROF_OK);
    assert_int_equal(system(command), 0);
  }
}

/* In a child: exits with 0 if each call says that the child has no capture, and why. */
static void check_what_is_said(void) {
  prof_health health = {.size = sizeof health};
  char *text = NULL;
  size_t bytes = 0;
  WITH_BASE_PROFILER(PROF_HOST, "scope", "child", PROF_NO_ARGS, {});
  if (prof_get_json(&text, &bytes) != PROF_E_NOT_RUNNING) _exit(1);
  if (!strstr(prof_last_error(), "no such file or directory: '/")) _exit(2);
  if (prof_health_get(&health) != PROF_OK) _exit(3);
  if (!strstr(health.reason, "no such file or directory: '/")) _exit(4);
  const prof_options in_memory = {.size = sizeof in_memory, .level = 1, .cap_bytes = 4 << 20};
  if (prof_start_with(&in_memory) != PROF_OK) _exit(5);
  if (prof_health_get(&health) != PROF_OK || health.reason[0]) _exit(6);
  _exit(0);
}

static void a_child_that_gets_no_capture_says_why(void **state) {
  (void)state;
  char folder_of_its_own[ROOM / 2], inside[ROOM];
  snprintf(folder_of_its_own, sizeof folder_of_its_own, "%s/gone", folder);
  snprintf(inside, sizeof inside, "%s/trace.json", folder_of_its_own);
  for (int is_bare = 0; is_bare < 2; is_bare++) {
    assert_int_equal(mkdir(folder_of_its_own, 0700), 0);
    begin(inside, 0);
    char command[ROOM + 16];
    snprintf(command, sizeof command, "rm -rf '%s'", folder_of_its_own);
    assert_int_equal(system(command), 0);
    const pid_t child = is_bare ? (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) : fork();
    if (child == 0) check_what_is_said();
    wait_for_success(child);
    assert_int_equal(prof_stop(), PROF_OK);
  }
}

static void check_that_descriptors_are_said(void) {
  prof_health health = {.size = sizeof health};
  WITH_BASE_PROFILER(PROF_HOST, "scope", "child", PROF_NO_ARGS, {});
  if (prof_health_get(&health) != PROF_OK) _exit(1);
  if (!strstr(health.reason, "Too many open files: '")) _exit(2);
  if (strstr(health.reason, "out of memory")) _exit(3);
  if (prof_start(1) != PROF_E_IO) _exit(4);
  _exit(0);
}

static void a_child_without_descriptors_says_so(void **state) {
  (void)state;
  for (int in_memory = 0; in_memory < 2; in_memory++) {
    begin(in_memory ? NULL : output, 0);
    const pid_t child = fork();
    if (child == 0) {
      if (setrlimit(RLIMIT_NOFILE, &(const struct rlimit){3, 3}) != 0) _exit(5);
      check_that_descriptors_are_said();
    }
    wait_for_success(child);
    assert_int_equal(prof_stop(), PROF_OK);
  }
}

static pid_t (*fork_there)(void);
static pid_t forked;
static pid_t bare_fork(void) { return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0); }
static void fork_inside(void) {
  forked = fork_there();
  if (forked == 0) end_counted(events, EVENTS);
}

/* As of another thread, which has malloc()'s lock for ever. */
static void a_child_that_was_forked_inside_of_malloc_records(void **state) {
  (void)state;
  pid_t (*const ways[])(void) = {fork, bare_fork};
  for (size_t i = 0; i < 2; i++) {
    begin(output, 0);
    fork_there = ways[i];
    inside_malloc = fork_inside;
    void *volatile piece = malloc(1);
    free(piece);
    wait_for_success(forked);
    assert_int_equal(prof_stop(), PROF_OK);
  }
}

/* ---- stack ---- */

static struct {
  unsigned char *stack;
  char *top; /* where what is measured begins */
  void (*what)(void);
} measured;

static __attribute__((noinline)) void measure_here(void) {
  measured.top = __builtin_frame_address(0);
  measured.what();
}
static void on_signal(int number) {
  (void)number;
  measure_here();
}

/* In bytes, on a signal stack. */
static size_t stack_taken_by(void (*what)(void)) {
  if (!measured.stack)
    measured.stack =
        mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memset(measured.stack, PAINT, STACK_BYTES);
  measured.what = what;
  sigaltstack(&(const stack_t){.ss_sp = measured.stack, .ss_size = STACK_BYTES}, NULL);
  sigaction(SIGUSR1, &(const struct sigaction){.sa_handler = on_signal, .sa_flags = SA_ONSTACK},
            NULL);
  raise(SIGUSR1);
  size_t at = 0;
  while (measured.stack[at] == PAINT) at++;
  return (size_t)((unsigned char *)measured.top - (measured.stack + at));
}

static void many_events(void) {
  for (int i = 0; i < 20000; i++) events();
}

static int check_stack(const char *name, void (*what)(void)) {
  const size_t bytes = stack_taken_by(what);
  if (bytes < STACK_MAX_BYTES) return 0;
  char line[ROOM];
  const int length = snprintf(line, sizeof line, "%s takes %zu bytes of stack\n", name, bytes);
  return write(2, line, (size_t)length) == length ? 1 : 2;
}

static void every_event_does_with_4_KiB_of_stack(void **state) {
  (void)state;
  for (int in_memory = 0; in_memory < 2; in_memory++) {
    begin(in_memory ? NULL : output, 0);
    const pid_t child = fork();
    if (child == 0) {
      int failed = check_stack("a child's first scope", events);
      failed |= check_stack("a scope", events);
      _exit(failed | check_stack("what fills chunks", many_events));
    }
    wait_for_success(child);
    assert_int_equal(prof_stop(), PROF_OK);
  }
}

static void start(void) { prof_start(1); }
static void start_with_a_path(void) {
  prof_start_with(&(const prof_options){.size = sizeof(prof_options), .level = 1, .path = output});
}

static void a_start_does_with_4_KiB_of_stack(void **state) {
  (void)state;
  if (WITH_ASAN || WITH_TSAN) skip();            /* their frames are larger */
  assert_int_equal(prof_start(7), PROF_E_LEVEL); /* the dynamic linker has found the calls */
  assert_int_equal(prof_start_with(&(const prof_options){.size = 1}), PROF_E_INVALID);
  void (*const starts[])(void) = {start, start_with_a_path};
  for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
    const pid_t child = fork();
    if (child == 0) _exit(check_stack(i ? "a start with a path" : "a start", starts[i]));
    wait_for_success(child);
  }
}

/* A page behind it may not be touched. 8 KiB is SIGSTKSZ; a frame with AVX-512 takes 3.5 KiB of
   it. */
static void a_childs_first_scope_does_with_a_signal_stack_of_8_KiB(void **state) {
  (void)state;
  enum { PAGE = 4096, ROOM_BYTES = 8192 };
  if (sysconf(_SC_MINSIGSTKSZ) > ROOM_BYTES - STACK_MAX_BYTES) skip(); /* AMX */
  begin(output, 0);
  const pid_t child = fork();
  if (child == 0) {
    char *const at = mmap(NULL, PAGE + ROOM_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED || mprotect(at + PAGE, ROOM_BYTES, PROT_READ | PROT_WRITE) != 0) _exit(2);
    measured.what = events;
    sigaltstack(&(const stack_t){.ss_sp = at + PAGE, .ss_size = ROOM_BYTES}, NULL);
    sigaction(SIGUSR1, &(const struct sigaction){.sa_handler = on_signal, .sa_flags = SA_ONSTACK},
              NULL);
    raise(SIGUSR1);
    prof_health health = {.size = sizeof health};
    _exit(prof_health_get(&health) == PROF_OK && health.recorded_count == EVENTS ? 0 : 3);
  }
  wait_for_success(child);
  assert_int_equal(prof_stop(), PROF_OK);
}

static int make_folder(void **state) {
  (void)state;
  if (!mkdtemp(folder)) return -1;
  snprintf(output, sizeof output, "%s/trace.json", folder);
  return prof_pool_create(
      &(const prof_pool_options){.size = sizeof(prof_pool_options), .name = "pool"}, &pool);
}
static int remove_folder(void **state) {
  char command[ROOM];
  (void)state;
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  return system(command);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_first_event_calls_nothing_that_allocates_or_locks),
      cmocka_unit_test(a_first_event_that_gets_no_capture_calls_nothing_of_the_sort_either),
      cmocka_unit_test(a_child_that_gets_no_capture_says_why),
      cmocka_unit_test(a_child_without_descriptors_says_so),
      cmocka_unit_test(a_child_that_was_forked_inside_of_malloc_records),
      cmocka_unit_test(every_event_does_with_4_KiB_of_stack),
      cmocka_unit_test(a_start_does_with_4_KiB_of_stack),
      cmocka_unit_test(a_childs_first_scope_does_with_a_signal_stack_of_8_KiB),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

#else
int main(void) {
  printf("skip: malloc() is the test's own here, by names of glibc's; a sanitizer has its own\n");
  return 77;
}
#endif
