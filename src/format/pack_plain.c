/* See pack_plain.h. Two loops for each block of scopes. The first converts times, and no scope
   depends on another. The second finds children and writes the columns. Its positions in columns
   are local variables, because the compiler must otherwise reload them after each byte. */
#include "pack_plain.h"

#include "packed_model.h"

enum { BLOCK_COUNT = 256 };

typedef struct plain_block {
  int64_t starts[BLOCK_COUNT], ends[BLOCK_COUNT]; /* in steps */
  uint32_t sites[BLOCK_COUNT];
} plain_block;

/* Residuals that do not share a value. Out of line, because they are rare. */
static __attribute__((noinline)) uint8_t *put_large_residuals(prof_i_columns *columns, uint8_t *to,
                                                              uint64_t first, uint64_t second) {
  uint8_t **const at = &columns->columns[PROF_I_FAMILY_RESIDUAL * PROF_I_FAMILY_COLUMNS].at;
  *at = to;
  prof_i_put_residuals(columns, first, second);
  return *at;
}

/* Converts scopes until the first one that is not plain, and writes their residuals. Returns their
   number. is_by_tick is constant where this is inlined. */
static inline __attribute__((always_inline)) uint32_t convert_times(prof_i_columns *columns,
                                                                    const prof_i_pack_chunk *chunk,
                                                                    const uint64_t *at,
                                                                    uint32_t most, bool is_by_tick,
                                                                    plain_block *block) {
  prof_i_column *const column = &columns->columns[PROF_I_FAMILY_RESIDUAL * PROF_I_FAMILY_COLUMNS];
  const prof_i_step_finder finder = chunk->finder;
  const uint64_t generation = chunk->generation;
  uint8_t *residuals = column->at;
  uint32_t i = 0;
  for (; i < most; i++) {
    const uint64_t first = at[2 * i], second = at[2 * i + 1];
    if (((first ^ generation) & PROF_I_GENERATION_MASK) | (second & 15)) break;
    const uint64_t begin = first >> 4, end = begin + (second >> PROF_I_DURATION_SHIFT);
    const int64_t begin_since = prof_i_time_between(finder.steps.base, begin);
    const int64_t end_since = prof_i_time_between(finder.steps.base, end);
    block->sites[i] = (uint32_t)(second >> 4) & PROF_I_SITE_COUNT_MAX; /* the type is 0 */
    if (is_by_tick) {
      block->starts[i] = begin_since;
      block->ends[i] = end_since;
      *residuals++ = 0;
      continue;
    }
    const int64_t begin_step = prof_i_step_since(&finder, begin_since);
    const int64_t end_step = prof_i_step_since(&finder, end_since);
    const uint64_t residual = prof_i_residual_since(&finder.steps, begin_step, begin_since);
    const uint64_t end_residual = prof_i_residual_since(&finder.steps, end_step, end_since);
    block->starts[i] = begin_step;
    block->ends[i] = end_step;
    if (__builtin_expect(residual < PROF_I_RESIDUALS_MAX && end_residual < PROF_I_RESIDUALS_MAX, 1))
      *residuals++ = (uint8_t)(residual | end_residual << 4);
    else
      residuals = put_large_residuals(columns, residuals, residual, end_residual);
  }
  column->at = residuals;
  return i;
}

/* Writes one byte of each site. Compilers make a block of constant size a loop over vectors. */
static void put_site_bytes(prof_i_column *column, const plain_block *block, uint32_t count,
                           int shift) {
  uint8_t *const to = column->at;
  if (count == BLOCK_COUNT)
    for (uint32_t i = 0; i < BLOCK_COUNT; i++) to[i] = (uint8_t)(block->sites[i] >> shift);
  else
    for (uint32_t i = 0; i < count; i++) to[i] = (uint8_t)(block->sites[i] >> shift);
  column->at += count;
}

/* Writes a value to a family whose first column is at `first`. Returns the next position there. */
static inline uint8_t *put_value(prof_i_columns *columns, prof_i_family which, uint8_t *first,
                                 uint64_t value) {
  if (__builtin_expect(value >= PROF_I_VALUE_2, 0)) {
    const int bytes = prof_i_value_bytes(value);
    prof_i_put_bytes(&columns->columns[which * PROF_I_FAMILY_COLUMNS + 1], value, bytes);
    *first = prof_i_value_code(bytes);
  } else {
    *first = (uint8_t)value;
  }
  return first + 1;
}

static uint8_t **first_of(prof_i_columns *columns, prof_i_family which) {
  return &columns->columns[which * PROF_I_FAMILY_COLUMNS].at;
}

/* Finds the children of each scope, and writes kinds and times. */
static void put_block(prof_i_columns *columns, prof_i_pack_chunk *chunk, const plain_block *block,
                      uint32_t count) {
  uint8_t *type = columns->columns[PROF_I_COLUMN_TYPE].at;
  uint8_t *leaf_gap = *first_of(columns, PROF_I_FAMILY_LEAF_GAP);
  uint8_t *duration = *first_of(columns, PROF_I_FAMILY_LEAF_DURATION);
  uint8_t *parent_gap = *first_of(columns, PROF_I_FAMILY_PARENT_GAP);
  uint8_t *lead = *first_of(columns, PROF_I_FAMILY_PARENT_LEAD);
  int64_t *const starts = chunk->starts;
  uint64_t last_end = (uint64_t)chunk->last_end;
  uint32_t start_count = chunk->start_count;
  for (uint32_t i = 0; i < count; i++) {
    const int64_t start = block->starts[i];
    const uint64_t end = (uint64_t)block->ends[i];
    uint32_t first = start_count;
    while (first > 0 && starts[first - 1] >= start) first--;
    const uint32_t children = start_count - first;
    if (children) {
      const uint64_t before = (uint64_t)starts[first] - (uint64_t)start;
      parent_gap =
          put_value(columns, PROF_I_FAMILY_PARENT_GAP, parent_gap, prof_i_zigzag(end - last_end));
      lead = put_value(columns, PROF_I_FAMILY_PARENT_LEAD, lead, before);
    } else {
      leaf_gap = put_value(columns, PROF_I_FAMILY_LEAF_GAP, leaf_gap,
                           prof_i_zigzag((uint64_t)start - last_end));
      duration = put_value(columns, PROF_I_FAMILY_LEAF_DURATION, duration,
                           prof_i_zigzag(end - (uint64_t)start));
    }
    *type++ = prof_i_packed_type_byte(PROF_I_PACKED_PLAIN, children);
    if (__builtin_expect(children >= PROF_I_PACKED_CHILDREN_MAX, 0))
      prof_i_put_value(columns, PROF_I_FAMILY_CHILDREN, children);
    starts[first] = start;
    start_count = first + 1;
    last_end = end;
  }
  columns->columns[PROF_I_COLUMN_TYPE].at = type;
  *first_of(columns, PROF_I_FAMILY_LEAF_GAP) = leaf_gap;
  *first_of(columns, PROF_I_FAMILY_LEAF_DURATION) = duration;
  *first_of(columns, PROF_I_FAMILY_PARENT_GAP) = parent_gap;
  *first_of(columns, PROF_I_FAMILY_PARENT_LEAD) = lead;
  chunk->start_count = start_count;
  chunk->last_end = (int64_t)last_end;
}

uint64_t prof_i_pack_plain(prof_i_columns *columns, prof_i_pack_chunk *chunk, const uint64_t *at,
                           uint64_t left) {
  plain_block block;
  uint64_t done = 0;
  while (done < left) {
    const uint32_t most = left - done < BLOCK_COUNT ? (uint32_t)(left - done) : BLOCK_COUNT;
    const uint32_t count = chunk->finder.is_by_tick
                               ? convert_times(columns, chunk, at + 2 * done, most, true, &block)
                               : convert_times(columns, chunk, at + 2 * done, most, false, &block);
    if (count == 0) break;
    put_block(columns, chunk, &block, count);
    for (int i = 0; i < 3; i++)
      put_site_bytes(&columns->columns[PROF_I_COLUMN_SITE + i], &block, count, 8 * i);
    done += count;
    if (count < most) break;
  }
  return done;
}
