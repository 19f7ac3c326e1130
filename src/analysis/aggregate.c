/* Aggregates. Scopes that have nothing beyond their call site find their group by its number,
   without a look at a name. The others find it by a hash. A total counts the outermost call of a
   recursion alone. The walk (walk.c) hands out what is inside first, and what is around it waits on
   lane 0's stack. So what a group has in total when a call begins to wait is kept beside it, and
   when it is handed out the total becomes that and the call: whatever its own group got meanwhile
   was inside of it. */
#include <prof/memory.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/fault.h"
#include "../base/log.h"
#include "../base/port.h"
#include "../base/reentry.h"
#include "../base/this_thread.h"
#include "../format/observed.h"
#include "../format/parse.h"
#include "../reader/capture.h"
#include "../reader/internal.h"
#include "../reader/shape.h"
#include "../reader/walk_plain.h"
#include "aggregate.h"
#include "call_stacks.h"
#include "crossing_memory.h"
#include "forward_stacks.h"
#include "group.h"

typedef prof_i_group_key group_key;

static uint32_t key_hash(const group_key *key);
static int key_differs(const group_key *a, const group_key *b);

#define HASH_NONFATAL_OOM 1
#define HASH_FUNCTION(key, bytes, hash) \
  ((void)(bytes), (hash) = key_hash((const group_key *)(const void *)(key)))
#define HASH_KEYCMP(a, b, bytes) \
  ((void)(bytes),                \
   key_differs((const group_key *)(const void *)(a), (const group_key *)(const void *)(b)))
#define uthash_nonfatal_oom(item) (is_out_of_memory = true)
#include <uthash.h>

/* The group comes first, so that its tally is one line of the cache. */
typedef struct group {
  _Alignas(64) prof_i_group of;
  UT_hash_handle hh;
} group;

/* A place of lane 0's stack, and what its group had in total when it began to wait. */
typedef struct pending_call {
  prof_i_group *group; /* NULL: a step, or outside of the window */
  uint64_t total_ns, device_ns, inner_count, outer_count;
  int64_t host_bytes, device_bytes;
  bool is_step;
  bool has_call; /* a vendor's */
} pending_call;

enum {
  SHAPE_WORDS = 1024,
  EDGES_FIRST = 256,
  STACKS = PROF_GROUP_STACK | PROF_GROUP_SCOPES,
  SHAPES = PROF_GROUP_SHAPE | PROF_GROUP_FLOPS,
  LINES = PROF_GROUP_THREAD | PROF_GROUP_PROCESS
};

/* What its scope took beside its time. */
typedef struct overlap {
  prof_i_scope_bytes memory;
  prof_i_device_time on_device;
} overlap;

/* A call that is complete, with its group and what that had when the call began. */
typedef struct finished_call {
  prof_i_group *group; /* NULL: none */
  prof_i_span span;
  pending_call before;
  overlap also;
} finished_call;

/* Scopes of a site that were begun by one way (call_stacks.h): their group. */
typedef struct edge {
  uint32_t stack_node, site;
  prof_i_group *group; /* NULL: nobody's place; the unwanted one: not wanted */
} edge;

typedef struct aggregation {
  const prof_trace *const *traces;
  size_t trace_count;
  prof_aggregate_options options;
  const char *name; /* only scopes of this name; NULL: all */
  group *groups;    /* of all traces: texts point into them */
  /* Of the trace that is being added up. */
  const prof_trace *trace;
  uint32_t thread, threads_before; /* those of the traces before it */
  uint32_t process;                /* of the thread, as in its key */
  prof_i_processes processes;
  uint32_t site_count;
  prof_i_group **by_site;    /* NULL: not met yet; for one thread if lines are separate (LINES) */
  bool has_pools, has_first; /* somebody asks for the earliest begin */
  prof_i_memory_totals memory;
  prof_i_crossing_memory crossing;
  prof_i_unscoped_memory outside; /* what no scope holds, of all threads */
  prof_i_device_totals on_device;
  bool has_launched;              /* the thread */
  prof_i_call_stacks call_stacks; /* where stacks are asked for */
  uint32_t stack_node;            /* of the span at hand */
  prof_i_walker *walker;          /* of the thread */
  bool has_callers;
  pending_call *pending_call; /* from place 1 of the stack on */
  uint32_t pending_count, pending_room;
  edge *edges;                    /* by a hash; for one thread if lines are separate */
  uint32_t edge_count, edge_room; /* the room a power of two */
  /* PROF_RULE_ONLY_CHILDREN: the last call in the top of lane 0's stack, whose name it has. It is
     added when another one is met there. If none is, it becomes part of the top. */
  finished_call only_child;
  bool has_only_children; /* the rule */
  /* of all that the options leave out: added up like the others, for a test would cost as much */
  group unwanted;
  prof_event event;
  uint64_t shape[SHAPE_WORDS];
} aggregation;

/* ---- keys ---- */

static uint64_t hash_bytes(uint64_t hash, const char *bytes, uint64_t count) {
  for (; count >= 8; bytes += 8, count -= 8) {
    uint64_t word;
    memcpy(&word, bytes, 8);
    hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 32;
  }
  uint64_t word = count << 56;
  memcpy(&word, bytes, (size_t)count);
  hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
  return hash ^ hash >> 32;
}

static uint32_t key_hash(const group_key *key) {
  uint64_t hash = (uint64_t)(uint32_t)key->device.type << 32 | (uint32_t)key->device.index;
  hash = (hash ^ key->process) * 0xff51afd7ed558ccdu;
  hash ^= key->thread ^ (uint64_t)key->location.line << 32;
  hash = hash_bytes(hash, key->name.data, key->name.bytes);
  hash = hash_bytes(hash, key->category.data, key->category.bytes);
  hash = hash_bytes(hash, key->stack.data, key->stack.bytes);
  return (uint32_t)hash_bytes(hash, key->shape.data, key->shape.bytes);
}

static int texts_differ(prof_i_text a, prof_i_text b) {
  return a.bytes != b.bytes || (a.data != b.data && memcmp(a.data, b.data, (size_t)a.bytes) != 0);
}

static int key_differs(const group_key *a, const group_key *b) {
  return a->thread != b->thread || a->process != b->process || a->device.type != b->device.type ||
         a->device.index != b->device.index || texts_differ(a->name, b->name) ||
         texts_differ(a->category, b->category) || texts_differ(a->shape, b->shape) ||
         texts_differ(a->stack, b->stack) || a->location.line != b->location.line ||
         texts_differ(a->location.file, b->location.file);
}

/* ---- places ---- */

static bool text_equals(prof_i_text text, const char *word) {
  return text.bytes == strlen(word) && memcmp(text.data, word, (size_t)text.bytes) == 0;
}

/* Of a function of C that Python has called, the file's place holds what the interpreter calls
   it. */
static prof_i_source_location site_location(const prof_i_site_info *site) {
  if (prof_i_is_c_function_site(site)) return (prof_i_source_location){.file = {"", 0}};
  return (prof_i_source_location){site->file, site->line};
}

static void add_place(prof_i_group *g, const prof_trace *trace, uint32_t site) {
  prof_i_group_locations *const locations = &g->locations;
  if (locations->last_site == site) return;
  const prof_i_source_location location = site_location(prof_i_trace_site(trace, site));
  locations->last_site = site & INT32_MAX;
  if (location.file.bytes == 0) return;
  if (locations->first.file.bytes && (locations->first.line != location.line ||
                                      texts_differ(locations->first.file, location.file)))
    locations->has_more = true;
  if (locations->first.file.bytes && locations->site < site) return;
  locations->first = location;
  locations->site = site;
}

/* ---- keys of scopes ---- */

static const prof_i_text no_text = {"", 0};

/* A user's annotation is told from an operator of its name, whatever other categories there are. */
static prof_i_text key_category(uint32_t by, prof_i_text category) {
  if (by & PROF_GROUP_CATEGORY) return category;
  return (by & PROF_GROUP_ANNOTATION) && text_equals(category, "user_annotation") ? category
                                                                                  : no_text;
}

/* Of the thread. False: no memory. */
static bool take_thread_process(aggregation *a) {
  prof_i_processes *const processes = &a->processes;
  a->process = UINT32_MAX;
  if (!(a->options.group & PROF_GROUP_PROCESS)) return true;
  const prof_i_process_record process = prof_i_trace_process(a->trace, a->thread);
  uint32_t at = processes->of_trace;
  while (at < processes->count && processes->all[at].pid != process.pid) at++;
  a->process = at;
  if (at < processes->count) return true;
  if (!prof_i_make_room((void **)&processes->all, &processes->room, at, sizeof process))
    return false;
  processes->all[processes->count++] = process;
  return true;
}

static group_key make_key(const aggregation *a, uint32_t site, prof_i_text name,
                          prof_i_text category, prof_i_text shape, prof_i_text stack,
                          prof_device device) {
  const uint32_t by = a->options.group;
  const prof_i_site_info *const info = prof_i_trace_site(a->trace, site);
  const bool has_place = (by & PROF_GROUP_NAME) && prof_i_is_named_by_function(info);
  return (group_key){
      .name = by & PROF_GROUP_NAME ? name : no_text,
      .category = key_category(by, category),
      .shape = by & SHAPES ? shape : no_text,
      .stack = by & STACKS ? stack : no_text,
      .device = by & PROF_GROUP_DEVICE ? device : (prof_device){0, 0},
      .thread = by & PROF_GROUP_THREAD ? a->threads_before + a->thread : UINT32_MAX,
      .process = a->process,
      .location = has_place ? site_location(info) : (prof_i_source_location){.file = no_text}};
}

/* ---- groups ---- */

static void free_group(group *g) {
  free((void *)(uintptr_t)g->of.key.shape.data);
  if (g->of.has_own_stack) free((void *)(uintptr_t)g->of.key.stack.data);
  prof_i_duration_stats_fini(&g->of.stats);
  free(g);
}

/* NULL: no memory. */
static const char *copy_text(prof_i_text text) {
  char *const copy = malloc((size_t)text.bytes + 1);
  if (copy) memcpy(copy, text.data, (size_t)text.bytes);
  return copy;
}

/* All groups go at once, so they may share a text. */
static group *make_group(aggregation *a, const group_key *key, uint32_t level) {
  group *const made = aligned_alloc(64, sizeof *made);
  if (!made) return NULL;
  memset(made, 0, sizeof *made);
  prof_i_group *const g = &made->of;
  g->key = *key;
  g->level = (uint8_t)level;
  g->first_ns = UINT64_MAX;
  g->category = no_text;
  g->locations.first.file = no_text;
  prof_i_duration_stats_init(&g->stats);
  g->key.shape.data = copy_text(key->shape);
  bool has_own_stack = false;
  if (!prof_i_call_stacks_give_text(&a->call_stacks, key->stack.data, &has_own_stack)) {
    g->key.stack.data = copy_text(key->stack);
    has_own_stack = true;
  }
  g->has_own_stack = has_own_stack;
  if (g->key.shape.data && g->key.stack.data) return made;
  free_group(made);
  return NULL;
}

/* NULL: no memory. */
static prof_i_group *find_group(aggregation *a, const group_key *key, uint32_t level) {
  group *g = NULL;
  bool is_out_of_memory = false;
  HASH_FIND(hh, a->groups, key, sizeof *key, g);
  if (g) return &g->of;
  g = make_group(a, key, level);
  if (!g) return NULL;
  HASH_ADD(hh, a->groups, of.key, sizeof g->of.key, g);
  if (!is_out_of_memory) return &g->of;
  free_group(g);
  return NULL;
}

/* ---- adding up ---- */

static bool name_is_excluded(uint32_t which, prof_i_text name, prof_i_text category) {
  static const char module[] = "nn.Module: ";
  const bool is_module =
      name.bytes >= sizeof module - 1 && memcmp(name.data, module, sizeof module - 1) == 0;
  return (which & (is_module ? PROF_LEAVE_OUT_MODULES : PROF_LEAVE_OUT_FUNCTIONS)) &&
         prof_i_is_function_category(category);
}

static bool scope_is_wanted(const aggregation *a, prof_i_text name, prof_i_text category,
                            uint32_t level) {
  const prof_aggregate_options *const options = &a->options;
  if (a->name && !text_equals(name, a->name)) return false;
  if (options->level && options->level != level) return false;
  if (options->leave_out && name_is_excluded(options->leave_out, name, category)) return false;
  return !options->category || text_equals(category, options->category);
}

/* NULL: no memory. */
static prof_i_group *note_site(aggregation *a, uint32_t site) {
  const prof_i_site_info *const info = prof_i_trace_site(a->trace, site);
  prof_i_group *g = &a->unwanted.of;
  if (scope_is_wanted(a, info->name, info->category, info->level)) {
    const group_key key = make_key(a, site, info->name, info->category, no_text, no_text,
                                   (prof_device){PROF_DEVICE_CPU, 0});
    g = find_group(a, &key, info->level);
    if (g) add_place(g, a->trace, site);
  }
  a->by_site[site] = g;
  return g;
}

static inline prof_i_group *site_group(aggregation *a, uint32_t site) {
  prof_i_group *const g = a->by_site[site];
  return __builtin_expect(g != NULL, 1) ? g : note_site(a, site);
}

/* Does this record say more than its site about what groups are made of? */
static inline bool has_details(const aggregation *a, const uint64_t *record) {
  const uint32_t flags = prof_i_word_flags(record[2]), by = a->options.group;
  return (flags & (PROF_I_FLAG_NAME | PROF_I_FLAG_CATEGORY)) || prof_i_is_async(record) ||
         ((flags & PROF_I_FLAG_DEVICE) && (by & PROF_GROUP_DEVICE)) ||
         (prof_i_word_schema(record[2]) != 0 && (by & (SHAPES | PROF_GROUP_STACK)));
}

/* Where it was begun: what it says itself, or by the functions around it; in a backward call where
   the forward one was. Where nothing stays of what it says, it has none. False: no memory. */
static bool scope_stack(aggregation *a, uint32_t site, const prof_event *event,
                        prof_i_text *stack_out) {
  const bool is_call_of_function = prof_i_call_stacks_is_function(&a->call_stacks, site),
             is_backward = a->stack_node && !is_call_of_function &&
                           prof_i_call_stacks_is_backward(&a->call_stacks, a->stack_node);
  const bool has_none = is_backward || a->options.group & PROF_GROUP_SCOPES;
  const prof_i_text own = has_none ? (prof_i_text){"", 0} : prof_i_scope_own_stack(event);
  uint32_t number = 0;
  *stack_out = (prof_i_text){"", 0};
  if (own.bytes)
    return prof_i_call_stacks_of_text(&a->call_stacks, own, &number) &&
           prof_i_call_stacks_text(&a->call_stacks, number, false, stack_out);
  return !a->stack_node ||
         prof_i_call_stacks_text(&a->call_stacks, a->stack_node, is_call_of_function, stack_out);
}

static inline bool has_window(const prof_aggregate_options *options) {
  return (options->from_ns | options->to_ns) != 0;
}
static bool span_is_in_window(const prof_aggregate_options *options, const prof_i_span *span) {
  return span->start_ns >= options->from_ns &&
         (options->to_ns == 0 || span->start_ns < options->to_ns);
}

/* The group of a scope of that thread of the capture; *group_out the unwanted one: it is not
   wanted. False: no memory. */
static bool find_detailed(aggregation *a, uint32_t thread, const prof_i_span *span,
                          prof_i_group **group_out) {
  prof_event *const event = &a->event;
  prof_i_trace_expand(a->trace, thread, span, event);
  const prof_i_text name = {event->name, event->name_bytes},
                    category = {event->category, event->category_bytes};
  *group_out = &a->unwanted.of;
  if (!scope_is_wanted(a, name, category, event->level)) return true;
  const uint32_t by = a->options.group & SHAPES;
  const size_t shape_words = !by ? 0
                             : by & PROF_GROUP_FLOPS
                                 ? prof_i_shape_flops_words(event, a->shape, SHAPE_WORDS)
                                 : prof_i_shape_words(event, a->shape, SHAPE_WORDS);
  const prof_i_text shape = {(const char *)a->shape, shape_words * sizeof *a->shape};
  prof_i_text stack = {"", 0};
  if ((a->options.group & STACKS) && !scope_stack(a, span->site, event, &stack)) return false;
  const group_key key = make_key(a, span->site, name, category, shape, stack, event->device);
  *group_out = find_group(a, &key, event->level);
  if (*group_out) add_place(*group_out, a->trace, span->site);
  return *group_out != NULL;
}

/* The earliest call so far says the category, where categories take no part. */
static void note_first_call(aggregation *a, prof_i_group *g, const prof_i_span *span) {
  if (span->start_ns >= g->first_ns) return;
  g->first_ns = span->start_ns;
  const prof_i_site_info *const site = prof_i_trace_site(a->trace, span->site);
  const bool is_observed = prof_i_observed_has(site->line, site->file.bytes);
  g->record_scope = is_observed ? (uint8_t)prof_i_observed_scope(site->line) : 0;
  if ((a->options.group & PROF_GROUP_ANNOTATION) == 0) return;
  g->category = site->category;
  if (!span->record || !(prof_i_word_flags(span->record[2]) & PROF_I_FLAG_CATEGORY)) return;
  prof_i_trace_expand(a->trace, a->thread, span, &a->event);
  g->category = (prof_i_text){a->event.category, a->event.category_bytes};
}

/* What the group has in total so far, but for what is beside lane 0, where nothing holds
   another. */
/* Field by field: a copy of the whole struct waits for the stores that have just made it. */
static inline void note_totals(pending_call *to, prof_i_group *g) {
  to->group = g;
  to->total_ns = g->stats.outer_ns;
  to->device_ns = g->on_device.total_ns;
  to->inner_count = g->inner_count;
  to->outer_count = g->outer_count;
  to->host_bytes = g->memory.host;
  to->device_bytes = g->memory.device;
  to->is_step = to->has_call = false;
}

static pending_call group_total(prof_i_group *g) {
  pending_call now;
  note_totals(&now, g);
  return now;
}

static void add_overlap(prof_i_group *g, const prof_i_span *span, const pending_call *before,
                        const overlap *also) {
  const prof_i_scope_bytes *const m = &also->memory;
  const prof_i_device_time *const d = &also->on_device;
  prof_i_device_time_add(&g->on_device, &(prof_i_device_time){0, d->self_ns, d->count, d->each_ns});
  prof_i_scope_bytes_add(
      &g->memory, &(prof_i_scope_bytes){.self_host = m->self_host, .self_device = m->self_device});
  if (span->lane > 0) {
    g->overlap_device_ns += d->total_ns;
    return;
  }
  g->on_device.total_ns = before->device_ns + d->total_ns;
  g->memory.host = prof_i_bytes_add_wrapping(before->host_bytes, m->host);
  g->memory.device = prof_i_bytes_add_wrapping(before->device_bytes, m->device);
}

/* PROF_RULE_OPEN_CALLS, except traced functions, which have time of their thread. */
static int add_open_call(const aggregation *a, prof_i_group *g, const prof_i_span *span) {
  const uint64_t to_ns = a->options.to_ns, end_ns = span->start_ns + span->duration_ns;
  const uint64_t duration_ns = (to_ns && to_ns < end_ns ? to_ns : end_ns) - span->start_ns;
  g->async_count++;
  g->outer_count++;
  g->overlap_ns += duration_ns;
  return prof_i_duration_stats_add(&g->stats, duration_ns, 0) ? 0 : PROF_E_NO_MEMORY;
}

static bool is_open_call(const aggregation *a, const prof_i_span *span) {
  return span->kind == PROF_EVENT_OPEN && (a->options.rules & PROF_RULE_OPEN_CALLS) &&
         !prof_i_is_function_site(prof_i_trace_site(a->trace, span->site));
}

static int add_to_group(const aggregation *a, prof_i_group *g, const prof_i_span *span,
                        const pending_call *before, const overlap *also) {
  if (span->record && prof_i_is_skipped(span->record)) {
    g->skipped_count++;
    return 0;
  }
  const bool is_open = span->kind == PROF_EVENT_OPEN;
  overlap scope_bytes = *also;
  if (is_open_call(a, span)) scope_bytes.memory.self_host = scope_bytes.memory.self_device = 0;
  add_overlap(g, span, before, &scope_bytes);
  if (is_open) {
    g->open_count++;
    if (span->duration_ns > g->open_ns) g->open_ns = span->duration_ns;
    if (!(a->options.rules & PROF_RULE_OPEN_CALLS)) return 0;
    if (is_open_call(a, span)) return add_open_call(a, g, span);
  }
  g->async_count += span->record && prof_i_is_async(span->record);
  if (span->lane > 0) {
    g->overlap_ns += span->duration_ns;
    g->outer_count++;
  } else {
    g->outer_count = before->outer_count + 1;
    g->stats.outer_ns = before->total_ns + span->duration_ns;
    g->inner_count = before->inner_count + span->inner_count;
    g->child_count += span->child_count;
  }
  return prof_i_duration_stats_add(&g->stats, span->duration_ns, span->self_ns) ? 0
                                                                                : PROF_E_NO_MEMORY;
}

/* ---- by the functions around them ---- */

static edge *edge_slot(edge *edges, uint32_t room, uint32_t stack_node, uint32_t site) {
  uint32_t at =
      (uint32_t)(((uint64_t)stack_node << 32 | site) * UINT64_C(0x9e3779b97f4a7c15) >> 32) &
      (room - 1);
  while (edges[at].group && (edges[at].stack_node != stack_node || edges[at].site != site))
    at = (at + 1) & (room - 1);
  return &edges[at];
}

static bool grow_edges(aggregation *a) {
  const uint32_t room = a->edge_room ? a->edge_room * 2 : EDGES_FIRST;
  edge *const larger = calloc(room, sizeof *larger);
  if (!larger) return false;
  for (uint32_t i = 0; i < a->edge_room; i++)
    if (a->edges[i].group)
      *edge_slot(larger, room, a->edges[i].stack_node, a->edges[i].site) = a->edges[i];
  free(a->edges);
  a->edges = larger;
  a->edge_room = room;
  return true;
}

static void clear_edges(aggregation *a) {
  free(a->edges);
  a->edges = NULL;
  a->edge_count = a->edge_room = 0;
}

/* A scope that has nothing beyond its site: which group it belongs to is known from its second one
   on. */
static bool find_by_edge(aggregation *a, const prof_i_span *span, prof_i_group **group_out) {
  if (a->edge_count * 2 >= a->edge_room && !grow_edges(a)) return false;
  edge *const w = edge_slot(a->edges, a->edge_room, a->stack_node, span->site);
  if (!w->group) {
    prof_i_group *g;
    if (!find_detailed(a, a->thread, span, &g)) return false;
    *w = (edge){a->stack_node, span->site, g};
    a->edge_count++;
  }
  *group_out = w->group;
  add_place(w->group, a->trace, span->site);
  return true;
}

/* What no scope of its thread stood around: its own name has a row for it. */
static int add_skipped(aggregation *a) {
  for (const prof_i_launch *left; (left = prof_i_device_totals_unscoped(&a->on_device)) != NULL;) {
    const prof_i_span span = {.record = left->record,
                              .start_ns = left->start_ns,
                              .duration_ns = left->duration_ns,
                              .self_ns = left->self_ns,
                              .site = left->site,
                              .kind = PROF_EVENT_SCOPE};
    prof_i_group *g;
    if (has_window(&a->options) && !span_is_in_window(&a->options, &span)) continue;
    if (left->thread == UINT32_MAX) {
      a->thread = left->stream;
      if (!take_thread_process(a)) return PROF_E_NO_MEMORY;
    }
    a->stack_node = 0;
    if (!find_detailed(a, left->stream, &span, &g)) return PROF_E_NO_MEMORY;
    if (g == &a->unwanted.of) continue;
    prof_i_device_time_add(&g->on_device,
                           &(prof_i_device_time){left->self_ns, left->self_ns, 1, left->self_ns});
    note_first_call(a, g, &span);
  }
  return 0;
}

/* Its total is total_ns from here on. False: no memory. */
static inline bool add_plain_scope(prof_i_group *g, uint64_t total_ns, uint64_t duration_ns,
                                   uint64_t self_ns) {
  g->stats.outer_ns = total_ns;
  return prof_i_duration_stats_add(&g->stats, duration_ns, self_ns);
}

/* What stands around what is at that place of the walk: around, the place below it. False: no
   memory. */
static bool find_caller(aggregation *a, const prof_i_span *span, prof_i_pending_span *around) {
  const bool is_known =
      around ? prof_i_call_stacks_of_pending(&a->call_stacks, a->walker, around, span->start_ns,
                                             &a->stack_node)
             : prof_i_call_stacks_of_span(&a->call_stacks, a->walker, span, &a->stack_node);
  if (!is_known) return false;
  return prof_i_call_stacks_is_function(&a->call_stacks, span->site) ||
         prof_i_call_stacks_of_scope(&a->call_stacks, span, a->stack_node, &a->stack_node);
}

/* around: as in find_caller(), or NULL for what was just handed out. False: no memory. */
static bool find_plain_or_edge(aggregation *a, const prof_i_span *span, prof_i_pending_span *around,
                               prof_i_group **group_out) {
  const bool is_detailed = span->record != NULL && has_details(a, span->record);
  if (a->has_callers && !find_caller(a, span, around)) return false;
  if (is_detailed) return find_detailed(a, a->thread, span, group_out);
  if (a->has_callers) return find_by_edge(a, span, group_out);
  *group_out = site_group(a, span->site);
  return *group_out != NULL;
}

/* ---- what waits ---- */

static inline bool has_pending_room(aggregation *a) {
  if (__builtin_expect(a->pending_count < a->pending_room, 1)) return true;
  return prof_i_make_room((void **)&a->pending_call, &a->pending_room, a->pending_count,
                          sizeof *a->pending_call);
}

/* It is not the only child: another one is there. */
static __attribute__((noinline)) int add_only_child(aggregation *a) {
  const finished_call *const child = &a->only_child;
  prof_i_group *const g = child->group;
  if (!g) return 0;
  a->only_child.group = NULL;
  if (a->has_first) note_first_call(a, g, &child->span);
  return add_to_group(a, g, &child->span, &child->before, &child->also);
}

/* A place of lane 0 that may hold what comes. False: no memory. */
static bool begin_pending(aggregation *a, prof_i_pending_span *location) {
  const prof_i_span *const span = &location->span;
  prof_i_group *g = NULL;
  if (!has_pending_room(a)) return false;
  const bool is_step = span->kind == PROF_EVENT_STEP;
  if (a->only_child.group && !is_step && add_only_child(a)) return false;
  const bool is_counted = span->kind <= PROF_EVENT_OPEN &&
                          (!has_window(&a->options) || span_is_in_window(&a->options, span));
  if (is_counted && !find_plain_or_edge(a, span, location - 1, &g)) return false;
  pending_call *const waits = &a->pending_call[a->pending_count++];
  if (g)
    note_totals(waits, g);
  else
    *waits = (pending_call){.is_step = is_step};
  return true;
}

static void on_pending(prof_i_walker *w, prof_i_pending_span *location) {
  if (!begin_pending(w->user, location)) w->status = PROF_E_NO_MEMORY;
}

/* Of a span that has just been handed out: what was kept when it began to wait. NULL: it never
   waited. */
static const pending_call *take_pending(aggregation *a, const prof_i_span *span) {
  if (span->lane > 0 || a->pending_count == 0) return NULL;
  const prof_i_pending_span *const around = prof_i_walker_parent(a->walker, span);
  if ((uint32_t)(around - a->walker->lanes[0].stack) != a->pending_count - 1) return NULL;
  return &a->pending_call[--a->pending_count];
}

static inline bool span_is_asked_for(const aggregation *a, const prof_i_span *span) {
  return __builtin_expect(!has_window(&a->options), 1) || span_is_in_window(&a->options, span);
}

/* PROF_RULE_OUTER_FUNCTIONS: it has no row, and holds memory. */
static bool is_outer_function(const aggregation *a, const prof_i_span *span) {
  return (a->options.rules & PROF_RULE_OUTER_FUNCTIONS) != 0 && span->lane == 0 &&
         span->start_ns < a->options.from_ns &&
         span->start_ns + span->duration_ns > a->options.from_ns &&
         prof_i_is_function_site(prof_i_trace_site(a->trace, span->site));
}

/* A scope that is not asked for holds nothing: then its memory is that of the scope around it. So
   is that of a scope that a jump left. */
static prof_i_scope_bytes end_scope_memory(aggregation *a, const prof_i_span *span) {
  const bool is_skipped = span->record && prof_i_is_skipped(span->record);
  if (span_is_asked_for(a, span) && !is_skipped)
    return prof_i_memory_totals_end_scope(&a->memory, span);
  if (is_outer_function(a, span)) {
    prof_i_memory_totals_end_scope(&a->memory, span);
    return (prof_i_scope_bytes){0};
  }
  prof_i_memory_totals_end_step(&a->memory, span);
  return (prof_i_scope_bytes){0};
}

/* The innermost scope of lane 0 around a charge, as end_scope_memory() sees it. */
static void find_holder(const aggregation *a, const prof_i_span *span, prof_i_charge *charge) {
  const prof_i_pending_span *const stack = a->walker->lanes[0].stack;
  const prof_i_pending_span *around = prof_i_walker_parent(a->walker, span);
  for (; around > stack; around--) {
    const prof_i_span *const holder = &around->span;
    const bool is_outer = is_outer_function(a, holder);
    if (holder->kind > PROF_EVENT_OPEN || (!span_is_asked_for(a, holder) && !is_outer)) continue;
    if (holder->record && prof_i_is_skipped(holder->record)) continue;
    prof_i_group *const g = a->pending_call[around - stack - 1].group;
    const bool has_own = g != &a->unwanted.of && !is_open_call(a, holder);
    charge->is_held = true;
    charge->holder_start_ns = holder->start_ns;
    charge->group = has_own && !is_outer ? g : NULL;
    return;
  }
}

static int add_charge(aggregation *a, const prof_i_span *span) {
  prof_i_charge charge = {.at_ns = span->start_ns};
  if (!prof_i_memory_totals_read(a->trace, span, &charge.own)) return 0;
  if (a->crossing.is_on) find_holder(a, span, &charge);
  if (a->crossing.is_on && !prof_i_crossing_memory_charge(&a->crossing, &charge))
    return PROF_E_NO_MEMORY;
  return prof_i_memory_totals_add(&a->memory, span, &charge.own) ? 0 : PROF_E_NO_MEMORY;
}

/* What is no scope. */
static int visit_other(aggregation *a, const prof_i_span *span) {
  if (a->has_launched && span->kind == PROF_EVENT_STEP)
    prof_i_device_totals_end_step(&a->on_device, span);
  if (!a->has_pools) return 0;
  if (span->kind == PROF_EVENT_STEP) prof_i_memory_totals_end_step(&a->memory, span);
  if (span->kind != PROF_EVENT_MEMORY || !span_is_asked_for(a, span)) return 0;
  return add_charge(a, span);
}

/* Of a scope that begins too late to be asked for: is it inside of one that is asked for? */
static bool is_inside_wanted(const aggregation *a, const prof_i_span *span) {
  if (span->start_ns < a->options.from_ns || span->kind != PROF_EVENT_SCOPE) return false;
  const prof_i_pending_span *around = prof_i_walker_parent(a->walker, span);
  for (; around->span.kind; around--) /* place 0 has none */
    if (around->span.kind == PROF_EVENT_SCOPE && span_is_in_window(&a->options, &around->span))
      return true;
  return false;
}

/* ---- PROF_RULE_ONLY_CHILDREN ---- */

/* What the only child did, the call around it did itself. */
static void take_only_child(aggregation *a, prof_i_span *span, overlap *also) {
  const finished_call *const child = &a->only_child;
  const prof_i_device_time *const d = &child->also.on_device;
  const prof_i_scope_bytes own = {.self_host = child->also.memory.self_host,
                                  .self_device = child->also.memory.self_device};
  prof_i_scope_bytes_add(&also->memory, &own);
  prof_i_device_time_add(&also->on_device,
                         &(prof_i_device_time){.self_ns = d->self_ns, .count = d->count});
  if (!PROF_I_FAULT(LOSES_SELF)) span->self_ns += child->span.self_ns;
  span->child_count = child->span.child_count;
  a->only_child.group = NULL;
}

/* The innermost scope that waits. A step's mark contains no calls. NULL: none waits. */
static pending_call *innermost_pending(aggregation *a) {
  uint32_t count = a->pending_count;
  while (count && a->pending_call[count - 1].is_step && !PROF_I_FAULT(STEP_HOLDS)) count--;
  return count ? &a->pending_call[count - 1] : NULL;
}

/* A vendor's call is an event in torch.profiler, so a scope beside it is not the only child. */
static __attribute__((noinline)) void note_call(aggregation *a, const prof_i_span *span) {
  pending_call *const around = innermost_pending(a);
  if (around && span->lane == 0) around->has_call = true;
}

static inline bool span_nests(const prof_i_span *span) {
  return span->lane == 0 && span->kind == PROF_EVENT_SCOPE &&
         !(span->record && prof_i_is_skipped(span->record));
}

static bool have_one_name(const prof_i_group *one, const prof_i_group *other) {
  const group_key *const a = &one->key, *const b = &other->key;
  if (one == other) return true;
  return !texts_differ(a->name, b->name) && a->location.line == b->location.line &&
         !texts_differ(a->location.file, b->location.file);
}

/* Keeps a call back that may turn out to be the only one in a call of its name. */
static __attribute__((noinline)) bool keep_only_child(aggregation *a, prof_i_group *g,
                                                      const prof_i_group *parent,
                                                      const prof_i_span *span,
                                                      const pending_call *before,
                                                      const overlap *also) {
  if (!span_nests(span) || !have_one_name(g, parent)) return false;
  const prof_i_pending_span *around = prof_i_walker_parent(a->walker, span);
  if ((uint32_t)(around - a->walker->lanes[0].stack) != a->pending_count) return false;
  while (around->span.kind == PROF_EVENT_STEP) around--;
  if (!span_nests(&around->span)) return false;
  a->only_child = (finished_call){g, *span, *before, *also};
  return true;
}

static inline __attribute__((always_inline)) int finish_visit(aggregation *a,
                                                              const prof_i_span *span,
                                                              const pending_call *waited,
                                                              const overlap *also) {
  prof_i_group *g = waited ? waited->group : NULL;
  if (!span_is_asked_for(a, span)) {
    if (is_inside_wanted(a, span)) a->unwanted.of.stats.self_ns += span->self_ns;
    return 0;
  }
  if (!waited && !find_plain_or_edge(a, span, NULL, &g)) return PROF_E_NO_MEMORY;
  if (g == &a->unwanted.of) {
    if (span->kind == PROF_EVENT_SCOPE) g->stats.self_ns += span->self_ns;
    return 0;
  }
  if (__builtin_expect(a->crossing.is_on, 0) && prof_i_is_crossing(span) &&
      !prof_i_crossing_memory_scope(&a->crossing, span, g))
    return PROF_E_NO_MEMORY;
  const pending_call before = waited ? *waited : group_total(g);
  if (a->has_only_children && a->pending_count) {
    const prof_i_group *const parent = innermost_pending(a) ? innermost_pending(a)->group : NULL;
    if (parent && parent->key.name.bytes == g->key.name.bytes &&
        keep_only_child(a, g, parent, span, &before, also))
      return 0;
  }
  if (a->has_first) note_first_call(a, g, span);
  return add_to_group(a, g, span, &before, also);
}

/* A call in which the one that was kept back stands, or beside it. */
static __attribute__((noinline)) int visit_around_only_child(aggregation *a,
                                                             const prof_i_span *span,
                                                             const pending_call *waited,
                                                             overlap *also) {
  prof_i_span merged = *span;
  const bool is_alone = span->child_count == 1 || PROF_I_FAULT(NOT_ALONE);
  if (waited && is_alone && !waited->has_call)
    take_only_child(a, &merged, also);
  else if (add_only_child(a))
    return PROF_E_NO_MEMORY;
  return finish_visit(a, &merged, waited, also);
}

static int visit_span(aggregation *a, const prof_i_span *span) {
  const pending_call *const waited = take_pending(a, span);
  if (span->kind > PROF_EVENT_OPEN) return visit_other(a, span);
  overlap also = {{0}, {0}};
  if (__builtin_expect(a->has_pools, 0)) also.memory = end_scope_memory(a, span);
  if (__builtin_expect(a->has_launched, 0) &&
      !prof_i_device_totals_end_scope(&a->on_device, span, &also.on_device))
    return PROF_E_NO_MEMORY;
  if (a->has_only_children && span->record && prof_i_is_call(span->record)) note_call(a, span);
  if (__builtin_expect(a->only_child.group != NULL, 0) && span->lane == 0)
    return visit_around_only_child(a, span, waited, &also);
  return finish_visit(a, span, waited, &also);
}

static int visit_spans(void *user, const prof_i_span *spans, size_t count) {
  int status = 0;
  for (size_t i = 0; !status && i < count; i++) status = visit_span(user, &spans[i]);
  return status;
}

/* ---- segments of plain scopes, without a span in between ---- */

static inline void add_leaf(prof_i_walker *w, const prof_i_leaf *leaf,
                            prof_i_pending_span *around) {
  (void)around;
  prof_i_group *const g = site_group(w->user, leaf->site);
  if (!g || !add_plain_scope(g, g->stats.outer_ns + leaf->duration_ns, leaf->duration_ns,
                             leaf->duration_ns))
    w->status = PROF_E_NO_MEMORY;
}

static inline void add_pending(prof_i_walker *w, prof_i_pending_span *location) {
  aggregation *const a = w->user;
  const prof_i_span *const span = &location->span;
  if (__builtin_expect(span->record != NULL || span->kind != PROF_EVENT_SCOPE, 0)) {
    w->around = location - 1;
    prof_i_walker_emit(w, location);
    w->around = NULL;
    return;
  }
  if (__builtin_expect(w->status != 0, 0)) return; /* what waits was not kept */
  const pending_call *const waited = &a->pending_call[--a->pending_count];
  const uint64_t self_ns = span->duration_ns - location->children_ns;
  waited->group->inner_count = waited->inner_count + location->child_count + location->deeper_count;
  waited->group->child_count += location->child_count;
  if (!add_plain_scope(waited->group, waited->total_ns + span->duration_ns, span->duration_ns,
                       self_ns))
    w->status = PROF_E_NO_MEMORY;
}

/* All of it is kept: behind the segment another way may hand it out. */
static inline void make_pending_plain(prof_i_walker *w, const prof_i_leaf *leaf,
                                      prof_i_pending_span *location) {
  aggregation *const a = w->user;
  prof_i_pending_init(leaf, location);
  prof_i_group *const g = site_group(a, leaf->site);
  if (__builtin_expect(!g || !has_pending_room(a), 0)) {
    w->status = PROF_E_NO_MEMORY;
    return;
  }
  note_totals(&a->pending_call[a->pending_count++], g);
}

static void add_plain(prof_i_walker *w, const prof_i_segment *segment) {
  prof_i_walk_plain(w, segment, add_leaf, add_pending, make_pending_plain);
}

static int add_thread(aggregation *a) {
  const int looked =
      a->has_pools ? prof_i_crossing_memory_go(&a->crossing, a->trace, a->thread) : 0;
  if (looked) return looked;
  if (!a->has_pools) a->crossing.is_on = false;
  prof_i_walker *const walker = a->walker =
      prof_i_walker_create(a->trace, a->thread, visit_spans, a);
  if (!walker) return PROF_E_NO_MEMORY;
  a->has_launched = prof_i_device_totals_begin(&a->on_device, a->thread);
  a->has_callers = prof_i_call_stacks_has_any(&a->call_stacks);
  if (a->call_stacks.backward) a->call_stacks.backward->thread = a->thread;
  a->stack_node = 0;
  prof_i_walker_track_parents(walker, a->has_callers ? &a->call_stacks : NULL,
                              prof_i_call_stacks_enclosing);
  walker->on_pending = on_pending;
  prof_i_walker_skip_before(walker, a->options.from_ns);
  a->pending_count = 0;
  a->only_child.group = NULL;
  /* Where nothing waits for a scope, and nobody looks at it. */
  if (!a->has_callers && !a->has_pools && !a->has_first && !a->has_launched &&
      !has_window(&a->options) && !(a->options.group & PROF_GROUP_FLOPS) && !a->has_only_children) {
    walker->walk_plain = add_plain;
    walker->takes_bare = !(a->options.group & (SHAPES | PROF_GROUP_STACK));
  }
  prof_i_memory_totals_clear(&a->memory);
  const int status = prof_i_walker_run(walker);
  if (a->crossing.is_on)
    prof_i_crossing_memory_settle(&a->crossing, &a->outside);
  else
    prof_i_memory_totals_unscoped(&a->memory, &a->outside);
  prof_i_walker_destroy(walker);
  a->walker = NULL;
  a->has_callers = false;
  a->stack_node = 0;
  if (a->options.group & LINES) clear_edges(a);
  return status ? status : add_skipped(a);
}

/* What the scopes inside of each group's calls cost, of the trace that has been added up. */
static void add_scope_costs(const aggregation *a) {
  const double scope_ns = (double)a->trace->header.scope_cost_ps / 1e3;
  for (group *g = a->groups; g; g = g->hh.next) {
    prof_i_group *const of = &g->of;
    of->self_cost_ns += (double)(of->child_count - of->priced_child_count) * scope_ns;
    of->total_cost_ns += (double)(of->inner_count - of->priced_inner_count) * scope_ns;
    of->priced_child_count = of->child_count;
    of->priced_inner_count = of->inner_count;
  }
}

static void forget_trace(aggregation *a) {
  free(a->by_site);
  a->by_site = NULL;
  prof_i_device_totals_fini(&a->on_device);
  prof_i_call_stacks_fini(&a->call_stacks);
  clear_edges(a);
}

static bool find_callers(aggregation *a) {
  const bool with_scopes = a->options.group & PROF_GROUP_SCOPES;
  if (!prof_i_call_stacks_init(&a->call_stacks, a->trace, a->options.stack_frames, with_scopes))
    return false;
  return with_scopes ||
         prof_i_forward_stacks_find(&a->call_stacks, a->options.from_ns, a->options.to_ns);
}

static int add_trace(aggregation *a) {
  a->site_count = prof_i_trace_site_count(a->trace);
  a->by_site = calloc(a->site_count, sizeof *a->by_site);
  a->process = UINT32_MAX;
  const bool with_memory = !(a->options.leave_out & PROF_LEAVE_OUT_MEMORY);
  a->has_pools = with_memory && a->trace->catalog.pool_count != 0;
  a->has_only_children = (a->options.rules & PROF_RULE_ONLY_CHILDREN) != 0;
  a->has_first = a->options.sort == PROF_SORT_FIRST || (a->options.group & PROF_GROUP_ANNOTATION);
  int status = a->by_site ? 0 : PROF_E_NO_MEMORY;
  if (!status)
    status =
        prof_i_device_totals_init(&a->on_device, a->trace, a->options.group & PROF_GROUP_KERNEL);
  if (!status && (a->options.group & STACKS) && !find_callers(a)) status = PROF_E_NO_MEMORY;
  for (a->thread = 0; !status && a->thread < a->trace->thread_count; a->thread++) {
    /* what is there is met where it was launched */
    if (prof_i_thread_is_stream(&a->trace->threads[a->thread])) continue;
    if (a->options.group & LINES) memset(a->by_site, 0, a->site_count * sizeof *a->by_site);
    status = take_thread_process(a) ? add_thread(a) : PROF_E_NO_MEMORY;
  }
  if (!status) {
    prof_i_device_totals_begin(&a->on_device, UINT32_MAX);
    status = add_skipped(a);
  }
  add_scope_costs(a);
  forget_trace(a);
  return status;
}

static int add_all_threads(aggregation *a) {
  int status = 0;
  for (size_t i = 0; !status && i < a->trace_count; i++) {
    a->trace = a->traces[i];
    status = add_trace(a);
    a->threads_before += a->trace->thread_count;
    a->processes.of_trace = a->processes.count;
  }
  return status;
}

static void aggregation_fini(aggregation *a) {
  prof_i_memory_totals_fini(&a->memory);
  prof_i_crossing_memory_fini(&a->crossing);
  prof_i_duration_stats_fini(&a->unwanted.of.stats);
  free(a->pending_call);
  free(a->processes.all);
  group *g, *next;
  HASH_ITER(hh, a->groups, g, next) {
    /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): uthash frees its table with the last one, and
       sets groups to NULL */
    HASH_DEL(a->groups, g);
    free_group(g);
  }
}

/* All of its calls are part of the calls around them (PROF_RULE_ONLY_CHILDREN). */
static bool group_is_empty(const prof_i_group *g) {
  return g->stats.calls == 0 && g->open_count == 0 && g->skipped_count == 0 &&
         g->on_device.count == 0;
}

static int collect_groups(const aggregation *a, prof_rows **rows_out) {
  uint64_t count = 0;
  prof_i_group **const groups = malloc((HASH_COUNT(a->groups) + 1) * sizeof *groups);
  if (!groups) return PROF_E_NO_MEMORY;
  for (group *g = a->groups; g; g = g->hh.next)
    if (!group_is_empty(&g->of)) groups[count++] = &g->of;
  const int status = prof_i_rows_make(a->traces, a->trace_count, &a->options, groups, count,
                                      &a->outside, &a->processes, rows_out);
  if (!status) (*rows_out)->all_self_ns = (*rows_out)->total_self_ns + a->unwanted.of.stats.self_ns;
  free(groups);
  return status;
}

/* ---- options ---- */

/* A smaller struct is an older caller's; a larger one is accepted while what is beyond is zero. */
static int read_aggregate_options(const prof_aggregate_options *given,
                                  prof_aggregate_options *options) {
  *options = (prof_aggregate_options){.size = sizeof *options};
  if (given) {
    if (given->size < sizeof given->size || given->size > 4096)
      return prof_i_fail(PROF_E_INVALID,
                         "options.size is %zu; set it to sizeof(prof_aggregate_options)",
                         given->size);
    memcpy(options, given, given->size < sizeof *options ? given->size : sizeof *options);
    for (size_t i = sizeof *options; i < given->size; i++)
      if (((const char *)given)[i])
        return prof_i_fail(
            PROF_E_INVALID,
            "options.size is %zu, and byte %zu, which this library does not know, is set",
            given->size, i);
  }
  const uint32_t groups = PROF_GROUP_NAME | PROF_GROUP_CATEGORY | PROF_GROUP_DEVICE |
                          PROF_GROUP_THREAD | PROF_GROUP_SHAPE | PROF_GROUP_STACK |
                          PROF_GROUP_KERNEL | PROF_GROUP_ANNOTATION | PROF_GROUP_SCOPES |
                          PROF_GROUP_FLOPS | PROF_GROUP_PROCESS;
  if (options->group & ~groups)
    return prof_i_fail(PROF_E_INVALID, "options.group is 0x%x; the known bits are 0x%x",
                       options->group, groups);
  if (options->level > 2)
    return prof_i_fail(PROF_E_INVALID, "options.level is %u; 0 (both), 1 and 2 are known",
                       options->level);
  if (options->sort > PROF_SORT_SELF_DEVICE)
    return prof_i_fail(PROF_E_INVALID, "options.sort is %u; the largest is %d", options->sort,
                       PROF_SORT_SELF_DEVICE);
  const uint32_t left_out =
      PROF_LEAVE_OUT_FUNCTIONS | PROF_LEAVE_OUT_MODULES | PROF_LEAVE_OUT_MEMORY;
  if (options->leave_out & ~left_out)
    return prof_i_fail(PROF_E_INVALID, "options.leave_out is 0x%x; the known bits are 0x%x",
                       options->leave_out, left_out);
  const uint32_t rules = PROF_RULE_OPEN_CALLS | PROF_RULE_OUTER_FUNCTIONS | PROF_RULE_ONLY_CHILDREN;
  if (options->rules & ~rules)
    return prof_i_fail(PROF_E_INVALID, "options.rules is 0x%x; the known bits are 0x%x",
                       options->rules, rules);
  if (options->time_unit % 3 || options->time_unit > 9)
    return prof_i_fail(PROF_E_INVALID, "options.time_unit is %u, not 0, 3, 6 or 9",
                       options->time_unit);
  if (options->to_ns && options->to_ns <= options->from_ns)
    return prof_i_fail(PROF_E_INVALID, "options.to_ns is %llu, not after from_ns, which is %llu",
                       (unsigned long long)options->to_ns, (unsigned long long)options->from_ns);
  if ((options->group & ~(uint32_t)PROF_GROUP_KERNEL) == 0)
    options->group |= PROF_GROUP_NAME | PROF_GROUP_CATEGORY;
  if ((options->rules & PROF_RULE_ONLY_CHILDREN) && !(options->group & PROF_GROUP_NAME))
    return prof_i_fail(PROF_E_INVALID,
                       "options.rules is 0x%x, and options.group, 0x%x, is without names; "
                       "PROF_RULE_ONLY_CHILDREN needs PROF_GROUP_NAME",
                       options->rules, options->group);
  return PROF_OK;
}

static int check_arguments(const char *function, const prof_trace *const *traces, size_t count,
                           const void *out) {
  if (!traces || !out)
    return prof_i_fail(PROF_E_INVALID, "%s: %s is NULL", function, traces ? "rows_out" : "traces");
  if (count == 0) return prof_i_fail(PROF_E_INVALID, "%s: count is 0", function);
  for (size_t i = 0; i < count; i++)
    if (!traces[i]) return prof_i_fail(PROF_E_INVALID, "%s: traces[%zu] is NULL", function, i);
  return PROF_OK;
}

/* NULL: no memory. */
static aggregation *make_aggregation(const prof_trace *const *traces, size_t count) {
  aggregation *const a = aligned_alloc(64, (sizeof *a + 63) / 64 * 64);
  if (!a) return NULL;
  memset(a, 0, sizeof *a);
  a->traces = traces;
  a->trace_count = count;
  prof_i_duration_stats_init(&a->unwanted.of.stats);
  return a;
}

int prof_i_aggregate_one(const prof_trace *trace, const char *name, const char *category,
                         uint64_t *total_ns_out, uint64_t *count_out) {
  aggregation *const a = make_aggregation(&trace, 1);
  if (!a) return PROF_E_NO_MEMORY;
  a->name = name;
  a->options.category = category;
  const int status = add_all_threads(a);
  *total_ns_out = *count_out = 0;
  for (const group *g = a->groups; g; g = g->hh.next) { /* one, or none */
    *total_ns_out += prof_i_group_total(&g->of);
    *count_out += g->of.stats.calls;
  }
  aggregation_fini(a);
  free(a);
  return status;
}

int prof_i_traces_aggregate(const prof_trace *const *traces, size_t count,
                            const prof_aggregate_options *options, prof_rows **rows_out) {
  int status = check_arguments("prof_traces_aggregate", traces, count, rows_out);
  if (status) return status;
  aggregation *const a = make_aggregation(traces, count);
  if (!a) return prof_i_fail(PROF_E_NO_MEMORY, "no memory to aggregate");
  status = read_aggregate_options(options, &a->options);
  if (!status) {
    status = add_all_threads(a);
    if (!status) status = collect_groups(a, rows_out);
    if (status)
      prof_i_fail(status, "no memory to aggregate %llu events",
                  (unsigned long long)a->trace->event_count);
  }
  aggregation_fini(a);
  free(a);
  return status;
}

int prof_traces_aggregate(const prof_trace *const *traces, size_t count,
                          const prof_aggregate_options *options, prof_rows **rows_out) {
  PROF_I_DEFAULT_FP;
  PROF_I_REFUSE_INTERRUPTED(PROF_E_BUSY);
  PROF_I_INSIDE;
  return prof_i_traces_aggregate(traces, count, options, rows_out);
}

int prof_trace_aggregate(const prof_trace *trace, const prof_aggregate_options *options,
                         prof_rows **rows_out) {
  if (!trace || !rows_out)
    return prof_i_fail(PROF_E_INVALID, "prof_trace_aggregate: %s is NULL",
                       trace ? "rows_out" : "trace");
  return prof_traces_aggregate(&trace, 1, options, rows_out);
}
