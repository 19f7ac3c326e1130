/* Vendors' own tracing: which back ends record, and since when. Their records go to the capture
   (records.c). Functions without a note are the collector's. */
#ifndef PROF_DEVICE_ACTIVITY_H
#define PROF_DEVICE_ACTIVITY_H

#include "registry.h"

/* True if a back end is to record. Any thread. */
bool prof_i_activity_is_wanted(void);

/* A recording begins. is_waited_for: its caller waits for the first round. Any thread. */
void prof_i_activity_begin(bool is_waited_for);

/* Opens and starts what is wanted now, and takes the records. how: prof_backend_drain. True: more
   records are on their way. */
bool prof_i_activity_round(uint32_t how);

/* Records are wanted of a library that the program does not use yet. */
bool prof_i_activity_is_awaiting(void);
/* The longest time to the next round in that case. Work that begins before the round is not
   recorded. */
uint64_t prof_i_activity_poll_interval_ns(void);

/* A vendor's tracing is at work, and has buffers to empty. Any thread. */
bool prof_i_activity_is_on(void);

/* Recording ends. */
void prof_i_activity_end(void);

/* Between these an operator's measurement starts, drains and stops the back end. A recording that
   begins meanwhile starts it afterwards. False: it records already, or another measurement has it.
   Any thread. */
bool prof_i_activity_acquire(const prof_i_backend *backend);
void prof_i_activity_release(const prof_i_backend *backend);

/* The vendor of that table is just beginning, on this thread, and allows records to be requested
   already. `begin` requests them and reads the clock; it touches no device. The next round after
   the program has begun takes the records over. Does nothing if no records or also memory are
   wanted, or another thread works on the back end. Waits for no round, and at most 0.2 s for a
   thread that lists or probes back ends. Any thread. */
typedef int prof_i_activity_preinit_fn(const prof_backend_host *host, uint32_t kinds,
                                       prof_backend_pair *look_out);
void prof_i_activity_begin_preinit(const prof_backend *table, prof_i_activity_preinit_fn *begin);

/* In a forked child. */
void prof_i_activity_forget(void);

#endif
