/* A host with a floating point environment and an errno of its own. A host that traps is not ended
   by what prof computes. A host that rounds in another way gets the same texts. Each finds its
   environment as it left it. */
#define _GNU_SOURCE
#include <errno.h>
#include <fenv.h>
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <prof/memory.h>
#include <prof/profiler.h>
#include <prof/trace.h>

enum { VALUES = 200, TEXTS = 4 };

static const double values[] = {0.1,      1e300, 5e-324, DBL_MAX, -1e17, 18446744073709551616.0,
                                INFINITY, NAN};
static const char capture_path[] = "floating.prof";

static void record(void) {
  prof_pool *pool = NULL;
  const prof_pool_options options = {.size = sizeof options, .name = "pool"};
  if (prof_pool_create(&options, &pool) != PROF_OK) _exit(2);
  for (size_t i = 0; i < VALUES; i++) {
    const double value = values[i % (sizeof values / sizeof *values)];
    PROF_COUNTER("counter", value);
    WITH_BASE_PROFILER(PROF_HOST, "scope", "x", PROF_ARGS("value", value, "i", (int)i), {
      WITH_BASE_PROFILER(PROF_HOST, "format", "x", PROF_FMT("%f %.3f %g", value, value, value), {});
    });
    prof_memory_alloc(pool, &values[i % 8], 1000 + i, 1024);
    if (i % 3) prof_memory_free(pool, &values[i % 8], 1024);
  }
}

/* What is read from the capture; the environment is the host's. The texts are the caller's. */
static int read_texts(char *texts[TEXTS]) {
  prof_trace *trace = NULL;
  prof_memory *memory = NULL;
  size_t bytes = 0;
  if (prof_trace_open(capture_path, &trace) != PROF_OK) return 1;
  if (prof_trace_json(trace, NULL, &texts[0], &bytes) != PROF_OK ||
      prof_trace_table(trace, NULL, &texts[1]) != PROF_OK)
    return 2;
  if (prof_memory_read(trace, &memory) != PROF_OK ||
      prof_memory_text(memory, NULL, &texts[2]) != PROF_OK)
    return 3;
  if (prof_memory_svg(memory, 0, &texts[3]) != PROF_OK) return 4;
  prof_memory_destroy(memory);
  prof_trace_destroy(trace);
  return 0;
}

#if defined(__GLIBC__)
/* Each public call that computes, in a process in which that traps. */
static int live(int traps) {
  char *texts[TEXTS], *json = NULL;
  size_t bytes = 0;
  uint64_t ns = 0, count = 0;
  prof_health health = {.size = sizeof health};
  feenableexcept(traps);
  if (prof_start(1) != PROF_OK) return 10;
  record();
  if (prof_health(&health) != PROF_OK || prof_get_json(&json, &bytes) != PROF_OK) return 11;
  prof_free(json);
  if (prof_get_duration("scope", NULL, &ns, &count) != PROF_OK || count != VALUES) return 12;
  if (prof_stop() != PROF_OK || prof_dump("floating.json") != PROF_OK ||
      prof_dump(capture_path) != PROF_OK)
    return 13;
  const int result = read_texts(texts);
  if (fegetexcept() != traps) return 14;
  return result;
}

static void a_host_that_traps_is_not_ended(void **state) {
  (void)state;
  static const int each[] = {FE_INVALID,   FE_DIVBYZERO, FE_OVERFLOW,
                             FE_UNDERFLOW, FE_INEXACT,   FE_ALL_EXCEPT};
  if (feenableexcept(FE_INVALID) == -1 || fegetexcept() != FE_INVALID) {
    print_message("skip: this processor traps nothing\n");
    skip();
  }
  fedisableexcept(FE_ALL_EXCEPT);
  for (size_t i = 0; i < sizeof each / sizeof *each; i++) {
    int status = 0;
    const pid_t child = fork();
    if (child == 0) _exit(live(each[i]));
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status)) fail_msg("trap %#x: signal %d", (unsigned)each[i], WTERMSIG(status));
    assert_int_equal(WEXITSTATUS(status), 0);
  }
}
#endif

/* Denormals are zero, as -ffast-math sets it for a whole program. */
static void flush_denormals(void) {
#if defined(__x86_64__)
  const uint32_t flushing = 0x9fc0;
  __asm__ __volatile__("ldmxcsr %0" ::"m"(flushing));
#elif defined(__aarch64__)
  const uint64_t flushing = 1u << 24;
  __asm__ __volatile__("msr fpcr, %0" ::"r"(flushing));
#endif
}

static void texts_are_the_same_however_the_host_rounds(void **state) {
  (void)state;
  static const int modes[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
  enum { MODES = sizeof modes / sizeof *modes };
  char *texts[TEXTS], *again[TEXTS];
  assert_int_equal(prof_start(1), PROF_OK);
  record();
  assert_int_equal(prof_stop(), PROF_OK);
  assert_int_equal(prof_dump(capture_path), PROF_OK);
  assert_int_equal(read_texts(texts), 0);
  for (size_t m = 1; m <= MODES; m++) {
    if (m < MODES)
      fesetround(modes[m]);
    else
      flush_denormals();
    const int result = read_texts(again), mode = fegetround();
    fesetenv(FE_DFL_ENV);
    assert_int_equal(result, 0);
    assert_int_equal(mode, m < MODES ? modes[m] : FE_TONEAREST);
    for (size_t i = 0; i < TEXTS; i++) {
      if (strcmp(texts[i], again[i]) != 0) fail_msg("text %zu is another one in mode %zu", i, m);
      prof_free(again[i]);
    }
  }
  for (size_t i = 0; i < TEXTS; i++) prof_free(texts[i]);
}

/* Of calls that succeed, too: they may have looked for files that are not there. */
static void errno_stays(void **state) {
  (void)state;
  enum { OF_HOST = 77 };
  char *text = NULL;
  size_t bytes = 0;
  prof_health health = {.size = sizeof health};
  errno = OF_HOST;
  assert_int_equal(prof_start(1), PROF_OK);
  record();
  assert_int_equal(prof_health(&health), PROF_OK);
  assert_int_equal(prof_get_json(&text, &bytes), PROF_OK);
  assert_int_equal(prof_stop(), PROF_OK);
  assert_int_equal(prof_dump("floating.json"), PROF_OK);
  assert_int_equal(prof_dump(capture_path), PROF_OK);
  assert_int_equal(prof_clear(), PROF_OK);
  assert_int_equal(errno, OF_HOST);
  prof_free(text);
}

static int leave(void **state) {
  (void)state;
  remove(capture_path);
  remove("floating.json");
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
#if defined(__GLIBC__)
    cmocka_unit_test(a_host_that_traps_is_not_ended),
#endif
    cmocka_unit_test(errno_stays),
    cmocka_unit_test(texts_are_the_same_however_the_host_rounds),
  };
  return cmocka_run_group_tests_name("floating", tests, NULL, leave);
}
