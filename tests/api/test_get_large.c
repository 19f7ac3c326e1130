/* A capture that is read while it is recorded is not copied: what is finished is seen where it
   stands, whatever happens to the capture meanwhile. */
#define _GNU_SOURCE
#include <limits.h>
#include <prof/trace.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "../mappings.h"
#include "health.h"
#include "sanitizers.h"

enum { SCOPES = 5000000, FEW_SCOPES = 400000, EXTRA_KIB = 4 << 10 };

static char folder[64], output[96];

static void record(int count) {
  for (int i = 0; i < count; i++) WITH_BASE_PROFILER(PROF_HOST, "large", "get", PROF_NO_ARGS, {});
}

static void start(uint32_t policy, const char *path, uint64_t cap_bytes) {
  const prof_options options = {
      .size = sizeof options, .policy = policy, .path = path, .cap_bytes = cap_bytes};
  if (prof_start_with(&options) != PROF_OK) fail_msg("prof_start_with: %s", prof_last_error());
}

static prof_trace *get(void) {
  prof_trace *trace = NULL;
  if (prof_get(&trace) != PROF_OK) fail_msg("prof_get: %s", prof_last_error());
  return trace;
}

static uint64_t scopes_in(const prof_trace *trace) {
  prof_trace_info info = {.size = sizeof info};
  assert_int_equal(prof_trace_info_get(trace, &info), PROF_OK);
  assert_int_equal(info.bad_count, 0);
  return info.scope_count;
}

static uint64_t events_read(const prof_trace *trace) {
  static prof_event event;
  prof_cursor *cursor = NULL;
  uint64_t count = 0;
  assert_int_equal(prof_cursor_create(trace, &cursor), PROF_OK);
  int status;
  while ((status = prof_cursor_next(cursor, &event)) == 1) {
    count++;
    assert_int_equal(event.name_bytes, 5);
    assert_memory_equal(event.name, "large", 5);
  }
  assert_int_equal(status, 0);
  prof_cursor_destroy(cursor);
  return count;
}

/* Anonymous and shared memory, in KiB: pages of a file can go at any time, and are not ours
   alone. */
static long held_kib(void) {
  FILE *const status = fopen("/proc/self/status", "r");
  char line[256];
  long kib = 0, one;
  while (status && fgets(line, sizeof line, status)) {
    if (sscanf(line, "RssAnon: %ld kB", &one) == 1 || sscanf(line, "RssShmem: %ld kB", &one) == 1)
      kib += one;
    if (sscanf(line, "RssFile: %ld kB", &one) == 1) kib += one;
  }
  if (status) fclose(status);
  return kib;
}

/* The tables of call sites are made for a million, at the first scope of the process. */
static void a_first_scope_under_mlockall_takes_what_it_uses(void **state) {
  (void)state;
  start(PROF_POLICY_KEEP, NULL, 64 << 20);
  if (WITH_ASAN || WITH_TSAN || mlockall(MCL_FUTURE) != 0) {
    print_message("skip: the memory of this process cannot be locked\n");
    assert_int_equal(prof_stop(), PROF_OK);
    return;
  }
  const long before = held_kib();
  WITH_BASE_PROFILER(PROF_HOST, "first", "mlockall", PROF_NO_ARGS, {});
  const long after = held_kib();
  assert_int_equal(munlockall(), 0);
  assert_in_range(after - before, 0, 16 << 10);
  assert_int_equal(prof_stop(), PROF_OK);
}

/* A host that locks all its memory, also what it will map. */
static void a_start_under_mlockall_takes_what_it_uses(void **state) {
  enum { CAP_KIB = 256 << 10 };
  (void)state;
  if (WITH_ASAN || WITH_TSAN || mlockall(MCL_FUTURE) != 0) {
    print_message("skip: the memory of this process cannot be locked\n");
    return;
  }
  const long before = held_kib();
  const prof_options options = {
      .size = sizeof options, .policy = PROF_POLICY_KEEP, .cap_bytes = (uint64_t)CAP_KIB << 10};
  const int status = prof_start_with(&options);
  const long after = held_kib();
  record(FEW_SCOPES);
  prof_trace *const trace = get();
  assert_int_equal(munlockall(), 0);
  assert_int_equal(status, PROF_OK);
  assert_in_range(after - before, 0, CAP_KIB / 8);
  assert_int_equal(scopes_in(trace), FEW_SCOPES);
  prof_trace_destroy(trace);
  assert_int_equal(prof_stop(), PROF_OK);
}

/* Whatever a host maps itself must still go: it has 65530 mappings. */
static void held_traces_take_few_mappings(void **state) {
  enum { TRACES = 20, MAPPINGS_A_TRACE = 16 };
  (void)state;
  prof_trace *traces[TRACES];
  start(PROF_POLICY_KEEP, NULL, 64 << 20); /* chunks of 1 MiB */
  record(FEW_SCOPES * 5);                  /* 30 of them */
  const long before = mappings();
  for (int i = 0; i < TRACES; i++) traces[i] = get();
  const long held = mappings();
  if (!WITH_ASAN && !WITH_TSAN) assert_in_range(held, before, before + TRACES * MAPPINGS_A_TRACE);
  for (int i = 0; i < TRACES; i++) {
    assert_int_equal(scopes_in(traces[i]), FEW_SCOPES * 5);
    prof_trace_destroy(traces[i]);
  }
  assert_int_equal(prof_stop(), PROF_OK);
}

/* Of this process, in KiB. */
static long huge_pages_kib(void) {
  FILE *const rollup = fopen("/proc/self/smaps_rollup", "r");
  char line[256];
  long kib = 0;
  while (rollup && fgets(line, sizeof line, rollup)) sscanf(line, "AnonHugePages: %ld kB", &kib);
  if (rollup) fclose(rollup);
  return kib;
}

enum { HUGE_PAGE_KIB = 2 << 10, HUGE_PAGE_ENDS = 2 };

/* How many KiB of huge pages a trace has cost. Negative: this machine gives none. */
static long huge_pages_lost_kib(void) {
  start(PROF_POLICY_KEEP, NULL, 256 << 20);
  record(SCOPES);
  const long before = huge_pages_kib();
  prof_trace *const trace = get();
  const long after = huge_pages_kib();
  assert_int_equal(scopes_in(trace), SCOPES);
  prof_trace_destroy(trace);
  assert_int_equal(prof_stop(), PROF_OK);
  if (before <= HUGE_PAGE_ENDS * HUGE_PAGE_KIB) return -1;
  return before > after ? before - after : 0;
}

/* A fork copies the tables of small pages, which takes ten times as long. Only the pages at both
   ends of what the trace shows may become small. A kernel that needs memory may split others, so
   one of three traces is enough. */
static void a_trace_leaves_huge_pages_whole(void **state) {
  enum { TRIES = 3 };
  (void)state;
  long lost = LONG_MAX;
  for (int i = 0; i < TRIES && lost > HUGE_PAGE_ENDS * HUGE_PAGE_KIB; i++)
    lost = huge_pages_lost_kib();
  if (lost < 0) {
    puts("skip: this machine gives no huge pages");
    skip();
  }
  assert_in_range(lost, 0, HUGE_PAGE_ENDS * HUGE_PAGE_KIB);
}

static void a_dump_of_a_large_stream_takes_no_memory(void **state) {
  (void)state;
  start(PROF_POLICY_STREAM, output, 0);
  record(SCOPES);
  const long before = held_kib();
  prof_trace *const trace = get();
  const long opened = held_kib();
  assert_int_equal(scopes_in(trace), SCOPES);
  assert_int_equal(prof_trace_dump(trace, "/dev/null", NULL), PROF_OK);
  const long dumped = held_kib();
  printf("%d MiB of records: %ld KiB held before, %ld open, %ld after a dump\n", SCOPES / 65536,
         before, opened, dumped);
  if (!WITH_ASAN && !WITH_TSAN) {
    assert_true(opened - before < EXTRA_KIB);
    assert_true(dumped - before < EXTRA_KIB);
  }
  prof_trace_destroy(trace);
  assert_int_equal(prof_stop(), PROF_OK);
}

static void what_is_read_stays_when_the_capture_is_cleared(void **state) {
  (void)state;
  const uint32_t policies[] = {PROF_POLICY_KEEP, PROF_POLICY_STREAM, PROF_POLICY_RING};
  for (size_t p = 0; p < sizeof policies / sizeof *policies; p++) {
    start(policies[p], policies[p] == PROF_POLICY_STREAM ? output : NULL, 32 << 20);
    record(FEW_SCOPES);
    prof_trace *const trace = get();
    assert_int_equal(scopes_in(trace), FEW_SCOPES);
    for (int i = 0; i < 3; i++) {
      assert_int_equal(prof_clear(), PROF_OK);
      record(FEW_SCOPES);
    }
    assert_int_equal(events_read(trace), FEW_SCOPES);
    prof_trace *const later = get();
    assert_int_equal(scopes_in(later), FEW_SCOPES);
    prof_health health = {.size = sizeof health};
    assert_int_equal(prof_health(&health), PROF_OK);
    assert_int_equal(health.recorded_count, FEW_SCOPES);
    assert_int_equal(health.lost_count[PROF_LOSS_CLEARED], 3 * FEW_SCOPES);
    prof_trace_destroy(trace);
    assert_int_equal(events_read(later), FEW_SCOPES);
    prof_trace_destroy(later);
    assert_int_equal(prof_clear(), PROF_OK); /* nobody reads: now the room comes back */
    assert_int_equal(prof_clear(), PROF_OK);
    for (int i = 0; i < 8; i++) { /* far more than the cap, without a loss */
      record(FEW_SCOPES);
      assert_int_equal(prof_clear(), PROF_OK);
    }
    assert_int_equal(prof_health(&health), PROF_OK);
    assert_int_equal(health.recorded_count, 0);
    assert_int_equal(health.lost_count[PROF_LOSS_CLEARED], 12 * FEW_SCOPES);
    assert_int_equal(health.lost_count[PROF_LOSS_FULL], 0);
    assert_int_equal(prof_stop(), PROF_OK);
  }
}

/* A trace that stays open keeps what it shows, and no room of what came after. The same holds for
   traces that are opened and closed beside it, each of which outlives the clear of what it
   shows. */
static void clears_beside_living_traces_stay_within_the_capture(void **state) {
  (void)state;
  enum { ROUNDS = 200, ROUND_SCOPES = 20000 };
  const uint32_t policies[] = {PROF_POLICY_KEEP, PROF_POLICY_STREAM};
  for (size_t p = 0; p < sizeof policies / sizeof *policies; p++) {
    /* a round is 320 KB, all of them 64 MB */
    start(policies[p], policies[p] == PROF_POLICY_STREAM ? output : NULL, 16 << 20);
    record(FEW_SCOPES / 4);
    prof_trace *const for_ever = get();
    assert_int_equal(prof_clear(), PROF_OK);
    prof_trace *before = NULL;
    for (int i = 0; i < ROUNDS; i++) {
      record(ROUND_SCOPES);
      prof_trace *const trace = get();
      assert_int_equal(prof_clear(), PROF_OK);
      if (before) prof_trace_destroy(before); /* there was one at every clear */
      before = trace;
      if (i % 50 == 0) assert_int_equal(events_read(trace), ROUND_SCOPES);
    }
    assert_int_equal(events_read(before), ROUND_SCOPES);
    prof_trace_destroy(before);
    assert_int_equal(events_read(for_ever), FEW_SCOPES / 4);
    prof_health health = {.size = sizeof health};
    assert_int_equal(prof_health(&health), PROF_OK);
    assert_int_equal(health.lost_count[PROF_LOSS_FULL], 0);
    assert_int_equal(health.lost_count[PROF_LOSS_CLEARED],
                     FEW_SCOPES / 4 + (uint64_t)ROUNDS * ROUND_SCOPES);
    prof_trace_destroy(for_ever);
    assert_int_equal(prof_stop(), PROF_OK);
  }
}

/* Most of the capture is one trace's, and comes back as it goes, without another clear. */
static void room_comes_back_when_its_last_reader_goes(void **state) {
  (void)state;
  start(PROF_POLICY_KEEP, NULL, 16 << 20);
  for (int i = 0; i < 10; i++) {
    record(FEW_SCOPES);
    prof_trace *const one = get(), *const other = get();
    assert_int_equal(prof_clear(), PROF_OK);
    prof_trace *const empty = get(); /* of after the clear: it holds nothing up */
    prof_trace_destroy(one);
    assert_int_equal(events_read(other), FEW_SCOPES);
    prof_trace_destroy(other);
    record(FEW_SCOPES);
    assert_int_equal(events_read(empty), 0);
    prof_health health = {.size = sizeof health};
    assert_int_equal(prof_health(&health), PROF_OK);
    assert_int_equal(health.lost_count[PROF_LOSS_FULL], 0);
    prof_trace_destroy(empty);
    assert_int_equal(prof_clear(), PROF_OK);
  }
  assert_int_equal(prof_stop(), PROF_OK);
}

/* A full capture is cleared while a trace has all of it, so it is full again at once. When the
   trace goes, recording goes on. */
static void a_full_capture_goes_on_when_its_last_reader_goes(void **state) {
  (void)state;
  start(PROF_POLICY_KEEP, NULL, 16 << 20);
  while (!health_now().is_full) record(FEW_SCOPES);
  prof_trace *const trace = get();
  assert_int_equal(prof_clear(), PROF_OK);
  while (!health_now().is_full) record(FEW_SCOPES); /* what the trace does not have */
  prof_trace_destroy(trace);
  assert_false(health_now().is_full);
  const prof_health before = health_now();
  record(1000);
  const prof_health after = health_now();
  assert_int_equal(after.lost_count[PROF_LOSS_FULL], before.lost_count[PROF_LOSS_FULL]);
  assert_int_equal(after.recorded_count, before.recorded_count + 1000);
  assert_int_equal(prof_stop(), PROF_OK);
}

static void what_is_read_stays_when_the_capture_is_replaced(void **state) {
  (void)state;
  const uint32_t policies[] = {PROF_POLICY_KEEP, PROF_POLICY_STREAM};
  const char *const paths[] = {NULL, output};
  for (size_t p = 0; p < 2; p++) {
    start(policies[p], paths[p], 33 << 20);
    record(FEW_SCOPES);
    prof_trace *const trace = get();
    assert_int_equal(prof_stop(), PROF_OK);
    start(PROF_POLICY_KEEP, NULL, 34 << 20);
    record(1000);
    assert_int_equal(events_read(trace), FEW_SCOPES);
    prof_trace_destroy(trace); /* of an arena that is gone: the lease is of no other */
    prof_trace *const other = get();
    assert_int_equal(events_read(other), 1000);
    prof_trace_destroy(other);
    assert_int_equal(prof_stop(), PROF_OK);
  }
}

/* What is written of a kept trace after a clear is what it was: also the capture itself, whose
   heads a clear changes. */
static void a_capture_written_after_a_clear_is_whole(void **state) {
  (void)state;
  char copy[128];
  snprintf(copy, sizeof copy, "%s/copy.prof", folder);
  start(PROF_POLICY_KEEP, NULL, 35 << 20);
  record(FEW_SCOPES);
  prof_trace *const trace = get();
  assert_int_equal(prof_clear(), PROF_OK);
  record(1000);
  assert_int_equal(prof_trace_dump(trace, copy, NULL), PROF_OK);
  prof_trace_destroy(trace);
  assert_int_equal(prof_stop(), PROF_OK);
  struct stat about;
  assert_int_equal(stat(copy, &about), 0);
  assert_int_equal(about.st_mode & 07777, 0600); /* it has what was forgotten */
  prof_trace *read = NULL;
  assert_int_equal(prof_trace_open(copy, &read), PROF_OK);
  assert_int_equal(scopes_in(read), FEW_SCOPES);
  assert_int_equal(events_read(read), FEW_SCOPES);
  prof_trace_destroy(read);
}

/* A forked child keeps its trace while its parent forgets what it shows. */
static void a_childs_trace_stays_when_its_parent_clears(void **state) {
  (void)state;
  int go[2];
  start(PROF_POLICY_KEEP, NULL, 36 << 20);
  record(FEW_SCOPES);
  prof_trace *const trace = get();
  assert_int_equal(pipe(go), 0);
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    char byte;
    const bool may_go = read(go[0], &byte, 1) == 1;
    _exit(may_go && events_read(trace) == FEW_SCOPES ? 0 : 1);
  }
  prof_trace_destroy(trace);
  for (int i = 0; i < 3; i++) assert_int_equal(prof_clear(), PROF_OK);
  record(FEW_SCOPES);
  assert_int_equal(write(go[1], "g", 1), 1);
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  close(go[0]);
  close(go[1]);
  assert_int_equal(prof_stop(), PROF_OK);
}

/* The capture's name may be somebody else's by now. */
static void a_dump_removes_nobody_elses_file(void **state) {
  (void)state;
  char moved[128];
  prof_health health = {.size = sizeof health};
  start(PROF_POLICY_STREAM, output, 37 << 20);
  record(1000);
  assert_int_equal(prof_health(&health), PROF_OK);
  snprintf(moved, sizeof moved, "%s/moved", folder);
  assert_int_equal(rename(health.capture_path, moved), 0);
  FILE *const other = fopen(health.capture_path, "w");
  assert_non_null(other);
  fputs("somebody else's", other);
  fclose(other);
  assert_int_equal(prof_stop(), PROF_OK);
  assert_int_equal(prof_dump(NULL), PROF_OK);
  assert_int_equal(access(health.capture_path, F_OK), 0);
}

static int make_folder(void **state) {
  (void)state;
  snprintf(folder, sizeof folder, "/tmp/prof-get-large-XXXXXX");
  if (!mkdtemp(folder)) return -1;
  snprintf(output, sizeof output, "%s/out.json", folder);
  return 0;
}

static int remove_folder(void **state) {
  (void)state;
  char command[128];
  snprintf(command, sizeof command, "rm -rf %s", folder);
  return system(command) == 0 ? 0 : -1;
}

int main(int argc, char **argv) {
  if (argc > 1) cmocka_set_test_filter(argv[1]); /* run-faults.sh */
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_first_scope_under_mlockall_takes_what_it_uses), /* before all others */
      cmocka_unit_test(a_dump_of_a_large_stream_takes_no_memory),
      cmocka_unit_test(a_start_under_mlockall_takes_what_it_uses),
      cmocka_unit_test(held_traces_take_few_mappings),
      cmocka_unit_test(a_trace_leaves_huge_pages_whole),
      cmocka_unit_test(what_is_read_stays_when_the_capture_is_cleared),
      cmocka_unit_test(clears_beside_living_traces_stay_within_the_capture),
      cmocka_unit_test(room_comes_back_when_its_last_reader_goes),
      cmocka_unit_test(a_full_capture_goes_on_when_its_last_reader_goes),
      cmocka_unit_test(what_is_read_stays_when_the_capture_is_replaced),
      cmocka_unit_test(a_capture_written_after_a_clear_is_whole),
      cmocka_unit_test(a_childs_trace_stays_when_its_parent_clears),
      cmocka_unit_test(a_dump_removes_nobody_elses_file),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
