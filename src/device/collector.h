/* The thread that reads what devices have done: asks pairs of events whether they are past, has
   back ends hand over what they recorded, and writes both as scopes of their stream. Made by the
   first scope or start that needs it, gone when recording stops. */
#ifndef PROF_DEVICE_COLLECTOR_H
#define PROF_DEVICE_COLLECTOR_H

#include <stdbool.h>

/* When prof is loaded: the core tells it of starts and stops from then on. */
void prof_i_collector_prepare(void);

/* Is it there, or can it be made now? Then scopes may tell their devices. Any thread. */
bool prof_i_collector_ensure(void);

/* There is something to ask about. Any thread. Signal-safe. */
void prof_i_collector_wake(void);

/* The same of what back ends have to hand over. Any thread. Signal-safe. */
void prof_i_collector_wake_for_records(void);

/* A vendor's library is there now: at exit the collector goes before what that has registered so
   far. Any thread. */
void prof_i_collector_register_exit(void);

/* Counts a loss of a device's side. Any thread. */
void prof_i_collector_count_loss(int loss);

/* gpu_scope.c: in a forked child no thread's pairs are ours. */
void prof_i_device_scopes_forget(void);

#endif
