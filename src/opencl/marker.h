/* An event of prof's: a marker on a command queue. Its cl_event keeps queue and context alive. So
   the event is released as soon as its time has been read, and only numbers are kept. */
#ifndef PROF_OPENCL_MARKER_H
#define PROF_OPENCL_MARKER_H

#include "clock.h"

typedef struct prof_i_opencl_marker {
  prof_i_cl_event event; /* NULL: none is on its way */
  int32_t result;        /* without one: what a query says */
  int32_t time_error;    /* of what is past: why it has no time; 0: it has */
  uint64_t end_ns;
  /* from a different one on for each: so that few of them are samples at once */
  uint32_t use_count;
  prof_i_opencl_sample *sample; /* NULL: this is not a sample; only a few are */
} prof_i_opencl_marker;

prof_i_opencl_marker *prof_i_opencl_marker_create(void); /* NULL: no memory */
void prof_i_opencl_marker_destroy(prof_i_opencl_marker *marker);

/* UNSUPPORTED: the queue records no times. */
int prof_i_opencl_marker_check(prof_i_cl_queue queue);

/* Puts it on the queue. UNSUPPORTED: the queue records no times. */
int prof_i_opencl_marker_record(prof_i_opencl_marker *marker, prof_i_cl_queue queue);

/* OK: it is past; NOT_READY. */
int prof_i_opencl_marker_query(prof_i_opencl_marker *marker);

int prof_i_opencl_marker_time(prof_i_opencl_marker *marker, uint64_t *ns_out);

#endif
