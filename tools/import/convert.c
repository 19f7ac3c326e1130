/* Events become records. See internal.h. */
#define _GNU_SOURCE
#include "internal.h"

#include <prof/backend.h>
#include <prof/trace.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/base/text.h"

enum {
  LEVEL_OPERATOR = 1,
  LEVEL_RUNTIME = 2,
  LEVEL_OF_FUNCTIONS = 0 /* capture.c */,
  PLAIN_WORDS = 2
};

static struct {
  import_record_args values;
  import_record record;
} current_values; /* of the event at hand: 64 KiB that no stack need hold */

static const import_text no_text = {"", 0};

/* JAX's numbers are apart from the others: an export of prof has both beside each other. */
int64_t import_correlation_of(const import_event *event) {
  int64_t number;
  if (import_event_arg(event, "correlation"))
    return import_read_arg(event, "correlation", &number) ? number : 0;
  return import_read_arg(event, "correlation_id", &number) && number > 0 ? INT64_MIN + number : 0;
}

/* ---- categories ---- */

/* Of torch since 1.8 (to 1.11 "Kernel", from 1.12 "kernel"), and of prof. */
static const struct {
  const char *category;
  int kind;
} device_categories[] = {{"kernel", PROF_BACKEND_KERNEL},
                         {"Kernel", PROF_BACKEND_KERNEL},
                         {"concurrent_kernel", PROF_BACKEND_KERNEL},
                         {"mtia_ccp_events", PROF_BACKEND_KERNEL},
                         {"hpu_op", PROF_BACKEND_KERNEL},
                         {"gpu_memcpy", PROF_BACKEND_COPY},
                         {"Memcpy", PROF_BACKEND_COPY},
                         {"gpu_memset", PROF_BACKEND_FILL},
                         {"Memset", PROF_BACKEND_FILL},
                         {"gpu_sync", PROF_BACKEND_SYNC},
                         {"cuda_sync", PROF_BACKEND_SYNC},
                         {"gpu_other", PROF_BACKEND_OTHER},
                         {"gpu_user_annotation", IMPORT_KIND_SIDE},
                         {"Gpu_user_annotation", IMPORT_KIND_SIDE}};

int import_device_kind(import_text category) {
  for (size_t i = 0; i < sizeof device_categories / sizeof *device_categories; i++)
    if (import_text_is(category, device_categories[i].category)) return device_categories[i].kind;
  return IMPORT_KIND_NONE;
}

static const char *kind_category(int kind) {
  for (size_t i = 0; i < sizeof device_categories / sizeof *device_categories; i++)
    if (device_categories[i].kind == kind) return device_categories[i].category;
  return "gpu_user_annotation";
}

/* Calls of a vendor's library: what level 2 has beyond operators. */
static bool category_is_vendor_call(import_text category) {
  static const char *const ends[] = {"_runtime", "_driver"};
  for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
    const size_t bytes = strlen(ends[i]);
    if (category.bytes > bytes &&
        memcmp(category.data + category.bytes - bytes, ends[i], bytes) == 0)
      return true;
  }
  return import_text_is(category, "runtime") || import_text_is(category, "Runtime");
}

bool import_category_is_host(import_text category) {
  static const char *const words[] = {"cpu_op",     "user_annotation", "python_function",
                                      "c_function", "Operator",        "cpu_instant_event",
                                      "overhead"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (import_text_is(category, words[i])) return true;
  return category_is_vendor_call(category);
}

static uint32_t category_level(import_text category) {
  if (import_text_is(category, "python_function")) return LEVEL_OF_FUNCTIONS;
  return category_is_vendor_call(category) ? LEVEL_RUNTIME : LEVEL_OPERATOR;
}

/* ---- records ---- */

static void put_entry(import_state *state, import_thread *thread, uint64_t start, uint64_t end,
                      const uint64_t *words, uint32_t count, uint32_t bits) {
  if (count > PLAIN_WORDS && import_record_is_async(words)) bits |= IMPORT_ENTRY_ASYNC;
  const uint64_t place = import_spool_add(&state->spool, words + 1, count - 1, bits);
  import_thread_add(thread, (import_entry){end, start, place, state->order});
}

/* The site; where there are too many of them, the record's own name is set. */
static uint32_t located_site(import_state *state, import_text name, import_text category,
                             uint32_t level, const import_source_location *place,
                             import_text *own_name_out) {
  static const import_text unnamed = {"(unnamed)", 9}, many = {"(one of too many names)", 23};
  if (category.bytes == 0)
    category = (import_text){"scope", 5}; /* as exports call it, and take it back */
  if (name.bytes == 0) import_count_changed(state, IMPORT_CHANGE_UNNAMED);
  if (name.bytes > IMPORT_TEXT_BYTES_MAX || category.bytes > IMPORT_CATEGORY_BYTES_MAX)
    import_count_changed(state, IMPORT_CHANGE_CUT);
  const import_site site = {name.bytes ? name : unnamed, category, level, *place};
  const uint32_t number = import_names_site(state->names, &site);
  if (number != IMPORT_SITE_MANY) return number;
  *own_name_out = import_text_cut(site.name, IMPORT_TEXT_BYTES_MAX);
  return import_names_site(state->names,
                           &(import_site){.name = many, .category = category, .level = level});
}

static uint32_t plain_site(import_state *state, import_text name, import_text category,
                           import_text *own_name_out) {
  static const import_source_location nowhere = {.file = {"", 0}, .function = {"", 0}};
  return located_site(state, name, category, LEVEL_OPERATOR, &nowhere, own_name_out);
}

/* A record of the kinds that are like scopes, out of `values`; flags: those that the caller has
   put words for. */
static void put_like_scope(import_state *state, prof_i_kind kind, uint32_t flags, uint32_t site,
                           import_text own_name, uint64_t duration) {
  import_record *const record = &current_values.record;
  import_record_args *const values = &current_values.values;
  const uint32_t schema =
      values->schema.count ? import_names_schema(state->names, &values->schema) : 0;
  if (duration >> PROF_I_DURATION_BITS) {
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
    import_count_changed(state, IMPORT_CHANGE_CUT);
  }
  if (schema) {
    memcpy(record->words + record->count, values->words, values->count * sizeof *values->words);
    record->count += values->count;
  }
  import_record_end(record, kind, flags, schema, site, duration);
}

/* ---- where ---- */

/* The first process that is no device is the capture's. One whose number is made up is negative. */
static void note_pid(import_state *state, int64_t pid) {
  if (state->has_pid || pid <= 0 || pid == INT64_MAX) return;
  if (import_threads_process_number(&state->threads, pid) != pid) return;
  if (import_devices_process(&state->devices, pid)->is_device) return;
  state->has_pid = true;
  state->pid = pid;
}

void import_convert_process_number(import_state *state, int64_t pid, int64_t number) {
  const import_thread_id process = {pid, INT64_MIN};
  if (number == pid)
    note_pid(state, pid);
  else
    import_threads_say_number(&state->threads, process, number);
}

import_thread *import_host_thread(import_state *state, const import_event *event) {
  const import_thread_id id = import_threads_id(event);
  note_pid(state, id.pid);
  return import_threads_host(&state->threads, id);
}

/* Of a device's process: a row is a stream. */
static import_thread *stream_of_row(import_state *state, import_thread_id row) {
  import_thread *const known = import_threads_stream_of(&state->threads, row);
  if (known) return known;
  const import_process *const process = import_devices_process(&state->devices, row.pid);
  if (import_row_kind_of(state, process, row, no_text) == IMPORT_ROW_HOST) return NULL;
  const int64_t stream = import_row_stream(state, process, row);
  return import_threads_stream(&state->threads, process->number, stream, row);
}

import_thread *import_row_thread(import_state *state, import_thread_id row) {
  import_thread *const stream = stream_of_row(state, row);
  return stream ? stream : import_threads_host(&state->threads, row);
}

/* ---- scopes of the host ---- */

static void note_launch(import_state *state, const import_event *event, const import_thread *thread,
                        uint64_t start, import_text category, import_text name) {
  const int64_t number = import_correlation_of(event);
  if ((category_is_vendor_call(category) || !category.bytes) && import_text_begins(name, "hip"))
    state->devices.is_hip = true;
  if (number != 0)
    import_launches_add(&state->launches, number, thread->called.pid, start, thread->serial);
}

/* What prof_step() marked, as src/export/chrome_event.c writes it: no scope. False: it is no such
   mark. A reader takes its start from the mark before it, or from the start of the trace. */
static bool convert_step_mark(import_state *state, const import_event *event, uint64_t start,
                              uint64_t end) {
  int64_t number;
  if (!import_text_begins(import_member_text(event, IMPORT_NAME), "ProfilerStep#")) return false;
  if (!import_read_arg(event, "step mark", &number) || number < 0) return false;
  import_record_begin(&current_values.record);
  import_record_word(&current_values.record, (uint64_t)number);
  import_record_end(&current_values.record, PROF_I_KIND_STEP, 0, 0, 0, 0);
  put_entry(state, import_host_thread(state, event), start, end, current_values.record.words,
            current_values.record.count, IMPORT_ENTRY_MARK);
  state->counts->steps++;
  state->counts->step_marks++;
  return true;
}

/* Makes the record: a plain scope's two words where it has no more to say. may_be_marked, is_open:
   as import_args_of_host() has them. */
static void make_scope_record(import_state *state, const import_event *event, uint64_t duration,
                              bool may_be_marked, bool is_open) {
  const import_text category = import_member_text(event, IMPORT_CAT),
                    name = import_member_text(event, IMPORT_NAME);
  import_source_location place;
  import_text own_name = no_text;
  import_source_location_of(event, category, name, &place);
  const uint32_t site =
      located_site(state, name, category, category_level(category), &place, &own_name);
  import_args_of_host(&current_values.values, event, &place, may_be_marked, is_open);
  prof_i_kind kind = PROF_I_KIND_SCOPE;
  if (current_values.values.is_skipped) kind = PROF_I_KIND_SKIPPED;
  if (current_values.values.is_async) kind = PROF_I_KIND_ASYNC;
  if (category_is_vendor_call(category) && !is_open) kind = PROF_I_KIND_CALL;
  const bool is_plain = kind == PROF_I_KIND_SCOPE && !current_values.values.schema.count &&
                        !current_values.values.is_cut && !current_values.values.flags &&
                        !own_name.bytes && duration >> PROF_I_DURATION_BITS == 0;
  import_record_begin(&current_values.record);
  if (is_open) {
    import_record_word(&current_values.record, duration);
    put_like_scope(state, kind, PROF_I_FLAG_LONG, site, own_name, 0);
    return;
  }
  if (!is_plain) {
    put_like_scope(state, kind, 0, site, own_name, duration);
    return;
  }
  current_values.record.words[1] = duration << PROF_I_DURATION_SHIFT | (uint64_t)site << 4;
  current_values.record.count = PLAIN_WORDS;
}

static void convert_host_scope(import_state *state, const import_event *event, uint64_t start,
                               uint64_t duration, bool is_open) {
  const import_text category = import_member_text(event, IMPORT_CAT),
                    name = import_member_text(event, IMPORT_NAME);
  if (convert_step_mark(state, event, start, start + duration)) return;
  const uint32_t bits = (import_text_is(category, "python_function") ? IMPORT_ENTRY_FUNCTION : 0u) |
                        (is_open ? IMPORT_ENTRY_OPEN : 0u);
  import_thread *const thread = import_host_thread(state, event);
  note_launch(state, event, thread, start, category, name);
  if (import_devices_process(&state->devices, thread->called.pid)->is_unknown)
    import_count_changed(state, IMPORT_CHANGE_AS_HOST);
  make_scope_record(state, event, duration, is_open || !category_is_vendor_call(category), is_open);
  state->has_forward_numbers |=
      import_event_arg(event, "Thread id") && import_event_arg(event, "Sequence number");
  state->counts->steps +=
      import_text_begins(name, "ProfilerStep#"); /* a table has "ProfilerStep*" */
  state->counts->scopes++;
  put_entry(state, thread, start, start + duration, current_values.record.words,
            current_values.record.count, bits);
}

import_entry import_convert_async(import_state *state, const import_event *event, uint64_t start,
                                  uint64_t end) {
  note_pid(state, import_threads_id(event).pid);
  make_scope_record(state, event, end - start, false, false); /* it is on no thread's row */
  state->counts->scopes++;
  const uint64_t place = import_spool_add(&state->spool, current_values.record.words + 1,
                                          current_values.record.count - 1, 0);
  return (import_entry){end, start, place, state->order};
}

/* ---- scopes of a device ---- */

static void convert_device_scope(import_state *state, const import_event *event, int kind,
                                 uint64_t start, uint64_t duration) {
  const import_thread_id row = import_threads_id(event);
  const import_process *const process = import_devices_process(&state->devices, row.pid);
  import_text category = import_member_text(event, IMPORT_CAT), own_name = no_text;
  const bool has_number = process->is_device || process->has_number;
  int64_t device = has_number ? process->number : row.pid, stream;
  const int64_t correlation = import_correlation_of(event);
  import_read_arg(event, "device", &device);
  if (import_read_arg(event, "stream", &stream))
    stream = import_threads_number_of(&state->threads, row, stream);
  else
    stream = import_row_stream(state, process, row);
  if (device < 0 || device > INT32_MAX) device = IMPORT_DEVICE_UNSAID;
  import_thread *const thread = import_threads_stream(&state->threads, device, stream, row);
  import_devices_note(&state->devices, row.pid, device);
  if (category.bytes == 0)
    category = (import_text){kind_category(kind), strlen(kind_category(kind))};
  const uint32_t site =
      plain_site(state, import_member_text(event, IMPORT_NAME), category, &own_name);
  const uint64_t ns = (uint64_t)import_times_ns(start);
  const uint64_t hidden[IMPORT_HIDDEN_VALUES] = {correlation ? IMPORT_LAUNCH_WAITS : 0,
                                                 (uint64_t)correlation, ns, ns + duration,
                                                 (uint64_t)kind};
  import_record_begin(&current_values.record);
  import_record_word(&current_values.record, 0); /* the device is known when all have come */
  import_record_word(&current_values.record, (uint64_t)stream);
  import_args_of_device(&current_values.values, event, hidden);
  put_like_scope(state, PROF_I_KIND_SCOPE, PROF_I_FLAG_DEVICE | PROF_I_FLAG_STREAM, site, own_name,
                 duration);
  put_entry(state, thread, start, start + duration, current_values.record.words,
            current_values.record.count, 0);
  state->counts->device_scopes++;
}

void import_convert_scope(import_state *state, const import_event *event, int kind, uint64_t start,
                          uint64_t duration) {
  const import_value *const is_annotation = import_event_arg(event, "annotation");
  const bool is_marked =
      kind == IMPORT_KIND_SIDE && is_annotation && is_annotation->is_true; /* chrome_event.c */
  if (kind == IMPORT_KIND_NONE)
    convert_host_scope(state, event, start, duration, false);
  else
    convert_device_scope(state, event, is_marked ? (int)PROF_RECORD_ANNOTATION : kind, start,
                         duration);
}

void import_convert_open_scope(import_state *state, const import_event *event, uint64_t start,
                               uint64_t duration) {
  convert_host_scope(state, event, start, duration, true);
}

/* ---- marks ---- */

import_entry import_convert_instant(import_state *state, const import_event *event, uint64_t time) {
  import_text own_name = no_text;
  const uint32_t site = plain_site(state, import_member_text(event, IMPORT_NAME),
                                   import_member_text(event, IMPORT_CAT), &own_name);
  import_args_of_host(&current_values.values, event, NULL, false, false);
  import_record_begin(&current_values.record);
  put_like_scope(state, PROF_I_KIND_INSTANT, 0, site, own_name, 0);
  state->counts->instants++;
  const uint64_t place = import_spool_add(&state->spool, current_values.record.words + 1,
                                          current_values.record.count - 1, IMPORT_ENTRY_MARK);
  return (import_entry){time, time, place, state->order};
}

void import_convert_metadata(import_state *state, import_text key, import_text text) {
  import_text own_name = no_text;
  const uint32_t site = plain_site(state, key, (import_text){"metadata", 8}, &own_name);
  import_args_begin(&current_values.values);
  import_args_text(&current_values.values, "value", text);
  import_record_begin(&current_values.record);
  put_like_scope(state, PROF_I_KIND_INSTANT, 0, site, own_name, 0);
  import_thread *const thread =
      import_threads_host(&state->threads, (import_thread_id){INT64_MAX, INT64_MAX});
  /* Where the trace begins: that is known in the end. */
  put_entry(state, thread, 0, 0, current_values.record.words, current_values.record.count,
            IMPORT_ENTRY_MARK);
  state->counts->instants++;
}

/* ---- counters ---- */

enum { GRAPHS_MAX = 1 << 20, TRIES_MAX = 1000 }; /* limits for memory and time */

/* Hashes the text's length, too, so that "a", "bc" and "ab", "c" differ. */
static uint64_t graph_hash(uint64_t before, import_text text) {
  const uint64_t seed = before ^ PROF_I_HASH64_SEED ^ text.bytes << 32;
  return prof_i_hash64(seed, text.data, text.bytes) * 0x9e3779b97f4a7c15u;
}

/* True: the name belongs to the counter. A free name is given to it. */
static bool name_is_of_counter(import_graphs *graphs, import_text name, int64_t place,
                               uint64_t counter) {
  const uint64_t key = graph_hash((uint64_t)place, name);
  import_graph_name *it;
  HASH_FIND(hh, graphs->all, &key, sizeof key, it);
  if (it) return it->counter == counter;
  if (HASH_COUNT(graphs->all) >= GRAPHS_MAX) return true;
  it = import_make(sizeof *it);
  it->key = key;
  it->counter = counter;
  HASH_ADD(hh, graphs->all, key, sizeof it->key, it);
  return true;
}

/* If another counter has the name at that place, appends " (2)" and so on. used: bytes of the name.
   room: of its buffer. Returns the number of appended bytes. */
static size_t make_name_unique(import_graphs *graphs, char *name, size_t used, size_t room,
                               int64_t place, uint64_t counter) {
  size_t more = 0;
  for (int number = 2; number < TRIES_MAX; number++) {
    if (name_is_of_counter(graphs, (import_text){name, used + more}, place, counter)) break;
    const int bytes = snprintf(name + used, room - used, " (%d)", number);
    if (bytes < 0 || (size_t)bytes >= room - used) return 0;
    more = (size_t)bytes;
  }
  return more;
}

void import_graphs_fini(import_graphs *graphs) {
  import_graph_name *it = graphs->all;
  HASH_CLEAR(hh, graphs->all);
  for (import_graph_name *next; it; it = next) {
    next = it->hh.next;
    free(it);
  }
}

/* In an export of prof's the name says it already. */
static bool says_process(const import_state *state, import_text name, int64_t pid) {
  char about[IMPORT_PROCESS_BYTES], wanted[IMPORT_PROCESS_BYTES + 4];
  if (import_threads_process_number(&state->threads, pid) != pid) return true;
  import_threads_put_process(&state->threads, pid, about);
  const int bytes = snprintf(wanted, sizeof wanted, " (%s)", about);
  return name.bytes && memmem(name.data, name.bytes, wanted, (size_t)bytes) != NULL;
}

/* What the graph is called: beside its name which value, which id, and of which process it is
   where that is not the first. */
static import_text name_graph(import_state *state, const import_event *event,
                              const import_process *process, import_text key,
                              char to[IMPORT_TEXT_BYTES_MAX]) {
  const import_text name =
      import_text_cut(import_member_text(event, IMPORT_NAME), IMPORT_TEXT_BYTES_MAX / 2);
  const import_member has_id =
      event->members[IMPORT_ID].type == IMPORT_NONE ? IMPORT_ID2 : IMPORT_ID;
  const import_text id =
      import_text_cut(import_member_text(event, has_id), IMPORT_TEXT_BYTES_MAX / 8);
  const bool is_elsewhere =
      import_is_elsewhere(state, process->pid) && !import_devices_has_counters(process);
  int used = snprintf(to, IMPORT_TEXT_BYTES_MAX, "%.*s", (int)name.bytes, name.data);
  const import_text cut_key = import_text_cut(key, IMPORT_TEXT_BYTES_MAX / 8);
  if (id.bytes)
    used +=
        snprintf(to + used, IMPORT_TEXT_BYTES_MAX - (size_t)used, "[%.*s]", (int)id.bytes, id.data);
  if (!import_text_is(key, "value"))
    used += snprintf(to + used, IMPORT_TEXT_BYTES_MAX - (size_t)used, " %.*s", (int)cut_key.bytes,
                     cut_key.data);
  if (is_elsewhere && !says_process(state, name, process->pid)) {
    char about[IMPORT_PROCESS_BYTES];
    import_threads_put_process(&state->threads, process->pid, about);
    used += snprintf(to + used, IMPORT_TEXT_BYTES_MAX - (size_t)used, " (%s)", about);
  }
  uint64_t counter = graph_hash((uint64_t)process->pid, import_member_text(event, IMPORT_NAME));
  counter = graph_hash(counter, import_member_text(event, has_id));
  counter = graph_hash(counter, key);
  const int64_t place = import_devices_has_counters(process) ? process->pid : INT64_MIN;
  const size_t more =
      make_name_unique(&state->graphs, to, (size_t)used, IMPORT_TEXT_BYTES_MAX, place, counter);
  return (import_text){to, (size_t)used + more};
}

/* A device's where its process is one: resolve.c. */
static void put_counter_value(import_state *state, const import_event *event, uint64_t time,
                              import_text key, double value) {
  const import_thread_id id = import_threads_id(event);
  const import_process *const process = import_devices_process(&state->devices, id.pid);
  char name[IMPORT_TEXT_BYTES_MAX];
  import_text own_name = no_text;
  uint64_t bits;
  if (!import_devices_has_counters(process))
    note_pid(state, id.pid); /* it may come before any scope */
  const import_text graph = name_graph(state, event, process, key, name);
  const uint32_t site = plain_site(state, graph, import_member_text(event, IMPORT_CAT), &own_name);
  const bool is_devices = import_devices_has_counters(process);
  memcpy(&bits, &value, sizeof bits);
  import_record_begin(&current_values.record);
  import_record_word(&current_values.record, bits);
  import_record_word(&current_values.record, (uint64_t)id.pid);
  import_record_end(&current_values.record, PROF_I_KIND_COUNTER,
                    is_devices ? PROF_I_FLAG_DEVICE : 0, 0, site, 0);
  put_entry(state, import_threads_host(&state->threads, id), time, time,
            current_values.record.words, current_values.record.count, IMPORT_ENTRY_MARK);
  state->counts->counters++;
}

/* A number, or a text of decimal digits, as Perfetto takes it. */
static bool read_counter_value(const import_event *event, const import_value *value, double *out) {
  const bool is_told = value->type == IMPORT_NUMBER || value->type == IMPORT_TEXT;
  return is_told && import_number_double(import_text_of(event, value), out);
}

/* A graph of several values is a counter for each. */
void import_convert_counters(import_state *state, const import_event *event, uint64_t time) {
  if (event->arg_count == 0) import_count_dropped(state, IMPORT_MISS_NO_VALUE);
  for (uint32_t i = 0; i < event->arg_count; i++) {
    const import_arg *const arg = &event->args[i];
    const import_text key = {event->text + arg->key_at, arg->key_bytes};
    double value;
    if (read_counter_value(event, &arg->value, &value))
      put_counter_value(state, event, time, key, value);
    else
      import_count_dropped(state, IMPORT_MISS_NO_VALUE);
  }
}

/* ---- arrows ---- */

void import_convert_arrow(import_state *state, import_thread *thread, import_text name,
                          uint64_t time, uint64_t id, bool is_end, bool is_next) {
  import_record_begin(&current_values.record);
  import_record_word(&current_values.record, id);
  import_record_word(&current_values.record, is_end);
  import_record_text(&current_values.record, import_text_cut(name, IMPORT_TEXT_BYTES_MAX));
  import_record_end(&current_values.record, PROF_I_KIND_FLOW, 0, 0, 0, 0);
  const uint32_t bits = IMPORT_ENTRY_MARK | (is_next ? IMPORT_ENTRY_NEXT : 0);
  put_entry(state, thread, time, time, current_values.record.words, current_values.record.count,
            bits);
  state->counts->flow_ends++;
}
