/* The thread that reads what devices have done: asks pairs of events whether they are past, and writes them as scopes of their stream. Made by the first scope that needs it, gone when recording stops. */
#ifndef PROF_DEVICE_COLLECTOR_H
#define PROF_DEVICE_COLLECTOR_H

#include <stdbool.h>

/* Is it there, or can it be made now? Then scopes may tell their devices. Any thread. */
bool prof_i_collector_is_wanted(void);

/* There is something to ask about. Any thread. */
void prof_i_collector_wake(void);

/* Counts a loss of a device's side. Any thread. */
void prof_i_collector_lose(int loss);

/* scope.c: in a forked child no thread's pairs are ours. */
void prof_i_device_scopes_forget(void);

#endif
