/* How prof finds what the program has loaded: by the name that the loader knows it by, and in a way
   that a fork does not mind. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <prof/profiler.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "alone.h"
#include "api/sanitizers.h"
#include "cupti_program.h"
#include "hang_guard.h"
#include "wall_clock.h"

static void begin(void) {}

/* ---- a walk of what is loaded that takes its time ---- */

#if WITH_ASAN || WITH_TSAN
static void a_fork_gives_up_on_one_who_looks_for_ever(void **state) {
  (void)state;
  puts("skip: a sanitizer walks what is loaded before a function of the program's may be called");
  skip();
}
static void a_forks_child_can_load_libraries(void **state) {
  (void)state;
  puts("skip: a sanitizer walks what is loaded before a function of the program's may be called");
  skip();
}
#else
enum { FORKS = 20, WALK_MS = 15 };

static struct {
  uint32_t is_slow, walks; /* atomic: prof's thread walks, slowly if the test requests it */
  uint32_t is_held;        /* atomic: it does not come to an end */
} own;

static void nap_ms(long ms) {
  const struct timespec time = {ms / 1000, ms % 1000 * 1000000};
  nanosleep(&time, NULL);
}

typedef struct walk {
  int (*visit)(struct dl_phdr_info *info, size_t bytes, void *user);
  void *user;
  bool has_rested;
} walk;

static int rest_once(struct dl_phdr_info *info, size_t bytes, void *user) {
  walk *const it = user;
  if (!it->has_rested && __atomic_load_n(&own.is_slow, __ATOMIC_RELAXED)) {
    __atomic_fetch_add(&own.walks, 1, __ATOMIC_RELAXED);
    nap_ms(WALK_MS);
    while (__atomic_load_n(&own.is_held, __ATOMIC_ACQUIRE)) nap_ms(1);
  }
  it->has_rested = true;
  return it->visit(info, bytes, it->user);
}

/* The one that prof calls is this program's. */
int dl_iterate_phdr(int (*visit)(struct dl_phdr_info *info, size_t bytes, void *user), void *user) {
  int (*real)(int (*)(struct dl_phdr_info *, size_t, void *), void *);
  walk it = {visit, user, false};
  *(void **)&real = dlsym(RTLD_NEXT, "dl_iterate_phdr");
  return real(rest_once, &it);
}

static void wait_for_a_walk(void) {
  const uint32_t walks = __atomic_load_n(&own.walks, __ATOMIC_RELAXED);
  WAIT_WHILE(__atomic_load_n(&own.walks, __ATOMIC_RELAXED) == walks);
  assert_int_not_equal(__atomic_load_n(&own.walks, __ATOMIC_RELAXED), walks);
}

/* HIP is awaited all the while, so prof looks at what is loaded. A fork in the middle of that
   leaves glibc's child a list that is locked for ever. */
static void a_forks_child_can_load_libraries(void **state) {
  (void)state;
  char path[512];
  snprintf(path, sizeof path, "%s/nothing.so", getenv("PROF_TEST_PLUGIN_DIR"));
  begin_recording(1);
  __atomic_store_n(&own.is_slow, 1, __ATOMIC_RELAXED);
  for (int i = 0; i < FORKS; i++) {
    int status = -1;
    wait_for_a_walk();
    const pid_t child = fork();
    if (child == 0) {
      hang_guard();
      _exit(dlopen(path, RTLD_NOW) == NULL);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (status != 0)
      fail_msg("fork %d: %s", i,
               WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM ? "the child hangs in dlopen()"
                                                                  : "the child has not loaded it");
  }
  __atomic_store_n(&own.is_slow, 0, __ATOMIC_RELAXED);
  assert_int_equal(prof_stop(), PROF_OK);
}

/* It waits for a second, also where the wall clock is set back meanwhile, and goes on while the
   walk does; prof looks on after it. The child has the walk's lock, which is glibc's matter, and
   loads nothing. */
static void a_fork_gives_up_on_one_who_looks_for_ever(void **state) {
  (void)state;
  int status = -1;
  hang_guard();
  begin_recording(1);
  __atomic_store_n(&own.is_held, 1, __ATOMIC_RELEASE);
  __atomic_store_n(&own.is_slow, 1, __ATOMIC_RELAXED);
  wait_for_a_walk();
  __atomic_store_n(&wall_clock_will_be_set, 1, __ATOMIC_RELAXED);
  const pid_t child = fork();
  if (child == 0) _exit(0);
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  const uint32_t walks = __atomic_load_n(&own.walks, __ATOMIC_RELAXED);
  nap_ms(50);
  /* it is held all the while: nobody else looks */
  assert_int_equal(__atomic_load_n(&own.walks, __ATOMIC_RELAXED), walks);
  __atomic_store_n(&own.is_held, 0, __ATOMIC_RELEASE);
  wait_for_a_walk();
  __atomic_store_n(&own.is_slow, 0, __ATOMIC_RELAXED);
  assert_int_equal(prof_stop(), PROF_OK);
}

#endif

/* ---- names ---- */

static void copy_file(const char *from, const char *to) {
  char command[1200];
  snprintf(command, sizeof command, "cp '%s' '%s'", from, to);
  /* NOLINTNEXTLINE(cert-env33-c,concurrency-mt-unsafe): the paths are the test's */
  assert_int_equal(system(command), 0);
}

/* Programs have the driver by a file of another name: an interposer's, or a copy. The loader knows
   it by the name that it was linked with, and so does prof. */
static void a_driver_in_a_file_of_another_name(void **state) {
  (void)state;
  char from[512], folder[] = "/tmp/prof-loader-XXXXXX", to[64];
  assert_non_null(mkdtemp(folder));
  snprintf(from, sizeof from, "%s/vendors/libcuda.so.1", getenv("PROF_TEST_PLUGIN_DIR"));
  snprintf(to, sizeof to, "%s/gpu-driver", folder);
  copy_file(from, to);
  load_from(to);
  unlink(to);
  rmdir(folder);
  void *const stream = begin_recording(1), *const kernel = cu.emulated_cuda_kernel("k", KERNEL_NS);
  for (int i = 0; i < COUNT; i++) launch(kernel, stream);
  settle(COUNT);
  prof_trace *const trace = stop_and_get();
  assert_int_equal(find(trace, "k", "kernel").count, COUNT);
  prof_trace_destroy(trace);
}

#define TESTS(X)                               \
  X(a_forks_child_can_load_libraries)          \
  X(a_fork_gives_up_on_one_who_looks_for_ever) \
  X(a_driver_in_a_file_of_another_name)
ALONE_TESTS

int main(int argc, char **argv) { return alone_main(argc, argv); }
