/* The rank sum test's interval of the ratio of two series. Pure but for scratch memory. */
#ifndef PROF_OP_COMPARE_H
#define PROF_OP_COMPARE_H

#include "series.h"

typedef struct prof_i_ratio {
  /* second to first, with an interval of 95 %; low 0 and high infinity: so few samples have none */
  double middle, low, high;
} prof_i_ratio;

/* False: no memory. All samples above 0. */
bool prof_i_ratio_of(const prof_i_series *first, const prof_i_series *second, prof_i_ratio *out);

/* The same of samples that were taken in turn, the i-th of either in one round. It uses the rounds'
   own ratios, which cancel what disturbs a whole round, and their median's interval. */
bool prof_i_paired_ratio_of(const double *first, const double *second, size_t count,
                            prof_i_ratio *out);

#endif
