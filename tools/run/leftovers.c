/* See leftovers.h. Scans /proc: no call lists the members of a process group, or the processes that
   have a file open. */
#define _GNU_SOURCE
#include "leftovers.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The group by /proc/PID/stat: "PID (NAME) STATE PARENT GROUP ..."; NAME may hold anything. */
static bool stat_is_of_group(const char *stat, pid_t group) {
  const char *const behind = strrchr(stat, ')');
  if (!behind || strlen(behind) < 4) return false;
  const char state = behind[2];
  char *at;
  (void)strtol(behind + 3, &at, 10); /* the parent */
  return strtol(at, NULL, 10) == group && state != 'Z' && state != 'X';
}

static bool file_is_searched(const run_leftovers *left, const struct stat *file) {
  for (size_t i = 0; i < left->file_count; i++)
    if (left->files[i].st_dev == file->st_dev && left->files[i].st_ino == file->st_ino) return true;
  return false;
}

static bool process_has_file_open(const char *process, const run_leftovers *left) {
  DIR *const all = opendir(run_text("/proc/%s/fd", process));
  bool is_found = false;
  struct stat file;
  if (!all) return false;
  for (struct dirent *entry; !is_found && (entry = readdir(all)) != NULL;)
    is_found = fstatat(dirfd(all), entry->d_name, &file, 0) == 0 && file_is_searched(left, &file);
  closedir(all);
  return is_found;
}

static bool process_is_leftover(const char *process, const char *stat, const run_leftovers *left) {
  const pid_t pid = (pid_t)strtol(process, NULL, 10);
  if (pid == getpid() || pid == left->except) return false;
  return stat_is_of_group(stat, left->group) ||
         (left->file_count > 0 && process_has_file_open(process, left));
}

void run_leftovers_find(const run_leftovers *left, run_words *to) {
  DIR *const all = opendir("/proc");
  if (!all) return;
  for (struct dirent *entry; (entry = readdir(all)) != NULL;) {
    if (entry->d_name[strspn(entry->d_name, "0123456789")] != '\0') continue;
    size_t bytes;
    char path[300];
    snprintf(path, sizeof path, "/proc/%s/stat", entry->d_name);
    char *const stat = run_file_read(path, 4096, &bytes);
    if (!stat) continue; /* it has ended */
    const char *const name = strchr(stat, '('), *const end = strrchr(stat, ')');
    if (name && end && process_is_leftover(entry->d_name, stat, left))
      run_words_add(to, run_text("%.*s (%s)", (int)(end - name - 1), name + 1, entry->d_name));
    free(stat);
  }
  closedir(all);
}
