/* Packs extents: see packed.h. unpack.c reverses each step. */
#include <stdlib.h>

#include "pack_plain.h"
#include "packed_model.h"
#include "packed_walk.h"

enum { PAYLOAD_HASH_BITS = 15 };

struct prof_i_packer {
  prof_i_zstd *zstd;
  prof_i_columns columns;
  prof_i_packed_model model;
  uint32_t payload_places[1 << PAYLOAD_HASH_BITS]; /* by hash: number + 1; 0: none */
  /* begins, in steps, of the records that have no parent yet */
  int64_t starts[PROF_I_PACKED_PLAIN_MAX / 16];
  prof_i_packed_head head; /* what is known of it before the columns are compressed */
  uint8_t *extent;
};

prof_i_packer *prof_i_packer_create(prof_i_zstd *zstd) {
  prof_i_packer *const packer = calloc(1, sizeof *packer);
  if (!packer) return NULL;
  packer->zstd = zstd;
  packer->extent = malloc(PROF_I_PACKED_HEAD_BYTES + prof_i_columns_room());
  if (prof_i_columns_init(&packer->columns) && packer->extent) return packer;
  prof_i_packer_destroy(packer);
  return NULL;
}

void prof_i_packer_destroy(prof_i_packer *packer) {
  if (!packer) return;
  prof_i_columns_fini(&packer->columns);
  free(packer->extent);
  free(packer);
}

/* ---- records ---- */

static void put_byte(prof_i_packer *packer, int column, uint64_t value) {
  *packer->columns.columns[column].at++ = (uint8_t)value;
}

static void put_signed(prof_i_packer *packer, prof_i_family family, uint64_t value) {
  prof_i_put_value(&packer->columns, family, prof_i_zigzag(value));
}

static void put_type(prof_i_packer *packer, prof_i_packed_type type, uint32_t children) {
  put_byte(packer, PROF_I_COLUMN_TYPE, prof_i_packed_type_byte(type, children));
  if (children >= PROF_I_PACKED_CHILDREN_MAX)
    prof_i_put_value(&packer->columns, PROF_I_FAMILY_CHILDREN, children);
}

/* Writes kind, children and times. Records are ordered by their ends, so a scope's children are
   before it. */
static void put_times(prof_i_packer *packer, prof_i_pack_chunk *state, prof_i_packed_type type,
                      uint64_t ticks, uint64_t duration) {
  const int64_t start = prof_i_step_of(&state->finder, ticks);
  const int64_t end = prof_i_step_of(&state->finder, ticks + duration);
  prof_i_put_residuals(&packer->columns, prof_i_residual_of(&state->finder.steps, start, ticks),
                       prof_i_residual_of(&state->finder.steps, end, ticks + duration));
  uint32_t first = state->start_count;
  while (first > 0 && packer->starts[first - 1] >= start) first--;
  const uint32_t children = state->start_count - first;
  put_type(packer, type, children);
  if (children) {
    put_signed(packer, PROF_I_FAMILY_PARENT_GAP, (uint64_t)end - (uint64_t)state->last_end);
    prof_i_put_value(&packer->columns, PROF_I_FAMILY_PARENT_LEAD,
                     (uint64_t)packer->starts[first] - (uint64_t)start);
  } else {
    put_signed(packer, PROF_I_FAMILY_LEAF_GAP, (uint64_t)start - (uint64_t)state->last_end);
    put_signed(packer, PROF_I_FAMILY_LEAF_DURATION, (uint64_t)end - (uint64_t)start);
  }
  packer->starts[first] = start;
  state->start_count = first + 1;
  state->last_end = end;
}

/* The same for a record with one time and no children. */
static void put_time(prof_i_packer *packer, prof_i_pack_chunk *state, prof_i_packed_type type,
                     uint64_t ticks) {
  const int64_t step = prof_i_step_of(&state->finder, ticks);
  prof_i_put_value(&packer->columns, PROF_I_FAMILY_RESIDUAL,
                   prof_i_residual_of(&state->finder.steps, step, ticks));
  put_type(packer, type, 0);
  put_signed(packer, PROF_I_FAMILY_EVENT_GAP, (uint64_t)step - (uint64_t)state->last_end);
  packer->starts[state->start_count++] = step;
  state->last_end = step;
}

static void put_site(prof_i_packer *packer, uint32_t site) {
  put_byte(packer, PROF_I_COLUMN_SITE, site);
  put_byte(packer, PROF_I_COLUMN_SITE + 1, site >> 8);
  put_byte(packer, PROF_I_COLUMN_SITE + 2, site >> 16);
}

/* ---- long records ---- */

static uint64_t payload_hash(const uint64_t *words, uint64_t count) {
  uint64_t hash = count;
  for (uint64_t i = 0; i < count; i++)
    hash = (hash ^ words[i]) * 0x9e3779b97f4a7c15ull ^ (hash >> 29);
  return prof_i_model_hash(hash, PAYLOAD_HASH_BITS);
}

static bool is_payload(const prof_i_model_payload *payload, const uint64_t *words, uint64_t count) {
  return payload->count == count && memcmp(payload->words, words, count * 8) == 0;
}

static void put_new_payload(prof_i_packer *packer, uint32_t site, const uint64_t *words,
                            uint64_t count) {
  prof_i_column *const codes = &packer->columns.columns[PROF_I_FAMILY_WORD * PROF_I_FAMILY_COLUMNS];
  const prof_i_model_payload like = prof_i_model_payload_like(&packer->model, site);
  for (uint64_t i = 0; i < count; i++) {
    const uint64_t change = prof_i_zigzag(words[i] - (i < like.count ? like.words[i] : 0));
    if (change >> 32) {
      *codes->at++ = PROF_I_PACKED_RAW_WORD;
      prof_i_put_raw(&packer->columns, words + i, 1);
    } else {
      prof_i_put_value(&packer->columns, PROF_I_FAMILY_WORD, change);
    }
  }
  prof_i_model_payload_add(&packer->model, site, words, count);
}

static void put_payload(prof_i_packer *packer, uint32_t site, const uint64_t *words,
                        uint64_t count) {
  prof_i_packed_model *const model = &packer->model;
  const uint32_t expected = prof_i_model_payload_expected(model);
  if (model->payload_count && is_payload(&model->payloads[expected], words, count)) {
    prof_i_put_value(&packer->columns, PROF_I_FAMILY_PAYLOAD, PROF_I_PAYLOAD_NEXT);
    prof_i_model_payload_seen(model, expected);
    return;
  }
  uint32_t *const place = &packer->payload_places[payload_hash(words, count)];
  if (*place && is_payload(&model->payloads[*place - 1], words, count)) {
    prof_i_put_value(&packer->columns, PROF_I_FAMILY_PAYLOAD,
                     *place - 1 + (uint64_t)PROF_I_PAYLOAD_NUMBER);
    prof_i_model_payload_seen(model, *place - 1);
    return;
  }
  prof_i_put_value(&packer->columns, PROF_I_FAMILY_PAYLOAD, PROF_I_PAYLOAD_NEW);
  put_new_payload(packer, site, words, count);
  *place = model->payload_count;
}

/* ---- records of memory ---- */

static void put_size(prof_i_packer *packer, uint64_t size) {
  const int waste_bits = PROF_I_ALLOC_POOL_SHIFT - PROF_I_ALLOC_WASTE_SHIFT;
  prof_i_put_value(&packer->columns, PROF_I_FAMILY_SIZE, size >> waste_bits);
  prof_i_put_value(&packer->columns, PROF_I_FAMILY_WASTE, size & PROF_I_ALLOC_WASTE_MAX);
}

static void put_address(prof_i_packer *packer, uint64_t address) {
  put_signed(packer, PROF_I_FAMILY_ADDRESS, address - packer->model.last_address);
}

static void put_alloc(prof_i_packer *packer, uint64_t size, uint64_t address) {
  put_size(packer, size);
  put_address(packer, address - prof_i_model_address_expected(&packer->model, size) +
                          packer->model.last_address);
  prof_i_model_alloc(&packer->model, size, address);
}

static void put_free(prof_i_packer *packer, uint64_t size, uint64_t address) {
  const uint64_t age = prof_i_model_age_of(&packer->model, address);
  prof_i_freed_size how = PROF_I_FREED_OTHER;
  if (age == UINT64_MAX) {
    prof_i_put_value(&packer->columns, PROF_I_FAMILY_AGE, 0);
    put_address(packer, address);
  } else {
    const uint64_t given = prof_i_model_piece(&packer->model, age)->size;
    how = size == given                                         ? PROF_I_FREED_SAME
          : size == (given & ~(uint64_t)PROF_I_ALLOC_WASTE_MAX) ? PROF_I_FREED_WITHOUT_WASTE
                                                                : PROF_I_FREED_OTHER;
    prof_i_put_value(&packer->columns, PROF_I_FAMILY_AGE, 1 + how + age * PROF_I_FREED_WAYS);
  }
  if (how == PROF_I_FREED_OTHER) put_size(packer, size);
  prof_i_model_free(&packer->model, size, address);
}

static void put_memory(prof_i_packer *packer, const uint64_t *words, uint64_t slots) {
  const uint64_t size = prof_i_alloc_size(words[1]);
  const bool is_free = words[1] >> PROF_I_ALLOC_VERB_SHIFT & 1;
  prof_i_packed_model *const model = &packer->model;
  if (is_free)
    put_free(packer, size, words[2]);
  else
    put_alloc(packer, size, words[2]);
  put_signed(packer, PROF_I_FAMILY_COUNTER,
             words[3] - prof_i_model_counter_expected(model, size, is_free));
  prof_i_model_counter_seen(model, size, words[3]);
  for (int i = 0; slots == 3 && i < 2; i++) {
    put_signed(packer, PROF_I_FAMILY_MORE, words[4 + i] - model->more[i]);
    model->more[i] = words[4 + i];
  }
}

/* ---- chunks ---- */

/* Returns the number of slots of the record. */
static uint64_t put_record(prof_i_packer *packer, prof_i_pack_chunk *state, const uint64_t *at,
                           uint64_t left) {
  const uint64_t type = at[1] & 15, slots_of_memory = prof_i_alloc_slots(at[1]);
  const uint64_t ticks = at[0] >> 4, duration = at[1] >> PROF_I_DURATION_SHIFT;
  if (__builtin_expect((at[0] & PROF_I_GENERATION_MASK) == state->generation, 1)) {
    if (__builtin_expect(type == 0, 1)) {
      put_times(packer, state, PROF_I_PACKED_PLAIN, ticks, duration);
      put_site(packer, prof_i_record_site(at[1]));
      return 1;
    }
    const uint64_t slots = type == 1 && left > 1 ? prof_i_record_slots(at[2]) : 0;
    if (slots > 1 && slots <= left) {
      const uint32_t site = prof_i_record_site(at[1]);
      put_times(packer, state, PROF_I_PACKED_LONG, ticks, duration);
      put_site(packer, site);
      put_payload(packer, site, at + 2, slots * 2 - 2);
      return slots;
    }
    if (slots_of_memory && slots_of_memory <= left) {
      const bool is_free = at[1] >> PROF_I_ALLOC_VERB_SHIFT & 1;
      const prof_i_packed_type plain = is_free ? PROF_I_PACKED_FREE : PROF_I_PACKED_ALLOC;
      const prof_i_packed_type more = is_free ? PROF_I_PACKED_FREE_MORE : PROF_I_PACKED_ALLOC_MORE;
      put_time(packer, state, slots_of_memory == 2 ? plain : more, ticks);
      put_memory(packer, at, slots_of_memory);
      return slots_of_memory;
    }
  }
  put_byte(packer, PROF_I_COLUMN_TYPE, PROF_I_PACKED_RAW);
  prof_i_put_raw(&packer->columns, at, 2);
  return 1;
}

static void put_chunk(prof_i_packer *packer, const uint64_t *words, uint64_t slots) {
  const uint64_t *at = words + PROF_I_HEAD_BYTES / 8;
  prof_i_pack_chunk state = {.starts = packer->starts,
                             .generation = ((const prof_i_head *)(const void *)words)->generation};
  prof_i_steps_find(&state.finder, at, slots, state.generation);
  prof_i_put_raw(&packer->columns, (const uint64_t *)&state.finder.steps,
                 sizeof state.finder.steps / 8);
  while (slots > 0) {
    uint64_t taken = prof_i_pack_plain(&packer->columns, &state, at, slots);
    if (!taken) taken = put_record(packer, &state, at, slots);
    at += taken * 2;
    slots -= taken;
  }
}

/* ---- extents ---- */

static uint64_t check_of(const prof_i_packed_head *head, uint64_t bytes) {
  const uint64_t *const words = (const uint64_t *)head;
  uint64_t check = PROF_I_PACKED_MAGIC;
  for (uint64_t i = 0; i < bytes / 8; i++) {
    if (i == offsetof(prof_i_packed_head, check) / 8) continue;
    check = (check ^ words[i]) * 0x9e3779b97f4a7c15ull;
    check ^= check >> 32;
  }
  return check;
}

uint64_t prof_i_packed_claimed(const void *at, uint64_t there) {
  const prof_i_packed_head *const head = at;
  if (there < sizeof *head || head->magic != PROF_I_PACKED_MAGIC) return 0;
  const bool is_placed = head->plain_offset % PROF_I_UNIT_BYTES == 0 &&
                         head->plain_offset >= PROF_I_FIRST_UNIT_OFFSET &&
                         head->plain_bytes % PROF_I_UNIT_BYTES == 0 && head->plain_bytes > 0 &&
                         head->plain_bytes <= PROF_I_PACKED_PLAIN_MAX &&
                         head->plain_offset <= UINT64_MAX / 2;
  const bool is_sized = head->bytes >= sizeof *head && head->bytes <= there &&
                        head->bytes % PROF_I_PACKED_ALIGNMENT == 0;
  if (!is_placed || !is_sized || head->bytes > prof_i_packed_bytes_max(head->plain_bytes)) return 0;
  return head->bytes;
}

uint64_t prof_i_packed_check(const void *at, uint64_t there) {
  const prof_i_packed_head *const head = at;
  const uint64_t bytes = prof_i_packed_claimed(at, there);
  return bytes && check_of(head, bytes) == head->check ? bytes : 0;
}

static void put_part(prof_i_packer *packer, const prof_i_packed_part *part) {
  const unsigned char *const plain = part->plain;
  uint64_t at = 0, slots;
  while (at < part->plain_bytes) {
    const uint64_t *const words = (const uint64_t *)(const void *)(plain + at);
    const uint64_t bytes =
        prof_i_packed_chunk(words, part->plain_offset + at, part->plain_bytes - at, &slots);
    prof_i_put_raw(&packer->columns, words, (bytes ? PROF_I_HEAD_BYTES : PROF_I_UNIT_BYTES) / 8);
    if (bytes) put_chunk(packer, words, slots);
    at += bytes ? bytes : PROF_I_UNIT_BYTES;
  }
}

void prof_i_pack_columns(prof_i_packer *packer, const prof_i_packed_part *part) {
  prof_i_columns_clear(&packer->columns);
  if (packer->model.payload_count) memset(packer->payload_places, 0, sizeof packer->payload_places);
  prof_i_model_clear(&packer->model);
  put_part(packer, part);
  packer->head = (prof_i_packed_head){.magic = PROF_I_PACKED_MAGIC,
                                      .plain_offset = part->plain_offset,
                                      .plain_bytes = part->plain_bytes,
                                      .plain_count = part->plain_count,
                                      .plain_version = part->plain_version};
}

const void *prof_i_pack_extent(prof_i_packer *packer, uint64_t *bytes_out) {
  prof_i_packed_head *const head = (prof_i_packed_head *)(void *)packer->extent;
  size_t bytes;
  *head = packer->head;
  head->column_count =
      prof_i_columns_write(&packer->columns, packer->zstd, packer->extent + sizeof *head, &bytes);
  uint64_t end = sizeof *head + bytes;
  for (; end % PROF_I_PACKED_ALIGNMENT; end++) packer->extent[end] = 0;
  head->bytes = end;
  head->check = check_of(head, end);
  *bytes_out = end;
  return packer->extent;
}
