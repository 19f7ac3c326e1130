/* Reads back the databases that `prof dump` writes: prof's own tables (x.db) and RPD. Queries
   convert each row to an event of Chrome JSON, which the JSON reader parses. The database also
   holds the texts of Chrome JSON before the events (names of rows) and after them (losses). Rows
   that were deleted, or that refer to missing rows, are counted. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "database.h"
#include "internal.h"

enum { FORMAT_VERSION = 1, PIECE_BYTES = 64 << 10 };

bool import_own_database_is(import_database *database) {
  static const char is_own[] =
      "SELECT count(*) FROM prof_metadata WHERE key = 'format' AND"
      " value = 'prof'",
                    is_rpd[] = "SELECT count(*) FROM rocpd_metadata WHERE tag = 'prof_head'";
  if (import_database_has_table(database, "prof_metadata"))
    return import_database_count(database, is_own) > 0;
  return import_database_has_table(database, "rocpd_metadata") &&
         import_database_has_table(database, "rocpd_api") &&
         import_database_count(database, is_rpd) > 0;
}

/* ---- parts ---- */

/* The queries by which prof's own tables are read. */
typedef enum own_part {
  OWN_HEAD,
  OWN_DEVICES,
  OWN_SCOPES,
  OWN_KERNELS,
  OWN_STEPS,
  OWN_INSTANTS,
  OWN_COUNTERS,
  OWN_MEMORY,
  OWN_ARROWS,
  OWN_LAUNCHES,
  OWN_TAIL,
  OWN_PARTS
} own_part;

/* The queries by which an RPD is read. */
typedef enum rpd_part {
  RPD_HEAD,
  RPD_CALLS,
  RPD_WORK,
  RPD_COUNTERS,
  RPD_LAUNCHES,
  RPD_TAIL,
  RPD_PARTS
} rpd_part;

/* ---- reading JSON ---- */

typedef struct own_reader {
  import_reader *reader;
  import_json *json;
  import_json_cleaner cleaner;
  char *clean; /* room for a piece */
  bool is_good;
} own_reader;

static void read_text(own_reader *own, import_text text) {
  while (text.bytes > 0 && own->is_good) {
    const size_t count = text.bytes < PIECE_BYTES ? text.bytes : PIECE_BYTES;
    own->is_good = import_json_read(own->json, own->clean,
                                    import_json_clean(&own->cleaner, text.data, count, own->clean));
    text.data += count;
    text.bytes -= count;
  }
}

/* Reads the first column of each row as JSON, and returns how many rows there are. A row with a
   missing value is NULL. */
static uint64_t read_rows(own_reader *own, const char *query) {
  import_rows rows = import_rows_begin(own->reader->database, query);
  uint64_t count = 0;
  for (; own->is_good && import_rows_next(&rows); count++) {
    own->reader->state->counts->missed[IMPORT_MISS_NULL_ROW] += import_rows_is_null(&rows, 0);
    read_text(own, import_rows_text(&rows, 0));
  }
  import_rows_end(&rows);
  return count;
}

/* ---- queries: pieces of SQL that make JSON ---- */

#define MEMBER(key, value) "',\"" key "\":' || " value " || "
/* NULL in place of printf()'s 0 if the value is NULL or a text. Then the row is NULL, too. */
#define OF_NUMBER(value, text) "iif(typeof(" value ") IN ('integer', 'real'), " text ", NULL)"
#define US(value, ns) OF_NUMBER(value, "printf('%d.%03d', (" ns ") / 1000, (" ns ") % 1000)")
/* Converts ns from the capture's start to us from the base time. with_epoch() replaces $E. */
#define TS(ns) MEMBER("ts", US(ns, ns " + $E"))
#define DUR(ns) MEMBER("dur", US(ns, ns))
#define ROW "'\"pid\":' || t.row_pid || ',\"tid\":' || t.row_tid || "
#define NAMED(category, name) MEMBER("cat", category) MEMBER("name", name)
#define OWN_NAMED NAMED("json_quote(n.category)", "json_quote(n.name)")
/* An object of arguments. members: a text of members, each with a comma before it. */
#define ARGS(members) "',\"args\":{' || substr(" members ", 2) || '}},'"
/* Members of an object of JSON, with a comma before them. */
#define INNER(object) \
  "coalesce(',' || nullif(substr(" object ", 2, length(" object ") - 2), ''), '')"
#define LAUNCHED(id) "coalesce(',\"External id\":' || " id " || ',\"correlation\":' || " id ", '')"
#define IF(condition, text) " CASE WHEN " condition " THEN '" text "' ELSE '' END "

/* Numbers from 2^63 on are negative in SQLite. JSON has such numbers of arrows as hexadecimal
   texts. */
#define ADDRESS(value) OF_NUMBER(value, "printf('%llu', " value ")")
#define ARROW_NUMBER(value) \
  "CASE WHEN " value " < 0 THEN printf('\"0x%llx\"', " value ") ELSE " value " END"

/* An arrow from a launch to its work, as in Chrome JSON. */
#define ARROW_END(pid, tid, ns) "'\"pid\":' || " pid " || ',\"tid\":' || " tid " || " TS(ns)
#define ARROWS(id, pid, tid, ns, work_pid, work_tid, work_ns) \
  "SELECT '{\"ph\":\"s\",\"cat\":\"ac2g\",\"name\":\"ac2g\",' || " ARROW_END(pid, tid, ns) MEMBER( \
      "id", id) "'},{\"ph\":\"f\",\"bp\":\"e\",\"cat\":\"ac2g\",\"name\":\"ac2g\",' "              \
                "|| " ARROW_END(work_pid, work_tid, work_ns) MEMBER("id", id) "'},'"

/* In the order of own_part. */
static const char *const own_queries[OWN_PARTS] = {
    "SELECT value FROM prof_metadata WHERE key = 'chrome_head'",
    "SELECT '{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":' || row_pid ||"
    " ',\"tid\":0,\"args\":{\"name\":' || json_quote(name) || '}},' FROM prof_devices ORDER BY id",
    "SELECT '{\"ph\":\"X\",' || " ROW OWN_NAMED TS("s.start_ns") DUR("s.duration_ns") ARGS(
        LAUNCHED("l.scope_id") " || " IF("s.flags & 256", ",\"unfinished\":true")
        "|| coalesce(',' || n.place, '') || " INNER("s.args"))
    " FROM prof_scopes s JOIN prof_names n ON n.id = s.name_id"
    " JOIN prof_threads t ON t.id = s.thread_id"
    " LEFT JOIN (SELECT DISTINCT scope_id FROM prof_launches) l ON l.scope_id = s.id"
    " ORDER BY s.id",
    "SELECT '{\"ph\":\"X\",' || " ROW NAMED(
        "CASE k.record WHEN 0 THEN '\"gpu_user_annotation\"' ELSE json_quote(n.category) END",
        "json_quote(n.name)") TS("k.start_ns") DUR("k.duration_ns")
    ARGS(LAUNCHED("l.scope_id") " || ',\"device\":' || d.number || ',\"stream\":' || t.row_tid || "
        IF("k.record = 7", ",\"annotation\":true") "|| " IF("k.flags & 256", ",\"unfinished\":true")
        "|| " INNER("k.args"))
    " FROM prof_kernels k JOIN prof_names n ON n.id = k.name_id"
    " JOIN prof_threads t ON t.id = k.thread_id JOIN prof_devices d ON d.id = t.device_id"
    " LEFT JOIN prof_launches l ON l.kernel_id = k.id ORDER BY k.id",
    "SELECT '{\"ph\":\"X\",' || " ROW NAMED("'\"user_annotation\"'",
                                          "'\"ProfilerStep#' || s.number || '\"'")
    TS("s.start_ns") DUR("s.duration_ns") ARGS("',\"step mark\":' || s.number")
    " FROM prof_steps s JOIN prof_threads t ON t.id = s.thread_id ORDER BY s.id",
    "SELECT '{\"ph\":\"i\",\"s\":\"t\",' || " ROW OWN_NAMED TS("i.at_ns") ARGS(INNER("i.args"))
    " FROM prof_instants i JOIN prof_names n ON n.id = i.name_id"
    " JOIN prof_threads t ON t.id = i.thread_id ORDER BY i.id",
    "SELECT '{\"ph\":\"C\",\"pid\":' || coalesce(d.row_pid, t.row_pid) || ',\"tid\":' ||"
    " CASE WHEN d.id IS NULL THEN t.row_tid ELSE 0 END || " OWN_NAMED TS("c.at_ns")
    ARGS("',\"value\":' || " OF_NUMBER("c.value", "printf('%!.17g', c.value)"))
    " FROM prof_counters c JOIN prof_names n ON n.id = c.name_id"
    " JOIN prof_threads t ON t.id = c.thread_id LEFT JOIN prof_devices d ON d.id = c.device_id"
    " ORDER BY c.at_ns, c.id",
    /* The reserved bytes are those of the last row of the pool that has them. */
    "SELECT '{\"ph\":\"i\",\"s\":\"t\",' || " ROW NAMED(
        "'\"cpu_instant_event\"'",
        "CASE m.verb WHEN 'oom' THEN '\"[OutOfMemory]\"' ELSE '\"[memory]\"' END") TS("m.at_ns")
    ARGS("',\"Addr\":' || " ADDRESS("m.address") " || ',\"Bytes\":' ||"
        " CASE m.verb WHEN 'free' THEN -m.bytes ELSE m.bytes END || ',\"Total Allocated\":' ||"
        " m.used_bytes || ',\"Total Reserved\":' || m.reserved_bytes ||"
        " CASE WHEN d.id IS NULL THEN ',\"Device Type\":0,\"Device Id\":-1'"
        " ELSE ',\"Device Type\":1,\"Device Id\":' || d.number END || CASE WHEN"
        " m.requested_bytes = m.bytes THEN '' ELSE ',\"Requested\":' || m.requested_bytes END ||"
        " CASE WHEN m.tag IS NULL THEN '' ELSE ',\"Tag\":' || json_quote(m.tag) END")
    " FROM (SELECT r.*, coalesce(max(r.allocated_bytes) OVER (PARTITION BY r.pool_id, r.part),"
    " b.allocated_before_bytes) AS reserved_bytes FROM (SELECT *, count(allocated_bytes) OVER"
    " (PARTITION BY pool_id ORDER BY at_ns, id) AS part FROM prof_memory) r JOIN prof_pools b"
    " ON b.id = r.pool_id) m JOIN prof_threads t ON t.id = m.thread_id"
    " JOIN prof_pools p ON p.id = m.pool_id LEFT JOIN prof_devices d ON d.id = p.device_id"
    " WHERE m.verb IN ('alloc', 'free', 'oom') ORDER BY m.at_ns, m.id",
    /* Both ends of an arrow get the id of its begin. An end without the other end is left out. */
    "SELECT '{\"ph\":' || CASE e.is_end WHEN 0 THEN '\"s\"' ELSE '\"f\",\"bp\":\"e\"' END || ',' ||"
    " " ROW NAMED("CASE n.name WHEN 'fwdbwd' THEN '\"fwdbwd\"' ELSE '\"flow\"' END",
                  "json_quote(n.name)") TS("e.at_ns") MEMBER("id", "e.number")
    ARGS("CASE e.is_end WHEN 0 THEN ',\"flow id\":' || " ARROW_NUMBER("e.arrow") " || CASE n.name"
        " WHEN '(unnamed)' THEN ',\"unnamed\":true' ELSE '' END ELSE '' END")
    " FROM (SELECT id, thread_id, at_ns, arrow, is_end, iif(is_end, lag(name_id) OVER w, name_id)"
    " AS name, iif(is_end, lag(id) OVER w, id) AS number, iif(is_end, lag(is_end) OVER w = 0,"
    " lead(is_end) OVER w = 1) AS is_pair FROM prof_arrow_ends WINDOW w AS"
    " (PARTITION BY arrow ORDER BY at_ns, is_end, id)) e JOIN prof_names n ON n.id = e.name"
    " JOIN prof_threads t ON t.id = e.thread_id WHERE e.is_pair ORDER BY e.number, e.is_end",
    ARROWS("l.kernel_id", "t.row_pid", "t.row_tid", "k.launch_ns", "u.row_pid", "u.row_tid",
           "k.start_ns")
    " FROM prof_launches l JOIN prof_kernels k ON k.id = l.kernel_id JOIN prof_scopes s"
    " ON s.id = l.scope_id JOIN prof_threads t ON t.id = s.thread_id JOIN prof_threads u"
    " ON u.id = k.thread_id WHERE k.start_ns >= k.launch_ns ORDER BY l.kernel_id",
    "SELECT value FROM prof_metadata WHERE key = 'chrome_tail'"};

#define WORD(word, text) IF("instr(D.string, ' " word "')", text)
#define API_ROW "'\"pid\":' || A.pid || ',\"tid\":' || A.tid || "

/* In the order of rpd_part. D.string has the words of marker_domain() in
   src/export/rpd.c. */
static const char *const rpd_queries[RPD_PARTS] = {
    "SELECT value FROM rocpd_metadata WHERE tag = 'prof_head'",
    "SELECT '{\"ph\":' || CASE WHEN D.string = 'prof instant' THEN '\"i\",\"s\":\"t\",' ELSE"
    " '\"X\",' END || " API_ROW NAMED("json_quote(C.string)",
                                     "json_quote(CASE N.string WHEN 'UserMarker' THEN U.string"
                                     " ELSE N.string END)") TS("A.start")
    DUR("A.[end] - A.start") ARGS(LAUNCHED("L.api_id") " || " WORD(
        "unfinished", ",\"unfinished\":true") "|| " WORD("async", ",\"asynchronous\":true")
        "|| " WORD("moved", ",\"ended on another thread\":true") "|| " WORD(
            "skipped", ",\"skipped\":true") "|| CASE WHEN D.string = 'prof step' THEN"
        " ',\"step mark\":' || substr(U.string, 14) ELSE '' END || CASE WHEN N.string ="
        " 'UserMarker' OR U.string = '' THEN '' WHEN json_valid(U.string) THEN " INNER("U.string")
        " ELSE ',\"args\":' || json_quote(U.string) END")
    " FROM rocpd_api A JOIN rocpd_string D ON D.id = A.domain_id"
    " JOIN rocpd_string C ON C.id = A.category_id JOIN rocpd_string N ON N.id = A.apiName_id"
    " JOIN rocpd_ustring U ON U.id = A.args_id"
    " LEFT JOIN (SELECT DISTINCT api_id FROM rocpd_api_ops) L ON L.api_id = A.id ORDER BY A.id",
    "SELECT '{\"ph\":\"X\",\"pid\":' || P.value || ',\"tid\":' || O.queueId || " NAMED(
        "CASE T.string WHEN 'KernelExecution' THEN '\"kernel\"' WHEN 'Copy' THEN '\"gpu_memcpy\"'"
        " WHEN 'FillBuffer' THEN '\"gpu_memset\"' WHEN 'annotation' THEN '\"gpu_user_annotation\"'"
        " ELSE json_quote(T.string) END",
        "json_quote(D.string)") TS("O.start") DUR("O.[end] - O.start")
    ARGS(LAUNCHED("L.api_id") " || ',\"device\":' || O.gpuId || ',\"stream\":' || O.queueId || "
        IF("T.string = 'annotation'", ",\"annotation\":true"))
    " FROM rocpd_op O JOIN rocpd_string D ON D.id = O.description_id"
    " JOIN rocpd_string T ON T.id = O.opType_id"
    " JOIN rocpd_metadata P ON P.tag = 'prof_gpu_' || O.gpuId"
    " LEFT JOIN rocpd_api_ops L ON L.op_id = O.id ORDER BY O.id",
    "SELECT '{\"ph\":\"C\",\"tid\":0,\"pid\":' || P.value || " NAMED("'\"monitor\"'",
                                                                 "json_quote(M.monitorType)")
    TS("M.start") ARGS("',\"value\":' || M.value")
    " FROM rocpd_monitor M JOIN rocpd_metadata P ON P.tag = CASE M.deviceType WHEN 'gpu' THEN"
    " 'prof_gpu_' || M.deviceId ELSE 'prof_pid' END ORDER BY M.start, M.id",
    ARROWS("L.id", "A.pid", "A.tid", "A.start", "P.value", "O.queueId", "O.start")
    " FROM rocpd_api_ops L JOIN rocpd_api A ON A.id = L.api_id JOIN rocpd_op O ON O.id = L.op_id"
    " JOIN rocpd_metadata P ON P.tag = 'prof_gpu_' || O.gpuId WHERE O.start >= A.start"
    " ORDER BY L.id",
    "SELECT value FROM rocpd_metadata WHERE tag = 'prof_tail'"};

/* Replaces each $E of a query by the epoch. The caller frees the result. */
static char *with_epoch(const char *query, int64_t epoch) {
  enum { DIGITS = 24 };
  char digits[DIGITS];
  size_t count = 0;
  const int bytes = snprintf(digits, sizeof digits, "(%" PRId64 ")", epoch);
  for (const char *at = query; (at = strstr(at, "$E")) != NULL; at += 2) count++;
  char *const made = import_make(strlen(query) + count * DIGITS + 1), *to = made;
  for (const char *at = query; *at;) {
    if (at[0] == '$' && at[1] == 'E') {
      memcpy(to, digits, (size_t)bytes);
      to += bytes;
      at += 2;
    } else {
      *to++ = *at++;
    }
  }
  return made;
}

/* ---- rows that the queries did not give ---- */

/* How to count the rows that a query did not give. */
typedef struct own_check {
  const char *all; /* counts the rows that it should give. NULL: they are not counted */
  /* Counts rows whose thread, name, device or pool is missing, in four columns. Executed only if
     rows are missing. NULL: all are counted as `rest`. */
  const char *missing;
  import_drop_reason rest;
} own_check;

/* The four columns. Each row counts once, for its first reason. */
#define NO_THREAD "sum(t.id IS NULL)"
#define WITH_THREAD(condition) "coalesce(sum(t.id IS NOT NULL AND " condition "), 0)"
#define NO_NAME WITH_THREAD("n.id IS NULL")
#define NO_DEVICE WITH_THREAD("n.id IS NOT NULL AND d.id IS NULL")
#define NO_POOL WITH_THREAD("p.id IS NULL")
#define COUNT(table) "SELECT count(*) FROM " table
#define THREADS " x LEFT JOIN prof_threads t ON t.id = x.thread_id"
#define NAMES " LEFT JOIN prof_names n ON n.id = x.name_id"
#define CHECK_NAMED(table, other)                                                   \
  {                                                                                 \
    .all = COUNT(table),                                                            \
    .missing = "SELECT " NO_THREAD ", " NO_NAME ", 0, 0 FROM " table THREADS NAMES, \
    .rest = (other)                                                                 \
  }

static const own_check own_checks[OWN_PARTS] = {
    [OWN_SCOPES] = CHECK_NAMED("prof_scopes", IMPORT_MISS_NULL_ROW),
    [OWN_KERNELS] = {.all = COUNT("prof_kernels"),
                     .missing = "SELECT " NO_THREAD ", " NO_NAME ", " NO_DEVICE
                                ", 0 FROM prof_kernels" THREADS NAMES
                                " LEFT JOIN prof_devices d ON d.id = t.device_id",
                     .rest = IMPORT_MISS_NULL_ROW},
    [OWN_STEPS] = {.all = COUNT("prof_steps"), .rest = IMPORT_MISS_NO_THREAD},
    [OWN_INSTANTS] = CHECK_NAMED("prof_instants", IMPORT_MISS_NULL_ROW),
    [OWN_COUNTERS] = CHECK_NAMED("prof_counters", IMPORT_MISS_NULL_ROW),
    [OWN_MEMORY] = {.all = COUNT("prof_memory WHERE verb IN ('alloc', 'free', 'oom')"),
                    .missing = "SELECT " NO_THREAD ", 0, 0, " NO_POOL " FROM prof_memory" THREADS
                               " LEFT JOIN prof_pools p ON p.id = x.pool_id"
                               " WHERE x.verb IN ('alloc', 'free', 'oom')",
                    .rest = IMPORT_MISS_NULL_ROW},
    [OWN_ARROWS] = CHECK_NAMED("prof_arrow_ends", IMPORT_MISS_ARROW_END),
    [OWN_LAUNCHES] = {.all = COUNT("prof_launches l LEFT JOIN prof_kernels k ON k.id ="
                                   " l.kernel_id WHERE k.id IS NULL OR"
                                   " k.start_ns >= k.launch_ns"),
                      .rest = IMPORT_MISS_LINK}};

static const own_check rpd_checks[RPD_PARTS] = {
    [RPD_CALLS] = {.all = COUNT("rocpd_api"), .rest = IMPORT_MISS_NO_NAME},
    [RPD_WORK] = {.all = COUNT("rocpd_op"),
                  .missing = "SELECT 0, 0, sum(P.tag IS NULL), 0 FROM rocpd_op O"
                             " LEFT JOIN rocpd_metadata P ON P.tag = 'prof_gpu_' ||"
                             " O.gpuId",
                  .rest = IMPORT_MISS_NO_NAME},
    [RPD_COUNTERS] = {.all = COUNT("rocpd_monitor"), .rest = IMPORT_MISS_NO_DEVICE},
    [RPD_LAUNCHES] = {.all = COUNT("rocpd_api_ops L LEFT JOIN rocpd_api A ON A.id ="
                                   " L.api_id LEFT JOIN rocpd_op O ON O.id = L.op_id"
                                   " WHERE A.id IS NULL OR O.id IS NULL OR"
                                   " O.start >= A.start"),
                      .rest = IMPORT_MISS_LINK}};

/* Counts the rows that the query of this part did not give, by reason. read: how many it gave. */
static void count_missing_rows(const import_reader *reader, bool is_rpd, int part, uint64_t read) {
  static const import_drop_reason reasons[] = {IMPORT_MISS_NO_THREAD, IMPORT_MISS_NO_NAME,
                                               IMPORT_MISS_NO_DEVICE, IMPORT_MISS_NO_POOL};
  const own_check *const check = is_rpd ? &rpd_checks[part] : &own_checks[part];
  uint64_t *const missed = reader->state->counts->missed;
  if (!check->all) return;
  const uint64_t all = (uint64_t)import_database_count(reader->database, check->all);
  uint64_t rest = all > read ? all - read : 0;
  if (rest == 0) return;
  import_rows rows = {reader->database, NULL};
  if (check->missing) rows = import_rows_begin(reader->database, check->missing);
  const bool has_reasons = import_rows_next(&rows);
  for (int i = 0; has_reasons && i < (int)(sizeof reasons / sizeof *reasons); i++) {
    int64_t count = 0;
    import_rows_i64(&rows, i, &count);
    if ((uint64_t)count > rest) count = (int64_t)rest;
    missed[reasons[i]] += (uint64_t)count;
    rest -= (uint64_t)count;
  }
  import_rows_end(&rows);
  missed[check->rest] += rest;
}

/* ---- rows that were deleted or changed ---- */

/* The export's account of what it wrote, in the text behind the events. */
typedef struct own_written {
  uint64_t scopes, unfinished, steps, instants, counters, flow_ends;
} own_written;

/* Reads what precedes a number, and the number. Returns the text behind it, or NULL. */
static const char *read_count(const char *at, const char *before, uint64_t *to) {
  const size_t bytes = strlen(before);
  char *end;
  if (!at || strncmp(at, before, bytes) != 0) return NULL;
  errno = 0;
  *to = strtoull(at + bytes, &end, 10);
  return end > at + bytes && errno == 0 ? end : NULL;
}

static bool read_account(const char *at, own_written *to) {
  at = read_count(at, "\"scopes\":", &to->scopes);
  at = read_count(at, ",\"unfinished\":", &to->unfinished);
  at = read_count(at, ",\"steps\":", &to->steps);
  at = read_count(at, ",\"instants\":", &to->instants);
  at = read_count(at, ",\"counters\":", &to->counters);
  return read_count(at, ",\"flow_ends\":", &to->flow_ends) != NULL;
}

/* The sums over the captures of the database, which each have an account. */
static bool read_written(import_database *database, const char *query, own_written *to) {
  static const char key[] = "\"written\":{";
  import_rows rows = import_rows_begin(database, query);
  const char *at = import_rows_next(&rows) ? import_rows_text(&rows, 0).data : NULL;
  bool is_read = false;
  *to = (own_written){0};
  while (at && (at = strstr(at, key)) != NULL) {
    own_written one;
    at += sizeof key - 1;
    if (!read_account(at, &one)) continue;
    is_read = true;
    to->scopes += one.scopes;
    to->unfinished += one.unfinished;
    to->steps += one.steps;
    to->instants += one.instants;
    to->counters += one.counters;
    to->flow_ends += one.flow_ends;
  }
  import_rows_end(&rows);
  return is_read;
}

static void count_deleted(const import_reader *reader, uint64_t written, const char *query) {
  const uint64_t count = (uint64_t)import_database_count(reader->database, query);
  if (count < written) reader->state->counts->missed[IMPORT_MISS_DELETED] += written - count;
}

/* Counts rows that are read in another form, and rows that were deleted. */
static void count_changed_rows(const import_reader *reader, bool is_rpd) {
  /* NULL is the host. It is also NOT IN an empty table. */
  static const char no_device[] =
      "SELECT (SELECT count(*) FROM prof_counters WHERE device_id IS NOT NULL AND device_id NOT IN"
      " (SELECT id FROM prof_devices)) + (SELECT count(*) FROM prof_memory m JOIN prof_pools p"
      " ON p.id = m.pool_id WHERE p.device_id IS NOT NULL AND p.device_id NOT IN"
      " (SELECT id FROM prof_devices))";
  own_written w;
  if (!is_rpd)
    reader->state->counts->changed[IMPORT_CHANGE_NO_DEVICE] +=
        (uint64_t)import_database_count(reader->database, no_device);
  if (!read_written(reader->database,
                    is_rpd ? "SELECT value FROM rocpd_metadata WHERE tag = 'prof_tail'"
                           : "SELECT value FROM prof_metadata WHERE key = 'chrome_tail'",
                    &w))
    return;
  if (is_rpd) {
    count_deleted(reader, w.scopes + w.unfinished + w.steps + w.instants,
                  "SELECT (SELECT count(*) FROM rocpd_api) + (SELECT count(*) FROM rocpd_op)");
    count_deleted(reader, w.counters, COUNT("rocpd_monitor"));
    return;
  }
  count_deleted(reader, w.scopes + w.unfinished,
                "SELECT (SELECT count(*) FROM prof_scopes) + (SELECT count(*) FROM prof_kernels)");
  count_deleted(reader, w.steps, COUNT("prof_steps"));
  count_deleted(reader, w.instants, COUNT("prof_instants"));
  count_deleted(reader, w.counters, COUNT("prof_counters"));
  count_deleted(reader, w.flow_ends, COUNT("prof_arrow_ends"));
}

/* ---- conversion ---- */

static void read_queries(own_reader *own, bool is_rpd, int64_t epoch) {
  const char *const *const queries = is_rpd ? rpd_queries : own_queries;
  const int count = is_rpd ? RPD_PARTS : OWN_PARTS;
  for (int i = 0; i < count && own->is_good; i++) {
    char *const query = with_epoch(queries[i], epoch);
    const uint64_t read = read_rows(own, query);
    free(query);
    if (own->is_good) count_missing_rows(own->reader, is_rpd, i, read);
  }
}

static void refuse_own(import_result *result, const char *why) {
  result->end = IMPORT_REFUSED;
  snprintf(result->error, sizeof result->error, "is a database that prof dump wrote, but %s", why);
}

static bool check_version(import_database *database, import_result *result) {
  char why[128];
  const int64_t version = import_database_count(
      database, "SELECT CAST(value AS INTEGER) FROM prof_metadata WHERE key = 'format_version'");
  if (version <= FORMAT_VERSION) return true;
  snprintf(why, sizeof why,
           "its version is %" PRId64 "; this prof reads up to %d: update prof to read it", version,
           FORMAT_VERSION);
  refuse_own(result, why);
  return false;
}

void import_own_database_convert(import_reader *reader, import_result *result) {
  import_database *const database = reader->database;
  const bool is_rpd = !import_database_has_table(database, "prof_metadata");
  import_result parsed = {.end = IMPORT_WHOLE};
  if (!import_database_has_json(database)) {
    refuse_own(result, "this libsqlite3 lacks the JSON functions that prof needs to read it");
    return;
  }
  if (!is_rpd && !check_version(database, result)) return;
  own_reader own = {.reader = reader,
                    .json = import_state_json(reader->state),
                    .clean = import_make(import_json_clean_room(PIECE_BYTES)),
                    .is_good = true};
  static const char own_epoch[] =
      "SELECT CAST(value AS INTEGER) FROM prof_metadata WHERE key = 'chrome_epoch_ns'";
  static const char rpd_epoch[] =
      "SELECT (SELECT CAST(value AS INTEGER) FROM rocpd_metadata WHERE tag = 'prof_epoch_ns') -"
      " (SELECT CAST(value AS INTEGER) FROM rocpd_metadata WHERE tag = 'prof_start_ns')";
  read_queries(&own, is_rpd, import_database_count(database, is_rpd ? rpd_epoch : own_epoch));
  if (own.is_good) count_changed_rows(reader, is_rpd);
  import_json_read(own.json, own.clean, import_json_clean_end(&own.cleaner, own.clean));
  import_json_end(own.json, &parsed);
  import_json_destroy(own.json);
  free(own.clean);
  import_state_note_cleaned(reader->state, &own.cleaner);
  if (result->end != IMPORT_REFUSED && parsed.end != IMPORT_WHOLE)
    refuse_own(result, "one of its rows or texts is damaged, or was changed");
}
