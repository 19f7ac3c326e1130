/* Memory that vendors' libraries hand out, as pools of prof: one for each device, one for memory
   that both sides share, one for pinned host memory. A back end reports each block late, in the
   order of times. The collector alone. */
#ifndef PROF_DEVICE_DEVICE_MEMORY_H
#define PROF_DEVICE_DEVICE_MEMORY_H

#include "registry.h"

/* Creates the pools of all its devices before it begins to report. False: not now, a start or stop
   is under way. Without a lock, outside of the arena guard. */
bool prof_i_device_memory_prepare(prof_i_backend *backend);

/* Writes one block at that host time. Returns the loss, or -1: written, or it was not handed out
   since. Inside the arena guard. */
int prof_i_device_memory_write(const prof_i_backend *backend, const prof_backend_memory *it,
                               uint64_t ticks);

/* Recording ends, and its virtual thread with it. */
void prof_i_device_memory_end_thread(void);

/* In a forked child. */
void prof_i_device_memory_forget(void);

#endif
