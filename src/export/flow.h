/* Arrows between scopes. Their ends are kept until all scopes have been written, then matched.
   Readers refuse an end without a beginning, and one that comes before its beginning. They refuse
   one that stands in no scope, too: the writer gives that one a mark to stand at. Bounded
   memory. */
#ifndef PROF_EXPORT_FLOW_H
#define PROF_EXPORT_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

#endif
