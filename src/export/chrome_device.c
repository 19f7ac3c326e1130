/* Chrome JSON: devices. As in Kineto's traces, a device is a process, and its streams are that
   process's threads. A number connects what ran there with the host's scope that launched it, and
   chrome_arrows.c draws the arrow. */
#include "chrome.h"

#include <prof/backend.h>
#include <stdio.h>
#include <stdlib.h>

#include "../base/error.h"

enum { UNUSED_TID_FIRST = 1000000 }; /* of streams with a name and without events */

/* ---- names ---- */

/* The user's name for a stream, or none. */
static prof_i_text stream_name(const prof_i_chrome *w, prof_device device, uint64_t stream) {
  prof_device named;
  prof_i_text name;
  uint64_t handle;
  for (uint32_t i = 0; prof_i_trace_track(w->trace, i, &named, &handle, &name) != 0; i++)
    if (prof_i_is_same_device(named, device) && handle == stream) return name;
  return (prof_i_text){"", 0};
}

static bool name_is_written(const prof_i_chrome *w, prof_device device, uint64_t stream) {
  for (uint32_t i = 0; i < w->info.thread_count; i++) {
    prof_trace_thread thread = {.size = sizeof thread};
    if (prof_trace_thread_get(w->trace, i, &thread) != PROF_OK || !thread.is_stream) continue;
    if (prof_i_is_same_device(thread.device, device) && thread.stream == stream) return true;
  }
  return false;
}

/* Its process, before the first that stands on it. Of more devices than are kept some are named
   again, which changes nothing. */
static void name_device(prof_i_chrome *w, prof_device device) {
  char name[PROF_I_DEVICE_NAME_BYTES], labelled[PROF_I_DEVICE_NAME_BYTES + 160];
  const uint64_t pid = prof_i_export_device_pid(w->run, device);
  for (uint32_t i = 0; i < w->named_count; i++)
    if (w->named_pids[i] == pid) return;
  if (w->named_count < PROF_I_NAMED_DEVICES) w->named_pids[w->named_count++] = pid;
  prof_i_device_name(device, name);
  snprintf(labelled, sizeof labelled, "%s: %s", w->place ? w->place->label : "", name);
  prof_i_chrome_put_process(w, pid, w->place ? labelled : name, "GPU");
}

void prof_i_chrome_name_devices(prof_i_chrome *w) {
  prof_device device;
  prof_i_text name;
  uint64_t handle;
  for (uint32_t i = 0; i < w->info.thread_count; i++) { /* those with rows, by the first of each */
    prof_trace_thread thread = {.size = sizeof thread};
    if (!w->tids[i].is_stream || w->tids[i].first != PROF_I_STREAM_FIRST ||
        prof_trace_thread_get(w->trace, i, &thread) != PROF_OK)
      continue;
    name_device(w, thread.device);
  }
  for (uint32_t i = 0; prof_i_trace_track(w->trace, i, &device, &handle, &name) != 0; i++) {
    if (name_is_written(w, device, handle)) continue;
    name_device(w, device);
    prof_i_chrome_put_thread(w, prof_i_export_device_pid(w->run, device), UNUSED_TID_FIRST + i,
                             name, UNUSED_TID_FIRST + i);
  }
}

void prof_i_chrome_begin_value(prof_i_chrome *w, prof_device device, prof_i_text category) {
  if (!prof_i_device_is_host(device)) name_device(w, device);
  prof_i_sink_text(w->sink, "{\"ph\":\"C\",\"cat\":\"");
  prof_i_sink_string_part(w->sink, category.data, category.bytes);
  prof_i_sink_text(w->sink, "\",\"name\":\"");
}

void prof_i_chrome_put_value_time(prof_i_chrome *w, prof_device device, uint64_t ns) {
  if (prof_i_device_is_host(device)) {
    prof_i_chrome_put_track_time(w, ns);
    return;
  }
  prof_i_sink_text(w->sink, "\",\"pid\":");
  prof_i_sink_u64(w->sink, prof_i_export_device_pid(w->run, device));
  prof_i_sink_text(w->sink, ",\"tid\":0,\"ts\":");
  prof_i_chrome_put_time(w, ns);
}

void prof_i_chrome_name_stream(prof_i_chrome *w, const prof_trace_thread *thread, uint32_t index,
                               uint32_t lane) {
  enum { NAME_SHOWN_BYTES = 256 };
  char made[NAME_SHOWN_BYTES + 64];
  const prof_i_tids *const ids = &w->tids[index];
  const prof_i_text own = stream_name(w, thread->device, thread->stream);
  const int shown = own.bytes < NAME_SHOWN_BYTES ? (int)own.bytes : NAME_SHOWN_BYTES;
  int bytes = snprintf(made, sizeof made, "%s %llu%s%.*s",
                       thread->stream & PROF_BACKEND_QUEUE ? "queue" : "stream",
                       (unsigned long long)ids->first, shown ? ": " : "", shown, own.data);
  if (lane > 0)
    bytes += snprintf(made + bytes, sizeof made - (size_t)bytes, " (overlapping %u)", lane);
  prof_i_chrome_put_row(w, ids, lane, (prof_i_text){made, (uint64_t)bytes},
                        ids->first * PROF_I_LANES_MAX + lane);
}

/* ---- what ties a launch to what ran ---- */

int prof_i_chrome_find_launches(prof_i_chrome *w) {
  const int status = prof_i_launches_find(w->trace, &w->launches, false);
  if (status == PROF_OK && w->launches.count)
    w->correlations = calloc(w->launches.count, sizeof *w->correlations);
  if (status == PROF_OK && (w->correlations || !w->launches.count)) return PROF_OK;
  return prof_i_fail(PROF_E_NO_MEMORY, "no memory for what %u scopes of devices belong to",
                     w->launches.count);
}

static bool launch_is_before(const prof_i_launch *launch, uint64_t at_ns, uint64_t start_ns,
                             const uint64_t *record) {
  if (launch->at_ns != at_ns) return launch->at_ns < at_ns;
  return launch->start_ns < start_ns ||
         (launch->start_ns == start_ns && (uintptr_t)launch->record < (uintptr_t)record);
}

/* The thread's first launch at that moment or later. Of several at that moment it is the first that
   began at start_ns or later, and of those `record` or the first behind it. *end_out: behind the
   thread's last launch. */
static uint32_t launch_find(const prof_i_chrome *w, uint32_t thread, uint64_t at_ns,
                            uint64_t start_ns, const uint64_t *record, uint32_t *end_out) {
  uint32_t low, high = prof_i_launches_of_thread(&w->launches, thread, &low);
  *end_out = high += low;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (launch_is_before(&w->launches.items[middle], at_ns, start_ns, record))
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

void prof_i_chrome_select_launches(prof_i_chrome *w) {
  uint32_t first;
  const uint32_t count = prof_i_launches_of_thread(&w->launches, w->thread, &first);
  w->has_launches = count > 0;
  w->has_records = false;
  for (uint32_t i = first; i < first + count; i++) w->has_records |= w->launches.items[i].kind != 0;
}

/* A device's side of a scope belongs to the scope with that begin. Of several at one moment each
   gets its own. A record belongs to the innermost scope that was open, or to a call. If calls are
   inside of each other it is the outermost: readers know the runtime's calls, not the driver's. */
bool prof_i_chrome_correlate(prof_i_chrome *w, const prof_i_span *span, uint64_t id,
                             uint64_t external_id, bool is_on_stream) {
  uint32_t end;
  const bool is_call = (w->event->flags & PROF_EVENT_CALL) != 0;
  bool has_side = !is_on_stream, has_launched = false;
  for (uint32_t at = launch_find(w, w->thread, span->start_ns, 0, NULL, &end);
       at < end && w->launches.items[at].at_ns <= span->start_ns + span->duration_ns; at++) {
    const prof_i_launch *const launch = &w->launches.items[at];
    if ((w->correlations[at].id && !is_call) ||
        (launch->kind == 0 && (has_side || launch->at_ns != span->start_ns)))
      continue;
    has_side |= launch->kind == 0;
    has_launched = true;
    w->correlations[at] =
        (prof_i_correlation){.id = id, .external_id = external_id, .lane = span->lane};
  }
  return has_launched;
}

/* Only an import writes notes, and it writes one of work that began before its launch. */
static bool trace_is_imported(const prof_trace *trace) { return trace->catalog.note_count > 0; }

/* The thread of a launch that is not in the trace is no thread. */
static bool launch_passes(const prof_i_selection *selection, const prof_trace *trace,
                          const prof_event *work) {
  return work->launch.thread < trace->thread_count &&
         prof_i_selection_takes_moment(selection, work->launch.thread, work->launch.start_ns);
}

const prof_i_correlation *prof_i_chrome_correlation_of(prof_i_chrome *w, const prof_i_span *span) {
  uint32_t end;
  const uint32_t at = launch_find(w, w->event->launch.thread, w->event->launch.start_ns,
                                  span->start_ns, span->record, &end);
  if (at == end || w->launches.items[at].record != span->record) return NULL;
  w->correlations[at].has_arrow =
      !w->is_passing_over && (!w->selection || launch_passes(w->selection, w->trace, w->event));
  if (span->start_ns < w->launches.items[at].at_ns)
    w->check.findings
        .counts[trace_is_imported(w->trace) ? PROF_I_FINDING_EARLY_THERE : PROF_I_FINDING_EARLY]++;
  return w->correlations[at].id ? &w->correlations[at] : NULL;
}
