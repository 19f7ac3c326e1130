/* See memory.h. */
#define _GNU_SOURCE
#include "memory.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { SLOTS = 4096, SLOT_BYTES = 1 << 20 };

static struct {
  pthread_mutex_t lock;
  /* the same slots: where they are, and the addresses that stand for them, at which nothing can be
     read */
  char *real, *shown;
  uint32_t counts[SLOTS]; /* of a piece's slots, at its first */
  uint8_t is_taken[SLOTS];
} own = {.lock = PTHREAD_MUTEX_INITIALIZER};

static char *map(int protection) {
  void *const at = mmap(NULL, (size_t)SLOTS * SLOT_BYTES, protection,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) abort();
  return at;
}

/* The first so many free ones in a row; SLOTS: there are none. */
static uint32_t find_free(uint32_t count) {
  uint32_t run = 0;
  for (uint32_t i = 0; i < SLOTS; i++) {
    run = own.is_taken[i] ? 0 : run + 1;
    if (run == count) return i + 1 - count;
  }
  return SLOTS;
}

uint64_t memory_take(size_t bytes, int for_host) {
  uint64_t address = 0;
  if (bytes > (size_t)SLOTS * SLOT_BYTES) return 0;
  pthread_mutex_lock(&own.lock);
  if (!own.real) {
    own.real = map(PROT_READ | PROT_WRITE);
    own.shown = map(PROT_NONE);
  }
  const uint32_t count = (uint32_t)((bytes + SLOT_BYTES - 1) / SLOT_BYTES),
                 first = find_free(count);
  if (first < SLOTS) {
    own.counts[first] = count;
    memset(own.is_taken + first, 1, count);
    address = (uint64_t)(uintptr_t)((for_host ? own.real : own.shown) + (size_t)first * SLOT_BYTES);
  }
  pthread_mutex_unlock(&own.lock);
  return address;
}

/* Where the address is among the slots; SIZE_MAX: nowhere. Lock held. */
static size_t offset_of(uint64_t address) {
  const size_t all = (size_t)SLOTS * SLOT_BYTES,
               from_shown = (size_t)(address - (uint64_t)(uintptr_t)own.shown),
               from_real = (size_t)(address - (uint64_t)(uintptr_t)own.real);
  if (!own.real) return SIZE_MAX;
  return from_shown < all ? from_shown : from_real < all ? from_real : SIZE_MAX;
}

void memory_give_back(uint64_t address) {
  pthread_mutex_lock(&own.lock);
  const size_t first = offset_of(address) / SLOT_BYTES;
  if (first < SLOTS && own.is_taken[first]) {
    madvise(own.real + first * SLOT_BYTES, (size_t)own.counts[first] * SLOT_BYTES, MADV_DONTNEED);
    memset(own.is_taken + first, 0, own.counts[first]);
  }
  pthread_mutex_unlock(&own.lock);
}

void *memory_behind(uint64_t address, size_t bytes) {
  void *found = NULL;
  pthread_mutex_lock(&own.lock);
  const size_t offset = offset_of(address);
  if (offset < (size_t)SLOTS * SLOT_BYTES && bytes <= (size_t)SLOTS * SLOT_BYTES - offset) {
    found = own.real + offset;
    for (size_t i = offset / SLOT_BYTES; i * SLOT_BYTES < offset + bytes; i++)
      if (!own.is_taken[i]) found = NULL;
  }
  pthread_mutex_unlock(&own.lock);
  return found;
}

void *memory_of_argument(const void *address) {
  void *const found = address ? memory_behind((uint64_t)(uintptr_t)address, 1) : NULL;
  if (found || !address) return found;
  fprintf(stderr, "emulated device: %p is not memory that is handed out\n", address);
  abort();
}

typedef struct copy {
  void *to;
  const void *from;
  size_t bytes;
} copy;

void *memory_copy_to_come(uint64_t to, uint64_t from, size_t bytes) {
  void *const behind_to = memory_behind(to, bytes), *const behind_from = memory_behind(from, bytes);
  if (!behind_to && !behind_from) return NULL;
  copy *const c = malloc(sizeof *c);
  if (!c) abort();
  *c = (copy){behind_to ? behind_to : (void *)(uintptr_t)to,
              behind_from ? behind_from : (const void *)(uintptr_t)from, bytes};
  return c;
}

void memory_copy(void *to_come) {
  const copy *const c = to_come;
  memcpy(c->to, c->from, c->bytes);
  free(to_come);
}
