/* Chrome JSON: plain scopes. A plain scope is two copies of text made before (its call site's, its
   track's) and two numbers. The bound is 33 ns a scope on one core, reading it back included.
   What has more than its site goes to chrome_event.c. Also puts the texts of what begins and ends
   together in the order that viewers need. */
#include <stdlib.h>
#include <string.h>

#include "../base/text.h"
#include "../reader/capture.h"
#include "chrome.h"

enum {
  PLAIN_BYTES_MAX = 512, /* a plain scope's line */
  HIGH_UNIT_NS = PROF_I_CHROME_HIGH_NS,
  /* A longer run is put in order piece by piece, which bounds what the sink holds. */
  REVERSED_BYTES_MAX = 16 << 20
};

/* ---- the order of texts ---- */

void prof_i_reversal_add_text(prof_i_reversal *reversal, prof_i_sink *sink) {
  if (sink->status != PROF_OK) return;
  const size_t at = (size_t)(sink->next - sink->held);
  if (at <= REVERSED_BYTES_MAX && prof_i_make_room((void **)&reversal->begins, &reversal->room,
                                                   reversal->count, sizeof *reversal->begins)) {
    reversal->begins[reversal->count++] = at;
    return;
  }
  prof_i_reversal_flush(reversal, sink);
  sink->held = sink->next;
}

static void reverse_bytes(char *from, char *end) {
  while (from < end) {
    const char last = *--end;
    *end = *from;
    *from++ = last;
  }
}

/* Each text is turned over, and then all of them together: so their order alone changes. */
void prof_i_reversal_flush(prof_i_reversal *reversal, prof_i_sink *sink) {
  const size_t count = reversal->count;
  reversal->count = 0;
  if (sink->status != PROF_OK || count == 0) return;
  const size_t bytes = (size_t)(sink->next - sink->held);
  for (size_t i = 0; i <= count; i++) {
    const size_t from = i ? reversal->begins[i - 1] : 0,
                 end = i < count ? reversal->begins[i] : bytes;
    reverse_bytes(sink->held + from, sink->held + end);
  }
  reverse_bytes(sink->held, sink->next);
}

/* ---- tracks ---- */

/* Makes the digits above 10^8 ns those of `ns`. Below 10^8 ns in all there are none, and nothing is
   set. */
static void track_set_high(prof_i_chrome *w, uint64_t ns) {
  const uint64_t high = ns / HIGH_UNIT_NS;
  if (high == 0) return;
  w->high_ns = high * HIGH_UNIT_NS;
  w->track_bytes =
      (uint32_t)(prof_i_put_u64(w->track_text + w->track_fixed_bytes, high) - w->track_text);
}

/* ---- the fast way ---- */

static prof_i_text site_name(const prof_i_site_info *site) {
  return prof_i_text_or(site->name, "(unnamed)");
}
static prof_i_text site_category(const prof_i_site_info *site) {
  return prof_i_text_or(site->category, "scope");
}

/* Are the traced functions around it among its arguments? Around a function the viewer shows them,
   but a module has them as a row of tables. */
bool prof_i_chrome_has_callers(const prof_i_chrome *w, uint32_t site, prof_i_text name) {
  return !prof_i_call_stacks_is_function(&w->call_stacks, site) ||
         prof_i_name_is_torch_module(name.data, name.bytes);
}

static void render_site(prof_i_chrome *w, prof_i_site_json *line, uint32_t number) {
  const prof_i_site_info *const site = prof_i_trace_site(w->trace, number);
  const prof_i_text name = site_name(site), category = site_category(site);
  char *const limit = line->text + PROF_I_SITE_TEXT_BYTES;
  size_t name_at = 0, category_at = 0, location_bytes;
  char *to = prof_i_chrome_append(line->text, "{\"ph\":\"X\",\"cat\":\"");
  to += prof_i_escape(to, (size_t)(limit - to), category.data, category.bytes, &category_at);
  line->site_plus_one = number + 1;
  line->bytes = 0;
  line->is_function = prof_i_python_ids_has(&w->python_ids, number);
  line->number_kind = w->numbers.kinds ? w->numbers.kinds[number] : PROF_I_NUMBER_NONE;
  if (prof_i_backward_is_range(site->name)) return; /* has its call's numbers */
  if (limit - to < 16 || (prof_i_call_stacks_has_any(&w->call_stacks) &&
                          prof_i_chrome_has_callers(w, number, site->name)))
    return;
  to = prof_i_chrome_append(to, "\",\"name\":\"");
  to += prof_i_escape(to, (size_t)(limit - to), name.data, name.bytes, &name_at);
  if (category_at < category.bytes || name_at < name.bytes ||
      !prof_i_chrome_location_text(site, site->name, to, (size_t)(limit - to), &location_bytes))
    return;
  line->bytes = (uint16_t)(to - line->text);
  line->location_bytes = (uint16_t)location_bytes;
}

static inline char *put_site_json(char *to, const prof_i_site_json *line) {
  memcpy(to, line->text, 64);
  if (__builtin_expect(line->bytes > 64, 0))
    memcpy(to + 64, line->text + 64, PROF_I_SITE_TEXT_BYTES - 64);
  return to + line->bytes;
}

/* 12345.678 of eight digits: five, a point, three. */
static inline char *put_low_us(char *to, uint32_t ns) {
  const uint64_t digits = prof_i_eight_digits(ns) + PROF_I_EIGHT_ZEROS;
  const uint64_t fraction = digits >> 40;
  memcpy(to, &digits, 8);
  to[5] = '.';
  memcpy(to + 6, &fraction, 4);
  return to + 9;
}

/* The same without leading zeros, but one before the point. Most scopes are shorter than 1 ms, and
   take two loads. */
static inline char *put_short_us(const prof_i_chrome *w, char *to, uint32_t ns) {
  if (__builtin_expect(ns >= 1000000, 0)) return prof_i_put_us(to, ns);
  const uint32_t us = ns / 1000, whole = w->whole_us[us];
  memcpy(to, &whole, 4);
  to += whole >> 24;
  memcpy(to, &w->fraction_us[ns - us * 1000], 4);
  return to + 4;
}

void prof_i_chrome_fill_short_us(prof_i_chrome *w) {
  for (uint32_t i = 0; i < 1000; i++) {
    char text[PROF_I_NUMBER_ROOM];
    const uint32_t bytes = (uint32_t)(prof_i_put_u64(text, i) - text);
    memcpy(&w->whole_us[i], text, 3);
    w->whole_us[i] = (w->whole_us[i] & 0xffffff) | bytes << 24;
    prof_i_put_us(text, i); /* 0.007 */
    memcpy(&w->fraction_us[i], text + 1, 4);
  }
}

char *prof_i_chrome_put_python_id(char *to, const prof_i_python_id *id) {
  to = prof_i_put_u64(prof_i_chrome_append(to, ",\"Python id\":"), id->own);
  return id->parent ? prof_i_put_u64(prof_i_chrome_append(to, ",\"Python parent id\":"), id->parent)
                    : to;
}

/* torch numbers record functions, which its operators and ranges are, for its
   ExecutionTraceObserver: without one each has 0. */
char *prof_i_chrome_put_event_number(char *to, prof_i_number_kind kind, uint64_t number) {
  if (kind == PROF_I_NUMBER_OPERATOR) to = prof_i_chrome_append(to, ",\"Record function id\":0");
  return prof_i_put_u64(prof_i_chrome_append(to, ",\"Ev Idx\":"), number);
}

/* The number of a row that has one, and an operator's id. */
static char *put_numbered(prof_i_chrome *w, char *to, prof_i_number_kind kind) {
  const uint64_t number = prof_i_event_numbers_next(&w->numbers, w->thread, kind);
  if (kind == PROF_I_NUMBER_OPERATOR)
    to = prof_i_put_u64(prof_i_chrome_append(to, ",\"External id\":"), number + 1);
  return prof_i_chrome_put_event_number(to, kind, number);
}

/* The end of a line with arguments. The first comma becomes the brace. */
static __attribute__((noinline)) char *put_plain_args(prof_i_chrome *w, char *to,
                                                      const prof_i_site_json *line,
                                                      const prof_i_python_id *python) {
  char *const members = to = prof_i_chrome_append(to, ",\"args\":");
  if (line->number_kind) to = put_numbered(w, to, line->number_kind);
  if (line->is_function) to = prof_i_chrome_put_python_id(to, python);
  memcpy(to, line->text + line->bytes, line->location_bytes);
  to += line->location_bytes;
  *members = '{';
  return prof_i_chrome_append(to, "}},\n");
}

/* Writes a scope of the current track that has nothing beyond its site. False: it is not written,
   because it needs chrome_event.c. */
static inline bool put_plain_scope(prof_i_chrome *w, const prof_i_span *span) {
  prof_i_site_json *const line = &w->sites[span->site % PROF_I_SITE_CACHE_COUNT];
  if (__builtin_expect(line->site_plus_one != span->site + 1, 0)) render_site(w, line, span->site);
  const uint64_t ns = w->epoch_ns + span->start_ns;
  if (__builtin_expect(ns - w->high_ns >= HIGH_UNIT_NS, 0)) track_set_high(w, ns);
  const uint64_t low = ns - w->high_ns;
  if (__builtin_expect(line->bytes == 0 || low >= HIGH_UNIT_NS || span->duration_ns >= HIGH_UNIT_NS,
                       0))
    return false;
  prof_i_python_id python = {0};
  if (__builtin_expect(line->is_function, 0) &&
      !prof_i_python_ids_next(&w->python_ids, w->walker, span, &python))
    return false;

  prof_i_chrome_next_span(w, span);
  char *to = prof_i_sink_reserve(w->sink, PLAIN_BYTES_MAX);
  to = put_site_json(to, line);
  memcpy(to, w->track_text, PROF_I_TRACK_TEXT_BYTES);
  to = put_low_us(to + w->track_bytes, (uint32_t)low);
  memcpy(to, ",\"dur\":", 8);
  to = put_short_us(w, to + 7, (uint32_t)span->duration_ns);
  if (__builtin_expect(line->number_kind || line->is_function || line->location_bytes, 0)) {
    to = put_plain_args(w, to, line, &python);
  } else {
    memcpy(to, "},\n", 4);
    to += 3;
  }
  prof_i_sink_advance(w->sink, to);
  return true;
}

size_t prof_i_chrome_put_plain(prof_i_export *run, const prof_i_span *spans, size_t count) {
  prof_i_chrome *const w = run->state;
  const bool has_window = w->window.from_ns != 0 || w->window.to_ns != 0;
  size_t i = 0, outside_count = 0;
  for (; i < count && !w->has_records && w->owner_count == 0; i++) {
    const prof_i_span *const span = &spans[i];
    if (has_window &&
        !prof_i_window_contains(&w->window, span->start_ns, span->start_ns + span->duration_ns)) {
      outside_count++;
      continue;
    }
    if (span->kind != PROF_EVENT_SCOPE || span->record != NULL || span->lane != w->lane ||
        !put_plain_scope(w, span))
      break;
  }
  w->written.scope_count += i - outside_count;
  return i;
}
