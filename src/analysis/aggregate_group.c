/* Finds the group of a scope. A scope that has nothing beyond its call site is found by the site's
   number, without reading a name. If stacks are requested, it is found by its stack node and its
   site. All others are found by a hash of their key: names, shape, stack, device, thread. */
#include <stdlib.h>
#include <string.h>

#include "../base/port.h"
#include "../reader/internal.h"
#include "aggregation.h"
#include "internal.h"

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

/* A group in the hash table. It starts on a cache line, so that its statistics are on one line. */
typedef struct prof_i_group_node {
  _Alignas(64) prof_i_group of;
  UT_hash_handle hh;
} group_node;

enum { EDGES_FIRST = 256 };

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

static int key_differs(const group_key *a, const group_key *b) {
  return a->thread != b->thread || a->process != b->process || a->device.type != b->device.type ||
         a->device.index != b->device.index || prof_i_texts_differ(a->name, b->name) ||
         prof_i_texts_differ(a->category, b->category) || prof_i_texts_differ(a->shape, b->shape) ||
         prof_i_texts_differ(a->stack, b->stack) || a->location.line != b->location.line ||
         prof_i_texts_differ(a->location.file, b->location.file);
}

/* ---- source locations ---- */

/* Of a C function that Python called, the file is the interpreter's name of it. */
static prof_i_source_location site_location(const prof_i_site_info *site) {
  if (prof_i_is_c_function_site(site)) return (prof_i_source_location){.file = {"", 0}};
  return (prof_i_source_location){site->file, site->line};
}

static void add_location(prof_i_group *g, const prof_trace *trace, uint32_t site) {
  prof_i_group_locations *const locations = &g->locations;
  if (locations->last_site == site) return;
  const prof_i_source_location location = site_location(prof_i_trace_site(trace, site));
  locations->last_site = site & INT32_MAX;
  if (location.file.bytes == 0) return;
  if (locations->first.file.bytes && (locations->first.line != location.line ||
                                      prof_i_texts_differ(locations->first.file, location.file)))
    locations->has_more = true;
  if (locations->first.file.bytes && locations->site < site) return;
  locations->first = location;
  locations->site = site;
}

/* ---- keys of scopes ---- */

static const prof_i_text no_text = {"", 0};

/* PROF_GROUP_ANNOTATION separates annotations from operators of the same name. */
static prof_i_text key_category(uint32_t by, prof_i_text category) {
  if (by & PROF_GROUP_CATEGORY) return category;
  return (by & PROF_GROUP_ANNOTATION) && prof_i_torch_is_annotation(category) ? category : no_text;
}

/* Grouped by rank but not by process, one process represents all processes of its rank. */
bool prof_i_aggregation_set_process(prof_i_aggregation *a) {
  prof_i_processes *const processes = &a->processes;
  const bool is_by_process = a->options.group & PROF_GROUP_PROCESS;
  a->process = UINT32_MAX;
  if (!(a->options.group & (PROF_GROUP_PROCESS | PROF_I_GROUP_RANK))) return true;
  prof_i_process_record process = prof_i_trace_process(a->trace, a->thread);
  if (!is_by_process)
    process = (prof_i_process_record){.pid = -1, .rank = process.rank, .name = no_text};
  uint32_t at = is_by_process ? processes->of_trace : 0;
  while (at < processes->count && (is_by_process ? processes->all[at].pid != process.pid
                                                 : processes->all[at].rank != process.rank))
    at++;
  a->process = at;
  if (at < processes->count) return true;
  if (!prof_i_make_room((void **)&processes->all, &processes->room, at, sizeof process))
    return false;
  processes->all[processes->count++] = process;
  return true;
}

static group_key make_key(const prof_i_aggregation *a, uint32_t site, prof_i_text name,
                          prof_i_text category, prof_i_text shape, prof_i_text stack,
                          prof_i_text arg, prof_device device) {
  const uint32_t by = a->options.group;
  const prof_i_site_info *const info = prof_i_trace_site(a->trace, site);
  const bool has_location =
      (by & PROF_I_GROUP_LINE) || ((by & PROF_GROUP_NAME) && prof_i_is_named_by_function(info));
  return (group_key){
      .name = by & PROF_GROUP_NAME ? name : no_text,
      .category = key_category(by, category),
      .shape = by & PROF_I_GROUP_ARG      ? arg
               : by & PROF_I_GROUP_SHAPES ? shape
                                          : no_text,
      .stack = by & PROF_I_GROUP_STACKS ? stack : no_text,
      .device = by & PROF_GROUP_DEVICE ? device : (prof_device){0, 0},
      .thread = by & PROF_GROUP_THREAD ? a->threads_before + a->thread : UINT32_MAX,
      .process = a->process,
      .location = has_location ? site_location(info) : (prof_i_source_location){.file = no_text}};
}

/* ---- groups ---- */

/* It follows the node. */
prof_i_duration_stats **prof_i_group_unscoped(prof_i_group *group) {
  group_node *const node = (group_node *)(void *)group;
  return (prof_i_duration_stats **)(void *)(node + 1);
}

static void free_group(const prof_i_aggregation *a, group_node *g) {
  prof_i_duration_stats *const unscoped = a->has_durations ? *prof_i_group_unscoped(&g->of) : NULL;
  if (unscoped) prof_i_duration_stats_fini(unscoped);
  free(unscoped);
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

/* All groups are freed together, so they may share a text. NULL: no memory. */
static group_node *make_group(prof_i_aggregation *a, const group_key *key, uint32_t level) {
  const size_t bytes = sizeof(group_node) + (a->has_durations ? _Alignof(group_node) : 0);
  group_node *const made = aligned_alloc(_Alignof(group_node), bytes);
  if (!made) return NULL;
  memset(made, 0, bytes);
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
  free_group(a, made);
  return NULL;
}

/* NULL: no memory. */
static prof_i_group *find_group(prof_i_aggregation *a, const group_key *key, uint32_t level) {
  group_node *g = NULL;
  bool is_out_of_memory = false;
  HASH_FIND(hh, a->groups, key, sizeof *key, g);
  if (g) return &g->of;
  g = make_group(a, key, level);
  if (!g) return NULL;
  HASH_ADD(hh, a->groups, of.key, sizeof g->of.key, g);
  if (!is_out_of_memory) return &g->of;
  free_group(a, g);
  return NULL;
}

/* ---- the group of a scope ---- */

static bool name_is_excluded(uint32_t which, prof_i_text name, prof_i_text category) {
  const uint32_t of_name = prof_i_name_is_torch_module(name.data, name.bytes)
                               ? PROF_LEAVE_OUT_MODULES
                               : PROF_LEAVE_OUT_FUNCTIONS;
  return (which & of_name) && prof_i_is_function_category(category);
}

static bool scope_is_wanted(const prof_i_aggregation *a, prof_i_text name, prof_i_text category,
                            uint32_t level) {
  const prof_aggregate_options *const options = &a->options;
  if (a->name && !prof_i_text_equals(name, a->name)) return false;
  if (options->level && options->level != level) return false;
  if (options->leave_out && name_is_excluded(options->leave_out, name, category)) return false;
  return !options->category || prof_i_text_equals(category, options->category);
}

/* With rows by line: whether the site has a known line. */
static bool has_line(const prof_i_aggregation *a, uint32_t site) {
  return !(a->options.group & PROF_I_GROUP_LINE) ||
         site_location(prof_i_trace_site(a->trace, site)).file.bytes != 0;
}

/* With rows by an argument: whether the event has it. *arg_out is its value, or empty. */
static bool read_arg(prof_i_aggregation *a, const prof_event *event, prof_i_text *arg_out) {
  *arg_out = no_text;
  if (!(a->options.group & PROF_I_GROUP_ARG)) return true;
  const prof_trace_arg *const arg = prof_i_arg_find(event, a->arg_key, strlen(a->arg_key));
  if (!arg) return false;
  *arg_out = prof_i_arg_value_text(arg, a->arg_room);
  return true;
}

/* The group of plain scopes: their arguments are in the record of their site. NULL: no memory. */
static prof_i_group *find_by_site_args(prof_i_aggregation *a, uint32_t site) {
  const prof_i_span span = {
      .kind = PROF_EVENT_SCOPE, .site = site, .record = prof_i_trace_site(a->trace, site)->record};
  prof_i_group *g;
  return prof_i_aggregation_find_detailed(a, a->thread, &span, &g) ? g : NULL;
}

prof_i_group *prof_i_aggregation_add_site(prof_i_aggregation *a, uint32_t site) {
  const prof_i_site_info *const info = prof_i_trace_site(a->trace, site);
  prof_i_group *g = &a->unwanted;
  const bool passes = !a->filter || a->filtered.takes_site[site];
  if (a->options.group & PROF_I_GROUP_ARG) return a->by_site[site] = find_by_site_args(a, site);
  if (passes && has_line(a, site) && scope_is_wanted(a, info->name, info->category, info->level)) {
    const group_key key = make_key(a, site, info->name, info->category, no_text, no_text, no_text,
                                   (prof_device){PROF_DEVICE_CPU, 0});
    g = find_group(a, &key, info->level);
    if (g) add_location(g, a->trace, site);
  }
  a->by_site[site] = g;
  return g;
}

/* The stack of a scope: its stack argument, or the functions around it. In a backward call it is
   the stack of the forward call. False: no memory. */
static bool scope_stack(prof_i_aggregation *a, uint32_t site, const prof_event *event,
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

bool prof_i_aggregation_find_detailed(prof_i_aggregation *a, uint32_t thread,
                                      const prof_i_span *span, prof_i_group **group_out) {
  prof_event *const event = &a->event;
  prof_i_trace_expand(a->trace, thread, span, event);
  const prof_i_text name = {event->name, event->name_bytes},
                    category = {event->category, event->category_bytes};
  *group_out = &a->unwanted;
  if (a->filter && !prof_i_trace_filter_takes_event(&a->filtered, event)) return true;
  if (!scope_is_wanted(a, name, category, event->level) || !has_line(a, span->site)) return true;
  prof_i_text arg;
  if (!read_arg(a, event, &arg)) return true;
  const uint32_t by = a->options.group & PROF_I_GROUP_SHAPES;
  const size_t shape_words = !by ? 0
                             : by & PROF_GROUP_FLOPS
                                 ? prof_i_shape_flops_words(event, a->shape, PROF_I_SHAPE_WORDS)
                                 : prof_i_shape_words(event, a->shape, PROF_I_SHAPE_WORDS);
  const prof_i_text shape = {(const char *)a->shape, shape_words * sizeof *a->shape};
  prof_i_text stack = {"", 0};
  if ((a->options.group & PROF_I_GROUP_STACKS) && !scope_stack(a, span->site, event, &stack))
    return false;
  const group_key key = make_key(a, span->site, name, category, shape, stack, arg, event->device);
  *group_out = find_group(a, &key, event->level);
  if (*group_out) add_location(*group_out, a->trace, span->site);
  return *group_out != NULL;
}

/* ---- groups by stack node and site ---- */

static prof_i_edge *edge_slot(prof_i_edge *edges, uint32_t room, uint32_t stack_node,
                              uint32_t site) {
  uint32_t at =
      (uint32_t)(((uint64_t)stack_node << 32 | site) * UINT64_C(0x9e3779b97f4a7c15) >> 32) &
      (room - 1);
  while (edges[at].group && (edges[at].stack_node != stack_node || edges[at].site != site))
    at = (at + 1) & (room - 1);
  return &edges[at];
}

static bool grow_edges(prof_i_aggregation *a) {
  const uint32_t room = a->edge_room ? a->edge_room * 2 : EDGES_FIRST;
  prof_i_edge *const larger = calloc(room, sizeof *larger);
  if (!larger) return false;
  for (uint32_t i = 0; i < a->edge_room; i++)
    if (a->edges[i].group)
      *edge_slot(larger, room, a->edges[i].stack_node, a->edges[i].site) = a->edges[i];
  free(a->edges);
  a->edges = larger;
  a->edge_room = room;
  return true;
}

void prof_i_aggregation_clear_edges(prof_i_aggregation *a) {
  free(a->edges);
  a->edges = NULL;
  a->edge_count = a->edge_room = 0;
}

bool prof_i_aggregation_find_by_edge(prof_i_aggregation *a, const prof_i_span *span,
                                     prof_i_group **group_out) {
  if (a->edge_count * 2 >= a->edge_room && !grow_edges(a)) return false;
  prof_i_edge *const e = edge_slot(a->edges, a->edge_room, a->stack_node, span->site);
  if (!e->group) {
    prof_i_group *g;
    if (!prof_i_aggregation_find_detailed(a, a->thread, span, &g)) return false;
    *e = (prof_i_edge){a->stack_node, span->site, g};
    a->edge_count++;
  }
  *group_out = e->group;
  add_location(e->group, a->trace, span->site);
  return true;
}

/* ---- all groups ---- */

prof_i_group *prof_i_aggregation_next_group(const prof_i_aggregation *a, prof_i_group *group) {
  /* the group is the node's first member */
  const group_node *const last = (const group_node *)(const void *)group;
  group_node *const next = last ? last->hh.next : a->groups;
  return next ? &next->of : NULL;
}

uint64_t prof_i_aggregation_group_count(const prof_i_aggregation *a) {
  return HASH_COUNT(a->groups);
}

void prof_i_aggregation_free_groups(prof_i_aggregation *a) {
  group_node *g, *next;
  HASH_ITER(hh, a->groups, g, next) {
    /* uthash frees its table with the last one, and sets groups to NULL. */
    /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
    HASH_DEL(a->groups, g);
    free_group(a, g);
  }
}
