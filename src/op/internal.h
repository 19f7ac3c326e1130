/* Functions of the operator profiler that need no header of their own, grouped by the file that
   defines them. */
#ifndef PROF_OP_INTERNAL_H
#define PROF_OP_INTERNAL_H

#include "measure.h"

/* ---- cache.c: results that are kept by key, device and request. In memory at most 1024: the least
   recently used one is dropped. In a file, if one was named. Any thread, and over a fork ---- */

/* A copy, the caller's; NULL: not found, or no memory for it. *file_status_out: why the file could
   not be read. */
prof_op_result *prof_i_cache_find(const prof_i_op_identity *identity, const char *key,
                                  int32_t *file_status_out);

/* Keeps a copy, which replaces one of the same identity. Without memory it is not kept.
   *file_status_out: why the file did not take it. */
void prof_i_cache_store(const prof_op_result *result, int32_t *file_status_out);

/* ---- interleave.c: several measurements in turn ---- */

/* Reads `count` operators, each as long as the first says. */
int prof_i_measure_init_all(prof_i_measurement *all, const prof_op *ops, size_t count,
                            const prof_op_options *options);

/* Prepares all, samples them in turn until each is done, cleans up in the opposite order, and
   makes their results; on an error those are all NULL. All have been initialised, and are
   finished here. */
int prof_i_measure_interleaved(prof_i_measurement *all, size_t count, prof_op_result **results_out);

/* ---- stream_timer.c ---- */

/* True if it is one of prof_op_timer_create()'s, or a copy. */
bool prof_i_stream_timer_is(const prof_op_timer *timer);

#endif
