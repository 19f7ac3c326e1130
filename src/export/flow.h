/* Arrows between scopes. Their ends are kept until all scopes have been written, then matched. */
#ifndef PROF_EXPORT_FLOW_H
#define PROF_EXPORT_FLOW_H

#include <prof/trace.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- arrows of the program ---- */

/* Readers refuse an end without a beginning, and one that comes before its beginning. They also
   refuse one in no scope, so the writer gives that one a mark to stand at. Memory is bounded. */

enum { PROF_I_FLOWS_MAX = 1 << 20 }; /* 48 MiB of ends */

#define PROF_I_NO_FLOW UINT32_MAX

/* One end of an arrow. */
typedef struct prof_i_flow {
  uint64_t id;
  uint64_t start_ns;
  const char *name; /* the trace's bytes */
  uint32_t name_bytes;
  uint32_t pid, tid; /* of the track it stands on */
  uint32_t below;    /* while its scope has not come: the end that waited before it */
  uint16_t depth;    /* of it; the scope around it has one less */
  uint8_t is_end;
  uint8_t is_held; /* it stands in a scope that has been written */
} prof_i_flow;

typedef struct prof_i_flows {
  prof_i_flow *items;
  uint32_t count, room;
  /* the last end whose scope has not come; inner scopes come first, so it is a stack */
  uint32_t pending;
} prof_i_flows;

void prof_i_flows_init(prof_i_flows *flows);

/* false: no more room, the end is left out. */
bool prof_i_flows_add(prof_i_flows *flows, const prof_i_flow *flow);

/* A scope of that depth, for the ends that wait for it. An end at the very moment of the scope's
   end is moved 1 ns before: there the scope is over to readers, and a coarse clock gives such
   times. */
void prof_i_flows_bind(prof_i_flows *flows, uint16_t depth, uint64_t start_ns, uint64_t end_ns);

/* The same for a scope that a filter leaves out. The ends stay pending for the scope around it. */
void prof_i_flows_pass_over(prof_i_flows *flows, uint16_t depth);

/* The thread's last scope has come: what still waits stands in none. */
void prof_i_flows_next_thread(prof_i_flows *flows);

/* Drops and counts what has no partner, and sorts the rest, so that each beginning stands right
   before its end. An id may come again after its end. *outside_out: how many of the rest stand in
   no scope. */
void prof_i_flows_match(prof_i_flows *flows, size_t *outside_out, size_t *alone_out);

void prof_i_flows_fini(prof_i_flows *flows);

/* ---- from forward to backward calls ---- */

/* PyTorch's calls tell by their arguments: "Sequence number", and of a forward call "Thread id", of
   a backward one that number as its "Fwd thread id" (inject/torch/calls.c). The arrows are as
   Kineto draws them. If several forward calls have one number, the last one that began made the
   backward call. Of several backward calls the first has the arrow. */

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
