/* From rocprofiler's records to prof's: kernels, copies and calls, and which call launched what.
   The collector alone. */
#ifndef PROF_HIP_RECORDS_H
#define PROF_HIP_RECORDS_H

#include <prof/backend.h>
#include <stdbool.h>

#include "tracer_api.h"

/* A GPU as rocprofiler numbers it, and where it is. */
typedef struct prof_i_hip_agent {
  uint64_t id;
  uint32_t location, domain; /* PCI */
} prof_i_hip_agent;
enum { PROF_I_HIP_AGENTS = 64 };

/* kinds: those that are wanted, by bits of prof_backend_kind: calls may be recorded for what they
   launched alone. is_last: what has no end by now is not done, and lost. */
void prof_i_hip_records_begin(const prof_backend_host *host, const prof_i_hip_agent *agents,
                              uint32_t agent_count, uint32_t kinds, bool is_last);

/* One record, of a kind that this is for; others are left alone. */
void prof_i_hip_record_add(const prof_i_rocp_record *record);

/* Hands over what waits for the call that launched it: what waited last time already, or (are_all)
   everything. */
void prof_i_hip_records_flush(bool are_all);

/* How many were not done, since the last time. */
uint64_t prof_i_hip_records_unfinished(void);

#endif
