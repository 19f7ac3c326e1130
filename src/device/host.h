/* What prof gives to back ends: see prof_backend_host of <prof/backend.h>. */
#ifndef PROF_DEVICE_HOST_H
#define PROF_DEVICE_HOST_H

#include <prof/backend.h>
#include <stdbool.h>

extern const prof_backend_host prof_i_device_host;

/* Takes records that a back end emits. False: they are not for this sink. */
typedef bool prof_i_host_sink(const void *records, size_t bytes);
/* Each emitted record goes to the sink first; NULL ends that. One sink at a time: the caller has
   made sure of it. Any thread. */
void prof_i_host_divert(prof_i_host_sink *sink);

#endif
