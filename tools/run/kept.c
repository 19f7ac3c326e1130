/* See kept.h. */
#define _GNU_SOURCE
#include "kept.h"

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
  run_temporary_remove(kept->folder);
  if (kept->lock >= 0) close(kept->lock);
  kept->folder = NULL;
  at_exit.kept = NULL;
}

/* ---- captures ---- */

/* Returns the new path, or NULL. */
static const char *moved(run_kept *kept, const char *path) {
  struct stat is;
  if (!kept->folder) make_folder(kept);
  const char *const name = strrchr(path, '/') + 1;
  const char *const to = run_text("%s/%zu.%s", kept->folder, kept->count, name);
  if (stat(path, &is) != 0 || rename(path, to) != 0) return NULL;
  kept->bytes += (uint64_t)is.st_size;
  return to;
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
    if (capture->error || capture->is_empty || capture->is_live || capture->is_elsewhere ||
        capture->is_own)
      continue;
    const char *const path = is_temporary ? moved(kept, capture->path) : capture->path;
    if (path) run_words_add(&kept->paths, path);
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
