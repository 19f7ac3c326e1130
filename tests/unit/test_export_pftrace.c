/* Perfetto's protobuf has a fast path for plain scopes. It writes what the driver and the slow path
   write: the same captures go through the exporter with it and without it. */
#define _GNU_SOURCE
#include "export/exporter.h"
#include "trace_checks.h"

enum { ROOM_BYTES = 16 << 20, SITES = 150, SCOPES_MAX = 20000 };

typedef struct scope {
  uint64_t start, end;
  uint32_t site;
} scope;

static uint64_t random_state;

static uint64_t next_random(uint64_t below) {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return random_state % below;
}

static int by_end(const void *a, const void *b) {
  const scope *const x = a, *const y = b;
  if (x->end != y->end) return x->end < y->end ? -1 : 1;
  return x->start == y->start ? 0 : x->start > y->start ? -1 : 1;
}

static char *export_bytes(const prof_trace *trace, const prof_i_exporter *exporter,
                          prof_i_export_options options, size_t *bytes_out) {
  prof_i_findings findings;
  prof_i_sink sink;
  char *taken = NULL;
  assert_int_equal(prof_i_sink_open_memory(&sink, ROOM_BYTES), PROF_OK);
  assert_int_equal(prof_i_export_run(exporter, trace, &options, &sink, &findings), PROF_OK);
  assert_int_equal(prof_i_sink_take(&sink, &taken, bytes_out), PROF_OK);
  return taken;
}

static void check_options(const prof_trace *trace, prof_i_export_options options) {
  prof_i_exporter slow = prof_i_pftrace_exporter;
  slow.plain_by_time = NULL;
  size_t fast_bytes, slow_bytes;
  char *const fast = export_bytes(trace, &prof_i_pftrace_exporter, options, &fast_bytes);
  char *const wanted = export_bytes(trace, &slow, options, &slow_bytes);
  assert_int_equal(fast_bytes, slow_bytes);
  assert_memory_equal(fast, wanted, slow_bytes);
  prof_free(fast);
  prof_free(wanted);
}

/* Alone, and as a capture in a file of several. Frees the capture. */
static void check_both_ways(capture *c, prof_i_window window) {
  static const prof_i_export_place place = {
      .number = 3, .first_sequence = 100, .start_unix_ns = 1700000000000000000u, .label = "rank 3"};
  prof_trace *const trace = open_capture(c);
  check_options(trace, (prof_i_export_options){.window = window, .with_memory = true});
  check_options(trace,
                (prof_i_export_options){.window = window, .with_memory = true, .place = &place});
  prof_trace_destroy(trace);
  capture_end(c);
}

static prof_i_head *begin_with_many_sites(capture *c) {
  capture_begin(c, ROOM_BYTES);
  prof_i_head *const meta = capture_extent(c, PROF_I_EXTENT_META, 4 * PROF_I_UNIT_BYTES);
  for (uint32_t i = 1; i < SITES; i++) {
    char name[32];
    snprintf(name, sizeof name, "site %u", i);
    capture_site(meta, i, i == 7 ? "" : name, i % 5 ? "category" : "", 1);
  }
  capture_clock(c, meta, 0, 0, 0);
  capture_clock(c, meta, 1000000000000u, 1000000000000u, 0);
  return meta;
}

static void put_scopes(prof_i_head *chunk, scope *scopes, uint32_t count) {
  qsort(scopes, count, sizeof *scopes, by_end);
  for (uint32_t i = 0; i < count; i++)
    capture_plain(chunk, CAPTURE_START + scopes[i].start,
                  (uint32_t)(scopes[i].end - scopes[i].start), scopes[i].site);
}

/* Calls inside of calls. Times touch and coincide. */
static uint32_t nest(scope *scopes, uint32_t count, uint64_t start, uint64_t end, int depth) {
  while (start < end && count < SCOPES_MAX) {
    const uint64_t from = start + next_random(4), to = from + next_random(end - start + 1);
    if (to > end) break;
    scopes[count++] = (scope){from, to, 1 + (uint32_t)next_random(SITES - 1)};
    if (depth > 0 && to > from) count = nest(scopes, count, from, to, depth - 1);
    start = to;
  }
  return count;
}

static scope scopes[SCOPES_MAX];

static void nested_scopes_are_the_same(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 20; seed++) {
    capture c;
    random_state = seed * 0x9e3779b97f4a7c15u;
    begin_with_many_sites(&c);
    for (uint32_t thread = 1; thread <= 3; thread++)
      put_scopes(capture_chunk(&c, 1 << 20, thread), scopes, nest(scopes, 0, 100, 1000000, 12));
    check_both_ways(&c, (prof_i_window){0, 0});
  }
}

static void overlapping_scopes_are_the_same(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 20; seed++) {
    capture c;
    random_state = seed * 0x9e3779b97f4a7c15u;
    begin_with_many_sites(&c);
    const uint32_t count = 3000;
    for (uint32_t i = 0; i < count; i++) {
      const uint64_t start = next_random(100000);
      scopes[i] = (scope){start, start + next_random(i % 50 ? 30 : 3000),
                          1 + (uint32_t)next_random(SITES - 1)};
    }
    put_scopes(capture_chunk(&c, 1 << 20, 1), scopes, count);
    check_both_ways(&c, (prof_i_window){0, 0});
  }
}

/* Numbers of one byte to five. */
static void gaps_of_any_length_are_the_same(void **state) {
  (void)state;
  capture c;
  begin_with_many_sites(&c);
  uint64_t start = 0;
  uint32_t count = 0;
  for (uint32_t bits = 0; bits < 32; bits++)
    for (uint32_t i = 0; i < 3; i++) {
      start += (1ull << bits) + i - 1;
      scopes[count++] = (scope){start, start + (i == 2 ? 0 : 1), 1 + bits};
      start++;
    }
  put_scopes(capture_chunk(&c, 1 << 20, 1), scopes, count);
  check_both_ways(&c, (prof_i_window){0, 0});
}

static void a_window_is_the_same(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 10; seed++) {
    capture c;
    random_state = seed * 0x9e3779b97f4a7c15u;
    begin_with_many_sites(&c);
    put_scopes(capture_chunk(&c, 1 << 20, 1), scopes, nest(scopes, 0, 100, 1000000, 12));
    const uint64_t from = 1 + next_random(500000);
    check_both_ways(&c, (prof_i_window){from, from + next_random(500000)});
  }
}

/* The number of a thread's sequence has one byte, then two. */
static void many_threads_are_the_same(void **state) {
  (void)state;
  capture c;
  random_state = 1;
  begin_with_many_sites(&c);
  for (uint32_t thread = 1; thread <= 140; thread++)
    put_scopes(capture_chunk(&c, 1 << 16, thread), scopes, nest(scopes, 0, 100, 1000, 3));
  check_both_ways(&c, (prof_i_window){0, 0});
}

/* Scopes with arguments and steps among plain ones. */
static void mixed_records_are_the_same(void **state) {
  (void)state;
  static const uint32_t types[] = {PROF_ARG_I64};
  static const char *const keys[] = {"key"};
  capture c;
  random_state = 3;
  prof_i_head *const meta = begin_with_many_sites(&c);
  capture_schema(meta, 1, PROF_ARGS_PAIRS, "", 1, types, keys);
  prof_i_head *const chunk = capture_chunk(&c, 1 << 20, 1);
  for (uint64_t at = 1000; at < 200000; at += 100) {
    long_record r;
    capture_plain(chunk, CAPTURE_START + at + 10, 20, 1);
    long_begin(&r, PROF_I_KIND_SCOPE, CAPTURE_START + at + 35, 5, 2);
    r.schema = 1;
    long_word(&r, at);
    long_end(&r, chunk);
    if (next_random(2)) capture_plain(chunk, CAPTURE_START + at + 45, next_random(50), 3);
    if (next_random(2)) capture_plain(chunk, CAPTURE_START + at, 99, 4);
  }
  check_both_ways(&c, (prof_i_window){0, 0});
}

static void put_row(prof_i_head *chunk, uint64_t start, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    capture_plain(chunk, CAPTURE_START + start + i * 20ull, 10, 1 + i % 9);
}

static void put_flow(prof_i_head *chunk, uint64_t at, uint64_t is_end) {
  long_record r;
  long_begin(&r, PROF_I_KIND_FLOW, CAPTURE_START + at, 0, 0);
  long_word(&r, 7);
  long_word(&r, is_end);
  long_text(&r, "send");
  long_end(&r, chunk);
}

static uint32_t count_flush_marks(const char *bytes, size_t count) {
  static const char mark[] = {'\xaa', 4, 4, 3 << 3, 1, 4 << 3, 1};
  uint32_t found = 0;
  for (size_t i = 0; i + sizeof mark <= count; i++)
    found += memcmp(bytes + i, mark, sizeof mark) == 0;
  return found;
}

static void check_flush_marks(capture *c, const prof_i_export_place *place, uint32_t wanted) {
  prof_trace *const trace = open_capture(c);
  const prof_i_export_options options = {.with_memory = true, .place = place};
  size_t count;
  check_options(trace, options);
  char *const bytes = export_bytes(trace, &prof_i_pftrace_exporter, options, &count);
  assert_int_equal(count_flush_marks(bytes, count), wanted);
  prof_free(bytes);
  prof_trace_destroy(trace);
}

/* 70000 scopes are enough for eight marks. */
static void only_the_last_thread_has_flush_marks(void **state) {
  (void)state;
  static const prof_i_export_place place = {.start_unix_ns = 1700000000000000000u};
  capture c;
  begin_with_many_sites(&c);
  for (uint32_t thread = 1; thread <= 3; thread++)
    put_row(capture_chunk(&c, 2 << 20, thread), 1000, 70000);
  check_flush_marks(&c, NULL, 8);
  check_flush_marks(&c, &place, 0);
  capture_end(&c);
}

/* One for each 32nd part of 360000. */
static void many_scopes_of_other_threads_make_flush_marks_rare(void **state) {
  (void)state;
  capture c;
  begin_with_many_sites(&c);
  for (uint32_t thread = 1; thread <= 3; thread++)
    put_row(capture_chunk(&c, 2 << 20, thread), 1000, 120000);
  put_row(capture_chunk(&c, 1 << 20, 4), 1000, 60000);
  check_flush_marks(&c, NULL, 5);
  capture_end(&c);
}

static void no_flush_mark_follows_an_arrow(void **state) {
  (void)state;
  capture c;
  begin_with_many_sites(&c);
  prof_i_head *const chunk = capture_chunk(&c, 2 << 20, 1);
  put_row(chunk, 1000, 40000);
  put_flow(chunk, 1000000, 0);
  put_flow(chunk, 1000001, 1);
  put_row(chunk, 1000010, 40000);
  check_flush_marks(&c, NULL, 4);
  capture_end(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(nested_scopes_are_the_same),
      cmocka_unit_test(overlapping_scopes_are_the_same),
      cmocka_unit_test(gaps_of_any_length_are_the_same),
      cmocka_unit_test(a_window_is_the_same),
      cmocka_unit_test(many_threads_are_the_same),
      cmocka_unit_test(mixed_records_are_the_same),
      cmocka_unit_test(only_the_last_thread_has_flush_marks),
      cmocka_unit_test(many_scopes_of_other_threads_make_flush_marks_rare),
      cmocka_unit_test(no_flush_mark_follows_an_arrow),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
