/* See session.h. */
#include "session.h"

#include "../../base/process.h"

prof_i_session prof_i_the_session = {.epoch = 1};
uint32_t prof_i_memory_on;

void prof_i_session_ensure(void) {
  if (!prof_i_process_is_own() ||
      !__atomic_load_n(&prof_i_the_session.child_waits, __ATOMIC_RELAXED))
    return;
  prof_i_the_session.make_child();
}
