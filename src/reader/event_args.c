/* The arguments of an event as text: by the format of printf that was recorded with them, as shapes
   of an operator's inputs, or one value alone. Independent of the locale. */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "../base/text.h"
#include "internal.h"

/* ---- printf of recorded values ---- */

/* The format is from a capture, so it is not trusted. It is parsed here, and each conversion is
   chosen by the type of the value. Widths are bounded. */

enum { WIDTH_MAX = 512, NUMBER_ROOM = 2 * WIDTH_MAX + 512 };

typedef struct output {
  char *to;
  size_t room;
  size_t count; /* that it would need */
} output;

static void output_put(output *out, const char *bytes, size_t count) {
  if (out->count < out->room)
    memcpy(out->to + out->count, bytes,
           count < out->room - out->count ? count : out->room - out->count);
  out->count += count;
}

static void output_put_blanks(output *out, size_t count) {
  for (size_t i = 0; i < count; i++) output_put(out, " ", 1);
}

/* One conversion. */
typedef struct conversion {
  char flags[8];
  int width;     /* negative: to the left */
  int precision; /* negative: none */
  int length;    /* bytes of the integer that C would read: 1, 2, 4, 8 */
  char type;
} conversion;

typedef struct format_reader {
  const char *at, *end;
  const prof_event *event;
  uint32_t next; /* argument */
} format_reader;

/* ---- values ---- */

static void output_put_padded(output *out, const conversion *c, const char *bytes, size_t count) {
  const size_t width = (size_t)(c->width < 0 ? -c->width : c->width);
  const size_t blanks = count < width ? width - count : 0;
  const int is_left = c->width < 0 || strchr(c->flags, '-') != NULL;
  if (!is_left) output_put_blanks(out, blanks);
  output_put(out, bytes, count);
  if (is_left) output_put_blanks(out, blanks);
}

/* The locale's decimal point, if it is another, becomes a point. */
static size_t repair_point(char *text, size_t count) {
  char probe[16];
  const int probed = snprintf(probe, sizeof probe, "%.1f", 0.5);
  const size_t bytes = probed > 2 && probed < 16 ? (size_t)probed - 2 : 1;
  probe[1 + bytes] = '\0';
  if (bytes == 1 && probe[1] == '.') return count;
  char *const point = strstr(text, probe + 1);
  if (!point) return count;
  *point = '.';
  memmove(point + 1, point + bytes, count - (size_t)(point - text) - bytes + 1);
  return count - bytes + 1;
}

static void output_put_double(output *out, const conversion *c, char type, double value) {
  char spec[32], text[NUMBER_ROOM];
  snprintf(spec, sizeof spec, "%%%s*.*%c", c->flags, type);
  const int count = snprintf(text, sizeof text, spec, c->width, c->precision, value);
  if (count > 0 && (size_t)count < sizeof text)
    output_put(out, text, repair_point(text, (size_t)count));
}

static void output_put_integer(output *out, const conversion *c, char type, long long value) {
  char spec[32], text[NUMBER_ROOM];
  snprintf(spec, sizeof spec, "%%%s*.*ll%c", c->flags, type);
  const int count = snprintf(text, sizeof text, spec, c->width, c->precision, value);
  if (count > 0 && (size_t)count < sizeof text) output_put(out, text, (size_t)count);
}

static void output_put_tensor(output *out, const prof_trace_arg *arg) {
  output_put(out, "[", 1);
  for (uint32_t i = 0; i < arg->value.tensor.rank; i++) {
    char text[32];
    const int count =
        snprintf(text, sizeof text, i ? ", %lld" : "%lld", (long long)arg->value.tensor.dims[i]);
    output_put(out, text, (size_t)count);
  }
  output_put(out, "]", 1);
}

/* In the natural form of the value, whatever the conversion is. */
static void output_put_default(output *out, const conversion *c, const prof_trace_arg *arg) {
  const conversion plain = {.width = c->width, .precision = -1};
  switch ((prof_arg_type)arg->type) {
    case PROF_ARG_I64:
      output_put_integer(out, &plain, 'd', arg->value.i64);
      return;
    case PROF_ARG_U64:
      output_put_integer(out, &plain, 'u', (long long)arg->value.u64);
      return;
    case PROF_ARG_F64:
      output_put_double(out, &plain, 'g', arg->value.f64);
      return;
    case PROF_ARG_BOOL:
      if (arg->value.u64)
        output_put_padded(out, &plain, "true", 4);
      else
        output_put_padded(out, &plain, "false", 5);
      return;
    case PROF_ARG_STRING:
      output_put_padded(out, &plain, arg->value.text.data, (size_t)arg->value.text.bytes);
      return;
    case PROF_ARG_POINTER:
      output_put_integer(out, &(conversion){.flags = "#", .width = c->width, .precision = -1}, 'x',
                         arg->value.i64);
      return;
    case PROF_ARG_TENSOR:
      output_put_tensor(out, arg);
      return;
  }
}

/* The integer as C would pass it: a narrow one wraps. */
static long long narrow_integer(const conversion *c, int64_t value, int is_signed) {
  switch (c->length) {
    case 1:
      return is_signed ? (long long)(int8_t)value : (long long)(uint8_t)value;
    case 2:
      return is_signed ? (long long)(int16_t)value : (long long)(uint16_t)value;
    case 4:
      return is_signed ? value : (long long)(uint32_t)value;
    default:
      return value;
  }
}

static void output_put_character(output *out, const conversion *c, int64_t value) {
  const char byte = (char)value;
  output_put_padded(out, c, &byte, 1);
}

static void output_put_arg(output *out, const conversion *c, const prof_trace_arg *arg) {
  const int is_integer =
      arg->type == PROF_ARG_I64 || arg->type == PROF_ARG_U64 || arg->type == PROF_ARG_BOOL;
  switch (c->type) {
    case 'd':
    case 'i':
      if (!is_integer) break;
      if (arg->type == PROF_ARG_U64 && arg->value.i64 < 0) break; /* in its natural form */
      output_put_integer(out, c, 'd', narrow_integer(c, arg->value.i64, 1));
      return;
    case 'u':
    case 'x':
    case 'X':
    case 'o':
      if (!is_integer && arg->type != PROF_ARG_POINTER) break;
      output_put_integer(out, c, c->type, narrow_integer(c, arg->value.i64, 0));
      return;
    case 'c':
      if (!is_integer) break;
      output_put_character(out, c, arg->value.i64);
      return;
    case 's':
      if (arg->type != PROF_ARG_STRING) break;
      output_put_padded(out, c, arg->value.text.data,
                        c->precision >= 0 && (uint64_t)c->precision < arg->value.text.bytes
                            ? (size_t)c->precision
                            : (size_t)arg->value.text.bytes);
      return;
    case 'p':
      if (arg->type == PROF_ARG_POINTER && arg->value.u64 == 0) {
        output_put_padded(out, c, "(nil)", 5);
        return;
      }
      if (!is_integer && arg->type != PROF_ARG_POINTER) break;
      output_put_integer(out, &(conversion){.flags = "#", .width = c->width, .precision = -1}, 'x',
                         arg->value.i64);
      return;
    case 'a':
    case 'A':
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G':
      if (arg->type != PROF_ARG_F64) break;
      output_put_double(out, c, c->type, arg->value.f64);
      return;
  }
  output_put_default(out, c, arg);
}

/* ---- the format ---- */

static int bound_int(int64_t value) {
  return value > WIDTH_MAX ? WIDTH_MAX : value < -WIDTH_MAX ? -WIDTH_MAX : (int)value;
}

static int64_t read_digits(format_reader *r) {
  int64_t value = 0;
  for (; r->at < r->end && *r->at >= '0' && *r->at <= '9'; r->at++)
    if (value < 100000) value = value * 10 + (*r->at - '0');
  return value;
}

static const prof_trace_arg *next_arg(format_reader *r) {
  return r->next < r->event->arg_count ? &r->event->args[r->next++] : NULL;
}

/* Reads "3$", the number of an argument. Does not move without a $. */
static int read_position(format_reader *r, uint32_t *index_out) {
  const char *const from = r->at;
  const int64_t value = read_digits(r);
  if (value > 0 && r->at < r->end && *r->at == '$') {
    r->at++;
    *index_out = (uint32_t)value - 1;
    return 1;
  }
  r->at = from;
  return 0;
}

/* A width or a precision: digits, or * for an argument. */
static int read_width(format_reader *r) {
  uint32_t index;
  if (r->at >= r->end || *r->at != '*') return bound_int(read_digits(r));
  r->at++;
  const prof_trace_arg *const arg = !read_position(r, &index)     ? next_arg(r)
                                    : index < r->event->arg_count ? &r->event->args[index]
                                                                  : NULL;
  return arg && (arg->type == PROF_ARG_I64 || arg->type == PROF_ARG_U64) ? bound_int(arg->value.i64)
                                                                         : 0;
}

static void read_flags(format_reader *r, conversion *c) {
  size_t count = 0;
  for (; r->at < r->end && strchr("-+ #0'I", *r->at) && *r->at; r->at++)
    if (*r->at != '\'' && *r->at != 'I' && !memchr(c->flags, *r->at, count))
      c->flags[count++] = *r->at;
}

static void read_length(format_reader *r, conversion *c) {
  c->length = 4;
  for (; r->at < r->end && *r->at && strchr("hlqLjzt", *r->at); r->at++)
    c->length = *r->at != 'h' ? 8 : c->length == 2 ? 1 : 2;
}

static void output_put_conversion(output *out, format_reader *r) {
  const char *const from = r->at - 1; /* the % */
  conversion c = {.precision = -1};
  uint32_t index = 0;
  const int has_position = read_position(r, &index);
  read_flags(r, &c);
  c.width = read_width(r);
  if (r->at < r->end && *r->at == '.') {
    r->at++;
    c.precision = read_width(r);
  }
  read_length(r, &c);
  if (r->at < r->end) c.type = *r->at++;
  if (c.type == '%') {
    output_put(out, "%", 1);
    return;
  }
  const int is_known = c.type && strchr("diuxXocspaAeEfFgGn", c.type);
  const prof_trace_arg *const arg = !is_known                     ? NULL
                                    : !has_position               ? next_arg(r)
                                    : index < r->event->arg_count ? &r->event->args[index]
                                                                  : NULL;
  /* written unchanged: it has no value */
  if (!arg)
    output_put(out, from, (size_t)(r->at - from));
  else if (c.type != 'n')
    output_put_arg(out, &c, arg);
}

size_t prof_i_format_args(const prof_event *event, char *to, size_t room) {
  if (!event->format) return 0;
  output out = {to, room, 0};
  format_reader r = {event->format, event->format + event->format_bytes, event, 0};
  while (r.at < r.end) {
    const char *const percent = memchr(r.at, '%', (size_t)(r.end - r.at));
    const char *const stop = percent ? percent : r.end;
    output_put(&out, r.at, (size_t)(stop - r.at));
    r.at = stop;
    if (!percent) break;
    r.at++;
    output_put_conversion(&out, &r);
  }
  return out.count;
}

/* ---- shapes of an operator's inputs, from its tensors or from texts ---- */

uint32_t prof_i_shape_count(const prof_event *event) {
  uint32_t count = 0;
  if (event->args_kind != PROF_ARGS_SHAPES) return 0;
  while (count < event->arg_count && event->args[count].key_bytes == 0) count++;
  return count;
}

static bool arg_has_key(const prof_trace_arg *arg, const char *key) {
  const size_t bytes = strlen(key);
  return arg->type == PROF_ARG_STRING && arg->key_bytes == bytes &&
         memcmp(arg->key, key, bytes) == 0;
}

bool prof_i_shape_has_texts(const prof_event *event) {
  const uint32_t count = prof_i_shape_count(event);
  return count && count + 1 < event->arg_count &&
         arg_has_key(&event->args[count], "Tensor lists") &&
         arg_has_key(&event->args[count + 1], "Tensor types");
}

/* Reads "[[[2,10],[3,10]],[],[4]]". A list of tensors has no dimensions. 0: another format. */
static size_t words_of_text(const char *text, size_t bytes, uint64_t *to, size_t room) {
  enum { INPUT = 2, TENSOR = 3 }; /* depths */
  size_t at = 0, rank_at = 0;
  uint32_t depth = 0;
  for (size_t i = 0; i < bytes && at < room; i++) {
    if (text[i] == '[') {
      if (++depth > TENSOR) return 0;
      if (depth == INPUT) to[rank_at = at++] = 0;
    } else if (text[i] == ']') {
      if (depth-- == 0) return 0;
    } else if (text[i] == '-' || (text[i] >= '0' && text[i] <= '9')) {
      const bool is_negative = text[i] == '-';
      uint64_t dim = 0;
      for (i += is_negative; i < bytes && text[i] >= '0' && text[i] <= '9'; i++)
        dim = dim * 10 + (uint64_t)(text[i] - '0');
      i--;
      if (depth < INPUT) return 0;
      if (depth == INPUT) to[rank_at]++, to[at++] = is_negative ? 0 - dim : dim;
    } else if (text[i] != ',') {
      return 0;
    }
  }
  return depth == 0 ? at : 0;
}

size_t prof_i_shape_words(const prof_event *event, uint64_t *to, size_t room) {
  size_t at = 0;
  const uint32_t count = prof_i_shape_count(event);
  if (prof_i_shape_has_texts(event)) {
    const prof_trace_arg *const lists = &event->args[count];
    at = words_of_text(lists->value.text.data, lists->value.text.bytes, to, room);
    if (at) return at;
  }
  for (uint32_t i = 0; i < count && at < room; i++) {
    const prof_trace_arg *const arg = &event->args[i];
    const size_t left = room - at - 1,
                 rank = arg->type == PROF_ARG_TENSOR ? arg->value.tensor.rank : 0,
                 kept = rank < left ? rank : left;
    to[at++] = kept;
    if (kept) memcpy(to + at, arg->value.tensor.dims, kept * sizeof *to);
    at += kept;
  }
  return at;
}

/* Values of a rank. */
#define NO_TENSOR (UINT64_MAX - 1) /* without dimensions */
#define TEXT UINT64_MAX            /* followed by its bytes, and words with them */

static const prof_trace_arg *shape_text_arg(const prof_event *event, const char *key) {
  for (uint32_t i = 0; i < event->arg_count; i++)
    if (arg_has_key(&event->args[i], key)) return &event->args[i];
  return NULL;
}

size_t prof_i_shape_flops_words(const prof_event *event, uint64_t *to, size_t room) {
  static const char convolution[] = "aten::conv2d";
  size_t at = prof_i_shape_words(event, to, room);
  if (at == 0) return 0;
  const prof_trace_arg *const first = event->args;
  if (first->type != PROF_ARG_TENSOR ||
      (to[0] == 0 && first->value.tensor.dtype == PROF_DTYPE_NONE))
    to[0] = NO_TENSOR;
  if (event->name_bytes != sizeof convolution - 1 ||
      memcmp(event->name, convolution, sizeof convolution - 1) != 0)
    return at;
  const prof_trace_arg *const inputs = shape_text_arg(event, "Concrete Inputs");
  const size_t bytes = inputs ? inputs->value.text.bytes : 0, words = (bytes + 7) / 8;
  if (!bytes || words + 2 > room - at) return at;
  to[at] = TEXT;
  to[at + 1] = bytes;
  to[at + 1 + words] = 0;
  memcpy(to + at + 2, inputs->value.text.data, bytes);
  return at + 2 + words;
}

/* A text being made, and the bytes that it needs. */
typedef struct shape_line {
  char *to;
  size_t room, bytes;
} shape_line;

static void shape_put(shape_line *line, const char *text, size_t bytes) {
  if (line->bytes < line->room)
    memcpy(line->to + line->bytes, text,
           bytes < line->room - line->bytes ? bytes : line->room - line->bytes);
  line->bytes += bytes;
}

static void shape_put_dim(shape_line *line, int64_t dim, bool is_first) {
  char text[32];
  shape_put(line, text,
            (size_t)snprintf(text, sizeof text, is_first ? "%lld" : ", %lld", (long long)dim));
}

size_t prof_i_shape_text(const uint64_t *words, size_t count, char *to, size_t room) {
  shape_line line = {to, room, 0};
  for (size_t at = 0; at < count && words[at] != TEXT;) {
    const size_t rank = words[at] == NO_TENSOR ? 0 : words[at];
    const bool is_last = at + 1 + rank == count || words[at + 1 + rank] == TEXT;
    shape_put(&line, at ? ", " : "[", at ? 2 : 1);
    shape_put(&line, words[at] == NO_TENSOR ? "null" : "[", words[at] == NO_TENSOR ? 4 : 1);
    for (size_t d = 0; d < rank; d++) shape_put_dim(&line, (int64_t)words[at + 1 + d], d == 0);
    if (words[at] != NO_TENSOR) shape_put(&line, "]", 1);
    if (is_last) shape_put(&line, "]", 1);
    at += 1 + rank;
    if (at < count && words[at] == TEXT) {
      shape_put(&line, "\n", 1);
      shape_put(&line, (const char *)(words + at + 2), words[at + 1]);
    }
  }
  return line.bytes;
}

/* ---- the value of an argument ---- */

static char *put_dims(const prof_trace_arg *arg, char *room) {
  const char *const limit = room + PROF_I_ARG_VALUE_ROOM - PROF_I_NUMBER_ROOM - 4;
  char *to = room;
  *to++ = '[';
  for (uint32_t i = 0; i < arg->value.tensor.rank; i++) {
    if (to > limit) return room;
    if (i) {
      *to++ = ',';
      *to++ = ' ';
    }
    to = prof_i_put_i64(to, arg->value.tensor.dims[i]);
  }
  *to++ = ']';
  return to;
}

static char *put_word(char *to, const char *word) {
  const size_t bytes = strlen(word);
  memcpy(to, word, bytes);
  return to + bytes;
}

static char *put_f64(char *to, double value) {
  if (isfinite(value)) return prof_i_put_double(to, value);
  return put_word(to, isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
}

static char *put_value(const prof_trace_arg *arg, char *room) {
  switch ((prof_arg_type)arg->type) {
    case PROF_ARG_I64:
      return prof_i_put_i64(room, arg->value.i64);
    case PROF_ARG_U64:
      return prof_i_put_u64(room, arg->value.u64);
    case PROF_ARG_F64:
      return put_f64(room, arg->value.f64);
    case PROF_ARG_BOOL:
      return put_word(room, arg->value.u64 ? "true" : "false");
    case PROF_ARG_POINTER:
      return prof_i_put_hex(room, arg->value.u64);
    case PROF_ARG_TENSOR:
      return put_dims(arg, room);
    case PROF_ARG_STRING:
      break;
  }
  return room;
}

prof_i_text prof_i_arg_value_text(const prof_trace_arg *arg, char room[PROF_I_ARG_VALUE_ROOM]) {
  if (arg->type == PROF_ARG_STRING)
    return (prof_i_text){arg->value.text.data, arg->value.text.bytes};
  return (prof_i_text){room, (uint64_t)(put_value(arg, room) - room)};
}

const prof_trace_arg *prof_i_arg_find(const prof_event *event, const char *key, size_t key_bytes) {
  for (uint32_t i = 0; i < event->arg_count; i++) {
    const prof_trace_arg *const arg = &event->args[i];
    if (arg->key && arg->key_bytes == key_bytes && memcmp(arg->key, key, key_bytes) == 0)
      return arg;
  }
  return NULL;
}
