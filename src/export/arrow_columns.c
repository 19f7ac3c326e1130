/* The columns of a trace: their schema, and batches of their values as Arrow arrays. Called by
   arrow.c only.

   Arrow lets a program keep one column and release the others. So each array and each schema owns
   its memory. A parent releases the children that were not moved away. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/log.h"
#include "../base/sanitize.h"
#include "../reader/internal.h"
#include "arrow.h"

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

/* ---- arrays ---- */

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
  return array->dictionary && prof_i_arrow_dictionary_export(dictionary, array->dictionary);
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
