/* See threads.h. */
#define _GNU_SOURCE
#include "threads.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/base/text.h"
#include "import.h"
#include "record.h"

enum { ROWS_MAX = 1 << 20, NAME_BYTES_MAX = 256 };

/* Of src/export/names.c: how far the lanes of a row are apart, for the kernel's numbers and for
   others. */
static const int64_t kernel_step = 10000000, made_step = 6000000, made_first = 2600000000;
/* Rows of the lanes past 255 have numbers from this one up, where there is room. */
static const int64_t far_first = 4140000000;
enum { NEAR_LANES = 256 };

/* ---- which ---- */

static int64_t made_up_tid(import_text text) {
  const uint64_t hash = prof_i_hash64(PROF_I_HASH64_SEED, text.data, text.bytes);
  return (int64_t)(hash | UINT64_C(1) << 63);
}

static int64_t member_number(const import_event *event, import_member member) {
  const import_value *const value = &event->members[member];
  int64_t number;
  if (value->type == IMPORT_NONE || value->type == IMPORT_NULL) return 0;
  const import_text text = import_text_of(event, value);
  return import_number_whole(text, &number) ? number : made_up_tid(text);
}

import_thread_id import_threads_id(const import_event *event) {
  return (import_thread_id){member_number(event, IMPORT_PID), member_number(event, IMPORT_TID)};
}

bool import_threads_is_made(int64_t tid) {
  return tid >= made_first && tid < made_first + made_step;
}

static import_thread *threads_find(import_threads *threads, const import_thread *wanted) {
  import_thread *it = threads->last;
  if (it && memcmp(&it->key, &wanted->key, sizeof it->key) == 0) return it;
  HASH_FIND(hh, threads->all, &wanted->key, sizeof wanted->key, it);
  if (!it) {
    it = import_make(sizeof *it);
    *it = *wanted;
    it->serial = ++threads->count;
    HASH_ADD(hh, threads->all, key, sizeof it->key, it);
  }
  return threads->last = it;
}

import_thread *import_threads_host(import_threads *threads, import_thread_id id) {
  return threads_find(threads, &(import_thread){.key = {id, IMPORT_HOST}, .called = id});
}

import_thread *import_threads_python(import_threads *threads, import_thread_id id) {
  return threads_find(threads, &(import_thread){.key = {id, IMPORT_PYTHON}, .called = id});
}

import_thread *import_threads_async(import_threads *threads, import_thread_id id) {
  return threads_find(threads, &(import_thread){.key = {id, IMPORT_ASYNC}, .called = id});
}

import_thread *import_threads_stream_of(const import_threads *threads, import_thread_id row) {
  import_stream_row *found;
  HASH_FIND(hh, threads->streams, &row, sizeof row, found);
  return found ? found->thread : NULL;
}

import_thread *import_threads_stream(import_threads *threads, int64_t device, int64_t stream,
                                     import_thread_id row) {
  import_thread *const thread =
      threads_find(threads, &(import_thread){.key = {{row.pid, stream}, device}, .called = row});
  if (thread->called.tid == row.tid && thread->count) return thread;
  if (import_threads_stream_of(threads, row)) return thread;
  import_stream_row *const made = import_make(sizeof *made);
  made->id = row;
  made->thread = thread;
  HASH_ADD(hh, threads->streams, id, sizeof made->id, made);
  return thread;
}

/* ---- names ---- */

static import_row *row_find(const import_threads *threads, import_thread_id id) {
  import_row *found;
  HASH_FIND(hh, threads->rows, &id, sizeof id, found);
  return found;
}

void import_threads_name(import_threads *threads, import_thread_id id, import_text name) {
  import_row *row = row_find(threads, id);
  const size_t bytes = name.bytes < NAME_BYTES_MAX ? name.bytes : NAME_BYTES_MAX;
  const int64_t number = row ? row->number : -1;
  if (row) HASH_DEL(threads->rows, row);
  free(row);
  if (HASH_COUNT(threads->rows) >= ROWS_MAX) return;
  row = import_make(sizeof *row + bytes);
  row->id = id;
  row->number = number;
  row->bytes = (uint32_t)bytes;
  if (bytes) memcpy(row->name, name.data, bytes);
  HASH_ADD(hh, threads->rows, id, sizeof row->id, row);
}

import_text import_threads_name_of(const import_threads *threads, import_thread_id id) {
  const import_row *const row = row_find(threads, id);
  return row ? (import_text){row->name, row->bytes} : (import_text){"", 0};
}

void import_threads_say_number(import_threads *threads, import_thread_id id, int64_t number) {
  if (!row_find(threads, id)) import_threads_name(threads, id, (import_text){"", 0});
  import_row *const row = row_find(threads, id);
  if (row) row->number = number;
}

int64_t import_threads_number_of(const import_threads *threads, import_thread_id id,
                                 int64_t fallback) {
  const import_row *const row = row_find(threads, id);
  return row && row->number >= 0 ? row->number : fallback;
}

const import_row_owner *import_threads_owner(const import_threads *threads, import_thread_id row) {
  import_row_owner *found;
  HASH_FIND(hh, threads->owners, &row, sizeof row, found);
  return found;
}

void import_threads_say_owner(import_threads *threads, import_thread_id row, int64_t pid,
                              import_text name) {
  if (import_threads_owner(threads, row) || HASH_COUNT(threads->owners) >= ROWS_MAX) return;
  const size_t bytes = name.bytes < NAME_BYTES_MAX ? name.bytes : NAME_BYTES_MAX;
  import_row_owner *const made = import_make(sizeof *made + bytes);
  made->id = row;
  made->pid = pid;
  made->bytes = (uint32_t)bytes;
  if (bytes) memcpy(made->name, name.data, bytes);
  HASH_ADD(hh, threads->owners, id, sizeof made->id, made);
}

int64_t import_threads_process_number(const import_threads *threads, int64_t pid) {
  const import_thread_id id = {pid, INT64_MIN};
  const import_row *const row = row_find(threads, id);
  return row && row->number != -1 ? row->number : pid;
}

bool import_threads_text(const import_event *event, import_member member, import_text *out) {
  const import_value *const value = &event->members[member];
  int64_t number;
  if (value->type == IMPORT_NONE || value->type == IMPORT_NULL) return false;
  *out = import_text_of(event, value);
  return out->bytes > 0 && !import_number_whole(*out, &number);
}

bool import_threads_keep_pid(import_threads *threads, import_thread_id row, import_text text) {
  const import_thread_id id = {row.pid, INT64_MIN + 1};
  if (import_threads_name_of(threads, id).bytes) return false;
  import_threads_name(threads, id, text);
  return true;
}

import_text import_threads_pid_text(const import_threads *threads, int64_t pid) {
  return import_threads_name_of(threads, (import_thread_id){pid, INT64_MIN + 1});
}

void import_threads_put_process(const import_threads *threads, int64_t pid,
                                char to[IMPORT_PROCESS_BYTES]) {
  static const char begin[] = "process ";
  const import_text text =
      import_text_cut(import_threads_pid_text(threads, pid), IMPORT_PROCESS_BYTES - sizeof begin);
  if (text.bytes)
    snprintf(to, IMPORT_PROCESS_BYTES, "%s%.*s", begin, (int)text.bytes, text.data);
  else
    snprintf(to, IMPORT_PROCESS_BYTES, "%s%lld", begin, (long long)pid);
}

/* ---- events ---- */

void import_thread_add(import_thread *thread, import_entry entry) {
  thread->entries =
      import_make_room(thread->entries, &thread->room, thread->count + 1, sizeof *thread->entries);
  thread->entries[thread->count++] = entry;
  if (entry.place & IMPORT_ENTRY_MARK) return;
  thread->has_functions |= (entry.place & IMPORT_ENTRY_FUNCTION) != 0;
}

/* In the file; what was made of one event stands as it was made. */
static int entry_compare_order(const import_entry *x, const import_entry *y) {
  if (x->order != y->order) return x->order < y->order ? -1 : 1;
  return (x->place > y->place) - (x->place < y->place);
}

static int entry_compare_start(const void *a, const void *b) {
  const import_entry *const x = a, *const y = b;
  if (x->start != y->start) return x->start < y->start ? -1 : 1;
  if (x->end != y->end) return x->end > y->end ? -1 : 1;
  return entry_compare_order(x, y);
}

/* Scopes before marks, which nobody looks for. */
static int scopes_by_start(const void *a, const void *b) {
  const import_entry *const x = a, *const y = b;
  const bool is_mark = x->place & IMPORT_ENTRY_MARK, is_other_mark = y->place & IMPORT_ENTRY_MARK;
  return is_mark != is_other_mark ? is_mark - is_other_mark : entry_compare_start(a, b);
}

static void sort_scopes(import_thread *thread) {
  if (thread->is_sorted) return;
  if (thread->count)
    qsort(thread->entries, thread->count, sizeof *thread->entries, scopes_by_start);
  thread->sorted_count = 0;
  while (thread->sorted_count < thread->count &&
         !(thread->entries[thread->sorted_count].place & IMPORT_ENTRY_MARK))
    thread->sorted_count++;
  thread->is_sorted = true;
}

/* How many scopes begin before that time. */
static size_t count_before(const import_thread *thread, uint64_t time) {
  size_t low = 0, high = thread->sorted_count;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (thread->entries[middle].start < time)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

const import_entry *import_thread_find(import_thread *thread, uint64_t time) {
  sort_scopes(thread);
  const size_t at = time == UINT64_MAX ? thread->sorted_count : count_before(thread, time + 1);
  return at > 0 ? &thread->entries[at - 1] : NULL;
}

const import_entry *import_thread_next(import_thread *thread, uint64_t time) {
  sort_scopes(thread);
  const size_t at = count_before(thread, time);
  return at < thread->sorted_count ? &thread->entries[at] : NULL;
}

/* Is it the name of the row beside which a lane stands, by the lane's own? What has none is called
   "thread 7" there. */
static bool name_is_lane_of(import_text name, import_text wanted) {
  static const char begin[] = "thread ";
  if (name.bytes == 0)
    return wanted.bytes > sizeof begin - 1 && memcmp(wanted.data, begin, sizeof begin - 1) == 0;
  return name.bytes == wanted.bytes && memcmp(name.data, wanted.data, wanted.bytes) == 0;
}

/* "NAME (overlapping NUMBER)" taken apart. False: it is called otherwise. */
static bool read_lane_name(import_text name, import_text *before_out, int64_t *number_out) {
  static const char mark[] = " (overlapping ";
  const char *const at =
      name.bytes > sizeof mark ? memmem(name.data, name.bytes, mark, sizeof mark - 1) : NULL;
  if (!at || name.data[name.bytes - 1] != ')') return false;
  const char *const digits = at + sizeof mark - 1;
  *before_out = (import_text){name.data, (size_t)(at - name.data)};
  return import_number_i64((import_text){digits, (size_t)(name.data + name.bytes - 1 - digits)},
                           number_out) &&
         *number_out >= 1 && *number_out <= UINT16_MAX;
}

static import_thread_id near_lane_row(import_thread_id lane, int64_t number) {
  const int64_t step = lane.tid < made_first ? kernel_step : made_step;
  return (import_thread_id){lane.pid, lane.tid - number * step};
}

/* The last lane of a row whose number says whose it is, by its process and the row's name. */
typedef struct last_near_row {
  import_thread_id id;
  import_text name;
} last_near_row;

typedef struct last_near_rows {
  last_near_row *items;
  size_t count;
} last_near_rows;

static int last_near_compare_name(const void *a, const void *b) {
  const last_near_row *const x = a, *const y = b;
  if (x->id.pid != y->id.pid) return x->id.pid < y->id.pid ? -1 : 1;
  if (x->name.bytes != y->name.bytes) return x->name.bytes < y->name.bytes ? -1 : 1;
  return x->name.bytes ? memcmp(x->name.data, y->name.data, x->name.bytes) : 0;
}

static last_near_rows find_last_nears(const import_threads *threads) {
  last_near_rows found = {
      import_make(((size_t)HASH_COUNT(threads->rows) + 1) * sizeof *found.items), 0};
  for (import_row *row = threads->rows; row; row = row->hh.next) {
    import_text before;
    int64_t number;
    if (row->id.tid >= far_first ||
        !read_lane_name((import_text){row->name, row->bytes}, &before, &number))
      continue;
    if (number == NEAR_LANES - 1) found.items[found.count++] = (last_near_row){row->id, before};
  }
  if (found.count) qsort(found.items, found.count, sizeof *found.items, last_near_compare_name);
  return found;
}

/* Of several rows of one name nobody can tell whose it is. */
static bool far_lane_row(const last_near_rows *nears, int64_t pid, import_text name,
                         import_thread_id *id_out) {
  const last_near_row wanted = {{pid, 0}, name};
  const last_near_row *const items = nears->items;
  if (!nears->count) return false;
  const last_near_row *const it =
      bsearch(&wanted, items, nears->count, sizeof *items, last_near_compare_name);
  if (!it || (it > items && last_near_compare_name(it - 1, it) == 0)) return false;
  if (it + 1 < items + nears->count && last_near_compare_name(it + 1, it) == 0) return false;
  *id_out = near_lane_row(it->id, NEAR_LANES - 1);
  return true;
}

/* The row that this one is a lane of. False: it is no lane. */
static bool find_lane_row(const import_threads *threads, const last_near_rows *nears,
                          import_thread_id lane, import_thread_id *id_out) {
  import_text before;
  int64_t number;
  if (lane.tid <= 0 || !read_lane_name(import_threads_name_of(threads, lane), &before, &number))
    return false;
  *id_out = near_lane_row(lane, number);
  if (lane.tid >= far_first && number >= NEAR_LANES &&
      !far_lane_row(nears, lane.pid, before, id_out))
    return false;
  return name_is_lane_of(import_threads_name_of(threads, *id_out), before);
}

void import_thread_move(import_thread *from, import_thread *to) {
  for (size_t i = 0; i < from->count; i++) import_thread_add(to, from->entries[i]);
  free(from->entries);
  from->entries = NULL;
  from->count = from->room = 0;
}

void import_threads_join(import_threads *threads) {
  /* The loop may make the thread that a lane joins. That thread is no lane. */
  threads->joined = import_make(((size_t)threads->count * 2 + 1) * sizeof *threads->joined);
  last_near_rows nears = find_last_nears(threads);
  for (import_thread *lane = threads->all; lane; lane = lane->hh.next) {
    import_thread_id id;
    if (lane->key.device != IMPORT_HOST || !find_lane_row(threads, &nears, lane->called, &id))
      continue;
    import_thread *const thread = import_threads_host(threads, id);
    import_thread_move(lane, thread);
    threads->joined[lane->serial] = thread->serial;
  }
  free(nears.items);
}

uint32_t import_threads_serial(const import_threads *threads, uint32_t serial) {
  return threads->joined && threads->joined[serial] ? threads->joined[serial] : serial;
}

/* Marks functions that overlap, and those that one of them called. What holds nothing overlaps with
   nothing. stack: room for all. */
static void find_overlapping(import_entry *entries, size_t count, import_entry **stack) {
  size_t depth = 0, moved_depth = 0;
  uint64_t moved_end = 0;
  for (import_entry *it = entries; it != entries + count; it++) {
    if (it->place & (IMPORT_ENTRY_MARK | IMPORT_ENTRY_ASYNC)) continue;
    while (depth > 0 && stack[depth - 1]->end <= it->start) depth--;
    while (depth > 0 && it->end > stack[depth - 1]->end &&
           stack[depth - 1]->place & IMPORT_ENTRY_FUNCTION)
      stack[--depth]->place |= IMPORT_ENTRY_MOVED;
    const bool overlaps = depth > 0 && it->end > stack[depth - 1]->end,
               is_called = it->end <= moved_end && depth <= moved_depth;
    if (!(it->place & IMPORT_ENTRY_FUNCTION) || !(overlaps || is_called)) {
      stack[depth++] = it;
      continue;
    }
    it->place |= IMPORT_ENTRY_MOVED;
    if (is_called) continue;
    moved_end = it->end;
    moved_depth = depth;
  }
}

void import_thread_part(import_threads *threads, import_thread *thread) {
  if (!thread->has_functions || thread->key.device != IMPORT_HOST) return;
  import_entry **const stack = import_make(thread->count * sizeof(import_entry *));
  size_t kept = 0;
  qsort(thread->entries, thread->count, sizeof *thread->entries, entry_compare_start);
  find_overlapping(thread->entries, thread->count, stack);
  free(stack);
  for (size_t i = 0; i < thread->count; i++) {
    const import_entry it = thread->entries[i];
    if (!(it.place & IMPORT_ENTRY_MARK) && it.place & IMPORT_ENTRY_MOVED)
      import_thread_add(import_threads_python(threads, thread->called), it);
    else
      thread->entries[kept++] = it;
  }
  thread->count = kept;
}

static bool entry_is_continued(const import_entry *entry) {
  return (entry->place & IMPORT_ENTRY_MARK) && (entry->place & IMPORT_ENTRY_NEXT);
}

/* A step is one too, but lasts as a scope does. */
static bool entry_is_instant(const import_entry *entry) {
  return entry->place & IMPORT_ENTRY_MARK && entry->start == entry->end;
}

/* Marks stand before what ends with them, those of what begins with them behind it. */
static int entry_compare_inner_first(const void *a, const void *b) {
  const import_entry *const x = a, *const y = b;
  if (x->end != y->end) return x->end < y->end ? -1 : 1;
  const bool x_is_next = entry_is_continued(x), y_is_next = entry_is_continued(y);
  if (x_is_next != y_is_next && x->start != y->start) return x_is_next ? 1 : -1;
  if (x->start != y->start) return x->start > y->start ? -1 : 1;
  const bool x_is_moment = entry_is_instant(x), y_is_moment = entry_is_instant(y);
  if (x_is_moment != y_is_moment) return x_is_moment ? -1 : 1;
  return x_is_moment ? entry_compare_order(x, y) : entry_compare_order(y, x);
}

void import_thread_sort(import_thread *thread) {
  if (thread->count)
    qsort(thread->entries, thread->count, sizeof *thread->entries, entry_compare_inner_first);
}

void import_threads_fini(import_threads *threads) {
  import_thread *it = threads->all;
  import_row *row = threads->rows;
  HASH_CLEAR(hh, threads->all);
  for (import_thread *next; it; it = next) {
    next = it->hh.next;
    free(it->entries);
    free(it);
  }
  import_stream_row *stream = threads->streams;
  HASH_CLEAR(hh, threads->streams);
  for (import_stream_row *next; stream; stream = next) {
    next = stream->hh.next;
    free(stream);
  }
  import_row_owner *owner = threads->owners;
  HASH_CLEAR(hh, threads->owners);
  for (import_row_owner *next; owner; owner = next) {
    next = owner->hh.next;
    free(owner);
  }
  free(threads->joined);
  HASH_CLEAR(hh, threads->rows);
  for (import_row *next; row; row = next) {
    next = row->hh.next;
    free(row);
  }
}
