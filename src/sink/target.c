/* Where an output file lands; see sink.h. */
#define _GNU_SOURCE
#include "sink.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <prof/status.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "../base/error.h"
#include "../base/fault.h"
#include "../base/port.h"

prof_i_unfinished_file *prof_i_target_unfinished;

enum { NAME_TRIES = 100, WRITE_OUT_BYTES = 8 << 20, MODE_BITS = 0777 };

/* Fails with "cannot <verb> '<path>': <the errno's text><more>". */
static int target_fail(const prof_i_target *target, const char *verb, int error, const char *more) {
  char room[128];
  const int status = error == EEXIST ? PROF_E_IO : prof_i_status_of_errno(error);
  return prof_i_fail(status, "cannot %s '%s': %s%s", verb, target->path,
                     strerror_r(error, room, sizeof room), more);
}

static int target_fail_type(const prof_i_target *target, const char *what) {
  return prof_i_fail(PROF_E_FILE_TYPE, "cannot write '%s': it is %s", target->path, what);
}

/* A program that has closed its standard descriptors may still write to them, so prof's files do
   not use them. */
static int move_above_standard(int fd) {
  if (fd > STDERR_FILENO) return fd;
  const int above = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  if (above < 0) return fd;
  close(fd);
  return above;
}

/* Takes the descriptor over, also when it fails. */
static int file_take_descriptor(prof_i_open_file *opened, int fd, struct stat *status_out) {
  if (fstat(fd, status_out) != 0) {
    const int error = errno;
    close(fd);
    return error;
  }
  *opened = (prof_i_open_file){move_above_standard(fd), status_out->st_dev, status_out->st_ino};
  return 0;
}

static bool file_is_still_ours(const prof_i_open_file *opened) {
  struct stat now;
  return fstat(opened->fd, &now) == 0 && now.st_dev == opened->device &&
         now.st_ino == opened->inode;
}

/* A handler may have forked in the middle of a dump. Then the child goes on with it, but the file
   is its parent's. */
static bool target_is_own(const prof_i_target *target) { return target->pid == getpid(); }

static int fail_in_child(const prof_i_target *target) {
  return prof_i_fail(PROF_E_IO,
                     "cannot write '%s': a signal handler forked this process from the one that "
                     "writes it; dump to another file",
                     target->path);
}

static void file_close(prof_i_open_file *opened) {
  if (opened->fd >= 0 && file_is_still_ours(opened)) close(opened->fd);
  opened->fd = -1;
}

/* ---- opening ---- */

/* The program's own standard output, at the place where it stands. */
static int open_standard_output(prof_i_target *target) {
  struct stat status;
  const int fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  if (fd < 0) return target_fail(target, "open", errno, "");
  const int error = file_take_descriptor(&target->file, fd, &status);
  if (error != 0) return target_fail(target, "open", error, "");
  target->is_pipe = S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode);
  target->is_regular = S_ISREG(status.st_mode);
  if (target->is_regular) {
    const off_t at = lseek(fd, 0, SEEK_CUR);
    target->begin_bytes = at > 0 ? (uint64_t)at : 0;
  }
  return PROF_OK;
}

static bool is_null_device(const struct stat *status) {
  return S_ISCHR(status->st_mode) && status->st_rdev == makedev(1, 3);
}

/* A FIFO or /dev/null. Without a reader a FIFO is an error: waiting for one would stop the
   program. */
static int open_direct(prof_i_target *target) {
  struct stat status;
  const int fd =
      openat(target->folder.fd, target->name, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (fd < 0 && errno == ENXIO)
    return prof_i_fail(PROF_E_IO, "cannot write '%s': nobody reads from it", target->path);
  if (fd < 0) return target_fail(target, "open", errno, "");
  const int error = file_take_descriptor(&target->file, fd, &status);
  if (error != 0) return target_fail(target, "open", error, "");
  target->is_pipe = S_ISFIFO(status.st_mode);
  if (!target->is_pipe && !is_null_device(&status))
    return target_fail_type(target, "no longer what it was");
  fcntl(target->file.fd, F_SETFL, 0);
  return PROF_OK;
}

_Static_assert(sizeof((prof_i_unfinished_file *)0)->name == sizeof((prof_i_target *)0)->temporary,
               "a note has room for each name");

/* The first byte of the name is stored last, so that a signal handler never sees a partial name. */
static void note_unfinished(const prof_i_target *target) {
  prof_i_unfinished_file *const note = prof_i_target_unfinished;
  if (note == NULL) return;
  __atomic_store_n(&note->name[0], 0, __ATOMIC_RELAXED);
  PROF_I_STORE_FENCE();
  note->folder = target->folder.fd;
  memcpy(note->name + 1, target->temporary + 1, sizeof note->name - 1);
  __atomic_store_n(&note->name[0], target->temporary[0], __ATOMIC_RELEASE); /* with on_end() */
}

static void next_temporary_name(prof_i_target *target, unsigned attempt) {
  snprintf(target->temporary, sizeof target->temporary, ".prof-%x-%lx-%x.tmp", (unsigned)getpid(),
           (unsigned long)prof_i_port_monotonic_ns() ^ (unsigned long)(uintptr_t)target, attempt);
  note_unfinished(target);
}

static void forget_temporary_name(prof_i_target *target) {
  target->temporary[0] = 0;
  note_unfinished(target);
}

/* The path under which a file without a name can be linked; needs /proc. */
static void descriptor_path(const prof_i_target *target, char *to, size_t room) {
  snprintf(to, room, "/proc/self/fd/%d", target->file.fd);
}

static bool open_nameless(prof_i_target *target) {
  struct stat status;
  char linkable[32];
  const int fd = openat(target->folder.fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
  if (fd < 0) return false;
  if (file_take_descriptor(&target->file, fd, &status) != 0) return false;
  descriptor_path(target, linkable, sizeof linkable);
  if (access(linkable, F_OK) == 0) return true;
  file_close(&target->file);
  return false;
}

/* 0 or an errno. */
static int create_named(prof_i_target *target) {
  int error = EEXIST;
  for (unsigned attempt = 0; attempt < NAME_TRIES; attempt++) {
    struct stat status;
    next_temporary_name(target, attempt);
    const int fd = openat(target->folder.fd, target->temporary,
                          O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd >= 0) return file_take_descriptor(&target->file, fd, &status);
    if ((error = errno) != EEXIST) break;
  }
  forget_temporary_name(target);
  return error;
}

/* No handler forks meanwhile: the child would make a file of its own, and leave it. */
static int open_named(prof_i_target *target) {
  PROF_I_HOLD_SIGNALS;
  if (!target_is_own(target)) return fail_in_child(target);
  const int error = create_named(target);
  return error == 0 ? PROF_OK : target_fail(target, "create", error, "");
}

/* What another process may have put there meanwhile, as a link, is not written to. */
static int open_growing(prof_i_target *target) {
  struct stat status;
  target->is_direct = true;
  const int fd = openat(target->folder.fd, target->name,
                        O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC, 0666);
  const int error = fd < 0 ? errno : file_take_descriptor(&target->file, fd, &status);
  return error == 0 ? PROF_OK : target_fail(target, "create", error, "");
}

static int open_folder(prof_i_target *target) {
  struct stat status;
  char *const slash = strrchr(target->path, '/');
  target->name = slash == NULL ? target->path : slash + 1;
  if (*target->name == 0) return target_fail_type(target, "a directory");
  int fd;
  if (slash == NULL) {
    fd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
  } else if (slash == target->path) {
    fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
  } else {
    *slash = 0;
    fd = open(target->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    *slash = '/';
  }
  const int error = fd < 0 ? errno : file_take_descriptor(&target->folder, fd, &status);
  return error == 0 ? PROF_OK : target_fail(target, "create", error, "");
}

/* Copies the mode of the file that is replaced. The mode of another user's file can only remove
   permissions, because its owner must not choose who reads our file. A replaced link has no mode of
   its own. */
static void keep_mode(const prof_i_target *target) {
  struct stat old, now;
  if (fstatat(target->folder.fd, target->name, &old, AT_SYMLINK_NOFOLLOW) != 0 ||
      !S_ISREG(old.st_mode) || fstat(target->file.fd, &now) != 0)
    return;
  const mode_t allowed = old.st_uid == now.st_uid ? MODE_BITS : now.st_mode & MODE_BITS;
  (void)fchmod(target->file.fd, old.st_mode & allowed);
}

/* Whether the file would be directly in /dev, where replacing a link such as /dev/stderr would
   break the machine. Its subfolders, such as /dev/shm, are allowed. */
static bool is_device_folder(const prof_i_target *target) {
  struct stat devices;
  return stat("/dev", &devices) == 0 && devices.st_dev == target->folder.device &&
         devices.st_ino == target->folder.inode;
}

/* Decides by what stands under the final name now. Links are followed to tell, but a link to a file
   is itself replaced: who may write here must not choose which of our files is overwritten. */
static int open_in_folder(prof_i_target *target) {
  struct stat status;
  if (fstatat(target->folder.fd, target->name, &status, 0) == 0) {
    if (S_ISDIR(status.st_mode)) return target_fail_type(target, "a directory");
    if (S_ISFIFO(status.st_mode) || is_null_device(&status)) {
      target->is_direct = true;
      return open_direct(target);
    }
    if (!S_ISREG(status.st_mode))
      return target_fail_type(target, S_ISSOCK(status.st_mode) ? "a socket" : "a device");
    if (target->must_be_new) return target_fail(target, "create", EEXIST, "");
  } else if (errno != ENOENT) {
    return target_fail(target, "create", errno, "");
  }
  if (is_device_folder(target)) return target_fail_type(target, "in /dev, where no files belong");
  target->is_regular = true;
  if (target->is_live) return open_growing(target);
  const int result = open_nameless(target) ? PROF_OK : open_named(target);
  if (result == PROF_OK) keep_mode(target);
  return result;
}

static int open_path(prof_i_target *target, const char *path) {
  if (*path == 0) return prof_i_fail(PROF_E_INVALID, "the output's path is empty");
  target->path = strdup(path);
  if (target->path == NULL)
    return prof_i_fail(PROF_E_NO_MEMORY, "no memory for a path of %zu bytes", strlen(path));
  int status;
  if (strcmp(path, "/dev/stdout") == 0) {
    target->is_direct = true;
    status = open_standard_output(target);
  } else {
    status = open_folder(target);
    if (status == PROF_OK) status = open_in_folder(target);
  }
  if (status != PROF_OK) prof_i_target_abandon(target);
  return status;
}

int prof_i_target_open(prof_i_target *target, const char *path, bool must_be_new) {
  *target =
      (prof_i_target){.file.fd = -1, .folder.fd = -1, .pid = getpid(), .must_be_new = must_be_new};
  return open_path(target, path);
}

int prof_i_target_open_live(prof_i_target *target, const char *path) {
  *target = (prof_i_target){.file.fd = -1, .folder.fd = -1, .pid = getpid(), .is_live = true};
  return open_path(target, path);
}

/* ---- writing ---- */

/* A pipe whose reader is gone sends SIGPIPE, and there is no flag against it for pipes. So this
   thread blocks the signal during the one write, takes it if it came, and restores the mask. It
   also comes with a short write, if the reader goes away in the middle. This is the one place where
   prof touches a mask; the other choice is that a closed pager ends the program. */
static ssize_t write_to_pipe(int fd, const void *bytes, size_t count) {
  sigset_t pipe_signal, old, pending;
  sigemptyset(&pipe_signal);
  sigaddset(&pipe_signal, SIGPIPE);
  sigpending(&pending);
  pthread_sigmask(SIG_BLOCK, &pipe_signal, &old);
  const ssize_t written = write(fd, bytes, count);
  const int error = errno;
  if (written < (ssize_t)count && sigismember(&pending, SIGPIPE) == 0) {
    const struct timespec no_time = {0, 0};
    while (sigtimedwait(&pipe_signal, NULL, &no_time) < 0 && errno == EINTR) continue;
  }
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  errno = error;
  return written;
}

static void wait_for_room(int fd) {
  struct pollfd wanted = {fd, POLLOUT, 0};
  poll(&wanted, 1, -1);
}

/* Every 8 MiB, makes the kernel begin to write out what it has. So the disk works while the next
   piece is made, and a large output does not fill the memory with unwritten pages. Does not wait.
   */
static void start_write_out(prof_i_target *target) {
  const uint64_t waiting = target->written_bytes - target->started_bytes;
  if (!target->is_regular || waiting < WRITE_OUT_BYTES) return;
  sync_file_range(target->file.fd, (off_t)(target->begin_bytes + target->started_bytes),
                  (off_t)waiting, SYNC_FILE_RANGE_WRITE);
  target->started_bytes = target->written_bytes;
}

static int fail_write(const prof_i_target *target, int error) {
  char more[48];
  snprintf(more, sizeof more, " after %llu bytes", (unsigned long long)target->written_bytes);
  return target_fail(target, "write", error, more);
}

/* Checks the process, the descriptor and the size limit. Bytes will be written up to end_bytes. */
static int check_write(const prof_i_target *target, uint64_t end_bytes) {
  if (!target_is_own(target)) return fail_in_child(target);
  if (!file_is_still_ours(&target->file))
    return prof_i_fail(PROF_E_IO,
                       "cannot write '%s': the program closed its descriptor, after %llu bytes",
                       target->path, (unsigned long long)target->written_bytes);
  const uint64_t limit = target->is_regular ? prof_i_port_file_size_limit() : UINT64_MAX;
  if (end_bytes <= limit) return PROF_OK;
  return prof_i_fail(PROF_E_NO_SPACE,
                     "cannot write '%s': past the file size limit of %llu bytes (RLIMIT_FSIZE)",
                     target->path, (unsigned long long)limit);
}

/* A forked child shares the file's offset. So a file of prof's own is written at an explicit one:
   then a child that a handler forks just before a write repeats that write, and moves nothing. */
static bool has_own_offset(const prof_i_target *target) {
  return target->is_regular && !target->is_direct;
}

static ssize_t write_next(const prof_i_target *target, const void *bytes, size_t count) {
  const int fd = target->file.fd;
  if (target->is_pipe) return write_to_pipe(fd, bytes, count);
  if (!has_own_offset(target)) return write(fd, bytes, count);
  const off_t at = (off_t)target->written_bytes;
  const ssize_t written = pwrite(fd, bytes, count, at);
  if (written >= 0 || !prof_i_port_is_forbidden(errno)) return written;
  /* A sandbox forbids it. Earlier writes and copies have not moved the file's offset. */
  return lseek(fd, at, SEEK_SET) == at ? write(fd, bytes, count) : -1;
}

/* Uses the system call, because older C libraries lack the function. */
static ssize_t copy_range(int from, off_t *offset, int to, off_t *to_offset, size_t count) {
#ifdef SYS_copy_file_range
  return (ssize_t)syscall(SYS_copy_file_range, from, offset, to, to_offset, count, 0u);
#else
  errno = ENOSYS;
  return -1;
#endif
}

int prof_i_target_copy(prof_i_target *target, int fd, uint64_t offset, uint64_t count,
                       uint64_t *copied_out) {
  off_t from = (off_t)offset;
  *copied_out = 0;
  if (!target->is_regular) return PROF_OK;
  const int status = check_write(target, target->begin_bytes + target->written_bytes + count);
  if (status != PROF_OK) return status;
  while (*copied_out < count) {
    off_t to = (off_t)target->written_bytes;
    const ssize_t copied =
        copy_range(fd, &from, target->file.fd, has_own_offset(target) ? &to : NULL,
                   (size_t)(count - *copied_out));
    if (copied < 0 && errno == EINTR) continue;
    if (copied < 0 && (errno == ENOSPC || errno == EDQUOT)) return fail_write(target, errno);
    if (copied <= 0) return PROF_OK; /* the kernel cannot: the caller reads and writes */
    *copied_out += (uint64_t)copied;
    target->written_bytes += (uint64_t)copied;
  }
  return PROF_OK;
}

int prof_i_target_write(prof_i_target *target, const void *bytes, size_t count) {
  const char *from = bytes;
  const int status = check_write(target, target->begin_bytes + target->written_bytes + count);
  if (status != PROF_OK) return status;
  while (count > 0) {
    const ssize_t written = write_next(target, from, count);
    if (written > 0) {
      from += written;
      count -= (size_t)written;
      target->written_bytes += (uint64_t)written;
    } else if (written < 0 && errno == EAGAIN) {
      wait_for_room(target->file.fd);
    } else if (PROF_I_FAULT(WRITE_IGNORED)) {
      return PROF_OK;
    } else if (written == 0 || errno != EINTR) {
      return fail_write(target, written == 0 ? EIO : errno);
    }
  }
  start_write_out(target);
  return PROF_OK;
}

int prof_i_target_write_at(prof_i_target *target, const void *bytes, size_t count, uint64_t at) {
  const char *from = bytes;
  const int status = check_write(target, at + count);
  if (status != PROF_OK) return status;
  while (count > 0) {
    const ssize_t written = pwrite(target->file.fd, from, count, (off_t)at);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return fail_write(target, written == 0 ? EIO : errno);
    from += written;
    count -= (size_t)written;
    at += (uint64_t)written;
    if (at > target->written_bytes) target->written_bytes = at;
  }
  start_write_out(target);
  return PROF_OK;
}

int prof_i_target_read_at(const prof_i_target *target, void *bytes, size_t count, uint64_t at,
                          size_t *read_out) {
  char *to = bytes;
  *read_out = 0;
  while (*read_out < count) {
    const ssize_t taken =
        pread(target->file.fd, to + *read_out, count - *read_out, (off_t)(at + *read_out));
    if (taken < 0 && errno == EINTR) continue;
    if (taken < 0) return target_fail(target, "read back", errno, "");
    if (taken == 0) return PROF_OK;
    *read_out += (size_t)taken;
  }
  return PROF_OK;
}

int prof_i_target_shorten(prof_i_target *target, uint64_t bytes) {
  if (!target_is_own(target)) return fail_in_child(target);
  if (bytes >= target->written_bytes) return PROF_OK;
  if (ftruncate(target->file.fd, (off_t)bytes) != 0) return fail_write(target, errno);
  target->written_bytes = bytes;
  if (target->started_bytes > bytes) target->started_bytes = bytes;
  return PROF_OK;
}

/* ---- the final name ---- */

static int link_nameless(const prof_i_target *target, const char *name) {
  char linkable[32];
  descriptor_path(target, linkable, sizeof linkable);
  return linkat(AT_FDCWD, linkable, target->folder.fd, name, AT_SYMLINK_FOLLOW) == 0 ? 0 : errno;
}

/* Something stands under the final name: the file gets a temporary name, to be renamed over it. */
static int link_temporary(prof_i_target *target) {
  int error = EEXIST;
  for (unsigned attempt = 0; error == EEXIST && attempt < NAME_TRIES; attempt++) {
    next_temporary_name(target, attempt);
    error = link_nameless(target, target->temporary);
  }
  if (error != 0) forget_temporary_name(target);
  return error;
}

static int copy_file_bytes(int from, prof_i_target *target, uint64_t count) {
  enum { PIECE_BYTES = 64 << 10 };
  char *const piece = malloc(PIECE_BYTES); /* the caller's stack may be small */
  int status = piece ? PROF_OK : fail_write(target, ENOMEM);
  while (status == PROF_OK && target->written_bytes < count) {
    const ssize_t taken = pread(from, piece, PIECE_BYTES, (off_t)target->written_bytes);
    if (taken < 0 && errno == EINTR) continue;
    status = taken > 0 ? prof_i_target_write(target, piece, (size_t)taken)
                       : fail_write(target, taken < 0 ? errno : EIO);
  }
  free(piece);
  return status;
}

/* A sandbox forbids to give a file its name later: the bytes go to one that has a name. That takes
   long, and signals come meanwhile. */
static int copy_to_named(prof_i_target *target) {
  prof_i_open_file nameless = target->file;
  const uint64_t count = target->written_bytes;
  struct stat about;
  target->file.fd = -1;
  int status = fstat(nameless.fd, &about) == 0 ? open_named(target) : fail_write(target, errno);
  if (status == PROF_OK) {
    (void)fchmod(target->file.fd, about.st_mode & MODE_BITS);
    target->written_bytes = target->started_bytes = 0;
    status = copy_file_bytes(nameless.fd, target, count);
  }
  file_close(&nameless);
  return status;
}

enum { RENAME_OVER = 0, RENAME_NEW = 1 /* RENAME_NOREPLACE */ };

/* Of two calls that do the same one may be forbidden. */
static int rename_temporary(prof_i_target *target, unsigned how) {
  const int folder = target->folder.fd;
  int error = ENOSYS;
  if (how == RENAME_OVER)
    error = renameat(folder, target->temporary, folder, target->name) == 0 ? 0 : errno;
  if (prof_i_port_is_forbidden(error) &&
      syscall(SYS_renameat2, folder, target->temporary, folder, target->name, how) == 0)
    error = 0;
  if (error == 0) forget_temporary_name(target);
  return error;
}

/* Unlike rename, link refuses an existing name; abandoning drops the temporary one. */
static int link_as_new(prof_i_target *target) {
  const int folder = target->folder.fd;
  if (linkat(folder, target->temporary, folder, target->name, 0) == 0) return 0;
  const int error = errno;
  return prof_i_port_is_forbidden(error) && rename_temporary(target, RENAME_NEW) == 0 ? 0 : error;
}

static int target_name_file(prof_i_target *target) {
  if (target->temporary[0] == 0) {
    int error = link_nameless(target, target->name);
    if (error == 0 || (error == EEXIST && target->must_be_new)) return error;
    if (error == EEXIST) error = link_temporary(target);
    if (error != 0) return error;
  }
  return target->must_be_new ? link_as_new(target) : rename_temporary(target, RENAME_OVER);
}

/* 0 or an errno. No handler forks between a link and a rename: the child would do the rest of it,
   too. */
static int close_and_name(prof_i_target *target) {
  PROF_I_HOLD_SIGNALS;
  if (!target_is_own(target)) return ECHILD;
  if (!file_is_still_ours(&target->file) ||
      (!target->is_direct && !file_is_still_ours(&target->folder)))
    return EBADF;
  if (target->temporary[0] != 0 || target->is_direct) {
    /* Network file systems report a full disk at the close; a file without a name is never on
       one. */
    const int error = close(target->file.fd) != 0 && errno != EINTR ? errno : 0;
    target->file.fd = -1;
    if (error != 0) return error;
  }
  return target->is_direct ? 0 : target_name_file(target);
}

int prof_i_target_commit(prof_i_target *target) {
  int status = PROF_OK, error = close_and_name(target);
  const bool is_nameless = !target->is_direct && target->temporary[0] == 0;
  if (is_nameless && prof_i_port_is_forbidden(error)) {
    status = copy_to_named(target);
    error = status == PROF_OK ? close_and_name(target) : 0;
  }
  if (error != 0) status = error == ECHILD ? fail_in_child(target) : fail_write(target, error);
  prof_i_target_abandon(target);
  return status;
}

/* The name is ours alone, so that where the program closed the folder's descriptor it may be found
   by the path once more. */
static void remove_temporary(prof_i_target *target) {
  if (file_is_still_ours(&target->folder)) {
    unlinkat(target->folder.fd, target->temporary, 0);
    return;
  }
  const size_t folder_bytes = (size_t)(target->name - target->path),
               name_bytes = strlen(target->temporary) + 1;
  char *const path = malloc(folder_bytes + name_bytes);
  if (path == NULL) return;
  memcpy(path, target->path, folder_bytes);
  memcpy(path + folder_bytes, target->temporary, name_bytes);
  unlink(path);
  free(path);
}

void prof_i_target_abandon(prof_i_target *target) {
  file_close(&target->file);
  if (target->temporary[0] != 0 && target_is_own(target)) {
    remove_temporary(target);
    forget_temporary_name(target);
  }
  file_close(&target->folder);
  free(target->path);
  *target = (prof_i_target){.file.fd = -1, .folder.fd = -1};
}
