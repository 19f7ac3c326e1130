/* Reading a capture: of this process (prof_get()), of a file, of a running or a dead process. The
   reader trusts nothing in the bytes. A trace is a snapshot that does not change. Any number of
   threads may read it at once.

   Unless its comment says otherwise, a function may be called from any thread, and not in a signal
   handler. The caller frees each `text_out` with prof_free(). PROF_E_INVALID means that an argument
   is NULL, a struct's size is not set, or an index is out of range.
   SPDX-License-Identifier: MIT */
#ifndef PROF_TRACE_H
#define PROF_TRACE_H

#include <prof/profiler.h>

PROF_I_EXTERN_C_BEGIN

/* ---- opening ---- */

/* Opens a capture file: complete, being written, or left by a process that died. The caller owns
   the trace and destroys it.

   A file of up to 64 MiB that no process records into is read. It may then be truncated or removed.
   Other files stay mapped until the trace is destroyed: larger files, those being recorded into,
   and those beyond 128 MiB open together. If a mapped file is truncated, this process gets SIGBUS.
   Errors:
   PROF_E_NOT_FOUND, PROF_E_PERMISSION, PROF_E_FILE_TYPE, PROF_E_IO: the file.
   PROF_E_NOT_CAPTURE, PROF_E_VERSION, PROF_E_TRUNCATED: its contents.
   PROF_E_INVALID, PROF_E_NO_MEMORY.

   A file of `prof merge` has several captures. "all.prof#2" is the path of the second one. The path
   without a number is refused with PROF_E_INVALID, unless the file has only one. */
PROF_API int prof_trace_open(const char *path, prof_trace **trace_out) PROF_I_NOEXCEPT;

/* Counts the captures of a file: 1, or more for a merged file. The path "all.prof#N" opens capture
   N of "all.prof", from 1 on. If the file is damaged or cut off, the count includes lost captures.
   Opening a lost capture fails with PROF_E_NOT_FOUND.
   Errors: PROF_E_NOT_FOUND, PROF_E_PERMISSION, PROF_E_IO, PROF_E_INVALID, PROF_E_NO_MEMORY. */
PROF_API int prof_trace_part_count(const char *path, uint32_t *count_out) PROF_I_NOEXCEPT;

/* Opens a capture of `count` bytes in memory. The bytes must not change until the trace is
   destroyed.
   Errors as above. */
PROF_API int prof_trace_open_bytes(const void *bytes, size_t count,
                                   prof_trace **trace_out) PROF_I_NOEXCEPT;

/* Destroys a trace. All texts and results that point into it become invalid. NULL is ignored. */
PROF_API void prof_trace_destroy(prof_trace *trace) PROF_I_NOEXCEPT;

/* ---- the capture ---- */

/* What is known of a capture. The caller sets size. */
typedef struct prof_trace_info {
  size_t size;
  /* events that a cursor reads: scopes, also open ones, instants, counters, flows, steps, memory
     events */
  uint64_t event_count;
  uint64_t scope_count;    /* ended scopes */
  uint64_t open_count;     /* scopes that had not ended */
  uint64_t lost_count[16]; /* index: prof_loss */
  uint64_t bad_count;      /* records or chunks that are damaged; not a loss */
  /* Wall clock at the capture's start. Later changes of the wall clock do not count: exports add
     CLOCK_MONOTONIC's progress to it. */
  uint64_t start_unix_ns;
  uint64_t start_ns; /* CLOCK_MONOTONIC at the capture's start */
  /* From the start to the end. If the capture is being recorded and its clock can be read here, it
     ends when it is opened. Otherwise it ends with the last record. */
  uint64_t duration_ns;
  uint64_t clock_error_ns; /* bound of a time's error, outside of clock_gap_ns */
  /* more than 1: the clock's rate changed, it jumped, or the host slept */
  uint32_t clock_segments_count;
  uint32_t pid;
  int32_t rank;
  int32_t world_size; /* 1: no ranks. -1: the launcher does not say how many. */
  uint32_t thread_count;
  uint32_t is_live; /* 1: the process that writes it still runs */
  /* 1: recording was stopped. 0: the process died, still records, or is_copy is 1. */
  uint32_t was_clean;
  /* The level in force when the capture was read. If that is 0, the last one before. */
  uint32_t level;
  uint32_t policy; /* prof_policy */
  char host[64];
  char process_name[64];
  uint32_t clock; /* prof_clock in use */
  /* 1: recorded on another host or in another pid namespace. Whether its process runs is not
     known. */
  uint32_t is_elsewhere;
  uint64_t own_ns; /* time that recording took, all threads together: see own_most_ns */
  /* memory limit of the machine or of the process's control group; 0: not known */
  uint64_t memory_limit_bytes;
  /* cost of one plain scope, measured on that machine at the start; 0: not measured */
  double scope_cost_ns;
  double cpu_limit;      /* processors that the control group allowed; 0: all */
  uint32_t change_count; /* for prof_trace_change_get() */
  uint32_t level_now;    /* the level in force when the capture was read; 0: off */
  /* Changes for which there was no room: changes may fill a 64th of the capture. The last 64 levels
     set by another process are always kept. */
  uint64_t untold_change_count;
  /* how often the counter went back, or far ahead: the machine was moved, or slept */
  uint32_t clock_jump_count;
  /* how often CLOCK_REALTIME was set, or the machine slept, which CLOCK_MONOTONIC omits */
  uint32_t wall_step_count;
  int64_t wall_step_ns; /* sum of these steps */
  /* The longest time between two clock pairs in which the clock jumped at an unknown moment. A time
     inside of it may be wrong by as much. 0: no such jump. */
  uint64_t clock_gap_ns;
  /* Scopes that ended before they began, because their thread moved to a processor whose counter is
     behind. Their duration is 0. */
  uint64_t clock_back_count;
  /* 1: a copy, made while the capture was being recorded. Later records are not in it. prof_dump(),
     prof_trace_dump() or a program that copies files made it. */
  uint32_t is_copy;
  uint32_t device_count; /* devices that scopes were put on, for prof_trace_device_get() */
  /* Scopes that had not ended, beyond the 64 of a thread in open_count. They have no names. Begins
     = recorded + lost + open_count + open_below_count. */
  uint64_t open_below_count;
  /* Ends without an open scope: it had already ended, or never began. Not part of that sum. */
  uint64_t stray_count;
  uint32_t note_count; /* for prof_trace_note_text() */
  /* 1: own_most_ns exceeds 1.4 times own_least_ns. Then a table shows these, not own_ns. */
  uint32_t is_own_apart;
  uint64_t own_least_ns; /* own_ns if every scope had found its data in warm caches */
  /* An upper bound of own_ns. The sampled time beyond warm caches counts 2.5 times. Two standard
     errors are added, and the time that chunk changes waited for a processor or a slow disk. */
  uint64_t own_most_ns;
  /* Scopes of scope_count that a jump left (PROF_EVENT_SKIPPED). Their durations are not known. */
  uint64_t skipped_count;
  /* 1: scopes were timed in the running program. 0: there were too few, or the clock is slow. Then
     all scopes count as with warm caches, own_ns and own_least_ns are lower bounds, and own_most_ns
     is no bound. */
  uint32_t is_own_sampled;
  /* 1: the process was killed, and prof run saw it alive up to the trace's end */
  uint32_t is_end_seen;
} prof_trace_info;

/* Fills info_out. PROF_E_INVALID. */
PROF_API int prof_trace_info_get(const prof_trace *trace,
                                 prof_trace_info *info_out) PROF_I_NOEXCEPT;

/* ---- events ---- */

typedef enum prof_event_kind {
  PROF_EVENT_SCOPE = 1,
  PROF_EVENT_OPEN = 2, /* a scope that had not ended; its duration is up to the trace's end */
  PROF_EVENT_INSTANT = 3,
  PROF_EVENT_COUNTER = 4,
  PROF_EVENT_FLOW_BEGIN = 5,
  PROF_EVENT_FLOW_END = 6,
  PROF_EVENT_STEP = 7,  /* duration_ns is the step's, id its number */
  PROF_EVENT_MEMORY = 8 /* prof_event_memory; the name is the pool's event, the device the pool's */
} prof_event_kind;

/* What happened to memory: see <prof/memory.h>. */
typedef enum prof_memory_verb {
  PROF_MEMORY_ALLOC = 1,
  PROF_MEMORY_FREE = 2,
  PROF_MEMORY_RESERVE = 3,
  PROF_MEMORY_RELEASE = 4,
  PROF_MEMORY_COLLECT = 5, /* a collection ended; it began duration_ns before start_ns */
  PROF_MEMORY_OOM = 6,
  PROF_MEMORY_SAMPLE = 7, /* PROFILE_MEMORY() */
  PROF_MEMORY_WRONG = 8   /* a wrong call, found by a checked pool */
} prof_memory_verb;

typedef struct prof_event_memory {
  uint32_t verb; /* prof_memory_verb */
  uint32_t pool; /* the pool's number in the capture */
  uint64_t address;
  uint64_t bytes;           /* as allocated; of an OOM as requested */
  uint64_t requested_bytes; /* as requested */
  /* The pool's own count after the event. Negative if more was freed than allocated since the
     start. */
  int64_t used_bytes;
  int64_t allocated_bytes; /* the same; -1: not part of this event */
  uint32_t wrong;          /* prof_memory_wrong */
  uint32_t tag_bytes;
  const char *tag; /* NULL: none */
} prof_event_memory;

/* A value of prof_event_launch.record besides those of prof_backend_kind. It is an imported trace's
   name for an interval of a device's time (gpu_user_annotation). It is no work: no device time
   includes it. */
#define PROF_RECORD_ANNOTATION 7u

/* For events of a device's stream (PROF_EVENT_ON_DEVICE): what launched it, and the device's
   times. */
typedef struct prof_event_launch {
  /* Of a scope's device side: the begin of the host's scope, which this and the thread identify. Of
     a record: the time of its launch, in the innermost scope that was open then. */
  uint64_t start_ns;
  uint32_t thread; /* thread that launched it; UINT32_MAX: not in the capture */
  /* Of a record by the vendor's tracing: its prof_backend_kind, as PROF_BACKEND_KERNEL. 0: the
     device's side of a scope. */
  uint32_t record;
  uint64_t device_start_ns, device_end_ns; /* by the back end's clock, unchanged */
} prof_event_launch;

/* One argument of an event. Texts are valid while the trace exists. */
typedef struct prof_trace_arg {
  const char *key; /* NULL in lists, formats and shapes */
  uint32_t key_bytes;
  uint32_t type; /* prof_arg_type */
  union {
    int64_t i64;
    uint64_t u64;
    double f64;
    struct {
      const char *data;
      uint64_t bytes;
    } text;
    struct {
      const int64_t *dims;
      uint32_t rank;
      uint32_t dtype;
    } tensor;
  } value;
} prof_trace_arg;

/* One event. Texts are not NUL-terminated and may contain any bytes. They are valid while the trace
   exists. */
typedef struct prof_event {
  uint32_t kind;     /* prof_event_kind */
  uint32_t thread;   /* index for prof_trace_thread_get() */
  uint64_t start_ns; /* from the capture's start (info.start_ns) */
  uint64_t duration_ns;
  /* Duration less that of its children on the same thread. Of scopes only, by a cursor only.
     - Scopes that overlap without nesting: Each moment counts for the scope that began last. Self
       times then add up to the time in which any ran.
     - The same on a device's stream: each keeps its whole duration.
     - A scope that ended on another thread: 0, as torch.profiler has it of asynchronous work.
     - A scope that a jump left: 0. Its moments belong to the scope around it. */
  uint64_t self_ns;
  uint32_t depth; /* number of open scopes of its thread around it; by a cursor only */
  uint32_t site;  /* number of the call site; 0: none */
  uint32_t level;
  uint32_t flags; /* PROF_EVENT_* flags */
  const char *name;
  const char *category;
  uint32_t name_bytes;
  uint32_t category_bytes;
  prof_device device;
  uint64_t stream;
  uint64_t id;        /* flow id or step number */
  double value;       /* of a counter */
  uint32_t args_kind; /* prof_args_kind */
  uint32_t arg_count;
  const char *format; /* of PROF_ARGS_FORMAT */
  uint32_t format_bytes;
  uint32_t reserved;
  union {
    prof_event_memory memory; /* of PROF_EVENT_MEMORY */
    prof_event_launch launch; /* of PROF_EVENT_ON_DEVICE; otherwise unchanged */
  };
  prof_trace_arg args[PROF_ARGS_MAX];
} prof_event;

/* prof_event.flags */
enum {
  PROF_EVENT_ON_STREAM = 1u,    /* `stream` is valid */
  PROF_EVENT_OTHER_THREAD = 2u, /* ended on another thread than it began on */
  /* name or arguments were cut at their limit, or arguments omitted */
  PROF_EVENT_CUT = 4u,
  PROF_EVENT_NO_DETAILS = 8u, /* name or arguments were lost; name is the site's */
  /* A device's side: its thread is a stream, its times are the device's. */
  PROF_EVENT_ON_DEVICE = 16u,
  /* A call of a vendor's library, as its tracing recorded it. What it launched belongs to the scope
     around the call. */
  PROF_EVENT_CALL = 32u,
  /* Asynchronous work, as its caller said. As with OTHER_THREAD, its time is no thread's, and it
     has no children. */
  PROF_EVENT_ASYNC = 64u,
  PROF_EVENT_SKIPPED = 128u /* A jump left this block: an older block of its thread ended it. */
};

/* Reads the events in order: by thread, and in a thread by start, an outer scope before its inner
   ones. One thread at a time may use a cursor. Cursors are independent of each other. The caller
   destroys the cursor; NULL is ignored. */
typedef struct prof_cursor prof_cursor;
PROF_API int prof_cursor_create(const prof_trace *trace, prof_cursor **cursor_out) PROF_I_NOEXCEPT;
PROF_API void prof_cursor_destroy(prof_cursor *cursor) PROF_I_NOEXCEPT;

/* Requests that events which ended before from_ns (from the capture's start) may be omitted. Call
   it before the first read. Chunks with only older records are not read, so the time does not grow
   with the capture's age. If a scope began before from_ns, its self_ns may include the time of
   omitted inner scopes. PROF_E_INVALID: cursor is NULL, or has been read from. */
PROF_API int prof_cursor_skip_before(prof_cursor *cursor, uint64_t from_ns) PROF_I_NOEXCEPT;

/* Reads the next event. Returns 1 if event_out is filled, 0 after the last event, or a negative
   error. */
PROF_API int prof_cursor_next(prof_cursor *cursor, prof_event *event_out) PROF_I_NOEXCEPT;

/* An event without its arguments. Members after `record` are those of prof_event. Texts are valid
   while the trace exists. */
typedef struct prof_event_brief {
  size_t size;
  const void *record; /* for prof_trace_event_get() */
  uint32_t kind, thread;
  uint64_t start_ns, duration_ns, self_ns;
  uint32_t depth, site, level, flags;
  const char *name, *category;
  uint32_t name_bytes, category_bytes;
  prof_device device;
  uint64_t stream, id;
  double value;
  uint32_t args_kind, arg_count;
  const char *format;
  uint32_t format_bytes, reserved;
  union {
    prof_event_memory memory;
    prof_event_launch launch;
  };
} prof_event_brief;

/* Reads up to `room` events at once. The caller sets the size of the first element: the distance of
   the elements in bytes. Returns the number of events, 0 after the last one, or a negative error.
   After an error that follows some events, it returns their number, and the next call returns the
   error. PROF_E_INVALID: an argument is NULL, room is 0, or the size is wrong. */
PROF_API int64_t prof_cursor_read(prof_cursor *cursor, prof_event_brief *events_out,
                                  uint64_t room) PROF_I_NOEXCEPT;

/* Returns the whole event of a brief one that prof_cursor_read() has read from this trace. The
   cursor may be destroyed, and the brief event may be a copy. PROF_E_INVALID: an argument is NULL,
   the size is wrong, or the trace has no such thread or site. */
PROF_API int prof_trace_event_get(const prof_trace *trace, const prof_event_brief *brief,
                                  prof_event *event_out) PROF_I_NOEXCEPT;

/* ---- threads and call sites ---- */

/* A thread of the process, a fiber, or a device's stream. The caller sets size. */
typedef struct prof_trace_thread {
  size_t size;
  uint64_t tid; /* the kernel's; of a fiber 2^30 plus its number, from 1 */
  uint64_t event_count;
  uint64_t lost_count[16];
  uint32_t is_main;
  uint32_t is_alive; /* when the capture was read or the process died */
  char name[64];
  /* Time that recording took on this thread, of what the capture still has. Events, and those lost
     after all the work, count at the cost of a plain scope and its sampled extra time. Those
     rejected at their begin (muted, full, disk) count at the cost of their rejection. Chunk changes
     count as measured. If a thread has ended, its chunk changes are omitted if they took less than
     100 us. The trace's own_ns includes them. */
  uint64_t own_ns;
  /* 1: not a thread, but a device's stream. Its scopes have the device's times. */
  uint32_t is_stream;
  uint32_t is_fiber;  /* 1: of prof_fiber_create() */
  prof_device device; /* of a stream */
  uint64_t stream;    /* as given to WITH_GPU_PROFILER() */
} prof_trace_thread;

/* Fills thread_out for an index below info.thread_count. PROF_E_INVALID. */
PROF_API int prof_trace_thread_get(const prof_trace *trace, uint32_t index,
                                   prof_trace_thread *thread_out) PROF_I_NOEXCEPT;

/* A call site: what the source says of a scope. Texts are not NUL-terminated and may contain any
   bytes. They are valid while the trace exists. */
typedef struct prof_trace_site {
  size_t size;
  const char *name, *category;
  /* as the compiler or the interpreter writes them; empty: not known */
  const char *file, *function;
  uint32_t name_bytes, category_bytes, file_bytes, function_bytes;
  uint32_t line;
  uint32_t level;
} prof_trace_site;

/* Fills site_out for a call site's number (prof_event.site). PROF_E_INVALID: the trace has no such
   site. */
PROF_API int prof_trace_site_get(const prof_trace *trace, uint32_t site,
                                 prof_trace_site *site_out) PROF_I_NOEXCEPT;

/* ---- changes: steps of the budget, mutes, levels ---- */

typedef enum prof_change_kind {
  PROF_CHANGE_LEVEL = 1, /* the level changed */
  PROF_CHANGE_MUTED = 2, /* a call site was muted */
  PROF_CHANGE_HEARD = 3  /* its mute ended */
} prof_change_kind;

typedef enum prof_change_reason {
  PROF_REASON_ASKED = 1,  /* prof_mute(), or a start that reverts the budget's steps */
  PROF_REASON_TIME = 2,   /* a thread's time; measured and allowed are in per cent */
  PROF_REASON_EVENTS = 3, /* events a second */
  /* prof_trace_set_level(). If an older prof set the level, at_ns is when the process noticed
     it. */
  PROF_REASON_OUTSIDE = 4
} prof_change_reason;

typedef struct prof_trace_change {
  size_t size;
  uint64_t at_ns;  /* from the capture's start */
  uint32_t kind;   /* prof_change_kind */
  uint32_t reason; /* prof_change_reason */
  uint32_t level_before, level_after;
  uint32_t site; /* 0: none */
  /* The thread that found the budget exceeded: index for prof_trace_thread_get(). UINT32_MAX:
     none. */
  uint32_t thread;
  double measured, allowed;
  /* The site's names. Not NUL-terminated, any bytes, valid while the trace exists. */
  const char *name, *category;
  uint32_t name_bytes, category_bytes;
} prof_trace_change;

/* Fills change_out for an index below info.change_count. Changes are in order of time.
   PROF_E_INVALID. */
PROF_API int prof_trace_change_get(const prof_trace *trace, uint32_t index,
                                   prof_trace_change *change_out) PROF_I_NOEXCEPT;

/* Returns the change as a line of text: "0.125 s: level 2 -> 1: thread 4711 spent 3.41 % of its
   time recording, the budget is 1.00 %". Names are made printable. */
PROF_API int prof_trace_change_text(const prof_trace *trace, uint32_t index,
                                    char **text_out) PROF_I_NOEXCEPT;

/* ---- devices and notes ---- */

/* A device that WITH_GPU_PROFILER()'s scopes were put on. */
typedef struct prof_trace_device {
  size_t size;
  prof_device device;
  /* prof_backend_result: why the trace lacks its times. PROF_BACKEND_OK: it has them. */
  int32_t result;
  uint32_t is_emulated; /* 1: no device was behind it */
  /* Device sides of WITH_GPU_PROFILER()'s scopes since recording began. A ring, or a trace after
     prof_clear(), may have fewer. */
  uint64_t scope_count;
  /* scopes whose stream was being captured into a graph: they have only the host's side */
  uint64_t captured_count;
  /* Bound of the error of its times against the host's clock, in ns. info.clock_error_ns is not
     included. */
  uint64_t clock_error_ns;
  /* 1: its clock is read together with the host's. 0: it is estimated from when work was launched
     and when it was found finished. Then no time is before its launch, but may be wrong by
     clock_error_ns, mostly too early. */
  uint32_t is_clock_read;
  uint32_t units, clock_khz; /* 0: not known */
  /* 1: is_clock_read is true of its records only. The times of its scopes are estimated as with
     0. */
  uint32_t has_two_clocks;
  /* how often the two clocks diverged: one was set, or the machine slept */
  uint64_t clock_step_count;
  /* Times that the clocks alone placed before their launch. They were moved to the launch, by
     early_ns at most. */
  uint64_t early_count;
  uint64_t early_ns;
  uint64_t memory_bytes; /* 0: not known */
  uint8_t uuid[16];      /* all 0: not known */
  char name[96], arch[32], driver[32], back_end[32];
  /* If the result is not OK: the reason. Else: why some scopes have only their host's side, or
     "". */
  char reason[160];
  /* Kernels, copies and other records of the vendor's tracing since recording began. See
     scope_count. */
  uint64_t record_count;
  /* Records were requested, but began up to so many ns after the program began to use the device's
     library. Work of that time is missing, and not counted as lost. 0: none was missed. */
  uint64_t records_late_ns;
} prof_trace_device;

/* Fills device_out for an index below info.device_count. Devices are in order of type, then index.
   PROF_E_INVALID. */
PROF_API int prof_trace_device_get(const prof_trace *trace, uint32_t index,
                                   prof_trace_device *device_out) PROF_I_NOEXCEPT;

/* Returns a line without a line end. It has the device's scopes and the precision of its times, or
   why it has none and what to do. Example: "opencl:0 cpu-haswell (opencl): 1000 scopes, times
   within 2.1 us of the host's". */
PROF_API int prof_trace_device_text(const prof_trace *trace, uint32_t index,
                                    char **text_out) PROF_I_NOEXCEPT;

/* Returns a note by the writer of the capture, without a line end. `prof import` writes a note for
   each reason why it dropped or changed something.
   Errors:
   PROF_E_INVALID: the index is not below info.note_count.
   PROF_E_NO_MEMORY. */
PROF_API int prof_trace_note_text(const prof_trace *trace, uint32_t index,
                                  char **text_out) PROF_I_NOEXCEPT;

/* ---- totals ---- */

/* What makes a row: bits that are combined. */
typedef enum prof_group {
  PROF_GROUP_NAME = 1u,
  PROF_GROUP_CATEGORY = 2u,
  PROF_GROUP_DEVICE = 4u,
  PROF_GROUP_THREAD = 8u,
  PROF_GROUP_SHAPE = 16u,
  /* By the argument PROF_STACK_KEY. Without it, by the traced functions around it on its thread
     (categories python_function and c_function). As in torch.profiler's tables, work in a backward
     call of autograd has the stack of its forward call. Frames of torch.autograd.backward() are
     omitted. */
  PROF_GROUP_STACK = 32u,
  /* Kernels and copies of a vendor's tracing have separate rows by their names, and are in no
     scope's device columns. Without another bit: also by name and category. */
  PROF_GROUP_KERNEL = 64u,
  /* A user's annotations (category user_annotation) are separate from other scopes of their name. A
     row has the category of its earliest call. No effect together with PROF_GROUP_CATEGORY. */
  PROF_GROUP_ANNOTATION = 128u,
  /* By all open scopes around it on its thread, the innermost first: scopes by their names, traced
     functions as in PROF_GROUP_STACK. Together with PROF_GROUP_STACK, only this one counts. */
  PROF_GROUP_SCOPES = 256u,
  /* By all that a call's floating point operations are computed from: its input shapes. Of
     aten::conv2d also by the argument "Concrete Inputs". prof_row.shape has that one on a second
     line. A first input that is no tensor is null there. */
  PROF_GROUP_FLOPS = 512u,
  /* By the thread's process; prof_row_more has its number and name. A capture has one process. An
     imported trace may have several. Of several captures, as of forked children, each has its own
     process. */
  PROF_GROUP_PROCESS = 1024u
} prof_group;

/* The key of an argument that says where a scope began: a text as torch.profiler's "Call stack".
   Its frames are "file.py(12): function", separated by ';', the innermost first. */
#define PROF_STACK_KEY "Call stack"

/* What rows are sorted by. */
typedef enum prof_sort {
  PROF_SORT_TOTAL = 0,
  PROF_SORT_SELF = 1,
  PROF_SORT_CALLS = 2,
  PROF_SORT_MEAN = 3,
  PROF_SORT_MAX = 4,
  PROF_SORT_NAME = 5, /* what makes a row, by the options' groups: texts, and numbers as numbers */
  PROF_SORT_MEMORY = 6, /* sum of memory_bytes and device_memory_bytes */
  PROF_SORT_SELF_MEMORY = 7,
  PROF_SORT_FIRST = 8,  /* begin of the first call, the earliest first */
  PROF_SORT_DEVICE = 9, /* device_total_ns */
  PROF_SORT_SELF_DEVICE = 10,
  PROF_SORT_MEDIAN = 11,
  PROF_SORT_P99 = 12,
  PROF_SORT_DEVICE_MEAN = 13,
  PROF_SORT_SELF_NET = 14,
  PROF_SORT_TOTAL_NET = 15,
  PROF_SORT_OPEN = 16,     /* open_count */
  PROF_SORT_OPEN_FOR = 17, /* open_ns */
  PROF_SORT_SKIPPED = 18
} prof_sort;

/* What gets no rows. As in torch.profiler, its time is part of the total time of the scope around
   it, but of no scope's self time. */
typedef enum prof_leave_out {
  /* Traced functions (categories python_function and c_function), except calls of modules, whose
     names begin with "nn.Module: ". They still appear in stacks. */
  PROF_LEAVE_OUT_FUNCTIONS = 1u,
  PROF_LEAVE_OUT_MODULES = 2u, /* calls of modules; with both bits, as in torch.profiler's tables */
  PROF_LEAVE_OUT_MEMORY = 4u   /* bytes of memory: all are 0, and it is faster */
} prof_leave_out;

/* Rules by which torch.profiler's tables differ. */
typedef enum prof_aggregate_rule {
  /* A scope that has not ended is a call that lasts up to to_ns. It is asynchronous: its time is no
     thread's. Traced functions count as other calls. */
  PROF_RULE_OPEN_CALLS = 1u,
  /* Traced functions that began before from_ns, and had not ended then, also count memory. */
  PROF_RULE_OUTER_FUNCTIONS = 2u,
  /* A scope that is the only child of a scope of its name is merged into it, and is not counted as
     a call. Its self time, memory and device time are added to the outer scope's. A vendor's call
     beside it prevents this. A step's mark does not, and contains no calls. Needs
     PROF_GROUP_NAME. */
  PROF_RULE_ONLY_CHILDREN = 4u
} prof_aggregate_rule;

/* Set size to sizeof(prof_aggregate_options) and all other fields to 0, the default. */
typedef struct prof_aggregate_options {
  size_t size;
  uint32_t group;       /* prof_group bits; 0: by name and category */
  uint32_t sort;        /* prof_sort; descending, except by name and first call */
  uint32_t rows_limit;  /* 0: 100; UINT32_MAX: all */
  uint32_t level;       /* only scopes of this level; 0: all */
  const char *category; /* only this category; NULL: all */
  /* Unit of a table's times. 0: by magnitude, as torch.profiler. 3: ms, 6: us, 9: ns. */
  uint32_t time_unit;
  /* Of PROF_GROUP_STACK and PROF_GROUP_SCOPES: so many innermost frames. 0: all. Stacks of traced
     functions and scopes have at most 256 frames, in 64 KiB. */
  uint32_t stack_frames;
  uint64_t from_ns;   /* only scopes that begin then or later; ns from the capture's start */
  uint64_t to_ns;     /* only scopes that begin earlier; the same unit; 0: all */
  uint32_t leave_out; /* prof_leave_out bits */
  uint32_t rules;     /* prof_aggregate_rule bits; 0: none */
  /* Columns of a table at most. Long names are cut in their middle. If that is not enough, columns
     are omitted, and a line below names them. 0: as wide as needed. */
  uint32_t text_width;
} prof_aggregate_options;

/* One group. Calls and times are of scopes that have ended. prof_rows_more() has the open ones and
   those that a jump left (PROF_EVENT_SKIPPED).

   total_ns, memory_bytes and device_total_ns count only the outermost call of a recursion. A call
   inside a call of the same group, on the same thread, is part of it. Asynchronous scopes, and
   scopes that overlap others of their thread without nesting, count separately. Median and p99 are
   of all calls, exact to 1 %.

   Functions that the compiler or the interpreter named (PROF_FUNCTION(), traced functions) also
   differ by file and line: two lambdas are two rows. Texts are valid while the result exists. */
typedef struct prof_row {
  /* "" if not part of the group. NUL-terminated, UTF-8 repaired. */
  const char *name;
  const char *category;
  const char *shape; /* "[[2, 3], [3, 4]]", as torch.profiler's Input Shapes */
  const char *stack; /* frames, separated by ';', of PROF_GROUP_STACK and PROF_GROUP_SCOPES */
  prof_device device;
  uint32_t thread; /* index; UINT32_MAX: not part of the group */
  uint32_t level;
  uint64_t calls_count;
  uint64_t total_ns;
  uint64_t self_ns;
  uint64_t min_ns;
  uint64_t max_ns;
  uint64_t median_ns;
  uint64_t p99_ns;
  /* Allocated less freed while it ran, of the host's pools: torch.profiler's CPU Mem and Self CPU
     Mem. See <prof/memory.h>. A table has B, KiB, MiB, GiB. Python's key_averages().table() calls
     these KB, MB, GB, as torch.profiler does. */
  int64_t memory_bytes, self_memory_bytes;
  int64_t device_memory_bytes, self_device_memory_bytes; /* of all other devices */
  /* Device time of what was launched while it ran; self_device_ns: in no inner scope. Each ns of a
     stream counts once. Exception: kernels of a stream that overlap without nesting each count
     their whole duration. Device work that no scope of its thread launched has a row without
     calls. */
  uint64_t device_total_ns, self_device_ns;
  uint64_t device_count; /* scopes of streams in self_device_ns */
  /* 1: all its calls are asynchronous (PROF_EVENT_ASYNC, PROF_EVENT_OTHER_THREAD). Then self_ns is
     0, and a table shows no share of total_ns. */
  uint32_t is_async;
  uint32_t reserved;
} prof_row;

/* All rows, and sums over them. */
typedef struct prof_rows {
  const prof_row *rows;
  uint64_t row_count;     /* number of rows, after the limit */
  uint64_t all_row_count; /* number of groups, before the limit */
  uint64_t total_self_ns; /* of all groups */
  uint64_t calls_count;
  /* 1: the trace has pools of the host, even if no row has bytes of them. A table shows the two
     columns only if one of its rows has bytes. */
  uint32_t has_memory;
  uint32_t has_device_memory;    /* 1: the same for other devices */
  uint64_t total_self_device_ns; /* of all groups */
  uint32_t has_device;           /* 1: the trace has devices' times, or says why not */
  uint32_t reserved;
  uint64_t open_count; /* scopes that have not ended, of all groups */
  /* total_self_ns and that of the scopes that level, category and leave_out removed. A table's
     shares are of this sum: removed scopes are still part of the total time around them. */
  uint64_t all_self_ns;
  /* Allocations and frees in no scope of their thread: torch.profiler's row "[memory]". Bytes are
     allocated less freed. first_ns: the earliest one, from its capture's start. */
  uint64_t outside_memory_count, outside_memory_first_ns;
  int64_t outside_memory_bytes, outside_device_memory_bytes;
  uint64_t skipped_count; /* scopes that a jump left, of all groups */
} prof_rows;

/* More about a row. The caller sets size. */
typedef struct prof_row_more {
  size_t size;
  /* Where its calls are in the source, as the compiler or the interpreter writes it. "": not known.
     Valid while the result exists. */
  const char *file;
  uint32_t line;
  uint32_t has_more_places; /* 1: the calls have several places; file and line are one */
  uint64_t calls_ns;        /* of all calls, also inner ones of a recursion; mean = / calls_count */
  uint64_t calls_device_ns; /* the same of device time */
  /* Scopes that have not ended. Of the other numbers, only those of memory and devices include
     them. */
  uint64_t open_count;
  uint64_t open_ns; /* age of the oldest open one, up to the trace's end */
  /* Scopes that began in its calls on the same thread. child_count: directly. inner_count: at any
     depth of the outermost calls, which total_ns counts. Asynchronous scopes and a vendor's calls
     do not count. If two scopes cross, an inner scope counts for one of them, or for the scope
     around both. */
  uint64_t child_count, inner_count;
  /* self_ns without the cost of child_count scopes, total_ns without that of inner_count. Each
     scope costs its trace's scope_cost_ns, with warm caches, so these are no lower bounds. At least
     0. */
  uint64_t self_net_ns, total_net_ns;
  uint64_t first_ns;    /* begin of its first call, of PROF_SORT_FIRST; else 0 */
  uint64_t outer_count; /* calls in no other call of the row, of PROF_GROUP_FLOPS; else 0 */
  /* Scopes that a jump left (PROF_EVENT_SKIPPED). No other number includes them: their time, memory
     and device work belong to the scope around them. */
  uint64_t skipped_count;
  /* 1: its calls are asynchronous, or overlap others of their thread without nesting. Each counts
     in total_ns with its whole duration, so the sum may exceed the elapsed time. A table shows no
     share of total_ns that would exceed 100 %. */
  uint32_t is_crosswise;
  uint32_t has_process; /* 1: of PROF_GROUP_PROCESS; else the next two are 0 and "" */
  /* The process's number in the imported trace. Negative: the trace has a text, which is the
     name. */
  int64_t process_pid;
  const char *process_name; /* "": not known. Valid while the result exists. */
  uint32_t record_scope;    /* at::RecordScope of a PyTorch operator's first call; as first_ns */
  int32_t process_rank;     /* as process_name; -1: not known, or there is one rank */
} prof_row_more;

/* Fills more_out for the row with that index. PROF_E_INVALID: no such row, or size is not set. */
PROF_API int prof_rows_more(const prof_rows *rows, uint64_t index,
                            prof_row_more *more_out) PROF_I_NOEXCEPT;

/* Adds up a trace's scopes. options may be NULL. The caller frees the result with
   prof_rows_destroy(). PROF_E_INVALID, PROF_E_NO_MEMORY. */
PROF_API int prof_trace_aggregate(const prof_trace *trace, const prof_aggregate_options *options,
                                  prof_rows **rows_out) PROF_I_NOEXCEPT;

/* Frees rows and their texts. NULL is ignored. */
PROF_API void prof_rows_destroy(prof_rows *rows) PROF_I_NOEXCEPT;

/* The same of several traces, such as those of a program's processes. Equal groups of several
   traces become one row. Threads are numbered through all traces in order. from_ns and to_ns are
   from each capture's start. PROF_E_INVALID: count is 0. */
PROF_API int prof_traces_aggregate(const prof_trace *const *traces, size_t count,
                                   const prof_aggregate_options *options,
                                   prof_rows **rows_out) PROF_I_NOEXCEPT;

/* ---- texts ---- */

/* Returns the totals as an aligned table, NUL-terminated, with the loss line below. options may be
   NULL. */
PROF_API int prof_trace_table(const prof_trace *trace, const prof_aggregate_options *options,
                              char **text_out) PROF_I_NOEXCEPT;

/* The same of several traces. Below it is one line for all processes, and one for each that lost
   something or has not ended. */
PROF_API int prof_traces_table(const prof_trace *const *traces, size_t count,
                               const prof_aggregate_options *options,
                               char **text_out) PROF_I_NOEXCEPT;

/* Returns an event's site as a frame of a stack, as torch.profiler writes it: "file.py(12):
   function". "" if it is no traced function (categories python_function and c_function). */
PROF_API int prof_trace_frame_text(const prof_trace *trace, uint32_t site,
                                   char **text_out) PROF_I_NOEXCEPT;

/* Returns the number of times at which tracing of functions ended while other threads had functions
   open. Writes at most `room` of the times to at_ns, which may be NULL; in ns from the capture's
   start, ascending. A function that began before such a time is in no stack after it. */
PROF_API uint32_t prof_trace_function_ends(const prof_trace *trace, uint64_t *at_ns,
                                           uint32_t room) PROF_I_NOEXCEPT;

/* Returns one line: recorded, dropped by reason, unfinished. It says "no loss" if all of them are
   0. */
PROF_API int prof_trace_loss_text(const prof_trace *trace, char **text_out) PROF_I_NOEXCEPT;

/* ---- level from outside, export ---- */

/* Sets the level of a process that records into this capture file: 0, 1 or 2, for its next scopes.
   That process needs no thread and no signal for it: the level is a word of the file. Who may write
   the file may set the level. before_out, if not NULL, gets the previous level.
   Errors, besides those of prof_trace_open() for files that are no captures:
   PROF_E_LEVEL: the level is not 0, 1 or 2.
   PROF_E_NOT_RUNNING: no process records into it. A process in another container counts as running.
   PROF_E_PERMISSION: the file is not writable. */
PROF_API int prof_trace_set_level(const char *path, int level, int *before_out) PROF_I_NOEXCEPT;

/* Writes a trace to a file, as prof_dump_with() writes that of this process. The same errors. */
PROF_API int prof_trace_dump(const prof_trace *trace, const char *path,
                             const prof_dump_options *options) PROF_I_NOEXCEPT;

/* Returns a trace as a text in memory: Chrome JSON, or RAF's log by options->format. It is
   NUL-terminated; *bytes_out is its length without the NUL. options and bytes_out may be NULL.
   Errors:
   PROF_E_TOO_LARGE: the text exceeds 1 GiB.
   PROF_E_CHECK: the text is complete, but its self-check found faults.
   PROF_E_INVALID, PROF_E_NO_MEMORY. */
PROF_API int prof_trace_json(const prof_trace *trace, const prof_dump_options *options,
                             char **text_out, size_t *bytes_out) PROF_I_NOEXCEPT;

/* ---- columns ---- */

/* Part of Arrow's C stream interface, a stable ABI. A program includes Arrow's own declaration:
   https://arrow.apache.org/docs/format/CStreamInterface.html */
struct ArrowArrayStream;

/* Set size to sizeof(prof_arrow_options) and all other fields to 0, the default. */
typedef struct prof_arrow_options {
  size_t size;
  uint64_t from_ns;    /* only events that end after it; from the capture's start */
  uint64_t to_ns;      /* only events that begin before it; 0: all */
  uint32_t batch_rows; /* the most events of a batch; 0: 65536. At most 1048576. */
  uint32_t reserved;
} prof_arrow_options;

/* Makes a stream of a trace's events, in the order of a cursor. A row is an event. The columns are
   in docs/reference/export-formats.md; later versions may add some. options may be NULL. The stream
   holds one batch, all distinct texts and the launches of devices in memory.

   The caller releases the stream, and each batch, by its `release`. They stay valid after the trace
   is destroyed. One thread at a time may use the stream. Any thread may release a batch. If a batch
   cannot be read, get_next() fails with a text. PROF_E_INVALID, PROF_E_NO_MEMORY. */
PROF_API int prof_trace_arrow(const prof_trace *trace, const prof_arrow_options *options,
                              struct ArrowArrayStream *stream_out) PROF_I_NOEXCEPT;

PROF_I_EXTERN_C_END

#endif
