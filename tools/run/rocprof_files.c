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
#include "internal.h"
#include "output.h"
#include "rocprof.h"

static bool path_is_folder(const char *path) {
  struct stat is;
  return lstat(path, &is) == 0 && S_ISDIR(is.st_mode);
}

static bool folder_has_match(const char *folder, const char *pattern) {
  const run_words names = run_folder_names(folder);
  for (size_t i = 0; i < names.count; i++)
    if (fnmatch(pattern, names.items[i], 0) == 0) return true;
  return false;
}

/* Tables that other programs read under names of their own. */
static const char *const table_kinds[] = {"agent_info",   "domain_stats",  "kernel_stats",
                                          "kernel_trace", "hip_api_trace", "counter_collection"};
enum { TABLES = sizeof table_kinds / sizeof *table_kinds };

/* The folder HOST of rocprofv3, its default: all files are PID_KIND. */
static bool folder_is_of_rocprofv3(const char *folder) {
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

static bool folder_has_table(const char *folder) {
  bool has = folder_has_match(folder, "*_trace.csv");
  for (size_t i = 0; i < TABLES && !has; i++)
    has = folder_has_match(folder, run_text("*_%s.csv", table_kinds[i]));
  return has;
}

static void copy_file(const char *from, const char *to) {
  if (!run_output_copy(from, to))
    say("prof run: cannot copy '%s' to '%s': %s", from, to, strerror(errno));
}

static void move_file(const char *from, const char *to) {
  if (!run_output_move(from, to))
    say("prof run: cannot move '%s' to '%s': %s", from, to, strerror(errno));
}

/* Copies all *.csv of a folder into a folder of the same name. */
static void copy_tables(const char *from, const char *to) {
  const run_words names = run_folder_names(from);
  mkdir(to, 0777); /* an error shows in copy_file() */
  for (size_t i = 0; i < names.count; i++)
    if (fnmatch("*.csv", names.items[i], 0) == 0)
      copy_file(run_text("%s/%s", from, names.items[i]), run_text("%s/%s", to, names.items[i]));
}

/* Moves the files of processes of this run. */
static void take_own_files(const run_stray_files *stray_files, const char *from, const char *to) {
  const run_words names = run_folder_names(from);
  for (size_t i = 0; i < names.count; i++) {
    if (!run_stray_file_is_own(stray_files, from, names.items[i])) continue;
    mkdir(to, 0777); /* an error shows in move_file() */
    move_file(run_text("%s/%s", from, names.items[i]), run_text("%s/%s", to, names.items[i]));
  }
  rmdir(from); /* unless another run's are in it */
}

/* Of this run or of another: the folder of a tool, or that of -o. */
static bool path_is_of_a_run(const char *path, const char *name) {
  return fnmatch("*_output", name, 0) == 0 || fnmatch("*_output.[0-9]*", name, 0) == 0 ||
         folder_has_match(path, "run.live.log") || folder_has_match(path, "run.[0-9]*.live.log");
}

/* A folder of rocprofv3 has the host's name: runs share it. */
static void take_folder(const run_stray_files *stray_files, const char *from, const char *name,
                        const char *folder) {
  const char *const path = run_text("%s/%s", from, name);
  if (path_is_of_a_run(path, name)) return;
  const char *const to = run_text("%s/%s", folder, name);
  const bool is_new = run_stray_file_is_new(stray_files, name);
  const bool is_ours = fnmatch("results*", name, 0) == 0 || fnmatch("rocprofv3-*", name, 0) == 0;
  const bool is_in_folder = path_is_folder(path);
  const bool has_results =
      is_in_folder && (folder_is_of_rocprofv3(path) || folder_has_match(path, "*_results.db"));
  const bool has_tables = is_in_folder && folder_has_table(path);
  if ((has_results || has_tables) && (!is_new || run_stray_files_has_rival(stray_files)))
    take_own_files(stray_files, path, to);
  else if (is_new && (is_ours || has_results))
    move_file(path, to);
  else if (is_new && has_tables)
    copy_tables(path, to);
}

/* ---- tables under the names that other programs read ---- */

static struct {
  const char *pattern;
  char *found; /* the first by its path, so that it is the same each time */
} file_search;

enum { LEVELS_MAX = 4, OPEN_FOLDERS = 16 };

static int visit_file(const char *path, const struct stat *is, int kind, struct FTW *at) {
  (void)is;
  if (kind == FTW_F && at->level <= LEVELS_MAX &&
      fnmatch(file_search.pattern, path + at->base, 0) == 0 &&
      (!file_search.found || strcmp(path, file_search.found) < 0))
    file_search.found = run_text("%s", path);
  return 0;
}

static void name_tables(const char *folder) {
  for (size_t i = 0; i < TABLES; i++) {
    const char *const to = run_text("%s/rocprofv3_output_%s.csv", folder, table_kinds[i]);
    if (access(to, F_OK) == 0) continue;
    file_search.pattern = run_text("*%s.csv", table_kinds[i]);
    file_search.found = NULL;
    nftw(folder, visit_file, OPEN_FOLDERS, FTW_PHYS);
    if (file_search.found) copy_file(file_search.found, to);
  }
}

void run_rocprof_collect(const char *from, const run_stray_files *stray_files, const char *folder) {
  const run_words now = run_folder_names(from);
  for (size_t i = 0; i < now.count; i++) take_folder(stray_files, from, now.items[i], folder);
  name_tables(folder);
  run_histogram_write(folder);
}

void run_rocprof_move(const char *from, const run_stray_files *stray_files, const char *folder,
                      const char *const *names, size_t count) {
  for (size_t i = 0; i < count; i++) {
    const char *const path = run_text("%s/%s", from, names[i]);
    if (!run_stray_file_is_new(stray_files, names[i]) || access(path, F_OK) != 0) continue;
    if (run_stray_files_has_rival(stray_files))
      say("prof run: '%s' stays, since another prof run in this directory may write to it: give "
          "each run a directory of its own",
          path);
    else
      move_file(path, run_text("%s/%s", folder, names[i]));
  }
}
