/* Finds the parts of merged captures. See live.h. The file is untrusted: a head is valid only if
   its check matches and it is at the offset that it holds. */
#define _GNU_SOURCE
#include "live.h"

#include <errno.h>
#include <fcntl.h>
#include <prof/trace.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../base/error.h"
#include "../base/port.h"
#include "../base/process.h"
#include "../base/text.h"
#include "../reader/capture.h"

/* Returns the number of bytes that were read, or -1 with errno. */
static ssize_t read_at(int fd, void *to, size_t count, uint64_t offset) {
  ssize_t got;
  do got = pread(fd, to, count, (off_t)offset);
  while (got < 0 && errno == EINTR);
  return got;
}

/* Adds a part. A part without its whole header page cannot be read, and counts as lost. */
static int add_part(prof_i_parts *parts, const prof_i_part_head *head, uint64_t there) {
  const prof_i_part part = {.offset = head->offset + PROF_I_MERGED_PAGE_BYTES,
                            .bytes = head->bytes < there ? head->bytes : there,
                            .number = head->number};
  if (part.bytes < PROF_I_HEADER_BYTES) return PROF_OK;
  if (!prof_i_make_room((void **)&parts->items, &parts->room, parts->count, sizeof *parts->items))
    return prof_i_fail(PROF_E_NO_MEMORY, "no memory for the %u parts of a merged capture",
                       parts->count);
  parts->items[parts->count++] = part;
  return PROF_OK;
}

/* Goes from head to head. After a damaged head, searches for the next one page by page. */
static int walk_heads(int fd, const char *path, uint64_t count, prof_i_parts *parts) {
  const uint64_t page = PROF_I_MERGED_PAGE_BYTES;
  uint32_t next_number = 0;
  int status = PROF_OK;
  for (uint64_t at = page; status == PROF_OK && at + page < count;) {
    prof_i_part_head head;
    const ssize_t got = read_at(fd, &head, sizeof head, at);
    if (got < 0) return prof_i_file_fail_errno("cannot read", path);
    if (got != (ssize_t)sizeof head) break; /* the file became shorter */
    if (!prof_i_part_head_is_whole(&head, at) || head.number < next_number) {
      at += page;
      continue;
    }
    status = add_part(parts, &head, count - at - page);
    next_number = head.number + 1;
    at = prof_i_part_end(at + page, head.bytes);
  }
  return status;
}

/* header: NULL if it is damaged. Then the number of parts is not known. */
static void count_lost(const prof_i_merged_header *header, prof_i_parts *parts) {
  parts->all_count = parts->count ? parts->items[parts->count - 1].number + 1 : 0;
  if (header && header->part_count > parts->all_count) parts->all_count = header->part_count;
  parts->lost_count = parts->all_count - parts->count;
  if (!header && parts->lost_count == 0) parts->lost_count = 1;
}

int prof_i_parts_find(int fd, const char *path, prof_i_parts *parts_out) {
  prof_i_merged_header header;
  struct stat about;
  *parts_out = (prof_i_parts){0};
  const ssize_t got = read_at(fd, &header, sizeof header, 0);
  if (got < 0) return prof_i_file_fail_errno("cannot read", path);
  if (!prof_i_is_merged(&header, (uint64_t)got)) return PROF_OK;
  if (fstat(fd, &about) != 0) return prof_i_file_fail_errno("cannot examine", path);
  const bool is_whole = prof_i_merged_header_is_whole(&header);
  parts_out->is_merged = true;
  parts_out->is_unaligned = is_whole && (header.flags & PROF_I_MERGED_UNALIGNED);
  const int status = walk_heads(fd, path, (uint64_t)about.st_size, parts_out);
  if (status == PROF_OK) count_lost(is_whole ? &header : NULL, parts_out);
  if (status != PROF_OK) prof_i_parts_fini(parts_out);
  return status;
}

/* *fd_out is -1 with PROF_OK: the file is not a regular file, so it has no parts. */
static int open_file(const char *path, int *fd_out) {
  struct stat about;
  *fd_out = -1;
  if (stat(path, &about) != 0) return prof_i_file_fail_errno("cannot open", path);
  if (!S_ISREG(about.st_mode)) return PROF_OK;
  *fd_out = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  return *fd_out < 0 ? prof_i_file_fail_errno("cannot open", path) : PROF_OK;
}

int prof_i_parts_open(const char *path, prof_i_parts *parts_out) {
  int fd;
  *parts_out = (prof_i_parts){0};
  int status = open_file(path, &fd);
  if (fd < 0) return status;
  status = prof_i_parts_find(fd, path, parts_out);
  close(fd);
  return status;
}

bool prof_i_parts_look(const char *path, prof_i_merged_header *header_out) {
  int fd;
  if (open_file(path, &fd) != PROF_OK || fd < 0) return false;
  const ssize_t got = read_at(fd, header_out, sizeof *header_out, 0);
  close(fd);
  return got > 0 && prof_i_is_merged(header_out, (uint64_t)got) &&
         prof_i_merged_header_is_whole(header_out);
}

void prof_i_parts_fini(prof_i_parts *parts) {
  free(parts->items);
  parts->items = NULL;
  parts->count = parts->room = 0;
}

bool prof_i_part_path_split(const char *path, char *file_out, size_t room, uint32_t *number_out) {
  const char *const mark = strrchr(path, '#');
  if (!mark || mark == path || mark[1] < '1' || mark[1] > '9') return false;
  char *end;
  const unsigned long number = strtoul(mark + 1, &end, 10);
  const size_t bytes = (size_t)(mark - path);
  if (*end || number > PROF_I_MERGED_PARTS_MAX || bytes >= room) return false;
  memcpy(file_out, path, bytes);
  file_out[bytes] = '\0';
  *number_out = (uint32_t)number - 1;
  return true;
}

int prof_trace_part_count(const char *path, uint32_t *count_out) {
  PROF_I_DEFAULT_FP;
  PROF_I_DISABLE_CANCEL;
  PROF_I_REFUSE_INTERRUPTED(PROF_E_BUSY);
  PROF_I_INSIDE;
  if (!path || !count_out)
    return prof_i_fail(PROF_E_INVALID, "prof_trace_part_count: %s is NULL",
                       path ? "count_out" : "path");
  prof_i_capture_bytes whole;
  prof_i_parts parts;
  int status = prof_i_parts_open(path, &parts);
  if (status == PROF_E_NOT_FOUND) { /* PATH#N */
    status = prof_i_capture_bytes_open(path, &whole);
    if (status == PROF_OK) close(whole.fd);
  }
  if (status != PROF_OK) return status;
  *count_out = parts.is_merged && parts.count > 0 ? parts.all_count : 1;
  prof_i_parts_fini(&parts);
  return PROF_OK;
}
