/* Exports beside Chrome JSON: RAF's log and a copy of the capture. */
#define _GNU_SOURCE
#include "exported.h"

static void rafs_log_is_as_raf_wrote_it(void **state) {
  (void)state;
  capture c;
  prof_i_head *const chunk = begin(&c, 1700000000123456789u);
  capture_plain(chunk, CAPTURE_START + 11000, 1000, 1);
  put_list_scope(&c, chunk, CAPTURE_START + 10000, 5000);
  capture_plain(chunk, CAPTURE_START + 15000, 1000, 1);
  assert_int_equal(dump(&c, (prof_dump_options){.format = PROF_FORMAT_RAF}), PROF_OK);
  capture_end(&c);
  assert_string_equal(
      text,
      "{\"traceEvents\":[\n"
      "{\"name\":\"matmul\",\"cat\":\"operator\",\"ph\":\"B\",\"ts\":1700000000123466,\"pid\":77,"
      "\"tid\":\"operator\","
      "\"args\":{\"args_string\":\"Count: 3;\\\"x\\\"\"}},\n"
      "{\"name\":\"matmul\",\"cat\":\"operator\",\"ph\":\"B\",\"ts\":1700000000123467,\"pid\":77,"
      "\"tid\":\"operator\","
      "\"args\":{\"args_string\":\"\"}},\n"
      "{\"name\":\"matmul\",\"cat\":\"operator\",\"ph\":\"E\",\"ts\":1700000000123468,\"pid\":77,"
      "\"tid\":\"operator\","
      "\"args\":{\"args_string\":\"\"}},\n"
      "{\"name\":\"matmul\",\"cat\":\"operator\",\"ph\":\"E\",\"ts\":1700000000123471,\"pid\":77,"
      "\"tid\":\"operator\","
      "\"args\":{\"args_string\":\"Count: 3;\\\"x\\\"\"}},\n"
      "{\"name\":\"matmul\",\"cat\":\"operator\",\"ph\":\"B\",\"ts\":1700000000123471,\"pid\":77,"
      "\"tid\":\"operator\","
      "\"args\":{\"args_string\":\"\"}},\n"
      "{\"name\":\"matmul\",\"cat\":\"operator\",\"ph\":\"E\",\"ts\":1700000000123472,\"pid\":77,"
      "\"tid\":\"operator\","
      "\"args\":{\"args_string\":\"\"}}\n"
      "],\"displayTimeUnit\":\"ms\",\n"
      "\"prof\":{\"recorded\":3,\"skipped\":0,\"unfinished\":0,\"unfinished_below\":0,\"stray_"
      "ends\":0,\"lost\":{\"total\":0,\"full\":0,\"overwritten\":0,\"disk\":0,\"no_chunk\":0,"
      "\"no_thread\":0,\"late\":0,\"cleared\":0,\"unfinished\":0,\"forked\":0,\"lost_state\":0,"
      "\"muted\":0,\"device_full\":0,\"device_late\":0,"
      "\"device_times\":0,\"skipped\":0,\"thread_ended\":0},\"changes\":[]}}\n");
}

/* Viewers pair an end with the last beginning of its row. */
static void rafs_log_keeps_threads_and_overlaps_apart(void **state) {
  (void)state;
  capture c;
  prof_i_head *const chunk = begin(&c, 1700000000000000000u);
  capture_plain(chunk, CAPTURE_START + 1000, 2000, 1);
  capture_plain(chunk, CAPTURE_START + 2000, 2000, 1);
  prof_i_head *const other = capture_chunk(&c, 1 << 20, 2);
  capture_plain(other, CAPTURE_START + 1500, 2000, 1);
  assert_int_equal(dump(&c, (prof_dump_options){.format = PROF_FORMAT_RAF}), PROF_OK);
  capture_end(&c);
  assert_int_equal(count_of("\"tid\":\"operator\""), 2);
  assert_int_equal(count_of("\"tid\":\"operator #2\""), 2);
  assert_int_equal(count_of("\"tid\":\"operator (thread 102)\""), 2);
}

static void a_capture_is_copied_byte_by_byte(void **state) {
  (void)state;
  capture c;
  prof_i_head *const chunk = begin(&c, 453 * base_ns);
  capture_plain(chunk, CAPTURE_START, 5, 1);
  assert_int_equal(dump(&c, (prof_dump_options){.format = PROF_FORMAT_CAPTURE}), PROF_OK);
  struct stat status;
  assert_int_equal(stat(path, &status), 0);
  assert_int_equal(status.st_size, c.count);
  assert_memory_equal(text, c.bytes, c.count < sizeof text ? c.count : sizeof text);
  capture_end(&c);
}

static void the_paths_places_are_the_captures(void **state) {
  (void)state;
  capture c;
  prof_i_head *const chunk = begin(&c, 453 * base_ns);
  capture_plain(chunk, CAPTURE_START, 5, 1);
  capture_header(&c)->rank = 5;
  capture_header(&c)->world_size = 6;
  prof_trace *const trace = open_capture(&c);
  char wanted[128];
  snprintf(wanted, sizeof wanted, "%s/%%h-%%p-%%r-%%%%.json", folder);
  snprintf(path, sizeof path, "%s/host-77-5-%%.json", folder);
  assert_int_equal(prof_trace_dump(trace, wanted, NULL), PROF_OK);
  prof_trace_destroy(trace);
  capture_end(&c);
  assert_true(read_back(path) > 0);
}

static void a_capture_is_not_compressed(void **state) {
  (void)state;
  capture c;
  begin(&c, 453 * base_ns);
  assert_int_equal(dump(&c, (prof_dump_options){.format = PROF_FORMAT_CAPTURE, .gzip = 1}),
                   PROF_E_INVALID);
  assert_int_equal(dump(&c, (prof_dump_options){.format = PROF_FORMAT_CAPTURE, .from_ns = 1}),
                   PROF_E_INVALID);
  capture_end(&c);
  assert_int_equal(access(path, F_OK), -1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_FOLDER(rafs_log_is_as_raf_wrote_it),
      IN_FOLDER(rafs_log_keeps_threads_and_overlaps_apart),
      IN_FOLDER(a_capture_is_copied_byte_by_byte),
      IN_FOLDER(the_paths_places_are_the_captures),
      IN_FOLDER(a_capture_is_not_compressed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
