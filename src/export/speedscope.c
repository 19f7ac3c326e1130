/* speedscope's JSON. A profile for each thread and stream: its call paths with their self times, as
   begins and ends one after the other (path_tree.c). Times on its axis are sums, not moments. So
   the size grows by the paths and not by the scopes. In a merged file, the frames of all captures
   come after the profiles. */
#include <stdlib.h>

#include "../base/error.h"
#include "../reader/capture.h"
#include "internal.h"

/* What the captures of a merged file share. */
typedef struct speedscope_shared {
  prof_i_sink frames; /* in memory */
  uint64_t frame_count, profile_count;
} speedscope_shared;

/* Where the walk over the tree is. */
typedef struct tree_walk {
  uint64_t first_frame;                 /* the number of the capture's first frame in the file */
  uint32_t *first_child, *next_sibling; /* of each path; PROF_I_NO_PATH: none */
  uint64_t at_ns;
  bool has_events; /* of this thread */
} tree_walk;

static bool link_children(const prof_i_path_tree *tree, tree_walk *walk) {
  walk->first_child = calloc((size_t)tree->paths.count + 1, sizeof *walk->first_child);
  walk->next_sibling = calloc((size_t)tree->paths.count + 1, sizeof *walk->next_sibling);
  if (!walk->first_child || !walk->next_sibling) return false;
  for (uint32_t i = tree->paths.count - 1; i > 0; i--) {
    const prof_i_path *const path = &tree->paths.items[i];
    const bool is_shown = path->sums[PROF_I_SIDE_NEW].calls_count || walk->first_child[i];
    if (!is_shown) continue; /* a filter has left it out, and all below it */
    walk->next_sibling[i] = walk->first_child[path->parent];
    walk->first_child[path->parent] = i;
  }
  return true;
}

static void put_frames(const prof_i_export *run, prof_i_sink *sink, bool is_first) {
  const prof_i_path_tree *const tree = run->state;
  for (uint32_t i = 0; i < tree->paths.row_count && sink->status == PROF_OK; i++) {
    const prof_i_path_row *const frame = &tree->paths.rows[i];
    const prof_i_text name = prof_i_path_frame_name(frame);
    const prof_i_site_info *const site = prof_i_trace_site(run->trace, frame->site);
    prof_i_sink_text(sink, i > 0 || !is_first ? ",\n{\"name\":" : "\n{\"name\":");
    prof_i_sink_string(sink, name.data, (size_t)name.bytes);
    if (site && site->file.bytes > 0) {
      prof_i_sink_text(sink, ",\"file\":");
      prof_i_sink_string(sink, site->file.data, (size_t)site->file.bytes);
      prof_i_sink_text(sink, ",\"line\":");
      prof_i_sink_u64(sink, site->line);
    }
    prof_i_sink_text(sink, "}");
  }
}

static void put_event(prof_i_export *run, tree_walk *walk, const char *begin, uint32_t path) {
  const prof_i_path_tree *const tree = run->state;
  prof_i_sink_text(run->sink, walk->has_events ? ",\n" : "\n");
  prof_i_sink_text(run->sink, begin);
  prof_i_sink_u64(run->sink, walk->at_ns);
  prof_i_sink_text(run->sink, ",\"frame\":");
  prof_i_sink_u64(run->sink, walk->first_frame + tree->paths.items[path].row);
  prof_i_sink_text(run->sink, "}");
  walk->has_events = true;
}

static void put_end(prof_i_export *run, tree_walk *walk, uint32_t path) {
  put_event(run, walk, "{\"type\":\"C\",\"at\":", path);
}

/* All paths below the thread's, the outer ones around the inner ones. */
static void put_events(prof_i_export *run, tree_walk *walk, uint32_t thread_path) {
  const prof_i_path_tree *const tree = run->state;
  uint32_t path = walk->first_child[thread_path];
  while (path != PROF_I_NO_PATH && run->sink->status == PROF_OK) {
    put_event(run, walk, "{\"type\":\"O\",\"at\":", path);
    walk->at_ns += prof_i_path_tree_sums(tree, path)->self_ns;
    if (walk->first_child[path] != PROF_I_NO_PATH) {
      path = walk->first_child[path];
      continue;
    }
    put_end(run, walk, path);
    while (path != thread_path && walk->next_sibling[path] == PROF_I_NO_PATH) {
      path = tree->paths.items[path].parent;
      if (path != thread_path) put_end(run, walk, path);
    }
    path = path == thread_path ? PROF_I_NO_PATH : walk->next_sibling[path];
  }
}

/* thread_path: PROF_I_NO_PATH for a profile without events. */
static void put_profile(prof_i_export *run, tree_walk *walk, uint32_t thread_path, const char *name,
                        size_t name_bytes) {
  walk->at_ns = 0;
  walk->has_events = false;
  prof_i_sink_text(run->sink, "{\"type\":\"evented\",\"name\":");
  prof_i_sink_string(run->sink, name, name_bytes);
  prof_i_sink_text(run->sink, ",\"unit\":\"nanoseconds\",\"startValue\":0,\"events\":[");
  if (thread_path != PROF_I_NO_PATH) put_events(run, walk, thread_path);
  prof_i_sink_text(run->sink, "],\n\"endValue\":");
  prof_i_sink_u64(run->sink, walk->at_ns);
  prof_i_sink_text(run->sink, "}");
}

/* Threads without scopes have none. A file needs one at least. count: of profiles in the file. */
static void put_profiles(prof_i_export *run, tree_walk *walk, uint64_t *count) {
  const prof_i_path_tree *const tree = run->state;
  for (uint32_t i = 1; i < tree->paths.count && run->sink->status == PROF_OK; i++) {
    char name[PROF_I_THREAD_TEXT_ROOM];
    if (tree->paths.items[i].thread == 0 || walk->first_child[i] == PROF_I_NO_PATH) continue;
    const size_t bytes =
        prof_i_path_thread_text(run, tree->paths.items[i].thread - 1, name, sizeof name);
    if ((*count)++ > 0) prof_i_sink_text(run->sink, ",\n");
    put_profile(run, walk, i, name, bytes);
  }
  if (*count == 0 && prof_i_export_is_last(run))
    put_profile(run, walk, PROF_I_NO_PATH, "no scopes", sizeof "no scopes" - 1);
}

static void put_head(prof_i_export *run) {
  prof_i_sink_text(run->sink,
                   "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\n"
                   "\"exporter\":\"prof ");
  prof_i_sink_text(run->sink, prof_version());
  prof_i_sink_text(run->sink, "\",\n\"name\":");
  prof_i_sink_string(run->sink, run->info.process_name, strlen(run->info.process_name));
  prof_i_sink_text(run->sink, ",\n\"activeProfileIndex\":0,\n");
}

static void put_file(prof_i_export *run, tree_walk *walk) {
  uint64_t count = 0;
  put_head(run);
  prof_i_sink_text(run->sink, "\"shared\":{\"frames\":[");
  put_frames(run, run->sink, true);
  prof_i_sink_text(run->sink, "]},\n\"profiles\":[\n");
  put_profiles(run, walk, &count);
  prof_i_sink_text(run->sink, "]}\n");
}

/* The capture's part of a merged file. Returns PROF_OK, or a status with its text. */
static int put_part(prof_i_export *run, tree_walk *walk) {
  const prof_i_path_tree *const tree = run->state;
  speedscope_shared *const shared = run->options->place->shared;
  int status = PROF_OK;
  if (prof_i_export_is_first(run)) {
    status = prof_i_sink_open_memory(&shared->frames, SIZE_MAX);
    put_head(run);
    prof_i_sink_text(run->sink, "\"profiles\":[\n");
  }
  if (status != PROF_OK) return status;
  walk->first_frame = shared->frame_count;
  put_frames(run, &shared->frames, shared->frame_count == 0);
  shared->frame_count += tree->paths.row_count;
  put_profiles(run, walk, &shared->profile_count);
  if (shared->frames.status != PROF_OK || !prof_i_export_is_last(run)) return shared->frames.status;
  prof_i_sink_text(run->sink, "],\n\"shared\":{\"frames\":[");
  prof_i_sink_bytes(run->sink, shared->frames.buffer,
                    (size_t)(shared->frames.next - shared->frames.buffer));
  prof_i_sink_text(run->sink, "]}}\n");
  return PROF_OK;
}

static void destroy_shared(void *user) {
  speedscope_shared *const shared = user;
  if (shared->frames.buffer) prof_i_sink_abandon(&shared->frames);
}

static int speedscope_end(prof_i_export *run) {
  const prof_i_path_tree *const tree = run->state;
  tree_walk walk = {.at_ns = 0};
  int status = PROF_OK;
  if (!link_children(tree, &walk))
    status = prof_i_fail(PROF_E_NO_MEMORY, "no memory for %u call paths", tree->paths.count);
  else if (run->options->place)
    status = put_part(run, &walk);
  else
    put_file(run, &walk);
  free(walk.first_child);
  free(walk.next_sibling);
  return status;
}

const prof_i_exporter prof_i_speedscope_exporter = {
    .name = "speedscope",
    .format = PROF_FORMAT_SPEEDSCOPE,
    .suffixes = {".speedscope.json", ".speedscope.json.gz"},
    .abilities = PROF_I_EXPORT_CUT | PROF_I_EXPORT_MERGED,
    .shared_bytes = sizeof(speedscope_shared),
    .destroy_shared = destroy_shared,
    .order = PROF_I_ORDER_TIME,
    .event_kinds = PROF_I_KIND(SCOPE) | PROF_I_KIND(OPEN),
    .takes_left_out = true,
    .has_self_times = true,
    .state_bytes = sizeof(prof_i_path_tree),
    .begin = prof_i_path_tree_begin,
    .thread = prof_i_path_tree_thread,
    .event = prof_i_path_tree_event,
    .end = speedscope_end,
    .destroy = prof_i_path_tree_destroy};
