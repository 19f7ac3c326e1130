/* The schema of rocmProfileData's trace.rpd, version 3: tables, views and indexes by its names and
   columns. RPD's tools read them. */
#ifndef PROF_EXPORT_RPD_SCHEMA_H
#define PROF_EXPORT_RPD_SCHEMA_H

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

#define RPD_STRIDE(tag) "(SELECT value FROM rocpd_metadata WHERE tag = '" tag "')"
#define RPD_API_TEXTS                                                                       \
  " start, end, D.string AS domain, C.string AS category, N.string AS apiName,"             \
  " U.string AS args FROM rocpd_api A JOIN rocpd_string D ON D.id = A.domain_id"            \
  " JOIN rocpd_string C ON C.id = A.category_id JOIN rocpd_string N ON N.id = A.apiName_id" \
  " JOIN rocpd_ustring U ON U.id = A.args_id;"
#define RPD_OP_TEXTS                                                                     \
  " sequenceId, start, end, D.string AS description, T.string AS opType FROM rocpd_op O" \
  " JOIN rocpd_string D ON D.id = O.description_id JOIN rocpd_string T ON T.id = O.opType_id;"
#define RPD_COPY " stream, size, width, height, kind, dst, src, dstDevice, srcDevice, sync, pinned"

/* After the rows: to fill an index at its end is faster. */
static const char rpd_views[] =
    "CREATE INDEX rocpd_strin_string_c7b9cd_idx ON rocpd_string (string);"
    "CREATE INDEX rocpd_ustri_string_84d4a7_idx ON rocpd_ustring (string);"
    "CREATE VIEW api AS SELECT A.id, pid, tid," RPD_API_TEXTS
    "CREATE VIEW op AS SELECT O.id, gpuId, queueId," RPD_OP_TEXTS
    "CREATE VIEW busy AS SELECT gpuId, sum(end - start) AS GpuTime, WallTime,"
    " sum(end - start) * 1.0 / WallTime AS Busy FROM rocpd_op JOIN (SELECT max(end) - min(start)"
    " AS WallTime FROM rocpd_op) GROUP BY gpuId;"
    "CREATE VIEW top AS SELECT N.string AS Name, count(*) AS TotalCalls,"
    " sum(O.end - O.start) / 1000 AS TotalDuration_us,"
    " sum(O.end - O.start) / count(*) / 1000.0 AS Ave_us,"
    " sum(O.end - O.start) * 100.0 / (SELECT sum(end - start) FROM rocpd_op) AS Percentage"
    " FROM rocpd_op O JOIN rocpd_string D ON D.id = O.description_id"
    " JOIN rocpd_string N ON N.id = CASE D.string WHEN '' THEN O.opType_id ELSE D.id END"
    " GROUP BY N.string ORDER BY TotalDuration_us DESC;"
    "CREATE VIEW kernel AS SELECT O.id, gpuId, queueId, sequenceId, start, end,"
    " end - start AS duration, stream, gridX, gridY, gridz, workgroupX, workgroupY, workgroupZ,"
    " groupSegmentSize, privateSegmentSize, N.string AS kernelName FROM rocpd_api_ops L"
    " JOIN rocpd_op O ON O.id = L.op_id JOIN rocpd_kernelapi K ON K.api_ptr_id = L.api_id"
    " JOIN rocpd_string N ON N.id = K.kernelName_id;"
    "CREATE VIEW copy AS SELECT A.id, pid, tid, start, end, N.string AS apiName," RPD_COPY
    " FROM rocpd_copyapi C JOIN rocpd_api A ON A.id = C.api_ptr_id"
    " JOIN rocpd_string N ON N.id = A.apiName_id;"
    "CREATE VIEW copyop AS SELECT O.id, gpuId, queueId, sequenceId, O.start, O.end,"
    " O.end - O.start AS duration," RPD_COPY ", N.string AS apiName FROM rocpd_api_ops L"
    " JOIN rocpd_op O ON O.id = L.op_id JOIN rocpd_copyapi C ON C.api_ptr_id = L.api_id"
    " JOIN rocpd_api A ON A.id = L.api_id JOIN rocpd_string N ON N.id = A.apiName_id;"
    "CREATE VIEW stackframe AS SELECT A.id, N.string, depth, M.string FROM rocpd_stackframe F"
    " JOIN rocpd_api A ON A.id = F.api_ptr_id JOIN rocpd_string N ON N.id = A.apiName_id"
    " JOIN rocpd_string M ON M.id = F.name_id;"
    "CREATE VIEW napi AS SELECT A.id, pid / " RPD_STRIDE("pid_stride") " AS node,"
    " pid % " RPD_STRIDE("pid_stride") " AS pid, tid % " RPD_STRIDE("pid_stride") " AS tid,"
    RPD_API_TEXTS
    "CREATE VIEW nop AS SELECT O.id, gpuId / " RPD_STRIDE("gpu_stride") " AS node,"
    " gpuId % " RPD_STRIDE("gpu_stride") " AS gpuId, queueId % " RPD_STRIDE("gpu_stride")
    " AS queueId," RPD_OP_TEXTS;

#endif
