/* See loose.h. Each run holds a read lock of the directory. If a write lock is refused, there is
   another run. The first run that ends takes only its own files, the last one all that are left. */
#define _GNU_SOURCE
#include "loose.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef F_OFD_GETLK /* before glibc 2.20 */
#define F_OFD_GETLK 36
#define F_OFD_SETLK 37
#endif

void run_loose_begin(run_loose *loose) {
  struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
  loose->before = run_folder_names(".");
  clock_gettime(CLOCK_REALTIME, &loose->begun);
  loose->lock = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (loose->lock >= 0) fcntl(loose->lock, F_OFD_SETLK, &lock);
}

void run_loose_end(run_loose *loose) {
  if (loose->lock >= 0) close(loose->lock);
  loose->lock = -1;
}

bool run_loose_is_new(const run_loose *loose, const char *name) {
  return run_words_find(&loose->before, name) < 0;
}

bool run_loose_has_rival(const run_loose *loose) {
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  return loose->lock >= 0 && fcntl(loose->lock, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

bool run_loose_is_own(const run_loose *loose, const char *folder, const char *name) {
  char *end;
  struct stat is;
  const long pid = strtol(name, &end, 10);
  if (end == name || *end != '_' || pid <= 0 || !loose->family) return false;
  char *const path = run_text("%s/%s", folder, name);
  const bool is_there = stat(path, &is) == 0 && is.st_mtim.tv_sec >= loose->begun.tv_sec;
  free(path);
  return is_there && run_family_has(loose->family, (pid_t)pid);
}
