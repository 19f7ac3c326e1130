/* The paths that commands write to. See commands.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../src/live/parts.h"
#include "../../src/sink/sink.h"
#include "../import/import.h"
#include "commands.h"
#include "progress.h"

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

/* Opens the link, so that the kernel's rules for links in /tmp apply: see protected_symlinks in
   proc(5). The library handles /dev/stdout. */
int output_follow_link(const char *command, const char **output) {
  static char target[PATH_MAX];
  output_clean_up_if_killed();
  struct stat link, file;
  if (strcmp(*output, "/dev/stdout") == 0 || lstat(*output, &link) != 0 || !S_ISLNK(link.st_mode))
    return EXIT_OK;
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
  if (is_file && !has_name) {
    say("prof %s: cannot write through the link '%s': its file has no name; name another file",
        command, *output);
    return EXIT_FAILED;
  }
  if (is_file) *output = target;
  return EXIT_OK;
}
