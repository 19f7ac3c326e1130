/* Captures of --repeat, for one table at the end. See captures.h. */
#define _GNU_SOURCE
#include "captures.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../prof/commands.h"

/* The captures of a long series would fill the disk, or take long to read. */
enum { RUNS_MAX = 100 };
static const uint64_t retained_bytes_max = UINT64_C(1) << 30;

/* ---- the folder ---- */

static struct {
  run_retained *retained;
  pid_t pid;
} exit_cleanup;

/* A later run may end the process. */
static void remove_at_exit(void) {
  if (exit_cleanup.retained && exit_cleanup.pid == getpid())
    run_retained_remove(exit_cleanup.retained);
}

static void make_folder(run_retained *retained) {
  retained->folder = run_temporary_folder();
  retained->lock = run_temporary_hand_over();
  if (exit_cleanup.pid == 0) atexit(remove_at_exit);
  exit_cleanup.retained = retained;
  exit_cleanup.pid = getpid();
}

void run_retained_remove(run_retained *retained) {
  if (!retained->folder) return;
  for (size_t i = 0; i < retained->elsewhere.count; i++) unlink(retained->elsewhere.items[i]);
  run_temporary_remove(retained->folder);
  if (retained->lock >= 0) close(retained->lock);
  retained->folder = NULL;
  exit_cleanup.retained = NULL;
}

/* ---- captures ---- */

/* In its own directory, under a name that no later run takes for its own. */
static const char *retained_rename(run_retained *retained, const char *path) {
  const int directory = (int)(strrchr(path, '/') - path);
  const char *const to = run_text("%.*s/%s.%zu.prof", directory, path,
                                  run_base_name(retained->folder), retained->elsewhere.count + 1);
  if (rename(path, to) != 0) return NULL;
  run_words_add(&retained->elsewhere, to);
  return to;
}

/* Returns the new path, or NULL with errno set. */
static const char *retained_move(run_retained *retained, const run_capture *capture) {
  struct stat is;
  if (!retained->folder) make_folder(retained);
  const char *const path = capture->path, *const name = run_base_name(path);
  const char *to = run_text("%s/%zu.%s", retained->folder, retained->count, name);
  if (stat(path, &is) != 0) return NULL;
  if (rename(path, to) != 0) to = capture->is_elsewhere ? retained_rename(retained, path) : NULL;
  if (to) retained->bytes += (uint64_t)is.st_size;
  return to;
}

static void retain_capture(run_retained *retained, const run_capture *capture, bool is_temporary) {
  const char *path = NULL, *why = capture->error;
  if (capture->is_live) why = "its process still runs";
  if (!why) path = is_temporary ? retained_move(retained, capture) : capture->path;
  if (path) {
    run_words_add(&retained->paths, path);
    return;
  }
  if (!why) why = strerror(errno);
  if (retained->missing++ > 0) return;
  retained->why_missing = capture->error ? why : run_text("%s: %s", capture->path, why);
}

void run_retained_add(run_retained *retained, const run_captures *captures, const char *why_nothing,
                      bool is_temporary) {
  if (!run_captures_have_events(captures)) {
    retained->why_nothing = why_nothing;
    return;
  }
  if (retained->count >= RUNS_MAX || retained->bytes >= retained_bytes_max) {
    retained->left_out++;
    return;
  }
  retained->count++;
  for (size_t i = 0; i < captures->count; i++) {
    const run_capture *const capture = &captures->items[i];
    if (!capture->is_empty && !capture->is_own) retain_capture(retained, capture, is_temporary);
  }
}

/* ---- the table ---- */

typedef struct report_context {
  run_captures captures;
  const run_words *options;
} report_context;

static int print_report(void *context) {
  const report_context *const r = context;
  run_captures_report(&r->captures, r->options);
  return 0;
}

void run_retained_print(const run_retained *retained, const run_words *options) {
  report_context r = {.options = options};
  if (retained->missing > 0)
    say("prof run: %zu capture%s not in the table%s %s", retained->missing,
        retained->missing == 1 ? " is" : "s are",
        retained->missing == 1 ? ":" : ", the first of them", retained->why_missing);
  if (retained->paths.count == 0) {
    if (retained->why_nothing) say("prof run: %s", retained->why_nothing);
    return;
  }
  run_captures_read(&retained->paths, &r.captures);
  if (retained->left_out > 0)
    say("prof run: the table has the first %zu of %zu runs", retained->count,
        retained->count + retained->left_out);
  else
    say("prof run: %zu run%s together:", retained->count, retained->count == 1 ? "" : "s");
  run_child_call(print_report, &r);
}
