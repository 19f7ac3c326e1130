/* The first check of public calls that take a lock, allocate memory or write files. A signal
   handler may have interrupted prof on the same thread. The interrupted call releases its locks
   only after the handler has returned. So calls of the handler are refused at once. */
#ifndef PROF_BASE_REENTRY_H
#define PROF_BASE_REENTRY_H

#include <stdbool.h>

/* True: a handler that interrupted prof calls, and the error's text names the call. Callbacks that
   prof calls outside of its locks are not refused. Signal-safe. */
bool prof_i_reentry_is_refused(const char *call);

/* If the call is refused, returns the argument: PROF_E_BUSY, or nothing. */
#define PROF_I_REFUSE_INTERRUPTED(...) \
  if (prof_i_reentry_is_refused(__func__)) return __VA_ARGS__

#endif
