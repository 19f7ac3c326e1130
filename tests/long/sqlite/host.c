/* host.c: SQLite with prof in it, by SQLite's public hooks alone. Statements by sqlite3_trace_v2()
   and scopes by calls, functions of SQL by block macros (level 1), memory by SQLITE_CONFIG_MALLOC.
   Reads, writes and syncs by a VFS in front of the default one (level 2). It counts its calls of
   prof, compares that with SQLite's own instruments, and ends with the counts, which check.py
   compares.

   usage: host FOLDER HOW JOURNAL THREADS

   HOW "bare": no hook, nothing of prof. "counts": hooks and counts alone. "0": prof stays off.
   "1", "2": its level.

   JOURNAL "delete", "wal": SQLite's journal_mode.

   PROGRESS=FILE: the counts of begins and ends go there while it runs, for a process that kills it.
   It never ends then. */
#include <fcntl.h>
#include <inttypes.h>
#include <prof/memory.h>
#include <prof/profiler.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "../book.h"

enum { STATEMENTS_MAX = 64, RUNNING_MAX = 16, THREADS_MAX = 64, ROWS = 3000 };

/* Shared with whoever kills the process. */
typedef struct progress {
  uint64_t begun, ending, ended;
} progress;

/* A statement that runs: one that a trigger runs inside of it has none of its own. */
typedef struct running {
  sqlite3_stmt *statement;
  book_line *line;
  uint64_t start;
} running;

typedef struct runner {
  pthread_t thread;
  int index;
  sqlite3 *db;
  book own;
  running runs[RUNNING_MAX];
  size_t run_count;
  sqlite3_stmt *prepared[STATEMENTS_MAX];
  size_t prepared_count;
  uint64_t runs_by_trace, runs_by_sqlite; /* of statements and triggers: SQLITE_STMTSTATUS_RUN */
  uint64_t reruns_by_sqlite; /* SQLITE_STMTSTATUS_REPREPARE: a run that began anew is traced once */
  uint64_t rows_by_trace, rows_by_step;
  uint64_t main_writes,
      pages_by_sqlite; /* writes of pages: by the VFS, and SQLITE_DBSTATUS_CACHE_WRITE */
  uint64_t page_reads, misses_by_sqlite;
  /* of a run that began anew: SQLite tells the end of both, and the begin of the first */
  uint64_t ends_alone;
  uint64_t sum;
  bool has_failed;
} runner;

static bool has_hooks, uses_prof, is_wal;
static const char *folder;
static progress *shared;
static book_account account = {.name = "sqlite"};
static prof_pool *pool;
static _Thread_local runner *me;

static void note(uint64_t *number) { __atomic_fetch_add(number, 1, __ATOMIC_RELEASE); }

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void must(runner *r, int is_right, const char *what) {
  if (is_right) return;
  fprintf(stderr, "failed: %s: %s\n", what, sqlite3_errmsg(r->db));
  r->has_failed = true;
}

/* ---- memory: SQLITE_CONFIG_MALLOC. SQLite calls these inside of its own lock, as it keeps its own
 * account ---- */

static sqlite3_mem_methods plain;

static void *memory_malloc(int bytes) {
  void *const piece = plain.xMalloc(bytes);
  if (!piece) return NULL;
  book_account_alloc(&account, (uint64_t)plain.xSize(piece));
  if (uses_prof) prof_memory_alloc(pool, piece, (uint64_t)bytes, (uint64_t)plain.xSize(piece));
  return piece;
}

static void memory_free(void *piece) {
  const uint64_t bytes = (uint64_t)plain.xSize(piece);
  book_account_free(&account, bytes);
  if (uses_prof) prof_memory_free(pool, piece, bytes);
  plain.xFree(piece);
}

static void *memory_realloc(void *piece, int bytes) {
  const uint64_t before = (uint64_t)plain.xSize(piece);
  book_account_free(&account, before);
  if (uses_prof) prof_memory_free(pool, piece, before);
  void *const larger = plain.xRealloc(piece, bytes);
  if (!larger) abort();
  book_account_alloc(&account, (uint64_t)plain.xSize(larger));
  if (uses_prof) prof_memory_alloc(pool, larger, (uint64_t)bytes, (uint64_t)plain.xSize(larger));
  return larger;
}

static int memory_set_up(void) {
  if (sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 1) || sqlite3_config(SQLITE_CONFIG_GETMALLOC, &plain))
    return -1;
  sqlite3_mem_methods own = plain;
  own.xMalloc = memory_malloc;
  own.xFree = memory_free;
  own.xRealloc = memory_realloc;
  return sqlite3_config(SQLITE_CONFIG_MALLOC, &own);
}

/* ---- files: a VFS in front of the default one ---- */

typedef struct file {
  sqlite3_file base;
  const char *kind; /* "database", "journal", "wal", "other" */
  sqlite3_file *real;
} file;

static sqlite3_vfs *real_vfs;

/* A block around one call of the real file, with what it was asked for. */
#define AROUND(name, ...)                                                   \
  do {                                                                      \
    file *const f = (file *)base;                                           \
    runner *const r = me;                                                   \
    if (!r || !has_hooks) return f->real->pMethods->__VA_ARGS__;            \
    book_line *const line = book_find(&r->own, name, f->kind, 2);           \
    line->begun++, line->ended++;                                           \
    if (!uses_prof) return f->real->pMethods->__VA_ARGS__;                  \
    int status = 0;                                                         \
    WITH_BASE_PROFILER_LEVEL(2, PROF_HOST, name, f->kind,                   \
                             PROF_ARGS("bytes", bytes, "offset", offset),   \
                             { status = f->real->pMethods->__VA_ARGS__; }); \
    return status;                                                          \
  } while (0)

static int file_close(sqlite3_file *base) {
  file *const f = (file *)base;
  return f->real->pMethods->xClose(f->real);
}
static int file_read(sqlite3_file *base, void *to, int bytes, sqlite3_int64 offset) {
  if (me && bytes >= 4096 && *((file *)base)->kind == 'd') me->page_reads++;
  AROUND("read", xRead(f->real, to, bytes, offset));
}
static int file_write(sqlite3_file *base, const void *from, int bytes, sqlite3_int64 offset) {
  if (me && *((file *)base)->kind == 'd') me->main_writes++;
  AROUND("write", xWrite(f->real, from, bytes, offset));
}
static int file_truncate(sqlite3_file *base, sqlite3_int64 bytes) {
  file *const f = (file *)base;
  return f->real->pMethods->xTruncate(f->real, bytes);
}
static int file_sync(sqlite3_file *base, int bytes) {
  const int offset = 0;
  AROUND("sync", xSync(f->real, bytes));
}
static int file_size(sqlite3_file *base, sqlite3_int64 *bytes) {
  file *const f = (file *)base;
  return f->real->pMethods->xFileSize(f->real, bytes);
}
static int file_lock(sqlite3_file *base, int bytes) {
  const int offset = 0;
  AROUND("lock", xLock(f->real, bytes));
}
static int file_unlock(sqlite3_file *base, int bytes) {
  const int offset = 0;
  AROUND("unlock", xUnlock(f->real, bytes));
}
static int file_check(sqlite3_file *base, int *is_reserved) {
  file *const f = (file *)base;
  return f->real->pMethods->xCheckReservedLock(f->real, is_reserved);
}
static int file_control(sqlite3_file *base, int what, void *argument) {
  file *const f = (file *)base;
  return f->real->pMethods->xFileControl(f->real, what, argument);
}
static int file_sector(sqlite3_file *base) {
  file *const f = (file *)base;
  return f->real->pMethods->xSectorSize(f->real);
}
static int file_traits(sqlite3_file *base) {
  file *const f = (file *)base;
  return f->real->pMethods->xDeviceCharacteristics(f->real);
}
static int file_map(sqlite3_file *base, int page, int bytes, int extend, void volatile **to) {
  file *const f = (file *)base;
  return f->real->pMethods->xShmMap(f->real, page, bytes, extend, to);
}
static int file_shared_lock(sqlite3_file *base, int offset, int bytes, int flags) {
  AROUND("shared lock", xShmLock(f->real, offset, bytes, flags));
}
static void file_barrier(sqlite3_file *base) {
  file *const f = (file *)base;
  f->real->pMethods->xShmBarrier(f->real);
}
static int file_unmap(sqlite3_file *base, int is_removed) {
  file *const f = (file *)base;
  return f->real->pMethods->xShmUnmap(f->real, is_removed);
}

static const sqlite3_io_methods file_methods = {.iVersion = 2,
                                                .xClose = file_close,
                                                .xRead = file_read,
                                                .xWrite = file_write,
                                                .xTruncate = file_truncate,
                                                .xSync = file_sync,
                                                .xFileSize = file_size,
                                                .xLock = file_lock,
                                                .xUnlock = file_unlock,
                                                .xCheckReservedLock = file_check,
                                                .xFileControl = file_control,
                                                .xSectorSize = file_sector,
                                                .xDeviceCharacteristics = file_traits,
                                                .xShmMap = file_map,
                                                .xShmLock = file_shared_lock,
                                                .xShmBarrier = file_barrier,
                                                .xShmUnmap = file_unmap};

static int vfs_open(sqlite3_vfs *vfs, sqlite3_filename name, sqlite3_file *base, int flags,
                    int *flags_out) {
  file *const f = (file *)base;
  (void)vfs;
  f->real = (sqlite3_file *)(f + 1);
  f->kind = flags & SQLITE_OPEN_MAIN_DB        ? "database"
            : flags & SQLITE_OPEN_MAIN_JOURNAL ? "journal"
            : flags & SQLITE_OPEN_WAL          ? "wal"
                                               : "other";
  const int status = real_vfs->xOpen(real_vfs, name, f->real, flags, flags_out);
  f->base.pMethods = f->real->pMethods ? &file_methods : NULL;
  return status;
}

static int vfs_set_up(void) {
  static sqlite3_vfs own;
  real_vfs = sqlite3_vfs_find(NULL);
  own = *real_vfs;
  own.zName = "counted";
  own.szOsFile = (int)sizeof(file) + real_vfs->szOsFile;
  own.xOpen = vfs_open;
  own.pNext = NULL;
  return sqlite3_vfs_register(&own, 1);
}

/* ---- statements: sqlite3_trace_v2() ---- */

static void begin_statement(runner *r, sqlite3_stmt *statement, const char *text) {
  if (r->run_count == RUNNING_MAX) abort();
  running *const run = &r->runs[r->run_count++];
  *run = (running){statement, book_find(&r->own, text, "statement", 1), 0};
  run->line->begun++;
  r->runs_by_trace++;
  if (!uses_prof) return;
  if (shared) note(&shared->begun);
  const prof_arg thread = {.key = "connection", .type = PROF_ARG_I64, .value.i64 = r->index};
  run->start = prof_scope_begin(1, text, "statement", &(prof_args){.items = &thread, .count = 1});
}

static void end_statement(runner *r, sqlite3_stmt *statement) {
  size_t i = r->run_count;
  while (i > 0 && r->runs[i - 1].statement != statement) i--;
  if (i == 0) {
    r->ends_alone++;
    return;
  }
  running *const run = &r->runs[i - 1];
  run->line->ended++;
  if (uses_prof) {
    if (shared) note(&shared->ending);
    prof_scope_end(run->start);
    if (shared) note(&shared->ended);
  }
  memmove(run, run + 1, (r->run_count-- - i) * sizeof *run);
}

static bool is_running(const runner *r, const sqlite3_stmt *statement) {
  for (size_t i = 0; i < r->run_count; i++)
    if (r->runs[i].statement == statement) return true;
  return false;
}

static int trace(unsigned what, void *user, void *statement, void *more) {
  runner *const r = user;
  const char *const text = more;
  switch (what) {
    case SQLITE_TRACE_STMT:
      if (strncmp(text, "--", 2) != 0) {
        begin_statement(r, statement, text);
      } else { /* a trigger begins inside of the statement */
        r->runs_by_trace +=
            strncmp(text, "-- TRIGGER", 10) == 0; /* its own statements count as its */
        book_find(&r->own, text, "mark", 1)->marks++;
        if (uses_prof) PROF_INSTANT(text, "mark", PROF_NO_ARGS);
      }
      break;
    case SQLITE_TRACE_PROFILE:
      end_statement(r, statement);
      break;
    case SQLITE_TRACE_ROW:
      if (!is_running(r, statement))
        break; /* SQLite's own, of the schema: no trace tells that it begins */
      r->rows_by_trace++;
      book_find(&r->own, "rows", "counter", 1)->marks++;
      if (uses_prof) PROF_COUNTER("rows", (double)r->rows_by_trace);
      break;
  }
  return 0;
}

/* A function of SQL: a block, and an error on request. */
static void scramble(sqlite3_context *context, int count, sqlite3_value **values) {
  runner *const r = sqlite3_user_data(context);
  const sqlite3_int64 value = sqlite3_value_int64(values[0]);
  (void)count;
  if (has_hooks) {
    book_line *const line = book_find(&r->own, "scramble", "function", 1);
    line->begun++, line->ended++;
  }
  sqlite3_int64 result = 0;
  if (uses_prof)
    WITH_BASE_PROFILER(PROF_HOST, "scramble", "function", PROF_ARGS("value", value),
                       { result = value * 1103515245 % 65536; });
  else
    result = value * 1103515245 % 65536;
  if (value < 0)
    sqlite3_result_error(context, "below 0", -1);
  else
    sqlite3_result_int64(context, result);
}

/* ---- the workload ---- */

static sqlite3_stmt *prepare(runner *r, const char *text) {
  sqlite3_stmt *statement = NULL;
  must(r, sqlite3_prepare_v2(r->db, text, -1, &statement, NULL) == SQLITE_OK, text);
  if (r->prepared_count == STATEMENTS_MAX) abort();
  r->prepared[r->prepared_count++] = statement;
  return statement;
}

/* Steps to the end; the first column's numbers into the sum. */
static int run_to_end(runner *r, sqlite3_stmt *statement) {
  int status;
  while ((status = sqlite3_step(statement)) == SQLITE_ROW) {
    r->rows_by_step++;
    r->sum = (r->sum * 31 + (uint64_t)sqlite3_column_int64(statement, 0)) % 1000000007;
  }
  sqlite3_reset(statement);
  return status;
}

/* What SQLite counted of it, and its end. */
static void take(runner *r, sqlite3_stmt *statement) {
  r->runs_by_sqlite += (uint64_t)sqlite3_stmt_status(statement, SQLITE_STMTSTATUS_RUN, 0);
  r->reruns_by_sqlite += (uint64_t)sqlite3_stmt_status(statement, SQLITE_STMTSTATUS_REPREPARE, 0);
  sqlite3_finalize(statement);
}

static int once(runner *r, const char *text) {
  sqlite3_stmt *const statement = prepare(r, text);
  const int status = run_to_end(r, statement);
  r->prepared_count--;
  take(r, statement);
  return status;
}

static void must_once(runner *r, const char *text) { must(r, once(r, text) == SQLITE_DONE, text); }

static void fill(runner *r) {
  sqlite3_stmt *const insert =
      prepare(r, "INSERT INTO item(owner, number, word) VALUES (?1, ?2, ?3)");
  char word[32];
  for (int i = 0; i < ROWS; i++) {
    if (i % 500 == 0) must_once(r, "BEGIN IMMEDIATE");
    snprintf(word, sizeof word, "word %d \"%c\"", i % 97, 'a' + i % 26);
    sqlite3_bind_int(insert, 1, r->index);
    sqlite3_bind_int(insert, 2, i);
    sqlite3_bind_text(insert, 3, word, -1, SQLITE_TRANSIENT);
    must(r, run_to_end(r, insert) == SQLITE_DONE, "insert");
    if (i % 500 == 499) must_once(r, "COMMIT");
  }
}

static void look(runner *r) {
  sqlite3_stmt *const join = prepare(r,
                                     "SELECT count(*) + sum(b.number) FROM item a JOIN item b ON "
                                     "b.owner = a.owner AND b.number = a.number + ?2\n"
                                     "WHERE a.owner = ?1 AND a.number < 400");
  for (int i = 0; i < 20; i++) {
    sqlite3_bind_int(join, 1, r->index);
    sqlite3_bind_int(join, 2, i);
    must(r, run_to_end(r, join) == SQLITE_DONE, "join");
  }
  sqlite3_stmt *const one =
      prepare(r, "SELECT number, word FROM item WHERE owner = ?1 ORDER BY number LIMIT 300");
  sqlite3_stmt *const two =
      prepare(r, "SELECT scramble(number) FROM item WHERE owner = ?1 AND number % 10 = 3");
  sqlite3_bind_int(one, 1, r->index);
  sqlite3_bind_int(two, 1, r->index);
  for (int i = 0; i < 5; i++) { /* two that take turns, and end crosswise */
    int is_left = 3;
    for (int step = 0; is_left; step++) {
      sqlite3_stmt *const turn = step % 2 ? two : one;
      if (!(is_left & (step % 2 ? 2 : 1))) continue;
      if (sqlite3_step(turn) == SQLITE_ROW) {
        r->rows_by_step++;
        r->sum = (r->sum * 31 + (uint64_t)sqlite3_column_int64(turn, 0)) % 1000000007;
      } else {
        sqlite3_reset(turn);
        is_left &= step % 2 ? 1 : 2;
      }
    }
  }
  sqlite3_step(one); /* left in the middle, and reset */
  r->rows_by_step++;
  sqlite3_reset(one);
}

static void err(runner *r) {
  must_once(r, "BEGIN IMMEDIATE");
  sqlite3_stmt *const insert =
      prepare(r, "INSERT INTO item(owner, number, word) VALUES (?1, ?2, 'twice')");
  for (int i = 0; i < 50; i++) {
    sqlite3_bind_int(insert, 1, r->index);
    sqlite3_bind_int(insert, 2, i);
    must(r, run_to_end(r, insert) == SQLITE_CONSTRAINT, "a number that is there");
  }
  must(r, once(r, "SELECT scramble(-1)") == SQLITE_ERROR, "an error of the function");
  must_once(r, "UPDATE item SET word = 'gone' WHERE number > 100");
  must_once(r, "ROLLBACK");
  sqlite3_stmt *nothing;
  must(r, sqlite3_prepare_v2(r->db, "SELEC 1", -1, &nothing, NULL) == SQLITE_ERROR,
       "words that are wrong");
  must_once(r, "SAVEPOINT here");
  must_once(r, "DELETE FROM item WHERE owner = -1");
  must_once(r, "ROLLBACK TO here");
  must_once(r, "RELEASE here");
}

static void shrink(runner *r) {
  char text[100];
  for (int i = 0; i < 10; i++) { /* names made at run time */
    snprintf(text, sizeof text, "DELETE FROM item WHERE owner = %d AND number = %d /* größe */",
             r->index, i * 7);
    must_once(r, text);
  }
  snprintf(text, sizeof text,
           "SELECT sum(number) FROM item WHERE owner = %d AND word LIKE 'word 1%%'", r->index);
  must_once(r, text);
}

static const char *const schema[] = {
    "CREATE TABLE IF NOT EXISTS item(id INTEGER PRIMARY KEY, owner INT, number INT, word TEXT, "
    "UNIQUE(owner, number))",
    "CREATE TABLE IF NOT EXISTS seen(owner INT PRIMARY KEY, count INT)",
    "CREATE INDEX IF NOT EXISTS by_word ON item(word)",
    "CREATE TRIGGER IF NOT EXISTS deleted AFTER DELETE ON item BEGIN\n"
    "  INSERT INTO seen VALUES (old.owner, 1) ON CONFLICT(owner) DO UPDATE SET count = count + "
    "1;\nEND"};

static uint64_t db_status(runner *r, int what) {
  int now = 0, most = 0;
  sqlite3_db_status(r->db, what, &now, &most, 0);
  return (uint64_t)now;
}

static void finish(runner *r) {
  for (size_t i = 0; i < r->prepared_count; i++) take(r, r->prepared[i]);
  r->prepared_count = 0;
  r->pages_by_sqlite = db_status(r, SQLITE_DBSTATUS_CACHE_WRITE);
  r->misses_by_sqlite = db_status(r, SQLITE_DBSTATUS_CACHE_MISS);
}

/* A file of its own for each connection, or one that all share: then threads wait for each other.
 */
static void work(runner *r) {
  char path[4096];
  snprintf(path, sizeof path, "%s/data-%d.db", folder, is_wal ? 0 : r->index);
  me = r;
  must(r, sqlite3_open(path, &r->db) == SQLITE_OK, path);
  sqlite3_busy_timeout(r->db, 600000);
  sqlite3_create_function(r->db, "scramble", 1, SQLITE_UTF8, r, scramble, NULL, NULL);
  if (has_hooks)
    sqlite3_trace_v2(r->db, SQLITE_TRACE_STMT | SQLITE_TRACE_PROFILE | SQLITE_TRACE_ROW, trace, r);
  must(
      r,
      once(r, is_wal ? "PRAGMA journal_mode = wal" : "PRAGMA journal_mode = delete") == SQLITE_DONE,
      "journal");
  must_once(r, "PRAGMA synchronous = off");
  must_once(r, "PRAGMA cache_size = 50"); /* pages: so that some are read again */
  r->sum = 0;
  do {
    must_once(r, "BEGIN IMMEDIATE");
    for (size_t i = 0; i < sizeof schema / sizeof *schema; i++) must_once(r, schema[i]);
    must_once(r, "COMMIT");
    fill(r);
    look(r);
    err(r);
    shrink(r);
    char text[64];
    snprintf(text, sizeof text, "DELETE FROM item WHERE owner = %d", r->index);
    must_once(r, text);
    finish(r);
  } while (shared);
  must(r, sqlite3_close(r->db) == SQLITE_OK, "close");
  me = NULL;
}

static void *run(void *user) {
  runner *const r = user;
  if (!uses_prof) {
    work(r);
    return NULL;
  }
  char name[32];
  snprintf(name, sizeof name, "connection %d", r->index);
  prof_thread_set_name(name);
  book_line *const line = book_find(&r->own, "connection", "thread", 1);
  line->begun++;
  WITH_BASE_PROFILER(PROF_HOST, "connection", "thread", PROF_NO_ARGS, { work(r); });
  line->ended++;
  return NULL;
}

/* ---- counts ---- */

/* One of the host's against one of SQLite's. */
static uint64_t agree(const char *what, uint64_t own, uint64_t by_sqlite) {
  if (own == by_sqlite) return 0;
  fprintf(stderr, "%s: the hooks count %" PRIu64 ", SQLite %" PRIu64 "\n", what, own, by_sqlite);
  return 1;
}

static uint64_t compare_with_sqlite(const runner *r) {
  uint64_t bad = r->has_failed;
  if (!has_hooks) return bad;
  const uint64_t more = r->runs_by_sqlite - r->runs_by_trace;
  if (more > r->reruns_by_sqlite)
    bad += agree("runs of statements", r->runs_by_trace, r->runs_by_sqlite);
  if (r->ends_alone > r->reruns_by_sqlite)
    bad += agree("ends without a begin", r->ends_alone, r->reruns_by_sqlite);
  bad += agree("rows", r->rows_by_trace, r->rows_by_step);
  bad += agree("statements that run at the end", r->run_count, 0);
  if (!is_wal) bad += agree("pages written", r->main_writes, r->pages_by_sqlite);
  if (!is_wal) bad += agree("pages read", r->page_reads, r->misses_by_sqlite);
  return bad;
}

static uint64_t compare_memory(void) {
  sqlite3_int64 used = 0, peak = 0, count = 0, most = 0;
  sqlite3_status64(SQLITE_STATUS_MEMORY_USED, &used, &peak, 0);
  sqlite3_status64(SQLITE_STATUS_MALLOC_COUNT, &count, &most, 0);
  return agree("bytes used", account.used, (uint64_t)used) +
         agree("peak of bytes used", account.peak, (uint64_t)peak) +
         agree("live pieces", account.alloc_count - account.free_count, (uint64_t)count);
}

static int write_counts(runner *runners, int count, uint64_t bad, uint64_t ns) {
  char path[4096];
  book all = {0};
  uint64_t runs = 0, rows = 0, writes = 0, misses = 0;
  snprintf(path, sizeof path, "%s/own.json", folder);
  FILE *const to = fopen(path, "w");
  if (!to) return 1;
  for (int i = 0; i < count; i++) {
    book_add(&all, &runners[i].own);
    bad += compare_with_sqlite(&runners[i]);
    runs += runners[i].runs_by_sqlite;
    rows += runners[i].rows_by_step;
    writes += runners[i].pages_by_sqlite;
    misses += runners[i].misses_by_sqlite;
  }
  fputs("{", to);
  book_write(to, &all, &account, 1);
  fprintf(to, ",\n\"result\": \"");
  for (int i = 0; i < count; i++) fprintf(to, "%s%" PRIu64, i ? " " : "", runners[i].sum);
  fprintf(to,
          "\",\n\"instruments\": {\"SQLITE_STMTSTATUS_RUN\": %" PRIu64
          ", \"rows stepped\": %" PRIu64 ", \"SQLITE_DBSTATUS_CACHE_WRITE\": %" PRIu64
          ", \"SQLITE_STATUS_MEMORY_USED at most\": %" PRIu64
          ", \"SQLITE_DBSTATUS_CACHE_MISS\": %" PRIu64 "},\n\"disagreements\": %" PRIu64
          ",\n\"threads_ended\": 1, \"ns\": %" PRIu64 "}\n",
          runs, rows, writes, account.peak, misses, bad, ns);
  book_destroy(&all);
  return fclose(to) || bad;
}

static bool set_up(const char *how) {
  static char output[4096];
  has_hooks = strcmp(how, "bare") != 0;
  uses_prof = has_hooks && strcmp(how, "counts") != 0;
  if (!book_progress(sizeof *shared, (void **)&shared)) return false;
  if (uses_prof && *how != '0') {
    snprintf(output, sizeof output, "%s/run.json", folder);
    const prof_options options = {
        .size = sizeof options, .level = (uint32_t)(*how - '0'), .path = output, .keep_capture = 1};
    if (prof_start_with(&options)) {
      fprintf(stderr, "failed: prof_start_with: %s\n", prof_last_error());
      return false;
    }
  }
  const prof_pool_options options = {.size = sizeof options, .name = account.name};
  if (uses_prof && prof_pool_create(&options, &pool)) return false;
  return memory_set_up() == SQLITE_OK && sqlite3_initialize() == SQLITE_OK &&
         vfs_set_up() == SQLITE_OK;
}

int main(int count, char **words) {
  if (count < 5) return 2;
  const char *const how = words[2];
  const int thread_count = atoi(words[4]);
  folder = words[1];
  is_wal = !strcmp(words[3], "wal");
  if (thread_count < 1 || thread_count > THREADS_MAX || !set_up(how)) return 2;
  runner *const runners = calloc((size_t)thread_count, sizeof *runners);
  const uint64_t begun = now_ns();
  for (int i = 0; i < thread_count; i++) {
    runners[i].index = i;
    if (pthread_create(&runners[i].thread, NULL, run, &runners[i])) return 2;
  }
  for (int i = 0; i < thread_count; i++) pthread_join(runners[i].thread, NULL);
  const uint64_t ns = now_ns() - begun;
  const uint64_t bad = compare_memory();
  if (uses_prof && *how != '0') prof_stop();
  int status = write_counts(runners, thread_count, bad, ns);
  if (uses_prof && *how != '0') {
    char path[4096];
    snprintf(path, sizeof path, "%s/prof.json", folder);
    status |= book_write_prof(path);
  }
  for (int i = 0; i < thread_count; i++) book_destroy(&runners[i].own);
  free(runners);
  return status != 0;
}
