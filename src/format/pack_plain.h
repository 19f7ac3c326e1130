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

/* The zigzag residual of a time, as ticks since the base: its distance from its step. */
static inline uint64_t prof_i_residual_since(const prof_i_steps *steps, int64_t step,
                                             int64_t since) {
  return prof_i_zigzag(
      (uint64_t)prof_i_time_between(prof_i_step_offset(steps, step), (uint64_t)since));
}

static inline uint64_t prof_i_residual_of(const prof_i_steps *steps, int64_t step, uint64_t ticks) {
  return prof_i_residual_since(steps, step, prof_i_time_between(steps->base, ticks));
}

/* Writes the residuals of a scope. */
static inline void prof_i_put_residuals(prof_i_columns *columns, uint64_t first, uint64_t second) {
  if (__builtin_expect(first < PROF_I_RESIDUALS_MAX && second < PROF_I_RESIDUALS_MAX, 1)) {
    prof_i_put_value(columns, PROF_I_FAMILY_RESIDUAL, first | second << 4);
    return;
  }
  prof_i_put_value(columns, PROF_I_FAMILY_RESIDUAL, PROF_I_RESIDUALS_LARGE);
  prof_i_put_value(columns, PROF_I_FAMILY_RESIDUAL, first);
  prof_i_put_value(columns, PROF_I_FAMILY_RESIDUAL, second);
}

/* Packs the plain scopes from this slot on, at most `left`. Returns how many: 0 if the slot has no
   plain scope that this function can pack. */
uint64_t prof_i_pack_plain(prof_i_columns *columns, prof_i_pack_chunk *chunk, const uint64_t *at,
                           uint64_t left);

#endif
