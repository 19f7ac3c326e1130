/* The state that predicts the next record from earlier ones. The packer and the unpacker make the
   same calls in the same order, so both have the same state. A table has one entry for each hash
   and keeps the newest: a collision costs bytes, but is no error. */
#ifndef PROF_FORMAT_PACKED_MODEL_H
#define PROF_FORMAT_PACKED_MODEL_H

#include <string.h>

#include "packed.h"

/* Kinds of records: the low 3 bits of the column of types. The bits above are the number of
   children; 31: it is in PROF_I_FAMILY_CHILDREN. */
typedef enum prof_i_packed_type {
  PROF_I_PACKED_PLAIN,
  PROF_I_PACKED_LONG,
  PROF_I_PACKED_ALLOC, /* PROF_I_ALLOC_TYPE */
  PROF_I_PACKED_FREE,
  PROF_I_PACKED_ALLOC_MORE, /* PROF_I_ALLOC_MORE_TYPE */
  PROF_I_PACKED_FREE_MORE,
  PROF_I_PACKED_RAW /* a slot without a record */
} prof_i_packed_type;
enum { PROF_I_PACKED_TYPE_BITS = 3, PROF_I_PACKED_CHILDREN_MAX = 31 };

static inline uint8_t prof_i_packed_type_byte(prof_i_packed_type type, uint32_t children) {
  const uint32_t shown =
      children < PROF_I_PACKED_CHILDREN_MAX ? children : PROF_I_PACKED_CHILDREN_MAX;
  return (uint8_t)((uint32_t)type | shown << PROF_I_PACKED_TYPE_BITS);
}

/* Values of PROF_I_FAMILY_AGE: 0 if the freed allocation is unknown, else 1 + form + 3 * age. The
   form says how the size of the free differs from that of the allocation. */
typedef enum prof_i_freed_size {
  PROF_I_FREED_SAME,
  PROF_I_FREED_WITHOUT_WASTE,
  PROF_I_FREED_OTHER
} prof_i_freed_size;
enum { PROF_I_FREED_WAYS = 3 };

/* A word of a new payload in PROF_I_FAMILY_WORD is the difference from the word of an older
   payload. With this value, the word is in the raw column. */
enum { PROF_I_PACKED_RAW_WORD = 255 };

/* Values of PROF_I_FAMILY_PAYLOAD: the expected next payload, a new payload, or
   PROF_I_PAYLOAD_NUMBER + its number. */
enum { PROF_I_PAYLOAD_NEXT, PROF_I_PAYLOAD_NEW, PROF_I_PAYLOAD_NUMBER };

enum {
  PROF_I_PAYLOAD_COUNT_MAX = PROF_I_PACKED_PLAIN_MAX / 32, /* a long record has two slots or more */
  PROF_I_SITE_PLACES = 4096,
  PROF_I_PIECE_PLACES = 1 << 14,
  PROF_I_SIZE_PLACES = 1024,
  PROF_I_FREED_COUNT = 14,
  PROF_I_POOL_PLACES = 64
};

/* Words of a long record from word 2 on. */
typedef struct prof_i_model_payload {
  const uint64_t *words;
  uint32_t count;
  uint32_t next; /* number of the payload that last followed it */
} prof_i_model_payload;

typedef struct prof_i_piece {
  uint64_t address, size; /* size: see prof_i_alloc_size() */
} prof_i_piece;

/* The last freed addresses of one size. */
typedef struct prof_i_freed {
  uint64_t size;
  uint64_t count;
  uint64_t addresses[PROF_I_FREED_COUNT];
} prof_i_freed;

typedef struct prof_i_packed_model {
  uint32_t payload_count, last_payload;
  uint64_t alloc_count, last_address;
  bool has_pieces;
  uint64_t counters[PROF_I_POOL_PLACES], more[2]; /* more: words 4 and 5 of the last record */
  uint32_t site_payloads[PROF_I_SITE_PLACES];     /* number + 1 of the last payload; 0: none */
  prof_i_model_payload payloads[PROF_I_PAYLOAD_COUNT_MAX];
  prof_i_piece pieces[PROF_I_PIECE_PLACES]; /* by the allocation's number, from 1 */
  uint32_t numbers[PROF_I_PIECE_PLACES];    /* the newest by the address; 0: none */
  prof_i_freed freed[PROF_I_SIZE_PLACES];
} prof_i_packed_model;

static inline void prof_i_model_clear(prof_i_packed_model *model) {
  if (model->payload_count) memset(model->site_payloads, 0, sizeof model->site_payloads);
  if (model->has_pieces) {
    memset(model->numbers, 0, sizeof model->numbers);
    memset(model->freed, 0, sizeof model->freed);
  }
  memset(model->counters, 0, sizeof model->counters);
  memset(model->more, 0, sizeof model->more);
  model->payload_count = model->last_payload = 0;
  model->alloc_count = model->last_address = 0;
  model->has_pieces = false;
}

static inline uint64_t prof_i_model_hash(uint64_t value, int bits) {
  return value * 0x9e3779b97f4a7c15ull >> (64 - bits);
}

/* ---- payloads ---- */

/* Notes that this payload was used. The one after it is then expected to follow it again. */
static inline void prof_i_model_payload_seen(prof_i_packed_model *model, uint32_t number) {
  model->payloads[model->last_payload].next = number;
  model->last_payload = number;
}

static inline uint32_t prof_i_model_payload_expected(const prof_i_packed_model *model) {
  return model->payload_count ? model->payloads[model->last_payload].next : 0;
}

/* The payload that a new payload of this site is compared with. */
static inline prof_i_model_payload prof_i_model_payload_like(const prof_i_packed_model *model,
                                                             uint32_t site) {
  const uint32_t number = model->site_payloads[site % PROF_I_SITE_PLACES];
  return number ? model->payloads[number - 1] : (prof_i_model_payload){NULL, 0, 0};
}

/* `words` must stay valid and unchanged while the model is in use. */
static inline void prof_i_model_payload_add(prof_i_packed_model *model, uint32_t site,
                                            const uint64_t *words, uint64_t count) {
  const uint32_t number = model->payload_count++;
  model->payloads[number] = (prof_i_model_payload){words, (uint32_t)count, number};
  model->site_payloads[site % PROF_I_SITE_PLACES] = model->payload_count;
  prof_i_model_payload_seen(model, number);
}

/* ---- pieces of memory ---- */

/* The size in the model: pool, bytes and waste of word 1 of a memory record. */
static inline uint64_t prof_i_alloc_size(uint64_t word1) {
  return word1 >> PROF_I_ALLOC_WASTE_SHIFT;
}

/* The allocation that was made `age` allocations ago. It must be in the model. */
static inline const prof_i_piece *prof_i_model_piece(const prof_i_packed_model *model,
                                                     uint64_t age) {
  return &model->pieces[(model->alloc_count - age) % PROF_I_PIECE_PLACES];
}

static inline bool prof_i_model_has_age(const prof_i_packed_model *model, uint64_t age) {
  return age < model->alloc_count && age < PROF_I_PIECE_PLACES;
}

/* Only for the packer: the age of the allocation with this address. UINT64_MAX: unknown. */
static inline uint64_t prof_i_model_age_of(const prof_i_packed_model *model, uint64_t address) {
  const uint64_t number = model->numbers[prof_i_model_hash(address, 14)];
  const uint64_t age = model->alloc_count - number;
  return number && prof_i_model_has_age(model, age) &&
                 prof_i_model_piece(model, age)->address == address
             ? age
             : UINT64_MAX;
}

static inline prof_i_freed *prof_i_model_freed(prof_i_packed_model *model, uint64_t size) {
  return &model->freed[prof_i_model_hash(size, 10)];
}

/* The last freed address of this size, or 0. Allocations with equal usable bytes share addresses,
   even if the requested bytes differ. */
static inline uint64_t prof_i_model_address_expected(prof_i_packed_model *model, uint64_t size) {
  const uint64_t usable = size >> (PROF_I_ALLOC_POOL_SHIFT - PROF_I_ALLOC_WASTE_SHIFT);
  const prof_i_freed *const freed = prof_i_model_freed(model, usable);
  return freed->size == usable && freed->count
             ? freed->addresses[(freed->count - 1) % PROF_I_FREED_COUNT]
             : 0;
}

static inline void prof_i_model_alloc(prof_i_packed_model *model, uint64_t size, uint64_t address) {
  const uint64_t usable = size >> (PROF_I_ALLOC_POOL_SHIFT - PROF_I_ALLOC_WASTE_SHIFT);
  prof_i_freed *const freed = prof_i_model_freed(model, usable);
  if (prof_i_model_address_expected(model, size) == address && freed->count) freed->count--;
  model->pieces[++model->alloc_count % PROF_I_PIECE_PLACES] = (prof_i_piece){address, size};
  model->numbers[prof_i_model_hash(address, 14)] = (uint32_t)model->alloc_count;
  model->last_address = address;
  model->has_pieces = true;
}

static inline void prof_i_model_free(prof_i_packed_model *model, uint64_t size, uint64_t address) {
  const uint64_t usable = size >> (PROF_I_ALLOC_POOL_SHIFT - PROF_I_ALLOC_WASTE_SHIFT);
  prof_i_freed *const freed = prof_i_model_freed(model, usable);
  if (freed->size != usable) *freed = (prof_i_freed){.size = usable};
  freed->addresses[freed->count++ % PROF_I_FREED_COUNT] = address;
  model->has_pieces = true;
}

/* The pool's counter after this event, if no event of another thread came between. */
static inline uint64_t prof_i_model_counter_expected(const prof_i_packed_model *model,
                                                     uint64_t size, bool is_free) {
  enum {
    BYTES_SHIFT = PROF_I_ALLOC_BYTES_SHIFT - PROF_I_ALLOC_WASTE_SHIFT,
    POOL_SHIFT = PROF_I_ALLOC_POOL_SHIFT - PROF_I_ALLOC_WASTE_SHIFT
  };
  const uint64_t bytes = size >> BYTES_SHIFT;
  return model->counters[size >> POOL_SHIFT & (PROF_I_POOL_PLACES - 1)] +
         (is_free ? -bytes : bytes) + (UINT64_C(1) << 44);
}

static inline void prof_i_model_counter_seen(prof_i_packed_model *model, uint64_t size,
                                             uint64_t counter) {
  enum { POOL_SHIFT = PROF_I_ALLOC_POOL_SHIFT - PROF_I_ALLOC_WASTE_SHIFT };
  model->counters[size >> POOL_SHIFT & (PROF_I_POOL_PLACES - 1)] = counter;
}

#endif
