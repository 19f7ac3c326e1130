/* Bad paths, hostile names, ends without a begin, and a wrong environment. Each call returns a
   status and a text with the values, and leaves the host as before. No partial file has the final
   name. */
#define _GNU_SOURCE
#include <sys/socket.h>
#include <sys/un.h>

#include "parts.h"
#include "sanitizers.h"

/* ---- the parts ---- */

/* The host's own program, with prof linked and told by its environment to record. */
static int program(void) {
  record_scopes(100);
  return 0;
}

static int program_in_little_space(void) {
  if (WITH_ASAN || WITH_TSAN) return skip_part("a sanitizer needs address space");
  limit(RLIMIT_AS, 1 << 30);
  execl("/proc/self/exe", "part", "--part", "program", folder, (char *)NULL);
  return 1;
}

static int program_that_starts_otherwise(void) {
  record_scopes(100);
  check_status(prof_stop(), PROF_OK);
  check_status(prof_start_with(NULL), PROF_OK); /* no path: nothing to write at exit */
  record_scopes(100);
  return 0;
}

/* PROF_LEVEL is the least level, as long as its recording lasts. */
static int program_that_asks_for_less(void) {
  check(prof_level() == 2, "the level is %d", prof_level());
  check_status(prof_start(1), PROF_OK);
  check(prof_level() == 2, "the level is %d after prof_start(1)", prof_level());
  check_status(prof_stop(), PROF_OK);
  check_status(prof_start(1), PROF_OK);
  check(prof_level() == 1, "the level is %d in a recording of the program's", prof_level());
  check_status(prof_start(2), PROF_OK);
  check_status(prof_start(1), PROF_OK);
  check(prof_level() == 1, "the level is %d, and was 2 before", prof_level());
  return 0;
}

/* ---- paths ---- */

static void bad_paths_are_refused_with_their_name(void **state) {
  (void)state;
  char file[PATH_ROOM], missing[PATH_ROOM], below_file[PATH_ROOM], fifo[PATH_ROOM],
      socket_path[PATH_ROOM], long_name[PATH_ROOM + 300];
  static char very_long[5001];
  char letters[301];
  memset(letters, 'n', sizeof letters - 1);
  letters[sizeof letters - 1] = '\0';
  memset(very_long, 'd', sizeof very_long - 1);
  for (size_t i = 0; i < sizeof very_long - 1; i += 100) very_long[i] = '/';
  snprintf(file, sizeof file, "%s/file", folder);
  snprintf(missing, sizeof missing, "%s/missing/trace.json", folder);
  snprintf(below_file, sizeof below_file, "%s/file/trace.json", folder);
  snprintf(fifo, sizeof fifo, "%s/fifo", folder);
  snprintf(socket_path, sizeof socket_path, "%s/socket", folder);
  snprintf(long_name, sizeof long_name, "%s/%s.json", folder, letters);
  assert_int_equal(close(open(file, O_WRONLY | O_CREAT, 0600)), 0);
  assert_int_equal(mkfifo(fifo, 0600), 0);
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  memcpy(address.sun_path, socket_path, strlen(socket_path) + 1);
  const int socket_fd = socket(AF_UNIX, SOCK_STREAM, 0);
  assert_int_equal(bind(socket_fd, (const struct sockaddr *)&address, sizeof address), 0);
  const struct {
    const char *path;
    int start_status, dump_status;
    const char *text; /* that the error has; NULL: the path */
  } bad[] = {
      {missing, PROF_E_NOT_FOUND, PROF_E_NOT_FOUND, NULL},
      {below_file, PROF_E_NOT_FOUND, PROF_E_NOT_FOUND, NULL},
      {folder, PROF_E_FILE_TYPE, PROF_E_FILE_TYPE, NULL},
      {"/dev/full", PROF_E_FILE_TYPE, PROF_E_FILE_TYPE, NULL},
      {"/dev/zero", PROF_E_FILE_TYPE, PROF_E_FILE_TYPE, NULL},
      {fifo, PROF_E_FILE_TYPE, PROF_E_IO, NULL}, /* nobody reads: waiting would stop the program */
      {socket_path, PROF_E_FILE_TYPE, PROF_E_FILE_TYPE, NULL},
      {very_long, PROF_E_INVALID, PROF_E_INVALID, "4095"},
      {long_name, PROF_E_INVALID, PROF_E_INVALID, "nnnn"},
      {"", PROF_E_INVALID, PROF_E_INVALID, "empty"},
  };
  for (int recording = 0; recording < 2; recording++) {
    events_record(1);
    record_scopes(3);
    if (!recording) assert_status(prof_stop(), PROF_OK);
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
      const prof_options options = {.size = sizeof options, .path = bad[i].path};
      int status = prof_start_with(&options);
      if (status != (recording && *bad[i].path && strlen(bad[i].path) < 4096 ? PROF_E_RUNNING
                     : recording                                             ? status
                                                                             : bad[i].start_status))
        fail_msg("start to '%.80s': %s, not %s: %s", bad[i].path, prof_status_name(status),
                 prof_status_name(bad[i].start_status), prof_last_error());
      if (!recording) assert_error_has(bad[i].text ? bad[i].text : bad[i].path);
      status = prof_dump(bad[i].path);
      if (status != bad[i].dump_status)
        fail_msg("dump to '%.80s': %s, not %s: %s", bad[i].path, prof_status_name(status),
                 prof_status_name(bad[i].dump_status), prof_last_error());
      assert_error_has(bad[i].text ? bad[i].text : bad[i].path);
      assert_int_equal(prof_level(), recording);
      assert_int_equal(health_now().recorded_count, 3);
    }
    if (recording) assert_status(prof_stop(), PROF_OK);
  }
  close(socket_fd);
  unlink(file);
  unlink(fifo);
  unlink(socket_path);
  assert_int_equal(entries_in(folder), 0);
}

/* The longest name that a file system takes: the capture beside it needs a longer one, and finds a
   way. */
static void the_longest_name_works(void **state) {
  (void)state;
  char path[PATH_ROOM], letters[256];
  memset(letters, 'n', sizeof letters - 1);
  letters[sizeof letters - 1] = '\0';
  snprintf(path, sizeof path, "%s/%s", folder, letters);
  const prof_options options = {.size = sizeof options, .path = path, .cap_bytes = 8 << 20};
  assert_status(prof_start_with(&options), PROF_OK);
  record_scopes(3);
  assert_int_equal(health_now().survives_kill, 1);
  assert_status(prof_stop(), PROF_OK);
  assert_status(prof_dump(NULL), PROF_OK);
  assert_int_equal(unlink(path), 0);
  assert_int_equal(entries_in(folder), 0);
  assert_status(prof_start_with(NULL), PROF_OK);
  assert_status(prof_stop(), PROF_OK);
}

static void what_is_no_capture_is_not_opened(void **state) {
  (void)state;
  char empty[PATH_ROOM], text[PATH_ROOM], missing[PATH_ROOM], below_file[PATH_ROOM + 16],
      fifo[PATH_ROOM];
  static char very_long[5001];
  memset(very_long, 'l', sizeof very_long - 1);
  snprintf(empty, sizeof empty, "%s/empty.prof", folder);
  snprintf(text, sizeof text, "%s/text.prof", folder);
  snprintf(missing, sizeof missing, "%s/missing.prof", folder);
  snprintf(below_file, sizeof below_file, "%s/x.prof", text);
  snprintf(fifo, sizeof fifo, "%s/fifo.prof", folder);
  assert_int_equal(close(open(empty, O_WRONLY | O_CREAT, 0600)), 0);
  assert_int_equal(mkfifo(fifo, 0600), 0);
  FILE *const file = fopen(text, "w");
  for (int i = 0; i < 10000; i++) fputs("no capture ", file);
  fclose(file);
  const struct {
    const char *path;
    int status;
    const char *text; /* that the error has */
  } bad[] = {{missing, PROF_E_NOT_FOUND, missing},
             {below_file, PROF_E_NOT_FOUND, below_file},
             {folder, PROF_E_FILE_TYPE, folder},
             {"/dev/zero", PROF_E_FILE_TYPE, "/dev/zero"},
             {fifo, PROF_E_FILE_TYPE, fifo},
             {empty, PROF_E_TRUNCATED, "0 bytes"},
             {text, PROF_E_NOT_CAPTURE, "not a capture"},
             {"", PROF_E_NOT_FOUND, ""},
             {very_long, PROF_E_INVALID, "llll"}};
  for (size_t i = 0; i < COUNT_OF(bad); i++) {
    prof_trace *trace = NULL;
    const int status = prof_trace_open(bad[i].path, &trace);
    if (status != bad[i].status)
      fail_msg("opening '%.80s': %s, not %s: %s", bad[i].path, prof_status_name(status),
               prof_status_name(bad[i].status), prof_last_error());
    assert_null(trace);
    assert_error_has(bad[i].text);
  }
}

/* ---- names ---- */

static void hostile_names_are_kept_or_cut_and_the_json_stays_valid(void **state) {
  (void)state;
  enum { MIB = 1 << 20 };
  char *const huge = malloc(MIB + 1);
  memset(huge, 'h', MIB);
  huge[MIB] = '\0';
  static const char *const names[] = {"",
                                      "\xff\xfe\xfd",
                                      "\xc0\xaf",
                                      "\xed\xa0\x80",
                                      "\xf4\x90\x80\x80",
                                      "cut \xe2\x82",
                                      "\"quoted\"",
                                      "back\\slash",
                                      "tab\tline\nbell\a",
                                      "\x7f\x1b[31m",
                                      "</script>",
                                      "%s%n%d",
                                      ("\xef\xbb\xbf"
                                       "mark"),
                                      "\xf0\x9f\x92\xa9 fine"};
  events_record(1);
  for (size_t i = 0; i < COUNT_OF(names); i++) {
    WITH_BASE_PROFILER(PROF_HOST, names[i], names[i], PROF_ARGS("text", names[i]), {});
    WITH_BASE_PROFILER(PROF_HOST, "args", "x", PROF_FMT("%s", names[i]), {});
    PROF_INSTANT(names[i], names[i], PROF_NO_ARGS);
    prof_flow_begin(i, names[i]);
  }
  WITH_BASE_PROFILER(PROF_HOST, huge, "x", PROF_NO_ARGS, {});
  WITH_BASE_PROFILER(PROF_HOST, "huge category", huge, PROF_NO_ARGS, {});
  WITH_BASE_PROFILER(PROF_HOST, "huge argument", "x", PROF_ARGS("text", huge, "n", 5), {});
  PROF_INSTANT(huge, huge, PROF_ARGS("text", huge));
  assert_status(prof_thread_set_name(huge), PROF_OK);
  assert_status(prof_process_set_name("\xff\"\n"), PROF_OK);
  events_stop_and_read();
  assert_event_total(4 * COUNT_OF(names) + 4);
  assert_int_equal(health_now().cut_text_count, 4);
  size_t cut = 0;
  for (size_t i = 0; i < events.count; i++) {
    const prof_event *const e = &events.items[i].e;
    cut += (e->flags & PROF_EVENT_CUT) != 0;
    assert_in_range(e->name_bytes, 0, 16384);
    assert_in_range(e->category_bytes, 0, 16384);
  }
  assert_int_equal(cut, 4);
  const seen_event *const argument = only_event("huge argument");
  assert_int_equal(argument->e.arg_count, 1); /* the text, cut; nothing is made up behind it */
  assert_in_range(argument->e.args[0].value.text.bytes, 8000, 16384);

  char *text = NULL;
  size_t bytes = 0;
  assert_status(prof_get_json(&text, &bytes), PROF_OK);
  assert_int_equal(strlen(text), bytes);
  for (size_t i = 0; i < bytes;) { /* well-formed UTF-8, and no control character but line ends */
    const unsigned char c = (unsigned char)text[i];
    const size_t more = c < 0x80                ? 0
                        : c >= 0xc2 && c < 0xe0 ? 1
                        : c >= 0xe0 && c < 0xf0 ? 2
                        : c >= 0xf0 && c < 0xf5 ? 3
                                                : 9;
    if (more == 9 || (c < 0x20 && c != '\n'))
      fail_msg("byte %zu is 0x%02x: %.40s", i, c, text + (i > 20 ? i - 20 : 0));
    for (size_t k = 1; k <= more; k++)
      if (((unsigned char)text[i + k] & 0xc0) != 0x80)
        fail_msg("byte %zu is 0x%02x", i + k, (unsigned char)text[i + k]);
    i += 1 + more;
  }
  prof_free(text);
  free(huge);
  assert_status(prof_thread_set_name("main"), PROF_OK);
  assert_status(prof_process_set_name("test"), PROF_OK);
}

/* ---- ends that no begin made ---- */

static void ends_without_a_begin_change_nothing_but_the_count_of_strays(void **state) {
  (void)state;
  static const uint64_t never[] = {
      12345, 1, 15, 16, UINT64_MAX, UINT64_MAX - 15, (uint64_t)1 << 63};
  prof_scope_end(12345);
  events_record(1);
  prof_health health = health_now();
  const uint64_t before = health_lost(&health), strays = health.stray_count;
  for (size_t i = 0; i < COUNT_OF(never); i++) prof_scope_end(never[i]);
  WITH_BASE_PROFILER(PROF_HOST, "around", "x", PROF_NO_ARGS, {
    for (size_t i = 0; i < COUNT_OF(never); i++) prof_scope_end(never[i]);
  });
  const uint64_t twice = prof_scope_begin(1, "twice", "x", NULL);
  prof_scope_end(twice);
  prof_scope_end(twice);
  const uint64_t outer = prof_scope_begin(1, "outer", "x", NULL);
  const uint64_t later = prof_scope_begin(1, "later", "x", NULL);
  prof_scope_end(outer); /* not nested: both stand */
  prof_scope_end(later);
  health = health_now();
  assert_int_equal(health_lost(&health), before);
  assert_int_equal(health.stray_count, strays + 2 * COUNT_OF(never) + 1);
  assert_int_equal(health.recorded_count, 4);
  events_stop_and_read();
  assert_int_equal(events.count, 4);
  only_event("later");
  only_event("around");
  only_event("twice");
  assert_int_equal(only_event("outer")->e.depth, 0);
  prof_scope_end(12345);
}

/* ---- the environment ---- */

static void wrong_variables_are_one_line_and_the_program_runs_on(void **state) {
  (void)state;
  char missing[PATH_ROOM], directory[PATH_ROOM];
  snprintf(missing, sizeof missing, "PROF_OUTPUT=%s/missing/trace.json", folder);
  snprintf(directory, sizeof directory, "PROF_OUTPUT=%s", folder);
  const struct {
    const char *variables[4];
    const char *named, *value;
  } wrong[] = {
      {{"PROF_LEVEL=7"}, "PROF_LEVEL", "7"},
      {{"PROF_LEVEL=x"}, "PROF_LEVEL", "x"},
      {{"PROF_LEVEL=-1"}, "PROF_LEVEL", "-1"},
      {{"PROF_LEVEL=1x"}, "PROF_LEVEL", "1x"},
      {{"PROF_LEVEL=99999999999999999999"}, "PROF_LEVEL", "99999999999999999999"},
      {{"PROF_MEMORY=2"}, "PROF_MEMORY", "2"},
      {{"PROF_MEMORY=1", "PROF_MEMORY_MIN=4k"}, "PROF_MEMORY_MIN", "4k"},
      {{"PROF_MEMORY=1", missing}, "PROF_OUTPUT", "missing"},
      {{"PROF_LEVEL=1", missing}, "PROF_OUTPUT", "missing"},
      {{"PROF_LEVEL=1", directory}, "PROF_OUTPUT", folder},
      {{"PROF_LEVEL=1", "PROF_POLICY=best"}, "PROF_POLICY", "best"},
      {{"PROF_LEVEL=1", "PROF_POLICY=stream"}, "PROF_POLICY", "stream"},
      {{"PROF_LEVEL=1", "PROF_CLOCK=sundial"}, "PROF_CLOCK", "sundial"},
      {{"PROF_LEVEL=1", "PROF_CAP_BYTES=12"}, "PROF_CAP_BYTES", "12"},
      {{"PROF_LEVEL=1", "PROF_HELPER_THREAD=yes"}, "PROF_HELPER_THREAD", "yes"},
      {{"PROF_LEVEL=1", "PROF_BUDGET_PERMILLE=1001"}, "PROF_BUDGET_PERMILLE", "1001"},
      {{"PROF_LEVEL=1", "PROF_BUDGET_EVENTS=many"}, "PROF_BUDGET_EVENTS", "many"},
      {{"PROF_LEVEL=1", "PROF_BUDGET_ACTION=stop"}, "PROF_BUDGET_ACTION", "stop"},
      {{"PROF_LEVEL=1", "PROF_BUDGET_EVENTS=18446744073709551616"},
       "PROF_BUDGET_EVENTS",
       "18446744073709551616"},
      {{"PROF_LEVEL=1", "PROF_MUTE=a,,b"}, "PROF_MUTE", "a,,b"},
      {{"PROF_LEVEL=1", "PROF_MUTE=a, @"}, "PROF_MUTE", "'@' is empty"},
  };
  for (size_t i = 0; i < COUNT_OF(wrong); i++) {
    char said[4096];
    const int status = run_part("program", wrong[i].variables, said, sizeof said);
    const char *const end = strchr(said, '\n');
    if (status != 0 || strncmp(said, "prof: ", 6) != 0 || !end || end[1] != '\0' ||
        !strstr(said, wrong[i].named) || !strstr(said, wrong[i].value))
      fail_msg("%s %s: status %x, said '%s'; wanted is one line with %s and %s",
               wrong[i].variables[0], wrong[i].variables[1] ? wrong[i].variables[1] : "",
               (unsigned)status, said, wrong[i].named, wrong[i].value);
  }
  assert_int_equal(entries_in(folder), 0);
}

static int file_has(const char *path, const char *text) {
  static char bytes[65536];
  FILE *const file = fopen(path, "r");
  assert_non_null(file);
  bytes[fread(bytes, 1, sizeof bytes - 1, file)] = '\0';
  fclose(file);
  return strstr(bytes, text) != NULL;
}

static void right_variables_record_without_a_word(void **state) {
  (void)state;
  char output[PATH_ROOM], said[4096];
  snprintf(output, sizeof output, "PROF_OUTPUT=%s/env.json", folder);
  const char *const variables[] = {"PROF_LEVEL=2", output, "PROF_POLICY=stream", NULL};
  assert_int_equal(run_part("program", variables, said, sizeof said), 0);
  assert_string_equal(said, "");
  const char *const path = strchr(output, '=') + 1;
  assert_true(size_of(path) > 1000);
  assert_int_equal(unlink(path), 0);
  const char *const muted[] = {"PROF_LEVEL=2",
                               output,
                               "PROF_MUTE=@nothing, sco*@x ,nobody,a\\,b@c,at\\@d\\\\,n\\e",
                               "PROF_BUDGET_PERMILLE=10",
                               "PROF_BUDGET_ACTION=mute",
                               NULL};
  assert_int_equal(run_part("program", muted, said, sizeof said), 0);
  assert_string_equal(
      said,
      "prof: PROF_MUTE: no scope was named 'n\\e', 'at@d\\', 'a,b@c', 'nobody', '@nothing'\n");
  assert_true(file_has(path, "\"muted\":100,"));
  assert_int_equal(unlink(path), 0);
  const char *const without_output[] = {"PROF_LEVEL=1", NULL},
                    *const off[] = {"PROF_LEVEL=0", output, NULL},
                    *const empty[] = {"PROF_LEVEL=", NULL};
  assert_int_equal(run_part("program", without_output, said, sizeof said), 0);
  assert_string_equal(said, "");
  assert_int_equal(run_part("program", off, said, sizeof said), 0);
  assert_string_equal(said, "");
  assert_int_equal(run_part("program", empty, said, sizeof said), 0);
  assert_string_equal(said, "");
  assert_int_equal(run_part("program_that_starts_otherwise", variables, said, sizeof said), 0);
  assert_string_equal(said, "");
}

static void a_cap_that_was_refused_is_said_where_the_environment_started(void **state) {
  (void)state;
  char said[4096];
  const char *const variables[] = {"PROF_LEVEL=2", "PROF_CAP_BYTES=8589934592", NULL};
  const int status = run_part("program_in_little_space", variables, said, sizeof said);
  if (WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED) skip();
  assert_int_equal(status, 0);
  const char *const end = strchr(said, '\n');
  if (strncmp(said, "prof: PROF_LEVEL: the cap is ", 29) != 0 || !end || end[1] != '\0' ||
      !strstr(said, "not 8589934592: RLIMIT_AS is 1073741824 bytes"))
    fail_msg("said '%s'", said);
}

static void a_program_does_not_lower_the_level_of_the_environment(void **state) {
  (void)state;
  char said[4096];
  const char *const variables[] = {"PROF_LEVEL=2", NULL};
  assert_int_equal(run_part("program_that_asks_for_less", variables, said, sizeof said), 0);
  assert_string_equal(said, "");
}

static const part parts[] = {
    PART(program),
    PART(program_in_little_space),
    PART(program_that_starts_otherwise),
    PART(program_that_asks_for_less),
};

int main(int argc, char **argv) {
  if (is_part(argc, argv)) return run_as_part(parts, COUNT_OF(parts), argv);
  const struct CMUnitTest tests[] = {
      TEST(bad_paths_are_refused_with_their_name),
      TEST(the_longest_name_works),
      TEST(what_is_no_capture_is_not_opened),
      TEST(a_cap_that_was_refused_is_said_where_the_environment_started),
      TEST(hostile_names_are_kept_or_cut_and_the_json_stays_valid),
      TEST(ends_without_a_begin_change_nothing_but_the_count_of_strays),
      TEST(wrong_variables_are_one_line_and_the_program_runs_on),
      TEST(right_variables_record_without_a_word),
      TEST(a_program_does_not_lower_the_level_of_the_environment),
  };
  return cmocka_run_group_tests_name("bad input", tests, make_folder, remove_folder);
}
