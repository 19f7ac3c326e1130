/* Memory, and what happens to a process: no memory left, kill -9, fork, a handler at any moment. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "memory_checks.h"

static char folder[] = "/tmp/prof-memory-XXXXXX";

static void expect_text(const char *path, const char *wanted) {
  char text[8192] = "";
  FILE *const file = fopen(path, "r");
  if (!file) fail_msg("there is no %s", path);
  text[fread(text, 1, sizeof text - 1, file)] = '\0';
  fclose(file);
  if (!strstr(text, wanted)) fail_msg("%s does not say '%s', but:\n%s", path, wanted, text);
}

static void out_of_memory_says_who_has_it(void **state) {
  (void)state;
  char output[128], text[128];
  snprintf(output, sizeof output, "%s/trace.json", folder);
  snprintf(text, sizeof text, "%s/trace.oom.txt", folder);
  prof_stop();
  OK(prof_start_with(&(prof_options){.size = sizeof(prof_options), .path = output}));
  assert_int_equal(prof_memory_oom(PROF_HOST, 1), PROF_E_NOT_FOUND);
  prof_pool *const pool = make_pool("tensors");
  prof_memory_reserve(pool, AT(0x100000), 0x10000);
  {
    PROF_SCOPE("attention");
    for (uint64_t i = 0; i < 16; i++) prof_memory_alloc(pool, AT(0x100000 + i * 0x1000), 0x1000, 0);
  }
  for (uint64_t i = 0; i < 16; i += 2) prof_memory_free(pool, AT(0x100000 + i * 0x1000), 0x1000);
  OK(prof_memory_oom(PROF_HOST, 0x2000));
  expect_text(text, "out of memory: 8192 bytes of device cpu:0");
  expect_text(text, "used 32768 bytes, allocated 65536");
  expect_text(text,
              "free in the blocks 32768 bytes, in one stretch at most 4096, fragmentation 87.5 %");
  expect_text(text, "it would have fitted, were what is free in one stretch");
  expect_text(text, "32768 bytes in        8 pieces  attention");
  OK(prof_memory_oom(PROF_HOST, 0x20000));
  snprintf(text, sizeof text, "%s/trace.oom-2.txt", folder);
  expect_text(text, "it would not have fitted");
  for (int i = 0; i < 10; i++) OK(prof_memory_oom(PROF_HOST, 16));
  snprintf(text, sizeof text, "%s/trace.oom-9.txt", folder);
  assert_int_not_equal(access(text, F_OK), 0); /* at most 8 */
  OK(prof_stop());
  assert_int_equal(info_now("tensors").oom_count, 12);
  assert_int_equal(prof_memory_oom(PROF_HOST, 1), PROF_E_NOT_RUNNING);
  OK(prof_dump(NULL));
  prof_pool_destroy(pool);
}

static void killed_between_alloc_and_free(void **state) {
  (void)state;
  char output[128], capture[600] = "";
  snprintf(output, sizeof output, "%s/killed.json", folder);
  int ends[2];
  assert_int_equal(pipe(ends), 0);
  prof_stop();
  const pid_t child = fork();
  if (child == 0) {
    prof_pool *pool = NULL;
    prof_health health = {.size = sizeof health};
    if (prof_start_with(&(prof_options){.size = sizeof(prof_options), .path = output}) != PROF_OK ||
        prof_pool_create(NULL, &pool) != PROF_OK)
      _exit(1);
    for (uint64_t i = 0; i < 1000; i++) {
      prof_memory_alloc(pool, AT(0x10000 + i * 64), 60, 64);
      if (i % 2) prof_memory_free(pool, AT(0x10000 + i * 64), 64);
    }
    prof_memory_alloc(pool, AT(0x900000), 1 << 20, 0);
    prof_memory_free(pool, AT(0x900000), 1 << 20);
    if (prof_health_get(&health) != PROF_OK ||
        write(ends[1], health.capture_path, sizeof health.capture_path) < 0)
      _exit(1);
    kill(getpid(), SIGKILL);
  }
  int how;
  close(ends[1]);
  assert_true(read(ends[0], capture, sizeof capture) > 0);
  close(ends[0]);
  assert_int_equal(waitpid(child, &how, 0), child);
  assert_true(WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL);
  prof_memory_info info = {.size = sizeof info};
  seen s = {NULL, NULL};
  OK(prof_trace_open(capture, &s.trace));
  OK(prof_memory_read(s.trace, &s.memory));
  OK(prof_memory_pool_get(s.memory, 0, &info));
  assert_int_equal(info.peak_used.used_bytes, 500 * 64 + (1 << 20));
  assert_int_equal(info.peak_used.live_count, 501);
  assert_int_equal(info.end.live_count, 500);
  assert_int_equal(info.end.requested_bytes, 500 * 60);
  assert_int_equal(info.missing_count, 0);
  look_away(&s);
  unlink(capture);
}

static void a_forked_child_goes_on_from_what_its_parent_had(void **state) {
  (void)state;
  start_afresh(4 << 20);
  prof_pool *const pool = make_pool("forked");
  prof_memory_alloc(pool, AT(0x1000), 4096, 0);
  const pid_t child = fork();
  if (child == 0) {
    prof_memory_info info = {.size = sizeof info};
    seen s = {NULL, NULL};
    prof_memory_alloc(pool, AT(0x9000), 100, 0);
    prof_memory_free(pool, AT(0x1000), 4096);
    const int is_read = prof_get(&s.trace) == PROF_OK &&
                        prof_memory_read(s.trace, &s.memory) == PROF_OK &&
                        prof_memory_pool_get(s.memory, 0, &info) == PROF_OK;
    if (!is_read) _exit(1);
    if (info.has_baseline != 1 || info.used_before_bytes != 4096) _exit(2);
    if (info.peak_used.used_bytes != 4196 || info.end.used_bytes != 100) _exit(3);
    if (info.from_before_count != 1 || info.end.live_count != 1 || info.missing_count != 0)
      _exit(4);
    _exit(0);
  }
  int how;
  assert_int_equal(waitpid(child, &how, 0), child);
  assert_true(WIFEXITED(how));
  assert_int_equal(WEXITSTATUS(how), 0);
  OK(prof_stop());
  const prof_memory_info info = info_now("forked"); /* the child's are not in it */
  assert_int_equal(info.alloc_count, 1);
  assert_int_equal(info.free_count, 0);
  prof_pool_destroy(pool);
}

static prof_pool *handler_pool;
static volatile uint64_t handled;
/* Rings again 100 us after it has ended: under valgrind it takes longer than that. */
static void ring_soon(void) {
  const struct itimerval soon = {.it_value = {0, 100}};
  setitimer(ITIMER_REAL, &soon, NULL);
}

static void on_alarm(int signal_number) {
  (void)signal_number;
  const uint64_t turn = handled++;
  prof_memory_alloc(handler_pool, AT(UINT64_C(0x500000000000) + turn % 64 * 64), 64, 0);
  prof_memory_free(handler_pool, AT(UINT64_C(0x500000000000) + turn % 64 * 64), 64);
  ring_soon();
}

static void a_handler_may_come_at_any_moment(void **state) {
  (void)state;
  start_afresh(128 << 20);
  handler_pool = make_pool("handler");
  handled = 0;
  struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART}, before;
  assert_int_equal(sigaction(SIGALRM, &action, &before), 0);
  const struct itimerval never = {{0, 0}, {0, 0}};
  ring_soon();
  uint64_t pairs = 0;
  for (; pairs < 600000 && handled < 3000; pairs++) {
    prof_memory_alloc(handler_pool, AT(0x10000 + pairs % 100 * 64), 64, 0);
    prof_memory_free(handler_pool, AT(0x10000 + pairs % 100 * 64), 64);
  }
  /* first: a handler that is due rings again */
  const struct sigaction no_more = {.sa_handler = SIG_IGN};
  sigaction(SIGALRM, &no_more, NULL);
  setitimer(ITIMER_REAL, &never, NULL);
  sigaction(SIGALRM, &before, NULL);
  OK(prof_stop());
  seen s = see();
  prof_trace_info about = {.size = sizeof about};
  OK(prof_trace_info_get(s.trace, &about));
  const prof_memory_info info = info_of(&s, "handler");
  look_away(&s);
  assert_true(handled > 0);
  /* a handler that comes while its thread is just getting its slot */
  assert_int_equal(info.missing_count, about.lost_count[PROF_LOSS_NO_THREAD]);
  assert_true(info.missing_count <= 4);
  assert_int_equal(info.alloc_count + info.free_count + info.missing_count, 2 * (pairs + handled));
  assert_int_equal(info.end.used_bytes, 0);
  assert_true(info.end.live_count <= info.missing_count);
  for (int i = 0; i < PROF_MEMORY_WRONG_COUNT && !info.missing_count; i++)
    assert_int_equal(info.wrong_count[i], 0);
  prof_pool_destroy(handler_pool);
}

/* ---- a handler that interrupts prof_memory_oom() ---- */

static volatile sig_atomic_t runs, refused;

static void call_prof(int signal_number) {
  prof_trace *trace = NULL;
  prof_memory_max max = {.size = sizeof max};
  const int statuses[] = {prof_get(&trace), prof_clear(), prof_memory_oom(PROF_HOST, 1),
                          prof_memory_max_get(PROF_HOST, PROF_MEMORY_POOL, &max)};
  (void)signal_number;
  runs++;
  for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
    refused += statuses[i] == PROF_E_BUSY;
}

#if defined(__GLIBC__)
static ssize_t interrupt_write(void *cookie, const char *bytes, size_t count) {
  (void)cookie, (void)bytes;
  raise(SIGUSR1);
  return (ssize_t)count;
}

static int say_to_a_stream_that_interrupts(void) {
  const prof_options options = {.size = sizeof options, .cap_bytes = 4 << 20};
  const cookie_io_functions_t calls = {.write = interrupt_write};
  const struct sigaction action = {.sa_handler = call_prof};
  prof_pool *pool = NULL;
  FILE *const stream = fopencookie(NULL, "w", calls);
  if (!stream || prof_start_with(&options) != PROF_OK || prof_pool_create(NULL, &pool) != PROF_OK)
    return 1;
  setvbuf(stream, NULL, _IONBF, 0);
  stderr = stream;
  if (sigaction(SIGUSR1, &action, NULL) != 0) return 1;
  if (prof_memory_oom(PROF_HOST, 4096) != PROF_OK || prof_clear() != PROF_OK) return 2;
  if (prof_stop() != PROF_OK) return 3;
  return runs > 0 && refused == 4 * runs ? 0 : 4;
}
#endif

static void calls_of_a_handler_that_interrupts_oom_are_refused(void **state) {
  (void)state;
#if !defined(__GLIBC__)
  skip(); /* without fopencookie() */
#else
  prof_stop();
  const pid_t child = fork();
  if (child == 0) _exit(say_to_a_stream_that_interrupts());
  int status = -1;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
#endif
}

int main(void) {
  if (!mkdtemp(folder)) return perror(folder), 1;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(out_of_memory_says_who_has_it),
      cmocka_unit_test(killed_between_alloc_and_free),
      cmocka_unit_test(a_forked_child_goes_on_from_what_its_parent_had),
      cmocka_unit_test(a_handler_may_come_at_any_moment),
      cmocka_unit_test(calls_of_a_handler_that_interrupts_oom_are_refused)};
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  char command[64];
  snprintf(command, sizeof command, "rm -rf %s", folder);
  return system(command) == 0 ? failed : 1;
}
