/* prof: an embeddable profiler. This is what everyone includes: the life of a capture, scopes,
   names, health.

       prof_start(1);
       WITH_BASE_PROFILER(PROF_HOST, "matmul", "operator", PROF_ARGS("m", m, "n", n), { matmul(a, b, c, m, n); });
       prof_stop();
       prof_dump("trace.json");            // open it in ui.perfetto.dev or chrome://tracing

   Levels are RAF's: 1 = kernels and operators; 2 = also the runtime (VM) around them. With no code
   at all: PROF_LEVEL=2 PROF_OUTPUT=trace.json ./app records a program that links prof, from load to
   exit. Every function may be called from any thread and in any order, unless its comment says
   otherwise; none of them exits, aborts, writes to stdout or installs a handler.
   SPDX-License-Identifier: MIT */
#ifndef PROF_PROFILER_H
#define PROF_PROFILER_H

#include <prof/args.h>
#include <prof/scope.h>
#include <prof/status.h>
#include <prof/version.h>

PROF_I_EXTERN_C_BEGIN

typedef enum prof_policy {
  PROF_POLICY_DEFAULT = 0, /* stream when there is a path, else keep */
  /* when the cap is reached, scopes that begin later are dropped and counted */
  PROF_POLICY_KEEP = 1,
  PROF_POLICY_RING = 2,    /* flight recorder: the oldest records give way, counted */
  PROF_POLICY_STREAM = 3   /* the capture file grows up to the cap; needs a path */
} prof_policy;

typedef enum prof_clock {
  PROF_CLOCK_DEFAULT = 0, /* the time-stamp counter where it is safe, else CLOCK_MONOTONIC_RAW */
  PROF_CLOCK_TSC = 1,
  PROF_CLOCK_MONOTONIC = 2
} prof_clock;

/* How to record. Set size to sizeof(prof_options) and the rest to zero: zero means the default for
   every field. A smaller struct is an older caller's; a larger one is accepted while its extra
   bytes are zero. */
typedef struct prof_options {
  size_t size;
  uint32_t level;         /* 1 or 2; 0: level 1 */
  uint32_t policy;        /* prof_policy */
  /* where prof_dump(NULL) writes; the capture file stands beside it, so kill -9 loses nothing that
     had ended. %p pid, %h host, %r rank. NULL: recorded in memory */
  const char *path;
  /* hard bound of the capture; 0: 256 MiB in memory (at most an eighth of the memory limit), 4 GiB
     in a file */
  uint64_t cap_bytes;
  /* PROF_POLICY_RING: at export keep only the last so many ns; 0: all that fits */
  uint64_t ring_ns;
  /* 1: one thread prepares room ahead, so that no traced thread waits for the disk */
  uint32_t helper_thread;
  uint32_t keep_capture;  /* 1: the capture file stays after a clean dump */
  uint32_t clock;         /* prof_clock */
  uint32_t reserved;
} prof_options;

/* Starts recording at level 1 or 2. Recording already: sets the level and returns PROF_OK. After a
   stop it goes on in the same capture; prof_clear() empties it. Errors: PROF_E_LEVEL,
   PROF_E_NO_MEMORY. */
PROF_API int prof_start(int level) PROF_I_NOEXCEPT;

/* The same with options (NULL: all defaults); they hold until a start with others. Errors:
   PROF_E_RUNNING while recording (the state stays as it was), PROF_E_LEVEL, PROF_E_INVALID (with
   the field's name in prof_last_error()), PROF_E_NOT_FOUND, PROF_E_PERMISSION, PROF_E_NO_SPACE,
   PROF_E_FILE_TYPE, PROF_E_IO for the path. A path whose file system cannot reserve space is no
   error: the capture goes to $PROF_CAPTURE_DIR, $TMPDIR, /dev/shm or memory, and prof_health() says
   where and why. */
PROF_API int prof_start_with(const prof_options *options) PROF_I_NOEXCEPT;

/* Stops recording. Scopes still open end uncounted among the recorded: they are counted as late.
   PROF_E_NOT_RUNNING when nothing is recording. */
PROF_API int prof_stop(void) PROF_I_NOEXCEPT;

/* Forgets all that has been recorded, and gives its memory back; recording goes on if it was on.
   What is forgotten is counted. */
PROF_API int prof_clear(void) PROF_I_NOEXCEPT;

/* The level in force: 0 off, 1, 2. */
PROF_API int prof_level(void) PROF_I_NOEXCEPT;

/* Reads what has been recorded so far, also while others record. The trace is the caller's:
   prof_trace_destroy(), see <prof/trace.h>; it stays as it is whatever is recorded, cleared or
   started after. While it exists, prof_clear() gives no memory back. Errors: PROF_E_INVALID,
   PROF_E_NOT_RUNNING (nothing was ever started), PROF_E_NO_MEMORY. */
typedef struct prof_trace prof_trace;
PROF_API int prof_get(prof_trace **trace_out) PROF_I_NOEXCEPT;

/* The trace as Chrome JSON text, NUL-terminated, `bytes_out` long without the NUL; the caller gives
   it to prof_free(). PROF_E_TOO_LARGE past 1 GiB: dump to a file instead; PROF_E_CHECK: the text is
   there, but its self-check found faults; and prof_get()'s. bytes_out may be NULL. */
PROF_API int prof_get_json(char **text_out, size_t *bytes_out) PROF_I_NOEXCEPT;
PROF_API void prof_free(void *memory) PROF_I_NOEXCEPT;

/* RAF's get_duration: total ns and number of the ended scopes of that name and category (NULL:
   any). Outputs may be NULL. Errors: prof_get()'s. */
PROF_API int prof_get_duration(const char *name, const char *category, uint64_t *total_ns_out,
                               uint64_t *count_out) PROF_I_NOEXCEPT;

typedef enum prof_format {
  /* by the path's ending: .json and .json.gz are Chrome JSON, .prof is the capture itself */
  PROF_FORMAT_DEFAULT = 0,
  PROF_FORMAT_CHROME = 1,  /* complete (X) events, laid out as torch.profiler writes them */
  PROF_FORMAT_RAF = 2,     /* RAF's log: B/E pairs, args_string, tid = category */
  PROF_FORMAT_CAPTURE = 3  /* a copy of the arena */
} prof_format;

typedef struct prof_dump_options {
  size_t size;
  uint32_t format;    /* prof_format */
  /* 0: an existing file is replaced; 1: PROF_E_IO ("File exists") when there is one */
  uint32_t must_be_new;
  uint64_t from_ns;   /* only what ends after so many ns from the capture's start; 0: all */
  uint64_t to_ns;     /* only what begins before; 0: all */
  int32_t gzip;       /* 1: compressed, one member; 0: by the path's ending (.gz) */
  uint32_t reserved;
} prof_dump_options;

/* Writes the trace so far, also while others record: to a temporary name first, so that the final
   name never holds half a file. path NULL: the path of the options or of PROF_OUTPUT. A capture
   file whose dump was clean and that is not being recorded into is removed, unless
   options.keep_capture. Errors: prof_get()'s, PROF_E_INVALID (no path), PROF_E_NOT_FOUND,
   PROF_E_PERMISSION, PROF_E_NO_SPACE, PROF_E_FILE_TYPE, PROF_E_IO, PROF_E_NO_MEMORY; PROF_E_CHECK:
   written, but its self-check found faults. */
PROF_API int prof_dump(const char *path) PROF_I_NOEXCEPT;
PROF_API int prof_dump_with(const char *path, const prof_dump_options *options) PROF_I_NOEXCEPT;

/* Why a scope was not recorded. Each reason's count stands in health, in the trace and in every
   export. */
#define PROF_LOSS_LIST(X)                                                              \
  X(FULL, "full", "the cap was reached")                                               \
  X(OVERWRITTEN, "overwritten", "the ring gave its room to newer records")             \
  X(DISK, "disk", "the disk was full, or a file size limit was reached")               \
  X(NO_CHUNK, "no_chunk", "no chunk was ready, and the thread must not wait")          \
  X(NO_THREAD, "no_thread", "no room for another thread")                              \
  X(LATE, "late", "it ended after the stop, or in a later session")                    \
  X(CLEARED, "cleared", "prof_clear() forgot it")                                      \
  X(UNFINISHED, "unfinished", "its record was begun and never finished")               \
  X(FORKED, "forked", "it was open across a fork, and ended in the child")             \
  X(LOST_STATE, "lost_state", "its begin left no trace: ended twice, or skipped by longjmp and ended after")

typedef enum prof_loss {
#define PROF_I_LOSS(name, word, text) PROF_LOSS_##name,
  PROF_LOSS_LIST(PROF_I_LOSS)
#undef PROF_I_LOSS
  PROF_LOSS_COUNT
} prof_loss;

/* "full", "overwritten", ...; "unknown" out of range. Static. */
PROF_API const char *prof_loss_name(int loss) PROF_I_NOEXCEPT;
PROF_API const char *prof_loss_text(int loss) PROF_I_NOEXCEPT;

/* How the profiler itself is. Filled as far as `size` reaches; what this version does not know is
   set to zero. */
typedef struct prof_health {
  size_t size;
  /* scopes, instants, counters, flows and steps that stand in the capture */
  uint64_t recorded_count;
  uint64_t lost_count[16];              /* by prof_loss */
  /* scopes below 64 open ones: recorded, not shown while open */
  uint64_t deep_count;
  uint64_t cut_text_count;              /* names or arguments cut at their bound */
  uint64_t arena_bytes;                 /* claimed of the cap so far */
  uint64_t resident_bytes;              /* of it in memory now, as far as the kernel tells */
  uint64_t cap_bytes;
  uint32_t threads_seen_count;
  uint32_t threads_alive_count;
  uint32_t sites_count;
  uint32_t policy;                      /* prof_policy in force */
  uint32_t clock;                       /* prof_clock in use */
  uint32_t clock_segments_count;        /* more than 1: the clock stepped or the host slept */
  double ticks_per_ns;
  uint64_t clock_error_ns;              /* bound of a conversion's error inside the capture */
  /* one plain scope, on, measured on this machine on demand; 0 when not measured */
  double scope_cost_ns;
  uint64_t chunk_changes_count;
  uint64_t chunk_change_median_ns;
  uint64_t chunk_change_p99_ns;
  uint64_t chunk_change_max_ns;
  /* 1: the capture is a file; kill -9 loses nothing that had ended */
  uint32_t survives_kill;
  uint32_t is_full;                     /* 1: new scopes are being dropped */
  uint32_t helper_thread;               /* 1: running */
  uint32_t level;
  char capture_path[512];               /* "" in memory */
  char reason[256];                     /* why it is not where it was asked to be; "" when it is */
} prof_health;

/* PROF_E_INVALID when NULL or size is 0. Measuring scope_cost_ns takes about a millisecond and
   records nothing. */
PROF_API int prof_health_get(prof_health *health_out) PROF_I_NOEXCEPT;
#define prof_health(health_out) prof_health_get(health_out)

/* ---- for other languages: scopes by calls ---- */

/* Opens a scope whose name and category are copied at once; level 1 or 2. Returns its start, or 0
   when not recorded. The scope ends on any thread by prof_scope_end(), and need not nest: tasks
   that take turns on a thread may end in any order; it is shown on the thread that ended it. A
   begin without its end stays open. Another level than 1 or 2, or one that is not in force: 0. A
   signal handler ends what it begins, the last first, and nothing that others began. Signal-safe.
   args may be NULL. */
PROF_API uint64_t prof_scope_begin(int level, const char *name, const char *category, const prof_args *args) PROF_I_NOEXCEPT;
PROF_API void prof_scope_end(uint64_t start) PROF_I_NOEXCEPT;

/* A site registered once, for callers that keep one per name: then a scope costs what a macro's
   does. The site is the caller's memory, zeroed, and must outlive its scopes. */
PROF_API uint64_t prof_scope_begin_at(prof_site *site, const char *name, const char *category) PROF_I_NOEXCEPT;

/* ---- steps, flows, names, rank ---- */

/* Marks the end of a step; exported as ProfilerStep#n, n from 0. To be called between
   iterations, outside of scopes: a step that overlaps a scope without holding it is shown on a
   row of its own. */
PROF_API void prof_step(void) PROF_I_NOEXCEPT;

/* An arrow from inside one scope to inside another: same id, begin then end, on any threads. */
PROF_API void prof_flow_begin(uint64_t id, const char *name) PROF_I_NOEXCEPT;
PROF_API void prof_flow_end(uint64_t id, const char *name) PROF_I_NOEXCEPT;

/* Names are copied, cut at 63 bytes, and the last one wins. */
PROF_API int prof_process_set_name(const char *name) PROF_I_NOEXCEPT;
PROF_API int prof_thread_set_name(const char *name) PROF_I_NOEXCEPT;
PROF_API int prof_track_set_name(prof_device device, uint64_t stream, const char *name) PROF_I_NOEXCEPT;

/* Rank and world size; by default from RANK and WORLD_SIZE, SLURM_PROCID and SLURM_NTASKS,
   OMPI_COMM_WORLD_RANK and OMPI_COMM_WORLD_SIZE, or PMI_RANK and PMI_SIZE. PROF_E_INVALID unless 0
   <= rank < world_size. */
PROF_API int prof_rank_set(int rank, int world_size) PROF_I_NOEXCEPT;

/* The library's version, "0.1.0". Static. */
PROF_API const char *prof_version(void) PROF_I_NOEXCEPT;

PROF_I_EXTERN_C_END

#endif
