/* A capture as the reader holds it once it is checked: where the bytes are, what stands in them,
   and what was found wrong. Filled by open.c from its parts (source, extent, catalog, timeline,
   scan, index), read by all that reads captures; it does not change after that. Nothing here is
   handed to users.

   Times are ticks since the capture's start, unwrapped (parse.h), until timeline.h makes them
   nanoseconds. */
#ifndef PROF_READER_CAPTURE_H
#define PROF_READER_CAPTURE_H

#include <stdbool.h>

#include "../core/buffer/clock.h"
#include "../format/layout.h"
#include "timeline.h"
#include "walk.h"

/* ---- process_state.c: the process ---- */

typedef enum prof_i_process_state {
  PROF_I_PROCESS_ENDED,
  PROF_I_PROCESS_RUNS,
  PROF_I_PROCESS_UNKNOWN
} prof_i_process_state;

prof_i_process_state prof_i_process_state_of(const prof_i_header *header);
/* Of a process that runs: is its CLOCK_MONOTONIC this process's? False: it has another time
   namespace, or that cannot be told. */
bool prof_i_process_shares_clock(const prof_i_header *header);
/* Of a process that runs: does it certainly not map that file? Then the file is a copy. On some
   file systems a mapping shows another number than the file, so its name counts, too. */
bool prof_i_process_lacks_file(const prof_i_header *header, int fd);
/* Of a process that runs: it records into another file. */
bool prof_i_source_is_copy(int fd, const prof_i_header *header);

/* ---- source.c, snapshot.c: the bytes ---- */

typedef enum prof_i_source_kind {
  PROF_I_SOURCE_BORROWED, /* the caller's */
  PROF_I_SOURCE_COPY,     /* malloc */
  PROF_I_SOURCE_MAPPING   /* mmap */
} prof_i_source_kind;

/* A stretch of the bytes whose pages may leave memory at any time: a file, or the arena, has
   them. */
typedef struct prof_i_mapped_run {
  uint64_t offset, bytes;
} prof_i_mapped_run;

enum {
  PROF_I_LARGE_CAPTURE_BYTES = 64 << 20, /* a capture up to there may be held in memory whole */
  PROF_I_OPEN_SOURCES_BYTES = 128 << 20, /* all that are open together: further ones are mapped */
  PROF_I_ARENA_GROWTH_BYTES = 64 << 20   /* of an arena while it is copied once */
};

typedef struct prof_i_cached_head {
  uint64_t offset;
  const unsigned char *at; /* the chunk */
  prof_i_head head;
} prof_i_cached_head;

typedef struct prof_i_source {
  const unsigned char *bytes; /* 8-byte aligned */
  uint64_t count;
  prof_i_source_kind kind;
  uint64_t counted_bytes; /* its part of PROF_I_OPEN_SOURCES_BYTES */
  /* somebody writes on, or may; the bytes here are a copy, or finished, and nobody writes to
     them */
  bool is_live;
  bool is_elsewhere; /* whether somebody does cannot be told */
  bool is_copied;    /* a plain copy of a file that somebody writes on to */
  /* Just before the bytes were copied, of a live capture whose clock can be read here; else
     zeros. */
  prof_i_clock_reading opened;
  prof_i_mapped_run *runs; /* by offset; own */
  uint32_t run_count, run_room;
  struct prof_i_cached_head
      *heads; /* by offset; own: of chunks in runs or in place, whose heads may change */
  uint32_t head_count, head_room;
  const unsigned char
      *in_place; /* the arena that chunks stand in, which are not in the bytes; NULL: none */
  uint64_t in_place_bytes;
  uint64_t
      snapshot_pin; /* of the own capture; 0: none. prof_i_source_fini() gives it to end_lease() */
  void (*end_lease)(uint64_t snapshot_pin);
} prof_i_source;

/* What others write to. */
typedef struct prof_i_live_source {
  const unsigned char *bytes;
  uint64_t room; /* bytes of address space: what may be there later */
  /* what is there now; only grows. NULL: all */
  uint64_t (*live_bytes_now)(const struct prof_i_live_source *live);
  const unsigned char *in_place; /* the arena, where find_bytes() may say so. NULL: never */
  const unsigned char *(*find_bytes)(
      const struct prof_i_live_source *live,
      uint64_t offset); /* where it can be read. NULL: in the bytes */
  void (*mark_shown_in_place)(const unsigned char *chunk,
                              uint64_t bytes); /* a trace shows that chunk */
  /* At the unit there; NULL: at all. */
  bool (*may_read_unit)(const struct prof_i_live_source *live, uint64_t offset);
  int fd; /* for live_bytes_now, as is the next */
  void *user;
  bool may_map_more; /* the arena has more than the room: who outgrows that is told so */
} prof_i_live_source;

int prof_i_source_file(prof_i_source *source, const char *path);
/* Traces together hold at most PROF_I_OPEN_SOURCES_BYTES of copies. True: `bytes` more are
   counted. */
bool prof_i_source_hold(uint64_t bytes);
void prof_i_source_let_go(uint64_t bytes);
/* Refuses a part of the memory of a process that records without a file: it lacks the private
   blocks. what: names it in the error. */
int prof_i_source_check_memory(const unsigned char *first_unit, const char *what);
int prof_i_source_bytes(prof_i_source *source, const void *bytes, size_t count);
/* What is used of an arena that others write to: every record that was committed before the call,
   whole. Where may_share, chunks that nobody writes to any more are seen where they stand, and the
   source needs a lease; all else is copied. PROF_I_SNAPSHOT_OUTGROWN, without a text:
   live->may_map_more, and it is needed. */
enum { PROF_I_SNAPSHOT_OUTGROWN = 1 };
int prof_i_source_snapshot(prof_i_source *source, const prof_i_live_source *live, bool may_share);
/* These bytes have been read: of a large capture, their pages may go until they are read again. Any
   thread. */
void prof_i_source_release_pages(const prof_i_source *source, const void *from, uint64_t bytes);
void prof_i_source_fini(prof_i_source *source);
/* The extent's head, in the bytes or kept beside them. */
const prof_i_head *prof_i_source_head(const prof_i_source *source, uint64_t offset);
/* Where the chunk at this offset stands. Its head: as above. */
const unsigned char *prof_i_source_chunk(const prof_i_source *source, uint64_t offset);
/* Is it a chunk that stands where the process records it, or is mapped from there? It is
   finished. */
bool prof_i_source_is_shared(const prof_i_source *source, uint64_t offset);
/* The offset of what stands there. */
uint64_t prof_i_source_offset(const prof_i_source *source, const void *at);
/* The bytes from this offset on, as the capture's file would have them: as many as stand in one
   piece. *count_out 0: the end. */
const void *prof_i_source_bytes_at(const prof_i_source *source, uint64_t offset,
                                   uint64_t *count_out);
/* Another run of the arena's is mapped by a trace. False: there are so many that the process may
   lack mappings; nothing has changed. */
bool prof_i_source_add_mapping(void);

/* ---- catalog.c: sites, schemas, tracks, clock pairs ---- */

typedef struct prof_i_schema {
  const uint64_t *record;
  uint32_t number;
  uint8_t kind; /* prof_args_kind */
  uint8_t count;
  uint8_t types[PROF_ARGS_MAX];
  uint32_t keys[PROF_ARGS_MAX]; /* where the key's length stands: words from the record's begin */
  uint32_t format;              /* the same of the format */
} prof_i_schema;

typedef struct prof_i_track {
  prof_device device;
  uint64_t stream;
  prof_i_text name;
} prof_i_track;

/* prof_trace_change, with the thread by its serial. */
typedef struct prof_i_change_record {
  uint32_t number; /* as it was read: of two at one time */
  /* when, of one from outside that was told by whoever made it; 0: ticks say it */
  uint64_t monotonic_ns;
  uint64_t ticks;
  uint32_t kind, reason, site, level_before, level_after;
  uint64_t serial, measured, allowed;
} prof_i_change_record;

/* A pool of memory, from one start to its stop. */
typedef struct prof_i_pool_record {
  uint32_t number, kind, serial, session, baseline;
  uint32_t start; /* counts starts of memory, of which a session may have several */
  prof_device device;
  uint64_t ticks; /* when the session began for it */
  uint64_t used_before, allocated_before;
  prof_i_text name;
  prof_i_pool_state state; /* as it stood when the capture was read */
} prof_i_pool_record;

/* The process of a thread. */
typedef struct prof_i_process_record {
  uint64_t serial; /* of the thread */
  int64_t pid;
  int32_t rank;     /* -1: not known, or there is one rank */
  prof_i_text name; /* empty: not known */
} prof_i_process_record;

typedef struct prof_i_catalog {
  uint32_t *site_at; /* by number: place in sites, 0 for unknown numbers */
  uint32_t site_limit;
  prof_i_site_info *sites; /* sites[0] stands for all that are unknown */
  uint32_t site_count;
  uint32_t site_room;
  prof_i_schema *schemas; /* by number */
  uint32_t schema_count, schema_room;
  prof_i_track *tracks;
  uint32_t track_count, track_room;
  prof_i_time_pair *pairs;
  uint32_t pair_count, pair_room;
  /* ticks at which steps begin: ends of steps, starts of sessions; sorted by index.c */
  uint64_t *marks;
  uint32_t mark_count, mark_room;
  /* ticks at which functions were traced no longer, while some stood open; sorted by index.c */
  uint64_t *function_ends;
  uint32_t function_end_count, function_end_room;
  prof_i_change_record *changes;
  uint32_t change_count, change_room;
  /* changes from outside that have records, by their numbers: the header may have later ones */
  uint64_t outside_count;
  prof_i_text *notes; /* in the order in which they stand there */
  uint32_t note_count, note_room;
  prof_i_process_record *processes; /* of threads of other processes, by serial: process.c */
  uint32_t process_count, process_room;
  prof_i_pool_record *pools;
  uint32_t pool_count, pool_room;
  prof_i_device_state *devices; /* by device, each once */
  uint32_t device_count, device_room;
  uint64_t first_session; /* of which anything stays after a clear; 0: all */
  uint32_t last_level;    /* the last that was not 0 */
  /* how far CLOCK_REALTIME has moved against CLOCK_MONOTONIC since the start */
  int64_t wall_ns;
  uint64_t wall_width_ns; /* of the pair that said so */
  uint32_t wall_step_count;
} prof_i_catalog;

/* ---- epoch.c: a counter that jumped ---- */

enum { PROF_I_CLOCK_EPOCHS_MAX = 64, PROF_I_EPOCH_HINTS_MAX = 64 };

/* A time in which the counter did not jump. Ticks as recorded, less the start's; with shift, they
   are ticks of the time line. */
typedef struct prof_i_clock_epoch {
  int64_t low, high;
  int64_t shift;
  int64_t begin, end; /* on the time line: the last pair before it, and the next one's first */
} prof_i_clock_epoch;

/* Chunks are taken one after another: the next one a thread takes begins where its last one ended,
   or later. */
typedef struct prof_i_epoch_hint {
  uint64_t owner, sequence; /* of a chunk */
  uint32_t first, last;     /* era */
} prof_i_epoch_hint;

/* ---- scan.c, index.c: the threads' records ---- */

/* Records of one thread that stand side by side, at most PROF_I_SEGMENT_SLOTS and one record
   more. */
typedef struct prof_i_segment {
  const uint64_t *words; /* the first record */
  const uint64_t *owner; /* the OWNER record before them; NULL when it is missing */
  uint64_t serial;       /* of the thread */
  uint64_t sequence;     /* of the chunk */
  /* of the events that count; max_end 0 and min_end UINT64_MAX when there is none */
  uint64_t min_end, max_end;
  uint64_t start_ticks; /* of the era in which its scopes began */
  int64_t clock_offset; /* to add to their durations: they ended in another era */
  uint64_t before_max;  /* max_end over the thread's segments up to this one */
  uint32_t slot_count;  /* of 16 bytes, from words on */
  uint32_t event_count;
  uint32_t scope_count;
  uint32_t skipped_count; /* of scope_count */
  uint32_t unfinished_count;
  uint32_t cleared_count;
  uint32_t passed_count; /* older than the ring's bound */
  uint8_t generation;
  bool is_plain : 1;   /* nothing but plain scopes, without a gap */
  bool is_ordered : 1; /* by end */
  bool has_calls : 1;  /* of a vendor's tracing: they may have to be moved a little */
  /* written by another than the thread whose it is: see virtual_threads.c */
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

/* Room that was claimed for a record, and never used: marks and what has no marks, of so many
   slots. */
typedef struct prof_i_unused_claim {
  uint64_t serial; /* of the thread */
  uint64_t slots;  /* 0: it is no loss */
  bool has_mark;   /* else it may be several, one behind the other */
} prof_i_unused_claim;

typedef struct prof_i_trace_thread {
  uint64_t serial;
  uint64_t tid;
  uint64_t event_count;
  uint64_t side_written_count; /* of them, what others wrote for it */
  uint64_t lost[PROF_I_LOSS_WORDS];
  uint64_t own_ns; /* chunk changes, until prof_i_index_sum() adds the scopes' share */
  uint32_t first_segment, segment_count;
  uint32_t first_open, open_count;
  uint64_t thread_kind; /* prof_i_thread_kind */
  bool is_alive;
  char name[PROF_I_NAME_BYTES];
} prof_i_trace_thread;

static inline bool prof_i_thread_is_stream(const prof_i_trace_thread *thread) {
  return (thread->thread_kind & 0xff) == PROF_I_KIND_OF_STREAM;
}

/* What else speaks of a thread: its slot while it lives, its EXIT record after. One of the two is
   set. */
typedef struct prof_i_thread_ref {
  uint64_t serial;
  const prof_i_thread_slot *slot;
  const uint64_t *exit;
  /* of a line of calls: what was lost of them counts, the rest is the thread's own to say */
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
  /* the last ones; those of an end whose scope stands open are no losses */
  uint32_t claim_count, claim_room;
  uint64_t open_claim_count;
  /* events that ended before are not handed out: cleared, or past the ring's bound */
  uint64_t floor;
  uint64_t last; /* the last thing known: where open scopes end */
  /* since the start: when it was read, or copied, while it was being recorded; 0: it was not */
  uint64_t opened_ns;
  uint64_t event_count, scope_count, skipped_count;
  uint64_t lost[PROF_I_LOSS_WORDS];
  uint64_t open_below_count, stray_count; /* as in prof_trace_info */
  uint64_t deep_parts; /* of the slots that have a ledger: see prof_i_slot_deep_part() */
  uint64_t own_ns, in_place_ns, wait_ns, spread_us2; /* in_place_ns: of own_ns */
  uint64_t few_count; /* events of threads that were too short for a window: cost_sample.h */
  uint64_t window_count;
  uint64_t bad_count;
  bool is_settled; /* stopped, or its process is dead: what is unfinished stays so */
  bool has_unknown_sites;
  bool has_site_records; /* prof_i_site_info.record */
  prof_i_clock_epoch clock_epochs[PROF_I_CLOCK_EPOCHS_MAX];
  uint32_t clock_epoch_count;  /* 1 but where the counter jumped */
  uint32_t epoch_change_count; /* segments that were made for it */
  prof_i_epoch_hint epoch_hints[PROF_I_EPOCH_HINTS_MAX],
      last_epoch_hint;   /* by owner; of the chunk scanned last */
  uint64_t clock_gap_ns; /* the longest stretch in which it jumped, who knows when */
  /* the most that two segments are apart which cannot be told from processors' differing
     counters */
  uint64_t clock_step_ns;
  uint64_t clock_back_count; /* scopes that ended before they began */
  struct prof_i_view *view;  /* of a trace that is a view of another: view.h; else NULL */
  struct prof_trace *view_of;
  uint32_t view_count; /* views of this one, which it outlives; atomic */
};

/* ---- extent.c ---- */

/* Copies and checks the header. PROF_E_TRUNCATED, PROF_E_NOT_CAPTURE, PROF_E_VERSION. */
int prof_i_header_check(prof_trace *trace);
/* The same of bytes from a file's begin; fails when nothing behind them can be read. */
int prof_i_header_detect(const unsigned char *bytes, uint64_t count, prof_i_header *header_out);

typedef struct prof_i_extent {
  const prof_i_head *head;
  uint64_t offset;
  uint64_t bytes; /* that are there: less than the head says when the file is cut off */
} prof_i_extent;

/* The extent at or after *offset, moved behind it; false at the end. Stretches that are damaged are
   added to *bad_count. */
bool prof_i_extent_next(const prof_i_source *source, uint64_t *offset, prof_i_extent *extent_out,
                        uint64_t *bad_count);
uint64_t prof_i_head_bytes(const prof_i_head *head, uint64_t offset);

/* 16-byte slots behind the head that were claimed and are there; 0 when the chunk must not be
   read. */
uint64_t prof_i_extent_claimed(const prof_i_extent *extent);

/* ---- the parts, in the order in which open.c calls them; each 0 or PROF_E_NO_MEMORY ---- */

int prof_i_catalog_init(prof_i_catalog *catalog);
int prof_i_catalog_read(prof_trace *trace, const prof_i_extent *extent);
void prof_i_catalog_finish(prof_i_catalog *catalog);
/* process.c: a record of the kind PROCESS; all of them by serial; whose a thread is. */
int prof_i_catalog_add_process(prof_trace *trace, const uint64_t *words, uint64_t word_count);
void prof_i_catalog_sort_processes(prof_i_catalog *catalog);
prof_i_process_record prof_i_trace_process(const prof_trace *trace, uint32_t thread);
void prof_i_catalog_fini(prof_i_catalog *catalog);

/* or NULL */
const prof_i_schema *prof_i_catalog_schema(const prof_i_catalog *catalog, uint32_t number);
/* or NULL */
const prof_i_pool_record *prof_i_catalog_pool(const prof_i_catalog *catalog, uint32_t number);

/* Where the pairs say that the counter jumped, eras begin; pairs and marks get the time line's
   ticks. */
int prof_i_clock_epochs_find(prof_trace *trace);
/* The earliest era in which the counter can have said so, or 0. */
uint32_t prof_i_clock_epoch_of(const prof_trace *trace, int64_t ticks);
/* The era of a record's end: not before `from` if that can be, and later where it is before the
   latest end in `from`. */
uint32_t prof_i_clock_epoch_of_end(const prof_trace *trace, uint32_t from, int64_t ticks,
                                   int64_t latest);
/* The era of the start of a scope that ended in that era. */
uint32_t prof_i_clock_epoch_of_start(const prof_trace *trace, uint32_t end_era, int64_t start,
                                     int64_t end);
/* The time of a counter's reading. */
uint64_t prof_i_trace_ns(const prof_trace *trace, uint64_t ticks);
/* Ticks of the time line. Not before what went before the era, nor behind what came after: if the
   counter did not jump but CLOCK_MONOTONIC stood, there are records in between, which took no time
   that it knows of. */
static inline int64_t prof_i_clock_epoch_clamp(const prof_trace *trace, uint32_t epoch,
                                               int64_t ticks) {
  const prof_i_clock_epoch *const e = &trace->clock_epochs[epoch];
  const int64_t moved = ticks + e->shift;
  return moved < e->begin ? e->begin : moved > e->end ? e->end : moved;
}
/* The same from the start on; those before it are the start. */
static inline uint64_t prof_i_clock_epoch_ticks(const prof_trace *trace, uint32_t epoch,
                                                int64_t ticks) {
  const int64_t place = prof_i_clock_epoch_clamp(trace, epoch, ticks);
  return place > 0 ? (uint64_t)place : 0;
}

/* Records the slot, and what it says of its thread. */
int prof_i_scan_slot(prof_trace *trace, const prof_i_extent *extent);
/* Finds the segments of a chunk. serial is used when the chunk does not say whose it is. */
int prof_i_scan_chunk(prof_trace *trace, const prof_i_extent *extent, uint64_t serial);
/* Counts again those segments that a floor raised later cuts into; what is hidden goes to
   passed_count. */
void prof_i_scan_recount(prof_trace *trace);

/* What the slot's ledger says; 0: it has none, whatever stands there. */
static inline uint64_t prof_i_trace_ledger(const prof_trace *trace,
                                           const prof_i_thread_slot *slot) {
  const uint64_t ledger = trace->header.version < 2 ? 0 : prof_i_ledger_of(slot);
  return ledger & PROF_I_LEDGER_KEPT ? ledger : 0;
}

/* Makes threads, open scopes and sums out of segments and mentions. */
int prof_i_index_threads(prof_trace *trace);
int prof_i_index_open(prof_trace *trace);
void prof_i_index_sum(prof_trace *trace);
/* The thread of this serial, or NULL. Once they are in order. */
prof_i_trace_thread *prof_i_index_thread(const prof_trace *trace, uint64_t serial);

/* After the timeline: those in the header, too, and all in the order of time. Of change_log.c. 0 or
   PROF_E_NO_MEMORY. */
int prof_i_changes_sort(prof_trace *trace);
/* Changes that no reader can show. */
uint64_t prof_i_changes_unreadable(const prof_i_header *header);

/* An array's room for one element more, doubled when it is used up. False when there is no memory;
   the array stays. */
bool prof_i_make_room(void **array, uint32_t *room, uint32_t count, size_t element_bytes);

/* An array's room so that this place is in it, what is new zero. False as above. */
bool prof_i_make_room_at_index(void **array, uint32_t *room, uint32_t place, size_t element_bytes);

/* Copies a name of at most `bytes`, up to its NUL; `to` has bytes + 1 or is as long, and is always
   terminated. */
void prof_i_copy_name(char *to, size_t room, const char *name, size_t bytes);

/* The whole way from bytes to a trace. Takes the source over, also when it fails. */
int prof_i_trace_make(prof_i_source *source, prof_trace **trace_out);

static inline uint32_t prof_i_catalog_known_site(const prof_i_catalog *catalog, uint32_t number) {
  return number < catalog->site_limit && catalog->site_at[number] ? number : 0;
}
static inline const prof_i_site_info *prof_i_catalog_site(const prof_i_catalog *catalog,
                                                          uint32_t number) {
  return &catalog->sites[number < catalog->site_limit ? catalog->site_at[number] : 0];
}

#endif
