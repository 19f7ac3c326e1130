/* See async.h. */
#include "async.h"

#include <stdio.h>
#include <stdlib.h>

#include "import.h"

static uint64_t hash_of(uint64_t hash, import_text text) {
  for (size_t i = 0; i < text.bytes; i++) hash = (hash ^ (unsigned char)text.data[i]) * 1099511628211u; /* FNV-1a */
  return hash;
}

static import_lanes *find_lanes(import_async *async, const import_lanes *wanted) {
  import_lanes *lanes;
  HASH_FIND(hh, async->lanes, &wanted->key, sizeof wanted->key, lanes);
  if (lanes) return lanes;
  lanes = import_make(sizeof *lanes);
  *lanes = *wanted;
  HASH_ADD(hh, async->lanes, key, sizeof lanes->key, lanes);
  return lanes;
}

static import_lanes *lanes_of(import_async *async, int64_t pid, uint64_t category) { return find_lanes(async, &(import_lanes){.key = {pid, category}}); }

static import_nest *find_nest(import_async *async, const import_nest *wanted) {
  import_nest *nest;
  HASH_FIND(hh, async->nests, &wanted->key, sizeof wanted->key, nest);
  if (nest) return nest;
  nest = import_make(sizeof *nest);
  *nest = *wanted;
  HASH_ADD(hh, async->nests, key, sizeof nest->key, nest);
  return nest;
}

import_nest *import_async_nest(import_async *async, int64_t pid, import_text category, import_text id) {
  const uint64_t of_category = hash_of(14695981039346656037u, category);
  import_nest *const nest = find_nest(async, &(import_nest){.key = {pid, hash_of(of_category * 31, id)}, .lanes = of_category});
  import_lanes *const lanes = lanes_of(async, pid, of_category);
  if (lanes->count == 0) snprintf(lanes->name, sizeof lanes->name, "async %.*s", (int)(category.bytes < 40 ? category.bytes : 40), category.data);
  return nest;
}

void import_nest_add(import_nest *nest, uint64_t start, uint64_t end, uint64_t place) {
  nest->entries = import_room(nest->entries, &nest->room, nest->count + 1, sizeof *nest->entries);
  nest->entries[nest->count++] = (import_entry){end, start, place};
}

static void free_nest(import_nest *nest) {
  for (size_t i = 0; i < nest->begun_count; i++) free(nest->begun[i].words);
  free(nest->begun);
  free(nest->entries);
  free(nest);
}

static void drop(import_async *async, import_nest *nest) {
  HASH_DEL(async->nests, nest);
  free_nest(nest);
}

/* The row's thread; NULL: all are taken. */
static import_thread *find_lane(import_lanes *lanes, import_threads *threads, uint64_t start, uint64_t end) {
  char name[96];
  uint32_t lane = 0;
  while (lane < lanes->count && lanes->ends[lane] > start) lane++;
  if (lane == IMPORT_LANES_MAX) return NULL;
  const import_thread_id id = {lanes->key.pid, (int64_t)((lanes->key.category + lane) | UINT64_C(1) << 63)};
  if (lane == lanes->count) {
    const int bytes = lane == 0 ? snprintf(name, sizeof name, "%s", lanes->name) : snprintf(name, sizeof name, "%s %u", lanes->name, lane + 1);
    import_threads_name(threads, id, (import_text){name, (size_t)bytes});
    lanes->count++;
  }
  lanes->ends[lane] = end;
  return import_threads_async(threads, id);
}

bool import_async_settle(import_async *async, import_threads *threads, import_nest *nest) {
  uint64_t start = UINT64_MAX, end = 0;
  for (size_t i = 0; i < nest->count; i++) {
    if (nest->entries[i].start < start) start = nest->entries[i].start;
    if (nest->entries[i].end > end) end = nest->entries[i].end;
  }
  if (nest->count == 0) {
    drop(async, nest);
    return true;
  }
  import_thread *const thread = find_lane(lanes_of(async, nest->key.pid, nest->lanes), threads, start, end);
  for (size_t i = 0; thread && i < nest->count; i++) import_thread_add(thread, nest->entries[i].start, nest->entries[i].end, nest->entries[i].place);
  drop(async, nest);
  return thread != NULL;
}

void import_async_fini(import_async *async) {
  import_nest *nest = async->nests;
  import_lanes *lanes = async->lanes;
  HASH_CLEAR(hh, async->nests);
  for (import_nest *next; nest; nest = next) {
    next = nest->hh.next;
    free_nest(nest);
  }
  HASH_CLEAR(hh, async->lanes);
  for (import_lanes *next; lanes; lanes = next) {
    next = lanes->hh.next;
    free(lanes);
  }
}
