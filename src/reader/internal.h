/* Calls of the reader for prof's own use. The public ones refuse a handler that interrupted prof,
   and mark their thread as inside prof (../base/reentry.h). These do neither: they are for callers
   that are inside of prof already. */
#ifndef PROF_READER_INTERNAL_H
#define PROF_READER_INTERNAL_H

#include <prof/trace.h>

#include "walk.h"

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

#endif
