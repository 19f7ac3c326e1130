/* What prof gives to back ends: see prof_backend_host of <prof/backend.h>. Higher files set where
   records go; the host knows nothing of them. */
#ifndef PROF_DEVICE_HOST_H
#define PROF_DEVICE_HOST_H

#include <prof/backend.h>
#include <stdbool.h>

extern const prof_backend_host prof_i_device_host;

/* Takes records that a back end emits. False: they are not for this sink. */
typedef bool prof_i_host_sink(const void *records, size_t bytes);

/* Each emitted record goes to this sink first; NULL ends that. One sink at a time: the caller
   ensures it. Any thread. */
void prof_i_host_set_first_sink(prof_i_host_sink *sink);

/* Then to the sink of the drain that is under way. Without one, records are counted as lost. The
   collector. */
void prof_i_host_set_drain_sink(prof_i_host_sink *sink);

/* Counts records. A malformed tail counts as one. */
uint64_t prof_i_host_count_records(const void *records, size_t bytes);

/* The recording asks all back ends for records. Any thread. */
bool prof_i_host_wants_records(void);

/* Bits of prof_backend_kind. Level 1: what devices do; 2: also the calls of their library. */
uint32_t prof_i_host_kinds_at_level(uint32_t level);

#endif
