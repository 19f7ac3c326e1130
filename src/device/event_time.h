/* When an event was, in ns of its stream's clock: as the back end says, or, where that says only
   how far two events are apart, from an event of the stream's that stands for zero. */
#ifndef PROF_DEVICE_EVENT_TIME_H
#define PROF_DEVICE_EVENT_TIME_H

#include "event_pair.h"

/* The event is past. It may be kept for zero: another one of the same stream then stands in its
   place. False: no time is told. The collector. */
bool prof_i_event_time_get(prof_i_stream *stream, void **event, uint64_t *ns_out);

/* Both are past, and the first has no time. True: they have a distance, so it is the zero that has
   gone, with a context of the vendor's, say, and the handle is another stream's. The first becomes
   the zero: what is told from now on is at no known distance from what was told before. The
   collector. */
bool prof_i_event_time_restart(prof_i_stream *stream, void **first, void *second,
                               uint64_t *first_ns_out);

#endif
