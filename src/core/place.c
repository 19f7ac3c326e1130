/* Finds a directory whose file system keeps what fallocate promises, and makes the file there. See place.h. */
#define _GNU_SOURCE
#include "place.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <prof/status.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "arena.h"
#include "fault.h"
#include "layout.h"
#include "log.h"
#include "port.h"

enum { BASE_BYTES_MAX = 140, /* of the output's name in the capture's: with what is added, no more than a directory takes (255) */
       COPIES_MAX = 1000, ROOM_MIN_BYTES = 8 << 20,
       HOST_BYTES = 64, NAMES_BYTES = 256 /* what a place in a pattern becomes at most; what names beside an output have more than it */ };

/* Its parents may be closed to us. */
static bool leads_here(const char *directory) {
  struct stat there, here;
  return stat(directory, &there) == 0 && stat(".", &here) == 0 && there.st_dev == here.st_dev && there.st_ino == here.st_ino;
}

static size_t count_percents(const char *text) {
  size_t count = 0;
  for (; *text; text++) count += *text == '%';
  return count;
}

const char *prof_i_place_make_absolute(const char *pattern, char *to, size_t room) {
  char here[4096];
  if (pattern[0] == '/' || !getcwd(here, sizeof here) || here[0] != '/' || !leads_here(here)) return pattern;
  const size_t grown = count_percents(here) + count_percents(pattern) * HOST_BYTES + NAMES_BYTES;
  if (strlen(here) + 1 + strlen(pattern) + grown > room) return pattern;
  char *end = to;
  for (const char *at = here; *at; at++) {
    if (*at == '%') *end++ = '%';
    *end++ = *at;
  }
  if (end[-1] != '/') *end++ = '/';
  memcpy(end, pattern, strlen(pattern) + 1);
  return to;
}

static void directory_of(const char *path, char *to, size_t room) {
  const char *const slash = strrchr(path, '/');
  const size_t bytes = !slash ? 0 : slash == path ? 1 : (size_t)(slash - path);
  if (!bytes) snprintf(to, room, ".");
  else snprintf(to, room, "%.*s", (int)(bytes < room ? bytes : room - 1), path);
}

int prof_i_place_check_output(const char *path) {
  char directory[4096];
  struct stat about;
  directory_of(path, directory, sizeof directory);
  if (stat(directory, &about) != 0)
    return prof_i_fail(prof_i_status_of_errno(errno), "cannot write '%s': directory '%s': %s", path, directory, strerror(errno));
  if (!S_ISDIR(about.st_mode)) return prof_i_fail(PROF_E_NOT_FOUND, "cannot write '%s': '%s' is not a directory", path, directory);
  if (access(directory, W_OK | X_OK) != 0)
    return prof_i_fail(prof_i_status_of_errno(errno), "cannot write '%s': directory '%s': %s", path, directory, strerror(errno));
  if (stat(path, &about) != 0) {
    if (errno == ENOENT) return PROF_OK;
    return prof_i_fail(prof_i_status_of_errno(errno), "cannot write '%s': %s", path, strerror(errno));
  }
  if (!S_ISREG(about.st_mode))
    return prof_i_fail(PROF_E_FILE_TYPE, "cannot write '%s': it is a %s, not a regular file", path,
                       S_ISDIR(about.st_mode) ? "directory" : "device, pipe or socket");
  return PROF_OK;
}

#define TMPFS 0x01021994ul
#define RAMFS 0x858458f6ul

/* File systems whose fallocate reserves: a later store cannot run out of disk. NULL: this one does. */
static const char *why_unfit(int fd) {
  struct statfs about;
  if (fstatfs(fd, &about) != 0) return strerror(errno);
  switch ((unsigned long)about.f_type) {
    case 0xef53ul:     /* ext2, 3, 4 */
    case 0x58465342ul: /* XFS */
    case TMPFS:
    case 0x794c7630ul: /* overlay: as its upper layer; the probe tells */
      return NULL;
    default: return "its file system does not keep what fallocate reserves";
  }
}

bool prof_i_place_is_memory(int fd) {
  struct statfs about;
  return fstatfs(fd, &about) == 0 && ((unsigned long)about.f_type == TMPFS || (unsigned long)about.f_type == RAMFS);
}

/* A first piece is reserved and stored to: what cannot do that is found out here. */
static const char *probe(int fd) {
  const char *const unfit = why_unfit(fd);
  if (unfit) return unfit;
  const int error = prof_i_port_reserve_file(fd, 0, PROF_I_FIRST_UNIT_OFFSET);
  if (error == EFBIG) return "it would pass the file size limit (RLIMIT_FSIZE)";
  if (error) return strerror(error);
  void *const at = mmap(NULL, PROF_I_HEADER_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) return "its files cannot be mapped";
  const int populated = prof_i_port_populate(at, PROF_I_HEADER_BYTES);
  munmap(at, PROF_I_HEADER_BYTES);
  return populated ? strerror(populated) : NULL;
}

/* ---- several processes, one output ---- */

int prof_i_place_lock(const char *output) {
  char directory[4096];
  directory_of(output, directory, sizeof directory);
  const int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  for (int tries = 0; fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0; tries++) {
    const struct timespec pause = {0, 5000000};
    if ((errno != EWOULDBLOCK && errno != EINTR) || tries == 200) {
      close(fd);
      return -1;
    }
    nanosleep(&pause, NULL);
  }
  return fd;
}

void prof_i_place_unlock(int lock) {
  if (lock >= 0) close(lock);
}

/* Where a capture may stand, the best first, and what its name begins with: beside its output the output's own name, elsewhere also a
   number of the output's directory, which another output of that name does not have. */
typedef struct places {
  char beside[4096], bases[2][BASE_BYTES_MAX + 1];
  const char *directories[4];
  size_t count;
} places;

static void list_places(const char *output, places *all) {
  struct stat about = {.st_ino = 0};
  const char *const slash = strrchr(output, '/');
  const char *const base = slash ? slash + 1 : output;
  directory_of(output, all->beside, sizeof all->beside);
  if (stat(all->beside, &about) != 0) about.st_ino = 0;
  const uint64_t number = ((uint64_t)about.st_ino ^ (uint64_t)about.st_dev << 32) * 0x9e3779b97f4a7c15ull;
  snprintf(all->bases[0], sizeof all->bases[0], "%s", base);
  snprintf(all->bases[1], sizeof all->bases[1], "%.*s~%08x", BASE_BYTES_MAX - 9, base, (unsigned)(number >> 32));
  const char *const wanted[] = {all->beside, secure_getenv("PROF_CAPTURE_DIR"), secure_getenv("TMPDIR"), "/dev/shm"};
  all->count = 0;
  for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
    if (wanted[i] && wanted[i][0]) all->directories[all->count++] = wanted[i];
}

typedef enum capture_lock { OWN, HELD, FREE } capture_lock;

/* Whoever records into a capture holds a lock on it: this also shows those whose pid means nothing here, such as process 1 of another
   container. FREE also where it cannot be looked at. */
static capture_lock look_at_lock(int folder, const char *name) {
  struct stat about;
  capture_lock lock = FREE;
  const int fd = openat(folder, name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return FREE;
  if (prof_i_the_arena.is_file && fstat(fd, &about) == 0 && about.st_dev == prof_i_the_arena.device && about.st_ino == prof_i_the_arena.inode)
    lock = OWN;
  else if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    lock = HELD;
  close(fd);
  return lock;
}

/* "-PID-START-". Numbers that do not fit become the largest, which are nobody's. */
static bool take_numbers(const char *at, long *pid_out, unsigned long long *start_out) {
  char *end = NULL;
  *pid_out = strtol(at + 1, &end, 10);
  if (end == at + 1 || *end != '-') return false;
  at = end + 1;
  *start_out = strtoull(at, &end, 10);
  return end != at && *end == '-';
}

/* "BASE.HOST-PID-START-COPY.prof", read from behind, since a host's name may hold anything. */
static bool is_of_living_other(int folder, const char *name, const char *base) {
  char host[64] = "host";
  unsigned long long start = 0;
  long pid = 0;
  const size_t base_bytes = strnlen(base, BASE_BYTES_MAX), bytes = strlen(name);
  if (bytes < base_bytes + 6 || strncmp(name, base, base_bytes) != 0 || name[base_bytes] != '.') return false;
  if (strcmp(name + bytes - 5, ".prof") != 0) return false;
  const char *at = name + bytes - 5;
  for (int dashes = 0; dashes < 3; dashes++) {
    while (at > name + base_bytes && *--at != '-') {
    }
    if (*at != '-') return false;
  }
  if (!take_numbers(at, &pid, &start)) return false;
  gethostname(host, sizeof host - 1);
  const char *const its_host = name + base_bytes + 1;
  if (strlen(host) != (size_t)(at - its_host) || strncmp(host, its_host, strlen(host)) != 0) return true; /* another host's: cannot tell */
  switch (look_at_lock(folder, name)) {
    case OWN: return false;
    case HELD: return true;
    case FREE: break;
  }
  /* Its host may have closed the descriptor, and so the lock. A start of 0 is one that could not be read: it tells nothing. */
  return pid != (long)getpid() && start != 0 && prof_i_port_process_start_of(pid) == start;
}

static bool is_taken_in(const char *directory, const char *base) {
  DIR *const entries = opendir(directory);
  bool taken = false;
  for (const struct dirent *e; entries && !taken && (e = readdir(entries)) != NULL;)
    taken = is_of_living_other(dirfd(entries), e->d_name, base);
  if (entries) closedir(entries);
  return taken;
}

bool prof_i_place_is_taken(const char *output) {
  places all;
  list_places(output, &all);
  for (size_t i = 0; i < all.count && !PROF_I_FAULT(NOBODY_ELSE); i++)
    if (is_taken_in(all.directories[i], all.bases[i != 0])) return true;
  return false;
}

int prof_i_place_add_suffix(char *output, size_t room) {
  char suffix[32];
  const int bytes = snprintf(suffix, sizeof suffix, ".%ld", (long)getpid());
  char *const slash = strrchr(output, '/');
  char *const name = slash ? slash + 1 : output;
  const size_t length = strlen(output);
  size_t at = length;
  if (length >= 3 && strcmp(output + length - 3, ".gz") == 0) at -= 3;
  for (size_t i = at; output + i > name; i--)
    if (output[i - 1] == '.' && output + i - 1 > name) {
      at = i - 1;
      break;
    }
  if (length + (size_t)bytes >= room) return prof_i_fail(PROF_E_INVALID, "the path is longer than %zu bytes: '%.64s...'", room - 1, output);
  memmove(output + at + bytes, output + at, length - at + 1);
  memcpy(output + at, suffix, (size_t)bytes);
  return PROF_OK;
}

static bool has_room(const char *directory) {
  struct statvfs about;
  if (statvfs(directory, &about) != 0) return false;
  return about.f_blocks == 0 || (uint64_t)about.f_bavail * about.f_frsize >= ROOM_MIN_BYTES; /* ramfs knows no size */
}

void prof_i_place_hold(int fd) { flock(fd, LOCK_SH | LOCK_NB); } /* where locks are not to be had, the pid must do */

/* The name carries host, pid, start time and copy, since pid 1 comes again in a restarted container. Never an existing file, never
   through a symbolic link. */
static int create_in(const char *directory, const char *base, char *path, size_t room, const char **why_out) {
  char host[64] = "host";
  gethostname(host, sizeof host - 1);
  for (char *c = host; *c; c++)
    if (*c == '/') *c = '_';
  if (!has_room(directory)) {
    *why_out = "it has less than 8 MiB free";
    return -1;
  }
  for (int copy = 0; copy < COPIES_MAX; copy++) {
    const int length = snprintf(path, room, "%s/%.*s.%s-%ld-%llu-%d.prof", directory, BASE_BYTES_MAX, base, host, (long)getpid(),
                                (unsigned long long)prof_i_port_process_start(), copy);
    if (length < 0 || (size_t)length >= room) {
      *why_out = "the capture's path would be too long";
      return -1;
    }
    const int fd = open(path, O_RDWR | O_CREAT | (PROF_I_FAULT(NOT_EXCLUSIVE) ? 0 : O_EXCL) | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0 && errno == EEXIST) continue;
    if (fd < 0) {
      *why_out = strerror(errno);
      return -1;
    }
    if ((*why_out = probe(fd)) == NULL) {
      prof_i_place_hold(fd);
      return fd;
    }
    if (!PROF_I_FAULT(LEAK)) close(fd);
    unlink(path);
    return -1;
  }
  *why_out = "a thousand captures of this process are there already";
  return -1;
}

int prof_i_place_create(const char *output, char *path_out, size_t path_room, char *reason_out, size_t reason_room) {
  places all;
  list_places(output, &all);
  size_t used = 0;
  reason_out[0] = '\0';
  for (size_t i = 0; i < all.count; i++) {
    const char *why = "";
    const int fd = create_in(all.directories[i], all.bases[i != 0], path_out, path_room, &why);
    if (fd >= 0) {
      if (i > 0 && used < reason_room) snprintf(reason_out + used, reason_room - used, "recorded in '%s'", all.directories[i]);
      return fd;
    }
    if (used < reason_room) {
      const int more = snprintf(reason_out + used, reason_room - used, "not in '%s': %s; ", all.directories[i], why);
      used += more > 0 ? (size_t)more : 0;
    }
  }
  if (used < reason_room) snprintf(reason_out + used, reason_room - used, "recorded in memory");
  path_out[0] = '\0';
  return -1;
}

/* ---- the capture as the output ---- */

/* It stays for its user alone: it holds what a trace does not, such as what was cleared. */
static int rename_alone(const char *capture, const char *output) {
  struct stat about;
  const int status = prof_i_place_check_output(output);
  if (status != PROF_OK) return status;
  if (look_at_lock(AT_FDCWD, output) == HELD) return prof_i_fail(PROF_E_BUSY, "cannot write '%s': another process records into it", output);
  const int fd = open(capture, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
  const bool is_it = fd >= 0 && fstat(fd, &about) == 0 && about.st_dev == prof_i_the_arena.device && about.st_ino == prof_i_the_arena.inode;
  int error = is_it ? 0 : ENOENT; /* somebody has moved it */
  if (is_it && rename(capture, output) != 0) error = errno;
  if (fd >= 0) close(fd);
  if (!error) return PROF_OK;
  return prof_i_fail(prof_i_status_of_errno(error), "cannot rename '%s' to '%s': %s", capture, output,
                     error == EXDEV ? "it is too large to be copied at exit, and stands on another file system" : strerror(error));
}

int prof_i_place_rename(const char *capture, const char *output) {
  const int lock = prof_i_place_lock(output);
  const int status = rename_alone(capture, output);
  prof_i_place_unlock(lock);
  return status;
}
