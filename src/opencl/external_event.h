/* An event of a command of the program, kept until the command is past: its START and END are the
   kernel's own. The first ones have a marker of prof's beside them, which shows whose clock these
   are (clock.h). */
#ifndef PROF_OPENCL_EXTERNAL_EVENT_H
#define PROF_OPENCL_EXTERNAL_EVENT_H

#include "marker.h"

typedef struct prof_i_opencl_external_event prof_i_opencl_external_event;

/* Retains it; the queue is the one that its command is on. UNSUPPORTED: that records no times. Any
   thread. */
int prof_i_opencl_external_event_create(prof_i_cl_queue queue, prof_i_cl_event event,
                                        prof_i_opencl_external_event **kept_out);

/* OK; NOT_READY; the command failed, or has no times. */
int prof_i_opencl_external_event_times(prof_i_opencl_external_event *kept, uint64_t *start_ns_out,
                                       uint64_t *end_ns_out);

void prof_i_opencl_external_event_destroy(prof_i_opencl_external_event *kept);

#endif
