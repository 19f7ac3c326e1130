/* See left.h. Scans /proc: no call lists the members of a process group. */
#define _GNU_SOURCE
#include "left.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The group by /proc/PID/stat: "PID (NAME) STATE PARENT GROUP ..."; NAME may hold anything. */
static bool is_of_group(const char *stat, pid_t group) {
  const char *const behind = strrchr(stat, ')');
  if (!behind || strlen(behind) < 4) return false;
  const char state = behind[2];
  char *at;
  (void)strtol(behind + 3, &at, 10); /* the parent */
  return strtol(at, NULL, 10) == group && state != 'Z' && state != 'X';
}

void run_left_find(pid_t group, run_words *to) {
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
    if (name && end && is_of_group(stat, group))
      run_words_add(to, run_text("%.*s (%s)", (int)(end - name - 1), name + 1, entry->d_name));
    free(stat);
  }
  closedir(all);
}
