/* A hash table for distinct calls. uthash follows chains through all entries, which costs a cache
   miss for each; here only the entry that is found is read. */
#ifndef PROF_TOOLS_RUN_CALL_TABLE_H
#define PROF_TOOLS_RUN_CALL_TABLE_H

#include "hash.h"

/* In the order of insertion. Each entry begins with its run_call_key. */
typedef struct run_call_key {
  size_t bytes;
  const char *at;
} run_call_key;

typedef struct run_call_slot {
  uint64_t hash;
  run_call_key *entry; /* NULL: the slot is free */
} run_call_slot;

typedef struct run_call_table {
  run_call_slot *slots;
  size_t slot_count; /* a power of 2, or 0 */
  run_call_key **entries;
  size_t count, room;
} run_call_table;

/* The entry, or NULL. */
run_call_key *run_call_table_find(const run_call_table *table, const char *key, size_t bytes,
                                  uint64_t hash);
/* There is no entry with this key. The table does not free entries. */
void run_call_table_add(run_call_table *table, run_call_key *entry, uint64_t hash);
void run_call_table_free(run_call_table *table);

#endif
