/* Ends that were in progress when a capture was copied, or its process was killed. Decides whether
   their scopes count as open, and which claims are not losses. Slots note such ends
   (core/buffer/ledger.h). Called by index.c while a trace is opened. */
#ifndef PROF_READER_UNUSED_CLAIM_H
#define PROF_READER_UNUSED_CLAIM_H

#include "capture.h"

/* Whether the scope of this entry, which another thread was ending, has a record or is counted as
   lost. */
bool prof_i_end_has_record(const prof_trace *trace, uint64_t ticks, uint32_t site);

/* How many scopes without an entry have a record, but are still counted as open in the slot. */
uint64_t prof_i_end_overflow_count(const prof_trace *trace, const prof_i_trace_thread *thread,
                                   const prof_i_thread_slot *slot);

/* Excuses the claims of ends that the slot notes: their scopes count as open, not as lost. Returns
   how many scopes without an entry have such claims. */
uint64_t prof_i_unused_claims_excuse(prof_trace *trace, const prof_i_trace_thread *thread,
                                     const prof_i_thread_slot *slot);
/* The claim is not a loss, unless the process has left the capture: then its scope has ended. */
void prof_i_unused_claim_excuse(prof_trace *trace, prof_i_trace_thread *thread,
                                prof_i_unused_claim *claim);

#endif
