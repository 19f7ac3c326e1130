/* Reading a capture: one's own (prof_get), a file's, a running or a dead process's. The reader
   trusts nothing in the bytes. A trace is a snapshot: it does not change, and it may be read by any
   number of threads at once. SPDX-License-Identifier: MIT */
#ifndef PROF_TRACE_H
#define PROF_TRACE_H

#include <prof/profiler.h>

PROF_I_EXTERN_C_BEGIN

/* Opens a capture file: finished, being written, or left by a process that died. The caller
   destroys the trace. Errors: PROF_E_INVALID, PROF_E_NOT_FOUND, PROF_E_PERMISSION,
   PROF_E_FILE_TYPE, PROF_E_NOT_CAPTURE, PROF_E_VERSION, PROF_E_TRUNCATED, PROF_E_NO_MEMORY,
   PROF_E_IO. A file of up to 64 MiB that no process records into is read, and may then be truncated
   or removed. Others are mapped until the trace is destroyed: larger files, those recorded into
   while they are opened, and those beyond 128 MiB open together. If one is truncated meanwhile,
   this process gets SIGBUS. */
PROF_API int prof_trace_open(const char *path, prof_trace **trace_out) PROF_I_NOEXCEPT;

/* The same from bytes in memory, which must stay as they are until the trace is destroyed. */
PROF_API int prof_trace_open_bytes(const void *bytes, size_t count,
                                   prof_trace **trace_out) PROF_I_NOEXCEPT;

/* NULL is ignored. */
PROF_API void prof_trace_destroy(prof_trace *trace) PROF_I_NOEXCEPT;

typedef struct prof_trace_info {
  size_t size;
  /* what prof_trace_next() will hand out: scopes, open ones, instants, counters, flows, steps */
  uint64_t event_count;
  uint64_t scope_count;    /* ended scopes */
  uint64_t open_count;     /* scopes that had not ended */
  uint64_t lost_count[16]; /* by prof_loss */
  uint64_t bad_count;      /* records or chunks that could not be read: damage, not loss */
  /* wall clock at the capture's start, whatever it was set to later: exports count from there by
     CLOCK_MONOTONIC */
  uint64_t start_unix_ns;
  uint64_t start_ns; /* CLOCK_MONOTONIC at the capture's start */
  /* Start to the end. A capture that is being recorded ends when it is opened, if its clock can be
     read here; any other one with the last thing recorded. */
  uint64_t duration_ns;
  uint64_t clock_error_ns; /* bound of a time's error, but inside of clock_gap_ns */
  /* more than 1: the clock's rate changed, it jumped, or the host slept */
  uint32_t clock_segments_count;
  uint32_t pid;
  int32_t rank;
  int32_t world_size; /* 1: there are no ranks; -1: the launcher has not said how many there are */
  uint32_t thread_count;
  uint32_t is_live; /* 1: the process that writes it still runs */
  /* 1: it was stopped; 0: the process died or still records, or it is_copy */
  uint32_t was_clean;
  /* in force when the capture was read; where that is 0, the last one before */
  uint32_t level;
  uint32_t policy; /* prof_policy */
  char host[64];
  char process_name[64];
  uint32_t clock; /* prof_clock in use */
  /* 1: recorded on another host or in another pid namespace: whether its process runs cannot be
     told here */
  uint32_t is_elsewhere;
  uint64_t own_ns; /* that recording took all threads together; see own_most_ns */
  /* of the machine or the control group that the process ran in; 0: not known */
  uint64_t memory_limit_bytes;
  /* one plain scope, measured on that machine at the start; 0: not measured */
  double scope_cost_ns;
  double cpu_limit;      /* processors that the control group allowed; 0: all */
  uint32_t change_count; /* for prof_trace_change_get() */
  uint32_t level_now;    /* in force when the capture was read: 0 off */
  /* For which there was no room: they may fill a 64th of the capture. Of levels set from outside,
     the last 64 are always kept. */
  uint64_t untold_change_count;
  /* the counter went back, or far ahead: the machine was moved, or slept */
  uint32_t clock_jump_count;
  /* CLOCK_REALTIME was set, or the machine slept, which CLOCK_MONOTONIC leaves out */
  uint32_t wall_step_count;
  int64_t wall_step_ns; /* by how much, together */
  /* the longest stretch between two pairs in which the clock jumped, at a moment that is not known:
     inside of it a time may be off by as much. 0: it did not */
  uint64_t clock_gap_ns;
  /* scopes whose end was before their begin: their thread went to a processor whose counter is
     behind. They take 0 */
  uint64_t clock_back_count;
  /* 1: copied while it was being recorded, by prof_dump(), by prof_trace_dump(), or as a plain file
     by a program of the system: what came after is not in it */
  uint32_t is_copy;
  uint32_t device_count; /* that scopes were put on: for prof_trace_device_get() */
  /* Scopes that had not ended, below the 64 of a thread that open_count has. They have no names.
     Begins = recorded + lost + open_count + open_below_count. */
  uint64_t open_below_count;
  /* Ends that found no scope: it had ended already, or never began. Not part of that sum. */
  uint64_t stray_count;
  uint32_t note_count; /* for prof_trace_note_text() */
  /* 1: own_most_ns is more than 1.4 times own_least_ns. Then a table shows these, not own_ns. */
  uint32_t is_own_apart;
  uint64_t own_least_ns; /* own_ns, if every scope found its caches warm */
  /* An upper bound of own_ns. The time beyond warm caches that samples in place found counts 2.5
     times. Added are two standard errors, and the time that chunk changes waited for a processor or
     a slow disk. */
  uint64_t own_most_ns;
  /* Of scope_count, those that a jump left (PROF_EVENT_SKIPPED). Their durations are not known. */
  uint64_t skipped_count;
  /* 1: scopes were timed in place. 0: there were too few, or the clock is slow. Then all count as
     in warm caches: own_ns and own_least_ns are the least, and own_most_ns does not hold. */
  uint32_t is_own_sampled;
  /* 1: the process was killed, and prof run saw it alive up to the trace's end */
  uint32_t is_end_seen;
} prof_trace_info;
PROF_API int prof_trace_info_get(const prof_trace *trace,
                                 prof_trace_info *info_out) PROF_I_NOEXCEPT;

typedef enum prof_event_kind {
  PROF_EVENT_SCOPE = 1,
  PROF_EVENT_OPEN = 2, /* a scope that had not ended: duration up to the trace's end */
  PROF_EVENT_INSTANT = 3,
  PROF_EVENT_COUNTER = 4,
  PROF_EVENT_FLOW_BEGIN = 5,
  PROF_EVENT_FLOW_END = 6,
  PROF_EVENT_STEP = 7,  /* duration_ns is the step's; id its number */
  PROF_EVENT_MEMORY = 8 /* see prof_event_memory; the name says what, the device is the pool's */
} prof_event_kind;

/* What happened to memory: see <prof/memory.h>. */
typedef enum prof_memory_verb {
  PROF_MEMORY_ALLOC = 1,
  PROF_MEMORY_FREE = 2,
  PROF_MEMORY_RESERVE = 3,
  PROF_MEMORY_RELEASE = 4,
  PROF_MEMORY_COLLECT = 5, /* it ended: duration_ns before start_ns it began */
  PROF_MEMORY_OOM = 6,
  PROF_MEMORY_SAMPLE = 7, /* PROFILE_MEMORY() */
  PROF_MEMORY_WRONG = 8   /* a wrong call, seen by a checked pool */
} prof_memory_verb;

typedef struct prof_event_memory {
  uint32_t verb; /* prof_memory_verb */
  uint32_t pool; /* its number in the capture */
  uint64_t address;
  uint64_t bytes;           /* given; of an OOM asked for */
  uint64_t requested_bytes; /* asked for */
  /* of the pool, after it; by the pool's own count: below 0 where more came back than was handed
     out since the start */
  int64_t used_bytes;
  int64_t allocated_bytes; /* the same; -1: this event does not say it */
  uint32_t wrong;          /* prof_memory_wrong */
  uint32_t tag_bytes;
  const char *tag; /* NULL: none */
} prof_event_memory;

/* A value of prof_event_launch.record beside those of prof_backend_kind: an imported trace's name
   for a stretch of a device's time (gpu_user_annotation). It is no work, and no device time counts
   it. */
#define PROF_RECORD_ANNOTATION 7u

/* Of what stands on a device's stream (PROF_EVENT_ON_DEVICE): what launched it, and what the device
   said. */
typedef struct prof_event_launch {
  /* of a scope's side: the begin of the host's scope, by that and the thread it is found. Of a
     record: when it was launched, in whatever scope stood open then */
  uint64_t start_ns;
  uint32_t thread; /* that launched it; UINT32_MAX: not in the capture */
  /* prof_backend_kind of what the vendor's own tracing recorded: PROF_BACKEND_KERNEL, ...; 0: the
     device's side of a scope */
  uint32_t record;
  uint64_t device_start_ns, device_end_ns; /* by the back end's clock, as it said them */
} prof_event_launch;

/* One value of an event's arguments. Texts are valid while the trace is. */
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

/* One event. Texts are not NUL-terminated and may hold any bytes; they are valid while the trace
   is. */
typedef struct prof_event {
  uint32_t kind;     /* prof_event_kind */
  uint32_t thread;   /* index for prof_trace_thread_get() */
  uint64_t start_ns; /* from the capture's start (info.start_ns) */
  uint64_t duration_ns;
  /* Less what its children on the same thread took. Where scopes overlap without nesting, each
     moment counts for the one that began last: self times add up to the time in which any ran. On
     a device's stream what overlaps without nesting keeps its whole time. 0 of a scope that ended
     on another thread: its time is no thread's, as torch.profiler has it of what is asynchronous.
     0 of a scope that a jump left: its moments are those of the scope around it.
     Scopes only, ordered reading only. */
  uint64_t self_ns;
  uint32_t depth; /* how many scopes of its thread stand around it; ordered reading only */
  uint32_t site;  /* number of the call site; 0: none */
  uint32_t level;
  uint32_t flags; /* PROF_EVENT_* flags */
  const char *name;
  const char *category;
  uint32_t name_bytes;
  uint32_t category_bytes;
  prof_device device;
  uint64_t stream;
  uint64_t id;        /* flow id, step number */
  double value;       /* counter */
  uint32_t args_kind; /* prof_args_kind */
  uint32_t arg_count;
  const char *format; /* of PROF_ARGS_FORMAT */
  uint32_t format_bytes;
  uint32_t reserved;
  union {
    prof_event_memory memory; /* of PROF_EVENT_MEMORY */
    prof_event_launch launch; /* of PROF_EVENT_ON_DEVICE; of what is neither, as it was */
  };
  prof_trace_arg args[PROF_ARGS_MAX];
} prof_event;

enum {
  PROF_EVENT_ON_STREAM = 1u,    /* stream counts */
  PROF_EVENT_OTHER_THREAD = 2u, /* ended on another thread than it began on */
  /* name or arguments were cut at their bound, or arguments left out */
  PROF_EVENT_CUT = 4u,
  PROF_EVENT_NO_DETAILS = 8u, /* name or arguments were lost; the site's name stands instead */
  /* a device's own side: its thread is a stream, its times are the device's */
  PROF_EVENT_ON_DEVICE = 16u,
  /* a call of a vendor's interface, as its own tracing told it: what it launched counts as the
     scope's around it */
  PROF_EVENT_CALL = 32u,
  /* work that goes on by itself, as who began it said: as of OTHER_THREAD, it is no thread's own
     time, and holds nothing */
  PROF_EVENT_ASYNC = 64u,
  PROF_EVENT_SKIPPED = 128u /* a jump left this block: an older block of its thread ended it */
};

/* Walks the events: by thread, and inside a thread by start, outer scopes before the ones they
   hold. One walker at a time a cursor; cursors are independent. */
typedef struct prof_cursor prof_cursor;
PROF_API int prof_cursor_create(const prof_trace *trace, prof_cursor **cursor_out) PROF_I_NOEXCEPT;
PROF_API void prof_cursor_destroy(prof_cursor *cursor) PROF_I_NOEXCEPT;
/* Before the first event is read: what ended before from_ns, from the capture's start, may be left
   out, for the reader wants none of it. A thread's records that are wholly older are not read, so
   the time does not grow with the capture's age. self_ns of a scope that began before from_ns may
   have the time of scopes in it that were left out.
   PROF_E_INVALID: cursor is NULL, or has been read from. */
PROF_API int prof_cursor_skip_before(prof_cursor *cursor, uint64_t from_ns) PROF_I_NOEXCEPT;
/* 1: event_out is filled; 0: no more; negative: an error. */
PROF_API int prof_cursor_next(prof_cursor *cursor, prof_event *event_out) PROF_I_NOEXCEPT;

/* An event without its arguments. Members after `record` are those of prof_event. Texts are valid
   while the trace is. */
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
/* Reads up to `room` events, where prof_cursor_next() reads one. The caller sets the size of the
   first element: its elements are that far apart. Returns the count of events, 0 after the last
   one, or a negative error. After an error that follows some events, it returns their count, and
   the next call returns the error. PROF_E_INVALID: an argument is NULL, room is 0, or the size is
   wrong. */
PROF_API int64_t prof_cursor_read(prof_cursor *cursor, prof_event_brief *events_out,
                                  uint64_t room) PROF_I_NOEXCEPT;
/* Gives the whole event of a brief one that prof_cursor_read() has read from this trace. The cursor
   may be gone, and the brief one may be a copy. PROF_E_INVALID: an argument is NULL, the size is
   wrong, or the trace has no such thread or site. Any thread. */
PROF_API int prof_trace_event_get(const prof_trace *trace, const prof_event_brief *brief,
                                  prof_event *event_out) PROF_I_NOEXCEPT;

typedef struct prof_trace_thread {
  size_t size;
  uint64_t tid; /* the kernel's; of a fiber 2^30 plus its number, from 1 */
  uint64_t event_count;
  uint64_t lost_count[16];
  uint32_t is_main;
  uint32_t is_alive; /* when the capture was read or the process died */
  char name[64];
  /* What recording took it. Its events, and what was lost after all the work, count at the cost of
     a plain scope and what samples in place took beyond it. What was left out at its begin (muted,
     full, disk) counts at that cost. Chunk changes count as measured. Those of a thread that has
     ended are left out if they took less than 100 us; the trace's own_ns has them. Of what still
     stands in the capture. */
  uint64_t own_ns;
  /* 1: no thread of the process, but a device's stream: its scopes have the device's times */
  uint32_t is_stream;
  uint32_t is_fiber;  /* 1: prof_fiber_create() */
  prof_device device; /* of a stream */
  uint64_t stream;    /* as WITH_GPU_PROFILER() was given it */
} prof_trace_thread;
PROF_API int prof_trace_thread_get(const prof_trace *trace, uint32_t index,
                                   prof_trace_thread *thread_out) PROF_I_NOEXCEPT;

/* A call site: what the source says of a scope. Texts are not NUL-terminated, may hold any bytes,
   and live as long as the trace. */
typedef struct prof_trace_site {
  size_t size;
  const char *name, *category;
  const char *file, *function; /* as the compiler or the interpreter writes them; empty: unknown */
  uint32_t name_bytes, category_bytes, file_bytes, function_bytes;
  uint32_t line;
  uint32_t level;
} prof_trace_site;
/* The call site of that number (prof_event.site). PROF_E_INVALID: the trace has no such site. Any
   thread. */
PROF_API int prof_trace_site_get(const prof_trace *trace, uint32_t site,
                                 prof_trace_site *site_out) PROF_I_NOEXCEPT;

/* ---- what was recorded, and what not: steps of the budget, mutes ---- */

typedef enum prof_change_kind {
  PROF_CHANGE_LEVEL = 1, /* the level is another */
  PROF_CHANGE_MUTED = 2, /* a call site was muted */
  PROF_CHANGE_HEARD = 3  /* and is heard again */
} prof_change_kind;

typedef enum prof_change_reason {
  PROF_REASON_ASKED = 1,  /* prof_mute(), or a start that takes the budget's steps back */
  PROF_REASON_TIME = 2,   /* a thread's time: measured and allowed are per cent */
  PROF_REASON_EVENTS = 3, /* events a second */
  /* prof_trace_set_level(). If an older prof did that, at_ns is not when it was set, but when the
     process saw it. */
  PROF_REASON_OUTSIDE = 4
} prof_change_reason;

typedef struct prof_trace_change {
  size_t size;
  uint64_t at_ns;  /* from the capture's start */
  uint32_t kind;   /* prof_change_kind */
  uint32_t reason; /* prof_change_reason */
  uint32_t level_before, level_after;
  uint32_t site; /* 0: none */
  /* that found the budget exceeded: index for prof_trace_thread_get(); UINT32_MAX: none */
  uint32_t thread;
  double measured, allowed;
  /* the site's; not NUL-terminated, any bytes; valid while the trace is */
  const char *name, *category;
  uint32_t name_bytes, category_bytes;
} prof_trace_change;
/* In the order of time. PROF_E_INVALID for an index that is not below info.change_count. */
PROF_API int prof_trace_change_get(const prof_trace *trace, uint32_t index,
                                   prof_trace_change *change_out) PROF_I_NOEXCEPT;
/* The same as a line of text: "0.125 s: level 2 -> 1: thread 4711 spent 3.41 % of its time
   recording, the budget is 1.00 %". Names are made readable. The caller frees. */
PROF_API int prof_trace_change_text(const prof_trace *trace, uint32_t index,
                                    char **text_out) PROF_I_NOEXCEPT;

/* A device that WITH_GPU_PROFILER()'s scopes were put on. */
typedef struct prof_trace_device {
  size_t size;
  prof_device device;
  /* prof_backend_result: why its own times are not in the trace; PROF_BACKEND_OK: they are */
  int32_t result;
  uint32_t is_emulated; /* 1: no device was behind it */
  /* of WITH_GPU_PROFILER()'s scopes, its own side, since recording began: a ring may hold less, as
     may a trace after prof_clear() */
  uint64_t scope_count;
  /* scopes whose stream was being captured into a graph: host's side alone */
  uint64_t captured_count;
  /* what one of its times may be wrong by, at most, beside the host's; info.clock_error_ns comes on
     top */
  uint64_t clock_error_ns;
  /* 1: its clock is read beside the host's. 0: that is narrowed down by when its work was launched,
     and found to be past: no time is before its launch, any may be wrong by that much, too early
     mostly */
  uint32_t is_clock_read;
  uint32_t units, clock_khz; /* 0: not known */
  /* 1: what is_clock_read tells is that of its records; its scopes' times are as of 0 there */
  uint32_t has_two_clocks;
  uint64_t clock_step_count; /* how often the two clocks parted: one was set, the machine slept */
  /* by the clocks alone, so many stood before their launch; they were moved there, early_ns at
     most */
  uint64_t early_count;
  uint64_t early_ns;
  uint64_t memory_bytes; /* 0: not known */
  uint8_t uuid[16];      /* all 0: not known */
  char name[96], arch[32], driver[32], back_end[32];
  /* of a result that is not OK, in words; else why some scopes have their host's side alone, ""
     mostly */
  char reason[160];
  /* kernels, copies and the like that the vendor's own tracing told, since recording began, as
     scope_count */
  uint64_t record_count;
  /* records were asked for, and began up to so long after the program had begun with the device's
     library: what ran in that time is not there, nor counted as lost. 0: none was missed so */
  uint64_t records_late_ns;
} prof_trace_device;
/* By type, then index. PROF_E_INVALID for an index that is not below info.device_count. */
PROF_API int prof_trace_device_get(const prof_trace *trace, uint32_t index,
                                   prof_trace_device *device_out) PROF_I_NOEXCEPT;
/* The same as a line without its end: "opencl:0 cpu-haswell (opencl): 1000 scopes, times within 2.1
   us of the host's", or why it has none and what to do. For prof_free(). */
PROF_API int prof_trace_device_text(const prof_trace *trace, uint32_t index,
                                    char **text_out) PROF_I_NOEXCEPT;

/* A line that the writer of the capture says about it, without a line end. `prof import` writes one
   line for each reason why it dropped or changed something of the trace. For prof_free(). Any
   thread. Errors: PROF_E_INVALID (the index is not below info.note_count), PROF_E_NO_MEMORY. */
PROF_API int prof_trace_note_text(const prof_trace *trace, uint32_t index,
                                  char **text_out) PROF_I_NOEXCEPT;

/* ---- aggregates and the table ---- */

typedef enum prof_group {
  PROF_GROUP_NAME = 1u,
  PROF_GROUP_CATEGORY = 2u,
  PROF_GROUP_DEVICE = 4u,
  PROF_GROUP_THREAD = 8u,
  PROF_GROUP_SHAPE = 16u,
  /* by the argument PROF_STACK_KEY; of what has none, by the traced functions around it on its
     thread (categories python_function and c_function). As in torch.profiler's tables what runs in
     a backward call of autograd's has the stack of its forward call, and frames of
     torch.autograd.backward() are left out */
  PROF_GROUP_STACK = 32u,
  /* kernels and copies that a vendor's tracing told have rows of their own, by their names, and are
     in no scope's device columns. Without another bit: by name and category, too */
  PROF_GROUP_KERNEL = 64u,
  /* A user's annotations (category user_annotation) apart from other scopes of their name. A row
     has the category of its earliest call. No effect together with PROF_GROUP_CATEGORY. */
  PROF_GROUP_ANNOTATION = 128u,
  /* By all scopes around it that stand open on its thread, the innermost first: scopes by their
     names, traced functions as in PROF_GROUP_STACK. Both together: as this one alone. */
  PROF_GROUP_SCOPES = 256u,
  /* By all that a call's floating point operations are counted from: its input shapes, and of
     aten::conv2d the argument "Concrete Inputs", which prof_row.shape has behind the shapes, on a
     line of its own. A first input that is no tensor is null there. */
  PROF_GROUP_FLOPS = 512u,
  /* By the process of the thread: prof_row_more has its number and name. A capture is of one
     process. An imported trace may have several, and so have several captures together, as of
     forked children; there each capture's process is its own. */
  PROF_GROUP_PROCESS = 1024u
} prof_group;

/* The key of an argument that says where a scope was begun: a text, its frames by ';', the
   innermost first, "file.py(12): function", as torch.profiler's "Call stack". */
#define PROF_STACK_KEY "Call stack"

typedef enum prof_sort {
  PROF_SORT_TOTAL = 0,
  PROF_SORT_SELF = 1,
  PROF_SORT_CALLS = 2,
  PROF_SORT_MEAN = 3,
  PROF_SORT_MAX = 4,
  PROF_SORT_NAME = 5,
  PROF_SORT_MEMORY = 6, /* memory_bytes and device_memory_bytes together */
  PROF_SORT_SELF_MEMORY = 7,
  PROF_SORT_FIRST = 8,  /* by the begin of the first call, the earliest first */
  PROF_SORT_DEVICE = 9, /* device_total_ns */
  PROF_SORT_SELF_DEVICE = 10
} prof_sort;

/* What has no rows: its time is that of what stands around it, as part of the whole, and nobody's
   own, as in torch.profiler. */
typedef enum prof_leave_out {
  /* traced functions (categories python_function and c_function), but for calls of modules, whose
     names begin with "nn.Module: ". They are stacks all the same */
  PROF_LEAVE_OUT_FUNCTIONS = 1u,
  PROF_LEAVE_OUT_MODULES = 2u, /* those calls. With both, as in torch.profiler's tables */
  PROF_LEAVE_OUT_MEMORY = 4u   /* bytes of memory. Then all of them are 0, and it is faster */
} prof_leave_out;

/* What torch.profiler's tables do otherwise. */
typedef enum prof_aggregate_rule {
  /* A scope that has not ended is a call that lasts up to to_ns. It is asynchronous: no time of its
     thread. Traced functions are calls as others. */
  PROF_RULE_OPEN_CALLS = 1u,
  /* Traced functions that began before from_ns, and had not ended then, hold memory, too. */
  PROF_RULE_OUTER_FUNCTIONS = 2u,
  /* A scope that is the only one in a scope of its name is merged into it. It does not count as a
     call. Its self time, memory and device time are added to the outer scope's. A vendor's call
     beside it prevents this. A step's mark does not, and contains no calls. Needs
     PROF_GROUP_NAME. */
  PROF_RULE_ONLY_CHILDREN = 4u
} prof_aggregate_rule;

typedef struct prof_aggregate_options {
  size_t size;
  uint32_t group;       /* prof_group bits; 0: by name and category */
  uint32_t sort;        /* prof_sort, descending but for the name and the first call */
  uint32_t rows_limit;  /* 0: 100; UINT32_MAX: all */
  uint32_t level;       /* only scopes of this level; 0: all */
  const char *category; /* only this category; NULL: all */
  /* of the table: 0 by magnitude, as torch.profiler; 3 s, 6 ms... as powers: 3 = ms, 6 = us, 9 =
     ns */
  uint32_t time_unit;
  /* Of PROF_GROUP_STACK and PROF_GROUP_SCOPES: at most so many frames, the innermost. 0: all. Of
     traced functions and scopes at most 256 frames, in at most 64 KiB. */
  uint32_t stack_frames;
  uint64_t from_ns;   /* only scopes that begin so many ns after the capture's start, or later */
  uint64_t to_ns;     /* only those that begin before; 0: all */
  uint32_t leave_out; /* prof_leave_out bits */
  uint32_t rules;     /* prof_aggregate_rule bits; 0: none */
  /* Of the table: at most so many columns. Long names are cut in their middle; then columns are
     left out, and a line below names them. 0: as wide as it takes. */
  uint32_t text_width;
} prof_aggregate_options;

/* One group. Calls and times are of scopes that have ended; prof_rows_more() has the open ones, and
   those that a jump left, whose end is not known (PROF_EVENT_SKIPPED).
   total_ns, memory_bytes and device_total_ns count only the outermost call of a recursion. A call
   inside a call of the same group, on the same thread, is part of that one. Scopes that overlap
   others of their thread without nesting (asynchronous work, or what another thread ended) count by
   themselves. Median and p99 are of all calls, exact to 1 %. Functions that the compiler or the
   interpreter named (PROF_FUNCTION(), traced functions) are also told apart by file and line: two
   lambdas are two rows. Texts live as long as the result. */
typedef struct prof_row {
  /* "" where it does not take part in the group; NUL-terminated, UTF-8 repaired */
  const char *name;
  const char *category;
  const char *shape; /* "[[2, 3], [3, 4]]", as torch.profiler writes Input Shapes */
  const char *stack; /* of PROF_GROUP_STACK and PROF_GROUP_SCOPES: its frames by ';' */
  prof_device device;
  uint32_t thread; /* index; UINT32_MAX when it takes no part */
  uint32_t level;
  uint64_t calls_count;
  uint64_t total_ns;
  uint64_t self_ns;
  uint64_t min_ns;
  uint64_t max_ns;
  uint64_t median_ns;
  uint64_t p99_ns;
  /* allocated less freed while it ran, of the host's pools: torch.profiler's CPU Mem and Self CPU
     Mem. See <prof/memory.h>. A table shows B, KiB, MiB, GiB. Python's key_averages().table() calls
     these KB, MB, GB, as torch.profiler does */
  int64_t memory_bytes, self_memory_bytes;
  int64_t device_memory_bytes, self_device_memory_bytes; /* of all other devices' */
  /* Time that devices spent on what was launched while it ran; and of that, on what was launched in
     no deeper scope. Each ns of a stream counts once. Exception: kernels of a stream that overlap
     without nesting each count their whole duration. Device work that was launched in no scope of
     its thread has a row without calls. */
  uint64_t device_total_ns, self_device_ns;
  uint64_t device_count; /* scopes of streams in self_device_ns */
  /* 1: all its calls are asynchronous, no thread's own time (PROF_EVENT_ASYNC,
     PROF_EVENT_OTHER_THREAD): self_ns is 0, and a table shows no share of total_ns. */
  uint32_t is_async;
  uint32_t reserved;
} prof_row;

typedef struct prof_rows {
  const prof_row *rows;
  uint64_t row_count;     /* handed out, after the limit */
  uint64_t all_row_count; /* before it */
  uint64_t total_self_ns; /* over all groups */
  uint64_t calls_count;
  /* 1: the trace has pools of the host, also where no row has bytes of them. A table shows the two
     columns only when a row that it shows has */
  uint32_t has_memory;
  uint32_t has_device_memory;    /* 1: of other devices. So are their columns */
  uint64_t total_self_device_ns; /* over all groups */
  uint32_t has_device;           /* 1: the trace has devices' own times, or says why not */
  uint32_t reserved;
  uint64_t open_count; /* scopes that have not ended, over all groups */
  /* total_self_ns, and that of the scopes that level, category and leave_out left out. A table's
     shares are of this: what a scope holds is part of its total time, whether it has a row or
     not. */
  uint64_t all_self_ns;
  /* Allocations and frees that no scope of their thread holds: torch.profiler's row "[memory]".
     Bytes are allocated less freed. first_ns: the earliest one, from its capture's start. */
  uint64_t outside_memory_count, outside_memory_first_ns;
  int64_t outside_memory_bytes, outside_device_memory_bytes;
  uint64_t skipped_count; /* scopes that a jump left, over all groups */
} prof_rows;

/* What else is known of a row. */
typedef struct prof_row_more {
  size_t size;
  /* Where its calls are in the source, as the compiler or the interpreter writes it. "": not known.
     Lives as long as the result. */
  const char *file;
  uint32_t line;
  uint32_t has_more_places; /* 1: file and line are one of several places */
  uint64_t calls_ns;        /* of all calls, also inner ones of a recursion; mean: / calls_count */
  uint64_t calls_device_ns; /* the same of what devices spent on them */
  /* Scopes that have not ended. No other number has them, except those of memory and devices. */
  uint64_t open_count;
  uint64_t open_ns; /* how long the oldest of them has been open, up to the trace's end */
  /* Scopes that began inside of its calls on the same thread: directly, and at any depth of the
     outermost calls, which total_ns counts. Asynchronous scopes and a vendor's calls do not count.
     Where two scopes cross, what either holds counts for one of them, or for what holds both. */
  uint64_t child_count, inner_count;
  /* self_ns without the cost of child_count scopes, total_ns without that of inner_count, each at
     scope_cost_ns of its trace: in warm caches, so they are no lower bound. At least 0. */
  uint64_t self_net_ns, total_net_ns;
  uint64_t first_ns;    /* the begin of its first call, of PROF_SORT_FIRST; else 0 */
  uint64_t outer_count; /* calls in no other call of the row, of PROF_GROUP_FLOPS; else 0 */
  /* Scopes that a jump left (PROF_EVENT_SKIPPED). No other number has them: their time, memory and
     device work are those of the scope around them. */
  uint64_t skipped_count;
  /* 1: calls of it overlap others of their thread without nesting, or are asynchronous. Each counts
     in total_ns with its whole duration, so total_ns may be more than the time that passed. A table
     shows no share of total_ns if that would be more than all. */
  uint32_t is_crosswise;
  uint32_t has_process; /* 1: of PROF_GROUP_PROCESS; else the two below are 0 and "" */
  /* The process's number in the imported trace. Negative: the trace has a text, which is the
     name. */
  int64_t process_pid;
  const char *process_name; /* "": not known. Lives as long as the result */
  uint32_t record_scope;    /* of a PyTorch operator's first call, at::RecordScope; as first_ns */
  int32_t process_rank;     /* as process_name; -1: not known, or there is one rank */
} prof_row_more;
/* For the row with that index. PROF_E_INVALID: no such row, or size is not set. Any thread. */
PROF_API int prof_rows_more(const prof_rows *rows, uint64_t index,
                            prof_row_more *more_out) PROF_I_NOEXCEPT;

/* The scopes of a trace added up. options may be NULL. The result is the caller's:
   prof_rows_destroy(). */
PROF_API int prof_trace_aggregate(const prof_trace *trace, const prof_aggregate_options *options,
                                  prof_rows **rows_out) PROF_I_NOEXCEPT;
PROF_API void prof_rows_destroy(prof_rows *rows) PROF_I_NOEXCEPT;

/* The same of several traces together, of a program's processes say: what is of one group in
   several becomes one row. Threads are numbered through, the second trace's first one behind the
   first trace's last; from_ns and to_ns are of each capture's own start. PROF_E_INVALID for a count
   of 0. */
PROF_API int prof_traces_aggregate(const prof_trace *const *traces, size_t count,
                                   const prof_aggregate_options *options,
                                   prof_rows **rows_out) PROF_I_NOEXCEPT;

/* The aggregates as an aligned text table with the loss line below; NUL-terminated; the caller
   gives it to prof_free(). */
PROF_API int prof_trace_table(const prof_trace *trace, const prof_aggregate_options *options,
                              char **text_out) PROF_I_NOEXCEPT;
/* Of several traces: below it one line for all processes, and one for each that lost something or
   has not ended. */
PROF_API int prof_traces_table(const prof_trace *const *traces, size_t count,
                               const prof_aggregate_options *options,
                               char **text_out) PROF_I_NOEXCEPT;

/* Of an event's site its frame in a stack, as torch.profiler writes it: "file.py(12): function"; ""
   of what is no traced function (categories python_function and c_function). Caller frees:
   prof_free(). */
PROF_API int prof_trace_frame_text(const prof_trace *trace, uint32_t site,
                                   char **text_out) PROF_I_NOEXCEPT;
/* When a tracing of functions ended while some stood open on other threads than the one that ended
   it, ns from the capture's start, by time: what began before is no stack of what begins from there
   on. Writes at most room of them to at_ns, which may be NULL; returns how many there are. Any
   thread. */
PROF_API uint32_t prof_trace_function_ends(const prof_trace *trace, uint64_t *at_ns,
                                           uint32_t room) PROF_I_NOEXCEPT;

/* One line: recorded, dropped by reason, unfinished; "no loss" when all of them are 0. Caller
   frees. */
PROF_API int prof_trace_loss_text(const prof_trace *trace, char **text_out) PROF_I_NOEXCEPT;

/* Switches a process that records into this capture file, from outside: level 0 (scopes cost what
   they cost when it is off), 1 or 2, for its next scopes. Nothing in that process takes part, no
   thread, no signal: the level is a word of the file, and who may write the file may switch it.
   before_out, if not NULL, gets the level that was in force. PROF_E_LEVEL, PROF_E_NOT_RUNNING when
   nobody records into it any more (a process that cannot be seen from here, in another container,
   counts as running), PROF_E_PERMISSION, and what prof_trace_open() says of files that are no
   captures. Any thread. */
PROF_API int prof_trace_set_level(const char *path, int level, int *before_out) PROF_I_NOEXCEPT;

/* Writes any trace as prof_dump_with() writes one's own. */
PROF_API int prof_trace_dump(const prof_trace *trace, const char *path,
                             const prof_dump_options *options) PROF_I_NOEXCEPT;

/* The same as a text in memory, NUL-terminated, `bytes_out` long without the NUL; the caller gives
   it to prof_free(). Chrome JSON, or options->format RAF's log; options may be NULL, bytes_out too.
   PROF_E_INVALID, PROF_E_NO_MEMORY, PROF_E_TOO_LARGE past 1 GiB; PROF_E_CHECK: the text is there,
   but its self-check found faults. */
PROF_API int prof_trace_json(const prof_trace *trace, const prof_dump_options *options,
                             char **text_out, size_t *bytes_out) PROF_I_NOEXCEPT;

PROF_I_EXTERN_C_END

#endif
