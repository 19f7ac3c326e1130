/* Asynchronous events, and the rows that they get. See async.h. */
#include "async.h"

#include <stdio.h>
#include <stdlib.h>

static import_text member_text(const import_event *event, import_member member) {
  const import_value *const value = &event->members[member];
  return value->type == IMPORT_NONE || value->type == IMPORT_NULL ? (import_text){"", 0}
                                                                  : import_text_of(event, value);
}

static import_lanes *find_lanes(import_async *async, int64_t pid, import_text category) {
  import_lanes wanted = {.key = {pid, import_text_hash(PROF_I_HASH64_SEED, category)}}, *lanes;
  HASH_FIND(hh, async->lanes, &wanted.key, sizeof wanted.key, lanes);
  if (lanes) return lanes;
  lanes = import_make(sizeof *lanes);
  lanes->key = wanted.key;
  snprintf(lanes->name, sizeof lanes->name, "async %.*s",
           (int)(category.bytes < 40 ? category.bytes : 40), category.data);
  HASH_ADD(hh, async->lanes, key, sizeof lanes->key, lanes);
  return lanes;
}

static bool event_has_id(const import_event *event) {
  return event->members[IMPORT_ID].type != IMPORT_NONE;
}

static bool event_id_is_global(const import_event *event) {
  static const char begin[] = "{\"global\"";
  const import_text id = member_text(event, IMPORT_ID2);
  return !event_has_id(event) && id.bytes > sizeof begin - 1 &&
         memcmp(id.data, begin, sizeof begin - 1) == 0;
}

bool import_async_is_older(const import_event *event) {
  const import_text phase = member_text(event, IMPORT_PH);
  return import_text_is(phase, "S") || import_text_is(phase, "F");
}

/* is_of_all: of all processes; is_of_any: of all categories. */
static import_nest *find_nest(import_async *async, const import_event *event, bool is_of_all,
                              bool is_of_any) {
  const int64_t pid = import_threads_id(event).pid;
  const import_text category = member_text(event, IMPORT_CAT), none = {"", 0};
  const uint64_t first =
      import_text_hash(PROF_I_HASH64_SEED + is_of_any, is_of_any ? none : category);
  const uint64_t hash =
      import_text_hash(import_text_hash(first, member_text(event, IMPORT_SCOPE)),
                       member_text(event, event_has_id(event) ? IMPORT_ID : IMPORT_ID2));
  import_nest wanted = {.key = {is_of_all ? 0 : pid, hash}}, *nest;
  HASH_FIND(hh, async->nests, &wanted.key, sizeof wanted.key, nest);
  if (nest) return nest;
  nest = import_make(sizeof *nest);
  nest->key = wanted.key;
  nest->lanes = find_lanes(async, pid, category);
  HASH_ADD(hh, async->nests, key, sizeof nest->key, nest);
  return nest;
}

import_nest *import_async_nest(import_async *async, const import_event *event) {
  return find_nest(async, event, event_id_is_global(event), false);
}

import_nest *import_async_open(import_async *async, const import_event *event) {
  return find_nest(async, event, event_has_id(event) || event_id_is_global(event),
                   import_async_is_older(event));
}

void import_nest_add(import_nest *nest, import_entry entry) {
  nest->entries =
      import_make_room(nest->entries, &nest->room, nest->count + 1, sizeof *nest->entries);
  nest->entries[nest->count++] = entry;
}

/* ---- arrows ---- */

void import_async_hold(import_async *async, uint64_t place, uint32_t end) {
  async->held_events = import_make_room(async->held_events, &async->held_event_room,
                                        async->held_event_count + 1, sizeof *async->held_events);
  async->held_events[async->held_event_count++] = (import_held_event){place, NULL, end};
}

static int held_compare_order(const void *a, const void *b) {
  const import_held_event *const x = a, *const y = b;
  return (x->place > y->place) - (x->place < y->place);
}

static int lane_compare_end(const void *a, const void *b) {
  const import_held_event *const x = a, *const y = b;
  return (x->end > y->end) - (x->end < y->end);
}

static import_held_event *find_held(const import_async *async, const import_held_event *wanted,
                                    int (*order)(const void *, const void *)) {
  if (async->held_event_count == 0) return NULL;
  return bsearch(wanted, async->held_events, async->held_event_count, sizeof *async->held_events,
                 order);
}

static void sort_held(import_async *async, int (*order)(const void *, const void *)) {
  if (async->held_event_count)
    qsort(async->held_events, async->held_event_count, sizeof *async->held_events, order);
}

import_thread *import_async_holder(const import_async *async, uint32_t end) {
  const import_held_event *const found =
      find_held(async, &(import_held_event){.end = end}, lane_compare_end);
  return found ? found->thread : NULL;
}

/* ---- rows ---- */

/* What goes to a row as one: the first holds all. */
typedef struct async_tree {
  uint64_t start, end;
  import_lanes *lanes;
  const import_entry *entries;
  size_t count, order;
} async_tree;

typedef struct async_trees {
  async_tree *all;
  size_t count, room;
} async_trees;

/* Outer ones first, and a mark behind what begins with it. */
static int entry_compare_start(const void *a, const void *b) {
  const import_entry *const x = a, *const y = b;
  if (x->start != y->start) return x->start < y->start ? -1 : 1;
  if (x->end != y->end) return x->end > y->end ? -1 : 1;
  return (x->place > y->place) - (x->place < y->place);
}

static int tree_compare(const void *a, const void *b) {
  const async_tree *const x = a, *const y = b;
  if (x->start != y->start) return x->start < y->start ? -1 : 1;
  return (x->order > y->order) - (x->order < y->order);
}

static void add_tree(async_trees *to, const import_nest *nest, size_t from, size_t count) {
  const import_entry *const first = &nest->entries[from];
  to->all = import_make_room(to->all, &to->room, to->count + 1, sizeof *to->all);
  to->all[to->count] = (async_tree){first->start, first->end, nest->lanes, first, count, to->count};
  to->count++;
}

/* Is it inside of what is open, and crosses nothing? Takes off what has ended. */
static bool entry_nests(const import_entry *entry, const uint64_t *ends, size_t *depth) {
  const bool is_mark = entry->place & IMPORT_ENTRY_MARK;
  while (*depth > 0 &&
         (is_mark ? ends[*depth - 1] < entry->start : ends[*depth - 1] <= entry->start))
    --*depth;
  return *depth == 0 || entry->end <= ends[*depth - 1];
}

/* Entries of a tree stand behind each other; what crosses goes to the end, each a tree of its
   own. */
static void find_trees(import_nest *nest, async_trees *to) {
  if (nest->count == 0) return;
  uint64_t *const ends = import_make(nest->count * sizeof *ends);
  import_entry *const crossing = import_make(nest->count * sizeof *crossing);
  size_t depth = 0, kept = 0, crossing_count = 0, from = 0;
  qsort(nest->entries, nest->count, sizeof *nest->entries, entry_compare_start);
  for (size_t i = 0; i < nest->count; i++) {
    const import_entry entry = nest->entries[i];
    if (!entry_nests(&entry, ends, &depth)) {
      crossing[crossing_count++] = entry;
      continue;
    }
    if (depth == 0 && kept > from) {
      add_tree(to, nest, from, kept - from);
      from = kept;
    }
    nest->entries[kept++] = entry;
    if (!(entry.place & IMPORT_ENTRY_MARK) || depth == 0) ends[depth++] = entry.end;
  }
  if (kept > from) add_tree(to, nest, from, kept - from);
  for (size_t i = 0; i < crossing_count; i++) {
    nest->entries[kept + i] = crossing[i];
    add_tree(to, nest, kept + i, 1);
  }
  free(crossing);
  free(ends);
}

/* The row's thread; NULL: all are taken. */
static import_thread *tree_find_lane(const async_tree *it, import_threads *threads) {
  import_lanes *const lanes = it->lanes;
  char name[96];
  uint32_t lane = 0;
  while (lane < lanes->count && lanes->ends[lane] > it->start) lane++;
  if (lane == IMPORT_LANES_MAX) return NULL;
  const int64_t number = (int64_t)((lanes->key.category + lane) | UINT64_C(1) << 63);
  const import_thread_id id = {lanes->key.pid, number};
  if (lane == lanes->count) {
    const int bytes = lane == 0 ? snprintf(name, sizeof name, "%s", lanes->name)
                                : snprintf(name, sizeof name, "%s %u", lanes->name, lane + 1);
    import_threads_name(threads, id, (import_text){name, (size_t)bytes});
    lanes->count++;
  }
  lanes->ends[lane] = it->end;
  return import_threads_async(threads, id);
}

static void drop_tree(const async_tree *it, import_counts *counts) {
  counts->missed[IMPORT_MISS_ASYNC] += it->count;
  for (size_t i = 0; i < it->count; i++)
    *(it->entries[i].place & IMPORT_ENTRY_MARK ? &counts->instants : &counts->scopes) -= 1;
}

static void put_tree_on_row(import_async *async, const async_tree *it, import_thread *thread) {
  for (size_t i = 0; i < it->count; i++) {
    const import_entry *const entry = &it->entries[i];
    import_held_event *const held_events =
        find_held(async, &(import_held_event){.place = entry->place}, held_compare_order);
    import_thread_add(thread, *entry);
    if (held_events) held_events->thread = thread;
  }
}

void import_async_assign_lanes(import_async *async, import_threads *threads,
                               import_counts *counts) {
  async_trees found = {NULL, 0, 0};
  sort_held(async, held_compare_order);
  for (import_nest *nest = async->nests; nest; nest = nest->hh.next) find_trees(nest, &found);
  if (found.count) qsort(found.all, found.count, sizeof *found.all, tree_compare);
  for (size_t i = 0; i < found.count; i++) {
    const async_tree *const it = &found.all[i];
    import_thread *const thread = tree_find_lane(it, threads);
    if (thread)
      put_tree_on_row(async, it, thread);
    else
      drop_tree(it, counts);
  }
  sort_held(async, lane_compare_end);
  free(found.all);
}

void import_async_fini(import_async *async) {
  import_nest *nest = async->nests;
  import_lanes *lanes = async->lanes;
  HASH_CLEAR(hh, async->nests);
  for (import_nest *next; nest; nest = next) {
    next = nest->hh.next;
    free(nest->entries);
    free(nest->open);
    free(nest);
  }
  HASH_CLEAR(hh, async->lanes);
  free(async->held_events);
  for (import_lanes *next; lanes; lanes = next) {
    next = lanes->hh.next;
    free(lanes);
  }
}
