/* prof merge -o OUT FILE... puts captures of a program's processes or ranks on one time line, in a
   trace for Perfetto. src/export/merge.c writes it. */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../../src/export/merge.h"
#include "commands.h"
#include "sides.h"

typedef struct merge_file {
  char *path;
  dev_t device;
  ino_t inode;
} merge_file;

typedef struct merge_words {
  const char *output;
  bool is_gzip, is_unaligned;
  merge_file *files;
  prof_i_merge_capture *captures; /* of the files */
  uint32_t count;
} merge_words;

static int fail_merge(int status) {
  say("prof merge: %s: %s", prof_status_text(status), prof_last_error());
  return EXIT_FAILED;
}

/* ---- the files ---- */

static int put_file(merge_words *w, const char *path) {
  struct stat info;
  if (stat(path, &info) != 0) {
    say("prof merge: cannot open '%s': %s", path, strerror(errno));
    return EXIT_FAILED;
  }
  for (uint32_t i = 0; i < w->count; i++)
    if (w->files[i].device == info.st_dev && w->files[i].inode == info.st_ino) {
      say("prof merge: '%s' and '%s' are one file", w->files[i].path, path);
      return EXIT_FAILED;
    }
  if (w->count == PROF_I_MERGE_MAX) {
    say("prof merge: more than %d captures, with '%s'", PROF_I_MERGE_MAX, path);
    return EXIT_FAILED;
  }
  merge_file *const files = realloc(w->files, (w->count + 1) * sizeof *files);
  if (files) w->files = files;
  char *const copy = files ? strdup(path) : NULL;
  if (!copy) {
    say("prof merge: no memory for the name '%s'", path);
    return EXIT_FAILED;
  }
  w->files[w->count++] = (merge_file){copy, info.st_dev, info.st_ino};
  return EXIT_OK;
}

/* FOLDER's captures, and those of FOLDER/rank-N, as prof run leaves them. */
static int put_folder(merge_words *w, const char *folder) {
  static const char *const patterns[] = {"*.prof", "rank-*/*.prof"};
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
  say("prof merge: no capture (*.prof, rank-*/*.prof) in the folder '%s'", folder);
  return EXIT_FAILED;
}

static int put_word(merge_words *w, const char *word) {
  struct stat info;
  return stat(word, &info) == 0 && S_ISDIR(info.st_mode) ? put_folder(w, word) : put_file(w, word);
}

/* ---- the words ---- */

static bool ends_with(const char *path, const char *ending) {
  const size_t bytes = strlen(path), ending_bytes = strlen(ending);
  return bytes > ending_bytes && strcmp(path + bytes - ending_bytes, ending) == 0;
}

static int check_output(merge_words *w) {
  struct stat info;
  if (!w->output) return refuse_words("merge", "needs -o OUT.pftrace", NULL);
  const bool is_there = stat(w->output, &info) == 0;
  for (uint32_t i = 0; is_there && i < w->count; i++)
    if (w->files[i].device == info.st_dev && w->files[i].inode == info.st_ino)
      return refuse_words("merge", "would write over a capture:", w->output);
  w->is_gzip = ends_with(w->output, ".pftrace.gz");
  if (w->is_gzip || ends_with(w->output, ".pftrace") || (is_there && !S_ISREG(info.st_mode)))
    return EXIT_OK;
  say("prof merge: '%s' must end in .pftrace or .pftrace.gz. Tables, prof diff and prof flame take "
      "several captures as they are",
      w->output);
  return EXIT_USAGE;
}

static int read_words(int argc, char **argv, merge_words *w) {
  int status = EXIT_OK;
  for (int c; (c = command_option_next(&command_merge, argc, argv)) != -1;) {
    if (c == 'o')
      w->output = optarg;
    else if (c == 'u')
      w->is_unaligned = true;
    else
      return EXIT_USAGE;
  }
  if (argc == optind) return refuse_words("merge", "takes captures, or a folder of them", NULL);
  for (int i = optind; i < argc && status == EXIT_OK; i++) status = put_word(w, argv[i]);
  return status == EXIT_OK ? check_output(w) : status;
}

/* ---- the merge ---- */

static int describe_all(merge_words *w) {
  w->captures = calloc(w->count, sizeof *w->captures);
  if (!w->captures) {
    say("prof merge: no memory for %u captures", w->count);
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

static int align_all(const merge_words *w) {
  const int status = prof_i_merge_align(w->captures, w->count, w->is_unaligned);
  if (status == PROF_E_INVALID) {
    say("prof merge: %s; --unaligned lets all hosts start together", prof_last_error());
    return EXIT_FAILED;
  }
  return status == PROF_OK ? EXIT_OK : fail_merge(status);
}

static int write_all(const merge_words *w) {
  prof_i_merge merge;
  int status = prof_i_merge_begin(&merge, w->output, w->is_gzip);
  if (status != PROF_OK) return fail_merge(status);
  for (uint32_t i = 0; i < w->count; i++) {
    prof_trace *const trace = open_capture(w->files[i].path);
    status = trace ? prof_i_merge_add(&merge, trace, &w->captures[i]) : PROF_E_IO;
    if (trace && status != PROF_OK) fail_merge(status);
    prof_trace_destroy(trace);
    if (status == PROF_OK) continue;
    prof_i_merge_abandon(&merge);
    return EXIT_FAILED;
  }
  status = prof_i_merge_commit(&merge);
  return status == PROF_OK ? EXIT_OK : fail_merge(status);
}

/* How the captures were placed, and how well that is known. */
static void say_places(const merge_words *w) {
  uint32_t hosts = 0;
  for (uint32_t i = 0; i < w->count; i++) {
    const prof_i_merge_capture *const c = &w->captures[i];
    hosts += c->host_number == i;
    if (c->wall_moved_ns)
      say("prof merge: the wall clock of host '%s' was set by %.6f s before '%s' began: captures "
          "of one host are placed by CLOCK_MONOTONIC",
          c->host, (double)c->wall_moved_ns / 1e9, w->files[i].path);
  }
  say("prof merge: %s has %u capture%s of %u host%s", w->output, w->count, w->count == 1 ? "" : "s",
      hosts, hosts == 1 ? "" : "s");
  if (hosts == 1) return;
  for (uint32_t i = 0; i < w->count; i++) {
    const prof_i_merge_capture *const c = &w->captures[i];
    if (c->host_number != i) continue;
    if (w->is_unaligned)
      say("prof merge: host '%s' is not aligned: it starts with the others", c->host);
    else
      say("prof merge: host '%s' is placed by its wall clock, which was read within %.3f us; how "
          "far it is from the others' is not known",
          c->host, (double)c->error_ns / 1e3);
  }
}

static int execute(int argc, char **argv) {
  merge_words w = {0};
  int status = read_words(argc, argv, &w);
  if (status == EXIT_OK) status = describe_all(&w);
  if (status == EXIT_OK) status = align_all(&w);
  if (status == EXIT_OK) status = write_all(&w);
  if (status == EXIT_OK) say_places(&w);
  for (uint32_t i = 0; i < w.count; i++) free(w.files[i].path);
  free(w.files);
  free(w.captures);
  return status;
}

static const command_option options[] = {
    {"output", 'o', "OUT", .help = "the file to write: .pftrace or .pftrace.gz"},
    {.name = "unaligned",
     .help = "accept hosts that did not record at the same time, and let them start together",
     .id = 'u'},
    {0}};

static const command_example examples[] = {
    {"prof merge -o all.pftrace trace-0.prof trace-1.prof", "two ranks on one time line"},
    {"prof merge -o all.pftrace.gz out", "all captures in out and in out/rank-N"},
    {0}};

const prof_command command_merge = {
    .name = "merge",
    .summary = "puts captures of several processes or ranks on one time line",
    .words = "-o OUT.pftrace [--unaligned] FILE... | FOLDER",
    .about =
        "Writes captures of a program's processes or ranks as one trace for Perfetto. Each "
        "keeps its process and rank.\n\n"
        "Captures of one host are placed by its monotonic clock. Hosts are placed by their "
        "wall clocks.",
    .options = options,
    .examples = examples,
    .execute = execute};
