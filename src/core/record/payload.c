/* See payload.h. Straight code, no allocation: it runs inside a scope's begin. */
#define _GNU_SOURCE
#include "payload.h"

#include <string.h>

#include "../buffer/meta.h"

enum { TENSOR_RANK_MAX = 16, LENGTH_MAX = PROF_I_PAYLOAD_BYTES_MAX };

static uint32_t text_length(const char *text, uint32_t bytes) {
  if (!text) return 0;
  if (bytes == PROF_NUL_TERMINATED) return (uint32_t)strnlen(text, LENGTH_MAX + 1u);
  return bytes <= LENGTH_MAX ? bytes : LENGTH_MAX + 1u;
}

/* Words for a text of that length within the room; shortens it if it must. 0: not even its length
   fits. */
static uint32_t fit_text(prof_i_payload *payload, uint32_t *bytes, uint32_t room_words) {
  if (room_words < 1) {
    payload->flags |= PROF_I_FLAG_CUT;
    *bytes = 0;
    return 0;
  }
  if (prof_i_text_words(*bytes) > room_words || *bytes > LENGTH_MAX) {
    payload->flags |= PROF_I_FLAG_CUT;
    const uint32_t most = (room_words - 1) * 8;
    *bytes = most < LENGTH_MAX ? most : LENGTH_MAX;
  }
  return (uint32_t)prof_i_text_words(*bytes);
}

/* Arguments stop at the first that does not fit, or is of a type that nobody knows. */
static void measure_args(prof_i_payload *payload, const prof_args *args, uint32_t room_words) {
  const uint32_t count = args->count < PROF_ARGS_MAX ? args->count : PROF_ARGS_MAX;
  if (args->count > PROF_ARGS_MAX) payload->flags |= PROF_I_FLAG_CUT;
  for (uint32_t i = 0; i < count; i++) {
    const prof_arg *const arg = &args->items[i];
    uint32_t words = arg->type >= PROF_ARG_I64 && arg->type <= PROF_ARG_TENSOR ? 1 : 0;
    if (arg->type == PROF_ARG_STRING) {
      payload->arg_bytes[i] = text_length(arg->value.text, arg->bytes);
      words = fit_text(payload, &payload->arg_bytes[i], room_words - payload->words);
    } else if (arg->type == PROF_ARG_TENSOR) {
      const uint32_t rank =
          arg->value.tensor && arg->value.tensor->dims ? arg->value.tensor->rank : 0;
      payload->arg_bytes[i] = rank < TENSOR_RANK_MAX ? rank : TENSOR_RANK_MAX;
      if (rank > TENSOR_RANK_MAX) payload->flags |= PROF_I_FLAG_CUT;
      words = 1 + payload->arg_bytes[i];
    }
    if (words == 0 || payload->words + words > room_words) {
      payload->flags |= PROF_I_FLAG_CUT;
      return;
    }
    payload->words += words;
    payload->arg_count = i + 1;
  }
}

void prof_i_payload_measure(prof_i_payload *payload, const prof_details *details,
                            uint32_t room_words) {
  payload->words = 1;
  payload->flags = 0;
  payload->arg_count = 0;
  if (details->device.type != PROF_DEVICE_CPU || details->device.index != 0) {
    payload->flags |= PROF_I_FLAG_DEVICE;
    payload->words++;
  }
  if (details->flags & PROF_I_ON_STREAM) {
    payload->flags |= PROF_I_FLAG_STREAM;
    payload->words++;
  }
  if (!(details->flags & PROF_I_NAME_LITERAL)) {
    payload->name_bytes = text_length(details->name, details->name_bytes);
    const uint32_t words = fit_text(payload, &payload->name_bytes, room_words - payload->words);
    if (words) payload->flags |= PROF_I_FLAG_NAME;
    payload->words += words;
  }
  if (!(details->flags & PROF_I_CATEGORY_LITERAL)) {
    payload->category_bytes = text_length(details->category, details->category_bytes);
    const uint32_t words = fit_text(payload, &payload->category_bytes, room_words - payload->words);
    if (words) payload->flags |= PROF_I_FLAG_CATEGORY;
    payload->words += words;
  }
  payload->words_before_args = payload->words;
  if (details->args.count && details->args.items) measure_args(payload, &details->args, room_words);
}

void prof_i_payload_leave_args(prof_i_payload *payload) {
  payload->words = payload->words_before_args;
  payload->arg_count = 0;
  payload->flags |= PROF_I_FLAG_CUT;
}

static uint64_t *pack_arg(uint64_t *at, const prof_arg *arg, uint32_t bytes) {
  switch (arg->type) {
    case PROF_ARG_STRING:
      return at + prof_i_put_text(at, bytes ? arg->value.text : "", bytes);
    case PROF_ARG_TENSOR:
      *at++ = bytes | (uint64_t)(arg->value.tensor ? arg->value.tensor->dtype : 0) << 32;
      /* Without a tensor, prof_i_payload_measure() gave no bytes. */
      /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference) */
      if (bytes) memcpy(at, arg->value.tensor->dims, bytes * sizeof *at);
      return at + bytes;
    default:
      *at = arg->value.u64;
      return at + 1;
  }
}

void prof_i_payload_pack(const prof_i_payload *payload, const prof_details *details,
                         prof_i_kind kind, uint32_t schema, uint64_t *to) {
  uint64_t *at = to;
  const uint64_t slots = (2 + payload->words + 1) / 2;
  *at++ = slots | (uint64_t)kind << 16 | (uint64_t)payload->flags << 24 |
          (uint64_t)(payload->arg_count ? schema : 0) << 32;
  if (payload->flags & PROF_I_FLAG_DEVICE)
    *at++ = (uint32_t)details->device.type | (uint64_t)(uint32_t)details->device.index << 32;
  if (payload->flags & PROF_I_FLAG_STREAM) *at++ = details->stream;
  if (payload->flags & PROF_I_FLAG_NAME)
    at += prof_i_put_text(at, payload->name_bytes ? details->name : "", payload->name_bytes);
  if (payload->flags & PROF_I_FLAG_CATEGORY)
    at += prof_i_put_text(at, payload->category_bytes ? details->category : "",
                          payload->category_bytes);
  for (uint32_t i = 0; i < payload->arg_count; i++)
    at = pack_arg(at, &details->args.items[i], payload->arg_bytes[i]);
}
