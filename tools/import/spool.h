/* What waits in a file without a name until the whole trace has been read: records and events.
   Records of a thread are in the capture in the order in which they ended, and a trace has them in
   any order. Memory holds 32 bytes of a record, and 24 of an event. */
#ifndef PROF_IMPORT_SPOOL_H
#define PROF_IMPORT_SPOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "event.h"

/* An event in its thread's list: its ticks, and the place of its words from the second one on. */
typedef struct import_entry {
  uint64_t end, start;
  uint64_t place; /* word << 20 | words << 5 | IMPORT_ENTRY_... */
  uint64_t order; /* the event's in the file: of two that are equal the first is the outer one */
} import_entry;

enum {
  IMPORT_ENTRY_MARK = 1,
  IMPORT_ENTRY_FUNCTION = 2 /* of Python */,
  IMPORT_ENTRY_NEXT = 2 /* a mark: it is inside of what begins with it */,
  IMPORT_ENTRY_MOVED = 4,
  IMPORT_ENTRY_ASYNC = 8 /* it holds nothing */,
  IMPORT_ENTRY_OPEN = 16 /* a scope that had not ended; its duration has a word: open.c */,
  IMPORT_ENTRY_WORDS_SHIFT = 5
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

/* What was added so far can be read, and changed in place. More may be added. */
void import_spool_map(import_spool *spool);
/* Ends adding. All can be read. */
void import_spool_close(import_spool *spool);
void import_spool_fini(import_spool *spool);

static inline uint64_t *import_entry_words(const import_spool *spool, const import_entry *entry,
                                           uint32_t *count_out) {
  *count_out = entry->place >> IMPORT_ENTRY_WORDS_SHIFT & 0x7fff;
  return spool->words + (entry->place >> 20);
}

/* ---- events as words ---- */

/* Appends the event. Texts longer than a record has room for are cut. */
void import_spooled_event_put(import_spool *spool, const import_event *event);

/* Reads its members alone. The event's texts stay among the words. */
void import_spooled_event_members(uint64_t *words, import_event *event_out);

/* Reads all of it. */
void import_spooled_event_read(uint64_t *words, import_event *event_out);

/* ---- deferred.c ---- */

/* Events that are taken in the order of time, after the whole trace has been read. These are begins
   and ends, asynchronous events, arrows, counters, memory, marks, and scopes of rows that may be a
   device's. */

#define IMPORT_DEFERRED_NONE UINT32_MAX

/* The end of an arrow that the asynchronous event before it in the list holds. */
enum { IMPORT_DEFERRED_HELD = 4 };

typedef struct import_deferred_entry {
  uint64_t time;
  uint64_t place;        /* word of the spool << 8 | ph */
  uint32_t match_number; /* of a begin: its end, and the other way round */
  uint32_t bits;
} import_deferred_entry;

typedef struct import_deferred {
  import_spool spool;
  import_deferred_entry *entries;
  size_t count, room;
} import_deferred;

struct import_state;

void import_deferred_add(struct import_state *state, const import_event *event, char phase,
                         uint64_t time);

/* The last entry is the end of an arrow. The previous entry is the asynchronous event that holds
   it. Both have one time, so that they stay side by side. */
void import_deferred_hold(import_deferred *deferred);

/* Converts all events. Call it once. */
void import_deferred_convert(struct import_state *state);

/* The event's words, for import_spooled_event_read(). */
static inline uint64_t *import_deferred_words(const import_deferred *deferred,
                                              const import_deferred_entry *entry) {
  return deferred->spool.words + (entry->place >> 8);
}

/* The event's place in the file, as import_entry has it. */
static inline uint64_t import_deferred_order(const import_deferred *deferred,
                                             const import_deferred_entry *entry) {
  return import_deferred_words(deferred, entry)[-1];
}

void import_deferred_fini(import_deferred *deferred);

#endif
