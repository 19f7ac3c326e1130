/* Writes several captures into one file of an export format, one after the other. See merge.h. */
#include <stdlib.h>
#include <string.h>

#include "../base/log.h"
#include "../reader/capture.h"
#include "merge.h"
#include "pftrace.h"

/* ---- the common time line ---- */

uint64_t prof_i_merge_start_unix_ns(const prof_i_merge_capture *captures, uint32_t count) {
  uint64_t first = UINT64_MAX;
  for (uint32_t i = 0; i < count; i++)
    if (captures[i].placed_unix_ns < first) first = captures[i].placed_unix_ns;
  return first;
}

/* CLOCK_MONOTONIC where the time line begins, on the host of the first capture. */
static uint64_t first_start_ns(const prof_i_merge *merge) {
  const prof_i_merge_capture *const first = &merge->plan.captures[0];
  const uint64_t offset = first->placed_unix_ns - merge->start_unix_ns;
  return first->start_ns > offset ? first->start_ns - offset : 0;
}

static uint64_t whole_duration_ns(const prof_i_merge *merge) {
  uint64_t end = merge->start_unix_ns;
  for (uint32_t i = 0; i < merge->plan.count; i++) {
    const prof_i_merge_capture *const c = &merge->plan.captures[i];
    if (c->placed_unix_ns + c->duration_ns > end) end = c->placed_unix_ns + c->duration_ns;
  }
  return end - merge->start_unix_ns;
}

prof_i_window prof_i_merge_window(const prof_i_merge_capture *captures, uint32_t count,
                                  uint32_t index, const prof_i_window *window) {
  const uint64_t offset_ns =
      captures[index].placed_unix_ns - prof_i_merge_start_unix_ns(captures, count);
  const prof_i_window own = {window->from_ns > offset_ns ? window->from_ns - offset_ns : 0,
                             window->to_ns > offset_ns ? window->to_ns - offset_ns : 0};
  const prof_i_window nothing = {PROF_I_WINDOW_NOTHING, PROF_I_WINDOW_NOTHING};
  return window->to_ns && window->to_ns <= offset_ns ? nothing : own;
}

/* ---- a run for each capture ---- */

static void add_filtered(prof_i_export_filtered *sum, const prof_i_export_filtered *more) {
  prof_i_filtered_count *const sums[] = {&sum->scopes, &sum->arrows, &sum->memory, &sum->values};
  const prof_i_filtered_count *const counts[] = {&more->scopes, &more->arrows, &more->memory,
                                                 &more->values};
  for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) {
    sums[i]->written += counts[i]->written;
    sums[i]->left_out += counts[i]->left_out;
  }
  sum->event_count += more->event_count;
}

int prof_i_merge_begin(prof_i_merge *merge, const char *path, const prof_i_merge_plan *plan) {
  *merge = (prof_i_merge){.plan = *plan, .exporter = prof_i_exporter_of(plan->format)};
  merge->start_unix_ns = prof_i_merge_start_unix_ns(plan->captures, plan->count);
  merge->shared = calloc(1, merge->exporter->shared_bytes + 1);
  if (!merge->shared)
    return prof_i_fail(PROF_E_NO_MEMORY, "no memory to merge %u captures", plan->count);
  const int status = prof_i_sink_open_file(&merge->sink, path, plan->is_gzip, false);
  if (status != PROF_OK) free(merge->shared);
  return status;
}

int prof_i_merge_add(prof_i_merge *merge, const prof_trace *trace) {
  const prof_i_merge_capture *const capture = &merge->plan.captures[merge->count];
  const uint64_t offset_ns = capture->placed_unix_ns - merge->start_unix_ns;
  prof_trace_info info = {.size = sizeof info};
  prof_i_findings findings;
  prof_i_export_filtered filtered = {0};
  int status = prof_trace_info_get(trace, &info);
  if (status != PROF_OK) return status;
  const prof_i_export_place place = {.number = merge->count,
                                     .is_last = merge->count + 1 == merge->plan.count,
                                     .first_sequence = merge->next_sequence,
                                     .start_unix_ns = capture->placed_unix_ns,
                                     .start_ns = first_start_ns(merge) + offset_ns,
                                     .offset_ns = offset_ns,
                                     .duration_ns = whole_duration_ns(merge),
                                     .pid_offset = capture->pid_offset,
                                     .label = capture->label,
                                     .is_process_labelled = capture->is_process_labelled,
                                     .shared = merge->shared};
  const prof_i_export_options options = {
      .window = prof_i_merge_window(merge->plan.captures, merge->plan.count, merge->count,
                                    &merge->plan.window),
      .with_memory = true,
      .filter = merge->plan.filter,
      .filtered = &filtered,
      .place = &place};
  merge->count++;
  status = prof_i_export_run(merge->exporter, trace, &options, &merge->sink, &findings);
  merge->next_sequence += PF_SEQUENCE_FIRST + info.thread_count;
  for (int i = 0; i < PROF_I_FINDING_COUNT; i++) merge->findings.counts[i] += findings.counts[i];
  add_filtered(&merge->filtered, &filtered);
  return status;
}

static void free_shared(prof_i_merge *merge) {
  if (merge->exporter->destroy_shared) merge->exporter->destroy_shared(merge->shared);
  free(merge->shared);
}

int prof_i_merge_commit(prof_i_merge *merge) {
  char text[320];
  if (merge->plan.filter && merge->filtered.event_count == 0) {
    prof_i_merge_abandon(merge);
    return PROF_OK;
  }
  free_shared(merge);
  const int status = prof_i_sink_commit(&merge->sink);
  if (status != PROF_OK || prof_i_findings_faults(&merge->findings) == 0) return status;
  prof_i_findings_text(&merge->findings, text, sizeof text);
  return prof_i_fail(PROF_E_CHECK, "the file is written, but its self-check found: %s", text);
}

void prof_i_merge_abandon(prof_i_merge *merge) {
  free_shared(merge);
  prof_i_sink_abandon(&merge->sink);
}
