/* Asynchronous events (ph b, e, n; before that S, F, T, p): they belong to an id, not to a
   thread. What begins and ends under one id nests, ids run beside each other, and rows are as few
   as run at once. What crosses another under its id has a row of its own. */
#ifndef PROF_IMPORT_ASYNC_H
#define PROF_IMPORT_ASYNC_H

#include "import.h"
#include "threads.h"

enum { IMPORT_LANES_MAX = 1024 };

/* Whose rows they are: a category's of a process. */
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

/* Is it an S or an F? */
bool import_async_is_older(const import_event *event);

/* The id's of this event, on rows of its process; it is made where there is none. */
import_nest *import_async_nest(import_async *async, const import_event *event);

/* Where the id's begins wait for their ends: a process may end what another one began, unless id2
   says "local". An S is ended whatever the category of its F, as in chrome://tracing; a b by an e
   of its own category, as in both viewers. */
import_nest *import_async_open(import_async *async, const import_event *event);

void import_nest_add(import_nest *nest, import_entry entry);

/* The event of that place holds that end of an arrow. */
void import_async_hold(import_async *async, uint64_t place, uint32_t end);

/* All have come: they go to rows. For what no row is left the counts are set right. */
void import_async_assign_lanes(import_async *async, import_threads *threads, import_counts *counts);

/* Then: the row on which that end of an arrow is held. NULL: its event is not taken. */
import_thread *import_async_holder(const import_async *async, uint32_t end);

void import_async_fini(import_async *async);

#endif
