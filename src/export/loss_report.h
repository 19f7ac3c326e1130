/* What is missing from a trace, and why: as JSON, the same in every export. */
#ifndef PROF_EXPORT_LOSS_REPORT_H
#define PROF_EXPORT_LOSS_REPORT_H

#include <prof/trace.h>
#include <stdbool.h>

#include "../sink/sink.h"

/* {"total":3,"full":3,...} */
void prof_i_loss_report_counts(prof_i_sink *sink, const uint64_t counts[16]);

/* "level 2 -> 1: thread 4711 spent ...", a string: the line of prof_trace_change_text() without its
   time. */
void prof_i_loss_report_change(prof_i_sink *sink, const prof_trace *trace, uint32_t index);

/* [{"at_ns":1,"change":"..."}, ..., {"untold":5}] */
void prof_i_loss_report_changes(prof_i_sink *sink, const prof_trace *trace);

/* ["not taken: 3 ends without a begin", ...]: what the capture's writer says of it. */
void prof_i_loss_report_notes(prof_i_sink *sink, const prof_trace *trace, uint32_t count);

/* Silent: scopes were put on it, or records asked for, and not one of its own times is there. Late:
   its records began after the program had. */
typedef enum prof_i_device_selection {
  PROF_I_DEVICES_ALL,
  PROF_I_DEVICES_SILENT,
  PROF_I_DEVICES_LATE
} prof_i_device_selection;

/* ["opencl:0 ...: 12 scopes, times within ...", ...], as under the table. */
void prof_i_loss_report_devices(prof_i_sink *sink, const prof_trace *trace,
                                prof_i_device_selection which);
uint32_t prof_i_loss_report_devices_of(const prof_trace *trace, prof_i_device_selection which);

#endif
