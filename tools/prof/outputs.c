/* What commands write: the paths, what a signal leaves of them, and the formats. See commands.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../src/base/error.h"
#include "../../src/base/text.h"
#include "../../src/export/exporter.h"
#include "../../src/live/live.h"
#include "../../src/sink/sink.h"
#include "../import/import.h"
#include "commands.h"

bool output_is_input(const char *output, const char *input) {
  struct stat to, from;
  char file[PATH_MAX];
  uint32_t number;
  if (stat(output, &to) != 0) return false;
  if (stat(input, &from) != 0 &&
      (!prof_i_part_path_split(input, file, sizeof file, &number) || stat(file, &from) != 0))
    return false;
  return to.st_dev == from.st_dev && to.st_ino == from.st_ino;
}

/* ---- signals ---- */

static prof_i_unfinished_file unfinished;
static const char *volatile passing_path;

void output_set_passing(const char *path) { passing_path = path; }

/* Removes unfinished files. Then the signal ends the process as without a handler. */
static void on_end(int number) {
  if (__atomic_load_n(&unfinished.name[0], __ATOMIC_ACQUIRE)) /* with note_unfinished() */
    unlinkat(unfinished.folder, unfinished.name, 0);
  import_output_remove_unfinished();
  const char *const path = passing_path;
  if (path) unlink(path);
  progress_killed();
  raise(number); /* SA_RESETHAND: the default, when this handler returns */
}

void output_clean_up_if_killed(void) {
  static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
  const struct sigaction action = {.sa_handler = on_end, .sa_flags = (int)SA_RESETHAND};
  struct sigaction old;
  if (prof_i_target_unfinished) return;
  prof_i_target_unfinished = &unfinished;
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
    if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL)
      sigaction(numbers[i], &action, NULL);
}

/* ---- links ---- */

/* The path of an open file. False: the file was removed. */
static bool name_of_file(int file, char *to, size_t room) {
  char link[64];
  struct stat opened, named;
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  const ssize_t bytes = readlink(link, to, room - 1);
  if (bytes <= 0) return false;
  to[bytes] = '\0';
  return fstat(file, &opened) == 0 && stat(to, &named) == 0 && opened.st_dev == named.st_dev &&
         opened.st_ino == named.st_ino;
}

static bool is_same_folder(const char *one, const char *other) {
  struct stat here, there;
  return stat(one, &here) == 0 && stat(other, &there) == 0 && here.st_dev == there.st_dev &&
         here.st_ino == there.st_ino;
}

/* Whether the path is in the folder of this process's descriptors: then its last part is one. */
static bool is_descriptor(const char *path) {
  char folder[PATH_MAX];
  const char *const slash = strrchr(path, '/');
  if (!slash || slash - path >= PATH_MAX) return false;
  snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
  return is_same_folder(folder, "/proc/self/fd") || is_same_folder(folder, "/proc/thread-self/fd");
}

/* The descriptor that the path names, such as /dev/fd/1, /dev/stderr or a link to one. -1: none. */
static int descriptor_of(const char *path) {
  enum { LINKS_MAX = 8 };
  char at[PATH_MAX], next[PATH_MAX];
  snprintf(at, sizeof at, "%s", path);
  for (int i = 0; i < LINKS_MAX; i++) {
    if (is_descriptor(at)) return (int)strtol(strrchr(at, '/') + 1, NULL, 10);
    const ssize_t bytes = readlink(at, next, sizeof next - 1);
    if (bytes <= 0) return -1;
    next[bytes] = '\0';
    const char *const slash = next[0] == '/' ? NULL : strrchr(at, '/');
    const size_t folder = slash ? (size_t)(slash - at) + 1 : 0;
    if (folder + (size_t)bytes >= sizeof at) return -1;
    memcpy(at + folder, next, (size_t)bytes + 1);
  }
  return -1;
}

/* Opens the link, so that the kernel's rules for links in /tmp apply: see protected_symlinks in
   proc(5). The library handles /dev/stdout. A file that the caller has open is not replaced: what
   is in it, and what others write to it, would be lost. */
int output_follow_link(const char *command, const char **output) {
  static char target[PATH_MAX];
  output_clean_up_if_killed();
  struct stat link, file;
  if (strcmp(*output, "/dev/stdout") == 0 || lstat(*output, &link) != 0 || !S_ISLNK(link.st_mode))
    return EXIT_OK;
  const int descriptor = descriptor_of(*output);
  if (descriptor == STDOUT_FILENO) {
    *output = "/dev/stdout";
    return EXIT_OK;
  }
  const int opened = open(*output, O_PATH | O_CLOEXEC);
  const int error = errno;
  if (opened < 0) {
    say("prof %s: cannot write through the link '%s': %s; name the file itself", command, *output,
        strerror(error));
    return EXIT_FAILED;
  }
  const bool is_file = fstat(opened, &file) == 0 && S_ISREG(file.st_mode);
  const bool has_name = is_file && name_of_file(opened, target, sizeof target);
  close(opened);
  if (is_file && descriptor >= 0) {
    say("prof %s: cannot write to '%s': it is descriptor %d, an open file, which would be "
        "replaced; "
        "name the file itself, or give /dev/stdout",
        command, *output, descriptor);
    return EXIT_FAILED;
  }
  if (is_file && !has_name) {
    say("prof %s: cannot write through the link '%s': its file has no name; name another file",
        command, *output);
    return EXIT_FAILED;
  }
  if (is_file) *output = target;
  return EXIT_OK;
}

/* ---- paths with marks ---- */

int output_expand_for_several(const char *command, const char **output) {
  static const struct {
    char letter;
    const char *what;
  } marks[] = {{'p', "process"}, {'h', "host"}, {'r', "rank"}};
  static const prof_i_path_words no_words = {.host = ""};
  static char path[PROF_I_PATH_BYTES];
  for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
    if (!prof_i_path_has(*output, marks[i].letter)) continue;
    say("prof %s: '%s': a file of several captures has no single %s for %%%c; give a path without "
        "it, or with %%%%%c",
        command, *output, marks[i].what, marks[i].letter, marks[i].letter);
    return EXIT_USAGE;
  }
  if (prof_i_expand_path(*output, &no_words, path, sizeof path) != PROF_OK) {
    say("prof %s: %s", command, prof_last_error());
    return EXIT_USAGE;
  }
  *output = path;
  return EXIT_OK;
}

/* ---- formats ---- */

/* The exporters have the endings. The formats of columns are the last. */
static const command_choice formats[] = {{"chrome", PROF_FORMAT_CHROME},
                                         {"raf", PROF_FORMAT_RAF},
                                         {"capture", PROF_FORMAT_CAPTURE},
                                         {"perfetto", PROF_FORMAT_PERFETTO},
                                         {"csv", PROF_FORMAT_CSV},
                                         {"folded", PROF_FORMAT_FOLDED},
                                         {"speedscope", PROF_FORMAT_SPEEDSCOPE},
                                         {"pprof", PROF_FORMAT_PPROF},
                                         {"sqlite", PROF_FORMAT_SQLITE},
                                         {"rpd", PROF_FORMAT_RPD},
                                         {"parquet", FORMAT_PARQUET},
                                         {"arrow", FORMAT_ARROW}};
enum { FORMAT_COUNT = sizeof formats / sizeof *formats, COLUMNS_COUNT = 2 };

int choose_format(const char *command, const char *word, bool with_columns, uint32_t *to) {
  command_choice choices[FORMAT_COUNT + 1] = {{NULL, 0}};
  for (int i = 0; i < FORMAT_COUNT - (with_columns ? 0 : COLUMNS_COUNT); i++)
    choices[i] = formats[i];
  return command_read_choice(command, "--format", word, choices, to);
}

const char *format_endings_text(void) {
  enum { ENDING_BYTES_MAX = 24 }; /* with ", " */
  static char text[FORMAT_COUNT * PROF_I_EXPORT_SUFFIXES * ENDING_BYTES_MAX];
  size_t used = 0;
  for (int i = 0; i < FORMAT_COUNT - COLUMNS_COUNT; i++)
    for (const char *const *ending = prof_i_export_suffixes(formats[i].value);
         *ending && used < sizeof text; ending++)
      used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", used ? ", " : "", *ending);
  return text;
}

const char *format_of_columns(uint32_t format) {
  for (int i = FORMAT_COUNT - COLUMNS_COUNT; i < FORMAT_COUNT; i++)
    if (formats[i].value == format) return formats[i].word;
  return NULL;
}

/* The ending of such a file is the name of its format. */
bool format_of_columns_by_path(const char *path, uint32_t *to) {
  const char *const ending = strrchr(path, '.');
  for (int i = FORMAT_COUNT - COLUMNS_COUNT; i < FORMAT_COUNT; i++)
    if (ending && strcmp(ending + 1, formats[i].word) == 0) {
      *to = formats[i].value;
      return true;
    }
  return false;
}
