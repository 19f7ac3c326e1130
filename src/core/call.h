/* How a public call begins that takes a lock, allocates memory or writes files. If a signal handler
   interrupted prof on the same thread, what that call holds is given back only after the handler
   has returned. So a call from there is refused at once. */
#ifndef PROF_CORE_CALL_H
#define PROF_CORE_CALL_H

#include <stdbool.h>

/* True: this is a handler that interrupted prof, and the error's text names the call. A call from a
   callback that prof makes outside of its locks is none. Signal-safe. */
bool prof_i_call_is_refused(const char *call);

/* Returns the arguments from a call that is refused: PROF_E_BUSY, or nothing. */
#define PROF_I_REFUSE_INTERRUPTED(...) \
  if (prof_i_call_is_refused(__func__)) return __VA_ARGS__

#endif
