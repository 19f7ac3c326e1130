/* Opens packed captures (../format/packed.h). A first pass finds the extents, a second one unpacks
   them. Damaged extents are omitted and counted. If the plain capture goes to a file, a worker with
   a thread unpacks a part while the caller writes the part before it. */
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
  unsigned char *parts; /* with a file: room for two parts */
} plain_image;

static void image_fini(plain_image *image) {
  free(image->bytes);
  if (image->fd >= 0) close(image->fd);
  free(image->parts);
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
  if (image->fd < 0) return fail_temporary_file(image->count);
  image->parts = malloc(2 * (size_t)PROF_I_PACKED_PLAIN_MAX);
  if (image->parts) return PROF_OK;
  return prof_i_fail(PROF_E_NO_MEMORY,
                     "no memory for the %d bytes of two parts of a packed capture",
                     2 * PROF_I_PACKED_PLAIN_MAX);
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
   zeros. */
static bool image_write(const plain_image *image, uint64_t offset, const void *from,
                        uint64_t count) {
  const unsigned char *const bytes = from;
  if (image->bytes) {
    memcpy(image->bytes + offset, bytes, (size_t)count);
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

/* A part between the packed bytes and the image. */
typedef struct unpack_step {
  unpack_run *run;
  const packed_part *part;
  unsigned char *to;
  prof_i_unpacked result;
} unpack_step;

struct unpack_run {
  const prof_i_source *source;
  prof_i_unpacker *unpacker;
  prof_i_zstd *zstd;     /* opened for the first column that needs it */
  prof_i_worker *worker; /* uses the unpacker and zstd; NULL: the image is in memory */
  plain_image image;
  /* Part i is in steps[i % 2]. Not in unpack_by_worker(): after its failure the worker may still
     use one, until unpack_run_fini(). */
  unpack_step steps[2];
  uint64_t *bad_count;
};

static int fail_write(void) {
  return prof_i_fail(PROF_E_NO_SPACE,
                     "the capture is packed, and a temporary file for it cannot be written: %s; "
                     "set TMPDIR to a folder with room",
                     strerror(errno));
}

static int fail_in_child(void) {
  return prof_i_fail(PROF_E_BUSY,
                     "the process forked while it opened a packed capture; the child cannot "
                     "continue, the parent does");
}

static void unpack_one(void *argument) {
  unpack_step *const step = argument;
  unpack_run *const run = step->run;
  const packed_part *const part = step->part;
  const prof_i_packed_head head = {.bytes = part->bytes,
                                   .plain_offset = part->plain_offset,
                                   .plain_bytes = part->plain_bytes,
                                   .column_count = part->column_count};
  const unsigned char *const columns = run->source->bytes + part->offset + sizeof head;
  if (!run->image.bytes) memset(step->to, 0, (size_t)part->plain_bytes);
  step->result = prof_i_unpack(run->unpacker, run->zstd, &head, columns, step->to);
}

static int unpack_with_zstd(unpack_step *step) {
  unpack_run *const run = step->run;
  int status = PROF_OK;
  if (run->worker && !prof_i_worker_wait(run->worker)) return fail_in_child();
  if (!run->zstd) status = prof_i_zstd_create("the capture is packed", &run->zstd);
  if (status == PROF_OK) unpack_one(step);
  return status;
}

/* Takes a part after it was unpacked. */
static int finish_step(unpack_step *step) {
  unpack_run *const run = step->run;
  const packed_part *const part = step->part;
  if (step->result == PROF_I_UNPACK_NEEDS_ZSTD) {
    const int status = unpack_with_zstd(step);
    if (status != PROF_OK) return status;
  }
  if (step->result != PROF_I_UNPACKED) {
    ++*run->bad_count;
    memset(step->to, 0, (size_t)part->plain_bytes);
  }
  if (!run->image.bytes &&
      !image_write(&run->image, part->plain_offset, step->to, part->plain_bytes))
    return fail_write();
  prof_i_source_release_pages(run->source, run->source->bytes + part->offset, part->bytes);
  return PROF_OK;
}

static int copy_plain_part(const unpack_run *run, const packed_part *part) {
  const unsigned char *const from = run->source->bytes + part->offset;
  if (!image_write(&run->image, part->plain_offset, from, part->plain_bytes)) return fail_write();
  prof_i_source_release_pages(run->source, from, part->bytes);
  return PROF_OK;
}

/* Unpacks a part and takes it while it is in the cache. */
static int unpack_alone(unpack_run *run, const packed_part *part) {
  const plain_image *const image = &run->image;
  unpack_step step = {.run = run,
                      .part = part,
                      .to = image->bytes ? image->bytes + part->plain_offset : image->parts};
  unpack_one(&step);
  return finish_step(&step);
}

static int unpack_by_worker(unpack_run *run, const packed_parts *parts) {
  unpack_step *unpacked = NULL, *step = NULL;
  int status = PROF_OK;
  for (uint32_t i = 0, number = 0; i <= parts->count && status == PROF_OK; i++) {
    const packed_part *const part = i < parts->count ? &parts->items[i] : NULL;
    if (part && part->is_plain) {
      status = copy_plain_part(run, part);
      continue;
    }
    if (!prof_i_worker_wait(run->worker)) return fail_in_child();
    unpacked = step;
    step = NULL;
    if (part) {
      step = &run->steps[number % 2];
      *step = (unpack_step){
          .run = run, .part = part, .to = run->image.parts + number % 2 * PROF_I_PACKED_PLAIN_MAX};
      prof_i_worker_begin(run->worker, unpack_one, step);
      number++;
    }
    if (unpacked) status = finish_step(unpacked);
  }
  return status;
}

static int unpack_all(unpack_run *run, const packed_parts *parts) {
  const prof_i_source *const source = run->source;
  prof_i_header header;
  int status = PROF_OK;
  memcpy(&header, source->bytes, sizeof header);
  header.version = parts->version;
  if (!image_write(&run->image, 0, source->bytes, PROF_I_HEADER_BYTES) ||
      !image_write(&run->image, 0, &header, sizeof header))
    return fail_write();
  if (run->worker && prof_i_worker_has_thread(run->worker)) return unpack_by_worker(run, parts);
  for (uint32_t i = 0; i < parts->count && status == PROF_OK; i++)
    status = parts->items[i].is_plain ? copy_plain_part(run, &parts->items[i])
                                      : unpack_alone(run, &parts->items[i]);
  return status;
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

static int unpack_run_init(unpack_run *run, uint64_t image_bytes) {
  const int status = image_init(&run->image, image_bytes);
  if (status != PROF_OK) return status;
  run->unpacker = prof_i_unpacker_create();
  if (!run->image.bytes) run->worker = prof_i_worker_create("prof-unpacker");
  if (run->unpacker && (run->worker || run->image.bytes)) return PROF_OK;
  return prof_i_fail(PROF_E_NO_MEMORY, "no memory to unpack a capture");
}

static void unpack_run_fini(unpack_run *run) {
  if (!prof_i_worker_destroy(run->worker)) return; /* first: it uses the others */
  prof_i_zstd_destroy(run->zstd);
  prof_i_unpacker_destroy(run->unpacker);
  image_fini(&run->image);
}

static int unpack_parts(prof_i_source *source, const packed_parts *parts, uint64_t *bad_count) {
  unpack_run run = {.source = source, .bad_count = bad_count, .image = {.fd = -1}};
  const uint64_t end = parts->count > 0 ? parts->plain_end : PROF_I_HEADER_BYTES;
  const bool is_tail_padded =
      parts->count > 0 && parts->plain_count < end && end - parts->plain_count < PROF_I_UNIT_BYTES;
  const uint64_t count = is_tail_padded ? parts->plain_count : end;
  int status = unpack_run_init(&run, end);
  if (status == PROF_OK) status = unpack_all(&run, parts);
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
