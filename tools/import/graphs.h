/* Names of graphs: a counter's process, id and value become part of its name, and two counters
   never have one name on one process. */
#ifndef PROF_IMPORT_GRAPHS_H
#define PROF_IMPORT_GRAPHS_H

#include <uthash.h>

#include "event.h"

typedef struct import_graph_name {
  uint64_t key; /* hash of the name and of the place where it must be unique */
  UT_hash_handle hh;
  uint64_t counter; /* hash of the counter's identity */
} import_graph_name;

typedef struct import_graphs {
  import_graph_name *all;
} import_graphs;

uint64_t import_graphs_hash(uint64_t before, import_text text);

/* If another counter has the name at that place, appends " (2)" and so on. used: bytes of the name.
   room: of its buffer. Returns the number of appended bytes. */
size_t import_graphs_report(import_graphs *graphs, char *name, size_t used, size_t room,
                            int64_t place, uint64_t counter);

void import_graphs_fini(import_graphs *graphs);

#endif
