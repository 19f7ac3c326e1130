/* Which devices record, and how core reaches them: src/device, which core does not know, sets hooks
   here. See control.h and internal.h. */
#include "../../base/port.h"
#include "control.h"
#include "internal.h"
#include "level.h"

/* Set once, from any thread; NULL: the library has no devices. */
static const prof_i_device_hooks *device_hooks PROF_I_WRITTEN_AT_LOAD;

static struct {
  uint32_t requested;          /* prof_devices. Written under the control lock. Atomic, relaxed */
  uint32_t preferred;          /* where neither options nor level requests name devices. The lock */
  prof_i_device_warning *warn; /* set by any thread. Atomic, relaxed */
} devices;

PROF_I_COLD void prof_i_control_set_devices(const prof_i_device_hooks *hooks) {
  __atomic_store_n(&device_hooks, hooks, __ATOMIC_RELEASE);
}

const prof_i_device_hooks *prof_i_control_device_hooks(void) {
  return __atomic_load_n(&device_hooks, __ATOMIC_ACQUIRE);
}

void prof_i_control_resolve_devices(void) {
  if (prof_i_control_device_hooks()) prof_i_control_device_hooks()->harvest();
}

void prof_i_control_set_device_warning(prof_i_device_warning *warn) {
  __atomic_store_n(&devices.warn, warn, __ATOMIC_RELAXED);
}
void prof_i_control_device_warning(char *to, size_t room) {
  prof_i_device_warning *const warn = __atomic_load_n(&devices.warn, __ATOMIC_RELAXED);
  if (warn) warn(to, room);
}

uint32_t prof_i_control_devices(void) {
  return __atomic_load_n(&devices.requested, __ATOMIC_RELAXED);
}

/* The options decide, then the level requests, then the preference of a vendor's library that loads
   prof. */
void prof_i_control_choose_devices(uint32_t by_options) {
  const uint32_t said = by_options ? by_options : prof_i_level_request_devices();
  __atomic_store_n(&devices.requested, said ? said : devices.preferred, __ATOMIC_RELAXED);
}

void prof_i_control_set_preferred_devices(uint32_t wanted) { devices.preferred = wanted; }
