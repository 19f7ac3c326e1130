/* Unpacks extents: see packed.h. Each step reverses one of pack.c. The bytes are untrusted: each
   number is checked before it is used as an index or a size. */
#include <stdlib.h>

#include "packed_clock.h"
#include "packed_columns.h"
#include "packed_model.h"
#include "packed_walk.h"

/* The residuals of a scope that share a value. first: RESIDUAL_LARGE if they do not. */
typedef struct residual_pair {
  int8_t first, second;
} residual_pair;
enum { RESIDUAL_LARGE = INT8_MIN };

struct prof_i_unpacker {
  prof_i_columns columns;
  prof_i_packed_model model;
  int64_t starts[PROF_I_PACKED_PLAIN_MAX / 16];
  residual_pair residual_pairs[UINT8_MAX + 1]; /* by the first byte of the value */
};

static residual_pair residual_pair_of(uint64_t value) {
  if (value >= PROF_I_VALUE_2 || value == PROF_I_RESIDUALS_LARGE)
    return (residual_pair){RESIDUAL_LARGE, 0};
  return (residual_pair){(int8_t)prof_i_unzigzag(value & 15), (int8_t)prof_i_unzigzag(value >> 4)};
}

prof_i_unpacker *prof_i_unpacker_create(void) {
  prof_i_unpacker *const unpacker = calloc(1, sizeof *unpacker);
  if (!unpacker || !prof_i_columns_init(&unpacker->columns)) {
    free(unpacker);
    return NULL;
  }
  for (int i = 0; i <= UINT8_MAX; i++) unpacker->residual_pairs[i] = residual_pair_of((uint64_t)i);
  return unpacker;
}

void prof_i_unpacker_destroy(prof_i_unpacker *unpacker) {
  if (!unpacker) return;
  prof_i_columns_fini(&unpacker->columns);
  free(unpacker);
}

typedef struct chunk_state {
  prof_i_steps steps;
  uint32_t start_count;
  int64_t last_end; /* in steps */
} chunk_state;

static uint64_t take_value(prof_i_unpacker *unpacker, prof_i_family family) {
  return prof_i_take_value(&unpacker->columns, family);
}

static uint64_t take_signed(prof_i_unpacker *unpacker, prof_i_family family) {
  return prof_i_unzigzag(take_value(unpacker, family));
}

static uint64_t take_byte(prof_i_unpacker *unpacker, int column) {
  return prof_i_take_byte(&unpacker->columns, column);
}

static uint64_t ticks_of(const chunk_state *state, int64_t step, uint64_t residual) {
  return (prof_i_step_ticks(&state->steps, step) + prof_i_unzigzag(residual)) & PROF_I_TIME_MASK;
}

static void take_residuals(prof_i_unpacker *unpacker, uint64_t *first, uint64_t *second) {
  const uint64_t both = take_value(unpacker, PROF_I_FAMILY_RESIDUAL);
  *first = both & 15;
  *second = both >> 4;
  if (__builtin_expect(both != PROF_I_RESIDUALS_LARGE, 1)) return;
  *first = take_value(unpacker, PROF_I_FAMILY_RESIDUAL);
  *second = take_value(unpacker, PROF_I_FAMILY_RESIDUAL);
}

/* *duration_out has the form of word 1. False: damaged, for example because it does not fit. */
static bool take_times(prof_i_unpacker *unpacker, chunk_state *state, uint64_t children,
                       uint64_t *ticks_out, uint64_t *duration_out) {
  if (children == PROF_I_PACKED_CHILDREN_MAX)
    children = take_value(unpacker, PROF_I_FAMILY_CHILDREN);
  if (children > state->start_count) return false;
  const uint32_t first = state->start_count - (uint32_t)children;
  int64_t start, end;
  uint64_t residuals[2];
  if (children) {
    end = (int64_t)((uint64_t)state->last_end + take_signed(unpacker, PROF_I_FAMILY_PARENT_GAP));
    start = (int64_t)((uint64_t)unpacker->starts[first] -
                      take_value(unpacker, PROF_I_FAMILY_PARENT_LEAD));
  } else {
    start = (int64_t)((uint64_t)state->last_end + take_signed(unpacker, PROF_I_FAMILY_LEAF_GAP));
    end = (int64_t)((uint64_t)start + take_signed(unpacker, PROF_I_FAMILY_LEAF_DURATION));
  }
  unpacker->starts[first] = start;
  state->start_count = first + 1;
  state->last_end = end;
  take_residuals(unpacker, &residuals[0], &residuals[1]);
  *ticks_out = ticks_of(state, start, residuals[0]);
  *duration_out = (ticks_of(state, end, residuals[1]) - *ticks_out) & PROF_I_TIME_MASK;
  return *duration_out >> PROF_I_DURATION_BITS == 0;
}

static uint64_t take_time(prof_i_unpacker *unpacker, chunk_state *state) {
  const int64_t step =
      (int64_t)((uint64_t)state->last_end + take_signed(unpacker, PROF_I_FAMILY_EVENT_GAP));
  unpacker->starts[state->start_count++] = step;
  state->last_end = step;
  return ticks_of(state, step, take_value(unpacker, PROF_I_FAMILY_RESIDUAL));
}

static uint32_t take_site(prof_i_unpacker *unpacker) {
  const uint64_t low = take_byte(unpacker, PROF_I_COLUMN_SITE),
                 middle = take_byte(unpacker, PROF_I_COLUMN_SITE + 1),
                 high = take_byte(unpacker, PROF_I_COLUMN_SITE + 2);
  return (uint32_t)((low | middle << 8 | high << 16) & PROF_I_SITE_COUNT_MAX);
}

/* ---- runs of plain scopes ---- */

/* Most records of most captures. They are taken in blocks by two loops. The first takes the steps,
   the second makes the words. Positions in columns are local variables. */
enum { BLOCK_COUNT = PROF_I_COLUMN_PADDING };

typedef struct plain_block {
  int64_t starts[BLOCK_COUNT], ends[BLOCK_COUNT]; /* in steps */
} plain_block;

/* The first column of a family. In a block, each scope takes one byte of it without a check, so
   reads past its end are in its padding. leave_family() finds them. */
typedef struct value_reader {
  const uint8_t *at;
  prof_i_column *family;
} value_reader;

static value_reader read_family(prof_i_unpacker *unpacker, prof_i_family which) {
  prof_i_column *const family = &unpacker->columns.columns[which * PROF_I_FAMILY_COLUMNS];
  return (value_reader){family->at, family};
}

static void leave_family(prof_i_columns *columns, const value_reader *reader) {
  columns->is_short |= reader->at > reader->family->end;
  reader->family->at += reader->at - reader->family->at;
}

/* The value of a first byte from PROF_I_VALUE_2 on. */
static __attribute__((noinline)) uint64_t read_large_value(prof_i_columns *columns,
                                                           const value_reader *reader,
                                                           uint8_t first) {
  const int which = (int)(reader->family - columns->columns);
  return prof_i_take_large_value(columns, which, first);
}

static inline uint64_t read_value(prof_i_columns *columns, value_reader *reader) {
  const uint8_t first = *reader->at++;
  if (__builtin_expect(first < PROF_I_VALUE_2, 1)) return first;
  return read_large_value(columns, reader, first);
}

/* Takes the steps of plain scopes, at most `most`, until one that has 31 children or more, or is
   another record, or is damaged. Returns their number. */
static uint32_t take_steps(prof_i_unpacker *unpacker, chunk_state *state, uint32_t most,
                           plain_block *block) {
  prof_i_columns *const columns = &unpacker->columns;
  const prof_i_column *const types = &columns->columns[PROF_I_COLUMN_TYPE];
  value_reader leaf_gap = read_family(unpacker, PROF_I_FAMILY_LEAF_GAP);
  value_reader duration = read_family(unpacker, PROF_I_FAMILY_LEAF_DURATION);
  value_reader parent_gap = read_family(unpacker, PROF_I_FAMILY_PARENT_GAP);
  value_reader lead = read_family(unpacker, PROF_I_FAMILY_PARENT_LEAD);
  int64_t *const starts = unpacker->starts;
  uint64_t last_end = (uint64_t)state->last_end;
  uint32_t start_count = state->start_count, i = 0;
  for (; i < most; i++) {
    const uint32_t type = types->at[i], children = type >> PROF_I_PACKED_TYPE_BITS;
    uint64_t start, end;
    if (type & ((1 << PROF_I_PACKED_TYPE_BITS) - 1)) break;
    if (children) {
      if (children == PROF_I_PACKED_CHILDREN_MAX || children > start_count) break;
      end = last_end + prof_i_unzigzag(read_value(columns, &parent_gap));
      start = (uint64_t)starts[start_count - children] - read_value(columns, &lead);
    } else {
      start = last_end + prof_i_unzigzag(read_value(columns, &leaf_gap));
      end = start + prof_i_unzigzag(read_value(columns, &duration));
    }
    start_count -= children;
    starts[start_count++] = (int64_t)start;
    block->starts[i] = (int64_t)start;
    block->ends[i] = (int64_t)end;
    last_end = end;
  }
  leave_family(columns, &leaf_gap);
  leave_family(columns, &duration);
  leave_family(columns, &parent_gap);
  leave_family(columns, &lead);
  state->start_count = start_count;
  state->last_end = (int64_t)last_end;
  return i;
}

/* Residuals with separate values. Out of line, because they are rare. */
static __attribute__((noinline)) void take_large_residuals(prof_i_unpacker *unpacker,
                                                           value_reader *residuals, uint64_t *first,
                                                           uint64_t *second) {
  leave_family(&unpacker->columns, residuals);
  take_residuals(unpacker, first, second);
  *first = prof_i_unzigzag(*first);
  *second = prof_i_unzigzag(*second);
  residuals->at = residuals->family->at;
}

/* Takes residuals and sites of these scopes, and makes their words. Returns false if a duration is
   too long, which is damage. is_by_tick: each tick is a step. It is constant where this is
   inlined. */
static inline __attribute__((always_inline)) bool make_words(prof_i_unpacker *unpacker,
                                                             const chunk_state *state,
                                                             const plain_block *block,
                                                             uint32_t count, bool is_by_tick,
                                                             uint64_t generation, uint64_t *at) {
  value_reader residuals = read_family(unpacker, PROF_I_FAMILY_RESIDUAL);
  prof_i_column *const sites = &unpacker->columns.columns[PROF_I_COLUMN_SITE];
  const uint8_t *const low = sites[0].at, *const middle = sites[1].at, *const high = sites[2].at;
  const prof_i_steps steps = state->steps;
  uint64_t overflow = 0;
  for (uint32_t i = 0; i < count; i++) {
    const residual_pair pair = unpacker->residual_pairs[*residuals.at++];
    uint64_t first = (uint64_t)pair.first, second = (uint64_t)pair.second;
    if (__builtin_expect(pair.first == RESIDUAL_LARGE, 0)) {
      residuals.at--;
      take_large_residuals(unpacker, &residuals, &first, &second);
    }
    uint64_t start = (uint64_t)block->starts[i], end = (uint64_t)block->ends[i];
    if (!is_by_tick) {
      start = prof_i_step_offset(&steps, (int64_t)start);
      end = prof_i_step_offset(&steps, (int64_t)end);
    }
    start += first;
    const uint64_t duration = (end + second - start) & PROF_I_TIME_MASK;
    const uint64_t site = (uint64_t)(low[i] | (uint32_t)middle[i] << 8 | (uint32_t)high[i] << 16);
    overflow |= duration >> PROF_I_DURATION_BITS;
    at[2 * i] = (steps.base + start) << 4 | generation;
    at[2 * i + 1] = duration << PROF_I_DURATION_SHIFT | (site & PROF_I_SITE_COUNT_MAX) << 4;
  }
  leave_family(&unpacker->columns, &residuals);
  for (int i = 0; i < 3; i++) sites[i].at += count;
  unpacker->columns.columns[PROF_I_COLUMN_TYPE].at += count;
  return overflow == 0;
}

static uint32_t bytes_left(const prof_i_column *column, uint32_t most) {
  const ptrdiff_t left = column->end - column->at;
  return left < (ptrdiff_t)most ? (uint32_t)left : most;
}

/* Takes plain scopes, at most `left`. Returns their number; 0: the next record is another one, or
   take_record() has to check it. *is_damaged_out is set if one does not fit. */
static uint64_t take_plain(prof_i_unpacker *unpacker, chunk_state *state, uint64_t *at,
                           uint64_t left, uint64_t generation, bool *is_damaged_out) {
  const prof_i_column *const columns = unpacker->columns.columns;
  const bool is_by_tick =
      state->steps.period == UINT64_C(1) << PROF_I_STEP_BITS && state->steps.phase == 0;
  plain_block block;
  uint64_t done = 0;
  for (uint32_t most, count = 0; done < left; done += count) {
    most = left - done < BLOCK_COUNT ? (uint32_t)(left - done) : BLOCK_COUNT;
    for (int i = 0; i < 4; i++) most = bytes_left(&columns[PROF_I_COLUMN_TYPE + i], most);
    count = take_steps(unpacker, state, most, &block);
    if (count == 0 || unpacker->columns.is_short) break;
    const bool fits =
        is_by_tick ? make_words(unpacker, state, &block, count, true, generation, at + 2 * done)
                   : make_words(unpacker, state, &block, count, false, generation, at + 2 * done);
    *is_damaged_out |= !fits;
    if (count < most) return done + count;
  }
  return done;
}

/* ---- long records ---- */

static uint64_t take_word(prof_i_unpacker *unpacker, uint64_t like) {
  prof_i_column *const codes =
      &unpacker->columns.columns[PROF_I_FAMILY_WORD * PROF_I_FAMILY_COLUMNS];
  uint64_t word;
  if (codes->at == codes->end || *codes->at != PROF_I_PACKED_RAW_WORD)
    return like + take_signed(unpacker, PROF_I_FAMILY_WORD);
  codes->at++;
  prof_i_take_raw(&unpacker->columns, &word, 1);
  return word;
}

/* Word 2 says how many words follow. Returns the number of words from word 2 on; 0: damaged. */
static uint64_t take_new_payload(prof_i_unpacker *unpacker, uint32_t site, uint64_t *words,
                                 uint64_t room) {
  const prof_i_model_payload like = prof_i_model_payload_like(&unpacker->model, site);
  words[0] = take_word(unpacker, like.count ? like.words[0] : 0);
  const uint64_t slots = prof_i_record_slots(words[0]), count = slots * 2 - 2;
  if (slots < 2 || count > room || unpacker->model.payload_count == PROF_I_PAYLOAD_COUNT_MAX)
    return 0;
  for (uint64_t i = 1; i < count; i++)
    words[i] = take_word(unpacker, i < like.count ? like.words[i] : 0);
  prof_i_model_payload_add(&unpacker->model, site, words, count);
  return count;
}

static uint64_t take_payload(prof_i_unpacker *unpacker, uint32_t site, uint64_t *words,
                             uint64_t room) {
  prof_i_packed_model *const model = &unpacker->model;
  const uint64_t value = take_value(unpacker, PROF_I_FAMILY_PAYLOAD);
  if (value == PROF_I_PAYLOAD_NEW) return take_new_payload(unpacker, site, words, room);
  const uint64_t number = value == PROF_I_PAYLOAD_NEXT ? prof_i_model_payload_expected(model)
                                                       : value - PROF_I_PAYLOAD_NUMBER;
  if (number >= model->payload_count || model->payloads[number].count > room) return 0;
  memcpy(words, model->payloads[number].words, model->payloads[number].count * sizeof *words);
  prof_i_model_payload_seen(model, (uint32_t)number);
  return model->payloads[number].count;
}

/* ---- records of memory ---- */

static uint64_t take_size(prof_i_unpacker *unpacker) {
  const int waste_bits = PROF_I_ALLOC_POOL_SHIFT - PROF_I_ALLOC_WASTE_SHIFT;
  const uint64_t usable = take_value(unpacker, PROF_I_FAMILY_SIZE);
  return usable << waste_bits |
         (take_value(unpacker, PROF_I_FAMILY_WASTE) & PROF_I_ALLOC_WASTE_MAX);
}

static void take_alloc(prof_i_unpacker *unpacker, uint64_t *size_out, uint64_t *address_out) {
  *size_out = take_size(unpacker);
  *address_out = prof_i_model_address_expected(&unpacker->model, *size_out) +
                 take_signed(unpacker, PROF_I_FAMILY_ADDRESS);
  prof_i_model_alloc(&unpacker->model, *size_out, *address_out);
}

static bool take_free(prof_i_unpacker *unpacker, uint64_t *size_out, uint64_t *address_out) {
  prof_i_packed_model *const model = &unpacker->model;
  const uint64_t value = take_value(unpacker, PROF_I_FAMILY_AGE);
  prof_i_freed_size how = PROF_I_FREED_OTHER;
  if (value == 0) {
    *address_out = model->last_address + take_signed(unpacker, PROF_I_FAMILY_ADDRESS);
  } else {
    const uint64_t age = (value - 1) / PROF_I_FREED_WAYS;
    if (!prof_i_model_has_age(model, age)) return false;
    const prof_i_piece *const piece = prof_i_model_piece(model, age);
    how = (prof_i_freed_size)((value - 1) % PROF_I_FREED_WAYS);
    *address_out = piece->address;
    *size_out =
        how == PROF_I_FREED_SAME ? piece->size : piece->size & ~(uint64_t)PROF_I_ALLOC_WASTE_MAX;
  }
  if (how == PROF_I_FREED_OTHER) *size_out = take_size(unpacker);
  prof_i_model_free(model, *size_out, *address_out);
  return true;
}

/* Reads word 1 and the words after it. */
static bool take_memory(prof_i_unpacker *unpacker, uint64_t *words, bool is_free, bool has_more) {
  prof_i_packed_model *const model = &unpacker->model;
  const uint64_t type = has_more ? PROF_I_ALLOC_MORE_TYPE : PROF_I_ALLOC_TYPE;
  uint64_t size = 0;
  if (!is_free)
    take_alloc(unpacker, &size, &words[2]);
  else if (!take_free(unpacker, &size, &words[2]))
    return false;
  words[1] = type | (uint64_t)is_free << PROF_I_ALLOC_VERB_SHIFT | size << PROF_I_ALLOC_WASTE_SHIFT;
  words[3] = prof_i_model_counter_expected(model, size, is_free) +
             take_signed(unpacker, PROF_I_FAMILY_COUNTER);
  prof_i_model_counter_seen(model, size, words[3]);
  for (int i = 0; has_more && i < 2; i++)
    words[4 + i] = model->more[i] += take_signed(unpacker, PROF_I_FAMILY_MORE);
  return true;
}

/* ---- chunks ---- */

static uint64_t take_scope(prof_i_unpacker *unpacker, chunk_state *state, uint64_t type,
                           uint64_t *at, uint64_t left, uint64_t generation) {
  uint64_t ticks, duration, slots = 1;
  const uint64_t children = type >> PROF_I_PACKED_TYPE_BITS;
  const bool is_long = (type & 7) == PROF_I_PACKED_LONG;
  if (!take_times(unpacker, state, children, &ticks, &duration)) return 0;
  const uint32_t site = take_site(unpacker);
  if (is_long) {
    const uint64_t count = left > 1 ? take_payload(unpacker, site, at + 2, left * 2 - 2) : 0;
    if (!count) return 0;
    slots = count / 2 + 1;
  }
  at[0] = ticks << 4 | generation;
  at[1] = duration << PROF_I_DURATION_SHIFT | (uint64_t)site << 4 | is_long;
  return slots;
}

/* Returns the number of slots of the record; 0: damaged. */
static uint64_t take_record(prof_i_unpacker *unpacker, chunk_state *state, uint64_t *at,
                            uint64_t left, uint64_t generation) {
  const uint64_t type = take_byte(unpacker, PROF_I_COLUMN_TYPE);
  const uint64_t kind = type & ((1 << PROF_I_PACKED_TYPE_BITS) - 1);
  if (kind <= PROF_I_PACKED_LONG) return take_scope(unpacker, state, type, at, left, generation);
  if (kind == PROF_I_PACKED_RAW) return prof_i_take_raw(&unpacker->columns, at, 2);
  const bool is_free = kind == PROF_I_PACKED_FREE || kind == PROF_I_PACKED_FREE_MORE;
  const bool has_more = kind == PROF_I_PACKED_ALLOC_MORE || kind == PROF_I_PACKED_FREE_MORE;
  const uint64_t slots = has_more ? 3 : 2;
  if (kind > PROF_I_PACKED_RAW || slots > left) return 0;
  at[0] = take_time(unpacker, state) << 4 | generation;
  return take_memory(unpacker, at, is_free, has_more) ? slots : 0;
}

static bool take_chunk(prof_i_unpacker *unpacker, uint64_t *words, uint64_t slots) {
  const uint64_t generation = ((const prof_i_head *)(const void *)words)->generation;
  uint64_t *at = words + PROF_I_HEAD_BYTES / 8;
  chunk_state state = {.start_count = 0};
  if (!prof_i_take_raw(&unpacker->columns, (uint64_t *)&state.steps, sizeof state.steps / 8))
    return false;
  while (slots > 0) {
    bool is_damaged = false;
    uint64_t taken = take_plain(unpacker, &state, at, slots, generation, &is_damaged);
    if (!taken) taken = take_record(unpacker, &state, at, slots, generation);
    if (!taken || is_damaged || unpacker->columns.is_short) return false;
    at += taken * 2;
    slots -= taken;
  }
  return true;
}

static bool take_part(prof_i_unpacker *unpacker, const prof_i_packed_head *head,
                      unsigned char *plain) {
  enum { HEAD_WORDS = PROF_I_HEAD_BYTES / 8, UNIT_WORDS = PROF_I_UNIT_BYTES / 8 };
  uint64_t at = 0, slots;
  while (at < head->plain_bytes) {
    uint64_t *const words = (uint64_t *)(void *)(plain + at);
    if (!prof_i_take_raw(&unpacker->columns, words, HEAD_WORDS)) return false;
    const uint64_t bytes =
        prof_i_packed_chunk(words, head->plain_offset + at, head->plain_bytes - at, &slots);
    const bool is_taken =
        bytes ? take_chunk(unpacker, words, slots)
              : prof_i_take_raw(&unpacker->columns, words + HEAD_WORDS, UNIT_WORDS - HEAD_WORDS);
    if (!is_taken) return false;
    at += bytes ? bytes : PROF_I_UNIT_BYTES;
  }
  return prof_i_columns_are_read(&unpacker->columns);
}

prof_i_unpacked prof_i_unpack(prof_i_unpacker *unpacker, prof_i_zstd *zstd,
                              const prof_i_packed_head *head, const void *columns, void *plain) {
  const prof_i_unpacked result = prof_i_columns_read(
      &unpacker->columns, zstd, columns, head->bytes - sizeof *head, head->column_count);
  if (result != PROF_I_UNPACKED) return result;
  prof_i_model_clear(&unpacker->model);
  return take_part(unpacker, head, plain) ? PROF_I_UNPACKED : PROF_I_UNPACK_DAMAGED;
}
