/* prof's own SQLite format: what is before and after the rows of events. Opens the database, and
   writes its tables of facts. In a merged file the captures share the database, and the numbers of
   their rows continue. Called by sqlite.c. */
#include <stdlib.h>

#include "../base/log.h"
#include "../reader/capture.h"
#include "../reader/internal.h"
#include "sqlite_schema.h"
#include "sqlite_writer.h"

/* ---- facts ---- */

static void put_number(prof_i_sqlite_writer *w, const char *key, int64_t value) {
  prof_i_insert_put_text(w->inserts.metadata, prof_i_text_from(key));
  prof_i_insert_put(w->inserts.metadata, value);
  prof_i_insert_row(w->inserts.metadata);
}

static void put_text(prof_i_sqlite_writer *w, const char *key, prof_i_text text) {
  prof_i_insert_put_text(w->inserts.metadata, prof_i_text_from(key));
  prof_i_sqlite_put_clean(w, w->inserts.metadata, text);
  prof_i_insert_row(w->inserts.metadata);
}

static void put_info(prof_i_export *run) {
  prof_i_sqlite_writer *const w = run->state;
  const prof_trace_info *const info = &run->info;
  const prof_i_export_place *const place = run->options->place;
  const uint64_t before_ns = place ? place->offset_ns : 0;
  put_text(w, "format", prof_i_text_from("prof"));
  put_number(w, "format_version", PROF_I_SQLITE_VERSION);
  put_text(w, "prof_version", prof_i_text_from(prof_version()));
  if (!place) {
    put_text(w, "host", prof_i_text_from(info->host));
    put_text(w, "process_name", prof_i_text_from(info->process_name));
    put_number(w, "pid", info->pid);
    put_number(w, "rank", info->rank);
    put_number(w, "world_size", info->world_size);
  }
  put_number(w, "start_unix_ns", (int64_t)(info->start_unix_ns - before_ns));
  put_number(w, "duration_ns", (int64_t)(place ? place->duration_ns : info->duration_ns));
  if (!place) {
    put_number(w, "clock_error_ns", (int64_t)info->clock_error_ns);
    put_number(w, "was_clean", info->was_clean);
    put_number(w, "event_count", (int64_t)info->event_count);
    put_number(w, "bad_count", (int64_t)info->bad_count);
  }
  put_number(w, "is_part",
             run->options->filter || run->options->window.from_ns || run->options->window.to_ns);
  put_number(w, "chrome_epoch_ns", (int64_t)(prof_i_event_text_epoch_ns(&w->texts) - before_ns));
}

static void put_losses(prof_i_sqlite_writer *w, const uint64_t *counts) {
  for (int i = 0; i < PROF_LOSS_COUNT; i++) {
    prof_i_insert_put_text(w->inserts.losses, prof_i_text_from(prof_loss_name(i)));
    prof_i_insert_put_u64(w->inserts.losses, counts[i]);
    prof_i_insert_row(w->inserts.losses);
  }
}

/* ---- captures of a merged file ---- */

/* The capture's row, and its share of the sums. */
static void put_capture(prof_i_export *run) {
  prof_i_sqlite_writer *const w = run->state;
  const prof_trace_info *const info = &run->info;
  const prof_i_export_place *const place = run->options->place;
  uint64_t lost = 0;
  for (int i = 0; i < PROF_LOSS_COUNT; i++) {
    lost += info->lost_count[i];
    w->shared->lost_count[i] += info->lost_count[i];
  }
  w->shared->event_count += info->event_count;
  w->shared->bad_count += info->bad_count;
  prof_i_insert_put(w->inserts.captures, (int64_t)place->number + 1);
  prof_i_sqlite_put_clean(w, w->inserts.captures, prof_i_text_from(place->label));
  prof_i_insert_put(w->inserts.captures, info->pid);
  prof_i_sqlite_put_clean(w, w->inserts.captures, prof_i_text_from(info->process_name));
  if (info->rank < 0)
    prof_i_insert_put_null(w->inserts.captures);
  else
    prof_i_insert_put(w->inserts.captures, info->rank);
  prof_i_insert_put(w->inserts.captures, info->world_size);
  prof_i_sqlite_put_clean(w, w->inserts.captures, prof_i_text_from(info->host));
  prof_i_insert_put_u64(w->inserts.captures, place->offset_ns);
  prof_i_insert_put_u64(w->inserts.captures, info->duration_ns);
  prof_i_insert_put(w->inserts.captures, info->was_clean);
  prof_i_insert_put_u64(w->inserts.captures, info->event_count);
  prof_i_insert_put_u64(w->inserts.captures, lost);
  prof_i_insert_row(w->inserts.captures);
}

/* The next capture's numbers are behind those of this one. */
static void count_rows(prof_i_export *run) {
  prof_i_sqlite_writer *const w = run->state;
  prof_i_sqlite_counts *const counts = &w->shared->counts;
  const prof_i_catalog *const catalog = &run->trace->catalog;
  uint32_t pools = 0;
  for (uint32_t i = 0; i < catalog->pool_count; i++)
    if (catalog->pools[i].number > pools) pools = catalog->pools[i].number;
  counts->threads += run->info.thread_count;
  counts->names += w->name_ids.count;
  counts->devices += w->device_count;
  counts->pools += pools;
  counts->scopes = w->scope_id;
  counts->kernels = w->kernel_id;
}

/* What is known when all captures are written. */
static void put_sums(prof_i_sqlite_writer *w, uint32_t capture_count) {
  prof_i_sqlite_shared *const shared = w->shared;
  put_number(w, "capture_count", capture_count);
  put_number(w, "event_count", (int64_t)shared->event_count);
  put_number(w, "bad_count", (int64_t)shared->bad_count);
  put_losses(w, shared->lost_count);
  put_text(w, "chrome_head", prof_i_merged_head(&shared->texts));
  put_text(w, "chrome_tail", prof_i_merged_tail(&shared->texts));
}

static bool put_pools(prof_i_export *run) {
  prof_i_sqlite_writer *const w = run->state;
  const prof_i_catalog *const catalog = &run->trace->catalog;
  for (uint32_t i = 0; i < catalog->pool_count; i++) {
    const prof_i_pool_record *const pool = &catalog->pools[i];
    prof_i_insert_put_u64(w->inserts.pools, w->before.pools + pool->number);
    prof_i_sqlite_put_clean(w, w->inserts.pools, pool->name);
    if (!prof_i_sqlite_put_device(run, w->inserts.pools, pool->device)) return false;
    prof_i_insert_put_u64(w->inserts.pools, pool->used_before);
    prof_i_insert_put_u64(w->inserts.pools, pool->allocated_before);
    prof_i_insert_row(w->inserts.pools);
  }
  return true;
}

/* Frees the text. at_ns: NULL: the mark has no time. */
static int put_mark(prof_i_export *run, const char *kind, const uint64_t *at_ns, char *text) {
  prof_i_sqlite_writer *const w = run->state;
  if (at_ns)
    prof_i_insert_put_u64(w->inserts.marks, prof_i_export_ns(run, *at_ns));
  else
    prof_i_insert_put_null(w->inserts.marks);
  prof_i_insert_put_text(w->inserts.marks, prof_i_text_from(kind));
  prof_i_sqlite_put_clean(w, w->inserts.marks, prof_i_text_from(text));
  prof_i_insert_row(w->inserts.marks);
  prof_free(text);
  return prof_i_sqlite_writer_status(w);
}

/* Changes of levels, and notes. */
static int put_marks(prof_i_export *run) {
  int status = PROF_OK;
  for (uint32_t i = 0; i < run->info.change_count && status == PROF_OK; i++) {
    prof_trace_change change = {.size = sizeof change};
    char *text;
    status = prof_trace_change_get(run->trace, i, &change);
    if (status == PROF_OK) status = prof_i_trace_change_text(run->trace, i, &text);
    if (status == PROF_OK) status = put_mark(run, "change", &change.at_ns, text);
  }
  for (uint32_t i = 0; i < run->info.note_count && status == PROF_OK; i++) {
    char *text;
    status = prof_i_trace_note_text(run->trace, i, &text);
    if (status == PROF_OK) status = put_mark(run, "note", NULL, text);
  }
  return status;
}

/* The first capture creates the tables. */
static int open_database(prof_i_export *run) {
  prof_i_sqlite_writer *const w = run->state;
  const int status = prof_i_sqlite_open(run->sink, &w->database);
  if (status != PROF_OK) return status;
  prof_i_sqlite_run(w->database, sqlite_tables);
#define PREPARE(name, columns, count) \
  w->inserts.name = prof_i_insert_begin(w->database, columns, count);
  PROF_I_SQLITE_INSERTS(PREPARE)
#undef PREPARE
  if (!w->shared) return PROF_OK;
  prof_i_sqlite_run(w->database, sqlite_captures_table);
  w->inserts.captures =
      prof_i_insert_begin(w->database,
                          "prof_captures (id, process, pid, process_name, rank, world_size, host,"
                          " start_ns, duration_ns, was_clean, event_count, lost_count)",
                          12);
  w->shared->database = w->database;
  w->shared->inserts = w->inserts;
  return PROF_OK;
}

/* Of a further capture. */
static void take_database(prof_i_sqlite_writer *w) {
  w->database = w->shared->database;
  w->inserts = w->shared->inserts;
  w->before = w->shared->counts;
  w->scope_id = w->before.scopes;
  w->kernel_id = w->before.kernels;
}

static int begin_texts(prof_i_export *run) {
  prof_i_sqlite_writer *const w = run->state;
  int status = prof_i_event_text_init(&w->texts, run, w->shared ? &w->shared->texts : NULL);
  if (status == PROF_OK) status = prof_i_work_links_init(&w->links, run->trace);
  if (status != PROF_OK) return status;
  w->site_count = prof_i_trace_site_count(run->trace);
  w->site_names = calloc((size_t)w->site_count + 1, sizeof *w->site_names);
  return w->site_names ? PROF_OK : prof_i_sqlite_fail_no_memory(run->sink->target.path);
}

int prof_i_sqlite_export_begin(prof_i_export *run) {
  prof_i_sqlite_writer *const w = run->state;
  const bool is_first = prof_i_export_is_first(run);
  int status = PROF_OK;
  w->shared = run->options->place ? run->options->place->shared : NULL;
  if (is_first)
    status = open_database(run);
  else
    take_database(w);
  if (status == PROF_OK) status = begin_texts(run);
  if (status != PROF_OK) return status;
  if (is_first) put_info(run);
  if (w->shared) {
    put_capture(run);
    prof_i_merged_texts_add_head(&w->shared->texts, &w->texts);
  } else {
    put_losses(w, run->info.lost_count);
    put_text(w, "chrome_head", prof_i_event_text_head(&w->texts));
  }
  return put_pools(run) ? prof_i_sqlite_writer_status(w)
                        : prof_i_sqlite_fail_no_memory(run->sink->target.path);
}

static void put_links(prof_i_sqlite_writer *w) {
  prof_i_work_links_thread(&w->links, UINT32_MAX);
  for (uint32_t i = 0; i < w->links.launches.count; i++) {
    if (!w->links.links[i].scope_id || !w->links.links[i].work_id) continue;
    prof_i_insert_put_u64(w->inserts.launches, w->links.links[i].work_id);
    prof_i_insert_put_u64(w->inserts.launches, w->links.links[i].scope_id);
    prof_i_insert_row(w->inserts.launches);
  }
}

/* The end of the file. */
static int finish_database(prof_i_export *run) {
  prof_i_sqlite_writer *const w = run->state;
  if (w->shared) put_sums(w, run->options->place->number + 1);
  const int status = prof_i_sqlite_writer_status(w);
  if (status != PROF_OK) return status;
  prof_i_sqlite_run(w->database, sqlite_views);
  if (w->shared) prof_i_sqlite_run(w->database, sqlite_captures_view);
  prof_i_sqlite *const database = w->database;
  w->database = NULL;
  if (w->shared) w->shared->database = NULL;
  return prof_i_sqlite_commit(database);
}

int prof_i_sqlite_export_end(prof_i_export *run) {
  prof_i_sqlite_writer *const w = run->state;
  put_links(w);
  const int status = put_marks(run);
  if (w->shared) {
    prof_i_merged_texts_add_tail(&w->shared->texts, &w->texts, &w->counts, run->findings);
    count_rows(run);
  } else {
    put_text(w, "chrome_tail", prof_i_event_text_tail(&w->texts, &w->counts, run->findings));
  }
  if (status != PROF_OK) return status;
  return prof_i_export_is_last(run) ? finish_database(run) : prof_i_sqlite_writer_status(w);
}

void prof_i_sqlite_export_destroy_shared(void *user) {
  prof_i_sqlite_shared *const shared = user;
  prof_i_sqlite_abandon(shared->database);
  prof_i_merged_texts_fini(&shared->texts);
}

void prof_i_sqlite_export_destroy(prof_i_export *run) {
  prof_i_sqlite_writer *const w = run->state;
  if (!w->shared) prof_i_sqlite_abandon(w->database);
  prof_i_event_text_fini(&w->texts);
  prof_i_work_links_fini(&w->links);
  prof_i_name_ids_fini(&w->name_ids);
  free(w->site_names);
  free(w->known_devices);
}
