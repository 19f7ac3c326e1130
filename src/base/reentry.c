/* See reentry.h. */
#include "reentry.h"

#include <prof/profiler.h>

#include "log.h"
#include "process.h"
#include "this_thread.h"

bool prof_i_reentry_is_refused(const char *call) {
  if (PROF_I_LIKELY(!prof_i_thread_is_interrupted())) return false;
  /* The thread may have forked with the control lock held. The child then has a new lock. */
  prof_i_process_is_own();
  if (!prof_i_thread_is_interrupted()) return false;
  prof_i_fail(PROF_E_BUSY,
              "%s: called in a signal handler that interrupted another call of prof on this "
              "thread; call it when the handler has returned, or on another thread",
              call);
  return true;
}
