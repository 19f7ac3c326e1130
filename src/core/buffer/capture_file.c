/* Finds a directory whose file system keeps what fallocate promises, and makes the file there. See
   capture_file.h. A forked child comes here inside a scope. So nothing here allocates, takes a lock
   of libc or needs much stack. Paths are built in static memory, which the control lock guards. */
#define _GNU_SOURCE
#include "capture_file.h"

#include <errno.h>
#include <fcntl.h>
#include <prof/status.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "../../base/fault.h"
#include "../../base/log.h"
#include "../../base/port.h"
#include "../../base/text.h"
#include "../../format/layout.h"
#include "arena.h"

enum {
  COPIES_MAX = 1000,
  ROOM_MIN_BYTES = 8 << 20,
  HOLD_TRIES = 100,
  HOST_BYTES = 64,  /* what a place in a pattern becomes at most */
  NAMES_BYTES = 256 /* what names beside an output have more than it */
};

/* Guarded by the control lock. */
static struct {
  char directory[PROF_I_PATH_BYTES];
  char capture_directory[PROF_I_PATH_BYTES],
      temporary_directory[PROF_I_PATH_BYTES]; /* of the environment; "": none */
  prof_i_capture_dirs places;
} capture_paths;

/* Its parents may be closed to us. */
static bool is_working_directory(const char *directory) {
  struct stat there, here;
  return stat(directory, &there) == 0 && stat(".", &here) == 0 && there.st_dev == here.st_dev &&
         there.st_ino == here.st_ino;
}

static size_t count_percents(const char *text) {
  size_t count = 0;
  for (; *text; text++) count += *text == '%';
  return count;
}

const char *prof_i_output_make_absolute(const char *pattern, char *to, size_t room) {
  static char here[PROF_I_PATH_BYTES]; /* guarded by the control lock */
  if (pattern[0] == '/' || !getcwd(here, sizeof here) || here[0] != '/' ||
      !is_working_directory(here))
    return pattern;
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

static void directory_of_path(const char *path, char *to, size_t room) {
  const char *const slash = strrchr(path, '/');
  const size_t bytes = !slash ? 0 : slash == path ? 1 : (size_t)(slash - path);
  prof_i_compose text = prof_i_compose_in(to, room);
  if (!bytes)
    prof_i_compose_text(&text, ".");
  else
    prof_i_compose_bytes(&text, path, bytes);
}

int prof_i_output_check(const char *path) {
  char *const directory = capture_paths.directory;
  struct stat about;
  directory_of_path(path, directory, sizeof capture_paths.directory);
  if (stat(directory, &about) != 0)
    return prof_i_fail(prof_i_status_of_errno(errno), "cannot write '%s': directory '%s': %s", path,
                       directory, prof_i_error_text(errno));
  if (!S_ISDIR(about.st_mode))
    return prof_i_fail(PROF_E_NOT_FOUND, "cannot write '%s': '%s' is not a directory", path,
                       directory);
  if (access(directory, W_OK | X_OK) != 0 && errno != ENOSYS)
    return prof_i_fail(prof_i_status_of_errno(errno), "cannot write '%s': directory '%s': %s", path,
                       directory, prof_i_error_text(errno));
  if (stat(path, &about) != 0) {
    if (errno == ENOENT) return PROF_OK;
    return prof_i_fail(prof_i_status_of_errno(errno), "cannot write '%s': %s", path,
                       prof_i_error_text(errno));
  }
  if (!S_ISREG(about.st_mode))
    return prof_i_fail(PROF_E_FILE_TYPE, "cannot write '%s': it is a %s, not a regular file", path,
                       S_ISDIR(about.st_mode) ? "directory" : "device, pipe or socket");
  return PROF_OK;
}

#define TMPFS 0x01021994ul
#define RAMFS 0x858458f6ul

/* File systems whose fallocate reserves: a later store cannot run out of disk. NULL: this one
   does. */
const char *prof_i_capture_file_unfit_reason(int fd) {
  struct statfs about;
  if (fstatfs(fd, &about) != 0) return prof_i_error_text(errno);
  switch ((unsigned long)about.f_type) {
    case 0xef53ul:     /* ext2, 3, 4 */
    case 0x58465342ul: /* XFS */
    case TMPFS:
    case 0x794c7630ul: /* overlay: as its upper layer; the probe tells */
      return NULL;
    default:
      return "its file system does not keep what fallocate reserves";
  }
}

bool prof_i_capture_file_is_memory(int fd) {
  struct statfs about;
  return fstatfs(fd, &about) == 0 &&
         ((unsigned long)about.f_type == TMPFS || (unsigned long)about.f_type == RAMFS);
}

/* A first piece is reserved and stored to: what cannot do that is found out here. */
static const char *probe_file(int fd) {
  const char *const unfit = prof_i_capture_file_unfit_reason(fd);
  if (unfit) return unfit;
  const int error = prof_i_port_reserve_file(fd, 0, PROF_I_FIRST_UNIT_OFFSET);
  if (error == EFBIG) return "it would pass the file size limit (RLIMIT_FSIZE)";
  if (error) return prof_i_error_text(error);
  void *const at = mmap(NULL, PROF_I_HEADER_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) return "its files cannot be mapped";
  const int populated = prof_i_port_populate(at, PROF_I_HEADER_BYTES);
  munmap(at, PROF_I_HEADER_BYTES);
  return populated ? prof_i_error_text(populated) : NULL;
}

/* ---- names ---- */

void prof_i_capture_file_host(char to[PROF_I_HOST_BYTES]) {
  memcpy(to, "host", sizeof "host");
  gethostname(to, PROF_I_HOST_BYTES - 1);
  to[PROF_I_HOST_BYTES - 1] = '\0';
  for (char *c = to; *c; c++)
    if (*c == '/') *c = '_';
}

/* A child takes what its parent found: a handler may have interrupted setenv(). */
static void read_directories(void) {
  static const struct {
    const char *name;
    char *to;
  } variables[] = {{"PROF_CAPTURE_DIR", capture_paths.capture_directory},
                   {"TMPDIR", capture_paths.temporary_directory}};
  for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
    const char *const value = secure_getenv(variables[i].name);
    prof_i_compose text = prof_i_compose_in(variables[i].to, PROF_I_PATH_BYTES);
    if (value) prof_i_compose_text(&text, value);
    if (text.is_cut) *variables[i].to = '\0'; /* longer than any path */
  }
}

/* 8 digits of 16. */
static void compose_hash(prof_i_compose *text, uint32_t number) {
  for (int shift = 28; shift >= 0; shift -= 4)
    prof_i_compose_bytes(text, &"0123456789abcdef"[number >> shift & 15], 1);
}

const prof_i_capture_dirs *prof_i_capture_file_list_dirs(const char *output) {
  prof_i_capture_dirs *const all = &capture_paths.places;
  struct stat about;
  const char *const slash = strrchr(output, '/');
  const char *const base = slash ? slash + 1 : output;
  directory_of_path(output, all->beside, sizeof all->beside);
  if (stat(all->beside, &about) != 0) about.st_ino = 0, about.st_dev = 0;
  const uint64_t number =
      ((uint64_t)about.st_ino ^ (uint64_t)about.st_dev << 32) * 0x9e3779b97f4a7c15ull;
  prof_i_compose here = prof_i_compose_in(all->bases[0], sizeof all->bases[0]);
  prof_i_compose elsewhere = prof_i_compose_in(all->bases[1], sizeof all->bases[1] - 9);
  prof_i_compose_text(&here, base);
  prof_i_compose_text(&elsewhere, base);
  elsewhere.room += 9;
  prof_i_compose_text(&elsewhere, "~");
  compose_hash(&elsewhere, (uint32_t)(number >> 32));
  const char *const wanted[] = {all->beside, capture_paths.capture_directory,
                                capture_paths.temporary_directory, "/dev/shm"};
  all->count = 0;
  for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
    if (wanted[i][0]) all->directories[all->count++] = wanted[i];
  return all;
}

bool prof_i_capture_file_name(const char *directory, const char *base, int copy, char *to,
                              size_t room) {
  char host[PROF_I_HOST_BYTES];
  prof_i_capture_file_host(host);
  prof_i_compose path = prof_i_compose_in(to, room);
  prof_i_compose_text(&path, directory);
  prof_i_compose_text(&path, "/");
  prof_i_compose_text(&path, base);
  prof_i_compose_text(&path, ".");
  prof_i_compose_text(&path, host);
  prof_i_compose_text(&path, "-");
  prof_i_compose_number(&path, (uint64_t)getpid());
  prof_i_compose_text(&path, "-");
  prof_i_compose_number(&path, prof_i_port_process_start());
  prof_i_compose_text(&path, "-");
  prof_i_compose_number(&path, (uint64_t)copy);
  prof_i_compose_text(&path, ".prof");
  return !path.is_cut;
}

int prof_i_output_add_suffix(char *output, size_t room) {
  char suffix[32];
  prof_i_compose text = prof_i_compose_in(suffix, sizeof suffix);
  prof_i_compose_text(&text, ".");
  prof_i_compose_number(&text, (uint64_t)getpid());
  const size_t bytes = text.bytes;
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
  if (length + bytes >= room)
    return prof_i_fail(PROF_E_INVALID, "the path is longer than %zu bytes: '%.64s...'", room - 1,
                       output);
  memmove(output + at + bytes, output + at, length - at + 1);
  memcpy(output + at, suffix, bytes);
  return PROF_OK;
}

/* ---- the file ---- */

/* Where a sandbox does not let us ask, the first piece tells. */
static const char *no_room_reason(const char *directory) {
  struct statfs about;
  if (statfs(directory, &about) != 0)
    return prof_i_port_is_forbidden(errno) ? NULL : prof_i_error_text(errno);
  const bool has_room = about.f_blocks == 0 || /* ramfs knows no size */
                        (uint64_t)about.f_bavail * (uint64_t)about.f_frsize >= ROOM_MIN_BYTES;
  return has_room ? NULL : "it has less than 8 MiB free";
}

/* Without file locks, the pid has to do. A process that tests for a lock holds one for a moment. */
void prof_i_capture_file_lock(int fd) {
  for (int tries = 0; flock(fd, LOCK_EX | LOCK_NB) != 0 &&
                      (errno == EWOULDBLOCK || errno == EINTR) && tries < HOLD_TRIES;
       tries++)
    sched_yield();
}

/* The name carries host, pid, start time and copy, since pid 1 comes again in a restarted
   container. Never an existing file, never through a symbolic link. */
static int create_in_directory(const char *directory, const char *base, mode_t mode, char *path,
                               size_t room, const char **reason_out) {
  if ((*reason_out = no_room_reason(directory)) != NULL) return -1;
  for (int copy = 0; copy < COPIES_MAX; copy++) {
    if (!prof_i_capture_file_name(directory, base, copy, path, room)) {
      *reason_out = "the capture's path would be too long";
      return -1;
    }
    const int fd =
        open(path,
             O_RDWR | O_CREAT | (PROF_I_FAULT(NOT_EXCLUSIVE) ? 0 : O_EXCL) | O_NOFOLLOW | O_CLOEXEC,
             mode);
    if (fd < 0 && errno == EEXIST) continue;
    if (fd < 0) {
      *reason_out = prof_i_error_text(errno);
      return -1;
    }
    if ((*reason_out = probe_file(fd)) == NULL) {
      prof_i_capture_file_lock(fd);
      return fd;
    }
    if (!PROF_I_FAULT(LEAK)) close(fd);
    unlink(path);
    return -1;
  }
  *reason_out = "a thousand captures of this process are there already";
  return -1;
}

int prof_i_capture_file_create(const char *output, bool is_child, char *path_out, size_t path_room,
                               char *reason_out, size_t reason_room) {
  if (!is_child) read_directories();
  const prof_i_capture_dirs *const all = prof_i_capture_file_list_dirs(output);
  prof_i_compose reason = prof_i_compose_in(reason_out, reason_room);
  for (size_t i = 0; i < all->count; i++) {
    const char *why = "";
    const int fd = create_in_directory(all->directories[i], all->bases[i != 0],
                                       is_child ? PROF_I_MODE_CLAIMED : PROF_I_MODE_CLAIMING,
                                       path_out, path_room, &why);
    prof_i_compose_text(&reason, fd < 0 ? "not in '" : i > 0 ? "recorded in '" : "");
    if (fd < 0 || i > 0) prof_i_compose_text(&reason, all->directories[i]);
    prof_i_compose_text(&reason, fd < 0 ? "': " : i > 0 ? "'" : "");
    if (fd >= 0) return fd;
    prof_i_compose_text(&reason, why);
    prof_i_compose_text(&reason, "; ");
  }
  prof_i_compose_text(&reason, "recorded in memory");
  path_out[0] = '\0';
  return -1;
}

/* ---- the capture as the output ---- */

/* It stays for its user alone: it holds what a trace does not, such as what was cleared. */
int prof_i_capture_file_rename(const char *capture, const char *output) {
  struct stat about;
  const int status = prof_i_output_check(output);
  if (status != PROF_OK) return status;
  if (prof_i_output_claim_is_held(AT_FDCWD, output))
    return prof_i_fail(PROF_E_BUSY, "cannot write '%s': another process records into it", output);
  const int fd = open(capture, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
  const bool is_it = fd >= 0 && fstat(fd, &about) == 0 && about.st_dev == prof_i_the_arena.device &&
                     about.st_ino == prof_i_the_arena.inode;
  int error = is_it ? 0 : ENOENT; /* somebody has moved it */
  if (is_it && rename(capture, output) != 0) error = errno;
  if (fd >= 0) close(fd);
  if (!error) return PROF_OK;
  return prof_i_fail(
      prof_i_status_of_errno(error), "cannot rename '%s' to '%s': %s", capture, output,
      error == EXDEV ? "it is too large to be copied at exit, and stands on another file system"
                     : prof_i_error_text(error));
}
