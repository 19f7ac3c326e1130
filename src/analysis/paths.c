/* See paths.h. */
#include "paths.h"

#include <stdlib.h>
#include <string.h>

#include "../base/display.h"
#include "../base/text.h"
#include "../reader/capture.h"

enum { ROOM_FIRST = 64, NO_ROW = -1 };

/* ---- tables ---- */

static uint32_t mix_hash(uint32_t hash, uint32_t value) {
  const uint64_t product = ((uint64_t)hash << 32 | value) * UINT64_C(0x9e3779b97f4a7c15);
  return (uint32_t)(product >> 32) ^ (uint32_t)product;
}

static uint32_t path_hash(uint32_t parent, uint32_t row) {
  return mix_hash(parent * 31u + 7u, row);
}

/* A table is at most half full. */
static bool rehash_paths(prof_i_paths *p) {
  const uint32_t room = p->table_room ? p->table_room * 2 : 4 * ROOM_FIRST;
  prof_i_path_place *const table = calloc(room, sizeof *table);
  if (!table) return false;
  for (uint32_t i = 1; i < p->count; i++) {
    const prof_i_path *const path = &p->items[i];
    if (path->thread) continue;
    uint32_t at = path_hash(path->parent, path->row) & (room - 1);
    while (table[at].path) at = (at + 1) & (room - 1);
    table[at] = (prof_i_path_place){.parent = path->parent, .row = path->row, .path = i};
  }
  free(p->table);
  p->table = table;
  p->table_room = room;
  return true;
}

static bool rehash_rows(prof_i_paths *p) {
  const uint32_t room = p->row_table_room ? p->row_table_room * 2 : 4 * ROOM_FIRST;
  uint32_t *const table = calloc(room, sizeof *table);
  if (!table) return false;
  for (uint32_t i = 0; i < p->row_count; i++) {
    uint32_t at = p->rows[i].hash & (room - 1);
    while (table[at]) at = (at + 1) & (room - 1);
    table[at] = i + 1;
  }
  free(p->row_table);
  p->row_table = table;
  p->row_table_room = room;
  return true;
}

/* ---- rows ---- */

static bool row_is(const prof_i_path_row *row, uint32_t hash, const prof_i_text *values,
                   uint32_t count, bool is_device) {
  if (row->hash != hash || row->is_device != is_device) return false;
  for (uint32_t i = 0; i < count; i++) {
    const prof_i_text *const raw = &row->values[i].raw;
    if (raw->bytes != values[i].bytes ||
        memcmp(raw->data, values[i].data, (size_t)values[i].bytes) != 0)
      return false;
  }
  return true;
}

/* One block: the values, their texts, and the texts as the capture has them. */
static bool make_row(prof_i_path_row *row, const prof_i_text *values, uint32_t count) {
  size_t bytes = count * sizeof *row->values;
  for (uint32_t i = 0; i < count; i++) bytes += 4 * (size_t)values[i].bytes + 1;
  row->values = malloc(bytes);
  if (!row->values) return false;
  char *to = (char *)(row->values + count);
  for (uint32_t i = 0; i < count; i++) {
    const size_t raw = (size_t)values[i].bytes;
    char *const text = to;
    to += prof_i_sanitize_text(to, values[i].data, raw);
    if (raw) memcpy(to, values[i].data, raw);
    row->values[i] = (prof_i_path_value){.text = text, .raw = {to, raw}};
    to += raw;
  }
  row->name = row->values[0].text;
  row->category = row->values[1].text;
  return true;
}

static uint32_t hash_row(const prof_i_text *values, uint32_t count, bool is_device) {
  uint32_t hash = PROF_I_HASH32_SEED ^ is_device;
  for (uint32_t i = 0; i < count; i++) {
    hash = prof_i_hash32(hash * 16777619u, values[i].data, (size_t)values[i].bytes);
    hash = mix_hash(hash, (uint32_t)values[i].bytes);
  }
  return hash;
}

int64_t prof_i_paths_row_of(prof_i_paths *p, const prof_i_text *values, bool is_device) {
  const uint32_t count = prof_i_paths_value_count(p);
  const uint32_t hash = hash_row(values, count, is_device);
  if (p->row_count * 2 >= p->row_table_room && !rehash_rows(p)) return NO_ROW;
  uint32_t at = hash & (p->row_table_room - 1);
  for (; p->row_table[at]; at = (at + 1) & (p->row_table_room - 1))
    if (row_is(&p->rows[p->row_table[at] - 1], hash, values, count, is_device))
      return p->row_table[at] - 1;
  if (!prof_i_make_room((void **)&p->rows, &p->row_room, p->row_count, sizeof *p->rows))
    return NO_ROW;
  prof_i_path_row *const row = &p->rows[p->row_count];
  *row = (prof_i_path_row){.hash = hash, .is_device = is_device};
  if (!make_row(row, values, count)) return NO_ROW;
  p->row_table[at] = ++p->row_count;
  return p->row_count - 1;
}

int64_t prof_i_paths_row(prof_i_paths *p, prof_i_text name, prof_i_text category, bool is_device) {
  prof_i_text values[PROF_I_GROUP_KEYS_MAX] = {name, category};
  for (uint32_t i = 2; i < prof_i_paths_value_count(p); i++) values[i].data = "";
  return prof_i_paths_row_of(p, values, is_device);
}

/* ---- paths ---- */

bool prof_i_paths_root(prof_i_paths *p) {
  if (p->count) return true;
  if (!prof_i_make_room((void **)&p->items, &p->room, 0, sizeof *p->items)) return false;
  p->items[0] = (prof_i_path){.row = UINT32_MAX};
  p->count = 1;
  return true;
}

uint32_t prof_i_paths_thread(prof_i_paths *p, uint32_t thread) {
  if (!prof_i_make_room((void **)&p->items, &p->room, p->count, sizeof *p->items))
    return PROF_I_NO_PATH;
  p->items[p->count] = (prof_i_path){.row = UINT32_MAX, .thread = thread + 1};
  return p->count++;
}

static bool has_row_above(const prof_i_paths *p, uint32_t path, uint32_t row) {
  for (; path; path = p->items[path].parent)
    if (p->items[path].row == row) return true;
  return false;
}

/* Adds a path to this free place of the table. PROF_I_NO_PATH: no memory. */
static uint32_t make_path(prof_i_paths *p, prof_i_path_place *place, uint32_t parent,
                          uint32_t row) {
  if (!prof_i_make_room((void **)&p->items, &p->room, p->count, sizeof *p->items))
    return PROF_I_NO_PATH;
  *place = (prof_i_path_place){.parent = parent, .row = row, .path = p->count};
  p->items[p->count] =
      (prof_i_path){.parent = parent,
                    .row = row,
                    .depth = p->items[parent].depth + 1,
                    .is_inner = p->rows[row].has_path && has_row_above(p, parent, row)};
  p->rows[row].has_path = true;
  return p->count++;
}

uint32_t prof_i_paths_below(prof_i_paths *p, uint32_t parent, uint32_t row, prof_i_side side) {
  if (p->count * 2 >= p->table_room && !rehash_paths(p)) return PROF_I_NO_PATH;
  const uint32_t mask = p->table_room - 1;
  prof_i_path_place *place = &p->table[path_hash(parent, row) & mask];
  while (place->path && (place->parent != parent || place->row != row))
    place = &p->table[((uint32_t)(place - p->table) + 1) & mask];
  const uint32_t path = place->path ? place->path : make_path(p, place, parent, row);
  if (path && !p->items[path].order[side]) p->items[path].order[side] = ++p->ordered[side];
  return path;
}

uint32_t prof_i_paths_deeper(prof_i_paths *p, uint32_t parent, prof_i_side side) {
  static const prof_i_text name = {"[deeper]", sizeof "[deeper]" - 1};
  if (p->items[parent].is_deeper) return parent;
  const int64_t row = prof_i_paths_row(p, name, (prof_i_text){"", 0}, false);
  const uint32_t path =
      row == NO_ROW ? PROF_I_NO_PATH : prof_i_paths_below(p, parent, (uint32_t)row, side);
  if (path) p->items[path].is_deeper = p->items[path].is_inner = true;
  return path;
}

void prof_i_paths_chain(const prof_i_paths *p, uint32_t path, uint32_t *chain) {
  for (uint32_t i = p->items[path].depth; i-- > 0; path = p->items[path].parent) chain[i] = path;
}

/* Both are in the order in which they were first seen, parents before children. */
bool prof_i_paths_merge(prof_i_paths *p, const prof_i_paths *from, prof_i_side side,
                        uint32_t *rows_out, uint32_t *paths_out) {
  for (uint32_t i = 0; i < from->row_count; i++) {
    const prof_i_path_row *const row = &from->rows[i];
    prof_i_text values[PROF_I_GROUP_KEYS_MAX];
    for (uint32_t v = 0; v < prof_i_paths_value_count(p); v++) values[v] = row->values[v].raw;
    const int64_t number = prof_i_paths_row_of(p, values, row->is_device);
    if (number < 0) return false;
    rows_out[i] = (uint32_t)number;
  }
  if (!prof_i_paths_root(p)) return false;
  for (uint32_t i = 0; i < from->count; i++) {
    const prof_i_path *const path = &from->items[i];
    const uint32_t parent = paths_out[path->parent];
    paths_out[i] = i == 0            ? 0
                   : path->is_deeper ? prof_i_paths_deeper(p, parent, side)
                                     : prof_i_paths_below(p, parent, rows_out[path->row], side);
    if (i > 0 && paths_out[i] == PROF_I_NO_PATH) return false;
    p->items[paths_out[i]].sums[side] = path->sums[side];
  }
  p->host_self_ns[side] = from->host_self_ns[side];
  return true;
}

void prof_i_paths_fini(prof_i_paths *paths) {
  for (uint32_t i = 0; i < paths->row_count; i++) free(paths->rows[i].values);
  free(paths->rows);
  free(paths->items);
  free(paths->table);
  free(paths->row_table);
  *paths = (prof_i_paths){0};
}
