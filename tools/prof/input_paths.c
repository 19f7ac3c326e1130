/* The paths of captures that words name: files, the parts of merged ones, folders, globs,
   processes. See inputs.h. */
#define _GNU_SOURCE
#include "inputs.h"

#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../src/live/live.h"
#include "commands.h"

/* "prof table" or "prof", until the next call. */
static const char *full_name(const char *command) {
  static char name[64];
  snprintf(name, sizeof name, "prof%s%s", command ? " " : "", command ? command : "");
  return name;
}

/* ---- parts of a merged file ---- */

/* Returns 0 if the file has only one part, because the file and the part are the same capture. */
static uint32_t part_of(const char *path, uint32_t number) {
  prof_i_merged_header header;
  if (prof_i_parts_look(path, &header)) return header.part_count > 1 ? number + 1 : 0;
  uint32_t count = 1;
  return prof_trace_part_count(path, &count) == PROF_OK && count > 1 ? number + 1 : 0;
}

input_file input_file_of(const char *path) {
  char file[PATH_MAX];
  struct stat about;
  uint32_t number = 0;
  if (stat(path, &about) == 0)
    return S_ISREG(about.st_mode) ? (input_file){about.st_dev, about.st_ino, 0} : (input_file){0};
  if (!prof_i_part_path_split(path, file, sizeof file, &number) || stat(file, &about) != 0 ||
      !S_ISREG(about.st_mode))
    return (input_file){0}; /* the open says why */
  return (input_file){about.st_dev, about.st_ino, part_of(file, number)};
}

bool input_file_equals(const input_file *a, const input_file *b) {
  return a->inode == b->inode && a->device == b->device && a->part == b->part;
}

static void say_lost(const char *command, const char *path, const prof_i_parts *parts) {
  input_set_damaged();
  say("%s: '%s' is damaged or cut off: %u of its %u captures can be read", full_name(command), path,
      parts->count, parts->all_count);
}

/* A file of a part's name would be read instead of the part. */
static bool is_hidden(const char *command, const char *path, const char *part) {
  if (access(part, F_OK) != 0) return false;
  say("%s: '%s' is a file, and also names a capture in '%s': rename the file", full_name(command),
      part, path);
  return true;
}

static int add_parts(const char *command, const char *path, const prof_i_parts *parts,
                     input_add_path add, void *user) {
  char part[PATH_MAX + 16];
  int status = EXIT_OK;
  for (uint32_t i = 0; i < parts->count && status == EXIT_OK; i++) {
    snprintf(part, sizeof part, "%s#%u", path, parts->items[i].number + 1);
    status = is_hidden(command, path, part) ? EXIT_FAILED : add(user, part);
  }
  return status;
}

/* If the file cannot be read, passes its path on: the open prints the error. */
int input_each_capture(const char *command, const char *path, input_add_path add, void *user) {
  prof_i_parts parts;
  if (prof_i_parts_open(path, &parts) != PROF_OK) return add(user, path);
  if (parts.is_merged && parts.count > 0 && parts.lost_count) say_lost(command, path, &parts);
  const int status = parts.all_count > 1 && parts.count > 0
                         ? add_parts(command, path, &parts, add, user)
                         : add(user, path);
  prof_i_parts_fini(&parts);
  return status;
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

/* ---- one path ---- */

static char *copy_path(const char *path) {
  char *const copy = strdup(path);
  if (!copy) say("prof: no memory for the name '%s'", path);
  return copy;
}

char *input_one_path(const char *word) {
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

void input_say_left(const char *path) {
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
    say("prof: a process that runs, or was killed, has recorded into '%s'",
        found.gl_pathv[i] + (slash ? 0 : strlen("./")));
  globfree(&found);
}
