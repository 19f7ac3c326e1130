/* See database.h. */
#define _GNU_SOURCE
#include "database.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* Keeps the first reason. */
__attribute__((format(printf, 2, 3))) static void refuse_database(import_result *result,
                                                                  const char *format, ...) {
  va_list arguments;
  if (result->end == IMPORT_REFUSED) return;
  va_start(arguments, format);
  vsnprintf(result->error, sizeof result->error, format, arguments);
  va_end(arguments);
  result->end = IMPORT_REFUSED;
}

#ifdef PROF_HAVE_SQLITE

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../src/reader/internal.h"

enum {
  BUSY_MS = 2000,
  HEADER_BYTES = 100,
  PATH_BYTES = 4096,
  COPY_BYTES = 1 << 20,
  WRITE_AHEAD = 2, /* in the header: changes go to a second file, NAME-wal */
  QUERY_BYTES = 512
};

#define SQLITE_FUNCTIONS(X) \
  X(open_v2)                \
  X(close_v2)               \
  X(busy_timeout)           \
  X(db_config)              \
  X(exec)                   \
  X(errmsg)                 \
  X(errstr)                 \
  X(extended_errcode)       \
  X(prepare_v2)             \
  X(finalize)               \
  X(step)                   \
  X(bind_text)              \
  X(column_int64)           \
  X(column_double)          \
  X(column_type)            \
  X(column_text)            \
  X(column_bytes)           \
  X(db_status)

struct import_database {
  import_result *result;
  void *handle;
#define SQLITE_MEMBER(name) __typeof__ (&sqlite3_##name)(name);
  SQLITE_FUNCTIONS(SQLITE_MEMBER)
#undef SQLITE_MEMBER
  sqlite3 *file;
  uint64_t page_bytes, file_bytes;
  uint64_t row_count;
  uint64_t counted_bytes; /* told to prof_i_progress_add(), without the weight */
};

/* ---- libsqlite3 ---- */

static bool open_library(import_database *d) {
  static const char name[] = "libsqlite3.so.0";
  d->handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!d->handle)
    refuse_database(d->result,
                    "is an SQLite database, and SQLite cannot be opened: %s. Type: apt-get install "
                    "libsqlite3-0",
                    dlerror());
#define SQLITE_FIND(function)                                                     \
  if (d->handle) *(void **)&d->function = dlsym(d->handle, "sqlite3_" #function); \
  if (d->handle && !d->function)                                                  \
    refuse_database(d->result, "is an SQLite database, and %s has no sqlite3_" #function, name);
  SQLITE_FUNCTIONS(SQLITE_FIND)
#undef SQLITE_FIND
  return d->result->end != IMPORT_REFUSED;
}

static void refuse_code(import_database *d, int code) {
  const char *const text = d->file ? d->errmsg(d->file) : d->errstr(code);
  const int extended = d->file ? d->extended_errcode(d->file) : code;
  switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      refuse_database(d->result, "is locked by another program for more than %d s", BUSY_MS / 1000);
      return;
    case SQLITE_READONLY:
      if (extended == SQLITE_READONLY_ROLLBACK) {
        refuse_database(
            d->result,
            "has a journal beside it: its writer was stopped in the middle. Open it once "
            "with sqlite3, which puts it right, and import it then");
        return;
      }
      break;
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT:
      refuse_database(d->result, "is a damaged SQLite database: %s", text);
      return;
    case SQLITE_NOMEM:
      import_fail("no memory to read the database");
    default:
      break;
  }
  refuse_database(d->result, "cannot be read as an SQLite database: %s", text);
}

/* ---- a copy, if a second file has changes ---- */

/* The path of the copy, which remove_copy() deletes. "": there is none. */
static char copied_path[PATH_BYTES];

static void remove_copy(void) {
  static const char *const endings[] = {"", "-wal", "-shm", "-journal"};
  char path[PATH_BYTES + 16];
  if (!copied_path[0]) return;
  for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
    snprintf(path, sizeof path, "%s%s", copied_path, endings[i]);
    unlink(path);
  }
  *strrchr(copied_path, '/') = '\0';
  rmdir(copied_path);
  copied_path[0] = '\0';
}

static void copy_file(const char *from, const char *to) {
  char *const bytes = import_make(COPY_BYTES);
  const int in = open(from, O_RDONLY | O_CLOEXEC);
  const int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (in < 0) import_fail("cannot open '%s': %s", from, strerror(errno));
  if (out < 0) import_fail("cannot write '%s': %s", to, strerror(errno));
  for (;;) {
    const ssize_t count = read(in, bytes, COPY_BYTES);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) import_fail("cannot read '%s': %s", from, strerror(errno));
    if (count == 0) break;
    for (ssize_t at = 0; at < count;) {
      const ssize_t written = write(out, bytes + at, (size_t)(count - at));
      if (written < 0 && errno != EINTR) import_fail("cannot write '%s': %s", to, strerror(errno));
      if (written > 0) at += written;
    }
  }
  close(in);
  if (close(out) != 0) import_fail("cannot write '%s': %s", to, strerror(errno));
  free(bytes);
}

static bool file_is_changed(const struct stat *before, const char *path) {
  struct stat now;
  return stat(path, &now) != 0 || now.st_size != before->st_size ||
         now.st_mtim.tv_sec != before->st_mtim.tv_sec ||
         now.st_mtim.tv_nsec != before->st_mtim.tv_nsec;
}

/* To read a -wal file, SQLite writes another file beside it. So it gets copies of both. */
static bool copy_with_log(import_database *d, const char *path, const char *wal,
                          const char *folder) {
  struct stat file_before, wal_before;
  char to[PATH_BYTES + 16];
  if (stat(path, &file_before) != 0 || stat(wal, &wal_before) != 0)
    import_fail("cannot open '%s': %s", path, strerror(errno));
  const int bytes = snprintf(to, PATH_BYTES, "%s/.prof-import-XXXXXX", folder);
  if (bytes + 16 >= PATH_BYTES) import_fail("cannot write in '%s': its path is too long", folder);
  if (!mkdtemp(to)) import_fail("cannot write in '%s': %s", folder, strerror(errno));
  if (snprintf(copied_path, sizeof copied_path, "%s/copy", to) >= (int)sizeof copied_path)
    import_fail("cannot write in '%s': its path is too long", folder);
  atexit(remove_copy);
  copy_file(path, copied_path);
  snprintf(to, sizeof to, "%s-wal", copied_path);
  copy_file(wal, to);
  if (file_is_changed(&file_before, path) || file_is_changed(&wal_before, wal))
    refuse_database(d->result,
                    "is being written by another program; import it when that has ended");
  return d->result->end != IMPORT_REFUSED;
}

/* ---- progress ---- */

static void add_progress(import_database *d, uint64_t read_bytes) {
  const uint64_t all = read_bytes < d->file_bytes ? read_bytes : d->file_bytes;
  if (all <= d->counted_bytes) return;
  prof_i_progress_add((all - d->counted_bytes) * PROF_I_PROGRESS_IMPORT_WEIGHT);
  d->counted_bytes = all;
}

static uint64_t pages_read(import_database *d, bool resets) {
  int count = 0, unused;
  const int code = d->db_status(d->file, SQLITE_DBSTATUS_CACHE_MISS, &count, &unused, resets);
  return code == SQLITE_OK && count > 0 ? (uint64_t)count : 0;
}

/* A page may be read again, so the end may come early. A file that fits into SQLite's cache is
   counted at the end. */
static void show_row(import_database *d) {
  enum { ROWS = 256 };
  if (++d->row_count % ROWS == 0) add_progress(d, pages_read(d, false) * d->page_bytes);
}

/* ---- opening ---- */

static uint64_t big_endian(const unsigned char *bytes, size_t count) {
  uint64_t value = 0;
  for (size_t i = 0; i < count; i++) value = value << 8 | bytes[i];
  return value;
}

/* Reads the header. */
static bool read_database_header(import_database *d, const char *path, bool *is_write_ahead_out) {
  unsigned char header[HEADER_BYTES] = {0};
  struct stat about;
  if (stat(path, &about) == 0 && !S_ISREG(about.st_mode)) { /* a pipe cannot be opened twice */
    refuse_database(d->result, "is an SQLite database, and has to be a file");
    return false;
  }
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0 || fstat(fd, &about) != 0) import_fail("cannot open '%s': %s", path, strerror(errno));
  const ssize_t count = pread(fd, header, sizeof header, 0);
  close(fd);
  const uint64_t stored = big_endian(header + 16, 2), pages = big_endian(header + 28, 4);
  const uint64_t page_bytes = stored == 1 ? 65536 : stored;
  const unsigned long long wanted = pages * page_bytes;
  /* Writers from before 2010 do not maintain the count. */
  const bool is_counted = big_endian(header + 24, 4) == big_endian(header + 92, 4);
  if (count < HEADER_BYTES)
    refuse_database(d->result, "is an SQLite database that is cut off behind %lld bytes",
                    (long long)about.st_size);
  else if (is_counted && wanted > (uint64_t)about.st_size)
    refuse_database(d->result,
                    "is an SQLite database that is cut off: it should have %llu bytes, not %lld",
                    wanted, (long long)about.st_size);
  d->page_bytes = page_bytes;
  d->file_bytes = (uint64_t)about.st_size;
  *is_write_ahead_out = header[18] == WRITE_AHEAD || header[19] == WRITE_AHEAD;
  return d->result->end != IMPORT_REFUSED;
}

/* Writes the path as a URI of SQLite's. */
static void put_uri(char *to, size_t room, const char *path, const char *options) {
  static const char digits[] = "0123456789abcdef";
  size_t used = (size_t)snprintf(to, room, "file:");
  for (; *path && used + 64 < room; path++) {
    const unsigned char c = (unsigned char)*path;
    const bool is_plain = c > ' ' && c < 127 && !strchr("%?#", *path);
    if (is_plain) {
      to[used++] = *path;
      continue;
    }
    to[used++] = '%';
    to[used++] = digits[c >> 4];
    to[used++] = digits[c & 15];
  }
  snprintf(to + used, room - used, "?%s", options);
}

/* The settings that SQLite's authors advise for untrusted files. A libsqlite3 that does not know a
   setting is used without it. */
static void set_safe_options(import_database *d) {
  (void)d->db_config(d->file, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
  (void)d->db_config(d->file, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
  (void)d->db_config(d->file, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
  (void)d->db_config(d->file, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
  (void)d->exec(d->file, "PRAGMA cell_size_check = ON; PRAGMA ignore_check_constraints = ON", NULL,
                NULL, NULL);
  d->busy_timeout(d->file, BUSY_MS);
}

static bool open_file(import_database *d, const char *path, const char *options, int flags) {
  char uri[3 * PATH_BYTES + 128];
  put_uri(uri, sizeof uri, path, options);
  const int code = d->open_v2(uri, &d->file, flags | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX, NULL);
  if (code != SQLITE_OK) refuse_code(d, code);
  return code == SQLITE_OK;
}

/* Refuses virtual tables, which run code. They have no root page. */
static bool check_schema(import_database *d) {
  static const char has_virtual[] =
      "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND coalesce(rootpage, 0) = 0";
  int code = d->exec(d->file, "BEGIN", NULL, NULL, NULL); /* all queries read one snapshot */
  if (code != SQLITE_OK) refuse_code(d, code);
  if (import_database_count(d, has_virtual) > 0)
    refuse_database(d->result,
                    "is an SQLite database with virtual tables, which no profiler writes");
  if (d->result->end == IMPORT_REFUSED) return false;
  import_rows rows = import_rows_begin(d, "PRAGMA integrity_check(1)");
  if (import_rows_next(&rows)) {
    const import_text text = import_rows_text(&rows, 0);
    if (!import_text_is(text, "ok"))
      refuse_database(d->result, "is a damaged SQLite database: %.*s",
                      (int)(text.bytes < 160 ? text.bytes : 160), text.data);
  }
  import_rows_end(&rows);
  (void)pages_read(d, true); /* those of the check do not count */
  return d->result->end != IMPORT_REFUSED;
}

static bool open_checked(import_database *d, const char *path, const char *folder) {
  char wal[PATH_BYTES];
  struct stat about;
  bool is_write_ahead;
  if (snprintf(wal, sizeof wal, "%s-wal", path) >= (int)sizeof wal)
    import_fail("cannot open '%s': its path is too long", path);
  if (!open_library(d) || !read_database_header(d, path, &is_write_ahead)) return false;
  const bool has_wal = is_write_ahead && stat(wal, &about) == 0 && about.st_size > 0;
  if (has_wal && !copy_with_log(d, path, wal, folder)) return false;
  const char *const options = is_write_ahead ? "immutable=1" : "mode=ro";
  const bool is_open = has_wal ? open_file(d, copied_path, "mode=rw", SQLITE_OPEN_READWRITE)
                               : open_file(d, path, options, SQLITE_OPEN_READONLY);
  if (!is_open) return false;
  set_safe_options(d);
  return check_schema(d);
}

import_database *import_database_open(const char *path, const char *folder, import_result *result) {
  import_database *const d = import_make(sizeof *d);
  d->result = result;
  if (open_checked(d, path, folder)) return d;
  import_database_close(d);
  return NULL;
}

void import_database_close(import_database *d) {
  add_progress(d, d->file_bytes);
  if (d->file) d->close_v2(d->file);
  remove_copy();
  if (d->handle) dlclose(d->handle);
  free(d);
}

bool import_database_is_refused(const import_database *d) {
  return d->result->end == IMPORT_REFUSED;
}

/* ---- queries ---- */

import_rows import_rows_begin(import_database *d, const char *query) {
  sqlite3_stmt *statement = NULL;
  if (d->result->end != IMPORT_REFUSED) {
    const int code = d->prepare_v2(d->file, query, -1, &statement, NULL);
    if (code != SQLITE_OK) refuse_code(d, code);
  }
  return (import_rows){d, statement};
}

bool import_rows_next(import_rows *rows) {
  import_database *const d = rows->database;
  if (!rows->statement || d->result->end == IMPORT_REFUSED) return false;
  const int code = d->step(rows->statement);
  if (code != SQLITE_ROW && code != SQLITE_DONE) refuse_code(d, code);
  if (code == SQLITE_ROW) show_row(d);
  return code == SQLITE_ROW;
}

void import_rows_end(import_rows *rows) {
  if (rows->statement) rows->database->finalize(rows->statement);
  rows->statement = NULL;
}

bool import_rows_is_null(const import_rows *rows, int column) {
  return rows->database->column_type(rows->statement, column) == SQLITE_NULL;
}

bool import_rows_i64(const import_rows *rows, int column, int64_t *out) {
  const import_database *const d = rows->database;
  const int type = d->column_type(rows->statement, column);
  *out = 0;
  if (type == SQLITE_INTEGER) *out = d->column_int64(rows->statement, column);
  return type == SQLITE_INTEGER;
}

import_text import_rows_text(const import_rows *rows, int column) {
  const import_database *const d = rows->database;
  const void *const text = d->column_text(rows->statement, column);
  const int bytes = d->column_bytes(rows->statement, column);
  return text ? (import_text){text, (size_t)bytes} : (import_text){"", 0};
}

int64_t import_database_count(import_database *d, const char *query) {
  import_rows rows = import_rows_begin(d, query);
  int64_t count = 0;
  if (import_rows_next(&rows)) import_rows_i64(&rows, 0, &count);
  import_rows_end(&rows);
  return count;
}

bool import_database_has_table(import_database *d, const char *table) {
  import_rows rows =
      import_rows_begin(d, "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?");
  if (rows.statement) d->bind_text(rows.statement, 1, table, -1, SQLITE_TRANSIENT);
  const bool is_there = import_rows_next(&rows);
  import_rows_end(&rows);
  return is_there;
}

bool import_database_has_column(import_database *d, const char *table, const char *column) {
  char query[QUERY_BYTES];
  sqlite3_stmt *statement = NULL;
  if (d->result->end == IMPORT_REFUSED) return false;
  snprintf(query, sizeof query, "SELECT t.[%s] FROM [%s] t", column, table);
  const int code = d->prepare_v2(d->file, query, -1, &statement, NULL);
  d->finalize(statement);
  if (code != SQLITE_OK && code != SQLITE_ERROR) refuse_code(d, code);
  return code == SQLITE_OK;
}

bool import_database_has_json(import_database *d) {
  sqlite3_stmt *statement = NULL;
  if (d->result->end == IMPORT_REFUSED) return false;
  const int code = d->prepare_v2(d->file, "SELECT json_valid('{}')", -1, &statement, NULL);
  d->finalize(statement);
  return code == SQLITE_OK;
}

#else

import_database *import_database_open(const char *path, const char *folder, import_result *result) {
  (void)path, (void)folder;
  refuse_database(result, "is an SQLite database, and this build of prof has no SQLite");
  return NULL;
}

/* Without SQLite no database is ever open. */
void import_database_close(import_database *d) { (void)d; }
bool import_database_is_refused(const import_database *d) { return !d; }
bool import_database_has_table(import_database *d, const char *table) { return d && !table; }
bool import_database_has_column(import_database *d, const char *table, const char *column) {
  return d && !table && !column;
}
int64_t import_database_count(import_database *d, const char *query) { return d && !query; }
bool import_database_has_json(import_database *d) { return !d; }
import_rows import_rows_begin(import_database *d, const char *query) {
  (void)query;
  return (import_rows){d, NULL};
}
bool import_rows_next(import_rows *rows) { return rows->statement; }
void import_rows_end(import_rows *rows) { rows->statement = NULL; }
bool import_rows_i64(const import_rows *rows, int column, int64_t *out) {
  *out = column;
  return rows->statement;
}
bool import_rows_is_null(const import_rows *rows, int column) { return rows->statement || column; }
import_text import_rows_text(const import_rows *rows, int column) {
  (void)rows, (void)column;
  return (import_text){"", 0};
}

#endif
