/* See pack_plain.h. Two loops for each block of scopes. The first converts times, and no scope
   depends on another. The second finds children and writes the columns. Its positions in columns
   are local variables, because the compiler must otherwise reload them after each byte. */
#include "pack_plain.h"

#include "packed_model.h"

enum { BLOCK_COUNT = 256 };

typedef struct plain_block {
  int64_t starts[BLOCK_COUNT], ends[BLOCK_COUNT]; /* in steps */
  uint8_t residuals[BLOCK_COUNT];
} plain_block;

/* Converts scopes until the first one that is not plain, or has a residual that needs its own
   value. Returns their number. */
static uint32_t convert_times(const prof_i_pack_chunk *chunk, const uint64_t *at, uint32_t most,
                              plain_block *block) {
  const prof_i_step_finder finder = chunk->finder;
  const uint64_t generation = chunk->generation;
  uint32_t i = 0;
  for (; i < most; i++) {
    const uint64_t first = at[2 * i], second = at[2 * i + 1];
    if ((first & PROF_I_GENERATION_MASK) != generation || (second & 15) != 0) break;
    const uint64_t begin = first >> 4, end = begin + (second >> PROF_I_DURATION_SHIFT);
    const int64_t begin_step = prof_i_step_of(&finder, begin);
    const int64_t end_step = prof_i_step_of(&finder, end);
    uint64_t residual = 0, end_residual = 0;
    if (!finder.is_by_tick) {
      residual = prof_i_residual_of(&finder.steps, begin_step, begin);
      end_residual = prof_i_residual_of(&finder.steps, end_step, end);
      if (residual >= PROF_I_RESIDUALS_MAX || end_residual >= PROF_I_RESIDUALS_MAX) break;
    }
    block->starts[i] = begin_step;
    block->ends[i] = end_step;
    block->residuals[i] = (uint8_t)(residual | end_residual << 4);
  }
  return i;
}

static void put_sites(prof_i_columns *columns, const uint64_t *at, uint32_t count) {
  prof_i_column *const sites = &columns->columns[PROF_I_COLUMN_SITE];
  uint8_t *const low = sites[0].at, *const middle = sites[1].at, *const high = sites[2].at;
  for (uint32_t i = 0; i < count; i++) {
    const uint64_t site = at[2 * i + 1] >> 4 & PROF_I_SITE_COUNT_MAX; /* the type is 0 */
    low[i] = (uint8_t)site;
    middle[i] = (uint8_t)(site >> 8);
    high[i] = (uint8_t)(site >> 16);
  }
  for (int i = 0; i < 3; i++) sites[i].at += count;
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
    const uint32_t count = convert_times(chunk, at + 2 * done, most, &block);
    if (count == 0) break;
    prof_i_column *const residuals =
        &columns->columns[PROF_I_FAMILY_RESIDUAL * PROF_I_FAMILY_COLUMNS];
    memcpy(residuals->at, block.residuals, count);
    residuals->at += count;
    put_block(columns, chunk, &block, count);
    put_sites(columns, at + 2 * done, count);
    done += count;
    if (count < most) break;
  }
  return done;
}
