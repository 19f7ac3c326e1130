/* What can be taken when all has come, in the order of time: begins and ends, asynchronous
   events, arrows, counters, memory, marks, and scopes of rows that may be a device's. Until then an
   event stands in a file without a name, and 24 bytes of it in memory. */
#ifndef PROF_IMPORT_LATE_H
#define PROF_IMPORT_LATE_H

#include "event.h"
#include "spool.h"

#define IMPORT_LATE_NONE UINT32_MAX

/* The end of an arrow that the asynchronous event before it in the list holds. */
enum { IMPORT_LATE_HELD = 4 };

typedef struct import_late_entry {
  uint64_t time;
  uint64_t place; /* word of the spool << 8 | ph */
  uint32_t match; /* of a begin: its end, and the other way round */
  uint32_t bits;
} import_late_entry;

typedef struct import_late {
  import_spool spool;
  import_late_entry *entries;
  size_t count, room;
} import_late;

struct import_state;

void import_late_add(struct import_state *state, const import_event *event, char phase,
                     uint64_t time);

/* What was added last is the end of an arrow, and the one before it the asynchronous event that
   holds it. Both have one time, so that they stay side by side. */
void import_late_hold(import_late *late);

/* Takes all, once. */
void import_late_play(struct import_state *state);

/* The event's words, for import_raw_event(). */
static inline uint64_t *import_late_words(const import_late *late, const import_late_entry *entry) {
  return late->spool.words + (entry->place >> 8);
}

/* The event's place in the file, as import_entry has it. */
static inline uint64_t import_late_order(const import_late *late, const import_late_entry *entry) {
  return import_late_words(late, entry)[-1];
}

void import_late_fini(import_late *late);

#endif
