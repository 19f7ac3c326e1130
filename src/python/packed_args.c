/* Packs arguments of events for the Python package: for each event its numbers, then all else as
   bytes. These bytes are equal for events whose arguments differ only in numbers, so the package
   creates their objects once. It reads single events and whole lists this way
   (bindings/python/prof/_read_arguments.py). No function of Python is called. */
#include <prof/python.h>
#include <prof/trace.h>
#include <stdbool.h>
#include <string.h>

/* What one event takes, before its texts and dimensions. */
typedef struct packed_event {
  uint32_t bytes;        /* of all, a multiple of 8 */
  uint32_t number_count; /* that follow, 8 bytes each */
  uint32_t same_bytes;   /* behind the numbers */
  uint32_t reserved;
} packed_event;

/* An entry of the shared bytes. Its key and its text or dimensions follow. */
typedef struct packed_arg {
  uint32_t key_bytes, type;
  uint32_t value_bytes; /* of a text; of a tensor those of its dimensions */
  uint32_t dtype;       /* of a tensor */
} packed_arg;

typedef struct pack_buffer {
  char *at;
  size_t room;
} pack_buffer;

/* What does not fit takes all that is left, so that nothing behind it fits, either. */
static bool buffer_put(pack_buffer *to, const void *from, size_t bytes) {
  const bool does_fit = bytes <= to->room;
  if (does_fit && bytes) memcpy(to->at, from, bytes);
  to->at += does_fit ? bytes : 0;
  to->room -= does_fit ? bytes : to->room;
  return does_fit;
}

static bool arg_is_number(const prof_trace_arg *arg) {
  return arg->type != PROF_ARG_STRING && arg->type != PROF_ARG_TENSOR;
}

static bool buffer_put_numbers(pack_buffer *to, const prof_event *event, packed_event *head) {
  for (uint32_t i = 0; i < event->arg_count; i++) {
    if (!arg_is_number(&event->args[i])) continue;
    if (!buffer_put(to, &event->args[i].value, sizeof(uint64_t))) return false;
    head->number_count++;
  }
  return true;
}

static bool buffer_put_arg(pack_buffer *to, const prof_trace_arg *arg) {
  packed_arg head = {.key_bytes = arg->key_bytes, .type = arg->type};
  const void *value = NULL;
  if (arg->type == PROF_ARG_STRING) {
    if (arg->value.text.bytes > UINT32_MAX) return false;
    head.value_bytes = (uint32_t)arg->value.text.bytes;
    value = arg->value.text.data;
  } else if (arg->type == PROF_ARG_TENSOR) {
    head.value_bytes = arg->value.tensor.rank * (uint32_t)sizeof(int64_t);
    head.dtype = arg->value.tensor.dtype;
    value = arg->value.tensor.dims;
  }
  return buffer_put(to, &head, sizeof head) && buffer_put(to, arg->key, arg->key_bytes) &&
         buffer_put(to, value, head.value_bytes);
}

static bool buffer_put_same(pack_buffer *to, const prof_event *event) {
  if (!buffer_put(to, &event->args_kind, sizeof event->args_kind)) return false;
  for (uint32_t i = 0; i < event->arg_count; i++)
    if (!buffer_put_arg(to, &event->args[i])) return false;
  return true;
}

/* Gives the bytes it took. 0: they do not fit. */
static size_t pack_event(const prof_event *event, char *to, size_t bytes) {
  packed_event head = {.bytes = 0};
  pack_buffer buffer = {to, bytes};
  if (!buffer_put(&buffer, &head, sizeof head) || !buffer_put_numbers(&buffer, event, &head))
    return 0;
  const char *const same = buffer.at;
  if (!buffer_put_same(&buffer, event)) return 0;
  head.same_bytes = (uint32_t)(buffer.at - same);
  const uint64_t none = 0;
  if (!buffer_put(&buffer, &none, -(size_t)(buffer.at - to) % sizeof none)) return 0;
  head.bytes = (uint32_t)(buffer.at - to);
  memcpy(to, &head, sizeof head);
  return head.bytes;
}

int64_t prof_i_python_arguments_1(const struct prof_trace *trace,
                                  const struct prof_i_python_source *sources, uint64_t count,
                                  void *to, uint64_t bytes) {
  for (uint64_t i = 0; i < count; i++) {
    const prof_event_brief brief = {.size = sizeof brief,
                                    .record = sources[i].record,
                                    .kind = sources[i].kind,
                                    .thread = sources[i].thread,
                                    .site = sources[i].site};
    prof_event event;
    const int status = prof_trace_event_get(trace, &brief, &event);
    if (status) return status;
    const size_t took = pack_event(&event, to, bytes);
    if (!took) return (int64_t)i;
    to = (char *)to + took;
    bytes -= took;
  }
  return (int64_t)count;
}
