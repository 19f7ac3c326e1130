/* See counted.h. A table of one place for each 256 KiB of the arena's cap: chunks of that size and
   more never share one. It is address space; what is touched grows with what is counted. */
#define _GNU_SOURCE
#include "counted.h"

#include <string.h>
#include <sys/mman.h>

enum { PLACE_BYTES = 256 << 10 };

static struct {
  uint32_t is_taken; /* any thread; in a forked child it may stay so for ever */
  /* Of whoever has the table. */
  uint64_t arena;
  prof_i_counted *places;
  uint64_t count;
} own;

static bool map_places(uint64_t count) {
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  if (own.places) munmap(own.places, own.count * sizeof *own.places);
  own.places = NULL;
  own.count = 0;
  void *const places = mmap(NULL, count * sizeof *own.places, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (places == MAP_FAILED) return false;
  own.places = places;
  own.count = count;
  return true;
}

bool prof_i_counted_take(uint64_t arena, uint64_t cap_bytes) {
  if (__atomic_exchange_n(&own.is_taken, 1, __ATOMIC_ACQUIRE)) return false;
  const uint64_t count = cap_bytes / PLACE_BYTES + 1;
  if (own.arena == arena && own.places) return true;
  own.arena = arena;
  if (map_places(count)) return true; /* zeros */
  prof_i_counted_give();
  return false;
}

void prof_i_counted_give(void) { __atomic_store_n(&own.is_taken, 0, __ATOMIC_RELEASE); }

prof_i_counted *prof_i_counted_of(uint64_t offset, uint64_t bytes) {
  const uint64_t i = offset / PLACE_BYTES;
  return bytes >= PLACE_BYTES && i < own.count ? &own.places[i] : NULL;
}
