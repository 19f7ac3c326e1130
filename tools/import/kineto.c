/* What events mean, and which times are possible. See internal.h. */
#define _GNU_SOURCE
#include "internal.h"

#include <prof/profiler.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/format/layout.h"

static const int64_t duration_max_ns = INT64_C(366) * 86400 * 1000000000;

/* Kineto's rows about itself: their pid is no process. */
static bool event_is_about_tracing(const import_event *event, import_text category) {
  const import_value *const pid = &event->members[IMPORT_PID];
  if (pid->type != IMPORT_TEXT) return false;
  const import_text text = import_text_of(event, pid);
  return import_text_is(category, "Trace") || import_text_is(text, "Spans") ||
         import_text_is(text, "Traces") || text.bytes == 0;
}

/* ---- times ---- */

enum { BIN_SHIFT = 56, BINS_CHOSEN = 4 };
static const uint64_t origin_ticks = UINT64_C(1)
                                     << 58; /* of 60 bits, with as much room before as behind */

/* False: it is no time. */
static bool times_read(import_times *times, const import_event *event, uint64_t *time_out) {
  const import_value *const value = &event->members[IMPORT_TS];
  const bool is_told = value->type == IMPORT_NUMBER || value->type == IMPORT_TEXT;
  int64_t ns;
  if (!is_told || !import_number_us(import_text_of(event, value), &ns)) return false;
  const uint64_t time = (uint64_t)ns ^ UINT64_C(1) << 63;
  import_time_bin *const stretch = &times->time_bins[time >> BIN_SHIFT];
  if (stretch->count++ == 0) {
    const import_text name = import_text_of(event, &event->members[IMPORT_NAME]);
    const int bytes = (int)(name.bytes < sizeof stretch->name ? name.bytes : sizeof stretch->name);
    stretch->first = time;
    snprintf(stretch->name, sizeof stretch->name, "%.*s", bytes, name.data);
  }
  *time_out = time;
  return true;
}

/* Chooses the nine years in which most events began. If two have as many, it takes the later one: a
   wrong time is mostly 0. */
static void choose_times(import_times *times) {
  uint64_t most = 0, begin = 0;
  for (uint64_t i = 0; i < IMPORT_TIME_BINS; i++) {
    uint64_t count = 0;
    for (uint64_t n = i; n < i + BINS_CHOSEN && n < IMPORT_TIME_BINS; n++)
      count += times->time_bins[n].count;
    if (count < most || times->time_bins[i].count == 0) continue;
    most = count;
    begin = i;
  }
  times->low = begin << BIN_SHIFT;
  times->high = times->low + ((uint64_t)BINS_CHOSEN << BIN_SHIFT) - 1;
  if (times->high < times->low) times->high = UINT64_MAX;
  times->shift = times->time_bins[begin].first - origin_ticks;
}

/* The first event that is not taken for its time; empty: all are. */
static const char *times_outlier(const import_times *times) {
  for (uint64_t i = 0; i < IMPORT_TIME_BINS; i++)
    if (times->time_bins[i].count && !import_times_has(times, times->time_bins[i].first))
      return times->time_bins[i].name;
  return "";
}

/* False: it is missed. */
static bool read_time(import_state *state, const import_event *event, uint64_t *time_out) {
  const import_value *const value = &event->members[IMPORT_TS];
  const bool is_there = value->type != IMPORT_NONE && value->type != IMPORT_NULL;
  if (is_there && times_read(&state->times, event, time_out)) return true;
  import_count_dropped(state, is_there ? IMPORT_MISS_TIME : IMPORT_MISS_NO_TIME);
  return false;
}

static bool read_duration(import_state *state, const import_event *event, uint64_t time,
                          uint64_t *ns_out) {
  const import_value *const value = &event->members[IMPORT_DUR];
  int64_t ns = 0;
  if (value->type == IMPORT_NONE || value->type == IMPORT_NULL) {
    import_count_changed(state, IMPORT_CHANGE_NO_DURATION);
  } else if (!import_number_us(import_member_text(event, IMPORT_DUR), &ns) ||
             ns > duration_max_ns) {
    import_count_dropped(state, IMPORT_MISS_DURATION);
    return false;
  } else if (ns < 0) {
    import_count_dropped(state, IMPORT_MISS_NEGATIVE);
  }
  if (ns < 0) return false;
  *ns_out = (uint64_t)ns;
  if (*ns_out > import_times_left(time)) {
    *ns_out = import_times_left(time);
    import_count_changed(state, IMPORT_CHANGE_LONG);
  }
  return true;
}

/* ---- names of devices ---- */

/* The number behind "key": in JSON without blanks. */
static bool find_number(import_text json, const char *key, size_t from, int64_t *out,
                        size_t *at_out) {
  const size_t key_bytes = strlen(key);
  for (size_t i = from; i + key_bytes < json.bytes; i++) {
    if (memcmp(json.data + i, key, key_bytes) != 0) continue;
    size_t digits = 0;
    while (i + key_bytes + digits < json.bytes &&
           strchr("-0123456789", json.data[i + key_bytes + digits]))
      digits++;
    *at_out = i + key_bytes;
    return import_number_i64((import_text){json.data + *at_out, digits}, out);
  }
  return false;
}

/* [{"id":0,"name":"NVIDIA H100",...}, ...] */
static void convert_devices(import_state *state, import_text json) {
  static const char key[] = "\"name\":\"";
  const size_t key_bytes = sizeof key - 1;
  int64_t number;
  for (size_t at = 0; find_number(json, "{\"id\":", at, &number, &at);) {
    size_t from = at, bytes = 0;
    while (from + key_bytes < json.bytes && json.data[from] != '}' &&
           memcmp(json.data + from, key, key_bytes) != 0)
      from++;
    from += key_bytes;
    if (from >= json.bytes || json.data[from - 1] != '"') continue;
    while (from + bytes < json.bytes && json.data[from + bytes] != '"') bytes++;
    import_devices_name(&state->devices, number, (import_text){json.data + from, bytes});
  }
}

/* ---- events ---- */

/* May it be a device's, as is known when all have come? */
static bool event_is_deferred(import_state *state, const import_event *event,
                              import_text category) {
  if (import_category_is_host(category)) return false;
  if (category.bytes == 0) return true;
  const import_thread_id row = import_threads_id(event);
  import_process *const process = import_devices_process(&state->devices, row.pid);
  if (process->is_device || process->is_summary) return true;
  if (import_threads_stream_of(&state->threads, row)) return true;
  process->early_count++;
  return false;
}

/* Threads are in the order of their first events in the file. */
static void defer_open_scope(import_state *state, const import_event *event, int kind,
                             uint64_t time) {
  const import_thread_id row = import_threads_id(event);
  const import_process *const process = import_devices_process(&state->devices, row.pid);
  if (kind == IMPORT_KIND_NONE && !process->is_device && !process->is_summary &&
      !import_threads_stream_of(&state->threads, row))
    import_host_thread(state, event);
  import_deferred_add(state, event, 'X', time);
}

static void convert_scope(import_state *state, const import_event *event) {
  const import_text category = import_member_text(event, IMPORT_CAT);
  const int kind = import_device_kind(category);
  uint64_t time, duration;
  if (event_is_about_tracing(event, category))
    import_count_dropped(state, IMPORT_MISS_SPAN);
  else if (!read_time(state, event, &time) || !read_duration(state, event, time, &duration))
    return;
  else if (import_event_is_open(event))
    defer_open_scope(state, event, kind, time);
  else if (event->members[IMPORT_SF].type != IMPORT_NONE ||
           (kind == IMPORT_KIND_NONE && event_is_deferred(state, event, category)))
    import_deferred_add(state, event, 'X', time);
  else
    import_convert_scope(state, event, kind, time, duration);
}

static void defer_event(import_state *state, const import_event *event, char phase) {
  uint64_t time;
  if (read_time(state, event, &time)) import_deferred_add(state, event, phase, time);
}

/* An import keeps deviceProperties as an instant, and an export of it says the devices' names by
   that. */
static void convert_device_names(import_state *state, const import_event *event,
                                 import_text category, import_text name) {
  const import_value *const value = import_event_arg(event, "value");
  if (!value || value->type != IMPORT_TEXT) return;
  if (import_text_is(category, "metadata") && import_text_is(name, "deviceProperties"))
    convert_devices(state, import_text_of(event, value));
}

static bool text_put_count(char *to, size_t room, size_t *used, const import_event *event,
                           const char *key, const char *words) {
  const import_value *const value = import_event_arg(event, key);
  if (!value || value->type != IMPORT_NUMBER) return false;
  const import_text count = import_text_of(event, value);
  const int more = snprintf(to + *used, room - *used, "%s%.*s %s", *used ? ", " : "",
                            (int)count.bytes, count.data, words);
  if (more > 0 && (size_t)more < room - *used) *used += (size_t)more;
  return true;
}

/* Whether the file has all of its capture. */
static void convert_part(import_state *state, const import_event *event) {
  const import_value *const filtered = import_event_arg(event, PROF_I_KEY_FILTERED);
  int64_t count;
  if (filtered && filtered->type == IMPORT_NUMBER &&
      import_number_whole(import_text_of(event, filtered), &count) && count > 0)
    state->counts->filtered += (uint64_t)count;
  state->counts->is_span |= import_event_arg(event, PROF_I_KEY_IN_SPAN) != NULL;
}

/* The instant at the end of an export of prof says what its capture has lost. */
static void convert_summary(import_state *state, const import_event *event) {
  char *const to = state->counts->original;
  const size_t room = sizeof state->counts->original;
  size_t used = 0;
  for (int i = 0; i < PROF_LOSS_COUNT; i++) {
    char key[64], words[64];
    snprintf(key, sizeof key, "lost: %s", prof_loss_name(i));
    snprintf(words, sizeof words, "lost (%s)", prof_loss_name(i));
    text_put_count(to, room, &used, event, key, words);
  }
}

static void add_open_below(import_state *state, const import_event *event) {
  const uint64_t most = UINT64_C(1) << 26; /* of a slot's number few bits count */
  int64_t count;
  if (!import_read_arg(event, "unfinished below 64 others", &count) || count <= 0) return;
  state->open_below_count += (uint64_t)count < most ? (uint64_t)count : most;
  if (state->open_below_count > most) state->open_below_count = most;
}

/* Marks on the time line of an export of prof: the summary, and changes. */
static void convert_own_mark(import_state *state, const import_event *event) {
  if (import_event_arg(event, "self_check_faults")) {
    convert_summary(state, event);
    add_open_below(state, event);
    convert_part(state, event);
  } else
    import_count_dropped(state, IMPORT_MISS_OWN_CHANGE);
}

static void convert_instant(import_state *state, const import_event *event) {
  const import_text category = import_member_text(event, IMPORT_CAT),
                    name = import_member_text(event, IMPORT_NAME);
  uint64_t time;
  convert_device_names(state, event, category, name);
  if (event_is_about_tracing(event, category))
    import_count_dropped(state, IMPORT_MISS_SPAN);
  else if (import_text_is(category, "prof"))
    convert_own_mark(state, event);
  else if (read_time(state, event, &time)) {
    const import_text scope = import_member_text(event, IMPORT_S);
    if (scope.bytes && !import_text_is(scope, "t"))
      import_count_changed(state, IMPORT_CHANGE_INSTANT_SCOPE);
    import_deferred_add(state, event, 'i', time);
  }
}

/* Graphs of memory are drawn anew out of its events. */
static void convert_counter(import_state *state, const import_event *event) {
  const import_text name = import_member_text(event, IMPORT_NAME);
  const bool is_memory = import_text_is(import_member_text(event, IMPORT_CAT), "memory");
  if (is_memory &&
      (import_text_begins(name, "used bytes (") || import_text_begins(name, "allocated bytes (")))
    import_count_dropped(state, IMPORT_MISS_DRAWN);
  else
    defer_event(state, event, 'C');
}

/* ---- what names things ---- */

/* Where a row stands among others. prof's own says whose row it is, too. */
static void convert_sort_index(import_state *state, const import_event *event, bool is_thread) {
  int64_t number;
  if (is_thread && import_read_arg(event, "number", &number) && number >= 0)
    import_threads_say_number(&state->threads, import_threads_id(event), number);
  if (!is_thread && import_read_arg(event, "number", &number))
    import_convert_process_number(state, import_threads_id(event).pid, number);
  if (is_thread && import_read_arg(event, "process", &number)) {
    const import_value *const name = import_event_arg(event, "process_name");
    const import_text none = {"", 0};
    import_threads_say_owner(&state->threads, import_threads_id(event), number,
                             name ? import_text_of(event, name) : none);
  }
  import_count_dropped(state, IMPORT_MISS_SORT);
}

/* An export has CPU or GPU at each process. */
static void convert_label(import_state *state, import_thread_id id, import_text label) {
  const bool is_devices = import_devices_call(&state->devices, id.pid, label, true);
  if (!is_devices && !import_text_is(label, "CPU") && !import_text_is(label, "GPU"))
    import_count_dropped(state, IMPORT_MISS_LABEL);
}

static void drop_metadata(import_state *state, import_text name) {
  import_counts *const c = state->counts;
  if (c->missed[IMPORT_MISS_METADATA] == 0) {
    const import_text kept = import_text_cut(name, sizeof c->metadata - 1);
    memcpy(c->metadata, kept.data, kept.bytes);
  }
  import_count_dropped(state, IMPORT_MISS_METADATA);
}

/* Scopes with their own category that precede the process's name count as the host's. */
static void set_process_name(import_state *state, int64_t pid, import_text name) {
  import_process *const process = import_devices_process(&state->devices, pid);
  const bool is_devices = import_devices_call(&state->devices, pid, name, false);
  if (!is_devices && !process->is_summary) return;
  state->counts->changed[IMPORT_CHANGE_AS_HOST] += process->early_count;
  process->early_count = 0;
}

static void note_stream_row(import_state *state, import_thread_id row, import_text name) {
  int64_t number;
  bool is_whole;
  if (import_text_begins(name, "Stream ") && import_row_read_stream(name, &number, &is_whole))
    import_devices_process(&state->devices, row.pid)->has_stream_rows = true;
}

static void convert_name(import_state *state, const import_event *event) {
  const import_text what = import_member_text(event, IMPORT_NAME);
  const bool is_label = import_text_is(what, "process_labels"),
             is_process = import_text_is(what, "process_name"),
             is_thread_sort = import_text_is(what, "thread_sort_index");
  const import_value *const value = import_event_arg(event, is_label ? "labels" : "name");
  import_thread_id id = import_threads_id(event);
  if (is_thread_sort || import_text_is(what, "process_sort_index")) {
    convert_sort_index(state, event, is_thread_sort);
    return;
  }
  if (!is_label && !is_process && !import_text_is(what, "thread_name")) {
    drop_metadata(state, what);
    return;
  }
  if (!value || value->type != IMPORT_TEXT) {
    import_count_changed(state, IMPORT_CHANGE_NOT_TEXT);
    return;
  }
  const import_text name = import_text_of(event, value);
  if (is_label) {
    convert_label(state, id, name);
    return;
  }
  if (is_process) {
    set_process_name(state, id.pid, name);
    id.tid = INT64_MIN;
  }
  note_stream_row(state, id, name);
  import_threads_name(&state->threads, id, name);
}

/* ---- arrows that events name themselves ---- */

static bool member_is_true(const import_event *event, import_member member) {
  return event->members[member].type == IMPORT_BOOL && event->members[member].is_true;
}

/* Events of one bind_id: an arrow goes from one with flow_out to each with flow_in behind it. */
static void convert_bound_arrow(import_state *state, const import_event *event, bool is_async) {
  const bool is_in = member_is_true(event, IMPORT_FLOW_IN),
             is_out = member_is_true(event, IMPORT_FLOW_OUT);
  const import_member kept[] = {IMPORT_PID, IMPORT_TID, IMPORT_BIND_ID};
  uint64_t time;
  if (event->members[IMPORT_BIND_ID].type == IMPORT_NONE || !(is_in || is_out)) return;
  if (event_is_about_tracing(event, import_member_text(event, IMPORT_CAT)) ||
      !times_read(&state->times, event, &time)) {
    import_count_dropped(state, IMPORT_MISS_BOUND);
    return;
  }
  import_event *const end = import_make(sizeof *end);
  end->text = event->text;
  for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
    end->members[kept[i]] = event->members[kept[i]];
  char phase = 's';
  if (is_in) phase = 'f';
  if (is_in && is_out) phase = 't';
  import_deferred_add(state, end, phase, time);
  if (is_async) import_deferred_hold(&state->deferred);
  free(end);
}

/* Does its bind_id say where an arrow is? Perfetto takes none of an end's or an instant's. */
static bool phase_is_bindable(char phase) { return phase && strchr("XBbSnTp", phase); }

/* What is not taken of an event that is. */
static void count_dropped_parts(import_state *state, const import_event *event, char phase) {
  const import_value *const members = event->members;
  if (event->is_odd || members[IMPORT_NAME].type == IMPORT_BOOL ||
      members[IMPORT_CAT].type == IMPORT_BOOL)
    import_count_changed(state, IMPORT_CHANGE_NOT_TEXT);
  if (event->has_null) import_count_changed(state, IMPORT_CHANGE_NULL_ARG);
  const bool has_frame = members[IMPORT_SF].type != IMPORT_NONE && phase != 'X' && phase != 'B';
  if (has_frame || members[IMPORT_STACK].type != IMPORT_NONE)
    import_count_dropped(state, IMPORT_MISS_STACK);
  if (members[IMPORT_BIND_ID].type != IMPORT_NONE && !phase_is_bindable(phase))
    import_count_dropped(state, IMPORT_MISS_BOUND);
  if (!event->unknown[0]) return;
  if (state->counts->changed[IMPORT_CHANGE_MEMBER] == 0)
    memcpy(state->counts->member, event->unknown, sizeof event->unknown);
  import_count_changed(state, IMPORT_CHANGE_MEMBER);
}

/* Texts that the event has for the numbers of its process and its thread name both. */
static void note_texts(import_state *state, const import_event *event) {
  import_text text;
  if (event_is_about_tracing(event, import_member_text(event, IMPORT_CAT))) return;
  const bool has_pid = import_threads_text(event, IMPORT_PID, &text);
  if (has_pid && import_threads_keep_pid(&state->threads, import_threads_id(event), text))
    import_devices_call_text(&state->devices, import_threads_id(event).pid, text);
  if (!import_threads_text(event, IMPORT_TID, &text)) return;
  const import_thread_id row = import_threads_id(event);
  if (import_threads_name_of(&state->threads, row).bytes) return;
  import_threads_name(&state->threads, row, text);
  note_stream_row(state, row, text);
}

void import_kineto_event(import_state *state, const import_event *event) {
  const import_text phase = import_member_text(event, IMPORT_PH);
  char ph = '\0';
  if (phase.bytes == 1) ph = phase.data[0];
  state->order++;
  note_texts(state, event);
  switch (ph) {
    case 'X':
      convert_scope(state, event);
      convert_bound_arrow(state, event, false);
      break;
    case 'i':
    case 'I':
    case 'R':
      convert_instant(state, event);
      break;
    case 'C':
      convert_counter(state, event);
      break;
    case 'M':
      convert_name(state, event);
      return;
    case 'B':
      defer_event(state, event, ph);
      convert_bound_arrow(state, event, false);
      break;
    case 'b':
    case 'S':
    case 'n':
    case 'T':
    case 'p':
      defer_event(state, event, ph);
      convert_bound_arrow(state, event, true);
      break;
    case 'E':
    case 'e':
    case 'F':
    case 's':
    case 't':
    case 'f':
      defer_event(state, event, ph);
      break;
    default:
      import_count_dropped(state, IMPORT_MISS_PHASE);
      return;
  }
  count_dropped_parts(state, event, ph);
}

/* ---- beside the events ---- */

static void convert_distributed(import_state *state, import_text json) {
  static const char no_rank[] = "\"is_rank_known\":false"; /* of an export of prof's */
  int64_t rank, world_size;
  size_t at;
  if (memmem(json.data, json.bytes, no_rank, sizeof no_rank - 1)) return;
  if (!find_number(json, "\"rank\":", 0, &rank, &at) || rank < 0 || rank > INT32_MAX) return;
  state->rank = (int32_t)rank;
  if (find_number(json, "\"world_size\":", 0, &world_size, &at) && world_size > 0 &&
      world_size <= INT32_MAX)
    state->world_size = (int32_t)world_size;
}

static void keep_metadata(import_state *state, import_text key, import_text text) {
  enum { MEMBERS_MAX = 4096 }; /* nobody says that much about one trace */
  char name[IMPORT_NAME_BYTES + 256];
  if (state->member_count == MEMBERS_MAX) {
    import_count_dropped(state, IMPORT_MISS_ROWS);
    return;
  }
  state->member_count++;
  const int bytes = snprintf(name, sizeof name, "%.*s", (int)key.bytes, key.data);
  import_convert_metadata(state, (import_text){name, (size_t)bytes}, text);
}

/* What every trace says, and what prof tells of itself, says nothing of this one. The capture has
   the host's name, and an export its own id. */
static bool text_is_default(import_text key, import_text text) {
  static const char *const keys[] = {
      "schemaVersion",       "displayTimeUnit", "traceName", "traceEvents", "prof",
      "baseTimeNanoseconds", "stackFrames",     "host_name", "trace_id"};
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
    if (import_text_is(key, keys[i])) return true;
  const bool is_ours =
      import_text_is(key, "distributedInfo") &&
      import_text_begins(text, "{\"backend\":\"\""); /* the rank is kept, and it says no more */
  return is_ours || import_text_is(text, "[]") || import_text_is(text, "{}");
}

/* The member "prof" of an export of prof. A host's name has no character that JSON escapes. */
static void convert_loss_report(import_state *state, const import_value *value, import_text text) {
  static const char key[] = "\"host\":\"";
  state->devices.is_of_prof =
      value->type == IMPORT_JSON && import_text_begins(text, "{\"version\":");
  if (!state->devices.is_of_prof) return;
  const char *const found = memmem(text.data, text.bytes, key, sizeof key - 1);
  if (!found) return;
  const char *const host = found + sizeof key - 1, *const end = text.data + text.bytes;
  const char *const quote = memchr(host, '"', (size_t)(end - host));
  if (quote)
    snprintf(state->host, sizeof state->host, "%.*s",
             (int)(quote - host < 255 ? quote - host : 255), host);
}

/* A text has a line for each event, behind lines of a head. */
static void drop_system_events(import_state *state, const import_value *value, import_text text) {
  uint64_t count = value->type != IMPORT_TEXT && text.bytes > 2;
  for (size_t at = 0, next; value->type == IMPORT_TEXT && at < text.bytes; at = next + 1) {
    const char *const end = memchr(text.data + at, '\n', text.bytes - at);
    next = end ? (size_t)(end - text.data) : text.bytes;
    count += next > at && text.data[at] != '#';
  }
  state->counts->missed[IMPORT_MISS_SYSTEM] += count;
}

void import_kineto_metadata(import_state *state, import_text key, const import_value *value,
                            import_text text) {
  if (import_text_is(key, "baseTimeNanoseconds") && value->type == IMPORT_NUMBER)
    import_number_i64(text, &state->base_ns);
  if (import_text_is(key, "distributedInfo")) convert_distributed(state, text);
  if (import_text_is(key, "deviceProperties")) convert_devices(state, text);
  if (import_text_is(key, "prof")) convert_loss_report(state, value, text);
  if (import_text_is(key, "host_name"))
    snprintf(state->host, sizeof state->host, "%.*s",
             (int)(text.bytes < sizeof state->host ? text.bytes : sizeof state->host), text.data);
  if (import_text_is(key, "stackFrames") && !import_text_is(text, "{}"))
    import_count_dropped(state, IMPORT_MISS_STACK);
  if (import_text_is(key, "systemTraceEvents"))
    drop_system_events(state, value, text);
  else if (!text_is_default(key, text))
    keep_metadata(state, key, text);
}

/* A capture counts from its clock's 0, and a trace may begin before that. */
static void note_base_time(import_state *state) {
  int64_t ns = import_times_ns(state->begin_ticks + state->times.shift);
  if (__builtin_add_overflow(ns, state->base_ns, &ns) || ns >= 0) return;
  state->counts->changed[IMPORT_CHANGE_BEGIN] = 0 - (uint64_t)ns;
}

void import_kineto_end(import_state *state) {
  choose_times(&state->times);
  import_deferred_convert(state);
  if (state->devices.is_of_prof) state->counts->missed[IMPORT_MISS_SORT] = 0; /* as they will be */
  if (state->frames.all && !state->frames.is_used) import_count_dropped(state, IMPORT_MISS_STACK);
  snprintf(state->counts->outlier, sizeof state->counts->outlier, "%s",
           times_outlier(&state->times));
  if (state->begin_ticks == 0)
    state->begin_ticks = state->end_ticks = import_times_ticks(&state->times, 0);
  else
    note_base_time(state);
}
