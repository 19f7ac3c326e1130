/* Where memory goes: what a device's pools have allocated, their true peaks, and who held it then.

   `used` is what a pool has handed out, `allocated` what it has taken from the system. There are
   two ways in. Exact: the allocator reports each allocation and each block of its pool. RAF's: a
   query reports used and allocated at each PROFILE_MEMORY(). What both report of one device is kept
   apart and never added up.

       const prof_pool_options options = {.size = sizeof options, .name = "tensors"};
       prof_pool_create(&options, &pool);
       prof_memory_reserve(pool, block, 64 << 20);      // taken from the system
       prof_memory_alloc(pool, address, 1000, 1024);    // 1000 bytes requested, 1024 given
       prof_memory_free(pool, address, 1024);

   Memory is recorded into the capture of scopes, from prof_start() to prof_stop(). Without scopes
   it is recorded from prof_memory_start() to prof_memory_stop(). Peaks are kept beside the records,
   and stay right when records are lost. Sizes are in bytes. MB are 2^20 bytes, as in RAF.

   An allocator with a lock calls prof inside that lock. Then prof sees all changes in the pool's
   order, and peaks and live allocations are exact. Outside of the lock the sums become right in the
   end. But a peak may miss allocations that are not reported yet. The baseline of a start may be
   wrong by what was under way. An example in steps: docs/how-to/instrument-an-allocator.md.
   SPDX-License-Identifier: MIT */
#ifndef PROF_MEMORY_H
#define PROF_MEMORY_H

#include <prof/profiler.h>

/* Addresses are only numbers: prof neither reads nor writes there, so memory may be
   uninitialised. */
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 11
#define PROF_I_ADDRESS_ONLY(parameter) __attribute__((access(none, parameter)))
#else
#define PROF_I_ADDRESS_ONLY(parameter)
#endif

PROF_I_EXTERN_C_BEGIN

/* What can be wrong with a call. It is found when a capture is read. A checked pool finds it at
   once, and does not add the call to its sums. */
typedef enum prof_memory_wrong {
  /* A free of an address that is not live here. If that is not known, the free may be of an
     allocation from before the start. */
  PROF_MEMORY_WRONG_UNKNOWN = 0,
  PROF_MEMORY_WRONG_DOUBLE = 1, /* a free of what was freed before */
  /* An allocation that overlaps a live one, which then counts as freed. */
  PROF_MEMORY_WRONG_OVERLAP = 2,
  PROF_MEMORY_WRONG_POOL = 3, /* a free of what is live in another pool */
  PROF_MEMORY_WRONG_SIZE = 4, /* a free of a live allocation, with another size */
  PROF_MEMORY_WRONG_COUNT = 5
} prof_memory_wrong;

/* ---- pools ---- */

/* A pool of an allocator. See prof_pool_create(). */
typedef struct prof_pool prof_pool;

/* Reports what a pool uses and has allocated now. Returns 0, or another value if it is not known.

   prof holds no lock during the call, so it may take the allocator's own lock. Then no thread may
   call PROFILE_MEMORY() or a start while it holds that lock. A query must not start, stop or
   clear. */
typedef int (*prof_memory_query)(void *user, uint64_t *used_bytes_out,
                                 uint64_t *allocated_bytes_out);

/* Set size to sizeof(prof_pool_options) and all other fields to 0, the default. */
typedef struct prof_pool_options {
  size_t size;
  const char *name;   /* copied, at most 63 bytes; NULL: "pool" */
  prof_device device; /* zero: the host */
  /* Called at each start for the baseline: what was allocated before. It is called again if a call
     of the pool came meanwhile. If calls and query take the same lock, each allocation is in either
     the baseline or the records. NULL: the baseline is not known, and used counts from 0. */
  prof_memory_query query;
  void *user; /* for query */
  /* 1: live allocations are kept in a table. Wrong frees are found at once, and a free needs no
     size. Each start begins a new table. If the baseline is not known, a free of an unknown address
     is not called wrong, but counted as unchecked. Runtimes use it to test their own allocators:
     AddressSanitizer sees no double free of a part of a pool. */
  uint32_t checked;
  uint32_t reserved;
} prof_pool_options;

/* As the size of a free in a checked pool. If the pool does not know the allocation, as one from
   before the start, the free is counted as unchecked and used does not change. */
#define PROF_BYTES_UNKNOWN UINT64_MAX
/* As the stream of an allocation: none. */
#define PROF_NO_STREAM UINT64_MAX

/* Creates a pool, while recording or not. options may be NULL. The caller owns it, and destroys it
   when no other call for it is under way.

   The pools of a device are added up. If a pool's blocks are allocations of another pool, they
   count twice. Give the outer pool another device, or read the two apart. If the outer pool is
   `malloc` of libprof_memory.so, which is the host's, give the inner one another device.
   PROF_E_INVALID, PROF_E_NO_MEMORY.
   Any thread. */
PROF_API int prof_pool_create(const prof_pool_options *options,
                              prof_pool **pool_out) PROF_I_NOEXCEPT;

/* Destroys a pool; its records stay in the capture. NULL is ignored. It waits until a call of the
   pool's query on another thread has returned. So a query must not wait for a thread that destroys
   its pool. The query itself may destroy the pool, and then nothing waits.
   Any thread. */
PROF_API void prof_pool_destroy(prof_pool *pool) PROF_I_NOEXCEPT;

/* Returns the number of a tag ("weights") for prof_memory_alloc_for(). Equal texts have equal
   numbers. The text is copied. Returns 0, no tag, for NULL, for "", and when tables are full. It
   searches a table, so keep the number if you allocate often.
   Any thread. */
PROF_API uint32_t prof_memory_tag(const char *name) PROF_I_NOEXCEPT;

/* Reports an allocation. Call it after the allocation, inside the allocator's lock. `bytes` is the
   requested size, given_bytes the size in the pool. A given_bytes below bytes, such as 0, means
   bytes.

   An allocation that is resized in place is a free of the old size, then an allocation of the new
   one at the same address. Allocations of 4 TiB or more, and those that bring a pool above 6 TiB,
   are counted (refused_count) and omitted. NULL addresses (failed allocations) and NULL pools are
   ignored. While memory is not recorded it costs a call and a load.

   It does not measure an operator's workspace: prof_op_workspace_alloc() in <prof/op.h> does.
   Any thread. Signal-safe. */
PROF_API void prof_memory_alloc(prof_pool *pool, const void *address, uint64_t bytes,
                                uint64_t given_bytes) PROF_I_NOEXCEPT PROF_I_ADDRESS_ONLY(2);

/* The same with a tag (0: none) and a stream (PROF_NO_STREAM: none). */
PROF_API void prof_memory_alloc_for(prof_pool *pool, const void *address, uint64_t bytes,
                                    uint64_t given_bytes, uint32_t tag,
                                    uint64_t stream) PROF_I_NOEXCEPT PROF_I_ADDRESS_ONLY(2);

/* Reports a free. Call it before the address may be handed out again. given_bytes is the size as
   given by the allocation: here 0 means 0 bytes. In a checked pool it may be PROF_BYTES_UNKNOWN.
   NULL addresses are ignored, as by free().
   Any thread. Signal-safe; in a checked pool a handler's calls may be left unchecked, and counted
   so. */
PROF_API void prof_memory_free(prof_pool *pool, const void *address,
                               uint64_t given_bytes) PROF_I_NOEXCEPT PROF_I_ADDRESS_ONLY(2);

/* Reports that a block was taken from the system, or returned to it. Report the reserve before the
   first allocation in the block. Report the release after its last free, before the system may hand
   it out again.

   A pool that reports no blocks has used, but no allocated. Adjacent blocks stay separate. If the
   allocator joins them, it reports one reserve of both, or fragmentation comes out too high.
   Any thread. Signal-safe. */
PROF_API void prof_memory_reserve(prof_pool *pool, const void *address,
                                  uint64_t bytes) PROF_I_NOEXCEPT PROF_I_ADDRESS_ONLY(2);
PROF_API void prof_memory_release(prof_pool *pool, const void *address,
                                  uint64_t bytes) PROF_I_NOEXCEPT PROF_I_ADDRESS_ONLY(2);

/* Reports a collection: the pool returns blocks, or joins free memory. Its duration is recorded,
   and what was released meanwhile. The end takes what the begin returned; 0: not recorded.
   Any thread. */
PROF_API uint64_t prof_memory_collect_begin(prof_pool *pool) PROF_I_NOEXCEPT;
PROF_API void prof_memory_collect_end(prof_pool *pool, uint64_t begun) PROF_I_NOEXCEPT;

/* Reports that an allocation of `bytes` failed on this device. It is recorded, and a text is
   written beside the output. It has what was live and reserved, and the fragmentation. It says
   whether the bytes would have fitted into unfragmented memory.

   The text is "trace.oom.txt", or the first free number, "trace.oom-2.txt". Only its owner can read
   it. A forked child writes it beside its own output. Without an output the text goes to stderr.
   Names in it are made printable. A process writes at most 8; later calls only record, and return
   PROF_OK. It needs heap, and 16 KiB of stack; 48 KiB if it is a forked child's first record.
   Errors, besides those of writing:
   PROF_E_NOT_RUNNING: memory is not recorded.
   PROF_E_NOT_FOUND: the device has no pool. Nothing is recorded or written.
   Any thread. Not in a signal handler. */
PROF_API int prof_memory_oom(prof_device device, uint64_t bytes) PROF_I_NOEXCEPT;

/* ---- a query, as in RAF ---- */

/* Sets the query that PROFILE_MEMORY() of this device calls, one for each device. NULL: none. When
   it returns, the previous query runs no more, and its user data may be freed.
   Errors, with nothing changed:
   PROF_E_BUSY: the previous query is running, on another thread or as the caller.
   PROF_E_NO_MEMORY.
   Any thread. */
PROF_API int prof_memory_set_query(prof_device device, prof_memory_query query,
                                   void *user) PROF_I_NOEXCEPT;

/* Calls the query and records its answer with the tag, of which at most 63 bytes are kept. Prefer
   PROFILE_MEMORY(dev, tag), which evaluates nothing while memory is not recorded. Ignored inside of
   the same device's query.
   Any thread. */
PROF_API void prof_memory_sample(prof_device device, const char *tag,
                                 uint32_t tag_bytes) PROF_I_NOEXCEPT;

/* ---- start, stop, reset, as RAF's memory profiler ---- */

/* Returns 1 while memory is recorded, else 0. Any thread. */
PROF_API int prof_memory_is_on(void) PROF_I_NOEXCEPT;

/* Starts recording memory; prof_start() and prof_start_with() do it, too. If nothing records, it
   starts a capture without scopes, with the options of the last start, and returns its errors.

   Each start takes some 600 bytes for each pool, also in a ring, for as long as the capture lasts.
   About 25,000 starts of one pool fill 16 MiB. If there is no more room, the pool's events are
   counted as lost, and prof_memory_max_get() stays right.
   Any thread. */
PROF_API int prof_memory_start(void) PROF_I_NOEXCEPT;

/* Stops recording memory. It stops a capture that recorded nothing else.
   PROF_E_NOT_RUNNING: memory is not recorded.
   Any thread. */
PROF_API int prof_memory_stop(void) PROF_I_NOEXCEPT;

/* RAF's reset(). Peaks and collections start again: of pools from what is used and allocated now,
   of a query from its next answer. prof_memory_trace_text() starts again, too. Records stay in the
   capture. While memory is not recorded, used is not known. Then prof_memory_max_get() finds no
   device until the next start.
   PROF_E_NOT_RUNNING: nothing was ever recorded.
   Any thread. */
PROF_API int prof_memory_reset(void) PROF_I_NOEXCEPT;

/* Internal, for libprof_memory.so, which replaces malloc(). Starts what the environment requests at
   load (PROF_LEVEL, PROF_MEMORY), if that has not been done. Returns 1 if PROF_MEMORY started it,
   and says so on stderr if there is no PROF_OUTPUT. Returns 0 if not, and -1 if called from that
   start. The process has one thread then. */
PROF_API int prof_i_start_early(void) PROF_I_NOEXCEPT;

typedef enum prof_memory_source {
  /* Of prof_memory_max_get(): the pools if the device has any, else the query. */
  PROF_MEMORY_ANY = 0,
  PROF_MEMORY_POOL = 1, /* reported by allocation */
  PROF_MEMORY_QUERY = 2 /* reported by PROFILE_MEMORY()'s query */
} prof_memory_source;

/* RAF's get_max_memory_info, with the true peak of allocated. Each peak is at its own time. The
   caller sets size. */
typedef struct prof_memory_max {
  size_t size;
  /* Now, or at the query's last answer. Without a baseline they might be negative; then they are
     0. */
  uint64_t used_bytes, allocated_bytes;
  uint64_t max_used_bytes, max_allocated_bytes;
  uint64_t collection_count; /* of a query: how often allocated decreased */
  double max_used_mb, max_allocated_mb;
  uint32_t source; /* prof_memory_source: POOL or QUERY */
  /* Number of pools, also destroyed ones. Peaks of several pools are sums: of the peaks of pools
     that existed together, at the highest sum. That is at least the device's peak by
     prof_memory_read(). Exception: what a pool still had when it was destroyed. used and allocated
     are of existing pools. */
  uint32_t pool_count;
  uint32_t has_allocated; /* 1: blocks were reported. 0: allocated is not known, and is 0. */
  uint32_t reserved;
} prof_memory_max;

/* Fills max_out, since the last start or reset. After a stop the values are those at the stop.
   PROF_E_NOT_FOUND: the device has no records, or prof_memory_reset() followed the stop.
   Any thread. */
PROF_API int prof_memory_max_get(prof_device device, prof_memory_source source,
                                 prof_memory_max *max_out) PROF_I_NOEXCEPT;

/* ---- reading a trace ---- */

/* What a trace says of memory: all its events in one order, replayed. If two threads used a pool,
   the order is the pool's own. */
typedef struct prof_memory prof_memory;

/* Reads a trace's memory. It takes 32 bytes for each event, and room for what is live. The caller
   destroys the result before the trace. A trace without pools is no error. Then any number of
   threads may read it.
   Errors:
   PROF_E_TOO_LARGE: 2^32 events or more.
   PROF_E_INVALID, PROF_E_NO_MEMORY. */
PROF_API int prof_memory_read(const prof_trace *trace, prof_memory **memory_out) PROF_I_NOEXCEPT;

/* Destroys what prof_memory_read() returned. NULL is ignored. */
PROF_API void prof_memory_destroy(prof_memory *memory) PROF_I_NOEXCEPT;

/* The state of a pool or a device at one moment. */
typedef struct prof_memory_state {
  uint64_t ns; /* from the capture's start */
  /* By the pool's own count, which loses nothing. With is_exact 0, the one that is not at its peak
     comes from the records around it. */
  int64_t used_bytes, allocated_bytes;
  /* Known live allocations: number, given bytes, requested bytes. If live_bytes is less than used,
     the rest is from before the start, or its record is lost. */
  uint64_t live_count, live_bytes, requested_bytes;
  /* With has_ranges only. Free bytes in the blocks, and in the largest free range. outside_bytes:
     live bytes in no reported block, because its reserve came later, or never. The report calls
     them "live in no block". */
  uint64_t free_bytes, largest_free_bytes, outside_bytes;
  /* With has_ranges only: 1 - largest free range / free bytes. 0: none, or nothing is free. */
  double fragmentation;
  /* 1: all blocks are known (their sum is allocated), and most live bytes are in them. */
  uint32_t has_ranges;
  /* 1: the capture has the event that made this state. 0: the time is approximate, and live
     allocations are those of the records around it. */
  uint32_t is_exact;
} prof_memory_state;

/* A pool from one start to its stop, or all pools of a device. The caller sets size. */
typedef struct prof_memory_info {
  size_t size;
  char name[64];
  prof_device device;
  uint32_t source; /* prof_memory_source */
  /* Number of the start of memory in the capture, from 1. Starts are prof_start(), and
     prof_memory_start() after a stop of memory alone. */
  uint32_t session;
  uint32_t pool; /* its number in the capture, as in prof_event_memory; 0: a device */
  /* 1: the baseline is known. 0: it is not. If used_before_bytes is not 0, it is approximate,
     because calls came all the time during the query. */
  uint32_t has_baseline;
  uint64_t used_before_bytes, allocated_before_bytes;
  /* Peaks since the start, or the last reset or clear. */
  prof_memory_state peak_used, peak_allocated, end;
  /* Numbers of events in the capture. */
  uint64_t alloc_count, free_count, reserve_count, release_count, sample_count;
  uint64_t collection_count, collection_ns; /* all since the last reset */
  uint64_t oom_count;
  /* Events without a record: dropped, overwritten, or not written when the process was killed. */
  uint64_t missing_count;
  /* If allocations were refused, a free of an unknown address is not called wrong. */
  uint64_t refused_count, unchecked_count;
  /* Index: prof_memory_wrong. Only certain ones: none if an event before it is missing. The sums
     and peaks of an unchecked pool include these calls. */
  uint64_t wrong_count[8];
  uint64_t from_before_count, from_before_bytes; /* frees of the baseline */
  uint64_t growth_step; /* step mark at the end of the step in which used grew most */
  /* 0: no steps, or no growth. Of a query: by its last answer before each mark. */
  int64_t growth_bytes;
  /* Frees without a known allocation: its record is lost or cleared, it is from before a start
     without a baseline, or it never existed. */
  uint64_t unsure_count, unsure_bytes;
  /* Released blocks during collections of the capture. */
  uint64_t collection_released_bytes;
} prof_memory_info;

/* Number of pools, and the pool of an index below it. Earlier starts come first; the pools of a
   start are in order of creation. The caller sets info_out's size. PROF_E_INVALID.
   Any thread. */
PROF_API uint32_t prof_memory_pool_count(const prof_memory *memory) PROF_I_NOEXCEPT;
PROF_API int prof_memory_pool_get(const prof_memory *memory, uint32_t index,
                                  prof_memory_info *info_out) PROF_I_NOEXCEPT;

/* A device: all its pools of that source in the last session, in order of time.
   PROF_E_NOT_FOUND: the device has none.
   Any thread. */
PROF_API int prof_memory_device_get(const prof_memory *memory, prof_device device,
                                    prof_memory_source source,
                                    prof_memory_info *info_out) PROF_I_NOEXCEPT;

/* ---- who held it ---- */

/* The moment of which prof_memory_live() reports. */
typedef enum prof_memory_moment {
  PROF_MEMORY_AT_PEAK_USED = 0,
  PROF_MEMORY_AT_PEAK_ALLOCATED = 1,
  PROF_MEMORY_AT_END = 2, /* what was never freed, or not yet */
  PROF_MEMORY_AT_TIME = 3
} prof_memory_moment;

/* What makes a row of prof_memory_live(). */
typedef enum prof_memory_by {
  PROF_MEMORY_BY_SCOPE = 0, /* the innermost scope of the allocating thread */
  PROF_MEMORY_BY_TAG = 1,
  PROF_MEMORY_BY_SIZE = 2,   /* powers of two of the requested size */
  PROF_MEMORY_BY_ADDRESS = 3 /* each allocation */
} prof_memory_by;

/* One group of live allocations. */
typedef struct prof_memory_row {
  /* The scope, the tag, or "1 KiB - 2 KiB"; of one allocation its scope. "": none. NUL-terminated,
     UTF-8 repaired. */
  const char *label;
  const char *tag; /* of BY_ADDRESS */
  uint64_t count, bytes, requested_bytes;
  uint64_t oldest_ns, newest_ns; /* times of allocation, from the capture's start */
  uint64_t address;              /* of BY_ADDRESS */
} prof_memory_row;

/* All rows, the largest first, and their sums. */
typedef struct prof_memory_rows {
  const prof_memory_row *rows;
  uint64_t row_count;
  uint64_t count, bytes, requested_bytes; /* of all rows */
} prof_memory_rows;

/* Returns what was live at a moment, of the pool with that index. at_ns is for PROF_MEMORY_AT_TIME,
   from the capture's start. All events up to the moment are replayed. The caller frees the rows
   with prof_free(), which also frees their texts. PROF_E_INVALID, PROF_E_NO_MEMORY.
   Any thread. */
PROF_API int prof_memory_live(const prof_memory *memory, uint32_t index, prof_memory_moment moment,
                              uint64_t at_ns, prof_memory_by by,
                              prof_memory_rows **rows_out) PROF_I_NOEXCEPT;

/* A wrong call of a pool. */
typedef struct prof_memory_example {
  uint32_t wrong;  /* prof_memory_wrong */
  uint32_t thread; /* index for prof_trace_thread_get() */
  uint64_t ns, address, bytes;
  const char *scope; /* innermost scope, or ""; NUL-terminated, valid while the memory exists */
} prof_memory_example;

/* Returns a pool's wrong call of that index, from 0. The first 8 are kept.
   PROF_E_NOT_FOUND: there are fewer.
   Any thread. */
PROF_API int prof_memory_example_get(const prof_memory *memory, uint32_t pool_index, uint32_t index,
                                     prof_memory_example *example_out) PROF_I_NOEXCEPT;

/* Returns used and allocated over time, as `count` intervals of equal length from the pool's start
   to the trace's end. Each value is the highest in its interval. The caller owns both arrays of
   `count` elements.
   Any thread. */
PROF_API int prof_memory_series(const prof_memory *memory, uint32_t index, uint32_t count,
                                int64_t *used_bytes_out,
                                int64_t *allocated_bytes_out) PROF_I_NOEXCEPT;

/* ---- reports ---- */

/* Set size to sizeof(prof_memory_text_options) and all other fields to 0, the default. */
typedef struct prof_memory_text_options {
  size_t size;
  /* Columns, 40 to 500; 0: 80. Names are cut to fit, numbers are not: tables need some 70. */
  uint32_t width;
  uint32_t rows_limit; /* of each table; 0: 10; UINT32_MAX: all */
  /* index + 1: only this pool. 0: all of the last session, and one line for each older one. */
  uint32_t pool;
  /* 1: the plot in ASCII. 0: in Unicode blocks and lines. Names are the same. */
  uint32_t ascii;
} prof_memory_text_options;

/* Returns a report. For each pool it has a plot over time with the two peaks. It says what was live
   at them and at the end, who held it, what was wrong, and what is not known. Names are made
   printable, also for a terminal. options may be NULL. A trace without memory is no error: the
   report says so. The text is NUL-terminated; the caller frees it with prof_free().
   Errors:
   PROF_E_NOT_FOUND: no such pool.
   PROF_E_INVALID, PROF_E_NO_MEMORY.
   Any thread. */
PROF_API int prof_memory_text(const prof_memory *memory, const prof_memory_text_options *options,
                              char **text_out) PROF_I_NOEXCEPT;

/* RAF's get_memory_trace: a line for each sample of a device's query since the last
   prof_memory_reset(). Its cells are padded and separated by tabs: the sample's number from 0, its
   tag, used and allocated in MB. RAF's two headings come first, "Numbers are the in MBs." and
   "#Trace #Tag used alloc". Without samples it is "", as in RAF. The text is NUL-terminated; the
   caller frees it with prof_free().
   Errors:
   PROF_E_NOT_FOUND: the trace has no query of that device.
   PROF_E_INVALID, PROF_E_NO_MEMORY.
   Any thread. */
PROF_API int prof_memory_trace_text(const prof_trace *trace, prof_device device,
                                    char **text_out) PROF_I_NOEXCEPT;

/* Returns a picture of a pool over time, as one SVG that needs no other file. It is NUL-terminated;
   the caller frees it with prof_free(). PROF_E_INVALID, PROF_E_NO_MEMORY.
   Any thread. */
PROF_API int prof_memory_svg(const prof_memory *memory, uint32_t index,
                             char **text_out) PROF_I_NOEXCEPT;

/* Writes the picture to a file, as prof_dump() does: the file gets its name when it is complete.
   The errors of both.
   Any thread. */
PROF_API int prof_memory_svg_dump(const prof_memory *memory, uint32_t index,
                                  const char *path) PROF_I_NOEXCEPT;

PROF_I_EXTERN_C_END

/* RAF's macro: calls the device's query here. dev and tag are as in WITH_BASE_PROFILER(). */
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
