/* The prof command, as its users run it: what it prints, its exit status, and what it says when
   something is wrong. */
#define _GNU_SOURCE
#include "run_command.h"

#include <sys/stat.h>

#include "../../src/base/display.h"
#include "device_capture.h"
#include "memory_capture.h"
#include "small_capture.h"

static int set_up(void **state) {
  (void)state;
  if (!make_folder()) return -1;
  capture c;
  small_capture(&c);
  prof_i_thread_slot *const slot =
      capture_slot(&c, 9, "evil \x1b[31m\xc2\x9b\xe2\x80\xae\xff name");
  slot->tid = 109;
  int status = write_capture(&c, "small.prof");
  capture_end(&c);
  memory_capture(&c, "evil \x1b[31m<&>\xff");
  if (status == 0) status = write_capture(&c, "memory.prof");
  capture_end(&c);
  return status;
}

static int tear_down(void **state) {
  static const char *const names[] = {"small.prof", "out.json",   "out.json.gz", "copy.prof",
                                      "text",       "stderr",     "memory.prof", "memory.prof.2",
                                      "out.svg",    "device.prof"};
  (void)state;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    char path[PATH_MAX];
    path_of(path, names[i]);
    unlink(path);
  }
  return rmdir(own.folder);
}

static void info_tells_what_the_capture_holds(void **state) {
  (void)state;
  need_the_command();
  assert_int_equal(run("info small.prof"), 0);
  assert_says("test (pid 0) on host");
  assert_says("14 scopes, 2 open");
  assert_says("1 unfinished");
  assert_says("still open");
  assert_says("taker");
  assert_says("evil \\x1b[31m\\xc2\\x9b\\xe2\\x80\\xae\\xff name");
}

/* A ring has overwritten them. */
static void info_tells_losses_without_a_thread(void **state) {
  (void)state;
  need_the_command();
  capture c;
  small_capture(&c);
  capture_header(&c)->unattributed[PROF_LOSS_OVERWRITTEN] = 7;
  const int status = write_capture(&c, "copy.prof");
  capture_end(&c);
  assert_int_equal(status, 0);
  assert_int_equal(run("info copy.prof"), 0);
  assert_says("\n  7 of the 15 lost are not told by thread: their records are gone\n");
  assert_int_equal(run("info small.prof"), 0);
  assert_null(strstr(own.output, "not told by thread"));
}

/* A program may mute and unmute for as long as it runs. */
static void info_lists_so_many_changes_and_counts_the_rest(void **state) {
  (void)state;
  enum { CHANGES = 100, SHOWN = 64 };
  const prof_options options = {.size = sizeof options, .level = 1};
  const prof_dump_options as_capture = {.size = sizeof as_capture, .format = PROF_FORMAT_CAPTURE};
  char path[PATH_MAX];
  need_the_command();
  assert_int_equal(prof_start_with(&options), PROF_OK);
  WITH_BASE_PROFILER(PROF_HOST, "victim", "test", PROF_NO_ARGS, {});
  for (int i = 0; i < CHANGES; i++)
    assert_int_equal(prof_mute("victim", NULL, i % 2 == 0), PROF_OK);
  assert_int_equal(prof_stop(), PROF_OK);
  path_of(path, "copy.prof");
  assert_int_equal(prof_dump_with(path, &as_capture), PROF_OK);
  assert_int_equal(run("info copy.prof"), 0);
  assert_says("\nchanges      100\n");
  assert_says("\n  ... and 36 more\n");
  int lines = 0;
  for (const char *at = own.output; (at = strstr(at, "victim")) != NULL; at++) lines++;
  assert_int_equal(lines, SHOWN);
}

static void info_tells_threads_from_streams(void **state) {
  capture c;
  (void)state;
  need_the_command();
  assert_int_equal(run("info small.prof"), 0);
  assert_null(strstr(own.output, "of devices"));
  device_capture(&c);
  assert_int_equal(write_capture(&c, "device.prof"), 0);
  capture_end(&c);
  assert_int_equal(run("info device.prof"), 0);
  assert_says("threads      2, and 1 stream of devices\n");
  assert_int_equal(run("table device.prof --by kernel,device"), 0);
  assert_says("Name");
}

static void table_groups_sorts_and_limits(void **state) {
  (void)state;
  need_the_command();
  assert_int_equal(run("table small.prof"), 0);
  assert_says("; 2 scopes had not ended yet");
  assert_says("Category");
  assert_says("Self time total");
  assert_int_equal(
      run("table small.prof --by name,shape,device,thread --sort calls --rows 2 --level 1"), 0);
  assert_says("Input Shapes");
  assert_says("not shown");
  assert_int_equal(run("table --rows all --category kernel small.prof"), 0);
  assert_says("1 group\n");
}

static void dump_writes_each_format(void **state) {
  (void)state;
  need_the_command();
  assert_int_equal(run("dump small.prof -o out.json"), 0);
  assert_int_equal(run("dump small.prof -o out.json --format raf"), 0);
  assert_int_equal(run("dump --format chrome -o out.json.gz small.prof"), 0);
  assert_int_equal(run("dump small.prof --output copy.prof"), 0);
  assert_int_equal(run("info copy.prof"), 0);
  assert_says("14 scopes, 2 open");
}

static bool is_there(const char *name) {
  char path[PATH_MAX];
  path_of(path, name);
  return access(path, F_OK) == 0;
}

static void memory_reports_with_a_plot(void **state) {
  (void)state;
  need_the_command();
  assert_int_equal(run("memory memory.prof"), 0);
  assert_says("Pool 1: evil \\x1b[31m<&>\xef\xbf\xbd on cuda:0");
  assert_says("12582912");
  assert_says("Pool 2: query");
  assert_int_equal(run("memory memory.prof --pool 2 --rows all --width 60"), 0);
  if (strstr(own.output, "Pool 1")) fail_msg("--pool 2 shows pool 1:\n%s", own.output);
  assert_says("2 samples");
  assert_int_equal(run("memory small.prof"), 0);
  assert_says("has no memory");
  assert_says("prof_pool_create()");
}

static void memory_draws_as_the_terminal_can(void **state) {
  (void)state;
  need_the_command();
  setenv("LC_ALL", "C", 1);
  assert_int_equal(run("memory memory.prof --pool 2"), 0);
  assert_says("# used   - allocated");
  assert_null(strstr(own.output, "\u2588"));
  setenv("LC_ALL", "C.UTF-8", 1);
  assert_int_equal(run("memory memory.prof --pool 2"), 0);
  assert_says("\u2588 used");
  unsetenv("LC_ALL");
  setenv("COLUMNS", "60", 1);
  assert_int_equal(run("memory memory.prof --pool 2"), 0);
  for (const char *line = own.output; *line; line += strcspn(line, "\n") + 1)
    assert_in_range(prof_i_display_width(line, strcspn(line, "\n")), 0, 60);
  unsetenv("COLUMNS");
}

static void memory_writes_a_picture_or_nothing(void **state) {
  (void)state;
  need_the_command();
  assert_int_equal(run("memory memory.prof --svg out.svg"), 0);
  assert_says("of 2 pools number 1 is drawn");
  assert_int_equal(
      run("memory memory.prof --pool 1 --svg out.svg; status=$?; cat out.svg; (exit $status)"), 0);
  assert_says(
      "<title>Memory of evil \\x1b[31m&lt;&amp;&gt;\xef\xbf\xbd on cuda:0 over time</title>");
  assert_says("peak of used: 12.00 MiB at 300.000us");
  assert_says("</svg>\n");
  char path[PATH_MAX];
  path_of(path, "out.svg");
  unlink(path);
  assert_int_equal(run("memory small.prof --svg out.svg"), 1);
  assert_says("nothing to draw");
  assert_int_equal(run("memory memory.prof --pool 3 --svg out.svg"), 1);
  assert_says("no pool 3");
  assert_false(is_there("out.svg"));
  assert_int_equal(run("memory memory.prof --svg missing/out.svg"), 1);
  assert_says("missing");
}

/* A file that may grow to 1 KiB: the write fails, and half a picture is not there. */
static void memory_leaves_no_half_picture(void **state) {
  (void)state;
  need_the_command();
  char words[2 * PATH_MAX];
  snprintf(words, sizeof words,
           "--version >/dev/null; (ulimit -f 1; '%s' memory memory.prof --pool 1 --svg out.svg)",
           own.command);
  const int status = run(words);
  assert_int_equal(status, 1);
  assert_false(is_there("out.svg"));
}

static void memory_prints_samples_as_raf_does(void **state) {
  (void)state;
  need_the_command();
  assert_int_equal(run("memory memory.prof --raf"), 0);
  assert_string_equal(own.output,
                      "Numbers are the in MBs.\n#Trace\t#Tag  \t used\t alloc\n"
                      "     0\tloaded\t4.000\t16.000\n     1\t-     \t0.001\t16.000\n");
  assert_int_equal(run("memory small.prof --raf"), 1);
  assert_says("PROFILE_MEMORY()");
}

/* Two devices that were asked, each with its title. */
static void samples_of_several_devices_say_whose_they_are(void **state) {
  (void)state;
  need_the_command();
  capture c;
  capture_begin(&c, 192 << 10);
  prof_i_head *const meta = capture_meta(&c);
  memory_sites(&c, meta);
  prof_i_pool_state *pools[2];
  for (uint32_t i = 0; i < 2; i++) {
    uint64_t *const words = (uint64_t *)((unsigned char *)meta + meta->cursor);
    pools[i] = memory_pool(&c, meta, i + 1, PROF_MEMORY_QUERY, 1, "query");
    words[4] = (uint64_t)PROF_DEVICE_CUDA | (uint64_t)i << 32;
  }
  prof_i_head *const chunk = capture_chunk(&c, PROF_I_UNIT_BYTES, 1);
  for (uint64_t i = 0; i < 2; i++)
    memory_event(chunk, pools[i], memory_at(100 * (i + 1)), PROF_I_VERB_SAMPLE, 4, MEMORY_MIB,
                 2 * MEMORY_MIB);
  assert_int_equal(write_capture(&c, "memory.prof.2"), 0);
  capture_end(&c);
  assert_int_equal(run("memory memory.prof.2 --raf"), 0);
  assert_string_equal(own.output,
                      "# device 2:0\n"
                      "Numbers are the in MBs.\n#Trace\t#Tag  \t used\talloc\n"
                      "     0\tloaded\t1.000\t2.000\n\n"
                      "# device 2:1\n"
                      "Numbers are the in MBs.\n#Trace\t#Tag  \t used\talloc\n"
                      "     0\tloaded\t1.000\t2.000\n");
}

static void help_and_version_go_to_stdout(void **state) {
  (void)state;
  need_the_command();
  static const char *const words[] = {"help 2>&-", "--help 2>&-", "-h 2>&-"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    assert_int_equal(run(words[i]), 0);
    assert_says("usage: prof COMMAND");
    assert_says("Exit status");
  }
  assert_int_equal(run("info --help 2>&-"), 0);
  assert_says("usage: prof info FILE [--json]\n");
  assert_int_equal(run("help info 2>&-"), 0);
  assert_says("usage: prof info FILE [--json]\n");
  assert_int_equal(run("table --help 2>&-"), 0); /* word for word: tests/python/test_table.py */
  assert_says("usage: prof table");
  assert_int_equal(run("--version"), 0);
  assert_says("prof " PROF_VERSION_STRING "\n");
}

static void wrong_words_exit_2_and_say_which(void **state) {
  (void)state;
  need_the_command();
  static const struct {
    const char *words, *says;
  } cases[] = {{"", "usage"},
               {"tabel small.prof", "tabel"},
               {"info", "capture"},
               {"info a b", "capture"},
               {"table", "capture"},
               {"table small.prof --by color", "color"},
               {"table small.prof --by name,thread,name", "has twice name"},
               {"table small.prof --by name --by name", "has twice name"},
               {"table small.prof --by arg:a,arg:a", "has twice arg:a"},
               {"diff small.prof small.prof --by name,name", "has twice name"},
               {"report small.prof -o out.html --by kernel,kernel", "has twice kernel"},
               {"table small.prof --sort size", "size"},
               {"table small.prof --rows many", "many"},
               {"table small.prof --rows -2", "-2"},
               {"table small.prof --stack-frames few", "few"},
               {"table small.prof --level 3", "3"},
               {"table small.prof --colour", "colour"},
               {"dump small.prof", "-o"},
               {"dump -o out.json", "capture"},
               {"dump small.prof -o out.json --format pdf", "pdf"},
               {"memory", "capture"},
               {"memory memory.prof --pool 0", "--pool"},
               {"memory memory.prof --rows few", "few"},
               {"memory memory.prof --width 39", "39"},
               {"memory memory.prof --svg", "--svg"},
               {"memory memory.prof --svg memory.prof", "the capture itself"},
               {"memory memory.prof --svg -", "/dev/stdout"},
               {"memory memory.prof --svg out.svg --raf", "not both"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    assert_int_equal(run(cases[i].words), 2);
    assert_says(cases[i].says);
  }
}

static void what_cannot_be_done_exits_1_and_says_why(void **state) {
  (void)state;
  need_the_command();
  char path[PATH_MAX];
  path_of(path, "text");
  FILE *const file = fopen(path, "w");
  assert_non_null(file);
  fputs("a text, and no trace\n", file);
  fclose(file);
  assert_int_equal(run("info missing.prof"), 1);
  assert_says("missing.prof: No such file or directory\n"); /* once */
  assert_int_equal(run("table text"), 1);
  assert_says("not a prof capture");
  assert_int_equal(run("memory text"), 1);
  assert_says("not a prof capture");
  assert_int_equal(run("memory missing.prof"), 1);
  assert_says("missing.prof");
  assert_int_equal(run("memory memory.prof --pool 3"), 1);
  assert_says("there is no pool 3: the capture has 2");
  assert_int_equal(run("info /dev/zero"), 1);
  assert_says("regular file");
  assert_int_equal(run("dump small.prof -o missing/out.json"), 1);
  assert_says("missing");
  if (access("/dev/full", W_OK) == 0) {
    assert_int_equal(run("table small.prof >/dev/full"), 1);
    assert_says("cannot write");
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(info_tells_what_the_capture_holds),
      cmocka_unit_test(info_tells_losses_without_a_thread),
      cmocka_unit_test(info_lists_so_many_changes_and_counts_the_rest),
      cmocka_unit_test(info_tells_threads_from_streams),
      cmocka_unit_test(table_groups_sorts_and_limits),
      cmocka_unit_test(dump_writes_each_format),
      cmocka_unit_test(help_and_version_go_to_stdout),
      cmocka_unit_test(memory_reports_with_a_plot),
      cmocka_unit_test(memory_draws_as_the_terminal_can),
      cmocka_unit_test(memory_writes_a_picture_or_nothing),
      cmocka_unit_test(memory_leaves_no_half_picture),
      cmocka_unit_test(memory_prints_samples_as_raf_does),
      cmocka_unit_test(samples_of_several_devices_say_whose_they_are),
      cmocka_unit_test(wrong_words_exit_2_and_say_which),
      cmocka_unit_test(what_cannot_be_done_exits_1_and_says_why),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
