/* The spans of a trace, for aggregates and exporters. One backward pass emits them with depth, self
   time and overlaps (walk.c). Memory is bounded by the nesting depth and one chunk. Called by
   src/reader, src/analysis, src/report and src/export, not by users. */
#ifndef PROF_READER_WALK_H
#define PROF_READER_WALK_H

#include <prof/trace.h>

/* An event of a thread. Times are in ns from the capture's start. They are rounded so that spans
   that nest in ticks nest in ns, too. */
typedef struct prof_i_span {
  uint64_t start_ns;
  uint64_t duration_ns;
  uint64_t self_ns; /* of scopes and open scopes: walk_lanes.c */
  /* Scopes inside of a span of lane 0: directly, and all. Vendor calls do not count. */
  uint64_t child_count, inner_count;
  /* A long record's words, all of whose slots exist. NULL: a plain scope. Words 0 and 1 of an open
     scope are not valid. */
  const uint64_t *record;
  uint32_t site;     /* always a number that prof_i_trace_site() knows; 0: none */
  uint16_t depth;    /* enclosing scopes and steps of its lane, at most 65535 */
  uint16_t kind : 5; /* prof_event_kind */
  /* 0; more if it overlaps a span of lane 0 without nesting, or began on another thread. Spans of
     one lane never overlap without nesting. PROF_I_LANES_MAX: in no lane, because each has a span
     in its way. */
  uint16_t lane : 11;
} prof_i_span;
enum { PROF_I_LANES_MAX = 1024 };

/* A call site. Texts are bytes of the capture: not NUL-terminated, any content. */
typedef struct prof_i_text {
  const char *data;
  uint64_t bytes;
} prof_i_text;

typedef struct prof_i_site_info {
  prof_i_text name;
  prof_i_text category;
  prof_i_text file;
  prof_i_text function;
  uint32_t line;
  uint32_t level;
  const uint64_t *record; /* what its plain scopes have beyond the site; NULL: nothing */
} prof_i_site_info;

uint32_t prof_i_trace_site_count(const prof_trace *trace); /* numbers 0..count-1 */
const prof_i_site_info *prof_i_trace_site(const prof_trace *trace, uint32_t site);

/* Emits all spans of one thread (index as in prof_trace_thread_get) in batches. Lane 0 is in the
   order of falling start. Of spans that start together the inner ones are first. Read backwards,
   that is the order of a begin/end log. Spans of other lanes are in any order between. Several
   walks may run on one trace at once. Stops at the first visit that returns non-zero, and returns
   its value; 0; PROF_E_NO_MEMORY. */
enum { PROF_I_BATCH = 512 };
typedef int (*prof_i_visit)(void *user, const prof_i_span *spans, size_t count);
int prof_i_trace_walk(const prof_trace *trace, uint32_t thread, prof_i_visit visit, void *user);

/* One step: its number, and when it was. Times are in ns from the capture's start. */
typedef struct prof_i_step {
  uint64_t number, start_ns, duration_ns;
} prof_i_step;

/* Visits all steps of a trace, without a walk: only parts of threads that have steps are read. In
   no order. Stops at the first visit that returns non-zero, and returns its value; else 0. */
typedef int (*prof_i_step_visit)(void *user, const prof_i_step *step);
int prof_i_trace_steps(const prof_trace *trace, prof_i_step_visit visit, void *user);

/* Expands a span into the public event (name, category, device, arguments). */
void prof_i_trace_expand(const prof_trace *trace, uint32_t thread, const prof_i_span *span,
                         prof_event *event_out);

/* The category of a scope or an open scope. The first scope of a name made at run time has its own
   category, and no site. */
prof_i_text prof_i_trace_category(const prof_trace *trace, const prof_i_span *span);

/* Names of device streams, for exporters: index 0..count-1. 0: no such index. */
int prof_i_trace_track(const prof_trace *trace, uint32_t index, prof_device *device_out,
                       uint64_t *stream_out, prof_i_text *name_out);

/* Formats the arguments of PROF_ARGS_FORMAT. Returns the bytes needed. Writes at most `room` and no
   NUL. A conversion that does not fit its value's type is replaced by one that fits. */
size_t prof_i_format_args(const prof_event *event, char *to, size_t room);

/* When a live capture was read, as in prof_i_header.copied_...; 0: unknown. */
void prof_i_trace_opened_at(const prof_trace *trace, uint64_t *ticks_out,
                            uint64_t *monotonic_ns_out);

/* The capture itself, byte by byte. */
const void *prof_i_trace_bytes_at(const prof_trace *trace, uint64_t offset, uint64_t *count_out);

#endif
