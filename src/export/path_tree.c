/* The call paths of a capture as a tree, for formats that are profiles, and the plainest of these:
   folded stacks. See internal.h. */
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>

#include "../base/error.h"
#include "../reader/internal.h"

static int no_memory(const prof_i_path_tree *tree) {
  return prof_i_fail(PROF_E_NO_MEMORY, "no memory for %u call paths", tree->paths.count + 1);
}

/* Scopes of one name are one frame, whatever their category. */
static uint32_t path_below(prof_i_path_tree *tree, uint32_t parent,
                           const prof_i_export_event *event) {
  prof_i_paths *const paths = &tree->paths;
  if (prof_i_paths_is_deepest(paths, parent))
    return prof_i_paths_deeper(paths, parent, PROF_I_SIDE_NEW);
  const uint32_t known_count = paths->row_count;
  const int64_t row = prof_i_paths_row(paths, event->name, (prof_i_text){"", 0}, false);
  if (row < 0) return PROF_I_NO_PATH;
  if (row == known_count) paths->rows[row].site = event->event->site;
  return prof_i_paths_below(paths, parent, (uint32_t)row, PROF_I_SIDE_NEW);
}

/* ---- callbacks of exporters ---- */

int prof_i_path_tree_begin(prof_i_export *run) {
  prof_i_path_tree *const tree = run->state;
  tree->paths.depth_max = PROF_I_PATHS_DEPTH_MAX;
  return prof_i_paths_root(&tree->paths) ? PROF_OK : no_memory(tree);
}

int prof_i_path_tree_thread(prof_i_export *run, const prof_trace_thread *thread) {
  (void)thread;
  prof_i_path_tree *const tree = run->state;
  tree->open_count = 0;
  tree->thread_path = prof_i_paths_thread(&tree->paths, run->thread);
  return tree->thread_path != PROF_I_NO_PATH ? PROF_OK : no_memory(tree);
}

int prof_i_path_tree_event(prof_i_export *run, prof_i_export_event *event) {
  prof_i_path_tree *const tree = run->state;
  const bool is_nested = event->lane == 0;
  if (event->phase == PROF_I_PHASE_END) {
    if (is_nested && tree->open_count > 0) tree->open_count--;
    return PROF_OK;
  }
  const bool is_inside = is_nested && tree->open_count > 0;
  const uint32_t path =
      path_below(tree, is_inside ? tree->open[tree->open_count - 1] : tree->thread_path, event);
  if (path == PROF_I_NO_PATH || !prof_i_make_room((void **)&tree->open, &tree->open_room,
                                                  tree->open_count, sizeof *tree->open))
    return no_memory(tree);
  if (!event->is_left_out) {
    prof_i_path_sums *const sums = &tree->paths.items[path].sums[PROF_I_SIDE_NEW];
    sums->self_ns += event->event->self_ns;
    sums->calls_count++;
  }
  if (is_nested) tree->open[tree->open_count++] = path;
  return PROF_OK;
}

void prof_i_path_tree_destroy(prof_i_export *run) {
  prof_i_path_tree *const tree = run->state;
  prof_i_paths_fini(&tree->paths);
  free(tree->open);
}

/* ---- names of threads ---- */

size_t prof_i_path_thread_text(const prof_i_export *run, uint32_t number, char *to, size_t room) {
  prof_trace_thread thread = {.size = sizeof thread};
  const prof_i_tids *const ids = &run->tids[number];
  char process[32] = "";
  if (prof_trace_thread_get(run->trace, number, &thread) != PROF_OK) return 0;
  if (ids->is_elsewhere || thread.is_stream)
    snprintf(
        process, sizeof process, "%s %llu, ", thread.is_stream ? "device" : "process",
        (unsigned long long)(thread.is_stream ? prof_i_tids_device_pid(thread.device) : ids->pid));
  const char *const label = run->options->place ? run->options->place->label : "";
  const int bytes = snprintf(to, room, "%s%s%s%s%s%llu", label, *label ? ", " : "", process,
                             thread.name, thread.is_stream ? " stream " : " ",
                             (unsigned long long)(thread.is_stream ? ids->first : thread.tid));
  return (size_t)bytes < room ? (size_t)bytes : room - 1;
}

/* ---- folded stacks ---- */

/* As flamegraph.pl reads them: "thread;outer;inner 1234", a line for each call path with its own
   time in ns. In a merged file, the process is the first frame. */

static void put_thread_frame(prof_i_export *run, uint32_t index) {
  prof_trace_thread thread = {.size = sizeof thread};
  if (prof_trace_thread_get(run->trace, index, &thread) != PROF_OK) return;
  if (run->options->place) {
    prof_i_sink_frame(run->sink, run->options->place->label, strlen(run->options->place->label));
    prof_i_sink_text(run->sink, ";");
  }
  if (run->tids[index].is_elsewhere || thread.is_stream) {
    prof_i_sink_text(run->sink, thread.is_stream ? "device " : "process ");
    prof_i_sink_u64(
        run->sink, thread.is_stream ? prof_i_tids_device_pid(thread.device) : run->tids[index].pid);
    prof_i_sink_text(run->sink, ";");
  }
  prof_i_sink_frame(run->sink, thread.name, strlen(thread.name));
  prof_i_sink_text(run->sink, thread.is_stream ? " stream " : " ");
  prof_i_sink_u64(run->sink, thread.is_stream ? run->tids[index].first : thread.tid);
}

/* Writes the frames of a path, from the thread to the scope. `chain` has room for them. */
static void put_path(prof_i_export *run, uint32_t path, uint32_t *chain) {
  const prof_i_path_tree *const tree = run->state;
  const prof_i_path *const items = tree->paths.items;
  uint32_t outer = path;
  while (!items[outer].thread) outer = items[outer].parent;
  put_thread_frame(run, items[outer].thread - 1);
  prof_i_paths_chain(&tree->paths, path, chain);
  for (uint32_t i = 0; i < items[path].depth; i++) {
    const prof_i_text name = prof_i_path_frame_name(&tree->paths.rows[items[chain[i]].row]);
    prof_i_sink_text(run->sink, ";");
    prof_i_sink_frame(run->sink, name.data, (size_t)name.bytes);
  }
  prof_i_sink_text(run->sink, " ");
  prof_i_sink_u64(run->sink, prof_i_path_tree_sums(tree, path)->self_ns);
  prof_i_sink_text(run->sink, "\n");
}

static int folded_end(prof_i_export *run) {
  const prof_i_path_tree *const tree = run->state;
  uint32_t *const chain = malloc((PROF_I_PATHS_DEPTH_MAX + 1) * sizeof *chain);
  if (!chain)
    return prof_i_fail(PROF_E_NO_MEMORY, "no memory for %u call paths", tree->paths.count);
  for (uint32_t i = 1; i < tree->paths.count && run->sink->status == PROF_OK; i++)
    if (prof_i_path_tree_sums(tree, i)->self_ns > 0) put_path(run, i, chain);
  free(chain);
  return PROF_OK;
}

const prof_i_exporter prof_i_folded_exporter = {
    .name = "folded",
    .format = PROF_FORMAT_FOLDED,
    .suffixes = {".folded", ".folded.gz"},
    .abilities = PROF_I_EXPORT_CUT | PROF_I_EXPORT_MERGED,
    .order = PROF_I_ORDER_TIME,
    .event_kinds = PROF_I_KIND(SCOPE) | PROF_I_KIND(OPEN),
    .takes_left_out = true,
    .has_self_times = true,
    .state_bytes = sizeof(prof_i_path_tree),
    .begin = prof_i_path_tree_begin,
    .thread = prof_i_path_tree_thread,
    .event = prof_i_path_tree_event,
    .end = folded_end,
    .destroy = prof_i_path_tree_destroy};
