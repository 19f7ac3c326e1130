/* prof_cursor_read() and prof_trace_event_get(): short reads, sizes of other versions, refusals.
   read_events() compares them with prof_cursor_next() for each built capture of the unit tests. */
#include "device_capture.h"
#include "memory_capture.h"
#include "trace_checks.h"

enum { T0 = CAPTURE_START, SCOPES = 10 };

/* A thread with SCOPES scopes; the last one has two arguments. */
static prof_trace *open_scopes(capture *c) {
  prof_i_head *const meta = begin_with_sites(c, 1 << 20, SCOPES);
  capture_schema(meta, 1, PROF_ARGS_PAIRS, "", 2, (const uint32_t[]){PROF_ARG_I64, PROF_ARG_F64},
                 (const char *const[]){"whole", "real"});
  prof_i_head *const chunk = capture_chunk(c, PROF_I_UNIT_BYTES, 1);
  for (uint32_t i = 1; i < SCOPES; i++) capture_plain(chunk, T0 + 10 * i, 5, i);
  long_record r;
  long_begin(&r, PROF_I_KIND_SCOPE, T0 + 10 * SCOPES, 5, SCOPES);
  r.schema = 1;
  const double half = 0.5;
  uint64_t bits;
  memcpy(&bits, &half, sizeof bits);
  long_word(&r, (uint64_t)-7);
  long_word(&r, bits);
  long_end(&r, chunk);
  return open_capture(c);
}

static prof_cursor *cursor_of(const prof_trace *trace) {
  prof_cursor *cursor = NULL;
  assert_int_equal(prof_cursor_create(trace, &cursor), PROF_OK);
  return cursor;
}

static void a_read_gives_as_many_events_as_there_is_room_for_or_as_there_are(void **state) {
  (void)state;
  capture c;
  prof_trace *const trace = open_scopes(&c);
  prof_event_brief briefs[2 * SCOPES] = {{.size = sizeof *briefs}};
  prof_cursor *const cursor = cursor_of(trace);
  assert_int_equal(prof_cursor_read(cursor, briefs, 4), 4);
  assert_int_equal(briefs[3].start_ns, 40);
  assert_int_equal(briefs[4].size, 0);
  assert_int_equal(prof_cursor_read(cursor, briefs, 2 * SCOPES), SCOPES - 4);
  assert_int_equal(briefs[0].start_ns, 50);
  assert_int_equal(briefs[SCOPES - 5].start_ns, 100);
  for (int i = 0; i < 2; i++) assert_int_equal(prof_cursor_read(cursor, briefs, 1), 0);
  prof_cursor_destroy(cursor);
  prof_trace_destroy(trace);
  capture_end(&c);
}

static void reads_and_single_steps_of_one_cursor_take_turns(void **state) {
  (void)state;
  capture c;
  prof_trace *const trace = open_scopes(&c);
  prof_event_brief brief = {.size = sizeof brief};
  prof_event event;
  prof_cursor *const cursor = cursor_of(trace);
  for (uint64_t i = 1; i <= SCOPES; i += 2) {
    assert_int_equal(prof_cursor_read(cursor, &brief, 1), 1);
    assert_int_equal(brief.start_ns, 10 * i);
    assert_int_equal(prof_cursor_next(cursor, &event), 1);
    assert_int_equal(event.start_ns, 10 * (i + 1));
  }
  assert_int_equal(prof_cursor_next(cursor, &event), 0);
  prof_cursor_destroy(cursor);
  prof_trace_destroy(trace);
  capture_end(&c);
}

static void arguments_are_there_when_the_cursor_is_gone(void **state) {
  (void)state;
  capture c;
  prof_trace *const trace = open_scopes(&c);
  prof_event_brief briefs[SCOPES] = {{.size = sizeof *briefs}};
  prof_cursor *const cursor = cursor_of(trace);
  assert_int_equal(prof_cursor_read(cursor, briefs, SCOPES), SCOPES);
  prof_cursor_destroy(cursor);
  prof_event event;
  assert_null(briefs[0].record);
  assert_int_equal(prof_trace_event_get(trace, &briefs[0], &event), PROF_OK);
  assert_int_equal(event.arg_count, 0);
  const prof_event_brief last = briefs[SCOPES - 1];
  assert_int_equal(last.arg_count, 2);
  assert_int_equal(prof_trace_event_get(trace, &last, &event), PROF_OK);
  assert_int_equal(event.start_ns, 10 * SCOPES);
  assert_int_equal(event.arg_count, 2);
  assert_int_equal(event.args[0].value.i64, -7);
  assert_true(event.args[1].value.f64 == 0.5);
  prof_trace_destroy(trace);
  capture_end(&c);
}

/* A program that was built with a later version has larger elements. Their ends are 0. */
static void elements_of_a_later_version_are_as_far_apart_as_it_says(void **state) {
  (void)state;
  typedef struct later {
    prof_event_brief brief;
    uint64_t more;
  } later;
  capture c;
  prof_trace *const trace = open_scopes(&c);
  later briefs[SCOPES + 1];
  memset(briefs, 0xa5, sizeof briefs);
  briefs[0].brief.size = sizeof *briefs;
  prof_cursor *const cursor = cursor_of(trace);
  assert_int_equal(prof_cursor_read(cursor, &briefs[0].brief, SCOPES), SCOPES);
  for (uint64_t i = 0; i < SCOPES; i++) {
    assert_int_equal(briefs[i].brief.size, sizeof *briefs);
    assert_int_equal(briefs[i].brief.start_ns, 10 * (i + 1));
    assert_int_equal(briefs[i].more, 0);
  }
  assert_int_equal(briefs[SCOPES].more, UINT64_C(0xa5a5a5a5a5a5a5a5));
  prof_event event;
  assert_int_equal(prof_trace_event_get(trace, &briefs[SCOPES - 1].brief, &event), PROF_OK);
  assert_int_equal(event.arg_count, 2);
  prof_cursor_destroy(cursor);
  prof_trace_destroy(trace);
  capture_end(&c);
}

static void wrong_sizes_are_refused_and_nothing_is_read(void **state) {
  (void)state;
  const size_t whole = sizeof(prof_event_brief);
  const size_t wrong[] = {0, 7, 8, whole - 8, whole + 4, 8192, SIZE_MAX};
  capture c;
  prof_trace *const trace = open_scopes(&c);
  prof_cursor *const cursor = cursor_of(trace);
  prof_event event;
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    prof_event_brief brief = {.size = wrong[i]};
    char said[32];
    snprintf(said, sizeof said, "size is %zu;", wrong[i]);
    assert_int_equal(prof_cursor_read(cursor, &brief, 1), PROF_E_INVALID);
    assert_non_null(strstr(prof_last_error(), said));
    assert_int_equal(prof_trace_event_get(trace, &brief, &event), PROF_E_INVALID);
    assert_non_null(strstr(prof_last_error(), said));
    assert_int_equal(brief.kind, 0);
  }
  prof_event_brief first = {.size = whole};
  assert_int_equal(prof_cursor_read(cursor, &first, 1), 1);
  assert_int_equal(first.start_ns, 10);
  prof_cursor_destroy(cursor);
  prof_trace_destroy(trace);
  capture_end(&c);
}

static void missing_arguments_are_named(void **state) {
  (void)state;
  capture c;
  prof_trace *const trace = open_scopes(&c);
  prof_cursor *const cursor = cursor_of(trace);
  prof_event_brief brief = {.size = sizeof brief};
  prof_event event;
  assert_int_equal(prof_cursor_read(NULL, &brief, 1), PROF_E_INVALID);
  assert_string_equal(prof_last_error(), "prof_cursor_read: cursor is NULL");
  assert_int_equal(prof_cursor_read(cursor, NULL, 1), PROF_E_INVALID);
  assert_string_equal(prof_last_error(), "prof_cursor_read: events_out is NULL");
  assert_int_equal(prof_cursor_read(cursor, &brief, 0), PROF_E_INVALID);
  assert_string_equal(prof_last_error(), "prof_cursor_read: room is 0");
  assert_int_equal(prof_cursor_read(cursor, &brief, 1), 1);
  assert_int_equal(prof_trace_event_get(NULL, &brief, &event), PROF_E_INVALID);
  assert_string_equal(prof_last_error(), "prof_trace_event_get: trace is NULL");
  assert_int_equal(prof_trace_event_get(trace, NULL, &event), PROF_E_INVALID);
  assert_string_equal(prof_last_error(), "prof_trace_event_get: brief is NULL");
  assert_int_equal(prof_trace_event_get(trace, &brief, NULL), PROF_E_INVALID);
  assert_string_equal(prof_last_error(), "prof_trace_event_get: event_out is NULL");
  prof_cursor_destroy(cursor);
  prof_trace_destroy(trace);
  capture_end(&c);
}

static void a_thread_or_site_that_the_trace_does_not_have_is_refused(void **state) {
  (void)state;
  capture c;
  prof_trace *const trace = open_scopes(&c);
  prof_cursor *const cursor = cursor_of(trace);
  prof_event_brief brief = {.size = sizeof brief};
  prof_event event;
  assert_int_equal(prof_cursor_read(cursor, &brief, 1), 1);
  prof_event_brief other = brief;
  other.thread = 1;
  assert_int_equal(prof_trace_event_get(trace, &other, &event), PROF_E_INVALID);
  other = brief;
  other.site = UINT32_MAX;
  assert_int_equal(prof_trace_event_get(trace, &other, &event), PROF_E_INVALID);
  assert_non_null(strstr(prof_last_error(), "thread is 0 and site 4294967295, "));
  prof_cursor_destroy(cursor);
  prof_trace_destroy(trace);
  capture_end(&c);
}

/* What is neither memory nor on a device has zeros there, whatever came before it. */
static void devices_and_memory_are_read_as_well(void **state) {
  (void)state;
  capture c;
  device_capture(&c);
  prof_trace *trace = open_capture(&c);
  events all = read_events(trace);
  size_t on_device = 0;
  for (size_t i = 0; i < all.count; i++)
    on_device += (all.items[i].flags & PROF_EVENT_ON_DEVICE) != 0;
  assert_true(on_device > 0 && on_device < all.count);
  free(all.items);
  prof_trace_destroy(trace);
  capture_end(&c);
  memory_capture(&c, "tensors");
  trace = open_capture(&c);
  all = read_events(trace);
  size_t of_memory = 0;
  for (size_t i = 0; i < all.count; i++) of_memory += all.items[i].kind == PROF_EVENT_MEMORY;
  assert_true(of_memory > 0 && of_memory < all.count);
  free(all.items);
  prof_trace_destroy(trace);
  capture_end(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_read_gives_as_many_events_as_there_is_room_for_or_as_there_are),
      cmocka_unit_test(reads_and_single_steps_of_one_cursor_take_turns),
      cmocka_unit_test(arguments_are_there_when_the_cursor_is_gone),
      cmocka_unit_test(elements_of_a_later_version_are_as_far_apart_as_it_says),
      cmocka_unit_test(wrong_sizes_are_refused_and_nothing_is_read),
      cmocka_unit_test(missing_arguments_are_named),
      cmocka_unit_test(a_thread_or_site_that_the_trace_does_not_have_is_refused),
      cmocka_unit_test(devices_and_memory_are_read_as_well),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
