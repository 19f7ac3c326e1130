/* prof's own SQLite format: its schema, and what is before and after the rows of events. Opens the
   database, and writes its tables of facts. In a merged file the captures share the database, and
   the numbers of their rows continue. Called by sqlite.c. */
#include <stdlib.h>

#include "../base/error.h"
#include "../reader/capture.h"
#include "../reader/internal.h"
#include "sqlite_writer.h"

/* ---- schema ---- */

/* docs/reference/sqlite.md describes it. Tables have the prefix prof_, and views join them. Times
   are ns from the capture's start. */

static const char sqlite_tables[] =
    "CREATE TABLE prof_metadata (key TEXT NOT NULL PRIMARY KEY, value TEXT) WITHOUT ROWID;"
    "CREATE TABLE prof_losses (reason TEXT NOT NULL PRIMARY KEY, count INTEGER NOT NULL)"
    " WITHOUT ROWID;"
    "CREATE TABLE prof_marks (id INTEGER PRIMARY KEY, at_ns INTEGER, kind TEXT NOT NULL,"
    " text TEXT NOT NULL);"
    "CREATE TABLE prof_devices (id INTEGER PRIMARY KEY, type INTEGER NOT NULL,"
    " number INTEGER NOT NULL, name TEXT NOT NULL, row_pid INTEGER NOT NULL);"
    "CREATE TABLE prof_threads (id INTEGER PRIMARY KEY, pid INTEGER NOT NULL,"
    " tid INTEGER NOT NULL, name TEXT NOT NULL, device_id INTEGER REFERENCES prof_devices(id),"
    " row_pid INTEGER NOT NULL, row_tid INTEGER NOT NULL);"
    "CREATE TABLE prof_names (id INTEGER PRIMARY KEY, name TEXT NOT NULL,"
    " category TEXT NOT NULL, level INTEGER NOT NULL, file TEXT, line INTEGER, place TEXT);"
    "CREATE TABLE prof_scopes (id INTEGER PRIMARY KEY,"
    " thread_id INTEGER NOT NULL REFERENCES prof_threads(id),"
    " name_id INTEGER NOT NULL REFERENCES prof_names(id), start_ns INTEGER NOT NULL,"
    " duration_ns INTEGER NOT NULL, self_ns INTEGER NOT NULL, depth INTEGER NOT NULL,"
    " flags INTEGER NOT NULL, args TEXT);"
    "CREATE TABLE prof_kernels (id INTEGER PRIMARY KEY,"
    " thread_id INTEGER NOT NULL REFERENCES prof_threads(id),"
    " name_id INTEGER NOT NULL REFERENCES prof_names(id), start_ns INTEGER NOT NULL,"
    " duration_ns INTEGER NOT NULL, record INTEGER NOT NULL, flags INTEGER NOT NULL,"
    " launch_thread_id INTEGER REFERENCES prof_threads(id), launch_ns INTEGER NOT NULL,"
    " args TEXT);"
    "CREATE TABLE prof_launches (kernel_id INTEGER PRIMARY KEY REFERENCES prof_kernels(id),"
    " scope_id INTEGER NOT NULL REFERENCES prof_scopes(id));"
    "CREATE TABLE prof_steps (id INTEGER PRIMARY KEY,"
    " thread_id INTEGER NOT NULL REFERENCES prof_threads(id), number INTEGER NOT NULL,"
    " start_ns INTEGER NOT NULL, duration_ns INTEGER NOT NULL);"
    "CREATE TABLE prof_instants (id INTEGER PRIMARY KEY,"
    " thread_id INTEGER NOT NULL REFERENCES prof_threads(id),"
    " name_id INTEGER NOT NULL REFERENCES prof_names(id), at_ns INTEGER NOT NULL, args TEXT);"
    "CREATE TABLE prof_counters (id INTEGER PRIMARY KEY,"
    " thread_id INTEGER NOT NULL REFERENCES prof_threads(id),"
    " device_id INTEGER REFERENCES prof_devices(id),"
    " name_id INTEGER NOT NULL REFERENCES prof_names(id), at_ns INTEGER NOT NULL,"
    " value REAL NOT NULL);"
    "CREATE TABLE prof_arrow_ends (id INTEGER PRIMARY KEY,"
    " thread_id INTEGER NOT NULL REFERENCES prof_threads(id),"
    " name_id INTEGER NOT NULL REFERENCES prof_names(id), at_ns INTEGER NOT NULL,"
    " arrow INTEGER NOT NULL, is_end INTEGER NOT NULL);"
    "CREATE TABLE prof_pools (id INTEGER PRIMARY KEY, name TEXT NOT NULL,"
    " device_id INTEGER REFERENCES prof_devices(id), used_before_bytes INTEGER NOT NULL,"
    " allocated_before_bytes INTEGER NOT NULL);"
    "CREATE TABLE prof_memory (id INTEGER PRIMARY KEY,"
    " thread_id INTEGER NOT NULL REFERENCES prof_threads(id), pool_id INTEGER NOT NULL"
    " REFERENCES prof_pools(id), at_ns INTEGER NOT NULL, verb TEXT NOT NULL,"
    " address INTEGER NOT NULL, bytes INTEGER NOT NULL, requested_bytes INTEGER NOT NULL,"
    " used_bytes INTEGER NOT NULL, allocated_bytes INTEGER, tag TEXT);";

/* Of a merged file. */
static const char sqlite_captures_table[] =
    "CREATE TABLE prof_captures (id INTEGER PRIMARY KEY, process TEXT NOT NULL,"
    " pid INTEGER NOT NULL, process_name TEXT NOT NULL, rank INTEGER, world_size INTEGER NOT NULL,"
    " host TEXT NOT NULL, start_ns INTEGER NOT NULL, duration_ns INTEGER NOT NULL,"
    " was_clean INTEGER NOT NULL, event_count INTEGER NOT NULL, lost_count INTEGER NOT NULL);";
static const char sqlite_captures_view[] =
    "CREATE VIEW captures AS SELECT id, process, pid, process_name, rank, world_size, host,"
    " start_ns, start_ns + duration_ns AS end_ns, duration_ns, was_clean, event_count, lost_count"
    " FROM prof_captures;";

/* After the rows: to fill an index at its end is faster. */
static const char sqlite_views[] =
    "CREATE INDEX prof_launches_scope ON prof_launches (scope_id);"
    "CREATE VIEW metadata AS SELECT key, value FROM prof_metadata WHERE key NOT LIKE 'chrome_%';"
    "CREATE VIEW losses AS SELECT reason, count FROM prof_losses;"
    "CREATE VIEW marks AS SELECT at_ns, kind, text FROM prof_marks;"
    "CREATE VIEW scopes AS SELECT s.id, n.name, n.category, t.pid, t.tid, t.name AS thread,"
    " s.start_ns, s.start_ns + s.duration_ns AS end_ns, s.duration_ns, s.self_ns, s.depth,"
    " s.flags & 256 <> 0 AS is_unfinished, s.flags & 64 <> 0 AS is_async,"
    " s.flags & 128 <> 0 AS is_skipped, s.args, n.file, n.line FROM prof_scopes s"
    " JOIN prof_names n ON n.id = s.name_id JOIN prof_threads t ON t.id = s.thread_id;"
    "CREATE VIEW kernels AS SELECT k.id, n.name, n.category, d.name AS device, t.tid AS stream,"
    " k.start_ns, k.start_ns + k.duration_ns AS end_ns, k.duration_ns, k.record, k.launch_ns,"
    " l.scope_id AS launch_id, m.name AS launch, k.args FROM prof_kernels k"
    " JOIN prof_names n ON n.id = k.name_id JOIN prof_threads t ON t.id = k.thread_id"
    " LEFT JOIN prof_devices d ON d.id = t.device_id"
    " LEFT JOIN prof_launches l ON l.kernel_id = k.id"
    " LEFT JOIN prof_scopes s ON s.id = l.scope_id LEFT JOIN prof_names m ON m.id = s.name_id;"
    "CREATE VIEW steps AS SELECT s.id, s.number, t.pid, t.tid, s.start_ns,"
    " s.start_ns + s.duration_ns AS end_ns, s.duration_ns FROM prof_steps s"
    " JOIN prof_threads t ON t.id = s.thread_id;"
    "CREATE VIEW instants AS SELECT i.id, n.name, n.category, t.pid, t.tid, i.at_ns, i.args"
    " FROM prof_instants i JOIN prof_names n ON n.id = i.name_id"
    " JOIN prof_threads t ON t.id = i.thread_id;"
    "CREATE VIEW counters AS SELECT c.id, n.name, n.category, d.name AS device, t.pid, t.tid,"
    " c.at_ns, c.value FROM prof_counters c JOIN prof_names n ON n.id = c.name_id"
    " JOIN prof_threads t ON t.id = c.thread_id LEFT JOIN prof_devices d ON d.id = c.device_id;"
    "CREATE VIEW arrow_ends AS SELECT a.id, a.arrow, a.is_end, n.name, t.pid, t.tid, a.at_ns"
    " FROM prof_arrow_ends a JOIN prof_names n ON n.id = a.name_id"
    " JOIN prof_threads t ON t.id = a.thread_id;"
    "CREATE VIEW memory AS SELECT m.id, m.verb, p.name AS pool, d.name AS device, t.pid, t.tid,"
    " m.at_ns, m.address, m.bytes, m.requested_bytes, m.used_bytes, m.allocated_bytes, m.tag,"
    " m.pool_id"
    " FROM prof_memory m JOIN prof_pools p ON p.id = m.pool_id"
    " JOIN prof_threads t ON t.id = m.thread_id LEFT JOIN prof_devices d ON d.id = p.device_id;"
    "CREATE VIEW totals AS SELECT n.name, n.category, count(*) AS calls,"
    " sum(s.duration_ns) AS duration_ns, sum(s.self_ns) AS self_ns, min(s.duration_ns) AS min_ns,"
    " max(s.duration_ns) AS max_ns FROM prof_scopes s JOIN prof_names n ON n.id = s.name_id"
    " WHERE s.flags & 384 = 0 GROUP BY n.name, n.category;"
    "CREATE VIEW kernel_totals AS SELECT n.name, n.category, count(*) AS calls,"
    " sum(k.duration_ns) AS duration_ns, min(k.duration_ns) AS min_ns,"
    " max(k.duration_ns) AS max_ns FROM prof_kernels k JOIN prof_names n ON n.id = k.name_id"
    " GROUP BY n.name, n.category;";

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
