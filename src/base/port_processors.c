/* Where threads may run, and how one gets to another processor: behind port.h. Only of threads that
   are this library's own is anything changed, and nothing that lasts. */
#define _GNU_SOURCE
#include <sched.h>

#include "port.h"

size_t prof_i_port_processor_count(void) {
  cpu_set_t allowed;
  return sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? (size_t)CPU_COUNT(&allowed)
                                                             : SIZE_MAX;
}

int prof_i_port_processor(void) { return sched_getcpu(); }

/* The place-th of those allowed, counted around from behind the one that is taken; the taken one
   itself if there is no other. */
static size_t find_processor(const cpu_set_t *allowed, size_t taken, size_t place) {
  size_t at = taken;
  for (size_t steps = 0; place > 0 && steps < place * (size_t)CPU_SETSIZE; steps++) {
    at = (at + 1) % (size_t)CPU_SETSIZE;
    if (at != taken && CPU_ISSET(at, allowed)) place--;
  }
  return at;
}

void prof_i_port_move_off_processor(int taken, size_t place) {
  cpu_set_t allowed, one;
  if (taken < 0 || taken >= CPU_SETSIZE || sched_getaffinity(0, sizeof allowed, &allowed) != 0)
    return;
  const size_t at = find_processor(&allowed, (size_t)taken, place);
  if (!CPU_ISSET(at, &allowed)) return;
  CPU_ZERO(&one);
  CPU_SET(at, &one);
  if (sched_setaffinity(0, sizeof one, &one) == 0)
    /* it stays there, until the kernel has a reason */
    sched_setaffinity(0, sizeof allowed, &allowed);
}
