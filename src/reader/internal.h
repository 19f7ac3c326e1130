/* Calls of the reader for prof's own use. The public ones refuse a handler that interrupted prof,
   and mark their thread as inside prof (../base/this_thread.h). These do neither: they are for
   callers that are inside of prof already. */
#ifndef PROF_READER_INTERNAL_H
#define PROF_READER_INTERNAL_H

#include <prof/trace.h>
#include <stdatomic.h>
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

#endif
