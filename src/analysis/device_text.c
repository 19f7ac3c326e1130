/* The devices that a capture knows of: what their times are worth, and if there are none, why. */
#define _GNU_SOURCE
#include <prof/backend.h>
#include <prof/profiler.h>
#include <stdio.h>
#include <string.h>

#include "../base/display.h"
#include "../base/error.h"
#include "../base/options.h"
#include "../base/port.h"
#include "../base/process.h"
#include "../reader/capture.h"
#include "internal.h"

static prof_trace_device device_from_state(const prof_i_device_state *state) {
  prof_trace_device device = {.device = {state->type, state->index},
                              .result = state->result,
                              .is_emulated = (state->flags & PROF_I_DEVICE_EMULATED) != 0,
                              .scope_count = state->scope_count,
                              .captured_count = state->captured_count,
                              .clock_error_ns = state->clock_error_ns,
                              .is_clock_read = (state->flags & PROF_I_DEVICE_READ) != 0,
                              .has_two_clocks = (state->flags & PROF_I_DEVICE_READ) &&
                                                (state->flags & PROF_I_DEVICE_DISTANCES),
                              .units = state->units,
                              .clock_khz = state->clock_khz,
                              .clock_step_count = state->clock_step_count,
                              .early_count = state->early_count,
                              .early_ns = state->early_ns,
                              .memory_bytes = state->memory_bytes,
                              .record_count = state->record_count,
                              .records_late_ns = state->late_ns};
  memcpy(device.uuid, state->uuid, sizeof device.uuid);
  prof_i_copy_name(device.name, sizeof device.name, state->name, sizeof state->name);
  prof_i_copy_name(device.arch, sizeof device.arch, state->arch, sizeof state->arch);
  prof_i_copy_name(device.driver, sizeof device.driver, state->driver, sizeof state->driver);
  prof_i_copy_name(device.back_end, sizeof device.back_end, state->back_end,
                   sizeof state->back_end);
  prof_i_copy_name(device.reason, sizeof device.reason, state->reason, sizeof state->reason);
  return device;
}

int prof_trace_device_get(const prof_trace *trace, uint32_t index, prof_trace_device *device_out) {
  if (!trace || !device_out)
    return prof_i_fail(PROF_E_INVALID, "prof_trace_device_get: %s is NULL",
                       trace ? "device_out" : "trace");
  if (index >= trace->catalog.device_count)
    return prof_i_fail(PROF_E_INVALID,
                       "prof_trace_device_get: index is %u; the trace has %u devices", index,
                       trace->catalog.device_count);
  const prof_trace_device device = device_from_state(&trace->catalog.devices[index]);
  return prof_i_sized_copy_out(device_out, &device, sizeof device, "prof_trace_device");
}

/* ---- as text ---- */

static const char *result_advice(int result) {
#define ADVICE(name, value, text, advice) \
  if (result == (value)) return advice;
  PROF_BACKEND_RESULT_LIST(ADVICE)
#undef ADVICE
  return "";
}

typedef struct text_line {
  char text[1024];
  size_t used;
} text_line;

static char *line_end(text_line *l) { return l->text + l->used; }
static size_t line_room(const text_line *l) { return sizeof l->text - l->used; }
static void line_grow(text_line *l, int wanted) {
  if (wanted > 0) l->used += (size_t)wanted < line_room(l) ? (size_t)wanted : line_room(l) - 1;
}
#define LINE_PUT(l, ...) line_grow(l, snprintf(line_end(l), line_room(l), __VA_ARGS__))

static void line_put_sanitized(text_line *l, const char *text) {
  char shown[PROF_I_SANITIZED_NAME_BYTES];
  const size_t count = prof_i_sanitize_name(shown, text);
  LINE_PUT(l, "%.*s", (int)count, shown);
}

static void line_put_late(text_line *l, const prof_trace_device *device) {
  char late[64];
  prof_i_put_time(late, sizeof late, device->records_late_ns, 0);
  LINE_PUT(
      l,
      "; its records began up to %s after the program began with it: what ran before is not there, "
      "nor counted",
      late);
}

/* is_less: of those the trace does not hold all any more. */
static void line_put_times(text_line *l, const prof_trace_device *device, bool is_less) {
  char error[64], early[64];
  prof_i_put_time(error, sizeof error, device->clock_error_ns, 0);
  prof_i_put_time(early, sizeof early, device->early_ns, 0);
  LINE_PUT(l, ": %llu scope%s", (unsigned long long)device->scope_count,
           device->scope_count == 1 ? "" : "s");
  if (device->record_count)
    LINE_PUT(l, ", %llu %s", (unsigned long long)device->record_count,
             device->record_count == 1 ? "kernel or copy" : "kernels and copies");
  if (is_less && (device->scope_count || device->record_count))
    LINE_PUT(l, " since recording began");
  /* an import's trace says nothing of its clocks */
  const bool has_error =
      (device->scope_count || device->record_count) && device->clock_error_ns > 0;
  if (has_error) LINE_PUT(l, ", times within %s of the host's", error);
  if (has_error && !device->is_clock_read)
    LINE_PUT(l, " (too early by that at most: its clock cannot be read)");
  if (device->has_two_clocks)
    LINE_PUT(l,
             " (its scopes' too early by that at most: the clock that can be read is its records' "
             "alone)");
  if (device->early_count)
    LINE_PUT(l, "; %llu were moved to their launch, by %s at most",
             (unsigned long long)device->early_count, early);
  if (device->clock_step_count)
    LINE_PUT(l, "; the clocks parted %llu times", (unsigned long long)device->clock_step_count);
  if (device->records_late_ns) line_put_late(l, device);
  if (device->captured_count)
    LINE_PUT(l, "; %llu more while the stream was captured into a graph: the host's side alone",
             (unsigned long long)device->captured_count);
  if (!device->reason[0]) return;
  LINE_PUT(l, prof_i_is_no_records(device->reason) ? "; it "
              : device->scope_count                ? "; the host's side alone of some: "
                                                   : "; of some nothing: ");
  line_put_sanitized(l, device->reason);
}

static void line_put_reason(text_line *l, const prof_trace_device *device) {
  const char *const advice = result_advice(device->result);
  LINE_PUT(l, prof_i_is_no_records(device->reason) ? ": it "
                                                   : ": the host's side of its scopes alone: ");
  line_put_sanitized(l, device->reason);
  if (*advice) LINE_PUT(l, "; %s", advice);
}

int prof_i_trace_device_text(const prof_trace *trace, uint32_t index, char **text_out) {
  prof_trace_device device = {.size = sizeof device};
  text_line l = {"", 0};
  char name[64];
  if (!text_out) return prof_i_fail(PROF_E_INVALID, "prof_trace_device_text: text_out is NULL");
  const int status = prof_trace_device_get(trace, index, &device);
  if (status != PROF_OK) return status;
  prof_i_put_device(name, sizeof name, device.device);
  LINE_PUT(&l, "%s", name);
  if (device.name[0]) LINE_PUT(&l, " ");
  line_put_sanitized(&l, device.name);
  if (device.is_emulated) LINE_PUT(&l, " (emulated: no device)");
  if (device.result == PROF_BACKEND_OK)
    line_put_times(&l, &device,
                   trace->lost[PROF_LOSS_CLEARED] || trace->lost[PROF_LOSS_OVERWRITTEN]);
  else
    line_put_reason(&l, &device);
  *text_out = strdup(l.text);
  return *text_out ? PROF_OK : prof_i_fail(PROF_E_NO_MEMORY, "no memory for a line of text");
}

int prof_trace_device_text(const prof_trace *trace, uint32_t index, char **text_out) {
  PROF_I_DEFAULT_FP;
  PROF_I_REFUSE_INTERRUPTED(PROF_E_BUSY);
  PROF_I_INSIDE;
  return prof_i_trace_device_text(trace, index, text_out);
}
