/* Flame graphs of paths (analysis/paths.h): folded stacks, and a self-contained SVG with
   search and zoom by a small script. Both are of one side, or the difference of two. The caller
   frees the texts. Called by `prof flame` and the
   HTML report. */
#ifndef PROF_REPORT_FLAME_H
#define PROF_REPORT_FLAME_H

#include "../analysis/paths.h"

typedef enum prof_i_flame_kind {
  PROF_I_FLAME_HOST = 0,   /* self time of host scopes, ns */
  PROF_I_FLAME_DEVICE = 1, /* time of a device's work, below the scopes that launched it, ns */
  PROF_I_FLAME_MEMORY = 2  /* allocated bytes */
} prof_i_flame_kind;

typedef struct prof_i_flame_options {
  prof_i_flame_kind kind;
  /* Widths are of the new side. true: colours compare it with the base, and values are means of
     the runs. */
  bool is_difference;
  uint32_t runs_count[PROF_I_SIDES]; /* of a difference; else not used */
  const char *title;                 /* any bytes */
} prof_i_flame_options;

/* A path's own time or bytes, without those below it. */
double prof_i_flame_value(const prof_i_paths *paths, uint32_t index,
                          const prof_i_flame_options *options, prof_i_side side);

/* The sum of all frames. 0: there is nothing to draw. */
double prof_i_flame_total(const prof_i_paths *paths, const prof_i_flame_options *options);

/* "outer;inner 123", as flamegraph.pl and speedscope read it. A difference has two values: of the
   base and of the new side. ';' in a name becomes ':'. PROF_OK or PROF_E_NO_MEMORY. */
int prof_i_flame_folded(const prof_i_paths *paths, const prof_i_flame_options *options,
                        char **text_out);
int prof_i_flame_svg(const prof_i_paths *paths, const prof_i_flame_options *options,
                     char **text_out);

#endif
