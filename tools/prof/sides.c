/* See sides.h. */
#define _GNU_SOURCE
#include "sides.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "commands.h"

enum { CAPTURES_MAX = 100 };

static int side_put(command_sides *s, uint32_t side, const char *path) {
  side_captures *const to = &s->sides[side];
  if (to->count == CAPTURES_MAX) {
    say("prof %s: a side has more than %d captures, with '%s'", s->command, CAPTURES_MAX, path);
    return EXIT_FAILED;
  }
  if (to->count == to->room) {
    const size_t room = to->room ? 2 * to->room : 16;
    char **const larger = realloc(to->paths, room * sizeof *larger);
    if (larger) to->paths = larger, to->room = room;
  }
  char *const copy = to->count < to->room ? strdup(path) : NULL;
  if (!copy) {
    say("prof %s: no memory for the name '%s'", s->command, path);
    return EXIT_FAILED;
  }
  to->paths[to->count++] = copy;
  return EXIT_OK;
}

static int side_put_all(command_sides *s, uint32_t side, const glob_t *found) {
  int status = EXIT_OK;
  for (size_t i = 0; i < found->gl_pathc && status == EXIT_OK; i++)
    status = side_put(s, side, found->gl_pathv[i]);
  return status;
}

static size_t folder_bytes(const char *path) {
  const char *const slash = strrchr(path, '/');
  return slash ? (size_t)(slash - path) : 0;
}

/* Does a run have several captures, as of several processes? Then the folder says not which. */
static const char *crowded_run(const glob_t *found) {
  for (size_t i = 1; i < found->gl_pathc; i++) {
    const char *const a = found->gl_pathv[i - 1], *const b = found->gl_pathv[i];
    if (folder_bytes(a) == folder_bytes(b) && memcmp(a, b, folder_bytes(a)) == 0) return b;
  }
  return NULL;
}

int glob_in_folder(const char *folder, const char *pattern, glob_t *found) {
  char *const text = malloc(2 * strlen(folder) + strlen(pattern) + 2);
  if (!text) return GLOB_NOSPACE;
  char *to = text;
  for (; *folder; folder++) {
    if (strchr("*?[\\", *folder)) *to++ = '\\';
    *to++ = *folder;
  }
  *to++ = '/';
  memcpy(to, pattern, strlen(pattern) + 1);
  const int status = glob(text, 0, NULL, found);
  free(text);
  return status;
}

/* FOLDER's captures, or those of its runs, where prof run -o and prof run --repeat leave them. */
static int side_put_folder(command_sides *s, uint32_t side, const char *folder) {
  static const struct {
    const char *pattern;
    bool is_of_runs;
  } places[] = {{"*.prof", false},
                {"prof_output/*.prof", false},
                {"run-*/*.prof", true},
                {"run-*/prof_output/*.prof", true}};
  for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
    glob_t found = {0};
    if (glob_in_folder(folder, places[i].pattern, &found) != 0) continue;
    const char *const crowded = places[i].is_of_runs ? crowded_run(&found) : NULL;
    int status = EXIT_FAILED;
    if (crowded)
      say("prof %s: a run in '%s' has several captures, such as '%s': name one of each run by a "
          "quoted glob",
          s->command, folder, crowded);
    else
      status = side_put_all(s, side, &found);
    globfree(&found);
    return status;
  }
  say("prof %s: no capture (*.prof) in the folder '%s'", s->command, folder);
  return EXIT_FAILED;
}

int sides_add(command_sides *sides, uint32_t side, const char *word) {
  struct stat info;
  if (stat(word, &info) == 0)
    return S_ISDIR(info.st_mode) ? side_put_folder(sides, side, word) : side_put(sides, side, word);
  if (!strpbrk(word, "*?[")) return side_put(sides, side, word); /* the open says why not */
  glob_t found = {0};
  int status = EXIT_FAILED;
  if (glob(word, 0, NULL, &found) == 0)
    status = side_put_all(sides, side, &found);
  else
    say("prof %s: no file is named like '%s'", sides->command, word);
  globfree(&found);
  return status;
}

int sides_take(command_sides *sides, int *argc, char **argv) {
  int kept = 1;
  for (int i = 1; i < *argc;) {
    const int side = strcmp(argv[i], "--base") == 0 ? 0 : strcmp(argv[i], "--new") == 0 ? 1 : -1;
    if (side < 0) {
      argv[kept++] = argv[i++];
      continue;
    }
    const char *const option = argv[i++];
    const int first = i;
    for (; i < *argc && argv[i][0] != '-'; i++) {
      const int status = sides_add(sides, (uint32_t)side, argv[i]);
      if (status != EXIT_OK) return status;
    }
    if (i == first) return refuse_words(sides->command, "names no capture:", option);
    sides->is_named = 1;
  }
  argv[kept] = NULL;
  *argc = kept;
  return EXIT_OK;
}

void sides_free(command_sides *sides) {
  for (uint32_t side = 0; side < 2; side++) {
    for (size_t i = 0; i < sides->sides[side].count; i++) free(sides->sides[side].paths[i]);
    free(sides->sides[side].paths);
    sides->sides[side] = (side_captures){0};
  }
}
