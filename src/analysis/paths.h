/* Scopes by path: the names that are open around a scope, of one or several captures on two sides.
   A path has sums for each side. Trees, flame graphs and differences use the paths of whole
   captures (trace_paths.c). Export formats that hold sums, not events, use paths below threads
   (export/path_tree.c). One thread at a time.

   Work of a device is below the host's scope that launched it. Its nodes are separate from host
   scopes of the same name. Rows are paths of the same last name, category and kind of time. With a
   filter, only scopes that pass are counted. All scopes have paths.

   Whole paths grow by the square of the depth. With a limit of the depth, the host's scopes below
   it share the path "[deeper]" of their outer path. Its total has the outermost of them alone. */
#ifndef PROF_ANALYSIS_PATHS_H
#define PROF_ANALYSIS_PATHS_H

#include <prof/trace.h>
#include <stdbool.h>

#include "../reader/capture.h"
#include "internal.h"

typedef enum prof_i_side { PROF_I_SIDE_BASE = 0, PROF_I_SIDE_NEW = 1 } prof_i_side;
enum {
  PROF_I_SIDES = 2,
  PROF_I_PATHS_DEPTH_MAX = 1000,
  PROF_I_NO_PATH = 0 /* the root; as a result: no memory */
};

/* The value of a key. The text is valid UTF-8 with a NUL behind, and may contain controls. */
typedef struct prof_i_path_value {
  const char *text;
  prof_i_text raw; /* as the capture has it */
} prof_i_path_value;

/* name and category are the texts of the first two values. */
typedef struct prof_i_path_row {
  const char *name, *category;
  prof_i_path_value *values; /* prof_i_paths_value_count() of them, in a block with their texts */
  uint32_t hash;
  uint32_t site; /* of the first call, in formats that show it; else 0 */
  bool is_device;
  bool has_path;
} prof_i_path_row;

/* Of all captures of a side. */
typedef struct prof_i_path_sums {
  uint64_t calls_count, total_ns, self_ns;
  uint64_t allocated_bytes; /* by allocations whose innermost scope this is */
} prof_i_path_sums;

typedef struct prof_i_path {
  prof_i_path_sums sums[PROF_I_SIDES];
  uint32_t order[PROF_I_SIDES]; /* in which paths were first seen; 0: the side does not have it */
  uint32_t parent;              /* the root is its own */
  uint32_t row, depth;          /* the root and threads: depth 0, no row */
  uint32_t thread;              /* of a thread's node: its index plus 1; else 0 */
  bool is_inner;                /* a path above it is of the same row: maybe a recursion */
  bool is_deeper;               /* of all scopes below the limit of the depth */
} prof_i_path;

/* An entry of the hash table of paths. Path 0: free. */
typedef struct prof_i_path_place {
  uint32_t parent, row, path;
} prof_i_path_place;

struct prof_i_filter;

/* Begins as zeros. The first path is the root. */
typedef struct prof_i_paths {
  const struct prof_i_filter *filter; /* set by the caller; NULL: all scopes */
  uint32_t depth_max;                 /* set by the caller; 0: no limit */
  /* Set by the caller: rows are grouped by these bits (analysis/internal.h) instead of name and
     category. A row has a value for each key, in this order. With one key, the second value is
     empty. Threads and processes are grouped by name. Scopes without the line or the argument are
     not counted. The caller must not pass stacks or kernels. */
  uint32_t keys[PROF_I_GROUP_KEYS_MAX];
  uint32_t key_count;
  const char *arg_key; /* of PROF_I_GROUP_ARG */
  /* Self times of the host's scopes in the threads and times that the filter names. */
  uint64_t host_self_ns[PROF_I_SIDES];
  prof_i_path *items;
  prof_i_path_row *rows;
  uint32_t count, room, row_count, row_room;
  prof_i_path_place *table; /* by hash of parent and row */
  uint32_t *row_table;      /* by hash: index plus 1; 0: free */
  uint32_t table_room, row_table_room;
  uint32_t ordered[PROF_I_SIDES];
} prof_i_paths;

/* Creates the root if it does not exist. False: no memory. */
bool prof_i_paths_root(prof_i_paths *paths);

/* Creates a node below the root for a thread's scopes. PROF_I_NO_PATH: no memory. */
uint32_t prof_i_paths_thread(prof_i_paths *paths, uint32_t thread);

/* Values of each row: two, or one for each key. */
static inline uint32_t prof_i_paths_value_count(const prof_i_paths *paths) {
  return paths->key_count > 2 ? paths->key_count : 2;
}

/* The row of these values, as the capture has them. Negative: no memory. */
int64_t prof_i_paths_row_of(prof_i_paths *paths, const prof_i_text *values, bool is_device);

/* The row of the name and category; further values are empty. Negative: no memory. */
int64_t prof_i_paths_row(prof_i_paths *paths, prof_i_text name, prof_i_text category,
                         bool is_device);

/* Whether the path is at the depth limit. If so, all host scopes below it share one path. */
static inline bool prof_i_paths_is_deepest(const prof_i_paths *paths, uint32_t path) {
  return paths->depth_max && paths->items[path].depth >= paths->depth_max;
}

/* The path of this row below `parent`; and the shared path below a parent at the depth limit.
   PROF_I_NO_PATH: no memory. */
uint32_t prof_i_paths_below(prof_i_paths *paths, uint32_t parent, uint32_t row, prof_i_side side);
uint32_t prof_i_paths_deeper(prof_i_paths *paths, uint32_t parent, prof_i_side side);

/* The paths from the first level below the root or thread to this path. `chain` has room for its
   depth. */
void prof_i_paths_chain(const prof_i_paths *paths, uint32_t path, uint32_t *chain);

/* Adds the rows, paths and sums of a side of `from`, as if its captures were added here. Here the
   side must be empty, and `from` must have no nodes of threads. rows_out[i] and paths_out[i] become
   the numbers of row and path i of `from`. False: no memory. */
bool prof_i_paths_merge(prof_i_paths *paths, const prof_i_paths *from, prof_i_side side,
                        uint32_t *rows_out, uint32_t *paths_out);

void prof_i_paths_fini(prof_i_paths *paths);

/* ---- trace_paths.c ---- */

/* One call. is_outermost: no call of its row is around it. False stops with PROF_E_NO_MEMORY. */
typedef bool (*prof_i_path_visit)(void *user, uint32_t path, uint64_t duration_ns, uint64_t self_ns,
                                  bool is_outermost);

/* Adds the ended scopes of a capture. `visit` may be NULL. Returns PROF_OK or an error whose text
   is set. */
int prof_i_paths_add(prof_i_paths *paths, const prof_trace *trace, prof_i_side side,
                     prof_i_path_visit visit, void *user);

#endif
