/* The call tree as text or JSON: calls, total and self time of each path
   (analysis/paths.h). A recursion is a path below its outer call, so no total is above that
   of its parent's calls. Called by `prof tree`. */
#ifndef PROF_REPORT_TREE_H
#define PROF_REPORT_TREE_H

#include "../analysis/paths.h"

typedef struct prof_i_tree_options {
  uint32_t depth;   /* at most so many levels; 0: all */
  double min_share; /* of all time, 0.01 is 1 %: paths with less are not shown */
  uint32_t width;   /* of a line; 0: any */
  bool is_ascii;    /* lines of the tree */
  bool is_json;     /* an object a line */
} prof_i_tree_options;

/* Of the new side. path_count_out gets the number of paths with calls, shown or not. The caller
   frees the text. PROF_OK or PROF_E_NO_MEMORY. */
int prof_i_tree(const prof_i_paths *paths, const prof_i_tree_options *options, char **text_out,
                uint32_t *path_count_out);

#endif
