/* Packs a scope's run-time name, device and arguments into words, as layout.h has them. */
#ifndef PROF_CORE_RECORD_PAYLOAD_H
#define PROF_CORE_RECORD_PAYLOAD_H

#include <prof/scope.h>

#include "../../format/layout.h"

/* What packing will take; made by measure, used by pack, so that room is claimed before a byte is
   written. */
typedef struct prof_i_payload {
  uint32_t words; /* word 2 of the record and all that follows */
  uint32_t words_before_args;
  uint32_t flags; /* PROF_I_FLAG_* */
  uint32_t name_bytes, category_bytes;
  uint32_t arg_count;
  uint32_t arg_bytes[PROF_ARGS_MAX]; /* of strings; of tensors their rank */
} prof_i_payload;

/* At most room_words; what does not fit is cut and flagged. Reads every string once for its
   length. */
void prof_i_payload_measure(prof_i_payload *payload, const prof_details *details,
                            uint32_t room_words);

/* There is no schema for the arguments: they are left out, and that is flagged. */
void prof_i_payload_leave_args(prof_i_payload *payload);

/* Writes payload->words words to `to`. */
void prof_i_payload_pack(const prof_i_payload *payload, const prof_details *details,
                         prof_i_kind kind, uint32_t schema, uint64_t *to);

#endif
