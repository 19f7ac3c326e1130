/* See inputs.h. */
#define _GNU_SOURCE
#include "inputs.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../src/format/part_note.h"
#include "../../src/reader/internal.h"
#include "commands.h"

static bool has_damage, tells_parts;

void input_tell_parts(void) { tells_parts = true; }

bool input_was_damaged(void) { return has_damage; }
void input_set_damaged(void) { has_damage = true; }

/* "prof table" or "prof", until the next call. */
static const char *full_name(const char *command) {
  static char name[64];
  snprintf(name, sizeof name, "prof%s%s", command ? " " : "", command ? command : "");
  return name;
}

/* ---- paths ---- */

static bool make_room(input_paths *to) {
  if (to->count < to->room) return true;
  const size_t room = to->room ? 2 * to->room : 16;
  char **const paths = realloc(to->paths, room * sizeof *paths);
  if (paths) to->paths = paths;
  input_file *const files = paths ? realloc(to->files, room * sizeof *files) : NULL;
  if (!files) return false;
  to->files = files;
  to->room = room;
  return true;
}

/* A file that is there already, under this or another name. */
static const char *earlier_name(const input_paths *of, const input_file *file) {
  for (size_t i = 0; file->inode && i < of->count; i++)
    if (input_file_equals(&of->files[i], file)) return of->paths[i];
  return NULL;
}

static int put_capture(const char *command, input_paths *to, const char *path) {
  const input_file file = input_file_of(path);
  const char *const earlier = earlier_name(to, &file);
  if (earlier) {
    say("%s: '%s' and '%s' are one file, which is counted once", full_name(command), earlier, path);
    return EXIT_OK;
  }
  char *const copy = make_room(to) ? strdup(path) : NULL;
  if (!copy) {
    say("%s: no memory for the name '%s'", full_name(command), path);
    return EXIT_FAILED;
  }
  to->files[to->count] = file;
  to->paths[to->count++] = copy;
  return EXIT_OK;
}

typedef struct path_adder {
  const char *command;
  input_paths *to;
} path_adder;

static int add_to_paths(void *user, const char *path) {
  const path_adder *const adder = user;
  return put_capture(adder->command, adder->to, path);
}

static int put_path(const char *command, input_paths *to, const char *path) {
  path_adder adder = {command, to};
  return input_each_capture(command, path, add_to_paths, &adder);
}

/* The process's file, so that it is found to be a file that another word names. */
static int put_word(const char *command, input_paths *to, const char *word) {
  char path[PATH_MAX];
  long pid;
  if (!input_word_is_process(word, &pid)) return put_path(command, to, word);
  return input_of_process(command, pid, path, sizeof path) ? put_path(command, to, path)
                                                           : EXIT_FAILED;
}

static bool is_dead_link(const char *path) {
  struct stat about;
  return stat(path, &about) != 0 && errno == ENOENT && lstat(path, &about) == 0;
}

/* What a folder or a pattern has, without its dead links. *count_out: so many files. */
static int put_found(const char *command, input_paths *to, const glob_t *found, size_t *count_out) {
  int status = EXIT_OK;
  *count_out = 0;
  for (size_t i = 0; i < found->gl_pathc && status == EXIT_OK; i++) {
    const char *const path = found->gl_pathv[i];
    if (is_dead_link(path)) {
      say("%s: '%s' is left out: it is a link to a file that does not exist", full_name(command),
          path);
      continue;
    }
    status = put_path(command, to, path);
    ++*count_out;
  }
  return status;
}

/* glob() of the pattern in a folder, whose name is taken as it is. What it finds is added to what
   `found` has. */
static int glob_in_folder(const char *folder, const char *pattern, glob_t *found) {
  char *const text = malloc(2 * strlen(folder) + strlen(pattern) + 2);
  if (!text) return GLOB_NOSPACE;
  char *to = text;
  for (; *folder; folder++) {
    if (strchr("*?[\\", *folder)) *to++ = '\\';
    *to++ = *folder;
  }
  *to++ = '/';
  memcpy(to, pattern, strlen(pattern) + 1);
  const int status = glob(text, found->gl_pathc ? GLOB_APPEND : 0, NULL, found);
  free(text);
  return status;
}

static size_t folder_bytes(const char *path) {
  const char *const slash = strrchr(path, '/');
  return slash ? (size_t)(slash - path) : 0;
}

static bool is_merged(const char *path) {
  uint32_t count = 1;
  return prof_trace_part_count(path, &count) == PROF_OK && count > 1;
}

/* Has a run several captures, as of several processes? Then the folder says not which. */
static const char *crowded_run(const glob_t *found) {
  for (size_t i = 0; i < found->gl_pathc; i++)
    if (is_merged(found->gl_pathv[i])) return found->gl_pathv[i];
  for (size_t i = 1; i < found->gl_pathc; i++) {
    const char *const a = found->gl_pathv[i - 1], *const b = found->gl_pathv[i];
    if (folder_bytes(a) == folder_bytes(b) && memcmp(a, b, folder_bytes(a)) == 0) return b;
  }
  return NULL;
}

/* Where prof run leaves captures below a folder. */
static const struct {
  const char *pattern;
  bool is_of_runs;
} capture_places[] = {{"*.prof", false},        {"prof_output/*.prof", false},
                      {"run-*/*.prof", true},   {"run-*/prof_output/*.prof", true},
                      {"rank-*/*.prof", false}, {"rank-*/prof_output/*.prof", false}};
enum { PLACE_COUNT = sizeof capture_places / sizeof *capture_places };

/* The first place that has captures; else the folder's traces. */
static void find_in_folder(const char *folder, glob_t *found, bool *is_of_runs_out) {
  static const char *const traces[] = {"*.json", "*.json.gz", "*.rpd", "*.db"};
  *is_of_runs_out = false;
  for (int i = 0; i < PLACE_COUNT; i++) {
    glob_in_folder(folder, capture_places[i].pattern, found);
    *is_of_runs_out = capture_places[i].is_of_runs;
    if (found->gl_pathc) return;
  }
  *is_of_runs_out = false;
  for (size_t i = 0; i < sizeof traces / sizeof *traces; i++)
    glob_in_folder(folder, traces[i], found);
}

int input_paths_add_ranks(const char *command, input_paths *to, const char *folder) {
  glob_t found = {0};
  for (int i = 0; i < PLACE_COUNT; i++)
    if (!capture_places[i].is_of_runs) glob_in_folder(folder, capture_places[i].pattern, &found);
  size_t count;
  const int status = put_found(command, to, &found, &count);
  globfree(&found);
  if (status != EXIT_OK || count > 0) return status;
  say("prof %s: no capture (*.prof, rank-*/*.prof) in the folder '%s'", command, folder);
  return EXIT_FAILED;
}

static int put_folder(const char *command, input_paths *to, const char *folder, bool is_one_a_run) {
  glob_t found = {0};
  bool is_of_runs;
  int status = EXIT_FAILED;
  find_in_folder(folder, &found, &is_of_runs);
  const char *const crowded = is_of_runs && is_one_a_run ? crowded_run(&found) : NULL;
  size_t count = 0;
  if (crowded)
    say("%s: a run in '%s' has several captures, such as '%s': name one of each run by a "
        "quoted glob",
        full_name(command), folder, crowded);
  else
    status = put_found(command, to, &found, &count);
  globfree(&found);
  if (status != EXIT_OK || count > 0) return status;
  say("%s: no capture (*.prof) in the folder '%s'", full_name(command), folder);
  return EXIT_FAILED;
}

static bool is_pattern(const char *word) { return strpbrk(word, "*?[") != NULL; }

int input_paths_add(const char *command, input_paths *to, const char *word, bool is_one_a_run) {
  struct stat about;
  if (stat(word, &about) == 0)
    return S_ISDIR(about.st_mode) ? put_folder(command, to, word, is_one_a_run)
                                  : put_path(command, to, word);
  if (!is_pattern(word)) return put_word(command, to, word); /* the open says why not */
  glob_t found = {0};
  size_t count;
  glob(word, 0, NULL, &found);
  const int status = put_found(command, to, &found, &count);
  globfree(&found);
  if (status != EXIT_OK || count > 0) return status;
  say("%s: no file is named like '%s'", full_name(command), word);
  return EXIT_FAILED;
}

void input_paths_free(input_paths *paths) {
  for (size_t i = 0; i < paths->count; i++) free(paths->paths[i]);
  free(paths->paths);
  free(paths->files);
  *paths = (input_paths){0};
}

/* ---- processes ---- */

/* What has been removed cannot be opened any more, and a capture in memory has no name. */
bool input_of_process(const char *command, long pid, char *path, size_t room) {
  char maps[64], *line = NULL;
  size_t line_room = 0;
  bool found = false, has_other = false;
  snprintf(maps, sizeof maps, "/proc/%ld/maps", pid);
  FILE *const file = fopen(maps, "r");
  if (!file) {
    if (errno == ENOENT)
      say("%s: there is no process %ld, and no file of this name", full_name(command), pid);
    else
      say("%s: cannot look into process %ld: %s", full_name(command), pid, strerror(errno));
    return false;
  }
  while (!found && getline(&line, &line_room, file) > 0) {
    const char *const at = strchr(line, '/');
    const size_t bytes = at ? strcspn(at, "\n") : 0;
    if (!at) continue;
    has_other |= strstr(at, "prof-capture") || strstr(at, ".prof (deleted)");
    if (bytes < 6 || bytes >= room || strncmp(at + bytes - 5, ".prof", 5) != 0) continue;
    memcpy(path, at, bytes);
    path[bytes] = '\0';
    found = true;
  }
  free(line);
  fclose(file);
  if (!found)
    say("%s: process %ld has %s; start it with PROF_LEVEL and PROF_OUTPUT, or a path",
        full_name(command), pid, has_other ? "a capture that has no name" : "no capture");
  return found;
}

bool input_word_is_process(const char *word, long *pid) {
  char *end;
  if (word[0] < '1' || word[0] > '9' || access(word, F_OK) == 0) return false;
  errno = 0;
  *pid = strtol(word, &end, 10);
  return !*end && !errno;
}

/* ---- captures ---- */

/* A process that is killed leaves its capture under a name of its own. */
static void say_left(const char *path) {
  static const char *const endings[] = {".run-*", ".*.prof"};
  const char *const slash = strrchr(path, '/'), *const name = slash ? slash + 1 : path;
  char folder[PATH_MAX], pattern[PATH_MAX];
  glob_t found = {0};
  snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) : 1, slash ? path : ".");
  for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
    const int bytes = snprintf(pattern, sizeof pattern, "%s%s", name, endings[i]);
    if (!strpbrk(name, "*?[\\") && bytes < (int)sizeof pattern)
      glob_in_folder(folder, pattern, &found);
  }
  for (size_t i = 0; i < found.gl_pathc; i++)
    say("prof: a process that was killed has left '%s'",
        found.gl_pathv[i] + (slash ? 0 : strlen("./")));
  globfree(&found);
}

/* The library's text names the file, and says what is wrong and what to do. */
static void say_refused(int status) {
  const char *const error = prof_last_error(), *const text = prof_status_text(status);
  const bool is_said = strcasestr(error, text) != NULL || status == PROF_E_INVALID;
  say("prof: %s%s%s%s%s", error, is_said ? "" : " (", is_said ? "" : text, is_said ? "" : ")",
      status == PROF_E_PERMISSION ? "; captures belong to the user whose process wrote them" : "");
}

prof_trace *open_capture_file(const char *path) {
  prof_trace *trace = NULL;
  const int status = prof_trace_open(path, &trace);
  if (status == PROF_OK) return trace;
  say_refused(status);
  return NULL;
}

input_begin input_begin_read(const char *path) {
  input_begin begin = {.header = {0}};
  const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return begin;
  if (pread(file, &begin.header, sizeof begin.header, 0) != sizeof begin.header ||
      pread(file, &begin.packed, sizeof begin.packed, PROF_I_PACKED_FIRST_OFFSET) !=
          sizeof begin.packed)
    begin.packed.magic = 0;
  close(file);
  return begin;
}

/* Is it JSON, compressed, or a database of SQLite? A file that is named as a capture is not taken
   for a trace. */
static bool begins_as_trace(const char *path) {
  unsigned char bytes[64];
  const size_t length = strlen(path);
  if (length >= 5 && strcmp(path + length - 5, ".prof") == 0) return false;
  FILE *const file = fopen(path, "rb");
  const size_t count = file ? fread(bytes, 1, sizeof bytes, file) : 0;
  if (file) fclose(file);
  size_t at = count >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
  while (at < count && memchr(" \t\r\n", bytes[at], 4)) at++;
  return (at < count && (bytes[at] == '{' || bytes[at] == '[')) ||
         (count >= 2 && memcmp(bytes, "\x1f\x8b", 2) == 0) ||
         (count >= 15 && memcmp(bytes, "SQLite format 3", 15) == 0);
}

/* The C libraries that wheels are built for have no getrandom(). */
static bool read_random(void *to, size_t bytes) {
  const int file = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
  const bool is_read = file >= 0 && read(file, to, bytes) == (ssize_t)bytes;
  const int error = errno;
  if (file >= 0) close(file);
  errno = error;
  return is_read;
}

static void drop_passing(const char *path) {
  unlink(path);
  output_set_passing(NULL);
}

/* Removes the name of the capture right after opening it, unless `kept` receives the name. The name
   is random, so that no other user can create the file first. */
static prof_trace *import_capture(const char *path, char *kept) {
  static char output[PATH_MAX];
  uint64_t name[2];
  const char *const folder = getenv("TMPDIR");
  if (!read_random(name, sizeof name)) {
    say("prof: no random name for the capture of '%s': %s", path, strerror(errno));
    return NULL;
  }
  const int bytes = snprintf(output, sizeof output, "%s/prof-%016" PRIx64 "%016" PRIx64 ".prof",
                             folder && *folder ? folder : "/tmp", name[0], name[1]);
  if (bytes >= (int)sizeof output) {
    say("prof: TMPDIR is too long for a name in it: %s", folder);
    return NULL;
  }
  output_clean_up_if_killed();
  output_set_passing(output);
  const bool is_own_line = !progress_has_begun();
  if (is_own_line) {
    progress_begin("import", 0);
    progress_expect(path);
  }
  const uint64_t bytes_before = progress_bytes();
  prof_trace *trace = NULL;
  if (import_to_read(path, output, &has_damage)) {
    progress_imported(path, output, bytes_before);
    trace = open_capture_file(output);
  }
  if (is_own_line) progress_end();
  if (trace && kept)
    snprintf(kept, PATH_MAX, "%s", output);
  else
    drop_passing(output);
  return trace;
}

static void look_at_part(const char *path, const prof_trace *trace) {
  prof_trace_info info = {.size = sizeof info};
  prof_trace_info_get(trace, &info);
  for (uint32_t note = 0; tells_parts && note < info.note_count; note++) {
    char *text;
    if (prof_i_trace_note_text(trace, note, &text) != PROF_OK) return;
    if (prof_i_is_part_note(text)) say("prof: '%s': %s", path, text);
    free(text);
  }
}

void input_look_at(const char *path, const prof_trace *trace) {
  prof_trace_info info = {.size = sizeof info};
  prof_trace_info_get(trace, &info);
  look_at_part(path, trace);
  if (!info.bad_count) return;
  has_damage = true;
  say("prof: '%s' is damaged or cut off: %" PRIu64 " place%s could not be read", path,
      info.bad_count, info.bad_count == 1 ? "" : "s");
}

prof_trace *open_capture_alone(const char *path) {
  prof_trace *const trace = open_capture_file(path);
  if (trace) input_look_at(path, trace);
  return trace;
}

/* kept: NULL, or room of PATH_MAX for the path of the capture that an import made. It becomes ""
   if there was no import. */
static prof_trace *open_file(const char *path, char *kept) {
  prof_trace *trace = NULL;
  const int status = prof_trace_open(path, &trace);
  if ((status == PROF_E_NOT_CAPTURE || status == PROF_E_TRUNCATED) && begins_as_trace(path))
    return import_capture(path, kept);
  if (status != PROF_OK) say_refused(status);
  if (status == PROF_E_NOT_FOUND) say_left(path);
  if (trace) input_look_at(path, trace);
  return trace;
}

static char *copy_path(const char *path) {
  char *const copy = strdup(path);
  if (!copy) say("prof: no memory for the name '%s'", path);
  return copy;
}

/* The path that the word names. The caller frees it. NULL, with a message: the word does not name
   exactly one. */
static char *one_path(const char *word) {
  char path[PATH_MAX], *one = NULL;
  long pid;
  struct stat about;
  if (input_word_is_process(word, &pid))
    return input_of_process(NULL, pid, path, sizeof path) ? copy_path(path) : NULL;
  const bool is_there = stat(word, &about) == 0;
  if (is_there ? !S_ISDIR(about.st_mode) : !is_pattern(word)) return copy_path(word);
  input_paths found = {0};
  if (input_paths_add(NULL, &found, word, false) == EXIT_OK) {
    if (found.count == 1)
      one = copy_path(found.paths[0]);
    else if (!is_there)
      say("prof: %zu files are named like '%s', such as '%s', and this command takes one",
          found.count, word, found.paths[0]);
    else
      say("prof: the folder '%s' has %zu captures, such as '%s': name one", word, found.count,
          found.paths[0]);
  }
  input_paths_free(&found);
  return one;
}

prof_trace *open_capture(const char *word) {
  char *const path = one_path(word);
  prof_trace *const trace = path ? open_file(path, NULL) : NULL;
  free(path);
  return trace;
}

/* Opens the capture that the word names. Refuses an output that is this capture. */
static prof_trace *open_for(const char *word, const char *output, input_named *named) {
  char *const path = one_path(word);
  prof_trace *trace = NULL;
  if (path && output && output_is_input(output, path)) {
    say("prof: '%s' is the capture itself; write another file", output);
  } else if (path) {
    progress_expect(path);
    trace = open_file(path, named ? named->imported : NULL);
    if (named)
      snprintf(named->path, sizeof named->path, "%s", *named->imported ? named->imported : path);
  }
  free(path);
  return trace;
}

prof_trace *open_capture_for(const char *word, const char *output) {
  return open_for(word, output, NULL);
}

prof_trace *input_named_open(const char *word, const char *output, input_named *named_out) {
  *named_out->path = *named_out->imported = '\0';
  return open_for(word, output, named_out);
}

void input_named_close(const input_named *named) {
  if (*named->imported) drop_passing(named->imported);
}

int input_captures_open(const char *command, size_t count, char **words, input_captures *to) {
  input_paths paths = {0};
  int status = EXIT_OK;
  for (size_t i = 0; i < count && status == EXIT_OK; i++)
    status = input_paths_add(command, &paths, words[i], false);
  for (size_t i = 0; i < paths.count; i++) progress_expect(paths.paths[i]);
  if (status == EXIT_OK) to->items = calloc(paths.count + 1, sizeof *to->items);
  for (size_t i = 0; i < paths.count && status == EXIT_OK; i++) {
    prof_trace *const trace = to->items ? open_capture(paths.paths[i]) : NULL;
    if (trace)
      to->items[to->count++] = trace;
    else
      status = EXIT_FAILED;
  }
  input_paths_free(&paths);
  return status;
}

void input_captures_close(input_captures *captures) {
  while (captures->count > 0) prof_trace_destroy(captures->items[--captures->count]);
  free(captures->items);
  *captures = (input_captures){0};
}
