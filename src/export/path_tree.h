/* The call paths of a capture as a tree, with the calls and the self time of each. For formats that
   are profiles and not logs. A path begins at a thread. A scope that overlaps another of its thread
   without nesting stands right below the thread. Called by folded.c, speedscope.c and pprof.c. */
#ifndef PROF_EXPORT_PATH_TREE_H
#define PROF_EXPORT_PATH_TREE_H

#include "exporter.h"

enum {
  PROF_I_NO_PATH = 0, /* above all threads */
  /* Frames below the thread. Formats that write whole paths grow by the square of the depth. */
  PROF_I_PATH_DEPTH_MAX = 1000
};

/* What a path ends in. Scopes of one name are one frame. */
typedef struct prof_i_frame {
  prof_i_text name;    /* the trace's bytes */
  uint32_t site, next; /* site: of its first call; next: in the bucket */
} prof_i_frame;

/* A frame below another path. Parents come before their children. */
typedef struct prof_i_path {
  uint64_t self_ns, call_count;
  uint32_t frame;        /* of a thread's node: 0 */
  uint32_t parent, next; /* next: in the bucket */
  uint32_t thread;       /* of a thread's node: its index + 1; else 0 */
} prof_i_path;

typedef struct prof_i_path_tree {
  prof_i_path *paths;
  prof_i_frame *frames;
  uint32_t path_count, path_room, frame_count, frame_room;
  uint32_t *path_buckets, path_bucket_count;
  uint32_t *frame_buckets, frame_bucket_count;
  uint32_t *open; /* of lane 0, the outermost first */
  uint32_t open_count, open_room;
  uint32_t thread_path;
} prof_i_path_tree;

/* Callbacks of an exporter of PROF_I_ORDER_TIME whose state begins with the tree. */
int prof_i_path_tree_begin(prof_i_export *run);
int prof_i_path_tree_thread(prof_i_export *run, const prof_trace_thread *thread);
int prof_i_path_tree_event(prof_i_export *run, prof_i_export_event *event);
void prof_i_path_tree_destroy(prof_i_export *run);

static inline prof_i_text prof_i_path_name(const prof_i_path_tree *tree, uint32_t path) {
  return tree->frames[tree->paths[path].frame].name;
}

/* "main 1234", "process 77, main 1234" or "device 5000000, name stream 1". Returns its length; a
   text that does not fit is cut. */
enum { PROF_I_THREAD_TEXT_ROOM = 256 };
size_t prof_i_path_thread_text(const prof_i_export *run, uint32_t number, char *to, size_t room);

#endif
