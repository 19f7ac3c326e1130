/* Aggregates. Scopes that have nothing beyond their call site are added up by its number, without a look at a name; the
   others find their group by a hash. In the end the sites' sums join the groups that they belong to. */
#include <prof/memory.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../core/log.h"
#include "../core/port.h"
#include "callers.h"
#include "device_sums.h"
#include "forward_stacks.h"
#include "memory_sums.h"
#include "parse.h"
#include "plain.h"
#include "shape.h"
#include "show.h"
#include "tally.h"

/* What tells one group from another; what takes no part is empty. Texts are the capture's, shapes are the row's own, and a stack is the first one's that has its text. A shape is words of shape.h's: its text is made of rows alone, for an operator's takes longer than all else about it. */
typedef struct group_key {
  prof_i_text name, category, shape, stack;
  prof_device device;
  uint32_t thread;
} group_key;

static uint32_t hash_of(const group_key *key);
static int differ(const group_key *a, const group_key *b);

#define HASH_NONFATAL_OOM 1
#define HASH_FUNCTION(key, bytes, hash) ((void)(bytes), (hash) = hash_of((const group_key *)(const void *)(key)))
#define HASH_KEYCMP(a, b, bytes) \
  ((void)(bytes), differ((const group_key *)(const void *)(a), (const group_key *)(const void *)(b)))
#define uthash_nonfatal_oom(item) (is_out_of_memory = true)
#include <uthash.h>

typedef struct group {
  group_key key;
  prof_i_tally tally;
  prof_i_held_bytes memory;
  prof_i_device_time on_device;
  uint64_t first_ns; /* PROF_SORT_FIRST: its earliest begin */
  uint64_t async_count;
  uint32_t level;
  bool has_own_stack; /* to be freed with it */
  UT_hash_handle hh;
} group;

enum { SHAPE_WORDS = 1024, ROWS_DEFAULT = 100, WAYS_FIRST = 256 };

/* Scopes of a site that were begun by one way (callers.h): their group. */
typedef struct way {
  uint32_t caller, site;
  group *group; /* NULL: nobody's place; &unwanted: not wanted */
} way;

typedef struct aggregation {
  const prof_trace *const *traces;
  size_t trace_count;
  prof_aggregate_options options;
  group *groups; /* of all traces: texts point into them */
  /* Of the trace that is being added up. */
  const prof_trace *trace;
  uint32_t thread, threads_before; /* those of the traces before it */
  uint32_t site_count;
  prof_i_tally **by_site; /* NULL: not met yet */
  prof_i_held_bytes *memory_by_site; /* NULL: the trace has no pools */
  uint64_t *first_by_site; /* the earliest begin; NULL: nobody asks. Not in the tallies: they fill a line of the cache each */
  prof_i_memory_sums memory;
  prof_i_device_time *device_by_site; /* NULL: the trace has nothing of devices */
  prof_i_device_sums on_device;
  bool has_launched; /* the thread */
  prof_i_callers callers; /* where stacks are asked for */
  uint32_t caller; /* of the span at hand */
  prof_i_walker *walker; /* NULL: nobody asks what stands around a span */
  way *ways; /* by a hash; of the thread where threads are told apart */
  uint32_t way_count, way_room; /* the room a power of two */
  group unwanted_group;
  prof_i_tally unwanted; /* of all sites that the options leave out: added up like the others, for a test would cost as much */
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

static uint32_t hash_of(const group_key *key) {
  uint64_t hash = (uint64_t)(uint32_t)key->device.type << 32 | (uint32_t)key->device.index;
  hash = hash * 0xff51afd7ed558ccdu ^ key->thread;
  hash = hash_bytes(hash, key->name.data, key->name.bytes);
  hash = hash_bytes(hash, key->category.data, key->category.bytes);
  hash = hash_bytes(hash, key->stack.data, key->stack.bytes);
  return (uint32_t)hash_bytes(hash, key->shape.data, key->shape.bytes);
}

static int texts_differ(prof_i_text a, prof_i_text b) {
  return a.bytes != b.bytes || (a.data != b.data && memcmp(a.data, b.data, (size_t)a.bytes) != 0);
}

static int differ(const group_key *a, const group_key *b) {
  return a->thread != b->thread || a->device.type != b->device.type || a->device.index != b->device.index ||
         texts_differ(a->name, b->name) || texts_differ(a->category, b->category) || texts_differ(a->shape, b->shape) || texts_differ(a->stack, b->stack);
}

static group_key make_key(const aggregation *a, prof_i_text name, prof_i_text category, prof_i_text shape, prof_i_text stack, prof_device device) {
  static const prof_i_text none = {"", 0};
  const uint32_t by = a->options.group;
  return (group_key){.name = by & PROF_GROUP_NAME ? name : none,
                     .category = by & PROF_GROUP_CATEGORY ? category : none,
                     .shape = by & PROF_GROUP_SHAPE ? shape : none,
                     .stack = by & PROF_GROUP_STACK ? stack : none,
                     .device = by & PROF_GROUP_DEVICE ? device : (prof_device){0, 0},
                     .thread = by & PROF_GROUP_THREAD ? a->threads_before + a->thread : UINT32_MAX};
}

/* ---- groups ---- */

static void free_group(group *g) {
  free((void *)(uintptr_t)g->key.shape.data);
  if (g->has_own_stack) free((void *)(uintptr_t)g->key.stack.data);
  prof_i_tally_fini(&g->tally);
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
  group *const g = calloc(1, sizeof *g);
  if (!g) return NULL;
  g->key = *key;
  g->level = level;
  g->first_ns = UINT64_MAX;
  prof_i_tally_init(&g->tally);
  g->key.shape.data = copy_text(key->shape);
  if (!prof_i_callers_give(&a->callers, key->stack.data, &g->has_own_stack)) {
    g->key.stack.data = copy_text(key->stack);
    g->has_own_stack = true;
  }
  if (g->key.shape.data && g->key.stack.data) return g;
  free_group(g);
  return NULL;
}

/* NULL: no memory. */
static group *find_group(aggregation *a, const group_key *key, uint32_t level) {
  group *g = NULL;
  bool is_out_of_memory = false;
  HASH_FIND(hh, a->groups, key, sizeof *key, g);
  if (g) return g;
  g = make_group(a, key, level);
  if (!g) return NULL;
  HASH_ADD(hh, a->groups, key, sizeof g->key, g);
  if (!is_out_of_memory) return g;
  free_group(g);
  return NULL;
}

/* ---- adding up ---- */

static bool text_is(prof_i_text text, const char *word) { return text.bytes == strlen(word) && memcmp(text.data, word, (size_t)text.bytes) == 0; }

static bool is_left_out(uint32_t which, prof_i_text name, prof_i_text category) {
  static const char module[] = "nn.Module: ";
  const bool is_module = name.bytes >= sizeof module - 1 && memcmp(name.data, module, sizeof module - 1) == 0;
  return (which & (is_module ? PROF_LEAVE_OUT_MODULES : PROF_LEAVE_OUT_FUNCTIONS)) && prof_i_is_function_category(category);
}

static bool is_wanted(const prof_aggregate_options *options, prof_i_text name, prof_i_text category, uint32_t level) {
  if (options->level && options->level != level) return false;
  if (options->leave_out && is_left_out(options->leave_out, name, category)) return false;
  return !options->category || text_is(category, options->category);
}

static prof_i_tally *meet_site(aggregation *a, uint32_t site) {
  const prof_i_site_info *const info = prof_i_trace_site(a->trace, site);
  prof_i_tally *tally = &a->unwanted;
  if (is_wanted(&a->options, info->name, info->category, info->level)) {
    tally = aligned_alloc(64, sizeof *tally); /* one line of the cache */
    if (tally) prof_i_tally_init(tally);
  }
  a->by_site[site] = tally;
  return tally;
}

/* Does this record say more than its site about what groups are made of? */
static inline bool has_details(const aggregation *a, const uint64_t *record) {
  const uint32_t flags = prof_i_word_flags(record[2]), by = a->options.group;
  return (flags & (PROF_I_FLAG_NAME | PROF_I_FLAG_CATEGORY)) || prof_i_is_async(record) || ((flags & PROF_I_FLAG_DEVICE) && (by & PROF_GROUP_DEVICE)) ||
         (record[2] >> 32 != 0 && (by & (PROF_GROUP_SHAPE | PROF_GROUP_STACK)));
}

/* Where it was begun: what it says itself, or by the functions around it; in a backward call where the forward one was. Where nothing stays of what it says, it has none. False: no memory. */
static bool stack_of(aggregation *a, uint32_t site, const prof_event *event, prof_i_text *stack_out) {
  const bool is_call_of_function = prof_i_callers_is_function(&a->callers, site), is_backward = a->caller && !is_call_of_function && prof_i_callers_is_backward(&a->callers, a->caller);
  const prof_i_text own = is_backward ? (prof_i_text){"", 0} : prof_i_own_stack(event);
  uint32_t number = 0;
  *stack_out = (prof_i_text){"", 0};
  if (own.bytes) return prof_i_callers_of_stack(&a->callers, own, &number) && prof_i_callers_text(&a->callers, number, false, stack_out);
  return !a->caller || prof_i_callers_text(&a->callers, a->caller, is_call_of_function, stack_out);
}

static inline bool has_window(const prof_aggregate_options *options) { return (options->from_ns | options->to_ns) != 0; }
static bool is_inside(const prof_aggregate_options *options, const prof_i_span *span) {
  return span->start_ns >= options->from_ns && (options->to_ns == 0 || span->start_ns < options->to_ns);
}

/* What its scope took beside its time. */
typedef struct beside {
  prof_i_held_bytes memory;
  prof_i_device_time on_device;
} beside;

/* The group of a scope of that thread of the capture; *group_out NULL: it is not wanted. False: no memory. */
static bool find_detailed(aggregation *a, uint32_t thread, const prof_i_span *span, group **group_out) {
  prof_event *const event = &a->event;
  prof_i_trace_expand(a->trace, thread, span, event);
  const prof_i_text name = {event->name, event->name_bytes}, category = {event->category, event->category_bytes};
  *group_out = NULL;
  if (!is_wanted(&a->options, name, category, event->level)) return true;
  const size_t shape_words = a->options.group & PROF_GROUP_SHAPE ? prof_i_shape_words(event, a->shape, SHAPE_WORDS) : 0;
  const prof_i_text shape = {(const char *)a->shape, shape_words * sizeof *a->shape};
  prof_i_text stack = {"", 0};
  if ((a->options.group & PROF_GROUP_STACK) && !stack_of(a, span->site, event, &stack)) return false;
  const group_key key = make_key(a, name, category, shape, stack, event->device);
  *group_out = find_group(a, &key, event->level);
  return *group_out != NULL;
}

static int add_to_group(group *g, const prof_i_span *span, const beside *also) {
  if (!prof_i_tally_add(&g->tally, span->duration_ns, span->self_ns)) return PROF_E_NO_MEMORY;
  prof_i_held_add(&g->memory, &also->memory);
  prof_i_device_time_add(&g->on_device, &also->on_device);
  g->async_count += span->record && prof_i_is_async(span->record);
  if (span->start_ns < g->first_ns) g->first_ns = span->start_ns;
  return 0;
}

static int add_detailed(aggregation *a, const prof_i_span *span, const beside *also) {
  group *g;
  if (!find_detailed(a, a->thread, span, &g)) return PROF_E_NO_MEMORY;
  return g ? add_to_group(g, span, also) : 0;
}

/* ---- by the functions around them ---- */

static way *way_of(way *ways, uint32_t room, uint32_t caller, uint32_t site) {
  uint32_t at = (uint32_t)(((uint64_t)caller << 32 | site) * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (room - 1);
  while (ways[at].group && (ways[at].caller != caller || ways[at].site != site)) at = (at + 1) & (room - 1);
  return &ways[at];
}

static bool grow_ways(aggregation *a) {
  const uint32_t room = a->way_room ? a->way_room * 2 : WAYS_FIRST;
  way *const larger = calloc(room, sizeof *larger);
  if (!larger) return false;
  for (uint32_t i = 0; i < a->way_room; i++)
    if (a->ways[i].group) *way_of(larger, room, a->ways[i].caller, a->ways[i].site) = a->ways[i];
  free(a->ways);
  a->ways = larger;
  a->way_room = room;
  return true;
}

static void forget_ways(aggregation *a) {
  free(a->ways);
  a->ways = NULL;
  a->way_count = a->way_room = 0;
}

/* A scope that has nothing beyond its site: which group it belongs to is known from its second one on. */
static int add_by_way(aggregation *a, const prof_i_span *span, const beside *also) {
  if (a->way_count * 2 >= a->way_room && !grow_ways(a)) return PROF_E_NO_MEMORY;
  way *const w = way_of(a->ways, a->way_room, a->caller, span->site);
  group *g = w->group;
  if (!g) {
    if (!find_detailed(a, a->thread, span, &g)) return PROF_E_NO_MEMORY;
    if (!g) g = &a->unwanted_group;
    *w = (way){a->caller, span->site, g};
    a->way_count++;
  }
  return g == &a->unwanted_group ? 0 : add_to_group(g, span, also);
}

/* What no scope of its thread stood around: its own name has a row for it. */
static int add_left(aggregation *a) {
  for (const prof_i_launch *left; (left = prof_i_device_sums_left(&a->on_device)) != NULL;) {
    const prof_i_span span = {.record = left->record, .start_ns = left->start_ns, .duration_ns = left->duration_ns, .self_ns = left->self_ns, .site = left->site, .kind = PROF_EVENT_SCOPE};
    group *g;
    if (has_window(&a->options) && !is_inside(&a->options, &span)) continue;
    if (left->thread == UINT32_MAX) a->thread = left->stream;
    a->caller = 0;
    if (!find_detailed(a, left->stream, &span, &g)) return PROF_E_NO_MEMORY;
    if (!g) continue;
    prof_i_device_time_add(&g->on_device, &(prof_i_device_time){left->self_ns, left->self_ns, 1});
    if (span.start_ns < g->first_ns) g->first_ns = span.start_ns;
  }
  return 0;
}

static inline bool add_to_site(aggregation *a, uint32_t site, uint64_t duration_ns, uint64_t self_ns) {
  prof_i_tally *tally = a->by_site[site];
  if (__builtin_expect(!tally, 0) && !(tally = meet_site(a, site))) return false;
  return prof_i_tally_add(tally, duration_ns, self_ns);
}

/* False: no memory. */
static bool find_caller(aggregation *a, const prof_i_span *span) {
  if (!prof_i_callers_around(&a->callers, a->walker, span, &a->caller)) return false;
  return prof_i_callers_is_function(&a->callers, span->site) || prof_i_callers_of_scope(&a->callers, span, a->caller, &a->caller);
}

/* What is no scope. */
static int visit_other(aggregation *a, const prof_i_span *span) {
  if (a->has_launched && span->kind == PROF_EVENT_STEP) prof_i_device_sums_pass(&a->on_device, span);
  if (!a->memory_by_site) return 0;
  if (span->kind == PROF_EVENT_STEP) prof_i_memory_sums_pass(&a->memory, span);
  return span->kind != PROF_EVENT_MEMORY || prof_i_memory_sums_add(&a->memory, a->trace, span) ? 0 : PROF_E_NO_MEMORY;
}

static int visit(void *user, const prof_i_span *spans, size_t count) {
  aggregation *const a = user;
  int status = 0;
  for (const prof_i_span *span = spans; span != spans + count; span++) {
    if (span->kind > PROF_EVENT_OPEN) {
      status = visit_other(a, span);
      if (status) return status;
      continue;
    }
    beside also = {{0}, {0}};
    if (__builtin_expect(a->memory_by_site != NULL, 0)) also.memory = prof_i_memory_sums_take(&a->memory, span);
    if (__builtin_expect(a->has_launched, 0) && !prof_i_device_sums_take(&a->on_device, span, &also.on_device)) return PROF_E_NO_MEMORY;
    if (__builtin_expect(has_window(&a->options), 0) && !is_inside(&a->options, span)) continue;
    const bool is_detailed = __builtin_expect(span->record != NULL, 0) && has_details(a, span->record);
    if (__builtin_expect(a->walker != NULL, 0) && !find_caller(a, span)) return PROF_E_NO_MEMORY;
    if (is_detailed || __builtin_expect(a->walker != NULL, 0)) {
      status = is_detailed ? add_detailed(a, span, &also) : add_by_way(a, span, &also);
      if (status) return status;
      continue;
    }
    if (__builtin_expect(a->memory_by_site != NULL, 0)) prof_i_held_add(&a->memory_by_site[span->site], &also.memory);
    if (__builtin_expect(a->has_launched, 0)) prof_i_device_time_add(&a->device_by_site[span->site], &also.on_device);
    if (a->first_by_site && span->start_ns < a->first_by_site[span->site]) a->first_by_site[span->site] = span->start_ns;
    if (__builtin_expect(!add_to_site(a, span->site, span->duration_ns, span->self_ns), 0)) return PROF_E_NO_MEMORY;
  }
  return 0;
}

/* ---- segments of plain scopes, without a span in between ---- */

static inline void add_leaf(prof_i_walker *w, const prof_i_leaf *leaf, prof_i_waiting *around) {
  (void)around;
  if (!add_to_site(w->user, leaf->site, leaf->duration_ns, leaf->duration_ns)) w->status = PROF_E_NO_MEMORY;
}

static inline void add_waiting(prof_i_walker *w, prof_i_waiting *waiting) {
  const prof_i_span *const span = &waiting->span;
  if (__builtin_expect(span->record != NULL, 0)) {
    prof_i_walker_hand_out(w, waiting);
    return;
  }
  const uint64_t self_ns = span->duration_ns - waiting->children_ns;
  if (!add_to_site(w->user, span->site, span->duration_ns, self_ns)) w->status = PROF_E_NO_MEMORY;
}

static void add_plain(prof_i_walker *w, const prof_i_segment *segment) { prof_i_walk_plain(w, segment, add_leaf, add_waiting); }

static int add_thread(aggregation *a) {
  prof_i_walker *const walker = prof_i_walker_create(a->trace, a->thread, visit, a);
  if (!walker) return PROF_E_NO_MEMORY;
  a->has_launched = prof_i_device_sums_go(&a->on_device, a->thread);
  a->walker = prof_i_callers_any(&a->callers) ? walker : NULL;
  if (a->callers.backward) a->callers.backward->thread = a->thread;
  a->caller = 0;
  if (a->walker) prof_i_walker_look_around(walker, &a->callers);
  else if (!a->memory_by_site && !a->first_by_site && !a->has_launched && !has_window(&a->options)) walker->walk_plain = add_plain; /* else each scope asks what waits for it, or is looked at */
  prof_i_memory_sums_clear(&a->memory);
  const int status = prof_i_walker_run(walker);
  prof_i_walker_destroy(walker);
  a->walker = NULL;
  a->caller = 0;
  if (a->options.group & PROF_GROUP_THREAD) forget_ways(a);
  return status ? status : add_left(a);
}

/* Joins the sites' sums to the groups, and empties them. */
static int join_sites(aggregation *a) {
  static const prof_i_text none = {"", 0};
  for (uint32_t site = 0; site < a->site_count; site++) {
    prof_i_tally *const tally = a->by_site[site];
    if (!tally || tally == &a->unwanted || tally->calls == 0) continue;
    const prof_i_site_info *const info = prof_i_trace_site(a->trace, site);
    const group_key key = make_key(a, info->name, info->category, none, none, (prof_device){PROF_DEVICE_CPU, 0});
    group *const g = find_group(a, &key, info->level);
    if (!g || !prof_i_tally_merge(&g->tally, tally)) return PROF_E_NO_MEMORY;
    prof_i_tally_fini(tally);
    if (a->first_by_site) {
      if (a->first_by_site[site] < g->first_ns) g->first_ns = a->first_by_site[site];
      a->first_by_site[site] = UINT64_MAX;
    }
    if (a->device_by_site) {
      prof_i_device_time_add(&g->on_device, &a->device_by_site[site]);
      a->device_by_site[site] = (prof_i_device_time){0};
    }
    if (!a->memory_by_site) continue;
    prof_i_held_add(&g->memory, &a->memory_by_site[site]);
    a->memory_by_site[site] = (prof_i_held_bytes){0};
  }
  return 0;
}

static void forget_sites(aggregation *a) {
  for (uint32_t i = 0; a->by_site && i < a->site_count; i++) {
    if (!a->by_site[i] || a->by_site[i] == &a->unwanted) continue;
    prof_i_tally_fini(a->by_site[i]);
    free(a->by_site[i]);
  }
  free(a->by_site);
  free(a->memory_by_site);
  free(a->first_by_site);
  free(a->device_by_site);
  prof_i_device_sums_fini(&a->on_device);
  prof_i_callers_fini(&a->callers);
  forget_ways(a);
  a->device_by_site = NULL;
  a->by_site = NULL;
  a->memory_by_site = NULL;
  a->first_by_site = NULL;
}

static bool find_callers(aggregation *a) { return prof_i_callers_init(&a->callers, a->trace, a->options.stack_frames) && prof_i_forward_stacks_find(&a->callers, a->options.from_ns, a->options.to_ns); }

static int add_trace(aggregation *a) {
  a->site_count = prof_i_trace_site_count(a->trace);
  a->by_site = calloc(a->site_count, sizeof *a->by_site);
  const bool has_pools = a->trace->catalog.pool_count != 0;
  if (has_pools) a->memory_by_site = calloc(a->site_count, sizeof *a->memory_by_site);
  const bool has_first = a->options.sort == PROF_SORT_FIRST;
  if (has_first) a->first_by_site = malloc(a->site_count * sizeof *a->first_by_site);
  int status = a->by_site && (a->memory_by_site || !has_pools) && (a->first_by_site || !has_first) ? 0 : PROF_E_NO_MEMORY;
  if (a->first_by_site) memset(a->first_by_site, 0xff, a->site_count * sizeof *a->first_by_site);
  if (!status) status = prof_i_device_sums_init(&a->on_device, a->trace, a->options.group & PROF_GROUP_KERNEL);
  if (!status && a->on_device.launches.count && !(a->device_by_site = calloc(a->site_count, sizeof *a->device_by_site))) status = PROF_E_NO_MEMORY;
  if (!status && (a->options.group & PROF_GROUP_STACK) && !find_callers(a)) status = PROF_E_NO_MEMORY;
  for (a->thread = 0; !status && a->thread < a->trace->thread_count; a->thread++) {
    if (prof_i_is_stream(&a->trace->threads[a->thread])) continue; /* what is there is met where it was launched */
    status = add_thread(a);
    if (!status && (a->options.group & PROF_GROUP_THREAD)) status = join_sites(a);
  }
  if (!status) {
    prof_i_device_sums_go(&a->on_device, UINT32_MAX);
    status = add_left(a);
  }
  if (!status) status = join_sites(a);
  forget_sites(a);
  return status;
}

static int add_all(aggregation *a) {
  int status = 0;
  for (size_t i = 0; !status && i < a->trace_count; i++) {
    a->trace = a->traces[i];
    status = add_trace(a);
    a->threads_before += a->trace->thread_count;
  }
  return status;
}

static void fini(aggregation *a) {
  prof_i_memory_sums_fini(&a->memory);
  prof_i_tally_fini(&a->unwanted);
  group *g, *next;
  HASH_ITER(hh, a->groups, g, next) {
    HASH_DEL(a->groups, g); /* NOLINT(clang-analyzer-unix.Malloc): uthash frees its table with the last one, and sets groups to NULL */
    free_group(g);
  }
}

/* ---- the result ---- */

static int order_names(const group *a, const group *b) {
  const uint64_t both = a->key.name.bytes < b->key.name.bytes ? a->key.name.bytes : b->key.name.bytes;
  const int order = memcmp(a->key.name.data, b->key.name.data, (size_t)both);
  return order ? order : (a->key.name.bytes > b->key.name.bytes) - (a->key.name.bytes < b->key.name.bytes);
}

/* In the same order, what is negative too. */
static uint64_t above_least(int64_t bytes) { return (uint64_t)bytes ^ UINT64_C(1) << 63; }

static uint64_t weight_of(const group *g, uint32_t sort) {
  switch ((prof_sort)sort) {
    case PROF_SORT_TOTAL: return g->tally.total_ns;
    case PROF_SORT_SELF: return g->tally.self_ns;
    case PROF_SORT_CALLS: return g->tally.calls;
    case PROF_SORT_MEAN: return g->tally.calls ? g->tally.total_ns / g->tally.calls : 0;
    case PROF_SORT_MAX: return g->tally.max_ns;
    case PROF_SORT_NAME: return 0;
    case PROF_SORT_MEMORY: return above_least(prof_i_held_plus(g->memory.host, g->memory.device));
    case PROF_SORT_FIRST: return ~g->first_ns;
    case PROF_SORT_DEVICE: return g->on_device.total_ns;
    case PROF_SORT_SELF_DEVICE: return g->on_device.self_ns;
    case PROF_SORT_SELF_MEMORY: return above_least(prof_i_held_plus(g->memory.self_host, g->memory.self_device));
  }
  return 0;
}

typedef struct ranked {
  uint64_t weight;
  group *of;
} ranked;

/* By falling weight; what has none by what devices did, and what is equal by falling total, then by name, then by what else tells them apart, so that runs compare. */
static int by_weight(const void *x, const void *y) {
  const ranked *const a = x, *const b = y;
  if (a->weight != b->weight) return a->weight > b->weight ? -1 : 1;
  const int names = order_names(a->of, b->of);
  if (a->weight == 0 && a->of->on_device.self_ns != b->of->on_device.self_ns) return a->of->on_device.self_ns > b->of->on_device.self_ns ? -1 : 1;
  if (a->weight == 0 && names) return names;
  if (a->of->tally.total_ns != b->of->tally.total_ns) return a->of->tally.total_ns > b->of->tally.total_ns ? -1 : 1;
  if (names) return names;
  return (a->of->key.thread > b->of->key.thread) - (a->of->key.thread < b->of->key.thread);
}

static size_t repaired_bytes(prof_i_text text) { return prof_i_show_repair(NULL, 0, text.data, (size_t)text.bytes) + 1; }

static const char *put_repaired(char **to, prof_i_text text) {
  char *const from = *to;
  const size_t bytes = prof_i_show_repair(from, SIZE_MAX, text.data, (size_t)text.bytes);
  from[bytes] = '\0';
  *to = from + bytes + 1;
  return from;
}

static size_t shape_text(prof_i_text shape, char *to, size_t room) { return prof_i_shape_text((const uint64_t *)(const void *)shape.data, (size_t)shape.bytes / sizeof(uint64_t), to, room); }

static const char *put_shape(char **to, prof_i_text shape) {
  char *const from = *to;
  const size_t bytes = shape_text(shape, from, SIZE_MAX);
  from[bytes] = '\0';
  *to = from + bytes + 1;
  return from;
}

static prof_row make_row(group *g, char **texts) {
  return (prof_row){.name = put_repaired(texts, g->key.name),
                    .category = put_repaired(texts, g->key.category),
                    .shape = put_shape(texts, g->key.shape),
                    .stack = put_repaired(texts, g->key.stack),
                    .device = g->key.device,
                    .thread = g->key.thread,
                    .level = g->level,
                    .calls_count = g->tally.calls,
                    .total_ns = g->tally.total_ns,
                    .self_ns = g->tally.self_ns,
                    .min_ns = g->tally.calls ? g->tally.min_ns : 0,
                    .max_ns = g->tally.max_ns,
                    .median_ns = prof_i_tally_quantile(&g->tally, 0.5),
                    .p99_ns = prof_i_tally_quantile(&g->tally, 0.99),
                    .memory_bytes = g->memory.host,
                    .self_memory_bytes = g->memory.self_host,
                    .device_memory_bytes = g->memory.device,
                    .self_device_memory_bytes = g->memory.self_device,
                    .device_total_ns = g->on_device.total_ns,
                    .self_device_ns = g->on_device.self_ns,
                    .device_count = g->on_device.count,
                    .is_async = g->async_count && g->async_count == g->tally.calls};
}

static void look_at_catalog(const prof_i_catalog *catalog, prof_rows *rows) {
  rows->has_device |= catalog->device_count != 0;
  for (uint32_t i = 0; i < catalog->pool_count; i++) {
    if (catalog->pools[i].kind != PROF_MEMORY_POOL) continue;
    *(catalog->pools[i].device.type == PROF_DEVICE_CPU ? &rows->has_memory : &rows->has_device_memory) = 1;
  }
}

/* One block of memory: the head, the rows, their texts. */
static prof_rows *make_rows(const aggregation *a, const ranked *order, uint64_t all) {
  const uint64_t limit = a->options.rows_limit ? a->options.rows_limit : ROWS_DEFAULT;
  const uint64_t count = limit == UINT32_MAX || all < limit ? all : limit;
  size_t bytes = sizeof(prof_rows) + (size_t)count * sizeof(prof_row);
  for (uint64_t i = 0; i < count; i++)
    bytes += repaired_bytes(order[i].of->key.name) + repaired_bytes(order[i].of->key.category) +
             shape_text(order[i].of->key.shape, NULL, 0) + 1 + repaired_bytes(order[i].of->key.stack);
  prof_rows *const rows = malloc(bytes);
  if (!rows) return NULL;
  prof_row *const row = (prof_row *)(rows + 1);
  char *texts = (char *)(row + count);
  *rows = (prof_rows){.rows = row, .row_count = count, .all_row_count = all};
  for (uint64_t i = 0; i < count; i++) row[i] = make_row(order[i].of, &texts);
  for (size_t i = 0; i < a->trace_count; i++) look_at_catalog(&a->traces[i]->catalog, rows);
  for (uint64_t i = 0; i < all; i++) {
    rows->total_self_ns += order[i].of->tally.self_ns;
    rows->calls_count += order[i].of->tally.calls;
    rows->total_self_device_ns += order[i].of->on_device.self_ns;
  }
  return rows;
}

static int collect(const aggregation *a, prof_rows **rows_out) {
  uint64_t count = 0;
  ranked *const order = malloc((HASH_COUNT(a->groups) + 1) * sizeof *order);
  if (!order) return PROF_E_NO_MEMORY;
  for (group *g = a->groups; g; g = g->hh.next) order[count++] = (ranked){weight_of(g, a->options.sort), g};
  qsort(order, (size_t)count, sizeof *order, by_weight);
  prof_rows *const rows = make_rows(a, order, count);
  free(order);
  if (!rows) return PROF_E_NO_MEMORY;
  *rows_out = rows;
  return 0;
}

/* ---- options ---- */

/* A smaller struct is an older caller's; a larger one is accepted while what is beyond is zero. */
static int read_options(const prof_aggregate_options *given, prof_aggregate_options *options) {
  *options = (prof_aggregate_options){.size = sizeof *options};
  if (given) {
    if (given->size < sizeof given->size || given->size > 4096)
      return prof_i_fail(PROF_E_INVALID, "options.size is %zu; set it to sizeof(prof_aggregate_options)", given->size);
    memcpy(options, given, given->size < sizeof *options ? given->size : sizeof *options);
    for (size_t i = sizeof *options; i < given->size; i++)
      if (((const char *)given)[i])
        return prof_i_fail(PROF_E_INVALID, "options.size is %zu, and byte %zu, which this library does not know, is set",
                           given->size, i);
  }
  const uint32_t groups = PROF_GROUP_NAME | PROF_GROUP_CATEGORY | PROF_GROUP_DEVICE | PROF_GROUP_THREAD | PROF_GROUP_SHAPE | PROF_GROUP_STACK | PROF_GROUP_KERNEL;
  if (options->group & ~groups)
    return prof_i_fail(PROF_E_INVALID, "options.group is 0x%x; the known bits are 0x%x", options->group, groups);
  if (options->sort > PROF_SORT_SELF_DEVICE)
    return prof_i_fail(PROF_E_INVALID, "options.sort is %u; the largest is %d", options->sort, PROF_SORT_SELF_DEVICE);
  const uint32_t left_out = PROF_LEAVE_OUT_FUNCTIONS | PROF_LEAVE_OUT_MODULES;
  if ((options->leave_out & ~left_out) || options->reserved)
    return prof_i_fail(PROF_E_INVALID, "options.leave_out is 0x%x and reserved is %u; the known bits are 0x%x, and reserved is 0", options->leave_out, options->reserved, left_out);
  if (options->time_unit % 3 || options->time_unit > 9)
    return prof_i_fail(PROF_E_INVALID, "options.time_unit is %u, not 0, 3, 6 or 9", options->time_unit);
  if (options->to_ns && options->to_ns <= options->from_ns)
    return prof_i_fail(PROF_E_INVALID, "options.to_ns is %llu, not after from_ns, which is %llu", (unsigned long long)options->to_ns, (unsigned long long)options->from_ns);
  if ((options->group & ~(uint32_t)PROF_GROUP_KERNEL) == 0) options->group |= PROF_GROUP_NAME | PROF_GROUP_CATEGORY;
  return PROF_OK;
}

static int check(const char *function, const prof_trace *const *traces, size_t count, const void *out) {
  if (!traces || !out) return prof_i_fail(PROF_E_INVALID, "%s: %s is NULL", function, traces ? "rows_out" : "traces");
  if (count == 0) return prof_i_fail(PROF_E_INVALID, "%s: count is 0", function);
  for (size_t i = 0; i < count; i++)
    if (!traces[i]) return prof_i_fail(PROF_E_INVALID, "%s: traces[%zu] is NULL", function, i);
  return PROF_OK;
}

int prof_traces_aggregate(const prof_trace *const *traces, size_t count, const prof_aggregate_options *options, prof_rows **rows_out) {
  PROF_I_HOLD_FP;
  int status = check("prof_traces_aggregate", traces, count, rows_out);
  if (status) return status;
  aggregation *const a = calloc(1, sizeof *a);
  if (!a) return prof_i_fail(PROF_E_NO_MEMORY, "no memory to aggregate");
  a->traces = traces;
  a->trace_count = count;
  prof_i_tally_init(&a->unwanted);
  status = read_options(options, &a->options);
  if (!status) {
    status = add_all(a);
    if (!status) status = collect(a, rows_out);
    if (status) prof_i_fail(status, "no memory to aggregate %llu events", (unsigned long long)a->trace->event_count);
  }
  fini(a);
  free(a);
  return status;
}

int prof_trace_aggregate(const prof_trace *trace, const prof_aggregate_options *options, prof_rows **rows_out) {
  if (!trace || !rows_out) return prof_i_fail(PROF_E_INVALID, "prof_trace_aggregate: %s is NULL", trace ? "rows_out" : "trace");
  return prof_traces_aggregate(&trace, 1, options, rows_out);
}

void prof_rows_destroy(prof_rows *rows) { free(rows); }
