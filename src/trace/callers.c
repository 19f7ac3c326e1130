/* See callers.h. */
#include "callers.h"

#include <prof/trace.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../core/log.h"
#include "capture.h"

enum { TABLE_FIRST = 256, FRAME_ROOM = 4608 /* a path of 4096, and a name */ };

static bool is_text(prof_i_text text, const char *word) { return text.bytes == strlen(word) && memcmp(text.data, word, (size_t)text.bytes) == 0; }
static bool is_of_python(const prof_i_site_info *site) { return is_text(site->category, "python_function"); }
bool prof_i_is_c_function_site(const prof_i_site_info *site) { return is_text(site->category, "c_function"); }
bool prof_i_is_function_category(prof_i_text category) { return is_text(category, "python_function") || is_text(category, "c_function"); }
bool prof_i_is_function_site(const prof_i_site_info *site) { return prof_i_is_function_category(site->category); }

/* ---- a frame ---- */

prof_i_text prof_i_plain_name(prof_i_text qualified) {
  uint64_t at = qualified.bytes;
  while (at > 0 && qualified.data[at - 1] != '.') at--;
  return (prof_i_text){qualified.data + at, qualified.bytes - at};
}

size_t prof_i_frame_text(const prof_i_site_info *site, char *to, size_t room) {
  char text[FRAME_ROOM];
  int bytes = 0;
  if (prof_i_is_c_function_site(site)) {
    const prof_i_text shown = site->file.bytes ? site->file : site->name; /* the first as the interpreter writes it */
    bytes = snprintf(text, sizeof text, "%.*s", (int)shown.bytes, shown.data);
  } else if (is_of_python(site)) {
    const prof_i_text name = prof_i_plain_name(site->function);
    if (site->file.bytes) bytes = snprintf(text, sizeof text, "%.*s(%u): %.*s", (int)site->file.bytes, site->file.data, site->line, (int)name.bytes, name.data);
    else bytes = snprintf(text, sizeof text, "%.*s", (int)site->name.bytes, site->name.data); /* of an imported trace: it reads so already */
  }
  if (bytes < 0) return 0;
  const size_t written = (size_t)bytes < sizeof text ? (size_t)bytes : sizeof text - 1;
  for (size_t i = 0; i < written; i++)
    if (text[i] == ';') text[i] = '_'; /* it stands between frames */
  memcpy(to, text, written < room ? written : room);
  return written;
}

/* ---- numbers ---- */

/* False: no memory. */
static bool find_functions(prof_i_callers *callers, const prof_trace *trace) {
  const uint32_t site_count = prof_i_trace_site_count(trace);
  for (uint32_t site = 0; site < site_count; site++) {
    const prof_i_site_info *const info = prof_i_trace_site(trace, site);
    if (!prof_i_is_function_site(info)) continue;
    if (!callers->is_function) callers->is_function = calloc(site_count, sizeof *callers->is_function);
    if (!callers->is_function) return false;
    callers->is_function[site] = 1;
  }
  return true;
}

static void ends_of(const prof_trace *trace, uint64_t *to_ns, uint32_t count) {
  const prof_i_time_line *line = trace->timeline.lines;
  for (uint32_t i = 0; i < count; i++) to_ns[i] = prof_i_timeline_ns(&trace->timeline, &line, trace->catalog.function_ends[i]);
}

/* False: no memory. */
static bool find_ends(prof_i_callers *callers, const prof_trace *trace) {
  const uint32_t count = trace->catalog.function_end_count;
  if (count == 0) return true;
  callers->ends_ns = malloc(count * sizeof *callers->ends_ns);
  if (!callers->ends_ns) return false;
  callers->end_count = count;
  ends_of(trace, callers->ends_ns, count);
  return true;
}

bool prof_i_callers_init(prof_i_callers *callers, const prof_trace *trace, uint32_t frames) {
  *callers = (prof_i_callers){.trace = trace, .frames = frames && frames < PROF_I_FRAMES_MAX ? frames : PROF_I_FRAMES_MAX};
  if (!find_functions(callers, trace)) return false;
  if (!callers->is_function) return true;
  if (!find_ends(callers, trace)) return false;
  callers->table = calloc(TABLE_FIRST, sizeof *callers->table);
  callers->table_room = TABLE_FIRST;
  if (!callers->table || !prof_i_make_room((void **)&callers->items, &callers->room, 0, sizeof *callers->items)) return false;
  callers->items[callers->count++] = (prof_i_caller){0};
  return true;
}

void prof_i_callers_fini(prof_i_callers *callers) {
  for (uint32_t i = 0; i < callers->count; i++) free(callers->items[i].text);
  free(callers->is_function);
  free(callers->items);
  free(callers->table);
  free(callers->ends_ns);
  *callers = (prof_i_callers){0};
}

static uint32_t *place_of(const prof_i_callers *callers, uint32_t outer, uint32_t site) {
  const uint64_t hash = ((uint64_t)outer << 32 | site) * UINT64_C(0x9e3779b97f4a7c15);
  uint32_t at = (uint32_t)(hash >> 32) & (callers->table_room - 1);
  while (callers->table[at] && (callers->items[callers->table[at]].outer != outer || callers->items[callers->table[at]].site != site)) at = (at + 1) & (callers->table_room - 1);
  return &callers->table[at];
}

static bool grow_table(prof_i_callers *callers) {
  uint32_t *const larger = calloc((size_t)callers->table_room * 2, sizeof *larger);
  if (!larger) return false;
  free(callers->table);
  callers->table = larger;
  callers->table_room *= 2;
  for (uint32_t i = 1; i < callers->count; i++) *place_of(callers, callers->items[i].outer, callers->items[i].site) = i;
  return true;
}

/* Of a function that was called by that way; 0: no memory. */
static uint32_t number_of(prof_i_callers *callers, uint32_t outer, uint32_t site) {
  uint32_t *const place = place_of(callers, outer, site);
  const uint32_t known = *place;
  if (known != 0) return known;
  if (!prof_i_make_room((void **)&callers->items, &callers->room, callers->count, sizeof *callers->items)) return 0;
  callers->items[callers->count] = (prof_i_caller){.outer = outer, .site = site};
  const uint32_t number = callers->count++;
  *place = number;
  return callers->count * 2 < callers->table_room || grow_table(callers) ? number : 0;
}

/* The last end of a tracing up to then; 0: there is none. */
static uint64_t last_end(const prof_i_callers *callers, uint64_t at_ns) {
  uint32_t low = 0, high = callers->end_count;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (callers->ends_ns[middle] <= at_ns) low = middle + 1;
    else high = middle;
  }
  return low ? callers->ends_ns[low - 1] : 0;
}

/* What began before the tracing ended is no stack of what began after: the walk's numbers are of the one or of the other. around may stand above lane 0's count, in the midst of a plain segment. */
static void go_to(prof_i_callers *callers, prof_i_walker *walker, const prof_i_waiting *around, uint64_t start_ns) {
  const uint64_t from_ns = last_end(callers, start_ns);
  if (from_ns == walker->functions_from_ns) return;
  walker->functions_from_ns = from_ns;
  for (uint32_t i = 0; i < walker->lane_count; i++) {
    prof_i_lane *const lane = &walker->lanes[i];
    const uint32_t count = walker->around && i == 0 && (uint32_t)(around - lane->stack) >= lane->count ? (uint32_t)(around - lane->stack) + 1 : lane->count;
    for (uint32_t place = 1; place < count; place++) lane->stack[place].caller = 0;
  }
}

/* Of what is called, at that time, from that place of a walk's stack. */
static bool inside(prof_i_callers *callers, prof_i_walker *walker, prof_i_waiting *around, uint64_t start_ns, uint32_t *number_out) {
  if (callers->end_count) go_to(callers, walker, around, start_ns);
  prof_i_waiting *at = around;
  while (!at->caller) at--; /* place 0 has one */
  uint32_t number = at->caller - 1;
  while (at != around) {
    at++;
    if (prof_i_callers_is_function(callers, at->span.site) && at->span.start_ns >= walker->functions_from_ns && !(number = number_of(callers, number, at->span.site))) return false;
    at->caller = number + 1;
  }
  *number_out = number;
  return true;
}

bool prof_i_callers_around(prof_i_callers *callers, prof_i_walker *walker, const prof_i_span *span, uint32_t *number_out) {
  prof_i_waiting *const around = prof_i_walker_around(walker, span);
  if (!inside(callers, walker, around, span->start_ns, number_out)) return false;
  const prof_i_lane *const lane = &walker->lanes[span->lane];
  if (*number_out == 0 && span->lane > 0 && lane->count < lane->room && lane->stack[lane->count].span.start_ns == span->start_ns) *number_out = lane->stack[lane->count].outside; /* it has just been taken off */
  return true;
}

uint32_t prof_i_callers_holding(prof_i_callers *callers, prof_i_walker *walker, uint64_t start, uint64_t start_ns) {
  prof_i_lane *const lane = &walker->lanes[0];
  prof_i_waiting *at = &lane->stack[lane->count - 1];
  uint32_t number;
  while (at->start > start) at--; /* place 0 is of no time */
  return inside(callers, walker, at, start_ns, &number) ? number : 0;
}

/* ---- texts ---- */

bool prof_i_callers_text(prof_i_callers *callers, uint32_t number, prof_i_text *text_out) {
  prof_i_caller *const c = &callers->items[number];
  *text_out = (prof_i_text){"", 0};
  if (number == 0) return true;
  uint64_t room = 0;
  uint32_t frames = 0;
  for (uint32_t at = number; !c->text && at && frames < callers->frames; at = callers->items[at].outer, frames++) {
    char frame[FRAME_ROOM];
    room += prof_i_frame_text(prof_i_trace_site(callers->trace, callers->items[at].site), frame, sizeof frame) + 1;
  }
  if (!c->text) {
    if (!(c->text = malloc((size_t)room + 1))) return false;
    frames = 0;
    for (uint32_t at = number; at && frames < callers->frames; at = callers->items[at].outer, frames++) {
      if (frames) c->text[c->bytes++] = ';';
      c->bytes += prof_i_frame_text(prof_i_trace_site(callers->trace, callers->items[at].site), c->text + c->bytes, (size_t)(room - c->bytes));
    }
  }
  *text_out = (prof_i_text){c->text, c->bytes};
  return true;
}

int prof_trace_frame_text(const prof_trace *trace, uint32_t site, char **text_out) {
  if (!trace || !text_out) return prof_i_fail(PROF_E_INVALID, "prof_trace_frame_text: %s is NULL", trace ? "text_out" : "trace");
  char frame[FRAME_ROOM];
  const size_t bytes = site < prof_i_trace_site_count(trace) ? prof_i_frame_text(prof_i_trace_site(trace, site), frame, sizeof frame) : 0;
  char *const text = malloc(bytes + 1);
  if (!text) return prof_i_fail(PROF_E_NO_MEMORY, "no memory for a line of text");
  memcpy(text, frame, bytes);
  text[bytes] = '\0';
  *text_out = text;
  return PROF_OK;
}

uint32_t prof_trace_function_ends(const prof_trace *trace, uint64_t *at_ns, uint32_t room) {
  if (!trace) return 0;
  const uint32_t count = trace->catalog.function_end_count;
  if (at_ns) ends_of(trace, at_ns, count < room ? count : room);
  return count;
}
