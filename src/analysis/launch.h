/* Work of devices, by launching thread and launch time, so that a walk of the thread meets it where
   it was launched. The memory is the caller's. One thread at a time. */
#ifndef PROF_ANALYSIS_LAUNCH_H
#define PROF_ANALYSIS_LAUNCH_H

#include <stdbool.h>

#include "../reader/walk.h"

/* A scope of a stream. */
typedef struct prof_i_launch {
  uint64_t at_ns;                          /* when it was launched */
  uint64_t start_ns, duration_ns, self_ns; /* self: without GPU scopes inside */
  const uint64_t *record;
  uint32_t site;
  uint32_t thread; /* that launched it; UINT32_MAX: not in the capture */
  uint32_t stream; /* the thread of the capture that is its stream */
  uint32_t lane;   /* of the stream */
  /* prof_backend_kind of a record, launched anywhere in a scope. 0: a GPU scope, whose host scope
     begins at at_ns */
  uint32_t kind;
  /* marks where a record without a thread was launched: its time is in that GPU scope */
  bool is_shadow;
} prof_i_launch;

typedef struct prof_i_launches {
  prof_i_launch *items; /* by thread, at_ns, start_ns, address of the record */
  uint32_t count, room;
  bool *has_gpu_scopes; /* by thread of the capture: scopes were put on that stream */
} prof_i_launches;

/* Finds all of a trace. are_alone: launches with a kind get no thread, and a shadow in the thread
   that launched them. 0 or PROF_E_NO_MEMORY. */
int prof_i_launches_find(const prof_trace *trace, prof_i_launches *launches_out, bool are_alone);
void prof_i_launches_fini(prof_i_launches *launches);

/* The launches of a thread: items from *first_out on. Returns their count. */
uint32_t prof_i_launches_of_thread(const prof_i_launches *launches, uint32_t thread,
                                   uint32_t *first_out);

#endif
