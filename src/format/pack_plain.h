/* Packs runs of plain scopes: most records of most captures. The columns are the same as those of
   put_record() in pack.c, and it packs all other records. Only pack.c uses it. */
#ifndef PROF_FORMAT_PACK_PLAIN_H
#define PROF_FORMAT_PACK_PLAIN_H

#include "packed_clock.h"
#include "packed_columns.h"

/* The packer's state within one chunk. */
typedef struct prof_i_pack_chunk {
  prof_i_step_finder finder;
  int64_t *starts; /* begins, in steps, of the records that have no parent yet */
  uint32_t start_count;
  int64_t last_end; /* in steps */
  uint64_t generation;
} prof_i_pack_chunk;

/* The zigzag residual of a time: its distance from its step. */
static inline uint64_t prof_i_residual_of(const prof_i_steps *steps, int64_t step, uint64_t ticks) {
  return prof_i_zigzag((uint64_t)prof_i_time_between(prof_i_step_ticks(steps, step), ticks));
}

/* Packs the plain scopes from this slot on, at most `left`. Returns how many: 0 if the slot has no
   plain scope that this function can pack. */
uint64_t prof_i_pack_plain(prof_i_columns *columns, prof_i_pack_chunk *chunk, const uint64_t *at,
                           uint64_t left);

#endif
