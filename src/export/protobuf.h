/* Writes protobuf messages into a buffer that grows. Texts become valid UTF-8. After a failed
   allocation nothing more is written, and has_failed is set. */
#ifndef PROF_EXPORT_PROTOBUF_H
#define PROF_EXPORT_PROTOBUF_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../base/text.h"

typedef struct prof_i_protobuf {
  unsigned char *bytes;
  size_t used, room;
  bool has_failed;
} prof_i_protobuf;

enum {
  PROF_I_VARINT_ROOM = 10,
  PROF_I_PROTOBUF_FIRST_ROOM = 4096,
  PROF_I_WIRE_FIXED64 = 1,
  PROF_I_WIRE_BYTES = 2
};

static inline bool prof_i_protobuf_reserve(prof_i_protobuf *pb, size_t bytes) {
  if (__builtin_expect(pb->room - pb->used >= bytes, 1)) return true;
  size_t room = pb->room ? pb->room : PROF_I_PROTOBUF_FIRST_ROOM;
  while (room - pb->used < bytes) room *= 2;
  unsigned char *const grown = pb->has_failed ? NULL : realloc(pb->bytes, room);
  if (!grown) {
    pb->has_failed = true;
    return false;
  }
  pb->bytes = grown;
  pb->room = room;
  return true;
}

static inline void prof_i_protobuf_varint(prof_i_protobuf *pb, uint64_t value) {
  if (!prof_i_protobuf_reserve(pb, PROF_I_VARINT_ROOM)) return;
  for (; value >= 0x80; value >>= 7) pb->bytes[pb->used++] = (unsigned char)(value | 0x80);
  pb->bytes[pb->used++] = (unsigned char)value;
}

/* A field of any integer type but sint. */
static inline void prof_i_protobuf_number(prof_i_protobuf *pb, uint32_t field, uint64_t value) {
  prof_i_protobuf_varint(pb, (uint64_t)field << 3);
  prof_i_protobuf_varint(pb, value);
}

static inline void prof_i_protobuf_fixed64(prof_i_protobuf *pb, uint32_t field, uint64_t value) {
  prof_i_protobuf_varint(pb, (uint64_t)field << 3 | PROF_I_WIRE_FIXED64);
  if (!prof_i_protobuf_reserve(pb, 8)) return;
  for (int i = 0; i < 8; i++) pb->bytes[pb->used++] = (unsigned char)(value >> 8 * i);
}

static inline void prof_i_protobuf_double(prof_i_protobuf *pb, uint32_t field, double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  prof_i_protobuf_fixed64(pb, field, bits);
}

/* Opens a message or a text. Returns where its length is, for prof_i_protobuf_end(). */
static inline size_t prof_i_protobuf_begin(prof_i_protobuf *pb, uint32_t field) {
  prof_i_protobuf_varint(pb, (uint64_t)field << 3 | PROF_I_WIRE_BYTES);
  if (!prof_i_protobuf_reserve(pb, 1)) return 0;
  return pb->used++;
}

/* Most messages are short: one byte was kept for the length, and a longer one moves the bytes. */
static inline void prof_i_protobuf_end(prof_i_protobuf *pb, size_t at) {
  if (pb->has_failed) return;
  const size_t bytes = pb->used - at - 1;
  if (__builtin_expect(bytes < 0x80, 1)) {
    pb->bytes[at] = (unsigned char)bytes;
    return;
  }
  size_t more = 0;
  for (size_t left = bytes >> 7; left > 0; left >>= 7) more++;
  if (!prof_i_protobuf_reserve(pb, more)) return;
  memmove(pb->bytes + at + 1 + more, pb->bytes + at + 1, bytes);
  pb->used += more;
  size_t left = bytes;
  for (size_t i = 0; i < more; i++, left >>= 7) pb->bytes[at + i] = (unsigned char)(left | 0x80);
  pb->bytes[at + more] = (unsigned char)left;
}

/* Part of a text. U+FFFD replaces what is not UTF-8, and NUL, at which C readers end. */
static inline void prof_i_protobuf_text_part(prof_i_protobuf *pb, const char *text, size_t bytes) {
  for (size_t left = bytes; left > 0;) {
    const prof_i_utf8_character character = prof_i_utf8_take(&text, &left);
    if (!prof_i_protobuf_reserve(pb, character.bytes)) return;
    memcpy(pb->bytes + pb->used, character.data, character.bytes);
    pb->used += character.bytes;
  }
}

static inline void prof_i_protobuf_text(prof_i_protobuf *pb, uint32_t field, const char *text,
                                        size_t bytes) {
  const size_t at = prof_i_protobuf_begin(pb, field);
  prof_i_protobuf_text_part(pb, text, bytes);
  prof_i_protobuf_end(pb, at);
}

#endif
