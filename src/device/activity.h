/* What vendors' own tracing records: which back ends are asked for it, and since when; their
   records go to the capture (records.h). The collector alone, but for what says otherwise. */
#ifndef PROF_DEVICE_ACTIVITY_H
#define PROF_DEVICE_ACTIVITY_H

#include "registry.h"

/* Is there anybody to ask for records? Any thread. */
bool prof_i_activity_is_wanted(void);

/* A recording begins; is_waited_for: whoever began it does not go on before the first round. Any
   thread. */
void prof_i_activity_begin(bool is_waited_for);

/* Opens and starts what is wanted now, and takes what there is; how: prof_backend_drain. True: more
   is on its way. */
bool prof_i_activity_round(uint32_t how);

/* Records are wanted of a library that the program may yet begin to use. */
bool prof_i_activity_is_awaiting(void);
/* How long it may be before the next round then: what runs until that is not recorded. */
uint64_t prof_i_activity_poll_interval_ns(void);

/* A vendor's tracing is at work, and has buffers to empty. Any thread. */
bool prof_i_activity_is_on(void);

/* Recording ends. */
void prof_i_activity_end(void);

/* An operator's measurement starts, drains and stops it by itself until it gives it back; a
   recording that begins meanwhile asks it then. False: it records already, or another measurement
   has it. Any thread. */
bool prof_i_activity_acquire(const prof_i_backend *backend);
void prof_i_activity_release(const prof_i_backend *backend);

/* Of the back end of that table: its vendor is just beginning, on this thread, and lets records be
   asked for already: begin does that, looks at its clock, and touches no device. What it records is
   taken over by the next round that finds the program to have begun. Where nothing of it is wanted
   now, or memory is, too, or somebody else is at it, nothing happens. Waits for no round, and 0.2 s
   at most for who lists back ends or looks at this one. Any thread. */
typedef int prof_i_activity_preinit_fn(const prof_backend_host *host, uint32_t kinds,
                                       prof_backend_pair *look_out);
void prof_i_activity_begin_preinit(const prof_backend *table, prof_i_activity_preinit_fn *begin);

/* In a forked child. */
void prof_i_activity_forget(void);

#endif
