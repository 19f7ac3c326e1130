/* Where memory goes: what a device's pools hand out (used) and what they have taken from the system
   (allocated), their true peaks, and who held what then. Two ways in: exact, by a pool that says
   each piece and each block; or RAF's, by PROFILE_MEMORY() at places of one's choice and a query
   that says what is used and allocated now. What both say of one device is told apart, and never
   added up.

       const prof_pool_options options = {.size = sizeof options, .name = "tensors"};
       prof_pool_create(&options, &pool);
       prof_memory_reserve(pool, block, 64 << 20);  // taken from the system
       prof_memory_alloc(pool, piece, 1000, 1024);  // handed to a tensor: asked for, and given
       prof_memory_free(pool, piece, 1024);

   Memory is recorded into the capture that scopes go to, from prof_start() to prof_stop(); or
   alone, from prof_memory_start() to prof_memory_stop(). Peaks are kept beside the records, and
   stay right when records are lost. Bytes are bytes; MB are 2^20 of them, as RAF's.

   An allocator with a lock of its own makes its calls inside that lock: then prof sees them in the
   order in which the pool changed, and peaks and what is live are exact. Outside of it the sums
   stay right in the end; but a peak may miss what was handed out and not yet told, and what a start
   finds there (its baseline) may be off by what was under way.
   docs/how-to/instrument-an-allocator.md goes through an allocator step by step.
   SPDX-License-Identifier: MIT */
#ifndef PROF_MEMORY_H
#define PROF_MEMORY_H

#include <prof/profiler.h>

/* Addresses are numbers here: nothing is read or written there, and what stands there may be
   uninitialised. */
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 11
#define PROF_I_ADDRESS_ONLY(parameter) __attribute__((access(none, parameter)))
#else
#define PROF_I_ADDRESS_ONLY(parameter)
#endif

PROF_I_EXTERN_C_BEGIN

/* What can be wrong with a call. Found when a capture is read; in a checked pool at once, and then
   not added up. */
typedef enum prof_memory_wrong {
  /* a free of what is not live here; or, where that is not known, of what was there before the
     start */
  PROF_MEMORY_WRONG_UNKNOWN = 0,
  PROF_MEMORY_WRONG_DOUBLE = 1, /* a free of what came back before */
  /* an alloc of what is live, in part or whole: the live piece is taken for freed */
  PROF_MEMORY_WRONG_OVERLAP = 2,
  PROF_MEMORY_WRONG_POOL = 3, /* a free of what is live in another pool */
  PROF_MEMORY_WRONG_SIZE = 4, /* a free of a live piece, with other bytes */
  PROF_MEMORY_WRONG_COUNT = 5
} prof_memory_wrong;

/* ---- exact: pools ---- */

typedef struct prof_pool prof_pool;

/* What a pool has used and allocated now. Returns 0, or anything else: not known. Called with no
   lock of prof held, so it may take the allocator's own lock (nobody may then call PROFILE_MEMORY()
   or a start with that lock held); must not start, stop or clear. */
typedef int (*prof_memory_query)(void *user, uint64_t *used_bytes_out,
                                 uint64_t *allocated_bytes_out);

typedef struct prof_pool_options {
  size_t size;
  const char *name;   /* copied, at most 63 bytes; NULL: "pool" */
  prof_device device; /* zero: the host */
  /* asked at each start, for what was alive before, and again if a call of the pool came meanwhile,
     so that none is in both, or in neither: if the allocator tells prof inside its own lock, and
     the query takes that lock. NULL: then it is not known, and used counts from 0 */
  prof_memory_query query;
  void *user; /* for query */
  /* 1: live pieces are kept in a table, so that wrong frees are seen at once, and the bytes of a
     free need not be said. The table is of one start: where what was there before is not known (a
     pool made before the start, without a query), a free of what is not in it is not called wrong,
     but counted as unchecked */
  uint32_t checked;
  uint32_t reserved;
} prof_pool_options;

/* of a free in a checked pool. Of a piece that it cannot know (from before the start, while memory
   was not recorded): counted as unchecked, and used stays as it is */
#define PROF_BYTES_UNKNOWN UINT64_MAX
#define PROF_NO_STREAM UINT64_MAX

/* A pool of one's own: the caller destroys it, when no other call for it is under way. Recording or
   not; options may be NULL. What is said of it is recorded while memory is. Pools of one device are
   added up: a pool whose blocks are pieces of another is counted twice there. Give the outer one a
   device of its own (or the inner one, where the outer is libprof_memory.so's `malloc`, which is
   the host's), or read them apart. PROF_E_INVALID, PROF_E_NO_MEMORY. Any thread. */
PROF_API int prof_pool_create(const prof_pool_options *options,
                              prof_pool **pool_out) PROF_I_NOEXCEPT;
/* What it recorded stays in the capture. NULL is ignored. Returns when its query, which another
   thread's start may just ask, has come back, so that what the query looks at can go; the query
   itself may destroy its pool, then nothing is awaited. So the query must not wait for a thread
   that destroys its pool. */
PROF_API void prof_pool_destroy(prof_pool *pool) PROF_I_NOEXCEPT;

/* A number for a tag ("weights"), for prof_memory_alloc_for(): the same text, the same number. 0:
   no tag; so of NULL and of "", and when tables are full. The text is copied. Looks it up: who
   allocates often keeps the number. Any thread. */
PROF_API uint32_t prof_memory_tag(const char *name) PROF_I_NOEXCEPT;

/* A piece was handed out: call it when it has been, and inside the allocator's lock. A piece that
   is resized where it stands is a free of the old bytes and an alloc of the new ones at the same
   address, in that order. An allocator that operators use while prof_op_profile() measures them
   also calls prof_op_workspace_alloc() and prof_op_workspace_free() (op.h): from that comes the
   workspace, not from here. bytes: what was asked for; given_bytes: what it takes in the pool, 0 or
   less than bytes: the same. Pieces of 4 TiB and more, and those that take a pool beyond 6 TiB, are
   counted (refused) and left out. NULL addresses (an allocation that failed) and NULL pools are
   ignored, as everything is while memory is not recorded: then it costs a call and a load. Any
   thread. Signal-safe. */
PROF_API void prof_memory_alloc(prof_pool *pool, const void *address, uint64_t bytes,
                                uint64_t given_bytes) PROF_I_NOEXCEPT PROF_I_ADDRESS_ONLY(2);
/* The same with a tag (0: none) and a stream (PROF_NO_STREAM: none). */
PROF_API void prof_memory_alloc_for(prof_pool *pool, const void *address, uint64_t bytes,
                                    uint64_t given_bytes, uint32_t tag,
                                    uint64_t stream) PROF_I_NOEXCEPT PROF_I_ADDRESS_ONLY(2);
/* A piece came back: call it before it may be handed out again. given_bytes: what was given, as at
   its alloc. There 0 means the bytes asked for; here it means 0: say what was given, or
   PROF_BYTES_UNKNOWN with a checked pool. NULL addresses are ignored, as by free(). Signal-safe,
   but for a checked pool: there a handler's calls may be left unchecked, which is counted. */
PROF_API void prof_memory_free(prof_pool *pool, const void *address,
                               uint64_t given_bytes) PROF_I_NOEXCEPT PROF_I_ADDRESS_ONLY(2);

/* A block was taken from the system, or given back to it. Tell the reserve before the first piece
   in the block, and the release after its last piece's free, before the system may hand it out
   again. A pool that tells no blocks has used, and no allocated. Blocks that touch are two: whoever
   joins them tells one reserve of both, or the larger stretch is not seen, and fragmentation comes
   out too high. Any thread. Signal-safe. */
PROF_API void prof_memory_reserve(prof_pool *pool, const void *address,
                                  uint64_t bytes) PROF_I_NOEXCEPT PROF_I_ADDRESS_ONLY(2);
PROF_API void prof_memory_release(prof_pool *pool, const void *address,
                                  uint64_t bytes) PROF_I_NOEXCEPT PROF_I_ADDRESS_ONLY(2);

/* A collection: the pool gives blocks back, or joins pieces. Counted, with its time and what was
   released meanwhile. What begin returns is for end; 0: not recorded. Any thread. */
PROF_API uint64_t prof_memory_collect_begin(prof_pool *pool) PROF_I_NOEXCEPT;
PROF_API void prof_memory_collect_end(prof_pool *pool, uint64_t begun) PROF_I_NOEXCEPT;

/* An allocation of so many bytes has failed on this device. Recorded; and what was live then, what
   is reserved, how it is fragmented, and whether the bytes would have fitted in one piece were they
   not, is written to a text beside the output ("trace.oom.txt", or the first number that is free,
   "trace.oom-2.txt", ...; readable by its owner alone; of a forked child beside its own output), or
   to stderr where the capture has none. A process writes at most 8: from the 9th call on it is
   recorded alone, and PROF_OK returned. Names in it are made readable. Needs heap, and a stack of
   16 KiB; where it is the first that a forked child records, 48 KiB. PROF_E_NOT_RUNNING,
   PROF_E_NOT_FOUND (a device that has no pool: then nothing is recorded or written), and what
   writing may meet. Any thread; not in a signal handler. */
PROF_API int prof_memory_oom(prof_device device, uint64_t bytes) PROF_I_NOEXCEPT;

/* ---- RAF's: a query ---- */

/* Who is asked by PROFILE_MEMORY() of that device; NULL: nobody. One a device. After it, the one
   before runs no more, and its user can go. PROF_E_BUSY (the one before is just being asked: by
   another thread, or it calls this itself), PROF_E_NO_MEMORY: then nothing has changed. Any
   thread. */
PROF_API int prof_memory_set_query(prof_device device, prof_memory_query query,
                                   void *user) PROF_I_NOEXCEPT;

/* Asks, and records what it says; the tag says where (at most 63 bytes are kept). Use
   PROFILE_MEMORY(dev, tag), which evaluates nothing while memory is not recorded. In a device's
   query, of the same device, it is ignored. Any thread. */
PROF_API void prof_memory_sample(prof_device device, const char *tag,
                                 uint32_t tag_bytes) PROF_I_NOEXCEPT;

/* ---- life, as RAF's memory profiler ---- */

/* Is memory recorded? */
PROF_API int prof_memory_is_on(void) PROF_I_NOEXCEPT;
/* Records memory from here on; prof_start() and prof_start_with() do it, too. When nothing records,
   a capture is started whose scopes stay off, with the options of the last start; its errors. Each
   start takes some 600 bytes of the capture for each pool, in a ring, too, and for as long as the
   capture lasts: some 25 000 of one pool fill 16 MiB. Where there is no more room, the pool's
   events are counted as lost, and prof_memory_max_get() is still right. */
PROF_API int prof_memory_start(void) PROF_I_NOEXCEPT;
/* No more memory; a capture that only recorded that is stopped. PROF_E_NOT_RUNNING. */
PROF_API int prof_memory_stop(void) PROF_I_NOEXCEPT;
/* As RAF's reset(). Peaks and collections begin anew: of pools from what is used and allocated now,
   of a query from its next answer. prof_memory_trace_text() begins anew as well. While memory is
   off, what is used is not known: then prof_memory_max_get() finds no device until the next start.
   What is recorded stays in the capture. PROF_E_NOT_RUNNING: nothing was ever recorded. Any
   thread. */
PROF_API int prof_memory_reset(void) PROF_I_NOEXCEPT;

/* For libprof_memory.so, which stands in front of malloc(): what the environment asks for at load
   (PROF_LEVEL, PROF_MEMORY) is started here, if it has not been. 1: PROF_MEMORY has started it, and
   it is said on stderr where no PROF_OUTPUT is given; 0: it has not; -1: this is a call out of that
   start. The process has one thread. */
PROF_API int prof_i_start_early(void) PROF_I_NOEXCEPT;

typedef enum prof_memory_source {
  /* of prof_memory_max_get(): the pools if the device has any, or else the query */
  PROF_MEMORY_ANY = 0,
  PROF_MEMORY_POOL = 1, /* said piece by piece */
  PROF_MEMORY_QUERY = 2 /* asked by PROFILE_MEMORY() */
} prof_memory_source;

/* RAF's get_max_memory_info, with the true peak of allocated: each at its own time. */
typedef struct prof_memory_max {
  size_t size;
  /* now, or when last asked. Without a baseline they may have gone below 0: then 0 */
  uint64_t used_bytes, allocated_bytes;
  uint64_t max_used_bytes, max_allocated_bytes;
  uint64_t collection_count; /* of a query: how often allocated was less than before */
  double max_used_mb, max_allocated_mb;
  uint32_t source; /* prof_memory_source: POOL or QUERY */
  /* with those that are destroyed. Of several, the peaks are the sums of their peaks, of those that
     were there together, where they were highest: at least the device's, which prof_memory_read()
     tells, but for what a pool still had when it was destroyed; used and allocated are of those
     that are there */
  uint32_t pool_count;
  uint32_t has_allocated; /* 1: blocks were told; 0: allocated is not known, and 0 stands there */
  uint32_t reserved;
} prof_memory_max;
/* Since the last start or reset, or as they were at the stop. PROF_E_NOT_FOUND: nothing was
   recorded of the device, or prof_memory_reset() came behind the stop. Any thread. */
PROF_API int prof_memory_max_get(prof_device device, prof_memory_source source,
                                 prof_memory_max *max_out) PROF_I_NOEXCEPT;

/* ---- reading ---- */

/* What a trace says of memory: all its events put into one order (the pools' own, where two threads
   were at one pool), and played. Memory of 32 bytes an event, and what is live. The trace must stay
   until this is destroyed. No pools is no error. PROF_E_INVALID, PROF_E_NO_MEMORY, PROF_E_TOO_LARGE
   (2^32 events). Then any number of threads may read. */
typedef struct prof_memory prof_memory;
PROF_API int prof_memory_read(const prof_trace *trace, prof_memory **memory_out) PROF_I_NOEXCEPT;
/* NULL is ignored. */
PROF_API void prof_memory_destroy(prof_memory *memory) PROF_I_NOEXCEPT;

/* A moment of a pool, or of a device. */
typedef struct prof_memory_state {
  uint64_t ns; /* from the capture's start */
  /* by the pool's own count, which loses nothing; with is_exact 0, the one of the two that is no
     peak is of the records around it */
  int64_t used_bytes, allocated_bytes;
  /* of the pieces known to be live: given, and asked for. live_bytes less than used: was there
     before, or its record is lost */
  uint64_t live_count, live_bytes, requested_bytes;
  /* of has_ranges: free in the blocks; of that in one stretch; and of live_bytes, what lies in no
     block that was told: its reserve came after the piece, or never. "live in no block" in the
     report */
  uint64_t free_bytes, largest_free_bytes, outside_bytes;
  /* of has_ranges: 1 - largest free stretch / free; 0: none, or nothing is free */
  double fragmentation;
  /* 1: all blocks are known (they come to what is allocated), and most of what is live lies in
     them */
  uint32_t has_ranges;
  /* 1: the event that made it stands in the capture; 0: the time is near, and what is live is of
     the records around it */
  uint32_t is_exact;
} prof_memory_state;

/* A pool from one start to its stop, or all that a device has. */
typedef struct prof_memory_info {
  size_t size;
  char name[64];
  prof_device device;
  uint32_t source; /* prof_memory_source */
  /* counts starts of memory in the capture, from 1: prof_start(), and prof_memory_start() after a
     stop of memory alone */
  uint32_t session;
  uint32_t pool; /* its number in the capture, as prof_event_memory has it; 0: of a device */
  /* 1: what was there before is known. 0: not; or it is only near, since calls came all the time
     while it was asked (then used_before_bytes is not 0) */
  uint32_t has_baseline;
  uint64_t used_before_bytes, allocated_before_bytes;
  /* peaks since the start, or the last reset or clear */
  prof_memory_state peak_used, peak_allocated, end;
  /* of what stands in the capture */
  uint64_t alloc_count, free_count, reserve_count, release_count, sample_count;
  uint64_t collection_count, collection_ns; /* of all since the last reset */
  uint64_t oom_count;
  /* events of which no record stands: dropped, overwritten, or killed before they were written */
  uint64_t missing_count;
  /* with refused ones no free is called wrong for its piece's sake */
  uint64_t refused_count, unchecked_count;
  /* by prof_memory_wrong. Only what is sure: none where an event before it is missing. In an
     unchecked pool's sums and peaks they are counted as they came */
  uint64_t wrong_count[8];
  uint64_t from_before_count, from_before_bytes; /* frees of what was there before the start */
  uint64_t growth_step; /* of the two step marks between which used grew most; the later one */
  /* 0: no steps, or none in which it grew; of a query, by what it said last before each mark */
  int64_t growth_bytes;
  /* frees of pieces whose alloc is lost, cleared, or from before a start of which nothing is known;
     or of what was never handed out */
  uint64_t unsure_count, unsure_bytes;
  /* of the blocks that were released while a collection that stands in the capture ran */
  uint64_t collection_released_bytes;
} prof_memory_info;
/* Those of an earlier start first, of one start in the order in which they were made; index below
   prof_memory_pool_count(). PROF_E_INVALID. */
PROF_API uint32_t prof_memory_pool_count(const prof_memory *memory) PROF_I_NOEXCEPT;
PROF_API int prof_memory_pool_get(const prof_memory *memory, uint32_t index,
                                  prof_memory_info *info_out) PROF_I_NOEXCEPT;
/* A device, with all its pools of that source of the last session; of several pools, in the order
   of time. PROF_E_NOT_FOUND. */
PROF_API int prof_memory_device_get(const prof_memory *memory, prof_device device,
                                    prof_memory_source source,
                                    prof_memory_info *info_out) PROF_I_NOEXCEPT;

typedef enum prof_memory_moment {
  PROF_MEMORY_AT_PEAK_USED = 0,
  PROF_MEMORY_AT_PEAK_ALLOCATED = 1,
  PROF_MEMORY_AT_END = 2, /* what was never freed, or not yet */
  PROF_MEMORY_AT_TIME = 3
} prof_memory_moment;

typedef enum prof_memory_by {
  PROF_MEMORY_BY_SCOPE = 0, /* the innermost scope of its thread in which it was allocated */
  PROF_MEMORY_BY_TAG = 1,
  PROF_MEMORY_BY_SIZE = 2,   /* powers of two of what was asked for */
  PROF_MEMORY_BY_ADDRESS = 3 /* each piece */
} prof_memory_by;

typedef struct prof_memory_row {
  /* NUL-terminated, UTF-8 repaired: the scope, the tag, "1 KiB - 2 KiB"; of a piece its scope. "" :
     none */
  const char *label;
  const char *tag; /* of a piece */
  uint64_t count, bytes, requested_bytes;
  uint64_t oldest_ns, newest_ns; /* when it was allocated, from the capture's start */
  uint64_t address;              /* of a piece */
} prof_memory_row;

/* What was live: rows by falling bytes. Every event up to the moment is played once more. The
   caller gives the rows to prof_free(), texts with them. at_ns: of PROF_MEMORY_AT_TIME, from the
   capture's start. PROF_E_INVALID, PROF_E_NO_MEMORY. */
typedef struct prof_memory_rows {
  const prof_memory_row *rows;
  uint64_t row_count;
  uint64_t count, bytes, requested_bytes; /* of all rows */
} prof_memory_rows;
PROF_API int prof_memory_live(const prof_memory *memory, uint32_t index, prof_memory_moment moment,
                              uint64_t at_ns, prof_memory_by by,
                              prof_memory_rows **rows_out) PROF_I_NOEXCEPT;

/* The first wrong calls of a pool: index from 0; at most 8 are kept. PROF_E_NOT_FOUND: there are
   not so many. */
typedef struct prof_memory_example {
  uint32_t wrong;  /* prof_memory_wrong */
  uint32_t thread; /* index for prof_trace_thread_get() */
  uint64_t ns, address, bytes;
  const char *scope; /* in which it stands, or ""; NUL-terminated, valid while the memory is */
} prof_memory_example;
PROF_API int prof_memory_example_get(const prof_memory *memory, uint32_t pool_index, uint32_t index,
                                     prof_memory_example *example_out) PROF_I_NOEXCEPT;

/* Used and allocated over time: `count` columns of equal time from the pool's start to the trace's
   end, each with the highest of both in it. Arrays are the caller's, of count. */
PROF_API int prof_memory_series(const prof_memory *memory, uint32_t index, uint32_t count,
                                int64_t *used_bytes_out,
                                int64_t *allocated_bytes_out) PROF_I_NOEXCEPT;

/* ---- to look at ---- */

typedef struct prof_memory_text_options {
  size_t size;
  /* columns, 40 to 500; 0: 80. Names are cut to fit, figures are not: tables take some 70 */
  uint32_t width;
  uint32_t rows_limit; /* of each table; 0: 10; UINT32_MAX: all */
  /* index + 1: this one alone; 0: all of the last session, of older ones a line each */
  uint32_t pool;
  /* 1: the plot in ASCII; 0: in UTF-8's blocks and lines. Names stay as they are */
  uint32_t ascii;
} prof_memory_text_options;

/* The report: of each pool a plot over time with the two peaks marked, what stood at them and at
   the end, who held it, what was wrong, what is not known. Names are made readable, for a terminal,
   too. options may be NULL. A trace without memory says so: no error. NUL-terminated; the caller
   gives it to prof_free(). PROF_E_INVALID, PROF_E_NOT_FOUND (no such pool), PROF_E_NO_MEMORY. Any
   thread. */
PROF_API int prof_memory_text(const prof_memory *memory, const prof_memory_text_options *options,
                              char **text_out) PROF_I_NOEXCEPT;

/* RAF's get_memory_trace: a line for each sample of a device's query since the last
   prof_memory_reset(). Cells are padded and have a tab between them: the sample's number from 0,
   its tag, used and allocated in MB. Above them are RAF's two lines of headings, "Numbers are the
   in MBs." and "#Trace #Tag used alloc". "" without a sample, as in RAF. NUL-terminated; the caller
   gives it to prof_free(). PROF_E_INVALID, PROF_E_NOT_FOUND (the trace has no query of that
   device), PROF_E_NO_MEMORY. Any thread. */
PROF_API int prof_memory_trace_text(const prof_trace *trace, prof_device device,
                                    char **text_out) PROF_I_NOEXCEPT;

/* A pool over time as a picture: one SVG that needs nothing else. NUL-terminated; the caller gives
   it to prof_free(). PROF_E_INVALID, PROF_E_NO_MEMORY. Any thread. */
PROF_API int prof_memory_svg(const prof_memory *memory, uint32_t index,
                             char **text_out) PROF_I_NOEXCEPT;
/* The same into a file, as prof_dump() writes: no half a picture ever stands under its name. Its
   errors, too. */
PROF_API int prof_memory_svg_dump(const prof_memory *memory, uint32_t index,
                                  const char *path) PROF_I_NOEXCEPT;

PROF_I_EXTERN_C_END

/* RAF's macro: asks the device's query, here. dev and tag as WITH_BASE_PROFILER has them. */
#ifdef PROF_DISABLE
#define PROFILE_MEMORY(dev, tag) PROF_I_VOID(sizeof(prof_i_memory_sample((dev), (tag)), 0))
#else
#define PROFILE_MEMORY(dev, tag) \
  (__builtin_expect(prof_memory_is_on(), 0) ? prof_i_memory_sample((dev), (tag)) : PROF_I_VOID(0))
#endif

#ifdef __cplusplus
template <class Device, class Tag>
inline void prof_i_memory_sample(const Device &device, const Tag &tag) noexcept {
  const prof_i::text text(tag);
  prof_memory_sample(prof_i::device_of(device), text.data, text.bytes);
}
#else
PROF_I_INLINE void prof_i_memory_sample(prof_device device, const char *tag) {
  prof_memory_sample(device, tag, PROF_NUL_TERMINATED);
}
#endif

#endif
