/* --repeat: the same run several times, and one table of all. See internal.h. */
#define _GNU_SOURCE
#include "run.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../prof/commands.h"
#include "output.h"

enum { ROWS_MAX = 40 }; /* of the table: more are in summary.json */

typedef struct single_run {
  const char *folder; /* or NULL */
  int status;
  double seconds;           /* below 0: it was not run */
  bool run_was_interrupted; /* a signal asked for the end: its time does not count */
} single_run;

typedef struct repeated_runs {
  const run_request *request;
  const char *path; /* of summary.json, or NULL */
  struct timespec begun;
  single_run *runs;
  size_t count, wanted;
  bool is_stopped;
  double median, least, most; /* of those that were run */
  size_t timed;
  run_retained retained;
} repeated_runs;

static int duration_compare(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void measure_runs(repeated_runs *all) {
  double *const seconds = run_make(all->count, sizeof *seconds);
  size_t count = 0;
  for (size_t i = 0; i < all->count; i++)
    if (all->runs[i].seconds >= 0 && !all->runs[i].run_was_interrupted)
      seconds[count++] = all->runs[i].seconds;
  qsort(seconds, count, sizeof *seconds, duration_compare);
  all->timed = count;
  if (count > 0) {
    all->median = (seconds[(count - 1) / 2] + seconds[count / 2]) / 2;
    all->least = seconds[0];
    all->most = seconds[count - 1];
  }
  free(seconds);
}

/* ---- as JSON ---- */

static void put_runs_json(FILE *to, const repeated_runs *all, bool is_ended) {
  const run_words *const words = &all->request->workload;
  fputs("{\n  \"command\": ", to);
  run_json_put_text(to, run_words_quoted(words));
  run_json_put_member(to, "name", run_workload_name(words));
  run_json_put_list(to, "words", words);
  run_json_put_time(to, "begun", &all->begun);
  run_json_put_place(to);
  run_json_put_member(to, "state", !is_ended ? "running" : all->is_stopped ? "stopped" : "ended");
  fprintf(to, ",\n  \"repeat\": %zu", all->wanted);
  if (all->timed > 0)
    fprintf(to, ",\n  \"seconds\": {\"median\": %.6f, \"least\": %.6f, \"most\": %.6f}",
            all->median, all->least, all->most);
  fputs(",\n  \"runs\": [", to);
  for (size_t i = 0; i < all->count; i++) {
    const single_run *const run = &all->runs[i];
    fprintf(to, "%s\n    {\"folder\": ", i ? "," : "");
    run_json_put_text(to, run->folder);
    fprintf(to, ", \"status\": %d, \"seconds\": ", run->status);
    if (run->seconds >= 0)
      fprintf(to, "%.6f}", run->seconds);
    else
      fputs("null}", to);
  }
  fputs("\n  ]\n}\n", to);
}

static void put_run_begin(FILE *to, const void *context) { put_runs_json(to, context, false); }

/* After each run, so that a run that is killed leaves those before it. */
static bool write_runs(const repeated_runs *all, bool is_ended) {
  if (!all->path) return true;
  FILE *const to = run_output_begin(all->path);
  if (to) put_runs_json(to, all, is_ended);
  return run_output_end(to, all->path);
}

/* ---- as text ---- */

/* Up to two runs that left captures. Returns how many. */
static size_t find_recorded(const repeated_runs *all, const char *folders[2]) {
  size_t count = 0;
  for (size_t i = 0; i < all->count && count < 2; i++) {
    const char *const folder = all->runs[i].folder;
    if (folder && run_folder_names(run_text("%s/prof_output", folder)).count > 0)
      folders[count++] = folder;
  }
  return count;
}

static void print_hint(const repeated_runs *all) {
  const char *folders[2];
  if (!all->request->has_folder)
    say("  with -o DIR the files of each run are kept, to compare them");
  else if (find_recorded(all, folders) == 2)
    say("  to compare two runs: prof diff %s %s", run_word_quoted(folders[0]),
        run_word_quoted(folders[1]));
}

static void print_runs(const repeated_runs *all) {
  say("prof run: %s: %zu run%s", run_words_quoted(&all->request->workload), all->count,
      all->count == 1 ? "" : "s");
  say("  %6s %10s %7s%s", "run", "seconds", "status", all->request->has_folder ? "  files" : "");
  for (size_t i = 0; i < all->count; i++) {
    const single_run *const run = &all->runs[i];
    const bool has_folder = all->request->has_folder && run->folder;
    const char *const folder = has_folder ? run_text("  %s", run->folder) : "";
    if (i == ROWS_MAX && all->count > ROWS_MAX + 1) {
      say("  and %zu more", all->count - ROWS_MAX);
      break;
    }
    if (run->seconds >= 0)
      say("  %6zu %10.3f %7d%s%s", i + 1, run->seconds, run->status, folder,
          run->run_was_interrupted ? "  interrupted" : "");
    else
      say("  %6zu %10s %7s%s", i + 1, "-", "not run", folder);
  }
  if (all->timed > 0)
    say("  %.3f s in the median, %.3f at least, %.3f at most, spread %.1f %%", all->median,
        all->least, all->most, all->median > 0 ? (all->most - all->least) / all->median * 100 : 0);
  print_hint(all);
}

/* ---- the runs ---- */

/* Somebody wants an end. */
static bool run_was_interrupted(const single_run *run) {
  return run_signals_interrupt() || run->status == 128 + SIGINT || run->status == 128 + SIGTERM ||
         run->status == 128 + SIGHUP;
}

static single_run run_once(repeated_runs *all, unsigned number) {
  const run_request *const request = all->request;
  run_request one = *request;
  single_run run = {0};
  if (!request->is_quiet) one.retained = &all->retained;
  one.is_repeated = true;
  one.has_next = number < all->wanted;
  if (request->has_folder)
    run.folder = one.folder = run_output_new_folder(request->folder, run_text("run-%u", number));
  run.status = run_stack_execute(&one, &run.seconds);
  run.run_was_interrupted = run_was_interrupted(&run);
  return run;
}

int run_repeat(const run_request *request, unsigned count) {
  repeated_runs all = {.request = request, .wanted = count, .retained = {.lock = -1}};
  int status = 0;
  clock_gettime(CLOCK_REALTIME, &all.begun);
  run_output_make_folder(request->folder);
  if (request->has_folder)
    all.path = run_output_write_new(request->folder, "summary", ".json", put_run_begin, &all);
  all.runs = run_make(count, sizeof *all.runs);
  run_signals_hold();
  bool is_written = true;
  while (all.count < count && !all.is_stopped) {
    const single_run run = run_once(&all, (unsigned)all.count + 1);
    all.runs[all.count++] = run;
    if (status == 0) status = run.status;
    all.is_stopped = all.count < count && (run.run_was_interrupted || run.seconds < 0);
    measure_runs(&all);
    is_written = write_runs(&all, all.count == count || all.is_stopped);
  }
  if (!is_written) {
    const int error = errno;
    unlink(all.path);
    say("prof run: cannot write '%s': %s", all.path, strerror(error));
  }
  if (all.is_stopped)
    say("prof run: %zu of %u runs: %s", all.count, count,
        all.runs[all.count - 1].seconds < 0 ? "the last one could not start"
                                            : "a signal asked for the end");
  if (!request->is_quiet) {
    run_retained_print(&all.retained, &request->table_options);
    print_runs(&all);
  }
  run_retained_remove(&all.retained);
  run_signals_release();
  run_signals_end_as(status);
  return status;
}
