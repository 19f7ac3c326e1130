/* Whatever is written out is what was recorded, event by event. Four threads record scopes with
   numbers of their own. Each export is read back by a few lines that share nothing with prof.
   Chrome JSON goes through a pipe that counts, as it would to a program that reads along.

   PROF_EXPORTS: how many scopes (a million). */
#define _GNU_SOURCE
#include <prof/profiler.h>
#include <prof/trace.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "fault/support/captures.h"
#include "fault/support/skip.h"
#include "hang_guard.h"

enum { THREADS = 4 };

/* Count, sum and sum of squares (modulo 2^64): which numbers were there, and each once. */
typedef struct tally {
  uint64_t count, sum, squares;
} tally;

static struct {
  uint64_t wanted;
  tally truth;
} own;

static void take(tally *t, uint64_t number) {
  t->count++;
  t->sum += number;
  t->squares += number * number;
}

static void check(const char *what, const tally *seen) {
  print_message("  %-28s %10llu scopes\n", what, (unsigned long long)seen->count);
  if (seen->count != own.truth.count || seen->sum != own.truth.sum ||
      seen->squares != own.truth.squares)
    fail_msg("%s: %llu scopes, sum %llu, squares %llu; recorded were %llu, %llu, %llu", what,
             (unsigned long long)seen->count, (unsigned long long)seen->sum,
             (unsigned long long)seen->squares, (unsigned long long)own.truth.count,
             (unsigned long long)own.truth.sum, (unsigned long long)own.truth.squares);
}

/* ---- recording ---- */

static void *record(void *which) {
  for (uint64_t number = (uint64_t)(uintptr_t)which; number < own.wanted; number += THREADS) {
    WITH_BASE_PROFILER(PROF_HOST, "counted", "exports", PROF_ARGS("number", number), {});
  }
  return NULL;
}

static int record_all(void **state) {
  const prof_options options = {.size = sizeof options,
                                .policy = PROF_POLICY_STREAM,
                                .path = captures_path("out.json"),
                                .keep_capture = 1,
                                .cap_bytes = (own.wanted * 48 / (1 << 20) + 64) << 20};
  pthread_t threads[THREADS];
  (void)state;
  if (prof_start_with(&options) != PROF_OK) return -1;
  for (intptr_t i = 0; i < THREADS; i++)
    if (pthread_create(&threads[i], NULL, record, (void *)i) != 0) return -1;
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  prof_stop();
  for (uint64_t number = 0; number < own.wanted; number++) take(&own.truth, number);
  return 0;
}

/* ---- reading back ---- */

/* Of the lines that have `part` in them, if it is not NULL. */
static void read_lines(FILE *from, const char *before_number, const char *part, tally *seen) {
  char *line = NULL;
  size_t room = 0;
  while (getline(&line, &room, from) > 0) {
    const bool is_one = strstr(line, "\"counted\"") && (!part || strstr(line, part));
    const char *const at = is_one ? strstr(line, before_number) : NULL;
    if (at) take(seen, strtoull(at + strlen(before_number), NULL, 10));
  }
  free(line);
}

typedef struct pipe_reader {
  const char *path;
  tally seen;
} pipe_reader;

static void *read_pipe(void *argument) {
  pipe_reader *const reader = argument;
  FILE *const from = fopen(reader->path, "r");
  if (!from) return (void *)1;
  read_lines(from, "\"number\":", NULL, &reader->seen);
  fclose(from);
  return NULL;
}

static void chrome_json_through_a_pipe(void **state) {
  char path[CAPTURE_PATH_MAX];
  pthread_t thread;
  void *failed = NULL;
  (void)state;
  snprintf(path, sizeof path, "%s", captures_path("pipe.json"));
  assert_int_equal(mkfifo(path, 0600), 0);
  pipe_reader reader = {.path = path};
  assert_int_equal(pthread_create(&thread, NULL, read_pipe, &reader), 0);
  unsigned naps = 0;
  int status;
  do status = prof_dump(path); /* until the reader has opened it */
  while (status != PROF_OK && reader.seen.count == 0 && hang_nap(&naps));
  if (status != PROF_OK) fail_msg("%s (%s)", prof_status_name(status), prof_last_error());
  pthread_join(thread, &failed);
  assert_null(failed);
  check("Chrome JSON, a pipe", &reader.seen);
}

static void chrome_json_compressed(void **state) {
  char command[CAPTURE_PATH_MAX + 32];
  tally seen = {0};
  (void)state;
  const int status = prof_dump(captures_path("out.json.gz"));
  if (status == PROF_E_UNSUPPORTED) {
    print_message("skip: this build of prof has no zlib\n");
    skip();
  }
  assert_int_equal(status, PROF_OK);
  snprintf(command, sizeof command, "gzip -dc '%s'", captures_path("out.json.gz"));
  FILE *const from = popen(command, "r");
  assert_non_null(from);
  read_lines(from, "\"number\":", NULL, &seen);
  assert_int_equal(pclose(from), 0);
  check("Chrome JSON, .gz by gzip", &seen);
}

static void rafs_log(void **state) {
  static const char *const parts[] = {"\"ph\":\"B\"", "\"ph\":\"E\""};
  static const char *const whats[] = {"RAF's log, begins", "RAF's log, ends"};
  const prof_dump_options options = {.size = sizeof options, .format = PROF_FORMAT_RAF};
  (void)state;
  assert_int_equal(prof_dump_with(captures_path("raf.json"), &options), PROF_OK);
  for (int i = 0; i < 2; i++) {
    tally seen = {0};
    FILE *const from = fopen(captures_path("raf.json"), "r");
    assert_non_null(from);
    read_lines(from, "\"number: ", parts[i], &seen);
    fclose(from);
    check(whats[i], &seen);
  }
}

static void walk(const char *what, const prof_trace *trace) {
  prof_cursor *cursor = NULL;
  prof_event *const event = calloc(1, sizeof *event);
  tally seen = {0};
  assert_non_null(event);
  assert_int_equal(prof_cursor_create(trace, &cursor), PROF_OK);
  while (prof_cursor_next(cursor, event) == 1)
    if (event->kind == PROF_EVENT_SCOPE && event->arg_count == 1)
      take(&seen, event->args[0].value.u64);
  prof_cursor_destroy(cursor);
  free(event);
  check(what, &seen);
}

static void the_reader_and_a_copy_of_the_capture(void **state) {
  const prof_dump_options options = {.size = sizeof options, .format = PROF_FORMAT_CAPTURE};
  prof_trace *trace = NULL;
  (void)state;
  assert_int_equal(prof_get(&trace), PROF_OK);
  walk("the reader", trace);
  assert_int_equal(prof_trace_dump(trace, captures_path("copy.capture"), &options), PROF_OK);
  prof_trace_destroy(trace);
  assert_int_equal(prof_trace_open(captures_path("copy.capture"), &trace), PROF_OK);
  walk("a copy of the capture", trace);
  prof_trace_destroy(trace);
}

static void the_tables(void **state) {
  prof_trace *trace = NULL;
  prof_rows *rows = NULL;
  uint64_t total_ns = 0, count = 0;
  (void)state;
  assert_int_equal(prof_get(&trace), PROF_OK);
  assert_int_equal(prof_trace_aggregate(trace, NULL, &rows), PROF_OK);
  assert_int_equal(rows->row_count, 1);
  assert_int_equal(rows->rows[0].calls_count, own.truth.count);
  prof_rows_destroy(rows);
  prof_trace_destroy(trace);
  assert_int_equal(prof_get_duration("counted", "exports", &total_ns, &count), PROF_OK);
  assert_int_equal(count, own.truth.count);
}

static int clean(void **state) {
  (void)state;
  captures_clear();
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(chrome_json_through_a_pipe),
      cmocka_unit_test(chrome_json_compressed),
      cmocka_unit_test(rafs_log),
      cmocka_unit_test(the_reader_and_a_copy_of_the_capture),
      cmocka_unit_test(the_tables),
  };
  const char *const set = getenv("PROF_EXPORTS");
  own.wanted = set ? strtoull(set, NULL, 0) : SKIP_SANITIZED ? 100000 : 1000000;
  if (!captures_make_folder(false)) return 1;
  const int failed = cmocka_run_group_tests(tests, record_all, clean);
  captures_remove_folder();
  return failed;
}
