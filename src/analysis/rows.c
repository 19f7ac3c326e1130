/* Makes rows of groups: sorted, cut at the limit, with sanitized texts. A result is one block of
   memory: a hidden head, prof_rows, the rows, prof_row_more of each, texts. See group.h. */
#define _GNU_SOURCE
#include <prof/memory.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "../base/display.h"
#include "../base/error.h"
#include "../base/options.h"
#include "../base/process.h"
#include "../reader/capture.h"
#include "../reader/internal.h"
#include "group.h"
#include "internal.h"

enum { ROWS_DEFAULT = 100 };

typedef struct rows_block {
  const prof_row_more *more;        /* of each row */
  const char **args;                /* the same */
  prof_i_duration_calls *durations; /* of all rows; NULL: not kept */
  size_t *durations_end;            /* by row */
  prof_rows rows;
} rows_block;

static rows_block *rows_block_of(const prof_rows *rows) {
  return (rows_block *)((uintptr_t)rows - offsetof(rows_block, rows));
}

/* ---- order by name ---- */

/* Sorting by name means by group: by name, category, thread and so on, in the order of a table's
   columns. Texts are compared as bytes, numbers as numbers. */

static int order_u64(uint64_t a, uint64_t b) { return (a > b) - (a < b); }

static int order_i64(int64_t a, int64_t b) { return (a > b) - (a < b); }

static int text_order(prof_i_text a, prof_i_text b) {
  const int order = memcmp(a.data, b.data, (size_t)(a.bytes < b.bytes ? a.bytes : b.bytes));
  return order ? order : order_u64(a.bytes, b.bytes);
}

static int location_order(const prof_i_source_location *a, const prof_i_source_location *b) {
  const int order = text_order(a->file, b->file);
  return order ? order : order_u64(a->line, b->line);
}

static bool read_number(prof_i_text text, double *to) {
  enum { ROOM = 64 };
  char room[ROOM], *end;
  if (text.bytes == 0 || text.bytes >= sizeof room) return false;
  memcpy(room, text.data, (size_t)text.bytes);
  room[text.bytes] = '\0';
  *to = strtod(room, &end);
  return end == room + text.bytes && *to == *to;
}

/* Numbers come before other texts. */
static int order_values(prof_i_text a, prof_i_text b) {
  double x, y;
  const bool is_number = read_number(a, &x), is_other_number = read_number(b, &y);
  if (is_number != is_other_number) return is_number ? -1 : 1;
  const int order = is_number ? (x > y) - (x < y) : 0;
  return order ? order : text_order(a, b);
}

static int order_shapes(prof_i_text a, prof_i_text b) {
  const uint64_t *const x = (const void *)a.data, *const y = (const void *)b.data;
  const uint64_t least = (a.bytes < b.bytes ? a.bytes : b.bytes) / sizeof *x;
  for (uint64_t i = 0; i < least; i++)
    if (x[i] != y[i]) return order_u64(x[i], y[i]);
  return order_u64(a.bytes, b.bytes);
}

/* By name, category and device. */
static int group_name_order(const prof_i_group *a, const prof_i_group *b) {
  const prof_i_group_key *const x = &a->key, *const y = &b->key;
  int order = text_order(x->name, y->name);
  if (!order) order = text_order(x->category, y->category);
  if (!order) order = order_i64(x->device.type, y->device.type);
  return order ? order : order_i64(x->device.index, y->device.index);
}

/* By shape or argument, source location and stack. is_arg: the key's shape is an argument's value.
   */
static int group_detail_order(const prof_i_group *a, const prof_i_group *b, bool is_arg) {
  const prof_i_group_key *const x = &a->key, *const y = &b->key;
  int order = is_arg ? order_values(x->shape, y->shape) : order_shapes(x->shape, y->shape);
  if (!order) order = location_order(&x->location, &y->location);
  return order ? order : text_order(x->stack, y->stack);
}

/* A thread has rank 0. */
typedef struct named_item {
  int32_t rank;
  prof_i_text name;
  int64_t number;
  uint32_t index;
} named_item;

static int order_named(const void *x, const void *y) {
  const named_item *const a = x, *const b = y;
  int order = order_i64(a->rank, b->rank);
  if (!order) order = text_order(a->name, b->name);
  if (!order) order = order_i64(a->number, b->number);
  return order ? order : order_u64(a->index, b->index);
}

/* Sorts the items. NULL: no memory. */
static uint32_t *make_ranks(named_item *items, uint32_t count) {
  uint32_t *const ranks = malloc(((size_t)count + 1) * sizeof *ranks);
  if (!ranks) return NULL;
  qsort(items, count, sizeof *items, order_named);
  for (uint32_t i = 0; i < count; i++) ranks[items[i].index] = i;
  return ranks;
}

static uint32_t *rank_threads(const prof_trace *const *traces, size_t trace_count) {
  uint32_t count = 0;
  for (size_t i = 0; i < trace_count; i++) count += traces[i]->thread_count;
  named_item *const items = malloc(((size_t)count + 1) * sizeof *items);
  if (!items) return NULL;
  count = 0;
  for (size_t i = 0; i < trace_count; i++)
    for (uint32_t t = 0; t < traces[i]->thread_count; t++, count++) {
      const prof_i_trace_thread *const thread = &traces[i]->threads[t];
      const prof_i_text name = {thread->name, strnlen(thread->name, sizeof thread->name)};
      items[count] = (named_item){0, name, (int64_t)thread->tid, count};
    }
  uint32_t *const ranks = make_ranks(items, count);
  free(items);
  return ranks;
}

static uint32_t *rank_processes(const prof_i_processes *processes) {
  named_item *const items = malloc(((size_t)processes->count + 1) * sizeof *items);
  if (!items) return NULL;
  for (uint32_t i = 0; i < processes->count; i++) {
    const prof_i_process_record *const process = &processes->all[i];
    items[i] = (named_item){process->rank, process->name, process->pid, i};
  }
  uint32_t *const ranks = make_ranks(items, processes->count);
  free(items);
  return ranks;
}

/* The position of each thread and process when they are sorted by name and number. */
typedef struct name_ranks {
  uint32_t *threads, *processes;
} name_ranks;

/* False: no memory. */
static bool name_ranks_init(name_ranks *ranks, const prof_trace *const *traces, size_t trace_count,
                            const prof_i_processes *processes) {
  ranks->threads = rank_threads(traces, trace_count);
  ranks->processes = rank_processes(processes);
  return ranks->threads && ranks->processes;
}

static void name_ranks_fini(name_ranks *ranks) {
  free(ranks->threads);
  free(ranks->processes);
}

/* Combines the rank of a group's process (high bits) and that of its thread into one number. */
static uint64_t name_rank(const name_ranks *ranks, const prof_i_group *group) {
  const uint32_t thread = group->key.thread, process = group->key.process;
  const uint64_t high = process == UINT32_MAX ? process : ranks->processes[process];
  return high << 32 | (thread == UINT32_MAX ? thread : ranks->threads[thread]);
}

/* ---- order by weight ---- */

/* The same, also of negative values. */
static uint64_t is_above_least(int64_t bytes) { return (uint64_t)bytes ^ UINT64_C(1) << 63; }

static uint64_t cost_removed_ns(uint64_t ns, double cost_ns) {
  return cost_ns < (double)ns ? ns - (uint64_t)cost_ns : 0;
}

/* Device work of no host scope has no calls there. */
static uint64_t device_calls(const prof_i_group *g) {
  return g->stats.calls ? g->stats.calls : g->on_device.count;
}

/* The median and the 99th percentile sort the exact durations of the group. */
static uint64_t group_weight(prof_i_group *g, uint32_t sort) {
  switch ((prof_sort)sort) {
    case PROF_SORT_TOTAL:
      return prof_i_group_total(g);
    case PROF_SORT_SELF:
      return g->stats.self_ns;
    case PROF_SORT_CALLS:
      return g->stats.calls;
    case PROF_SORT_MEAN:
      return g->stats.calls ? g->stats.total_ns / g->stats.calls : 0;
    case PROF_SORT_MAX:
      return g->stats.max_ns;
    case PROF_SORT_NAME:
      return 0;
    case PROF_SORT_MEMORY:
      return is_above_least(prof_i_bytes_add_wrapping(g->memory.host, g->memory.device));
    case PROF_SORT_FIRST:
      return ~g->first_ns;
    case PROF_SORT_DEVICE:
      return prof_i_group_device_total(g);
    case PROF_SORT_SELF_DEVICE:
      return g->on_device.self_ns;
    case PROF_SORT_SELF_MEMORY:
      return is_above_least(prof_i_bytes_add_wrapping(g->memory.self_host, g->memory.self_device));
    case PROF_SORT_MEDIAN:
      return prof_i_duration_stats_quantile(&g->stats, 0.5);
    case PROF_SORT_P99:
      return prof_i_duration_stats_quantile(&g->stats, 0.99);
    case PROF_SORT_DEVICE_MEAN:
      return device_calls(g) ? g->on_device.each_ns / device_calls(g) : 0;
    case PROF_SORT_SELF_NET:
      return cost_removed_ns(g->stats.self_ns, g->self_cost_ns);
    case PROF_SORT_TOTAL_NET:
      return cost_removed_ns(prof_i_group_total(g), g->total_cost_ns);
    case PROF_SORT_OPEN:
      return g->open_count;
    case PROF_SORT_OPEN_FOR:
      return g->open_ns;
    case PROF_SORT_SKIPPED:
      return g->skipped_count;
  }
  return 0;
}

/* Small: there are as many as groups. */
typedef struct ranked_group {
  uint64_t weight;
  prof_i_group *of;
} ranked_group;

static int compare_falling(uint64_t a, uint64_t b) { return (a < b) - (a > b); }

/* By falling total, then by name, then by the other parts of the key, so that the order is the same
   in each run. */
static int group_compare_total(const prof_i_group *a, const prof_i_group *b) {
  int order = compare_falling(prof_i_group_total(a), prof_i_group_total(b));
  if (!order) order = text_order(a->key.name, b->key.name);
  if (!order) order = location_order(&a->key.location, &b->key.location);
  if (!order) order = (a->key.thread > b->key.thread) - (a->key.thread < b->key.thread);
  return order ? order : (a->key.process > b->key.process) - (a->key.process < b->key.process);
}

static int ranked_compare_name(const void *x, const void *y) {
  const prof_i_group *const a = ((const ranked_group *)x)->of, *const b =
                                                                   ((const ranked_group *)y)->of;
  const int order = text_order(a->key.name, b->key.name);
  return order ? order : group_compare_total(a, b);
}

/* Of calls without durations: PROF_I_NO_DURATION. */
static int group_compare_calls(const prof_i_group *a, const prof_i_group *b) {
  return a->stats.max_ns || b->stats.max_ns ? 0 : compare_falling(a->stats.calls, b->stats.calls);
}

/* By falling weight. Rows without one by device time, then by how long it has been open, then by
   calls if none took time, then by name. */
static int ranked_compare_weight(const void *x, const void *y) {
  const ranked_group *const a = x, *const b = y;
  if (a->weight != b->weight) return compare_falling(a->weight, b->weight);
  if (a->weight) return group_compare_total(a->of, b->of);
  int order = compare_falling(a->of->on_device.self_ns, b->of->on_device.self_ns);
  if (!order) order = compare_falling(a->of->open_ns, b->of->open_ns);
  if (!order) order = group_compare_calls(a->of, b->of);
  return order ? order : ranked_compare_name(x, y);
}

static int ranked_compare_row(const ranked_group *a, const ranked_group *b, bool is_arg) {
  int order = group_name_order(a->of, b->of);
  if (!order) order = (a->weight > b->weight) - (a->weight < b->weight);
  if (!order) order = group_detail_order(a->of, b->of, is_arg);
  return order ? order : group_compare_total(a->of, b->of);
}

static int ranked_compare_texts(const void *x, const void *y) {
  return ranked_compare_row(x, y, false);
}

/* For rows by an argument. */
static int ranked_compare_args(const void *x, const void *y) {
  return ranked_compare_row(x, y, true);
}

/* Sorts the rows by name. Their weights become the ranks of threads and processes. False: no
   memory. */
static bool sort_by_name(ranked_group *order, uint64_t count, uint32_t by,
                         const prof_trace *const *traces, size_t trace_count,
                         const prof_i_processes *processes) {
  name_ranks ranks;
  const bool is_done = name_ranks_init(&ranks, traces, trace_count, processes);
  for (uint64_t i = 0; is_done && i < count; i++) order[i].weight = name_rank(&ranks, order[i].of);
  name_ranks_fini(&ranks);
  if (is_done)
    qsort(order, (size_t)count, sizeof *order,
          by & PROF_I_GROUP_ARG ? ranked_compare_args : ranked_compare_texts);
  return is_done;
}

/* ---- texts ---- */

static size_t repaired_bytes(prof_i_text text) {
  return prof_i_sanitize_utf8(NULL, 0, text.data, (size_t)text.bytes) + 1;
}

static const char *text_put_repaired(char **to, prof_i_text text) {
  char *const from = *to;
  *to = from + prof_i_sanitize_text(from, text.data, (size_t)text.bytes);
  return from;
}

static size_t shape_text(prof_i_text shape, char *to, size_t room) {
  const uint64_t *const words = (const uint64_t *)(const void *)shape.data;
  return prof_i_shape_text(words, (size_t)shape.bytes / sizeof *words, to, room);
}

static const char *text_put_shape(char **to, prof_i_text shape) {
  char *const from = *to;
  const size_t bytes = shape_text(shape, from, SIZE_MAX);
  from[bytes] = '\0';
  *to = from + bytes + 1;
  return from;
}

static prof_i_text group_category(const prof_i_group *g) {
  return g->key.category.bytes ? g->key.category : g->category;
}

/* A group without a process has an empty name. */
static prof_i_process_record group_process(const prof_i_processes *processes,
                                           const prof_i_group *g) {
  if (g->key.process != UINT32_MAX) return processes->all[g->key.process];
  return (prof_i_process_record){.rank = -1, .name = {"", 0}};
}

/* The group's shape, or with is_arg its argument's value: both are in key.shape. */
static prof_i_text key_part(const prof_i_group *g, uint32_t by, bool is_arg) {
  return is_arg == ((by & PROF_I_GROUP_ARG) != 0) ? g->key.shape : (prof_i_text){"", 0};
}

static size_t texts_bytes(const prof_i_group *g, const prof_i_processes *processes, uint32_t by) {
  return repaired_bytes(g->key.name) + repaired_bytes(group_category(g)) +
         shape_text(key_part(g, by, false), NULL, 0) + 1 + repaired_bytes(g->key.stack) +
         repaired_bytes(key_part(g, by, true)) + repaired_bytes(g->locations.first.file) +
         repaired_bytes(group_process(processes, g).name);
}

/* ---- durations ---- */

/* False: no memory. */
static bool add_durations(rows_block *block, prof_i_group *g, size_t *count, uint32_t *room) {
  uint64_t calls[PROF_I_DURATION_WIDE_BUCKETS];
  const prof_i_duration_stats *const unscoped = *prof_i_group_unscoped(g);
  prof_i_duration_stats_widen(g->stats.calls || !unscoped ? &g->stats : unscoped, calls);
  for (uint32_t i = 0; i < PROF_I_DURATION_WIDE_BUCKETS; i++) {
    if (!calls[i]) continue;
    if (*count == UINT32_MAX || !prof_i_make_room((void **)&block->durations, room,
                                                  (uint32_t)*count, sizeof *block->durations))
      return false;
    block->durations[(*count)++] = (prof_i_duration_calls){calls[i], i};
  }
  return true;
}

static bool keep_durations(rows_block *block, const ranked_group *order) {
  const uint64_t rows = block->rows.row_count;
  size_t count = 0;
  uint32_t room = 0;
  block->durations_end = malloc((size_t)(rows + 1) * sizeof *block->durations_end);
  if (!block->durations_end) return false;
  for (uint64_t i = 0; i < rows; i++) {
    if (!add_durations(block, order[i].of, &count, &room)) return false;
    block->durations_end[i] = count;
  }
  return true;
}

/* ---- rows ---- */

static prof_row make_row(prof_i_group *g, uint32_t by, char **texts) {
  return (prof_row){.name = text_put_repaired(texts, g->key.name),
                    .category = text_put_repaired(texts, group_category(g)),
                    .shape = text_put_shape(texts, key_part(g, by, false)),
                    .stack = text_put_repaired(texts, g->key.stack),
                    .device = g->key.device,
                    .thread = g->key.thread,
                    .level = g->level,
                    .calls_count = g->stats.calls,
                    .total_ns = prof_i_group_total(g),
                    .self_ns = g->stats.self_ns,
                    .min_ns = g->stats.calls ? g->stats.min_ns : 0,
                    .max_ns = g->stats.max_ns,
                    .median_ns = prof_i_duration_stats_quantile(&g->stats, 0.5),
                    .p99_ns = prof_i_duration_stats_quantile(&g->stats, 0.99),
                    .memory_bytes = g->memory.host,
                    .self_memory_bytes = g->memory.self_host,
                    .device_memory_bytes = g->memory.device,
                    .self_device_memory_bytes = g->memory.self_device,
                    .device_total_ns = prof_i_group_device_total(g),
                    .self_device_ns = g->on_device.self_ns,
                    .device_count = g->on_device.count,
                    .is_async = g->async_count && g->async_count == g->stats.calls};
}

static prof_row_more fill_row_more(const prof_i_group *g, const prof_i_process_record *process,
                                   uint32_t by, bool has_first, char **texts) {
  return (prof_row_more){.size = sizeof(prof_row_more),
                         .file = text_put_repaired(texts, g->locations.first.file),
                         .line = g->locations.first.line,
                         .has_more_places = g->locations.has_more,
                         .calls_ns = g->stats.total_ns,
                         .calls_device_ns = g->on_device.each_ns,
                         .open_count = g->open_count,
                         .open_ns = g->open_ns,
                         .first_ns = has_first ? g->first_ns : 0,
                         .outer_count = by & PROF_GROUP_FLOPS ? g->outer_count : 0,
                         .skipped_count = g->skipped_count,
                         .is_crosswise = g->overlap_ns != 0,
                         .has_process = g->key.process != UINT32_MAX,
                         .process_pid = process->pid,
                         .process_rank = process->rank,
                         .process_name = text_put_repaired(texts, process->name),
                         .record_scope = (uint32_t)g->record_scope,
                         .child_count = g->child_count,
                         .inner_count = g->inner_count,
                         .self_net_ns = cost_removed_ns(g->stats.self_ns, g->self_cost_ns),
                         .total_net_ns = cost_removed_ns(prof_i_group_total(g), g->total_cost_ns)};
}

static void look_at_catalog(const prof_i_catalog *catalog, prof_rows *rows) {
  rows->has_device |= catalog->device_count != 0;
  for (uint32_t i = 0; i < catalog->pool_count; i++) {
    if (catalog->pools[i].kind != PROF_MEMORY_POOL) continue;
    const bool is_host = catalog->pools[i].device.type == PROF_DEVICE_CPU;
    *(is_host ? &rows->has_memory : &rows->has_device_memory) = 1;
  }
}

static void add_totals(prof_rows *rows, const ranked_group *order, uint64_t all) {
  for (uint64_t i = 0; i < all; i++) {
    const prof_i_group *const g = order[i].of;
    rows->total_self_ns += g->stats.self_ns;
    rows->calls_count += g->stats.calls;
    rows->total_self_device_ns += g->on_device.self_ns;
    rows->open_count += g->open_count;
    rows->skipped_count += g->skipped_count;
  }
}

/* NULL: no memory. */
static prof_rows *make_rows(const prof_aggregate_options *options,
                            const prof_i_processes *processes, const ranked_group *order,
                            uint64_t all) {
  const uint64_t limit = options->rows_limit ? options->rows_limit : ROWS_DEFAULT;
  const uint64_t count = limit == UINT32_MAX || all < limit ? all : limit;
  size_t bytes = sizeof(rows_block) +
                 (size_t)count * (sizeof(prof_row) + sizeof(prof_row_more) + sizeof(char *));
  for (uint64_t i = 0; i < count; i++) bytes += texts_bytes(order[i].of, processes, options->group);
  rows_block *const block = malloc(bytes);
  if (!block) return NULL;
  prof_row *const row = (prof_row *)(block + 1);
  prof_row_more *const more = (prof_row_more *)(row + count);
  const char **const args = (const char **)(more + count);
  char *texts = (char *)(args + count);
  block->more = more;
  block->args = args;
  block->durations = NULL;
  block->durations_end = NULL;
  block->rows = (prof_rows){.rows = row, .row_count = count, .all_row_count = all};
  for (uint64_t i = 0; i < count; i++) {
    row[i] = make_row(order[i].of, options->group, &texts);
    args[i] = text_put_repaired(&texts, key_part(order[i].of, options->group, true));
    const prof_i_process_record process = group_process(processes, order[i].of);
    more[i] = fill_row_more(order[i].of, &process, options->group, options->sort == PROF_SORT_FIRST,
                            &texts);
  }
  add_totals(&block->rows, order, all);
  return &block->rows;
}

int prof_i_rows_make(const prof_trace *const *traces, size_t trace_count,
                     const prof_aggregate_options *options, prof_i_group **groups, uint64_t count,
                     const prof_i_unscoped_memory *outside, const prof_i_processes *processes,
                     bool has_durations, prof_rows **rows_out) {
  ranked_group *const order = malloc((size_t)(count + 1) * sizeof *order);
  if (!order) return PROF_E_NO_MEMORY;
  for (uint64_t i = 0; i < count; i++)
    order[i] = (ranked_group){group_weight(groups[i], options->sort), groups[i]};
  const bool is_by_name = options->sort == PROF_SORT_NAME;
  if (!is_by_name) qsort(order, (size_t)count, sizeof *order, ranked_compare_weight);
  const bool is_sorted =
      !is_by_name || sort_by_name(order, count, options->group, traces, trace_count, processes);
  prof_rows *rows = is_sorted ? make_rows(options, processes, order, count) : NULL;
  if (rows && has_durations && !keep_durations(rows_block_of(rows), order)) {
    prof_i_rows_destroy(rows);
    rows = NULL;
  }
  free(order);
  if (!rows) return PROF_E_NO_MEMORY;
  for (size_t i = 0; i < trace_count; i++) look_at_catalog(&traces[i]->catalog, rows);
  rows->outside_memory_count = outside->count;
  rows->outside_memory_first_ns = outside->first_ns;
  rows->outside_memory_bytes = outside->host;
  rows->outside_device_memory_bytes = outside->device;
  *rows_out = rows;
  return 0;
}

const char *prof_i_rows_arg(const prof_rows *rows, uint64_t index) {
  return rows_block_of(rows)->args[index];
}

int prof_rows_more(const prof_rows *rows, uint64_t index, prof_row_more *more_out) {
  if (!rows || !more_out)
    return prof_i_fail(PROF_E_INVALID, "prof_rows_more: %s is NULL", rows ? "more_out" : "rows");
  if (index >= rows->row_count)
    return prof_i_fail(PROF_E_INVALID, "prof_rows_more: index is %llu, and there are %llu rows",
                       (unsigned long long)index, (unsigned long long)rows->row_count);
  const prof_row_more *const more = &rows_block_of(rows)->more[index];
  return prof_i_sized_copy_out(more_out, more, sizeof *more, "prof_row_more");
}

const prof_i_duration_calls *prof_i_rows_durations(const prof_rows *rows, uint64_t index,
                                                   size_t *count_out) {
  const rows_block *const block = rows_block_of(rows);
  const size_t first = block->durations_end && index ? block->durations_end[index - 1] : 0;
  *count_out = block->durations_end ? block->durations_end[index] - first : 0;
  return block->durations ? block->durations + first : NULL;
}

void prof_i_rows_destroy(prof_rows *rows) {
  if (!rows) return;
  free(rows_block_of(rows)->durations);
  free(rows_block_of(rows)->durations_end);
  free(rows_block_of(rows));
}

void prof_rows_destroy(prof_rows *rows) {
  PROF_I_REFUSE_INTERRUPTED();
  PROF_I_INSIDE;
  prof_i_rows_destroy(rows);
}
