/* Finds a directory whose file system keeps what fallocate promises, and makes the file there.
   Settles which of several processes keeps the output's name. See capture_file.h.

   A forked child creates its file inside a scope. So that part does not allocate, takes no lock of
   libc and needs little stack. Paths are built in static memory, which the control lock guards. */
#define _GNU_SOURCE
#include "capture_file.h"

#include <dirent.h>
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
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "../../base/error.h"
#include "../../base/fault.h"
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

/* The directories for the captures of an output, the best first, and the begin of their names. A
   capture beside its output begins with the output's name. Elsewhere a number of the output's
   directory is added, because several directories may have outputs of that name. */
typedef struct capture_dirs {
  char beside[PROF_I_PATH_BYTES],
      bases[2][PROF_I_BASE_BYTES_MAX + 1]; /* bases[0] is for directories[0] alone */
  const char *directories[4];
  size_t count;
} capture_dirs;

/* Guarded by the control lock. */
static struct {
  char directory[PROF_I_PATH_BYTES];
  char capture_directory[PROF_I_PATH_BYTES],
      temporary_directory[PROF_I_PATH_BYTES]; /* of the environment; "": none */
  capture_dirs places;
} capture_paths;

/* ---- the output ---- */

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

/* ---- file systems ---- */

#define TMPFS 0x01021994ul
#define RAMFS 0x858458f6ul

/* NULL: captures can be recorded into files of that file system, because its fallocate() reserves
   blocks, so a later store cannot fail for lack of space. No such file system is shared by several
   kernels. */
static const char *capture_file_unfit_reason(int fd) {
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
  const char *const unfit = capture_file_unfit_reason(fd);
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

/* The host's name as it is in the name of a capture. */
static void capture_file_host(char to[PROF_I_HOST_BYTES]) {
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

/* The result is valid until the next call. */
static const capture_dirs *capture_file_list_dirs(const char *output) {
  capture_dirs *const all = &capture_paths.places;
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

/* "DIRECTORY/BASE.HOST-PID-START-COPY.prof" of this process. False: longer than the room. */
static bool capture_file_name(const char *directory, const char *base, int copy, char *to,
                              size_t room) {
  char host[PROF_I_HOST_BYTES];
  capture_file_host(host);
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
    if (!capture_file_name(directory, base, copy, path, room)) {
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
  const capture_dirs *const all = capture_file_list_dirs(output);
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

/* ---- whether a process records into a file ---- */

typedef struct name_parts {
  const char *tail; /* "HOST-PID-START-COPY.prof" */
  long pid;
  unsigned long long start; /* 0: it could not be read */
  bool is_own_host;
} name_parts;

/* Parses "-PID-START-". A number that is too large becomes the largest one, which no process
   has. */
static bool parse_name_numbers(const char *at, name_parts *parts) {
  char *end = NULL;
  parts->pid = strtol(at + 1, &end, 10);
  if (end == at + 1 || *end != '-') return false;
  at = end + 1;
  parts->start = strtoull(at, &end, 10);
  return end != at && *end == '-';
}

/* Parses "BASE.HOST-PID-START-COPY.prof" from the end, because a host's name may contain dashes. */
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

/* A process that records into a capture holds a lock on it. The lock also shows processes of other
   pid namespaces, such as other containers. A shared lock does not disturb other readers. */
prof_i_lock_state prof_i_output_claim_lock_state(int fd) {
  if (flock(fd, LOCK_SH | LOCK_NB) == 0) return PROF_I_LOCK_NONE;
  return errno == EWOULDBLOCK ? PROF_I_LOCK_HELD : PROF_I_LOCK_UNKNOWN;
}

static bool file_is_locked_by_other(int fd) {
  return prof_i_output_claim_lock_state(fd) == PROF_I_LOCK_HELD;
}

/* Whether a lock shows that another process, or another copy of prof in this process, records into
   the file. */
static bool output_claim_is_held(int folder, const char *name) {
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

/* For a file without a lock: its process may have closed the descriptor, which releases the lock.
   The pid decides if it is of this pid namespace. A file of another kernel is of an earlier boot,
   or was copied here, because captures are recorded on local file systems only. */
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
         capture_file_unfit_reason(fd) !=
             NULL; /* of a file system that hosts may share nothing is known */
}

/* ---- other processes with the same output ---- */

enum {
  WAIT_NS = 1000000,
  WAITS_MAX = 50,
  NO_REPLACE = 1 /* RENAME_NOREPLACE */
};

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

static rival search_directories(const claim_search *l, const capture_dirs *all) {
  rival worst = RIVAL_NONE;
  for (size_t i = 0; i < all->count && worst != RIVAL_SETTLED && !PROF_I_FAULT(NOBODY_ELSE); i++) {
    const rival found = search_directory(l, all->directories[i], all->bases[i != 0]);
    if (found > worst) worst = found;
  }
  return worst;
}

/* The index of the directory that the capture is in. 0: not known. */
static size_t directory_index_of(const capture_dirs *all, const char *path) {
  const char *const slash = strrchr(path, '/');
  for (size_t i = 0; slash && i < all->count; i++)
    if (strlen(all->directories[i]) == (size_t)(slash - path) &&
        strncmp(all->directories[i], path, (size_t)(slash - path)) == 0)
      return i;
  return 0;
}

static bool output_is_taken(const char *output, int fd, const char *path) {
  const capture_dirs *const all = capture_file_list_dirs(output);
  const char *const slash = strrchr(path, '/');
  const size_t base_bytes = strlen(all->bases[directory_index_of(all, path) != 0]);
  claim_search l = {.own_tail = ""};
  capture_file_host(l.host);
  if (fd >= 0 && fstat(fd, &l.own_file) != 0) l.own_file.st_ino = 0;
  if (fd >= 0 && slash && strlen(slash + 1) > base_bytes) l.own_tail = slash + 1 + base_bytes + 1;
  rival found = search_directories(&l, all);
  for (int waits = 0; found == RIVAL_LATER && waits < WAITS_MAX; waits++) {
    nanosleep(&(const struct timespec){0, WAIT_NS}, NULL);
    found = search_directories(&l, all);
  }
  return found != RIVAL_NONE;
}

/* Renames the capture to match the new name of the output, so that other processes with that output
   find it. If that fails, it keeps its name. */
static void rename_capture_for(const char *output, char *path, size_t room) {
  static char fresh[PROF_I_PATH_BYTES]; /* guarded by the control lock */
  const capture_dirs *const all = capture_file_list_dirs(output);
  const size_t directory_index = directory_index_of(all, path);
  for (int copy = 0; copy < COPIES_MAX; copy++) {
    if (!capture_file_name(all->directories[directory_index], all->bases[directory_index != 0],
                           copy, fresh, room < sizeof fresh ? room : sizeof fresh))
      return;
    if (syscall(SYS_renameat2, AT_FDCWD, path, AT_FDCWD, fresh, NO_REPLACE) == 0) {
      memcpy(path, fresh, strlen(fresh) + 1);
      return;
    }
    if (errno != EEXIST) return;
  }
}

/* Whether the output was written after this time. Then a process that has ended meanwhile used the
   name. */
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

/* ---- the capture as the output ---- */

/* It stays for its user alone: it holds what a trace does not, such as what was cleared. */
int prof_i_capture_file_rename(const char *capture, const char *output) {
  struct stat about;
  const int status = prof_i_output_check(output);
  if (status != PROF_OK) return status;
  if (output_claim_is_held(AT_FDCWD, output))
    return prof_i_fail(PROF_E_BUSY, "cannot write '%s': another process records into it", output);
  const int fd = open(capture, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
  const bool is_it = fd >= 0 && fstat(fd, &about) == 0 && file_is_own_arena(&about);
  int error = is_it ? 0 : ENOENT; /* somebody has moved it */
  if (is_it && rename(capture, output) != 0) error = errno;
  if (fd >= 0) close(fd);
  if (!error) return PROF_OK;
  return prof_i_fail(
      prof_i_status_of_errno(error), "cannot rename '%s' to '%s': %s", capture, output,
      error == EXDEV ? "it is too large to be copied at exit, and stands on another file system"
                     : prof_i_error_text(error));
}
