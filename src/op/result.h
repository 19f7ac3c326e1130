/* A finished measurement: its samples, their statistics, and the request. Immutable. */
#ifndef PROF_OP_RESULT_H
#define PROF_OP_RESULT_H

#include <prof/op.h>
#include <stdbool.h>

#include "throttle_monitor.h"

/* What has to be equal for a result to be handed out again. */
typedef struct prof_i_op_identity {
  prof_device device;
  int32_t warmup, exec, repeat;
  uint32_t repeat_all, caches;
  uint32_t is_device_warm; /* see prof_op_info */
  uint64_t least_ns, time_limit_ns;
  double precision;
  uint32_t vendor_memory, open_meters;
  char timer[64];
  char driver[512]; /* and the device's model; of the host, the processor's */
} prof_i_op_identity;

struct prof_op_result {
  prof_op_result *next; /* in the cache */
  prof_i_op_identity identity;
  uint64_t interleave_id; /* those that were measured in turn have the same one; 0: alone */
  prof_op_info info;
  size_t count, bytes; /* samples; of all this */
  double *sorted;      /* behind the samples */
  char *key;           /* behind them */
  double samples[];
};

/* What a measurement found. */
typedef struct prof_i_facts {
  const double *samples; /* us a run */
  size_t count;
  int32_t exec, warmup; /* runs a sample, and of the warm-up */
  uint64_t workspace_bytes;
  uint32_t workspace_source; /* prof_op_workspace_source */
  int32_t workspace_status;
  bool has_workspace, is_time_over, has_energy;
  double energy_uj; /* a run */
  double timer_us;  /* what a sample may be wrong by */
  double slowdown;  /* see prof_op_info */
  prof_i_throttle_samples looks;
} prof_i_facts;

/* Copies the samples and the key, and computes the statistics. NULL: no memory. */
prof_op_result *prof_i_result_create(const prof_i_op_identity *identity, const char *key,
                                     const prof_i_facts *facts);
prof_op_result *prof_i_result_copy(const prof_op_result *result);

#endif
