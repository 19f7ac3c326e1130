/* See capture_file.h. */
#define _GNU_SOURCE
#include "capture_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <prof/status.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "../../base/fault.h"
#include "../../base/port.h"
#include "../../format/layout.h"
#include "arena.h"

enum {
  WAIT_NS = 1000000,
  WAITS_MAX = 50,
  COPIES_MAX = 1000,
  NO_REPLACE = 1 /* RENAME_NOREPLACE */
};

/* ---- does anybody record into that file? ---- */

typedef struct name_parts {
  const char *tail; /* "HOST-PID-START-COPY.prof" */
  long pid;
  unsigned long long start; /* 0: it could not be read */
  bool is_own_host;
} name_parts;

/* "-PID-START-". Numbers that do not fit become the largest, which no process has. */
static bool parse_name_numbers(const char *at, name_parts *parts) {
  char *end = NULL;
  parts->pid = strtol(at + 1, &end, 10);
  if (end == at + 1 || *end != '-') return false;
  at = end + 1;
  parts->start = strtoull(at, &end, 10);
  return end != at && *end == '-';
}

/* "BASE.HOST-PID-START-COPY.prof", read from the end, since a host's name may hold anything. */
static bool parse_capture_name(const char *name, const char *base, const char *host,
                               name_parts *parts) {
  const size_t base_bytes = strlen(base), bytes = strlen(name);
  if (bytes < base_bytes + 6 || strncmp(name, base, base_bytes) != 0 || name[base_bytes] != '.')
    return false;
  if (strcmp(name + bytes - 5, ".prof") != 0) return false;
  const char *at = name + bytes - 5;
  for (int dashes = 0; dashes < 3; dashes++) {
    while (at > name + base_bytes && *--at != '-') {
    }
    if (*at != '-') return false;
  }
  parts->tail = name + base_bytes + 1;
  parts->is_own_host =
      strlen(host) == (size_t)(at - parts->tail) && strncmp(host, parts->tail, strlen(host)) == 0;
  return parse_name_numbers(at, parts);
}

static bool is_same_file(const struct stat *a, const struct stat *b) {
  return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static bool file_is_own_arena(const struct stat *about) {
  return prof_i_the_arena.is_file && about->st_dev == prof_i_the_arena.device &&
         about->st_ino == prof_i_the_arena.inode;
}

/* Whoever records into a capture holds a lock on it: this also shows those whose pid means nothing
   here, such as process 1 of another container. A shared lock does not disturb others who look. */
prof_i_lock_state prof_i_output_claim_lock_state(int fd) {
  if (flock(fd, LOCK_SH | LOCK_NB) == 0) return PROF_I_LOCK_NONE;
  return errno == EWOULDBLOCK ? PROF_I_LOCK_HELD : PROF_I_LOCK_UNKNOWN;
}

static bool file_is_locked_by_other(int fd) {
  return prof_i_output_claim_lock_state(fd) == PROF_I_LOCK_HELD;
}

bool prof_i_output_claim_is_held(int folder, const char *name) {
  struct stat about;
  const int fd = openat(folder, name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return false;
  const bool capture_is_own = fstat(fd, &about) == 0 && file_is_own_arena(&about);
  const bool held = !capture_is_own && file_is_locked_by_other(fd);
  close(fd);
  return held;
}

static bool process_is_alive(const name_parts *parts) {
  return parts->pid != (long)getpid() && parts->start != 0 &&
         prof_i_port_process_start_of(parts->pid) == parts->start;
}

static bool read_field(int fd, void *to, size_t bytes, size_t offset) {
  return pread(fd, to, bytes, (off_t)offset) == (ssize_t)bytes;
}
#define READ_FIELD(fd, field, to) \
  read_field(fd, to, sizeof((prof_i_header *)0)->field, offsetof(prof_i_header, field))

/* Nobody holds the file: its process may have closed the descriptor, and the lock with it. The pid
   tells, where it is one of this pid name space. What another kernel's process left on a file
   system that captures can be recorded on is of an earlier boot, or was copied here. */
static bool process_is_alive_unlocked(int fd, const name_parts *parts) {
  uint64_t magic = 0, namespace_pid = 0;
  char boot_id[sizeof((prof_i_header *)0)->boot_id], own_boot_id[sizeof boot_id] = "";
  const bool is_known = READ_FIELD(fd, magic, &magic) && magic == PROF_I_MAGIC &&
                        READ_FIELD(fd, boot_id, boot_id) && boot_id[0] &&
                        READ_FIELD(fd, namespace_pid, &namespace_pid);
  prof_i_port_boot_id(own_boot_id, sizeof own_boot_id);
  if (is_known && strncmp(boot_id, own_boot_id, sizeof boot_id) == 0)
    return namespace_pid == prof_i_port_pid_namespace() && process_is_alive(parts);
  if (!is_known && parts->is_own_host) return process_is_alive(parts);
  return !parts->is_own_host &&
         prof_i_capture_file_unfit_reason(fd) !=
             NULL; /* of a file system that hosts may share nothing is known */
}

/* ---- who else has the output ---- */

typedef enum rival {
  RIVAL_NONE,
  RIVAL_LATER /* is still searching, and will give up the name or have settled afterwards */,
  RIVAL_SETTLED
} rival;

typedef struct claim_search {
  struct stat own_file; /* zeros: in memory, or not known */
  const char *own_tail; /* "": in memory */
  char host[PROF_I_HOST_BYTES];
} claim_search;

static bool capture_is_own(const claim_search *l, const struct stat *about,
                           const name_parts *parts) {
  if (file_is_own_arena(about)) return true;
  return l->own_file.st_ino ? is_same_file(about, &l->own_file)
                            : strcmp(parts->tail, l->own_tail) == 0;
}

static rival rival_of(const claim_search *l, const struct stat *about, const name_parts *parts) {
  const bool is_settling =
      about->st_uid == geteuid() && (about->st_mode & 0777) == PROF_I_MODE_CLAIMING;
  return is_settling && strcmp(parts->tail, l->own_tail) > 0 ? RIVAL_LATER : RIVAL_SETTLED;
}

static rival classify_capture(const claim_search *l, int folder, const char *name,
                              const char *base) {
  struct stat about;
  name_parts parts = {.tail = ""};
  if (!parse_capture_name(name, base, l->host, &parts)) return RIVAL_NONE;
  const int fd = openat(folder, name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) { /* another user's: of another host's nothing is known */
    const bool may_be = errno == EACCES && (parts.is_own_host ? process_is_alive(&parts) : true);
    return may_be ? RIVAL_SETTLED : RIVAL_NONE;
  }
  rival found = RIVAL_NONE;
  if (fstat(fd, &about) == 0 && S_ISREG(about.st_mode) && !capture_is_own(l, &about, &parts) &&
      (file_is_locked_by_other(fd) || process_is_alive_unlocked(fd, &parts)))
    found = rival_of(l, &about, &parts);
  close(fd);
  return found;
}

static rival search_directory(const claim_search *l, const char *directory, const char *base) {
  DIR *const entries = opendir(directory);
  rival worst = RIVAL_NONE;
  for (const struct dirent *e;
       entries && worst != RIVAL_SETTLED && (e = readdir(entries)) != NULL;) {
    const rival found = classify_capture(l, dirfd(entries), e->d_name, base);
    if (found > worst) worst = found;
  }
  if (entries) closedir(entries);
  return worst;
}

static rival search_directories(const claim_search *l, const prof_i_capture_dirs *all) {
  rival worst = RIVAL_NONE;
  for (size_t i = 0; i < all->count && worst != RIVAL_SETTLED && !PROF_I_FAULT(NOBODY_ELSE); i++) {
    const rival found = search_directory(l, all->directories[i], all->bases[i != 0]);
    if (found > worst) worst = found;
  }
  return worst;
}

/* Which of the places the capture is in: 0 where that is not to be seen. */
static size_t directory_index_of(const prof_i_capture_dirs *all, const char *path) {
  const char *const slash = strrchr(path, '/');
  for (size_t i = 0; slash && i < all->count; i++)
    if (strlen(all->directories[i]) == (size_t)(slash - path) &&
        strncmp(all->directories[i], path, (size_t)(slash - path)) == 0)
      return i;
  return 0;
}

static bool output_is_taken(const char *output, int fd, const char *path) {
  const prof_i_capture_dirs *const all = prof_i_capture_file_list_dirs(output);
  const char *const slash = strrchr(path, '/');
  const size_t base_bytes = strlen(all->bases[directory_index_of(all, path) != 0]);
  claim_search l = {.own_tail = ""};
  prof_i_capture_file_host(l.host);
  if (fd >= 0 && fstat(fd, &l.own_file) != 0) l.own_file.st_ino = 0;
  if (fd >= 0 && slash && strlen(slash + 1) > base_bytes) l.own_tail = slash + 1 + base_bytes + 1;
  rival found = search_directories(&l, all);
  for (int waits = 0; found == RIVAL_LATER && waits < WAITS_MAX; waits++) {
    nanosleep(&(const struct timespec){0, WAIT_NS}, NULL);
    found = search_directories(&l, all);
  }
  return found != RIVAL_NONE;
}

/* Renames the capture after the output's new name, so that other processes with that output see it.
   If that fails, it keeps its name. */
static void rename_capture_for(const char *output, char *path, size_t room) {
  static char fresh[PROF_I_PATH_BYTES]; /* guarded by the control lock */
  const prof_i_capture_dirs *const all = prof_i_capture_file_list_dirs(output);
  const size_t directory_index = directory_index_of(all, path);
  for (int copy = 0; copy < COPIES_MAX; copy++) {
    if (!prof_i_capture_file_name(all->directories[directory_index],
                                  all->bases[directory_index != 0], copy, fresh,
                                  room < sizeof fresh ? room : sizeof fresh))
      return;
    if (syscall(SYS_renameat2, AT_FDCWD, path, AT_FDCWD, fresh, NO_REPLACE) == 0) {
      memcpy(path, fresh, strlen(fresh) + 1);
      return;
    }
    if (errno != EEXIST) return;
  }
}

/* A process that has ended since may have had the name while this process recorded. */
static bool is_written_since(const char *output, uint64_t realtime_ns) {
  struct stat about;
  return realtime_ns != 0 && lstat(output, &about) == 0 &&
         (uint64_t)about.st_mtim.tv_sec * 1000000000u + (uint64_t)about.st_mtim.tv_nsec >=
             realtime_ns;
}

int prof_i_output_claim_settle(char *output, size_t output_room, uint64_t since_realtime_ns, int fd,
                               char *path, size_t path_room) {
  int status = PROF_OK;
  while (
      status == PROF_OK &&
      (output_is_taken(output, fd, path) ||
       is_written_since(
           output, since_realtime_ns))) { /* once more where another container has this pid, too */
    status = prof_i_output_add_suffix(output, output_room);
    if (status == PROF_OK && fd >= 0) rename_capture_for(output, path, path_room);
  }
  if (fd >= 0) fchmod(fd, PROF_I_MODE_CLAIMED);
  return status;
}
