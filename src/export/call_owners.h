/* Chrome JSON: whose "External id" a vendor's call has, in a trace with PyTorch's operators. As
   Kineto has it, that is the innermost operator or range around the call. Traced functions and
   calls in between are skipped. The walk hands out a call before what holds it. So a first walk
   (event_numbers.c) finds each call's operator, and the second one (chrome_event.c) asks for it. */
#ifndef PROF_EXPORT_CALL_OWNERS_H
#define PROF_EXPORT_CALL_OWNERS_H

#include <stdbool.h>
#include <stdint.h>

#include "../reader/walk.h"

/* Deeper than Perfetto draws. Calls below this depth belong to no scope. */
enum { PROF_I_OWNER_DEPTHS = 512 };

/* The id that the calls in a scope will get from it. */
typedef struct prof_i_reserved_id {
  uint64_t id;    /* of the operator; 0: it was no operator */
  uint32_t outer; /* the promise of the scope around it, if that has the id; 0: none */
} prof_i_reserved_id;

typedef struct prof_i_call_owners {
  uint64_t *calls; /* of each call on lane 0, in the order of both walks: its operator's id; 0 */
  uint32_t call_count, call_room;
  uint32_t call_at; /* of the second walk: the next call */
  /* These of the thread that the first walk is at. */
  uint32_t call_first;
  prof_i_reserved_id *reserved; /* from 1 on */
  uint32_t reserved_count, reserved_room;
  uint32_t open_count; /* depths with a promise */
  uint32_t open[PROF_I_OWNER_DEPTHS];
} prof_i_call_owners;

typedef enum prof_i_call_owner_kind {
  PROF_I_HOLDER_OPERATOR,
  PROF_I_HOLDER_PASSES, /* a function: what is around it may be an operator */
  PROF_I_HOLDER_OTHER
} prof_i_call_owner_kind;

static inline bool prof_i_call_owners_needs(const prof_i_call_owners *owners, bool is_call) {
  return is_call || owners->open_count > 0;
}

/* Of a span that is wanted. place: how many operators of the thread were handed out before it.
   False: no memory. */
bool prof_i_call_owners_add_span(prof_i_call_owners *owners, const prof_i_span *span, bool is_call,
                                 prof_i_call_owner_kind holder, uint64_t place);

/* The thread's operators have the ids from first to first + count - 1, by begin. */
void prof_i_call_owners_end_thread(prof_i_call_owners *owners, uint64_t first, uint64_t count);

/* The operator's id of the call that the second walk has just handed out; 0: it has none. */
uint64_t prof_i_call_owners_next_id(prof_i_call_owners *owners, const prof_i_span *span);

void prof_i_call_owners_fini(prof_i_call_owners *owners);

#endif
