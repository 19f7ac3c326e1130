/* What a capture says about a device beyond its scopes: what it is, what its times are worth, and
   if there are none, why. One record a device and capture, whose counts go on changing. */
#ifndef PROF_DEVICE_DEVICE_STATE_H
#define PROF_DEVICE_DEVICE_STATE_H

#include "../format/layout.h"
#include "registry.h"

/* That device's record in the arena in force, made if it was not there; NULL: no room. Its
   counts are for atomic stores, the arena's as long as the gate is open: past the gate alone.
   Any thread. */
prof_i_device_state *prof_i_device_state_get(prof_device device, const prof_i_backend *backend);

/* The same where its own times are not there so far, and why; where they are, why others are not.
   Nothing changes if another reason stands there. Past the gate. Any thread. nobody: no back end
   serves it, and the registry says why; not past the gate, which it goes through itself. */
void prof_i_device_state_set_reason(prof_device device, const prof_i_backend *backend,
                                    int32_t result, const char *reason);
void prof_i_device_state_set_unserved(prof_device device);
/* Another thread is just opening its back end. Goes through the gate itself. */
void prof_i_device_state_set_too_early(prof_device device);

/* Its records have begun (end->late_ns): of its first device, and of those that are there already.
   Goes through the gate itself. */
void prof_i_device_state_set_late(const prof_i_backend *backend);

/* A forked child: what there was is the parent's. */
void prof_i_device_states_forget(void);

static inline void prof_i_device_count_add(uint64_t *count, uint64_t more) {
  __atomic_fetch_add(count, more, __ATOMIC_RELAXED);
}
static inline void prof_i_device_count_raise(uint64_t *most, uint64_t value) {
  uint64_t seen = __atomic_load_n(most, __ATOMIC_RELAXED);
  while (seen < value && !__atomic_compare_exchange_n(most, &seen, value, true, __ATOMIC_RELAXED,
                                                      __ATOMIC_RELAXED)) {
  }
}

#endif
