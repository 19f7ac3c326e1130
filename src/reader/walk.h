/* Inside of a trace: what aggregates and exporters work on. One pass, memory bounded by nesting
   depth and one chunk: a thread's records stand in the order in which scopes ended, so walking them
   backwards meets every parent before its children, and the stack of open parents gives depth, self
   time and overlaps (walk.c). Called by src/reader, src/analysis, src/report and src/export; not by
   users. */
#ifndef PROF_READER_WALK_H
#define PROF_READER_WALK_H

#include <prof/trace.h>

/* One thing on a thread's line; times in ns from the capture's start, rounded so that nesting in
   ticks stays nesting in ns. */
typedef struct prof_i_span {
  uint64_t start_ns;
  uint64_t duration_ns;
  uint64_t self_ns; /* scopes and open scopes; final when it is handed out: see walk.c */
  /* Of lane 0, scopes of its thread that it holds: directly, and all. Calls do not count. */
  uint64_t child_count, inner_count;
  /* a long record's words (checked: all of its slots are inside), or NULL for a plain scope. Of an
     open scope, words 0 and 1 are not its own */
  const uint64_t *record;
  uint32_t site;     /* always a number that prof_i_trace_site() knows; 0: none */
  uint16_t depth;    /* how many scopes and steps of its lane stand around it, at most 65535 */
  uint16_t kind : 5; /* prof_event_kind */
  /* 0; more when it overlaps what lane 0 holds without nesting, or began on another thread: never
     two overlapping in one lane. PROF_I_LANES_MAX: it is in no lane, for each has something in its
     way. */
  uint16_t lane : 11;
} prof_i_span;
enum { PROF_I_LANES_MAX = 1024 };

/* What is known of a call site. Texts are the file's bytes: not NUL-terminated, any content. */
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
  const uint64_t *record; /* what each of its plain scopes has beyond the site; NULL: nothing */
} prof_i_site_info;

uint32_t prof_i_trace_site_count(const prof_trace *trace); /* numbers 0..count-1 */
const prof_i_site_info *prof_i_trace_site(const prof_trace *trace, uint32_t site);

/* Hands out all spans of one thread (index as in prof_trace_thread_get) in batches. In lane 0 they
   come by falling start, and of those that start together the inner ones first: read backwards,
   that is the order of a begin/end log. Other lanes come in any order between. Several walks may
   run on one trace at once. Stops at the first visit that returns non-zero, and returns that;
   PROF_E_NO_MEMORY; else 0. */
enum { PROF_I_BATCH = 512 };
typedef int (*prof_i_visit)(void *user, const prof_i_span *spans, size_t count);
int prof_i_trace_walk(const prof_trace *trace, uint32_t thread, prof_i_visit visit, void *user);

/* Expands a span into the public event (name, category, device, arguments). */
void prof_i_trace_expand(const prof_trace *trace, uint32_t thread, const prof_i_span *span,
                         prof_event *event_out);

/* The category of a scope or an open scope. The first call of a name that the program made has its
   own, and no site. */
prof_i_text prof_i_trace_category(const prof_trace *trace, const prof_i_span *span);

/* Names given to device streams, for exporters: index 0..count-1; 0 when there is no such index. */
int prof_i_trace_track(const prof_trace *trace, uint32_t index, prof_device *device_out,
                       uint64_t *stream_out, prof_i_text *name_out);

/* Formats the arguments of PROF_ARGS_FORMAT; returns the bytes that it would need, writes at most
   `room` and no NUL. Conversions that do not fit their value's type are written as the value reads
   best, never as undefined behaviour. */
size_t prof_i_format_args(const prof_event *event, char *to, size_t room);

/* When a capture that is being recorded was read, as in prof_i_header.copied_...; 0: not known. */
void prof_i_trace_opened_at(const prof_trace *trace, uint64_t *ticks_out,
                            uint64_t *monotonic_ns_out);

/* The capture itself, byte by byte. */
const void *prof_i_trace_bytes_at(const prof_trace *trace, uint64_t offset, uint64_t *count_out);

#endif
