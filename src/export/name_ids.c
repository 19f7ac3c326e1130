/* See name_ids.h. A hash table with open addressing, at most half full. */
#include "name_ids.h"

#include <stdlib.h>
#include <string.h>

#include "../base/text.h"
#include "../reader/capture.h"

enum { FIRST_SLOTS = 1024 };

static uint64_t name_hash(const prof_i_name *name) {
  uint64_t hash = PROF_I_HASH64_SEED ^ name->site;
  hash = prof_i_hash64(hash, name->name.data, (size_t)name->name.bytes);
  hash = prof_i_hash64(hash, "", 1); /* between the two */
  return prof_i_hash64(hash, name->category.data, (size_t)name->category.bytes);
}

static bool text_equals(prof_i_text a, prof_i_text b) {
  return a.bytes == b.bytes &&
         (a.data == b.data || a.bytes == 0 || memcmp(a.data, b.data, (size_t)a.bytes) == 0);
}

static bool name_equals(const prof_i_name *a, const prof_i_name *b) {
  return a->site == b->site && text_equals(a->name, b->name) &&
         text_equals(a->category, b->category);
}

/* The slot that has the name, or the free one where it belongs. */
static uint32_t *find_slot(const prof_i_name_ids *ids, const prof_i_name *name) {
  uint32_t at = (uint32_t)name_hash(name) & (ids->slot_count - 1);
  while (ids->slots[at] && !name_equals(&ids->names[ids->slots[at] - 1], name))
    at = (at + 1) & (ids->slot_count - 1);
  return &ids->slots[at];
}

static bool grow_slots(prof_i_name_ids *ids) {
  prof_i_name_ids larger = *ids;
  larger.slot_count = ids->slot_count ? 2 * ids->slot_count : FIRST_SLOTS;
  larger.slots = larger.slot_count ? calloc(larger.slot_count, sizeof *larger.slots) : NULL;
  if (!larger.slots) return false;
  for (uint32_t i = 0; i < ids->count; i++) *find_slot(&larger, &ids->names[i]) = i + 1;
  free(ids->slots);
  *ids = larger;
  return true;
}

uint32_t prof_i_name_id(prof_i_name_ids *ids, const prof_i_name *name, bool *is_new_out) {
  *is_new_out = false;
  if (ids->count >= ids->slot_count / 2 && !grow_slots(ids)) return 0;
  uint32_t *const slot = find_slot(ids, name);
  if (*slot != 0) return *slot;
  if (!prof_i_make_room((void **)&ids->names, &ids->name_room, ids->count, sizeof *ids->names))
    return 0;
  ids->names[ids->count++] = *name;
  *is_new_out = true;
  return *slot = ids->count;
}

void prof_i_name_ids_fini(prof_i_name_ids *ids) {
  free(ids->names);
  free(ids->slots);
  *ids = (prof_i_name_ids){0};
}
