/* Switches the level of a recording process through its capture file. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <prof/trace.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../base/log.h"
#include "../base/port.h"
#include "../reader/capture.h"
#include "live.h"

static int level_fail_errno(const char *path) {
  const int error = errno;
  return prof_i_fail(prof_i_status_of_errno(error), "cannot switch %s: %s", path, strerror(error));
}

/* Never through a symbolic link: it may lead to a file that must not be written. */
static int open_capture_file(const char *path, int *fd_out) {
  struct stat about;
  const int fd = open(path, O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW);
  if (fd < 0 && (errno == EISDIR || errno == ENXIO))
    return prof_i_fail(PROF_E_FILE_TYPE, "%s is not a regular file; a capture is one", path);
  if (fd < 0 && errno == ELOOP)
    return prof_i_fail(PROF_E_FILE_TYPE, "%s is a symbolic link; give the capture that it leads to",
                       path);
  if (fd < 0) return level_fail_errno(path);
  *fd_out = fd;
  if (fstat(fd, &about) == 0 && S_ISREG(about.st_mode)) return PROF_OK;
  return prof_i_fail(PROF_E_FILE_TYPE, "%s is not a regular file; a capture is one", path);
}

static int refuse_capture_copy(const char *path) {
  return prof_i_fail(PROF_E_NOT_RUNNING,
                     "%s is a copy: give the capture that the process writes, or its number to "
                     "prof level",
                     path);
}

static int check_capture(const char *path, int fd) {
  unsigned char bytes[PROF_I_HEADER_BYTES];
  prof_i_header its;
  const prof_i_header *const header = &its;
  const ssize_t count = pread(fd, bytes, sizeof bytes, 0);
  if (count < 0) return level_fail_errno(path);
  const int status = prof_i_header_detect(bytes, (uint64_t)count, &its);
  if (status) return prof_i_fail_in(path, status);
  if (header->version == PROF_I_PACKED_VERSION)
    return prof_i_fail(PROF_E_NOT_RUNNING,
                       "%s is packed, and no process records into a packed capture: give the "
                       "capture that the process writes, or its number to prof level",
                       path);
  if (header->state == PROF_I_STATE_COPIED) return refuse_capture_copy(path);
  if (header->state == PROF_I_STATE_STOPPED)
    return prof_i_fail(PROF_E_NOT_RUNNING, "recording into %s was stopped", path);
  const prof_i_process_state life = prof_i_process_state_of(header);
  if (life == PROF_I_PROCESS_ENDED)
    return prof_i_fail(PROF_E_NOT_RUNNING, "the process that recorded into %s (pid %u) is gone",
                       path, header->pid);
  return life == PROF_I_PROCESS_RUNS && prof_i_source_is_copy(fd, header)
             ? refuse_capture_copy(path)
             : PROF_OK;
}

static uint64_t *change_made_ns(prof_i_header *header, const prof_i_level_change *change) {
  return &header->level_change_made[change - header->level_changes];
}

/* Writes the change into the header before it changes the level, so that the process never sees a
   level without its change. */
static prof_i_level_change *write_change(prof_i_header *header, uint32_t before, uint32_t after) {
  const uint64_t number = __atomic_add_fetch(&header->level_change_count, 1, __ATOMIC_SEQ_CST);
  prof_i_level_change *const change = &header->level_changes[(number - 1) % PROF_I_LEVEL_CHANGES];
  __atomic_store_n(&change->number, 0, __ATOMIC_SEQ_CST);
  __atomic_store_n(change_made_ns(header, change), number << 1, __ATOMIC_SEQ_CST);
  __atomic_store_n(&change->monotonic_ns, prof_i_port_monotonic_ns(), __ATOMIC_RELAXED);
  __atomic_store_n(&change->levels, before | (uint64_t)after << 32, __ATOMIC_RELAXED);
  __atomic_store_n(&change->number, number, __ATOMIC_SEQ_CST);
  return change;
}

/* Not if 64 later changes exist, because one of them has reused the entry. */
static void mark_change_made(prof_i_header *header, const prof_i_level_change *change) {
  uint64_t told = __atomic_load_n(&change->number, __ATOMIC_RELAXED) << 1;
  __atomic_compare_exchange_n(change_made_ns(header, change), &told, told | 1, false,
                              __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

/* Returns the previous level. *told: the change, or NULL. */
static uint32_t set_level_and_write(prof_i_header *header, uint32_t level,
                                    prof_i_level_change **told) {
  uint32_t before = __atomic_load_n(&header->level, __ATOMIC_SEQ_CST);
  *told = before == level ? NULL : write_change(header, before, level);
  while (!__atomic_compare_exchange_n(&header->level, &before, level, false, __ATOMIC_SEQ_CST,
                                      __ATOMIC_SEQ_CST)) {
    /* another was faster */
    if (*told)
      __atomic_store_n(&(*told)->levels, before | (uint64_t)level << 32, __ATOMIC_RELAXED);
    else if (before != level)
      *told = write_change(header, before, level);
  }
  if (*told) mark_change_made(header, *told);
  return before;
}

static int switch_level(int fd, const char *path, uint32_t level, int *before_out) {
  prof_i_header *const header =
      mmap(NULL, PROF_I_HEADER_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (header == MAP_FAILED) return level_fail_errno(path);
  prof_i_level_change *told;
  const uint32_t before = set_level_and_write(header, level, &told);
  const bool is_late = !__atomic_load_n(&header->state, __ATOMIC_SEQ_CST);
  uint32_t ours = level, none = 0;
  if (is_late &&
      __atomic_compare_exchange_n(&header->level, &ours, 0, false, __ATOMIC_SEQ_CST,
                                  __ATOMIC_RELAXED) &&
      /* the process has just started again, at this level */
      __atomic_load_n(&header->state, __ATOMIC_SEQ_CST))
    __atomic_compare_exchange_n(&header->level, &none, level, false, __ATOMIC_SEQ_CST,
                                __ATOMIC_RELAXED);
  if (is_late && told) __atomic_store_n(&told->levels, 0, __ATOMIC_RELAXED);
  munmap(header, PROF_I_HEADER_BYTES);
  if (is_late) return prof_i_fail(PROF_E_NOT_RUNNING, "recording into %s was stopped", path);
  if (before_out) *before_out = (int)before;
  return PROF_OK;
}

int prof_trace_set_level(const char *path, int level, int *before_out) {
  PROF_I_DISABLE_CANCEL;
  int fd = -1;
  if (!path) return prof_i_fail(PROF_E_INVALID, "prof_trace_set_level: path is NULL");
  if (level < 0 || level > 2)
    return prof_i_fail(PROF_E_LEVEL, "the level is %d; it must be 0 (off), 1 or 2", level);
  int status = open_capture_file(path, &fd);
  if (status == PROF_OK) status = check_capture(path, fd);
  if (status == PROF_OK) status = switch_level(fd, path, (uint32_t)level, before_out);
  if (fd >= 0) close(fd);
  return status;
}
