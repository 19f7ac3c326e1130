/* Chrome JSON: the rows of a viewer. Where the next event is, its time, and the metadata events
   that name and order rows. */
#include "../base/text.h"
#include "../reader/capture.h"
#include "chrome.h"

/* ---- the current track ---- */

/* The track's text, up to ts. */
void prof_i_chrome_set_track(prof_i_chrome *w, uint32_t lane) {
  char *to = prof_i_chrome_append(w->track_text, "\",\"pid\":");
  to = prof_i_put_u64(to, w->ids.pid);
  to = prof_i_chrome_append(to, ",\"tid\":");
  to = prof_i_put_u64(to, prof_i_tids_row(&w->ids, lane));
  to = prof_i_chrome_append(to, ",\"ts\":");
  w->track_fixed_bytes = w->track_bytes = (uint32_t)(to - w->track_text);
  w->lane = lane;
  w->high_ns = UINT64_MAX - PROF_I_CHROME_HIGH_NS; /* no time is there, so the first one sets it */
}

void prof_i_chrome_select_thread(prof_i_chrome *w, uint32_t index) {
  w->thread = index;
  w->ids = w->tids[index];
  w->backward.forward_thread = 0;
  prof_i_chrome_set_track(w, 0);
}

void prof_i_chrome_select_process(prof_i_chrome *w) {
  w->ids = (prof_i_tids){.first = w->info.pid, .step = 1, .pid = w->info.pid};
  prof_i_chrome_set_track(w, 0);
}

void prof_i_chrome_put_time(prof_i_chrome *w, uint64_t start_ns) {
  char *const to = prof_i_sink_reserve(w->sink, PROF_I_NUMBER_ROOM);
  prof_i_sink_advance(w->sink, prof_i_put_us(to, w->epoch_ns + start_ns));
}

void prof_i_chrome_put_track_time(prof_i_chrome *w, uint64_t start_ns) {
  prof_i_sink_bytes(w->sink, w->track_text, w->track_fixed_bytes);
  prof_i_chrome_put_time(w, start_ns);
}

/* ---- metadata events ---- */

void prof_i_chrome_put_number(prof_i_chrome *w, const char *key, uint64_t value) {
  prof_i_sink_text(w->sink, ",\"");
  prof_i_sink_text(w->sink, key);
  prof_i_sink_text(w->sink, "\":");
  prof_i_sink_u64(w->sink, value);
}

/* {"ph":"M","name":"thread_name","pid":1,"tid":2,"args":{"name":   and the caller closes both. */
void prof_i_chrome_begin_metadata(prof_i_chrome *w, const char *name, uint64_t pid, uint64_t tid,
                                  const char *key) {
  prof_i_sink_text(w->sink, "{\"ph\":\"M\",\"name\":\"");
  prof_i_sink_text(w->sink, name);
  prof_i_sink_text(w->sink, "\"");
  prof_i_chrome_put_number(w, "pid", pid);
  prof_i_chrome_put_number(w, "tid", tid);
  prof_i_sink_text(w->sink, ",\"args\":{\"");
  prof_i_sink_text(w->sink, key);
  prof_i_sink_text(w->sink, "\":");
}

void prof_i_chrome_end_metadata(prof_i_chrome *w) { prof_i_sink_text(w->sink, "}},\n"); }

void prof_i_chrome_put_name(prof_i_chrome *w, const char *what, uint64_t pid, uint64_t tid,
                            const char *name, size_t bytes) {
  prof_i_chrome_begin_metadata(w, what, pid, tid, "name");
  prof_i_sink_string(w->sink, name, bytes);
  prof_i_chrome_end_metadata(w);
}

void prof_i_chrome_put_sort_index(prof_i_chrome *w, const char *what, uint64_t pid, uint64_t tid,
                                  uint64_t index) {
  prof_i_chrome_begin_metadata(w, what, pid, tid, "sort_index");
  prof_i_sink_u64(w->sink, index);
  prof_i_chrome_end_metadata(w);
}

void prof_i_chrome_put_label(prof_i_chrome *w, uint64_t pid, const char *label) {
  prof_i_chrome_begin_metadata(w, "process_labels", pid, 0, "labels");
  prof_i_sink_string(w->sink, label, strlen(label));
  prof_i_chrome_end_metadata(w);
}

void prof_i_chrome_put_process(prof_i_chrome *w, uint64_t pid, const char *name,
                               const char *label) {
  if (*name) prof_i_chrome_put_name(w, "process_name", pid, 0, name, strlen(name));
  prof_i_chrome_put_label(w, pid, label);
  prof_i_chrome_put_sort_index(w, "process_sort_index", pid, 0, pid);
}

void prof_i_chrome_put_thread(prof_i_chrome *w, uint64_t pid, uint64_t tid, prof_i_text name,
                              uint64_t order) {
  if (name.bytes) prof_i_chrome_put_name(w, "thread_name", pid, tid, name.data, name.bytes);
  prof_i_chrome_put_sort_index(w, "thread_sort_index", pid, tid, order);
}

/* Whose work a stream has, for prof import: work without a launch does not say it. */
static void put_owner(prof_i_chrome *w, const prof_i_tids *ids) {
  const prof_i_process_record process = prof_i_trace_process(w->trace, (uint32_t)(ids - w->tids));
  prof_i_sink_text(w->sink, ",\"process\":");
  prof_i_sink_i64(w->sink, process.pid);
  if (!process.serial || !process.name.bytes) return;
  prof_i_sink_text(w->sink, ",\"process_name\":");
  prof_i_sink_string(w->sink, process.name.data, process.name.bytes);
}

void prof_i_chrome_put_row(prof_i_chrome *w, const prof_i_tids *ids, uint32_t lane,
                           prof_i_text name, uint64_t order) {
  const uint64_t tid = prof_i_tids_row(ids, lane);
  const bool has_owner = ids->is_stream && w->trace->catalog.process_count > 0;
  if (ids->number == ids->first && !has_owner) {
    prof_i_chrome_put_thread(w, ids->pid, tid, name, order);
    return;
  }
  if (name.bytes) prof_i_chrome_put_name(w, "thread_name", ids->pid, tid, name.data, name.bytes);
  prof_i_chrome_begin_metadata(w, "thread_sort_index", ids->pid, tid, "sort_index");
  prof_i_sink_u64(w->sink, order);
  if (ids->number != ids->first)
    prof_i_chrome_put_number(w, "number", ids->number); /* prof import's */
  if (has_owner) put_owner(w, ids);
  prof_i_chrome_end_metadata(w);
}
