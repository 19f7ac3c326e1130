/* The capture format: a copy of the capture. It is whole and uncompressed, because a capture is
   opened by mapping it. */
#include <string.h>

#include "../format/layout.h"
#include "exporter.h"

/* A copy of what is being recorded says so, or it would be taken for what a process left that
   died. */
static int copy_capture(const prof_trace *trace, prof_i_sink *sink) {
  uint64_t count = 0, done = 0;
  const void *bytes = prof_i_trace_bytes_at(trace, 0, &count);
  prof_trace_info info = {.size = sizeof info};
  prof_trace_info_get(trace, &info);
  if (info.is_live && !info.was_clean) {
    prof_i_header header;
    memcpy(&header, bytes, done = sizeof header);
    header.state = PROF_I_STATE_COPIED;
    prof_i_trace_opened_at(trace, &header.copied_ticks, &header.copied_ns);
    prof_i_sink_bytes(sink, &header, sizeof header);
  }
  for (; (bytes = prof_i_trace_bytes_at(trace, done, &count)) != NULL && count; done += count)
    prof_i_sink_bytes(sink, bytes, count);
  return sink->status;
}

const prof_i_exporter prof_i_capture_exporter = {.name = "capture",
                                                 .format = PROF_FORMAT_CAPTURE,
                                                 .suffixes = {".prof"},
                                                 .is_private = true,
                                                 .copy = copy_capture};
