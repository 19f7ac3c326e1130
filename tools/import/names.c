/* Call sites and schemas, each once in the capture. See record.h. */
#include "record.h"

#include <stdlib.h>
#include <uthash.h>

#include "import.h"

enum {
  SITES_MAX = PROF_I_SITE_COUNT_MAX,
  SCHEMAS_MAX = 1 << 16,
  TEXT_BYTES_MAX = 256 << 20 /* of all names together */
};

/* A site: level, line, then the bytes and the text of each of category, name, file and function. A
   schema: kind, count, then type, key's bytes, key of each. */
typedef struct name_item {
  UT_hash_handle hh;
  uint32_t number;
  uint32_t bytes;
  char key[];
} name_item;

typedef struct name_table {
  name_item *items;
  uint32_t count;
} name_table;

struct import_names {
  name_table sites, schemas;
  size_t bytes; /* of all keys */
  char *key;    /* under construction */
  size_t key_bytes, room;
};

import_names *import_names_create(void) {
  import_names *const names = import_make(sizeof *names);
  return names;
}

static void table_destroy(name_table *t) {
  name_item *it = t->items;
  HASH_CLEAR(hh, t->items);
  for (name_item *next; it; it = next) {
    next = it->hh.next;
    free(it);
  }
}

void import_names_destroy(import_names *names) {
  table_destroy(&names->sites);
  table_destroy(&names->schemas);
  free(names->key);
  free(names);
}

/* ---- keys ---- */

static void key_add(import_names *names, const void *bytes, size_t count) {
  names->key = import_make_room(names->key, &names->room, names->key_bytes + count, 1);
  if (count) memcpy(names->key + names->key_bytes, bytes, count);
  names->key_bytes += count;
}

static void key_add_number(import_names *names, uint32_t number) {
  key_add(names, &number, sizeof number);
}

static void key_add_text(import_names *names, import_text text) {
  key_add_number(names, (uint32_t)text.bytes);
  key_add(names, text.data, text.bytes);
}

/* The number of what stands in key; 0: it is new, and there is no room. */
static uint32_t table_number(import_names *names, name_table *t, uint32_t most) {
  name_item *it;
  HASH_FIND(hh, t->items, names->key, names->key_bytes, it);
  if (it) return it->number;
  if (t->count == most || names->bytes + names->key_bytes > TEXT_BYTES_MAX) return 0;
  it = import_make(sizeof *it + names->key_bytes);
  it->number = ++t->count;
  it->bytes = (uint32_t)names->key_bytes;
  names->bytes += names->key_bytes;
  memcpy(it->key, names->key, names->key_bytes);
  HASH_ADD_KEYPTR(hh, t->items, it->key, it->bytes, it);
  return it->number;
}

uint32_t import_names_site(import_names *names, const import_site *site) {
  names->key_bytes = 0;
  key_add_number(names, site->level);
  key_add_number(names, site->place.line);
  key_add_text(names, import_text_cut(site->category, IMPORT_CATEGORY_BYTES_MAX));
  key_add_text(names, import_text_cut(site->name, IMPORT_TEXT_BYTES_MAX));
  key_add_text(names, import_text_cut(site->place.file, IMPORT_TEXT_BYTES_MAX));
  key_add_text(names, import_text_cut(site->place.function, IMPORT_TEXT_BYTES_MAX));
  return table_number(names, &names->sites, SITES_MAX);
}

uint32_t import_names_schema(import_names *names, const import_schema *schema) {
  names->key_bytes = 0;
  key_add_number(names, schema->kind);
  key_add_number(names, schema->count);
  for (uint32_t i = 0; i < schema->count; i++) {
    key_add_number(names, schema->types[i]);
    key_add_text(names, schema->keys[i]);
  }
  return table_number(names, &names->schemas, SCHEMAS_MAX);
}

/* ---- records ---- */

static uint32_t read_key_number(const char **at) {
  uint32_t number;
  memcpy(&number, *at, sizeof number);
  *at += sizeof number;
  return number;
}

static import_text read_key_text(const char **at) {
  const uint32_t bytes = read_key_number(at);
  const import_text text = {*at, bytes};
  *at += bytes;
  return text;
}

static void put_site_record(import_record *record, const name_item *it, uint32_t late_level) {
  const char *at = it->key;
  const uint32_t known = read_key_number(&at);
  const uint64_t level = known ? known : late_level, line = read_key_number(&at);
  const import_text category = read_key_text(&at), name = read_key_text(&at),
                    file = read_key_text(&at), function = read_key_text(&at);
  import_record_begin(record);
  import_record_word(record, level << 32 | line);
  import_record_text(record, name);
  import_record_text(record, category);
  import_record_text(record, file);
  import_record_text(record, function);
  import_record_end(record, PROF_I_KIND_SITE, 0, 0, it->number, 0);
}

static void put_schema_record(import_record *record, const name_item *it) {
  const char *at = it->key;
  const uint64_t kind = read_key_number(&at), count = read_key_number(&at);
  import_record_begin(record);
  import_record_word(record, it->number | kind << 32 | count << 40);
  import_record_text(record, (import_text){"", 0});
  for (uint64_t i = 0; i < count; i++) {
    import_record_word(record, read_key_number(&at));
    import_record_text(record, read_key_text(&at));
  }
  import_record_end(record, PROF_I_KIND_SCHEMA, 0, 0, 0, 0);
}

/* uthash keeps the order in which they came. */
void import_names_each(const import_names *names, uint32_t late_level,
                       void (*take)(void *user, import_record *record), void *user) {
  import_record *const record = import_make(sizeof *record);
  for (const name_item *it = names->sites.items; it; it = it->hh.next)
    put_site_record(record, it, late_level), take(user, record);
  for (const name_item *it = names->schemas.items; it; it = it->hh.next)
    put_schema_record(record, it), take(user, record);
  free(record);
}
