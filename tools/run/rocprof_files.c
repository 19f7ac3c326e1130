/* See rocprof.h: the files that rocprof writes. */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../prof/commands.h"
#include "histogram.h"
#include "output.h"
#include "rocprof.h"

static bool is_folder(const char *path) {
  struct stat is;
  return lstat(path, &is) == 0 && S_ISDIR(is.st_mode);
}

static bool has_file(const char *folder, const char *pattern) {
  const run_words names = run_folder_names(folder);
  for (size_t i = 0; i < names.count; i++)
    if (fnmatch(pattern, names.items[i], 0) == 0) return true;
  return false;
}

/* Tables that other programs read under names of their own. */
static const char *const tables[] = {"agent_info",   "domain_stats",  "kernel_stats",
                                     "kernel_trace", "hip_api_trace", "counter_collection"};
enum { TABLES = sizeof tables / sizeof *tables };

/* The folder HOST of rocprofv3, its default: all files are PID_KIND. */
static bool is_of_rocprofv3(const char *folder) {
  static const char *const endings[] = {"csv", "db", "json", "pftrace", "otf2", "txt"};
  const run_words names = run_folder_names(folder);
  for (size_t i = 0; i < names.count; i++) {
    const char *const name = names.items[i], *const dot = strrchr(name, '.');
    const size_t digits = strspn(name, "0123456789");
    bool is_known = false;
    for (size_t e = 0; dot && e < sizeof endings / sizeof *endings; e++)
      is_known |= strcmp(dot + 1, endings[e]) == 0;
    if (digits == 0 || name[digits] != '_' || !is_known) return false;
  }
  return names.count > 0;
}

static bool has_table(const char *folder) {
  bool has = has_file(folder, "*_trace.csv");
  for (size_t i = 0; i < TABLES && !has; i++)
    has = has_file(folder, run_text("*_%s.csv", tables[i]));
  return has;
}

static void copy(const char *from, const char *to) {
  if (!run_output_copy(from, to))
    say("prof run: cannot copy '%s' to '%s': %s", from, to, strerror(errno));
}

static void move(const char *from, const char *to) {
  if (!run_output_move(from, to))
    say("prof run: cannot move '%s' to '%s': %s", from, to, strerror(errno));
}

/* Copies all *.csv of a folder into a folder of the same name. */
static void copy_tables(const char *from, const char *to) {
  const run_words names = run_folder_names(from);
  mkdir(to, 0777); /* an error shows in copy() */
  for (size_t i = 0; i < names.count; i++)
    if (fnmatch("*.csv", names.items[i], 0) == 0)
      copy(run_text("%s/%s", from, names.items[i]), run_text("%s/%s", to, names.items[i]));
}

/* Moves the files of processes of this run. */
static void take_own(const run_loose *loose, const char *from, const char *to) {
  const run_words names = run_folder_names(from);
  for (size_t i = 0; i < names.count; i++) {
    if (!run_loose_is_own(loose, from, names.items[i])) continue;
    mkdir(to, 0777); /* an error shows in move() */
    move(run_text("%s/%s", from, names.items[i]), run_text("%s/%s", to, names.items[i]));
  }
  rmdir(from); /* unless another run's are in it */
}

/* Of this run or of another: the folder of a tool, or that of -o. */
static bool is_of_a_run(const char *path, const char *name) {
  return fnmatch("*_output", name, 0) == 0 || fnmatch("*_output.[0-9]*", name, 0) == 0 ||
         has_file(path, "run.live.log") || has_file(path, "run.[0-9]*.live.log");
}

/* A folder of rocprofv3 has the host's name: runs share it. */
static void take(const run_loose *loose, const char *from, const char *name, const char *folder) {
  const char *const path = run_text("%s/%s", from, name);
  if (is_of_a_run(path, name)) return;
  const char *const to = run_text("%s/%s", folder, name);
  const bool is_new = run_loose_is_new(loose, name);
  const bool is_ours = fnmatch("results*", name, 0) == 0 || fnmatch("rocprofv3-*", name, 0) == 0;
  const bool is_in_folder = is_folder(path);
  const bool has_results =
      is_in_folder && (is_of_rocprofv3(path) || has_file(path, "*_results.db"));
  const bool has_tables = is_in_folder && has_table(path);
  if ((has_results || has_tables) && (!is_new || run_loose_has_rival(loose)))
    take_own(loose, path, to);
  else if (is_new && (is_ours || has_results))
    move(path, to);
  else if (is_new && has_tables)
    copy_tables(path, to);
}

/* ---- tables under the names that other programs read ---- */

static struct {
  const char *pattern;
  char *found; /* the first by its path, so that it is the same each time */
} search;

enum { LEVELS_MAX = 4, OPEN_FOLDERS = 16 };

static int look(const char *path, const struct stat *is, int kind, struct FTW *at) {
  (void)is;
  if (kind == FTW_F && at->level <= LEVELS_MAX &&
      fnmatch(search.pattern, path + at->base, 0) == 0 &&
      (!search.found || strcmp(path, search.found) < 0))
    search.found = run_text("%s", path);
  return 0;
}

static void name_tables(const char *folder) {
  for (size_t i = 0; i < TABLES; i++) {
    const char *const to = run_text("%s/rocprofv3_output_%s.csv", folder, tables[i]);
    if (access(to, F_OK) == 0) continue;
    search.pattern = run_text("*%s.csv", tables[i]);
    search.found = NULL;
    nftw(folder, look, OPEN_FOLDERS, FTW_PHYS);
    if (search.found) copy(search.found, to);
  }
}

void run_rocprof_collect(const char *from, const run_loose *loose, const char *folder) {
  const run_words now = run_folder_names(from);
  for (size_t i = 0; i < now.count; i++) take(loose, from, now.items[i], folder);
  name_tables(folder);
  run_histogram_write(folder);
}

void run_rocprof_move(const char *from, const run_loose *loose, const char *folder,
                      const char *const *names, size_t count) {
  for (size_t i = 0; i < count; i++) {
    const char *const path = run_text("%s/%s", from, names[i]);
    if (!run_loose_is_new(loose, names[i]) || access(path, F_OK) != 0) continue;
    if (run_loose_has_rival(loose))
      say("prof run: '%s' stays, since another prof run in this directory may write to it: give "
          "each run a directory of its own",
          path);
    else
      move(path, run_text("%s/%s", folder, names[i]));
  }
}
