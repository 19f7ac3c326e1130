/* Folded stacks, as flamegraph.pl reads them: "thread;outer;inner 1234", a line for each call path
   with its own time in ns (path_tree.h). */
#include <stdlib.h>

#include "../base/log.h"
#include "../base/text.h"
#include "../reader/internal.h"
#include "path_tree.h"

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

/* The frames of a path from the thread on. `parents` has room for them. */
static void put_path(prof_i_export *run, uint32_t path, uint32_t *parents) {
  const prof_i_path_tree *const tree = run->state;
  uint32_t depth = 0;
  for (uint32_t i = path; i != PROF_I_NO_PATH; i = tree->paths[i].parent) parents[depth++] = i;
  put_thread_frame(run, tree->paths[parents[depth - 1]].thread - 1);
  for (uint32_t i = depth - 1; i > 0; i--) {
    prof_i_sink_text(run->sink, ";");
    put_frame(run->sink, prof_i_path_name(tree, parents[i - 1]));
  }
  prof_i_sink_text(run->sink, " ");
  prof_i_sink_u64(run->sink, tree->paths[path].self_ns);
  prof_i_sink_text(run->sink, "\n");
}

static int folded_end(prof_i_export *run) {
  const prof_i_path_tree *const tree = run->state;
  uint32_t *const parents = calloc((size_t)tree->path_count + 1, sizeof *parents);
  if (!parents)
    return prof_i_fail(PROF_E_NO_MEMORY, "no memory for %u call paths", tree->path_count);
  for (uint32_t i = 1; i < tree->path_count && run->sink->status == PROF_OK; i++)
    if (tree->paths[i].self_ns > 0) put_path(run, i, parents);
  free(parents);
  return PROF_OK;
}

const prof_i_exporter prof_i_folded_exporter = {
    .name = "folded",
    .format = PROF_FORMAT_FOLDED,
    .suffixes = {".folded", ".folded.gz"},
    .abilities = PROF_I_EXPORT_CUT,
    .order = PROF_I_ORDER_TIME,
    .event_kinds = PROF_I_KIND(SCOPE) | PROF_I_KIND(OPEN),
    .takes_left_out = true,
    .state_bytes = sizeof(prof_i_path_tree),
    .begin = prof_i_path_tree_begin,
    .thread = prof_i_path_tree_thread,
    .event = prof_i_path_tree_event,
    .end = folded_end,
    .destroy = prof_i_path_tree_destroy};
