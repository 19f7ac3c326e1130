/* Events of commands that the program enqueued: prof_device_event(). They wait in a queue of a
   fixed size until they are past. Then they become records of the innermost scope in which they
   were handed over. */
#ifndef PROF_DEVICE_EXTERNAL_EVENTS_H
#define PROF_DEVICE_EXTERNAL_EVENTS_H

#include <stdbool.h>

/* The collector: takes those that are past. True: some are not. */
bool prof_i_external_events_round(void);

/* Some wait: of this recording, or of the previous one if they came while it was ending. Any
   thread. */
bool prof_i_external_events_pending(void);

/* Recording ends: the rest is lost, and counted. */
void prof_i_external_events_end(void);

/* In a forked child. */
void prof_i_external_events_forget(void);

#endif
