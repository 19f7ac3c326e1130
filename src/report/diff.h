/* A comparison (analysis/compare.h) as text for a terminal, as JSON and as CSV. The caller frees
   the texts. Called by `prof diff`. */
#ifndef PROF_REPORT_DIFF_H
#define PROF_REPORT_DIFF_H

#include "../analysis/compare.h"

enum { PROF_I_DIFF_ROWS_DEFAULT = 40 };

typedef struct prof_i_diff_options {
  uint32_t width; /* columns of a line at most; 0: any */
  /* Titles of the columns of keys, one or two; count 0: Name alone. */
  const char *titles[PROF_I_GROUP_KEYS_MAX];
  uint32_t title_count;
  uint32_t rows_limit; /* those with the largest change of the total; UINT32_MAX: all */
} prof_i_diff_options;

/* PROF_OK, or PROF_E_NO_MEMORY with its text set. */
int prof_i_diff_text(const prof_i_comparison *comparison, const prof_i_diff_options *options,
                     char **text_out);
int prof_i_diff_json(const prof_i_comparison *comparison, char **text_out);
int prof_i_diff_csv(const prof_i_comparison *comparison, char **text_out);

#endif
