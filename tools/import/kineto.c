/* See kineto.h. */
#include "kineto.h"

#include <prof/backend.h>
#include <stdio.h>
#include <stdlib.h>

#include "args.h"
#include "number.h"

enum { LEVEL_OPERATOR = 1, LEVEL_RUNTIME = 2, LEVEL_OF_FUNCTIONS = 0 /* capture.c */, BEGUN_MAX = 1000000, NO_KIND = -1 };
static const int64_t duration_max_ns = INT64_C(366) * 86400 * 1000000000;

static struct {
  import_values values;
  import_record record;
} own; /* of the event at hand: 64 KiB that no stack need hold */

static import_text text_of(const import_event *event, import_member member) {
  const import_value *const value = &event->members[member];
  return value->type == IMPORT_TEXT || value->type == IMPORT_NUMBER ? import_text_of(event, value) : (import_text){"", 0};
}

static void miss(import_state *state, import_miss why) { state->counts->missed[why]++; }
static void change(import_state *state, import_change what) { state->counts->changed[what]++; }

static bool begins(import_text text, const char *word) { return text.bytes >= strlen(word) && memcmp(text.data, word, strlen(word)) == 0; }

/* ---- categories ---- */

/* What runs on a device, and its prof_backend_kind; 0: the device's side of a scope. */
static const struct {
  const char *category;
  int kind;
} device_categories[] = {{"kernel", PROF_BACKEND_KERNEL},      {"gpu_memcpy", PROF_BACKEND_COPY}, {"gpu_memset", PROF_BACKEND_FILL},         {"gpu_sync", PROF_BACKEND_SYNC},
                         {"cuda_sync", PROF_BACKEND_SYNC},     {"gpu_other", PROF_BACKEND_OTHER}, {"concurrent_kernel", PROF_BACKEND_KERNEL},
                         {"gpu_user_annotation", 0}};

static int kind_of(import_text category) {
  for (size_t i = 0; i < sizeof device_categories / sizeof *device_categories; i++)
    if (import_text_is(category, device_categories[i].category)) return device_categories[i].kind;
  return NO_KIND;
}

/* Calls of a vendor's library: what level 2 has beyond operators. */
static bool is_call(import_text category) {
  static const char *const ends[] = {"_runtime", "_driver"};
  for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
    const size_t bytes = strlen(ends[i]);
    if (category.bytes > bytes && memcmp(category.data + category.bytes - bytes, ends[i], bytes) == 0) return true;
  }
  return import_text_is(category, "runtime");
}
static uint32_t level_of(import_text category) {
  if (import_text_is(category, "python_function")) return LEVEL_OF_FUNCTIONS;
  return is_call(category) ? LEVEL_RUNTIME : LEVEL_OPERATOR;
}

/* Kineto's rows about itself: their pid is no process. */
static bool is_about_tracing(const import_event *event, import_text category) {
  const import_value *const pid = &event->members[IMPORT_PID];
  const import_text text = import_text_of(event, pid);
  if (pid->type != IMPORT_TEXT) return false;
  return import_text_is(category, "Trace") || import_text_is(text, "Spans") || import_text_is(text, "Traces") || text.bytes == 0;
}

/* ---- times ---- */

/* False: it is missed. */
static bool read_time(import_state *state, const import_event *event, uint64_t *ticks_out) {
  const import_value *const value = &event->members[IMPORT_TS];
  const import_text text = text_of(event, IMPORT_TS);
  int64_t ns, since;
  if (value->type == IMPORT_NONE || value->type == IMPORT_NULL) {
    miss(state, IMPORT_MISS_NO_TIME);
    return false;
  }
  const bool is_time = import_number_us(text, &ns);
  if (is_time && !state->has_first) {
    state->has_first = true;
    state->first_ns = ns;
  }
  if (!is_time || __builtin_sub_overflow(ns, state->first_ns, &since) || since > IMPORT_REACH_NS || since < -IMPORT_REACH_NS) {
    miss(state, IMPORT_MISS_TIME);
    return false;
  }
  *ticks_out = IMPORT_ORIGIN_TICKS + (uint64_t)since;
  return true;
}

static bool read_duration(import_state *state, const import_event *event, uint64_t *ns_out) {
  const import_value *const value = &event->members[IMPORT_DUR];
  int64_t ns = 0;
  if (value->type == IMPORT_NONE || value->type == IMPORT_NULL) change(state, IMPORT_CHANGE_NO_DURATION);
  else if (!import_number_us(text_of(event, IMPORT_DUR), &ns) || ns > duration_max_ns) ns = INT64_MIN, miss(state, IMPORT_MISS_DURATION);
  else if (ns < 0) miss(state, IMPORT_MISS_NEGATIVE);
  *ns_out = (uint64_t)ns;
  return ns >= 0;
}

static uint64_t device_ns(const import_state *state, uint64_t ticks) { return (uint64_t)(state->first_ns + (int64_t)(ticks - IMPORT_ORIGIN_TICKS)); }

/* ---- events into records ---- */

static void note_time(import_state *state, uint64_t start, uint64_t end) {
  if (state->begin_ticks == 0 || start < state->begin_ticks) state->begin_ticks = start;
  if (end > state->end_ticks) state->end_ticks = end;
}

static void put(import_state *state, import_thread *thread, uint64_t start, uint64_t end, const uint64_t *words, uint32_t count, uint32_t bits) {
  note_time(state, start, end);
  if (count > 2 && import_record_is_async(words)) bits |= IMPORT_ENTRY_ASYNC; /* two: a plain scope's */
  import_thread_add(thread, start, end, import_spool_add(&state->spool, words + 1, count - 1, bits));
}

/* The site; where there are too many of them, the record's own name is set. */
static uint32_t placed_site_of(import_state *state, import_text name, import_text category, uint32_t level, const import_place *place, import_text *own_name_out) {
  static const import_text unnamed = {"(unnamed)", 9}, many = {"(one of too many names)", 23};
  if (name.bytes == 0) change(state, IMPORT_CHANGE_UNNAMED);
  if (name.bytes > IMPORT_TEXT_BYTES_MAX) change(state, IMPORT_CHANGE_CUT);
  const import_site site = {name.bytes ? name : unnamed, category, level, *place};
  const uint32_t number = import_names_site(state->names, &site);
  if (number != IMPORT_SITE_MANY) return number;
  *own_name_out = import_text_cut(site.name, IMPORT_TEXT_BYTES_MAX);
  return import_names_site(state->names, &(import_site){.name = many, .category = category, .level = level});
}

static uint32_t site_of(import_state *state, import_text name, import_text category, uint32_t level, import_text *own_name_out) {
  static const import_place nowhere = {.file = {"", 0}, .function = {"", 0}};
  return placed_site_of(state, name, category, level, &nowhere, own_name_out);
}

/* A record of the kinds that are like scopes, out of `values`; flags: those that the caller has put words for. */
static void put_like_scope(import_state *state, prof_i_kind kind, uint32_t flags, uint32_t site, import_text own_name, uint64_t duration) {
  import_record *const record = &own.record;
  import_values *const values = &own.values;
  const uint32_t schema = values->schema.count ? import_names_schema(state->names, &values->schema) : 0;
  if (duration >> PROF_I_DURATION_BITS || flags & PROF_I_FLAG_LONG) {
    import_record_word(record, duration);
    flags |= PROF_I_FLAG_LONG;
    duration = 0;
  }
  if (own_name.bytes) {
    import_record_text(record, own_name);
    flags |= PROF_I_FLAG_NAME;
  }
  if (values->schema.count && schema == 0) values->is_cut = true;
  flags |= values->flags;
  if (values->is_cut) {
    flags |= PROF_I_FLAG_CUT;
    change(state, IMPORT_CHANGE_CUT);
  }
  if (schema) {
    memcpy(record->words + record->count, values->words, values->count * sizeof *values->words);
    record->count += values->count;
  }
  import_record_end(record, kind, flags, schema, site, duration);
}

static import_thread *host_thread(import_state *state, const import_event *event) {
  const import_thread_id id = import_threads_id(event);
  if (!state->has_pid && event->members[IMPORT_PID].type == IMPORT_NUMBER && id.pid > 0) {
    state->has_pid = true;
    state->pid = id.pid;
  }
  return import_threads_host(&state->threads, id);
}

static bool read_arg(const import_event *event, const char *key, int64_t *out) {
  const import_value *const value = import_event_arg(event, key);
  return value && value->type == IMPORT_NUMBER && import_number_i64(import_text_of(event, value), out);
}

/* ---- on the host ---- */

/* A step's rows are user_annotations, and count as what they are: a table has "ProfilerStep*". */
static void count_step(import_state *state, import_text name) { state->counts->steps += begins(name, "ProfilerStep#"); }

static void note_launch(import_state *state, const import_event *event, const import_thread *thread, uint64_t start, import_text category, import_text name) {
  const import_value *const correlation = import_event_arg(event, "correlation");
  int64_t number;
  if (is_call(category) && begins(name, "hip")) state->is_hip = true;
  if (correlation && correlation->type == IMPORT_NUMBER && import_number_i64(import_text_of(event, correlation), &number) && number != 0)
    import_launches_add(&state->launches, number, start, thread->serial);
}

/* What prof_step() marked, as src/export/chrome.c writes it: no scope. False: it is none. */
static bool take_step_mark(import_state *state, const import_event *event, uint64_t start, uint64_t end) {
  int64_t number;
  if (!begins(text_of(event, IMPORT_NAME), "ProfilerStep#") || !read_arg(event, "step mark", &number) || number < 0) return false;
  import_record_begin(&own.record);
  import_record_word(&own.record, (uint64_t)number);
  import_record_end(&own.record, PROF_I_KIND_STEP, 0, 0, 0, 0);
  put(state, host_thread(state, event), start, end, own.record.words, own.record.count, IMPORT_ENTRY_MARK); /* a reader has its start from the mark before it, or from where all begins */
  state->counts->steps++;
  return true;
}

static void take_host_scope(import_state *state, const import_event *event, uint64_t start, uint64_t duration) {
  const import_text category = text_of(event, IMPORT_CAT), name = text_of(event, IMPORT_NAME);
  if (take_step_mark(state, event, start, start + duration)) return;
  const uint32_t bits = import_text_is(category, "python_function") ? IMPORT_ENTRY_FUNCTION : 0;
  import_thread *const thread = host_thread(state, event);
  import_place place;
  import_text own_name = {"", 0};
  import_place_of(event, category, name, &place);
  const uint32_t site = placed_site_of(state, name, category, level_of(category), &place, &own_name);
  count_step(state, name);
  note_launch(state, event, thread, start, category, name);
  import_args_of_host(&own.values, event, &place, !is_call(category));
  state->has_forward_numbers |= import_event_arg(event, "Thread id") && import_event_arg(event, "Sequence number");
  state->counts->scopes++;
  const prof_i_kind kind = is_call(category) ? PROF_I_KIND_CALL : own.values.is_async ? PROF_I_KIND_ASYNC : PROF_I_KIND_SCOPE; /* what a call launched is in tables the scope's around it */
  if (kind == PROF_I_KIND_SCOPE && own.values.schema.count == 0 && !own.values.is_cut && own.values.flags == 0 && own_name.bytes == 0 && duration >> PROF_I_DURATION_BITS == 0) {
    const uint64_t words[2] = {0, duration << PROF_I_DURATION_SHIFT | (uint64_t)site << 4};
    put(state, thread, start, start + duration, words, 2, bits);
    return;
  }
  import_record_begin(&own.record);
  put_like_scope(state, kind, 0, site, own_name, duration);
  put(state, thread, start, start + duration, own.record.words, own.record.count, bits);
}

/* ---- on a device ---- */

static import_device *device_of(import_state *state, int64_t index) {
  for (uint32_t i = 0; i < state->device_count; i++)
    if (state->devices[i].index == index) return &state->devices[i];
  if (state->device_count == IMPORT_DEVICES_MAX) return NULL;
  import_device *const device = &state->devices[state->device_count++];
  device->index = index; /* its name may be known already */
  return device;
}

static void note_device_row(import_state *state, int64_t pid, int64_t index) {
  for (uint32_t i = 0; i < state->device_row_count; i++)
    if (state->device_rows[i].pid == pid) return;
  if (state->device_row_count < IMPORT_DEVICES_MAX) state->device_rows[state->device_row_count++] = (import_device_row){pid, index};
}

static void take_device_scope(import_state *state, const import_event *event, int kind, uint64_t start, uint64_t duration) {
  const import_thread_id row = import_threads_id(event);
  int64_t device = row.pid, stream = row.tid, correlation = 0;
  import_text own_name = {"", 0};
  read_arg(event, "device", &device);
  read_arg(event, "stream", &stream);
  if (device < 0 || device > INT32_MAX) device = 0;
  import_thread *const thread = import_threads_stream(&state->threads, device, stream, row);
  import_device *const about = device_of(state, device);
  note_device_row(state, row.pid, device);
  const uint32_t site = site_of(state, text_of(event, IMPORT_NAME), text_of(event, IMPORT_CAT), LEVEL_OPERATOR, &own_name);
  const bool has_launch = read_arg(event, "correlation", &correlation) && correlation != 0;
  const uint64_t hidden[IMPORT_HIDDEN_VALUES] = {has_launch ? IMPORT_LAUNCH_WAITS : 0, has_launch ? (uint64_t)correlation : start, device_ns(state, start),
                                                 device_ns(state, start + duration), (uint64_t)kind};
  if (about) about->scope_count += kind == 0, about->record_count += kind != 0;
  import_record_begin(&own.record);
  import_record_word(&own.record, (uint64_t)device << 32); /* its type is known when all have come */
  import_record_word(&own.record, (uint64_t)stream);
  import_args_of_device(&own.values, event, hidden);
  put_like_scope(state, PROF_I_KIND_SCOPE, PROF_I_FLAG_DEVICE | PROF_I_FLAG_STREAM, site, own_name, duration);
  put(state, thread, start, start + duration, own.record.words, own.record.count, 0);
  state->counts->device_scopes++;
}

static void take_scope(import_state *state, const import_event *event) {
  const import_text category = text_of(event, IMPORT_CAT);
  const int kind = kind_of(category);
  uint64_t start, duration;
  if (is_about_tracing(event, category)) miss(state, IMPORT_MISS_SPAN);
  else if (!read_time(state, event, &start) || !read_duration(state, event, &duration)) return;
  else if (kind != NO_KIND) take_device_scope(state, event, kind, start, duration);
  else take_host_scope(state, event, start, duration);
}

/* ---- begun and ended ---- */

/* False: it is missed. */
static bool make_begun(import_state *state, const import_event *event, bool may_be_async, import_begun *begun_out) {
  const import_text category = text_of(event, IMPORT_CAT), name = text_of(event, IMPORT_NAME);
  import_text own_name = {"", 0};
  import_place place;
  uint64_t start;
  if (!read_time(state, event, &start)) return false;
  if (state->begun_count == BEGUN_MAX) {
    miss(state, IMPORT_MISS_TOO_DEEP);
    return false;
  }
  import_place_of(event, category, name, &place);
  const uint32_t site = placed_site_of(state, name, category, level_of(category), &place, &own_name);
  import_args_of_host(&own.values, event, &place, may_be_async);
  import_record_begin(&own.record);
  put_like_scope(state, own.values.is_async ? PROF_I_KIND_ASYNC : PROF_I_KIND_SCOPE, PROF_I_FLAG_LONG, site, own_name, 0);
  *begun_out = (import_begun){start, import_make(own.record.count * sizeof(uint64_t)), own.record.count};
  memcpy(begun_out->words, own.record.words, own.record.count * sizeof(uint64_t));
  state->begun_count++;
  return true;
}

static void take_begin(import_state *state, const import_event *event) {
  import_thread *const thread = host_thread(state, event);
  import_begun begun;
  if (!make_begun(state, event, true, &begun)) return;
  thread->begun = import_room(thread->begun, &thread->begun_room, thread->begun_count + 1, sizeof *thread->begun);
  thread->begun[thread->begun_count++] = begun;
}

static void end_begun(import_state *state, import_thread *thread, uint64_t end) {
  import_begun *const begun = &thread->begun[--thread->begun_count];
  begun->words[3] = end - begun->start;
  put(state, thread, begun->start, end, begun->words, begun->count, 0);
  free(begun->words);
  state->begun_count--;
  state->counts->scopes++;
}

static void take_end(import_state *state, const import_event *event) {
  import_thread *const thread = host_thread(state, event);
  uint64_t end;
  if (!read_time(state, event, &end)) return;
  if (thread->begun_count == 0) miss(state, IMPORT_MISS_END_ALONE);
  else if (end < thread->begun[thread->begun_count - 1].start) miss(state, IMPORT_MISS_NEGATIVE);
  else end_begun(state, thread, end);
}

/* ---- asynchronous ---- */

/* Entries wait in the nest for the row that it gets. */
static void put_async(import_state *state, import_nest *nest, uint64_t start, uint64_t end, const uint64_t *words, uint32_t count, uint32_t bits) {
  note_time(state, start, end);
  import_nest_add(nest, start, end, import_spool_add(&state->spool, words + 1, count - 1, bits));
}

static import_nest *nest_of(import_state *state, const import_event *event) {
  const import_value *const id = &event->members[event->members[IMPORT_ID].type == IMPORT_NONE ? IMPORT_ID2 : IMPORT_ID];
  return import_async_nest(&state->async, import_threads_id(event).pid, text_of(event, IMPORT_CAT), import_text_of(event, id));
}

static void settle(import_state *state, import_nest *nest) {
  if (nest->begun_count > 0) return;
  uint64_t marks = 0;
  const uint64_t count = nest->count;
  for (size_t i = 0; i < nest->count; i++) marks += (nest->entries[i].place & IMPORT_ENTRY_MARK) != 0;
  if (import_async_settle(&state->async, &state->threads, nest)) return;
  state->counts->missed[IMPORT_MISS_ASYNC] += count;
  state->counts->instants -= marks;
  state->counts->scopes -= count - marks;
}

static void end_async(import_state *state, import_nest *nest, uint64_t end) {
  import_begun *const begun = &nest->begun[--nest->begun_count];
  begun->words[3] = end - begun->start;
  put_async(state, nest, begun->start, end, begun->words, begun->count, 0);
  free(begun->words);
  state->begun_count--;
  state->counts->scopes++;
}

static void take_async_begin(import_state *state, const import_event *event) {
  import_begun begun;
  if (!make_begun(state, event, false, &begun)) return; /* it is on no thread's row */
  import_nest *const nest = nest_of(state, event);
  nest->begun = import_room(nest->begun, &nest->begun_room, nest->begun_count + 1, sizeof *nest->begun);
  nest->begun[nest->begun_count++] = begun;
}

static void take_async_end(import_state *state, const import_event *event) {
  uint64_t end;
  if (!read_time(state, event, &end)) return;
  import_nest *const nest = nest_of(state, event);
  if (nest->begun_count == 0) miss(state, IMPORT_MISS_END_ALONE);
  else if (end < nest->begun[nest->begun_count - 1].start) miss(state, IMPORT_MISS_NEGATIVE);
  else end_async(state, nest, end);
  settle(state, nest);
}

static void take_async_instant(import_state *state, const import_event *event) {
  import_text own_name = {"", 0};
  uint64_t at;
  if (!read_time(state, event, &at)) return;
  const uint32_t site = site_of(state, text_of(event, IMPORT_NAME), text_of(event, IMPORT_CAT), LEVEL_OPERATOR, &own_name);
  import_nest *const nest = nest_of(state, event);
  import_args_of_host(&own.values, event, NULL, false);
  import_record_begin(&own.record);
  put_like_scope(state, PROF_I_KIND_INSTANT, 0, site, own_name, 0);
  put_async(state, nest, at, at, own.record.words, own.record.count, IMPORT_ENTRY_MARK);
  state->counts->instants++;
  settle(state, nest);
}

/* ---- marks ---- */

static void put_memory_note(import_state *state, const import_event *event, uint64_t at, uint32_t pool, prof_i_verb verb, uint64_t bytes) {
  import_pools_note(&state->pools, pool, at, verb, bytes, &own.record);
  put(state, host_thread(state, event), at, at, own.record.words, own.record.count, IMPORT_ENTRY_MARK);
  state->counts->memory_events++;
}

/* What a device's allocator has taken from the device is told as a sum beside each piece: blocks come and go before it. */
static void take_reserved(import_state *state, const import_event *event, const import_piece *piece) {
  int64_t reserved = -1;
  read_arg(event, "Total Reserved", &reserved);
  const int64_t more = import_pools_reserve(&state->pools, piece->pool, reserved, piece->bytes, piece->total);
  if (more > 0) put_memory_note(state, event, piece->ticks, piece->pool, PROF_I_VERB_RESERVE, (uint64_t)more);
  else if (more < 0) put_memory_note(state, event, piece->ticks, piece->pool, PROF_I_VERB_RELEASE, 0 - (uint64_t)more);
}

static uint32_t pool_of(import_state *state, const import_event *event) {
  int64_t type = 0, index = 0;
  read_arg(event, "Device Type", &type);
  read_arg(event, "Device Id", &index);
  const bool is_device = type != 0;
  return import_pools_of(&state->pools, is_device, is_device && index > 0 && index <= INT32_MAX ? (int32_t)index : 0);
}

static void take_out_of_memory(import_state *state, const import_event *event, uint64_t at) {
  import_piece piece = {.ticks = at, .pool = pool_of(state, event), .total = -1};
  int64_t bytes = 0;
  if (piece.pool == 0 || !read_arg(event, "Bytes", &bytes) || bytes <= 0) {
    miss(state, IMPORT_MISS_MEMORY);
    return;
  }
  take_reserved(state, event, &piece);
  put_memory_note(state, event, at, piece.pool, PROF_I_VERB_OOM, (uint64_t)bytes);
}

static void take_memory(import_state *state, const import_event *event, uint64_t at) {
  const int64_t bytes_max = INT64_C(1) << (PROF_I_USED_BITS - 1);
  import_piece piece = {.ticks = at, .total = -1};
  uint64_t address = 0, words[4] = {0};
  const import_value *const value = import_event_arg(event, "Addr");
  const bool has_address = value && import_number_u64(import_text_of(event, value), &address);
  if (!has_address || !read_arg(event, "Bytes", &piece.bytes) || piece.bytes == 0 || piece.bytes >= bytes_max || piece.bytes <= -bytes_max) {
    miss(state, IMPORT_MISS_MEMORY);
    return;
  }
  read_arg(event, "Total Allocated", &piece.total);
  piece.pool = pool_of(state, event);
  if (piece.pool == 0) {
    miss(state, IMPORT_MISS_MEMORY);
    return;
  }
  take_reserved(state, event, &piece);
  import_pools_add(&state->pools, &piece, address, words + 1);
  put(state, host_thread(state, event), at, at, words, 4, IMPORT_ENTRY_MARK);
  state->counts->memory_events++;
}

static void take_instant(import_state *state, const import_event *event) {
  const import_text category = text_of(event, IMPORT_CAT), name = text_of(event, IMPORT_NAME);
  import_text own_name = {"", 0};
  uint64_t at;
  if (is_about_tracing(event, category) || import_text_is(category, "prof")) {
    miss(state, IMPORT_MISS_SPAN);
    return;
  }
  if (!read_time(state, event, &at)) return;
  if (import_text_is(name, "[memory]")) {
    take_memory(state, event, at);
    return;
  }
  if (import_text_is(name, "[OutOfMemory]")) {
    take_out_of_memory(state, event, at);
    return;
  }
  const uint32_t site = site_of(state, name, category, LEVEL_OPERATOR, &own_name);
  import_args_of_host(&own.values, event, NULL, false);
  import_record_begin(&own.record);
  put_like_scope(state, PROF_I_KIND_INSTANT, 0, site, own_name, 0);
  put(state, host_thread(state, event), at, at, own.record.words, own.record.count, IMPORT_ENTRY_MARK);
  state->counts->instants++;
}

/* A graph of several values is a counter for each. */
static void put_counter(import_state *state, const import_event *event, uint64_t at, import_text key, double value) {
  const import_text name = text_of(event, IMPORT_NAME);
  char joined[IMPORT_TEXT_BYTES_MAX];
  import_text whole = name, own_name = {"", 0};
  uint64_t bits;
  if (!import_text_is(key, "value") && name.bytes + 1 + key.bytes <= sizeof joined) {
    if (name.bytes) memcpy(joined, name.data, name.bytes);
    joined[name.bytes] = ' ';
    memcpy(joined + name.bytes + 1, key.data, key.bytes);
    whole = (import_text){joined, name.bytes + 1 + key.bytes};
  }
  const uint32_t site = site_of(state, whole, text_of(event, IMPORT_CAT), LEVEL_OPERATOR, &own_name);
  memcpy(&bits, &value, sizeof bits);
  import_record_begin(&own.record);
  import_record_word(&own.record, bits);
  import_record_word(&own.record, (uint64_t)import_threads_id(event).pid); /* a device's, where that is known when all have come: capture.c */
  import_record_end(&own.record, PROF_I_KIND_COUNTER, 0, 0, site, 0);
  put(state, host_thread(state, event), at, at, own.record.words, own.record.count, IMPORT_ENTRY_MARK);
  state->counts->counters++;
}

static void take_counter(import_state *state, const import_event *event) {
  const import_text name = text_of(event, IMPORT_NAME);
  bool has_value = false;
  uint64_t at;
  if (import_text_is(text_of(event, IMPORT_CAT), "memory") && (begins(name, "used bytes (") || begins(name, "allocated bytes ("))) {
    miss(state, IMPORT_MISS_DRAWN);
    return;
  }
  if (!read_time(state, event, &at)) return;
  for (uint32_t i = 0; i < event->arg_count; i++) {
    const import_arg *const arg = &event->args[i];
    double value;
    if (arg->value.type != IMPORT_NUMBER || !import_number_double(import_text_of(event, &arg->value), &value)) continue;
    put_counter(state, event, at, (import_text){event->text + arg->key_at, arg->key_bytes}, value);
    has_value = true;
  }
  if (!has_value) miss(state, IMPORT_MISS_NO_VALUE);
}

/* Numbers of one category are its own: the others' are moved away. */
static uint64_t flow_id(const import_event *event, import_text category) {
  const import_text id = import_text_of(event, &event->members[IMPORT_ID]);
  uint64_t number = 0;
  if (!import_number_u64(id, &number))
    for (size_t i = 0; i < id.bytes; i++) number = (number ^ (unsigned char)id.data[i]) * 1099511628211u;
  if (import_text_is(category, "fwdbwd") || import_text_is(category, "flow")) return number;
  for (size_t i = 0; i < category.bytes; i++) number += (uint64_t)(unsigned char)category.data[i] << (32 + 8 * (i % 3));
  return number;
}

/* prof numbers arrows anew, and says beside an arrow's begin what the program called it; its end is what comes next. */
static uint64_t programs_flow_id(import_state *state, const import_event *event, uint64_t id) {
  const import_value *const said = import_event_arg(event, "flow id");
  char digits[2 + 16 + 1] = "";
  uint64_t number;
  if (said && said->type == IMPORT_TEXT) { /* what JSON's numbers do not hold: "0xffffffffffffffff" */
    const import_text text = import_text_of(event, said);
    if (begins(text, "0x") && text.bytes < sizeof digits) state->flow = (import_flow_said){id, strtoull(memcpy(digits, text.data, text.bytes), NULL, 16)};
  } else if (said && import_number_u64(import_text_of(event, said), &number)) {
    state->flow = (import_flow_said){id, number};
  }
  return state->flow.written == id ? state->flow.said : id;
}

static void put_flow(import_state *state, const import_event *event, uint64_t at, uint64_t id, bool is_end) {
  import_record_begin(&own.record);
  import_record_word(&own.record, id);
  import_record_word(&own.record, is_end);
  import_record_text(&own.record, import_text_cut(text_of(event, IMPORT_NAME), IMPORT_TEXT_BYTES_MAX));
  import_record_end(&own.record, PROF_I_KIND_FLOW, 0, 0, 0, 0);
  put(state, host_thread(state, event), at, at, own.record.words, own.record.count, IMPORT_ENTRY_MARK);
  state->counts->flow_ends++;
}

/* A step (ph t) is the end of one arrow and the begin of the next, which has an id of its own. */
static void take_flow(import_state *state, const import_event *event, char phase) {
  const import_text category = text_of(event, IMPORT_CAT);
  uint64_t at;
  const bool is_forward = state->has_forward_numbers && import_text_is(category, "fwdbwd") && import_text_is(text_of(event, IMPORT_NAME), "fwdbwd");
  if (import_text_is(category, "ac2g") || is_forward) {
    miss(state, IMPORT_MISS_DRAWN);
    return;
  }
  if (!read_time(state, event, &at)) return;
  const uint64_t id = programs_flow_id(state, event, flow_id(event, category));
  if (phase == 's') import_flows_forget(&state->flows, id);
  put_flow(state, event, at, import_flows_id(&state->flows, id), phase != 's');
  if (phase == 't') put_flow(state, event, at, import_flows_step(&state->flows, id), false);
  else if (phase == 'f') import_flows_forget(&state->flows, id);
}

/* ---- what names things ---- */

/* "GPU 1": of a process that stands for a device, its name, or its label. */
static void take_device_name(import_state *state, const import_event *event, const char *key) {
  static const char begin[] = "GPU ";
  const import_value *const value = import_event_arg(event, key);
  const import_text name = value && value->type == IMPORT_TEXT ? import_text_of(event, value) : (import_text){"", 0};
  int64_t index;
  if (!begins(name, begin) || !import_number_i64((import_text){name.data + sizeof begin - 1, name.bytes - (sizeof begin - 1)}, &index) || index < 0 || index > INT32_MAX) return;
  note_device_row(state, import_threads_id(event).pid, index);
}

static void take_name(import_state *state, const import_event *event) {
  const import_text what = text_of(event, IMPORT_NAME);
  if (import_text_is(what, "process_labels")) take_device_name(state, event, "labels");
  else if (import_text_is(what, "process_name")) take_device_name(state, event, "name");
  const import_value *const name = import_event_arg(event, "name");
  import_thread_id id = import_threads_id(event);
  if (!name || name->type != IMPORT_TEXT) return;
  if (import_text_is(what, "process_name")) id.tid = INT64_MIN;
  else if (!import_text_is(what, "thread_name")) return;
  import_threads_name(&state->threads, id, import_text_of(event, name));
}

void import_kineto_event(import_state *state, const import_event *event) {
  const import_text phase = text_of(event, IMPORT_PH);
  switch (phase.bytes == 1 ? phase.data[0] : '\0') {
    case 'X': take_scope(state, event); return;
    case 'B': take_begin(state, event); return;
    case 'E': take_end(state, event); return;
    case 'i':
    case 'I':
    case 'R': take_instant(state, event); return;
    case 'C': take_counter(state, event); return;
    case 's':
    case 't':
    case 'f': take_flow(state, event, phase.data[0]); return;
    case 'M': take_name(state, event); return;
    case 'b':
    case 'S': take_async_begin(state, event); return;
    case 'e':
    case 'F': take_async_end(state, event); return;
    case 'n':
    case 'T':
    case 'p': take_async_instant(state, event); return;
    default: miss(state, IMPORT_MISS_PHASE); return;
  }
}

/* ---- beside the events ---- */

/* The number behind "key": in JSON without blanks. */
static bool find_number(import_text json, const char *key, size_t from, int64_t *out, size_t *at_out) {
  const size_t key_bytes = strlen(key);
  for (size_t i = from; i + key_bytes < json.bytes; i++) {
    if (memcmp(json.data + i, key, key_bytes) != 0) continue;
    size_t digits = 0;
    while (i + key_bytes + digits < json.bytes && strchr("-0123456789", json.data[i + key_bytes + digits])) digits++;
    *at_out = i + key_bytes;
    return import_number_i64((import_text){json.data + *at_out, digits}, out);
  }
  return false;
}

static void take_distributed(import_state *state, import_text json) {
  int64_t rank, world_size;
  size_t at;
  if (!find_number(json, "\"rank\":", 0, &rank, &at) || rank < 0 || rank > INT32_MAX) return;
  state->rank = (int32_t)rank;
  if (find_number(json, "\"world_size\":", 0, &world_size, &at) && world_size > 0 && world_size <= INT32_MAX) state->world_size = (int32_t)world_size;
}

/* [{"id":0,"name":"NVIDIA H100",...}, ...] */
static void take_devices(import_state *state, import_text json) {
  static const char key[] = "\"name\":\"";
  int64_t index;
  for (size_t at = 0; find_number(json, "{\"id\":", at, &index, &at);) {
    import_device *const device = device_of(state, index);
    size_t from = at, bytes = 0;
    while (from + sizeof key - 1 < json.bytes && json.data[from] != '}' && memcmp(json.data + from, key, sizeof key - 1) != 0) from++;
    from += sizeof key - 1;
    if (!device || from >= json.bytes || json.data[from - 1] != '"') continue;
    while (from + bytes < json.bytes && bytes + 1 < sizeof device->name && json.data[from + bytes] != '"') bytes++;
    memcpy(device->name, json.data + from, bytes);
    device->name[bytes] = '\0';
  }
}

static void keep_metadata(import_state *state, import_text key, import_text text) {
  enum { ROW_MAX = 4096 };
  char name[IMPORT_NAME_BYTES + 256];
  import_text own_name = {"", 0};
  if (state->counts->instants >= ROW_MAX && state->counts->scopes == 0) return; /* nobody says that much about one trace */
  const int bytes = snprintf(name, sizeof name, "%.*s", (int)key.bytes, key.data);
  const uint32_t site = site_of(state, (import_text){name, (size_t)bytes}, (import_text){"metadata", 8}, LEVEL_OPERATOR, &own_name);
  import_args_begin(&own.values);
  import_args_text(&own.values, "value", text);
  import_record_begin(&own.record);
  put_like_scope(state, PROF_I_KIND_INSTANT, 0, site, own_name, 0);
  import_thread *const thread = import_threads_host(&state->threads, (import_thread_id){INT64_MAX, INT64_MAX});
  /* Where the trace begins: that is known in the end. */
  import_thread_add(thread, 0, 0, import_spool_add(&state->spool, own.record.words + 1, own.record.count - 1, IMPORT_ENTRY_MARK));
  state->counts->instants++;
}

/* What every trace says, and what prof tells of itself, says nothing of this one. */
static bool is_usual(import_text key, import_text text) {
  static const char *const keys[] = {"schemaVersion", "displayTimeUnit", "traceName", "traceEvents", "prof", "baseTimeNanoseconds"};
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
    if (import_text_is(key, keys[i])) return true;
  const bool is_ours = import_text_is(key, "distributedInfo") && begins(text, "{\"backend\":\"\""); /* the rank is kept, and it says no more */
  return is_ours || import_text_is(text, "[]") || import_text_is(text, "{}");
}

void import_kineto_metadata(import_state *state, import_text key, const import_value *value, import_text text) {
  if (import_text_is(key, "baseTimeNanoseconds") && value->type == IMPORT_NUMBER) import_number_i64(text, &state->base_ns);
  if (import_text_is(key, "distributedInfo")) take_distributed(state, text);
  if (import_text_is(key, "deviceProperties")) take_devices(state, text);
  if (import_text_is(key, "prof")) state->is_of_prof = value->type == IMPORT_JSON && begins(text, "{\"version\":");
  if (import_text_is(key, "host_name")) snprintf(state->host, sizeof state->host, "%.*s", (int)(text.bytes < sizeof state->host ? text.bytes : sizeof state->host), text.data);
  if (!is_usual(key, text)) keep_metadata(state, key, text);
}

void import_kineto_end(import_state *state) {
  for (import_nest *nest = state->async.nests, *next; nest; nest = next) {
    next = nest->hh.next; /* it goes */
    while (nest->begun_count > 0) {
      const uint64_t start = nest->begun[nest->begun_count - 1].start;
      change(state, IMPORT_CHANGE_UNENDED);
      end_async(state, nest, state->end_ticks > start ? state->end_ticks : start);
    }
    settle(state, nest);
  }
  for (import_thread *thread = state->threads.all; thread; thread = thread->hh.next) {
    while (thread->begun_count > 0) {
      const uint64_t start = thread->begun[thread->begun_count - 1].start;
      change(state, IMPORT_CHANGE_UNENDED);
      end_begun(state, thread, state->end_ticks > start ? state->end_ticks : start);
    }
  }
  if (state->begin_ticks == 0) state->begin_ticks = state->end_ticks = IMPORT_ORIGIN_TICKS;
}
