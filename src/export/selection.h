/* Selects arrows and memory events by a filter of scopes. They pass together with the scopes around
   them, so the trace is walked once before it is written. docs/reference/command.md has the rules.
   Called by driver.c and exporters.

   A moment of a thread passes if it is inside of a scope that passes. If the filter has no words
   for scopes (filter.h), it passes by its own thread, process, device and time. An arrow
   passes if both its ends do. An allocation passes by its moment and the device of its pool. Its
   free passes with it. */
#ifndef PROF_EXPORT_SELECTION_H
#define PROF_EXPORT_SELECTION_H

#include <stdbool.h>
#include <stdint.h>

#include "../analysis/filter.h"

typedef struct prof_i_filtered_count {
  uint64_t written, left_out;
} prof_i_filtered_count;

static inline void prof_i_filtered_count_add(prof_i_filtered_count *count, bool is_written) {
  count->written += is_written;
  count->left_out += !is_written;
}

/* Counts of a filtered export. */
typedef struct prof_i_export_filtered {
  /* Scopes and steps that passed, and those counters and instants that match all options. */
  uint64_t event_count;
  prof_i_filtered_count scopes;
  prof_i_filtered_count arrows; /* of those with both ends */
  prof_i_filtered_count memory; /* allocations, failed ones, and frees */
  prof_i_filtered_count values; /* counters and instants */
} prof_i_export_filtered;

typedef struct prof_i_selected_range {
  uint64_t start_ns, end_ns; /* both are inside */
} prof_i_selected_range;

/* The ranges of one thread, the latest first. They do not touch. */
typedef struct prof_i_selected_ranges {
  prof_i_selected_range *items;
  uint32_t count, room;
} prof_i_selected_ranges;

typedef enum prof_i_selected_part {
  PROF_I_SELECTED_BEGIN,
  PROF_I_SELECTED_END,
  PROF_I_LEFT_OUT_BEGIN /* of an arrow that does not pass */
} prof_i_selected_part;

/* A free that passes, or an end of an arrow. */
typedef struct prof_i_selected_event {
  uint64_t number; /* the arrow's id, or the address */
  uint64_t start_ns;
  uint32_t thread;
  uint32_t part; /* of an arrow: prof_i_selected_part, of memory: the pool's number */
} prof_i_selected_event;

typedef struct prof_i_selected_events {
  prof_i_selected_event *items; /* sorted */
  uint32_t count, room;
} prof_i_selected_events;

typedef struct prof_i_selection {
  prof_i_trace_filter *filter;
  bool has_scope_words, with_memory;
  prof_i_selected_ranges *scopes; /* by thread; NULL: not needed */
  /* The same without --device, for memory events: their device is that of their pool. */
  prof_i_selected_ranges *allocating_scopes;
  prof_i_filter any_device_words; /* a copy that shares the regular expression */
  prof_i_trace_filter any_device;
  prof_i_selected_events flow_ends, frees;
} prof_i_selection;

/* filter: initialized, and valid until fini. Returns 0 or PROF_E_NO_MEMORY. Call fini in both
   cases. */
int prof_i_selection_init(prof_i_selection *of, prof_i_trace_filter *filter, bool with_flows,
                          bool with_memory);
void prof_i_selection_fini(prof_i_selection *of);

/* Whether this time of a host thread passes. */
bool prof_i_selection_takes_moment(const prof_i_selection *of, uint32_t thread, uint64_t ns);

typedef struct prof_i_selected_memory {
  uint64_t address, ns;
  uint32_t thread, pool; /* the pool's number */
  prof_device device;    /* the pool's */
  bool is_free;
} prof_i_selected_memory;

bool prof_i_selection_takes_memory(const prof_i_selection *of, const prof_i_selected_memory *event);

/* Whether an event passes by its process, device and time alone. */
bool prof_i_selection_takes_place(const prof_i_selection *of, const prof_event *event);

/* Whether the event passes, and counts it. */
bool prof_i_selection_takes(const prof_i_selection *of, const prof_event *event,
                            prof_i_export_filtered *filtered);

#endif
