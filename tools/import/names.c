/* See names.h. */
#include "names.h"

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
typedef struct item {
  UT_hash_handle hh;
  uint32_t number;
  uint32_t bytes;
  char key[];
} item;

typedef struct table {
  item *items;
  uint32_t count;
} table;

struct import_names {
  table sites, schemas;
  size_t bytes; /* of all keys */
  char *key;    /* under construction */
  size_t key_bytes, room;
};

import_names *import_names_create(void) {
  import_names *const names = import_make(sizeof *names);
  return names;
}

static void destroy(table *t) {
  item *it = t->items;
  HASH_CLEAR(hh, t->items);
  for (item *next; it; it = next) {
    next = it->hh.next;
    free(it);
  }
}

void import_names_destroy(import_names *names) {
  destroy(&names->sites);
  destroy(&names->schemas);
  free(names->key);
  free(names);
}

/* ---- keys ---- */

static void add(import_names *names, const void *bytes, size_t count) {
  names->key = import_room(names->key, &names->room, names->key_bytes + count, 1);
  if (count) memcpy(names->key + names->key_bytes, bytes, count);
  names->key_bytes += count;
}

static void add_number(import_names *names, uint32_t number) { add(names, &number, sizeof number); }

static void add_text(import_names *names, import_text text) {
  add_number(names, (uint32_t)text.bytes);
  add(names, text.data, text.bytes);
}

/* The number of what stands in key; 0: it is new, and there is no room. */
static uint32_t number_of(import_names *names, table *t, uint32_t most) {
  item *it;
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
  add_number(names, site->level);
  add_number(names, site->place.line);
  add_text(names, import_text_cut(site->category, IMPORT_CATEGORY_BYTES_MAX));
  add_text(names, import_text_cut(site->name, IMPORT_TEXT_BYTES_MAX));
  add_text(names, import_text_cut(site->place.file, IMPORT_TEXT_BYTES_MAX));
  add_text(names, import_text_cut(site->place.function, IMPORT_TEXT_BYTES_MAX));
  return number_of(names, &names->sites, SITES_MAX);
}

uint32_t import_names_schema(import_names *names, const import_schema *schema) {
  names->key_bytes = 0;
  add_number(names, schema->kind);
  add_number(names, schema->count);
  for (uint32_t i = 0; i < schema->count; i++) {
    add_number(names, schema->types[i]);
    add_text(names, schema->keys[i]);
  }
  return number_of(names, &names->schemas, SCHEMAS_MAX);
}

/* ---- records ---- */

static uint32_t take_number(const char **at) {
  uint32_t number;
  memcpy(&number, *at, sizeof number);
  *at += sizeof number;
  return number;
}

static import_text take_text(const char **at) {
  const uint32_t bytes = take_number(at);
  const import_text text = {*at, bytes};
  *at += bytes;
  return text;
}

static void put_site(import_record *record, const item *it, uint32_t late_level) {
  const char *at = it->key;
  const uint32_t known = take_number(&at);
  const uint64_t level = known ? known : late_level, line = take_number(&at);
  const import_text category = take_text(&at), name = take_text(&at), file = take_text(&at),
                    function = take_text(&at);
  import_record_begin(record);
  import_record_word(record, level << 32 | line);
  import_record_text(record, name);
  import_record_text(record, category);
  import_record_text(record, file);
  import_record_text(record, function);
  import_record_end(record, PROF_I_KIND_SITE, 0, 0, it->number, 0);
}

static void put_schema(import_record *record, const item *it) {
  const char *at = it->key;
  const uint64_t kind = take_number(&at), count = take_number(&at);
  import_record_begin(record);
  import_record_word(record, it->number | kind << 32 | count << 40);
  import_record_text(record, (import_text){"", 0});
  for (uint64_t i = 0; i < count; i++) {
    import_record_word(record, take_number(&at));
    import_record_text(record, take_text(&at));
  }
  import_record_end(record, PROF_I_KIND_SCHEMA, 0, 0, 0, 0);
}

/* uthash keeps the order in which they came. */
void import_names_each(const import_names *names, uint32_t late_level,
                       void (*take)(void *user, import_record *record), void *user) {
  import_record *const record = import_make(sizeof *record);
  for (const item *it = names->sites.items; it; it = it->hh.next)
    put_site(record, it, late_level), take(user, record);
  for (const item *it = names->schemas.items; it; it = it->hh.next)
    put_schema(record, it), take(user, record);
  free(record);
}
