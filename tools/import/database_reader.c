/* What the readers of databases share: processes, GPUs and side tables. See database.h. */
#include "database.h"

#include <stdio.h>
#include <stdlib.h>

#include "internal.h"

/* ---- rows beside others ---- */

static void read_key(import_side_query *side) {
  do side->is_at_row = import_rows_next(&side->rows);
  while (side->is_at_row && !import_rows_i64(&side->rows, 0, &side->key));
}

import_side_query import_side_query_begin(const import_reader *reader, const char *query) {
  import_side_query side = {.rows = {reader->database, NULL}};
  if (!query) return side;
  side.rows = import_rows_begin(reader->database, query);
  read_key(&side);
  return side;
}

bool import_side_query_find(import_side_query *side, int64_t key) {
  while (side->is_at_row && side->key < key) read_key(side);
  return side->is_at_row && side->key == key;
}

void import_side_query_next(import_side_query *side) { read_key(side); }

void import_side_query_end(import_side_query *side) { import_rows_end(&side->rows); }

/* ---- the reader ---- */

void import_reader_convert_event(import_reader *reader) {
  import_kineto_event(reader->state, reader->event);
}

int64_t import_reader_gpu(import_reader *reader, int64_t owner, int64_t number) {
  enum { FIRST_NUMBER = -1000 }; /* no process has such a number */
  import_gpu *it, wanted = {.key = {owner, number}};
  HASH_FIND(hh, reader->gpus, &wanted.key, sizeof wanted.key, it);
  if (it) return it->row;
  it = import_make(sizeof *it);
  it->key = wanted.key;
  it->row = FIRST_NUMBER - (int64_t)HASH_COUNT(reader->gpus);
  HASH_ADD(hh, reader->gpus, key, sizeof it->key, it);
  import_devices_note(&reader->state->devices, it->row, number);
  if (owner == INT64_MIN) {
    char name[32]; /* its counters stand beside threads */
    snprintf(name, sizeof name, "GPU %lld", (long long)number);
    import_threads_name(&reader->state->threads, (import_thread_id){it->row, INT64_MIN + 1},
                        (import_text){name, strlen(name)});
  } else {
    import_process *const process = import_devices_process(&reader->state->devices, it->row);
    process->has_owner = true;
    process->owner = owner;
  }
  return it->row;
}

/* ---- processes and machines of merged databases ---- */

static uint32_t number_of_id(import_numbered_id **all, int64_t number, uint32_t value,
                             bool *is_first_out) {
  import_numbered_id *it;
  HASH_FIND(hh, *all, &number, sizeof number, it);
  *is_first_out = !it;
  if (it) return it->value;
  it = import_make(sizeof *it);
  it->number = number;
  it->value = value;
  HASH_ADD(hh, *all, number, sizeof it->number, it);
  return value;
}

uint32_t import_reader_owner(import_reader *reader, int64_t pid, uint32_t group) {
  bool is_first;
  return number_of_id(&reader->processes, pid, group, &is_first);
}

uint32_t import_reader_machine(import_reader *reader, int64_t number, bool *is_first_out) {
  return number_of_id(&reader->machines, number, HASH_COUNT(reader->machines), is_first_out);
}

static void free_ids(import_numbered_id *all) {
  import_numbered_id *it = all;
  HASH_CLEAR(hh, all);
  for (import_numbered_id *next; it; it = next) {
    next = it->hh.next;
    free(it);
  }
}

static void free_gpus(import_reader *reader) {
  import_gpu *it = reader->gpus;
  HASH_CLEAR(hh, reader->gpus);
  for (import_gpu *next; it; it = next) {
    next = it->hh.next;
    free(it);
  }
}

void import_reader_note_missing(import_reader *reader, const char *const *tables, size_t count,
                                const char *suffix) {
  char table[IMPORT_SUFFIX_BYTES + 64], query[IMPORT_QUERY_BYTES];
  uint64_t all = 0;
  for (size_t i = 0; i < count; i++) {
    snprintf(table, sizeof table, "%s%s", tables[i], suffix);
    snprintf(query, sizeof query, "SELECT count(*) FROM [%s]", table);
    if (import_database_has_table(reader->database, table))
      all += (uint64_t)import_database_count(reader->database, query);
  }
  if (all > reader->side_query_count)
    reader->state->counts->missed[IMPORT_MISS_ORPHAN] += all - reader->side_query_count;
  reader->side_query_count = 0;
}

static bool table_is_known(import_text name, const char *const *tables, size_t count,
                           const char *suffix) {
  char known[IMPORT_SUFFIX_BYTES + 64];
  for (size_t i = 0; i < count; i++) {
    snprintf(known, sizeof known, "%s%s", tables[i], suffix);
    if (import_text_is(name, known)) return true;
  }
  return false;
}

static void miss_table(import_reader *reader, import_text name) {
  import_counts *const c = reader->state->counts;
  char query[IMPORT_QUERY_BYTES];
  if (memchr(name.data, ']', name.bytes) || name.bytes > IMPORT_SUFFIX_BYTES) return;
  snprintf(query, sizeof query, "SELECT count(*) FROM [%.*s]", (int)name.bytes, name.data);
  const int64_t count = import_database_count(reader->database, query);
  if (count > 0 && c->missed[IMPORT_MISS_TABLE] == 0)
    snprintf(c->table, sizeof c->table, "%.*s",
             (int)(name.bytes < sizeof c->table ? name.bytes : sizeof c->table - 1), name.data);
  c->missed[IMPORT_MISS_TABLE] += (uint64_t)count;
}

void import_reader_check_schema(import_reader *reader, const char *const *tables, size_t count,
                                const char *suffix) {
  const size_t suffix_bytes = strlen(suffix);
  import_rows rows = import_rows_begin(
      reader->database,
      "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
      " ORDER BY name");
  while (import_rows_next(&rows)) {
    const import_text name = import_rows_text(&rows, 0);
    const bool is_of_group =
        name.bytes >= suffix_bytes &&
        memcmp(name.data + name.bytes - suffix_bytes, suffix, suffix_bytes) == 0;
    if (is_of_group && !table_is_known(name, tables, count, suffix)) miss_table(reader, name);
  }
  import_rows_end(&rows);
}

/* ---- the way ---- */

/* Names the tables that the file has instead: "rocpd_x, y, ...". */
static void refuse_schema(import_database *database, import_result *result) {
  int used = snprintf(
      result->error, sizeof result->error,
      "is an SQLite database, but none that prof reads: it has no table prof_metadata (prof), "
      "rocpd_api (rpd), rocpd_region or rocpd_kernel_dispatch (rocprofv3); its tables are:");
  import_rows rows = import_rows_begin(
      database, "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name LIMIT 8");
  int count = 0;
  for (; import_rows_next(&rows) && used + 64 < (int)sizeof result->error; count++) {
    const import_text name = import_rows_text(&rows, 0);
    used += snprintf(result->error + used, sizeof result->error - (size_t)used, "%s %.*s",
                     count ? "," : "", (int)(name.bytes < 40 ? name.bytes : 40), name.data);
  }
  import_rows_end(&rows);
  if (count == 0)
    snprintf(result->error, sizeof result->error, "is an SQLite database without any table");
  result->end = IMPORT_REFUSED;
}

void import_database_read(import_state *state, const char *path, const char *folder,
                          import_result *result) {
  char suffix[IMPORT_SUFFIX_BYTES] = "";
  uint32_t groups = 0;
  import_database *const database = import_database_open(path, folder, result);
  if (!database) return;
  import_reader reader = {.database = database, .state = state};
  reader.event = import_make(sizeof *reader.event);
  const bool is_own = import_own_database_is(database);
  state->devices.is_shared = !is_own;
  if (is_own)
    import_own_database_convert(&reader, result);
  else if (import_rpd_is(database))
    import_rpd_convert(&reader);
  else
    for (; import_rocpd_next(database, groups == 0, suffix); groups++)
      import_rocpd_convert(&reader, suffix, groups);
  if (result->end != IMPORT_REFUSED) {
    result->end = IMPORT_WHOLE;
    if (groups == 0 && !is_own && !import_rpd_is(database)) refuse_schema(database, result);
  }
  import_database_close(database);
  import_event_fini(reader.event);
  free(reader.event);
  free_gpus(&reader);
  free_ids(reader.processes);
  free_ids(reader.machines);
}
