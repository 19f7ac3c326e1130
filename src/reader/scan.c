/* The forward pass over a chunk. It finds the thread, counts events and losses, and checks the
   order of the records. So a backward walk reads each record once. Called while a trace is
   opened. */
#include <prof/profiler.h>
#include <string.h>

#include "../format/parse.h"
#include "capture.h"

/* State of the pass over one chunk. */
typedef struct chunk_scan {
  prof_trace *trace;
  prof_i_segment *segment; /* the current one; adding another may move the array */
  uint64_t sequence, generation;
  uint64_t start_ticks; /* these two as in the segment */
  int64_t clock_offset;
  uint32_t epoch;       /* of the last record */
  uint32_t first_epoch; /* of the first record */
  bool has_seen;
  int64_t latest;          /* end in it */
  uint64_t pending;        /* unfinished claims that no committed record has followed yet */
  uint32_t claims_counted; /* of trace->claims, those of this chunk that count */
  /* the last slot was claimed, and has no mark with the length of its record */
  bool is_in_run;
  /* after an unreadable record: the begin of the next one is a guess */
  bool is_lost;
} chunk_scan;

static bool add_segment(chunk_scan *s, const uint64_t *words, const uint64_t *owner,
                        uint64_t serial) {
  prof_trace *const trace = s->trace;
  if (!prof_i_make_room((void **)&trace->segments, &trace->segment_room, trace->segment_count,
                        sizeof *trace->segments))
    return false;
  s->segment = &trace->segments[trace->segment_count++];
  *s->segment = (prof_i_segment){.words = words,
                                 .owner = owner,
                                 .serial = serial,
                                 .sequence = s->sequence,
                                 .start_ticks = s->start_ticks,
                                 .clock_offset = s->clock_offset,
                                 .min_end = UINT64_MAX,
                                 .generation = (uint8_t)s->generation,
                                 .is_plain = s->clock_offset == 0,
                                 .is_ordered = true};
  return true;
}

static void end_segment(chunk_scan *s, const uint64_t *at) {
  s->segment->slot_count = (uint32_t)((uint64_t)(at - s->segment->words) / 2);
}

/* Begins a new segment if the epoch of begins or ends changes. False: no memory. EPOCH_CHANGES_MAX:
   in a damaged capture each record might change it. */
static bool follow_epochs(chunk_scan *s, const uint64_t *at, int64_t duration) {
  enum { EPOCH_CHANGES_MAX = 1 << 16 };
  prof_trace *const trace = s->trace;
  const int64_t start = prof_i_ticks_since(at[0], trace->header.start_ticks),
                end = start + duration;
  const uint32_t epoch = prof_i_clock_epoch_of_end(trace, s->epoch, end, s->latest);
  const uint32_t start_era = prof_i_clock_epoch_of_start(trace, epoch, start, end);
  if (epoch != s->epoch || end > s->latest) s->latest = end;
  if (!s->has_seen) s->first_epoch = epoch;
  s->has_seen = true;
  s->epoch = epoch;
  const int64_t start_place = prof_i_clock_epoch_clamp(trace, start_era, start),
                end_place = prof_i_clock_epoch_clamp(trace, epoch, end);
  const uint64_t start_ticks = trace->header.start_ticks + (uint64_t)(start - start_place);
  const int64_t clock_offset = end_place - start_place - duration;
  if ((start_ticks == s->start_ticks && clock_offset == s->clock_offset) ||
      trace->epoch_change_count >= EPOCH_CHANGES_MAX)
    return true;
  trace->epoch_change_count++;
  s->start_ticks = start_ticks;
  s->clock_offset = clock_offset;
  end_segment(s, at);
  return add_segment(s, at, s->segment->owner, s->segment->serial);
}

/* False: the event is not emitted. */
static inline bool count_event(chunk_scan *s, uint64_t end, bool is_scope) {
  prof_i_segment *const segment = s->segment;
  if (end > s->trace->last) s->trace->last = end;
  if (end < s->trace->floor) {
    segment->cleared_count++;
    return false;
  }
  if (end < segment->max_end)
    segment->is_ordered = false;
  else
    segment->max_end = end;
  if (end < segment->min_end) segment->min_end = end;
  segment->event_count++;
  segment->scope_count += is_scope;
  return true;
}

/* Of a long record. */
static void count_long(chunk_scan *s, uint64_t end, uint32_t kind) {
  if (!count_event(s, end, prof_i_is_scope(kind))) return;
  s->segment->skipped_count += kind == PROF_I_KIND_SKIPPED;
}

/* The call may move to its begin. So events that ended after that are in the same group. */
static void count_call(chunk_scan *s, const uint64_t *words, const prof_i_long_record *record) {
  const uint64_t start =
      prof_i_event_interval(words, record, s->start_ticks, s->clock_offset).start;
  if (start < s->segment->min_end) s->segment->min_end = start;
  s->segment->has_calls = true;
}

static void count_unfinished(chunk_scan *s) {
  s->segment->unfinished_count += (uint32_t)s->pending;
  s->claims_counted += (uint32_t)s->pending;
  s->pending = 0;
}

/* Neighbouring slots without a mark are of one record, because claim and mark are two instructions.
   False: no memory. */
static bool see_claim(chunk_scan *s, bool has_mark, uint64_t slots) {
  enum { CLAIMS_MAX = 4096 };
  prof_trace *const trace = s->trace;
  const bool goes_on = !has_mark && s->is_in_run;
  s->is_in_run = !has_mark;
  if (goes_on) {
    if (trace->claim_count) trace->claims[trace->claim_count - 1].slots++;
    return true;
  }
  s->pending++;
  if (trace->claim_count >= CLAIMS_MAX) return true; /* of a damaged capture */
  if (!prof_i_make_room((void **)&trace->claims, &trace->claim_room, trace->claim_count,
                        sizeof *trace->claims))
    return false;
  trace->claims[trace->claim_count++] = (prof_i_unused_claim){s->segment->serial, slots, has_mark};
  return true;
}

static inline void check_site(chunk_scan *s, uint32_t site) {
  if (site == 0 || prof_i_catalog_known_site(&s->trace->catalog, site)) return;
  s->trace->bad_count++;
  s->trace->has_unknown_sites = true;
}

/* Fast path: plain records of a capture without jumps of the counter and hidden events. Sums stay
   in registers. Returns the end of these records. */
static const uint64_t *count_plain(chunk_scan *s, const uint64_t *at, const uint64_t *end) {
  prof_trace *const trace = s->trace;
  prof_i_segment *const segment = s->segment;
  const uint64_t start_ticks = s->start_ticks, generation = s->generation;
  const uint64_t *const first = at;
  uint64_t latest = segment->max_end, earliest = segment->min_end;
  uint32_t known_site = 0;
  bool is_ordered = segment->is_ordered;
  do {
    const uint32_t site = prof_i_plain_site(at[1]);
    if (site != known_site) {
      if (__builtin_expect(prof_i_catalog_known_site(&trace->catalog, site) == site, 1))
        known_site = site;
      else
        check_site(s, site);
    }
    const uint64_t ends = prof_i_plain_interval(at, start_ticks).end;
    is_ordered &= ends >= latest;
    latest = ends > latest ? ends : latest;
    earliest = ends < earliest ? ends : earliest;
    at += 2;
  } while (at < end && prof_i_is_plain(at, generation));
  const uint32_t count = (uint32_t)((uint64_t)(at - first) / 2);
  segment->max_end = latest;
  segment->min_end = earliest;
  segment->is_ordered = is_ordered;
  segment->event_count += count;
  segment->scope_count += count;
  if (latest > trace->last) trace->last = latest;
  return at;
}

/* Reads plain records from `at` on. Returns their end; NULL: no memory. */
static const uint64_t *scan_plain(chunk_scan *s, const uint64_t *at, const uint64_t *end) {
  const bool has_eras = s->trace->clock_epoch_count > 1;
  count_unfinished(s);
  s->is_lost = s->is_in_run = false;
  if (!has_eras && s->trace->floor == 0) return count_plain(s, at, end);
  do {
    if (has_eras && !follow_epochs(s, at, (int64_t)(at[1] >> PROF_I_DURATION_SHIFT))) return NULL;
    check_site(s, prof_i_record_site(at[1]));
    count_event(s,
                has_eras ? prof_i_plain_interval_in(at, s->start_ticks, s->clock_offset).end
                         : prof_i_plain_interval(at, s->start_ticks).end,
                true);
    at += 2;
  } while (at < end && prof_i_is_plain(at, s->generation));
  return at;
}

/* A step begins at the end of the previous one. */
static bool add_step_mark(prof_trace *trace, uint64_t ticks) {
  prof_i_catalog *const catalog = &trace->catalog;
  if (!prof_i_make_room((void **)&catalog->marks, &catalog->mark_room, catalog->mark_count,
                        sizeof *catalog->marks))
    return false;
  catalog->marks[catalog->mark_count++] = ticks;
  return true;
}

static bool add_thread_ref(prof_trace *trace, prof_i_thread_ref thread_ref) {
  if (!prof_i_make_room((void **)&trace->thread_refs, &trace->thread_ref_room,
                        trace->thread_ref_count, sizeof *trace->thread_refs))
    return false;
  trace->thread_refs[trace->thread_ref_count++] = thread_ref;
  return true;
}

static int scan_event(chunk_scan *s, const uint64_t *words, const prof_i_long_record *record) {
  prof_trace *const trace = s->trace;
  const int64_t duration = prof_i_event_ticks(words, record);
  if (trace->clock_epoch_count > 1 && !follow_epochs(s, words, duration)) return PROF_E_NO_MEMORY;
  s->segment->is_plain = false;
  const uint64_t end = prof_i_event_interval(words, record, s->start_ticks, s->clock_offset).end;
  /* Not counted: the counters of two processors may differ by more than a short scope that another
     thread ends. */
  trace->clock_back_count +=
      duration + s->clock_offset < 0 && !(record->flags & PROF_I_FLAG_OTHER_THREAD);
  if (record->schema && (record->kind == PROF_I_KIND_INSTANT || prof_i_is_scope(record->kind))) {
    const prof_i_schema *const schema = prof_i_catalog_schema(&trace->catalog, record->schema);
    /* its place in time still counts */
    if (!schema || !prof_i_values_fit(record, schema)) trace->bad_count++;
  }
  check_site(s, prof_i_record_site(words[1]));
  count_long(s, end, record->kind);
  if (record->kind == PROF_I_KIND_CALL) count_call(s, words, record);
  if (record->kind != PROF_I_KIND_STEP) return 0;
  s->segment->has_steps = true;
  return add_step_mark(trace, end) ? 0 : PROF_E_NO_MEMORY;
}

static int scan_about_thread(chunk_scan *s, const uint64_t *words, const prof_i_long_record *record,
                             uint64_t slots) {
  const uint64_t serial = record->own[0];
  if (s->trace->clock_epoch_count > 1 && !follow_epochs(s, words, 0)) return PROF_E_NO_MEMORY;
  if (record->kind == PROF_I_KIND_EXIT)
    return add_thread_ref(s->trace, (prof_i_thread_ref){.serial = serial, .exit = words})
               ? 0
               : PROF_E_NO_MEMORY;
  end_segment(s, words);
  return add_segment(s, words + slots * 2, words, serial) ? 0 : PROF_E_NO_MEMORY;
}

/* Records that are not plain. */
static int scan_other_record(chunk_scan *s, const uint64_t *at, uint64_t slots_left,
                             uint64_t *slots_out) {
  prof_i_long_record record;
  const prof_i_parse_result parsed =
      prof_i_parse_long_record(at, slots_left, s->generation, slots_out, &record);
  s->segment->is_plain = false;
  if (parsed == PROF_I_PARSED_UNFINISHED && !s->is_lost)
    return see_claim(s, prof_i_is_marked(at[0], s->generation), *slots_out) ? 0 : PROF_E_NO_MEMORY;
  s->is_in_run = false;
  if (parsed == PROF_I_PARSED_BAD) {
    s->trace->bad_count += !s->is_lost;
    s->is_lost = true;
  }
  if (parsed != PROF_I_PARSED_EVENT && parsed != PROF_I_PARSED_THREAD) return 0;
  count_unfinished(s);
  s->is_lost = false;
  return parsed == PROF_I_PARSED_EVENT ? scan_event(s, at, &record)
                                       : scan_about_thread(s, at, &record, *slots_out);
}

/* Counts the events that the room held before. */
static void add_evicted(prof_trace *trace, const prof_i_head *head) {
  const uint64_t *const evicted = head->evicted[head->sequence & 1];
  trace->lost[PROF_LOSS_OVERWRITTEN] += evicted[PROF_I_EVICTED_OVERWRITTEN];
  trace->lost[PROF_LOSS_CLEARED] += evicted[PROF_I_EVICTED_CLEARED];
}

/* A ring is about to overwrite the chunk. Events of the segments from `first` on count as
   overwritten. */
static void remove_copied_segments(prof_trace *trace, uint32_t first) {
  for (uint32_t i = first; i < trace->segment_count; i++) {
    trace->lost[PROF_LOSS_OVERWRITTEN] += trace->segments[i].event_count;
    trace->lost[PROF_LOSS_CLEARED] += trace->segments[i].cleared_count;
  }
  trace->segment_count = first;
}

/* The record at a cut. The rest of its payload must not be read as records, because any word may
   look like one. */
static bool is_overwritten(const uint64_t *at, uint64_t slots_left, uint64_t generation) {
  if (!prof_i_is_committed(at[0], generation) || (at[1] & 15) == 0) return false;
  const uint64_t piece = prof_i_alloc_slots(at[1]);
  if (piece) return piece > slots_left;
  return (at[1] & 15) == 1 && (slots_left < 2 || prof_i_record_slots(at[2]) > slots_left);
}

/* The earliest epoch of a chunk's first records, by the chunks that the thread took before. */
static uint32_t first_epoch(const prof_trace *trace, const prof_i_head *head) {
  const prof_i_epoch_hint *const own = &trace->epoch_hints[head->owner % PROF_I_EPOCH_HINTS_MAX],
                                 *const any = &trace->last_epoch_hint;
  const uint32_t by_any = any->sequence < head->sequence ? any->first : 0;
  const uint32_t by_own =
      own->owner == head->owner && own->sequence < head->sequence ? own->last : 0;
  return by_any > by_own ? by_any : by_own;
}

static void keep_epoch_hint(prof_trace *trace, const prof_i_head *head, uint32_t first,
                            uint32_t last) {
  trace->last_epoch_hint = trace->epoch_hints[head->owner % PROF_I_EPOCH_HINTS_MAX] =
      (prof_i_epoch_hint){head->owner, head->sequence, first, last};
}

/* Values that a scan changes beside segments. If any changed, the segments are not the whole
   result. */
typedef struct scan_counts {
  uint64_t bad, claims, thread_refs, marks, backs, unknown;
} scan_counts;

static scan_counts scan_counts_get(const prof_trace *trace) {
  return (scan_counts){trace->bad_count,        trace->claim_count,
                       trace->thread_ref_count, trace->catalog.mark_count,
                       trace->clock_back_count, trace->has_unknown_sites};
}

static bool scan_counts_equal(scan_counts a, scan_counts b) {
  return a.bad == b.bad && a.claims == b.claims && a.thread_refs == b.thread_refs &&
         a.marks == b.marks && a.backs == b.backs && a.unknown == b.unknown;
}

/* Whether the scan of a chunk may be cached: a finished chunk of the process's own capture, without
   jumps of the counter. */
static bool chunk_is_cacheable(const prof_trace *trace, const prof_i_extent *extent) {
  return trace->clock_epoch_count == 1 && extent->head->state == PROF_I_CHUNK_RETIRED &&
         prof_i_source_is_shared(&trace->source, extent->offset);
}

static prof_i_scan_key chunk_key(const prof_trace *trace, const prof_i_extent *extent) {
  return prof_i_scan_key_of(trace->header.start_ticks, trace->header.start_monotonic_ns,
                            extent->offset, extent->head);
}

/* 1: the segments are from the cache; 0: the chunk must be scanned. */
static int take_cached_segments(prof_trace *trace, const prof_i_extent *extent,
                                const unsigned char *chunk) {
  prof_i_segment found[PROF_I_SCAN_SEGMENTS];
  uint32_t count;
  const prof_i_scan_key key = chunk_key(trace, extent);
  if (!prof_i_scan_cache_get(&key, chunk, found, &count)) return 0;
  for (uint32_t i = 0; i < count; i++)
    if (found[i].min_end < trace->floor) return 0; /* some of it was cleared since */
  for (uint32_t i = 0; i < count; i++) {
    if (!prof_i_make_room((void **)&trace->segments, &trace->segment_room, trace->segment_count,
                          sizeof *trace->segments))
      return PROF_E_NO_MEMORY;
    trace->segments[trace->segment_count++] = found[i];
    if (found[i].max_end > trace->last) trace->last = found[i].max_end;
  }
  return 1;
}

static void cache_segments(const prof_trace *trace, const prof_i_extent *extent,
                           const unsigned char *chunk, uint32_t first) {
  const prof_i_scan_key key = chunk_key(trace, extent);
  for (uint32_t i = first; i < trace->segment_count; i++)
    if (trace->segments[i].cleared_count) return;
  prof_i_scan_cache_put(&key, chunk, trace->segments + first, trace->segment_count - first);
}

int prof_i_scan_chunk(prof_trace *trace, const prof_i_extent *extent, uint64_t serial) {
  const prof_i_head *const head = extent->head;
  add_evicted(trace, head);
  /* Number 0: never taken, released, or being initialised when it was read. */
  if (head->state == PROF_I_CHUNK_FREE || prof_i_sequence_number(head->sequence) == 0) return 0;
  if (head->generation == 0 || head->generation > PROF_I_GENERATION_MASK ||
      head->cursor < PROF_I_HEAD_BYTES) {
    trace->bad_count++;
    return 0;
  }
  chunk_scan s = {.trace = trace,
                  .sequence = head->sequence,
                  .generation = head->generation,
                  .start_ticks = trace->header.start_ticks};
  s.latest = INT64_MIN / 2;
  s.epoch = s.first_epoch = first_epoch(trace, head);
  const uint32_t first = trace->segment_count, first_claim = trace->claim_count;
  const unsigned char *const bytes =
      prof_i_source_chunk(&trace->source, extent->offset); /* its head may be cached elsewhere */
  const bool may_keep = chunk_is_cacheable(trace, extent);
  const int taken = may_keep ? take_cached_segments(trace, extent, bytes) : 0;
  if (taken) return taken == 1 ? 0 : taken;
  const scan_counts before = scan_counts_get(trace);
  const uint64_t *at = (const uint64_t *)(const void *)(bytes + sizeof *head);
  const uint64_t *end = at + prof_i_extent_claimed(extent) * 2;
  const bool is_cut = extent->bytes < head->bytes;
  if (!add_segment(&s, at, NULL, serial)) return PROF_E_NO_MEMORY;
  while (at < end) {
    const uint64_t piece_words = 2 * PROF_I_SEGMENT_SLOTS,
                   grown = (uint64_t)(at - s.segment->words);
    if (grown >= piece_words) {
      end_segment(&s, at);
      if (!add_segment(&s, at, s.segment->owner, s.segment->serial)) return PROF_E_NO_MEMORY;
    } else if (prof_i_is_plain(at, s.generation)) {
      at = scan_plain(
          &s, at, (uint64_t)(end - at) > piece_words - grown ? at + (piece_words - grown) : end);
      if (!at) return PROF_E_NO_MEMORY;
    } else if (is_cut && is_overwritten(at, (uint64_t)(end - at) / 2, s.generation)) {
      end = at; /* the cut itself was counted with the extent */
    } else {
      uint64_t slots;
      const int status = scan_other_record(&s, at, (uint64_t)(end - at) / 2, &slots);
      if (status) return status;
      at += slots * 2;
    }
  }
  if (trace->clock_epoch_count > 1) keep_epoch_hint(trace, head, s.first_epoch, s.epoch);
  if (trace->is_settled)
    count_unfinished(&s);
  else if (trace->claim_count > first_claim + s.claims_counted)
    trace->claim_count = first_claim + s.claims_counted;
  end_segment(&s, end);
  if (may_keep && scan_counts_equal(before, scan_counts_get(trace)))
    cache_segments(trace, extent, bytes, first);
  if (head->state == PROF_I_CHUNK_TAKEN) remove_copied_segments(trace, first);
  prof_i_source_release_pages(&trace->source, bytes, extent->bytes);
  return 0;
}

/* ---- slots ---- */

int prof_i_scan_slot(prof_trace *trace, const prof_i_extent *extent) {
  const prof_i_thread_slot *const slot = (const prof_i_thread_slot *)extent->head;
  if (extent->bytes < PROF_I_SLOT_BYTES) {
    trace->bad_count++;
    return 0;
  }
  if (slot->depth > PROF_I_OPEN_COUNT) trace->bad_count++;
  /* the file was cut off before it */
  if (slot->serial && !trace->source.is_live && slot->chunk >= trace->source.count)
    trace->bad_count++;
  const uint64_t ledger = prof_i_trace_ledger(trace, slot);
  for (int i = 0; i < PROF_I_LOSS_WORDS; i++) trace->lost[i] += prof_i_slot_lost(slot, ledger, i);
  if (ledger) trace->deep_parts += prof_i_slot_deep_part(slot, ledger);
  const uint64_t in_place_ns = prof_i_slot_in_place_ns(slot);
  const uint64_t own_ns = __atomic_load_n(&slot->own_ns, __ATOMIC_RELAXED);
  trace->own_ns += own_ns + in_place_ns;
  trace->in_place_ns += in_place_ns;
  trace->window_count += __atomic_load_n(&slot->window_count, __ATOMIC_RELAXED);
  trace->wait_ns += __atomic_load_n(&slot->wait_ns, __ATOMIC_RELAXED);
  trace->spread_us2 += slot->spread_us2;
  trace->stray_count += slot->stray_count;
  add_evicted(trace, &slot->head); /* it may be in the room of an earlier chunk */
  if (slot->serial &&
      !add_thread_ref(trace, (prof_i_thread_ref){.serial = slot->serial, .slot = slot}))
    return PROF_E_NO_MEMORY;
  const prof_i_extent reserve = {
      (const prof_i_head *)((const unsigned char *)slot + PROF_I_RESERVE_OFFSET),
      extent->offset + PROF_I_RESERVE_OFFSET, PROF_I_UNIT_BYTES};
  if (reserve.head->magic == 0) return 0; /* never used */
  if (prof_i_head_bytes(reserve.head, reserve.offset) != PROF_I_UNIT_BYTES) {
    trace->bad_count++;
    return 0;
  }
  return prof_i_scan_chunk(trace, &reserve,
                           reserve.head->owner ? reserve.head->owner : slot->serial);
}

/* ---- the ring's bound ---- */

static void segment_recount(prof_trace *trace, prof_i_segment *segment) {
  prof_i_segment fresh = *segment;
  fresh.min_end = UINT64_MAX;
  fresh.max_end = 0;
  fresh.event_count = fresh.scope_count = fresh.skipped_count = fresh.cleared_count = 0;
  fresh.is_ordered = true;
  fresh.has_calls = false;
  chunk_scan s = {.trace = trace,
                  .segment = &fresh,
                  .start_ticks = segment->start_ticks,
                  .clock_offset = segment->clock_offset};
  const uint64_t *at = segment->words;
  for (uint64_t left = segment->slot_count, slots; left > 0; at += slots * 2, left -= slots) {
    prof_i_long_record record;
    const prof_i_parse_result parsed =
        prof_i_parse_record(at, left, segment->generation, &slots, &record);
    if (parsed == PROF_I_PARSED_PLAIN)
      count_event(&s, prof_i_plain_interval_in(at, s.start_ticks, s.clock_offset).end, true);
    if (parsed != PROF_I_PARSED_EVENT) continue;
    count_long(&s, prof_i_event_interval(at, &record, s.start_ticks, s.clock_offset).end,
               record.kind);
    if (record.kind == PROF_I_KIND_CALL) count_call(&s, at, &record);
  }
  fresh.passed_count = fresh.cleared_count - segment->cleared_count;
  fresh.cleared_count = segment->cleared_count;
  *segment = fresh;
}

void prof_i_scan_recount(prof_trace *trace) {
  for (uint32_t i = 0; i < trace->segment_count; i++)
    if (trace->segments[i].min_end < trace->floor) segment_recount(trace, &trace->segments[i]);
}
