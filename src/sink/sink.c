/* Where an exporter's bytes go; see sink.h. */
#define _GNU_SOURCE
#include "sink.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <prof/status.h>
#include <stdbool.h>
#include <string.h>

#include "../base/error.h"
#include "../base/text.h"

static int sink_prepare(prof_i_sink *sink) {
  *sink = (prof_i_sink){.status = PROF_OK};
  sink->target.file.fd = sink->target.folder.fd = -1;
  const size_t room = PROF_I_SINK_BYTES + PROF_I_SINK_RESERVE_MAX;
  sink->buffer = malloc(room + PROF_I_SINK_SLACK);
  if (sink->buffer == NULL)
    return prof_i_fail(PROF_E_NO_MEMORY, "no memory for a buffer of %zu bytes", room);
  sink->next = sink->buffer;
  sink->end = sink->buffer + room;
  return PROF_OK;
}

int prof_i_sink_open_file(prof_i_sink *sink, const char *path, bool is_gzip, bool must_be_new) {
  int status = sink_prepare(sink);
  if (status == PROF_OK && is_gzip) status = prof_i_gzip_create(PROF_I_GZIP_LEVEL, &sink->gzip);
  if (status == PROF_OK) status = prof_i_target_open(&sink->target, path, must_be_new);
  if (status != PROF_OK) prof_i_sink_abandon(sink);
  return status;
}

static int sink_write_out(prof_i_sink *sink, const char *bytes, size_t count, bool is_last) {
  if (sink->gzip != NULL)
    return prof_i_gzip_write(sink->gzip, &sink->target, bytes, count, is_last);
  return prof_i_target_write(&sink->target, bytes, count);
}

int prof_i_sink_open_live_file(prof_i_sink *sink, const char *path) {
  int status = sink_prepare(sink);
  if (status == PROF_OK) status = prof_i_target_open_live(&sink->target, path);
  if (status != PROF_OK) prof_i_sink_abandon(sink);
  return status;
}

void prof_i_sink_flush(prof_i_sink *sink) {
  const size_t used = (size_t)(sink->next - sink->buffer);
  if (sink->status == PROF_OK && used > 0)
    sink->status = sink_write_out(sink, sink->buffer, used, false);
  sink->next = sink->buffer;
}

/* Nothing is in it yet. */
void prof_i_sink_keep_private(prof_i_sink *sink) {
  if (!sink->target.is_direct) (void)fchmod(sink->target.file.fd, 0600);
}

int prof_i_sink_open_memory(prof_i_sink *sink, size_t limit_bytes) {
  const int status = sink_prepare(sink);
  sink->is_memory = true;
  sink->limit_bytes = limit_bytes;
  return status;
}

/* Doubles, so that the text is copied twice at the most; the kernel moves large pieces without
   copying. */
static int sink_grow(prof_i_sink *sink, size_t wanted_bytes) {
  const size_t used = (size_t)(sink->next - sink->buffer);
  const size_t held = sink->held ? (size_t)(sink->held - sink->buffer) : 0;
  size_t room = (size_t)(sink->end - sink->buffer);
  if (sink->is_memory && used + wanted_bytes > sink->limit_bytes)
    return prof_i_fail(PROF_E_TOO_LARGE,
                       "the text is larger than %zu bytes; write it to a file instead",
                       sink->limit_bytes);
  while (room < used + wanted_bytes) room *= 2;
  char *const memory = realloc(sink->buffer, room + PROF_I_SINK_SLACK);
  if (memory == NULL)
    return prof_i_fail(PROF_E_NO_MEMORY, "no memory for a text of %zu bytes", room);
  sink->buffer = memory;
  sink->next = memory + used;
  sink->end = memory + room;
  if (sink->held) sink->held = memory + held;
  return PROF_OK;
}

/* Bytes at the front of the buffer that are written at once. */
static size_t sink_block_bytes(const prof_i_sink *sink) {
  enum { PAGE = 4096 };
  const size_t used = (size_t)(sink->next - sink->buffer);
  const size_t held = sink->held ? (size_t)(sink->held - sink->buffer) : SIZE_MAX;
  if (held < PROF_I_SINK_BYTES) return held / PAGE * PAGE;
  return used < PROF_I_SINK_BYTES ? used : PROF_I_SINK_BYTES;
}

/* Writes the buffer's first part, and moves what is behind it to the front. */
static int sink_write_block(prof_i_sink *sink, size_t wanted_bytes) {
  const size_t used = (size_t)(sink->next - sink->buffer), block = sink_block_bytes(sink);
  const size_t room = (size_t)(sink->end - sink->buffer);
  if (used - block + wanted_bytes > room) return sink_grow(sink, wanted_bytes);
  const int status = sink_write_out(sink, sink->buffer, block, false);
  memmove(sink->buffer, sink->buffer + block, used - block);
  sink->next -= block;
  if (sink->held) sink->held -= block;
  return status;
}

void prof_i_sink_make_room(prof_i_sink *sink, size_t wanted_bytes) {
  if (sink->status == PROF_OK)
    sink->status =
        sink->is_memory ? sink_grow(sink, wanted_bytes) : sink_write_block(sink, wanted_bytes);
  if (sink->status == PROF_OK) return;
  sink->next = sink->buffer;
  sink->held = NULL;
}

int prof_i_sink_target(prof_i_sink *sink, prof_i_target **target_out) {
  const prof_i_target *const target = &sink->target;
  *target_out = &sink->target;
  if (!sink->is_memory && !sink->gzip && !target->is_direct) return PROF_OK;
  return prof_i_fail(PROF_E_FILE_TYPE, "cannot write a database to '%s': %s",
                     sink->is_memory ? "memory" : target->path,
                     sink->gzip
                         ? "it cannot be compressed while it is written; write it without gzip"
                         : "it has to be a regular file; give -o FILE.db or -o FILE.rpd");
}

int prof_i_sink_commit(prof_i_sink *sink) {
  if (sink->status == PROF_OK)
    sink->status = sink_write_out(sink, sink->buffer, (size_t)(sink->next - sink->buffer), true);
  int status = sink->status;
  if (status == PROF_OK) status = prof_i_target_commit(&sink->target);
  prof_i_sink_abandon(sink);
  return status;
}

int prof_i_sink_take(prof_i_sink *sink, char **text_out, size_t *bytes_out) {
  const int status = sink->status;
  if (status == PROF_OK) {
    const size_t bytes = (size_t)(sink->next - sink->buffer);
    *sink->next = 0; /* there is always slack */
    char *const fitting = realloc(sink->buffer, bytes + 1);
    *text_out = fitting != NULL ? fitting : sink->buffer;
    *bytes_out = bytes;
    sink->buffer = NULL;
  }
  prof_i_sink_abandon(sink);
  return status;
}

void prof_i_sink_abandon(prof_i_sink *sink) {
  prof_i_target_abandon(&sink->target);
  prof_i_gzip_destroy(sink->gzip);
  free(sink->buffer);
  sink->gzip = NULL;
  sink->buffer = sink->next = sink->end = NULL;
}

void prof_i_sink_bytes(prof_i_sink *sink, const void *bytes, size_t count) {
  const char *from = bytes;
  if (count >= PROF_I_SINK_BYTES && !sink->is_memory && !sink->held) {
    /* straight from the caller's memory */
    while (sink->next > sink->buffer) prof_i_sink_make_room(sink, 0);
    if (sink->status == PROF_OK) sink->status = sink_write_out(sink, from, count, false);
    return;
  }
  while (count > 0) {
    const size_t part = count < PROF_I_SINK_RESERVE_MAX ? count : PROF_I_SINK_RESERVE_MAX;
    char *const to = prof_i_sink_reserve(sink, part);
    memcpy(to, from, part);
    prof_i_sink_advance(sink, to + part);
    from += part;
    count -= part;
  }
}

/* Reads and writes what the kernel did not copy. */
static uint64_t copy_by_buffer(prof_i_sink *sink, int fd, uint64_t offset, uint64_t count) {
  uint64_t done = 0;
  while (done < count && sink->status == PROF_OK) {
    const size_t most = PROF_I_SINK_RESERVE_MAX;
    const size_t wanted = count - done < most ? (size_t)(count - done) : most;
    char *const to = prof_i_sink_reserve(sink, wanted);
    const ssize_t got = pread(fd, to, wanted, (off_t)(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    prof_i_sink_advance(sink, to + got);
    done += (uint64_t)got;
  }
  return done;
}

uint64_t prof_i_sink_copy(prof_i_sink *sink, int fd, uint64_t offset, uint64_t count) {
  uint64_t copied = 0;
  errno = 0;
  while (sink->next > sink->buffer) prof_i_sink_make_room(sink, 0);
  if (sink->status == PROF_OK)
    sink->status = prof_i_target_copy(&sink->target, fd, offset, count, &copied);
  errno = 0;
  return copied + copy_by_buffer(sink, fd, offset + copied, count - copied);
}

void prof_i_sink_string_part(prof_i_sink *sink, const char *text, size_t bytes) {
  enum { PART = 4096 };
  for (size_t at = 0; at < bytes;) {
    char *const to = prof_i_sink_reserve(sink, PART);
    prof_i_sink_advance(sink, to + prof_i_escape(to, PART, text, bytes, &at));
  }
}

void prof_i_sink_string(prof_i_sink *sink, const char *text, size_t bytes) {
  prof_i_sink_bytes(sink, "\"", 1);
  prof_i_sink_string_part(sink, text, bytes);
  prof_i_sink_bytes(sink, "\"", 1);
}

void prof_i_sink_csv_part(prof_i_sink *sink, const char *text, size_t bytes) {
  while (bytes > 0) {
    const prof_i_utf8_character character = prof_i_utf8_take(&text, &bytes);
    if (*character.data == '"') prof_i_sink_bytes(sink, "\"", 1);
    prof_i_sink_bytes(sink, character.data, character.bytes);
  }
}

void prof_i_sink_csv(prof_i_sink *sink, const char *text, size_t bytes) {
  prof_i_sink_bytes(sink, "\"", 1);
  prof_i_sink_csv_part(sink, text, bytes);
  prof_i_sink_bytes(sink, "\"", 1);
}

void prof_i_sink_csv_bare(prof_i_sink *sink, const char *text) {
  const size_t bytes = strlen(text);
  if (strpbrk(text, ",\"\r\n"))
    prof_i_sink_csv(sink, text, bytes);
  else
    prof_i_sink_csv_part(sink, text, bytes);
}

void prof_i_sink_frame(prof_i_sink *sink, const char *text, size_t bytes) {
  while (bytes > 0) {
    const prof_i_utf8_character character = prof_i_utf8_take(&text, &bytes);
    const unsigned char first = (unsigned char)*character.data;
    if (first == ';')
      prof_i_sink_bytes(sink, ":", 1);
    else if (first < ' ')
      prof_i_sink_bytes(sink, " ", 1);
    else
      prof_i_sink_bytes(sink, character.data, character.bytes);
  }
}

void prof_i_sink_u64(prof_i_sink *sink, uint64_t value) {
  prof_i_sink_advance(sink, prof_i_put_u64(prof_i_sink_reserve(sink, PROF_I_NUMBER_ROOM), value));
}

void prof_i_sink_i64(prof_i_sink *sink, int64_t value) {
  prof_i_sink_advance(sink, prof_i_put_i64(prof_i_sink_reserve(sink, PROF_I_NUMBER_ROOM), value));
}

void prof_i_sink_double(prof_i_sink *sink, double value) {
  if (isfinite(value))
    prof_i_sink_advance(sink,
                        prof_i_put_double(prof_i_sink_reserve(sink, PROF_I_NUMBER_ROOM), value));
  else
    prof_i_sink_text(sink, "null");
}

void prof_i_sink_key(prof_i_sink *sink, const char *key) {
  prof_i_sink_text(sink, ",\"");
  prof_i_sink_text(sink, key);
  prof_i_sink_text(sink, "\":");
}

void prof_i_sink_key_u64(prof_i_sink *sink, const char *key, uint64_t value) {
  prof_i_sink_key(sink, key);
  prof_i_sink_u64(sink, value);
}

/* ---- arguments of events as JSON ---- */

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
