/* From a pair of events that are past to a scope of their stream in the capture. The collector
   alone. */
#ifndef PROF_DEVICE_HARVEST_H
#define PROF_DEVICE_HARVEST_H

#include "side.h"

/* The stream's clock is ready, and has been read since the last round where that can be done.
   False: no memory. */
bool prof_i_harvest_begin(prof_i_stream *stream);

/* Writes it. now: the counter after it was found past. Past the gate. The loss, or -1. */
int prof_i_harvest_scope(prof_i_stream *stream, prof_i_pair *pair, uint64_t now);

/* The clock of a device's own times, which its vendor's records have: its events may have another.
   NULL: no memory. */
prof_i_device_clock *prof_i_harvest_device_clock(prof_i_back_end *end, uint32_t index);

/* In a forked child: the clocks are the parent's. */
void prof_i_harvest_forget(void);

#endif
