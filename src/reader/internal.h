/* What the reader gives to the folders above: spans, sites, traces, cursors, arguments as text. The
   public calls refuse a handler that interrupted prof, and mark their thread as inside prof
   (../base/process.h). These do neither: they are for callers that are inside of prof already. */
#ifndef PROF_READER_INTERNAL_H
#define PROF_READER_INTERNAL_H

#include <prof/trace.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* ---- spans ----

   One backward pass emits the spans of a trace with depth, self time and overlaps (walk.c). Memory
   is bounded by the nesting depth and one chunk. */

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

static inline bool prof_i_text_equals(prof_i_text text, const char *word) {
  return text.bytes == strlen(word) && memcmp(text.data, word, (size_t)text.bytes) == 0;
}

static inline bool prof_i_text_begins(prof_i_text text, const char *word) {
  return text.bytes >= strlen(word) && memcmp(text.data, word, strlen(word)) == 0;
}

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

/* ---- traces and cursors ---- */

int prof_i_trace_take(prof_trace **trace_out); /* prof_get(), src/live/own_snapshot.c */
void prof_i_trace_destroy(prof_trace *trace);
/* Adds an owner. Each owner destroys the trace once; the last one frees it. */
prof_trace *prof_i_trace_share(const prof_trace *trace);

int prof_i_cursor_create(const prof_trace *trace, prof_cursor **cursor_out);
void prof_i_cursor_destroy(prof_cursor *cursor);
/* Called before the first event is read, to take less time. A worker reads ahead. Without self
   times, these and the counts of children may be wrong. */
void prof_i_cursor_read_ahead(prof_cursor *cursor, bool has_self_times);
/* The next events of one thread that are ready, without reading more: the next one is the last
   span. *count_out: 0 if there are none. Some may have ended before prof_cursor_skip_before(). */
const prof_i_span *prof_i_cursor_ready(const prof_cursor *cursor, uint32_t *thread_out,
                                       size_t *count_out);
/* Reads on if no event is ready. 1: at least one is; 0: no more; or an error. */
int prof_i_cursor_fill(prof_cursor *cursor);
/* Goes past so many of these. */
void prof_i_cursor_take(prof_cursor *cursor, size_t count);
/* The same of one thread alone. Events that ended before from_ns may be omitted. */
int prof_i_cursor_create_of(const prof_trace *trace, uint32_t thread, uint64_t from_ns,
                            prof_cursor **cursor_out);
/* As prof_cursor_next(), without expanding the event. */
int prof_i_cursor_next_span(prof_cursor *cursor, prof_i_span *span_out);

int prof_i_trace_change_text(const prof_trace *trace, uint32_t index, char **text_out);
int prof_i_trace_note_text(const prof_trace *trace, uint32_t index, char **text_out);
int prof_i_trace_loss_text(const prof_trace *trace, char **text_out);

/* ---- source.c: progress ---- */

/* A byte of an imported trace counts as this many bytes of a capture, because importing takes
   longer than reading. Factors of 3 to 10 were measured. */
enum { PROF_I_PROGRESS_IMPORT_WEIGHT = 5 };

/* Counts the bytes of captures and traces that have been read, in all passes. A command shows the
   progress. Any thread. */
extern _Atomic uint64_t prof_i_progress_bytes;

/* Call it once for a large piece, because all threads share the counter. Relaxed: the value is only
   displayed. */
static inline void prof_i_progress_add(uint64_t bytes) {
  atomic_fetch_add_explicit(&prof_i_progress_bytes, bytes, memory_order_relaxed);
}

/* ---- event_args.c ---- */

/* Input shapes: as words, which are fast to compare, and as one line of text. */

/* Writes the shapes of an event's tensors: for each its rank and its dimensions. Dimensions beyond
   `room` words are left out. Returns the words; 0: the arguments are not shapes. Equal texts have
   equal words. */
size_t prof_i_shape_words(const prof_event *event, uint64_t *to, size_t room);

/* The same, with all that floating point operations are computed from: PROF_GROUP_FLOPS. */
size_t prof_i_shape_flops_words(const prof_event *event, uint64_t *to, size_t room);

/* Writes the words as "[[2, 3], [3, 4]]", the form of torch.profiler's Input Shapes; no words give
   no text. Writes at most room bytes and no NUL. Returns the bytes needed. */
size_t prof_i_shape_text(const uint64_t *words, size_t count, char *to, size_t room);

/* The number of arguments that are shapes: those before the first one with a key. */
uint32_t prof_i_shape_count(const prof_event *event);

/* Whether an operator has more inputs than a record has arguments (inject/torch/calls.c). Then
   texts with the dimensions and the types of all inputs follow the inputs that fit. */
bool prof_i_shape_has_texts(const prof_event *event);

/* The value of an argument as text. Filters compare this text, and rows by an argument show it. */

enum { PROF_I_ARG_VALUE_ROOM = 8192 };

/* The text is in `room` or in the event. It is empty for an unknown type, and for a tensor with too
   many dimensions. */
prof_i_text prof_i_arg_value_text(const prof_trace_arg *arg, char room[PROF_I_ARG_VALUE_ROOM]);

/* The first argument of this key, or NULL. */
const prof_trace_arg *prof_i_arg_find(const prof_event *event, const char *key, size_t key_bytes);

#endif
