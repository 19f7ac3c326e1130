/* The captures of merged files. See inputs.h. */
#define _GNU_SOURCE
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../src/live/live.h"
#include "commands.h"
#include "inputs.h"

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
  say("prof%s%s: '%s' is damaged or cut off: %u of its %u captures can be read", command ? " " : "",
      command ? command : "", path, parts->count, parts->all_count);
}

/* A file of a part's name would be read instead of the part. */
static bool is_hidden(const char *command, const char *path, const char *part) {
  if (access(part, F_OK) != 0) return false;
  say("prof%s%s: '%s' is a file, and also names a capture in '%s': rename the file",
      command ? " " : "", command ? command : "", part, path);
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
