/* See path_tree.h. */
#include "path_tree.h"

#include <stdio.h>
#include <stdlib.h>

#include "../base/log.h"
#include "../reader/capture.h"

enum { FIRST_BUCKETS = 1024, NO_FRAME = UINT32_MAX };

static uint32_t name_hash(prof_i_text name) {
  uint32_t hash = 2166136261u;
  for (uint64_t i = 0; i < name.bytes; i++) hash = (hash ^ (unsigned char)name.data[i]) * 16777619u;
  return hash ^ hash >> 15;
}

static uint32_t path_hash(uint32_t parent, uint32_t frame) {
  const uint32_t hash = (parent * 2654435761u ^ frame) * 2246822519u;
  return hash ^ hash >> 15;
}

static int no_memory(const prof_i_path_tree *tree) {
  return prof_i_fail(PROF_E_NO_MEMORY, "no memory for %u call paths", tree->path_count + 1);
}

/* ---- frames ---- */

static bool grow_frame_buckets(prof_i_path_tree *tree) {
  const uint32_t bucket_count =
      tree->frame_bucket_count ? 2 * tree->frame_bucket_count : FIRST_BUCKETS;
  uint32_t *const buckets = calloc(bucket_count, sizeof *buckets);
  if (!buckets) return false;
  for (uint32_t i = 1; i < tree->frame_count; i++) {
    uint32_t *const bucket = &buckets[name_hash(tree->frames[i].name) % bucket_count];
    tree->frames[i].next = *bucket;
    *bucket = i;
  }
  free(tree->frame_buckets);
  tree->frame_buckets = buckets;
  tree->frame_bucket_count = bucket_count;
  return true;
}

/* NO_FRAME: no memory. */
static uint32_t find_frame(prof_i_path_tree *tree, prof_i_text name, uint32_t site) {
  const uint32_t hash = name_hash(name);
  for (uint32_t i = tree->frame_buckets[hash % tree->frame_bucket_count]; i;
       i = tree->frames[i].next)
    if (tree->frames[i].name.bytes == name.bytes &&
        memcmp(tree->frames[i].name.data, name.data, (size_t)name.bytes) == 0)
      return i;
  if (!prof_i_make_room((void **)&tree->frames, &tree->frame_room, tree->frame_count,
                        sizeof *tree->frames) ||
      (tree->frame_count >= tree->frame_bucket_count && !grow_frame_buckets(tree)))
    return NO_FRAME;
  uint32_t *const bucket = &tree->frame_buckets[hash % tree->frame_bucket_count];
  tree->frames[tree->frame_count] = (prof_i_frame){.name = name, .site = site, .next = *bucket};
  return *bucket = tree->frame_count++;
}

/* ---- paths ---- */

static bool grow_path_buckets(prof_i_path_tree *tree) {
  const uint32_t bucket_count =
      tree->path_bucket_count ? 2 * tree->path_bucket_count : FIRST_BUCKETS;
  uint32_t *const buckets = calloc(bucket_count, sizeof *buckets);
  if (!buckets) return false;
  for (uint32_t i = 1; i < tree->path_count; i++) {
    if (tree->paths[i].thread) continue;
    uint32_t *const bucket =
        &buckets[path_hash(tree->paths[i].parent, tree->paths[i].frame) % bucket_count];
    tree->paths[i].next = *bucket;
    *bucket = i;
  }
  free(tree->path_buckets);
  tree->path_buckets = buckets;
  tree->path_bucket_count = bucket_count;
  return true;
}

/* PROF_I_NO_PATH: no memory. */
static uint32_t add_path(prof_i_path_tree *tree, prof_i_path path) {
  if (!prof_i_make_room((void **)&tree->paths, &tree->path_room, tree->path_count,
                        sizeof *tree->paths) ||
      (tree->path_count >= tree->path_bucket_count && !grow_path_buckets(tree)))
    return PROF_I_NO_PATH;
  tree->paths[tree->path_count] = path;
  return tree->path_count++;
}

static uint32_t find_path(prof_i_path_tree *tree, uint32_t parent, uint32_t frame) {
  const uint32_t hash = path_hash(parent, frame);
  for (uint32_t i = tree->path_buckets[hash % tree->path_bucket_count]; i; i = tree->paths[i].next)
    if (tree->paths[i].parent == parent && tree->paths[i].frame == frame) return i;
  const uint32_t path = add_path(tree, (prof_i_path){.frame = frame, .parent = parent});
  if (path == PROF_I_NO_PATH) return PROF_I_NO_PATH;
  uint32_t *const bucket = &tree->path_buckets[hash % tree->path_bucket_count];
  tree->paths[path].next = *bucket;
  return *bucket = path;
}

/* The path of a scope that begins. All deeper than PROF_I_PATH_DEPTH_MAX share one path.
   PROF_I_NO_PATH: no memory. */
static uint32_t path_of(prof_i_path_tree *tree, const prof_i_export_event *event) {
  static const prof_i_text deeper = {"[deeper]", sizeof "[deeper]" - 1};
  const uint32_t depth = event->lane == 0 ? tree->open_count : 0,
                 parent = depth > 0 ? tree->open[depth - 1] : tree->thread_path;
  if (depth > PROF_I_PATH_DEPTH_MAX) return parent;
  const bool is_deeper = depth == PROF_I_PATH_DEPTH_MAX;
  const uint32_t frame =
      find_frame(tree, is_deeper ? deeper : event->name, is_deeper ? 0 : event->event->site);
  return frame == NO_FRAME ? PROF_I_NO_PATH : find_path(tree, parent, frame);
}

/* ---- callbacks ---- */

int prof_i_path_tree_begin(prof_i_export *run) {
  prof_i_path_tree *const tree = run->state;
  if (!grow_path_buckets(tree) || !grow_frame_buckets(tree) ||
      !prof_i_make_room((void **)&tree->paths, &tree->path_room, 0, sizeof *tree->paths) ||
      !prof_i_make_room((void **)&tree->frames, &tree->frame_room, 0, sizeof *tree->frames))
    return no_memory(tree);
  tree->paths[tree->path_count++] = (prof_i_path){.parent = PROF_I_NO_PATH};
  tree->frames[tree->frame_count++] = (prof_i_frame){.name = {"", 0}};
  return PROF_OK;
}

int prof_i_path_tree_thread(prof_i_export *run, const prof_trace_thread *thread) {
  (void)thread;
  prof_i_path_tree *const tree = run->state;
  tree->open_count = 0;
  tree->thread_path = add_path(tree, (prof_i_path){.thread = run->thread + 1});
  return tree->thread_path != PROF_I_NO_PATH ? PROF_OK : no_memory(tree);
}

int prof_i_path_tree_event(prof_i_export *run, prof_i_export_event *event) {
  prof_i_path_tree *const tree = run->state;
  const bool is_nested = event->lane == 0;
  if (event->phase == PROF_I_PHASE_END) {
    if (is_nested && tree->open_count > 0) tree->open_count--;
    return PROF_OK;
  }
  const uint32_t path = path_of(tree, event);
  if (path == PROF_I_NO_PATH || !prof_i_make_room((void **)&tree->open, &tree->open_room,
                                                  tree->open_count, sizeof *tree->open))
    return no_memory(tree);
  if (!event->is_left_out) {
    tree->paths[path].self_ns += event->event->self_ns;
    tree->paths[path].call_count++;
  }
  if (is_nested) tree->open[tree->open_count++] = path;
  return PROF_OK;
}

void prof_i_path_tree_destroy(prof_i_export *run) {
  const prof_i_path_tree *const tree = run->state;
  free(tree->paths);
  free(tree->frames);
  free(tree->path_buckets);
  free(tree->frame_buckets);
  free(tree->open);
}

/* ---- threads ---- */

size_t prof_i_path_thread_text(const prof_i_export *run, uint32_t number, char *to, size_t room) {
  prof_trace_thread thread = {.size = sizeof thread};
  const prof_i_tids *const ids = &run->tids[number];
  char process[32] = "";
  if (prof_trace_thread_get(run->trace, number, &thread) != PROF_OK) return 0;
  if (ids->is_elsewhere || thread.is_stream)
    snprintf(process, sizeof process, "%s %llu, ", thread.is_stream ? "device" : "process",
             (unsigned long long)ids->pid);
  const int bytes =
      snprintf(to, room, "%s%s%s%llu", process, thread.name, thread.is_stream ? " stream " : " ",
               (unsigned long long)(thread.is_stream ? ids->first : thread.tid));
  return (size_t)bytes < room ? (size_t)bytes : room - 1;
}
