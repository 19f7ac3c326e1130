/* Reading while others record: the own arena through prof_get(), and the file of a process that
   runs, stops or dies. Every scope that a snapshot shows as ended is whole, with all that it
   held. */
#define _GNU_SOURCE
#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <prof/profiler.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "hang_guard.h"
#include "trace_checks.h"

#if defined(__SANITIZE_THREAD__)
enum { THREADS = 3, SNAPSHOTS = 4, STEP = 200, CHILD_OUTERS = 300 };
#else
enum { THREADS = 3, SNAPSHOTS = 10, STEP = 1500, CHILD_OUTERS = 2000 };
#endif

static void spin(unsigned turns) {
  for (volatile unsigned i = 0; i < turns; i++) {
  }
}

static void one_outer(unsigned i) {
  PROF_SCOPE("outer");
  for (int inner = 0; inner < 2; inner++) {
    char name[32];
    snprintf(name, sizeof name, "inner %u", i % 5);
    WITH_BASE_PROFILER(PROF_HOST, name, "inner", PROF_ARGS("i", i, "text", "some text"),
                       { spin(i % 50); });
  }
}

/* Records until told to stop. *done counts the outer scopes that have ended. */
typedef struct worker {
  pthread_t thread;
  uint64_t done;
  uint32_t stop;
  unsigned pause; /* turns between two outer scopes */
} worker;

static void *work(void *argument) {
  worker *const w = argument;
  for (unsigned i = 0; !__atomic_load_n(&w->stop, __ATOMIC_RELAXED); i++) {
    one_outer(i);
    spin(w->pause);
    __atomic_store_n(&w->done, w->done + 1, __ATOMIC_RELEASE);
  }
  return NULL;
}

static uint64_t done_by_all(worker *workers) {
  uint64_t sum = 0;
  for (int i = 0; i < THREADS; i++) sum += __atomic_load_n(&workers[i].done, __ATOMIC_ACQUIRE);
  return sum;
}

static void check_inner(const prof_event *outer, const prof_event *inner) {
  assert_int_equal(inner->thread, outer->thread);
  assert_true(inner->name_bytes == 7 && memcmp(inner->name, "inner ", 6) == 0);
  assert_int_equal(inner->depth, outer->depth + 1);
  assert_int_equal(inner->arg_count, 2);
  assert_int_equal(inner->args[0].value.u64 % 5, (uint64_t)(inner->name[6] - '0'));
  assert_true(inner->start_ns >= outer->start_ns &&
              inner->start_ns + inner->duration_ns <= outer->start_ns + outer->duration_ns);
}

/* The arena was full: also a thread that came too late for a slot says so, before anyone else has
   lost a scope. */
static bool is_full(const prof_trace_info *info) {
  return info->lost_count[PROF_LOSS_FULL] > 0 || info->lost_count[PROF_LOSS_NO_THREAD] > 0;
}

/* Each outer scope that had ended holds its two inner ones. But a ring may have evicted those of a
   thread's first. The last may lack them if it was open when the arena became full. Returns the
   outer ones. */
static uint64_t check_events(const prof_trace *trace, bool is_ring) {
  static prof_event outer, event;
  const prof_trace_info info = info_of(trace);
  assert_int_equal(info.bad_count, 0);
  prof_cursor *cursor = NULL;
  uint64_t count = 0, outer_count = 0;
  uint32_t thread = UINT32_MAX;
  int missing = 0; /* inner ones of the last outer */
  assert_int_equal(prof_cursor_create(trace, &cursor), PROF_OK);
  while (prof_cursor_next(cursor, &event) == 1) {
    count++;
    const bool is_first = event.thread != thread;
    if (is_full(&info) && (is_first || event.kind == PROF_EVENT_OPEN)) missing = 0;
    thread = event.thread;
    if (is_named(&event, "outer") && event.kind == PROF_EVENT_SCOPE) {
      assert_int_equal(missing, 0);
      outer = event;
      outer_count++;
      missing = is_ring && is_first ? 0 : 2;
    } else if (missing) {
      check_inner(&outer, &event);
      missing--;
    }
  }
  assert_true(missing == 0 || is_full(&info));
  assert_int_equal(count, info.event_count);
  prof_cursor_destroy(cursor);
  return outer_count;
}

static void record_and_read(prof_options options, bool is_ring, unsigned pause) {
  options.size = sizeof options;
  assert_int_equal(prof_start_with(&options), PROF_OK);
  assert_int_equal(prof_clear(), PROF_OK);
  worker workers[THREADS];
  memset(workers, 0, sizeof workers);
  for (int i = 0; i < THREADS; i++) workers[i].pause = pause;
  for (int i = 0; i < THREADS; i++)
    assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
  for (int i = 0; i < SNAPSHOTS; i++) {
    prof_trace *trace = NULL;
    WAIT_WHILE(done_by_all(workers) < (uint64_t)i * STEP);
    assert_true(done_by_all(workers) >= (uint64_t)i * STEP);
    const uint64_t before = done_by_all(workers);
    assert_int_equal(prof_get(&trace), PROF_OK);
    const uint64_t after = done_by_all(workers);
    const uint64_t outer = check_events(trace, is_ring);
    const prof_trace_info info = info_of(trace);
    assert_int_equal(info.is_live, 1);
    if (!is_ring && !is_full(&info)) assert_in_range(outer, before, after + THREADS);
    prof_trace_destroy(trace);
  }
  for (int i = 0; i < THREADS; i++) __atomic_store_n(&workers[i].stop, 1, __ATOMIC_RELAXED);
  for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
  assert_int_equal(prof_stop(), PROF_OK);
  prof_trace *trace = NULL;
  assert_int_equal(prof_get(&trace), PROF_OK);
  check_events(trace, is_ring);
  const prof_trace_info info = info_of(trace);
  uint64_t lost = 0;
  for (int i = 0; i < PROF_LOSS_COUNT; i++) lost += info.lost_count[i];
  assert_int_equal(info.open_count, 0);
  assert_int_equal(info.lost_count[PROF_LOSS_UNFINISHED], 0);
  assert_int_equal(info.scope_count + lost - info.lost_count[PROF_LOSS_CLEARED],
                   3 * done_by_all(workers));
  prof_trace_destroy(trace);
}

static void snapshots_of_the_own_arena_are_whole(void **state) {
  (void)state;
  record_and_read((prof_options){.level = 1, .policy = PROF_POLICY_KEEP, .cap_bytes = 64 << 20},
                  false, 20000);
}

static void snapshots_of_a_full_arena_are_whole(void **state) {
  (void)state;
  record_and_read((prof_options){.level = 1, .policy = PROF_POLICY_KEEP, .cap_bytes = 2 << 20},
                  false, 500);
}

static void snapshots_of_a_ring_are_whole(void **state) {
  (void)state;
  record_and_read((prof_options){.level = 1, .policy = PROF_POLICY_RING, .cap_bytes = 2 << 20},
                  true, 500);
}

/* ---- another process's file ---- */

static char folder[PATH_MAX];

static int make_folder(void **state) {
  (void)state;
  const char *const base = getenv("TMPDIR");
  snprintf(folder, sizeof folder, "%s/prof-live-XXXXXX", base ? base : "/tmp");
  return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state) {
  (void)state;
  char pattern[PATH_MAX + 8];
  glob_t found;
  snprintf(pattern, sizeof pattern, "%s/*", folder);
  if (glob(pattern, 0, NULL, &found) == 0) {
    for (size_t i = 0; i < found.gl_pathc; i++) unlink(found.gl_pathv[i]);
    globfree(&found);
  }
  return rmdir(folder);
}

/* The child records until it is killed, counting its outer scopes in a page that both see. */
static void be_the_child(uint64_t *done) {
  char path[PATH_MAX + 16];
  snprintf(path, sizeof path, "%s/trace.json", folder);
  const prof_options options = {.size = sizeof options, .level = 1, .path = path};
  if (prof_start_with(&options) != PROF_OK) _exit(3);
  for (unsigned i = 0;; i++) {
    one_outer(i);
    __atomic_store_n(done, i + 1, __ATOMIC_RELEASE);
    spin(20000); /* or there would be too much to read again and again */
  }
}

static bool find_capture(const char *output, char *path_out, size_t room) {
  char pattern[PATH_MAX + 32];
  glob_t found;
  bool is_found = false;
  snprintf(pattern, sizeof pattern, "%s/%s*.prof", folder, output);
  if (glob(pattern, 0, NULL, &found) != 0) return false;
  if (found.gl_pathc == 1) is_found = snprintf(path_out, room, "%s", found.gl_pathv[0]) > 0;
  globfree(&found);
  return is_found;
}

static void the_file_of_another_process_is_read_while_it_runs_and_after_its_death(void **state) {
  (void)state;
  uint64_t *const done =
      mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  assert_true(done != MAP_FAILED);
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) be_the_child(done);
  int status;
  WAIT_WHILE(__atomic_load_n(done, __ATOMIC_ACQUIRE) < CHILD_OUTERS &&
             waitpid(child, &status, WNOHANG) == 0);
  assert_true(__atomic_load_n(done, __ATOMIC_ACQUIRE) >= CHILD_OUTERS);
  char path[PATH_MAX];
  if (!find_capture("trace", path, sizeof path)) {
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    munmap(done, 4096);
    print_message("skip: %s takes no capture files\n", folder);
    skip();
  }
  for (int i = 0; i < 10; i++) {
    prof_trace *trace = NULL;
    const uint64_t before = __atomic_load_n(done, __ATOMIC_ACQUIRE);
    assert_int_equal(prof_trace_open(path, &trace), PROF_OK);
    const uint64_t after = __atomic_load_n(done, __ATOMIC_ACQUIRE);
    assert_int_equal(info_of(trace).is_live, 1);
    assert_int_equal(info_of(trace).was_clean, 0);
    assert_int_equal(info_of(trace).pid, child);
    assert_in_range(check_events(trace, false), before, after + 1);
    prof_trace_destroy(trace);
  }
  assert_int_equal(kill(child, SIGKILL), 0);
  siginfo_t ended;
  /* dead, and not reclaimed: that is not alive */
  assert_int_equal(waitid(P_PID, (id_t)child, &ended, WEXITED | WNOWAIT), 0);
  prof_trace *trace = NULL;
  assert_int_equal(prof_trace_open(path, &trace), PROF_OK);
  assert_int_equal(info_of(trace).is_live, 0);
  assert_int_equal(info_of(trace).was_clean, 0);
  assert_in_range(check_events(trace, false), *done, *done + 1);
  prof_trace_destroy(trace);
  assert_int_equal(waitpid(child, NULL, 0), child);
  munmap(done, 4096);
}

/* ---- open scopes ---- */

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* A process that hangs in a scope, after others that have ended. It has said so in a page that both
   see. */
typedef struct stuck {
  uint32_t *is_stuck;
  pid_t child;
  char path[PATH_MAX];
} stuck;

static void hang(uint32_t *is_stuck, prof_options options) {
  char path[PATH_MAX + 16];
  prctl(PR_SET_PDEATHSIG, SIGKILL); /* where the test fails */
  snprintf(path, sizeof path, "%s/stuck.json", folder);
  options.size = sizeof options;
  options.level = 1;
  options.path = path;
  if (prof_start_with(&options) != PROF_OK) _exit(3);
  one_outer(0);
  PROF_SCOPE("stuck");
  __atomic_store_n(is_stuck, 1, __ATOMIC_RELEASE);
  for (;;) pause();
}

static void begin_stuck(stuck *s, prof_options options) {
  s->is_stuck = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  assert_true(s->is_stuck != MAP_FAILED);
  s->child = fork();
  assert_true(s->child >= 0);
  if (s->child == 0) hang(s->is_stuck, options);
  for (unsigned naps = 0; !__atomic_load_n(s->is_stuck, __ATOMIC_ACQUIRE);) {
    assert_int_equal(waitpid(s->child, NULL, WNOHANG), 0);
    assert_true(hang_nap(&naps));
  }
}

static void end_stuck(stuck *s) {
  if (s->child) {
    kill(s->child, SIGKILL);
    waitpid(s->child, NULL, 0);
  }
  munmap(s->is_stuck, 4096);
  if (*s->path) unlink(s->path);
}

static void begin_stuck_with_a_file(stuck *s, prof_options options) {
  *s = (stuck){.child = 0};
  begin_stuck(s, options);
  if (find_capture("stuck", s->path, sizeof s->path)) return;
  end_stuck(s);
  print_message("skip: %s takes no capture files\n", folder);
  skip();
}

/* By CLOCK_MONOTONIC. The trace ends there as well. */
static uint64_t end_of_stuck(const prof_trace *trace) {
  const events all = read_events(trace);
  const prof_event *const event = find_event(&all, "stuck");
  const uint64_t end_ns = event->start_ns + event->duration_ns;
  assert_int_equal(event->kind, PROF_EVENT_OPEN);
  free(all.items);
  assert_int_equal(end_ns, info_of(trace).duration_ns);
  return info_of(trace).start_ns + end_ns;
}

static uint64_t end_of_stuck_in(const char *path) {
  prof_trace *trace = NULL;
  assert_int_equal(prof_trace_open(path, &trace), PROF_OK);
  const uint64_t end_ns = end_of_stuck(trace);
  prof_trace_destroy(trace);
  return end_ns;
}

static void assert_open_until_now(const char *path) {
  const uint64_t before_ns = now_ns(), end_ns = end_of_stuck_in(path);
  assert_in_range(end_ns, before_ns, now_ns());
}

static void a_scope_of_a_process_that_records_is_open_until_it_is_looked_at(void **state) {
  (void)state;
  stuck s;
  begin_stuck_with_a_file(&s, (prof_options){.level = 1});
  assert_open_until_now(s.path);
  assert_open_until_now(s.path);
  end_stuck(&s);
}

/* A ring keeps the last so many ns of what was recorded, not of what was not. */
static void a_ring_of_a_process_that_hangs_still_shows_what_came_before(void **state) {
  (void)state;
  stuck s;
  const uint64_t ring_ns = 1000000;
  begin_stuck_with_a_file(&s, (prof_options){.policy = PROF_POLICY_RING, .ring_ns = ring_ns});
  for (const uint64_t begun_ns = now_ns(); now_ns() - begun_ns < 2 * ring_ns;) usleep(1000);
  assert_open_until_now(s.path);
  prof_trace *trace = NULL;
  assert_int_equal(prof_trace_open(s.path, &trace), PROF_OK);
  assert_true(info_of(trace).scope_count > 0);
  prof_trace_destroy(trace);
  end_stuck(&s);
}

static void a_copy_of_a_capture_that_is_recorded_ends_when_it_was_copied(void **state) {
  (void)state;
  char copy[PATH_MAX + 16];
  prof_trace *trace = NULL;
  stuck s;
  begin_stuck_with_a_file(&s, (prof_options){.level = 1});
  snprintf(copy, sizeof copy, "%s/copy", folder);
  const prof_dump_options options = {.size = sizeof options, .format = PROF_FORMAT_CAPTURE};
  assert_int_equal(prof_trace_open(s.path, &trace), PROF_OK);
  assert_int_equal(prof_trace_dump(trace, copy, &options), PROF_OK);
  assert_int_equal(end_of_stuck_in(copy), end_of_stuck(trace));
  prof_trace_destroy(trace);
  unlink(copy);
  end_stuck(&s);
}

static void copy_file(const char *from, const char *to) {
  enum { BYTES = 65536 };
  char *const bytes = malloc(BYTES);
  FILE *const in = fopen(from, "rb"), *const out = fopen(to, "wb");
  assert_true(bytes && in && out);
  for (size_t count; (count = fread(bytes, 1, BYTES, in)) > 0;)
    assert_int_equal(fwrite(bytes, 1, count, out), count);
  assert_int_equal(fclose(out), 0);
  fclose(in);
  free(bytes);
}

/* Its process runs, but records into another file. */
static void a_plain_copy_ends_with_the_last_thing_recorded(void **state) {
  (void)state;
  char copy[PATH_MAX + 16];
  stuck s;
  begin_stuck_with_a_file(&s, (prof_options){.level = 1});
  snprintf(copy, sizeof copy, "%s/copy", folder);
  copy_file(s.path, copy);
  const uint64_t copied_ns = now_ns();
  assert_true(end_of_stuck_in(copy) <= copied_ns);
  prof_trace *trace = NULL;
  for (int is_copy = 0; is_copy < 2; is_copy++) {
    assert_int_equal(prof_trace_open(is_copy ? copy : s.path, &trace), PROF_OK);
    assert_int_equal(info_of(trace).is_copy, is_copy);
    assert_int_equal(info_of(trace).is_live, !is_copy);
    prof_trace_destroy(trace);
  }
  unlink(copy);
  end_stuck(&s);
}

static void read_header(const char *path, char header[PROF_I_HEADER_BYTES]) {
  FILE *const file = fopen(path, "rb");
  assert_non_null(file);
  assert_int_equal(fread(header, 1, PROF_I_HEADER_BYTES, file), PROF_I_HEADER_BYTES);
  fclose(file);
}

static void a_plain_copy_is_refused_a_level_and_stays_as_it_is(void **state) {
  (void)state;
  char copy[PATH_MAX + 16], before[PROF_I_HEADER_BYTES], after[PROF_I_HEADER_BYTES];
  stuck s;
  begin_stuck_with_a_file(&s, (prof_options){.level = 1});
  snprintf(copy, sizeof copy, "%s/copy", folder);
  copy_file(s.path, copy);
  read_header(copy, before);
  assert_int_equal(prof_trace_set_level(copy, 2, NULL), PROF_E_NOT_RUNNING);
  assert_non_null(strstr(prof_last_error(), "is a copy"));
  read_header(copy, after);
  assert_memory_equal(before, after, PROF_I_HEADER_BYTES);
  int level = 0;
  assert_int_equal(prof_trace_set_level(s.path, 2, &level), PROF_OK);
  assert_int_equal(level, 1);
  unlink(copy);
  end_stuck(&s);
}

static void a_scope_is_not_open_for_longer_once_its_process_is_told_to_record_nothing(
    void **state) {
  (void)state;
  stuck s;
  begin_stuck_with_a_file(&s, (prof_options){.level = 1});
  assert_int_equal(prof_trace_set_level(s.path, 0, NULL), PROF_OK);
  const uint64_t off_ns = now_ns();
  assert_true(end_of_stuck_in(s.path) <= off_ns);
  end_stuck(&s);
}

static void a_scope_of_a_process_that_died_is_open_until_the_last_thing_recorded(void **state) {
  (void)state;
  stuck s;
  begin_stuck_with_a_file(&s, (prof_options){.level = 1});
  assert_open_until_now(s.path);
  kill(s.child, SIGKILL);
  assert_int_equal(waitpid(s.child, NULL, 0), s.child);
  s.child = 0;
  const uint64_t died_ns = now_ns();
  assert_true(end_of_stuck_in(s.path) <= died_ns);
  end_stuck(&s);
}

static void a_scope_of_the_own_process_is_open_until_the_call(void **state) {
  (void)state;
  const prof_options options = {.size = sizeof options, .level = 1};
  assert_int_equal(prof_start_with(&options), PROF_OK);
  assert_int_equal(prof_clear(), PROF_OK);
  {
    PROF_SCOPE("stuck");
    prof_trace *trace = NULL;
    const uint64_t before_ns = now_ns();
    assert_int_equal(prof_get(&trace), PROF_OK);
    assert_in_range(end_of_stuck(trace), before_ns, now_ns());
    prof_trace_destroy(trace);
  }
  assert_int_equal(prof_stop(), PROF_OK);
}

static void durations_by_name_are_those_of_the_trace(void **state) {
  (void)state;
  assert_int_equal(prof_get_duration(NULL, NULL, NULL, NULL), PROF_OK);
  const prof_options options = {.size = sizeof options, .level = 1};
  assert_int_equal(prof_start_with(&options), PROF_OK);
  assert_int_equal(prof_clear(), PROF_OK);
  for (unsigned i = 0; i < 50; i++) one_outer(i);
  uint64_t total_ns = 0, count = 0, all_ns = 0;
  assert_int_equal(prof_get_duration("outer", "scope", &total_ns, &count), PROF_OK);
  assert_int_equal(count, 50);
  assert_int_equal(prof_get_duration("inner 3", NULL, &all_ns, &count), PROF_OK);
  assert_int_equal(count, 20);
  assert_true(all_ns < total_ns);
  assert_int_equal(prof_get_duration(NULL, "nothing", &total_ns, &count), PROF_OK);
  assert_int_equal(count, 0);
  assert_int_equal(total_ns, 0);
  assert_int_equal(prof_get(NULL), PROF_E_INVALID);
  assert_int_equal(prof_stop(), PROF_OK);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_file_of_another_process_is_read_while_it_runs_and_after_its_death),
      cmocka_unit_test(a_scope_of_a_process_that_records_is_open_until_it_is_looked_at),
      cmocka_unit_test(a_ring_of_a_process_that_hangs_still_shows_what_came_before),
      cmocka_unit_test(a_copy_of_a_capture_that_is_recorded_ends_when_it_was_copied),
      cmocka_unit_test(a_plain_copy_ends_with_the_last_thing_recorded),
      cmocka_unit_test(a_plain_copy_is_refused_a_level_and_stays_as_it_is),
      cmocka_unit_test(a_scope_is_not_open_for_longer_once_its_process_is_told_to_record_nothing),
      cmocka_unit_test(a_scope_of_a_process_that_died_is_open_until_the_last_thing_recorded),
      cmocka_unit_test(a_scope_of_the_own_process_is_open_until_the_call),
      cmocka_unit_test(snapshots_of_the_own_arena_are_whole),
      cmocka_unit_test(snapshots_of_a_full_arena_are_whole),
      cmocka_unit_test(snapshots_of_a_ring_are_whole),
      cmocka_unit_test(durations_by_name_are_those_of_the_trace),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
