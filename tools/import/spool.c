/* See spool.h. */
#define _GNU_SOURCE
#include "spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "import.h"

enum { WAITING_WORDS = 128 << 10 };

/* Where the file system knows no files without a name, one whose name goes at once. */
static int open_nameless(const char *folder) {
  const int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  char path[4096];
  if (fd >= 0 || snprintf(path, sizeof path, "%s/.prof-import-XXXXXX", folder) >= (int)sizeof path)
    return fd;
  const int named = mkostemp(path, O_CLOEXEC);
  if (named >= 0) unlink(path);
  return named;
}

void import_spool_open(import_spool *spool, const char *folder) {
  *spool = (import_spool){.fd = open_nameless(folder),
                          .waiting = import_make(WAITING_WORDS * sizeof(uint64_t))};
  if (spool->fd < 0) import_fail("cannot write into '%s': %s", folder, strerror(errno));
}

static void spool_flush(import_spool *spool) {
  const char *from = (const char *)spool->waiting;
  size_t left = (size_t)(spool->count - spool->flushed) * sizeof(uint64_t);
  while (left > 0) {
    const ssize_t written = write(spool->fd, from, left);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0)
      import_fail("cannot keep %llu bytes beside the output: %s",
                  (unsigned long long)spool->count * 8,
                  written < 0 ? strerror(errno) : "nothing was written");
    from += written;
    left -= (size_t)written;
  }
  spool->flushed = spool->count;
}

uint64_t import_spool_add(import_spool *spool, const uint64_t *words, uint32_t count,
                          uint32_t bits) {
  const uint64_t place = spool->count << 20 | (uint64_t)count << 4 | bits;
  for (uint32_t done = 0, part; done < count; done += part) {
    if (spool->count - spool->flushed == WAITING_WORDS) spool_flush(spool);
    const uint64_t room = WAITING_WORDS - (spool->count - spool->flushed);
    part = count - done < room ? count - done : (uint32_t)room;
    memcpy(spool->waiting + (spool->count - spool->flushed), words + done, part * sizeof *words);
    spool->count += part;
  }
  return place;
}

void import_spool_map(import_spool *spool) {
  spool_flush(spool);
  if (spool->count == spool->mapped_count) return;
  if (spool->words) munmap(spool->words, spool->mapped_count * sizeof(uint64_t));
  const size_t bytes = spool->count * sizeof(uint64_t);
  void *const words = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, spool->fd, 0);
  if (words == MAP_FAILED) import_fail("cannot map %zu bytes: %s", bytes, strerror(errno));
  spool->words = words;
  spool->mapped_count = spool->count;
}

void import_spool_close(import_spool *spool) {
  import_spool_map(spool);
  free(spool->waiting);
  spool->waiting = NULL;
}

void import_spool_fini(import_spool *spool) {
  if (spool->words) munmap(spool->words, spool->mapped_count * sizeof(uint64_t));
  close(spool->fd);
  free(spool->waiting);
}
