/* A reader copies while a writer is between the claim of a record and its first word, and the
   writer goes on in the middle of the copy. What it stores behind the copied place must not be
   taken for records. The page behind the record's first 16 bytes is taken away, so that the copy
   itself wakes the writer there. Every run is the same. */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/mman.h>

#include "../../src/live/live.h"
#include "../../src/reader/capture.h"
#include "trace_checks.h"

enum { PAGE = 4096, ROOM = 1 << 20, WORDS = 64 };

static struct {
  capture live;     /* what the reader copies */
  uint64_t *record; /* claimed; its second slot begins a page */
  prof_i_kind kind;
  bool commits;
  volatile int wakes;
} own;

static unsigned char *page_behind(void) { return (unsigned char *)(own.record + 2); }

/* The writer, from where it stood. Each of its other words looks like a commit, and each second one
   like the rest of a plain record. */
static void go_on(int signal) {
  (void)signal;
  if (own.wakes++ || mprotect(page_behind(), PAGE, PROT_READ | PROT_WRITE) != 0) _exit(9);
  __atomic_store_n(&own.record[0], (uint64_t)(WORDS / 2) << PROF_I_PENDING_SLOTS_SHIFT | 1u << 4,
                   __ATOMIC_RELEASE);
  own.record[1] = 1u << 4 | 1;
  for (int i = 2; i < WORDS; i += 2) {
    own.record[i] = (CAPTURE_START + 100) << 4 | 1;
    own.record[i + 1] = 1u << PROF_I_DURATION_SHIFT | 1u << 4;
  }
  own.record[2] = WORDS / 2 | (uint64_t)own.kind << 16;
  if (own.kind == PROF_I_KIND_CHANGE) { /* kind, reason, ... */
    own.record[3] = PROF_CHANGE_MUTED;
    own.record[4] = PROF_REASON_ASKED;
  }
  if (own.commits)
    __atomic_store_n(&own.record[0], (CAPTURE_START + 200) << 4 | 1, __ATOMIC_RELEASE);
}

/* A claim whose second slot begins a page, with plain scopes before it. */
static void claim_at_page(prof_i_head *extent, bool has_scopes) {
  while (((uintptr_t)extent + extent->cursor + 16) % PAGE) {
    if (has_scopes)
      capture_plain(extent, CAPTURE_START + 1, 5, 1);
    else
      capture_claim(extent, 2);
  }
  own.record = capture_claim(extent, WORDS);
}

static prof_trace_info read_while_it_goes_on(prof_i_kind kind, bool commits) {
  prof_i_source source;
  prof_trace *trace = NULL;
  struct sigaction before, on_fault = {.sa_handler = go_on};
  own.kind = kind;
  own.commits = commits;
  own.wakes = 0;
  capture_begin(&own.live, ROOM);
  prof_i_head *const meta = capture_meta(&own.live);
  capture_session(meta, CAPTURE_START, 1, 1);
  capture_site(meta, 1, "scope", "test", 1);
  prof_i_head *const chunk = capture_chunk(&own.live, PROF_I_UNIT_BYTES, 1);
  if (kind == PROF_I_KIND_CHANGE)
    claim_at_page(meta, false);
  else
    claim_at_page(chunk, true);
  assert_int_equal(mprotect(page_behind(), PAGE, PROT_NONE), 0);
  assert_int_equal(sigaction(SIGSEGV, &on_fault, &before), 0);
  const int status = prof_i_source_snapshot(
      &source, &(prof_i_live_source){.bytes = own.live.bytes, .room = own.live.room}, false);
  sigaction(SIGSEGV, &before, NULL);
  assert_int_equal(status, PROF_OK);
  assert_int_equal(own.wakes, 1);
  assert_int_equal(prof_i_trace_make(&source, &trace), PROF_OK);
  const prof_trace_info info = info_of(trace);
  prof_trace_destroy(trace);
  capture_end(&own.live);
  return info;
}

static uint64_t scopes_before(void) {
  return (PAGE - 16 - PROF_I_HEAD_BYTES - 16 * (3 + 3 + PROF_I_NAME_BYTES / 8) / 2) / 16;
}

static void a_record_that_goes_on_is_left_out(void **state) {
  (void)state;
  const prof_trace_info info = read_while_it_goes_on(PROF_I_KIND_SCOPE, false);
  assert_int_equal(info.bad_count, 0);
  assert_int_equal(info.scope_count, scopes_before());
}
static void a_record_that_is_finished_meanwhile_is_whole(void **state) {
  (void)state;
  const prof_trace_info info = read_while_it_goes_on(PROF_I_KIND_SCOPE, true);
  assert_int_equal(info.bad_count, 0);
  assert_int_equal(info.scope_count, scopes_before() + 1);
}
static void a_change_that_goes_on_is_left_out(void **state) {
  (void)state;
  const prof_trace_info info = read_while_it_goes_on(PROF_I_KIND_CHANGE, false);
  assert_int_equal(info.bad_count, 0);
  assert_int_equal(info.change_count, 0);
}
static void a_change_that_is_finished_meanwhile_is_whole(void **state) {
  (void)state;
  const prof_trace_info info = read_while_it_goes_on(PROF_I_KIND_CHANGE, true);
  assert_int_equal(info.bad_count, 0);
  assert_int_equal(info.change_count, 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_record_that_goes_on_is_left_out),
      cmocka_unit_test(a_record_that_is_finished_meanwhile_is_whole),
      cmocka_unit_test(a_change_that_goes_on_is_left_out),
      cmocka_unit_test(a_change_that_is_finished_meanwhile_is_whole),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
