/* Kept results in an SQLite file: one table, a row a result, its samples as they are. Nothing is
   held open between two calls. All return a status, with its text in prof_last_error().
   The shared library opens libsqlite3 at the first use: loading it would cost every program more
   than loading prof does. The static library goes without. prof's files have an application id:
   another program's database is left alone. */
#define _GNU_SOURCE
#include "internal.h"

#include "../base/error.h"

#if defined(PROF_HAVE_SQLITE) && defined(PROF_OPEN_SQLITE)

#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <prof/version.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../base/port.h"

enum {
  APPLICATION_ID = 0x70726f66, /* "prof" */
  LAYOUT = 3,
  BUSY_MS = 2000,
  VISIT_MS = 4000,
  STEPS = 10000, /* of SQLite's between two readings of the time: some 0.1 ms */
  REQUEST_BYTES = 320,
  COUNT_MAX = 1 << 24 /* as measure.c's */
};

static const char create_table_sql[] =
    "CREATE TABLE IF NOT EXISTS prof_op_results ("
    "operator TEXT NOT NULL, device_type INTEGER NOT NULL, device_index INTEGER NOT NULL, driver "
    "TEXT NOT NULL, asked TEXT NOT "
    "NULL,"
    "prof_version TEXT NOT NULL, measured_unix_ns INTEGER NOT NULL, exec INTEGER NOT NULL, "
    "workspace_bytes INTEGER,"
    "timer_us REAL NOT NULL, slowdown REAL NOT NULL, is_time_over INTEGER NOT NULL, energy_uj "
    "REAL, samples_us BLOB NOT NULL,"
    "warmup INTEGER, workspace_source INTEGER, looks INTEGER, throttle INTEGER, clock_low_hz REAL, "
    "clock_high_hz REAL, "
    "PRIMARY KEY (operator, device_type, device_index, driver, asked))";
/* What each layout adds to the previous one. NULL: the value of the request, which was not stored.
   */
static const char *const added_columns_sql[LAYOUT] = {
    NULL, "ALTER TABLE prof_op_results ADD COLUMN warmup INTEGER",
    "ALTER TABLE prof_op_results ADD COLUMN workspace_source INTEGER; ALTER TABLE prof_op_results "
    "ADD COLUMN looks INTEGER;"
    "ALTER TABLE prof_op_results ADD COLUMN throttle INTEGER; ALTER TABLE prof_op_results ADD "
    "COLUMN clock_low_hz REAL;"
    "ALTER TABLE prof_op_results ADD COLUMN clock_high_hz REAL"};

/* ---- libsqlite3 ---- */

#define FUNCTIONS(X)  \
  X(open_v2)          \
  X(close_v2)         \
  X(busy_timeout)     \
  X(db_config)        \
  X(limit)            \
  X(progress_handler) \
  X(exec)             \
  X(errmsg)           \
  X(errstr)           \
  X(prepare_v2)       \
  X(finalize)         \
  X(step)             \
  X(bind_text)        \
  X(bind_int64)       \
  X(bind_double)      \
  X(bind_blob)        \
  X(bind_null)        \
  X(column_int64)     \
  X(column_double)    \
  X(column_type)      \
  X(column_blob)      \
  X(column_bytes)

typedef struct op_database {
  void *handle;
  const char *path;
#define MEMBER(name) __typeof__ (&sqlite3_##name)(name);
  FUNCTIONS(MEMBER)
#undef MEMBER
  sqlite3 *file;
  sqlite3_stmt *statement;
  uint64_t begun_ns;
} op_database;

static int open_sqlite(op_database *d) {
  static const char name[] = "libsqlite3.so.0";
  d->handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!d->handle)
    return prof_i_fail(
        PROF_E_UNSUPPORTED,
        "SQLite, which keeps results in a file, cannot be opened (Debian: libsqlite3-0): %s",
        dlerror());
#define FIND(name)                                         \
  *(void **)&d->name = dlsym(d->handle, "sqlite3_" #name); \
  if (!d->name) return prof_i_fail(PROF_E_UNSUPPORTED, "libsqlite3.so.0 has no sqlite3_" #name);
  FUNCTIONS(FIND)
#undef FIND
  return PROF_OK;
}

/* ---- what went wrong ---- */

/* A file that cannot be opened: SQLite does not say why. */
static int fail_not_opened(const char *path) {
  struct stat about;
  if (stat(path, &about) == 0 && S_ISDIR(about.st_mode))
    return prof_i_fail(PROF_E_FILE_TYPE, "%s is a directory; the cache is a file", path);
  if (errno == ENOENT || errno == ENOTDIR) {
    const char *const slash = strrchr(path, '/');
    char folder[4096];
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) : 0, path);
    if (slash && slash != path && stat(folder, &about) != 0)
      return prof_i_fail(PROF_E_NOT_FOUND, "%s: there is no folder %s", path, folder);
  }
  return prof_i_fail(PROF_E_PERMISSION, "%s: it may not be opened, or not be made", path);
}

static int status_of_sqlite(const op_database *d, int code) {
  const char *const text = d->file ? d->errmsg(d->file) : d->errstr(code);
  switch (code & 0xff) {
    case SQLITE_NOMEM:
      return prof_i_fail(PROF_E_NO_MEMORY, "%s: no memory", d->path);
    case SQLITE_FULL:
      return prof_i_fail(PROF_E_NO_SPACE, "%s: %s", d->path, text);
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return prof_i_fail(PROF_E_PERMISSION, "%s: %s", d->path, text);
    case SQLITE_CANTOPEN:
      return fail_not_opened(d->path);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return prof_i_fail(PROF_E_IO, "%s: another process has locked it for more than %d s", d->path,
                         BUSY_MS / 1000);
    case SQLITE_INTERRUPT:
      return prof_i_fail(PROF_E_IO,
                         "%s: damaged: it takes more than %d s; choose another, or remove it",
                         d->path, VISIT_MS / 1000);
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT:
      return prof_i_fail(PROF_E_IO,
                         "%s: no SQLite file, or damaged (%s); choose another, or remove it",
                         d->path, text);
    default:
      return prof_i_fail(PROF_E_IO, "%s: %s", d->path, text);
  }
}

/* ---- one visit ---- */

static int query_number(op_database *d, const char *question, int64_t *number_out) {
  int code = d->prepare_v2(d->file, question, -1, &d->statement, NULL);
  if (code == SQLITE_OK && (code = d->step(d->statement)) == SQLITE_ROW) {
    *number_out = d->column_int64(d->statement, 0);
    code = SQLITE_OK;
  }
  d->finalize(d->statement);
  d->statement = NULL;
  return code == SQLITE_OK ? PROF_OK : status_of_sqlite(d, code);
}

/* Views, triggers and virtual tables (which have no root page) would run arbitrary code. */
static const char foreign_schema_sql[] =
    "SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE type NOT IN ('table', 'index') OR "
    "coalesce(rootpage, 0) = 0)";
static const char table_exists_sql[] =
    "SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'prof_op_results')";

static int check_schema(op_database *d) {
  int64_t more = 0, table = 0;
  int status = query_number(d, foreign_schema_sql, &more);
  if (!status) status = query_number(d, table_exists_sql, &table);
  if (status || (!more && table)) return status;
  return prof_i_fail(PROF_E_IO, "%s: damaged: %s; choose another, or remove it", d->path,
                     more ? "there is more in it than tables" : "it has no table of results");
}

typedef struct file_claims {
  int64_t application, layout, tables;
} file_claims;

static int read_claims(op_database *d, file_claims *out) {
  int status = query_number(d, "PRAGMA application_id", &out->application);
  if (!status) status = query_number(d, "PRAGMA user_version", &out->layout);
  if (!status)
    status = query_number(d, "SELECT EXISTS (SELECT 1 FROM sqlite_master)", &out->tables);
  if (status || out->application != APPLICATION_ID) return status;
  if (out->layout <= LAYOUT) return check_schema(d);
  return prof_i_fail(PROF_E_VERSION,
                     "%s: a newer prof's cache (layout %" PRId64 ", this one has %d)", d->path,
                     out->layout, LAYOUT);
}

static bool is_our_file(const file_claims *found) {
  return found->application == APPLICATION_ID && found->layout == LAYOUT;
}

static int execute_sql(op_database *d, const char *text) {
  const int code = d->exec(d->file, text, NULL, NULL, NULL);
  return code == SQLITE_OK ? PROF_OK : status_of_sqlite(d, code);
}

static int add_columns(op_database *d, int64_t from_layout) {
  int status = PROF_OK;
  for (int64_t layout = from_layout < 1 ? 1 : from_layout; layout < LAYOUT && !status; layout++)
    status = execute_sql(d, added_columns_sql[layout]);
  return status;
}

/* Ours, or empty, or of a layout before: then it becomes ours, in one step, since another process
   may be doing the same. */
static int claim_file(op_database *d) {
  char make_ours[96];
  file_claims found = {0, 0, 0};
  int status = read_claims(d, &found);
  if (status || is_our_file(&found)) return status;
  status = execute_sql(d, "BEGIN IMMEDIATE");
  if (!status) status = read_claims(d, &found);
  if (!status && is_our_file(&found)) return execute_sql(d, "COMMIT");
  if (status) return status;
  const bool is_older = found.application == APPLICATION_ID;
  if (!is_older && (found.application || found.tables))
    return prof_i_fail(PROF_E_IO, "%s: another program's database; choose another file", d->path);
  snprintf(make_ours, sizeof make_ours, "PRAGMA application_id = %d; PRAGMA user_version = %d",
           APPLICATION_ID, LAYOUT);
  status = is_older ? add_columns(d, found.layout) : execute_sql(d, create_table_sql);
  if (!status) status = execute_sql(d, make_ours);
  return status ? status : execute_sql(d, "COMMIT");
}

static void close_database(op_database *d) {
  if (d->statement) d->finalize(d->statement);
  if (d->file) d->close_v2(d->file);
  if (d->handle) dlclose(d->handle);
}

static int is_visit_too_long(void *user) {
  const op_database *const d = user;
  return prof_i_ns_since(d->begun_ns) > VISIT_MS * 1000000ull;
}

/* As SQLite's authors advise for untrusted files: nothing of the schema runs, damage is found
   early, and no statement runs for ever. A libsqlite3 without one of these settings goes without
   it. */
static int harden_connection(op_database *d) {
  enum { BLOB_MAX = COUNT_MAX * 8 + (1 << 20) };
  (void)d->db_config(d->file, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
  (void)d->db_config(d->file, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
  (void)d->db_config(d->file, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
  (void)d->db_config(d->file, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
  (void)d->limit(d->file, SQLITE_LIMIT_LENGTH, BLOB_MAX);
  d->progress_handler(d->file, STEPS, is_visit_too_long, d);
  return execute_sql(d, "PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0");
}

static int open_database(op_database *d, const char *path) {
  *d = (op_database){.path = path, .begun_ns = prof_i_port_monotonic_ns()};
  int status = open_sqlite(d);
  if (status) return status;
  /* prof_i_fail() returns no PROF_OK, so open_sqlite() has set it. */
  /* NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage) */
  const int code = d->open_v2(
      path, &d->file, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX, NULL);
  if (code != SQLITE_OK) return status_of_sqlite(d, code);
  d->busy_timeout(d->file, BUSY_MS);
  status = harden_connection(d);
  return status ? status : claim_file(d);
}

/* The request without key and device, as a text: a different request is another result. */
static void format_request(const prof_i_op_identity *identity, char *to) {
  /* an earlier prof did not distinguish the two */
  const bool is_cold_device =
      identity->caches == PROF_OP_COLD && identity->device.type != PROF_DEVICE_CPU;
  snprintf(
      to, REQUEST_BYTES,
      "warmup %" PRId32 ", exec %" PRId32 ", repeat %" PRId32 ", all %" PRIu32 ", caches %" PRIu32
      ", least_ns %" PRIu64 ", limit_ns %" PRIu64 ", precision %.17g, timer %s%s%s%s",
      identity->warmup, identity->exec, identity->repeat, identity->repeat_all, identity->caches,
      identity->least_ns, identity->time_limit_ns, identity->precision, identity->timer,
      identity->vendor_memory ? ", vendor's memory" : "", identity->open_meters ? ", meters" : "",
      identity->is_device_warm ? ", device warm"
      : is_cold_device         ? ", device cold"
                               : "");
}

/* Binds what a row is found by, as parameters 1 to 5. */
static int bind_identity(op_database *d, const prof_i_op_identity *identity, const char *key,
                         const char *asked) {
  int code = d->bind_text(d->statement, 1, key, -1, SQLITE_STATIC);
  if (code == SQLITE_OK) code = d->bind_int64(d->statement, 2, identity->device.type);
  if (code == SQLITE_OK) code = d->bind_int64(d->statement, 3, identity->device.index);
  if (code == SQLITE_OK) code = d->bind_text(d->statement, 4, identity->driver, -1, SQLITE_STATIC);
  if (code == SQLITE_OK) code = d->bind_text(d->statement, 5, asked, -1, SQLITE_STATIC);
  return code;
}

/* True if it would have been measured in the same way for this request. Otherwise the caller would
   get more or fewer samples than requested. */
static bool do_facts_fit(const prof_i_op_identity *asked, const prof_i_facts *found) {
  const bool is_all = found->count == (size_t)asked->repeat;
  if (found->count > (size_t)asked->repeat) return false;
  if (asked->exec ? found->exec != asked->exec : found->exec > COUNT_MAX) return false;
  if (found->warmup < (asked->warmup > 0) || found->warmup > asked->warmup) return false;
  if (found->is_time_over) return asked->time_limit_ns != UINT64_MAX;
  return is_all || !asked->repeat_all;
}

static bool is_clock_rate(double hz) { return hz >= 0 && hz < 1e15; }

/* What came with the third layout. False: it cannot be. */
static bool read_optional_facts(op_database *d, prof_i_facts *facts) {
  const int64_t source = d->column_int64(d->statement, 8), looks = d->column_int64(d->statement, 9),
                throttle = d->column_int64(d->statement, 10);
  facts->workspace_source = (uint32_t)source;
  facts->looks = (prof_i_throttle_samples){(uint32_t)looks, (uint32_t)throttle,
                                           d->column_double(d->statement, 11),
                                           d->column_double(d->statement, 12)};
  return source >= 0 && source <= PROF_OP_WORKSPACE_VENDOR && looks >= 0 && looks <= UINT32_MAX &&
         throttle >= 0 && throttle <= UINT32_MAX && is_clock_rate(facts->looks.clock_low_hz) &&
         is_clock_rate(facts->looks.clock_high_hz);
}

/* A row is bytes from a file: nothing in it is trusted. */
static int read_row(op_database *d, const prof_i_op_identity *identity, const char *key,
                    prof_op_result **result_out) {
  const void *const samples = d->column_blob(d->statement, 6);
  const int bytes = d->column_bytes(d->statement, 6);
  const int64_t exec = d->column_int64(d->statement, 0), warmup = d->column_int64(d->statement, 7);
  const bool has_warmup = d->column_type(d->statement, 7) != SQLITE_NULL;
  prof_i_facts facts = {.count = (size_t)bytes / sizeof(double),
                        .exec = (int32_t)exec,
                        .warmup = has_warmup ? (int32_t)warmup : identity->warmup,
                        .workspace_bytes = (uint64_t)d->column_int64(d->statement, 1),
                        .has_workspace = d->column_type(d->statement, 1) != SQLITE_NULL,
                        .timer_us = d->column_double(d->statement, 2),
                        .slowdown = d->column_double(d->statement, 3),
                        .is_time_over = d->column_int64(d->statement, 4) != 0,
                        .has_energy = d->column_type(d->statement, 5) != SQLITE_NULL,
                        .energy_uj = d->column_double(d->statement, 5)};
  bool is_sound = samples && facts.count > 0 && (size_t)bytes % sizeof(double) == 0 && exec > 0 &&
                  exec <= INT32_MAX && warmup >= 0 && warmup <= INT32_MAX &&
                  prof_i_is_time(facts.timer_us) && prof_i_is_time(facts.energy_uj) &&
                  facts.slowdown >= 1 && facts.slowdown < 1e6 && read_optional_facts(d, &facts);
  if (is_sound && !do_facts_fit(identity, &facts))
    return prof_i_fail(PROF_E_IO,
                       "%s: the row of '%s' is damaged: %zu samples of %" PRId64
                       " runs are not what was asked for",
                       d->path, key, facts.count, exec);
  double *const copy = is_sound ? malloc((size_t)bytes) : NULL;
  if (is_sound && !copy)
    return prof_i_fail(PROF_E_NO_MEMORY, "no memory for %zu samples", facts.count);
  if (copy) memcpy(copy, samples, (size_t)bytes);
  for (size_t i = 0; i < facts.count && is_sound; i++) is_sound = prof_i_is_time(copy[i]);
  facts.samples = copy;
  if (is_sound) *result_out = prof_i_result_create(identity, key, &facts);
  free(copy);
  if (!is_sound) return prof_i_fail(PROF_E_IO, "%s: the row of '%s' is damaged", d->path, key);
  return *result_out ? PROF_OK
                     : prof_i_fail(PROF_E_NO_MEMORY, "no memory for %zu samples", facts.count);
}

static int find_row(op_database *d, const prof_i_op_identity *identity, const char *key,
                    prof_op_result **result_out) {
  static const char question[] =
      "SELECT exec, workspace_bytes, timer_us, slowdown, is_time_over, energy_uj, samples_us, "
      "warmup, "
      "workspace_source, looks, throttle, clock_low_hz, clock_high_hz FROM prof_op_results "
      "WHERE operator = ? AND device_type = ? AND device_index = ? AND driver = ? AND asked = ?";
  char asked[REQUEST_BYTES];
  format_request(identity, asked);
  int code = d->prepare_v2(d->file, question, -1, &d->statement, NULL);
  if (code == SQLITE_OK) code = bind_identity(d, identity, key, asked);
  if (code == SQLITE_OK) code = d->step(d->statement);
  if (code == SQLITE_ROW) return read_row(d, identity, key, result_out);
  return code == SQLITE_DONE ? PROF_OK : status_of_sqlite(d, code);
}

static int bind_optional_facts(op_database *d, const prof_op_info *info) {
  int code = d->bind_int64(d->statement, 16, info->workspace_source);
  if (code == SQLITE_OK) code = d->bind_int64(d->statement, 17, info->looks);
  if (code == SQLITE_OK) code = d->bind_int64(d->statement, 18, info->throttle);
  if (code == SQLITE_OK) code = d->bind_double(d->statement, 19, info->clock_low_hz);
  if (code == SQLITE_OK) code = d->bind_double(d->statement, 20, info->clock_high_hz);
  return code;
}

static int store_row(op_database *d, const prof_op_result *result) {
  static const char insert[] =
      "INSERT OR REPLACE INTO prof_op_results (operator, device_type, device_index, driver, asked, "
      "prof_version, "
      "measured_unix_ns, exec, workspace_bytes, timer_us, "
      "slowdown, is_time_over, energy_uj, samples_us, warmup, workspace_source, looks, throttle, "
      "clock_low_hz, clock_high_hz) "
      "VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)";
  const prof_op_info *const info = &result->info;
  char asked[REQUEST_BYTES];
  format_request(&result->identity, asked);
  int code = d->prepare_v2(d->file, insert, -1, &d->statement, NULL);
  if (code == SQLITE_OK) code = bind_identity(d, &result->identity, result->key, asked);
  if (code == SQLITE_OK)
    code = d->bind_text(d->statement, 6, PROF_VERSION_STRING, -1, SQLITE_STATIC);
  if (code == SQLITE_OK) code = d->bind_int64(d->statement, 7, (int64_t)prof_i_port_realtime_ns());
  if (code == SQLITE_OK) code = d->bind_int64(d->statement, 8, info->exec);
  if (code == SQLITE_OK)
    code = info->has_workspace ? d->bind_int64(d->statement, 9, (int64_t)info->workspace_bytes)
                               : d->bind_null(d->statement, 9);
  if (code == SQLITE_OK) code = d->bind_double(d->statement, 10, info->timer_us);
  if (code == SQLITE_OK) code = d->bind_double(d->statement, 11, info->slowdown);
  if (code == SQLITE_OK)
    code = d->bind_int64(d->statement, 12, (info->doubts & PROF_OP_TIME_OVER) != 0);
  if (code == SQLITE_OK)
    code = info->has_energy ? d->bind_double(d->statement, 13, info->energy_uj)
                            : d->bind_null(d->statement, 13);
  if (code == SQLITE_OK)
    code = d->bind_blob(d->statement, 14, result->samples, (int)(result->count * sizeof(double)),
                        SQLITE_STATIC);
  if (code == SQLITE_OK) code = d->bind_int64(d->statement, 15, info->warmup);
  if (code == SQLITE_OK) code = bind_optional_facts(d, info);
  if (code == SQLITE_OK) code = d->step(d->statement);
  return code == SQLITE_DONE ? PROF_OK : status_of_sqlite(d, code);
}

/* "DELETE FROM" or "SELECT count(*) FROM", of one device or of all. With a condition for all, too:
   without one SQLite goes over the pages in one step, which nothing ends. */
static int query_of_device(op_database *d, const char *what, const prof_device *device,
                           int64_t *number_out) {
  char text[160];
  snprintf(text, sizeof text,
           "%s prof_op_results WHERE ?1 IS NULL OR (device_type = ?1 AND device_index = ?2)", what);
  int code = d->prepare_v2(d->file, text, -1, &d->statement, NULL);
  if (code == SQLITE_OK && device) code = d->bind_int64(d->statement, 1, device->type);
  if (code == SQLITE_OK && device) code = d->bind_int64(d->statement, 2, device->index);
  if (code == SQLITE_OK) code = d->step(d->statement);
  if (code == SQLITE_ROW) *number_out = d->column_int64(d->statement, 0);
  return code == SQLITE_ROW || code == SQLITE_DONE ? PROF_OK : status_of_sqlite(d, code);
}

int prof_i_database_check(const char *path) {
  op_database d;
  const int status = open_database(&d, path);
  close_database(&d);
  return status;
}

int prof_i_database_find(const char *path, const prof_i_op_identity *identity, const char *key,
                         prof_op_result **result_out) {
  PROF_I_DEFAULT_FP;
  op_database d;
  int status = open_database(&d, path);
  *result_out = NULL;
  if (!status) status = find_row(&d, identity, key, result_out);
  close_database(&d);
  return status;
}

int prof_i_database_store(const char *path, const prof_op_result *result) {
  PROF_I_DEFAULT_FP;
  op_database d;
  int status = open_database(&d, path);
  if (!status) status = store_row(&d, result);
  close_database(&d);
  return status;
}

int prof_i_database_delete(const char *path, const prof_device *device) {
  op_database d;
  int64_t none = 0;
  int status = open_database(&d, path);
  if (!status) status = query_of_device(&d, "DELETE FROM", device, &none);
  close_database(&d);
  return status;
}

int prof_i_database_count(const char *path, const prof_device *device, size_t *count_out) {
  op_database d;
  int64_t count = 0;
  int status = open_database(&d, path);
  if (!status) status = query_of_device(&d, "SELECT count(*) FROM", device, &count);
  close_database(&d);
  *count_out = count > 0 ? (size_t)count : 0;
  return status;
}

#else

static int fail_without_sqlite(void) {
#ifdef PROF_HAVE_SQLITE
  return prof_i_fail(PROF_E_UNSUPPORTED,
                     "the static library keeps no results in a file: SQLite would have to be "
                     "linked to every program; link the shared one");
#else
  return prof_i_fail(
      PROF_E_UNSUPPORTED,
      "built without SQLite (Debian: libsqlite3-dev), so no results are kept in a file");
#endif
}

int prof_i_database_check(const char *path) {
  (void)path;
  return fail_without_sqlite();
}
int prof_i_database_find(const char *path, const prof_i_op_identity *identity, const char *key,
                         prof_op_result **result_out) {
  (void)path, (void)identity, (void)key;
  *result_out = NULL;
  return fail_without_sqlite();
}
int prof_i_database_store(const char *path, const prof_op_result *result) {
  (void)path, (void)result;
  return fail_without_sqlite();
}
int prof_i_database_delete(const char *path, const prof_device *device) {
  (void)path, (void)device;
  return fail_without_sqlite();
}
int prof_i_database_count(const char *path, const prof_device *device, size_t *count_out) {
  (void)path, (void)device;
  *count_out = 0;
  return fail_without_sqlite();
}

#endif
