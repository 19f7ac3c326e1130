/* Writes an SQLite database; see database.h. Gives SQLite a virtual file system (VFS) with one
   file, the sink's target. So SQLite creates no file, takes no lock, and raises no SIGXFSZ. */
#include "database.h"

#include <prof/status.h>

#include "../base/error.h"

int prof_i_sqlite_fail_no_memory(const char *path) {
  return prof_i_fail(PROF_E_NO_MEMORY, "no memory to write '%s'", path);
}

#ifdef PROF_HAVE_SQLITE

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/library.h"

#define SQLITE_FUNCTIONS(X) \
  X(vfs_find)               \
  X(vfs_register)           \
  X(vfs_unregister)         \
  X(open_v2)                \
  X(close_v2)               \
  X(exec)                   \
  X(errmsg)                 \
  X(errstr)                 \
  X(prepare_v2)             \
  X(finalize)               \
  X(step)                   \
  X(reset)                  \
  X(bind_int64)             \
  X(bind_double)            \
  X(bind_text)              \
  X(bind_null)

/* BATCH_ROWS: inserting several rows by one statement halves the time. In tables with AUTOINCREMENT
   it takes a third. */
enum { NAME_BYTES = 48, PATH_BYTES = 64, BATCH_ROWS = 32, SQL_BYTES = 2048 };

typedef enum value_type { VALUE_NULL, VALUE_INTEGER, VALUE_DOUBLE, VALUE_TEXT } value_type;

typedef struct row_value {
  value_type type;
  int text_bytes;
  union {
    int64_t integer;
    double real;
    uint64_t text_at; /* in the texts of the batch */
  };
} row_value;

struct prof_i_insert {
  prof_i_sqlite *database;
  const char *table;
  sqlite3_stmt *statement; /* of a whole batch */
  int columns;
  uint32_t value_count;
  row_value values[BATCH_ROWS * PROF_I_INSERT_COLUMNS];
  char *texts;
  uint32_t text_bytes, text_room;
};

struct prof_i_sqlite {
#define MEMBER(name) __typeof__ (&sqlite3_##name)(name);
  SQLITE_FUNCTIONS(MEMBER)
#undef MEMBER
  prof_i_target *target;
  sqlite3 *file;
  sqlite3_vfs vfs;
  bool is_registered;
  char vfs_name[NAME_BYTES];
  int status;
  prof_i_insert *inserts[PROF_I_INSERTS];
  int insert_count;
};

/* SQLite's open file. SQLite allocates it. */
typedef struct open_file {
  sqlite3_file base;
  prof_i_sqlite *database;
} open_file;

/* ---- failures ---- */

/* Stores the failure of a call of SQLite, unless the target has already stored its own. */
static void fail_code(prof_i_sqlite *d, int code) {
  if (d->status != PROF_OK || code == SQLITE_OK) return;
  const char *const text = d->file ? d->errmsg(d->file) : d->errstr(code);
  switch (code & 0xff) {
    case SQLITE_NOMEM:
      d->status = prof_i_sqlite_fail_no_memory(d->target->path);
      return;
    case SQLITE_TOOBIG:
      d->status = prof_i_fail(PROF_E_TOO_LARGE, "cannot write '%s': a text is too long for SQLite",
                              d->target->path);
      return;
    case SQLITE_FULL:
      d->status = prof_i_fail(PROF_E_TOO_LARGE, "cannot write '%s': it is too large for SQLite",
                              d->target->path);
      return;
    default:
      d->status = prof_i_fail(PROF_E_IO, "cannot write '%s': SQLite: %s", d->target->path, text);
  }
}

/* ---- batches of rows ---- */

/* Prepares the statement that inserts `rows` rows. NULL: it failed. */
static sqlite3_stmt *prepare_rows(const prof_i_insert *insert, uint32_t rows) {
  prof_i_sqlite *const d = insert->database;
  char sql[SQL_BYTES];
  sqlite3_stmt *statement = NULL;
  size_t used = (size_t)snprintf(sql, sizeof sql, "INSERT INTO %s VALUES ", insert->table);
  for (uint32_t row = 0; row < rows; row++)
    for (int i = 0; i < insert->columns; i++)
      used += (size_t)snprintf(sql + used, sizeof sql - used, "%s?%s",
                               i > 0     ? ","
                               : row > 0 ? ",("
                                         : "(",
                               i + 1 == insert->columns ? ")" : "");
  fail_code(d, d->prepare_v2(d->file, sql, -1, &statement, NULL));
  return statement;
}

static int bind_value(const prof_i_insert *insert, sqlite3_stmt *statement, uint32_t index) {
  const prof_i_sqlite *const d = insert->database;
  const row_value *const value = &insert->values[index];
  const int at = (int)index + 1;
  switch (value->type) {
    case VALUE_NULL:
      return d->bind_null(statement, at);
    case VALUE_INTEGER:
      return d->bind_int64(statement, at, value->integer);
    case VALUE_DOUBLE:
      return d->bind_double(statement, at, value->real);
    case VALUE_TEXT:
      return d->bind_text(statement, at, value->text_bytes ? insert->texts + value->text_at : "",
                          value->text_bytes, SQLITE_STATIC);
  }
  return SQLITE_MISUSE;
}

/* Inserts the rows of the batch. */
static void insert_flush(prof_i_insert *insert) {
  prof_i_sqlite *const d = insert->database;
  const uint32_t rows = insert->value_count / (uint32_t)insert->columns;
  if (rows == 0 || d->status != PROF_OK) return;
  const bool is_whole = rows == BATCH_ROWS;
  sqlite3_stmt *const statement = is_whole ? insert->statement : prepare_rows(insert, rows);
  int code = SQLITE_OK;
  if (!statement) return;
  for (uint32_t i = 0; i < insert->value_count && code == SQLITE_OK; i++)
    code = bind_value(insert, statement, i);
  if (code == SQLITE_OK) code = d->step(statement);
  if (code != SQLITE_DONE) fail_code(d, code);
  if (is_whole)
    d->reset(statement);
  else
    d->finalize(statement);
  insert->value_count = insert->text_bytes = 0;
}

/* ---- the file, as SQLite uses it ---- */

static prof_i_sqlite *database_of(sqlite3_file *file) { return ((open_file *)file)->database; }

static int file_close(sqlite3_file *file) {
  (void)file;
  return SQLITE_OK;
}

static int file_read(sqlite3_file *file, void *bytes, int count, sqlite3_int64 at) {
  prof_i_sqlite *const d = database_of(file);
  size_t done;
  const int status = prof_i_target_read_at(d->target, bytes, (size_t)count, (uint64_t)at, &done);
  if (status != PROF_OK && d->status == PROF_OK) d->status = status;
  if (status != PROF_OK) return SQLITE_IOERR_READ;
  memset((char *)bytes + done, 0, (size_t)count - done);
  return done == (size_t)count ? SQLITE_OK : SQLITE_IOERR_SHORT_READ;
}

static int file_write(sqlite3_file *file, const void *bytes, int count, sqlite3_int64 at) {
  prof_i_sqlite *const d = database_of(file);
  const int status = prof_i_target_write_at(d->target, bytes, (size_t)count, (uint64_t)at);
  if (status != PROF_OK && d->status == PROF_OK) d->status = status;
  return status == PROF_OK ? SQLITE_OK : SQLITE_IOERR_WRITE;
}

static int file_truncate(sqlite3_file *file, sqlite3_int64 bytes) {
  prof_i_sqlite *const d = database_of(file);
  const int status = prof_i_target_shorten(d->target, (uint64_t)bytes);
  if (status != PROF_OK && d->status == PROF_OK) d->status = status;
  return status == PROF_OK ? SQLITE_OK : SQLITE_IOERR_TRUNCATE;
}

static int file_sync(sqlite3_file *file, int flags) {
  (void)file;
  (void)flags;
  return SQLITE_OK;
}

static int file_size(sqlite3_file *file, sqlite3_int64 *bytes_out) {
  *bytes_out = (sqlite3_int64)database_of(file)->target->written_bytes;
  return SQLITE_OK;
}

static int file_lock(sqlite3_file *file, int level) {
  (void)file;
  (void)level;
  return SQLITE_OK;
}

static int file_is_reserved(sqlite3_file *file, int *is_reserved_out) {
  (void)file;
  *is_reserved_out = 0;
  return SQLITE_OK;
}

static int file_control(sqlite3_file *file, int request, void *argument) {
  (void)file;
  (void)request;
  (void)argument;
  return SQLITE_NOTFOUND;
}

static int file_sector_bytes(sqlite3_file *file) {
  (void)file;
  return 4096;
}

static int file_characteristics(sqlite3_file *file) {
  (void)file;
  return SQLITE_IOCAP_POWERSAFE_OVERWRITE;
}

static const sqlite3_io_methods file_methods = {.iVersion = 1,
                                                .xClose = file_close,
                                                .xRead = file_read,
                                                .xWrite = file_write,
                                                .xTruncate = file_truncate,
                                                .xSync = file_sync,
                                                .xFileSize = file_size,
                                                .xLock = file_lock,
                                                .xUnlock = file_lock,
                                                .xCheckReservedLock = file_is_reserved,
                                                .xFileControl = file_control,
                                                .xSectorSize = file_sector_bytes,
                                                .xDeviceCharacteristics = file_characteristics};

/* ---- the file system ---- */

/* Opens the database only: there are no journals, and temporary tables are in memory. */
static int vfs_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags,
                    int *flags_out) {
  (void)name;
  file->pMethods = NULL;
  if (!(flags & SQLITE_OPEN_MAIN_DB)) return SQLITE_CANTOPEN;
  ((open_file *)file)->database = vfs->pAppData;
  file->pMethods = &file_methods;
  if (flags_out) *flags_out = flags;
  return SQLITE_OK;
}

static int vfs_delete(sqlite3_vfs *vfs, const char *name, int must_sync) {
  (void)vfs;
  (void)name;
  (void)must_sync;
  return SQLITE_OK;
}

static int vfs_access(sqlite3_vfs *vfs, const char *name, int flags, int *is_there_out) {
  (void)vfs;
  (void)name;
  (void)flags;
  *is_there_out = 0;
  return SQLITE_OK;
}

static int vfs_full_path(sqlite3_vfs *vfs, const char *name, int room, char *to) {
  (void)vfs;
  snprintf(to, (size_t)room, "%s", name);
  return SQLITE_OK;
}

/* Registers the VFS. SQLite's default VFS provides random numbers and times. */
static int set_vfs(prof_i_sqlite *d) {
  const sqlite3_vfs *const own = d->vfs_find(NULL);
  if (!own)
    return prof_i_fail(PROF_E_UNSUPPORTED, "libsqlite3 has no file system, so it cannot write '%s'",
                       d->target->path);
  snprintf(d->vfs_name, sizeof d->vfs_name, "prof-%p", (void *)d);
  d->vfs = (sqlite3_vfs){.iVersion = 1,
                         .szOsFile = sizeof(open_file),
                         .mxPathname = PATH_BYTES,
                         .zName = d->vfs_name,
                         .pAppData = d,
                         .xOpen = vfs_open,
                         .xDelete = vfs_delete,
                         .xAccess = vfs_access,
                         .xFullPathname = vfs_full_path,
                         .xRandomness = own->xRandomness,
                         .xSleep = own->xSleep,
                         .xCurrentTime = own->xCurrentTime,
                         .xGetLastError = own->xGetLastError};
  const int code = d->vfs_register(&d->vfs, 0);
  if (code != SQLITE_OK) fail_code(d, code);
  d->is_registered = code == SQLITE_OK;
  return d->status;
}

/* ---- opening and closing ---- */

static int open_sqlite_library(prof_i_sqlite *d) {
  static const char name[] = "libsqlite3.so.0";
  prof_i_library_error why = {0};
  void *const library = prof_i_library_try(name, &why);
  if (!library)
    return prof_i_fail(PROF_E_UNSUPPORTED,
                       "SQLite, which writes '%s', cannot be opened: %s. Type: apt-get install "
                       "libsqlite3-0",
                       d->target->path, why.text);
#define FIND(function)                                                         \
  *(void **)&d->function = prof_i_library_find(library, "sqlite3_" #function); \
  if (!d->function)                                                            \
    return prof_i_fail(PROF_E_UNSUPPORTED,                                     \
                       "%s has no sqlite3_" #function                          \
                       ", so it cannot write "                                 \
                       "'%s'",                                                 \
                       name, d->target->path);
  SQLITE_FUNCTIONS(FIND)
#undef FIND
  return PROF_OK;
}

static void close_database(prof_i_sqlite *d) {
  for (int i = 0; i < d->insert_count; i++) {
    d->finalize(d->inserts[i]->statement);
    free(d->inserts[i]->texts);
    free(d->inserts[i]);
  }
  d->insert_count = 0;
  if (d->file) d->close_v2(d->file);
  d->file = NULL;
  if (d->is_registered) d->vfs_unregister(&d->vfs);
  d->is_registered = false;
}

int prof_i_sqlite_open(prof_i_sink *sink, prof_i_sqlite **database_out) {
  prof_i_target *target;
  int status = prof_i_sink_target(sink, &target);
  if (status != PROF_OK) return status;
  prof_i_sqlite *const d = calloc(1, sizeof *d);
  if (!d) return prof_i_sqlite_fail_no_memory(target->path);
  d->target = target;
  status = open_sqlite_library(d);
  if (status == PROF_OK) status = set_vfs(d);
  if (status == PROF_OK) {
    fail_code(d, d->open_v2("prof", &d->file,
                            SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
                            d->vfs_name));
    prof_i_sqlite_run(d,
                      "PRAGMA page_size = 16384; PRAGMA journal_mode = OFF; PRAGMA synchronous ="
                      " OFF; PRAGMA locking_mode = EXCLUSIVE; PRAGMA temp_store = MEMORY;"
                      " PRAGMA cache_size = -16384; BEGIN");
    status = d->status;
  }
  if (status == PROF_OK)
    *database_out = d;
  else
    prof_i_sqlite_abandon(d);
  return status;
}

void prof_i_sqlite_abandon(prof_i_sqlite *d) {
  if (!d) return;
  close_database(d);
  free(d);
}

int prof_i_sqlite_status(const prof_i_sqlite *d) { return d->status; }

/* ---- rows ---- */

void prof_i_sqlite_run(prof_i_sqlite *d, const char *sql) {
  for (int i = 0; i < d->insert_count; i++) insert_flush(d->inserts[i]);
  if (d->status == PROF_OK) fail_code(d, d->exec(d->file, sql, NULL, NULL, NULL));
}

static void fail_no_memory(prof_i_sqlite *d) { fail_code(d, SQLITE_NOMEM); }

prof_i_insert *prof_i_insert_begin(prof_i_sqlite *d, const char *table, int columns) {
  if (d->status != PROF_OK) return NULL;
  prof_i_insert *const insert = calloc(1, sizeof *insert);
  if (!insert) {
    fail_no_memory(d);
    return NULL;
  }
  insert->database = d;
  insert->table = table;
  insert->columns = columns;
  insert->statement = prepare_rows(insert, BATCH_ROWS);
  return d->inserts[d->insert_count++] = insert;
}

static void put_value(prof_i_insert *insert, row_value value) {
  if (insert && insert->database->status == PROF_OK) insert->values[insert->value_count++] = value;
}

void prof_i_insert_put(prof_i_insert *insert, int64_t value) {
  put_value(insert, (row_value){.type = VALUE_INTEGER, .integer = value});
}

void prof_i_insert_put_u64(prof_i_insert *insert, uint64_t value) {
  prof_i_insert_put(insert, (int64_t)value);
}

void prof_i_insert_put_double(prof_i_insert *insert, double value) {
  put_value(insert, (row_value){.type = VALUE_DOUBLE, .real = value});
}

static bool make_text_room(prof_i_insert *insert, uint32_t bytes) {
  enum { FIRST_BYTES = 4096 };
  uint32_t room = insert->text_room ? insert->text_room : FIRST_BYTES;
  if (bytes <= insert->text_room) return true;
  while (room < bytes) room *= 2;
  char *const larger = realloc(insert->texts, room);
  if (!larger) return false;
  insert->texts = larger;
  insert->text_room = room;
  return true;
}

void prof_i_insert_put_text(prof_i_insert *insert, prof_i_text text) {
  enum { TEXT_BYTES_MAX = 1 << 30 };
  if (!insert || insert->database->status != PROF_OK) return;
  if (text.bytes >= TEXT_BYTES_MAX - insert->text_bytes) {
    fail_code(insert->database, SQLITE_TOOBIG);
    return;
  }
  const uint32_t end = insert->text_bytes + (uint32_t)text.bytes;
  if (!make_text_room(insert, end)) {
    fail_no_memory(insert->database);
    return;
  }
  if (text.bytes) memcpy(insert->texts + insert->text_bytes, text.data, (size_t)text.bytes);
  put_value(insert,
            (row_value){
                .type = VALUE_TEXT, .text_bytes = (int)text.bytes, .text_at = insert->text_bytes});
  insert->text_bytes = end;
}

void prof_i_insert_put_null(prof_i_insert *insert) {
  put_value(insert, (row_value){.type = VALUE_NULL});
}

void prof_i_insert_row(prof_i_insert *insert) {
  if (insert && insert->value_count == (uint32_t)(BATCH_ROWS * insert->columns))
    insert_flush(insert);
}

int prof_i_sqlite_commit(prof_i_sqlite *d) {
  prof_i_sqlite_run(d, "COMMIT");
  const int status = d->status;
  prof_i_sqlite_abandon(d);
  return status;
}

#else

int prof_i_sqlite_open(prof_i_sink *sink, prof_i_sqlite **database_out) {
  (void)sink;
  (void)database_out;
  return prof_i_fail(PROF_E_UNSUPPORTED,
                     "this build of prof has no SQLite; build it with libsqlite3-dev");
}

/* Without SQLite no database is ever open. */
void prof_i_sqlite_run(prof_i_sqlite *d, const char *sql) {
  (void)d;
  (void)sql;
}
prof_i_insert *prof_i_insert_begin(prof_i_sqlite *d, const char *table, int columns) {
  (void)d;
  (void)table;
  (void)columns;
  return NULL;
}
void prof_i_insert_put(prof_i_insert *insert, int64_t value) {
  (void)insert;
  (void)value;
}
void prof_i_insert_put_u64(prof_i_insert *insert, uint64_t value) {
  (void)insert;
  (void)value;
}
void prof_i_insert_put_double(prof_i_insert *insert, double value) {
  (void)insert;
  (void)value;
}
void prof_i_insert_put_text(prof_i_insert *insert, prof_i_text text) {
  (void)insert;
  (void)text;
}
void prof_i_insert_put_null(prof_i_insert *insert) { (void)insert; }
void prof_i_insert_row(prof_i_insert *insert) { (void)insert; }
int prof_i_sqlite_status(const prof_i_sqlite *d) {
  (void)d;
  return PROF_E_UNSUPPORTED;
}
int prof_i_sqlite_commit(prof_i_sqlite *d) {
  (void)d;
  return PROF_E_UNSUPPORTED;
}
void prof_i_sqlite_abandon(prof_i_sqlite *d) { (void)d; }

#endif
