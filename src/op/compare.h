/* The rank sum test's interval of the ratio of two series. Pure but for scratch memory. */
#ifndef PROF_OP_COMPARE_H
#define PROF_OP_COMPARE_H

#include "series.h"

typedef struct prof_i_ratio {
  double middle, low, high; /* second to first, with an interval of 95 % */
} prof_i_ratio;

/* False: no memory. All samples above 0. */
bool prof_i_ratio_of(const prof_i_series *first, const prof_i_series *second, prof_i_ratio *out);

#endif
