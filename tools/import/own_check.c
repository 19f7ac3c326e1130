/* See own_check.h. */
#include "own_check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

static const own_check own_checks[IMPORT_OWN_PARTS] = {
    [IMPORT_OWN_SCOPES] = CHECK_NAMED("prof_scopes", IMPORT_MISS_NULL_ROW),
    [IMPORT_OWN_KERNELS] = {.all = COUNT("prof_kernels"),
                            .missing = "SELECT " NO_THREAD ", " NO_NAME ", " NO_DEVICE
                                       ", 0 FROM prof_kernels" THREADS NAMES
                                       " LEFT JOIN prof_devices d ON d.id = t.device_id",
                            .rest = IMPORT_MISS_NULL_ROW},
    [IMPORT_OWN_STEPS] = {.all = COUNT("prof_steps"), .rest = IMPORT_MISS_NO_THREAD},
    [IMPORT_OWN_INSTANTS] = CHECK_NAMED("prof_instants", IMPORT_MISS_NULL_ROW),
    [IMPORT_OWN_COUNTERS] = CHECK_NAMED("prof_counters", IMPORT_MISS_NULL_ROW),
    [IMPORT_OWN_MEMORY] = {.all = COUNT("prof_memory WHERE verb IN ('alloc', 'free', 'oom')"),
                           .missing =
                               "SELECT " NO_THREAD ", 0, 0, " NO_POOL " FROM prof_memory" THREADS
                               " LEFT JOIN prof_pools p ON p.id = x.pool_id"
                               " WHERE x.verb IN ('alloc', 'free', 'oom')",
                           .rest = IMPORT_MISS_NULL_ROW},
    [IMPORT_OWN_ARROWS] = CHECK_NAMED("prof_arrow_ends", IMPORT_MISS_ARROW_END),
    [IMPORT_OWN_LAUNCHES] = {.all = COUNT("prof_launches l LEFT JOIN prof_kernels k ON k.id ="
                                          " l.kernel_id WHERE k.id IS NULL OR"
                                          " k.start_ns >= k.launch_ns"),
                             .rest = IMPORT_MISS_LINK}};

static const own_check rpd_checks[IMPORT_OWN_RPD_PARTS] = {
    [IMPORT_OWN_RPD_CALLS] = {.all = COUNT("rocpd_api"), .rest = IMPORT_MISS_NO_NAME},
    [IMPORT_OWN_RPD_WORK] = {.all = COUNT("rocpd_op"),
                             .missing = "SELECT 0, 0, sum(P.tag IS NULL), 0 FROM rocpd_op O"
                                        " LEFT JOIN rocpd_metadata P ON P.tag = 'prof_gpu_' ||"
                                        " O.gpuId",
                             .rest = IMPORT_MISS_NO_NAME},
    [IMPORT_OWN_RPD_COUNTERS] = {.all = COUNT("rocpd_monitor"), .rest = IMPORT_MISS_NO_DEVICE},
    [IMPORT_OWN_RPD_LAUNCHES] = {.all = COUNT("rocpd_api_ops L LEFT JOIN rocpd_api A ON A.id ="
                                              " L.api_id LEFT JOIN rocpd_op O ON O.id = L.op_id"
                                              " WHERE A.id IS NULL OR O.id IS NULL OR"
                                              " O.start >= A.start"),
                                 .rest = IMPORT_MISS_LINK}};

void import_own_check_part(const import_reader *reader, bool is_rpd, int part, uint64_t read) {
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

void import_own_check_all(const import_reader *reader, bool is_rpd) {
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
