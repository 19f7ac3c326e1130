/* Converts rocprofiler's records to prof's: kernels, copies and calls, and what launched them. The
   collector alone. */
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

/* kinds: the wanted ones, as bits of prof_backend_kind. Calls may be recorded only to find
   launches. is_last: work without an end is not done, and lost. */
void prof_i_hip_records_begin(const prof_backend_host *host, const prof_i_hip_agent *agents,
                              uint32_t agent_count, uint32_t kinds, bool is_last);

/* Adds one record. Other kinds are ignored. */
void prof_i_hip_record_add(const prof_i_rocp_record *record);

/* Hands over records that wait for their call: those that waited at the last flush already, or
   (are_all) all. */
void prof_i_hip_records_flush(bool are_all);

/* The number of records that were not done, since the last call. */
uint64_t prof_i_hip_records_unfinished(void);

#endif
