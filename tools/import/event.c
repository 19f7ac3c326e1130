/* Arguments of an event, and the numbers in its texts. See event.h. */
#include "event.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/base/text.h"

/* If a key comes twice, its last value counts, as everywhere. */
const import_value *import_event_arg(const import_event *event, const char *key) {
  for (uint32_t i = event->arg_count; i-- > 0;) {
    const import_arg *const arg = &event->args[i];
    if (import_text_is((import_text){event->text + arg->key_at, arg->key_bytes}, key))
      return &arg->value;
  }
  return NULL;
}

/* ---- numbers ---- */

enum { DIGITS_MAX = 64 };
static const int64_t us_max = INT64_MAX / 1000 - 1;

bool import_number_u64(import_text text, uint64_t *out) {
  uint64_t value = 0;
  if (text.bytes == 0) return false;
  for (size_t i = 0; i < text.bytes; i++) {
    if (!prof_i_is_digit(text.data[i]) || __builtin_mul_overflow(value, 10u, &value) ||
        __builtin_add_overflow(value, (uint64_t)(text.data[i] - '0'), &value))
      return false;
  }
  *out = value;
  return true;
}

bool import_number_i64(import_text text, int64_t *out) {
  const bool is_negative = text.bytes > 0 && text.data[0] == '-';
  uint64_t value;
  if (!import_number_u64((import_text){text.data + is_negative, text.bytes - is_negative}, &value))
    return false;
  if (value > (uint64_t)INT64_MAX + is_negative) return false;
  *out = is_negative ? (int64_t)(0 - value) : (int64_t)value;
  return true;
}

bool import_number_double(import_text text, double *out) {
  char digits[DIGITS_MAX + 1], *end;
  if (text.bytes == 0 || text.bytes > DIGITS_MAX) return false;
  memcpy(digits, text.data, text.bytes);
  digits[text.bytes] = '\0';
  if (strspn(digits, "+-.0123456789eE") < text.bytes) return false; /* strtod() takes more */
  *out = strtod(digits, &end);                                      /* the command sets no locale */
  return *end == '\0' && isfinite(*out);
}

bool import_number_whole(import_text text, int64_t *out) {
  const double exact_max = 9007199254740992.0; /* 2^53 */
  double value;
  if (import_number_i64(text, out)) return true;
  if (!import_number_double(text, &value) || fabs(value) > exact_max) return false;
  *out = (int64_t)value;
  return (double)*out == value;
}

/* 1.5e6. Nobody who counts ns writes a time like this. */
static bool read_power(import_text text, int64_t *ns_out) {
  double us;
  if (!import_number_double(text, &us) || fabs(us) > (double)us_max / 2) return false;
  *ns_out = llround(us * 1000);
  return true;
}

bool import_number_us(import_text text, int64_t *ns_out) {
  const bool is_negative = text.bytes > 0 && text.data[0] == '-';
  size_t at = is_negative;
  int64_t ns = 0;
  if (at == text.bytes || !prof_i_is_digit(text.data[at])) return false;
  for (; at < text.bytes && prof_i_is_digit(text.data[at]); at++) {
    ns = ns * 10 + (text.data[at] - '0');
    if (ns > us_max) return false;
  }
  ns *= 1000;
  if (at < text.bytes && text.data[at] == '.') {
    int64_t weight = 100;
    for (at++; at < text.bytes && prof_i_is_digit(text.data[at]); at++, weight /= 10) {
      if (weight == 0) {
        ns += text.data[at] >= '5';
        while (at < text.bytes && prof_i_is_digit(text.data[at])) at++;
        break;
      }
      ns += weight * (text.data[at] - '0');
    }
  }
  if (at < text.bytes) return read_power(text, ns_out);
  *ns_out = is_negative ? -ns : ns;
  return true;
}

bool import_read_arg(const import_event *event, const char *key, int64_t *out) {
  const import_value *const value = import_event_arg(event, key);
  return value && (value->type == IMPORT_NUMBER || value->type == IMPORT_TEXT) &&
         import_number_whole(import_text_of(event, value), out);
}
