/* See file.h. */
#define _GNU_SOURCE
#include "file.h"

#include <errno.h>
#include <prof/profiler.h>
#include <prof/trace.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../prof/commands.h"
#include "output.h"

static const char *const endings[] = {".json.gz", ".json", ".prof"};

static const char *ending_of(const char *pattern) {
  const char *const name = run_base_name(pattern);
  for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
    if (run_ends_in(name, endings[i])) return name + strlen(name) - strlen(endings[i]);
  return NULL;
}

static bool is_folder(const char *path) {
  struct stat is;
  return stat(path, &is) == 0 && S_ISDIR(is.st_mode);
}

bool run_file_is(const char *pattern) { return ending_of(pattern) && !is_folder(pattern); }

/* Files that others write. A folder may have a dot in its name, too: out.2, app.baseline. */
static const char *const foreign_endings[] = {".txt",
                                              ".csv",
                                              ".tsv",
                                              ".log",
                                              ".md",
                                              ".html",
                                              ".htm",
                                              ".xml",
                                              ".yaml",
                                              ".yml",
                                              ".toml",
                                              ".ini",
                                              ".jsonl",
                                              ".pdf",
                                              ".svg",
                                              ".png",
                                              ".gz",
                                              ".zip",
                                              ".tar",
                                              ".tgz",
                                              ".xz",
                                              ".zst",
                                              ".bz2",
                                              ".db",
                                              ".sqlite",
                                              ".rpd",
                                              ".trace",
                                              ".pftrace",
                                              ".perfetto-trace",
                                              ".pb",
                                              ".nsys-rep",
                                              ".ncu-rep",
                                              ".bin",
                                              ".json",
                                              ".prof" /* with capitals */};

const char *run_file_why_not(const char *pattern) {
  const char *const name = run_base_name(pattern), *const dot = strrchr(name, '.');
  if (!dot || dot == name || ending_of(pattern) || is_folder(pattern)) return NULL;
  for (size_t i = 0; i < sizeof foreign_endings / sizeof *foreign_endings; i++)
    if (strcasecmp(dot, foreign_endings[i]) == 0)
      return run_text(
          "-o %s: a file ends in .prof, .json or .json.gz; a folder of that name is "
          "'%s/'",
          pattern, pattern);
  return NULL;
}

/* NAME of NAME.json. */
static int stem_bytes(const char *path) { return (int)(ending_of(path) - path); }

static const char *folder_of(const char *path) {
  const char *const slash = strrchr(path, '/');
  if (!slash) return ".";
  return slash == path ? "/" : run_copy(path, (size_t)(slash - path));
}

const char *run_file_of_rank(const char *pattern) {
  const char *const folder = folder_of(run_output_name(pattern)), *const rank = run_output_rank();
  if (access(folder, F_OK) != 0) run_fail("-o %s: there is no folder '%s'", pattern, folder);
  if (access(folder, W_OK | X_OK) != 0)
    run_fail("-o %s: cannot write to the folder '%s': %s", pattern, folder, strerror(errno));
  if (!rank || strstr(pattern, "%r")) return pattern;
  return run_text("%.*s-%s%s", stem_bytes(pattern), pattern, rank, ending_of(pattern));
}

char *run_file_folder_pattern(const char *pattern) {
  return run_text("%s/.prof-run-XXXXXX", folder_of(run_output_name(pattern)));
}

char *run_file_folder(const char *pattern) {
  char *const path = run_file_folder_pattern(pattern);
  if (!mkdtemp(path)) run_fail("cannot make a folder '%s': %s", path, strerror(errno));
  return path;
}

/* ---- names ---- */

typedef struct capture {
  const char *path;
  prof_trace_info info;
  bool is_open;     /* it could be read */
  const char *part; /* of the name: what prof run itself has recorded; or NULL */
} capture;

/* -1: it has none. */
static int rank_of(const capture *c) {
  return c->info.world_size > 1 || c->info.world_size < 0 ? c->info.rank : -1;
}

/* The launcher of prof run has set a rank, or the one that it runs. */
static const char *pattern_of(const char *pattern, const capture *c) {
  const char *const ending = ending_of(pattern);
  if (c->part) return run_text("%.*s.%s%s", stem_bytes(pattern), pattern, c->part, ending);
  if (rank_of(c) < 0 || run_output_rank() || strstr(pattern, "%r")) return pattern;
  return run_text("%.*s-%d%s", stem_bytes(pattern), pattern, rank_of(c), ending);
}

/* %p and %r of this capture; the other marks are the run's. */
static const char *name_of(const char *pattern, const capture *c, bool is_first) {
  const char *const text = pattern_of(pattern, c), *const ending = ending_of(pattern);
  const char *made = "";
  bool has_pid = false;
  for (const char *at = text; *at; at++) {
    if (at[0] == '%' && at[1] == 'p') {
      made = run_text("%s%u", made, (unsigned)c->info.pid);
      has_pid = true;
      at++;
    } else if (at[0] == '%' && at[1] == 'r' && rank_of(c) >= 0) {
      made = run_text("%s%d", made, rank_of(c));
      at++;
    } else if (at[0] == '%' && at[1]) {
      made = run_text("%s%c%c", made, at[0], at[1]);
      at++;
    } else {
      made = run_text("%s%c", made, *at);
    }
  }
  const char *const path = run_output_name(made);
  if (is_first || has_pid || c->part) return path;
  return run_text("%.*s.%u%s", stem_bytes(path), path, (unsigned)c->info.pid, ending);
}

/* A process that has executed a second program, or two in different PID namespaces, have one pid:
   the later capture gets a number. made: the paths of this run. */
static const char *unused_name(const run_words *made, const char *path) {
  const char *name = path;
  for (unsigned number = 2; run_words_find(made, name) >= 0; number++)
    name = run_text("%.*s.%u%s", stem_bytes(path), path, number, ending_of(path));
  return name;
}

/* ---- files ---- */

static bool write_one(const capture *c, const char *path) {
  if (strcmp(ending_of(path), ".prof") == 0) {
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

static bool take(capture *c, const char *path) {
  prof_trace *trace = NULL;
  *c = (capture){.path = path, .info = {.size = sizeof c->info}};
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

static int by_start(const void *a, const void *b) {
  const capture *const x = a, *const y = b;
  if (!x->part != !y->part) return x->part ? 1 : -1;
  if (x->info.start_ns != y->info.start_ns) return x->info.start_ns < y->info.start_ns ? -1 : 1;
  return (x->info.pid > y->info.pid) - (x->info.pid < y->info.pid);
}

/* Of the run, or of its rank. all: sorted. */
static bool is_first(const capture *all, size_t at) {
  for (size_t i = 0; i < at; i++)
    if (rank_of(&all[at]) < 0 || rank_of(&all[i]) == rank_of(&all[at])) return false;
  return true;
}

static const char *what(const char *part) {
  return strcmp(part, "samples") == 0 ? "the samples of devices" : "the calls of libraries";
}

void run_file_write(const char *pattern, const char *folder, const run_words *captures,
                    bool has_first, bool is_quiet) {
  capture *const all = run_make(captures->count, sizeof *all);
  run_words made = {0};
  size_t count = 0;
  for (size_t i = 0; i < captures->count; i++) count += take(&all[count], captures->items[i]);
  if (count > 1) qsort(all, count, sizeof *all, by_start);
  for (size_t i = 0; i < count; i++) {
    const bool is_new = !has_first && is_first(all, i);
    const char *const path = unused_name(&made, name_of(pattern, &all[i], is_new));
    run_words_add(&made, path);
    if (!write_one(&all[i], path) || is_quiet) continue;
    if (all[i].part)
      say("prof run: %s has %s", path, what(all[i].part));
    else
      say("prof run: %s has %s (%u)", path, all[i].info.process_name, (unsigned)all[i].info.pid);
  }
  unlink(run_text("%s/samples.csv", folder));
  rmdir(folder); /* not if a capture stays in it */
}
