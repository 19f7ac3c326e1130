/* Compares the captures of two sides, such as before and after a change. A capture is a sample: the
   calls of one run are not independent of each other, so a verdict is on the medians of runs
   (statistics.h). Called by `prof diff` and src/report/diff.c. One thread at a time. */
#ifndef PROF_ANALYSIS_COMPARE_H
#define PROF_ANALYSIS_COMPARE_H

#include "paths.h"
#include "statistics.h"

enum { PROF_I_VERDICT_RUNS_MIN = 4 }; /* captures of a side for a verdict, at least */

typedef struct prof_i_compare_options {
  uint32_t runs_count[PROF_I_SIDES]; /* captures of each side: 1 to PROF_I_SAMPLE_MAX */
  double threshold;                  /* a verdict's interval is beyond it: 0.02 */
  bool is_by_path;                   /* a line for each path; else for each row */
} prof_i_compare_options;

typedef enum prof_i_compare_state {
  PROF_I_COMPARE_BOTH = 0,
  PROF_I_COMPARE_NEW = 1,
  PROF_I_COMPARE_GONE = 2,
  PROF_I_COMPARE_REPLACED = 3
} prof_i_compare_state;

typedef enum prof_i_verdict {
  PROF_I_VERDICT_NONE = 0,      /* too few runs, or they are too short to be timed */
  PROF_I_VERDICT_UNDECIDED = 1, /* no change was shown, and none excluded */
  PROF_I_VERDICT_SLOWER = 2,
  PROF_I_VERDICT_FASTER = 3
} prof_i_verdict;

/* Medians of the runs that have it; calls and total are means of all runs of the side. */
typedef struct prof_i_compare_values {
  uint32_t runs_count; /* that have it */
  double calls, total_ns, median_ns, mean_ns, p99_ns;
} prof_i_compare_values;

typedef struct prof_i_compare_line {
  uint32_t row, new_row;   /* new_row differs if it was replaced */
  uint32_t path, new_path; /* 0: of rows */
  prof_i_compare_state state;
  prof_i_verdict verdict;
  prof_i_compare_values values[PROF_I_SIDES];
  bool has_change; /* on both sides, and the base's median is not 0 */
  bool has_p;      /* the test was made */
  prof_i_ratio_interval
      ratio; /* new / base. Without the test all three are the ratio of the medians. */
  double p;
  double slower_share; /* of the new calls, longer than the base's median; < 0: not found */
} prof_i_compare_line;

typedef struct prof_i_comparison {
  prof_i_compare_options options;
  prof_i_paths paths;
  struct prof_i_compare_unit *units; /* a row's or a path's */
  uint32_t unit_count, unit_room;
  uint32_t added[PROF_I_SIDES];
  uint32_t left_out[PROF_I_SIDES]; /* captures whose processes the filter leaves out: no runs */
  prof_i_compare_line *lines;      /* by falling change of the total */
  uint32_t line_count;
  uint32_t tested_count; /* lines with a test */
  double chance_count;   /* lines that chance alone flags, at most */
  double coverage;       /* the least coverage of an interval; 0: no test was made */
  prof_i_rank_test test;
} prof_i_comparison;

/* Copies the options. */
void prof_i_comparison_init(prof_i_comparison *comparison, const prof_i_compare_options *options);

/* Adds a side's next capture, which may be destroyed afterwards. Returns PROF_OK or an error whose
   text is set. */
int prof_i_comparison_add(prof_i_comparison *comparison, prof_i_side side, const prof_trace *trace);

/* Moves the captures of a side from another comparison with the same options, as if they were added
   here. Here the side must have none. So two threads may add the two sides. PROF_OK or
   PROF_E_NO_MEMORY; then both comparisons may only be destroyed. */
int prof_i_comparison_merge(prof_i_comparison *comparison, prof_i_comparison *from,
                            prof_i_side side);

/* Makes the lines, when all captures were added. Then options.runs_count is without the captures
   that the filter left out. PROF_OK or PROF_E_NO_MEMORY. */
int prof_i_comparison_finish(prof_i_comparison *comparison);
void prof_i_comparison_fini(prof_i_comparison *comparison);

/* Whether both sides have enough captures. */
static inline bool prof_i_comparison_has_verdicts(const prof_i_comparison *comparison) {
  const uint32_t *const count = comparison->options.runs_count;
  return count[0] >= PROF_I_VERDICT_RUNS_MIN && count[1] >= PROF_I_VERDICT_RUNS_MIN;
}

/* Lines that are slower, with the lower end of the interval beyond the limit: 0.05 is 5 %. */
uint32_t prof_i_comparison_beyond(const prof_i_comparison *comparison, double limit);

#endif
