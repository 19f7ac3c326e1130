/* Opens packed captures (../format/packed.h). A first pass finds the extents, a second one unpacks
   them. Damaged extents are omitted and counted. Extents do not need each other, and each one has
   its own place in the plain capture. So the caller and a worker with a thread each take the next
   part, unpack it and put it in its place, until none is left. */
#define _GNU_SOURCE
#include "source.h"

#include <errno.h>
#include <fcntl.h>
#include <prof/status.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../base/error.h"
#include "../base/port.h"
#include "../base/worker.h"
#include "../format/packed.h"
#include "capture.h"

enum {
  /* The most plain bytes for each byte of the file, so that a small file cannot claim terabytes. */
  PLAIN_PER_PACKED_MAX = 8192,
  /* The most bytes that failed checks read, as a multiple of the file's size. */
  FAILED_PER_FILE_MAX = 4
};

/* A packed extent, or a plain one at the same offset as in the plain capture. */
typedef struct packed_part {
  uint64_t offset, bytes; /* in the file */
  uint64_t plain_offset, plain_bytes;
  uint32_t column_count; /* of a packed one */
  bool is_plain;
} packed_part;

typedef struct packed_parts {
  packed_part *items;
  uint32_t count, room;
  uint64_t plain_end;   /* of the last part */
  uint64_t plain_count; /* size of the whole plain capture, by the last packed part */
  uint32_t version;     /* of the plain capture */
} packed_parts;

/* The state of the first pass. */
typedef struct part_finder {
  const prof_i_source *source;
  packed_parts *parts;
  uint64_t failed_left; /* bytes that failed checks may still read */
  bool was_bad;         /* damage was counted after the last part */
  bool was_plain;       /* the last part is plain, or there is no part yet */
} part_finder;

static int parts_add(packed_parts *parts, packed_part part) {
  if (!prof_i_make_room((void **)&parts->items, &parts->room, parts->count, sizeof *parts->items))
    return prof_i_fail(PROF_E_NO_MEMORY, "no memory for the %u parts of a packed capture",
                       parts->count);
  parts->items[parts->count++] = part;
  parts->plain_end = part.plain_offset + part.plain_bytes;
  return PROF_OK;
}

static bool is_zero(const unsigned char *bytes, uint64_t count) {
  return bytes[0] == 0 && memcmp(bytes, bytes + 1, (size_t)count - 1) == 0;
}

/* Cheap checks come first. Parts are in the order of the plain capture, so a part that begins
   before the end of the previous one is refused. Another process may change the file meanwhile: the
   head is read once, and the part has all of it that is used later. */
static bool packed_part_at(part_finder *finder, uint64_t at, packed_part *part_out) {
  const uint64_t there = finder->source->count - at;
  const uint64_t plain_most = finder->source->count * PLAIN_PER_PACKED_MAX;
  const void *const from = finder->source->bytes + at;
  prof_i_packed_head head;
  if (there < sizeof head) return false;
  memcpy(&head, from, sizeof head);
  const uint64_t bytes = prof_i_packed_claimed(&head, there);
  if (!bytes || head.plain_offset < finder->parts->plain_end ||
      head.plain_offset + head.plain_bytes > plain_most || bytes > finder->failed_left)
    return false;
  if (prof_i_packed_check(from, there) != bytes) {
    finder->failed_left -= bytes;
    return false;
  }
  *part_out =
      (packed_part){at, bytes, head.plain_offset, head.plain_bytes, head.column_count, false};
  finder->parts->plain_count = head.plain_count;
  finder->parts->version = head.plain_version;
  return true;
}

static bool plain_part_at(const part_finder *finder, uint64_t at, packed_part *part_out) {
  const uint64_t there = finder->source->count - at;
  if (at % PROF_I_UNIT_BYTES != 0 || at < finder->parts->plain_end || there < PROF_I_HEAD_BYTES)
    return false;
  const uint64_t bytes = prof_i_head_bytes((const void *)(finder->source->bytes + at), at);
  if (!bytes || bytes > there) return false;
  *part_out = (packed_part){at, bytes, at, bytes, 0, true};
  return true;
}

/* Plain bytes that no part contains are damaged. If damage before this part was counted already,
   they are not counted again. Units between two plain parts may be free. */
static bool is_gap_before(const part_finder *finder, const packed_part *part) {
  const bool is_between_plain = finder->was_plain && part->is_plain;
  return part->plain_offset > finder->parts->plain_end && !finder->was_bad && !is_between_plain;
}

/* The same after the last part. If the header has the capture's size, check_end_ticks() of open.c
   counts the damage. */
static bool is_gap_at_end(const part_finder *finder) {
  prof_i_header header;
  memcpy(&header, finder->source->bytes, sizeof header);
  const uint64_t end = finder->parts->plain_end;
  return finder->parts->plain_count > end && header.made_bytes <= end && !finder->was_bad;
}

/* Adjacent damaged bytes count once. */
static int find_parts(const prof_i_source *source, packed_parts *parts, uint64_t *bad_count) {
  enum { STEP = PROF_I_PACKED_ALIGNMENT };
  part_finder finder = {.source = source,
                        .parts = parts,
                        .failed_left = source->count * FAILED_PER_FILE_MAX,
                        .was_plain = true};
  int status = PROF_OK;
  uint64_t at = PROF_I_PACKED_FIRST_OFFSET, bytes;
  for (packed_part part; status == PROF_OK && at < source->count; at += bytes) {
    const uint64_t there = source->count - at;
    if (packed_part_at(&finder, at, &part) || plain_part_at(&finder, at, &part)) {
      bytes = part.bytes;
      *bad_count += is_gap_before(&finder, &part);
      status = parts_add(parts, part);
      finder.was_bad = false;
      finder.was_plain = part.is_plain;
      continue;
    }
    bytes = there < STEP ? there : STEP;
    const bool is_bad = !is_zero(source->bytes + at, bytes);
    *bad_count += is_bad && !finder.was_bad;
    finder.was_bad |= is_bad;
  }
  *bad_count += is_gap_at_end(&finder);
  return status;
}

/* ---- the plain capture ---- */

/* The bytes of the plain capture, in memory or in a temporary file. */
typedef struct plain_image {
  unsigned char *bytes; /* NULL: in the file */
  uint64_t count;       /* rounded up to a unit */
  uint64_t held_bytes;  /* counted by prof_i_source_hold() */
  int fd;               /* -1: none */
} plain_image;

static void image_fini(plain_image *image) {
  free(image->bytes);
  if (image->fd >= 0) close(image->fd);
  prof_i_source_let_go(image->held_bytes);
}

/* Opens an unnamed file, or returns -1 and sets errno. Some file systems need a temporary name. */
static int open_nameless_file(const char *folder) {
  char path[4096];
  const int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL)) return fd;
  if (snprintf(path, sizeof path, "%s/prof-unpack-XXXXXX", folder) >= (int)sizeof path) return -1;
  const int named = mkostemp(path, O_CLOEXEC);
  if (named >= 0) unlink(path);
  return named;
}

/* Opens a sparse file of this size, or returns -1 and sets errno. The limit is checked because a
   write past RLIMIT_FSIZE sends a signal. */
static int open_temporary_file(uint64_t count) {
  const char *const named = secure_getenv("TMPDIR");
  const char *const folders[] = {named ? named : "/var/tmp", "/var/tmp", "/tmp"};
  struct rlimit limit;
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0) return -1;
  if (limit.rlim_cur < count) {
    errno = EFBIG;
    return -1;
  }
  for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
    const int fd = open_nameless_file(folders[i]);
    if (fd >= 0 && ftruncate(fd, (off_t)count) == 0) return fd;
    const int error = errno;
    if (fd >= 0) close(fd);
    errno = error;
  }
  return -1;
}

static int fail_temporary_file(uint64_t count) {
  const int error = errno;
  enum { MIB_SHIFT = 20 };
  return prof_i_fail(
      PROF_E_NO_SPACE,
      "the capture is packed, and no temporary file for its %llu bytes can be created: %s; "
      "set TMPDIR to a folder with room, and check ulimit -f (only %d MiB, and %d MiB of all open "
      "captures together, are unpacked into memory)",
      (unsigned long long)count, strerror(error), PROF_I_LARGE_CAPTURE_BYTES >> MIB_SHIFT,
      PROF_I_OPEN_SOURCES_BYTES >> MIB_SHIFT);
}

static bool image_is_in_memory(plain_image *image) {
  if (!prof_i_source_hold(image->count)) return false;
  image->bytes = calloc(1, (size_t)image->count);
  if (image->bytes)
    image->held_bytes = image->count;
  else
    prof_i_source_let_go(image->count);
  return image->bytes != NULL;
}

/* On failure, too, image_fini() is called. */
static int image_init(plain_image *image, uint64_t count) {
  *image = (plain_image){.count = (count + PROF_I_UNIT_BYTES - 1) & -(uint64_t)PROF_I_UNIT_BYTES,
                         .fd = -1};
  if (image_is_in_memory(image)) return PROF_OK;
  image->fd = open_temporary_file(image->count);
  return image->fd < 0 ? fail_temporary_file(image->count) : PROF_OK;
}

/* False: failed, and errno is set. */
static bool file_write(int fd, uint64_t offset, const unsigned char *bytes, uint64_t count) {
  for (uint64_t done = 0; done < count;) {
    const ssize_t written =
        pwrite(fd, bytes + done, (size_t)(count - done), (off_t)(offset + done));
    if (written < 0 && errno == EINTR) continue;
    if (written == 0) errno = ENOSPC;
    if (written <= 0) return false;
    done += (uint64_t)written;
  }
  return true;
}

/* The number of leading bytes in pages of zeros, or with are_zeros false, in other pages. */
static uint64_t pages_alike(const unsigned char *bytes, uint64_t count, bool are_zeros) {
  enum { PAGE_BYTES = 4096 };
  uint64_t at = 0;
  while (at < count) {
    const uint64_t page = count - at < PAGE_BYTES ? count - at : PAGE_BYTES;
    if (is_zero(bytes + at, page) != are_zeros) break;
    at += page;
  }
  return at;
}

/* In a file, skips pages of zeros, which stay holes. So it must not overwrite other bytes with
   zeros. In memory the bytes may be in their place already. Threads may write different bytes at
   the same time. False: failed, and errno is set. */
static bool image_write(const plain_image *image, uint64_t offset, const void *from,
                        uint64_t count) {
  const unsigned char *const bytes = from;
  if (image->bytes) {
    if (bytes != image->bytes + offset) memcpy(image->bytes + offset, bytes, (size_t)count);
    return true;
  }
  for (uint64_t at = 0; at < count;) {
    at += pages_alike(bytes + at, count - at, true);
    const uint64_t used = pages_alike(bytes + at, count - at, false);
    if (!file_write(image->fd, offset + at, bytes + at, used)) return false;
    at += used;
  }
  return true;
}

/* ---- unpacking ---- */

typedef struct unpack_run unpack_run;

/* What one thread needs to unpack parts. */
typedef struct unpack_lane {
  unpack_run *run;
  prof_i_unpacker *unpacker;
  prof_i_zstd *zstd;   /* NULL: no part needed it yet */
  unsigned char *room; /* for one part; NULL: the image is in memory */
  uint32_t part;       /* the lane's next one; from the number of parts on: none */
  int error;           /* the errno of a failed write, which ends the lane; 0: none */
  uint64_t bad_count;
} unpack_lane;

enum { LANES_MAX = 2 }; /* the caller's and the worker's */

struct unpack_run {
  const prof_i_source *source;
  const packed_parts *parts;
  uint32_t next_part; /* that no lane has taken; atomic, relaxed */
  plain_image image;
  unpack_lane lanes[LANES_MAX];
  int lane_count;
  prof_i_worker *worker; /* runs the second lane; NULL: there is one lane */
};

static int fail_write(int error) {
  return prof_i_fail(PROF_E_NO_SPACE,
                     "the capture is packed, and a temporary file for it cannot be written: %s; "
                     "set TMPDIR to a folder with room",
                     strerror(error));
}

static int fail_in_child(void) {
  return prof_i_fail(PROF_E_BUSY,
                     "the process forked while it opened a packed capture; the child cannot "
                     "continue, the parent does");
}

/* False: the part needs zstd. A damaged part becomes zeros. */
static bool lane_unpack(unpack_lane *lane, const packed_part *part, unsigned char *to) {
  const prof_i_packed_head head = {.bytes = part->bytes,
                                   .plain_offset = part->plain_offset,
                                   .plain_bytes = part->plain_bytes,
                                   .column_count = part->column_count};
  const unsigned char *const columns = lane->run->source->bytes + part->offset + sizeof head;
  if (lane->room) memset(to, 0, (size_t)part->plain_bytes);
  const prof_i_unpacked result = prof_i_unpack(lane->unpacker, lane->zstd, &head, columns, to);
  if (result == PROF_I_UNPACK_NEEDS_ZSTD) return false;
  if (result == PROF_I_UNPACKED) return true;
  lane->bad_count++;
  memset(to, 0, (size_t)part->plain_bytes);
  return true;
}

/* Puts the lane's part in its place. False: the lane cannot go on. */
static bool lane_put_part(unpack_lane *lane) {
  const unpack_run *const run = lane->run;
  const packed_part *const part = &run->parts->items[lane->part];
  const unsigned char *const packed = run->source->bytes + part->offset, *plain = packed;
  if (!part->is_plain) {
    unsigned char *const to = lane->room ? lane->room : run->image.bytes + part->plain_offset;
    if (!lane_unpack(lane, part, to)) return false;
    plain = to; /* and written while it is in the cache */
  }
  if (!image_write(&run->image, part->plain_offset, plain, part->plain_bytes)) {
    lane->error = errno;
    return false;
  }
  prof_i_source_release_pages(run->source, packed, part->bytes);
  return true;
}

static void lane_take_next(unpack_lane *lane) {
  lane->part = __atomic_fetch_add(&lane->run->next_part, 1, __ATOMIC_RELAXED);
}

/* Lanes take parts in the order of the file. So after they have ended, all parts before the first
   one at which a lane stopped are in their places. */
static void lane_run(void *argument) {
  unpack_lane *const lane = argument;
  const uint32_t count = lane->run->parts->count;
  while (lane->part < count && !lane->error && lane_put_part(lane)) lane_take_next(lane);
  if (lane->error) __atomic_store_n(&lane->run->next_part, count, __ATOMIC_RELAXED); /* all end */
}

/* The lane that stopped at the first part of them; NULL: all parts are in their places. */
static const unpack_lane *first_stopped_lane(const unpack_run *run) {
  const unpack_lane *first = run->lanes;
  for (int i = 1; i < run->lane_count; i++)
    if (run->lanes[i].part < first->part) first = &run->lanes[i];
  return first->part < run->parts->count ? first : NULL;
}

static int open_zstd(unpack_run *run) {
  int status = PROF_OK;
  for (int i = 0; i < run->lane_count && status == PROF_OK; i++)
    status = prof_i_zstd_create("the capture is packed", &run->lanes[i].zstd);
  return status;
}

/* Lanes stop if a part needs zstd, and go on with that part. */
static int unpack_all(unpack_run *run) {
  for (int i = 0; i < run->lane_count; i++) lane_take_next(&run->lanes[i]);
  for (;;) {
    if (run->lane_count > 1) prof_i_worker_begin(run->worker, lane_run, &run->lanes[1]);
    lane_run(&run->lanes[0]);
    if (run->worker && !prof_i_worker_wait(run->worker)) return fail_in_child();
    const unpack_lane *const stopped = first_stopped_lane(run);
    if (!stopped) return PROF_OK;
    const int status = stopped->error ? fail_write(stopped->error) : open_zstd(run);
    if (status != PROF_OK) return status;
  }
}

static int write_header(const unpack_run *run) {
  const unsigned char *const from = run->source->bytes;
  prof_i_header header;
  memcpy(&header, from, sizeof header);
  header.version = run->parts->version;
  const bool is_written = image_write(&run->image, 0, from, PROF_I_HEADER_BYTES) &&
                          image_write(&run->image, 0, &header, sizeof header);
  return is_written ? PROF_OK : fail_write(errno);
}

/* The image becomes the source's bytes. */
static int replace_bytes(prof_i_source *source, plain_image *image, uint64_t count) {
  prof_i_source plain = {.bytes = image->bytes,
                         .count = count,
                         .kind = PROF_I_SOURCE_COPY,
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

static bool lane_init(unpack_run *run, unpack_lane *lane) {
  *lane = (unpack_lane){.run = run, .unpacker = prof_i_unpacker_create()};
  if (!run->image.bytes) lane->room = malloc(PROF_I_PACKED_PLAIN_MAX);
  return lane->unpacker && (lane->room || run->image.bytes);
}

static void lane_fini(unpack_lane *lane) {
  prof_i_zstd_destroy(lane->zstd);
  prof_i_unpacker_destroy(lane->unpacker);
  free(lane->room);
}

/* One lane is enough. */
static int unpack_run_init(unpack_run *run, uint64_t image_bytes) {
  const int status = image_init(&run->image, image_bytes);
  if (status != PROF_OK) return status;
  if (run->parts->count > 1) run->worker = prof_i_worker_create("prof-unpacker");
  const int most = run->worker && prof_i_worker_has_thread(run->worker) ? LANES_MAX : 1;
  while (run->lane_count < most && lane_init(run, &run->lanes[run->lane_count])) run->lane_count++;
  if (run->lane_count > 0) return PROF_OK;
  return prof_i_fail(PROF_E_NO_MEMORY, "no memory to unpack a capture");
}

static void unpack_run_fini(unpack_run *run) {
  if (!prof_i_worker_destroy(run->worker)) return; /* first: it uses the others */
  for (int i = 0; i < LANES_MAX; i++) lane_fini(&run->lanes[i]);
  image_fini(&run->image);
}

static int unpack_parts(prof_i_source *source, const packed_parts *parts, uint64_t *bad_count) {
  unpack_run run = {.source = source, .parts = parts, .image = {.fd = -1}};
  const uint64_t end = parts->count > 0 ? parts->plain_end : PROF_I_HEADER_BYTES;
  const bool is_tail_padded =
      parts->count > 0 && parts->plain_count < end && end - parts->plain_count < PROF_I_UNIT_BYTES;
  const uint64_t count = is_tail_padded ? parts->plain_count : end;
  int status = unpack_run_init(&run, end);
  if (status == PROF_OK) status = write_header(&run);
  if (status == PROF_OK) status = unpack_all(&run);
  for (int i = 0; i < run.lane_count; i++) *bad_count += run.lanes[i].bad_count;
  if (status == PROF_OK) status = replace_bytes(source, &run.image, count);
  unpack_run_fini(&run);
  return status;
}

static prof_i_packing packing_of(const prof_i_source *source, const packed_parts *parts) {
  prof_i_packing packing = {.file_bytes = source->count};
  for (uint32_t i = 0; i < parts->count; i++) {
    packing.packed_count += !parts->items[i].is_plain;
    packing.plain_count += parts->items[i].is_plain;
  }
  return packing;
}

int prof_i_source_unpack(prof_i_source *source, uint64_t *bad_count) {
  const uint64_t magic = PROF_I_MAGIC;
  __typeof__(((prof_i_header *)NULL)->version) version; /* a whole header takes 2 KiB of stack */
  if (source->count < PROF_I_HEADER_BYTES || memcmp(source->bytes, &magic, sizeof magic) != 0)
    return PROF_OK;
  memcpy(&version, (const char *)source->bytes + offsetof(prof_i_header, version), sizeof version);
  if (version != PROF_I_PACKED_VERSION) return PROF_OK;
  packed_parts parts = {.version = PROF_I_FORMAT_VERSION, .plain_end = PROF_I_FIRST_UNIT_OFFSET};
  int status = find_parts(source, &parts, bad_count);
  prof_i_packing packing = packing_of(source, &parts);
  if (status == PROF_OK) status = unpack_parts(source, &parts, bad_count);
  if (status == PROF_OK) {
    packing.unpacked_bytes = source->count;
    source->packing = packing;
  }
  free(parts.items);
  return status;
}
