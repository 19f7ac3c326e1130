/* Events that prof import takes in the order of time, after it has read the whole trace. These are
   begins and ends, asynchronous events, arrows, counters, memory, marks, and scopes of rows that
   may be a device's. Until then an event is in a file without a name, and 24 bytes of it are in
   memory. */
#ifndef PROF_IMPORT_LATE_H
#define PROF_IMPORT_LATE_H

#include "event.h"
#include "spool.h"

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

/* Takes all, once. */
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
