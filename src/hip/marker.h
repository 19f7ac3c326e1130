/* An event of prof's: a hipEvent_t. It belongs to a device, as its stream does, and is created
   where it is first put on a stream. */
#ifndef PROF_HIP_MARKER_H
#define PROF_HIP_MARKER_H

#include <stdint.h>

#include "api.h"

typedef struct prof_i_hip_marker {
  prof_i_hip_event event; /* NULL: none yet */
  uint32_t device;        /* of the event's */
} prof_i_hip_marker;

prof_i_hip_marker *prof_i_hip_marker_create(void); /* NULL: no memory */
void prof_i_hip_marker_destroy(prof_i_hip_marker *marker);

/* Puts it on the stream. The current device is what it was. */
int prof_i_hip_marker_record(prof_i_hip_marker *marker, prof_i_hip_stream stream);

/* OK: it is past; NOT_READY. */
int prof_i_hip_marker_query(prof_i_hip_marker *marker);

/* From a to b, of one device. The runtime reports a float of milliseconds. */
int prof_i_hip_marker_elapsed(prof_i_hip_marker *a, prof_i_hip_marker *b, int64_t *ns_out);

#endif
