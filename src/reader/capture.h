/* A checked capture: its bytes, its contents, and its faults. open.c fills it by the parts source,
   extent, catalog, clock epochs, timeline, scan and index. It does not change afterwards. All code
   that reads captures uses it. Users never see it. Also views, which show a part of a trace, and
   the cache of scans.

   Times are ticks since the capture's start, unwrapped (parse.h). timeline.h converts them to
   nanoseconds. */
#ifndef PROF_READER_CAPTURE_H
#define PROF_READER_CAPTURE_H

#include <stdbool.h>

#include "../format/layout.h"
#include "catalog.h"
#include "internal.h"
#include "source.h"
#include "timeline.h"

/* ---- clock_epoch.c: a counter that jumped ---- */

enum { PROF_I_CLOCK_EPOCHS_MAX = 64, PROF_I_EPOCH_HINTS_MAX = 64 };

/* A time in which the counter did not jump. Ticks are as recorded, less the start's. With shift
   added they are ticks of the time line. */
typedef struct prof_i_clock_epoch {
  int64_t low, high;
  int64_t shift;
  int64_t begin, end; /* on the time line: the last pair before it, the first of the next */
} prof_i_clock_epoch;

/* A thread takes one chunk after another. So its next chunk begins in the epoch in which its last
   one ended, or later. */
typedef struct prof_i_epoch_hint {
  uint64_t owner, sequence; /* of a chunk */
  uint32_t first, last;     /* epoch */
} prof_i_epoch_hint;

/* ---- scan.c, index.c: the threads' records ---- */

/* Neighbouring records of one thread, at most PROF_I_SEGMENT_SLOTS slots and one record more. */
typedef struct prof_i_segment {
  const uint64_t *words; /* the first record */
  const uint64_t *owner; /* the OWNER record before them; NULL: missing */
  uint64_t serial;       /* of the thread */
  uint64_t sequence;     /* of the chunk */
  /* of the events that count; 0 and UINT64_MAX if there are no events */
  uint64_t min_end, max_end;
  uint64_t start_ticks; /* of the epoch in which its scopes began */
  int64_t clock_offset; /* to add to durations, if they ended in another epoch */
  uint64_t before_max;  /* max_end over the thread's segments up to this one */
  uint32_t slot_count;  /* of 16 bytes, from words on */
  uint32_t event_count;
  uint32_t scope_count;
  uint32_t skipped_count; /* of scope_count */
  uint32_t unfinished_count;
  uint32_t cleared_count;
  uint32_t passed_count; /* older than the ring's bound */
  uint8_t generation;
  bool is_plain : 1;   /* only plain scopes, without a gap */
  bool is_ordered : 1; /* by end */
  bool has_calls : 1;  /* of a vendor's tracing: walk_sorted.c may move them */
  bool has_steps : 1;
  /* another thread wrote it for this one: see index.c */
  bool is_side_written : 1;
  /* No event of a later segment ended before one of this segment or an earlier one. */
  bool ends_group : 1;
} prof_i_segment;

enum { PROF_I_SEGMENT_SLOTS = 65536 };

/* A scope that had not ended. */
typedef struct prof_i_open_scope {
  uint64_t start;
  const uint64_t *record; /* its words from 2 on are a long record's; NULL: plain */
  uint32_t site;
} prof_i_open_scope;

/* Slots that were claimed for a record and never used, marked or not. */
typedef struct prof_i_unused_claim {
  uint64_t serial; /* of the thread */
  uint64_t slots;  /* 0: not a loss */
  bool has_mark;   /* else it may be several neighbours */
} prof_i_unused_claim;

typedef struct prof_i_trace_thread {
  uint64_t serial;
  uint64_t tid;
  uint64_t event_count;
  uint64_t side_written_count; /* of them, written by other threads */
  uint64_t lost[PROF_I_LOSS_WORDS];
  uint64_t own_ns; /* chunk changes; open.c adds the scopes' share */
  uint32_t first_segment, segment_count;
  uint32_t first_open, open_count;
  uint64_t thread_kind; /* prof_i_thread_kind */
  bool is_alive;
  char name[PROF_I_NAME_BYTES];
} prof_i_trace_thread;

static inline bool prof_i_thread_is_stream(const prof_i_trace_thread *thread) {
  return (thread->thread_kind & 0xff) == PROF_I_KIND_OF_STREAM;
}

/* Names a thread: its slot while it lives, its EXIT record afterwards. One of the two is set. */
typedef struct prof_i_thread_ref {
  uint64_t serial;
  const prof_i_thread_slot *slot;
  const uint64_t *exit;
  /* of a virtual thread of calls: only its losses count */
  bool is_side_written;
} prof_i_thread_ref;

struct prof_trace {
  prof_i_source source;
  prof_i_header header; /* a copy; each number is checked where it is used */
  prof_i_catalog catalog;
  prof_i_timeline timeline;
  prof_i_segment *segments; /* by thread, then in the order of time */
  uint32_t segment_count, segment_room;
  prof_i_thread_ref *thread_refs; /* only while opening */
  uint32_t thread_ref_count, thread_ref_room;
  prof_i_trace_thread *threads; /* by serial */
  uint32_t thread_count;
  prof_i_open_scope *opens;
  uint32_t open_count;
  prof_i_unused_claim *claims;
  /* the last ones; a claim of an end is no loss if the scope counts as open */
  uint32_t claim_count, claim_room;
  uint64_t open_claim_count;
  /* events that ended before are not emitted: cleared, or past the ring's bound */
  uint64_t floor;
  uint64_t last; /* of the last record: where open scopes end */
  /* since the start: when a live capture was read or copied; 0: it was not live */
  uint64_t opened_ns;
  uint64_t event_count, scope_count, skipped_count;
  uint64_t lost[PROF_I_LOSS_WORDS];
  uint64_t open_below_count, stray_count; /* as in prof_trace_info */
  uint64_t deep_parts; /* of the slots that have a ledger: see prof_i_slot_deep_part() */
  uint64_t own_ns, in_place_ns, wait_ns, spread_us2; /* in_place_ns: of own_ns */
  uint64_t few_count; /* events of threads that were too short for a window: cost_sample.h */
  uint64_t window_count;
  uint64_t bad_count;
  bool is_settled; /* stopped, or its process is dead: claims stay unfinished */
  bool has_unknown_sites;
  bool has_site_records; /* prof_i_site_info.record */
  prof_i_clock_epoch clock_epochs[PROF_I_CLOCK_EPOCHS_MAX];
  uint32_t clock_epoch_count;  /* 1 unless the counter jumped */
  uint32_t epoch_change_count; /* segments that were made for it */
  prof_i_epoch_hint epoch_hints[PROF_I_EPOCH_HINTS_MAX],
      last_epoch_hint;   /* by owner; of the chunk scanned last */
  uint64_t clock_gap_ns; /* the longest time between the two pairs around a jump */
  /* the largest jump that may also be a difference between the processors' counters */
  uint64_t clock_step_ns;
  uint64_t clock_back_count; /* scopes that ended before they began */
  struct prof_i_view *view;  /* of a view of another trace: view.c; else NULL */
  struct prof_trace *view_of;
  /* owners beyond the first: views, and those of prof_i_trace_share(); atomic */
  uint32_t use_count;
};

/* ---- source.c: extents ---- */

/* Copies and checks the header. PROF_E_TRUNCATED, PROF_E_NOT_CAPTURE, PROF_E_VERSION. */
int prof_i_header_check(prof_trace *trace);
/* The same of the first bytes of a file. */
int prof_i_header_detect(const unsigned char *bytes, uint64_t count, prof_i_header *header_out);

typedef struct prof_i_extent {
  const prof_i_head *head;
  uint64_t offset;
  uint64_t bytes; /* that exist: fewer than in the head if the file is cut off */
} prof_i_extent;

/* The extent at or after *offset. Moves *offset behind it. False: the end. Adds damaged parts to
   *bad_count. */
bool prof_i_extent_next(const prof_i_source *source, uint64_t *offset, prof_i_extent *extent_out,
                        uint64_t *bad_count);
uint64_t prof_i_head_bytes(const prof_i_head *head, uint64_t offset);

/* 16-byte slots behind the head that were claimed and exist. 0: the chunk must not be read. */
uint64_t prof_i_extent_claimed(const prof_i_extent *extent);

/* ---- the other parts, in the order in which open.c calls them ---- */

/* Functions that return int: 0 or PROF_E_NO_MEMORY. */

/* Finds the epochs by the clock pairs. Pairs and marks get ticks of the time line. */
int prof_i_clock_epochs_find(prof_trace *trace);
/* The earliest epoch in which the counter can have had this value, or 0. */
uint32_t prof_i_clock_epoch_of(const prof_trace *trace, int64_t ticks);
/* The epoch of a record's end: `from` or later, if possible. Later than `from` if it is before the
   latest end in `from`. */
uint32_t prof_i_clock_epoch_of_end(const prof_trace *trace, uint32_t from, int64_t ticks,
                                   int64_t latest);
/* The epoch of the start of a scope that ended in end_era. */
uint32_t prof_i_clock_epoch_of_start(const prof_trace *trace, uint32_t end_era, int64_t start,
                                     int64_t end);
/* The time of a reading of the counter. */
uint64_t prof_i_trace_ns(const prof_trace *trace, uint64_t ticks);
/* Ticks of the time line, within the epoch. If CLOCK_MONOTONIC stopped and the counter did not, the
   records between have ticks beyond the epoch's end. They get its end. */
static inline int64_t prof_i_clock_epoch_clamp(const prof_trace *trace, uint32_t epoch,
                                               int64_t ticks) {
  const prof_i_clock_epoch *const e = &trace->clock_epochs[epoch];
  const int64_t moved = ticks + e->shift;
  return moved < e->begin ? e->begin : moved > e->end ? e->end : moved;
}
/* The same, and not before the start. */
static inline uint64_t prof_i_clock_epoch_ticks(const prof_trace *trace, uint32_t epoch,
                                                int64_t ticks) {
  const int64_t place = prof_i_clock_epoch_clamp(trace, epoch, ticks);
  return place > 0 ? (uint64_t)place : 0;
}

/* Adds a slot and what it says of its thread. */
int prof_i_scan_slot(prof_trace *trace, const prof_i_extent *extent);
/* Finds the segments of a chunk. serial: of the thread, if the chunk has no OWNER record. */
int prof_i_scan_chunk(prof_trace *trace, const prof_i_extent *extent, uint64_t serial);
/* Counts segments again that the floor cuts, because it was raised later. Hidden events go to
   passed_count. */
void prof_i_scan_recount(prof_trace *trace);

/* The slot's ledger. 0: it has no ledger. */
static inline uint64_t prof_i_trace_ledger(const prof_trace *trace,
                                           const prof_i_thread_slot *slot) {
  const uint64_t ledger = trace->header.version < 2 ? 0 : prof_i_ledger_of(slot);
  return ledger & PROF_I_LEDGER_KEPT ? ledger : 0;
}

/* Makes threads and open scopes from segments and thread references. */
int prof_i_index_threads(prof_trace *trace);
int prof_i_index_open(prof_trace *trace);

/* The thread of this serial, or NULL. After prof_i_index_threads(). */
prof_i_trace_thread *prof_i_index_thread(const prof_trace *trace, uint64_t serial);

/* change_text.c. Adds the changes in the header, and sorts all by time. After the timeline. */
int prof_i_changes_sort(prof_trace *trace);
/* How many changes the header has lost. */
uint64_t prof_i_changes_unreadable(const prof_i_header *header);

/* ---- scan_cache.c ---- */

/* Results of chunk scans, kept for the next trace of the process's own capture. A program that is
   profiled in cycles makes a trace in each cycle. Without the cache each trace would scan all that
   was ever recorded. Only finished chunks are kept. Their key distinguishes them from any later use
   of the same room. Called by scan.c and src/live/snapshot.c. */

enum { PROF_I_SCAN_SEGMENTS = 4 }; /* a chunk with more is scanned each time */

/* Padding is zero, because keys are compared byte by byte. */
typedef struct prof_i_scan_key {
  uint64_t start_ticks, start_ns; /* of the capture */
  uint64_t offset, bytes;         /* of the chunk */
  uint64_t sequence, generation, cursor, owner;
} prof_i_scan_key;

/* start_ticks, start_ns: of the capture's header. */
prof_i_scan_key prof_i_scan_key_of(uint64_t start_ticks, uint64_t start_ns, uint64_t offset,
                                   const prof_i_head *head);

/* Whether the chunk is cached. Then each of its records is finished. */
bool prof_i_scan_cache_has(const prof_i_scan_key *key);

/* The chunk's segments, with pointers into the chunk at that address. False: it is not cached. */
bool prof_i_scan_cache_get(const prof_i_scan_key *key, const unsigned char *chunk,
                           prof_i_segment segments_out[PROF_I_SCAN_SEGMENTS], uint32_t *count_out);

/* Caches them, if there is room. */
void prof_i_scan_cache_put(const prof_i_scan_key *key, const unsigned char *chunk,
                           const prof_i_segment *segments, uint32_t count);

/* ---- view.c ---- */

/* A view is a trace that shares the data of another one, and shows a part. It serves the profile of
   one thread while other threads have profiles (include/prof/python.h). The walk asks the view for
   each record. */
typedef struct prof_i_view prof_i_view;

/* Whether the trace hides a scope of this site on this thread. words: of a long record, or NULL. */
bool prof_i_view_hides_scope(const prof_trace *trace, uint32_t thread, uint32_t site,
                             const uint64_t *words);

/* The same for a memory record. */
bool prof_i_view_hides_memory(const prof_trace *trace, uint32_t thread, const uint64_t *words);

void prof_i_view_destroy(prof_i_view *view);

/* ---- arrays, names, a trace of bytes ---- */

/* Gives an array room for one element more, by doubling it. False: no memory, and the array stays
   valid. */
bool prof_i_make_room(void **array, uint32_t *room, uint32_t count, size_t element_bytes);

/* Gives an array room for this index. New elements are zero. False: as above. */
bool prof_i_make_room_at_index(void **array, uint32_t *room, uint32_t place, size_t element_bytes);

/* Copies a name of at most `bytes`, up to its NUL. `to` has room for `room`, and always gets a
   NUL. */
void prof_i_copy_name(char *to, size_t room, const char *name, size_t bytes);

/* Makes a trace of its bytes. Takes the source over, also if it fails. */
int prof_i_trace_make(prof_i_source *source, prof_trace **trace_out);

#endif
