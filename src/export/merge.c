/* Several captures in one Perfetto file: the file, and what is known of a capture. merge_align.c
   places them in time. */
#include "merge.h"

#include "../base/log.h"
#include "../reader/capture.h"
#include "pftrace.h"

/* A step of the wall clock may have come before the start that counts, or after it. */
static uint64_t wall_error_ns(const prof_trace_info *info) {
  const int64_t moved = info->wall_step_ns;
  return moved < 0 ? 0 - (uint64_t)moved : (uint64_t)moved;
}

void prof_i_merge_describe(const prof_trace *trace, prof_i_merge_capture *capture_out) {
  prof_trace_info info = {.size = sizeof info};
  prof_trace_info_get(trace, &info);
  const bool has_rank = prof_i_world_has_ranks(info.world_size);
  *capture_out = (prof_i_merge_capture){
      .pid = info.pid,
      .rank = has_rank ? info.rank : -1,
      .has_processes = trace->catalog.process_count > 0,
      .start_ns = info.start_ns,
      .start_unix_ns = info.start_unix_ns,
      .duration_ns = info.duration_ns,
      .error_ns = info.clock_error_ns + trace->catalog.wall_width_ns + wall_error_ns(&info)};
  prof_i_copy_name(capture_out->host, sizeof capture_out->host, info.host, sizeof info.host);
  prof_i_copy_name(capture_out->boot_id, sizeof capture_out->boot_id, trace->header.boot_id,
                   sizeof trace->header.boot_id);
}

int prof_i_merge_begin(prof_i_merge *merge, const char *path, bool is_gzip) {
  *merge = (prof_i_merge){.next_sequence = 0};
  return prof_i_sink_open_file(&merge->sink, path, is_gzip, false);
}

int prof_i_merge_add(prof_i_merge *merge, const prof_trace *trace,
                     const prof_i_merge_capture *capture) {
  prof_trace_info info = {.size = sizeof info};
  prof_i_findings findings;
  int status = prof_trace_info_get(trace, &info);
  if (status != PROF_OK) return status;
  if (merge->count == PROF_I_MERGE_MAX)
    return prof_i_fail(PROF_E_INVALID, "a file holds %d captures at most", PROF_I_MERGE_MAX);
  const prof_i_export_place place = {.number = merge->count++,
                                     .first_sequence = merge->next_sequence,
                                     .start_unix_ns = capture->placed_unix_ns,
                                     .pid_offset = capture->pid_offset,
                                     .label = capture->label,
                                     .is_process_labelled = capture->is_process_labelled};
  const prof_i_export_options options = {.with_memory = true, .place = &place};
  status = prof_i_export_run(&prof_i_pftrace_exporter, trace, &options, &merge->sink, &findings);
  merge->next_sequence += PF_SEQUENCE_FIRST + info.thread_count;
  for (int i = 0; i < PROF_I_FINDING_COUNT; i++) merge->findings.counts[i] += findings.counts[i];
  return status;
}

int prof_i_merge_commit(prof_i_merge *merge) {
  char text[320];
  const int status = prof_i_sink_commit(&merge->sink);
  if (status != PROF_OK || prof_i_findings_faults(&merge->findings) == 0) return status;
  prof_i_findings_text(&merge->findings, text, sizeof text);
  return prof_i_fail(PROF_E_CHECK, "the file is written, but its self-check found: %s", text);
}

void prof_i_merge_abandon(prof_i_merge *merge) { prof_i_sink_abandon(&merge->sink); }
