/* Starts and stops rocprofiler-sdk's records of kernels, copies and calls, and fetches them. */
#ifndef PROF_HIP_ACTIVITY_H
#define PROF_HIP_ACTIVITY_H

#include <prof/backend.h>
#include <stdbool.h>

/* Configures rocprofiler: must come before HIP begins. start() reports the result. One thread at a
   time. */
void prof_i_hip_activity_prepare(const prof_backend_host *host);

/* The same if rocprofiler itself asks a tool that ROCP_TOOL_LIBRARIES names, while HIP begins.
   Returns what rocprofiler_configure() returns. The kinds are recorded from HIP's first call on.
   is_ready: called when all is configured; it must not call HIP. NULL: this release is too old, or
   prof has configured it before. Any thread. */
void *prof_i_hip_activity_get_tool(const prof_backend_host *host, uint32_t kinds,
                                   void (*is_ready)(void));

/* Ends what was recorded from HIP's first call on. True: start() has taken it over, or, if not
   is_waiting, it has been stopped. One thread. */
bool prof_i_hip_activity_end_preinit(bool is_waiting);

/* True if HIP has begun, or if rocprofiler does not report it. False while HIP is being configured.
   Any thread. */
bool prof_i_hip_activity_has_begun(void);

/* As in prof_backend. The collector. */
int prof_i_hip_activity_start(const prof_backend_host *host, uint32_t kinds, uint32_t *kinds_out);
int prof_i_hip_activity_stop(void);
int prof_i_hip_activity_drain(const prof_backend_host *host, uint32_t how, uint64_t *lost_out);
int prof_i_hip_activity_clock(const prof_backend_host *host, prof_backend_pair *out);

#endif
