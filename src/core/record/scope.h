/* The parts of the hot path that cost.c and cost_sample.c measure, and the timing of slow paths. */
#ifndef PROF_CORE_RECORD_SCOPE_H
#define PROF_CORE_RECORD_SCOPE_H

#include <prof/scope.h>

#include "../buffer/thread.h"

/* Opens and closes `count` empty scopes as if on this thread. Its chunk has room for all. */
void prof_i_scope_run_empty(prof_i_thread *thread, prof_site *site, int count);
/* The twin: a scope that no reader sees, for measuring what the host's scopes cost (cost_sample.c).
   It takes the same way, through code and data of its own. These share no page with each other or
   with the recorder. */
typedef struct prof_i_twin_data prof_i_twin_data;
typedef struct prof_i_twin_calls {
  uint64_t (*begin)(const prof_i_twin_data *data, prof_site *site);
  uint64_t (*begin_details)(const prof_i_twin_data *data, prof_site *site,
                            const prof_details *details);
  void (*end)(const prof_i_twin_data *data, uint64_t start);
} prof_i_twin_calls;
struct prof_i_twin_data { /* like a table of addresses */
  prof_i_thread **thread; /* like thread-local data */
  prof_i_twin_calls calls;
};
typedef struct prof_i_twin {
  const prof_i_twin_calls *calls;
  const prof_i_twin_data *data;
} prof_i_twin;
void prof_i_scope_twin_link(prof_i_twin_calls *stubs, prof_i_twin_data *data);
/* Thread and site of the twin are ready. details: what the host's scope has beyond a literal name,
   or NULL. A scope with a long payload, or on a device, begins as a plain one. */
uint64_t prof_i_scope_twin_begin(const prof_i_twin *twin, prof_site *site,
                                 const prof_details *details);
void prof_i_scope_twin_end(const prof_i_twin *twin, uint64_t start);

/* As prof_i_scope_run_empty(), with begins of a muted site only. */
void prof_i_scope_run_left_out(prof_i_thread *thread, prof_site *site, int count);

/* ---- the time of begins and ends on the slow path ---- */

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
