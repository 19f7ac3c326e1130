/* The lines below a table's rows: sums, notes, losses, devices, and what recording cost. They are
   of the processes, threads and devices that the table's filter takes. See table.h. */
#include "table.h"

#include <prof/profiler.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../analysis/filter.h"
#include "../analysis/internal.h"
#include "../base/display.h"
#include "../base/error.h"
#include "../format/layout.h"
#include "../reader/capture.h"
#include "../reader/internal.h"

enum { CELL_BYTES = PROF_I_SANITIZED_NAME_BYTES, CHANGES_SHOWN = 10 };

typedef prof_i_table table;

prof_trace_info prof_i_table_info(const prof_trace *trace) {
  prof_trace_info info = {.size = sizeof info};
  prof_trace_info_get(trace, &info);
  return info;
}

/* ---- rows ---- */

bool prof_i_table_find_fibers(const prof_i_table *t) {
  for (size_t i = 0; i < t->trace_count; i++) {
    const uint32_t count = prof_i_table_info(t->traces[i]).thread_count;
    for (uint32_t index = 0; index < count; index++) {
      prof_trace_thread thread = {.size = sizeof thread};
      if (prof_trace_thread_get(t->traces[i], index, &thread) == PROF_OK && thread.is_fiber)
        return true;
    }
  }
  return false;
}

bool prof_i_table_lacks_durations(const prof_i_table *t, const prof_row *row) {
  return t->has_fibers && row->calls_count > 0 && row->max_ns == 0 && row->total_ns == 0 &&
         row->self_ns == 0;
}

static uint64_t count_without_durations(const table *t) {
  uint64_t count = 0;
  for (uint64_t i = 0; i < t->rows->row_count; i++)
    count += prof_i_table_lacks_durations(t, &t->rows->rows[i]);
  return count;
}

bool prof_i_table_has_durations(const table *t) {
  return t->rows->row_count == 0 || count_without_durations(t) < t->rows->row_count;
}

bool prof_i_table_has_total_share(const table *t, const prof_row *row) {
  return !row->is_async && row->total_ns <= t->rows->all_self_ns;
}

/* ---- processes, changes, devices and losses ---- */

/* Its process, where there are several. */
static void table_put_process(table *t, const prof_trace *trace) {
  char cell[CELL_BYTES], pid[32], rank[32] = "";
  if (t->trace_count == 1) return;
  const prof_trace_info info = prof_i_table_info(trace);
  if (prof_i_world_has_ranks(info.world_size)) snprintf(rank, sizeof rank, "rank %d, ", info.rank);
  prof_i_text_buffer_append_text(&t->page, rank);
  prof_i_text_buffer_append(&t->page, cell, prof_i_sanitize_name(cell, info.process_name));
  snprintf(pid, sizeof pid, " (%llu): ", (unsigned long long)info.pid);
  prof_i_text_buffer_append_text(&t->page, pid);
}

/* What was left out to make recording cheaper. */
static int table_put_changes(table *t, const prof_trace *trace) {
  char line[128], *change;
  const prof_trace_info info = prof_i_table_info(trace);
  if (info.untold_change_count) {
    table_put_process(t, trace);
    snprintf(line, sizeof line, "%llu change%s had no room in the capture\n",
             (unsigned long long)info.untold_change_count,
             info.untold_change_count == 1 ? "" : "s");
    prof_i_text_buffer_append_text(&t->page, line);
  }
  const uint32_t first = info.change_count > CHANGES_SHOWN ? info.change_count - CHANGES_SHOWN : 0;
  if (first) {
    table_put_process(t, trace);
    snprintf(line, sizeof line, "%u change%s before these:\n", first, first == 1 ? "" : "s");
    prof_i_text_buffer_append_text(&t->page, line);
  }
  for (uint32_t i = first; i < info.change_count; i++) {
    const int status = prof_i_trace_change_text(trace, i, &change);
    if (status) return status;
    table_put_process(t, trace);
    prof_i_text_buffer_append_text(&t->page, change);
    prof_i_text_buffer_append_text(&t->page, "\n");
    free(change);
  }
  return PROF_OK;
}

static bool table_takes_device(const table *t, const prof_i_device_state *device) {
  const char *const word = t->filter ? t->filter->words.device : NULL;
  return !word || prof_i_filter_takes_device(word, (prof_device){device->type, device->index});
}

/* What their times are worth, or why there are none. */
static int table_put_devices(table *t, const prof_trace *trace) {
  const uint32_t count = prof_i_table_info(trace).device_count;
  for (uint32_t i = 0; i < count; i++) {
    char *text;
    if (!table_takes_device(t, &trace->catalog.devices[i])) continue;
    const int status = prof_i_trace_device_text(trace, i, &text);
    if (status) return status;
    table_put_process(t, trace);
    prof_i_text_buffer_append_text(&t->page, text);
    prof_i_text_buffer_append_text(&t->page, "\n");
    free(text);
  }
  return PROF_OK;
}

/* Events of the threads that the filter takes. */
typedef struct shown_counts {
  bool is_part; /* it leaves out threads of the capture */
  uint64_t recorded, open, bad;
  uint64_t lost[PROF_LOSS_COUNT];
  uint64_t lost_anywhere; /* if is_part: of no known thread, but not forked */
} shown_counts;

static void add_thread(shown_counts *counts, const prof_i_trace_thread *thread) {
  counts->recorded += thread->event_count - thread->open_count;
  counts->open += thread->open_count;
  for (int i = 0; i < PROF_LOSS_COUNT; i++) counts->lost[i] += thread->lost[i];
}

/* Losses of the capture that none of its threads has. */
static uint64_t lost_by_no_thread(const prof_trace *trace) {
  uint64_t sum = 0;
  for (int i = 0; i < PROF_LOSS_COUNT; i++) {
    uint64_t by_threads = 0;
    for (uint32_t thread = 0; thread < trace->thread_count; thread++)
      by_threads += trace->threads[thread].lost[i];
    if (i != PROF_LOSS_FORKED && trace->lost[i] > by_threads) sum += trace->lost[i] - by_threads;
  }
  return sum;
}

static shown_counts count_shown(const table *t, const prof_trace *trace) {
  const prof_trace_info info = prof_i_table_info(trace);
  shown_counts all = {.recorded = info.event_count - info.open_count,
                      .open = info.open_count + info.open_below_count,
                      .bad = info.bad_count},
               part = {.is_part = true, .bad = info.bad_count};
  uint32_t taken_count = 0;
  memcpy(all.lost, info.lost_count, sizeof all.lost);
  for (uint32_t i = 0; i < trace->thread_count; i++) {
    if (!prof_i_filter_takes_thread(t->filter, trace, i)) continue;
    add_thread(&part, &trace->threads[i]);
    taken_count++;
  }
  if (taken_count == trace->thread_count) return all;
  part.lost_anywhere = lost_by_no_thread(trace);
  return part;
}

static uint64_t sum_of_losses(const shown_counts *counts) {
  uint64_t sum = 0;
  for (int i = 0; i < PROF_LOSS_COUNT; i++) sum += counts->lost[i];
  return sum;
}

/* "100 recorded; lost 3: 2 full, 1 disk; 1 scope had not ended yet", of some threads. */
static void table_put_part_of_loss(table *t, const shown_counts *counts) {
  prof_i_text_buffer *const page = &t->page;
  const unsigned long long lost = sum_of_losses(counts);
  prof_i_text_buffer_printf(page, "%llu recorded; ", (unsigned long long)counts->recorded);
  if (lost)
    prof_i_text_buffer_printf(page, "lost %llu:", lost);
  else
    prof_i_text_buffer_append_text(page, counts->bad ? "no loss counted" : "no loss");
  for (int i = 0, n = 0; i < PROF_LOSS_COUNT; i++)
    if (counts->lost[i])
      prof_i_text_buffer_printf(page, "%s %llu %s", n++ ? "," : "",
                                (unsigned long long)counts->lost[i], prof_loss_name(i));
  if (counts->open)
    prof_i_text_buffer_printf(page, "; %llu scope%s had not ended yet",
                              (unsigned long long)counts->open, counts->open == 1 ? "" : "s");
  if (counts->lost_anywhere)
    prof_i_text_buffer_printf(page, "; %llu more lost by threads that are not known",
                              (unsigned long long)counts->lost_anywhere);
  if (counts->bad) prof_i_text_buffer_append_text(page, "; the capture is damaged, or cut off");
}

static int table_put_loss(table *t, const prof_trace *trace, const shown_counts *counts) {
  char *loss = NULL;
  const int status = counts->is_part ? PROF_OK : prof_i_trace_loss_text(trace, &loss);
  if (status) return status;
  table_put_process(t, trace);
  if (counts->is_part)
    table_put_part_of_loss(t, counts);
  else
    prof_i_text_buffer_append_text(&t->page, loss);
  prof_i_text_buffer_append_text(&t->page, "\n");
  free(loss);
  return PROF_OK;
}

/* An open scope is not lost. Scopes open across a fork are in the parent's trace: only the line of
   the sum counts them. */
static bool losses_are_whole(const shown_counts *counts) {
  return !counts->bad && !counts->lost_anywhere &&
         sum_of_losses(counts) == counts->lost[PROF_LOSS_FORKED];
}

static bool is_same_process(const prof_i_header *a, const prof_i_header *b) {
  return a->process_start != 0 && a->process_start == b->process_start && a->pid == b->pid &&
         a->namespace_pid == b->namespace_pid && strncmp(a->host, b->host, sizeof a->host) == 0;
}

/* A process that executes a second program has a second capture. */
static size_t count_processes(const table *t) {
  size_t count = 0;
  for (size_t i = 0; i < t->trace_count; i++) {
    size_t before = 0;
    while (before < i && !is_same_process(&t->traces[before]->header, &t->traces[i]->header))
      before++;
    count += before == i;
  }
  return count;
}

/* "4 processes, ranks 0 to 3: " */
static void table_put_processes(table *t) {
  char line[128], ranks[64] = "";
  const size_t count = count_processes(t);
  int32_t least = INT32_MAX, most = -1;
  for (size_t i = 0; i < t->trace_count; i++) {
    const prof_trace_info info = prof_i_table_info(t->traces[i]);
    if (!prof_i_world_has_ranks(info.world_size)) continue;
    if (info.rank < least) least = info.rank;
    if (info.rank > most) most = info.rank;
  }
  if (most >= 0 && most == least)
    snprintf(ranks, sizeof ranks, ", rank %d", most);
  else if (most >= 0)
    snprintf(ranks, sizeof ranks, ", ranks %d to %d", least, most);
  snprintf(line, sizeof line, "%zu process%s%s: ", count, count == 1 ? "" : "es", ranks);
  prof_i_text_buffer_append_text(&t->page, line);
}

/* Of one trace its line. Of several their sum, and the lines of those that are not whole or have
   open scopes. */
static int table_put_losses(table *t) {
  char line[128];
  uint64_t recorded = 0, forked = 0, open = 0;
  size_t broken = 0;
  for (size_t i = 0; i < t->trace_count; i++) {
    const shown_counts counts = count_shown(t, t->traces[i]);
    if (t->trace_count == 1) return table_put_loss(t, t->traces[0], &counts);
    recorded += counts.recorded;
    forked += counts.lost[PROF_LOSS_FORKED];
    open += counts.open;
    broken += !losses_are_whole(&counts);
  }
  table_put_processes(t);
  snprintf(line, sizeof line, "%llu recorded; ", (unsigned long long)recorded);
  prof_i_text_buffer_append_text(&t->page, line);
  if (broken)
    snprintf(line, sizeof line, "%zu of them not whole", broken);
  else if (forked)
    snprintf(line, sizeof line, "no loss but %llu forked", (unsigned long long)forked);
  else
    snprintf(line, sizeof line, "no loss");
  prof_i_text_buffer_append_text(&t->page, line);
  snprintf(line, sizeof line, "; %llu scope%s had not ended yet", (unsigned long long)open,
           open == 1 ? "" : "s");
  if (open) prof_i_text_buffer_append_text(&t->page, line);
  prof_i_text_buffer_append_text(&t->page, broken || open ? ":\n" : "\n");
  int status = PROF_OK;
  for (size_t i = 0; !status && i < t->trace_count; i++) {
    const shown_counts counts = count_shown(t, t->traces[i]);
    if (!losses_are_whole(&counts) || counts.open)
      status = table_put_loss(t, t->traces[i], &counts);
  }
  return status;
}

/* What recording cost, all processes together, and the changes. */
static int table_put_losses_and_cost(table *t) {
  char line[160], time[64], most[64];
  uint64_t own_ns = 0, least_ns = 0, most_ns = 0;
  bool is_apart = false, is_known = true;
  int status = PROF_OK;
  for (size_t i = 0; i < t->trace_count; i++) {
    const prof_trace_info info = prof_i_table_info(t->traces[i]);
    if (!(info.scope_cost_ns > 0)) continue;
    own_ns += info.own_ns;
    least_ns += info.own_least_ns;
    most_ns += info.own_most_ns;
    is_apart |= info.is_own_apart != 0;
    is_known &= info.is_own_sampled || info.own_ns == 0;
  }
  prof_i_put_time(time, sizeof time, is_apart || !is_known ? least_ns : own_ns, t->time_unit);
  prof_i_put_time(most, sizeof most, most_ns, t->time_unit);
  snprintf(line, sizeof line, "Recording took: %s%s%s%s\n", is_known ? "" : "at least ", time,
           is_apart && is_known ? " to " : "", is_apart && is_known ? most : "");
  if (own_ns) prof_i_text_buffer_append_text(&t->page, line);
  for (size_t i = 0; !status && i < t->trace_count; i++)
    status = table_put_changes(t, t->traces[i]);
  return status;
}

/* What cells cannot say. */
static void table_put_notes(table *t) {
  char line[256];
  const unsigned long long skipped = t->rows->skipped_count;
  uint64_t without_share = 0;
  for (uint64_t i = 0; i < t->rows->row_count; i++)
    without_share += !prof_i_table_lacks_durations(t, &t->rows->rows[i]) &&
                     !prof_i_table_has_total_share(t, &t->rows->rows[i]);
  if (without_share)
    prof_i_text_buffer_append_text(&t->page,
                                   "Total % is empty where calls overlap on their thread, or are "
                                   "asynchronous: their sum is no part of its time\n");
  if (prof_i_table_has_durations(t) && count_without_durations(t))
    prof_i_text_buffer_append_text(&t->page, "--: the durations of these calls are not known\n");
  if (!skipped) return;
  snprintf(line, sizeof line,
           "Skipped: a jump left %llu scope%s. No other column has them: their end is not known\n",
           skipped, skipped == 1 ? "" : "s");
  prof_i_text_buffer_append_text(&t->page, line);
}

/* "12.345ms of 1.234s" */
static void table_put_self_time(const table *t, char *to, size_t room) {
  char time[64], all[64];
  const prof_rows *const rows = t->rows;
  const bool is_part = rows->all_self_ns != rows->total_self_ns;
  prof_i_put_time(time, sizeof time, rows->total_self_ns, t->time_unit);
  prof_i_put_time(all, sizeof all, rows->all_self_ns, t->time_unit);
  snprintf(to, room, "%s%s%s", time, is_part ? " of " : "", is_part ? all : "");
}

/* An import of a filtered or cut trace says that self times are too long. */
static int table_put_parts(table *t) {
  for (size_t i = 0; i < t->trace_count; i++) {
    const uint32_t count = prof_i_table_info(t->traces[i]).note_count;
    for (uint32_t note = 0; note < count; note++) {
      char *text;
      const int status = prof_i_trace_note_text(t->traces[i], note, &text);
      if (status != PROF_OK) return status;
      if (prof_i_is_part_note(text)) {
        prof_i_text_buffer_append_text(&t->page, text);
        prof_i_text_buffer_append_text(&t->page, "\n");
      }
      free(text);
    }
  }
  return PROF_OK;
}

/* Whether the filter takes a thread of the capture. */
static bool table_takes_trace(const table *t, const prof_trace *trace) {
  if (!t->filter ||
      (!t->filter->words.thread && !t->filter->words.process && !t->filter->words.rank))
    return true;
  uint32_t i = 0;
  while (i < trace->thread_count && !prof_i_filter_takes_thread(t->filter, trace, i)) i++;
  return i < trace->thread_count;
}

/* The lines of captures. t->traces: those that the filter takes. */
static int table_put_captures(table *t) {
  int status = table_put_parts(t);
  if (!status) status = table_put_losses(t);
  for (size_t i = 0; !status && i < t->trace_count; i++)
    status = table_put_devices(t, t->traces[i]);
  return status ? status : table_put_losses_and_cost(t);
}

/* The same, as if the other captures were not there. */
static int table_put_taken_captures(table *t) {
  const prof_trace *const *const traces = t->traces;
  const size_t count = t->trace_count;
  const prof_trace **const taken = malloc((count + 1) * sizeof *taken);
  if (!taken) return prof_i_fail(PROF_E_NO_MEMORY, "no memory for %zu captures", count);
  size_t taken_count = 0;
  for (size_t i = 0; i < count; i++)
    if (table_takes_trace(t, traces[i])) taken[taken_count++] = traces[i];
  t->traces = taken;
  t->trace_count = taken_count;
  const int status = taken_count ? table_put_captures(t) : PROF_OK;
  t->traces = traces;
  t->trace_count = count;
  free(taken);
  return status;
}

int prof_i_table_put_footer(table *t) {
  char line[256], time[160];
  const prof_rows *const rows = t->rows;
  const bool is_timed = prof_i_table_has_durations(t);
  table_put_self_time(t, time, sizeof time);
  snprintf(line, sizeof line, "%s%s%s%llu call%s, %llu group%s",
           is_timed ? "Self time total: " : "No durations are known: ", is_timed ? time : "",
           is_timed ? " in " : "", (unsigned long long)rows->calls_count,
           rows->calls_count == 1 ? "" : "s", (unsigned long long)rows->all_row_count,
           rows->all_row_count == 1 ? "" : "s");
  prof_i_text_buffer_append_text(&t->page, line);
  if (rows->all_row_count > rows->row_count) {
    snprintf(line, sizeof line, " (%llu not shown)",
             (unsigned long long)(rows->all_row_count - rows->row_count));
    prof_i_text_buffer_append_text(&t->page, line);
  }
  prof_i_text_buffer_append_text(&t->page, "\n");
  if (rows->total_self_device_ns) {
    prof_i_put_time(time, sizeof time, rows->total_self_device_ns, t->time_unit);
    snprintf(line, sizeof line, "Self device time total: %s\n", time);
    prof_i_text_buffer_append_text(&t->page, line);
  }
  table_put_notes(t);
  return table_put_taken_captures(t);
}
