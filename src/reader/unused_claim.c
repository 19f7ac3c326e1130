/* Matches the endings that slots note with records, losses and unused claims. */
#include "unused_claim.h"

#include "../format/parse.h"

/* Whether the segment has a scope's record with this start. site: only of a scope that ended on
   another thread than it began on; UINT32_MAX: of any. */
static bool end_has_record(const prof_i_segment *segment, uint64_t ticks, uint32_t site) {
  const uint64_t *at = segment->words;
  for (uint64_t left = segment->slot_count, slots; left > 0; at += slots * 2, left -= slots) {
    prof_i_long_record record;
    const prof_i_parse_result sight =
        prof_i_parse_record(at, left, segment->generation, &slots, &record);
    const bool is_plain = sight == PROF_I_PARSED_PLAIN;
    if (at[0] >> 4 != ticks >> 4 || (!is_plain && sight != PROF_I_PARSED_EVENT)) continue;
    if (!is_plain && (!prof_i_is_scope(record.kind) || record.kind == PROF_I_KIND_CALL)) continue;
    if (site == UINT32_MAX) return true;
    if (!is_plain && record.flags & PROF_I_FLAG_OTHER_THREAD && prof_i_record_site(at[1]) == site)
      return true;
  }
  return false;
}

/* On the capture's time line. */
static uint64_t timeline_ticks(const prof_trace *trace, uint64_t ticks) {
  const int64_t start = prof_i_ticks_since(ticks, trace->header.start_ticks);
  return prof_i_clock_epoch_ticks(trace, prof_i_clock_epoch_of(trace, start), start);
}

static bool is_lost_elsewhere(const prof_trace *trace, uint64_t ticks) {
  for (uint32_t m = 0; m < trace->thread_ref_count; m++) {
    const prof_i_thread_slot *const slot = trace->thread_refs[m].slot;
    const uint64_t ledger = slot ? prof_i_trace_ledger(trace, slot) : 0;
    for (uint64_t i = 0; i < prof_i_ledger_endings(ledger); i++) {
      const uint64_t scope = slot->endings[i].scope;
      if (prof_i_ledger_hides(ledger, i) && scope & PROF_I_ENDING_ELSEWHERE &&
          scope >> 4 == ticks >> 4)
        return true;
    }
  }
  return false;
}

bool prof_i_end_has_record(const prof_trace *trace, uint64_t ticks, uint32_t site) {
  if (is_lost_elsewhere(trace, ticks)) return true;
  const uint64_t start = timeline_ticks(trace, ticks);
  for (uint32_t i = 0; i < trace->segment_count; i++) {
    const prof_i_segment *const segment = &trace->segments[i];
    if (!segment->is_plain && segment->max_end >= start && end_has_record(segment, ticks, site))
      return true;
  }
  return false;
}

uint64_t prof_i_end_overflow_count(const prof_trace *trace, const prof_i_trace_thread *thread,
                                   const prof_i_thread_slot *slot) {
  const uint64_t ledger = prof_i_trace_ledger(trace, slot);
  uint64_t count = 0;
  for (uint64_t n = 0; n < prof_i_ledger_endings(ledger); n++) {
    const uint64_t scope = slot->endings[n].scope;
    if (!(scope & PROF_I_ENDING_DEEP)) continue;
    const uint64_t start = timeline_ticks(trace, scope);
    bool is_recorded = false;
    for (uint32_t i = 0; i < thread->segment_count && !is_recorded; i++) {
      const prof_i_segment *const segment = &trace->segments[thread->first_segment + i];
      is_recorded = segment->max_end >= start && end_has_record(segment, scope, UINT32_MAX);
    }
    count += is_recorded;
  }
  return count;
}

void prof_i_unused_claim_excuse(prof_trace *trace, prof_i_trace_thread *thread,
                                prof_i_unused_claim *claim) {
  claim->slots = 0;
  if (trace->header.is_left) return;
  thread->lost[PROF_LOSS_UNFINISHED]--;
  trace->open_claim_count++;
}

/* Excuses the claim of an ending. An ending without a scope is for a record about the thread. Its
   claim may be of the chunk's previous thread. part: the claim is part of a larger one. A
   handler has claimed room behind the claim that it interrupted. */
static bool excuse_claim(prof_trace *trace, const prof_i_trace_thread *thread,
                         const prof_i_ending *it, bool part) {
  for (uint32_t c = trace->claim_count; c-- > 0;) {
    prof_i_unused_claim *const claim = &trace->claims[c];
    if (it->scope && claim->serial != thread->serial) continue;
    if (part ? claim->has_mark || claim->slots <= it->slots : claim->slots != it->slots) continue;
    prof_i_trace_thread *const whose = prof_i_index_thread(trace, claim->serial);
    if (!whose || !whose->lost[PROF_LOSS_UNFINISHED]) continue;
    if (part)
      claim->slots -= it->slots;
    else
      prof_i_unused_claim_excuse(trace, whose, claim);
    return true;
  }
  return false;
}

uint64_t prof_i_unused_claims_excuse(prof_trace *trace, const prof_i_trace_thread *thread,
                                     const prof_i_thread_slot *slot) {
  const uint64_t count = prof_i_ledger_endings(prof_i_trace_ledger(trace, slot));
  uint64_t excused = 0; /* a bit for each ending */
  for (uint64_t i = 0; i < count; i++)
    if (slot->endings[i].slots && excuse_claim(trace, thread, &slot->endings[i], false))
      excused |= UINT64_C(1) << i;
  /* An ending may have its record already. So a claim of the right size is preferred to a part. */
  for (uint64_t i = 0; i < count; i++)
    if (!(excused >> i & 1) && slot->endings[i].slots &&
        !excuse_claim(trace, thread, &slot->endings[i], false))
      excuse_claim(trace, thread, &slot->endings[i], true);
  uint64_t overflow = 0;
  for (uint64_t i = 0; i < count; i++)
    overflow += excused >> i & 1 && slot->endings[i].scope & PROF_I_ENDING_DEEP;
  return overflow;
}
