/* The columns of a trace: their distinct texts, batches of their values as Arrow arrays, and their
   schema. Called by arrow.c only.

   Arrow lets a program keep one column and release the others. So each array and each schema owns
   its memory. A parent releases the children that were not moved away. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/display.h"
#include "../base/error.h"
#include "../base/text.h"
#include "../reader/internal.h"
#include "arrow.h"

/* ---- distinct texts ---- */

/* The texts of columns of indexes are contiguous in a block of memory. An array of texts is that
   block and a count, so batches share it. New texts are only appended after the bytes that other
   arrays read. A full block is copied to a larger one. The old block stays until its last array is
   released. */

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

/* ---- arrays of texts ---- */

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

/* Exports the texts so far as an Arrow array. False: no memory. */
static bool dictionary_export(prof_i_arrow_dictionary *dictionary, struct ArrowArray *to) {
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

/* ---- columns ---- */

/* Texts, not pointers: the loader would have to relocate those. */
static const struct {
  char name[24], format[2];
  uint8_t value_bytes;
  bool is_nullable;
} columns[PROF_I_ARROW_COLUMN_COUNT] = {
#define COLUMN(id, name, format, bytes, is_nullable) {name, format, bytes, is_nullable},
    PROF_I_ARROW_COLUMNS(COLUMN)
#undef COLUMN
};

/* ---- batches ---- */

static bool column_init(prof_i_arrow_values *values, size_t value_bytes, bool is_nullable,
                        uint64_t room) {
  values->values = calloc(room + 1, value_bytes);
  if (is_nullable) values->validity = calloc(room / 8 + 1, 1);
  return values->values && (values->validity || !is_nullable);
}

bool prof_i_arrow_batch_init(prof_i_arrow_batch *batch, uint64_t room) {
  for (int i = 0; i < PROF_I_ARROW_COLUMN_COUNT; i++)
    if (!column_init(&batch->columns[i], columns[i].value_bytes, columns[i].is_nullable, room)) {
      prof_i_arrow_batch_fini(batch);
      return false;
    }
  return true;
}

void prof_i_arrow_batch_fini(prof_i_arrow_batch *batch) {
  for (int i = 0; i < PROF_I_ARROW_COLUMN_COUNT; i++) {
    free(batch->columns[i].values);
    free(batch->columns[i].validity);
  }
  free(batch->args_text);
  *batch = (prof_i_arrow_batch){0};
}

/* ---- arrays of a batch ---- */

typedef struct column_array {
  const void *buffers[3]; /* validity, values; of text: validity, offsets, bytes */
  void *owned[3];
} column_array;

static void dictionary_release(struct ArrowArray *dictionary) {
  if (dictionary && dictionary->release) dictionary->release(dictionary);
  free(dictionary);
}

static void column_array_release(struct ArrowArray *array) {
  column_array *const column = array->private_data;
  for (int i = 0; i < 3; i++) free(column->owned[i]);
  dictionary_release(array->dictionary);
  free(column);
  array->release = NULL;
}

static void batch_array_release(struct ArrowArray *array) {
  for (int64_t i = 0; i < array->n_children; i++) {
    if (array->children[i]->release) array->children[i]->release(array->children[i]);
    free(array->children[i]);
  }
  free(array->children);
  free(array->private_data); /* its buffers: one, for validity */
  array->release = NULL;
}

/* Makes the array of a column, without its values. The batch owns the values until all arrays have
   been made. False: no memory. */
static bool column_array_init(struct ArrowArray *array, prof_i_arrow_dictionary *dictionary) {
  column_array *const column = calloc(1, sizeof *column);
  if (!column) return false;
  *array = (struct ArrowArray){
      .buffers = column->buffers, .release = column_array_release, .private_data = column};
  if (!dictionary) return true;
  array->dictionary = calloc(1, sizeof *array->dictionary);
  return array->dictionary && dictionary_export(dictionary, array->dictionary);
}

static void column_array_fill(struct ArrowArray *array, prof_i_arrow_batch *batch, int i) {
  const prof_i_arrow_values *const values = &batch->columns[i];
  column_array *const column = array->private_data;
  const bool is_text = i == PROF_I_ARROW_ARGS;
  array->length = (int64_t)batch->row_count;
  array->null_count = values->validity ? (int64_t)(batch->row_count - values->value_count) : 0;
  array->n_buffers = is_text ? 3 : 2;
  column->owned[0] = values->validity;
  column->owned[1] = values->values;
  column->owned[2] = is_text ? batch->args_text : NULL;
  for (int k = 0; k < 3; k++) column->buffers[k] = column->owned[k];
}

/* A parent with an empty array for each column. */
static bool batch_array_init(struct ArrowArray *array) {
  *array = (struct ArrowArray){.n_buffers = 1, .release = batch_array_release};
  array->private_data = calloc(1, sizeof(void *));
  array->buffers = array->private_data;
  array->children = calloc(PROF_I_ARROW_COLUMN_COUNT, sizeof(struct ArrowArray *));
  if (!array->private_data || !array->children) return false;
  for (int i = 0; i < PROF_I_ARROW_COLUMN_COUNT; i++) {
    array->children[i] = calloc(1, sizeof *array->children[i]);
    if (!array->children[i]) return false;
    array->n_children++;
  }
  return true;
}

bool prof_i_arrow_batch_export(prof_i_arrow_batch *batch,
                               prof_i_arrow_dictionary dictionaries[PROF_I_ARROW_COLUMN_COUNT],
                               struct ArrowArray *to) {
  struct ArrowArray made;
  bool is_made = batch_array_init(&made);
  for (int i = 0; i < PROF_I_ARROW_COLUMN_COUNT && is_made; i++)
    is_made = column_array_init(
        made.children[i],
        prof_i_arrow_has_dictionary((prof_i_arrow_column)i) ? &dictionaries[i] : NULL);
  if (!is_made) {
    batch_array_release(&made);
    return false;
  }
  for (int i = 0; i < PROF_I_ARROW_COLUMN_COUNT; i++) column_array_fill(made.children[i], batch, i);
  made.length = (int64_t)batch->row_count;
  *batch = (prof_i_arrow_batch){0};
  *to = made;
  return true;
}

/* ---- the schema ---- */

static void schema_release(struct ArrowSchema *schema) {
  for (int64_t i = 0; i < schema->n_children; i++) {
    if (schema->children[i]->release) schema->children[i]->release(schema->children[i]);
    free(schema->children[i]);
  }
  free(schema->children);
  if (schema->dictionary && schema->dictionary->release)
    schema->dictionary->release(schema->dictionary);
  free(schema->dictionary);
  free(schema->private_data);
  schema->release = NULL;
}

static bool column_schema_init(struct ArrowSchema *schema, int i) {
  *schema = (struct ArrowSchema){.format = columns[i].format,
                                 .name = columns[i].name,
                                 .flags = columns[i].is_nullable ? ARROW_FLAG_NULLABLE : 0,
                                 .release = schema_release};
  if (!prof_i_arrow_has_dictionary((prof_i_arrow_column)i)) return true;
  schema->dictionary = calloc(1, sizeof *schema->dictionary);
  if (!schema->dictionary) return false;
  *schema->dictionary = (struct ArrowSchema){
      .format = "u", .name = "", .flags = ARROW_FLAG_NULLABLE, .release = schema_release};
  return true;
}

static bool add_columns(struct ArrowSchema *schema) {
  schema->children = calloc(PROF_I_ARROW_COLUMN_COUNT, sizeof(struct ArrowSchema *));
  if (!schema->children) return false;
  for (int i = 0; i < PROF_I_ARROW_COLUMN_COUNT; i++) {
    schema->children[i] = calloc(1, sizeof *schema->children[i]);
    if (!schema->children[i]) return false;
    schema->n_children++;
    if (!column_schema_init(schema->children[i], i)) return false;
  }
  return true;
}

/* ---- metadata: facts about the capture ---- */

enum { METADATA_BYTES = 8192, METADATA_TEXT_BYTES = 1024 };

typedef struct metadata {
  char *bytes;
  size_t used;
  int32_t count;
} metadata;

static void metadata_put_bytes(metadata *m, const char *bytes, size_t count) {
  const int32_t length = (int32_t)count;
  memcpy(m->bytes + m->used, &length, sizeof length);
  memcpy(m->bytes + m->used + sizeof length, bytes, count);
  m->used += sizeof length + count;
}

static void metadata_put(metadata *m, const char *key, const char *text) {
  char value[METADATA_TEXT_BYTES];
  const size_t needed = prof_i_sanitize_utf8(value, sizeof value, text, strlen(text));
  metadata_put_bytes(m, key, strlen(key));
  metadata_put_bytes(m, value, needed < sizeof value ? needed : 0);
  m->count++;
}

static void metadata_put_number(metadata *m, const char *key, long long number) {
  char text[32];
  snprintf(text, sizeof text, "%lld", number);
  metadata_put(m, key, text);
}

static void put_info(metadata *m, const prof_trace_info *info) {
  uint64_t lost = 0;
  for (size_t i = 0; i < sizeof info->lost_count / sizeof *info->lost_count; i++)
    lost += info->lost_count[i];
  metadata_put(m, "prof.version", prof_version());
  metadata_put(m, "prof.host", info->host);
  metadata_put(m, "prof.process_name", info->process_name);
  metadata_put_number(m, "prof.pid", info->pid);
  metadata_put_number(m, "prof.rank", info->rank);
  metadata_put_number(m, "prof.world_size", info->world_size);
  metadata_put_number(m, "prof.start_unix_ns", (long long)info->start_unix_ns);
  metadata_put_number(m, "prof.duration_ns", (long long)info->duration_ns);
  metadata_put_number(m, "prof.clock_error_ns", (long long)info->clock_error_ns);
  metadata_put_number(m, "prof.event_count", (long long)info->event_count);
  metadata_put_number(m, "prof.lost_count", (long long)lost);
  metadata_put_number(m, "prof.bad_count", (long long)info->bad_count);
  metadata_put_number(m, "prof.was_clean", info->was_clean);
}

/* The format of Arrow metadata: a count, then keys and values, each after its length. */
static int add_metadata(const prof_trace *trace, struct ArrowSchema *schema) {
  prof_trace_info info = {.size = sizeof info};
  char *loss = NULL;
  int status = prof_trace_info_get(trace, &info);
  if (status == PROF_OK) status = prof_i_trace_loss_text(trace, &loss);
  if (status != PROF_OK) return status;
  metadata m = {.bytes = malloc(METADATA_BYTES), .used = sizeof m.count};
  if (m.bytes) {
    put_info(&m, &info);
    metadata_put(&m, "prof.loss", loss);
    memcpy(m.bytes, &m.count, sizeof m.count);
  }
  free(loss);
  schema->private_data = m.bytes;
  schema->metadata = m.bytes;
  return m.bytes ? PROF_OK : prof_i_fail(PROF_E_NO_MEMORY, "no memory for a schema");
}

int prof_i_arrow_schema(const prof_trace *trace, struct ArrowSchema *to) {
  struct ArrowSchema made = {.format = "+s", .name = "", .release = schema_release};
  int status = add_metadata(trace, &made);
  if (status == PROF_OK && !add_columns(&made))
    status = prof_i_fail(PROF_E_NO_MEMORY, "no memory for the schema of %d columns",
                         PROF_I_ARROW_COLUMN_COUNT);
  if (status == PROF_OK)
    *to = made;
  else
    schema_release(&made);
  return status;
}
