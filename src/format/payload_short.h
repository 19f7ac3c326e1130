/* The payloads of most scopes, packed in one pass: a name, a category and a few arguments. All are
   short, on the host, and have the keys that the site had before. payload.c measures and packs all
   others. Budget: 4 ns for two integers. Not cut, so no flags; nothing is read beyond a text's end.
   */
#ifndef PROF_FORMAT_PAYLOAD_SHORT_H
#define PROF_FORMAT_PAYLOAD_SHORT_H

#include <prof/scope.h>
#include <stdbool.h>
#include <string.h>

#include "../base/port.h"
#include "../core/record/name.h"
#include "../core/record/site.h"
#include "layout.h"

enum {
  PROF_I_SHORT_TEXT_BYTES = 128,
  PROF_I_SHORT_ARGS = 8,
  PROF_I_SHORT_RANK = 16, /* as many words as a text has */
  PROF_I_SHORT_WORDS = 1 + (2 + PROF_I_SHORT_ARGS) * (1 + PROF_I_SHORT_TEXT_BYTES / 8) /* at most */
};

/* A text as layout.h has it: its length, then its bytes padded with zeros to words. */
static inline uint64_t *prof_i_short_copy(uint64_t *to, const char *text, uint32_t bytes) {
  *to++ = bytes;
  uint32_t left = bytes;
  for (; left >= 8; left -= 8, text += 8) memcpy(to++, text, 8);
  if (left == 0) return to;
  *to++ = prof_i_text_tail(text, left, bytes);
  return to;
}

/* NULL: it is too long. */
static inline uint64_t *prof_i_short_put(uint64_t *to, const char *text, uint32_t bytes) {
  if (!text) return NULL;
  if (bytes == PROF_NUL_TERMINATED) bytes = (uint32_t)strnlen(text, PROF_I_SHORT_TEXT_BYTES + 1);
  return bytes <= PROF_I_SHORT_TEXT_BYTES ? prof_i_short_copy(to, text, bytes) : NULL;
}

/* Byte by byte: keys have a few, and a call would take longer. */
static inline bool prof_i_short_same(const char *given, const char *known, uint32_t bytes) {
  for (uint32_t i = 0; i < bytes; i++)
    if (given[i] != known[i]) return false;
  return given[bytes] == '\0';
}

/* NULL: it has more dimensions than are recorded, or none that can be read. */
static inline uint64_t *prof_i_short_tensor(uint64_t *to, const prof_tensor *tensor) {
  if (!tensor || tensor->rank > PROF_I_SHORT_RANK || (tensor->rank && !tensor->dims)) return NULL;
  *to++ = tensor->rank | (uint64_t)tensor->dtype << 32;
  for (uint32_t i = 0; i < tensor->rank; i++) {
    *to++ = (uint64_t)tensor->dims[i];
    __asm__ volatile("" : "+r"(to)); /* or it becomes a call of memcpy() */
  }
  return to;
}

/* NULL: the arguments are not the ones that were seen, or not short. */
static inline uint64_t *prof_i_short_args(uint64_t *to, const prof_args *args,
                                          const prof_i_first_args *seen) {
  if (!seen || args->count != seen->count || args->kind != seen->kind ||
      args->count > PROF_I_SHORT_ARGS)
    return NULL;
  if (args->format != seen->own_format &&
      !(args->format && prof_i_short_same(args->format, seen->format, seen->format_bytes)))
    return NULL;
  for (uint32_t i = 0; i < args->count; i++) {
    const prof_arg *const arg = &args->items[i];
    const prof_i_first_arg *const known = &seen->items[i];
    if (arg->type != known->type ||
        !(arg->key ? prof_i_short_same(arg->key, known->key, known->key_bytes)
                   : known->key_bytes == 0))
      return NULL;
    if (arg->type == PROF_ARG_STRING) {
      if (!(to = prof_i_short_put(to, arg->value.text, arg->bytes))) return NULL;
    } else if (arg->type == PROF_ARG_TENSOR) {
      if (!(to = prof_i_short_tensor(to, arg->value.tensor))) return NULL;
    } else {
      *to++ = arg->value.u64;
    }
  }
  return to;
}

/* Writes the payload of a scope. Returns its words; 0: it is not short. There is room for
   PROF_I_SHORT_WORDS. own: flags of the texts that the site has, PROF_I_NAME_LITERAL and so on. */
static inline uint32_t prof_i_short_pack(uint64_t *to, const prof_details *details, uint32_t own,
                                         uint32_t site) {
  if (details->flags & (PROF_I_ON_STREAM | PROF_I_ASYNC) ||
      details->device.type != PROF_DEVICE_CPU || details->device.index != 0)
    return 0;
  uint64_t flags = 0, schema = 0, *at = to + 1;
  if (!(own & PROF_I_NAME_LITERAL)) {
    if (!(at = prof_i_short_put(at, details->name, details->name_bytes))) return 0;
    flags |= PROF_I_FLAG_NAME;
  }
  if (!(own & PROF_I_CATEGORY_LITERAL)) {
    if (!(at = prof_i_short_put(at, details->category, details->category_bytes))) return 0;
    flags |= PROF_I_FLAG_CATEGORY;
  }
  if (details->args.count) {
    const prof_i_first_args *const seen = prof_i_site_first_args(site);
    if (!details->args.items || !(at = prof_i_short_args(at, &details->args, seen))) return 0;
    schema = seen->schema;
  }
  const uint64_t words = (uint64_t)(at - to);
  *to = (2 + words + 1) / 2 | (uint64_t)PROF_I_KIND_SCOPE << 16 | flags << 24 | schema << 32;
  return (uint32_t)words;
}

#endif
