/* Chrome JSON: what stands around the events. The row and the time of the next event, the metadata
   events that name and order rows and processes, Kineto's keys, and prof's own account. */
#include "chrome.h"

#include <stdio.h>
#include <string.h>

#include "../base/text.h"
#include "../format/layout.h"
#include "../reader/capture.h"
#include "internal.h"

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
  w->ids = (prof_i_tids){.first = prof_i_chrome_main_tid(w), .step = 1, .pid = w->info.pid};
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

/* {"ph":"M","name":"thread_name","pid":1,"tid":2,"args":{"name":   and the caller closes both. */
static void chrome_begin_metadata(prof_i_chrome *w, const char *name, uint64_t pid, uint64_t tid,
                                  const char *key) {
  prof_i_sink_text(w->sink, "{\"ph\":\"M\",\"name\":\"");
  prof_i_sink_text(w->sink, name);
  prof_i_sink_text(w->sink, "\"");
  prof_i_sink_key_u64(w->sink, "pid", pid);
  prof_i_sink_key_u64(w->sink, "tid", tid);
  prof_i_sink_text(w->sink, ",\"args\":{\"");
  prof_i_sink_text(w->sink, key);
  prof_i_sink_text(w->sink, "\":");
}

static void chrome_end_metadata(prof_i_chrome *w) { prof_i_sink_text(w->sink, "}},\n"); }

/* what: "process_name" or "thread_name" */
static void chrome_put_name(prof_i_chrome *w, const char *what, uint64_t pid, uint64_t tid,
                            const char *name, size_t bytes) {
  chrome_begin_metadata(w, what, pid, tid, "name");
  prof_i_sink_string(w->sink, name, bytes);
  chrome_end_metadata(w);
}

static void chrome_put_sort_index(prof_i_chrome *w, const char *what, uint64_t pid, uint64_t tid,
                                  uint64_t index) {
  chrome_begin_metadata(w, what, pid, tid, "sort_index");
  prof_i_sink_u64(w->sink, index);
  chrome_end_metadata(w);
}

static void chrome_put_label(prof_i_chrome *w, uint64_t pid, const char *label) {
  chrome_begin_metadata(w, "process_labels", pid, 0, "labels");
  prof_i_sink_string(w->sink, label, strlen(label));
  chrome_end_metadata(w);
}

void prof_i_chrome_put_process(prof_i_chrome *w, uint64_t pid, const char *name,
                               const char *label) {
  if (*name) chrome_put_name(w, "process_name", pid, 0, name, strlen(name));
  chrome_put_label(w, pid, label);
  chrome_put_sort_index(w, "process_sort_index", pid, 0, pid);
}

void prof_i_chrome_put_thread(prof_i_chrome *w, uint64_t pid, uint64_t tid, prof_i_text name,
                              uint64_t order) {
  if (name.bytes) chrome_put_name(w, "thread_name", pid, tid, name.data, name.bytes);
  chrome_put_sort_index(w, "thread_sort_index", pid, tid, order);
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
  if (name.bytes) chrome_put_name(w, "thread_name", ids->pid, tid, name.data, name.bytes);
  chrome_begin_metadata(w, "thread_sort_index", ids->pid, tid, "sort_index");
  prof_i_sink_u64(w->sink, order);
  if (ids->number != ids->first)
    prof_i_sink_key_u64(w->sink, "number", ids->number); /* prof import's */
  if (has_owner) put_owner(w, ids);
  chrome_end_metadata(w);
}

static void head_put(prof_i_chrome *w, const char *text) { prof_i_sink_text(w->sink, text); }

static void put_string_member(prof_i_chrome *w, const char *key, const char *text) {
  prof_i_sink_key(w->sink, key);
  prof_i_sink_string(w->sink, text, strlen(text));
}

/* ---- processes ---- */

/* Its number in the trace, for prof import. */
static void put_numbered_process(prof_i_chrome *w, uint64_t pid, int64_t number) {
  chrome_begin_metadata(w, "process_sort_index", pid, 0, "sort_index");
  prof_i_sink_u64(w->sink, pid);
  head_put(w, ",\"number\":");
  prof_i_sink_i64(w->sink, number);
  chrome_end_metadata(w);
}

/* Of another process than the capture's: before its first thread. */
static void put_other_process(prof_i_chrome *w, uint32_t index) {
  const prof_i_tids *const ids = &w->tids[index];
  if (!ids->is_elsewhere) return;
  for (uint32_t i = 0; i < index; i++)
    if (w->tids[i].is_elsewhere && w->tids[i].pid == ids->pid) return;
  const prof_i_text name = prof_i_trace_process(w->trace, index).name;
  if (name.bytes) chrome_put_name(w, "process_name", ids->pid, 0, name.data, name.bytes);
  chrome_put_label(w, ids->pid, "CPU");
  if (ids->process >= 0 && (uint64_t)ids->process == ids->pid)
    chrome_put_sort_index(w, "process_sort_index", ids->pid, 0, ids->pid);
  else
    put_numbered_process(w, ids->pid, ids->process);
}

static bool has_other_processes(const prof_i_chrome *w) {
  for (uint32_t i = 0; i < w->info.thread_count; i++)
    if (w->tids[i].is_elsewhere) return true;
  return false;
}

/* The thread's own name. Viewers have a name for one that has none; lanes say what they are, for
   prof import, too. */
static void put_thread_name(prof_i_chrome *w, const prof_trace_thread *thread, uint32_t index,
                            uint32_t lane) {
  if (thread->is_stream) {
    prof_i_chrome_name_stream(w, thread, index, lane);
    return;
  }
  char made[sizeof thread->name + 64];
  int bytes =
      snprintf(made, sizeof made, "%s", prof_i_tids_name_in_process(w->trace, index, thread->name));
  if (lane > 0 && bytes == 0)
    bytes = snprintf(made, sizeof made, "thread %llu", (unsigned long long)thread->tid);
  if (lane > 0)
    bytes += snprintf(made + bytes, sizeof made - (size_t)bytes, " (overlapping %u)", lane);
  prof_i_chrome_put_row(w, &w->tids[index], lane, (prof_i_text){made, (uint64_t)bytes},
                        (uint64_t)index * PROF_I_LANES_MAX + lane);
}

void prof_i_chrome_name_lane(prof_i_chrome *w, uint32_t lane) {
  prof_trace_thread thread = {.size = sizeof thread};
  if (prof_trace_thread_get(w->trace, w->thread, &thread) != PROF_OK) return;
  for (; w->lanes_named <= lane; w->lanes_named++)
    put_thread_name(w, &thread, w->thread, w->lanes_named);
}

/* False: the user has a member of that key. */
static bool begin_prof_object(prof_i_chrome *w, const char *key) {
  if (prof_i_metadata_has_key(&w->metadata, key)) return false;
  head_put(w, "\"");
  head_put(w, key);
  head_put(w, "\": ");
  return true;
}

/* "rank" with the space, on a line of its own and before all names: that is how readers find it.
   Readers need a number, so an unknown rank is written as 0, and an unknown size as the least. */
static void put_distributed(prof_i_chrome *w) {
  const int64_t least = w->info.rank < 0 ? 1 : (int64_t)w->info.rank + 1;
  head_put(w, "{\"backend\": \"\", \"rank\": ");
  prof_i_sink_i64(w->sink, w->info.rank < 0 ? 0 : w->info.rank);
  head_put(w, ", \"world_size\": ");
  prof_i_sink_i64(w->sink, w->info.world_size < 0   ? least
                           : w->info.world_size < 1 ? 1
                                                    : w->info.world_size);
  head_put(w, w->info.rank < 0 ? ", \"is_rank_known\": false},\n" : "},\n");
}

static void put_file_head(prof_i_chrome *w) {
  head_put(w, "{\n");
  if (begin_prof_object(w, "schemaVersion")) head_put(w, "1,\n");
  if (begin_prof_object(w, "deviceProperties")) head_put(w, "[],\n");
  if (!w->place && begin_prof_object(w, "distributedInfo")) put_distributed(w);
  /* "ns": with Kineto's usual "ms", chrome://tracing rounds to whole microseconds before it nests,
     and loses arrows in short scopes. */
  if (begin_prof_object(w, "displayTimeUnit")) head_put(w, "\"ns\",\n");
  prof_i_metadata_put(&w->metadata, w->sink);
  if (w->info.host[0] && !w->place && begin_prof_object(w, "host_name")) {
    prof_i_sink_string(w->sink, w->info.host, strlen(w->info.host));
    head_put(w, ",\n");
  }
  if (begin_prof_object(w, "baseTimeNanoseconds")) {
    prof_i_sink_u64(w->sink, w->base_ns);
    head_put(w, ",\n");
  }
  head_put(w, "\"traceEvents\": [\n");
}

/* In a merged file, the name says which capture the process is of. */
static void put_own_process(prof_i_chrome *w) {
  char labelled[sizeof w->info.process_name + 160];
  const bool is_labelled = w->place && w->place->is_process_labelled;
  snprintf(labelled, sizeof labelled, "%s%s%s", is_labelled ? w->place->label : "",
           is_labelled && w->info.process_name[0] ? ": " : "", w->info.process_name);
  prof_i_chrome_put_process(w, w->info.pid, labelled, "CPU");
  if (w->info.pid && has_other_processes(w)) put_numbered_process(w, w->info.pid, w->info.pid);
}

void prof_i_chrome_put_head(prof_i_chrome *w) {
  if (prof_i_export_is_first(w->run)) put_file_head(w);
  put_own_process(w);
  prof_i_chrome_name_devices(w);
  for (uint32_t i = 0; i < w->info.thread_count && w->sink->status == PROF_OK; i++) {
    put_other_process(w, i);
    prof_trace_thread thread = {.size = sizeof thread};
    if (prof_trace_thread_get(w->trace, i, &thread) == PROF_OK && thread.event_count > 0)
      put_thread_name(w, &thread, i, 0);
  }
}

/* ---- prof's own account ---- */

/* Less what the user forgot on purpose. */
static uint64_t missing_count(const prof_i_chrome *w) {
  return prof_i_loss_report_sum(w->info.lost_count) - w->info.lost_count[PROF_LOSS_CLEARED];
}

/* The summary's name: its worst finding. */
static void put_summary_name(prof_i_chrome *w, bool is_silent, bool is_late) {
  const uint64_t lost = missing_count(w), cleared = w->info.lost_count[PROF_LOSS_CLEARED];
  head_put(w, "\"name\":\"prof: ");
  if (prof_i_findings_faults(&w->check.findings) || is_silent ||
      w->check.findings.counts[PROF_I_FINDING_CROWDED]) {
    head_put(w, "see the arguments");
  } else if (lost) {
    head_put(w, "lost ");
    prof_i_sink_u64(w->sink, lost);
  } else if (is_late) {
    head_put(w, "no loss, but records began late");
  } else if (cleared) {
    prof_i_sink_u64(w->sink, cleared);
    head_put(w, " cleared, no other loss");
  } else {
    head_put(
        w, w->info.open_count || w->info.open_below_count ? "no loss, some unfinished" : "no loss");
  }
  head_put(w, "\"");
}

static void put_event_counts(prof_i_chrome *w) {
  prof_i_sink_key_u64(w->sink, "recorded", w->info.event_count - w->info.open_count);
  prof_i_sink_key_u64(w->sink, "scopes", w->info.scope_count);
  prof_i_sink_key_u64(w->sink, "skipped", w->info.skipped_count);
  prof_i_sink_key_u64(w->sink, "unfinished", w->info.open_count);
  prof_i_sink_key_u64(w->sink, "unfinished_below", w->info.open_below_count);
  prof_i_sink_key_u64(w->sink, "stray_ends", w->info.stray_count);
  prof_i_sink_key_u64(w->sink, "events", w->info.event_count);
  head_put(w, ",\n \"lost\":");
  prof_i_loss_report_counts(w->sink, w->info.lost_count);
  head_put(w, ",\n \"written\":{\"scopes\":");
  prof_i_sink_u64(w->sink, w->written.scope_count);
  prof_i_sink_key_u64(w->sink, "unfinished", w->written.open_count);
  prof_i_sink_key_u64(w->sink, "steps", w->written.step_count);
  prof_i_sink_key_u64(w->sink, "instants", w->written.instant_count);
  prof_i_sink_key_u64(w->sink, "counters", w->written.counter_count);
  prof_i_sink_key_u64(w->sink, "flow_ends", w->written.flow_count);
  prof_i_sink_key_u64(w->sink, "flow_marks", w->written.mark_count);
  head_put(w, "}");
}

static void put_self_check(prof_i_chrome *w) {
  head_put(w, ",\n \"self_check\":{\"faults\":");
  prof_i_sink_u64(w->sink, prof_i_findings_faults(&w->check.findings));
  for (int i = 0; i < PROF_I_FINDING_COUNT; i++)
    prof_i_sink_key_u64(w->sink, prof_i_finding_word(i), w->check.findings.counts[i]);
  head_put(w, "}");
}

/* A damaged capture says anything, and what no integer holds must not become one. */
static uint64_t double_to_thousandths(double value) {
  return !(value > 0) ? 0 : value < 1e16 ? (uint64_t)(value * 1e3 + 0.5) : UINT64_MAX;
}

static void put_duration_of_export(prof_i_chrome *w) {
  prof_i_sink_key_u64(w->sink, "recording_took_ns", w->info.own_ns);
  prof_i_sink_key_u64(w->sink, "recording_took_least_ns", w->info.own_least_ns);
  if (w->info.is_own_sampled)
    prof_i_sink_key_u64(w->sink, "recording_took_most_ns", w->info.own_most_ns);
}

static void put_capture(prof_i_chrome *w) {
  put_string_member(w, "host", w->info.host);
  prof_i_sink_key_u64(w->sink, "level", w->info.level);
  prof_i_sink_key_u64(w->sink, "policy", w->info.policy);
  head_put(w, w->info.was_clean ? ",\"clean_stop\":true" : ",\"clean_stop\":false");
  prof_i_sink_key_u64(w->sink, "duration_ns", w->info.duration_ns);
  prof_i_sink_key_u64(w->sink, "clock_error_ns", w->info.clock_error_ns);
  prof_i_sink_key_u64(w->sink, "clock_segments", w->info.clock_segments_count);
  prof_i_sink_key_u64(w->sink, "scope_cost_ps", double_to_thousandths(w->info.scope_cost_ns));
  put_duration_of_export(w);
  prof_i_sink_key_u64(w->sink, "memory_limit_bytes", w->info.memory_limit_bytes);
  prof_i_sink_key_u64(w->sink, "cpu_limit_milli", double_to_thousandths(w->info.cpu_limit));
  prof_i_sink_key_u64(w->sink, "clock_jumps", w->info.clock_jump_count);
  prof_i_sink_key_u64(w->sink, "clock_gap_ns", w->info.clock_gap_ns);
  prof_i_sink_key_u64(w->sink, "clock_back", w->info.clock_back_count);
  prof_i_sink_key_u64(w->sink, "wall_steps", w->info.wall_step_count);
  head_put(w, ",\"wall_step_ns\":");
  prof_i_sink_i64(w->sink, w->info.wall_step_ns);
}

static void put_threads(prof_i_chrome *w) {
  uint64_t of_threads = 0;
  head_put(w, ",\n \"threads\":[");
  for (uint32_t i = 0; i < w->info.thread_count && w->sink->status == PROF_OK; i++) {
    prof_trace_thread thread = {.size = sizeof thread};
    if (prof_trace_thread_get(w->trace, i, &thread) != PROF_OK) continue;
    head_put(w, i > 0 ? ",\n  {\"tid\":" : "\n  {\"tid\":");
    prof_i_sink_u64(w->sink, thread.tid);
    put_string_member(w, "name", thread.name);
    prof_i_sink_key_u64(w->sink, "events", thread.event_count);
    prof_i_sink_key_u64(w->sink, "recording_took_ns", thread.own_ns);
    head_put(w, ",\"lost\":");
    prof_i_loss_report_counts(w->sink, thread.lost_count);
    head_put(w, "}");
    of_threads += prof_i_loss_report_sum(thread.lost_count);
  }
  head_put(w, "]");
  const uint64_t all = prof_i_loss_report_sum(w->info.lost_count);
  prof_i_sink_key_u64(w->sink, "lost_not_by_thread", all > of_threads ? all - of_threads : 0);
}

/* Where sites are that somebody has named: of functions each call says it. */
static void put_sites(prof_i_chrome *w) {
  const uint32_t count = prof_i_trace_site_count(w->trace);
  bool has_any = false;
  for (uint32_t i = 0; i < count && w->sink->status == PROF_OK; i++) {
    const prof_i_site_info *const site = prof_i_trace_site(w->trace, i);
    if (site->file.bytes == 0 || prof_i_is_named_by_function(site)) continue;
    head_put(w, has_any ? ",\n  {\"name\":" : ",\n \"sites\":[\n  {\"name\":");
    prof_i_sink_string(w->sink, site->name.data, site->name.bytes);
    head_put(w, ",\"cat\":");
    prof_i_sink_string(w->sink, site->category.data, site->category.bytes);
    head_put(w, ",\"file\":");
    prof_i_sink_string(w->sink, site->file.data, site->file.bytes);
    prof_i_sink_key_u64(w->sink, "line", site->line);
    head_put(w, "}");
    has_any = true;
  }
  if (has_any) head_put(w, "]");
}

/* At their time. What is missing after one was not recorded. */
static void put_change_marks(prof_i_chrome *w) {
  for (uint32_t i = 0; i < w->info.change_count && w->sink->status == PROF_OK; i++) {
    prof_trace_change change = {.size = sizeof change};
    if (prof_trace_change_get(w->trace, i, &change) != PROF_OK ||
        !prof_i_window_contains(&w->window, change.at_ns, change.at_ns))
      continue;
    head_put(w, "{\"ph\":\"i\",\"s\":\"p\",\"cat\":\"prof\",\"name\":");
    head_put(w, change.kind == PROF_CHANGE_LEVEL   ? change.level_after < change.level_before
                                                         ? "\"prof: level lowered\""
                                                         : "\"prof: level raised\""
                : change.kind == PROF_CHANGE_MUTED ? "\"prof: site muted\""
                                                   : "\"prof: site heard again\"");
    prof_i_sink_key_u64(w->sink, "pid", w->info.pid);
    prof_i_sink_key_u64(w->sink, "tid", prof_i_chrome_main_tid(w));
    head_put(w, ",\"ts\":");
    prof_i_chrome_put_time(w, change.at_ns);
    head_put(w, ",\"args\":{\"change\":");
    prof_i_loss_report_change(w->sink, w->trace, i);
    head_put(w, "}},\n");
  }
}

/* As the last rows of Kineto's traces, which readers search from the end. They are the profile as a
   span, the order of its process, and an instant at its begin and at its end. No comma after the
   last. */
static void put_window_marks(prof_i_chrome *w) {
  const uint64_t end_ns = w->window.to_ns ? w->window.to_ns : w->info.duration_ns;
  head_put(w,
           ",\n{\"ph\":\"X\",\"cat\":\"Trace\",\"name\":\"PyTorch Profiler (0)\",\"pid\":\"Spans\","
           "\"tid\":\"PyTorch Profiler\",\"ts\":");
  prof_i_chrome_put_time(w, w->first_ns);
  head_put(w, ",\"dur\":");
  prof_i_sink_advance(w->sink, prof_i_put_us(prof_i_sink_reserve(w->sink, PROF_I_NUMBER_ROOM),
                                             end_ns > w->first_ns ? end_ns - w->first_ns : 0));
  head_put(w,
           ",\"args\":{\"Op count\":0}},\n"
           "{\"ph\":\"M\",\"name\":\"process_sort_index\",\"pid\":\"Spans\","
           "\"tid\":0,\"args\":{\"sort_index\":536870912}},\n"
           "{\"ph\":\"i\",\"s\":\"g\",\"name\":\"Iteration Start: PyTorch Profiler\","
           "\"pid\":\"Traces\",\"tid\":\"Trace PyTorch Profiler\",\"ts\":");
  prof_i_chrome_put_time(w, w->first_ns);
  head_put(w,
           "},\n{\"ph\":\"i\",\"s\":\"g\",\"name\":\"Record Window End\","
           "\"pid\":\"\",\"tid\":\"\",\"ts\":");
  prof_i_chrome_put_time(w, end_ns > w->first_ns ? end_ns : w->first_ns);
  head_put(w, "}");
}

/* One instant where the time line begins, so that a viewer shows on its time line whether anything
   is missing. The last event of prof's own: no comma after it. */
static void put_self_summary(prof_i_chrome *w) {
  const uint64_t faults = prof_i_findings_faults(&w->check.findings);
  const bool has_silent = prof_i_loss_report_devices_of(w->trace, PROF_I_DEVICES_SILENT) != 0,
             has_late = prof_i_loss_report_devices_of(w->trace, PROF_I_DEVICES_LATE) != 0;
  const uint64_t crowded = w->check.findings.counts[PROF_I_FINDING_CROWDED];
  head_put(w, "{\"ph\":\"i\",\"s\":\"p\",\"cat\":\"prof\",");
  put_summary_name(w, has_silent, has_late);
  prof_i_sink_key_u64(w->sink, "pid", w->info.pid);
  prof_i_sink_key_u64(w->sink, "tid", prof_i_chrome_main_tid(w));
  head_put(w, ",\"ts\":");
  prof_i_chrome_put_time(w, prof_i_window_begin_ns(&w->window));
  head_put(w, ",\"args\":{\"version\":\"");
  head_put(w, prof_version());
  head_put(w, "\"");
  prof_i_sink_key_u64(w->sink, "recorded", w->info.event_count - w->info.open_count);
  prof_i_sink_key_u64(w->sink, "unfinished", w->info.open_count);
  if (w->info.open_below_count)
    prof_i_sink_key_u64(w->sink, "unfinished below 64 others", w->info.open_below_count);
  if (w->info.skipped_count)
    prof_i_sink_key_u64(w->sink, "skipped by jumps", w->info.skipped_count);
  if (w->info.stray_count)
    prof_i_sink_key_u64(w->sink, "ends that found no scope", w->info.stray_count);
  if (w->window.from_ns || w->window.to_ns)
    prof_i_sink_key_u64(w->sink, PROF_I_KEY_IN_SPAN,
                        w->written.scope_count + w->written.open_count + w->written.step_count +
                            w->written.instant_count);
  if (w->filtered) prof_i_sink_key_u64(w->sink, PROF_I_KEY_FILTERED, w->filtered->scopes.left_out);
  for (int i = 0; i < PROF_LOSS_COUNT; i++) {
    if (w->info.lost_count[i] == 0) continue;
    head_put(w, ",\"lost: ");
    head_put(w, prof_loss_name(i));
    head_put(w, "\":");
    prof_i_sink_u64(w->sink, w->info.lost_count[i]);
  }
  if (crowded) prof_i_sink_key_u64(w->sink, "left out: overlapping more than 1023 others", crowded);
  if (has_silent) {
    head_put(w, ",\"devices without times\":");
    prof_i_loss_report_devices(w->sink, w->trace, PROF_I_DEVICES_SILENT);
  }
  if (has_late) {
    head_put(w, ",\"records began late\":");
    prof_i_loss_report_devices(w->sink, w->trace, PROF_I_DEVICES_LATE);
  }
  prof_i_sink_key_u64(w->sink, "self_check_faults", faults);
  put_duration_of_export(w);
  head_put(w, "}}");
}

/* The members of "prof", without the braces. */
static void put_account(prof_i_chrome *w) {
  head_put(w, "\"version\":\"");
  head_put(w, prof_version());
  head_put(w, "\"");
  put_capture(w);
  put_event_counts(w);
  put_self_check(w);
  head_put(w, ",\n \"changes\":");
  prof_i_loss_report_changes(w->sink, w->trace);
  if (w->info.device_count) {
    head_put(w, ",\n \"devices\":");
    prof_i_loss_report_devices(w->sink, w->trace, PROF_I_DEVICES_ALL);
  }
  if (w->info.note_count) {
    head_put(w, ",\n \"notes\":");
    prof_i_loss_report_notes(w->sink, w->trace, w->info.note_count);
  }
  put_threads(w);
  put_sites(w);
}

/* Of a capture in a merged file: kept for the file's end. */
static void keep_account(prof_i_chrome *w) {
  prof_i_sink *const sink = w->sink, *const accounts = &w->shared->accounts;
  if (!accounts->buffer && prof_i_sink_open_memory(accounts, SIZE_MAX) != PROF_OK) return;
  w->sink = accounts;
  head_put(w, w->place->number == 0 ? "{\"process\":" : ",\n{\"process\":");
  prof_i_sink_string(accounts, w->place->label, strlen(w->place->label));
  prof_i_sink_key_u64(accounts, "pid", w->info.pid);
  head_put(w, ",");
  put_account(w);
  head_put(w, "}");
  w->sink = sink;
}

static void put_file_tail(prof_i_chrome *w) {
  const prof_i_sink *const accounts = &w->shared->accounts;
  head_put(w, "\n],\n\"prof\": {\"version\":\"");
  head_put(w, prof_version());
  head_put(w, "\",\n\"captures\":[\n");
  prof_i_sink_bytes(w->sink, accounts->buffer, (size_t)(accounts->next - accounts->buffer));
  head_put(w, "]}\n}\n");
}

void prof_i_chrome_put_tail(prof_i_chrome *w) {
  put_change_marks(w);
  put_self_summary(w);
  if (w->with_marks) put_window_marks(w);
  if (!w->place) {
    head_put(w, "\n],\n\"prof\": {");
    put_account(w);
    head_put(w, "}\n}\n");
    return;
  }
  keep_account(w);
  if (w->place->is_last)
    put_file_tail(w);
  else
    head_put(w, ",\n");
}
