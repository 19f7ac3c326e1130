/* Perfetto's protobuf: arguments, as debug annotations. Values keep their types. A tensor is a
   text: "float[2, 3]". */
#include <stdio.h>

#include "../base/text.h"
#include "../reader/internal.h"
#include "../sink/sink.h"
#include "pftrace.h"

enum {
  ANNOTATION_NAME_IID = 1,
  ANNOTATION_BOOL = 2,
  ANNOTATION_UINT = 3,
  ANNOTATION_INT = 4,
  ANNOTATION_DOUBLE = 5,
  ANNOTATION_TEXT = 6,
  ANNOTATION_POINTER = 7,
  ANNOTATION_NAME = 10
};

/* is_kept: the text is valid as long as the trace. */
static void put_key(prof_i_pftrace *p, prof_i_text key, bool is_kept) {
  prof_i_pf_key *const place =
      &p->keys[prof_i_hash32(PROF_I_HASH32_SEED, key.data, (size_t)key.bytes) % PF_KEY_COUNT];
  const bool is_same = place->text.bytes == key.bytes && place->text.data &&
                       memcmp(place->text.data, key.data, (size_t)key.bytes) == 0;
  if (is_same && place->generation == p->generation) {
    prof_i_protobuf_number(&p->pb, ANNOTATION_NAME_IID, place->iid);
    return;
  }
  if (!is_kept) {
    prof_i_protobuf_text(&p->pb, ANNOTATION_NAME, key.data, (size_t)key.bytes);
    return;
  }
  *place = (prof_i_pf_key){key, p->generation, p->next_iid++};
  const size_t at = prof_i_protobuf_begin(&p->interned, PF_INTERNED_KEYS);
  prof_i_protobuf_number(&p->interned, 1, place->iid);
  prof_i_protobuf_text(&p->interned, 2, key.data, (size_t)key.bytes);
  prof_i_protobuf_end(&p->interned, at);
  prof_i_protobuf_number(&p->pb, ANNOTATION_NAME_IID, place->iid);
}

void prof_i_pf_put_text_arg(prof_i_pftrace *p, const char *key, const char *text, size_t bytes) {
  const size_t at = prof_i_protobuf_begin(&p->pb, PF_EVENT_ANNOTATIONS);
  prof_i_protobuf_text(&p->pb, ANNOTATION_NAME, key, strlen(key));
  prof_i_protobuf_text(&p->pb, ANNOTATION_TEXT, text, bytes);
  prof_i_protobuf_end(&p->pb, at);
}

void prof_i_pf_put_number_arg(prof_i_pftrace *p, const char *key, uint64_t value) {
  const size_t at = prof_i_protobuf_begin(&p->pb, PF_EVENT_ANNOTATIONS);
  prof_i_protobuf_text(&p->pb, ANNOTATION_NAME, key, strlen(key));
  prof_i_protobuf_number(&p->pb, ANNOTATION_UINT, value);
  prof_i_protobuf_end(&p->pb, at);
}

static void put_bool_arg(prof_i_pftrace *p, const char *key) {
  const size_t at = prof_i_protobuf_begin(&p->pb, PF_EVENT_ANNOTATIONS);
  prof_i_protobuf_text(&p->pb, ANNOTATION_NAME, key, strlen(key));
  prof_i_protobuf_number(&p->pb, ANNOTATION_BOOL, 1);
  prof_i_protobuf_end(&p->pb, at);
}

static void put_tensor(prof_i_protobuf *pb, const prof_trace_arg *arg) {
  const char *const dtype = prof_i_value_dtype(arg);
  const size_t at = prof_i_protobuf_begin(pb, ANNOTATION_TEXT);
  char text[PROF_I_NUMBER_ROOM + 2];
  prof_i_protobuf_text_part(pb, dtype, strlen(dtype));
  prof_i_protobuf_text_part(pb, "[", 1);
  for (uint32_t i = 0; i < arg->value.tensor.rank; i++) {
    const int bytes = snprintf(text, sizeof text, "%s%lld", i > 0 ? ", " : "",
                               (long long)arg->value.tensor.dims[i]);
    prof_i_protobuf_text_part(pb, text, (size_t)bytes);
  }
  prof_i_protobuf_text_part(pb, "]", 1);
  prof_i_protobuf_end(pb, at);
}

/* Removes the mark of a list of texts (sink.h). */
static void put_string(prof_i_protobuf *pb, const prof_trace_arg *arg) {
  const char *const text = arg->value.text.data;
  const size_t bytes = (size_t)arg->value.text.bytes;
  if (!prof_i_value_is_text_list(arg)) {
    prof_i_protobuf_text(pb, ANNOTATION_TEXT, text, bytes);
    return;
  }
  const size_t at = prof_i_protobuf_begin(pb, ANNOTATION_TEXT);
  prof_i_protobuf_text_part(pb, text, 1);
  prof_i_protobuf_text_part(pb, text + 2, bytes - 2);
  prof_i_protobuf_end(pb, at);
}

static void put_value(prof_i_protobuf *pb, const prof_trace_arg *arg) {
  switch ((prof_arg_type)arg->type) {
    case PROF_ARG_I64:
      prof_i_protobuf_number(pb, ANNOTATION_INT, arg->value.u64);
      return;
    case PROF_ARG_U64:
      prof_i_protobuf_number(pb, ANNOTATION_UINT, arg->value.u64);
      return;
    case PROF_ARG_F64:
      prof_i_protobuf_double(pb, ANNOTATION_DOUBLE, arg->value.f64);
      return;
    case PROF_ARG_BOOL:
      prof_i_protobuf_number(pb, ANNOTATION_BOOL, arg->value.u64 != 0);
      return;
    case PROF_ARG_STRING:
      put_string(pb, arg);
      return;
    case PROF_ARG_POINTER:
      prof_i_protobuf_number(pb, ANNOTATION_POINTER, arg->value.u64);
      return;
    case PROF_ARG_TENSOR:
      put_tensor(pb, arg);
      return;
  }
}

static void put_arg(prof_i_pftrace *p, const prof_trace_arg *arg, uint32_t number) {
  char made[32];
  const int bytes = snprintf(made, sizeof made, "argument %u", number);
  const bool has_key = arg->key != NULL && arg->key_bytes > 0;
  const prof_i_text key =
      has_key ? (prof_i_text){arg->key, arg->key_bytes} : (prof_i_text){made, (uint64_t)bytes};
  const size_t at = prof_i_protobuf_begin(&p->pb, PF_EVENT_ANNOTATIONS);
  put_key(p, key, has_key);
  put_value(&p->pb, arg);
  prof_i_protobuf_end(&p->pb, at);
}

static void put_device(prof_i_pftrace *p, const prof_event *event) {
  char name[PROF_I_DEVICE_NAME_BYTES];
  const bool is_on_stream = (event->flags & PROF_EVENT_ON_STREAM) != 0;
  const bool is_host = prof_i_device_is_host(event->device);
  if (event->flags & PROF_EVENT_ON_DEVICE || (is_host && !is_on_stream)) return;
  prof_i_device_name(event->device, name);
  prof_i_pf_put_text_arg(p, "Device", name, strlen(name));
  if (is_on_stream) prof_i_pf_put_number_arg(p, "Stream", event->stream);
}

void prof_i_pf_put_args(prof_i_export *run, const prof_event *event) {
  static const struct {
    uint32_t flag;
    const char *key;
  } flags[] = {{PROF_EVENT_CUT, "cut"},
               {PROF_EVENT_NO_DETAILS, "details lost"},
               {PROF_EVENT_ASYNC, "asynchronous"},
               {PROF_EVENT_OTHER_THREAD, "ended on another thread"},
               {PROF_EVENT_SKIPPED, "skipped"}};
  prof_i_pftrace *const p = run->state;
  put_device(p, event);
  if (event->args_kind == PROF_ARGS_FORMAT && event->format_bytes > 0) {
    const size_t wanted = prof_i_format_args(event, p->format_text, sizeof p->format_text);
    prof_i_pf_put_text_arg(p, "text", p->format_text,
                           wanted < sizeof p->format_text ? wanted : sizeof p->format_text);
  } else {
    for (uint32_t i = 0; i < event->arg_count; i++) put_arg(p, &event->args[i], i);
  }
  if (event->kind == PROF_EVENT_OPEN) put_bool_arg(p, "unfinished");
  for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
    if (event->flags & flags[i].flag) put_bool_arg(p, flags[i].key);
}
