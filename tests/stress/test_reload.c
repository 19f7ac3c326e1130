/* An instrumented library is loaded and unloaded again and again while its profiler records: what
   its call sites were is kept. And two profilers in one process, one in the program and one that
   the library brought, with one output: neither disturbs the other, nor writes over its trace.

   PROF_RELOADS: how often (200). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <prof/profiler.h>
#include <prof/trace.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "api/plugin.h"
#include "fault/support/captures.h"

enum { SCOPES_EACH = 5, BLOCKED_MOST = 100, AROUND_PAGES = 8 };

static struct {
  void *handle;
  int (*start)(const char *path);
  int (*start_on_budget)(const char *path, uint64_t events);
  int (*mute)(const char *name, int is_muted);
  uint64_t (*muted)(void);
  void (*run)(int times), (*run_named)(int times);
  uint64_t (*recorded)(void);
  int (*stop_and_dump)(void);
} library;

static void load(void) {
  char path[4096];
  snprintf(path, sizeof path, "%s/instrumented.so",
           getenv("PROF_TEST_PLUGIN_DIR") ? getenv("PROF_TEST_PLUGIN_DIR") : ".");
  library.handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library.handle) fail_msg("%s", dlerror());
  *(void **)&library.start = dlsym(library.handle, "instrumented_start");
  *(void **)&library.run = dlsym(library.handle, "instrumented_run");
  *(void **)&library.run_named = dlsym(library.handle, "instrumented_run_named");
  *(void **)&library.recorded = dlsym(library.handle, "instrumented_recorded");
  *(void **)&library.stop_and_dump = dlsym(library.handle, "instrumented_stop_and_dump");
  *(void **)&library.start_on_budget = dlsym(library.handle, "instrumented_start_on_budget");
  *(void **)&library.mute = dlsym(library.handle, "instrumented_mute");
  *(void **)&library.muted = dlsym(library.handle, "instrumented_muted");
  assert_true(library.start && library.run && library.run_named && library.recorded &&
              library.stop_and_dump && library.start_on_budget && library.mute && library.muted);
}

static void unload(void) { assert_int_equal(dlclose(library.handle), 0); }

/* Where the library was nothing may be read any more, and the next one comes elsewhere: whoever
   kept a pointer into it ends the test. */
static void unload_for_good(void) {
  const uintptr_t page = (uintptr_t)getpagesize(), at = (uintptr_t)library.run & ~(page - 1);
  unload();
  for (int i = -AROUND_PAGES; i < AROUND_PAGES; i++)
    mmap((void *)(at + (uintptr_t)i * page), page, PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
}

/* How often the file has the text, outside of the list of call sites. */
static uint64_t count_in(const char *path, const char *text) {
  static const char of_a_site[] = "  {\"name\":";
  uint64_t count = 0;
  char *line = NULL;
  size_t room = 0;
  FILE *const file = fopen(path, "r");
  if (!file) fail_msg("%s is not there", path);
  while (getline(&line, &room, file) > 0)
    for (const char *at = strncmp(line, of_a_site, strlen(of_a_site)) != 0 ? line : "";
         (at = strstr(at, text)) != NULL; at++)
      count++;
  free(line);
  fclose(file);
  return count;
}

static int reloads(void) {
  const char *const set = getenv("PROF_RELOADS");
  return set ? atoi(set) : 200;
}

static int files_in_folder(const char *part) {
  int count = 0;
  DIR *const entries = opendir(captures.folder);
  for (const struct dirent *e; (e = readdir(entries)) != NULL;)
    count += strstr(e->d_name, part) != NULL;
  closedir(entries);
  return count;
}

static void a_library_may_come_and_go_while_it_records(void **state) {
  char path[CAPTURE_PATH_MAX];
  const int times = reloads();
  (void)state;
  snprintf(path, sizeof path, "%s", captures_path("library.json"));
  load();
  assert_int_equal(library.start(path), PROF_OK);
  for (int i = 0; i < times; i++) {
    library.run(SCOPES_EACH);
    library.run_named(SCOPES_EACH);
    if (i < BLOCKED_MOST)
      unload_for_good();
    else
      unload();
    load();
  }
  assert_int_equal(library.recorded(), (uint64_t)times * SCOPES_EACH * 3);
  assert_int_equal(library.stop_and_dump(), PROF_OK);
  unload();
  assert_int_equal(count_in(path, "\"from a library that goes\""), times * SCOPES_EACH);
  assert_int_equal(count_in(path, "\"named by the library\""), times * SCOPES_EACH);
  assert_int_equal(count_in(path, "\"of its own\""), times * SCOPES_EACH);
  assert_int_equal(count_in(path, "\"plain, of the library\""), times * SCOPES_EACH);
  assert_int_equal(count_in(path, "of the library\"}") + count_in(path, "\"of the library\","),
                   times * SCOPES_EACH);
}

/* A site that comes back is the one that was muted, though it lies elsewhere and its memory is new;
   and one that is not stays heard. */
static void a_muted_site_stays_muted_when_its_library_comes_back(void **state) {
  char path[CAPTURE_PATH_MAX];
  const uint64_t times = (uint64_t)reloads();
  (void)state;
  snprintf(path, sizeof path, "%s", captures_path("muted.json"));
  load();
  assert_int_equal(library.start(path), PROF_OK);
  assert_int_equal(library.mute("plain, of*", 1), PROF_OK);
  for (uint64_t i = 0; i < times; i++) {
    library.run(SCOPES_EACH);
    unload();
    load();
  }
  assert_int_equal(library.muted(), times * SCOPES_EACH);
  assert_int_equal(library.recorded(), times * SCOPES_EACH);
  assert_int_equal(library.mute("plain, of*", 0), PROF_OK);
  library.run(SCOPES_EACH);
  assert_int_equal(library.recorded(), (times + 2) * SCOPES_EACH);
  assert_int_equal(library.stop_and_dump(), PROF_OK);
  unload();
  /* the list; the mark has one brace more */
  assert_int_equal(
      count_in(path, "\"change\":\"muted 'plain, of the library' (library): as asked\"},"), 1);
  assert_int_equal(count_in(path, "\"plain, of the library\""), SCOPES_EACH);
  assert_int_equal(count_in(path, "\"from a library that goes\""), (times + 1) * SCOPES_EACH);
}

/* The budget mutes what comes too often; what it has muted stays so, and all that was attempted is
   counted. */
static void a_budget_holds_while_a_library_comes_and_goes(void **state) {
  enum { SCOPES_AT_ONCE = 20000, EVENTS_A_SECOND = 50000 };
  char path[CAPTURE_PATH_MAX];
  const uint64_t times = (uint64_t)reloads();
  uint64_t at_last = 0;
  (void)state;
  snprintf(path, sizeof path, "%s", captures_path("budget.json"));
  load();
  assert_int_equal(library.start_on_budget(path, EVENTS_A_SECOND), PROF_OK);
  for (uint64_t i = 0; i < times; i++) {
    library.run(SCOPES_AT_ONCE);
    unload();
    load();
    if (i == times / 2) at_last = library.recorded();
  }
  assert_int_equal(library.recorded() + library.muted(), times * SCOPES_AT_ONCE * 2);
  assert_int_equal(library.recorded(), at_last);
  assert_true(library.muted() > times * SCOPES_AT_ONCE);
  assert_int_equal(library.stop_and_dump(), PROF_OK);
  unload();
  /* both sites, each in the list and on the time line */
  assert_int_equal(count_in(path, "events a second, the budget is 50000\"}"), 2 * 2);
}

static void two_profilers_in_one_process_have_two_traces(void **state) {
  char path[CAPTURE_PATH_MAX];
  prof_health health = {.size = sizeof health};
  (void)state;
  snprintf(path, sizeof path, "%s", captures_path("both.json"));
  const prof_options options = {.size = sizeof options, .path = path};
  assert_int_equal(prof_start_with(&options), PROF_OK);
  load();
  assert_int_equal(library.start(path), PROF_OK);
  const uint64_t before = library.recorded();
  for (int i = 0; i < 100; i++) {
    WITH_BASE_PROFILER(PROF_HOST, "of the program", "program", PROF_ARGS("i", i),
                       { library.run(1); });
  }
  prof_health(&health);
  assert_int_equal(health.recorded_count, 100);
  assert_int_equal(library.recorded() - before, 200);
  prof_stop();
  assert_int_equal(prof_dump(NULL), PROF_OK);
  assert_int_equal(library.stop_and_dump(), PROF_OK);
  unload();
  assert_int_equal(files_in_folder("both"), 2);
  assert_int_equal(count_in(path, "\"of the program\""), 100);
}

static int clean(void **state) {
  (void)state;
  captures_clear();
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_teardown(a_library_may_come_and_go_while_it_records, clean),
      cmocka_unit_test_teardown(a_muted_site_stays_muted_when_its_library_comes_back, clean),
      cmocka_unit_test_teardown(a_budget_holds_while_a_library_comes_and_goes, clean),
      cmocka_unit_test_teardown(two_profilers_in_one_process_have_two_traces, clean),
  };
  if (!captures_make_folder(false)) return 1;
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  captures_remove_folder();
  return failed;
}
