/* Reads results.db of rocprofv3, the rocpd format of rocprofiler-sdk. Table names end in the run's
   UUID. A merged database has several sets of tables. rocpd_region has calls and ranges. The event
   of each row has its category, and the number (stack_id) that a call and its launched work share.
   Columns moved between versions: times and places are in the row, or in its track and
   timestamps. */
#include <ctype.h>
#include <stdio.h>

#include "database.h"
#include "internal.h"

static const char *const known_tables[] = {"rocpd_metadata",
                                           "rocpd_string",
                                           "rocpd_info_node",
                                           "rocpd_info_process",
                                           "rocpd_info_thread",
                                           "rocpd_info_category",
                                           "rocpd_info_agent",
                                           "rocpd_info_queue",
                                           "rocpd_info_stream",
                                           "rocpd_info_pmc",
                                           "rocpd_info_code_object",
                                           "rocpd_info_kernel_symbol",
                                           "rocpd_info_address_range",
                                           "rocpd_info_source_code",
                                           "rocpd_info_pc",
                                           "rocpd_track",
                                           "rocpd_timestamp",
                                           "rocpd_event",
                                           "rocpd_arg",
                                           "rocpd_pmc_event",
                                           "rocpd_region",
                                           "rocpd_sample",
                                           "rocpd_kernel_dispatch",
                                           "rocpd_memory_copy",
                                           "rocpd_memory_allocate"};

/* One set of tables. */
typedef struct table_set {
  import_reader *reader;
  const char *suffix;
  uint32_t group;    /* equal numbers of two sets mean different things */
  int64_t first_gpu; /* the number of its machine's first GPU */
  bool is_first;     /* the first set of its machine */
  bool has_json, has_categories, has_pmc;
  import_side_query args, counters;
} table_set;

/* The columns that every query begins with. */
enum column { ID, EVENT, START, END, PID, TID, CATEGORY, STACK_ID, MESSAGE, OWN };

/* Gives "_0198..." of "rocpd_region_0198...". False: it is another table. */
static bool read_suffix(import_text name, char to[IMPORT_SUFFIX_BYTES]) {
  static const char *const begins[] = {"rocpd_region", "rocpd_kernel_dispatch"};
  for (size_t i = 0; i < sizeof begins / sizeof *begins; i++) {
    const size_t at = strlen(begins[i]);
    if (!import_text_begins(name, begins[i]) || name.bytes - at >= IMPORT_SUFFIX_BYTES) continue;
    snprintf(to, IMPORT_SUFFIX_BYTES, "%.*s", (int)(name.bytes - at), name.data + at);
    bool is_plain = to[0] == '\0' || to[0] == '_';
    for (size_t c = 0; to[c]; c++)
      is_plain &= isalnum((unsigned char)to[c]) || to[c] == '_' || to[c] == '-';
    return is_plain;
  }
  return false;
}

bool import_rocpd_next(import_database *database, bool is_first, char suffix[IMPORT_SUFFIX_BYTES]) {
  char next[IMPORT_SUFFIX_BYTES] = "", found[IMPORT_SUFFIX_BYTES];
  bool is_there = false;
  import_rows rows =
      import_rows_begin(database, "SELECT name FROM sqlite_master WHERE type = 'table'");
  while (import_rows_next(&rows)) {
    if (!read_suffix(import_rows_text(&rows, 0), found)) continue;
    if (!is_first && strcmp(found, suffix) <= 0) continue;
    if (is_there && strcmp(found, next) >= 0) continue;
    memcpy(next, found, sizeof next);
    is_there = true;
  }
  import_rows_end(&rows);
  memcpy(suffix, next, sizeof next);
  return is_there;
}

static bool set_has_table(const table_set *s, const char *table) {
  char name[IMPORT_SUFFIX_BYTES + 64];
  snprintf(name, sizeof name, "%s%s", table, s->suffix);
  return import_database_has_table(s->reader->database, name);
}

static bool set_has_column(const table_set *s, const char *table, const char *column) {
  char name[IMPORT_SUFFIX_BYTES + 64];
  snprintf(name, sizeof name, "%s%s", table, s->suffix);
  return import_database_has_column(s->reader->database, name, column);
}

/* ---- queries ---- */

/* A query under construction; @ stands for the suffix. */
typedef struct query_text {
  const table_set *table_set;
  char text[IMPORT_QUERY_BYTES];
  size_t bytes;
} query_text;

static void query_put(query_text *q, const char *text) {
  for (; *text; text++) {
    const char *const piece = *text == '@' ? q->table_set->suffix : text;
    const size_t bytes = *text == '@' ? strlen(piece) : 1;
    if (q->bytes + bytes >= sizeof q->text) import_fail("a query is too long");
    memcpy(q->text + q->bytes, piece, bytes);
    q->bytes += bytes;
  }
  q->text[q->bytes] = '\0';
}

/* own: the columns from OWN on, each after a comma. joins: the joins that they need. */
static void put_query(query_text *q, const char *table, const char *own, const char *joins) {
  const table_set *const s = q->table_set;
  const bool has_start = set_has_column(s, table, "start") || set_has_column(s, table, "timestamp");
  const bool is_sample = strcmp(table, "rocpd_sample") == 0;
  const bool has_place = set_has_column(s, table, "pid");
  const bool has_times = has_start || !set_has_table(s, "rocpd_timestamp");
  query_put(q, "SELECT R.id, R.event_id");
  if (is_sample)
    query_put(q, has_times ? ", R.timestamp, R.timestamp" : ", B.value, B.value");
  else
    query_put(q, has_times ? ", R.start, R.[end]" : ", B.value, F.value");
  query_put(q, has_place ? ", coalesce(P.pid, R.pid), coalesce(H.tid, R.tid)"
                         : ", coalesce(P.pid, T.pid), coalesce(H.tid, T.tid)");
  query_put(q, s->has_categories ? ", C.name" : ", C.string");
  query_put(q, ", E.stack_id");
  query_put(q, s->has_json ? ", CASE WHEN json_valid(E.extdata) THEN json_extract(E.extdata,"
                             " '$.message') END"
                           : ", NULL");
  query_put(q, own);
  query_put(q, " FROM [");
  query_put(q, table);
  query_put(q, "@] R LEFT JOIN [rocpd_event@] E ON E.id = R.event_id");
  query_put(q, s->has_categories ? " LEFT JOIN [rocpd_info_category@] C ON C.id = E.category_id"
                                 : " LEFT JOIN [rocpd_string@] C ON C.id = E.category_id");
  if (!has_place || is_sample) query_put(q, " LEFT JOIN [rocpd_track@] T ON T.id = R.track_id");
  if (!has_times)
    query_put(q, is_sample ? " LEFT JOIN [rocpd_timestamp@] B ON B.id = R.timestamp_id"
                           : " LEFT JOIN [rocpd_timestamp@] B ON B.id = R.start_id"
                             " LEFT JOIN [rocpd_timestamp@] F ON F.id = R.end_id");
  query_put(q, has_place ? " LEFT JOIN [rocpd_info_process@] P ON P.id = R.pid"
                           " LEFT JOIN [rocpd_info_thread@] H ON H.id = R.tid"
                         : " LEFT JOIN [rocpd_info_process@] P ON P.id = T.pid"
                           " LEFT JOIN [rocpd_info_thread@] H ON H.id = T.tid");
  query_put(q, joins);
  query_put(q, " ORDER BY R.event_id, R.id");
}

/* The column in the row, or else in the row's track. */
static const char *track_column(const table_set *s, const char *table, const char *column,
                                const char *own, const char *tracks) {
  return set_has_column(s, table, column) ? own : tracks;
}

static void begin_side_queries(table_set *s) {
  query_text args = {.table_set = s}, counters = {.table_set = s};
  query_put(&args,
            "SELECT event_id, name, value FROM [rocpd_arg@] ORDER BY event_id, position, id");
  query_put(&counters,
            "SELECT V.event_id, I.name, sum(V.value), count(*) FROM [rocpd_pmc_event@] V"
            " LEFT JOIN [rocpd_info_pmc@] I ON I.id = V.pmc_id"
            " GROUP BY V.event_id, I.name ORDER BY V.event_id, I.name");
  s->args = import_side_query_begin(s->reader, set_has_table(s, "rocpd_arg") ? args.text : NULL);
  s->counters = import_side_query_begin(s->reader, s->has_pmc ? counters.text : NULL);
}

static void end_side_queries(table_set *s) {
  import_side_query_end(&s->args);
  import_side_query_end(&s->counters);
}

/* ---- parts of all events ---- */

/* Makes numbers of different sets differ. Numbers of one set are below 2^48. */
static void put_correlation_arg(const table_set *s, const import_rows *rows, bool is_devices) {
  int64_t number;
  if (!import_rows_i64(rows, STACK_ID, &number) || number == 0) return;
  import_event_add_i64(s->reader->event, "correlation", number ^ (int64_t)s->group << 48);
  if (is_devices && s->group)
    import_event_add_i64(s->reader->event, "vendor's correlation", number);
}

static void put_event_args(table_set *s, const import_rows *rows) {
  int64_t event;
  if (!import_rows_i64(rows, EVENT, &event)) return;
  for (; import_side_query_find(&s->args, event); import_side_query_next(&s->args)) {
    import_event_add_arg(s->reader->event, import_rows_text(&s->args.rows, 1), IMPORT_TEXT,
                         import_rows_text(&s->args.rows, 2));
    s->reader->side_query_count++;
  }
}

/* The query sums a counter over its instances, as rocprofv3's own tables do. */
static void put_counter_args(table_set *s, const import_rows *rows) {
  int64_t event, count;
  if (!import_rows_i64(rows, EVENT, &event)) return;
  for (; import_side_query_find(&s->counters, event); import_side_query_next(&s->counters)) {
    import_event_add_f64(s->reader->event, import_rows_text(&s->counters.rows, 1),
                         import_rows_text(&s->counters.rows, 2));
    import_rows_i64(&s->counters.rows, 3, &count);
    s->reader->side_query_count += (uint64_t)count;
  }
}

/* Translates categories: HIP_RUNTIME_API_EXT to hip_runtime, HSA_CORE_API to hsa_core_runtime.
   Markers are the program's own ranges. */
static void put_category(import_event *event, import_text category) {
  static const char *const ends[] = {"_ext", "_api"};
  char name[64];
  const size_t most = category.bytes < 48 ? category.bytes : 48;
  bool is_library = false;
  for (size_t i = 0; i < most; i++) name[i] = (char)tolower((unsigned char)category.data[i]);
  name[most] = '\0';
  for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
    const size_t bytes = strlen(name);
    if (bytes <= 4 || strcmp(name + bytes - 4, ends[i]) != 0) continue;
    name[bytes - 4] = '\0';
    is_library = true;
  }
  const size_t bytes = strlen(name);
  const bool ends_so = bytes > 8 && strcmp(name + bytes - 8, "_runtime") == 0;
  const import_text made = {name, bytes};
  if (bytes == 0 || import_text_begins(made, "marker") ||
      import_device_kind(made) != IMPORT_KIND_NONE)
    snprintf(name, sizeof name, "user_annotation");
  else if (is_library && !ends_so)
    memcpy(name + bytes, "_runtime", sizeof "_runtime");
  import_event_set_member(event, IMPORT_CAT, (import_text){name, strlen(name)});
}

/* The same pid in two sets means two processes, on two machines or in two containers. A pid that an
   earlier set has gets the number of this set as a suffix. */
static void put_process_member(const table_set *s, const import_rows *rows, int column) {
  char text[64];
  int64_t pid;
  if (!import_rows_i64(rows, column, &pid) ||
      import_reader_owner(s->reader, pid, s->group) == s->group) {
    import_event_set_column(s->reader->event, IMPORT_PID, rows, column);
    return;
  }
  const int bytes = snprintf(text, sizeof text, "%lld of run %u", (long long)pid, s->group + 1);
  import_event_set_member(s->reader->event, IMPORT_PID, (import_text){text, (size_t)bytes});
}

static void put_source_location(const table_set *s, const import_rows *rows) {
  put_process_member(s, rows, PID);
  import_event_set_column(s->reader->event, IMPORT_TID, rows, TID);
}

/* The number of a GPU, counted over all machines. A copy belongs to its destination, if that is a
   GPU. */
static bool read_gpu(const table_set *s, const import_rows *rows, int column, int64_t *gpu_out) {
  if (!import_text_is(import_rows_text(rows, column), "GPU") ||
      !import_rows_i64(rows, column + 1, gpu_out) || *gpu_out < 0 || *gpu_out > INT32_MAX)
    return false;
  *gpu_out += s->first_gpu;
  return true;
}

/* Work of a GPU. */
static void begin_device_event(table_set *s, const import_rows *rows, const char *category,
                               int64_t gpu, int queue) {
  import_event *const event = s->reader->event;
  int64_t number;
  import_event_begin(event, "X");
  import_event_set_member(event, IMPORT_CAT, (import_text){category, strlen(category)});
  import_event_set_times(event, rows, START, END);
  put_process_member(s, rows, PID);
  if (!import_rows_i64(rows, queue, &number)) number = 0;
  const bool has_pid = event->members[IMPORT_PID].type != IMPORT_NONE;
  const int64_t owner = has_pid ? import_threads_id(event).pid : INT64_MIN;
  import_event_set_number(event, IMPORT_PID, import_reader_gpu(s->reader, owner, gpu));
  import_event_set_number(event, IMPORT_TID, number);
  import_event_add_i64(event, "device", gpu);
  import_event_add_i64(event, "stream", number);
  put_correlation_arg(s, rows, true);
}

/* ---- the tables ---- */

static void convert_regions(table_set *s) {
  query_text q = {.table_set = s};
  import_event *const event = s->reader->event;
  if (!set_has_table(s, "rocpd_region")) return;
  put_query(&q, "rocpd_region", ", N.string", " LEFT JOIN [rocpd_string@] N ON N.id = R.name_id");
  begin_side_queries(s);
  import_rows rows = import_rows_begin(s->reader->database, q.text);
  while (import_rows_next(&rows)) {
    const import_text message = import_rows_text(&rows, MESSAGE);
    import_event_begin(event, "X");
    import_event_set_member(event, IMPORT_NAME,
                            message.bytes ? message : import_rows_text(&rows, OWN));
    put_category(event, import_rows_text(&rows, CATEGORY));
    import_event_set_times(event, &rows, START, END);
    put_source_location(s, &rows);
    put_correlation_arg(s, &rows, false);
    put_event_args(s, &rows);
    put_counter_args(s, &rows);
    import_reader_convert_event(s->reader);
  }
  import_rows_end(&rows);
  end_side_queries(s);
}

/* A sample with counters becomes counters, and any other one an instant. */
static void convert_samples(table_set *s) {
  query_text q = {.table_set = s};
  import_event *const event = s->reader->event;
  if (!set_has_table(s, "rocpd_sample")) return;
  put_query(&q, "rocpd_sample",
            set_has_column(s, "rocpd_sample", "name_id") ? ", coalesce(N.string, M.string)"
                                                         : ", M.string",
            set_has_column(s, "rocpd_sample", "name_id")
                ? " LEFT JOIN [rocpd_string@] N ON N.id = R.name_id"
                  " LEFT JOIN [rocpd_string@] M ON M.id = T.name_id"
                : " LEFT JOIN [rocpd_string@] M ON M.id = T.name_id");
  begin_side_queries(s);
  import_rows rows = import_rows_begin(s->reader->database, q.text);
  while (import_rows_next(&rows)) {
    const import_text message = import_rows_text(&rows, MESSAGE);
    int64_t id;
    const bool is_counter =
        import_rows_i64(&rows, EVENT, &id) && import_side_query_find(&s->counters, id);
    import_event_begin(event, is_counter ? "C" : "i");
    import_event_set_member(event, IMPORT_NAME,
                            message.bytes ? message : import_rows_text(&rows, OWN));
    put_category(event, import_rows_text(&rows, CATEGORY));
    import_event_set_times(event, &rows, START, -1);
    put_source_location(s, &rows);
    if (is_counter)
      put_counter_args(s, &rows);
    else
      put_event_args(s, &rows);
    import_reader_convert_event(s->reader);
  }
  import_rows_end(&rows);
  end_side_queries(s);
}

static void convert_kernels(table_set *s) {
  static const char table[] = "rocpd_kernel_dispatch";
  enum { NAME = OWN, REGION, TYPE, GPU, QUEUE, STREAM, GRID, BLOCK = GRID + 3, SHARED = BLOCK + 3 };
  query_text q = {.table_set = s};
  import_event *const event = s->reader->event;
  char own[IMPORT_QUERY_BYTES / 2], joins[IMPORT_QUERY_BYTES / 2];
  if (!set_has_table(s, table)) return;
  snprintf(own, sizeof own,
           ", coalesce(nullif(S.display_name, ''), S.kernel_name, N.string), N.string, A.type,"
           " A.type_index, %s, %s, R.grid_size_x, R.grid_size_y, R.grid_size_z,"
           " R.workgroup_size_x, R.workgroup_size_y, R.workgroup_size_z, R.group_segment_size,"
           " R.private_segment_size, R.dispatch_id",
           track_column(s, table, "queue_id", "R.queue_id", "T.queue_id"),
           track_column(s, table, "stream_id", "R.stream_id", "T.stream_id"));
  snprintf(joins, sizeof joins,
           " LEFT JOIN [rocpd_info_kernel_symbol@] S ON S.id = R.kernel_id"
           " LEFT JOIN [rocpd_string@] N ON N.id = R.region_name_id"
           " LEFT JOIN [rocpd_info_agent@] A ON A.id = %s",
           track_column(s, table, "agent_id", "R.agent_id", "T.agent_id"));
  put_query(&q, table, own, joins);
  begin_side_queries(s);
  import_rows rows = import_rows_begin(s->reader->database, q.text);
  while (import_rows_next(&rows)) {
    int64_t gpu;
    const bool has_gpu = read_gpu(s, &rows, TYPE, &gpu);
    begin_device_event(s, &rows, "kernel", has_gpu ? gpu : s->first_gpu, QUEUE);
    event->is_odd |= !has_gpu;
    import_event_set_member(event, IMPORT_NAME, import_rows_text(&rows, NAME));
    import_event_add_text(event, "region", import_rows_text(&rows, REGION));
    import_event_add_nonzero(event, "hip stream", &rows, STREAM);
    import_event_add_dims(event, "grid", &rows, GRID);
    import_event_add_dims(event, "block", &rows, BLOCK);
    import_event_add_column(event, "shared memory", &rows, SHARED);
    import_event_add_column(event, "private memory", &rows, SHARED + 1);
    import_event_add_column(event, "dispatch", &rows, SHARED + 2);
    put_counter_args(s, &rows);
    import_reader_convert_event(s->reader);
  }
  import_rows_end(&rows);
  end_side_queries(s);
}

static void convert_copies(table_set *s) {
  static const char table[] = "rocpd_memory_copy";
  enum { NAME = OWN, TO_TYPE, TO_GPU, FROM_TYPE, FROM_GPU, QUEUE, STREAM, BYTES, TO, FROM };
  query_text q = {.table_set = s};
  import_event *const event = s->reader->event;
  char own[IMPORT_QUERY_BYTES / 2];
  if (!set_has_table(s, table)) return;
  snprintf(own, sizeof own,
           ", N.string, X.type, X.type_index, Y.type, Y.type_index, %s, %s, R.size,"
           " R.dst_address, R.src_address",
           track_column(s, table, "queue_id", "R.queue_id", "T.queue_id"),
           track_column(s, table, "stream_id", "R.stream_id", "T.stream_id"));
  put_query(&q, table, own,
            " LEFT JOIN [rocpd_string@] N ON N.id = R.name_id"
            " LEFT JOIN [rocpd_info_agent@] X ON X.id = R.dst_agent_id"
            " LEFT JOIN [rocpd_info_agent@] Y ON Y.id = R.src_agent_id");
  import_rows rows = import_rows_begin(s->reader->database, q.text);
  while (import_rows_next(&rows)) {
    int64_t to, from, gpu = s->first_gpu;
    const bool is_to = read_gpu(s, &rows, TO_TYPE, &to);
    const bool is_from = read_gpu(s, &rows, FROM_TYPE, &from);
    if (is_to || is_from) gpu = is_to ? to : from;
    if (!is_to && !is_from) import_count_changed(s->reader->state, IMPORT_CHANGE_NO_GPU);
    begin_device_event(s, &rows, "gpu_memcpy", gpu, QUEUE);
    import_event_set_member(event, IMPORT_NAME, import_rows_text(&rows, NAME));
    import_event_add_column(event, "bytes", &rows, BYTES);
    if (is_to) import_event_add_i64(event, "to gpu", to);
    if (is_from) import_event_add_i64(event, "from gpu", from);
    import_event_add_nonzero(event, "hip stream", &rows, STREAM);
    import_event_add_nonzero(event, "dst", &rows, TO);
    import_event_add_nonzero(event, "src", &rows, FROM);
    import_reader_convert_event(s->reader);
  }
  import_rows_end(&rows);
}

/* Calls of the allocator below HIP become scopes on their threads. */
static void convert_allocations(table_set *s) {
  static const char table[] = "rocpd_memory_allocate";
  enum { TYPE = OWN, LEVEL, AGENT_TYPE, AGENT, BYTES, ADDRESS };
  query_text q = {.table_set = s};
  import_event *const event = s->reader->event;
  char joins[IMPORT_QUERY_BYTES / 2];
  if (!set_has_table(s, table)) return;
  snprintf(joins, sizeof joins, " LEFT JOIN [rocpd_info_agent@] A ON A.id = %s",
           track_column(s, table, "agent_id", "R.agent_id", "T.agent_id"));
  put_query(&q, table, ", R.type, R.level, A.type, A.type_index, R.size, R.address", joins);
  import_rows rows = import_rows_begin(s->reader->database, q.text);
  while (import_rows_next(&rows)) {
    char name[64];
    int64_t gpu;
    const import_text type = import_rows_text(&rows, TYPE);
    snprintf(name, sizeof name, "memory %.*s", (int)(type.bytes < 32 ? type.bytes : 32), type.data);
    import_event_begin(event, "X");
    import_event_set_member(event, IMPORT_NAME, (import_text){name, strlen(name)});
    import_event_set_member(event, IMPORT_CAT, (import_text){"rocm_memory", 11});
    import_event_set_times(event, &rows, START, END);
    put_source_location(s, &rows);
    import_event_add_text(event, "level", import_rows_text(&rows, LEVEL));
    if (read_gpu(s, &rows, AGENT_TYPE, &gpu)) import_event_add_i64(event, "gpu", gpu);
    import_event_add_column(event, "bytes", &rows, BYTES);
    import_event_add_nonzero(event, "address", &rows, ADDRESS);
    import_reader_convert_event(s->reader);
  }
  import_rows_end(&rows);
}

/* ---- names ---- */

static void convert_name(table_set *s, const import_rows *rows, const char *what, int pid, int tid,
                         int name) {
  import_event *const event = s->reader->event;
  import_event_begin(event, "M");
  import_event_set_member(event, IMPORT_NAME, (import_text){what, strlen(what)});
  put_process_member(s, rows, pid);
  import_event_set_column(event, IMPORT_TID, rows, tid);
  import_event_add_text(event, "name", import_rows_text(rows, name));
  import_reader_convert_event(s->reader);
}

/* Writes a name as JSON: a quote or a control byte would end it. */
static void put_json_text(char *to, size_t room, import_text text) {
  size_t used = 0;
  for (; used < text.bytes && used + 1 < room; used++) {
    const char c = text.data[used];
    to[used] = c;
    if ((unsigned char)c < ' ' || c == '"' || c == '\\') to[used] = '_';
  }
  to[used] = '\0';
}

/* Writes the member deviceProperties, which exports repeat, once for each machine. */
static void convert_devices(table_set *s) {
  static const char key[] = "deviceProperties";
  query_text agents = {.table_set = s};
  char text[IMPORT_QUERY_BYTES] = "[";
  size_t used = 1;
  if (!s->is_first || !set_has_table(s, "rocpd_info_agent")) return;
  query_put(&agents,
            "SELECT type_index, coalesce(nullif(product_name, ''), name) FROM"
            " [rocpd_info_agent@] WHERE type = 'GPU' ORDER BY type_index");
  import_rows rows = import_rows_begin(s->reader->database, agents.text);
  for (int64_t number; import_rows_next(&rows) && used + 256 < sizeof text;) {
    char name[IMPORT_DEVICE_NAME_BYTES];
    if (!import_rows_i64(&rows, 0, &number) || number < 0 || number > INT32_MAX) continue;
    number += s->first_gpu;
    put_json_text(name, sizeof name, import_rows_text(&rows, 1));
    used += (size_t)snprintf(text + used, sizeof text - used, "%s{\"id\":%lld,\"name\":\"%s\"}",
                             used > 1 ? "," : "", (long long)number, name);
  }
  import_rows_end(&rows);
  text[used++] = ']';
  if (used == 2) return;
  import_kineto_metadata(s->reader->state, (import_text){key, sizeof key - 1},
                         &(import_value){.type = IMPORT_JSON}, (import_text){text, used});
}

static void convert_names(table_set *s) {
  static const struct {
    const char *table, *what, *query_text;
  } names[] = {{"rocpd_info_process", "process_name",
                "SELECT pid, pid, command FROM [rocpd_info_process@] WHERE command <> ''"},
               {"rocpd_info_thread", "thread_name",
                "SELECT coalesce(P.pid, H.pid), H.tid, H.name FROM [rocpd_info_thread@] H"
                " LEFT JOIN [rocpd_info_process@] P ON P.id = H.pid WHERE H.name <> ''"}};
  import_state *const state = s->reader->state;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    query_text q = {.table_set = s};
    if (!set_has_table(s, names[i].table)) continue;
    query_put(&q, names[i].query_text);
    import_rows rows = import_rows_begin(s->reader->database, q.text);
    while (import_rows_next(&rows)) convert_name(s, &rows, names[i].what, 0, 1, 2);
    import_rows_end(&rows);
  }
  convert_devices(s);
  query_text hosts = {.table_set = s};
  if (!set_has_table(s, "rocpd_info_node") || state->host[0]) return;
  query_put(&hosts, "SELECT hostname FROM [rocpd_info_node@]");
  import_rows rows = import_rows_begin(s->reader->database, hosts.text);
  if (import_rows_next(&rows)) {
    const import_text host = import_text_cut(import_rows_text(&rows, 0), sizeof state->host - 1);
    snprintf(state->host, sizeof state->host, "%.*s", (int)host.bytes, host.data);
  }
  import_rows_end(&rows);
}

/* Numbers the GPUs of all machines differently. */
static void find_machine(table_set *s) {
  enum { STRIDE = 100 }; /* an export has room for ten machines */
  query_text q = {.table_set = s};
  int64_t machine = 0;
  query_put(&q, "SELECT id FROM [rocpd_info_node@] ORDER BY id");
  if (set_has_table(s, "rocpd_info_node"))
    machine = import_database_count(s->reader->database, q.text);
  s->first_gpu = STRIDE * import_reader_machine(s->reader, machine, &s->is_first);
}

void import_rocpd_convert(import_reader *reader, const char *suffix, uint32_t group) {
  static const char *const sides[] = {"rocpd_arg", "rocpd_pmc_event"};
  table_set s = {.reader = reader, .suffix = suffix, .group = group};
  s.has_json = import_database_has_json(reader->database);
  s.has_categories = set_has_table(&s, "rocpd_info_category");
  s.has_pmc = set_has_table(&s, "rocpd_pmc_event") && set_has_table(&s, "rocpd_info_pmc");
  reader->state->devices.is_hip = true;
  find_machine(&s);
  convert_names(&s);
  convert_regions(&s);
  convert_samples(&s);
  convert_allocations(&s);
  convert_kernels(&s);
  convert_copies(&s);
  import_reader_check_schema(reader, known_tables, sizeof known_tables / sizeof *known_tables,
                             suffix);
  import_reader_note_missing(reader, sides, sizeof sides / sizeof *sides, suffix);
}
