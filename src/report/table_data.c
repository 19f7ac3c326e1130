/* A table of aggregates for programs: CSV and JSON. Times are ns, sizes bytes, shares per cent. */
#include <string.h>

#include "../sink/sink.h"
#include "table_columns.h"

enum { TEXT_BYTES_MAX = 1 << 30, KEY_BYTES = 40 };

/* "open-for" of a time becomes "open_for_ns". */
static void make_key(table_column column, char to[KEY_BYTES]) {
  const prof_i_table_column *const of = &prof_i_table_columns[column];
  size_t count = 0;
  for (const char *at = of->word; *at; at++) to[count++] = (char)(*at == '-' ? '_' : *at);
  strcpy(to + count, of->value == TABLE_VALUE_TIME    ? "_ns"
                     : of->value == TABLE_VALUE_BYTES ? "_bytes"
                                                      : "");
}

static bool value_is_missing(const table_value *value) {
  return value->kind == TABLE_VALUE_NONE || value->kind == TABLE_VALUE_UNKNOWN ||
         (value->kind == TABLE_VALUE_SHARE && value->whole == 0);
}

static void put_number(prof_i_sink *sink, const table_value *value) {
  if (value->kind == TABLE_VALUE_SHARE)
    prof_i_sink_double(sink, (double)value->number / (double)value->whole * 100);
  else if (value->kind == TABLE_VALUE_BYTES)
    prof_i_sink_i64(sink, value->bytes);
  else
    prof_i_sink_u64(sink, value->number);
}

/* ---- CSV ---- */

static void put_csv_value(prof_i_sink *sink, const table_value *value) {
  if (value_is_missing(value)) return;
  if (value->kind != TABLE_VALUE_TEXT && value->kind != TABLE_VALUE_PLACE) {
    put_number(sink, value);
    return;
  }
  prof_i_sink_text(sink, "\"");
  prof_i_sink_csv_part(sink, value->text, strlen(value->text));
  if (value->kind == TABLE_VALUE_PLACE) {
    prof_i_sink_text(sink, ":");
    prof_i_sink_u64(sink, value->number);
  }
  prof_i_sink_text(sink, "\"");
}

int prof_i_table_csv(const prof_i_table *t, char **text_out) {
  prof_i_sink sink;
  char key[KEY_BYTES];
  table_value value;
  size_t bytes;
  const int status = prof_i_sink_open_memory(&sink, TEXT_BYTES_MAX);
  if (status != PROF_OK) return status;
  for (size_t i = 0; i < t->order_count; i++) {
    make_key(t->order[i], key);
    prof_i_sink_text(&sink, i ? "," : "");
    prof_i_sink_text(&sink, key);
  }
  prof_i_sink_text(&sink, "\r\n");
  for (uint64_t r = 0; r < t->rows->row_count; r++) {
    for (size_t i = 0; i < t->order_count; i++) {
      prof_i_sink_text(&sink, i ? "," : "");
      prof_i_table_value(t, &t->rows->rows[r], t->order[i], &value);
      put_csv_value(&sink, &value);
    }
    prof_i_sink_text(&sink, "\r\n");
  }
  return prof_i_sink_take(&sink, text_out, &bytes);
}

/* ---- JSON ---- */

static void put_json_place(prof_i_sink *sink, const table_value *value) {
  prof_i_sink_text(sink, "\"");
  prof_i_sink_string_part(sink, value->text, strlen(value->text));
  prof_i_sink_text(sink, ":");
  prof_i_sink_u64(sink, value->number);
  prof_i_sink_text(sink, "\"");
}

static void put_json_row(prof_i_sink *sink, const prof_i_table *t, const prof_row *row) {
  char key[KEY_BYTES];
  table_value value;
  for (size_t i = 0; i < t->order_count; i++) {
    make_key(t->order[i], key);
    prof_i_sink_text(sink, i ? ",\"" : "{\"");
    prof_i_sink_text(sink, key);
    prof_i_sink_text(sink, "\":");
    prof_i_table_value(t, row, t->order[i], &value);
    if (value_is_missing(&value))
      prof_i_sink_text(sink, "null");
    else if (value.kind == TABLE_VALUE_TEXT)
      prof_i_sink_string(sink, value.text, strlen(value.text));
    else if (value.kind == TABLE_VALUE_PLACE)
      put_json_place(sink, &value);
    else
      put_number(sink, &value);
  }
  prof_i_sink_text(sink, "}");
}

int prof_i_table_json(const prof_i_table *t, char **text_out) {
  prof_i_sink sink;
  size_t bytes;
  uint64_t recorded = 0, lost = 0;
  for (size_t i = 0; i < t->trace_count; i++) {
    const prof_trace_info info = prof_i_table_info(t->traces[i]);
    recorded += info.event_count - info.open_count;
    for (int r = 0; r < PROF_LOSS_COUNT; r++) lost += info.lost_count[r];
  }
  const int status = prof_i_sink_open_memory(&sink, TEXT_BYTES_MAX);
  if (status != PROF_OK) return status;
  prof_i_sink_text(&sink, "{\"captures\":");
  prof_i_sink_u64(&sink, t->trace_count);
  prof_i_sink_key_u64(&sink, "recorded", recorded);
  prof_i_sink_key_u64(&sink, "lost", lost);
  prof_i_sink_key_u64(&sink, "self_total_ns", t->rows->total_self_ns);
  prof_i_sink_key_u64(&sink, "calls", t->rows->calls_count);
  prof_i_sink_key_u64(&sink, "open", t->rows->open_count);
  prof_i_sink_key_u64(&sink, "groups", t->rows->all_row_count);
  prof_i_sink_key(&sink, "rows");
  prof_i_sink_text(&sink, "[");
  for (uint64_t r = 0; r < t->rows->row_count; r++) {
    prof_i_sink_text(&sink, r ? ",\n" : "\n");
    put_json_row(&sink, t, &t->rows->rows[r]);
  }
  prof_i_sink_text(&sink, "\n]}\n");
  return prof_i_sink_take(&sink, text_out, &bytes);
}
