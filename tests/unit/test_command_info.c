/* prof info: each figure of its screen. */
#define _GNU_SOURCE
#include "device_capture.h"
#include "run_command.h"
#include "small_capture.h"

static int set_up(void **state) {
  (void)state;
  return make_folder() ? 0 : -1;
}

static int tear_down(void **state) {
  (void)state;
  char path[PATH_MAX];
  path_of(path, "a.prof");
  unlink(path);
  return rmdir(own.folder);
}

static void info_of_capture(capture *c) {
  assert_int_equal(write_capture(c, "a.prof"), 0);
  capture_end(c);
  assert_int_equal(run("info a.prof"), 0);
}

#define assert_says_not(text)                                                      \
  do {                                                                             \
    if (strstr(own.output, text)) fail_msg("\"%s\" is in:\n%s", text, own.output); \
  } while (0)

/* ---- a capture with a little of everything ---- */

static void a_screen_has_every_line_of_a_capture(void **state) {
  (void)state;
  need_the_command();
  capture c;
  small_capture(&c);
  info_of_capture(&c);
  assert_string_equal(
      own.output,
      "process      test (pid 0) on host\n"
      "rank         not known\n"
      "started      2023-11-14 22:13:20 UTC\n"
      "state        stopped\n"
      "duration     0.006000 s, clock time-stamp counter, error 3000220 ns, 2 segments\n"
      "clock        changed 1 time, jumped 0 times; between the readings around a jump, 999 us at "
      "most, times are not known better\n"
      "level        2, policy stream\n"
      "events       22: 14 scopes, 2 open, 6 marks, counters, flows, steps and events of memory\n"
      "loss         20 recorded; lost 8: 2 full, 4 late, 1 cleared, 1 unfinished; 2 scopes had not "
      "ended yet\n"
      "threads      3\n"
      "       101          19 events         4 lost  recording 0.00 %  main  (main)\n"
      "       102           3 events         0 lost  recording 0.00 %  taker\n"
      "         0           0 events         4 lost  recording 0.00 %  gone\n"
      "open scopes\n"
      "       101  outer  begun 6.000 ms before the last thing recorded\n"
      "       101    still open  begun 5.996 ms before the last thing recorded\n");
}

static void devices_and_their_streams_have_lines(void **state) {
  (void)state;
  need_the_command();
  capture c;
  device_capture(&c);
  info_of_capture(&c);
  assert_says("\ndevices      2\n  cuda:0: ");
  assert_says(
      "\n  opencl:1 a device: 5 scopes, times within 0.007us of the host's; 1 were moved to "
      "their launch, by 0.003us at most\n");
  assert_says("\nthreads      2, and 1 stream of devices\n");
  assert_says(
      "\n     28672           6 events         0 lost  recording 0.00 %  stream 0x7000  (a "
      "device's)\n");
}

/* ---- the header ---- */

/* Ten scopes of 100 us on one thread, 1 ms together. */
static prof_i_header *begin_plain(capture *c) {
  prof_i_head *const meta = begin_with_sites(c, 8 << 20, 1);
  capture_session(meta, CAPTURE_START, 2, 1);
  capture_clock(c, meta, 0, 0, 0);
  capture_clock(c, meta, 1000000, 1000000, 0);
  prof_i_head *const chunk = capture_chunk(c, PROF_I_UNIT_BYTES, 1);
  for (uint64_t i = 0; i < 10; i++) capture_plain(chunk, CAPTURE_START + i * 100000, 100000, 1);
  return capture_header(c);
}

static void a_process_has_its_numbers_and_limits(void **state) {
  (void)state;
  need_the_command();
  capture c;
  prof_i_header *const header = begin_plain(&c);
  header->pid = 4711;
  header->rank = 3;
  header->world_size = 8;
  header->memory_limit_bytes = UINT64_C(5) << 30 | 12345;
  header->cpu_limit_milli = 1250;
  header->clock = PROF_CLOCK_MONOTONIC;
  header->policy = PROF_POLICY_RING;
  header->level = 2;
  info_of_capture(&c);
  assert_says("process      test (pid 4711) on host\nrank         3 of 8\n");
  assert_says("\nlimits       5120 MiB of memory, 1.25 processors\n");
  assert_says("\nduration     0.001000 s, clock monotonic, error 40 ns, 1 segment\n");
  assert_says("\nlevel        2, policy ring\n");
  assert_says("\nevents       10: 10 scopes, 0 open, 0 marks,");
  assert_says("\nloss         10 recorded; no loss\n");
  assert_says_not("clock  ");
  assert_says_not("open scopes");
  assert_says_not("recording    took");
}

static void what_is_not_known_is_said(void **state) {
  (void)state;
  need_the_command();
  capture c;
  prof_i_header *const header = begin_plain(&c);
  header->rank = 0;
  header->world_size = -1;
  header->start_realtime_ns = UINT64_C(366) * 86400 * 1000000000 - 1;
  header->memory_limit_bytes = 1 << 20;
  header->unwritten_changes = 3;
  info_of_capture(&c);
  assert_says("\nrank         0 of an unknown number\nstarted      not known\n");
  assert_says("\nlimits       1 MiB of memory\n");
  assert_says("\nchanges      0, and 3 for which the capture had no room\n");
}

static void a_process_alone_has_no_rank(void **state) {
  (void)state;
  need_the_command();
  capture c;
  prof_i_header *const header = begin_plain(&c);
  header->rank = 0;
  header->world_size = 1;
  info_of_capture(&c);
  assert_says("\nrank         none, the process is not one of several\n");
}

static void a_state_says_how_the_capture_ended(void **state) {
  (void)state;
  need_the_command();
  capture c;
  begin_plain(&c)->state = PROF_I_STATE_COPIED;
  info_of_capture(&c);
  assert_says("\nstate        a copy, made while it was being recorded\n");
  begin_plain(&c)->state = PROF_I_STATE_RECORDING;
  gethostname(capture_header(&c)->host, sizeof capture_header(&c)->host);
  info_of_capture(&c);
  assert_says("\nstate        ended without a stop: it may have been killed\n");
}

static void times_of_two_clocks_and_of_damage_have_lines(void **state) {
  (void)state;
  need_the_command();
  capture c;
  prof_i_head *const meta = begin_with_sites(&c, 1 << 20, 1);
  for (uint64_t i = 0; i < 2; i++) {
    long_record r;
    const uint64_t ns = i * 50000000;
    long_begin(&r, PROF_I_KIND_CLOCK, CAPTURE_START + ns, 0, 0);
    long_word(&r, CAPTURE_START + ns);
    long_word(&r, capture_header(&c)->start_monotonic_ns + ns);
    long_word(&r, capture_header(&c)->start_realtime_ns + ns - i * 7000000);
    long_word(&r, 40);
    long_word(&r, 0);
    long_end(&r, meta);
  }
  capture_plain(capture_chunk(&c, PROF_I_UNIT_BYTES, 1), CAPTURE_START, 10, 1);
  memset(c.bytes + c.count - PROF_I_UNIT_BYTES, 'x', 64); /* the chunk's head */
  info_of_capture(&c);
  assert_says("\nwall clock   set, or the machine slept, 1 time: -7 ms together;");
  assert_says("\nevents       0: 0 scopes,");
  assert_says("\ndamage       1 place could not be read\n");
}

/* 25.46 us of 1 ms, and ten scopes of 22.35 ns. */
static void recording_has_its_share_of_a_thread(void **state) {
  (void)state;
  need_the_command();
  capture c;
  begin_plain(&c)->scope_cost_ps = 22350;
  capture_slot(&c, 1, "main")->own_ns = 25460;
  info_of_capture(&c);
  assert_says(
      "\nrecording    took at least 0.026 ms of all threads together; a plain scope 22.4 ns "
      "in warm caches\n");
  assert_says("\n       101          10 events         0 lost  recording 2.57 %  ");
}

static void many_open_scopes_are_counted(void **state) {
  (void)state;
  need_the_command();
  enum { OPEN = 70, SHOWN = 64 };
  capture c;
  begin_plain(&c);
  for (uint64_t thread = 2; thread < 2 + OPEN; thread++)
    capture_open(capture_slot(&c, thread, "worker"), CAPTURE_START + 500000, 1);
  info_of_capture(&c);
  assert_says("\nevents       80: 10 scopes, 70 open,");
  assert_says("\nthreads      71\n");
  assert_says("  ... and 7 more\nopen scopes\n");
  assert_says("\n  ... and 6 more\n");
  int lines = 0;
  for (const char *at = own.output; (at = strstr(at, "  a  begun 0.500 ms before ")); at++) lines++;
  assert_int_equal(lines, SHOWN);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_screen_has_every_line_of_a_capture),
                                     cmocka_unit_test(devices_and_their_streams_have_lines),
                                     cmocka_unit_test(a_process_has_its_numbers_and_limits),
                                     cmocka_unit_test(what_is_not_known_is_said),
                                     cmocka_unit_test(a_process_alone_has_no_rank),
                                     cmocka_unit_test(a_state_says_how_the_capture_ended),
                                     cmocka_unit_test(times_of_two_clocks_and_of_damage_have_lines),
                                     cmocka_unit_test(recording_has_its_share_of_a_thread),
                                     cmocka_unit_test(many_open_scopes_are_counted)};
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
