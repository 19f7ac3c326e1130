/* See stray_files.h. Each run holds a read lock of the directory. If a write lock is refused,
   there is another run. The first run that ends takes only its own files, the last one all that
   are left. */
#define _GNU_SOURCE
#include "stray_files.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef F_OFD_GETLK /* before glibc 2.20 */
#define F_OFD_GETLK 36
#define F_OFD_SETLK 37
#endif

void run_stray_files_begin(run_stray_files *stray_files) {
  struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
  stray_files->before = run_folder_names(".");
  clock_gettime(CLOCK_REALTIME, &stray_files->begun);
  stray_files->lock = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (stray_files->lock >= 0) fcntl(stray_files->lock, F_OFD_SETLK, &lock);
}

void run_stray_files_end(run_stray_files *stray_files) {
  if (stray_files->lock >= 0) close(stray_files->lock);
  stray_files->lock = -1;
}

bool run_stray_file_is_new(const run_stray_files *stray_files, const char *name) {
  return run_words_find(&stray_files->before, name) < 0;
}

bool run_stray_files_has_rival(const run_stray_files *stray_files) {
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
  return stray_files->lock >= 0 && fcntl(stray_files->lock, F_OFD_GETLK, &lock) == 0 &&
         lock.l_type != F_UNLCK;
}

bool run_stray_file_is_own(const run_stray_files *stray_files, const char *folder,
                           const char *name) {
  char *end;
  struct stat is;
  const long pid = strtol(name, &end, 10);
  if (end == name || *end != '_' || pid <= 0 || !stray_files->process_tree) return false;
  char *const path = run_text("%s/%s", folder, name);
  const bool is_there = stat(path, &is) == 0 && is.st_mtim.tv_sec >= stray_files->begun.tv_sec;
  free(path);
  return is_there && run_process_tree_has(stray_files->process_tree, (pid_t)pid);
}
