/* See internal.h: -o FILE. */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <prof/profiler.h>
#include <prof/trace.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../src/export/exporter.h"
#include "../../src/format/header.h"
#include "../prof/commands.h"
#include "output.h"

static const char *pattern_ending(const char *pattern) {
  return prof_i_export_suffix_of(run_base_name(pattern), NULL);
}

static bool path_is_folder(const char *path) {
  struct stat is;
  return stat(path, &is) == 0 && S_ISDIR(is.st_mode);
}

bool run_trace_file_is(const char *pattern) {
  return pattern_ending(pattern) && !path_is_folder(pattern);
}

bool run_trace_file_is_capture(const char *pattern) {
  return strcmp(pattern_ending(pattern), ".prof") == 0;
}

/* Files that others write. A folder may have a dot in its name, too: out.2, app.baseline. */
static const char *const foreign_endings[] = {".txt",      ".tsv",     ".log",
                                              ".md",       ".html",    ".htm",
                                              ".xml",      ".yaml",    ".yml",
                                              ".toml",     ".ini",     ".jsonl",
                                              ".pdf",      ".svg",     ".png",
                                              ".gz",       ".zip",     ".tar",
                                              ".tgz",      ".xz",      ".zst",
                                              ".bz2",      ".db",      ".sqlite",
                                              ".rpd",      ".trace",   ".perfetto-trace",
                                              ".nsys-rep", ".ncu-rep", ".bin",
                                              ".parquet",  ".arrow",   ".feather",
                                              ".json",     ".prof" /* with capitals */};

const char *run_trace_file_refusal(const char *pattern) {
  const char *const name = run_base_name(pattern), *const dot = strrchr(name, '.');
  if (!dot || dot == name || pattern_ending(pattern) || path_is_folder(pattern)) return NULL;
  for (size_t i = 0; i < sizeof foreign_endings / sizeof *foreign_endings; i++)
    if (strcasecmp(dot, foreign_endings[i]) == 0)
      return run_text(
          "-o %s: prof run writes no format with this ending. The endings are %s; a folder of that "
          "name is '%s/'",
          pattern, format_endings_text(), pattern);
  return NULL;
}

/* NAME of NAME.json. */
static int stem_bytes(const char *path) { return (int)(pattern_ending(path) - path); }

static const char *path_folder(const char *path) {
  const char *const slash = strrchr(path, '/');
  if (!slash) return ".";
  return slash == path ? "/" : run_copy(path, (size_t)(slash - path));
}

const char *run_trace_file_of_rank(const char *pattern) {
  const char *const folder = path_folder(run_output_name(pattern)), *const rank = run_output_rank();
  if (access(folder, F_OK) != 0) run_fail("-o %s: there is no folder '%s'", pattern, folder);
  if (access(folder, W_OK | X_OK) != 0)
    run_fail("-o %s: cannot write to the folder '%s': %s", pattern, folder, strerror(errno));
  if (!rank || strstr(pattern, "%r")) return pattern;
  return run_text("%.*s-%s%s", stem_bytes(pattern), pattern, rank, pattern_ending(pattern));
}

char *run_trace_file_folder_pattern(const char *pattern) {
  return run_text("%s/.prof-run-XXXXXX", path_folder(run_output_name(pattern)));
}

char *run_trace_file_folder(const char *pattern) {
  char *const path = run_trace_file_folder_pattern(pattern);
  if (!mkdtemp(path)) run_fail("cannot make a folder '%s': %s", path, strerror(errno));
  return path;
}

/* ---- names ---- */

typedef struct part_capture {
  const char *path;
  prof_trace_info info;
  bool is_open;     /* it could be read */
  const char *part; /* of the name: what prof run itself has recorded; or NULL */
} part_capture;

/* -1: it has none. */
static int capture_rank(const part_capture *c) {
  return prof_i_world_has_ranks(c->info.world_size) ? c->info.rank : -1;
}

/* The launcher of prof run has set a rank, or the one that it runs. */
static const char *capture_pattern(const char *pattern, const part_capture *c) {
  const char *const ending = pattern_ending(pattern);
  if (c->part) return run_text("%.*s.%s%s", stem_bytes(pattern), pattern, c->part, ending);
  if (capture_rank(c) < 0 || run_output_rank() || strstr(pattern, "%r")) return pattern;
  return run_text("%.*s-%d%s", stem_bytes(pattern), pattern, capture_rank(c), ending);
}

/* %p and %r of this capture; the other marks are the run's. */
static const char *capture_file_name(const char *pattern, const part_capture *c,
                                     bool capture_is_first) {
  const char *const text = capture_pattern(pattern, c), *const ending = pattern_ending(pattern);
  const char *made = "";
  bool has_pid = false;
  for (const char *at = text; *at; at++) {
    if (at[0] == '%' && at[1] == 'p') {
      made = run_text("%s%u", made, (unsigned)c->info.pid);
      has_pid = true;
      at++;
    } else if (at[0] == '%' && at[1] == 'r' && capture_rank(c) >= 0) {
      made = run_text("%s%d", made, capture_rank(c));
      at++;
    } else if (at[0] == '%' && at[1]) {
      made = run_text("%s%c%c", made, at[0], at[1]);
      at++;
    } else {
      made = run_text("%s%c", made, *at);
    }
  }
  const char *const path = run_output_name(made);
  if (capture_is_first || has_pid || c->part) return path;
  return run_text("%.*s.%u%s", stem_bytes(path), path, (unsigned)c->info.pid, ending);
}

/* A process that has executed a second program, or two in different PID namespaces, have one pid:
   the later capture gets a number. made: the paths of this run. */
static const char *unused_name(const run_words *made, const char *path) {
  const char *name = path;
  for (unsigned number = 2; run_words_find(made, name) >= 0; number++)
    name = run_text("%.*s.%u%s", stem_bytes(path), path, number, pattern_ending(path));
  return name;
}

/* ---- files ---- */

static bool write_capture(const part_capture *c, const char *path, bool is_packed) {
  if (is_packed && run_pack(c->path, path)) {
    unlink(c->path);
    return true;
  }
  if (run_trace_file_is_capture(path)) {
    if (run_output_move(c->path, path)) return true;
    say("prof run: cannot write '%s': %s; the capture is '%s'", path, strerror(errno), c->path);
    return false;
  }
  prof_trace *trace = NULL;
  int status = prof_trace_open(c->path, &trace);
  if (status == PROF_OK) status = prof_trace_dump(trace, run_output_escaped(path), NULL);
  if (status != PROF_OK)
    say("prof run: cannot write '%s': %s: %s; the capture is '%s'", path, prof_status_text(status),
        prof_last_error(), c->path);
  prof_trace_destroy(trace);
  if (status == PROF_OK) unlink(c->path);
  return status == PROF_OK;
}

static bool add_capture(part_capture *c, const char *path) {
  prof_trace *trace = NULL;
  *c = (part_capture){.path = path, .info = {.size = sizeof c->info}};
  const char *const name = run_base_name(path);
  if (strcmp(name, "samples.prof") == 0) c->part = "samples";
  if (strcmp(name, "library_trace.prof") == 0) c->part = "library_trace";
  c->is_open = prof_trace_open(path, &trace) == PROF_OK;
  if (c->is_open)
    prof_trace_info_get(trace, &c->info);
  else
    say("prof run: cannot read the capture '%s': %s", path, prof_last_error());
  prof_trace_destroy(trace);
  if (c->part) return c->is_open; /* complete, although prof run itself still runs */
  if (c->is_open && c->info.is_live)
    say("prof run: process %u still records into '%s'", (unsigned)c->info.pid, path);
  return c->is_open && !c->info.is_live;
}

static int capture_compare_start(const void *a, const void *b) {
  const part_capture *const x = a, *const y = b;
  if (!x->part != !y->part) return x->part ? 1 : -1;
  if (x->info.start_ns != y->info.start_ns) return x->info.start_ns < y->info.start_ns ? -1 : 1;
  return (x->info.pid > y->info.pid) - (x->info.pid < y->info.pid);
}

/* Of the run, or of its rank. all: sorted. */
static bool capture_is_first(const part_capture *all, size_t at) {
  for (size_t i = 0; i < at; i++)
    if (capture_rank(&all[at]) < 0 || capture_rank(&all[i]) == capture_rank(&all[at])) return false;
  return true;
}

static const char *part_name(const char *part) {
  return strcmp(part, "samples") == 0 ? "the samples of devices" : "the calls of libraries";
}

void run_trace_file_write(const char *pattern, const char *folder, const run_words *captures,
                          bool has_first, bool is_quiet, bool is_packed) {
  part_capture *const all = run_make(captures->count, sizeof *all);
  run_words made = {0};
  size_t count = 0;
  for (size_t i = 0; i < captures->count; i++)
    count += add_capture(&all[count], captures->items[i]);
  bool is_told = count < captures->count; /* that captures stay in the folder, and which */
  if (count > 1) qsort(all, count, sizeof *all, capture_compare_start);
  for (size_t i = 0; i < count; i++) {
    const bool is_new = !has_first && capture_is_first(all, i);
    const char *const path = unused_name(&made, capture_file_name(pattern, &all[i], is_new));
    run_words_add(&made, path);
    const bool is_written = write_capture(&all[i], path, is_packed);
    is_told |= !is_written;
    if (!is_written || is_quiet) continue;
    if (all[i].part)
      say("prof run: %s has %s", path, part_name(all[i].part));
    else
      say("prof run: %s has %s (%u)", path, all[i].info.process_name, (unsigned)all[i].info.pid);
  }
  unlink(run_text("%s/samples.csv", folder));
  if (rmdir(folder) != 0 && errno == ENOTEMPTY && !is_told)
    say("prof run: '%s' is not empty: processes that outlived the program have left captures there",
        folder);
}
