/* Meta records: what belongs to the capture and not to one thread. Written from any thread without
   a lock, and never re-used. */
#ifndef PROF_CORE_BUFFER_META_H
#define PROF_CORE_BUFFER_META_H

#include <stdbool.h>
#include <stddef.h>

#include "../../format/layout.h"

/* Writes one long record of this kind: word 0's ticks, word 1's site, then the words. Any thread.
   Signal-safe. When the arena has no room it is not written: false. */
bool prof_i_meta_write(prof_i_kind kind, uint64_t ticks, uint32_t site, const uint64_t *words,
                       size_t count);

/* The same of a record whose words go on changing, whole words at a time, once `fill` has made
   them: `count` words from words on, all zero before. What fill returns is returned; NULL: no
   room. */
void *prof_i_meta_place(prof_i_kind kind, uint64_t ticks, size_t count,
                        void *(*fill)(uint64_t *words, void *with), void *with);

/* A new arena: forget the extent. */
void prof_i_meta_reset(void);

/* Puts a string as layout.h has them: one word of length, then the bytes padded to 8. Returns the
   words used. */
size_t prof_i_put_text(uint64_t *to, const char *text, size_t bytes);
static inline size_t prof_i_text_words(size_t bytes) { return 1 + (bytes + 7) / 8; }

#endif
