/* What slow threads' begins and ends take. */
#ifndef PROF_CORE_RECORD_SCOPE_TIME_H
#define PROF_CORE_RECORD_SCOPE_TIME_H

#include "../buffer/thread.h"

typedef struct prof_i_slow_time {
  const prof_i_thread_slot *slot; /* NULL: it is not timed */
  uint64_t since_ns, own_ns;
} prof_i_slow_time;

/* On a slow thread one of eight begins and ends is timed, at random, and counts eightfold: each may
   search all open scopes of the thread. The time of a chunk change in between is left out: it is
   counted elsewhere. A search takes some 10 ns an open scope. More than a bound is time in
   which the thread did not run. */
prof_i_slow_time prof_i_slow_time_begin(prof_i_thread *thread);
void prof_i_slow_time_end(prof_i_thread *thread, const prof_i_slow_time *it);

#endif
