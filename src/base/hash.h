/* FNV-1a, for tables of names. Any thread. It has no secret seed: whoever writes a file can choose
   names whose hashes are equal. This holds for such a file:
   - Tables of src/ compare the names themselves. They become slow (docs/limits.md), never wrong.
   - tools/import keeps some names by 64 bits of hash. Equal hashes mix up rows of that file alone.
   - Memory stays within its bounds. */
#ifndef PROF_BASE_HASH_H
#define PROF_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define PROF_I_HASH32_SEED UINT32_C(2166136261)
#define PROF_I_HASH64_SEED UINT64_C(14695981039346656037)

/* hash: the seed, or what was hashed before */
static inline uint32_t prof_i_hash32(uint32_t hash, const char *bytes, size_t count) {
  for (size_t i = 0; i < count; i++) hash = (hash ^ (unsigned char)bytes[i]) * UINT32_C(16777619);
  return hash;
}

static inline uint64_t prof_i_hash64(uint64_t hash, const char *bytes, size_t count) {
  for (size_t i = 0; i < count; i++)
    hash = (hash ^ (unsigned char)bytes[i]) * UINT64_C(1099511628211);
  return hash;
}

#endif
