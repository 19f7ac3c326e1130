/* The call paths of a capture as a tree, with the calls and the self time of each. For formats that
   are profiles and not logs. A path begins at a thread. A scope that overlaps another of its thread
   without nesting stands right below the thread. Called by folded.c, speedscope.c and pprof.c. */
#ifndef PROF_EXPORT_PATH_TREE_H
#define PROF_EXPORT_PATH_TREE_H

#include "../analysis/paths.h"
#include "exporter.h"

typedef struct prof_i_path_tree {
  prof_i_paths paths; /* sums are in PROF_I_SIDE_NEW */
  uint32_t *open;     /* of lane 0, the outermost first */
  uint32_t open_count, open_room;
  uint32_t thread_path;
} prof_i_path_tree;

/* Callbacks of an exporter of PROF_I_ORDER_TIME whose state begins with the tree. */
int prof_i_path_tree_begin(prof_i_export *run);
int prof_i_path_tree_thread(prof_i_export *run, const prof_trace_thread *thread);
int prof_i_path_tree_event(prof_i_export *run, prof_i_export_event *event);
void prof_i_path_tree_destroy(prof_i_export *run);

static inline const prof_i_path_sums *prof_i_path_tree_sums(const prof_i_path_tree *tree,
                                                            uint32_t path) {
  return &tree->paths.items[path].sums[PROF_I_SIDE_NEW];
}

/* The frame's name as the capture has it. */
static inline prof_i_text prof_i_path_frame_name(const prof_i_path_row *frame) {
  return (prof_i_text){frame->raw, frame->raw_name_bytes};
}

/* "main 1234", "process 77, main 1234" or "device 5000000, name stream 1". In a merged file, it
   begins with the process: "rank 1, main 1234". Returns its length; a text that does not fit is
   cut. */
enum { PROF_I_THREAD_TEXT_ROOM = 384 };
size_t prof_i_path_thread_text(const prof_i_export *run, uint32_t number, char *to, size_t room);

#endif
