/* Takes one operator's samples, step by step, so that several can be measured in turn. The steps
   are: read the request, prepare, sample until it is done, clean up, make the result. One thread.
   */
#ifndef PROF_OP_MEASURE_H
#define PROF_OP_MEASURE_H

#include "internal.h"
#include "series.h"

enum { PROF_I_CHAIN_TIMES_MAX = 64 }; /* readings of the processor's speed */

typedef struct prof_i_measurement {
  prof_op op;
  prof_op_options options;
  prof_op_timer timer;
  prof_i_host_time host; /* the host's timer's own */
  /* with the operator's user: before its runs, outside of their time, and after them; or NULL */
  void (*prepare_runs)(void *user), (*finish_runs)(void *user);
  prof_i_op_identity identity;
  int32_t exec;
  double timer_error_us; /* of the timer */
  double *samples;
  size_t count, room;
  int32_t warmup_count;    /* runs of the warm-up that there were */
  size_t next_check_count; /* at the median: when there are so many */
  uint64_t spent_ns;       /* all that passed in its turns, since it was prepared */
  uint64_t sampling_ns;    /* of it, since the first sample */
  uint64_t chain_timed_ns; /* the last reading of the processor's speed */
  double chain_times_us[PROF_I_CHAIN_TIMES_MAX];
  int chain_count;
  /* what a sample finds in caches is the timer's to write over, and not the processor's */
  bool has_own_caches;
  unsigned char *flush_buffer; /* written over before a cold sample */
  size_t flush_bytes;
  /* in a run of which the peak is taken: what it is counted in; else NULL */
  prof_i_workspace *counted;
  uint64_t workspace_bytes;
  uint32_t workspace_source; /* prof_op_workspace_source */
  int32_t workspace_status;
  /* of its device's meters, while samples are taken; others may have the same. NULL: there are
     none */
  prof_i_throttle_monitor *monitor;
  prof_i_throttle_samples looks;
  bool was_counted, is_prepared, is_time_over, is_converged, has_energy;
  double energy_uj; /* a run */
} prof_i_measurement;

/* Reads and completes the request. A status; nothing is held yet. */
int prof_i_measure_init(prof_i_measurement *m, const prof_op *op, const prof_op_options *options);

/* ---- several measurements in turn ---- */

/* Reads `count` operators, each as long as the first says. */
int prof_i_measure_init_all(prof_i_measurement *all, const prof_op *ops, size_t count,
                            const prof_op_options *options);

/* Prepares all, samples them in turn until each is done, cleans up in the opposite order, and
   makes their results; on an error those are all NULL. All have been initialised, and are
   finished here. */
int prof_i_measure_interleaved(prof_i_measurement *all, size_t count, prof_op_result **results_out);

#endif
