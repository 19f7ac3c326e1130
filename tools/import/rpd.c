/* Reads trace.rpd of rocmProfileData. Tables: rocpd_api has the calls, rocpd_op the work of GPUs,
   rocpd_api_ops the links from calls to launched work, rocpd_string the names. */
#include <prof/trace.h>
#include <stdio.h>

#include "database.h"
#include "internal.h"

static const char *const known_tables[] = {"rocpd_metadata",   "rocpd_string",  "rocpd_ustring",
                                           "rocpd_api",        "rocpd_hsaApi",  "rocpd_op",
                                           "rocpd_api_ops",    "rocpd_monitor", "rocpd_counter",
                                           "rocpd_stackframe", "rocpd_copyapi", "rocpd_kernelapi"};

bool import_rpd_is(import_database *database) {
  return import_database_has_table(database, "rocpd_api") &&
         import_database_has_table(database, "rocpd_string");
}

static bool reader_has_table(const import_reader *reader, const char *table) {
  return import_database_has_table(reader->database, table);
}

/* ---- calls ---- */

enum call_column {
  CALL_ID,
  CALL_PID,
  CALL_TID,
  CALL_START,
  CALL_END,
  CALL_NAME,
  CALL_DOMAIN,
  CALL_CATEGORY,
  CALL_ARGS
};

/* Rows of other tables that refer to a call by its number. */
typedef struct call_side_queries {
  import_side_query kernels, copies, frames;
} call_side_queries;

static const char kernels_query[] =
    "SELECT K.api_ptr_id, N.string, K.stream, K.gridX, K.gridY, K.gridZ, K.workgroupX,"
    " K.workgroupY, K.workgroupZ, K.groupSegmentSize, K.privateSegmentSize FROM rocpd_kernelapi K"
    " LEFT JOIN rocpd_string N ON N.id = K.kernelName_id ORDER BY K.api_ptr_id";
static const char copies_query[] =
    "SELECT C.api_ptr_id, C.kind, N.string, C.stream, C.size, C.width, C.height, C.dst, C.src,"
    " C.dstDevice, C.srcDevice, C.sync, C.pinned FROM rocpd_copyapi C"
    " LEFT JOIN rocpd_string N ON N.id = C.kind ORDER BY C.api_ptr_id";
static const char frames_query[] =
    "SELECT F.api_ptr_id, N.string FROM rocpd_stackframe F"
    " LEFT JOIN rocpd_string N ON N.id = F.name_id ORDER BY F.api_ptr_id, F.depth, F.id";

/* hipMemcpyKind. Writers of one version store the number of a string instead. */
static void put_copy_kind(import_event *event, const import_rows *rows, int kind, int name) {
  static const char *const kinds[] = {"HostToHost", "HostToDevice", "DeviceToHost",
                                      "DeviceToDevice", "Default"};
  const import_text text = import_rows_text(rows, name);
  int64_t number;
  if (!import_rows_i64(rows, kind, &number))
    import_event_add_column(event, "kind", rows, kind);
  else if (import_text_begins(text, "MEMORY_COPY_"))
    import_event_add_text(event, "kind", text);
  else if (number >= 0 && number < (int64_t)(sizeof kinds / sizeof *kinds))
    import_event_add_text(event, "kind", (import_text){kinds[number], strlen(kinds[number])});
  else
    import_event_add_i64(event, "kind", number);
}

static void put_kernel(import_reader *reader, import_side_query *side, int64_t id) {
  import_event *const event = reader->event;
  if (!import_side_query_find(side, id)) return;
  import_event_add_text(event, "kernel", import_rows_text(&side->rows, 1));
  import_event_add_column(event, "stream", &side->rows, 2);
  import_event_add_dims(event, "grid", &side->rows, 3);
  import_event_add_dims(event, "block", &side->rows, 6);
  import_event_add_column(event, "shared memory", &side->rows, 9);
  import_event_add_column(event, "private memory", &side->rows, 10);
  reader->side_query_count++;
}

static void put_copy(import_reader *reader, import_side_query *side, int64_t id) {
  static const char *const keys[] = {"stream", "bytes", "width", "height", "dst", "src"};
  static const char *const more[] = {"dst device", "src device", "sync", "pinned"};
  import_event *const event = reader->event;
  if (!import_side_query_find(side, id)) return;
  put_copy_kind(event, &side->rows, 1, 2);
  for (int i = 0; i < 6; i++) {
    const bool is_size = i == 2 || i == 3; /* of copies in two dimensions alone */
    if (is_size)
      import_event_add_nonzero(event, keys[i], &side->rows, 3 + i);
    else
      import_event_add_column(event, keys[i], &side->rows, 3 + i);
  }
  for (int i = 0; i < 4; i++) import_event_add_column(event, more[i], &side->rows, 9 + i);
  reader->side_query_count++;
}

/* A stack in torch's order: the innermost frame first. */
static void put_stack_frames(import_reader *reader, import_side_query *side, int64_t id) {
  enum { STACK_BYTES_MAX = 6144 }; /* of frames.c */
  char stack[STACK_BYTES_MAX];
  size_t used = 0;
  for (; import_side_query_find(side, id); import_side_query_next(side)) {
    const import_text frame = import_rows_text(&side->rows, 1);
    reader->side_query_count++;
    if (used + frame.bytes + 1 >= sizeof stack) {
      reader->event->is_cut = true;
      continue;
    }
    if (used) stack[used++] = ';';
    for (size_t i = 0; i < frame.bytes; i++) {
      stack[used] = frame.data[i];
      if (stack[used] == ';') stack[used] = ',';
      used++;
    }
  }
  import_event_add_text(reader->event, PROF_STACK_KEY, (import_text){stack, used});
}

static const struct {
  const char *prefix, *domain, *category;
} calls[] = {{"hip", "hip", "hip_runtime"},
             {"hsa_", "hsa", "hsa_runtime"},
             {"cuda", "cuda", "cuda_runtime"}};

/* A range of the program keeps its domain, unless that is a category of work on a GPU. */
static import_text marker_category(import_text name, import_text domain) {
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
    const bool is_it = domain.bytes ? import_text_is(domain, calls[i].domain)
                                    : import_text_begins(name, calls[i].prefix);
    if (is_it) return (import_text){calls[i].category, strlen(calls[i].category)};
  }
  if (domain.bytes && import_device_kind(domain) == IMPORT_KIND_NONE) return domain;
  return (import_text){"user_annotation", 15};
}

/* A range or a mark. Its text is in the column of a call's arguments. Without a duration it becomes
   an instant. */
static void convert_marker(import_reader *reader, const import_rows *rows) {
  import_event *const event = reader->event;
  int64_t start, end;
  const bool is_mark = import_rows_i64(rows, CALL_START, &start) &&
                       import_rows_i64(rows, CALL_END, &end) && start == end;
  import_event_begin(event, is_mark ? "i" : "X");
  import_event_set_member(event, IMPORT_NAME, import_rows_text(rows, CALL_ARGS));
  import_event_set_member(event, IMPORT_CAT, (import_text){"user_annotation", 15});
  import_event_set_times(event, rows, CALL_START, is_mark ? -1 : CALL_END);
}

static void convert_call(import_reader *reader, const import_rows *rows) {
  import_event *const event = reader->event;
  const import_text name = import_rows_text(rows, CALL_NAME),
                    domain = import_rows_text(rows, CALL_DOMAIN),
                    category = import_rows_text(rows, CALL_CATEGORY);
  import_event_begin(event, "X");
  import_event_set_member(event, IMPORT_NAME, name);
  import_event_set_member(event, IMPORT_CAT,
                          marker_category(name, domain.bytes ? domain : category));
  import_event_set_times(event, rows, CALL_START, CALL_END);
}

static void convert_call_row(import_reader *reader, const import_rows *rows,
                             call_side_queries *sides) {
  static const char marker[] = "UserMarker";
  import_event *const event = reader->event;
  const bool is_marker = import_text_is(import_rows_text(rows, CALL_NAME), marker);
  int64_t id;
  if (is_marker)
    convert_marker(reader, rows);
  else
    convert_call(reader, rows);
  import_event_set_column(event, IMPORT_PID, rows, CALL_PID);
  import_event_set_column(event, IMPORT_TID, rows, CALL_TID);
  if (sides && import_rows_i64(rows, CALL_ID, &id)) {
    import_event_add_i64(event, "correlation", id);
    put_kernel(reader, &sides->kernels, id);
    put_copy(reader, &sides->copies, id);
    put_stack_frames(reader, &sides->frames, id);
  }
  if (!is_marker) import_event_add_text(event, "args", import_rows_text(rows, CALL_ARGS));
  import_reader_convert_event(reader);
}

/* sides: NULL if no other table refers to this table's numbers. */
static void convert_calls(import_reader *reader, const char *table, call_side_queries *sides) {
  char query[IMPORT_QUERY_BYTES];
  const bool has_domain = import_database_has_column(reader->database, table, "domain_id");
  const bool has_category = import_database_has_column(reader->database, table, "category_id");
  snprintf(query, sizeof query,
           "SELECT A.id, A.pid, A.tid, A.start, A.[end], N.string, %s, %s, U.string FROM %s A"
           " LEFT JOIN rocpd_string N ON N.id = A.apiName_id"
           " LEFT JOIN %s U ON U.id = A.args_id%s%s ORDER BY A.id",
           has_domain ? "D.string" : "NULL", has_category ? "C.string" : "NULL", table,
           reader_has_table(reader, "rocpd_ustring") ? "rocpd_ustring" : "rocpd_string",
           has_domain ? " LEFT JOIN rocpd_string D ON D.id = A.domain_id" : "",
           has_category ? " LEFT JOIN rocpd_string C ON C.id = A.category_id" : "");
  import_rows rows = import_rows_begin(reader->database, query);
  while (import_rows_next(&rows)) convert_call_row(reader, &rows, sides);
  import_rows_end(&rows);
}

static void convert_all_calls(import_reader *reader) {
  call_side_queries sides = {
      import_side_query_begin(reader,
                              reader_has_table(reader, "rocpd_kernelapi") ? kernels_query : NULL),
      import_side_query_begin(reader,
                              reader_has_table(reader, "rocpd_copyapi") ? copies_query : NULL),
      import_side_query_begin(reader,
                              reader_has_table(reader, "rocpd_stackframe") ? frames_query : NULL)};
  convert_calls(reader, "rocpd_api", &sides);
  import_side_query_end(&sides.kernels);
  import_side_query_end(&sides.copies);
  import_side_query_end(&sides.frames);
  if (reader_has_table(reader, "rocpd_hsaApi")) convert_calls(reader, "rocpd_hsaApi", NULL);
}

/* ---- work of GPUs ---- */

enum op_column { OP_ID, OP_GPU, OP_QUEUE, OP_SEQUENCE, OP_START, OP_END, OP_NAME, OP_TYPE };

/* Of the call that launched an operation. */
enum launch_column {
  LAUNCH_OP,
  LAUNCH_CALL,
  LAUNCH_PID,
  LAUNCH_GRID,
  LAUNCH_BLOCK = LAUNCH_GRID + 3,
  LAUNCH_SHARED = LAUNCH_BLOCK + 3,
  LAUNCH_BYTES,
  LAUNCH_COPY,
  LAUNCH_COPY_NAME
};

/* Rows of other tables that refer to an operation by its number. */
typedef struct op_side_queries {
  import_side_query launches, counters;
  uint64_t launch_count; /* used ones */
} op_side_queries;

static bool text_has_word(import_text text, const char *word) {
  const size_t bytes = strlen(word);
  for (size_t i = 0; i + bytes <= text.bytes; i++) {
    size_t same = 0;
    while (same < bytes && (text.data[i + same] | 32) == word[same]) same++;
    if (same == bytes) return true;
  }
  return false;
}

static const char *category_of_op(import_text type, bool has_name) {
  static const struct {
    const char *word, *category;
  } words[] = {{"barrier", "gpu_sync"}, {"marker", "gpu_sync"},  {"kernel", "kernel"},
               {"dispatch", "kernel"},  {"copy", "gpu_memcpy"},  {"memcpy", "gpu_memcpy"},
               {"fill", "gpu_memset"},  {"memset", "gpu_memset"}};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (text_has_word(type, words[i].word)) return words[i].category;
  return has_name ? "kernel" : "gpu_other";
}

static void put_launch(import_event *event, const import_rows *launch) {
  import_event_add_dims(event, "grid", launch, LAUNCH_GRID);
  import_event_add_dims(event, "block", launch, LAUNCH_BLOCK);
  import_event_add_column(event, "shared memory", launch, LAUNCH_SHARED);
  import_event_add_column(event, "bytes", launch, LAUNCH_BYTES);
  if (!import_rows_is_null(launch, LAUNCH_COPY))
    put_copy_kind(event, launch, LAUNCH_COPY, LAUNCH_COPY_NAME);
}

static void put_counter_args(import_reader *reader, import_side_query *counters, int64_t id) {
  for (; import_side_query_find(counters, id); import_side_query_next(counters)) {
    import_event_add_f64(reader->event, import_rows_text(&counters->rows, 1),
                         import_rows_text(&counters->rows, 2));
    reader->side_query_count++;
  }
}

static void convert_op(import_reader *reader, const import_rows *rows, op_side_queries *sides) {
  import_event *const event = reader->event;
  const import_rows *const launch = &sides->launches.rows;
  const import_text name = import_rows_text(rows, OP_NAME), type = import_rows_text(rows, OP_TYPE);
  const char *const category = category_of_op(type, name.bytes > 0);
  int64_t gpu, queue, id, call, pid;
  import_event_begin(event, "X");
  import_event_set_member(event, IMPORT_NAME, name.bytes ? name : type);
  import_event_set_member(event, IMPORT_CAT, (import_text){category, strlen(category)});
  import_event_set_times(event, rows, OP_START, OP_END);
  event->is_odd |= !import_rows_i64(rows, OP_GPU, &gpu);
  event->is_odd |= !import_rows_i64(rows, OP_QUEUE, &queue);
  const bool has_id = import_rows_i64(rows, OP_ID, &id);
  const bool has_call = has_id && import_side_query_find(&sides->launches, id) &&
                        import_rows_i64(launch, LAUNCH_CALL, &call);
  const bool has_pid = has_call && import_rows_i64(launch, LAUNCH_PID, &pid);
  import_event_set_number(event, IMPORT_PID,
                          import_reader_gpu(reader, has_pid ? pid : INT64_MIN, gpu));
  import_event_set_number(event, IMPORT_TID, queue);
  import_event_add_i64(event, "device", gpu);
  import_event_add_i64(event, "stream", queue);
  if (has_call) import_event_add_i64(event, "correlation", call);
  if (name.bytes) import_event_add_text(event, "type", type);
  import_event_add_nonzero(event, "sequence", rows, OP_SEQUENCE);
  if (has_call) put_launch(event, launch);
  if (has_id) put_counter_args(reader, &sides->counters, id);
  sides->launch_count += has_call;
  import_reader_convert_event(reader);
}

/* The call's number is the table's key, so that it needs no grouping. */
static bool has_one_row_per_call(const import_reader *reader, const char *table) {
  char query[IMPORT_QUERY_BYTES];
  snprintf(query, sizeof query,
           "SELECT sum(pk > 0) = 1 AND sum(pk > 0 AND name = 'api_ptr_id') = 1"
           " FROM pragma_table_info('%s')",
           table);
  return import_database_count(reader->database, query) == 1;
}

/* If several calls are linked to an operation, the first is its launch. Beside min(), SQLite takes
   other columns from the row that has the least. */
static void put_launches_query(const import_reader *reader, char query[IMPORT_QUERY_BYTES]) {
  const bool has_kernels = reader_has_table(reader, "rocpd_kernelapi");
  const bool has_copies = reader_has_table(reader, "rocpd_copyapi");
  snprintf(query, IMPORT_QUERY_BYTES,
           "SELECT L.op_id, min(L.api_id), A.pid, %s, %s FROM rocpd_api_ops L"
           " JOIN rocpd_api A ON A.id = L.api_id%s%s GROUP BY L.op_id ORDER BY L.op_id",
           has_kernels ? "K.gridX, K.gridY, K.gridZ, K.workgroupX, K.workgroupY, K.workgroupZ,"
                         " K.groupSegmentSize"
                       : "NULL, NULL, NULL, NULL, NULL, NULL, NULL",
           has_copies ? "C.size, C.kind, CK.string" : "NULL, NULL, NULL",
           !has_kernels ? ""
           : has_one_row_per_call(reader, "rocpd_kernelapi")
               ? " LEFT JOIN rocpd_kernelapi K ON K.api_ptr_id = L.api_id"
               : " LEFT JOIN (SELECT api_ptr_id, gridX, gridY, gridZ, workgroupX, workgroupY,"
                 " workgroupZ, groupSegmentSize FROM rocpd_kernelapi GROUP BY api_ptr_id) K"
                 " ON K.api_ptr_id = L.api_id",
           !has_copies ? ""
           : has_one_row_per_call(reader, "rocpd_copyapi")
               ? " LEFT JOIN rocpd_copyapi C ON C.api_ptr_id = L.api_id"
                 " LEFT JOIN rocpd_string CK ON CK.id = C.kind"
               : " LEFT JOIN (SELECT api_ptr_id, size, kind FROM rocpd_copyapi"
                 " GROUP BY api_ptr_id) C ON C.api_ptr_id = L.api_id"
                 " LEFT JOIN rocpd_string CK ON CK.id = C.kind");
}

static void convert_ops(import_reader *reader) {
  static const char counters_query[] =
      "SELECT C.op_id, N.string, C.value FROM rocpd_counter C"
      " LEFT JOIN rocpd_string N ON N.id = C.name_id ORDER BY C.op_id, C.id";
  static const char ops_query[] =
      "SELECT O.id, O.gpuId, O.queueId, O.sequenceId, O.start, O.[end], D.string, T.string"
      " FROM rocpd_op O LEFT JOIN rocpd_string D ON D.id = O.description_id"
      " LEFT JOIN rocpd_string T ON T.id = O.opType_id ORDER BY O.id";
  const bool has_links = reader_has_table(reader, "rocpd_api_ops");
  char query[IMPORT_QUERY_BYTES];
  if (!reader_has_table(reader, "rocpd_op")) return;
  if (has_links) put_launches_query(reader, query);
  op_side_queries sides = {
      .launches = import_side_query_begin(reader, has_links ? query : NULL),
      .counters = import_side_query_begin(
          reader, reader_has_table(reader, "rocpd_counter") ? counters_query : NULL)};
  import_rows rows = import_rows_begin(reader->database, ops_query);
  while (import_rows_next(&rows)) convert_op(reader, &rows, &sides);
  import_rows_end(&rows);
  import_side_query_end(&sides.launches);
  import_side_query_end(&sides.counters);
  if (!has_links) return;
  const int64_t links =
      import_database_count(reader->database, "SELECT count(*) FROM rocpd_api_ops");
  reader->state->counts->missed[IMPORT_MISS_LINK] += (uint64_t)links - sides.launch_count;
}

/* ---- power, clocks, temperatures ---- */

static void convert_monitor(import_reader *reader, const import_rows *rows) {
  import_event *const event = reader->event;
  const import_text device = import_rows_text(rows, 0), what = import_rows_text(rows, 2);
  char name[IMPORT_QUERY_BYTES];
  int64_t number;
  import_event_begin(event, "C");
  event->is_odd |= !import_rows_i64(rows, 1, &number);
  if (import_text_is(device, "gpu")) {
    import_event_set_member(event, IMPORT_NAME, what);
    import_event_set_number(event, IMPORT_PID, import_reader_gpu(reader, INT64_MIN, number));
  } else {
    snprintf(name, sizeof name, "%.*s %lld %.*s", (int)(device.bytes < 64 ? device.bytes : 64),
             device.data, (long long)number, (int)(what.bytes < 256 ? what.bytes : 256), what.data);
    import_event_set_member(event, IMPORT_NAME, (import_text){name, strlen(name)});
    import_event_set_number(event, IMPORT_PID, reader->state->pid);
  }
  import_event_set_member(event, IMPORT_CAT, (import_text){"monitor", 7});
  import_event_set_times(event, rows, 3, -1);
  import_event_add_arg(event, (import_text){"value", 5}, IMPORT_TEXT, import_rows_text(rows, 4));
  import_reader_convert_event(reader);
}

/* A row has one value for an interval. Each row gives a counter at its start. The last row of a
   series gives another one at its end. */
static void convert_monitors(import_reader *reader) {
  static const char *const queries[] = {
      "SELECT deviceType, deviceId, monitorType, start, value FROM rocpd_monitor ORDER BY id",
      "SELECT deviceType, deviceId, monitorType, [end], value FROM rocpd_monitor WHERE"
      " [end] > start AND id IN (SELECT max(id) FROM rocpd_monitor GROUP BY deviceType, deviceId,"
      " monitorType) ORDER BY id"};
  if (!reader_has_table(reader, "rocpd_monitor")) return;
  for (size_t i = 0; i < sizeof queries / sizeof *queries; i++) {
    import_rows rows = import_rows_begin(reader->database, queries[i]);
    while (import_rows_next(&rows)) convert_monitor(reader, &rows);
    import_rows_end(&rows);
  }
}

void import_rpd_convert(import_reader *reader) {
  static const char *const sides[] = {"rocpd_kernelapi", "rocpd_copyapi", "rocpd_stackframe",
                                      "rocpd_counter"};
  static const char has_cuda[] = "SELECT EXISTS (SELECT 1 FROM rocpd_string WHERE string = 'cuda')";
  reader->state->devices.is_hip = import_database_count(reader->database, has_cuda) == 0;
  convert_all_calls(reader);
  convert_ops(reader);
  convert_monitors(reader);
  import_reader_check_schema(reader, known_tables, sizeof known_tables / sizeof *known_tables, "");
  import_reader_note_missing(reader, sides, sizeof sides / sizeof *sides, "");
}
