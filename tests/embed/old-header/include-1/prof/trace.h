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
   PROF_E_IO. A file of up to 64 MiB that nobody records into is read, and may then be cut off or
   go; a larger one is mapped until the trace is destroyed, and one that is recorded into while it
   is opened: whoever makes such a file shorter meanwhile causes a SIGBUS here. */
PROF_API int prof_trace_open(const char *path, prof_trace **trace_out) PROF_I_NOEXCEPT;

/* The same from bytes in memory, which must stay as they are until the trace is destroyed. */
PROF_API int prof_trace_open_bytes(const void *bytes, size_t count, prof_trace **trace_out) PROF_I_NOEXCEPT;

/* NULL is ignored. */
PROF_API void prof_trace_destroy(prof_trace *trace) PROF_I_NOEXCEPT;

typedef struct prof_trace_info {
  size_t size;
  /* what prof_trace_next() will hand out: scopes, open ones, instants, counters, flows, steps */
  uint64_t event_count;
  uint64_t scope_count;       /* ended scopes */
  uint64_t open_count;        /* scopes that had not ended */
  uint64_t lost_count[16];    /* by prof_loss */
  uint64_t bad_count;         /* records or chunks that could not be read: damage, not loss */
  uint64_t start_unix_ns;     /* wall clock at the capture's start */
  uint64_t start_ns;          /* CLOCK_MONOTONIC at the capture's start */
  uint64_t duration_ns;       /* start to the last thing known */
  uint64_t clock_error_ns;
  uint32_t clock_segments_count;
  uint32_t pid;
  int32_t rank;
  int32_t world_size;
  uint32_t thread_count;
  uint32_t is_live;           /* 1: the process that writes it still runs */
  uint32_t was_clean;         /* 1: it was stopped; 0: the process died or still records */
  uint32_t level;
  uint32_t policy;            /* prof_policy */
  char host[64];
  char process_name[64];
  uint32_t clock;             /* prof_clock in use */
  /* 1: recorded on another host or in another pid namespace: whether its process runs cannot be
     told here */
  uint32_t is_elsewhere;
} prof_trace_info;
PROF_API int prof_trace_info_get(const prof_trace *trace, prof_trace_info *info_out) PROF_I_NOEXCEPT;

typedef enum prof_event_kind {
  PROF_EVENT_SCOPE = 1,
  PROF_EVENT_OPEN = 2, /* a scope that had not ended: duration up to the last thing known */
  PROF_EVENT_INSTANT = 3,
  PROF_EVENT_COUNTER = 4,
  PROF_EVENT_FLOW_BEGIN = 5,
  PROF_EVENT_FLOW_END = 6,
  PROF_EVENT_STEP = 7 /* duration_ns is the step's; id its number */
} prof_event_kind;

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
  uint32_t kind;   /* prof_event_kind */
  uint32_t thread; /* index for prof_trace_thread_get() */
  uint64_t start_ns; /* from the capture's start (info.start_ns) */
  uint64_t duration_ns;
  /* less what its children on the same thread took; scopes only, ordered reading only */
  uint64_t self_ns;
  uint32_t depth;     /* how many scopes of its thread stand around it; ordered reading only */
  uint32_t site;      /* number of the call site; 0: none */
  uint32_t level;
  uint32_t flags;     /* PROF_EVENT_* flags */
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
  prof_trace_arg args[PROF_ARGS_MAX];
} prof_event;

enum {
  PROF_EVENT_ON_STREAM = 1u,    /* stream counts */
  PROF_EVENT_OTHER_THREAD = 2u, /* ended on another thread than it began on */
  PROF_EVENT_CUT = 4u,          /* name or arguments were cut at their bound */
  PROF_EVENT_NO_DETAILS = 8u    /* name or arguments were lost; the site's name stands instead */
};

/* Walks the events: by thread, and inside a thread by start, outer scopes before the ones they
   hold. One walker at a time a cursor; cursors are independent. */
typedef struct prof_cursor prof_cursor;
PROF_API int prof_cursor_create(const prof_trace *trace, prof_cursor **cursor_out) PROF_I_NOEXCEPT;
PROF_API void prof_cursor_destroy(prof_cursor *cursor) PROF_I_NOEXCEPT;
/* 1: event_out is filled; 0: no more; negative: an error. */
PROF_API int prof_cursor_next(prof_cursor *cursor, prof_event *event_out) PROF_I_NOEXCEPT;

typedef struct prof_trace_thread {
  size_t size;
  uint64_t tid;         /* the kernel's */
  uint64_t event_count;
  uint64_t lost_count[16];
  uint32_t is_main;
  uint32_t is_alive;    /* when the capture was read or the process died */
  char name[64];
} prof_trace_thread;
PROF_API int prof_trace_thread_get(const prof_trace *trace, uint32_t index, prof_trace_thread *thread_out) PROF_I_NOEXCEPT;

/* ---- aggregates and the table ---- */

typedef enum prof_group {
  PROF_GROUP_NAME = 1u,
  PROF_GROUP_CATEGORY = 2u,
  PROF_GROUP_DEVICE = 4u,
  PROF_GROUP_THREAD = 8u,
  PROF_GROUP_SHAPE = 16u
} prof_group;

typedef enum prof_sort {
  PROF_SORT_TOTAL = 0,
  PROF_SORT_SELF = 1,
  PROF_SORT_CALLS = 2,
  PROF_SORT_MEAN = 3,
  PROF_SORT_MAX = 4,
  PROF_SORT_NAME = 5
} prof_sort;

typedef struct prof_aggregate_options {
  size_t size;
  uint32_t group;       /* prof_group bits; 0: by name and category */
  uint32_t sort;        /* prof_sort, descending but for the name */
  uint32_t rows_limit;  /* 0: 100; UINT32_MAX: all */
  uint32_t level;       /* only scopes of this level; 0: all */
  const char *category; /* only this category; NULL: all */
  /* of the table: 0 by magnitude, as torch.profiler; 3 s, 6 ms... as powers: 3 = ms, 6 = us, 9 =
     ns */
  uint32_t time_unit;
  uint32_t reserved;
} prof_aggregate_options;

/* One group. Times are of ended and open scopes; median and p99 are exact to 1 %. Texts live as
   long as the result. */
typedef struct prof_row {
  /* "" where it does not take part in the group; NUL-terminated, UTF-8 repaired */
  const char *name;
  const char *category;
  const char *shape; /* "[[2, 3], [3, 4]]", as torch.profiler writes Input Shapes */
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
} prof_row;

typedef struct prof_rows {
  const prof_row *rows;
  uint64_t row_count;      /* handed out, after the limit */
  uint64_t all_row_count;  /* before it */
  uint64_t total_self_ns;  /* over all groups: shares are of this, as in torch.profiler */
  uint64_t calls_count;
} prof_rows;

/* options may be NULL. The result is the caller's: prof_rows_destroy(). */
PROF_API int prof_trace_aggregate(const prof_trace *trace, const prof_aggregate_options *options,
                                  prof_rows **rows_out) PROF_I_NOEXCEPT;
PROF_API void prof_rows_destroy(prof_rows *rows) PROF_I_NOEXCEPT;

/* The aggregates as an aligned text table with the loss line below; NUL-terminated; the caller
   gives it to prof_free(). */
PROF_API int prof_trace_table(const prof_trace *trace, const prof_aggregate_options *options,
                              char **text_out) PROF_I_NOEXCEPT;

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
PROF_API int prof_trace_dump(const prof_trace *trace, const char *path, const prof_dump_options *options) PROF_I_NOEXCEPT;

PROF_I_EXTERN_C_END

#endif
