/* RPD, the SQLite format of AMD's rocmProfileData (trace.rpd, schema version 3). A scope is a row
   of rocpd_api with the name UserMarker, and the scope's name as its argument. A vendor's call is a
   row with the name of the call. Work of devices is in rocpd_op. The column domain has flags that
   RPD has no column for. Rows prof_* of rocpd_metadata have data for prof import.
   tools/import/own_database.c reads the file back. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <prof/backend.h>

#include "../base/error.h"
#include "../base/text.h"
#include "../reader/capture.h"
#include "rpd_writer.h"

/* ---- strings ---- */

/* The number of a text, which must stay valid. 0: no memory. */
uint32_t prof_i_rpd_string_id(prof_i_rpd_writer *w, prof_i_text text) {
  const prof_i_database_name name = {.name = text};
  bool is_new;
  const uint32_t own = prof_i_name_id(&w->string_ids, &name, &is_new);
  const uint32_t id = own ? w->before.strings + own : 0;
  if (!is_new) return id;
  prof_i_insert_put(w->inserts.strings, id);
  prof_i_insert_put_text(w->inserts.strings, prof_i_event_text_clean(&w->texts, text));
  prof_i_insert_row(w->inserts.strings);
  return id;
}

/* Adds a text of arguments. Names have even numbers, and texts that are used once have odd ones. */
static uint64_t add_ustring(prof_i_rpd_writer *w, uint64_t id, prof_i_text text) {
  prof_i_insert_put_u64(w->inserts.ustrings, id);
  prof_i_insert_put_text(w->inserts.ustrings, prof_i_event_text_clean(&w->texts, text));
  prof_i_insert_row(w->inserts.ustrings);
  return id;
}

uint32_t prof_i_rpd_ustring_id(prof_i_rpd_writer *w, prof_i_text text) {
  const prof_i_database_name name = {.name = text};
  bool is_new;
  const uint32_t own = prof_i_name_id(&w->ustring_ids, &name, &is_new);
  const uint32_t id = own ? 2 * (w->before.ustrings + own) : 0;
  if (is_new) add_ustring(w, id, text);
  return id;
}

static uint64_t new_ustring(prof_i_rpd_writer *w, prof_i_text text) {
  return add_ustring(w, 2 * w->argument_count++ + 1, text);
}

/* The numbers of the event's name, as the argument of a marker, and of its category. False: no
   memory. */
static bool name_of(prof_i_export *run, const prof_i_export_event *event, prof_i_rpd_site *out) {
  prof_i_rpd_writer *const w = run->state;
  const uint32_t site = prof_i_event_text_site(run->trace, event->event);
  if (w->sites[site].name) {
    *out = w->sites[site];
    return true;
  }
  *out = (prof_i_rpd_site){prof_i_rpd_ustring_id(w, event->name),
                           prof_i_rpd_string_id(w, event->category)};
  if (site) w->sites[site] = *out;
  return out->name && out->category;
}

/* ---- rows of rocpd_api ---- */

/* Flags that RPD has no column for, as words that prof import knows. */
static prof_i_text marker_domain(const prof_event *event) {
  static const char *const domains[16] = {
      "prof",
      "prof unfinished",
      "prof async",
      "prof unfinished async",
      "prof moved",
      "prof unfinished moved",
      "prof async moved",
      "prof unfinished async moved",
      "prof skipped",
      "prof unfinished skipped",
      "prof async skipped",
      "prof unfinished async skipped",
      "prof moved skipped",
      "prof unfinished moved skipped",
      "prof async moved skipped",
      "prof unfinished async moved skipped",
  };
  const int bits = (event->kind == PROF_EVENT_OPEN ? 1 : 0) |
                   (event->flags & PROF_EVENT_ASYNC ? 2 : 0) |
                   (event->flags & PROF_EVENT_OTHER_THREAD ? 4 : 0) |
                   (event->flags & PROF_EVENT_SKIPPED ? 8 : 0);
  return prof_i_text_from(domains[bits]);
}

/* "hip" and "cuda" as RPD has them. */
static prof_i_text call_domain(prof_i_text category) {
  if (prof_i_text_begins(category, "hip")) return prof_i_text_from("hip");
  return prof_i_text_begins(category, "cuda") ? prof_i_text_from("cuda") : category;
}

typedef struct api_row {
  uint64_t start_ns, end_ns;
  uint32_t name, category, domain;
  uint64_t argument;
} api_row;

static int put_api(prof_i_export *run, const api_row *row) {
  prof_i_rpd_writer *const w = run->state;
  const prof_i_tids *const ids = &run->tids[run->thread];
  if (!row->name || !row->category || !row->domain || !row->argument)
    return prof_i_sqlite_fail_no_memory(run->sink->target.path);
  prof_i_insert_put_u64(w->inserts.apis, ++w->api_id);
  prof_i_insert_put_u64(w->inserts.apis, ids->pid);
  prof_i_insert_put_u64(w->inserts.apis, ids->first);
  prof_i_insert_put_u64(w->inserts.apis, run->info.start_ns + row->start_ns);
  prof_i_insert_put_u64(w->inserts.apis, run->info.start_ns + row->end_ns);
  prof_i_insert_put(w->inserts.apis, row->name);
  prof_i_insert_put(w->inserts.apis, row->category);
  prof_i_insert_put(w->inserts.apis, row->domain);
  prof_i_insert_put_u64(w->inserts.apis, row->argument);
  prof_i_insert_row(w->inserts.apis);
  return prof_i_rpd_writer_status(w);
}

/* Puts the arguments of a call, as JSON. RPD's tools copy the text into JSON without escaping it,
   and fail on a backslash. So if it has one, all quotes and backslashes are removed. */
static uint64_t put_arguments(prof_i_rpd_writer *w) {
  const prof_i_text arguments = prof_i_event_text_args(&w->texts);
  char *const text = w->texts.sink.buffer;
  size_t bytes = 0;
  if (!arguments.bytes) return w->empty_argument;
  if (!memchr(text, '\\', (size_t)arguments.bytes)) return new_ustring(w, arguments);
  for (size_t i = 0; i < arguments.bytes; i++)
    if (text[i] != '\\' && text[i] != '"') text[bytes++] = text[i];
  return new_ustring(w, (prof_i_text){text, bytes});
}

static int put_call(prof_i_export *run, const prof_i_export_event *event) {
  prof_i_rpd_writer *const w = run->state;
  return put_api(
      run, &(api_row){event->start_ns, event->end_ns, prof_i_rpd_string_id(w, event->name),
                      prof_i_rpd_string_id(w, event->category),
                      prof_i_rpd_string_id(w, call_domain(event->category)), put_arguments(w)});
}

static int put_scope(prof_i_export *run, const prof_i_export_event *event) {
  prof_i_rpd_writer *const w = run->state;
  const prof_event *const e = event->event;
  const uint64_t id = event->is_left_out ? 0 : w->api_id + 1;
  prof_i_rpd_site name;
  if (!prof_i_work_links_scope(&w->links, e, id))
    return prof_i_sqlite_fail_no_memory(run->sink->target.path);
  if (event->is_left_out) return PROF_OK;
  w->counts.scopes += e->kind != PROF_EVENT_OPEN;
  w->counts.unfinished += e->kind == PROF_EVENT_OPEN;
  if (e->flags & PROF_EVENT_CALL && e->kind != PROF_EVENT_OPEN) return put_call(run, event);
  if (!name_of(run, event, &name)) return prof_i_sqlite_fail_no_memory(run->sink->target.path);
  return put_api(run, &(api_row){event->start_ns, event->end_ns, w->marker, name.category,
                                 prof_i_rpd_string_id(w, marker_domain(e)), name.name});
}

static int put_step(prof_i_export *run, const prof_i_export_event *event) {
  prof_i_rpd_writer *const w = run->state;
  char name[64];
  if (event->is_left_out) return PROF_OK;
  snprintf(name, sizeof name, "ProfilerStep#%llu", (unsigned long long)event->event->id);
  w->counts.steps++;
  return put_api(run, &(api_row){event->start_ns, event->end_ns, w->marker,
                                 prof_i_rpd_string_id(w, prof_i_text_from("user_annotation")),
                                 prof_i_rpd_string_id(w, prof_i_text_from("prof step")),
                                 new_ustring(w, prof_i_text_from(name))});
}

static int put_instant(prof_i_export *run, const prof_i_export_event *event) {
  prof_i_rpd_writer *const w = run->state;
  prof_i_rpd_site name;
  if (!name_of(run, event, &name)) return prof_i_sqlite_fail_no_memory(run->sink->target.path);
  w->counts.instants++;
  return put_api(run,
                 &(api_row){event->start_ns, event->start_ns, w->marker, name.category,
                            prof_i_rpd_string_id(w, prof_i_text_from("prof instant")), name.name});
}

/* ---- work of devices ---- */

/* The device's gpuId: its number, or the next free one if another device has that number.
   UINT32_MAX: no memory. */
static uint32_t gpu_id(prof_i_export *run, prof_device device) {
  prof_i_rpd_writer *const w = run->state;
  const uint32_t capture = run->options->place ? run->options->place->number : 0;
  uint32_t wanted = device.index >= 0 && device.index < 1000 ? (uint32_t)device.index : 0;
  for (uint32_t i = 0; i < w->gpu_room; i++)
    if (prof_i_is_same_device(w->gpus[i].device, device) && w->gpus[i].capture == capture) return i;
  while (wanted < w->gpu_room && w->gpus[wanted].device.type) wanted++;
  if (!prof_i_make_room_at_index((void **)&w->gpus, &w->gpu_room, wanted, sizeof *w->gpus))
    return UINT32_MAX;
  w->gpus[wanted] = (prof_i_rpd_gpu){device, prof_i_export_device_pid(run, device), capture};
  return wanted;
}

static int rpd_thread(prof_i_export *run, const prof_trace_thread *thread) {
  prof_i_rpd_writer *const w = run->state;
  prof_i_work_links_thread(&w->links, run->thread);
  if (!thread->is_stream) return prof_i_rpd_writer_status(w);
  w->stream = thread->stream;
  w->gpu = gpu_id(run, thread->device);
  return w->gpu == UINT32_MAX ? prof_i_sqlite_fail_no_memory(run->sink->target.path)
                              : prof_i_rpd_writer_status(w);
}

/* RPD's name for the type, or the category. prof import converts it back to a category. */
static prof_i_text op_type(const prof_i_export_event *event) {
  static const struct {
    const char *category, *type;
  } types[] = {{"kernel", "KernelExecution"}, {"gpu_memcpy", "Copy"}, {"gpu_memset", "FillBuffer"}};
  if (event->event->launch.record == 0) return prof_i_text_from("gpu_user_annotation");
  if (event->event->launch.record == PROF_RECORD_ANNOTATION) return prof_i_text_from("annotation");
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (prof_i_text_equals(event->category, types[i].category))
      return prof_i_text_from(types[i].type);
  return event->category;
}

static const prof_trace_arg *find_arg(const prof_event *event, const char *key, uint32_t type) {
  for (uint32_t i = 0; i < event->arg_count; i++)
    if (event->args[i].type == type && event->args[i].key &&
        event->args[i].key_bytes == strlen(key) &&
        memcmp(event->args[i].key, key, strlen(key)) == 0)
      return &event->args[i];
  return NULL;
}

static void copy_dims(const prof_event *event, const char *key, uint32_t to[3]) {
  const prof_trace_arg *const arg = find_arg(event, key, PROF_ARG_TENSOR);
  for (uint32_t i = 0; arg && i < 3 && i < arg->value.tensor.rank; i++)
    to[i] = (uint32_t)arg->value.tensor.dims[i];
}

static uint64_t number_arg(const prof_event *event, const char *key) {
  const prof_trace_arg *const arg = find_arg(event, key, PROF_ARG_U64);
  return arg ? arg->value.u64 : 0;
}

/* hipMemcpyKind */
static uint32_t copy_kind(const prof_event *event) {
  static const char *const ways[] = {"host to host", "host to device", "device to host",
                                     "device to device"};
  enum { KIND_DEFAULT = 4 };
  const prof_trace_arg *const arg = find_arg(event, "direction", PROF_ARG_STRING);
  for (uint32_t i = 0; arg && i < KIND_DEFAULT; i++)
    if (arg->value.text.bytes == strlen(ways[i]) &&
        memcmp(arg->value.text.data, ways[i], strlen(ways[i])) == 0)
      return i;
  return KIND_DEFAULT;
}

static void keep_work(prof_i_rpd_writer *w, uint32_t launch, const prof_event *event,
                      uint32_t name) {
  prof_i_rpd_work *const work = &w->works[launch];
  *work = (prof_i_rpd_work){.stream = w->stream,
                            .record = event->launch.record,
                            .name = name,
                            .device = w->gpu,
                            .copy_kind = copy_kind(event)};
  const bool is_kernel = event->launch.record == PROF_BACKEND_KERNEL;
  work->bytes = number_arg(event, is_kernel ? "shared memory" : "bytes");
  copy_dims(event, find_arg(event, "grid", PROF_ARG_TENSOR) ? "grid" : "work items", work->grid);
  copy_dims(event, "block", work->block);
}

static int put_op(prof_i_export *run, const prof_i_export_event *event) {
  prof_i_rpd_writer *const w = run->state;
  if (event->is_left_out) return PROF_OK;
  const uint32_t name = prof_i_rpd_string_id(w, event->name),
                 type = prof_i_rpd_string_id(w, op_type(event));
  if (!name || !type) return prof_i_sqlite_fail_no_memory(run->sink->target.path);
  const uint32_t launch = prof_i_work_links_work(&w->links, event->event, ++w->op_id);
  if (launch != UINT32_MAX) keep_work(w, launch, event->event, name);
  prof_i_insert_put_u64(w->inserts.ops, w->op_id);
  prof_i_insert_put(w->inserts.ops, w->gpu);
  prof_i_insert_put_u64(w->inserts.ops, run->tids[run->thread].first);
  prof_i_insert_put(w->inserts.ops, 0);
  prof_i_insert_put_u64(w->inserts.ops, run->info.start_ns + event->start_ns);
  prof_i_insert_put_u64(w->inserts.ops, run->info.start_ns + event->end_ns);
  prof_i_insert_put(w->inserts.ops, name);
  prof_i_insert_put(w->inserts.ops, type);
  prof_i_insert_row(w->inserts.ops);
  w->counts.scopes += event->event->kind == PROF_EVENT_SCOPE;
  w->counts.unfinished += event->event->kind == PROF_EVENT_OPEN;
  return prof_i_rpd_writer_status(w);
}

/* ---- links ---- */

static void put_stream(prof_i_insert *row, uint64_t stream) {
  char text[24];
  snprintf(text, sizeof text, "0x%llx", (unsigned long long)stream);
  prof_i_insert_put_text(row, prof_i_text_from(text));
}

static void put_kernel_api(prof_i_rpd_writer *w, uint64_t api, const prof_i_rpd_work *work) {
  prof_i_insert_put_u64(w->inserts.kernels, api);
  put_stream(w->inserts.kernels, work->stream);
  for (int i = 0; i < 3; i++) prof_i_insert_put(w->inserts.kernels, work->grid[i]);
  for (int i = 0; i < 3; i++) prof_i_insert_put(w->inserts.kernels, work->block[i]);
  prof_i_insert_put_u64(w->inserts.kernels, work->bytes);
  prof_i_insert_put(w->inserts.kernels, 0);
  prof_i_insert_put(w->inserts.kernels, work->name);
  prof_i_insert_row(w->inserts.kernels);
}

static void put_copy_api(prof_i_rpd_writer *w, uint64_t api, const prof_i_rpd_work *work) {
  prof_i_insert_put_u64(w->inserts.copies, api);
  put_stream(w->inserts.copies, work->stream);
  prof_i_insert_put_u64(w->inserts.copies, work->bytes);
  for (int i = 0; i < 2; i++) prof_i_insert_put(w->inserts.copies, 0); /* width, height */
  prof_i_insert_put(w->inserts.copies, work->copy_kind);
  for (int i = 0; i < 2; i++)
    prof_i_insert_put_text(w->inserts.copies, prof_i_text_from("")); /* dst, src */
  for (int i = 0; i < 2; i++) prof_i_insert_put(w->inserts.copies, work->device);
  for (int i = 0; i < 2; i++) prof_i_insert_put(w->inserts.copies, 0); /* sync, pinned */
  prof_i_insert_row(w->inserts.copies);
}

/* Connects calls with their work. A call has at most one row for a kernel and one for a copy: the
   first ones that it launched. */
int prof_i_rpd_put_links(prof_i_export *run) {
  prof_i_rpd_writer *const w = run->state;
  prof_i_work_links_thread(&w->links, UINT32_MAX);
  const uint32_t count = w->links.launches.count;
  uint8_t *const seen = count ? calloc(w->api_id + 1, 1) : NULL;
  if (count && !seen) return prof_i_sqlite_fail_no_memory(run->sink->target.path);
  for (uint32_t i = 0; i < count; i++) {
    const prof_i_work_link *const link = &w->links.links[i];
    const prof_i_rpd_work *const work = &w->works[i];
    if (!link->scope_id || !link->work_id) continue;
    prof_i_insert_put_u64(w->inserts.api_ops, link->scope_id);
    prof_i_insert_put_u64(w->inserts.api_ops, link->work_id);
    prof_i_insert_row(w->inserts.api_ops);
    const bool is_kernel = work->record == PROF_BACKEND_KERNEL;
    const uint8_t bit = is_kernel ? 1 : 2;
    if (seen[link->scope_id] & bit || (!is_kernel && work->record != PROF_BACKEND_COPY)) continue;
    seen[link->scope_id] |= bit;
    if (is_kernel)
      put_kernel_api(w, link->scope_id, work);
    else
      put_copy_api(w, link->scope_id, work);
  }
  free(seen);
  return prof_i_rpd_writer_status(w);
}

/* ---- the exporter ---- */

static int rpd_event(prof_i_export *run, prof_i_export_event *event) {
  if (event->phase == PROF_I_PHASE_END) return PROF_OK;
  if (event->event->kind == PROF_EVENT_STEP) return put_step(run, event);
  if (event->event->kind == PROF_EVENT_INSTANT) return put_instant(run, event);
  return event->event->flags & PROF_EVENT_ON_DEVICE ? put_op(run, event) : put_scope(run, event);
}

static int rpd_counter(prof_i_export *run, prof_i_export_event *event) {
  prof_i_rpd_writer *const w = run->state;
  const prof_device device = event->event->device;
  const bool is_host = prof_i_device_is_host(device);
  const uint32_t gpu = is_host ? 0 : gpu_id(run, device);
  char value[PROF_I_NUMBER_ROOM];
  if (!isfinite(event->event->value)) {
    run->findings->counts[PROF_I_FINDING_NOT_FINITE]++;
    return PROF_OK;
  }
  if (gpu == UINT32_MAX) return prof_i_sqlite_fail_no_memory(run->sink->target.path);
  const char *const end = prof_i_put_double(value, event->event->value);
  prof_i_insert_put_text(w->inserts.monitors, prof_i_text_from(is_host ? "cpu" : "gpu"));
  prof_i_insert_put(w->inserts.monitors, gpu);
  prof_i_insert_put_text(w->inserts.monitors, prof_i_event_text_clean(&w->texts, event->name));
  prof_i_insert_put_u64(w->inserts.monitors, run->info.start_ns + event->start_ns);
  prof_i_insert_put_u64(w->inserts.monitors, run->info.start_ns + event->start_ns);
  prof_i_insert_put_text(w->inserts.monitors, (prof_i_text){value, (uint64_t)(end - value)});
  prof_i_insert_row(w->inserts.monitors);
  w->counts.counters++;
  return prof_i_rpd_writer_status(w);
}

const prof_i_exporter prof_i_rpd_exporter = {
    .name = "rpd",
    .format = PROF_FORMAT_RPD,
    .suffixes = {".rpd"},
    .abilities = PROF_I_EXPORT_CUT | PROF_I_EXPORT_NO_MEMORY | PROF_I_EXPORT_MERGED,
    .order = PROF_I_ORDER_TIME,
    .event_kinds =
        PROF_I_KIND(SCOPE) | PROF_I_KIND(OPEN) | PROF_I_KIND(STEP) | PROF_I_KIND(INSTANT),
    .takes_left_out = true,
    .lacks_arguments = true,
    .state_bytes = sizeof(prof_i_rpd_writer),
    .shared_bytes = sizeof(prof_i_rpd_shared),
    .destroy_shared = prof_i_rpd_export_destroy_shared,
    .begin = prof_i_rpd_export_begin,
    .thread = rpd_thread,
    .event = rpd_event,
    .counter = rpd_counter,
    .end = prof_i_rpd_export_end,
    .destroy = prof_i_rpd_export_destroy};
