/* Events as records of the capture: each goes to its thread's list. Times are the trace's own
   (import_times). */
#ifndef PROF_IMPORT_TAKE_H
#define PROF_IMPORT_TAKE_H

#include "record.h"
#include "state.h"

static inline void import_count_dropped(import_state *state, import_drop_reason why) {
  state->counts->missed[why]++;
}
static inline void import_count_changed(import_state *state, import_change what) {
  state->counts->changed[what]++;
}

/* The number that a launch and its work share, or 0. */
int64_t import_correlation_of(const import_event *event);

/* ---- categories ---- */

/* The prof_backend_kind of what runs on a device, IMPORT_KIND_SIDE, or IMPORT_KIND_NONE. */
int import_device_kind(import_text category);

/* Is it certain that it is the host's? */
bool import_category_is_host(import_text category);

/* ---- where ---- */

/* By an export of prof's: its own number is the capture's process. */
void import_convert_process_number(import_state *state, int64_t pid, int64_t number);
import_thread *import_host_thread(import_state *state, const import_event *event);

/* The row's thread, which may be a device's stream. */
import_thread *import_row_thread(import_state *state, import_thread_id row);

/* ---- what ---- */

/* A scope of the host's or of a device's. With a kind it is a device's. */
void import_convert_scope(import_state *state, const import_event *event, int kind, uint64_t start,
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

#endif
