/* Back ends by the public face: tables and plug-ins that are wrong are refused with what is wrong,
   the others are there all the same, and nothing is written anywhere. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <prof/device.h>
#include <prof/profiler.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "hang_guard.h"
#include "table.h"

static char folder[PATH_MAX];

/* Each test is a process of its own: what is listed stays listed. */
static void in_child(void (*run)(void)) {
  fflush(NULL);
  const pid_t child = fork();
  if (child == 0) {
    /* cmocka's handlers would go on with the parent's tests */
    static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGSYS};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) signal(signals[i], SIG_DFL);
    run();
    fflush(NULL);
    _exit(0);
  }
  int status = -1;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
}

/* In a child cmocka's asserts would go on in the parent's tests. */
#define CHECK(condition)                                                                     \
  do {                                                                                       \
    if (!(condition)) {                                                                      \
      fprintf(stderr, "%s:%d: not so: %s; last error: %s\n", __FILE__, __LINE__, #condition, \
              prof_last_error());                                                            \
      fflush(NULL);                                                                          \
      _exit(1);                                                                              \
    }                                                                                        \
  } while (0)

static bool says(const char *text) { return strstr(prof_last_error(), text) != NULL; }

static prof_backend_state state_of(uint32_t number) {
  prof_backend_state state = {.size = sizeof state};
  CHECK(prof_backend_status(number, &state) == PROF_OK);
  return state;
}

static uint32_t count_all(void) {
  uint32_t count = 0;
  prof_backend_state state = {.size = sizeof state};
  while (prof_backend_status(count, &state) == PROF_OK) count++;
  return count;
}

/* Of that name, or of that file; -1. */
static int number_of(const char *name) {
  prof_backend_state state = {.size = sizeof state};
  for (uint32_t i = 0; prof_backend_status(i, &state) == PROF_OK; i++) {
    const char *const slash = strrchr(state.path, '/');
    if (strcmp(state.name, name) == 0 || (slash && strcmp(slash + 1, name) == 0)) return (int)i;
  }
  return -1;
}

static int load(const char *name) {
  char path[PATH_MAX + 64];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return prof_backend_load(path);
}

/* ---- tables ---- */

static void good_tables(void) {
  static const prof_backend table = TEST_TABLE("good");
  const uint32_t before = count_all();
  CHECK(prof_backend_add(&table) == PROF_OK);
  CHECK(prof_backend_add(&table) == PROF_OK); /* once is enough */
  CHECK(count_all() == before + 1);
  const prof_backend_state state = state_of(before);
  CHECK(strcmp(state.name, "good") == 0 && strcmp(state.version, "1.2.3") == 0);
  CHECK(state.result == PROF_BACKEND_OK && state.device_type == TEST_DEVICE_TYPE &&
        state.abilities == PROF_CAN_SCOPES);
  CHECK(!state.is_open && !state.is_plugin && !state.is_emulated && !state.path[0] &&
        !state.advice[0]);
  struct {
    prof_backend table;
    char more[64];
  } longer = {.table = TEST_TABLE("of a later minor")};
  longer.table.size = sizeof longer;
  longer.table.minor = 7;
  memset(longer.more, 1, sizeof longer.more);
  CHECK(prof_backend_add(&longer.table) == PROF_OK);
  prof_backend least = TEST_TABLE("no more than is needed");
  least.size = offsetof(prof_backend, close);
  memset((char *)&least + least.size, 1, sizeof least - least.size); /* is not looked at */
  CHECK(prof_backend_add(&least) == PROF_OK);
  CHECK(state_of(before + 2).abilities == PROF_CAN_SCOPES &&
        state_of(before + 2).result == PROF_BACKEND_OK);
}

static void refused(const prof_backend *table, int status, const char *text) {
  const uint32_t before = count_all();
  CHECK(prof_backend_add(table) == status);
  CHECK(says(text));
  CHECK(count_all() == before);
}

static void bad_tables(void) {
  refused(NULL, PROF_E_INVALID, "NULL");
  const prof_backend good = TEST_TABLE("x");
#define WITHOUT(member)                                       \
  do {                                                        \
    prof_backend table = good;                                \
    table.member = 0;                                         \
    refused(&table, PROF_E_INVALID, "prof_backend." #member); \
  } while (0)
  WITHOUT(name);
  WITHOUT(version);
  WITHOUT(probe);
  WITHOUT(open);
  WITHOUT(event_create);
  WITHOUT(event_record);
  WITHOUT(event_query);
  WITHOUT(event_destroy);
  WITHOUT(event_time);
  WITHOUT(device_type);
  WITHOUT(size);
  for (size_t size = 0; size < offsetof(prof_backend, close) - sizeof(void *); size++) {
    prof_backend table = good;
    table.size = size;
    refused(&table, PROF_E_INVALID, "size");
  }
  prof_backend table = good;
  table.size = SIZE_MAX;
  refused(&table, PROF_E_INVALID, "size");
  table = good;
  table.device_type = PROF_DEVICE_CPU;
  refused(&table, PROF_E_INVALID, "device_type is 1");
  table.device_type = -3;
  refused(&table, PROF_E_INVALID, "device_type is -3");
  table = good;
  table.name = "";
  refused(&table, PROF_E_INVALID, "name");
  table.name = "a name that is longer than the thirty-one bytes there are";
  refused(&table, PROF_E_INVALID, "1 to 31");
  table = good;
  table.major = PROF_BACKEND_MAJOR + 1;
  table.minor = 5;
  refused(&table, PROF_E_VERSION, "2.5");
  table.major = 0;
  refused(&table, PROF_E_VERSION, "0.5");
}

static void too_many_tables(void) {
  static char names[40][8];
  const uint32_t before = count_all();
  for (uint32_t i = 0; i < 40; i++) {
    prof_backend table = TEST_TABLE(names[i]);
    snprintf(names[i], sizeof names[i], "n%u", i);
    CHECK(prof_backend_add(&table) == (before + i < 32 ? PROF_OK : PROF_E_TOO_LARGE));
  }
  CHECK(says("32"));
  CHECK(count_all() == 32);
  CHECK(prof_backend_load(folder) == PROF_E_TOO_LARGE && says("32"));
  CHECK(load("nowhere.so") == PROF_E_NOT_FOUND && says("nowhere.so"));
}

/* ---- what probe says ---- */

static int probe_result, probes;
static int probe_once(const prof_backend_host *host) {
  (void)host;
  probes++;
  return probe_result;
}
static const char *in_own_words(prof_backend_self *self) {
  return self ? "of an open one" : "nobody has paid for the device";
}

static void results(void) {
#define EACH(name, value, text, advice) {value, #name, text, advice},
  static const struct {
    int value;
    const char *name, *text, *advice;
  } all[] = {
      PROF_BACKEND_RESULT_LIST(EACH){-77, "UNKNOWN", "a result that this prof does not know", ""}};
  uint32_t number = count_all();
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    for (int has_words = 0; has_words < 2; has_words++, number++) {
      char *name = NULL;
      CHECK(asprintf(&name, "%s %d", all[i].name, has_words) > 0);
      prof_backend table = TEST_TABLE(name);
      table.probe = probe_once;
      if (has_words) table.last_error = in_own_words;
      probes = 0;
      probe_result = all[i].value;
      CHECK(prof_backend_add(&table) == PROF_OK);
      CHECK(probes == 0); /* not before somebody wants to know */
      const prof_backend_state state = state_of(number);
      CHECK(state.result == all[i].value);
      CHECK(strcmp(state.reason, has_words && all[i].value ? "nobody has paid for the device"
                                                           : all[i].text) == 0);
      CHECK(strcmp(state.advice, all[i].advice) == 0);
      state_of(number);
      CHECK(probes == 1);
      CHECK(strcmp(prof_backend_result_name(all[i].value), all[i].name) == 0);
    }
    if (number + 2 > 32) break;
  }
  CHECK(probes == 1);
}

static uint32_t is_at_it, may_go; /* atomic */

static int is_slow(const prof_backend_host *host) {
  (void)host;
  __atomic_store_n(&is_at_it, 1, __ATOMIC_RELAXED);
  WAIT_WHILE(!__atomic_load_n(&may_go, __ATOMIC_RELAXED));
  return PROF_BACKEND_OK;
}
static void *look_at(void *number) {
  prof_backend_state state = {.size = sizeof state};
  prof_backend_status(*(uint32_t *)number, &state);
  return NULL;
}

static void one_that_is_slow(void) {
  prof_backend table = TEST_TABLE("slow");
  uint32_t number = count_all();
  table.probe = is_slow;
  CHECK(prof_backend_add(&table) == PROF_OK);
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, look_at, &number) == 0);
  prof_backend_state state = {.size = sizeof state, .name = "as it was"};
  WAIT_WHILE(!__atomic_load_n(&is_at_it, __ATOMIC_RELAXED));
  CHECK(prof_backend_status(number, &state) == PROF_E_BUSY && says("slow"));
  CHECK(strcmp(state.name, "as it was") == 0);
  __atomic_store_n(&may_go, 1, __ATOMIC_RELAXED);
  pthread_join(thread, NULL);
  CHECK(state_of(number).result == PROF_BACKEND_OK);
}

static void wrong_questions(void) {
  prof_backend_state state = {.size = 4};
  static const prof_backend table = TEST_TABLE("one");
  CHECK(prof_backend_add(&table) == PROF_OK);
  CHECK(prof_backend_status(0, NULL) == PROF_E_INVALID);
  CHECK(prof_backend_status(0, &state) == PROF_E_INVALID && says("size is 4"));
  CHECK(prof_backend_status(count_all(), &state) == PROF_E_NOT_FOUND);
  CHECK(prof_backend_status(UINT32_MAX, &state) == PROF_E_NOT_FOUND);
}

/* ---- plug-ins ---- */

static void copy_to(const char *name) {
  char from[PATH_MAX], to[PATH_MAX + 64], bytes[65536];
  snprintf(from, sizeof from, "%s/odd.so", getenv("PROF_TEST_PLUGIN_DIR"));
  snprintf(to, sizeof to, "%s/%s", folder, name);
  FILE *const in = fopen(from, "rb"), *const out = fopen(to, "wb");
  assert_true(in && out);
  for (size_t count; (count = fread(bytes, 1, sizeof bytes, in)) > 0;)
    assert_int_equal(fwrite(bytes, 1, count, out), count);
  fclose(in);
  assert_int_equal(fclose(out), 0);
}

static void check_unused(const char *name, int status, const char *text, int32_t result) {
  CHECK(load(name) == status && says(text) && says(name));
  const int number = number_of(name);
  CHECK(number >= 0);
  const prof_backend_state state = state_of((uint32_t)number);
  CHECK(state.result == result && strstr(state.reason, text) && state.is_plugin &&
        !state.abilities && !state.name[0]);
  CHECK(load(name) == status && says(text)); /* it may have been mended meanwhile */
  CHECK(number_of(name) == number);
}

static void bad_plugins(void) {
  CHECK(prof_backend_load(NULL) == PROF_E_INVALID && prof_backend_load("") == PROF_E_INVALID);
  CHECK(prof_backend_load("good.so") == PROF_E_INVALID && says("no whole path"));
  CHECK(prof_backend_load("./good.so") == PROF_E_INVALID);
  check_unused("no_library.so", PROF_E_UNSUPPORTED, "cannot be opened", PROF_BACKEND_INVALID);
  check_unused("null.so", PROF_E_VERSION, "gave NULL", PROF_BACKEND_VERSION);
  check_unused("major.so", PROF_E_VERSION, "written for back ends of 2.", PROF_BACKEND_VERSION);
  check_unused("short.so", PROF_E_INVALID, "size", PROF_BACKEND_INVALID);
  check_unused("hole.so", PROF_E_INVALID, "event_query", PROF_BACKEND_INVALID);
  CHECK(load("nowhere.so") == PROF_E_NOT_FOUND && says("nowhere.so"));
  CHECK(prof_backend_load("/proc/self/exe") == PROF_E_UNSUPPORTED);
  char path[PATH_MAX + 16], *const longer = calloc(1, 3 * PATH_MAX);
  snprintf(path, sizeof path, "%s/pipe.so", folder);
  hang_guard();
  CHECK(mkfifo(path, 0600) == 0 && load("pipe.so") == PROF_E_FILE_TYPE && says("no regular file"));
  alarm(0);
  memset(longer, '/', 2 * PATH_MAX);
  CHECK(prof_backend_load(longer) == PROF_E_INVALID && says("8192 bytes"));
  free(longer);
}

static void a_good_plugin(void) {
  CHECK(load("good.so") == PROF_OK && load("good.so") == PROF_OK);
  const prof_backend_state state = state_of((uint32_t)number_of("good"));
  CHECK(state.is_plugin && state.result == PROF_BACKEND_OK && strstr(state.path, "/good.so") &&
        state.abilities == PROF_CAN_SCOPES);
}

static void check_folder(void) {
  CHECK(state_of((uint32_t)number_of("good")).result == PROF_BACKEND_OK);
  const prof_backend_state absent = state_of((uint32_t)number_of("absent"));
  CHECK(absent.result == PROF_BACKEND_ABSENT &&
        strcmp(absent.reason, "libvendor.so.1 is nowhere") == 0 && absent.advice[0]);
  CHECK(number_of("hole.so") >= 0 && number_of("no_library.so") >= 0 && number_of("text") < 0);
}

static void a_folder_of_plugins(void) {
  CHECK(prof_backend_load(folder) != PROF_OK); /* the text names the first wrong one */
  check_folder();
  const uint32_t count = count_all();
  prof_backend_load(folder);
  CHECK(count_all() == count);
}

static void what_is_of_no_use_takes_no_place(void) {
  char name[32];
  const uint32_t before = count_all();
  for (int i = 0; i < 40; i++) {
    snprintf(name, sizeof name, "nowhere%d.so", i);
    CHECK(load(name) == PROF_E_NOT_FOUND && says(name));
  }
  CHECK(count_all() == before + 16);
  CHECK(load("good.so") == PROF_OK && number_of("good") >= 0);
}

static void one_file_of_several_names(void) {
  char from[PATH_MAX + 16], to[PATH_MAX + 16];
  snprintf(from, sizeof from, "%s/good.so", folder);
  snprintf(to, sizeof to, "%s/./link.so", folder);
  const uint32_t before = count_all();
  CHECK(symlink(from, to) == 0);
  CHECK(load("good.so") == PROF_OK && load("link.so") == PROF_OK && load("./good.so") == PROF_OK);
  CHECK(count_all() == before + 1);
  unlink(to);
}

static void a_table_that_ends_within_a_member(void) {
  prof_backend table = TEST_TABLE("half");
  table.size = offsetof(prof_backend, last_error) + 4;
  table.probe = probe_once;
  memset(&table.last_error, 0x41, sizeof table.last_error);
  probe_result = PROF_BACKEND_ABSENT;
  CHECK(prof_backend_add(&table) == PROF_OK);
  CHECK(state_of((uint32_t)number_of("half")).result == PROF_BACKEND_ABSENT);
}

static void *load_and_look(void *unused) {
  (void)unused;
  load("good.so");
  load("absent.so");
  count_all();
  return NULL;
}

static void several_threads_at_once(void) {
  enum { THREADS = 8 };
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; i++)
    CHECK(pthread_create(&threads[i], NULL, load_and_look, NULL) == 0);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  uint32_t plugins = 0;
  for (uint32_t i = 0; i < count_all(); i++) plugins += state_of(i).is_plugin;
  CHECK(plugins == 2);
}

static void several_paths(void) {
  char paths[3 * PATH_MAX + 64];
  snprintf(paths, sizeof paths, ":%s/nowhere:%s/good.so::%s/absent.so:", folder, folder, folder);
  CHECK(prof_backend_load(paths) == PROF_E_NOT_FOUND);
  CHECK(number_of("good") >= 0 && number_of("absent") >= 0);
}

static void by_the_environment(void) {
  setenv("PROF_BACKENDS", folder, 1);
  check_folder();
}

static void by_a_relative_path_of_the_environment(void) {
  CHECK(chdir(folder) == 0);
  setenv("PROF_BACKENDS", "good.so:.", 1);
  for (uint32_t i = 0; i < count_all(); i++)
    CHECK(state_of(i).result != PROF_BACKEND_OK || !state_of(i).is_plugin);
}

/* ---- nothing is taken from the program ---- */

static void in_silence(void) {
  char path[PATH_MAX + 16];
  snprintf(path, sizeof path, "%s/said", folder);
  const int said = open(path, O_CREAT | O_RDWR | O_TRUNC, 0600), before = dup(STDERR_FILENO);
  CHECK(said >= 0 && before >= 0 && dup2(said, STDERR_FILENO) >= 0 &&
        dup2(said, STDOUT_FILENO) >= 0);
  setenv("PROF_BACKENDS", folder, 1);
  count_all();
  prof_start(1);
  prof_stop();
  const off_t bytes = lseek(said, 0, SEEK_END);
  dup2(before, STDERR_FILENO);
  CHECK(bytes == 0);
}

static void the_doctor(void) {
  char command[3 * PATH_MAX], line[512];
  CHECK(snprintf(command, sizeof command, "PROF_BACKENDS=%s %s/prof doctor 2>&1", folder,
                 getenv("PROF_TEST_BUILD_DIR")) < (int)sizeof command);
  FILE *const out = popen(command, "r");
  bool has_good = false, has_reason = false, has_advice = false, has_sum = false;
  while (out && fgets(line, sizeof line, out)) {
    has_good |= strcmp(line, "good 1.2.3: works\n") == 0;
    has_reason |= strstr(line, "why") && strstr(line, "libvendor.so.1 is nowhere");
    has_advice |= strstr(line, "what to do") && strstr(line, "LD_LIBRARY_PATH");
    has_sum |= strstr(line, "can work here") != NULL;
  }
  CHECK(out && pclose(out) == 0);
  CHECK(has_good && has_reason && has_advice && has_sum);
}

#define TEST(name)                        \
  static void test_##name(void **state) { \
    (void)state;                          \
    in_child(name);                       \
  }
#define TESTS(X)                           \
  X(good_tables)                           \
  X(bad_tables)                            \
  X(too_many_tables)                       \
  X(results)                               \
  X(one_that_is_slow)                      \
  X(wrong_questions)                       \
  X(bad_plugins)                           \
  X(a_good_plugin)                         \
  X(a_folder_of_plugins)                   \
  X(several_threads_at_once)               \
  X(what_is_of_no_use_takes_no_place)      \
  X(one_file_of_several_names)             \
  X(a_table_that_ends_within_a_member)     \
  X(several_paths)                         \
  X(by_the_environment)                    \
  X(by_a_relative_path_of_the_environment) \
  X(in_silence)                            \
  X(the_doctor)
TESTS(TEST)

static int make_folder(void **state) {
  static const char *const copies[] = {"good.so", "null.so",   "major.so", "short.so",
                                       "hole.so", "absent.so", "text"};
  char path[PATH_MAX + 32];
  (void)state;
  snprintf(folder, sizeof folder, "%s/prof-back-ends-XXXXXX",
           getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
  if (!mkdtemp(folder)) return -1;
  for (size_t i = 0; i < sizeof copies / sizeof *copies; i++) copy_to(copies[i]);
  snprintf(path, sizeof path, "%s/no_library.so", folder);
  FILE *const text = fopen(path, "w");
  return text && fputs("this is no library\n", text) >= 0 ? fclose(text) : -1;
}

static int remove_folder(void **state) {
  char command[PATH_MAX + 32];
  (void)state;
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  return system(command);
}

int main(void) {
#define ENTRY(name) cmocka_unit_test(test_##name),
  const struct CMUnitTest tests[] = {TESTS(ENTRY)};
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
