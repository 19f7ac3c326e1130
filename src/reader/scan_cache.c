/* Cached scans. One lock, taken with trylock: a thread that does not get it scans. So a child that
   was forked while the lock was held works without the cache. */
#include "capture.h"

#include <stdlib.h>
#include <string.h>

enum { CACHE_ROOM_FIRST = 256, CACHE_ROOM_MAX = 8192 };

typedef struct cache_entry {
  prof_i_scan_key key;
  uint32_t count;                                /* of segments; 0: the entry is empty */
  prof_i_segment segments[PROF_I_SCAN_SEGMENTS]; /* pointers relative to the chunk */
} cache_entry;

static struct {
  uint32_t is_locked;   /* atomic, acquire and release: guards the rest */
  cache_entry *entries; /* by a hash of the offset */
  uint32_t room, count;
  uint64_t start_ticks, start_ns; /* of the capture */
} cache;

static bool cache_lock(void) { return !__atomic_exchange_n(&cache.is_locked, 1, __ATOMIC_ACQUIRE); }
static void cache_unlock(void) { __atomic_store_n(&cache.is_locked, 0, __ATOMIC_RELEASE); }

prof_i_scan_key prof_i_scan_key_of(uint64_t start_ticks, uint64_t start_ns, uint64_t offset,
                                   const prof_i_head *head) {
  return (prof_i_scan_key){.start_ticks = start_ticks,
                           .start_ns = start_ns,
                           .offset = offset,
                           .bytes = head->bytes,
                           .sequence = head->sequence,
                           .generation = head->generation,
                           .cursor = head->cursor,
                           .owner = head->owner};
}

static cache_entry *cache_slot(cache_entry *entries, uint32_t room, uint64_t offset) {
  uint32_t at = (uint32_t)(offset * UINT64_C(0x9e3779b97f4a7c15) >> 40) & (room - 1);
  while (entries[at].count && entries[at].key.offset != offset) at = (at + 1) & (room - 1);
  return &entries[at];
}

static bool key_equal(const prof_i_scan_key *a, const prof_i_scan_key *b) {
  return memcmp(a, b, sizeof *a) == 0;
}

/* The lock is held. NULL: not cached. */
static const cache_entry *cache_find(const prof_i_scan_key *key) {
  if (!cache.room) return NULL;
  const cache_entry *const found = cache_slot(cache.entries, cache.room, key->offset);
  return found->count && key_equal(&found->key, key) ? found : NULL;
}

bool prof_i_scan_cache_has(const prof_i_scan_key *key) {
  if (!cache_lock()) return false;
  const bool is_there = cache_find(key) != NULL;
  cache_unlock();
  return is_there;
}

static const uint64_t *move_pointer(const uint64_t *at, uintptr_t from, uintptr_t to) {
  return at ? (const uint64_t *)((uintptr_t)at - from + to) : NULL;
}

static void move_segments(prof_i_segment *segments, uint32_t count, const unsigned char *from,
                          const unsigned char *to) {
  for (uint32_t i = 0; i < count; i++) {
    segments[i].words = move_pointer(segments[i].words, (uintptr_t)from, (uintptr_t)to);
    segments[i].owner = move_pointer(segments[i].owner, (uintptr_t)from, (uintptr_t)to);
  }
}

bool prof_i_scan_cache_get(const prof_i_scan_key *key, const unsigned char *chunk,
                           prof_i_segment segments_out[PROF_I_SCAN_SEGMENTS], uint32_t *count_out) {
  if (!cache_lock()) return false;
  const cache_entry *const found = cache_find(key);
  if (found) {
    memcpy(segments_out, found->segments, found->count * sizeof *segments_out);
    *count_out = found->count;
  }
  cache_unlock();
  if (found) move_segments(segments_out, *count_out, NULL, chunk);
  return found != NULL;
}

/* Drops the entries of another capture. False: no memory, or the cache is full. */
static bool cache_make_room(const prof_i_scan_key *key) {
  if (cache.start_ticks != key->start_ticks || cache.start_ns != key->start_ns) {
    free(cache.entries);
    cache.entries = NULL;
    cache.room = cache.count = 0;
    cache.start_ticks = key->start_ticks;
    cache.start_ns = key->start_ns;
  }
  if (cache.count * 2 < cache.room) return true;
  const uint32_t room = cache.room ? cache.room * 2 : CACHE_ROOM_FIRST;
  cache_entry *const larger = room <= CACHE_ROOM_MAX ? calloc(room, sizeof *larger) : NULL;
  if (!larger) return false;
  for (uint32_t i = 0; i < cache.room; i++)
    if (cache.entries[i].count)
      *cache_slot(larger, room, cache.entries[i].key.offset) = cache.entries[i];
  free(cache.entries);
  cache.entries = larger;
  cache.room = room;
  return true;
}

void prof_i_scan_cache_put(const prof_i_scan_key *key, const unsigned char *chunk,
                           const prof_i_segment *segments, uint32_t count) {
  if (count == 0 || count > PROF_I_SCAN_SEGMENTS || !cache_lock()) return;
  if (cache_make_room(key)) {
    cache_entry *const to = cache_slot(cache.entries, cache.room, key->offset);
    cache.count += to->count == 0;
    to->key = *key;
    to->count = count;
    memcpy(to->segments, segments, count * sizeof *segments);
    move_segments(to->segments, count, chunk, NULL);
  }
  cache_unlock();
}
