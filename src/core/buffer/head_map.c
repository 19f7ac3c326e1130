/* See arena.h. A bit a unit, in memory of the process's own. It serves one arena after the
   other, and is never unmapped: a reader of the arena before may be looking at it. */
#define _GNU_SOURCE
#include "arena.h"

#include <sys/mman.h>

#include "../../format/layout.h"

enum { WORD_BITS = 64 };

static struct {
  uint64_t *words; /* the first is their count; NULL: nothing is known; any thread */
  uint64_t arena;  /* whose they are: changes before they do */
} head_map;

static uint64_t head_map_count(const uint64_t *words) { return words ? words[0] : 0; }

static uint64_t head_map_words(uint64_t cap_bytes) {
  return 2 + cap_bytes / PROF_I_UNIT_BYTES / WORD_BITS;
}

/* Twice as large as the last one, at least: what was mapped before stays. */
static void head_map_grow(uint64_t wanted) {
  const uint64_t twice = 2 * head_map_count(head_map.words),
                 count = wanted > twice ? wanted : twice;
  void *const memory = mmap(NULL, count * sizeof *head_map.words, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  uint64_t *const words = memory == MAP_FAILED ? NULL : memory;
  if (words) words[0] = count;
  __atomic_store_n(&head_map.words, words, __ATOMIC_RELEASE);
}

static void head_map_clear(void) {
  for (uint64_t i = 1; i < head_map_count(head_map.words);
       i++) /* pages that were never used stay so */
    if (__atomic_load_n(&head_map.words[i], __ATOMIC_RELAXED))
      __atomic_store_n(&head_map.words[i], 0, __ATOMIC_SEQ_CST);
}

void prof_i_head_map_begin(uint64_t arena, uint64_t cap_bytes) {
  const uint64_t wanted = head_map_words(cap_bytes);
  __atomic_store_n(&head_map.arena, arena, __ATOMIC_SEQ_CST);
  if (wanted > head_map_count(head_map.words))
    head_map_grow(wanted);
  else
    head_map_clear();
}

/* The word of that unit, and its bit. NULL: not known. */
static uint64_t *head_map_word(uint64_t offset, uint64_t *bit_out) {
  uint64_t *const words = __atomic_load_n(&head_map.words, __ATOMIC_ACQUIRE);
  const uint64_t unit = offset / PROF_I_UNIT_BYTES;
  *bit_out = UINT64_C(1) << unit % WORD_BITS;
  return 1 + unit / WORD_BITS < head_map_count(words) ? &words[1 + unit / WORD_BITS] : NULL;
}

void prof_i_head_map_add(uint64_t offset) {
  uint64_t bit;
  uint64_t *const word = head_map_word(offset, &bit);
  if (word) __atomic_fetch_or(word, bit, __ATOMIC_RELEASE);
}

bool prof_i_head_map_may_read(uint64_t arena, uint64_t offset) {
  uint64_t bit;
  const uint64_t *const word = head_map_word(offset, &bit);
  if (!word || __atomic_load_n(word, __ATOMIC_SEQ_CST) & bit) return true;
  /* Second: where the bits are another arena's by now, that is seen here. */
  return __atomic_load_n(&head_map.arena, __ATOMIC_SEQ_CST) != arena;
}
