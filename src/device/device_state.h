/* What a capture says about a device beyond its scopes: its description, how exact its times are,
   or why it has none. One record for each device and capture. Its counts change while recording. */
#ifndef PROF_DEVICE_DEVICE_STATE_H
#define PROF_DEVICE_DEVICE_STATE_H

#include "../format/layout.h"
#include "registry.h"

/* That device's record in the arena in force, made if it was not there; NULL: no room. Its counts
   are for atomic stores. Inside the arena guard: the record is the arena's. Any thread. */
prof_i_device_state *prof_i_device_state_get(prof_device device, const prof_i_backend *backend);

/* Says why the device's own times are missing. If it has some: why others are missing. The first
   reason stays. backend: NULL if none serves the device. Inside the arena guard. Any thread. */
void prof_i_device_state_set_reason(prof_device device, const prof_i_backend *backend,
                                    int32_t result, const char *reason);

/* The same outside of the arena guard: enters it, or does nothing while the arena is being
   replaced. Any thread, as all below. */
void prof_i_device_state_report(prof_device device, const prof_i_backend *backend, int32_t result,
                                const char *reason);
/* No back end serves the device: the registry says why. */
void prof_i_device_state_report_unserved(prof_device device);
/* Another thread is just opening its back end. */
void prof_i_device_state_report_too_early(prof_device device);
/* The device was not done with its work when recording stopped. */
void prof_i_device_state_report_unfinished(prof_device device, const prof_i_backend *backend);
/* The back end's records began late (backend->late_ns): of its first device, and of those that have
   a record already. */
void prof_i_device_state_report_late(const prof_i_backend *backend);

/* In a forked child: the records are the parent's. */
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
