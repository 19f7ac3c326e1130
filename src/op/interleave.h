/* Several measurements side by side. */
#ifndef PROF_OP_INTERLEAVE_H
#define PROF_OP_INTERLEAVE_H

#include "measure.h"

/* Reads `count` operators, each as long as the first says. */
int prof_i_measure_init_all(prof_i_measurement *all, const prof_op *ops, size_t count,
                            const prof_op_options *options);

/* Prepares all, samples them in turn until each is done, cleans up in the opposite order, and
   makes their results; on an error those are all NULL. All have been initialised, and are
   finished here. */
int prof_i_measure_interleaved(prof_i_measurement *all, size_t count, prof_op_result **results_out);

#endif
