/* Events that the program has of what it put on a stream by itself: prof_device_event(). They wait
   in a ring of a fixed size until they are past, and are then told as records, of the innermost
   scope in which they were handed over. */
#ifndef PROF_DEVICE_EXTERNAL_EVENTS_H
#define PROF_DEVICE_EXTERNAL_EVENTS_H

#include <stdbool.h>

/* The collector: takes those that are past. True: some are not. */
bool prof_i_external_events_round(void);

/* Some wait, of this recording or, handed over while it was just ending, of the one before. Any
   thread. */
bool prof_i_external_events_pending(void);

/* Recording ends: the rest is lost, and counted. */
void prof_i_external_events_end(void);

/* In a forked child. */
void prof_i_external_events_forget(void);

#endif
