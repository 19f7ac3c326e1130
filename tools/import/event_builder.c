/* Builds events from rows. See database.h. */
#include "database.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "json.h"

enum { NUMBER_BYTES = 64 };

/* As with JSON, no text has more than 1 MiB. */
static uint32_t event_put_text(import_event *event, import_text *text) {
  const import_text kept = import_text_cut(*text, IMPORT_STRING_BYTES_MAX);
  const size_t at = event->count;
  event->is_cut |= kept.bytes < text->bytes;
  event->text = import_make_room(event->text, &event->room, at + kept.bytes + 1, 1);
  if (kept.bytes) memcpy(event->text + at, kept.data, kept.bytes);
  event->text[at + kept.bytes] = '\0';
  event->count = at + kept.bytes + 1;
  *text = kept;
  return (uint32_t)at;
}

/* The digits of a number, at the end of `to`, as snprintf() is slow here. Returns their begin. */
static char *event_put_digits(char to[NUMBER_BYTES], uint64_t number, int least) {
  char *at = to + NUMBER_BYTES;
  for (; number > 0 || least > 0; number /= 10, least--) *--at = (char)('0' + number % 10);
  return at;
}

static uint64_t absolute_value(int64_t number) {
  return number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
}

static import_text number_text(char to[NUMBER_BYTES], int64_t number) {
  char *at = event_put_digits(to, absolute_value(number), 1);
  if (number < 0) *--at = '-';
  return (import_text){at, (size_t)(to + NUMBER_BYTES - at)};
}

static import_value make_value(import_event *event, import_type type, import_text text) {
  const uint32_t at = event_put_text(event, &text);
  return (import_value){.type = type, .at = at, .bytes = (uint32_t)text.bytes};
}

void import_event_begin(import_event *event, const char *phase) {
  char *const text = event->text;
  const size_t room = event->room;
  memset(event, 0, sizeof *event);
  event->text = text;
  event->room = room;
  import_event_set_member(event, IMPORT_PH, (import_text){phase, strlen(phase)});
}

void import_event_fini(import_event *event) { free(event->text); }

void import_event_set_member(import_event *event, import_member member, import_text text) {
  event->members[member] = make_value(event, IMPORT_TEXT, text);
}

void import_event_set_number(import_event *event, import_member member, int64_t number) {
  char digits[NUMBER_BYTES];
  event->members[member] = make_value(event, IMPORT_NUMBER, number_text(digits, number));
}

void import_event_set_column(import_event *event, import_member member, const import_rows *rows,
                             int column) {
  int64_t number;
  if (import_rows_i64(rows, column, &number)) {
    import_event_set_number(event, member, number);
    return;
  }
  event->is_odd = true;
  if (!import_rows_is_null(rows, column))
    import_event_set_member(event, member, import_rows_text(rows, column));
}

/* As microseconds with three decimals, which is how a trace has ns. */
static void event_put_ns(import_event *event, import_member member, int64_t ns) {
  char digits[NUMBER_BYTES];
  char *at = event_put_digits(digits, absolute_value(ns), 4); /* 1234 ns: 1.234 */
  memmove(at - 1, at, (size_t)(digits + NUMBER_BYTES - at) - 3);
  at--;
  digits[NUMBER_BYTES - 4] = '.';
  if (ns < 0) *--at = '-';
  const import_text text = {at, (size_t)(digits + NUMBER_BYTES - at)};
  event->members[member] = make_value(event, IMPORT_NUMBER, text);
}

void import_event_set_times(import_event *event, const import_rows *rows, int start, int end) {
  static const import_text none = {"none", 4}; /* no number, and counted as that */
  int64_t from, to, ns;
  if (import_rows_i64(rows, start, &from))
    event_put_ns(event, IMPORT_TS, from);
  else if (!import_rows_is_null(rows, start))
    import_event_set_member(event, IMPORT_TS, none);
  if (end < 0) return;
  if (import_rows_i64(rows, end, &to) && !__builtin_sub_overflow(to, from, &ns))
    event_put_ns(event, IMPORT_DUR, ns);
  else
    import_event_set_member(event, IMPORT_DUR, none);
}

/* ---- arguments ---- */

void import_event_add_arg(import_event *event, import_text key, import_type type,
                          import_text text) {
  if (event->arg_count == IMPORT_ARGS_MAX) {
    event->is_cut = true;
    return;
  }
  import_arg *const arg = &event->args[event->arg_count++];
  arg->key_at = event_put_text(event, &key);
  arg->key_bytes = (uint32_t)key.bytes;
  arg->value = make_value(event, type, text);
}

static import_text c_string_text(const char *text) { return (import_text){text, strlen(text)}; }

void import_event_add_text(import_event *event, const char *key, import_text text) {
  if (text.bytes) import_event_add_arg(event, c_string_text(key), IMPORT_TEXT, text);
}

void import_event_add_i64(import_event *event, const char *key, int64_t number) {
  char digits[NUMBER_BYTES];
  import_event_add_arg(event, c_string_text(key), IMPORT_NUMBER, number_text(digits, number));
}

void import_event_add_f64(import_event *event, import_text key, import_text digits) {
  char text[NUMBER_BYTES];
  bool is_plain = digits.bytes > 0 && digits.bytes + 3 < sizeof text;
  for (size_t i = 0; is_plain && i < digits.bytes; i++)
    is_plain = (digits.data[i] >= '0' && digits.data[i] <= '9') || digits.data[i] == '-';
  if (!is_plain) {
    import_event_add_arg(event, key, IMPORT_NUMBER, digits);
    return;
  }
  snprintf(text, sizeof text, "%.*s.0", (int)digits.bytes, digits.data);
  import_event_add_arg(event, key, IMPORT_NUMBER, c_string_text(text));
}

void import_event_add_column(import_event *event, const char *key, const import_rows *rows,
                             int column) {
  int64_t number;
  if (import_rows_i64(rows, column, &number))
    import_event_add_i64(event, key, number);
  else
    import_event_add_text(event, key, import_rows_text(rows, column));
}

void import_event_add_nonzero(import_event *event, const char *key, const import_rows *rows,
                              int column) {
  int64_t number;
  const bool is_number = import_rows_i64(rows, column, &number);
  if (!is_number || number != 0) import_event_add_column(event, key, rows, column);
}

void import_event_add_dims(import_event *event, const char *key, const import_rows *rows,
                           int column) {
  int64_t dims[3];
  char text[NUMBER_BYTES + 16];
  if (import_rows_is_null(rows, column)) return;
  for (int i = 0; i < 3; i++) {
    if (import_rows_i64(rows, column + i, &dims[i])) continue;
    event->is_odd = true;
    return;
  }
  snprintf(text, sizeof text, "[%" PRId64 ",%" PRId64 ",%" PRId64 "]", dims[0], dims[1], dims[2]);
  import_event_add_arg(event, c_string_text(key), IMPORT_JSON, c_string_text(text));
}
