/* prof's own SQLite format: all events of a capture as tables, with views that join them. Rows are
   written in the order in which events begin, so ids are ordered by thread and time. The schema is
   in sqlite_schema.h. tools/import/own_database.c reads the file back. */
#include <math.h>
#include <stdlib.h>

#include "../base/log.h"
#include "../reader/capture.h"
#include "../reader/internal.h"
#include "event_text.h"
#include "name_ids.h"
#include "names.h"
#include "sqlite_file.h"
#include "sqlite_schema.h"
#include "work_links.h"

/* X(name of the statement, table with its columns, number of columns) */
#define SQLITE_INSERTS(X)                                                                          \
  X(metadata, "prof_metadata (key, value)", 2)                                                     \
  X(losses, "prof_losses (reason, count)", 2)                                                      \
  X(marks, "prof_marks (at_ns, kind, text)", 3)                                                    \
  X(devices, "prof_devices (id, type, number, name, row_pid)", 5)                                  \
  X(threads, "prof_threads (id, pid, tid, name, device_id, row_pid, row_tid)", 7)                  \
  X(names, "prof_names (id, name, category, level, file, line, place)", 7)                         \
  X(scopes,                                                                                        \
    "prof_scopes (id, thread_id, name_id, start_ns, duration_ns, self_ns, depth, flags, args)", 9) \
  X(kernels,                                                                                       \
    "prof_kernels (id, thread_id, name_id, start_ns, duration_ns, record, flags,"                  \
    " launch_thread_id, launch_ns, args)",                                                         \
    10)                                                                                            \
  X(launches, "prof_launches (kernel_id, scope_id)", 2)                                            \
  X(steps, "prof_steps (thread_id, number, start_ns, duration_ns)", 4)                             \
  X(instants, "prof_instants (thread_id, name_id, at_ns, args)", 4)                                \
  X(counters, "prof_counters (thread_id, device_id, name_id, at_ns, value)", 5)                    \
  X(arrow_ends, "prof_arrow_ends (thread_id, name_id, at_ns, arrow, is_end)", 5)                   \
  X(pools, "prof_pools (id, name, device_id, used_before_bytes, allocated_before_bytes)", 5)       \
  X(memory,                                                                                        \
    "prof_memory (thread_id, pool_id, at_ns, verb, address, bytes, requested_bytes,"               \
    " used_bytes, allocated_bytes, tag)",                                                          \
    10)

typedef struct sqlite_writer {
  prof_i_sqlite *database;
#define MEMBER(name, columns, count) prof_i_insert *name;
  SQLITE_INSERTS(MEMBER)
#undef MEMBER
  prof_i_event_text texts;
  prof_i_work_links links;
  prof_i_name_ids name_ids;
  uint32_t *site_names; /* by site: the number of its own name; 0: not numbered */
  uint32_t site_count;
  prof_device *known_devices; /* by number less 1 */
  uint32_t device_count, device_room;
  uint64_t scope_id, kernel_id;
  prof_i_event_counts counts;
} sqlite_writer;

/* PROF_OK, or the first failure of the texts or the database. */
static int writer_status(const sqlite_writer *w) {
  const int status = prof_i_sqlite_status(w->database);
  return status == PROF_OK ? w->texts.status : status;
}

static void put_clean(sqlite_writer *w, prof_i_insert *row, prof_i_text text) {
  prof_i_insert_put_text(row, prof_i_event_text_clean(&w->texts, text));
}

/* Puts the text, or NULL if it is empty. */
static void put_optional(sqlite_writer *w, prof_i_insert *row, prof_i_text text) {
  if (text.bytes)
    put_clean(w, row, text);
  else
    prof_i_insert_put_null(row);
}

/* Puts the arguments of run->event. Changes the event. */
static void put_args(sqlite_writer *w, prof_i_insert *row) {
  const prof_i_text args = prof_i_event_text_args(&w->texts);
  if (args.bytes)
    prof_i_insert_put_text(row, args);
  else
    prof_i_insert_put_null(row);
}

/* ---- devices and names, which rows refer to ---- */

static bool device_is_host(prof_device device) {
  return device.type == PROF_DEVICE_CPU || device.type == 0;
}

static bool add_device(sqlite_writer *w, prof_device device) {
  char name[PROF_I_DEVICE_NAME_BYTES];
  if (!prof_i_make_room((void **)&w->known_devices, &w->device_room, w->device_count,
                        sizeof *w->known_devices))
    return false;
  w->known_devices[w->device_count++] = device;
  prof_i_device_name(device, name);
  prof_i_insert_put(w->devices, w->device_count);
  prof_i_insert_put(w->devices, device.type);
  prof_i_insert_put(w->devices, device.index);
  prof_i_insert_put_text(w->devices, prof_i_text_from(name));
  prof_i_insert_put_u64(w->devices, prof_i_tids_device_pid(device));
  prof_i_insert_row(w->devices);
  return true;
}

/* Puts the number of the device, or NULL for the host. False: no memory. */
static bool put_device(sqlite_writer *w, prof_i_insert *row, prof_device device) {
  uint32_t at = 0;
  if (device_is_host(device)) {
    prof_i_insert_put_null(row);
    return true;
  }
  while (at < w->device_count &&
         (w->known_devices[at].type != device.type || w->known_devices[at].index != device.index))
    at++;
  if (at == w->device_count && !add_device(w, device)) return false;
  prof_i_insert_put(row, (int64_t)at + 1);
  return true;
}

static void add_name(prof_i_export *run, uint32_t id, const prof_i_name *name) {
  sqlite_writer *const w = run->state;
  const prof_i_site_info *const site = prof_i_trace_site(run->trace, name->site);
  prof_i_insert_put(w->names, id);
  put_clean(w, w->names, name->name);
  put_clean(w, w->names, name->category);
  prof_i_insert_put(w->names, site->level);
  put_optional(w, w->names, site->file);
  if (site->file.bytes)
    prof_i_insert_put(w->names, site->line);
  else
    prof_i_insert_put_null(w->names);
  put_optional(w, w->names, prof_i_event_text_place(&w->texts, name->site, name->name));
  prof_i_insert_row(w->names);
}

/* The number of the event's name and category. 0: no memory. */
static uint32_t name_of(prof_i_export *run, const prof_i_export_event *event) {
  sqlite_writer *const w = run->state;
  const uint32_t site = prof_i_event_text_site(run->trace, event->event);
  const uint32_t number = event->event->site < w->site_count ? event->event->site : 0;
  if (w->site_names[site]) return w->site_names[site];
  const prof_i_name name = {event->name, event->category, number};
  bool is_new;
  const uint32_t id = prof_i_name_id(&w->name_ids, &name, &is_new);
  if (is_new) add_name(run, id, &name);
  if (site) w->site_names[site] = id;
  return id;
}

/* ---- events ---- */

static int put_scope(prof_i_export *run, const prof_i_export_event *event) {
  sqlite_writer *const w = run->state;
  const prof_event *const e = event->event;
  const uint32_t name = event->is_left_out ? 0 : name_of(run, event);
  const bool is_open = e->kind == PROF_EVENT_OPEN;
  const uint64_t id = event->is_left_out ? 0 : ++w->scope_id;
  if (!prof_i_work_links_scope(&w->links, e, id))
    return prof_i_sqlite_fail_no_memory(run->sink->target.path);
  if (event->is_left_out) return PROF_OK;
  if (!name) return prof_i_sqlite_fail_no_memory(run->sink->target.path);
  prof_i_insert_put(w->scopes, (int64_t)id);
  prof_i_insert_put(w->scopes, (int64_t)run->thread + 1);
  prof_i_insert_put(w->scopes, name);
  prof_i_insert_put_u64(w->scopes, event->start_ns);
  prof_i_insert_put_u64(w->scopes, event->end_ns - event->start_ns);
  prof_i_insert_put_u64(w->scopes, e->self_ns);
  prof_i_insert_put(w->scopes, e->depth);
  prof_i_insert_put(w->scopes, e->flags | (is_open ? PROF_I_SQLITE_UNFINISHED : 0));
  put_args(w, w->scopes);
  prof_i_insert_row(w->scopes);
  w->counts.scopes += !is_open;
  w->counts.unfinished += is_open;
  return writer_status(w);
}

/* Work of a device, in its stream. */
static int put_kernel(prof_i_export *run, const prof_i_export_event *event) {
  sqlite_writer *const w = run->state;
  const prof_event *const e = event->event;
  const uint32_t name = event->is_left_out ? 0 : name_of(run, event);
  const bool is_open = e->kind == PROF_EVENT_OPEN;
  if (event->is_left_out) return PROF_OK;
  if (!name) return prof_i_sqlite_fail_no_memory(run->sink->target.path);
  const uint64_t id = ++w->kernel_id;
  prof_i_work_links_work(&w->links, e, id);
  prof_i_insert_put(w->kernels, (int64_t)id);
  prof_i_insert_put(w->kernels, (int64_t)run->thread + 1);
  prof_i_insert_put(w->kernels, name);
  prof_i_insert_put_u64(w->kernels, event->start_ns);
  prof_i_insert_put_u64(w->kernels, event->end_ns - event->start_ns);
  prof_i_insert_put(w->kernels, e->launch.record);
  prof_i_insert_put(w->kernels, e->flags | (is_open ? PROF_I_SQLITE_UNFINISHED : 0));
  if (e->launch.thread < run->info.thread_count)
    prof_i_insert_put(w->kernels, (int64_t)e->launch.thread + 1);
  else
    prof_i_insert_put_null(w->kernels);
  prof_i_insert_put_u64(w->kernels, e->launch.start_ns);
  put_args(w, w->kernels);
  prof_i_insert_row(w->kernels);
  w->counts.scopes += !is_open;
  w->counts.unfinished += is_open;
  return writer_status(w);
}

static int put_step(prof_i_export *run, const prof_i_export_event *event) {
  sqlite_writer *const w = run->state;
  if (event->is_left_out) return PROF_OK;
  prof_i_insert_put(w->steps, (int64_t)run->thread + 1);
  prof_i_insert_put_u64(w->steps, event->event->id);
  prof_i_insert_put_u64(w->steps, event->start_ns);
  prof_i_insert_put_u64(w->steps, event->end_ns - event->start_ns);
  prof_i_insert_row(w->steps);
  w->counts.steps++;
  return writer_status(w);
}

static int put_instant(prof_i_export *run, const prof_i_export_event *event) {
  sqlite_writer *const w = run->state;
  const uint32_t name = name_of(run, event);
  if (!name) return prof_i_sqlite_fail_no_memory(run->sink->target.path);
  prof_i_insert_put(w->instants, (int64_t)run->thread + 1);
  prof_i_insert_put(w->instants, name);
  prof_i_insert_put_u64(w->instants, event->start_ns);
  put_args(w, w->instants);
  prof_i_insert_row(w->instants);
  w->counts.instants++;
  return writer_status(w);
}

static const char *verb_name(uint32_t verb) {
  switch ((prof_memory_verb)verb) {
    case PROF_MEMORY_ALLOC:
      return "alloc";
    case PROF_MEMORY_FREE:
      return "free";
    case PROF_MEMORY_RESERVE:
      return "reserve";
    case PROF_MEMORY_RELEASE:
      return "release";
    case PROF_MEMORY_COLLECT:
      return "collect";
    case PROF_MEMORY_OOM:
      return "oom";
    case PROF_MEMORY_SAMPLE:
      return "sample";
    case PROF_MEMORY_WRONG:
      return "wrong";
  }
  return "unknown";
}

static int put_memory(prof_i_export *run, const prof_i_export_event *event) {
  sqlite_writer *const w = run->state;
  const prof_event_memory *const memory = &event->event->memory;
  if (!run->options->with_memory) return PROF_OK;
  prof_i_insert_put(w->memory, (int64_t)run->thread + 1);
  prof_i_insert_put(w->memory, memory->pool);
  prof_i_insert_put_u64(w->memory, event->start_ns);
  prof_i_insert_put_text(w->memory, prof_i_text_from(verb_name(memory->verb)));
  prof_i_insert_put_u64(w->memory, memory->address);
  prof_i_insert_put_u64(w->memory, memory->bytes);
  prof_i_insert_put_u64(w->memory, memory->requested_bytes);
  prof_i_insert_put(w->memory, memory->used_bytes);
  if (memory->allocated_bytes >= 0)
    prof_i_insert_put(w->memory, memory->allocated_bytes);
  else
    prof_i_insert_put_null(w->memory);
  put_optional(w, w->memory, (prof_i_text){memory->tag, memory->tag ? memory->tag_bytes : 0});
  prof_i_insert_row(w->memory);
  return writer_status(w);
}

static int sqlite_event(prof_i_export *run, prof_i_export_event *event) {
  if (event->phase == PROF_I_PHASE_END) return PROF_OK;
  switch ((prof_event_kind)event->event->kind) {
    case PROF_EVENT_SCOPE:
    case PROF_EVENT_OPEN:
      return event->event->flags & PROF_EVENT_ON_DEVICE ? put_kernel(run, event)
                                                        : put_scope(run, event);
    case PROF_EVENT_STEP:
      return put_step(run, event);
    case PROF_EVENT_INSTANT:
      return put_instant(run, event);
    case PROF_EVENT_MEMORY:
      return put_memory(run, event);
    case PROF_EVENT_COUNTER:
    case PROF_EVENT_FLOW_BEGIN:
    case PROF_EVENT_FLOW_END:
      return PROF_OK;
  }
  return PROF_OK;
}

static int sqlite_counter(prof_i_export *run, prof_i_export_event *event) {
  sqlite_writer *const w = run->state;
  if (!isfinite(event->event->value)) {
    run->findings->counts[PROF_I_FINDING_NOT_FINITE]++;
    return PROF_OK;
  }
  const uint32_t name = name_of(run, event);
  prof_i_insert_put(w->counters, (int64_t)run->thread + 1);
  if (!name || !put_device(w, w->counters, event->event->device))
    return prof_i_sqlite_fail_no_memory(run->sink->target.path);
  prof_i_insert_put(w->counters, name);
  prof_i_insert_put_u64(w->counters, event->start_ns);
  prof_i_insert_put_double(w->counters, event->event->value);
  prof_i_insert_row(w->counters);
  w->counts.counters++;
  return writer_status(w);
}

static int sqlite_flow(prof_i_export *run, prof_i_export_event *event) {
  sqlite_writer *const w = run->state;
  const uint32_t name = name_of(run, event);
  if (!name) return prof_i_sqlite_fail_no_memory(run->sink->target.path);
  prof_i_insert_put(w->arrow_ends, (int64_t)run->thread + 1);
  prof_i_insert_put(w->arrow_ends, name);
  prof_i_insert_put_u64(w->arrow_ends, event->start_ns);
  prof_i_insert_put_u64(w->arrow_ends, event->event->id);
  prof_i_insert_put(w->arrow_ends, event->event->kind == PROF_EVENT_FLOW_END);
  prof_i_insert_row(w->arrow_ends);
  w->counts.flow_ends++;
  return writer_status(w);
}

static int sqlite_thread(prof_i_export *run, const prof_trace_thread *thread) {
  sqlite_writer *const w = run->state;
  const prof_i_tids *const ids = &run->tids[run->thread];
  prof_i_work_links_thread(&w->links, run->thread);
  prof_i_insert_put(w->threads, (int64_t)run->thread + 1);
  prof_i_insert_put_u64(w->threads, ids->is_elsewhere ? ids->pid : run->info.pid);
  prof_i_insert_put_u64(w->threads, thread->is_stream ? thread->stream : thread->tid);
  put_clean(w, w->threads, prof_i_text_from(thread->name));
  const prof_device host = {.type = PROF_DEVICE_CPU};
  if (!put_device(w, w->threads, thread->is_stream ? thread->device : host))
    return prof_i_sqlite_fail_no_memory(run->sink->target.path);
  prof_i_insert_put_u64(w->threads, ids->pid);
  prof_i_insert_put_u64(w->threads, ids->first);
  prof_i_insert_row(w->threads);
  return writer_status(w);
}

/* ---- the head and the tail ---- */

static void put_number(sqlite_writer *w, const char *key, int64_t value) {
  prof_i_insert_put_text(w->metadata, prof_i_text_from(key));
  prof_i_insert_put(w->metadata, value);
  prof_i_insert_row(w->metadata);
}

static void put_text(sqlite_writer *w, const char *key, prof_i_text text) {
  prof_i_insert_put_text(w->metadata, prof_i_text_from(key));
  put_clean(w, w->metadata, text);
  prof_i_insert_row(w->metadata);
}

static void put_info(prof_i_export *run) {
  sqlite_writer *const w = run->state;
  const prof_trace_info *const info = &run->info;
  put_text(w, "format", prof_i_text_from("prof"));
  put_number(w, "format_version", PROF_I_SQLITE_VERSION);
  put_text(w, "prof_version", prof_i_text_from(prof_version()));
  put_text(w, "host", prof_i_text_from(info->host));
  put_text(w, "process_name", prof_i_text_from(info->process_name));
  put_number(w, "pid", info->pid);
  put_number(w, "rank", info->rank);
  put_number(w, "world_size", info->world_size);
  put_number(w, "start_unix_ns", (int64_t)info->start_unix_ns);
  put_number(w, "duration_ns", (int64_t)info->duration_ns);
  put_number(w, "clock_error_ns", (int64_t)info->clock_error_ns);
  put_number(w, "was_clean", info->was_clean);
  put_number(w, "event_count", (int64_t)info->event_count);
  put_number(w, "bad_count", (int64_t)info->bad_count);
  put_number(w, "is_part",
             run->options->filter || run->options->window.from_ns || run->options->window.to_ns);
  put_number(w, "chrome_epoch_ns", (int64_t)prof_i_event_text_epoch_ns(&w->texts));
}

static void put_losses(prof_i_export *run) {
  sqlite_writer *const w = run->state;
  for (int i = 0; i < PROF_LOSS_COUNT; i++) {
    prof_i_insert_put_text(w->losses, prof_i_text_from(prof_loss_name(i)));
    prof_i_insert_put_u64(w->losses, run->info.lost_count[i]);
    prof_i_insert_row(w->losses);
  }
}

static bool put_pools(prof_i_export *run) {
  sqlite_writer *const w = run->state;
  const prof_i_catalog *const catalog = &run->trace->catalog;
  for (uint32_t i = 0; i < catalog->pool_count; i++) {
    const prof_i_pool_record *const pool = &catalog->pools[i];
    prof_i_insert_put(w->pools, pool->number);
    put_clean(w, w->pools, pool->name);
    if (!put_device(w, w->pools, pool->device)) return false;
    prof_i_insert_put_u64(w->pools, pool->used_before);
    prof_i_insert_put_u64(w->pools, pool->allocated_before);
    prof_i_insert_row(w->pools);
  }
  return true;
}

/* Frees the text. at_ns: NULL: the mark has no time. */
static int put_mark(sqlite_writer *w, const char *kind, const uint64_t *at_ns, char *text) {
  if (at_ns)
    prof_i_insert_put_u64(w->marks, *at_ns);
  else
    prof_i_insert_put_null(w->marks);
  prof_i_insert_put_text(w->marks, prof_i_text_from(kind));
  put_clean(w, w->marks, prof_i_text_from(text));
  prof_i_insert_row(w->marks);
  prof_free(text);
  return writer_status(w);
}

/* Changes of levels, and notes. */
static int put_marks(prof_i_export *run) {
  sqlite_writer *const w = run->state;
  int status = PROF_OK;
  for (uint32_t i = 0; i < run->info.change_count && status == PROF_OK; i++) {
    prof_trace_change change = {.size = sizeof change};
    char *text;
    status = prof_trace_change_get(run->trace, i, &change);
    if (status == PROF_OK) status = prof_i_trace_change_text(run->trace, i, &text);
    if (status == PROF_OK) status = put_mark(w, "change", &change.at_ns, text);
  }
  for (uint32_t i = 0; i < run->info.note_count && status == PROF_OK; i++) {
    char *text;
    status = prof_i_trace_note_text(run->trace, i, &text);
    if (status == PROF_OK) status = put_mark(w, "note", NULL, text);
  }
  return status;
}

static void prepare_inserts(sqlite_writer *w) {
#define PREPARE(name, columns, count) w->name = prof_i_insert_begin(w->database, columns, count);
  SQLITE_INSERTS(PREPARE)
#undef PREPARE
}

static int sqlite_begin(prof_i_export *run) {
  sqlite_writer *const w = run->state;
  int status = prof_i_sqlite_open(run->sink, &w->database);
  if (status == PROF_OK) status = prof_i_event_text_init(&w->texts, run);
  if (status == PROF_OK) status = prof_i_work_links_init(&w->links, run->trace);
  if (status != PROF_OK) return status;
  w->site_count = prof_i_trace_site_count(run->trace);
  w->site_names = calloc((size_t)w->site_count + 1, sizeof *w->site_names);
  if (!w->site_names) return prof_i_sqlite_fail_no_memory(run->sink->target.path);
  prof_i_sqlite_run(w->database, sqlite_tables);
  prepare_inserts(w);
  put_info(run);
  put_losses(run);
  put_text(w, "chrome_head", prof_i_event_text_head(&w->texts));
  return put_pools(run) ? writer_status(w) : prof_i_sqlite_fail_no_memory(run->sink->target.path);
}

static void put_links(sqlite_writer *w) {
  prof_i_work_links_thread(&w->links, UINT32_MAX);
  for (uint32_t i = 0; i < w->links.launches.count; i++) {
    if (!w->links.links[i].scope_id || !w->links.links[i].work_id) continue;
    prof_i_insert_put_u64(w->launches, w->links.links[i].work_id);
    prof_i_insert_put_u64(w->launches, w->links.links[i].scope_id);
    prof_i_insert_row(w->launches);
  }
}

static int sqlite_end(prof_i_export *run) {
  sqlite_writer *const w = run->state;
  put_links(w);
  int status = put_marks(run);
  put_text(w, "chrome_tail", prof_i_event_text_tail(&w->texts, &w->counts, run->findings));
  if (status == PROF_OK) status = writer_status(w);
  if (status != PROF_OK) return status;
  prof_i_sqlite_run(w->database, sqlite_views);
  status = prof_i_sqlite_commit(w->database);
  w->database = NULL;
  return status;
}

static void sqlite_destroy(prof_i_export *run) {
  sqlite_writer *const w = run->state;
  prof_i_sqlite_abandon(w->database);
  prof_i_event_text_fini(&w->texts);
  prof_i_work_links_fini(&w->links);
  prof_i_name_ids_fini(&w->name_ids);
  free(w->site_names);
  free(w->known_devices);
}

const prof_i_exporter prof_i_sqlite_exporter = {
    .name = "sqlite",
    .format = PROF_FORMAT_SQLITE,
    .suffixes = {".db"},
    .abilities = PROF_I_EXPORT_CUT | PROF_I_EXPORT_NO_MEMORY,
    .order = PROF_I_ORDER_TIME,
    .event_kinds = PROF_I_KIND(SCOPE) | PROF_I_KIND(OPEN) | PROF_I_KIND(STEP) |
                   PROF_I_KIND(INSTANT) | PROF_I_KIND(MEMORY),
    .takes_left_out = true,
    .has_self_times = true,
    .state_bytes = sizeof(sqlite_writer),
    .begin = sqlite_begin,
    .thread = sqlite_thread,
    .event = sqlite_event,
    .counter = sqlite_counter,
    .flow = sqlite_flow,
    .end = sqlite_end,
    .destroy = sqlite_destroy};
