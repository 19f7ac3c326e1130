/* Arguments as JSON; see sink.h. */
#include "sink.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "../base/text.h"

void prof_i_value_dims(prof_i_sink *sink, const prof_trace_arg *arg) {
  const uint32_t rank = arg->type == PROF_ARG_TENSOR ? arg->value.tensor.rank : 0;
  prof_i_sink_bytes(sink, "[", 1);
  for (uint32_t i = 0; i < rank; i++) {
    char *to = prof_i_sink_reserve(sink, PROF_I_NUMBER_ROOM + 2);
    if (i > 0) {
      *to++ = ',';
      *to++ = ' ';
    }
    prof_i_sink_advance(sink, prof_i_put_i64(to, arg->value.tensor.dims[i]));
  }
  prof_i_sink_bytes(sink, "]", 1);
}

/* Quotes around a value that is not a JSON number and not inside of a string. */
static void value_put_quote(prof_i_sink *sink, bool is_inside) {
  if (!is_inside) prof_i_sink_bytes(sink, "\"", 1);
}

static void value_put_integer(prof_i_sink *sink, const prof_trace_arg *arg, bool is_inside) {
  const bool is_negative = arg->type == PROF_ARG_I64 && arg->value.i64 < 0;
  const uint64_t magnitude = is_negative ? 0 - arg->value.u64 : arg->value.u64;
  value_put_quote(sink, is_inside || magnitude <= PROF_I_EXACT_MAX);
  if (is_negative) prof_i_sink_bytes(sink, "-", 1);
  prof_i_sink_u64(sink, magnitude);
  value_put_quote(sink, is_inside || magnitude <= PROF_I_EXACT_MAX);
}

static void value_put_double(prof_i_sink *sink, double value, bool is_inside) {
  if (isfinite(value)) {
    prof_i_sink_double(sink, value);
    return;
  }
  value_put_quote(sink, is_inside);
  prof_i_sink_text(sink, isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity");
  value_put_quote(sink, is_inside);
}

bool prof_i_value_is_text_list(const prof_trace_arg *arg) {
  static const char begin[] = "[\x1f";
  return arg->type == PROF_ARG_STRING && arg->value.text.bytes >= sizeof begin &&
         memcmp(arg->value.text.data, begin, sizeof begin - 1) == 0;
}

/* Removes the mark of a list of texts (sink.h). */
static void value_put_string(prof_i_sink *sink, const prof_trace_arg *arg) {
  const char *const text = arg->value.text.data;
  const size_t bytes = (size_t)arg->value.text.bytes;
  if (prof_i_value_is_text_list(arg)) {
    prof_i_sink_bytes(sink, text, 1);
    prof_i_sink_string_part(sink, text + 2, bytes - 2);
  } else {
    prof_i_sink_string_part(sink, text, bytes);
  }
}

static void value_put(prof_i_sink *sink, const prof_trace_arg *arg, bool is_inside) {
  switch ((prof_arg_type)arg->type) {
    case PROF_ARG_I64:
    case PROF_ARG_U64:
      value_put_integer(sink, arg, is_inside);
      return;
    case PROF_ARG_F64:
      value_put_double(sink, arg->value.f64, is_inside);
      return;
    case PROF_ARG_BOOL:
      prof_i_sink_text(sink, arg->value.u64 != 0 ? "true" : "false");
      return;
    case PROF_ARG_STRING:
      value_put_quote(sink, is_inside);
      value_put_string(sink, arg);
      value_put_quote(sink, is_inside);
      return;
    case PROF_ARG_POINTER: {
      value_put_quote(sink, is_inside);
      char *const to = prof_i_sink_reserve(sink, PROF_I_NUMBER_ROOM);
      prof_i_sink_advance(sink, prof_i_put_hex(to, arg->value.u64));
      value_put_quote(sink, is_inside);
      return;
    }
    case PROF_ARG_TENSOR:
      prof_i_value_dims(sink, arg);
      return;
  }
  prof_i_sink_text(sink, "null"); /* a type that this version does not know */
}

void prof_i_value_json(prof_i_sink *sink, const prof_trace_arg *arg) {
  value_put(sink, arg, false);
}
void prof_i_value_text(prof_i_sink *sink, const prof_trace_arg *arg) { value_put(sink, arg, true); }

void prof_i_value_shapes(prof_i_sink *sink, const prof_event *event, uint32_t count) {
  prof_i_sink_text(sink, "[");
  for (uint32_t i = 0; i < count; i++) {
    if (i) prof_i_sink_text(sink, ", ");
    prof_i_value_dims(sink, &event->args[i]);
  }
  prof_i_sink_text(sink, "]");
}

static void value_put_key(prof_i_sink *sink, const prof_trace_arg *arg) {
  prof_i_sink_string(sink, arg->key ? arg->key : "value", arg->key ? arg->key_bytes : 5);
  prof_i_sink_text(sink, ":");
}

void prof_i_value_args(prof_i_sink *sink, const prof_event *event, uint32_t shape_count) {
  const bool is_list = event->args_kind == PROF_ARGS_LIST;
  prof_i_sink_text(sink, is_list ? "[" : "{");
  if (shape_count) {
    prof_i_sink_text(sink, "\"Input Dims\":");
    prof_i_value_shapes(sink, event, shape_count);
  }
  for (uint32_t i = shape_count; i < event->arg_count; i++) {
    if (i) prof_i_sink_text(sink, ",");
    if (!is_list) value_put_key(sink, &event->args[i]);
    prof_i_value_json(sink, &event->args[i]);
  }
  prof_i_sink_text(sink, is_list ? "]" : "}");
}
