/* See chunk.h. A table of one place for each 256 KiB of the arena's cap: chunks of that size
   and more never share one. It is address space; what is touched grows with what is counted. */
#define _GNU_SOURCE
#include "chunk.h"

#include <string.h>
#include <sys/mman.h>

enum { ENTRY_BYTES = 256 << 10 };

static struct {
  uint32_t is_taken; /* any thread; in a forked child it may stay so for ever */
  /* Only the thread that has the table uses it. */
  uint64_t arena;
  prof_i_counted_chunk *entries;
  uint64_t count;
} count_cache;

static bool map_entries(uint64_t count) {
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  if (count_cache.entries)
    munmap(count_cache.entries, count_cache.count * sizeof *count_cache.entries);
  count_cache.entries = NULL;
  count_cache.count = 0;
  void *const entries =
      mmap(NULL, count * sizeof *count_cache.entries, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (entries == MAP_FAILED) return false;
  count_cache.entries = entries;
  count_cache.count = count;
  return true;
}

bool prof_i_count_cache_acquire(uint64_t arena, uint64_t cap_bytes) {
  if (__atomic_exchange_n(&count_cache.is_taken, 1, __ATOMIC_ACQUIRE)) return false;
  const uint64_t count = cap_bytes / ENTRY_BYTES + 1;
  if (count_cache.arena == arena && count_cache.entries) return true;
  count_cache.arena = arena;
  if (map_entries(count)) return true; /* zeros */
  prof_i_count_cache_release();
  return false;
}

void prof_i_count_cache_release(void) {
  __atomic_store_n(&count_cache.is_taken, 0, __ATOMIC_RELEASE);
}

prof_i_counted_chunk *prof_i_count_cache_find(uint64_t offset, uint64_t bytes) {
  const uint64_t i = offset / ENTRY_BYTES;
  return bytes >= ENTRY_BYTES && i < count_cache.count ? &count_cache.entries[i] : NULL;
}
