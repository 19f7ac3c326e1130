/* From a pair of events that are past to a scope of their stream in the capture. The collector
   alone. */
#ifndef PROF_DEVICE_RESOLVER_H
#define PROF_DEVICE_RESOLVER_H

#include "event_pair.h"

/* Creates the stream's clock, and reads it if that is possible. False: no memory. */
bool prof_i_resolver_prepare(prof_i_stream *stream);

/* Writes the pair's scope. now: the counter after the pair was found past. Inside the arena guard.
   Returns the loss, or -1. */
int prof_i_resolver_write_scope(prof_i_stream *stream, prof_i_event_pair *pair, uint64_t now);

/* The clock of a device's own times, which its vendor's records have: its events may have another.
   NULL: no memory. */
prof_i_device_clock *prof_i_resolver_device_clock(prof_i_backend *backend, uint32_t index);

/* In a forked child: the clocks are the parent's. */
void prof_i_resolver_forget(void);

#endif
