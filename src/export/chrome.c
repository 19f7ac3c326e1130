/* Chrome JSON: the events. A plain scope is two copies of text made before (its call site's, its
   track's) and three numbers; the bound is 33 ns a scope on one core, reading it back included. All
   else goes through the slower way of put_detailed(). */
#include "chrome.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/log.h"
#include "../base/text.h"

enum {
  PLAIN_BYTES_MAX = 512, /* a plain scope's line */
  /* ts is cut here: the digits above change ten times a second, the eight below each time */
  HIGH_UNIT_NS = 100000000
};

/* All ranks must share the base, and ns must survive in a double of us. Kineto takes whole
   multiples of 7889238 s (three months) since 1970; half of that is taken here, because Perfetto
   multiplies ts by 1000 as a double before it rounds: between 2^42 us and 2^52 ns after the base,
   one day in 91, the product is 1 ns too large for every fourth value, and scopes that touch are
   dropped as overlapping. */
static const uint64_t base_step_ns = 7889238ull / 2 * 1000000000ull;

/* ---- tracks ---- */

static char *text_append(char *to, const char *text) {
  const size_t bytes = strlen(text);
  memcpy(to, text, bytes);
  return to + bytes;
}

static uint64_t put_track_number(const prof_i_chrome *w, uint32_t lane) {
  return prof_i_tids_row(&w->ids, lane);
}

/* The track's text, up to ts. */
static void track_set(prof_i_chrome *w, uint32_t lane) {
  char *to = text_append(w->track_text, "\",\"pid\":");
  to = prof_i_put_u64(to, w->ids.pid);
  to = text_append(to, ",\"tid\":");
  to = prof_i_put_u64(to, put_track_number(w, lane));
  to = text_append(to, ",\"ts\":");
  w->track_fixed_bytes = w->track_bytes = (uint32_t)(to - w->track_text);
  w->lane = lane;
  w->high_ns = UINT64_MAX - HIGH_UNIT_NS; /* no time is there, so the first one sets it */
}

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

prof_i_text prof_i_chrome_name_or_default(prof_i_text text, const char *otherwise) {
  return text.bytes > 0 ? text : (prof_i_text){otherwise, strlen(otherwise)};
}

static prof_i_text site_name(const prof_i_site_info *site) {
  return prof_i_chrome_name_or_default(site->name, "(unnamed)");
}
static prof_i_text site_category(const prof_i_site_info *site) {
  return prof_i_chrome_name_or_default(site->category, "scope");
}

/* A call of an nn.Module, which is a function of its category, and in tables a row. */
static bool name_is_module(prof_i_text name) {
  static const char begin[] = "nn.Module: ";
  return name.bytes >= sizeof begin - 1 && memcmp(name.data, begin, sizeof begin - 1) == 0;
}

/* Are the traced functions around it among its arguments? Around a function the viewer shows them,
   but a module has them as a row of tables. */
static bool has_callers(const prof_i_chrome *w, uint32_t site, prof_i_text name) {
  return !prof_i_call_stacks_is_function(&w->call_stacks, site) || name_is_module(name);
}

static void render_site(prof_i_chrome *w, prof_i_site_json *line, uint32_t number) {
  const prof_i_site_info *const site = prof_i_trace_site(w->trace, number);
  const prof_i_text name = site_name(site), category = site_category(site);
  char *const limit = line->text + PROF_I_SITE_TEXT_BYTES;
  size_t name_at = 0, category_at = 0, location_bytes;
  char *to = text_append(line->text, "{\"ph\":\"X\",\"cat\":\"");
  to += prof_i_escape(to, (size_t)(limit - to), category.data, category.bytes, &category_at);
  line->site_plus_one = number + 1;
  line->bytes = 0;
  line->is_function = prof_i_python_ids_has(&w->python_ids, number);
  line->number_kind = w->numbers.kinds ? w->numbers.kinds[number] : PROF_I_NUMBER_NONE;
  if (prof_i_backward_is_range(site->name)) return; /* has its call's numbers */
  if (limit - to < 16 ||
      (prof_i_call_stacks_has_any(&w->call_stacks) && has_callers(w, number, site->name)))
    return;
  to = text_append(to, "\",\"name\":\"");
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

static void fill_short_us(prof_i_chrome *w) {
  for (uint32_t i = 0; i < 1000; i++) {
    char text[PROF_I_NUMBER_ROOM];
    const uint32_t bytes = (uint32_t)(prof_i_put_u64(text, i) - text);
    memcpy(&w->whole_us[i], text, 3);
    w->whole_us[i] = (w->whole_us[i] & 0xffffff) | bytes << 24;
    prof_i_put_us(text, i); /* 0.007 */
    memcpy(&w->fraction_us[i], text + 1, 4);
  }
}

/* The next id, counted up as text: nine times of ten only its last digit changes. */
static inline char *put_next_id(prof_i_chrome *w, char *to) {
  const uint64_t one = (uint64_t)1 << 56, nine = (uint64_t)'9' << 56;
  w->external_id++;
  w->id_digits += one;
  if (__builtin_expect(w->id_digits >= nine + one, 0)) {
    if (w->external_id >= 100000000) {
      w->id_digits = nine; /* comes here each time */
      return prof_i_put_u64(to, w->external_id);
    }
    const uint64_t digits = prof_i_eight_digits((uint32_t)w->external_id);
    w->id_zeros = (uint32_t)__builtin_ctzll(digits | one) / 8;
    w->id_digits = digits + PROF_I_EIGHT_ZEROS;
  }
  const uint64_t text = w->id_digits >> 8 * w->id_zeros;
  memcpy(to, &text, 8);
  return to + (8 - w->id_zeros);
}

static char *put_python_id(char *to, const prof_i_python_id *id) {
  to = prof_i_put_u64(text_append(to, ",\"Python id\":"), id->own);
  return id->parent ? prof_i_put_u64(text_append(to, ",\"Python parent id\":"), id->parent) : to;
}

/* Ids of operators and ranges are by their begins, from 1 on, as Kineto's. The others follow. */
static void begin_ids(prof_i_chrome *w) {
  const uint64_t one = (uint64_t)1 << 56, used = w->numbers.operator_count;
  const uint64_t digits = prof_i_eight_digits((uint32_t)(used < 100000000 ? used : 0));
  w->external_id = used;
  w->id_zeros = (uint32_t)__builtin_ctzll(digits | one) / 8;
  w->id_digits = used < 100000000 ? digits + PROF_I_EIGHT_ZEROS : (uint64_t)'9' << 56;
}

/* torch numbers record functions, which its operators and ranges are, for its
   ExecutionTraceObserver: without one each has 0. */
static char *put_event_number(char *to, prof_i_number_kind kind, uint64_t number) {
  if (kind == PROF_I_NUMBER_OPERATOR) to = text_append(to, ",\"Record function id\":0");
  return prof_i_put_u64(text_append(to, ",\"Ev Idx\":"), number);
}

/* The id of a row that has a number, and the number. */
static __attribute__((noinline)) char *put_numbered(prof_i_chrome *w, char *to,
                                                    prof_i_number_kind kind) {
  const uint64_t number = prof_i_event_numbers_next(&w->numbers, w->thread, kind);
  to = kind == PROF_I_NUMBER_OPERATOR ? prof_i_put_u64(to, number + 1) : put_next_id(w, to);
  return put_event_number(to, kind, number);
}

/* A scope of the current track without anything beyond its site; false: it needs the slow way. */
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

  char *to = prof_i_sink_reserve(w->sink, PLAIN_BYTES_MAX);
  to = put_site_json(to, line);
  memcpy(to, w->track_text, PROF_I_TRACK_TEXT_BYTES);
  to = put_low_us(to + w->track_bytes, (uint32_t)low);
  memcpy(to, ",\"dur\":", 8);
  to = put_short_us(w, to + 7, (uint32_t)span->duration_ns);
  memcpy(to, ",\"args\":{\"External id\":", 24);
  to += 23;
  if (__builtin_expect(line->number_kind, 0))
    to = put_numbered(w, to, line->number_kind);
  else
    to = put_next_id(w, to);
  if (__builtin_expect(line->is_function, 0)) to = put_python_id(to, &python);
  if (__builtin_expect(line->location_bytes > 0, 0)) {
    memcpy(to, line->text + line->bytes, line->location_bytes);
    to += line->location_bytes;
  }
  memcpy(to, "}},\n", 4);
  prof_i_sink_advance(w->sink, to + 4);
  return true;
}

/* ---- the slow way ---- */

void prof_i_chrome_put_time(prof_i_chrome *w, uint64_t start_ns) {
  char *const to = prof_i_sink_reserve(w->sink, PROF_I_NUMBER_ROOM);
  prof_i_sink_advance(w->sink, prof_i_put_us(to, w->epoch_ns + start_ns));
}

void prof_i_chrome_put_track_time(prof_i_chrome *w, uint64_t start_ns) {
  prof_i_sink_bytes(w->sink, w->track_text, w->track_fixed_bytes);
  prof_i_chrome_put_time(w, start_ns);
}

/* {"ph":"X","cat":"c","name":"n","pid":1,"tid":2,"ts":3.000   of w->event. */
static void put_event_begin(prof_i_chrome *w, const char *begin, const prof_i_span *span) {
  const prof_event *const event = &w->event;
  prof_i_sink *const sink = w->sink;
  const prof_i_text category =
      prof_i_chrome_name_or_default((prof_i_text){event->category, event->category_bytes}, "scope");
  const prof_i_text name =
      prof_i_chrome_name_or_default((prof_i_text){event->name, event->name_bytes}, "(unnamed)");
  prof_i_sink_text(sink, begin);
  prof_i_sink_text(sink, ",\"cat\":\"");
  prof_i_sink_string_part(sink, category.data, category.bytes);
  prof_i_sink_text(sink, "\",\"name\":\"");
  prof_i_sink_string_part(sink, name.data, name.bytes);
  prof_i_chrome_put_track_time(w, span->start_ns);
}

static void put_duration(prof_i_chrome *w, uint64_t duration_ns) {
  prof_i_sink_text(w->sink, ",\"dur\":");
  char *const to = prof_i_sink_reserve(w->sink, PROF_I_NUMBER_ROOM);
  prof_i_sink_advance(w->sink, prof_i_put_us(to, duration_ns));
}

/* Readers tie a launch to what ran by it. */
static void put_correlation(prof_i_chrome *w, uint64_t id) {
  prof_i_sink_text(w->sink, ",\"correlation\":");
  prof_i_sink_u64(w->sink, id);
}

/* "Call stack" of w->event, where it has none of its own: the traced functions around it. False: no
   memory. */
static bool put_callers(prof_i_chrome *w, const prof_i_span *span) {
  const size_t key_bytes = sizeof PROF_STACK_KEY - 1;
  uint32_t number;
  prof_i_text stack;
  const prof_i_text name = {w->event.name, w->event.name_bytes};
  if (!prof_i_call_stacks_has_any(&w->call_stacks) || !has_callers(w, span->site, name))
    return true;
  for (uint32_t i = 0; i < w->event.arg_count; i++)
    if (w->event.args[i].key_bytes == key_bytes &&
        memcmp(w->event.args[i].key, PROF_STACK_KEY, key_bytes) == 0)
      return true;
  if (!prof_i_call_stacks_of_span(&w->call_stacks, w->walker, span, &number) ||
      !prof_i_call_stacks_text(&w->call_stacks, number, true, &stack))
    return false;
  if (stack.bytes == 0) return true;
  prof_i_sink_text(w->sink, ",\"" PROF_STACK_KEY "\":");
  prof_i_chrome_put_stack(w, stack);
  return true;
}

static uint64_t next_id(prof_i_chrome *w) {
  char text[PROF_I_NUMBER_ROOM];
  put_next_id(w, text);
  return w->external_id;
}

/* What was promised to the scope of lane 0 at that depth; 0: nothing. */
static uint64_t take_reserved_id(prof_i_chrome *w, const prof_i_span *span) {
  if (w->owner_count == 0 || span->lane != 0 || span->depth >= PROF_I_OWNER_DEPTHS ||
      w->owner_ids[span->depth] == 0)
    return 0;
  const uint64_t id = w->owner_ids[span->depth];
  w->owner_ids[span->depth] = 0;
  w->owner_count--;
  return id;
}

/* As in Kineto, a call's External id is that of the operator or range around it. Readers assign its
   kernels to an operator by this id (call_owners.h). If there is none, it is the id of the scope
   around the call, or 0 outside of all scopes. That scope is written after the call, so the number
   is promised to it. A call inside of another call passes the promise on. If that call's scope has
   a promise already, no row has the inner call's number. */
static uint64_t external_id_of(prof_i_chrome *w, const prof_i_span *span, uint64_t id) {
  const uint64_t reserved_index = take_reserved_id(w, span);
  if ((w->event.flags & PROF_EVENT_CALL) == 0) return reserved_index ? reserved_index : id;
  const uint64_t operator_id = prof_i_call_owners_next_id(&w->numbers.owners, span);
  if (operator_id) return operator_id;
  if (span->lane != 0 || span->depth == 0 || span->depth > PROF_I_OWNER_DEPTHS) return 0;
  uint64_t *const owner = &w->owner_ids[span->depth - 1];
  if (*owner == 0) {
    *owner = reserved_index ? reserved_index : id;
    w->owner_count++;
  }
  return *owner;
}

/* Where a function is defined. */
static void put_location(prof_i_chrome *w, const prof_i_span *span) {
  const prof_i_site_info *const site = prof_i_trace_site(w->trace, span->site);
  size_t bytes;
  w->has_location =
      prof_i_is_function_category((prof_i_text){w->event.category, w->event.category_bytes}) ||
      prof_i_is_named_by_function(site);
  if (w->has_location &&
      prof_i_chrome_location_text(site, (prof_i_text){w->event.name, w->event.name_bytes},
                                  w->location_text, sizeof w->location_text, &bytes))
    prof_i_sink_bytes(w->sink, w->location_text, bytes);
}

/* False: no memory. */
static bool put_python(prof_i_chrome *w, const prof_i_span *span) {
  prof_i_python_id id = {0};
  if (!w->walker || !prof_i_python_ids_is_call(&w->python_ids, span)) return true;
  if (!prof_i_python_ids_next(&w->python_ids, w->walker, span, &id)) return false;
  char *const to = prof_i_sink_reserve(w->sink, 64 + 2 * PROF_I_NUMBER_ROOM);
  prof_i_sink_advance(w->sink, put_python_id(to, &id));
  w->has_python_id = true;
  return true;
}

/* Numbers of autograd's range around a backward call are that call's, whose row stands before its
   own: Kineto gives them to both. Arrows are the call's alone. */
static void put_torch_numbers(prof_i_chrome *w, const prof_i_span *span) {
  const prof_i_call_numbers own = prof_i_call_numbers_of(&w->event);
  if (!prof_i_backward_is_range((prof_i_text){w->event.name, w->event.name_bytes})) {
    prof_i_forwards_add(&w->forwards, &w->event, span->start_ns, w->ids.pid,
                        put_track_number(w, span->lane));
    if (!own.forward_thread || span->lane) return;
    w->backward = own;
    w->backward_start_ns = span->start_ns;
    w->backward_depth = span->depth;
    return;
  }
  const bool is_inside =
      w->backward_depth == (uint32_t)span->depth + 1 && w->backward_start_ns >= span->start_ns;
  if (!w->backward.forward_thread || !is_inside || span->lane || w->event.arg_count) return;
  prof_i_sink_text(w->sink, ",\"Sequence number\":");
  prof_i_sink_i64(w->sink, w->backward.sequence);
  prof_i_sink_text(w->sink, ",\"Fwd thread id\":");
  prof_i_sink_u64(w->sink, w->backward.forward_thread);
  w->backward.forward_thread = 0;
}

static void put_number(prof_i_chrome *w, prof_i_number_kind kind, uint64_t number) {
  if (kind == PROF_I_NUMBER_NONE) return;
  char *const to = prof_i_sink_reserve(w->sink, 64 + PROF_I_NUMBER_ROOM);
  prof_i_sink_advance(w->sink, put_event_number(to, kind, number));
}

/* False: no memory. */
static bool put_scope(prof_i_chrome *w, const prof_i_span *span) {
  const prof_i_number_kind kind = prof_i_event_numbers_kind(&w->numbers, span);
  const uint64_t number =
      kind == PROF_I_NUMBER_NONE ? 0 : prof_i_event_numbers_next(&w->numbers, w->thread, kind);
  const uint64_t id = kind == PROF_I_NUMBER_OPERATOR ? number + 1 : next_id(w);
  const uint64_t external_id = external_id_of(w, span, id);
  put_event_begin(w, "{\"ph\":\"X\"", span);
  put_duration(w, span->duration_ns);
  prof_i_sink_text(w->sink, ",\"args\":{\"External id\":");
  prof_i_sink_u64(w->sink, external_id);
  if (w->has_launches && prof_i_chrome_correlate(w, span, id, external_id,
                                                 (w->event.flags & PROF_EVENT_ON_STREAM) != 0))
    put_correlation(w, id);
  put_number(w, kind, number);
  if (span->kind == PROF_EVENT_OPEN) prof_i_sink_text(w->sink, ",\"unfinished\":true");
  /* prof import takes it for a mark by this, and a scope of that name for a scope */
  if (span->kind == PROF_EVENT_STEP) {
    prof_i_sink_text(w->sink, ",\"step mark\":");
    prof_i_sink_u64(w->sink, w->event.id);
  }
  put_torch_numbers(w, span);
  const bool has_memory = put_python(w, span) && put_callers(w, span);
  if (span->kind != PROF_EVENT_STEP) put_location(w, span);
  prof_i_chrome_put_args(w, true);
  w->has_location = w->has_python_id = false;
  prof_i_sink_text(w->sink, "}},\n");
  return has_memory;
}

/* A scope's own side, as Kineto writes a user's annotation on a device; a kernel or a copy, as
   Kineto writes those. */
static void put_device_event(prof_i_chrome *w, const prof_i_span *span) {
  const prof_i_correlation *const tie = prof_i_chrome_correlation_of(w, span);
  const bool is_record = w->event.launch.record != 0;
  if (!is_record) {
    w->event.category = "gpu_user_annotation";
    w->event.category_bytes = sizeof "gpu_user_annotation" - 1;
  }
  put_event_begin(w, "{\"ph\":\"X\"", span);
  put_duration(w, span->duration_ns);
  prof_i_sink_text(w->sink, ",\"args\":{");
  if (tie) {
    prof_i_sink_text(w->sink, "\"External id\":");
    prof_i_sink_u64(w->sink, tie->external_id);
    put_correlation(w, tie->id);
  }
  prof_i_sink_text(w->sink, tie ? ",\"device\":" : "\"device\":");
  prof_i_sink_i64(w->sink, w->event.device.index);
  prof_i_sink_text(w->sink, ",\"stream\":");
  prof_i_sink_u64(w->sink, w->ids.first);
  if (is_record) {
    if (w->event.launch.record == PROF_RECORD_ANNOTATION)
      prof_i_sink_text(w->sink, ",\"annotation\":true");
    w->event.flags &= ~(uint32_t)PROF_EVENT_ON_STREAM; /* it is said */
    w->event.device.type = PROF_DEVICE_CPU;
    prof_i_chrome_put_args(w, true);
  }
  prof_i_sink_text(w->sink, "}},\n");
}

static bool put_step(prof_i_chrome *w, const prof_i_span *span) {
  char name[64];
  const int bytes =
      snprintf(name, sizeof name, "ProfilerStep#%llu", (unsigned long long)w->event.id);
  w->event.name = name;
  w->event.name_bytes = (uint32_t)bytes;
  w->event.category = "user_annotation";
  w->event.category_bytes = sizeof "user_annotation" - 1;
  w->event.flags = w->event.arg_count = 0;
  const bool has_memory = put_scope(w, span);
  w->event.name = NULL;
  return has_memory;
}

static void put_instant(prof_i_chrome *w, const prof_i_span *span) {
  put_event_begin(w, "{\"ph\":\"i\",\"s\":\"t\"", span);
  prof_i_sink_text(w->sink, ",\"args\":{");
  prof_i_chrome_put_args(w, false);
  prof_i_sink_text(w->sink, "}},\n");
  w->written.instant_count++;
}

static void keep_flow(prof_i_chrome *w, const prof_i_span *span) {
  const prof_event *const event = &w->event;
  const prof_i_flow flow = {.id = event->id,
                            .start_ns = span->start_ns,
                            .name = event->name,
                            .name_bytes = event->name_bytes,
                            .pid = (uint32_t)w->ids.pid,
                            .tid = (uint32_t)put_track_number(w, 0),
                            .depth = span->depth,
                            .is_end = span->kind == PROF_EVENT_FLOW_END};
  if (!prof_i_flows_add(&w->flows, &flow)) w->check.findings.counts[PROF_I_FINDING_FLOW_TOO_MANY]++;
}

/* False: no memory. */
static bool put_detailed(prof_i_chrome *w, const prof_i_span *span) {
  if (span->lane != w->lane) track_set(w, span->lane);
  prof_i_trace_expand(w->trace, w->thread, span, &w->event);
  switch ((prof_event_kind)span->kind) {
    case PROF_EVENT_SCOPE:
    case PROF_EVENT_OPEN:
      if (w->event.name_bytes == 0) w->check.findings.counts[PROF_I_FINDING_UNNAMED]++;
      w->written.open_count += span->kind == PROF_EVENT_OPEN;
      w->written.scope_count += span->kind == PROF_EVENT_SCOPE;
      if (w->event.flags & PROF_EVENT_ON_DEVICE)
        put_device_event(w, span);
      else
        return put_scope(w, span);
      break;
    case PROF_EVENT_STEP:
      w->written.step_count++;
      return put_step(w, span);
    case PROF_EVENT_INSTANT:
      put_instant(w, span);
      break;
    case PROF_EVENT_COUNTER:
      return prof_i_chrome_add_counter(w, span);
    case PROF_EVENT_MEMORY:
      break; /* prof_i_chrome_put_memory() */
    case PROF_EVENT_FLOW_BEGIN:
    case PROF_EVENT_FLOW_END:
      keep_flow(w, span);
      break;
  }
  return true;
}

/* ---- the walk ---- */

static bool span_has_duration(const prof_i_span *span) {
  return span->kind == PROF_EVENT_SCOPE || span->kind == PROF_EVENT_OPEN ||
         span->kind == PROF_EVENT_STEP;
}

static int visit_spans(void *user, const prof_i_span *spans, size_t count) {
  prof_i_chrome *const w = user;
  const bool has_window = w->window.from_ns != 0 || w->window.to_ns != 0;
  for (size_t i = 0; i < count; i++) {
    const prof_i_span *const span = &spans[i];
    if (has_window &&
        !prof_i_window_contains(&w->window, span->start_ns, span->start_ns + span->duration_ns))
      continue;
    if (span->lane == PROF_I_LANES_MAX) { /* no row is free for it */
      w->check.findings.counts[PROF_I_FINDING_CROWDED]++;
      continue;
    }
    if (span->start_ns < w->first_ns) w->first_ns = span->start_ns;
    if (span->lane >= w->lanes_named) { /* its name stands before what is turned over */
      prof_i_reversal_end_thread(&w->reversal, w->sink);
      prof_i_chrome_name_lane(w, span->lane);
    }
    prof_i_reversal_next_text(&w->reversal, w->sink, span->start_ns, span->duration_ns);
    if (span_has_duration(span)) {
      prof_i_self_check_scope(&w->check, span);
      if (w->flows.pending != PROF_I_NO_FLOW && span->lane == 0)
        prof_i_flows_bind(&w->flows, span->depth, span->start_ns,
                          span->start_ns + span->duration_ns);
    }
    if (span->kind == PROF_EVENT_SCOPE && span->record == NULL && span->lane == w->lane &&
        !w->has_records && w->owner_count == 0 && put_plain_scope(w, span))
      w->written.scope_count++;
    else if (!put_detailed(w, span))
      return PROF_E_NO_MEMORY;
  }
  return w->sink->status;
}

void prof_i_chrome_select_thread(prof_i_chrome *w, uint32_t index) {
  w->thread = index;
  w->ids = w->tids[index];
  w->backward.forward_thread = 0;
  track_set(w, 0);
}

void prof_i_chrome_select_process(prof_i_chrome *w) {
  w->ids = (prof_i_tids){.first = w->info.pid, .step = 1, .pid = w->info.pid};
  track_set(w, 0);
}

static int walk_thread_events(prof_i_chrome *w, uint32_t index) {
  prof_i_walker *const walker = prof_i_walker_create(w->trace, index, visit_spans, w);
  if (!walker) return PROF_E_NO_MEMORY;
  prof_i_walker_skip_before(walker, w->window.from_ns);
  const bool has_callers = prof_i_call_stacks_has_any(&w->call_stacks);
  if (has_callers || prof_i_python_ids_any(&w->python_ids)) {
    w->walker = walker;
    prof_i_walker_track_parents(walker, has_callers ? &w->call_stacks : NULL,
                                prof_i_call_stacks_enclosing);
  }
  const int status = prof_i_walker_run(walker);
  prof_i_reversal_end_thread(&w->reversal, w->sink);
  prof_i_walker_destroy(walker);
  w->walker = NULL;
  return status;
}

static int put_thread_events(prof_i_chrome *w, uint32_t index) {
  prof_i_chrome_select_thread(w, index);
  prof_i_chrome_select_launches(w);
  w->lanes_named = 1;
  memset(w->owner_ids, 0, sizeof w->owner_ids);
  w->owner_count = 0;
  prof_i_self_check_next_thread(&w->check);
  prof_i_flows_next_thread(&w->flows);
  const int status = walk_thread_events(w, index);
  if (status == PROF_OK || w->sink->status != PROF_OK) return status;
  return prof_i_fail(status, "no memory to walk the scopes of thread %u", index);
}

/* Arrows from forward to backward, which a trace of Kineto's has, and readers know by their
   category. */
static bool is_forward(prof_i_text name) {
  static const char forward[] = "fwdbwd";
  return name.bytes == sizeof forward - 1 && memcmp(name.data, forward, sizeof forward - 1) == 0;
}

/* From pid to ts, of what stands on the end's row. */
static void put_flow_location(prof_i_chrome *w, const prof_i_flow *flow) {
  char *to = prof_i_sink_reserve(w->sink, 6 * PROF_I_NUMBER_ROOM);
  to = text_append(to, ",\"pid\":");
  to = prof_i_put_u64(to, flow->pid);
  to = text_append(to, ",\"tid\":");
  to = prof_i_put_u64(to, flow->tid);
  to = text_append(to, ",\"ts\":");
  prof_i_sink_advance(w->sink, prof_i_put_us(to, w->epoch_ns + flow->start_ns));
}

/* Viewers draw an arrow between slices alone, and an instant is one: for an end in no scope. prof
   import knows it by its category and argument. */
static void put_flow_mark(prof_i_chrome *w, const prof_i_flow *flow, prof_i_text name) {
  prof_i_sink_text(w->sink, "{\"ph\":\"i\",\"s\":\"t\",\"cat\":\"flow\",\"name\":\"");
  prof_i_sink_string_part(w->sink, name.data, name.bytes);
  prof_i_sink_bytes(w->sink, "\"", 1);
  put_flow_location(w, flow);
  prof_i_sink_text(w->sink, ",\"args\":{\"arrow mark\":true}},\n");
  w->written.mark_count++;
}

static void put_flow(prof_i_chrome *w, const prof_i_flow *flow, uint64_t number, prof_i_text name) {
  if (!flow->is_held) put_flow_mark(w, flow, name);
  prof_i_sink_text(w->sink, flow->is_end ? "{\"ph\":\"f\",\"bp\":\"e\"" : "{\"ph\":\"s\"");
  prof_i_sink_text(w->sink, is_forward(name) ? ",\"cat\":\"fwdbwd\"" : ",\"cat\":\"flow\"");
  prof_i_sink_text(w->sink, ",\"name\":\"");
  prof_i_sink_string_part(w->sink, name.data, name.bytes);
  prof_i_sink_text(w->sink, "\",\"id\":");
  prof_i_sink_u64(w->sink, number);
  put_flow_location(w, flow);
  if (!flow->is_end) { /* catapult warns of an argument that both ends have */
    prof_i_sink_text(w->sink, ",\"args\":{\"flow id\":");
    prof_i_chrome_put_id(w, flow->id);
    prof_i_sink_text(w->sink, flow->name_bytes ? "}" : ",\"unnamed\":true}");
  }
  prof_i_sink_text(w->sink, "},\n");
}

/* As Kineto writes them. Returns how many arrows. */
static uint64_t put_forwards(prof_i_chrome *w, uint64_t first_number) {
  prof_i_forwards_match(&w->forwards);
  w->check.findings.counts[PROF_I_FINDING_FLOW_TOO_MANY] += w->forwards.left_out_count;
  for (size_t i = 0; i < w->forwards.count && w->sink->status == PROF_OK; i++) {
    const prof_i_forward *const end = &w->forwards.items[i];
    prof_i_sink_text(w->sink, i % 2 ? "{\"ph\":\"f\",\"bp\":\"e\"" : "{\"ph\":\"s\"");
    char *to = text_append(prof_i_sink_reserve(w->sink, 128 + 4 * PROF_I_NUMBER_ROOM),
                           ",\"cat\":\"fwdbwd\",\"name\":\"fwdbwd\",\"id\":");
    to = prof_i_put_u64(to, first_number + i / 2);
    to = text_append(to, ",\"pid\":");
    to = prof_i_put_u64(to, end->pid);
    to = text_append(to, ",\"tid\":");
    to = prof_i_put_u64(to, end->tid);
    to = text_append(to, ",\"ts\":");
    to = prof_i_put_us(to, w->epoch_ns + end->start_ns);
    prof_i_sink_advance(w->sink, text_append(to, "},\n"));
  }
  return w->forwards.count / 2;
}

/* After all scopes, so that each end stands behind the scope that it is inside of. An arrow's
   number is new, for Perfetto refuses an id that comes again; both ends get the name that the
   beginning had, for it goes by that as well. */
static void put_flows(prof_i_chrome *w) {
  size_t outside, alone;
  prof_i_flows_match(&w->flows, &outside, &alone);
  w->check.findings.counts[PROF_I_FINDING_FLOW_OUTSIDE] = outside;
  w->check.findings.counts[PROF_I_FINDING_FLOW_ALONE] = alone;
  for (size_t i = 0; i < w->flows.count && w->sink->status == PROF_OK; i++) {
    const prof_i_flow *const begin = &w->flows.items[i & ~(size_t)1];
    put_flow(w, &w->flows.items[i], i / 2 + 1,
             prof_i_chrome_name_or_default((prof_i_text){begin->name, begin->name_bytes}, "flow"));
  }
  uint64_t arrows = w->flows.count / 2;
  arrows += prof_i_chrome_put_arrows(w, arrows + 1);
  arrows += put_forwards(w, arrows + 1);
  w->written.flow_count = 2 * arrows;
}

int prof_i_chrome_write(const prof_trace *trace, const prof_i_chrome_options *chrome_options,
                        prof_i_sink *sink, prof_i_findings *findings_out) {
  *findings_out = (prof_i_findings){{0}};
  prof_i_chrome *const w = calloc(1, sizeof *w);
  if (w == NULL)
    return prof_i_fail(PROF_E_NO_MEMORY, "no memory to write JSON (%zu bytes)", sizeof *w);
  w->trace = trace;
  w->sink = sink;
  w->window = chrome_options->window;
  w->metadata = chrome_options->metadata;
  w->with_marks = chrome_options->with_marks;
  w->stack_folders = chrome_options->stack_folders;
  w->first_ns = chrome_options->window.from_ns;
  fill_short_us(w);
  w->info.size = sizeof w->info;
  int status = prof_trace_info_get(trace, &w->info);
  w->base_ns = w->info.start_unix_ns / base_step_ns * base_step_ns;
  w->epoch_ns = w->info.start_unix_ns - w->base_ns;
  prof_i_self_check_init(&w->check, w->info.duration_ns);
  prof_i_flows_init(&w->flows);
  w->reversal.start_ns = PROF_I_REVERSAL_NONE;
  w->check.findings.counts[PROF_I_FINDING_UNREADABLE] = w->info.bad_count;

  if (status == PROF_OK) status = prof_i_tids_create(trace, w->info.thread_count, &w->tids);
  if (status == PROF_OK) status = prof_i_chrome_find_launches(w);
  if (status == PROF_OK && chrome_options->with_stacks &&
      !prof_i_call_stacks_init(&w->call_stacks, trace, 0, false))
    status = prof_i_fail(PROF_E_NO_MEMORY, "no memory for the stacks of %u call sites",
                         prof_i_trace_site_count(trace));
  if (status == PROF_OK && prof_i_python_ids_init(&w->python_ids, trace, w->info.thread_count,
                                                  chrome_options->window) != PROF_OK)
    status =
        prof_i_fail(PROF_E_NO_MEMORY, "no memory to number the calls of functions, of %u threads",
                    w->info.thread_count);
  if (status == PROF_OK &&
      prof_i_event_numbers_init(&w->numbers, trace, w->info.thread_count, chrome_options->window,
                                chrome_options->with_memory) != PROF_OK)
    status = prof_i_fail(PROF_E_NO_MEMORY, "no memory to number the rows of %u threads",
                         w->info.thread_count);
  begin_ids(w);
  if (status == PROF_OK) prof_i_chrome_put_head(w);
  for (int streams = 0; streams < 2; streams++) /* what was launched behind what launched it */
    for (uint32_t i = 0; status == PROF_OK && i < w->info.thread_count; i++)
      if (w->tids[i].is_stream == streams) status = put_thread_events(w, i);
  if (status == PROF_OK) {
    prof_i_self_check_next_thread(&w->check);
    prof_i_chrome_put_counters(w);
    if (chrome_options->with_memory) status = prof_i_chrome_put_memory(w);
  }
  if (status == PROF_OK) {
    put_flows(w);
    prof_i_chrome_put_tail(w);
    status = sink->status;
  }
  *findings_out = w->check.findings;
  prof_i_flows_fini(&w->flows);
  prof_i_reversal_fini(&w->reversal);
  prof_i_forwards_fini(&w->forwards);
  free(w->counters.items);
  free(w->tids);
  free(w->correlations);
  prof_i_launches_fini(&w->launches);
  prof_i_call_stacks_fini(&w->call_stacks);
  prof_i_python_ids_fini(&w->python_ids);
  prof_i_event_numbers_fini(&w->numbers);
  free(w);
  return status;
}
