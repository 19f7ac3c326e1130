/* Merged captures of any bytes. Byte 0 of an input: how many pages the file has. Then pieces are
   laid into zeros behind a right header page: 1 byte for the page, 1 byte for the kind, and for

       kind 0 mod 3    a head with a right check: 2 bytes number, 8 bytes size
       kind 1 mod 3    a head of 40 bytes, as they are
       kind 2 mod 3    1 byte count, then as many bytes at the begin of the page

   Whatever the file holds: parts are inside of it, do not overlap, and their numbers rise. */
#define _GNU_SOURCE
#include <prof/trace.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "format/merged.h"
#include "live/live.h"

enum { PAGE = PROF_I_MERGED_PAGE_BYTES, PAGES_MAX = 64 };

static unsigned char bytes[PAGES_MAX * PAGE];

static void require(int holds, const char *what) {
  if (holds) return;
  fprintf(stderr, "fuzz_merged: %s\n", what);
  abort();
}

/* Copies up to `room` bytes of the input; the rest stays as it is. */
static void take(const uint8_t **data, size_t *size, void *to, size_t room) {
  const size_t count = *size < room ? *size : room;
  memcpy(to, *data, count);
  *data += count;
  *size -= count;
}

static void put_pieces(const uint8_t *data, size_t size, size_t count) {
  while (size >= 2) {
    uint8_t page = 0, kind = 0;
    take(&data, &size, &page, 1);
    take(&data, &size, &kind, 1);
    unsigned char *const to = bytes + (page % (count / PAGE)) * PAGE;
    if (kind % 3 == 0) {
      uint16_t number = 0;
      uint64_t part_bytes = 0;
      take(&data, &size, &number, sizeof number);
      take(&data, &size, &part_bytes, sizeof part_bytes);
      const prof_i_part_head head =
          prof_i_part_head_make((uint64_t)(to - bytes), part_bytes, number);
      memcpy(to, &head, sizeof head);
    } else if (kind % 3 == 1) {
      take(&data, &size, to, sizeof(prof_i_part_head));
    } else {
      uint8_t some = 0;
      take(&data, &size, &some, 1);
      take(&data, &size, to, some);
    }
  }
}

static void open_part(const char *path, uint32_t number) {
  char name[80];
  prof_trace *trace = NULL;
  snprintf(name, sizeof name, "%s#%u", path, number + 1);
  if (prof_trace_open(name, &trace) == PROF_OK) prof_trace_destroy(trace);
}

static void read_file(const char *path, uint64_t count) {
  prof_i_parts parts;
  require(prof_i_parts_open(path, &parts) == PROF_OK, "the parts cannot be read");
  uint64_t end = PAGE;
  for (uint32_t i = 0; i < parts.count; i++) {
    const prof_i_part *const part = &parts.items[i];
    require(part->offset >= end + PAGE, "parts overlap");
    require(part->offset <= count && part->bytes <= count - part->offset, "a part is outside");
    require(i == 0 || part->number > parts.items[i - 1].number, "numbers fall");
    end = part->offset + part->bytes;
    open_part(path, part->number);
  }
  require(parts.all_count >= parts.count && parts.lost_count >= parts.all_count - parts.count,
          "lost parts are not counted");
  prof_i_parts_fini(&parts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char path[64];
  if (size < 3) return 0;
  const size_t count = (size_t)(2 + data[0] % (PAGES_MAX - 2)) * PAGE;
  const prof_i_merged_header header = prof_i_merged_header_make(1 + data[1] % 8, 0);
  memset(bytes, 0, count);
  memcpy(bytes, &header, sizeof header);
  put_pieces(data + 2, size - 2, count);
  const int file = memfd_create("fuzz", MFD_CLOEXEC);
  require(file >= 0 && pwrite(file, bytes, count, 0) == (ssize_t)count, "no file");
  snprintf(path, sizeof path, "/proc/self/fd/%d", file);
  read_file(path, count);
  close(file);
  return 0;
}
