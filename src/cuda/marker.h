/* An event of prof's: a CUevent. It belongs to a context, as its stream does, and is created where
   it is first put on a stream. A default stream is that of the context which is current on this
   thread. */
#ifndef PROF_CUDA_MARKER_H
#define PROF_CUDA_MARKER_H

#include <stdint.h>

#include "api.h"

typedef struct prof_i_cuda_marker {
  prof_i_cu_event event; /* NULL: none yet */
  /* of the event's: when that goes, the event does, and must not be asked for any more */
  prof_i_cu_context context;
  uint32_t registered_generation; /* its stream, by CUPTI: see streams.h */
  /* unique for ever; 0: a driver before 12.0, which has none */
  unsigned long long context_number;
} prof_i_cuda_marker;

prof_i_cuda_marker *prof_i_cuda_marker_create(void); /* NULL: no memory */
void prof_i_cuda_marker_destroy(prof_i_cuda_marker *marker);

/* Puts it on the stream. */
int prof_i_cuda_marker_record(prof_i_cuda_marker *marker, prof_i_cu_stream stream);

/* OK: it is past; NOT_READY. */
int prof_i_cuda_marker_query(prof_i_cuda_marker *marker);

/* From a to b, of one context. The driver reports a float of milliseconds. */
int prof_i_cuda_marker_elapsed(prof_i_cuda_marker *a, prof_i_cuda_marker *b, int64_t *ns_out);

#endif
