/* Level and mute changes and notes of a capture, as values and as lines of text. */
#define _GNU_SOURCE
#include <prof/trace.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/display.h"
#include "../base/error.h"
#include "../base/options.h"
#include "../base/port.h"
#include "../base/process.h"
#include "capture.h"
#include "internal.h"

enum { NAME_SHOWN_BYTES = 64, LINE_BYTES = 1024, TEXT_BYTES = 4 * (NAME_SHOWN_BYTES * 8 + 4) };

static double amount_unit(const prof_i_change_record *seen, uint64_t value) {
  return seen->reason == PROF_REASON_TIME ? (double)value / 1e4 : (double)value;
}

static uint32_t thread_index(const prof_trace *trace, uint64_t serial) {
  const prof_i_trace_thread *const thread = serial ? prof_i_index_thread(trace, serial) : NULL;
  return thread ? (uint32_t)(thread - trace->threads) : UINT32_MAX;
}

static prof_trace_change change_from_record(const prof_trace *trace,
                                            const prof_i_change_record *seen) {
  const prof_i_time_line *line = trace->timeline.lines;
  prof_trace_change change;
  memset(&change, 0, sizeof change);
  change.at_ns = prof_i_timeline_ns(&trace->timeline, &line, seen->ticks);
  change.kind = seen->kind;
  change.reason = seen->reason;
  change.level_before = seen->level_before;
  change.level_after = seen->level_after;
  change.site = prof_i_catalog_known_site(&trace->catalog, seen->site);
  change.thread = thread_index(trace, seen->serial);
  change.measured = amount_unit(seen, seen->measured);
  change.allowed = amount_unit(seen, seen->allowed);
  const prof_i_site_info *const site = prof_i_catalog_site(&trace->catalog, change.site);
  change.name = site->name.data;
  change.name_bytes = (uint32_t)site->name.bytes;
  change.category = site->category.data;
  change.category_bytes = (uint32_t)site->category.bytes;
  return change;
}

int prof_trace_change_get(const prof_trace *trace, uint32_t index, prof_trace_change *change_out) {
  PROF_I_DEFAULT_FP;
  if (!trace || !change_out)
    return prof_i_fail(PROF_E_INVALID, "prof_trace_change_get: %s is NULL",
                       trace ? "change_out" : "trace");
  if (index >= trace->catalog.change_count)
    return prof_i_fail(PROF_E_INVALID,
                       "prof_trace_change_get: index is %u; the trace has %u changes", index,
                       trace->catalog.change_count);
  const prof_trace_change change = change_from_record(trace, &trace->catalog.changes[index]);
  return prof_i_sized_copy_out(change_out, &change, sizeof change, "prof_trace_change");
}

/* ---- changes from outside ---- */

/* Includes changes that the header lost before the process read them. */
uint64_t prof_i_changes_unreadable(const prof_i_header *header) {
  const uint64_t count = header->level_change_count, next = header->level_change_next;
  const bool is_known = next && next - 1 <= count; /* a damaged one may have any value */
  const uint64_t left = is_known ? count - (next - 1) : 0;
  const uint64_t lost = left > PROF_I_LEVEL_CHANGES ? left - PROF_I_LEVEL_CHANGES : 0;
  return header->unwritten_changes + lost;
}

/* Adds the changes in the header that took effect, and that the process has not recorded yet. Each
   is checked, because a live header may be changing, and a damaged one may have any value. */
static int add_from_header(prof_trace *trace) {
  prof_i_catalog *const catalog = &trace->catalog;
  const uint64_t count = trace->header.level_change_count;
  const uint64_t first = count > PROF_I_LEVEL_CHANGES ? count - PROF_I_LEVEL_CHANGES : 0;
  for (uint64_t n = first > catalog->outside_count ? first : catalog->outside_count; n < count;
       n++) {
    const prof_i_level_change *const change =
        &trace->header.level_changes[n % PROF_I_LEVEL_CHANGES];
    const uint32_t before = (uint32_t)change->levels, after = (uint32_t)(change->levels >> 32);
    if (change->number != n + 1 || before > 2 || after > 2 || before == after ||
        change->monotonic_ns == 0)
      continue;
    if (!prof_i_level_was_set(&trace->header, n + 1, count)) continue;
    if (after) catalog->last_level = after;
    if (!prof_i_make_room((void **)&catalog->changes, &catalog->change_room, catalog->change_count,
                          sizeof *catalog->changes))
      return PROF_E_NO_MEMORY;
    catalog->changes[catalog->change_count++] =
        (prof_i_change_record){.monotonic_ns = change->monotonic_ns,
                               .kind = PROF_CHANGE_LEVEL,
                               .reason = PROF_REASON_OUTSIDE,
                               .level_before = before,
                               .level_after = after};
  }
  return 0;
}

static int change_compare_ticks(const void *a, const void *b) {
  const prof_i_change_record *const x = a, *const y = b;
  if (x->ticks != y->ticks) return x->ticks < y->ticks ? -1 : 1;
  return (x->number > y->number) - (x->number < y->number);
}

int prof_i_changes_sort(prof_trace *trace) {
  prof_i_catalog *const catalog = &trace->catalog;
  const int status = add_from_header(trace);
  if (status || catalog->change_count == 0) return status;
  for (uint32_t i = 0; i < catalog->change_count; i++) {
    prof_i_change_record *const seen = &catalog->changes[i];
    seen->number = i;
    if (!seen->monotonic_ns) continue;
    const uint64_t start_ns = trace->header.start_monotonic_ns;
    seen->ticks = prof_i_timeline_ticks_at(
        &trace->timeline, seen->monotonic_ns > start_ns ? seen->monotonic_ns - start_ns : 0);
  }
  qsort(catalog->changes, catalog->change_count, sizeof *catalog->changes, change_compare_ticks);
  return 0;
}

/* ---- as text ---- */

/* Sanitized and cut. `to` has TEXT_BYTES. */
static const char *sanitize_name(char *to, const char *text, uint32_t bytes) {
  char repaired[NAME_SHOWN_BYTES * 3 + 8];
  const size_t kept = bytes < NAME_SHOWN_BYTES ? bytes : NAME_SHOWN_BYTES;
  const size_t count = prof_i_sanitize_utf8(repaired, sizeof repaired, text, kept);
  const size_t wanted = prof_i_sanitize_controls(to, TEXT_BYTES - 4, repaired, count);
  memcpy(to + wanted, kept < bytes ? "..." : "", kept < bytes ? 4 : 1);
  return to;
}

/* 12345678 as "12.35 million", independent of the locale's decimal point. */
static void change_put_rate(char *to, size_t room, double value) {
  const uint64_t hundredths = (uint64_t)(value / 1e4 + 0.5);
  if (value < 1e6)
    snprintf(to, room, "%llu", (unsigned long long)(value + 0.5));
  else
    snprintf(to, room, "%llu.%02llu million", (unsigned long long)(hundredths / 100),
             (unsigned long long)(hundredths % 100));
}

static void change_put_reason(char *to, size_t room, const prof_trace *trace,
                              const prof_trace_change *change, bool has_time) {
  char measured[48], allowed[48];
  if (change->reason == PROF_REASON_TIME) {
    const uint64_t spent = (uint64_t)(change->measured * 100 + 0.5),
                   budget = (uint64_t)(change->allowed * 100 + 0.5);
    const uint64_t tid =
        change->thread < trace->thread_count ? trace->threads[change->thread].tid : 0;
    snprintf(to, room,
             "thread %llu spent %llu.%02llu %% of its time recording, the budget is %llu.%02llu %%",
             (unsigned long long)tid, (unsigned long long)(spent / 100),
             (unsigned long long)(spent % 100), (unsigned long long)(budget / 100),
             (unsigned long long)(budget % 100));
  } else if (change->reason == PROF_REASON_EVENTS) {
    change_put_rate(measured, sizeof measured, change->measured);
    change_put_rate(allowed, sizeof allowed, change->allowed);
    snprintf(to, room, "%s events a second, the budget is %s", measured, allowed);
  } else {
    snprintf(to, room,
             change->reason != PROF_REASON_OUTSIDE ? "as asked"
             : has_time                            ? "from outside"
                                                   : "from outside, at that time or earlier");
  }
}

int prof_i_trace_note_text(const prof_trace *trace, uint32_t index, char **text_out) {
  if (!trace || !text_out)
    return prof_i_fail(PROF_E_INVALID, "prof_trace_note_text: %s is NULL",
                       trace ? "text_out" : "trace");
  if (index >= trace->catalog.note_count)
    return prof_i_fail(PROF_E_INVALID, "prof_trace_note_text: index is %u; the trace has %u notes",
                       index, trace->catalog.note_count);
  const prof_i_text note = trace->catalog.notes[index];
  *text_out = strndup(note.data, note.bytes);
  return *text_out ? PROF_OK : prof_i_fail(PROF_E_NO_MEMORY, "no memory for a line of text");
}

int prof_trace_note_text(const prof_trace *trace, uint32_t index, char **text_out) {
  PROF_I_DEFAULT_FP;
  PROF_I_REFUSE_INTERRUPTED(PROF_E_BUSY);
  PROF_I_INSIDE;
  return prof_i_trace_note_text(trace, index, text_out);
}

int prof_i_trace_change_text(const prof_trace *trace, uint32_t index, char **text_out) {
  if (!text_out) return prof_i_fail(PROF_E_INVALID, "prof_trace_change_text: text_out is NULL");
  prof_trace_change change = {.size = sizeof change};
  const int status = prof_trace_change_get(trace, index, &change);
  if (status != PROF_OK) return status;
  enum { LINE_ROOM = LINE_BYTES + 2 * TEXT_BYTES };
  char reason[256], name[TEXT_BYTES], category[TEXT_BYTES], *const text = malloc(LINE_ROOM);
  if (!text) return prof_i_fail(PROF_E_NO_MEMORY, "no memory for a line of text");
  change_put_reason(reason, sizeof reason, trace, &change,
                    trace->catalog.changes[index].monotonic_ns != 0);
  int used =
      snprintf(text, LINE_ROOM, "%llu.%03llu s: ", (unsigned long long)(change.at_ns / 1000000000),
               (unsigned long long)(change.at_ns / 1000000 % 1000));
  if (change.kind == PROF_CHANGE_LEVEL)
    used += snprintf(text + used, (size_t)(LINE_ROOM - used), "level %u -> %u", change.level_before,
                     change.level_after);
  else
    used += snprintf(text + used, (size_t)(LINE_ROOM - used), "%s '%s' (%s)",
                     change.kind == PROF_CHANGE_MUTED ? "muted" : "heard again",
                     sanitize_name(name, change.name, change.name_bytes),
                     sanitize_name(category, change.category, change.category_bytes));
  snprintf(text + used, (size_t)(LINE_ROOM - used), ": %s", reason);
  *text_out = text;
  return PROF_OK;
}

int prof_trace_change_text(const prof_trace *trace, uint32_t index, char **text_out) {
  PROF_I_DEFAULT_FP;
  PROF_I_REFUSE_INTERRUPTED(PROF_E_BUSY);
  PROF_I_INSIDE;
  return prof_i_trace_change_text(trace, index, text_out);
}
