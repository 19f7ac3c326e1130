/* prof recover [DIR...]: what processes that died left behind, what each was inside of, and what to
   do with it. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "commands.h"

enum { OPEN_MAX = 4096, THREADS_SHOWN_MAX = 16 };

typedef enum capture_state_kind {
  STATE_DIED,
  STATE_STOPPED,
  STATE_RUNS,
  STATE_UNKNOWN
} capture_state_kind;
static const char *const state_names[] = {"died", "stopped", "runs", "unknown"};

typedef struct found_capture {
  char *path;
  capture_state_kind capture_state_kind;
  bool is_unsaved; /* its conversion has failed: it is not removed */
  uint64_t bytes;  /* on disk */
  dev_t device;
  ino_t inode;
  prof_trace_info info;
} found_capture;

static struct {
  found_capture *captures;
  size_t count, room;
  size_t folders_read, unreadable;
  bool is_all;
  const char *output;
  uint32_t format;
  long keep; /* -1: nothing is removed */
} recovery;

/* ---- finding them ---- */

static capture_state_kind capture_state(const prof_trace_info *info) {
  if (info->is_live) return STATE_RUNS;
  if (info->was_clean || info->is_copy) return STATE_STOPPED;
  return info->is_elsewhere ? STATE_UNKNOWN : STATE_DIED;
}

static bool file_was_visited(const struct stat *about) {
  for (size_t i = 0; i < recovery.count; i++)
    if (recovery.captures[i].device == about->st_dev && recovery.captures[i].inode == about->st_ino)
      return true;
  return false;
}

/* Nobody has to recover a merged capture: it is a copy of others. */
static void visit_path(const char *path) {
  struct stat about;
  if (lstat(path, &about) != 0 || !S_ISREG(about.st_mode) || file_was_visited(&about)) return;
  uint32_t part_count = 1;
  if (prof_trace_part_count(path, &part_count) == PROF_OK && part_count > 1) return;
  prof_trace *const trace = open_capture(path);
  if (!trace) {
    recovery.unreadable++;
    return;
  }
  if (recovery.count == recovery.room) {
    recovery.room = recovery.room ? recovery.room * 2 : 16;
    recovery.captures = realloc(recovery.captures, recovery.room * sizeof *recovery.captures);
    if (!recovery.captures) abort();
  }
  found_capture *const c = &recovery.captures[recovery.count++];
  *c = (found_capture){.path = strdup(path),
                       .bytes = (uint64_t)about.st_blocks * 512,
                       .device = about.st_dev,
                       .inode = about.st_ino,
                       .info = {.size = sizeof c->info}};
  prof_trace_info_get(trace, &c->info);
  c->capture_state_kind = capture_state(&c->info);
  prof_trace_destroy(trace);
}

/* False: it is no folder that can be read. */
static bool visit_folder(const char *folder) {
  DIR *const entries = opendir(folder);
  if (!entries) return false;
  for (const struct dirent *e; (e = readdir(entries)) != NULL;) {
    char path[PATH_MAX];
    const size_t bytes = strlen(e->d_name);
    if (bytes < 6 || strcmp(e->d_name + bytes - 5, ".prof") != 0) continue;
    if (snprintf(path, sizeof path, "%s/%s", folder, e->d_name) < (int)sizeof path)
      visit_path(path);
  }
  closedir(entries);
  recovery.folders_read++;
  return true;
}

static int newest_first(const void *a, const void *b) {
  const found_capture *const x = a, *const y = b;
  return (x->info.start_unix_ns < y->info.start_unix_ns) -
         (x->info.start_unix_ns > y->info.start_unix_ns);
}

/* ---- telling about them ---- */

typedef struct open_scope {
  uint32_t thread, depth;
  uint64_t since_ns;
  size_t name_bytes;
  char name[96];
} open_scope;

static int outermost_first(const void *a, const void *b) {
  const open_scope *const x = a, *const y = b;
  if (x->thread != y->thread) return x->thread < y->thread ? -1 : 1;
  return (x->since_ns < y->since_ns) - (x->since_ns > y->since_ns);
}

static size_t read_open(const prof_trace *trace, open_scope *scopes) {
  prof_cursor *cursor;
  size_t count = 0;
  prof_event *const event = calloc(1, sizeof *event);
  if (!event || prof_cursor_create(trace, &cursor) != PROF_OK) {
    free(event);
    return 0;
  }
  while (count < OPEN_MAX && prof_cursor_next(cursor, event) == 1) {
    if (event->kind != PROF_EVENT_OPEN) continue;
    open_scope *const scope = &scopes[count++];
    *scope = (open_scope){
        .thread = event->thread, .depth = event->depth, .since_ns = event->duration_ns};
    scope->name_bytes =
        event->name_bytes < sizeof scope->name ? event->name_bytes : sizeof scope->name;
    memcpy(scope->name, event->name, scope->name_bytes);
  }
  prof_cursor_destroy(cursor);
  free(event);
  return count;
}

static void print_thread(const prof_trace *trace, uint32_t number) {
  prof_trace_thread thread = {.size = sizeof thread};
  prof_trace_thread_get(trace, number, &thread);
  printf("    thread %" PRIu64 " ", thread.tid);
  print_text(stdout, thread.name, strnlen(thread.name, sizeof thread.name));
  fputs(" was inside of ", stdout);
}

static void print_open_scopes(const prof_trace *trace) {
  open_scope *const scopes = calloc(OPEN_MAX, sizeof *scopes);
  if (!scopes) return;
  const size_t count = read_open(trace, scopes);
  qsort(scopes, count, sizeof *scopes, outermost_first);
  size_t threads = 0;
  for (size_t i = 0; i < count; i++) {
    const bool is_first = i == 0 || scopes[i].thread != scopes[i - 1].thread;
    if (is_first && ++threads > THREADS_SHOWN_MAX) break;
    if (is_first)
      print_thread(trace, scopes[i].thread);
    else
      fputs(" > ", stdout);
    print_text(stdout, scopes[i].name, scopes[i].name_bytes);
    if (i + 1 == count || scopes[i + 1].thread != scopes[i].thread)
      printf(", begun %.3f ms before %s\n", (double)scopes[i].since_ns / 1e6, flush_words(trace));
  }
  if (threads > THREADS_SHOWN_MAX) puts("    ... and more: see prof info");
  free(scopes);
}

static void print_when(uint64_t unix_ns) {
  const time_t seconds = (time_t)(unix_ns / 1000000000u);
  struct tm parts;
  char text[32] = "?";
  if (gmtime_r(&seconds, &parts)) strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &parts);
  printf("%-19s", text);
}

static void print_head(void) {
  printf("%-8s  %-19s  %8s  %10s  %6s  %10s  %8s  process, capture\n", "state", "started (UTC)",
         "pid", "events", "open", "lost", "MiB");
}

static void print_sum(void) {
  size_t of_state[4] = {0};
  for (size_t i = 0; i < recovery.count; i++) of_state[recovery.captures[i].capture_state_kind]++;
  printf(
      "%zu capture%s: %zu of processes that died, %zu stopped, %zu of processes that run, %zu of "
      "which cannot be told\n",
      recovery.count, recovery.count == 1 ? "" : "s", of_state[STATE_DIED], of_state[STATE_STOPPED],
      of_state[STATE_RUNS], of_state[STATE_UNKNOWN]);
}

static void print_capture(const found_capture *c) {
  uint64_t lost = 0;
  for (int i = 0; i < PROF_LOSS_COUNT; i++) lost += c->info.lost_count[i];
  printf("%-8s  ", state_names[c->capture_state_kind]);
  print_when(c->info.start_unix_ns);
  printf("  %8" PRIu32 "  %10" PRIu64 "  %6" PRIu64 "  %10" PRIu64 "  %8.1f  ", c->info.pid,
         c->info.event_count - c->info.open_count, c->info.open_count, lost,
         (double)c->bytes / 1048576);
  print_text(stdout, c->info.process_name,
             strnlen(c->info.process_name, sizeof c->info.process_name));
  fputs("  ", stdout);
  print_text(stdout, c->path, strlen(c->path));
  putchar('\n');
}

/* ---- doing something ---- */

/* OUTDIR/NAME.json for DIR/NAME.prof; not over a file that is there. */
static int convert_capture(const found_capture *c, const prof_trace *trace) {
  char to[PATH_MAX];
  const char *const slash = strrchr(c->path, '/');
  const char *const name = slash ? slash + 1 : c->path;
  const char *const ending = recovery.format == PROF_FORMAT_CAPTURE ? ".prof" : ".json";
  const prof_dump_options options = {
      .size = sizeof options, .format = recovery.format, .must_be_new = 1};
  if (snprintf(to, sizeof to, "%s/%.*s%s", recovery.output, (int)(strlen(name) - 5), name,
               ending) >= (int)sizeof to) {
    say("prof recover: cannot write into '%s': the path of %s%s is too long", recovery.output, name,
        ending);
    return EXIT_FAILED;
  }
  const char *followed = to;
  if (output_follow_link("recover", &followed) != EXIT_OK) return EXIT_FAILED;
  const int status = prof_trace_dump(trace, followed, &options);
  if (status == PROF_OK) {
    fputs("    written to ", stdout);
    print_text(stdout, to, strlen(to));
    putchar('\n');
    return EXIT_OK;
  }
  say("prof recover: %s: %s", prof_status_text(status), prof_last_error());
  return EXIT_FAILED;
}

/* The folder of -o. Its parent must exist, as for mkdir. */
static int make_output_folder(void) {
  const char *const folder = recovery.output;
  struct stat is;
  if (mkdir(folder, 0777) == 0) return EXIT_OK;
  const int error = errno;
  if (stat(folder, &is) == 0 && S_ISDIR(is.st_mode)) return EXIT_OK;
  say("prof recover: cannot make the directory '%s': %s", folder,
      error == ENOENT   ? "the directory that it would be in does not exist"
      : error == EEXIST ? "there is a file or a dangling link of this name"
                        : strerror(error));
  return EXIT_FAILED;
}

static int report_capture(found_capture *c) {
  int status = EXIT_OK;
  print_capture(c);
  if (!c->info.open_count && !(recovery.output && c->capture_state_kind == STATE_DIED))
    return EXIT_OK;
  prof_trace *const trace = open_capture(c->path);
  c->is_unsaved = !trace;
  if (!trace) return EXIT_FAILED;
  if (c->info.open_count) print_open_scopes(trace);
  if (recovery.output && c->capture_state_kind == STATE_DIED) status = convert_capture(c, trace);
  c->is_unsaved = status != EXIT_OK;
  prof_trace_destroy(trace);
  fflush(stdout);
  return status;
}

/* Removes the capture if its path still names the file that was read. The caller has checked that
   its process has died, or that its recording has stopped. */
static int remove_capture(const found_capture *c) {
  struct stat about;
  if (lstat(c->path, &about) != 0 || about.st_dev != c->device || about.st_ino != c->inode)
    return EXIT_OK;
  if (unlink(c->path) != 0) {
    say("prof recover: cannot remove '%s': %s", c->path, strerror(errno));
    return EXIT_FAILED;
  }
  fputs("removed ", stdout);
  print_text(stdout, c->path, strlen(c->path));
  putchar('\n');
  return EXIT_OK;
}

/* What was listed and is over: with --all the stopped ones, too, which somebody may have meant to
   keep. */
static int remove_finished(void) {
  int status = EXIT_OK;
  long kept = 0;
  for (size_t i = 0; i < recovery.count; i++) {
    const found_capture *const c = &recovery.captures[i];
    if (c->capture_state_kind != STATE_DIED &&
        !(recovery.is_all && c->capture_state_kind == STATE_STOPPED))
      continue;
    if (kept++ < recovery.keep || c->is_unsaved) continue;
    if (remove_capture(c) != EXIT_OK) status = EXIT_FAILED;
  }
  return status;
}

/* ---- the words ---- */

static int parse_option(int c) {
  char *end = NULL;
  switch (c) {
    case 'a':
      recovery.is_all = true;
      return EXIT_OK;
    case 'o':
      recovery.output = optarg;
      return *optarg ? EXIT_OK : refuse_words("recover", "-o needs a directory", NULL);
    case 'k':
      recovery.keep = strtol(optarg, &end, 10);
      return *optarg && !*end && recovery.keep >= 0
                 ? EXIT_OK
                 : refuse_words("recover", "--keep takes how many to keep, not", optarg);
    case 'f':
      if (choose_format("recover", optarg, false, &recovery.format) == EXIT_OK) return EXIT_OK;
  }
  return EXIT_USAGE;
}

/* Where captures go: beside their output, or where core/buffer/capture_file.c turns to. */
static void check_output_folder(void) {
  const char *const places[] = {".", getenv("PROF_CAPTURE_DIR"), getenv("TMPDIR"), "/tmp",
                                "/dev/shm"};
  for (size_t i = 0; i < sizeof places / sizeof *places; i++)
    if (places[i] && places[i][0]) visit_folder(places[i]);
}

static int execute_recover(int argc, char **argv) {
  recovery.keep = -1;
  int status = EXIT_OK;
  for (int c; (c = command_option_next(&command_recover, argc, argv)) != -1;) {
    if (parse_option(c) != EXIT_OK) return EXIT_USAGE;
  }
  if (recovery.keep >= 0 && optind == argc)
    return refuse_words("recover", "--keep removes captures: name the directories", NULL);
  if (recovery.output && make_output_folder() != EXIT_OK) return EXIT_FAILED;
  for (int i = optind; i < argc; i++) {
    if (visit_folder(argv[i])) continue;
    say("prof recover: cannot look into '%s': %s%s", argv[i], strerror(errno),
        errno == ENOTDIR ? "; give the directory, or the capture to prof info" : "");
    status = EXIT_FAILED;
  }
  if (optind == argc) check_output_folder();
  if (recovery.count)
    qsort(recovery.captures, recovery.count, sizeof *recovery.captures, newest_first);
  size_t shown = 0; /* --all shows the others, too */
  for (size_t i = 0; i < recovery.count; i++) {
    if (!recovery.is_all && recovery.captures[i].capture_state_kind != STATE_DIED &&
        recovery.captures[i].capture_state_kind != STATE_UNKNOWN)
      continue;
    if (shown++ == 0) print_head();
    if (report_capture(&recovery.captures[i]) != EXIT_OK) status = EXIT_FAILED;
  }
  print_sum();
  if (recovery.keep >= 0 && remove_finished() != EXIT_OK) status = EXIT_FAILED;
  for (size_t i = 0; i < recovery.count; i++) free(recovery.captures[i].path);
  free(recovery.captures);
  return recovery.unreadable ? EXIT_FAILED : status;
}

static const command_option options_of_recover[] = {
    {"all", 'a', NULL, .help = "captures of processes that stopped, too"},
    {"output", 'o', "OUTDIR",
     .help = "converts each into this folder, and makes it if it is missing"},
    {"format", 'f', "FORMAT", .help = "of -o: chrome, raf or capture (default chrome)"},
    {"keep", 'k', "N", .help = "removes all that it lists but the newest N"},
    {0}};

static const command_example examples[] = {
    {"prof recover . -o saved", "converts what dead processes left in this folder"}, {0}};

const prof_command command_recover = {
    .name = "recover",
    .summary = "what processes that died left, and what each was inside of",
    .words = "[DIR...] [--all] [-o OUTDIR] [--format FORMAT] [--keep N]",
    .about =
        "Lists the captures that processes which died left in DIR, and what each was inside "
        "of. Never removes a capture whose process runs, or may run.",
    .options = options_of_recover,
    .examples = examples,
    .execute = execute_recover};
