/* Call sites and argument schemas: one number for one content, at any address, as long as the
   process lives. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <prof/profiler.h>
#include <prof/trace.h>

#include "api/sanitizers.h"
#include "core/buffer/arena.h"
#include "core/record/site.h"
#include "format/layout.h"

static char folder[] = "/tmp/prof-site-XXXXXX";

static prof_site site_at(const char *file, const char *function, uint32_t line, uint32_t level) {
  return (prof_site){0, file, function, line, level, 0};
}

static void the_same_content_has_the_same_number(void **state) {
  (void)state;
  /* not the same pointers */
  char file[] = "same.c", function[] = "f", name[] = "name", category[] = "category";
  const prof_site one = site_at("same.c", "f", 3, 1), other = site_at(file, function, 3, 1);
  const uint32_t number = prof_i_site_number(&one, "name", "category");
  assert_int_not_equal(number, 0);
  const uint32_t count = prof_i_site_count();
  assert_int_equal(prof_i_site_number(&other, name, category), number);
  assert_int_equal(prof_i_site_number(&one, "name", "category"), number);
  assert_int_equal(prof_i_site_count(), count);
}

static void every_part_of_the_content_counts(void **state) {
  (void)state;
  static const struct {
    const char *file, *function, *name, *category;
    uint32_t line, level;
  } variants[] = {
      {"a.c", "f", "n", "c", 1, 1},  {"b.c", "f", "n", "c", 1, 1},  {"a.c", "g", "n", "c", 1, 1},
      {"a.c", "f", "m", "c", 1, 1},  {"a.c", "f", "n", "d", 1, 1},  {"a.c", "f", "n", "c", 2, 1},
      {"a.c", "f", "n", "c", 1, 2},  {"a.c", "f", NULL, "c", 1, 1}, {"a.c", "f", "nc", "", 1, 1},
      {"a.c", "f", "n", NULL, 1, 1}, {NULL, NULL, "n", "c", 1, 1}};
  uint32_t numbers[sizeof variants / sizeof *variants];
  for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
    const prof_site site =
        site_at(variants[i].file, variants[i].function, variants[i].line, variants[i].level);
    numbers[i] = prof_i_site_number(&site, variants[i].name, variants[i].category);
    assert_int_not_equal(numbers[i], 0);
    for (size_t k = 0; k < i; k++) assert_int_not_equal(numbers[i], numbers[k]);
  }
}

static void long_literals_are_cut_and_still_told_apart_by_what_stands_before(void **state) {
  (void)state;
  static char one[10000], other[10000], early[10000];
  memset(one, 'x', sizeof one - 1);
  memset(other, 'x', sizeof other - 1);
  memset(early, 'x', sizeof early - 1);
  other[9000] = 'y';
  early[100] = 'y';
  const prof_site site = site_at("long.c", "f", 1, 1);
  const uint32_t number = prof_i_site_number(&site, one, one);
  assert_int_not_equal(number, 0);
  assert_int_equal(prof_i_site_number(&site, other, one), number); /* cut at 8000 */
  assert_int_not_equal(prof_i_site_number(&site, early, one), number);
}

static void schemas_are_told_apart_by_kind_format_keys_and_types(void **state) {
  (void)state;
  const prof_site site = site_at("schema.c", "f", 1, 1);
  const uint32_t at = prof_i_site_number(&site, "n", "c"),
                 elsewhere = prof_i_site_number(&site, "m", "c");
  char key[] = "a", format[] = "%d";
  const prof_arg plain[] = {prof_i_arg_i64("a", 1), prof_i_arg_i64("b", 2)};
  const prof_arg again[] = {prof_i_arg_i64(key, 7), prof_i_arg_i64("b", 8)};
  const prof_arg other_key[] = {prof_i_arg_i64("a", 1), prof_i_arg_i64("c", 2)};
  const prof_arg other_type[] = {prof_i_arg_i64("a", 1), prof_i_arg_f64("b", 2)};
  const prof_args pairs = {plain, 2, PROF_ARGS_PAIRS, NULL},
                  same = {again, 2, PROF_ARGS_PAIRS, NULL};
  const prof_args one_format = {plain, 2, PROF_ARGS_FORMAT, "%d"},
                  same_format = {plain, 2, PROF_ARGS_FORMAT, format};
  const prof_args others[] = {{other_key, 2, PROF_ARGS_PAIRS, NULL},
                              {other_type, 2, PROF_ARGS_PAIRS, NULL},
                              {plain, 2, PROF_ARGS_LIST, NULL},
                              {plain, 2, PROF_ARGS_FORMAT, "%d"},
                              {plain, 2, PROF_ARGS_FORMAT, "%i"}};
  const uint32_t number = prof_i_schema_number(at, &pairs, 2);
  assert_int_not_equal(number, 0);
  assert_int_equal(prof_i_schema_number(at, &pairs, 2), number); /* as the site remembers it */
  assert_int_equal(prof_i_schema_number(at, &same, 2), number);
  assert_int_equal(prof_i_schema_number(elsewhere, &same, 2), number);
  assert_int_equal(prof_i_schema_number(at, &one_format, 2),
                   prof_i_schema_number(at, &same_format, 2));
  assert_int_not_equal(prof_i_schema_number(at, &pairs, 1), number); /* the second one was cut */
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    assert_int_not_equal(prof_i_schema_number(at, &others[i], 2), number);
  assert_int_equal(prof_i_schema_number(at, &pairs, 2), number);
  assert_int_equal(prof_i_schema_number(0, &pairs, 2), 0);
}

/* Events of this name in the own capture. */
static uint64_t count_named(const char *name) {
  uint64_t count = 0;
  assert_int_equal(prof_get_duration(name, NULL, NULL, &count), PROF_OK);
  return count;
}

static void sites_of_an_older_arena_stand_in_the_new_one(void **state) {
  (void)state;
  const prof_options ring = {.size = sizeof ring, .policy = PROF_POLICY_RING, .cap_bytes = 2 << 20};
  assert_int_equal(prof_start(1), PROF_OK);
  for (int arena = 0; arena < 2; arena++) {
    WITH_BASE_PROFILER(PROF_HOST, "in two arenas", "x", PROF_ARGS("n", arena), {});
    assert_int_equal(count_named("in two arenas"), 1);
    assert_int_equal(prof_stop(), PROF_OK);
    if (arena == 0) assert_int_equal(prof_start_with(&ring), PROF_OK);
  }
}

/* A scope by call, of a name that the short way does not take, with one argument of this key. */
static void run_long(const char *key) {
  static char name[181];
  memset(name, 'n', sizeof name - 1);
  const prof_arg item = prof_i_arg_i64(key, 7);
  const prof_args args = {&item, 1, PROF_ARGS_PAIRS, NULL};
  prof_scope_end(prof_scope_begin(1, name, "x", &args));
}

static uint64_t cut_texts(void) {
  prof_health health = {.size = sizeof health};
  assert_int_equal(prof_health(&health), PROF_OK);
  return health.cut_text_count;
}

static void with_the_gate_closed_arguments_stay_or_are_flagged_and_counted(void **state) {
  (void)state;
  static const struct {
    const char *key;
    int is_closed, is_cut;
  } runs[] = {{"first", 0, 0},  {"second", 0, 0}, {"first", 1, 0},
              {"second", 1, 0}, {"third", 1, 1},  {"third", 0, 0}};
  const prof_options options = {.size = sizeof options, .cap_bytes = 3 << 20};
  prof_trace *trace = NULL;
  prof_cursor *cursor = NULL;
  prof_event e;
  assert_int_equal(prof_start_with(&options), PROF_OK);
  const uint64_t cut_before = cut_texts();
  for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
    if (runs[i].is_closed) assert_true(prof_i_arena_guard_drain());
    run_long(runs[i].key);
    if (runs[i].is_closed) prof_i_arena_guard_open();
  }
  assert_int_equal(cut_texts() - cut_before, 1);
  assert_int_equal(prof_stop(), PROF_OK);
  assert_int_equal(prof_get(&trace), PROF_OK);
  assert_int_equal(prof_cursor_create(trace, &cursor), PROF_OK);
  for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
    assert_int_equal(prof_cursor_next(cursor, &e), 1);
    assert_int_equal(e.name_bytes, 180);
    assert_int_equal(e.flags & PROF_EVENT_CUT, runs[i].is_cut ? PROF_EVENT_CUT : 0);
    assert_int_equal(e.arg_count, !runs[i].is_cut);
    if (runs[i].is_cut) continue;
    assert_int_equal(e.args[0].key_bytes, strlen(runs[i].key));
    assert_memory_equal(e.args[0].key, runs[i].key, e.args[0].key_bytes);
    assert_int_equal(e.args[0].value.i64, 7);
  }
  assert_int_equal(prof_cursor_next(cursor, &e), 0);
  prof_cursor_destroy(cursor);
  prof_trace_destroy(trace);
}

/* ThreadSanitizer maps memory of its own beside ours: then 0, which every bound holds. */
static long mapped_bytes(void) {
  long pages = 0;
  if (WITH_TSAN) return 0;
  FILE *const file = fopen("/proc/self/statm", "r");
  assert_non_null(file);
  assert_int_equal(fscanf(file, "%ld", &pages), 1);
  fclose(file);
  return pages * sysconf(_SC_PAGESIZE);
}

static void texts_that_are_cut_are_told_again_and_again_without_memory(void **state) {
  (void)state;
  char key[101];
  memset(key, 'k', sizeof key - 1);
  key[sizeof key - 1] = '\0';
  const prof_site site = site_at("cut.c", "f", 1, 1);
  const prof_arg item = prof_i_arg_i64(key, 7);
  const prof_args args = {&item, 1, PROF_ARGS_PAIRS, NULL};
  const uint32_t at = prof_i_site_number(&site, "n", "c"),
                 number = prof_i_schema_number(at, &args, 1);
  assert_int_not_equal(number, 0);
  const long before = mapped_bytes();
  for (int i = 0; i < 2000000; i++) assert_int_equal(prof_i_schema_number(at, &args, 1), number);
  assert_true(mapped_bytes() - before < 1 << 20);
}

/* The last of all: no site is to be had behind it. */
static void sites_beyond_the_limit_take_no_memory(void **state) {
  (void)state;
  /* of 64 MiB: what a million sites of this size fill, and what a table takes */
  enum { BLOCKS_MAX = 4 };
  const prof_site site = site_at("many.c", "f", 1, 1);
  char name[32];
  const long before = mapped_bytes();
  uint32_t i = 0, number = 1;
  for (; number; i++) {
    snprintf(name, sizeof name, "site %u", i);
    number = prof_i_site_number(&site, name, "many");
  }
  assert_int_equal(prof_i_site_count(), PROF_I_SITE_COUNT_MAX);
  const long full = mapped_bytes();
  assert_true(full - before < BLOCKS_MAX * (64l << 20));
  for (const uint32_t last = i + 50000; i < last; i++) {
    snprintf(name, sizeof name, "site %u", i);
    assert_int_equal(prof_i_site_number(&site, name, "many"), 0);
  }
  assert_true(mapped_bytes() - full < 1 << 20);
  /* those that are there are found */
  assert_int_not_equal(prof_i_site_number(&site, "site 0", "many"), 0);
  assert_int_equal(prof_i_site_count(), PROF_I_SITE_COUNT_MAX);
}

/* ---- libraries that come and go ---- */

typedef void run_scope(uint64_t (*begin)(prof_site *, const char *, const char *),
                       void (*end)(uint64_t));

/* Compiles a module whose one scope has this name; false when there is no compiler. */
static int compile(const char *path, const char *name) {
  char command[1024], source[256];
  const char *const compiler = getenv("CC") ? getenv("CC") : "cc";
  const char *const tree = getenv("PROF_TEST_SOURCE_DIR") ? getenv("PROF_TEST_SOURCE_DIR") : ".";
  snprintf(source, sizeof source, "%s.c", path);
  FILE *const file = fopen(source, "w");
  assert_non_null(file);
  fprintf(file,
          "#include <prof/scope.h>\n"
          "void run(uint64_t (*begin)(prof_site *, const char *, const char *), void "
          "(*end)(uint64_t));\n"
          "void run(uint64_t (*begin)(prof_site *, const char *, const char *), void "
          "(*end)(uint64_t)) {\n"
          "  static prof_site site = {0, \"module.c\", \"run\", 1, 1};\n"
          "  end(begin(&site, \"%s\", \"module\"));\n"
          "}\n",
          name);
  fclose(file);
  snprintf(command, sizeof command, "'%s' -shared -fPIC -I'%s/include' -o '%s' '%s' 2>/dev/null",
           compiler, tree, path, source);
  return system(command) == 0;
}

static void run_module(const char *path) {
  void *const module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!module) {
    fail_msg("%s", dlerror());
    return;
  }
  run_scope *run;
  *(void **)&run = dlsym(module, "run");
  assert_non_null(*(void **)&run);
  run(prof_i_begin_1, prof_i_end_1);
  dlclose(module);
}

static void a_library_that_comes_back_finds_its_old_numbers(void **state) {
  (void)state;
  char one[64], other[64];
  snprintf(one, sizeof one, "%s/one.so", folder);
  snprintf(other, sizeof other, "%s/other.so", folder);
  if (!compile(one, "of the first module") || !compile(other, "of the other module")) {
    print_message("skip: no C compiler here to make a module with\n");
    skip();
  }
  assert_int_equal(prof_start_with(NULL), PROF_OK);
  run_module(one);
  const uint32_t count = prof_i_site_count();
  for (int i = 0; i < 5; i++) run_module(one);
  assert_int_equal(prof_i_site_count(), count);
  run_module(other); /* likely at the same address */
  run_module(one);
  assert_int_equal(prof_i_site_count(), count + 1);
  assert_int_equal(prof_stop(), PROF_OK);
  assert_int_equal(count_named("of the first module"), 7);
  assert_int_equal(count_named("of the other module"), 1);
}

static int make_folder(void **state) {
  (void)state;
  return mkdtemp(folder) ? 0 : -1;
}
static int remove_folder(void **state) {
  char command[64];
  (void)state;
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  return system(command);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_same_content_has_the_same_number),
      cmocka_unit_test(every_part_of_the_content_counts),
      cmocka_unit_test(long_literals_are_cut_and_still_told_apart_by_what_stands_before),
      cmocka_unit_test(schemas_are_told_apart_by_kind_format_keys_and_types),
      cmocka_unit_test(sites_of_an_older_arena_stand_in_the_new_one),
      cmocka_unit_test(with_the_gate_closed_arguments_stay_or_are_flagged_and_counted),
      cmocka_unit_test(a_library_that_comes_back_finds_its_old_numbers),
      cmocka_unit_test(texts_that_are_cut_are_told_again_and_again_without_memory),
      cmocka_unit_test(sites_beyond_the_limit_take_no_memory),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
