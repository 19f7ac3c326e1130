/* Events that belong to an id, and not to a thread: asynchronous ones and arrows. Both are used by
   deferred.c, which gives them in the order of time. */
#ifndef PROF_IMPORT_ASYNC_H
#define PROF_IMPORT_ASYNC_H

#include "../../src/base/text.h"
#include "state.h"

/* Of an id of several texts: hashes one after the other. */
static inline uint64_t import_text_hash(uint64_t hash, import_text text) {
  return prof_i_hash64(hash, text.data, text.bytes) * 31;
}

/* ---- async.c ---- */

/* Asynchronous events (ph b, e, n; older ones: S, F, T, p). What begins and ends under one id
   nests, ids run beside each other, and there are as few rows as events run at once. An event that
   crosses another one under its id has a row of its own. */

enum { IMPORT_LANES_MAX = 1024 };

/* The rows of one category of a process. */
typedef struct import_lanes {
  struct {
    int64_t pid;
    uint64_t category; /* hash */
  } key;
  UT_hash_handle hh;
  uint64_t ends[IMPORT_LANES_MAX]; /* when each is free again */
  uint32_t count;
  char name[64];
} import_lanes;

/* What one id has. */
typedef struct import_nest {
  struct {
    int64_t pid; /* 0: of all processes */
    uint64_t id; /* hash of category, scope and id */
  } key;
  UT_hash_handle hh;
  import_lanes *lanes;
  uint32_t *open; /* of deferred.c: begins without an end so far */
  size_t open_count, open_room;
  import_entry *entries;
  size_t count, room;
} import_nest;

/* An event that holds the end of an arrow. */
typedef struct import_held_event {
  uint64_t place;        /* the event's, as its entry has it */
  import_thread *thread; /* its row, once all have come; NULL: none was left */
  uint32_t end;          /* the arrow's end: entry of deferred.c */
} import_held_event;

typedef struct import_async {
  import_nest *nests;
  import_lanes *lanes;
  import_held_event *held_events;
  size_t held_event_count, held_event_room;
} import_async;

/* True: it is an S or an F. */
bool import_async_is_older(const import_event *event);

/* What the event's id has, on rows of its process. Creates it if there is none. */
import_nest *import_async_nest(import_async *async, const import_event *event);

/* The place where the id's begins wait for their ends. A process may end what another one began,
   unless id2 says "local". An S is ended whatever the category of its F, as in chrome://tracing; a
   b by an e of its own category, as in both viewers. */
import_nest *import_async_open(import_async *async, const import_event *event);

void import_nest_add(import_nest *nest, import_entry entry);

/* The event of that place holds that end of an arrow. */
void import_async_hold(import_async *async, uint64_t place, uint32_t end);

/* At the end of the trace: puts all on rows. Corrects the counts of those that have no row left. */
void import_async_assign_lanes(import_async *async, import_threads *threads, import_counts *counts);

/* After that: the row on which that end of an arrow is held. NULL: its event is not taken. */
import_thread *import_async_holder(const import_async *async, uint32_t end);

void import_async_fini(import_async *async);

/* ---- arrows.c ---- */

/* Arrows (ph s, t, f). What launched a device's work becomes its launch, which exports draw anew.
   All others are kept as they are. */

/* From and to: entries of deferred.c. IMPORT_DEFERRED_NONE: that end is not in the trace. */
typedef struct import_arrow {
  uint32_t from, to;
  uint32_t step; /* how many arrows of its line came before */
  uint32_t line; /* of its chain */
  /* Another process began it, and more than one had begun such arrows. */
  bool is_guessed;
} import_arrow;

/* Arrows one after another. */
typedef struct import_line {
  int64_t pid;   /* of the process where the last one ended, or began */
  uint32_t open; /* the begin that waits for its end, or IMPORT_DEFERRED_NONE */
  uint32_t step;
  bool is_drawn; /* `open` waits for more ends, and has one */
  bool is_step;  /* `open` has ended an arrow, and may be the last: rocprof ends arrows with t */
} import_line;

/* What of one category, name and id has come. If traces of several processes are merged, each
   may use the id for arrows of its own: it has a line of its own. */
typedef struct import_chain {
  uint64_t key; /* hash of category, name and id */
  UT_hash_handle hh;
  import_line *lines;
  size_t count, room;
} import_chain;

/* Which chain has the number. A second chain of that number gets another one. */
typedef struct import_arrow_number {
  uint64_t number;
  UT_hash_handle hh;
  uint64_t key;
} import_arrow_number;

/* Which process began the last arrow that ended at this one, where no other could have. */
typedef struct import_arrow_pair {
  int64_t to;
  UT_hash_handle hh;
  int64_t from;
} import_arrow_pair;

typedef struct import_arrows {
  import_chain *chains;
  import_arrow_pair *pairs;
  import_arrow_number *numbers;
  import_arrow *all;
  size_t count, room;
} import_arrows;

/* The next end, by time; phase: s, t or f. */
void import_arrows_add(import_arrows *arrows, const import_event *event, uint32_t entry,
                       char phase);
/* No more ends come. */
void import_arrows_sort(import_arrows *arrows);

/* Marks processes on which something was launched as devices. */
void import_arrows_find_devices(const import_arrows *arrows, import_state *state);

/* Call it when all scopes are known, and asynchronous ones have their rows. */
void import_arrows_convert(import_arrows *arrows, const import_async *async, import_state *state);

void import_arrows_fini(import_arrows *arrows);

#endif
