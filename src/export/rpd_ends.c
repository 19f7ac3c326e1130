/* RPD: its schema, and what is before and after the rows of events. Opens the database, and writes
   its metadata. In a merged file the captures share the database, and the numbers of their rows
   continue. Called by rpd.c. */
#include <stdio.h>
#include <stdlib.h>

#include "../base/error.h"
#include "../reader/capture.h"
#include "rpd_writer.h"

/* ---- schema ---- */

/* That of rocmProfileData's trace.rpd, version 3: tables, views and indexes by its names and
   columns. RPD's tools read them. */

#define RPD_KEY "integer NOT NULL PRIMARY KEY AUTOINCREMENT"
#define RPD_REFERS(table) "bigint NOT NULL REFERENCES " table " (id) DEFERRABLE INITIALLY DEFERRED"
#define RPD_API_KEY \
  "bigint NOT NULL PRIMARY KEY REFERENCES rocpd_api (id) DEFERRABLE INITIALLY DEFERRED"

static const char rpd_tables[] =
    "CREATE TABLE rocpd_metadata (id " RPD_KEY ", tag varchar(4096) NOT NULL,"
    " value varchar(4096) NOT NULL);"
    "CREATE TABLE rocpd_string (id " RPD_KEY ", string varchar(4096) NOT NULL);"
    "CREATE TABLE rocpd_ustring (id " RPD_KEY ", string varchar(4096) NOT NULL);"
    "CREATE TABLE rocpd_api (id " RPD_KEY ", pid integer NOT NULL, tid integer NOT NULL,"
    " start integer NOT NULL, \"end\" integer NOT NULL,"
    " apiName_id " RPD_REFERS("rocpd_string") ", category_id " RPD_REFERS("rocpd_string")
    ", domain_id " RPD_REFERS("rocpd_string") ", args_id " RPD_REFERS("rocpd_ustring") ");"
    "CREATE TABLE rocpd_copyapi (api_ptr_id " RPD_API_KEY ", stream varchar(18) NOT NULL,"
    " size integer NOT NULL, width integer NOT NULL, height integer NOT NULL,"
    " kind integer NOT NULL, dst varchar(18) NOT NULL, src varchar(18) NOT NULL,"
    " dstDevice integer NOT NULL, srcDevice integer NOT NULL, sync bool NOT NULL,"
    " pinned bool NOT NULL);"
    "CREATE TABLE rocpd_kernelapi (api_ptr_id " RPD_API_KEY ", stream varchar(18) NOT NULL,"
    " gridX integer NOT NULL, gridY integer NOT NULL, gridZ integer NOT NULL,"
    " workgroupX integer NOT NULL, workgroupY integer NOT NULL, workgroupZ integer NOT NULL,"
    " groupSegmentSize integer NOT NULL, privateSegmentSize integer NOT NULL,"
    " kernelName_id " RPD_REFERS("rocpd_string") ");"
    "CREATE TABLE rocpd_op (id " RPD_KEY ", gpuId integer NOT NULL, queueId integer NOT NULL,"
    " sequenceId integer NOT NULL, start integer NOT NULL, \"end\" integer NOT NULL,"
    " description_id " RPD_REFERS("rocpd_string") ", opType_id " RPD_REFERS("rocpd_string") ");"
    "CREATE TABLE rocpd_api_ops (id " RPD_KEY ", api_id " RPD_REFERS("rocpd_api")
    ", op_id " RPD_REFERS("rocpd_op") ");"
    "CREATE TABLE rocpd_monitor (id " RPD_KEY ", deviceType varchar(16) NOT NULL,"
    " deviceId integer NOT NULL, monitorType varchar(16) NOT NULL, start integer NOT NULL,"
    " \"end\" integer NOT NULL, value varchar(255) NOT NULL);"
    "CREATE TABLE rocpd_counter (id " RPD_KEY ", value real NOT NULL,"
    " op_id " RPD_REFERS("rocpd_op") ", name_id " RPD_REFERS("rocpd_string") ");"
    "CREATE TABLE rocpd_stackframe (id " RPD_KEY ", api_ptr_id " RPD_REFERS("rocpd_api")
    ", depth integer NOT NULL, name_id " RPD_REFERS("rocpd_string") ");";

/* DuckDB parses these views itself: there end is a keyword, each JOIN has a condition, and a
   quotient of integers is a fraction. */
#define RPD_STRIDE(tag) "(SELECT CAST(value AS integer) FROM rocpd_metadata WHERE tag = '" tag "')"
#define RPD_NODE(column, tag) \
  " CAST((" column " - " column " % " RPD_STRIDE(tag) ") / " RPD_STRIDE(tag) " AS integer)" \
  " AS node,"
#define RPD_API_TEXTS                                                                       \
  " start, \"end\", D.string AS domain, C.string AS category, N.string AS apiName,"         \
  " U.string AS args FROM rocpd_api A JOIN rocpd_string D ON D.id = A.domain_id"            \
  " JOIN rocpd_string C ON C.id = A.category_id JOIN rocpd_string N ON N.id = A.apiName_id" \
  " JOIN rocpd_ustring U ON U.id = A.args_id;"
#define RPD_OP_TEXTS                                                                         \
  " sequenceId, start, \"end\", D.string AS description, T.string AS opType FROM rocpd_op O" \
  " JOIN rocpd_string D ON D.id = O.description_id JOIN rocpd_string T ON T.id = O.opType_id;"
#define RPD_COPY " stream, size, width, height, kind, dst, src, dstDevice, srcDevice, sync, pinned"

/* After the rows: to fill an index at its end is faster. */
static const char rpd_views[] =
    "CREATE INDEX rocpd_strin_string_c7b9cd_idx ON rocpd_string (string);"
    "CREATE INDEX rocpd_ustri_string_84d4a7_idx ON rocpd_ustring (string);"
    "CREATE VIEW api AS SELECT A.id, pid, tid," RPD_API_TEXTS
    "CREATE VIEW op AS SELECT O.id, gpuId, queueId," RPD_OP_TEXTS
    "CREATE VIEW busy AS SELECT gpuId, sum(\"end\" - start) AS GpuTime, WallTime,"
    " sum(\"end\" - start) * 1.0 / WallTime AS Busy FROM rocpd_op CROSS JOIN"
    " (SELECT max(\"end\") - min(start) AS WallTime FROM rocpd_op) GROUP BY gpuId, WallTime;"
    "CREATE VIEW top AS SELECT N.string AS Name, count(*) AS TotalCalls,"
    " sum(O.\"end\" - O.start) / 1000 AS TotalDuration_us,"
    " sum(O.\"end\" - O.start) / count(*) / 1000.0 AS Ave_us,"
    " sum(O.\"end\" - O.start) * 100.0 / (SELECT sum(\"end\" - start) FROM rocpd_op) AS Percentage"
    " FROM rocpd_op O JOIN rocpd_string D ON D.id = O.description_id"
    " JOIN rocpd_string N ON N.id = CASE D.string WHEN '' THEN O.opType_id ELSE D.id END"
    " GROUP BY N.string ORDER BY TotalDuration_us DESC;"
    "CREATE VIEW kernel AS SELECT O.id, gpuId, queueId, sequenceId, start, \"end\","
    " \"end\" - start AS duration, stream, gridX, gridY, gridz, workgroupX, workgroupY, workgroupZ,"
    " groupSegmentSize, privateSegmentSize, N.string AS kernelName FROM rocpd_api_ops L"
    " JOIN rocpd_op O ON O.id = L.op_id JOIN rocpd_kernelapi K ON K.api_ptr_id = L.api_id"
    " JOIN rocpd_string N ON N.id = K.kernelName_id;"
    "CREATE VIEW copy AS SELECT A.id, pid, tid, start, \"end\", N.string AS apiName," RPD_COPY
    " FROM rocpd_copyapi C JOIN rocpd_api A ON A.id = C.api_ptr_id"
    " JOIN rocpd_string N ON N.id = A.apiName_id;"
    "CREATE VIEW copyop AS SELECT O.id, gpuId, queueId, sequenceId, O.start, O.\"end\","
    " O.\"end\" - O.start AS duration," RPD_COPY ", N.string AS apiName FROM rocpd_api_ops L"
    " JOIN rocpd_op O ON O.id = L.op_id JOIN rocpd_copyapi C ON C.api_ptr_id = L.api_id"
    " JOIN rocpd_api A ON A.id = L.api_id JOIN rocpd_string N ON N.id = A.apiName_id;"
    "CREATE VIEW stackframe AS SELECT A.id, N.string, depth, M.string FROM rocpd_stackframe F"
    " JOIN rocpd_api A ON A.id = F.api_ptr_id JOIN rocpd_string N ON N.id = A.apiName_id"
    " JOIN rocpd_string M ON M.id = F.name_id;"
    "CREATE VIEW napi AS SELECT A.id," RPD_NODE("pid", "pid_stride")
    " pid % " RPD_STRIDE("pid_stride") " AS pid, tid % " RPD_STRIDE("pid_stride") " AS tid,"
    RPD_API_TEXTS
    "CREATE VIEW nop AS SELECT O.id," RPD_NODE("gpuId", "gpu_stride")
    " gpuId % " RPD_STRIDE("gpu_stride") " AS gpuId, queueId % " RPD_STRIDE("gpu_stride")
    " AS queueId," RPD_OP_TEXTS;

/* ---- metadata ---- */

static void put_tag(prof_i_rpd_writer *w, const char *tag, prof_i_text value) {
  prof_i_insert_put_text(w->inserts.metadata, prof_i_text_from(tag));
  prof_i_insert_put_text(w->inserts.metadata, prof_i_event_text_clean(&w->texts, value));
  prof_i_insert_row(w->inserts.metadata);
}

static void put_tag_number(prof_i_rpd_writer *w, const char *tag, uint64_t value) {
  char digits[32];
  snprintf(digits, sizeof digits, "%llu", (unsigned long long)value);
  put_tag(w, tag, prof_i_text_from(digits));
}

static void put_losses(prof_i_rpd_writer *w, const uint64_t *counts) {
  for (int i = 0; i < PROF_LOSS_COUNT; i++) {
    char tag[64];
    snprintf(tag, sizeof tag, "prof_lost_%s", prof_loss_name(i));
    if (counts[i]) put_tag_number(w, tag, counts[i]);
  }
}

static void put_metadata(prof_i_export *run) {
  prof_i_rpd_writer *const w = run->state;
  const uint64_t before_ns = run->options->place ? run->options->place->offset_ns : 0;
  put_tag(w, "gpu_stride", prof_i_text_from("1000"));
  put_tag(w, "pid_stride", prof_i_text_from("10000000"));
  put_tag(w, "schema_version", prof_i_text_from("3"));
  put_tag(w, "session_count", prof_i_text_from("1"));
  put_tag(w, "prof_version", prof_i_text_from(prof_version()));
  put_tag_number(w, "prof_pid", run->info.pid);
  put_tag_number(w, "prof_start_ns", run->info.start_ns - before_ns);
  put_tag_number(w, "prof_start_unix_ns", run->info.start_unix_ns - before_ns);
  put_tag_number(w, "prof_epoch_ns", prof_i_event_text_epoch_ns(&w->texts) - before_ns);
  if (w->shared) return;
  put_losses(w, run->info.lost_count);
  put_tag(w, "prof_head", prof_i_event_text_head(&w->texts));
}

/* The first capture creates the tables. */
static int open_database(prof_i_export *run) {
  prof_i_rpd_writer *const w = run->state;
  const int status = prof_i_sqlite_open(run->sink, &w->database);
  if (status != PROF_OK) return status;
  prof_i_sqlite_run(w->database, rpd_tables);
#define PREPARE(name, columns, count) \
  w->inserts.name = prof_i_insert_begin(w->database, columns, count);
  PROF_I_RPD_INSERTS(PREPARE)
#undef PREPARE
  if (!w->shared) return PROF_OK;
  w->shared->database = w->database;
  w->shared->inserts = w->inserts;
  return PROF_OK;
}

/* Of a further capture. */
static void take_database(prof_i_rpd_writer *w) {
  w->database = w->shared->database;
  w->inserts = w->shared->inserts;
  w->before = w->shared->counts;
  w->argument_count = w->before.arguments;
  w->api_id = w->before.apis;
  w->op_id = w->before.ops;
  w->gpus = w->shared->gpus;
  w->gpu_room = w->shared->gpu_room;
  w->shared->gpus = NULL; /* until count_rows() */
}

/* The next capture's numbers are behind those of this one. */
static void count_rows(prof_i_rpd_writer *w) {
  w->shared->counts = (prof_i_rpd_counts){.strings = w->before.strings + w->string_ids.count,
                                          .ustrings = w->before.ustrings + w->ustring_ids.count,
                                          .arguments = w->argument_count,
                                          .apis = w->api_id,
                                          .ops = w->op_id};
  w->shared->gpus = w->gpus;
  w->shared->gpu_room = w->gpu_room;
  w->gpus = NULL;
  w->gpu_room = 0;
}

static int begin_texts(prof_i_export *run) {
  prof_i_rpd_writer *const w = run->state;
  int status = prof_i_event_text_init(&w->texts, run, w->shared ? &w->shared->texts : NULL);
  if (status == PROF_OK) status = prof_i_work_links_init(&w->links, run->trace);
  if (status != PROF_OK) return status;
  w->sites = calloc((size_t)prof_i_trace_site_count(run->trace) + 1, sizeof *w->sites);
  w->works = calloc((size_t)w->links.launches.count + 1, sizeof *w->works);
  return w->sites && w->works ? PROF_OK : prof_i_sqlite_fail_no_memory(run->sink->target.path);
}

int prof_i_rpd_export_begin(prof_i_export *run) {
  prof_i_rpd_writer *const w = run->state;
  const bool is_first = prof_i_export_is_first(run);
  int status = PROF_OK;
  w->shared = run->options->place ? run->options->place->shared : NULL;
  if (is_first)
    status = open_database(run);
  else
    take_database(w);
  if (status == PROF_OK) status = begin_texts(run);
  if (status != PROF_OK) return status;
  if (is_first) put_metadata(run);
  if (w->shared) prof_i_merged_texts_add_head(&w->shared->texts, &w->texts);
  for (int i = 0; i < PROF_LOSS_COUNT && w->shared; i++)
    w->shared->lost_count[i] += run->info.lost_count[i];
  w->empty = prof_i_rpd_string_id(w, prof_i_text_from(""));
  w->marker = prof_i_rpd_string_id(w, prof_i_text_from("UserMarker"));
  w->empty_argument = prof_i_rpd_ustring_id(w, prof_i_text_from(""));
  return w->empty && w->marker && w->empty_argument
             ? prof_i_rpd_writer_status(w)
             : prof_i_sqlite_fail_no_memory(run->sink->target.path);
}

static void put_gpus(prof_i_rpd_writer *w) {
  for (uint32_t i = 0; i < w->gpu_room; i++) {
    char tag[64];
    snprintf(tag, sizeof tag, "prof_gpu_%u", i);
    if (w->gpus[i].device.type) put_tag_number(w, tag, w->gpus[i].pid);
  }
}

/* The end of the file. */
static int finish_database(prof_i_export *run) {
  prof_i_rpd_writer *const w = run->state;
  put_gpus(w);
  if (w->shared) {
    put_losses(w, w->shared->lost_count);
    put_tag(w, "prof_head", prof_i_merged_head(&w->shared->texts));
    put_tag(w, "prof_tail", prof_i_merged_tail(&w->shared->texts));
  } else {
    put_tag(w, "prof_tail", prof_i_event_text_tail(&w->texts, &w->counts, run->findings));
  }
  const int status = prof_i_rpd_writer_status(w);
  if (status != PROF_OK) return status;
  prof_i_sqlite_run(w->database, rpd_views);
  prof_i_sqlite *const database = w->database;
  w->database = NULL;
  if (w->shared) w->shared->database = NULL;
  return prof_i_sqlite_commit(database);
}

int prof_i_rpd_export_end(prof_i_export *run) {
  prof_i_rpd_writer *const w = run->state;
  int status = prof_i_rpd_put_links(run);
  if (w->shared)
    prof_i_merged_texts_add_tail(&w->shared->texts, &w->texts, &w->counts, run->findings);
  if (status == PROF_OK) status = prof_i_rpd_writer_status(w);
  if (status == PROF_OK && prof_i_export_is_last(run)) status = finish_database(run);
  if (w->shared) count_rows(w);
  return status;
}

void prof_i_rpd_export_destroy_shared(void *user) {
  prof_i_rpd_shared *const shared = user;
  prof_i_sqlite_abandon(shared->database);
  prof_i_merged_texts_fini(&shared->texts);
  free(shared->gpus);
}

void prof_i_rpd_export_destroy(prof_i_export *run) {
  prof_i_rpd_writer *const w = run->state;
  if (!w->shared) prof_i_sqlite_abandon(w->database);
  prof_i_event_text_fini(&w->texts);
  prof_i_work_links_fini(&w->links);
  prof_i_name_ids_fini(&w->string_ids);
  prof_i_name_ids_fini(&w->ustring_ids);
  free(w->sites);
  free(w->works);
  free(w->gpus);
}
