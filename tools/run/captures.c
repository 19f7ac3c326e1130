/* Finds and judges the captures that a workload has left. See captures.h. */
#define _GNU_SOURCE
#include "captures.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <prof/trace.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../src/base/library.h"
#include "../../src/format/layout.h"
#include "../prof/commands.h"
#include "internal.h"
#include "output.h"

/* ---- captures that their folder did not take ---- */

/* A capture that is not beside its output is called BASE~NUMBER.HOST-PID-...prof, with a number of
   the output's folder. NULL: there is no such folder. */
static char *capture_mark(const char *folder) {
  struct stat is;
  if (stat(folder, &is) != 0) return NULL;
  const uint64_t number = ((uint64_t)is.st_ino ^ (uint64_t)is.st_dev << 32) * 0x9e3779b97f4a7c15ull;
  return run_text(".prof~%08x.", (unsigned)(number >> 32));
}

/* Each once. */
static run_words list_capture_paths(void) {
  const char *const places[] = {getenv("PROF_CAPTURE_DIR"), getenv("TMPDIR"), "/dev/shm"};
  run_words all = {0};
  for (size_t p = 0; p < sizeof places / sizeof *places; p++) {
    bool is_new = places[p] && *places[p];
    for (size_t i = 0; is_new && i < all.count; i++) is_new = strcmp(all.items[i], places[p]) != 0;
    if (is_new) run_words_add(&all, places[p]);
  }
  return all;
}

/* Captures with the mark in their names. is_front: it begins them. */
static run_words find_by_mark(const char *mark, bool is_front) {
  const run_words places = list_capture_paths();
  run_words to = {0};
  for (size_t p = 0; p < places.count; p++) {
    const run_words names = run_folder_names(places.items[p]);
    for (size_t i = 0; i < names.count; i++) {
      const char *const at = strstr(names.items[i], mark);
      if (at && (!is_front || at == names.items[i]) && run_ends_in(names.items[i], ".prof"))
        run_words_add(&to, run_text("%s/%s", places.items[p], names.items[i]));
    }
  }
  return to;
}

run_words run_capture_paths_find(const char *folder) {
  const char *const mark = capture_mark(folder);
  return mark ? find_by_mark(mark, false) : (run_words){0};
}

run_words run_capture_paths_retained(const char *folder) {
  return find_by_mark(run_text("%s.", run_base_name(folder)), true);
}

/* ---- captures of a folder ---- */

/* Renames the file. Returns the new path, or the old one if the file was not renamed. */
static char *capture_renamed(char *path, char *to) {
  return run_output_rename_new(path, to) ? to : path;
}

/* ".rank-3", or "". */
static const char *rank_text(const run_capture *capture) {
  return capture->rank >= 0 ? run_text(".rank-%d", capture->rank) : "";
}

static bool path_is_of_prof_run(const char *path) {
  return run_ends_in(path, "/samples.prof") || run_ends_in(path, "/library_trace.prof");
}

/* What the process is called. NULL: as its file already is. prof's package names the files of its
   own process and of all that it starts for its script, so other programs must be renamed. */
static const char *capture_title(const run_process_tree *process_tree, const run_capture *capture,
                                 bool has_own_name) {
  if (capture->is_own || (has_own_name && !process_tree)) return NULL;
  const run_process *const found =
      process_tree ? run_process_tree_find(process_tree, (pid_t)capture->pid) : NULL;
  const run_process *const m = found && found->inner_pid == found->pid ? found : NULL;
  if (run_python_is_interpreter(capture->process))
    return m ? run_process_title(process_tree, m, NULL) : NULL;
  return has_own_name && m && m->words ? NULL : capture->process;
}

/* NAME.PID.prof or NAME.rank-N.PID.prof, after the name of the process. A wrapper that started the
   program (a shell, timeout) gave the file its first name. */
static char *named_for_process(char *path, const char *folder, const run_capture *capture,
                               const char *name) {
  char *const process = run_text("%s", name);
  for (char *at = process; *at; at++)
    if (*at == '/' || (unsigned char)*at < 0x20) *at = '_';
  if (capture->is_own || *process == '\0' || *process == '.') return path;
  return capture_renamed(
      path, run_text("%s/%s%s.%u.prof", folder, process, rank_text(capture), capture->pid));
}

/* prof's package has made NAME.PID.prof. A launcher of the workload may have set a rank. */
static char *named_for_rank(char *path, const run_capture *capture) {
  const char *const ending = run_text(".%u.prof", capture->pid), *const rank = rank_text(capture);
  if (capture->is_own || !*rank || !run_ends_in(path, ending) || strstr(path, rank)) return path;
  const int bytes = (int)(strlen(path) - strlen(ending));
  return capture_renamed(path, run_text("%.*s%s%s", bytes, path, rank, ending));
}

/* An unreadable capture stays where it is. */
static run_capture capture_from_inspection(char *path, const run_inspection *about) {
  const bool is_read = about->error[0] == '\0';
  return (run_capture){
      .path = path,
      .process = run_text("%s", about->process),
      .pid = about->pid,
      .start_ns = about->start_ns,
      .rank = about->has_ranks ? about->rank : -1,
      .is_own = path_is_of_prof_run(path),
      .error = is_read ? NULL : run_text("%s", about->error),
      .is_live = about->is_live,
      .was_clean = about->was_clean,
      .has_rows = is_read && (about->is_live || about->has_rows),
      .is_empty = is_read && !about->is_live && !about->has_events,
  };
}

static void add_capture(run_captures *to, const run_capture *capture) {
  to->items = run_grow(to->items, to->count + 1, sizeof *to->items);
  to->items[to->count++] = *capture;
  to->empty_count += capture->is_empty;
}

static void list_paths(const char *folder, run_words *to) {
  const run_words names = run_folder_names(folder);
  for (size_t i = 0; i < names.count; i++)
    if (run_ends_in(names.items[i], ".prof"))
      run_words_add(to, run_text("%s/%s", folder, names.items[i]));
}

/* prof's package names what it reports. What it has not, because the script or another process
   ended without it, or behind it, has the name that it was recorded under: SCRIPT.run-PID-... */
static bool path_is_leftover(const char *path) {
  return strstr(run_base_name(path), ".run-") != NULL;
}

/* Of a capture that was left. */
static const char *leftover_name(const run_capture *capture, const char *script) {
  return script && run_python_is_interpreter(capture->process) ? script : capture->process;
}

static void find_in_folder(const char *folder, const char *script,
                           const run_process_tree *process_tree, run_captures *to) {
  run_words paths = {0};
  list_paths(folder, &paths);
  run_inspection *const all = run_inspect(&paths);
  for (size_t i = 0; i < paths.count; i++) {
    run_capture capture = capture_from_inspection(paths.items[i], &all[i]);
    const bool has_own_name = script && !path_is_leftover(capture.path);
    const char *const title = capture.title = capture_title(process_tree, &capture, has_own_name);
    if (capture.is_empty && !has_own_name)
      unlink(capture.path);
    else if (capture.pid && !capture.is_live)
      capture.path = has_own_name && !title
                         ? named_for_rank(capture.path, &capture)
                         : named_for_process(capture.path, folder, &capture,
                                             title ? title : leftover_name(&capture, script));
    add_capture(to, &capture);
  }
  free(all);
}

/* ---- elsewhere ---- */

static void find_in_other_folders(const char *folder, run_captures *to) {
  const run_words paths = run_capture_paths_find(folder);
  run_inspection *const all = run_inspect(&paths);
  for (size_t i = 0; i < paths.count; i++) {
    run_capture capture = capture_from_inspection(paths.items[i], &all[i]);
    capture.is_elsewhere = true;
    if (capture.is_empty) unlink(capture.path);
    add_capture(to, &capture);
  }
  free(all);
}

static int capture_compare_path(const void *a, const void *b) {
  return strcmp(((const run_capture *)a)->path, ((const run_capture *)b)->path);
}

void run_captures_find(const char *folder, const char *script, const run_process_tree *process_tree,
                       run_captures *to) {
  to->has_no_folder = access(folder, F_OK) != 0;
  find_in_folder(folder, script, process_tree, to);
  find_in_other_folders(folder, to);
  if (to->count > 1) qsort(to->items, to->count, sizeof *to->items, capture_compare_path);
}

const run_capture *run_captures_of(const run_captures *captures, uint32_t pid) {
  const run_capture *found = NULL;
  for (size_t i = 0; i < captures->count; i++)
    if (captures->items[i].pid == pid && (!found || found->is_empty)) found = &captures->items[i];
  return found;
}

bool run_captures_have_events(const run_captures *captures) {
  for (size_t i = 0; i < captures->count; i++)
    if (!captures->items[i].is_own && !captures->items[i].is_empty) return true;
  return false;
}

void run_captures_read(const run_words *paths, run_captures *to) {
  run_inspection *const all = run_inspect(paths);
  for (size_t i = 0; i < paths->count; i++) {
    const run_capture capture = capture_from_inspection(paths->items[i], &all[i]);
    add_capture(to, &capture);
  }
  free(all);
}

void run_captures_remove_elsewhere(const run_captures *captures) {
  for (size_t i = 0; i < captures->count; i++)
    if (captures->items[i].is_elsewhere && !captures->items[i].is_live)
      unlink(captures->items[i].path);
}

/* ---- tables ---- */

/* Runs with stdout redirected to stderr. */
static void run_on_stderr(void (*print)(const run_words *options, const run_words *paths),
                          const run_words *options, const run_words *paths) {
  fflush(stdout);
  const int own = dup(STDOUT_FILENO);
  dup2(STDERR_FILENO, STDOUT_FILENO);
  print(options, paths);
  fflush(stdout);
  if (own >= 0) {
    dup2(own, STDOUT_FILENO);
    close(own);
  } else {
    close(STDOUT_FILENO);
  }
}

static void print_table(const run_words *options, const run_words *paths) {
  run_words words = {0};
  run_words_add(&words, "table");
  run_words_add_all(&words, options);
  run_words_add_all(&words, paths);
  optind = 1;
  (void)command_table.execute((int)words.count, words.items); /* it has printed its errors */
}

static void print_peaks(const run_words *options, const run_words *paths) {
  (void)options;
  run_peaks_print(paths);
}

void run_captures_report(const run_captures *captures, const run_words *options) {
  enum { ERRORS_MAX = 3 };
  run_words paths = {0};
  size_t unreadable = 0;
  bool has_rows = false;
  for (size_t i = 0; i < captures->count; i++) {
    const run_capture *const capture = &captures->items[i];
    if (capture->is_own) continue;
    has_rows |= capture->has_rows;
    if (capture->error && ++unreadable <= ERRORS_MAX)
      say("prof run: a capture is left out: %s", capture->error);
    if (!capture->error && !capture->is_empty) run_words_add(&paths, capture->path);
  }
  if (unreadable > ERRORS_MAX)
    say("prof run: %zu more captures are left out", unreadable - ERRORS_MAX);
  if (paths.count == 0) return;
  if (has_rows)
    run_on_stderr(print_table, options, &paths);
  else
    say("prof run: no scopes were recorded");
  run_on_stderr(print_peaks, options, &paths);
}

/* ---- processes that were killed ---- */

/* The header of a capture has room for when its process was last seen, so that open scopes end
   there, not at the last event. */

/* False: no whole header of a capture that is still marked as being recorded. */
static bool read_open_header(int fd, prof_i_header *header) {
  return pread(fd, header, sizeof *header, 0) == (ssize_t)sizeof *header &&
         header->magic == PROF_I_MAGIC && header->state == PROF_I_STATE_RECORDING;
}

/* A process that executed another program leaves a capture of each. Only the last one lasted as
   long as the process. */
static bool capture_is_last(const run_captures *captures, const run_capture *capture) {
  for (size_t i = 0; i < captures->count; i++) {
    const run_capture *const other = &captures->items[i];
    if (other != capture && other->pid == capture->pid && other->start_ns > capture->start_ns)
      return false;
  }
  return true;
}

/* The program that the process executed last is that of the capture. */
static bool capture_is_of_program(const run_capture *capture, const run_process *m) {
  return m && m->inner_pid == m->pid && strncmp(capture->process, m->name, RUN_COMM_BYTES - 1) == 0;
}

static void write_last_seen(const char *path, uint32_t pid, uint64_t seen_ns) {
  prof_i_header header;
  const int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return;
  if (read_open_header(fd, &header) && header.pid == pid && header.start_monotonic_ns < seen_ns)
    (void)!pwrite(fd, &seen_ns, sizeof seen_ns, offsetof(prof_i_header, seen_ns));
  close(fd);
}

void run_last_seen_report(const run_captures *captures, const run_process_tree *process_tree,
                          const run_child_end *end) {
  for (size_t i = 0; process_tree && i < captures->count; i++) {
    const run_capture *const capture = &captures->items[i];
    if (capture->is_own || capture->error || capture->is_live || capture->was_clean) continue;
    const run_process *const m = run_process_tree_find(process_tree, (pid_t)capture->pid);
    if (!capture_is_of_program(capture, m) || !capture_is_last(captures, capture)) continue;
    const bool is_ours = end->pid == m->pid && end->ended_ns > m->seen_ns;
    write_last_seen(capture->path, capture->pid, is_ours ? end->ended_ns : m->seen_ns);
  }
}

/* ---- --pack ---- */

const char *run_pack_refusal(void) {
  prof_i_zstd *zstd = NULL;
  const int status = prof_i_zstd_create("--pack compresses captures", &zstd);
  prof_i_zstd_destroy(zstd);
  return status == PROF_OK ? NULL : run_text("%s", prof_last_error());
}

bool run_pack(const char *from, const char *to) {
  static const prof_dump_options options = {.size = sizeof options, .format = PROF_FORMAT_PACKED};
  prof_trace *trace = NULL;
  int status = prof_trace_open(from, &trace);
  if (status == PROF_OK) status = prof_trace_dump(trace, run_output_escaped(to), &options);
  if (status != PROF_OK)
    say("prof run: '%s' is not packed: %s: %s", from, prof_status_text(status), prof_last_error());
  prof_trace_destroy(trace);
  return status == PROF_OK;
}

void run_pack_all(const run_captures *captures) {
  output_clean_up_if_killed();
  for (size_t i = 0; i < captures->count; i++) {
    const run_capture *const capture = &captures->items[i];
    const bool has_ended = capture->was_clean || !capture->is_live;
    if (!capture->error && !capture->is_empty && has_ended) run_pack(capture->path, capture->path);
  }
}
