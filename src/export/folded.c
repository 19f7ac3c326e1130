/* Folded stacks, as flamegraph.pl reads them: "thread;outer;inner 1234", a line for each call path
   with its own time in ns (path_tree.c). In a merged file, the process is the first frame. */
#include <stdlib.h>

#include "../base/log.h"
#include "../reader/internal.h"
#include "internal.h"

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
