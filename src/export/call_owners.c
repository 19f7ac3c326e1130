/* See call_owners.h. */
#include "call_owners.h"

#include <stdlib.h>
#include <string.h>

#include "../reader/capture.h"

static bool span_is_on_main_lane(const prof_i_span *span) {
  return span->lane == 0 && span->depth > 0 && span->depth <= PROF_I_OWNER_DEPTHS;
}

/* 0: no memory. */
static uint32_t reserve_id(prof_i_call_owners *owners) {
  if (!prof_i_make_room_at_index((void **)&owners->reserved, &owners->reserved_room,
                                 owners->reserved_count + 1, sizeof *owners->reserved))
    return 0;
  owners->reserved[++owners->reserved_count] = (prof_i_reserved_id){0};
  return owners->reserved_count;
}

/* The promise to the scope of lane 0 at that depth; 0: none. */
static uint32_t take_reserved_id(prof_i_call_owners *owners, const prof_i_span *span) {
  if (span->lane != 0 || span->depth >= PROF_I_OWNER_DEPTHS) return 0;
  const uint32_t promise = owners->open[span->depth];
  owners->open[span->depth] = 0;
  owners->open_count -= promise != 0;
  return promise;
}

/* Passes the request on to the scope around this one. own: this scope's promise, or a new one.
   Returns the promise of the scope around; 0: no memory. */
static uint32_t reserve_around(prof_i_call_owners *owners, const prof_i_span *span, uint32_t own) {
  uint32_t *const around = &owners->open[span->depth - 1];
  if (*around) {
    if (own) owners->reserved[own].outer = *around;
    return *around;
  }
  *around = own ? own : reserve_id(owners);
  owners->open_count += *around != 0;
  return *around;
}

bool prof_i_call_owners_add_span(prof_i_call_owners *owners, const prof_i_span *span, bool is_call,
                                 prof_i_call_owner_kind holder, uint64_t place) {
  const uint32_t own = take_reserved_id(owners, span);
  if (!is_call && !own) return true;
  if (!is_call && holder != PROF_I_HOLDER_PASSES) {
    owners->reserved[own].id = holder == PROF_I_HOLDER_OPERATOR ? place + 1 : 0;
    return true;
  }
  if (!span_is_on_main_lane(span)) return true;
  const uint32_t around = reserve_around(owners, span, own);
  if (!around) return false;
  if (!is_call) return true;
  if (!prof_i_make_room((void **)&owners->calls, &owners->call_room, owners->call_count,
                        sizeof *owners->calls))
    return false;
  owners->calls[owners->call_count++] = around;
  return true;
}

void prof_i_call_owners_end_thread(prof_i_call_owners *owners, uint64_t first, uint64_t count) {
  prof_i_reserved_id *const reserved = owners->reserved;
  for (uint32_t i = owners->reserved_count; i > 0; i--) { /* an outer one may be any other */
    uint32_t at = i;
    while (reserved[at].outer) at = reserved[at].outer;
    reserved[i].id = reserved[at].id;
    if (at != i) reserved[i].outer = at;
  }
  for (uint32_t i = owners->call_first; i < owners->call_count; i++) {
    const uint64_t place = reserved[owners->calls[i]].id;
    owners->calls[i] = place ? first + count - place : 0;
  }
  owners->call_first = owners->call_count;
  owners->reserved_count = owners->open_count = 0;
  memset(owners->open, 0, sizeof owners->open);
}

uint64_t prof_i_call_owners_next_id(prof_i_call_owners *owners, const prof_i_span *span) {
  if (!span_is_on_main_lane(span) || owners->call_at >= owners->call_count) return 0;
  return owners->calls[owners->call_at++];
}

void prof_i_call_owners_fini(prof_i_call_owners *owners) {
  free(owners->calls);
  free(owners->reserved);
  *owners = (prof_i_call_owners){0};
}
