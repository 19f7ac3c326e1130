/* Calls of the reader for prof's own use. The public ones refuse a handler that interrupted prof,
   and mark their thread as inside prof (../base/process.h). These do neither: they are for
   callers that are inside of prof already. */
#ifndef PROF_READER_INTERNAL_H
#define PROF_READER_INTERNAL_H

#include <prof/trace.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "walk.h"

int prof_i_trace_take(prof_trace **trace_out); /* prof_get(), src/live/own_snapshot.c */
void prof_i_trace_destroy(prof_trace *trace);
/* Adds an owner. Each owner destroys the trace once; the last one frees it. */
prof_trace *prof_i_trace_share(const prof_trace *trace);

int prof_i_cursor_create(const prof_trace *trace, prof_cursor **cursor_out);
void prof_i_cursor_destroy(prof_cursor *cursor);
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
