/* Whether the process that records into a capture still runs. See live.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../base/path.h"
#include "../base/port.h"
#include "../reader/capture.h"
#include "live.h"

/* Reads /proc/PID/stat from field 3 on, which follows the name. False: it cannot be read. */
static bool read_stat(uint32_t pid, char *fields_out, size_t room) {
  char path[64], text[1024];
  snprintf(path, sizeof path, "/proc/%u/stat", pid);
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const ssize_t count = read(fd, text, sizeof text - 1);
  close(fd);
  text[count > 0 ? count : 0] = '\0';
  /* the name may contain any bytes; the last parenthesis ends it */
  const char *const name_end = strrchr(text, ')');
  if (!name_end || strlen(name_end) < 3) return false;
  snprintf(fields_out, room, "%s", name_end + 2);
  return true;
}

static uint64_t stat_field(const char *fields, int number) {
  for (int i = 3; fields && i < number; i++) fields = strchr(fields + 1, ' ');
  return fields ? strtoull(fields + 1, NULL, 10) : 0;
}

/* The kernel gives start times in the reader's time namespace. If the process is in another one,
   they cannot be compared with the times that it has written. */
static bool has_other_clock(uint32_t pid) {
  char path[64];
  struct stat own, its;
  snprintf(path, sizeof path, "/proc/%u/ns/time", pid);
  return stat("/proc/self/ns/time", &own) == 0 && stat(path, &its) == 0 &&
         (own.st_dev != its.st_dev || own.st_ino != its.st_ino);
}

static prof_i_process_state life_of_process(uint32_t pid, uint64_t start) {
  char fields[1024];
  if (!read_stat(pid, fields, sizeof fields)) {
    /* /proc may be hidden. If in doubt the process is alive, so that its work is not lost. */
    const bool is_there = kill((pid_t)pid, 0) == 0 || errno == EPERM;
    return is_there ? PROF_I_PROCESS_RUNS : PROF_I_PROCESS_ENDED;
  }
  /* no thread is left */
  const bool is_zombie = (fields[0] == 'Z' || fields[0] == 'X') && stat_field(fields, 20) <= 1;
  if (is_zombie) return PROF_I_PROCESS_ENDED;
  if (stat_field(fields, 22) == start) return PROF_I_PROCESS_RUNS;
  return has_other_clock(pid) ? PROF_I_PROCESS_UNKNOWN : PROF_I_PROCESS_ENDED;
}

static bool is_this_host(const prof_i_header *header) {
  char host[sizeof header->host] = "";
  gethostname(host, sizeof host - 1);
  return strncmp(host, header->host, sizeof host - 1) == 0;
}

/* A pid is valid only on the same host, in the same boot and name space. Processes of an earlier
   boot have ended. */
prof_i_process_state prof_i_process_state_of(const prof_i_header *header) {
  char boot_id[sizeof header->boot_id];
  if (header->magic != PROF_I_MAGIC || header->pid == 0 || header->pid > INT32_MAX)
    return PROF_I_PROCESS_ENDED;
  prof_i_port_boot_id(boot_id, sizeof boot_id);
  const bool same_boot =
      !header->boot_id[0] || strncmp(boot_id, header->boot_id, sizeof boot_id - 1) == 0;
  if (!same_boot) return is_this_host(header) ? PROF_I_PROCESS_ENDED : PROF_I_PROCESS_UNKNOWN;
  if (header->namespace_pid != prof_i_port_pid_namespace()) return PROF_I_PROCESS_UNKNOWN;
  return life_of_process(header->pid, header->process_start);
}

/* Whether this line of /proc/PID/maps has the number or the name of the file. */
static bool maps_name_file(const char *line, const struct stat *about, const char *path) {
  enum { FIELDS_BEFORE = 4 }; /* addresses, permissions, offset, device */
  for (int i = 0; line && i < FIELDS_BEFORE; i++) {
    line = strchr(line, ' ');
    if (line) line++;
  }
  char *end = NULL;
  const unsigned long long inode = line ? strtoull(line, &end, 10) : 0;
  if (inode == 0) return false;
  const char *const name = end + strspn(end, " ");
  const size_t bytes = strcspn(name, "\n");
  return inode == about->st_ino || (strlen(path) == bytes && memcmp(name, path, bytes) == 0);
}

bool prof_i_process_lacks_file(const prof_i_header *header, int fd) {
  char name[64], path[PROF_I_PATH_BYTES] = "", *line = NULL;
  size_t room = 0;
  struct stat about;
  bool is_known = false, has_it = false;
  snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
  if (fstat(fd, &about) != 0 || readlink(name, path, sizeof path - 1) < 0) return false;
  snprintf(name, sizeof name, "/proc/%u/maps", header->pid);
  FILE *const maps = fopen(name, "re");
  while (maps && !has_it && getline(&line, &room, maps) > 0) {
    is_known = true; /* a process without read permission shows no lines */
    has_it = maps_name_file(line, &about, path);
  }
  free(line);
  if (maps) fclose(maps);
  return is_known && !has_it;
}

bool prof_i_process_shares_clock(const prof_i_header *header) {
  char path[64];
  struct stat own, its;
  if (stat("/proc/self/ns/time", &own) != 0) return true; /* a kernel that has none */
  snprintf(path, sizeof path, "/proc/%u/ns/time", header->pid);
  return stat(path, &its) == 0 && own.st_dev == its.st_dev && own.st_ino == its.st_ino;
}
