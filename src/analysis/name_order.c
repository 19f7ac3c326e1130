/* See name_order.h. */
#define _GNU_SOURCE
#include "name_order.h"

#include <stdlib.h>
#include <string.h>

#include "../reader/capture.h"

/* ---- texts and numbers ---- */

static int order_u64(uint64_t a, uint64_t b) { return (a > b) - (a < b); }

static int order_i64(int64_t a, int64_t b) { return (a > b) - (a < b); }

int prof_i_text_order(prof_i_text a, prof_i_text b) {
  const int order = memcmp(a.data, b.data, (size_t)(a.bytes < b.bytes ? a.bytes : b.bytes));
  return order ? order : order_u64(a.bytes, b.bytes);
}

int prof_i_location_order(const prof_i_source_location *a, const prof_i_source_location *b) {
  const int order = prof_i_text_order(a->file, b->file);
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
  return order ? order : prof_i_text_order(a, b);
}

static int order_shapes(prof_i_text a, prof_i_text b) {
  const uint64_t *const x = (const void *)a.data, *const y = (const void *)b.data;
  const uint64_t least = (a.bytes < b.bytes ? a.bytes : b.bytes) / sizeof *x;
  for (uint64_t i = 0; i < least; i++)
    if (x[i] != y[i]) return order_u64(x[i], y[i]);
  return order_u64(a.bytes, b.bytes);
}

int prof_i_group_name_order(const prof_i_group *a, const prof_i_group *b) {
  const prof_i_group_key *const x = &a->key, *const y = &b->key;
  int order = prof_i_text_order(x->name, y->name);
  if (!order) order = prof_i_text_order(x->category, y->category);
  if (!order) order = order_i64(x->device.type, y->device.type);
  return order ? order : order_i64(x->device.index, y->device.index);
}

int prof_i_group_detail_order(const prof_i_group *a, const prof_i_group *b, bool is_arg) {
  const prof_i_group_key *const x = &a->key, *const y = &b->key;
  int order = is_arg ? order_values(x->shape, y->shape) : order_shapes(x->shape, y->shape);
  if (!order) order = prof_i_location_order(&x->location, &y->location);
  return order ? order : prof_i_text_order(x->stack, y->stack);
}

/* ---- threads and processes ---- */

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
  if (!order) order = prof_i_text_order(a->name, b->name);
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

bool prof_i_name_ranks_init(prof_i_name_ranks *ranks, const prof_trace *const *traces,
                            size_t trace_count, const prof_i_processes *processes) {
  ranks->threads = rank_threads(traces, trace_count);
  ranks->processes = rank_processes(processes);
  return ranks->threads && ranks->processes;
}

void prof_i_name_ranks_fini(prof_i_name_ranks *ranks) {
  free(ranks->threads);
  free(ranks->processes);
}

uint64_t prof_i_name_rank(const prof_i_name_ranks *ranks, const prof_i_group *group) {
  const uint32_t thread = group->key.thread, process = group->key.process;
  const uint64_t high = process == UINT32_MAX ? process : ranks->processes[process];
  return high << 32 | (thread == UINT32_MAX ? thread : ranks->threads[thread]);
}
