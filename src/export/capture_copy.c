/* The capture format: a copy of the capture. It is whole and uncompressed, because a capture is
   opened by mapping it. */
#include <string.h>

#include "capture_header.h"
#include "exporter.h"

void prof_i_capture_header(const prof_trace *trace, prof_i_header *header_out) {
  uint64_t count = 0;
  prof_trace_info info = {.size = sizeof info};
  prof_trace_info_get(trace, &info);
  memcpy(header_out, prof_i_trace_bytes_at(trace, 0, &count), sizeof *header_out);
  if (!info.is_live || info.was_clean) return;
  header_out->state = PROF_I_STATE_COPIED;
  prof_i_trace_opened_at(trace, &header_out->copied_ticks, &header_out->copied_ns);
}

static int copy_capture(const prof_trace *trace, prof_i_sink *sink) {
  uint64_t count = 0, done = sizeof(prof_i_header);
  const void *bytes;
  prof_i_header header;
  prof_i_capture_header(trace, &header);
  prof_i_sink_bytes(sink, &header, sizeof header);
  for (; (bytes = prof_i_trace_bytes_at(trace, done, &count)) != NULL && count; done += count)
    prof_i_sink_bytes(sink, bytes, count);
  return sink->status;
}

const prof_i_exporter prof_i_capture_exporter = {.name = "capture",
                                                 .format = PROF_FORMAT_CAPTURE,
                                                 .suffixes = {".prof"},
                                                 .is_private = true,
                                                 .copy = copy_capture};
