/* See state.h. */
#include "state.h"

#include <stdio.h>
#include <stdlib.h>

#include "../../src/base/hash.h"
#include "import.h"

enum { GRAPHS_MAX = 1 << 20, TRIES_MAX = 1000 }; /* limits for memory and time */

/* Hashes the text's length, too, so that "a", "bc" and "ab", "c" differ. */
uint64_t import_graphs_hash(uint64_t before, import_text text) {
  const uint64_t seed = before ^ PROF_I_HASH64_SEED ^ text.bytes << 32;
  return prof_i_hash64(seed, text.data, text.bytes) * 0x9e3779b97f4a7c15u;
}

/* True: the name belongs to the counter. A free name is given to it. */
static bool name_is_of_counter(import_graphs *graphs, import_text name, int64_t place,
                               uint64_t counter) {
  const uint64_t key = import_graphs_hash((uint64_t)place, name);
  import_graph_name *it;
  HASH_FIND(hh, graphs->all, &key, sizeof key, it);
  if (it) return it->counter == counter;
  if (HASH_COUNT(graphs->all) >= GRAPHS_MAX) return true;
  it = import_make(sizeof *it);
  it->key = key;
  it->counter = counter;
  HASH_ADD(hh, graphs->all, key, sizeof it->key, it);
  return true;
}

size_t import_graphs_report(import_graphs *graphs, char *name, size_t used, size_t room,
                            int64_t place, uint64_t counter) {
  size_t more = 0;
  for (int number = 2; number < TRIES_MAX; number++) {
    if (name_is_of_counter(graphs, (import_text){name, used + more}, place, counter)) break;
    const int bytes = snprintf(name + used, room - used, " (%d)", number);
    if (bytes < 0 || (size_t)bytes >= room - used) return 0;
    more = (size_t)bytes;
  }
  return more;
}

void import_graphs_fini(import_graphs *graphs) {
  import_graph_name *it = graphs->all;
  HASH_CLEAR(hh, graphs->all);
  for (import_graph_name *next; it; it = next) {
    next = it->hh.next;
    free(it);
  }
}
