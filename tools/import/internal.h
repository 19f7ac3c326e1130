/* From events to the capture, by the file that defines the functions. Events are understood, and
   become records. The records get launches, devices and times. Then the capture is written. */
#ifndef PROF_IMPORT_INTERNAL_H
#define PROF_IMPORT_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "json.h"
#include "state.h"

/* ---- run.c ---- */

/* Creates a parser that adds events to the state. */
import_json *import_state_json(import_state *state);
void import_state_note_cleaned(import_state *state, const import_json_cleaner *cleaner);

/* ---- kineto.c ---- */

/* What events mean: as torch.profiler's Kineto writes them, and, beyond that, the trace event
   format of chrome://tracing. */

void import_kineto_event(import_state *state, const import_event *event);
void import_kineto_metadata(import_state *state, import_text key, const import_value *value,
                            import_text text);

/* After the last event: ends what is still open, and records what was said of the whole trace. */
void import_kineto_end(import_state *state);

/* ---- convert.c ---- */

/* Events as records of the capture: each goes to its thread's list. Times are the trace's own
   (import_times). */

static inline void import_count_dropped(import_state *state, import_drop_reason why) {
  state->counts->missed[why]++;
}
static inline void import_count_changed(import_state *state, import_change what) {
  state->counts->changed[what]++;
}

/* The number that a launch and its work share, or 0. */
int64_t import_correlation_of(const import_event *event);

/* The prof_backend_kind of what runs on a device, IMPORT_KIND_SIDE, or IMPORT_KIND_NONE. */
int import_device_kind(import_text category);

/* True: such events are the host's for certain. */
bool import_category_is_host(import_text category);

/* An export of prof gives this number to its process `pid`. It is the capture's process if both are
   equal. */
void import_convert_process_number(import_state *state, int64_t pid, int64_t number);
import_thread *import_host_thread(import_state *state, const import_event *event);

/* The row's thread, which may be a device's stream. */
import_thread *import_row_thread(import_state *state, import_thread_id row);

/* A scope of the host's or of a device's. With a kind it is a device's. */
void import_convert_scope(import_state *state, const import_event *event, int kind, uint64_t start,
                          uint64_t duration);

/* A scope of the host's that had not ended. */
void import_convert_open_scope(import_state *state, const import_event *event, uint64_t start,
                               uint64_t duration);

/* A scope that belongs to an id (ph b, S): its entry, for async.h. */
import_entry import_convert_async(import_state *state, const import_event *event, uint64_t start,
                                  uint64_t end);

/* An instant. Returns its entry, which the caller adds to a row. */
import_entry import_convert_instant(import_state *state, const import_event *event, uint64_t time);

void import_convert_counters(import_state *state, const import_event *event, uint64_t time);

/* One end of an arrow. is_next: it is inside of the scope that begins with it. */
void import_convert_arrow(import_state *state, import_thread *thread, import_text name,
                          uint64_t time, uint64_t id, bool is_end, bool is_next);

/* A member beside the events, on a row of its own. */
void import_convert_metadata(import_state *state, import_text key, import_text text);

/* ---- memory.c ---- */

/* The instants of a trace with the names [memory] and [OutOfMemory]. */

void import_convert_memory(import_state *state, const import_event *event, uint64_t at);
void import_convert_out_of_memory(import_state *state, const import_event *event, uint64_t at);

/* ---- resolve.c ---- */

/* Called when all scopes are known. */

/* Finds the launch of each work of a device, in the process that the device belongs to. Call it
   before arrows are converted. */
void import_resolve_launches(import_state *state);

/* Assigns devices to streams, and converts times to ticks. Drops what is outside of the times that
   are taken. Call it after arrows were converted. */
void import_resolve_times(import_state *state);

/* ---- open.c ---- */

/* Scopes that had not ended are stored in the slot of their thread: at most 64, as far as their
   texts fit. The others become ended scopes, and are counted. Call it before notes are written. */
void import_open_choose(import_state *state);

bool import_open_has(const import_thread *thread);
/* Takes the chosen ones out of the thread's events into the open entries of a zeroed slot. */
void import_open_take(const import_state *state, import_thread *thread, prof_i_thread_slot *slot);

/* ---- capture.c and output.c ---- */

/* The capture's file. It has no name, or a temporary one in the same folder, until it is whole. A
   failure leaves nothing behind. */

typedef struct import_output {
  int fd;
  const char *path;
  char *folder;
  bool must_be_new;
  uint64_t bytes; /* written so far */
} import_output;

void import_output_open(import_output *output, const char *path, bool must_be_new);
void import_output_write(import_output *output, const void *bytes, size_t count);
/* Overwrites the begin of the file. */
void import_output_write_first(import_output *output, const void *bytes, size_t count);
/* Gives it its name. */
void import_output_commit(import_output *output);
void import_output_abandon(import_output *output);

/* Writes the capture of a trace. src/format/layout.h has its bytes, and
   docs/reference/file-format.md describes them. */
void import_capture_write(import_state *state, import_output *output);

#endif
