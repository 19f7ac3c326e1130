/* Orders what the scan found: segments by thread and time, threads with names and losses, open
   scopes. Joins the virtual threads of vendors' calls with their threads. Called while a trace is
   opened. */
#include <prof/profiler.h>
#include <stdlib.h>
#include <string.h>

#include "../format/parse.h"
#include "capture.h"

/* ---- unused claims ---- */

/* Matches the endings that slots note with records, losses and unused claims. */

/* Whether the segment has a scope's record with this start. site: only of a scope that ended on
   another thread than it began on; UINT32_MAX: of any. */
static bool end_has_record(const prof_i_segment *segment, uint64_t ticks, uint32_t site) {
  const uint64_t *at = segment->words;
  for (uint64_t left = segment->slot_count, slots; left > 0; at += slots * 2, left -= slots) {
    prof_i_long_record record;
    const prof_i_parse_result parsed =
        prof_i_parse_record(at, left, segment->generation, &slots, &record);
    const bool is_plain = parsed == PROF_I_PARSED_PLAIN;
    if (at[0] >> 4 != ticks >> 4 || (!is_plain && parsed != PROF_I_PARSED_EVENT)) continue;
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

/* Whether the scope of this entry, which another thread was ending, has a record or is counted as
   lost. */
static bool end_is_recorded(const prof_trace *trace, uint64_t ticks, uint32_t site) {
  if (is_lost_elsewhere(trace, ticks)) return true;
  const uint64_t start = timeline_ticks(trace, ticks);
  for (uint32_t i = 0; i < trace->segment_count; i++) {
    const prof_i_segment *const segment = &trace->segments[i];
    if (!segment->is_plain && segment->max_end >= start && end_has_record(segment, ticks, site))
      return true;
  }
  return false;
}

/* How many scopes without an entry have a record, but are still counted as open in the slot. */
static uint64_t end_overflow_count(const prof_trace *trace, const prof_i_trace_thread *thread,
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

/* The claim is not a loss, unless the process has left the capture: then its scope has ended. */
static void unused_claim_excuse(prof_trace *trace, prof_i_trace_thread *thread,
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
      unused_claim_excuse(trace, whose, claim);
    return true;
  }
  return false;
}

/* Excuses the claims of ends that the slot notes: their scopes count as open, not as lost. Returns
   how many scopes without an entry have such claims. */
static uint64_t unused_claims_excuse(prof_trace *trace, const prof_i_trace_thread *thread,
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

void prof_i_copy_name(char *to, size_t room, const char *name, size_t bytes) {
  const char *const end = memchr(name, '\0', bytes);
  const size_t length = end ? (size_t)(end - name) : bytes;
  const size_t kept = length < room ? length : room - 1;
  memset(to, 0, room);
  memcpy(to, name, kept);
}

/* ---- virtual threads of calls ---- */

/* A vendor's tracing reports calls, and the collector writes them on a virtual thread for each
   thread (PROF_I_KIND_CALL). This moves them to the threads that made them. */

typedef struct virtual_thread {
  uint64_t serial, thread;
} virtual_thread;

typedef struct virtual_threads {
  virtual_thread *items;
  uint32_t count, room;
} virtual_threads;

static int virtual_thread_compare_serial(const void *a, const void *b) {
  const virtual_thread *const x = a, *const y = b;
  return (x->serial > y->serial) - (x->serial < y->serial);
}

/* Calls of an unknown thread keep their virtual thread, which has no tid. False: no memory. */
static bool virtual_thread_add(virtual_threads *all, uint64_t serial, uint64_t tid,
                               uint64_t thread_kind) {
  if ((thread_kind & 0xff) != PROF_I_KIND_OF_CALLS || tid == 0) return true;
  if (!prof_i_make_room((void **)&all->items, &all->room, all->count, sizeof *all->items))
    return false;
  all->items[all->count++] = (virtual_thread){serial, tid};
  return true;
}

static bool find_virtual_threads(const prof_trace *trace, virtual_threads *all) {
  enum { OWNER_SERIAL = 3, OWNER_TID, OWNER_KIND }; /* words of an OWNER */
  for (uint32_t i = 0; i < trace->segment_count; i++) {
    const uint64_t *const owner = trace->segments[i].owner;
    if (owner && !virtual_thread_add(all, owner[OWNER_SERIAL], owner[OWNER_TID], owner[OWNER_KIND]))
      return false;
  }
  for (uint32_t i = 0; i < trace->thread_ref_count; i++) {
    const prof_i_thread_slot *const slot = trace->thread_refs[i].slot;
    if (slot && !virtual_thread_add(all, slot->serial, slot->tid, slot->thread_kind)) return false;
  }
  return true;
}

/* Replaces the serial of the virtual thread by that of the thread. */
static bool move_to_thread(const virtual_threads *all, uint64_t *serial) {
  const virtual_thread *const found = bsearch(&(virtual_thread){*serial, 0}, all->items, all->count,
                                              sizeof *all->items, virtual_thread_compare_serial);
  if (found) *serial = found->thread;
  return found != NULL;
}

/* Before segments and thread references are sorted. */
static int join_virtual_threads(prof_trace *trace) {
  virtual_threads all = {NULL, 0, 0};
  const bool is_found = find_virtual_threads(trace, &all);
  if (is_found && all.count) {
    qsort(all.items, all.count, sizeof *all.items, virtual_thread_compare_serial);
    for (uint32_t i = 0; i < trace->segment_count; i++)
      trace->segments[i].is_side_written = move_to_thread(&all, &trace->segments[i].serial);
    for (uint32_t i = 0; i < trace->thread_ref_count; i++)
      trace->thread_refs[i].is_side_written = move_to_thread(&all, &trace->thread_refs[i].serial);
  }
  free(all.items);
  return is_found ? 0 : PROF_E_NO_MEMORY;
}

/* A thread that has only calls gets the name of its virtual thread. */
static void name_by_virtual_thread(const prof_trace *trace, prof_i_trace_thread *thread,
                                   const char *name) {
  if (thread->tid) return; /* it has a name of its own */
  if (!thread->name[0])
    prof_i_copy_name(thread->name, sizeof thread->name, name, PROF_I_NAME_BYTES);
  if (!(thread->serial & PROF_I_SERIAL_OF_KERNELS)) return;
  thread->tid = thread->serial & ~PROF_I_SERIAL_OF_KERNELS;
  thread->thread_kind =
      thread->tid == trace->header.pid ? PROF_I_KIND_OF_MAIN : PROF_I_KIND_OF_THREAD;
}

/* ---- threads ---- */

static int segment_compare(const void *a, const void *b) {
  const prof_i_segment *const x = a, *const y = b;
  if (x->serial != y->serial) return x->serial < y->serial ? -1 : 1;
  if (x->sequence != y->sequence) return x->sequence < y->sequence ? -1 : 1;
  return (x->words > y->words) - (x->words < y->words);
}

static int thread_ref_compare_serial(const void *a, const void *b) {
  const prof_i_thread_ref *const x = a, *const y = b;
  if (x->serial != y->serial) return x->serial < y->serial ? -1 : 1;
  if (x->is_side_written != y->is_side_written) return x->is_side_written - y->is_side_written;
  return (x->exit != NULL) - (y->exit != NULL); /* EXIT is read last, and counts */
}

static void set_name(prof_i_trace_thread *thread, const char *name) {
  if (name[0]) prof_i_copy_name(thread->name, sizeof thread->name, name, PROF_I_NAME_BYTES);
}

static void read_owner(const prof_trace *trace, prof_i_trace_thread *thread,
                       const prof_i_segment *segment) {
  if (!segment->owner) return;
  if (segment->is_side_written) {
    name_by_virtual_thread(trace, thread, (const char *)(segment->owner + 6));
    return;
  }
  thread->tid = segment->owner[4];
  thread->thread_kind = segment->owner[5];
  set_name(thread, (const char *)(segment->owner + 6));
}

/* Of the slot's last thread. */
static uint64_t lost_by_thread(const prof_trace *trace, const prof_i_thread_slot *slot, int loss) {
  return prof_i_slot_lost(slot, prof_i_trace_ledger(trace, slot), loss) - slot->lost_before[loss];
}

/* Adds the losses of its virtual thread of calls. */
static void read_side_owner(const prof_trace *trace, prof_i_trace_thread *thread,
                            const prof_i_thread_ref *thread_ref) {
  const prof_i_thread_slot *const slot = thread_ref->slot;
  for (int i = 0; i < PROF_I_LOSS_WORDS; i++)
    thread->lost[i] += slot ? lost_by_thread(trace, slot, i) : thread_ref->exit[6 + i];
  name_by_virtual_thread(
      trace, thread, slot ? slot->name : (const char *)(thread_ref->exit + 6 + PROF_I_LOSS_WORDS));
}

static void read_thread_ref(const prof_trace *trace, prof_i_trace_thread *thread,
                            const prof_i_thread_ref *thread_ref) {
  const prof_i_thread_slot *const slot = thread_ref->slot;
  if (slot) {
    thread->tid = slot->tid;
    thread->thread_kind = slot->thread_kind;
    thread->is_alive = true;
    set_name(thread, slot->name);
    for (int i = 0; i < PROF_I_LOSS_WORDS; i++) thread->lost[i] = lost_by_thread(trace, slot, i);
    thread->own_ns = prof_i_slot_thread_own_ns(slot);
    return;
  }
  const uint64_t *const words = thread_ref->exit;
  thread->is_alive = false;
  for (int i = 0; i < PROF_I_LOSS_WORDS; i++) thread->lost[i] = words[6 + i];
  set_name(thread, (const char *)(words + 6 + PROF_I_LOSS_WORDS));
  /* missing in older captures */
  enum { OWN_NS = 6 + PROF_I_LOSS_WORDS + PROF_I_NAME_BYTES / 8 };
  if ((words[2] & 0xffff) * 2 > OWN_NS) thread->own_ns = words[OWN_NS];
}

static void thread_add_segment(prof_i_trace_thread *thread, const prof_i_segment *segment) {
  thread->segment_count++;
  thread->event_count += segment->event_count;
  thread->side_written_count += segment->is_side_written ? segment->event_count : 0;
  thread->lost[PROF_LOSS_UNFINISHED] += segment->unfinished_count;
  thread->lost[PROF_LOSS_CLEARED] += segment->cleared_count;
  thread->lost[PROF_LOSS_OVERWRITTEN] += segment->passed_count;
}

/* A group is a set of segments that must be sorted together. Most are one segment, in order. */
static void find_groups(prof_i_segment *segments, uint32_t count) {
  uint64_t before_max = 0, after_min = UINT64_MAX;
  for (uint32_t i = 0; i < count; i++) {
    if (segments[i].max_end > before_max) before_max = segments[i].max_end;
    segments[i].before_max = before_max;
  }
  for (uint32_t i = count; i-- > 0;) {
    segments[i].ends_group = segments[i].before_max <= after_min;
    if (segments[i].min_end < after_min) after_min = segments[i].min_end;
  }
}

/* Fills one thread from the first segments and thread references. Both lists are by serial. */
static void fill_thread(prof_trace *trace, prof_i_trace_thread *thread, uint64_t serial,
                        uint32_t *segment, uint32_t *thread_ref) {
  const uint32_t first = *segment;
  *thread = (prof_i_trace_thread){.serial = serial, .first_segment = first};
  for (; *segment < trace->segment_count && trace->segments[*segment].serial == serial; ++*segment)
    read_owner(trace, thread, &trace->segments[*segment]);
  for (; *thread_ref < trace->thread_ref_count && trace->thread_refs[*thread_ref].serial == serial;
       ++*thread_ref)
    if (trace->thread_refs[*thread_ref].is_side_written)
      read_side_owner(trace, thread, &trace->thread_refs[*thread_ref]);
    else
      read_thread_ref(trace, thread, &trace->thread_refs[*thread_ref]);
  for (uint32_t i = first; i < *segment; i++) thread_add_segment(thread, &trace->segments[i]);
  if (thread->segment_count) find_groups(&trace->segments[first], thread->segment_count);
}

/* Segments without events and without a thread are the rest of a chunk that begins with an OWNER
   record. */
static void drop_empty_segments(prof_trace *trace) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < trace->segment_count; i++) {
    const prof_i_segment *const s = &trace->segments[i];
    if (s->owner || s->event_count || s->unfinished_count || s->cleared_count || s->passed_count)
      trace->segments[kept++] = *s;
  }
  trace->segment_count = kept;
}

static void sort_segments(prof_trace *trace) {
  drop_empty_segments(trace);
  if (trace->segment_count == 0) return;
  qsort(trace->segments, trace->segment_count, sizeof *trace->segments, segment_compare);
  prof_i_segment *const smaller = realloc(trace->segments, trace->segment_count * sizeof *smaller);
  if (smaller) trace->segments = smaller;
}

/* The lowest serial left in either list. */
static uint64_t next_serial(const prof_trace *trace, uint32_t segment, uint32_t thread_ref) {
  const uint64_t one =
      segment < trace->segment_count ? trace->segments[segment].serial : UINT64_MAX;
  const uint64_t other =
      thread_ref < trace->thread_ref_count ? trace->thread_refs[thread_ref].serial : UINT64_MAX;
  return one < other ? one : other;
}

static uint32_t count_threads(const prof_trace *trace) {
  uint32_t count = 0;
  for (uint32_t s = 0, m = 0; s < trace->segment_count || m < trace->thread_ref_count; count++) {
    const uint64_t serial = next_serial(trace, s, m);
    while (s < trace->segment_count && trace->segments[s].serial == serial) s++;
    while (m < trace->thread_ref_count && trace->thread_refs[m].serial == serial) m++;
  }
  return count;
}

int prof_i_index_threads(prof_trace *trace) {
  const int status = join_virtual_threads(trace);
  if (status) return status;
  sort_segments(trace);
  if (trace->thread_ref_count)
    qsort(trace->thread_refs, trace->thread_ref_count, sizeof *trace->thread_refs,
          thread_ref_compare_serial);
  const uint32_t count = count_threads(trace);
  trace->threads = malloc((count ? count : 1) * sizeof *trace->threads);
  if (!trace->threads) return PROF_E_NO_MEMORY;
  for (uint32_t s = 0, m = 0; trace->thread_count < count; trace->thread_count++)
    fill_thread(trace, &trace->threads[trace->thread_count], next_serial(trace, s, m), &s, &m);
  return 0;
}

prof_i_trace_thread *prof_i_index_thread(const prof_trace *trace, uint64_t serial) {
  uint32_t low = 0, high = trace->thread_count;
  while (high - low > 1) {
    const uint32_t middle = low + (high - low) / 2;
    if (trace->threads[middle].serial <= serial)
      low = middle;
    else
      high = middle;
  }
  return high > low && trace->threads[low].serial == serial ? &trace->threads[low] : NULL;
}

/* ---- open scopes ---- */

/* The payload of an open scope, as a record whose words 0 and 1 are not valid; NULL: damaged. */
static const uint64_t *open_payload(const prof_i_thread_slot *slot, uint64_t packed) {
  const uint64_t offset = packed >> 24 & 0xffffff, words = packed >> 48;
  if (offset % 8 != 0 || offset < PROF_I_TEXT_OFFSET || words == 0 ||
      offset + words * 8 > PROF_I_TEXT_END)
    return NULL;
  const uint64_t *const record = (const uint64_t *)((const unsigned char *)slot + offset) - 2;
  prof_i_long_record parts;
  if (prof_i_record_slots(record[2]) != (words + 3) / 2 ||
      !prof_i_long_record_read(record, words + 2, &parts))
    return NULL;
  return parts.kind == PROF_I_KIND_SCOPE || parts.kind == PROF_I_KIND_ASYNC ? record : NULL;
}

static int add_open(prof_trace *trace, prof_i_trace_thread *thread, const prof_i_thread_slot *slot,
                    uint32_t *room) {
  const uint64_t depth = slot->depth < PROF_I_OPEN_COUNT ? slot->depth : PROF_I_OPEN_COUNT;
  const uint64_t ledger = prof_i_trace_ledger(trace, slot);
  for (uint64_t i = 1; i <= depth; i++) {
    const prof_i_open_entry *const entry = &slot->open[i];
    const uint64_t moves = PROF_I_OPEN_TAKEN | PROF_I_OPEN_COPY;
    if (!prof_i_slot_entry_is_open(slot, ledger, i)) continue;
    const int64_t start = prof_i_ticks_since(entry->ticks, trace->header.start_ticks);
    prof_i_open_scope scope = {
        prof_i_clock_epoch_ticks(trace, prof_i_clock_epoch_of(trace, start), start), NULL,
        prof_i_record_site(entry->packed & ~(uint64_t)PROF_I_OPEN_BY_CALL)};
    if (entry->ticks & moves && end_is_recorded(trace, entry->ticks, scope.site)) continue;
    if ((entry->packed & PROF_I_OPEN_TYPE) != 0 &&
        !(scope.record = open_payload(slot, entry->packed)))
      trace->bad_count++;
    if (!prof_i_make_room((void **)&trace->opens, room, trace->open_count, sizeof *trace->opens))
      return PROF_E_NO_MEMORY;
    trace->opens[trace->open_count++] = scope;
    thread->open_count++;
    if (scope.start > trace->last) trace->last = scope.start;
  }
  return 0;
}

/* Removes the open scope that this record ended. */
static void remove_open_scope(prof_trace *trace, prof_i_trace_thread *thread, uint64_t start,
                              uint32_t site) {
  prof_i_open_scope *const opens = trace->opens + thread->first_open;
  for (uint32_t i = 0; i < thread->open_count; i++) {
    if (opens[i].start != start || opens[i].site != site) continue;
    memmove(opens + i, opens + i + 1, (thread->open_count - i - 1) * sizeof *opens);
    thread->open_count--;
    trace->open_count--;
    return;
  }
}

/* Whether it can be the record of an open scope of this thread. A scope that began on another
   thread is not. */
static bool may_end_own_scope(const prof_i_long_record *record) {
  return prof_i_is_scope(record->kind) && record->kind != PROF_I_KIND_CALL &&
         !(record->flags & PROF_I_FLAG_OTHER_THREAD);
}

/* Removes scopes that have a record, and an entry that was not cleared yet. All entries were open
   at one moment. So the end of such a scope is not before the start of any entry, and few records
   are read. */
static void hide_ended_scopes(prof_trace *trace, prof_i_trace_thread *thread) {
  uint64_t latest = 0;
  for (uint32_t i = 0; i < thread->open_count; i++)
    if (trace->opens[thread->first_open + i].start > latest)
      latest = trace->opens[thread->first_open + i].start;
  for (uint32_t i = 0; i < thread->segment_count && thread->open_count; i++) {
    const prof_i_segment *const segment = &trace->segments[thread->first_segment + i];
    if (segment->max_end < latest) continue;
    const uint64_t *at = segment->words;
    for (uint64_t left = segment->slot_count, slots; left > 0; at += slots * 2, left -= slots) {
      prof_i_long_record record;
      const prof_i_parse_result parsed =
          prof_i_parse_record(at, left, segment->generation, &slots, &record);
      if (parsed != PROF_I_PARSED_PLAIN &&
          !(parsed == PROF_I_PARSED_EVENT && may_end_own_scope(&record)))
        continue;
      const prof_i_interval when =
          parsed == PROF_I_PARSED_PLAIN
              ? prof_i_plain_interval_in(at, segment->start_ticks, segment->clock_offset)
              : prof_i_event_interval(at, &record, segment->start_ticks, segment->clock_offset);
      if (when.end >= latest)
        remove_open_scope(trace, thread, when.start, prof_i_record_site(at[1]));
    }
  }
}

static uint64_t open_scope_slots(const prof_i_open_scope *scope) {
  return scope->record ? prof_i_record_slots(scope->record[2]) : 1;
}

/* The newest open scope without a claim, if its record would take this many slots; UINT32_MAX:
   none. */
static uint32_t claim_open_scope(const prof_trace *trace, const prof_i_trace_thread *thread,
                                 uint64_t slots, uint64_t found) {
  for (uint32_t i = thread->open_count; i-- > 0;)
    if (!(found >> i & 1) && open_scope_slots(&trace->opens[thread->first_open + i]) == slots)
      return i;
  return UINT32_MAX;
}

/* The end of a scope claims room, fills it, and then clears the scope's entry. If it did not get
   that far, the scope counts as open, and its claim is not a loss. found: a bit for each of 64
   scopes with a claim. Returns it with the new ones. */
static uint64_t find_open_claims(prof_trace *trace, prof_i_trace_thread *thread, uint64_t found) {
  for (uint32_t c = trace->claim_count; c-- > 0;) {
    if (trace->claims[c].serial != thread->serial) continue;
    const uint32_t scope = claim_open_scope(trace, thread, trace->claims[c].slots, found);
    if (scope >= PROF_I_OPEN_COUNT || !thread->lost[PROF_LOSS_UNFINISHED]) continue;
    found |= UINT64_C(1) << scope;
    unused_claim_excuse(trace, thread, &trace->claims[c]);
  }
  return found;
}

/* Removes open scopes that have a bit: the process has left the capture, so they have ended. */
static void remove_found_claims(prof_trace *trace, prof_i_trace_thread *thread, uint64_t found) {
  prof_i_open_scope *const opens = trace->opens + thread->first_open;
  uint32_t kept = 0;
  for (uint32_t i = 0; i < thread->open_count; i++)
    if (!(found >> i & 1)) opens[kept++] = opens[i];
  trace->open_count -= thread->open_count - kept;
  thread->open_count = kept;
}

int prof_i_index_open(prof_trace *trace) {
  uint64_t deep_over = 0;
  uint32_t room = 0;
  for (uint32_t i = 0; i < trace->thread_ref_count; i++) {
    const prof_i_thread_ref *const thread_ref = &trace->thread_refs[i];
    prof_i_trace_thread *const thread = prof_i_index_thread(trace, thread_ref->serial);
    if (!thread || !thread_ref->slot || thread_ref->is_side_written || thread->open_count ||
        !thread->is_alive)
      continue;
    const bool has_ledger = prof_i_trace_ledger(trace, thread_ref->slot) != 0;
    if (!has_ledger &&
        prof_i_slot_is_over(thread_ref->slot, thread_ref->slot->lost[PROF_LOSS_THREAD_ENDED]))
      continue;
    if (!has_ledger) trace->open_below_count += prof_i_slot_deep_open(thread_ref->slot);
    deep_over += end_overflow_count(trace, thread, thread_ref->slot);
    thread->first_open = trace->open_count;
    const int status = add_open(trace, thread, thread_ref->slot, &room);
    if (status) return status;
    if (thread->open_count) hide_ended_scopes(trace, thread);
    uint64_t found = find_open_claims(trace, thread, 0);
    const uint64_t deep_claims = unused_claims_excuse(trace, thread, thread_ref->slot);
    found =
        find_open_claims(trace, thread, found); /* the rest of claims that are several neighbours */
    if (trace->header.is_left) {
      remove_found_claims(trace, thread, found);
      deep_over += deep_claims;
    }
    for (uint32_t n = 0; n < thread->open_count; n++) {
      prof_i_open_scope *const scope = &trace->opens[thread->first_open + n];
      if (scope->site && !prof_i_catalog_known_site(&trace->catalog, scope->site))
        trace->bad_count++;
    }
    thread->event_count += thread->open_count;
  }
  if (trace->header.version >= 2) trace->deep_parts -= trace->header.deep_over;
  const uint64_t overflow = prof_i_deep_sum(trace->deep_parts);
  trace->open_below_count += overflow > deep_over ? overflow - deep_over : 0;
  return 0;
}
