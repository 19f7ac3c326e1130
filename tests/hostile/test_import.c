/* Files that are no traces, or are cut, changed, hostile, or cannot be written. The command prof
   import says what is wrong in a second. It leaves a sound capture or nothing, and no file under
   another name. */
#define _GNU_SOURCE
#include <dirent.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hang_guard.h"
#include "read_everything.h"

/* Each run starts a process, which takes 80 ms with a sanitizer. */
enum { PATH_ROOM = 512, RUNS = WITH_ASAN ? 60 : 250 };

static const char whole[] =
    "{\"schemaVersion\": 1, \"deviceProperties\": [{\"id\": 0, \"name\": \"a \\\"device\\\"\"}],\n"
    " \"distributedInfo\": {\"backend\": \"gloo\", \"rank\": 1, \"world_size\": 2}, "
    "\"baseTimeNanoseconds\": 1735689600000000000, \"with_flops\": 1,\n"
    " \"traceEvents\": [\n"
    "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":100,\"tid\":100,\"args\":{\"name\":\"thread "
    "100 (python)\"}},\n"
    "{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"ProfilerStep#1\",\"pid\":100,\"tid\":100,"
    "\"ts\":1000.001,\"dur\":900.5,\"args\":{}},\n"
    "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"aten::mm\",\"pid\":100,\"tid\":100,\"ts\":1010."
    "125,\"dur\":500.25,\"args\":{\"Sequence number\":7,\"Input Dims\":[[2,3],[3,4],[]],"
    "\"Input type\":[\"float\",\"long int\",\"\"],\"Call stack\":\"a(1): f;b(2): g\"}},\n"
    "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":100,\"tid\":100,"
    "\"ts\":1020,\"dur\":5,\"args\":{\"correlation\":55}},\n"
    "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"sgemm\",\"pid\":0,\"tid\":7,\"ts\":1030,\"dur\":"
    "10,\"args\":{\"device\":0,\"stream\":7,\"correlation\":55,\"grid\":[1,2,3],\"occ\":0.5}},\n"
    "{\"ph\":\"s\",\"id\":1,\"pid\":100,\"tid\":100,\"ts\":1011,\"cat\":\"fwdbwd\",\"name\":"
    "\"fwdbwd\"},\n"
    "{\"ph\":\"f\",\"id\":1,\"pid\":100,\"tid\":100,\"ts\":1012,\"cat\":\"fwdbwd\",\"name\":"
    "\"fwdbwd\",\"bp\":\"e\"},\n"
    "{\"ph\":\"i\",\"s\":\"t\",\"cat\":\"cpu_instant_event\",\"name\":\"[memory]\",\"pid\":100,"
    "\"tid\":100,\"ts\":1013,\"args\":{\"Addr\":4096,\"Bytes\":64,\"Total Allocated\":64,\"Device "
    "Type\":0,"
    "\"Device Id\":-1}},\n"
    "{\"ph\":\"C\",\"name\":\"queue\",\"pid\":100,\"tid\":100,\"ts\":1014,\"args\":{\"a\":1.5,"
    "\"b\":2}},\n"
    "{\"ph\":\"B\",\"name\":\"begun\",\"pid\":100,\"tid\":101,\"ts\":1015},{\"ph\":\"B\",\"name\":"
    "\"in "
    "it\",\"pid\":100,\"tid\":101,\"ts\":1016},{\"ph\":\"E\",\"pid\":100,\"tid\":101,\"ts\":1017}\n"
    "], \"traceName\": \"t.json\"}\n";

static struct {
  char folder[64], command[PATH_ROOM], trace[PATH_ROOM], output[PATH_ROOM];
  char said[8192]; /* by the last run */
} own;

static int set_up(void **state) {
  const char *const build = getenv("PROF_TEST_BUILD_DIR");
  (void)state;
  snprintf(own.command, sizeof own.command, "%s/prof", build ? build : ".");
  snprintf(own.folder, sizeof own.folder, "/tmp/prof-import-XXXXXX");
  if (!mkdtemp(own.folder)) return -1;
  snprintf(own.trace, sizeof own.trace, "%s/t.json", own.folder);
  snprintf(own.output, sizeof own.output, "%s/t.prof", own.folder);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  unlink(own.trace);
  unlink(own.output);
  return rmdir(own.folder); /* fails where something was left behind */
}

static void write_trace(const void *bytes, size_t count) {
  FILE *const file = fopen(own.trace, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, count, file), count);
  assert_int_equal(fclose(file), 0);
}

static void become_the_command(int to, const char *output, rlim_t file_bytes) {
  const struct rlimit limit = {file_bytes, file_bytes};
  dup2(to, STDOUT_FILENO);
  dup2(to, STDERR_FILENO);
  if (file_bytes != RLIM_INFINITY) setrlimit(RLIMIT_FSIZE, &limit);
  execl(own.command, "prof", "import", own.trace, "-o", output, (char *)NULL);
  _exit(99);
}

/* Its exit status. It must not be killed, and takes 10 s at most. */
static int import_to(const char *output, rlim_t file_bytes) {
  int ends[2], status;
  assert_int_equal(pipe(ends), 0);
  const pid_t pid = fork();
  if (pid == 0) {
    hang_guard();
    become_the_command(ends[1], output, file_bytes);
  }
  close(ends[1]);
  size_t count = 0;
  for (ssize_t got; count < sizeof own.said - 1 &&
                    (got = read(ends[0], own.said + count, sizeof own.said - 1 - count)) > 0;)
    count += (size_t)got;
  own.said[count] = '\0';
  close(ends[0]);
  assert_int_equal(waitpid(pid, &status, 0), pid);
  if (!WIFEXITED(status)) fail_msg("killed by signal %d: %s", WTERMSIG(status), own.said);
  return WEXITSTATUS(status);
}

static int import(const void *bytes, size_t count) {
  write_trace(bytes, count);
  unlink(own.output);
  return import_to(own.output, RLIM_INFINITY);
}

static int import_text(const char *text) { return import(text, strlen(text)); }

static bool is_written(void) { return access(own.output, F_OK) == 0; }

/* Nothing beside the trace and its capture. */
static void nothing_is_left(void) {
  DIR *const entries = opendir(own.folder);
  assert_non_null(entries);
  for (const struct dirent *e; (e = readdir(entries)) != NULL;)
    if (e->d_name[0] != '.' || strlen(e->d_name) > 2)
      if (strcmp(e->d_name, "t.json") != 0 && strcmp(e->d_name, "t.prof") != 0)
        fail_msg("'%s' was left", e->d_name);
  closedir(entries);
}

/* The capture is sound; how many scopes there are in it. */
static uint64_t scopes(void) {
  prof_trace *trace;
  prof_trace_info info = {.size = sizeof info};
  assert_int_equal(prof_trace_open(own.output, &trace), PROF_OK);
  prof_trace_info_get(trace, &info);
  assert_int_equal(info.bad_count, 0);
  read_events(trace);
  read_tables(trace);
  prof_trace_destroy(trace);
  return info.scope_count;
}

#define assert_says(text)                                                           \
  do {                                                                              \
    if (!strstr(own.said, text)) fail_msg("\"%s\" is not in:\n%s", text, own.said); \
  } while (0)

static void need_the_command(void) {
  if (access(own.command, X_OK) == 0 && (import_text("[]"), !strstr(own.said, "yajl"))) return;
  print_message("skip: %s is not built, or has no yajl\n", own.command);
  skip();
}

/* ---- cut and changed ---- */

static void whatever_is_cut_off_the_rest_is_taken(void **state) {
  (void)state;
  need_the_command();
  assert_int_equal(import(whole, sizeof whole - 1), 0);
  assert_int_equal(scopes(), 6);
  uint64_t before = 0;
  for (size_t i = 0; i < RUNS; i++) {
    const size_t count = i * (sizeof whole - 3) / RUNS;
    assert_int_equal(import(whole, count), 1);
    const uint64_t now = is_written() ? scopes() : 0;
    if (now < before)
      fail_msg("%llu scopes of %zu bytes, %llu of fewer", (unsigned long long)now, count,
               (unsigned long long)before);
    before = now;
    nothing_is_left();
  }
  assert_int_equal(before, 6);
  assert_says("ends in the middle, behind ");
}

static void whatever_byte_is_changed_it_ends_and_what_it_leaves_is_sound(void **state) {
  char changed[sizeof whole];
  uint32_t random = 1;
  (void)state;
  need_the_command();
  for (int i = 0; i < RUNS; i++) {
    memcpy(changed, whole, sizeof whole);
    for (int n = 0; n < 1 + i % 3; n++) {
      random = random * 1664525 + 1013904223;
      const size_t at = (random >> 8) % (sizeof whole - 1);
      random = random * 1664525 + 1013904223;
      changed[at] = i % 2 ? (char)(random >> 24) : "{}[]\",:9-.eE\\u\x01\xff"[(random >> 24) % 16];
    }
    const int status = import(changed, sizeof whole - 1);
    if (status != 0 && status != 1) fail_msg("status %d: %s", status, own.said);
    if (is_written()) scopes();
    nothing_is_left();
  }
}

/* ---- what is no trace ---- */

static void refuses(const char *text, const char *says) {
  assert_int_equal(import_text(text), 1);
  assert_says(says);
  assert_false(is_written());
  nothing_is_left();
}

static void what_is_no_trace_is_refused_with_the_reason(void **state) {
  (void)state;
  need_the_command();
  refuses("", "is empty");
  refuses("PROF\x01\x02", "is no JSON");
  refuses("{\"a\": 1}", "has no traceEvents");
  refuses("{\"traceEvents\": 12}", "has no traceEvents");
  refuses("12", "has no traceEvents");
  refuses("<html>", "is no JSON");
  refuses("\x1f\x8b\x08", "before anything could be unpacked");
  refuses("{\"traceEvents\": [", "ends before the first event");
}

/* ---- events that cannot be ---- */

static void takes(const char *text, int status, uint64_t count, const char *says) {
  assert_int_equal(import_text(text), status);
  assert_int_equal(scopes(), count);
  if (says) assert_says(says);
}

#define ONE "{\"ph\":\"X\",\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":5,\"dur\":1}"

static void what_cannot_be_taken_is_counted_by_reason(void **state) {
  (void)state;
  need_the_command();
  takes("[" ONE ",{\"ph\":\"X\",\"name\":\"b\",\"ts\":5,\"dur\":-1}]", 0, 1,
        "1 with a negative duration");
  takes("[" ONE ",{\"ph\":\"X\",\"name\":\"b\",\"ts\":5}]", 0, 2, "1 without a duration");
  takes("[" ONE ",{\"ph\":\"X\",\"name\":\"b\",\"dur\":5}]", 0, 1, "1 without a time");
  takes("[" ONE ",{\"ph\":\"X\",\"name\":\"b\",\"ts\":NaN,\"dur\":1}]", 0, 1, "1 without a time");
  takes("[" ONE ",{\"ph\":\"X\",\"name\":\"b\",\"ts\":9e999,\"dur\":1}]", 0, 1,
        "1 with a time that is no number");
  takes("[" ONE ",{\"ph\":\"X\",\"name\":\"b\",\"ts\":99999999999999999999999999,\"dur\":1}]", 0, 1,
        "1 with a time that is no number");
  takes("[" ONE ",{\"ph\":\"X\",\"name\":\"b\",\"ts\":\"x\",\"dur\":1}]", 0, 1,
        "1 with a time that is no number");
  takes("[" ONE ",{\"ph\":\"X\",\"name\":\"b\",\"ts\":5,\"dur\":1e300}]", 0, 1,
        "1 with a duration that is no number");
  takes("[" ONE
        ",{\"ph\":\"X\",\"name\":\"b\",\"ts\":5,\"dur\":1,\"args\":{\"x\":-Infinity,\"y\":nan}}]",
        0, 2, "2 values that are no JSON");
  takes("[" ONE ",1,null,[[]],\"x\"]", 0, 1, "4 elements that are no objects");
  takes("[" ONE ",{\"ph\":\"b\",\"ts\":5},{\"ph\":\"e\",\"ts\":5},{\"ph\":\"n\",\"ts\":5}]", 0, 2,
        "2 scopes of 2 threads, 1 other");
  takes("[" ONE ",{},{\"ph\":3},{\"ph\":\"XX\"},{\"ph\":null}]", 0, 1,
        "4 of a kind that is not known");
  takes("[" ONE ",{\"ph\":\"E\",\"ts\":5}]", 0, 1, "1 ends without a begin");
  takes("[" ONE ",{\"ph\":\"B\",\"ts\":5,\"name\":\"b\"}]", 0, 2, "1 begun and never ended");
  takes("[" ONE ",{\"ph\":\"C\",\"ts\":5,\"name\":\"b\",\"args\":{\"x\":\"y\"}}]", 0, 1,
        "1 values of counters that are no numbers");
  takes("[" ONE
        ",{\"ph\":\"i\",\"ts\":5,\"name\":\"[memory]\",\"args\":{\"Addr\":-1,\"Bytes\":"
        "99999999999999999}}]",
        0, 1, "1 of memory");
  takes("[" ONE ",\n", 0, 1, NULL); /* the format lets a bare array stay open */
  takes("[" ONE ",]", 1, 1, "damaged near byte ");
  takes("[" ONE "] more", 1, 1, "damaged near byte ");
  takes("{\"traceEvents\":[" ONE "],\"x\":{\"y\":[", 1, 1, "ends in the middle");
  takes("\xef\xbb\xbf[" ONE "]", 0, 1, NULL);
  takes(
      "[{\"ph\":\"X\",\"ts\":5,\"dur\":1,\"ph\":\"X\",\"name\":\"x\",\"name\":"
      "\"\\ud800\\u0000\xff\\u202e\n\",\"args\":[],\"tid\":{},\"pid\":[1]}]",
      0, 1, "1 raw control bytes");
}

/* ---- what would take memory or depth without bound ---- */

static char *repeated(const char *begin, const char *text, size_t times, const char *end) {
  char *const all = malloc(strlen(begin) + strlen(text) * times + strlen(end) + 1), *at = all;
  assert_non_null(all);
  at = stpcpy(at, begin);
  for (size_t i = 0; i < times; i++) at = stpcpy(at, text);
  strcpy(at, end);
  return all;
}

static void takes_repeated(const char *begin, const char *text, size_t times, const char *end,
                           int status, uint64_t count, const char *says) {
  char *const all = repeated(begin, text, times, end);
  takes(all, status, count, says);
  free(all);
}

static void long_names_and_deep_nesting_are_bounded(void **state) {
  (void)state;
  need_the_command();
  takes_repeated("[" ONE ",{\"ph\":\"X\",\"ts\":5,\"dur\":1,\"name\":\"", "\xc3\xa4", 1 << 20,
                 "\"}]", 0, 2, "with a text cut");
  takes_repeated("[" ONE ",{\"ph\":\"X\",\"ts\":5,\"dur\":1,\"name\":\"", "\\u00e4", 1 << 20,
                 "\"}]", 0, 2, "with a text cut");
  takes_repeated("[" ONE ",{\"ph\":\"X\",\"ts\":5,\"dur\":1,\"name\":\"x\",\"args\":{\"x\":", "[",
                 1 << 20, "", 1, 1, "ends in the middle");
  takes_repeated("[" ONE
                 ",{\"ph\":\"X\",\"ts\":5,\"dur\":1,\"name\":\"x\",\"args\":{\"Input Dims\":[",
                 "[1],", 1 << 18, "[]]}}]", 0, 2, "with a text cut");
  takes_repeated("[" ONE ",{\"ph\":\"X\",\"ts\":5,\"dur\":1,\"name\":\"x\",\"args\":{\"x\":1",
                 ",\"a\":2", 1 << 16, "}}]", 0, 2, "arguments left out");
  takes_repeated("[" ONE ",{\"ph\":\"X\",\"ts\":5,\"dur\":", "1", 1 << 20, "}]", 0, 2,
                 "1 values that are no JSON");
  takes_repeated("[" ONE, ",{\"ph\":\"B\",\"ts\":5,\"name\":\"x\",\"pid\":1,\"tid\":1}", 50000, "]",
                 0, 50001, "50000 begun and never ended");
  takes_repeated("[" ONE, ",{\"ph\":\"X\",\"ts\":5,\"dur\":1,\"name\":\"x\",\"pid\":1,\"tid\":1}",
                 50000, "]", 0, 50001, NULL);
}

/* ---- outputs ---- */

static void what_cannot_be_written_is_said_and_leaves_nothing(void **state) {
  char old[8] = "", path[PATH_ROOM];
  (void)state;
  need_the_command();
  write_trace(whole, sizeof whole - 1);
  snprintf(path, sizeof path, "%s/none/t.prof", own.folder);
  assert_int_equal(import_to(path, RLIM_INFINITY), 1);
  assert_says("No such file or directory");
  assert_int_equal(import_to(own.folder, RLIM_INFINITY), 1);
  assert_says("it is a directory");
  assert_int_equal(import_to("/dev/null", RLIM_INFINITY), 1);
  assert_says("it is no file");
  assert_int_equal(import_to(own.trace, RLIM_INFINITY), 2);
  assert_says("would write over the trace itself");
  FILE *const file = fopen(own.output, "wb");
  assert_non_null(file);
  assert_true(fputs("before", file) >= 0 && fclose(file) == 0);
  assert_int_equal(import_to(own.output, 20000), 1); /* as a full disk does, amid the capture */
  assert_says("cannot write");
  FILE *const again = fopen(own.output, "rb");
  assert_non_null(again);
  assert_int_equal(fread(old, 1, sizeof old - 1, again), 6);
  fclose(again);
  assert_string_equal(old, "before");
  nothing_is_left();
  assert_int_equal(import_to(own.output, RLIM_INFINITY), 0);
  assert_int_equal(scopes(), 6);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(whatever_is_cut_off_the_rest_is_taken),
      cmocka_unit_test(whatever_byte_is_changed_it_ends_and_what_it_leaves_is_sound),
      cmocka_unit_test(what_is_no_trace_is_refused_with_the_reason),
      cmocka_unit_test(what_cannot_be_taken_is_counted_by_reason),
      cmocka_unit_test(long_names_and_deep_nesting_are_bounded),
      cmocka_unit_test(what_cannot_be_written_is_said_and_leaves_nothing),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
