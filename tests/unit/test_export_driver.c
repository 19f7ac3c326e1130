/* The driver, by exporters of a few lines: which callbacks it calls, in which order, and what it
   does when one fails. */
#define _GNU_SOURCE
#include "export/exporter.h"
#include "trace_checks.h"

#include <limits.h>

#include "device_capture.h"

/* ---- the CSV exporter of docs/how-to/write-an-exporter.md ---- */

typedef struct csv {
  uint64_t tid;
} csv;

static void put_csv_text(prof_i_sink *sink, prof_i_text text) {
  prof_i_sink_text(sink, ",\"");
  for (uint64_t i = 0; i < text.bytes; i++) {
    if (text.data[i] == '"') prof_i_sink_text(sink, "\"");
    prof_i_sink_bytes(sink, &text.data[i], 1);
  }
  prof_i_sink_text(sink, "\"");
}

static int csv_begin(prof_i_export *run) {
  prof_i_sink_text(run->sink, "thread,start_ns,duration_ns,category,name\n");
  return PROF_OK;
}

static int csv_thread(prof_i_export *run, const prof_trace_thread *thread) {
  csv *const c = run->state;
  c->tid = thread->tid;
  return PROF_OK;
}

static int csv_event(prof_i_export *run, prof_i_export_event *event) {
  const csv *const c = run->state;
  prof_i_sink_u64(run->sink, c->tid);
  prof_i_sink_text(run->sink, ",");
  prof_i_sink_u64(run->sink, event->start_ns);
  prof_i_sink_text(run->sink, ",");
  prof_i_sink_u64(run->sink, event->end_ns - event->start_ns);
  put_csv_text(run->sink, event->category);
  put_csv_text(run->sink, event->name);
  prof_i_sink_text(run->sink, "\n");
  return PROF_OK;
}

static const prof_i_exporter csv_exporter = {.name = "csv",
                                             .order = PROF_I_ORDER_WALKED,
                                             .event_kinds = PROF_I_KIND(SCOPE) | PROF_I_KIND(OPEN),
                                             .state_bytes = sizeof(csv),
                                             .begin = csv_begin,
                                             .thread = csv_thread,
                                             .event = csv_event};

/* ---- captures and runs ---- */

/* Two threads, 101 and 102, and three sites; ends at 10 s. */
static void begin_two_threads(capture *c, prof_i_head *chunks[2]) {
  capture_begin(c, 4 << 20);
  prof_i_head *const meta = capture_meta(c);
  capture_site(meta, 1, "a", "cat", 1);
  capture_site(meta, 2, "b", "cat", 1);
  capture_site(meta, 3, "say \"c\"", "", 1);
  capture_clock(c, meta, 0, 0, 0);
  capture_clock(c, meta, 10000000000u, 10000000000u, 0);
  chunks[0] = capture_chunk(c, 1 << 20, 1);
  chunks[1] = capture_chunk(c, 1 << 20, 2);
}

/* "a" holds "b"; the other thread has "say "c"". */
static void nested_capture(capture *c) {
  prof_i_head *chunks[2];
  begin_two_threads(c, chunks);
  capture_plain(chunks[0], CAPTURE_START + 2000, 1000, 2);
  capture_plain(chunks[0], CAPTURE_START + 1000, 5000, 1);
  capture_plain(chunks[1], CAPTURE_START + 1500, 7, 3);
}

static char text[1 << 16];

/* What the exporter writes of the capture is then in `text`. */
static int export_text(const capture *c, const prof_i_exporter *exporter, prof_i_window window,
                       size_t limit_bytes) {
  prof_trace *const trace = open_capture(c);
  const prof_i_export_options options = {.window = window};
  prof_i_findings findings;
  prof_i_sink sink;
  char *taken = NULL;
  size_t bytes = 0;
  text[0] = '\0';
  assert_int_equal(prof_i_sink_open_memory(&sink, limit_bytes), PROF_OK);
  int status = prof_i_export_run(exporter, trace, &options, &sink, &findings);
  if (status == PROF_OK) {
    assert_int_equal(sink.status, PROF_OK);
    status = prof_i_sink_take(&sink, &taken, &bytes);
    assert_true(bytes < sizeof text);
    memcpy(text, taken, bytes + 1);
    prof_free(taken);
  } else {
    prof_i_sink_abandon(&sink);
  }
  prof_trace_destroy(trace);
  return status;
}

static const prof_i_window no_window = {0, 0};

/* ---- an exporter that writes each call ---- */

static int trace_begin(prof_i_export *run) {
  prof_i_sink_text(run->sink, "begin\n");
  return PROF_OK;
}

static int trace_thread(prof_i_export *run, const prof_trace_thread *thread) {
  prof_i_sink_text(run->sink, "thread ");
  prof_i_sink_u64(run->sink, thread->tid);
  prof_i_sink_text(run->sink, "\n");
  return PROF_OK;
}

/* "begin a 1000 lane 0" */
static void put_call(prof_i_export *run, const char *what, const prof_i_export_event *event,
                     uint64_t ns) {
  prof_i_sink_text(run->sink, what);
  prof_i_sink_bytes(run->sink, event->name.data, event->name.bytes);
  prof_i_sink_text(run->sink, " ");
  prof_i_sink_u64(run->sink, ns);
  prof_i_sink_text(run->sink, " lane ");
  prof_i_sink_u64(run->sink, event->lane);
  prof_i_sink_text(run->sink, "\n");
}

/* A begin keeps its start, and the end checks it. */
static int trace_event(prof_i_export *run, prof_i_export_event *event) {
  if (event->phase == PROF_I_PHASE_WHOLE) {
    put_call(run, "event ", event, event->start_ns);
  } else if (event->phase == PROF_I_PHASE_BEGIN) {
    assert_null(event->kept);
    assert_non_null(event->event);
    event->kept = malloc(sizeof event->start_ns);
    assert_non_null(event->kept);
    memcpy(event->kept, &event->start_ns, sizeof event->start_ns);
    put_call(run, "begin ", event, event->start_ns);
  } else {
    assert_memory_equal(event->kept, &event->start_ns, sizeof event->start_ns);
    assert_null(event->event);
    put_call(run, "end ", event, event->end_ns);
  }
  return PROF_OK;
}

static int trace_counter(prof_i_export *run, prof_i_export_event *event) {
  put_call(run, "counter ", event, event->start_ns);
  return PROF_OK;
}

static int trace_flow(prof_i_export *run, prof_i_export_event *event) {
  put_call(run, event->event->kind == PROF_EVENT_FLOW_END ? "flow to " : "flow from ", event,
           event->start_ns);
  return PROF_OK;
}

static int trace_end(prof_i_export *run) {
  prof_i_sink_text(run->sink, "end\n");
  return PROF_OK;
}

static unsigned destroy_count;
static void count_destroy(prof_i_export *run) {
  (void)run;
  destroy_count++;
}

#define TRACE_CALLS                                                                           \
  .name = "calls", .event_kinds = PROF_I_KIND(SCOPE), .begin = trace_begin,                   \
  .thread = trace_thread, .event = trace_event, .counter = trace_counter, .flow = trace_flow, \
  .end = trace_end, .destroy = count_destroy

static const prof_i_exporter as_walked = {TRACE_CALLS, .order = PROF_I_ORDER_WALKED};
static const prof_i_exporter by_time = {TRACE_CALLS, .order = PROF_I_ORDER_TIME};
static const prof_i_exporter by_category = {TRACE_CALLS, .order = PROF_I_ORDER_TIME,
                                            .has_category_tracks = true};

/* ---- tests ---- */

static void a_new_format_needs_only_the_simple_callbacks(void **state) {
  (void)state;
  capture c;
  nested_capture(&c);
  assert_int_equal(export_text(&c, &csv_exporter, no_window, SIZE_MAX), PROF_OK);
  capture_end(&c);
  assert_string_equal(text,
                      "thread,start_ns,duration_ns,category,name\n"
                      "101,2000,1000,\"cat\",\"b\"\n"
                      "101,1000,5000,\"cat\",\"a\"\n"
                      "102,1500,7,\"scope\",\"say \"\"c\"\"\"\n");
}

static void the_window_leaves_out_what_is_outside(void **state) {
  (void)state;
  const prof_i_exporter *const exporters[] = {&csv_exporter, &as_walked, &by_time};
  for (size_t i = 0; i < 3; i++) {
    capture c;
    nested_capture(&c);
    const prof_i_window window = {3500, 5000}; /* "a" alone touches it */
    assert_int_equal(export_text(&c, exporters[i], window, SIZE_MAX), PROF_OK);
    capture_end(&c);
    assert_non_null(strstr(text, i == 0 ? "\"a\"" : " a "));
    assert_null(strstr(text, i == 0 ? "\"b\"" : " b "));
    assert_null(strstr(text, "say"));
  }
}

static void by_time_each_scope_begins_and_ends_in_order(void **state) {
  (void)state;
  capture c;
  nested_capture(&c);
  assert_int_equal(export_text(&c, &by_time, no_window, SIZE_MAX), PROF_OK);
  capture_end(&c);
  assert_string_equal(text,
                      "begin\nthread 101\n"
                      "begin a 1000 lane 0\nbegin b 2000 lane 0\n"
                      "end b 3000 lane 0\nend a 6000 lane 0\n"
                      "thread 102\n"
                      "begin say \"c\" 1500 lane 0\nend say \"c\" 1507 lane 0\nend\n");
}

static void both_orders_call_each_thread_also_without_events(void **state) {
  (void)state;
  const prof_i_exporter *const exporters[] = {&as_walked, &by_time};
  for (size_t i = 0; i < 2; i++) {
    capture c;
    prof_i_head *chunks[2];
    begin_two_threads(&c, chunks);
    assert_int_equal(export_text(&c, exporters[i], no_window, SIZE_MAX), PROF_OK);
    capture_end(&c);
    assert_string_equal(text, "begin\nthread 101\nthread 102\nend\n");
  }
}

/* Each scope begins in those before it and ends after them. */
static void what_overlaps_has_a_lane_of_its_own(void **state) {
  (void)state;
  static const char timed[] =
      "begin\nthread 101\n"
      "begin a 1000 lane 0\nbegin b 2000 lane 1\nbegin a 2500 lane 2\n"
      "end a 3000 lane 0\nend b 4000 lane 1\nend a 5000 lane 2\n"
      "thread 102\nend\n";
  static const char walked[] =
      "begin\nthread 101\n"
      "event a 2500 lane 0\nevent b 2000 lane 1\nevent a 1000 lane 2\n"
      "thread 102\nend\n";
  const prof_i_exporter *const exporters[] = {&as_walked, &by_time, &by_category};
  for (size_t i = 0; i < 3; i++) {
    capture c;
    prof_i_head *chunks[2];
    begin_two_threads(&c, chunks);
    capture_plain(chunks[0], CAPTURE_START + 1000, 2000, 1);
    capture_plain(chunks[0], CAPTURE_START + 2000, 2000, 2);
    capture_plain(chunks[0], CAPTURE_START + 2500, 2500, 1);
    assert_int_equal(export_text(&c, exporters[i], no_window, SIZE_MAX), PROF_OK);
    capture_end(&c);
    assert_string_equal(text, i == 0 ? walked : timed);
  }
}

/* The same scopes, in two categories. */
static void category_tracks_have_lanes_of_their_own(void **state) {
  (void)state;
  for (int i = 0; i < 2; i++) {
    capture c;
    prof_i_head *chunks[2];
    begin_two_threads(&c, chunks);
    capture_plain(chunks[0], CAPTURE_START + 1000, 2000, 1);
    capture_plain(chunks[0], CAPTURE_START + 2000, 2000, 3);
    assert_int_equal(export_text(&c, i ? &by_category : &by_time, no_window, SIZE_MAX), PROF_OK);
    capture_end(&c);
    assert_int_equal(strstr(text, "lane 1") == NULL, i);
  }
}

static void put_counter(prof_i_head *chunk, uint64_t ns) {
  long_record r;
  long_begin(&r, PROF_I_KIND_COUNTER, CAPTURE_START + ns, 0, 1);
  long_word(&r, 0);
  long_end(&r, chunk);
}

static void put_flow_end(prof_i_head *chunk, uint64_t ns, bool is_end) {
  long_record r;
  long_begin(&r, PROF_I_KIND_FLOW, CAPTURE_START + ns, 0, 0);
  long_word(&r, 7);
  long_word(&r, is_end);
  long_text(&r, "send");
  long_end(&r, chunk);
}

static void counters_and_flows_have_their_callbacks(void **state) {
  (void)state;
  capture c;
  prof_i_head *chunks[2];
  begin_two_threads(&c, chunks);
  put_flow_end(chunks[0], 1000, false);
  put_counter(chunks[0], 2000);
  put_flow_end(chunks[0], 3000, true);
  assert_int_equal(export_text(&c, &by_time, no_window, SIZE_MAX), PROF_OK);
  assert_string_equal(text,
                      "begin\nthread 101\nflow from send 1000 lane 0\n"
                      "counter a 2000 lane 0\nflow to send 3000 lane 0\nthread 102\nend\n");
  assert_int_equal(export_text(&c, &as_walked, no_window, SIZE_MAX), PROF_OK);
  assert_string_equal(text,
                      "begin\nthread 101\nflow to send 3000 lane 0\n"
                      "counter a 2000 lane 0\nflow from send 1000 lane 0\nthread 102\nend\n");
  assert_int_equal(export_text(&c, &csv_exporter, no_window, SIZE_MAX), PROF_OK);
  assert_string_equal(text, "thread,start_ns,duration_ns,category,name\n"); /* it has neither */
  capture_end(&c);
}

/* Writes "b", and leaves the others to `event`. */
static size_t write_only_b(prof_i_export *run, const prof_i_span *spans, size_t count) {
  size_t i = 0;
  for (; i < count && spans[i].site == 2; i++) prof_i_sink_text(run->sink, "plain b\n");
  return i;
}

static void the_fast_path_takes_what_it_can_and_keeps_the_order(void **state) {
  (void)state;
  capture c;
  prof_i_head *chunks[2];
  prof_i_exporter exporter = as_walked;
  exporter.plain = write_only_b;
  begin_two_threads(&c, chunks);
  capture_plain(chunks[0], CAPTURE_START + 1000, 10, 2);
  capture_plain(chunks[0], CAPTURE_START + 2000, 10, 1);
  capture_plain(chunks[0], CAPTURE_START + 3000, 10, 1);
  capture_plain(chunks[0], CAPTURE_START + 4000, 10, 2);
  capture_plain(chunks[0], CAPTURE_START + 5000, 10, 2);
  assert_int_equal(export_text(&c, &exporter, no_window, SIZE_MAX), PROF_OK);
  capture_end(&c);
  assert_string_equal(text,
                      "begin\nthread 101\nplain b\nplain b\nevent a 3000 lane 0\n"
                      "event a 2000 lane 0\nplain b\nthread 102\nend\n");
}

/* Calls that nest and repeat, with arrows and overlaps, on both sides of 10^8 ns. */
static void many_scopes(capture *c) {
  prof_i_head *chunks[2];
  begin_two_threads(c, chunks);
  for (uint64_t i = 0; i < 60; i++) {
    const uint64_t at_ns = CAPTURE_START + 99000000 + i * 40000;
    const uint32_t site = (uint32_t)(1 + i % 3);
    capture_plain(chunks[i % 2], at_ns + 10, 5 + i * 7, site);
    if (i % 5 == 0) put_flow_end(chunks[i % 2], at_ns + 11 - CAPTURE_START, i % 2);
    if (i % 7 == 0) capture_plain(chunks[i % 2], at_ns + 300, 30000 + i, 2); /* overlaps */
    capture_plain(chunks[i % 2], at_ns, i % 11 == 0 ? 2000000 : 20000 + i, 1);
  }
}

static size_t plain_span_count;

static size_t counting_plain(prof_i_export *run, const prof_i_span *spans, size_t count) {
  const size_t done = prof_i_chrome_exporter.plain(run, spans, count);
  plain_span_count += done;
  return done;
}

static void chromes_fast_path_writes_what_its_callbacks_write(void **state) {
  (void)state;
  static char fast_text[sizeof text];
  const prof_i_window windows[] = {{0, 0}, {99500000, 100500000}};
  prof_i_exporter fast = prof_i_chrome_exporter, slow = prof_i_chrome_exporter;
  assert_non_null(prof_i_chrome_exporter.plain);
  fast.plain = counting_plain;
  slow.plain = NULL;
  capture c;
  many_scopes(&c);
  for (size_t i = 0; i < 2; i++) {
    plain_span_count = 0;
    assert_int_equal(export_text(&c, &fast, windows[i], SIZE_MAX), PROF_OK);
    assert_true(plain_span_count > 0);
    memcpy(fast_text, text, sizeof fast_text);
    assert_non_null(strstr(fast_text, "\"name\":\"say"));
    assert_int_equal(export_text(&c, &slow, windows[i], SIZE_MAX), PROF_OK);
    assert_string_equal(fast_text, text);
  }
  capture_end(&c);
}

/* ---- failures ---- */

static unsigned call_count; /* of callbacks that return a status */
static unsigned failing_call;

/* Counts a call. One of them fails, and those after it do not. */
static int call_status(void) { return call_count++ == failing_call ? PROF_E_IO : PROF_OK; }

static int fail_begin(prof_i_export *run) {
  (void)trace_begin(run);
  return call_status();
}

static int fail_thread(prof_i_export *run, const prof_trace_thread *thread) {
  (void)trace_thread(run, thread);
  return call_status();
}

/* A begin that fails has kept memory: the sanitizers see it if it stays. */
static int fail_event(prof_i_export *run, prof_i_export_event *event) {
  (void)trace_event(run, event);
  return call_status();
}

static int fail_counter(prof_i_export *run, prof_i_export_event *event) {
  (void)trace_counter(run, event);
  return call_status();
}

static int fail_flow(prof_i_export *run, prof_i_export_event *event) {
  (void)trace_flow(run, event);
  return call_status();
}

static int fail_end(prof_i_export *run) {
  (void)trace_end(run);
  return call_status();
}

/* All callbacks, and a thread without events last. */
static void begin_varied(capture *c) {
  prof_i_head *chunks[2];
  begin_two_threads(c, chunks);
  capture_plain(chunks[0], CAPTURE_START + 2000, 1000, 2);
  put_flow_end(chunks[0], 3500, false);
  put_counter(chunks[0], 4000);
  capture_plain(chunks[0], CAPTURE_START + 1000, 5000, 1);
  capture_plain(chunks[1], CAPTURE_START + 1500, 7, 3);
  put_flow_end(chunks[1], 2000, true);
  capture_plain(chunks[1], CAPTURE_START + 3000, 10, 2);
  (void)capture_chunk(c, 1 << 16, 3);
}

/* The text of a run in which no call fails has a line for each. */
static void a_call_that_fails_is_the_last_one(void **state) {
  (void)state;
  static const char *const texts[] = {
      "begin\nthread 101\n"
      "counter a 4000 lane 0\nflow from send 3500 lane 0\n"
      "event b 2000 lane 0\nevent a 1000 lane 0\n"
      "thread 102\n"
      "event b 3000 lane 0\nflow to send 2000 lane 0\nevent say \"c\" 1500 lane 0\n"
      "thread 103\nend\n",
      "begin\nthread 101\n"
      "begin a 1000 lane 0\nbegin b 2000 lane 0\nend b 3000 lane 0\n"
      "flow from send 3500 lane 0\ncounter a 4000 lane 0\nend a 6000 lane 0\n"
      "thread 102\n"
      "begin say \"c\" 1500 lane 0\nend say \"c\" 1507 lane 0\nflow to send 2000 lane 0\n"
      "begin b 3000 lane 0\nend b 3010 lane 0\n"
      "thread 103\nend\n"};
  static const unsigned counts[] = {12, 16};
  for (size_t i = 0; i < 2; i++) {
    capture c;
    prof_i_exporter exporter = i == 0 ? as_walked : by_time;
    exporter.begin = fail_begin;
    exporter.thread = fail_thread;
    exporter.event = fail_event;
    exporter.counter = fail_counter;
    exporter.flow = fail_flow;
    exporter.end = fail_end;
    begin_varied(&c);
    for (failing_call = 0; failing_call <= counts[i]; failing_call++) {
      const bool fails = failing_call < counts[i];
      call_count = destroy_count = 0;
      assert_int_equal(export_text(&c, &exporter, no_window, SIZE_MAX),
                       fails ? PROF_E_IO : PROF_OK);
      assert_int_equal(call_count, fails ? failing_call + 1 : counts[i]);
      assert_int_equal(destroy_count, 1);
    }
    assert_string_equal(text, texts[i]);
    capture_end(&c);
  }
}

/* A sink looks at its limit when its buffer is full, so some scopes are walked for nothing. */
static void a_full_sink_ends_the_run(void **state) {
  (void)state;
  enum { SCOPES = 200000 };
  const prof_i_exporter *const exporters[] = {&as_walked, &by_time};
  for (size_t i = 0; i < 2; i++) {
    capture c;
    prof_i_exporter exporter = *exporters[i];
    exporter.event = fail_event;
    failing_call = UINT_MAX; /* none */
    call_count = 0;
    capture_begin(&c, 8 << 20);
    prof_i_head *const meta = capture_meta(&c);
    capture_site(meta, 1, "a", "cat", 1);
    capture_clock(&c, meta, 0, 0, 0);
    capture_clock(&c, meta, 10000000000u, 10000000000u, 0);
    prof_i_head *const chunk = capture_chunk(&c, 4 << 20, 1);
    for (uint64_t s = 0; s < SCOPES; s++) capture_plain(chunk, CAPTURE_START + 100 * s, 10, 1);
    assert_int_equal(export_text(&c, &exporter, no_window, 1000), PROF_E_TOO_LARGE);
    assert_in_range(call_count, 1, SCOPES / 2);
    capture_end(&c);
  }
}

static int fill_at_end(prof_i_export *run) {
  static const char bytes[1 << 20];
  prof_i_sink_bytes(run->sink, bytes, sizeof bytes);
  return PROF_OK;
}

static void a_sink_that_end_fills_fails_the_run(void **state) {
  (void)state;
  capture c;
  prof_i_exporter exporter = as_walked;
  exporter.end = fill_at_end;
  nested_capture(&c);
  assert_int_equal(export_text(&c, &exporter, no_window, 1000), PROF_E_TOO_LARGE);
  capture_end(&c);
}

/* Of two devices one has a clock. */
static void facts_are_what_a_capture_has_beside_events(void **state) {
  (void)state;
  capture c;
  device_capture(&c);
  prof_trace *trace = open_capture(&c);
  prof_i_export_facts facts = {0};
  prof_i_export_facts_add(&facts, trace);
  const prof_i_export_facts wanted = {.scopes = 14, .device_clocks = 1}; /* with 4 calls */
  assert_memory_equal(&facts, &wanted, sizeof facts);
  prof_trace_destroy(trace);
  capture_end(&c);

  prof_i_head *const meta = begin_with_sites(&c, 1 << 20, 1);
  capture_site(meta, 2, "t.py(1): f", "python_function", 1);
  capture_change(meta, CAPTURE_START + 5, PROF_CHANGE_LEVEL, PROF_REASON_ASKED, 0, 2, 1, 1, 0, 0);
  capture_change(meta, CAPTURE_START + 6, PROF_CHANGE_MUTED, PROF_REASON_ASKED, 1, 0, 0, 1, 0, 0);
  trace = open_capture(&c);
  prof_i_export_facts_add(&facts, trace);
  assert_int_equal(facts.device_clocks, 1);
  assert_int_equal(facts.level_changes, 1);
  assert_int_equal(facts.functions, 1);
  assert_int_equal(facts.function_places, 1);
  prof_trace_destroy(trace);
  capture_end(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_new_format_needs_only_the_simple_callbacks),
      cmocka_unit_test(the_window_leaves_out_what_is_outside),
      cmocka_unit_test(by_time_each_scope_begins_and_ends_in_order),
      cmocka_unit_test(both_orders_call_each_thread_also_without_events),
      cmocka_unit_test(what_overlaps_has_a_lane_of_its_own),
      cmocka_unit_test(category_tracks_have_lanes_of_their_own),
      cmocka_unit_test(counters_and_flows_have_their_callbacks),
      cmocka_unit_test(the_fast_path_takes_what_it_can_and_keeps_the_order),
      cmocka_unit_test(chromes_fast_path_writes_what_its_callbacks_write),
      cmocka_unit_test(a_call_that_fails_is_the_last_one),
      cmocka_unit_test(a_full_sink_ends_the_run),
      cmocka_unit_test(a_sink_that_end_fills_fails_the_run),
      cmocka_unit_test(facts_are_what_a_capture_has_beside_events),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
