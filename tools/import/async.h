/* Asynchronous events (ph b, e, n; before that S, F, T, p): they belong to an id, not to a thread. What begins and ends under one id nests; ids run beside each other. So each id's whole nest goes to a row of its category on which nothing
   stands at that time, and rows are as few as ids run at once. */
#ifndef PROF_IMPORT_ASYNC_H
#define PROF_IMPORT_ASYNC_H

#include "threads.h"

enum { IMPORT_LANES_MAX = 1024 };

/* What one id has begun. */
typedef struct import_nest {
  struct {
    int64_t pid;
    uint64_t id; /* the category's and the id's hash */
  } key;
  UT_hash_handle hh;
  uint64_t lanes; /* the category's hash */
  import_begun *begun;
  size_t begun_count, begun_room;
  import_entry *entries; /* that have ended */
  size_t count, room;
} import_nest;

/* The rows of a category of a process: when each is free again. */
typedef struct import_lanes {
  struct {
    int64_t pid;
    uint64_t category;
  } key;
  UT_hash_handle hh;
  uint64_t ends[IMPORT_LANES_MAX];
  uint32_t count;
  char name[64];
} import_lanes;

typedef struct import_async {
  import_nest *nests;
  import_lanes *lanes;
} import_async;

/* The id's; it is made where there is none. */
import_nest *import_async_nest(import_async *async, int64_t pid, import_text category, import_text id);

void import_nest_add(import_nest *nest, uint64_t start, uint64_t end, uint64_t place);

/* All has ended: its entries go to a row, and the nest goes. False: there are too many beside them, and they are left out. */
bool import_async_settle(import_async *async, import_threads *threads, import_nest *nest);

void import_async_fini(import_async *async);

#endif
