/* Arrows between scopes. Their ends are kept until all scopes have been written, then matched: readers refuse an end without a
   beginning, one that stands in no scope, or one that comes before its beginning. Bounded memory. */
#ifndef PROF_EXPORT_FLOW_H
#define PROF_EXPORT_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PROF_I_FLOWS_MAX = 1 << 20 }; /* 48 MiB of ends */

/* One end of an arrow. */
typedef struct prof_i_flow {
  uint64_t id;
  uint64_t start_ns;
  const char *name; /* the trace's bytes */
  uint32_t name_bytes;
  uint32_t thread;
  uint32_t track; /* number of the line it stands on */
  uint8_t is_end;
} prof_i_flow;

typedef struct prof_i_flows {
  prof_i_flow *items;
  size_t count;
  size_t room;
} prof_i_flows;

/* false: no more room, the end is left out. */
bool prof_i_flows_add(prof_i_flows *flows, const prof_i_flow *flow);

/* Drops what has no partner and sorts the rest, so that each beginning stands right before its end; an arrow id may come again,
   one after another. Returns how many were dropped. */
size_t prof_i_flows_match(prof_i_flows *flows);

void prof_i_flows_fini(prof_i_flows *flows);

#endif
