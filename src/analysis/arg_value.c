/* See arg_value.h. */
#include "arg_value.h"

#include <math.h>
#include <string.h>

#include "../base/text.h"

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
