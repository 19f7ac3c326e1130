/* The prof command, as its users run it: what it prints, its exit status, and what it says when something is wrong. */
#define _GNU_SOURCE
#include <limits.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "small_capture.h"
#include "trace_checks.h"

static struct {
  char command[PATH_MAX];
  char folder[PATH_MAX];
  char output[1 << 20]; /* of the last run: stdout, then stderr */
} own;

static void path_of(char path[PATH_MAX], const char *name) {
  if (snprintf(path, PATH_MAX, "%s/%s", own.folder, name) >= PATH_MAX) abort();
}

/* Runs the command with these words by the shell, in the folder; returns its exit status. */
static int run(const char *words) {
  char line[3 * PATH_MAX];
  snprintf(line, sizeof line, "cd '%s' && '%s' %s 2>stderr; status=$?; cat stderr; rm -f stderr; exit $status", own.folder,
           own.command, words);
  FILE *const pipe = popen(line, "r");
  assert_non_null(pipe);
  const size_t count = fread(own.output, 1, sizeof own.output - 1, pipe);
  own.output[count] = '\0';
  const int status = pclose(pipe);
  assert_true(WIFEXITED(status));
  return WEXITSTATUS(status);
}

#define assert_says(text)                                                               \
  do {                                                                                  \
    if (!strstr(own.output, text)) fail_msg("\"%s\" is not in:\n%s", text, own.output); \
  } while (0)

static int set_up(void **state) {
  (void)state;
  const char *const build = getenv("PROF_TEST_BUILD_DIR"), *const base = getenv("TMPDIR");
  snprintf(own.command, sizeof own.command, "%s/prof", build ? build : ".");
  snprintf(own.folder, sizeof own.folder, "%s/prof-command-XXXXXX", base ? base : "/tmp");
  if (!mkdtemp(own.folder)) return -1;
  capture c;
  char path[PATH_MAX];
  small_capture(&c);
  prof_i_slot *const slot = capture_slot(&c, 9, "evil \x1b[31m\xc2\x9b\xe2\x80\xae\xff name");
  slot->tid = 109;
  path_of(path, "small.prof");
  FILE *const file = fopen(path, "wb");
  if (!file || fwrite(c.bytes, 1, c.count, file) != c.count || fclose(file) != 0) return -1;
  capture_end(&c);
  return 0;
}

static int tear_down(void **state) {
  static const char *const names[] = {"small.prof", "out.json", "out.json.gz", "copy.prof", "text", "stderr"};
  (void)state;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    char path[PATH_MAX];
    path_of(path, names[i]);
    unlink(path);
  }
  return rmdir(own.folder);
}

static void need_the_command(void) {
  if (access(own.command, X_OK) == 0) return;
  print_message("skip: %s is not built (PROF_TOOLS is off)\n", own.command);
  skip();
}

static void info_tells_what_the_capture_holds(void **state) {
  (void)state;
  need_the_command();
  assert_int_equal(run("info small.prof"), 0);
  assert_says("test (pid 0) on host");
  assert_says("14 scopes, 2 open");
  assert_says("2 unfinished");
  assert_says("still open");
  assert_says("taker");
  assert_says("evil \\x1b[31m\\xc2\\x9b\\xe2\\x80\\xae\\xff name");
}

static void table_groups_sorts_and_limits(void **state) {
  (void)state;
  need_the_command();
  assert_int_equal(run("table small.prof"), 0);
  assert_says("Category");
  assert_says("Self time total");
  assert_int_equal(run("table small.prof --by name,shape,device,thread --sort calls --rows 2 --level 1"), 0);
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

static void help_and_version_go_to_stdout(void **state) {
  (void)state;
  need_the_command();
  static const char *const words[] = {"help 2>&-", "--help 2>&-", "-h 2>&-", "table --help 2>&-"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    assert_int_equal(run(words[i]), 0);
    assert_says("usage: prof COMMAND");
    assert_says("Exit status");
  }
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
               {"table small.prof --sort size", "size"},
               {"table small.prof --rows many", "many"},
               {"table small.prof --rows -1", "-1"},
               {"table small.prof --level 3", "3"},
               {"table small.prof --colour", "colour"},
               {"dump small.prof", "-o"},
               {"dump -o out.json", "capture"},
               {"dump small.prof -o out.json --format pdf", "pdf"}};
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
  fputs("{\"traceEvents\": []}\n", file);
  fclose(file);
  assert_int_equal(run("info missing.prof"), 1);
  assert_says("missing.prof");
  assert_int_equal(run("table text"), 1);
  assert_says("not a prof capture");
  assert_says("give the .prof file");
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
      cmocka_unit_test(info_tells_what_the_capture_holds), cmocka_unit_test(table_groups_sorts_and_limits),
      cmocka_unit_test(dump_writes_each_format),           cmocka_unit_test(help_and_version_go_to_stdout),
      cmocka_unit_test(wrong_words_exit_2_and_say_which),  cmocka_unit_test(what_cannot_be_done_exits_1_and_says_why),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
