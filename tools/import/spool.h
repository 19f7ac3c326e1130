/* Records until all have come: a thread's stand in the capture in the order in which they ended,
   and a trace has them in any. The words go to a file without a name beside the output, so that
   memory holds 32 bytes an event. */
#ifndef PROF_IMPORT_SPOOL_H
#define PROF_IMPORT_SPOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An event in its thread's list: ticks, and where its words from the second on stand. */
typedef struct import_entry {
  uint64_t end, start;
  uint64_t place; /* word << 20 | words << 4 | IMPORT_ENTRY_... */
  uint64_t order; /* the event's in the file: of two that are equal the first is the outer one */
} import_entry;

enum {
  IMPORT_ENTRY_MARK = 1,
  IMPORT_ENTRY_FUNCTION = 2 /* of Python */,
  IMPORT_ENTRY_NEXT = 2 /* a mark: it is inside of what begins with it */,
  IMPORT_ENTRY_MOVED = 4,
  IMPORT_ENTRY_ASYNC = 8 /* it holds nothing */
};

typedef struct import_spool {
  int fd;
  uint64_t flushed, count; /* words: in the file, and in all */
  uint64_t *waiting;
  uint64_t *words; /* the first mapped_count, once they are mapped */
  uint64_t mapped_count;
} import_spool;

/* folder: of the output. */
void import_spool_open(import_spool *spool, const char *folder);
/* The entry's place. */
uint64_t import_spool_add(import_spool *spool, const uint64_t *words, uint32_t count,
                          uint32_t bits);

/* All that has come so far can be read, and changed in place. More may come. */
void import_spool_map(import_spool *spool);
/* No more comes; all can be read. */
void import_spool_close(import_spool *spool);
void import_spool_fini(import_spool *spool);

static inline uint64_t *import_entry_words(const import_spool *spool, const import_entry *entry,
                                           uint32_t *count_out) {
  *count_out = entry->place >> 4 & 0xffff;
  return spool->words + (entry->place >> 20);
}

#endif
