/* A folder of its own for a test, and the capture files that a child leaves or makes there. The
   files are mapped as the child's stores make them: the parent sees the same pages. A header only,
   because each test is one file. */
#ifndef PROF_TESTS_CAPTURES_H
#define PROF_TESTS_CAPTURES_H

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CAPTURES_MAX = 4, CAPTURE_NAME_MAX = 256, CAPTURE_PATH_MAX = 1024 };
static const size_t capture_mapping_bytes = (size_t)1 << 33;

static struct {
  char folder[512];
  size_t count;
  char names[CAPTURES_MAX][CAPTURE_NAME_MAX];
  int files[CAPTURES_MAX];
  const char *bytes[CAPTURES_MAX];
  uint64_t sizes[CAPTURES_MAX];
} captures;

/* On disk, or, for children by the thousand, in memory where there is such a place. */
static inline bool captures_make_folder(bool in_memory) {
  const char *const set = getenv("TMPDIR");
  const char *const root = in_memory && access("/dev/shm", W_OK) == 0 ? "/dev/shm"
                           : set && *set                              ? set
                                                                      : "/tmp";
  snprintf(captures.folder, sizeof captures.folder, "%s/prof-fault-XXXXXX", root);
  return mkdtemp(captures.folder) != NULL;
}

static inline const char *captures_path(const char *name) {
  static char path[CAPTURE_PATH_MAX];
  snprintf(path, sizeof path, "%s/%s", captures.folder, name);
  return path;
}

static inline void capture_add(const char *name) {
  for (size_t i = 0; i < captures.count; i++)
    if (strcmp(captures.names[i], name) == 0) return;
  const int file =
      captures.count < CAPTURES_MAX ? open(captures_path(name), O_RDONLY | O_CLOEXEC) : -1;
  if (file < 0) return;
  void *const at =
      mmap(NULL, capture_mapping_bytes, PROT_READ, MAP_SHARED | MAP_NORESERVE, file, 0);
  if (at == MAP_FAILED) {
    close(file);
    return;
  }
  snprintf(captures.names[captures.count], CAPTURE_NAME_MAX, "%s", name);
  captures.files[captures.count] = file;
  captures.bytes[captures.count++] = at;
}

/* In the order in which one process makes them: their names end in a number that counts up. */
static inline void captures_sort(void) {
  for (size_t i = 1; i < captures.count; i++) {
    for (size_t k = i; k > 0 && strcmp(captures.names[k - 1], captures.names[k]) > 0; k--) {
      char name[CAPTURE_NAME_MAX];
      memcpy(name, captures.names[k], sizeof name);
      memcpy(captures.names[k], captures.names[k - 1], sizeof name);
      memcpy(captures.names[k - 1], name, sizeof name);
      const int file = captures.files[k];
      captures.files[k] = captures.files[k - 1];
      captures.files[k - 1] = file;
      const char *const bytes = captures.bytes[k];
      captures.bytes[k] = captures.bytes[k - 1];
      captures.bytes[k - 1] = bytes;
    }
  }
}

/* Finds capture files that have appeared. */
static inline void captures_look(void) {
  DIR *const folder = opendir(captures.folder);
  if (!folder) return;
  for (const struct dirent *entry; (entry = readdir(folder)) != NULL;) {
    const size_t length = strlen(entry->d_name);
    if (length > 5 && strcmp(entry->d_name + length - 5, ".prof") == 0) capture_add(entry->d_name);
  }
  closedir(folder);
  captures_sort();
}

/* How far each file reaches now: beyond it a read would be SIGBUS. */
static inline void captures_measure(void) {
  struct stat about;
  for (size_t i = 0; i < captures.count; i++)
    captures.sizes[i] = fstat(captures.files[i], &about) == 0 ? (uint64_t)about.st_size : 0;
}

/* Lets all go, and empties the folder. */
static inline void captures_clear(void) {
  for (size_t i = 0; i < captures.count; i++) {
    munmap((void *)(uintptr_t)captures.bytes[i], capture_mapping_bytes);
    close(captures.files[i]);
  }
  captures.count = 0;
  DIR *const folder = opendir(captures.folder);
  if (!folder) return;
  for (const struct dirent *entry; (entry = readdir(folder)) != NULL;)
    if (entry->d_name[0] != '.') unlink(captures_path(entry->d_name));
  closedir(folder);
}

static inline void captures_remove_folder(void) {
  captures_clear();
  rmdir(captures.folder);
}

#endif
