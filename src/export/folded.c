/* Folded stacks, as flamegraph.pl reads them: "thread;outer;inner 1234", a line for each call path
   with its own time in ns. Paths are a tree, which is written at the end. A scope that overlaps
   another of its thread without nesting stands right below the thread. */
#include <stdio.h>
#include <stdlib.h>

#include "../base/log.h"
#include "../base/text.h"
#include "../reader/internal.h"
#include "exporter.h"

enum {
  NO_NODE = 0,
  FIRST_BUCKETS = 1024,
  DEEPEST = 1000 /* frames below the thread; the file grows by the square of the depth */
};

/* A call path: a name below another path. Node 0 is above all threads. */
typedef struct path_node {
  prof_i_text name; /* the trace's bytes; of a thread none */
  uint64_t self_ns;
  uint32_t parent, next; /* next: in the bucket */
  uint32_t thread;       /* of a thread's node: its index + 1 */
} path_node;

typedef struct folded_writer {
  path_node *nodes;
  uint32_t count, room;
  uint32_t *buckets, bucket_count;
  uint32_t *open; /* of lane 0, the outermost first */
  uint32_t open_count, open_room;
  uint32_t thread_node;
} folded_writer;

static uint32_t path_hash(uint32_t parent, prof_i_text name) {
  uint32_t hash = 2166136261u ^ parent * 2654435761u;
  for (uint64_t i = 0; i < name.bytes; i++) hash = (hash ^ (unsigned char)name.data[i]) * 16777619u;
  return hash ^ hash >> 15;
}

static bool grow_buckets(folded_writer *w) {
  const uint32_t bucket_count = w->bucket_count ? 2 * w->bucket_count : FIRST_BUCKETS;
  uint32_t *const buckets = calloc(bucket_count, sizeof *buckets);
  if (!buckets) return false;
  for (uint32_t i = 1; i < w->count; i++) {
    if (w->nodes[i].thread) continue;
    uint32_t *const bucket =
        &buckets[path_hash(w->nodes[i].parent, w->nodes[i].name) % bucket_count];
    w->nodes[i].next = *bucket;
    *bucket = i;
  }
  free(w->buckets);
  w->buckets = buckets;
  w->bucket_count = bucket_count;
  return true;
}

/* NO_NODE: no memory. */
static uint32_t add_node(folded_writer *w, uint32_t parent, prof_i_text name, uint32_t thread) {
  if (!prof_i_make_room((void **)&w->nodes, &w->room, w->count, sizeof *w->nodes) ||
      (w->count >= w->bucket_count && !grow_buckets(w)))
    return NO_NODE;
  w->nodes[w->count] = (path_node){.name = name, .parent = parent, .thread = thread};
  return w->count++;
}

static uint32_t find_node(folded_writer *w, uint32_t parent, prof_i_text name) {
  const uint32_t hash = path_hash(parent, name);
  for (uint32_t i = w->buckets[hash % w->bucket_count]; i; i = w->nodes[i].next)
    if (w->nodes[i].parent == parent && w->nodes[i].name.bytes == name.bytes &&
        memcmp(w->nodes[i].name.data, name.data, (size_t)name.bytes) == 0)
      return i;
  const uint32_t node = add_node(w, parent, name, 0);
  if (node == NO_NODE) return NO_NODE;
  uint32_t *const bucket = &w->buckets[hash % w->bucket_count];
  w->nodes[node].next = *bucket;
  *bucket = node;
  return node;
}

/* The path of a scope with `depth` scopes around it. All deeper than DEEPEST share one path. */
static uint32_t find_below(folded_writer *w, uint32_t parent, prof_i_text name, uint32_t depth) {
  static const prof_i_text deeper = {"[deeper]", sizeof "[deeper]" - 1};
  if (depth > DEEPEST) return parent;
  return find_node(w, parent, depth == DEEPEST ? deeper : name);
}

static int no_memory(const folded_writer *w) {
  return prof_i_fail(PROF_E_NO_MEMORY, "no memory for %u call paths", w->count + 1);
}

/* ---- the file ---- */

/* A frame: valid UTF-8 without what separates frames and lines. */
static void put_frame(prof_i_sink *sink, prof_i_text name) {
  const unsigned char *at = (const unsigned char *)name.data;
  for (uint64_t left = name.bytes; left > 0;) {
    bool is_right = true;
    const size_t count = *at < 0x80 ? 1 : prof_i_utf8_bytes(at, (size_t)left, &is_right);
    if (!is_right || *at == 0)
      prof_i_sink_text(sink, "\xef\xbf\xbd");
    else if (*at == ';')
      prof_i_sink_text(sink, ":");
    else if (*at < ' ')
      prof_i_sink_text(sink, " ");
    else
      prof_i_sink_bytes(sink, at, count);
    at += count;
    left -= count;
  }
}

static void put_thread_frame(prof_i_export *run, uint32_t index) {
  prof_trace_thread thread = {.size = sizeof thread};
  if (prof_trace_thread_get(run->trace, index, &thread) != PROF_OK) return;
  if (run->tids[index].is_elsewhere || thread.is_stream) {
    prof_i_sink_text(run->sink, thread.is_stream ? "device " : "process ");
    prof_i_sink_u64(run->sink, run->tids[index].pid);
    prof_i_sink_text(run->sink, ";");
  }
  put_frame(run->sink, (prof_i_text){thread.name, strlen(thread.name)});
  prof_i_sink_text(run->sink, thread.is_stream ? " stream " : " ");
  prof_i_sink_u64(run->sink, thread.is_stream ? run->tids[index].first : thread.tid);
}

/* The frames of a path from the thread on. `path` has room for them. */
static void put_path(prof_i_export *run, uint32_t node, uint32_t *path) {
  const folded_writer *const w = run->state;
  uint32_t depth = 0;
  for (uint32_t i = node; i != NO_NODE; i = w->nodes[i].parent) path[depth++] = i;
  put_thread_frame(run, w->nodes[path[depth - 1]].thread - 1);
  for (uint32_t i = depth - 1; i > 0; i--) {
    prof_i_sink_text(run->sink, ";");
    put_frame(run->sink, w->nodes[path[i - 1]].name);
  }
  prof_i_sink_text(run->sink, " ");
  prof_i_sink_u64(run->sink, w->nodes[node].self_ns);
  prof_i_sink_text(run->sink, "\n");
}

/* ---- the exporter ---- */

static int folded_begin(prof_i_export *run) {
  folded_writer *const w = run->state;
  if (!grow_buckets(w) ||
      !prof_i_make_room((void **)&w->nodes, &w->room, w->count, sizeof *w->nodes))
    return no_memory(w);
  w->nodes[w->count++] = (path_node){.parent = NO_NODE};
  return PROF_OK;
}

static int folded_thread(prof_i_export *run, const prof_trace_thread *thread) {
  (void)thread;
  folded_writer *const w = run->state;
  w->open_count = 0;
  w->thread_node = add_node(w, NO_NODE, (prof_i_text){"", 0}, run->thread + 1);
  return w->thread_node != NO_NODE ? PROF_OK : no_memory(w);
}

static int folded_scope(prof_i_export *run, prof_i_export_event *event) {
  folded_writer *const w = run->state;
  const bool is_nested = event->lane == 0;
  if (event->phase == PROF_I_PHASE_END) {
    if (is_nested && w->open_count > 0) w->open_count--;
    return PROF_OK;
  }
  const uint32_t parent =
      is_nested && w->open_count > 0 ? w->open[w->open_count - 1] : w->thread_node;
  const uint32_t node = find_below(w, parent, event->name, is_nested ? w->open_count : 0);
  if (node == NO_NODE ||
      !prof_i_make_room((void **)&w->open, &w->open_room, w->open_count, sizeof *w->open))
    return no_memory(w);
  w->nodes[node].self_ns += event->event->self_ns;
  if (is_nested) w->open[w->open_count++] = node;
  return PROF_OK;
}

static int folded_end(prof_i_export *run) {
  folded_writer *const w = run->state;
  uint32_t *const path = calloc((size_t)w->count + 1, sizeof *path);
  if (!path) return no_memory(w);
  for (uint32_t i = 1; i < w->count && run->sink->status == PROF_OK; i++)
    if (w->nodes[i].self_ns > 0) put_path(run, i, path);
  free(path);
  return PROF_OK;
}

static void folded_destroy(prof_i_export *run) {
  const folded_writer *const w = run->state;
  free(w->nodes);
  free(w->buckets);
  free(w->open);
}

const prof_i_exporter prof_i_folded_exporter = {
    .name = "folded",
    .format = PROF_FORMAT_FOLDED,
    .suffixes = {".folded", ".folded.gz"},
    .abilities = PROF_I_EXPORT_CUT,
    .order = PROF_I_ORDER_TIME,
    .event_kinds = PROF_I_KIND(SCOPE) | PROF_I_KIND(OPEN),
    .state_bytes = sizeof(folded_writer),
    .begin = folded_begin,
    .thread = folded_thread,
    .event = folded_scope,
    .end = folded_end,
    .destroy = folded_destroy};
