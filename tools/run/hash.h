/* uthash for the main thread, where a fault ends the run as any other: uthash itself would exit. */
#ifndef PROF_TOOLS_RUN_HASH_H
#define PROF_TOOLS_RUN_HASH_H

#include <string.h>

#include "text.h"

static inline uint64_t run_hash_mix(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
  return hash ^ hash >> 32;
}

/* Takes 16 bytes at once: uthash's own hash is slow for long lines. */
static inline uint64_t run_hash_64(const void *key, size_t bytes) {
  uint64_t hash = bytes, other = 0, word[2];
  const char *at = key;
  for (; bytes >= sizeof word; at += sizeof word, bytes -= sizeof word) {
    memcpy(word, at, sizeof word);
    hash = run_hash_mix(hash, word[0]);
    other = run_hash_mix(other, word[1]);
  }
  word[0] = word[1] = 0;
  memcpy(word, at, bytes);
  return run_hash_mix(run_hash_mix(run_hash_mix(hash, word[0]), word[1]), other);
}

static inline unsigned run_hash(const void *key, size_t bytes) {
  return (unsigned)run_hash_64(key, bytes);
}

#define HASH_FUNCTION(key, bytes, hash_out) ((hash_out) = run_hash(key, bytes))
#define uthash_fatal(message) run_fail("%s", message)
#include <uthash.h>

#endif
