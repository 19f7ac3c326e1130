/* See internal.h. */
#include "internal.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "output.h"

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
