/* prof: an embeddable profiler. This is what everyone includes: the life of a capture, scopes,
   names, health.

       prof_start(1);
       WITH_BASE_PROFILER(PROF_HOST, "matmul", "operator", PROF_ARGS("m", m, "n", n),
                          { matmul(a, b, c, m, n); });
       prof_stop();
       prof_dump("trace.json");            // open it in ui.perfetto.dev or chrome://tracing

   Levels are RAF's: 1 = kernels and operators; 2 = also the runtime (VM) around them. With no code
   at all: PROF_LEVEL=2 PROF_OUTPUT=trace.json ./app records a program that links prof, from load to
   exit. Every function may be called from any thread and in any order, unless its comment says
   otherwise; none of them exits, aborts, writes to stdout or installs a handler.

   Functions that are signal-safe say so. The others may allocate memory, which a signal handler
   must not do where it may have interrupted the program's own malloc(). If a handler interrupted a
   call of prof on its thread, they wait for nothing: what returns a status returns PROF_E_BUSY, and
   what returns none does nothing, so that a trace to be destroyed stays.
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
  PROF_POLICY_RING = 2,  /* flight recorder: the oldest records give way, counted */
  PROF_POLICY_STREAM = 3 /* the capture file grows up to the cap; needs a path */
} prof_policy;

/* What happens when a budget is exceeded. */
typedef enum prof_budget {
  /* level 2 steps down to 1; then the call sites that come most often are muted */
  PROF_BUDGET_DEFAULT = 0,
  PROF_BUDGET_LEVEL = 1, /* the level steps down, 2 to 1 to 0 */
  PROF_BUDGET_MUTE = 2   /* the call sites that come most often are muted */
} prof_budget;

typedef enum prof_clock {
  PROF_CLOCK_DEFAULT = 0, /* the time-stamp counter where it is safe, else CLOCK_MONOTONIC_RAW */
  PROF_CLOCK_TSC = 1,
  PROF_CLOCK_MONOTONIC = 2
} prof_clock;

/* What of devices is recorded: docs/reference/backends.md. */
typedef enum prof_devices {
  /* the device's side of WITH_GPU_PROFILER()'s scopes, and what else can be had for nothing:
     kernels and copies where OpenCL was told to let prof look */
  PROF_DEVICES_DEFAULT = 0,
  PROF_DEVICES_SCOPES = 1, /* scopes alone */
  /* also what each back end can record by itself: kernels, copies. Those whose library the program
     has loaded are opened by the start, which waits for them a second at most */
  PROF_DEVICES_RECORDS = 2,
  /* and what their vendors' libraries hand out, as pools of its own ("cuda memory"). A program
     whose allocator tells prof its blocks would have them twice: one or the other */
  PROF_DEVICES_MEMORY = 3
} prof_devices;

/* How to record. Set size to sizeof(prof_options) and the rest to zero: zero means the default for
   every field. A smaller struct is an older caller's; a larger one is accepted while its extra
   bytes are zero. */
typedef struct prof_options {
  size_t size;
  uint32_t level;  /* 1 or 2; 0: level 1 */
  uint32_t policy; /* prof_policy */
  /* where prof_dump(NULL) writes; the capture file stands beside it, so kill -9 loses nothing that
     had ended. %p pid, %h host, %r rank. NULL: recorded in memory. A relative one, PROF_OUTPUT too,
     means the working directory of the start, wherever the program goes later */
  const char *path;
  /* Hard bound of the capture. 0: 256 MiB in memory and on tmpfs, but at most an eighth of the
     memory limit; 4 GiB in any other file. With RLIMIT_AS or RLIMIT_DATA at most 3/32 of what they
     leave free when recording starts; prof_health() says so. */
  uint64_t cap_bytes;
  /* PROF_POLICY_RING: at export keep only the last so many ns; 0: all that fits */
  uint64_t ring_ns;
  /* 1: one thread prepares room ahead, so that no traced thread waits for the disk. A forked child
     has no such thread until it starts a capture itself. */
  uint32_t helper_thread;
  uint32_t keep_capture; /* 1: the capture file stays after a clean dump */
  uint32_t clock;        /* prof_clock */
  /* of each thread's time that recording may take: 10 is 1 %; 0: no such budget */
  uint32_t budget_permille;
  /* a second, of all threads together, that may be recorded; 0: no such budget */
  uint64_t budget_events;
  uint32_t budget_action; /* prof_budget */
  uint32_t devices;       /* prof_devices */
} prof_options;

/* A budget is judged where a thread changes its chunk (1024 scopes at first) or ends, over a second
   at least: a burst of up to a second's share is no excess. With budget_events a chunk holds a
   second's share of scopes, or 4096 if that is more: each thread may record so many beyond the
   budget before it is judged again. What a scope costs is measured at the first start; a muted one
   costs a call still, some ns. Each step down stands in the capture and in every export
   (prof_trace_change), and what muted sites would have recorded is counted as lost (muted). A step
   holds until prof_start() or prof_start_with() takes it back. All scopes by prof_scope_begin() of
   a level are one site: where a budget may mute, keep a prof_site a name. */

/* Starts recording at level 1 or 2. Recording already: sets the level and returns PROF_OK. If
   PROF_LEVEL began the recording, no lower level than that is set. After a stop it goes on in the
   same capture; prof_clear() empties it. Takes less than 4 KiB of stack. A start waits for a start
   or a stop that another thread is in, as prof_clear() does for a stop.
   Errors: PROF_E_LEVEL, PROF_E_NO_MEMORY, PROF_E_IO (no descriptor is left). */
PROF_API int prof_start(int level) PROF_I_NOEXCEPT;

/* The same with options (NULL: all defaults); they hold until a start with others. Errors:
   PROF_E_RUNNING while recording (the state stays as it was), PROF_E_LEVEL, PROF_E_INVALID (with
   the field's name in prof_last_error()), PROF_E_NOT_FOUND, PROF_E_PERMISSION, PROF_E_NO_SPACE,
   PROF_E_FILE_TYPE, PROF_E_IO for the path. A path whose file system cannot reserve space is no
   error: the capture goes to $PROF_CAPTURE_DIR, $TMPDIR, /dev/shm or memory, and prof_health() says
   where and why. */
PROF_API int prof_start_with(const prof_options *options) PROF_I_NOEXCEPT;

/* Mutes all present and future scopes of that name and category (1), or takes such a mute back (0).
   Names may be literals, made at run time, or those of prof_scope_begin_at(). NULL matches any
   text. A name that ends in '*' matches all names that begin so. If a call site's names are made at
   run time, its function's name mutes all of them: "prof_scope_begin" mutes all scopes by that
   call.

   A muted scope costs a call, records nothing, and is counted as lost (muted). A scope that is open
   when it is muted is still recorded. Mutes stay in force from capture to capture. prof_mute(NULL,
   NULL, 0) takes back all mutes, also those of the budget. Not in a signal handler. Errors:
   PROF_E_INVALID (both NULL and 1, a text longer than 127 bytes), PROF_E_NOT_FOUND (0, and no such
   mute), PROF_E_TOO_LARGE (64 are in force). */
PROF_API int prof_mute(const char *name, const char *category, int is_muted) PROF_I_NOEXCEPT;

/* For those who record for a while and do not know of each other, as language bindings' profiles
   do: who (any address that stays its own) wants this level from here on; 0: none any more. The
   level is the highest that anybody wants, prof_start()'s included, and the last one to leave stops
   the recording that such wishes began; what prof_start() began meanwhile stays until prof_stop(),
   which ends nobody's wish; nor does prof_memory_stop() the recording of memory that goes with one.
   PROF_LEVEL_PAUSED: none for a while: scopes that are open end as they should, and what he wants
   next goes on in the same capture. A recording that begins so, where nothing asked for by
   prof_start() stands in the capture, has a fresh one, and so has a prof_start() after the last of
   them has left: what such recordings left is forgotten then, but for the traces that somebody
   still holds. A forked child begins with nobody's wish, and records on what was asked for alone.
   Errors: PROF_E_LEVEL, PROF_E_INVALID (NULL), PROF_E_TOO_LARGE (1024 want something now), and
   prof_start()'s; then nothing has changed. */
#define PROF_LEVEL_PAUSED (-1)
PROF_API int prof_level_want(const void *who, int level) PROF_I_NOEXCEPT;
/* The same, and what he wants of devices (prof_devices) meanwhile: where a start's options leave it
   at the default, the most that anybody counts, records before the default before scopes alone. The
   first who wants records waits for the back ends, as prof_start_with() does. PROF_E_INVALID for
   what is none of them. */
PROF_API int prof_level_want_with(const void *who, int level, uint32_t devices) PROF_I_NOEXCEPT;

/* Stops recording. Scopes still open end uncounted among the recorded: they are counted as late.
   Where somebody else records for himself (prof_level_want()), his recording goes on, at his level.
   PROF_E_NOT_RUNNING when nothing that was started is recording. */
PROF_API int prof_stop(void) PROF_I_NOEXCEPT;

/* Forgets all that has been recorded, and gives its memory back. Recording goes on if it was on.
   What is forgotten is counted. No trace, table or export shows it any more, but it is not erased.
   Its bytes may stay in the capture file, and in a .prof file that prof_dump() writes, until new
   records overwrite them. Both files have mode 0600. */
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
   any). If such a scope is inside another one on its thread, it is counted, and its time is part of
   the outer one's. Scopes that a jump left (PROF_EVENT_SKIPPED) are in neither number, as their end
   is not known. Outputs may be NULL. Errors: prof_get()'s. */
PROF_API int prof_get_duration(const char *name, const char *category, uint64_t *total_ns_out,
                               uint64_t *count_out) PROF_I_NOEXCEPT;

typedef enum prof_format {
  /* by the path's ending: .json and .json.gz are Chrome JSON, .prof is the capture itself */
  PROF_FORMAT_DEFAULT = 0,
  PROF_FORMAT_CHROME = 1, /* complete (X) events, laid out as torch.profiler writes them */
  PROF_FORMAT_RAF = 2,    /* RAF's log: B/E pairs, args_string, tid = category */
  PROF_FORMAT_CAPTURE = 3 /* a copy of the arena */
} prof_format;

/* A member at the top of Chrome JSON, as torch.profiler's add_metadata_json(). */
typedef struct prof_metadata {
  /* in place of prof's own of the same name ("distributedInfo"); not "traceEvents", not "prof" */
  const char *key;
  const char *json; /* one JSON value: "\"a text\"", "3", "{\"layers\": [6, 12]}" */
} prof_metadata;

typedef struct prof_dump_options {
  size_t size;
  uint32_t format; /* prof_format */
  /* 0: an existing file is replaced; 1: PROF_E_IO ("File exists") when there is one */
  uint32_t must_be_new;
  uint64_t from_ns; /* only what ends after so many ns from the capture's start; 0: all */
  uint64_t to_ns;   /* only what begins before; 0: all */
  int32_t gzip;     /* 1: compressed, one member; 0: by the path's ending (.gz) */
  uint32_t metadata_count;
  const prof_metadata *metadata; /* of Chrome JSON alone; read before the call returns */
  /* of Chrome JSON alone. 1: where Python's functions are traced, each other scope has those around
     it as "Call stack", as torch.profiler's with_stack has it, some hundred bytes a scope */
  uint32_t stacks;
  /* of Chrome JSON alone. 1: its last rows are those that Kineto writes of a profile's begin and
     end, up to "Record Window End" */
  uint32_t window_marks;
  /* of Chrome JSON alone. 1: no event of memory and no graph of a pool, whoever recorded them */
  uint32_t no_memory;
  /* with `stacks` alone. From 1 on each "Call stack" is written as torch.profiler's: a frame's file
     without the longest of these folders that it begins with, and ';' behind each frame */
  uint32_t stack_folder_count;
  const char *const *stack_folders; /* "/usr/lib/python3.11/"; read before the call returns */
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
#define PROF_LOSS_LIST(X)                                                                 \
  X(FULL, "full", "the cap was reached")                                                  \
  X(OVERWRITTEN, "overwritten", "the ring gave its room to newer records")                \
  X(DISK, "disk", "the disk was full, or a file size limit was reached")                  \
  X(NO_CHUNK, "no_chunk", "no chunk was ready, and the thread must not wait")             \
  X(NO_THREAD, "no_thread", "no room for another thread")                                 \
  X(LATE, "late", "it ended after the stop, or in a later session")                       \
  X(CLEARED, "cleared", "prof_clear() forgot it")                                         \
  X(UNFINISHED, "unfinished", "its record was begun and never finished")                  \
  X(FORKED, "forked", "it was open across a fork, and ended in the child")                \
  X(LOST_STATE, "lost_state", "its thread had no room to remember it")                    \
  X(MUTED, "muted", "its call site was muted, by the program or by the budget")           \
  X(DEVICE_FULL, "device_full", "too many scopes waited for their device")                \
  X(DEVICE_LATE, "device_late", "its device was not done with it when recording stopped") \
  X(DEVICE_TIMES, "device_times", "its device gave no times for it")                      \
  X(SKIPPED, "skipped", "a jump left it, and there was no room to record that")           \
  X(THREAD_ENDED, "thread_ended", "its thread ended before it did")

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
  /* scopes, instants, counters, flows, steps and events of memory that stand in the capture */
  uint64_t recorded_count;
  uint64_t lost_count[16]; /* by prof_loss */
  /* scopes below 64 open ones: recorded, not shown while open */
  uint64_t deep_count;
  uint64_t cut_text_count; /* names or arguments cut at their bound, or left out */
  uint64_t arena_bytes;    /* claimed of the cap so far */
  uint64_t resident_bytes; /* of it in memory now, as far as the kernel tells */
  uint64_t cap_bytes;
  uint32_t threads_seen_count;
  uint32_t threads_alive_count;
  uint32_t sites_count;
  uint32_t policy;               /* prof_policy in force */
  uint32_t clock;                /* prof_clock in use */
  uint32_t clock_segments_count; /* more than 1: the clock stepped or the host slept */
  double ticks_per_ns;
  uint64_t clock_error_ns; /* bound of a conversion's error inside the capture */
  /* one plain scope, on, measured on this machine on demand; 0 when not measured */
  double scope_cost_ns;
  uint64_t chunk_changes_count;
  uint64_t chunk_change_median_ns;
  uint64_t chunk_change_p99_ns;
  uint64_t chunk_change_max_ns;
  /* 1: the capture is a file; kill -9 loses nothing that had ended */
  uint32_t survives_kill;
  uint32_t is_full;       /* 1: new scopes are being dropped */
  uint32_t helper_thread; /* 1: running */
  uint32_t level;
  char capture_path[512]; /* "" in memory */
  /* Why the capture is elsewhere or its cap smaller than requested, why the helper thread or a
     forked child's capture is missing, or what the system said when it gave no more room.
     Else "". */
  char reason[256];
  /* What recording has taken, all threads together: scopes at scope_cost_ns, what samples in place
     take beyond it, the processor's time of chunk changes. own_least_ns and own_most_ns are its
     bounds. */
  uint64_t own_ns;
  uint32_t muted_sites_count;
  uint32_t changes_count; /* steps of the budget and mutes, in this capture */
  /* scopes were put on a device, and not one of its own times stands in the capture: which, why,
     and what to do; "": no such device is known, though work may still be on its way */
  char device_warning[512];
  /* Scopes that have not ended yet, also those below the 64 open ones of a thread. */
  uint64_t open_count;
  /* Ends that found no scope: it had ended already, or never began. Not part of any sum. */
  uint64_t stray_count;
  uint64_t own_least_ns; /* own_ns, if every scope found its caches warm */
  /* An upper bound of own_ns. The time beyond warm caches that samples in place found counts 2.5
     times. Added are two standard errors, and the time that chunk changes waited for a processor or
     a slow disk. */
  uint64_t own_most_ns;
  /* 1: scopes were timed in place. 0: there were too few, or the clock is slow. Then all count as
     in warm caches: own_ns and own_least_ns are the least, and own_most_ns does not hold. */
  uint32_t is_own_sampled;
  uint32_t reserved;
} prof_health;

/* PROF_E_INVALID when NULL or size is 0. Measuring scope_cost_ns takes about a millisecond and
   records nothing. */
PROF_API int prof_health_get(prof_health *health_out) PROF_I_NOEXCEPT;
#define prof_health(health_out) prof_health_get(health_out)

/* ---- for other languages: scopes by calls ---- */

/* Opens a scope whose name and category are copied at once; level 1 or 2. Returns what
   prof_scope_end() takes, which tells the scope's start and thread, or 0 when not recorded. The
   scope ends on any thread by prof_scope_end(), and need not nest: tasks that take turns on a
   thread may end in any order; it is shown on the thread that ended it. Chrome's JSON shows up to
   1023 scopes that overlap on a thread, and counts those beyond. A begin without its end stays open
   until its own thread ends. Then the scope is lost (thread_ended), and a later end of it is a
   stray end. Returns 0 for another level than 1 or 2, and for one that is not in force. A signal
   handler ends what it begins, the last first, and nothing that others began. Signal-safe. args may
   be NULL. */
PROF_API uint64_t prof_scope_begin(int level, const char *name, const char *category,
                                   const prof_args *args) PROF_I_NOEXCEPT;
PROF_API void prof_scope_end(uint64_t start) PROF_I_NOEXCEPT;

/* A site registered once, for callers that keep one per name: then a scope costs what a macro's
   does. The site is the caller's memory, zeroed, and must outlive its scopes. */
PROF_API uint64_t prof_scope_begin_at(prof_site *site, const char *name,
                                      const char *category) PROF_I_NOEXCEPT;

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
PROF_API int prof_track_set_name(prof_device device, uint64_t stream,
                                 const char *name) PROF_I_NOEXCEPT;

/* Rank and world size; by default from RANK and WORLD_SIZE, SLURM_PROCID and SLURM_NTASKS,
   OMPI_COMM_WORLD_RANK and OMPI_COMM_WORLD_SIZE, or PMI_RANK and PMI_SIZE. A rank without a size is
   one of an unknown number. PROF_E_INVALID unless 0 <= rank < world_size. */
PROF_API int prof_rank_set(int rank, int world_size) PROF_I_NOEXCEPT;

/* The library's version, "0.1.0". Static. */
PROF_API const char *prof_version(void) PROF_I_NOEXCEPT;

PROF_I_EXTERN_C_END

#endif
