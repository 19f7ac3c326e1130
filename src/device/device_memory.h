/* What vendors' libraries hand out, as pools of prof's own: one for each device's memory, one for
   what is both sides', one for the host's that they pinned. Told late and by a back end, piece by
   piece in the order of their times. The collector alone. */
#ifndef PROF_DEVICE_DEVICE_MEMORY_H
#define PROF_DEVICE_DEVICE_MEMORY_H

#include "registry.h"

/* Makes the pools of all its devices, before it begins to tell. False: not now, somebody starts or
   stops. No lock, outside of the gate. */
bool prof_i_device_memory_prepare(prof_i_backend *backend);

/* One piece, at that moment of the host's. Returns the loss, or -1: it stands, or is nothing that
   was handed out since. Past the gate. */
int prof_i_device_memory_write(const prof_i_backend *backend, const prof_backend_memory *it,
                               uint64_t ticks);

/* Recording ends: its line does, too. */
void prof_i_device_memory_end_thread(void);

/* In a forked child. */
void prof_i_device_memory_forget(void);

#endif
