/* See call_table.h. Open addressing, at most half full. */
#define _GNU_SOURCE
#include "call_table.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { SLOTS_FIRST = 64 };

static size_t free_slot(const run_call_table *table, uint64_t hash) {
  size_t at = hash & (table->slot_count - 1);
  while (table->slots[at].entry) at = (at + 1) & (table->slot_count - 1);
  return at;
}

/* Slots are read in no order: with small pages each read would miss the TLB, too. */
static run_call_slot *make_slots(size_t count) {
  enum { HUGE_TABLE = 2 << 20 };
  const size_t bytes = count * sizeof(run_call_slot);
  void *made = NULL;
  if (bytes < HUGE_TABLE || posix_memalign(&made, HUGE_TABLE, bytes) != 0)
    return run_make(count, sizeof(run_call_slot));
  (void)madvise(made, bytes, MADV_HUGEPAGE);
  return memset(made, 0, bytes);
}

static void table_grow(run_call_table *table) {
  run_call_table old = *table;
  table->slot_count = old.slot_count ? 2 * old.slot_count : SLOTS_FIRST;
  table->slots = make_slots(table->slot_count);
  for (size_t i = 0; i < old.slot_count; i++)
    if (old.slots[i].entry) table->slots[free_slot(table, old.slots[i].hash)] = old.slots[i];
  free(old.slots);
}

run_call_key *run_call_table_find(const run_call_table *table, const char *key, size_t bytes,
                                  uint64_t hash) {
  if (table->slot_count == 0) return NULL;
  const size_t mask = table->slot_count - 1;
  for (size_t at = hash & mask; table->slots[at].entry; at = (at + 1) & mask) {
    if (table->slots[at].hash != hash) continue;
    run_call_key *const found = table->slots[at].entry;
    if (found->bytes == bytes && memcmp(found->at, key, bytes) == 0) return found;
  }
  return NULL;
}

void run_call_table_add(run_call_table *table, run_call_key *entry, uint64_t hash) {
  if (2 * table->count >= table->slot_count) table_grow(table);
  if (table->count == table->room) {
    table->room = table->room ? 2 * table->room : SLOTS_FIRST;
    table->entries = run_grow(table->entries, table->room, sizeof *table->entries);
  }
  table->entries[table->count++] = entry;
  table->slots[free_slot(table, hash)] = (run_call_slot){hash, entry};
}

void run_call_table_free(run_call_table *table) {
  free(table->slots);
  free(table->entries);
  *table = (run_call_table){0};
}
