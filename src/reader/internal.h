/* Reading calls for prof's own use. The public ones refuse a handler that interrupted prof, and
   mark their thread as inside prof: see ../base/call.h. Another call of prof has done both
   already, so it calls these. */
#ifndef PROF_READER_INSIDE_H
#define PROF_READER_INSIDE_H

#include <prof/memory.h>
#include <prof/trace.h>

int prof_i_trace_take(prof_trace **trace_out); /* prof_get() */
void prof_i_trace_destroy(prof_trace *trace);

int prof_i_cursor_create(const prof_trace *trace, prof_cursor **cursor_out);
void prof_i_cursor_destroy(prof_cursor *cursor);

int prof_i_traces_aggregate(const prof_trace *const *traces, size_t count,
                            const prof_aggregate_options *options, prof_rows **rows_out);
void prof_i_rows_destroy(prof_rows *rows);

int prof_i_trace_change_text(const prof_trace *trace, uint32_t index, char **text_out);
int prof_i_trace_device_text(const prof_trace *trace, uint32_t index, char **text_out);
int prof_i_trace_note_text(const prof_trace *trace, uint32_t index, char **text_out);
int prof_i_trace_loss_text(const prof_trace *trace, char **text_out);

int prof_i_memory_of(const prof_trace *trace, prof_memory **memory_out);
int prof_i_memory_live(const prof_memory *memory, uint32_t index, prof_memory_moment moment,
                       uint64_t at_ns, prof_memory_by by, prof_memory_rows **rows_out);
int prof_i_memory_series(const prof_memory *memory, uint32_t index, uint32_t count,
                         int64_t *used_bytes_out, int64_t *allocated_bytes_out);

#endif
