/* See captures.h: the temporary folder. */
#define _GNU_SOURCE
#include "captures.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define PREFIX "prof-run-"

static int folder_lock = -1; /* of the run's folder */

static const char *base_folder(void) {
  const char *const folder = getenv("TMPDIR");
  return folder && *folder ? folder : "/tmp";
}

/* The descriptor with the lock, or -1: it is in use, or not the folder at the path. */
static int lock_folder(const char *path) {
  const int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  struct stat opened, now;
  if (fd < 0) return -1;
  if (flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &opened) == 0 && stat(path, &now) == 0 &&
      opened.st_ino == now.st_ino && opened.st_dev == now.st_dev)
    return fd;
  close(fd);
  return -1;
}

const char *run_temporary_folder(void) {
  enum { TRIES = 100 }; /* another run may sweep a folder that has no lock yet */
  for (int i = 0; i < TRIES; i++) {
    char *const path = run_text("%s/" PREFIX "XXXXXX", base_folder());
    if (!mkdtemp(path))
      run_fail(
          "cannot make the temporary folder '%s': %s; TMPDIR names another place, and -o DIR "
          "keeps the captures",
          path, strerror(errno));
    folder_lock = lock_folder(path);
    if (folder_lock >= 0) return path;
    if (errno != ENOENT && access(path, F_OK) == 0) return path; /* no locks here */
    free(path);
  }
  run_fail("cannot keep a temporary folder in '%s'", base_folder());
}

void run_temporary_release(void) {
  if (folder_lock >= 0) close(folder_lock);
  folder_lock = -1;
}

int run_temporary_hand_over(void) {
  const int lock = folder_lock;
  folder_lock = -1;
  return lock;
}

bool run_temporary_remove(const char *folder) {
  DIR *all = opendir(folder);
  if (!all && errno == EMFILE) { /* a lock takes the last descriptor */
    run_temporary_release();
    all = opendir(folder);
  }
  if (!all) return errno == ENOENT || rmdir(folder) == 0;
  for (struct dirent *entry; (entry = readdir(all)) != NULL;) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    if (unlinkat(dirfd(all), entry->d_name, 0) != 0)
      unlinkat(dirfd(all), entry->d_name, AT_REMOVEDIR); /* an empty folder */
  }
  closedir(all);
  return rmdir(folder) == 0 || errno == ENOENT;
}

/* ---- what killed runs leave ---- */

/* An unreadable file belongs to no running process. */
static bool folder_has_live_capture(const char *folder, const run_words *elsewhere) {
  DIR *const all = opendir(folder);
  bool is_live = all == NULL;
  run_words paths = {0};
  run_words_add_all(&paths, elsewhere);
  for (struct dirent *entry; all && (entry = readdir(all)) != NULL;) {
    char *const path = run_text("%s/%s", folder, entry->d_name);
    struct stat is;
    if (lstat(path, &is) == 0 && S_ISREG(is.st_mode)) run_words_add(&paths, path);
  }
  if (all) closedir(all);
  run_inspection *const about = run_inspect(&paths);
  for (size_t i = 0; i < paths.count; i++) is_live |= about[i].is_live || about[i].is_elsewhere;
  free(about);
  return is_live;
}

/* Processes of the workload that have not opened a capture yet have the folder in a variable. */
static bool folder_is_in_environment(const char *pid, const char *folder) {
  enum { ENVIRONMENT_BYTES = 4 << 20 };
  size_t bytes = 0;
  char path[64];
  snprintf(path, sizeof path, "/proc/%.16s/environ", pid);
  char *const text = run_file_read(path, ENVIRONMENT_BYTES, &bytes);
  const bool is_there = text && memmem(text, bytes, folder, strlen(folder)) != NULL;
  free(text);
  return is_there;
}

static bool folder_is_used(const char *folder) {
  DIR *const all = opendir("/proc");
  bool is_there = all == NULL;
  for (struct dirent *entry; !is_there && (entry = readdir(all)) != NULL;)
    is_there =
        isdigit((unsigned char)entry->d_name[0]) && folder_is_in_environment(entry->d_name, folder);
  if (all) closedir(all);
  return is_there;
}

static void sweep_folder(const char *folder) {
  struct stat is;
  if (lstat(folder, &is) != 0 || !S_ISDIR(is.st_mode) || is.st_uid != geteuid() ||
      (is.st_mode & 07777) != 0700)
    return;
  const int lock = lock_folder(folder);
  if (lock < 0) return;
  run_words elsewhere = run_capture_paths_find(folder);
  const run_words retained = run_capture_paths_retained(folder);
  run_words_add_all(&elsewhere, &retained);
  if (!folder_has_live_capture(folder, &elsewhere) && !folder_is_used(run_base_name(folder))) {
    for (size_t i = 0; i < elsewhere.count; i++) unlink(elsewhere.items[i]);
    run_temporary_remove(folder);
  }
  close(lock);
}

void run_temporary_sweep(void) {
  DIR *const all = opendir(base_folder());
  if (!all) return;
  for (struct dirent *entry; (entry = readdir(all)) != NULL;)
    if (strncmp(entry->d_name, PREFIX, sizeof PREFIX - 1) == 0 &&
        strlen(entry->d_name) == sizeof PREFIX - 1 + 6)
      sweep_folder(run_text("%s/%s", base_folder(), entry->d_name));
  closedir(all);
}
