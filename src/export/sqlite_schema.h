/* The schema of prof's own SQLite format. docs/reference/sqlite.md describes it. Tables have the
   prefix prof_, and views join them. Times are ns from the capture's start. */
#ifndef PROF_EXPORT_SQLITE_SCHEMA_H
#define PROF_EXPORT_SQLITE_SCHEMA_H

enum {
  PROF_I_SQLITE_VERSION = 1,
  /* In the column flags, beside the PROF_EVENT_* flags. */
  PROF_I_SQLITE_UNFINISHED = 256
};

static const char sqlite_tables[] =
    "CREATE TABLE prof_metadata (key TEXT NOT NULL PRIMARY KEY, value) WITHOUT ROWID;"
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

#endif
