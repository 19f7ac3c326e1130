/* Arrows from PyTorch's forward calls to their backward calls, by what their arguments say:
   "Sequence number", and of a forward call "Thread id", of a backward one that number as its "Fwd
   thread id" (inject/torch/calls.c). As Kineto draws them: of several forward calls of one
   number the last one that began made the backward call, and of several backward calls the first
   has the arrow. */
#ifndef PROF_EXPORT_FORWARD_H
#define PROF_EXPORT_FORWARD_H

#include <prof/trace.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct prof_i_forward {
  uint64_t thread; /* torch's number of the forward thread */
  int64_t sequence;
  uint64_t start_ns, end_ns;
  uint64_t pid, tid; /* the track it stands on */
  bool is_backward;
  bool is_left_out; /* the scope is not in the file */
} prof_i_forward;

/* Whether an arrow is in the file, which both its ends must be. */
static inline bool prof_i_forwards_are_taken(const prof_i_forward ends[2]) {
  return !ends[0].is_left_out && !ends[1].is_left_out;
}

typedef struct prof_i_forwards {
  prof_i_forward *items;
  uint32_t count, room;
  uint64_t left_out_count; /* there was no memory */
} prof_i_forwards;

/* Keeps the scope if it is an operator with those arguments. is_left_out: the filter leaves the
   scope out. Its arrow is matched, but not written. */
void prof_i_forwards_add(prof_i_forwards *forwards, const prof_event *scope, uint64_t start_ns,
                         uint64_t pid, uint64_t tid, bool is_left_out);

/* Leaves the ends of arrows alone, a forward one right before its backward one. Arrows are in the
   order in which the backward calls ended: that is how Kineto numbers them. */
void prof_i_forwards_match(prof_i_forwards *forwards);

void prof_i_forwards_fini(prof_i_forwards *forwards);

#endif
