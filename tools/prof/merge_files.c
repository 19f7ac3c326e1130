/* See merge_files.h. */
#define _GNU_SOURCE
#include "merge_files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "commands.h"
#include "sides.h"

/* ---- the files ---- */

static int put_file(merge_files *w, const char *path) {
  struct stat info;
  if (stat(path, &info) != 0) {
    say("prof %s: cannot open '%s': %s", w->command, path, strerror(errno));
    return EXIT_FAILED;
  }
  for (uint32_t i = 0; i < w->count; i++)
    if (w->files[i].device == info.st_dev && w->files[i].inode == info.st_ino) {
      say("prof %s: '%s' and '%s' are one file", w->command, w->files[i].path, path);
      return EXIT_FAILED;
    }
  if (w->count == PROF_I_MERGE_MAX) {
    say("prof %s: more than %d captures, with '%s'", w->command, PROF_I_MERGE_MAX, path);
    return EXIT_FAILED;
  }
  merge_file *const files = realloc(w->files, (w->count + 1) * sizeof *files);
  if (files) w->files = files;
  char *const copy = files ? strdup(path) : NULL;
  if (!copy) {
    say("prof %s: no memory for the name '%s'", w->command, path);
    return EXIT_FAILED;
  }
  w->files[w->count++] = (merge_file){copy, info.st_dev, info.st_ino};
  return EXIT_OK;
}

/* FOLDER's captures, and those of FOLDER/rank-N, where prof run leaves them. */
static int put_folder(merge_files *w, const char *folder) {
  static const char *const patterns[] = {"*.prof", "prof_output/*.prof", "rank-*/*.prof",
                                         "rank-*/prof_output/*.prof"};
  const uint32_t before = w->count;
  int status = EXIT_OK;
  for (size_t p = 0; p < sizeof patterns / sizeof *patterns && status == EXIT_OK; p++) {
    glob_t found = {0};
    if (glob_in_folder(folder, patterns[p], &found) == 0)
      for (size_t i = 0; i < found.gl_pathc && status == EXIT_OK; i++)
        status = put_file(w, found.gl_pathv[i]);
    globfree(&found);
  }
  if (status != EXIT_OK || w->count > before) return status;
  say("prof %s: no capture (*.prof, rank-*/*.prof) in the folder '%s'", w->command, folder);
  return EXIT_FAILED;
}

int merge_files_add(merge_files *w, const char *word) {
  struct stat info;
  return stat(word, &info) == 0 && S_ISDIR(info.st_mode) ? put_folder(w, word) : put_file(w, word);
}

/* ---- the merge ---- */

static int describe_all(merge_files *w) {
  w->captures = calloc(w->count, sizeof *w->captures);
  if (!w->captures) {
    say("prof %s: no memory for %u captures", w->command, w->count);
    return EXIT_FAILED;
  }
  for (uint32_t i = 0; i < w->count; i++) {
    prof_trace *const trace = open_capture(w->files[i].path);
    if (!trace) return EXIT_FAILED;
    prof_i_merge_describe(trace, &w->captures[i]);
    prof_trace_destroy(trace);
  }
  return EXIT_OK;
}

int merge_files_place(merge_files *w, bool is_unaligned, const char *help) {
  const int status = describe_all(w);
  if (status != EXIT_OK) return status;
  const int placed = prof_i_merge_align(w->captures, w->count, is_unaligned);
  if (placed == PROF_OK) return EXIT_OK;
  say("prof %s: %s%s%s", w->command, prof_last_error(), placed == PROF_E_INVALID ? "; " : "",
      placed == PROF_E_INVALID ? help : "");
  return EXIT_FAILED;
}

int merge_files_write(const merge_files *w, const char *output, bool is_gzip) {
  prof_i_merge merge;
  int status = prof_i_merge_begin(&merge, output, is_gzip);
  if (status != PROF_OK) return status;
  for (uint32_t i = 0; i < w->count && status == PROF_OK; i++) {
    prof_trace *trace = NULL;
    status = prof_trace_open(w->files[i].path, &trace);
    if (status == PROF_OK) status = prof_i_merge_add(&merge, trace, &w->captures[i]);
    prof_trace_destroy(trace);
  }
  if (status == PROF_OK) return prof_i_merge_commit(&merge);
  prof_i_merge_abandon(&merge);
  return status;
}

void merge_files_say_places(const merge_files *w, bool is_unaligned) {
  uint32_t hosts = 0;
  for (uint32_t i = 0; i < w->count; i++) {
    const prof_i_merge_capture *const c = &w->captures[i];
    hosts += c->host_number == i;
    if (c->wall_moved_ns)
      say("prof %s: the wall clock of host '%s' was set by %.6f s before '%s' began: captures "
          "of one host are placed by CLOCK_MONOTONIC",
          w->command, c->host, (double)c->wall_moved_ns / 1e9, w->files[i].path);
  }
  say("prof %s: %u capture%s of %u host%s", w->command, w->count, w->count == 1 ? "" : "s", hosts,
      hosts == 1 ? "" : "s");
  if (hosts == 1) return;
  for (uint32_t i = 0; i < w->count; i++) {
    const prof_i_merge_capture *const c = &w->captures[i];
    if (c->host_number != i) continue;
    if (is_unaligned)
      say("prof %s: host '%s' is not aligned: it starts with the others", w->command, c->host);
    else
      say("prof %s: host '%s' is placed by its wall clock, which was read within %.3f us; how "
          "far it is from the others' is not known",
          w->command, c->host, (double)c->error_ns / 1e3);
  }
}

void merge_files_free(merge_files *w) {
  for (uint32_t i = 0; i < w->count; i++) free(w->files[i].path);
  free(w->files);
  free(w->captures);
}
