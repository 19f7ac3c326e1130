/* Opens a capture file. A file that its process still writes to is copied as a snapshot. A small
   finished file is read, so later changes do not matter. A large one, or one of many, is mapped: if
   it is truncated then, the reader gets SIGBUS. Only regular files are opened, because a FIFO may
   block, and a device may act.

   Also switches the level of the process that records, through its capture file. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <prof/trace.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../base/error.h"
#include "../base/port.h"
#include "../base/process.h"
#include "../base/text.h"
#include "../core/buffer/capture_file.h"
#include "../core/buffer/clock.h"
#include "../reader/capture.h"
#include "live.h"

/* ---- the process that records ---- */

typedef enum process_state { PROCESS_ENDED, PROCESS_RUNS, PROCESS_UNKNOWN } process_state;

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
  struct stat own_namespace, its_namespace;
  snprintf(path, sizeof path, "/proc/%u/ns/time", pid);
  return stat("/proc/self/ns/time", &own_namespace) == 0 && stat(path, &its_namespace) == 0 &&
         (own_namespace.st_dev != its_namespace.st_dev ||
          own_namespace.st_ino != its_namespace.st_ino);
}

static process_state life_of_process(uint32_t pid, uint64_t start) {
  char fields[1024];
  if (!read_stat(pid, fields, sizeof fields)) {
    /* /proc may be hidden. If in doubt the process is alive, so that its work is not lost. */
    const bool is_there = kill((pid_t)pid, 0) == 0 || errno == EPERM;
    return is_there ? PROCESS_RUNS : PROCESS_ENDED;
  }
  /* no thread is left */
  const bool is_zombie = (fields[0] == 'Z' || fields[0] == 'X') && stat_field(fields, 20) <= 1;
  if (is_zombie) return PROCESS_ENDED;
  if (stat_field(fields, 22) == start) return PROCESS_RUNS;
  return has_other_clock(pid) ? PROCESS_UNKNOWN : PROCESS_ENDED;
}

static bool is_this_host(const prof_i_header *header) {
  char host[sizeof header->host] = "";
  gethostname(host, sizeof host - 1);
  return strncmp(host, header->host, sizeof host - 1) == 0;
}

/* A pid is valid only on the same host, in the same boot and name space. Processes of an earlier
   boot have ended. */
static process_state process_state_of(const prof_i_header *header) {
  char boot_id[sizeof header->boot_id];
  if (header->magic != PROF_I_MAGIC || header->pid == 0 || header->pid > INT32_MAX)
    return PROCESS_ENDED;
  prof_i_port_boot_id(boot_id, sizeof boot_id);
  const bool same_boot =
      !header->boot_id[0] || strncmp(boot_id, header->boot_id, sizeof boot_id - 1) == 0;
  if (!same_boot) return is_this_host(header) ? PROCESS_ENDED : PROCESS_UNKNOWN;
  if (header->namespace_pid != prof_i_port_pid_namespace()) return PROCESS_UNKNOWN;
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

/* Whether a running process certainly does not map that file. Then the file is a copy. On some file
   systems a mapping has another inode number than the file, so the file's name counts, too. */
static bool process_lacks_file(const prof_i_header *header, int fd) {
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

/* Whether a running process has the CLOCK_MONOTONIC of this process. False: its time namespace is
   another one, or unknown. */
static bool process_shares_clock(const prof_i_header *header) {
  char path[64];
  struct stat own_namespace, its_namespace;
  if (stat("/proc/self/ns/time", &own_namespace) != 0) return true; /* a kernel that has none */
  snprintf(path, sizeof path, "/proc/%u/ns/time", header->pid);
  return stat(path, &its_namespace) == 0 && own_namespace.st_dev == its_namespace.st_dev &&
         own_namespace.st_ino == its_namespace.st_ino;
}

/* ---- the file ---- */

int prof_i_file_fail_errno(const char *what, const char *path) {
  const int error = errno;
  return prof_i_fail(prof_i_status_of_errno(error), "%s %s: %s", what, path, strerror(error));
}

static int refuse_type(const char *path, mode_t mode) {
  const char *const what = S_ISDIR(mode)    ? "a directory"
                           : S_ISFIFO(mode) ? "a pipe"
                           : S_ISSOCK(mode) ? "a socket"
                                            : "a device";
  return prof_i_fail(PROF_E_FILE_TYPE, "%s is %s; a capture is a regular file%s", path, what,
                     S_ISDIR(mode) ? ": prof recover looks into directories" : "");
}

/* Opening a device may have effects, so the type is checked first. */
static int open_regular(const char *path, int *fd_out) {
  struct stat about;
  if (stat(path, &about) != 0) return prof_i_file_fail_errno("cannot open", path);
  if (!S_ISREG(about.st_mode)) return refuse_type(path, about.st_mode);
  const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (fd < 0) return prof_i_file_fail_errno("cannot open", path);
  int status = PROF_OK;
  if (fstat(fd, &about) != 0)
    status = prof_i_file_fail_errno("cannot examine", path);
  else if (!S_ISREG(about.st_mode))
    status = refuse_type(path, about.st_mode);
  if (status) {
    close(fd);
    return status;
  }
  *fd_out = fd;
  return PROF_OK;
}

/* Reads up to count bytes. Fewer if the file was truncated. -1: see errno. */
static int64_t read_bytes(const prof_i_capture_bytes *of, unsigned char *to, uint64_t count) {
  uint64_t done = 0;
  while (done < count) {
    const ssize_t got =
        pread(of->fd, to + done, (size_t)(count - done), (off_t)(of->offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return -1;
    if (got == 0) break;
    done += (uint64_t)got;
  }
  return (int64_t)done;
}

static int read_whole(prof_i_source *source, const prof_i_capture_bytes *of, const char *path) {
  unsigned char *const copy = malloc(of->bytes ? (size_t)of->bytes : 1);
  if (!copy)
    return prof_i_fail(PROF_E_NO_MEMORY, "no memory for the %llu bytes of %s",
                       (unsigned long long)of->bytes, path);
  const int64_t count = read_bytes(of, copy, of->bytes);
  if (count < 0) {
    const int status = prof_i_file_fail_errno("cannot read", path);
    free(copy);
    return status;
  }
  *source = (prof_i_source){.bytes = copy, .count = (uint64_t)count, .kind = PROF_I_SOURCE_COPY};
  return PROF_OK;
}

/* A mapping must begin at a page of the system, which may be larger than a page of a merged
   capture. */
static int map_whole(prof_i_source *source, const prof_i_capture_bytes *of, const char *path) {
  const uint64_t lead = of->offset % (uint64_t)sysconf(_SC_PAGESIZE);
  unsigned char *const at = mmap(NULL, (size_t)(of->bytes + lead), PROT_READ, MAP_SHARED, of->fd,
                                 (off_t)(of->offset - lead));
  if (at == MAP_FAILED) return prof_i_file_fail_errno("cannot map", path);
  *source = (prof_i_source){
      .bytes = at + lead, .count = of->bytes, .kind = PROF_I_SOURCE_MAPPING, .lead_bytes = lead};
  /* else its pages stay */
  if (prof_i_make_room((void **)&source->runs, &source->run_room, 0, sizeof *source->runs))
    source->runs[source->run_count++] = (prof_i_mapped_run){0, of->bytes};
  return PROF_OK;
}

static uint64_t live_bytes_now(const prof_i_live_source *live) {
  struct stat about;
  return fstat(live->fd, &about) == 0 ? (uint64_t)about.st_size : 0;
}

/* Maps room after its end, too, if possible, because the file may grow during the copy. */
static int copy_live_file(prof_i_source *source, int fd, uint64_t bytes, const char *path) {
  uint64_t room = bytes + PROF_I_ARENA_GROWTH_BYTES;
  void *at = mmap(NULL, (size_t)room, PROT_READ, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) at = mmap(NULL, (size_t)(room = bytes), PROT_READ, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) return prof_i_file_fail_errno("cannot map", path);
  const int status = prof_i_source_snapshot(
      source,
      &(prof_i_live_source){.bytes = at, .room = room, .live_bytes_now = live_bytes_now, .fd = fd},
      false);
  prof_i_port_unmap(at, (size_t)room);
  return status;
}

/* Zeros if its process has another clock, or does not record into this file: it may be a copy of
   the file that it records into. */
static prof_i_clock_reading read_clock_of_capture(int fd, const prof_i_header *header) {
  if (prof_i_output_claim_lock_state(fd) == PROF_I_LOCK_NONE || !process_shares_clock(header))
    return (prof_i_clock_reading){.monotonic_ns = 0};
  return prof_i_clock_read(header->clock);
}

/* Whether a running process records into another file. A recording process holds a lock on its
   file, and maps it. If it closed the descriptor, the mapping remains. */
static bool source_is_copy(int fd, const prof_i_header *header) {
  return header->state == PROF_I_STATE_RECORDING &&
         prof_i_output_claim_lock_state(fd) == PROF_I_LOCK_NONE && process_lacks_file(header, fd);
}

static int read_or_map(prof_i_source *source, const prof_i_capture_bytes *of, const char *path) {
  if (!prof_i_source_hold(of->bytes)) return map_whole(source, of, path);
  const int status = read_whole(source, of, path);
  if (status == PROF_OK)
    source->counted_bytes = of->bytes;
  else
    prof_i_source_let_go(of->bytes);
  return status;
}

/* Reads the header once, so that all decisions use the same bytes. A process that starts stores the
   magic last. Before that, the header names no process, and the file is not yet a capture. When the
   magic is there, the file has its final header size. A part's size is known. */
static int read_header(prof_i_capture_bytes *of, const char *path, prof_i_header *header_out) {
  unsigned char first_unit[PROF_I_FIRST_UNIT_OFFSET] = {0};
  struct stat about;
  const bool is_short = of->is_part && of->bytes < sizeof first_unit;
  const int64_t count = read_bytes(of, first_unit, is_short ? of->bytes : sizeof first_unit);
  if (count < 0) return prof_i_file_fail_errno("cannot read", path);
  const int check = prof_i_source_check_memory(first_unit, path);
  if (check) return check;
  const int status = prof_i_header_detect(first_unit, (uint64_t)count, header_out);
  if (status) return prof_i_fail_in(path, status);
  if (of->is_part) return PROF_OK;
  if (fstat(of->fd, &about) != 0) return prof_i_file_fail_errno("cannot examine", path);
  of->bytes = (uint64_t)about.st_size;
  return PROF_OK;
}

/* Whether no process writes to these bytes any more. Nobody records into a part, or into a packed
   capture. */
static bool is_finished(const prof_i_capture_bytes *of, const prof_i_header *header,
                        process_state state) {
  return of->is_part || state == PROCESS_ENDED || header->state == PROF_I_STATE_COPIED ||
         header->version == PROF_I_PACKED_VERSION ||
         (state == PROCESS_UNKNOWN && header->state == PROF_I_STATE_STOPPED);
}

static process_state process_of(const prof_i_capture_bytes *of, const prof_i_header *header) {
  return of->bytes < PROF_I_FIRST_UNIT_OFFSET ? PROCESS_ENDED : process_state_of(header);
}

static int open_source(prof_i_source *source, prof_i_capture_bytes *of, const char *path) {
  prof_i_header header;
  int status = read_header(of, path, &header);
  if (status) return status;
  /* Read first: a process that is alive afterwards was alive at this time. */
  prof_i_clock_reading opened = {.monotonic_ns = 0};
  if (!of->is_part) opened = read_clock_of_capture(of->fd, &header);
  const process_state state = process_of(of, &header);
  status = is_finished(of, &header, state) ? read_or_map(source, of, path)
                                           : copy_live_file(source, of->fd, of->bytes, path);
  if (status == PROF_OK) source->is_elsewhere = state == PROCESS_UNKNOWN;
  if (status != PROF_OK || state != PROCESS_RUNS || of->is_part) return status;
  source->opened = opened;
  source->is_copied = source_is_copy(of->fd, &header);
  return PROF_OK;
}

/* ---- merged captures ---- */

static int choose_part(prof_i_capture_bytes *of, const prof_i_part *part) {
  of->is_part = true;
  of->offset = part->offset;
  of->bytes = part->bytes;
  return PROF_OK;
}

/* A merged capture with one part is read as this part. */
static int check_one_part(prof_i_capture_bytes *of, const prof_i_parts *parts, const char *path) {
  if (!parts->is_merged) return PROF_OK;
  if (parts->count == 0)
    return prof_i_fail(PROF_E_TRUNCATED,
                       "%s is a merged capture, and none of its captures can be read", path);
  if (parts->all_count == 1) return choose_part(of, &parts->items[0]);
  return prof_i_fail(PROF_E_INVALID,
                     "%s has %u captures of several processes (prof merge): open one of them, from "
                     "%s#1 to %s#%u",
                     path, parts->all_count, path, path, parts->all_count);
}

static int find_part(prof_i_capture_bytes *of, const prof_i_parts *parts, uint32_t number,
                     const char *path, const char *file) {
  if (!parts->is_merged)
    return prof_i_fail(PROF_E_NOT_FOUND,
                       "cannot open %s: there is no such file, and %s is one "
                       "capture, without parts",
                       path, file);
  for (uint32_t i = 0; i < parts->count; i++)
    if (parts->items[i].number == number) return choose_part(of, &parts->items[i]);
  return prof_i_fail(PROF_E_NOT_FOUND,
                     "cannot open %s: %u captures of %s can be read, but not this one", path,
                     parts->count, file);
}

int prof_i_capture_bytes_open(const char *path, prof_i_capture_bytes *bytes_out) {
  char file[PROF_I_PATH_BYTES];
  uint32_t number = 0;
  prof_i_parts parts;
  *bytes_out = (prof_i_capture_bytes){.fd = -1};
  int status = open_regular(path, &bytes_out->fd);
  const bool is_part =
      status == PROF_E_NOT_FOUND && prof_i_part_path_split(path, file, sizeof file, &number);
  if (is_part && open_regular(file, &bytes_out->fd) == PROF_OK) status = PROF_OK;
  if (status != PROF_OK) return status;
  status = prof_i_parts_find(bytes_out->fd, path, &parts);
  if (status == PROF_OK)
    status = is_part ? find_part(bytes_out, &parts, number, path, file)
                     : check_one_part(bytes_out, &parts, path);
  prof_i_parts_fini(&parts);
  if (status != PROF_OK) close(bytes_out->fd);
  return status;
}

int prof_i_capture_bytes_look(prof_i_capture_bytes *of, const char *path, prof_i_header *header_out,
                              bool *is_finished_out) {
  const int status = read_header(of, path, header_out);
  if (status == PROF_OK) *is_finished_out = is_finished(of, header_out, process_of(of, header_out));
  return status;
}

static int source_file(prof_i_source *source, const char *path) {
  prof_i_capture_bytes of;
  int status = prof_i_capture_bytes_open(path, &of);
  if (status) return status;
  status = open_source(source, &of, path);
  close(of.fd);
  return status;
}

int prof_trace_open(const char *path, prof_trace **trace_out) {
  PROF_I_DEFAULT_FP;
  PROF_I_DISABLE_CANCEL;
  PROF_I_REFUSE_INTERRUPTED(PROF_E_BUSY);
  PROF_I_INSIDE;
  if (!path || !trace_out)
    return prof_i_fail(PROF_E_INVALID, "prof_trace_open: %s is NULL", path ? "trace_out" : "path");
  prof_i_source source;
  int status = source_file(&source, path);
  if (status) return status;
  status = prof_i_trace_make(&source, trace_out);
  return status ? prof_i_fail_in(path, status) : PROF_OK;
}

/* ---- the level of the process that records ---- */

static int level_fail_errno(const char *path) {
  const int error = errno;
  return prof_i_fail(prof_i_status_of_errno(error), "cannot switch %s: %s", path, strerror(error));
}

/* Does not follow a symbolic link, because its target may be a file that must not be changed. */
static int open_capture_file(const char *path, int *fd_out) {
  struct stat about;
  const int fd = open(path, O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW);
  if (fd < 0 && (errno == EISDIR || errno == ENXIO))
    return prof_i_fail(PROF_E_FILE_TYPE, "%s is not a regular file; a capture is one", path);
  if (fd < 0 && errno == ELOOP)
    return prof_i_fail(PROF_E_FILE_TYPE, "%s is a symbolic link; give the capture that it leads to",
                       path);
  if (fd < 0 && errno == ETXTBSY)
    return prof_i_fail(PROF_E_NOT_CAPTURE, "%s is a running program, not a capture", path);
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
  prof_i_header checked;
  const prof_i_header *const header = &checked;
  const ssize_t count = pread(fd, bytes, sizeof bytes, 0);
  if (count < 0) return level_fail_errno(path);
  const int status = prof_i_header_detect(bytes, (uint64_t)count, &checked);
  if (status) return prof_i_fail_in(path, status);
  if (header->version == PROF_I_PACKED_VERSION)
    return prof_i_fail(PROF_E_NOT_RUNNING,
                       "%s is packed, and no process records into a packed capture: give the "
                       "capture that the process writes, or its number to prof level",
                       path);
  if (header->state == PROF_I_STATE_COPIED) return refuse_capture_copy(path);
  if (header->state == PROF_I_STATE_STOPPED)
    return prof_i_fail(PROF_E_NOT_RUNNING, "recording into %s was stopped", path);
  const process_state life = process_state_of(header);
  if (life == PROCESS_ENDED)
    return prof_i_fail(PROF_E_NOT_RUNNING, "the process that recorded into %s (pid %u) is gone",
                       path, header->pid);
  return life == PROCESS_RUNS && source_is_copy(fd, header) ? refuse_capture_copy(path) : PROF_OK;
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
  uint64_t expected = __atomic_load_n(&change->number, __ATOMIC_RELAXED) << 1;
  __atomic_compare_exchange_n(change_made_ns(header, change), &expected, expected | 1, false,
                              __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

/* Returns the previous level. *change_out: the change, or NULL. */
static uint32_t set_level_and_write(prof_i_header *header, uint32_t level,
                                    prof_i_level_change **change_out) {
  uint32_t before = __atomic_load_n(&header->level, __ATOMIC_SEQ_CST);
  *change_out = before == level ? NULL : write_change(header, before, level);
  while (!__atomic_compare_exchange_n(&header->level, &before, level, false, __ATOMIC_SEQ_CST,
                                      __ATOMIC_SEQ_CST)) {
    /* another was faster */
    if (*change_out)
      __atomic_store_n(&(*change_out)->levels, before | (uint64_t)level << 32, __ATOMIC_RELAXED);
    else if (before != level)
      *change_out = write_change(header, before, level);
  }
  if (*change_out) mark_change_made(header, *change_out);
  return before;
}

static int switch_level(int fd, const char *path, uint32_t level, int *before_out) {
  prof_i_header *const header =
      mmap(NULL, PROF_I_HEADER_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (header == MAP_FAILED) return level_fail_errno(path);
  prof_i_level_change *change;
  const uint32_t before = set_level_and_write(header, level, &change);
  const bool is_late = !__atomic_load_n(&header->state, __ATOMIC_SEQ_CST);
  uint32_t ours = level, none = 0;
  if (is_late &&
      __atomic_compare_exchange_n(&header->level, &ours, 0, false, __ATOMIC_SEQ_CST,
                                  __ATOMIC_RELAXED) &&
      /* the process has just started again, at this level */
      __atomic_load_n(&header->state, __ATOMIC_SEQ_CST))
    __atomic_compare_exchange_n(&header->level, &none, level, false, __ATOMIC_SEQ_CST,
                                __ATOMIC_RELAXED);
  if (is_late && change) __atomic_store_n(&change->levels, 0, __ATOMIC_RELAXED);
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
