/* Arrows (ph s, t, f): what launched a device's work becomes its launch, which exports draw anew;
   all others are kept as they are. */
#ifndef PROF_IMPORT_ARROWS_H
#define PROF_IMPORT_ARROWS_H

#include "convert.h"

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

/* Processes on which something was launched stand for devices. */
void import_arrows_find_devices(const import_arrows *arrows, import_state *state);

/* Once all scopes have come, and asynchronous ones have their rows. */
void import_arrows_convert(import_arrows *arrows, const import_async *async, import_state *state);

void import_arrows_fini(import_arrows *arrows);

#endif
