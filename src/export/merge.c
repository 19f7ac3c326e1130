/* Several captures in one file of an export format: describes them, places them on one time line,
   and writes them one after the other. See merge.h. */
#include "merge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/error.h"
#include "../reader/capture.h"
#include "pftrace.h"

/* ---- clocks ---- */

/* Places captures on one time line. Processes of one boot of a machine share CLOCK_MONOTONIC, so
   their order is as exact as their clock pairs. Machines share nothing but the time of day: what a
   capture knows is its error of reading, not how far two wall clocks are apart. */

/* When the captures of a host were recorded. */
typedef struct host_span {
  uint64_t begin_ns, end_ns; /* widened by the error */
  uint32_t number;           /* of its first capture */
} host_span;

static bool is_same_boot(const prof_i_merge_capture *a, const prof_i_merge_capture *b) {
  return a->boot_id[0] != '\0' && strcmp(a->boot_id, b->boot_id) == 0;
}

/* ---- hosts ---- */

/* What the wall clock says beyond CLOCK_MONOTONIC. */
static uint64_t wall_ahead_ns(const prof_i_merge_capture *capture) {
  return capture->start_unix_ns - capture->start_ns;
}

static void place_on_host(prof_i_merge_capture *captures, uint32_t index) {
  enum { SETTING_NS_MIN = 1000000 }; /* less may come from the reading, or from slewing */
  prof_i_merge_capture *const capture = &captures[index];
  uint32_t first = 0;
  while (first < index && !is_same_boot(&captures[first], capture)) first++;
  const prof_i_merge_capture *const host = &captures[first];
  capture->host_number = first;
  capture->placed_unix_ns = host->start_unix_ns + (capture->start_ns - host->start_ns);
  const int64_t moved = (int64_t)(wall_ahead_ns(capture) - wall_ahead_ns(host));
  const uint64_t size = moved < 0 ? 0 - (uint64_t)moved : (uint64_t)moved;
  const bool is_set = size > capture->error_ns + host->error_ns + SETTING_NS_MIN;
  capture->wall_moved_ns = is_set ? moved : 0;
}

/* Returns how many hosts there are. */
static uint32_t find_spans(const prof_i_merge_capture *captures, uint32_t count, host_span *spans) {
  uint32_t span_count = 0;
  for (uint32_t i = 0; i < count; i++) {
    const prof_i_merge_capture *const c = &captures[i];
    const uint64_t begin = c->placed_unix_ns > c->error_ns ? c->placed_unix_ns - c->error_ns : 0,
                   end = c->placed_unix_ns + c->duration_ns + c->error_ns;
    uint32_t at = 0;
    while (at < span_count && spans[at].number != c->host_number) at++;
    if (at == span_count) spans[span_count++] = (host_span){begin, end, c->host_number};
    if (begin < spans[at].begin_ns) spans[at].begin_ns = begin;
    if (end > spans[at].end_ns) spans[at].end_ns = end;
  }
  return span_count;
}

static int span_compare(const void *x, const void *y) {
  const host_span *const a = x, *const b = y;
  if (a->begin_ns != b->begin_ns) return a->begin_ns < b->begin_ns ? -1 : 1;
  return (a->number > b->number) - (a->number < b->number);
}

const char *prof_i_merge_host_text(const prof_i_merge_capture *capture,
                                   char to[PROF_I_MERGE_HOST_BYTES]) {
  if (capture->host[0])
    snprintf(to, PROF_I_MERGE_HOST_BYTES, "host '%s'", capture->host);
  else
    snprintf(to, PROF_I_MERGE_HOST_BYTES, "an unknown host");
  return to;
}

/* Sorts the spans. */
static int check_overlap(const prof_i_merge_capture *captures, host_span *spans, uint32_t count) {
  qsort(spans, count, sizeof *spans, span_compare);
  const host_span *last = &spans[0];
  for (uint32_t i = 1; i < count; i++) {
    const prof_i_merge_capture *const late = &captures[spans[i].number];
    const prof_i_merge_capture *const early = &captures[last->number];
    const bool is_one_name = late->host[0] && strcmp(late->host, early->host) == 0;
    char host[PROF_I_MERGE_HOST_BYTES], before[PROF_I_MERGE_HOST_BYTES];
    if (spans[i].begin_ns > last->end_ns)
      return prof_i_fail(PROF_E_INVALID,
                         "the captures of %s begin %.6f s after those of %s%s have ended, by their "
                         "wall clocks: they were not recorded together, or a clock is wrong",
                         prof_i_merge_host_text(late, host),
                         (double)(spans[i].begin_ns - last->end_ns) / 1e9,
                         prof_i_merge_host_text(early, before),
                         is_one_name ? " (of another boot, or imported)" : "");
    if (spans[i].end_ns > last->end_ns) last = &spans[i];
  }
  return PROF_OK;
}

/* Each host's first capture starts when the very first one does. */
static void start_together(prof_i_merge_capture *captures, uint32_t count) {
  for (uint32_t host = 0; host < count; host++) {
    uint64_t first = UINT64_MAX;
    for (uint32_t i = 0; i < count; i++)
      if (captures[i].host_number == host && captures[i].placed_unix_ns < first)
        first = captures[i].placed_unix_ns;
    uint64_t wanted = UINT64_MAX;
    for (uint32_t i = 0; i < count; i++)
      if (captures[i].host_number == captures[0].host_number && captures[i].placed_unix_ns < wanted)
        wanted = captures[i].placed_unix_ns;
    for (uint32_t i = 0; i < count; i++)
      if (captures[i].host_number == host) captures[i].placed_unix_ns += wanted - first;
  }
}

/* ---- processes ---- */

/* Could the numbers of two captures' processes be equal? */
static bool may_share_pids(const prof_i_merge_capture *a, const prof_i_merge_capture *b) {
  return a->has_processes || b->has_processes || a->pid == b->pid;
}

enum { KERNEL_PIDS = 1 << 22, GROUPS_MAX = 255, MADE_FIRST = 1 << 30 };

static bool has_pid(const prof_i_merge_capture *capture, uint64_t pid) {
  return pid >= capture->least_pid + capture->pid_offset &&
         pid <= capture->most_pid + capture->pid_offset && capture->least_pid <= capture->most_pid;
}

static bool group_is_free(const prof_i_merge_capture *captures, uint32_t index, uint32_t group) {
  const prof_i_merge_capture *const capture = &captures[index];
  const uint64_t offset = (uint64_t)KERNEL_PIDS * group, first = capture->least_pid + offset,
                 last = capture->most_pid + offset;
  for (uint32_t i = 0; i < index; i++) {
    const uint64_t other = captures[i].least_pid + captures[i].pid_offset;
    if (has_pid(&captures[i], first) || (other >= first && other <= last)) return false;
  }
  return true;
}

/* An imported trace of prof's own may have numbers of several groups. If its numbers are too far
   apart for any free group, it gets the first one. */
static uint32_t find_group(const prof_i_merge_capture *captures, uint32_t index, uint32_t first) {
  for (uint32_t group = first; group <= GROUPS_MAX; group++)
    if (group_is_free(captures, index, group)) return group;
  return first;
}

/* From `first` on, a number that no capture has. */
static uint64_t find_made(const prof_i_merge_capture *captures, uint32_t count, uint64_t first) {
  uint64_t made = first;
  for (uint32_t i = 0; i < count; i++) {
    if (!has_pid(&captures[i], made)) continue;
    made = captures[i].most_pid + captures[i].pid_offset + 1;
    i = UINT32_MAX; /* from the first one again */
  }
  return made;
}

/* Viewers take two processes of one number for one. Numbers up to 2^22 are the kernel's. */
static int separate_pids(prof_i_merge_capture *captures, uint32_t count) {
  uint32_t groups = 0;
  uint64_t made = MADE_FIRST;
  for (uint32_t i = 1; i < count; i++) {
    uint32_t before = 0;
    while (before < i && !may_share_pids(&captures[before], &captures[i])) before++;
    if (before == i) continue;
    if (!captures[i].has_processes) {
      made = find_made(captures, count, made);
      captures[i].pid_offset = made++ - captures[i].pid;
    } else if (groups < GROUPS_MAX) {
      captures[i].pid_offset = (uint64_t)KERNEL_PIDS * find_group(captures, i, ++groups);
    } else {
      return prof_i_fail(PROF_E_INVALID, "more than %d imported traces of several processes",
                         GROUPS_MAX);
    }
  }
  return PROF_OK;
}

static void set_label(prof_i_merge_capture *capture, bool has_hosts) {
  const bool is_host_shown = has_hosts && capture->host[0];
  char number[32];
  if (capture->rank >= 0)
    snprintf(number, sizeof number, "rank %d", (int)capture->rank);
  else
    snprintf(number, sizeof number, "process %u", capture->pid);
  snprintf(capture->label, sizeof capture->label, "%s%s%s", number, is_host_shown ? " on " : "",
           is_host_shown ? capture->host : "");
  capture->is_process_labelled = capture->rank >= 0 || has_hosts || capture->pid_offset;
}

/* Labels that come again, as of processes with one number, get a number: "process 77 (2)". */
static void number_labels(prof_i_merge_capture *captures, uint32_t count) {
  for (uint32_t i = count; i-- > 1;) {
    char *const label = captures[i].label;
    const size_t bytes = strlen(label);
    uint32_t number = 1;
    for (uint32_t before = 0; before < i; before++)
      number += strcmp(captures[before].label, label) == 0;
    if (number > 1) snprintf(label + bytes, sizeof captures[i].label - bytes, " (%u)", number);
  }
}

int prof_i_merge_align(prof_i_merge_capture *captures, uint32_t count, bool is_unaligned) {
  host_span *const spans = calloc(count, sizeof *spans);
  if (!spans) return prof_i_fail(PROF_E_NO_MEMORY, "no memory for %u captures", count);
  for (uint32_t i = 0; i < count; i++) place_on_host(captures, i);
  if (is_unaligned) start_together(captures, count);
  const uint32_t span_count = find_spans(captures, count, spans);
  int status = check_overlap(captures, spans, span_count);
  free(spans);
  if (status == PROF_OK) status = separate_pids(captures, count);
  for (uint32_t i = 0; i < count; i++) set_label(&captures[i], span_count > 1);
  number_labels(captures, count);
  return status;
}

/* A step of the wall clock may have come before the start that counts, or after it. */
static uint64_t wall_error_ns(const prof_trace_info *info) {
  const int64_t moved = info->wall_step_ns;
  return moved < 0 ? 0 - (uint64_t)moved : (uint64_t)moved;
}

/* Numbers of processes that do not fit into Perfetto's 32 bits do not count. */
static void find_pids(const prof_trace *trace, prof_i_merge_capture *capture) {
  const prof_i_catalog *const catalog = &trace->catalog;
  capture->least_pid = UINT32_MAX;
  capture->most_pid = 0;
  for (uint32_t i = 0; i <= catalog->process_count; i++) {
    const int64_t pid = i > 0 ? catalog->processes[i - 1].pid : capture->pid;
    if (pid < 0 || pid > INT32_MAX) continue;
    if (pid < capture->least_pid) capture->least_pid = (uint32_t)pid;
    if (pid > capture->most_pid) capture->most_pid = (uint32_t)pid;
  }
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
      .event_count = info.event_count,
      .error_ns = info.clock_error_ns + trace->catalog.wall_width_ns + wall_error_ns(&info)};
  find_pids(trace, capture_out);
  prof_i_export_facts_add(&capture_out->facts, trace);
  prof_i_copy_name(capture_out->host, sizeof capture_out->host, info.host, sizeof info.host);
  prof_i_copy_name(capture_out->boot_id, sizeof capture_out->boot_id, trace->header.boot_id,
                   sizeof trace->header.boot_id);
}

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
  prof_i_window own = {window->from_ns > offset_ns ? window->from_ns - offset_ns : 0,
                       window->to_ns > offset_ns ? window->to_ns - offset_ns : 0};
  if (window->to_ns && window->to_ns <= offset_ns) own.from_ns = UINT64_MAX; /* is empty */
  return own;
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
      .lacks = &merge->lacks,
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
