/* prof: an embeddable profiler. Programs include this header: captures, scopes, names, health.

       prof_start(1);
       WITH_BASE_PROFILER(PROF_HOST, "matmul", "operator", PROF_ARGS("m", m, "n", n),
                          { matmul(a, b, c, m, n); });
       prof_stop();
       prof_dump("trace.json");            // open it in ui.perfetto.dev or chrome://tracing

   Levels are RAF's. Level 1 records kernels and operators, level 2 also the runtime (VM) around
   them. A program that links prof needs no code: PROF_LEVEL=2 PROF_OUTPUT=trace.json ./app records
   it from load to exit.

   Unless its comment says otherwise, a function may be called from any thread and in any order. No
   function exits, aborts, writes to stdout or installs a signal handler. A function that can fail
   returns a prof_status; then outputs are unchanged, and prof_last_error() has the reason.

   On x86-64, the functions of this header need at most 8 KiB of stack below the caller, also
   prof_dump(). A dump as PROF_FORMAT_PACKED needs 12 KiB. Vendors' libraries for devices, dumps of
   traced Python functions, and other versions of zstd and SQLite may need more: see
   docs/reference/api.md.

   Signal-safe functions say so. The others may allocate memory, so a handler that may have
   interrupted malloc() must not call them. If a handler interrupted a call of prof on its thread,
   they do not wait. They return PROF_E_BUSY, or do nothing if they return no status. A trace that
   should be destroyed then stays.
   SPDX-License-Identifier: MIT */
#ifndef PROF_PROFILER_H
#define PROF_PROFILER_H

#include <prof/args.h>
#include <prof/scope.h>
#include <prof/status.h>
#include <prof/version.h>

PROF_I_EXTERN_C_BEGIN

/* ---- starting a capture ---- */

/* Where records go, and what happens when there is no more room. */
typedef enum prof_policy {
  PROF_POLICY_DEFAULT = 0, /* PROF_POLICY_STREAM with a path, else PROF_POLICY_KEEP */
  /* At the cap, scopes that begin later are dropped and counted. */
  PROF_POLICY_KEEP = 1,
  PROF_POLICY_RING = 2,  /* Flight recorder: the oldest records are overwritten and counted. */
  PROF_POLICY_STREAM = 3 /* The capture file grows up to the cap. Needs a path. */
} prof_policy;

/* What happens when a budget is exceeded. */
typedef enum prof_budget {
  /* Level 2 steps down to 1. Then the call sites that are reached most often are muted. */
  PROF_BUDGET_DEFAULT = 0,
  PROF_BUDGET_LEVEL = 1, /* the level steps down, from 2 to 1 to 0 */
  PROF_BUDGET_MUTE = 2   /* the call sites that are reached most often are muted */
} prof_budget;

/* The clock that stamps scopes. */
typedef enum prof_clock {
  PROF_CLOCK_DEFAULT = 0, /* the time-stamp counter where it is safe, else CLOCK_MONOTONIC_RAW */
  PROF_CLOCK_TSC = 1,
  PROF_CLOCK_MONOTONIC = 2
} prof_clock;

/* What is recorded of devices: see docs/reference/backends.md. */
typedef enum prof_devices {
  /* The device's side of WITH_GPU_PROFILER()'s scopes, and what costs the program nothing more.
     Example: kernels and copies where OpenCL already loads prof's layer. */
  PROF_DEVICES_DEFAULT = 0,
  PROF_DEVICES_SCOPES = 1, /* the device's side of scopes alone */
  /* Also the kernels and copies that each back end can record. The start opens the back ends whose
     library the program has loaded, and waits at most one second for them. */
  PROF_DEVICES_RECORDS = 2,
  /* Also the memory that vendors' libraries hand out, as separate pools ("cuda memory"). Do not
     combine it with an allocator that reports the same blocks to prof: they would be counted
     twice. */
  PROF_DEVICES_MEMORY = 3
} prof_devices;

/* How to record. Set size to sizeof(prof_options) and all other fields to 0, the default. A smaller
   struct comes from an older caller. A larger one is accepted while its extra bytes are 0. */
typedef struct prof_options {
  size_t size;
  uint32_t level;  /* 1 or 2; 0: level 1 */
  uint32_t policy; /* prof_policy */
  /* Where prof_dump(NULL) writes. %p: pid, %h: host, %r: rank. The capture file is in the same
     folder, so kill -9 loses nothing that had ended. NULL: recorded in memory. A relative path,
     also in PROF_OUTPUT, is relative to the working directory at the start. */
  const char *path;
  /* Upper bound of the capture in bytes. 0: 4 GiB in a file. In memory and on tmpfs 0 means 256
     MiB, at most an eighth of the memory limit. With RLIMIT_AS or RLIMIT_DATA the bound is at most
     3/32 of what they leave free at the start. prof_health() reports a smaller cap. */
  uint64_t cap_bytes;
  /* PROF_POLICY_RING: export only the last ring_ns. 0: all that fits. */
  uint64_t ring_ns;
  /* 1: a helper thread prepares room ahead, so that no recorded thread waits for the disk. A forked
     child has no helper thread until it starts a capture itself. */
  uint32_t helper_thread;
  uint32_t keep_capture; /* 1: the capture file stays after a clean dump */
  uint32_t clock;        /* prof_clock */
  /* The share of each thread's time that recording may take, in 1/1000. 0: no such budget. */
  uint32_t budget_permille;
  /* Events a second that may be recorded, all threads together. 0: no such budget. */
  uint64_t budget_events;
  uint32_t budget_action; /* prof_budget */
  uint32_t devices;       /* prof_devices */
} prof_options;

/* How a budget works. prof checks it when a thread changes its chunk (1024 scopes at first) or
   ends, over at least one second. A burst of up to one second's share is therefore no excess. With
   budget_events a chunk holds one second's share of scopes, and at least 4096. Each thread may
   record that many above the budget before the next check.

   The first start measures what a scope costs. A muted scope still costs a call of a few ns. Each
   step down is in the capture and in every export (prof_trace_change). What muted sites would have
   recorded is counted as lost (muted). A step holds until prof_start() or prof_start_with() reverts
   it. All scopes of a level by prof_scope_begin() are one call site. If a budget may mute, keep one
   prof_site for each name. */

/* Starts recording at `level`, 1 or 2. While recording, it sets the level and returns PROF_OK. If
   PROF_LEVEL began the recording, it does not set a lower level. After a stop it continues the same
   capture; prof_clear() empties it. It waits for a start or stop of another thread. It needs less
   than 4 KiB of stack.
   Errors:
   PROF_E_LEVEL: the level is not 1 or 2.
   PROF_E_NO_MEMORY: no room for the capture.
   PROF_E_IO: no file descriptor is left.
   Any thread. */
PROF_API int prof_start(int level) PROF_I_NOEXCEPT;

/* Starts recording with options, which hold until a start with others. NULL: all defaults. A path
   whose file system cannot reserve space is no error. Then the capture is in $PROF_CAPTURE_DIR,
   $TMPDIR, /dev/shm or memory; prof_health() says where, and why.
   Errors:
   PROF_E_RUNNING: prof is recording. The state is unchanged.
   PROF_E_LEVEL: the level is not 0, 1 or 2.
   PROF_E_INVALID: prof_last_error() names the field.
   PROF_E_NOT_FOUND, PROF_E_PERMISSION, PROF_E_NO_SPACE, PROF_E_FILE_TYPE, PROF_E_IO: the path.
   Any thread. */
PROF_API int prof_start_with(const prof_options *options) PROF_I_NOEXCEPT;

/* Mutes all present and future scopes of that name and category (is_muted 1), or reverts such a
   mute (0). Mutes stay in force from capture to capture. prof_mute(NULL, NULL, 0) reverts all
   mutes, also those of the budget.

   Names may be literals, made at run time, or those of prof_scope_begin_at(). NULL matches any
   text. A name that ends in '*' matches all names with that prefix. If a call site's names are made
   at run time, its function's name mutes all of them. Example: "prof_scope_begin" mutes all scopes
   by that call.

   A muted scope costs a call, records nothing, and is counted as lost (muted). A scope that is open
   when it is muted is still recorded.
   Errors:
   PROF_E_INVALID: both texts are NULL and is_muted is 1, or a text is longer than 127 bytes.
   PROF_E_NOT_FOUND: is_muted is 0 and no such mute exists.
   PROF_E_TOO_LARGE: 64 mutes are in force.
   Any thread. Not in a signal handler. */
PROF_API int prof_mute(const char *name, const char *category, int is_muted) PROF_I_NOEXCEPT;

/* ---- level requests ---- */

/* As `level` of prof_level_want(): pauses the owner's request. */
#define PROF_LEVEL_PAUSED (-1)
/* Requests a minimum level on behalf of `who`, any address that only this owner uses. Level 0
   releases the request. It serves owners that do not know each other, as profiles in language
   bindings.

   The level in force is the highest request, that of prof_start() included. When the last request
   is released, the recording that requests began stops. A recording that prof_start() began
   meanwhile continues until prof_stop(). A stop releases no request. prof_memory_stop() does not
   stop the recording of memory that belongs to a request.

   PROF_LEVEL_PAUSED pauses the request. Open scopes end normally, and the owner's next request
   continues in the same capture.

   A recording that a request begins uses a fresh capture, unless the capture has scopes that
   prof_start() asked for. A prof_start() after the last release uses a fresh capture, too. Then the
   requests' records are forgotten, except in traces that still exist. A forked child has no
   requests, and records only what prof_start() asked for.
   Errors, with the state unchanged:
   PROF_E_LEVEL: the level is not 0, 1, 2 or PROF_LEVEL_PAUSED.
   PROF_E_INVALID: who is NULL.
   PROF_E_TOO_LARGE: 1024 requests exist.
   Also those of prof_start(). Any thread. */
PROF_API int prof_level_want(const void *who, int level) PROF_I_NOEXCEPT;

/* The same, with a request for devices: one of prof_devices. It counts where the start's options
   have the default. The strongest request wins, and records win over the default, the default over
   scopes alone. The first request for records waits for the back ends as prof_start_with() does.
   PROF_E_INVALID: devices is not a prof_devices.
   Any thread. */
PROF_API int prof_level_want_with(const void *who, int level, uint32_t devices) PROF_I_NOEXCEPT;

/* ---- stop and clear ---- */

/* Stops recording. Scopes that are still open are not recorded; their ends count as lost (late). If
   another owner requested a level (prof_level_want()), recording continues at that level.
   PROF_E_NOT_RUNNING: no start's recording is running.
   Any thread. */
PROF_API int prof_stop(void) PROF_I_NOEXCEPT;

/* Forgets all records and frees their memory. Recording continues if it was on. What is forgotten
   is counted (cleared). No trace, table or export shows it afterwards, but it is not erased. Its
   bytes may stay in the capture file until new records overwrite them. The same is true of a .prof
   file that prof_dump() writes. Both files have mode 0600.
   Any thread. */
PROF_API int prof_clear(void) PROF_I_NOEXCEPT;

/* Returns the level in force: 0 (off), 1 or 2. Any thread. */
PROF_API int prof_level(void) PROF_I_NOEXCEPT;

/* ---- reading and export ---- */

/* A trace: a snapshot of a capture. <prof/trace.h> reads it. */
typedef struct prof_trace prof_trace;

/* Returns a trace of what has been recorded so far, also while other threads record. The caller
   owns it: prof_trace_destroy(). No later record, clear or start changes it. While it exists,
   prof_clear() frees no memory.
   Errors:
   PROF_E_INVALID: trace_out is NULL.
   PROF_E_NOT_RUNNING: nothing was ever started.
   PROF_E_NO_MEMORY: no memory for the snapshot.
   Any thread. */
PROF_API int prof_get(prof_trace **trace_out) PROF_I_NOEXCEPT;

/* Returns the trace as Chrome JSON. The text is NUL-terminated; *bytes_out is its length without
   the NUL, and bytes_out may be NULL. The caller frees it with prof_free().
   Errors, besides those of prof_get():
   PROF_E_TOO_LARGE: the text exceeds 1 GiB. Dump to a file instead.
   PROF_E_CHECK: the text is complete, but its self-check found faults.
   Any thread. */
PROF_API int prof_get_json(char **text_out, size_t *bytes_out) PROF_I_NOEXCEPT;

/* Frees a text or rows that prof returned. NULL is ignored. */
PROF_API void prof_free(void *memory) PROF_I_NOEXCEPT;

/* RAF's get_duration. Returns the total time in ns and the number of ended scopes of that name and
   category. NULL matches any. A scope inside another one on its thread is counted, but its time is
   part of the outer one's. Scopes that a jump left (PROF_EVENT_SKIPPED) are not counted: their ends
   are not known. Outputs may be NULL. Errors: those of prof_get().
   Any thread. */
PROF_API int prof_get_duration(const char *name, const char *category, uint64_t *total_ns_out,
                               uint64_t *count_out) PROF_I_NOEXCEPT;

typedef enum prof_format {
  /* By the path's ending. .json and .json.gz: Chrome JSON. .prof: the capture itself.
     .pftrace and .pftrace.gz: Perfetto. .csv and .csv.gz: CSV.
     .folded and .folded.gz: folded stacks. .speedscope.json, also with .gz: speedscope.
     .pb.gz and .pb: pprof. .db: SQLite. .rpd: RPD. */
  PROF_FORMAT_DEFAULT = 0,
  PROF_FORMAT_CHROME = 1,     /* complete (X) events, laid out as torch.profiler writes them */
  PROF_FORMAT_RAF = 2,        /* RAF's log: B/E pairs, args_string, tid = category */
  PROF_FORMAT_CAPTURE = 3,    /* a copy of the arena */
  PROF_FORMAT_PERFETTO = 4,   /* Perfetto's protobuf, .pftrace and .pftrace.gz */
  PROF_FORMAT_CSV = 5,        /* a line for each scope, instant and counter value */
  PROF_FORMAT_FOLDED = 6,     /* folded stacks with self time in ns, for flamegraph.pl */
  PROF_FORMAT_SPEEDSCOPE = 7, /* speedscope's JSON: self time of call paths */
  PROF_FORMAT_PPROF = 8,      /* pprof's profile.proto: calls and self time of call paths */
  PROF_FORMAT_PACKED = 9,     /* the capture, compressed; needs zstd on the machine */
  PROF_FORMAT_SQLITE = 10,    /* SQLite tables with views; needs libsqlite3 on the machine */
  PROF_FORMAT_RPD = 11        /* SQLite as AMD's rocmProfileData; needs libsqlite3 */
} prof_format;

/* A member at the top level of Chrome JSON, as torch.profiler's add_metadata_json() writes it. */
typedef struct prof_metadata {
  /* Replaces prof's own member of that name, as "distributedInfo". Not "traceEvents" or "prof". */
  const char *key;
  const char *json; /* one JSON value: "\"a text\"", "3", "{\"layers\": [6, 12]}" */
} prof_metadata;

/* Options of a dump. Set size to sizeof(prof_dump_options) and all other fields to 0, the
   default. */
typedef struct prof_dump_options {
  size_t size;
  uint32_t format; /* prof_format */
  /* 0: an existing file is replaced. 1: an existing file is an error, PROF_E_IO ("File exists"). */
  uint32_t must_be_new;
  uint64_t from_ns; /* Only events that end later; ns from the capture's start. 0: all. */
  uint64_t to_ns;   /* Only events that begin earlier; the same unit. 0: all. */
  int32_t gzip;     /* 1: compressed, one member. 0: by the path's ending (.gz). */
  uint32_t metadata_count;
  const prof_metadata *metadata; /* Chrome JSON only. Read before the call returns. */
  /* Chrome JSON only. 1: where Python's functions are traced, each other scope has the functions
     around it as "Call stack", as torch.profiler's with_stack. Takes some hundred bytes a scope. */
  uint32_t stacks;
  /* Chrome JSON only. 1: the last rows are those that Kineto writes for a profile's begin and end,
     up to "Record Window End". */
  uint32_t window_marks;
  /* Chrome JSON only. 1: no events of memory and no graphs of pools. */
  uint32_t no_memory;
  /* Only with `stacks`. Above 0, each "Call stack" has torch.profiler's form: ';' follows each
     frame, and a frame's file lacks the longest of these folders that is its prefix. */
  uint32_t stack_folder_count;
  const char *const *stack_folders; /* "/usr/lib/python3.11/". Read before the call returns. */
} prof_dump_options;

/* Writes the trace so far, also while other threads record. The file gets its final name when it is
   complete. path NULL: the path of the options or of PROF_OUTPUT. options NULL: the defaults. After
   a clean dump, a capture file that no process records into is removed, unless options.keep_capture
   of the start is 1.
   Errors, besides those of prof_get():
   PROF_E_INVALID: no path.
   PROF_E_NOT_FOUND, PROF_E_PERMISSION, PROF_E_NO_SPACE, PROF_E_FILE_TYPE, PROF_E_IO: the path.
   PROF_E_NO_MEMORY: no memory for the export.
   PROF_E_CHECK: the file is written, but its self-check found faults.
   Any thread. */
PROF_API int prof_dump(const char *path) PROF_I_NOEXCEPT;
PROF_API int prof_dump_with(const char *path, const prof_dump_options *options) PROF_I_NOEXCEPT;

/* ---- health ---- */

/* Why a scope was not recorded. Health, traces and all exports have a count for each reason. */
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

/* Returns the name ("full") and the explanation of a prof_loss; "unknown" for another value. Static
   texts.
   Any thread. */
PROF_API const char *prof_loss_name(int loss) PROF_I_NOEXCEPT;
PROF_API const char *prof_loss_text(int loss) PROF_I_NOEXCEPT;

/* The profiler's own state. Set size to sizeof(prof_health). Fields up to size are filled; fields
   that this version does not know are set to 0. */
typedef struct prof_health {
  size_t size;
  /* scopes, instants, counters, flows, steps and memory events in the capture */
  uint64_t recorded_count;
  uint64_t lost_count[16]; /* index: prof_loss */
  /* Scopes below a thread's first 64 open ones. They are recorded, but not shown while open. */
  uint64_t deep_count;
  uint64_t cut_text_count; /* names or arguments cut at their limit, or omitted */
  uint64_t arena_bytes;    /* part of the cap that is in use */
  uint64_t resident_bytes; /* part of arena_bytes in physical memory, if known */
  uint64_t cap_bytes;
  uint32_t threads_seen_count;
  uint32_t threads_alive_count;
  uint32_t sites_count;
  uint32_t policy;               /* prof_policy in force */
  uint32_t clock;                /* prof_clock in use */
  uint32_t clock_segments_count; /* more than 1: the clock stepped or the host slept */
  double ticks_per_ns;
  uint64_t clock_error_ns; /* bound of a conversion's error within the capture */
  /* Cost of one plain recorded scope, measured on this machine on demand. 0: not measured. */
  double scope_cost_ns;
  uint64_t chunk_changes_count;
  uint64_t chunk_change_median_ns;
  uint64_t chunk_change_p99_ns;
  uint64_t chunk_change_max_ns;
  /* 1: the capture is a file, so kill -9 loses nothing that had ended. */
  uint32_t survives_kill;
  uint32_t is_full;       /* 1: new scopes are being dropped */
  uint32_t helper_thread; /* 1: running */
  uint32_t level;
  char capture_path[512]; /* "" in memory */
  /* Why the capture is elsewhere, its cap is smaller than requested, or the helper thread or a
     forked child's capture is missing. Or the system's message when it refused more room. Else
     "". */
  char reason[256];
  /* Time that recording has taken, all threads together. Scopes count at scope_cost_ns. The extra
     time of sampled scopes and the CPU time of chunk changes are added. Its bounds are own_least_ns
     and own_most_ns. */
  uint64_t own_ns;
  uint32_t muted_sites_count;
  uint32_t changes_count; /* steps of the budget and mutes in this capture */
  /* Set if scopes were put on a device and the capture has none of the device's times. It says
     which device, why, and what to do. "": no such device is known, though work may still be under
     way. */
  char device_warning[512];
  /* Scopes that have not ended, also those below a thread's 64 open ones. */
  uint64_t open_count;
  /* Ends without an open scope: it had already ended, or never began. Not part of any sum. */
  uint64_t stray_count;
  uint64_t own_least_ns; /* own_ns if every scope had found its data in warm caches */
  /* An upper bound of own_ns. The sampled time beyond warm caches counts 2.5 times. Two standard
     errors are added, and the time that chunk changes waited for a processor or a slow disk. */
  uint64_t own_most_ns;
  /* 1: scopes were timed in the running program. 0: there were too few, or the clock is slow. Then
     all scopes count as with warm caches, own_ns and own_least_ns are lower bounds, and own_most_ns
     is no bound. */
  uint32_t is_own_sampled;
  uint32_t reserved;
} prof_health;

/* Fills health_out. Measuring scope_cost_ns takes about one millisecond and records nothing.
   Events of full chunks are counted once, at 1 to 2 ns each: the first call after 100 million
   takes 0.1 to 0.2 s of processor time. No other call waits meanwhile.
   PROF_E_INVALID: health_out is NULL or its size is 0.
   Any thread. */
PROF_API int prof_health_get(prof_health *health_out) PROF_I_NOEXCEPT;
#define prof_health(health_out) prof_health_get(health_out)

/* ---- for other languages: scopes by calls ---- */

/* Opens a scope at level 1 or 2; name and category are copied. args may be NULL. Returns the scope
   for prof_scope_end(), or 0 if it is not recorded. It returns 0 for another level, and for a level
   that is not in force.

   prof_scope_end() may be called on any thread, and scopes need not nest: tasks that take turns on
   a thread may end in any order. Traces show the scope on the thread that ended it. Chrome JSON
   shows up to 1023 overlapping scopes of a thread, and counts the others. A scope that never ends
   stays open until its thread ends. Then it is lost (thread_ended), and a later end is a stray end.

   Signal-safe. A signal handler must end what it begins, the last scope first, and nothing else.
   Any thread. */
PROF_API uint64_t prof_scope_begin(int level, const char *name, const char *category,
                                   const prof_args *args) PROF_I_NOEXCEPT;

/* Ends a scope of prof_scope_begin() or prof_scope_begin_at(). 0 is ignored.
   Signal-safe. Any thread. */
PROF_API void prof_scope_end(uint64_t start) PROF_I_NOEXCEPT;

/* Opens a scope of a call site that the caller keeps, one for each name. It costs as much as a
   macro's scope. The caller owns the site's memory and keeps it until its scopes have ended. The
   site starts as zero; only its level may be set, and 0 means 1. Ends by prof_scope_end().
   Any thread. */
PROF_API uint64_t prof_scope_begin_at(prof_site *site, const char *name,
                                      const char *category) PROF_I_NOEXCEPT;

/* ---- steps, flows, names, rank ---- */

/* Marks the end of a step, exported as ProfilerStep#n, n from 0. Call it between iterations,
   outside of scopes. A step that overlaps a scope without enclosing it is shown on a separate row.
   Any thread. */
PROF_API void prof_step(void) PROF_I_NOEXCEPT;

/* An arrow from inside one scope to inside another, on any threads. Both calls have the same id.
   The begin comes first. */
PROF_API void prof_flow_begin(uint64_t id, const char *name) PROF_I_NOEXCEPT;
PROF_API void prof_flow_end(uint64_t id, const char *name) PROF_I_NOEXCEPT;

/* Names the process, the calling thread, or a device's stream. Names are copied and cut at 63
   bytes. The last name wins.
   Any thread. */
PROF_API int prof_process_set_name(const char *name) PROF_I_NOEXCEPT;
PROF_API int prof_thread_set_name(const char *name) PROF_I_NOEXCEPT;
PROF_API int prof_track_set_name(prof_device device, uint64_t stream,
                                 const char *name) PROF_I_NOEXCEPT;

/* Sets rank and world size. The default comes from RANK and WORLD_SIZE, SLURM_PROCID and
   SLURM_NTASKS, OMPI_COMM_WORLD_RANK and OMPI_COMM_WORLD_SIZE, or PMI_RANK and PMI_SIZE. A rank
   without a size means that the number of ranks is not known.
   PROF_E_INVALID: not 0 <= rank < world_size.
   Any thread. */
PROF_API int prof_rank_set(int rank, int world_size) PROF_I_NOEXCEPT;

/* Returns the library's version, "0.1.0". Static text. Any thread. */
PROF_API const char *prof_version(void) PROF_I_NOEXCEPT;

PROF_I_EXTERN_C_END

#endif
