/* What devices did, by the thread that launched it and when: so that a walk of that thread meets it
   where it was launched. Caller's memory; one thread at a time. */
#ifndef PROF_ANALYSIS_LAUNCH_H
#define PROF_ANALYSIS_LAUNCH_H

#include <stdbool.h>

#include "../reader/walk.h"

/* A scope of a stream. */
typedef struct prof_i_launch {
  uint64_t at_ns;                          /* when it was launched */
  uint64_t start_ns, duration_ns, self_ns; /* self: of a side, without the sides in it */
  const uint64_t *record;
  uint32_t site;
  uint32_t thread; /* that launched it; UINT32_MAX: not in the capture */
  uint32_t stream; /* the thread of the capture that is its stream */
  uint32_t lane;   /* of the stream */
  /* prof_backend_kind: it may have been launched anywhere in a scope; 0: the device's side of one,
     which begins at at_ns */
  uint32_t kind;
  /* of what is told alone: where it was launched, for it is in the side there all the same */
  bool is_shadow;
} prof_i_launch;

typedef struct prof_i_launches {
  prof_i_launch *items; /* by thread, then at_ns, then start_ns, then where the record stands */
  uint32_t count, room;
  bool *has_gpu_scopes; /* by thread of the capture: scopes were put on that stream */
} prof_i_launches;

/* All of a trace. are_alone: what has a kind is told as if nobody had launched it, and has a shadow
   where somebody did. 0 or PROF_E_NO_MEMORY. */
int prof_i_launches_find(const prof_trace *trace, prof_i_launches *launches_out, bool are_alone);
void prof_i_launches_fini(prof_i_launches *launches);

/* A thread's: items from `first` on. Returns how many. */
uint32_t prof_i_launches_of_thread(const prof_i_launches *launches, uint32_t thread,
                                   uint32_t *first_out);

#endif
