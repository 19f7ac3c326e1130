/* See kept.h. */
#define _GNU_SOURCE
#include "kept.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../prof/commands.h"
#include "child.h"
#include "temporary.h"

/* The captures of a long series would fill the disk, or take long to read. */
enum { RUNS_MAX = 100 };
static const uint64_t bytes_max = UINT64_C(1) << 30;

/* ---- the folder ---- */

static struct {
  run_kept *kept;
  pid_t pid;
} at_exit;

/* A later run may end the process. */
static void remove_at_exit(void) {
  if (at_exit.kept && at_exit.pid == getpid()) run_kept_remove(at_exit.kept);
}

static void make_folder(run_kept *kept) {
  kept->folder = run_temporary_folder();
  kept->lock = run_temporary_hand_over();
  if (at_exit.pid == 0) atexit(remove_at_exit);
  at_exit.kept = kept;
  at_exit.pid = getpid();
}

void run_kept_remove(run_kept *kept) {
  if (!kept->folder) return;
  for (size_t i = 0; i < kept->elsewhere.count; i++) unlink(kept->elsewhere.items[i]);
  run_temporary_remove(kept->folder);
  if (kept->lock >= 0) close(kept->lock);
  kept->folder = NULL;
  at_exit.kept = NULL;
}

/* ---- captures ---- */

/* In its own directory, under a name that no later run takes for its own. */
static const char *renamed(run_kept *kept, const char *path) {
  const int directory = (int)(strrchr(path, '/') - path);
  const char *const to = run_text("%.*s/%s.%zu.prof", directory, path, run_base_name(kept->folder),
                                  kept->elsewhere.count + 1);
  if (rename(path, to) != 0) return NULL;
  run_words_add(&kept->elsewhere, to);
  return to;
}

/* Returns the new path, or NULL with errno set. */
static const char *moved(run_kept *kept, const run_capture *capture) {
  struct stat is;
  if (!kept->folder) make_folder(kept);
  const char *const path = capture->path, *const name = run_base_name(path);
  const char *to = run_text("%s/%zu.%s", kept->folder, kept->count, name);
  if (stat(path, &is) != 0) return NULL;
  if (rename(path, to) != 0) to = capture->is_elsewhere ? renamed(kept, path) : NULL;
  if (to) kept->bytes += (uint64_t)is.st_size;
  return to;
}

static void take_one(run_kept *kept, const run_capture *capture, bool is_temporary) {
  const char *path = NULL, *why = capture->error;
  if (capture->is_live) why = "its process still runs";
  if (!why) path = is_temporary ? moved(kept, capture) : capture->path;
  if (path) {
    run_words_add(&kept->paths, path);
    return;
  }
  if (!why) why = strerror(errno);
  if (kept->missing++ > 0) return;
  kept->why_missing = capture->error ? why : run_text("%s: %s", capture->path, why);
}

void run_kept_take(run_kept *kept, const run_captures *captures, const char *why_nothing,
                   bool is_temporary) {
  if (!run_captures_have_events(captures)) {
    kept->why_nothing = why_nothing;
    return;
  }
  if (kept->count >= RUNS_MAX || kept->bytes >= bytes_max) {
    kept->left_out++;
    return;
  }
  kept->count++;
  for (size_t i = 0; i < captures->count; i++) {
    const run_capture *const capture = &captures->items[i];
    if (!capture->is_empty && !capture->is_own) take_one(kept, capture, is_temporary);
  }
}

/* ---- the table ---- */

typedef struct report {
  run_captures captures;
  const run_words *options;
} report;

static int print(void *context) {
  const report *const r = context;
  run_captures_report(&r->captures, r->options);
  return 0;
}

void run_kept_print(const run_kept *kept, const run_words *options) {
  report r = {.options = options};
  if (kept->missing > 0)
    say("prof run: %zu capture%s not in the table%s %s", kept->missing,
        kept->missing == 1 ? " is" : "s are", kept->missing == 1 ? ":" : ", the first of them",
        kept->why_missing);
  if (kept->paths.count == 0) {
    if (kept->why_nothing) say("prof run: %s", kept->why_nothing);
    return;
  }
  run_captures_read(&kept->paths, &r.captures);
  if (kept->left_out > 0)
    say("prof run: the table has the first %zu of %zu runs", kept->count,
        kept->count + kept->left_out);
  else
    say("prof run: %zu run%s together:", kept->count, kept->count == 1 ? "" : "s");
  run_child_call(print, &r);
}
