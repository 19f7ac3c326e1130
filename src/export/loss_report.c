/* What is missing from a trace, and why, as JSON. See internal.h. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

#include "../analysis/internal.h"
#include "../format/layout.h"
#include "../reader/internal.h"

void prof_i_loss_report_counts(prof_i_sink *sink, const uint64_t counts[16]) {
  prof_i_sink_text(sink, "{\"total\":");
  prof_i_sink_u64(sink, prof_i_loss_report_sum(counts));
  for (int i = 0; i < PROF_LOSS_COUNT; i++) {
    prof_i_sink_text(sink, ",\"");
    prof_i_sink_text(sink, prof_loss_name(i));
    prof_i_sink_text(sink, "\":");
    prof_i_sink_u64(sink, counts[i]);
  }
  prof_i_sink_text(sink, "}");
}

void prof_i_loss_report_change(prof_i_sink *sink, const prof_trace *trace, uint32_t index) {
  char *text = NULL;
  if (prof_i_trace_change_text(trace, index, &text) != PROF_OK) {
    prof_i_sink_text(sink, "\"\"");
    return;
  }
  const char *const from = strstr(text, ": ");
  prof_i_sink_string(sink, from + 2, strlen(from + 2));
  free(text);
}

void prof_i_loss_report_changes(prof_i_sink *sink, const prof_trace *trace) {
  prof_trace_info info = {.size = sizeof info};
  prof_trace_info_get(trace, &info);
  prof_i_sink_text(sink, "[");
  for (uint32_t i = 0; i < info.change_count && sink->status == PROF_OK; i++) {
    prof_trace_change change = {.size = sizeof change};
    if (prof_trace_change_get(trace, i, &change) != PROF_OK) continue;
    prof_i_sink_text(sink, i > 0 ? ",\n  {\"at_ns\":" : "\n  {\"at_ns\":");
    prof_i_sink_u64(sink, change.at_ns);
    prof_i_sink_text(sink, ",\"change\":");
    prof_i_loss_report_change(sink, trace, i);
    prof_i_sink_text(sink, "}");
  }
  if (info.untold_change_count) {
    prof_i_sink_text(sink, info.change_count ? ",\n  {\"untold\":" : "\n  {\"untold\":");
    prof_i_sink_u64(sink, info.untold_change_count);
    prof_i_sink_text(sink, "}");
  }
  prof_i_sink_text(sink, "]");
}

void prof_i_loss_report_notes(prof_i_sink *sink, const prof_trace *trace, uint32_t count) {
  prof_i_sink_text(sink, "[");
  for (uint32_t i = 0; i < count && sink->status == PROF_OK; i++) {
    char *text = NULL;
    prof_i_sink_text(sink, i > 0 ? ",\n  " : "\n  ");
    const bool has_text = prof_i_trace_note_text(trace, i, &text) == PROF_OK;
    prof_i_sink_string(sink, has_text ? text : "", has_text ? strlen(text) : 0);
    free(text);
  }
  prof_i_sink_text(sink, "]");
}

static bool device_is_silent(const prof_trace *trace, uint32_t index) {
  prof_trace_device device = {.size = sizeof device};
  if (prof_trace_device_get(trace, index, &device) != PROF_OK) return false;
  if (prof_i_is_no_records(device.reason)) return true;
  /* a device without work is not silent */
  return device.scope_count == 0 && device.record_count == 0 &&
         (!device.records_late_ns || device.reason[0]);
}

static bool device_is_late(const prof_trace *trace, uint32_t index) {
  prof_trace_device device = {.size = sizeof device};
  return prof_trace_device_get(trace, index, &device) == PROF_OK && device.records_late_ns;
}

static bool device_is_selected(const prof_trace *trace, uint32_t index,
                               prof_i_device_selection which) {
  return which == PROF_I_DEVICES_ALL ||
         (which == PROF_I_DEVICES_SILENT ? device_is_silent(trace, index)
                                         : device_is_late(trace, index));
}

uint32_t prof_i_loss_report_devices_of(const prof_trace *trace, prof_i_device_selection which) {
  prof_trace_info info = {.size = sizeof info};
  uint32_t count = 0;
  prof_trace_info_get(trace, &info);
  for (uint32_t i = 0; i < info.device_count; i++) count += device_is_selected(trace, i, which);
  return count;
}

void prof_i_loss_report_devices(prof_i_sink *sink, const prof_trace *trace,
                                prof_i_device_selection which) {
  prof_trace_info info = {.size = sizeof info};
  bool is_first = true;
  prof_trace_info_get(trace, &info);
  prof_i_sink_text(sink, "[");
  for (uint32_t i = 0; i < info.device_count && sink->status == PROF_OK; i++) {
    char *text = NULL;
    if (!device_is_selected(trace, i, which) ||
        prof_i_trace_device_text(trace, i, &text) != PROF_OK)
      continue;
    if (!is_first) prof_i_sink_text(sink, ",");
    prof_i_sink_string(sink, text, strlen(text));
    free(text);
    is_first = false;
  }
  prof_i_sink_text(sink, "]");
}
