/* See unpack.h. A first pass finds the parts, a second one unpacks them. Parts that are damaged or
   cut off are left out. */
#define _GNU_SOURCE
#include "unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <prof/status.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../base/log.h"
#include "../base/port.h"
#include "../format/packed.h"
#include "capture.h"

/* A capture shrinks at most so far. So a few bytes do not claim terabytes. */
enum { PLAIN_PER_PACKED_MAX = 8192 };

/* A packed extent, or a plain one that stands at its own offset. */
typedef struct packed_part {
  uint64_t offset, bytes; /* in the file */
  uint64_t plain_offset, plain_bytes;
  bool is_plain;
} packed_part;

typedef struct packed_parts {
  packed_part *items;
  uint32_t count, room;
  uint64_t plain_end;   /* of the last one */
  uint64_t plain_count; /* of the whole plain capture, as they say */
  uint32_t version;     /* of the plain capture */
} packed_parts;

static int parts_add(packed_parts *parts, packed_part part) {
  if (!prof_i_make_room((void **)&parts->items, &parts->room, parts->count, sizeof *parts->items))
    return prof_i_fail(PROF_E_NO_MEMORY, "no memory for the %u parts of a packed capture",
                       parts->count);
  parts->items[parts->count++] = part;
  const uint64_t end = part.plain_offset + part.plain_bytes;
  if (end > parts->plain_end) parts->plain_end = end;
  return PROF_OK;
}

static bool is_zero(const unsigned char *bytes, uint64_t count) {
  return bytes[0] == 0 && memcmp(bytes, bytes + 1, (size_t)count - 1) == 0;
}

/* The part at this offset, and its bytes in the file; 0: there is none. */
static uint64_t part_at(const prof_i_source *source, uint64_t at, packed_parts *parts,
                        packed_part *part_out) {
  const uint64_t there = source->count - at, most = source->count * PLAIN_PER_PACKED_MAX;
  const prof_i_packed_head *const packed = (const void *)(source->bytes + at);
  const uint64_t packed_bytes = prof_i_packed_check(packed, there);
  if (packed_bytes) {
    if (packed->plain_offset + packed->plain_bytes > most) return 0;
    *part_out = (packed_part){at, packed_bytes, packed->plain_offset, packed->plain_bytes, false};
    parts->plain_count = packed->plain_count;
    parts->version = packed->plain_version;
    return packed_bytes;
  }
  if (at % PROF_I_UNIT_BYTES != 0 || at == 0 || there < PROF_I_HEAD_BYTES) return 0;
  const uint64_t plain_bytes = prof_i_head_bytes((const void *)(source->bytes + at), at);
  if (!plain_bytes || plain_bytes > there) return 0;
  *part_out = (packed_part){at, plain_bytes, at, plain_bytes, true};
  return plain_bytes;
}

/* Neighbouring damaged bytes count once. */
static int find_parts(const prof_i_source *source, packed_parts *parts, uint64_t *bad_count) {
  enum { STEP = PROF_I_PACKED_ALIGNMENT };
  bool was_bad = false;
  int status = PROF_OK;
  uint64_t at = PROF_I_PACKED_FIRST_OFFSET, bytes;
  for (packed_part part; status == PROF_OK && at < source->count; at += bytes) {
    const uint64_t there = source->count - at;
    bytes = part_at(source, at, parts, &part);
    if (bytes) {
      status = parts_add(parts, part);
      was_bad = false;
      continue;
    }
    bytes = there < STEP ? there : STEP;
    const bool is_bad = !is_zero(source->bytes + at, bytes);
    if (is_bad && !was_bad) ++*bad_count;
    was_bad |= is_bad;
  }
  return status;
}

/* ---- the plain capture ---- */

/* Where it goes. */
typedef struct plain_image {
  unsigned char *bytes; /* NULL: a file */
  uint64_t count;       /* rounded up to a unit */
  uint64_t held_bytes;  /* counted by prof_i_source_hold() */
  bool is_mapping;
  int fd;              /* -1: none */
  unsigned char *part; /* of a file: room for one part */
} plain_image;

static void image_fini(plain_image *image) {
  if (image->is_mapping && image->bytes) prof_i_port_unmap(image->bytes, (size_t)image->count);
  if (!image->is_mapping) free(image->bytes);
  if (image->fd >= 0) close(image->fd);
  free(image->part);
  prof_i_source_let_go(image->held_bytes);
}

/* A file without a name, or -1. A write past RLIMIT_FSIZE would be a signal. */
static int open_temporary_file(uint64_t count) {
  const char *const named = secure_getenv("TMPDIR");
  const char *const folders[] = {named ? named : "/var/tmp", "/var/tmp", "/tmp"};
  struct rlimit limit;
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur < count) return -1;
  for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
    const int fd = open(folders[i], O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0 && ftruncate(fd, (off_t)count) == 0) return fd;
    if (fd >= 0) close(fd);
  }
  return -1;
}

static bool image_is_in_memory(plain_image *image) {
  void *const at = mmap(NULL, (size_t)image->count, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return false;
  image->bytes = at;
  image->is_mapping = true;
  return true;
}

static int image_init(plain_image *image, uint64_t count) {
  *image = (plain_image){.count = (count + PROF_I_UNIT_BYTES - 1) & -(uint64_t)PROF_I_UNIT_BYTES,
                         .fd = -1};
  bool is_made;
  if (prof_i_source_hold(image->count)) {
    image->held_bytes = image->count;
    image->bytes = calloc(1, (size_t)image->count);
    is_made = image->bytes != NULL;
  } else {
    image->fd = open_temporary_file(image->count);
    image->part = image->fd >= 0 ? malloc(PROF_I_PACKED_PLAIN_MAX) : NULL;
    is_made = image->part || image_is_in_memory(image);
  }
  if (is_made) return PROF_OK;
  image_fini(image);
  return prof_i_fail(PROF_E_NO_MEMORY, "no memory for the %llu bytes of a capture that is packed",
                     (unsigned long long)count);
}

static bool image_write(const plain_image *image, uint64_t offset, const void *bytes,
                        uint64_t count) {
  if (image->bytes) {
    memcpy(image->bytes + offset, bytes, (size_t)count);
    return true;
  }
  for (uint64_t done = 0; done < count;) {
    const ssize_t written = pwrite(image->fd, (const char *)bytes + done, (size_t)(count - done),
                                   (off_t)(offset + done));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    done += (uint64_t)written;
  }
  return true;
}

/* ---- unpacking ---- */

typedef struct unpack_run {
  prof_i_unpacker *unpacker;
  prof_i_zstd *zstd; /* opened for the first column that needs it */
  plain_image image;
} unpack_run;

static int fail_write(void) {
  return prof_i_fail(PROF_E_NO_SPACE,
                     "the capture is packed, and a temporary file for it cannot be written: %s; "
                     "set TMPDIR to a folder with room",
                     strerror(errno));
}

static int unpack_part(unpack_run *run, const prof_i_packed_head *head, uint64_t *bad_count) {
  plain_image *const image = &run->image;
  unsigned char *const to = image->bytes ? image->bytes + head->plain_offset : image->part;
  if (!image->bytes) memset(to, 0, (size_t)head->plain_bytes);
  prof_i_unpacked result = prof_i_unpack(run->unpacker, run->zstd, head, to);
  if (result == PROF_I_UNPACK_NEEDS_ZSTD) {
    const int status = prof_i_zstd_create("the capture is packed", &run->zstd);
    if (status != PROF_OK) return status;
    result = prof_i_unpack(run->unpacker, run->zstd, head, to);
  }
  if (result != PROF_I_UNPACKED) {
    ++*bad_count;
    memset(to, 0, (size_t)head->plain_bytes);
  }
  if (image->bytes || image_write(image, head->plain_offset, to, head->plain_bytes)) return PROF_OK;
  return fail_write();
}

static int unpack_all(unpack_run *run, const prof_i_source *source, const packed_parts *parts,
                      uint64_t *bad_count) {
  const plain_image *const image = &run->image;
  prof_i_header header;
  memcpy(&header, source->bytes, sizeof header);
  header.version = parts->version;
  if (!image_write(image, 0, source->bytes, PROF_I_HEADER_BYTES) ||
      !image_write(image, 0, &header, sizeof header))
    return fail_write();
  for (uint32_t i = 0; i < parts->count; i++) {
    const packed_part *const part = &parts->items[i];
    const unsigned char *const from = source->bytes + part->offset;
    int status = PROF_OK;
    if (!part->is_plain)
      status = unpack_part(run, (const void *)from, bad_count);
    else if (!image_write(image, part->plain_offset, from, part->plain_bytes))
      status = fail_write();
    if (status != PROF_OK) return status;
    prof_i_source_release_pages(source, from, part->bytes);
  }
  return PROF_OK;
}

/* The image becomes the source's bytes. */
static int replace_bytes(prof_i_source *source, plain_image *image, uint64_t count) {
  prof_i_source plain = {.bytes = image->bytes,
                         .count = count,
                         .kind = image->is_mapping ? PROF_I_SOURCE_MAPPING : PROF_I_SOURCE_COPY,
                         .is_elsewhere = source->is_elsewhere,
                         .is_copied = source->is_copied,
                         .opened = source->opened};
  if (!image->bytes) {
    void *const at = mmap(NULL, (size_t)count, PROT_READ, MAP_SHARED, image->fd, 0);
    if (at == MAP_FAILED)
      return prof_i_fail(PROF_E_NO_MEMORY, "cannot map the %llu bytes of a capture that is packed",
                         (unsigned long long)count);
    plain.bytes = at;
    plain.kind = PROF_I_SOURCE_MAPPING;
    if (prof_i_make_room((void **)&plain.runs, &plain.run_room, 0, sizeof *plain.runs))
      plain.runs[plain.run_count++] = (prof_i_mapped_run){0, count};
  }
  plain.counted_bytes = image->held_bytes;
  image->bytes = NULL;
  image->held_bytes = 0;
  prof_i_source_fini(source);
  *source = plain;
  return PROF_OK;
}

static int unpack_parts(prof_i_source *source, packed_parts *parts, uint64_t *bad_count) {
  unpack_run run = {.unpacker = prof_i_unpacker_create()};
  const uint64_t end =
      parts->plain_end > PROF_I_HEADER_BYTES ? parts->plain_end : PROF_I_HEADER_BYTES;
  const bool is_tail_padded =
      parts->count > 0 && parts->plain_count < end && end - parts->plain_count < PROF_I_UNIT_BYTES;
  const uint64_t count = is_tail_padded ? parts->plain_count : end;
  if (!run.unpacker) return prof_i_fail(PROF_E_NO_MEMORY, "no memory to unpack a capture");
  int status = image_init(&run.image, end);
  if (status == PROF_OK) {
    status = unpack_all(&run, source, parts, bad_count);
    if (status == PROF_OK) status = replace_bytes(source, &run.image, count);
    image_fini(&run.image);
  }
  prof_i_zstd_destroy(run.zstd);
  prof_i_unpacker_destroy(run.unpacker);
  return status;
}

int prof_i_source_unpack(prof_i_source *source, uint64_t *bad_count) {
  const uint64_t magic = PROF_I_MAGIC;
  prof_i_header header;
  if (source->count < PROF_I_HEADER_BYTES || memcmp(source->bytes, &magic, sizeof magic) != 0)
    return PROF_OK;
  memcpy(&header, source->bytes, sizeof header);
  if (header.version != PROF_I_PACKED_VERSION) return PROF_OK;
  packed_parts parts = {.version = PROF_I_FORMAT_VERSION};
  int status = find_parts(source, &parts, bad_count);
  if (status == PROF_OK) status = unpack_parts(source, &parts, bad_count);
  free(parts.items);
  return status;
}
