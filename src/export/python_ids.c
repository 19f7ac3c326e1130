/* See python_ids.h. */
#include "python_ids.h"

#include <stdlib.h>
#include <string.h>

#include "../trace/callers.h"
#include "../trace/capture.h"

/* A module's call has it, and it may be the first of its name: then no site tells. */
static bool has_key(const prof_i_schema *schema) {
  static const char key[] = "Python id";
  for (uint32_t i = 0; i < schema->count; i++) {
    const uint64_t *const text = schema->record + schema->keys[i];
    if (text[0] == sizeof key - 1 && memcmp(text + 1, key, sizeof key - 1) == 0) return true;
  }
  return false;
}

static bool has_functions(const prof_trace *trace) {
  const uint32_t site_count = prof_i_trace_site_count(trace);
  for (uint32_t site = 0; site < site_count; site++)
    if (prof_i_is_function_site(prof_i_trace_site(trace, site))) return true;
  for (uint32_t i = 0; i < trace->catalog.schema_count; i++)
    if (has_key(&trace->catalog.schemas[i])) return true;
  return false;
}

bool prof_i_python_ids_init(prof_i_python_ids *ids, const prof_trace *trace) {
  const uint32_t site_count = prof_i_trace_site_count(trace);
  *ids = (prof_i_python_ids){.trace = trace};
  if (!has_functions(trace)) return true;
  ids->is_function = calloc(site_count, sizeof *ids->is_function);
  if (!ids->is_function) return false;
  for (uint32_t site = 0; site < site_count; site++)
    ids->is_function[site] = prof_i_is_function_site(prof_i_trace_site(trace, site));
  return true;
}

void prof_i_python_ids_fini(prof_i_python_ids *ids) {
  free(ids->is_function);
  free(ids->promised);
  *ids = (prof_i_python_ids){0};
}

bool prof_i_python_ids_is_call(const prof_i_python_ids *ids, const prof_i_span *span) {
  if (!ids->is_function || span->kind > PROF_EVENT_OPEN) return false;
  if (!span->record) return ids->is_function[span->site];
  return prof_i_is_function_category(prof_i_trace_category(ids->trace, span));
}

static uint64_t end_of(const prof_i_span *span) { return span->start_ns + span->duration_ns; }

/* The place on lane 0's stack of the innermost call that holds the span; 0: none does. A span
   beside lane 0 may cross what stands there. */
static uint32_t place_around(const prof_i_python_ids *ids, prof_i_walker *walker,
                             const prof_i_span *span) {
  const prof_i_lane *const lane = &walker->lanes[0];
  const prof_i_waiting *at = span->lane == 0 ? prof_i_walker_around(walker, span)
                                             : &lane->stack[lane->count - 1];
  for (; at > lane->stack; at--) {
    const bool holds = span->lane == 0 || (at->span.start_ns <= span->start_ns &&
                                           end_of(&at->span) >= end_of(span));
    if (holds && prof_i_python_ids_is_call(ids, &at->span)) return (uint32_t)(at - lane->stack);
  }
  return 0;
}

/* Of a call on lane 0: the place that it had on the stack, and its number, if one was promised. */
static uint64_t take_promised(prof_i_python_ids *ids, prof_i_walker *walker,
                              const prof_i_span *span) {
  if (span->lane != 0) return 0;
  const uint32_t place =
      (uint32_t)(prof_i_walker_around(walker, span) - walker->lanes[0].stack) + 1;
  if (place >= ids->room) return 0;
  const uint64_t promised = ids->promised[place];
  ids->promised[place] = 0;
  return promised;
}

bool prof_i_python_ids_take(prof_i_python_ids *ids, prof_i_walker *walker, const prof_i_span *span,
                            prof_i_python_id *id_out) {
  const uint32_t around = place_around(ids, walker, span);
  const uint64_t promised = take_promised(ids, walker, span);
  id_out->own = promised ? promised : ++ids->last;
  id_out->parent = 0;
  if (around == 0) return true;
  if (!prof_i_reach_place((void **)&ids->promised, &ids->room, around, sizeof *ids->promised))
    return false;
  if (!ids->promised[around]) ids->promised[around] = ++ids->last;
  id_out->parent = ids->promised[around];
  return true;
}
