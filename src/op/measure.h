/* Takes one operator's samples, step by step, so that several can be measured in turn. The steps
   are: read the request, prepare, sample until it is done, clean up, make the result. One thread.
   */
#ifndef PROF_OP_MEASURE_H
#define PROF_OP_MEASURE_H

#include "result.h"
#include "series.h"
#include "timer.h"
#include "workspace.h"

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

/* Prepares the operator, queries its workspace, warms it up, and finds how many runs make a sample.
   */
int prof_i_measure_prepare(prof_i_measurement *m);

/* What passed since *from_ns is this one's; *from_ns is now. */
void prof_i_measure_charge(prof_i_measurement *m, uint64_t *from_ns);

/* One sample. */
int prof_i_measure_sample(prof_i_measurement *m);

/* True if it has the requested number of samples, or took the requested time. */
bool prof_i_measure_is_at_limit(prof_i_measurement *m);

/* True if the median is known, or a limit is reached. Checks the samples less and less often. */
int prof_i_measure_is_done(prof_i_measurement *m, bool *is_done_out);

/* Makes the result of the samples. */
int prof_i_measure_result(prof_i_measurement *m, prof_op_result **result_out);

/* Cleans up if it was prepared, and gives back what is held. */
void prof_i_measure_fini(prof_i_measurement *m);

#endif
