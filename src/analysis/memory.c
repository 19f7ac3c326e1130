/* Puts a trace's memory events into one order. Events of one thread are in its order. Events of
   different threads are ordered by the clock. Two events of one pool are ordered by its counter,
   because a thread may be delayed between the two.

   Threads' events are merged by time. An event is held back until all earlier numbers of its pool
   have been merged. A thread reads the clock before it adds to the sum. So an event with an earlier
   number began before the later event's thread went on. Once the merge is past that time, an event
   that is still missing has no record. The slack covers processors that read the clock some
   instructions early. So the missing events are known exactly, except for gaps of a million, which
   count one less. */
#include "memory.h"

#include <stdlib.h>
#include <string.h>

#include "../base/display.h"
#include "../base/error.h"
#include "../base/port.h"
#include "../base/process.h"
#include "../reader/walker.h"
#include "filter.h"
#include "internal.h"

#define HASH_NONFATAL_OOM 1
#define uthash_nonfatal_oom(item) (is_out_of_memory = true)
#include <uthash.h>

/* ---- names of scopes ---- */

typedef struct prof_i_scope_name {
  uint32_t place;
  UT_hash_handle hh;
} prof_i_scope_name;

/* Adds a sanitized name to scopes. 0: no memory. */
static uint32_t scope_name_add(prof_memory *m, prof_i_text text) {
  if (!prof_i_make_room((void **)&m->scopes, &m->scope_room, m->scope_count, sizeof *m->scopes))
    return 0;
  const size_t bytes = prof_i_sanitize_utf8(NULL, 0, text.data, (size_t)text.bytes);
  char *const copy = malloc(bytes + 1);
  if (!copy) return 0;
  prof_i_sanitize_utf8(copy, bytes, text.data, (size_t)text.bytes);
  copy[bytes] = '\0';
  m->scopes[m->scope_count] = copy;
  return m->scope_count++;
}

static uint32_t scope_name_find(prof_memory *m, prof_i_text text) {
  prof_i_scope_name *found = NULL;
  bool is_out_of_memory = false;
  HASH_FIND(hh, m->names, text.data, (size_t)text.bytes, found);
  if (found) return found->place;
  const uint32_t place = scope_name_add(m, text);
  if (!place || !(found = malloc(sizeof *found))) return 0;
  found->place = place;
  HASH_ADD_KEYPTR(hh, m->names, text.data, (size_t)text.bytes, found);
  if (!is_out_of_memory) return place;
  free(found);
  return 0;
}

static void forget_names(prof_memory *m) {
  prof_i_scope_name *name, *next;
  HASH_ITER(hh, m->names, name, next) {
    /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): uthash frees its table with the last one */
    HASH_DEL(m->names, name);
    free(name);
  }
}

/* ---- a thread's events ---- */

/* Events before their scope is emitted: lists by depth, linked through the items themselves. */
typedef struct collection {
  prof_memory *memory;
  uint32_t thread;
  uint32_t *pending; /* by depth: index in items + 1 */
  uint32_t pending_room;
  prof_event event;
} collection;

static int add_item(collection *c, const prof_i_span *span) {
  prof_memory *const m = c->memory;
  if (m->item_count == UINT32_MAX - 1) return PROF_E_TOO_LARGE;
  if (!prof_i_make_room_at_index((void **)&c->pending, &c->pending_room, span->depth,
                                 sizeof *c->pending))
    return PROF_E_NO_MEMORY;
  if (!prof_i_make_room((void **)&m->items, &m->item_room, m->item_count, sizeof *m->items))
    return PROF_E_NO_MEMORY;
  m->items[m->item_count++] =
      (prof_i_memory_item){span->start_ns, span->record, c->thread, c->pending[span->depth]};
  c->pending[span->depth] = m->item_count;
  return 0;
}

/* Sets the scope of the events at this depth. */
static void set_scope_of_pending(collection *c, uint32_t depth, uint32_t scope) {
  for (uint32_t at = c->pending[depth], next; at; at = next) {
    next = c->memory->items[at - 1].scope;
    c->memory->items[at - 1].scope = scope;
  }
  c->pending[depth] = 0;
}

static int name_pending(collection *c, const prof_i_span *span) {
  const uint32_t depth = span->depth + 1u;
  if (depth >= c->pending_room || !c->pending[depth]) return 0;
  prof_i_trace_expand(c->memory->trace, c->thread, span, &c->event);
  const uint32_t name =
      scope_name_find(c->memory, (prof_i_text){c->event.name, c->event.name_bytes});
  if (!name) return PROF_E_NO_MEMORY;
  set_scope_of_pending(c, depth, name);
  return 0;
}

/* A step is not a scope: its events pass to the scope around it. */
static int note_step(collection *c, const prof_i_span *span) {
  prof_memory *const m = c->memory;
  if (!prof_i_make_room((void **)&m->steps, &m->step_room, m->step_count, sizeof *m->steps))
    return PROF_E_NO_MEMORY;
  prof_i_trace_expand(m->trace, c->thread, span, &c->event);
  m->steps[m->step_count++] = (prof_i_memory_step){.ns = span->start_ns + span->duration_ns,
                                                   .number = c->event.id,
                                                   .words = span->record,
                                                   .thread = c->thread};
  const uint32_t depth = span->depth + 1u;
  if (depth >= c->pending_room || !c->pending[depth]) return 0;
  uint32_t last = c->pending[depth];
  while (m->items[last - 1].scope) last = m->items[last - 1].scope;
  m->items[last - 1].scope = c->pending[span->depth];
  c->pending[span->depth] = c->pending[depth];
  c->pending[depth] = 0;
  return 0;
}

static int visit_memory_spans(void *user, const prof_i_span *spans, size_t count) {
  collection *const c = user;
  int status = 0;
  for (size_t i = 0; i < count && !status; i++) {
    const prof_i_span *const span = &spans[i];
    if (span->kind == PROF_EVENT_MEMORY)
      status = add_item(c, span);
    else if (span->lane != 0)
      continue;
    else if (span->kind == PROF_EVENT_STEP)
      status = note_step(c, span);
    else if (span->kind == PROF_EVENT_SCOPE || span->kind == PROF_EVENT_OPEN)
      status = name_pending(c, span);
  }
  return status;
}

/* The walk goes backwards. */
static void reverse_items(prof_i_memory_item *items, uint32_t count) {
  for (uint32_t i = 0; i < count / 2; i++) {
    const prof_i_memory_item kept = items[i];
    items[i] = items[count - 1 - i];
    items[count - 1 - i] = kept;
  }
}

static int walk_thread_memory(collection *c) {
  prof_i_walker *const walker =
      prof_i_walker_create(c->memory->trace, c->thread, visit_memory_spans, c);
  if (!walker) return PROF_E_NO_MEMORY;
  prof_i_walker_skip_before(walker, c->memory->from_ns);
  const int status = prof_i_walker_run(walker);
  prof_i_walker_destroy(walker);
  return status;
}

/* starts[i]: the first item of thread i; one more at the end. */
static int collect_items(prof_memory *m, uint32_t *starts) {
  collection *const c = calloc(1, sizeof *c);
  if (!c) return PROF_E_NO_MEMORY;
  c->memory = m;
  int status = 0;
  for (c->thread = 0; !status && c->thread < m->trace->thread_count; c->thread++) {
    starts[c->thread] = m->item_count;
    status = walk_thread_memory(c);
    for (uint32_t depth = 0; depth < c->pending_room; depth++) set_scope_of_pending(c, depth, 0);
    if (m->item_count)
      reverse_items(m->items + starts[c->thread], m->item_count - starts[c->thread]);
  }
  starts[m->trace->thread_count] = m->item_count;
  free(c->pending);
  free(c);
  return status;
}

/* ---- the order ---- */

enum { NUMBER_MASK = (1 << (64 - PROF_I_USED_BITS)) - 1, BEHIND_MOST = NUMBER_MASK / 16 };
/* events that are skipped to find one of a handler */
enum { UNKNOWN_MAX = 64 };
typedef enum relation { RELATION_AFTER, RELATION_INSIDE, RELATION_UNKNOWN } relation;
static const uint64_t clock_slack_ns = 50000, longest_stop_ns = 10000000000;

typedef struct held_item {
  uint64_t number; /* unwrapped */
  uint32_t item;
} held_item;

/* One pool's line. */
typedef struct pool_sequence {
  uint64_t next;        /* number that is awaited */
  held_item *held_item; /* a heap: the lowest number first */
  uint32_t held_count, held_room;
  uint64_t seen_count;
  uint32_t thread_seen; /* 1 + the thread of the last event that was tried; 0: none */
  bool has_begun;       /* false: earlier events were cleared, or are older than the ring's bound */
  bool is_whole;        /* from the pool's first event on */
} pool_sequence;

typedef struct item_merge {
  prof_memory *memory;
  pool_sequence *lines;
  uint32_t *at, *ends; /* by thread: the next item, and the end */
  uint32_t *heap;      /* threads by the time of their next item */
  uint32_t heap_count;
  uint32_t placed;
  bool is_out_of_memory;
} item_merge;

prof_i_memory_record prof_i_memory_item_read(const prof_i_memory_item *item) {
  prof_i_long_record record = {0};
  prof_i_event_read(item->words, &record);
  return prof_i_memory_read(item->words, &record);
}

uint32_t prof_i_memory_pool_index(const prof_memory *memory, uint32_t number) {
  const prof_i_pool_record *const pool = prof_i_catalog_pool(&memory->trace->catalog, number);
  return pool ? (uint32_t)(pool - memory->trace->catalog.pools) : UINT32_MAX;
}

/* The event's number, unwrapped. It may be far ahead, if a thread was delayed between its clock and
   its sum. It is behind the expected number only by differences of clocks, which are small. */
static uint64_t event_number(const pool_sequence *l, const prof_i_memory_record *record) {
  const uint64_t number =
      (record->verb == PROF_I_VERB_SAMPLE ? record->counter : record->counter >> PROF_I_USED_BITS) &
      NUMBER_MASK;
  if (!l->has_begun) return number + NUMBER_MASK + 1; /* so that none is below 0 */
  const uint64_t ahead = l->next + ((number - l->next) & NUMBER_MASK);
  const bool is_behind = ahead - l->next > NUMBER_MASK - BEHIND_MOST && ahead > NUMBER_MASK + 1;
  return is_behind ? ahead - NUMBER_MASK - 1 : ahead;
}

static void place_item(item_merge *g, pool_sequence *l, held_item h) {
  g->memory->order[g->placed++] = h.item;
  if (h.number >= l->next) l->next = h.number + 1;
}

static void hold_item(item_merge *g, pool_sequence *l, held_item h) {
  if (!prof_i_make_room((void **)&l->held_item, &l->held_room, l->held_count,
                        sizeof *l->held_item)) {
    g->is_out_of_memory = true;
    return;
  }
  uint32_t at = l->held_count++;
  for (; at && l->held_item[(at - 1) / 2].number > h.number; at = (at - 1) / 2)
    l->held_item[at] = l->held_item[(at - 1) / 2];
  l->held_item[at] = h;
}

static held_item pop_held(pool_sequence *l) {
  const held_item first = l->held_item[0], last = l->held_item[--l->held_count];
  uint32_t at = 0;
  for (uint32_t child; (child = 2 * at + 1) < l->held_count; at = child) {
    if (child + 1 < l->held_count && l->held_item[child + 1].number < l->held_item[child].number)
      child++;
    if (last.number <= l->held_item[child].number) break;
    l->held_item[at] = l->held_item[child];
  }
  l->held_item[at] = last;
  return first;
}

/* Whether a handler made the event between the clock and the sum of the other. Then it has a later
   clock, and an earlier position in the pool's order and in the chunk. */
static relation relation_to(const prof_memory *m, const prof_i_memory_item *later,
                            const prof_i_memory_item *item) {
  const uint64_t later_at = prof_i_source_offset(&m->trace->source, later->words);
  const uint64_t item_at = prof_i_source_offset(&m->trace->source, item->words);
  if (later_at / PROF_I_UNIT_BYTES == item_at / PROF_I_UNIT_BYTES)
    return later_at < item_at ? RELATION_INSIDE : RELATION_AFTER;
  const prof_i_memory_record a = prof_i_memory_item_read(later), b = prof_i_memory_item_read(item);
  if (a.pool != b.pool || a.verb == PROF_I_VERB_SAMPLE) return RELATION_UNKNOWN;
  return (((a.counter >> PROF_I_USED_BITS) - (b.counter >> PROF_I_USED_BITS)) & NUMBER_MASK) >
                 NUMBER_MASK / 2
             ? RELATION_INSIDE
             : RELATION_AFTER;
}

/* The first event of its thread that began after this event's sum. */
static uint32_t thread_resumes_at_ns(const item_merge *g, uint32_t item) {
  const prof_i_memory_item *const items = g->memory->items;
  const uint32_t end = g->ends[items[item].thread];
  uint32_t after = item + 1;
  for (uint32_t i = item + 1, unknown = 0; i < end && unknown < UNKNOWN_MAX; i++) {
    const relation is = relation_to(g->memory, &items[i], &items[item]);
    if (is == RELATION_AFTER) break;
    if (is == RELATION_INSIDE)
      after = i + 1;
    else
      unknown++;
  }
  return after;
}

/* The time until which an event with an earlier number may follow. */
static uint64_t awaited_until_ns(const item_merge *g, uint32_t item) {
  const prof_i_memory_item *const items = g->memory->items;
  const uint32_t next = thread_resumes_at_ns(g, item);
  return (next < g->ends[items[item].thread] ? items[next].ns
                                             : items[next - 1].ns + longest_stop_ns) +
         clock_slack_ns;
}

/* Emits events whose number is next, and those that no earlier event can precede. */
static void place_held_items(item_merge *g, pool_sequence *l, prof_i_memory_pool *pool,
                             uint64_t now_ns) {
  while (l->held_count && (l->held_item[0].number <= l->next ||
                           awaited_until_ns(g, l->held_item[0].item) < now_ns)) {
    const held_item h = pop_held(l);
    if (h.number > l->next) {
      pool->info.missing_count += h.number - l->next;
      if (pool->sure_until > g->placed) pool->sure_until = g->placed;
    }
    place_item(g, l, h);
  }
}

static void take_item(item_merge *g, uint32_t item) {
  const prof_i_memory_item *const at = &g->memory->items[item];
  const prof_i_memory_record record = prof_i_memory_item_read(at);
  const uint32_t index = prof_i_memory_pool_index(g->memory, record.pool);
  if (index == UINT32_MAX) { /* of an unknown pool: in its order by time */
    g->memory->order[g->placed++] = item;
    return;
  }
  pool_sequence *const l = &g->lines[index];
  prof_i_memory_pool *const pool = &g->memory->pools[index];
  const held_item h = {event_number(l, &record), item};
  if (!l->has_begun) l->next = h.number;
  l->has_begun = true;
  l->seen_count++;
  place_held_items(g, l, pool, at->ns);
  if (h.number < l->next) { /* its number was skipped: a damaged capture, or a clock */
    g->memory->order[g->placed++] = item;
    if (pool->info.missing_count) pool->info.missing_count--;
  } else if (h.number == l->next) {
    place_item(g, l, h);
  } else {
    hold_item(g, l, h);
  }
  place_held_items(g, l, pool, at->ns);
}

/* ---- threads by time ---- */

static uint64_t next_item_ns(const item_merge *g, uint32_t thread) {
  return g->memory->items[g->at[thread]].ns;
}

static void heap_sink_down(item_merge *g, uint32_t at) {
  for (uint32_t child; (child = 2 * at + 1) < g->heap_count; at = child) {
    if (child + 1 < g->heap_count &&
        next_item_ns(g, g->heap[child + 1]) < next_item_ns(g, g->heap[child]))
      child++;
    if (next_item_ns(g, g->heap[at]) <= next_item_ns(g, g->heap[child])) return;
    const uint32_t kept = g->heap[at];
    g->heap[at] = g->heap[child];
    g->heap[child] = kept;
  }
}

static void merge_threads(item_merge *g) {
  for (uint32_t i = g->heap_count / 2; i-- > 0;) heap_sink_down(g, i);
  while (g->heap_count) {
    const uint32_t thread = g->heap[0];
    take_item(g, g->at[thread]);
    if (++g->at[thread] == g->ends[thread]) g->heap[0] = g->heap[--g->heap_count];
    heap_sink_down(g, 0);
  }
  for (uint32_t i = 0; i < g->memory->trace->catalog.pool_count; i++)
    place_held_items(g, &g->lines[i], &g->memory->pools[i], UINT64_MAX);
}

/* The number of events. It lacks a round if the process was killed between an event's sum and the
   count of rounds. */
static uint64_t event_count(const prof_i_pool_record *pool, const pool_sequence *l) {
  if (pool->kind == PROF_MEMORY_QUERY) return pool->state.used;
  const uint64_t count = (pool->state.rounds & UINT32_MAX) << (64 - PROF_I_USED_BITS) |
                         pool->state.used >> PROF_I_USED_BITS;
  return count + 1 < l->next ? count + NUMBER_MASK + 1 : count;
}

/* The events of a pool without records: those since the last reset or clear, up to a million. */
static uint64_t since_reset_count(const prof_i_pool_record *pool, uint64_t all) {
  if (pool->state.reset_count == 0 || pool->kind == PROF_MEMORY_QUERY) return all;
  return (all - (pool->state.used_peaks[pool->state.reset_count % PROF_I_PEAKS].base >>
                 PROF_I_USED_BITS)) &
         NUMBER_MASK;
}

/* Counts events without a record. For a pool that is complete from its first event on, the counts
   alone give it, whatever the size of a gap. For others it is what follows the last record. In a
   live capture that is not full, such records may still follow. */
static void count_missing(item_merge *g) {
  const prof_trace *const trace = g->memory->trace;
  const bool is_over = trace->is_settled || trace->header.full_ticks;
  for (uint32_t i = 0; i < trace->catalog.pool_count; i++) {
    const pool_sequence *const l = &g->lines[i];
    const prof_i_pool_record *const pool = &trace->catalog.pools[i];
    uint64_t *const missing = &g->memory->pools[i].info.missing_count;
    const uint64_t all = event_count(pool, l), behind = (all + 1 - l->next) & NUMBER_MASK;
    /* or up to the last record */
    const uint64_t count = is_over ? all : all - (behind < all ? behind : all);
    if (l->is_whole)
      *missing = count > l->seen_count ? count - l->seen_count : 0;
    else if (is_over && !l->has_begun)
      *missing = since_reset_count(pool, all);
    else if (is_over && behind < NUMBER_MASK / 2)
      *missing += behind;
  }
}

/* For pools whose older events are left out: the first events of two threads may be in another
   order than the pool's. */
static void begin_pool_sequences(item_merge *g) {
  const prof_memory *const m = g->memory;
  for (uint32_t thread = 0; thread < m->trace->thread_count; thread++)
    for (uint32_t i = g->at[thread]; i < g->ends[thread]; i++) {
      const prof_i_memory_record record = prof_i_memory_item_read(&m->items[i]);
      const uint32_t index = prof_i_memory_pool_index(m, record.pool);
      if (index == UINT32_MAX || g->lines[index].thread_seen == thread + 1) continue;
      pool_sequence *const l = &g->lines[index];
      const uint64_t number = event_number(l, &record);
      l->thread_seen = thread + 1;
      if (l->has_begun && number >= l->next) continue;
      l->next = number;
      l->has_begun = true;
    }
}

static int put_in_order(prof_memory *m, uint32_t *starts) {
  const uint32_t pool_count = m->trace->catalog.pool_count, thread_count = m->trace->thread_count;
  item_merge g = {.memory = m, .at = starts, .ends = starts + 1};
  g.lines = calloc(pool_count + 1, sizeof *g.lines);
  g.heap = malloc((thread_count + 1) * sizeof *g.heap);
  uint32_t *const ends = malloc((thread_count + 1) * sizeof *ends);
  m->order = malloc(((size_t)m->item_count + 1) * sizeof *m->order);
  int status = PROF_E_NO_MEMORY;
  if (g.lines && g.heap && ends && m->order) {
    status = 0;
    memcpy(ends, starts + 1, thread_count * sizeof *ends);
    g.ends = ends;
    for (uint32_t i = 0; i < pool_count; i++) {
      const bool is_whole = m->from_ns == 0 && m->trace->catalog.pools[i].ticks >= m->trace->floor;
      g.lines[i] = (pool_sequence){.next = 1, .has_begun = is_whole, .is_whole = is_whole};
      m->pools[i].sure_until = UINT32_MAX;
      m->pools[i].is_begin_known = is_whole &&
                                   prof_i_pool_knows_baseline(&m->trace->catalog.pools[i]) &&
                                   m->trace->catalog.pools[i].state.refused_count == 0;
    }
    for (uint32_t i = 0; i < thread_count; i++)
      if (starts[i] < ends[i]) g.heap[g.heap_count++] = i;
    if (m->from_ns) begin_pool_sequences(&g);
    merge_threads(&g);
    count_missing(&g);
    if (g.is_out_of_memory) status = PROF_E_NO_MEMORY;
  }
  for (uint32_t i = 0; g.lines && i < pool_count; i++) free(g.lines[i].held_item);
  free(g.lines);
  free(g.heap);
  free(ends);
  return status;
}

/* ---- life ---- */

static int item_compare_time(const void *a, const void *b) {
  const prof_i_memory_step *const x = a, *const y = b;
  if (x->ns != y->ns) return x->ns < y->ns ? -1 : 1;
  return (x->number > y->number) - (x->number < y->number);
}

static int fill_memory(prof_memory *m) {
  const prof_i_time_line *time_line = m->trace->timeline.lines;
  m->end_ns = prof_i_timeline_ns(&m->trace->timeline, &time_line, m->trace->last);
  m->pools = calloc(m->trace->catalog.pool_count + 1, sizeof *m->pools);
  uint32_t *const starts = calloc((size_t)m->trace->thread_count + 1, sizeof *starts);
  static const prof_i_text none = {"", 0};
  int status = PROF_E_NO_MEMORY;
  if (m->pools && starts) {
    scope_name_add(m, none);
    status = m->scope_count ? collect_items(m, starts) : PROF_E_NO_MEMORY;
  }
  if (!status) status = put_in_order(m, starts);
  free(starts);
  if (status) return status;
  if (m->step_count) qsort(m->steps, m->step_count, sizeof *m->steps, item_compare_time);
  return 0;
}

/* Whether events of a thread are left out. */
static bool is_any_skipped(const prof_trace *trace, uint64_t from_ns) {
  for (uint32_t i = 0; i < trace->thread_count; i++) {
    const prof_i_trace_thread *const thread = &trace->threads[i];
    if (prof_i_first_segment_from(trace, thread, from_ns) != thread->first_segment) return true;
  }
  return false;
}

static int read_memory(const prof_trace *trace, uint64_t from_ns, bool is_played,
                       prof_memory **memory_out) {
  prof_memory *const m = calloc(1, sizeof *m);
  int status = PROF_E_NO_MEMORY;
  if (m) {
    m->trace = trace;
    m->from_ns = is_any_skipped(trace, from_ns) ? from_ns : 0;
    status = fill_memory(m);
    forget_names(m);
  }
  if (!status && is_played)
    status = prof_i_memory_replay_all(m);
  else if (!status && m->from_ns && !prof_i_memory_find_begins(m))
    status = PROF_E_NO_MEMORY;
  if (status) {
    prof_i_memory_destroy(m);
    return status == PROF_E_TOO_LARGE
               ? prof_i_fail(status, "the trace has 2^32 events of memory or more")
               : prof_i_fail(status, "no memory to read what %llu events say of memory",
                             (unsigned long long)trace->event_count);
  }
  *memory_out = m;
  return PROF_OK;
}

int prof_i_memory_order(const prof_trace *trace, uint64_t from_ns, prof_memory **memory_out) {
  return read_memory(trace, from_ns, false, memory_out);
}

int prof_i_memory_set_filter(prof_memory *memory, const prof_i_filter *filter) {
  if (prof_i_trace_filter_init(&memory->filtered, memory->trace, filter) != PROF_OK)
    return prof_i_fail(PROF_E_NO_MEMORY, "no memory for a filter of %u threads",
                       memory->trace->thread_count);
  memory->filter = filter;
  return PROF_OK;
}

bool prof_i_memory_filter_takes(const prof_memory *memory, const prof_i_memory_item *item) {
  const char *const scope = memory->scopes[item->scope];
  return !memory->filter ||
         (memory->filtered.takes_thread[item->thread] &&
          prof_i_trace_filter_takes_time(&memory->filtered, item->ns, UINT64_MAX) &&
          prof_i_filter_takes_name(memory->filter, scope, strlen(scope)));
}

bool prof_i_memory_filter_takes_pool(const prof_memory *memory, uint32_t index) {
  const char *const word = memory->filter ? memory->filter->words.device : NULL;
  return !word || prof_i_filter_takes_device(word, memory->pools[index].info.device);
}

int prof_i_memory_of(const prof_trace *trace, prof_memory **memory_out) {
  return read_memory(trace, 0, true, memory_out);
}

int prof_memory_read(const prof_trace *trace, prof_memory **memory_out) {
  PROF_I_DEFAULT_FP;
  PROF_I_REFUSE_INTERRUPTED(PROF_E_BUSY);
  PROF_I_INSIDE;
  if (!trace || !memory_out)
    return prof_i_fail(PROF_E_INVALID, "prof_memory_read: %s is NULL",
                       trace ? "memory_out" : "trace");
  return prof_i_memory_of(trace, memory_out);
}

void prof_memory_destroy(prof_memory *memory) {
  PROF_I_REFUSE_INTERRUPTED();
  PROF_I_INSIDE;
  prof_i_memory_destroy(memory);
}

void prof_i_memory_destroy(prof_memory *memory) {
  if (!memory) return;
  for (uint32_t i = 0; i < memory->scope_count; i++) free(memory->scopes[i]);
  free(memory->scopes);
  free(memory->items);
  free(memory->order);
  free(memory->places);
  free(memory->steps);
  free(memory->pools);
  if (memory->filter) prof_i_trace_filter_fini(&memory->filtered);
  free(memory);
}
