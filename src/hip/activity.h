/* Kernels, copies and calls by rocprofiler-sdk: when it is configured, started and stopped, and its
   records handed over. */
#ifndef PROF_HIP_ACTIVITY_H
#define PROF_HIP_ACTIVITY_H

#include <prof/backend.h>
#include <stdbool.h>

/* Must come before HIP begins: from then on nothing can be configured. What comes of it, start()
   says. One thread at a time. */
void prof_i_hip_activity_prepare(const prof_backend_host *host);

/* The same where rocprofiler itself asks what is wanted, of a tool that it was told of
   (ROCP_TOOL_LIBRARIES), while HIP begins: what rocprofiler_configure() returns. The kinds are
   recorded from HIP's first call on. is_ready: called when all is configured; it must not call HIP.
   NULL: this release is none that serves, or prof has asked before. Any thread. */
void *prof_i_hip_activity_get_tool(const prof_backend_host *host, uint32_t kinds,
                                   void (*is_ready)(void));

/* Of what is recorded from HIP's first call on: true when start() has taken it over, or, where
   nobody waits for that any more, when it has been stopped. One thread. */
bool prof_i_hip_activity_end_preinit(bool is_waiting);

/* Has HIP begun, as far as is known? True where nobody tells; false while it is being configured.
   Any thread. */
bool prof_i_hip_activity_has_begun(void);

/* As in prof_backend. The collector. */
int prof_i_hip_activity_start(const prof_backend_host *host, uint32_t kinds, uint32_t *kinds_out);
int prof_i_hip_activity_stop(void);
int prof_i_hip_activity_drain(const prof_backend_host *host, uint32_t how, uint64_t *lost_out);
int prof_i_hip_activity_clock(const prof_backend_host *host, prof_backend_pair *out);

#endif
