/* Distinct texts for columns of indexes. The texts are contiguous in a block of memory. An array of
   texts is that block and a count, so batches share it. New texts are only appended after the bytes
   that other arrays read. A full block is copied to a larger one. The old block stays until its
   last array is released. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "../base/display.h"
#include "../base/log.h"
#include "../base/text.h"
#include "arrow.h"

enum { BLOCK_BYTES_FIRST = 1024, SLOTS_FIRST = 64 };

struct prof_i_arrow_block {
  uint32_t use_count; /* atomic: arrays are released by any thread */
  size_t used_bytes, room_bytes;
  char bytes[] __attribute__((aligned(64))); /* as Arrow advises */
};

/* ---- blocks ---- */

static void block_release(prof_i_arrow_block *block) {
  if (block && __atomic_sub_fetch(&block->use_count, 1, __ATOMIC_ACQ_REL) == 0) free(block);
}

static prof_i_arrow_block *block_share(prof_i_arrow_block *block) {
  __atomic_fetch_add(&block->use_count, 1, __ATOMIC_RELAXED);
  return block;
}

/* Appends bytes to the block. False: no memory; the block is unchanged. */
static bool block_append(prof_i_arrow_block **block, const void *bytes, size_t count) {
  const prof_i_arrow_block *const old = *block;
  const size_t used = old ? old->used_bytes : 0;
  if (!old || old->room_bytes - used < count) {
    size_t room = old ? old->room_bytes : BLOCK_BYTES_FIRST;
    while (room - used < count) room *= 2;
    void *memory = NULL;
    if (posix_memalign(&memory, 64, sizeof *old + room) != 0) return false;
    prof_i_arrow_block *const made = memory;
    made->use_count = 1;
    made->used_bytes = used;
    made->room_bytes = room;
    if (old) memcpy(made->bytes, old->bytes, used);
    block_release(*block);
    *block = made;
  }
  if (count > 0) memcpy((*block)->bytes + used, bytes, count);
  (*block)->used_bytes = used + count;
  return true;
}

/* ---- texts ---- */

static prof_i_text text_at(const prof_i_arrow_dictionary *dictionary, uint32_t index) {
  const int32_t *const offsets = (const int32_t *)dictionary->offsets->bytes;
  return (prof_i_text){dictionary->data->bytes + offsets[index],
                       (uint64_t)(offsets[index + 1] - offsets[index])};
}

/* The slot of the text, or the free slot for it. The table always has a free slot. */
static uint32_t *find_slot(const prof_i_arrow_dictionary *dictionary, prof_i_text text) {
  const uint32_t mask = dictionary->slot_count - 1;
  uint32_t at = prof_i_hash32(PROF_I_HASH32_SEED, text.data, (size_t)text.bytes) & mask;
  for (; dictionary->slots[at]; at = (at + 1) & mask) {
    const prof_i_text other = text_at(dictionary, dictionary->slots[at] - 1);
    if (other.bytes == text.bytes && memcmp(other.data, text.data, (size_t)text.bytes) == 0) break;
  }
  return &dictionary->slots[at];
}

/* Keeps the table at most half full. */
static bool make_slots(prof_i_arrow_dictionary *dictionary) {
  if (dictionary->count < dictionary->slot_count / 2) return true;
  const uint32_t count = dictionary->slot_count ? 2 * dictionary->slot_count : SLOTS_FIRST;
  uint32_t *const slots = calloc(count, sizeof *slots);
  if (!slots) return false;
  free(dictionary->slots);
  dictionary->slots = slots;
  dictionary->slot_count = count;
  for (uint32_t i = 0; i < dictionary->count; i++)
    *find_slot(dictionary, text_at(dictionary, i)) = i + 1;
  return true;
}

/* Copies the text to the scratch memory as valid UTF-8. False: no memory. */
static bool make_valid(prof_i_arrow_dictionary *dictionary, prof_i_text *text) {
  enum { GROWTH = 3 }; /* bytes that one becomes at most */
  const size_t room = GROWTH * (size_t)text->bytes + 1;
  if (dictionary->scratch_room < room) {
    char *const larger = realloc(dictionary->scratch, room);
    if (!larger) return false;
    dictionary->scratch = larger;
    dictionary->scratch_room = room;
  }
  text->bytes = prof_i_sanitize_utf8(dictionary->scratch, room, text->data, (size_t)text->bytes);
  text->data = dictionary->scratch;
  return true;
}

static int fail_no_memory(const prof_i_arrow_dictionary *dictionary) {
  return prof_i_fail(PROF_E_NO_MEMORY, "no memory for a text beside %u others", dictionary->count);
}

static int add_text(prof_i_arrow_dictionary *dictionary, prof_i_text text, uint32_t *slot) {
  const uint64_t used = dictionary->data ? dictionary->data->used_bytes : 0;
  const int32_t end = (int32_t)(used + text.bytes), begin = 0;
  if (used + text.bytes > INT32_MAX || dictionary->count >= INT32_MAX / 4)
    return prof_i_fail(PROF_E_TOO_LARGE,
                       "%u different texts of %llu bytes fill an Arrow column; select a part by "
                       "time",
                       dictionary->count, (unsigned long long)used);
  if (!block_append(&dictionary->data, text.data, (size_t)text.bytes) ||
      (!dictionary->offsets && !block_append(&dictionary->offsets, &begin, sizeof begin)) ||
      !block_append(&dictionary->offsets, &end, sizeof end))
    return fail_no_memory(dictionary);
  *slot = ++dictionary->count;
  return PROF_OK;
}

int prof_i_arrow_dictionary_find(prof_i_arrow_dictionary *dictionary, prof_i_text text,
                                 int32_t *index_out) {
  if (!make_slots(dictionary) || !make_valid(dictionary, &text)) return fail_no_memory(dictionary);
  uint32_t *const slot = find_slot(dictionary, text);
  const int status = *slot ? PROF_OK : add_text(dictionary, text, slot);
  if (status == PROF_OK) *index_out = (int32_t)(*slot - 1);
  return status;
}

int prof_i_arrow_dictionary_find_kept(prof_i_arrow_dictionary *dictionary, prof_i_text text,
                                      int32_t *index_out) {
  prof_i_arrow_recent *const recent =
      &dictionary->recent[((uintptr_t)text.data >> 3) % PROF_I_ARROW_RECENT];
  if (recent->text.data == text.data && recent->text.bytes == text.bytes && text.data) {
    *index_out = recent->index;
    return PROF_OK;
  }
  const int status = prof_i_arrow_dictionary_find(dictionary, text, index_out);
  if (status == PROF_OK) *recent = (prof_i_arrow_recent){text, *index_out};
  return status;
}

/* ---- arrays ---- */

typedef struct text_array {
  const void *buffers[3]; /* validity, offsets, bytes */
  prof_i_arrow_block *offsets, *data;
} text_array;

static void text_array_release(struct ArrowArray *array) {
  text_array *const texts = array->private_data;
  block_release(texts->offsets);
  block_release(texts->data);
  free(texts);
  array->release = NULL;
}

bool prof_i_arrow_dictionary_export(prof_i_arrow_dictionary *dictionary, struct ArrowArray *to) {
  const int32_t begin = 0;
  text_array *const texts = calloc(1, sizeof *texts);
  if (!texts || (!dictionary->data && !block_append(&dictionary->data, "", 0)) ||
      (!dictionary->offsets && !block_append(&dictionary->offsets, &begin, sizeof begin))) {
    free(texts);
    return false;
  }
  texts->offsets = block_share(dictionary->offsets);
  texts->data = block_share(dictionary->data);
  texts->buffers[1] = texts->offsets->bytes;
  texts->buffers[2] = texts->data->bytes;
  *to = (struct ArrowArray){.length = dictionary->count,
                            .n_buffers = 3,
                            .buffers = texts->buffers,
                            .release = text_array_release,
                            .private_data = texts};
  return true;
}

void prof_i_arrow_dictionary_fini(prof_i_arrow_dictionary *dictionary) {
  block_release(dictionary->offsets);
  block_release(dictionary->data);
  free(dictionary->slots);
  free(dictionary->scratch);
}
