/* prof_trace_arrow(), read as a consumer without Arrow's library reads it: by the structs alone. */
#define _GNU_SOURCE
#include "../../src/export/arrow_abi.h"

#include "exported.h"

typedef struct columns {
  struct ArrowArrayStream stream;
  struct ArrowSchema schema;
  struct ArrowArray batch;
} columns;

static void open_columns(columns *c, const prof_trace *trace, prof_arrow_options options) {
  options.size = sizeof options;
  assert_int_equal(prof_trace_arrow(trace, &options, &c->stream), PROF_OK);
  assert_int_equal(c->stream.get_schema(&c->stream, &c->schema), 0);
  c->batch.release = NULL;
}

/* False: the stream has ended. */
static bool next_batch(columns *c) {
  if (c->batch.release) c->batch.release(&c->batch);
  assert_int_equal(c->stream.get_next(&c->stream, &c->batch), 0);
  return c->batch.release != NULL;
}

static void close_columns(columns *c) {
  if (c->batch.release) c->batch.release(&c->batch);
  c->schema.release(&c->schema);
  c->stream.release(&c->stream);
  assert_null(c->stream.release);
}

static int64_t column_of(const columns *c, const char *name) {
  for (int64_t i = 0; i < c->schema.n_children; i++)
    if (strcmp(c->schema.children[i]->name, name) == 0) return i;
  fail_msg("no column %s", name);
  return -1;
}

static bool is_null(const columns *c, const char *name, int64_t row) {
  const uint8_t *const validity = c->batch.children[column_of(c, name)]->buffers[0];
  return validity && !(validity[row / 8] >> row % 8 & 1);
}

static int64_t number(const columns *c, const char *name, int64_t row) {
  const int64_t i = column_of(c, name);
  const void *const values = c->batch.children[i]->buffers[1];
  switch (*c->schema.children[i]->format) {
    case 'c':
    case 'C':
      return ((const uint8_t *)values)[row];
    case 'i':
    case 'I':
      return ((const int32_t *)values)[row];
  }
  return ((const int64_t *)values)[row];
}

/* In `text`. */
static const char *copy_text(const struct ArrowArray *texts, int64_t at) {
  const int32_t *const offsets = texts->buffers[1];
  const size_t bytes = (size_t)(offsets[at + 1] - offsets[at]);
  if (bytes) memcpy(text, (const char *)texts->buffers[2] + offsets[at], bytes);
  text[bytes] = 0;
  return text;
}

static const char *word(const columns *c, const char *name, int64_t row) {
  const struct ArrowArray *const dictionary = c->batch.children[column_of(c, name)]->dictionary;
  const int64_t at = number(c, name, row);
  assert_true(at >= 0 && at < dictionary->length);
  return copy_text(dictionary, at);
}

static void put_scopes(prof_i_head *chunk, int count) {
  for (int i = 0; i < count; i++)
    capture_plain(chunk, CAPTURE_START + 1000 + (uint64_t)i * 100, 10 + (uint64_t)i, 1);
}

static void rows_are_the_events(void **state) {
  (void)state;
  capture c;
  columns r;
  put_scopes(begin(&c, 1700000000000000000u), 3);
  prof_trace *const trace = open_capture(&c);
  open_columns(&r, trace, (prof_arrow_options){.size = 0});
  assert_string_equal(r.schema.format, "+s");
  assert_true(next_batch(&r));
  assert_int_equal(r.batch.length, 3);
  assert_int_equal(r.batch.n_children, r.schema.n_children);
  for (int64_t i = 0; i < 3; i++) {
    assert_int_equal(number(&r, "start_ns", i), 1000 + i * 100);
    assert_int_equal(number(&r, "duration_ns", i), 10 + i);
    assert_string_equal(word(&r, "kind", i), "scope");
    assert_string_equal(word(&r, "name", i), "matmul");
    assert_string_equal(word(&r, "category", i), "operator");
    assert_true(is_null(&r, "value", i) && is_null(&r, "args", i) && is_null(&r, "address", i));
  }
  assert_false(next_batch(&r));
  assert_false(next_batch(&r)); /* it stays at its end */
  close_columns(&r);
  prof_trace_destroy(trace);
  capture_end(&c);
}

static void a_trace_without_events_has_columns_and_no_batch(void **state) {
  (void)state;
  capture c;
  columns r;
  begin(&c, 1700000000000000000u);
  prof_trace *const trace = open_capture(&c);
  open_columns(&r, trace, (prof_arrow_options){.size = 0});
  assert_true(column_of(&r, "tag") > 0);
  assert_false(next_batch(&r));
  close_columns(&r);
  prof_trace_destroy(trace);
  capture_end(&c);
}

static void put_named(prof_i_head *chunk, uint64_t at, const char *name, size_t bytes) {
  long_record r;
  long_begin(&r, PROF_I_KIND_SCOPE, at, 1, 1);
  r.flags = PROF_I_FLAG_NAME;
  long_bytes(&r, name, bytes);
  long_end(&r, chunk);
}

/* Pandas refuses categories that come twice. */
static void texts_are_valid_and_each_is_there_once(void **state) {
  (void)state;
  capture c;
  columns r;
  prof_i_head *const chunk = begin(&c, 1700000000000000000u);
  static const char *const names[] = {"\xff", "\xfe", "a\"b\\\n", "\xc3\xa9", "a\"b\\\n"};
  for (uint64_t i = 0; i < 5; i++)
    put_named(chunk, CAPTURE_START + 1000 + i * 100, names[i], strlen(names[i]));
  prof_trace *const trace = open_capture(&c);
  open_columns(&r, trace, (prof_arrow_options){.size = 0});
  assert_true(next_batch(&r));
  assert_int_equal(r.batch.children[column_of(&r, "name")]->dictionary->length, 3);
  assert_string_equal(word(&r, "name", 0), "\xef\xbf\xbd");
  assert_string_equal(word(&r, "name", 1), "\xef\xbf\xbd");
  assert_string_equal(word(&r, "name", 2), "a\"b\\\n");
  assert_string_equal(word(&r, "name", 3), "\xc3\xa9");
  assert_string_equal(word(&r, "name", 4), "a\"b\\\n");
  close_columns(&r);
  prof_trace_destroy(trace);
  capture_end(&c);
}

enum { NAMES = 3000, ROWS = 100 };

/* Each batch has more texts than the previous one. Its arrays stay as they were, also after the
   stream and the trace have ended. A column may be taken out of its batch. */
static void batches_outlive_the_stream_and_the_trace(void **state) {
  (void)state;
  capture c;
  columns r;
  static struct ArrowArray taken[NAMES / ROWS];
  char name[32];
  prof_i_head *const chunk = begin(&c, 1700000000000000000u);
  for (uint64_t i = 0; i < NAMES; i++) {
    const int bytes = snprintf(name, sizeof name, "a name of its own %d", (int)i);
    put_named(chunk, CAPTURE_START + 1000 + i * 100, name, (size_t)bytes);
  }
  prof_trace *const trace = open_capture(&c);
  open_columns(&r, trace, (prof_arrow_options){.batch_rows = ROWS});
  const int64_t names = column_of(&r, "name");
  for (int i = 0; i < NAMES / ROWS; i++) {
    assert_true(next_batch(&r));
    assert_int_equal(r.batch.length, ROWS);
    taken[i] = *r.batch.children[names];
    r.batch.children[names]->release = NULL; /* moved, as Arrow has it */
  }
  assert_false(next_batch(&r));
  prof_trace_destroy(trace);
  close_columns(&r);
  capture_end(&c);
  for (int i = 0; i < NAMES / ROWS; i++) {
    assert_int_equal(taken[i].dictionary->length, (i + 1) * ROWS);
    for (int k = 0; k < ROWS; k++) {
      snprintf(name, sizeof name, "a name of its own %d", i * ROWS + k);
      const int32_t at = ((const int32_t *)taken[i].buffers[1])[k];
      assert_string_equal(copy_text(taken[i].dictionary, at), name);
    }
    taken[i].release(&taken[i]);
  }
}

static void a_stream_may_be_released_at_any_point(void **state) {
  (void)state;
  capture c;
  columns r;
  put_scopes(begin(&c, 1700000000000000000u), 10);
  prof_trace *const trace = open_capture(&c);
  open_columns(&r, trace, (prof_arrow_options){.batch_rows = 4});
  close_columns(&r);
  open_columns(&r, trace, (prof_arrow_options){.batch_rows = 4});
  assert_true(next_batch(&r));
  prof_trace_destroy(trace);
  assert_true(next_batch(&r)); /* the stream still has the trace */
  assert_int_equal(number(&r, "duration_ns", 0), 14);
  close_columns(&r);
  capture_end(&c);
}

static void arguments_are_json(void **state) {
  (void)state;
  capture c;
  columns r;
  prof_i_head *const chunk = begin(&c, 1700000000000000000u);
  capture_plain(chunk, CAPTURE_START + 1000, 10, 1);
  put_list_scope(&c, chunk, CAPTURE_START + 2000, 10);
  capture_plain(chunk, CAPTURE_START + 3000, 10, 1);
  prof_trace *const trace = open_capture(&c);
  open_columns(&r, trace, (prof_arrow_options){.size = 0});
  assert_true(next_batch(&r));
  const struct ArrowArray *const args = r.batch.children[column_of(&r, "args")];
  assert_int_equal(args->null_count, 2);
  assert_true(is_null(&r, "args", 0) && !is_null(&r, "args", 1) && is_null(&r, "args", 2));
  assert_string_equal(copy_text(args, 0), "");
  assert_string_equal(copy_text(args, 1), "[\"Count: 3\",\"\\\"x\\\"\"]");
  assert_string_equal(copy_text(args, 2), "");
  close_columns(&r);
  prof_trace_destroy(trace);
  capture_end(&c);
}

static void a_time_selects_what_overlaps_it(void **state) {
  (void)state;
  capture c;
  columns r;
  put_scopes(begin(&c, 1700000000000000000u), 10);
  prof_trace *const trace = open_capture(&c);
  open_columns(&r, trace, (prof_arrow_options){.from_ns = 1211, .to_ns = 1500});
  assert_true(next_batch(&r));
  assert_int_equal(r.batch.length, 3);
  assert_int_equal(number(&r, "start_ns", 0), 1200);
  close_columns(&r);
  prof_trace_destroy(trace);
  capture_end(&c);
}

static void wrong_options_are_refused_with_their_values(void **state) {
  (void)state;
  capture c;
  struct ArrowArrayStream stream;
  begin(&c, 1700000000000000000u);
  prof_trace *const trace = open_capture(&c);
  const prof_arrow_options many = {.size = sizeof many, .batch_rows = 1048577},
                           empty = {.size = sizeof empty, .from_ns = 7, .to_ns = 7};
  assert_int_equal(prof_trace_arrow(trace, &many, &stream), PROF_E_INVALID);
  assert_non_null(strstr(prof_last_error(), "1048577"));
  assert_int_equal(prof_trace_arrow(trace, &empty, &stream), PROF_E_INVALID);
  assert_non_null(strstr(prof_last_error(), "not after from_ns, which is 7"));
  assert_int_equal(prof_trace_arrow(NULL, NULL, &stream), PROF_E_INVALID);
  assert_int_equal(prof_trace_arrow(trace, NULL, NULL), PROF_E_INVALID);
  prof_trace_destroy(trace);
  capture_end(&c);
}

static void the_library_writes_no_parquet_file(void **state) {
  (void)state;
  capture c;
  begin(&c, 1700000000000000000u);
  prof_trace *const trace = open_capture(&c);
  snprintf(path, sizeof path, "%s/out.parquet", folder);
  assert_int_equal(prof_trace_dump(trace, path, NULL), PROF_E_INVALID);
  assert_non_null(strstr(prof_last_error(), "prof dump"));
  assert_int_equal(access(path, F_OK), -1);
  prof_trace_destroy(trace);
  capture_end(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rows_are_the_events),
      cmocka_unit_test(a_trace_without_events_has_columns_and_no_batch),
      cmocka_unit_test(texts_are_valid_and_each_is_there_once),
      cmocka_unit_test(batches_outlive_the_stream_and_the_trace),
      cmocka_unit_test(a_stream_may_be_released_at_any_point),
      cmocka_unit_test(arguments_are_json),
      cmocka_unit_test(a_time_selects_what_overlaps_it),
      cmocka_unit_test(wrong_options_are_refused_with_their_values),
      IN_FOLDER(the_library_writes_no_parquet_file)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
