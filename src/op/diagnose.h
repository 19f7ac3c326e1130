/* Finds reasons to doubt a series of samples: drift, two modes, noise. Each test documents its
   criterion; tests/unit/test_op_judge.c counts its false alarms. Pure functions but for scratch
   memory. */
#ifndef PROF_OP_DIAGNOSE_H
#define PROF_OP_DIAGNOSE_H

#include <stdint.h>

#include "series.h"

typedef struct prof_i_drift {
  double score; /* Mann and Kendall's, normal: past 3.29 by chance once in a thousand series */
  double share; /* of the median, from the first to the last sample (Theil and Sen's slope) */
} prof_i_drift;
bool prof_i_drift_test(const prof_i_series *series, prof_i_drift *out);

typedef struct prof_i_modes {
  double low, high;  /* means of the two heaps */
  double high_share; /* of the samples */
  bool are_two;
} prof_i_modes;
prof_i_modes prof_i_modes_find(const prof_i_series *series);

/* Of the samples, how many are further from the middle half than three times its width. */
double prof_i_outlier_share(const prof_i_series *series);

/* PROF_OP_NOISY, DRIFTING, TWO_MODES, FEW_SAMPLES, as the samples show. False: no memory. */
bool prof_i_diagnose(const prof_i_series *series, uint32_t *doubts_out, prof_i_drift *drift_out,
                     prof_i_modes *modes_out);

#endif
