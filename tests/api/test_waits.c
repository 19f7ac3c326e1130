/* No public call waits for another that takes long. The long ones stop inside of their long step: a
   call of the kernel's that this program stands in front of. While one stands still there, all
   others must return. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <prof/memory.h>
#include <prof/profiler.h>
#include <prof/trace.h>
#include <pthread.h>
#include <semaphore.h>
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

#include "hang_guard.h"
#include "sanitizers.h"

enum { SCOPES = 400000, CHUNK_BYTES = 1 << 20 };

/* AT_SHOW and AT_DROP: the same as AT_COPY and AT_PUNCH, of chunks in private memory. AT_FREE: the
   memory of a capture goes that has been replaced. */
typedef enum pause_at {
  NOWHERE,
  AT_PIN,
  AT_COPY,
  AT_SHOW,
  AT_WALK,
  AT_PUNCH,
  AT_DROP,
  AT_UNMAP,
  AT_FREE,
  AT_WRITE
} pause_at;

static __thread pause_at armed; /* of the thread that is to stand still, once */
static sem_t stands, may_go_on;

static bool raises; /* instead of standing still */

static void stand_still(pause_at here) {
  if (armed != here) return;
  armed = NOWHERE;
  if (raises) { /* where the call holds signals, the handler comes when it releases them */
    raise(SIGUSR1);
    return;
  }
  sem_post(&stands);
  while (sem_wait(&may_go_on) != 0) {
  }
}

/* ---- in front of the kernel's calls ---- */

void *mremap(void *from, size_t from_bytes, size_t to_bytes, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  void *const to = flags & MREMAP_FIXED ? va_arg(rest, void *) : NULL;
  va_end(rest);
  if (from_bytes == 0 && to_bytes <= CHUNK_BYTES) stand_still(AT_COPY);
  if (from_bytes == 0 && to_bytes > CHUNK_BYTES) stand_still(AT_PIN);
  void *(*const next)(void *, size_t, size_t, int, ...) =
      (void *(*)(void *, size_t, size_t, int, ...))dlsym(RTLD_NEXT, "mremap");
  return flags & MREMAP_FIXED ? next(from, from_bytes, to_bytes, flags, to)
                              : next(from, from_bytes, to_bytes, flags);
}

int mincore(void *at, size_t bytes, unsigned char *present) {
  int (*const next)(void *, size_t, unsigned char *) =
      (int (*)(void *, size_t, unsigned char *))dlsym(RTLD_NEXT, "mincore");
  stand_still(AT_WALK);
  return next(at, bytes, present);
}

int madvise(void *at, size_t bytes, int advice) {
  int (*const next)(void *, size_t, int) =
      (int (*)(void *, size_t, int))dlsym(RTLD_NEXT, "madvise");
  if (advice == MADV_REMOVE) stand_still(AT_PUNCH);
  if (advice == MADV_DONTNEED) stand_still(AT_DROP);
  if (advice == MADV_KEEPONFORK) stand_still(AT_SHOW);
  return next(at, bytes, advice);
}

/* After a piece of the arena is gone. The first large one of an arena in memory is its mirror. */
int munmap(void *at, size_t bytes) {
  enum { BLOCK_BYTES = 2 << 20 };
  static __thread bool is_second;
  int (*const next)(void *, size_t) = (int (*)(void *, size_t))dlsym(RTLD_NEXT, "munmap");
  const int result = next(at, bytes);
  if (armed == AT_FREE && bytes >= BLOCK_BYTES && prof_level()) stand_still(AT_FREE);
  if (armed != AT_UNMAP || bytes < BLOCK_BYTES) return result;
  if (is_second) stand_still(AT_UNMAP);
  is_second = true;
  return result;
}

ssize_t write(int fd, const void *bytes, size_t count) {
  ssize_t (*const next)(int, const void *, size_t) =
      (ssize_t(*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
  if (fd > STDERR_FILENO) stand_still(AT_WRITE);
  return next(fd, bytes, count);
}

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t offset) {
  ssize_t (*const next)(int, const void *, size_t, off_t) =
      (ssize_t(*)(int, const void *, size_t, off_t))dlsym(RTLD_NEXT, "pwrite");
  stand_still(AT_WRITE);
  return next(fd, bytes, count, offset);
}

/* ---- the long call ---- */

typedef struct long_call {
  pause_at at;
  int (*call)(struct long_call *self);
  int status;
  prof_trace *trace; /* given, or made */
  prof_health health;
  pthread_t thread;
} long_call;

static void *run_long(void *arg) {
  long_call *const self = arg;
  armed = self->at;
  self->status = self->call(self);
  armed = NOWHERE;
  return NULL;
}

static const char *what_runs = "nothing";

static void hangs(int signal_number) {
  (void)signal_number;
  static const char text[] = "waits for a call that stands still: ";
  if (write(STDERR_FILENO, text, sizeof text - 1) < 0 ||
      write(STDERR_FILENO, what_runs, strlen(what_runs)) < 0)
    _exit(2);
  _exit(1);
}

static void begin(long_call *one) {
  assert_int_equal(pthread_create(&one->thread, NULL, run_long, one), 0);
  while (sem_wait(&stands) != 0) {
  }
  signal(SIGALRM, hangs);
  hang_guard();
}

static void finish(long_call *one) {
  what_runs = "the long call itself";
  sem_post(&may_go_on);
  pthread_join(one->thread, NULL);
  alarm(0);
  if (one->status != PROF_OK) fail_msg("the long call: %d", one->status);
}

static int call_get(long_call *self) { return prof_get(&self->trace); }
static int call_clear(long_call *self) { return (void)self, prof_clear(); }
static int call_dump(long_call *self) { return (void)self, prof_dump(NULL); }
static int call_destroy(long_call *self) { return prof_trace_destroy(self->trace), PROF_OK; }
static int call_health(long_call *self) {
  self->health.size = sizeof self->health;
  return prof_health_get(&self->health);
}

/* ---- all others ---- */

static void record(int count) {
  for (int i = 0; i < count; i++) WITH_BASE_PROFILER(PROF_HOST, "waits", "test", PROF_NO_ARGS, {});
}

static void start(uint64_t cap_bytes) {
  const prof_options options = {
      .size = sizeof options, .policy = PROF_POLICY_KEEP, .cap_bytes = cap_bytes};
  if (prof_start_with(&options) != PROF_OK) fail_msg("prof_start_with: %s", prof_last_error());
}

static prof_trace *get(void) {
  prof_trace *trace = NULL;
  if (prof_get(&trace) != PROF_OK) fail_msg("prof_get: %s", prof_last_error());
  return trace;
}

static prof_trace_info info_of(const prof_trace *trace) {
  prof_trace_info info = {.size = sizeof info};
  assert_int_equal(prof_trace_info_get(trace, &info), PROF_OK);
  assert_int_equal(info.bad_count, 0);
  return info;
}

static void *one_scope(void *unused) {
  record(1);
  return unused;
}

#define RUN(...) (what_runs = #__VA_ARGS__, __VA_ARGS__)

static void run_names_and_pools(void) {
  prof_pool *pool = NULL;
  prof_memory_max max = {.size = sizeof max};
  pthread_t thread;
  assert_int_equal(
      RUN(prof_pool_create(&(prof_pool_options){.size = sizeof(prof_pool_options), .name = "pool"},
                           &pool)),
      PROF_OK);
  RUN(prof_memory_max_get(PROF_HOST, PROF_MEMORY_ANY, &max));
  RUN(prof_pool_destroy(pool));
  assert_int_equal(RUN(prof_mute("nobody", NULL, 1)), PROF_OK);
  assert_int_equal(RUN(prof_mute("nobody", NULL, 0)), PROF_OK);
  RUN(prof_thread_set_name("main"));
  assert_int_equal(RUN(prof_process_set_name("waits")), PROF_OK);
  assert_int_equal(RUN(prof_track_set_name((prof_device){2, 0}, 1, "stream")), PROF_OK);
  assert_int_equal(RUN(prof_rank_set(0, 1)), PROF_OK);
  assert_int_equal(RUN(pthread_create(&thread, NULL, one_scope, NULL)), 0);
  assert_int_equal(RUN(pthread_join(thread, NULL)), 0);
}

static void run_readers_and_levels(void) {
  prof_health health = {.size = sizeof health};
  assert_int_equal(RUN(prof_level_want(&health, 2)), PROF_OK);
  assert_int_equal(RUN(prof_level_want(&health, 0)), PROF_OK);
  assert_int_equal(RUN(prof_start(1)), PROF_OK);
  assert_int_equal(RUN(prof_health_get(&health)), PROF_OK);
  prof_trace *const trace = RUN(get());
  info_of(trace);
  RUN(prof_trace_destroy(trace));
  const pid_t child = RUN(fork());
  assert_true(child >= 0);
  if (child == 0) { /* goes on alone, whatever its parent's other threads are doing */
    record(10);
    prof_health own = {.size = sizeof own};
    _exit(prof_health_get(&own) == PROF_OK && own.recorded_count == 10 ? 0 : 1);
  }
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
}

static void run_all(void) {
  run_names_and_pools();
  run_readers_and_levels();
}

/* ---- tests ---- */

static int set_up(void **state) {
  static uint64_t units;
  (void)state;
  start((256 << 20) + (++units << 14)); /* another size: another capture */
  record(SCOPES);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  prof_stop();
  return 0;
}

static void take_a_trace(pause_at at) {
  long_call one = {.at = at, .call = call_get};
  begin(&one);
  run_all();
  finish(&one);
  assert_int_equal(info_of(one.trace).scope_count, SCOPES);
  prof_trace_destroy(one.trace);
}
static void nobody_waits_for_a_trace_that_is_being_taken(void **state) {
  (void)state;
  take_a_trace(AT_COPY);
}
static void nobody_waits_for_a_trace_that_is_being_taken_in_place(void **state) {
  (void)state;
  take_a_trace(AT_SHOW);
}

static void nobody_waits_for_health_that_is_being_counted(void **state) {
  (void)state;
  long_call one = {.at = AT_WALK, .call = call_health};
  begin(&one);
  run_all();
  assert_int_equal(RUN(prof_clear()), PROF_OK);
  assert_int_equal(RUN(prof_stop()), PROF_OK);
  RUN(start(64 << 20));
  finish(&one);
  assert_int_equal(one.health.recorded_count, SCOPES);
}

static void clear(pause_at at) {
  long_call one = {.at = at, .call = call_clear};
  begin(&one);
  run_all();
  finish(&one);
  prof_health health = {.size = sizeof health};
  assert_int_equal(prof_health_get(&health), PROF_OK);
  /* another thread's, which came after the clear's begin */
  assert_int_equal(health.recorded_count, 1);
  assert_int_equal(health.lost_count[PROF_LOSS_CLEARED], SCOPES);
}
static void nobody_waits_for_a_clear(void **state) {
  (void)state;
  clear(AT_PUNCH);
}
static void nobody_waits_for_a_clear_of_private_memory(void **state) {
  (void)state;
  clear(AT_DROP);
}

/* What is read while a clear is at it is as it was after the clear's begin, to the last byte. */
static void a_trace_taken_beside_a_clear_is_whole(void **state) {
  (void)state;
  long_call one = {.at = AT_PUNCH, .call = call_clear};
  begin(&one);
  record(1000);
  prof_trace *const trace = RUN(get());
  finish(&one);
  const prof_trace_info info = info_of(trace);
  assert_int_equal(info.scope_count, 1000);
  assert_int_equal(info.lost_count[PROF_LOSS_CLEARED], SCOPES);
  prof_trace_destroy(trace);
}

static void clear_beside_a_trace(pause_at at, uint64_t cap_bytes) {
  const int trip_scopes = (int)(cap_bytes / 16 / 4);
  assert_int_equal(prof_stop(), PROF_OK);
  start(cap_bytes);
  record(SCOPES);
  long_call one = {.at = at, .call = call_get};
  begin(&one);
  assert_int_equal(RUN(prof_clear()), PROF_OK);
  record(1000);
  finish(&one);
  const prof_trace_info info = info_of(one.trace);
  assert_int_equal(info.scope_count, 1000);
  assert_int_equal(info.lost_count[PROF_LOSS_CLEARED], SCOPES);
  prof_trace_destroy(one.trace);
  for (int i = 0; i < 8; i++) { /* twice the cap: all that was kept for the reader is back */
    record(trip_scopes);
    assert_int_equal(prof_clear(), PROF_OK);
  }
  prof_health health = {.size = sizeof health};
  assert_int_equal(prof_health_get(&health), PROF_OK);
  assert_int_equal(health.lost_count[PROF_LOSS_FULL], 0);
}
static void a_clear_beside_a_trace_that_is_being_taken_is_before_it(void **state) {
  (void)state;
  clear_beside_a_trace(AT_COPY, 33 << 20);
}
static void a_clear_beside_a_trace_that_is_being_taken_in_place_is_before_it(void **state) {
  (void)state;
  clear_beside_a_trace(AT_SHOW, 34 << 20);
}

static void start_beside_a_trace(pause_at at) {
  long_call one = {.at = at, .call = call_get};
  begin(&one);
  assert_int_equal(RUN(prof_stop()), PROF_OK);
  RUN(start(128 << 20));
  record(1000);
  finish(&one);
  assert_int_equal(info_of(one.trace).scope_count, SCOPES);
  prof_trace_destroy(one.trace);
  prof_trace *const later = get();
  assert_int_equal(info_of(later).scope_count, 1000);
  prof_trace_destroy(later);
}

static void a_start_beside_a_trace_that_is_being_taken_leaves_it_as_it_was(void **state) {
  (void)state;
  start_beside_a_trace(AT_COPY);
}
static void a_start_beside_a_trace_that_is_being_taken_in_place_leaves_it_as_it_was(void **state) {
  (void)state;
  start_beside_a_trace(AT_SHOW);
}

static int call_start(long_call *self) {
  const prof_options options = {
      .size = sizeof options, .policy = PROF_POLICY_KEEP, .cap_bytes = 48 << 20};
  return (void)self, prof_start_with(&options);
}

/* A fork does not wait for that for long. The child has neither the old capture nor the new. */
static void a_fork_beside_a_start_that_unmaps_has_no_part_of_either(void **state) {
  int ends[2], status = -1;
  char byte = 0;
  (void)state;
  assert_int_equal(prof_stop(), PROF_OK);
  assert_int_equal(pipe(ends), 0);
  long_call one = {.at = AT_UNMAP, .call = call_start};
  begin(&one);
  fflush(NULL);
  const pid_t child = RUN(fork());
  if (child == 0) {
    for (int i = 0; i < 32; i++) signal(i, SIG_DFL); /* a crash is a crash */
    hang_guard();
    record(1);
    const bool is_off = prof_level() == 0;
    const bool has_waited = read(ends[0], &byte, 1) == 1; /* the parent records again */
    record(1);
    _exit(is_off && has_waited && prof_level() == 0 ? 0 : 1);
  }
  finish(&one);
  assert_int_equal(prof_level(), 1);
  assert_int_equal(write(ends[1], &byte, 1), 1);
  assert_int_equal(waitpid(child, &status, 0), child);
  close(ends[0]);
  close(ends[1]);
  assert_int_equal(status, 0);
  prof_trace *const trace = get();
  assert_int_equal(info_of(trace).scope_count, 0);
  prof_trace_destroy(trace);
}

/* The memory of 1.5 GiB of scopes takes the kernel half a second. */
static void nobody_waits_for_a_start_that_replaces_a_capture(void **state) {
  (void)state;
  assert_int_equal(prof_stop(), PROF_OK);
  long_call one = {.at = AT_FREE, .call = call_start};
  begin(&one);
  run_all();
  finish(&one);
}

/* A clear that is at it when the capture is replaced has nothing more to do. */
static void a_start_beside_a_clear_has_its_own_capture(void **state) {
  (void)state;
  long_call one = {.at = AT_PUNCH, .call = call_clear};
  begin(&one);
  assert_int_equal(RUN(prof_stop()), PROF_OK);
  run_names_and_pools();
  finish(&one);
  start(128 << 20);
  record(1000);
  prof_trace *const later = get();
  assert_int_equal(info_of(later).scope_count, 1000);
  prof_trace_destroy(later);
}

static void nobody_waits_for_room_that_comes_back(void **state) {
  (void)state;
  long_call one = {.at = AT_PUNCH, .call = call_destroy, .trace = get()};
  assert_int_equal(prof_clear(), PROF_OK);
  begin(&one);
  run_all();
  finish(&one);
}

/* ---- exit() in a handler ---- */

/* Which call, and where its thread is when the signal comes. Under the lock: AT_PIN. */
static const struct {
  pause_at at;
  int (*call)(long_call *self);
} interrupted[] = {{AT_PIN, call_get},     {AT_COPY, call_get},    {AT_PIN, call_health},
                   {AT_WALK, call_health}, {AT_PUNCH, call_clear}, {AT_WRITE, call_dump}};

static void exit_at_once(int signal_number) { exit(signal_number == SIGUSR1 ? 0 : 1); }

/* Another process of this program, whose environment asks for a trace at its end. */
static int be_interrupted(size_t which) {
  signal(SIGUSR1, exit_at_once);
  hang_guard();
  raises = true;
  record(SCOPES);
  long_call one = {.at = interrupted[which].at, .call = interrupted[which].call};
  run_long(&one);
  fputs("no signal came\n", stderr);
  return 3;
}

static void remove_folder(const char *folder) {
  char command[128];
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  assert_int_equal(system(command), 0);
}

static void exit_ends_in_a_handler_that_interrupted_a_call(void **state) {
  (void)state;
  char folder[] = "/tmp/prof-waits-XXXXXX", output[64];
  assert_non_null(mkdtemp(folder));
  snprintf(output, sizeof output, "%s/trace.json", folder);
  for (size_t i = 0; i < sizeof interrupted / sizeof *interrupted; i++) {
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
      char which[8];
      snprintf(which, sizeof which, "%zu", i);
      setenv("PROF_LEVEL", "1", 1);
      setenv("PROF_OUTPUT", output, 1);
      execl("/proc/self/exe", "waits", which, (char *)NULL);
      _exit(2);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (status) fail_msg("call %zu: wait status %d", i, status);
  }
  remove_folder(folder);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(int argc, char **argv) {
  if (argc > 1) return be_interrupted(strtoul(argv[1], NULL, 10));
  const struct CMUnitTest tests[] = {
      CASE(nobody_waits_for_a_trace_that_is_being_taken),
      CASE(nobody_waits_for_a_trace_that_is_being_taken_in_place),
      CASE(nobody_waits_for_health_that_is_being_counted),
      CASE(nobody_waits_for_a_clear),
      CASE(nobody_waits_for_a_clear_of_private_memory),
      CASE(a_trace_taken_beside_a_clear_is_whole),
      CASE(a_clear_beside_a_trace_that_is_being_taken_is_before_it),
      CASE(a_clear_beside_a_trace_that_is_being_taken_in_place_is_before_it),
      CASE(a_start_beside_a_trace_that_is_being_taken_leaves_it_as_it_was),
      CASE(a_start_beside_a_trace_that_is_being_taken_in_place_leaves_it_as_it_was),
      CASE(a_fork_beside_a_start_that_unmaps_has_no_part_of_either),
      CASE(nobody_waits_for_a_start_that_replaces_a_capture),
      CASE(a_start_beside_a_clear_has_its_own_capture),
      CASE(nobody_waits_for_room_that_comes_back),
      cmocka_unit_test(exit_ends_in_a_handler_that_interrupted_a_call),
  };
  sem_init(&stands, 0, 0);
  sem_init(&may_go_on, 0, 0);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
