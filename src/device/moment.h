/* When an event was, in ns of its stream's clock: as the back end says, or, where that says only how far two events are apart, from an event of the stream's that stands for zero. */
#ifndef PROF_DEVICE_MOMENT_H
#define PROF_DEVICE_MOMENT_H

#include "side.h"

/* The event is past. It may be kept for zero: another one of the same stream then stands in its place. False: no time is told. The collector. */
bool prof_i_moment_of(prof_i_stream *stream, void **event, uint64_t *ns_out);

#endif
