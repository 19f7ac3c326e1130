/* The captures that are merged, and their places on one time line. See inputs.h. */
#define _GNU_SOURCE
#include "inputs.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../src/export/merge.h"
#include "../../src/live/live.h"
#include "commands.h"

/* ---- the files ---- */

/* If the path is not a regular file, the open prints the error. */
static int check_file(const merge_files *list, const char *path, const input_file *file) {
  prof_i_capture_bytes bytes;
  struct stat info;
  if (file->inode || stat(path, &info) == 0) return EXIT_OK;
  if (prof_i_capture_bytes_open(path, &bytes) == PROF_OK) {
    close(bytes.fd);
    return EXIT_OK;
  }
  say("prof %s: %s", list->command, prof_last_error());
  return EXIT_FAILED;
}

static bool was_unaligned(const char *path) {
  char file[PATH_MAX];
  uint32_t number;
  prof_i_merged_header header;
  const bool is_part = prof_i_part_path_split(path, file, sizeof file, &number);
  return (prof_i_parts_look(path, &header) || (is_part && prof_i_parts_look(file, &header))) &&
         (header.flags & PROF_I_MERGED_UNALIGNED);
}

static int put_file(void *user, const char *path) {
  merge_files *const list = user;
  const input_file file = input_file_of(path);
  const int status = check_file(list, path, &file);
  if (status != EXIT_OK) return status;
  for (uint32_t i = 0; i < list->count; i++)
    if (file.inode && input_file_equals(&list->files[i].file, &file)) {
      say("prof %s: '%s' and '%s' are one file", list->command, list->files[i].path, path);
      return EXIT_FAILED;
    }
  if (list->count == PROF_I_MERGE_MAX) {
    say("prof %s: more than %d captures, with '%s'", list->command, PROF_I_MERGE_MAX, path);
    return EXIT_FAILED;
  }
  merge_file *const files = realloc(list->files, (list->count + 1) * sizeof *files);
  if (files) list->files = files;
  char *const copy = files ? strdup(path) : NULL;
  if (!copy) {
    say("prof %s: no memory for the name '%s'", list->command, path);
    return EXIT_FAILED;
  }
  list->files[list->count++] = (merge_file){copy, file};
  list->is_unaligned |= was_unaligned(path);
  return EXIT_OK;
}

static int put_folder(merge_files *list, const char *folder) {
  input_paths found = {0};
  int status = input_paths_add_ranks(list->command, &found, folder);
  for (size_t i = 0; i < found.count && status == EXIT_OK; i++)
    status = put_file(list, found.paths[i]);
  input_paths_free(&found);
  return status;
}

int merge_files_add(merge_files *list, const char *word) {
  struct stat info;
  return stat(word, &info) == 0 && S_ISDIR(info.st_mode)
             ? put_folder(list, word)
             : input_each_capture(list->command, word, put_file, list);
}

/* ---- the merge ---- */

static int describe_all(merge_files *list) {
  list->captures = calloc(list->count, sizeof *list->captures);
  if (!list->captures) {
    say("prof %s: no memory for %u captures", list->command, list->count);
    return EXIT_FAILED;
  }
  for (uint32_t i = 0; i < list->count; i++) {
    prof_trace *const trace = open_capture_alone(list->files[i].path);
    if (!trace) return EXIT_FAILED;
    prof_i_merge_describe(trace, &list->captures[i]);
    prof_trace_destroy(trace);
  }
  return EXIT_OK;
}

int merge_files_check(const merge_files *list) {
  for (uint32_t i = 0; i < list->count; i++) {
    prof_trace *const trace = open_capture_alone(list->files[i].path);
    if (!trace) return EXIT_FAILED;
    prof_trace_destroy(trace);
  }
  return EXIT_OK;
}

int merge_files_look(const merge_files *list, bool *is_one_host_out) {
  char first[sizeof((prof_i_header *)NULL)->boot_id] = "";
  *is_one_host_out = true;
  for (uint32_t i = 0; i < list->count; i++) {
    prof_i_capture_bytes bytes;
    prof_i_header header;
    bool is_finished;
    int status = prof_i_capture_bytes_open(list->files[i].path, &bytes);
    if (status == PROF_OK) {
      status = prof_i_capture_bytes_look(&bytes, list->files[i].path, &header, &is_finished);
      close(bytes.fd);
    }
    if (status != PROF_OK) {
      say("prof %s: %s", list->command, prof_last_error());
      return EXIT_FAILED;
    }
    if (i == 0) memcpy(first, header.boot_id, sizeof first);
    *is_one_host_out &= first[0] && memcmp(first, header.boot_id, sizeof first) == 0;
  }
  return EXIT_OK;
}

int merge_files_place(merge_files *list, bool is_unaligned, const char *help) {
  const int status = describe_all(list);
  if (status != EXIT_OK) return status;
  is_unaligned |= list->is_unaligned;
  const int placed = prof_i_merge_align(list->captures, list->count, is_unaligned);
  if (placed == PROF_OK) return EXIT_OK;
  say("prof %s: %s%s%s", list->command, prof_last_error(), placed == PROF_E_INVALID ? "; " : "",
      placed == PROF_E_INVALID ? help : "");
  return EXIT_FAILED;
}

int merge_files_write(const merge_files *list, const char *output, const prof_i_merge_plan *plan,
                      prof_i_export_filtered *filtered_out, prof_i_export_lacks *lacks_out) {
  prof_i_merge merge;
  prof_i_merge_plan whole = *plan;
  whole.captures = list->captures;
  whole.count = list->count;
  int status = prof_i_merge_begin(&merge, output, &whole);
  if (status != PROF_OK) return status;
  for (uint32_t i = 0; i < list->count && status == PROF_OK; i++) {
    prof_trace *trace = NULL;
    status = prof_trace_open(list->files[i].path, &trace);
    if (status == PROF_OK) status = prof_i_merge_add(&merge, trace);
    prof_trace_destroy(trace);
  }
  if (filtered_out) *filtered_out = merge.filtered;
  if (lacks_out) *lacks_out = merge.lacks;
  if (status == PROF_OK) return prof_i_merge_commit(&merge);
  prof_i_merge_abandon(&merge);
  return status;
}

void merge_files_say_places(const merge_files *list, bool is_unaligned) {
  char host[PROF_I_MERGE_HOST_BYTES];
  bool has_unknown = false;
  uint32_t hosts = list->captures ? 0 : 1;
  is_unaligned |= list->is_unaligned;
  for (uint32_t i = 0; list->captures && i < list->count; i++) {
    const prof_i_merge_capture *const c = &list->captures[i];
    hosts += c->host_number == i;
    has_unknown |= !c->host[0];
    if (c->wall_moved_ns)
      say("prof %s: the wall clock of %s was set by %.6f s before '%s' began: captures of one "
          "host are placed by CLOCK_MONOTONIC",
          list->command, prof_i_merge_host_text(c, host), (double)c->wall_moved_ns / 1e9,
          list->files[i].path);
  }
  say("prof %s: %u capture%s of %s%u host%s", list->command, list->count,
      list->count == 1 ? "" : "s", has_unknown && hosts > 1 ? "at most " : "", hosts,
      hosts == 1 ? "" : "s");
  if (hosts == 1) return;
  for (uint32_t i = 0; i < list->count; i++) {
    const prof_i_merge_capture *const c = &list->captures[i];
    if (c->host_number != i) continue;
    if (is_unaligned)
      say("prof %s: %s is not aligned: it starts with the others", list->command,
          prof_i_merge_host_text(c, host));
    else
      say("prof %s: %s is placed by its wall clock, which was read within %.3f us; how far it is "
          "from the others' is not known",
          list->command, prof_i_merge_host_text(c, host), (double)c->error_ns / 1e3);
  }
}

void merge_files_free(merge_files *list) {
  for (uint32_t i = 0; i < list->count; i++) free(list->files[i].path);
  free(list->files);
  free(list->captures);
}
