/* Where a trace's bytes come from: the caller's memory, or a file. A file that its process still
   writes to is copied as a snapshot. A small finished one is read: later changes of the file do not
   matter. A large one, or one of many, is mapped: if it is truncated meanwhile, the reader gets
   SIGBUS. Only regular files are opened: no FIFO may block us, no device may act. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <prof/profiler.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../base/log.h"
#include "../base/port.h"
#include "../core/buffer/blocks.h"
#include "../core/buffer/pin.h"
#include "../core/session/rivals.h"
#include "capture.h"

/* A process has 65530 mappings, and traces may be held for long: of all of them together so many
   runs are mapped, the rest is copied. */
enum { RUNS_MAX = 8192 };
static uint32_t runs_mapped; /* any thread, relaxed */
static uint64_t bytes_held;  /* the same */

bool prof_i_source_begin_run(void) {
  if (__atomic_fetch_add(&runs_mapped, 1, __ATOMIC_RELAXED) < RUNS_MAX) return true;
  __atomic_fetch_sub(&runs_mapped, 1, __ATOMIC_RELAXED);
  return false;
}

static const prof_i_kept_head *first_kept_from(const prof_i_source *source, uint64_t offset) {
  uint32_t low = 0, high = source->head_count;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (source->heads[middle].offset < offset)
      low = middle + 1;
    else
      high = middle;
  }
  return low < source->head_count ? &source->heads[low] : NULL;
}

const prof_i_head *prof_i_source_head(const prof_i_source *source, uint64_t offset) {
  const prof_i_kept_head *const kept = first_kept_from(source, offset);
  return kept && kept->offset == offset
             ? &kept->head
             : (const prof_i_head *)(const void *)(source->bytes + offset);
}

const unsigned char *prof_i_source_chunk(const prof_i_source *source, uint64_t offset) {
  const prof_i_kept_head *const kept = first_kept_from(source, offset);
  return kept && kept->offset == offset ? kept->at : source->bytes + offset;
}

bool prof_i_source_is_shared(const prof_i_source *source, uint64_t offset) {
  const prof_i_kept_head *const kept = first_kept_from(source, offset);
  return kept && kept->offset == offset;
}

static bool is_in_place(const prof_i_source *source, const unsigned char *at) {
  return source->in_place && at >= source->in_place &&
         at < source->in_place + source->in_place_bytes;
}

uint64_t prof_i_source_offset(const prof_i_source *source, const void *at) {
  const unsigned char *const byte = at;
  return (uint64_t)(byte - (is_in_place(source, byte) ? source->in_place : source->bytes));
}

/* The chunk with a kept head that has this offset behind it; NULL: none. */
static const prof_i_kept_head *kept_around(const prof_i_source *source,
                                           const prof_i_kept_head *next, uint64_t offset) {
  const prof_i_kept_head *const before = next ? next : source->heads + source->head_count;
  if (before == source->heads) return NULL;
  return offset < before[-1].offset + before[-1].head.bytes ? &before[-1] : NULL;
}

const void *prof_i_source_piece(const prof_i_source *source, uint64_t offset, uint64_t *count_out) {
  const prof_i_kept_head *const kept = first_kept_from(source, offset);
  if (kept && kept->offset == offset) {
    *count_out = sizeof kept->head;
    return &kept->head;
  }
  const prof_i_kept_head *const around = kept_around(source, kept, offset);
  const uint64_t end = around ? around->offset + around->head.bytes
                       : kept ? kept->offset
                              : source->count;
  *count_out = end - offset;
  return around ? around->at + (offset - around->offset) : source->bytes + offset;
}

void prof_i_source_fini(prof_i_source *source) {
  if (source->head_count) __atomic_fetch_sub(&runs_mapped, source->run_count, __ATOMIC_RELAXED);
  free(source->heads);
  void *const bytes = (void *)(uintptr_t)source->bytes;
  if (source->kind == PROF_I_SOURCE_COPY) free(bytes);
  __atomic_fetch_sub(&bytes_held, source->held_bytes, __ATOMIC_RELAXED);
  if (source->kind == PROF_I_SOURCE_MAPPING && bytes)
    prof_i_port_unmap(bytes, (size_t)source->count);
  prof_i_arena_end_lease(source->lease);
  free(source->runs);
  *source = (prof_i_source){.kind = PROF_I_SOURCE_BORROWED};
}

static const prof_i_run *run_at(const prof_i_source *source, uint64_t offset) {
  uint32_t low = 0, high = source->run_count;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    const prof_i_run *const run = &source->runs[middle];
    if (offset < run->offset)
      high = middle;
    else if (offset >= run->offset + run->bytes)
      low = middle + 1;
    else
      return run;
  }
  return NULL;
}

void prof_i_source_done_with(const prof_i_source *source, const void *from, uint64_t bytes) {
  enum { PAGE_BYTES = 4096 };
  if (source->run_count == 0 || source->count < PROF_I_LARGE_BYTES || is_in_place(source, from))
    return;
  const uint64_t offset = (uint64_t)((const unsigned char *)from - source->bytes),
                 end = (offset + bytes) & ~(uint64_t)(PAGE_BYTES - 1);
  uint64_t first = (offset + PAGE_BYTES - 1) & ~(uint64_t)(PAGE_BYTES - 1);
  const prof_i_run *run = run_at(source, first);
  if (!run) run = run_at(source, first += PAGE_BYTES); /* a chunk's first page is the trace's own */
  if (!run) return;
  const uint64_t last = end < run->offset + run->bytes ? end : run->offset + run->bytes;
  if (last > first)
    madvise((void *)(uintptr_t)(source->bytes + first), (size_t)(last - first), MADV_DONTNEED);
}

/* The memory of another process, by /proc/PID/map_files or a copy of that, lacks what lies
   in private memory. Its first block is shared; in a file these bytes are zeros. */
static bool lacks_private_blocks(const unsigned char *first_unit) {
  const unsigned char *const states = first_unit + PROF_I_HEADER_BYTES;
  return states[0] == PROF_I_BLOCK_SHARED &&
         memchr(states, PROF_I_BLOCK_PRIVATE, PROF_I_BLOCK_COUNT_MAX) != NULL;
}

static int refuse_memory(const unsigned char *first_unit, const char *what) {
  prof_i_header header;
  memcpy(&header, first_unit, sizeof header);
  return prof_i_fail(PROF_E_NOT_CAPTURE,
                     "%s is a part of the memory of process %u, which records without a file; only "
                     "that process has the rest: let it call prof_dump(), or record to a file",
                     what, header.pid);
}

int prof_i_source_bytes(prof_i_source *source, const void *bytes, size_t count) {
  if (count >= PROF_I_FIRST_UNIT_OFFSET && lacks_private_blocks(bytes))
    return refuse_memory(bytes, "what was given");
  *source = (prof_i_source){.bytes = bytes, .count = count, .kind = PROF_I_SOURCE_BORROWED};
  if ((uintptr_t)bytes % sizeof(uint64_t) == 0) return PROF_OK;
  unsigned char *const copy = malloc(count ? count : 1); /* records are read by words */
  if (!copy)
    return prof_i_fail(PROF_E_NO_MEMORY, "no memory for a copy of %zu bytes that are not aligned",
                       count);
  memcpy(copy, bytes, count);
  *source = (prof_i_source){.bytes = copy, .count = count, .kind = PROF_I_SOURCE_COPY};
  return PROF_OK;
}

/* ---- files ---- */

static int fail_errno(const char *what, const char *path) {
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

/* Opening a device may already do something, so its type is asked for first. */
static int open_regular(const char *path, int *fd_out, uint64_t *bytes_out) {
  struct stat about;
  if (stat(path, &about) != 0) return fail_errno("cannot open", path);
  if (!S_ISREG(about.st_mode)) return refuse_type(path, about.st_mode);
  const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (fd < 0) return fail_errno("cannot open", path);
  if (fstat(fd, &about) != 0 || !S_ISREG(about.st_mode)) {
    close(fd);
    return refuse_type(path, about.st_mode);
  }
  *fd_out = fd;
  *bytes_out = (uint64_t)about.st_size;
  return PROF_OK;
}

/* Reads up to count bytes from the begin; a file that became shorter gives fewer. -1: errno says
   why. */
static int64_t read_from_begin(int fd, unsigned char *to, uint64_t count) {
  uint64_t done = 0;
  while (done < count) {
    const ssize_t got = pread(fd, to + done, (size_t)(count - done), (off_t)done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return -1;
    if (got == 0) break;
    done += (uint64_t)got;
  }
  return (int64_t)done;
}

static int read_whole(prof_i_source *source, int fd, uint64_t bytes, const char *path) {
  unsigned char *const copy = malloc(bytes ? (size_t)bytes : 1);
  if (!copy)
    return prof_i_fail(PROF_E_NO_MEMORY, "no memory for the %llu bytes of %s",
                       (unsigned long long)bytes, path);
  const int64_t count = read_from_begin(fd, copy, bytes);
  if (count < 0) {
    const int status = fail_errno("cannot read", path);
    free(copy);
    return status;
  }
  *source = (prof_i_source){.bytes = copy, .count = (uint64_t)count, .kind = PROF_I_SOURCE_COPY};
  return PROF_OK;
}

static int map_whole(prof_i_source *source, int fd, uint64_t bytes, const char *path) {
  void *const at = mmap(NULL, (size_t)bytes, PROT_READ, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) return fail_errno("cannot map", path);
  *source = (prof_i_source){.bytes = at, .count = bytes, .kind = PROF_I_SOURCE_MAPPING};
  /* else its pages stay */
  if (prof_i_make_room((void **)&source->runs, &source->run_room, 0, sizeof *source->runs))
    source->runs[source->run_count++] = (prof_i_run){0, bytes};
  return PROF_OK;
}

static uint64_t bytes_now(const prof_i_live *live) {
  struct stat about;
  return fstat(live->fd, &about) == 0 ? (uint64_t)about.st_size : 0;
}

/* Room behind its end, too, where this process may have that much: it may grow while it is
   copied. */
static int copy_live(prof_i_source *source, int fd, uint64_t bytes, const char *path) {
  uint64_t room = bytes + PROF_I_GROWTH_BYTES;
  void *at = mmap(NULL, (size_t)room, PROT_READ, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) at = mmap(NULL, (size_t)(room = bytes), PROT_READ, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) return fail_errno("cannot map", path);
  const int status = prof_i_source_snapshot(
      source, &(prof_i_live){.bytes = at, .room = room, .bytes_now = bytes_now, .fd = fd}, false);
  prof_i_port_unmap(at, (size_t)room);
  return status;
}

/* Zeros where its process's clock is not this one's, or nobody records into the file: it may be a
   plain copy, whose original is recorded. */
static prof_i_clock_reading read_clock(int fd, const prof_i_header *header) {
  if (prof_i_rivals_lock_of(fd) == PROF_I_LOCK_NONE || !prof_i_life_shares_clock(header))
    return (prof_i_clock_reading){.monotonic_ns = 0};
  return prof_i_clock_read(header->clock);
}

/* While a process records into a file it holds a lock on it, and maps it: if it has closed the
   descriptor, it maps it still. */
bool prof_i_source_is_copy(int fd, const prof_i_header *header) {
  return header->state == PROF_I_STATE_RECORDING && prof_i_rivals_lock_of(fd) == PROF_I_LOCK_NONE &&
         prof_i_life_lacks_file(header, fd);
}

static bool may_hold(uint64_t bytes) {
  if (bytes == 0) return true;
  if (bytes > PROF_I_LARGE_BYTES) return false;
  if (__atomic_add_fetch(&bytes_held, bytes, __ATOMIC_RELAXED) <= PROF_I_HELD_BYTES) return true;
  __atomic_fetch_sub(&bytes_held, bytes, __ATOMIC_RELAXED);
  return false;
}

static int read_or_map(prof_i_source *source, int fd, uint64_t bytes, const char *path) {
  if (!may_hold(bytes)) return map_whole(source, fd, bytes, path);
  const int status = read_whole(source, fd, bytes, path);
  if (status == PROF_OK)
    source->held_bytes = bytes;
  else
    __atomic_fetch_sub(&bytes_held, bytes, __ATOMIC_RELAXED);
  return status;
}

static int open_source(prof_i_source *source, int fd, uint64_t bytes, const char *path) {
  unsigned char first_unit[PROF_I_FIRST_UNIT_OFFSET] = {0};
  if (read_from_begin(fd, first_unit, sizeof first_unit) < 0)
    return fail_errno("cannot read", path);
  if (lacks_private_blocks(first_unit)) return refuse_memory(first_unit, path);
  prof_i_header header;
  memcpy(&header, first_unit, sizeof header);
  /* First: a process that is alive after that was so at the reading. */
  const prof_i_clock_reading opened = read_clock(fd, &header);
  const prof_i_process_life its =
      bytes < PROF_I_FIRST_UNIT_OFFSET ? PROF_I_LIFE_OVER : prof_i_life_of(&header);
  int status;
  if (its == PROF_I_LIFE_OVER || header.state == PROF_I_STATE_COPIED ||
      (its == PROF_I_LIFE_UNKNOWN && header.state == PROF_I_STATE_STOPPED)) {
    status = read_or_map(source, fd, bytes, path);
  } else {
    status = copy_live(source, fd, bytes, path);
  }
  if (status == PROF_OK) source->is_elsewhere = its == PROF_I_LIFE_UNKNOWN;
  if (status == PROF_OK && its == PROF_I_LIFE_RUNS) source->opened = opened;
  if (status == PROF_OK && its == PROF_I_LIFE_RUNS)
    source->is_copied = prof_i_source_is_copy(fd, &header);
  return status;
}

int prof_i_source_file(prof_i_source *source, const char *path) {
  int fd = -1;
  uint64_t bytes = 0;
  int status = open_regular(path, &fd, &bytes);
  if (status) return status;
  status = open_source(source, fd, bytes, path);
  close(fd);
  return status;
}
