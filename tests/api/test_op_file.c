/* Results that are kept in an SQLite file: found by another process, shared by several, and every
   way in which the file may be wrong. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <prof/op.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "../fault/support/skip.h"
#include "hang_guard.h"

enum { PROCESSES = 6, OPERATORS = 8 };

static struct { char folder[64], path[96]; } own;

static int runs;

static int run(void *user) {
  (void)user;
  runs++;
  return 0;
}

static const prof_op_options few = {
    .size = sizeof few, .no_warmup = 1, .exec = 1, .repeat = 8, .repeat_all = 1};

static prof_op_info measure(const char *key, const char *driver) {
  const prof_op op = {.size = sizeof op, .key = key, .run = run, .driver = driver};
  prof_op_result *result = NULL;
  prof_op_info info = {.size = sizeof info};
  if (prof_op_profile(&op, &few, &result) != PROF_OK) fail_msg("%s", prof_last_error());
  assert_int_equal(prof_op_info_get(result, &info), PROF_OK);
  prof_op_result_destroy(result);
  return info;
}

static int begin(void **state) {
  (void)state;
  snprintf(own.folder, sizeof own.folder, "/tmp/prof-op-XXXXXX");
  if (!mkdtemp(own.folder)) return 1;
  snprintf(own.path, sizeof own.path, "%s/results.sqlite", own.folder);
  runs = 0;
  return 0;
}

static int end(void **state) {
  char command[160];
  (void)state;
  prof_op_cache_open(NULL);
  prof_op_cache_reset(NULL);
  snprintf(command, sizeof command, "chmod -R u+rwx '%s'; rm -rf '%s'", own.folder, own.folder);
  return system(command) != 0;
}

static void open_cache(void) {
  if (prof_op_cache_open(own.path) != PROF_OK) fail_msg("%s", prof_last_error());
}

/* Another process of the user's, with nothing kept in memory. Its exit status. */
static int elsewhere(int (*body)(void)) {
  int status = 0;
  fflush(NULL);
  const pid_t child = fork();
  if (child == 0) {
    hang_guard();
    prof_op_cache_open(NULL);
    prof_op_cache_reset(NULL); /* of the memory alone */
    _exit(prof_op_cache_open(own.path) == PROF_OK ? body() : 99);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  return WEXITSTATUS(status);
}

static int finds_one(void) {
  const prof_op_info info = measure("one", NULL);
  return info.was_kept == 1 && info.sample_count == 8 && info.exec == 1 &&
                 info.file_status == PROF_OK && runs == 8
             ? 0
             : 1;
}

static void another_process_finds_it(void **state) {
  (void)state;
  open_cache();
  assert_int_equal(prof_op_cache_count(NULL), 0);
  assert_int_equal(measure("one", NULL).was_kept, 0);
  assert_int_equal(runs, 8);
  assert_int_equal(prof_op_cache_count(NULL), 1);
  assert_int_equal(elsewhere(finds_one), 0);
}

/* All that a result says is as it was, to the last bit of each sample. */
static void what_is_found_is_what_was_kept(void **state) {
  const prof_op op = {.size = sizeof op, .key = "whole", .run = run};
  prof_op_result *before = NULL, *after = NULL;
  prof_op_info x = {.size = sizeof x}, y = {.size = sizeof y};
  (void)state;
  open_cache();
  assert_int_equal(prof_op_profile(&op, &few, &before), PROF_OK);
  prof_op_cache_open(NULL);
  prof_op_cache_reset(NULL);
  open_cache();
  assert_int_equal(prof_op_profile(&op, &few, &after), PROF_OK);
  assert_int_equal(runs, 8);
  assert_memory_equal(prof_op_samples(before, NULL), prof_op_samples(after, NULL),
                      8 * sizeof(double));
  prof_op_info_get(before, &x);
  prof_op_info_get(after, &y);
  assert_int_equal(y.was_kept, 1);
  y.was_kept = 0;
  assert_memory_equal(&x, &y, sizeof x);
  prof_op_result_destroy(before);
  prof_op_result_destroy(after);
}

static void forget_but_for_the_file(void) {
  prof_op_cache_open(NULL);
  prof_op_cache_reset(NULL);
  open_cache();
}

static int fill(void *user) {
  (void)user;
  return 0;
}
static int tell(void *user, double *us_out) {
  *us_out = 1;
  return fill(user);
}

/* On a device: with a fill of its caches, or without. */
static prof_op_info measure_cold(int (*cold)(void *user)) {
  prof_op_timer timer = {
      .size = sizeof timer, .name = "a device's", .begin = fill, .end = tell, .cold = cold};
  const prof_op op = {.size = sizeof op,
                      .key = "cold",
                      .run = run,
                      .device = {PROF_DEVICE_OPENCL, 0},
                      .timer = &timer};
  prof_op_options options = few;
  prof_op_result *result = NULL;
  prof_op_info info = {.size = sizeof info};
  options.caches = PROF_OP_COLD;
  forget_but_for_the_file();
  if (prof_op_profile(&op, &options, &result) != PROF_OK) fail_msg("%s", prof_last_error());
  assert_int_equal(prof_op_info_get(result, &info), PROF_OK);
  prof_op_result_destroy(result);
  return info;
}

static void a_device_whose_caches_were_cold_is_not_one_whose_were_not(void **state) {
  (void)state;
  for (uint32_t was_kept = 0; was_kept < 2; was_kept++) {
    const prof_op_info warm = measure_cold(NULL), cold = measure_cold(fill);
    assert_int_equal(warm.was_kept, was_kept);
    assert_int_equal(cold.was_kept, was_kept);
    assert_int_equal(warm.is_device_warm, 1);
    assert_int_equal(cold.is_device_warm, 0);
  }
}

static int nap(void *user) {
  runs++;
  usleep(2000);
  return user != NULL;
}

static const prof_op napping = {.size = sizeof napping, .key = "napping", .run = nap};
static const prof_op_options brief = {.size = sizeof brief, .exec = 1, .time_limit_ns = 5000000};

static prof_op_info measure_napping(void) {
  prof_op_result *result = NULL;
  prof_op_info info = {.size = sizeof info};
  if (prof_op_profile(&napping, &brief, &result) != PROF_OK) fail_msg("%s", prof_last_error());
  assert_int_equal(prof_op_info_get(result, &info), PROF_OK);
  prof_op_result_destroy(result);
  return info;
}

static void the_warm_up_that_ran_is_kept(void **state) {
  (void)state;
  open_cache();
  const prof_op_info before = measure_napping();
  assert_true(before.warmup >= 1 && before.warmup < 10);
  assert_int_equal(before.warmup + before.sample_count, runs);
  forget_but_for_the_file();
  const prof_op_info after = measure_napping();
  assert_int_equal(after.was_kept, 1);
  assert_int_equal(after.warmup, before.warmup);
}

static void a_driver_is_another_result(void **state) {
  (void)state;
  open_cache();
  measure("one", "driver 1");
  assert_int_equal(measure("one", "driver 2").was_kept, 0);
  assert_int_equal(measure("one", "driver 1").was_kept, 1);
  assert_int_equal(prof_op_cache_count(NULL), 2);
  prof_op_cache_reset(NULL);
  assert_int_equal(prof_op_cache_count(NULL), 0);
  assert_int_equal(measure("one", "driver 1").was_kept, 0);
}

/* ---- several at once ---- */

static int measures_all(void) {
  char key[32];
  for (int round = 0; round < 3; round++)
    for (int i = 0; i < OPERATORS; i++) {
      snprintf(key, sizeof key, "operator %d", i);
      const prof_op_info info = measure(key, NULL);
      if (info.sample_count != 8 || info.file_status != PROF_OK) return 1;
    }
  return 0;
}

static void processes_share_it(void **state) {
  pid_t children[PROCESSES];
  (void)state;
  fflush(NULL);
  for (int i = 0; i < PROCESSES; i++) { /* all make it at once: nobody has before */
    children[i] = fork();
    assert_true(children[i] >= 0);
    if (children[i] == 0) {
      hang_guard();
      _exit(prof_op_cache_open(own.path) == PROF_OK ? measures_all() : 99);
    }
  }
  for (int i = 0; i < PROCESSES; i++) {
    int status = 0;
    assert_int_equal(waitpid(children[i], &status, 0), children[i]);
    assert_int_equal(status, 0);
  }
  open_cache();
  assert_int_equal(prof_op_cache_count(NULL), OPERATORS);
}

/* ---- files that are wrong ---- */

static void refuse(const char *path, int status, const char *text) {
  assert_int_equal(prof_op_cache_open(path), status);
  if (!strstr(prof_last_error(), text)) fail_msg("'%s' has no '%s'", prof_last_error(), text);
  assert_int_equal(measure("refused", NULL).file_status, PROF_OK); /* it is not in force */
}

static void write_file(const char *text) {
  FILE *const file = fopen(own.path, "w");
  assert_non_null(file);
  assert_true(fputs(text, file) >= 0);
  assert_int_equal(fclose(file), 0);
}

static void shell(const char *format) {
  char command[512];
  snprintf(command, sizeof command, format, own.path);
  assert_int_equal(system(command), 0);
}

static int finds_napping(void) {
  return measure_napping().was_kept == 1 && prof_op_cache_count(NULL) == 2 ? 0 : 1;
}

/* What it keeps is found, said as it was asked for, and goes on to be added to. */
static void go_on_with(const char *made_older, int knows_warmup) {
  open_cache();
  const prof_op_info then = measure_napping();
  prof_op_cache_open(NULL);
  prof_op_cache_reset(NULL);
  shell(made_older);
  open_cache();
  const prof_op_info old = measure_napping();
  assert_int_equal(old.was_kept, 1);
  assert_int_equal(old.file_status, PROF_OK);
  assert_int_equal(old.warmup, knows_warmup ? then.warmup : 10);
  assert_int_equal(old.looks, 0);
  assert_int_equal(measure("another", NULL).file_status, PROF_OK);
  assert_int_equal(elsewhere(finds_napping), 0);
}

#define DROP(columns)                                                                \
  "python3 -c \"import sqlite3; c = sqlite3.connect('%s'); [c.execute('alter table " \
  "prof_op_results drop column ' + "                                                 \
  "x) for x in '" columns "'.split()]; "
#define OF_LAYOUT_3 "workspace_source looks throttle clock_low_hz clock_high_hz"

/* The first one knew nothing of the warm-up, the second nothing of a device's meters. */
static void a_file_of_the_first_layout_is_gone_on_with(void **state) {
  (void)state;
  go_on_with(DROP(OF_LAYOUT_3 " warmup") "c.execute('pragma user_version = 1'); c.commit()\"", 0);
}

static void a_file_of_the_layout_before_is_gone_on_with(void **state) {
  (void)state;
  go_on_with(DROP(OF_LAYOUT_3) "c.execute('pragma user_version = 2'); c.commit()\"", 1);
}

static void what_is_no_cache_is_refused_and_left_alone(void **state) {
  char path[160];
  struct stat about;
  static const char text[] =
      "This is a letter, and no database; it is long enough for the header of one, which has a "
      "hundred bytes, to be looked "
      "at.\n";
  (void)state;
  refuse("", PROF_E_INVALID, "empty");
  refuse(own.folder, PROF_E_FILE_TYPE, "directory");
  snprintf(path, sizeof path, "%s/none/results", own.folder);
  refuse(path, PROF_E_NOT_FOUND, "there is no folder");
  write_file(text);
  refuse(own.path, PROF_E_IO, "no SQLite file");
  assert_int_equal(stat(own.path, &about), 0);
  assert_int_equal(about.st_size, sizeof text - 1);
  unlink(own.path);
  shell(
      "python3 -c \"import sqlite3; c = sqlite3.connect('%s'); c.execute('create table mine (x)'); "
      "c.commit()\"");
  refuse(own.path, PROF_E_IO, "another program's");
  shell(
      "python3 -c \"import sqlite3; c = sqlite3.connect('%s'); assert [r[0] for r in "
      "c.execute('select name from "
      "sqlite_master')] == ['mine']\"");
  if (getuid() != 0) {
    chmod(own.path, 0);
    refuse(own.path, PROF_E_PERMISSION, "may not");
  }
}

static void a_newer_layout_is_refused(void **state) {
  (void)state;
  open_cache();
  prof_op_cache_open(NULL);
  shell(
      "python3 -c \"import sqlite3; c = sqlite3.connect('%s'); c.execute('pragma user_version = "
      "7'); c.commit()\"");
  refuse(own.path, PROF_E_VERSION, "layout 7");
}

/* Whatever becomes of it later costs a measurement, and nothing else. */
static void a_file_that_is_spoilt_costs_a_measurement(void **state) {
  static const char *const spoils[] = {
      "python3 -c \"import sqlite3; c = sqlite3.connect('%s'); c.execute(\\\"update "
      "prof_op_results set samples_us = "
      "x'00'\\\"); c.commit()\"",
      "python3 -c \"import sqlite3; c = sqlite3.connect('%s'); c.execute(\\\"update "
      "prof_op_results set samples_us = "
      "zeroblob(0), exec = -3\\\"); c.commit()\"",
      "python3 -c \"import sqlite3, struct; c = sqlite3.connect('%s'); c.execute('update "
      "prof_op_results set samples_us = ?', "
      "(struct.pack('dd', float('nan'), -1),)); c.commit()\"",
      "python3 -c \"import sqlite3; c = sqlite3.connect('%s'); c.execute('drop table "
      "prof_op_results'); c.commit()\"",
      "python3 -c \"b = bytearray(open('%1$s', 'rb').read()); b[100:] = b'x' * (len(b) - 100); "
      "open('%1$s', 'wb').write(b)\"",
      "printf 'no database, but a text that is longer than the hundred bytes of a header, so that "
      "it is looked at, and "
      "refused' > '%s'",
      "truncate -s 5000 '%s'"};
  (void)state;
  for (size_t i = 0; i < sizeof spoils / sizeof *spoils; i++) {
    prof_op_cache_open(NULL);
    unlink(own.path);
    prof_op_cache_reset(NULL);
    open_cache();
    measure("one", NULL);
    prof_op_cache_open(NULL);
    prof_op_cache_reset(NULL);
    open_cache();
    shell(spoils[i]);
    runs = 0;
    const prof_op_info info = measure("one", NULL);
    assert_int_equal(runs, 8);
    assert_int_equal(info.sample_count, 8);
    if (info.file_status == PROF_OK) fail_msg("spoilt in way %zu, and not said", i);
    prof_op_cache_count(NULL);
  }
  unlink(own.path);
  assert_int_equal(measure("two", NULL).file_status, PROF_OK); /* made anew */
}

/* Python's words on the table, in the place of what is kept there; c is the file. */
static void alter(const char *words) {
  char command[1024];
  snprintf(command, sizeof command,
           "python3 -c \"import sqlite3, struct; c = sqlite3.connect('%s'); %s; c.commit()\"",
           own.path, words);
  assert_int_equal(system(command), 0);
}

/* What a caller asked for is what it has room for: a row of the same words that has more samples,
   or fewer, or of other runs, is not it. */
static void a_row_that_does_not_fit_what_was_asked_is_measured_again(void **state) {
  static const char *const rows[] = {
      "c.execute('update prof_op_results set samples_us = ?', (struct.pack('5000d', *[1.0] * "
      "5000),))",
      "c.execute('update prof_op_results set samples_us = ?', (struct.pack('d', 1.0),))",
      "c.execute('update prof_op_results set is_time_over = 1, samples_us = ?', (struct.pack('d', "
      "1.0),))",
      "c.execute('update prof_op_results set exec = 5')",
      "c.execute('update prof_op_results set warmup = 9')",
      "c.execute('update prof_op_results set warmup = 0')",
      "c.execute('update prof_op_results set warmup = 4294967299')",
      "c.execute('update prof_op_results set workspace_source = 4')",
      "c.execute('update prof_op_results set looks = 4294967296')",
      "c.execute('update prof_op_results set clock_high_hz = 1e300')"};
  const prof_op op = {.size = sizeof op, .key = "list", .run = run};
  const prof_op_options same = {.size = sizeof same,
                                .warmup = 3,
                                .exec = 2,
                                .repeat = 10,
                                .repeat_all = 1,
                                .time_limit_ns = UINT64_MAX};
  (void)state;
  open_cache();
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    double *const us = malloc(10 * sizeof *us); /* of its own, for the sanitizers and valgrind */
    prof_op_result *result = NULL;
    prof_op_info info = {.size = sizeof info};
    assert_non_null(us);
    prof_op_cache_reset(NULL);
    assert_int_equal(prof_op_latency(&op, 3, 2, 10, us, NULL), PROF_OK);
    alter(rows[i]);
    forget_but_for_the_file();
    runs = 0;
    for (int j = 0; j < 10; j++) us[j] = -1;
    assert_int_equal(prof_op_latency(&op, 3, 2, 10, us, NULL), PROF_OK);
    if (runs != 23) fail_msg("row %zu was taken: %d runs", i, runs);
    for (int j = 0; j < 10; j++) assert_true(us[j] >= 0);
    free(us);
    alter(rows[i]); /* what was measured stood in its place */
    forget_but_for_the_file();
    assert_int_equal(prof_op_profile(&op, &same, &result), PROF_OK);
    prof_op_info_get(result, &info);
    assert_int_equal(info.file_status, PROF_E_IO);
    assert_non_null(strstr(prof_last_error(), "the row of 'list' is damaged"));
    assert_int_equal(info.sample_count, 10);
    prof_op_result_destroy(result);
  }
}

/* In its place, or beside it: a reader of the table would run what they say. */
static void a_file_with_more_than_tables_is_refused(void **state) {
  static const char *const schemas[] = {
      "c.execute('drop table prof_op_results'); c.execute('create view prof_op_results as with "
      "recursive r(x) as (select 1 "
      "union "
      "all select x + 1 from r) select x device_type, x device_index, x operator, x driver, x "
      "asked, x exec, x samples_us from "
      "r')",
      "c.execute('create view beside as select 1')",
      "c.execute('create trigger beside after delete on prof_op_results begin select 1; end')",
      "c.execute('drop table prof_op_results'); c.execute('create virtual table prof_op_results "
      "using fts5(operator, "
      "driver)')"};
  (void)state;
  for (size_t i = 0; i < sizeof schemas / sizeof *schemas; i++) {
    prof_op_cache_open(NULL);
    unlink(own.path);
    prof_op_cache_reset(NULL);
    open_cache();
    alter(schemas[i]);
    hang_guard(); /* an open of the first one without a check never returns */
    assert_int_equal(prof_op_cache_count(NULL), 0);
    assert_int_equal(measure("one", NULL).file_status, PROF_E_IO);
    prof_op_cache_reset(NULL);
    prof_op_cache_open(NULL);
    refuse(own.path, PROF_E_IO, "damaged: there is more in it than tables");
    prof_op_cache_reset(NULL);
    alarm(0);
  }
}

/* Eight pages, each of whose cells all lead to the next one: 40^8 rows and more in some kilobytes,
   of a sound table's schema. */
static void a_table_without_end_is_left(void **state) {
  static const char script[] =
      "import struct\n"
      "path, pages = '%s', []\n"
      "data = bytearray(open(path, 'rb').read())\n"
      "size = struct.unpack('>H', data[16:18])[0]\n"
      "count = len(data) // size\n"
      "def page(kind, cells, right):\n"
      "  head, at, p = (12 if right else 8), size, bytearray(size)\n"
      "  for i, cell in enumerate(cells):\n"
      "    at -= len(cell); p[at:at + len(cell)] = cell; p[head + 2 * i:head + 2 * i + 2] = "
      "struct.pack('>H', at)\n"
      "  p[0:8] = struct.pack('>BHHHB', kind, 0, len(cells), at, 0)\n"
      "  if right: p[8:12] = struct.pack('>I', right)\n"
      "  return p\n"
      "record = bytes([7, 7, 0, 0, 0, 0, 0, 0])\n"
      "row = bytes([16, 1, 16]) + bytes(15)\n"
      "import sqlite3\n"
      "roots = [r[0] for r in sqlite3.connect(path).execute('select rootpage from sqlite_master "
      "order by type desc')]\n"
      "for root, inner, leaf, key, last in ((roots[0], 5, 13, bytes([1]), row), (roots[1], 2, 10, "
      "record, record)):\n"
      "  for level in range(9):\n"
      "    data += page(inner, [struct.pack('>I', count + level + 2) + key] * 40, count + level + "
      "2) if level < 8 else "
      "page(leaf, [last] "
      "* 20, 0)\n"
      "  data[(root - 1) * size:root * size] = page(inner, [struct.pack('>I', count + 1) + key] * "
      "40, count + 1)\n"
      "  count += 9\n"
      "data[28:32] = struct.pack('>I', count)\n"
      "open(path, 'wb').write(data)\n";
  char text[sizeof script + 128], path[160];
  (void)state;
  open_cache();
  measure("one", NULL);
  snprintf(path, sizeof path, "%s/endless.py", own.folder);
  snprintf(text, sizeof text, script, own.path);
  FILE *const file = fopen(path, "w");
  assert_non_null(file);
  assert_true(fputs(text, file) >= 0);
  assert_int_equal(fclose(file), 0);
  snprintf(text, sizeof text, "python3 '%s'", path);
  assert_int_equal(system(text), 0);
  hang_guard();
  assert_int_equal(prof_op_cache_count(NULL), 1); /* of the memory: the file was given up */
  assert_non_null(strstr(prof_last_error(), "damaged: it takes more than 4 s"));
  prof_op_cache_reset(NULL);
  alarm(0);
}

static void a_file_that_is_locked_costs_a_measurement(void **state) {
  int ready[2], status = 0;
  char byte;
  (void)state;
  open_cache();
  assert_int_equal(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    char text[512];
    snprintf(text, sizeof text,
             "import sqlite3, os, time; c = sqlite3.connect('%s', isolation_level=None); "
             "c.execute('begin exclusive'); "
             "os.write(%d, b'x'); time.sleep(60)",
             own.path, ready[1]);
    execlp("python3", "python3", "-c", text, (char *)NULL);
    _exit(9);
  }
  assert_int_equal(read(ready[0], &byte, 1), 1);
  const prof_op_info info = measure("locked", NULL);
  kill(child, SIGKILL);
  waitpid(child, &status, 0);
  assert_int_equal(info.file_status, PROF_E_IO);
  assert_int_equal(info.sample_count, 8);
  assert_int_equal(measure("after", NULL).file_status, PROF_OK);
  close(ready[0]);
  close(ready[1]);
}

static void it_stays_where_it_is_when_the_process_goes_elsewhere(void **state) {
  char before[4096];
  (void)state;
  assert_non_null(getcwd(before, sizeof before));
  assert_int_equal(chdir(own.folder), 0);
  assert_int_equal(prof_op_cache_open("results.sqlite"), PROF_OK);
  assert_int_equal(chdir("/"), 0);
  assert_int_equal(measure("one", NULL).file_status, PROF_OK);
  assert_int_equal(access(own.path, F_OK), 0);
  assert_int_equal(chdir(before), 0);
}

int main(void) {
#define ENTRY(test) cmocka_unit_test_setup_teardown(test, begin, end)
  const struct CMUnitTest tests[] = {
      ENTRY(another_process_finds_it),
      ENTRY(what_is_found_is_what_was_kept),
      ENTRY(the_warm_up_that_ran_is_kept),
      ENTRY(a_file_of_the_first_layout_is_gone_on_with),
      ENTRY(a_file_of_the_layout_before_is_gone_on_with),
      ENTRY(a_driver_is_another_result),
      ENTRY(a_device_whose_caches_were_cold_is_not_one_whose_were_not),
      ENTRY(processes_share_it),
      ENTRY(what_is_no_cache_is_refused_and_left_alone),
      ENTRY(a_newer_layout_is_refused),
      ENTRY(a_file_that_is_spoilt_costs_a_measurement),
      ENTRY(a_row_that_does_not_fit_what_was_asked_is_measured_again),
      ENTRY(a_file_with_more_than_tables_is_refused),
      ENTRY(a_file_that_is_locked_costs_a_measurement),
      ENTRY(it_stays_where_it_is_when_the_process_goes_elsewhere),
  };
  begin(NULL);
  const int status = prof_op_cache_open(own.path);
  end(NULL);
  if (status == PROF_E_UNSUPPORTED) skip_because(prof_last_error());
  /* it is read for 4 s */
  const struct CMUnitTest patient_tests[] = {ENTRY(a_table_without_end_is_left)};
  if (getenv("PROF_LONG") && cmocka_run_group_tests(patient_tests, NULL, NULL) != 0) return 1;
  return cmocka_run_group_tests(tests, NULL, NULL);
}
