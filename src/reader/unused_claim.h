/* Ends that were under way when a capture was copied, or when its process was killed: whether their
   scopes count as open, and which claims are no losses. core/buffer/ledger.h says how they are
   noted. Called by index.c while a trace is opened. */
#ifndef PROF_READER_ENDING_H
#define PROF_READER_ENDING_H

#include "capture.h"

/* Another thread was ending the scope of this entry: does its record stand, or is it counted as
   lost? */
bool prof_i_end_has_record(const prof_trace *trace, uint64_t ticks, uint32_t site);

/* How many scopes without an entry have a record, and are still counted as open by the thread that
   has the slot. */
uint64_t prof_i_end_overflow_count(const prof_trace *trace, const prof_i_trace_thread *thread,
                                   const prof_i_thread_slot *slot);

/* Excuses claims whose end the slot notes: their scopes count as open, not as lost. Returns how
   many scopes without an entry have such claims. */
uint64_t prof_i_unused_claims_excuse(prof_trace *trace, const prof_i_trace_thread *thread,
                                     const prof_i_thread_slot *slot);
/* The claim is no loss, unless its capture is left: then its scope is over. */
void prof_i_unused_claim_excuse(prof_trace *trace, prof_i_trace_thread *thread,
                                prof_i_unused_claim *claim);

#endif
